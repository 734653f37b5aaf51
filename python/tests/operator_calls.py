"""A call of every public function of `tilewright.ops`, for the tests of each framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilewright import _definitions as definitions
from tilewright import ops

_source = np.random.default_rng(11)


def _array(*shape: int) -> Any:
    return _source.standard_normal(shape).astype("f4")


class Call(NamedTuple):
    """A function of arrays, and the arrays."""

    of: Callable[..., Any]
    arrays: tuple[Any, ...]
    #: Which of the arrays have derivatives.
    by: tuple[int, ...] = ()


X, R, UP, D = (_array(3, 5, 8) for _ in range(4))
W, B, MATRIX, WIDE = _array(8), _array(8), _array(4, 8), _array(6, 8)
CLASSES = (np.arange(15) % 8).reshape(3, 5).astype("i4")
TARGETS = np.array([0, 8, -100, 3, 3, 1], "i4")
LOGITS, LOSS = _array(6, 9), _array(6)
LSE = definitions.cross_entropy(LOGITS, TARGETS, -100, 0.0, 0.0, 0.0)[1]
GATE, UPPER, DOWN = _array(6, 8), _array(6, 8), _array(8, 6)
FIRST, SECOND = X @ GATE.T, X @ UPPER.T
COS, SIN = np.cos(_array(5, 4)), np.sin(_array(5, 4))
Q, K, V = _array(2, 4, 3, 16), _array(2, 2, 7, 16), _array(2, 2, 7, 8)
LENGTHS = np.array([4, 7], "i4")
TOKENS, CHOICES = _array(5, 8), np.array([[0, 2], [2, 1], [0, 1], [2, 0], [1, 0]], "i4")
WHERE = definitions.expert_places(CHOICES, 4, 128)
ROWS = np.where((WHERE[1] >= 0)[:, None], _array(WHERE[1].shape[0], 8), np.float32(0))
EXPERTS = _array(4, 6, 8)
SHARES = np.abs(_array(5, 2))
LIST = (_array(3, 4), _array(5))
STATE = tuple(np.abs(own) for own in LIST)


def _adamw(*arrays: Any) -> Any:
    """A step, whose results are the arrays after it, wherever they are."""
    parameters, gradients, first, second = (list(arrays[at : at + 2]) for at in (0, 2, 4, 6))
    copied = [[own + 0 for own in each] for each in (parameters, first, second)]
    made = ops.adamw(copied[0], gradients, copied[1], copied[2], step=3, lr=0.1)
    return tuple(own for each in (copied if made is None else made) for own in each)


def _append(k: Any, v: Any, k_cache: Any, v_cache: Any, lengths: Any) -> Any:
    """The caches after it, wherever they are."""
    return tuple(ops.append_to_cache(k, v, k_cache + 0, v_cache + 0, lengths))


#: Functions of the module that compute nothing on arrays, with the reason.
REASONS = {
    "Places": "the type of the result of expert_places",
    "int4_weights": "unpacks the words of weights, which int4_linear reads",
    "invariant": "a setting of a context",
    "plan": "shows the kernels of a call",
    "quantize_int4": "packs weights into words once, before a model runs",
}

CALLS: dict[str, Call] = {
    "activation": Call(lambda x, up: ops.activation(x, "silu", up=up), (X, UP), (0, 1)),
    "activation_backward": Call(lambda x, d, up: ops.activation_backward(x, d, "gelu", up=up), (X, D, UP)),
    "adamw": Call(_adamw, (*LIST, *LIST, *STATE, *STATE)),
    "append_to_cache": Call(_append, (K[:, :, :2], V[:, :, :2], K, V, LENGTHS)),
    "attention": Call(
        lambda q, k, v, s: ops.attention(q, k, v, causal=True, window=(3, -1), softcap=2.0, sinks=s, return_lse=True),
        (Q, K, V, _array(4)),
        (0, 1, 2, 3),
    ),
    "attention_decode": Call(
        lambda q, k, v, n: ops.attention_decode(q, k, v, n, window=4, return_lse=True, splits=2), (Q, K, V, LENGTHS)
    ),
    "combine": Call(lambda x, p, c, s: ops.combine(x, ops.Places(p, c, None, None, None), s), (ROWS, *WHERE[:2], SHARES), (0, 3)),
    "cross_entropy": Call(lambda x, t: ops.cross_entropy(x, t, smoothing=0.1, z_loss=1e-3), (LOGITS, TARGETS), (0,)),
    "cross_entropy_rows": Call(lambda x, t: ops.cross_entropy_rows(x, t, softcap=3.0)[0], (LOGITS, TARGETS), (0,)),
    "cross_entropy_rows_backward": Call(ops.cross_entropy_rows_backward, (LOGITS, TARGETS, LSE, LOSS)),
    "dropout": Call(lambda x: ops.dropout(x, 0.3, 5), (X,), (0,)),
    "embedding": Call(ops.embedding, (CLASSES, WIDE.repeat(2, 0)), (1,)),
    "embedding_backward": Call(lambda i, d: ops.embedding_backward(i, d, 9, padding=2), (CLASSES, D)),
    "expert_places": Call(lambda e: tuple(ops.expert_places(e, 4)), (CHOICES,)),
    "expert_product": Call(
        lambda x, w, *where: ops.expert_product(x, w, ops.Places(where[0], where[0], *where[1:])),
        (ROWS, EXPERTS, *WHERE[1:]),
        (0, 1),
    ),
    "experts": Call(
        lambda x, logits, gate, up, down: ops.experts(x, logits, gate, up, down, 2),
        (TOKENS, _array(5, 4), EXPERTS, _array(4, 6, 8), _array(4, 8, 6)),
        (0, 1, 2, 3, 4),
    ),
    "feed_forward": Call(ops.feed_forward, (X, GATE, UPPER, DOWN), (0, 1, 2, 3)),
    "feed_forward_backward": Call(ops.feed_forward_backward, (X, GATE, UPPER, DOWN, FIRST, SECOND, D)),
    "gated_linear": Call(lambda x, w, b: ops.gated_linear(x, w, b, pairs="neighbours"), (X, WIDE, _array(6)), (0, 1, 2)),
    "gated_linear_backward": Call(lambda x, w, d: ops.gated_linear_backward(x, w, d, function="gelu"), (X, WIDE, _array(3, 5, 3))),
    "geglu": Call(ops.geglu, (X, UP), (0, 1)),
    "gelu": Call(lambda x: ops.gelu(x, approximate="tanh"), (X,), (0,)),
    "layer_norm": Call(lambda x, w, b, r: ops.layer_norm(x, w, b, residual=r), (X, W, B, R), (0, 1, 2, 3)),
    "layer_norm_backward": Call(ops.layer_norm_backward, (X, W, B, D)),
    "linear": Call(ops.linear, (X, MATRIX, _array(4)), (0, 1, 2)),
    "linear_backward": Call(lambda x, w, d: ops.linear_backward(x, w, d, bias=True), (X, MATRIX, _array(3, 5, 4))),
    "linear_cross_entropy": Call(
        lambda x, w, t: ops.linear_cross_entropy(x, w, t, rows=4), (_array(6, 8), _array(9, 8), TARGETS), (0, 1)
    ),
    "linears": Call(lambda x, a, b: ops.linears(x, [a, b]), (X, MATRIX, WIDE), (0, 1, 2)),
    "linears_backward": Call(
        lambda x, a, b, d, e: (lambda made: (made[0], *made[1]))(ops.linears_backward(x, [a, b], [d, e])),
        (X, MATRIX, WIDE, _array(3, 5, 4), _array(3, 5, 6)),
    ),
    "log_softmax": Call(lambda x: ops.log_softmax(x, axis=1), (X,), (0,)),
    "log_softmax_backward": Call(ops.log_softmax_backward, (X, D)),
    "matmul": Call(ops.matmul, (X, _array(3, 8, 4)), (0, 1)),
    "permute": Call(lambda x, p, c: ops.permute(x, ops.Places(p, c, None, None, None)), (TOKENS, *WHERE[:2]), (0,)),
    "relu": Call(ops.relu, (X,), (0,)),
    "rms_norm": Call(lambda x, w, r: ops.rms_norm(x, w, residual=r, weight_less_one=True), (X, W, R), (0, 1, 2)),
    "rms_norm_backward": Call(lambda x, w, d, s: ops.rms_norm_backward(x, w, d, d_sum=s), (X, W, D, R)),
    "rope": Call(
        lambda x, c, s, p: ops.rope(x, c, s, positions=p, heads=2), (_array(2, 3, 4, 8), COS, SIN, np.array([[0, 1, 4], [2, 3, 3]], "i4")), (0,)
    ),
    "route": Call(lambda logits: ops.route(logits, 2, over_all=True)[1], (_array(5, 4),), (0,)),
    "silu": Call(ops.silu, (X,), (0,)),
    "softmax": Call(ops.softmax, (X,), (0,)),
    "softmax_backward": Call(lambda x, d: ops.softmax_backward(x, d, axis=0), (X, D)),
    "swiglu": Call(ops.swiglu, (X, UP), (0, 1)),
}

PACKED = ops.quantize_int4(_array(3, 256))

#: Those whose arguments or results are numbers of 8 bits, which NumPy does not have, or whose words of
#: weights say the type of everything else.
NARROW: dict[str, Call] = {
    "quantize": Call(lambda x: ops.quantize(x, square=True), (_array(130, 140),)),
    "int4_linear": Call(lambda x, w, s: ops.int4_linear(x, w, s), (_array(2, 256), *PACKED), (0,)),
    "int4_linear_backward": Call(ops.int4_linear_backward, (*PACKED, _array(2, 3))),
    "scaled_linear": Call(
        lambda x, w: ops.scaled_linear(*ops.quantize(x), *ops.quantize(w), element="f32"), (_array(4, 130), _array(3, 130))
    ),
    "dequantize": Call(lambda x: ops.dequantize(*ops.quantize(x), element="f16"), (_array(130, 140),)),
}


def results(made: Any) -> list[Any]:
    """The results of a call."""
    return list(made) if isinstance(made, (tuple, list)) else [made]


def exact(call: Call) -> list[Any]:
    """The results by the definitions in float64."""
    return results(call.of(*(own.astype("f8") if own.dtype.kind == "f" else own for own in call.arrays)))


def is_every_function_called() -> bool:
    """Whether each public function has a call or a reason."""
    return set(ops.__all__) == set(CALLS) | set(NARROW) | set(REASONS)


__all__ = ["CALLS", "NARROW", "REASONS", "Call", "exact", "is_every_function_called", "results"]
