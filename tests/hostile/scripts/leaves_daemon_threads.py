# status: completed
import threading
import time


def chat():
    while True:
        print("still here")
        time.sleep(0.001)


for _ in range(5):
    threading.Thread(target=chat, daemon=True).start()
