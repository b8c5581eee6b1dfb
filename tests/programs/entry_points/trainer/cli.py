"""`train.lr=0.1 +solver.steps=20 ~db`: settings in the manner of Hydra."""

import sys

from .model import train


def main():
    settings = {"train.lr": 0.1, "solver.steps": 4, "db": "on"}
    for text in sys.argv[1:]:
        name, _, value = text.lstrip("+~").partition("=")
        if text.startswith("~"):
            del settings[name]
        elif text.startswith("+") or name in settings:
            settings[name] = float(value)
        else:
            sys.exit(f"Could not override {name!r}. To append it, use +{text}")
    print(sys.argv[0].rpartition("/")[2], settings)
    print(train(settings["train.lr"], int(settings["solver.steps"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
