"""Files of the original implementations, read through Python as their manifests say."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import pytest

import anyrec
from anyrec import _anyrec, grail
from conftest import TESTDATA, golden, manifest


def fingerprints(records: Any) -> list[list[object]]:
    return [[len(record), hashlib.sha256(record).hexdigest()] for record in records]


@pytest.fixture(autouse=True)
def plus() -> None:
    """The transformer of one of the golden files: adds a number to every byte."""

    def add(number: int) -> Any:
        table = bytes((byte + number) % 256 for byte in range(256))
        return lambda block: block.translate(table)

    grail.register_transformer("plus", lambda n: add(int(n)), lambda n: add(-int(n)))


CASES = [
    (format, entry)
    for format in ["mxnet", "ffrecord", "grail"]
    for entry in manifest(format)["files"]
    if "records" in entry or "items" in entry
]


@pytest.mark.parametrize(("format", "entry"), CASES, ids=[entry["path"] for _, entry in CASES])
def test_golden_records_come_by_number_in_batches_and_in_order(format: str, entry: dict[str, Any]) -> None:
    expected = entry["items"] if format == "grail" else entry["records"]
    dataset = anyrec.open(golden(format, entry["path"]))
    assert dataset.format == format and len(dataset) == len(expected)
    assert fingerprints(dataset) == expected
    assert fingerprints(dataset.read(range(len(dataset)))) == expected
    for index in range(0, len(expected), max(1, len(expected) // 20)):
        assert fingerprints([dataset[index]]) == [expected[index]]
    assert dataset.verify().sound


@pytest.mark.parametrize("entry", manifest("mxnet")["malformed"], ids=lambda entry: entry["name"])
def test_malformed_mxnet_files_read_as_the_original_reads_them(
    entry: dict[str, Any], own_folder: pathlib.Path
) -> None:
    (own_folder / "x.rec").write_bytes(bytes.fromhex(entry["bytes_hex"]))
    reader = _anyrec.MxReader("x.rec")
    for read in entry["reads"]:
        if isinstance(read, dict):
            with pytest.raises(anyrec.CorruptRecord) as caught:
                reader.read()
            assert caught.value.original is not None
            assert read["MXNetError"].endswith(": " + caught.value.original)
        else:
            assert reader.read() == (None if read is None else bytes.fromhex(read))


@pytest.mark.parametrize(
    "entry", [e for e in manifest("grail")["files"] if e.get("index")], ids=lambda e: e["path"]
)
def test_grail_locations_headers_and_trailers(entry: dict[str, Any]) -> None:
    path = golden("grail", entry["path"])
    scanner = grail.Scanner(path)
    located = []
    for _ in scanner:
        located.append(list(scanner.location or ()))
    assert located == entry["index"]
    kinds = {"bool": bool, "int": int, "uint": int, "string": str}
    for (key, value), (name, kind, stored) in zip(scanner.header_pairs, entry["header"], strict=True):
        assert key == name and value == kinds[kind](stored)
    if entry["trailer"] is None:
        assert scanner.trailer is None
    else:
        assert fingerprints([scanner.trailer]) == [entry["trailer"]]
    middle = len(located) // 2
    scanner.seek((located[middle][0], located[middle][1]))
    assert fingerprints(scanner) == entry["items"][middle:]


@pytest.mark.parametrize("entry", manifest("ffrecord")["files"], ids=lambda entry: entry["path"])
def test_ffrecord_tables(entry: dict[str, Any]) -> None:
    reader = _anyrec.FfReader([golden("ffrecord", entry["path"])])
    assert reader.n == len(reader) == entry["n"]
    assert reader.offsets(0).tolist() == entry["offsets"]
    assert reader.checksums(0).tolist() == entry["checksums"]
    reader.validate()


def test_ffrecord_directories_are_numbered_through() -> None:
    for entry in manifest("ffrecord")["multi"]:
        files = _anyrec.directory_files(golden("ffrecord", entry["dir"]))
        assert files == [str(golden("ffrecord", name)) for name in entry["dir_file_order"]]
        reader = _anyrec.FfReader(files)
        assert fingerprints(reader.read(range(reader.n))) == entry["records"]


PACKED = [entry for entry in manifest("ffrecord")["packed"] if "entries" in entry]


@pytest.mark.parametrize("entry", PACKED, ids=lambda entry: entry["path"])
def test_packed_folders(entry: dict[str, Any]) -> None:
    def text(path: str) -> str:
        # The manifest has lone surrogates as the bytes of their encoding.
        surrogates = entry["path"] == "packed_surrogate.ffr"
        return path.encode("latin-1").decode("utf-8", "surrogatepass") if surrogates else path

    entries = {text(path): sample for path, sample in entry["entries"]}
    folder = anyrec.PackedFolder(golden("ffrecord", entry["path"]))
    assert folder.num_files() == entry["num_files"]
    assert sorted(folder.list(recursive=True)) == sorted(entries)
    for path, sample in entries.items():
        assert folder.exists(path) and folder.is_dir(path) == (sample is None) == (not folder.is_file(path))


def test_no_golden_file_is_changed_by_reading() -> None:
    for format in ["mxnet", "ffrecord", "grail", "idx"]:
        for entry in manifest(format)["files"]:
            data = (TESTDATA / format / "good" / entry["path"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == entry["sha256"]
