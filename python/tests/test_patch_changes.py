"""Patched models whose modules, losses and calls are others than those that were patched."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

import tilewright.torch  # noqa: E402

IDS = torch.arange(14).reshape(2, 7) % 11


def _model(**options: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=50, **sizes, **options)).eval()


def _both(**options: Any) -> tuple[Any, Any]:
    exact, patched = _model(**options), _model(**options)
    tilewright.torch.patch(patched)
    return exact, patched


class _Adapter(torch.nn.Module):  # type: ignore[misc]
    """A layer whose weight is that of another one, and that computes more."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base, self.weight, self.bias = base, base.weight, base.bias

    def forward(self, x: Any) -> Any:
        return self.base(x) + 3


def test_adapters_and_hooks_are_called() -> None:
    exact, patched = _both()
    for model in (exact, patched):
        first, second = model.model.layers
        first.self_attn.q_proj, second.mlp.gate_proj = _Adapter(first.self_attn.q_proj), _Adapter(second.mlp.gate_proj)
        for hooked in (second.self_attn.v_proj, first.mlp.up_proj, first.post_attention_layernorm, model.lm_head):
            hooked.register_forward_hook(lambda module, given, made: made * 2)
    torch.testing.assert_close(patched(IDS).logits, exact(IDS).logits)
    torch.testing.assert_close(patched(input_ids=IDS, labels=IDS).loss, exact(input_ids=IDS, labels=IDS).loss)


def test_a_forward_that_something_else_put_there_is_left() -> None:
    model = _model()
    layer = model.model.layers[0].mlp.down_proj
    layer.forward = lambda x: x[..., :64] * 0
    assert "1 Linear" in str(tilewright.torch.patch(model)).partition("left")[2]
    assert not layer(torch.ones(1, 96)).any()


def test_the_loss_is_that_of_the_call_and_of_the_model() -> None:
    exact, patched = _both()
    for named in ({"ignore_index": 3}, {"shift_labels": IDS}, {"num_items_in_batch": torch.tensor(5)}, {"return_dict": False}):
        theirs, ours = (model(input_ids=IDS, labels=IDS, **named)[0] for model in (exact, patched))
        torch.testing.assert_close(ours, theirs)
    for model in (exact, patched):
        model.loss_function = lambda logits, labels, vocab_size, **named: logits.sum()
    torch.testing.assert_close(patched(input_ids=IDS, labels=IDS).loss, exact(input_ids=IDS, labels=IDS).loss)


def test_attention_drops_in_training() -> None:
    exact, patched = _both(attention_dropout=0.5)
    torch.testing.assert_close(patched(IDS).logits, exact(IDS).logits)
    patched.train()
    assert not torch.equal(patched(IDS).logits, patched(IDS).logits)


def test_what_is_no_model_and_no_tokens_is_refused() -> None:
    decoder = tilewright.torch.Decoder(_model(), sequences=2, positions=9)
    free: Any = tilewright.torch
    refused: list[tuple[Any, str]] = [
        (lambda: free.patch("model"), "not str"),
        (lambda: decoder.step(torch.ones(2)), "not torch.float32"),
        (lambda: decoder.step([1, 2]), "not list"),
        (lambda: decoder.prefill(IDS, torch.tensor([2.5, 3.0])), "lengths are a tensor of integers"),
    ]
    for wrong, text in refused:
        with pytest.raises(TypeError, match=text):
            wrong()
    with pytest.raises(ValueError, match="integers from 1"):
        free.Decoder(_model(), sequences=1.5, positions=9)
