"""Kernels of the library, as functions of arrays.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> x = torch.randn(4096, 8192, device="cuda")              # doctest: +SKIP
>>> y = tw.gpu.softmax(x)                                   # doctest: +SKIP

Each function looks at shapes, strides and types, plans kernels for the device, and keeps them. CUDA
tensors are worked on where they are, on PyTorch's current stream, and a call returns at once.
Arrays of the host are refused, unless ``on="interpreter"`` says that the interpreter, which checks
every access and is slow, is meant; it runs the kernels for an H200.

With ``out`` the result is written there, and ``out`` is returned. Shapes, types and arrays that do
not fit are a ``ValueError`` or a ``TypeError``; what no kernel computes is a ``LayoutError`` with a
code; a device that refuses is a ``GpuError``.

``plan(function, ...)`` has what a call would launch, without launching it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._arrays import empty, result_type
from ._jit import interpret
from ._native import Layout

__all__ = ["device_count", "device_name", "gemm", "layer_norm", "plan", "reduce", "relayout", "rms_norm", "softmax"]

# The type of elements, extents, strides, the CUDA device, and how many elements come after a
# multiple of 16 bytes.
Axes = tuple[str, tuple[int, ...], tuple[int, ...], "int | None", int]


class _Kept:
    """A plan whose kernels are ready to be launched."""

    def __init__(self, plan: _native.Plan) -> None:
        self.plan = plan
        self.launches = [(program, _native.Launcher(program), numbers) for program, numbers in plan.launches]
        # A plan may know sizes, and take none at launch.
        self.sizes = [[size.partition("{")[0] for size in program.sizes] for program, _ in plan.launches]
        # The tensors of a launch of all of them, in their order, which needs nothing else.
        alone = [numbers for _, numbers in plan.launches if not plan.workspaces and len(plan.launches) == 1]
        self.alone = next((numbers for numbers in alone if numbers == list(range(len(numbers)))), None)


_kept: dict[tuple[Any, ...], _Kept] = {}
_lock = threading.Lock()
# A plan is small; what a program would have to hold on to for ever is not.
_MOST = 1024
_local = threading.local()


def _planned(make: Callable[..., _native.Plan], *key: Any) -> _Kept:
    known = _kept.get((make, *key))
    if known is None:
        known = _Kept(make(*key))
        with _lock:
            if len(_kept) >= _MOST:
                _kept.clear()
            known = _kept.setdefault((make, *key), known)
    return known


_targets: dict[int, str] = {}


def _target(device: int | None) -> str:
    """The target of a device; of none, as of an H200."""
    if device is None:
        return "sm_90a"
    known = _targets.get(device)
    if known is None:
        known = _targets[device] = _native.device_target(device)
    return known


# What calls launched, by the function and what it was told besides its arrays.
_calls: dict[tuple[Any, ...], _native.Calls] = {}


def _again(arrays: tuple[Any, ...], *call: Any) -> bool:
    """Launches what such a call launched before, on arrays that lay as these; says whether there
    was one.
    """
    known = _calls.get(call)
    return known is not None and getattr(_local, "asked", None) is None and known.launch(arrays)


def _run(kept: _Kept, tensors: list[Any], sizes: dict[str, int], on: str | None, *call: Any) -> None:
    """Launches what was planned, on the tensors that its function takes, the result last; with a
    tensor may be how many elements before its first one the kernels know it from. What is one
    launch of the tensors in their order is kept for ``_again``, as such a call.
    """
    asked = getattr(_local, "asked", None)
    if asked is not None:
        asked.append(kept.plan)
        return
    if on not in (None, "interpreter"):
        raise ValueError(f"a kernel runs on the device of its arrays, or on=\"interpreter\", not on {on!r}")
    workspaces = kept.plan.workspaces
    if workspaces:
        # PyTorch keeps the memory until what stands on the stream behind it is done.
        like = tensors[0][0] if isinstance(tensors[0], tuple) else tensors[0]
        tensors = tensors + [empty(like, (count,), element) for element, count in workspaces]
    for (program, launcher, numbers), names in zip(kept.launches, kept.sizes):
        own = [tensors[number] for number in numbers]
        given = {name: sizes[name] for name in names if name in sizes}
        if on == "interpreter":
            interpret(program, own, {}, given)
        elif not launcher.launch(own, None, given):
            raise TypeError(
                f"{program.name} runs on CUDA tensors, and these are arrays of the host: move them with `.cuda()`, "
                'or say on="interpreter" to run it there, checked and slowly'
            )
        elif call and numbers == kept.alone and not any(isinstance(tensor, tuple) for tensor in tensors):
            with _lock:
                if len(_calls) >= _MOST:
                    _calls.clear()
                calls = _calls.setdefault(call, _native.Calls())
            calls.keep(tuple(tensors), launcher, given)


def plan(function: Callable[..., Any], *arguments: Any, **named: Any) -> _native.Plan:
    """What a call of a function of this module launches: ``plan(softmax, x)``. Its text says what
    was chosen and why; ``launches`` has the kernels, of which each has ``ptx()``, ``cost(..)`` and
    ``check(..)``, and the numbers of its tensors; ``workspaces`` has what it takes of memory
    besides.

    >>> import numpy as np
    >>> len(plan(softmax, np.zeros((2, 64), np.float32)).launches)
    1
    """
    if not callable(function):
        raise TypeError(f"what is planned is a function of tilewright.gpu, as in plan(softmax, x), not {function!r}")
    asked: list[_native.Plan] = []
    _local.asked = asked
    try:
        function(*arguments, **named)
    finally:
        _local.asked = None
    if len(asked) != 1:
        raise TypeError(f"{getattr(function, '__name__', function)!s} is no function of tilewright.gpu that plans kernels")
    return asked[0]


def _contiguous(axes: Axes, name: str) -> None:
    _, shape, strides, _, _ = axes
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if stride != step and extent > 1:
            text = f"({','.join(map(str, shape))}):({','.join(map(str, strides))})"
            raise ValueError(f"the elements of {name} must lie one after another, and it lies as {text}: pass `.contiguous()`")
        step *= extent


def relayout(source: Any, destination: Any, *, on: str | None = None) -> Any:
    """Copies every element to the place of the same index, whatever the strides and types of both
    are: a transposition, a permutation of axes, a conversion. Both have one shape. Returns the
    destination.

    >>> import numpy as np
    >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> by_columns = np.empty((3, 2), np.float16).T
    >>> relayout(x, by_columns, on="interpreter").tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    if on is None and _again((source, destination), "relayout"):
        return destination
    of, shape, strides, device, before = _native.array_axes(source)
    to, other, into, _, skipped = _native.array_axes(destination)
    if shape != other:
        raise ValueError(f"the shapes differ: {shape} and {other}")
    kept = _planned(_relayout, of, shape, strides, before, to, into, skipped, _target(device))
    tensors = [source, destination]
    if on is None and (before or skipped):
        tensors = [(source, before), (destination, skipped)]
    _run(kept, tensors, {}, on, "relayout")
    return destination


