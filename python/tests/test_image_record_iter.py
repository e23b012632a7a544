"""ImageRecordIter: the batches of MXNet's, live beside it where there is one.

The interpreter with MXNet 1.9.1 is named by the environment variable ANYREC_MXNET_PYTHON. It makes the
batches of all cases in one go, and each test compares one.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import anyrec
from anyrec import image
from anyrec._image_parameters import read_parameters, steps_of
from anyrec.image_record_iter import part_of
from anyrec.mxnet import ImageRecordIter, IRHeader, MXRecordIO, pack
from conftest import TESTDATA, manifest
from picture_cases import (
    CASES,
    COLUMNS,
    COUNT,
    DECODED,
    DRAWS,
    PIXELS,
    RESIZED,
    ROWS,
    all_kinds,
    colour_cases,
    coordinates,
    encoded,
    epochs_of,
    golden_cases,
    photo,
    photo_cases,
    pixel_cases,
    random_cases,
    write,
)

ORIGINAL = os.environ.get("ANYREC_MXNET_PYTHON")

@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("pictures")
    photos = [encoded(photo(i), quality=90) for i in range(COUNT)]
    write(folder / "photos.rec", photos)
    write(folder / "photos4.rec", photos, labels=4)
    write(folder / "kinds.rec", all_kinds())
    opaque = [np.dstack([photo(700 + i), photo(700 + i)[:, :, 0]]) for i in range(12)]
    write(folder / "opacity.rec", [encoded(picture, "PNG") for picture in opaque])
    write(folder / "coordinates.rec", [encoded(coordinates(), "PNG")] * DRAWS)
    # Pixels far enough from black and white that colours can change.
    same = (photo(0)[:40, :44] // 3 + np.array([90, 60, 40])).astype(np.uint8)
    write(folder / "same.rec", [encoded(same, "PNG")] * DRAWS)
    lines = [f"{key}\t{key}.5\t1\t2\t{key % 7}\tsome/path.png\n" for key in (100, 93, 86, 79, 72, 65)]
    (folder / "four.lst").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def original(files: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with what MXNet makes of every case."""
    if ORIGINAL is None:
        pytest.skip("NOT COMPARED WITH THE ORIGINAL: ANYREC_MXNET_PYTHON names no Python with mxnet 1.9.1")
    folder = tmp_path_factory.mktemp("original")
    cases = [
        {"name": name, "epochs": epochs_of(name), "parameters": given} for name, given in CASES.items()
    ]
    (folder / "cases.json").write_text(json.dumps(cases))
    script = str(pathlib.Path(__file__).with_name("mxnet_batches.py"))
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [ORIGINAL, script, str(folder / "cases.json"), str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=files,
        env=plain,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def in_files(files: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(files)
    return files


def theirs(original: pathlib.Path, name: str) -> Any:
    said = original / f"{name}.txt"
    assert not said.exists(), said.read_text()
    return np.load(original / f"{name}.npz")


def difference(mine: npt.NDArray[Any], other: npt.NDArray[Any]) -> tuple[float, float]:
    """How far arrays are apart: on average, and at most."""
    assert mine.shape == other.shape and mine.dtype == other.dtype
    apart = np.abs(mine.astype(np.float64) - other.astype(np.float64))
    return float(apart.mean()), float(apart.max())


# Against MXNet


@pytest.mark.parametrize("name", [*golden_cases(), *photo_cases()])
def test_batches_are_the_originals(original: pathlib.Path, in_files: pathlib.Path, name: str) -> None:
    expected, given = theirs(original, name), CASES[name]
    batches = ImageRecordIter(**given)
    for epoch in range(epochs_of(name)):
        data, labels, pads = (expected[f"{what}{epoch}"] for what in ("data", "label", "pad"))
        mine = list(batches)
        assert len(mine) == len(data)
        for number, (batch, pictures, label, pad) in enumerate(zip(mine, data, labels, pads, strict=True)):
            last = number == len(mine) - 1
            if given["round_batch"]:
                # After its first epoch, MXNet may say of a batch without padding what an older one had.
                assert batch.pad == pad or (epoch > 0 and batch.pad == 0)
                real = given["batch_size"]
            else:
                # MXNet says 0 and leaves in the last batch what was there before.
                assert pad == 0 and (batch.pad == 0 or last)
                real = given["batch_size"] - batch.pad
            assert batch.label[0].asnumpy().dtype == np.float32
            np.testing.assert_array_equal(batch.label[0].asnumpy()[:real], label[:real])
            assert batch.data[0].asnumpy().shape == pictures.shape == (given["batch_size"], *given["data_shape"])
            mean, most = difference(batch.data[0].asnumpy()[:real], pictures[:real])
            assert mean <= DECODED[0] and most <= DECODED[1]
            if name.startswith("photos"):
                first = batch.label[0].asnumpy().reshape(given["batch_size"], -1)[:, 0]
                np.testing.assert_array_equal(batch.index, 5000 - first)
        batches.reset()


@pytest.mark.parametrize("name", pixel_cases())
def test_pixels_are_the_originals(original: pathlib.Path, in_files: pathlib.Path, name: str) -> None:
    expected, given = theirs(original, name), CASES[name]
    mine = ImageRecordIter(**given).next()
    mean, most = PIXELS.get(name.removeprefix("pixels-"), ({}, RESIZED))[1]
    for number, (picture, other) in enumerate(zip(mine.data[0].asnumpy(), expected["data0"][0], strict=True)):
        found = difference(picture, other)
        assert found[0] <= mean and found[1] <= most, f"picture {number}"


def places(pictures: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Where parts of the picture of coordinates come from: corner, edges, share of its area, proportions."""
    _, _, height, width = pictures.shape
    middle = pictures[:, :, height // 2, width // 2]
    edges = (pictures[:, 0, height // 2, -1] - pictures[:, 0, height // 2, 0]) * width / (width - 1)
    rows = (pictures[:, 1, -1, width // 2] - pictures[:, 1, 0, width // 2]) * height / (height - 1)
    return {
        "x": middle[:, 0],
        "y": middle[:, 1],
        "area": np.abs(edges * rows) / (ROWS * COLUMNS),
        "proportion": np.log(np.abs(edges) / rows),
        "size of proportion": np.abs(np.log(np.abs(edges) / rows)),
        "mirrored": (edges < 0).astype(np.float64),
    }


def alike(mine: npt.NDArray[Any], other: npt.NDArray[Any], slack: float, what: str) -> None:
    """Whether two samples are of one distribution, but for some slack: means, ends, values in order."""
    spread = float(other.std())
    error = spread / len(other) ** 0.5
    assert abs(mine.mean() - other.mean()) < 5 * error + slack, what
    assert np.abs(np.sort(mine) - np.sort(other)).mean() < 0.12 * spread + slack, what
    ends = [np.percentile(values, [0.5, 99.5]) for values in (mine, other)]
    assert np.abs(ends[0] - ends[1]).max() < 0.4 * spread + slack, what


@pytest.mark.parametrize("name", random_cases())
def test_random_parts_are_drawn_by_the_originals_law(
    original: pathlib.Path, in_files: pathlib.Path, name: str
) -> None:
    expected, given = theirs(original, name), CASES[name]
    mine = places(ImageRecordIter(**given).next().data[0].asnumpy())
    other = places(expected["data0"][0])
    for what in other:
        alike(mine[what], other[what], 0.001, what)


def test_random_crops_reach_every_place(in_files: pathlib.Path) -> None:
    pictures = ImageRecordIter(**CASES["random-crop"]).next().data[0].asnumpy()
    corners = pictures[:, :2, 0, 0].astype(int)
    assert corners.min(0).tolist() == [0, 0] and corners.max(0).tolist() == [COLUMNS - 40, ROWS - 30]
    assert (pictures[:, 0, 0, -1] - pictures[:, 0, 0, 0] == 39).all()


def test_random_parts_have_the_area_and_proportions_asked_for(in_files: pathlib.Path) -> None:
    found = places(ImageRecordIter(**CASES["random-part-narrow"]).next().data[0].asnumpy())
    assert 0.18 < found["area"].min() and found["area"].max() < 0.32
    proportion = found["size of proportion"]
    assert np.log(1.1) < proportion.min() and proportion.max() < np.log(1.65)
    wide = (found["proportion"] > 0).mean()
    assert 0.44 < wide < 0.56


def test_mirroring_is_every_other_picture(in_files: pathlib.Path) -> None:
    found = places(ImageRecordIter(**CASES["random-mirror"]).next().data[0].asnumpy())
    assert 0.46 < found["mirrored"].mean() < 0.54
    both = places(ImageRecordIter(**CASES["random-mirror"], mirror=True).next().data[0].asnumpy())
    assert both["mirrored"].mean() == 1


@pytest.mark.parametrize("name", colour_cases())
def test_colours_change_by_the_originals_law(
    original: pathlib.Path, in_files: pathlib.Path, name: str
) -> None:
    expected, given = theirs(original, name), CASES[name]
    mine, other = ImageRecordIter(**given).next().data[0].asnumpy(), expected["data0"][0]
    for channel in range(3):
        values = [pictures[:, channel].reshape(DRAWS, -1) for pictures in (mine, other)]
        for measure in (np.mean, np.std):
            one, two = (measure(value, axis=1) for value in values)
            # MXNet's pixels are of 8 bits in other colour spaces too, and its noise is cut off, not rounded.
            alike(one, two, 0.5, f"{measure.__name__} of channel {channel}")


# By itself

PLAIN: dict[str, Any] = {"path_imgrec": "a.rec", "data_shape": (3, 16, 16), "batch_size": 4}


def write_numbers(count: int, labels: int = 1, name: str = "a.rec") -> None:
    """Records whose pictures are of one value each: their number."""
    pictures = [encoded(np.full((20, 18, 3), i, np.uint8), "PNG") for i in range(count)]
    write(pathlib.Path(name), pictures, labels)


def numbers(batches: ImageRecordIter) -> list[tuple[list[int], int]]:
    """The records of an epoch's batches, with their padding; pixels, labels and ids must agree."""
    found = []
    for batch in batches:
        first = batch.label[0].asnumpy().reshape(len(batch.data[0].asnumpy()), -1)[:, 0]
        np.testing.assert_array_equal(batch.data[0].asnumpy()[:, 0, 3, 3], first)
        np.testing.assert_array_equal(batch.index, 5000 - first)
        found.append((first.astype(int).tolist(), batch.pad))
    return found


def test_the_last_batch_is_filled_from_the_next_epoch_which_goes_on_there() -> None:
    write_numbers(11)
    batches = ImageRecordIter(**PLAIN)
    assert numbers(batches) == [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0), ([8, 9, 10, 0], 1)]
    assert numbers(batches) == [], "an epoch that is over stays so"
    batches.reset()
    assert numbers(batches) == [([1, 2, 3, 4], 0), ([5, 6, 7, 8], 0), ([9, 10, 0, 1], 2)]
    batches.reset()
    assert numbers(batches) == [([2, 3, 4, 5], 0), ([6, 7, 8, 9], 0), ([10, 0, 1, 2], 3)]
    batches.reset()
    assert numbers(batches) == [([3, 4, 5, 6], 0), ([7, 8, 9, 10], 0)]
    batches.reset()
    assert numbers(batches)[0] == ([0, 1, 2, 3], 0)


def test_without_round_batch_every_epoch_begins_anew_and_padding_is_told() -> None:
    write_numbers(11)
    batches = ImageRecordIter(**PLAIN, round_batch=False)
    for _ in range(3):
        assert numbers(batches) == [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0), ([8, 9, 10, 8], 1)]
        batches.reset()
    batches = ImageRecordIter(**{**PLAIN, "batch_size": 25}, round_batch=False)
    assert numbers(batches) == [([*range(11), *range(11), 0, 1, 2], 14)]


@pytest.mark.parametrize("round_batch", [True, False])
def test_an_epoch_that_is_left_early_is_followed_by_a_whole_one(round_batch: bool) -> None:
    write_numbers(11)
    batches = ImageRecordIter(**PLAIN, round_batch=round_batch)
    batches.reset()
    batches.reset()
    assert batches.next().index.tolist() == [5000, 4999, 4998, 4997]
    batches.reset()
    assert [len(real) - pad for real, pad in numbers(batches)] == [4, 4, 3]


@pytest.mark.parametrize("round_batch", [True, False])
def test_shuffled_epochs_have_every_record_once_and_differ(round_batch: bool) -> None:
    write_numbers(50)
    options = {**PLAIN, "shuffle": True, "round_batch": round_batch}
    batches = ImageRecordIter(**options)
    epochs: list[list[int]] = []
    fill: list[int] = []
    for _ in range(4):
        found = numbers(batches)
        order = fill + [number for batch, _ in found for number in batch]
        pad = found[-1][1]
        epochs.append(order[: len(order) - pad])
        fill = order[len(order) - pad :] if round_batch else []
        batches.reset()
    assert all(sorted(order) == list(range(50)) for order in epochs)
    assert len({tuple(order) for order in epochs}) == 4
    assert numbers(ImageRecordIter(**options))[0][0] == epochs[0][:4]
    assert numbers(ImageRecordIter(**options, seed=1))[0][0] != epochs[0][:4]


def test_a_batch_may_be_larger_than_the_file_but_not_twice() -> None:
    write_numbers(11)
    assert numbers(ImageRecordIter(**{**PLAIN, "batch_size": 15})) == [([*range(11), 0, 1, 2, 3], 4)]
    with pytest.raises(anyrec.InvalidArgument, match="batch_size=25.*bigger.*and there are 11"):
        ImageRecordIter(**{**PLAIN, "batch_size": 25})


@pytest.mark.parametrize("entry", manifest("mxnet")["inputsplit"], ids=lambda entry: entry["file"])
def test_parts_are_those_of_the_original(entry: dict[str, Any]) -> None:
    folder = TESTDATA / "mxnet" / "good"
    for part, (first, count) in enumerate(entry["parts"]):
        given = {
            **PLAIN,
            "path_imgrec": folder / entry["file"],
            "path_imgidx": folder / entry["idx"] if entry["idx"] else "",
            "num_parts": entry["num_parts"],
            "part_index": part,
        }
        if count == 0:
            with pytest.raises(anyrec.InvalidArgument, match=f"no record for part {part} of"):
                part_of(read_parameters(given))
            continue
        data = part_of(read_parameters(given))
        found = data.indices if isinstance(data, anyrec.View) else np.arange(len(data))
        assert found.tolist() == list(range(first, first + count))


def test_several_files_are_shared_out_as_one() -> None:
    for name, count in [("a.rec", 11), ("b.rec", 5), ("c.rec", 20)]:
        write_numbers(count, name=name)
    given = {**PLAIN, "path_imgrec": "a.rec;b.rec;c.rec", "batch_size": 1}
    whole = [batch[0] for batch, _ in numbers(ImageRecordIter(**given))]
    assert whole == [*range(11), *range(5), *range(20)]
    shared = []
    for part in range(4):
        shared += [batch[0] for batch, _ in numbers(ImageRecordIter(**given, num_parts=4, part_index=part))]
    assert shared == whole
    pathlib.Path("folder").mkdir()
    for name in ("a.rec", "c.rec"):
        pathlib.Path(name).rename(f"folder/{name}")
    assert len(numbers(ImageRecordIter(**{**given, "path_imgrec": "folder"}))) == 31


def test_labels_are_as_many_as_said_or_it_is_an_error() -> None:
    write_numbers(6, labels=4, name="four.rec")
    write_numbers(6)
    four = ImageRecordIter(**{**PLAIN, "path_imgrec": "four.rec"}, label_width=4).next()
    assert four.label[0].asnumpy().tolist()[1] == [1, 1001, 2001, 3001]
    for path, width in [("four.rec", 1), ("four.rec", 2), ("a.rec", 4)]:
        with pytest.raises(anyrec.AnyrecError, match="label"):
            ImageRecordIter(**{**PLAIN, "path_imgrec": path}, label_width=width).next()


def test_labels_of_a_list_file_are_found_by_id() -> None:
    write_numbers(6, labels=4)
    lines = [f"{5000 - i}\t{i + 0.5}\t{i}\tpath with spaces.jpg\n" for i in range(6)]
    pathlib.Path("a.lst").write_text("5000\t7\t7\tlisted twice\n" + "".join(reversed(lines)) + "\n")
    one = ImageRecordIter(**PLAIN, path_imglist="a.lst").next()
    assert one.label[0].asnumpy().tolist() == [0.5, 1.5, 2.5, 3.5]
    two = ImageRecordIter(**PLAIN, path_imglist="a.lst", label_width=2)
    assert two.next().label[0].asnumpy().tolist() == [[0.5, 0], [1.5, 1], [2.5, 2], [3.5, 3]]
    assert two.next().label[0].asnumpy().tolist() == [[4.5, 4], [5.5, 5], [0.5, 0], [1.5, 1]]
    with pytest.raises(anyrec.InvalidArgument, match="line 1 is not an id and 3 labels"):
        ImageRecordIter(**PLAIN, path_imglist="a.lst", label_width=3)
    pathlib.Path("a.lst").write_text("".join(lines[:2]))
    with pytest.raises(anyrec.InvalidArgument, match=r"a\.lst: there is no label for id 4998"):
        ImageRecordIter(**PLAIN, path_imglist="a.lst").next()


def test_it_is_used_as_the_originals_is() -> None:
    write_numbers(6)
    batches = ImageRecordIter(**PLAIN, label_width=1, data_name="pictures", verbose=True, ctx="cpu")
    [data], [label] = batches.provide_data, batches.provide_label
    assert (*data, data.dtype, data.layout) == ("pictures", (4, 3, 16, 16), np.float32, "NCHW")
    assert (*label,) == ("softmax_label", (4,))
    assert batches.batch_size == 4 and iter(batches) is batches
    with pytest.raises(anyrec.InvalidArgument, match="no current batch"):
        batches.getdata()
    assert batches.iter_next()
    assert batches.getdata().shape == (4, 3, 16, 16) and batches.getlabel().asnumpy().tolist() == [0, 1, 2, 3]
    assert batches.getindex().dtype == np.uint64 and batches.getpad() == 0
    batch = batches.next()
    assert (batch.pad, str(batch)) == (2, "DataBatch: data shapes: [(4, 3, 16, 16)] label shapes: [(4,)]")
    assert not batches.iter_next()
    with pytest.raises(StopIteration):
        batches.next()
    with batches:
        batches.reset()
        assert next(batches).index.tolist() == [4998, 4997, 4996, 4995]


def test_the_same_seeds_give_the_same_pixels_for_any_number_of_threads(files: pathlib.Path) -> None:
    given: dict[str, Any] = {
        "path_imgrec": files / "photos.rec",
        "data_shape": (3, 32, 32),
        "batch_size": 64,
        "shuffle": True,
        "rand_mirror": True,
        "random_resized_crop": True,
        "min_random_area": 0.3,
        "max_aspect_ratio": 0.2,
        "brightness": 0.2,
        "pca_noise": 0.1,
    }
    reference = ImageRecordIter(**given, preprocess_threads=1).next()
    same = ImageRecordIter(**given, preprocess_threads=2, prefetch_buffer=1).next()
    np.testing.assert_array_equal(reference.data[0].asnumpy(), same.data[0].asnumpy())
    other = ImageRecordIter(**given, seed_aug=5).next()
    np.testing.assert_array_equal(reference.index, other.index)
    assert (reference.data[0].asnumpy() != other.data[0].asnumpy()).any()


# Parameters


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": 3}, "no parameter colour"),
        ({"rand_miror": True}, "no parameter rand_miror"),
        ({"max_shear_ratio": 0.1}, r"max_shear_ratio=0\.1"),
        ({"mean_img": "mean.bin"}, "mean_img='mean.bin'"),
        ({"max_crop_size": 40}, "max_crop_size=40"),
        ({"shuffle_chunk_size": 64}, "shuffle_chunk_size=64"),
        ({"max_random_contrast": 0.2}, "max_random_contrast"),
        ({"aug_seq": "aug_other"}, "aug_seq='aug_other'"),
        ({"inter_method": 10}, "inter_method=10"),
        ({"inter_method": 2, "rotate": 10}, "inter_method=2: with rotate"),
        ({"dtype": "int32"}, "dtype='int32'"),
        ({"data_shape": (2, 8, 8)}, "data_shape"),
        ({"data_shape": (8, 8)}, "data_shape"),
        ({"data_shape": (3, 0, 8)}, "data_shape"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 1.5}, r"batch_size=1\.5 is not an integer"),
        ({"label_width": 0}, "label_width=0"),
        ({"num_parts": 2, "part_index": 2}, "part_index=2"),
        ({"mirror": "maybe"}, "mirror='maybe' is not True or False"),
        ({"rand_crop": 2}, "rand_crop=2"),
        ({"scale": "large"}, "scale='large' is not a number"),
        ({"rotate": -30}, "rotate=-30"),
        ({"resize": 0}, "resize=0"),
        ({"pad": -1}, "pad=-1"),
        ({"fill_value": 256}, "fill_value=256"),
        ({"std_g": 0}, "std_g"),
        ({"max_aspect_ratio": 0.2}, "max_aspect_ratio"),
        ({"random_resized_crop": True, "rand_crop": True}, "rand_crop=True"),
        ({"random_resized_crop": True, "min_random_area": 2}, "min_random_area"),
        ({"random_resized_crop": True, "max_random_area": 2}, "max_random_area"),
        ({"random_resized_crop": True, "max_aspect_ratio": 1.3}, "max_aspect_ratio"),
        ({"path_imgrec": ""}, "path_imgrec"),
        ({"path_imgrec": "a.rec;b.rec", "path_imgidx": "a.idx"}, "path_imgidx"),
    ],
)
def test_what_is_not_known_or_not_supported_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(anyrec.InvalidArgument, match=message):
        ImageRecordIter(**{**PLAIN, **given})


