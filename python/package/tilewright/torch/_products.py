"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .. import ops
from .._definitions import flat_rows
from ..ops import _products
from ._register import batched, fresh, like, no_derivatives_by, one_by_one, register, spread


def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor], invariant: bool) -> Tensor:
    return fresh(_products.multiply(x, weight, bias, invariant=invariant), x)


def _linear_backward(
    x: Tensor, weight: Tensor, d_y: Tensor, bias: bool, invariant: bool
) -> tuple[Tensor, Tensor, Tensor]:
    d_x, d_weight, d_bias = _products.multiply_backward(x, weight, d_y, bias, None, invariant)
    return fresh(d_x), fresh(d_weight), x.new_empty(0) if d_bias is None else fresh(d_bias)


def _matmul(a: Tensor, b: Tensor, invariant: bool) -> Tensor:
    return fresh(_products.product(a, b, None, invariant), a)


_of_linear = register("linear", _linear, lambda x, weight, bias, invariant=False: like(x, (*x.shape[:-1], weight.shape[0])))
_by_linear = register(
    "linear_backward",
    _linear_backward,
    lambda x, weight, d_y, bias, invariant=False: (like(x), like(weight), like(weight, weight.shape[:1]) if bias else x.new_empty(0)),
)
_of_matmul = register("matmul", _matmul, lambda a, b, invariant=False: like(a, (*a.shape[:-1], b.shape[-1])))


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, ctx.invariant = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(x, weight)


