"""DataLoaders that were given no workers, and what they are given."""

import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from recorded import RecordedHost
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from gputune.live import loader
from gputune.live.advice import Advice, Loading, TunedProgram, entry
from gputune.live.applied import Applied

CHOICES = {"dataloader_workers": 2, "dataloader_prefetch_factor": 4, "dataloader_pin_memory": True}
FILES = RecordedHost(affinity=[0, 1, 2, 3])
SAMPLES = TensorDataset(torch.arange(8.0))


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


class Random:
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> float:
        return random.random()


class Gone(Random):
    def __getitem__(self, index: int) -> float:
        raise OSError("the disk is gone")


class Session:
    def __init__(self) -> None:
        self.rows: dict[str, Applied] = {}

    def note(self, row: Applied) -> None:
        self.rows[row.setting] = row

    def became(self, name: str = "dataloader_workers") -> tuple[str, Any, str]:
        row = self.rows[name]
        return row.status, row.after, row.why


Start = Callable[..., Session]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(DataLoader, "__init__", DataLoader.__init__)

    def start(choices: Any = None, method: str = "fork", **more: Any) -> Session:
        monkeypatch.setattr(multiprocessing, "get_start_method", lambda **_: method)
        session = Session()
        measured = {"cpu_budget": 4, "own_dataset": True, **more.pop("measured", {})}
        loading = Loading(choices=CHOICES if choices is None else choices, measured=measured, **more)
        loader.follow_loaders(Advice(device="cpu", loading=loading), FILES, session.note)
        return session

    return start


@pytest.mark.parametrize(("given", "error"), [({"no_such_argument": 1}, TypeError), ({"batch_size": -1}, ValueError)])
def test_wrong_arguments_are_refused_by_torch_alone(start: Start, given: Any, error: type[Exception]) -> None:
    start()
    with pytest.raises(error, match=next(iter(given))) as raised:
        DataLoader(SAMPLES, **given)
    assert raised.value.__context__ is None


class TestGiven:
    def test_workers_their_prefetching_and_pinned_memory(self, start: Start) -> None:
        session = start()
        made = DataLoader(SAMPLES, batch_size=4)
        assert (made.num_workers, made.prefetch_factor, made.pin_memory, made.persistent_workers) == (2, 4, True, False)
        assert made.batch_size == 4
        assert session.became() == ("applied", 2, "put into DataLoader")
        assert session.became("dataloader_prefetch_factor")[:2] == ("applied", 4)
        assert session.became("dataloader_pin_memory")[:2] == ("applied", True)

    def test_a_class_of_the_programs_own_too(self, start: Start) -> None:
        class Mine(DataLoader[Any]):
            def __init__(self, size: int) -> None:
                super().__init__(SAMPLES, size)

        start()
        assert Mine(2).num_workers == 2

    def test_workers_in_proportion_to_the_cpus(self, start: Start) -> None:
        session = start(measured={"cpu_budget": 8})
        assert DataLoader(SAMPLES).num_workers == 1
        assert session.became() == (
            "applied", 1, "put into DataLoader; 2 workers were measured with 8 CPUs, and this process has 4",
        )  # fmt: skip

    def test_none_for_a_single_sample(self, start: Start) -> None:
        session = start()
        assert DataLoader(TensorDataset(torch.zeros(1))).num_workers == 0
        assert session.became()[1] == 0

    @pytest.mark.slow
    def test_the_same_samples_in_the_same_order(self, start: Start) -> None:
        """Also what is drawn of torch's generator beside them is the same."""

        def batches() -> Any:
            torch.manual_seed(0)
            made = DataLoader(SAMPLES, batch_size=2, shuffle=True)
            return [batch[0].tolist() for _ in range(2) for batch in made], torch.rand(1).item()

        plain = batches()
        start({"dataloader_workers": 2})
        assert batches() == plain


