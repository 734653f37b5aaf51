"""Products of matrices."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .. import ops
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
