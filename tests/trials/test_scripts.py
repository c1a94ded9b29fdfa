"""Scripts that end early, catch everything, spawn processes and the like: each gets a line or a result, and nothing of
any is left behind.
"""

import getpass
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
from making import environ, until

from gputune import facts
from gputune.host import Host
from gputune.host.kept import readable
from gputune.live.advice import Advice
from gputune.search.combination import Combination
from gputune.trials.checking import GuardRuns, timed
from gputune.trials.failure import RunFailed
from gputune.trials.measuring import measure
from gputune.trials.progress import TuneProgress
from gputune.trials.result import ranking
from gputune.trials.search_result import SearchResult, Wanted
from gputune.trials.start import Start

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parent / "scripts"
NEVER = "neither a training step nor calls without gradients were seen within 8 s"
EARLY = "it ended before it had taken two training steps, or made ten calls without gradients"
TOKEN = "GPUTUNE_TEST_TOKEN"
TOLD = TuneProgress(tell=lambda _: None)
ONE = {"fused_optimizer": True}


@cache
def _facts() -> facts.Facts:
    return facts.read(Host())


class Folder:
    """A user's folder, in which a command is measured."""

    def __init__(self, path: Path) -> None:
        self.path = path / "work"
        self.path.mkdir()
        self.token = str(path)
        self.private = Path(tempfile.mkdtemp())  # with a short name, since sockets of torch's workers are made in it
        self.log = path / "log"

    def environ(self) -> dict[str, str]:
        here = {TOKEN: self.token, "OMP_NUM_THREADS": "1", "PYTHON": sys.executable, "TMPDIR": str(self.private)}
        return environ(**here, PYTHONPATH=str(SCRIPTS), XDG_CACHE_HOME=str(self.path.parent / "cache"))

    @contextmanager
    def start(self, *command: str, seconds: float = 240) -> Iterator[Start]:
        with self.log.open("wb") as log, chdir(self.path):
            yield Start(
                command=command, environ=self.environ(), folder=self.private, log=log, until=time.monotonic() + seconds,
            )  # fmt: skip

    def measured(
        self, *command: str, seconds: float = 240, steps: int | None = 60, **candidates: object
    ) -> SearchResult:
        with self.start(*command, seconds=seconds) as start:
            wanted = {**ONE, **candidates}
            return measure(
                start,
                Wanted(candidates=wanted, facts=_facts(), steps=steps, compared_calls=5),
                host=Host(),
                told=TOLD,
            )  # type: ignore[arg-type]

    def failure(self, *command: str, seconds: float = 240, **candidates: object) -> str:
        with pytest.raises(RunFailed) as failed:
            self.measured(*command, seconds=seconds, steps=None, **candidates)
        assert "\n" not in str(failed.value)
        return str(failed.value)

    def started(self) -> int | None:
        """The process of the script, once it runs."""
        mine = (one for one in self.processes() if psutil.Process(one).cmdline()[1:2] != ["-I"])
        return next((one for one in mine if str(SCRIPTS) in " ".join(psutil.Process(one).cmdline())), None)

    def processes(self) -> list[int]:
        """The processes that were started here and still run."""
        return [one.pid for one in psutil.process_iter() if one.pid != os.getpid() and _has(one, self.token)]


def _has(process: psutil.Process, token: str) -> bool:
    try:
        return process.environ().get(TOKEN) == token and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    assert made.processes() == []
    kept = {"socket", f"torchinductor_{getpass.getuser()}"}  # what torch compiles stays where it always is
    left = {one.name for one in made.private.iterdir()}
    shutil.rmtree(made.private)
    assert left <= kept


def script(name: str) -> tuple[str, str]:
    return sys.executable, str(SCRIPTS / f"{name}.py")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "says", "seconds"),
    [
        ("ends_early", "it made 5 training steps, and some 120 are needed", 60),
        ("ends_at_once", f"{EARLY} (exit code 1)", 60),
        ("reads_stdin", f"{EARLY} (exit code 1)", 60),
        ("never_steps", NEVER, 8),
    ],
)
def test_what_gives_no_result_is_a_line(folder: Folder, name: str, says: str, seconds: float) -> None:
    assert folder.failure(*script(name), seconds=seconds) == says


@pytest.mark.parametrize(("words", "count", "seconds"), [(["45"], "40", 60), ([], r"\d+", 8)])
def test_calls_with_gradients_on_are_said(folder: Folder, words: list[str], count: str, seconds: float) -> None:
    said = folder.failure(*script("forgets_no_grad"), *words, seconds=seconds)
    assert re.fullmatch(f"it made {count} calls or more with gradients on, and no optimizer step", said), said


def test_what_is_not_there_is_a_line(folder: Folder) -> None:
    said = folder.failure("no-such-command")
    assert said == f"{EARLY} (exit code 127)"
    assert "no-such-command: No such file or directory" in folder.log.read_text()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["catches_everything", "noisy", "spawns"])
def test_what_trains_gives_a_result(folder: Folder, name: str) -> None:
    found = folder.measured(*script(name))
    assert found.hello.entry == f"{name}.py"
    assert {str(one.combination) for one in found.tried} == {"torch's defaults", "fused_optimizer"}
    assert not found.failed
    assert list(folder.path.iterdir()) == []


