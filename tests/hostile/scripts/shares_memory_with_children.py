# status: completed
# limits: MEMORY_GB=0.5
# timeout: 20
"""Four forks share 200 MB: together they use 200 MB, not 1 GB. No limit is passed."""

import os
import time

shared = bytearray(b"x") * 200_000_000
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        time.sleep(1.0)
        os.kill(os.getpid(), 9)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
