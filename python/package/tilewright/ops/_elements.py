"""Functions of elements, gated products and dropout."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .. import gpu
from .._arrays import compact, empty
from .._definitions import is_jax
from .._operators import Matrix, Options, Result, again, alignment, launch, machine_of, matrix, planned
from ._common import (
    by_definition,
    check_arrays,
    check_same,
    overlaps,
    packed_rows,
    records,
    repeated,
    rows_of,
    stored,
    strides_of,
    through_jax,
    through_torch,
)


def activation(x: Any, function: str = "silu", *, up: Any = None, out: Any = None, on: str | None = None) -> Any:
    """A function of each element: "identity", "relu", "relu_squared", "sigmoid", "silu", "tanh",
    "gelu" (by the error function) or "gelu_tanh"; times ``up``, if it is given, which is then a
    gated product.

    >>> import numpy as np
    >>> activation(np.array([-1, 2], np.float32), "relu").tolist()
    [0.0, 2.0]
    """
    if function not in definitions.FUNCTIONS:
        raise ValueError(f"there is no function {function!r}: there are {', '.join(definitions.FUNCTIONS)}")
    if on is None:
        found = repeated(("activation", function, up is None), (x, up), "activation", (x, up, function), out)
        if found is not None:
            return found
    check_arrays("up", "out", x=x, up=up, out=out)
    if is_jax(x):
        return through_jax("activation", x, function, up=up, out=out, on=on)
    if records(x, up, on=on, out=out):
        return through_torch("activation", x, up, function)
    return activate(x, function, up, out, on)


def activate(x: Any, function: str, up: Any, out: Any, on: str | None) -> Any:
    """``activation``, launched."""
    if overlaps(out, x, up):
        check_same(x, "out", out)
        return stored(out, activate(x, function, up, None, on))
    arrays = (x,) if up is None else (x, up)
    call = ("activation", function, up is None)
    if on is None and (found := again(call, arrays, None if out is None else (out,))) is not None:
        return found
    for name, array in (("up", up), ("out", out)):
        if array is not None:
            check_same(x, name, array)
    if by_definition(on, *arrays, out):
        return stored(out, definitions.activation(function, x, up))
    rows = rows_of(on, **({"x": x} if up is None else {"gate": x, "up": up}))
    own = next(iter(rows.values()))
    shape = tuple(x.shape)
    given = out if out is not None and tuple(strides_of(out)) == compact(shape) else None
    if 0 in shape:
        return out if out is not None else empty(x, shape, own.element)
    facts, sizes = _flattened(rows, "y")
    options: Options = (("function", function), ("gated", up is not None), ("element", own.element), ("alignment", facts))
    kernels = planned("activation", options, False, machine_of(x))
    inputs = {key: own.array for key, own in rows.items()}
    is_simple = out is None or given is not None
    results = {"y": Result(shape, own.element, given)}
    (y,) = launch(kernels, inputs, results, sizes, on, call=call if is_simple else None, called=arrays)
    return y if is_simple else gpu.relayout(y, out, on=on)


def _flattened(rows: dict[str, Matrix], *made: str) -> tuple[int, dict[str, int]]:
    """The alignment and the sizes of a launch on elements: where all matrices are contiguous, they
    are one row.
    """
    first = next(iter(rows.values()))
    count, length = first.rows, first.length
    pitches = {name: own.pitch for name, own in rows.items()}
    pitches.update(dict.fromkeys(made, length))
    if all(pitch == length for pitch in pitches.values()):
        count, length = 1, count * length
        pitches = dict.fromkeys(pitches, length)
    facts = alignment(first.element, length, *pitches.values())
    return facts, {"M": count, "N": length, **{f"{name}_pitch": pitch for name, pitch in pitches.items()}}


def activation_backward(x: Any, d_y: Any, function: str = "silu", *, up: Any = None, on: str | None = None) -> tuple[Any, Any]:
    """The derivatives of ``activation`` by ``x`` and by ``up``; the second is None without ``up``.

    >>> import numpy as np
    >>> x, one = np.array([-1, 2], np.float32), np.ones(2, np.float32)
    >>> activation_backward(x, one, "relu")[0].tolist()
    [0.0, 1.0]
    """
    check_arrays("up", x=x, d_y=d_y, up=up)
    if function not in definitions.FUNCTIONS:
        raise ValueError(f"there is no function {function!r}: there are {', '.join(definitions.FUNCTIONS)}")
    if is_jax(x):
        return through_jax("activation_backward", x, d_y, function, up=up, on=on)  # type: ignore[no-any-return]
    if records(x, up, d_y, on=on):
        d_x, d_up = through_torch("activation_backward", x, up, d_y, function)
        return d_x, None if up is None else d_up
    d_x, d_up = activate_backward(x, d_y, function, up, on)
    return d_x, d_up


def activate_backward(
    x: Any, d_y: Any, function: str, up: Any, on: str | None, with_result: bool = False
) -> tuple[Any, ...]:
    """``activation_backward``, launched; ``with_result``, followed by the result of ``activation``, which
    the same kernel computes.
    """
    arrays = (x, d_y) if up is None else (x, up, d_y)
    call = ("activation_backward", function, up is None, with_result)
    if on is None and (found := again(call, arrays)) is not None:
        made = found if isinstance(found, tuple) else (found,)
        return made if up is not None else (made[0], None, *made[1:])
    for name, array in (("d_y", d_y), ("up", up)):
        if array is not None:
            check_same(x, name, array)
    if by_definition(on, *arrays):
        derivatives = definitions.activation_backward(function, x, up, d_y)
        return (*derivatives, definitions.activation(function, x, up)) if with_result else derivatives
    rows = rows_of(on, **({"x": x, "y": d_y} if up is None else {"gate": x, "up": up, "y": d_y}))
    shape = tuple(x.shape)
    names = [name for name in rows if name != "y"]
    # The derivatives are contiguous, and have the layout of what they are of; so has the result, which
    # has the pitch of the derivative by it.
    for name in list(rows) if with_result else names:
        rows[name] = packed_rows(rows[name], on)
    own = rows[names[0]]
    results = {f"d_{name}": Result(shape, own.element) for name in names}
    if with_result:
        results["y"] = Result(shape, own.element)
    if 0 in shape:
        made = tuple(empty(x, shape, own.element) for _ in results)
    else:
        facts, sizes = _flattened(rows)
        options: Options = (("function", function), ("gated", up is not None), ("element", own.element), ("alignment", facts))
        kernels = planned("activation", options + ((("with_result", True),) if with_result else ()), True, machine_of(x))
        inputs = {name: rows[name].array for name in names}
        inputs["d_y"] = rows["y"].array
        made = launch(kernels, inputs, results, sizes, on, call=call, called=arrays)
    return made if up is not None else (made[0], None, *made[1:])


def silu(x: Any, **named: Any) -> Any:
    """``x / (1 + exp(-x))``: ``activation`` with this function.

    >>> import numpy as np
    >>> silu(np.zeros(2, np.float32)).tolist()
    [0.0, 0.0]
    """
    return activation(x, "silu", **named)


def relu(x: Any, **named: Any) -> Any:
    """``max(x, 0)``: ``activation`` with this function.

    >>> import numpy as np
    >>> relu(np.array([-1, 1], np.float32)).tolist()
    [0.0, 1.0]
    """
    return activation(x, "relu", **named)


def gelu(x: Any, *, approximate: str = "none", **named: Any) -> Any:
    """``x`` times the distribution function of the normal distribution, by the error function, or
    with ``approximate="tanh"`` by a hyperbolic tangent.

    >>> import numpy as np
    >>> gelu(np.zeros(2, np.float32)).tolist()
    [0.0, 0.0]
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f'approximate is "none" or "tanh", not {approximate!r}')
    return activation(x, "gelu" if approximate == "none" else "gelu_tanh", **named)


