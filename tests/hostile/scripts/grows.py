# status: blocked
# says: its memory grew to
# limits: MEMORY_GB=0.2
# timeout: 20
import time

kept = []
while True:
    kept.append(bytearray(b"x") * 20_000_000)
    time.sleep(0.02)
