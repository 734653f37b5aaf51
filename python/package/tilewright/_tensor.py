"""What Python adds to tensors: functions of blocks of elements, and the spellings of CuTe DSL."""

from __future__ import annotations

from typing import Any, Callable

from ._errors import LayoutError
from ._more import _functions
from ._names import of_tensors
from ._native import Layout, Tensor, check_arrays, copy, mark_written, zeros

#: The elements of a block that a function is called with: as many as a nearby cache holds.
BLOCK = 1 << 16


def transform(f: Callable[..., Any], *operands: Any, out: Tensor | None = None, dtype: Any = None) -> Tensor:
    """The tensor whose elements are ``f`` of those of the operands at the same coordinates.

    ``f`` is called with arrays of NumPy, a block of elements at a time, so its operations are those
    of arrays; it gives an array of the shape of the block, or one number. Operands are tensors or arrays of the same sizes of modes. The result is a new tensor
    of the shape of the first, of ``dtype`` or the type of the first, unless there is ``out``.

    >>> import numpy as np
    >>> transform(lambda a, b: 2 * a + b, np.arange(3.0), np.ones(3)).numpy()
    array([1., 3., 5.])
    """
    tensors = [_tensor(operand) for operand in operands]
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
    # What is written through NumPy is marked as written, too.
    check_arrays([out], [True])
    mark_written([out])
    rows = sizes[0] if sizes else 1
    step = max(1, BLOCK * rows // max(1, result.size))
    for begin in range(0, rows, step):
        block = slice(begin, begin + step) if sizes else ()
        value, there = f(*(array[block] for array in arrays)), result[block]
        shape = getattr(value, "shape", ())
        if shape not in ((), there.shape):
            raise ValueError(f"the function of elements gave an array of {shape} for a block of {there.shape}")
        result[block] = value
    if target is not None:
        copy(target, out)
    return out


_Progress = Callable[[int, int], Any]


def relayout(
    tensor: Any, layout: Any = None, dtype: Any = None, *, threads: int | None = None, progress: _Progress | None = None
) -> Tensor:
    """A copy of a tensor or an array, with any layout of the same size and any type.

    >>> import numpy as np
    >>> relayout(np.arange(6.0).reshape(2, 3), "(2,3):(1,2)", "float32")
    Tensor(float32 of (2,3):(1,2))
    """
    return _tensor(tensor).relayout(layout, dtype, threads=threads, progress=progress)


def reduce(
    tensor: Any, statistic: str = "sum", mode: Any = None, *, threads: int | None = None, progress: _Progress | None = None
) -> Any:
    """The "sum", "max" or "min" of a tensor or an array over a mode, over several, or over all.

    >>> import numpy as np
    >>> reduce(np.arange(6.0).reshape(2, 3), "max")
    5.0
    >>> reduce(np.arange(6.0).reshape(2, 3), mode=1).numpy()
    array([ 3., 12.])
    """
    if statistic not in ("sum", "max", "min"):
        raise ValueError(f"a statistic is 'sum', 'max' or 'min', not {statistic!r}; tensor.numpy() has others")
    return getattr(_tensor(tensor), statistic)(mode, threads=threads, progress=progress)


def _tensor(operand: Any) -> Tensor:
    return operand if isinstance(operand, Tensor) else Tensor(operand)


def _copied(self: Tensor) -> Tensor:
    """For ``copy.copy``: the same memory under the same layout."""
    return self.under()


def _deep(self: Tensor, memo: Any) -> Tensor:
    """For ``copy.deepcopy``: a copy of the elements, with the same layout if that is injective."""
    if 0 in _sizes(self):
        return self.relayout()
    try:
        return self.relayout(self.layout)
    except LayoutError:
        return self.relayout()


def _reduced(self: Tensor, protocol: Any) -> Any:
    raise TypeError("a tensor is memory under a layout, and is not pickled: save tensor.numpy(), and tensor.layout")


def _missing(self: Tensor, name: str) -> Any:
    meant = of_tensors.get(name)
    told = f"a tensor has no attribute '{name}'"
    raise AttributeError(f"{told}; write {meant}" if meant else told, name=name, obj=self)


for _name, _method in {"copy__": _copied, "deepcopy__": _deep, "reduce_ex__": _reduced, "getattr__": _missing}.items():
    setattr(Tensor, f"__{_name}", _method)


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
