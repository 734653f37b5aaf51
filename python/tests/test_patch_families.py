"""Families of models of `transformers`, small and random: patched, each computes what it computed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from by_day import EXHAUSTIVE

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

import tilewright.torch  # noqa: E402

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
HEAD: dict[str, Any] = {"head_dim": 8}
WINDOW: dict[str, Any] = {"sliding_window": 6}
GEMMA: dict[str, Any] = {**HEAD, **WINDOW, "query_pre_attn_scalar": 8}
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
NUMBERS: dict[str, Any] = {"vocab_size": 100, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GRANITE: dict[str, Any] = {"residual_multiplier": 0.5, "logits_scaling": 2.0, "embedding_multiplier": 3.0, "attention_multiplier": 0.2}
YARN: dict[str, Any] = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}


def _small(family: str, config: str = "", **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        own = getattr(transformers, config or f"{family}Config")(**{**SMALL, **more})
        return getattr(transformers, f"{family}ForCausalLM")(own)

    return make


def _other(model: str, config: str, sizes: Any = None, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(transformers, model)(getattr(transformers, config)(**(sizes or {}), **options))


WRITERS: dict[str, Callable[[], Any]] = {
    "Llama": _small("Llama"),
    "Mistral": _small("Mistral", **WINDOW),
    "Qwen2": _small("Qwen2"),
    "Qwen3": _small("Qwen3", **HEAD),
    "Gemma": _small("Gemma", **HEAD),
    "Gemma2": _small("Gemma2", **GEMMA),
    "Gemma3": _small("Gemma3", "Gemma3TextConfig", **GEMMA),
    "Phi": _small("Phi"),
    "Phi3": _small("Phi3"),
    "GPT2": _other("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=64, **NUMBERS),
    "GPTNeoX": _small("GPTNeoX"),
    "Mixtral": _small("Mixtral", **EXPERTS),
    "Qwen2Moe": _small("Qwen2Moe", shared_expert_intermediate_size=16, **EXPERTS),
    "Qwen3Moe": _small("Qwen3Moe", **HEAD, **EXPERTS),
    "GptOss": _small("GptOss", **HEAD, **WINDOW, **EXPERTS, **YARN),
    "Olmo": _small("Olmo"),
    "Olmo2": _small("Olmo2"),
    "Falcon": _small("Falcon"),
    "StableLm": _small("StableLm"),
    "Granite": _small("Granite", **GRANITE),
    "Cohere": _small("Cohere"),
    "Glm": _small("Glm", **HEAD),
    "Starcoder2": _small("Starcoder2", **WINDOW),
    "OPT": _other(
        "OPTForCausalLM",
        "OPTConfig",
        {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "word_embed_proj_dim": 32},
        max_position_embeddings=64,
        **NUMBERS,
    ),
    "Bloom": _other("BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=2, n_head=4, **NUMBERS),
    "T5": _other(
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 100, "decoder_start_token_id": 0},
    ),
}
READERS: dict[str, Callable[[], Any]] = {
    "Bert": _other("BertForMaskedLM", "BertConfig", **SMALL),
    "Roberta": _other("RobertaForMaskedLM", "RobertaConfig", **SMALL),
    "DistilBert": _other("DistilBertForMaskedLM", "DistilBertConfig", dim=32, hidden_dim=64, n_layers=2, n_heads=4, vocab_size=100),
    "ViT": _other(
        "ViTForImageClassification",
        "ViTConfig",
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16, "patch_size": 4},
    ),
}

#: One family of each way in which models are built: the others differ from these in parts of them.
DISTINCT = ["Llama", "Gemma3", "Phi3", "GPT2", "Mixtral", "GptOss", "Cohere", "Bloom", "T5", "Bert", "ViT"]


def _pair(make: Callable[[], Any]) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for own in model.parameters():
            # Weights of norms, biases and sinks are not the numbers with which they begin.
            if own.dim() == 1:
                own.copy_(0.5 + 0.3 * torch.randn(own.shape))
    patched = copy.deepcopy(model)
    return model, patched, tilewright.torch.patch(patched)


def _close(found: Any, exact: Any, size: float | None = None) -> None:
    size = exact.abs().max().item() if size is None else size
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-4 * max(size, 1e-3))


def _has_equal_gradients(model: Any, patched: Any, of: Callable[[Any], Any]) -> None:
    for own in (model, patched):
        # The same numbers of dropout.
        torch.manual_seed(3)
        own.zero_grad()
        of(own).backward()
    largest = max(own.grad.abs().max().item() for own in model.parameters() if own.grad is not None)
    for one, other in zip(patched.parameters(), model.parameters()):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            _close(one.grad, other.grad, max(other.grad.abs().max().item(), 1e-2 * largest))


@pytest.mark.parametrize("family", [*WRITERS, *READERS] if EXHAUSTIVE else DISTINCT)
def test_a_patched_family_computes_what_it_computed(family: str) -> None:
    model, patched, report = _pair({**WRITERS, **READERS}[family])
    assert sum(report.replaced.values()) >= 4
    inputs: dict[str, Any] = {"input_ids": torch.randint(3, 100, (2, 9))}
    masks: list[Any] = [None, torch.ones(2, 9, dtype=torch.long), torch.ones(2, 9, dtype=torch.long)]
    masks[1][0, :4] = 0
    masks[2][0, 6:] = 0
    if family == "ViT":
        inputs, masks = {"pixel_values": torch.randn(2, 3, 16, 16)}, [None]
    if family == "T5":
        inputs["decoder_input_ids"] = torch.randint(3, 100, (2, 5))
    for mask in masks:
        given = inputs if mask is None else {**inputs, "attention_mask": mask}
        with torch.no_grad():
            one, other = (own(**given).logits for own in (patched, model))
        if mask is not None and one.shape[1] == mask.shape[1]:
            one, other = one[mask.bool()], other[mask.bool()]
        _close(one, other)
    for own in (model, patched):
        own.train()
    _has_equal_gradients(model, patched, lambda own: own(**inputs).logits.square().mean())
    if family not in WRITERS:
        return
    inputs.pop("decoder_input_ids", None)
    _has_equal_gradients(model, patched, lambda own: own(**inputs, labels=inputs["input_ids"]).loss)
    for own in (model, patched):
        own.eval()
    options: dict[str, Any] = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False}
    ours, theirs = (own.generate(**inputs, attention_mask=masks[1], **options) for own in (patched, model))
    assert torch.equal(ours, theirs)


def test_what_is_left_is_named() -> None:
    report = _pair(WRITERS["Mixtral"])[2]
    assert report.left == {"MixtralExperts": 2, "MixtralRotaryEmbedding": 1, "MixtralTopKRouter": 2}
    assert _pair(READERS["Bert"])[2].left["attention with dropout, in training"] == 4
    assert "attention with dropout" not in str(_pair(WRITERS["Llama"])[2])
