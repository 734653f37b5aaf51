"""Kernels of the library, as functions of arrays.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> x = torch.randn(4096, 8192, device="cuda")              # doctest: +SKIP
>>> y = tw.gpu.softmax(x)                                   # doctest: +SKIP

Each function plans kernels for the shapes, strides and types of its arguments and for the device,
and caches them. CUDA tensors are used in place, on PyTorch's current stream, and a call returns at
once. Arrays of the host are refused, unless ``on="interpreter"`` asks for the interpreter, which
checks every access and is slow; it runs the kernels for an H200.

With ``out`` the result is written there, and ``out`` is returned. Arrays may have any strides that
are not negative; if kernels do not support them, a copy is made first. Arrays may be empty: the
result is then that of NumPy and PyTorch, and nothing is launched.

NaN is greater than every number, as in NumPy and PyTorch: "max" and "argmax" find the first NaN, and
a softmax with NaN in its row is NaN.

Kernels record no gradients. While PyTorch records them, tensors that require one are a
``RuntimeError``: pass ``x.detach()``, or call under ``torch.no_grad()``. Tensors that are written
are marked as written, as by PyTorch's own functions.

Shapes, types and arrays that do not match are a ``ValueError`` or a ``TypeError``; a computation
without a kernel is a ``LayoutError`` with a code; a refusal by the device is a ``GpuError``.

``plan(function, ...)`` is the plan of a call, without launching it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._arrays import Maker, compact, empty, fill, made, maker, result_type, zeros_like
from ._interpret import interpret
from ._native import Layout
from ._record import Launch, record, recorder

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


_kept: dict[tuple[Any, ...], _Kept] = {}
_lock = threading.Lock()
# A plan is small; the objects that a program would keep for ever are not.
_MOST = 1024


def _planned(make: Callable[..., _native.Plan], *key: Any) -> _Kept:
    known = _kept.get((make, *key))
    if known is None:
        known = _Kept(make(*key))
        with _lock:
            if len(_kept) >= _MOST:
                _kept.clear()
            known = _kept.setdefault((make, *key), known)
    return known


def _machine(device: int | None) -> str:
    """The machine of a device, for which kernels are planned; of none, an H200."""
    return "H200" if device is None else f"device:{device}"


# The launches of earlier calls, by function and options.
_calls: dict[tuple[Any, ...], _native.Calls] = {}


def _forget() -> None:
    """Forgets all plans, so that the next call of a problem plans again."""
    with _lock:
        _kept.clear()
        _calls.clear()


def _again(call: tuple[Any, ...], inputs: tuple[Any, ...], outs: tuple[Any, ...] | None) -> Any:
    """The result of a call, by repeating the launches of an equal earlier call on arrays of the
    same layout; None if there was none.
    """
    known = _calls.get(call)
    if known is None or recorder() is not None:
        return None
    return known.call(inputs, outs)


def _run(
    kept: _Kept,
    inputs: Sequence[Any],
    outs: Sequence[Any],
    sizes: dict[str, int],
    on: str | None,
    *,
    befores: Sequence[int] = (),
    call: tuple[Any, ...] | None = None,
    makers: list[Maker] | None = None,
) -> None:
    """Launches the kernels of a plan. ``befores``: the offset, in elements, at which each tensor
    begins for the kernels. ``call`` is the key under which the launches are kept for ``_again``;
    the results were given, or made by ``makers``.
    """
    recording = recorder()
    if recording is not None:
        recording.plans.append(kept.plan)
        if recording.launches is None:
            return
    if on not in (None, "interpreter"):
        raise ValueError(f"a kernel runs on the device of its arrays, or on=\"interpreter\", not on {on!r}")
    rooms = [maker(inputs[0], (count,), element) for element, count in kept.plan.workspaces]
    # PyTorch keeps the memory until the work on the stream has finished.
    workspaces = [made(room, inputs[0]) for room in rooms]
    tensors = [*inputs, *outs, *workspaces]
    skipped = [*befores, *[0] * (len(tensors) - len(befores))]
    launched = []
    for (program, launcher, numbers), names in zip(kept.launches, kept.sizes):
        given = {name: sizes[name] for name in names if name in sizes}
        if on == "interpreter":
            interpret(program, [tensors[number] for number in numbers], {}, given)
            continue
        if recording is not None and recording.launches is not None:
            taken = [tensors[number] for number in numbers]
            recording.launches.append(Launch(launcher, taken, [skipped[number] for number in numbers], given, {}))
            continue
        own = [(tensors[number], skipped[number]) if skipped[number] else tensors[number] for number in numbers]
        if not launcher.launch(own, None, given):
            raise TypeError(
                f"{program.name} runs on CUDA tensors, and these are arrays of the host: move them with `.cuda()`, "
                'or say on="interpreter" to run it there, checked and slowly'
            )
        launched.append((launcher, [(number, skipped[number]) for number in numbers], given))
    if call is not None and launched:
        with _lock:
            if len(_calls) >= _MOST:
                _calls.clear()
            calls = _calls.setdefault(call, _native.Calls())
        calls.keep(tuple(inputs), tuple(outs), makers, (tuple(workspaces), rooms), launched)


def plan(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> _native.Plan:
    """The plan of a call of a function of this module: ``plan(softmax, x)``. Its text says what was
    chosen and why; ``launches`` has the kernels, each with ``ptx()``, ``cost(..)`` and
    ``check(..)``, and the indices of its tensors; ``workspaces`` has the device memory that it
    needs in addition.

    >>> import numpy as np
    >>> len(plan(softmax, np.zeros((2, 64), np.float32)).launches)
    1
    """
    if not callable(function):
        raise TypeError(f"plan takes a function of tilewright.gpu, as in plan(softmax, x), not {function!r}")
    asked = record(function, arguments, named)[1].plans
    if not asked:
        name = getattr(function, "__name__", str(function))
        raise TypeError(f"{name} plans no kernels: it is not a function of tilewright.gpu, or an array has no elements")
    if len(asked) > 1:
        raise ValueError("the call copies arrays whose strides its kernels do not take: plan it on contiguous ones, and relayouts apart")
    (one,) = asked
    if not isinstance(one, _native.Plan):
        raise TypeError(f"{function.__name__} is no function of tilewright.gpu: tilewright.ops.plan takes those of tilewright.ops")
    return one


def _check(inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Refuses arrays that may not be read, or not be written, whether or not they have elements."""
    if recorder() is None:
        _native.check_arrays([*inputs, *outs], [False] * len(inputs) + [True] * len(outs))


