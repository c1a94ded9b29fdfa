"""A script that calls NVML for gputune, in a process that may hang or crash instead of gputune's own.

Standard library and nvidia-ml-py only. `python nvml_calls.py FOLDER PARENT REQUESTS ANSWERS` imports pynvml from
FOLDER, reads one request a line from the descriptor REQUESTS and writes one answer a line to ANSWERS, both as JSON:
["system", NAME], ["handle", INDEX] or ["device", INDEX, NAME, *ARGUMENTS], and {"answer": ...} or
{"error": [TYPE, TEXT]}.
First it writes three answers that nobody asks for: that it has started, how NVML's initialisation went, and the count.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_MOST_MEMORY = 1 << 30
"""The bytes that this process may have: nvidia-ml-py makes room for as many items as a driver says that it has."""
_MOST_ITEMS = 65536
"""The most items of a list or characters of a text that are passed on: lengths come from the driver."""


def main(folder: str, parent: int, requests: int, answers: int) -> None:
    """Answer until the requests end, or the process does that sent them."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it died in the meantime
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _MOST_MEMORY if most == resource.RLIM_INFINITY else min(_MOST_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    with os.fdopen(answers, "w", encoding="ascii") as out, os.fdopen(requests, encoding="ascii") as lines:

        def answer(call: Callable[[], Any]) -> bool:
            answered = True
            try:
                said = json.dumps({"answer": plain(call())})
            except Exception as error:  # nvidia-ml-py's errors, and its own faults over a driver's odd answer
                answered, said = False, json.dumps({"error": [type(error).__name__, str(error)[:200]]})
            out.write(said + "\n")
            out.flush()
            return answered

        answer(lambda: None)
        sys.path.append(folder)
        calls = Calls()
        if answer(calls.start):
            answer(calls.count)
            for line in lines:
                kind, *arguments = json.loads(line)
                answer(partial(getattr(calls, kind), *arguments))
    os._exit(0)  # a driver's threads may not let a process end


class Calls:
    """NVML's calls by name. Each raises nvidia-ml-py's error, or AttributeError for a call that it does not have."""

    def __init__(self) -> None:
        self._handles: dict[int, Any] = {}

    def start(self) -> None:
        import pynvml

        self._pynvml = pynvml
        pynvml.nvmlInit()

    def system(self, name: str) -> Any:
        return getattr(self._pynvml, f"nvmlSystemGet{name}")()

    def count(self) -> int:
        return int(self._pynvml.nvmlDeviceGetCount())

    def handle(self, index: int) -> None:
        self._handles[index] = self._pynvml.nvmlDeviceGetHandleByIndex(index)

    def device(self, index: int, name: str, *args: Any) -> Any:
        function = getattr(self._pynvml, f"nvmlDeviceGet{name}")
        if name == "GpuFabricInfoV":  # fills in a struct that its caller provides
            struct = self._pynvml.c_nvmlGpuFabricInfo_v2_t()
            function(self._handles[index], ctypes.byref(struct))
            return struct
        return function(self._handles[index], *args)


def plain(value: Any) -> Any:
    """NVML's structs, and nvidia-ml-py's objects for some of them, as dictionaries; arrays as lists; bytes as text."""
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [plain(part) for part in value[:_MOST_ITEMS]]
    if isinstance(value, (ctypes.Structure, ctypes.Union)):
        return {field[0]: plain(getattr(value, field[0])) for field in value._fields_}
    if type(value).__name__ == "nvmlFriendlyObject":
        return {name: plain(part) for name, part in vars(value).items()}
    return value[:_MOST_ITEMS] if isinstance(value, str) else value


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
