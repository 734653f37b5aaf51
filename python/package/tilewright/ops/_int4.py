"""Linear layers whose weights have four bits."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .. import _native, gpu
from .._arrays import empty
from .._between import remembered
from .._definitions import INT4_GROUP, flat_rows, is_jax
from .._operators import Options, Result, again, alignment, launch, machine_of, planned
from ._common import (
    autocast,
    by_definition,
    check_arrays,
    check_out,
    contiguous,
    overlaps,
    records,
    stored,
    through_jax,
    through_torch,
)
from ._invariance import is_invariant
from ._products import linear, product_into


def quantize_int4(weight: Any) -> tuple[Any, Any]:
    """Weights, (N,K), as integers of four bits from -8 to 7, and their scales: the words of
    ``int4_linear``, (N,K/8) of int32, and the scales, (K/128,N), in the type of ``weight``. The scale of
    128 weights is their greatest magnitude over 7. It is computed by the library of the array, where
    the array is.

    >>> import numpy as np
    >>> words, scales = quantize_int4(np.full((1, 128), -3.5, np.float16))
    >>> words.shape, scales.tolist(), hex(int(words[0, 0]) & 0xFFFFFFFF)
    ((1, 16), [[0.5]], '0x99999999')
    """
    check_arrays(weight=weight)
    # Refuses what has no real numbers.
    by_definition("definition", weight)
    if len(weight.shape) != 2 or weight.shape[1] % INT4_GROUP:
        raise ValueError(f"weights are (N,K) with a multiple of {INT4_GROUP} along K, and have the shape {tuple(weight.shape)}")
    return definitions.quantize_int4(weight)


def int4_linear(
    x: Any,
    weight: Any,
    scales: Any,
    bias: Any = None,
    *,
    out: Any = None,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """``linear`` with weights of four bits: ``x`` is (..., K) of bf16 or f16, ``weight`` (N,K/8) words of
    int32, and ``scales``, (K/128,N), have a number in the type of ``x`` for each 128 weights of a row. A
    word has eight weights from -8 to 7; its bits, four by four from the lowest, are those of K 0 2 4 6
    1 3 5 7. ``quantize_int4`` makes both. ``bias`` is (N).

    The GEMM is that of ``gpu.gemm(x, weight, int4=scales)``: the accumulator of each 128 elements along K
    is multiplied by its scale and added in f32. Many rows may take less time, by the model of the device,
    if the weights are first written to a workspace in the type of ``x``; they are then multiplied by
    ``linear``. With ``invariant`` all numbers of rows take the first way, and a row has the same bits
    in each. The derivative by ``x`` takes the second way. Weights and scales have no derivatives.

    >>> import numpy as np
    >>> x, weight = np.ones((2, 128), np.float16), np.full((3, 128), -3.5, np.float16)
    >>> int4_linear(x, *quantize_int4(weight)).tolist()
    [[-448.0, -448.0, -448.0], [-448.0, -448.0, -448.0]]
    """
    check_arrays("bias", "out", x=x, weight=weight, scales=scales, bias=bias, out=out)
    x, bias = autocast(x, bias)
    _check(x, weight, scales, bias)
    is_same = is_invariant(invariant)
    if is_jax(x):
        return through_jax("int4_linear", x, weight, scales, bias, invariant=is_same, out=out, on=on)
    if records(x, weight, scales, bias, on=on, out=out):
        return through_torch("int4_linear", x, weight, scales, bias, is_same)
    shape = (*x.shape[:-1], weight.shape[0])
    if out is not None:
        check_out(out, shape, x, "float32")
    if by_definition(on, x, scales, bias, out, integers=(weight,)):
        return stored(out, definitions.int4_linear(x, weight, scales, bias, is_same))
    if 0 in shape:
        return empty(x, shape) if out is None else out
    rows = flat_rows(x)
    sizes = rows.shape[0], shape[-1], rows.shape[1]
    if not is_same and _is_faster_unpacked(_native.array_axes(x)[0], sizes, machine_of(x)):
        return linear(x, int4_weights(weight, scales, on=on), bias, out=out, invariant=False, on=on)
    named: dict[str, Any] = {"int4": scales, "invariant": is_same, **({} if bias is None else {"function": "x + bias", "bias": bias})}
    into = None if overlaps(out, x, scales, bias) else out
    y = product_into(into, shape, rows, weight, on, **named)
    return y if into is out else gpu.relayout(y, out, on=on)


@remembered
def _is_faster_unpacked(element: str, sizes: tuple[int, int, int], machine: str) -> bool:
    """Whether weights that are written in 16 bits first take less time, for M, N and K."""
    return _native.is_faster_unpacked(element, sizes, machine)


def int4_weights(weight: Any, scales: Any, *, on: str | None = None) -> Any:
    """The weights of ``int4_linear``, (N,K), as numbers in the type of the scales.

    >>> import numpy as np
    >>> int4_weights(*quantize_int4(np.full((1, 128), -3.5, np.float16)))[0, :2].tolist()
    [-3.5, -3.5]
    """
    check_arrays(weight=weight, scales=scales)
    if by_definition(on, scales, integers=(weight,)):
        return definitions.narrow(definitions.int4_weights(weight, scales), scales)
    element = _native.array_axes(scales)[0]
    columns, length = weight.shape[0], 8 * weight.shape[1]
    if 0 in (columns, length):
        return empty(scales, (columns, length))
    options: Options = (("length", length), ("element", element), ("alignment", alignment(element, columns)))
    # The first array says of which library the result is.
    inputs = {"scales": contiguous(scales, on), "w": contiguous(weight, on)}
    arrays, call = tuple(inputs.values()), ("int4_weights", options)
    if on is None and (found := again(call, arrays)) is not None:
        return found
    kernels = planned("int4_weights", options, False, machine_of(scales))
    results = {"y": Result((columns, length), element)}
    return launch(kernels, inputs, results, {"N": columns}, on, call=call, called=arrays)[0]


def int4_linear_backward(
    weight: Any, scales: Any, d_y: Any, *, invariant: bool | None = None, on: str | None = None
) -> Any:
    """The derivative of ``int4_linear`` by ``x``: a GEMM with the weights as numbers of 16 bits, which are
    written to a workspace. ``invariant`` is that of ``linear_backward``.

    >>> import numpy as np
    >>> words, scales = quantize_int4(np.full((3, 128), -3.5, np.float16))
    >>> int4_linear_backward(words, scales, np.ones((2, 3), np.float16))[:, 0].tolist()
    [-10.5, -10.5]
    """
    check_arrays(weight=weight, scales=scales, d_y=d_y)
    is_same = is_invariant(invariant)
    if is_jax(d_y):
        return through_jax("int4_linear_backward", weight, scales, d_y, invariant=is_same, on=on)
    if records(d_y, weight, scales, on=on):
        return through_torch("int4_linear_backward", weight, scales, d_y, is_same)
    if by_definition(on, scales, d_y, integers=(weight,)):
        return definitions.int4_linear_backward(weight, scales, d_y, is_same)
    numbers = int4_weights(weight, scales, on=on)
    made = gpu.gemm(flat_rows(d_y), numbers.T, invariant=is_same, on=on)
    return made.reshape((*d_y.shape[:-1], numbers.shape[1]))


def _check(x: Any, weight: Any, scales: Any, bias: Any) -> None:
    shapes = [tuple(own.shape) for own in (x, weight, scales)]
    length = shapes[0][-1] if shapes[0] else 0
    if len(shapes[1]) != 2 or length % INT4_GROUP or shapes[1][1] * 8 != length:
        raise ValueError(
            f"x is (..., K) and weight (N,K/8) words, K a multiple of {INT4_GROUP}, and they have the shapes {shapes[0]} and {shapes[1]}"
        )
    if shapes[2] != (length // INT4_GROUP, shapes[1][0]):
        raise ValueError(f"scales are {(length // INT4_GROUP, shapes[1][0])}, and have the shape {shapes[2]}")
    if bias is not None and tuple(bias.shape) != (shapes[1][0],):
        raise ValueError(f"bias has the shape {tuple(bias.shape)}, and weight {shapes[1][0]} rows")
    if str(weight.dtype).removeprefix("torch.") not in ("int32", "i32"):
        raise TypeError(f"the words of weights are int32, and they are {weight.dtype}")
    if any(own is not None and own.dtype != x.dtype for own in (scales, bias)):
        raise TypeError(f"scales and bias have the type of x, {x.dtype}")
