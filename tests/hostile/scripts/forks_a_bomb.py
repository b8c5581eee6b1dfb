# status: blocked
# says: processes, over the limit
# limits: PROCESSES=30
# timeout: 20
"""Bounded, so that the machine survives a failing test."""

import os
import time

until = time.monotonic() + 15
for _ in range(7):
    os.fork()
while time.monotonic() < until:
    time.sleep(0.1)
