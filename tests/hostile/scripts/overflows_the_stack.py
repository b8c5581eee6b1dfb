# status: blocked
# says: SIGSEGV
import ctypes

CALLBACK = ctypes.CFUNCTYPE(None)


@CALLBACK
def again():
    again()


import sys

sys.setrecursionlimit(10**8)
again()
