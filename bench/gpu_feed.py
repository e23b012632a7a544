#!/usr/bin/env python3
"""How well a GPU is fed: ResNet-50 trained from a `.rec` file of photos, on a machine with a GPU.

    python3 bench/gpu_feed.py --photos FOLDER --folder /dev/shm --json FILE
    python3 bench/gpu_feed.py --plot FILE            # draws FILE's figures as SVG next to it

Needs torch with CUDA, torchvision and the anyrec wheel. The plot needs matplotlib and can be drawn on
another machine. FOLDER has photos (`bench/photos.py` makes them), which are stored repeatedly until the
file has `--images` records.

The model is torchvision's ResNet-50 in channels-last memory under bfloat16 autocast, with SGD, in
batches of 256. All feeders apply the same steps to an image: a random-resized-crop of 224, a flip, and
normalisation. They take turns several times, and a figure is the median of its turns:

- synthetic: one batch on the GPU, reused: what the GPU can do;
- anyrec: `anyrec.torch.ImageLoader` with 16 threads and pinned batches, of float32 in NCHW order like
  torch's loader, and of bfloat16 in NHWC order, in which the GPU computes;
- torch: a `DataLoader` of 16 worker processes and pinned batches over `anyrec.torch.Dataset`, decoding
  by torchvision.io or by Pillow, with torchvision's transforms.

After some warm-up steps, which use up prefetched batches, these are measured:

- images per second of wall time, from one synchronisation with the GPU to the next;
- the fraction of that time in which the GPU waits. CUDA events are recorded before every step (after its
  batch has arrived, before it is copied) and after it. Steps are queued without waiting for them, so on
  the GPU no time passes between two steps if the batch arrived in time. Any time that does pass is
  waiting. Copying a batch to the GPU counts as work;
- the fraction of time in which Python is blocked in `next()`. It may be large although the GPU never
  waits, because steps are queued.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

BATCH, SIZE = 256, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WARM_UP = 48
"""Warm-up steps. Sixteen workers finish their first batches at about the same time and only gradually get out of
step, and two batches of each may be ready."""


def main():
    arguments = parse_arguments()
    if arguments.plot:
        draw(json.loads(arguments.plot.read_text(encoding="utf-8")), arguments.plot.with_suffix(".svg"))
        return
    check_machine()
    with tempfile.TemporaryDirectory(prefix="anyrec-gpu-", dir=arguments.folder) as folder:
        path = make_file(Path(folder) / "photos.rec", arguments.photos, arguments.images)
        results = measure_all(path, arguments)
    for name, figures in results["feeders"].items():
        print(
            f"{name:36} {figures['images_per_second']:8,.0f} images/s   the GPU waits {figures['gpu_waits']:6.1%}   "
            f"blocked in next() {figures['blocked']:6.1%}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--photos", type=Path, help="the folder of the photos")
    parser.add_argument("--folder", type=Path, help="folder for the file (default: the temporary folder)")
    parser.add_argument("--images", type=int, default=25_600, help="records of the file (25,600: 2.5 GB)")
    parser.add_argument("--workers", type=int, default=16, help="threads for anyrec, processes for torch")
    parser.add_argument("--steps", type=int, default=96, help="measured steps per turn")
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="warm-up steps per turn")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", help="only feeders whose names begin with one of these words, separated by commas")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="only draw the figures of this file")
    arguments = parser.parse_args()
    if not arguments.plot and not (arguments.photos and any(arguments.photos.glob("*.jpg"))):
        parser.error("--photos is needed: a folder of .jpg files")
    return arguments


def check_machine():
    try:
        import torch
        import torchvision  # noqa: F401
    except ImportError as missing:
        sys.exit(f"gpu_feed: {missing.name} is not installed for {sys.executable}")
    if not torch.cuda.is_available():
        sys.exit(f"gpu_feed: torch {torch.__version__} sees no GPU here; this measures how one is fed")
    try:
        import anyrec.torch
    except ImportError as missing:
        sys.exit(f"gpu_feed: {missing.name} is not installed; `cargo xtask wheel` builds it")
    if not hasattr(anyrec.torch, "ImageLoader"):
        sys.exit("gpu_feed: this anyrec has no ImageLoader yet")


def make_file(path, folder, count):
    """Makes a `.rec` file of this many photos, each labelled with its number."""
    import anyrec

    photos = [photo.read_bytes() for photo in sorted(folder.glob("*.jpg"))]
    with anyrec.create(str(path)) as writer:
        for number in range(count):
            which = number % len(photos)
            writer.write(photos[which], key=number, label=which % 1000)
    return path


# The feeders: endless batches of (images, labels) on the GPU, the images in NCHW order


def synthetic(path, workers):
    import torch

    images = torch.randn(BATCH, 3, SIZE, SIZE, device="cuda").contiguous(memory_format=torch.channels_last)
    labels = torch.randint(1000, (BATCH,), device="cuda")
    while True:
        yield images, labels


def anyrec_float32(path, workers):
    for batch in anyrec_batches(path, workers, dtype="float32", layout="NCHW"):
        yield batch.data, batch.labels.long()


def anyrec_bfloat16(path, workers):
    for batch in anyrec_batches(path, workers, dtype="bfloat16", layout="NHWC"):
        # Another order of the same memory: channels-last.
        yield batch.data.permute(0, 3, 1, 2), batch.labels.long()


def anyrec_batches(path, workers, **how):
    import anyrec.torch

    loader = anyrec.torch.ImageLoader(
        str(path), BATCH, SIZE, train=True, shuffle=True, seed=1, drop_last=True, threads=workers,
        pin_memory=True, **how,
    )  # fmt: skip
    while True:
        yield from loader


def torch_io(path, workers):
    return torch_batches(path, workers, decoded_by_torchvision)


def torch_pillow(path, workers):
    return torch_batches(path, workers, decoded_by_pillow)


def torch_batches(path, workers, decode):
    import anyrec.torch
    import torch

    loader = torch.utils.data.DataLoader(
        anyrec.torch.Dataset(str(path), decode=Sample(decode)), batch_size=BATCH, shuffle=True, drop_last=True,
        num_workers=workers, pin_memory=True, persistent_workers=True,
    )  # fmt: skip
    while True:
        yield from loader


class Sample:
    """Converts a record to an image, ready for training, and its label; in a worker."""

    def __init__(self, decode):
        import torch
        from torchvision.transforms import v2

        self._decode = decode
        self._transform = v2.Compose([
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ])  # fmt: skip

    def __call__(self, record):
        from anyrec import mxnet

        header, data = mxnet.unpack(bytes(record))
        return self._transform(self._decode(data)), int(header.label)


def decoded_by_torchvision(data):
    import torch
    from torchvision import io

    return io.decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def decoded_by_pillow(data):
    from io import BytesIO

    from PIL import Image

    return Image.open(BytesIO(data)).convert("RGB")


FEEDERS = {
    "synthetic": synthetic,
    "anyrec, float32": anyrec_float32,
    "anyrec, bfloat16 NHWC": anyrec_bfloat16,
    "torch DataLoader, torchvision.io": torch_io,
    "torch DataLoader, PIL": torch_pillow,
}


def measure_all(path, arguments):
    """Runs every feeder in turn, several times."""
    import anyrec
    import machine
    import torch
    import torchvision

    words = tuple((arguments.only or "").split(","))
    chosen = {name: feeder for name, feeder in FEEDERS.items() if name.startswith(words)}
    samples = {name: [] for name in chosen}
    step = training_step()
    for repetition, (name, feeder) in itertools.product(range(arguments.repetitions), chosen.items()):
        # Created and closed within a turn, so that no two feeders' threads and workers run at once.
        batches = feeder(path, arguments.workers)
        take(step, batches, arguments.warm_up)
        found = take(step, batches, arguments.steps)
        batches.close()
        samples[name].append(found)
        print(f"{repetition + 1}: {name}: {found['images_per_second']:,.0f} images/s", file=sys.stderr, flush=True)
    versions = {"anyrec": anyrec.__version__, "torch": torch.__version__, "torchvision": torchvision.__version__}
    return {
        "feeders": {
            name: {key: statistics.median(each[key] for each in found) for key in found[0]}
            for name, found in samples.items()
        },
        "batch": BATCH,
        "workers": arguments.workers,
        "gpu": torch.cuda.get_device_name(),
        "machine": machine.describe(versions),
    }


def training_step():
    """Creates ResNet-50 and SGD; returns the function that trains it with a batch."""
    import torch
    import torchvision

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def step(images, labels):
        images = images.to("cuda", non_blocking=True).contiguous(memory_format=torch.channels_last)
        labels = labels.to("cuda", non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def take(step, batches, count):
    """Trains this many steps; returns the rate, and the fraction of time spent waiting."""
    import torch

    events = []
    blocked = 0.0
    torch.cuda.synchronize()
    last = torch.cuda.Event(enable_timing=True)
    last.record()
    start = time.perf_counter()
    for _ in range(count):
        asked = time.perf_counter()
        images, labels = next(batches)
        blocked += time.perf_counter() - asked
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(images, labels)
        end.record()
        events.append((begin, end))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    waited = 0.0
    for begin, end in events:
        waited += last.elapsed_time(begin) / 1000
        last = end
    return {
        "images_per_second": count * BATCH / seconds,
        "gpu_waits": waited / seconds,
        "blocked": blocked / seconds,
    }


def draw(results, path):
    """Draws one bar per feeder, with the fraction of time that the GPU waits for it."""
    import machine
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "anyrec"
    plt.rcParams["svg.fonttype"] = "none"
    feeders = results["feeders"]
    figure, axis = plt.subplots(figsize=(8, 0.5 * len(feeders) + 1.2), layout="constrained")
    rates = [each["images_per_second"] for each in feeders.values()]
    colors = ["#2b6cb0" if name.startswith("anyrec") else "#a0aec0" for name in feeders]
    drawn = axis.barh(list(feeders), rates, color=colors)
    told = [f"{each['images_per_second']:,.0f}; the GPU waits {each['gpu_waits']:.0%}" for each in feeders.values()]
    axis.bar_label(drawn, told, padding=3, fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.35)
    axis.tick_params(labelsize=8)
    axis.set_xlabel("images/s", fontsize=8)
    axis.set_title(
        f"ResNet-50, bfloat16, batches of {results['batch']}, {results['workers']} threads or workers, {results['gpu']}",
        fontsize=9, loc="left",
    )  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(machine.in_words(results["machine"]), fontsize=7)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