def swiglu(gate: Any, up: Any, **named: Any) -> Any:
    """``silu(gate) * up``.

    >>> import numpy as np
    >>> swiglu(np.zeros(2, np.float32), np.ones(2, np.float32)).tolist()
    [0.0, 0.0]
    """
    return activation(gate, "silu", up=up, **named)


def geglu(gate: Any, up: Any, *, approximate: str = "none", **named: Any) -> Any:
    """``gelu(gate) * up``.

    >>> import numpy as np
    >>> geglu(np.zeros(2, np.float32), np.ones(2, np.float32)).tolist()
    [0.0, 0.0]
    """
    return gelu(gate, approximate=approximate, up=up, **named)


def dropout(x: Any, probability: float, seed: int, *, out: Any = None, on: str | None = None) -> Any:
    """Each element over ``1 - probability``, or 0 with this probability.

    The generator is Philox4x32-10: element ``i`` in row-major order is 0 where word 0 of the counter
    ``(i, 0, 0, 0)`` with the key ``(seed, 0)``, read as an integer with a sign, is below the share
    ``probability`` of all integers. The derivative by ``x`` is ``dropout(d_y, probability, seed)``.

    >>> import numpy as np
    >>> sorted(set(dropout(np.ones(100, np.float32), 0.5, seed=1).tolist()))
    [0.0, 2.0]
    """
    if not isinstance(seed, int) and (is_jax(seed) or not hasattr(seed, "__index__")):
        raise TypeError(f"a seed is an integer of 32 bits that is known as a call is traced, not {type(seed).__name__}")
    if not 0 <= probability < 1:
        raise ValueError(f"a probability of dropout is from 0, and less than 1, not {probability}")
    if not -(2**31) <= seed < 2**31:
        raise ValueError(f"a seed is an integer of 32 bits, not {seed}")
    check_arrays("out", x=x, out=out)
    if is_jax(x):
        return through_jax("dropout", x, probability, seed, out=out, on=on)
    if records(x, on=on, out=out):
        return through_torch("dropout", x, probability, seed)
    return drop(x, probability, seed, out, on)


def drop(x: Any, probability: float, seed: int, out: Any, on: str | None) -> Any:
    """``dropout``, launched."""
    if overlaps(out, x):
        check_same(x, "out", out)
        return stored(out, drop(x, probability, seed, None, on))
    call = ("dropout", probability)
    numbers = {"seed": seed}
    if on is None and (found := again(call, (x,), None if out is None else (out,), numbers)) is not None:
        return found
    if out is not None:
        check_same(x, "out", out)
    if by_definition(on, x, out):
        return stored(out, definitions.dropout(x, probability, seed))
    shape = tuple(x.shape)
    own = packed_rows(matrix(x, on), on)
    count = own.rows * own.length
    if count >= 2**31:
        raise ValueError(f"dropout numbers its elements by 31 bits, and x has {count}")
    if 0 in shape:
        return out if out is not None else empty(x, shape, own.element)
    given = out if out is not None and tuple(strides_of(out)) == compact(shape) else None
    options: Options = (("probability", float(probability)), ("element", own.element), ("alignment", alignment(own.element, count)))
    kernels = planned("dropout", options, False, machine_of(x))
    is_simple = out is None or given is not None
    results = {"y": Result(shape, own.element, given)}
    (y,) = launch(
        kernels, {"x": own.array}, results, {"N": count}, on, numbers=numbers, call=call if is_simple else None, called=(x,)
    )
    return y if is_simple else gpu.relayout(y, out, on=on)
