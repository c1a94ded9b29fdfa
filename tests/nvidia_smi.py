"""A stand-in for nvidia-smi, and for the systemctl and the sudo that remedies call, on a node of stub_nvml's.

It takes what the real one takes (the options in the help of driver 580, and which of them go together, tried there),
and what it sets changes the stub's answers: the node's faults are the lines of the file STATE, as in stub.c. A setting
that needs a reset waits for one, and a reset is refused while a service holds the GPUs open.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

WITH_A_VALUE = {
    "-i": "--id", "-f": "--filename", "-l": "--loop", "-d": "--display", "-lms": "--loop-ms",
    "-pm": "--persistence-mode", "-e": "--ecc-config", "-p": "--reset-ecc-errors", "-c": "--compute-mode",
    "-lgc": "--lock-gpu-clocks", "-lmc": "--lock-memory-clocks", "-ac": "--applications-clocks", "-pl": "--power-limit",
    "-am": "--accounting-mode", "-mig": "--multi-instance-gpu", "-gtt": "--gpu-target-temp",
}  # fmt: skip
WITHOUT = {
    "-L": "--list-gpus", "-q": "--query", "-x": "--xml-format", "-r": "--gpu-reset", "-rgc": "--reset-gpu-clocks",
    "-rmc": "--reset-memory-clocks", "-rac": "--reset-applications-clocks", "-eow": "--error-on-warning",
}  # fmt: skip
OF_MIG = {"-i": True, "-gi": True, "-ci": True, "-dgi": False, "-dci": False, "-lgi": False, "-lci": False}
OF_NVLINK = {"--errorcounters": False, "-e": False, "-s": False, "--status": False, "-i": True, "-l": True}
"""Whether they take a value."""
BESIDE = {"-L": set(), "-q": {"-i", "-d", "-x", "-f", "-l", "-lms"}}
"""What may stand beside an option. All others change one thing, and there is no second one beside them."""
DISPLAYS = {
    "MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE", "VOLTAGE",
    "PAGE_RETIREMENT", "ROW_REMAPPER", "SUPPORTED_CLOCKS",
}  # fmt: skip
VALUES = {
    "-pm": {"0", "1"}, "-e": {"0", "1"}, "-mig": {"0", "1"},
    "-c": {"0", "2", "3", "DEFAULT", "PROHIBITED", "EXCLUSIVE_PROCESS"},
}  # fmt: skip
AT_ONCE = {
    "-pm": ["PersistenceMode"], "-pl": ["PowerManagementLimit"], "-c": ["ComputeMode"], "-rac": ["ApplicationsClock"],
    "-rgc": ["CurrentClocksEventReasons"],
}  # fmt: skip
"""The stub's answers that are as they should be after an option."""
AFTER_A_RESET = {"EccMode", "MigMode", "RemappedRows", "TotalEccErrors", "*"}
ECC_WAITS = "EccMode=waits"


class Refused(Exception):
    """What the real one says, for which it exits with a code that is not 0."""


def parsed(words: list[str]) -> dict[str, str]:
    """The options by their short names, with their values. Raises Refused where the real one would not take them."""
    names = {long: short for short, long in {**WITH_A_VALUE, **WITHOUT}.items()}
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        short = names.get(name, name)
        if short not in WITH_A_VALUE and short not in WITHOUT:
            raise Refused(f"ERROR: Option {word} is not recognized.")
        if short in WITH_A_VALUE and not equals and not (value := next(rest, "")):
            raise Refused(f"ERROR: Option {word} is missing its value.")
        found[short] = value
    _go_together(found)
    for name, value in found.items():
        if name in VALUES and value not in VALUES[name]:
            raise Refused(f"ERROR: {value} is no value of {name}.")
    if not set(found.get("-d", "POWER").split(",")) <= DISPLAYS:
        raise Refused(f"ERROR: {found['-d']} cannot be displayed.")
    return found


def _go_together(found: dict[str, str]) -> None:
    first = next((name for name in found if name in BESIDE), None) or next((name for name in found if name != "-i"), "")
    wrong = set(found) - {first} - BESIDE.get(first, {"-i", "-eow"})
    if wrong:
        raise Refused(f"ERROR: Option {min(wrong)} is not valid for this command.")


def parsed_below(words: list[str], known: dict[str, bool]) -> dict[str, str]:
    """The same of `nvidia-smi mig` and `nvidia-smi nvlink`."""
    found, rest = {}, iter(words)
    for word in rest:
        if word not in known:
            raise Refused(f"Option {word!r} is not recognized.")
        found[word] = next(rest) if known[word] else ""
    return found


