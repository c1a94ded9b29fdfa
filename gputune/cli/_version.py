"""`gputune --version -v`: the versions that a question about gputune begins with. torch is not imported for it."""

import platform
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from gputune.facts import driver
from gputune.facts._nvml_answers import text
from gputune.facts.gap import Gaps
from gputune.facts.unimported_torch import installed_torch
from gputune.host import Host, Nvml, NvmlAbsent, Unreadable
from gputune.version import __version__


def lines(host: Host) -> Iterator[str]:
    """A line each; one for what could not be read, too. NVML answers in a process with a deadline, or not."""
    yield f"gputune {__version__} ({Path(__file__).parents[1]})"
    yield f"Python {platform.python_version()} ({sys.executable})"
    yield _torch()
    try:
        yield from _driver(host)
    finally:
        host.release()


def _torch() -> str:
    """From the files of the torch that programs of this Python import."""
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError) as error:
        return f"torch: not read: {error}"
    if spec is None:
        return "torch: none found by this Python"
    version, cuda = installed_torch()
    place = [*(spec.submodule_search_locations or ()), spec.origin][0]
    if version is None:
        return f"torch: version not found in {place}"
    return f"torch {version} ({place}), built {f'with CUDA {cuda}' if cuda else 'without CUDA'}"


def _driver(host: Host) -> Iterator[str]:
    gaps = Gaps()
    nvml, absent = _nvml(host)
    found = driver.read(host, nvml, gaps)
    kernel = f"{found.kernel_version} (kernel module)" if found.kernel_version else None
    if name := found.version or kernel:
        yield f"driver {name}, {f'CUDA up to {found.cuda}' if found.cuda else 'CUDA not read'}"
    else:
        yield "driver: none found"
    if nvml:
        version = gaps.read("NVML's version", lambda: text(nvml.system("NVMLVersion")))
        yield f"NVML {version or 'without a version'}"
    else:
        yield f"NVML: {absent.removeprefix('NVML: ')}"
    yield from (f"{gap.fact}: not read: {gap.reason}" for gap in gaps.found if gap.fact != "driver.xids")


def _nvml(host: Host) -> tuple[Nvml | None, str]:
    """NVML once it has come up, or None and why it did not."""
    try:
        nvml = host.nvml()
        nvml.count()
    except NvmlAbsent as fault:
        return None, str(fault)
    except Unreadable:  # of the count alone
        return nvml, ""
    return nvml, ""