class TestKept:
    @pytest.mark.parametrize(
        "given",
        [{"num_workers": 0}, {"num_workers": 1}, {"worker_init_fn": print}, {"persistent_workers": False},
         {"prefetch_factor": None}, {"multiprocessing_context": None}],
    )  # fmt: skip
    def test_arguments_about_workers(self, start: Start, given: dict[str, Any]) -> None:
        session = start()
        made = DataLoader(SAMPLES, **given)
        assert made.num_workers == given.get("num_workers", 0)
        assert not made.pin_memory
        [name] = given
        assert session.became() == ("kept-user", None, f"the program gave {name}=")

    def test_a_position_counts_as_much_as_a_name(self, start: Start) -> None:
        session = start()
        assert DataLoader(SAMPLES, 1, False, None, None, 1).num_workers == 1
        assert session.became()[2] == "the program gave num_workers="

    @pytest.mark.parametrize("pinned", [False, True])
    def test_pinned_memory(self, start: Start, pinned: bool) -> None:
        session = start()
        made = DataLoader(SAMPLES, pin_memory=pinned)
        assert (made.pin_memory, made.num_workers) == (pinned, 2)
        assert session.became("dataloader_pin_memory") == ("kept-user", None, "the program gave pin_memory=")


class TestRefused:
    def test_a_stream_would_be_repeated_by_every_worker(self, start: Start) -> None:
        session = start()
        assert len(list(DataLoader(Stream(), batch_size=None))) == 8
        assert session.became() == ("skipped", None, "an IterableDataset would be repeated by every worker")

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_only_forked_workers_need_nothing_of_the_script(self, start: Start, method: str) -> None:
        session = start(method=method)
        assert DataLoader(SAMPLES).num_workers == 0
        assert session.became()[2].startswith(f"workers would be started by {method}")

    @pytest.mark.parametrize(("dataset", "workers"), [(SAMPLES, 2), (Random(), 0), (Gone(), 0)])
    def test_at_the_level_exact_only_samples_that_are_seen_to_draw_no_random_numbers(
        self, start: Start, dataset: Any, workers: int
    ) -> None:
        session = start(deterministic=True)
        assert DataLoader(dataset).num_workers == workers
        assert workers or session.became()[2] == "its samples draw random numbers, which differ in workers"

    @pytest.mark.parametrize("fails", ["sample", "batch"])
    def test_what_a_forked_process_cannot_load_as_on_a_gpu(self, start: Start, fails: str) -> None:
        mine = os.getpid()

        def here(sample: Any) -> Any:
            if os.getpid() != mine:
                raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
            return sample

        class OnGpu(Random):
            def __getitem__(self, index: int) -> float:
                return 1.0 if fails == "batch" else here(1.0)

        session = start()
        made = DataLoader(OnGpu(), collate_fn=here if fails == "batch" else None)
        assert (made.num_workers, len(list(made))) == (0, 8)
        assert session.became() == ("skipped", None, "a forked process could not load its first sample")

    @pytest.mark.slow
    @pytest.mark.parametrize("given", [{"batch_size": None}, {"batch_size": None, "collate_fn": float}, {}])
    def test_batches_are_tried_as_the_loader_makes_them(self, start: Start, given: dict[str, Any]) -> None:
        start()
        made = DataLoader(Random(), **given)
        assert (made.num_workers, len(list(made))) == (2, 8)

    def test_without_that_level_they_may(self, start: Start) -> None:
        start()
        assert DataLoader(Random()).num_workers == 2


def test_nothing_is_patched_where_there_is_nothing_to_give() -> None:
    before = DataLoader.__init__
    loader.follow_loaders(Advice(device="cpu", general={"compile": True}), FILES, print)
    assert DataLoader.__init__ is before


def test_a_script_that_was_tuned_gets_its_own(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    own = TunedProgram(entry="train.py", models=(), settings={}, loading=Loading(choices={"dataloader_workers": 1}))
    session = start({})  # for the fixture's patches
    loader.follow_loaders(Advice(device="cpu", programs=(own,)), FILES, session.note)
    for script, workers in (("train.py", 1), ("other.py", 0)):
        monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=f"/home/me/{script}"))  # type: ignore[arg-type]
        assert DataLoader(SAMPLES).num_workers == workers


@pytest.mark.parametrize(
    ("main", "name"),
    [
        ({"__file__": "/home/me/train.py", "__spec__": None}, "train.py"),
        ({"__spec__": SimpleNamespace(name="package.train"), "__file__": "/x/train.py"}, "package.train"),
        ({"__spec__": SimpleNamespace(name="package.__main__")}, "package"),
        ({"__spec__": None}, "argument.py"),
    ],
)
def test_the_name_of_a_script(monkeypatch: pytest.MonkeyPatch, main: dict[str, Any], name: str) -> None:
    module = ModuleType("__main__")
    vars(module).update(main)
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.setattr(sys, "argv", ["/somewhere/argument.py"])
    assert entry() == name
