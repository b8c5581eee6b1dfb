# status: blocked
# says: ValueError
error = None
for k in range(5000):
    new = ValueError(k)
    new.__cause__ = error
    error = new
raise error
