# status: completed
# cwd: inner
import os
import shutil

shutil.rmtree(os.getcwd())
