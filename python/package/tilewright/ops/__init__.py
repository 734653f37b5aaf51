"""Operators that models call, forward and backward, as functions of arrays.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> x = torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16, requires_grad=True)  # doctest: +SKIP
>>> weight = torch.ones(4096, device="cuda", requires_grad=True)  # doctest: +SKIP
>>> tw.ops.rms_norm(x, weight).sum().backward()             # doctest: +SKIP

Each function takes arrays with any leading axes. On a CUDA device it launches kernels that are
planned for the types, layouts and options of a call and for the device; tensors of PyTorch are used
on its current stream, and gradients are recorded. On the host an operator runs by its definition, a
formula on whole arrays, so that models run anywhere. ``on="interpreter"`` runs the kernels on host
arrays, checked and slowly.

``out`` is an array that the result is written to, and is returned. Arrays whose strides no kernel
takes are copied first: rows must be contiguous and equally far apart. ``plan`` shows the kernels of
a call, and such copies.

A row has the same bits whatever the other rows are and however many there are: an operator of rows
adds in an order that depends on the length of the row alone. So have rows of products with
``invariant=True``, or in the context ``invariant()``; without it, a product of few rows may be divided
along K, and one of many rows not.
"""

from __future__ import annotations

from ._attention import attention, attention_decode
from ._cache import append_to_cache
from ._elements import activation, activation_backward, dropout, geglu, gelu, relu, silu, swiglu
from ._embedding import embedding, embedding_backward, rope
from ._experts import (
    Places,
    combine,
    dequantize,
    expert_places,
    expert_product,
    experts,
    permute,
    quantize,
    route,
)
from ._gated import gated_linear, gated_linear_backward
from ._int4 import int4_linear, int4_linear_backward, int4_weights, quantize_int4
from ._invariance import invariant
from ._losses import cross_entropy, cross_entropy_rows, cross_entropy_rows_backward, linear_cross_entropy
from ._plan import plan
from ._products import feed_forward, feed_forward_backward, linear, linear_backward, linears, linears_backward, matmul
from ._rows import (
    layer_norm, layer_norm_backward, log_softmax, log_softmax_backward, rms_norm, rms_norm_backward, softmax, softmax_backward,
)  # fmt: skip
from ._scaled import scaled_linear
from ._training import adamw

__all__ = [
    "Places", "activation", "activation_backward", "adamw", "append_to_cache", "attention", "attention_decode", "combine",
    "cross_entropy", "cross_entropy_rows", "cross_entropy_rows_backward", "dequantize", "dropout", "embedding",
    "embedding_backward", "expert_places", "expert_product", "experts", "feed_forward", "feed_forward_backward", "gated_linear",
    "gated_linear_backward", "geglu", "gelu", "int4_linear", "int4_linear_backward", "int4_weights", "invariant", "layer_norm",
    "layer_norm_backward", "linear", "linear_backward", "linear_cross_entropy", "linears", "linears_backward", "log_softmax",
    "log_softmax_backward", "matmul", "permute", "plan", "quantize", "quantize_int4", "relu", "rms_norm", "rms_norm_backward",
    "rope", "route", "scaled_linear", "silu", "softmax", "softmax_backward", "swiglu",
]  # fmt: skip
