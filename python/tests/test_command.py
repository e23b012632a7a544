"""The command ``anyrec`` that the wheel carries."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
from typing import Any

import numpy as np
import pytest
from conftest import TESTDATA, golden

import anyrec
from anyrec import _anyrec
from anyrec.mxnet import IRHeader, pack_img

INSTALLED = str(pathlib.Path(sysconfig.get_path("scripts")) / "anyrec")
MODULE = [sys.executable, "-m", "anyrec"]
PROGRAMS = [pytest.param([INSTALLED], id="program"), pytest.param(MODULE, id="module")]


def run(program: list[str], *arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*program, *arguments], capture_output=True, timeout=60, **options)


@pytest.mark.parametrize("program", PROGRAMS)
def test_version_and_help_name_the_command(program: list[str]) -> None:
    assert run(program, "--version").stdout == f"anyrec {anyrec.__version__}\n".encode()
    told = run(program, "info", "--help")
    assert told.returncode == 0 and b"Usage: anyrec info " in told.stdout, told


@pytest.mark.parametrize("program", PROGRAMS)
def test_info_prints_the_facts(program: list[str]) -> None:
    told = run(program, "info", str(golden("mxnet", "indexed_int.rec")))
    assert (told.returncode, told.stderr) == (0, b"")
    assert b"indexed_int.rec" in told.stdout and b"records" in told.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_exit_codes_tell_sound_damaged_and_impossible(program: list[str]) -> None:
    sound = pathlib.Path(shutil.copy(golden("mxnet", "indexed_int.rec"), "sound.rec"))
    pathlib.Path("cut.rec").write_bytes(sound.read_bytes()[:-3])
    assert run(program, "verify", "sound.rec").returncode == 0
    damaged = run(program, "verify", "cut.rec")
    assert damaged.returncode == 1, damaged
    assert run(program, "verify", "missing.rec").returncode == 2
    usage = run(program, "no-such-command")
    assert (usage.returncode, usage.stdout) == (2, b"") and b"no-such-command" in usage.stderr


def test_an_empty_command_line_is_a_usage_error() -> None:
    told = run(MODULE)
    assert told.returncode == 2 and b"Usage: anyrec " in told.stderr


def test_names_that_are_not_utf8_arrive_unchanged() -> None:
    name = b"\xff\xfe.rec"
    shutil.copy(golden("mxnet", "indexed_int.rec"), os.fsdecode(name))
    told = run(MODULE, "info", "--json", name)
    assert told.returncode == 0, told
    assert rb"\udcff\udcfe.rec" in told.stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    with anyrec.create("many.rec") as writer:
        for number in range(50_000):
            writer.write(f"record {number}")
    listing = subprocess.Popen([*MODULE, "ls", "many.rec"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listing.stdout is not None and listing.stderr is not None
    first = listing.stdout.readline()
    listing.stdout.close()
    assert listing.wait(60) == 0, listing.stderr.read()
    assert first and listing.stderr.read() == b""


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_and_leaves_nothing_behind(program: list[str], number: signal.Signals) -> None:
    record = golden("mxnet", "img_png.rec").read_bytes()
    convert = subprocess.Popen(
        [*program, "convert", "-", "out.ffr"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert convert.stdin is not None and convert.stderr is not None
    # As much as shows that it is at work; it goes on waiting for more.
    for _ in range((8 << 20) // len(record)):
        convert.stdin.write(record)
    assert convert.poll() is None
    convert.send_signal(number)
    assert convert.wait(60) == 130
    assert convert.stderr.read() == b""
    assert os.listdir() == []


def shade(path: str) -> int:
    """The value of an image's first pixel."""
    return int(_anyrec.decode_image(pathlib.Path(path).read_bytes(), 0)[0, 0])


def test_unpacked_classes_have_their_labels_in_an_image_folder() -> None:
    from torchvision.datasets import ImageFolder

    labels = [11, 0, 2, 10, 1, *range(3, 10)]
    with anyrec.create("pets.rec", index_file=True) as writer:
        for key, label in enumerate(labels):
            image = np.full((8, 8, 3), label, np.uint8)
            writer.write(pack_img(IRHeader(0, label, key, 0), image, 3, ".png"), key=key)
    assert run(MODULE, "unpack", "pets.rec", "folders").returncode == 0
    folders = ImageFolder("folders", loader=shade)
    assert sorted(folders[at] for at in range(len(folders))) == [(label, label) for label in range(12)]


def test_the_package_contains_the_licences() -> None:
    files = importlib.metadata.files("anyrec")
    assert files is not None
    texts = {file.name: file.read_text() for file in files if "licenses" in file.parts}
    assert (TESTDATA.parent / "LICENSE").read_text() == texts["LICENSE"]
    # The C libraries that the extension contains.
    assert "Zstandard" in texts["zstd.txt"]
    assert "Independent JPEG Group" in texts["libjpeg-turbo.txt"]
    declared = importlib.metadata.metadata("anyrec").get_all("License-File") or []
    assert sorted(pathlib.PurePath(name).name for name in declared) == sorted(texts)
