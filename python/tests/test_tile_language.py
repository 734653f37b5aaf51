# mypy: ignore-errors
"""Each operation of tile programs by its name in Python, on the interpreter beside NumPy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import tile

SOURCE = np.random.default_rng(7)
FLOATS = SOURCE.standard_normal((8, 16)).astype(np.float32)
OTHERS = SOURCE.standard_normal((8, 16)).astype(np.float32)
WHOLE = SOURCE.integers(-1000, 1000, (8, 16), dtype=np.int32)
SMALL = SOURCE.integers(0, 31, (8, 16), dtype=np.int32)
BITS = SOURCE.integers(-(2**31), 2**31, (8, 16), dtype=np.int32)


def computed(write, like, a, b=np.zeros(2, np.float32), blocks="1"):
    """What a program of one block makes of two arrays, each one tile."""

    def program(a, b, y):
        of_a, of_b = (own.load(shape, (0,) * len(shape)) for own, shape in ((a, shapes[0]), (b, shapes[1])))
        y.store((0,) * like.ndim, write(of_a, of_b))

    shapes = a.shape, b.shape
    y = np.zeros_like(like)
    specs = {"a": tw.Input(a.dtype.name), "b": tw.Input(b.dtype.name), "y": tw.Output(y.dtype.name)}
    kernel = tw.tile(program, grid=blocks, **specs)
    kernel(a, b, y)
    # The text that was written reads back as itself.
    text = kernel.text(a, b, y)
    assert tw._native.read_tiles(text, [("x", 1, 1, None)] * text.count("\n")).text == text
    return y


def agrees(write, wanted, a, b=np.zeros(2, np.float32), rtol=0.0):
    found = computed(write, wanted, a, b)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if rtol:
        assert np.allclose(found, wanted, rtol=rtol, atol=1e-6, equal_nan=True), (found, wanted)
    else:
        assert np.array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8)), (found, wanted)


@pytest.mark.parametrize(
    "name, numpy",
    [("exp", np.exp), ("exp2", np.exp2), ("tanh", np.tanh), ("log2", np.log2), ("sqrt", np.sqrt),
     ("rsqrt", lambda x: 1 / np.sqrt(x)), ("recip", lambda x: 1 / x), ("log", np.log), ("sin", np.sin), ("cos", np.cos)],
)  # fmt: skip
def test_functions_of_each_element(name, numpy):
    x = np.abs(FLOATS) + np.float32(0.01)
    wanted = numpy(x.astype(np.float64)).astype(np.float32)
    agrees(lambda a, b: getattr(a, name)(), wanted, x, rtol=1e-5)
    agrees(lambda a, b: getattr(tile, name)(a), wanted, x, rtol=1e-5)


def test_the_error_function():
    # The oracle is that of Python's own library.
    x = np.concatenate([np.linspace(-5, 5, 4093), [0.0, np.inf, -np.inf]]).astype(np.float32).reshape(8, 512)
    agrees(lambda a, b: a.erf(), np.vectorize(math.erf)(x).astype(np.float32), x, rtol=2.5e-7)


def test_whole_parts():
    x = (np.arange(128, dtype=np.float32) / 8 - 8).reshape(8, 16)
    for name, numpy in [("floor", np.floor), ("ceil", np.ceil), ("round", np.round)]:
        agrees(lambda a, b: getattr(a, name)(), numpy(x), x)


def test_quotients_of_integers():
    a, b = WHOLE.copy(), SMALL.copy()
    b[b == 0] = -3
    for write, wanted in [
        (lambda a, b: a // b, a // b),
        (lambda a, b: a % b, a % b),
        (lambda a, b: a // 7, a // 7),
        (lambda a, b: a % 7, a % 7),
        (lambda a, b: a // 8, a // 8),
        (lambda a, b: a % 8, a % 8),
        (lambda a, b: 100 // b, 100 // b),
        (lambda a, b: 100 % b, 100 % b),
        (lambda a, b: (a - a) // (b - b) + a % (b - b), a),
    ]:
        agrees(write, wanted.astype(np.int32), a, b)
    for write in (lambda a, b: a // b, lambda a, b: a % 2, lambda a, b: 2 // a):
        with pytest.raises(tw.KernelError, match="i32"):
            computed(write, FLOATS, FLOATS, OTHERS)


def test_conditions():
    a, b = FLOATS.copy(), OTHERS.copy()
    a[0, :4], b[0, 2:6], b[1] = np.nan, np.nan, a[1]
    for condition in [
        lambda a, b: (a < b) & (b < 0.5),
        lambda a, b: (a < b) | ~(b < 0.5),
        lambda a, b: ~((a == b) | (a != a)) & ((a < 0) | (b >= 0)),
        lambda a, b: (a < b) & ((b < 0.5) | (a == b)),
    ]:
        agrees(lambda a, b: tile.where(condition(a, b), a, 2.0), np.where(condition(a, b), a, np.float32(2)), a, b)
        agrees(lambda a, b: tile.where(condition(a, b).number(), a, 2.0), np.where(condition(a, b), a, np.float32(2)), a, b)
        agrees(lambda a, b: 3 * condition(a, b).number() + 1, (3 * condition(a, b) + 1).astype(np.int32), a, b)

    def doubled(a, b):
        same = a < b
        for _ in range(60):
            same = same & same
        return tile.where(same, 1.0, -1.0).broadcast((8, 16))

    agrees(doubled, np.where(a < b, 1, -1).astype(np.float32), a, b)


def test_signs():
    for x in (FLOATS, WHOLE):
        for write, wanted in [(lambda a, b: -a, -x), (lambda a, b: a.neg(), -x), (lambda a, b: abs(a), np.abs(x)), (lambda a, b: tile.abs(a), np.abs(x))]:
            agrees(write, wanted, x)


def test_arithmetic():
    for a, b in ((FLOATS, OTHERS), (WHOLE, SMALL)):
        for write, wanted in [
            (lambda a, b: a + b, a + b),
            (lambda a, b: a - b, a - b),
            (lambda a, b: a * b, a * b),
            (lambda a, b: 3 - a, 3 - a),
            (lambda a, b: 2 * a + 1, 2 * a + 1),
            (lambda a, b: a.min(b), np.minimum(a, b)),
            (lambda a, b: tile.max(0, a), np.maximum(0, a)),
            (lambda a, b: tile.max(a, b), np.maximum(a, b)),
        ]:
            agrees(write, wanted.astype(a.dtype), a, b)
    agrees(lambda a, b: a / b, FLOATS / OTHERS, FLOATS, OTHERS, rtol=1e-6)
    agrees(lambda a, b: 1 / a, 1 / FLOATS, FLOATS, rtol=1e-6)
    exact = (FLOATS.astype(np.float64) * OTHERS.astype(np.float64) + 0.5).astype(np.float32)
    agrees(lambda a, b: a.fma(b, 0.5), exact, FLOATS, OTHERS)


def test_bits():
    unsigned = BITS.view(np.uint32)
    for write, wanted in [
        (lambda a, b: a & b, BITS & WHOLE),
        (lambda a, b: a | b, BITS | WHOLE),
        (lambda a, b: a ^ b, BITS ^ WHOLE),
        (lambda a, b: 255 & a, 255 & BITS),
        (lambda a, b: a << 3, BITS << 3),
        (lambda a, b: a >> 3, BITS >> 3),
        (lambda a, b: a.lshr(3), (unsigned >> 3).view(np.int32)),
        (lambda a, b: 1 << (a & 15), np.int32(1) << (BITS & 15)),
        (lambda a, b: a.as_f32().as_i32(), BITS),
    ]:
        agrees(write, wanted, BITS, WHOLE)
    agrees(lambda a, b: a.as_i32(), FLOATS.view(np.int32), FLOATS)


def test_comparisons():
    a, b = FLOATS.copy(), OTHERS.copy()
    a[0, :4], b[0, 2:6], b[1] = np.nan, np.nan, a[1]
    for compare in [
        lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a == b, lambda a, b: a != b,
        lambda a, b: ~(a < b), lambda a, b: 0 < a, lambda a, b: a >= 0.5,
    ]:  # fmt: skip
        agrees(lambda a, b: tile.where(compare(a, b), 1.0, -1.0).broadcast((8, 16)), np.where(compare(a, b), 1.0, -1.0).astype(np.float32), a, b)
    agrees(lambda a, b: tile.where(a < 0, 0, a), np.maximum(0, WHOLE), WHOLE)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int8", "uint8"])
def test_conversions(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = (np.abs(FLOATS) if name == "uint8" else FLOATS) * 20
    agrees(lambda a, b: a.to(name), x.astype(dtype), x)
    agrees(lambda a, b: a.to("f32"), x.astype(dtype).astype(np.float32), x.astype(dtype))


def test_numbers_of_four_bits():
    words = BITS[:2]
    nibbles = np.stack([(words >> 4 * place) & 15 for place in range(8)], axis=1).reshape(16, 16)
    signed = np.where(nibbles < 8, nibbles, nibbles - 16)
    agrees(lambda a, b: a.unpack_u4("i32"), nibbles.astype(np.int32), words)
    agrees(lambda a, b: a.unpack_i4("i32"), signed.astype(np.int32), words)
    agrees(lambda a, b: a.unpack_i4("bf16"), signed.astype(ml_dtypes.bfloat16), words)


def philox(counter, seed):
    """The four words of Philox4x32-10, as its authors' paper has it."""
    state, key = [counter, 0, 0, 0], [seed, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * state[0], 0xCD9E8D57 * state[2]
        state = [b >> 32 ^ state[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ state[3] ^ key[1], a & 0xFFFFFFFF]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return state


@pytest.mark.parametrize("word", range(4))
def test_random_bits(word):
    # The first of the known answers that the authors publish.
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    counters = np.arange(128, dtype=np.int32).reshape(8, 16)
    for seed in (0, 12345, -1):
        wanted = np.vectorize(lambda at: philox(int(at), seed & 0xFFFFFFFF)[word])(counters).astype(np.uint32).view(np.int32)
        agrees(lambda a, b: a.random(seed, word), wanted, counters)
    agrees(lambda a, b: tile.random(tile.arange((8, 16), 0), 5, word), computed(lambda a, b: a.random(5, word), counters, counters // 16), counters)


def test_reductions_and_scans():
    for name, numpy, start in [("sum", np.add, 0), ("product", np.multiply, 1), ("min", np.minimum, np.inf), ("max", np.maximum, -np.inf)]:
        # Whole numbers, so that sums and products are the same in every order.
        x = SOURCE.integers(1, 3, (8, 16)).astype(np.float32)
        agrees(lambda a, b: getattr(a, f"reduce_{name}")(1), numpy.reduce(x, 1, keepdims=True), x)
        agrees(lambda a, b: getattr(tile, f"reduce_{name}")(a, 0, 1), numpy.reduce(x, (0, 1), keepdims=True), x)
        for mode in (0, 1):
            upto = numpy.accumulate(x, mode)
            agrees(lambda a, b: getattr(a, f"scan_{name}")(mode), upto, x)
            before = np.moveaxis(np.full_like(upto, start), mode, 0)
            before[1:] = np.moveaxis(upto, mode, 0)[:-1]
            agrees(lambda a, b: getattr(a, f"scan_before_{name}")(mode), np.moveaxis(before, 0, mode), x)


def test_searches():
    for mode in (0, 1):
        agrees(lambda a, b: a.argmax(mode), np.argmax(WHOLE, mode, keepdims=True).astype(np.int32), WHOLE)
    down = -np.sort(-FLOATS, 1)
    for count in (1, 4, 16):
        agrees(lambda a, b: a.top(1, count), down[:, :count], FLOATS)
    agrees(lambda a, b: a.top(0, 8), -np.sort(-WHOLE, 0), WHOLE)
    for mode in (0, 1):
        agrees(lambda a, b: a.argmin(mode), np.argmin(SMALL, mode, keepdims=True).astype(np.int32), SMALL)
        # A stable sort of the negated numbers: of equal ones the first comes first.
        order = np.argsort(-SMALL, mode, kind="stable").astype(np.int32)
        agrees(lambda a, b: a.top_places(mode, 4), np.ascontiguousarray(np.take(order, range(4), mode)), SMALL)
    agrees(lambda a, b: a.histogram(32), np.bincount(SMALL.reshape(-1), minlength=32).astype(np.int32), SMALL)


def test_shapes():
    agrees(lambda a, b: a.transpose((1, 0)), FLOATS.T.copy(), FLOATS)
    # The first mode is fastest.
    agrees(lambda a, b: a.reshape((4, 2, 16)), FLOATS.reshape((4, 2, 16), order="F").copy(), FLOATS)
    agrees(lambda a, b: a.broadcast((8, 16)), np.broadcast_to(FLOATS[:1], (8, 16)).copy(), FLOATS[:1].copy())
    agrees(lambda a, b: a + b, FLOATS[:1] + FLOATS[:, :1], FLOATS[:1].copy(), FLOATS[:, :1].copy())
    agrees(lambda a, b: a.held("(32,4):(4,1)"), FLOATS, FLOATS)
    agrees(lambda a, b: a.held(tw.Layout((32, 4), (4, 1))), FLOATS, FLOATS)


def test_numbers():
    wanted = np.arange(16, dtype=np.int32).reshape(1, 16).repeat(8, 0)
    agrees(lambda a, b: tile.arange((8, 16), 1), wanted, FLOATS)
    agrees(lambda a, b: tile.full((8, 16), -3, "i32"), np.full((8, 16), -3, np.int32), FLOATS)
    agrees(lambda a, b: tile.full((8, 16), float("-inf")), np.full((8, 16), -np.inf, np.float32), FLOATS)
    agrees(lambda a, b: a + tile.block.x * 5 - tile.index(2), WHOLE - 2, WHOLE)

    @tw.tile(grid="ceil(M/4)")
    def masked(x: tw.Input("f32", "M:1"), y: tw.Output("f32", "M:1")):
        rows = tile.block.x * 4 + tile.arange((4,), 0)
        last = rows == tile.size("M") - 1
        y.store((tile.block.x,), tile.where(last, -1.0, x.load((4,), (tile.block.x,)) + rows.to("f32")))

    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    masked(x, y)
    assert y.tolist() == [*range(0, 18, 2), -1]


def test_rows_by_their_numbers():
    @tw.tile(grid="ceil(R/4)")
    def taken(
        x: tw.Input("f32", "(M,16):(16,1)"),
        rows: tw.Input("i32", "(R,1):(1,1)"),
        y: tw.Output("f32", "(R,16):(16,1)"),
        z: tw.InOut("f32", "(M,16):(16,1)"),
    ):
        at = rows.load((4, 1), (tile.block.x, 0), other=-1)
        found = x.load((4, 16), (at, 0), other=7.0)
        y.store((tile.block.x, 0), found)
        z.store((at, 0), 2 * found)

    rows = np.array([[5], [0], [-1], [3], [9], [7]], np.int32)
    y, z = np.zeros((6, 16), np.float32), OTHERS.copy()
    taken(FLOATS, rows, y, z)
    wanted, there = OTHERS.copy(), [5, 0, 3, 7]
    wanted[there] = 2 * FLOATS[there]
    assert np.array_equal(y[[0, 1, 3, 5]], FLOATS[there]) and (y[[2, 4]] == 7).all()
    assert np.array_equal(z, wanted)

    # Columns by their numbers.
    picked = np.array([[3, 3, 0, 15]], np.int32)
    agrees_columns = np.zeros((8, 4), np.float32)

    @tw.tile(grid="1")
    def columns(x: tw.Input("f32"), at: tw.Input("i32"), y: tw.Output("f32")):
        y.store((0, 0), x.load((8, 4), (0, at.load((1, 4), (0, 0)))))

    columns(FLOATS, picked, agrees_columns)
    assert np.array_equal(agrees_columns, FLOATS[:, picked[0]])


def test_indivisible_changes():
    @tw.tile(grid="ceil(N/32)")
    def counted(
        x: tw.Input("i32", "N:1"),
        counts: tw.InOut("i32", "16:1"),
        least: tw.InOut("i32", "1:1"),
        greatest: tw.InOut("i32", "1:1"),
        sums: tw.InOut("f32", "16:1"),
    ):
        own = x.load((32,), (tile.block.x,), other=-1)
        counts.atomic_add((0,), own.histogram(16))
        least.atomic_min((0,), tile.where(own < 0, 99, own).reduce_min(0))
        greatest.atomic_max((0,), own.reduce_max(0))
        # To the place that each number says.
        sums.atomic_add((own,), own.to("f32") * 0.5)

    x = SOURCE.integers(1, 15, 1000, dtype=np.int32)
    counts, sums = np.full(16, 3, np.int32), np.ones(16, np.float32)
    least, greatest = np.full(1, 50, np.int32), np.full(1, 2, np.int32)
    counted(x, counts, least, greatest, sums)
    wanted = np.bincount(x, minlength=16)
    assert np.array_equal(counts, wanted + 3) and np.array_equal(sums, 1 + wanted * np.arange(16) / 2)
    assert (least[0], greatest[0]) == (x.min(), max(2, x.max()))


def test_products():
    a, b = (SOURCE.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 16), (16, 32)))
    wanted = a.astype(np.float32) @ b.astype(np.float32) + 1
    agrees(lambda a, b: a.dot(b, tile.full((32, 32), 1.0)), wanted, a, b)
    agrees(lambda a, b: tile.dot(a, b, tile.full((32, 32), 1.0)), wanted, a, b)

    @tw.tile(grid="1")
    def staged(a: tw.Input("f16"), b: tw.Input("f16"), c: tw.Output("f32")):
        left, right = a.stage((64, 64), (0, 0), (0, 1)), b.stage((64, 64), (0, 0), (0, 1))
        c.store((0, 0), tile.dot(left, right, tile.full((64, 64), 1.0)))

    a, b = (SOURCE.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    staged(a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + 1)


def test_what_goes_on_may_be_changed_by_every_operator():
    @tw.tile(grid="1")
    def turned(x: tw.Input("i32", "(4,8):(8,1)"), y: tw.Output("i32", "8:1")):
        own = [tile.carry(tile.full((8,), start, "i32")) for start in (0, -1, 0, 1, 1 << 30)]
        for k in tile.range(4, *own):
            row = x.load((1, 8), (k, 0)).reshape((8,))
            own[0] |= row
            own[1] &= row
            own[2] ^= row
            own[3] <<= 1
            own[4] >>= k + 1 - k
        y.store((0,), own[0] + own[1] + own[2] + own[3] + own[4])

    x, y = SMALL[:4, :8].copy(), np.zeros(8, np.int32)
    turned(x, y)
    both = [function.reduce(x, 0) for function in (np.bitwise_or, np.bitwise_and, np.bitwise_xor)]
    assert np.array_equal(y, sum(both) + 16 + (1 << 26))


def test_what_the_language_refuses():
    def of(write, **specs):
        def program(x, y):
            y.store((0,), write(x))

        return tw.tile(program, grid="1", x=tw.Input("f32", "8:1"), y=tw.Output("f32", "8:1"), **specs)

    for write, code in [
        (lambda x: x.load((8,), (0,)) & 1, "E1202"),
        (lambda x: x.load((8,), (0,)).random(1, 4), ""),
        (lambda x: x.load((8,), (0,)).top(0, 16), ""),
        (lambda x: x.load((8,), (0,)).unpack_i4("bf16"), "E1202"),
    ]:
        with pytest.raises(tw.KernelError) as refused:
            of(write).program()
        assert refused.value.code.startswith(code or "E12"), refused.value
        assert refused.value.filename == __file__
    for write, told in [
        (lambda x: x.load((8,), (0,)).unpack_i4("i3"), "i3"),
        (lambda x: tile.where(True, 1.0, 2.0), "a < b"),
        (lambda x: tile.where(x.load((8,), (0,)) != 0, 1.0, 2.0) and 1, "tw.tile.where"),
    ]:
        with pytest.raises((TypeError, ValueError), match=told):
            of(write).program()

    @tw.tile(grid="1")
    def adds(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        y.atomic_add((0,), x.load((8,), (0,)))

    with pytest.raises(tw.KernelError, match="combined"):
        adds.program()
    with pytest.raises(TypeError, match="numbers of f32, i32, f64 and i64"):
        tw.tile(lambda x, n: None, x=tw.Input("f32", "8:1"), n=tw.Scalar("bf16"))


def test_tiles_that_begin_at_elements():
    @tw.tile(grid="ceil(N/32)")
    def smooth(x: tw.Input("f32", "N:1"), y: tw.Output("f32", "N:1")):
        first = tile.block.x * 32
        total = x.load((32,), (tile.elements(first - 3),)) + x.load((32,), (tile.elements(first + 5),))
        y.store((tile.elements(first),), total)

    x = np.arange(75, dtype=np.float32)
    y = np.zeros_like(x)
    smooth(x, y)
    wide = np.pad(x, 8)
    assert np.array_equal(y, wide[5:80] + wide[13:88])


def test_numbers_of_the_launch():
    @tw.tile(grid="ceil(N/32)")
    def scaled(x: tw.Input("f32", "N:1"), y: tw.Output("f32", "N:1"), scale: tw.Scalar("f32"), n: tw.Scalar("i32")):
        place = tile.block.x * 32 + tile.arange((32,), 0)
        total = tile.carry(x.load((32,), (tile.block.x,)))
        for _ in tile.range(n, total):
            total *= scale
        y.store((tile.block.x,), tile.where(place < 10 * n, total, 0))

    x = np.arange(70, dtype=np.float32)
    for scale, n in ((0.5, 3), (-2.0, 0), (1.25, 6)):
        y = np.zeros_like(x)
        scaled(x, y, scale, n)
        assert np.array_equal(y, np.where(np.arange(70) < 10 * n, x * np.float32(scale) ** n, 0).astype(np.float32))
        assert scaled.check(x, y, scale, n).outputs[0].compared == 70
    assert scaled.check(N=40).outputs[0].compared == 40


def one_row(write, **named):
    """A program of one row of eight."""

    @tw.tile(**{"grid": "1"} | named)
    def program(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        y.store((0,), write(x.load((8,), (0,))))

    return program


def test_names_of_other_libraries_say_what_to_write():
    for write, raised, told in [
        (lambda a: a.sum(0), AttributeError, r"a\.reduce_sum"),
        (lambda a: a.reshape(a.shape), AttributeError, "reshaped with"),
        (lambda a: a @ a, TypeError, r"tw\.tile\.dot"),
        (lambda a: a**2, TypeError, r"a \* a"),
        (lambda a: math.sqrt(a), TypeError, "no value while it is traced"),
        (lambda a: list(a), TypeError, "all elements at once"),
        (lambda a: a[0], TypeError, "no parts"),
        (lambda a: a + np.ones(8), TypeError, "ndarray is nothing"),
    ]:
        with pytest.raises(raised, match=told):
            one_row(write).program()
    # What they say computes what is meant.
    x = np.linspace(0.5, 4, 8, dtype=np.float32)
    for write, wanted in [
        (lambda a: a.log2() * 0.6931471805599453, np.log(x)),
        (lambda a: (a.log2() * 3.0).exp2(), x**3),
        (lambda a: (a - 2.0).max(0.0), np.maximum(x - 2, 0)),
        (lambda a: (1.0 + (-a).exp()).recip(), 1 / (1 + np.exp(-x))),
    ]:
        y = np.empty_like(x)
        one_row(write)(x, y)
        assert np.allclose(y, wanted, rtol=1e-5), (y, wanted)


def test_what_is_refused_shows_lines_of_python_alone():
    @tw.tile(grid="1")
    def nothing(x: tw.Input("f32", "8:1"), y: tw.Output("f32", "8:1")):
        pass

    for program, code in ((nothing, "E1205"), (one_row(lambda a: a, grid="ceil(8/"), "E0122")):
        with pytest.raises(tw.KernelError) as refused:
            program.program()
        assert refused.value.code == code and refused.value.filename == __file__
        assert ".rs" not in str(refused.value) and "def " in str(refused.value)


def test_names_are_listed():
    listed = dir(tile)
    assert {"block", "range", "carry", "where", "full", "top", "histogram", "unpack_i4", "scan_before_max", "lshr"} <= set(listed)
    assert all(callable(getattr(tile, name)) for name in listed if not name.startswith("_") and name != "block")
