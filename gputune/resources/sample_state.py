"""What moves in a dataset while samples are loaded: counters, caches, files that are read on, generators of its own.

Each worker has a copy of the dataset. What a sample changes in one is not seen by the others, nor by the program, and
what is consumed is consumed by each worker anew. So this looks through what a dataset holds, and what the program's
functions that load its samples refer to, before and after a sample.
"""

import collections
import dis
import functools
import io
import itertools
import os
import random
import stat
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_OBJECTS = 3000
"""How many objects are looked at, those near to the dataset first."""
MOST_ELEMENTS = 100_000
"""A longer container is compared by its length and by `MOST_ENTERED` elements."""
MOST_ENTERED = 200
"""How many parts of an object are themselves looked into."""
MOST_BYTES = 1 << 20
"""The bytes of a large array that are compared, at its beginning and at its end."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, range)
CONTAINERS = (list, tuple, set, frozenset, collections.deque)
NOT_THE_PROGRAMS = ("site-packages", "dist-packages", str(Path(os.__file__).parent))
FIRST, CHANGES = "its dataset holds ", "its dataset counts or consumes something as samples are loaded"
ITERATOR = FIRST + "an iterator, which every worker would consume"
SHARED_FILE = "its dataset reads on in an open file, whose position all workers would share"
FILLS = "its dataset fills a cache as samples are loaded, which every worker would fill for itself"


class State:
    """What a dataset, and functions that make batches of its samples, hold and refer to."""

    def __init__(self, *roots: Any) -> None:
        self._marks = [(one, _mark(one, parts)) for one, parts in reached(roots, is_elsewhere)]

    def holds_iterator(self) -> bool:
        kinds = [type(one) for one, _ in self._marks if not isinstance(one, io.IOBase) and not hasattr(one, "__dict__")]
        return any(hasattr(kind, "__next__") for kind in kinds)

    def moved(self) -> str | None:
        """What has changed since, in plain words."""
        for one, before in self._marks:
            now = _mark(one, _parts(one))
            if len(before) == len(now) and all(map(_same, before, now)):
                continue
            is_cache = (isinstance(one, dict) and len(now) > len(before)) or hasattr(type(one), "cache_info")
            return FILLS if is_cache else CHANGES
        return None

    def positions(self) -> list[Any]:
        """Where the files stand, other than those in memory: `moved` tells of these."""
        files = [one for one, _ in self._marks if isinstance(one, io.IOBase) and not hasattr(one, "getvalue")]
        return [_position(one) for one in files]


def reached(roots: tuple[Any, ...], left: Callable[[Any], bool]) -> Iterator[tuple[Any, list[Any]]]:
    """What these objects hold and refer to, the nearest first and with its parts, except for what is `left`."""
    waiting, seen = collections.deque(roots), dict[int, Any]()
    while waiting and len(seen) < MOST_OBJECTS:
        one = waiting.popleft()
        if id(one) in seen or isinstance(one, PLAIN) or left(one):
            continue
        seen[id(one)] = one
        parts = _parts(one)
        yield one, parts
        waiting += parts[:MOST_ENTERED]


def open_files() -> dict[int, tuple[int, int]]:
    """The regular files that this process has open to read: their descriptors, with the flags and the position."""
    found = {}
    for number in [int(one.name) for one in Path("/proc/self/fd").iterdir()]:
        try:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                continue
            lines = Path(f"/proc/self/fdinfo/{number}").read_text("ascii").splitlines()
        except OSError:  # closed meanwhile, as is the one of the list itself
            continue
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        flags = int(fields["flags"], 8)
        if flags & os.O_ACCMODE != os.O_WRONLY:
            found[number] = (flags, int(fields["pos"]))
    return found


def own_positions() -> None:
    """Give a forked process positions of its own in the files that its parent reads: they share one otherwise."""
    try:
        files = open_files()
    except OSError:  # no /proc
        return
    for number, (flags, position) in files.items():
        try:
            own = os.open(f"/proc/self/fd/{number}", flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC))
        except OSError:  # no longer permitted
            continue
        os.lseek(own, position, os.SEEK_SET)
        os.dup2(own, number, inheritable=False)
        os.close(own)


def is_elsewhere(one: Any) -> bool:
    """Whether an object is no part of a dataset: a module, what the standard library keeps to itself (locks, loggers),
    or a function of a library that wraps none of the program's.
    """
    if isinstance(one, (types.ModuleType, types.BuiltinFunctionType)) or one is getattr(random, "_inst", None):
        return True
    if isinstance(one, types.FunctionType):
        return not (one.__closure__ or hasattr(one, "__wrapped__")) and is_a_librarys(one.__code__.co_filename)
    if isinstance(one, type):
        return _home(one) in sys.stdlib_module_names or _home(one) in ("torch", "numpy")
    if isinstance(one, (dict, *CONTAINERS, io.IOBase, random.Random, functools.partial, types.MethodType)):
        return False
    kind = type(one)
    is_part = any(hasattr(kind, name) for name in ("__next__", "cursor", "fetchone", "cache_info", *BUFFERS))
    is_part |= kind is types.CellType or f"{kind.__module__}.{kind.__qualname__}" in HOLDERS
    return not is_part and _home(kind) in sys.stdlib_module_names and _home(kind) != "__main__"


def is_a_librarys(file: str) -> bool:
    return any(part in file for part in NOT_THE_PROGRAMS)


def _home(kind: type) -> str:
    return str(getattr(kind, "__module__", "")).partition(".")[0]


def _parts(one: Any) -> list[Any]:
    """The objects that an object holds or refers to."""
    if isinstance(one, types.FunctionType):
        names = () if is_a_librarys(one.__code__.co_filename) else sorted(_globals_in(one.__code__))
        named = [one.__globals__[name] for name in names if name in one.__globals__]
        given = [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        return [*(one.__closure__ or ()), *named, *given, *vars(one).values()]
    if isinstance(one, types.CellType):
        empty = one == types.CellType()
        return [] if empty else [one.cell_contents]
    if isinstance(one, types.MethodType):
        return [one.__self__, one.__func__]
    if isinstance(one, functools.partial):
        return [one.func, one.args, one.keywords]
    return _class_parts(one) if isinstance(one, type) else _instance_parts(one)


def _class_parts(kind: type) -> list[Any]:
    own = [part for name, part in vars(kind).items() if callable(part) or not name.startswith("__")]
    return [*kind.__bases__, *(getattr(part, "__func__", getattr(part, "fget", part)) for part in own)]


def _instance_parts(one: Any) -> list[Any]:
    parts = [type(one), *getattr(one, "__dict__", {}).values(), *in_slots(one)]
    if isinstance(one, (dict, *CONTAINERS)):
        most = MOST_ELEMENTS if len(one) <= MOST_ELEMENTS else MOST_ENTERED
        values = one.values() if isinstance(one, dict) else ()
        parts += [*itertools.islice(values, most), *itertools.islice(one, most)]
    return parts


def in_slots(one: Any) -> Iterator[Any]:
    """The attributes of an object that its classes have named in `__slots__`."""
    for kind in type(one).__mro__:
        for slot in vars(kind).values() if "__slots__" in vars(kind) else ():
            if isinstance(slot, types.MemberDescriptorType):
                with suppress(AttributeError):  # nothing is in there
                    yield slot.__get__(one)


def names_in(code: types.CodeType) -> set[str]:
    """The names that a function's code asks for, with those of the functions inside it."""
    return {name for one in _codes_in(code) for name in one.co_names}


