# status: blocked
# says: ValueError
raise ValueError("long " * 4_000_000)
