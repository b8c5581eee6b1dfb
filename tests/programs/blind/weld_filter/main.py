"""Train a two-layer filter that finds weld seams; the batch does not fit, it is split in micro-batches."""
import argparse

import numpy as np
import warp as wp

import data
import net


class Trainer:
    def __init__(self, args):
        self.args = args
        pics, maps = data.seams(args.pictures, args.size, seed=14)
        self.pics = wp.array(pics, dtype=float)
        self.maps = wp.array(maps, dtype=float)
        rng = np.random.default_rng(2)
        make = lambda shape, s: wp.array((s * rng.normal(size=shape)).astype(np.float32), dtype=float, requires_grad=True)
        self.weights = {"w1": make((2, 2, 3, 3), 0.3), "b1": make((2,), 0.1), "w2": make((1, 2, 3, 3), 0.3)}
        inner = args.size - 2
        self.hidden = wp.zeros((args.micro, 2, inner, inner), dtype=float, requires_grad=True)
        self.momentum = {k: np.zeros(w.shape) for k, w in self.weights.items()}

    def micro_batch(self, first):
        m, inner = self.args.micro, self.args.size - 4
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            w = self.weights
            wp.launch(net.convolve, dim=self.hidden.shape, inputs=[self.pics[first : first + m], w["w1"], w["b1"]], outputs=[self.hidden])
            wp.launch(net.classify, dim=(m, inner, inner), inputs=[self.hidden, w["w2"], self.maps, first, 1.0 / (m * inner * inner)], outputs=[loss])
        tape.backward(loss)
        self.hidden.grad.zero_()
        return float(loss.numpy()[0])

    def step(self):
        for w in self.weights.values():
            w.grad.zero_()
        starts = range(0, self.args.pictures, self.args.micro)
        mean = sum(self.micro_batch(s) for s in starts) / len(starts)
        grads = {k: w.grad.numpy() / len(starts) for k, w in self.weights.items()}
        norm = np.sqrt(sum((g**2).sum() for g in grads.values()))
        shrink = min(1.0, self.args.clip / norm)
        for k, w in self.weights.items():
            self.momentum[k] = 0.8 * self.momentum[k] + shrink * grads[k]
            w.assign((w.numpy() - self.args.rate * self.momentum[k]).astype(np.float32))
        return mean, norm


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pictures", type=int, default=12)
    ap.add_argument("--size", type=int, default=18)
    ap.add_argument("--micro", type=int, default=3)
    ap.add_argument("--rate", type=float, default=0.6)
    ap.add_argument("--clip", type=float, default=0.3)
    trainer = Trainer(ap.parse_args())
    for it in range(12):
        mean, norm = trainer.step()
        print(f"{it:2d} cross entropy {mean:.5f} |g| {norm:.4f}")


if __name__ == "__main__":
    main()
