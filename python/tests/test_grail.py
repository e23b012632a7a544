"""`anyrec.grail`: writer, scanner, transformers."""

from __future__ import annotations

import json
import pathlib
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import anyrec
from anyrec import grail


def test_the_issue_example_works() -> None:
    located: list[tuple[tuple[int, int], object]] = []
    with grail.Writer(
        "g.grail-rio",
        transformers=["zstd 3"],
        header={"made": "here"},
        max_items=1000,
        index=lambda location, item: located.append((location, item)),
    ) as writer:
        writer.append(b"item")
        writer.flush()
        writer.append(b"second")
        writer.flush()
        writer.wait()
        writer.set_trailer(json.dumps([location for location, _ in located]).encode())
    assert located == [((32768, 0), b"item"), ((65536, 0), b"second")]
    scanner = grail.Scanner("g.grail-rio", shard=(0, 1, 4))
    assert scanner.header == {"transformer": "zstd 3", "trailer": True, "made": "here"}
    assert json.loads(scanner.trailer or b"") == [[32768, 0], [65536, 0]]
    assert [bytes(item) for item in scanner] == []
    scanner = grail.Scanner("g.grail-rio")
    scanner.seek((65536, 0))
    assert [bytes(item) for item in scanner] == [b"second"] and scanner.location == (65536, 0)
    assert scanner.version == 2


@pytest.mark.parametrize("items", [0, 1, 5000])
def test_a_trailer_that_never_came_is_not_promised(items: int) -> None:
    with grail.Writer("g.grail-rio", max_items=100) as writer:
        for number in range(items):
            writer.append(str(number).encode())
    scanner = grail.Scanner("g.grail-rio")
    assert scanner.header == {"trailer": False} and scanner.trailer is None
    assert [int(bytes(item)) for item in scanner] == list(range(items))
    assert anyrec.verify("g.grail-rio").sound


def test_trailer_false_and_true_are_taken_at_their_word() -> None:
    with grail.Writer("no.grail-rio", trailer=False) as writer:
        with pytest.raises(ValueError, match="does not promise a trailer"):
            writer.set_trailer(b"x")
    assert grail.Scanner("no.grail-rio").header == {}
    with pytest.warns(anyrec.NotStored, match="promises a trailer"):
        with grail.Writer("yes.grail-rio", trailer=True):
            pass


def test_header_pairs_may_repeat_and_hold_four_kinds() -> None:
    pairs: list[tuple[str | bytes, Any]] = [
        ("a", 1),
        ("a", -5),
        ("b", True),
        ("c", "text"),
        (b"\xff", b"\xfe"),
        ("d", 2**63),
    ]
    with grail.Writer("g.grail-rio", header=pairs[:3], trailer=False) as writer:
        for key, value in pairs[3:]:
            writer.add_header(key, value)
        writer.append(b"x")
        with pytest.raises(ValueError, match="after the first record"):
            writer.add_header("late", 1)
    scanner = grail.Scanner("g.grail-rio")
    assert scanner.header_pairs == pairs and scanner.header["a"] == 1
    with pytest.raises(TypeError, match="bool, int, str or bytes"):
        grail.Writer("x.grail-rio", header={"f": 1.5})


def test_a_python_transformer_works_both_ways_and_in_other_threads() -> None:
    threads = set()

    def encoder(config: str) -> Any:
        def encode(block: bytes) -> bytes:
            threads.add(threading.get_ident())
            return zlib.compress(block, int(config))

        return encode

    grail.register_transformer("zlib", encoder, lambda config: zlib.decompress)
    with grail.Writer("g.grail-rio", transformers=["zlib 9", "zstd"], max_items=9) as writer:
        for number in range(1000):
            writer.append(b"%d" % number)
    assert threads - {threading.get_ident()}
    assert [int(bytes(item)) for item in grail.Scanner("g.grail-rio")] == list(range(1000))
    dataset = anyrec.open("g.grail-rio")
    assert dataset[777] == b"777" and dataset.verify().sound
    assert anyrec.convert("g.grail-rio", "again.grail-rio").records == 1000
    assert grail.Scanner("again.grail-rio").header_pairs[:2] == [
        ("transformer", "zlib 9"),
        ("transformer", "zstd"),
    ]


def test_exceptions_of_callbacks_come_out_as_they_are() -> None:
    class Odd(Exception):
        pass

    def fail(*_: object) -> Any:
        raise Odd("no")

    with pytest.raises(Odd), grail.Writer("a.grail-rio", index=fail) as writer:
        writer.append(b"x")
    grail.register_transformer("failing", lambda config: fail, None)
    with pytest.raises(Odd), grail.Writer("b.grail-rio", transformers=["failing"]) as writer:
        writer.append(b"x")
    assert not pathlib.Path("a.grail-rio").exists() and not pathlib.Path("b.grail-rio").exists()


