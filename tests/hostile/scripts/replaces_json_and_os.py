# status: blocked
# says: before it could report
import json
import os


def refuse(*_, **__):
    raise RuntimeError("not here")


json.dump = json.dumps = os.replace = refuse
