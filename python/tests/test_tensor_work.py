"""What is computed with tensors: relayouts, reductions, products and functions, beside NumPy."""

from __future__ import annotations

import itertools
import random
import signal
import threading
from typing import Any

import numpy as np
import pytest
from elements import DTYPES, elements, filled, offsets

import tilewright as tw

LAYOUTS = [
    "(8,16):(16,1)", "(8,16):(1,8)", "((2,4),(4,4)):((1,32),(2,8))", "S<2,1,3> o 0 o (8,16):(16,1)", "(8,16):(20,1)",
    "(8,16):(-16,-1)", "S<3,0,3> o 0 o ((4,2),16):((1,64),4)", "(8,16):(^1,^9)",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_relayouts_between_any_two_layouts(dtype: str) -> None:
    for source, target in itertools.product(LAYOUTS, LAYOUTS):
        src = tw.zeros(tw.Layout(source), dtype)
        for index in range(128):
            src[index] = index
        dst = src.relayout(tw.Layout(target))
        assert elements(dst) == list(range(128)), (source, target)
        back = tw.zeros(tw.Layout(source), dtype)
        tw.copy(dst, back, threads=2)
        assert elements(back) == list(range(128))


def test_conversions_are_those_of_numpy() -> None:
    numbers = np.array([0.0, -0.5, 1.5, 2.5, 3.7, -1e-8, 65519.0, 65521.0, 1e30, np.inf, -np.inf, np.nan, 200.0, -3.2])
    for source, target in itertools.product(["float64", "float32", "float16"], repeat=2):
        with np.errstate(over="ignore"):
            a = numbers.astype(source)
            wanted = a.astype(target)
        found = tw.Tensor(a).relayout(dtype=target).numpy()
        assert found.dtype == target and np.array_equal(found, wanted, equal_nan=True)
    whole = np.arange(-128, 128).astype("int8")
    assert (tw.Tensor(whole).relayout(dtype="float32").numpy() == whole).all()
    clipped = tw.Tensor(np.array([1e10, -1e10, np.nan, 2.9, -2.9])).relayout(dtype="int32")
    assert elements(clipped) == [2**31 - 1, -(2**31), 0, 2, -2]
    with pytest.raises(TypeError, match="float32"):
        tw.Tensor(whole).relayout(dtype="bool")
    # Written one by one, bfloat16 rounds to even.
    brief = tw.zeros(3, "bf16")
    for at, number in enumerate([1 + 2**-8, 1 + 3 * 2**-8, float("inf")]):
        brief[at] = number
    assert elements(brief) == [1.0, 1 + 2**-6, float("inf")]


def test_eight_bits() -> None:
    eight = tw.Tensor(np.arange(256, dtype="uint8"))
    for name, bias, bits in [("e4m3", 7, 3), ("e5m2", 15, 2)]:
        t = tw.zeros(256, name)
        np.asarray(t).view("uint8")[:] = eight.numpy()
        for code in range(128):
            exponent, mantissa = code >> bits, code & ((1 << bits) - 1)
            value = mantissa * 2.0 ** (1 - bias - bits)
            if exponent:
                value = (1 + mantissa / 2.0**bits) * 2.0 ** (exponent - bias)
            if name == "e4m3" and code == 127 or name == "e5m2" and code > 124:
                assert t[code] != t[code] and t[code + 128] != t[code + 128]
                continue
            if name == "e5m2" and code == 124:
                assert t[code] == float("inf") and t[code + 128] == -float("inf")
                t[code] = float("inf")  # the greatest number, as on devices
                assert t[code] == 57344
                continue
            assert t[code] == value and t[code + 128] == -value
            t[code] = value
            assert np.asarray(t).view("uint8")[code] == code


def test_reductions_are_those_of_numpy() -> None:
    rng = random.Random(2)
    for dtype in [name for name in DTYPES if name not in ("bool", "complex64", "complex128")]:
        a = filled((6, 5, 8), dtype)
        t = tw.Tensor(a)
        several: list[Any] = [0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2), -1]
        for modes in several:
            assert (t.sum(mode=modes).numpy() == a.sum(axis=modes, dtype="float64")).all()
            assert (t.max(mode=modes).numpy() == a.max(axis=modes)).all() and t.max(mode=modes).dtype == dtype
            assert (t.min(mode=modes).numpy() == a.min(axis=modes)).all()
        assert t.sum() == int(a.sum(dtype="int64")) and t.max() == a.max() and t.min() == a.min()
        layout = tw.Layout(rng.choice(LAYOUTS))
        held = tw.zeros(layout, dtype)
        for index in range(128):
            held[index] = index % 100
        assert held.sum() == sum(index % 100 for index in range(128)) and held.max() == 99
    nan = tw.Tensor(np.array([1.0, np.nan, 3.0]))
    assert nan.max() != nan.max() and nan.min() != nan.min()
    with pytest.raises(TypeError, match="not reduced"):
        tw.zeros(4, "complex64").sum()
    with pytest.raises(ValueError, match="no mode 4"):
        tw.zeros((2, 2)).sum(mode=4)