def test_what_a_decoder_raises_comes_out_as_it_is_wherever_it_is_called() -> None:
    class Odd(Exception):
        pass

    def fail(block: bytes) -> bytes:
        raise Odd("cannot undo this")

    grail.register_transformer("once", lambda config: bytes, lambda config: bytes)
    with grail.Writer("g.grail-rio", transformers=["once"], max_items=3, trailer=True) as writer:
        for number in range(20):
            writer.append(b"%d" % number)
        writer.set_trailer(b"trailer")
    grail.register_transformer("once", None, lambda config: fail)
    calls: list[Callable[[], object]] = [
        lambda: list(grail.Scanner("g.grail-rio")),
        lambda: grail.Scanner("g.grail-rio").trailer,
        lambda: grail.Scanner("g.grail-rio", shard=(1, 2, 2)).__next__(),
        lambda: list(grail.Scanner("g.grail-rio", skip_damage=True)),
        lambda: anyrec.open("g.grail-rio")[7],
        lambda: anyrec.open("g.grail-rio").read([7, 8]),
        lambda: list(anyrec.open("g.grail-rio")),
        lambda: list(anyrec.open("g.grail-rio", skip_damage=True)),
        lambda: len(anyrec.open("g.grail-rio", skip_damage=True)),
        lambda: anyrec.verify("g.grail-rio"),
        lambda: anyrec.convert("g.grail-rio", "a.rec"),
        lambda: anyrec.convert("g.grail-rio", "a.rec", skip_damage=True),
        lambda: anyrec.repair("g.grail-rio", "b.grail-rio"),
        lambda: anyrec.index("g.grail-rio"),
    ]
    for call in calls:
        with pytest.raises(Odd, match="cannot undo this"):
            call()
    grail.register_transformer("once", lambda config: bytes, None)
    for call in calls:
        with pytest.raises(anyrec.UnsupportedFormat, match="registered without a decoder"):
            call()
    not_bytes: Any = len
    grail.register_transformer("once", None, lambda config: not_bytes)
    with pytest.raises(TypeError):
        list(grail.Scanner("g.grail-rio"))
    assert not pathlib.Path("a.rec").exists() and not pathlib.Path("b.grail-rio").exists()


def test_what_makes_a_coder_may_fail_too() -> None:
    class Odd(Exception):
        pass

    def fail(config: str) -> Any:
        raise Odd(config)

    grail.register_transformer("made", lambda config: bytes, fail)
    with grail.Writer("g.grail-rio", transformers=["made badly"]) as writer:
        writer.append(b"x")
    with pytest.raises(Odd, match="badly"):
        anyrec.open("g.grail-rio")[0]
    grail.register_transformer("made", fail, None)
    with pytest.raises(Odd, match="badly"):
        with grail.Writer("h.grail-rio", transformers=["made badly"], max_items=1) as writer:
            for _ in range(100):
                writer.append(b"x")
    assert not pathlib.Path("h.grail-rio").exists()


def test_a_callback_into_its_own_writer_is_an_error_and_no_deadlock() -> None:
    writers: list[grail.Writer] = []
    with pytest.raises(ValueError, match="from its own callback"):
        with grail.Writer("g.grail-rio", index=lambda *_: writers[0].flush()) as writer:
            writers.append(writer)
            writer.append(b"x")


def test_an_unknown_transformer_and_bad_shards_are_told() -> None:
    with pytest.raises(anyrec.UnsupportedFormat, match="is not known"):
        grail.Writer("g.grail-rio", transformers=["lzma"])
    with pytest.raises(TypeError, match="list of strings"):
        grail.Writer("g.grail-rio", transformers="zstd")
    with grail.Writer("g.grail-rio"):
        pass
    with pytest.raises(ValueError, match=r"invalid sharding \[2,1\) of 4"):
        grail.Scanner("g.grail-rio", shard=(2, 1, 4))


def test_encrypted_files_need_their_key() -> None:
    key = bytes(range(32))
    with grail.Writer("g.grail-rio", transformers=["aes-256-gcm k1"], keys={"k1": key}) as writer:
        writer.append(b"secret")
    assert b"secret" not in pathlib.Path("g.grail-rio").read_bytes()
    assert list(grail.Scanner("g.grail-rio", keys={"k1": key})) == [b"secret"]
    assert anyrec.open("g.grail-rio", keys={"k1": key})[0] == b"secret"
    with pytest.raises(ValueError, match="no key"):
        grail.Scanner("g.grail-rio")


def test_legacy_files_are_scanned_and_skip_header_output_is_appended(own_folder: pathlib.Path) -> None:
    with anyrec.create("old.grail-rpk", version="1-packed") as writer:
        writer.write(b"old")
    scanner = grail.Scanner("old.grail-rpk")
    assert scanner.version == 1 and scanner.header == {} and list(scanner) == [b"old"]
    with grail.Writer("first.grail-rio", trailer=False) as first:
        first.append(b"one")
    with grail.Writer("second", skip_header=True) as second:
        second.append(b"two")
    (own_folder / "both").write_bytes(
        pathlib.Path("first.grail-rio").read_bytes() + pathlib.Path("second").read_bytes()
    )
    assert list(grail.Scanner("both")) == [b"one", b"two"]
