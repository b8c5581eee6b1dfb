# status: completed
import os
import signal

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    os.kill(os.getppid(), number)
