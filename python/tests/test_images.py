"""Pictures for training: pixels, chance, broken pictures."""

from __future__ import annotations

import functools
import io
import itertools
import json
import pathlib
import pickle
import random
import subprocess
import sys
import sysconfig
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image  # type: ignore[import-untyped]

import anyrec
from anyrec import _anyrec
from anyrec.image import (
    IMAGENET,
    Brightness,
    CentreCrop,
    Contrast,
    Flip,
    Hsl,
    Hue,
    Jitter,
    Normalise,
    Pad,
    PcaNoise,
    RandomCrop,
    RandomResizedCrop,
    Resize,
    ResizeTo,
    Rotate,
    Saturation,
    Step,
)
from anyrec.mxnet import IRHeader, pack

torch = pytest.importorskip("torch")
transforms = pytest.importorskip("torchvision.transforms")
functional = transforms.functional
import anyrec.torch  # noqa: E402


@functools.cache
def photographs() -> list[Image.Image]:
    """Natural photographs, out of scikit-learn's package (of which nothing else is used)."""
    folder = pathlib.Path(sysconfig.get_path("platlib")) / "sklearn/datasets/images"
    return [Image.open(folder / name).convert("RGB") for name in ("china.jpg", "flower.jpg")]


@functools.cache
def natural(count: int = 200) -> list[bytes]:
    """JPEGs of many sizes and kinds: parts of the photographs."""
    chance = random.Random(1)
    made = []
    for number in range(count):
        photograph = photographs()[number % 2]
        width, height = chance.randint(60, 500), chance.randint(60, 400)
        left, top = chance.randint(0, 640 - width), chance.randint(0, 427 - height)
        part = photograph.crop((left, top, left + width, top + height))
        if number % 10 == 9:
            part = part.convert("L")
        options: dict[str, Any] = {"quality": chance.choice([50, 75, 90, 95]), "progressive": number % 7 == 3}
        if part.mode == "RGB":
            options["subsampling"] = number % 3
        made.append(encoded(part, "JPEG", **options))
    return made


def encoded(picture: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format, **options)
    return buffer.getvalue()


def write(path: str, pictures: list[bytes]) -> str:
    """Image records with their numbers as labels and twice their numbers as ids."""
    with anyrec.create(path, index_file=True, overwrite=True) as writer:
        for number, picture in enumerate(pictures):
            writer.write(pack(IRHeader(0, float(number), 2 * number, 0), picture), key=number)
    return path


def made(picture: bytes | Image.Image, *steps: Step, size: Any = 224, **options: Any) -> npt.NDArray[Any]:
    """What a recipe makes of a picture: height x width x channels of bytes, if it is not said otherwise."""
    if isinstance(picture, Image.Image):
        picture = encoded(picture, "PNG")
    path = write("one.rec", [picture])
    options = {"dtype": "uint8", "layout": "NHWC", **options}
    with anyrec.ImageLoader(path, 1, size, steps=steps, **options) as loader:
        sample: npt.NDArray[Any] = next(iter(loader)).data[0]
        return sample


def difference(one: npt.NDArray[Any], other: Any) -> tuple[float, int]:
    """The mean and the largest difference."""
    apart = np.abs(one.astype(int) - np.asarray(other).astype(int))
    return float(apart.mean()), int(apart.max())


def tensor(picture: Image.Image) -> Any:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)


