"""Products of matrices."""

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
    is_autocast,
    overlaps,
    records,
    repeated,
    stored,
    strides_of,
    through_jax,
    through_torch,
    type_name,
)
from ._invariance import is_invariant


def linear(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    function: str | None = None,
    out: Any = None,
    invariant: bool | None = None,
    on: str | None = None,
) -> Any:
    """``x @ weight.T + bias``: ``x`` is (..., K) with any leading axes, ``weight`` is (N,K), ``bias`` is
    (N). The accumulators are f32 and are rounded once. ``function`` is an expression of the sum
    ``x``, such as ``"gelu_tanh(x)"``; gradients are not recorded through it.

    ``invariant``: a row of the result has the same bits whatever the other rows are and however many
    there are. Without it, the setting of ``tilewright.ops.invariant`` counts.

    >>> import numpy as np
    >>> linear(np.ones((2, 8), np.float16), np.ones((3, 8), np.float16)).tolist()
    [[8.0, 8.0, 8.0], [8.0, 8.0, 8.0]]
    """
    is_same = is_invariant(invariant)
    if on is None and not is_autocast():
        arguments = None if function is not None else (x, weight, bias, is_same)
        if (found := _again(x, weight, bias, function, out, is_same, arguments)) is not None:
            return found
    check_arrays("bias", "out", x=x, weight=weight, bias=bias, out=out)
    x, weight, bias = autocast(x, weight, bias)
    if len(x.shape) < 1 or len(weight.shape) != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x is (..., K) and weight (N,K), and they have the shapes {tuple(x.shape)} and {tuple(weight.shape)}")
    if bias is not None and tuple(bias.shape) != tuple(weight.shape[:1]):
        raise ValueError(f"bias has the shape {tuple(bias.shape)}, and the weight {weight.shape[0]} rows")
    if is_jax(x):
        if function is not None:
            raise TypeError("with arrays of JAX, apply the function to the result")
        return through_jax("linear", x, weight, bias, invariant=is_same, out=out, on=on)
    if function is None:
        if records(x, weight, bias, on=on, out=out):
            return through_torch("linear", x, weight, bias, is_same)
    elif records(x, weight, bias):
        raise RuntimeError("gradients are not recorded, and graphs not traced, through `function`: apply it to the result")
    return multiply(x, weight, bias, function, out, is_same, on)


def multiply(
    x: Any,
    weight: Any,
    bias: Any,
    function: str | None = None,
    out: Any = None,
    invariant: bool = False,
    on: str | None = None,
) -> Any:
    """``linear``, launched."""
    if on is None and (found := _again(x, weight, bias, function, out, invariant)) is not None:
        return found
    shape = (*x.shape[:-1], weight.shape[0])
    if out is not None:
        check_out(out, shape, x, "float32")
    if overlaps(out, x, weight, bias):
        return stored(out, multiply(x, weight, bias, function, None, invariant, on))
    if by_definition(on, x, weight, bias, out):
        if function is not None:
            raise TypeError("the definition has no epilogue function: apply it to the result")
        check_type(x, "weight", weight)
        y = definitions.product(x, weight.T, invariant)
        y = y if bias is None else y + definitions.wide(bias)
        return stored(out, definitions.narrow(y, x if out is None else out))
    text, named = _epilogue(function, bias)
    return product_into(out, shape, flat_rows(x), weight, on, function=text, invariant=invariant, **named)


def _epilogue(function: str | None, bias: Any) -> tuple[str | None, dict[str, Any]]:
    """The epilogue function of a product, and its inputs: the bias is added before the function."""
    if bias is None:
        return function, {}
    return "x + bias" if function is None else _substituted(function), {"bias": bias}


def _again(x: Any, weight: Any, bias: Any, function: str | None, out: Any, invariant: bool, recorded: Any = None) -> Any:
    """The result of ``multiply`` on ordinary tensors, by repeating the launches of an equal earlier
    call; None if there was none. ``recorded`` are the arguments of the registered operator, by which
    a call is recorded; without them there is no result of one that is.
    """
    text, named = _epilogue(function, bias)
    call = gpu.call_of_gemm(text, invariant, *named)
    return repeated(call, (x, weight, bias), "" if recorded is None else "linear", recorded, out, gpu._calls, True)


