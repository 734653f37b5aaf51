"""Embeddings and rotary positions."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .. import ops
from ._register import batched, fresh, like, register


def _embedding(indices: Tensor, table: Tensor, padding: Optional[int]) -> Tensor:
    with torch.no_grad():
        return fresh(ops.embedding(indices, table, padding=padding), table)


def _embedding_backward(indices: Tensor, d_y: Tensor, vocabulary: int, padding: Optional[int]) -> Tensor:
    with torch.no_grad():
        return fresh(ops.embedding_backward(indices, d_y, vocabulary, padding=padding), d_y)


_of = register(
    "embedding", _embedding, lambda indices, table, padding: like(table, (*indices.shape, table.shape[1]))
)
_by = register(
    "embedding_backward",
    _embedding_backward,
    lambda indices, d_y, vocabulary, padding: like(d_y, (vocabulary, d_y.shape[-1])),
)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    indices, table, ctx.padding = inputs
    ctx.vocabulary = table.shape[0]
    ctx.save_for_backward(indices)


def _derive(ctx: Any, d_y: Tensor) -> Any:
    (indices,) = ctx.saved_tensors
    return None, _by(indices, d_y, ctx.vocabulary, ctx.padding), None


_of.derive_by(_derive, _keep)
batched(_of, lambda leading, is_batched, size: leading if not is_batched[1] else None)
batched(_by, lambda leading, is_batched, size: None)


def _rope(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Optional[Tensor], interleaved: bool, heads: int, backward: bool
) -> Tensor:
    with torch.no_grad():
        named: Any = {"positions": positions, "interleaved": interleaved, "heads": heads, "backward": backward}
        return fresh(ops.rope(x, cos, sin, **named), x)


_of_rope = register("rope", _rope, lambda x, *others: like(x))


def _keep_rope(ctx: Any, inputs: Any, output: Any) -> None:
    _, cos, sin, positions, ctx.interleaved, ctx.heads, ctx.backward = inputs
    ctx.save_for_backward(cos, sin, positions)


def _derive_rope(ctx: Any, d_y: Tensor) -> Any:
    cos, sin, positions = ctx.saved_tensors
    d_x = _of_rope(d_y, cos, sin, positions, ctx.interleaved, ctx.heads, not ctx.backward)
    return (d_x, *(None,) * 6)


_of_rope.derive_by(_derive_rope, _keep_rope)
batched(_of_rope, lambda leading, is_batched, size: None)
