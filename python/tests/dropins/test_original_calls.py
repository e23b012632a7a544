"""Calls in which the stand-ins once differed from the originals."""

from __future__ import annotations

import importlib.util
import io
import struct
from pathlib import Path

import anyrec
import numpy as np
import pytest
from anyrec import _anyrec, ffrecord, mxnet
from anyrec.mxnet import IRHeader, MXIndexedRecordIO, MXNetError, MXRecordIO
from anyrec.mxnet import pack, pack_img, unpack, unpack_img

HEADER = IRHeader(0, 1.0, 1, 0)


@pytest.fixture
def cv2():
    return pytest.importorskip("cv2", reason="OpenCV, which the original calls, is not installed")


def color(dtype=np.uint8, channels=3, scale=1):
    rows, columns = np.mgrid[0:24, 0:32]
    planes = [rows * 9, columns * 7, rows * columns // 4, 255 - rows]
    return (np.stack(planes[:channels], axis=2) * scale).astype(dtype)


# Images in records


@pytest.mark.parametrize("quality", [-5, 0, 1, 9, 10, 95, 1000])
def test_png_of_any_quality_is_lossless(quality):
    image = color()
    for packed in (pack_img(HEADER, image, quality, ".png"), pack_img(HEADER, image, img_fmt=".PNG")):
        assert np.array_equal(unpack_img(packed)[1], image)


def test_jpeg_quality_beyond_the_limits_is_the_nearest():
    image = color()
    assert pack_img(HEADER, image, -5) == pack_img(HEADER, image, 1)
    assert pack_img(HEADER, image, 1000) == pack_img(HEADER, image, 100)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float32", "float64", "uint16"])
@pytest.mark.parametrize("ending", [".png", ".jpg"])
def test_other_elements_are_converted_as_by_opencv(cv2, dtype, ending):
    image = color(dtype, scale=2 if dtype != "int8" else 0.25) - np.array(40, dtype)
    if dtype.startswith("float"):
        image[0, :3, 0] = [2.5, 3.5, -0.5]
    _, ours = unpack(pack_img(HEADER, image, 100 if ending == ".jpg" else 3, ending))
    options = [cv2.IMWRITE_JPEG_QUALITY, 100] if ending == ".jpg" else []
    _, theirs = cv2.imencode(ending, image, options)
    found, expected = (
        cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) for data in (ours, theirs)
    )
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).max() <= (0 if ending == ".png" else 3)


def test_not_a_number_is_black():
    image = np.full((8, 8), np.nan, np.float32)
    assert unpack_img(pack_img(HEADER, image, img_fmt=".png"))[1].max() == 0


@pytest.mark.parametrize("ending", [".png", ".jpg"])
@pytest.mark.parametrize("channels", [2, 5])
def test_number_of_channels_that_opencv_refuses_is_refused(ending, channels):
    with pytest.raises(ValueError, match=f"1, 3 or 4 channels, not {channels}"):
        pack_img(HEADER, np.zeros((8, 8, channels), np.uint8), img_fmt=ending)


@pytest.mark.parametrize("ending", [".bmp", ".webp", ".tiff"])
def test_format_that_is_not_written_is_named(ending):
    with pytest.raises(ValueError, match=rf"expected \.jpg, \.jpeg or \.png, found {ending[1:]}"):
        pack_img(HEADER, color(), img_fmt=ending)


def test_elements_that_opencv_refuses_are_refused():
    with pytest.raises(TypeError, match="uint8 or uint16, not bool"):
        pack_img(HEADER, color() > 9)


FLAGS = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 128, 129, 130, 131, 132, 133, 134, 135]


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_of_opencv_mean_the_same(cv2, flag):
    images = {
        "color": color(),
        "gray": color()[:, :, 1],
        "alpha": color(channels=4),
        "deep": color(np.uint16, scale=200),
        "deep gray": color(np.uint16, scale=200)[:, :, 0],
        "deep alpha": color(np.uint16, 4, 200),
    }
    for name, image in images.items():
        packed = pack_img(HEADER, image, img_fmt=".png")
        expected = cv2.imdecode(np.frombuffer(unpack(packed)[1], np.uint8), flag)
        _, found = unpack_img(packed, flag)
        assert found is not None and found.dtype == expected.dtype, name
        assert np.array_equal(found, expected), name
    jpeg = pack_img(HEADER, color())
    expected = cv2.imdecode(np.frombuffer(unpack(jpeg)[1], np.uint8), flag)
    found = unpack_img(jpeg, flag)[1]
    assert found is not None and found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).max() <= 3