def array(tensor: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = tensor.permute(1, 2, 0).numpy()
    return values


# Pixels


def test_jpegs_have_the_pixels_of_libjpeg_turbo() -> None:
    for picture in natural():
        expected = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
        mean, most = difference(_anyrec.decode_image(picture, 1, rgb=True), expected)
        assert mean <= 0.5 and most <= 6
        height, width = expected.shape[:2]
        mean, most = difference(made(picture, CentreCrop((height, width)), size=(height, width)), expected)
        assert mean <= 0.5 and most <= 6


def test_a_part_of_a_jpeg_is_the_part_of_the_whole() -> None:
    for picture in natural(60):
        whole = _anyrec.decode_image(picture, 1, rgb=True)
        top, left = (whole.shape[0] - 40) // 2, (whole.shape[1] - 50) // 2
        part = made(picture, CentreCrop((40, 50)), size=(40, 50))
        assert np.array_equal(part, whole[top : top + 40, left : left + 50])


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "LA", "I;16", "1"])
def test_pngs_have_the_pixels_of_pillow(mode: str) -> None:
    photograph = photographs()[0].crop((100, 50, 227, 150))
    if mode == "I;16":
        picture = Image.fromarray((np.asarray(photograph.convert("L")).astype(np.uint16) * 257))
        expected = np.asarray(photograph.convert("L"))[:, :, None].repeat(3, axis=2)
    else:
        picture = photograph.convert(mode)
        expected = np.asarray(picture.convert("RGB"))
    for options in ({}, {"optimize": True}):
        data = encoded(picture, "PNG", **options)
        assert np.array_equal(made(data, CentreCrop((100, 127)), size=(100, 127)), expected)


def test_webp_without_loss_has_the_pixels() -> None:
    photograph = photographs()[1].crop((100, 50, 227, 150))
    data = encoded(photograph, "WEBP", lossless=True)
    assert np.array_equal(made(data, CentreCrop((100, 127)), size=(100, 127)), np.asarray(photograph))


@pytest.mark.parametrize("size", [(100, 80), (224, 224), (30, 40), (9, 7), (500, 700)])
def test_resizing_is_near_torchvision(size: tuple[int, int]) -> None:
    """Also where a JPEG is decoded at a smaller scale."""
    for picture in natural(24):
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        expected = functional.resize(tensor(image), list(size), antialias=True)
        result = made(picture, ResizeTo(size[1], size[0]), size=size)
        assert difference(result, array(expected))[0] <= 1.5


def test_the_steps_of_evaluation_are_torchvisions() -> None:
    path = write("eval.rec", natural(20))
    theirs = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    with anyrec.ImageLoader(path, 20, 224, train=False) as loader:
        batch = next(iter(loader))
    assert batch.data.shape == (20, 3, 224, 224) and batch.data.dtype == np.float32
    for result, picture in zip(batch.data, natural(20), strict=True):
        expected = theirs(Image.open(io.BytesIO(picture)).convert("RGB")).numpy()
        # A level is 1/57 here; the crop may be a pixel off, where a margin is odd.
        assert np.abs(result - expected).mean() < 0.2


def test_gray_and_opacity() -> None:
    photograph = photographs()[0].crop((0, 0, 60, 50))
    gray = made(encoded(photograph, "JPEG"), CentreCrop((50, 60)), size=(50, 60), channels=1)
    luminance = Image.open(io.BytesIO(encoded(photograph, "JPEG")))
    luminance.draft("L", (60, 50))
    assert np.array_equal(gray[:, :, 0], np.asarray(luminance))
    photograph.putalpha(photograph.convert("L"))
    with_alpha = made(photograph, CentreCrop((50, 60)), size=(50, 60), channels=4)
    assert np.array_equal(with_alpha, np.asarray(photograph))
    opaque = made(encoded(photograph.convert("RGB"), "JPEG"), CentreCrop((50, 60)), size=(50, 60), channels=4)
    assert (opaque[:, :, 3] == 255).all()


