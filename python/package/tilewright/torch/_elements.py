"""Functions of elements, gated products and dropout."""

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor

from ..ops import _elements
from ._register import batched, fresh, like, one_by_one, register, spread


def _activation(x: Tensor, up: Optional[Tensor], function: str) -> Tensor:
    return fresh(_elements.activate(x, function, up, None, None), x, up)


def _activation_backward(x: Tensor, up: Optional[Tensor], d_y: Tensor, function: str) -> tuple[Tensor, Tensor]:
    d_x, d_up = _elements.activate_backward(x, d_y, function, up, None)
    return fresh(d_x, x, d_y, up), x.new_empty(0) if d_up is None else fresh(d_up, x, d_y, up)


_of_activation = register("activation", _activation, lambda x, up, function: like(x))
_by_activation = register(
    "activation_backward", _activation_backward, lambda x, up, d_y, function: (like(x), x.new_empty(0) if up is None else like(up))
)


def _keep_activation(ctx: Any, inputs: Any, output: Any) -> None:
    x, up, ctx.function = inputs
    ctx.save_for_backward(x, up)


def _derive_activation(ctx: Any, d_y: Tensor) -> Any:
    x, up = ctx.saved_tensors
    d_x, d_up = _by_activation(x, up, d_y, ctx.function)
    return d_x, None if up is None else d_up, None


_of_activation.derive_by(_derive_activation, _keep_activation)
batched(_of_activation, lambda leading, is_batched, size: leading if spread(leading, is_batched, size, 0, 1) else None)
batched(
    _by_activation,
    lambda leading, is_batched, size: leading if leading[1] is not None and spread(leading, is_batched, size, 0, 1, 2) else None,
)


def _dropout(x: Tensor, probability: float, seed: int) -> Tensor:
    return fresh(_elements.drop(x, probability, seed, None, None), x)


_of_dropout = register("dropout", _dropout, lambda x, probability, seed: like(x))


def _keep_dropout(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.probability, ctx.seed = inputs


def _derive_dropout(ctx: Any, d_y: Tensor) -> Any:
    return _of_dropout(d_y, ctx.probability, ctx.seed), None, None


_of_dropout.derive_by(_derive_dropout, _keep_dropout)
one_by_one(_of_dropout)
