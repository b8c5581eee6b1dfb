# status: completed
from pathlib import Path

folder = max(Path(".warp-debug-gradients/runs").iterdir())
with (folder / "trace.progress.jsonl").open("a") as file:
    for _ in range(20_000):
        file.write('{"stage": ["?"], "message": {"a": 1}, "done": "x"}\n[]\n{\n')
