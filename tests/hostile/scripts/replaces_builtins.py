# status: completed or blocked
import builtins

for name in ("open", "print", "len", "isinstance", "str", "dict", "list", "__import__"):
    setattr(builtins, name, None)