def product_into(out: Any, shape: tuple[int, ...], a: Any, b: Any, on: str | None, **named: Any) -> Any:
    """The product of matrices as an array of a shape, whose last axis is that of columns, or in ``out``.
    The options are those of ``gpu.gemm``.
    """
    if out is not None and tuple(out.shape) != shape:
        raise ValueError(f"out has the shape {tuple(out.shape)}, and the result {shape}")
    into = out
    if out is not None and len(shape) != 2:
        # Only the rows of a contiguous array are a matrix in its memory.
        into = out.reshape(-1, shape[-1]) if strides_of(out) == compact(shape) else None
    y = gpu.gemm(a, b, out=into, on=on, **named)
    if out is not None:
        return out if into is not None else gpu.relayout(y.reshape(shape), out, on=on)
    return y if len(shape) == 2 else y.reshape(shape)


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
    invariant: bool | None = None,
    on: str | None = None,
) -> tuple[Any, Any, Any]:
    """The derivatives of ``linear`` by ``x``, ``weight`` and the bias: ``d_y @ weight``,
    ``d_y.T @ x``, and the sum of the rows of ``d_y``; the last is None without ``bias``.

    ``into``: a buffer of float32, (N,K), to which the derivative by ``weight`` is added; it is
    returned in its place. ``invariant``: rows of the derivative by ``x`` have the same bits for every
    number of rows. The derivative by ``weight`` is a sum over the rows.

    >>> import numpy as np
    >>> x, weight, d_y = (np.ones(shape, np.float16) for shape in [(2, 8), (3, 8), (2, 3)])
    >>> [own.shape for own in linear_backward(x, weight, d_y, bias=True)]
    [(2, 8), (3, 8), (3,)]
    """
    check_arrays("into", x=x, weight=weight, d_y=d_y, into=into)
    if tuple(d_y.shape) != (*x.shape[:-1], weight.shape[0]):
        raise ValueError(f"d_y is (..., N), and has the shape {tuple(d_y.shape)} beside x, {tuple(x.shape)}, and weight, {tuple(weight.shape)}")
    is_same = is_invariant(invariant)
    if is_jax(x):
        if into is not None:
            raise TypeError("arrays of JAX are not written: leave `into` out, and add the derivative to the buffer")
        return through_jax("linear_backward", x, weight, d_y, bias=bias, invariant=is_same, on=on)  # type: ignore[no-any-return]
    if records(x, weight, d_y, on=on, out=into):
        d_x, d_weight, d_bias = through_torch("linear_backward", x, weight, d_y, bias, is_same)
        return d_x, d_weight, d_bias if bias else None
    return multiply_backward(x, weight, d_y, bias, into, is_same, on)


def multiply_backward(
    x: Any, weight: Any, d_y: Any, bias: bool, into: Any = None, invariant: bool = False, on: str | None = None
) -> tuple[Any, Any, Any]:
    """``linear_backward``, launched."""
    rows, of_rows = flat_rows(x), flat_rows(d_y)
    if into is not None and (tuple(into.shape) != tuple(weight.shape) or type_name(into) != "float32"):
        raise ValueError(f"into is {tuple(weight.shape)} of float32, not {tuple(into.shape)} of {type_name(into)}")
    d_x = _by_rows(weight, d_y, x.shape, invariant, on)
    if into is None:
        d_weight = _by_weight(x, weight, d_y, on)
    elif by_definition(on, x, weight, d_y, into):
        check_type(x, "weight", weight)
        d_weight = _added(into, definitions.wide(of_rows).T @ definitions.wide(rows))
    else:
        # No kernel of a product has one parameter for an input and the result, so the sum has a place
        # of its own.
        total = gpu.gemm(of_rows.T, rows.T, function="x + total", total=into, out=empty(into, tuple(into.shape)), on=on)
        d_weight = gpu.relayout(total, into, on=on)
    if not bias:
        return d_x, d_weight, None
    if by_definition(on, d_y):
        return d_x, d_weight, definitions.narrow(definitions.wide(of_rows).sum(0), weight)
    return d_x, d_weight, gpu.reduce(of_rows, "sum", axis=0, on=on)


