"""Tensors beside NumPy, which counts their elements by itself."""

from __future__ import annotations

import array
import copy
import gc
import itertools
import pickle
import random
import signal
import threading
import weakref
from typing import Any, Callable

import numpy as np
import pytest

import tilewright as tw

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def filled(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """An array of small whole numbers."""
    numbers = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, shape)
    return numbers.astype(dtype)


def elements(tensor: tw.Tensor) -> list[Any]:
    """The elements in the order of the indices."""
    return [tensor[index] for index in range(tensor.size())]


def offsets(layout: tw.Layout) -> list[int]:
    return [layout(index) for index in range(layout.size())]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_seen_where_they_lie(dtype: str) -> None:
    a = filled((4, 6), dtype)
    for view in [a, a.T, a[1:, ::2], a[::-1], a[:, 3], np.asfortranarray(a), a[2, 1:2], a.reshape(2, 2, 6)[:, ::-1]]:
        t = tw.Tensor(view)
        assert t.dtype == dtype and not t.readonly and t.device == "cpu"
        for place in itertools.product(*(range(extent) for extent in view.shape)):
            assert t[place] == view[place]
        assert (t.numpy() == view).all() and t.data_ptr == view.ctypes.data
    t = tw.Tensor(a)
    t[1, 2] = 1
    assert a[1, 2] == 1
    t.numpy()[1, 2] = 0
    assert t[1, 2] == 0


def test_what_may_not_be_written_is_not() -> None:
    a = np.arange(6.0).reshape(2, 3)
    a.setflags(write=False)
    t = tw.Tensor(a)
    assert t.readonly and not t.numpy().flags.writeable
    writes: list[Callable[[], None]] = [
        lambda: t.fill(1),
        lambda: tw.copy(tw.zeros((2, 3), "float64"), t),
        lambda: t.__setitem__((0, 0), 1),
    ]
    for write in writes:
        with pytest.raises(ValueError, match="read only"):
            write()
    assert tw.Tensor(b"abc")[1] == ord("b") and tw.Tensor(b"abc").readonly
    assert elements(tw.Tensor(array.array("d", [1.5, 2.5]))) == [1.5, 2.5]
    # One element at many coordinates may be read.
    many = tw.Tensor(np.broadcast_to(np.array([7]), (3, 4)))
    assert set(elements(many)) == {7} and many.stride == (0, 0)
    with pytest.raises(ValueError, match="read only|reaches offset"):
        many.fill(1)
    twice = tw.Tensor(np.arange(4), tw.Layout((2, 3), (1, 1)))
    with pytest.raises(tw.LayoutError) as refused:
        twice.fill(1)
    assert refused.value.code == "E0402" and "# E0402" in tw.explain(refused.value)


def test_memory_lives_as_long_as_one_of_its_tensors() -> None:
    class Array(np.ndarray[Any, Any]):
        pass

    a = np.arange(12.0).reshape(3, 4).view(Array)
    gone = weakref.ref(a)
    column = tw.Tensor(a)[None, 1]
    seen = column.numpy()
    lent = np.from_dlpack(column)
    del a, column
    gc.collect()
    assert gone() is not None and seen.tolist() == lent.tolist() == [1, 5, 9]
    del seen, lent
    gc.collect()
    assert gone() is None
    own = tw.zeros((2, 2)).numpy()
    gc.collect()
    own[:] = 3
    assert own.sum() == 12


def test_exchange_with_packages_that_know_dlpack() -> None:
    class Lender:
        def __init__(self, of: Any) -> None:
            self.of = of

        def __dlpack__(self, **named: Any) -> Any:
            return self.of.__dlpack__(**named)

        def __dlpack_device__(self) -> Any:
            return self.of.__dlpack_device__()

    a = np.arange(24, dtype="int16").reshape(4, 6)
    t = tw.Tensor(Lender(a[::2, 1:]))
    assert t.layout == tw.Layout((2, 5), (12, 1)) and elements(t) == a[::2, 1:].ravel(order="F").tolist()
    # A tensor goes through as itself.
    again = tw.Tensor(Lender(t))
    again[1, 4] = -1
    assert a[2, 5] == -1
    half = tw.zeros((2, 3), "bfloat16")
    half.fill(1.5)
    assert elements(tw.Tensor(Lender(half))) == [1.5] * 6
    with pytest.raises(BufferError):
        t.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4).t()
    t = tw.Tensor(x)
    assert t.dtype == "bfloat16" and elements(t) == x.float().t().reshape(-1).tolist()
    t[0, 0] = 5
    assert x[0, 0].item() == 5 and torch.from_dlpack(t).data_ptr() == x.data_ptr()


