# status: completed
# says: no optimizer iteration
import json

print(json.dumps({"status": "completed", "verdict": "agree", "iterations": [1], "parameters": [{"name": "x"}]}))
