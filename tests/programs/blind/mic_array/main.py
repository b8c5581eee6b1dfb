"""Locate four talkers in a hall from the lags between microphones; the speed of sound is fitted along.

Recordings start with the first arrival, so times are relative to the earliest microphone of each talker."""
import numpy as np
import warp as wp

import stations

TALKERS = 4


class Hall:
    def __init__(self):
        self.pos = stations.layout()
        self.mic = wp.array(self.pos, dtype=wp.vec3)
        true = np.array([[4.5, 4.0, 1.6], [11.0, 3.0, 1.2], [14.0, 7.5, 1.3], [8.0, 8.0, 1.7]], dtype=np.float32)
        t = np.linalg.norm(true[:, None] - self.pos[None], axis=-1) * 2.94
        self.lag = wp.array((t - t.min(axis=1, keepdims=True)).astype(np.float32), dtype=float)
        lectern = self.pos[-1]
        guess = np.array([lectern, [9.0, 5.0, 1.5], [12.0, 6.0, 1.5], [6.0, 7.0, 1.5]], dtype=np.float32)
        self.talker = wp.array(guess, dtype=wp.vec3, requires_grad=True)
        self.slowness = wp.array([2.8], dtype=float, requires_grad=True)
        self.shape = (TALKERS, len(self.pos))

    def loss(self):
        total = wp.zeros(1, dtype=float, requires_grad=True)
        t = wp.zeros(self.shape, dtype=float, requires_grad=True)
        wp.launch(stations.arrival, dim=self.shape, inputs=[self.talker, self.mic, self.slowness], outputs=[t])
        earliest = t.numpy().min(axis=1)
        first = wp.array(earliest, dtype=float, requires_grad=True)
        wp.launch(stations.lag_error, dim=self.shape, inputs=[t, first, self.lag, 1.0 / TALKERS], outputs=[total])
        return total


def clipped(grads, limit):
    """Scale all gradients together to a norm of at most `limit`; skip a step that is not finite."""
    norm = np.sqrt(sum(float((g**2).sum()) for g in grads))
    if not np.isfinite(norm):
        return [np.zeros_like(g) for g in grads]
    return [g * min(1.0, limit / norm) for g in grads]


def main():
    hall = Hall()
    for it in range(10):
        with wp.Tape() as tape:
            total = hall.loss()
        tape.backward(total)
        gt, gs = clipped([hall.talker.grad.numpy(), hall.slowness.grad.numpy()], 500.0)
        hall.talker.assign(hall.talker.numpy() - 0.01 * gt)
        hall.slowness.assign(hall.slowness.numpy() - 1e-4 * gs)
        tape.zero()
        print(f"{it} loss {total.numpy()[0]:.4f} slowness {hall.slowness.numpy()[0]:.4f}")
    print("talkers", hall.talker.numpy().round(2).tolist())


if __name__ == "__main__":
    main()
