"""Describes the machine that the figures were measured on."""

import os
import platform
import re
from pathlib import Path


def describe(versions: dict[str, str]) -> dict:
    """Processor, memory, kernel and versions; nothing that names the machine."""
    processor = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": processor.group(1) if processor else platform.machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": dict(sorted(versions.items())),
    }


def in_words(about: dict) -> str:
    return (
        f"{about['cores']} cores ({about['processor']}), {about['memory_bytes'] / 2**30:.0f} GiB of memory, "
        f"Linux {about['kernel']}, Python {about['python']}"
    )
