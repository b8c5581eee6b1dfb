# status: completed
# leaves: outside.txt
"""It may: it runs with the user's rights. What *we* leave is checked."""

from pathlib import Path

Path("../outside.txt").write_text("mine")
