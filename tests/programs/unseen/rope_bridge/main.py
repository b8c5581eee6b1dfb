"""A rope bridge of slack cables: pretension so that the walkway is level. Cables only pull."""
import warp as wp
import warp.optim

SPANS = 6
RELAX = 30


@wp.func
def cable(stretch: float):
    # softplus without overflow
    return wp.max(stretch, 0.0) + wp.log(1.0 + wp.exp(-20.0 * wp.abs(stretch))) / 20.0


@wp.func_grad(cable)
def adj_cable(stretch: float, adj_ret: float):
    wp.adjoint[stretch] += adj_ret / (1.0 + wp.exp(-20.0 * stretch))


@wp.kernel
def settle(y: wp.array(dtype=float), pre: wp.array(dtype=float), y_next: wp.array(dtype=float)):
    i = wp.tid()
    n = y.shape[0]
    y_next[i] = y[i]
    if i > 0 and i < n - 1:
        left = cable(pre[i - 1] + 0.3 * (y[i] - y[i - 1]))
        right = cable(pre[i] + 0.3 * (y[i] - y[i + 1]))
        load = -0.1
        y_next[i] = y[i] + 0.5 * (load - left * (y[i] - y[i - 1]) - right * (y[i] - y[i + 1]))


@wp.kernel
def sag(y: wp.array(dtype=float), pre: wp.array(dtype=float), obj: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] + 0.1
    wp.atomic_add(obj, 0, 10.0 * d * d)
    if i < SPANS:
        wp.atomic_add(obj, 0, 0.2 * pre[i] * pre[i])


pre = wp.full(SPANS, 0.4, dtype=float, requires_grad=True)
optimizer = warp.optim.SGD([pre], lr=0.02, momentum=0.8, nesterov=True)
for k in range(12):
    ys = [wp.zeros(SPANS + 1, dtype=float, requires_grad=True) for _ in range(RELAX + 1)]
    obj = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for r in range(RELAX):
            wp.launch(settle, SPANS + 1, inputs=[ys[r], pre], outputs=[ys[r + 1]])
        wp.launch(sag, SPANS + 1, inputs=[ys[-1], pre], outputs=[obj])
    tape.backward(obj)
    optimizer.step([pre.grad])
    tape.zero()
    print(f"bridge {k} objective {obj.numpy()[0]:.6f}")
