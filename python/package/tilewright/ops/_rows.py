"""Softmax and norms of rows."""

from __future__ import annotations

from typing import Any

from .. import _definitions as definitions
from .. import _native, gpu
from .._arrays import compact, empty, fill
from .._definitions import is_jax
from .._operators import Matrix, Options, Result, again, alignment, launch, machine_of, planned
from ._common import (
    by_definition,
    check_arrays,
    check_same,
    check_vector,
    common_alignment,
    contiguous,
    overlaps,
    packed_rows,
    records,
    repeated,
    rows_of,
    sizes_of_rows,
    stored,
    strides_of,
    through_jax,
    through_torch,
    type_name,
)


def _last(x: Any, axis: int) -> Any:
    """The array with an axis moved to the end."""
    axes = len(x.shape)
    if not -max(axes, 1) <= axis < max(axes, 1):
        raise ValueError(f"x has {axes} axes, and the axis {axis} is none of them")
    if axes == 0 or axis % axes == axes - 1:
        return x
    return definitions.namespace(x).moveaxis(x, axis, -1)


def _moved_back(y: Any, x: Any, axis: int) -> Any:
    axes = len(x.shape)
    if axes == 0 or axis % axes == axes - 1:
        return y
    return definitions.namespace(y).moveaxis(y, -1, axis)


def along(name: str, x: Any, axis: int, out: Any, on: str | None) -> Any:
    """An operator of rows along an axis, into an array of the same shape."""
    if overlaps(out, x):
        check_same(x, "out", out)
        return stored(out, along(name, x, axis, None, on))
    call = (name, axis)
    if on is None and (found := again(call, (x,), None if out is None else (out,))) is not None:
        return found
    if out is not None:
        check_same(x, "out", out)
    if by_definition(on, x, out):
        y = getattr(definitions, name)(_last(x, axis))
        return stored(out, _moved_back(y, x, axis))
    ordered = _last(x, axis)
    rows = rows_of(on, x=ordered)
    own = rows["x"]
    facts = common_alignment(rows)
    options: Options = (("length", own.length), ("element", own.element), ("alignment", facts))
    given = out if out is not None and ordered is x and tuple(strides_of(out)) == compact(tuple(x.shape)) else None
    shape = tuple(ordered.shape)
    if 0 in shape:
        return out if out is not None else empty(x, tuple(x.shape), own.element)
    kernels = planned(name, options, False, machine_of(x))
    sizes = sizes_of_rows(rows, facts, y=own.length)
    results = {"y": Result(shape, own.element, given)}
    is_simple = ordered is x and (out is None or given is not None)
    (y,) = launch(kernels, {"x": own.array}, results, sizes, on, call=call if is_simple else None, called=(x,))
    if given is not None:
        return out
    y = _moved_back(y, x, axis)
    return y if out is None else gpu.relayout(y, out, on=on)


def along_backward(name: str, x: Any, d_y: Any, axis: int, on: str | None) -> Any:
    call = (f"{name}_backward", axis)
    if on is None and (found := again(call, (x, d_y))) is not None:
        return found
    check_same(x, "d_y", d_y)
    if by_definition(on, x, d_y):
        d_x = getattr(definitions, f"{name}_backward")(_last(x, axis), _last(d_y, axis))
        return _moved_back(d_x, x, axis)
    ordered = _last(x, axis)
    rows = rows_of(on, x=ordered, d_y=_last(d_y, axis))
    own = rows["x"]
    shape = tuple(ordered.shape)
    if 0 in shape:
        return empty(x, tuple(x.shape), own.element)
    # The derivative has the layout of x for the kernels: rows as far apart as those of x.
    if own.pitch != own.length:
        own = rows["x"] = packed_rows(own, on)
    facts = common_alignment(rows)
    options: Options = (("length", own.length), ("element", own.element), ("alignment", facts))
    kernels = planned(name, options, True, machine_of(x))
    sizes = sizes_of_rows({"x": own, "y": rows["d_y"]}, facts)
    results = {"d_x": Result(shape, own.element)}
    inputs = {"x": own.array, "d_y": rows["d_y"].array}
    called = (x, d_y) if ordered is x else None
    (d_x,) = launch(kernels, inputs, results, sizes, on, call=call, called=called)
    return _moved_back(d_x, x, axis)


