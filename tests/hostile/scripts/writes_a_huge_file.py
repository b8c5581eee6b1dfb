# status: blocked
# says: File too large
# limits: FILE_GB=0.01
import os

try:
    with open("huge.bin", "wb") as file:
        for _ in range(100):
            file.write(bytes(1_000_000))
finally:
    os.remove("huge.bin")
