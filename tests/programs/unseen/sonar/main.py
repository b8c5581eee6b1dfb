"""Echo of a sea floor: depths from travel times. Backward is started with the residual itself, so no loss kernel is needed."""

import numpy as np
import warp as wp

BEAMS, KNOTS = 30, 6


@wp.kernel
def echo(depths: wp.array(dtype=wp.float64), speed: wp.float64, times: wp.array(dtype=wp.float64)):
    i = wp.tid()
    s = wp.float64(i) * wp.float64(5.0) / wp.float64(29.0)
    k = wp.min(int(s), 4)
    w = s - wp.float64(k)
    d = (wp.float64(1.0) - w) * depths[k] + w * depths[k + 1]
    off = wp.float64(0.1) * wp.float64(i - 15)
    times[i] = wp.float64(2.0) * wp.sqrt(d * d + off * off) / speed


@wp.kernel
def subtract(times: wp.array(dtype=wp.float64), heard: wp.array(dtype=wp.float64), residual: wp.array(dtype=wp.float64)):
    i = wp.tid()
    residual[i] = times[i] - heard[i]


class Survey:
    def __init__(self, true_depths):
        self.speed = 1.5
        self.times = wp.zeros(BEAMS, dtype=wp.float64, requires_grad=True)
        self.residual = wp.zeros(BEAMS, dtype=wp.float64)
        self.heard = wp.zeros(BEAMS, dtype=wp.float64)
        self.listen(wp.array(true_depths, dtype=wp.float64))
        wp.copy(self.heard, self.times)

    def listen(self, depths):
        wp.launch(echo, BEAMS, inputs=[depths, self.speed], outputs=[self.times])

    def misfit(self):
        return 0.5 * float(((self.times.numpy() - self.heard.numpy()) ** 2).sum())


def main():
    survey = Survey([3.0, 3.4, 2.2, 2.8, 4.0, 3.1])
    depths = wp.array(np.full(KNOTS, 2.0), dtype=wp.float64, requires_grad=True)
    survey.listen(depths)
    for it in range(10):
        wp.launch(subtract, BEAMS, inputs=[survey.times, survey.heard], outputs=[survey.residual])
        tape = wp.Tape()
        with tape:
            survey.listen(depths)
        tape.backward(grads={survey.times: survey.residual})
        misfit = survey.misfit()
        slope = depths.grad.numpy().copy()
        tape.zero()
        depths.assign(depths.numpy() - 0.15 * slope)
        print(f"ping {it}: misfit {misfit:.6f}")


if __name__ == "__main__":
    main()
