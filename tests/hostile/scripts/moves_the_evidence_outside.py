# error: evidence_lost
# leaves: elsewhere/
# says: leads out of the workspace
import os

os.makedirs("../elsewhere")
os.rename(".warp-debug-gradients", "../elsewhere/evidence")
os.symlink("../elsewhere/evidence", ".warp-debug-gradients")
