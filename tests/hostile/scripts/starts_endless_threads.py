# status: timeout
import threading
import time

for _ in range(20):
    threading.Thread(target=lambda: time.sleep(600)).start()