def softmax(x: Any, *, axis: int = -1, out: Any = None, on: str | None = None) -> Any:
    """``exp(x)`` over the sum of ``exp(x)`` along an axis.

    >>> import numpy as np
    >>> softmax(np.zeros((2, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    if on is None and (found := repeated(("softmax", axis), (x,), "softmax", (x, axis), out)) is not None:
        return found
    check_arrays(x=x)
    if is_jax(x):
        return through_jax("softmax", x, axis=axis, out=out, on=on)
    if records(x, on=on, out=out):
        return through_torch("softmax", x, axis)
    return along("softmax", x, axis, out, on)


def softmax_backward(x: Any, d_y: Any, *, axis: int = -1, on: str | None = None) -> Any:
    """The derivative of ``softmax`` by ``x``: ``y (d_y - sum(y d_y))``, where ``y`` is the softmax.

    >>> import numpy as np
    >>> softmax_backward(np.zeros((1, 2), np.float32), np.array([[1, 0]], np.float32)).tolist()
    [[0.25, -0.25]]
    """
    check_arrays(x=x, d_y=d_y)
    if is_jax(x):
        return through_jax("softmax_backward", x, d_y, axis=axis, on=on)
    if records(x, d_y, on=on):
        return through_torch("softmax_backward", x, d_y, axis)
    return along_backward("softmax", x, d_y, axis, on)


def log_softmax(x: Any, *, axis: int = -1, out: Any = None, on: str | None = None) -> Any:
    """The logarithm of the softmax along an axis.

    >>> import numpy as np
    >>> np.exp(log_softmax(np.zeros((1, 4), np.float32))).round(6).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    if on is None and (found := repeated(("log_softmax", axis), (x,), "log_softmax", (x, axis), out)) is not None:
        return found
    check_arrays(x=x)
    if is_jax(x):
        return through_jax("log_softmax", x, axis=axis, out=out, on=on)
    if records(x, on=on, out=out):
        return through_torch("log_softmax", x, axis)
    return along("log_softmax", x, axis, out, on)


def log_softmax_backward(x: Any, d_y: Any, *, axis: int = -1, on: str | None = None) -> Any:
    """The derivative of ``log_softmax`` by ``x``: ``d_y - softmax(x) sum(d_y)``.

    >>> import numpy as np
    >>> log_softmax_backward(np.zeros((1, 2), np.float32), np.array([[1, 0]], np.float32)).tolist()
    [[0.5, -0.5]]
    """
    check_arrays(x=x, d_y=d_y)
    if is_jax(x):
        return through_jax("log_softmax_backward", x, d_y, axis=axis, on=on)
    if records(x, d_y, on=on):
        return through_torch("log_softmax_backward", x, d_y, axis)
    return along_backward("log_softmax", x, d_y, axis, on)


def _norm_call(name: str, weight: Any, bias: Any, residual: Any, epsilon: float, less_one: bool) -> Any:
    """The key of a call of a norm on arrays in the order x, residual, weight, bias."""
    return name, epsilon, less_one, residual is None, weight is None, bias is None


