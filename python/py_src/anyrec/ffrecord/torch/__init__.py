"""A drop-in replacement for ``ffrecord.torch``: datasets that read a whole batch at once, and a loader.

>>> import pickle
>>> from anyrec.ffrecord import FileWriter
>>> from anyrec.ffrecord.torch import DataLoader, Dataset
>>> with FileWriter("squares.ffr", 10) as writer:
...     for i in range(10):
...         writer.write_one(pickle.dumps(i * i))
>>> class Squares(Dataset):
...     def process(self, indices, data):
...         return [pickle.loads(sample) for sample in data]
>>> loader = DataLoader(Squares("squares.ffr"), batch_size=4, shuffle=False)
>>> loader.set_step(1)
>>> [batch.tolist() for batch in loader]
[[16, 25, 36, 49], [64, 81]]
"""

from __future__ import annotations

from .dataloader import DataLoader
from .dataset import ConcatDataset, Dataset, ReaderRegistry, Subset

ReaderResitry = ReaderRegistry
"""The name in early versions of the original."""

__all__ = ["ConcatDataset", "DataLoader", "Dataset", "ReaderRegistry", "Subset"]
