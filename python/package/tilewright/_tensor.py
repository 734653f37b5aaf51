"""What Python adds to tensors: functions of blocks of elements, and the spellings of CuTe DSL."""

from __future__ import annotations

from typing import Any, Callable

from ._more import _functions
from ._native import Layout, Tensor, copy, zeros

#: The elements of a block that a function is called with: as many as a nearby cache holds.
BLOCK = 1 << 16


def transform(f: Callable[..., Any], *operands: Any, out: Tensor | None = None, dtype: Any = None) -> Tensor:
    """The tensor whose elements are ``f`` of those of the operands at the same coordinates.

    ``f`` is called with arrays of NumPy, a block of elements at a time, so its operations are those
    of arrays. Operands are tensors or arrays of the same sizes of modes. The result is a new tensor
    of the shape of the first, of ``dtype`` or the type of the first, unless there is ``out``.

    >>> import numpy as np
    >>> transform(lambda a, b: 2 * a + b, np.arange(3.0), np.ones(3)).numpy()
    array([1., 3., 5.])
    """
    tensors = [operand if isinstance(operand, Tensor) else Tensor(operand) for operand in operands]
    if not tensors:
        raise TypeError("a function of the elements of no tensor")
    if out is None:
        first = tensors[0]
        out = zeros(tuple(_sizes(first)), dtype or first.dtype)
    sizes = _sizes(out)
    for tensor in tensors:
        if _sizes(tensor) != sizes:
            raise ValueError(f"modes of sizes {_sizes(tensor)} and {sizes}, where those of one shape are wanted")
    arrays = [_array(tensor) for tensor in tensors]
    try:
        result, target = out.numpy(), None
    except BufferError:
        target = zeros(tuple(sizes), out.dtype)
        result = target.numpy()
    rows = sizes[0] if sizes else 1
    step = max(1, BLOCK * rows // max(1, result.size))
    for begin in range(0, rows, step):
        block = slice(begin, begin + step) if sizes else ()
        result[block] = f(*(array[block] for array in arrays))
    if target is not None:
        copy(target, out)
    return out


def _sizes(tensor: Tensor) -> list[int]:
    """The number of indices of each mode."""
    sizes: list[int] = [tensor.size(mode) for mode in range(len(tensor))]
    return sizes


def _array(tensor: Tensor) -> Any:
    """The tensor as an array of one axis a mode; of a copy where it has several strides in one."""
    try:
        return tensor.numpy()
    except BufferError:
        return tensor.relayout(Layout(tuple(_sizes(tensor)))).numpy()


def tensor_composition(tensor: Any, tv: Any, tiler: Any = None) -> Any:
    """``composition(tensor, tv)``, where ``tv`` gives indices of a tile of the shape ``tiler``.

    >>> block = Layout((4, 8), (64, 1))
    >>> tensor_composition(block, Layout((2, 4, 4), (16, 4, 1)), (4, 8)).shape
    (2, 4, 4)
    """
    if tiler is not None:
        wanted, found = _functions["size"](tiler), _functions["size"](tensor)
        if wanted != found:
            raise ValueError(f"a tile of {found} elements, where the thread-value layout is of one of {wanted}")
    return _functions["composition"](tensor, tv)
