# status: blocked
# says: SIGSEGV
import ctypes

print("about to read address 0", flush=True)
ctypes.string_at(0)
