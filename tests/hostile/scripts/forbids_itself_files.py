# status: blocked
# says: before it could report
import resource

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
