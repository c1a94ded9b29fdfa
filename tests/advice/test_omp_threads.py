"""OpenMP threads: a number where one beats torch's own count, else none."""

from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of
from trees import CGROUP

from gputune.advice.omp_threads import recommend
from gputune.probing import recommending

HOST = facts_of("cpu-only")


def measured(default: int, **rates: float) -> list[Any]:
    return [
        row("cpu_threads", "throughput", rate, device="cpu", threads=int(name[1:]), default=int(name[1:]) == default)
        for name, rate in rates.items()
    ]


def test_fewer_threads_than_cpus_are_not_chosen_however_fast() -> None:
    """Beside other work one thread looks better, since two wait for the one whose CPU is taken."""
    choice = recommend(HOST, measured(2, t2=1.0, t1=1.44))
    assert (choice.value, choice.provisional, choice.evidence) == (None, False, ("cpu_threads",))
    assert choice.gain == pytest.approx(1.44, rel=0.01)
    assert choice.reason.startswith(
        "fewer threads than CPUs are faster only beside others: CPU matmul with 1 thread ran"
    )


def test_the_threads_of_all_cpus_are_chosen_beside_fewer_that_look_faster() -> None:
    choice = recommend(limited(), measured(64, t64=1.0, t16=1.5, t1=2.0))
    assert (choice.value, choice.gain) == (16, pytest.approx(1.5, rel=0.01))
    assert choice.reason.startswith("CPU matmul with 16 threads ran 1.5 times")


@pytest.mark.parametrize(
    ("default", "rates", "value", "reason"),
    [
        (4, {"t4": 1.0, "t8": 1.5, "t1": 0.3}, 8, "CPU matmul with 8 threads ran 1.5 times"),
        (8, {"t8": 1.0, "t4": 1.0, "t1": 0.2}, None, "no gain: "),
        (1, {"t1": 1.0}, None, "the process's own 1 is the only count"),
    ],
)
def test_more_threads_are_chosen_if_they_gain(
    default: int, rates: dict[str, float], value: int | None, reason: str
) -> None:
    choice = recommend(HOST, measured(default, **rates))
    assert choice.value == value
    assert choice.reason.startswith(reason)


def test_too_few_samples_is_not_the_only_count() -> None:
    rows = [replace(one, samples=one.samples[:3]) for one in measured(8, t8=1.0, t4=3.0)]
    choice = recommend(HOST, rows)
    assert choice.value is None
    assert "only count" not in choice.reason


@pytest.mark.parametrize("rows", [[], measured(16, t8=1.0, t4=3.0)])
def test_not_measured(rows: list[Any]) -> None:
    assert recommend(HOST, rows).value is None


def limited(torch: dict[str, Any] | None = None, quota: str = "max 100000", cpus: int = 16, **environ: str) -> Any:
    files = {f"{CGROUP}/cpu.max": quota}
    return facts_of(files=files, environ=environ, torch=torch or {"threads": cpus}, affinity=range(cpus))


SLURM = {"SLURM_JOB_ID": "7"}


@pytest.mark.parametrize(
    ("facts", "threads", "limit"),
    [
        (limited(quota="250000 100000"), 2, f"{CGROUP}/cpu.max allows 2.5 CPUs: 2 threads, where torch would start 16"),
        (limited(quota="50000 100000"), 1, f"{CGROUP}/cpu.max allows 0.5 CPUs: 1 thread, where torch would start 16"),
        (limited(LOCAL_WORLD_SIZE="4"), 4, "4 ranks share the CPUs: 4 threads, where torch would start 16"),
        (limited(**SLURM, SLURM_CPUS_PER_TASK="6"), 6, "the scheduler granted 6 CPUs: 6 threads"),
        (limited(**SLURM, SLURM_CPUS_ON_NODE="8"), 8, "the scheduler granted 8 CPUs: 8 threads"),
        (
            limited(quota="800000 100000", LOCAL_WORLD_SIZE="4"), 2,
            f"{CGROUP}/cpu.max allows 8 CPUs and 4 ranks share the CPUs: 2 threads",
        ),
    ],
    ids=["quota", "less than one CPU", "ranks", "grant", "grant of the node", "quota and ranks"],
)  # fmt: skip
def test_where_torch_would_start_more_threads_than_there_are_cpus_it_gets_as_many(facts, threads, limit) -> None:
    choice = recommend(facts, [])
    assert (choice.value, choice.gain, choice.interval, choice.evidence) == (threads, None, None, ())
    assert choice.reason.startswith(limit)
    assert choice.reason.endswith("; not measured in this run's budget")


