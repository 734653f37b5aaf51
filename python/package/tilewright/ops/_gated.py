"""Gated linear layers, whose two products are one GEMM."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .. import gpu
from .._arrays import compact, empty, is_torch
from .._definitions import flat_rows, is_jax
from ._common import (
    autocast,
    by_definition,
    check_arrays,
    check_out,
    check_type,
    contiguous,
    records,
    stored,
    strides_of,
    through_jax,
    through_torch,
)
from ._elements import activation_backward
from ._invariance import is_invariant
from ._products import linear, product_into, sum_of_products

#: The functions of an element in the words of epilogues.
_TEXTS = {"identity": "{}", "relu_squared": "relu({0}) * relu({0})"}


def gated_linear(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    function: str = "silu",
    pairs: str = "halves",
    out: Any = None,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """``function(x @ gate.T) * (x @ up.T)`` by one GEMM, whose epilogue has both accumulators of an
    element and rounds once. ``weight``, (2 N,K), has the rows of ``gate`` and those of ``up``: as its
    two "halves", or as "neighbours", rows 2 j and 2 j + 1. ``bias``, (2 N), is in the same order. The
    functions are those of ``activation``, and ``invariant`` is that of ``linear``.

    Nothing is saved for the backward: it computes both products again, rounded to the type of ``x``.

    >>> import numpy as np
    >>> gated_linear(np.ones((2, 8), np.float16), np.ones((6, 8), np.float16), function="relu").tolist()
    [[64.0, 64.0, 64.0], [64.0, 64.0, 64.0]]
    """
    check_arrays("bias", "out", x=x, weight=weight, bias=bias, out=out)
    x, weight, bias = autocast(x, weight, bias)
    _check(x, weight, bias, function, pairs)
    is_same = is_invariant(invariant)
    if is_jax(x) and by_definition("definition", x, weight, bias):
        check_type(x, "weight", weight)
        named: dict[str, Any] = {"function": function, "pairs": pairs, "invariant": is_same}
        return through_jax("gated_linear", x, weight, bias, out=out, on=on, **named)
    if records(x, weight, bias, on=on, out=out):
        return through_torch("gated_linear", x, weight, bias, function, pairs, is_same)
    shape = (*x.shape[:-1], weight.shape[0] // 2)
    if out is not None:
        check_out(out, shape, x, "float32")
    if by_definition(on, x, weight, bias, out):
        check_type(x, "weight", weight)
        y = definitions.gated_linear(x, weight, bias, function, pairs, is_same)
        return stored(out, definitions.narrow(y, x if out is None else out))
    biases = (None, None) if bias is None else definitions.pair(bias, pairs, 0)
    of = {} if bias is None else {"gate_bias": biases[0], "up_bias": biases[1]}
    gate, up = ("x", "y") if bias is None else ("(x + gate_bias)", "(y + up_bias)")
    text = f"{_TEXTS.get(function, function + '({0})').format(gate)} * {up}"
    return product_into(out, shape, flat_rows(x), weight, on, function=text, pairs=pairs, invariant=is_same, **of)


def _check(x: Any, weight: Any, bias: Any, function: str, pairs: str) -> None:
    if function not in definitions.FUNCTIONS:
        raise ValueError(f"there is no function {function!r}: there are {', '.join(definitions.FUNCTIONS)}")
    if pairs not in ("halves", "neighbours"):
        raise ValueError(f'pairs are "halves" or "neighbours", not {pairs!r}')
    if len(x.shape) < 1 or len(weight.shape) != 2 or x.shape[-1] != weight.shape[1] or weight.shape[0] % 2:
        raise ValueError(f"x is (..., K) and weight (2 N,K), and they have the shapes {tuple(x.shape)} and {tuple(weight.shape)}")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError(f"bias has the shape {tuple(bias.shape)}, and weight {weight.shape[0]} rows")


def gated_linear_backward(
    x: Any,
    weight: Any,
    d_y: Any,
    bias: Any = None,
    *,
    function: str = "silu",
    pairs: str = "halves",
    invariant: bool | None = None,
    on: str | None = None,
) -> tuple[Any, Any, Any]:
    """The derivatives of ``gated_linear`` by ``x``, ``weight`` and ``bias``; the last is None without
    ``bias``.

    >>> import numpy as np
    >>> x, weight, d_y = (np.ones(shape, np.float16) for shape in [(2, 8), (6, 8), (2, 3)])
    >>> [None if own is None else own.shape for own in gated_linear_backward(x, weight, d_y)]
    [(2, 8), (6, 8), None]
    """
    check_arrays("bias", x=x, weight=weight, d_y=d_y, bias=bias)
    _check(x, weight, bias, function, pairs)
    is_same = is_invariant(invariant)
    named: dict[str, Any] = {"function": function, "pairs": pairs, "invariant": is_same}
    if is_jax(x):
        return through_jax("gated_linear_backward", x, weight, d_y, bias, **named, on=on)  # type: ignore[no-any-return]
    if records(x, weight, d_y, bias, on=on):
        d_x, d_weight, d_bias = through_torch("gated_linear_backward", x, weight, d_y, bias, *named.values())
        return d_x, d_weight, None if bias is None else d_bias
    if by_definition(on, x, weight, d_y, bias):
        check_type(x, "weight", weight)
        return definitions.gated_linear_backward(x, weight, bias, d_y, function, pairs, is_same)
    both = definitions.pair(weight, pairs, 0)
    biases = (None, None) if bias is None else definitions.pair(bias, pairs, 0)
    first, second = (linear(x, own, of, invariant=is_same, on=on) for own, of in zip(both, biases))
    derivatives = [flat_rows(own) for own in activation_backward(first, contiguous(d_y, on), function, up=second, on=on)]
    d_x = sum_of_products(derivatives, both, is_same, on).reshape(tuple(x.shape))
    rows, d_weight = flat_rows(x), empty(weight, tuple(weight.shape))
    for own, part in zip(derivatives, definitions.pair(d_weight, pairs, 0)):
        gpu.gemm(own.T, rows.T, out=part, on=on)
    if bias is None:
        return d_x, d_weight, None
    d_bias = empty(bias, tuple(bias.shape))
    for own, part in zip(derivatives, definitions.pair(d_bias, pairs, 0)):
        gpu.reduce(own, "sum", axis=0, out=part, on=on)
    return d_x, d_weight, d_bias


def as_one(gate: Any, up: Any) -> Any:
    """The weights of two layers as one matrix, if they are its halves in memory; else None."""
    import numpy as np

    if not is_torch(gate) and not (type(gate) is type(up) is np.ndarray):
        return None
    if tuple(gate.shape) != tuple(up.shape) or gate.dtype != up.dtype or 0 in gate.shape:
        return None
    rows, columns = gate.shape
    if any(tuple(strides_of(own)) != compact((rows, columns)) for own in (gate, up)):
        return None
    if is_torch(gate):
        held = [own.untyped_storage() for own in (gate, up)]
        apart = up.storage_offset() - gate.storage_offset()
        if held[0].data_ptr() != held[1].data_ptr() or apart != rows * columns:
            return None
        return gate.as_strided((2 * rows, columns), (columns, 1))
    if gate.base is None or gate.base is not up.base:
        return None
    if up.__array_interface__["data"][0] - gate.__array_interface__["data"][0] != rows * columns * gate.itemsize:
        return None
    return np.lib.stride_tricks.as_strided(gate, (2 * rows, columns), writeable=False)
