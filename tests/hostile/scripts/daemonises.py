# status: completed
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        os.chdir("/")
        time.sleep(600)
    os.kill(os.getpid(), 9)
os.wait()
