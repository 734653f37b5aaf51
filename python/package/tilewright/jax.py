"""Operators of JAX: what `tilewright.ops` computes, under `jit`, `grad` and `vmap`.

>>> import jax, tilewright as tw                            # doctest: +SKIP
>>> loss = jax.jit(jax.grad(lambda x, w: tw.ops.rms_norm(x, w).sum()))  # doctest: +SKIP

The functions of ``tilewright.ops`` take arrays of JAX, traced ones too, and call those of this module.
Where JAX has a GPU, they become foreign calls whose kernels are planned as the call is traced, for
the first GPU of the process. Elsewhere they are their definitions. Under ``vmap`` an operator is
executed for one element of the batch after another.
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
from .ops import _attention as _attentions
from .ops import _embedding as _embeddings
from .ops import _rows
from ._record import record

__all__ = [
    "activation",
    "attention",
    "call",
    "cross_entropy_rows",
    "dropout",
    "embedding",
    "gated_linear",
    "int4_linear",
    "layer_norm",
    "linear",
    "log_softmax",
    "matmul",
    "rms_norm",
    "rope",
    "scaled_linear",
    "softmax",
]

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


def _either(function: Callable[..., Any], definition: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays and options: the kernels where there is a GPU, else the definition. Of arrays
    without elements it is the definition everywhere: results such as sums over no rows are not launched.
    """

    def of(*arrays: Any, **options: Any) -> Any:
        is_empty = any(own is not None and 0 in own.shape for own in arrays)
        return call(function, *arrays, **options) if _gpu() is not None and not is_empty else definition(*arrays, **options)

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


def _ordered(definition: Callable[..., Any], arrays: tuple[Any, ...], axis: int) -> Any:
    """A definition along an axis, which is the last one for it."""
    return jnp.moveaxis(definition(*[jnp.moveaxis(own, axis, -1) for own in arrays]), -1, axis)


def _row_operator(name: str) -> Callable[..., Any]:
    function, slope = getattr(ops, name), getattr(ops, f"{name}_backward")
    of, by = getattr(definitions, name), getattr(definitions, f"{name}_backward")
    either = _either(function, lambda x, axis: _ordered(of, (x,), axis))
    either_by = _either(slope, lambda x, d_y, axis: _ordered(by, (x, d_y), axis))
    return _differentiable(
        lambda axis, x: either(x, axis=axis),
        lambda axis, arrays, made, d_y: (either_by(arrays[0], d_y, axis=axis),),
        1,
    )


_softmax, _log_softmax = _row_operator("softmax"), _row_operator("log_softmax")


def softmax(x: Any, *, axis: int = -1) -> Any:
    """As ``tilewright.ops.softmax``."""
    return _softmax(axis, x)


def log_softmax(x: Any, *, axis: int = -1) -> Any:
    """As ``tilewright.ops.log_softmax``."""
    return _log_softmax(axis, x)