def _added(into: Any, product: Any) -> Any:
    into += product
    return into


def matmul(a: Any, b: Any, *, out: Any = None, invariant: bool | None = None, on: str | None = None) -> Any:
    """The product of matrices ``a @ b``: (M,K) and (K,N), or batches of them, (L,M,K) and (L,K,N), of
    any strides. ``invariant``: a row of the result has the same bits for every M and L; the derivative
    by ``a`` too.

    >>> import numpy as np
    >>> matmul(np.ones((2, 8), np.float16), np.ones((8, 3), np.float16)).tolist()
    [[8.0, 8.0, 8.0], [8.0, 8.0, 8.0]]
    """
    check_arrays("out", a=a, b=b, out=out)
    a, b = autocast(a, b)
    if len(a.shape) != len(b.shape) or len(a.shape) not in (2, 3) or a.shape[-1] != b.shape[-2] or tuple(a.shape[:-2]) != tuple(b.shape[:-2]):
        raise ValueError(f"a is (M,K) and b (K,N), or both are batches, and they have the shapes {tuple(a.shape)} and {tuple(b.shape)}")
    is_same = is_invariant(invariant)
    if is_jax(a):
        return through_jax("matmul", a, b, invariant=is_same, out=out, on=on)
    if records(a, b, on=on, out=out):
        return through_torch("matmul", a, b, is_same)
    return product(a, b, out, is_same, on)


def product(a: Any, b: Any, out: Any = None, invariant: bool = False, on: str | None = None) -> Any:
    """``matmul``, launched."""
    if out is not None:
        check_out(out, (*a.shape[:-1], b.shape[-1]), a, "float32")
    if overlaps(out, a, b):
        return stored(out, product(a, b, None, invariant, on))
    if by_definition(on, a, b, out):
        check_type(a, "b", b, "a")
        return stored(out, definitions.narrow(definitions.product(a, b, invariant), a if out is None else out))
    return gpu.gemm(a, b.swapaxes(-1, -2), out=out, invariant=invariant, on=on)


def sum_of_products(factors: Any, weights: Any, invariant: bool, on: str | None) -> Any:
    """The sum of the products of matrices (M,N) with matrices (N,K): each is added to those before it
    before it is rounded.
    """
    total = None
    for factor, weight in zip(factors, weights):
        if by_definition(on, factor, weight):
            product = definitions.product(factor, weight, invariant)
            total = product if total is None else total + product
        elif total is None:
            total = gpu.gemm(factor, weight.T, invariant=invariant, on=on)
        else:
            total = gpu.gemm(factor, weight.T, function="x + before", before=total, invariant=invariant, on=on)
    return total


def linears(
    x: Any, weights: Any, biases: Any = None, *, invariant: bool | None = None, on: str | None = None
) -> tuple[Any, ...]:
    """Several linear layers of the same ``x``, as the projections of attention: the derivative by ``x``
    is added up by the products themselves. ``biases`` is None, or has a bias or None for each.

    >>> import numpy as np
    >>> [y.shape for y in linears(np.ones((2, 8), np.float16), [np.ones((n, 8), np.float16) for n in (8, 16)])]
    [(2, 8), (2, 16)]
    """
    biases = [None] * len(weights) if biases is None else list(biases)
    if len(biases) != len(weights):
        raise ValueError(f"there are {len(weights)} weights, and {len(biases)} biases: give None for a layer without one")
    for weight, bias in zip(weights, biases):
        check_arrays("bias", x=x, weight=weight, bias=bias)
    is_same = is_invariant(invariant)
    if any(own is not None for own in biases) or is_jax(x):
        return tuple(linear(x, weight, bias, invariant=is_same, on=on) for weight, bias in zip(weights, biases))
    x, *weights = autocast(x, *weights)
    if records(x, *weights, on=on):
        return tuple(through_torch("linears", x, list(weights), is_same))
    return tuple(linear(x, weight, invariant=is_same, on=on) for weight in weights)


