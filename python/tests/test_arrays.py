"""Arrays of indices: at each place what the layout has at the index there."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilewright as tw
from plain import like, random_shape, size, value


def test_offsets_and_arrays() -> None:
    source = random.Random(5)
    for _ in range(200):
        shape = random_shape(source, depth=3)
        stride = like(shape, lambda: source.randint(-9, 30))
        layout = tw.Layout(shape, stride)
        # Past the end too.
        indices = np.arange(2 * size(shape) + 4)
        wanted = [value(shape, stride, int(index)) for index in indices]
        assert layout(indices).tolist() == wanted
        assert layout.offsets().tolist() == wanted[: size(shape)]
        assert layout(indices[::-2]).tolist() == wanted[::-2]
        assert layout(indices[-6:].reshape(2, 3).T.astype(np.int32)).tolist() == np.array(wanted[-6:]).reshape(2, 3).T.tolist()


@pytest.mark.parametrize("text", ["(4,(2,3)):(6,(1,2))", "S<2,0,2> o 0 o (4,8):(8,1)", "(8,4):(^1,^9)"])
def test_coordinates_broadcast(text: str) -> None:
    layout = tw.Layout(text)
    rows, columns = (tw.size(layout, mode=[mode]) for mode in (0, 1))
    made = layout(np.arange(rows)[:, None], np.arange(columns, dtype=np.uint8))
    assert made.shape == (rows, columns) and made.dtype == np.int64
    for i in range(rows):
        for j in range(columns):
            assert made[i, j] == layout(i, j)


def test_integers_of_numpy() -> None:
    layout = tw.Layout((4, 8), (8, 1))
    assert layout(np.int64(5)) == layout(5) and tw.Layout((np.int32(4), 8)) == tw.Layout((4, 8))
    assert layout(np.array(5)).item() == layout(5)
    assert layout(np.zeros((0, 3), dtype=int)).shape == (0, 3)


def test_refused_arrays() -> None:
    layout = tw.Layout((4, 8), (8, 1))
    for wrong in (np.ones(3), np.ones(3, dtype=bool), np.ones(3, dtype=np.uint64), np.array(["a"])):
        with pytest.raises(TypeError):
            layout(wrong)
    with pytest.raises(ValueError):
        layout(np.arange(4), np.arange(3))
    with pytest.raises(ValueError):
        layout(np.arange(4), np.arange(4), np.arange(4))
    with pytest.raises(TypeError):
        tw.Layout("(M,4)")(np.arange(4))
    with pytest.raises(TypeError):
        tw.make_identity_layout((4, 8)).offsets()
    with pytest.raises(tw.LayoutError):
        tw.Layout(2, 2**62)(np.arange(9))
    with pytest.raises(ValueError):
        tw.Layout("S<2,0,2> o 0 o (4,8):(8,1)")(np.arange(5), np.arange(5))