def _globals_in(code: types.CodeType) -> set[str]:
    """The global names among them. An attribute may have the same name."""
    steps = (step for one in _codes_in(code) for step in dis.get_instructions(one))
    return {step.argval for step in steps if "GLOBAL" in step.opname or step.opname == "LOAD_NAME"}


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes_in(one)


def _mark(one: Any, parts: list[Any]) -> list[Any]:
    """What differs after an object has changed."""
    if isinstance(one, (dict, *CONTAINERS)):
        return [*parts, len(one)]
    looks = [look for name, look in LOOKS.items() if hasattr(type(one), name)]
    return [*parts, *(look(one) for look in looks if not isinstance(one, type))]


def _generator(one: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(one, torch.Generator):
        return repr(one.get_state()) if _home(type(one)) == "numpy" else None
    # torch's own belongs to no dataset: each worker seeds its own
    return None if one is torch.default_generator else one.get_state().tolist()


def _bytes(one: Any) -> Any:
    try:
        if type(one).__name__ == "memmap":
            return None
        view = memoryview(one)
        if view.nbytes <= MOST_BYTES or not view.c_contiguous:
            return zlib.crc32(view.tobytes())
        view = view.cast("B")
        return zlib.crc32(view[:MOST_BYTES]), zlib.crc32(view[-MOST_BYTES:])
    except (TypeError, ValueError, BufferError, NotImplementedError):  # of objects
        return None


def _tensor(one: Any) -> Any:
    try:
        return one._version, one.data_ptr(), tuple(one.shape)
    except Exception:  # of inference mode, or without storage
        return None


def _position(one: Any) -> int | None:
    try:
        return int(one.tell())
    except (OSError, ValueError):  # no such file, or closed
        return None


def _same(before: Any, now: Any) -> bool:
    if before is now:
        return True
    try:
        return isinstance(before, (*PLAIN, tuple, list)) and type(before) is type(now) and bool(before == now)
    except Exception:  # a tuple of arrays
        return False


BUFFERS = ("__alloc__", "frombytes")
"""What bytearray has alone, and array.array."""
HOLDERS = {"argparse.Namespace", "types.SimpleNamespace", "collections.UserDict", "collections.UserList"}
"""Classes of the standard library of which a program makes its own holders of values."""
LOOKS = {
    "_version": _tensor,
    **dict.fromkeys(("__array_interface__", *BUFFERS), _bytes),
    "getstate": lambda one: repr(one.getstate()) if isinstance(one, random.Random) else None,
    "bit_generator": lambda one: repr(one.bit_generator.state),
    "get_state": _generator,
    "cache_info": lambda one: one.cache_info().currsize,
    "getvalue": _position,
}
"""How to see that an object of a kind has changed, by an attribute that only this kind has."""
