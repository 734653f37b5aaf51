"""Softmax and norms."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ..ops import _rows
from ._register import batched, fresh, like, register, spread


def _row_operator(name: str) -> None:
    def forward(x: Tensor, axis: int) -> Tensor:
        return fresh(_rows.along(name, x, axis, None, None), x)

    def backward(x: Tensor, d_y: Tensor, axis: int) -> Tensor:
        return fresh(_rows.along_backward(name, x, d_y, axis, None), x, d_y)

    of = register(name, forward, lambda x, axis: like(x))
    by = register(f"{name}_backward", backward, lambda x, d_y, axis: like(x))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.axis = inputs
        ctx.save_for_backward(x)

    def derive(ctx: Any, d_y: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return by(x, d_y, ctx.axis), None

    of.derive_by(derive, keep)

    def moves(leading: list[Any], is_batched: list[bool], size: int) -> Any:
        tensors = tuple(range(len(leading) - 1))
        if not spread(leading, is_batched, size, *tensors):
            return None
        if leading[0].dim() == 1:
            # A number of a batch is a row of one element, and has no axis to shift.
            return None
        axis = leading[-1]
        return [*leading[:-1], axis if axis < 0 else axis + 1]

    batched(of, moves)
    batched(by, moves)


_row_operator("softmax")
_row_operator("log_softmax")


def _rms_norm(x: Tensor, weight: Optional[Tensor], epsilon: float, less_one: bool) -> Tensor:
    return fresh(_rows.norm("rms_norm", x, weight, None, None, epsilon, less_one, None, None), x)


def _rms_norm_residual(
    x: Tensor, weight: Optional[Tensor], residual: Tensor, epsilon: float, less_one: bool
) -> tuple[Tensor, Tensor]:
    y, total = _rows.norm("rms_norm", x, weight, None, residual, epsilon, less_one, None, None)
    return fresh(y, x, residual), fresh(total, x, residual)


def _rms_norm_backward(
    x: Tensor, weight: Optional[Tensor], d_y: Tensor, d_sum: Optional[Tensor], epsilon: float, less_one: bool
) -> tuple[Tensor, Tensor]:
    d_x, d_weight, _ = _rows.norm_backward("rms_norm", x, weight, None, d_y, d_sum, epsilon, less_one, None)
    return fresh(d_x, d_y), x.new_empty(0) if d_weight is None else fresh(d_weight)


def _layer_norm(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], epsilon: float) -> Tensor:
    return fresh(_rows.norm("layer_norm", x, weight, bias, None, epsilon, False, None, None), x)


def _layer_norm_residual(
    x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], residual: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    y, total = _rows.norm("layer_norm", x, weight, bias, residual, epsilon, False, None, None)
    return fresh(y, x, residual), fresh(total, x, residual)


def _layer_norm_backward(
    x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], d_y: Tensor, d_sum: Optional[Tensor], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    made = _rows.norm_backward("layer_norm", x, weight, bias, d_y, d_sum, epsilon, False, None)
    # An operator returns tensors alone: what there is not is empty.
    d_x, d_weight, d_bias = (x.new_empty(0) if own is None else fresh(own, d_y) for own in made)
    return d_x, d_weight, d_bias


def _vector(x: Tensor, weight: Optional[Tensor]) -> Tensor:
    return x.new_empty(0) if weight is None else like(weight)


_of_rms = register("rms_norm", _rms_norm, lambda x, weight, epsilon, less_one: like(x))
_of_rms_residual = register(
    "rms_norm_residual", _rms_norm_residual, lambda x, weight, residual, epsilon, less_one: (like(x), like(x))
)
_by_rms = register(
    "rms_norm_backward", _rms_norm_backward, lambda x, weight, d_y, d_sum, epsilon, less_one: (like(x), _vector(x, weight))
)
_of_layer = register("layer_norm", _layer_norm, lambda x, weight, bias, epsilon: like(x))
_of_layer_residual = register(
    "layer_norm_residual", _layer_norm_residual, lambda x, weight, bias, residual, epsilon: (like(x), like(x))
)
_by_layer = register(
    "layer_norm_backward",
    _layer_norm_backward,
    lambda x, weight, bias, d_y, d_sum, epsilon: (like(x), _vector(x, weight), _vector(x, bias)),
)


def _keep_rms(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, ctx.epsilon, ctx.less_one = inputs
    ctx.save_for_backward(x, weight)


def _derive_rms(ctx: Any, d_y: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    d_x, d_weight = _by_rms(x, weight, d_y, None, ctx.epsilon, ctx.less_one)
    return d_x, None if weight is None else d_weight, None, None


def _keep_rms_residual(ctx: Any, inputs: Any, output: Any) -> None:
    _, weight, _, ctx.epsilon, ctx.less_one = inputs
    ctx.save_for_backward(output[1], weight)


def _derive_rms_residual(ctx: Any, d_y: Tensor, d_sum: Tensor) -> Any:
    total, weight = ctx.saved_tensors
    d_x, d_weight = _by_rms(total, weight, d_y, d_sum, ctx.epsilon, ctx.less_one)
    return d_x, None if weight is None else d_weight, d_x, None, None


def _keep_layer(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, ctx.epsilon = inputs
    ctx.save_for_backward(x, weight, bias)


def _derive_layer(ctx: Any, d_y: Tensor) -> Any:
    x, weight, bias = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_layer(x, weight, bias, d_y, None, ctx.epsilon)
    return d_x, None if weight is None else d_weight, None if bias is None else d_bias, None


def _keep_layer_residual(ctx: Any, inputs: Any, output: Any) -> None:
    _, weight, bias, _, ctx.epsilon = inputs
    ctx.save_for_backward(output[1], weight, bias)


def _derive_layer_residual(ctx: Any, d_y: Tensor, d_sum: Tensor) -> Any:
    total, weight, bias = ctx.saved_tensors
    d_x, d_weight, d_bias = _by_layer(total, weight, bias, d_y, d_sum, ctx.epsilon)
    return d_x, None if weight is None else d_weight, None if bias is None else d_bias, d_x, None


_of_rms.derive_by(_derive_rms, _keep_rms)
_of_rms_residual.derive_by(_derive_rms_residual, _keep_rms_residual)
_of_layer.derive_by(_derive_layer, _keep_layer)
_of_layer_residual.derive_by(_derive_layer_residual, _keep_layer_residual)
batched(_of_rms, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0) else None)
batched(_of_layer, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0) else None)
batched(_of_rms_residual, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0, 2) else None)
batched(_of_layer_residual, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0, 3) else None)
# A derivative by weights is one for each element of the batch.
batched(_by_rms, lambda leading, is_batched, size: None)
batched(_by_layer, lambda leading, is_batched, size: None)
