# status: blocked
# says: SIGKILL
import os
from pathlib import Path

folder = max(Path(".warp-debug-gradients/runs").iterdir())
(folder / "trace.json").write_text("[" * 1_000_000)
os.kill(os.getpid(), 9)
