"""Runs unchanged scripts that were written for ``ffrecord`` or for MXNet's records and images.

Of MXNet there are ``recordio``, ``io.ImageRecordIter``, and what scripts use with them: ``image.imdecode``,
``imresize`` and ``resize_short``, the arrays of ``nd``, the tool ``mxnet.tools.im2rec``, and the parts of
``base`` that concern records. Anything else is an error that names it.

Either the script installs the redirection itself:

>>> import anyrec.compat
>>> anyrec.compat.install()
>>> import mxnet as mx, ffrecord
>>> mx.recordio.IRHeader(0, 1.0, 7, 0)
HEADER(flag=0, label=1.0, id=7, id2=0)

or this module runs it: ``python -m anyrec.compat SCRIPT ARGS...``, or ``python -m anyrec.compat -m MODULE
ARGS...``. If a real package was imported before, it is left alone.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import random
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, cast

__all__ = ["install", "main"]

_MODULES = {
    "ffrecord": "anyrec.ffrecord",
    "ffrecord.fileio": "anyrec.ffrecord.fileio",
    "ffrecord.package": "anyrec.ffrecord.package",
    "ffrecord.torch": "anyrec.ffrecord.torch",
    "ffrecord.torch.dataloader": "anyrec.ffrecord.torch.dataloader",
    "ffrecord.torch.dataset": "anyrec.ffrecord.torch.dataset",
    "ffrecord.utils": "anyrec.ffrecord.utils",
    "mxnet": None,
    "mxnet.base": "anyrec._mxnet.base",
    "mxnet.image": "anyrec._mxnet.image",
    "mxnet.io": "anyrec.mxnet",
    "mxnet.nd": "anyrec._mxnet.ndarray",
    "mxnet.ndarray": "anyrec._mxnet.ndarray",
    "mxnet.recordio": "anyrec.mxnet",
    "mxnet.test_utils": None,
    "mxnet.tools": None,
    "mxnet.tools.im2rec": "anyrec._mxnet.im2rec",
}
"""The module that has the contents of each name; ``None`` if they are made here."""

_PACKAGES = ("mxnet", "mxnet.tools")
"""The redirected modules that contain others."""

_ONLY = {
    "mxnet.base": ("MXNetError", "_LIB", "c_str", "check_call", "numeric_types", "py_str", "string_types"),
    "mxnet.image": ("imdecode", "imresize", "resize_short"),
    "mxnet.io": ("DataBatch", "DataDesc", "ImageRecordIter"),
    "mxnet.ndarray": ("NDArray", "array", "empty", "flip", "ones", "transpose", "zeros"),
    "mxnet.tools.im2rec": ("main",),
}
"""The names of modules that have only a part of the original's. The other modules are whole."""

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MXNET_VERSION = "1.9.1"
# Tells a spawned worker, which inherits only the environment, which script it belongs to.
_SCRIPT = "ANYREC_COMPAT_SCRIPT"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Redirects imports of the original modules."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package = name.partition(".")[0]
        if package not in self.packages:
            return None
        if name not in _MODULES:
            # Without its `name`, so that `from mxnet import x` shows this message too.
            raise ModuleNotFoundError(_missing(name))
        return importlib.machinery.ModuleSpec(name, self, is_package=name in _PACKAGES)

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        if name == "mxnet":
            _fill_mxnet(module)
        elif name == "mxnet.nd":
            sys.modules[name] = importlib.import_module("mxnet.ndarray")
        elif name == "mxnet.test_utils":
            module.__dict__["with_seed"] = _with_seed
        elif name in _ONLY:
            _fill(module, name)
        elif name not in _PACKAGES:
            # The import system uses this entry, so both names refer to one module.
            sys.modules[name] = importlib.import_module(str(_MODULES[name]))

    def get_code(self, name: str) -> types.CodeType:
        """The code of a module that is run as the main one, for ``python -m``."""
        return compile(f"import sys; from {name} import main; sys.exit(main())", f"<{name}>", "exec")


