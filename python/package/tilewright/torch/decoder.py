"""Decoding with a language model over a paged cache.

Law: the logits are those of the model, but for rounding. A step launches the same kernels on the same
memory whatever the lengths of the sequences are, so on a GPU it is one CUDA graph.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .. import ops
from ..ops._invariance import is_invariant
from .patch import _are_bare, _epsilon, _feed_forward, _has_linear, _norm, _rms_norm

__all__ = ["Decoder"]

#: The models whose layers are known.
_MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
#: Rows of a page of the cache.
_PAGE = 64


class _Layer(NamedTuple):
    """The weights of a layer, and its part of the cache."""

    input_norm: Tensor
    #: The projections to queries, keys and values, one below the other.
    projections: Tensor
    bias: Tensor | None
    output: nn.Linear
    feed_norm: Tensor
    feed_forward: Callable[[Tensor], Tensor]
    keys: Tensor
    values: Tensor
    #: The keys that a query sees with its own; None for all.
    window: int | None


class Decoder:
    """Decodes with a model of `transformers`, of ``LlamaForCausalLM``, ``MistralForCausalLM`` or
    ``Qwen2ForCausalLM``, without gradients.

    ``sequences`` sequences of at most ``positions`` tokens have a cache in pages of ``page`` rows.
    With ``invariant``, a sequence has the same bits whatever the other sequences are and however many
    there are: products are batch-invariant, and ``splits``, that of ``tw.ops.attention_decode``, is by
    default that of one sequence. Where it is not said, the setting of ``tw.ops.invariant`` counts.

    The weights are the model's own. Those of queries, keys and values are moved into one matrix, and so
    are those of both halves of a gated layer: one product makes what they make. They stay parameters of
    the model.

    >>> import torch, tilewright.torch                                     # doctest: +SKIP
    >>> decoder = tilewright.torch.Decoder(model, sequences=2, positions=2048)  # doctest: +SKIP
    >>> logits = decoder.prefill(torch.tensor([[5, 8, 9], [6, 1, 1]]))     # doctest: +SKIP
    >>> logits = decoder.step(logits.argmax(-1))                           # doctest: +SKIP
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        sequences: int,
        positions: int,
        page: int = _PAGE,
        splits: int | None = None,
        invariant: bool | None = None,
    ) -> None:
        if not all(isinstance(own, int) for own in (sequences, positions, page)) or sequences < 1 or positions < 1 or page < 1:
            raise ValueError(f"sequences, positions and rows of a page are integers from 1, not {sequences}, {positions} and {page}")
        _refuse_unknown(model)
        config: Any = model.config
        self._model: Any = model
        self._heads = config.num_attention_heads
        self._groups = config.num_key_value_heads
        self._splits = splits
        self._is_invariant = is_invariant(invariant)
        self.positions = positions
        first = next(model.parameters())
        pages = -(-positions // page)
        #: The page of each part of a sequence. Changed entries must name pages of the cache.
        self.pages = torch.arange(sequences * pages, dtype=torch.int32, device=first.device).view(sequences, pages)
        #: How many tokens of each sequence are in the cache.
        self.lengths = torch.zeros(sequences, dtype=torch.int32, device=first.device)
        self._longest = 0
        self._layers = [self._layer(layer, (sequences * pages, page)) for layer in self._model.model.layers]
        places = torch.arange(positions, device=first.device)[None]
        with torch.no_grad():
            cos, sin = self._model.model.rotary_emb(torch.empty(0, dtype=torch.float32, device=first.device), places)
        # Both halves of a row have the same angles.
        half = cos.shape[-1] // 2
        self._cos, self._sin = (each[0, :, :half].contiguous() for each in (cos, sin))
        self._tokens = torch.zeros(sequences, 1, dtype=torch.long, device=first.device)
        self._logits: Tensor | None = None
        self._graph: Any = None

    def _layer(self, layer: Any, pages: tuple[int, int]) -> _Layer:
        attention = layer.self_attn
        config = self._model.config
        forward = _feed_forward(layer.mlp)
        if forward is not None:
            _beside(layer.mlp.gate_proj, layer.mlp.up_proj)
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        biases = [own.bias for own in parts]
        weight = parts[0].weight
        shape = (*pages, self._groups, attention.head_dim)
        return _Layer(
            layer.input_layernorm.weight.detach(),
            _beside(*parts),
            None if biases[0] is None else torch.cat([own.detach() for own in biases]),
            attention.o_proj,
            layer.post_attention_layernorm.weight.detach(),
            layer.mlp if forward is None else types.MethodType(forward, layer.mlp),
            torch.zeros(shape, dtype=weight.dtype, device=weight.device),
            torch.zeros(shape, dtype=weight.dtype, device=weight.device),
            # Layers of Qwen2 have windows of their own, and all of Mistral that of the model.
            attention.sliding_window if hasattr(attention, "sliding_window") else getattr(config, "sliding_window", None),
        )

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def prefill(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Begins all sequences anew with ``tokens``, (sequences, S), and returns the logits behind the last
        token of each, (sequences, vocabulary). With ``lengths``, (sequences) from 1 to S, the tokens behind
        those of a sequence are padding.
        """
        sequences = self.lengths.shape[0]
        _check_integers(tokens=tokens, lengths=lengths)
        if tokens.dim() != 2 or tokens.shape[0] != sequences or not 1 <= tokens.shape[1] <= self.positions:
            raise ValueError(f"tokens are ({sequences}, S) with S from 1 to {self.positions}, not {tuple(tokens.shape)}")
        count = tokens.shape[1]
        if lengths is None:
            lengths = torch.full((sequences,), count, device=tokens.device)
        elif tuple(lengths.shape) != (sequences,) or int(lengths.min()) < 1 or int(lengths.max()) > count:
            raise ValueError(f"lengths are ({sequences}), each from 1 to {count}")
        positions = torch.arange(count, dtype=torch.int32, device=tokens.device)
        # Rows of padding are in the cache too, until tokens take their place.
        with ops.invariant(self._is_invariant):
            hidden = self._hidden(tokens, positions, torch.full_like(self.lengths, count))
        self.lengths.copy_(lengths)
        self._longest = int(lengths.max())
        last = hidden[torch.arange(sequences, device=tokens.device), lengths.to(tokens.device).long() - 1]
        with ops.invariant(self._is_invariant):
            return self._logits_of(last)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, tokens: Tensor) -> Tensor:
        """Appends a token to each sequence, ``tokens`` of (sequences), and returns the logits behind it,
        (sequences, vocabulary). The next step writes its logits to the same memory.
        """
        _check_integers(tokens=tokens)
        if tuple(tokens.shape) != tuple(self.lengths.shape):
            raise ValueError(f"tokens are ({self.lengths.shape[0]}), one for each sequence, not {tuple(tokens.shape)}")
        if self._longest >= self.positions:
            raise ValueError(f"a sequence has {self.positions} tokens, and the cache room for no more: make a decoder with more positions")
        self._longest += 1
        self._tokens[:, 0] = tokens
        if self._graph is not None:
            self._graph.replay()
        elif self._logits is not None and self.lengths.is_cuda:
            # All kernels of a step have been compiled by the first one.
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._logits = self._one_step()
            self._graph = graph
            graph.replay()
        else:
            self._logits = self._one_step()
        assert self._logits is not None
        return self._logits

    def _one_step(self) -> Tensor:
        self.lengths += 1
        with ops.invariant(self._is_invariant):
            return self._logits_of(self._hidden(self._tokens, (self.lengths - 1)[:, None], self.lengths)[:, 0])

    def _logits_of(self, hidden: Tensor) -> Tensor:
        return ops.linear(hidden, self._model.lm_head.weight)

    def _hidden(self, tokens: Tensor, positions: Tensor, lengths: Tensor) -> Tensor:
        """What the last norm gives, (sequences, S, width), of tokens whose keys and values become the last
        rows of the cache.
        """
        x, total = ops.embedding(tokens, self._model.model.embed_tokens.weight), None
        is_step = tokens.shape[1] == 1 and positions.dim() == 2
        for layer, own in zip(self._layers, self._model.model.layers):
            x, total = self._normed(x, total, layer.input_norm, own.input_layernorm)
            x = self._attended(layer, x, positions, lengths, is_step)
            x, total = self._normed(x, total, layer.feed_norm, own.post_attention_layernorm)
            x = layer.feed_forward(x)
        return self._normed(x, total, self._model.model.norm.weight, self._model.model.norm)[0]

    @staticmethod
    def _normed(x: Tensor, total: Tensor | None, weight: Tensor, norm: nn.Module) -> tuple[Tensor, Tensor]:
        """The norm of the sum so far, and the sum."""
        if total is None:
            return ops.rms_norm(x, weight, epsilon=_epsilon(norm)), x
        made: tuple[Tensor, Tensor] = ops.rms_norm(x, weight, residual=total, epsilon=_epsilon(norm))
        return made

    def _attended(self, layer: _Layer, x: Tensor, positions: Tensor, lengths: Tensor, is_step: bool) -> Tensor:
        rotated = self._heads + self._groups
        made = ops.linear(x, layer.projections, layer.bias)
        heads = made.view(*x.shape[:-1], rotated + self._groups, -1)
        turned = ops.rope(heads[:, :, :rotated], self._cos, self._sin, positions=positions, heads=2)
        q, k, v = turned[:, :, : self._heads], turned[:, :, self._heads :], heads[:, :, rotated:]
        ops.append_to_cache(
            k.transpose(1, 2), v.transpose(1, 2), layer.keys, layer.values, lengths, pages=self.pages
        )
        # A window of n keys is the position and the n - 1 before it.
        before = None if layer.window is None else layer.window - 1
        if is_step:
            q = q.transpose(1, 2)
            o = ops.attention_decode(
                q, layer.keys, layer.values, lengths, pages=self.pages, window=before, splits=self._splits
            )
        else:
            window = None if before is None else (before, -1)
            o = ops.attention(q, k, v, causal=True, window=window, heads=2)
        return ops.linear(o.reshape(*x.shape[:-1], -1), layer.output.weight, layer.output.bias)


def _check_integers(**tensors: Any) -> None:
    """Raises a TypeError for an argument that is neither None nor a tensor of integers."""
    for name, own in tensors.items():
        if own is not None and (not isinstance(own, Tensor) or own.is_floating_point()):
            raise TypeError(f"{name} are a tensor of integers, not {own.dtype if isinstance(own, Tensor) else type(own).__name__}")


def _beside(*layers: Any) -> Tensor:
    """The weights of linear layers as one matrix, one below the other; the layers keep its parts."""
    counts = [own.weight.shape[0] for own in layers]
    whole = torch.cat([own.weight.detach() for own in layers])
    for own, part in zip(layers, whole.split(counts)):
        own.weight.data = part
    return whole


def _refuse_unknown(model: Any) -> None:
    """Refuses a model that computes something else than the decoder."""
    name = type(model).__name__
    if name not in _MODELS or not _has_linear(model, "lm_head") or model.lm_head.bias is not None:
        raise TypeError(f"a decoder takes {', '.join(_MODELS)} with a head without a bias, not {name}")
    kind = getattr(model.model.rotary_emb, "rope_type", "default")
    if kind not in ("default", "linear", "llama3", "yarn"):
        raise TypeError(f"the angles of positions of the kind {kind!r} depend on the length of a sequence: decode with `generate`")
    for number, layer in enumerate(model.model.layers):
        attention = layer.self_attn
        is_known = _has_linear(attention, "q_proj", "k_proj", "v_proj", "o_proj") and not hasattr(attention, "q_norm")
        is_known = is_known and _are_bare(attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
        is_known = is_known and abs(attention.scaling - attention.head_dim**-0.5) < 1e-9
        norms = (layer.input_layernorm, layer.post_attention_layernorm, model.model.norm)
        if not is_known or any(_norm(norm) is not _rms_norm for norm in norms):
            raise TypeError(f"layer {number} has attention or norms that a decoder does not know: decode with `generate`")
