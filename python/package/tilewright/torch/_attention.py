"""Attention."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._definitions import AttentionSettings
from ..ops import _attention, _cache
from ..ops._attention import Inputs
from ._register import fresh, like, no_derivatives_by, one_by_one, register, wide


def _attention_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Optional[Tensor],
    slopes: Optional[Tensor],
    bias: Optional[Tensor],
    cu_q: Optional[Tensor],
    cu_k: Optional[Tensor],
    causal: bool,
    left: int,
    right: int,
    scale: float,
    softcap: float,
    heads: int,
    expression: str,
    deterministic: bool,
) -> tuple[Tensor, Tensor]:
    own = AttentionSettings(causal, left, right, scale, softcap, heads, expression, deterministic)
    o, lse = _attention.forward(Inputs(q, k, v, sinks, slopes, bias, cu_q, cu_k), own, None)
    return fresh(o, q, k, v), fresh(lse)


def _attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Optional[Tensor],
    slopes: Optional[Tensor],
    bias: Optional[Tensor],
    cu_q: Optional[Tensor],
    cu_k: Optional[Tensor],
    o: Tensor,
    lse: Tensor,
    d_o: Tensor,
    d_lse: Optional[Tensor],
    causal: bool,
    left: int,
    right: int,
    scale: float,
    softcap: float,
    heads: int,
    expression: str,
    deterministic: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    own = AttentionSettings(causal, left, right, scale, softcap, heads, expression, deterministic)
    inputs = Inputs(q, k, v, sinks, slopes, bias, cu_q, cu_k)
    made = _attention.backward(inputs, o, lse, d_o, d_lse, own, None)
    # An operator returns tensors alone: what there is not is empty.
    d_q, d_k, d_v, d_sinks, d_bias = (q.new_empty(0) if each is None else fresh(each, d_o) for each in made)
    return d_q, d_k, d_v, d_sinks, d_bias


def _fake(q: Tensor, k: Tensor, v: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    is_packed, heads = others[3] is not None, others[-3]
    rows = (q.shape[1], q.shape[0]) if is_packed else (q.shape[0], q.shape[heads], q.shape[3 - heads])
    return like(q, (*q.shape[:-1], v.shape[-1])), like(q, rows, wide(q))


def _fake_backward(
    q: Tensor, k: Tensor, v: Tensor, sinks: Optional[Tensor], slopes: Optional[Tensor], bias: Optional[Tensor], *others: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    d_sinks, d_bias = (q.new_empty(0) if own is None else like(own) for own in (sinks, bias))
    return like(q), like(k), like(v), d_sinks, d_bias


_of = register("attention", _attention_forward, _fake)
_by = register("attention_backward", _attention_backward, _fake_backward)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    tensors, ctx.settings = inputs[:8], inputs[8:]
    no_derivatives_by("attention", slopes=tensors[4])
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def _derive(ctx: Any, d_o: Tensor | None, d_lse: Tensor | None) -> Any:
    *tensors, o, lse = ctx.saved_tensors
    if d_o is None and d_lse is None:
        return (None,) * 16
    d_o = torch.zeros_like(o) if d_o is None else d_o
    d_q, d_k, d_v, d_sinks, d_bias = _by(*tensors, o, lse, d_o, d_lse, *ctx.settings)
    sinks, bias = tensors[3], tensors[5]
    return (d_q, d_k, d_v, None if sinks is None else d_sinks, None, None if bias is None else d_bias, *(None,) * 10)


_of.derive_by(_derive, _keep)


def _attention_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Tensor,
    pages: Optional[Tensor],
    sinks: Optional[Tensor],
    slopes: Optional[Tensor],
    causal: bool,
    left: int,
    scale: float,
    softcap: float,
    splits: Optional[int],
) -> tuple[Tensor, Tensor]:
    own = AttentionSettings(causal, left, -1, scale, softcap, 1, "")
    o, lse = _attention.decode(q, k, v, lengths, pages, sinks, slopes, own, splits, None)
    return fresh(o, q, k, v), fresh(lse)


_decode = register(
    "attention_decode",
    _attention_decode,
    lambda q, k, v, *others: (like(q, (*q.shape[:-1], v.shape[-1])), like(q, q.shape[:-1], wide(q))),
)
_decode.derive_not("it reads a cache. Train with `attention`, or call it under `torch.no_grad()`")
one_by_one(_of, _by, _decode)


def _append_to_cache(
    k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, lengths: Tensor, pages: Optional[Tensor]
) -> None:
    _cache.append(k, v, k_cache, v_cache, lengths, pages, None)


register("append_to_cache", _append_to_cache, lambda *arguments: None, mutates=("k_cache", "v_cache"))
