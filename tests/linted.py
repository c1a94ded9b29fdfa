"""Shell scripts held against bash and shellcheck."""

import os
import shutil
import sys
from pathlib import Path

from making import command


def linted(script: str) -> None:
    """Fails where bash or shellcheck finds anything."""
    assert command(["bash", "-n"], input=script).returncode == 0
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert shellcheck, "no shellcheck here: pip install '.[cluster]'"
    found = command([shellcheck, "--shell=bash", "-"], input=script)
    assert (found.returncode, found.stdout) == (0, "")
