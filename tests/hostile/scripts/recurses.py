# status: blocked
# says: RecursionError
def again():
    again()


again()
