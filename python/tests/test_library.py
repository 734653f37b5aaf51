# mypy: ignore-errors
"""Kernels of the library on arrays, on the interpreter, beside NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

HERE = {"on": "interpreter"}
PLAIN = {"function": None, "inputs": [], "pairs": None, "scales": None, "format": None, "int4": None, "keep": [], "tf32": False, "packed": False, "fast": False, "invariant": False}


def whole(source, *shape, dtype=np.float16):
    """Small whole numbers, whose products and sums are exact."""
    return source.integers(-3, 4, shape).astype(dtype)


def wide(array):
    return np.asarray(array).astype(np.float64)


def test_rows():
    source = np.random.default_rng(5)
    x = source.standard_normal((5, 300), dtype=np.float32)
    weight, bias = source.standard_normal((2, 300), dtype=np.float32)
    powers = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    assert np.allclose(tw.gpu.softmax(x, **HERE), powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    root = np.sqrt((wide(x) ** 2).mean(1, keepdims=True) + 1e-5)
    assert np.allclose(tw.gpu.rms_norm(x, weight, **HERE), wide(x) / root * weight, rtol=1e-4, atol=1e-5)
    normed = (wide(x) - wide(x).mean(1, keepdims=True)) / np.sqrt(wide(x).var(1, keepdims=True) + 1e-5)
    assert np.allclose(tw.gpu.layer_norm(x, weight, bias, **HERE), normed * weight + bias, rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match='on="interpreter"'):
        tw.gpu.softmax(x)
    for other in (np.int32, np.uint8, np.float64):
        with pytest.raises(tw.LayoutError, match="E0936.*no type of rows of softmax is called"):
            tw.gpu.softmax(x.astype(other), **HERE)


def normal(x, axis, weight=1.0, bias=0.0):
    """A layer norm in f64."""
    x = np.moveaxis(wide(x), axis, -1)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias
    return np.moveaxis(y, -1, axis)


VIEWS = {
    "a row": lambda x: x[0, 0],
    "a matrix": lambda x: x[0],
    "all": lambda x: x,
    "a number": lambda x: x[0, 0, 0],
    "pitched": lambda x: x[:, :, 3:33],
    "every other row": lambda x: x[:, ::2],
    "one row of two": lambda x: x[:, 1:2, :7],
    "permuted": lambda x: x.transpose(1, 0, 2),
    "by columns": lambda x: x.transpose(2, 1, 0),
    "every other column": lambda x: x[:, :, ::2],
    "the same row": lambda x: np.broadcast_to(x[0, 0], (3, 2, 40)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_rows_of_any_array(view, axis):
    source = np.random.default_rng(17)
    x = VIEWS[view](source.standard_normal((3, 4, 40), dtype=np.float32))
    if axis == 1 and x.ndim < 2:
        with pytest.raises(ValueError, match="axes"):
            tw.gpu.softmax(x, axis=axis, **HERE)
        return
    length = x.shape[axis] if x.ndim else 1
    powers = np.exp(wide(x))
    wanted = powers / powers.sum(axis, keepdims=True) if x.ndim else np.ones(())
    found = tw.gpu.softmax(x, axis=axis, **HERE)
    assert found.shape == x.shape and np.allclose(found, wanted, rtol=1e-5, atol=1e-7)
    # Parts of wider arrays are written, and nothing beside them.
    for cut in (np.s_[..., 2:-1], np.s_[..., ::2]):
        whole = np.full((*x.shape[:-1], 2 * x.shape[-1] + 7) if x.ndim else (9,), 99, np.float32)
        out = whole[cut][..., : x.shape[-1]] if x.ndim else whole[2:3].reshape(())
        assert tw.gpu.softmax(x, axis=axis, out=out, **HERE) is out and np.allclose(out, wanted, rtol=1e-5, atol=1e-7)
        assert (whole == 99).sum() == whole.size - out.size
    if not x.ndim:
        return
    weight, bias = source.standard_normal((2, 2 * length), dtype=np.float32)[:, ::2]
    for given in [(), (weight,), (None, bias), (weight.copy(), bias)]:
        of = dict(zip(("weight", "bias"), given))
        scale, shift = of.get("weight"), of.get("bias")
        wanted = normal(x, axis, 1.0 if scale is None else wide(scale), 0.0 if shift is None else wide(shift))
        assert np.allclose(tw.gpu.layer_norm(x, *given, axis=axis, **HERE), wanted, rtol=1e-3, atol=1e-4)
    root = np.sqrt((wide(x) ** 2).mean(axis, keepdims=True) + 1e-5)
    assert np.allclose(tw.gpu.rms_norm(x, axis=axis, **HERE), wide(x) / root, rtol=1e-4, atol=1e-5)


def test_rows_that_overlap_are_not_written():
    x = np.zeros((3, 40), np.float32)
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(200, np.float32), (3, 40), (40, 4))
    with pytest.raises(ValueError, match="overlap"):
        tw.gpu.softmax(x, out=overlapping, **HERE)
    readonly = np.zeros((3, 40), np.float32)
    readonly.flags.writeable = False
    with pytest.raises(tw.KernelError, match="`y` is written, and the array may only be read"):
        tw.gpu.softmax(x, out=readonly, **HERE)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("axis", [0, -1, (0, -1), None], ids=str)
def test_reductions_of_any_array(view, axis):
    x = VIEWS[view](whole(np.random.default_rng(18), 3, 4, 40, dtype=np.float32))
    if not x.ndim and axis is not None:
        return
    axis = (0,) if axis == (0, -1) and x.ndim == 1 else axis
    for statistic in ("sum", "max"):
        wanted = getattr(x, statistic)(axis)
        found = tw.gpu.reduce(x, statistic, axis=axis, **HERE)
        assert found.shape == wanted.shape and np.array_equal(found, wanted)
        out = np.full((*wanted.shape, 2), 99, np.float32)
        tw.gpu.reduce(x, statistic, axis=axis, out=out[..., 0], **HERE)
        assert np.array_equal(out[..., 0], wanted) and (out[..., 1] == 99).all()
    if not isinstance(axis, tuple):
        assert np.array_equal(tw.gpu.reduce(x, "argmax", axis=axis, **HERE), x.argmax(axis))


def test_nan_is_the_greatest():
    x = np.random.default_rng(19).standard_normal((7, 5, 33), dtype=np.float32)
    x[1, 2, 7] = x[1, 2, 30] = x[3, :, 4] = x[5] = np.nan
    x[0, 1], x[0, 2, 3], x[2] = -np.inf, np.inf, -np.inf
    for dtype in (np.float32, np.float16, np.float64):
        y = x.astype(dtype)
        for axis in (0, 1, 2, None):
            assert np.array_equal(tw.gpu.reduce(y, "argmax", axis=axis, **HERE), y.argmax(axis))
            assert np.array_equal(tw.gpu.reduce(y, "max", axis=axis, **HERE), y.max(axis), equal_nan=True)
            assert np.array_equal(tw.reduce(y, "max") if axis is None else tw.reduce(y, "max", axis).numpy(), y.max(axis), equal_nan=True)
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(2, keepdims=True))
    assert np.allclose(tw.gpu.softmax(x, **HERE), powers / powers.sum(2, keepdims=True), rtol=1e-5, atol=1e-7, equal_nan=True)
    a = np.full((8, 16), np.nan, np.float16)
    b = np.ones((8, 16), np.float16)
    _, greatest = tw.gpu.gemm(np.concatenate([a, b]), b, keep="row max", **HERE)
    assert np.isnan(greatest[:8]).all() and (greatest[8:] == 16).all()
    assert np.isnan(tw.gpu.gemm(a, b, function="max(x, 0)", **HERE)).all()


def test_rules_for_nan_by_name():
    @tw.jit(x=tw.Input("f32", "64:1"), y=tw.Output("f32", "(64,4):(1,64)"), threads=64)
    def kernel(x, y):
        own = x.compose("(64,1):(1,0)")[tw.thread, None].load()
        for number, function in enumerate((tw.maximum, tw.minimum, tw.fmax, tw.fmin)):
            y[None, number].compose("(64,1):(1,0)")[tw.thread, None].store(function(own, 1.0))

    x = np.full(64, np.nan, np.float32)
    x[1] = 5
    y = np.zeros((4, 64), np.float32)
    kernel(x, y.T)
    assert np.isnan(y[:2, 0]).all() and (y[2:, 0] == 1).all() and y[:, 1].tolist() == [5, 1, 5, 1]

    @tw.tile(x=tw.Input("f32", "64:1"), y=tw.Output("f32", "64:1"), z=tw.Output("i32", "1:1"), grid=1)
    def tile(x, y, z):
        own = x.load((64,), (0,))
        y.store((0,), own.max(1.0))
        z.store((0,), own.argmax(0))

    y, z = np.zeros(64, np.float32), np.full(1, 9, np.int32)
    tile(x, y, z)
    assert np.isnan(y[0]) and y[1] == 5 and z[0] == 0


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (1, 3), (3, 1), None], ids=str)
def test_reductions(axis):
    x = whole(np.random.default_rng(6), 4, 5, 6, 8, dtype=np.float32)
    assert np.array_equal(tw.gpu.reduce(x, "sum", axis=axis, **HERE), x.sum(axis))
    assert np.array_equal(tw.gpu.reduce(x, "max", axis=axis, **HERE), x.max(axis))
    if not isinstance(axis, tuple) and axis is not None:
        assert np.array_equal(tw.gpu.reduce(x, "argmax", axis=axis, **HERE), x.argmax(axis))


def test_reductions_of_shares():
    x = whole(np.random.default_rng(7), 1 << 17, dtype=np.float32).reshape(256, 512)
    plan = tw.gpu.plan(tw.gpu.reduce, x, axis=None)
    assert len(plan.launches) == 1 and plan.workspaces[0][0] == "f32" and "the last block" in str(plan)
    assert tw.gpu.reduce(x, axis=None, **HERE) == x.sum()
    # What many shares leave is put together by a second launch.
    plan = tw.gpu.plan(tw.gpu.reduce, np.zeros((32768, 64), np.float32), axis=0)
    assert len(plan.launches) == 2 and plan.workspaces[0][0] == "f32" and "second launch" in str(plan)


def test_relayout():
    x = np.random.default_rng(8).standard_normal((5, 300), dtype=np.float32)
    turned = np.empty((300, 5), np.float16)
    assert tw.gpu.relayout(x.T, turned, **HERE) is turned and np.array_equal(turned, x.T.astype(np.float16))
    with pytest.raises(ValueError, match="shapes differ"):
        tw.gpu.relayout(x, turned, **HERE)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_copies_of_runs(dtype):
    """Elements that lie alike in both arrays are moved several at a time, as numbers of 64 bits."""
    x = np.random.default_rng(10).integers(0, 100, (6, 5, 64)).astype(dtype)
    y = np.zeros_like(x)
    assert np.array_equal(tw.gpu.relayout(x, y, **HERE), x)
    turned = np.zeros((5, 6, 64), dtype)
    assert np.array_equal(tw.gpu.relayout(x.transpose(1, 0, 2), turned, **HERE), x.transpose(1, 0, 2))
    launches = tw.gpu.plan(tw.gpu.relayout, x, y).launches
    assert x.itemsize == 8 or any(tensor[1] == "u64" for program, _ in launches for tensor in program.tensors)
    with pytest.raises(tw.KernelError, match="and the array has"):
        tw.gpu.interpret(launches[0][0], [x[:1], y], {}, {})


@pytest.mark.parametrize(
    ("sizes", "launches"),
    [((150, 144, 88), 1), ((64, 64, 2048), 2), ((61, 67, 71), 3), ((1, 8, 8), 1), ((8, 1, 16), None)],
    ids=str,
)
def test_products(sizes, launches):
    """Products by one launch, by blocks that share tiles and one that adds, and of what has to be moved first."""
    m, n, k = sizes
    source = np.random.default_rng(9)
    a, b = whole(source, m, k), whole(source, n, k)
    plan = tw.gpu.plan(tw.gpu.gemm, a, b)
    assert launches is None or len(plan.launches) == launches
    assert (len(plan.launches) > 1) == bool(plan.workspaces)
    # A keyword of the call that has the name of a parameter of `plan` belongs to the call.
    assert tw.gpu.plan(tw.gpu.gemm, a, b, function="max(x, 0)").launches
    assert np.array_equal(tw.gpu.gemm(a, b, **HERE), wide(a) @ wide(b).T)


def test_products_of_every_type():
    source = np.random.default_rng(10)
    types = {"float32": "float32", "bfloat16": "bfloat16", "int8": "int32", "float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}
    for name, result in types.items():
        dtype = getattr(ml_dtypes, name, None) or name
        a, b = whole(source, 40, 32, dtype=dtype), whole(source, 24, 32, dtype=dtype)
        c = tw.gpu.gemm(a, b, **HERE)
        c = c.numpy() if isinstance(c, tw.Tensor) else c
        assert str(c.dtype) == result and np.array_equal(wide(c), wide(a) @ wide(b).T), name
    exact = source.standard_normal((24, 32), dtype=np.float32)
    close = tw.gpu.gemm(exact, exact, tf32=True, **HERE)
    off = np.abs(close - exact @ exact.T)
    assert (off <= 2.0**-9 * (np.abs(exact) @ np.abs(exact).T)).all() and off.max() > 1e-5


def test_products_of_any_strides_and_batches():
    source = np.random.default_rng(11)
    a, b = whole(source, 150, 88), whole(source, 144, 88)
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
        for right in (b, np.asfortranarray(b)):
            assert np.array_equal(tw.gpu.gemm(left, right, **HERE), wide(a) @ wide(b).T)
    out = np.full((144, 150), np.nan, np.float32).T
    assert tw.gpu.gemm(a, b, out=out, **HERE) is out and np.array_equal(out, wide(a) @ wide(b).T)
    many, others = whole(source, 3, 40, 48), whole(source, 3, 56, 48)
    assert np.array_equal(tw.gpu.gemm(many, others, **HERE), wide(many) @ wide(others).transpose(0, 2, 1))
    # One B for all of a batch.
    shared = np.broadcast_to(others[0], others.shape)
    assert np.array_equal(tw.gpu.gemm(many, shared, **HERE), wide(many) @ wide(others[0]).T)


def test_functions_of_the_sums():
    source = np.random.default_rng(12)
    a, b = whole(source, 72, 40), whole(source, 56, 40)
    bias, column, residual = whole(source, 56), whole(source, 72, 1), whole(source, 72, 56)
    sums = wide(a) @ wide(b).T
    found = tw.gpu.gemm(a, b, function="max(x + bias, 0) - residual", bias=bias, residual=residual, **HERE)
    assert np.array_equal(found, np.maximum(sums + bias, 0) - residual)
    assert np.array_equal(tw.gpu.gemm(a, b, function="x + column", column=column, **HERE), sums + column)
    batch = whole(source, 2, 72, 40)
    found = tw.gpu.gemm(batch, np.stack([b, b]), function="x + bias", bias=bias, **HERE)
    assert np.array_equal(found, wide(batch) @ wide(b).T + bias)
    for refused, told in [
        (lambda: tw.gpu.gemm(a, b, bias=bias, **HERE), "function="),
        (lambda: tw.gpu.gemm(a, b, function="x + bias", bias=bias[:5], **HERE), "does not broadcast"),
        (lambda: tw.gpu.gemm(a, b, function="x + other", bias=bias, **HERE), "other"),
        (lambda: tw.gpu.gemm(a, b[:, 1:].copy(), **HERE), "same K and type"),
        (lambda: tw.gpu.gemm(a, b.astype(np.float32), **HERE), "same K and type"),
        (lambda: tw.gpu.gemm(a[0], b, **HERE), "batches"),
        (lambda: tw.gpu.gemm(a, b, out=np.empty((3, 4), np.float16), **HERE), "out is"),
    ]:
        with pytest.raises((TypeError, ValueError), match=told):
            refused()


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
def test_pairs_of_columns(pairs):
    source = np.random.default_rng(14)
    a, b, bias = whole(source, 72, 40), whole(source, 112, 40), whole(source, 56)
    sums = wide(a) @ wide(b).T
    first, second = (sums[:, :56], sums[:, 56:]) if pairs == "halves" else (sums[:, ::2], sums[:, 1::2])
    found = tw.gpu.gemm(a, b, pairs=pairs, function="max(x + bias, 0) - 2 * y", bias=bias, out=np.empty((72, 56), np.float32), **HERE)
    assert np.array_equal(found, np.maximum(first + bias, 0) - 2 * second)
    many = tw.gpu.gemm(np.stack([a, a]), np.stack([b, -b]), pairs=pairs, function="x - y", **HERE)
    assert np.array_equal(many, np.stack([first - second, second - first]))
    for refused, told in [
        (lambda: tw.gpu.gemm(a, b, pairs=pairs, **HERE), "both sums"),
        (lambda: tw.gpu.gemm(a, b[1:], pairs=pairs, function="x * y", **HERE), "no pairs"),
        (lambda: tw.gpu.gemm(a, b, pairs="thirds", function="x * y", **HERE), "thirds"),
    ]:
        with pytest.raises((TypeError, ValueError), match=told):
            refused()


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
@pytest.mark.parametrize("k", [2, 6, 7, 12, 18])
def test_pairs_of_any_alignment(pairs, k):
    """Operands whose rows begin at no multiples of 16 bytes are moved, several elements as one number."""
    source = np.random.default_rng(k)
    a, b = whole(source, 8, k), whole(source, 48, k)
    sums = wide(a) @ wide(b).T
    first, second = (sums[:, :24], sums[:, 24:]) if pairs == "halves" else (sums[:, ::2], sums[:, 1::2])
    found = tw.gpu.gemm(a, b, pairs=pairs, function="x - 2 * y", out=np.empty((8, 24), np.float32), **HERE)
    assert np.array_equal(found, first - 2 * second)


def test_what_is_kept_of_rows_and_columns():
    source = np.random.default_rng(15)
    a, b = whole(source, 150, 40), whole(source, 136, 40)
    sums = wide(a) @ wide(b).T
    c, greatest = tw.gpu.gemm(a, b, keep="row max abs(d)", **HERE)
    assert np.array_equal(c, sums) and greatest.dtype == np.float32 and np.array_equal(greatest, np.abs(sums).max(1))
    keep = ["column sum", "row sum d * d", "column max -d"]
    c, columns, squares, least = tw.gpu.gemm(a, b, function="max(x, 0)", keep=keep, **HERE)
    positive = np.maximum(sums, 0)
    assert np.array_equal(c, positive) and np.array_equal(columns, positive.sum(0))
    assert np.array_equal(squares, (positive**2).sum(1)) and np.array_equal(least, (-positive).max(0))
    many, others = whole(source, 2, 70, 24), whole(source, 2, 48, 24)
    out = np.full((2, 70, 48), np.nan, np.float32), np.full((2, 70), np.nan, np.float32), np.full((2, 48), np.nan, np.float32)
    assert tw.gpu.gemm(many, others, keep=("row sum", "column max"), out=out, **HERE) == out
    batch = wide(many) @ wide(others).transpose(0, 2, 1)
    assert all(map(np.array_equal, out, (batch, batch.sum(2), batch.max(1))))
    for refused, told in [
        (lambda: tw.gpu.gemm(a, b, keep="row mean", **HERE), "row mean"),
        (lambda: tw.gpu.gemm(a, b, keep="row sum", out=out[:1], **HERE), "1 tensors, and 2"),
        (lambda: tw.gpu.gemm(many, others, keep=["row sum"], out=(out[0], out[2]), **HERE), "its tensor"),
        (lambda: tw.gpu.gemm(a.astype(np.int8), b.astype(np.int8), keep="row sum", **HERE), "reduction"),
    ]:
        with pytest.raises((TypeError, ValueError), match=told):
            refused()


def test_block_scaled_formats():
    source = np.random.default_rng(17)
    e4m3, e5m2, e2m1, e8m0 = (getattr(ml_dtypes, name) for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"))
    for format, kind, scale, block in [
        ("mxf8_e4m3", e4m3, e8m0, 32), ("mxf8_e5m2", e5m2, e8m0, 32), ("mxf4", e2m1, e8m0, 32), ("nvf4", e2m1, e4m3, 16),
    ]:
        k = 192
        a, b = whole(source, 40, k, dtype=kind), whole(source, 24, k, dtype=kind)
        # Powers of two, and of 4 bits small numbers, so that sums are exact.
        powers = lambda rows: (2.0 ** source.integers(-2, 3, (rows, k // block))).astype(scale)  # noqa: E731, B023
        scales = powers(40), powers(24)
        spread = [np.repeat(wide(own), block, 1) for own in scales]
        wanted = (wide(a) * spread[0]) @ (wide(b) * spread[1]).T
        out = np.full((40, 24), np.nan, np.float32)
        assert tw.gpu.gemm(a, b, scales=scales, format=format, out=out, **HERE) is out
        assert np.array_equal(out, wanted), format
        # The same as bits; the result has 16 bits by default.
        bits = [own.view(np.uint8) for own in scales]
        found = tw.gpu.gemm(a, b, scales=bits, format=format, **HERE)
        assert np.array_equal(wide(found.numpy()), wanted.astype(ml_dtypes.bfloat16).astype(np.float64))
    for refused, told in [
        (lambda: tw.gpu.gemm(a, b, format="nvf4", **HERE), "scales of a and those of b"),
        (lambda: tw.gpu.gemm(a, b, scales=scales, format="nvf8", **HERE), "mxf8_e4m3"),
        (lambda: tw.gpu.gemm(a[:, 1:], b[:, 1:], scales=scales, format="nvf4", **HERE), "K is even"),
        (lambda: tw.gpu.gemm(a, b, scales=(scales[0], scales[0]), format="nvf4", **HERE), "24,12"),
        (lambda: tw.gpu.gemm(a.astype(np.float16), b.astype(np.float16), scales=scales, format="nvf4", **HERE), "u8"),
    ]:
        with pytest.raises((TypeError, ValueError), match=told):
            refused()


def test_scales_of_blocks():
    source = np.random.default_rng(16)
    kind = ml_dtypes.float8_e4m3fn
    a, b = whole(source, 150, 300, dtype=kind), whole(source, 136, 300, dtype=kind)
    # Powers of two, so that sums are exact.
    powers = lambda *shape: (2.0 ** source.integers(-2, 3, shape)).astype(np.float32)  # noqa: E731
    for of_a, of_b in [(powers(150, 3), powers(2, 3)), (powers(2, 3), powers(136, 3)), (np.asfortranarray(powers(150, 3)), powers(2, 3))]:
        every = [s if len(s) == len(m) else np.repeat(s, 128, 0)[: len(m)] for s, m in ((of_a, a), (of_b, b))]
        every = [np.repeat(s, 128, 1)[:, :300] for s in every]
        out = np.full((150, 136), np.nan, np.float32)
        assert tw.gpu.gemm(a, b, scales=(of_a, of_b), out=out, **HERE) is out
        assert np.array_equal(out, (wide(a) * every[0]) @ (wide(b) * every[1]).T)
    fast = tw.gpu.gemm(a, b, fast=True, **HERE)
    assert np.array_equal(wide(fast.numpy()), (wide(a) @ wide(b).T).astype(ml_dtypes.bfloat16).astype(np.float64))
    for refused, told in [
        (lambda: tw.gpu.gemm(a, b, scales=(of_a,), **HERE), "two tensors"),
        (lambda: tw.gpu.gemm(a, b, scales=(of_a, of_a), **HERE), "136"),
        (lambda: tw.gpu.gemm(a, b, scales=(of_a[0], of_b), **HERE), "each 128 steps"),
        (lambda: tw.gpu.gemm(wide(a).astype(np.float16), wide(b).astype(np.float16), scales=(of_a, of_b), **HERE), "scales"),
    ]:
        with pytest.raises((TypeError, ValueError), match=told):
            refused()


def test_tensors_of_the_package():
    source = np.random.default_rng(13)
    a, b = whole(source, 40, 32, dtype=ml_dtypes.bfloat16), whole(source, 24, 32, dtype=ml_dtypes.bfloat16)
    c = tw.gpu.gemm(tw.Tensor(a), tw.Tensor(b), **HERE)
    assert isinstance(c, tw.Tensor) and c.dtype == "bfloat16" and np.array_equal(wide(c.numpy()), wide(a) @ wide(b).T)


def test_plans():
    x = np.zeros((5, 300), np.float32)
    plan = tw.gpu.plan(tw.gpu.softmax, x)
    assert "softmax" in str(plan) and "softmax" in repr(plan)
    program, numbers = plan.launches[0]
    assert numbers == [0, 1] and ".entry softmax" in program.ptx()
    with pytest.raises(TypeError, match="plans no kernels"):
        tw.gpu.plan(tw.gpu.device_count)


def test_plans_are_for_the_device():
    """Long rows are held by clusters, and GEMM uses wgmma, on Hopper alone."""
    from tilewright import _native

    for target, cluster, row in [("sm_90a", True, 131072), ("sm_80", False, 32768)]:
        long = _native.plan_softmax((row, "bf16", 16, 4096, row, row), target)
        assert (".reqnctapercluster" in long.launches[0][0].ptx(target)) == cluster
        matrix = ("bf16", [256, 256, 1], [256, 1, 0], 0)
        product = _native.plan_product(matrix, matrix, matrix, PLAIN, target)
        assert ("wgmma" in product.launches[0][0].ptx(target)) == cluster
    # No block of an A100 holds such a row, so its plan reads it twice.
    twice = _native.plan_softmax((131072, "bf16", 16, 4096, 131072, 131072), "sm_80").launches[0][0]
    assert twice.shared_bytes <= 166912 and ".target sm_80" in twice.ptx("sm_80")
    batch = ("bf16", [256, 256, 2], [256, 1, 65536], 0)
    batched = _native.plan_product(batch, batch, batch, PLAIN, "sm_80").launches[0][0]
    assert "mma.sync" in batched.ptx("sm_80")
    with pytest.raises(ValueError, match="sm_1"):
        _native.plan_softmax((128, "f32", 16, 1, 128, 128), "sm_1")


def test_gemm_of_doubles():
    source = np.random.default_rng(31)
    a, b = source.integers(-(2**20), 2**20, (33, 37)).astype(np.float64), source.integers(-(2**20), 2**20, (19, 37)).astype(np.float64)
    found = tw.gpu.gemm(a, b, **HERE)
    assert found.dtype == np.float64 and np.array_equal(found, a @ b.T)
    assert np.array_equal(tw.gpu.gemm(np.asfortranarray(a), np.pad(b, ((0, 0), (0, 3)))[:, :37], function="x - c", c=found, **HERE), 0 * found)
    with pytest.raises(tw.LayoutError, match="exp"):
        tw.gpu.gemm(a, b, function="exp(x)", **HERE)


def packed(numbers, dtype):
    """Two integers of four bits in each byte, the first in the lower bits."""
    bits = numbers.astype(np.int64) & 15
    return (bits[:, ::2] | bits[:, 1::2] << 4).astype(np.uint8).view(dtype)


@pytest.mark.parametrize(("dtype", "least", "end"), [(np.int8, -8, 8), (np.uint8, 0, 16)])
def test_gemm_of_four_bits(dtype, least, end):
    source = np.random.default_rng(32)
    a, b = source.integers(least, end, (24, 74)), source.integers(least, end, (17, 74))
    found = tw.gpu.gemm(packed(a, dtype), packed(b, dtype), packed=True, **HERE)
    assert found.dtype == np.int32 and np.array_equal(found, a @ b.T)
    with pytest.raises(tw.LayoutError, match="i8 and u8"):
        tw.gpu.gemm(a.astype(np.float16), b.astype(np.float16), packed=True, **HERE)


@pytest.mark.parametrize("rows", [1, 40])
def test_gemm_of_weights_of_four_bits(rows):
    source = np.random.default_rng(33)
    x, weight = whole(source, rows, 256), source.integers(-7, 8, (24, 256)).astype(np.float16)
    weight[:, ::128] = 7
    words, scales = tw.ops.quantize_int4(weight)
    bias = whole(source, 24)
    found = tw.gpu.gemm(x, words, int4=scales, function="x + bias", bias=bias, **HERE)
    assert np.array_equal(found, (wide(x) @ wide(weight).T + bias).astype(np.float16))
    for wrong, words_of in [
        (lambda: tw.gpu.gemm(x, words, int4=scales[:1], **HERE), "E0"),
        (lambda: tw.gpu.gemm(x[:, :128], words, int4=scales, **HERE), "N,K/8"),
        (lambda: tw.gpu.gemm(x, words, int4=scales, packed=True, **HERE), "packed"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words_of):
            wrong()
