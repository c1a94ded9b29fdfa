"""A probe goes on past a bench that fails, says what is missing, and refuses what it cannot do in one line."""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
import stand_in
from making import row
from recorded import RecordedHost, facts_of

from gputune import probing
from gputune.advice import Choice
from gputune.bench_process import UserDataset
from gputune.bench_process.messages import Activity, BenchFailed
from gputune.errors import MeasureError, UsageError
from gputune.facts import busy
from gputune.facts.gap import Gap
from gputune.host import Unreadable
from gputune.probing import ProbeRequest
from gputune.probing.plan import plan
from gputune.probing.running import DeviceRun, with_conditions
from gputune.progress import READING


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"device": "cuda"}, MeasureError, "torch sees no GPU"),
        ({"device": "cuda:7"}, MeasureError, "torch sees no GPU"),
        ({"device": "all"}, MeasureError, "^--device all: torch sees no GPU"),
        ({"device": "tpu"}, UsageError, "there is no such device"),
        ({"device": "cuda:\N{SUPERSCRIPT TWO}"}, UsageError, "there is no such device"),
        ({"device": "cuda:x"}, UsageError, "there is no such device"),
        ({"budget": "endless"}, UsageError, "choose from quick, standard, thorough"),
        ({"only": ["nonsense"]}, UsageError, "there is no such bench"),
        ({"only": ["dataset"]}, UsageError, "--dataset names; add --dataset FILE.py:CALLABLE"),
        (
            {"only": ["matmul_shapes"]},
            UsageError,
            "^--only matmul_shapes: measures what --shapes names; add --shapes FILE",
        ),
        ({"only": ["batch_size"]}, UsageError, "^--only batch_size: is no part of a probe; use gputune batch-size"),
        ({"only": ["side_by_side"]}, UsageError, "add --device all"),
    ],
)
def test_what_cannot_be_is_refused(arguments, error, words):
    with pytest.raises(error, match=words) as refused:
        probing.probe(ProbeRequest(**arguments), host=RecordedHost("cpu-only"))
    assert refused.value.remedy


def test_a_device_is_chosen_among_those_torch_sees():
    eight = facts_of("nvidia-h200-x8")
    assert probing.device_of(eight, "auto") == "cuda:0"
    assert probing.device_of(eight, "cuda") == "cuda:0"
    assert probing.device_of(eight, "cuda:7") == "cuda:7"
    with pytest.raises(MeasureError, match="torch sees 8 GPUs"):
        probing.device_of(eight, "cuda:8")


@pytest.fixture
def plant(monkeypatch, tmp_path):
    def plant(**bodies):
        stand_in.torch(tmp_path)
        monkeypatch.setenv("PYTHONPATH", stand_in.benches(tmp_path, **bodies))

    return plant


@pytest.mark.slow
def test_without_any_measurement_there_is_no_profile(plant):
    plant()
    with pytest.raises(MeasureError, match="torch did not answer"):
        probing.probe(
            ProbeRequest(device="cpu"), host=RecordedHost("cpu-only", torch=Unreadable("torch did not answer"))
        )


@pytest.mark.slow
def test_a_probe_gives_every_setting_with_a_reason(plant):
    plant(precision="context.say('matmul')\ntime.sleep(0.3)\nyield told('precision')\nyield told('precision')")
    seen = []
    profile = probing.probe(ProbeRequest(device="cpu", budget="quick", only=["precision"]), progress=seen.append)
    assert [(one.part, one.doing) for one in seen[1:]] == [("precision", ""), ("precision", "matmul")]
    assert seen[0].part == READING
    first, second = profile.measurements
    assert first.conditions["other_cpus"] >= 0
    assert "other_cpus" not in second.conditions
    assert profile.settings["dataloader_workers"].reason == "not measured in this run's budget"
    assert all(choice.reason for choice in profile.settings.values())
    assert profile.fingerprint.gpu is None
    assert profile.fingerprint.cpu_budget >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "bodies", "reason"),
    [
        ("precision", {"precision": "os._exit(9); yield"}, "exit code 9"),
        (
            "precision",
            {"precision": "os.environ['LEFT'] = '1'; raise RuntimeError('illegal access'); yield"},
            "illegal access",
        ),
        ("dataset", {}, "no bucket"),
    ],
    ids=["death", "exception", "user code"],
)
def test_after_a_failure_the_next_bench_gets_a_fresh_process(plant, tmp_path, before, bodies, reason):
    """An exception may leave a broken CUDA context behind, and a training script any flag."""
    (tmp_path / "data.py").write_text("import os\nos.environ['LEFT'] = '1'\ndef data(): raise KeyError('no bucket')\n")
    plant(cpu_threads="assert 'LEFT' not in os.environ\nyield told('cpu_threads')", **bodies)
    dataset = [UserDataset(path=f"{tmp_path}/data.py:data")]
    profile = probing.probe(ProbeRequest(device="cpu", budget="quick", only=[before, "cpu_threads"], dataset=dataset))
    assert {row.bench for row in profile.measurements} == {"cpu_threads"}
    [gap] = [gap for gap in profile.gaps if gap.fact.startswith("bench.")]
    assert gap.fact == f"bench.{before}"
    assert reason in gap.reason


