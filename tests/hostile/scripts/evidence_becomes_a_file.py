# error: evidence_lost
# leaves: project/.warp-debug-gradients
# says: cannot be written
import shutil
from pathlib import Path

shutil.rmtree(".warp-debug-gradients")
Path(".warp-debug-gradients").write_text("")