def norm(
    name: str,
    x: Any,
    weight: Any,
    bias: Any,
    residual: Any,
    epsilon: float,
    less_one: bool,
    out: Any,
    on: str | None,
) -> Any:
    if residual is None and overlaps(out, x, weight, bias):
        check_same(x, "out", out)
        return stored(out, norm(name, x, weight, bias, None, epsilon, less_one, None, on))
    vectors = {key: array for key, array in (("weight", weight), ("bias", bias)) if array is not None}
    call = _norm_call(name, weight, bias, residual, epsilon, less_one)
    arrays = (x, *(() if residual is None else (residual,)), *vectors.values())
    if on is None and (found := again(call, arrays, None if out is None else (out,))) is not None:
        return found
    for key, array in vectors.items():
        check_vector(x, key, array)
    _check_vectors(vectors)
    if residual is not None:
        check_same(x, "residual", residual)
    if out is not None:
        check_same(x, "out", out)
        if residual is not None:
            raise TypeError("with a residual there are two results: leave `out` out")
    is_centred = name == "layer_norm"
    if by_definition(on, *arrays, out):
        source = x
        if residual is not None:
            source = definitions.narrow(definitions.wide(x) + definitions.wide(residual), x)
        y = definitions.norm(source, weight, bias, epsilon, is_centred, less_one)
        return stored(out, y) if residual is None else (y, source)
    rows = rows_of(on, x=x, **({} if residual is None else {"residual": residual}))
    own = rows["x"]
    shape = tuple(x.shape)
    facts = common_alignment(rows)
    options = _norm_options(name, own, facts, epsilon, less_one, residual is not None, vectors)
    given = out if out is not None and tuple(strides_of(out)) == compact(shape) else None
    results = {"y": Result(shape, own.element, given)}
    if residual is not None:
        results["sum"] = Result(shape, own.element)
    if 0 in shape:
        made = tuple(empty(x, shape, own.element) for _ in results)
        return out if out is not None else made[0] if residual is None else made
    inputs = {key: own.array for key, own in rows.items()}
    inputs.update({key: contiguous(array, on) for key, array in vectors.items()})
    kernels = planned(name, options, False, machine_of(x))
    sizes = sizes_of_rows(rows, facts, y=own.length, sum=own.length)
    is_simple = out is None or given is not None
    made = launch(kernels, inputs, results, sizes, on, call=call if is_simple else None, called=arrays)
    if residual is not None:
        return made
    if out is None or given is not None:
        return made[0]
    return gpu.relayout(made[0], out, on=on)


def _check_vectors(vectors: dict[str, Any]) -> None:
    types = {type_name(array) for array in vectors.values()}
    if len(types) > 1:
        raise ValueError(f"the weights and the bias have one type, not {' and '.join(sorted(types))}")


def _norm_options(
    name: str, own: Matrix, facts: int, epsilon: float, less_one: bool, residual: bool, vectors: dict[str, Any]
) -> Options:
    options: list[tuple[str, bool | int | float | str]] = [
        ("length", own.length),
        ("element", own.element),
        ("alignment", facts),
        ("epsilon", float(epsilon)),
        ("residual", residual),
    ]
    if vectors:
        options.append(("weight_element", _native.array_axes(next(iter(vectors.values())))[0]))
    options.extend((key, True) for key in vectors)
    if less_one:
        options.append(("weight_less_one", True))
    return tuple(options)


def norm_backward(
    name: str,
    x: Any,
    weight: Any,
    bias: Any,
    d_y: Any,
    d_sum: Any,
    epsilon: float,
    less_one: bool,
    on: str | None,
) -> tuple[Any, Any, Any]:
    vectors = {key: array for key, array in (("weight", weight), ("bias", bias)) if array is not None}
    call = (f"{name}_backward", epsilon, less_one, d_sum is None, *vectors)
    arrays = (x, d_y, *(() if d_sum is None else (d_sum,)), *vectors.values())
    found = again(call, arrays) if on is None else None
    if found is None:
        found = _norm_backward_anew(name, x, weight, bias, vectors, d_y, d_sum, epsilon, less_one, on, call, arrays)
    found = iter(found if isinstance(found, tuple) else (found,))
    return next(found), None if weight is None else next(found), None if bias is None else next(found)