def test_slices_and_ranges_are_those_of_arrays() -> None:
    rng = random.Random(1)
    a = filled((5, 4, 6), "int32")
    t = tw.Tensor(a)
    for _ in range(400):
        key: list[Any] = []
        for extent in a.shape:
            start, stop = sorted(rng.sample(range(extent + 1), 2))
            key.append(rng.choice([rng.randrange(-extent, extent), slice(None), slice(start, stop), slice(None, None, -1),
                                   slice(start, None, 2), slice(-1, None)]))  # fmt: skip
        wanted = a[tuple(key)]
        if wanted.size == 0:
            continue
        found = t[tuple(key)]
        if wanted.ndim == 0:
            assert found == wanted
        else:
            assert (found.numpy() == wanted).all() and found.data_ptr == wanted.ctypes.data
    assert (t[..., 2].numpy() == a[..., 2]).all() and (t[1, ...].numpy() == a[1]).all()
    assert t[7] == a[2, 1, 0] and t[-1] == a[-1, -1, -1]  # an index runs through the first mode first
    nested = tw.Tensor(np.arange(24), tw.Layout(((2, 3), 4), ((1, 8), 2)))
    assert nested[(1, 2), 3] == 1 + 16 + 6 and elements(nested[(None, 2), 1]) == [18, 19]
    outside: list[Any] = [
        (5, 0, 0), (0, 0), (0, 4, None), (0, 0, 0, 0), slice(2, 2), (slice(0, 2),), "x", 1.5, 120, ((1, 1), 0, 0),
    ]  # fmt: skip
    for wrong in outside:
        with pytest.raises((IndexError, TypeError, ValueError)):
            t[wrong]
    with pytest.raises(TypeError, match="not iterated"):
        list(t)


def test_functions_of_the_algebra_see_the_same_memory() -> None:
    a = filled((16, 24), "int32")
    t = tw.Tensor(a)
    tiled = tw.zipped_divide(t, (4, 8))
    assert tw.zipped_divide(A=t, T=(4, 8)).layout == tiled.layout
    assert isinstance(tiled, tw.Tensor) and tiled.layout == t.layout.zipped_divide((4, 8))
    for i, j in itertools.product(range(4), range(3)):
        tile = tiled[None, (i, j)]
        for m, n in itertools.product(range(4), range(8)):
            assert tile[(m, n),] == a[4 * i + m, 8 * j + n]
        assert (tw.local_tile(t, (4, 8), (i, j)).numpy() == a[4 * i : 4 * i + 4, 8 * j : 8 * j + 8]).all()
    assert tw.size(t) == t.size() == 384 and t.rank() == len(t) == 2
    # The page's partition of a block by threads and values.
    tiler, tv = tw.make_layout_tv(tw.Layout((2, 4), (4, 1)), tw.Layout((2, 2), (2, 1)))
    block = tw.tensor_zipped_divide(t, tiler)[(None, None), (1, 2)]
    parts = tw.tensor_composition(block, tv, tiler)
    found = sorted(parts[thread, value] for thread in range(8) for value in range(4))
    assert found == sorted(a[4:8, 16:24].ravel().tolist())
    parts[3, None].fill(-1)
    assert (a == -1).sum() == 4
    with pytest.raises(TypeError, match="t.layout"):
        tw.complement(t, 400)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="two tensors"):
        tw.composition(t, tiled)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="32 elements"):
        tw.tensor_composition(block, tv, (4, 4))


def test_no_tile_reaches_what_is_not_of_the_tensor() -> None:
    a = np.arange(60).reshape(6, 10)
    t = tw.Tensor(a)[1:6, 2:9]  # 5 by 7, inside of an array
    leave: list[Any] = [
        lambda: t.zipped_divide((2, 7)), lambda: t.logical_divide((5, 2)), lambda: t.composition("(6,7):(1,5)"),
        lambda: t.composition("[6:1;_]"), lambda: tw.local_tile(t, (5, 7), (1, 0)), lambda: tw.local_tile(t, (2, 7), (0, 0)),
        lambda: t.select(0, 0), lambda: t.append_to_rank(3, "2:10"), lambda: t.composition("35:2"),
        lambda: tw.zeros(()).zipped_divide(8), lambda: t.flat_divide(tiler=(4,)),
    ]  # fmt: skip
    for call in leave:
        with pytest.raises((ValueError, TypeError)):
            call()
    inside: list[Any] = [
        lambda: t.zipped_divide((5, 1)), lambda: t.composition("(5,7):(1,5)"), lambda: t.composition((3, 4)),
        lambda: t.composition("(4,3):(1,10)"), lambda: t.select(1, 0), lambda: t.append_to_rank(3), lambda: t.group(0, 2),
        lambda: tw.local_tile(t, (5, 1), (None, 3)), lambda: t.zipped_divide(T=(1, 7)), lambda: t.coalesce(),
    ]  # fmt: skip
    own = {t.data_ptr + 8 * offset for offset in offsets(t.layout)}
    for call in inside:
        part = call()
        assert {part.data_ptr + 8 * offset for offset in offsets(part.layout)} <= own


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


