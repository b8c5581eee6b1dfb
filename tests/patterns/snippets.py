"""For every pattern: programs in which it must be found (on the line that ends in `#!`), plain and disguised, and
look-alikes in which it must not be. They are read, never run."""

PRELUDE = """
import numpy as np
import warp as wp
N = 4

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]

@wp.kernel
def gather(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.atomic_add(y, 0, wp.sin(x[wp.tid()]))

@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()] * y[wp.tid()])

@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    p[i] = p[i] - 0.1 * g[i]

def vec(grad=True):
    return wp.zeros(N, dtype=float, requires_grad=grad)
"""
ARRAYS = """
x, y, z = vec(), vec(), vec()
loss = wp.zeros(1, dtype=float, requires_grad=True)
"""


def kernel(body: str, before: str = "", arguments: str = "x: wp.array(dtype=float), y: wp.array(dtype=float)") -> str:
    """A program that launches one kernel under a tape."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"""
import warp as wp
N = 4
{before}
@wp.kernel
def k({arguments}):
    i = wp.tid()
{lines}

x = wp.ones(N, dtype=float, requires_grad=True)
y = wp.zeros(N, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(k, N, inputs=[x, y])
tape.backward(grads={{y: wp.ones(N, dtype=float)}})
"""


def host(text: str) -> str:
    """A program with the kernels and arrays above."""
    return PRELUDE + ARRAYS + text


FOUND = {
    "a launch onto its own input": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[x])  #!
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
"""),
        host("""
states = [vec(), *[vec()] * 20]
with wp.Tape() as tape:
    for t in range(20):
        wp.launch(square, N, inputs=[states[t]], outputs=[states[t + 1]])  #!
    wp.launch(total, N, inputs=[states[20]], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "write after read": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
    wp.launch(double, N, inputs=[z], outputs=[x])  #!
tape.backward(loss)
"""),
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.copy(x, y)  #!
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
"""),
        host("""
here, there = x, y
with wp.Tape() as tape:
    for step in range(20):
        wp.launch(square, N, inputs=[here], outputs=[there])  #!
        here, there = there, here
    wp.launch(total, N, inputs=[here], outputs=[loss])
tape.backward(loss)
"""),
        PRELUDE
        + """
from warp import Tape as Recorder, launch as go
@wp.struct
class State:
    q: wp.array(dtype=float)
    v: wp.array(dtype=float)
@wp.kernel
def push(s: State):
    i = wp.tid()
    s.v[i] = s.q[i] * s.q[i]
@wp.kernel
def move(s: State):
    i = wp.tid()
    s.q[i] = s.q[i] + s.v[i]
class Sim:
    def __init__(self):
        self.s = State()
        self.s.q = vec()
        self.s.v = vec()
        self.tape = Recorder()
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
    def step(self):
        go(push, N, inputs=[self.s])
        go(move, N, inputs=[self.s])  #!
    def run(self):
        with self.tape:
            for _ in range(8):
                self.step()
            go(total, N, inputs=[self.s.q, self.loss])
        self.tape.backward(self.loss)
Sim().run()
""",
    ],
    "write between tape and backward": [
        host("""
tape = wp.Tape()
with tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
x.zero_()  #!
tape.backward(loss)
"""),
        host("""
