"""The memory of arrays on the host, for the interpreter."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def host_memory(array: Any) -> Any:
    """The bytes from the first element of an array to the last, as a writable view of its own memory.

    ``array`` is one of NumPy, or a tensor of PyTorch on the host, whose strides are not negative.
    """
    import numpy as np

    if hasattr(array, "data_ptr"):
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


def empty(like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    """A new array of the library and on the device of another one."""
    if is_torch(like):
        torch: Any = import_module("torch")

        return torch.empty(shape, dtype=getattr(torch, dtype) if dtype else like.dtype, device=like.device)
    if hasattr(like, "__cuda_array_interface__"):
        raise TypeError(f"pass `out`: arrays of type {type(like).__name__} are not made here")
    import numpy as np

    return np.empty(shape, dtype=dtype or like.dtype)
