"""Is there a second cuBLAS or cuDNN that torch could load instead of its own?

torch's wheels bring cuBLAS and cuDNN in the versions that they were built for. A copy that LD_LIBRARY_PATH names may come
before them, or before a part of them that is loaded late: older, slower, or failing with "version mismatch". Two copies in
one process are worse. Take the folder out of LD_LIBRARY_PATH; torch needs none there.

Source: ld.so(8); PyTorch, cuDNN version mismatch.
"""

import re
from collections import defaultdict

from gputune.checks._answers import ok, unread, warning, without_cuda_torch
from gputune.checks._common import Facts, Finding, Findings, Measurements


def check(facts: Facts, measurements: Measurements) -> Findings:
    if finding := without_cuda_torch(facts):
        yield finding
    elif not facts.libraries.loaded:
        yield unread(facts, "libraries.loaded", "which cuBLAS and cuDNN torch loads")
    else:
        loaded, own = _places(facts.libraries.loaded), _places(facts.libraries.bundled)
        searched = _places(facts.libraries.searched)
        found = [_of(name, folders, own.get(name, []), searched.get(name, [])) for name, folders in loaded.items()]
        complaints = [finding for finding in found if finding]
        yield from complaints or [ok(f"one copy each of {', '.join(sorted(loaded))}")]


def _of(name: str, loaded: list[str], own: list[str], searched: list[str]) -> Finding | None:
    if len(loaded) > 1:
        return warning(
            f"torch loaded {name} twice: from {' and '.join(loaded)}", "unset LD_LIBRARY_PATH LD_PRELOAD", name
        )
    if own and loaded[0] not in own:
        message = f"torch loaded {name} from {loaded[0]}, and not its own of {own[0]}"
        return warning(message, "take that folder, or a link to it, out of LD_LIBRARY_PATH and LD_PRELOAD", name)
    if searched:
        message = f"LD_LIBRARY_PATH offers another {name} than torch's, in {searched[0]}"
        return warning(message, f"take {searched[0]} out of LD_LIBRARY_PATH", name)
    return None


def _places(paths: tuple[str, ...]) -> dict[str, list[str]]:
    """Library, by the name that torch asks for, to the folders that have it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, file = path.rpartition("/")
        name = re.match(r"lib\w+\.so(?:\.\d+)?", file)
        if name and folder not in places[name[0]]:
            places[name[0]].append(folder)
    return {name: folders for name, folders in places.items() if folders}
