"""A probe goes on past a bench that fails, says what is missing, and refuses what it cannot do in one line."""

from dataclasses import asdict, replace

import pytest
import stand_in
from making import row
from recorded import RecordedHost, facts_of

from gputune import benches, probing
from gputune.bench_process import MatmulShape, UserDataset
from gputune.bench_process.process import BenchFailed
from gputune.errors import MeasureError, UsageError
from gputune.facts.gap import Gap
from gputune.host import Unreadable
from gputune.probing import Request
from gputune.probing.plan import Job, plan
from gputune.probing.running import Place, _condensed, measure


@pytest.mark.slow
def test_a_quick_probe_of_the_cpu_gives_every_setting_and_a_reason():
    seen = []
    profile = probing.probe(Request(device="cpu", budget="quick", only=["precision"]), progress=seen.append)
    assert {row.bench for row in profile.measurements} == {"precision"}
    assert seen[0].bench == "precision"
    first, *others = profile.measurements
    assert first.conditions["other_cpus"] >= 0
    assert not any("other_cpus" in row.conditions for row in others)
    assert profile.settings["dataloader_workers"].reason == "not measured in this run's budget"
    assert all(choice.reason for choice in profile.settings.values())
    assert profile.fingerprint.gpu is None
    assert profile.fingerprint.cpu_budget >= 1


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"device": "cuda"}, MeasureError, "torch sees no GPU"),
        ({"device": "cuda:7"}, MeasureError, "torch sees no GPU"),
        ({"device": "tpu"}, UsageError, "there is no such device"),
        ({"device": "cuda:\N{SUPERSCRIPT TWO}"}, UsageError, "there is no such device"),
        ({"device": "cuda:x"}, UsageError, "there is no such device"),
        ({"budget": "endless"}, UsageError, "choose from quick, standard, thorough"),
        ({"only": ["nonsense"]}, UsageError, "there is no such bench"),
        ({"only": ["dataset"]}, UsageError, "^--only dataset: measures what --dataset names; "),
        ({"only": ["matmul_shapes"]}, UsageError, "^--only matmul_shapes: measures what --shapes names; "),
        ({"only": ["batch_size"]}, UsageError, "^--only batch_size: is no part of a probe; "),
    ],
)
def test_what_cannot_be_is_refused(arguments, error, words):
    with pytest.raises(error, match=words) as refused:
        probing.probe(Request(**arguments), host=RecordedHost("cpu-only"))
    assert refused.value.remedy


def test_a_device_is_chosen_among_those_torch_sees():
    eight = facts_of("nvidia-h200-x8")
    assert probing.device_of(eight, "auto") == "cuda:0"
    assert probing.device_of(eight, "cuda") == "cuda:0"
    assert probing.device_of(eight, "cuda:7") == "cuda:7"
    with pytest.raises(MeasureError, match="torch sees 8 GPUs"):
        probing.device_of(eight, "cuda:8")


def test_without_any_measurement_there_is_no_profile():
    with pytest.raises(MeasureError, match="torch did not answer"):
        probing.probe(Request(device="cpu"), host=RecordedHost("cpu-only", torch=Unreadable("torch did not answer")))


@pytest.fixture
def workers_with(monkeypatch, tmp_path):
    """A function that gives workers benches of these bodies, and a torch that is none."""

    def plant(**bodies):
        stand_in.torch(tmp_path)
        monkeypatch.setenv("PYTHONPATH", stand_in.benches(tmp_path, **bodies))

    return plant


@pytest.mark.slow
def test_a_bench_that_fails_is_a_gap_and_the_rest_is_written(workers_with):
    workers_with(precision="os._exit(9); yield", cpu_threads="yield told('cpu_threads')")
    profile = probing.probe(Request(device="cpu", budget="quick", only=["precision", "cpu_threads"]))
    assert {row.bench for row in profile.measurements} == {"cpu_threads"}
    assert [gap.fact for gap in profile.gaps if gap.fact.startswith("bench")] == ["bench.precision"]
    assert "exit code 9" in next(gap.reason for gap in profile.gaps if gap.fact == "bench.precision")


@pytest.mark.slow
def test_after_an_exception_too_the_next_bench_gets_a_fresh_worker(workers_with):
    """What an exception leaves behind, a broken CUDA context above all, must not fail the next bench."""
    workers_with(
        precision="os.environ['BROKEN'] = '1'; raise RuntimeError('an illegal memory access'); yield",
        cpu_threads="assert 'BROKEN' not in os.environ\nyield told('cpu_threads')",
    )
    profile = probing.probe(Request(device="cpu", budget="quick", only=["cpu_threads", "precision"]))
    assert {row.bench for row in profile.measurements} == {"cpu_threads"}
    assert "an illegal memory access" in next(gap.reason for gap in profile.gaps if gap.fact == "bench.precision")


@pytest.mark.slow
def test_after_code_of_the_user_the_next_bench_gets_a_fresh_worker(workers_with, tmp_path):
    """A training script may set any flag where it is imported."""
    (tmp_path / "data.py").write_text("import os\nos.environ['LEFT'] = '1'\ndef data(): raise KeyError('no bucket')\n")
    workers_with(cpu_threads="assert 'LEFT' not in os.environ\nyield told('cpu_threads')")
    asked = UserDataset(path=f"{tmp_path}/data.py:data")
    profile = probing.probe(Request(device="cpu", budget="quick", only=["dataset", "cpu_threads"], dataset=[asked]))
    assert {row.bench for row in profile.measurements} == {"cpu_threads"}
    assert "no bucket" in next(gap.reason for gap in profile.gaps if gap.fact == "bench.dataset")


