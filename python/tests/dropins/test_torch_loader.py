"""Datasets in loaders: the right batches, from any step on."""

from __future__ import annotations

import pickle

import anyrec
import numpy as np
import pytest
from anyrec.ffrecord import FileReader, FileWriter

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import anyrec.ffrecord.torch as fftorch
import anyrec.torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset as TorchDataset

COUNT = 103


def number(record):
    return int(bytes(record))


@pytest.fixture
def dataset(tmp_path):
    with anyrec.create("numbers.ffr") as writer:
        for i in range(COUNT):
            writer.write(str(i))
    return anyrec.torch.Dataset("numbers.ffr", decode=number)


class Pickled(fftorch.Dataset):
    def process(self, indices, data):
        return [pickle.loads(sample) for sample in data]


@pytest.fixture
def pickled(tmp_path):
    with FileWriter("pickled.ffr", COUNT) as writer:
        for i in range(COUNT):
            writer.write_one(pickle.dumps((i, i * 2)))
    return Pickled("pickled.ffr")


def lists(loader):
    return [batch.tolist() for batch in loader]


# The map-style dataset


def test_samples_come_by_number_slice_and_list(dataset):
    assert len(dataset) == COUNT and dataset[7] == 7 and dataset[-1] == COUNT - 1
    assert dataset[2:4] == [2, 3] and dataset[[3, 6, 0, 3]] == [3, 6, 0, 3]
    assert dataset[np.int64(5)] == 5 and dataset[np.array([1, 1])] == [1, 1]


def test_batched_read_keeps_order_and_repeats(dataset):
    assert dataset.__getitems__([5, 1, 5]) == [5, 1, 5]


def test_without_decode_samples_are_bytes_that_collate(tmp_path):
    with anyrec.create("words.rec", format="mxnet") as writer:
        for word in ["zero", "one"]:
            writer.write(word)
    dataset = anyrec.torch.Dataset("words.rec")
    assert dataset[1] == b"one"
    assert list(TorchLoader(dataset, batch_size=2)) == [[b"zero", b"one"]]


def test_subclass_that_makes_single_samples_is_asked_for_each(tmp_path, dataset):
    class Doubled(anyrec.torch.Dataset):
        def __getitem__(self, index):
            return super().__getitem__(index) * 2

    assert Doubled("numbers.ffr", decode=number).__getitems__([1, 2]) == [2, 4]


def test_dataset_is_pickled_by_its_paths(dataset):
    copy = pickle.loads(pickle.dumps(dataset))
    assert len(copy) == COUNT and copy[5] == 5


def test_missing_record_is_an_index_error(dataset):
    with pytest.raises(IndexError):
        dataset[COUNT]


def test_torchs_own_loader_takes_it(dataset):
    assert lists(TorchLoader(dataset, batch_size=50)) == [
        list(range(50)),
        list(range(50, 100)),
        [100, 101, 102],
    ]


# Skipping


class Plain(TorchDataset[int]):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index


class Backwards(SequentialSampler):
    """A sampler of the user's own."""

    def __iter__(self):
        yield from reversed(range(COUNT))


def seeded():
    return torch.Generator().manual_seed(12345)


SAMPLERS = {
    "sequential": lambda: {},
    "shuffle": lambda: {"shuffle": True},
    "shuffle with a generator": lambda: {"shuffle": True, "generator": seeded()},
    "replacement": lambda: {"sampler": RandomSampler(Plain(), replacement=True, num_samples=150)},
    "replacement with a generator": lambda: {
        "sampler": RandomSampler(Plain(), replacement=True, num_samples=96, generator=seeded())
    },
    "several permutations": lambda: {"sampler": RandomSampler(Plain(), num_samples=250)},
    "distributed": lambda: {"sampler": DistributedSampler(Plain(), 3, 1)},
    "distributed in order": lambda: {"sampler": DistributedSampler(Plain(), 4, 3, shuffle=False)},
    "list": lambda: {"sampler": list(range(0, COUNT, 2))},
    "subset": lambda: {"sampler": SubsetRandomSampler(range(50))},
    "weighted": lambda: {"sampler": WeightedRandomSampler([1.0] * COUNT, 60)},
    "own sampler": lambda: {"sampler": Backwards(range(COUNT))},
    "own batches": lambda: {"batch_sampler": [[1, 2], [3], [4, 5, 6], [7]]},
    "batch sampler": lambda: {"batch_sampler": BatchSampler(RandomSampler(Plain()), 10, True)},
}


