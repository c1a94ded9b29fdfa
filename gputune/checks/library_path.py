"""Does LD_LIBRARY_PATH put a stub or a compatibility package's libcuda before the driver's own?

The CUDA toolkit's folder `stubs` has a libcuda for linking, with which every call fails (error 34). The folder `compat`
has that of a newer driver: it lets data-centre GPUs run a newer CUDA on an older driver, fails on other GPUs (error
804), and beside a driver as new as itself (error 803). Remove the folder from LD_LIBRARY_PATH; nothing needs a stub to
run.

Source: CUDA Driver API, CUDA_ERROR_STUB_LIBRARY; NVIDIA, CUDA Compatibility.
"""

import re

from gputune.checks._answers import Facts, Finding, Findings, Measurements, error, no_gpu, ok, warning
from gputune.checks._questions import cause, consumer, has_gpu, number
from gputune.checks._remedies import typed, without_folders
from gputune.checks.cuda_visible_devices import hidden

VARIABLE = "LD_LIBRARY_PATH"


def check(facts: Facts, measurements: Measurements) -> Findings:
    folders = list(dict.fromkeys(path.rpartition("/")[0] for path in facts.libraries.cuda_drivers))
    if not has_gpu(facts):
        yield no_gpu(facts)
    elif not folders:
        is_set = facts.environment.get(VARIABLE)
        yield ok(f"no folder of {VARIABLE} has a libcuda" if is_set else f"no {VARIABLE} is set")
    else:
        yield _judge(facts, folders)


def _judge(facts: Facts, folders: list[str]) -> Finding:
    """The finding about the folders up to the first of a driver's own libcuda, which ends the loader's search."""
    faults: dict[str, str] = {}
    for folder in folders:
        if _has(folder, "stubs"):
            faults[folder] = f"{folder} has a stub libcuda, with which every CUDA call fails"
        elif not _has(folder, "compat"):
            break
        elif fault := _unfit(facts, folder):
            faults[folder] = fault
    if not faults:
        return ok(f"the libcuda in {folders[0]} is fit for this driver")
    message = f"{VARIABLE}: {'; '.join(faults.values())}"
    note = "also where an image or a job script sets it"
    remedy = typed(without_folders(facts, faults) or f"unset {VARIABLE}", note=note)
    return (error if torch_fails(facts) else warning)(message, remedy, VARIABLE)


def _has(folder: str, word: str) -> bool:
    return any(part == word or part.endswith(f"-{word}") for part in folder.split("/"))


def _unfit(facts: Facts, folder: str) -> str | None:
    """Why a compatibility package's libcuda does not fit this machine; None if it may be needed."""
    named = re.compile(rf"{re.escape(folder)}/libcuda\.so\.(\d{{3,}}\.[\d.]+)")
    release = next((match[1] for path in facts.libraries.cuda_drivers if (match := named.fullmatch(path))), None)
    driver = number(facts.driver.kernel_version or facts.driver.version)
    what = f"{folder} has the libcuda of a compatibility package{f' ({release})' if release else ''}"
    if any(consumer(gpu) for gpu in facts.gpus):
        return f"{what}, which consumer GPUs do not support"
    newer = number(release)
    if newer and driver and newer[0] <= driver[0]:
        return f"{what}, which is not newer than the driver ({facts.driver.kernel_version or facts.driver.version})"
    if torch_fails(facts):
        return f"{what}, and torch can use no GPU with it"
    return None


def torch_fails(facts: Facts) -> bool:
    """A torch that is built for CUDA can use none of the GPUs, and Fabric Manager is not the reason."""
    waits = cause(facts, "libraries.devices") == "fabric_not_ready" or hidden(facts)
    return facts.libraries.cuda is not None and not facts.libraries.device_count and not waits
