"""Embeddings and rotary positions."""

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor

from ..ops import _embedding
from ._register import batched, fresh, like, no_derivatives_by, one_by_one, register


def _rows(indices: Tensor, table: Tensor, padding: Optional[int]) -> Tensor:
    return fresh(_embedding.rows_of_table(indices, table, None), table)


def _sums(indices: Tensor, d_y: Tensor, vocabulary: int, padding: Optional[int]) -> Tensor:
    return fresh(_embedding.sums_of_rows(indices, d_y, vocabulary, padding, None), d_y)


_of = register(
    "embedding", _rows, lambda indices, table, padding: like(table, (*indices.shape, table.shape[1]))
)
_by = register(
    "embedding_backward",
    _sums,
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
one_by_one(_by)


def _rope(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Optional[Tensor], interleaved: bool, heads: int, backward: bool
) -> Tensor:
    return fresh(_embedding.rotate(x, cos, sin, positions, interleaved, heads, backward, None), x)


_of_rope = register("rope", _rope, lambda x, *others: like(x))


def _keep_rope(ctx: Any, inputs: Any, output: Any) -> None:
    _, cos, sin, positions, ctx.interleaved, ctx.heads, ctx.backward = inputs
    no_derivatives_by("rope", cos=cos, sin=sin)
    ctx.save_for_backward(cos, sin, positions)


def _derive_rope(ctx: Any, d_y: Tensor) -> Any:
    cos, sin, positions = ctx.saved_tensors
    d_x = _of_rope(d_y, cos, sin, positions, ctx.interleaved, ctx.heads, not ctx.backward)
    return (d_x, *(None,) * 6)


_of_rope.derive_by(_derive_rope, _keep_rope)
one_by_one(_of_rope)
