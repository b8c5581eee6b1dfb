# status: timeout
# limits: OUTPUT_MB=0.2
import os

while True:
    os.write(2, b"\x00\xff\x1b" * 10000)