@pytest.mark.slow
def test_with_benches_asked_for_by_name_an_earlier_profile_of_this_device_keeps_the_others(plant):
    plant(precision="yield told('precision')", conv="yield told('conv')")
    request = ProbeRequest(device="cpu", budget="quick", only=["precision", "conv"])
    earlier = probing.probe(request)
    gaps = [Gap(fact=f"bench.{name}", reason="it failed") for name in ("conv.tf32", "precision")]
    earlier = replace(earlier, gaps=tuple(gaps))
    once = replace(request, only=["conv"])
    profile = probing.probe(once, earlier=earlier)
    assert [row.bench for row in profile.measurements] == ["precision", "conv"]
    assert profile.measurements[0] == earlier.measurements[0]
    assert [gap for gap in profile.gaps if gap.fact.startswith("bench.")] == gaps[1:]
    elsewhere = replace(earlier, fingerprint=replace(earlier.fingerprint, torch="2.5.0"))
    assert [row.bench for row in probing.probe(once, earlier=elsewhere).measurements] == ["conv"]


@pytest.mark.slow
def test_what_the_cached_profile_of_this_machine_chose_stands(plant):
    plant(precision="yield told('precision')")
    request = ProbeRequest(device="cpu", budget="quick", only=["precision"])
    first = probing.probe(request)
    chose = Choice(value=1, reason="one thread ran faster", evidence=("cpu_threads",))
    cached = replace(first, settings=first.settings | {"omp_threads": chose}, created="2026-11-20T00:00:00Z")
    asked = []
    second = probing.probe(request, cached=lambda here: asked.append(here) or cached)
    assert asked == [first.fingerprint]
    assert (second.settings["omp_threads"].value, second.settings["omp_threads"].since) == (1, cached.created)


@pytest.mark.slow
def test_a_benchs_own_gap_arrives_beside_what_it_measured(plant):
    plant(precision="yield Gap(fact='bench.precision', reason='no tf32'); yield told('precision')")
    profile = probing.probe(
        ProbeRequest(device="cpu", budget="quick", only=["precision"]), host=RecordedHost("cpu-only")
    )
    assert [row.bench for row in profile.measurements] == ["precision"]
    assert Gap(fact="bench.precision", reason="no tf32") in profile.gaps


class Answering:
    def __init__(self, *answers):
        self.answers = answers

    def start(self):
        """It always is ready."""

    def run(self, request):
        for answer in self.answers:
            if isinstance(answer, Exception):
                raise answer
            yield answer


def measured(*answers, facts=None):
    process, host = Answering(*answers), RecordedHost("cpu-only")
    run = DeviceRun(process=process, facts=facts or facts_of("cpu-only"), device="cpu", host=host)
    run.do(plan("cpu", ProbeRequest(only=["precision"])), lambda progress: None)
    return run