def relayout(source: Any, destination: Any, *, on: str | None = None) -> Any:
    """Copies every element to the same index, for any strides and types of both arrays: a
    transpose, a permutation of axes, a conversion. Both have the same shape. Returns the
    destination.

    >>> import numpy as np
    >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> by_columns = np.empty((3, 2), np.float16).T
    >>> relayout(x, by_columns, on="interpreter").tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    if on is None and (found := _again(("relayout",), (source,), (destination,))) is not None:
        return found
    axes, into = _native.array_axes(source), _native.array_axes(destination)
    if axes[1] != into[1]:
        raise ValueError(f"the shapes differ: {axes[1]} and {into[1]}")
    _check([source], [destination])
    if 0 not in axes[1]:
        _copy(source, axes, destination, into, on, ("relayout",))
    return destination


def _copy(source: Any, axes: Axes, destination: Any, into: Axes, on: str | None, call: tuple[Any, ...] | None = None) -> None:
    """Copies the elements of these axes from one array to another."""
    of, shape, strides, device, before = axes
    to, _, steps, _, skipped = into
    kept = _planned(_relayout, of, shape, strides, before, to, steps, skipped, _machine(device))
    _run(kept, [source], [destination], {}, on, befores=(before, skipped), call=call)


def _relayout(
    of: str, shape: tuple[int, ...], strides: tuple[int, ...], before: int, to: str, into: tuple[int, ...], skipped: int, machine: str
) -> _native.Plan:
    if not shape:
        shape, strides, into = (1,), (1,), (1,)
    return _native.plan_relayout((of, Layout(shape, strides), before), (to, Layout(shape, into), skipped), machine)


def _about(rows: int) -> int:
    """The number of rows that a plan is made for, rounded up to a power of two, so that matrices
    share plans.
    """
    return 1 << max(rows - 1, 0).bit_length()


def _pitch(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> int | None:
    """From a row to the next where the axes in this order number rows that are equally far apart;
    None where they are not.
    """
    pitch, step = None, None
    for axis in reversed(order):
        if shape[axis] == 1:
            continue
        if pitch is None:
            pitch = strides[axis]
        elif strides[axis] != step:
            return None
        step = strides[axis] * shape[axis]
    # One row is not far from another.
    return 0 if pitch is None else pitch


def _axis(axis: Any, axes: int) -> int:
    (number,) = _numbered((axis,), max(axes, 1))
    return number


def _rows(
    make: Callable[..., _native.Plan],
    options: tuple[Any, ...],
    x: Any,
    vectors: Sequence[tuple[Any, str]],
    axis: Any,
    out: Any,
    on: str | None,
    call: tuple[Any, ...],
) -> Any:
    """A function of the rows of an array along an axis, into an array of its shape and type."""
    element, given, steps, device, before = _native.array_axes(x)
    along = _axis(axis, len(given))
    # A number is a row of one element.
    shape, strides = (given, steps) if given else ((1,), (1,))
    length = shape[along]
    order = sorted((other for other in range(len(shape)) if other != along), key=lambda other: -strides[other])
    beside = []
    for vector, name in vectors:
        of, extents, by, where, ahead = _native.array_axes(vector)
        if (of, extents) != (element, (length,)):
            raise ValueError(f"{name} has an element of {element} for each of {length} along axis {along}, not the shape {extents} of {of}")
        beside.append((vector, (of, extents, by, where, ahead)))
    makers = None
    if out is None:
        # Axes have the memory order of those of x, if x is compact.
        dense = compact(shape, [*order, along])
        makers = [maker(x, given, strides=dense if strides == dense and dense != compact(shape) else None)]
        out = made(makers[0], x)
        into = _native.array_axes(out)
    else:
        into = _native.array_axes(out)
        if into[:2] != (element, given):
            raise ValueError(f"out is {into[1]} of {into[0]}, and the result {given} of {element}")
    inputs = (x, *(vector for vector, _ in beside))
    _check(inputs, [out])
    if 0 in shape:
        return out
    to = into[2] if given else (1,)
    pitches = [_pitch(shape, each, order) if each[along] == 1 or length == 1 else None for each in (strides, to)]
    rows = math.prod(shape) // length
    if rows == 1 and None not in pitches:
        pitches = [length, length]
    # Rows of the result do not overlap; those of x may.
    moves = [pitches[0] is None, pitches[1] is None or pitches[1] < length]
    if moves[1] and not moves[0] and pitches[1] is not None:
        raise ValueError(f"the rows of out overlap: its layout is {shape}:{to}")
    axes_x: Axes = (element, shape, strides, device, before)
    axes_out: Axes = (element, shape, to, into[3], into[4])
    packed: Axes = (element, shape, compact(shape, [*order, along]), device, 0)

    def moved(array: Any, axes: Axes, into: Axes) -> Any:
        room = empty(x, (math.prod(axes[1]),), element)
        _copy(array, axes, room, into, on)
        return room

    source, begins = (moved(x, axes_x, packed), 0) if moves[0] else (x, before)
    target, ends = (empty(x, (math.prod(shape),), element), 0) if moves[1] else (out, axes_out[4])
    vector_axes: Axes = (element, (length,), (1,), device, 0)
    spread = [length > 1 and axes[2] != (1,) for _, axes in beside]
    beside = [
        (moved(vector, axes, vector_axes), vector_axes) if is_spread else (vector, axes)
        for (vector, axes), is_spread in zip(beside, spread)
    ]
    # The greatest power of two that all begin at a multiple of, in elements.
    aligned = min(ahead & -ahead or 16 for ahead in (begins, ends, *(axes[4] for _, axes in beside)))
    pitch_x, pitch_out = (length if is_moved or pitch is None else pitch for is_moved, pitch in zip(moves, pitches))
    matrix = (length, element, aligned, _about(rows), pitch_x, pitch_out)
    kept = _planned(make, matrix, *options, _machine(device))
    simple = None if any(moves) or any(spread) else call
    inputs = (source, *(vector for vector, _ in beside))
    _run(kept, inputs, [target], {"M": rows}, on, call=simple, makers=makers)
    if moves[1]:
        _copy(target, packed, out, axes_out, on)
    return out


def softmax(x: Any, *, axis: int = -1, out: Any = None, on: str | None = None) -> Any:
    """The softmax along an axis: ``exp(x)`` divided by its sum. Elements are floats of at most 32
    bits, because exponentials are computed in f32.

    >>> import numpy as np
    >>> softmax(np.zeros((2, 4), np.float32), on="interpreter").tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    call = ("softmax", axis)
    if on is None and (found := _again(call, (x,), None if out is None else (out,))) is not None:
        return found
    return _rows(_native.plan_softmax, (), x, (), axis, out, on, call)


