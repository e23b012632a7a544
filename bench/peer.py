#!/usr/bin/env python3
"""Runs one contestant: `python bench/peer.py NAME`.

Each line of JSON on standard input is a task. Each line on standard output is its result or `{"error":
...}`. The first line gives the version of the library.
"""

import importlib
import importlib.metadata
import json
import os
import sys
import traceback

import measure
from data import Records, Set

DISTRIBUTIONS = {"dali": "nvidia-dali-cuda120", "lance": "pylance", "streaming": "mosaicml-streaming"}


def main():
    # What libraries print must not be mixed with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    name = sys.argv[1]
    try:
        peer = importlib.import_module(f"peers.{name}").Contestant()
    except Exception as error:
        answer(answers, {"error": f"{type(error).__name__}: {error}"})
        return
    answer(answers, {"version": version_of(name)})
    records = None
    for line in sys.stdin:
        task = json.loads(line)
        try:
            if task["set"] is not None and (records is None or records.set != Set(**task["set"])):
                records = Records(Set(**task["set"]))
            answer(answers, run(peer, task, records))
        except NotImplementedError:
            answer(answers, {"error": f"{name} cannot do this"})
        except Exception as error:
            traceback.print_exc()
            answer(answers, {"error": f"{type(error).__name__}: {error}"})


def run(peer, task, records):
    if hasattr(peer, "measure"):
        return peer.measure(task, records)
    return measure.KINDS[task["kind"]](peer, task, records)


def version_of(name):
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        return None


def answer(answers, what):
    answers.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    main()
