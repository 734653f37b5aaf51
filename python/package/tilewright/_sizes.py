"""Sizes of arrays and integers that nothing is declared of: which are numbers of the launch.

Law: a size is a constant of a kernel where the kernel uses it as one, or where accesses would be
narrower if it were not; elsewhere it is a number of the launch. What is promised of one, the
multiple that it is, has few classes, so that there are few kernels.

A kernel is tried with its sizes as numbers of the launch first, and with more and more constants
where that is refused. What it is tried with is a *rung*; the last one has constants alone.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import NamedTuple

#: The multiples that are promised of sizes on which the width of accesses depends: vectors have up
#: to 16 bytes, and so up to 16 elements.
VECTORS = 16
#: The same, of all sizes: tiles that divide need no predicates.
TILES = 1024
#: Numbers of the launch are of 32 bits, signed.
MOST = (1 << 31) - 1


class Read(NamedTuple):
    """An array as it is read from an argument."""

    name: str
    element: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    #: What is said of it: that its sizes are constants, or numbers of the launch, and their multiple.
    is_static: bool | None
    div: int | None


class Rung(NamedTuple):
    """What a kernel is tried with: whether integers are constants, and the greatest multiple that is
    promised of sizes on which the width of accesses depends, and of others; none of constants.
    """

    integers: bool
    aligned: int | None
    leading: int | None


#: From the fewest constants to constants alone. Integers come last: a kernel that takes them as
#: numbers of the launch takes any.
LADDER = tuple(
    Rung(integers, aligned, leading)
    for integers in (False, True)
    for aligned, leading in ((VECTORS, 1), (TILES, 1), (TILES, TILES), (None, 1), (None, TILES), (None, None))
)


def _multiple(value: int, most: int) -> int:
    """The largest power of two, up to a limit, that divides a number."""
    return min(value & -value, most)


class Sizes:
    """The sizes of a call by names: equal extents have one name, in all arrays, for a kernel is shown
    to stay inside of one by the extents of another.
    """

    def __init__(self, arrays: list[Read], integers: dict[str, tuple[int, bool | None, int | None]], taken: set[str]) -> None:
        self.values: dict[str, int] = {}
        #: Sizes on which the width of accesses depends: contiguous extents, and what strides consist of.
        self.aligned: set[str] = set()
        self.static: set[str] = set()
        self.dynamic: dict[str, int | None] = {}
        self.integers: dict[str, str] = {}
        self._taken = taken
        self._texts: dict[str, tuple[list[str], list[str]]] = {}
        by_value: dict[int, str] = {}
        by_stride: dict[int, str] = {}
        for array in arrays:
            names = [self._extent(array, axis, by_value) for axis in range(len(array.shape))]
            strides = self._strides(array, names, by_stride)
            self._texts[array.name] = names, strides
        self.elements = tuple((array.name, array.element) for array in arrays)
        for name, (value, is_static, div) in integers.items():
            own = self._name(name)
            self.integers[own] = name
            self.values[own] = value
            self.aligned.add(own)
            self._said(own, is_static, div, name)
        #: What does not depend on the values: what is equal to what, and which strides are products.
        self.pattern: Hashable = (
            self.elements,
            tuple((name, *map(tuple, texts)) for name, texts in self._texts.items()),
            tuple(self.integers),
            frozenset(self.static),
            tuple(self.dynamic.items()),
        )

    def _name(self, wanted: str) -> str:
        while wanted in self._taken or wanted in self.values:
            wanted += "_"
        return wanted

    def _said(self, name: str, is_static: bool | None, div: int | None, of: str) -> None:
        if is_static is True:
            self.static.add(name)
        elif is_static is False:
            if div is not None and self.values[name] % div:
                raise ValueError(f"{self.values[name]} of '{of}' is no multiple of {div}, as tw.dynamic(.., div={div}) says")
            self.dynamic[name] = div

    def _extent(self, array: Read, axis: int, by_value: dict[int, str]) -> str:
        extent = array.shape[axis]
        if extent < 2 or extent > MOST:
            return str(extent)
        name = by_value.get(extent)
        if name is None:
            name = by_value[extent] = self._name(f"{array.name}_{axis}")
            self.values[name] = extent
        contiguous = array.strides[axis] == 1
        if contiguous:
            self.aligned.add(name)
        self._said(name, array.is_static, array.div if contiguous else None, array.name)
        return name

    def _strides(self, array: Read, names: list[str], by_stride: dict[int, str]) -> list[str]:
        """The strides as texts: products of extents if axes are compact."""
        texts = ["0"] * len(names)
        dense: dict[int, str] = {}
        for axis in sorted(range(len(names)), key=lambda axis: array.strides[axis]):
            extent, stride = array.shape[axis], array.strides[axis]
            if extent == 1:
                continue
            if stride < 2:
                text = str(stride)
            elif stride in dense:
                text = dense[stride]
                self.aligned.update(re.findall(r"[A-Za-z_]\w*", text))
            elif stride > MOST:
                text = str(stride)
            else:
                text = by_stride.get(stride, "")
                if not text:
                    text = by_stride[stride] = self._name(f"{array.name}_stride_{axis}")
                    self.values[text] = stride
                self.aligned.add(text)
                self._said(text, array.is_static, array.div, array.name)
            texts[axis] = text
            if stride > 0:
                dense[stride * extent] = names[axis] if text == "1" else f"{text}*{names[axis]}"
        return texts

    def _most(self, rung: Rung, name: str) -> int | None:
        if name in self.integers:
            return VECTORS
        return rung.aligned if name in self.aligned else rung.leading

    def constants(self, rung: Rung, needed: frozenset[str]) -> frozenset[str]:
        """The sizes that are constants on a rung, in addition to those that the kernel needs."""
        found = set(needed) | self.static
        for name in self.values:
            is_constant = rung.integers if name in self.integers else self._most(rung, name) is None
            if is_constant and name not in self.dynamic:
                found.add(name)
        return frozenset(found & set(self.values))

    def facts(self, rung: Rung, constants: frozenset[str]) -> dict[str, int]:
        """The multiple that is promised of each number of the launch."""
        found = {}
        for name, value in self.values.items():
            if name in constants:
                continue
            if name in self.dynamic:
                found[name] = self.dynamic[name] or 1
            else:
                found[name] = _multiple(value, self._most(rung, name) or 1)
        return found

    def layouts(self, constants: frozenset[str], facts: dict[str, int]) -> dict[str, str]:
        """The layout of each array, in the language, as it is on a rung."""

        def said(text: str, declares: bool) -> str:
            def of(found: re.Match[str]) -> str:
                name = found.group()
                if name in constants:
                    return str(self.values[name])
                return f"{name}{{div={facts[name]}}}" if declares and facts[name] > 1 else name

            return re.sub(r"[A-Za-z_]\w*", of, text)

        found = {}
        for name, (extents, strides) in self._texts.items():
            shape = [said(text, True) for text in extents]
            step = [said(text, text not in extents and "*" not in text) for text in strides]
            found[name] = f"{shape[0]}:{step[0]}" if len(shape) == 1 else f"({','.join(shape)}):({','.join(step)})"
        return found
