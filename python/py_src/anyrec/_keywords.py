"""Keyword arguments: unknown ones are reported with the name that was probably meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["keywords"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def keywords(*options: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Makes an unknown keyword of a function a ``TypeError`` that suggests a known one.

    :param options: the ``TypedDict`` of its ``**options``, if it has them.

    >>> from anyrec._keywords import keywords
    >>> @keywords()
    ... def create(path, *, overwrite=False): ...
    >>> create("a.rec", overwite=True)
    Traceback (most recent call last):
    TypeError: create() got an unexpected keyword argument 'overwite'. Did you mean 'overwrite'?
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        names = {name for option in options for name in option.__annotations__}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.add(parameter.name)
        called = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def checked(*arguments: _P.args, **given: _P.kwargs) -> _R:
            for name in given:
                if name not in names:
                    message = f"{called}() got an unexpected keyword argument {name!r}"
                    near = difflib.get_close_matches(name, names, 1)
                    raise TypeError(f"{message}. Did you mean {near[0]!r}?" if near else message)
            return function(*arguments, **given)

        return checked

    return decorate