def taken(words: list[str]) -> dict[str, str]:
    """Any command line behind `nvidia-smi`."""
    below = {"mig": OF_MIG, "nvlink": OF_NVLINK}
    return parsed_below(words[1:], below[words[0]]) if words and words[0] in below else parsed(words)


def _smi(words: list[str], state: "State") -> None:
    options = taken(words)
    gpus = [state.gpu(options["-i"])] if "-i" in options else list(range(len(state.addresses)))
    if "-L" in options:
        print("\n".join(state.listed()))
    for gpu in gpus:
        if "-r" in options:
            state.reset(gpu)
        if "-e" in options:
            state.ecc_on(gpu)
        for option in options.keys() & AT_ONCE.keys():
            state.mend(gpu, AT_ONCE[option])


class State:
    """The node's faults, and which services run, in files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._faults, self._services = folder / "faults", folder / "services"
        self.addresses = os.environ.get("ADDRESSES", "").split()

    def faults(self) -> list[str]:
        return self._faults.read_text().split()

    def services(self) -> dict[str, bool]:
        """Those of the host, and whether each runs."""
        return dict(json.loads(self._services.read_text()))

    def run(self, service: str, runs: bool) -> None:
        if service not in self.services():
            raise Refused(f"Unit {service}.service not loaded.")
        self._services.write_text(json.dumps(self.services() | {service: runs}))

    def gpu(self, name: str) -> int:
        found = [number for number, address in enumerate(self.addresses) if name.lower().endswith(address)]
        if not found:
            raise Refused("No devices were found")
        return found[0]

    def listed(self) -> Iterator[str]:
        """As MIG slices are listed: below their GPUs."""
        for gpu in range(len(self.addresses)):
            yield f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu:08x}-0000-4000-8000-000000000000)"
            for slice_ in range(2):
                yield f"  MIG 3g.40gb     Device  {slice_}: (UUID: MIG-{gpu}{slice_}-0000)"

    def mend(self, gpu: int, calls: list[str]) -> None:
        gone = {f"nvmlDeviceGet{call}@{gpu}" for call in calls} | ({f"*@{gpu}"} if "*" in calls else set())
        self._write([fault for fault in self.faults() if fault.partition("=")[0] not in gone])

    def ecc_on(self, gpu: int) -> None:
        if f"nvmlDeviceGetEccMode@{gpu}=value:1" in self.faults():  # still on
            self.mend(gpu, ["EccMode"])
        else:
            self._write([*self.faults(), ECC_WAITS])

    def reset(self, gpu: int) -> None:
        if any(self.services().values()):
            raise Refused("GPU could not be reset: it is currently being used by another process.")
        faults = self.faults()
        waits = (
            AFTER_A_RESET if ECC_WAITS in faults or "EccMode@" not in "".join(faults) else AFTER_A_RESET - {"EccMode"}
        )
        self._write([fault for fault in faults if fault != ECC_WAITS])
        self.mend(gpu, sorted(waits))

    def _write(self, faults: list[str]) -> None:
        self._faults.write_text("".join(f"{fault}\n" for fault in faults))


def _systemctl(words: list[str], state: State) -> None:
    """All units that are there are stopped or started, also beside one that is not."""
    verb, *services = words
    if verb not in ("start", "stop", "restart"):
        raise Refused(f"Unknown command verb {verb}.")
    missing = [service for service in services if service not in state.services()]
    for service in services:
        if service not in missing:
            state.run(service, verb != "stop")
    if missing:
        raise Refused(f"Unit {missing[0]}.service not loaded.")


def stand_ins(folder: Path, faults: str, services: dict[str, bool]) -> str:
    """A PATH on which they come first; `folder` becomes STATE's."""
    (folder / "faults").write_text("".join(f"{fault}\n" for fault in faults.split(";")))
    (folder / "services").write_text(json.dumps(services))
    from making import executable  # not for each call of the programs

    programs = folder / "bin"
    programs.mkdir()
    executable(programs / "sudo", '#!/bin/sh\nexec "$@"\n')
    for name in ("nvidia-smi", "systemctl"):
        executable(programs / name, f'#!/bin/sh\nexec {sys.executable} {__file__} {folder} {name} "$@"\n')
    return f"{programs}{os.pathsep}{os.environ['PATH']}"


def main() -> None:
    _, folder, program, *words = sys.argv
    try:
        {"nvidia-smi": _smi, "systemctl": _systemctl}[program](words, State(Path(folder)))
    except Refused as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
