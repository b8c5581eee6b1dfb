# status: timeout
# says: Time ran out
import time

while True:
    time.sleep(1)
