# error: probe_failed
# says: cannot be read
import json
import os
from pathlib import Path

folder = max(Path(".warp-debug-gradients/runs").iterdir())
(folder / "trace.json").write_text(json.dumps({"status": ["?"], "iterations": 5, "parameters": {"a": []}}))
os.kill(os.getpid(), 9)
