"""Operators of JAX: what `tilewright.ops` computes, under `jit`, `grad` and `vmap`.

>>> import jax, tilewright as tw                            # doctest: +SKIP
>>> loss = jax.jit(jax.grad(lambda x, w: tw.ops.rms_norm(x, w).sum()))  # doctest: +SKIP

The functions of ``tilewright.ops`` take arrays of JAX, traced ones too, and call those of this module.
Where JAX has a GPU, they become foreign calls whose kernels are planned as the call is traced, for
the first GPU of the process. Elsewhere they are their definitions. Under ``vmap`` an operator is
executed for one element of the batch after another. ``adamw`` is a formula everywhere, because its
numbers change with each step and XLA makes one kernel of it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _definitions as definitions
from . import _native, gpu, ops
from ._record import record
from .ops import _attention, _elements, _embedding, _experts, _losses, _products, _rows
from .ops._common import check_integers
from .ops._experts import Places

__all__ = [
    "activation", "activation_backward", "adamw", "attention", "attention_decode", "call", "combine", "cross_entropy_rows",
    "cross_entropy_rows_backward", "dequantize", "dropout", "embedding", "embedding_backward", "expert_places",
    "expert_product", "feed_forward_backward", "gated_linear", "gated_linear_backward", "int4_linear", "int4_linear_backward",
    "layer_norm", "layer_norm_backward", "linear", "linear_backward", "linear_cross_entropy", "linears_backward", "log_softmax",
    "log_softmax_backward", "matmul", "permute", "quantize", "rms_norm", "rms_norm_backward", "rope", "route", "scaled_linear",
    "softmax", "softmax_backward",
]  # fmt: skip

_TARGET = "tilewright_call"


class _Traced(np.ndarray):
    """An array of JAX while a call is recorded: its shape, its type and its memory as places of
    numbers that nobody reads.
    """

    ordinal: int

    def __array_finalize__(self, of: Any) -> None:
        self.ordinal = getattr(of, "ordinal", 0)

    def made_beside(self, shape: tuple[int, ...], dtype: Any) -> _Traced:
        """A new array on the device of this one."""
        return _traced(shape, self.dtype if dtype is None else np.dtype(dtype), self.ordinal)

    @property
    def device(self) -> Any:
        return type("Device", (), {"id": self.ordinal})()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.__array_interface__, "data": (self.ctypes.data, False), "version": 3}


def _traced(shape: tuple[int, ...], dtype: Any, ordinal: int) -> _Traced:
    # Of an empty array there is a byte too, so that it has an address of its own.
    count = max(int(np.prod(shape)), 1)
    made: Any = np.empty(count, dtype).view(_Traced)
    made.ordinal = ordinal
    whole: _Traced = made[: int(np.prod(shape))].reshape(shape)
    return whole


def _root(array: Any) -> Any:
    """The array whose memory another one is a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


_registered: list[str] = []


def _register() -> None:
    """Tells XLA of the handler, once."""
    if _registered:
        return
    _registered.append(_TARGET)
    address = ctypes.c_void_p(_native.xla_handler())
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(address), platform="CUDA", api_version=1)


def _gpu() -> Any:
    """The first GPU of the process; None if JAX has none."""
    return jax.local_devices()[0] if jax.default_backend() == "gpu" else None


def call(function: Callable[..., Any], /, *arrays: Any, **options: Any) -> Any:
    """A call of a function of ``tilewright.ops`` or ``tilewright.gpu`` as a foreign call of JAX, which
    may be traced. ``arrays`` are arrays of JAX or None; ``options`` are those of the function.

    Errors: those of the function; JAX has no GPU (``RuntimeError``); an array has no elements, so that
    nothing would be launched (``ValueError``).
    """
    device = _gpu()
    if device is None:
        raise RuntimeError("JAX has no GPU here: the functions of tilewright.jax run by their definitions then")
    given = [own for own in arrays if own is not None]
    if any(0 in own.shape for own in given):
        raise ValueError("an array has no elements: what is filled without a launch does not reach JAX")
    _register()
    shells = [_traced(tuple(own.shape), np.dtype(own.dtype), device.local_hardware_id) for own in given]
    rest = iter(shells)
    passed = [None if own is None else next(rest) for own in arrays]
    made, recorded = record(functools.partial(_row_major, function), passed, options, launches=True)
    results = [own for own in (made if isinstance(made, tuple) else (made,)) if own is not None]
    launches = recorded.launches or []
    # The buffers of the call: the inputs, the results, and the workspaces.
    buffers: dict[int, int] = {}
    roots = [_root(own) for own in [*shells, *results]]
    for root in [*roots, *(_root(array) for launch in launches for array in launch.arrays)]:
        if id(root) not in buffers:
            buffers[id(root)] = len(buffers)
            if len(buffers) > len(roots):
                roots.append(root)
    prepared = [
        (
            launch.launcher,
            list(zip(launch.arrays, launch.befores)),
            [(buffers[id(_root(array))], _offset(array, before)) for array, before in zip(launch.arrays, launch.befores)],
            launch.sizes,
        )
        for launch in launches
    ]
    numbers = {name: value for launch in launches for name, value in launch.numbers.items()}
    number = _native.prepare_xla_call(device.local_hardware_id, prepared, numbers)
    shapes = [jax.ShapeDtypeStruct(own.shape, own.dtype) for own in results]
    shapes += [jax.ShapeDtypeStruct(root.shape, root.dtype) for root in roots[len(given) + len(results) :]]
    found = jax.ffi.ffi_call(_TARGET, tuple(shapes), vmap_method="sequential")(*given, call=np.int64(number))
    answers = iter(found[: len(results)])
    if not isinstance(made, tuple):
        return next(answers)
    return tuple(None if own is None else next(answers) for own in made)


