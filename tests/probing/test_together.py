"""All GPUs at once: a bench process each, one profile for all, and what is slow is measured again."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import making
import pytest
import stand_in
from making import serving, until
from recorded import RecordedHost, facts_of

from gputune import probing
from gputune.errors import MeasureError
from gputune.facts.gap import Gap
from gputune.probing import ProbeRequest
from gputune.probing.plan import devices_of
from gputune.probing.together import at_once
from gputune.profile import differing_settings, representative_index

pytestmark = pytest.mark.cluster

TOLD = """
def row(bench, metric, unit, sample, **params):
    samples = (float(sample),) * 12
    return Measurement(bench=bench, metric=metric, unit=unit, samples=samples, params=params, device=context.device)
number = int(context.device.partition(":")[2] or 0)
"""
"""What the bodies of benches below have."""


def steady_at(rate, before=""):
    """The body of a comparison in which each GPU has this rate, an expression, after some other lines."""
    return f"{TOLD}{before}yield row('side_by_side', 'matmul', 'TFLOP/s', {rate})"


ALIKE = steady_at("600 + number")


@pytest.fixture
def eight(monkeypatch, tmp_path):
    def measured(only=("side_by_side",), progress=lambda progress: None, **bodies):
        stand_in.torch(tmp_path)
        monkeypatch.setenv("PYTHONPATH", stand_in.benches(tmp_path, **bodies))
        asked = ProbeRequest(device="all", budget="quick", only=only)
        return probing.probe(asked, host=RecordedHost("nvidia-h200-x8"), progress=progress)

    return measured


def steady(profile):
    return [(row.device, row.params["run"]) for row in profile.measurements if row.bench == "side_by_side"]


def slow(profile):
    return [(one.severity, one.subject) for one in profile.findings if one.check == "slow_gpu" and one.severity != "OK"]


def test_every_gpu_is_measured_and_stands_in_the_profile(eight):
    profile = eight(side_by_side=ALIKE)
    assert steady(profile) == [(f"cuda:{number}", 1) for number in range(8)]
    assert slow(profile) == []
    assert (profile.fingerprint.gpu, profile.fingerprint.gpu_count) == ("NVIDIA H200", 8)
    until(lambda: not serving(str(os.getpid())), seconds=5)


def test_they_are_measured_at_the_same_time(eight, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    meet = f"open({str(here)!r} + '/' + str(number), 'w')\nwhile len(os.listdir({str(here)!r})) < 8: time.sleep(0.01)\n"
    profile = eight(side_by_side=steady_at("600", meet))
    assert len(steady(profile)) == 8


def test_a_slow_gpu_is_measured_again_with_all_and_named(eight):
    profile = eight(side_by_side=steady_at("400 if number == 5 else 600 + number"))
    assert steady(profile) == [(f"cuda:{number}", run) for number in range(8) for run in (1, 2)]
    assert slow(profile) == [("WARNING", "GPU 5")]


def test_what_was_slow_once_is_no_alarm(eight, tmp_path):
    once = f"rate = 400 if number == 5 and not os.path.exists({str(tmp_path)!r} + '/been') else 600 + number\n"
    once += f"if number == 5: open({str(tmp_path)!r} + '/been', 'w')\n"
    profile = eight(side_by_side=steady_at("rate", once))
    assert len(steady(profile)) == 16
    assert slow(profile) == []


def test_a_gpu_that_dies_is_unknown_and_a_gap_and_the_others_are_measured(eight):
    profile = eight(side_by_side=steady_at("600", "if number == 2: os._exit(9)\n"))
    assert slow(profile) == [("UNKNOWN", "GPU 2")]
    assert [gap.fact for gap in profile.gaps if "bench." in gap.fact] == ["cuda:2 bench.side_by_side"]
    assert "exit code 9" in next(gap.reason for gap in profile.gaps if "bench." in gap.fact)


def test_where_none_can_be_measured_there_is_no_profile(eight):
    with pytest.raises(MeasureError, match=r"^nothing could be measured on cuda:0, cuda:1, .*exit code 9"):
        eight(side_by_side="os._exit(9); yield")


def test_what_measures_the_host_is_run_once(eight, tmp_path):
    counted = f"open({str(tmp_path)!r} + '/runs', 'a').write('x')\n"
    profile = eight(
        ["side_by_side", "cpu_threads"], side_by_side=ALIKE, cpu_threads=TOLD + counted + "yield told('cpu_threads')"
    )
    assert (tmp_path / "runs").read_text() == "x"
    assert [row.bench for row in profile.measurements if row.bench != "side_by_side"] == ["cpu_threads"]


def test_what_measures_the_host_may_be_all_that_is_asked_for(eight):
    profile = eight(["cpu_threads"], cpu_threads="yield told('cpu_threads')")
    assert [row.bench for row in profile.measurements] == ["cpu_threads"]


def test_it_is_measured_also_where_the_first_gpu_is_broken(eight):
    broken = steady_at("600", "if number == 0: os._exit(9)\n")
    profile = eight(["side_by_side", "cpu_threads"], side_by_side=broken, cpu_threads="yield told('cpu_threads')")
    assert [row.bench for row in profile.measurements if row.bench != "side_by_side"] == ["cpu_threads"]
    assert slow(profile) == [("UNKNOWN", "GPU 0")]


def test_the_profile_is_one_devices_own_and_the_one_most_of_them_share(eight):
    """TF32 pays on all GPUs but the first: no mixture, and what differs is said."""
    speeds = TOLD + (
        "for dtype, rate in (('float32', 50), ('tf32', 50 if number == 0 else 400)):\n"
        "    yield row('precision', 'throughput', 'TFLOP/s', rate, dtype=dtype)\n"
        "    yield row('precision', 'relative_error', '1', 1e-7 if dtype == 'float32' else 3e-4, dtype=dtype)\n"
    )
    profile = eight(["side_by_side", "precision"], side_by_side=ALIKE, precision=speeds)
    assert len(steady(profile)) == 8
    assert {row.device for row in profile.measurements if row.bench == "precision"} == {"cuda:1"}
    assert profile.settings["matmul_precision"].value == "tf32"
    assert (
        Gap(fact="settings.matmul_precision", reason="cuda:0 alone would have another value than cuda:1 has")
        in profile.gaps
    )


def test_progress_is_told_by_one_of_them_and_counted_through(eight):
    seen = []
    bodies = {name: f"yield told('{name}')" for name in ("precision", "cpu_threads")}
    eight(["side_by_side", *bodies], seen.append, side_by_side=ALIKE, **bodies)
    told = [(one.number, one.count, one.part) for one in seen if one.number]
    assert told == [(1, 3, "side_by_side"), (2, 3, "precision"), (3, 3, "cpu_threads")]


def test_gpus_of_another_kind_are_left_out_and_said():
    facts = facts_of("nvidia-h200-x8")
    mixed = replace(facts, gpus=tuple(replace(gpu, name="NVIDIA T4") if gpu.index == 6 else gpu for gpu in facts.gpus))
    devices, gaps = devices_of(mixed)
    assert devices == [f"cuda:{number}" for number in (0, 1, 2, 3, 4, 5, 7)]
    assert [gap.fact for gap in gaps] == ["cuda:6"]
    assert "gputune probe --device cuda:6" in gaps[0].reason


INTERRUPTED = """
import sys
from recorded import RecordedHost
from gputune import probing
from gputune.cli import _exit_on_sigterm
_exit_on_sigterm()
probing.probe(probing.ProbeRequest(device="all", only=["side_by_side"]), host=RecordedHost("nvidia-h200-x8"),
              progress=lambda progress: print(progress.part, flush=True))