def planned(**asked):
    return [(job.bench, job.seconds) for job in plan("cpu", Request(**asked))]


def test_a_bench_without_time_in_the_budget_gets_some_when_it_is_named():
    assert planned(budget="quick", only=["conv"]) == [("conv", benches.seconds("conv", "cpu", "standard"))]
    assert [name for name, _ in planned(budget="quick")] == ["precision", "matmul_alignment"]


def test_a_bench_of_what_the_user_names_is_there_only_then():
    assert "matmul_shapes" not in dict(planned(budget="thorough"))
    assert "matmul_shapes" in dict(planned(budget="quick", shapes=[MatmulShape(m=8, n=8, k=8)]))


def test_what_the_user_names_gets_the_time_of_each():
    shapes = [MatmulShape(m=8, n=8, k=8)] * 3
    assert dict(planned(budget="quick", shapes=shapes))["matmul_shapes"] == 3 * benches.seconds(
        "matmul_shapes", "cpu", "quick"
    )


@pytest.mark.slow
def test_a_benchs_own_gap_arrives_beside_what_it_measured():
    shapes = [MatmulShape(m=64, n=64, k=64, dtype=dtype) for dtype in ("tf32", "float32")]
    asked = Request(device="cpu", budget="quick", only=["matmul_shapes"], shapes=shapes)
    profile = probing.probe(asked, host=RecordedHost("cpu-only"))
    assert {row.params["shape"] for row in profile.measurements} == {"64 x 64 x 64 float32"}
    assert [gap.reason for gap in profile.gaps if gap.fact == "bench.matmul_shapes"] == [
        "64 x 64 x 64 tf32: this device has no native tf32"
    ]


def test_of_a_bench_that_died_what_others_used_is_not_told():
    """The worker took the count of what its own children used along."""

    class Dying:
        def run(self, request):
            yield {"measurement": {**asdict(row("precision", "throughput", 1.0)), "samples": [1.0]}}
            raise BenchFailed("was killed")

    class Busy:
        def start(self):
            pass

        def others(self):
            return 1.5

    job = Job("precision", 1.0, "quick", {})
    [left], gaps = measure(Dying(), Place(facts_of("cpu-only"), "cpu", Busy()), [job], print)
    assert left.conditions == {}
    assert gaps == [Gap(fact="bench.precision", reason="was killed")]


def test_what_holds_for_a_whole_bench_stands_in_its_first_row_only():
    """NVML lists a process that has ended for a moment more, so that the most of them would be too many."""
    seen = [
        {"power_watts": watts, "pcie_generation": 5.0, "gpu_processes": processes, "other_sm_percent": share}
        for watts, processes, share in ((300.0, 2.0, 0.0), (400.0, 1.0, 30.0), (350.0, 1.0, 10.0))
    ]
    rows = [replace(row("precision", "throughput", 1.0), conditions=conditions) for conditions in seen]
    first, *others = _condensed(rows, 0.4)
    of_all = {"pcie_generation": 5.0, "gpu_processes": 1.0, "other_sm_percent": 30.0, "other_cpus": 0.4}
    assert first.conditions == {"power_watts": 300.0, **of_all}
    assert [one.conditions for one in others] == [{"power_watts": 400.0}, {"power_watts": 350.0}]
    assert "other_cpus" not in _condensed(rows, None)[0].conditions, "where it cannot be told"
    assert _condensed([], 0.4) == []


def test_a_named_bench_of_what_the_user_names_needs_it_too():
    assert planned(only=["matmul_shapes"]) == []
    assert [name for name, _ in planned(only=["matmul_shapes"], shapes=[MatmulShape(m=8, n=8, k=8)])] == [
        "matmul_shapes"
    ]


@pytest.mark.parametrize(
    ("name", "remedy"), [("dataset", "add --dataset FILE.py:CALLABLE"), ("batch_size", "use gputune batch-size")]
)
def test_a_bench_that_needs_a_name_says_how_to_give_it(name, remedy):
    with pytest.raises(UsageError) as refused:
        probing.probe(Request(only=[name]), host=RecordedHost("cpu-only"))
    assert refused.value.remedy == remedy


@pytest.mark.slow
def test_a_dataset_that_is_named_reaches_the_bench_in_the_worker_as_it_was_asked_for(workers_with):
    workers_with(
        dataset="for one in context.dataset:\n"
        "    yield told('dataset', one.step_ms, path=one.path, batch=one.batch_size, type=type(one).__name__)"
    )
    asked = UserDataset(path="train.py:data", batch_size=64, step_ms=2.5)
    profile = probing.probe(Request(device="cpu", budget="quick", only=["dataset"], dataset=[asked]))
    [told] = profile.measurements
    assert told.params == {"path": "train.py:data", "batch": 64, "type": "UserDataset"}
    assert told.samples == (2.5,)


@pytest.mark.real
def test_a_dataset_is_loaded_and_advised_on(tmp_path):
    (tmp_path / "data.py").write_text(
        "import time, torch\n"
        "class Slow(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4096\n"
        "    def __getitem__(self, index): time.sleep(0.001); return torch.zeros(8)\n"
    )
    asked = UserDataset(path=f"{tmp_path}/data.py:Slow", batch_size=8)
    profile = probing.probe(Request(device="cpu", budget="quick", only=["dataset"], dataset=[asked]))
    assert [gap for gap in profile.gaps if gap.fact.startswith("bench")] == []
    assert {row.params["batch"] for row in profile.measurements if "batch" in row.params} == {8}
    choice = profile.settings["dataloader_workers"]
    assert choice.evidence == ("dataset",)
    assert choice.value >= 1, choice.reason
    assert "for each batch of 8" in choice.reason