def test_products_are_those_of_numpy() -> None:
    for dtype, sums in [("float32", "float32"), ("float64", "float64"), ("float16", "float32"), ("int8", "int32")]:
        a, b = filled((37, 21), dtype, 1) % 7, filled((45, 21), dtype, 2) % 7
        wanted = a.astype("float64") @ b.astype("float64").T
        for left, right in itertools.product([a, np.asfortranarray(a)], [b, np.asfortranarray(b)]):
            c = tw.gemm(tw.Tensor(left), tw.Tensor(right), threads=2)
            assert c.dtype == sums and (c.numpy() == wanted).all()
        c = tw.zeros(tw.Layout((37, 45)), sums)
        c.fill(2)
        assert tw.gemm(tw.Tensor(a), tw.Tensor(b), c, alpha=2, beta=3) is c and (c.numpy() == 2 * wanted + 6).all()
    one = tw.zeros((4, 4))
    refused: list[tuple[Any, type[Exception]]] = [
        (lambda: tw.gemm(one, tw.zeros((4, 5))), tw.LayoutError),
        (lambda: tw.gemm(one, tw.zeros((4, 4), "float64")), TypeError),
        (lambda: tw.gemm(one, one, one), ValueError),
        (lambda: tw.gemm(one, one, tw.zeros((4, 4), "float64")), TypeError),
        (lambda: tw.gemm(one, one, tw.zeros((4, 5))), tw.LayoutError),
        (lambda: tw.gemm(tw.zeros(4), one), ValueError),
        (lambda: tw.gemm(one, one, beta=1), TypeError),
        (lambda: tw.gemm(tw.zeros((2, 2), "int8"), tw.zeros((2, 2), "int8"), alpha=0.5), ValueError),
    ]
    for call, kind in refused:
        with pytest.raises(kind):
            call()