def forward(p):
    wp.launch(square, N, inputs=[p], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
same = wp.array(ptr=x.ptr, shape=(N,), dtype=float)
tape = wp.Tape()
with tape:
    forward(x)
def show():
    wp.launch(double, N, inputs=[z], outputs=[same])  #!
show()
tape.backward(loss)
"""),
    ],
    "NumPy write into a recorded array": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    y.numpy()[0] = 1.0  #!
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        host("""
view = y.numpy()
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    view *= 0.5  #!
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "two states become one": [
        host("""
states = [vec() for _ in range(11)]
for frame in range(5):
    tape = wp.Tape()
    with tape:
        for t in range(10):
            wp.launch(square, N, inputs=[states[t]], outputs=[states[t + 1]])
        wp.launch(total, N, inputs=[states[10]], outputs=[loss])
    tape.backward(loss)
    tape.zero()
    states[0] = states[-1]  #!
"""),
    ],
    "read and overwritten in one kernel": [
        kernel("""
x[i] = wp.sin(x[i])  #!
y[i] = x[i]
"""),
        kernel("""
old = x[i]
y[i] = old * old
x[i] += y[i]  #!
"""),
    ],
    "accumulator reset inside the tape": [
        host("""
with wp.Tape() as tape:
    for step in range(10):
        y.zero_()  #!
        wp.launch(gather, N, inputs=[x], outputs=[y])
        wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        PRELUDE
        + """
class Body:
    def __init__(self):
        self.force = vec()
        self.x = vec()
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
    def clear(self):
        self.force.fill_(0.0)  #!
    def step(self):
        self.clear()
        wp.launch(kernel=gather, dim=N, inputs=[self.x, self.force])
        wp.launch(kernel=total, dim=N, inputs=[self.force, self.loss])
b = Body()
t = wp.Tape()
with t:
    b.step()
    b.step()
t.backward(b.loss)
""",
    ],
    "array without requires_grad on the path": [
        host("""
mid = wp.zeros(N, dtype=float)  #!
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[mid])
    wp.launch(total, N, inputs=[mid], outputs=[loss])
tape.backward(loss)
"""),
        host("""
class Net:
    def __init__(self, n):
        self.layers = [vec()]
        for k in range(n):
            self.layers.append(wp.empty(N, dtype=float, requires_grad=k == n - 1))  #!
    def forward(self, data):
        wp.launch(square, N, inputs=[data], outputs=[self.layers[1]])
        wp.launch(square, N, inputs=[self.layers[1]], outputs=[self.layers[2]])
        wp.launch(total, N, inputs=[self.layers[2]], outputs=[loss])
net = Net(2)
with wp.Tape() as tape:
    net.forward(x)
tape.backward(loss)
"""),
        host("""
with wp.Tape() as tape:
    frozen = wp.zeros_like(vec(grad=False))  #!
    wp.copy(frozen, x)
    wp.launch(total, N, inputs=[frozen], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "requires_grad switched on late": [
        host("""
table = wp.zeros((2, 2), dtype=float)
flat = table.reshape((4,))
table.requires_grad = True  #!
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[flat], outputs=[loss])
tape.backward(loss)
"""),
        host("""
@wp.struct
class Model:
    w: wp.array(dtype=float)
@wp.kernel
def cost(m: Model, out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, m.w[wp.tid()] * m.w[wp.tid()])
model = Model()
weights = wp.zeros(N, dtype=float)
model.w = weights
weights.requires_grad = True  #!
with wp.Tape() as tape:
    wp.launch(cost, N, inputs=[model], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "backward disabled": [
        host("""
@wp.kernel(enable_backward=False)  #!
def cube(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * a[i] * a[i]
with wp.Tape() as tape:
    wp.launch(cube, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        host("""
import functools
fast = functools.partial(wp.kernel, enable_backward=False)
@fast  #!
def cube(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * a[i] * a[i]
with wp.Tape() as tape:
    wp.launch(cube, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        host("""
wp.set_module_options({"enable_backward": False})  #!
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        "import warp as wp\nwp.config.enable_backward = False  #!\n"
        + host("""
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "operation that no tape records": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.utils.array_sum(y, out=loss)  #!
    wp.launch(total, 1, inputs=[loss], outputs=[z])
tape.backward(grads={z: wp.ones(N, dtype=float)})
"""),
        host("""
import warp.utils as wu
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y], record_tape=False)  #!
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        host("""
with wp.Tape() as tape:
    command = wp.launch(square, N, inputs=[x], outputs=[y], record_cmd=True)  #!
    command.launch()
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "loss computed outside the tape": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
wp.launch(total, N, inputs=[y], outputs=[loss])  #!
tape.backward(loss)
"""),
    ],
    "loss not on the tape": [
        host("""
error = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(error)  #!
"""),
    ],
    "round trip through NumPy inside the tape": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    smooth = wp.array(np.convolve(y.numpy(), [0.5, 0.5], "same"), dtype=float, requires_grad=True)  #!
    wp.launch(total, N, inputs=[smooth], outputs=[loss])
tape.backward(loss)
"""),
        host("""
def filtered(a):
    values = a.numpy()
    values = values / values.max()
    return values
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    z.assign(filtered(y))  #!
    wp.launch(total, N, inputs=[z], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "another framework inside the tape": [
        host("""
import torch
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    t = torch.relu(wp.to_torch(y))  #!
    wp.launch(total, N, inputs=[wp.from_torch(t)], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "gradient never zeroed": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)  #!
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
        PRELUDE
        + """
class Trainer:
    def __init__(self):
        self.w = vec()
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
    def step(self):
        self.loss.zero_()
        with wp.Tape() as t:
            wp.launch(total, N, inputs=[self.w], outputs=[self.loss])
        t.backward(self.loss)  #!
        wp.launch(descend, N, inputs=[self.w, self.w.grad])
t = Trainer()
while True:
    t.step()
""",
    ],
    "tape.zero() before backward": [
        host("""
for it in range(10):
    tape = wp.Tape()
    tape.zero()  #!
    loss.zero_()
    with tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
    ],
    "adjoint of an intermediate array left over": [
        host("""
for it in range(10):
    y.zero_()
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(gather, N, inputs=[x], outputs=[y])
        wp.launch(total, N, inputs=[y], outputs=[loss])
    tape.backward(loss)  #!
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    x.grad.zero_()
"""),
    ],
    "gradient read after zeroing": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    tape.zero()  #!
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
        host("""
def clear(a):
    a.grad.zero_()  #!
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
clear(x)
wp.launch(descend, N, inputs=[x, x.grad])
"""),
    ],
    "view of a gradient kept across zeroing": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    g = x.grad.numpy()
    tape.zero()  #!
    x.assign(x.numpy() - 0.1 * g)
"""),
    ],
    "gradient read before backward": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    g = x.grad.numpy().copy()  #!
    x.grad.zero_()
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * g)
"""),
        host("""
slope = wp.zeros(N, dtype=float)
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    wp.copy(slope, x.grad)  #!
    x.grad.zero_()
    tape.backward(loss)
    wp.launch(descend, N, inputs=[x, slope])
"""),
    ],
    "gradient kept for the next iteration": [
        host("""
g = np.zeros(N)
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * g)
    g = x.grad.numpy().copy()  #!
    tape.zero()
"""),
        host("""
class Fit:
    def __init__(self):
        self.g = np.zeros(N)

    def step(self):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
        change = np.clip(self.g, -1.0, 1.0)
        self.g = x.grad.numpy().copy()  #!
        x.assign(x.numpy() - 0.1 * change)
        x.grad.zero_()

fit = Fit()
for it in range(10):
    fit.step()
"""),
        host("""
class Fit:
    def __init__(self):
        self.seen = {"slope": [np.zeros(N)]}

    def move(self):
        last = self.seen["slope"][-1]
        x.assign(x.numpy() - 0.1 * last)  #!

fit = Fit()
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    fit.move()
    fit.seen["slope"].append(x.grad.numpy().copy())
    tape.zero()
"""),
    ],
    "copy that carries a stale gradient": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.copy(y, x)  #!
        wp.launch(total, N, inputs=[y], outputs=[loss])
    x.grad.zero_()
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
    ],
    "gradient changed between backward calls that add up": [
        host("""
@wp.kernel
def shrink(g: wp.array(dtype=float), by: float):
    i = wp.tid()
    g[i] = g[i] * by
for it in range(10):
    x.grad.zero_()
    for part in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
        wp.launch(shrink, N, inputs=[x.grad, 0.25])  #!
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
        host("""
for it in range(10):
    for part in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
        g = x.grad.numpy()
        g /= 4.0  #!
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    x.grad.zero_()
"""),
    ],
    "gradient added up that adds up by itself": [
        host("""
for it in range(10):
    x.grad.zero_()
    whole = np.zeros(N)
    for part in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
        whole += x.grad.numpy()  #!
    x.assign(x.numpy() - 0.1 * whole)
"""),
        host("""
def slope(part):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    return x.grad.numpy().copy()

for it in range(10):
    whole = np.zeros(N)
    for part in range(4):
        s = slope(part)
        whole = whole + s  #!
    x.assign(x.numpy() - 0.1 * whole)
    x.grad.zero_()
"""),
    ],
    "gradient of an array that is not used any more": [
        host("""
from warp.optim import Adam
p = vec()
adam, slopes = Adam([p], lr=0.1), [p.grad]
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[p], outputs=[loss])
    tape.backward(loss)
    adam.step(slopes)  #!
    p = wp.array(np.abs(p.numpy()), dtype=float, requires_grad=True)
"""),
    ],
    "part of a state's adjoint handed on": [
        host("""
@wp.kernel
def both(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = a[i] * b[i]
    d[i] = a[i] + b[i] * b[i]
kept = [(np.ones(N), np.ones(N)) for _ in range(5)]
carried = None
for s in reversed(range(5)):
    place, speed, place_after, speed_after = vec(), vec(), vec(), vec()
    place.assign(kept[s][0])
    speed.assign(kept[s][1])
    tape = wp.Tape()
    with tape:
        wp.launch(both, N, inputs=[place, speed], outputs=[place_after, speed_after])
        if carried is None:
            wp.launch(total, N, inputs=[place_after], outputs=[loss])
    if carried is None:
        tape.backward(loss)
    else:
        tape.backward(grads={place_after: carried})  #!
    carried = wp.clone(place.grad)
"""),
    ],
    "seed from before the forward pass": [
        host("""
@wp.kernel
def residual(y: wp.array(dtype=float), r: wp.array(dtype=float)):
    i = wp.tid()
    r[i] = y[i] - 1.0
r = wp.zeros(N, dtype=float)
for it in range(10):
    wp.launch(residual, N, inputs=[y], outputs=[r])  #!
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[x], outputs=[y])
    tape.backward(grads={y: r})
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
        host("""
for it in range(10):
    seed = wp.array(2.0 * (y.numpy() - 1.0), dtype=float)  #!
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[x], outputs=[y])
    tape.backward(grads={y: seed})
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "tape entered again without reset": [
        host("""
tape = wp.Tape()
for it in range(10):
    loss.zero_()
    with tape:  #!
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "backward twice on one recording": [
        host("""
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
    wp.launch(total, N, inputs=[x], outputs=[y])
tape.backward(loss)
tape.backward(y)  #!
"""),
    ],
    "retain_grad on an array that is written more than once": [
        host("""
shared = wp.zeros(N, dtype=float, requires_grad=True, retain_grad=True)  #!
with wp.Tape() as tape:
    wp.launch(double, N, inputs=[x], outputs=[shared])
    wp.launch(double, N, inputs=[x], outputs=[shared])
    wp.launch(total, N, inputs=[shared], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "work after the loss inside the tape": [
        host("""
with wp.Tape() as tape:
    wp.launch(double, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
    wp.launch(double, N, inputs=[z], outputs=[y])  #!
tape.backward(loss)
"""),
    ],
    "a tape a step, with state carried on": [
        host("""
for it in range(10):
    state = x
    for step in range(20):
        after = vec()
        loss.zero_()
        with wp.Tape() as tape:  #!
            wp.launch(square, N, inputs=[state], outputs=[after])
            wp.launch(total, N, inputs=[after], outputs=[loss])
        tape.backward(loss)
        state = after
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    x.grad.zero_()
"""),
    ],
    "part of the forward pass before the tape": [
        host("""
states = [x] + [vec() for _ in range(30)]
for it in range(10):
    loss.zero_()
    for t in range(20):
        wp.launch(square, N, inputs=[states[t]], outputs=[states[t + 1]])
    with wp.Tape() as tape:  #!
        for t in range(20, 30):
            wp.launch(square, N, inputs=[states[t]], outputs=[states[t + 1]])
        wp.launch(total, N, inputs=[states[-1]], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "tape emptied while it records": [
        host("""
tape = wp.Tape()
for it in range(10):
    with tape:
        a = x
        for k in range(6):
            if k % 3 == 0:
                tape.reset()  #!
            b = vec()
            wp.launch(square, N, inputs=[a], outputs=[b])
            a = b
        wp.launch(total, N, inputs=[a], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    tape.reset()  #!
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "seed of ones for a mean": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones_like(y)})  #!
print("mse", np.mean(y.numpy()))
"""),
    ],
    "loss and seeds together": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss=loss, grads={y: wp.ones(N, dtype=float)})  #!
"""),
    ],
    "seed array that backward consumes": [
        host("""
out = wp.zeros(N, dtype=float)
seed = wp.ones(N, dtype=float)
for it in range(10):
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[x], outputs=[out])
    tape.backward(grads={out: seed})  #!
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    x.grad.zero_()
"""),
    ],
    "backward without a seed": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
tape.backward()  #!
"""),
    ],
    "random draw without a seed": [
        host("""
for it in range(10):
    x.assign(np.random.rand(N))  #!
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
"""),
        host("""
import time
@wp.kernel
def noisy(seed: int, a: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, a[wp.tid()] * wp.randf(wp.rand_init(seed, wp.tid())))
for it in range(10):
    with wp.Tape() as tape:
        seed = int(time.time_ns() % 1000)
        wp.launch(noisy, N, inputs=[seed, x], outputs=[loss])  #!
    tape.backward(loss)
"""),
        host("""
from numpy.random import default_rng
rng = default_rng()  #!
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "array element multiplied or divided in place": [
        kernel("y[i] *= x[i]  #!"),
        kernel("s = wp.exp(x[i])\ny[i] = y[i] / s  #!"),
        kernel("y[i] = 0.5 * y[i] * x[i]  #!"),
        kernel(
            "shade(x, y, i)",
            before="@wp.func\ndef shade(a: wp.array(dtype=float), b: wp.array(dtype=float), j: int):\n"
            "    b[j] *= wp.sin(a[j])  #!",
        ),
        kernel(
            "p.v[i] /= x[i]  #!\ny[i] = p.v[i]",
            before="@wp.struct\nclass P:\n    v: wp.array(dtype=float)\n",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), p: P",
        ),  # fmt: skip
        kernel(
            "v[i].x *= x[i]  #!\ny[i] = v[i].x",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), v: wp.array(dtype=wp.vec2)",
        ),  # fmt: skip
    ],
    "component of a local assigned again": [
        kernel("v = wp.vec2(x[i], 0.0)\nv[0] = v[0] + 1.0  #!\ny[i] = v[0]"),
        kernel("v = wp.vec3()\nv[0] = x[i]\nv[0] = wp.sin(x[i])  #!\ny[i] = v[0]"),
        kernel(
            "q = w[i]\nq.x = x[i]  #!\ny[i] = q.x",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), w: wp.array(dtype=wp.quat)",
        ),  # fmt: skip
        kernel("m = wp.mat22(x[i], 0.0, 0.0, 1.0)\nm[0, 0] = x[i] * x[i]  #!\ny[i] = m[0, 0]"),
    ],
    "value carried through a dynamic loop": [
        kernel(
            "p = float(1.0)\nfor k in range(n):  #!\n    p = p * x[k]\ny[i] = p",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), n: int",
        ),  # fmt: skip
        kernel("s = float(0.0)\nfor k in range(x.shape[0]):  #!\n    s += x[k]\ny[i] = s * s"),
        kernel("p = float(1.0)\nfor k in range(17):  #!\n    p *= x[k]\ny[i] = p"),
        kernel(
            "a = float(0.0)\nb = float(1.0)\nfor k in range(count[i]):  #!\n    a = wp.sin(b)\n    b = x[k] + a\ny[i] = a",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), count: wp.array(dtype=int)",
        ),  # fmt: skip
    ],
    "while loop over array elements": [
        kernel("s = float(0.0)\nk = int(0)\nwhile k < 4:  #!\n    s += x[k] * x[k]\n    k = k + 1\ny[i] = s"),
    ],
    "break in a differentiated loop": [
        kernel("s = float(0.0)\nfor k in range(4):\n    if x[k] > 1.0:\n        break  #!\n    s += x[k]\ny[i] = s"),
    ],
    "continue in a dynamic loop": [
        kernel(
            "p = float(1.0)\nfor k in range(n):\n    if k == 2:\n        continue  #!\n    p = p * x[k]\ny[i] = p",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), n: int",
        ),  # fmt: skip
    ],
    "derivative at a singular point": [
        kernel("y[i] = wp.sqrt(x[i] * x[i] + x[0] * x[0])  #!"),
        kernel(
            "d = p[i] - p[0]\nr2 = wp.dot(d, d)\ny[i] = wp.pow(r2, 0.5)  #!",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), p: wp.array(dtype=wp.vec3)",
        ),  # fmt: skip
        kernel("d = x[i] - x[0]\ny[i] = 1.0 / d  #!"),
        kernel("d = x[i] - x[0]\ny[i] = (d * d) ** 0.5  #!"),
    ],
    "wp.where with a branch that can overflow": [
        kernel("y[i] = wp.where(x[i] > 0.0, 1.0, wp.exp(x[i]))  #!"),
        kernel("r = wp.sqrt(x[i])\ny[i] = wp.where(x[i] > 0.0, r, 0.0)  #!"),
        kernel("y[i] = wp.where(x[i] != 0.0, 1.0 / x[i], 0.0)  #!"),
    ],
    "piecewise constant operation": [
        kernel("y[i] = wp.round(x[i])  #!"),
        kernel("b = int(x[i] * 10.0)  #!\nwp.atomic_add(y, b, 1.0)"),
    ],
    "custom gradient that assigns": [
        kernel(
            "v = x[i]\ny[i] = f(v) + 5.0 * v",
            before="@wp.func\ndef f(a: float):\n    return a * a\n\n@wp.func_grad(f)\ndef g(a: float, adj: float):\n"
            "    wp.adjoint[a] = 2.0 * a * adj  #!",
        ),
    ],
    "custom gradient that gives nothing": [
        kernel(
            "y[i] = f(x[i])",
            before="@wp.func\ndef f(a: float):\n    return a * a\n\n@wp.func_grad(f)\n"
            "def g(a: float, adj: float):  #!\n    pass",
        ),
    ],
    "custom gradient": [
        kernel(
            "y[i] = f(x[i])",
            before="from warp import func, func_grad\n@func\ndef f(a: float):\n    return a * a\n\n@func_grad(f)\n"
            "def g(a: float, adj: float):\n    wp.adjoint[a] += 3.0 * a * adj  #!",
        ),
    ],
    "atomic counter used as an index": [
        kernel(
            "slot = wp.atomic_add(c, 0, 1)  #!\ny[slot] = x[i]",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), c: wp.array(dtype=int)",
        ),  # fmt: skip
        kernel(
            "y[ticket(c)] = x[i]",
            before="@wp.func\ndef ticket(c: wp.array(dtype=int)):\n    return wp.atomic_add(c, 0, 1)  #!",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), c: wp.array(dtype=int)",
        ),
    ],
    "wp.frac": [kernel("y[i] = wp.frac(x[i])  #!"), kernel("f = wp.frac(2.0 * x[i])  #!\ny[i] = f * f")],
    "conditional expression on array elements": [kernel("y[i] = x[i] if i < 2 else x[0]  #!")],
    "native snippet without an adjoint": [
        kernel(
            "y[i] = f(x[i])",
            before='text = "return a * a;"\n@wp.func_native(text)  #!\ndef f(a: float) -> float: ...\n',
        ),
    ],
}

