# status: blocked
# says: processes, over the limit
# limits: PROCESSES=30
# timeout: 20
"""Every process leaves its group, and starts another when it gets a chance. Bounded in depth and time."""

import os
import time

until = time.monotonic() + 15
for _ in range(7):
    if os.fork() == 0:
        os.setsid()
while time.monotonic() < until:
    time.sleep(0.1)