def _defined_norm(is_centred: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(x: Any, weight: Any, bias: Any, residual: Any, epsilon: float, less_one: bool) -> Any:
        if residual is None:
            return definitions.norm(x, weight, bias, epsilon, is_centred, less_one)
        total = definitions.narrow(definitions.wide(x) + definitions.wide(residual), x)
        return definitions.norm(total, weight, bias, epsilon, is_centred, less_one), total

    def backward(x: Any, weight: Any, bias: Any, d_y: Any, d_sum: Any, epsilon: float, less_one: bool) -> Any:
        return definitions.norm_backward(x, weight, bias, d_y, d_sum, epsilon, is_centred, less_one)

    return forward, backward


def _kernel_norm(is_centred: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    name = "layer_norm" if is_centred else "rms_norm"

    def forward(x: Any, weight: Any, bias: Any, residual: Any, epsilon: float, less_one: bool) -> Any:
        return _rows._norm(name, x, weight, bias, residual, epsilon, less_one, None, None)

    def backward(x: Any, weight: Any, bias: Any, d_y: Any, d_sum: Any, epsilon: float, less_one: bool) -> Any:
        return _rows._norm_backward(name, x, weight, bias, d_y, d_sum, epsilon, less_one, None)

    return forward, backward


def _norm(is_centred: bool) -> Callable[..., Any]:
    forward, backward = (_either(one, other) for one, other in zip(_kernel_norm(is_centred), _defined_norm(is_centred)))

    def derive(epsilon: float, less_one: bool, arrays: Any, made: Any, derivatives: Any) -> Any:
        x, weight, bias, residual = arrays
        source, d_y, d_sum = (x, derivatives, None) if residual is None else (made[1], *derivatives)
        d_x, d_weight, d_bias = backward(source, weight, bias, d_y, d_sum, epsilon=epsilon, less_one=less_one)
        return d_x, d_weight, d_bias, None if residual is None else d_x

    return _differentiable(
        lambda epsilon, less_one, *arrays: forward(*arrays, epsilon=epsilon, less_one=less_one), derive, 2
    )


_rms_norm, _layer_norm = _norm(False), _norm(True)


def rms_norm(
    x: Any, weight: Any = None, *, residual: Any = None, epsilon: float = 1e-5, weight_less_one: bool = False
) -> Any:
    """As ``tilewright.ops.rms_norm``."""
    return _rms_norm(epsilon, weight_less_one, x, weight, None, residual)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, residual: Any = None, epsilon: float = 1e-5) -> Any:
    """As ``tilewright.ops.layer_norm``."""
    return _layer_norm(epsilon, False, x, weight, bias, residual)


_activate = _either(
    lambda x, up, function: ops.activation(x, function, up=up),
    lambda x, up, function: definitions.activation(function, x, up),
)
_activate_backward = _either(
    lambda x, up, d_y, function: ops.activation_backward(x, d_y, function, up=up),
    lambda x, up, d_y, function: definitions.activation_backward(function, x, up, d_y),
)
_activation = _differentiable(
    lambda function, x, up: _activate(x, up, function=function),
    lambda function, arrays, made, d_y: _activate_backward(*arrays, d_y, function=function),
    1,
)


def activation(x: Any, function: str = "silu", *, up: Any = None) -> Any:
    """As ``tilewright.ops.activation``."""
    if function not in definitions.FUNCTIONS:
        raise ValueError(f"there is no function {function!r}: there are {', '.join(definitions.FUNCTIONS)}")
    return _activation(function, x, up)


_drop = _either(
    lambda x, probability, seed: ops.dropout(x, probability, seed),
    lambda x, probability, seed: definitions.dropout(x, probability, seed),
)
_dropout = _differentiable(
    lambda probability, seed, x: _drop(x, probability=probability, seed=seed),
    lambda probability, seed, arrays, made, d_y: (_drop(d_y, probability=probability, seed=seed),),
    2,
)


def dropout(x: Any, probability: float, seed: int) -> Any:
    """As ``tilewright.ops.dropout``. The seed is a constant of the traced function."""
    return _dropout(probability, seed, x)


def _defined_linear(x: Any, weight: Any, bias: Any, invariant: bool) -> Any:
    y = definitions.product(x, weight.T, invariant)
    return definitions.narrow(y if bias is None else y + definitions.wide(bias), x)


def _defined_linear_backward(x: Any, weight: Any, d_y: Any, bias: bool, invariant: bool) -> Any:
    d = definitions.wide(d_y).reshape(-1, weight.shape[0])
    d_x = definitions.narrow(definitions.product(d, weight, invariant).reshape(x.shape), x)
    d_weight = definitions.narrow(d.T @ definitions.wide(x).reshape(-1, weight.shape[1]), weight)
    return d_x, d_weight, definitions.narrow(d.sum(0), weight) if bias else None


_multiply = _either(
    lambda x, weight, bias, invariant: ops.linear(x, weight, bias, invariant=invariant), _defined_linear
)
_multiply_backward = _either(
    lambda x, weight, d_y, bias, invariant: ops.linear_backward(x, weight, d_y, bias=bias, invariant=invariant),
    _defined_linear_backward,
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
    return _gated_linear(_options(function=function, pairs=pairs, invariant=invariant), x, weight, bias)


_scaled = _either(
    lambda x, x_scales, weight, weight_scales, bias, **options: ops.scaled_linear(
        x, x_scales, weight, weight_scales, bias, **options
    ),
    lambda x, x_scales, weight, weight_scales, bias, element, invariant: definitions.scaled_linear(
        x, x_scales, weight, weight_scales, bias, element, invariant
    ),
)


def _summed_rows(d_y: Any, bias: Any) -> Any:
    """The derivative by a bias; None without one."""
    return None if bias is None else definitions.narrow(definitions.wide(d_y).reshape(-1, d_y.shape[-1]).sum(0), bias)


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
    return _scaled_linear(_options(element=element, invariant=invariant), x, x_scales, weight, weight_scales, bias)


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


_product = _either(
    lambda a, b, invariant: ops.matmul(a, b, invariant=invariant),
    lambda a, b, invariant: definitions.narrow(definitions.product(a, b, invariant), a),
)
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


def _options(**named: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(named.items())


_entropy = _either(ops.cross_entropy_rows, definitions.cross_entropy)
_entropy_backward = _either(ops.cross_entropy_rows_backward, definitions.cross_entropy_backward)
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
    logits: Any, targets: Any, *, ignored: int = -100, smoothing: float = 0.0, z_loss: float = 0.0, softcap: float = 0.0
) -> Any:
    """As ``tilewright.ops.cross_entropy_rows``. The second result has no derivative."""
    settings = _options(ignored=ignored, smoothing=smoothing, z_loss=z_loss, softcap=softcap)
    return _cross_entropy(settings, logits, targets.astype("int32"))


_embed = _either(
    lambda table, indices, padding: ops.embedding(indices, table, padding=padding),
    lambda table, indices, padding: definitions.embedding(indices, table),
)
_embed_backward = _either(
    lambda indices, d_y, vocabulary, padding: ops.embedding_backward(indices, d_y, vocabulary, padding=padding),
    lambda indices, d_y, vocabulary, padding: definitions.embedding_backward(indices, d_y, vocabulary, padding, d_y),
)
_embedding = _differentiable(
    lambda padding, table, indices: _embed(table, indices, padding=padding),
    lambda padding, arrays, made, d_y: (
        _embed_backward(arrays[1], d_y, vocabulary=arrays[0].shape[0], padding=padding),
        None,
    ),
    1,
)


def embedding(indices: Any, table: Any, *, padding: int | None = None) -> Any:
    """As ``tilewright.ops.embedding``."""
    return _embedding(padding, table, indices.astype("int32"))


def _defined_rope(
    x: Any, cos: Any, sin: Any, positions: Any, interleaved: bool, heads: int, backward: bool
) -> Any:
    c, s = _embeddings._angles(x, cos, sin, positions, heads)
    return definitions.rope(x, c, -s if backward else s, interleaved)


_rotate = _either(
    lambda x, cos, sin, positions, **options: ops.rope(x, cos, sin, positions=positions, **options), _defined_rope
)
_rope = _differentiable(
    lambda options, *arrays: _rotate(*arrays, **dict(options)),
    lambda options, arrays, made, d_y: (
        _rotate(d_y, *arrays[1:], **{**dict(options), "backward": not dict(options)["backward"]}),
        *(None if own is None else jnp.zeros_like(own) for own in arrays[1:3]),
        None,
    ),
    1,
)


def rope(
    x: Any, cos: Any, sin: Any, *, positions: Any = None, interleaved: bool = False, heads: int = 1, backward: bool = False
) -> Any:
    """As ``tilewright.ops.rope``. The tables are constants: they have no derivative."""
    settings = _options(interleaved=interleaved, heads=heads, backward=backward)
    return _rope(settings, x, cos, sin, None if positions is None else positions.astype("int32"))


def _kernel_attention(*arrays: Any, own: Any) -> Any:
    return _attentions.forward(_attentions.Inputs(*arrays), own, None)


def _kernel_attention_backward(*arrays: Any, own: Any) -> Any:
    o, lse, d_o, d_lse = arrays[8:]
    return _attentions.backward(_attentions.Inputs(*arrays[:8]), o, lse, d_o, d_lse, own, None)


def _of_sequences(rows: Any, bounds: Any, axis: int, value: float) -> Any:
    """The rows of packed sequences; a value in the others, which kernels do not write."""
    number = jnp.arange(rows.shape[axis])
    inside = (number >= bounds[0]) & (number < bounds[-1])
    return jnp.where(inside.reshape([-1 if at == axis else 1 for at in range(rows.ndim)]), rows, value)


def _check_definition(arrays: Any, own: Any) -> None:
    if arrays[6] is not None:
        raise TypeError("packed sequences run on a device alone, where JAX traces their lengths")
    if own.expression:
        raise TypeError("an expression of biases runs on a device alone")


def _defined_attention(*arrays: Any, own: Any) -> Any:
    _check_definition(arrays, own)
    return _attentions.defined(_attentions.Inputs(*arrays), own)


def _defined_attention_backward(*arrays: Any, own: Any) -> Any:
    o, lse, d_o, d_lse = arrays[8:]
    return _attentions.defined_backward(_attentions.Inputs(*arrays[:8]), o, lse, d_o, d_lse, own)


_attend = _either(
    _kernel_attention, _defined_attention
)
_attend_backward = _either(
    _kernel_attention_backward,
    _defined_attention_backward,
)


def _derive_attention(own: Any, arrays: Any, made: Any, derivatives: Any) -> Any:
    d_q, d_k, d_v, d_sinks, d_bias = _attend_backward(*arrays, *made, *derivatives, own=own)
    slopes, cu_q, cu_k = arrays[4], arrays[6], arrays[7]
    if cu_q is not None:
        d_q, d_k, d_v = _of_sequences(d_q, cu_q, 0, 0.0), _of_sequences(d_k, cu_k, 0, 0.0), _of_sequences(d_v, cu_k, 0, 0.0)
    return d_q, d_k, d_v, d_sinks, None if slopes is None else jnp.zeros_like(slopes), d_bias, None, None


def _attention_of(own: Any, *arrays: Any) -> tuple[Any, Any]:
    o, lse = _attend(*arrays, own=own)
    cu_q = arrays[6]
    return (o, lse) if cu_q is None else (_of_sequences(o, cu_q, 0, 0.0), _of_sequences(lse, cu_q, 1, -jnp.inf))


_attention = _differentiable(_attention_of, _derive_attention, 1)


def attention(
    q: Any, k: Any, v: Any, sinks: Any, slopes: Any, bias: Any, cu_q: Any, cu_k: Any, *, settings: Any
) -> Any:
    """What ``tilewright.ops.attention`` calls: the output and the logarithms of sums."""
    cu_q, cu_k = (None if each is None else each.astype("int32") for each in (cu_q, cu_k))
    return _attention(settings, q, k, v, sinks, slopes, bias, cu_q, cu_k)
