# status: blocked
# says: SIGABRT
import os

os.abort()
