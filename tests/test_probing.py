"""A probe goes on past a bench that fails, says what is missing, and refuses what it cannot do in one line."""

import os

import pytest
from recorded import RecordedHost, facts_of

from gputune import benches, probing
from gputune.errors import MeasureError, UsageError
from gputune.host import Unreadable


def test_a_quick_probe_of_the_cpu_gives_every_setting_and_a_reason():
    seen = []
    profile = probing.probe(device="cpu", budget="quick", only=["precision"], progress=seen.append)
    assert {row.bench for row in profile.measurements} == {"precision"}
    assert seen[0].bench == "precision"
    assert profile.settings["dataloader_workers"].reason == "not measured in this run"
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
    ],
)
def test_what_cannot_be_is_refused(arguments, error, words):
    with pytest.raises(error, match=words) as refused:
        probing.probe(**arguments, host=RecordedHost("cpu-only"))
    assert refused.value.remedy


def test_a_device_is_chosen_among_those_torch_sees():
    eight = facts_of("nvidia-h200-x8")
    assert probing._device(eight, "auto") == "cuda:0"
    assert probing._device(eight, "cuda") == "cuda:0"
    assert probing._device(eight, "cuda:7") == "cuda:7"
    with pytest.raises(MeasureError, match="torch sees 8 GPUs"):
        probing._device(eight, "cuda:8")


def test_without_any_measurement_there_is_no_profile():
    with pytest.raises(MeasureError, match="torch did not answer"):
        probing.probe(device="cpu", host=RecordedHost("cpu-only", torch=Unreadable("torch did not answer")))


def test_a_bench_that_fails_is_a_gap_and_the_rest_is_written(monkeypatch, tmp_path):
    """The DataLoader bench is made to fail in the worker by a dataset folder that cannot be imported there."""
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "import gputune.benches as b\n"
        "real = b.load\n"
        "class Broken:\n"
        "    def measure(self, context):\n"
        "        import os; os._exit(9); yield\n"
        "b.load = lambda name: Broken() if name == 'cpu_threads' else real(name)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"))
    profile = probing.probe(device="cpu", budget="quick", only=["cpu_threads", "precision"])
    assert {row.bench for row in profile.measurements} == {"precision"}
    assert [gap.fact for gap in profile.gaps if gap.fact.startswith("bench")] == ["bench.cpu_threads"]
    assert "exit code 9" in next(gap.reason for gap in profile.gaps if gap.fact == "bench.cpu_threads")


def test_after_an_exception_too_the_next_bench_gets_a_fresh_worker(monkeypatch, tmp_path):
    """What an exception leaves behind, a broken CUDA context above all, must not fail the next bench."""
    (tmp_path / "sitecustomize.py").write_text(
        "import gputune.benches as b, os\n"
        "real = b.load\n"
        "class Broken:\n"
        "    def measure(self, context):\n"
        "        os.environ['BROKEN'] = '1'; raise RuntimeError('an illegal memory access'); yield\n"
        "class Whole:\n"
        "    def measure(self, context):\n"
        "        assert 'BROKEN' not in os.environ\n"
        "        return real('cpu_threads').measure(context)\n"
        "b.load = lambda name: {'precision': Broken(), 'cpu_threads': Whole()}.get(name) or real(name)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"))
    profile = probing.probe(device="cpu", budget="quick", only=["cpu_threads", "precision"])
    assert {row.bench for row in profile.measurements} == {"cpu_threads"}
    assert "an illegal memory access" in next(gap.reason for gap in profile.gaps if gap.fact == "bench.precision")


def test_a_bench_without_time_in_the_budget_gets_some_when_it_is_named():
    assert probing._plan("cpu", "quick", ["conv"]) == [("conv", benches.seconds("conv", "cpu", "standard"))]
    assert [name for name, _ in probing._plan("cpu", "quick", benches.names())] == benches.names()
    assert [name for name, _ in probing._plan("cpu", "quick", [])] == ["precision", "matmul_alignment"]
