# status: blocked
# says: 3
# warp: yes
# timeout: 60
import sys

import warp as wp

with wp.Tape():
    sys.exit(3)
