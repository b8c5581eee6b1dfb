# status: blocked
# says: \x1b[2J
# says: \u202e
# says: \udcff
raise ValueError("\x1b[2J\u202egnol\udcff\x00")
