"""The tests share `numeric_losses` and `quality`, which are plain modules of this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
