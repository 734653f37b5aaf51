"""Functions that are statements of a kernel, or work on tensors of the host, by what they take."""

from __future__ import annotations

from typing import Any

from . import _native
from ._native import CopyAtom, TiledCopy, TiledMma


def _tensors(name: str, arguments: tuple[Any, ...]) -> None:
    """Errors: an argument is an array."""
    for argument in arguments:
        if not isinstance(argument, _native.Tensor) and hasattr(argument, "__array_interface__"):
            raise TypeError(f"{name} takes tensors, not {type(argument).__name__}: write Tensor(array), which is of the same memory")


def copy(*arguments: Any, **named: Any) -> None:
    """``copy(src, dst)`` copies the elements of a tensor to those of another.

    ``copy(tiled_copy, src, dst, predicated=False, pred=None)`` is a statement of a kernel. Of two
    tiles each thread copies what the tiled copy gives it; of two parts, which ``partition_S`` and
    ``partition_D`` gave a thread, it copies just those. ``copy(copy_atom, src, dst)`` copies parts.
    ``predicated``: past the edges of a tensor, reads give 0 and writes do nothing. ``pred``: the
    elements whose condition is true, or one condition for all that the thread copies; ``cp.async``
    writes zeros for the others, and any other instruction leaves them as they are.
    """
    if arguments and isinstance(arguments[0], (TiledCopy, CopyAtom)):
        _native.copy_tile(*arguments, **named)
    else:
        _tensors("copy", arguments)
        _native.copy(*arguments, **named)


def gemm(*arguments: Any, **named: Any) -> Any:
    """``gemm(a, b, c=None)`` multiplies matrices of the host, B having N before K.

    ``gemm(tiled_mma, d, a, b, c)`` is a statement of a kernel, ``D = A B + C`` of parts of one
    tiled product. A and B may be in memory, as tiles or as ``partition_A`` and ``partition_B``.
    """
    if not arguments or not isinstance(arguments[0], TiledMma):
        _tensors("gemm", arguments)
        return _native.gemm(*arguments, **named)
    _native.mma(*arguments, **named)
    return None
