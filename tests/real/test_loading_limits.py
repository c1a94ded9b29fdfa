"""`gputune probe --dataset` within real limits of CPU time, of shared memory and of memory: what it recommends keeps to
them, and what they do to a worker does not happen to gputune.

`pytest -m real` runs them; they need root and cgroup v1 hierarchies that can be written to. Only ratios of one run are
compared, taken in turn: the CPUs may be shared with others.
"""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from making import command, environ

pytestmark = pytest.mark.real

MIB = 1 << 20
REAL = Path(__file__).parent
DATASETS = REAL / "hard_datasets.py"
HELD = 2
"""Batches beside those in flight: the one that the consumer holds, and the one that replaces it."""


def probed(words, dataset, to, only="dataset"):
    """The profile, as data, of a probe of one of the DATASETS that ran behind these words."""
    options = ["--device", "cpu", "--dataset", f"{DATASETS}:{dataset}", "--only", only, "-o", str(to), "--json"]
    result = command([*words, sys.executable, "-m", "gputune", "probe", *options])
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return json.loads(result.stdout)


def scripted(words, script, *arguments, **variables):
    """The JSON that a plain script beside this file wrote, started behind these words."""
    result = command([*words, sys.executable, str(REAL / script), *map(str, arguments)], environ(**variables))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def values(profile):
    return {name: choice["value"] for name, choice in profile["settings"].items()}


@pytest.mark.sampled(3)
@pytest.mark.timed
@pytest.mark.parametrize(("cpus", "dataset"), [(0.5, "python"), (1, "operators"), (2, "operators")])
def test_in_a_quota_loading_keeps_to_it_and_is_stopped_no_longer_than_without_workers(cgroup, tmp_path, cpus, dataset):
    """Turns of the same arguments differ by what those without workers do, and by one of the quota's ten periods a
    second, within which a turn may begin and end. The share of the periods tells nothing: in one CPU a single thread
    that never waits was stopped for a moment in all of them or in none, by chance. Two workers show what too many would
    do.
    """
    to = tmp_path / "profile.yaml"
    profile = probed(cgroup(cpus=cpus).words, dataset, to)
    budget = max(1, int(cpus))
    assert profile["fingerprint"]["cpu_budget"] == budget
    assert values(profile)["dataloader_workers"] <= budget
    threads = values(profile)["omp_threads"]
    assert threads is None or threads <= budget

    group = cgroup(cpus=cpus)
    variables = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    counts = [0, 2] if cpus <= 1 else [0]
    turns = scripted([], "loading_in_turn.py", to, f"{DATASETS}:{dataset}", group.cpu, *counts, **variables)
    tolerance = max(turns["0"]) - min(turns["0"]) + 0.1
    allowed = median(turns["0"]) + tolerance
    assert median(turns["recommended"]) <= allowed, turns
    assert cpus > 1 or max(turns["2"]) > allowed, turns


@pytest.mark.exhaustive
def test_on_one_cpu_of_the_affinity_there_is_no_more_to_load_with(cgroup, tmp_path):
    profile = probed([*cgroup().words, "taskset", "-c", "0"], "python", tmp_path / "profile.yaml")
    assert profile["fingerprint"]["cpu_budget"] == 1
    assert values(profile)["dataloader_workers"] <= 1
    assert values(profile)["omp_threads"] in (None, 1)


def shared_memory(group, mebibytes):
    """The words that put a command into a group and give it a /dev/shm of its own of this size."""
    mount = f'mount -t tmpfs -o size={mebibytes}m shm /dev/shm && exec "$@"'
    return [*group.words, "unshare", "-m", "sh", "-c", mount, "sh"]


def loading_error(group, mebibytes, dataset, need):
    """The error of a plain DataLoader within so much of /dev/shm; empty where it works."""
    return scripted(shared_memory(group, mebibytes), "loading_plainly.py", f"{DATASETS}:{dataset}", *need)["error"]


NEED = re.compile(r"best setting for the measured dataset, (\d+) workers? x (\d+) batch\w* .* needs (\d+) MiB")


