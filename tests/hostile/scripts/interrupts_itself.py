# status: blocked
# says: KeyboardInterrupt
raise KeyboardInterrupt
