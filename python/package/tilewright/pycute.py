"""A drop-in for CUTLASS's module ``pycute``: the same names, texts and conventions.

``install()`` makes ``import pycute`` find it. Where CUTLASS's module answers rightly, this one
gives the same function; where it would be silently wrong, such as a composition that does not exist
or copies that overlap, this one raises ``Refused``, which is an ``AssertionError`` too, because
that is what CUTLASS raises. What else differs:

* ``composition`` and ``coalesce`` write stride 0 in modes of extent 1, whose strides cannot be
  observed;
* ``complement`` is the exact one where it exists, else the weak one, and refused where modes
  overlap;
* ``logical_product`` repeats, also for a number;
* inverses are the largest ones, and may be longer;
* ``cosize`` is right with negative strides, and swizzles have values whatever their shift.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from functools import reduce
from itertools import chain
from typing import Any, Callable, Iterable

import tilewright as _tw

# ---- integers and tuples ----


class _IntegerMeta(ABCMeta):
    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, int) and not issubclass(other, bool) if cls is Integer else super().__subclasscheck__(other)

    def __instancecheck__(cls, other: object) -> bool:
        return cls.__subclasscheck__(type(other))


class Integer(metaclass=_IntegerMeta):
    """What counts as an integer: ``int`` and its subclasses, but not ``bool``."""


class Refused(_tw.LayoutError, AssertionError):
    """What Tilewright refuses, as an ``AssertionError``."""


def _asked(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except _tw.LayoutError as error:
        fields = {name: value for name, value in vars(error).items()}
        raise Refused(str(error), **fields) from None


def is_int(x: Any) -> bool:
    return isinstance(x, Integer)


def is_tuple(x: Any) -> bool:
    return isinstance(x, tuple)


def flatten(t: Any) -> tuple[Any, ...]:
    return tuple(leaf for item in t for leaf in flatten(item)) if is_tuple(t) else (t,)


def signum(a: int) -> int:
    return (a > 0) - (a < 0)


def product(a: Any) -> int:
    return int(reduce(lambda left, right: left * right, flatten(a), 1))


def inner_product(a: Any, b: Any) -> int:
    if is_tuple(a):
        assert len(a) == len(b)
        return sum(inner_product(x, y) for x, y in zip(a, b))
    assert not is_tuple(b)
    return int(a * b)


def tuple_max(a: Any) -> int:
    return int(max(flatten(a)))


def elem_scale(a: Any, b: Any) -> Any:
    if is_tuple(a):
        assert is_tuple(b) and len(a) == len(b)
        return tuple(elem_scale(x, y) for x, y in zip(a, b))
    return a * product(b)


def shape_div(a: Any, b: Any) -> Any:
    if is_tuple(a):
        if is_tuple(b):
            assert len(a) == len(b)
            return tuple(shape_div(x, y) for x, y in zip(a, b))
        parts = []
        for extent in a:
            parts.append(shape_div(extent, b))
            b = shape_div(b, product(extent))
        return tuple(parts)
    if is_tuple(b):
        return shape_div(a, product(b))
    assert a % b == 0 or b % a == 0
    return -(-a // b)


def prefix_product(a: Any, init: Any = 1) -> Any:
    if is_tuple(a):
        if is_tuple(init):
            assert len(a) == len(init)
            return tuple(prefix_product(x, i) for x, i in zip(a, init))
        parts = []
        for extent in a:
            parts.append(prefix_product(extent, init))
            init = init * product(extent)
        return tuple(parts)
    assert not is_tuple(init)
    return init


def idx2crd(idx: Any, shape: Any, stride: Any = None) -> Any:
    if stride is None:
        stride = prefix_product(shape)
    if is_tuple(idx):
        assert len(idx) == len(shape) == len(stride)
        return tuple(idx2crd(i, s, d) for i, s, d in zip(idx, shape, stride))
    if is_tuple(shape):
        assert len(shape) == len(stride)
        return tuple(idx2crd(idx, s, d) for s, d in zip(shape, stride))
    return idx // stride % shape


def crd2idx(crd: Any, shape: Any, stride: Any = None) -> int:
    if stride is None:
        stride = prefix_product(shape)
    if is_tuple(crd):
        assert len(crd) == len(shape) == len(stride)
        return sum(crd2idx(c, s, d) for c, s, d in zip(crd, shape, stride))
    if crd is None:
        crd = 0
    if not is_tuple(shape):
        return int(crd * stride)
    assert len(shape) == len(stride)
    # Python's quotients, which round down: an index below zero reads from the end.
    total = 0
    for extent, step in list(zip(shape, stride))[:-1]:
        total += crd2idx(crd % product(extent), extent, step)
        crd //= product(extent)
    return total + crd2idx(crd, shape[-1], stride[-1])


def crd2crd(crd: Any, dst_shape: Any, src_shape: Any = None) -> Any:
    if is_tuple(crd) and is_tuple(dst_shape):
        assert len(crd) == len(dst_shape)
        return tuple(crd2crd(c, s) for c, s in zip(crd, dst_shape))
    if is_tuple(crd):
        assert src_shape is not None
        return crd2idx(crd, src_shape)
    if is_tuple(dst_shape):
        return idx2crd(crd, dst_shape)
    assert crd < dst_shape
    return crd


def slice_(crd: Any, trg: Any) -> tuple[Any, ...]:
    if is_tuple(crd):
        assert is_tuple(trg) and len(crd) == len(trg)
        return tuple(chain.from_iterable(slice_(c, s) for c, s in zip(crd, trg)))
    return (trg,) if crd is None else ()


def has_none(a: Any) -> bool:
    return any(has_none(item) for item in a) if is_tuple(a) else a is None


# ---- layouts ----


class LayoutBase:
    pass


def is_layout(x: Any) -> bool:
    return isinstance(x, LayoutBase)


class Layout(LayoutBase):
    def __init__(self, _shape: Any, _stride: Any = None) -> None:
        self.shape = _shape
        self.stride = prefix_product(_shape) if _stride is None else _stride

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return bool(self.shape == other.shape and self.stride == other.stride)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.shape) if is_tuple(self.shape) else 1

    def __call__(self, *args: Any) -> Any:
        crd = args[0] if len(args) == 1 else args
        if has_none(crd):
            return Layout(slice_(crd, self.shape), slice_(crd, self.stride))
        return crd2idx(crd, self.shape, self.stride)

    def __getitem__(self, i: Any) -> Layout:
        if is_tuple(self.shape):
            return Layout(self.shape[i], self.stride[i])
        assert i == 0
        return Layout(self.shape, self.stride)

    def size(self) -> int:
        return product(self.shape)

    def cosize(self) -> int:
        return int(_asked(_tw.cosize, _native(self)))

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}"

    def __repr__(self) -> str:
        return f"Layout({self.shape},{self.stride})"


def _native(x: Any) -> Any:
    """The layout or the tiler as Tilewright has it."""
    if isinstance(x, Layout):
        return _asked(_tw.Layout, x.shape, x.stride)
    return tuple(_native(item) for item in x) if is_tuple(x) else x


def _own(x: Any) -> Layout:
    return Layout(x.shape, x.stride)


def make_layout(*layouts: Any) -> Layout:
    modes: Iterable[Any] = layouts
    if len(layouts) == 1 and not is_layout(layouts[0]):
        modes = layouts[0]
    shapes, strides = zip(*((mode.shape, mode.stride) for mode in modes))
    return Layout(tuple(shapes), tuple(strides))


def size(layout: Any) -> int:
    return int(layout.size()) if is_layout(layout) else product(layout)


def cosize(layout: Layout) -> int:
    return layout.cosize()


def _by_mode(operation: Callable[..., Any], layout: Layout, profile: Any) -> Layout:
    """An operation on each mode that a profile names; its numbers say nothing."""
    if is_tuple(profile):
        assert len(layout) >= len(profile)
        named = (_by_mode(operation, layout[i], profile[i]) for i in range(len(profile)))
        return make_layout(chain(named, (layout[i] for i in range(len(profile), len(layout)))))
    return _own(_asked(operation, _native(layout)))


def coalesce(layout: Layout, profile: Any = None) -> Layout:
    return _by_mode(_tw.coalesce, layout, profile)


def filter(layout: Layout, profile: Any = None) -> Layout:
    return _by_mode(_tw.filter, layout, profile)


def composition(layoutA: Layout, layoutB: Any) -> Layout:
    if layoutB is None:
        return layoutA
    if is_int(layoutB):
        layoutB = Layout(layoutB)
    if is_tuple(layoutB):
        assert len(layoutA) >= len(layoutB)
        named = (composition(layoutA[i], layoutB[i]) for i in range(len(layoutB)))
        return make_layout(chain(named, (layoutA[i] for i in range(len(layoutB), len(layoutA)))))
    return _own(_asked(_tw.composition, _native(layoutA), _native(layoutB)))


def complement(layout: Any, max_idx: int = 1) -> Layout:
    block = _native(Layout(layout) if is_int(layout) else layout)
    try:
        return _own(_tw.complement(block, max_idx))
    except _tw.LayoutError:
        return _own(_asked(_tw.weak_complement, block, max_idx))


def right_inverse(layout: Any) -> Any:
    if layout is None:
        return None
    return _own(_asked(_tw.right_inverse, _native(Layout(layout) if is_int(layout) else layout)))


def left_inverse(layout: Any) -> Any:
    if layout is None:
        return None
    return _own(_asked(_tw.left_inverse, _native(Layout(layout) if is_int(layout) else layout)))


def _split(operation: Callable[..., Any], layoutA: Layout, layoutB: Any) -> Layout:
    if layoutB is None:
        return layoutA
    if is_int(layoutB):
        layoutB = Layout(layoutB)
    if is_tuple(layoutB):
        assert len(layoutA) >= len(layoutB)
        named = (_split(operation, layoutA[i], layoutB[i]) for i in range(len(layoutB)))
        return make_layout(chain(named, (layoutA[i] for i in range(len(layoutB), len(layoutA)))))
    return _own(_asked(operation, _native(layoutA), _native(layoutB)))


def logical_divide(layoutA: Layout, layoutB: Any) -> Layout:
    return _split(_tw.logical_divide, layoutA, layoutB)


def logical_product(layoutA: Layout, layoutB: Any) -> Layout:
    return _split(_tw.logical_product, layoutA, layoutB)


def hier_unzip(splitter: Callable[..., Layout], layoutA: Layout, layoutB: Any) -> Layout:
    if layoutB is None:
        return make_layout(Layout(1, 0), layoutA)
    if is_tuple(layoutB):
        assert len(layoutA) >= len(layoutB)
        split = [hier_unzip(splitter, layoutA[i], layoutB[i]) for i in range(len(layoutB))]
        rest = (layoutA[i] for i in range(len(layoutB), len(layoutA)))
        return make_layout(make_layout(pair[0] for pair in split), make_layout(chain((pair[1] for pair in split), rest)))
    return splitter(layoutA, layoutB)


def zipped_divide(layoutA: Layout, layoutB: Any) -> Layout:
    return hier_unzip(logical_divide, layoutA, layoutB)


def zipped_product(layoutA: Layout, layoutB: Any) -> Layout:
    return hier_unzip(logical_product, layoutA, layoutB)


def _tiled(zipped: Layout) -> Layout:
    rest = zipped[1]
    return make_layout([zipped[0]] + [rest[i] for i in range(len(rest))])


def tiled_divide(layoutA: Layout, layoutB: Any) -> Layout:
    return _tiled(zipped_divide(layoutA, layoutB))


def tiled_product(layoutA: Layout, layoutB: Any) -> Layout:
    return _tiled(zipped_product(layoutA, layoutB))


def slice_and_offset(crd: Any, layout: Layout) -> tuple[Layout, int]:
    sub = Layout(slice_(crd, layout.shape), slice_(crd, layout.stride))
    return sub, crd2idx(crd, layout.shape, layout.stride)


# ---- swizzles ----


def shiftr(a: int, s: int) -> int:
    return a >> s if s > 0 else shiftl(a, -s) if s < 0 else a


def shiftl(a: int, s: int) -> int:
    return a << s if s > 0 else shiftr(a, -s) if s < 0 else a


class Swizzle:
    def __init__(self, bits: int, base: int, shift: int) -> None:
        assert bits >= 0 and base >= 0 and abs(shift) >= bits
        self.bits, self.base, self.shift = bits, base, shift
        self._swizzle = _asked(_tw.Swizzle, bits, base, shift)

    def __call__(self, offset: int) -> int:
        return int(self._swizzle(offset))

    def __str__(self) -> str:
        return f"SW_{self.bits}_{self.base}_{self.shift}"

    def __repr__(self) -> str:
        return f"Swizzle({self.bits},{self.base},{self.shift})"


class ComposedLayout(LayoutBase):
    """``c -> layoutB(offset + layoutA(c))``."""

    def __init__(self, layoutB: Any, offset: int, layoutA: Any) -> None:
        self.layoutB, self.offset, self.layoutA = layoutB, offset, layoutA

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        mine, theirs = (self.layoutB, self.offset, self.layoutA), (other.layoutB, other.offset, other.layoutA)
        return bool(mine == theirs)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.layoutA)

    def __call__(self, *args: Any) -> Any:
        crd = args[0] if len(args) == 1 else args
        if has_none(crd):
            sub, begin = slice_and_offset(crd, self.layoutA)
            return ComposedLayout(self.layoutB, self.offset + begin, sub)
        return self.layoutB(self.offset + self.layoutA(crd))

    def __getitem__(self, i: Any) -> ComposedLayout:
        return ComposedLayout(self.layoutB, self.offset, self.layoutA[i])

    def size(self) -> int:
        return size(self.layoutA)

    def cosize(self) -> int:
        return cosize(self.layoutA)

    def __str__(self) -> str:
        return f"{self.layoutB} o {self.offset} o {self.layoutA}"

    def __repr__(self) -> str:
        return f"ComposedLayout({self.layoutB!r},{self.offset!r},{self.layoutA!r})"


def install() -> None:
    """Makes ``import pycute`` find this module."""
    sys.modules["pycute"] = sys.modules[__name__]
