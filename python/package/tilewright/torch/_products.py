"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .. import ops
from ..ops import _products
from ._register import batched, fresh, like, register, spread


def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    with torch.no_grad():
        return fresh(ops.linear(x, weight, bias), x)


def _linear_backward(x: Tensor, weight: Tensor, d_y: Tensor, bias: bool) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        d_x, d_weight, d_bias = ops.linear_backward(x, weight, d_y, bias=bias)
        return fresh(d_x), fresh(d_weight), x.new_empty(0) if d_bias is None else fresh(d_bias)


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    with torch.no_grad():
        return fresh(ops.matmul(a, b), a)


_of_linear = register("linear", _linear, lambda x, weight, bias: like(x, (*x.shape[:-1], weight.shape[0])))
_by_linear = register(
    "linear_backward",
    _linear_backward,
    lambda x, weight, d_y, bias: (like(x), like(weight), like(weight, weight.shape[:1]) if bias else x.new_empty(0)),
)
_of_matmul = register("matmul", _matmul, lambda a, b: like(a, (*a.shape[:-1], b.shape[-1])))


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(x, weight)


def _derive_linear(ctx: Any, d_y: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_linear(x, weight, d_y, ctx.bias)
    return d_x, d_weight, d_bias if ctx.bias else None


def _keep_matmul(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _derive_matmul(ctx: Any, d_y: Tensor) -> Any:
    a, b = ctx.saved_tensors
    return _of_matmul(d_y, b.transpose(-1, -2)), _of_matmul(a.transpose(-1, -2), d_y)


_of_linear.derive_by(_derive_linear, _keep_linear)
_of_matmul.derive_by(_derive_matmul, _keep_matmul)
batched(_of_linear, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0) else None)
batched(_by_linear, lambda leading, is_batched, size: None)
batched(
    _of_matmul,
    lambda leading, is_batched, size: leading if leading[0].dim() - is_batched[0] == 2 and spread(leading, is_batched, size, 0, 1) else None,
)


def _linears(x: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    with torch.no_grad():
        return [fresh(ops.linear(x, weight), x) for weight in weights]


def _linears_backward(x: Tensor, weights: Sequence[Tensor], derivatives: Sequence[Tensor]) -> list[Tensor]:
    with torch.no_grad():
        d_x, d_weights = ops.linears_backward(x, weights, derivatives)
        return [fresh(own) for own in (d_x, *d_weights)]


_of_linears = register(
    "linears", _linears, lambda x, weights: [like(x, (*x.shape[:-1], weight.shape[0])) for weight in weights]
)
_by_linears = register(
    "linears_backward", _linears_backward, lambda x, weights, derivatives: [like(own) for own in (x, *weights)]
)


def _keep_linears(ctx: Any, inputs: Any, output: Any) -> None:
    x, weights = inputs
    ctx.save_for_backward(x, *weights)


def _derive_linears(ctx: Any, derivatives: Sequence[Tensor]) -> Any:
    x, *weights = ctx.saved_tensors
    d_x, *d_weights = _by_linears(x, weights, list(derivatives))
    return d_x, d_weights


def _feed_forward(x: Tensor, gate: Tensor, up: Tensor, down: Tensor, function: str) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        y, first, second = _products.feed_forward_parts(x, gate, up, down, function, None)
        return fresh(y, x), fresh(first, x), fresh(second, x)


def _feed_forward_backward(
    x: Tensor, gate: Tensor, up: Tensor, down: Tensor, first: Tensor, second: Tensor, d_y: Tensor, function: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    with torch.no_grad():
        made = ops.feed_forward_backward(x, gate, up, down, first, second, d_y, function)
        return tuple(fresh(own, d_y) for own in made)


def _fake_feed_forward(x: Tensor, gate: Tensor, up: Tensor, down: Tensor, function: str) -> tuple[Tensor, Tensor, Tensor]:
    inner = (*x.shape[:-1], gate.shape[0])
    return like(x, (*x.shape[:-1], down.shape[0])), like(x, inner), like(x, inner)


_of_feed = register("feed_forward", _feed_forward, _fake_feed_forward)
_by_feed = register(
    "feed_forward_backward",
    _feed_forward_backward,
    lambda x, gate, up, down, *others: (like(x), like(gate), like(up), like(down)),
)


def _keep_feed(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.function = inputs
    ctx.save_for_backward(*tensors, *output[1:])
    # What the backward reads is no result of the layer.
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _derive_feed(ctx: Any, d_y: Optional[Tensor], *others: Any) -> Any:
    if d_y is None:
        return (None,) * 5
    return (*_by_feed(*ctx.saved_tensors, d_y, ctx.function), None)


_of_linears.derive_by(_derive_linears, _keep_linears)
_of_feed.derive_by(_derive_feed, _keep_feed)
for _own in (_of_linears, _by_linears, _of_feed, _by_feed):
    batched(_own, lambda leading, is_batched, size: None)
