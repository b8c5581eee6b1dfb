# status: blocked
# says: SIGKILL
import os
import signal

os.killpg(0, signal.SIGKILL)
