# status: timeout
# says: Time ran out
# timeout: 6
# warp: yes
"""Warp compiles in a temporary folder, which goes with the process that made it. No cache knows this kernel."""

import time

import warp as wp

fresh = wp.constant(float(time.time_ns() % 1000003))


@wp.kernel(module="unique")
def stamp(x: wp.array(dtype=float)):
    x[wp.tid()] = fresh


x = wp.zeros(4, dtype=float)
wp.launch(stamp, 4, inputs=[x])
while True:
    time.sleep(0.1)
