# status: blocked
# says: EOFError
input("your password: ")
