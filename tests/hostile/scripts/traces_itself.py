# status: completed
import sys


def trace(frame, event, argument):
    return trace


sys.settrace(trace)
sys.setprofile(lambda *_: None)
