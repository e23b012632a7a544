"""`examples/prometheus.py` serves what the loader counts."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import urllib.request

import anyrec

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "prometheus.py"
WATCHDOG = 60


def test_the_example_serves_the_counts() -> None:
    with anyrec.create("a.ffr") as writer:
        for i in range(1000):
            writer.write(f"record {i:3}")
    command = [sys.executable, "-u", str(EXAMPLE), "--port", "0", "--epochs", "3", "a.ffr"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdin is not None and run.stdout is not None
        address = run.stdout.readline().split()[1]
        assert run.stdout.read(8) == "finished"
        with urllib.request.urlopen(address, timeout=WATCHDOG) as answer:
            text = answer.read().decode()
        run.stdin.write("\n")
        run.stdin.close()
        assert run.wait(WATCHDOG) == 0
    found = dict(re.findall(r'^(anyrec_\w+)\{loader="train"\} (\S+)$', text, re.MULTILINE))
    assert float(found["anyrec_batches_total"]) == 48
    assert float(found["anyrec_records_total"]) == 3000
    assert float(found["anyrec_bytes_total"]) == 30_000
    assert float(found["anyrec_failed_records_total"]) == 0
    assert float(found["anyrec_waited_seconds_total"]) > 0
    assert float(found["anyrec_loading_seconds_total"]) > 0
    assert float(found["anyrec_queued_batches"]) == 0
