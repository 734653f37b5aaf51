"""Models of `transformers` with the operators of this package in the place of their modules.

Law: a patched model has the parameters, the arguments and the results of the model, but for rounding.
A module is replaced if its class is known by what it holds; everything else is left, and the report
says so. A model that computes its loss returns no logits with it: they are never all in memory.
"""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .. import _definitions as definitions
from .. import ops

__all__ = ["Patched", "patch"]

#: The activations of configurations of `transformers`, by the names of functions of elements.
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "relu_squared",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}

#: What some models pass to attention that is computed nowhere here.
_OTHER_ATTENTION = ("indices", "block_indices", "sinks")

#: The probabilities of dropout inside attention in configurations of `transformers`.
_DROPOUTS = ("attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "attn_dropout", "dropout_rate")

#: The name under which attention is registered with `transformers`.
_ATTENTION = "tilewright"


class Patched(NamedTuple):
    """What was replaced in a model: how many modules of each class. And what was left: the classes of
    modules without parts that compute something, and how many there are.
    """

    replaced: dict[str, int]
    left: dict[str, int]

    def __str__(self) -> str:
        def listed(of: dict[str, int]) -> str:
            return ", ".join(f"{count} {name}" for name, count in sorted(of.items())) or "nothing"

        return f"replaced: {listed(self.replaced)}; left: {listed(self.left)}"


def patch(model: nn.Module, *, invariant: bool = False, deterministic: bool = True) -> Patched:
    """Replaces the modules that are known in a model, in place: RMS and layer norms, linear layers,
    embeddings, gated feed-forward layers, attention with rotary positions, the residual sums between
    them, and the loss of a language model. ``str`` of what is returned says what was left.

    Weights stay where they are, so optimizers, checkpoints and tied weights are not affected.

    ``invariant``: products are batch-invariant, as in the context ``tilewright.ops.invariant()``. A
    sequence then has the same bits in every batch, as far as all modules that compute are replaced, and
    no padding moves its rows. Without it, the setting of the context counts when the model is called.

    ``deterministic``: that of ``tilewright.ops.attention``, for all attention of the model. With ``False`` the
    backward of attention is faster where one kernel computes it, and two runs of a training may differ in
    the last bits. It is refused together with ``invariant``.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"a model is a module of PyTorch, not {type(model).__name__}")
    if invariant and not deterministic:
        raise ValueError("invariant products fix the bits of a model, and deterministic=False frees them: pass one of them")
    for module in model.modules():
        # `transformers` passes its module to attention that is registered.
        module._has_ordered_sums = deterministic
    replaced: Counter[str] = Counter()
    left: Counter[str] = Counter()
    done: set[int] = set()
    for module in model.modules():
        if _is_changed(module):
            continue
        for make in (_causal_model, _decoder_layer, _attention, _feed_forward):
            forward = make(module)
            if forward is not None:
                _replace(module, forward, invariant)
                replaced[type(module).__name__] += 1
                done.add(id(module))
                break
    for module in model.modules():
        if id(module) in done or (any(True for _ in module.children()) and not module._parameters):
            continue
        forward = None if _is_changed(module) else _norm(module) or _linear(module) or _embedding(module)
        if forward is not None:
            _replace(module, forward, invariant)
            replaced[type(module).__name__] += 1
        elif type(module).__name__ not in ("Identity", "Dropout") and "Activation" not in type(module).__name__:
            left[type(module).__name__] += 1
    config = getattr(model, "config", None)
    if config is not None and hasattr(model, "set_attn_implementation") and _register_attention():
        model.set_attn_implementation(_ATTENTION)
        if any(getattr(config.get_text_config(), name, 0) for name in _DROPOUTS):
            left["attention with dropout, in training"] = sum(type(own).__name__.endswith("Attention") for own in model.modules())
    return Patched(dict(replaced), dict(left))


def _is_changed(module: nn.Module) -> bool:
    """Whether something else has replaced the forward of a module, such as one that moves its weights."""
    own = module.__dict__.get("forward")
    return own is not None and getattr(getattr(own, "__func__", None), "__module__", None) != __name__


def _is_bare(module: Any, kind: Any, *forwards: Any) -> bool:
    """Whether a module computes what its weights say: since it was patched nobody has put a hook, an adapter or
    another forward there.
    """
    has_hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return type(module) is kind and not has_hooks and getattr(module.forward, "__func__", None) in forwards


def _are_bare(*layers: Any) -> bool:
    return all(_is_bare(own, nn.Linear, _apply_linear, nn.Linear.forward) for own in layers)


def _replace(module: nn.Module, forward: Callable[..., Any], invariant: bool) -> None:
    module.forward = types.MethodType(forward, module)
    # Not through the context: code that `torch.compile` traces does not enter it.
    module._has_invariant_products = invariant or None


def _invariant(module: nn.Module) -> Any:
    """True for the products of a module that are batch-invariant; None for the setting of the context."""
    return getattr(module, "_has_invariant_products", None)


def _is_deterministic(module: nn.Module) -> bool:
    """Whether the backward of attention in a module has the same bits in each call."""
    return getattr(module, "_has_ordered_sums", True)


def _epsilon(module: nn.Module) -> Any:
    for name in ("variance_epsilon", "eps", "epsilon"):
        value = getattr(module, name, None)
        if isinstance(value, float):
            return value
    return None


def _norm(module: nn.Module) -> Callable[..., Any] | None:
    if type(module) is nn.LayerNorm and len(module.normalized_shape) == 1:
        return _layer_norm
    weight = getattr(module, "weight", None)
    if not type(module).__name__.endswith("Norm") or not isinstance(weight, Tensor) or weight.dim() != 1 or _epsilon(module) is None:
        return None
    if getattr(module, "bias", None) is not None:
        return None
    # A norm of this name may do something else, such as multiply by one more than the weight: it is asked.
    row = torch.linspace(-2, 3, weight.shape[0], dtype=weight.dtype, device=weight.device)[None]
    with torch.no_grad():
        try:
            exact = module(row)
        except (RuntimeError, TypeError, ValueError):
            return None
        for is_centred, less_one, forward in (
            (False, False, _rms_norm),
            (False, True, _rms_norm_less_one),
            (True, False, _layer_norm_unbiased),
        ):
            made = definitions.norm(row, weight, None, _epsilon(module), is_centred, less_one)
            if isinstance(exact, Tensor) and exact.dtype == made.dtype and _is_near(exact, made):
                return forward
    return None


def _is_near(exact: Tensor, made: Tensor) -> bool:
    """Whether two results differ by rounding alone."""
    tolerance = 1e-4 if exact.dtype in (torch.float32, torch.float64) else 2e-2
    return bool(torch.allclose(exact, made, rtol=tolerance, atol=tolerance * exact.abs().max().item()))


def _layer_norm(self: Any, x: Tensor) -> Tensor:
    return ops.layer_norm(x, self.weight, self.bias, epsilon=self.eps)


def _layer_norm_unbiased(self: Any, x: Tensor) -> Tensor:
    return ops.layer_norm(x, self.weight, epsilon=_epsilon(self))


def _rms_norm(self: Any, x: Tensor) -> Tensor:
    return ops.rms_norm(x, self.weight, epsilon=_epsilon(self))


def _rms_norm_less_one(self: Any, x: Tensor) -> Tensor:
    return ops.rms_norm(x, self.weight, epsilon=_epsilon(self), weight_less_one=True)


def _linear(module: nn.Module) -> Callable[..., Any] | None:
    return _apply_linear if type(module) is nn.Linear else None


def _apply_linear(self: Any, x: Tensor) -> Tensor:
    return ops.linear(x, self.weight, self.bias, invariant=_invariant(self))


def _embedding(module: nn.Module) -> Callable[..., Any] | None:
    if type(module) is not nn.Embedding or module.max_norm is not None or module.sparse or module.scale_grad_by_freq:
        return None
    return _apply_embedding


def _apply_embedding(self: Any, indices: Tensor) -> Tensor:
    return ops.embedding(indices, self.weight, padding=self.padding_idx)


def _has_linear(module: nn.Module, *names: str) -> bool:
    return all(type(getattr(module, name, None)) is nn.Linear for name in names)


def _feed_forward(module: nn.Module) -> Callable[..., Any] | None:
    if not type(module).__name__.endswith("MLP") or not _has_linear(module, "gate_proj", "up_proj", "down_proj"):
        return None
    if {name for name, _ in module.named_children()} - {"gate_proj", "up_proj", "down_proj", "act_fn"}:
        return None
    config = getattr(module, "config", None)
    function = _ACTIVATIONS.get(str(getattr(config, "hidden_act", None) or getattr(config, "hidden_activation", None)))
    if function is None or not _is_gated(module, function):
        return None

    def forward(self: Any, x: Tensor) -> Tensor:
        gate, up, down = self.gate_proj, self.up_proj, self.down_proj
        if not _are_bare(gate, up, down) or any(own.bias is not None for own in (gate, up, down)):
            return down(ops.activation(gate(x), function, up=up(x)))
        return ops.feed_forward(x, gate.weight, up.weight, down.weight, function, invariant=_invariant(self))

    return forward


def _is_gated(module: Any, function: str) -> bool:
    """Whether a feed-forward layer computes what its parts say: some multiply by further numbers."""
    weight = module.gate_proj.weight
    row = torch.linspace(-1, 1, weight.shape[1], dtype=weight.dtype, device=weight.device)[None]
    with torch.no_grad():
        exact = module(row)
        made = module.down_proj(definitions.activation(function, module.gate_proj(row), module.up_proj(row)))
        return _is_near(exact, made)


def _takes(module: nn.Module, *names: str) -> bool:
    parameters = inspect.signature(module.forward).parameters
    return all(name in parameters for name in names)


def _attention(module: nn.Module) -> Callable[..., Any] | None:
    """Attention as Llama has it: four projections, and rotary positions of halves."""
    name = type(module).__name__
    if name not in ("LlamaAttention", "MistralAttention", "Qwen2Attention") or not _has_linear(
        module, "q_proj", "k_proj", "v_proj", "o_proj"
    ):
        return None
    if not _takes(module, "hidden_states", "position_embeddings", "attention_mask"):
        return None
    return _apply_attention


def _apply_attention(
    self: Any,
    hidden_states: Tensor,
    position_embeddings: Any = None,
    attention_mask: Any = None,
    **more: Any,
) -> tuple[Tensor, None]:
    if self.training and self.attention_dropout:
        # The report of the patch says that it is left to PyTorch.
        named = {"position_embeddings": position_embeddings, "attention_mask": attention_mask, **more}
        whole: tuple[Tensor, None] = type(self).forward(self, hidden_states, **named)
        return whole
    shape = (*hidden_states.shape[:-1], -1, self.head_dim)
    layers = (self.q_proj, self.k_proj, self.v_proj)
    if _are_bare(*layers):
        weights, biases = [own.weight for own in layers], [own.bias for own in layers]
        made = ops.linears(hidden_states, weights, biases, invariant=_invariant(self))
    else:
        made = tuple(own(hidden_states) for own in layers)
    q, k, v = (each.view(shape) for each in made)
    cos, sin = position_embeddings
    half = cos.shape[-1] // 2
    # Tables of the halves of a head are equal; those of all sequences have rows one after another.
    tables = [each[..., :half].reshape(-1, half) for each in (cos, sin)]
    positions = None
    if cos.shape[0] > 1:
        positions = torch.arange(cos.shape[0] * cos.shape[1], device=cos.device, dtype=torch.int32).view(cos.shape[:2])
    q, k = (ops.rope(each, *tables, positions=positions, heads=2) for each in (q, k))
    cache = more.get("cache") if more.get("cache") is not None else more.get("past_key_values")
    heads = 2
    if cache is not None:
        # Caches of `transformers` have the heads before the rows.
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        k, v = cache.update(k, v, self.layer_idx)
        heads = 1
    window = getattr(self, "sliding_window", None)
    o = _attend(q, k, v, attention_mask, self.scaling, window, heads, deterministic=_is_deterministic(self))
    o = o.transpose(1, 2) if heads == 1 else o
    return self.o_proj(o.reshape(*hidden_states.shape[:-1], -1)), None


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any,
    scale: float,
    window: int | None,
    heads: int,
    is_causal: bool = True,
    position_bias: Any = None,
    **named: Any,
) -> Tensor:
    """Attention with a mask that says all that is seen, or without one, and with a bias of positions."""
    bias = None if position_bias is None else position_bias.float()
    if mask is not None:
        own = mask if mask.is_floating_point() else torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, -1e30)
        own = own[..., : k.shape[3 - heads]].float().clamp(min=-1e30)
        bias = own if bias is None else (own + bias).clamp(min=-1e30)
    if bias is not None:
        named["bias"] = bias.contiguous()
    if mask is not None:
        return ops.attention(q, k, v, scale=scale, heads=heads, **named)
    # A window of n keys is the position and the n - 1 before it.
    limits = None if window is None or not is_causal else (window - 1, -1)
    return ops.attention(q, k, v, causal=is_causal, window=limits, scale=scale, heads=heads, **named)


def _decoder_layer(module: nn.Module) -> Callable[..., Any] | None:
    if type(module).__name__ not in ("LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer"):
        return None
    norm = getattr(module, "post_attention_layernorm", None)
    if norm is None or _norm(norm) is not _rms_norm or not hasattr(module, "input_layernorm"):
        return None
    return _apply_decoder_layer


def _apply_decoder_layer(self: Any, hidden_states: Tensor, *others: Any, **more: Any) -> Tensor:
    made, _ = self.self_attn(self.input_layernorm(hidden_states), *others, **more)
    norm = self.post_attention_layernorm
    if not _is_bare(norm, type(norm), _rms_norm):
        total = hidden_states + made
        return total + self.mlp(norm(total))
    normed, total = ops.rms_norm(made, norm.weight, residual=hidden_states, epsilon=norm.variance_epsilon)
    return total + self.mlp(normed)


class _Rows:
    """Whether each row of tokens is one sequence without padding, in a model that is traced or captured. There
    `transformers` cannot see that no sequences are packed, and makes a mask for all; with a padding mask,
    it does not look.
    """

    def __init__(self) -> None:
        self.are_whole = False


_rows = _Rows()


def _is_traced() -> bool:
    """Whether calls become a graph, by the compiler or on a stream that is captured."""
    return bool(torch.compiler.is_compiling() or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()))


def _are_whole(given: Any, named: dict[str, Any]) -> bool:
    """Whether a call has tokens alone: nothing of it says where a sequence begins or ends."""
    others = ("attention_mask", "position_ids", "past_key_values", "cache", "inputs_embeds")
    return not given and named.get("input_ids") is not None and all(named.get(name) is None for name in others)


#: What changes the loss of a model, or of which positions there are logits.
_OF_LOSSES = ("logits_to_keep", "num_items_in_batch", "ignore_index", "shift_labels")


def _causal_loss() -> Any:
    """The loss of language models of `transformers`, which a model may replace; None if there is no such one."""
    try:
        from transformers.loss.loss_utils import ForCausalLMLoss
    except ImportError:
        return None
    return ForCausalLMLoss


def _is_named(model: Any, named: dict[str, Any]) -> bool:
    """Whether a call returns its results by their names, and not as a tuple."""
    said = named.get("return_dict")
    return bool(getattr(model.config, "return_dict", True) if said is None else said)


def _causal_model(module: nn.Module) -> Callable[..., Any] | None:
    # Other models scale their logits before the loss.
    names = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
    if type(module).__name__ not in names or type(getattr(module, "lm_head", None)) is not nn.Linear:
        return None
    if module.lm_head.bias is not None or not hasattr(module, "model"):
        return None
    if getattr(module.config, "final_logit_softcapping", None):
        return None
    whole = type(module).forward

    def forward(self: Any, *given: Any, **named: Any) -> Any:
        before, _rows.are_whole = _rows.are_whole, _is_traced() and _are_whole(given, named)
        if _rows.are_whole:
            tokens = named["input_ids"]
            named["attention_mask"] = torch.ones(tokens.shape, dtype=torch.bool, device=tokens.device)
        try:
            return computed(self, *given, **named)
        finally:
            _rows.are_whole = before

    def computed(self: Any, *given: Any, **named: Any) -> Any:
        labels: Any = named.get("labels")
        is_other = labels is None or given or any(named.get(name) is not None for name in _OF_LOSSES)
        if is_other or self.loss_function is not _causal_loss() or not _are_bare(self.lm_head) or not _is_named(self, named):
            return whole(self, *given, **named)
        named.pop("labels")
        outputs = self.model(**named)
        hidden = outputs.last_hidden_state
        # The last position has no next token.
        rows, classes = hidden[:, :-1].reshape(-1, hidden.shape[-1]), labels[:, 1:].reshape(-1)
        loss = ops.linear_cross_entropy(rows, self.lm_head.weight, classes, invariant=_invariant(self))
        outputs["loss"] = loss
        return outputs

    return forward


def _register_attention() -> bool:
    """Registers attention with `transformers`; False if it has no such registry."""
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.integrations.sdpa_attention import sdpa_attention_forward
        from transformers.masking_utils import causal_mask_function, sdpa_mask
    except ImportError:
        return False

    def attend(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        dropout: float = 0.0,
        **more: Any,
    ) -> tuple[Tensor, None]:
        for name in _OTHER_ATTENTION:
            if more.get(name) is not None:
                raise NotImplementedError(
                    f"attention with `{name}` is not there: give the model back its own by `model.set_attn_implementation(\"eager\")`"
                )
        if dropout and more.get("s_aux") is None and more.get("softcap") is None:
            # The report of the patch says that it is left to PyTorch.
            made: tuple[Tensor, None] = sdpa_attention_forward(
                module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **more
            )
            return made
        if dropout:
            raise NotImplementedError("attention with sinks or a softcap has no dropout here: set `attention_dropout` to 0")
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        said = more.get("is_causal")
        is_causal = getattr(module, "is_causal", True) if said is None else said
        # One query sees all keys of a cache.
        is_causal = is_causal and query.shape[2] > 1
        named = {"position_bias": more.get("position_bias"), "softcap": more.get("softcap") or 0.0}
        named["deterministic"] = _is_deterministic(module)
        if more.get("s_aux") is not None:
            named["sinks"] = more["s_aux"].float()
        o = _attend(query, key, value, attention_mask, scale, more.get("sliding_window"), 1, is_causal, **named)
        return o.transpose(1, 2), None

    def mask(*given: Any, **named: Any) -> Any:
        # Attention is causal by itself. Every other pattern is a mask: padding, packed or chunked rows.
        is_plain = named.get("mask_function") is causal_mask_function
        is_plain = is_plain and (_rows.are_whole or named.get("attention_mask") is None)
        if is_plain and named.get("q_length") == named.get("kv_length") is not None:
            return None
        return sdpa_mask(*given, **named)

    AttentionInterface.register(_ATTENTION, attend)
    AttentionMaskInterface.register(_ATTENTION, mask)
    return True
