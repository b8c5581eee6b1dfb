# status: blocked
# says: 7
import os

os._exit(7)
