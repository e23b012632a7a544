"""Calls everything that the package offers, with arguments that nobody should give.

``python misuse.py FIRST COUNT FOLDER`` makes `COUNT` sessions, the first with the seed `FIRST`, in a
folder that :func:`prepare` has filled. A session makes one object and calls a few of its methods, or a
few functions, chosen by its seed; a single session is told call by call. Any exception is a good answer except those that say that the package
itself is wrong. ``test_misuse.py`` runs this in processes of their own and watches over them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import inspect
import itertools
import os
import pathlib
import pkgutil
import random
import resource
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import anyrec
from anyrec import _anyrec, ffrecord, grail, image, mxnet

CALLS = 10
"""Calls of a session."""
LIMIT = 30
"""Seconds for a session."""
MEMORY = 6 << 30
"""Address space of a process: what asks for more gets an error."""

STAND_INS = ("_anyrec", "_mxnet")
"""Modules with private names whose contents callers reach."""

# What is not asked for by name, but by the language.
DUNDERS = [
    "__len__", "__getitem__", "__iter__", "__next__", "__contains__", "__repr__", "__reduce__", "__bytes__",
    "__hash__", "__eq__", "__enter__", "__exit__", "__getstate__",
]  # fmt: skip

Pool = list[Any]


def modules() -> list[Any]:
    """All modules of the package that can be imported here, the native one included."""
    found = [anyrec]
    for module in pkgutil.walk_packages(anyrec.__path__, "anyrec."):
        private = [part for part in module.name.split(".") if part.startswith("_") and part not in STAND_INS]
        if not private:
            with contextlib.suppress(ImportError):
                found.append(importlib.import_module(module.name))
    return found


def public() -> dict[str, Any]:
    """Every public class and function, by a name; once, wherever it can be had from."""
    found: dict[int, tuple[str, Any]] = {}
    for module in modules():
        names = getattr(module, "__all__", None)
        if names is None:
            names = [name for name in vars(module) if not name.startswith("_")]
            names = [name for name in names if getattr(getattr(module, name), "__module__", "").startswith("anyrec")]
        if module is _anyrec:
            # The command runs as a program does, and takes over Ctrl-C.
            names = [name for name in vars(module) if not name.startswith("__") and name != "command"]
        for name in names:
            value = getattr(module, name)
            if callable(value) and not hasattr(value, "__origin__"):
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return dict(found.values())


# --- Files ---------------------------------------------------------------------------------------------


def prepare(folder: pathlib.Path, testdata: pathlib.Path) -> None:
    """Fills a folder with good, damaged and hostile files."""
    for format in ("mxnet", "ffrecord", "grail", "idx"):
        for file in sorted((testdata / format / "good").iterdir()):
            if file.is_file() and file.suffix != ".json" and file.stat().st_size < 1 << 20:
                shutil.copy(file, folder / file.name)
    for file in sorted((testdata / "images").glob("4*.jpg"))[:3]:
        shutil.copy(file, folder / file.name)
    chosen = random.Random(0)
    for file in sorted(folder.iterdir()):
        data = bytearray(file.read_bytes())
        if len(data) > 4:
            for _ in range(3):
                data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
            (folder / f"bad_{file.name}").write_bytes(data)
            (folder / f"cut_{file.name}").write_bytes(data[: len(data) // 2])
    picture = np.full((20, 30, 3), 100, np.uint8)
    with anyrec.create(str(folder / "images.rec"), index_file=True) as writer:
        for number in range(12):
            header = mxnet.IRHeader(0, float(number % 3), number, 0)
            writer.write(mxnet.pack_img(header, picture, 3, ".png"), key=number)
    (folder / "hostile-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + b"\xff" * 4 + b"0123456789ab")
    (folder / "hostile-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + b"\xff" * 4 + bytes(8))
    (folder / "hostile.ffr").write_bytes(b"\xff" * 24)
    (folder / "hostile.rec").write_bytes(b"\x0a\x23\xd7\xce\xff\xff\xff\x1f" + bytes(64))
    (folder / "empty.rec").write_bytes(b"")
    (folder / "folder").mkdir()
    (folder / "folder" / "file").write_bytes(b"content")
    (folder / "hidden").mkdir(mode=0)


# --- Arguments -----------------------------------------------------------------------------------------


class Lying(list):  # type: ignore[type-arg]
    """A list whose length is what it says."""

    def __init__(self, said: Any, items: Any = ()) -> None:
        super().__init__(items)
        self.said = said

    def __len__(self) -> int:
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said  # type: ignore[no-any-return]


class Awkward:
    """Fails, or says nonsense, whatever it is asked for."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def _say(self, *_: Any, **__: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    __index__ = __len__ = __iter__ = __next__ = __getitem__ = __fspath__ = __float__ = __bool__ = _say
    __hash__ = __eq__ = __call__ = __contains__ = __bytes__ = __str__ = __repr__ = __enter__ = _say
    shape = dtype = keys = items = read = property(_say)


def raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def numbers() -> Pool:
    edges = [0, 7, 8, 15, 16, 31, 32, 53, 62, 63, 64, 100]
    whole = [sign * (2**bits) + more for bits in edges for sign in (1, -1) for more in (-1, 0, 1)]
    parts = [0.0, -0.0, 0.5, -1.5, 1e308, float("inf"), float("-inf"), float("nan")]
    kinds = [np.int8(-1), np.uint64(2**64 - 1), np.int64(-(2**63)), np.float32(2), np.float64("nan"), np.bool_(True)]
    return [*range(-4, 14), *whole, *parts, *kinds, True, False, None]


def texts() -> Pool:
    words = "auto mapped positional direct raise skip replace blank NCHW NHWC uint8 float32 bfloat16 machine process"
    formats = "mxnet grail idx ffrecord zstd flate .jpg .png r w torchvision mxnet cv-auto bilinear order"
    odd = ["", "a\0b", "\udcff", "\U0001f600", "x" * 5000, "../x", "%s{}", "zstd 99", "flate -9", "aes-256-gcm k", "🦀/"]
    return [*words.split(), *formats.split(), *odd]


def buffers() -> Pool:
    data = bytes(range(256)) * 4
    released = memoryview(bytearray(8))
    released.release()
    exported = bytearray(16)
    return [
        b"", data, data[:7], bytearray(data), bytearray(), memoryview(data)[::3], memoryview(data)[::-1], released,
        memoryview(exported), memoryview(bytes(192)).cast("d", (2, 3, 4)), anyrec.Record(data), anyrec.Record(b""),
        pathlib.Path("420.jpg").read_bytes() if pathlib.Path("420.jpg").exists() else b"\xff\xd8",
    ]  # fmt: skip


def arrays() -> Pool:
    plain = np.arange(24, dtype=np.uint8)
    fixed = plain.copy()
    fixed.flags.writeable = False
    odd = np.frombuffer(bytes(65), np.uint8)[1:].view(np.int64)
    return [
        plain, fixed, plain[::-1], plain[::2], plain.reshape(2, 3, 4), np.zeros(0, np.int64), np.zeros((0, 5)), odd,
        np.arange(3), np.arange(3)[::-1], np.arange(6, dtype=">i8"), np.arange(6, dtype=np.int32), np.array(2),
        np.array([-1, 0]), np.array([2**63 - 1]), np.array([2**64 - 1], np.uint64), np.array([1.5, np.nan]),
        np.array([True, False]), np.array([None, 1, "x"], object), np.array(["a"]), np.zeros(3, [("a", "i4")]),
        np.broadcast_to(np.int64(0), (1000,)), np.broadcast_to(np.uint8(0), (2**40,)), np.asfortranarray(np.eye(3)),
        np.zeros((4, 5, 3), np.uint8), np.zeros((4, 5), np.uint16), np.zeros((0, 5, 3), np.uint8), np.zeros((1,) * 20),
        np.zeros(1 << 16, np.uint8), np.array(["2020"], "M8[D]"), np.zeros(3, np.complex64), np.ma.ones(2),
    ]  # fmt: skip


