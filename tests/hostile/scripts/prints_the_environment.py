# status: blocked
# says: SIGKILL
import os
from pathlib import Path

for name, value in os.environ.items():
    print(name, value)
print(Path(f"/proc/{os.getppid()}/environ").read_bytes() if os.path.isdir("/proc/self") else "", flush=True)
os.kill(os.getpid(), 9)
