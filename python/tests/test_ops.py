"""Operators of models: their kernels beside their definitions, and the definitions beside formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _definitions as definitions
from tilewright import _operators
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


#: Numbers of rows: of one tile and of several, at its edges and inside.
_FEW = (1, 2, 3, 7, 16, 17, 64, 129)


def _same_rows(call: Any, *arrays: Any, rows: tuple[int, ...] = _FEW) -> None:
    """Requires that rows have the same bits alone, in front of others and behind others."""
    whole = np.asarray(call(*arrays))
    for count in rows:
        for part in (slice(0, count), slice(len(whole) - count, None)):
            found = np.asarray(call(*[np.ascontiguousarray(own[part]) for own in arrays]))
            assert found.tobytes() == whole[part].tobytes(), (count, part)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_rows_of_invariant_products_have_the_same_bits(dtype: str) -> None:
    for n, k, function in [(24, 200, None), (37, 331, "gelu_tanh(x)")]:
        x, weight, bias = (_array(*shape, dtype=dtype) for shape in [(257, k), (n, k), (n,)])
        named: dict[str, Any] = {"function": function, "invariant": True, "on": "interpreter"}
        _same_rows(lambda x: ops.linear(x, weight, bias, **named), x)
    d = _array(257, 37, dtype=dtype)
    named = {"invariant": True, "on": "interpreter"}
    _same_rows(lambda x, d: ops.linear_backward(x, weight, d, **named)[0], x, d, rows=(1, 17, 129))
    _same_rows(lambda d: ops.linears_backward(d[:, :8], [weight[:, :8]] * 2, [d, d], **named)[0], d, rows=(3, 64))
    _same_rows(lambda x: ops.matmul(x, weight.T, **named), x, rows=(2, 64))
    # By the definitions, which call a library of matrices.
    _same_rows(lambda x: ops.linear(x, weight, invariant=True), x)
    turned = weight.T.copy()
    _same_rows(lambda x: ops.linear_backward(d[: len(x)], turned, x, invariant=True)[0], x)


def test_rows_of_other_invariant_products_have_the_same_bits() -> None:
    from tilewright import gpu

    def same(of: Any, x: Any, rows: tuple[int, ...] = (1, 3, 17, 129)) -> None:
        whole = np.asarray(of(x))
        for count in rows:
            assert np.asarray(of(x[:count])).tobytes() == whole[:count].tobytes(), count

    named: dict[str, Any] = {"invariant": True, "on": "interpreter"}
    x, weight = _array(257, 72, dtype="f2"), _array(48, 72, dtype="f2")

    def as_bf16(array: Any) -> Any:
        return gpu.relayout(array, tw.zeros(array.shape, "bfloat16"), on="interpreter")

    def in_bf16(rows: Any) -> Any:
        return gpu.gemm(as_bf16(rows), as_bf16(weight), out=tw.zeros((len(rows), 48), "float32"), **named)

    same(in_bf16, x)
    for pairs in ("halves", "neighbours"):
        same(lambda x: ops.gated_linear(x, weight, pairs=pairs, **named), x)
    same(lambda x: ops.feed_forward(x, weight, weight, weight.T.copy(), **named), x, (1, 64))
    own = _array(16, 256, dtype="f2")
    words, scales = ops.quantize_int4(own)
    same(lambda x: ops.int4_linear(x, words, scales, **named), _array(100, 256, dtype="f2"), (1, 3, 17, 65))
    by_blocks = ops.quantize(_array(40, 300), square=True, on="interpreter")

    def scaled(rows: Any) -> Any:
        return ops.scaled_linear(*ops.quantize(rows, on="interpreter"), *by_blocks, element="f32", **named)

    same(scaled, _array(257, 300))


def test_free_products_of_few_rows_have_other_bits() -> None:
    x, weight = _array(257, 2056, dtype="f2"), _array(24, 2056, dtype="f2")
    for invariant in (False, True):
        out = [np.empty((rows, 24), "f4") for rows in (257, 64)]
        for own in out:
            ops.linear(x[: len(own)], weight, out=own, invariant=invariant, on="interpreter")
        assert (out[0][:64].tobytes() == out[1].tobytes()) == invariant


def test_the_context_makes_products_invariant() -> None:
    x, weight = _array(16, 2056, dtype="f2"), _array(24, 2056, dtype="f2")

    def text(**named: Any) -> str:
        return str(ops.plan(ops.linear, x, weight, **named))

    assert "split-K" in text() and "batch-invariant" not in text()
    assert "split-K" not in text(invariant=True) and "batch-invariant" in text(invariant=True)
    with ops.invariant():
        assert text() == text(invariant=True)
        with ops.invariant(False):
            assert "batch-invariant" not in text()
        assert "batch-invariant" not in text(invariant=False)
        calls: list[tuple[Any, tuple[Any, ...]]] = [
            (ops.matmul, (x, weight.T)),
            (ops.linear_backward, (x, weight, _array(16, 24, dtype="f2"))),
            (ops.feed_forward, (x, weight, weight, weight.T.copy())),
            (ops.gated_linear, (x, weight)),
            (ops.linear_cross_entropy, (x, weight, np.zeros(16, "i4"))),
        ]
        for function, arrays in calls:
            assert "batch-invariant" in str(ops.plan(function, *arrays)), function
    assert "batch-invariant" not in text()
    with pytest.raises(tw.LayoutError, match="sum of a row"):
        tw.gpu.gemm(x, weight, keep="row sum", invariant=True, on="interpreter")


def test_decoding_divides_keys_as_for_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.ops import _attention

    # A small machine: three sequences divide their keys into fewer parts than one.
    monkeypatch.setattr(_attention, "_splits", lambda machine, rows: max(1, 24 // rows))
    q, k, v = (_array(3, 4, rows, 16, dtype="f2") for rows in (1, 300, 300))
    lengths = np.array([300, 7, 150])
    named: dict[str, Any] = {"invariant": True, "on": "interpreter"}
    whole = np.asarray(ops.attention_decode(q, k, v, lengths, **named))
    for at in range(3):
        part = slice(at, at + 1)
        assert np.array_equal(ops.attention_decode(q[part], k[part], v[part], lengths[part], **named), whole[part])


def test_experts_are_invariant() -> None:
    x, w = _array(384, 16, dtype="f2"), _array(2, 24, 16, dtype="f2")
    for on in (None, "interpreter"):
        each = []
        for experts in (np.array([[0]] * 70 + [[1]] * 3, "i4"), np.array([[0]] * 5 + [[1]] * 200, "i4")):
            where = ops.expert_places(experts, 2)
            rows = ops.permute(x[: len(experts)], where)
            rows[:3] = x[300:303]
            found = ops.expert_product(rows, w, where, invariant=True, on=on)
            each.append(np.asarray(found)[:3].tobytes())
            _close(found, definitions.expert_product(rows.astype("f8"), w.astype("f8"), where.tile_experts, True, 128), "f2")
        assert each[0] == each[1]


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
def test_gated_layers_are_their_parts(pairs: str) -> None:
    x, weight, bias, d = (_array(*shape, dtype="f2") for shape in [(2, 3, 16), (24, 16), (24,), (2, 3, 12)])
    gate, up = definitions.pair(weight, pairs, 0)
    of_gate, of_up = definitions.pair(bias, pairs, 0)
    for function in definitions.FUNCTIONS:
        found = _both(ops.gated_linear, x, weight, bias, function=function, pairs=pairs)
        exact = ops.activation(ops.linear(x, gate, of_gate), function, up=ops.linear(x, up, of_up))
        _close(found, exact, "f2")
    _both(ops.gated_linear, x, weight, pairs=pairs)
    for of_bias in (None, bias):
        for on, kind in (("interpreter", "f2"), (None, "f4")):
            arrays = [None if own is None else own.astype(kind) for own in (x, weight, d, of_bias)]
            found = ops.gated_linear_backward(*arrays, pairs=pairs, on=on)
            exact = ops.gated_linear_backward(*[None if own is None else own.astype("f8") for own in arrays], pairs=pairs)
            for one, other in zip(found, exact):
                assert (one is None) == (other is None)
                if one is not None:
                    _close(one, other, "f2")
    out = np.empty((3, 2, 12), "f2").swapaxes(0, 1)
    assert ops.gated_linear(x, weight, pairs=pairs, out=out, on="interpreter") is out
    _close(out, ops.gated_linear(x, weight, pairs=pairs), "f2")
    plan = ops.plan(ops.gated_linear, x, weight, pairs=pairs)
    assert len(plan.programs) == 1 and "gated" in str(plan)
    wrong: Any
    for wrong, message in [({"pairs": "thirds"}, "halves"), ({"function": "sine"}, "no function")]:
        with pytest.raises(ValueError, match=message):
            ops.gated_linear(x, weight, **wrong)
    with pytest.raises(ValueError, match="2 N,K"):
        ops.gated_linear(x, weight[:-1])


def test_a_feed_forward_layer_of_halves_is_two_products() -> None:
    x, both, down = (_array(*shape, dtype="f2") for shape in [(5, 16), (48, 16), (16, 24)])
    gate, up = both[:24], both[24:]
    assert len(ops.plan(ops.feed_forward, x, gate, up, down).programs) == 2
    found = ops.feed_forward(x, gate, up, down, on="interpreter")
    _close(found, ops.feed_forward(x.astype("f8"), gate.astype("f8"), up.astype("f8"), down.astype("f8")), "f2")
    # Other weights, and what must have the bits of a layer that is trained, are three products and a kernel between.
    for weights, named in [((gate.copy(), up), {}), ((up, gate), {}), ((gate, both[23:47]), {}), ((gate, up), {"invariant": True})]:
        assert len(ops.plan(ops.feed_forward, x, *weights, down, **named).programs) == 4


@pytest.mark.parametrize(("rows", "n", "k"), [(3, 24, 128), (130, 136, 300), (1, 5, 7)])
def test_linear_layers_of_8_bits_are_those_of_their_numbers(rows: int, n: int, k: int) -> None:
    bias = _array(n, dtype="f4")
    for squares in ((False, True), (True, False), (False, False)):
        (q, of_q), (w, of_w) = (
            ops.quantize(_array(size, k) * 4, square=square, on="interpreter") for size, square in zip((rows, n), squares)
        )
        whole = [
            np.asarray(ops.dequantize(*own, square=square, on="interpreter"), "f8")
            for own, square in zip(((q, of_q), (w, of_w)), squares)
        ]
        exact = whole[0] @ whole[1].T
        for element, tolerance in (("f32", 1e-5), ("f16", 2e-3)):
            found = ops.scaled_linear(q, of_q, w, of_w, bias, element=element, on="interpreter")
            scale = np.abs(whole[0]) @ np.abs(whole[1]).T + np.abs(bias)
            assert (np.abs(np.asarray(found, "f8") - exact - bias) <= tolerance * scale).all()
        found = ops.scaled_linear(q, of_q, w, of_w, element="f32", on="interpreter")
        assert (np.abs(np.asarray(found, "f8") - exact) <= 1e-5 * (scale + 1)).all()


def test_scales_and_types_of_8_bits_are_checked() -> None:
    (q, of_q), (w, of_w) = (ops.quantize(_array(rows, 256), on="interpreter") for rows in (3, 5))
    for arrays, kind, message in [
        ((q, of_q, w, of_q), ValueError, "scales of weight"),
        ((q, np.zeros((3, 3), "f4"), w, of_w), ValueError, "scales of x"),
        ((q, np.zeros((3, 2), "f2"), w, of_w), TypeError, "float32"),
        ((_array(3, 256), of_q, w, of_w), TypeError, "e4m3 or e5m2"),
    ]:
        with pytest.raises(kind, match=message):
            ops.scaled_linear(*arrays, on="interpreter")
    with pytest.raises(ValueError, match="bf16, f16, f32"):
        ops.scaled_linear(q, of_q, w, of_w, element="i8", on="interpreter")


@pytest.mark.parametrize(("shape", "n", "k"), [((2, 3), 24, 256), ((70,), 40, 128), ((1,), 1, 384)])
def test_linear_layers_of_4_bits_are_those_of_their_numbers(shape: tuple[int, ...], n: int, k: int) -> None:
    weight, x, bias, d = (_array(*own, dtype="f2") for own in [(n, k), (*shape, k), (n,), (*shape, n)])
    words, scales = ops.quantize_int4(weight)
    assert words.shape == (n, k // 8) and words.dtype == np.int32 and scales.shape == (k // 128, n)
    # The numbers, from the bits of a word one after another.
    whole = np.zeros((n, k))
    for place, at in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
        bits = (words.view("u4") >> np.uint32(4 * place)) & np.uint32(15)
        whole[:, at::8] = bits.astype("f8") - 16 * (bits > 7)
    assert abs(whole).max() == 7
    whole *= np.repeat(scales.astype("f8").T, 128, axis=1)
    assert (np.abs(whole - weight) <= np.repeat(scales.astype("f8").T, 128, axis=1) * 0.51).all()
    _close(ops.int4_weights(words, scales), whole, "f2")
    _close(ops.int4_weights(words, scales, on="interpreter"), whole, "f2")
    for on in (None, "interpreter"):
        for invariant in (False, True):
            for of_bias in (None, bias):
                exact = x.astype("f8") @ whole.T + (0 if of_bias is None else bias)
                found = ops.int4_linear(x, words, scales, of_bias, invariant=invariant, on=on)
                np.testing.assert_allclose(np.asarray(found, "f8"), exact, rtol=2e-2, atol=4e-2)
        found = ops.int4_linear_backward(words, scales, d, on=on)
        np.testing.assert_allclose(np.asarray(found, "f8"), d.astype("f8") @ whole, rtol=2e-2, atol=4e-2)
    out = np.empty((*shape, 2 * n), "f2")[..., :n]
    assert ops.int4_linear(x, words, scales, bias, out=out, on="interpreter") is out
    np.testing.assert_allclose(out.astype("f8"), x.astype("f8") @ whole.T + bias, rtol=2e-2, atol=4e-2)
    for arrays, kind, message in [
        ((x, words[:, :-1], scales), ValueError, "multiple of 128"),
        ((x, words, scales.T[:, :-1]), ValueError, "scales are"),
        ((x, words.view("u4"), scales), TypeError, "int32"),
        ((x, words, scales.astype("f4")), TypeError, "type of x"),
    ]:
        with pytest.raises(kind, match=message):
            ops.int4_linear(*arrays, on="interpreter")
    with pytest.raises(ValueError, match="multiple of 128"):
        ops.quantize_int4(weight[:, :-1])


def test_many_rows_take_weights_of_4_bits_that_are_written_first() -> None:
    words, scales = np.zeros((14336, 512), "i4"), np.ones((32, 14336), "f2")

    def text(rows: int, **named: Any) -> str:
        return str(ops.plan(ops.int4_linear, np.zeros((rows, 4096), "f2"), words, scales, **named))

    assert "int4_weights" not in text(16) and "weights of four bits" in text(16)
    assert "int4_weights" in text(4096)
    assert "int4_weights" not in text(4096, invariant=True)


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
        loss, d_x, d_weight = fused(x, weight, targets, -100, 0.0, 0.0, 0.0, True, 128, True, False, on)
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


@pytest.mark.parametrize("machine", ["A100", "H200"])
def test_attention_adds_in_turns_or_in_any_order(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright._operators import planned
    from tilewright.ops import _attention

    plans = []

    def noted(*given: Any) -> Any:
        plans.append(planned(*given))
        return plans[-1]

    monkeypatch.setattr(_attention, "planned", noted)
    monkeypatch.setattr(_attention, "machine_of", lambda array: machine)
    q, k, v, d_o = (_array(1, 1, 150, 64, dtype="f2") for _ in range(4))
    wide = [own.astype("f8") for own in (q, k, v)]
    inputs, exact = _attention.Inputs(q, k, v), _attention.Inputs(*wide)
    slope: Any = _attention.backward
    for deterministic in (True, False):
        own = _attention.settled(q, True, None, None, 0.0, 1, "", deterministic)
        made, true = _attention.forward(inputs, own, "interpreter"), _attention.forward(exact, own, None)
        found = slope(inputs, *made, d_o, None, own, "interpreter")
        for one, other in zip(found[:3], slope(exact, *true, d_o.astype("f8"), None, own, None)):
            np.testing.assert_allclose(np.asarray(one, "f8"), other, atol=1e-2 * np.abs(other).max())
    ordered, free = ([program.ptx for program in plan.programs] for plan in plans[1::2])
    assert ordered != free and plans[0] is plans[2]


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


def test_an_array_that_kernels_read_and_nobody_gives_is_named() -> None:
    x = np.ones((2, 8), np.float32)
    results, sizes = {"y": _operators.Result((2, 8), "f32")}, {"M": 2, "x_pitch": 8, "y_pitch": 8}
    kernels = _operators.planned("rms_norm", (("length", 8), ("weight", True)), False, "H200")
    with pytest.raises(TypeError, match="rms_norm reads 'weight', which is not given"):
        _operators.launch(kernels, {"x": x}, results, sizes, "interpreter")
    (y,) = _operators.launch(kernels, {"x": x, "weight": 2 * x[0]}, results, sizes, "interpreter")
    np.testing.assert_allclose(y, 2 * x, rtol=1e-5)
