"""Models of `transformers` with the operators in the place of their modules."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from by_day import BACKEND, EXHAUSTIVE

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

import tilewright.torch  # noqa: E402
from tilewright import ops  # noqa: E402


def _model(**options: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
        max_position_embeddings=128,
        **options,
    )
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize("options", [{"tie_word_embeddings": True}, {"attention_bias": True, "mlp_bias": True}])
def test_a_patched_model_has_the_loss_and_the_gradients_of_the_model(options: dict[str, Any]) -> None:
    model = _model(**options)
    patched = copy.deepcopy(model)
    report = tilewright.torch.patch(patched)
    assert report.left == {"LlamaRotaryEmbedding": 1}
    assert report.replaced["LlamaRMSNorm"] == 5 and report.replaced["LlamaForCausalLM"] == 1
    assert str(report).endswith("left: 1 LlamaRotaryEmbedding")
    tokens = torch.randint(0, 100, (2, 17))
    labels = tokens.clone()
    labels[0, 3:6] = -100
    ours, theirs = patched(input_ids=tokens, labels=labels).loss, model(input_ids=tokens, labels=labels).loss
    torch.testing.assert_close(ours, theirs)
    ours.backward()
    theirs.backward()
    for one, other in zip(patched.parameters(), model.parameters()):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)


def test_a_patched_model_says_in_which_order_attention_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    attention, asked = ops.attention, []

    def noted(*arrays: Any, **named: Any) -> Any:
        asked.append(named["deterministic"])
        return attention(*arrays, **named)

    monkeypatch.setattr(ops, "attention", noted)
    # Attention of Llama is replaced, and that of Qwen3 is called through the registry.
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    other = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(num_hidden_layers=1, vocab_size=100, **sizes))
    tokens = torch.randint(0, 100, (2, 9))
    for model in (_model(), other):
        for named in ({"deterministic": False}, {"deterministic": True}, {}):
            tilewright.torch.patch(model, **named)
            asked.clear()
            model(input_ids=tokens, use_cache=False)
            assert asked and set(asked) == {named.get("deterministic", True)}
    with pytest.raises(ValueError, match="pass one of them"):
        tilewright.torch.patch(other, invariant=True, deterministic=False)


def test_a_patched_model_writes_the_same_tokens() -> None:
    model = _model()
    patched = copy.deepcopy(model)
    tilewright.torch.patch(patched)
    tokens = torch.randint(0, 100, (1, 9))
    ours, theirs = (own.generate(tokens, max_new_tokens=8, do_sample=False) for own in (patched, model))
    assert torch.equal(ours, theirs)
    # Padding on the left is masked.
    tokens, mask = torch.randint(0, 100, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    mask[0, :4] = 0
    one, other = (own(input_ids=tokens, attention_mask=mask).logits[mask.bool()] for own in (patched, model))
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_patched_model_is_compiled_as_one_graph() -> None:
    patched = _model()
    tilewright.torch.patch(patched)
    tokens = torch.randint(0, 100, (2, 17))
    eager = patched(input_ids=tokens, labels=tokens).loss
    compiled = torch.compile(patched, fullgraph=True, backend=BACKEND)(input_ids=tokens, labels=tokens).loss
    torch.testing.assert_close(eager, compiled)


def test_all_products_of_a_model_are_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright import _definitions as definitions

    asked: list[bool] = []
    product = definitions.product

    def noted(a: Any, b: Any, by_rows: bool = False) -> Any:
        asked.append(by_rows)
        return product(a, b, by_rows)

    model = _model(attention_bias=True)
    patched = copy.deepcopy(model)
    tilewright.torch.patch(patched, invariant=True)
    monkeypatch.setattr(definitions, "product", noted)
    tokens = torch.randint(0, 100, (2, 9))
    for named in ({}, {"labels": tokens}):
        # By day the graph of the loss alone is compiled, which has that of the logits in it.
        compiled = [torch.compile(patched, backend=BACKEND)] if named or EXHAUSTIVE else []
        for function in [patched, *compiled]:
            asked.clear()
            made = [own(input_ids=tokens, **named) for own in (function, model)]
            torch.testing.assert_close(*[own.loss if named else own.logits for own in made])
            # Seven products of each layer, and that of the vocabulary; of a loss, its derivative too.
            assert len(asked) == 2 * 7 + 1 + bool(named) and all(asked)


def test_attention_that_sees_both_ways_stays_so() -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100, attention_probs_dropout_prob=0.0
    )
    model = transformers.BertModel(config).eval()
    patched = copy.deepcopy(model)
    tilewright.torch.patch(patched)
    tokens, mask = torch.randint(0, 100, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    for padding in (0, 3):
        mask[1, 9 - padding :] = 0
        one, other = (own(input_ids=tokens, attention_mask=mask).last_hidden_state[mask.bool()] for own in (patched, model))
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_window_is_that_of_the_model() -> None:
    torch.manual_seed(0)
    options: Any = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 100}
    config = transformers.MistralConfig(num_attention_heads=4, num_key_value_heads=2, sliding_window=4, **options)
    model = transformers.MistralForCausalLM(config)
    patched = copy.deepcopy(model)
    tilewright.torch.patch(patched)
    tokens = torch.randint(0, 100, (2, 17))
    torch.testing.assert_close(patched(input_ids=tokens).logits, model(input_ids=tokens).logits, rtol=1e-4, atol=1e-5)
    ours, theirs = (own.generate(tokens[:1], max_new_tokens=8, do_sample=False) for own in (patched, model))
    assert torch.equal(ours, theirs)


def test_other_modules_are_left_and_named() -> None:
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Conv1d(8, 8, 1), torch.nn.Embedding(4, 8, max_norm=1.0))
    report = tilewright.torch.patch(model)
    assert report.replaced == {"LayerNorm": 1, "Linear": 1}
    assert report.left == {"Conv1d": 1, "Embedding": 1}


class OwnRMSNorm(torch.nn.Module):  # type: ignore[misc]
    """A norm by its name, which multiplies by a power of the weight."""

    def __init__(self, power: float, plus: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 2, 8))
        self.eps, self.power, self.plus = 1e-6, power, plus

    def forward(self, x: Any) -> Any:
        return x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt() * (self.weight**self.power + self.plus)


def test_a_norm_is_replaced_if_it_computes_what_its_name_says() -> None:
    x = torch.randn(3, 8)
    for power, plus, is_known in ((1.0, 0.0, True), (1.0, 1.0, True), (2.0, 0.0, False)):
        norm = OwnRMSNorm(power, plus)
        exact = norm(x)
        assert (tilewright.torch.patch(norm).left == {}) is is_known
        torch.testing.assert_close(norm(x), exact)


class OwnMLP(torch.nn.Module):  # type: ignore[misc]
    """A gated layer by its parts, with a factor that they do not say."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.config = transformers.LlamaConfig(hidden_act="silu")
        self.gate_proj, self.up_proj = (torch.nn.Linear(8, 16, bias=False) for _ in range(2))
        self.down_proj = torch.nn.Linear(16, 8, bias=False)
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x) * self.factor) * self.up_proj(x))