def linears_backward(
    x: Any, weights: Any, derivatives: Any, *, invariant: bool | None = None, on: str | None = None
) -> tuple[Any, list[Any]]:
    """The derivatives of ``linears`` without biases: by ``x``, and by each of the weights.

    >>> import numpy as np
    >>> x, weights = np.ones((2, 8), np.float16), [np.ones((n, 8), np.float16) for n in (8, 16)]
    >>> d_x, d_weights = linears_backward(x, weights, linears(x, weights))
    >>> d_x.shape, [own.shape for own in d_weights]
    ((2, 8), [(8, 8), (16, 8)])
    """
    if len(weights) != len(derivatives):
        raise ValueError(f"there are {len(weights)} weights, and {len(derivatives)} derivatives")
    for weight, d_y in zip(weights, derivatives):
        check_arrays(x=x, weight=weight, d_y=d_y)
    is_same = is_invariant(invariant)
    if is_jax(x):
        return through_jax("linears_backward", x, weights, derivatives, invariant=is_same, on=on)  # type: ignore[no-any-return]
    if records(x, *weights, *derivatives, on=on):
        d_x, *d_weights = through_torch("linears_backward", x, list(weights), list(derivatives), is_same)
        return d_x, d_weights
    return multiply_all_backward(x, weights, derivatives, is_same, on)


def multiply_all_backward(
    x: Any, weights: Any, derivatives: Any, invariant: bool, on: str | None
) -> tuple[Any, list[Any]]:
    """``linears_backward``, launched."""
    rows, of_rows = flat_rows(x), [flat_rows(each) for each in derivatives]
    for weight, d_y in zip(weights, derivatives):
        check_type(x, "a weight", weight)
        check_type(x, "a derivative", d_y)
    d_x = sum_of_products(of_rows, weights, invariant, on)
    if by_definition(on, x):
        d_x = definitions.narrow(d_x, x)
        d_weights = [definitions.narrow(definitions.wide(d).T @ definitions.wide(rows), w) for d, w in zip(of_rows, weights)]
    else:
        d_weights = [gpu.gemm(d.T, rows.T, on=on) for d in of_rows]
    return d_x.reshape(tuple(x.shape)), d_weights


def feed_forward(
    x: Any, gate: Any, up: Any, down: Any, function: str = "silu", *, invariant: bool | None = None, on: str | None = None
) -> Any:
    """``down(function(gate(x)) * up(x))``, of the weights of three linear layers without biases: (N,K),
    (N,K) and (K,N). The backward computes the gated product again, so that it takes no memory between
    the passes.

    Where no gradients are recorded and ``gate`` and ``up`` are the halves of one matrix in memory, such
    as ``both.chunk(2)``, the first two layers are one GEMM, as in ``gated_linear``, which rounds once
    where two layers round twice. With ``invariant``, results with and without gradients have the same
    bits, so the layers stay apart.

    >>> import numpy as np
    >>> x, gate, up, down = (np.ones(shape, np.float16) for shape in [(2, 8), (16, 8), (16, 8), (8, 16)])
    >>> float(feed_forward(x, gate, up, down, "identity")[0, 0])
    1024.0
    """
    check_arrays(x=x, gate=gate, up=up, down=down)
    x, gate, up, down = autocast(x, gate, up, down)
    is_same = is_invariant(invariant)
    if is_jax(x):
        from ._elements import activation

        first, second = (linear(x, weight, invariant=is_same, on=on) for weight in (gate, up))
        return linear(activation(first, function, up=second, on=on), down, invariant=is_same, on=on)
    if records(x, gate, up, down, on=on):
        return through_torch("feed_forward", x, gate, up, down, function, is_same)[0]
    if not is_same and not by_definition(on, x, gate, up, down):
        from ._gated import as_one, gated_linear

        both = as_one(gate, up)
        if both is not None:
            return linear(gated_linear(x, both, function=function, invariant=False, on=on), down, invariant=False, on=on)
    return feed_forward_parts(x, gate, up, down, function, is_same, on)[0]


