# status: completed
import os
import time

for _ in range(3):
    if os.fork() == 0:
        time.sleep(600)