@pytest.mark.parametrize("step", [0, 1, 3, 100])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
def test_skipped_epochs_are_the_rest_of_unskipped_ones(name, step, drop_last):
    """Over two epochs, so that generators must end up where torch leaves them."""
    batching = {} if "batch_sampler" in SAMPLERS[name]() else {"batch_size": 8, "drop_last": drop_last}
    torch.manual_seed(7)
    loader = TorchLoader(Plain(), **batching, **SAMPLERS[name]())
    expected = [lists(loader), lists(loader)]
    after = torch.rand(1)
    torch.manual_seed(7)
    loader = anyrec.torch.DataLoader(Plain(), **batching, **SAMPLERS[name]())
    loader.set_step(step)
    assert len(loader) == max(0, len(expected[0]) - step)
    assert [lists(loader), lists(loader)] == [epoch[step:] for epoch in expected]
    assert torch.rand(1) == after
    loader.set_step(0)
    assert len(loader) == len(expected[0])


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("generator", [None, 12345])
def test_skipping_with_shuffle_and_workers_gives_the_unskipped_batches(workers, persistent, generator):
    def options():
        made = None if generator is None else torch.Generator().manual_seed(generator)
        return {
            "batch_size": 10,
            "shuffle": True,
            "num_workers": workers,
            "persistent_workers": persistent,
            "generator": made,
        }

    torch.manual_seed(3)
    loader = TorchLoader(Plain(), **options())
    expected = [lists(loader), lists(loader)]
    torch.manual_seed(3)
    loader = anyrec.torch.DataLoader(Plain(), **options())
    loader.set_step(4)
    first = lists(loader)
    loader.set_step(0)
    assert [first, lists(loader)] == [expected[0][4:], expected[1]]


def test_without_batching_samples_are_skipped():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=None, shuffle=False)
    loader.set_step(100)
    assert list(loader) == [100, 101, 102]


class Counting(SequentialSampler):
    asked = 0

    def __iter__(self):
        for index in range(COUNT):
            Counting.asked += 1
            yield index


def test_only_a_sampler_of_the_users_own_is_walked():
    loader = anyrec.torch.DataLoader(Plain(), sampler=Counting(range(COUNT)), batch_size=10)
    loader.set_step(9)
    assert lists(loader)[0][0] == 90 and Counting.asked == COUNT


@pytest.mark.parametrize("shuffle", [False, True])
def test_skipping_nearly_all_of_a_huge_epoch_takes_no_time(shuffle):
    """One index at a time, this many would take minutes and gigabytes."""
    import time

    class Huge(Plain):
        def __len__(self):
            return 20_000_000

    loader = anyrec.torch.DataLoader(Huge(), batch_size=4, shuffle=shuffle)
    loader.set_step(len(loader) - 2)
    began = time.process_time()
    assert len(lists(loader)) == 2
    walked = time.process_time()
    for _ in iter(range(20_000_000)):
        pass
    # A plain walk over that many numbers is less than any sampler's; the permutation is drawn once.
    if not shuffle:
        assert walked - began < time.process_time() - walked


def test_nothing_that_is_skipped_is_read():
    class Careful(Plain):
        def __getitem__(self, index):
            assert index >= 50
            return index

    loader = anyrec.torch.DataLoader(Careful(), batch_size=10)
    loader.set_step(5)
    assert len(lists(loader)) == 6


@pytest.mark.parametrize("step", [-1, -100])
def test_negative_step_is_refused(step):
    with pytest.raises(ValueError, match="negative"):
        anyrec.torch.DataLoader(Plain()).set_step(step)


def test_iterable_dataset_loads_but_has_no_steps():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    loader = anyrec.torch.DataLoader(Stream(), batch_size=2)
    assert lists(loader) == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError, match="IterableDataset"):
        loader.set_step(1)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [anyrec.torch.DataLoader, fftorch.DataLoader])
def test_prefetch_factor_is_taken_with_and_without_workers(kind, workers):
    assert len(lists(kind(Plain(), batch_size=50, num_workers=workers, prefetch_factor=4))) == 3