def test_a_feed_forward_layer_is_replaced_if_its_parts_are_all() -> None:
    x = torch.randn(3, 8)
    for factor, is_known in ((1.0, True), (3.0, False)):
        layer = OwnMLP(factor)
        exact = layer(x)
        assert ("OwnMLP" in tilewright.torch.patch(layer).replaced) is is_known
        torch.testing.assert_close(layer(x), exact)


def test_a_compiled_model_without_padding_has_attention_without_a_mask() -> None:
    model = _model()
    tilewright.torch.patch(model)
    tokens = torch.randint(0, 100, (2, 17))
    biases: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        biases.extend(node.args[5] for node in graph.graph.nodes if str(node.target) == "tilewright.attention.default")
        return graph

    compiled = torch.compile(model, fullgraph=True, backend=backend)
    compiled(input_ids=tokens, labels=tokens, use_cache=False)
    assert biases == [None, None]
    # Positions that begin again are packed sequences, which a mask keeps apart.
    positions = torch.tensor([[*range(9), *range(8)]] * 2)
    found = compiled(input_ids=tokens, position_ids=positions, use_cache=False).logits
    torch.testing.assert_close(found, model(input_ids=tokens, position_ids=positions, use_cache=False).logits)
    assert None not in biases[2:] and len(biases) == 4
