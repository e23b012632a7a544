"""Bar charts for the documentation: every contestant's rate as a fraction of the limit's."""

import matplotlib

matplotlib.use("svg")
import machine  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402

OURS, PEER = "#2b6cb0", "#a0aec0"


def draw(results, about, folder):
    """Draws one SVG per group of rows: A.svg, B.svg, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    # Without these two, every run would write a different file.
    plt.rcParams["svg.hashsalt"] = "anyrec"
    plt.rcParams["svg.fonttype"] = "none"
    for group in dict.fromkeys(result["id"][0] for result in results):
        bars = [bars_of(result) for result in results if result["id"][0] == group]
        bars = [each for each in bars if each[1]]
        if bars:
            draw_group(bars, about, folder / f"{group}.svg")


def bars_of(result):
    """Returns a row's title and its bars: (name, rate divided by the limit's, or by the best peer's)."""
    rates = {"anyrec": result["rate"], **result["peers"]}
    rates = {name: rate for name, rate in rates.items() if rate is not None}
    others = [rate for name, rate in rates.items() if name != "anyrec"]
    base = result["limit_rate"] or max(others, default=None)
    if result["rate"] is None or not base:
        return "", []
    against = "limit = 1" if result["limit_rate"] else "best peer = 1"
    return f"{result['id']}: {result['work']} ({against})", [(name, rate / base) for name, rate in rates.items()]


def draw_group(bars, about, path):
    heights = [len(each) for _, each in bars]
    figure, axes = plt.subplots(
        len(bars), 1, figsize=(8, 0.6 * len(bars) + 0.24 * sum(heights) + 0.4), squeeze=False,
        height_ratios=heights, layout="constrained",
    )  # fmt: skip
    for axis, (title, values) in zip(axes[:, 0], bars):
        names = [name for name, _ in values]
        ratios = [ratio for _, ratio in values]
        drawn = axis.barh(names, ratios, color=[OURS if name == "anyrec" else PEER for name in names])
        axis.bar_label(drawn, [f"{ratio:.2f}" for ratio in ratios], padding=3, fontsize=8)
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_title(title, fontsize=9, loc="left")
        axis.tick_params(labelsize=8)
        axis.invert_yaxis()
        axis.margins(x=0.12)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(machine.in_words(about), fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
