"""Operators that models call, forward and backward, as functions of arrays.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> x = torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16, requires_grad=True)  # doctest: +SKIP
>>> weight = torch.ones(4096, device="cuda", requires_grad=True)  # doctest: +SKIP
>>> tw.ops.rms_norm(x, weight).sum().backward()             # doctest: +SKIP

Each function takes arrays with any leading axes. On a CUDA device it launches kernels that are
planned for the types, layouts and options of a call and for the device; tensors of PyTorch are used
on its current stream, and gradients are recorded. On the host an operator runs by its definition, a
formula on whole arrays, so that models run anywhere. ``on="interpreter"`` runs the kernels on host
arrays, checked and slowly.

``out`` is an array that the result is written to, and is returned. Arrays whose strides no kernel
takes are copied first: rows must be contiguous and equally far apart. ``plan`` shows the kernels of
a call, and such copies.

A row has the same bits whatever the other rows are and however many there are: an operator of rows
adds in an order that depends on the length of the row alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _definitions as definitions
from . import _native, _operators, gpu
from ._arrays import is_torch
from ._definitions import is_jax
from ._record import record, recorder
from ._operators import Matrix, Options, OperatorPlan, Result, again, alignment, is_on_device, launch, machine_of, matrix, planned

__all__ = [
    "activation",
    "activation_backward",
    "dropout",
    "geglu",
    "gelu",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "log_softmax",
    "log_softmax_backward",
    "matmul",
    "plan",
    "relu",
    "rms_norm",
    "rms_norm_backward",
    "silu",
    "softmax",
    "softmax_backward",
    "swiglu",
]


def _by_definition(on: str | None, *arrays: Any) -> bool:
    """Whether a call runs by its definition: on arrays of the host, unless the interpreter is asked
    for.
    """
    if on == "interpreter" or recorder() is not None:
        return False
    if on is not None:
        raise ValueError(f'an operator runs where its arrays are, or on="interpreter", not on {on!r}')
    if is_on_device(*arrays):
        return False
    for array in arrays:
        if isinstance(array, _native.Tensor):
            raise TypeError('on the host, operators take arrays of NumPy or PyTorch; tensors of this package run on="interpreter"')
    return True


def _records(*arrays: Any) -> bool:
    """Whether gradients by these arrays are recorded, or a call is traced: then it goes through the
    operators that are registered with PyTorch.
    """
    for array in arrays:
        if array is not None and is_torch(array):
            import torch

            if torch.compiler.is_compiling() or type(array) not in (torch.Tensor, torch.nn.Parameter):
                return True
            # Tensors of `vmap` look like ordinary ones. That is asked of a function that is not public.
            if getattr(torch._C, "_are_functorch_transforms_active", bool)():
                return True
            return torch.is_grad_enabled() and any(own is not None and own.requires_grad for own in arrays)
    return False


def _into(out: Any, value: Any) -> Any:
    """A result, or ``out`` with its elements."""
    if out is None:
        return value
    if is_torch(out):
        return out.copy_(value)
    out[...] = value
    return out


def _check_same(x: Any, name: str, of: Any) -> None:
    """Refuses an array that has not the shape of ``x``."""
    if tuple(of.shape) != tuple(x.shape):
        raise ValueError(f"{name} has the shape {tuple(of.shape)}, and x has {tuple(x.shape)}")


def _check_vector(x: Any, name: str, of: Any) -> None:
    """Refuses an array that has not one number for each element of a row of ``x``."""
    length = x.shape[-1] if len(x.shape) else 1
    if tuple(of.shape) != (length,):
        raise ValueError(f"{name} has the shape {tuple(of.shape)}, and a row of x has {length} elements")


def _rows_of(on: str | None, **arrays: Any) -> dict[str, Matrix]:
    return {name: matrix(array, on) for name, array in arrays.items()}


def _facts(rows: dict[str, Matrix], *others: Any) -> int:
    """What the pitches of all matrices, and of contiguous results of the same rows, are multiples
    of.
    """
    first = next(iter(rows.values()))
    pitches = [own.pitch for own in rows.values() if own.rows > 1]
    if first.rows > 1:
        pitches.append(first.length)
    return alignment(first.element, *pitches) if pitches else alignment(first.element, 0)


def _pitches(rows: dict[str, Matrix], facts: int, **made: int) -> dict[str, int]:
    """The sizes of a launch on rows. The pitch of a single row is any multiple of the alignment."""
    first = next(iter(rows.values()))
    sizes = {"M": first.rows}
    for name, pitch in [*((name, own.pitch) for name, own in rows.items()), *made.items()]:
        sizes[f"{name}_pitch"] = pitch if first.rows > 1 else -(-pitch // facts) * facts
    return sizes


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


def _along(name: str, x: Any, axis: int, out: Any, on: str | None) -> Any:
    """An operator of rows along an axis, into an array of the same shape."""
    call = (name, axis)
    if on is None and (found := again(call, (x,), None if out is None else (out,))) is not None:
        return found
    if out is not None:
        _check_same(x, "out", out)
    if _by_definition(on, x):
        y = getattr(definitions, name)(_last(x, axis))
        return _into(out, _moved_back(y, x, axis))
    ordered = _last(x, axis)
    rows = _rows_of(on, x=ordered)
    own = rows["x"]
    facts = _facts(rows)
    options: Options = (("length", own.length), ("element", own.element), ("alignment", facts))
    given = out if out is not None and ordered is x and tuple(_strides(out)) == gpu.compact(tuple(x.shape)) else None
    shape = tuple(ordered.shape)
    if 0 in shape:
        return out if out is not None else _operators.made(_operators.maker(x, tuple(x.shape), own.element), x)
    kernels = planned(name, options, False, machine_of(x))
    sizes = _pitches(rows, facts, y=own.length)
    results = {"y": Result(shape, own.element, given)}
    is_simple = ordered is x and (out is None or given is not None)
    (y,) = launch(kernels, {"x": own.array}, results, sizes, on, call=call if is_simple else None, called=(x,))
    if given is not None:
        return out
    y = _moved_back(y, x, axis)
    return y if out is None else gpu.relayout(y, out, on=on)


def _strides(array: Any) -> tuple[int, ...]:
    return _native.array_axes(array)[2]


def _along_backward(name: str, x: Any, d_y: Any, axis: int, on: str | None) -> Any:
    call = (f"{name}_backward", axis)
    if on is None and (found := again(call, (x, d_y))) is not None:
        return found
    _check_same(x, "d_y", d_y)
    if _by_definition(on, x, d_y):
        d_x = getattr(definitions, f"{name}_backward")(_last(x, axis), _last(d_y, axis))
        return _moved_back(d_x, x, axis)
    ordered = _last(x, axis)
    rows = _rows_of(on, x=ordered, d_y=_last(d_y, axis))
    own = rows["x"]
    shape = tuple(ordered.shape)
    if 0 in shape:
        return _operators.made(_operators.maker(x, tuple(x.shape), own.element), x)
    # The derivative has the layout of x for the kernels: rows as far apart as those of x.
    if own.pitch != own.length:
        own = rows["x"] = _packed(own, on)
    facts = _facts(rows)
    options: Options = (("length", own.length), ("element", own.element), ("alignment", facts))
    kernels = planned(name, options, True, machine_of(x))
    sizes = _pitches({"x": own, "y": rows["d_y"]}, facts)
    results = {"d_x": Result(shape, own.element)}
    inputs = {"x": own.array, "d_y": rows["d_y"].array}
    called = (x, d_y) if ordered is x else None
    (d_x,) = launch(kernels, inputs, results, sizes, on, call=call, called=called)
    return _moved_back(d_x, x, axis)


def _packed(own: Matrix, on: str | None) -> Matrix:
    """The rows in a contiguous array."""
    if own.pitch == own.length or own.rows <= 1:
        return own._replace(pitch=own.length)
    room = _operators.empty(own.array, tuple(own.array.shape))
    gpu.relayout(own.array, room, on=on)
    return own._replace(array=room, pitch=own.length)


def _through_torch(name: str, *arguments: Any) -> Any:
    """A call of an operator that is registered with PyTorch."""
    from . import torch as registered

    return getattr(registered.operators, name)(*arguments)


def _through_jax(name: str, *arrays: Any, **named: Any) -> Any:
    """A call on arrays of JAX."""
    from . import jax as registered

    if named.pop("out", None) is not None or named.pop("on", None) is not None:
        raise TypeError("arrays of JAX are not written, and run where JAX has them: leave `out` and `on` out")
    return getattr(registered, name)(*arrays, **named)


def softmax(x: Any, *, axis: int = -1, out: Any = None, on: str | None = None) -> Any:
    """``exp(x)`` over the sum of ``exp(x)`` along an axis.

    >>> import numpy as np
    >>> softmax(np.zeros((2, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    if is_jax(x):
        return _through_jax("softmax", x, axis=axis, out=out, on=on)
    if out is None and _records(x):
        return _through_torch("softmax", x, axis)
    return _along("softmax", x, axis, out, on)


def softmax_backward(x: Any, d_y: Any, *, axis: int = -1, on: str | None = None) -> Any:
    """The derivative of ``softmax`` by ``x``: ``y (d_y - sum(y d_y))``, where ``y`` is the softmax.

    >>> import numpy as np
    >>> softmax_backward(np.zeros((1, 2), np.float32), np.array([[1, 0]], np.float32)).tolist()
    [[0.25, -0.25]]
    """
    return _along_backward("softmax", x, d_y, axis, on)


def log_softmax(x: Any, *, axis: int = -1, out: Any = None, on: str | None = None) -> Any:
    """The logarithm of the softmax along an axis.

    >>> import numpy as np
    >>> np.exp(log_softmax(np.zeros((1, 4), np.float32))).round(6).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    if is_jax(x):
        return _through_jax("log_softmax", x, axis=axis, out=out, on=on)
    if out is None and _records(x):
        return _through_torch("log_softmax", x, axis)
    return _along("log_softmax", x, axis, out, on)


def log_softmax_backward(x: Any, d_y: Any, *, axis: int = -1, on: str | None = None) -> Any:
    """The derivative of ``log_softmax`` by ``x``: ``d_y - softmax(x) sum(d_y)``.

    >>> import numpy as np
    >>> log_softmax_backward(np.zeros((1, 2), np.float32), np.array([[1, 0]], np.float32)).tolist()
    [[0.5, -0.5]]
    """
    return _along_backward("log_softmax", x, d_y, axis, on)


def _norm(
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
    vectors = {key: array for key, array in (("weight", weight), ("bias", bias)) if array is not None}
    call = (name, epsilon, less_one, residual is None, *vectors)
    arrays = (x, *(() if residual is None else (residual,)), *vectors.values())
    if on is None and (found := again(call, arrays, None if out is None else (out,))) is not None:
        return found
    for key, array in vectors.items():
        _check_vector(x, key, array)
    if residual is not None:
        _check_same(x, "residual", residual)
    if out is not None:
        _check_same(x, "out", out)
        if residual is not None:
            raise TypeError("with a residual there are two results: leave `out` out")
    is_centred = name == "layer_norm"
    if _by_definition(on, *arrays):
        source = x
        if residual is not None:
            source = definitions.narrow(definitions.wide(x) + definitions.wide(residual), x)
        y = definitions.norm(source, weight, bias, epsilon, is_centred, less_one)
        return _into(out, y) if residual is None else (y, source)
    rows = _rows_of(on, x=x, **({} if residual is None else {"residual": residual}))
    own = rows["x"]
    shape = tuple(x.shape)
    facts = _facts(rows)
    options = _norm_options(name, own, facts, epsilon, less_one, residual is not None, vectors)
    given = out if out is not None and tuple(_strides(out)) == gpu.compact(shape) else None
    results = {"y": Result(shape, own.element, given)}
    if residual is not None:
        results["sum"] = Result(shape, own.element)
    if 0 in shape:
        made = tuple(_operators.made(_operators.maker(x, shape, own.element), x) for _ in results)
        return out if out is not None else made[0] if residual is None else made
    inputs = {key: own.array for key, own in rows.items()}
    inputs.update({key: _dense(array, on) for key, array in vectors.items()})
    kernels = planned(name, options, False, machine_of(x))
    sizes = _pitches(rows, facts, y=own.length, sum=own.length)
    is_simple = out is None or given is not None
    made = launch(kernels, inputs, results, sizes, on, call=call if is_simple else None, called=arrays)
    if residual is not None:
        return made
    if out is None or given is not None:
        return made[0]
    return gpu.relayout(made[0], out, on=on)


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
    types = {_native.array_axes(array)[0] for array in vectors.values()}
    if len(types) > 1:
        raise ValueError(f"the weights and the bias have one type, not {' and '.join(sorted(types))}")
    if types:
        options.append(("weight_element", types.pop()))
    options.extend((key, True) for key in vectors)
    if less_one:
        options.append(("weight_less_one", True))
    return tuple(options)


def _dense(array: Any, on: str | None) -> Any:
    """An array, or a contiguous copy of it."""
    _, shape, strides, _, before = _native.array_axes(array)
    if not before and all(extent == 1 or own == step for extent, own, step in zip(shape, strides, gpu.compact(shape))):
        return array
    room = _operators.empty(array, shape)
    return gpu.relayout(array, room, on=on) if 0 not in shape else room


def _norm_backward(
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
    _check_same(x, "d_y", d_y)
    for key, array in vectors.items():
        _check_vector(x, key, array)
    if _by_definition(on, *arrays):
        made = definitions.norm_backward(x, weight, bias, d_y, d_sum, epsilon, name == "layer_norm", less_one)
        return tuple(own for own in made if own is not None)
    of = "x" if d_sum is None else "sum"
    rows = _rows_of(on, **{of: x, "y": d_y, **({} if d_sum is None else {"same": d_sum})})
    own = rows[of] = _packed(rows[of], on)
    shape = tuple(x.shape)
    facts = _facts(rows)
    options = _norm_options(name, own, facts, epsilon, less_one, d_sum is not None, vectors)
    results = {f"d_{of}": Result(shape, own.element)}
    for key, array in vectors.items():
        results[f"d_{key}"] = Result((own.length,), _native.array_axes(array)[0])
    if 0 in shape:
        made = [_operators.made(_operators.maker(x, result.shape, result.element), x) for result in results.values()]
        for array in made[1:]:
            if own.length:
                _operators.fill(array, 0)
        return tuple(made)
    inputs = {of: own.array, "d_y": rows["y"].array}
    if d_sum is not None:
        inputs["d_same"] = rows["same"].array
    inputs.update({key: _dense(array, on) for key, array in vectors.items()})
    kernels = planned(name, options, True, machine_of(x))
    return launch(kernels, inputs, results, _pitches(rows, facts), on, call=call, called=arrays)


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
    if is_jax(x):
        options = {"epsilon": epsilon, "weight_less_one": weight_less_one, "out": out, "on": on}
        return _through_jax("rms_norm", x, weight, residual=residual, **options)
    if out is None and _records(x, weight, residual):
        if residual is None:
            return _through_torch("rms_norm", x, weight, epsilon, weight_less_one)
        return _through_torch("rms_norm_residual", x, weight, residual, epsilon, weight_less_one)
    return _norm("rms_norm", x, weight, None, residual, epsilon, weight_less_one, out, on)


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
    d_x, d_weight, _ = _norm_backward("rms_norm", x, weight, None, d_y, d_sum, epsilon, weight_less_one, on)
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
    if is_jax(x):
        return _through_jax("layer_norm", x, weight, bias, residual=residual, epsilon=epsilon, out=out, on=on)
    if out is None and _records(x, weight, bias, residual):
        if residual is None:
            return _through_torch("layer_norm", x, weight, bias, epsilon)
        return _through_torch("layer_norm_residual", x, weight, bias, residual, epsilon)
    return _norm("layer_norm", x, weight, bias, residual, epsilon, False, out, on)


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
    return _norm_backward("layer_norm", x, weight, bias, d_y, d_sum, epsilon, False, on)


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
    if is_jax(x):
        return _through_jax("activation", x, function, up=up, out=out, on=on)
    if out is None and _records(x, up):
        return _through_torch("activation", x, up, function)
    arrays = (x,) if up is None else (x, up)
    call = ("activation", function, up is None)
    if on is None and (found := again(call, arrays, None if out is None else (out,))) is not None:
        return found
    for name, array in (("up", up), ("out", out)):
        if array is not None:
            _check_same(x, name, array)
    if _by_definition(on, *arrays):
        return _into(out, definitions.activation(function, x, up))
    rows = _rows_of(on, **({"x": x} if up is None else {"gate": x, "up": up}))
    own = next(iter(rows.values()))
    shape = tuple(x.shape)
    given = out if out is not None and tuple(_strides(out)) == gpu.compact(shape) else None
    if 0 in shape:
        return out if out is not None else _operators.made(_operators.maker(x, shape, own.element), x)
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
    if function not in definitions.FUNCTIONS:
        raise ValueError(f"there is no function {function!r}: there are {', '.join(definitions.FUNCTIONS)}")
    arrays = (x, d_y) if up is None else (x, up, d_y)
    call = ("activation_backward", function, up is None)
    if on is None and (found := again(call, arrays)) is not None:
        return (found, None) if up is None else found
    for name, array in (("d_y", d_y), ("up", up)):
        if array is not None:
            _check_same(x, name, array)
    if _by_definition(on, *arrays):
        return definitions.activation_backward(function, x, up, d_y)
    rows = _rows_of(on, **({"x": x, "y": d_y} if up is None else {"gate": x, "up": up, "y": d_y}))
    shape = tuple(x.shape)
    names = [name for name in rows if name != "y"]
    # The derivatives are contiguous, and have the layout of what they are of.
    for name in names:
        rows[name] = _packed(rows[name], on)
    own = rows[names[0]]
    results = {f"d_{name}": Result(shape, own.element) for name in names}
    if 0 in shape:
        made = [_operators.made(_operators.maker(x, shape, own.element), x) for _ in results]
        return (made[0], None if up is None else made[1])
    facts, sizes = _flattened(rows)
    options: Options = (("function", function), ("gated", up is not None), ("element", own.element), ("alignment", facts))
    kernels = planned("activation", options, True, machine_of(x))
    inputs = {name: rows[name].array for name in names}
    inputs["d_y"] = rows["y"].array
    made = launch(kernels, inputs, results, sizes, on, call=call, called=arrays)
    return made[0], None if up is None else made[1]


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
    if not 0 <= probability < 1:
        raise ValueError(f"a probability of dropout is from 0, and less than 1, not {probability}")
    if not -(2**31) <= seed < 2**31:
        raise ValueError(f"a seed is an integer of 32 bits, not {seed}")
    if is_jax(x):
        return _through_jax("dropout", x, probability, seed, out=out, on=on)
    if out is None and _records(x):
        return _through_torch("dropout", x, probability, seed)
    call = ("dropout", probability)
    numbers = {"seed": seed}
    if on is None and (found := again(call, (x,), None if out is None else (out,), numbers)) is not None:
        return found
    if out is not None:
        _check_same(x, "out", out)
    if _by_definition(on, x):
        return _into(out, definitions.dropout(x, probability, seed))
    shape = tuple(x.shape)
    own = _packed(matrix(x, on), on)
    count = own.rows * own.length
    if count >= 2**31:
        raise ValueError(f"dropout numbers its elements by 31 bits, and x has {count}")
    if 0 in shape:
        return out if out is not None else _operators.made(_operators.maker(x, shape, own.element), x)
    given = out if out is not None and tuple(_strides(out)) == gpu.compact(shape) else None
    options: Options = (("probability", float(probability)), ("element", own.element), ("alignment", alignment(own.element, count)))
    kernels = planned("dropout", options, False, machine_of(x))
    is_simple = out is None or given is not None
    results = {"y": Result(shape, own.element, given)}
    (y,) = launch(
        kernels, {"x": own.array}, results, {"N": count}, on, numbers=numbers, call=call if is_simple else None, called=(x,)
    )
    return y if is_simple else gpu.relayout(y, out, on=on)


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
    if len(x.shape) < 1 or len(weight.shape) != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x is (..., K) and weight (N,K), and they have the shapes {tuple(x.shape)} and {tuple(weight.shape)}")
    if is_jax(x):
        if function is not None:
            raise TypeError("with arrays of JAX, apply the function to the result")
        return _through_jax("linear", x, weight, bias, out=out, on=on)
    if out is None and function is None and _records(x, weight, bias):
        return _through_torch("linear", x, weight, bias)
    shape = (*x.shape[:-1], weight.shape[0])
    if _by_definition(on, x, weight):
        if function is not None:
            raise TypeError("the definition has no epilogue function: apply it to the result")
        y = definitions.wide(x) @ definitions.wide(weight).T
        y = y if bias is None else y + definitions.wide(bias)
        return _into(out, definitions.narrow(y, x))
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
    if _by_definition(on, x, weight, d_y):
        d = definitions.wide(of_rows)
        d_x = definitions.narrow((d @ definitions.wide(weight)).reshape(x.shape), x)
        product = d.T @ definitions.wide(rows)
        d_weight = definitions.narrow(product, weight) if into is None else _added(into, product)
        return d_x, d_weight, definitions.narrow(d.sum(0), weight) if bias else None
    d_x = gpu.gemm(of_rows, weight.T, on=on).reshape(tuple(x.shape))
    if into is None:
        d_weight = gpu.gemm(of_rows.T, rows.T, on=on)
    else:
        # Each tile of the buffer is read and written by one block. The interpreter takes no array for
        # an input and a result at once.
        total = into.copy() if on == "interpreter" else into
        d_weight = gpu.gemm(of_rows.T, rows.T, function="x + total", total=total, out=into, on=on)
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
    if len(a.shape) != len(b.shape) or len(a.shape) not in (2, 3) or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"a is (M,K) and b (K,N), or both are batches, and they have the shapes {tuple(a.shape)} and {tuple(b.shape)}")
    if is_jax(a):
        return _through_jax("matmul", a, b, out=out, on=on)
    if out is None and _records(a, b):
        return _through_torch("matmul", a, b)
    if _by_definition(on, a, b):
        return _into(out, definitions.narrow(definitions.wide(a) @ definitions.wide(b), a))
    return gpu.gemm(a, b.swapaxes(-1, -2), out=out, on=on)


class Plans:
    """The plans of a call, in the order of their launches: of kernels, and of copies of arrays whose
    strides no kernel takes.
    """

    def __init__(self, plans: list[Any]) -> None:
        self.plans = plans

    @property
    def programs(self) -> list[_native.Program]:
        """The kernels, in the order in which they are launched."""
        return [
            program
            for own in self.plans
            for program in (own.programs if isinstance(own, OperatorPlan) else [program for program, _ in own.launches])
        ]

    def __str__(self) -> str:
        return "\n".join(str(own) for own in self.plans)

    def __repr__(self) -> str:
        return f"<plan of {len(self.programs)} launches>"


def plan(function: Callable[..., Any], *arguments: Any, **named: Any) -> Plans:
    """The kernels of a call of a function of this module, without launching them: ``plan(rms_norm,
    x)``. Of arrays on the host they are those for an H200.

    >>> import numpy as np
    >>> print(plan(softmax, np.zeros((2, 64), np.float32)))     # doctest: +ELLIPSIS
    tile softmax {
        input  x: f32 (M,64):(x_pitch{div=4},1)
    ...
    """
    asked = record(function, arguments, named)[1].plans
    if not asked:
        name = getattr(function, "__name__", str(function))
        raise TypeError(f"{name} plans no kernels: it is not a function of tilewright.ops, or an array has no elements")
    return Plans(asked)
