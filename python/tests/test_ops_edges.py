"""Operators at their edges: numbers that overflow, integers of few bits, arrays that do not fit, transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

import tilewright.torch  # noqa: E402
from tilewright import ops  # noqa: E402

INFINITE = np.array([[np.inf, -np.inf, np.nan, 0.0, 3.0, -3.0, 120.0, -120.0]], "f4")
SMALL = [torch.uint8, torch.int8, torch.int16, torch.int32]


def test_a_result_shares_no_memory_with_an_argument() -> None:
    for x in (np.ones((2, 3), "f4"), torch.ones(2, 3)):
        made = ops.activation(x, "identity")
        made += 1
        assert (x == 1).all() and (made == 2).all()


@pytest.mark.parametrize("name", ["identity", "relu", "sigmoid", "tanh", "silu"])
def test_functions_of_infinite_numbers_are_those_of_pytorch(name: str) -> None:
    theirs = {"identity": lambda a: a * 1, "silu": torch.nn.functional.silu}.get(name) or getattr(torch, name)
    x = torch.from_numpy(INFINITE).requires_grad_()
    exact = theirs(x)
    exact.sum().backward()
    for given in (INFINITE, x.detach()):
        found, slope = ops.activation(given, name), ops.activation_backward(given, _ones(given), name)[0]
        np.testing.assert_allclose(np.asarray(found), exact.detach(), rtol=1e-6, atol=1e-30)
        np.testing.assert_allclose(np.asarray(slope), x.grad, rtol=1e-5, atol=1e-30)


def _ones(like: Any) -> Any:
    return torch.ones_like(like) if isinstance(like, torch.Tensor) else np.ones_like(like)


def test_dropout_drops_infinite_numbers() -> None:
    x = np.full(64, np.inf, "f4")
    assert set(ops.dropout(x, 0.5, 1).tolist()) == {0.0, np.inf}
    assert set(ops.dropout(torch.from_numpy(x), 0.5, 1).tolist()) == {0.0, np.inf}


def test_a_class_without_probability_leaves_the_loss_a_number() -> None:
    x = torch.tensor([[0.0, 1.0, -torch.inf, 2.0]])
    exact = torch.nn.functional.cross_entropy(x, torch.tensor([1]))
    for given, targets in ((x, torch.tensor([1])), (x.numpy(), np.array([1]))):
        np.testing.assert_allclose(float(ops.cross_entropy(given, targets)), exact, rtol=1e-6)
    # A target that is no class names none of them.
    d = ops.cross_entropy_rows_backward(x, torch.tensor([9]), ops.cross_entropy_rows(x, torch.tensor([9]))[1], torch.ones(1))
    torch.testing.assert_close(d, x.softmax(-1))


@pytest.mark.parametrize("kind", SMALL)
def test_integers_of_few_bits_count_as_those_of_many(kind: Any) -> None:
    x = torch.randn(3, 300)
    targets = torch.tensor([100, 5, 100], dtype=kind)
    for ignored in (-100, 356, 5):
        torch.testing.assert_close(ops.cross_entropy(x, targets, ignored=ignored), ops.cross_entropy(x, targets.long(), ignored=ignored))
    for padding in (None, 261):
        found = ops.embedding_backward(targets, x, 1000, padding=padding)
        torch.testing.assert_close(found, ops.embedding_backward(targets.long(), x, 1000, padding=padding))
    assert torch.equal(ops.expert_places(targets[:, None], 1000).places, ops.expert_places(targets.long()[:, None], 1000).places)
    q, cache = torch.randn(1, 1, 2, 16), torch.randn(1, 1, 4, 16)
    one = torch.tensor([1], dtype=kind)
    torch.testing.assert_close(ops.attention_decode(q, cache, cache, one), ops.attention_decode(q, cache, cache, one.long()))
    for number in (one, one.numpy(), np.array([1], "u8")):
        own = cache if isinstance(number, torch.Tensor) else cache.numpy()
        new = q + 0 if isinstance(number, torch.Tensor) else q.numpy()
        found = ops.append_to_cache(new, new, own * 1, own * 1, number)[0]
        assert np.array_equal(np.asarray(found)[0, 0, 0], np.asarray(new)[0, 0, 1])


@pytest.mark.parametrize("on", [None, "interpreter"])
def test_integers_of_many_bits_name_no_row_that_their_low_bits_name(on: str | None) -> None:
    table, wide = torch.randn(8, 16), torch.tensor([1, 2**32 + 1, 2**32 + 1 - 2**33])
    for numbers, of in ((wide, table), (wide.numpy(), table.numpy())):
        found = np.asarray(ops.embedding(numbers, of, on=on))
        assert (found[0] == np.asarray(of)[1]).all() and np.isnan(found[1:]).all()
        loss = np.asarray(ops.cross_entropy(of[:3], numbers, reduction="none", on=on))
        assert np.isfinite(loss[0]) and np.isinf(loss[1:]).all()


def test_blocks_of_numbers_near_zero_are_quantized_to_zero() -> None:
    x = torch.zeros(1, 130)
    x[0, 0] = 1e-45
    choices: list[dict[str, Any]] = [{}, {"square": True}, {"power_of_two": True}]
    for options in choices:
        assert not ops.dequantize(*ops.quantize(x, **options), square="square" in options).any()
    words, scales = ops.quantize_int4(torch.full((1, 128), 6e-8, dtype=torch.float16))
    assert scales.all() and not ops.int4_weights(words, scales).any()


def test_empty_products_have_derivatives() -> None:
    functions: list[Any] = [ops.linear, ops.gated_linear]
    functions += [lambda x, w: ops.linears(x, [w])[0], lambda x, w: ops.feed_forward(x, w, w, w.T)]
    for shape, rows in (((2, 3, 0), 4), ((2, 3, 5), 0), ((0, 3, 5), 4), ((0, 0), 0)):
        for function in functions:
            x, w = torch.ones(shape, requires_grad=True), torch.ones(rows, shape[-1], requires_grad=True)
            function(x, w).sum().backward()
            assert x.grad.shape == x.shape and w.grad.shape == w.shape
    assert ops.matmul(torch.ones(0, 2, 3), torch.ones(0, 3, 4), invariant=True).shape == (0, 2, 4)
    words, scales = ops.quantize_int4(torch.ones(0, 128))
    assert ops.int4_linear(torch.ones(2, 128), words, scales).shape == (2, 0)


HEADS, ROWS, CACHE = np.ones((1, 1, 2, 16), "f4"), np.ones((4, 1, 16), "f4"), np.ones((3, 4, 1, 16), "f4")
X, MATRIX = np.ones((2, 128), "f4"), np.ones((6, 128), "f4")
INT4 = ops.quantize_int4(MATRIX)
NARROW = ops.quantize(torch.from_numpy(X))
TABLE = np.ones((4, 8), "f4")
PLAIN: Any = ops

#: Wrong calls, what they raise, and words of it: what was given, or what would do.
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: ops.gated_linear(X, MATRIX, out=np.zeros((5, 2, 3), "f4")), ValueError, r"\(5, 2, 3\)"),
    (lambda: ops.gated_linear(X, MATRIX, out=np.zeros((2, 3), "i1")), ValueError, "int8"),
    (lambda: ops.gated_linear(X, MATRIX.astype("f2")), ValueError, "float16"),
    (lambda: ops.int4_linear(X, *INT4, out=np.zeros((5, 2, 6), "f4")), ValueError, r"\(5, 2, 6\)"),
    (lambda: ops.scaled_linear(*NARROW, *NARROW, element="f32", out=torch.zeros(4, 2, 2)), ValueError, r"\(4, 2, 2\)"),
    (lambda: ops.softmax(X, out=np.lib.stride_tricks.as_strided(X * 1, X.shape, (0, 4))), ValueError, "one place in memory"),
    (lambda: ops.softmax(np.matrix(X)), TypeError, "no plain array"),
    (lambda: ops.silu(np.ma.masked_array(X, X > 0)), TypeError, "no plain array"),
    (lambda: PLAIN.linear(X, [1.0]), TypeError, "`weight` is an array of NumPy, PyTorch or JAX, not list"),
    (lambda: PLAIN.attention(HEADS, HEADS, 1.0), TypeError, "`v` is an array"),
    (lambda: PLAIN.rms_norm(X, residual=2.0), TypeError, "`residual` is an array"),
    (lambda: PLAIN.linears(X, [MATRIX, MATRIX], [None]), ValueError, "2 weights, and 1 biases"),
    (lambda: PLAIN.adamw(X, X, X, X, step=1), TypeError, "lists of arrays"),
    (lambda: PLAIN.adamw([X], [X], [X], [X], step=1.5), TypeError, "integers, not by float"),
    (lambda: ops.quantize_int4(MATRIX.astype("i4")), ValueError, "real numbers"),
    (lambda: PLAIN.dropout(X, 0.5, 1.5), TypeError, "a seed is an integer"),
    (lambda: ops.cross_entropy(X, np.zeros(2, "i4"), smoothing=1.5), ValueError, "smoothing"),
    (lambda: ops.cross_entropy(X, np.zeros(2, "i4"), z_loss=-1.0), ValueError, "z_loss"),
    (lambda: ops.cross_entropy(X, np.zeros(2, "i4"), softcap=np.nan), ValueError, "softcap"),
    (lambda: ops.cross_entropy(X, np.zeros(2, "i4"), ignored=2**40), ValueError, "32 bits"),
    (lambda: ops.cross_entropy_rows(torch.ones(1, 4, requires_grad=True), torch.tensor([3]), vocabulary=-1), ValueError, "-1 classes"),
    (lambda: ops.cross_entropy_rows(torch.ones(1, 4, requires_grad=True), torch.tensor([3]), vocabulary=9), ValueError, "9 classes"),
    (lambda: PLAIN.attention(HEADS, HEADS, HEADS, window=5), ValueError, "a pair of integers"),
    (lambda: PLAIN.attention(HEADS, HEADS, HEADS, window=(1.5, 0)), ValueError, "a pair of integers"),
    (lambda: ops.attention(HEADS, HEADS, HEADS, window=(-2, 0)), ValueError, "-1 is no limit"),
    (lambda: ops.attention(ROWS, ROWS, ROWS, cu_q=np.array([-3, 4])), ValueError, "from -3 to 4"),
    (lambda: ops.attention(ROWS, ROWS, ROWS, cu_q=np.array([0, 4]), cu_k=np.array([0, 9])), ValueError, "cu_k are rows from 0 to 4"),
    (lambda: ops.attention(ROWS, ROWS, ROWS, cu_q=np.array([0, 4, 2, 4])), ValueError, "sequence 1 is from row 4 to 2"),
    (lambda: ops.attention_decode(HEADS, HEADS, HEADS, np.array([9])), ValueError, "from 0 to 2"),
    (lambda: ops.attention_decode(HEADS, HEADS, HEADS, np.array([-1])), ValueError, "from 0 to 2"),
    (lambda: ops.attention_decode(HEADS, CACHE, CACHE, np.array([2]), pages=np.array([[-1]])), ValueError, "one is -1"),
    (lambda: ops.rope(HEADS, TABLE, TABLE, positions=np.array([0, -1])), ValueError, "from 0 to 3, and one is -1"),
    (lambda: ops.attention(HEADS, HEADS, HEADS, softcap=-2.0), ValueError, "from 0, where 0 is none"),
    (lambda: ops.embedding(np.zeros(2, "i4"), TABLE, padding=-1), ValueError, "from 0 to 3"),
    (lambda: ops.embedding_backward(np.zeros(2, "i4"), X, -2), ValueError, "not by -2"),
    (lambda: ops.rope(HEADS, TABLE, TABLE, positions=np.array([0, 4])), ValueError, "from 0 to 3, and one is 4"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_calls_are_refused(number: int) -> None:
    call, error, words = WRONG[number]
    with pytest.raises(error, match=words):
        call()


def test_derivatives_that_operators_do_not_have_are_refused() -> None:
    x = torch.randn(3, 8, requires_grad=True)
    # The other term has a second derivative, so PyTorch would leave out the one that there is not.
    functions: list[Any] = [ops.softmax, ops.rms_norm, lambda x: ops.linear(x, x), lambda x: ops.linears(x, [x])[0]]
    for function in [*functions, lambda x: ops.linear_cross_entropy(x, x, torch.tensor([1, 2, 0]))]:
        with pytest.raises(RuntimeError, match="no derivatives|no second derivatives"):
            (slope,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
            torch.autograd.grad(slope.square().sum() + x.square().sum(), x)
    assert torch.autograd.gradgradcheck(lambda a: ops.matmul(a, a.T), (x.detach().double().requires_grad_(),))
    for function in functions:
        with pytest.raises(RuntimeError, match="forward derivatives"):
            torch.func.jvp(function, (x.detach(),), (torch.ones(3, 8),))
        with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="forward derivatives"):
            function(torch.autograd.forward_ad.make_dual(x.detach(), torch.ones(3, 8)))
    heads, table = torch.randn(1, 1, 2, 16, requires_grad=True), torch.ones(4, 8, requires_grad=True)
    words = ops.quantize_int4(torch.ones(3, 128))
    without: list[tuple[Any, str]] = [
        (lambda: ops.rope(heads, table, table.detach()), "rope by `cos`"),
        (lambda: ops.attention(heads, heads, heads, slopes=torch.ones(1, requires_grad=True)), "attention by `slopes`"),
        (lambda: ops.int4_linear(torch.ones(2, 128), words[0], words[1].requires_grad_()), "int4_linear by `scales`"),
        (lambda: ops.scaled_linear(*ops.quantize(x), *ops.quantize(x)), "scaled_linear by `x`"),
    ]
    for refused, name in without:
        with pytest.raises(RuntimeError, match=name):
            refused()


def test_vmap_takes_lists_and_batches_of_none() -> None:
    x, weights = torch.randn(8, 8, 8), torch.randn(8, 8, 8)
    found = torch.vmap(lambda x, w: ops.linears(x, [w, w.T]), in_dims=(0, 1))(x, weights)
    for number in range(8):
        for one, other in zip(found, ops.linears(x[number], [weights[:, number], weights[:, number].T])):
            torch.testing.assert_close(one[number], other)
    assert torch.vmap(lambda x: ops.rms_norm(x, x[0], residual=x)[1])(torch.ones(0, 3, 8)).shape == (0, 3, 8)
    assert torch.vmap(lambda x: ops.dropout(x, 0.5, 1))(torch.ones(0, 3, 8)).shape == (0, 3, 8)


def test_a_loss_may_be_scaled_by_more_than_a_type_has() -> None:
    x, weight, targets = torch.randn(4, 8).half().requires_grad_(), torch.randn(9, 8).half().requires_grad_(), torch.tensor([1, 2, 3, 4])
    (ops.linear_cross_entropy(x, weight, targets) * 65536).backward()
    a, b = (own.detach().double().requires_grad_() for own in (x, weight))
    (torch.nn.functional.cross_entropy(a @ b.T, targets) * 65536).backward()
    for found, exact in ((x.grad, a.grad), (weight.grad, b.grad)):
        torch.testing.assert_close(found.double(), exact, rtol=1e-2, atol=0.01 * float(exact.abs().max()))
    # In float64 nothing is of float32.
    c, d = a.detach().requires_grad_(), b.detach()
    torch.testing.assert_close(ops.linear_cross_entropy(c, d, targets), torch.nn.functional.cross_entropy(c @ d.T, targets), rtol=1e-14, atol=0)
    made = ops.linear_cross_entropy(np.ones((3, 8), "f4"), np.ones((3, 8), "f4"), np.array([1, 2, 1]))
    assert made.dtype == np.float32


def test_automatic_mixed_precision_leaves_double_precision_alone() -> None:
    x = torch.ones(2, 8, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert ops.linear(x, x).dtype == torch.nn.functional.linear(x, x).dtype == torch.float64


def test_averages_of_an_optimizer_keep_their_type() -> None:
    parameter = torch.nn.Parameter(torch.randn(5).bfloat16())
    parameter.grad = torch.randn(5).bfloat16()
    first = tilewright.torch.AdamW([parameter], state=torch.float32)
    first.step()
    second = tilewright.torch.AdamW([parameter], state=torch.float32)
    second.load_state_dict(first.state_dict())
    for name in ("exp_avg", "exp_avg_sq"):
        one, other = (own.state[parameter][name] for own in (first, second))
        assert torch.equal(one, other) and other.dtype == torch.float32 and one.data_ptr() != other.data_ptr()
    leaf = torch.ones(3, requires_grad=True)
    ops.adamw([leaf], [torch.ones(3)], [torch.zeros(3)], [torch.zeros(3)], step=1, lr=0.5, decay=0.0)
    torch.testing.assert_close(leaf.detach(), torch.full((3,), 0.5))


def test_arrays_of_jax_are_refused_as_others_are() -> None:
    jax = pytest.importorskip("jax")
    x, halves, numbers = jax.numpy.ones((2, 128)), jax.numpy.ones((6, 128), "bfloat16"), jax.numpy.array([0.5, 1.5])
    heads = jax.numpy.ones((1, 1, 2, 16))
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: ops.gated_linear(x, halves), ValueError, "bfloat16"),
        (lambda: ops.gated_linear(x.astype(int), x.astype(int)), ValueError, "real numbers"),
        (lambda: ops.embedding(numbers, x), ValueError, "are integers"),
        (lambda: ops.cross_entropy(x, numbers), ValueError, "are integers"),
        (lambda: ops.rope(heads, x[:, :8], x[:, :8], positions=numbers), ValueError, "are integers"),
        (lambda: ops.attention_decode(heads, heads, heads, numbers[:1]), ValueError, "are integers"),
        (lambda: ops.append_to_cache(heads, heads, heads, heads, numbers[:1]), ValueError, "are integers"),
        (lambda: ops.append_to_cache(heads, heads, heads.astype("bfloat16"), heads, numbers[:1].astype(int)), ValueError, "bfloat16"),
        (lambda: ops.cross_entropy_rows(x, numbers.astype(int), vocabulary=129), ValueError, "129 classes"),
        (lambda: ops.adamw([x], [x], [x], [x], step=0), ValueError, "from 1"),
        (lambda: jax.jit(ops.dropout)(x, 0.5, 3), TypeError, "known as a call is traced"),
    ]
    for wrong, error, text in refused:
        with pytest.raises(error, match=text):
            wrong()
    turned = ops.rope(heads, x[:, :8], x[:, :8], positions=jax.numpy.array([1, 9]))
    assert np.isfinite(turned[0, 0, 0]).all() and np.isnan(turned[0, 0, 1]).all()
    for one, other in zip(ops.quantize_int4(x), ops.quantize_int4(np.asarray(x))):
        assert np.array_equal(one, other)