def test_what_is_needed_and_what_was_meant_is_told() -> None:
    for name in PLAIN:
        with pytest.raises(anyrec.InvalidArgument, match=f"needs {name}"):
            ImageRecordIter(**{key: value for key, value in PLAIN.items() if key != name})
    with pytest.raises(anyrec.InvalidArgument) as raised:
        ImageRecordIter(**PLAIN, rand_miror=True)
    assert raised.value.hint == "did you mean rand_mirror?"
    with pytest.raises(anyrec.FileMissing):
        ImageRecordIter(**PLAIN)


def test_values_may_be_text_as_in_the_original() -> None:
    given = {
        "path_imgrec": pathlib.Path("a.rec"),
        "data_shape": "(3, 8, 9)",
        "batch_size": "4",
        "mirror": "True",
        "rand_crop": np.bool_(True),
        "scale": "0.5",
        "dtype": np.float32,
        "seed_aug": None,
        "max_shear_ratio": "0",
        "device_id": 3,
    }
    p = read_parameters(given)
    assert (p.path_imgrec, p.data_shape, p.batch_size) == ("a.rec", (3, 8, 9), 4)
    assert (p.mirror, p.rand_crop, p.scale, p.dtype, p.seed_aug) == (True, True, 0.5, "float32", None)


def steps(**given: Any) -> list[Any]:
    return steps_of(read_parameters({**PLAIN, **given}))