def rms_norm(x: Any, weight: Any = None, *, epsilon: float = 1e-5, axis: int = -1, out: Any = None, on: str | None = None) -> Any:
    """Each row along an axis over the root of its mean square + epsilon, times weights, if there
    are some: one for each element of a row.

    >>> import numpy as np
    >>> x, weight = np.full((2, 4), 3, np.float32), np.full(4, 2, np.float32)
    >>> rms_norm(x, weight, epsilon=0.0, on="interpreter").tolist()
    [[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]
    """
    call = ("rms_norm", axis, epsilon, weight is None)
    inputs = (x,) if weight is None else (x, weight)
    if on is None and (found := _again(call, inputs, None if out is None else (out,))) is not None:
        return found
    vectors = [] if weight is None else [(weight, "weight")]
    return _rows(_native.plan_rms_norm, (float(epsilon), weight is not None), x, vectors, axis, out, on, call)


def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
    axis: int = -1,
    out: Any = None,
    on: str | None = None,
) -> Any:
    """Each row along an axis less its mean, over the root of its variance + epsilon, times weights
    plus a bias, if there are some: one of each for each element of a row.

    >>> import numpy as np
    >>> x, one = np.array([[1, 3, 1, 3]], np.float32), np.ones(4, np.float32)
    >>> layer_norm(x, one, one, epsilon=0.0, on="interpreter").tolist()
    [[0.0, 2.0, 0.0, 2.0]]
    """
    call = ("layer_norm", axis, epsilon, weight is None, bias is None)
    inputs = (x, *(vector for vector in (weight, bias) if vector is not None))
    if on is None and (found := _again(call, inputs, None if out is None else (out,))) is not None:
        return found
    vectors = [(vector, name) for vector, name in ((weight, "weight"), (bias, "bias")) if vector is not None]
    options = (float(epsilon), weight is not None, bias is not None)
    return _rows(_native.plan_layer_norm, options, x, vectors, axis, out, on, call)


