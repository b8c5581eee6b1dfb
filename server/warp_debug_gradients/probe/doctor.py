"""Run by `doctor` in the user's interpreter: `PYTHON doctor.py JOB.json`. Says what is there, one try each."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder holds names of the standard library (trace.py)

import importlib
import json
import os
import time
from typing import Any, Dict


def look(result: Dict[str, Any]) -> None:
    """Fills `result` step by step, so that what was found before a failure is kept."""
    result["python"] = ".".join(str(n) for n in sys.version_info[:3])
    result["fork"] = hasattr(os, "fork")
    started = time.perf_counter()
    import numpy

    result["numpy"] = numpy.__version__
    wp: Any = importlib.import_module("warp")  # of which nothing is known yet

    result["import_s"] = time.perf_counter() - started
    result["warp_file"] = getattr(wp, "__file__", None)
    result["warp"] = getattr(wp, "__version__", None) or getattr(getattr(wp, "config", None), "version", None)
    wp.config.quiet = True
    wp.init()
    result["devices"] = [f"{device.alias} ({device.name})" for device in wp.get_devices()]
    cache = wp.config.kernel_cache_dir
    result["cache"] = str(cache)
    os.makedirs(cache, exist_ok=True)
    result["cache_writable"] = os.access(cache, os.W_OK)

    @wp.kernel
    def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):  # pyright: ignore[reportInvalidTypeForm, reportUnknownParameterType]
        i = wp.tid()
        y[i] = 2.0 * x[i]

    result["gradients"] = {}
    for device in wp.get_devices():
        started = time.perf_counter()
        x = wp.array([1.0, 2.0], dtype=float, device=device, requires_grad=True)
        y = wp.zeros_like(x)
        with wp.Tape() as tape:
            wp.launch(twice, 2, inputs=[x], outputs=[y], device=device)
        tape.backward(grads={y: wp.ones_like(y)})
        gradient = x.grad.numpy().tolist()
        result["gradients"][str(device)] = {"value": gradient, "seconds": time.perf_counter() - started}


def main(job: Dict[str, Any]) -> None:
    """Writes what was found, and the error that ended the look, if one did."""
    result: Dict[str, Any] = {}
    try:
        look(result)
    except BaseException as error:
        result["error"] = f"{type(error).__name__}: {error}"[:2000]
    with open(job["result"], "w", encoding="utf-8") as stream:
        json.dump(result, stream)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as stream:
        main(json.load(stream))
