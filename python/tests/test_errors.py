"""Exceptions say what, where and what to do, and are what a Python user would catch."""

from __future__ import annotations

import os
import pathlib
import pickle

import pytest

import anyrec
from anyrec import errors


def test_a_missing_file_is_a_file_not_found_error() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        anyrec.open("no such file.rec")
    error = caught.value
    assert isinstance(error, anyrec.AnyrecError) and isinstance(error, OSError)
    assert error.path == error.filename == "no such file.rec" and error.errno == 2
    assert str(error).startswith("no such file.rec: cannot open")


def test_an_unreadable_file_is_a_permission_error(own_folder: pathlib.Path) -> None:
    (own_folder / "x.rec").write_bytes(b"")
    (own_folder / "x.rec").chmod(0)
    user = os.geteuid()
    if user == 0:
        # Root may read everything: be nobody for a moment.
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError):
            anyrec.open("x.rec")
    finally:
        os.seteuid(user)


def test_foreign_bytes_are_an_unsupported_format(own_folder: pathlib.Path) -> None:
    (own_folder / "x.txt").write_text("just some words, and no record in sight")
    with pytest.raises(ValueError) as caught:
        anyrec.open("x.txt")
    assert type(caught.value) is anyrec.UnsupportedFormat


def test_damage_carries_its_place_and_a_hint(own_folder: pathlib.Path) -> None:
    with anyrec.create("x.rec") as writer:
        writer.write(b"whole")
        writer.write(b"cut")
    data = (own_folder / "x.rec").read_bytes()
    (own_folder / "x.rec").write_bytes(data[:-4])
    with pytest.raises(ValueError) as caught:
        len(anyrec.open("x.rec"))
    error = caught.value
    assert type(error) is anyrec.CorruptRecord
    assert (error.path, error.offset, error.record) == ("x.rec", 16, 1)
    assert error.hint is not None and "repair" in error.hint and error.__notes__ == [f"hint: {error.hint}"]
    assert error.reason in str(error) and "byte 16, record 1" in str(error)


def test_a_limit_is_an_error_of_its_own() -> None:
    with anyrec.create("x.ffr") as writer:
        writer.write(bytes(1000))
    with pytest.raises(anyrec.LimitExceeded):
        anyrec.open("x.ffr", max_record=999)[0]


def test_every_class_is_also_a_builtin_and_pickles_with_its_attributes() -> None:
    builtin = (ValueError, OSError, IndexError, RuntimeError, MemoryError)
    for name in errors.__all__:
        kind = getattr(errors, name)
        if kind is not anyrec.AnyrecError:
            assert issubclass(kind, builtin) and issubclass(kind, anyrec.AnyrecError), name
        error = kind("a: b", reason="b", path="a", offset=1, record=2, hint="do it")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == "a: b"
        assert (again.reason, again.path, again.offset, again.record, again.hint) == ("b", "a", 1, 2, "do it")
