"""`gputune tune` on networks that answer and train nothing: what is measured, and how the outputs are judged."""

import os
import sys
from pathlib import Path

import pytest

from gputune import facts
from gputune.host import Host
from gputune.trials.agreement import CALLS
from gputune.trials.candidates import candidates
from gputune.trials.measuring import SearchResult, Wanted, measure
from gputune.trials.progress import TuneProgress
from gputune.trials.result import ranking
from gputune.trials.start import Start
from gputune_start import inherited

HERE = Path(__file__).parent
LONGEST_SECONDS = 90
FASTER = {"mlp": 1.5, "decoder": 2.0, "convnet": 2.0}
"""What TF32 or bfloat16 alone gain on GPUs that have them."""


def measured(name: str, folder: Path, steps: int | None = None) -> SearchResult:
    machine = facts.read(Host())
    path = [str(HERE / "training"), str(HERE / "unchanged"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**inherited(), "PYTHONPATH": os.pathsep.join(path)}
    command = (sys.executable, str(HERE / "training" / "answers.py"), name)
    with (folder / "log").open("wb") as log:
        start = Start(command=command, environ=environ, folder=folder, log=log)
        able = candidates(machine, "cuda" if machine.gpus else "cpu")
        wanted = Wanted(candidates=able, facts=machine, compared_calls=CALLS, steps=steps)
        return measure(start, wanted, host=Host(), told=TuneProgress(tell=lambda _: None))


@pytest.mark.gpu
@pytest.mark.parametrize("name", FASTER)
def test_calls_become_faster_and_outputs_agree(name, tmp_path):
    found = measured(name, tmp_path)
    best, gained = ranking(found)[0]
    guard = found.agreed[str(best.combination)]
    print(f"{name}: {best.combination}, {gained.ratio:.2f} times as fast; {guard.reason}; {found.seconds:.0f} s")
    assert not found.found.trains
    assert gained.ratio >= FASTER[name]
    assert guard.verdict == "accepted"
    assert found.seconds <= LONGEST_SECONDS


@pytest.mark.exhaustive
@pytest.mark.slow
def test_without_a_gpu_it_goes_through_the_same_motions(tmp_path):
    found = measured("mlp", tmp_path, steps=60)
    assert not found.found.trains
    assert {guard.verdict for guard in found.agreed.values()} <= {"accepted"}
