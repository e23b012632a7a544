"""verify, repair, convert, index, pack_folder."""

from __future__ import annotations

import pathlib
import pickle
import sys

import numpy as np
import pytest

import anyrec


@pytest.fixture
def damaged(own_folder: pathlib.Path) -> str:
    with anyrec.create("words.ffr") as writer:
        for word in ["zero", "one", "two"]:
            writer.write(word)
    data = (own_folder / "words.ffr").read_bytes().replace(b"one", b"xxx")
    (own_folder / "words.ffr").write_bytes(data)
    return "words.ffr"


def test_a_report_accounts_for_every_byte(damaged: str) -> None:
    report = anyrec.verify(damaged)
    assert not report and not report.sound and report.format == "ffrecord"
    assert report.record_bytes + report.metadata_bytes + report.damage_bytes == report.bytes
    [damage] = report.damage
    assert (damage.path, damage.begin, damage.end, damage.record) == ("words.ffr", 52, 55, 1)
    assert anyrec.open(damaged).verify() == report


def test_several_files_make_one_report(damaged: str) -> None:
    with anyrec.create("good.rec") as writer:
        writer.write(b"x")
    report = anyrec.verify([damaged, "good.rec"])
    assert (
        report.format == "mixed"
        and report.records == 3
        and len(report.paths) == 2
        and len(report.damage) == 1
    )


def test_a_repair_keeps_what_is_intact(damaged: str) -> None:
    done = anyrec.repair(damaged, "mended.ffr")
    assert done.output.records == 2 and done.output.path == "mended.ffr" and not done.report.sound
    assert list(anyrec.open("mended.ffr")) == [b"zero", b"two"]
    with pytest.raises(FileExistsError):
        anyrec.repair(damaged, "mended.ffr")
    anyrec.repair(damaged, "mended.ffr", overwrite=True)
    with pytest.raises(ValueError, match="never writes over its input"):
        anyrec.repair(damaged, damaged, overwrite=True)


def test_records_survive_a_round_trip_through_every_format() -> None:
    images = np.random.default_rng(0).integers(0, 256, (10, 4, 3), dtype=np.uint8)
    anyrec.idx.write("x-idx3-ubyte", images)
    anyrec.convert("x-idx3-ubyte", "x.rec")
    anyrec.convert("x.rec", "x.ffr")
    anyrec.convert("x.ffr", "x.grail-rio", transformers=["zstd"])
    anyrec.convert("x.grail-rio", "y-idx3-ubyte", item_shape=[4, 3])
    assert np.array_equal(anyrec.idx.read("y-idx3-ubyte"), images)


def test_shards_labels_and_damage_of_a_conversion(damaged: str) -> None:
    with pytest.raises(anyrec.CorruptRecord):
        anyrec.convert(damaged, "out.rec")
    assert not pathlib.Path("out.rec").exists()
    done = anyrec.convert(damaged, "out.rec", shards=2, skip_damage=True)
    assert [output.path for output in done.outputs] == ["out-00000-of-00002.rec", "out-00001-of-00002.rec"]
    assert done.records == 2 and len(done.skipped) == 1
    anyrec.idx.write("labels-idx1-ubyte", np.array([4, 5], dtype=np.uint8))
    anyrec.convert(damaged, "labelled.rec", labels="labels-idx1-ubyte", skip_damage=True)
    assert [anyrec.open("labelled.rec").label(i) for i in range(2)] == [4.0, 5.0]
    with pytest.warns(anyrec.NotStored, match="labels not stored"):
        anyrec.convert(damaged, "y.ffr", labels="labels-idx1-ubyte", skip_damage=True)


def test_an_index_is_written_beside_the_file() -> None:
    with anyrec.create("x.rec") as writer:
        writer.write(b"zero")
        writer.write(b"one")
    assert anyrec.index("x.rec").path == "x.idx"
    with pytest.raises(FileExistsError):
        anyrec.index("x.rec")
    assert anyrec.index("x.rec", "y.idx").records == 2
    anyrec.convert("x.rec", "x.grail-rio", open_options={"index_file": False})
    assert anyrec.index("x.grail-rio").path == "x.grail-rio.anyrec-table"


def test_progress_reaches_the_end_and_an_exception_there_ends_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("tqdm")
    with anyrec.create("x.rec", durability="process") as writer:
        for _ in range(100):
            writer.write(bytes(1_000_000))
    bars = []

    class Bar:
        def __init__(self, total: int, **_: object) -> None:
            self.total, self.n = total, 0
            bars.append(self)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, by: int) -> None:
            self.n += by

    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    anyrec.verify(["x.rec", "x.rec"], progress=True)
    anyrec.convert("x.rec", "y.ffr", progress=True)
    anyrec.repair("x.rec", "z.rec", progress=True)
    anyrec.index("x.rec", progress=True)
    anyrec.index("x.rec", table=True, progress=True)
    pathlib.Path("folder/inner").mkdir(parents=True)
    for name in ["folder/a", "folder/inner/b"]:
        pathlib.Path(name).write_bytes(bytes(3_000_000))
    anyrec.pack_folder("folder", "folder.ffr", progress=True)
    assert [bar.n == bar.total > 0 for bar in bars] == [True] * 6
    assert bars[-1].total == 6_000_000

    class Stop(Exception):
        pass

    def stop(_: int) -> None:
        raise Stop

    from anyrec import _anyrec

    with pytest.raises(Stop):
        _anyrec.convert(["x.rec"], "never.ffr", "ffrecord", None, None, None, stop)
    with pytest.raises(Stop):
        _anyrec.pack_folder("folder", "never.ffr", False, stop)
    assert not pathlib.Path("never.ffr").exists()
    with pytest.raises(Stop):
        _anyrec.index("x.rec", "never.idx", False, False, None, stop)
    assert not pathlib.Path("never.idx").exists()


def test_a_folder_is_packed_read_and_unpacked(own_folder: pathlib.Path) -> None:
    folder = own_folder / "in put"
    (folder / "b" / "empty").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "b" / "ü.bin").write_bytes(bytes(1000))
    assert anyrec.pack_folder(folder, "packed.ffr") == 2
    packed = pickle.loads(pickle.dumps(anyrec.PackedFolder("packed.ffr")))
    assert packed.list() == ["a.txt", "b"] and packed.list("b") == ["empty", "ü.bin"]
    assert packed.list(recursive=True, list_dir=False) == ["a.txt", "b/ü.bin"]
    one, two = packed.read(["b/ü.bin", pathlib.Path("a.txt")])
    assert one.tobytes() == bytes(1000) and two.tobytes() == b"a" and two.flags.writeable
    with pytest.raises(IndexError, match="c does not exist"):
        packed.read("c")
    with pytest.raises(ValueError, match="is not a file but a directory"):
        packed.read_one("b")
    with packed:
        assert packed.unpack("out")["files"] == 2
    with pytest.raises(anyrec.ClosedError):
        packed.list()
    assert one.tobytes() == bytes(1000)
    assert sorted(p.name for p in pathlib.Path("out").rglob("*")) == ["a.txt", "b", "empty", "ü.bin"]
    with anyrec.create("plain.ffr") as writer:
        writer.write(b"x")
    with pytest.raises(ValueError, match="is not a packed folder"):
        anyrec.PackedFolder("plain.ffr")


def test_a_bar_without_tqdm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with anyrec.create("x.ffr") as writer:
        writer.write(b"x")
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        anyrec.verify("x.ffr", progress=True)