def _relayout(
    of: str, shape: tuple[int, ...], strides: tuple[int, ...], before: int, to: str, into: tuple[int, ...], skipped: int, target: str
) -> _native.Plan:
    return _native.plan_relayout((of, Layout(shape, strides), before), (to, Layout(shape, into), skipped), target)


def _about(rows: int) -> int:
    """How many rows a plan is for: so few powers of two that matrices share plans."""
    return 1 << max(rows - 1, 0).bit_length()


def softmax(x: Any, *, out: Any = None, on: str | None = None) -> Any:
    """The softmax of each row of a matrix (M,N): ``exp(x)`` over its sum. The elements of a row lie
    one after another, and are of at most 32 bits: powers are computed in f32.

    >>> import numpy as np
    >>> softmax(np.zeros((2, 4), np.float32), on="interpreter").tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    if out is not None and on is None and _again((x, out), "softmax"):
        return out
    element, rows, columns, device, alignment = _native.array_rows(x, (), out)
    kept = _planned(_native.plan_softmax, (columns, element, alignment, _about(rows)), _target(device))
    out = empty(x, (rows, columns)) if out is None else out
    _run(kept, [x, out], {"M": rows}, on, "softmax")
    return out


def rms_norm(x: Any, weight: Any, *, epsilon: float = 1e-5, out: Any = None, on: str | None = None) -> Any:
    """Each row of a matrix (M,N) over the root of its mean square + epsilon, times weights (N).

    >>> import numpy as np
    >>> x, weight = np.full((2, 4), 3, np.float32), np.ones(4, np.float32)
    >>> rms_norm(x, weight, epsilon=0.0, on="interpreter").tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    if out is not None and on is None and _again((x, weight, out), "rms_norm", epsilon):
        return out
    element, rows, columns, device, alignment = _native.array_rows(x, ((weight, "weight"),), out)
    kept = _planned(_native.plan_rms_norm, (columns, element, alignment, _about(rows)), float(epsilon), _target(device))
    out = empty(x, (rows, columns)) if out is None else out
    _run(kept, [x, weight, out], {"M": rows}, on, "rms_norm", epsilon)
    return out


