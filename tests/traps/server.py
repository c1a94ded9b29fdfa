"""Runs scripts in forks of one Python that has imported torch; any interpreter with torch runs this file.

Each line of stdin asks for one run, as JSON: the script, its environment, its folder, and the files of its stdout and
stderr. The answer is the exit code of the fork, which ends as a program does. What the shim does after `import torch`
is done before the script.
"""

import atexit
import gc
import importlib.util
import json
import os
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any

SECONDS = 120
"""After as many a run is killed by SIGALRM."""


def serve() -> dict[str, Any]:
    """Returns in each fork, with what was asked."""
    import torch
    import torch._dynamo  # which torch itself imports with the first optimizer

    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            torch.set_num_threads(1)
            return dict(json.loads(line))
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def become(asked: dict[str, Any]) -> None:
    for number, path in enumerate((os.devnull, asked["stdout"], asked["stderr"])):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.argv = [asked["script"]]
    sys.path[0:0] = [str(Path(asked["script"]).parent)]


def shim(private: str) -> None:
    """As `_apply` in the shim."""
    if os.environ.get("GPUTUNE_APPLY") and os.environ.get("GPUTUNE_DISABLE") != "1":
        spec: Any = importlib.util.spec_from_file_location("_gputune_private", private)
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.hook().run(os.environ["GPUTUNE_APPLY"])


def run(script: str) -> int:
    """The exit code of the script, which is run as `python SCRIPT` does."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = script
    code = 1
    try:
        exec(compile(Path(script).read_text(), script, "exec"), vars(main))
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    asked = serve()
    become(asked)
    shim(asked["private"])
    os._exit(run(asked["script"]))
