"""Arrays of every type of number, and the elements of tensors one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """The offsets of all indices."""
    return [layout(index) for index in range(layout.size())]
