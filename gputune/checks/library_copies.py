"""Is there a second cuBLAS or cuDNN that torch could load instead of its own?

torch's wheels include the versions of cuBLAS and cuDNN that they were built for. A copy in a folder of LD_LIBRARY_PATH
may be loaded instead, or instead of a part that is loaded late: it may be older or slower, or fail with "version
mismatch". Two copies in one process are worse. Remove the folder from LD_LIBRARY_PATH; torch does not need it.

Source: ld.so(8); PyTorch, cuDNN version mismatch.
"""

import re
from collections import defaultdict

from gputune.checks._answers import Facts, Finding, Findings, Measurements, ok, unread, warning, without_cuda_torch


def check(facts: Facts, measurements: Measurements) -> Findings:
    if finding := without_cuda_torch(facts):
        yield finding
    elif not facts.libraries.loaded:
        yield unread(facts, "libraries.loaded", "which cuBLAS and cuDNN torch loads")
    else:
        loaded, own = _places(facts.libraries.loaded), _places(facts.libraries.bundled)
        searched = _places(facts.libraries.searched)
        judged = (_judge(name, folders, own.get(name, []), searched.get(name, [])) for name, folders in loaded.items())
        yield from [finding for finding in judged if finding] or [ok(f"one copy each of {', '.join(sorted(loaded))}")]


def _judge(name: str, loaded: list[str], own: list[str], searched: list[str]) -> Finding | None:
    if len(loaded) > 1:
        message = f"torch loaded {name} twice: from {' and '.join(loaded)}"
        return warning(message, "unset LD_LIBRARY_PATH LD_PRELOAD", name)
    if own and loaded[0] not in own:
        message = f"torch loaded {name} from {loaded[0]}, not its own from {own[0]}"
        return warning(message, "remove that folder, or a link to it, from LD_LIBRARY_PATH and LD_PRELOAD", name)
    if searched:
        message = f"LD_LIBRARY_PATH has a {name} other than torch's, in {searched[0]}"
        return warning(message, f"remove {searched[0]} from LD_LIBRARY_PATH", name)
    return None


def _places(paths: tuple[str, ...]) -> dict[str, list[str]]:
    """The folders of each library, by the file name under which torch loads it."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, file = path.rpartition("/")
        name = re.match(r"lib\w+\.so(?:\.\d+)?", file)
        if name and folder not in places[name[0]]:
            places[name[0]].append(folder)
    return {name: folders for name, folders in places.items() if folders}