HARMLESS = {
    "a launch onto its own input": [
        host("""
states = [vec(), *[vec() for _ in range(20)]]
with wp.Tape() as tape:
    for t in range(20):
        wp.launch(square, N, inputs=[states[t]], outputs=[states[t + 1]])
    wp.launch(total, N, inputs=[states[20]], outputs=[loss])
tape.backward(loss)
"""),
        host("""
track = wp.zeros(2 * N, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[track[:N]], outputs=[track[N:]])
    wp.launch(total, N, inputs=[track[N:]], outputs=[loss])
tape.backward(loss)
"""),  # two halves of one array
        host("""
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
wp.launch(square, N, inputs=[x], outputs=[x])
tape.zero()
"""),  # on no tape
    ],
    "write after read": [
        host("""
with wp.Tape() as tape:
    wp.launch(double, N, inputs=[x], outputs=[y])
    wp.launch(double, N, inputs=[y], outputs=[x])
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
"""),  # the reads are linear
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[x], outputs=[y])
        wp.launch(total, N, inputs=[y], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),  # written after backward
        host("""
states = [vec() for _ in range(21)]
with wp.Tape() as tape:
    for t in range(20):
        wp.launch(square, N, inputs=[states[t]], outputs=[states[t + 1]])
    wp.launch(total, N, inputs=[states[20]], outputs=[loss])
tape.backward(loss)
"""),
        host("""
@wp.kernel
def step(h: wp.array2d(dtype=float), t: int):
    i = wp.tid()
    h[t + 1, i] = h[t, i] * h[t, i]
h = wp.zeros((21, N), dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for t in range(20):
        wp.launch(step, N, inputs=[h, t])
tape.backward(grads={h: wp.ones((21, N), dtype=float)})
"""),  # one array, a row a step
    ],
    "write between tape and backward": [
        host("""
with wp.Tape() as tape:
    wp.launch(double, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
x.zero_()
tape.backward(loss)
"""),
    ],
    "NumPy write into a recorded array": [
        host("""
view = y.numpy()
with wp.Tape() as tape:
    view[0] = 1.0
    wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
values = x.numpy()
values -= 0.1 * x.grad.numpy()
"""),
    ],
    "two states become one": [
        host("""
states = [vec() for _ in range(3)]
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[states[0]], outputs=[states[1]])
tape.backward(grads={states[1]: wp.ones(N, dtype=float)})
states[0], states[1] = states[1], states[0]
states[2] = vec()
"""),
    ],
    "read and overwritten in one kernel": [
        kernel("x[i] = x[i] + 1.0\ny[i] = x[i] * x[i]"),
        kernel("x[i] = 2.0\ny[i] = x[i] * x[i]"),
        kernel("y[i] = x[i] * x[i]"),
    ],
    "accumulator reset inside the tape": [
        host("""
with wp.Tape() as tape:
    loss.zero_()
    y.zero_()
    wp.launch(gather, N, inputs=[x], outputs=[y])
    wp.launch(gather, N, inputs=[z], outputs=[y])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        host("""
@wp.kernel
def blank(f: wp.array(dtype=float)):
    f[wp.tid()] = 0.0
with wp.Tape() as tape:
    for step in range(10):
        wp.launch(blank, N, inputs=[y])
        wp.launch(gather, N, inputs=[x], outputs=[y])
        wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "array without requires_grad on the path": [
        host("""
meter = wp.zeros(N, dtype=float)
target = wp.zeros(N, dtype=float)
marks = wp.zeros(N, dtype=int)
@wp.kernel
def cost(a: wp.array(dtype=float), t: wp.array(dtype=float), m: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    d = a[i] - t[i]
    wp.atomic_add(out, m[i], d * d)
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[meter])
    wp.launch(cost, N, inputs=[x, target, marks], outputs=[loss])
tape.backward(loss)
print(meter.numpy())
"""),
    ],
    "requires_grad switched on late": [
        host("""
table = wp.zeros((2, 2), dtype=float)
table.requires_grad = True
flat = table.flatten()
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[flat], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "backward disabled": [
        host("""
meter = wp.zeros(N, dtype=float)
@wp.kernel(enable_backward=False)
def look(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * a[i]
@wp.kernel(enable_backward=True)
def other(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * a[i]
with wp.Tape() as tape:
    wp.launch(other, N, inputs=[x], outputs=[y])
    wp.launch(look, N, inputs=[y], outputs=[meter])
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "operation that no tape records": [
        host("""
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
wp.utils.array_sum(x, out=loss)
wp.launch(descend, N, inputs=[x, x.grad], record_tape=False)
"""),
    ],
    "loss computed outside the tape": [
        host("""
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
wp.launch(total, N, inputs=[x], outputs=[z])
tape.backward(loss)
wp.launch(total, N, inputs=[x], outputs=[loss])
"""),
    ],
    "loss not on the tape": [
        host("""
from somewhere import simulate
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    simulate(y, loss)
tape.backward(loss)
"""),
    ],
    "round trip through NumPy inside the tape": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
    print(y.numpy().max())
    seed = wp.array(np.arange(N), dtype=float)
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
x = wp.array(x.numpy() - 0.1 * x.grad.numpy(), dtype=float, requires_grad=True)
"""),
    ],
    "another framework inside the tape": [
        host("""
import torch
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
tape.backward(loss)
g = wp.to_torch(x.grad)
"""),
    ],
    "gradient never zeroed": [
        host("""
for it in range(10):
    loss.zero_()
    for batch in range(4):
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    x.grad.zero_()
"""),
        host("""
for it in range(10):
    x.grad.zero_()
    for batch in range(4):
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(batch, np.linalg.norm(x.grad.numpy()))
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
        host("""
for it in range(10):
    p = wp.array(np.ones(N), dtype=float, requires_grad=True)
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[p], outputs=[loss])
    tape.backward(loss)
    print(p.grad.numpy())
"""),
        host("""
@wp.kernel
def update(p: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    p[i] = p[i] - 0.1 * g[i]
    g[i] = 0.0
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    wp.launch(update, N, inputs=[x, x.grad])
"""),
    ],
    "tape.zero() before backward": [
        host("""
tape = wp.Tape()
for it in range(10):
    tape.reset()
    loss.zero_()
    with tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
    ],
    "adjoint of an intermediate array left over": [
        host("""
for it in range(10):
    y.zero_()
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(gather, N, inputs=[x], outputs=[y])
        wp.launch(total, N, inputs=[y], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "gradient read after zeroing": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    g = x.grad.numpy().copy()
    tape.zero()
    x.assign(x.numpy() - 0.1 * g)
"""),
    ],
    "view of a gradient kept across zeroing": [
        host("""
g = x.grad.numpy()
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * g)
    tape.zero()
"""),
    ],
    "gradient read before backward": [
        host("""
for it in range(10):
    loss.zero_()
    print("last", x.grad.numpy().copy())
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "gradient kept for the next iteration": [
        host("""
before = np.zeros(N)
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    g = x.grad.numpy().copy()
    x.assign(x.numpy() - 0.1 * (g + 0.5 * before))
    before = x.grad.numpy().copy()
    tape.zero()
"""),
        host("""
p = np.ones(N)
for it in range(10):
    x = wp.array(p, dtype=float, requires_grad=True)
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    print(it, p)
    p = p - 0.1 * x.grad.numpy()
"""),
        host("""
g = np.zeros(N)
for it in range(10):
    x.assign(x.numpy() - 0.1 * g)
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    g = x.grad.numpy().copy()
    tape.zero()
"""),
    ],
    "copy that carries a stale gradient": [
        host("""
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(total, N, inputs=[y], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "gradient changed between backward calls that add up": [
        host("""
@wp.kernel
def shrink(g: wp.array(dtype=float), by: float):
    i = wp.tid()
    g[i] = g[i] * by
for it in range(10):
    x.grad.zero_()
    for part in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
    wp.launch(shrink, N, inputs=[x.grad, 0.25])
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
    ],
    "gradient added up that adds up by itself": [
        host("""
for it in range(10):
    whole = np.zeros(N)
    for part in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
        whole += x.grad.numpy()
        tape.zero()
    x.assign(x.numpy() - 0.1 * whole)
"""),
        host("""
speed = np.zeros(N)
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    speed *= 0.9
    speed += x.grad.numpy()
    x.assign(x.numpy() - 0.1 * speed)
    x.grad.zero_()
"""),
    ],
    "gradient of an array that is not used any more": [
        host("""
from warp.optim import Adam
p = vec()
adam, slopes = Adam([p], lr=0.1), [p.grad]
for it in range(10):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[p], outputs=[loss])
    tape.backward(loss)
    adam.step(slopes)
    p.assign(np.abs(p.numpy()))
    tape.zero()
"""),
        host("""
for it in range(10):
    p = vec()
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[p], outputs=[loss])
    tape.backward(loss)
    print(p.grad.numpy())
"""),
    ],
    "part of a state's adjoint handed on": [
        host("""
@wp.kernel
def both(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = a[i] * b[i]
    d[i] = a[i] + b[i] * b[i]
kept = [(np.ones(N), np.ones(N)) for _ in range(5)]
carried = None
for s in reversed(range(5)):
    place, speed, place_after, speed_after = vec(), vec(), vec(), vec()
    place.assign(kept[s][0])
    speed.assign(kept[s][1])
    tape = wp.Tape()
    with tape:
        wp.launch(both, N, inputs=[place, speed], outputs=[place_after, speed_after])
        if carried is None:
            wp.launch(total, N, inputs=[place_after], outputs=[loss])
    if carried is None:
        tape.backward(loss)
    else:
        tape.backward(grads={place_after: carried[0], speed_after: carried[1]})
    carried = wp.clone(place.grad), wp.clone(speed.grad)
"""),
    ],
    "seed from before the forward pass": [
        host("""
@wp.kernel
def residual(y: wp.array(dtype=float), r: wp.array(dtype=float)):
    i = wp.tid()
    r[i] = y[i] - 1.0
r = wp.zeros(N, dtype=float)
for it in range(10):
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[x], outputs=[y])
    wp.launch(residual, N, inputs=[y], outputs=[r])
    tape.backward(grads={y: r})
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "tape entered again without reset": [
        host("""
tape = wp.Tape()
with tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
with tape:
    wp.launch(total, N, inputs=[y], outputs=[loss])
tape.backward(loss)
"""),
        host("""
for it in range(10):
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    tape.zero()
"""),
    ],
    "backward twice on one recording": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
for row in range(3):
    tape.backward(grads={y: wp.ones(N, dtype=float)})
    print(x.grad.numpy())
    tape.zero()
"""),
    ],
    "retain_grad on an array that is written more than once": [
        host("""
shown = wp.zeros(N, dtype=float, requires_grad=True, retain_grad=True)
with wp.Tape() as tape:
    wp.launch(double, N, inputs=[x], outputs=[shown])
    wp.launch(total, N, inputs=[shown], outputs=[loss])
tape.backward(loss)
"""),
    ],
    "work after the loss inside the tape": [
        host("""
with wp.Tape() as tape:
    wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, N, inputs=[x, x.grad])
"""),
    ],
    "a tape a step, with state carried on": [
        host("""
for it in range(10):
    for step in range(20):
        state, after = wp.array(np.ones(N) * step, dtype=float, requires_grad=True), vec()
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, inputs=[state], outputs=[after])
            wp.launch(total, N, inputs=[after], outputs=[loss])
            wp.launch(total, N, inputs=[x], outputs=[loss])
        tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    x.grad.zero_()
"""),
    ],
    "part of the forward pass before the tape": [
        host("""
start = wp.zeros(N, dtype=float)
for it in range(10):
    loss.zero_()
    wp.launch(square, N, inputs=[start], outputs=[y])
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[y], outputs=[z])
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""),
    ],
    "tape emptied while it records": [
        host("""
tape = wp.Tape()
for it in range(10):
    tape.reset()
    with tape:
        a = x
        for k in range(6):
            if k == 0:
                tape.reset()
            b = vec()
            wp.launch(square, N, inputs=[a], outputs=[b])
            a = b
        wp.launch(total, N, inputs=[a], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
"""),
    ],
    "seed of ones for a mean": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.full(N, 1.0 / N, dtype=float)})
print("mse", y.numpy().mean())
"""),
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones(N, dtype=float)})
print("sum", y.numpy().sum())
"""),
    ],
    "loss and seeds together": [
        host("tape = wp.Tape()\nwith tape:\n    wp.launch(total, N, [x], [loss])\ntape.backward(loss)")
    ],
    "seed array that backward consumes": [
        host("""
seed = wp.ones(N, dtype=float)
for it in range(10):
    with wp.Tape() as tape:
        wp.launch(square, N, inputs=[x], outputs=[y])
    tape.backward(grads={y: seed})
    tape.zero()
"""),
    ],
    "backward without a seed": [
        host("""
with wp.Tape() as tape:
    wp.launch(square, N, inputs=[x], outputs=[y])
y.grad.fill_(1.0)
tape.backward()
"""),
    ],
    "random draw without a seed": [
        host("""
rng = np.random.default_rng(3)
for it in range(10):
    x.assign(rng.normal(size=N))
    with wp.Tape() as tape:
        wp.launch(total, N, inputs=[x], outputs=[loss])
    tape.backward(loss)
"""),
        host(
            "np.random.seed(1)\nfor it in range(3):\n    x.assign(np.random.rand(N))\n    with wp.Tape() as tape:\n"
            "        wp.launch(total, N, inputs=[x], outputs=[loss])\n    tape.backward(loss)"
        ),  # fmt: skip
    ],
    "array element multiplied or divided in place": [
        kernel("s = x[i]\ns *= x[i]\ny[i] = s"),
        kernel("y[i] *= 0.5"),
        kernel("v = wp.vec2(x[i], x[i])\nv *= x[i]\ny[i] = v[0]"),
        kernel("y[i] = y[i] + x[i]"),
        kernel("y[i] = x[i] * x[i + 1]"),
    ],
    "component of a local assigned again": [
        kernel("v = wp.vec3()\nv[0] = x[i]\nv[1] = x[i]\ny[i] = v[0]"),
        kernel("v = wp.vec2(0.0, 0.0)\nv[0] = x[i]\ny[i] = v[0]"),
        kernel(
            "v = wp.vec2(x[i], 0.0)\nv[0] = 2.0 * x[i]\ny[i] = v[0]",
            before='wp.set_module_options({"enable_vector_component_overwrites": True})',
        ),  # fmt: skip
    ],
    "value carried through a dynamic loop": [
        kernel("p = float(1.0)\nfor k in range(N):\n    p = p * x[k]\ny[i] = p"),
        kernel(
            "s = float(0.0)\nfor k in range(n):\n    s += x[k] * x[k]\ny[i] = 3.0 * s",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), n: int",
        ),  # fmt: skip
        kernel(
            "for k in range(n):\n    t = x[k]\n    t = t * t\n    wp.atomic_add(y, i, t)",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), n: int",
        ),  # fmt: skip
        kernel(
            "c = int(1)\nfor k in range(n):\n    c = c * 2\ny[i] = x[i]",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), n: int",
        ),  # fmt: skip
        kernel(
            "p = float(1.0)\nfor k in range(30):\n    p = p * x[k]\ny[i] = p",
            before='wp.set_module_options({"max_unroll": 32})',
        ),  # fmt: skip
    ],
    "while loop over array elements": [kernel("k = int(0)\nwhile k < 4:\n    k = k + 1\ny[i] = x[i]")],
    "break in a differentiated loop": [
        kernel("j = int(0)\nfor k in range(4):\n    if k == 2:\n        break\n    j = k\ny[i] = x[i]"),
    ],
    "continue in a dynamic loop": [
        kernel("s = float(0.0)\nfor k in range(4):\n    if k == 1:\n        continue\n    s += x[k]\ny[i] = s"),
    ],
    "derivative at a singular point": [
        kernel("y[i] = wp.sqrt(x[i] * x[i] + 1.0e-6)"),
        kernel("y[i] = wp.sqrt(float(i))"),
        kernel("y[i] = wp.sqrt(wp.max(x[i], 0.001))"),
        kernel(
            "d = p[i] - p[0]\nl = wp.dot(d, d)\nif l > 0.0:\n    y[i] = wp.sqrt(l)",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), p: wp.array(dtype=wp.vec3)",
        ),  # fmt: skip
        kernel(
            "y[i] = wp.length(p[i]) / 3.0",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), p: wp.array(dtype=wp.vec3)",
        ),  # fmt: skip
        kernel("y[i] = x[i] / (1.0 + x[i] * x[i])"),
    ],
    "wp.where with a branch that can overflow": [
        kernel("y[i] = wp.where(x[i] > 0.0, x[i], 0.1 * x[i])"),
        kernel("y[i] = wp.where(x[i] > 0.0, 1.0, wp.exp(wp.min(x[i], 0.0)))"),
        kernel("s = float(0.0)\nif x[i] > 0.0:\n    s = wp.sqrt(x[i])\ny[i] = s"),
    ],
    "piecewise constant operation": [
        kernel("c = int(x[i] * 10.0)\ny[i] = y[c] + x[i]"),
        kernel("j = int(i / 2)\ny[i] = x[j]"),
    ],
    "custom gradient that assigns": [
        kernel(
            "y[i] = f(x[i])",
            before="@wp.func\ndef f(a: float):\n    return a * a\n\n@wp.func_grad(f)\ndef g(a: float, adj: float):\n"
            "    t = 2.0 * a\n    wp.adjoint[a] += t * adj",
        ),
    ],
    "custom gradient that gives nothing": [kernel("y[i] = x[i]")],
    "custom gradient": [kernel("y[i] = x[i]")],
    "atomic counter used as an index": [
        kernel(
            "y[ticket(c)] = x[i]",
            before="@wp.func\ndef ticket(c: wp.array(dtype=int)):\n    return wp.atomic_add(c, 0, 1)\n\n"
            "@wp.func_replay(ticket)\ndef again(c: wp.array(dtype=int)):\n    return c[1]",
            arguments="x: wp.array(dtype=float), y: wp.array(dtype=float), c: wp.array(dtype=int)",
        ),
        kernel("wp.atomic_add(y, 0, x[i])"),
    ],
    "wp.frac": [kernel("y[i] = x[i] - wp.floor(x[i])"), kernel("y[i] = x[i] * wp.frac(float(i))")],
    "conditional expression on array elements": [kernel("y[i] = x[i] * (2.0 if i < 2 else 1.0)")],
    "native snippet without an adjoint": [
        kernel(
            "y[i] = f(x[i])",
            before='@wp.func_native("return a * a;", adj_snippet="adj_a += 2 * a * adj_ret;")\n'
            "def f(a: float) -> float: ...\n",
        ),
    ],
}
