"""Sand transport over a dune; the wind profile is fitted to the observed flux."""
import numpy as np
import warp as wp

STATIONS = 6


@wp.kernel
def flux(wind: wp.array(dtype=float), threshold: wp.array(dtype=float), q: wp.array(dtype=float)):
    s = wp.tid()
    excess = wind[s] - threshold[s]
    creeping = wp.exp(8.0 * excess)
    blown = 1.0 + 8.0 * excess + excess * excess
    q[s] = wp.where(excess > 0.0, blown, creeping)


@wp.kernel
def smooth_misfit(q: wp.array(dtype=float), wind: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    s = wp.tid()
    d = wp.log(q[s] / seen[s])
    wp.atomic_add(loss, 0, d * d)
    if s > 0:
        g = wind[s] - wind[s - 1]
        wp.atomic_add(loss, 0, 0.001 * g * g)


threshold = wp.array(np.linspace(0.2, 0.5, STATIONS), dtype=float)
seen = wp.array([0.2, 1.5, 30.0, 60.0, 20.0, 0.5], dtype=float)
wind = wp.array([0.1, 0.6, 9.0, 13.5, 8.0, 0.3], dtype=float, requires_grad=True)
q = wp.zeros(STATIONS, dtype=float, requires_grad=True)

for it in range(8):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(flux, STATIONS, inputs=[wind, threshold, q])
        wp.launch(smooth_misfit, STATIONS, inputs=[q, wind, seen, loss])
    tape.backward(loss)
    gradient = wind.grad.numpy().copy()
    tape.zero()
    print(it, "loss", loss.numpy()[0], "gradient", gradient)
    wind.assign(wind.numpy() - 0.05 * gradient)
