#!/usr/bin/env python3
"""Exports what a loader does to Prometheus while it trains: throughput, and the time spent waiting for data.

    python examples/prometheus.py [--port 9100] FILE

Needs the anyrec wheel and prometheus_client. `rate(anyrec_waited_seconds_total[1m])` is the fraction of the
time that training waits for data; 0 means that the loader keeps up.
"""

import argparse
from collections.abc import Iterator

import anyrec
from prometheus_client import REGISTRY, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

COUNTERS = {
    "batches": ("anyrec_batches", "Batches that were yielded"),
    "records": ("anyrec_records", "Records in them"),
    "bytes": ("anyrec_bytes", "Size of the batches"),
    "failed": ("anyrec_failed_records", "Records that could not be read"),
    "waited": ("anyrec_waited_seconds", "Time that training waited for batches"),
    "loading": ("anyrec_loading_seconds", "Time that the threads worked on them"),
    "decoding": ("anyrec_decoding_seconds", "Time that the threads decoded images"),
}


class LoaderCollector(Collector):
    """Reads the loader's counts when Prometheus asks for them: the training loop does nothing."""

    def __init__(self, loader: anyrec.Loader, name: str) -> None:
        self.loader = loader
        self.name = name

    def collect(self) -> Iterator[Metric]:
        stats = self.loader.stats()
        for field, (metric, text) in COUNTERS.items():
            counter = CounterMetricFamily(metric, text, labels=["loader"])
            counter.add_metric([self.name], getattr(stats.total, field))
            yield counter
        queued = GaugeMetricFamily("anyrec_queued_batches", "Batches that are ready now", labels=["loader"])
        queued.add_metric([self.name], stats.queued)
        yield queued


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("file", help="the record file to read")
    parser.add_argument("--port", type=int, default=9100, help="serve the numbers on this port")
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()

    loader = anyrec.Loader(arguments.file, 64, shuffle=True, on_error="skip")
    REGISTRY.register(LoaderCollector(loader, "train"))
    server, _ = start_http_server(arguments.port, addr="127.0.0.1")
    print(f"serving http://127.0.0.1:{server.server_port}/metrics", flush=True)
    for _ in range(arguments.epochs):
        for _ in loader:
            pass  # train
    input("finished; press Enter to stop serving")


if __name__ == "__main__":
    main()
