"""Embeddings and rotary positions."""

from __future__ import annotations

import math
from typing import Any

from .. import _definitions as definitions
from .. import _native, gpu
from .._arrays import compact, empty, is_torch, zeros_like
from .._definitions import is_jax
from .._operators import Options, Result, again, alignment, launch, machine_of, planned
from ._common import by_definition, check_arrays, check_type, contiguous, records, through_jax, through_torch
from ._losses import as_i32


def embedding(indices: Any, table: Any, *, padding: int | None = None, on: str | None = None) -> Any:
    """Rows of a table, (V,N), by their numbers, of any shape: the result has the shape of ``indices``
    and the axis N. The derivative of the row ``padding`` is 0. A number that no row has gives NaN.

    >>> import numpy as np
    >>> embedding(np.array([1, 0, 1]), np.array([[1, 2], [3, 4]], np.float32)).tolist()
    [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    check_arrays(indices=indices, table=table)
    if len(table.shape) != 2:
        raise ValueError(f"a table is (V,N), and has the shape {tuple(table.shape)}")
    _check_padding(padding, table.shape[0])
    if is_jax(table):
        return through_jax("embedding", indices, table, padding=padding, on=on)
    if records(table, indices, on=on):
        return through_torch("embedding", indices, table, padding)
    return rows_of_table(indices, table, on)


def _check_padding(padding: Any, vocabulary: int) -> None:
    if padding is not None and not (hasattr(padding, "__index__") and 0 <= padding < vocabulary):
        raise ValueError(f"padding is a row of the table, from 0 to {vocabulary - 1}, or None, not {padding!r}")


def rows_of_table(indices: Any, table: Any, on: str | None) -> Any:
    """``embedding``, launched."""
    if by_definition(on, table, integers=(indices,)) or 0 in table.shape:
        return definitions.embedding(indices, table)
    numbers = contiguous(as_i32(indices), on)
    call = ("embedding",)
    if on is None and (found := again(call, (table, numbers))) is not None:
        return found
    (vocabulary, length), element = table.shape, _native.array_axes(table)[0]
    shape = (*indices.shape, length)
    if 0 in shape:
        return empty(table, shape, element)
    options: Options = (("vocabulary", vocabulary), ("length", length), ("element", element))
    kernels = planned("embedding", options, False, machine_of(table))
    inputs = {"table": contiguous(table, on), "indices": numbers}
    sizes = {"T": math.prod(indices.shape)}
    (y,) = launch(kernels, inputs, {"y": Result(shape, element)}, sizes, on, call=call, called=(table, numbers))
    return y


def embedding_backward(indices: Any, d_y: Any, vocabulary: int, *, padding: int | None = None, on: str | None = None) -> Any:
    """The derivative of ``embedding`` by a table of ``vocabulary`` rows: for each row the sum of the
    rows of ``d_y`` whose number it is, in the order of the numbers. The sums are of float32, and are
    rounded once.

    >>> import numpy as np
    >>> embedding_backward(np.array([1, 1]), np.array([[1, 2], [3, 4]], np.float32), 2).tolist()
    [[0.0, 0.0], [4.0, 6.0]]
    """
    check_arrays(indices=indices, d_y=d_y)
    if tuple(d_y.shape[:-1]) != tuple(indices.shape):
        raise ValueError(f"d_y has the shape {tuple(d_y.shape)}, and the numbers {tuple(indices.shape)}")
    if not hasattr(vocabulary, "__index__") or vocabulary < 0:
        raise ValueError(f"the rows of a table are counted from 0, not by {vocabulary!r}")
    _check_padding(padding, vocabulary)
    if is_jax(d_y):
        return through_jax("embedding_backward", indices, d_y, vocabulary, padding=padding, on=on)
    if records(d_y, indices, on=on):
        return through_torch("embedding_backward", indices, d_y, vocabulary, padding)
    return sums_of_rows(indices, d_y, vocabulary, padding, on)


def sums_of_rows(indices: Any, d_y: Any, vocabulary: int, padding: int | None, on: str | None) -> Any:
    """``embedding_backward``, launched."""
    if by_definition(on, d_y, integers=(indices,)):
        return definitions.embedding_backward(indices, d_y, vocabulary, padding, d_y)
    numbers = contiguous(as_i32(indices), on)
    rows = contiguous(d_y, on)
    call = ("embedding_backward", vocabulary, padding)
    if on is None and (found := again(call, (rows, numbers))) is not None:
        return found
    length, element = d_y.shape[-1], _native.array_axes(d_y)[0]
    shape = (vocabulary, length)
    if 0 in d_y.shape:
        return zeros_like(d_y, shape)
    options: Options = (
        ("vocabulary", vocabulary),
        ("length", length),
        ("element", element),
        ("gradient_element", element),
        ("padding", -1 if padding is None else padding),
    )
    kernels = planned("embedding", options, True, machine_of(d_y))
    inputs = {"d_y": rows, "indices": numbers}
    sizes = {"T": math.prod(indices.shape)}
    (d,) = launch(kernels, inputs, {"d_table": Result(shape, element)}, sizes, on, call=call, called=(rows, numbers))
    return d


def _angles(x: Any, cos: Any, sin: Any, positions: Any, heads: int) -> tuple[Any, Any]:
    """Tables as they broadcast to the pairs of ``x``."""
    if positions is not None:
        number = definitions.as_number(positions)
        inside = (number >= 0) & (number < cos.shape[0])
        if is_jax(x):
            # A number that no row has gives NaN: it is not known as a call is traced.
            cos, sin = (definitions.embedding(number, own) for own in (cos, sin))
        elif not bool(inside.all()):
            wrong = number[~inside].reshape(-1)[0]
            raise ValueError(f"positions are rows of cos and sin, from 0 to {cos.shape[0] - 1}, and one is {int(wrong)}")
        else:
            cos, sin = cos[number], sin[number]
    else:
        cos, sin = cos[: x.shape[3 - heads]], sin[: x.shape[3 - heads]]
    if len(cos.shape) == 2:
        cos, sin = cos[None], sin[None]
    return (cos[:, None], sin[:, None]) if heads == 1 else (cos[:, :, None], sin[:, :, None])


def rope(
    x: Any,
    cos: Any,
    sin: Any,
    *,
    positions: Any = None,
    interleaved: bool = False,
    heads: int = 1,
    backward: bool = False,
    on: str | None = None,
) -> Any:
    """Rotary position embeddings: pair ``i`` of a head at the position ``p`` is rotated by the angle
    whose cosine and sine are ``cos[p, i]`` and ``sin[p, i]``.

    ``x`` has four axes, (B,H,S,D), or (B,S,H,D) with ``heads=2``: the axis of the heads. A pair is an
    element of each half of a head, or with ``interleaved`` two neighbours. Tables are (L,R/2), where R
    elements of a head are rotated and the others are left alone. ``positions`` is (S) or (B,S); without
    them, positions count from 0. The result has the order of axes in memory that ``x`` has. With
    ``backward`` the rotation is by the negative angle, which gives the derivative by ``x``. There is no
    derivative by the tables: tensors of PyTorch that require one are refused.

    >>> import numpy as np
    >>> x = np.ones((1, 1, 2, 2), np.float32)
    >>> cos, sin = np.array([[1], [0]], np.float32), np.array([[0], [1]], np.float32)
    >>> rope(x, cos, sin)[0, 0].tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """
    check_arrays("positions", x=x, cos=cos, sin=sin, positions=positions)
    if len(x.shape) != 4 or heads not in (1, 2):
        raise ValueError(f"x is (B,H,S,D) with heads=1, or (B,S,H,D) with heads=2, and has the shape {tuple(x.shape)} with heads={heads}")
    batch, length, steps = x.shape[0], x.shape[3], x.shape[3 - heads]
    if len(cos.shape) != 2 or tuple(cos.shape) != tuple(sin.shape) or 2 * cos.shape[1] > length:
        raise ValueError(f"cos and sin are (L,R/2) with R up to {length}, and have the shapes {tuple(cos.shape)} and {tuple(sin.shape)}")
    if positions is None and cos.shape[0] < steps:
        raise ValueError(f"cos has {cos.shape[0]} rows, and x {steps} positions")
    if positions is not None and tuple(positions.shape) not in ((steps,), (batch, steps)):
        raise ValueError(f"positions are ({steps}) or ({batch},{steps}), not {tuple(positions.shape)}")
    if is_jax(x):
        named = {"positions": positions, "interleaved": interleaved, "heads": heads, "backward": backward}
        return through_jax("rope", x, cos, sin, **named, on=on)
    if records(x, cos, sin, positions, on=on):
        return through_torch("rope", x, cos, sin, positions, interleaved, heads, backward)
    return rotate(x, cos, sin, positions, interleaved, heads, backward, on)


def rotate(x: Any, cos: Any, sin: Any, positions: Any, interleaved: bool, heads: int, backward: bool, on: str | None) -> Any:
    """``rope``, launched."""
    check_type(cos, "sin", sin, "cos")
    if by_definition(on, x, cos, sin, integers=(positions,)):
        sign = -1 if backward else 1
        c, s = _angles(x, cos, sin, positions, heads)
        return definitions.rope(x, c, s * sign, interleaved)
    batch, length, steps, count = x.shape[0], x.shape[3], x.shape[3 - heads], x.shape[heads]
    call = ("rope", interleaved, heads, backward, positions is None)
    arrays = (x, cos, sin) if positions is None else (x, cos, sin, positions)
    if on is None and (found := again(call, arrays)) is not None:
        return found
    element, shape, strides, _, before = _native.array_axes(x)
    if 0 in shape:
        return empty(x, shape, element)
    source = x
    if before or (strides[3] != 1 and length > 1):
        source = empty(x, shape)
        gpu.relayout(x, source, on=on)
        strides = _native.array_axes(source)[2]
    order = sorted(range(3), key=lambda axis: -strides[axis])
    into = compact(shape, [*order, 3]) if is_torch(x) else compact(shape)
    named = {"x_batch_pitch": strides[0], "x_head_pitch": strides[heads], "x_pitch": strides[3 - heads]}
    named |= {"y_batch_pitch": into[0], "y_head_pitch": into[heads], "y_pitch": into[3 - heads]}
    extents = {"batch_pitch": batch, "head_pitch": count, "pitch": steps}
    # The pitch of an axis of one element is never used.
    facts = alignment(element, *(step for name, step in named.items() if extents[name[2:]] > 1))
    named = {name: step if extents[name[2:]] > 1 else -(-step // facts) * facts for name, step in named.items()}
    options: list[tuple[str, bool | int | float | str]] = [
        ("length", length),
        ("rotated", 2 * cos.shape[1]),
        ("heads", count),
        ("interleaved", interleaved),
        ("element", element),
        ("table_element", _native.array_axes(cos)[0]),
        ("alignment", facts),
    ]
    inputs = {"d_y" if backward else "x": source, "cos": contiguous(cos, on), "sin": contiguous(sin, on)}
    sizes = {"B": batch, "S": steps, "L": cos.shape[0], **named}
    if backward:
        # The derivative by the result is read with its pitches, and that by x is written with those of x.
        swapped = {"x": "y", "y": "x"}
        sizes |= {swapped[name[0]] + name[1:]: step for name, step in named.items()}
    if positions is not None:
        inputs["positions"] = contiguous(as_i32(positions), on)
        options += [("positions", True), ("shared", len(positions.shape) == 1)]
        sizes["positions_pitch"] = steps
    kernels = planned("rope", tuple(options), backward, machine_of(x))
    results = {"d_x" if backward else "y": Result(shape, element, strides=into)}
    (y,) = launch(kernels, inputs, results, sizes, on, call=call, called=arrays)
    return y