def sequences() -> Pool:
    itself: list[Any] = []
    itself.append(itself)
    errors: list[Any] = [ValueError("no"), KeyboardInterrupt(), SystemExit(3), RecursionError(), OverflowError()]
    lying = [Lying(said, [1, 0]) for said in (0, 1, 3, 2**40, 2**62, 2**63, -1, 1.5, *errors)]
    text = [Lying(said, ["n1.ffr"]) for said in (0, 2**62, -1, *errors)]
    return [
        [], [0], [0, 1, 0], [-1], [10**30], ["a"], [None], [[0]], [1.5], [b"x", 3], itself, (), (1, 2), (1, 2, 3),
        {}, {"a": 1}, {1: 2}, {"made": b"x"}, {b"\xff": True}, set(), {1, 2}, *lying, *text, range(5), range(0),
        range(10**30), range(2**62), range(-3, 3), range(3, -40, -1), iter([1, 2]), (n for n in [0, 1]), "012",
        [("a", 1)], [("a",)], [(1, 2, 3)], [0.5, 0.5], [1, -1], [("Flip", {})], [np.int64(1), True],
    ]  # fmt: skip


def slices() -> Pool:
    ends = [None, 0, 1, -1, 3, 2**62, -(2**63), sys.maxsize, 10**30, "x", 1.5]
    chosen = random.Random(1)
    some = [slice(*(chosen.choice(ends) for _ in range(3))) for _ in range(40)]
    return [slice(1, None, sys.maxsize), slice(None, None, -sys.maxsize - 1), slice(None), slice(None, None, 0), *some]


def objects() -> Pool:
    errors = [ValueError("no"), KeyboardInterrupt(), SystemExit(3), StopIteration(), TypeError("no")]
    answers: Pool = [None, -1, 2**70, "text", b"bytes", [], 1.5, float("nan"), *errors]
    calls = [raiser(error) for error in errors] + [lambda *_, **__: None, lambda *_: b"", lambda *_: raiser(ValueError())]
    return [object(), int, type, len, ..., NotImplemented, *(Awkward(answer) for answer in answers), *calls]


def paths() -> Pool:
    there = sorted(str(path) for path in pathlib.Path(".").iterdir())
    odd = ["missing.rec", "", ".", "folder", "hidden", "n1.ffr/x", "a\0b", "\udcff", "x" * 300, "*.ffr", "[", "**", b"n1.ffr"]
    return [*there, *odd, *map(pathlib.Path, there[:20])]