def test_orientation_is_ignored_on_request(cv2):
    Image = pytest.importorskip("PIL.Image", reason="Pillow writes the EXIF data")
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    Image.fromarray(color()).save(buffer, "JPEG", exif=exif)
    packed = pack(HEADER, buffer.getvalue())
    for flag in (0, 1, 4, 128, 129, 132, -1):
        expected = cv2.imdecode(np.frombuffer(buffer.getvalue(), np.uint8), flag)
        assert unpack_img(packed, flag)[1].shape == expected.shape, flag


@pytest.mark.parametrize("flag", [-2, 8, 16, 17, 32, 64, 256])
def test_flag_that_is_not_supported_is_named(flag):
    with pytest.raises(anyrec.InvalidArgument, match=f"found {flag}"):
        unpack_img(pack_img(HEADER, color()), flag)


# Records


def test_private_names_of_the_original():
    assert mxnet._IR_FORMAT == "IfQQ" and mxnet._IR_SIZE == 24 == struct.calcsize(mxnet._IR_FORMAT)


def test_index_file_is_an_attribute():
    record = MXIndexedRecordIO("a.idx", "a.rec", "w")
    assert record.fidx.name == "a.idx" and not record.fidx.closed
    record.write_idx(0, b"data")
    with pytest.raises(io.UnsupportedOperation, match=r"a\.idx: write_idx\(key, record\)"):
        record.fidx.write("1\t16\n")
    record.close()
    assert record.fidx.closed
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    assert record.fidx.name == "a.idx" and record.fidx.read() == ""
    record.fidx.seek(0)
    assert record.fidx.read() == "0\t0\n"
    record.close()
    assert record.fidx.closed


@pytest.mark.parametrize("offset", [12, 1000])
def test_index_beyond_the_end_is_an_error_that_says_where(offset):
    """The original returns None, and the script fails later and elsewhere."""
    with MXIndexedRecordIO("a.idx", "a.rec", "w") as record:
        record.write_idx(0, b"data")
    Path("a.idx").write_text(f"0\t0\n1\t{offset}\n")
    record = MXIndexedRecordIO("a.idx", "a.rec", "r")
    with pytest.raises(MXNetError, match=rf"{offset}") as raised:
        record.read_idx(1)
    assert raised.value.path == "a.rec" and raised.value.offset == offset
    assert record.read_idx(0) == b"data"
    with pytest.raises(KeyError):
        record.read_idx(2)


def test_file_that_is_being_written_is_not_there_yet():
    """The original's reader finds what the writer has flushed so far, often nothing, and returns None."""
    writer = MXRecordIO("a.rec", "w")
    writer.write(b"data")
    with pytest.raises(MXNetError, match=r"a\.rec") as raised:
        MXRecordIO("a.rec", "r")
    assert isinstance(raised.value, FileNotFoundError)
    writer.close()
    assert MXRecordIO("a.rec", "r").read() == b"data"


def test_subclass_that_closes_more_is_asked_to(tmp_path):
    class Counting(MXRecordIO):
        closed = 0

        def close(self):
            if self.is_open:
                self.closed += 1
            super().close()

    MXRecordIO("a.rec", "w").close()
    record = Counting("a.rec", "r")
    record.reset()
    assert record.closed == 1
    with record:
        pass
    assert record.closed == 2


@pytest.mark.parametrize("module, name, make", [
    (mxnet, "MxWriter", lambda **how: MXRecordIO("a.rec", "w", **how)),
    (mxnet, "MxWriter", lambda **how: MXIndexedRecordIO("a.idx", "a.rec", "w", **how)),
    (ffrecord.fileio, "FfWriter", lambda **how: ffrecord.FileWriter("a.ffr", **how)),
])  # fmt: skip
def test_closing_waits_for_the_disk_only_on_request(monkeypatch, module, name, make):
    asked = []
    real = getattr(_anyrec, name)

    class Spy:
        def __new__(cls, *arguments, durability, **options):
            asked.append(durability)
            return real(*arguments, durability=durability, **options)

    monkeypatch.setattr(_anyrec, name, Spy)
    make().close()
    make(durability="machine").close()
    assert asked == ["process", "machine"]
    with pytest.raises(ValueError, match="machine or process"):
        make(durability="forever")


# Batches


@pytest.fixture
def batches():
    with MXRecordIO("images.rec", "w") as record:
        for number in range(4):
            image = np.full((16, 16, 3), number * 10, np.uint8)
            record.write(pack_img(IRHeader(0, float(number), number, 0), image, img_fmt=".png"))
    return {"path_imgrec": "images.rec", "data_shape": (3, 16, 16), "batch_size": 2}


