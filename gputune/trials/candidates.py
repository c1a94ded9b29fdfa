"""Which settings may be tried, by the machine, the user's words and a profile; the program is not known yet. Pure."""

from collections.abc import Collection

from gputune import knobs
from gputune.advice.omp_threads import own as own_threads
from gputune.facts import Facts
from gputune.knobs import LEVELS, Numerics, Value, load, omp_threads
from gputune.profile import Profile

TRIED: dict[str, Value] = {
    "matmul_precision": "tf32",
    "amp_dtype": "bfloat16",
    "channels_last": True,
    "fused_optimizer": True,
    "inference_mode": True,
    "cudnn_benchmark": True,
    "sdpa_backend": "flash",
    "compile": True,
    "dataloader_workers": 1,
}
"""The settings that can be switched between two steps, and the value that is tried of each beside torch's default. The
number of workers is searched where a step waits for data."""
OF_GPUS = ("matmul_precision", "cudnn_benchmark", "sdpa_backend")


def candidates(
    facts: Facts, device: str, *, level: Numerics = "mixed", only: Collection[str] = (), profile: Profile | None = None
) -> dict[str, Value]:
    """By setting, the value to try. `device` is cuda or cpu; `only` names the settings that may change, or is empty.

    A profile leaves out what it refused for another reason than speed: a format that the hardware lacks, or whose
    errors are too large.
    """
    found = {
        name: value
        for name, value in TRIED.items()
        if (not only or name in only)
        and LEVELS.index(load(name).NUMERICS) <= LEVELS.index(level)
        and _works(facts, device, name)
        and not _refused(profile, name)
    }
    threads = _threads(facts, profile) if device == "cpu" and LEVELS.index(level) >= LEVELS.index("rounding") else None
    if threads and (not only or "omp_threads" in only):
        found["omp_threads"] = threads
    backend = profile.settings["sdpa_backend"].value if profile and "sdpa_backend" in profile.settings else None
    if "sdpa_backend" in found and backend:
        found["sdpa_backend"] = backend
    return found


def _works(facts: Facts, device: str, name: str) -> bool:
    if device == "cpu":
        return name not in OF_GPUS and (name != "amp_dtype" or facts.precision.cpu_bfloat16)
    dtypes = {dtype for gpu in facts.gpus for dtype in gpu.tensor_core_dtypes}
    needed = {"matmul_precision": "tf32", "amp_dtype": "bfloat16"}.get(name)
    return needed is None or needed in dtypes


def _threads(facts: Facts, profile: Profile | None) -> int | None:
    """The count of threads to try beside torch's own: the profile's, as many as there are CPUs where torch starts more,
    or else half of it. None where the user has decided.
    """
    if set(omp_threads.NAMES) & set(facts.environment):
        return None
    chosen = profile.settings["omp_threads"].value if profile and "omp_threads" in profile.settings else None
    own, budget = own_threads(facts), facts.cpu.budget
    found = chosen if isinstance(chosen, int) else min(own // 2, budget) if own <= budget else budget
    return found if 1 <= found != own else None


def _refused(profile: Profile | None, name: str) -> bool:
    """Whether a measured choice of the profile's is torch's default although it gains."""
    choice = profile.settings.get(name) if profile else None
    if choice is None or choice.unmeasured or choice.provisional or choice.gain is None or choice.interval is None:
        return False
    return knobs.is_default(load(name), choice.value) and choice.interval[0] > 1.03
