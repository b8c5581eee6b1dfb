# status: blocked
# says: SIGKILL
# warp: yes
# timeout: 60
import os

import numpy as np
import warp as wp

x = wp.array(np.ones(4), dtype=float, device="cpu", requires_grad=True)
with wp.Tape():
    wp.clone(x)
    os.kill(os.getpid(), 9)
