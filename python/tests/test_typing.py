"""What type checkers report, and what a mistyped keyword raises."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import anyrec

MISTYPED: list[tuple[str, dict[str, Any], str, str]] = [
    ("create", {"overwite": True}, "create", "overwrite"),
    ("open", {"skip_damages": True}, "open", "skip_damage"),
    ("verify", {"formt": "mxnet"}, "verify", "format"),
    ("repair", {"overwrit": True}, "repair", "overwrite"),
    ("convert", {"shard": 2}, "convert", "shards"),
    ("convert", {"transfomers": []}, "convert", "transformers"),
    ("index", {"outputs": "a.idx"}, "index", "output"),
    ("pack_folder", {"progres": True}, "pack_folder", "progress"),
    ("Loader", {"suffle": True}, "Loader", "shuffle"),
    ("ImageLoader", {"suffle": True}, "ImageLoader", "shuffle"),
    ("torch.Loader", {"suffle": True}, "Loader", "shuffle"),
    ("torch.ImageLoader", {"stepz": []}, "ImageLoader", "steps"),
    ("torch.ImageLoader", {"dropp_last": True}, "ImageLoader", "drop_last"),
    ("torch.Dataset", {"thread": 1}, "Dataset", "threads"),
    ("torch.DataLoader", {"num_worker": 1}, "DataLoader", "num_workers"),
]


@pytest.mark.parametrize(("function", "keyword", "name", "meant"), MISTYPED)
def test_a_mistyped_keyword_is_reported_with_the_one_that_was_meant(
    function: str, keyword: dict[str, Any], name: str, meant: str
) -> None:
    if function.startswith("torch.") and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    called: Any = anyrec
    for part in function.split("."):
        called = getattr(called, part)
    [wrong] = keyword
    message = f"{name}() got an unexpected keyword argument '{wrong}'. Did you mean '{meant}'?"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        called("a.rec", "b.rec", **keyword)


def test_labels_and_decode_are_no_keywords_of_an_image_loader() -> None:
    for name in ("labels", "decode"):
        options: dict[str, Any] = {name: None}
        with pytest.raises(TypeError, match=rf"^ImageLoader\(\) got an unexpected keyword argument '{name}'"):
            anyrec.ImageLoader("a.rec", 1, **options)


SNIPPET = """
import anyrec
import anyrec.image

anyrec.create("a.rec", overwite=True)
anyrec.open("a.rec", skip_damages=True)
anyrec.Loader("a.rec", 4, suffle=True)
anyrec.ImageLoader("a.rec", 4, suffle=True)
anyrec.torch.ImageLoader("a.rec", 4, suffle=True)
anyrec.convert("a.rec", "b.rec", overwite=True)
anyrec.create("a.rec", overwrite=True, index_file=True)
anyrec.verify("a.rec", format="mxnet")
anyrec.torch.Loader("a.rec", 4, num_workers=2, drop_last=True)
reveal_type(next(iter(anyrec.Loader("a.rec", 4))))
reveal_type(next(iter(anyrec.Loader("a.rec", 4, decode=len))))
reveal_type(next(iter(anyrec.ImageLoader("a.rec", 4, train=True))))
reveal_type(next(iter(anyrec.ImageLoader("a.rec", 4, train=True, as_dict=True))))
reveal_type(next(iter(anyrec.torch.Loader("a.rec", 4))))
reveal_type(next(iter(anyrec.torch.ImageLoader("a.rec", 4, train=True))))
anyrec.image.Normalize(mean=0, std=1)
"""


def test_mypy_refuses_mistyped_keywords_and_knows_the_batches(own_folder: pathlib.Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("TYPES NOT CHECKED: mypy is not installed")
    (own_folder / "snippet.py").write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "snippet.py"]
    environment = dict(os.environ)
    folder = pathlib.Path(anyrec.__file__).parents[1]
    if folder.name != "site-packages":
        # An installed package is found without it, and mypy refuses its folder here.
        environment["MYPYPATH"] = str(folder)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = done.stdout.splitlines()
    refused = {int(line.split(":")[1]) for line in lines if ": error:" in line}
    assert refused == set(range(5, 11)), done.stdout + done.stderr
    revealed = [line.split('"')[1] for line in lines if "Revealed type is" in line]
    # A named tuple is shown with the types of its fields, and its name at the end.
    assert [one.split("fallback=")[-1].rstrip("]") if "fallback=" in one else one for one in revealed] == [
        "anyrec._anyrec.Batch",
        "list[int]",
        "anyrec.image.ImageBatch",
        "dict[str, Any]",
        "anyrec.torch.Batch",
        "anyrec.image.ImageBatch",
    ]


LAZY = """
import sys
import anyrec
assert "torch" not in sys.modules
anyrec.torch.Loader
assert "torch" in sys.modules
try:
    anyrec.tensorflow
except AttributeError as error:
    print(error)
"""


def test_torch_is_imported_when_it_is_used() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LAZY], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "module 'anyrec' has no attribute 'tensorflow'\n"), done.stderr


def test_american_names_are_the_same_steps() -> None:
    assert anyrec.image.CenterCrop is anyrec.image.CentreCrop
    assert anyrec.image.Normalize is anyrec.image.Normalise
