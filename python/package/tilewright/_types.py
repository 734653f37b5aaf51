"""Names for types in annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, SupportsIndex, Tuple, Union

if TYPE_CHECKING:
    from ._native import BitMatrix, Layout, Swizzle, Value

#: A shape, strides or a coordinate of known numbers.
IntTuple = Union[int, Tuple["IntTuple", ...]]
#: What a function takes: a value, an integer, a nested tuple, None for ``_``, or a program as text.
Argument = Union["Value", SupportsIndex, str, Tuple[Any, ...], List[Any], None]
#: What stands for a layout: a shape for its compact one.
LayoutLike = Union["Layout", "Swizzle", "BitMatrix", SupportsIndex, str, Tuple[Any, ...], List[Any]]