def test_exif_turns_pictures_only_if_asked() -> None:
    photograph = photographs()[0].crop((0, 0, 64, 48))
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(photograph, "JPEG", exif=exif)
    stored = _anyrec.decode_image(data, -1, rgb=True)
    assert np.array_equal(made(data, CentreCrop((48, 64)), size=(48, 64)), stored)
    turned = made(data, CentreCrop((64, 48)), size=(64, 48), exif=True)
    assert np.array_equal(turned, np.rot90(stored, -1))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_every_layout_and_type_has_the_same_values(layout: Any, dtype: Any) -> None:
    picture = photographs()[0].crop((10, 20, 43, 50))
    plain = made(picture, CentreCrop((30, 33)), Flip(1), size=(30, 33))
    assert np.array_equal(plain, np.asarray(picture)[:, ::-1])
    steps = [CentreCrop((30, 33)), Flip(1)]
    expected = plain.astype(np.float32)
    if dtype != "uint8":
        mean, std = np.array([120, 110, 100]), np.array([50, 60, 70])
        steps.append(Normalise(tuple(mean), tuple(std), scale=0.5))
        expected = (expected * 0.5 - mean) / std
    path = write("kind.rec", [encoded(picture, "PNG")])
    loader = anyrec.torch.ImageLoader(path, 1, (30, 33), steps=steps, layout=layout, dtype=dtype)
    data = next(iter(loader)).data
    assert data.dtype == getattr(torch, dtype)
    result = data[0].float().numpy()
    if layout == "NCHW":
        result = result.transpose(1, 2, 0)
    within = {"uint8": 0, "float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6}[dtype]
    assert np.abs(result - expected).max() <= within


def test_bfloat16_is_rounded_as_torch_does_it() -> None:
    picture = photographs()[0].crop((0, 0, 64, 64))
    path = write("half.rec", [encoded(picture, "PNG")])
    steps = [CentreCrop(64), IMAGENET]
    whole, half = (
        next(iter(anyrec.torch.ImageLoader(path, 1, 64, steps=steps, dtype=dtype))).data
        for dtype in ("float32", "bfloat16")
    )
    assert torch.equal(whole.to(torch.bfloat16), half)


# Steps against their definitions


@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.7])
@pytest.mark.parametrize(
    "step, theirs",
    [(Brightness, "adjust_brightness"), (Contrast, "adjust_contrast"), (Saturation, "adjust_saturation")],
)
def test_factors_do_what_torchvisions_do(step: Any, theirs: str, factor: float) -> None:
    for photograph in photographs():
        picture = photograph.crop((100, 100, 260, 240))
        result = made(picture, CentreCrop((140, 160)), step((factor, factor)), size=(140, 160))
        expected = getattr(functional, theirs)(tensor(picture), factor)
        assert difference(result, array(expected))[1] <= 2


@pytest.mark.parametrize("turn", [-0.5, -0.2, 0.0, 0.1, 0.45])
def test_hue_turns_as_torchvisions(turn: float) -> None:
    picture = photographs()[1].crop((100, 100, 260, 240))
    result = made(picture, CentreCrop((140, 160)), Hue((turn, turn)), size=(140, 160))
    mean, most = difference(result, array(functional.adjust_hue(tensor(picture), turn)))
    assert mean <= 0.6 and most <= 4


def test_jitter_is_its_parts_in_any_order() -> None:
    picture = photographs()[0].crop((0, 0, 100, 100))
    factors = {"brightness": 1.3, "contrast": 0.6, "saturation": 1.4}
    both: dict[str, Any] = {name: (factor, factor) for name, factor in factors.items()}
    adjust = {name: getattr(functional, f"adjust_{name}") for name in factors}
    orders = set()
    path = write("jitter.rec", [encoded(picture, "PNG")])
    steps = [CentreCrop(100), Jitter(**both)]
    loader = anyrec.ImageLoader(path, 1, 100, steps=steps, dtype="uint8", layout="NHWC")
    expected = {}
    for order in itertools.permutations(factors):
        image = tensor(picture)
        for name in order:
            image = adjust[name](image, factors[name])
        expected[order] = array(image)
    for _ in range(60):
        result = next(iter(loader)).data[0]
        found = min(expected, key=lambda order: difference(result, expected[order])[0])
        assert difference(result, expected[found])[0] <= 1.5
        orders.add(found)
    # Brightness first, the other two come to nearly the same in either order.
    assert len(orders) >= 5


