"""The memory of arrays on the host, for the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ._native import CudaAllocator, Layout, Tensor, zeros


def host_memory(array: Any) -> Any:
    """The bytes from the first element of an array to the last, as a view that writes to them.

    ``array`` is one of NumPy, or a tensor of PyTorch on the host, whose strides are not negative,
    or a tensor of this package.
    """
    import numpy as np

    if isinstance(array, Tensor):
        # In the order of memory, whatever the layout is.
        array = np.asarray(array.under(Layout((array.cosize(),), (1,))))
    elif hasattr(array, "data_ptr"):
        torch: Any = import_module("torch")

        array = array.detach()
        if array.element_size() == 2 and array.dtype == torch.bfloat16:
            array = array.view(torch.int16)
        elif array.element_size() == 1:
            array = array.view(torch.uint8)
        array = array.numpy()
    elif not isinstance(array, np.ndarray):
        array = np.asarray(array)
    if array.dtype.kind == "V" or array.dtype.name not in _OWN:
        array = array.view(f"u{array.itemsize}")
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides)) // array.itemsize
    flat = np.lib.stride_tricks.as_strided(array, (reach,), (array.itemsize,))
    return flat.view(np.uint8)


_OWN = {
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
}  # fmt: skip


def is_torch(array: Any) -> bool:
    return hasattr(array, "data_ptr") and hasattr(array, "get_device")


# The names of types of elements in PyTorch and NumPy.
_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
}  # fmt: skip


# What makes an array: a function, its arguments, and those with names; without arguments it is given
# an array to make one like that.
Maker = tuple[Any, "tuple[Any, ...] | None", "dict[str, Any] | None"]


def maker(like: Any, shape: tuple[int, ...], element: str | None = None, strides: tuple[int, ...] | None = None) -> Maker:
    """What makes a new array of the library and on the device of another one, of its type or of
    this one. PyTorch's may have strides of their own; others are row-major.
    """
    name = None if element is None else _NAMES[element]
    if is_torch(like):
        torch: Any = import_module("torch")

        dtype = getattr(torch, name) if name else like.dtype
        quick = _quick(torch) if str(like.device).startswith("cuda") else None
        if quick is not None:
            return quick, (shape, compact(shape) if strides is None else strides, dtype, like.device, like.get_device()), None
        if strides is not None:
            return torch.empty_strided, (shape, strides), {"dtype": dtype, "device": like.device}
        if dtype == like.dtype and type(like) is torch.Tensor and tuple(like.shape) == shape and like.is_contiguous():
            # Half as long as to say all of it.
            return torch.empty_like, None, None
        return torch.empty, (shape,), {"dtype": dtype, "device": like.device}
    if isinstance(like, Tensor):
        if like.device != "cpu":
            raise TypeError(f"pass `out`: tensors on {like.device} are not made here")
        return zeros, (shape, name or like.dtype), None
    if hasattr(like, "made_beside"):
        # An array while a call is recorded.
        return like.made_beside, (shape, name), None
    if hasattr(like, "__cuda_array_interface__"):
        raise TypeError(f"pass `out`: arrays of type {type(like).__name__} are not made here")
    import numpy as np

    if name is None or name in _OWN:
        return np.empty, (shape,), {"dtype": name or like.dtype}
    # A type that NumPy does not have.
    return zeros, (shape, name), None


def _quick(torch: Any) -> CudaAllocator | None:
    """The allocation function of PyTorch's compiler for CUDA tensors. It bypasses the dispatcher,
    which takes longer than the allocation. It is not a public function of PyTorch, so it may be
    missing.
    """
    try:
        current, empty_strided = torch._C._cuda_getDevice, torch._C._dynamo.guards._empty_strided_cuda
    except AttributeError:
        return None
    # The only device is the current one.
    current = None if torch.cuda.device_count() == 1 else current
    return CudaAllocator(current, empty_strided, torch.empty_strided)


def compact(shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """The strides of an array without gaps; the last axis is the fastest, or the last one of
    ``order``.
    """
    strides, step = [1] * len(shape), 1
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def made(of: Maker, like: Any) -> Any:
    """The array that is made so."""
    function, arguments, named = of
    return function(like) if arguments is None else function(*arguments, **(named or {}))


def empty(like: Any, shape: tuple[int, ...], element: str | None = None) -> Any:
    """A new array of the library and on the device of another one, of its type or of this one."""
    return made(maker(like, shape, element), like)


def laid(like: Any, layout: Layout, element: str) -> Any:
    """A new array as `empty` makes it, whose elements lie as a layout of integers says."""
    shape, strides = (own if isinstance(own, tuple) else (own,) for own in (layout.shape, layout.stride))
    if any(isinstance(own, tuple) for own in shape) or strides == compact(shape):
        return empty(like, shape, element)
    flat = empty(like, (layout.cosize(),), element)
    if isinstance(flat, Tensor):
        return flat.under(layout)
    if is_torch(flat):
        return flat.as_strided(shape, strides)
    import numpy as np

    return np.lib.stride_tricks.as_strided(flat, shape, [stride * flat.itemsize for stride in strides])


def zeros_like(like: Any, shape: tuple[int, ...]) -> Any:
    """The same, of zeros."""
    if is_torch(like):
        return import_module("torch").zeros(shape, dtype=like.dtype, device=like.device)
    array = empty(like, shape)
    if not isinstance(array, Tensor):
        array[...] = 0
    return array


def fill(array: Any, value: float) -> None:
    """Makes every element a number."""
    (array.fill_ if is_torch(array) else array.fill)(value)


def result_type(factors: str) -> str:
    """The result type of a GEMM: the accumulator type for integers, a 16-bit type for 8-bit floats.
    """
    return {"i8": "i32", "u8": "i32", "e4m3": "bf16", "e5m2": "bf16"}.get(factors, factors)
