# status: completed or blocked
import sys

sys.modules.clear()