class Arguments:
    """What calls are made with, chosen by a seed."""

    KINDS: dict[str, Callable[[], Pool]] = {
        "number": numbers, "text": texts, "buffer": buffers, "array": arrays, "sequence": sequences,
        "slice": slices, "object": objects, "path": paths,
    }  # fmt: skip
    # What parameters of these names want.
    WANTED = {
        "path": "path paths file files fname fnames ffr_file uri idx_path input inputs folder root data path_imgrec",
        "output": "output out_file fname_out label_output",
        "number": "index start stop size batch_size n count seed epoch rank world threads prefetch max_bytes block window "
        "step offset id id2 label padding label_width width height shorter quality iscolor record_bytes nfiles samples "
        "consumed pixels std probability degrees max_items parallelism file_index",
        "sequence": "indices numbers weights sizes header labels transformers keys parts steps options shard location shape",
        "buffer": "data buf buffer s item record trailer text value payload content img",
        "array": "array image", "slice": "slice",
        "text": "format access dtype law filter layout order name encoding errors on_error flag durability",
        "object": "transform decode apply progress encoder decoder index_callback serializer key_type",
    }  # fmt: skip
    # Values that would have the interpreter, or torch, do something else than the package.
    FIXED: dict[str, Pool] = {
        "num_workers": [0], "multiprocessing_context": [None], "timeout": [0], "persistent_workers": [False],
        "pin_memory": [False], "device": [None, "cpu", "nowhere"], "arguments": [[], ["missing.py"], ["-h"]],
        "nfiles": [-1, 0, 1, None, "x"], "dataset": [[b"x", b"yy"], [], [None], Lying(2**62, [b"x"]), 3, None],
        "samples": [0, 1, 5, -1, 2**70, None, "x"], "keys": [[], [0], ["a"], {1}, {}, {"a": bytes(32)}, {"a": 3}, None, 3],
    }  # fmt: skip

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.by_name = {name: kind for kind, names in self.WANTED.items() for name in names.split()}
        self.own: Pool = []
        """Objects of the session itself, for calls into what is at work."""

    def any(self) -> Any:
        if self.own and self.random.random() < 0.1:
            return self.random.choice(self.own)
        return self.of(self.random.choice(list(self.KINDS)))

    def of(self, kind: str) -> Any:
        return self.random.choice(self.KINDS[kind]())

    def named(self, name: str) -> Any:
        if name in self.FIXED:
            return self.random.choice(self.FIXED[name])
        kind = self.by_name.get(name)
        if kind == "output":
            return f"out{self.random.randrange(4)}" + self.random.choice([".rec", ".ffr", ".grail-rio", "-idx1-ubyte", ""])
        if kind is None or self.random.random() < 0.25:
            return self.any()
        if kind == "path" and name.endswith("s") and self.random.random() < 0.5:
            return [self.of("path") for _ in range(self.random.randrange(3))]
        return self.of(kind)

    def call(self, target: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for a call: mostly such as the signature asks for."""
        try:
            parameters = list(inspect.signature(target).parameters.values())
        except (TypeError, ValueError):
            return [self.any() for _ in range(self.random.randrange(4))], {}
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in parameters:
            wanted = parameter.default is parameter.empty or self.random.random() < 0.25
            if parameter.kind is parameter.VAR_KEYWORD:
                for name in ("skip_damage", "verify", "access", "threads", "max_record", "max_items", "dtype", "shuffle"):
                    if self.random.random() < 0.1:
                        named[name] = self.named(name)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += [self.any() for _ in range(self.random.randrange(4))]
            elif not wanted:
                continue
            elif parameter.kind is parameter.POSITIONAL_ONLY or (
                parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
            ):
                positional.append(self.named(parameter.name))
            else:
                named[parameter.name] = self.named(parameter.name)
        if self.random.random() < 0.03:
            positional.append(self.any())
        return positional, named


# --- Objects to call methods of ---------------------------------------------------------------------------


def _file(arguments: Arguments, *ends: str) -> str:
    found = [path.name for path in sorted(pathlib.Path(".").iterdir()) if path.name.endswith(ends)]
    return arguments.random.choice(found)


def _record_file(arguments: Arguments) -> str:
    return _file(arguments, ".rec", ".ffr", ".grail-rio", ".grail-rpk", "ubyte", "images.rec")


def _dataset(arguments: Arguments) -> Any:
    options: dict[str, Any] = {"copy": arguments.random.random() < 0.8, "skip_damage": arguments.random.random() < 0.3}
    access: Any = arguments.random.choice(["auto", "positional", "mapped"])
    return anyrec.open(_record_file(arguments), access=access, threads=arguments.random.randrange(3), **options)


def _writer(arguments: Arguments, *ends: str) -> str:
    return f"new{arguments.random.randrange(4)}{arguments.random.choice(ends)}"


def _steps(arguments: Arguments) -> Any:
    return [image.Resize(16), image.CentreCrop(8), image.Flip()]


def _image_loader(arguments: Arguments, **options: Any) -> Any:
    return image.ImageLoader("images.rec", 4, 8, steps=_steps(arguments), threads=2, **options)


def _loader(arguments: Arguments) -> Any:
    return anyrec.Loader(_dataset(arguments), arguments.random.choice([1, 3, 100]), shuffle=True, threads=2)


def _batch(arguments: Arguments) -> Any:
    return anyrec.open("n1000.ffr").read(range(0, 100, 7))


def _torch() -> Any:
    return importlib.import_module("anyrec.torch")


def _ff_torch() -> Any:
    return importlib.import_module("anyrec.ffrecord.torch")


def _samples() -> Any:
    class Samples(_ff_torch().Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 5

        def __getitem__(self, indices: Any) -> Any:
            return [self.reader.read_one(index) for index in indices]

        def __init__(self) -> None:
            self.reader = ffrecord.FileReader("n1000.ffr")

    return Samples()


MAKERS: dict[str, Callable[[Arguments], Any]] = {
    "Batch": _batch,
    "Dataset": _dataset,
    "FfReader": lambda a: _anyrec.FfReader([_file(a, ".ffr")]),
    "FfWriter": lambda a: _anyrec.FfWriter(_writer(a, ".ffr")),
    "GrailScanner": lambda a: _anyrec.GrailScanner(_file(a, ".grail-rio")),
    "GrailWriter": lambda a: _anyrec.GrailWriter(_writer(a, ".grail-rio"), {"overwrite": True}, a.of("object")),
    "BatchIterator": lambda a: _dataset(a).batches(3),
    "RecordIterator": lambda a: iter(_dataset(a)),
    "anyrec._anyrec.Loader": lambda a: _loader(a)._native,
    "Memory": lambda a: _image_loader(a)._native.next_images(1)[0],
    "MxReader": lambda a: _anyrec.MxReader(_file(a, ".rec")),
    "MxWriter": lambda a: _anyrec.MxWriter(_writer(a, ".rec")),
    "PackedFolder": lambda a: anyrec.PackedFolder(_file(a, "packed_many.ffr", "packed_links.ffr")),
    "anyrec.ffrecord.PackedFolder": lambda a: ffrecord.PackedFolder(_file(a, "packed_many.ffr", "packed_links.ffr")),
    "Record": lambda a: anyrec.Record(a.of("buffer")),
    "Writer": lambda a: anyrec.create(_writer(a, ".rec", ".ffr", ".grail-rio", "-idx1-ubyte"), overwrite=True),
    "anyrec.grail.Writer": lambda a: grail.Writer(_writer(a, ".grail-rio"), overwrite=True, index=a.of("object")),
    "Scanner": lambda a: grail.Scanner(_file(a, ".grail-rio")),
    "FileReader": lambda a: ffrecord.FileReader(_file(a, ".ffr")),
    "FileWriter": lambda a: ffrecord.FileWriter(_writer(a, ".ffr")),
    "ImageLoader": _image_loader,
    "Loader": _loader,
    "ImageRecordIter": lambda a: mxnet.ImageRecordIter(path_imgrec="images.rec", data_shape=(3, 8, 8), batch_size=4),
    "MXRecordIO": lambda a: mxnet.MXRecordIO(_file(a, ".rec"), "r"),
    "NDArray": lambda a: mxnet.NDArray(np.zeros((4, 6, 3), np.uint8)),
    "MXIndexedRecordIO": lambda a: mxnet.MXIndexedRecordIO("images.idx", "images.rec", "r"),
    "FaceDataset": lambda a: importlib.import_module("anyrec.insightface").FaceDataset("images.rec"),
    "Mix": lambda a: anyrec.Mix([_dataset(a), _dataset(a)]),
    "View": lambda a: _dataset(a).select([0, 0]),
    "anyrec.torch.Dataset": lambda a: _torch().Dataset(_record_file(a)),
    "anyrec.torch.DataLoader": lambda a: _torch().DataLoader(_torch().Dataset("n1000.ffr"), 3),
    "anyrec.torch.Loader": lambda a: _torch().Loader("n1000.ffr", 3),
    "anyrec.torch.ImageLoader": lambda a: _torch().ImageLoader("images.rec", 4, 8, steps=_steps(a)),
    "anyrec.torch.Batch": lambda a: next(iter(_torch().Loader("n1000.ffr", 3))),
    "anyrec.ffrecord.torch.Dataset": lambda a: _samples(),
    "ConcatDataset": lambda a: _ff_torch().ConcatDataset([_samples(), _samples()]),
    "Subset": lambda a: _ff_torch().Subset(_samples(), [0, 1]),
    "anyrec.ffrecord.torch.DataLoader": lambda a: _ff_torch().DataLoader(_samples(), 2),
    "ReaderRegistry": lambda a: _ff_torch().ReaderRegistry(ffrecord.FileReader),
}
"""How to make an object of a class, by its name; with its module's where several have the name."""


def maker(name: str, value: Any) -> Callable[[Arguments], Any] | None:
    """What makes objects of a class; none for classes that hold nothing but their arguments."""
    return MAKERS.get(name) or MAKERS.get(name.rpartition(".")[2])


def is_plain(value: type) -> bool:
    """Whether a class holds nothing but its arguments: results, steps, exceptions, tuples."""
    return issubclass(value, (Exception, tuple, image.Step)) or hasattr(value, "__dataclass_fields__") or (
        value.__module__ == "anyrec.image_record_iter" and value.__name__ == "DataBatch"
    )


# --- Sessions ------------------------------------------------------------------------------------------------

WRONG = ("PanicException", "InternalError", "SystemError")


class Failure(Exception):
    """The package is wrong, and not its caller."""


def judge(error: BaseException | None, what: str) -> None:
    while error is not None:
        if type(error).__name__ in WRONG:
            raise Failure(f"{what}: {type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__


def show(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except BaseException:
        return f"<{type(value).__name__}>"


def methods(value: Any) -> list[str]:
    names = [name for name in dir(type(value)) if not name.startswith("_") or name in DUNDERS]
    return [*names, *(name for name in vars(value) if not name.startswith("_"))] if hasattr(value, "__dict__") else names


class Told(list[str]):
    """Calls, each told before it is made: the last one is the one that does not come back."""

    def append(self, call: str) -> None:
        super().append(call)
        print(call, file=sys.stderr, flush=True)


def session(seed: int, targets: dict[str, Any], tell: bool) -> int:
    """Makes the calls of one seed; says how many."""
    arguments = Arguments(seed)
    name = arguments.random.choice(sorted(targets))
    target = targets[name]
    made = None
    make = maker(name, target) if inspect.isclass(target) and arguments.random.random() < 0.85 else None
    log: list[str] = Told() if tell else []
    try:
        if make is not None:
            log.append(f"make {name}")
            made = attempt(lambda: make(arguments), log)
        for _ in range(CALLS):
            if made is None:
                positional, named = arguments.call(target)
                log.append(f"{name}({', '.join(map(show, positional))}, **{show(named)})")
                result = attempt(lambda: target(*positional, **named), log)
            else:
                arguments.own = [made, getattr(made, "close", None), getattr(made, "read", None)]
                method = arguments.random.choice(methods(made))
                result = attempt(lambda: method_call(made, method, arguments, log), log)
            if isinstance(result, Iterator):
                attempt(lambda: list(itertools.islice(result, 3)), log)
            if made is None and inspect.isclass(target) and isinstance(result, target):
                made = result
        return CALLS
    except Failure as failure:
        raise Failure(f"seed {seed}: {failure}\n  " + "\n  ".join(log)) from None


def method_call(made: Any, method: str, arguments: Arguments, log: list[str]) -> Any:
    log.append(f".{method}")
    found = getattr(made, method)
    if not callable(found):
        return None
    positional, named = arguments.call(found)
    log.append(f".{method}({', '.join(map(show, positional))}, **{show(named)})")
    return found(*positional, **named)


def attempt(work: Callable[[], Any], log: list[str]) -> Any:
    try:
        return work()
    except BaseException as error:
        judge(error, log[-1])
        return None


def main(first: int, count: int, folder: str) -> None:
    """Makes sessions, and says in the file `reached` which one is being made."""
    os.chdir(folder)
    os.umask(0o077)
    targets = public()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    unraisable: list[BaseException] = []
    sys.unraisablehook = lambda told: unraisable.append(told.exc_value or told.exc_type())
    calls = 0
    with open("reached", "wb", buffering=0) as reached:
        for seed in range(first, first + count):
            os.pwrite(reached.fileno(), b"%12d" % seed, 0)
            faulthandler.dump_traceback_later(LIMIT, exit=True)
            calls += session(seed, targets, tell=count == 1)
            if seed % 20 == 0:
                gc.collect()
            for error in unraisable:
                judge(error, f"seed {seed}, while an object was dropped")
            unraisable.clear()
    faulthandler.cancel_dump_traceback_later()
    print(f"{calls} calls", flush=True)
    # What the sessions left to the interpreter's end is not what is looked at here.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
