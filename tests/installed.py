"""gputune as pip installs it: a console script, and copies of the installation that may be broken."""

import os
import shutil
import sys
import tomllib
from pathlib import Path

from making import executable

import gputune

HOUSE = Path(gputune.__file__).parents[1]
"""The folder that gputune is imported from: the source tree, or where it was installed."""
_PROJECT = Path(__file__).parents[1] / "pyproject.toml"

_SCRIPT = """#!{python}
import re
import sys
from {module} import {name}
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit({name}())
"""

OWN = ("gputune.py", "typer.py", "typing_extensions.py", "click.py", "yaml.py", "rich.py", "psutil.py", "pynvml.py")
"""Names that gputune imports, as files of a user's own."""


def script(folder: Path, python: str = sys.executable) -> str:
    """The command `gputune`, as pip writes it into an interpreter's folder."""
    entry = tomllib.loads(_PROJECT.read_text())["project"]["scripts"]["gputune"]
    module, _, name = entry.partition(":")
    folder.mkdir(exist_ok=True)
    return str(executable(folder / "gputune", _SCRIPT.format(python=python, module=module, name=name)))


def planted(folder: Path, *names: str, text: str = "raise SystemExit('of the user')\n") -> str:
    """A folder of the user's for PYTHONPATH, with modules of these names."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(text)
    return str(folder)


def target(folder: Path) -> Path:
    """As `pip install --target` makes it: a copy of gputune, and links to the packages that it needs."""
    folder.mkdir()
    for place in [Path(entry) for entry in sys.path if entry.endswith("-packages") and Path(entry).is_dir()]:
        for entry in place.iterdir():
            if entry.suffix != ".pth" and entry.name.split("-")[0] not in ("gputune", "gputune_start.py"):
                with_name = folder / entry.name
                if not with_name.is_symlink():
                    with_name.symlink_to(entry)
    shutil.copytree(HOUSE / "gputune", folder / "gputune", ignore=shutil.ignore_patterns("__pycache__"))
    for start in HOUSE.glob("gputune_*.py"):
        shutil.copy(start, folder)
    return folder


def bare_python() -> str:
    """An interpreter without gputune: the one that this virtual environment was made of."""
    return os.path.realpath(str(sys._base_executable))  # type: ignore[attr-defined]
