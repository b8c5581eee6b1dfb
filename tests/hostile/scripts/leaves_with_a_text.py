# status: blocked
# says: SystemExit
import sys

sys.exit("\x1b[31mno luck")