def test_loader_keeps_what_lightning_looks_at():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=8, shuffle=True)
    assert type(loader.batch_sampler) is BatchSampler and type(loader.sampler) is RandomSampler
    assert loader.batch_size == 8
    sharded = type(loader)(loader.dataset, batch_size=8, sampler=DistributedSampler(Plain(), 2, 0))
    assert sum(map(len, lists(sharded))) == 52


# Going on where another run stopped


@pytest.mark.parametrize("generator", [None, 5])
@pytest.mark.parametrize("workers", [0, 2])
def test_state_in_the_middle_of_a_shuffled_epoch_goes_on_with_its_rest(workers, generator):
    def make():
        made = None if generator is None else torch.Generator().manual_seed(generator)
        return anyrec.torch.DataLoader(
            Plain(), batch_size=10, shuffle=True, num_workers=workers, generator=made
        )

    torch.manual_seed(1)
    loader = make()
    epoch = iter(loader)
    given = [next(epoch).tolist() for _ in range(4)]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = [batch.tolist() for batch in epoch]
    following = lists(loader)
    assert sorted(sum(given + rest, [])) == list(range(COUNT))

    torch.manual_seed(99)
    resumed = make()
    resumed.load_state_dict(state)
    assert len(resumed) == 11 and lists(resumed) == rest
    assert len(resumed) == 11
    if generator is not None:
        assert lists(resumed) == following


def test_state_between_epochs_goes_on_with_the_next():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=10, shuffle=True, generator=seeded())
    lists(loader)
    state = loader.state_dict()
    expected = lists(loader)
    resumed = anyrec.torch.DataLoader(Plain(), batch_size=10, shuffle=True, generator=torch.Generator())
    resumed.load_state_dict(state)
    assert state["step"] == 0 and lists(resumed) == expected


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("generator", [None, 5])
def test_state_at_the_last_batch_goes_on_with_the_next_epoch(workers, generator):
    def make():
        made = None if generator is None else torch.Generator().manual_seed(generator)
        return anyrec.torch.DataLoader(
            Plain(), batch_size=10, shuffle=True, num_workers=workers, generator=made
        )

    loader = make()
    epoch = iter(loader)
    for _ in range(len(loader)):
        next(epoch)
    state = loader.state_dict()
    assert state["step"] == 0 and list(epoch) == []
    following = lists(loader)
    resumed = make()
    resumed.load_state_dict(state)
    found = lists(resumed)
    assert sorted(sum(found, [])) == list(range(COUNT))
    assert generator is None or found == following


def test_sampler_that_gives_more_than_it_says_loses_no_batch_to_a_state():
    class Modest(SequentialSampler):
        def __len__(self):
            return 2

    loader = anyrec.torch.DataLoader(Plain(), batch_size=None, sampler=Modest(range(4)))
    given = []
    for index in loader:
        given.append(int(index))
        loader.state_dict()
    assert given == [0, 1, 2, 3]


def test_loader_is_pickled_in_the_middle_of_an_epoch():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=10)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    again = pickle.loads(pickle.dumps(loader))
    assert again.state_dict() == state


def test_state_counts_from_the_step_that_was_set():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=10)
    loader.set_step(3)
    epoch = iter(loader)
    next(epoch)
    assert loader.state_dict()["step"] == 4


def test_state_of_a_resumed_epoch_can_be_taken_again():
    torch.manual_seed(1)
    loader = anyrec.torch.DataLoader(Plain(), batch_size=10, shuffle=True)
    whole = iter(loader)
    next(whole)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in whole]
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    second = iter(loader)
    next(second)
    state = loader.state_dict()
    loader.load_state_dict(state)
    assert lists(loader) == rest[1:]


def test_resumed_epoch_that_is_left_is_not_taken_up_again():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=10)
    loader.load_state_dict({**loader.state_dict(), "step": 8})
    for _ in loader:
        break
    assert len(lists(loader)) == 11


def test_distributed_epoch_is_restored():
    loader = anyrec.torch.DataLoader(Plain(), batch_size=5, sampler=DistributedSampler(Plain(), 2, 0))
    loader.sampler.set_epoch(3)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in epoch]
    resumed = anyrec.torch.DataLoader(Plain(), batch_size=5, sampler=DistributedSampler(Plain(), 2, 0))
    resumed.load_state_dict(state)
    assert lists(resumed) == rest


