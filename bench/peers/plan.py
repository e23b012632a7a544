"""Only anyrec's order of records, without reading any: `bench/plan`."""

import re
import subprocess
from pathlib import Path

from .base import Peer

PROGRAM = Path(__file__).resolve().parents[2] / "target/release/anyrec-bench-plan"
SHUFFLED = re.compile(r"^\s*shuffled\s+10{12}\s+([\d.]+)\s+(\d+)$", re.MULTILINE)


class Contestant(Peer):
    def measure(self, task, records):
        done = subprocess.run([PROGRAM], capture_output=True, text=True, check=True)
        found = SHUFFLED.search(done.stdout)
        if found is None:
            raise RuntimeError("it printed no rate for a full shuffle of 10^12 records")
        rate, memory = float(found.group(1)) * 1e6, int(found.group(2))
        return {"seconds": 1, "bytes": 0, "records": rate, "memory": memory}
