import numpy as np


def initial(cfg):
    x = -2.0 * np.arange(1, cfg.cars + 1) + 0.3 * np.sin(np.arange(cfg.cars))
    v = 0.9 + 0.1 * np.cos(1.7 * np.arange(cfg.cars))
    return x, v


def leader(cfg, k):
    t = cfg.dt * k
    return 1.1 * t + 0.4 * np.sin(1.3 * t)


def recorded_platoon(cfg, law=(1.3, 1.1, 1.9)):
    """The platoon as a law unknown to the fit would have driven it."""
    x, v = initial(cfg)
    vmax, gain, comfort = law
    for k in range(cfg.steps):
        ahead = np.concatenate([[leader(cfg, k)], x[:-1]])
        want = vmax * (np.tanh(ahead - x - comfort) + np.tanh(comfort))
        v = v + cfg.dt * gain * (want - v)
        x = x + cfg.dt * v
    return x, v