def layer_norm(x: Any, weight: Any, bias: Any, *, epsilon: float = 1e-5, out: Any = None, on: str | None = None) -> Any:
    """Each row of a matrix (M,N) less its mean, over the root of its variance + epsilon, times
    weights (N) plus a bias (N).

    >>> import numpy as np
    >>> x, one = np.array([[1, 3, 1, 3]], np.float32), np.ones(4, np.float32)
    >>> layer_norm(x, one, one, epsilon=0.0, on="interpreter").tolist()
    [[0.0, 2.0, 0.0, 2.0]]
    """
    if out is not None and on is None and _again((x, weight, bias, out), "layer_norm", epsilon):
        return out
    element, rows, columns, device, alignment = _native.array_rows(x, ((weight, "weight"), (bias, "bias")), out)
    kept = _planned(_native.plan_layer_norm, (columns, element, alignment, _about(rows)), float(epsilon), _target(device))
    out = empty(x, (rows, columns)) if out is None else out
    _run(kept, [x, weight, bias, out], {"M": rows}, on, "layer_norm", epsilon)
    return out


def reduce(x: Any, statistic: str = "sum", *, axis: int | Sequence[int] | None = -1, out: Any = None, on: str | None = None) -> Any:
    """A statistic along an axis, along several, or of all elements where ``axis`` is None: "sum",
    "mean", "norm", "max" or "argmax". Of several axes, argmax counts along the first one fastest.
    The result has the other axes, and the type of ``x``, but int32 for "argmax": of integers it is
    rounded toward zero, and ends at the ends of the type. ``x`` lies row by row, without gaps.

    >>> import numpy as np
    >>> x = np.arange(12, dtype=np.float32).reshape(3, 4)
    >>> reduce(x, "sum", on="interpreter").tolist(), reduce(x, "argmax", axis=0, on="interpreter").tolist()
    ([6.0, 22.0, 38.0], [2, 2, 2, 2])
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    if out is not None and on is None and _again((x, out), "reduce", statistic, axis):
        return out
    axes = _native.array_axes(x)
    _contiguous(axes, "x")
    element, shape, _, device, before = axes
    along = _numbered(axis, len(shape))
    left = tuple(extent for number, extent in enumerate(shape) if number not in along)
    result = "i32" if statistic == "argmax" else element
    if out is None:
        out = empty(x, left, result)
    else:
        written = _native.array_axes(out)
        if written[:2] != (result, left):
            raise ValueError(f"out is {written[1]} of {written[0]}, and the result {left} of {result}")
        _contiguous(written, "out")
        before |= written[4]
    # The greatest power of two that all begin at a multiple of, in elements.
    alignment = before & -before or 16
    kept = _planned(_reduction, statistic, shape, element, along, alignment, _target(device))
    _run(kept, [x, out], {}, on, "reduce", statistic, axis)
    return out


def _numbered(axis: Any, axes: int) -> tuple[int, ...]:
    """The axes that a caller names, counted from 0."""
    named = tuple(range(axes)) if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if any(isinstance(number, bool) or not hasattr(number, "__index__") for number in named):
        raise TypeError(f"axis is a number, several numbers or None, not {axis!r}")
    numbers = [number.__index__() for number in named]
    if not all(-axes <= number < axes for number in numbers):
        has = f"the axes 0 to {axes - 1}" if axes else "no axes"
        raise ValueError(f"x has {has}, not {axis}")
    return tuple(number % axes for number in numbers)


def _reduction(
    statistic: str, shape: tuple[int, ...], element: str, along: tuple[int, ...], alignment: int, target: str
) -> _native.Plan:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return _native.plan_reduce(statistic, Layout(shape, tuple(strides)), element, list(along), alignment, target)


def gemm(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    function: str | None = None,
    pairs: str | None = None,
    scales: tuple[Any, Any] | None = None,
    keep: str | Sequence[str] | None = None,
    tf32: bool = False,
    fast: bool = False,
    on: str | None = None,
    **inputs: Any,
) -> Any:
    """``a @ b.T``: A (M,K) times the transposed B (N,K), of any strides, as PyTorch's ``linear``
    has them; or a batch, (L,M,K) and (L,N,K). Sums are in f32, of integers in i32, and rounded
    once.

    ``function`` is what is written in place of the sum, ``x``, with the elements of further
    tensors, which are keywords and broadcast to the result:
    ``gemm(a, b, function="gelu_tanh(x + bias) + residual", bias=bias, residual=residual)``.

    ``pairs``: two rows of B (2 N,K) make a column of the result, which is a function of both sums,
    ``x`` and ``y``: ``gemm(a, gate_and_up, pairs="halves", function="silu(x) * y")``, where the
    first half of the rows is the gate; "neighbours" are rows 2 j and 2 j + 1.

    ``scales``: of factors of e4m3 or e5m2, those of the blocks of a and of b, in f32: (M,K/128) or
    (M/128,K/128), and (N,K/128) or (N/128,K/128), rounded up; the sums of each 128 steps along K
    are multiplied by both.

    ``keep``: numbers of rows or of columns, taken of the result before it is rounded, in f32: "row"
    or "column", "sum" or "max", and perhaps of what,
    ``c, greatest = gemm(a, b, keep="row max abs(d)")``. Several are a list. Returned is a tuple
    then, and ``out``, if it is given, is one.

    ``tf32``: of factors of f32, 10 bits behind the point count, and it is faster. ``fast``: of e4m3
    and e5m2, sums are left to the instructions, which keep 13 bits of the greatest of their terms.

    How it is cut is planned by a model of an H200, and may take several launches and memory
    besides: ``print(plan(gemm, a, b))``.

    >>> import numpy as np
    >>> a, b = np.ones((2, 8), np.float16), np.ones((3, 8), np.float16)
    >>> gemm(a, b, function="x / 2", on="interpreter").tolist()
    [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    """
    call = ("gemm", function, pairs, tf32, fast, *inputs) if scales is None and keep is None else ()
    if call and out is not None and on is None and _again((a, b, *inputs.values(), out), *call):
        return out
    of, shape_a, strides_a, device, before_a = _native.array_axes(a)
    other, shape_b, strides_b, _, before_b = _native.array_axes(b)
    if len(shape_a) != len(shape_b) or len(shape_a) not in (2, 3):
        raise ValueError(f"a and b are matrices (M,K) and (N,K), or batches of them, and have the shapes {shape_a} and {shape_b}")
    if (shape_a[-1], shape_a[:-2], of) != (shape_b[-1], shape_b[:-2], other):
        raise ValueError(f"a is {shape_a} of {of}, and b is {shape_b} of {other}: both have the same K and type")
    rows = shape_b[-2]
    if pairs is not None:
        if rows % 2:
            raise ValueError(f"b has {rows} rows, which make no pairs")
        rows //= 2
    shape = (*shape_a[:-1], rows)
    kept = () if keep is None else (keep,) if isinstance(keep, str) else tuple(keep) if isinstance(keep, (list, tuple)) else (None,)
    if not all(isinstance(what, str) for what in kept):
        raise TypeError(f'keep is a text such as "row max abs(d)", or a list of such texts, not {keep!r}')
    outs = (out,) if keep is None or out is None else tuple(out)
    if out is None:
        outs = (empty(a, shape, result_type(of)), *(empty(a, _kept_shape(what, shape), "f32") for what in kept))
    elif len(outs) != 1 + len(kept):
        raise ValueError(f"out has {len(outs)} tensors, and {1 + len(kept)} are written: the result, and what is kept")
    to, shape_d, strides_d, _, before_d = _native.array_axes(outs[0])
    if shape_d != shape:
        raise ValueError(f"out is {shape_d}, and the product {shape}")
    for what, array in zip(kept, outs[1:]):
        axes = _native.array_axes(array)
        if axes[:2] != ("f32", _kept_shape(what, shape)):
            raise ValueError(f"'{what}' is {_kept_shape(what, shape)} of f32, and its tensor {axes[1]} of {axes[0]}")
        _contiguous(axes, f"'{what}'")
    further = tuple((name, _native.array_axes(tensor)) for name, tensor in inputs.items())
    if further and function is None:
        raise TypeError(f"'{further[0][0]}' is a tensor of a function of the sums: say function=\"x + {further[0][0]}\"")
    of_blocks = () if scales is None else tuple(_native.array_axes(each) for each in scales)
    if len(of_blocks) not in (0, 2):
        raise TypeError(f"scales are those of a and those of b, two tensors, not {len(of_blocks)}")
    matrices = ((of, shape_a, strides_a, before_a), (other, shape_b, strides_b, before_b), (to, shape, strides_d, before_d))
    planned = _planned(_product, *matrices, function, further, pairs, of_blocks, kept, bool(tf32), bool(fast), _target(device))
    tensors = [a, b, *inputs.values(), *(scales or ()), *outs]
    if on is None:
        # Kernels know tensors from a multiple of 16 bytes on.
        skipped = [before_a, before_b, *(axes[4] for _, axes in further), *(axes[4] for axes in of_blocks), before_d]
        if any(skipped):
            skipped += [0] * len(kept)
            tensors = [(tensor, before) if before else tensor for tensor, before in zip(tensors, skipped)]
    _run(planned, tensors, {}, on, *call)
    return outs[0] if keep is None else outs


_Matrix = tuple[str, tuple[int, ...], tuple[int, ...], int]


def _kept_shape(what: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what is kept of a result: a number for each row, or for each column, of each
    matrix.
    """
    axis = -2 if what.split()[:1] == ["row"] else -1
    return (*shape[:-2], shape[axis])


def _product(
    a: _Matrix,
    b: _Matrix,
    d: _Matrix,
    function: str | None,
    further: tuple[tuple[str, Axes], ...],
    pairs: str | None,
    scales: tuple[Axes, ...],
    keep: tuple[str, ...],
    tf32: bool,
    fast: bool,
    target: str,
) -> _native.Plan:
    shape = d[1]
    given = []
    for name, (element, extents, strides, _, before) in further:
        if len(extents) > len(shape) or any(one not in (1, all) for one, all in zip(reversed(extents), reversed(shape))):
            raise ValueError(f"'{name}' is {extents}, which does not broadcast to {shape}")
        # Where an extent is 1, or there is no such axis, each element counts for the whole axis.
        steps = [0] * (len(shape) - len(extents)) + [step if extent > 1 else 0 for extent, step in zip(extents, strides)]
        given.append((name, _batch((element, shape, tuple(steps), before))))
    for name, (_, extents, *_) in zip(("a", "b"), scales):
        if len(extents) != len(shape) or extents[:-2] != shape[:-2]:
            raise ValueError(f"the scales of {name} are {extents}, of which {name} has {len(shape)} axes: one for each 128 steps along K")
    of_blocks = [_batch((element, extents, strides, before)) for element, extents, strides, _, before in scales]
    asked: _native._Asked = {
        "function": function,
        "inputs": given,
        "pairs": pairs,
        "scales": (of_blocks[0], of_blocks[1]) if of_blocks else None,
        "keep": list(keep),
        "tf32": tf32,
        "fast": fast,
    }
    return _native.plan_product(_batch(a), _batch(b), _batch(d), asked, target)


def _batch(matrix: _Matrix) -> tuple[str, list[int], list[int], int]:
    """The type, the extents and strides of rows, columns and matrices, and how many elements come
    before.
    """
    element, shape, strides, before = matrix
    many = shape[0] if len(shape) == 3 else 1
    return element, [*shape[-2:], many], [*strides[-2:], strides[0] if len(shape) == 3 else 0], before


def device_count() -> int:
    """How many CUDA devices there are; 0 where there is no driver."""
    return _native.device_count()


def device_name(ordinal: int = 0) -> str:
    """The name of a CUDA device, by its number from 0. ``GpuError`` where there is none."""
    return _native.device_name(ordinal)