def test_arrays_of_a_batch_are_the_originals(batches):
    batch = mxnet.ImageRecordIter(**batches).next()
    data, label = batch.data[0], batch.label[0]
    assert isinstance(data, mxnet.NDArray) and isinstance(label, mxnet.NDArray)
    assert data.shape == (2, 3, 16, 16) and data.dtype is np.float32
    assert data.asnumpy()[:, 0, 0, 0].tolist() == [0, 10] and label.asnumpy().tolist() == [0, 1]
    assert data[1].asnumpy().mean() == 10 and isinstance(batch.index, np.ndarray)


@pytest.mark.parametrize(
    "wrong", [{"no_such": 1}, {"rotate": "x"}, {"batch_size": 0}, {"path_imgrec": "none.rec"}]
)
def test_parameter_that_cannot_be_used_is_the_originals_error(batches, wrong):
    with pytest.raises(MXNetError):
        mxnet.ImageRecordIter(**{**batches, **wrong})


# FFRecord


@pytest.fixture
def samples():
    with ffrecord.FileWriter("a.ffr", 10) as writer:
        for number in range(10):
            writer.write_one(bytes([number] * number))
    return ffrecord.FileReader("a.ffr")


def test_one_sample_is_read_as_several_are(samples):
    for number in range(10):
        one = samples.read_one(number)
        assert one.tolist() == [number] * number and one.dtype == np.uint8 and one.flags.writeable
        assert one.flags.owndata or one.base is not None
    assert samples.read_one(np.int32(3)).tolist() == [3] * 3
    with pytest.raises(ffrecord.SampleIndexError, match=r"index >= number of samples \(10 >= 10\)"):
        samples.read_one(10)
    with pytest.raises(ffrecord.SampleIndexError, match=r"index < 0 \(-1\)"):
        samples.read_one(-1)
    with pytest.raises(TypeError):
        samples.read_one(1.0)
    data = bytearray(Path("a.ffr").read_bytes())
    data[-1] ^= 1
    Path("b.ffr").write_bytes(data)
    damaged = ffrecord.FileReader("b.ffr")
    with pytest.raises(ffrecord.FFRecordError, match="Sample 9: checksum mismached!") as raised:
        damaged.read_one(9)
    assert raised.value.record == 9
    assert ffrecord.FileReader("b.ffr", check_data=False).read_one(9).tolist() == [9] * 8 + [8]
    damaged.close()
    with pytest.raises(ffrecord.FFRecordError, match=r"FileReader has been closed\."):
        damaged.read_one(0)


@pytest.fixture
def fftorch():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    import anyrec.ffrecord.torch

    return anyrec.ffrecord.torch


@pytest.fixture
def dataset(fftorch, samples):
    class Lengths(fftorch.Dataset):
        def process(self, indices, data):
            return [len(sample) for sample in data]

    return Lengths("a.ffr")


def test_sum_of_datasets_takes_lists_of_indices(fftorch, dataset):
    both = dataset + dataset
    assert type(both) is fftorch.ConcatDataset and len(both) == 20
    assert both[[3, 13, 19, 3]] == [3, 3, 9, 3]
    three = both + dataset
    assert len(three) == 30 and three[[29]] == [9] and len(three.ffreaders()) == 3
    batches = list(fftorch.DataLoader(both, batch_size=5, num_workers=2))
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]] * 2
    import torch.utils.data

    with pytest.raises(TypeError, match="cannot be followed by a TensorDataset"):
        dataset + torch.utils.data.TensorDataset(torch.zeros(3))


def test_twelfth_argument_of_the_loader_is_the_generator(fftorch, dataset):
    import torch

    def seeded():
        return torch.Generator().manual_seed(7)

    by_place = fftorch.DataLoader(dataset, 3, True, None, None, 0, None, False, False, 0, None, seeded())
    by_name = fftorch.DataLoader(dataset, 3, True, generator=seeded())
    assert by_place.generator is not None
    assert [batch.tolist() for batch in by_place] == [batch.tolist() for batch in by_name]


@pytest.mark.parametrize("step", [-1, 4, 100])
def test_step_that_does_not_exist_is_refused(fftorch, dataset, step):
    loader = fftorch.DataLoader(dataset, batch_size=3)
    with pytest.raises(AssertionError, match=f"there is no step {step}: an epoch has 4"):
        loader.set_step(step)
    loader.set_step(3)
    assert [batch.tolist() for batch in loader] == [[9]]
    # The position counts from the whole epoch, not from the step that was set before.
    loader.set_step(2)
    assert len(loader) == 2
