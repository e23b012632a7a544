"""What loaders count, measure and log."""

from __future__ import annotations

import logging
import pathlib
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import anyrec
from anyrec.mxnet import IRHeader, pack_img


def words(path: str, count: int, damaged: list[int] | None = None) -> str:
    with anyrec.create(path) as writer:
        for i in range(count):
            writer.write(f"word {i:4}")
    for i in damaged or []:
        position = anyrec.open(path).position(i)[0]
        with open(path, "r+b") as file:
            file.seek(position)
            file.write(b"X")
    return path


def test_counts_are_of_the_epoch_and_of_all_epochs() -> None:
    loader = anyrec.Loader(words("a.ffr", 10, [3]), 4, on_error="skip")
    nothing = anyrec.Counts(0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)
    assert loader.stats() == anyrec.Stats(nothing, nothing, 0)
    for _ in range(3):
        assert len(list(loader)) == 3
    stats = loader.stats()
    for counts, epochs in [(stats.in_epoch, 1), (stats.total, 3)]:
        found = (counts.batches, counts.records, counts.bytes, counts.failed)
        assert found == (3 * epochs, 9 * epochs, 81 * epochs, epochs)
        assert counts.waited > 0 and counts.loading > 0 and counts.decoding == 0
    batches = iter(loader)
    next(batches)
    assert (loader.stats().in_epoch.batches, loader.stats().total.batches) == (1, 10)


def test_images_are_counted_as_samples_and_their_decoding_is_measured() -> None:
    with anyrec.create("a.rec") as writer:
        for i in range(6):
            writer.write(pack_img(IRHeader(0, i, i, 0), np.full((20, 20, 3), i, np.uint8), 3, ".png"))
    loader = anyrec.ImageLoader("a.rec", 2, 8, train=False, dtype="uint8")
    list(loader)
    counts = loader.stats().total
    assert (counts.records, counts.bytes) == (6, 6 * 3 * 8 * 8)
    assert 0 < counts.decoding <= counts.loading


def test_a_slow_file_shows_up_as_waiting() -> None:
    delay = 0.0

    def slow(block: Any) -> bytes:
        time.sleep(delay)
        return bytes(block)

    anyrec.grail.register_transformer("slow", lambda _: bytes, lambda _: slow)
    with anyrec.create("a.grail-rio", transformers=["slow"], max_items=1) as writer:
        for i in range(20):
            writer.write(f"{i}")

    def waited() -> float:
        loader = anyrec.Loader("a.grail-rio", 5, threads=1)
        list(loader)
        return loader.stats().total.waited

    usual = waited()
    # Every one of the twenty blocks takes half as long as the whole file did.
    delay = usual / 2
    assert waited() > 5 * usual


def test_every_epoch_and_every_skipped_record_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    loader = anyrec.Loader(words("a.ffr", 10, [3]), 5, on_error="skip", epoch=7)
    with caplog.at_level(logging.DEBUG, "anyrec"):
        list(loader)
    warning, debug = caplog.records
    assert (warning.name, warning.levelname, debug.name, debug.levelname) == (
        "anyrec", "WARNING", "anyrec", "DEBUG",
    )  # fmt: skip
    assert warning.getMessage().startswith("skipped record 3 in epoch 7: a.ffr: ")
    assert debug.getMessage().startswith("epoch 7: 2 batches, 9 records, 81 bytes, 1 failed; waited ")


def test_only_the_first_hundred_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    path = words("a.ffr", 150, [i for i in range(150) if i % 10])
    list(anyrec.Loader(path, 30, on_error="replace"))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 101
    assert told[0].startswith("replaced record 1 ") and told[-1].startswith("further records ")


LOGS_NOTHING = """
import anyrec, sys
for _ in anyrec.Loader("a.ffr", 5, on_error="skip"):
    pass
"""


def test_nothing_is_printed_by_default(own_folder: pathlib.Path) -> None:
    words("a.ffr", 10, [3])
    done = subprocess.run([sys.executable, "-c", LOGS_NOTHING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_num_workers_is_threads_and_zero_is_one_thread() -> None:
    path = words("a.ffr", 10)
    for workers, threads in [(0, 1), (1, 1), (3, 3)]:
        assert anyrec.Loader(path, 4, num_workers=workers)._options["threads"] == threads
    with pytest.raises(anyrec.InvalidArgument, match="threads and num_workers are the same option"):
        anyrec.Loader(path, 4, num_workers=2, threads=2)


def images(labels: list[Any]) -> str:
    with anyrec.create("labelled.rec") as writer:
        for i, label in enumerate(labels):
            writer.write(pack_img(IRHeader(0, label, i, 0), np.zeros((8, 8, 3), np.uint8), 3, ".png"))
    return "labelled.rec"


def test_a_batch_is_a_dictionary_with_the_names_of_its_fields_or_others() -> None:
    path = images([1, 0, 2])
    whole = next(iter(anyrec.ImageLoader(path, 3, 8, train=False, as_dict=True)))
    assert list(whole) == ["data", "labels", "indices", "ids", "padding"]
    names = {"data": "pixel_values", "labels": "labels"}
    batch = next(iter(anyrec.ImageLoader(path, 3, 8, train=False, as_dict=names, label_dtype="int64")))
    assert list(batch) == ["pixel_values", "labels"]
    assert batch["pixel_values"].shape == (3, 3, 8, 8)
    assert (batch["labels"].dtype, batch["labels"].tolist()) == (np.int64, [1, 0, 2])
    without = anyrec.ImageLoader(path, 3, 8, train=False, as_dict=True, label_width=0)
    assert "labels" not in next(iter(without))
    with pytest.raises(anyrec.InvalidArgument, match="as_dict: this batch has no labels"):
        next(iter(anyrec.ImageLoader(path, 3, 8, train=False, as_dict=names, label_width=0)))
    with pytest.raises(anyrec.InvalidArgument, match="as_dict: a batch has no field 'image', only data, "):
        anyrec.ImageLoader(path, 3, 8, train=False, as_dict={"image": "pixel_values"})


def test_a_label_that_is_no_whole_number_is_named() -> None:
    loader = anyrec.ImageLoader(images([1, 0.5]), 2, 8, train=False, label_dtype="int64")
    with pytest.raises(anyrec.InvalidArgument, match=r"the label of record 1 is 0\.5, not a whole number"):
        next(iter(loader))