def _derive_linear(ctx: Any, d_y: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_linear(x, weight, d_y, ctx.bias, ctx.invariant)
    return d_x, d_weight, d_bias if ctx.bias else None, None


def _keep_matmul(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.invariant = inputs
    ctx.save_for_backward(*tensors)


def _derive_matmul(ctx: Any, d_y: Tensor) -> Any:
    a, b = ctx.saved_tensors
    # Rows of the derivative by b are sums over those of a.
    return _of_matmul(d_y, b.transpose(-1, -2), ctx.invariant), _of_matmul(a.transpose(-1, -2), d_y, False), None


_of_linear.derive_by(_derive_linear, _keep_linear)
_of_matmul.derive_by(_derive_matmul, _keep_matmul)
batched(_of_linear, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0) else None)
batched(
    _of_matmul,
    lambda leading, is_batched, size: leading if leading[0].dim() - is_batched[0] == 2 and spread(leading, is_batched, size, 0, 1) else None,
)


def _linears(x: Tensor, weights: Sequence[Tensor], invariant: bool) -> list[Tensor]:
    return [fresh(_products.multiply(x, weight, None, invariant=invariant), x) for weight in weights]


def _linears_backward(
    x: Tensor, weights: Sequence[Tensor], derivatives: Sequence[Tensor], invariant: bool
) -> list[Tensor]:
    d_x, d_weights = _products.multiply_all_backward(x, weights, derivatives, invariant, None)
    return [fresh(own) for own in (d_x, *d_weights)]


_of_linears = register(
    "linears",
    _linears,
    lambda x, weights, invariant=False: [like(x, (*x.shape[:-1], weight.shape[0])) for weight in weights],
)
_by_linears = register(
    "linears_backward",
    _linears_backward,
    lambda x, weights, derivatives, invariant=False: [like(own) for own in (x, *weights)],
)


def _keep_linears(ctx: Any, inputs: Any, output: Any) -> None:
    x, weights, ctx.invariant = inputs
    ctx.save_for_backward(x, *weights)


def _derive_linears(ctx: Any, derivatives: Sequence[Tensor]) -> Any:
    x, *weights = ctx.saved_tensors
    d_x, *d_weights = _by_linears(x, weights, list(derivatives), ctx.invariant)
    return d_x, d_weights, None


def _feed_forward(
    x: Tensor, gate: Tensor, up: Tensor, down: Tensor, function: str, invariant: bool
) -> tuple[Tensor, Tensor, Tensor]:
    y, first, second = _products.feed_forward_parts(x, gate, up, down, function, invariant, None)
    return fresh(y, x), fresh(first, x), fresh(second, x)


def _feed_forward_backward(
    x: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
    first: Tensor,
    second: Tensor,
    d_y: Tensor,
    function: str,
    invariant: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    made = _products.pass_back(x, gate, up, down, first, second, d_y, function, invariant, None)
    d_x, d_gate, d_up, d_down = (fresh(own, d_y) for own in made)
    return d_x, d_gate, d_up, d_down


def _fake_feed_forward(
    x: Tensor, gate: Tensor, up: Tensor, down: Tensor, function: str, invariant: bool
) -> tuple[Tensor, Tensor, Tensor]:
    inner = (*x.shape[:-1], gate.shape[0])
    return like(x, (*x.shape[:-1], down.shape[0])), like(x, inner), like(x, inner)


_of_feed = register("feed_forward", _feed_forward, _fake_feed_forward)
_by_feed = register(
    "feed_forward_backward",
    _feed_forward_backward,
    lambda x, gate, up, down, *others: (like(x), like(gate), like(up), like(down)),
)


def _keep_feed(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.function, ctx.invariant = inputs
    ctx.save_for_backward(*tensors, *output[1:])
    # What the backward reads is no result of the layer.
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _derive_feed(ctx: Any, d_y: Optional[Tensor], *others: Any) -> Any:
    if d_y is None:
        return (None,) * 6
    return (*_by_feed(*ctx.saved_tensors, d_y, ctx.function, ctx.invariant), None, None)


def _gated_linear(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], function: str, pairs: str, invariant: bool
) -> Tensor:
    return fresh(ops.gated_linear(x, weight, bias, function=function, pairs=pairs, invariant=invariant), x)


def _gated_linear_backward(
    x: Tensor, weight: Tensor, d_y: Tensor, bias: Optional[Tensor], function: str, pairs: str, invariant: bool
) -> tuple[Tensor, Tensor, Tensor]:
    d_x, d_weight, d_bias = ops.gated_linear_backward(
        x, weight, d_y, bias, function=function, pairs=pairs, invariant=invariant
    )
    return fresh(d_x), fresh(d_weight), x.new_empty(0) if d_bias is None else fresh(d_bias)


_of_gated = register(
    "gated_linear",
    _gated_linear,
    lambda x, weight, bias, *others: like(x, (*x.shape[:-1], weight.shape[0] // 2)),
)
_by_gated = register(
    "gated_linear_backward",
    _gated_linear_backward,
    lambda x, weight, d_y, bias, *others: (like(x), like(weight), x.new_empty(0) if bias is None else like(bias)),
)


def _keep_gated(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, *ctx.options = inputs
    ctx.save_for_backward(x, weight, bias)


def _derive_gated(ctx: Any, d_y: Tensor) -> Any:
    x, weight, bias = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_gated(x, weight, d_y, bias, *ctx.options)
    return d_x, d_weight, None if bias is None else d_bias, None, None, None


_of_linears.derive_by(_derive_linears, _keep_linears)
_of_feed.derive_by(_derive_feed, _keep_feed)
_of_gated.derive_by(_derive_gated, _keep_gated)
batched(_of_gated, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0) else None)
one_by_one(_by_linear, _of_linears, _by_linears, _of_feed, _by_feed, _by_gated)


def _scaled_linear(
    x: Tensor,
    x_scales: Tensor,
    weight: Tensor,
    weight_scales: Tensor,
    bias: Optional[Tensor],
    element: str,
    invariant: bool,
) -> Tensor:
    return fresh(ops.scaled_linear(x, x_scales, weight, weight_scales, bias, element=element, invariant=invariant), x)


_RESULTS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}

_of_scaled = register(
    "scaled_linear",
    _scaled_linear,
    lambda x, x_scales, weight, weight_scales, bias, element, invariant: like(
        x, (*x.shape[:-1], weight.shape[0]), _RESULTS[element]
    ),
)


def _keep_scaled(ctx: Any, inputs: Any, output: Any) -> None:
    x, x_scales, weight, weight_scales, bias, *_ = inputs
    no_derivatives_by("scaled_linear", x=x, x_scales=x_scales, weight=weight, weight_scales=weight_scales)
    ctx.kind = None if bias is None else bias.dtype


def _summed_rows(d_y: Tensor, kind: Any) -> Optional[Tensor]:
    """The derivative by a bias of a type; None without one."""
    wide = torch.promote_types(d_y.dtype, torch.float32)
    return None if kind is None else flat_rows(d_y).sum(0, dtype=wide).to(kind)


def _derive_scaled(ctx: Any, d_y: Tensor) -> Any:
    return (*(None,) * 4, _summed_rows(d_y, ctx.kind), None, None)


_of_scaled.derive_by(_derive_scaled, _keep_scaled)
one_by_one(_of_scaled)


def _int4_linear(x: Tensor, weight: Tensor, scales: Tensor, bias: Optional[Tensor], invariant: bool) -> Tensor:
    return fresh(ops.int4_linear(x, weight, scales, bias, invariant=invariant), x)


def _int4_linear_backward(weight: Tensor, scales: Tensor, d_y: Tensor, invariant: bool) -> Tensor:
    return fresh(ops.int4_linear_backward(weight, scales, d_y, invariant=invariant), d_y)


_of_int4 = register("int4_linear", _int4_linear, lambda x, weight, *others: like(x, (*x.shape[:-1], weight.shape[0])))
_by_int4 = register(
    "int4_linear_backward",
    _int4_linear_backward,
    lambda weight, scales, d_y, invariant: like(d_y, (*d_y.shape[:-1], 8 * weight.shape[1])),
)


def _keep_int4(ctx: Any, inputs: Any, output: Any) -> None:
    _, weight, scales, bias, ctx.invariant = inputs
    no_derivatives_by("int4_linear", scales=scales)
    ctx.kind = None if bias is None else bias.dtype
    ctx.save_for_backward(weight, scales)


def _derive_int4(ctx: Any, d_y: Tensor) -> Any:
    return _by_int4(*ctx.saved_tensors, d_y, ctx.invariant), None, None, _summed_rows(d_y, ctx.kind), None


_of_int4.derive_by(_derive_int4, _keep_int4)
batched(_of_int4, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0) else None)
batched(_by_int4, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 2) else None)
