"""Which settings may be tried, by the machine, the user's words and a profile; the program is not known yet. Pure."""

from collections.abc import Collection

from gputune import knobs
from gputune.advice.omp_threads import own as own_threads
from gputune.benches.dataset import MOST_WORKERS, WAITING_FACTOR
from gputune.facts import Facts
from gputune.knobs import LEVELS, Need, Numerics, Value, load, names, omp_threads
from gputune.knobs.dataloader_prefetch_factor import HELD, PREFETCH, SHARE
from gputune.live.orders import LoaderDescribed
from gputune.profile import Profile
from gputune.search.combination import level as level_of
from gputune.search.combination import traits
from gputune.search.workers import per_cpu

OF_PROGRAMS: frozenset[Need] = frozenset({"images", "attention", "training", "inference"})
"""The needs that a program has or has not, whatever the machine."""

WAITS = 0.05
"""The share of its time that a step waits for data from which on the loader is tuned."""


def candidates(
    facts: Facts, device: str, *, level: Numerics = "mixed", only: Collection[str] = (), profile: Profile | None = None
) -> dict[str, Value]:
    """By setting, the value to try. `device` is cuda or cpu; `only` names the settings that may change, or is empty.

    A profile leaves out what it refused for another reason than speed: a format that the hardware lacks, or whose
    errors are too large.
    """
    has = OF_PROGRAMS | _needs_met(facts, device)
    chosen = {name: choice.value for name, choice in profile.settings.items()} if profile else {}
    values = {name: traits(name).candidate for name in names() if not _refused(profile, name)}
    values["omp_threads"] = _threads(facts, chosen.get("omp_threads"))
    if "sdpa_backend" in values:
        values["sdpa_backend"] = chosen.get("sdpa_backend") or values["sdpa_backend"]
    return {
        name: value
        for name, value in values.items()
        if value is not None
        and (not only or name in only)
        and level_of(name) <= LEVELS.index(level)
        and has.issuperset(traits(name).needs)
    }


def _needs_met(facts: Facts, device: str) -> set[str]:
    if device == "cpu":
        return {"cpu", "bfloat16"} if facts.precision.cpu_bfloat16 else {"cpu"}
    return {"gpu"}.union(*(gpu.tensor_core_dtypes for gpu in facts.gpus))


def _threads(facts: Facts, chosen: Value) -> int | None:
    """The number of threads to try beside torch's own: the profile's choice, as many as there are CPUs if torch starts
    more, or else half of them. None if the user has decided.
    """
    if set(omp_threads.NAMES) & set(facts.environment):
        return None
    own, budget = own_threads(facts), facts.cpu.budget
    found = chosen if isinstance(chosen, int) else min(own // 2, budget) if own <= budget else budget
    return found if 1 <= found != own else None


def _refused(profile: Profile | None, name: str) -> bool:
    """Whether a measured choice of the profile's is torch's default although it gains."""
    choice = profile.settings.get(name) if profile else None
    if choice is None or choice.unmeasured or choice.provisional or choice.gain is None or choice.interval is None:
        return False
    return knobs.is_default(load(name), choice.value) and choice.interval[0] > 1.03


def most_workers(facts: Facts, loader: LoaderDescribed, ranks: int) -> int:
    """The most workers that are tried in each of so many ranks of this machine: by CPUs, batches of an epoch, and the
    batches that /dev/shm holds.
    """
    cpus = max(1, facts.cpu.budget // ranks)
    most = min(MOST_WORKERS, round(max(WAITING_FACTOR, per_cpu(facts.cpu)) * cpus), loader.batches or MOST_WORKERS)
    shm = facts.memory.shm_free_bytes
    if shm is not None and loader.batch_bytes:
        batches = SHARE * shm / loader.batch_bytes / ranks
        most = min(most, int((batches - HELD) // PREFETCH))
    return max(0, most)