def _norm_backward_anew(
    name: str,
    x: Any,
    weight: Any,
    bias: Any,
    vectors: dict[str, Any],
    d_y: Any,
    d_sum: Any,
    epsilon: float,
    less_one: bool,
    on: str | None,
    call: Any,
    arrays: tuple[Any, ...],
) -> tuple[Any, ...]:
    check_same(x, "d_y", d_y)
    if d_sum is not None:
        check_same(x, "d_sum", d_sum)
    for key, array in vectors.items():
        check_vector(x, key, array)
    _check_vectors(vectors)
    if by_definition(on, *arrays):
        defined = definitions.norm_backward(x, weight, bias, d_y, d_sum, epsilon, name == "layer_norm", less_one)
        return tuple(own for own in defined if own is not None)
    of = "x" if d_sum is None else "sum"
    rows = rows_of(on, **{of: x, "y": d_y, **({} if d_sum is None else {"same": d_sum})})
    own = rows[of] = packed_rows(rows[of], on)
    shape = tuple(x.shape)
    facts = common_alignment(rows)
    # A plan is for about as many rows: those of the next power of two.
    about: Options = (("about_rows", 1 << max(own.rows - 1, 0).bit_length()),)
    options = _norm_options(name, own, facts, epsilon, less_one, d_sum is not None, vectors) + about
    results = {f"d_{of}": Result(shape, own.element)}
    for key, array in vectors.items():
        results[f"d_{key}"] = Result((own.length,), _native.array_axes(array)[0])
    if 0 in shape:
        made = [empty(x, result.shape, result.element) for result in results.values()]
        for array in made[1:]:
            if own.length:
                fill(array, 0)
        return tuple(made)
    inputs = {of: own.array, "d_y": rows["y"].array}
    if d_sum is not None:
        inputs["d_same"] = rows["same"].array
    inputs.update({key: contiguous(array, on) for key, array in vectors.items()})
    kernels = planned(name, options, True, machine_of(x))
    return launch(kernels, inputs, results, sizes_of_rows(rows, facts), on, call=call, called=arrays)


def rms_norm(
    x: Any,
    weight: Any = None,
    *,
    residual: Any = None,
    epsilon: float = 1e-5,
    weight_less_one: bool = False,
    out: Any = None,
    on: str | None = None,
) -> Any:
    """Each row along the last axis over the root of its mean square: ``x / sqrt(mean(x^2) + epsilon)``,
    times ``weight``, or times ``weight + 1`` with ``weight_less_one``.

    With ``residual`` the norm is that of ``x + residual``, and the result is a pair: the norm, and
    the sum, rounded to the type of ``x``.

    >>> import numpy as np
    >>> rms_norm(np.full((1, 4), 3, np.float32), np.full(4, 2, np.float32), epsilon=0.0).tolist()
    [[2.0, 2.0, 2.0, 2.0]]
    """
    if on is None and (out is None or residual is None):
        call = _norm_call("rms_norm", weight, None, residual, epsilon, weight_less_one)
        if residual is None:
            found = repeated(call, (x, weight), "rms_norm", (x, weight, epsilon, weight_less_one), out)
        else:
            arguments = (x, weight, residual, epsilon, weight_less_one)
            found = repeated(call, (x, residual, weight), "rms_norm_residual", arguments)
        if found is not None:
            return found
    check_arrays("weight", "residual", x=x, weight=weight, residual=residual)
    if is_jax(x):
        options = {"epsilon": epsilon, "weight_less_one": weight_less_one, "out": out, "on": on}
        return through_jax("rms_norm", x, weight, residual=residual, **options)
    if records(x, weight, residual, on=on, out=out):
        if residual is None:
            return through_torch("rms_norm", x, weight, epsilon, weight_less_one)
        return through_torch("rms_norm_residual", x, weight, residual, epsilon, weight_less_one)
    return norm("rms_norm", x, weight, None, residual, epsilon, weight_less_one, out, on)


