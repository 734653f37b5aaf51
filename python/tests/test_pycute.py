"""The drop-in for pycute: its conventions, and the laws of its operations at every index."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

import tilewright as tw
from plain import like, random_shape
from tilewright import pycute
from tilewright.pycute import Layout


def test_conventions() -> None:
    layout = Layout((4, 8), (8, 1))
    assert str(layout) == "(4, 8):(8, 1)" and repr(layout) == "Layout((4, 8),(8, 1))" and str(Layout((8,))) == "(8,):(1,)"
    assert Layout((2, (3, 4))).stride == (1, (2, 6)) and Layout(4) != Layout((4,)) and len(Layout(4)) == 1
    assert layout(None, 3) == Layout((4,), (8,)) and layout(2, 3) == layout((2, 3)) == 19 and layout(100) == 25
    assert layout(-1) == 23 and layout[1] == Layout(8, 1) and layout[0:1] == Layout((4,), (8,))
    with pytest.raises(TypeError):
        hash(layout)
    assert issubclass(int, pycute.Integer) and not issubclass(bool, pycute.Integer) and not isinstance(1.0, pycute.Integer)
    assert str(pycute.ComposedLayout(pycute.Swizzle(3, 0, 3), 0, Layout((8, 8), (8, 1)))) == "SW_3_0_3 o 0 o (8, 8):(8, 1)"
    assert pycute.shape_div((12, 3), 6) == (2, 3) and pycute.prefix_product((3, (2, 4), 5)) == (1, (3, 6), 24)
    assert pycute.crd2idx((1, None, (2, 3)), (3, 5, (4, 4))) == 1 + 2 * 15 + 3 * 60
    assert pycute.idx2crd(17, (3, (2, 4))) == (2, (1, 2)) and pycute.slice_((1, (None, 2)), (3, (4, 5))) == (4,)
    assert pycute.elem_scale((2, (3, 4)), (10, (1, (2, 3)))) == (20, (3, 24)) and pycute.tuple_max((1, (7, 2))) == 7
    pycute.install()
    assert sys.modules.pop("pycute") is pycute


def some_layout(source: random.Random) -> Layout:
    shape = random_shape(source)
    return Layout(shape, like(shape, lambda: source.randint(0, 12)))


def test_laws() -> None:
    source = random.Random(7)
    made = 0
    for _ in range(500):
        a, b = some_layout(source), some_layout(source)
        indices = range(a.size())
        flat = pycute.coalesce(a)
        assert [flat(i) for i in indices] == [a(i) for i in indices]
        by_mode = pycute.coalesce(a, (1,) * len(a))
        assert len(by_mode) == len(a) and [by_mode(i) for i in indices] == [a(i) for i in indices]
        inverse = pycute.right_inverse(a)
        assert [a(inverse(i)) for i in range(inverse.size())] == list(range(inverse.size()))
        try:
            composed = pycute.composition(a, b)
        except AssertionError as refused:
            assert isinstance(refused, tw.LayoutError)
        else:
            made += 1
            assert composed.size() == b.size()
            assert [composed(i) for i in range(b.size())] == [a(b(i)) for i in range(b.size())]
        try:
            rest = pycute.complement(a)
        except AssertionError:
            pass
        else:
            both = pycute.filter(a)
            taken = [both(i) + rest(j) for i in range(both.size()) for j in range(min(rest.size(), 50))]
            assert len(set(taken)) == len(taken)
    assert made > 200


def test_products_and_divisions() -> None:
    tile = Layout((2, 2), (1, 2))
    repeated = pycute.logical_product(tile, 3)
    assert sorted(repeated(i) for i in range(12)) == list(range(12))
    divided = pycute.zipped_divide(Layout((4, 6), (6, 1)), (2, 3))
    assert str(divided) == "((2, 3), (2, 2)):((6, 1), (12, 3))"
    assert pycute.tiled_divide(Layout((4, 6), (6, 1)), (2, 3)) == Layout(((2, 3), 2, 2), ((6, 1), 12, 3))
    assert pycute.zipped_divide(Layout((4, 6)), (2, None)) == Layout(((2, 1), (2, 6)), ((1, 0), (2, 4)))
    sub, begin = pycute.slice_and_offset((1, None), Layout((4, 6), (6, 1)))
    assert (sub, begin) == (Layout((6,), (1,)), 6)
    with pytest.raises(AssertionError):
        pycute.composition(Layout((6, 2), (1, 7)), Layout((3, 2), (2, 3)))


def test_what_cutlass_tests() -> None:
    """The layouts that the tests of CUTLASS's module take, and what they ask of the answers."""
    flat = [(1, 0), (1, 1), (4, 0), (4, 1), (4, 2), ((1, 1), (0, 0)), ((3, 7), (0, 0)), ((2, 4), (0, 2)), ((2, 4), (4, 1))]
    flat += [((8, 4), (1, 8)), ((8, 4), (4, 1)), ((2, 4, 6), (1, 2, 8)), ((2, 4, 6), (4, 1, 8)), ((4, 2), (1, 16))]
    flat += [((2, 4, 6), (1, 6, 2)), ((2, 1, 6), (1, 7, 2)), ((2, 1, 6), (4, 7, 8)), ((2, 4, 6), (24, 6, 1))]
    nested: list[tuple[Any, Any]] = [((2, (4, 6)), (1, (2, 8))), (((2, 2), (2, 2)), ((1, 4), (8, 32)))]
    for shape, stride in flat + nested:
        layout = Layout(shape, stride)
        assert [pycute.coalesce(layout)(i) for i in range(layout.size())] == [layout(i) for i in range(layout.size())]
        right = pycute.right_inverse(layout)
        assert all(layout(right(i)) == i for i in range(right.size()))
        if len({layout(i) for i in range(layout.size())}) == layout.size():
            left = pycute.left_inverse(layout)
            assert all(left(layout(i)) == i for i in range(layout.size()))
    gaps: list[tuple[Any, Any]] = [((2, (3, 4)), (3, (1, 6))), ((4, 6), (1, 6)), ((4, 10), (1, 10)), ((2, 4, 8), (8, 1, 64))]
    for shape, stride in [(1, 0), (1, 1), (4, 0), ((2, 4), (1, 2)), ((2, 3), (1, 2)), ((2, 4), (1, 4)), *gaps, nested[1]]:
        layout = Layout(shape, stride)
        rest = pycute.complement(layout)
        both = {layout(i) for i in range(layout.size())} & {rest(i) for i in range(rest.size())}
        assert both <= {0}
    bits = (((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
    pairs: list[tuple[Any, Any]] = [
        ((1, 0), (4, 1)), ((4, 1), (1, 0)), ((4, 2), (2, 2)), ((12, 2), ((4, 3), (3, 1))), ((12, 1), ((2, 3), (2, 4))),
        (((4, 3), (1, 4)), ((6, 2), (2, 1))), (((4, 3), (3, 1)), (12, 1)), (((4, 3), (3, 1)), ((6, 2), (2, 1))),
        (((8, 8), (1, 8)), bits), (((8, 8), (8, 1)), bits), (bits, (8, 4)), (((4, 2), (1, 16)), ((4, 2), (2, 1))),
        (((2, 2), (2, 1)), ((2, 2), (2, 1))), (((4, 8, 2), (1, 4, 32)), ((2, 2, 2), (2, 8, 1))),
        (((4, 8, 2), (2, 8, 1)), ((2, 2, 2), (1, 8, 2))), (((4, 8, 2), (2, 8, 1)), ((4, 2, 2), (2, 8, 1))),
        (((4, 6, 8), (1, 4, 7)), (6, 1)), (((4, 6, 8, 10), (2, 3, 5, 7)), (6, 12)),
    ]  # fmt: skip
    for (a_shape, a_stride), (b_shape, b_stride) in pairs:
        a, b = Layout(a_shape, a_stride), Layout(b_shape, b_stride)
        composed = pycute.composition(a, b)
        assert [composed(i) for i in range(composed.size())] == [a(b(i)) for i in range(b.size())]
    assert pycute.shape_div((6, (3, 4)), 36) == (1, (1, 2)) and pycute.shape_div(((3, 4), 6), 36) == ((1, 1), 2)
    deep = pycute.prefix_product(((2, 3), (2, 1, 2), (5, 2, 1)))
    assert deep == ((1, 2), (6, 12, 12), (24, 120, 240)) and pycute.inner_product(((2, 3), 4), ((2, 1), 2)) == 15
