"""Operators in JAX, on the host: values, gradients, `jit` and `vmap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import operator_calls as calls  # noqa: E402

from tilewright import _definitions as definitions  # noqa: E402
from tilewright import ops  # noqa: E402

_source = np.random.default_rng(3)


def _array(*shape: int) -> Any:
    return jnp.asarray(_source.standard_normal(shape).astype("f4"))


X, R = _array(3, 5, 8), _array(3, 5, 8)
W, B, MATRIX = _array(8), _array(8), _array(4, 8)
CLASSES = jnp.arange(15).reshape(3, 5) % 8
COS, SIN = jnp.cos(_array(5, 4)), jnp.sin(_array(5, 4))

WORDS, SCALES = (jnp.asarray(own) for own in ops.quantize_int4(_source.standard_normal((4, 128)).astype("f4")))

CALLS: dict[str, tuple[Any, Any, Any]] = {
    "softmax": (lambda x: ops.softmax(x, axis=1), lambda x: jax.nn.softmax(x, axis=1), (X,)),
    "log_softmax": (ops.log_softmax, jax.nn.log_softmax, (X,)),
    "rms_norm": (
        lambda x, w: ops.rms_norm(x, w, weight_less_one=True),
        lambda x, w: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * (w + 1),
        (X, W),
    ),
    "rms_norm of a sum": (
        lambda x, w, r: sum(ops.rms_norm(x, w, residual=r)),
        lambda x, w, r: (x + r) / jnp.sqrt(((x + r) ** 2).mean(-1, keepdims=True) + 1e-5) * w + x + r,
        (X, W, R),
    ),
    "layer_norm": (
        ops.layer_norm,
        lambda x, w, b: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b,
        (X, W, B),
    ),
    "swiglu": (ops.swiglu, lambda x, up: jax.nn.silu(x) * up, (X, R)),
    "gelu": (ops.gelu, lambda x: jax.nn.gelu(x, approximate=False), (X,)),
    "cross_entropy": (
        lambda x: ops.cross_entropy(x, CLASSES, reduction="sum"),
        lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), CLASSES[..., None], -1).sum(),
        (X,),
    ),
    "embedding": (lambda table: ops.embedding(CLASSES, table), lambda table: table[CLASSES], (_array(8, 6),)),
    "rope": (
        lambda x: ops.rope(x, COS, SIN, heads=2),
        lambda x: jnp.concatenate(
            [
                x[..., :4] * COS[None, :, None] - x[..., 4:] * SIN[None, :, None],
                x[..., 4:] * COS[None, :, None] + x[..., :4] * SIN[None, :, None],
            ],
            -1,
        ),
        (_array(2, 5, 3, 8),),
    ),
    "attention": (
        lambda q, k, v: ops.attention(q, k, v, causal=True, heads=2),
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        (_array(2, 5, 4, 8), _array(2, 5, 2, 8), _array(2, 5, 2, 8)),
    ),
    "linear": (ops.linear, lambda x, w, b: x @ w.T + b, (X, MATRIX, _array(4))),
    "matmul": (ops.matmul, jnp.matmul, (X, R.swapaxes(1, 2))),
    "invariant linear": (
        lambda x, w, b: ops.linear(x, w, b, invariant=True),
        lambda x, w, b: x @ w.T + b,
        (X, MATRIX, _array(4)),
    ),
    "invariant matmul": (lambda a, b: ops.matmul(a, b, invariant=True), jnp.matmul, (X, R.swapaxes(1, 2))),
    "gated_linear": (
        ops.gated_linear,
        lambda x, w, b: jax.nn.silu(x @ w[:2].T + b[:2]) * (x @ w[2:].T + b[2:]),
        (X, MATRIX, _array(4)),
    ),
    "gated_linear of neighbours": (
        lambda x, w: ops.gated_linear(x, w, function="relu", pairs="neighbours", invariant=True),
        lambda x, w: jax.nn.relu(x @ w[::2].T) * (x @ w[1::2].T),
        (X, MATRIX),
    ),
    "int4_linear": (
        lambda x, b: ops.int4_linear(x, WORDS, SCALES, b),
        lambda x, b: x @ definitions.int4_weights(np.asarray(WORDS), np.asarray(SCALES)).T + b,
        (_array(3, 128), _array(4)),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_those_of_jax(name: str) -> None:
    ours, theirs, arrays = CALLS[name]
    with jax.default_matmul_precision("highest"):
        for function in (lambda f: f, jax.jit):
            np.testing.assert_allclose(function(ours)(*arrays), theirs(*arrays), rtol=1e-4, atol=1e-5)
            places = tuple(range(len(arrays)))
            found = function(jax.grad(lambda *own: (ours(*own) ** 2).sum(), argnums=places))(*arrays)
            exact = jax.grad(lambda *own: (theirs(*own) ** 2).sum(), argnums=places)(*arrays)
            for one, other in zip(found, exact):
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "linear"])
def test_vmap_is_a_call_for_each_element(name: str) -> None:
    ours, _, arrays = CALLS[name]
    found = jax.vmap(ours, in_axes=(0, *(None for _ in arrays[1:])))(*arrays)
    np.testing.assert_allclose(found, ours(*arrays), rtol=1e-5, atol=1e-5)


def test_dropout_has_the_mask_of_its_seed() -> None:
    found = jax.jit(lambda x: ops.dropout(x, 0.4, 9))(X)
    assert np.array_equal(found, definitions.dropout(np.asarray(X), 0.4, 9))
    slope = jax.grad(lambda x: ops.dropout(x, 0.4, 9).sum())(X)
    assert np.array_equal(slope, definitions.dropout(np.ones(X.shape, "f4"), 0.4, 9))


def test_a_layer_of_8_bits_is_that_of_its_numbers() -> None:
    from jax.dtypes import canonicalize_dtype

    kind = canonicalize_dtype(jnp.float8_e4m3fn)
    numbers = [_source.standard_normal((rows, 200)).astype("f4") for rows in (5, 150)]
    # The weights have a scale for each 128 x 128.
    made = [definitions.quantize(own, square, False) for own, square in zip(numbers, (False, True))]
    (x, of_x), (w, of_w) = (tuple(jnp.asarray(each) for each in own) for own in made)
    x, w, bias = x.astype(kind), w.astype(kind), _array(150)
    spread = [np.repeat(np.asarray(own), 128, 1)[:, :200] for own in (of_x, of_w)]
    spread[1] = np.repeat(spread[1], 128, 0)[:150]
    exact = (np.asarray(x, "f4") * spread[0]) @ (np.asarray(w, "f4") * spread[1]).T + bias

    def of(bias: Any) -> Any:
        return ops.scaled_linear(x, of_x, w, of_w, bias, element="f32")

    for function in (lambda f: f, jax.jit):
        np.testing.assert_allclose(function(of)(bias), exact, rtol=1e-4, atol=1e-4)
        slope = function(jax.grad(lambda bias: of(bias).sum()))(bias)
        np.testing.assert_allclose(slope, np.full(150, 5.0))
    assert ops.scaled_linear(x, of_x, w, of_w).dtype == jnp.bfloat16


def test_rows_have_the_same_bits_on_the_host() -> None:
    x, weight = _array(100, 300), _array(40, 300)
    with ops.invariant():
        whole = ops.linear(x, weight)
        for rows in (1, 7, 64):
            assert np.array_equal(ops.linear(x[:rows], weight), whole[:rows])


def test_arrays_are_not_written() -> None:
    with pytest.raises(TypeError):
        ops.softmax(X, out=X)


def test_sums_over_no_rows_are_zero() -> None:
    slope = jax.grad(lambda w: ops.rms_norm(jnp.zeros((0, 8)), w).sum())(W)
    assert slope.shape == (8,) and not slope.any()


@pytest.mark.parametrize("name", [*calls.CALLS, *calls.NARROW])
def test_every_function_is_traced_by_jax(name: str) -> None:
    assert calls.is_every_function_called()
    call = {**calls.CALLS, **calls.NARROW}[name]
    arrays = [jnp.asarray(own) for own in call.arrays]
    with jax.default_matmul_precision("highest"):
        found = [calls.results(of(*arrays)) for of in (call.of, jax.jit(call.of))]
        for one, other in zip(*found, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                np.testing.assert_allclose(one.astype("f4"), other.astype("f4"), rtol=1e-4, atol=1e-5)
        if name in calls.CALLS:
            for one, other in zip(found[0], calls.exact(call), strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", [name for name, call in calls.CALLS.items() if call.by])
def test_derivatives_in_jax_are_those_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    call = calls.CALLS[name]
    arrays = [jnp.asarray(own) for own in call.arrays]

    def total(*own: Any) -> Any:
        return sum((each * each).sum() for each in calls.results(call.of(*own)))

    with jax.default_matmul_precision("highest"):
        found = jax.jit(jax.grad(total, argnums=call.by))(*arrays)
    tensors = [torch.from_numpy(own.copy()).requires_grad_(at in call.by) for at, own in enumerate(call.arrays)]
    total(*tensors).backward()
    for slope, at in zip(found, call.by):
        exact = tensors[at].grad.numpy()
        np.testing.assert_allclose(slope, exact, rtol=1e-3, atol=1e-3 * max(1.0, float(np.abs(exact).max())))


def test_packed_sequences_are_masked_ones() -> None:
    q, k, v, sinks = _array(9, 2, 8), _array(10, 1, 8), _array(10, 1, 4), _array(2)
    # Rows before the first sequence and behind the last are in none, and one sequence is empty.
    cu_q, cu_k = np.array([1, 4, 4, 8]), np.array([0, 4, 5, 9])

    def of(*own: Any) -> Any:
        bounds = [type(own[0])(each) if isinstance(own[0], np.ndarray) else jnp.asarray(each) for each in (cu_q, cu_k)]
        return ops.attention(*own[:3], sinks=own[3], cu_q=bounds[0], cu_k=bounds[1], causal=True, return_lse=True)

    def by_sequences(*own: Any) -> Any:
        return ops.attention(*own[:3], sinks=own[3], cu_q=cu_q, cu_k=cu_k, causal=True, return_lse=True)

    arrays = (q, k, v, sinks)
    found, exact = jax.jit(of)(*arrays), by_sequences(*(np.asarray(own) for own in arrays))
    for one, other in zip(found, exact):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert not exact[0][0].any() and np.isinf(exact[1][:, [0, 8]]).all()
    slopes = jax.grad(lambda *own: (of(*own)[0] ** 2).sum(), argnums=(0, 1, 2, 3))(*arrays)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(np.array(own)).requires_grad_() for own in arrays]
    bounds = [torch.from_numpy(own) for own in (cu_q, cu_k)]
    (ops.attention(*tensors[:3], sinks=tensors[3], cu_q=bounds[0], cu_k=bounds[1], causal=True) ** 2).sum().backward()
    for one, own in zip(slopes, tensors):
        np.testing.assert_allclose(one, own.grad, rtol=1e-4, atol=1e-4)


def test_the_order_of_sums_is_that_of_devices_alone() -> None:
    arrays = _array(2, 4, 5, 16), _array(2, 2, 5, 16), _array(2, 2, 5, 16)

    def slopes(deterministic: bool) -> Any:
        return jax.grad(lambda *own: (ops.attention(*own, deterministic=deterministic) ** 2).sum(), argnums=(0, 1, 2))(*arrays)

    for one, other in zip(slopes(True), slopes(False)):
        np.testing.assert_array_equal(one, other)


def test_operators_without_derivatives_say_so() -> None:
    with pytest.raises(TypeError, match="no derivatives of quantize"):
        jax.grad(lambda x: ops.quantize(x)[1].sum())(_array(4, 128))
    with pytest.raises(TypeError, match="stop_gradient"):
        jax.grad(lambda q: ops.attention_decode(q, q, q, jnp.array([1])).sum())(_array(1, 1, 1, 16))


def test_vmap_of_further_operators() -> None:
    q, k, lengths = _array(3, 1, 2, 1, 16), _array(3, 1, 2, 8, 16), jnp.array([[3], [8], [1]])
    found = jax.vmap(lambda q, k, n: ops.attention_decode(q, k, k, n))(q, k, lengths)
    each = [ops.attention_decode(q[at], k[at], k[at], lengths[at]) for at in range(3)]
    np.testing.assert_allclose(found, jnp.stack(each), rtol=1e-5, atol=1e-5)
    logits = _array(3, 5, 4)
    shares, choices = jax.vmap(lambda own: ops.route(own, 2)[::-1])(logits)
    places = jax.vmap(lambda own: tuple(ops.expert_places(own, 4)))(choices)
    for at in range(3):
        assert np.array_equal(choices[at], ops.route(logits[at], 2)[0])
        for one, other in zip(places, ops.expert_places(choices[at], 4)):
            assert np.array_equal(one[at], other)


def test_a_step_of_adamw_takes_traced_numbers() -> None:
    p, g, m, v = ([_array(3, 4)] for _ in range(4))
    v = [jnp.abs(v[0])]

    step = jax.jit(lambda number, rate: ops.adamw(p, g, m, v, step=number, lr=rate))
    for number in (1, 5):
        found = step(number, 0.1)
        own = [np.array(each[0]) for each in (p, m, v)]
        ops.adamw([own[0]], [np.asarray(g[0])], [own[1]], [own[2]], step=number, lr=0.1)
        for one, other in zip(found, own):
            np.testing.assert_allclose(one[0], other, rtol=1e-5, atol=1e-6)
