# status: completed
"""The daemon has no mark in its environment and another name."""

import os
import sys

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [f"innocent {os.getcwd()}", "-c", "import time; time.sleep(600)"], {})
    os.kill(os.getpid(), 9)
os.wait()
