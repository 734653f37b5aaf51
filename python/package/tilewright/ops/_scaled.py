"""Linear layers of numbers of 8 bits with scales for blocks."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .._arrays import empty
from .._definitions import flat_rows, is_jax
from ._common import by_definition, check_arrays, records, stored, through_jax, through_torch
from ._invariance import is_invariant
from ._products import product_into

#: The types of operands, by the names of their libraries.
_OPERANDS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "e4m3": "e4m3", "e5m2": "e5m2"}
#: The types of results, by the names of their libraries.
_ELEMENTS = {"bf16": "bfloat16", "f16": "float16", "f32": "f32"}


def scaled_linear(
    x: Any,
    x_scales: Any,
    weight: Any,
    weight_scales: Any,
    bias: Any = None,
    *,
    element: str = "bf16",
    out: Any = None,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """``linear`` of block-scaled operands of e4m3 or e5m2, such as those of ``quantize``: ``x`` is
    (..., K), ``weight`` is (N,K), and scales are float32. Those of ``x`` are (..., ceil(K/128)), or
    (ceil(M/128),ceil(K/128)) of a matrix, and those of ``weight`` are (N,ceil(K/128)) or
    (ceil(N/128),ceil(K/128)). The result has the type ``element``: "bf16", "f16" or "f32".

    The sum of each 128 products along K is multiplied by both scales and added in f32; ``bias``, (N), is
    added before the only rounding. ``invariant`` is that of ``linear``. There is a derivative by
    ``bias`` alone: numbers of 8 bits are not trained.

    On the host, tensors of PyTorch and arrays of JAX are taken, and arrays on="interpreter": NumPy has
    no e4m3.

    >>> import numpy as np
    >>> from tilewright.ops import quantize
    >>> x, weight = (quantize(np.full((rows, 8), 2, np.float32), on="interpreter") for rows in (2, 3))
    >>> np.asarray(scaled_linear(*x, *weight, element="f32", on="interpreter")).round(4).tolist()
    [[32.0, 32.0, 32.0], [32.0, 32.0, 32.0]]
    """
    check_arrays("bias", "out", x=x, x_scales=x_scales, weight=weight, weight_scales=weight_scales, bias=bias, out=out)
    _check(x, x_scales, weight, weight_scales, bias, element)
    is_same = is_invariant(invariant)
    if is_jax(x):
        named: dict[str, Any] = {"element": element, "invariant": is_same}
        return through_jax("scaled_linear", x, x_scales, weight, weight_scales, bias, out=out, on=on, **named)
    if records(x, x_scales, weight, weight_scales, bias, on=on, out=out):
        return through_torch("scaled_linear", x, x_scales, weight, weight_scales, bias, element, is_same)
    shape = (*x.shape[:-1], weight.shape[0])
    if out is not None and (tuple(out.shape) != shape or _type(out) not in (element, _ELEMENTS[element])):
        raise ValueError(f"out has the shape {tuple(out.shape)} and the type {_type(out)}, and the result {shape} and {element}")
    if by_definition(on, x, x_scales, weight, weight_scales, bias, out):
        return stored(out, definitions.scaled_linear(x, x_scales, weight, weight_scales, bias, element, is_same))
    rows = flat_rows(x)
    scales = flat_rows(x_scales)
    made = empty(x, shape, element) if out is None else out
    named = {"scales": (scales, weight_scales), "invariant": is_same}
    if bias is not None:
        named |= {"function": "x + bias", "bias": bias}
    return product_into(made, shape, rows, weight, on, **named)


def _check(x: Any, x_scales: Any, weight: Any, weight_scales: Any, bias: Any, element: str) -> None:
    if element not in _ELEMENTS:
        raise ValueError(f"the element of a result is one of {', '.join(_ELEMENTS)}, not {element!r}")
    if len(x.shape) < 1 or len(weight.shape) != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x is (..., K) and weight (N,K), and they have the shapes {tuple(x.shape)} and {tuple(weight.shape)}")
    kinds = [_type(own) for own in (x, weight)]
    if kinds[0] not in ("e4m3", "e5m2") or kinds[0] != kinds[1]:
        raise TypeError(f"x and weight are both e4m3 or e5m2, and they are {kinds[0]} and {kinds[1]}")
    across = -(-x.shape[-1] // 128)
    for name, scales, rows in (("x", x_scales, tuple(x.shape[:-1])), ("weight", weight_scales, (weight.shape[0],))):
        allowed = [(*rows, across)] + ([(-(-rows[0] // 128), across)] if len(rows) == 1 else [])
        if tuple(scales.shape) not in allowed:
            text = " or ".join(str(own) for own in dict.fromkeys(allowed))
            raise ValueError(f"the scales of {name} are {text}, and have the shape {tuple(scales.shape)}")
        if _type(scales) != "f32":
            raise TypeError(f"the scales of {name} are float32, and they are {_type(scales)}")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError(f"bias has the shape {tuple(bias.shape)}, and weight {weight.shape[0]} rows")


def _type(array: Any) -> str:
    """The type of the elements of an array, of one that is traced too."""
    name = str(array.dtype).removeprefix("torch.")
    return {**_OPERANDS, "float32": "f32"}.get(name, name)