def test_copies_of_tensors() -> None:
    a = np.arange(24.0).reshape(4, 6)
    for array in (a, a[::2, ::3], a[::-1], np.broadcast_to(np.float32(3), (2, 5)), np.array(4.0)):
        t = tw.Tensor(array)
        same, own = copy.copy(t), copy.deepcopy(t)
        assert same.data_ptr == t.data_ptr and same.layout == t.layout
        assert own.data_ptr != t.data_ptr and own.dtype == t.dtype and (own.numpy() == array).all()
        assert own.layout == t.layout or 0 in array.strides
    own = copy.deepcopy([tw.Tensor(a)])[0]
    own.fill(0)
    assert a.sum() == 276
    with pytest.raises(TypeError, match=r"save tensor.numpy\(\)"):
        pickle.dumps(tw.Tensor(a))


def test_names_of_other_libraries_say_what_to_write() -> None:
    t = tw.Tensor(np.arange(24.0).reshape(4, 6))
    for name, meant in (("T", "select"), ("reshape", "under"), ("astype", "dtype="), ("argmax", "numpy"), ("clone", "relayout")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; write .*{meant}"):
            getattr(t, name)
    with pytest.raises(AttributeError, match="no attribute 'colour'$"):
        getattr(t, "colour")
    with pytest.raises(AttributeError, match=r"write zeros\(layout, dtype\), and tensor.fill"):
        getattr(tw, "ones")
    assert not hasattr(t, "__cuda_array_interface__") and not hasattr(t, "get_device")
    # No name of the package's own files is proposed.
    with pytest.raises(AttributeError, match="'_nativ'$"):
        getattr(tw, "_nativ")


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


def test_what_is_no_tensor_is_refused() -> None:
    a = np.arange(24.0).reshape(4, 6)
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: tw.Tensor(3), TypeError, "no array"),
        (lambda: tw.Tensor(np.array(["a"])), TypeError, "no type of elements"),
        (lambda: tw.Tensor(np.zeros((0, 3))), ValueError, "no element"),
        (lambda: tw.Tensor(a.astype(">f8")), TypeError, "order of another machine"),
        (lambda: tw.Tensor(np.zeros(3, [("x", "f4"), ("y", "i1")])["x"]), ValueError, "stride of 5 bytes|no multiple"),
        (lambda: tw.Tensor(a, "(5,6):(6,1)"), ValueError, "offsets from 0 to 29"),
        (lambda: tw.Tensor(a, "(4,6):(-6,1)"), ValueError, "offsets from -18"),
        (lambda: tw.Tensor(a, "(4,6):(1@0,1@1)"), ValueError, "E0414"),
        (lambda: tw.Tensor(a, "(M,6):(6,1)"), ValueError, "E0414"),
        (lambda: tw.Tensor(a, tw.Swizzle(1, 0, 1)), TypeError, "layout"),
        (lambda: tw.zeros((2, 2), "float99"), TypeError, "float99"),
        (lambda: tw.zeros("(2,2):(1,1)"), ValueError, "E0402"),
        (lambda: tw.zeros((1 << 40, 1 << 20)), (ValueError), "E04"),
        (lambda: tw.zeros(4, "int8").fill(128), OverflowError, "128 does not fit"),
        (lambda: tw.zeros(4, "int8").fill(1.5), TypeError, "is a number"),
        (lambda: tw.zeros(4).fill("x"), TypeError, "is a number"),
        (lambda: tw.Tensor(a).relayout((4, 7)), ValueError, "E0420"),
        (lambda: tw.Tensor(a).relayout(dtype=object), TypeError, "object"),
        (lambda: tw.Tensor(a, "((2,2),6):((6,13),1)"), ValueError, "offsets"),
        (lambda: tw.Tensor(a, "((2,2),6):((6,-6),1)"), ValueError, "offsets"),
        (lambda: tw.Tensor(a, "((2,2),5):((6,11),1)").numpy(), BufferError, "several strides"),
        (lambda: tw.Tensor(a).relayout("S<1,0,1> o 0 o (4,6):(6,1)").numpy(), BufferError, "one stride an axis"),
    ]
    for call, kind, text in refused:
        with pytest.raises(kind, match=text):
            call()
    with pytest.raises(AttributeError, match=r"Tensor\(array\)"):
        getattr(tw, "from_dlpack")


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