@pytest.mark.parametrize("degrees", [0, 30, -75, 90, 180])
def test_rotation_is_torchvisions(degrees: int) -> None:
    picture = photographs()[0].crop((100, 100, 200, 180))
    result = made(picture, CentreCrop((80, 100)), Rotate((degrees, degrees), fill=7), size=(80, 100))
    bilinear = transforms.InterpolationMode.BILINEAR
    expected = functional.rotate(tensor(picture), degrees, bilinear, fill=[7.0])
    # torchvision's edges are all or nothing.
    assert difference(result, array(expected))[0] <= 1.5
    if degrees in (0, 180):
        assert np.array_equal(result, np.asarray(picture)[:: 1 if degrees == 0 else -1, :: 1 if degrees == 0 else -1])


def test_padding() -> None:
    picture = photographs()[0].crop((100, 100, 120, 110))
    result = made(picture, Pad(3, fill=9), CentreCrop((16, 26)), size=(16, 26))
    assert np.array_equal(result, array(functional.pad(tensor(picture), [3], fill=9)))


def test_noise_follows_the_axes_of_colours() -> None:
    gray = Image.new("RGB", (2, 2), (128, 128, 128))
    path = write("noise.rec", [encoded(gray, "PNG")] * 500)
    steps = [CentreCrop(2), PcaNoise(0.5)]
    loader = anyrec.ImageLoader(path, 500, 2, steps=steps, layout="NHWC")
    drawn = np.concatenate([next(iter(loader)).data[:, 0, 0] for _ in range(20)]) - 128
    values = np.array([55.46, 4.794, 1.148]) * 0.5
    axes = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    expected = axes @ np.diag(values**2) @ axes.T
    assert np.abs(np.cov(drawn.T) - expected).max() < 0.06 * expected.max()


def test_hsl_moves_lightness_and_keeps_gray_gray() -> None:
    gray = Image.new("RGB", (4, 4), (100, 100, 100))
    path = write("hsl.rec", [encoded(gray, "PNG")] * 300)
    loader = anyrec.ImageLoader(path, 300, 4, steps=[CentreCrop(4), Hsl(h=30, l=40)], dtype="uint8", layout="NHWC")
    data = next(iter(loader)).data.astype(int)
    assert (data.min(axis=3) == data.max(axis=3)).all()
    assert 60 <= data.min() < 65 and 135 < data.max() <= 140


# Chance


def coordinates(side: int) -> Image.Image:
    """Red tells the column, green the row, twice."""
    x, y = 2 * np.array(np.meshgrid(np.arange(side), np.arange(side)))
    return Image.fromarray(np.stack([x, y, x * 0], axis=2).astype(np.uint8))


