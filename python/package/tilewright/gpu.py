"""Kernels of the library, as functions of arrays.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> x = torch.randn(4096, 8192, device="cuda")              # doctest: +SKIP
>>> y = tw.gpu.softmax(x)                                   # doctest: +SKIP

Each function looks at shapes, strides and types, plans a kernel, and keeps it. CUDA tensors are worked on where they are, on
PyTorch's current stream, and a call returns at once. Arrays of the host are refused, unless ``on="interpreter"`` says that the
interpreter, which checks every access and is slow, is meant.
"""

from __future__ import annotations

import threading
from typing import Any

from . import _native
from ._arrays import empty
from ._jit import interpret
from ._native import Layout, Program

_kept: dict[Any, tuple[Program, _native.Launcher]] = {}
_lock = threading.Lock()
# A plan is small; what a program would have to hold on to for ever is not.
_MOST = 1024


def _planned(plan: Any, *key: Any) -> tuple[Program, _native.Launcher]:
    known = _kept.get((plan, *key))
    if known is None:
        program = plan(*key)
        with _lock:
            if len(_kept) >= _MOST:
                _kept.clear()
            known = _kept.setdefault((plan, *key), (program, _native.Launcher(program)))
    return known


def _run(kernel: tuple[Program, _native.Launcher], arrays: list[Any], sizes: dict[str, int], on: str | None) -> None:
    program, launcher = kernel
    # A plan may know sizes, and take none at launch.
    sizes = {name: sizes[name] for name in (size.partition("{")[0] for size in program.sizes) if name in sizes}
    if on not in (None, "interpreter"):
        raise ValueError(f"a kernel runs on the device of its arrays, or on=\"interpreter\", not on {on!r}")
    if on is None:
        if launcher.launch(arrays, None, sizes):
            return
        raise TypeError(
            f"{program.name} runs on CUDA tensors, and these are arrays of the host: move them with `.cuda()`, "
            'or say on="interpreter" to run it there, checked and slowly'
        )
    interpret(program, arrays, {}, sizes)


def _matrix(array: Any, name: str) -> tuple[int, int, str]:
    """Rows, columns and the type of a matrix whose rows lie one after another."""
    element, layout = _native.array_layout(array)
    shape = tuple(array.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} is a matrix, and has {len(shape)} axes")
    rows, columns = shape
    if layout.coalesce((1, 1)) != Layout((rows, columns), (columns, 1)).coalesce((1, 1)) and rows * columns > 1:
        raise ValueError(f"the rows of {name} must lie one after another, and it lies as {layout}: pass `.contiguous()`")
    return rows, columns, element


def relayout(source: Any, destination: Any, *, on: str | None = None) -> Any:
    """Copies every element to the place of the same index, whatever the strides and types of both are: a transposition, a
    permutation of axes, a conversion. Returns the destination.
    """
    (of, from_), (to, into) = _native.array_layout(source), _native.array_layout(destination)
    if tuple(source.shape) != tuple(destination.shape):
        raise ValueError(f"the shapes differ: {tuple(source.shape)} and {tuple(destination.shape)}")
    _run(_planned(_native.plan_relayout, from_, of, into, to), [source, destination], {}, on)
    return destination


def softmax(x: Any, *, out: Any = None, on: str | None = None) -> Any:
    """``exp(x)`` over its sum, row by row of a matrix."""
    rows, columns, element = _matrix(x, "x")
    out = empty(x, (rows, columns)) if out is None else out
    _run(_planned(_native.plan_softmax, columns, element), [x, out], {"M": rows}, on)
    return out


def rms_norm(x: Any, weight: Any, *, epsilon: float = 1e-5, out: Any = None, on: str | None = None) -> Any:
    """The rows of a matrix by the root of their mean square + epsilon, times weights."""
    rows, columns, element = _matrix(x, "x")
    _vector(weight, "weight", columns)
    out = empty(x, (rows, columns)) if out is None else out
    _run(_planned(_native.plan_rms_norm, columns, element, float(epsilon)), [x, weight, out], {"M": rows}, on)
    return out


def layer_norm(x: Any, weight: Any, bias: Any, *, epsilon: float = 1e-5, out: Any = None, on: str | None = None) -> Any:
    """The rows of a matrix less their mean, by the root of their variance + epsilon, times weights plus a bias."""
    rows, columns, element = _matrix(x, "x")
    _vector(weight, "weight", columns)
    _vector(bias, "bias", columns)
    out = empty(x, (rows, columns)) if out is None else out
    _run(_planned(_native.plan_layer_norm, columns, element, float(epsilon)), [x, weight, bias, out], {"M": rows}, on)
    return out


def reduce(x: Any, statistic: str = "sum", *, axis: int = 1, out: Any = None, on: str | None = None) -> Any:
    """A statistic of each row (``axis=1``) or column (``axis=0``) of a matrix: "sum", "mean", "norm", "max" or "argmax"."""
    rows, columns, element = _matrix(x, "x")
    if axis not in (0, 1):
        raise ValueError(f"a matrix has the axes 0 and 1, not {axis}")
    first = _planned(_reduction, statistic, rows, columns, element, axis, 0)
    if out is None:
        out = empty(x, (rows if axis == 1 else columns,), "int32" if statistic == "argmax" else None)
    left = first[0].tensors[1:]
    if [name for name, *_ in left] == ["y"]:
        _run(first, [x, out], {}, on)
        return out
    # Shares, which a second launch puts together.
    kinds = {"i32": "int32", "f32": "float32"}
    parts = [empty(x, (Layout(layout).size(),), kinds[kind]) for _, kind, _, layout in left]
    _run(first, [x, *parts], {}, on)
    _run(_planned(_reduction, statistic, rows, columns, element, axis, 1), [*parts, out], {}, on)
    return out


def _reduction(statistic: str, rows: int, columns: int, element: Any, axis: int, launch: int) -> Program:
    """One launch of a reduction of a matrix along an axis."""
    return _native.plan_reduce(statistic, Layout((rows, columns), (columns, 1)), element, [axis])[launch]


def gemm(a: Any, b: Any, *, out: Any = None, group: bool = True, on: str | None = None) -> Any:
    """``a @ b.T``: A (M,K) times the transposed B (N,K), both with K contiguous, sums in f32 (PyTorch's ``linear``).

    ``group``: by the products of four warps of Hopper, where N and K are multiples of 8.
    """
    m, k, element = _matrix(a, "a")
    n, depth, other = _matrix(b, "b")
    if (k, element) != (depth, other):
        raise ValueError(f"a is ({m},{k}) of {element}, and b is ({n},{depth}) of {other}: both have the same K and type")
    out = empty(a, (m, n)) if out is None else out
    result = _native.array_layout(out)[0]
    group = bool(group) and n % 8 == 0 and k % 8 == 0 and result == element
    _run(_planned(_native.plan_product, element, result, m, n, k, group), [a, b, out], {"M": m, "N": n, "K": k}, on)
    return out


def _vector(array: Any, name: str, columns: int) -> None:
    if tuple(array.shape) != (columns,):
        raise ValueError(f"{name} has an element for each of the {columns} columns, not the shape {tuple(array.shape)}")


def device_count() -> int:
    """How many devices there are; 0 where there is no driver."""
    return _native.device_count()


def device_name(ordinal: int = 0) -> str:
    """The name of a device."""
    return _native.device_name(ordinal)
