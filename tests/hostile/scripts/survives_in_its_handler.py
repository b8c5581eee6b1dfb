# status: timeout
import os
import signal
import time


def go_on(*_):
    print("I stay", flush=True)
    if os.fork() == 0:
        time.sleep(600)


signal.signal(signal.SIGTERM, go_on)
while True:
    time.sleep(0.05)
