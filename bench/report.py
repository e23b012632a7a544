"""Prints the results as text."""

import sys

import machine


def show_progress(id, results):
    """Prints one line per row of an id that was just measured."""
    for result in results:
        if result["id"] == id:
            print(f"{id} {result['work']}: {amount(result['rate'], result['unit'])}", file=sys.stderr)


def print_all(results, about):
    """Prints the whole table, and the reasons for missing figures."""
    for result in results:
        unit = result["unit"]
        print(f"{result['id']}  {result['work']}")
        line("anyrec", result["rate"], unit, result["ratio"])
        if result["limit_rate"] is not None:
            line("limit", result["limit_rate"], unit, None)
        for name, rate in result["variants"].items():
            line(name, rate, unit, over(rate, result["limit_rate"]))
        for name, rate in result["peers"].items():
            line(name, rate, unit, result["peer_ratios"][name], over(result["rate"], rate))
        if "memory" in result and unit != "MB":
            print(f"    {'memory added':26} {result['memory'] / 1e6:.1f} MB")
        for text, met in result["targets"].items():
            print(f"    {'met' if met else 'MISSED' if met is False else 'NOT MEASURED':12} {text}")
        for name, reason in result["failures"].items():
            print(f"    {name} has no figure: {reason}")
        print()
    targets = [met for result in results for met in result["targets"].values()]
    print(f"{sum(met is True for met in targets)} of {len(targets)} targets met")
    print(machine.in_words(about))
    print(", ".join(f"{name} {version}" for name, version in about["versions"].items()))


def line(name, rate, unit, ratio, times=None):
    of_limit = "" if ratio is None else f"{ratio:8.2f} of the limit"
    ours = "" if times is None else f"   anyrec is {times:.1f} x"
    print(f"    {name:26} {amount(rate, unit):>18}{of_limit:22}{ours}".rstrip())


def over(rate, base):
    return None if rate is None or not base else rate / base


def amount(rate, unit):
    """Formats a rate for people."""
    if rate is None:
        return "-"
    if unit == "MB":
        return f"{rate:.1f} MB"
    if unit == "bytes/s":
        return f"{rate / 1e9:.3f} GB/s"
    if unit == "records/s":
        return f"{rate / 1e6:.3f} million/s" if rate >= 1e5 else f"{rate / 1e3:.2f} thousand/s"
    return f"{rate:,.0f} {unit.removesuffix('/s')}/s" if unit != "1/s" else f"{1000 / rate:.3f} ms"
