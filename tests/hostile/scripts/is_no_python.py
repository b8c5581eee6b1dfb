# status: blocked
# says: SyntaxError
this is not Python (
