# status: completed
from pathlib import Path

Path(__file__).write_text("raise SystemExit('another program')\n")
