"""Runs in any interpreter with torch and reports, as JSON, what gputune set there and what the settings currently are.

Standard library only. `python _status_answers.py [verify] FD` writes one JSON object to descriptor FD. `verify` also
computes the errors of FP32 operations on the GPU, which reveal the precision in which they really run.
"""

import importlib.util
import json
import os
import sys
from typing import Any, Dict, List

OLDEST = (3, 11)
HERE = os.path.dirname(os.path.abspath(__file__))
PRIVATE = os.path.join(os.path.dirname(HERE), "live", "private.py")
ERRORS = os.path.join(os.path.dirname(HERE), "benches", "_fp32_errors.py")


def main(options: List[str], descriptor: int) -> None:
    # Python put this file's folder first on the path, where its neighbours would shadow the user's modules.
    if sys.path and os.path.abspath(sys.path[0]) == HERE:
        del sys.path[0]
    try:
        answer = answers("verify" in options)
    except Exception as error:
        answer = {"fault": "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:300])}
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def answers(verify: bool) -> Dict[str, Any]:
    if sys.version_info < OLDEST:
        raise RuntimeError(
            "this is Python %d.%d, and gputune needs 3.11 or newer to set torch's flags" % sys.version_info[:2]
        )
    import torch

    hook = load("_gputune_private", PRIVATE).hook()
    answer = {
        "torch": str(torch.__version__),
        "python": sys.executable,
        "rows": hook.now(),
        "reads": hook.reads(),
        "gpu": None,
        "tf32": False,
    }
    if torch.cuda.is_available():
        answer["gpu"] = torch.cuda.get_device_name()
        answer["tf32"] = torch.version.hip is None and torch.cuda.get_device_capability()[0] >= 8
    if verify and answer["gpu"]:
        answer["errors"] = load("_fp32_errors", ERRORS).errors("cuda")
    return answer


def load(name: str, path: str) -> Any:
    """Import a file by its path: this interpreter may have no gputune, or another version of it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1:-1], int(sys.argv[-1]))