def _missing(name: str) -> str:
    """Returns the message for a part of an original that is not here."""
    module = name.rpartition(".")[0]
    if module in _ONLY:
        has = [f"{module}.{part}" for part in _ONLY[module]]
    else:
        package = name.partition(".")[0]
        has = [known for known in _MODULES if known.startswith(package + ".")]
    return f"anyrec.compat has no {name}: it has {', '.join(has)}"


def _fill(module: types.ModuleType, name: str) -> None:
    """Fills a module that has a part of the original's names."""
    contents = importlib.import_module(str(_MODULES[name]))

    def missing(part: str) -> NoReturn:
        raise AttributeError(_missing(f"{name}.{part}"))

    module.__doc__ = f"The part of {name} that anyrec replaces."
    for part in _ONLY[name]:
        module.__dict__[part] = getattr(contents, part)
    module.__dict__["__getattr__"] = missing


def _fill_mxnet(module: types.ModuleType) -> None:
    from . import mxnet as recordio

    def missing(name: str) -> Any:
        if name == "img":
            name = "image"
        if f"mxnet.{name}" in _MODULES:
            return importlib.import_module(f"mxnet.{name}")
        raise AttributeError(_missing(f"mxnet.{name}"))

    sys.modules["mxnet.recordio"] = recordio
    module.__doc__ = "The part of MXNet that anyrec replaces."
    contents: dict[str, Any] = {
        "__version__": _MXNET_VERSION,
        "MXNetError": recordio.MXNetError,
        "recordio": recordio,
        "__getattr__": missing,
    }
    module.__dict__.update(contents)


def _with_seed(seed: int | None = None) -> Callable[[_Function], _Function]:
    """A decorator for MXNet's own tests that first seeds Python's and NumPy's random numbers."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def seeded(*arguments: Any, **options: Any) -> Any:
            import numpy

            chosen = random.SystemRandom().randrange(1 << 31) if seed is None else seed
            random.seed(chosen)
            numpy.random.seed(chosen)
            return function(*arguments, **options)

        return cast(_Function, seeded)

    return decorate


def install() -> None:
    """Redirects ``import ffrecord`` and ``import mxnet`` to anyrec.

    An original that was imported before is left alone. Calling this again changes nothing.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    packages = {name.partition(".")[0] for name in _MODULES}
    free = frozenset(name for name in packages if name not in sys.modules)
    sys.meta_path.insert(0, _Finder(free))


def _run(script: str, name: str) -> dict[str, Any]:
    """Runs a script as the main module."""
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    module = types.ModuleType(name)
    module.__file__ = script
    module.__dict__["__builtins__"] = __builtins__
    # A spawned worker imports the module of this name again, and so reaches the code at the end of this
    # file.
    module.__spec__ = importlib.machinery.ModuleSpec("anyrec.compat", None)
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module.__dict__


_USAGE = """\
usage: python -m anyrec.compat SCRIPT ARGS...
       python -m anyrec.compat -m MODULE ARGS..."""


def main(arguments: Sequence[str] | None = None) -> None:
    """``python -m anyrec.compat SCRIPT ARGS...``, or ``-m MODULE`` instead of a script."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(_USAGE, file=sys.stderr)
        raise SystemExit(0 if arguments and arguments != ["-m"] else 2)
    if arguments[0] == "-m":
        install()
        # As Python does it: the module is found in the current folder too.
        sys.path[0:1] = [os.getcwd()]
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    script = os.path.abspath(arguments[0])
    if not os.path.isfile(script):
        print(f"anyrec.compat: {arguments[0]}: no such script", file=sys.stderr)
        raise SystemExit(2)
    sys.argv = arguments
    sys.path[0:1] = [os.path.dirname(script)]
    os.environ[_SCRIPT] = script
    install()
    _run(script, "__main__")


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and _SCRIPT in os.environ:
    # A worker that was spawned by a script run here needs what the script defines.
    install()
    globals().update(_run(os.environ[_SCRIPT], "__mp_main__"))
