# status: blocked
# says: code 9 before it could report
import ctypes

ctypes.CDLL(None)._exit(9)
