"""Throttle of a tram between two stops; gradients are clipped on the device before the update."""
import warp as wp

SECTIONS = 12


@wp.kernel
def ride(s: wp.array2d(dtype=float), throttle: wp.array(dtype=float), k: int):
    pos = s[k, 0]
    vel = s[k, 1]
    acc = 1.5 * wp.tanh(throttle[k]) - 0.1 * vel - 0.02 * vel * vel
    v = vel + acc
    s[k + 1, 0] = pos + v
    s[k + 1, 1] = v


@wp.kernel
def arrival(s: wp.array2d(dtype=float), throttle: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    if k == 0:
        miss = s[SECTIONS, 0] - 20.0
        wp.atomic_add(loss, 0, miss * miss + 4.0 * s[SECTIONS, 1] * s[SECTIONS, 1])
    else:
        jerk = throttle[k] - throttle[k - 1]
        wp.atomic_add(loss, 0, jerk * jerk)


@wp.kernel
def norm2(g: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, g[wp.tid()] * g[wp.tid()])


@wp.kernel
def clip(g: wp.array(dtype=float), total: wp.array(dtype=float), limit: float):
    i = wp.tid()
    n = wp.sqrt(total[0])
    if n > limit:
        g[i] = g[i] * limit / n


@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float), lr: float):
    i = wp.tid()
    p[i] = p[i] - lr * g[i]
    g[i] = 0.0


def train(iterations=20, lr=0.1, limit=1.0):
    throttle = wp.full(SECTIONS, 0.2, dtype=float, requires_grad=True)
    for it in range(iterations):
        s = wp.zeros((SECTIONS + 1, 2), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for k in range(SECTIONS):
                wp.launch(ride, 1, inputs=[s, throttle, k])
            wp.launch(arrival, SECTIONS, inputs=[s, throttle, loss])
        tape.backward(loss)
        total = wp.zeros(1, dtype=float)
        wp.launch(norm2, SECTIONS, inputs=[throttle.grad, total])
        wp.launch(clip, SECTIONS, inputs=[throttle.grad, total, limit])
        wp.launch(descend, SECTIONS, inputs=[throttle, throttle.grad, lr])
        print(f"ride {it}: loss {loss.numpy()[0]:.4f}, gradient norm {total.numpy()[0] ** 0.5:.3f}")


train()
