# status: timeout
# says: Time ran out
while True:
    pass
