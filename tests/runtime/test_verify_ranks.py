"""Ranks that compare what they compute with: over a store, until a deadline, and who differs is named."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from making import environ, profile, python, written

from gputune.errors import RankError, UsageError
from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.tuning import Tuning
from gputune.runtime.verify_ranks import difference, effective, verify_ranks


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {rank: {"matmul_precision": "ieee" if rank == 3 else "tf32", "same": 1} for rank in range(8)},
            "rank 3 differs: matmul_precision is 'ieee', and 'tf32' in 7 others",
        ),
        ({1: {"a": 1}, 0: {"a": 2}}, "rank 1 differs: a is 1, and 2 in 1 others"),
        (
            {0: {"a": 1, "b": 1}, 1: {"a": 2, "b": 1}, 2: {"a": 1, "b": 1}, 3: {"a": 3}, 4: {"a": 1, "b": 1}},
            "ranks 1, 3 differ: a is 2 or 3, and 1 in 3 others; b is 1 or None, and 1 in 3 others",
        ),
        (
            {rank: {"a": rank >= 600} for rank in range(1000)},
            "ranks 600, 601, 602, 603, 604, 605, 606, 607 and 392 more differ: a is True, and False in 600 others",
        ),
    ],
    ids=["one", "of two the lower rank is the measure", "several ways", "thousands are counted"],
)
def test_the_ranks_that_differ_are_named(told: dict[int, dict[str, Any]], said: str) -> None:
    assert difference(told) == said


class TestEffective:
    def test_it_is_what_torch_reads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
        values = effective()
        assert (values["torch"], values["NVIDIA_TF32_OVERRIDE"]) == (torch.__version__, "0")
        before = values["cudnn_benchmark"]
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", not before)
        assert effective()["cudnn_benchmark"] is not before

    def test_a_tunings_lines_count_but_for_those_that_change_no_result(self) -> None:
        values = effective(Tuning({"amp_dtype": "bfloat16", "dataloader_workers": 8}))
        assert values["amp_dtype"] == "bfloat16"
        assert not [name for name in values if name.startswith("dataloader") or name == "omp_threads"]

    def test_a_getter_that_raises_is_a_value_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gputune.knobs import cudnn_benchmark

        monkeypatch.setattr(cudnn_benchmark, "current", lambda: 1 / 0)
        assert effective()["cudnn_benchmark"] == "ZeroDivisionError"


class TestWithoutAGroup:
    def test_one_process_agrees_with_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        assert verify_ranks(None, 1.0) == effective()

    def test_several_without_a_group_are_told_what_to_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORLD_SIZE", "8")
        with pytest.raises(UsageError, match=r"call torch\.distributed\.init_process_group first"):
            verify_ranks(None, 1.0)

    @pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), 1e12])
    def test_a_deadline_that_is_none(self, seconds: float) -> None:
        with pytest.raises(UsageError, match="verify_ranks: a deadline of"):
            verify_ranks(None, seconds)


class Store:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.lock = threading.Lock()

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return str(self.values[key]).encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def add(self, key: str, more: int) -> int:
        with self.lock:
            self.values[key] = self.values.get(key, 0) + more
            return int(self.values[key])


class TestDeadline:
    @pytest.fixture
    def ranks(self) -> int:
        return 3

    @pytest.fixture
    def store(self, monkeypatch: pytest.MonkeyPatch, ranks: int) -> Store:
        store = Store()
        monkeypatch.setattr("gputune.runtime.verify_ranks._place", lambda: (store, 1, ranks))
        return store

    @pytest.mark.slow
    @pytest.mark.usefixtures("store")
    def test_ranks_that_do_not_answer_are_named(self) -> None:
        start = time.monotonic()
        with pytest.raises(
            RankError, match=r"ranks 0, 2 did not answer within 0.2 s; every rank has to call verify_ranks"
        ):
            verify_ranks(None, 0.2)
        assert time.monotonic() - start < 20

    @pytest.mark.usefixtures("store")
    @pytest.mark.parametrize("ranks", [4096])
    def test_of_thousands_that_are_missing_some_are_named(self) -> None:
        with pytest.raises(RankError, match="ranks 0, 2, 3, 4, 5, 6, 7, 8 and more did not answer"):
            verify_ranks(None, 0.1)

    @pytest.mark.slow
    def test_a_store_that_does_not_answer_does_not_hold_the_program(self, store: Store) -> None:
        store.set = lambda key, value: threading.Event().wait()  # type: ignore[method-assign, assignment]
        with pytest.raises(RankError, match=r"the job's store gave no answer in 0.2 s"):
            verify_ranks(None, 0.2)

    def test_a_store_that_fails_is_one_line(self, store: Store) -> None:
        store.add = None  # type: ignore[method-assign, assignment]
        with pytest.raises(RankError, match="the job's store failed: TypeError"):
            verify_ranks(None, 0.2)


SCRIPT = """
import json, os, sys, time
import torch.distributed as dist
import gputune
rank = int(os.environ["RANK"])
tuning = gputune.apply(sys.argv[2] if rank == 3 else sys.argv[1])
dist.init_process_group("gloo")
said = []
def ask(*arguments):
    dist.barrier()
    start = time.perf_counter()
    try:
        found = gputune.verify_ranks(*arguments)
        said.append([found["matmul_precision"], time.perf_counter() - start])
    except gputune.errors.RankError as error:
        said.append([str(error), time.perf_counter() - start])
ask()
if rank == 3:
    gputune.apply(sys.argv[1])
ask()
ask(tuning)
open(f"{sys.argv[3]}/{rank}", "w").write(json.dumps(said))
"""


@pytest.mark.frameworks
def test_eight_ranks_of_which_one_was_given_another_profile(tmp_path: Path) -> None:
    """By torchrun and gloo on the CPU, whose store is the one that GPUs' jobs have too."""

    here = local_fingerprint(Host())
    for name, values in (("usual", {"matmul_precision": "tf32"}), ("odd", {"matmul_precision": "ieee"})):
        (tmp_path / name).mkdir()
        families = {"amp_dtype": "bfloat16" if name == "odd" else None}
        written(tmp_path / name, profile({**values, **families}, fingerprint=here))
    (tmp_path / "train.py").write_text(SCRIPT)
    paths = [str(tmp_path / name / "profile.yaml") for name in ("usual", "odd")]
    done = python(
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "8", str(tmp_path / "train.py"),
        *paths, str(tmp_path), env=environ(OMP_NUM_THREADS="1"), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for rank in range(8):
        differing, agreeing, lines = json.loads((tmp_path / str(rank)).read_text())
        assert differing[0].startswith("rank 3 differs: matmul_precision is 'ieee', and 'tf32' in 7 others; ")
        assert agreeing[0] == "tf32"
        assert lines[0].startswith("rank 3 differs: amp_dtype is 'bfloat16', and None in 7 others; ")
        assert max(seconds for _, seconds in (differing, agreeing, lines)) < 1
