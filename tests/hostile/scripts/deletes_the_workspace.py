# status: completed
# says: no optimizer iteration
import os
import shutil

for name in os.listdir("."):
    if os.path.isdir(name):
        shutil.rmtree(name)
    else:
        os.remove(name)
