"""A contestant's process, from the harness's side: it takes tasks, returns results, and never hangs the
harness."""

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
"""Peers that allocate every record run up to five times slower if the C library returns the memory of each batch
to the system, which is a matter of chance. This setting prevents it for peers, but not for anyrec."""


class Failed(Exception):
    """A contestant could not do a task; the reason is shown in the table."""


class Worker:
    """Runs `peer.py NAME` with a contestant's own Python."""

    def __init__(self, name: str, python: str, log: Path, environment: dict[str, str]):
        self.name = name
        self._log = log
        self._rest = b""
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [python, "-W", "ignore", str(HERE / "peer.py"), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                # A process group of its own, so that everything it starts ends with it.
                start_new_session=True,
            )
        try:
            self.version = self._answer(120)["version"]
        except Failed:
            self.end()
            raise

    def do(self, task: dict, seconds: float) -> dict:
        """Runs a task within this many seconds."""
        try:
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._last_words()) from None
        return self._answer(seconds)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Ends the process and all it started. Calling it again does nothing."""
        if self._process.stdout.closed:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _answer(self, seconds: float) -> dict:
        deadline = time.monotonic() + seconds
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                self.end()
                raise Failed(f"no answer within {seconds:.0f} seconds")
            some = os.read(pipe, 1 << 16)
            if not some:
                self._process.wait()
                raise Failed(self._last_words())
            self._rest += some
        line, self._rest = self._rest.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"ended with {self._process.returncode}: {lines[-1] if lines else 'no output'}"


class Workers:
    """The contestants' processes: started when first needed, started again after a failure."""

    def __init__(self, pythons: dict[str, str], missing: dict[str, str], logs: Path, limit: str):
        self._pythons = pythons
        self._missing = missing
        self._logs = logs
        self._environment = {"ANYREC_BENCH_LIMIT": limit}
        self._running: dict[str, Worker] = {}
        self.versions: dict[str, str] = {}
        logs.mkdir(parents=True, exist_ok=True)

    def do(self, name: str, task: dict, seconds: float, fresh: bool = False) -> dict:
        if fresh:
            self._stop(name)
        worker = self._running.get(name)
        if worker is None or not worker.alive:
            worker = self._running[name] = self._start(name)
        try:
            return worker.do(task, seconds)
        finally:
            if fresh or not worker.alive:
                self._stop(name)

    def close(self) -> None:
        for name in list(self._running):
            self._stop(name)

    def _start(self, name: str) -> Worker:
        if name not in self._pythons:
            raise Failed(self._missing.get(name, "its environment was not created"))
        environment = self._environment if name == "anyrec" else {**self._environment, **KEEP_MEMORY}
        worker = Worker(name, self._pythons[name], self._logs / f"{name}.log", environment)
        if worker.version:
            self.versions[name] = worker.version
        return worker

    def _stop(self, name: str) -> None:
        worker = self._running.pop(name, None)
        if worker is not None:
            worker.end()
