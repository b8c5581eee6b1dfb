"""Find the fan speeds that carry a row of balloons to their marks."""
import numpy as np
import warp as wp

BALLOONS = 6
FANS = 3
FRAMES = 6
SUBSTEPS = 5
DT = 0.05
ITERATIONS = 25
RATE = 0.02


@wp.kernel
def drift(
    place: wp.array(dtype=float),
    speed: wp.array(dtype=float),
    fans: wp.array(dtype=float),
    place_out: wp.array(dtype=float),
    speed_out: wp.array(dtype=float),
):
    b = wp.tid()
    wind = float(0.0)
    for f in range(FANS):
        away = place[b] - float(f)
        wind += fans[f] * wp.exp(-away * away)
    slip = wind - speed[b]
    v = speed[b] + DT * 4.0 * slip * wp.abs(slip)
    speed_out[b] = v
    place_out[b] = place[b] + DT * v


@wp.kernel
def miss(place: wp.array(dtype=float), marks: wp.array2d(dtype=float), frame: int, loss: wp.array(dtype=float)):
    b = wp.tid()
    d = place[b] - marks[frame, b]
    wp.atomic_add(loss, 0, d * d)


class State:
    def __init__(self):
        self.place = wp.zeros(BALLOONS, dtype=float, requires_grad=True)
        self.speed = wp.zeros(BALLOONS, dtype=float, requires_grad=True)


class Hall:
    def __init__(self, fans):
        self.fans = wp.array(fans, dtype=float, requires_grad=True)
        self.states = [State() for _ in range(FRAMES * SUBSTEPS + 1)]

    def release(self):
        self.states[0].place.assign(np.linspace(-0.5, 1.5, BALLOONS, dtype=np.float32))
        self.states[0].speed.zero_()

    def play_frame(self, frame):
        for s in range(frame * SUBSTEPS, (frame + 1) * SUBSTEPS):
            before, after = self.states[s], self.states[s + 1]
            wp.launch(
                drift,
                BALLOONS,
                inputs=[before.place, before.speed, self.fans],
                outputs=[after.place, after.speed],
            )
        return after


def film(fans):
    hall, pictures = Hall(fans), []
    hall.release()
    for frame in range(FRAMES):
        pictures.append(hall.play_frame(frame).place.numpy().copy())
    return wp.array(np.array(pictures), dtype=float)


def main():
    marks = film([0.9, 0.6, 1.2])
    hall = Hall([0.7, 0.7, 0.7])

    for it in range(ITERATIONS):
        hall.release()
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for frame in range(FRAMES):
                end = hall.play_frame(frame)
                wp.launch(miss, BALLOONS, inputs=[end.place, marks, frame], outputs=[loss])
        tape.backward(loss)
        total = float(loss.numpy()[0])

        gradient = hall.fans.grad.numpy().copy()
        tape.zero()
        speeds = hall.fans.numpy()
        print(f"iteration {it:2d}  loss {total:.5f}  fans {speeds}  gradient {gradient}")
        hall.fans.assign(speeds - RATE * gradient)


if __name__ == "__main__":
    main()