def test_functions_of_blocks() -> None:
    a, b = filled((300, 400), "float64", 1), filled((300, 400), "float64", 2)
    found = tw.transform(lambda x, y: np.maximum(x, y) + 1, a, b.T.copy().T)
    assert (found.numpy() == np.maximum(a, b) + 1).all()
    swizzled = tw.Tensor(filled((8, 16), "float64")).relayout("S<2,1,3> o 0 o (8,16):(16,1)")
    out = tw.zeros("(8,16):(1,8)", "float64")
    assert tw.transform(np.sqrt, swizzled, out=out) is out
    assert elements(out) == [np.sqrt(x) for x in elements(swizzled)]
    back = tw.zeros(swizzled.layout, "float64")
    tw.transform(np.square, out, out=back)
    assert np.allclose(elements(back), elements(swizzled))
    with pytest.raises(ValueError, match="sizes"):
        tw.transform(np.add, a, a.T)
    with pytest.raises(ZeroDivisionError):
        tw.transform(lambda x: 1 // 0, a)
    with pytest.raises(TypeError):
        tw.transform(np.add)
    # What is made of a block is a number for each of its elements, or one for all.
    assert (tw.transform(lambda x: 0.0, a).numpy() == 0).all()
    with pytest.raises(ValueError, match=r"an array of \(1, 400\) for a block of"):
        tw.transform(lambda x: x[:1], a)


def test_arrays_where_tensors_are_wanted() -> None:
    a = np.ones((4, 6))
    for call in (lambda: tw.gemm(a, a), lambda: tw.gemm(tw.Tensor(a), a), lambda: tw.copy(tw.Tensor(a), a)):
        with pytest.raises(TypeError, match=r"takes tensors, not ndarray: write Tensor\(array\)"):
            call()


def test_functions_of_arrays() -> None:
    a = np.arange(24, dtype=np.int32).reshape(4, 6)
    swizzled = tw.relayout(a.astype(np.float32), "S<1,0,2> o 0 o (4,6):(6,1)", "float16")
    assert swizzled.dtype == "float16" and swizzled[3, 5] == a[3, 5]
    for statistic, whole in (("sum", a.sum()), ("max", a.max()), ("min", a.min())):
        assert tw.reduce(a, statistic) == tw.reduce(tw.Tensor(a), statistic) == whole
        wanted = getattr(np, statistic)(a, axis=1)
        assert (tw.reduce(a, statistic, 1).numpy() == wanted).all()
    with pytest.raises(ValueError, match="'sum', 'max' or 'min', not 'mean'"):
        tw.reduce(a, "mean")


def test_copies_within_one_memory_read_first() -> None:
    a = np.arange(16.0).reshape(4, 4)
    t = tw.Tensor(a)
    tw.copy(t, tw.Tensor(a.T))
    assert (a == np.arange(16.0).reshape(4, 4).T).all()
    b = np.arange(10)
    tw.copy(tw.Tensor(b[:-1]), tw.Tensor(b[1:]))
    assert b.tolist() == [0, *range(9)]
    t[None, 0] = t[None, 1]
    assert (a[:, 0] == a[:, 1]).all()


def test_long_work_is_done_in_parts() -> None:
    a = tw.Tensor(np.arange(1 << 13, dtype="uint16").astype("uint8")[:, None] + np.zeros(1 << 14, "uint8"))
    told: list[tuple[int, int]] = []
    dst = a.relayout("(8192,16384):(1,8192)", progress=lambda done, total: told.append((done, total)))
    assert len(told) > 1 and told == sorted(told) and told[-1] == (1 << 27, 1 << 27)
    assert (dst.numpy() == a.numpy()).all()

    # A second thread, and the same one in between, are refused what is at work.
    def within(done: int, total: int) -> None:
        caught: list[Exception] = []

        def write() -> None:
            try:
                dst.fill(0)
            except RuntimeError as error:
                caught.append(error)

        other = threading.Thread(target=write)
        other.start()
        other.join()
        assert len(caught) == 1 and "another thread" in str(caught[0])
        assert a[0, 0] == 0  # which is read by both
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        tw.copy(a, dst, progress=within)
    dst.fill(1)  # nobody is at work any more
    # A process that a shell started in the background ignores ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tw.copy(a, dst, progress=lambda done, total: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_two_threads_at_once() -> None:
    numbers = [filled((64, 64), "float32", seed) for seed in range(4)]
    wrong: list[Any] = []

    def work(a: Any) -> None:
        for _ in range(50):
            t = tw.Tensor(a)
            if not (t.relayout("(64,64):(1,64)").numpy() == a).all() or t.sum() != a.sum():
                wrong.append(a)
            if not (tw.gemm(t, t).numpy() == a @ a.T).all():
                wrong.append(a)

    threads = [threading.Thread(target=work, args=(a,)) for a in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_random_work_leaves_other_memory_alone() -> None:
    rng = random.Random(3)
    memory = np.full(4096, 9, "int16")
    guarded = memory.copy()
    for _ in range(300):
        extents = [rng.randint(1, 6) for _ in range(rng.randint(1, 3))]
        strides = [rng.randint(-40, 40) for _ in extents]
        layout = tw.Layout(tuple(extents), tuple(strides))
        least = sum(min(0, (extent - 1) * stride) for extent, stride in zip(extents, strides))
        greatest = sum(max(0, (extent - 1) * stride) for extent, stride in zip(extents, strides))
        base = rng.randint(-least, 4095 - greatest)
        try:
            tensor = tw.Tensor(memory[base + least : base + greatest + 1][-least:] if least else memory[base:], layout)
        except ValueError:
            assert least < 0  # the memory begins where the slice does
            continue
        places = [base + offset for offset in offsets(layout)]
        value = rng.randint(-99, 99)
        try:
            tensor.fill(value)
        except tw.LayoutError:
            assert len(set(places)) < len(places)
            continue
        guarded[places] = value
        assert (memory == guarded).all()
