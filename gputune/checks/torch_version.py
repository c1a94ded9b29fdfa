"""Is torch installed, in a version that gputune supports?

gputune measures and tunes torch 2.4 and newer. Older versions have other flags, fused optimizers and attention kernels,
so its advice may not hold there. It examines the torch of its own interpreter, or of the one that `--python` names.

Source: PyTorch's release notes.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, error, ok, unknown, unread, warning
from gputune.checks._questions import gap, number
from gputune.checks._remedies import pip, python_of, torch_build, torch_index, typed
from gputune.checks.cache_folders import other_folders

OLDEST = (2, 4)


def check(facts: Facts, measurements: Measurements) -> Findings:
    version = facts.libraries.torch
    release = number(version)
    if version is None:
        yield _missing(facts)
    elif release is None:
        yield unknown(f"torch's version {version!r} is not a number")
    elif release < OLDEST:
        message = f"torch {version} is older than 2.4, the oldest version that gputune supports"
        yield warning(message, _install(facts, "--upgrade torch", "with torchvision and torchaudio, if you use them"))
    else:
        yield ok(f"torch {version}")


def _missing(facts: Facts) -> Finding:
    why = gap(facts, "libraries.torch")
    python = facts.libraries.executable or "this Python"
    if why and why.cause == "not_installed":
        remedy = _install(facts, "torch", "or name the Python that has it: gputune check --python PATH")
        return warning(f"torch is not installed in {python}", remedy)
    if why and why.cause in ("import_failed", "killed"):
        return error(f"torch cannot be imported: {why.reason}", _importable(facts), fact=why.fact)
    return unread(facts, "libraries.torch", "torch's version")


def _importable(facts: Facts) -> str:
    """Some of what torch imports needs a folder for temporary files at once; without one, it is whole but for that."""
    if closed := [folder for folder in facts.process.folders if folder.variable == "TMPDIR" and not folder.writable]:
        return other_folders(facts, closed)
    note = f"first {python_of(facts)} -c 'import torch' shows the whole error"
    return _install(facts, "--force-reinstall torch", note)


def _install(facts: Facts, what: str, note: str) -> str:
    return typed(f"{pip(facts)} install {what}{torch_index(torch_build(facts))}", note=note)
