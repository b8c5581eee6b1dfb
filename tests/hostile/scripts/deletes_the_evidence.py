# status: completed
# says: no optimizer iteration
import shutil

shutil.rmtree(".warp-debug-gradients")
