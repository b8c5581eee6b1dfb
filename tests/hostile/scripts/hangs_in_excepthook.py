# status: timeout
import sys
import time

sys.excepthook = lambda *_: time.sleep(600)
raise ValueError("and then nothing")
