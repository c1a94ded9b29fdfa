"""DataLoaders that were given no workers, and what their iterators are made with."""

import copy
import gc
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from recorded import RecordedHost
from torch import nn
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)  # fmt: skip

from gputune.live.advice import Advice, Loading, TunedProgram, entry
from gputune.live.applied import Applied
from gputune.live.loader import MOST_LOOKS, LoaderSettings, dataset_class
from gputune.live.loader_patches import loader_iterated
from gputune.live.models import existing, key

CHOICES = {"dataloader_workers": 2, "dataloader_prefetch_factor": 4, "dataloader_pin_memory": True}
FILES = RecordedHost(affinity=[0, 1, 2, 3])
SAMPLES = TensorDataset(torch.arange(8.0))
ATTRIBUTES = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


class Images(Dataset[float]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> float:
        return float(index)


class Other(Images): ...


class Random(Images):
    def __getitem__(self, index: int) -> float:
        return random.random()


class Counts(Images):
    seen = 0

    def __getitem__(self, index: int) -> float:
        self.seen += 1
        return float(index)


class Several(Counts):
    """Loads a batch at once, as torch then asks it to."""

    def __getitem__(self, index: int) -> float:
        return float(index)

    def __getitems__(self, indices: list[int]) -> list[float]:
        self.seen += 1
        return [float(index) for index in indices]


class Ahead(Sampler[int]):
    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[int]:
        return iter(random.sample(range(8), 8))


class Gone(Images):
    def __getitem__(self, index: int) -> float:
        raise OSError("the disk is gone")


class Late(Exception): ...


class Tuned(nn.Module):
    """The model of the program that was tuned."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)


class NotTuned(Tuned): ...


class Session:
    def __init__(self) -> None:
        self.rows: dict[str, Applied] = {}

    def note(self, row: Applied) -> None:
        self.rows[row.setting] = row

    def became(self, name: str = "dataloader_workers") -> tuple[str, Any, str]:
        row = self.rows[name]
        return row.status, row.after, row.why


Start = Callable[..., Session]


def made_with(loader: DataLoader[Any]) -> dict[str, Any]:
    """What the next iterator of a loader is made with, which none is: that starts processes."""
    found: dict[str, Any] = next(iter(loader))  # as the fixture tells it
    return found


def workers(loader: DataLoader[Any]) -> int:
    return int(made_with(loader)["num_workers"])


@pytest.fixture(autouse=True)
def _unpatched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__init__", "_get_iterator"):
        monkeypatch.setattr(DataLoader, name, vars(DataLoader)[name])


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterators are not made, but what they would be made with is told."""
    told = lambda self: iter([{one: getattr(self, one) for one in ATTRIBUTES}])  # noqa: E731
    monkeypatch.setattr(DataLoader, "_get_iterator", told)


@pytest.fixture
def start(recorded: None, monkeypatch: pytest.MonkeyPatch) -> Start:
    def start(choices: Any = None, method: str = "fork", **more: Any) -> Session:
        monkeypatch.setattr(multiprocessing, "get_start_method", lambda **_: method)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        return followed(Advice(device="cpu", loading=loading(choices, **more)))

    return start


def loading(choices: Any = None, **more: Any) -> Loading:
    measured = {"cpu_budget": 4, "own_dataset": True, **more.pop("measured", {})}
    return Loading(choices=CHOICES if choices is None else choices, measured=measured, **more)


def followed(advice: Advice) -> Session:
    session = Session()
    LoaderSettings(advice, FILES, session.note).follow()
    return session


@pytest.mark.parametrize(("given", "error"), [({"no_such_argument": 1}, TypeError), ({"batch_size": -1}, ValueError)])
def test_wrong_arguments_are_refused_by_torch_alone(start: Start, given: Any, error: type[Exception]) -> None:
    start()
    with pytest.raises(error, match=next(iter(given))) as raised:
        DataLoader(SAMPLES, **given)
    assert raised.value.__context__ is None


class TestGiven:
    def test_workers_their_prefetching_and_pinned_memory(self, start: Start) -> None:
        session = start()
        assert tuple(made_with(DataLoader(SAMPLES, batch_size=4)).values()) == (2, 4, True, False)
        assert session.became() == ("applied", 2, "put into DataLoader")
        assert session.became("dataloader_prefetch_factor")[:2] == ("applied", 4)
        assert session.became("dataloader_pin_memory")[:2] == ("applied", True)

    def test_a_class_of_the_programs_own_too(self, start: Start) -> None:
        class Mine(DataLoader[Any]):
            def __init__(self, size: int) -> None:
                super().__init__(SAMPLES, size)

        start()
        assert workers(Mine(2)) == 2

    def test_the_loader_itself_stays_as_the_program_made_it(self, start: Start) -> None:
        start()
        made = DataLoader(SAMPLES)
        before = dict(vars(made))
        assert workers(made) == workers(made) == 2
        assert vars(made) == before

    def test_workers_in_proportion_to_the_cpus(self, start: Start) -> None:
        session = start(measured={"cpu_budget": 8})
        assert workers(DataLoader(SAMPLES)) == 1
        assert session.became() == (
            "applied", 1, "put into DataLoader; 2 workers were measured with 8 CPUs, and this process has 4",
        )  # fmt: skip

    def test_none_for_a_single_sample(self, start: Start) -> None:
        session = start()
        assert workers(DataLoader(TensorDataset(torch.zeros(1)))) == 0
        assert session.became()[1] == 0

    @pytest.mark.slow
    def test_the_same_samples_in_the_same_order_and_no_warning(self) -> None:
        """Also what is drawn of torch's generator beside them is the same."""

        def batches() -> Any:
            torch.manual_seed(0)
            made = DataLoader(SAMPLES, batch_size=2, shuffle=True)
            return [batch[0].tolist() for _ in range(2) for batch in made], torch.rand(1).item()

        plain = batches()
        session = followed(Advice(device="cpu", loading=loading({"dataloader_workers": 8})))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # as of 8 workers on fewer CPUs
            assert batches() == plain
        assert session.became()[:2] == ("applied", 8)


@pytest.mark.slow
class TestOrder:
    """Samples come in the order in which they come without workers, and so does what is drawn beside them."""

    def zipped(self) -> Any:
        one, other = (DataLoader(SAMPLES, batch_size=2, shuffle=True) for _ in range(2))
        return [(a[0].tolist(), b[0].tolist()) for a, b in zip(one, other, strict=True)]

    def two_iterators_of_one_loader(self) -> Any:
        made = DataLoader(SAMPLES, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(1))
        one, other = iter(made), iter(made)
        return [next(each)[0].tolist() for each in (other, one, one, other)]

    def draws_of_the_shuffles_generator(self) -> Any:
        generator = torch.Generator().manual_seed(1)
        made = DataLoader(SAMPLES, batch_size=3, shuffle=True, drop_last=True, generator=generator)
        return [(batch[0].tolist(), torch.rand(1, generator=generator).item()) for _ in range(2) for batch in made]

    def draws_before_a_smaller_last_batch(self) -> Any:
        generator = torch.Generator().manual_seed(1)
        made = DataLoader(SAMPLES, batch_size=3, shuffle=True, generator=generator)
        return [(batch[0].tolist(), torch.rand(1, generator=generator).item()) for _ in range(2) for batch in made]

    def loops_inside_each_other(self) -> Any:
        made = DataLoader(SAMPLES, batch_size=4, shuffle=True)
        return [(a[0].tolist(), b[0].tolist()) for a in made for b in made]

    def draws_before_the_first_batch(self) -> Any:
        sampler = WeightedRandomSampler([1.0] * 8, 8)
        iterator = iter(DataLoader(SAMPLES, batch_size=2, sampler=sampler))
        drawn = torch.rand(1).item()
        return drawn, len(iterator), [batch[0].tolist() for batch in iterator], torch.rand(1).item()

    def without_batches(self) -> Any:
        iterators = [iter(DataLoader(SAMPLES, batch_size=None, shuffle=True)) for _ in range(2)]
        return [next(one)[0].item() for one in iterators], [len(list(one)) for one in iterators]

    def no_batch_at_all(self) -> Any:
        made = DataLoader(SAMPLES, batch_size=9, drop_last=True, shuffle=True, generator=torch.Generator())
        return iter(DataLoader(SAMPLES, shuffle=True)) and list(made)

    @pytest.mark.parametrize(
        "batches",
        [zipped, two_iterators_of_one_loader, draws_of_the_shuffles_generator, draws_before_a_smaller_last_batch,
         loops_inside_each_other, draws_before_the_first_batch, without_batches, no_batch_at_all],
    )  # fmt: skip
    def test_of(self, batches: Callable[[Any], Any]) -> None:
        def drawn() -> Any:
            torch.manual_seed(0)
            return batches(self), torch.rand(1).item()

        plain = drawn()
        session = followed(Advice(device="cpu", loading=loading({"dataloader_workers": 2})))
        assert drawn() == plain
        assert session.became()[:2] == ("applied", 2)

    def test_a_program_that_keeps_more_batches_than_it_may_open_files(self) -> None:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        session = followed(Advice(device="cpu", loading=loading({"dataloader_workers": 2})))
        resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 128, limits[1]))
        try:
            kept = list(DataLoader(TensorDataset(torch.arange(300.0), torch.arange(300))))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert [(x.item(), y.item()) for x, y in kept] == [(number, number) for number in range(300)]
        assert session.became()[:2] == ("applied", 2)

    def test_workers_end_with_their_iterator(self) -> None:
        followed(Advice(device="cpu", loading=loading({"dataloader_workers": 2})))
        for asked in (0, 1):
            iterator: Any = iter(DataLoader(SAMPLES))
            [next(iterator) for _ in range(asked)]
            processes = iterator._workers
            assert all(one.is_alive() for one in processes)
            del iterator
            assert not any(one.is_alive() for one in processes)