def test_shards_of_a_distributed_sampler_cover_the_dataset(dataset):
    seen = []
    for rank in range(3):
        sampler = DistributedSampler(dataset, 3, rank, drop_last=False)
        seen += sum(lists(anyrec.torch.DataLoader(dataset, batch_size=7, sampler=sampler)), [])
    assert set(seen) == set(range(COUNT))


# ffrecord.torch


@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_ffrecord_loader_gives_what_torchs_gives_for_single_samples(pickled, workers, shuffle, batch_size):
    class Pairs(Plain):
        def __getitem__(self, index):
            return index, index * 2

    options = {"batch_size": batch_size, "shuffle": shuffle, "num_workers": workers}
    expected = list(TorchLoader(Pairs(), **options, generator=seeded()))
    loader = fftorch.DataLoader(pickled, **options, generator=seeded())
    loader.set_step(5)
    assert len(loader) == len(expected) - 5
    for ours, theirs in zip(loader, expected[5:], strict=True):
        assert torch.equal(ours[0], theirs[0]) and torch.equal(ours[1], theirs[1])


def test_ffrecord_loader_without_batching_hands_over_lists_of_one(pickled):
    loader = fftorch.DataLoader(pickled, batch_size=None)
    loader.set_step(COUNT - 1)
    assert [np.asarray(batch).tolist() for batch in loader] == [[[COUNT - 1, 2 * COUNT - 2]]]


def test_ffrecord_loader_forks_unless_told_otherwise(pickled):
    assert fftorch.DataLoader(pickled, num_workers=1).multiprocessing_context.get_start_method() == "fork"
    assert fftorch.DataLoader(pickled).multiprocessing_context is None


def test_ffrecord_loader_that_is_not_skippable_refuses_steps(pickled):
    with pytest.raises(RuntimeError, match="skippable"):
        fftorch.DataLoader(pickled, skippable=False).set_step(1)


def test_own_getitem_gets_the_list_of_a_batch():
    class Own(fftorch.Dataset):
        def __init__(self):
            self.asked = []

        def __len__(self):
            return 10

        def __getitem__(self, indices):
            assert isinstance(indices, list)
            self.asked.append(indices)
            return [index * 10 for index in indices]

    dataset = Own()
    assert lists(fftorch.DataLoader(dataset, batch_size=4)) == [[0, 10, 20, 30], [40, 50, 60, 70], [80, 90]]
    assert dataset.asked == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_single_index_is_refused_and_process_must_be_defined(pickled):
    with pytest.raises(TypeError, match="indices must be a list of index"):
        pickled[0]
    with pytest.raises(NotImplementedError):
        fftorch.Dataset("pickled.ffr")[[0]]


def test_concatenation_keeps_order_and_repeats(pickled):
    both = fftorch.ConcatDataset([pickled, fftorch.Subset(pickled, [5, 6])])
    assert len(both) == COUNT + 2 and both.cumulative_sizes == [COUNT, COUNT + 2]
    assert [sample[0] for sample in both[[1, COUNT, 1, -1, COUNT, 0]]] == [1, 5, 1, 6, 5, 0]
    with pytest.raises(ValueError, match="should not exceed dataset length"):
        both[[-COUNT - 3]]
    with pytest.raises(IndexError):
        both[[COUNT + 2]]
    with pytest.raises(AssertionError):
        fftorch.ConcatDataset([])
    assert both.ffreaders() == [pickled.reader, pickled.reader]


def test_subset_takes_an_array_of_indices(pickled):
    subset = fftorch.Subset(pickled, np.array([7, 7, 3]))
    assert len(subset) == 3 and [sample[0] for sample in subset[[2, 0, 1]]] == [3, 7, 7]


def test_registry_finds_readers_at_any_depth(pickled):
    class Inner(fftorch.ReaderRegistry):
        def __init__(self):
            self.first = FileReader("pickled.ffr")
            self.second = FileReader("pickled.ffr")
            self.other = "not a reader"

    class Outer(fftorch.Dataset):
        def __init__(self):
            self.reader = FileReader("pickled.ffr")
            self.inner = Inner()
            self.itself = self

    outer = Outer()
    assert outer.ffreaders() == [outer.reader, outer.inner.first, outer.inner.second]
    del outer.inner
    assert outer.ffreaders() == [outer.reader]
    assert fftorch.ReaderResitry is fftorch.ReaderRegistry
