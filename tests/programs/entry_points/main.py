"""What programs do around their training: each argument names a habit, one of the functions below; then it trains once.

`during` repeats the habits that start processes after every iteration, `fault` cuts the gradient off.
"""

import argparse
import atexit
import concurrent.futures
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys

from trainer.model import train

log = logging.getLogger("force")
each = []  # what is called with every loss


def note(text):
    with open(NOTES, "a") as file:
        file.write(f"{text}\n")


NOTES = os.path.abspath("notes.txt")


def reads():
    """Asks, and decides by itself where nobody answers."""
    print("steps?", end=" ", flush=True)
    assert sys.stdin.readline() == "", "somebody answered"


def asks():
    input("steps? ")


def hooks():
    """Its own handlers; each leaves a line in a file."""

    def unhandled(kind, error, traceback):
        note(f"excepthook {kind.__name__}")

    sys.excepthook = unhandled
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda received, frame: note(f"signal {received}"))
    atexit.register(note, "atexit")
    note("begins")
    each.append(lambda loss: note(f"loss {loss:.3f}"))
    each.append(lambda loss: os.kill(os.getpid(), signal.SIGUSR1))


def logs():
    """Handlers to the standard output and to a file, and lines that look like the answer of a tool."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
    log.addHandler(logging.FileHandler("train.log"))
    print(json.dumps({"verdict": "inconclusive", "causes": []}))
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\x00\xff{")
    each.append(lambda loss: log.info("loss %.3f", loss))


def square(x):
    return x * x


def command():
    done = subprocess.run([sys.executable, "-c", "print(3)"], check=True, stdout=subprocess.PIPE)
    assert done.stdout == b"3\n"


def executor():
    with concurrent.futures.ProcessPoolExecutor(2) as workers:
        assert list(workers.map(square, range(4))) == [0, 1, 4, 9]


def pool(how):
    with multiprocessing.get_context(how).Pool(2) as workers:
        assert workers.map(square, range(4)) == [0, 1, 4, 9]
        workers.close()  # ended with SIGTERM, as `with` does, a worker would run the handler of `hooks` and live on
        workers.join()


def fork():
    pool("fork")


def spawn():
    pool("spawn")


def serves():
    """A helper that runs until it is ended."""
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    atexit.register(helper.kill)


def moves():
    os.makedirs("results", exist_ok=True)
    os.chdir("results")


def shows():
    import matplotlib.pyplot as plt

    plt.plot([1.0, 2.0])
    plt.show()


def exits():
    atexit.register(note, "left")
    each.append(lambda loss: sys.exit(0) if len(losses) == 2 else None)


def raises():
    each.append(lambda loss: 1 / 0 if len(losses) == 2 else None)


losses = []

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="force")
    parser.add_argument("habits", nargs="*")
    parser.add_argument("--rate", type=float, required=True)
    given = parser.parse_args()
    each.append(losses.append)
    for habit in [name for name in given.habits if name not in ("during", "fault")]:
        globals()[habit]()
        if "during" in given.habits and habit in ("command", "executor", "fork", "spawn"):
            each.append(lambda loss, again=globals()[habit]: again())
    train(given.rate, fault="fault" in given.habits, each=lambda loss: [call(loss) for call in each])
