# mypy: ignore-errors
"""Arrays without elements, and axes of extent 1 with any stride, beside NumPy."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest

import tilewright as tw

HERE = {"on": "interpreter"}
SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "int64"])
def test_tensors(shape, dtype):
    x = np.zeros(shape, dtype)
    t = tw.Tensor(x)
    assert t.shape == shape or (t.shape,) == shape
    assert (t.dtype, len(t), t.device, t.readonly, t.size()) == (dtype, len(shape), "cpu", False, 0)
    assert repr(t) == f"Tensor({dtype} of shape {str(shape).replace(' ', '')})"
    for back in (t.numpy(), np.asarray(t), np.from_dlpack(t), t.relayout().numpy(), tw.Tensor(t).numpy()):
        assert back.shape == shape and back.dtype == x.dtype
    assert t.relayout(dtype="float64").dtype == "float64" and tw.zeros(shape, dtype).numpy().shape == shape
    with pytest.raises(ValueError, match="no layout"):
        t.layout
    with pytest.raises(ValueError, match="zipped_divide"):
        tw.zipped_divide(t, 2)
    with pytest.raises(ValueError, match="another layout"):
        t.under("4:1")
    for mode in [None, *range(len(shape)), tuple(range(len(shape)))]:
        for name in ("sum", "max", "min"):
            try:
                wanted = getattr(x, name)(mode)
            except ValueError:
                with pytest.raises(ValueError, match="no elements"):
                    getattr(t, name)(mode)
                continue
            found = getattr(t, name)(mode)
            found = found.numpy() if isinstance(found, tw.Tensor) else found
            assert np.array_equal(found, wanted), (name, mode)
    t.fill(1)
    t[...] = x
    t[...] = 3
    tw.copy(t, tw.zeros(shape, dtype))
    with pytest.raises(tw.LayoutError):
        tw.copy(t, tw.Tensor(np.zeros(5, dtype)))
    with pytest.raises(tw.LayoutError):
        tw.copy(tw.Tensor(np.zeros(5, dtype)), t)


def test_parts():
    x = np.arange(24.0).reshape(4, 6)
    t, empty = tw.Tensor(x), tw.Tensor(x[:0])
    for key in [np.s_[2:2, :], np.s_[:, 6:], np.s_[1, 3:3], np.s_[3:1, 2], np.s_[..., 0:0]]:
        part = t[key]
        assert part.numpy().shape == x[key].shape
        t[key] = 7.0
        t[key] = x[key]
    assert np.array_equal(x, np.arange(24.0).reshape(4, 6))
    for key in [np.s_[:, 1], np.s_[:, 1:3], np.s_[None, 1], np.s_[..., 5], np.s_[:, -1]]:
        wanted = np.zeros((0, 6))[tuple(slice(None) if at is None else at for at in key)]
        assert empty[key].numpy().shape == wanted.shape
    for key in [(0, 0), (slice(None), 6), 0, (slice(None), slice(None), 0)]:
        with pytest.raises(IndexError):
            empty[key]
    with pytest.raises(tw.LayoutError):
        t[2:2, :] = x
    readonly = np.zeros((0, 3))
    readonly.flags.writeable = False
    with pytest.raises(ValueError, match="read only"):
        tw.Tensor(readonly).fill(0)
    assert tw.transform(lambda a: a + 1, np.zeros((0, 3))).numpy().shape == (0, 3)
    assert tw.reduce(np.zeros((3, 0)), "sum", 1).numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("sizes", [(0, 5, 6), (4, 0, 6), (4, 5, 0), (0, 0, 0), (4, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_products_on_the_host(sizes, dtype):
    m, n, k = sizes
    a, b = tw.Tensor(np.ones((m, k), dtype)), tw.Tensor(np.ones((n, k), dtype))
    c = tw.gemm(a, b)
    assert c.numpy().shape == (m, n) and not c.numpy().any()
    if m and n:
        c.fill(6)
        assert (tw.gemm(a, b, c, beta=2.0).numpy() == 12).all()
        assert (tw.gemm(a, b, c, alpha=5.0).numpy() == 0).all()
    with pytest.raises(ValueError, match="no product"):
        tw.gemm(a, tw.Tensor(np.ones((n, k + 1), dtype)))


def test_functions_of_kernels():
    for shape in [(0, 64), (3, 0), (2, 0, 8), (0,)]:
        x = np.zeros(shape, np.float32)
        weight = np.ones(shape[-1], np.float32)
        for y in (tw.gpu.softmax(x, **HERE), tw.gpu.rms_norm(x, weight, **HERE), tw.gpu.layer_norm(x, weight, weight, **HERE)):
            assert y.shape == shape and y.dtype == x.dtype
        out = np.zeros(shape, np.float32)
        assert tw.gpu.softmax(x, out=out, **HERE) is out and tw.gpu.relayout(x, out, **HERE) is out
        for axis in (None, 0, -1, tuple(range(len(shape)))):
            assert np.array_equal(tw.gpu.reduce(x, "sum", axis=axis, **HERE), x.sum(axis))
            assert np.array_equal(tw.gpu.reduce(x, "norm", axis=axis, **HERE), x.sum(axis))
            with np.errstate(invalid="ignore"):
                wanted = x.sum(axis) / np.float32(0) if 0 not in np.shape(x.sum(axis)) else x.sum(axis)
            assert np.array_equal(tw.gpu.reduce(x, "mean", axis=axis, **HERE), wanted, equal_nan=True)
            for statistic in ("max", "argmax"):
                along = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
                if all(shape[at] for at in along):
                    assert tw.gpu.reduce(x, statistic, axis=axis, **HERE).shape == x.sum(axis).shape
                else:
                    with pytest.raises(ValueError, match="no elements"):
                        tw.gpu.reduce(x, statistic, axis=axis, **HERE)
    with pytest.raises(ValueError, match="out is"):
        tw.gpu.softmax(np.zeros((0, 4), np.float32), out=np.zeros((0, 5), np.float32), **HERE)


def test_products_of_kernels():
    rows, bias = np.arange(5, dtype=np.float16), np.arange(4, dtype=np.float16)[:, None]
    for m, n, k in itertools.product((0, 4), (0, 5), (0, 8)):
        a, b = np.ones((m, k), np.float16), np.ones((n, k), np.float16)
        d = tw.gpu.gemm(a, b, **HERE)
        assert d.shape == (m, n) and (d == k).all()
        # The epilogue of sums of nothing.
        d = tw.gpu.gemm(a, b, function="x * 2 + rows - column", rows=rows[:n], column=bias[:m], **HERE)
        assert np.array_equal(d, (2 * k + rows[:n] - bias[:m]))
        d, greatest, sums = tw.gpu.gemm(a, b, keep=["row max", "column sum"], **HERE)
        assert greatest.tolist() == [k if n else -np.inf] * m and sums.tolist() == [k * m] * n
        batch = tw.gpu.gemm(np.ones((2, m, k), np.float16), np.ones((2, n, k), np.float16), **HERE)
        assert batch.shape == (2, m, n) and (batch == k).all()
        assert tw.gpu.gemm(np.ones((0, 4, 8), np.float16), np.ones((0, 5, 8), np.float16), **HERE).shape == (0, 4, 5)
        pairs = tw.gpu.gemm(a, np.ones((2 * n, k), np.float16), pairs="halves", function="x + y + 1", **HERE)
        assert pairs.shape == (m, n) and (pairs == 2 * k + 1).all()


def test_kernels_over_nothing():
    @tw.jit(x=tw.Input("f32", "N{div=64}:1"), y=tw.Output("f32", "N:1"), threads=64)
    def doubled(x, y):
        x, y = (t.local_tile(64, tw.block("x"))[tw.thread,] for t in (x, y))
        y.store(2.0 * x.load())

    @tw.jit(threads=64)
    def unsaid(x, y):
        raise AssertionError("it has no layout")

    nothing, some = np.zeros(0, np.float32), np.zeros(64, np.float32)
    for kernel in (doubled, unsaid):
        kernel(nothing, nothing.copy())
        with pytest.raises(ValueError, match="is empty, and"):
            kernel(nothing, some)
    with pytest.raises(tw.KernelError, match="f64"):
        doubled(nothing, np.zeros(0))


def odd(array, axis, bytes_):
    """The same array, with a stride of its own along an axis of extent 1."""
    strides = list(array.strides)
    strides[axis] = bytes_
    return np.lib.stride_tricks.as_strided(array, array.shape, strides)


@pytest.mark.parametrize("bytes_", [0, 7, 16, -3, 4096])
def test_strides_of_axes_of_one_element(bytes_):
    x = odd(np.arange(6, dtype=np.float64).reshape(1, 6), 0, bytes_)
    assert tw.Tensor(x).stride == (6, 1) and np.array_equal(tw.Tensor(x).numpy(), x)
    column = np.ndarray((3, 1), "f8", np.arange(12.0), strides=(16, bytes_ or 4))
    assert np.array_equal(tw.Tensor(column).numpy(), column)
    x = odd(np.arange(300, dtype=np.float32).reshape(1, 300), 0, bytes_)
    assert np.allclose(tw.gpu.softmax(x, **HERE), np.exp(x - x.max()) / np.exp(x - x.max()).sum())
    a = odd(np.ones((1, 16), np.float16), 0, bytes_)
    assert (tw.gpu.gemm(a, np.ones((3, 16), np.float16), **HERE) == 16).all()
    assert tw.gpu.reduce(x, axis=1, **HERE)[0] == x.sum()


class Exchanged(ctypes.Structure):
    """The beginning of DLPack's `DLManagedTensor`, of its header `dlpack.h`."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 3, 1, 4, 1), (3, 1), (1, 3), (2, 1, 5), (0, 1, 3), (1, 0), ()])
