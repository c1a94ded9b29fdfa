"""Is there a second cuBLAS or cuDNN that torch could load instead of its own?

torch's wheels bring the versions of cuBLAS and cuDNN that they were built for. A copy in a folder of LD_LIBRARY_PATH
may be loaded instead, or instead of a part that is loaded late: it may be older or slower, or fail with "version
mismatch". Two copies in one process are worse. Remove the folder from LD_LIBRARY_PATH; torch does not need it.

Source: ld.so(8); PyTorch, cuDNN version mismatch.
"""

import re
from collections import defaultdict

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning, without_cuda_torch
from gputune.checks._remedies import python_of, typed, without_folders


def check(facts: Facts, measurements: Measurements) -> Findings:
    if finding := without_cuda_torch(facts):
        yield finding
    elif not facts.libraries.loaded:
        yield unread(facts, "libraries.loaded", "which cuBLAS and cuDNN torch loads")
    else:
        loaded, own = _places(facts.libraries.loaded), _places(facts.libraries.bundled)
        searched = _places(facts.libraries.searched)
        remedy = _remedy(facts, loaded, own, searched)
        faults = {name: _fault(name, loaded[name], own.get(name, []), searched.get(name, [])) for name in loaded}
        found = [warning(fault, remedy, name) for name, fault in faults.items() if fault]
        yield from found or [ok(f"one copy each of {', '.join(sorted(loaded))}")]


def _fault(name: str, loaded: list[str], own: list[str], searched: list[str]) -> str | None:
    if len(loaded) > 1:
        return f"torch loaded {name} twice: from {' and '.join(loaded)}"
    if own and loaded[0] not in own:
        return f"torch loaded {name} from {loaded[0]}, not its own from {own[0]}"
    return f"LD_LIBRARY_PATH has a {name} other than torch's, in {searched[0]}" if searched else None


def _remedy(facts: Facts, *places: dict[str, list[str]]) -> str:
    """`places` are the folders of the loaded, the own and the searched libraries."""
    loaded, own, searched = ([folder for folders in each.values() for folder in folders] for each in places)
    strange = ({*loaded} - {*own} if own else set()) | {*searched}
    if taken := without_folders(facts, strange or {*loaded}):
        return typed(taken, note="and out of where it is set: a profile file, a module, ENV in the image")
    look = f"LD_DEBUG=libs {python_of(facts)} -c 'import torch' 2>&1 | grep -E 'lib(cublas|cudnn)'"
    return typed(look, note="shows by which name it was found: take that out of LD_LIBRARY_PATH and LD_PRELOAD")


def _places(paths: tuple[str, ...]) -> dict[str, list[str]]:
    """The folders of each library, by the file name under which torch loads it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, file = path.rpartition("/")
        name = re.match(r"lib\w+\.so(?:\.\d+)?", file)
        if name and folder not in places[name[0]]:
            places[name[0]].append(folder)
    return {name: folders for name, folders in places.items() if folders}