class TestKept:
    @pytest.mark.parametrize(
        ("given", "said"),
        [({"num_workers": 0}, "num_workers=0"), ({"num_workers": 1}, "num_workers=1"),
         ({"worker_init_fn": print}, "worker_init_fn"), ({"persistent_workers": False}, "persistent_workers=False"),
         ({"prefetch_factor": None}, "prefetch_factor=None"),
         ({"multiprocessing_context": None}, "multiprocessing_context=None")],
    )  # fmt: skip
    def test_arguments_about_workers(self, start: Start, given: dict[str, Any], said: str) -> None:
        session = start()
        made = made_with(DataLoader(SAMPLES, **given))
        assert made["num_workers"] == given.get("num_workers", 0)
        assert not made["pin_memory"]
        assert session.became() == ("kept-user", None, f"the program gave {said}")

    def test_a_position_counts_as_much_as_a_name(self, start: Start) -> None:
        session = start()
        assert workers(DataLoader(SAMPLES, 1, False, None, None, 1)) == 1
        assert session.became()[2] == "the program gave num_workers=1"

    def test_what_is_set_later(self, start: Start) -> None:
        session, made, other = start(), DataLoader(SAMPLES), DataLoader(SAMPLES)
        made.num_workers = 1
        assert workers(made) == 1
        assert session.became()[2] == "the program set num_workers"
        assert workers(other) == 2
        other.num_workers = 1
        assert workers(other) == 1

    def test_loaders_whose_arguments_are_not_known(self, start: Start) -> None:
        early = DataLoader(SAMPLES, num_workers=0)
        session = start()
        for one in (early, copy.copy(DataLoader(SAMPLES, num_workers=0))):
            assert workers(one) == 0
            assert session.became()[2] == "the DataLoader is a copy, or was made before gputune.apply"

    @pytest.mark.parametrize(("given", "count"), [({}, 2), ({"num_workers": 0}, 0)])
    def test_a_framework_that_makes_a_loader_anew_gives_it_what_the_programs_own_has(
        self, start: Start, given: dict[str, Any], count: int
    ) -> None:
        start()
        own = DataLoader(SAMPLES, **given)
        names = (*ATTRIBUTES, "worker_init_fn", "multiprocessing_context")
        anew: Any = DataLoader(own.dataset, **{name: getattr(own, name) for name in names if name != "pin_memory"})
        assert workers(anew) == count

    @pytest.mark.parametrize("pinned", [False, True])
    def test_pinned_memory(self, start: Start, pinned: bool) -> None:
        session = start()
        made = made_with(DataLoader(SAMPLES, pin_memory=pinned))
        assert (made["pin_memory"], made["num_workers"]) == (pinned, 2)
        assert session.became("dataloader_pin_memory") == ("kept-user", None, f"the program gave pin_memory={pinned}")

    def test_memory_is_not_pinned_where_gpus_are_hidden_from_the_process(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = start()
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        made = made_with(DataLoader(SAMPLES))
        assert (made["pin_memory"], made["num_workers"]) == (False, 2)
        assert session.became("dataloader_pin_memory")[::2] == ("skipped", "torch sees no GPU in this process")


@pytest.mark.parametrize(("error", "passes"), [(Late, True), (ValueError, False)])
def test_what_a_signal_handler_raises_while_workers_are_decided_reaches_the_program(
    recorded: None, error: type[Exception], passes: bool
) -> None:
    def raises(*_: Any) -> None:
        raise error("too slow")

    def values(_: Any) -> dict[str, Any]:
        if passes:
            signal.raise_signal(signal.SIGUSR1)
        return raises() or {}

    before = signal.signal(signal.SIGUSR1, raises)
    loader_iterated(values)
    with pytest.raises(Late, match="too slow") if passes else nullcontext():
        assert workers(DataLoader(SAMPLES)) == 0
    signal.signal(signal.SIGUSR1, before)

    def test_samples_that_draw_random_numbers_are_told_to_draw_others(self, start: Start) -> None:
        session = start()
        assert workers(DataLoader(Random())) == 2
        told = ("applied", 2, "put into DataLoader; its samples draw other random numbers there")
        assert session.became() == told
        assert workers(DataLoader(SAMPLES)) == 2
        assert session.became() == told


class TestRefused:
    def test_a_stream_would_be_repeated_by_every_worker(self, start: Start) -> None:
        session = start()
        assert workers(DataLoader(Stream(), batch_size=None)) == 0
        assert session.became() == ("skipped", None, "an IterableDataset would be repeated by every worker")

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_only_forked_workers_need_nothing_of_the_script(self, start: Start, method: str) -> None:
        session = start(method=method)
        assert workers(DataLoader(SAMPLES)) == 0
        assert session.became()[2].startswith(f"workers would be started by {method}")

    @pytest.mark.parametrize(("dataset", "count"), [(SAMPLES, 2), (Random(), 0)])
    def test_at_the_level_exact_only_samples_that_are_seen_to_draw_no_random_numbers(
        self, start: Start, dataset: Any, count: int
    ) -> None:
        session = start(deterministic=True)
        assert workers(DataLoader(dataset)) == count
        assert count or session.became()[2] == "its samples draw random numbers, which differ in workers"

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
        assert workers(DataLoader(OnGpu(), collate_fn=here if fails == "batch" else None)) == 0
        assert session.became() == ("skipped", None, "a forked process could not load its first sample")

    @pytest.mark.parametrize(
        ("dataset", "why"),
        [
            (Counts(), "its dataset counts or consumes something as samples are loaded"),
            (Subset(Counts(), [1, 2]), "its dataset counts or consumes something as samples are loaded"),
            (Several(), "its dataset counts or consumes something as samples are loaded"),
            ([threading.Lock(), threading.Lock()], "its batches cannot be passed from one process to another"),
        ],
    )
    def test_what_would_be_lost_in_a_worker(self, start: Start, dataset: Any, why: str) -> None:
        session = start()
        assert workers(DataLoader(dataset, collate_fn=list)) == 0
        assert session.became() == ("skipped", None, why)

    @pytest.mark.parametrize(
        "given",
        [
            {"sampler": Ahead()},
            {"sampler": [3, 1, 2]},
            {"batch_sampler": [[3, 1], [2]]},
            {"batch_sampler": BatchSampler(Ahead(), 2, drop_last=False)},
        ],
    )
    def test_a_sampler_of_the_programs_own_that_may_look_at_the_loop(self, start: Start, given: Any) -> None:
        session = start()
        assert workers(DataLoader(SAMPLES, **given)) == 0
        assert session.became()[2] == "its sampler is the program's own, and workers would ask it ahead of the loop"

    @pytest.mark.parametrize("more", [{"replacement": True}, {"num_samples": 20}])
    def test_a_sampler_that_draws_from_the_programs_generator_again_and_again(self, start: Start, more: Any) -> None:
        session, generator = start(), torch.Generator()
        assert workers(DataLoader(SAMPLES, sampler=RandomSampler(SAMPLES, generator=generator, **more))) == 0
        assert session.became()[2] == "its sampler draws from the program's generator during an epoch"
        assert workers(DataLoader(SAMPLES, sampler=RandomSampler(SAMPLES, **more))) == 2

    @pytest.mark.parametrize(
        "given",
        [
            {"shuffle": True},
            {"shuffle": True, "generator": torch.Generator()},
            {"sampler": SubsetRandomSampler([1, 2])},
            {"sampler": WeightedRandomSampler([1.0, 2.0], 4)},
            {"sampler": DistributedSampler(SAMPLES, num_replicas=2, rank=0)},
            {"batch_sampler": BatchSampler(SequentialSampler(SAMPLES), 2, drop_last=False)},
        ],
    )
    def test_but_not_torchs_own_samplers(self, start: Start, given: Any) -> None:
        start()
        assert workers(DataLoader(SAMPLES, **given)) == 2

    @pytest.mark.slow
    @pytest.mark.parametrize("given", [{"batch_size": None}, {"batch_size": None, "collate_fn": float}, {}])
    def test_batches_are_tried_as_the_loader_makes_them(self, start: Start, given: dict[str, Any]) -> None:
        start()
        assert workers(DataLoader(Random(), **given)) == 2

    def test_without_that_level_they_may(self, start: Start) -> None:
        start()
        assert workers(DataLoader(Random())) == 2


def test_nothing_is_patched_where_there_is_nothing_to_give() -> None:
    before = DataLoader.__init__, DataLoader._get_iterator
    followed(Advice(device="cpu", general={"compile": True}, programs=(tuned(Tuned(), None),)))
    assert (DataLoader.__init__, DataLoader._get_iterator) == before


def tuned(
    model: nn.Module, count: int | None = 1, *, name: str = "train.py", dataset: str | None = None
) -> TunedProgram:
    own = None if count is None else loading({"dataloader_workers": count})
    return TunedProgram(entry=name, models=(key(model).identity,), settings={}, loading=own, dataset=dataset)


@pytest.mark.usefixtures("recorded")
class TestTunedProgram:
    def follow(self, *programs: TunedProgram, **more: Any) -> Session:
        gc.collect()  # models of other tests
        return followed(Advice(device="cpu", programs=programs, **more))

    @pytest.mark.parametrize(
        "main", [{"__file__": "/x/renamed.py"}, {"__spec__": SimpleNamespace(name="pkg.train")}, {}]
    )
    def test_its_models_tell_it_and_no_name_of_a_file(self, monkeypatch: pytest.MonkeyPatch, main: Any) -> None:
        module = ModuleType("__main__")
        vars(module).update(main)
        monkeypatch.setitem(sys.modules, "__main__", module)
        session = self.follow(tuned(Tuned()))
        model, other = Tuned(), NotTuned()
        assert workers(DataLoader(Images())) == 1
        assert session.became() == ("applied", 1, "put into DataLoader")
        del model, other

    def test_a_loader_that_was_made_before_the_model_gets_them(self) -> None:
        self.follow(tuned(Tuned()))
        made = DataLoader(Images())
        model = Tuned()
        assert workers(made) == 1
        del model

    def test_a_loader_that_was_asked_before_the_model_was_made_gets_them_from_then_on(self) -> None:
        session = self.follow(tuned(Tuned()))
        made = DataLoader(Images())
        assert workers(made) == 0
        assert session.became()[2] == "no DataLoader was asked for a batch"
        model = Tuned()
        assert workers(made) == 1
        del model
        gc.collect()
        assert workers(DataLoader(Images())) == 1

    def test_another_model_gets_none(self) -> None:
        self.follow(tuned(Tuned()))
        model = NotTuned(), nn.Linear(4, 2)
        assert workers(DataLoader(Images())) == 0
        del model

    def test_a_model_inside_of_wrappers_and_of_other_models(self) -> None:
        self.follow(tuned(Tuned()))
        model = nn.ModuleDict({"net": nn.DataParallel(Tuned())})
        assert workers(DataLoader(Images())) == 1
        del model

    def test_another_dataset_is_named(self) -> None:
        session, model = self.follow(tuned(Tuned(), dataset="Images")), Tuned()
        assert workers(DataLoader(Other())) == 0
        assert session.became() == ("skipped", None, "tuned for a dataset Images, this is Other")
        assert workers(DataLoader(Images())) == 1
        del model

    @pytest.mark.parametrize("training_first", [True, False])
    def test_of_two_loaders_the_one_with_the_dataset_gets_them_and_that_is_what_is_told(
        self, training_first: bool
    ) -> None:
        session, model = self.follow(tuned(Tuned(), dataset="Images")), Tuned()
        order = (Images(), Other()) if training_first else (Other(), Images())
        assert [workers(DataLoader(one)) for one in order] == [int(type(one) is Images) for one in order]
        assert session.became() == ("applied", 1, "put into DataLoader")
        del model

    def test_a_program_of_an_older_profile_whose_dataset_is_not_known_is_for_any(self) -> None:
        self.follow(tuned(Tuned()))
        model = Tuned()
        assert [workers(DataLoader(one)) for one in (Images(), Other())] == [1, 1]
        del model

    def test_of_several_programs_with_these_models_the_one_of_this_name_and_else_the_newest(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        programs = (tuned(Tuned(), 3, name="evaluate.py"), tuned(Tuned(), 2, name="train.py"))
        model = Tuned()
        for name, count in (("train.py", 2), ("renamed.py", 3)):
            monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=f"/x/{name}"))  # type: ignore[arg-type]
            with monkeypatch.context() as now:
                now.setattr(DataLoader, "_get_iterator", DataLoader._get_iterator)
                self.follow(*programs)
                assert workers(DataLoader(Images())) == count
        del model

    def test_what_is_for_any_program_is_for_the_others_where_that_was_asked_for(self) -> None:
        self.follow(tuned(Tuned(), dataset="Images"), loading=loading({"dataloader_workers": 4}))
        assert workers(DataLoader(Images())) == 4
        model = Tuned()
        assert [workers(DataLoader(one)) for one in (Images(), Other())] == [1, 4]
        del model

    def test_an_iterator_for_each_batch_does_not_look_for_models_each_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[Any] = []
        monkeypatch.setattr("gputune.live.loader.existing", lambda names: looked.append(names) or set())
        self.follow(tuned(Tuned()))
        for _ in range(3 * MOST_LOOKS):
            workers(DataLoader(Images()))
        assert looked == [{"Tuned"}] * MOST_LOOKS


@pytest.mark.timed
def test_looking_for_models_among_a_million_objects_takes_milliseconds() -> None:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(500)), Tuned())
    objects = [[number] for number in range(1_000_000)]
    begun = time.perf_counter()
    assert existing({"Tuned"}) == {key(Tuned()).identity}
    assert time.perf_counter() - begun < 0.1
    del model, objects


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        (Images(), "Images"),
        (Subset(Images(), [1]), "Images"),
        (Subset(ConcatDataset([Images(), Subset(Images(), [1])]), [1]), "Images"),
        (ConcatDataset([Other(), Images()]), "Images + Other"),
        ([1, 2], "list"),
    ],
)
def test_the_class_of_a_dataset_is_that_of_what_loads_its_samples(dataset: Any, name: str) -> None:
    assert dataset_class(dataset) == name


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
