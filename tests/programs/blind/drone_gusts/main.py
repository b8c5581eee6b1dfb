"""Feed-forward thrust schedule that brings a small drone over a landing pad; every episode has its own gust record."""
import numpy as np
import warp as wp

STEPS = 80
DT = 0.05
MASS = 1.2
CD = 0.35
PAD = wp.vec2(3.0, 0.5)
KNOTS = 10


@wp.kernel
def advance(
    pos: wp.array(dtype=wp.vec2),
    vel: wp.array(dtype=wp.vec2),
    thrust: wp.array(dtype=wp.vec2),
    wind: wp.array(dtype=wp.vec2),
    t: int,
    pos_next: wp.array(dtype=wp.vec2),
    vel_next: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    k = (t * wp.static(KNOTS)) / wp.static(STEPS)
    air = vel[i] - wind[t]
    drag = -wp.static(CD) * wp.length(air) * air
    acc = (thrust[k] + drag) / wp.static(MASS) - wp.vec2(0.0, 9.81)
    v = vel[i] + wp.static(DT) * acc
    vel_next[i] = v
    pos_next[i] = pos[i] + wp.static(DT) * v


@wp.kernel
def cost(
    pos: wp.array(dtype=wp.vec2),
    vel: wp.array(dtype=wp.vec2),
    pad: wp.vec2,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    d = pos[i] - pad
    wp.atomic_add(out, 0, wp.dot(d, d) + 0.2 * wp.dot(vel[i], vel[i]))


class Flight:
    """Two drones with different release points share the thrust schedule."""

    def __init__(self):
        self.n = 2
        release = np.array([[0.0, 2.0], [0.4, 2.3]])
        self.pos = [wp.array(release, dtype=wp.vec2, requires_grad=True)]
        self.vel = [wp.zeros(self.n, dtype=wp.vec2, requires_grad=True)]
        for _ in range(STEPS):
            self.pos.append(wp.zeros(self.n, dtype=wp.vec2, requires_grad=True))
            self.vel.append(wp.zeros(self.n, dtype=wp.vec2, requires_grad=True))
        self.wind = wp.zeros(STEPS, dtype=wp.vec2)
        self.cost = wp.zeros(1, dtype=float, requires_grad=True)

    def load_weather(self, episode):
        rng = np.random.default_rng(1000 + episode)
        gust = np.zeros((STEPS, 2))
        g = np.array([-2.0, 0.0])
        for t in range(STEPS):
            g = 0.9 * g + rng.normal(0.0, [0.9, 0.3])
            gust[t] = np.array([-1.5, 0.0]) + g
        self.wind.assign(gust.astype(np.float32))

    def fly(self, thrust):
        self.cost.zero_()
        for t in range(STEPS):
            wp.launch(
                advance,
                self.n,
                inputs=[self.pos[t], self.vel[t], thrust, self.wind, t],
                outputs=[self.pos[t + 1], self.vel[t + 1]],
            )
        wp.launch(cost, self.n, inputs=[self.pos[STEPS], self.vel[STEPS], PAD], outputs=[self.cost])


flight = Flight()


def episode_cost(schedule, episode):
    thrust = wp.array(schedule, dtype=wp.vec2)
    flight.load_weather(episode)
    flight.fly(thrust)
    return float(flight.cost.numpy()[0])


def episode_gradient(schedule, episode):
    thrust = wp.array(schedule, dtype=wp.vec2, requires_grad=True)
    flight.load_weather(episode)
    tape = wp.Tape()
    with tape:
        flight.fly(thrust)
    j = float(flight.cost.numpy()[0])
    flight.load_weather(episode + 1)
    tape.backward(flight.cost)
    g = thrust.grad.numpy().copy()
    tape.zero()
    return j, g


if __name__ == "__main__":
    schedule = np.tile([0.6, 11.0], (KNOTS, 1))
    for episode in range(24):
        j, g = episode_gradient(schedule, episode)
        if episode % 4 == 0:
            print(f"episode {episode:2d}  cost {j:8.4f}  |g| {np.linalg.norm(g):.4f}")
        schedule -= 0.15 * g
    print("held-out episode cost", round(episode_cost(schedule, 99), 4))
