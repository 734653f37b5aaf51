"""The examples of the page on Enigma's layouts run with `tilewright` in the place of `enigma`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as enigma


def test_the_layout_type() -> None:
    L = enigma.Layout((4, 8), (1, 4))
    assert [L((0, 0)), L((1, 0)), L((0, 1)), L((2, 3))] == [0, 1, 4, 14]
    assert (enigma.size(L), enigma.size(L, mode=[0]), enigma.size(L, mode=[1])) == (32, 4, 8)


def test_creating_layouts() -> None:
    assert enigma.Layout((4, 8), (8, 1))((1, 0)) == 8 and enigma.Layout((4, 8), (1, 4))((0, 1)) == 4
    assert enigma.make_layout((4, 8), stride=(8, 1)) == enigma.Layout((4, 8), (8, 1))
    # The mode with the least key is the fastest.
    assert enigma.make_ordered_layout((4, 64), order=(1, 0)) == enigma.Layout((4, 64), (64, 1))
    # The identity gives coordinates, as in CuTe.
    assert str(enigma.make_identity_layout((4, 8))) == "(4,8):(1@0,1@1)"


def test_transforming_layouts() -> None:
    L = enigma.Layout(((4, 8),), ((1, 4),))
    assert enigma.coalesce(L) == enigma.Layout(32, 1)
    assert enigma.complement(enigma.Layout(4, 2), 24) == enigma.Layout((2, 3), (1, 8))
    Lt = enigma.zipped_divide(enigma.Layout((64, 512), (512, 1)), (16, 8))
    assert Lt == enigma.Layout(((16, 8), (4, 64)), ((512, 1), (8192, 8)))
    a, b = enigma.Layout((6, 2), (8, 2)), enigma.Layout((4, 3), (3, 1))
    assert enigma.composition(a, b) == a @ b
    assert enigma.blocked_product(enigma.Layout((2, 5), (5, 1)), (3, 4)).shape == ((2, 3), (5, 4))
    assert enigma.recast_layout(new_bits=16, old_bits=32, layout=enigma.Layout((4, 8), (1, 4))) == enigma.Layout((8, 8), (1, 8))


def test_thread_value_layout() -> None:
    thr = enigma.make_ordered_layout((4, 64), order=(1, 0))
    val = enigma.make_ordered_layout((4, 4), order=(1, 0))
    tiler_mn, tv_layout = enigma.make_layout_tv(thr, val)
    assert tiler_mn == (16, 256)
    assert (enigma.size(tv_layout, mode=[0]), enigma.size(tv_layout, mode=[1])) == (256, 16)
    assert sorted(tv_layout.offsets()) == list(range(4096))
    assert str(tv_layout) == "((64,4),(4,4)):((64,4),(16,1))"
    # A thread's fragment of a block of a tensor, as the page cuts it.
    tensor = enigma.Layout((64, 512), (512, 1))
    block = enigma.tensor_zipped_divide(tensor, tiler_mn)((None, None), (1, 1))
    fragment, begin = enigma.slice_and_offset(enigma.composition(block.coalesce((1, 1)), tv_layout), (5, None))
    wanted = {(16 + m) * 512 + 256 + n for m in range(16) for n in range(256) if (m // 4, n // 4) == (0, 5)}
    base = tensor(16, 256)
    assert {base + begin + int(o) for o in fragment.offsets()} == wanted


def test_the_kernel_of_the_page() -> None:
    """As on the page, where `...` and `thread_idx` are the block and the thread: its arrays say which layouts it is for."""
    thread_idx: Any = enigma.thread

    @enigma.jit
    def tiled_kernel(mA: Any, mB: Any, mC: Any) -> None:
        thr = enigma.make_ordered_layout((4, 64), order=(1, 0))
        val = enigma.make_ordered_layout((4, 4), order=(1, 0))
        tiler_mn, tv_layout = enigma.make_layout_tv(thr, val)

        def part(tensor: Any) -> Any:
            # Partition tensor into blocks
            gA = enigma.tensor_zipped_divide(tensor, tiler_mn)
            block_idx = enigma.block("(x,y)")

            # Slice one block
            blkA = gA[((None, None), block_idx)]

            # Per-thread fragment
            return enigma.tensor_composition(blkA, tv_layout, tiler_mn)[(thread_idx, None)]

        thrA, thrB, thrC = part(mA), part(mB), part(mC)
        thrC.store(thrA.load() + thrB.load())

    a = np.arange(64 * 512, dtype=np.float32).reshape(64, 512)
    c = np.zeros_like(a)
    tiled_kernel(a, 1 - a, c)
    assert (c == 1).all()
    tiled_kernel.check(a, 1 - a, c)
