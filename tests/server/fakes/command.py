"""The command line with the stand-in probe: `python command.py run-repro wrong.py`."""

from pathlib import Path

from warp_debug_gradients import cli, worker

worker.BOOTSTRAP = Path(__file__).with_name("probe.py")
cli.main()
