# status: blocked
# says: SIGKILL
# says: \x1b
import os

os.write(1, bytes(range(256)) + b"\n\x1b]0;owned\x07\x1b[2J\x1b[31mred\n")
os.kill(os.getpid(), 9)
