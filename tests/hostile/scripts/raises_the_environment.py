# status: blocked
# says: RuntimeError
import os

raise RuntimeError(dict(os.environ))