def feed_forward_parts(
    x: Any, gate: Any, up: Any, down: Any, function: str, invariant: bool, on: str | None
) -> tuple[Any, Any, Any]:
    """The result, and the results of the first two layers, which the backward reads."""
    from ._elements import activate

    first, second = (multiply(x, weight, None, invariant=invariant, on=on) for weight in (gate, up))
    return multiply(activate(first, function, second, None, on), down, None, invariant=invariant, on=on), first, second


def feed_forward_backward(
    x: Any,
    gate: Any,
    up: Any,
    down: Any,
    first: Any,
    second: Any,
    d_y: Any,
    function: str = "silu",
    *,
    invariant: bool | None = None,
    on: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The derivatives of ``feed_forward`` by ``x`` and the three weights; ``first`` and ``second`` are
    the results of the layers ``gate`` and ``up``.

    >>> import numpy as np
    >>> x, gate, up, down = (np.ones(shape, np.float16) for shape in [(2, 8), (16, 8), (16, 8), (8, 16)])
    >>> y, first, second = feed_forward_parts(x, gate, up, down, "identity", False, None)
    >>> [own.shape for own in feed_forward_backward(x, gate, up, down, first, second, x, "identity")]
    [(2, 8), (16, 8), (16, 8), (8, 16)]
    """
    check_arrays(x=x, gate=gate, up=up, down=down, first=first, second=second, d_y=d_y)
    is_same = is_invariant(invariant)
    if is_jax(x):
        return through_jax(  # type: ignore[no-any-return]
            "feed_forward_backward", x, gate, up, down, first, second, d_y, function, invariant=is_same, on=on
        )
    arrays = (x, gate, up, down, first, second, d_y)
    if records(*arrays, on=on):
        return through_torch("feed_forward_backward", *arrays, function, is_same)  # type: ignore[no-any-return]
    return pass_back(*arrays, function, is_same, on)


def pass_back(
    x: Any, gate: Any, up: Any, down: Any, first: Any, second: Any, d_y: Any, function: str, invariant: bool, on: str | None
) -> tuple[Any, Any, Any, Any]:
    """``feed_forward_backward``, launched."""
    from ._elements import activate_backward

    d_hidden = _by_rows(down, d_y, first.shape, invariant, on)
    # One kernel reads both results of the first layers once, for their derivatives and for what the
    # second layer was given.
    d_first, d_second, hidden = activate_backward(first, d_hidden, function, second, on, with_result=True)
    d_down = _by_weight(hidden, down, d_y, on)
    d_x, (d_gate, d_up) = multiply_all_backward(x, (gate, up), (d_first, d_second), invariant, on)
    return d_x, d_gate, d_up, d_down


def _by_rows(weight: Any, d_y: Any, shape: Any, invariant: bool, on: str | None) -> Any:
    """The derivative of a linear layer by its rows, which have this shape."""
    if by_definition(on, weight, d_y):
        check_type(weight, "d_y", d_y, "the weight")
        product = definitions.product(definitions.wide(flat_rows(d_y)), weight, invariant)
        return definitions.narrow(product.reshape(tuple(shape)), d_y)
    return gpu.gemm(flat_rows(d_y), weight.T, invariant=invariant, on=on).reshape(tuple(shape))


def _by_weight(x: Any, weight: Any, d_y: Any, on: str | None) -> Any:
    """The derivative of a linear layer by its weight."""
    if by_definition(on, x, weight, d_y):
        check_type(x, "weight", weight)
        return definitions.narrow(definitions.wide(flat_rows(d_y)).T @ definitions.wide(flat_rows(x)), weight)
    return gpu.gemm(flat_rows(d_y).T, flat_rows(x).T, on=on)
