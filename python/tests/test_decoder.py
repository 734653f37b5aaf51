"""Decoding over a paged cache: the tokens and logits are those of `transformers`."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tilewright.torch import Decoder, patch  # noqa: E402

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 101,
    "max_position_embeddings": 128,
}
SCALED = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
FAMILIES = [
    ("Llama", {}),
    ("Llama", {"rope_parameters": SCALED}),
    ("Mistral", {"sliding_window": 5}),
    ("Qwen2", {}),
]


def model_of(family: str, more: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES, **more)
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize(("family", "more"), FAMILIES)
def test_a_decoder_gives_the_tokens_of_generate(family: str, more: dict[str, Any], patched: bool) -> None:
    model = model_of(family, more)
    tokens = torch.randint(1, SIZES["vocab_size"], (3, 7))
    wanted = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    if patched:
        patch(model)
    decoder = Decoder(model, sequences=3, positions=40, page=8)
    made = [decoder.prefill(tokens).argmax(-1)]
    for _ in range(11):
        made.append(decoder.step(made[-1]).argmax(-1))
    assert torch.equal(torch.stack(made, 1), wanted[:, 7:])


@pytest.mark.parametrize(("family", "more"), FAMILIES)
def test_sequences_of_different_lengths_are_decoded_each_by_itself(family: str, more: dict[str, Any]) -> None:
    model = model_of(family, more)
    tokens, lengths = torch.randint(1, SIZES["vocab_size"], (3, 7)), torch.tensor([7, 3, 5])
    decoder = Decoder(model, sequences=3, positions=16, page=4)
    # Pages in an order of their own.
    decoder.pages.copy_(torch.randperm(12, dtype=torch.int32).view(3, 4))
    logits = decoder.prefill(tokens, lengths)
    told = [tokens[number, :length] for number, length in enumerate(lengths)]
    for _ in range(4):
        alone = torch.stack([model(own[None]).logits[0, -1] for own in told])
        torch.testing.assert_close(logits, alone, atol=1e-4, rtol=1e-4)
        told = [torch.cat([own, new[None]]) for own, new in zip(told, logits.argmax(-1))]
        logits = decoder.step(logits.argmax(-1))


def test_a_decoder_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="not GPT2LMHeadModel"):
        Decoder(transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=1, n_embd=32, n_head=2)), sequences=1, positions=8)
    with pytest.raises(TypeError, match="'dynamic' depend on the length"):
        Decoder(model_of("Llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}), sequences=1, positions=8)
    model = model_of("Llama", {})
    decoder = Decoder(model, sequences=2, positions=3)
    with pytest.raises(ValueError, match=r"tokens are \(2, S\) with S from 1 to 3"):
        decoder.prefill(torch.zeros(2, 4, dtype=torch.long))
    with pytest.raises(ValueError, match=r"lengths are \(2\), each from 1 to 3"):
        decoder.prefill(torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 2]))
    decoder.prefill(torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="room for no more"):
        decoder.step(torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match="one for each sequence"):
        decoder.step(torch.zeros(3, dtype=torch.long))
    model.model.layers[0].self_attn.scaling = 1.0
    with pytest.raises(TypeError, match="layer 0 has attention"):
        Decoder(model, sequences=1, positions=8)


def test_an_invariant_decoder_has_the_same_bits_for_any_number_of_sequences() -> None:
    model = model_of("Llama", {})
    tokens = torch.randint(1, SIZES["vocab_size"], (4, 6))
    made = []
    for count in (4, 1):
        decoder = Decoder(model, sequences=count, positions=12, invariant=True)
        rows = [decoder.prefill(tokens[:count])]
        rows.extend(decoder.step(tokens[:count, number]).clone() for number in range(3))
        made.append([own[0] for own in rows])
    assert all(torch.equal(a, b) for a, b in zip(*made))