@pytest.mark.parametrize(
    "facts",
    [
        limited(),
        limited(quota="1600000 100000"),
        limited(torch={"threads": 2}, quota="250000 100000"),
        limited(cpus=4, LOCAL_WORLD_SIZE="4", **SLURM, SLURM_CPUS_PER_TASK="4"),
    ],
    ids=["none", "quota of all", "torch starts no more", "each rank is bound to its own"],
)
def test_without_such_a_limit_it_is_left_to_torch(facts: Any) -> None:
    assert recommend(facts, []).value is None


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
@pytest.mark.parametrize("chosen", ["1", "2", "16"])
def test_a_count_that_the_user_chose_is_not_torchs_own(variable: str, chosen: str) -> None:
    facts = limited(torch={"threads": int(chosen)}, quota="250000 100000", **{variable: chosen})
    assert recommend(facts, []).value == 2
    assert recommend(limited(torch={"threads": int(chosen)}, **{variable: chosen}), []).value is None


def test_where_torch_cannot_be_asked_it_is_taken_to_start_one_for_each_core() -> None:
    assert recommend(limited(torch={"threads": None}, quota="250000 100000"), []).value == 2


def test_in_a_quota_the_measurement_decides() -> None:
    facts = limited(quota="250000 100000")
    gaining = recommend(facts, measured(16, t16=1.0, t2=3.0, t1=1.5))
    assert (gaining.value, gaining.gain) == (2, pytest.approx(3.0, rel=0.01))
    assert recommend(facts, measured(16, t16=1.0, t2=1.5, t1=3.0)).value == 1
    losing = recommend(facts, measured(16, t16=1.0, t2=0.5, t1=0.2))
    assert (losing.value, losing.gain) == (None, pytest.approx(0.5, rel=0.01))
    assert recommend(facts, measured(16, t16=1.0, t2=1.0)).value == 2


def test_in_a_quota_a_measurement_of_a_count_that_the_user_chose_does_not_speak_for_torchs_own() -> None:
    facts = limited(torch={"threads": 2}, quota="250000 100000", OMP_NUM_THREADS="2")
    assert recommend(facts, measured(2, t2=1.0, t1=0.5)).value == 2


@pytest.mark.parametrize("environ", [{"LOCAL_WORLD_SIZE": "4"}, {**SLURM, "SLURM_CPUS_PER_TASK": "4"}])
def test_what_others_will_use_is_idle_while_one_process_measures(environ: dict[str, str]) -> None:
    choice = recommend(limited(**environ), measured(16, t16=1.0, t4=0.5, t1=0.2))
    assert (choice.value, choice.gain, choice.evidence) == (4, None, ())
    assert choice.reason.endswith("; what one process measured does not speak against it")
    assert recommend(limited(**environ), measured(16, t16=1.0, t4=1.1, t1=2.0)).value == 1


def test_no_count_above_the_budget_is_a_value() -> None:
    assert recommend(limited(quota="250000 100000"), measured(16, t16=1.0, t8=5.0, t2=0.5)).value is None
    assert recommend(limited(LOCAL_WORLD_SIZE="4"), measured(16, t16=1.0, t8=5.0, t4=0.5)).value == 4


def test_a_limit_holds_beside_others_too() -> None:
    rows = [replace(one, conditions={"other_cpus": 60.0}) for one in measured(64, t64=1.0, t8=3.0, t4=2.0)]
    choice = recommending.choices(limited(quota="800000 100000", cpus=64), rows)["omp_threads"]
    assert (choice.value, choice.provisional) == (8, True)
