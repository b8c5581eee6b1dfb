"""Move the stakes of a glacier to where the distances to its fixed points were measured; map coordinates in metres.

The first argument says how: `far` (the default) keeps float32 map coordinates, millions of metres from their origin, where
neighbouring numbers are half a metre apart; `near` takes an origin off first; `double` keeps the coordinates in float64;
`folded` is `near` with |off| instead of its square, at a kink of every stake; `clock` fits the time (seconds since 1970,
in units of 100 s, float32) at which a stake passed the posts of a line, known to a second.
"""

import sys

import numpy as np
import warp as wp

HOW = sys.argv[1] if len(sys.argv) > 1 else "far"
REAL = wp.float64 if HOW == "double" else wp.float32
VEC = wp.vec2d if HOW == "double" else wp.vec2f
STAKES, FIXED = 5, 7
ORIGIN = np.array([612000.0, 5172000.0]) * (0.0 if HOW in ("near", "folded") else 1.0)


@wp.kernel
def misses(
    stake: wp.array(dtype=VEC), fixed: wp.array(dtype=VEC), seen: wp.array2d(dtype=REAL), off: wp.array2d(dtype=REAL)
):
    s, f = wp.tid()
    way = stake[s] - fixed[f]
    off[s, f] = wp.length(way) - seen[s, f]


@wp.kernel
def late(at: wp.array(dtype=REAL), post: wp.array(dtype=REAL), off: wp.array(dtype=REAL)):
    i = wp.tid()
    off[i] = at[i] - post[i]


@wp.kernel
def squares(off: wp.array(dtype=REAL), weight: REAL, loss: wp.array(dtype=REAL)):
    i = wp.tid()
    wp.atomic_add(loss, 0, weight * off[i] * off[i])


@wp.kernel
def folds(off: wp.array(dtype=REAL), weight: REAL, loss: wp.array(dtype=REAL)):
    i = wp.tid()
    wp.atomic_add(loss, 0, weight * wp.abs(off[i]))


rng = np.random.default_rng(4)
true = rng.uniform(-40.0, 40.0, (STAKES, 2))
posts = rng.uniform(-900.0, 900.0, (FIXED, 2))
seen = np.linalg.norm(true[:, None] - posts[None], axis=2)
if HOW == "clock":
    post = np.linspace(1.69e7, 1.69e7 + 40.0, STAKES)
    unknown = wp.array(post + rng.uniform(-6.0, 6.0, STAKES), dtype=REAL, requires_grad=True)
    fixed = wp.array(post, dtype=REAL)
else:
    guess = true if HOW == "folded" else true + rng.uniform(-2.0, 2.0, true.shape)
    unknown = wp.array(guess + ORIGIN, dtype=VEC, requires_grad=True)
    fixed = wp.array(posts + ORIGIN, dtype=VEC)
    target = wp.array(seen, dtype=REAL)

for step in range(4):
    loss = wp.zeros(1, dtype=REAL, requires_grad=True)
    tape = wp.Tape()
    with tape:
        if HOW == "clock":
            off = wp.zeros(STAKES, dtype=REAL, requires_grad=True)
            wp.launch(late, STAKES, inputs=[unknown, fixed], outputs=[off])
        else:
            table = wp.zeros((STAKES, FIXED), dtype=REAL, requires_grad=True)
            wp.launch(misses, (STAKES, FIXED), inputs=[unknown, fixed, target], outputs=[table])
            off = table.flatten()
        wp.launch(folds if HOW == "folded" else squares, off.size, inputs=[off, 1.0 / off.size], outputs=[loss])
    tape.backward(loss)
    slope = unknown.grad.numpy().copy()
    print(f"{step}  loss {loss.numpy()[0]:.6f}")
    unknown.assign(unknown.numpy() - 0.4 * slope)
    tape.zero()
