"""What Python adds to the functions of the language: numbers with facts, and other spellings."""

from __future__ import annotations

from typing import Any

from . import _native
from ._names import elsewhere, others
from ._native import Expr, Layout, Step, evaluate

_functions = {function.__name__: function for function in _native.functions()}


def Param(name: str, *, div: int | None = None, min: int | None = None, max: int | None = None) -> Expr:
    """A number that becomes known at launch, and what is known of it: a multiple of ``div``, from
    ``min`` to ``max``.

    >>> Param("M", div=8)
    Expr('M{div=8}')
    """
    facts = [("div", div), ("min", min), ("max", max)]
    written = ",".join(f"{fact}={number}" for fact, number in facts if number is not None)
    return Expr(f"{name}{{{written}}}")


def E(*path: int) -> Step:
    """One step in the mode of a coordinate at a path: ``E(0)``, ``E(1, 0)``.

    >>> Layout((4, 8), (E(0), E(1)))
    Layout('(4,8):(1@0,1@1)')
    """
    if any(isinstance(mode, bool) or not hasattr(mode, "__index__") for mode in path):
        raise TypeError(f"a path is of numbers of modes, E(0) or E(1, 0), not {', '.join(map(repr, path))}")
    # CuTe prints a path from the inside out.
    return Step("1" + "".join(f"@{mode.__index__()}" for mode in reversed(path)))


def make_layout(*modes: Any, stride: Any = None) -> Layout:
    """The layout with this shape and these strides, or whose modes are the given layouts.

    >>> make_layout((4, 8), stride=(8, 1))
    Layout('(4,8):(8,1)')
    """
    if stride is not None:
        if len(modes) != 1:
            raise TypeError("strides go with one shape")
        return Layout(modes[0], stride)
    if len(modes) == 1 and isinstance(modes[0], (list, tuple)) and any(isinstance(mode, Layout) for mode in modes[0]):
        modes = tuple(modes[0])
    made: Layout = _functions["make_layout"](*modes)
    return made


def make_composed_layout(inner: Any, offset: Any, outer: Any) -> Layout:
    """``c -> inner(offset + outer(c))``, in CuTe DSL's order of arguments.

    >>> from tilewright import Swizzle
    >>> make_composed_layout(Swizzle(3, 0, 3), 0, Layout((8, 8), (8, 1)))
    Layout('S<3,0,3> o 0 o (8,8):(8,1)')
    """
    made: Layout = evaluate("inner o offset o outer", inner=inner, offset=offset, outer=outer)
    return made


#: What other libraries call functions of the language.
aliases = {theirs: _functions[ours] for theirs, ours in others.items()}


def unknown(name: str) -> str:
    """What to say about a name that the module does not have."""
    import difflib

    import tilewright

    message = f"module 'tilewright' has no attribute '{name}'"
    meant = elsewhere.get(name) or _native.spelling(name)
    if meant is not None:
        return f"{message}; write {meant}"
    similar = difflib.get_close_matches(name, [own for own in dir(tilewright) if not own.startswith("_")], 1)
    return f"{message}; is '{similar[0]}' meant?" if similar else message
