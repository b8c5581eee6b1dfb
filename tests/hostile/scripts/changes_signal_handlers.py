# status: completed
import signal


def raises(*_):
    raise RuntimeError("a signal")


for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1):
    signal.signal(number, raises)