def rms_norm_backward(
    x: Any,
    weight: Any,
    d_y: Any,
    *,
    d_sum: Any = None,
    epsilon: float = 1e-5,
    weight_less_one: bool = False,
    on: str | None = None,
) -> tuple[Any, Any]:
    """The derivatives of ``rms_norm`` by ``x`` and by ``weight``. ``d_sum`` is added to the first:
    the derivative by the sum of a norm with a residual, whose ``x`` is that sum.

    The sum over rows for ``weight`` has a fixed order: two calls give the same bits.

    >>> import numpy as np
    >>> x = np.array([[1, 1]], np.float32)
    >>> [own.tolist() for own in rms_norm_backward(x, np.ones(2, np.float32), x, epsilon=0.0)]
    [[[0.0, 0.0]], [1.0, 1.0]]
    """
    check_arrays("weight", "d_sum", x=x, weight=weight, d_y=d_y, d_sum=d_sum)
    if is_jax(x):
        options = {"d_sum": d_sum, "epsilon": epsilon, "weight_less_one": weight_less_one, "on": on}
        return through_jax("rms_norm_backward", x, weight, d_y, **options)  # type: ignore[no-any-return]
    if records(x, weight, d_y, d_sum, on=on):
        d_x, d_weight = through_torch("rms_norm_backward", x, weight, d_y, d_sum, epsilon, weight_less_one)
        return d_x, None if weight is None else d_weight
    d_x, d_weight, _ = norm_backward("rms_norm", x, weight, None, d_y, d_sum, epsilon, weight_less_one, on)
    return d_x, d_weight


def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    residual: Any = None,
    epsilon: float = 1e-5,
    out: Any = None,
    on: str | None = None,
) -> Any:
    """Each row along the last axis less its mean, over the root of its variance: ``(x - mean) /
    sqrt(variance + epsilon) * weight + bias``. ``residual`` is that of ``rms_norm``.

    >>> import numpy as np
    >>> layer_norm(np.array([[1, 3]], np.float32), epsilon=0.0).tolist()
    [[-1.0, 1.0]]
    """
    if on is None and (out is None or residual is None):
        call = _norm_call("layer_norm", weight, bias, residual, epsilon, False)
        if residual is None:
            found = repeated(call, (x, weight, bias), "layer_norm", (x, weight, bias, epsilon), out)
        else:
            arguments = (x, weight, bias, residual, epsilon)
            found = repeated(call, (x, residual, weight, bias), "layer_norm_residual", arguments)
        if found is not None:
            return found
    check_arrays("weight", "bias", "residual", x=x, weight=weight, bias=bias, residual=residual)
    if is_jax(x):
        return through_jax("layer_norm", x, weight, bias, residual=residual, epsilon=epsilon, out=out, on=on)
    if records(x, weight, bias, residual, on=on, out=out):
        if residual is None:
            return through_torch("layer_norm", x, weight, bias, epsilon)
        return through_torch("layer_norm_residual", x, weight, bias, residual, epsilon)
    return norm("layer_norm", x, weight, bias, residual, epsilon, False, out, on)


def layer_norm_backward(
    x: Any,
    weight: Any,
    bias: Any,
    d_y: Any,
    *,
    d_sum: Any = None,
    epsilon: float = 1e-5,
    on: str | None = None,
) -> tuple[Any, Any, Any]:
    """The derivatives of ``layer_norm`` by ``x``, ``weight`` and ``bias``; of what is None, None.

    >>> import numpy as np
    >>> x, one = np.array([[1, 3]], np.float32), np.ones(2, np.float32)
    >>> layer_norm_backward(x, one, one, one.reshape(1, 2), epsilon=0.0)[2].tolist()
    [1.0, 1.0]
    """
    check_arrays("weight", "bias", "d_sum", x=x, weight=weight, bias=bias, d_y=d_y, d_sum=d_sum)
    if is_jax(x):
        options = {"d_sum": d_sum, "epsilon": epsilon, "on": on}
        return through_jax("layer_norm_backward", x, weight, bias, d_y, **options)  # type: ignore[no-any-return]
    if records(x, weight, bias, d_y, d_sum, on=on):
        d_x, d_weight, d_bias = through_torch("layer_norm_backward", x, weight, bias, d_y, d_sum, epsilon)
        return d_x, None if weight is None else d_weight, None if bias is None else d_bias
    return norm_backward("layer_norm", x, weight, bias, d_y, d_sum, epsilon, False, on)
