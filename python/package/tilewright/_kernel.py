"""Functions that are statements of a kernel, or work on tensors of the host, by what they take."""

from __future__ import annotations

from typing import Any

from . import _native
from ._native import Fragment, Number, Tile, TiledCopy, TiledMma, View


def _tensors(name: str, arguments: tuple[Any, ...]) -> None:
    """Errors: an argument is an array."""
    for argument in arguments:
        if not isinstance(argument, _native.Tensor) and hasattr(argument, "__array_interface__"):
            raise TypeError(f"{name} takes tensors, not {type(argument).__name__}: write Tensor(array), which is of the same memory")


def copy(*arguments: Any, **named: Any) -> None:
    """``copy(src, dst)`` copies the elements of a tensor to those of another.

    ``copy(tiled_copy, src, dst, predicated=False)`` is a statement of a kernel: each thread copies
    what the tiled copy gives it. ``predicated``: past the edges of a tensor, reads give 0 and
    writes do nothing.
    """
    if arguments and isinstance(arguments[0], TiledCopy):
        _native.copy_tile(*arguments, **named)
    else:
        _tensors("copy", arguments)
        _native.copy(*arguments, **named)


def gemm(*arguments: Any, **named: Any) -> Any:
    """``gemm(a, b, c=None)`` multiplies matrices of the host, B having N before K.

    ``gemm(tiled_mma, d, a, b, c)`` is a statement of a kernel, ``D = A B + C`` of parts of one
    tiled product, each loaded if it is in memory.
    """
    if not arguments or not isinstance(arguments[0], TiledMma):
        _tensors("gemm", arguments)
        return _native.gemm(*arguments, **named)
    tiled_mma, d, a, b, c = arguments
    a, b = (part.load() if isinstance(part, View) else part for part in (a, b))
    _native.mma(tiled_mma, d, a, b, c)
    return None


def _no_value(self: Any) -> Any:
    raise TypeError(
        "what a kernel computes has no value while the kernel is written, so functions of Python's `math` do not take it: "
        "write x.sqrt(), x.exp() or x.map(lambda x: ..)"
    )


def _not_compared(self: Any, other: Any) -> Any:
    raise TypeError(
        "fragments and tiles are not compared as wholes: write tw.maximum(x, 0.0), x.map(lambda x: tw.where(x > 0.0, x, 0.0)), "
        "or compare the numbers, x.numbers()[0] > 0.0"
    )


def _not_iterated(self: Any) -> Any:
    raise TypeError("a fragment is not iterated over: x.numbers() is the list of its numbers, and x.map(f) a fragment of others")


for _class in (Fragment, Number, Tile):
    for _name in ("float", "int"):
        setattr(_class, f"__{_name}__", _no_value)
for _class in (Fragment, Tile):
    for _name in ("lt", "le", "gt", "ge"):
        setattr(_class, f"__{_name}__", _not_compared)
setattr(Fragment, "__iter__", _not_iterated)