def test_parameters_become_steps_in_the_originals_order() -> None:
    crop = image.CentreCrop((16, 16), enlarge="cv-linear")
    plain = image.Normalise((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), scale=1.0)
    assert steps() == [crop, plain]
    assert steps(dtype="uint8", mean_r=3) == steps(dtype="int8", std_r=3) == [crop]
    everything = steps(
        data_shape=(3, 24, 32),
        resize=40,
        max_rotate_angle=10,
        pad=2,
        fill_value=0,
        rand_crop=True,
        contrast=0.1,
        saturation=0.2,
        random_h=3,
        random_l=5,
        pca_noise=0.1,
        rand_mirror=True,
        inter_method=3,
        mean_r=1,
        std_b=4,
        scale=2,
    )
    assert everything == [
        image.Resize(40, filter="cv-area"),
        image.Rotate(10, fill=0, law="mxnet"),
        image.Pad(2, fill=0),
        image.RandomCrop((24, 32), enlarge="cv-area"),
        image.Jitter(0.0, 0.1, 0.2, law="mxnet"),
        image.Hsl(3, 0, 5),
        image.PcaNoise(0.1),
        image.Flip(0.5),
        image.Normalise((2.0, 0.0, 0.0), (1.0, 1.0, 4.0), scale=2.0),
    ]
    assert steps(rotate=30, max_rotate_angle=10)[0] == image.Rotate((30, 30), fill=255, law="mxnet")
    assert steps(mirror=True, rand_mirror=True)[1] == image.Flip(1.0)
    part = image.RandomResizedCrop((16, 16), (0.5, 1.0), (0.75, 1.25), filter="cv-auto", law="mxnet")
    given = {"random_resized_crop": True, "min_random_area": 0.5, "max_aspect_ratio": 0.25, "inter_method": 9}
    assert steps(**given)[0] == part
    assert steps(random_resized_crop=True) == steps()
    assert steps(data_shape=(1, 16, 16), mean_r=2)[-1] == image.Normalise((2.0,), (1.0,), scale=1.0)
    opacity = steps(data_shape=(4, 16, 16), std_a=2)[-1]
    assert opacity == image.Normalise((0.0,) * 4, (1.0, 1.0, 1.0, 2.0), scale=1.0)


def test_a_record_that_is_no_picture_is_raised_and_one_cut_short_is_not(files: pathlib.Path) -> None:
    record = bytes(anyrec.open(files / "photos.rec")[0])
    with MXRecordIO("a.rec", "w") as writer:
        writer.write(record)
        writer.write(record[: len(record) // 2])
    whole = ImageRecordIter(**{**PLAIN, "batch_size": 2, "data_shape": (3, 40, 40)}).next().data[0].asnumpy()
    assert (whole[0, :, :5] == whole[1, :, :5]).all() and (whole[0] != whole[1]).any()
    with MXRecordIO("a.rec", "w") as writer:
        writer.write(record)
        writer.write(pack(IRHeader(0, 1.0, 1, 0), b"this is no picture"))
    with pytest.raises(anyrec.AnyrecError):
        ImageRecordIter(**{**PLAIN, "batch_size": 2}).next()
