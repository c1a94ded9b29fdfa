"""Pieces of code in a Python with the real torch, each in a process of its own: torch is imported once."""

import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from forked import ran, server
from making import environ


@cache
def _server() -> Any:
    return server(sys.executable, runs="torch", env=environ())


def ask(code: str) -> Any:
    """Run the code there, and return what it puts into `answer`."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(f"import torch\n{code}\nimport json\nprint(json.dumps(answer))\n")
        return json.loads(run(script, folder).splitlines()[-1])


def run(script: Path, folder: str | Path) -> str:
    """Run the script in this folder, and return what it printed; it must end well."""
    done = ran(_server(), {"script": str(script)}, environ(), folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
