"""Layouts by definition, in plain Python: what the tests compare with. It shares no code with the package."""

from __future__ import annotations

import random
from typing import Any


def leaves(tree: Any) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for item in tree for leaf in leaves(item)]


def size(shape: Any) -> int:
    product = 1
    for extent in leaves(shape):
        product *= extent
    return product


def value(shape: Any, stride: Any, index: int) -> int:
    """The value of ``shape:stride`` at an index of 0 or more: the last digit is not reduced."""
    extents, steps = leaves(shape), leaves(stride)
    total = 0
    for extent, step in list(zip(extents, steps))[:-1]:
        total += index % extent * step
        index //= extent
    return total + index * steps[-1]


def coordinates(shape: Any) -> list[Any]:
    """All coordinates, the first mode fastest."""
    if isinstance(shape, int):
        return list(range(shape))
    rows: list[Any] = [()]
    for mode in shape:
        rows = [row + (at,) for at in coordinates(mode) for row in rows]
    return rows


def at(stride: Any, coordinate: Any) -> int:
    """The value at a coordinate of the same nesting."""
    if isinstance(coordinate, int):
        return int(coordinate * stride)
    return sum(at(step, index) for step, index in zip(stride, coordinate))


def random_shape(source: random.Random, depth: int = 2, most: int = 5) -> Any:
    """A shape of at most 500 elements."""
    while True:
        shape = _random_shape(source, depth, most)
        if size(shape) <= 500:
            return shape


def _random_shape(source: random.Random, depth: int, most: int) -> Any:
    if depth == 0 or source.random() < 0.4:
        return source.randint(1, most)
    return tuple(_random_shape(source, depth - 1, most) for _ in range(source.randint(1, 3)))


def like(shape: Any, leaf: Any) -> Any:
    return leaf() if isinstance(shape, int) else tuple(like(mode, leaf) for mode in shape)
