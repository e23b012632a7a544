"""Runs unchanged scripts that were written for ``ffrecord``, ``mxnet.recordio`` or
``mxnet.io.ImageRecordIter`` (whose arrays are NumPy's here).

Either the script installs the redirection itself:

>>> import anyrec.compat
>>> anyrec.compat.install()
>>> import mxnet as mx, ffrecord
>>> mx.recordio.IRHeader(0, 1.0, 7, 0)
HEADER(flag=0, label=1.0, id=7, id2=0)

or this module runs it: ``python -m anyrec.compat SCRIPT ARGS...``. If a real package was imported before,
it is left alone.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import random
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
    "mxnet.base": None,
    "mxnet.io": None,
    "mxnet.recordio": "anyrec.mxnet",
    "mxnet.test_utils": None,
}
"""The module that each name is redirected to; ``None`` if the module is built here."""

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
        if name not in _MODULES or name.partition(".")[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == "mxnet")

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        if name == "mxnet":
            _fill_mxnet(module)
        elif name == "mxnet.base":
            from .mxnet import MXNetError

            module.__dict__["MXNetError"] = MXNetError
        elif name == "mxnet.io":
            _fill_io(module)
        elif name == "mxnet.test_utils":
            module.__dict__["with_seed"] = _with_seed
        else:
            # The import system uses this entry, so both names refer to one module.
            sys.modules[name] = importlib.import_module(str(_MODULES[name]))


def _fill_mxnet(module: types.ModuleType) -> None:
    from . import mxnet as recordio

    def missing(name: str) -> Any:
        if name == "io":
            return importlib.import_module("mxnet.io")
        raise AttributeError(f"anyrec.compat provides only mxnet.recordio and mxnet.io, not mxnet.{name}")

    sys.modules["mxnet.recordio"] = recordio
    module.__doc__ = "The part of MXNet that anyrec replaces."
    contents: dict[str, Any] = {
        "__version__": _MXNET_VERSION,
        "MXNetError": recordio.MXNetError,
        "recordio": recordio,
        "__getattr__": missing,
    }
    module.__dict__.update(contents)


def _fill_io(module: types.ModuleType) -> None:
    from . import mxnet

    def missing(name: str) -> NoReturn:
        raise AttributeError(f"anyrec.compat provides only mxnet.io.ImageRecordIter, not mxnet.io.{name}")

    module.__doc__ = "The part of mxnet.io that anyrec replaces."
    for name in ("DataBatch", "DataDesc", "ImageRecordIter"):
        module.__dict__[name] = getattr(mxnet, name)
    module.__dict__["__getattr__"] = missing


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
    """Redirects ``import ffrecord`` and ``import mxnet`` (its ``recordio`` and ``io``) to anyrec.

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


def main(arguments: Sequence[str] | None = None) -> None:
    """``python -m anyrec.compat SCRIPT ARGS...``."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m anyrec.compat SCRIPT ARGS...", file=sys.stderr)
        raise SystemExit(0 if arguments else 2)
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