def test_the_guard_compares_whole_runs(folder: Folder) -> None:
    fused = Combination.of({"fused_optimizer": True})
    with folder.start(*script("plain")) as start:
        found = GuardRuns(start=start, steps=20, told=TOLD).of(fused, Advice(device="cpu", general=fused.values))
    assert (found.verdict, found.reason) == (
        "accepted",
        "loss within FP32's own spread; no evaluation ran within 20 steps",
    )


def test_whole_starts_are_timed(folder: Folder) -> None:
    with folder.start(*script("plain")) as start:
        found = timed(start, None, 10_000)
    assert found.step > 0


ANSWERING: dict[str, object] = {"channels_last": True, "inference_mode": True}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("words", "left"), [([], []), (["inference"], ["inference_mode"])])
def test_what_trains_nothing_has_its_calls_measured_and_its_outputs_compared(
    folder: Folder, words: list[str], left: list[str]
) -> None:
    found = folder.measured(*script("answers_slowly"), *words, steps=None, **ANSWERING)
    assert found.found.trains is False
    assert list(found.left) == left
    tried = {name for one in found.tried for name in one.combination.values}
    assert tried == {"channels_last", "inference_mode"} - set(left)
    assert set(found.agreed) == {str(one.combination) for one, _ in ranking(found)}
    assert any("channels_last" in name for name in found.agreed)
    assert {guard.verdict for guard in found.agreed.values()} == {"accepted"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("words", [[], ["later"]])
def test_what_looks_at_its_model_before_it_trains_is_measured_as_it_trains(folder: Folder, words: list[str]) -> None:
    found = folder.measured(*script("evaluates_first"), *words)
    assert found.found.trains is True
    assert "fused_optimizer" in {str(one.combination) for one in found.tried}


def test_what_evaluates_although_it_has_an_optimizer_is_measured_once_its_end_has_shown_it(folder: Folder) -> None:
    found = folder.measured(*script("evaluates_only"))
    assert found.found.trains is False
    assert folder.log.read_bytes() == b""


INFERENCE: dict[str, object] = {"inference_mode": True}
FEW = r"it made {} calls without gradients, and some 1\d0 are needed"


def test_a_loop_over_a_list_that_is_too_short_is_a_line(folder: Folder) -> None:
    said = folder.failure(*script("evaluates_a_list"), **INFERENCE)
    assert re.fullmatch(FEW.format(40), said), said


@pytest.mark.parametrize("words", [[], ["waits"], ["twice"]])
def test_where_the_data_of_an_evaluation_end_it_ends_and_nothing_behind_its_loop_runs(
    folder: Folder, words: list[str]
) -> None:
    """With workers in place of its own, too, and where another loader would follow."""
    said = folder.failure(*script("evaluates_a_loader"), *words, dataloader_workers=2, **INFERENCE)
    assert re.fullmatch(FEW.format(60), said), said
    assert list(folder.path.iterdir()) == []


def test_an_evaluation_that_is_long_enough_is_measured_before_its_data_end(folder: Folder) -> None:
    """Which is known only once they have ended."""
    found = folder.measured(*script("evaluates_a_loader"), "long", steps=None, **INFERENCE)
    assert found.length in (300, None)  # None if the search was over before its data were
    assert not found.found.trains
    assert min(len(arm.samples) for arm in found.arms) >= 8
    assert list(folder.path.iterdir()) == []


def test_what_evaluates_a_loader_before_it_trains_is_measured_as_it_trains(folder: Folder) -> None:
    found = folder.measured(*script("evaluates_a_loader"), "trains", steps=None, **INFERENCE)
    assert found.found.trains is True
    assert list(folder.path.iterdir()) == []


def test_epochs_of_a_training_follow_one_another(folder: Folder) -> None:
    found = folder.measured(*script("loads"), "short", steps=120, dataloader_workers=2)
    assert found.found.trains is True
    assert found.length is None


def test_a_training_ends_though_workers_that_are_not_asked_stand_still(folder: Folder) -> None:
    begun = time.monotonic()
    said = folder.failure(*script("loads"), "short", "ends", dataloader_workers=4)
    assert re.fullmatch(r"it made 64 training steps, and some \d+0 are needed", said), said
    assert time.monotonic() - begun < 50


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["never_steps", "plain"])
def test_what_is_stopped_is_named_within_seconds(folder: Folder, name: str) -> None:
    def stop() -> None:
        until(folder.started, 30)
        time.sleep(1 if name == "never_steps" else 2)
        psutil.Process(folder.started()).suspend()

    thread = threading.Thread(target=stop)
    begun = time.monotonic()
    thread.start()
    said = folder.failure(*script(name))
    thread.join()
    assert re.fullmatch(r"it was stopped by a signal: process \d+ \(python.*\)", said), said
    assert time.monotonic() - begun < 30


LOADED: dict[str, object] = {"dataloader_workers": 1}