def reduce(x: Any, statistic: str = "sum", *, axis: int | Sequence[int] | None = -1, out: Any = None, on: str | None = None) -> Any:
    """A statistic along one axis or several, or of all elements if ``axis`` is None: "sum", "mean",
    "norm", "max" or "argmax". Over several axes, argmax counts along the last one fastest, as NumPy
    and PyTorch do. NaN is greater than every number. The result has the other axes, and the type of
    ``x``, or int32 for "argmax". For integers it is truncated toward zero and saturates.

    Over no elements, a sum and a norm are 0, a mean is NaN, and a "max" or "argmax" is a
    ``ValueError``.

    >>> import numpy as np
    >>> x = np.arange(12, dtype=np.float32).reshape(3, 4)
    >>> reduce(x, "sum", on="interpreter").tolist(), reduce(x, "argmax", axis=None, on="interpreter").tolist()
    ([6.0, 22.0, 38.0], 11)
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    call = ("reduce", statistic, axis)
    if on is None and (found := _again(call, (x,), None if out is None else (out,))) is not None:
        return found
    element, shape, strides, device, before = _native.array_axes(x)
    along = _numbered(axis, len(shape))
    left = tuple(other for other in range(len(shape)) if other not in along)
    extents = tuple(shape[other] for other in left)
    result = "i32" if statistic == "argmax" else element
    makers = None
    if out is None:
        makers = [maker(x, extents, result)]
        out = made(makers[0], x)
        into = _native.array_axes(out)
    else:
        into = _native.array_axes(out)
        if into[:2] != (result, extents):
            raise ValueError(f"out is {into[1]} of {into[0]}, and the result {extents} of {result}")
    _check([x], [out])
    if 0 in shape:
        value = _of_nothing(statistic, element) if any(shape[other] == 0 for other in along) else 0
        if 0 not in extents:
            fill(out, value)
        return out
    # Results have the memory order of the elements that they are reduced from.
    lies = compact(extents, sorted(range(len(left)), key=lambda at: (-strides[left[at]], at)))
    settled = tuple(step if extent > 1 else own for extent, step, own in zip(extents, into[2], lies))
    room = out if settled == lies else empty(x, (math.prod(extents),), result)
    ahead = before | (into[4] if room is out else 0)
    # The greatest power of two that all begin at a multiple of, in elements.
    kept = _planned(_reduction, statistic, shape, strides, element, along, ahead & -ahead or 16, _machine(device))
    _run(kept, [x], [room], {}, on, call=call if room is out else None, makers=makers)
    if room is not out:
        _copy(room, (result, extents, lies, device, 0), out, (result, extents, into[2], into[3], into[4]), on)
    return out


def _of_nothing(statistic: str, element: str) -> float:
    """A statistic of no elements."""
    if statistic in ("sum", "norm"):
        return 0
    if statistic == "mean" and element[0] not in "iu":
        return math.nan
    raise ValueError(f"the {statistic} of no elements: an axis along which {element} is reduced has the extent 0")


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
    statistic: str, shape: tuple[int, ...], strides: tuple[int, ...], element: str, along: tuple[int, ...], alignment: int, machine: str
) -> _native.Plan:
    # Kernels count places along the first mode fastest, and arrays along the last axis.
    modes = [len(shape) - 1 - axis for axis in along]
    layout = Layout(shape[::-1], strides[::-1]) if shape else Layout((1,), (1,))
    return _native.plan_reduce(statistic, layout, element, modes, alignment, machine)


def gemm(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    function: str | None = None,
    pairs: str | None = None,
    scales: tuple[Any, Any] | None = None,
    int4: Any = None,
    format: str | None = None,
    keep: str | Sequence[str] | None = None,
    tf32: bool = False,
    packed: bool = False,
    fast: bool = False,
    invariant: bool = False,
    on: str | None = None,
    **inputs: Any,
) -> Any:
    """GEMM (matmul), ``a @ b.T``: A (M,K) times the transposed B (N,K), of any strides, as in
    PyTorch's ``linear``; or a batch, (L,M,K) and (L,N,K). Accumulators are f32, f64 for operands of
    f64, or i32 for integers, and are rounded once.

    ``function`` is the epilogue: a function of the accumulator, ``x``, and of elements of further
    tensors, which are keywords and broadcast to the result: ``gemm(a, b, function="gelu_tanh(x +
    bias) + residual", bias=bias, residual=residual)``.

    ``pairs``: gated GEMM. Two rows of B (2 N,K) make a column of the result, which is a function of
    both accumulators, ``x`` and ``y``: ``gemm(a, gate_and_up, pairs="halves", function="silu(x) *
    y")``, where the first half of the rows is the gate; "neighbours" are rows 2 j and 2 j + 1.

    ``scales``: block scales in f32, for operands of e4m3 or e5m2: (M,K/128) or (M/128,K/128) for A,
    and (N,K/128) or (N/128,K/128) for B, rounded up. The partial accumulator of each 128 elements
    along K is multiplied by both.

    ``format``: "mxf8_e4m3", "mxf8_e5m2", "mxf4" or "nvf4", block-scaled formats of an RTX 5090 and a
    GB10. ``scales`` are then those of each 32 elements along K, powers of two (e8m0), or in "nvf4"
    those of each 16, in e4m3 without a sign: (M,K/32) and (N,K/32), rounded up, or their bits in
    uint8. Operands of 4 bits are arrays of float4_e2m1fn, or bytes of two elements along K, the
    first one in the lower half. ``on="interpreter"`` runs the kernels that are planned for an RTX
    5090, which no other device has.

    ``keep``: reductions of rows or of columns of the result before it is rounded, in f32: "row" or
    "column", "sum" or "max", and optionally an expression, ``c, maximum = gemm(a, b, keep="row max
    abs(d)")``. Several reductions are a list. The result is then a tuple, and so is ``out``, if it
    is given.

    ``int4``: B has weights of four bits, from -8 to 7: words of int32, (N,K/8), whose bits, four by
    four from the lowest, are those of K 0 2 4 6 1 3 5 7; and ``int4`` has their scales, (K/128,N), one
    for 128 weights of a row. A is bf16 or f16. ``ops.quantize_int4`` makes both.

    ``packed``: each byte of A, (M,K/2), and of B, (N,K/2), has two integers of four bits, the one of
    the lower K in the lower bits: -8 to 7 in bytes of int8, 0 to 15 in those of uint8.

    ``tf32``: operands of f32 are read as tf32, with 10 bits of mantissa, which is faster. ``fast``:
    accumulators of e4m3 and e5m2 are not promoted to f32; the tensor core keeps 13 bits below the
    largest term.

    ``invariant``: batch-invariant. A row of the result has the same bits whatever the other rows of A
    are and however many there are: the plan has no split-K, and A along the rows of its tiles.

    The plan is made by a model of the machine, and may need several launches and a workspace:
    ``print(plan(gemm, a, b))``.

    >>> import numpy as np
    >>> a, b = np.ones((2, 8), np.float16), np.ones((3, 8), np.float16)
    >>> gemm(a, b, function="x / 2", on="interpreter").tolist()
    [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    """
    for what, text in (("function", function), ("pairs", pairs)):
        if text is not None and not isinstance(text, str):
            example = 'function="max(x, 0)"' if what == "function" else 'pairs="halves"'
            raise TypeError(f"{what} is a text, as in {example}, not {type(text).__name__}")
    if format is not None:
        a, b, scales = _block_scaled(a, b, scales, format)
    tensors = (a, b, *inputs.values(), *(scales or ()), *(() if int4 is None else (int4,)))
    kinds = None if keep is None else keep if isinstance(keep, str) else tuple(keep) if isinstance(keep, (list, tuple)) else None
    options = pairs, tf32, packed, fast, scales is None if format is None else format, int4 is None, kinds
    call = call_of_gemm(function, invariant, *inputs, options=options)
    if on is None and (keep is None or kinds is not None):
        written = None if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if (found := _again(call, tensors, written)) is not None:
            return out if out is not None else found
    of, shape_a, strides_a, device, before_a = _native.array_axes(a)
    other, shape_b, strides_b, _, before_b = _native.array_axes(b)
    if len(shape_a) != len(shape_b) or len(shape_a) not in (2, 3):
        raise ValueError(f"a and b are matrices (M,K) and (N,K), or batches of them, and have the shapes {shape_a} and {shape_b}")
    if int4 is not None:
        if (8 * shape_b[-1], shape_b[:-2], other) != (shape_a[-1], shape_a[:-2], "i32"):
            raise ValueError(f"a is {shape_a}, and b {shape_b} of {other}: words of weights of four bits are (N,K/8) of i32")
    elif (shape_a[-1], shape_a[:-2], of) != (shape_b[-1], shape_b[:-2], other):
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
    makers = None
    if out is None:
        makers = [maker(a, shape, result_type(of) if format is None else "bf16"), *(maker(a, _kept_shape(what, shape), "f32") for what in kept)]
        outs = tuple(made(each, a) for each in makers)
    elif len(outs) != 1 + len(kept):
        raise ValueError(f"out has {len(outs)} tensors, and {1 + len(kept)} are written: the result, and the reductions")
    to, shape_d, strides_d, _, before_d = _native.array_axes(outs[0])
    if shape_d != shape:
        raise ValueError(f"out is {shape_d}, and the result {shape}")
    for what, array in zip(kept, outs[1:]):
        axes = _native.array_axes(array)
        if axes[:2] != ("f32", _kept_shape(what, shape)):
            raise ValueError(f"'{what}' is {_kept_shape(what, shape)} of f32, and its tensor {axes[1]} of {axes[0]}")
        if any(extent > 1 and own != step for extent, own, step in zip(axes[1], axes[2], compact(axes[1]))):
            raise ValueError(f"the numbers of '{what}' must be contiguous, and its tensor is {axes[1]}:{axes[2]}")
    further = tuple((name, _native.array_axes(tensor)) for name, tensor in inputs.items())
    if further and function is None:
        raise TypeError(f"'{further[0][0]}' is an input of an epilogue function: pass function=\"x + {further[0][0]}\"")
    of_blocks = () if scales is None else tuple(_native.array_axes(each) for each in scales)
    of_int4 = None if int4 is None else _native.array_axes(int4)
    if len(of_blocks) not in (0, 2):
        raise TypeError(f"scales are those of a and those of b, two tensors, not {len(of_blocks)}")
    _check(tensors, outs)
    if 0 in shape:
        # Nothing is multiplied, and a reduction over no rows or columns is neutral.
        for what, array in zip(kept, outs[1:]):
            if 0 not in _kept_shape(what, shape):
                fill(array, 0.0 if what.split()[1:2] == ["sum"] else -math.inf)
        return outs[0] if keep is None else outs
    kept_for: tuple[Any, ...] | None = call
    if shape_a[-1] == 0 and int4 is not None:
        raise ValueError("weights of four bits have K of 128 or more")
    if shape_a[-1] == 0:
        # With K = 0 the accumulators are those of zeros.
        depth = 16
        a, b = (zeros_like(array, (*extents[:-1], depth)) for array, extents in ((a, shape_a), (b, shape_b)))
        tensors, kept_for, of_blocks = (a, b, *inputs.values()), None, ()
        (_, shape_a, strides_a, _, before_a), (_, shape_b, strides_b, _, before_b) = map(_native.array_axes, (a, b))
    # Where no device is asked, the interpreter runs what a card with the format would.
    machine = "RTX 5090" if format is not None and on == "interpreter" else _machine(device)
    matrices = ((of, shape_a, strides_a, before_a), (other, shape_b, strides_b, before_b), (to, shape, strides_d, before_d))
    planned = _planned(_product, *matrices, function, further, pairs, of_blocks, of_int4, format, kept, bool(tf32), bool(packed), bool(fast), bool(invariant), machine)
    # For kernels, tensors begin at a multiple of 16 bytes.
    befores = [before_a, before_b, *(axes[4] for _, axes in further), *(axes[4] for axes in of_blocks), *(() if of_int4 is None else (of_int4[4],)), before_d]
    _run(planned, tensors, outs, {}, on, befores=befores, call=kept_for, makers=makers)
    return outs[0] if keep is None else outs


_FORMATS = {"mxf8_e4m3": 1, "mxf8_e5m2": 1, "mxf4": 2, "nvf4": 2}


def _block_scaled(a: Any, b: Any, scales: Any, format: str) -> tuple[Any, Any, tuple[Any, Any]]:
    """The operands and the scales of a block-scaled format, in bytes."""
    if format not in _FORMATS:
        raise ValueError(f"a block-scaled format is {', '.join(_FORMATS)}, not {format!r}")
    if not isinstance(scales, (tuple, list)) or len(scales) != 2:
        raise TypeError(f"a product in {format} has the scales of a and those of b: pass scales=(of_a, of_b)")
    if _FORMATS[format] == 2:
        a, b = _pairs_of_e2m1("a", a), _pairs_of_e2m1("b", b)
    return a, b, (_bits(scales[0]), _bits(scales[1]))


def _bits(array: Any) -> Any:
    """The bytes of an array of elements of 8 bits, or another array as it is."""
    if str(array.dtype) in ("float8_e8m0fnu", "float8_e4m3fn"):
        return array.view("uint8")
    if str(array.dtype) in ("torch.float8_e8m0fnu", "torch.float8_e4m3fn", "torch.float4_e2m1fn_x2"):
        import torch

        return array.view(torch.uint8)
    return array


def _pairs_of_e2m1(name: str, array: Any) -> Any:
    """Numbers of e2m1, two in a byte along the last axis."""
    if str(array.dtype) != "float4_e2m1fn":
        return _bits(array)
    # Such an array has a byte for each number, in the lower half.
    if array.shape[-1] % 2:
        raise ValueError(f"{name} is {array.shape}: two numbers of e2m1 along K are a byte, so K is even")
    halves = array.view("uint8") & 15
    return halves[..., 0::2] | halves[..., 1::2] << 4


#: The options of a GEMM that has none.
_NO_OPTIONS: tuple[Any, ...] = (None, False, False, False, True, True, None)


def call_of_gemm(function: str | None, invariant: bool, *inputs: str, options: tuple[Any, ...] = _NO_OPTIONS) -> tuple[Any, ...]:
    """The key of a GEMM with an epilogue function of inputs of these names."""
    return ("gemm", function, invariant, options, *inputs)


_Matrix = tuple[str, tuple[int, ...], tuple[int, ...], int]


def _kept_shape(what: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a reduction of the result: a number for each row, or for each column, of each
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
    int4: Axes | None,
    format: str | None,
    keep: tuple[str, ...],
    tf32: bool,
    packed: bool,
    fast: bool,
    invariant: bool,
    machine: str,
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
    of_int4 = None
    if int4 is not None:
        element, extents, strides, _, before = int4
        if len(extents) != 2 or len(shape) != 2:
            raise ValueError(f"weights of four bits are of one matrix, and their scales (K/128,N), not {extents}")
        # Columns first.
        of_int4 = _batch((element, extents[::-1], strides[::-1], before))
    asked: _native._Asked = {
        "function": function,
        "inputs": given,
        "pairs": pairs,
        "scales": (of_blocks[0], of_blocks[1]) if of_blocks else None,
        "int4": of_int4,
        "format": format,
        "keep": list(keep),
        "tf32": tf32,
        "packed": packed,
        "fast": fast,
        "invariant": invariant,
    }
    return _native.plan_product(_batch(a), _batch(b), _batch(d), asked, machine)


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
