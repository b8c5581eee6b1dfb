# status: timeout
import atexit
import time

atexit.register(time.sleep, 600)
