# status: completed
import os

os.umask(0o777)
os.chdir("/")
