"""What depends on Warp's version: measured here, listed in references/quick-checks.md §11, compared by test_behaviours.py.

Run as a program it measures the installed Warp and prints {name: gradient} as JSON. It needs Warp and NumPy only.
"""

import contextlib
import io
import json

import numpy as np
import warp as wp
import warp.autograd

VERSIONS = ("1.13", "1.14", "1.15", "1.16", "1.17", "1.18", "1.19")  # 1.14 and 1.15 were measured by hand


def A(*values):
    return wp.array(values, dtype=float, requires_grad=True)


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def same(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.clamp(x[i], -100.0, 100.0)


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def square_and_copy(x: wp.array(dtype=float), c: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i] + 5.0 * c[i])


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, x[wp.tid()])


@wp.kernel
def total_squares(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


@wp.kernel
def weighted(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, float(i + 1) * x[i])


@wp.kernel
def component(x: wp.array(dtype=float), y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i][1] = x[i] * x[i]


@wp.kernel
def second(y: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i][1])


@wp.kernel
def ternary(x: wp.array(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    chosen = x[i] if i < 1 else y[i]
    wp.atomic_add(loss, 0, chosen)


@wp.kernel
def curl(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    noise = wp.curlnoise(wp.rand_init(1), x[i])
    wp.atomic_add(loss, 0, noise[0] + noise[1] + noise[2])


@wp.kernel(enable_backward=False)
def no_backward(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, x[wp.tid()])


@wp.kernel
def shift(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


def backward(record, x):
    loss = A(0.0)
    with wp.Tape() as tape:
        record(loss)
    tape.backward(loss)
    return x.grad.numpy().ravel().tolist()


def copy_read_later():
    x, c = A(1.0, 2.0), A(0.0, 0.0)

    def record(loss):
        wp.copy(c, x)
        wp.launch(square_and_copy, 2, inputs=[x, c], outputs=[loss])

    return backward(record, x)


def copy_overwritten():
    x, c = A(1.0, 2.0), A(0.0, 0.0)

    def record(loss):
        wp.copy(c, x)
        wp.launch(square, 2, inputs=[x], outputs=[c])
        wp.launch(total, 2, inputs=[c], outputs=[loss])

    return backward(record, x)


def two_clones():
    x = A(1.0, 2.0)

    def record(loss):
        copies = wp.clone(x), wp.clone(x)
        for c in copies:
            wp.launch(total, 2, inputs=[c], outputs=[loss])

    return backward(record, x)


def copy_back():
    p, q, stage = A(1.0, 2.0), A(0.0, 0.0), A(0.0, 0.0)

    def record(loss):
        wp.launch(double, 2, inputs=[p], outputs=[q])
        wp.launch(same, 2, inputs=[q], outputs=[stage])
        wp.copy(q, stage)
        wp.launch(total_squares, 2, inputs=[q], outputs=[loss])

    return backward(record, p)


def copy_offsets():
    x, c = A(1.0, 2.0, 3.0, 4.0), A(0.0, 0.0, 0.0, 0.0)

    def record(loss):
        wp.copy(c, x, dest_offset=2, src_offset=0, count=2)
        wp.launch(weighted, 4, inputs=[c], outputs=[loss])

    return backward(record, x)


def copy_overlapping():
    x = A(1.0, 2.0, 3.0, 4.0)

    def record(loss):
        wp.copy(x, x, dest_offset=1, src_offset=0, count=2)
        wp.launch(total, 4, inputs=[x], outputs=[loss])

    return backward(record, x)


def component_write():
    x, y = A(1.0, 2.0), wp.zeros(2, dtype=wp.vec2, requires_grad=True)

    def record(loss):
        wp.launch(component, 2, inputs=[x], outputs=[y])
        wp.launch(second, 2, inputs=[y], outputs=[loss])

    return backward(record, x)


def ternary_on_elements():
    x, y = A(1.0, 2.0), A(3.0, 4.0)
    return backward(lambda loss: wp.launch(ternary, 2, inputs=[x, y], outputs=[loss]), x)


def curlnoise():
    x = wp.array([[0.1, 0.2, 0.3]], dtype=wp.vec3, requires_grad=True)
    gradient = backward(lambda loss: wp.launch(curl, 1, inputs=[x], outputs=[loss]), x)
    return [float(np.abs(gradient).max() > 0.0)]


def warnings_on_stderr():
    """1: the warning that a kernel has no backward pass is not printed to stdout."""
    x = A(1.0, 2.0)
    with printed() as stdout, printed(contextlib.redirect_stderr):
        backward(lambda loss: wp.launch(no_backward, 2, inputs=[x], outputs=[loss]), x)
    return [float("Warning" not in stdout.getvalue())]


def gradcheck_restores():
    """1: gradcheck passes a right gradient though the forward pass changes its input."""

    def forward(x):
        loss = A(0.0)
        wp.launch(total, 2, inputs=[x], outputs=[loss])
        wp.launch(shift, 2, inputs=[x])
        return loss

    with printed(), printed(contextlib.redirect_stderr):
        return [float(warp.autograd.gradcheck(forward, inputs=[A(1.0, 2.0)], raise_exception=False))]


def tracker_flags():
    """The number of false warnings of Warp's tracker over three iterations. The module is compiled anew for it: last."""
    wp.config.verify_autograd_array_access = True
    wp.get_module(__name__).mark_modified()
    x, y = A(1.0, 2.0), A(0.0, 0.0)
    with printed() as stdout, printed(contextlib.redirect_stderr) as stderr:
        for _ in range(3):
            loss = A(0.0)
            with wp.Tape() as tape:
                wp.launch(square, 2, inputs=[x], outputs=[y])
                wp.launch(total, 2, inputs=[y], outputs=[loss])
            tape.backward(loss)
            tape.zero()
    wp.config.verify_autograd_array_access = False
    return [float((stdout.getvalue() + stderr.getvalue()).count("is being written to but has already been read"))]


@contextlib.contextmanager
def printed(redirect=contextlib.redirect_stdout):
    """What is printed meanwhile."""
    text = io.StringIO()
    with redirect(text):
        yield text


BEFORE_1_17 = ("1.13", "1.14", "1.15", "1.16")
BEHAVIOURS = {  # name: (measured by, the right answer, {version that differs: its answer})
    "copy_read_later": (copy_read_later, [7, 9], dict.fromkeys(BEFORE_1_17, [5, 5])),
    "copy_overwritten": (copy_overwritten, [2, 4], dict.fromkeys(BEFORE_1_17, [0, 0])),
    "two_clones": (two_clones, [2, 2], dict.fromkeys(BEFORE_1_17, [1, 1])),
    "copy_back": (copy_back, [8, 16], dict.fromkeys(BEFORE_1_17, [16, 32])),
    "copy_offsets": (copy_offsets, [3, 4, 0, 0], dict.fromkeys(("1.13", "1.14"), [0, 0, 1, 2])),
    "copy_overlapping": (copy_overlapping, [2, 1, 0, 1], dict.fromkeys(VERSIONS, [1, 1, 1, 1])),
    "component_write": (component_write, [2, 4], {"1.13": [0, 0]}),
    "ternary_on_elements": (ternary_on_elements, [1, 0], dict.fromkeys(BEFORE_1_17, [0, 0])),
    "curlnoise": (curlnoise, [1], {"1.13": [0]}),
    "warnings_on_stderr": (warnings_on_stderr, [1], {"1.13": [0]}),
    "gradcheck_restores": (gradcheck_restores, [1], dict.fromkeys(BEFORE_1_17, [0])),
    "tracker_flags": (tracker_flags, [0], dict.fromkeys(BEFORE_1_17, [2])),
}


def expected(name, version):
    """The answer of a version such as '1.16'."""
    _, right, wrong = BEHAVIOURS[name]
    return wrong.get(version, right)


if __name__ == "__main__":
    wp.config.quiet = True
    print(json.dumps({"warp": wp.config.version, **{name: entry[0]() for name, entry in BEHAVIOURS.items()}}))
