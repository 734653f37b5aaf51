"""Tensors: whose memory they see, where their elements lie, and what is refused. NumPy counts its elements by itself."""

from __future__ import annotations

import array
import copy
import gc
import itertools
import pickle
import random
import weakref
from typing import Any, Callable

import numpy as np
import pytest
from elements import DTYPES, elements, filled, offsets

import tilewright as tw


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


def test_what_is_no_tensor_is_refused() -> None:
    a = np.arange(24.0).reshape(4, 6)
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: tw.Tensor(3), TypeError, "no array"),
        (lambda: tw.Tensor(np.array(["a"])), TypeError, "no type of elements"),
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