@pytest.mark.slow
def test_what_others_used_until_a_process_died_is_that_of_the_look_before(monkeypatch):
    """The times of its own children were lost with it."""
    looks = count()
    monkeypatch.setattr(busy, "read", lambda host: SimpleNamespace(at=next(looks)))
    monkeypatch.setattr(busy, "conditions", lambda before, after: {"other_cpus": after.at - before.at})
    died = BenchFailed(how="exit code", number=9)
    run = measured(row("precision", "throughput", 1.0), Activity(text="conv"), died)
    assert run.measurements[0].conditions == {"other_cpus": 1}
    assert run.gaps == [Gap(fact="bench.precision", reason=str(died))]
    assert measured(row("precision", "throughput", 1.0)).measurements[0].conditions == {"other_cpus": 1}


@pytest.mark.parametrize(
    ("counts", "more"),
    [
        ((0, 0), ""),
        ((None, None), ", as the kernel does where memory runs out"),
        ((1, 2), "; the kernel's OOM killer did it, since the memory ran out: the limit here is 1024 MiB"),
    ],
)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (BenchFailed(how="signal", number=9), "the bench process was killed by SIGKILL"),
        (Gap(fact="bench.precision", reason="a worker died", cause="killed"), "a worker died"),
    ],
)
def test_what_the_oom_killer_ended_is_told_from_what_something_else_killed(monkeypatch, counts, more, answer, reason):
    looks = iter(counts)
    monkeypatch.setattr("gputune.facts.memory.oom_kills", lambda host: next(looks))
    facts = facts_of("cpu-only")
    facts = replace(facts, memory=replace(facts.memory, limit_bytes=1 << 30))
    [gap] = measured(answer, facts=facts).gaps
    assert gap == Gap(fact="bench.precision", reason=reason + more, cause="killed")


def test_a_condition_of_the_whole_bench_is_in_its_first_row_only():
    """NVML lists a process for a moment after its end, so the highest count would be too high."""
    seen = [
        {"power_watts": watts, "pcie_generation": 5.0, "gpu_processes": processes, "other_sm_percent": share}
        for watts, processes, share in ((300.0, 2.0, 0.0), (400.0, 1.0, 30.0), (350.0, 1.0, 10.0))
    ]
    rows = [replace(row("precision", "throughput", 1.0), conditions=conditions) for conditions in seen]
    first, *others = with_conditions(rows, {"other_cpus": 0.4})
    whole = {"pcie_generation": 5.0, "gpu_processes": 1.0, "other_sm_percent": 30.0, "other_cpus": 0.4}
    assert first.conditions == {"power_watts": 300.0, **whole}
    assert [one.conditions for one in others] == [{"power_watts": 400.0}, {"power_watts": 350.0}]
    assert "other_cpus" not in with_conditions(rows, {})[0].conditions, "where it is unknown"
    assert with_conditions([], {"other_cpus": 0.4}) == []


@pytest.mark.slow
def test_a_dataset_reaches_the_bench_as_it_was_named(plant):
    plant(
        dataset="for one in context.dataset:\n"
        "    yield told('dataset', one.step_ms, path=one.path, batch=one.batch_size, type=type(one).__name__)"
    )
    dataset = UserDataset(path="train.py:data", batch_size=64, step_ms=2.5)
    profile = probing.probe(ProbeRequest(device="cpu", budget="quick", only=["dataset"], dataset=[dataset]))
    [arrived] = profile.measurements
    assert arrived.params == {"path": "train.py:data", "batch": 64, "type": "UserDataset"}
    assert arrived.samples == (2.5,)


@pytest.mark.real
@pytest.mark.timed
def test_a_dataset_is_loaded_and_advised_on(tmp_path):
    (tmp_path / "data.py").write_text(
        "import time, torch\n"
        "class Slow(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4096\n"
        "    def __getitem__(self, index): time.sleep(0.001); return torch.zeros(8)\n"
    )
    asked = UserDataset(path=f"{tmp_path}/data.py:Slow", batch_size=8)
    profile = probing.probe(ProbeRequest(device="cpu", budget="quick", only=["dataset"], dataset=[asked]))
    assert [gap for gap in profile.gaps if gap.fact.startswith("bench")] == []
    assert {row.params["batch"] for row in profile.measurements if "batch" in row.params} == {8}
    choice = profile.settings["dataloader_workers"]
    assert choice.evidence == ("dataset",)
    assert choice.value >= 1, choice.reason
    assert "for each batch of 8" in choice.reason
