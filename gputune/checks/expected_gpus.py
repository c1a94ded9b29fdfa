"""Are there as many GPUs here as this user, job or container was promised?

`gputune check --expect-gpus N` says how many there should be; without it, what Slurm or the container toolkit
(NVIDIA_VISIBLE_DEVICES) granted is held against what NVML and torch list. A job on fewer GPUs than it was granted is
slower, or fails where it addresses the missing one. `--expect-gpus 0` warns of a GPU where none should be. In a pod
or a scheduler's job `NVIDIA_VISIBLE_DEVICES=all` is no grant: it comes with the image. What gpu_lost or gpu_absent
complains of is not reported again.

Source: NVIDIA Container Toolkit, environment variables; Slurm, srun, output environment variables.
"""

from gputune.checks import Finding
from gputune.checks._answers import Facts, Findings, Measurements, counted, error, not_applicable, ok, unknown, warning
from gputune.checks._gpus import Promise, listed, promise, seen, unlisted, unseen
from gputune.checks._questions import nvidia_files
from gputune.checks._remedies import on_host, typed
from gputune.checks.gpu_lost import misses_one
from gputune.facts.visible_gpus import VARIABLE

LOOK = on_host(
    "nvidia-smi -L; sudo dmesg | grep NVRM",
    note="a GPU that is missing there too needs a reboot of the drained node, or a new card; one that is listed there "
    "was not given to this container or job: start it anew",
)


def check(facts: Facts, measurements: Measurements) -> Findings:
    fewer, promised = unseen(facts), promise(facts)
    if fewer:
        yield fewer
    if promised:
        yield _finding(facts, promised, _here(facts, promised, None if fewer else seen(facts)))
    elif not fewer:
        yield not_applicable("no number of GPUs is expected or granted")


def _here(facts: Facts, promised: Promise, by_torch: int | None) -> int | None:
    """The number of GPUs to hold against a promise; None if neither NVML nor torch gives one.
    A grant is about what the driver lists. Who expects a number means those that torch can use too.
    """
    by_nvml = listed(facts)
    torch_counts = promised.variable is None or (by_nvml is None and VARIABLE not in facts.environment)
    known = [count for count in (by_nvml, by_torch if torch_counts else None) if count is not None]
    return min(known, default=None)


def _finding(facts: Facts, promised: Promise, here: int | None) -> Finding:
    if here is None:
        return _by_files(facts, promised)
    told = f"{promised.by}, and there {'is' if here == 1 else 'are'} {counted(here, 'GPU') if here else 'none'}"
    if here < promised.count:
        return _fewer(facts, promised, told, here)
    if here > promised.count and promised.variable is None:
        remedy = typed(f"gputune check --expect-gpus {here}", note=f"if {here} is right; else give it {promised.count}")
        return warning(told, remedy)
    return ok(told)


def _fewer(facts: Facts, promised: Promise, told: str, here: int) -> Finding:
    if not facts.gpus:
        return not_applicable(f"{told}: see gpu_absent")
    if here == seen(facts) != listed(facts) and VARIABLE in facts.environment:
        message = f"{told} ({VARIABLE}={facts.environment[VARIABLE]!r})"
        return error(message, f"unset {VARIABLE}", VARIABLE)
    if misses_one(facts):
        return not_applicable(f"{told}: see gpu_lost")
    missing, short = unlisted(facts), promised.count - here
    if len(missing) == short:
        return error(f"{told}; not listed: {', '.join(missing)}", LOOK, missing[0])
    here_by_uuid = {gpu.uuid for gpu in facts.gpus}
    which = ", ".join(uuid for uuid in promised.uuids if uuid not in here_by_uuid)
    which = which or (f"{short} of {', '.join(missing)}" if missing else "")
    return error(f"{told}{f'; not listed: {which}' if which else ''}", LOOK, promised.variable)


def _by_files(facts: Facts, promised: Promise) -> Finding:
    """The finding where only the device files can be counted, which do not show that a GPU works."""
    files = len(nvidia_files(facts))
    told = f"{promised.by}, and there are {counted(files, 'device file')} of GPUs"
    if not promised.count and not files:
        return ok(f"{promised.by}, and there is none")
    if not files:
        return not_applicable(f"{told}: see gpu_absent")
    if files < promised.count:
        return error(told, LOOK, promised.variable)
    return unknown(f"{told}; neither NVML nor torch says how many can be used")
