"""Run by an interpreter that has MXNet: what its ImageRecordIter gives.

The arguments are a JSON file with a list of cases, each ``{"name", "epochs", "parameters"}``, and a
folder; there, NAME.npz gets the arrays of each epoch, one batch behind the other, and their padding. A case
that fails gets NAME.txt with what was said.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any


def main(cases: pathlib.Path, folder: pathlib.Path) -> None:
    import mxnet  # type: ignore[import-not-found]
    import numpy as np

    for case in json.loads(cases.read_text()):
        arrays: dict[str, Any] = {}
        try:
            batches = mxnet.io.ImageRecordIter(verbose=False, **case["parameters"])
            for epoch in range(case["epochs"]):
                given = list(iter_batches(batches))
                arrays[f"data{epoch}"] = np.stack([data for data, _, _ in given])
                arrays[f"label{epoch}"] = np.stack([label for _, label, _ in given])
                arrays[f"pad{epoch}"] = np.array([pad for _, _, pad in given])
                batches.reset()
        except mxnet.MXNetError as error:
            (folder / f"{case['name']}.txt").write_text(str(error))
        else:
            np.savez(folder / f"{case['name']}.npz", **arrays)


def iter_batches(batches: Any) -> Any:
    for batch in batches:
        # Copied: the arrays of a batch are used again for a later one.
        yield batch.data[0].asnumpy().copy(), batch.label[0].asnumpy().copy(), batch.pad


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