@pytest.mark.timed
def test_what_waits_for_its_data_gets_workers(folder: Folder) -> None:
    found = folder.measured(*script("loads"), steps=None, **LOADED)
    assert found.waits > 0.5
    best, gained = ranking(found)[0]
    assert (best.combination.workers or 0) >= 2
    assert gained.ratio > 2
    assert found.dataset == "Slow"
    assert sum(found.found.models[0].layers.values()) == 3
    assert {one.stage for one in found.tried} == {"loading", "options", "final"}


@pytest.mark.timed
def test_a_number_of_workers_of_the_programs_own_is_left(folder: Folder) -> None:
    found = folder.measured(*script("loads"), "1", **LOADED)
    assert found.waits > 0.5
    assert found.left["dataloader_workers"] == "the program gave num_workers=1"
    assert {one.combination.workers for one in found.tried} == {None}


@pytest.mark.parametrize("command", [script("saves_at_the_end"), ("sh", str(SCRIPTS / "script.sh"))])
def test_nothing_behind_the_loop_is_run_nor_the_next_line_of_a_shell(folder: Folder, command: tuple[str, ...]) -> None:
    folder.measured(*command)
    assert list(folder.path.iterdir()) == []


def test_a_checkpoint_to_go_on_from_stays_as_it_is(folder: Folder) -> None:
    import torch
    from torch import nn

    layers = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    network = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(network.parameters())
    checkpoint = folder.path / "checkpoint.pt"
    torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)
    before = checkpoint.read_bytes(), checkpoint.stat().st_mtime_ns
    folder.measured(*script("resumes"))
    assert (checkpoint.read_bytes(), checkpoint.stat().st_mtime_ns) == before


def test_what_raises_is_left_out_in_a_new_start(folder: Folder) -> None:
    found = folder.measured(*script("refuses_autocast"), amp_dtype="bfloat16")
    assert list(found.failed) == ["bfloat16"]
    assert "RuntimeError" in found.failed["bfloat16"]
    assert "bfloat16" not in {str(one.combination) for one in found.tried}


def torchrun(ranks: int, *words: str) -> tuple[str, ...]:
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
    return sys.executable, *launcher, script("ranks")[1], *words


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_of_torchrun_keep_in_step(folder: Folder, ranks: int) -> None:
    found = folder.measured(*torchrun(ranks))
    assert found.hello.world == ranks
    assert not found.failed


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("how", "says", "ranks"),
    [
        ("SIGKILL", r"rank [0-3] ended after \d+ measured steps, .*", 2),
        ("SIGSTOP", r"rank 1 was stopped by a signal: process \d+ .*", 4),
    ],
)
def test_a_rank_that_is_killed_or_stopped_is_a_line(folder: Folder, how: str, says: str, ranks: int) -> None:
    said = folder.failure(*torchrun(ranks, how))
    assert re.fullmatch(says, said), said


def test_a_rank_that_ended_is_named_though_others_raise_because_of_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heard so late that these have said what their connections to it raise, or that torchrun has ended some, too."""

    def late(*watched: Any) -> Any:
        readable(*watched)
        time.sleep(0.1)
        return readable(*watched)

    monkeypatch.setattr("gputune.trials.command.readable", late)
    said = folder.failure(*torchrun(4, "SIGKILL"))
    assert re.fullmatch(r"rank [0-3] ended after \d+ measured steps, .*", said), said


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("reads_stdin", (), "(exit code 1); it read its standard input, which is empty here: name a file"),
        ("finds_no_room", (), "; what it writes while it is tuned lies in "),
        ("never_steps", ("--minutes", "0.1"), "were seen within 6 s; tune a command that trains"),
        ("ends_early", (), "it made 5 training steps, and some "),
        ("forgets_no_grad", ("--minutes", "0.2"), "; if it trains nothing, call its model in torch.no_grad()"),
    ],
)
def test_a_tune_that_comes_to_nothing_says_why_in_its_last_line(
    folder: Folder, name: str, options: tuple[str, ...], says: str
) -> None:
    words = [sys.executable, "-P", "-m", "gputune", "tune", *options, "--", *script(name)]
    done = subprocess.run(
        words, cwd=folder.path, env=folder.environ(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 3
    assert "some ten times, with an empty standard input; " in done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert list(folder.path.iterdir()) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_tune_that_is_ended_leaves_nothing(folder: Folder, how: signal.Signals) -> None:
    words = [sys.executable, "-P", "-m", "gputune", "tune", "--no-guard", "--", *script("spawns")]
    with folder.log.open("wb") as log:
        child = subprocess.Popen(words, cwd=folder.path, env=folder.environ(), stdout=log, stderr=log)
        until(lambda: len(folder.processes()) > 6)
        time.sleep(1)
        child.send_signal(how)
        code = child.wait(30)
    until(lambda: not folder.processes(), 20)
    assert code == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how]
    if how != signal.SIGKILL:
        assert folder.log.read_text().endswith("ed; nothing was written\n")
    assert list(folder.path.iterdir()) == []
    if how == signal.SIGKILL:  # which leaves no time to remove them
        for one in folder.private.iterdir():
            subprocess.run(["rm", "-r", str(one)], check=True)
