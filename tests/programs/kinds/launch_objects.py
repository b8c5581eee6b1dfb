"""Recorded commands (`wp.Launch`) whose arguments are set anew in each iteration.

As they are meant: the update, which no tape has to know. `tape`: a step of the rollout as well, which the tape then lacks.
"""
import sys
import numpy as np
import warp as wp
N, STEPS = 16, 5


@wp.kernel
def relax(u: wp.array(dtype=float), rate: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = u[i] - 0.1 * rate[i] * wp.sin(u[i])


@wp.kernel
def misfit(u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = u[i] - 0.2
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(rate: wp.array(dtype=float), gradient: wp.array(dtype=float), by: float):
    i = wp.tid()
    rate[i] = rate[i] - by * gradient[i]


rate = wp.array(np.linspace(0.5, 1.5, N), dtype=float, requires_grad=True)
states = [wp.array(np.linspace(0.4, 1.2, N), dtype=float, requires_grad=True)]
states += [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS)]
update = wp.launch(descend, N, inputs=[rate, rate.grad, 0.0], record_cmd=True)
again = wp.launch(relax, N, inputs=[states[0], rate, states[1]], record_cmd=True)

for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for k in range(STEPS):
            if "tape" in sys.argv and k == 2:
                again.set_param_by_name("u", states[k])
                again.set_param_at_index(2, states[k + 1])
                again.launch()
            else:
                wp.launch(relax, N, inputs=[states[k], rate, states[k + 1]])
        wp.launch(misfit, N, inputs=[states[-1], loss])
    tape.backward(loss)
    update.set_param_by_name("by", 0.5 / (1.0 + it))
    update.set_param_by_name("gradient", rate.grad)
    update.launch()
    tape.zero()
    print(it, loss.numpy()[0])