def test_crops_and_flips_are_distributed_as_torchvisions() -> None:
    side, out, count = 120, 16, 20_000
    path = write("places.rec", [encoded(coordinates(side), "PNG")] * 1000)
    steps = [RandomResizedCrop(out), Flip()]
    loader = anyrec.ImageLoader(path, 1000, out, steps=steps, dtype="float32", layout="NHWC", seed=5)
    data = np.concatenate([next(iter(loader)).data for _ in range(count // 1000)])
    # Columns 4 and 11 are 7/16 of a part's width apart; those at the border see one side only.
    across = (data[:, 8, 11, 0] - data[:, 8, 4, 0]) / 2 * out / 7
    down = (data[:, 11, 8, 1] - data[:, 4, 8, 1]) / 2 * out / 7
    flipped, width, height = across < 0, np.abs(across), down
    assert abs(flipped.mean() - 0.5) < 0.02
    area, aspect = width * height / side**2, width / height
    torch.manual_seed(1)
    image = torch.empty(3, side, side)
    drawn = np.array(
        [transforms.RandomResizedCrop.get_params(image, [0.08, 1], [3 / 4, 4 / 3]) for _ in range(count)]
    )
    theirs_area, theirs_aspect = drawn[:, 2] * drawn[:, 3] / side**2, drawn[:, 3] / drawn[:, 2]
    for ours, theirs in [(area, theirs_area), (aspect, theirs_aspect)]:
        assert abs(ours.mean() / theirs.mean() - 1) < 0.02
        for quantile in (0.1, 0.25, 0.5, 0.75, 0.9):
            assert abs(np.quantile(ours, quantile) - np.quantile(theirs, quantile)) < 0.02
    # The middle of columns 7 and 8 is that of the part.
    left = (data[:, 8, 7, 0] + data[:, 8, 8, 0]) / 4 + 0.5 - width / 2
    room = side - width
    assert abs((left / np.maximum(room, 1))[room > 20].mean() - 0.5) < 0.02


def pixels(batches: Any) -> dict[int, bytes]:
    return {int(index): sample.tobytes() for batch in batches for index, sample in zip(batch.indices, batch.data, strict=True)}


ALL_RANDOM = [
    RandomResizedCrop(48),
    Flip(),
    Jitter(0.4, 0.4, 0.4, 0.1),
    PcaNoise(0.1),
    Rotate(10),
    Pad(4),
    RandomCrop(48),
    IMAGENET,
]


def test_pixels_depend_on_the_seed_alone() -> None:
    path = write("many.rec", natural(60))
    options: dict[str, Any] = {"steps": ALL_RANDOM, "shuffle": True, "seed": 3, "epoch": 2}
    expected = pixels(anyrec.ImageLoader(path, 12, 48, threads=1, **options))
    assert len(expected) == 60
    for threads in (2, 7):
        assert pixels(anyrec.ImageLoader(path, 12, 48, threads=threads, **options)) == expected
    for world in (2, 3):
        ranks = [anyrec.ImageLoader(path, 12 // world, 48, rank=rank, world=world, **options) for rank in range(world)]
        together: dict[int, bytes] = {}
        for loader in ranks:
            together.update(pixels(loader))
        assert together == expected
    assert pixels(anyrec.ImageLoader(path, 12, 48, **{**options, "seed": 4})) != expected
    assert pixels(anyrec.ImageLoader(path, 12, 48, **{**options, "epoch": 3})) != expected
    assert pixels(anyrec.ImageLoader(path, 12, 48, **options, augment_seed=9)) != expected


def test_resuming_at_any_step_gives_the_same_pixels() -> None:
    path = write("many.rec", natural(30))
    options: dict[str, Any] = {"steps": ALL_RANDOM, "shuffle": True, "seed": 3}
    with anyrec.ImageLoader(path, 4, 48, **options) as loader:
        whole = [(batch.indices.tolist(), batch.data.tobytes()) for batch in loader]
    for step in range(len(whole)):
        with anyrec.ImageLoader(path, 4, 48, **options) as loader:
            batches = iter(loader)
            for _ in range(step):
                next(batches)
            state = json.loads(json.dumps(loader.state_dict()))
        again = anyrec.ImageLoader(path, 4, 48, **{**options, "seed": 0}, threads=1)
        again.load_state_dict(state)
        assert [(batch.indices.tolist(), batch.data.tobytes()) for batch in again] == whole[step:]
        unpickled = pickle.loads(pickle.dumps(again))
        unpickled.load_state_dict(state)
        assert next(iter(unpickled)).data.tobytes() == whole[step][1]


# The loader


def test_batches_have_labels_and_ids() -> None:
    path = write("many.rec", natural(10))
    batch = next(iter(anyrec.ImageLoader(path, 4, 32, train=True)))
    assert batch.labels.tolist() == [0, 1, 2, 3] and batch.labels.dtype == np.float32
    assert batch.ids.tolist() == [0, 2, 4, 6] and batch.indices.tolist() == [0, 1, 2, 3]
    assert next(iter(anyrec.ImageLoader(path, 4, 32, train=True, label_width=0))).labels is None
    with pytest.raises(anyrec.InvalidArgument, match="expected 4, found 1"):
        next(iter(anyrec.ImageLoader(path, 4, 32, train=True, label_width=4)))
    with anyrec.create("wide.rec") as writer:
        for number, picture in enumerate(natural(6)):
            writer.write(pack(IRHeader(0, np.arange(4) + number, number, 0), picture))
    wide = next(iter(anyrec.ImageLoader("wide.rec", 3, 32, train=True, label_width=4)))
    assert wide.labels.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]


def test_plain_pictures_of_any_format() -> None:
    for path in ("plain.ffr", "plain.grail", "plain.rec"):
        with anyrec.create(path, format={"plain.grail": "grail"}.get(path)) as writer:
            for picture in natural(5):
                writer.write(picture)
        batch = next(iter(anyrec.ImageLoader(path, 5, 32, train=False)))
        assert batch.data.shape == (5, 3, 32, 32) and batch.labels is None
        assert batch.ids.tolist() == [0, 1, 2, 3, 4]


def test_a_python_function_may_have_the_last_word() -> None:
    path = write("many.rec", natural(6))
    loader = anyrec.ImageLoader(path, 3, 32, train=False, apply=lambda sample: sample.mean(axis=0))
    assert next(iter(loader)).data.shape == (3, 32, 32)
    tensors = anyrec.torch.ImageLoader(path, 3, 32, train=False, apply=lambda sample: sample.mean(0))
    assert np.allclose(next(iter(tensors)).data.numpy(), next(iter(loader)).data, atol=1e-6)


@pytest.mark.parametrize(
    "steps, message",
    [
        ([], "found no step"),
        ([Resize(40)], "any size after Resize"),
        ([CentreCrop(20)], "20x20 after CentreCrop"),
        ([CentreCrop(32), Normalise(1, 0)], "std not 0"),
        ([CentreCrop(32), Normalise((1, 2), 1)], "expected 1 or 3, found 2"),
        ([CentreCrop(32), Flip(2)], "0 to 1"),
        ([CentreCrop(32), Brightness(-1)], "ascending"),
        ([RandomResizedCrop(32, area=(0, 1))], "above 0"),
        ([ResizeTo(32, 32, filter="nearest")], "filter is"),
        ([Normalise(0, 1), CentreCrop(32)], "last step"),
    ],
)
def test_steps_that_make_no_sense_are_told(steps: list[Step], message: str) -> None:
    path = write("one.rec", natural(1))
    with pytest.raises(ValueError, match=message):
        anyrec.ImageLoader(path, 1, 32, steps=steps)


def test_pictures_smaller_than_a_crop_are_an_error_with_a_hint() -> None:
    path = write("small.rec", [encoded(Image.new("RGB", (20, 30)), "PNG")])
    with pytest.raises(anyrec.InvalidArgument, match=r"small.rec: .*at most 20x30.*32x32.*record 0"):
        next(iter(anyrec.ImageLoader(path, 1, 32, steps=[CentreCrop(32)])))
    assert next(iter(anyrec.ImageLoader(path, 1, 32, steps=[CentreCrop(32, "bilinear")]))).data.shape[2:] == (32, 32)


# Broken pictures


def broken(number: int) -> tuple[bytes, bool]:
    """A picture with something wrong, and whether it can be decoded all the same."""
    chance = random.Random(number)
    good = natural(40)[number % 40]
    kind = number % 8
    if kind == 0:
        return good[: chance.randint(1, len(good) - 3)], False
    if kind == 1:
        return b"no picture" + good[10:], False
    if kind == 2:
        return bytes(chance.choice([0, 24, 5000])), False
    if kind == 3:
        at = next(at for at in range(len(good)) if good[at] == 0xFF and good[at + 1] in (0xC0, 0xC1, 0xC2))
        return good[: at + 5] + b"\xff\xdc\xff\xdc" + good[at + 9 :], False
    if kind == 4:
        progressive = encoded(photographs()[0].crop((0, 0, 200, 150)), "JPEG", progressive=True)
        scans = [at for at in range(len(progressive)) if progressive[at : at + 2] == b"\xff\xda"]
        if number % 16 == 4:
            return progressive[: chance.choice(scans[1:])] + b"\xff\xd9", True
        return progressive[: chance.choice(scans[2:]) - 40], False
    if kind == 5:
        return encoded(photographs()[0].crop((0, 0, 60, 50)).convert("CMYK"), "JPEG"), True
    if kind == 6:
        return encoded(Image.new("RGB", (1, 1), (9, 8, 7)), chance.choice(["JPEG", "PNG"])), True
    size = chance.choice([(20000, 1), (1, 20000)])
    return encoded(Image.new("RGB", size, (90, 80, 70)), chance.choice(["JPEG", "PNG"])), True


def broken_file(path: str) -> list[bool]:
    cases = [broken(number) for number in range(200)]
    write(path, [data for data, _ in cases])
    return [good for _, good in cases]


@pytest.mark.parametrize("train", [True, False])
def test_broken_pictures_are_skipped_or_blank_and_named(train: bool) -> None:
    good = broken_file("broken.rec")
    bad = [number for number, fine in enumerate(good) if not fine]
    assert len(bad) == 112
    skipping = anyrec.ImageLoader("broken.rec", 40, 32, train=train, on_error="skip")
    indices = [int(index) for batch in skipping for index in batch.indices]
    assert [number for number in range(200) if number not in indices] == bad
    assert skipping.failed == len(bad)
    epoch, record, error = skipping.errors[0]
    assert (epoch, record) == (0, 0) and "broken.rec" in str(error) and "record 0" in str(error)
    blank = anyrec.ImageLoader("broken.rec", 40, 32, train=train, on_error="blank")
    for batch in blank:
        for label, sample in zip(batch.labels, batch.data, strict=True):
            assert sample.any() == good[int(label)]
    assert blank.failed == len(bad)
    with pytest.raises(anyrec.AnyrecError, match=r"broken.rec: .*record 0"):
        next(iter(anyrec.ImageLoader("broken.rec", 40, 32, train=train)))


def test_broken_pictures_take_little_memory() -> None:
    broken_file("broken.rec")
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import anyrec, resource\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "for train in (True, False):\n"
            "    loader = anyrec.ImageLoader('broken.rec', 8, 32, train=train, on_error='blank', threads=2)\n"
            "    for batch in loader: pass\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) < 100_000 and told.stderr == ""


def test_lenient_takes_what_is_there() -> None:
    photograph = photographs()[0].crop((0, 0, 200, 150))
    data = encoded(photograph, "JPEG", quality=90)
    cut = data[: len(data) // 2]
    with pytest.raises(anyrec.CorruptRecord, match="cut short"):
        made(cut, CentreCrop((150, 200)), size=(150, 200))
    half = made(cut, CentreCrop((150, 200)), size=(150, 200), lenient=True)
    assert np.array_equal(half[:40], _anyrec.decode_image(data, 1, rgb=True)[:40])


def test_the_usual_mean_and_deviation_are_torchvisions() -> None:
    assert np.allclose(np.array(IMAGENET.mean) / 255, [0.485, 0.456, 0.406])
    assert np.allclose(np.array(IMAGENET.std) / 255, [0.229, 0.224, 0.225])


def test_class_numbers_are_not_rounded() -> None:
    numbers = [16777217, 16777219, 16777221]
    with anyrec.create("wide.rec", wide_labels=True) as writer:
        for number in numbers:
            image = _anyrec.encode_image(np.zeros((8, 8, 3), np.uint8), ".png", 3)
            writer.write(image, label=number)
    (batch,) = anyrec.ImageLoader("wide.rec", 3, 8, train=False, label_dtype="int64")
    assert batch.labels.tolist() == numbers
