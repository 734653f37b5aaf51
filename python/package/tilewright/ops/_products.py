"""Products of matrices."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .. import _operators, gpu
from .._definitions import is_jax
from ._common import autocast, by_definition, records, stored, through_torch, through_jax


def _flat(x: Any) -> Any:
    """The rows of an array as a matrix."""
    return x if len(x.shape) == 2 else x.reshape(-1, x.shape[-1])


def linear(x: Any, weight: Any, bias: Any = None, *, function: str | None = None, out: Any = None, on: str | None = None) -> Any:
    """``x @ weight.T + bias``: ``x`` is (..., K) with any leading axes, ``weight`` is (N,K), ``bias`` is
    (N). The accumulators are f32 and are rounded once. ``function`` is an expression of the sum
    ``x``, such as ``"gelu_tanh(x)"``; gradients are not recorded through it.

    >>> import numpy as np
    >>> linear(np.ones((2, 8), np.float16), np.ones((3, 8), np.float16)).tolist()
    [[8.0, 8.0, 8.0], [8.0, 8.0, 8.0]]
    """
    x, weight, bias = autocast(x, weight, bias)
    if len(x.shape) < 1 or len(weight.shape) != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x is (..., K) and weight (N,K), and they have the shapes {tuple(x.shape)} and {tuple(weight.shape)}")
    if is_jax(x):
        if function is not None:
            raise TypeError("with arrays of JAX, apply the function to the result")
        return through_jax("linear", x, weight, bias, out=out, on=on)
    if out is None and function is None and records(x, weight, bias):
        return through_torch("linear", x, weight, bias)
    shape = (*x.shape[:-1], weight.shape[0])
    if by_definition(on, x, weight):
        if function is not None:
            raise TypeError("the definition has no epilogue function: apply it to the result")
        y = definitions.wide(x) @ definitions.wide(weight).T
        y = y if bias is None else y + definitions.wide(bias)
        return stored(out, definitions.narrow(y, x))
    flat, into = _flat(x), None if out is None else out.reshape(-1, shape[-1])
    if out is not None and tuple(out.shape) != shape:
        raise ValueError(f"out has the shape {tuple(out.shape)}, and the result {shape}")
    if bias is None:
        y = gpu.gemm(flat, weight, function=function, out=into, on=on)
    else:
        # The bias is added before the function.
        text = "x + bias" if function is None else _substituted(function)
        y = gpu.gemm(flat, weight, function=text, bias=bias, out=into, on=on)
    return y.reshape(shape)


def _substituted(function: str) -> str:
    """An expression of ``x`` with ``(x + bias)`` in the place of ``x``."""
    import re

    return re.sub(r"\bx\b", "(x + bias)", function)


def linear_backward(
    x: Any,
    weight: Any,
    d_y: Any,
    *,
    bias: bool = False,
    into: Any = None,
    on: str | None = None,
) -> tuple[Any, Any, Any]:
    """The derivatives of ``linear`` by ``x``, ``weight`` and the bias: ``d_y @ weight``,
    ``d_y.T @ x``, and the sum of the rows of ``d_y``; the last is None without ``bias``.

    ``into``: a buffer of float32, (N,K), to which the derivative by ``weight`` is added; it is
    returned in its place.

    >>> import numpy as np
    >>> x, weight, d_y = (np.ones(shape, np.float16) for shape in [(2, 8), (3, 8), (2, 3)])
    >>> [own.shape for own in linear_backward(x, weight, d_y, bias=True)]
    [(2, 8), (3, 8), (3,)]
    """
    rows, of_rows = _flat(x), _flat(d_y)
    if by_definition(on, x, weight, d_y):
        d = definitions.wide(of_rows)
        d_x = definitions.narrow((d @ definitions.wide(weight)).reshape(x.shape), x)
        product = d.T @ definitions.wide(rows)
        d_weight = definitions.narrow(product, weight) if into is None else _added(into, product)
        return d_x, d_weight, definitions.narrow(d.sum(0), weight) if bias else None
    d_x = gpu.gemm(of_rows, weight.T, on=on).reshape(tuple(x.shape))
    if into is None:
        d_weight = gpu.gemm(of_rows.T, rows.T, on=on)
    else:
        # No kernel of a product has one parameter for an input and the result, so the sum has a place
        # of its own.
        total = gpu.gemm(of_rows.T, rows.T, function="x + total", total=into, out=_operators.empty(into, tuple(into.shape)), on=on)
        d_weight = gpu.relayout(total, into, on=on)
    d_bias = gpu.reduce(of_rows, "sum", axis=0, on=on) if bias else None
    return d_x, d_weight, d_bias


def _added(into: Any, product: Any) -> Any:
    into += product
    return into


def matmul(a: Any, b: Any, *, out: Any = None, on: str | None = None) -> Any:
    """The product of matrices ``a @ b``: (M,K) and (K,N), or batches of them, (L,M,K) and (L,K,N), of
    any strides.

    >>> import numpy as np
    >>> matmul(np.ones((2, 8), np.float16), np.ones((8, 3), np.float16)).tolist()
    [[8.0, 8.0, 8.0], [8.0, 8.0, 8.0]]
    """
    a, b = autocast(a, b)
    if len(a.shape) != len(b.shape) or len(a.shape) not in (2, 3) or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"a is (M,K) and b (K,N), or both are batches, and they have the shapes {tuple(a.shape)} and {tuple(b.shape)}")
    if is_jax(a):
        return through_jax("matmul", a, b, out=out, on=on)
    if out is None and records(a, b):
        return through_torch("matmul", a, b)
    if by_definition(on, a, b):
        return stored(out, definitions.narrow(definitions.wide(a) @ definitions.wide(b), a))
    return gpu.gemm(a, b.swapaxes(-1, -2), out=out, on=on)