def needed(profile):
    """Workers, prefetch_factor and MiB of /dev/shm, as the shm_size finding names them; None where it names none."""
    finding = next(one for one in profile["findings"] if one["check"] == "shm_size")
    said = NEED.search(finding["message"])
    if said is None:
        return None
    assert re.search(rf"\b{said[3]}[mM]", finding["remedy"]), finding
    return tuple(map(int, said.groups()))


def fits_64_mib(profile):
    """Whether the recommended setting fits into 64 MiB of /dev/shm, with batches of 16 MiB."""
    assert [gap for gap in profile["gaps"] if gap["fact"].startswith("bench.")] == []
    chosen = values(profile)
    workers = chosen["dataloader_workers"]
    return not workers or (workers * (chosen["dataloader_prefetch_factor"] or 2) + HELD) * 16 <= 64


@pytest.fixture(scope="module")
def run_in_64_mib(cgroup_of_file, tmp_path_factory):
    """A function: the profile of a dataset's probe with 64 MiB of /dev/shm, which is made once."""

    @cache
    def run(dataset):
        return probed(shared_memory(cgroup_of_file(), 64), dataset, tmp_path_factory.mktemp("probe") / "p.yaml")

    return run


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dataset", ["computed_16_mib", "awaited_16_mib"])
def test_in_64_mib_of_shared_memory_no_run_ends_in_an_error(run_in_64_mib, dataset):
    profile = run_in_64_mib(dataset)
    assert fits_64_mib(profile)
    if need := needed(profile):
        workers, ahead, mebibytes = need
        assert mebibytes == -(-(workers * ahead + HELD) * 16 * 10 // 9)  # of which a tenth is kept free


@pytest.mark.exhaustive
def test_shared_memory_of_exactly_the_size_that_was_named_holds_the_best_setting(cgroup, run_in_64_mib):
    profile = run_in_64_mib("awaited_16_mib")
    assert fits_64_mib(profile)
    workers, ahead, mebibytes = needed(profile)
    groups = [(cgroup(), size) for size in (mebibytes, 64)]
    with ThreadPoolExecutor() as pool:
        enough, too_little = pool.map(lambda one: loading_error(*one, "awaited_16_mib", (workers, ahead)), groups)
    assert enough == ""
    assert re.search("[Bb]us error|shared memory", too_little)


def test_where_shared_memory_does_not_hold_one_batch_there_are_no_workers_and_the_size_is_named(cgroup, tmp_path):
    profile = probed(shared_memory(cgroup(), 64), "awaited_100_mib", tmp_path / "profile.yaml")
    assert values(profile)["dataloader_workers"] == 0
    workers, ahead, mebibytes = needed(profile)
    assert mebibytes == -(-(workers * ahead + HELD) * 100 * 10 // 9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dataset", "killed"),
    [("growing", "a worker was killed by SIGKILL"), ("grown", "the bench process was killed by SIGKILL")],
)
def test_what_the_oom_killer_ends_is_said_and_the_rest_is_measured(cgroup, tmp_path, dataset, killed):
    """A DataLoader's worker, and the process that measures."""
    group = cgroup(memory_bytes=1024 * MIB)
    profile = probed(group.words, dataset, tmp_path / "profile.yaml", only="dataset,cpu_threads")
    assert group.oom_kills > 0
    [gap] = [gap for gap in profile["gaps"] if gap["fact"] == "bench.dataset"]
    assert gap["reason"].startswith(killed)
    assert gap["reason"].endswith(
        "the kernel's OOM killer did it, since the memory ran out: the limit here is 1024 MiB"
    )
    assert "\n" not in gap["reason"]
    assert {row["bench"] for row in profile["measurements"]} == {"cpu_threads"}


@pytest.mark.exhaustive
def test_what_is_killed_for_another_reason_is_not_said_to_be_for_memory(cgroup, tmp_path):
    group = cgroup(memory_bytes=1024 * MIB)
    profile = probed(group.words, "killing", tmp_path / "profile.yaml", only="dataset,cpu_threads")
    assert group.oom_kills == 0
    assert [gap["reason"] for gap in profile["gaps"] if gap["fact"] == "bench.dataset"] == [
        "a worker was killed by SIGKILL"
    ]