"""


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGTERM] * 3])
def test_interrupted_it_ends_at_once_with_all_its_processes(tmp_path, numbers):
    stand_in.torch(tmp_path)
    environ = making.environ(PYTHONPATH=stand_in.benches(tmp_path, side_by_side="time.sleep(60); yield"))
    environ["PYTHONPATH"] += f":{making.__file__.rpartition('/')[0]}"
    words = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as probing_:
        assert "side_by_side\n" in iter(probing_.stdout.readline, "")
        started = time.monotonic()
        for number in numbers:
            probing_.send_signal(number)
            time.sleep(0.02)
        probing_.wait(50)
    assert time.monotonic() - started < 30
    assert not serving(str(probing_.pid))


def test_an_interrupt_that_does_not_wake_the_waiting_thread_is_seen_all_the_same():
    ended = threading.Event()
    run = SimpleNamespace(process=SimpleNamespace(stop=ended.set))

    def interrupted_elsewhere(run):
        time.sleep(0.3)  # the other thread is asleep by then
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        ended.wait(60)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), at_once([run]) as on_all:
        on_all(interrupted_elsewhere)
    assert time.monotonic() - started < 30


def test_the_common_one_of_several_profiles_differs_least_from_the_others():
    chosen = {name: dict(making.CHOSEN) for name in "abc"}
    chosen["a"]["compile"] = False
    profiles = [making.profile(values) for values in chosen.values()]
    assert representative_index(profiles) == 1
    assert differing_settings(profiles[0], profiles[1]) == ["compile"]
    assert representative_index(profiles[:2]) == 0, "of equals the first"


def without(profile, *names):
    short = {name: replace(profile.settings[name], value=False, unmeasured=True) for name in names}
    return replace(profile, settings={**profile.settings, **short})


def test_short_probes_neither_outvote_a_longer_one_nor_stand_for_longer_ones_that_disagree():
    quick, conv = (making.row(name, "throughput", 1.0) for name in ("precision", "conv"))
    short = without(making.profile(measurements=(quick,)), "compile")
    assert representative_index([short, short, making.profile(measurements=(quick, conv))]) == 2
    on, off = making.profile(), making.profile({**making.CHOSEN, "compile": False})
    nothing = without(on, *on.settings)
    assert representative_index([nothing, off, on, off, on, on]) == 2
