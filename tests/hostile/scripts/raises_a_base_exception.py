# status: blocked
# says: Stop
class Stop(BaseException):
    pass


raise Stop("at once")