def _row_major(function: Callable[..., Any], /, *arrays: Any, **options: Any) -> Any:
    """The results of a function as row-major arrays of their own, as JAX has them."""
    made = function(*arrays, **options)
    results = []
    for own in made if isinstance(made, tuple) else (made,):
        if own is not None and (not own.flags.c_contiguous or _root(own).size != max(own.size, 1)):
            own = gpu.relayout(own, own.made_beside(own.shape, None))
        results.append(own)
    return tuple(results) if isinstance(made, tuple) else results[0]


def _offset(array: Any, before: int) -> int:
    """The bytes from the beginning of a buffer to so many elements before an array in it."""
    offset: int = array.ctypes.data - _root(array).ctypes.data - before * array.itemsize
    return offset


def _either(function: Callable[..., Any], definition: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function of arrays and options: the kernels where there is a GPU, else the definition. Of arrays
    without elements it is the definition everywhere: results such as sums over no rows are not launched.
    The function runs by its definition with ``on="definition"``, if no other one is given.
    """

    def of(*arrays: Any, **options: Any) -> Any:
        is_empty = any(own is not None and 0 in own.shape for own in arrays)
        if _gpu() is not None and not is_empty:
            return call(function, *arrays, **options, **({"on": None} if definition is None else {}))
        return function(*arrays, **options, on="definition") if definition is None else definition(*arrays, **options)

    return of


def _differentiable(forward: Callable[..., Any], backward: Callable[..., Any], options: int) -> Callable[..., Any]:
    """A function whose last arguments, ``options`` of them, are constants; ``backward`` takes these,
    the arrays and the derivatives by the results.
    """

    @functools.partial(jax.custom_vjp, nondiff_argnums=tuple(range(options)))
    def of(*arguments: Any) -> Any:
        return forward(*arguments)

    def keep(*arguments: Any) -> Any:
        made = forward(*arguments)
        return made, (arguments[options:], made)

    def derive(*arguments: Any) -> Any:
        (arrays, made), derivatives = arguments[options:]
        return backward(*arguments[:options], arrays, made, derivatives)

    of.defvjp(keep, derive)
    differentiable: Callable[..., Any] = of
    return differentiable


def _underivable(function: Callable[..., Any], options: int, reason: str) -> Callable[..., Any]:
    """A function whose last arguments, ``options`` of them, are constants, and that has no derivatives."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=tuple(range(options)))
    def of(*arguments: Any) -> Any:
        return function(*arguments)

    def refuse(*arguments: Any) -> Any:
        raise TypeError(f"there are no derivatives of {reason}")

    of.defvjp(refuse, refuse)
    underivable: Callable[..., Any] = of
    return underivable


def _constants(**named: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(named.items())


def _as_i32(numbers: Any) -> Any:
    if numbers is None:
        return None
    check_integers(numbers)
    return _losses.as_i32(numbers)


def _nothing_by(*arrays: Any) -> tuple[Any, ...]:
    """The derivatives by arrays that count as constants."""
    return tuple(None if own is None or own.dtype.kind in "iu" else jnp.zeros_like(own) for own in arrays)


def _row_operator(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    of = _either(lambda x, axis, on: _rows.along(name, x, axis, None, on))
    by = _either(lambda x, d_y, axis, on: _rows.along_backward(name, x, d_y, axis, on))
    derivable = _differentiable(
        lambda axis, x: of(x, axis=axis), lambda axis, arrays, made, d_y: (by(arrays[0], d_y, axis=axis),), 1
    )
    return derivable, by


_softmax, _softmax_backward = _row_operator("softmax")
_log_softmax, _log_softmax_backward = _row_operator("log_softmax")


def softmax(x: Any, *, axis: int = -1) -> Any:
    """As ``tilewright.ops.softmax``."""
    return _softmax(axis, x)


def softmax_backward(x: Any, d_y: Any, *, axis: int = -1) -> Any:
    """As ``tilewright.ops.softmax_backward``."""
    return _softmax_backward(x, d_y, axis=axis)


def log_softmax(x: Any, *, axis: int = -1) -> Any:
    """As ``tilewright.ops.log_softmax``."""
    return _log_softmax(axis, x)


def log_softmax_backward(x: Any, d_y: Any, *, axis: int = -1) -> Any:
    """As ``tilewright.ops.log_softmax_backward``."""
    return _log_softmax_backward(x, d_y, axis=axis)


def _norm(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    forward = _either(
        lambda x, weight, bias, residual, epsilon, less_one, on: _rows.norm(
            name, x, weight, bias, residual, epsilon, less_one, None, on
        )
    )
    backward = _either(
        lambda x, weight, bias, d_y, d_sum, epsilon, less_one, on: _rows.norm_backward(
            name, x, weight, bias, d_y, d_sum, epsilon, less_one, on
        )
    )

    def derive(epsilon: float, less_one: bool, arrays: Any, made: Any, derivatives: Any) -> Any:
        x, weight, bias, residual = arrays
        source, d_y, d_sum = (x, derivatives, None) if residual is None else (made[1], *derivatives)
        d_x, d_weight, d_bias = backward(source, weight, bias, d_y, d_sum, epsilon=epsilon, less_one=less_one)
        return d_x, d_weight, d_bias, None if residual is None else d_x

    derivable = _differentiable(
        lambda epsilon, less_one, *arrays: forward(*arrays, epsilon=epsilon, less_one=less_one), derive, 2
    )
    return derivable, backward


_rms_norm, _rms_norm_backward = _norm("rms_norm")
_layer_norm, _layer_norm_backward = _norm("layer_norm")


def rms_norm(
    x: Any, weight: Any = None, *, residual: Any = None, epsilon: float = 1e-5, weight_less_one: bool = False
) -> Any:
    """As ``tilewright.ops.rms_norm``."""
    return _rms_norm(epsilon, weight_less_one, x, weight, None, residual)


def rms_norm_backward(
    x: Any, weight: Any, d_y: Any, *, d_sum: Any = None, epsilon: float = 1e-5, weight_less_one: bool = False
) -> tuple[Any, Any]:
    """As ``tilewright.ops.rms_norm_backward``."""
    d_x, d_weight, _ = _rms_norm_backward(x, weight, None, d_y, d_sum, epsilon=epsilon, less_one=weight_less_one)
    return d_x, d_weight


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, residual: Any = None, epsilon: float = 1e-5) -> Any:
    """As ``tilewright.ops.layer_norm``."""
    return _layer_norm(epsilon, False, x, weight, bias, residual)


def layer_norm_backward(
    x: Any, weight: Any, bias: Any, d_y: Any, *, d_sum: Any = None, epsilon: float = 1e-5
) -> tuple[Any, Any, Any]:
    """As ``tilewright.ops.layer_norm_backward``."""
    d_x, d_weight, d_bias = _layer_norm_backward(x, weight, bias, d_y, d_sum, epsilon=epsilon, less_one=False)
    return d_x, d_weight, d_bias


_activate = _either(lambda x, up, function, on: _elements.activate(x, function, up, None, on))
_activate_backward = _either(lambda x, up, d_y, function, on: _elements.activate_backward(x, d_y, function, up, on))
_activation = _differentiable(
    lambda function, x, up: _activate(x, up, function=function),
    lambda function, arrays, made, d_y: _activate_backward(*arrays, d_y, function=function),
    1,
)


def activation(x: Any, function: str = "silu", *, up: Any = None) -> Any:
    """As ``tilewright.ops.activation``."""
    return _activation(function, x, up)


def activation_backward(x: Any, d_y: Any, function: str = "silu", *, up: Any = None) -> tuple[Any, Any]:
    """As ``tilewright.ops.activation_backward``."""
    d_x, d_up = _activate_backward(x, up, d_y, function=function)
    return d_x, d_up


_drop = _either(lambda x, probability, seed, on: _elements.drop(x, probability, seed, None, on))
_dropout = _differentiable(
    lambda probability, seed, x: _drop(x, probability=probability, seed=seed),
    lambda probability, seed, arrays, made, d_y: (_drop(d_y, probability=probability, seed=seed),),
    2,
)


def dropout(x: Any, probability: float, seed: int) -> Any:
    """As ``tilewright.ops.dropout``. The seed is a constant of the traced function."""
    return _dropout(probability, seed, x)


_multiply = _either(
    lambda x, weight, bias, invariant, on: _products.multiply(x, weight, bias, invariant=invariant, on=on)
)
_multiply_backward = _either(
    lambda x, weight, d_y, bias, invariant, on: _products.multiply_backward(x, weight, d_y, bias, None, invariant, on)
)
_linear = _differentiable(
    lambda invariant, *arrays: _multiply(*arrays, invariant=invariant),
    lambda invariant, arrays, made, d_y: _multiply_backward(
        arrays[0], arrays[1], d_y, bias=arrays[2] is not None, invariant=invariant
    ),
    1,
)


def linear(x: Any, weight: Any, bias: Any = None, *, invariant: bool = False) -> Any:
    """As ``tilewright.ops.linear``."""
    return _linear(invariant, x, weight, bias)


_gate = _either(
    lambda x, weight, bias, **options: ops.gated_linear(x, weight, bias, **options),
    lambda x, weight, bias, function, pairs, invariant: definitions.gated_linear(x, weight, bias, function, pairs, invariant),
)
_gate_backward = _either(
    lambda x, weight, bias, d_y, **options: ops.gated_linear_backward(x, weight, d_y, bias, **options),
    lambda x, weight, bias, d_y, function, pairs, invariant: definitions.gated_linear_backward(
        x, weight, bias, d_y, function, pairs, invariant
    ),
)
_gated_linear = _differentiable(
    lambda options, *arrays: _gate(*arrays, **dict(options)),
    lambda options, arrays, made, d_y: _gate_backward(*arrays, d_y, **dict(options)),
    1,
)


def gated_linear(
    x: Any, weight: Any, bias: Any = None, *, function: str = "silu", pairs: str = "halves", invariant: bool = False
) -> Any:
    """As ``tilewright.ops.gated_linear``."""
    return _gated_linear(_constants(function=function, pairs=pairs, invariant=invariant), x, weight, bias)


_scaled = _either(
    lambda x, x_scales, weight, weight_scales, bias, **options: ops.scaled_linear(
        x, x_scales, weight, weight_scales, bias, **options
    ),
    lambda x, x_scales, weight, weight_scales, bias, element, invariant: definitions.scaled_linear(
        x, x_scales, weight, weight_scales, bias, element, invariant
    ),
)


def gated_linear_backward(x: Any, weight: Any, d_y: Any, bias: Any = None, **options: Any) -> Any:
    """As ``tilewright.ops.gated_linear_backward``."""
    return _gate_backward(x, weight, bias, d_y, **options)


def int4_linear_backward(weight: Any, scales: Any, d_y: Any, *, invariant: bool = False) -> Any:
    """As ``tilewright.ops.int4_linear_backward``."""
    return _by_int4(weight, scales, d_y, invariant=invariant)


def _summed_rows(d_y: Any, bias: Any) -> Any:
    """The derivative by a bias; None without one."""
    return None if bias is None else definitions.narrow(definitions.flat_rows(definitions.wide(d_y)).sum(0), bias)


def _derive_scaled(options: Any, arrays: Any, made: Any, d_y: Any) -> Any:
    return None, None, None, None, _summed_rows(d_y, arrays[4])


_scaled_linear = _differentiable(lambda options, *arrays: _scaled(*arrays, **dict(options)), _derive_scaled, 1)


def scaled_linear(
    x: Any,
    x_scales: Any,
    weight: Any,
    weight_scales: Any,
    bias: Any = None,
    *,
    element: str = "bf16",
    invariant: bool = False,
) -> Any:
    """As ``tilewright.ops.scaled_linear``."""
    return _scaled_linear(_constants(element=element, invariant=invariant), x, x_scales, weight, weight_scales, bias)


_of_int4 = _either(
    lambda x, weight, scales, bias, invariant: ops.int4_linear(x, weight, scales, bias, invariant=invariant),
    lambda x, weight, scales, bias, invariant: definitions.int4_linear(x, weight, scales, bias, invariant),
)
_by_int4 = _either(
    lambda weight, scales, d_y, invariant: ops.int4_linear_backward(weight, scales, d_y, invariant=invariant),
    lambda weight, scales, d_y, invariant: definitions.int4_linear_backward(weight, scales, d_y, invariant),
)
_int4_linear = _differentiable(
    lambda invariant, *arrays: _of_int4(*arrays, invariant=invariant),
    lambda invariant, arrays, made, d_y: (
        _by_int4(arrays[1], arrays[2], d_y, invariant=invariant),
        None,
        None,
        _summed_rows(d_y, arrays[3]),
    ),
    1,
)


def int4_linear(x: Any, weight: Any, scales: Any, bias: Any = None, *, invariant: bool = False) -> Any:
    """As ``tilewright.ops.int4_linear``."""
    return _int4_linear(invariant, x, weight, scales, bias)


def linear_backward(x: Any, weight: Any, d_y: Any, *, bias: bool = False, invariant: bool = False) -> tuple[Any, Any, Any]:
    """As ``tilewright.ops.linear_backward``."""
    d_x, d_weight, d_bias = _multiply_backward(x, weight, d_y, bias=bias, invariant=invariant)
    return d_x, d_weight, d_bias


def linears_backward(x: Any, weights: Any, derivatives: Any, *, invariant: bool = False) -> tuple[Any, list[Any]]:
    """As ``tilewright.ops.linears_backward``."""
    made = [linear_backward(x, weight, d_y, invariant=invariant) for weight, d_y in zip(weights, derivatives)]
    return sum(each[0] for each in made[1:]) + made[0][0], [each[1] for each in made]


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
    invariant: bool = False,
) -> tuple[Any, Any, Any, Any]:
    """As ``tilewright.ops.feed_forward_backward``."""
    hidden = activation(first, function, up=second)
    d_hidden, d_down, _ = linear_backward(hidden, down, d_y, invariant=invariant)
    d_first, d_second = activation_backward(first, d_hidden, function, up=second)
    d_x, (d_gate, d_up) = linears_backward(x, (gate, up), (d_first, d_second), invariant=invariant)
    return d_x, d_gate, d_up, d_down


_product = _either(lambda a, b, invariant, on: _products.product(a, b, None, invariant, on))
_matmul = _differentiable(
    lambda invariant, a, b: _product(a, b, invariant=invariant),
    lambda invariant, arrays, made, d_y: (
        _product(d_y, arrays[1].swapaxes(-1, -2), invariant=invariant),
        # Rows of the derivative by b are sums over those of a.
        _product(arrays[0].swapaxes(-1, -2), d_y, invariant=False),
    ),
    1,
)


def matmul(a: Any, b: Any, *, invariant: bool = False) -> Any:
    """As ``tilewright.ops.matmul``."""
    return _matmul(invariant, a, b)


_entropy = _either(
    lambda logits, targets, on, **options: _losses.entropy(logits, targets, _losses.settings_of(**options), None, on)
)
_entropy_backward = _either(
    lambda logits, targets, lse, d_loss, on, **options: _losses.entropy_backward(
        logits, targets, lse, d_loss, _losses.settings_of(**options), None, None, on
    )
)
_cross_entropy = _differentiable(
    lambda options, logits, targets: tuple(_entropy(logits, targets, **dict(options))),
    lambda options, arrays, made, derivatives: (
        # There is no derivative by the second result: it is a means for the first.
        _entropy_backward(*arrays, made[1], derivatives[0], **dict(options)),
        None,
    ),
    1,
)


def cross_entropy_rows(
    logits: Any,
    targets: Any,
    *,
    ignored: int = -100,
    smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    vocabulary: int | None = None,
) -> Any:
    """As ``tilewright.ops.cross_entropy_rows``. The second result has no derivative."""
    settings = _constants(ignored=ignored, smoothing=smoothing, z_loss=z_loss, softcap=softcap)
    return _cross_entropy(settings, logits[:, :vocabulary], _as_i32(targets))


def cross_entropy_rows_backward(
    logits: Any, targets: Any, lse: Any, d_loss: Any, *, vocabulary: int | None = None, **options: Any
) -> Any:
    """As ``tilewright.ops.cross_entropy_rows_backward``."""
    if vocabulary is not None:
        raise TypeError("the derivative of padded rows is written over the logits, and arrays of JAX are not written")
    return _entropy_backward(logits, _as_i32(targets), lse, d_loss, **options)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _linear_cross_entropy(settings: Any, x: Any, weight: Any, targets: Any) -> Any:
    return _fused(settings, x, weight, targets, False)[0]


def _fused(settings: Any, x: Any, weight: Any, targets: Any, needs_gradients: bool) -> tuple[Any, Any, Any]:
    """The loss, and its derivatives by ``x`` and ``weight``, for one chunk of rows after another."""
    options = dict(settings)
    is_mean, size, is_same = (options.pop(name) for name in ("is_mean", "rows", "invariant"))
    rows = x.shape[0]
    scale = 1 / jnp.maximum((targets != options["ignored"]).sum(), 1) if is_mean else jnp.float32(1)

    def of_chunk(before: tuple[Any, Any], chunk: tuple[Any, Any]) -> tuple[tuple[Any, Any], Any]:
        (loss, d_weight), (part, classes) = before, chunk
        logits = _multiply(part, weight, None, invariant=is_same)
        losses, lse = _entropy(logits, classes, **options)
        loss = loss + losses.sum()
        if not needs_gradients:
            return (loss, d_weight), None
        d_loss = (jnp.ones_like(losses) * scale).astype(losses.dtype)
        d_logits = _entropy_backward(logits, classes, lse, d_loss, **options)
        # The sum over chunks is rounded once.
        d_weight = d_weight + jnp.matmul(d_logits.T, part, preferred_element_type=d_weight.dtype)
        return (loss, d_weight), _product(d_logits, weight, invariant=is_same)

    kind = jnp.float64 if x.dtype == jnp.float64 else jnp.float32
    state = (jnp.zeros((), kind), jnp.zeros(weight.shape if needs_gradients else (), kind))
    whole, slopes = rows // size * size, []
    if whole:
        chunks = (x[:whole].reshape(-1, size, x.shape[1]), targets[:whole].reshape(-1, size))
        state, d_x = jax.lax.scan(of_chunk, state, chunks)
        slopes.append(d_x)
    if whole < rows:
        state, d_x = of_chunk(state, (x[whole:], targets[whole:]))
        slopes.append(d_x)
    loss = state[0] * scale
    if not needs_gradients:
        return loss, None, None
    d_x = jnp.concatenate([own.reshape(-1, x.shape[1]) for own in slopes]) if slopes else jnp.zeros_like(x)
    return loss, d_x, state[1].astype(weight.dtype)


def _keep_fused(settings: Any, x: Any, weight: Any, targets: Any) -> Any:
    loss, d_x, d_weight = _fused(settings, x, weight, targets, True)
    return loss, (d_x, d_weight)


def _derive_fused(settings: Any, kept: Any, d_loss: Any) -> Any:
    return (*((own * d_loss).astype(own.dtype) for own in kept), None)


_linear_cross_entropy.defvjp(_keep_fused, _derive_fused)


def linear_cross_entropy(x: Any, weight: Any, targets: Any, *, is_mean: bool, rows: int, **options: Any) -> Any:
    """What ``tilewright.ops.linear_cross_entropy`` calls: ``x`` is a matrix, and 0 ``rows`` are as many as
    are computed at once by default.
    """
    size = min(_losses.chunk_of(x, weight, targets, rows), max(x.shape[0], 1))
    return _linear_cross_entropy(_constants(is_mean=is_mean, rows=size, **options), x, weight, _as_i32(targets))


_embed = _either(lambda table, indices, on: _embedding.rows_of_table(indices, table, on))
_embed_backward = _either(
    lambda indices, d_y, vocabulary, padding, on: _embedding.sums_of_rows(indices, d_y, vocabulary, padding, on)
)
_embedded = _differentiable(
    lambda padding, table, indices: _embed(table, indices),
    lambda padding, arrays, made, d_y: (
        _embed_backward(arrays[1], d_y, vocabulary=arrays[0].shape[0], padding=padding),
        None,
    ),
    1,
)


def embedding(indices: Any, table: Any, *, padding: int | None = None) -> Any:
    """As ``tilewright.ops.embedding``."""
    return _embedded(padding, table, _as_i32(indices))


def embedding_backward(indices: Any, d_y: Any, vocabulary: int, *, padding: int | None = None) -> Any:
    """As ``tilewright.ops.embedding_backward``."""
    return _embed_backward(_as_i32(indices), d_y, vocabulary=vocabulary, padding=padding)


_rotate = _either(
    lambda x, cos, sin, positions, interleaved, heads, backward, on: _embedding.rotate(
        x, cos, sin, positions, interleaved, heads, backward, on
    )
)
_rope = _differentiable(
    lambda options, *arrays: _rotate(*arrays, **dict(options)),
    lambda options, arrays, made, d_y: (
        _rotate(d_y, *arrays[1:], **{**dict(options), "backward": not dict(options)["backward"]}),
        *_nothing_by(*arrays[1:]),
    ),
    1,
)


def rope(
    x: Any, cos: Any, sin: Any, *, positions: Any = None, interleaved: bool = False, heads: int = 1, backward: bool = False
) -> Any:
    """As ``tilewright.ops.rope``. The tables are constants: they have no derivative."""
    settings = _constants(interleaved=interleaved, heads=heads, backward=backward)
    return _rope(settings, x, cos, sin, _as_i32(positions))


def _of_sequences(rows: Any, bounds: Any, axis: int, value: float) -> Any:
    """The rows of packed sequences; a value in the others, which kernels do not write."""
    number = jnp.arange(rows.shape[axis])
    inside = (number >= bounds[0]) & (number < bounds[-1])
    return jnp.where(inside.reshape([-1 if at == axis else 1 for at in range(rows.ndim)]), rows, value)


_attend = _either(lambda *arrays, own, on: _attention.forward(_attention.Inputs(*arrays), own, on))
_attend_backward = _either(
    lambda q, k, v, sinks, slopes, bias, cu_q, cu_k, o, lse, d_o, d_lse, own, on: _attention.backward(
        _attention.Inputs(q, k, v, sinks, slopes, bias, cu_q, cu_k), o, lse, d_o, d_lse, own, on
    )
)


def _derive_attention(own: Any, arrays: Any, made: Any, derivatives: Any) -> Any:
    d_q, d_k, d_v, d_sinks, d_bias = _attend_backward(*arrays, *made, *derivatives, own=own)
    slopes, cu_q, cu_k = arrays[4], arrays[6], arrays[7]
    if cu_q is not None:
        d_q, d_k, d_v = _of_sequences(d_q, cu_q, 0, 0.0), _of_sequences(d_k, cu_k, 0, 0.0), _of_sequences(d_v, cu_k, 0, 0.0)
    return d_q, d_k, d_v, d_sinks, *_nothing_by(slopes), d_bias, None, None


def _attention_of(own: Any, *arrays: Any) -> tuple[Any, Any]:
    o, lse = _attend(*arrays, own=own)
    cu_q = arrays[6]
    return (o, lse) if cu_q is None else (_of_sequences(o, cu_q, 0, 0.0), _of_sequences(lse, cu_q, 1, -jnp.inf))


_attended = _differentiable(_attention_of, _derive_attention, 1)


def attention(
    q: Any, k: Any, v: Any, sinks: Any, slopes: Any, bias: Any, cu_q: Any, cu_k: Any, *, settings: Any
) -> Any:
    """What ``tilewright.ops.attention`` calls: the output and the logarithms of sums."""
    return _attended(settings, q, k, v, sinks, slopes, bias, _as_i32(cu_q), _as_i32(cu_k))


_decode = _either(
    lambda q, k, v, lengths, pages, sinks, slopes, own, splits, on: _attention.decode(
        q, k, v, lengths, pages, sinks, slopes, own, splits, on
    )
)
_decoded = _underivable(
    lambda own, splits, *arrays: tuple(_decode(*arrays, own=own, splits=splits)),
    2,
    "attention_decode, which reads a cache: train with `attention`, or pass `jax.lax.stop_gradient(q)`",
)


def attention_decode(
    q: Any, k: Any, v: Any, lengths: Any, pages: Any, sinks: Any, slopes: Any, *, settings: Any, splits: int | None
) -> Any:
    """What ``tilewright.ops.attention_decode`` calls: the output and the logarithms of sums."""
    return _decoded(settings, splits, q, k, v, _as_i32(lengths), _as_i32(pages), sinks, slopes)


_choose = _either(lambda logits, chosen, over_all, on: _experts.choose(logits, chosen, over_all, on))
_choose_backward = _either(
    lambda logits, experts, weights, d_weights, over_all, on: _experts.route_backward(
        logits, experts, weights, d_weights, over_all=over_all, on=on
    )
)
_route = _differentiable(
    lambda chosen, over_all, logits: tuple(_choose(logits, chosen=chosen, over_all=over_all)),
    lambda chosen, over_all, arrays, made, derivatives: (
        _choose_backward(arrays[0], *made, derivatives[1], over_all=over_all),
    ),
    2,
)


def route(logits: Any, chosen: int, *, over_all: bool = False) -> Any:
    """As ``tilewright.ops.route``."""
    return _route(chosen, over_all, logits)


_place = _either(lambda experts, count, on: _experts.place(experts, count, on))


def expert_places(experts: Any, count: int) -> Any:
    """As ``tilewright.ops.expert_places``, as a tuple."""
    return _place(_as_i32(experts), count=count)


def _where(places: Any = None, choices: Any = None, *others: Any) -> Places:
    return Places(places, choices, *(others or (None,) * 3))


_to_places = _either(lambda x, places, choices, on: _experts.to_places(x, _where(places, choices), on))
_from_places = _either(lambda d_y, places, on: _experts.permute_backward(d_y, places, on=on))
_permute = _differentiable(
    lambda *arrays: _to_places(*arrays), lambda arrays, made, d_y: (_from_places(d_y, arrays[1]), None, None), 0
)


def permute(x: Any, places: Any, choices: Any) -> Any:
    """As ``tilewright.ops.permute``, of the first two of the places."""
    return _permute(x, places, choices)


_multiply_rows = _either(
    lambda x, w, *tiles, transposed, invariant, on: _experts.multiply_rows(
        x, w, _where(None, None, *tiles), transposed, invariant, on
    )
)
_multiply_rows_backward = _either(
    lambda x, w, d_y, *tiles, transposed, invariant, on: _experts.expert_product_backward(
        x, w, d_y, _where(None, None, *tiles), transposed=transposed, invariant=invariant, on=on
    )
)
_expert_product = _differentiable(
    lambda transposed, invariant, *arrays: _multiply_rows(*arrays, transposed=transposed, invariant=invariant),
    lambda transposed, invariant, arrays, made, d_y: (
        *_multiply_rows_backward(*arrays[:2], d_y, *arrays[2:], transposed=transposed, invariant=invariant),
        *(None,) * 3,
    ),
    2,
)


def expert_product(
    x: Any, w: Any, tile_experts: Any, first_tiles: Any, tiles: Any, *, transposed: bool = True, invariant: bool = False
) -> Any:
    """As ``tilewright.ops.expert_product``, of the last three of the places."""
    return _expert_product(transposed, invariant, x, w, tile_experts, first_tiles, tiles)


_weigh = _either(lambda x, places, choices, weights, on: _experts.weigh(x, _where(places, choices), weights, on))
_weigh_backward = _either(
    lambda x, d_y, places, choices, weights, on: _experts.combine_backward(x, d_y, places, choices, weights, on=on)
)


def _derive_combine(arrays: Any, made: Any, d_y: Any) -> Any:
    x, places, choices, weights = arrays
    d_x, d_weights = _weigh_backward(x, d_y, places, choices, weights)
    return d_x, None, None, d_weights


_combine = _differentiable(lambda *arrays: _weigh(*arrays), _derive_combine, 0)


def combine(x: Any, places: Any, choices: Any, weights: Any) -> Any:
    """As ``tilewright.ops.combine``, of the first two of the places."""
    return _combine(x, places, choices, weights)


_to_8_bits = _either(lambda x, square, power_of_two, on: _experts.to_8_bits(x, square, power_of_two, on))
_from_8_bits = _either(lambda q, scales, square, element, on: _experts.from_8_bits(q, scales, square, element, on))
_quantize = _underivable(
    lambda square, power_of_two, x: tuple(_to_8_bits(x, square=square, power_of_two=power_of_two)),
    2,
    "quantize, which rounds to numbers of 8 bits: pass `jax.lax.stop_gradient(x)`",
)
_dequantize = _underivable(
    lambda square, element, q, scales: _from_8_bits(q, scales, square=square, element=element),
    2,
    "dequantize, whose numbers of 8 bits are rounded: pass `jax.lax.stop_gradient(scales)`",
)


def quantize(x: Any, *, square: bool = False, power_of_two: bool = False) -> Any:
    """As ``tilewright.ops.quantize``."""
    return _quantize(square, power_of_two, x)


def dequantize(q: Any, scales: Any, *, square: bool = False, element: str = "f32") -> Any:
    """As ``tilewright.ops.dequantize``."""
    return _dequantize(square, element, q, scales)


def adamw(
    parameters: Any,
    gradients: Any,
    first: Any,
    second: Any,
    *,
    step: Any,
    lr: Any = 1e-3,
    betas: tuple[Any, Any] = (0.9, 0.999),
    epsilon: Any = 1e-8,
    decay: Any = 1e-2,
) -> tuple[list[Any], list[Any], list[Any]]:
    """A step of ``tilewright.ops.adamw``: the parameters and the averages after it. All numbers may be
    traced.
    """
    for arrays in zip(parameters, gradients, first, second):
        shapes = {tuple(own.shape) for own in arrays}
        if len(shapes) > 1:
            raise ValueError(f"a parameter, its gradient and its averages have one shape, not {', '.join(map(str, shapes))}")
    numbers = (lr, *betas, epsilon, decay, step)
    made = [definitions.adamw(*arrays, *numbers) for arrays in zip(parameters, gradients, first, second)]
    return [own[0] for own in made], [own[1] for own in made], [own[2] for own in made]
