"""The user's own dataset or DataLoader as a source, and what a first look at it tells."""

import pytest
import torch
from broken_datasets import Dictionaries, Numbers, Undivided
from loaded import broken, children, good
from six_datasets import Lines
from torch.utils.data import DataLoader, SubsetRandomSampler

from gputune.benches._user_code import UserCodeError
from gputune.benches.loading.source import Options
from gputune.benches.loading.user_dataset import _source, look, source_of


def test_a_dataset_is_read_shuffled_in_batches_of_32():
    source = _source(Numbers(100), "x", None)
    assert (source.batch_size, source.epoch_batches) == (32, 4)
    batch = next(iter(source.loader(Options(workers=0))))
    assert batch.shape == (32, 64)
    assert batch[:, 0].tolist() != sorted(batch[:, 0].tolist())


def test_or_of_the_size_that_is_asked_for():
    assert _source(Numbers(100), "x", 10).epoch_batches == 10
    assert _source([1, 2, 3, 4], "x", 2).epoch_batches == 2


def test_a_dataloaders_batch_size_collate_function_and_sampler_are_kept():
    def collate(samples):
        return ["collated", torch.stack(samples)]

    loader = DataLoader(Numbers(100), batch_size=5, sampler=SubsetRandomSampler([7, 8, 9, 10, 11]), collate_fn=collate)
    source = _source(loader, "x", None)
    assert (source.batch_size, source.epoch_batches) == (5, 1)
    word, batch = next(iter(source.loader(Options(workers=0))))
    assert word == "collated"
    assert sorted(batch[:, 0].tolist()) == [7, 8, 9, 10, 11]
    with pytest.raises(UserCodeError, match="--batch-size 6: the DataLoader has its own, 5"):
        _source(loader, "x", 6)


def test_a_batch_sampler_of_ones_own_is_asked_for_its_batches_not_its_words():
    class Tokens:
        batch_size = 4096

        def __iter__(self):
            return iter([[0, 1, 2], [3, 4, 5, 6, 7]])

    assert _source(DataLoader(Numbers(100), batch_sampler=Tokens()), "x", None).batch_size == 4


def test_a_length_that_raises_is_told_with_its_place(tmp_path):
    (tmp_path / "no_length.py").write_text(
        "class Data:\n    def __getitem__(self, index): return index\n"
        "    def __len__(self):\n        raise NotImplementedError('no length yet')\n"
    )
    with pytest.raises(UserCodeError, match=r"NotImplementedError: no length yet \(no_length.py:4, in __len__\)"):
        source_of(f"{tmp_path}/no_length.py:Data", None, 5.0)


def test_a_dataloader_without_batches():
    source = _source(DataLoader(Numbers(100), batch_size=None), "x", None)
    assert source.batch_size is None
    assert next(iter(source.loader(Options(workers=0)))).shape == (64,)


def test_a_stream():
    source = _source(Lines(), "x", 8)
    assert (source.indices, source.epoch_batches) == (None, None)
    assert next(iter(source.loader(Options(workers=0)))).shape == (8, 512)
    source = _source(DataLoader(Lines(), batch_size=16, drop_last=True), "x", None)
    assert next(iter(source.loader(Options(workers=0)))).shape == (16, 512)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("number", "returned 'int', not a Dataset with a length, an IterableDataset or a DataLoader"),
        ("empty", "the dataset is empty: its length is 0"),
        ("empty_loader", "the dataset is empty: its length is 0"),
        ("raises_while_made", "raises_while_made() raised RuntimeError: no such bucket (broken_datasets.py:"),
        ("leaves", "leaves() called sys.exit(2)"),
        ("hangs_while_made", "returned nothing within 1 s"),
        ("NOT_CALLABLE", "has no callable NOT_CALLABLE"),
    ],
)
def test_what_cannot_be_loaded(name, says):
    with pytest.raises(UserCodeError) as caught:
        source_of(broken(name), None, 1.0 if name.startswith("hangs") else 20.0)
    assert says in str(caught.value)


class TestALook:
    @pytest.mark.slow
    def test_the_bytes_of_a_whole_batch(self):
        seen = look(_source(Dictionaries(), "x", 16))
        # ids: 16 x 64 whole numbers of 8 bytes; the pair's whole and other numbers: 16 of 8 bytes, a page each
        assert seen.batch_bytes == 16 * 64 * 8 + 4096 + 4096
        assert seen.worker_bytes > 1 << 20
        assert not seen.same_samples
        assert not children()

    @pytest.mark.slow
    def test_what_waits_and_what_computes(self):
        assert look(source_of(good("sleeping"), None, 20.0)).busy < 0.5
        shares = [look(source_of(good("lines"), None, 20.0)).busy for _ in range(5)]
        assert max(shares) > 0.5, "others on the CPU only make it wait for longer"

    @pytest.mark.slow
    def test_the_time_of_a_whole_batch(self):
        seen = look(source_of(good("sleeping"), None, 20.0))
        assert 32 * 0.004 < seen.batch_seconds < 1, "more where others use the CPUs too"

    @pytest.mark.slow
    def test_workers_that_all_yield_the_same(self):
        assert look(_source(Undivided(), "x", 4)).same_samples
        assert not look(_source(Lines(), "x", 4)).same_samples