def test_strides_as_the_exchange_has_them(shape):
    """Not as NumPy reads them: the numbers in the structure, which other packages check."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = tw.Tensor(np.zeros(shape, np.float32)).__dlpack__()
    found = Exchanged.from_address(pointer(capsule, b"dltensor"))
    assert (found.ndim, found.bits, found.shape[: len(shape)]) == (len(shape), 32, list(shape))
    wanted = [1]
    for extent in reversed(shape[1:]):
        wanted.insert(0, wanted[0] * max(extent, 1))
    if found.strides and 0 not in shape:
        assert found.strides[: len(shape)] == wanted[: len(shape)]
    assert not found.strides or all(stride > 0 for stride in found.strides[: len(shape)] if 0 not in shape)


def test_strides_that_other_packages_take():
    """DLPack's strides of axes of extent 1 are those of a compact array."""
    for shape in [(1, 3, 1, 4, 1), (1,), (3, 1), (1, 1), (0, 3), (3, 0), (1, 0, 2)]:
        array = np.from_dlpack(tw.Tensor(np.zeros(shape, np.float32)))
        wanted, step = [], 1
        for extent in reversed(shape):
            wanted.insert(0, step * 4)
            step *= max(extent, 1)
        # NumPy gives empty arrays strides of its own.
        assert array.strides == tuple(wanted) or 0 in shape, shape
        assert tw.Tensor(np.zeros(shape, np.float32)).__array_interface__["strides"] == tuple(wanted)
