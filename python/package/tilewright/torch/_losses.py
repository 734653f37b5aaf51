"""Cross entropy, of logits and of a linear layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..ops import _losses
from ._register import fresh, like, one_by_one, register, wide


def _cross_entropy(
    logits: Tensor, targets: Tensor, ignored: int, smoothing: float, z_loss: float, softcap: float
) -> tuple[Tensor, Tensor]:
    loss, lse = _losses.entropy(logits, targets, _losses.settings_of(ignored, smoothing, z_loss, softcap), None, None)
    return fresh(loss), fresh(lse)


def _cross_entropy_backward(
    logits: Tensor,
    targets: Tensor,
    lse: Tensor,
    d_loss: Tensor,
    ignored: int,
    smoothing: float,
    z_loss: float,
    softcap: float,
) -> Tensor:
    settings = _losses.settings_of(ignored, smoothing, z_loss, softcap)
    return fresh(_losses.entropy_backward(logits, targets, lse, d_loss, settings, None, None, None), logits)


def _of_rows(x: Tensor) -> Tensor:
    return like(x, x.shape[:1], wide(x))


_of = register(
    "cross_entropy", _cross_entropy, lambda logits, *others: (_of_rows(logits), _of_rows(logits))
)
_by = register("cross_entropy_backward", _cross_entropy_backward, lambda logits, *others: like(logits))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    logits, targets, *ctx.settings = inputs
    ctx.save_for_backward(logits, targets, output[1])
    # There is no derivative by the second result: it is a means for the first.
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _derive(ctx: Any, d_loss: Tensor | None, d_lse: Tensor | None) -> Any:
    logits, targets, lse = ctx.saved_tensors
    if d_loss is None:
        return (None,) * 6
    return (_by(logits, targets, lse, d_loss.contiguous(), *ctx.settings), *(None,) * 5)


_of.derive_by(_derive, _keep)


def _linear_cross_entropy(
    x: Tensor,
    weight: Tensor,
    targets: Tensor,
    ignored: int,
    smoothing: float,
    z_loss: float,
    softcap: float,
    is_mean: bool,
    rows: int,
    needs: bool,
    invariant: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    loss, d_x, d_weight = _losses.fused(
        x, weight, targets, ignored, smoothing, z_loss, softcap, is_mean, rows, needs, invariant, None
    )
    # An operator returns tensors alone: what there is not is empty.
    return (fresh(loss), *(x.new_empty(0) if own is None else fresh(own) for own in (d_x, d_weight)))


def _fake_linear(x: Tensor, weight: Tensor, targets: Tensor, *settings: Any) -> tuple[Tensor, Tensor, Tensor]:
    if settings[6]:
        return like(x, (), wide(x)), like(x), like(weight)
    return like(x, (), wide(x)), x.new_empty(0), x.new_empty(0)


_of_linear = register("linear_cross_entropy", _linear_cross_entropy, _fake_linear)


def _keep_linear(ctx: Any, inputs: Any, output: Any) -> None:
    _, d_x, d_weight = output
    ctx.save_for_backward(d_x, d_weight)
    ctx.mark_non_differentiable(d_x, d_weight)
    ctx.set_materialize_grads(False)


def _derive_linear(ctx: Any, d_loss: Tensor | None, *others: Any) -> Any:
    d_x, d_weight = ctx.saved_tensors
    if d_loss is None:
        return (None,) * 11
    if torch.is_grad_enabled():
        raise RuntimeError("there are no second derivatives of linear_cross_entropy: leave `create_graph` out, or call `cross_entropy`")
    return (_times(d_x, d_loss), _times(d_weight, d_loss), *(None,) * 9)


def _times(slope: Tensor, d_loss: Tensor) -> Tensor:
    """A derivative times that by the loss: in the type of the loss, and rounded once. The scale of a loss may be
    greater than every number of f16.
    """
    return torch.mul(slope, d_loss.reshape(1), out=torch.empty_like(slope))


_of_linear.derive_by(_derive_linear, _keep_linear)
one_by_one(_of, _by, _of_linear)
