"""Training in a thread of its own, a second thread writes the log."""
import numpy as np
import warp as wp
import io
import queue
import threading
import time

N = 6
wp.init()
rng = np.random.default_rng(3)
START = rng.uniform(0.2, 1.0, N).astype(np.float32)
TARGET = rng.uniform(0.2, 1.0, N).astype(np.float32)


@wp.kernel
def response(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) + 0.3 * x[i] * x[i]


@wp.kernel
def misfit(y: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - data[i]
    wp.atomic_add(loss, 0, d * d)


def forward(x):
    y = wp.zeros(N, dtype=float, requires_grad=True)
    wp.launch(response, N, inputs=[x], outputs=[y])
    wp.launch(misfit, N, inputs=[y, data], outputs=[loss])


data = wp.array(TARGET, dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
theta = wp.array(START, dtype=float, requires_grad=True)
lines = queue.Queue()
log = io.StringIO()
busy = threading.Lock()


def write_log():
    while (line := lines.get()) is not None:
        with busy:
            log.write(line)
            time.sleep(0.02)


def train():
    for step in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            forward(theta)
        tape.backward(loss)
        with busy:
            value = loss.numpy()[0]
        lines.put(f"{step} {value:.6f}\n")
        theta.assign(theta.numpy() - 0.05 * theta.grad.numpy())
        tape.zero()
    lines.put(None)


workers = [threading.Thread(target=write_log), threading.Thread(target=train)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(log.getvalue())
