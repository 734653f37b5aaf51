"""Operators of models: their kernels beside their definitions, and the definitions beside formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _definitions as definitions
from tilewright import ops

_source = np.random.default_rng(7)


def _array(*shape: int, dtype: str = "f4") -> Any:
    return _source.standard_normal(shape).astype(dtype)


def _close(found: Any, exact: Any, dtype: str = "f4") -> None:
    tolerance = 1e-4 if dtype == "f4" else 2e-2
    np.testing.assert_allclose(np.asarray(found, "f8"), np.asarray(exact, "f8"), rtol=tolerance, atol=tolerance)


def _both(operator: Any, *arrays: Any, **named: Any) -> Any:
    """The results of the kernels, after they were compared with those of the definition in float64."""
    found = operator(*arrays, on="interpreter", **named)
    exact = operator(*[own if own is None else own.astype("f8") for own in arrays], **named)
    dtype = arrays[0].dtype.str[1:]
    for one, other in zip(*[own if isinstance(own, tuple) else (own,) for own in (found, exact)]):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.shape == other.shape
            _close(one, other, dtype)
    return found


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 7), (5,), (1, 100), (4, 0), (0, 4)])
def test_softmax(shape: tuple[int, ...], dtype: str) -> None:
    x, d = _array(*shape, dtype=dtype), _array(*shape, dtype=dtype)
    for function in (ops.softmax, ops.log_softmax):
        for axis in range(len(shape)):
            if 0 not in shape:
                _both(function, x, axis=axis)
            else:
                assert function(x, axis=axis, on="interpreter").shape == shape
    for slope in (ops.softmax_backward, ops.log_softmax_backward):
        if 0 not in shape:
            _both(slope, x, d)
            _both(slope, x, d, axis=0)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("weights", [0, 1, 2])
def test_norms(dtype: str, weights: int) -> None:
    x, r, d, s = (_array(2, 3, 20, dtype=dtype) for _ in range(4))
    vectors = [_array(20), _array(20)][:weights]
    weight, bias = [*vectors, None, None][:2]
    if weights < 2:
        _both(ops.rms_norm, x, weight, weight_less_one=weights > 0)
        found = ops.rms_norm(x, weight, residual=r, on="interpreter")
        exact = ops.rms_norm(x, weight, residual=r)
        for one, other in zip(found, exact):
            _close(one, other, dtype)
        _both(ops.rms_norm_backward, x, weight, d)
        for one, other in zip(
            ops.rms_norm_backward(x, weight, d, d_sum=s, on="interpreter"), ops.rms_norm_backward(x, weight, d, d_sum=s)
        ):
            assert (one is None) == (other is None)
            if one is not None:
                _close(one, other, dtype)
    _both(ops.layer_norm, x, weight, bias)
    _both(ops.layer_norm_backward, x, weight, bias, d)


@pytest.mark.parametrize("function", definitions.FUNCTIONS)
def test_functions_of_elements(function: str) -> None:
    x, up, d = _array(3, 50), _array(3, 50), _array(3, 50)
    _both(ops.activation, x, function=function)
    for one, other in zip(
        ops.activation_backward(x, d, function, up=up, on="interpreter"),
        ops.activation_backward(x.astype("f8"), d.astype("f8"), function, up=up.astype("f8")),
    ):
        _close(one, other)
    # The slope is that of the function.
    at, step = x.astype("f8"), 1e-6
    of, slope = definitions.FUNCTIONS[function]
    _close(slope(at), (of(at + step) - of(at - step)) / (2 * step))


def test_the_halves_of_a_packed_matrix_are_read_in_place() -> None:
    packed = _array(4, 64)
    gate, up = packed[:, :32], packed[:, 32:]
    found = ops.swiglu(gate, up, on="interpreter")
    _close(found, ops.swiglu(gate, up))
    plans = ops.plan(ops.swiglu, gate, up)
    assert len(plans.programs) == 1 and "gate_pitch{div=" in str(plans)
    weight, d = _array(32), _array(4, 32)
    functions: list[Any] = [
        lambda x: ops.softmax(x, on="interpreter"),
        lambda x: ops.softmax_backward(x, d, on="interpreter"),
        lambda x: ops.rms_norm(x, weight, on="interpreter"),
        lambda x: ops.rms_norm_backward(x, weight, d, on="interpreter")[0],
        lambda x: ops.layer_norm_backward(x, weight, weight, d, on="interpreter")[0],
        lambda x: ops.activation_backward(x, d, on="interpreter")[0],
        lambda x: ops.cross_entropy_rows_backward(x, np.arange(4), np.ones(4, "f4"), np.ones(4, "f4"), on="interpreter"),
    ]
    for function in functions:
        assert np.array_equal(function(up), function(up.copy()))


def test_dropout_keeps_what_its_generator_says() -> None:
    x = _array(3, 70)
    for probability in (0.0, 0.3):
        for seed in (0, 5, -1):
            found = ops.dropout(x, probability, seed, on="interpreter")
            assert np.array_equal(found, ops.dropout(x, probability, seed))
    # The test vectors of Random123 for Philox4x32-10: all zeros.
    assert definitions.philox(np.zeros(1, np.int64), 0)[0] == 0x6627E8D5


def test_products() -> None:
    x, weight, bias, d = (_array(*shape, dtype="f2") for shape in [(2, 3, 16), (8, 16), (8,), (2, 3, 8)])
    _both(ops.linear, x, weight, bias)
    for out in (np.empty((2, 3, 8), "f2"), np.empty((3, 2, 8), "f2").swapaxes(0, 1)):
        assert ops.linear(x, weight, bias, out=out, on="interpreter") is out
        _close(out, ops.linear(x, weight, bias), "f2")
    _close(ops.linear(x, weight, bias, function="max(x, 0)", on="interpreter"), ops.relu(ops.linear(x, weight, bias)), "f2")
    _both(ops.linear_backward, x, weight, d, bias=True)
    buffer = np.ones((8, 16), np.float32)
    _, summed, _ = ops.linear_backward(x, weight, d, into=buffer, on="interpreter")
    assert summed is buffer
    _close(buffer, 1 + d.reshape(6, 8).astype("f4").T @ x.reshape(6, 16).astype("f4"), "f2")
    _both(ops.matmul, x, x.swapaxes(1, 2).copy())


def test_results_go_where_they_are_told() -> None:
    x = _array(4, 6)
    for out in (np.empty((4, 6), "f4"), np.empty((6, 4), "f4").T):
        for on in (None, "interpreter"):
            out[...] = 0
            assert ops.softmax(x, out=out, on=on) is out
            _close(out, ops.softmax(x))
            assert ops.rms_norm(x, out=out, on=on) is out
            _close(out, ops.rms_norm(x))


def test_arrays_whose_strides_no_kernel_takes_are_copied_and_the_plan_says_so() -> None:
    wide = _array(6, 40)
    for x in (wide[:, ::2], wide.T, np.broadcast_to(wide[:1], (6, 40))):
        _close(ops.softmax(x, on="interpreter"), ops.softmax(x))
    plans = ops.plan(ops.softmax, wide[:, ::2])
    assert [program.name for program in plans.programs] == ["relayout_rows", "softmax"]
    assert "(6,20):(40,2) -> f32 (6,20):(20,1)" in str(plans)


def test_a_row_has_the_same_bits_in_every_matrix() -> None:
    x, d = _array(50, 40), _array(50, 40)
    weight = _array(40)
    functions: list[Any] = [
        lambda a, b: ops.softmax(a, on="interpreter"),
        lambda a, b: ops.rms_norm(a, weight, on="interpreter"),
        lambda a, b: ops.layer_norm(a, weight, weight, on="interpreter"),
        lambda a, b: ops.softmax_backward(a, b, on="interpreter"),
        lambda a, b: ops.rms_norm_backward(a, weight, b, on="interpreter")[0],
    ]
    for function in functions:
        whole = function(x, d)
        for rows in (slice(0, 1), slice(17, 18), slice(3, 40)):
            assert np.array_equal(function(x[rows].copy(), d[rows].copy()), whole[rows])


@pytest.mark.parametrize("vocabulary", [1, 50, 5001])
def test_cross_entropy(vocabulary: int) -> None:
    x = _array(6, vocabulary) * 3
    targets = np.array([0, vocabulary - 1, -100, 7 % vocabulary, -1, vocabulary], np.int64)
    d = _array(6)
    settings: list[dict[str, Any]] = [{}, {"smoothing": 0.1, "z_loss": 1e-3}, {"softcap": 2.0}]
    for options in settings:
        loss, lse = ops.cross_entropy_rows(x, targets, on="interpreter", **options)
        exact, powers = ops.cross_entropy_rows(x.astype("f8"), targets, **options)
        _close(loss, exact)
        _close(lse[targets != -100], powers[targets != -100])
        assert loss[2] == 0 and np.isinf(loss[4]) and np.isinf(loss[5])
        inside = slice(0, 4)
        found = ops.cross_entropy_rows_backward(x[inside], targets[inside], lse[inside], d[inside], on="interpreter", **options)
        slope = ops.cross_entropy_rows_backward(
            x[inside].astype("f8"), targets[inside], powers[inside], d[inside].astype("f8"), **options
        )
        _close(found, slope)
        assert not found[2].any()
        # The definition beside differences of itself.
        at, step = x[:1].astype("f8"), np.zeros((1, vocabulary))
        step[0, 0] = 1e-6
        above, below = (ops.cross_entropy_rows(at + sign * step, targets[:1], **options)[0][0] for sign in (1, -1))
        assert abs((above - below) / 2e-6 * d[0] - slope[0, 0]) < 1e-5
    mean = ops.cross_entropy(x[:4].reshape(2, 2, -1), targets[:4].reshape(2, 2), on="interpreter")
    _close(mean, ops.cross_entropy(x[:4].astype("f8"), targets[:4]))


@pytest.mark.parametrize("vocabulary", [40, 41])
def test_the_loss_of_a_linear_layer_needs_no_logits(vocabulary: int) -> None:
    x, weight = _array(300, 16, dtype="f2"), _array(vocabulary, 16, dtype="f2")
    targets = _source.integers(0, vocabulary, 300)
    from tilewright.ops._losses import fused

    whole = ops.cross_entropy(x.astype("f8") @ weight.astype("f8").T, targets)
    for on in (None, "interpreter"):
        _close(ops.linear_cross_entropy(x, weight, targets, rows=128, on=on), whole, "f2")
        loss, d_x, d_weight = fused(x, weight, targets, -100, 0.0, 0.0, 0.0, True, 128, True, on)
        logits = x.astype("f8") @ weight.astype("f8").T
        e = np.exp(logits - logits.max(1, keepdims=True))
        d = (e / e.sum(1, keepdims=True) - np.eye(vocabulary)[targets]) / 300
        np.testing.assert_allclose(d_x, d @ weight.astype("f8"), atol=2e-4)
        np.testing.assert_allclose(d_weight, d.T @ x.astype("f8"), atol=2e-3)
        _close(loss, whole, "f2")


def test_the_mean_is_over_the_rows_that_count() -> None:
    x, weight = _array(4, 8, dtype="f2"), _array(9, 8, dtype="f2")
    logits = x.astype("f8") @ weight.astype("f8").T
    for targets in (np.array([3, -100, -100, -100]), np.full(4, -100)):
        mean = ops.cross_entropy(logits[:1], targets[:1]) if targets[0] >= 0 else 0.0
        for on in (None, "interpreter"):
            _close(ops.cross_entropy(logits.astype("f4"), targets, on=on), mean)
            _close(ops.linear_cross_entropy(x, weight, targets, on=on), mean, "f2")


def test_embeddings() -> None:
    table, indices = _array(10, 12), np.array([[3, 3, 9], [0, 3, 9]])
    assert np.array_equal(ops.embedding(indices, table, on="interpreter"), table[indices])
    d = _array(2, 3, 12)
    for padding in (None, 9):
        found = ops.embedding_backward(indices, d, 10, padding=padding, on="interpreter")
        _close(found, ops.embedding_backward(indices, d, 10, padding=padding))
        assert found[9].any() == (padding is None) and not found[1].any()
    assert np.isnan(ops.embedding(np.array([10, -1]), table, on="interpreter")).all()
    assert np.isnan(ops.embedding(np.array([10, -1]), table)).all()


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_positions(heads: int, interleaved: bool) -> None:
    batch, count, steps, length = 2, 3, 5, 16
    shape = (batch, count, steps, length) if heads == 1 else (batch, steps, count, length)
    for rotated in (16, 8):
        angles = np.arange(20)[:, None] * 0.3 ** np.arange(rotated // 2)
        cos, sin = np.cos(angles).astype("f4"), np.sin(angles).astype("f4")
        for x in (_array(*shape), _array(*shape).swapaxes(1, 2).copy().swapaxes(1, 2)):
            for positions in (None, np.arange(3, 8), np.array([[0, 1, 2, 3, 4], [9, 8, 7, 7, 19]])):
                named: dict[str, Any] = {"positions": positions, "interleaved": interleaved, "heads": heads}
                found = ops.rope(x, cos, sin, on="interpreter", **named)
                _close(found, ops.rope(x, cos, sin, **named))
                for on in (None, "interpreter"):
                    # The rotation back undoes the rotation, wherever the rows of a head are in memory.
                    turned = np.asarray(found)
                    _close(ops.rope(turned, cos, sin, backward=True, on=on, **named), x)
                    apart = turned.swapaxes(1, 2).copy().swapaxes(1, 2)
                    _close(ops.rope(apart, cos, sin, backward=True, on=on, **named), x)


_OPTIONS: list[dict[str, Any]] = [
    {},
    {"causal": True, "window": (5, -1)},
    {"softcap": 3.0, "window": (3, 4), "scale": 0.5},
    {"sinks": _array(4), "slopes": np.abs(_array(4)), "causal": True},
    {"bias": _array(1, 4, 20, 32)},
]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("number", range(len(_OPTIONS)))
def test_attention(number: int, heads: int) -> None:
    from tilewright.ops import _attention

    options = {**_OPTIONS[number], "heads": heads}

    def shape(*extents: int) -> tuple[int, ...]:
        batch, count, rows, length = extents
        return extents if heads == 1 else (batch, rows, count, length)

    q, k, v = (_array(*shape(*extents), dtype="f2") for extents in [(2, 4, 20, 32), (2, 2, 32, 32), (2, 2, 32, 16)])
    wide = [own.astype("f8") for own in (q, k, v)]
    found = ops.attention(q, k, v, return_lse=True, on="interpreter", **options)
    exact = ops.attention(*wide, return_lse=True, **options)
    for one, other in zip(found, exact):
        _close(one, other, "f2")
    extra = [options.get(name) for name in ("sinks", "slopes", "bias")]
    own = _attention.settled(
        q, options.get("causal", False), options.get("window"), options.get("scale"), options.get("softcap", 0.0), heads, ""
    )
    d_o, d_lse = _array(*exact[0].shape, dtype="f2"), _array(*exact[1].shape)
    slope: Any = _attention.backward
    by_kernels = slope(_attention.Inputs(q, k, v, *extra), *found, d_o, d_lse, own, "interpreter")
    by_formulas = slope(_attention.Inputs(*wide, *extra), *exact, d_o.astype("f8"), d_lse, own, None)
    for one, other in zip(by_kernels, by_formulas):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(np.asarray(one, "f8"), other, atol=1e-2 * max(1, np.abs(other).max()))


def test_attention_of_packed_sequences() -> None:
    q, k, v = _array(40, 2, 16, dtype="f2"), _array(50, 1, 16, dtype="f2"), _array(50, 1, 16, dtype="f2")
    cu_q, cu_k = np.array([0, 10, 10, 40]), np.array([0, 15, 20, 50])
    found = ops.attention(q, k, v, cu_q=cu_q, cu_k=cu_k, causal=True, return_lse=True, on="interpreter")
    exact = ops.attention(*(own.astype("f8") for own in (q, k, v)), cu_q=cu_q, cu_k=cu_k, causal=True, return_lse=True)
    for one, other in zip(found, exact):
        _close(one, other, "f2")


def test_a_sequence_has_the_same_bits_in_every_batch() -> None:
    q, k, v = (_array(3, 2, 40, 16, dtype="f2") for _ in range(3))
    whole = ops.attention(q, k, v, causal=True, on="interpreter")
    rows = [own.swapaxes(1, 2).reshape(-1, 2, 16) for own in (q, k, v)]
    ends = np.arange(0, 121, 40)
    packed = ops.attention(*rows, cu_q=ends, causal=True, on="interpreter")
    for number in range(3):
        alone = [own[number : number + 1].copy() for own in (q, k, v)]
        assert np.array_equal(whole[number], ops.attention(*alone, causal=True, on="interpreter")[0])
        part = [own[40 * number : 40 * number + 40].copy() for own in rows]
        one = ops.attention(*part, cu_q=ends[:2], causal=True, on="interpreter")
        assert np.array_equal(packed[40 * number : 40 * number + 40], one)


def test_attention_over_caches() -> None:
    batch, heads, kv, rows, length, page = 3, 4, 2, 64, 16, 16
    q = _array(batch, heads, 1, length, dtype="f2")
    k, v = _array(batch, kv, rows, length, dtype="f2"), _array(batch, kv, rows, length, dtype="f2")
    lengths = np.array([1, 33, 64])
    decode: Any = ops.attention_decode
    exact = decode(*(own.astype("f8") for own in (q, k, v)), lengths, return_lse=True)
    for splits in (1, 3, None):
        found = ops.attention_decode(q, k, v, lengths, splits=splits, return_lse=True, on="interpreter")
        for one, other in zip(found, exact):
            _close(one, other, "f2")
    # The same rows in pages, in another order.
    order = _source.permutation(batch * rows // page).reshape(batch, -1)
    paged = [np.empty((order.size, page, kv, length), "f2") for _ in range(2)]
    for to, of in zip(paged, (k, v)):
        for sequence in range(batch):
            to[order[sequence]] = of[sequence].swapaxes(0, 1).reshape(-1, page, kv, length)
    for on in (None, "interpreter"):
        found = decode(q, *paged, lengths, pages=order, on=on)
        _close(found, exact[0], "f2")
    # With a number of parts of its own, a sequence has the same bits in every batch.
    for number in range(batch):
        alone = (own[number : number + 1] for own in (q, k, v, lengths))
        one = decode(*alone, splits=4, on="interpreter")
        assert np.array_equal(one, ops.attention_decode(q, k, v, lengths, splits=4, on="interpreter")[number : number + 1])


def test_a_mixture_of_experts() -> None:
    tokens, count, chosen, length, inner = 20, 5, 2, 16, 24
    x, logits = _array(tokens, length, dtype="f2"), _array(tokens, count)
    # One expert is chosen by nobody.
    logits[:, 3] = -100
    weights = [_array(count, *shape, dtype="f2") for shape in [(inner, length), (inner, length), (length, inner)]]
    mixture: Any = ops.experts
    found = mixture(x, logits, *weights, chosen, on="interpreter")
    exact = mixture(x.astype("f8"), logits.astype("f8"), *(own.astype("f8") for own in weights), chosen)
    np.testing.assert_allclose(np.asarray(found, "f8"), exact, atol=3e-2 * np.abs(exact).max())
    own, shares = ops.route(logits, chosen, on="interpreter")
    assert np.array_equal(own, np.argsort(-logits, axis=1, kind="stable")[:, :chosen])
    where = ops.expert_places(np.asarray(own), count, on="interpreter")
    for one, other in zip(where, ops.expert_places(np.asarray(own), count)):
        assert np.array_equal(np.asarray(one), other)
    from tilewright.ops import _experts

    places = ops.Places(*(np.asarray(each) for each in where))
    d, shares = _array(tokens, length, dtype="f2"), np.asarray(shares)
    rows = np.asarray(ops.permute(x, places, on="interpreter"))
    assert np.array_equal(rows, ops.permute(x, places))
    for one, other in zip(
        _experts.combine_backward(rows, d, places.places, places.choices, shares, on="interpreter"),
        _experts.combine_backward(rows.astype("f8"), d.astype("f8"), places.places, places.choices, shares),
    ):
        _close(one, other, "f2")
    _close(_experts.permute_backward(rows, places.places, on="interpreter"), _experts.permute_backward(rows, places.places), "f2")
    d_h = _array(rows.shape[0], inner, dtype="f2") * (places.choices >= 0)[:, None]
    for one, other in zip(
        _experts.expert_product_backward(rows, weights[0], d_h.astype("f2"), places, on="interpreter"),
        _experts.expert_product_backward(rows.astype("f8"), weights[0].astype("f8"), d_h.astype("f8"), places),
    ):
        np.testing.assert_allclose(np.asarray(one, "f8"), other, atol=2e-2 * np.abs(other).max())
    for over_all in (False, True):
        slope = [ops.route(logits, chosen, over_all=over_all, on=on) for on in ("interpreter", None)]
        d_w = _array(tokens, chosen)
        _close(
            _experts.route_backward(logits, np.asarray(slope[0][0]), np.asarray(slope[0][1]), d_w, over_all=over_all, on="interpreter"),
            _experts.route_backward(logits, *slope[1], d_w, over_all=over_all),
        )


def test_a_step_of_adamw() -> None:
    torch = pytest.importorskip("torch")
    arrays = [[_array(*shape) for _ in range(2)] for shape in [(5,), (30, 40)]]
    theirs = [torch.tensor(p.copy(), requires_grad=True) for p, _ in arrays]
    optimizer = torch.optim.AdamW(theirs, lr=0.1, weight_decay=0.2, betas=(0.8, 0.9))
    for on in (None, "interpreter"):
        ours = [p.copy() for p, _ in arrays]
        first, second = ([np.zeros_like(p) for p in ours] for _ in range(2))
        for step in (1, 2):
            gradients = [g * step for _, g in arrays]
            ops.adamw(ours, gradients, first, second, step=step, lr=0.1, decay=0.2, betas=(0.8, 0.9), on=on)
            if on is None:
                for own, g in zip(theirs, gradients):
                    own.grad = torch.tensor(g)
                optimizer.step()
        for own, other in zip(ours, theirs):
            _close(own, other.detach().numpy())


def test_what_does_not_fit_is_refused() -> None:
    x = _array(3, 8)
    refused: list[tuple[Any, type[Exception]]] = [
        (lambda: ops.softmax(x, axis=2), ValueError),
        (lambda: ops.softmax(x, on="gpu"), ValueError),
        (lambda: ops.rms_norm(x, _array(7)), ValueError),
        (lambda: ops.rms_norm(x, residual=_array(3, 7)), ValueError),
        (lambda: ops.rms_norm(x, residual=x, out=x), TypeError),
        (lambda: ops.layer_norm(x, _array(8), _array(8, dtype="f2"), on="interpreter"), ValueError),
        (lambda: ops.activation(x, "swish"), ValueError),
        (lambda: ops.swiglu(x, _array(3, 9)), ValueError),
        (lambda: ops.dropout(x, 1.0, 0), ValueError),
        (lambda: ops.dropout(x, 0.5, 2**31), ValueError),
        (lambda: ops.linear(x, _array(4, 9)), ValueError),
        (lambda: ops.matmul(x, x), ValueError),
        (lambda: ops.softmax(x.astype("i4"), on="interpreter"), ValueError),
        (lambda: ops.softmax(x, out=_array(3, 7)), ValueError),
        (lambda: ops.softmax(tw.zeros((3, 8), "f4")), TypeError),
        (lambda: ops.cross_entropy_rows(x, np.zeros(3, "i4"), vocabulary=9), ValueError),
        (lambda: ops.plan(len, [1]), TypeError),
    ]
    for wrong, error in refused:
        with pytest.raises(error):
            wrong()
