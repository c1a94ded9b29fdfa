"""The CPUs that one process may use: affinity, quota and grant, shared by its ranks; and sets of CPUs as text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of
from trees import CGROUP, grow, v1, v2

from gputune.facts import cpu, cpu_list
from gputune.facts.gap import Gaps
from gputune.host import Unreadable
from gputune.resources.scheduler import Scheduler

V1 = {"a/cpu.cfs_quota_us": "250000\n", "a/cpu.cfs_period_us": "100000\n"}
OF_AN_ANCESTOR = {"a/b/cpu.max": "400000 100000", "a/cpu.max": "150000 100000", "cpu.max": "max 100000"}


@pytest.mark.parametrize(
    ("files", "quota", "source"),
    [
        (v2("/a", {"a/cpu.max": "50000 100000\n"}), 0.5, "a/cpu.max"),
        (v1("cpu", "/a", V1), 2.5, "cpu/a/cpu.cfs_quota_us"),
        (v1("cpu,cpuacct", "/a", V1, unified=True), 2.5, "cpu,cpuacct/a/cpu.cfs_quota_us"),
        (v2("/a/b", OF_AN_ANCESTOR), 1.5, "a/cpu.max"),
    ],
    ids=["v2", "v1", "hybrid", "the tightest is an ancestor's"],
)
def test_a_quota_and_the_file_that_sets_it(tmp_path, files, quota, source):
    assert cpu.quota(grow(tmp_path, files)) == (quota, f"{CGROUP}/{source}")


@pytest.mark.parametrize(
    "files",
    [
        v2("/a", {"a/cpu.max": "max 100000\n"}),
        v2("/", {}),
        v1("cpu", "/a", {"a/cpu.cfs_quota_us": "-1\n", "a/cpu.cfs_period_us": "100000\n"}),
    ],
)
def test_no_quota(tmp_path, files):
    assert cpu.quota(grow(tmp_path, files)) is None


@pytest.mark.parametrize(
    "text",
    ["", "50000", "50000 0", "0 100000", "-5 100000", "-1", "-1 100000", "1_0 100000", "many 100000", "9" * 400 + " 1"],
)
def test_a_quota_that_makes_no_sense_is_unreadable(tmp_path, text):
    with pytest.raises(Unreadable, match=r"cpu\.max"):
        cpu.quota(grow(tmp_path, v2("/", {"cpu.max": text})))


def test_a_v1_quota_without_its_period_is_unreadable(tmp_path):
    with pytest.raises(Unreadable, match="cfs_period_us"):
        cpu.quota(grow(tmp_path, v1("cpu", "/", {"cpu.cfs_quota_us": "50000"})))


@pytest.mark.slow
@given(st.text(alphabet="0123456789max- \n٣", max_size=40) | st.text())
@example("1" + "0" * 400 + " 1")
def test_any_text_is_a_quota_none_or_unreadable(text):
    host = RecordedHost("cpu-only", files={f"{CGROUP}/cpu.max": text})
    try:
        found = cpu.quota(host)
    except Unreadable:
        return
    assert found is None or found[0] > 0


@pytest.mark.parametrize(
    ("affinity", "quota", "grant", "ranks", "budget"),
    [
        (16, None, None, 1, 16),
        (16, 2.5, None, 1, 2),
        (16, 0.5, None, 1, 1),
        (16, 1.5, None, 1, 1),
        (16, 64.0, None, 1, 16),
        (16, None, None, 4, 4),
        (16, None, None, 32, 1),
        (16, 8.0, None, 4, 2),
        (128, None, 12, 8, 12),
        (8, None, 12, 1, 8),
        (2, None, 2, 4, 2),  # each task is bound to its own two
    ],
)
def test_the_budget_is_the_smallest_share_and_at_least_one(affinity, quota, grant, ranks, budget):
    assert cpu.budget(affinity, quota, grant, ranks) == budget


def test_a_recorded_machine():
    found = facts_of("cpu-only").cpu
    assert (found.model, found.logical_count, found.affinity_count, found.budget) == ("AMD EPYC", 2, 2, 2)


def test_a_taskset_counts():
    found = facts_of(affinity=[3, 4, 5, 9]).cpu
    assert (found.budget, found.affinity) == (4, "3-5,9")


@pytest.mark.parametrize(
    ("affinity", "environ", "budget"),
    [
        (64, {"SLURM_CPUS_ON_NODE": "8"}, 8),  # no task affinity: the whole node, of which 8 are the job's
        (64, {"SLURM_CPUS_ON_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "4"}, 2),
        (2, {"SLURM_CPUS_ON_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "4"}, 2),  # each task is bound to its own two
        (64, {"SLURM_CPUS_ON_NODE": "64", "SLURM_CPUS_PER_TASK": "6"}, 6),
        (12, {"SLURM_CPUS_PER_TASK": "12", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}, 3),
        (64, {"SLURM_CPUS_ON_NODE": "16", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}, 4),
    ],
    ids=["node", "tasks", "bound tasks", "each task's own", "torchrun in a task", "torchrun in a job"],
)
def test_slurm_s_grant_counts(affinity, environ, budget):
    assert facts_of(affinity=range(affinity), environ={"SLURM_JOB_ID": "7", **environ}).cpu.budget == budget


V2_STAT = "usage_usec 5\nnr_periods 200\nnr_throttled 50\nthrottled_usec 9\n"
V1_STAT = "nr_periods 200\nnr_throttled 50\nthrottled_time 9\n"


@pytest.mark.parametrize(
    "files",
    [
        v2("/a", {"a/cpu.max": "50000 100000", "a/cpu.stat": V2_STAT, "cpu.stat": "nr_periods 1\nnr_throttled 1\n"}),
        v1("cpu", "/a", {"a/cpu.cfs_quota_us": "50000", "a/cpu.cfs_period_us": "100000", "a/cpu.stat": V1_STAT}),
    ],
)
def test_how_often_the_group_of_the_quota_was_stopped(tmp_path, files):
    found = cpu.read(grow(tmp_path, files), Scheduler(), Gaps())
    assert (found.throttled_periods, found.quota_periods) == (50, 200)


@pytest.mark.parametrize("stat", ["", "garbage", "nr_periods 1\n", None])
def test_periods_that_cannot_be_read_are_a_gap(tmp_path, stat):
    gaps = Gaps()
    limits = {"cpu.max": "50000 100000"} | ({} if stat is None else {"cpu.stat": stat})
    assert cpu.read(grow(tmp_path, v2("/", limits)), Scheduler(), gaps).quota_periods is None
    assert "cpu.throttled_periods" in [gap.fact for gap in gaps.found]


def test_an_unreadable_quota_is_a_gap_and_not_no_quota():
    found = facts_of(files={f"{CGROUP}/cpu.max": "garbage"})
    assert found.cpu.quota is None
    assert "cpu.quota" in [gap.fact for gap in found.gaps]


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("model name\t: AMD EPYC\nflags : fma\n", "AMD EPYC"),
        ("Model : Raspberry Pi 5\n", "Raspberry Pi 5"),
        ("BogoMIPS : 2000\n", "aarch64"),
    ],
)
def test_the_processor_s_name_else_the_machine_s_architecture(cpuinfo, name):
    host = RecordedHost("cpu-only", files={"/proc/cpuinfo": cpuinfo}, architecture="aarch64")
    assert cpu_list.model(host) == name


SETS = st.frozensets(st.integers(0, 300), max_size=40)


@pytest.mark.parametrize(
    ("cpus", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 2, 4], "0,2,4"), ([9, 8, 1, 0], "0-1,8-9")]
)
def test_the_shortest_list(cpus, text):
    assert cpu_list.text(cpus) == text


@pytest.mark.slow
@given(SETS)
def test_a_list_and_a_mask_are_read_back(cpus):
    assert cpu_list.cpus(cpu_list.text(cpus)) == cpus
    words = [sum(1 << cpu % 64 for cpu in cpus if cpu // 64 == word) for word in range(5)]
    assert cpu_list.from_mask(words) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1-2-3"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        cpu_list.cpus(text)
