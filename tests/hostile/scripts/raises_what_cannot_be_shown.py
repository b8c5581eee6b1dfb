# status: blocked
# says: Unprintable
class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


raise Unprintable
