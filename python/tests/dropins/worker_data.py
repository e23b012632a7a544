"""Data sets that workers of any start method can import."""

from __future__ import annotations

import pickle

import anyrec
import anyrec.ffrecord.torch
import anyrec.torch
import torch
from anyrec.ffrecord import FileReader, FileWriter
from anyrec.mxnet import MXIndexedRecordIO

COUNT = 60


def payload(index):
    return f"{index}:".encode() * (index % 7 + 1)


def make():
    """Writes the same records in both formats."""
    with FileWriter("a.ffr", COUNT) as samples, MXIndexedRecordIO("a.idx", "a.rec", "w") as records:
        for index in range(COUNT):
            samples.write_one(payload(index))
            records.write_idx(index, payload(index))


class Everything(torch.utils.data.Dataset[object]):
    """One sample from every kind of reader there is."""

    def __init__(self):
        self.records = anyrec.torch.Dataset("a.rec")
        self.samples = anyrec.torch.Dataset("a.ffr", decode=bytes)
        self.reader = FileReader("a.ffr")
        self.keyed = MXIndexedRecordIO("a.idx", "a.rec", "r")

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        kinds = (
            self.records[index],
            self.samples[index],
            bytes(self.reader.read([index, 0])[0]),
            self.keyed.read_idx(index),
        )
        assert all(kind == payload(index) for kind in kinds), (index, kinds)
        return kinds


class Batches(anyrec.ffrecord.torch.Dataset):
    def process(self, indices, data):
        return [bytes(sample) for sample in data]


def as_given(batch):
    return batch


def check(method, workers, read_before):
    """Loads everything; fails unless every sample arrives, in order."""
    make()
    context = method if workers else None
    everything, batches = Everything(), Batches("a.ffr")
    if read_before:
        assert everything[3] and batches[[1, 2, 3]] and everything.records.__getitems__([1, 2])
    options = {"batch_size": 4, "num_workers": workers, "multiprocessing_context": context}
    loader = torch.utils.data.DataLoader(everything, collate_fn=as_given, **options)
    seen = [sample for batch in loader for sample in batch]
    assert seen == [(payload(index),) * 4 for index in range(COUNT)]
    if workers > 2:
        # Eight more interpreters would show nothing new, and cost half of the watchdog's minute.
        options["num_workers"], options["multiprocessing_context"] = 2, "fork"
    loader = anyrec.ffrecord.torch.DataLoader(batches, collate_fn=as_given, **options)
    loader.set_step(2)
    assert [sample for batch in loader for sample in batch] == [payload(i) for i in range(8, COUNT)]
    # The parent still reads.
    assert everything[5][0] == payload(5)
    assert pickle.loads(pickle.dumps(everything))[6][0] == payload(6)
