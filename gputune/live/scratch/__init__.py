"""Keeps the user's files as they are while a program is being tuned, where it does not run above copies of them.

What Python writes goes to a scratch folder (`files`), and so does what some libraries write in C: each has a file, with
`PATHS`, by module that it changes, and perhaps `redirect(module, view)`. Both take effect right after the module was
imported, so that a program's own `from ... import ...` gets what was changed.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from ... import plugins
from .. import imports, payload
from ..orders import Assignment
from ._rerouting import reroute

FILES, SOCKETS, PUSHES, RENAMES = "files", "sockets", "hub_pushes", "renames"
"""The functions of Python, for files and sockets; what goes to a server, from which no copies keep it; and what only
copies need."""


class _Places(Protocol):
    def read(self, path: Any) -> Any: ...
    def written(self, path: Any, *, keeps: bool = False) -> Any: ...


def begin(environ: Mapping[str, str]) -> None:
    """Keep this process off the user's files, as its assignment says. Before the program's first line. Raises TypeError
    or ValueError for an assignment that is none, unless another `gputune apply` came between.
    """
    try:
        assignment = Assignment.parse(environ[payload.TUNE])
    except (TypeError, ValueError):
        if payload.handed_down(environ).is_tuned:
            raise
        return
    from ._outside import Outside
    from ._view import MEMORY, lying_in

    unchanged = [str(Path(assignment.written).parent), *assignment.unchanged]
    is_unchanged = lying_in(unchanged)
    if assignment.scratch and _is_above_copies(assignment.namespace):
        _install([PUSHES, RENAMES], _Untouched())
        outside = Outside(assignment.written, lambda name: is_unchanged(name) or not name.startswith(f"{MEMORY}/"))
    elif assignment.scratch:
        redirect(assignment.scratch, unchanged)
        outside = Outside(assignment.written, is_unchanged)
    else:
        outside = Outside(assignment.written, is_unchanged)
        _install(set(plugins.names(__name__)) - {FILES, SOCKETS, PUSHES, RENAMES}, outside)
    outside.follow()


def redirect(folder: str, unchanged: Iterable[str] = ()) -> None:
    """From now on, have what this process writes go below `folder`, but for what lies in folders of `unchanged`."""
    from ._view import View

    _install(set(plugins.names(__name__)) - {RENAMES}, View(folder, unchanged))


def _is_above_copies(mark: str) -> bool:
    """Whether the namespace of this process is the one that a file names: a launcher may start processes elsewhere."""
    try:
        return bool(mark) and Path(mark).read_text(encoding="utf-8") == str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        return False


def _install(names: Iterable[str], places: _Places) -> None:
    for name in names:
        one: Any = plugins.load(__name__, name)
        for module in one.PATHS:
            imports.after(module, partial(_redirect, one, places), f"files of {module} are not redirected")


def _redirect(one: Any, places: Any, module: ModuleType) -> None:
    how = {"written": places.written, "changed": partial(places.written, keeps=True), "read": places.read}
    for function, parameter, place in one.PATHS.get(module.__name__, ()):
        reroute(module, function, parameter, how[place])
    if hasattr(one, "redirect"):
        one.redirect(module, places)


class _Untouched:
    def read(self, path: Any) -> Any:
        return path

    def written(self, path: Any, *, keeps: bool = False) -> Any:
        return path
