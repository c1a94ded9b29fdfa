"""A script that writes, as JSON, where the interpreter that runs it would import torch from, without importing it.

Standard library only. `python _where_is_torch.py FD` writes {"folder": PATH or null} to file descriptor FD.
"""

import json
import os
import sys
from importlib.util import find_spec


def main(descriptor: int) -> None:
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    spec = find_spec("torch")
    places = list(spec.submodule_search_locations or []) if spec else []
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        json.dump({"folder": os.path.realpath(places[0]) if places else None}, pipe)


if __name__ == "__main__":
    main(int(sys.argv[1]))
