# status: timeout
import os
import signal
import subprocess
import sys
import time

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
os.kill(os.getppid(), signal.SIGSTOP)
time.sleep(600)
