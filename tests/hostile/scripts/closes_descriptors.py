# status: completed
import os

os.closerange(0, 256)
