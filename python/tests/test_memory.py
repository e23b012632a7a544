"""Running out of memory, and files that promise more than there is."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anyrec

PROMISE = bytes([0, 0, 8, 4]) + (2**32 - 1).to_bytes(4, "big") + (1).to_bytes(4, "big") * 3


def limited(code: str, *arguments: str, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Runs Python code that may have so much memory more than Python itself and the package take."""
    limit = f"""
import resource, sys, anyrec
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + ({megabytes} << 20),) * 2)
"""
    command = [sys.executable, "-c", limit + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["huge-idx4-ubyte", "huge-idx4-ubyte.gz"])
@pytest.mark.parametrize(
    "call",
    [
        "d[:]",
        "d[::-1]",
        "d.labels()",
        "d.read(slice(None))",
        "next(iter(anyrec.Loader(d, 2**31)))",
        "next(iter(anyrec.Loader(d, 2**31, shuffle=True, on_error='skip')))",
    ],
)
def test_a_header_that_promises_billions_of_records_is_refused(
    tmp_path: Path, name: str, call: str
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(PROMISE) if name.endswith("gz") else PROMISE)
    code = f"""
d = anyrec.open(sys.argv[1])
try:
    {call}
except anyrec.CorruptRecord as error:
    print("refused")
"""
    run = limited(code, str(path), megabytes=2048)
    assert (run.returncode, run.stdout) == (0, "refused\n"), run.stderr


@pytest.mark.parametrize("compression", ["zstd", "flate"])
def test_a_sound_file_that_does_not_fit_is_a_memory_error(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "large.grail-rio"
    with anyrec.create(path, transformers=[compression]) as writer:
        writer.write(bytes(range(256)) * (384 << 10))  # 96 MiB
    code = """
d = anyrec.open(sys.argv[1], skip_damage=True)
for read in (lambda: list(d), lambda: d[0], lambda: d[:], lambda: anyrec.verify(sys.argv[1])):
    try:
        read()
    except MemoryError as error:
        print(type(error) is anyrec.OutOfMemory and isinstance(error, anyrec.AnyrecError))
"""
    run = limited(code, str(path), megabytes=64)
    assert (run.returncode, run.stdout) == (0, "True\n" * 4), run.stderr


def test_limits_are_named_in_the_language_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "a.ffr"
    with anyrec.create(path) as writer:
        writer.write(bytes(1000))
    for option in ["max_record", "max_memory"]:
        options: dict[str, Any] = {option: 999}
        with pytest.raises(anyrec.LimitExceeded) as raised:
            anyrec.open(path, **options)[0]
        hint = raised.value.hint
        assert hint is not None and "max_memory" in hint and "--" not in hint and "Limits" not in hint
