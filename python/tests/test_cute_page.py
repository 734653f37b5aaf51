# mypy: ignore-errors
"""CuTe's idiom: partitions are moved and multiplied as they are, with CuTe DSL's spellings."""

from __future__ import annotations

import numpy as np
import pytest
from cute_page import of_any_size, of_one_size

import tilewright as tw


def numbers(shape, by):
    return (np.arange(np.prod(shape)) * by % 17 - 8).astype(np.float32).reshape(shape)


@pytest.mark.parametrize("sizes", [(37, 44, 19), (32, 32, 8), (1, 4, 1), (70, 36, 25)])
def test_the_product_of_the_post(sizes):
    m, n, k = sizes
    a, b, c = numbers((m, k), 5), numbers((n, k), 7), np.full((m, n), np.nan, np.float32)
    b = np.asfortranarray(b)
    of_any_size(a, b, c)
    assert (c == a @ b.T).all()
    if sizes == (37, 44, 19):
        of_any_size.check(a, b, c)
        c[:] = np.nan
        of_one_size(a, b, c)
        assert (c == a @ b.T).all()
        of_one_size.check(a, b, c)


def refused(write, threads=32):
    with pytest.raises(tw.KernelError) as error:
        tw.jit(threads=threads)(write).program()
    return error.value


COPY = tw.make_tiled_copy_tv("UniversalCopy<uint32_t>", 32, tw.make_layout((8, 4), stride=(4, 1)), (1, 1))
OTHER = tw.make_tiled_copy_tv("UniversalCopy<uint32_t>", 32, tw.make_layout((4, 8), stride=(8, 1)), (1, 1))
ASYNC = tw.make_tiled_copy_tv("SM80_CP_ASYNC_CACHEALWAYS_uint32_t", 32, tw.make_layout((8, 4), stride=(4, 1)), (4, 1))


def test_parts_are_moved_as_they_are():
    for predicated in (False, True):

        @tw.jit(threads=32)
        def moved(x: tw.Input("f32", "(32,32):(32,1)"), y: tw.Output("f32", "(32,32):(1,32)")):
            thr = COPY.get_slice(tw.arch.thread_idx()[0])
            tw.copy(COPY, thr.partition_S(x), thr.partition_D(y), predicated=predicated)

        x, y = numbers((32, 32), 3), np.zeros((32, 32), np.float32, order="F")
        moved(x, y)
        assert (x == y).all()


def test_what_does_not_go_together_is_refused_by_name():
    def overrun(x: tw.Input("f32", "(M,4):(4,1)")):
        held = tw.shared("f32", "(16,4):(4,1)")
        tile = x.local_tile((32, 4), (tw.block("x"), 0))
        thr = ASYNC.get_slice(tw.thread)
        tw.copy(ASYNC, thr.partition_S(tile), thr.partition_D(held), predicated=True)

    assert refused(overrun).code == "E0903"

    def mixed(x: tw.Input("f32", "(16,16):(16,1)"), y: tw.Output("f32", "(16,16):(16,1)")):
        tw.copy(COPY, COPY.partition_S(x), y)

    assert refused(mixed).code == "E0924" and "a tile that is not partitioned" in refused(mixed).message

    def of_others(x: tw.Input("f32", "(16,16):(16,1)"), y: tw.Output("f32", "(16,16):(16,1)")):
        tw.copy(COPY, OTHER.partition_S(x), OTHER.partition_D(y))

    assert refused(of_others).code == "E0924"

    def of_other_threads(x: tw.Input("f32", "(16,16):(16,1)"), y: tw.Output("f32", "(16,16):(16,1)")):
        tw.copy(COPY, COPY.get_slice(3).partition_S(x), COPY.get_slice(tw.thread).partition_D(y))

    assert refused(of_other_threads).code == "E0924" and "thread 3" in refused(of_other_threads).message

    def rows(x: tw.Input("f32", "(32,16):(16,1)"), y: tw.Output("f32", "(32,16):(16,1)")):
        tw.copy(COPY, x[tw.thread, None], y[tw.thread(), None])

    assert refused(rows).code == "E0924"

    def again(x: tw.Input("f32", "(16,16):(16,1)")):
        COPY.partition_S(COPY.partition_S(x))

    assert refused(again).code == "E0924"

    def beyond(x: tw.Input("f32", "(16,16):(16,1)")):
        COPY.partition_S(x).load()[9] = 0.0

    assert refused(beyond).code == "E0925"

    def backwards(x: tw.Input("i32", "32:1")):
        x.recast("f32", "32:-1")

    assert refused(backwards).code == "E0903"


def test_a_slice_is_of_the_thread_that_is_named():
    @tw.jit(threads=1)
    def fifth(x: tw.Input("f32", "(16,8):(8,1)"), y: tw.Output("f32", "(1,2,2)")):
        y.store(COPY.get_slice(5).partition_S(x).load())

    x, y = numbers((16, 8), 3), np.zeros((1, 2, 2), np.float32, order="F")
    fifth(x, y)
    assert y.ravel("F").tolist() == [x[1, 1], x[9, 1], x[1, 5], x[9, 5]]


def test_fragments_are_written_by_index():
    @tw.jit(threads=32)
    def counted(y: tw.Output("i32", "(32,4):(4,1)")):
        own = tw.make_rmem_tensor((2, 2), tw.Int32)
        for i in range(4):
            own[i] = i
        own[1, 1] = own[1, 0] + 10
        y[tw.thread, None].store(own)

    y = np.zeros((32, 4), np.int32)
    counted(y)
    assert (y == [0, 1, 2, 11]).all()


def test_tiled_copies_are_values_of_the_language_too():
    copy = tw.make_tiled_copy_tv("UniversalCopy_uint64_t", 16, "(8,8):(8,1)", (1, 4))
    assert isinstance(copy, tw.TiledCopy)
    # As a row of the table: the example of `partition_S`.
    assert str(tw.partition_S(copy.get_slice(9), "(16,64):(64,1)")) == "1:1 o 68 o ((4,1),2,2):((1,0),512,32)"
    assert copy.get_slice(9).partition_S("(16,64):(64,1)") == tw.partition_S(copy.get_slice(9), "(16,64):(64,1)")
    assert str(tw.layoutS_TV(copy)) == "((1,(8,8)),(4,1)):((0,(32,1)),(8,0))"
    mma = tw.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    assert isinstance(mma, tw.TiledMma)
    assert str(mma.get_slice(5).partition_C((32, 32))) == str(tw.partition_C(mma.get_slice(5), (32, 32)))
    load = tw.make_tiled_copy_A("SM75_U32x4_LDSM_N", mma)
    assert isinstance(load, tw.TiledCopy)
    assert str(load.retile_D("((2,2,2),2,2):((1,2,4),16,8)")) == str(tw.retile_D(load, "((2,2,2),2,2):((1,2,4),16,8)"))


def test_operations_are_instructions():
    nvgpu, atom = tw.nvgpu, tw.make_copy_atom
    assert atom(nvgpu.CopyUniversalOp(), tw.Float16).instruction == "UniversalCopy<uint16_t>"
    assert atom(nvgpu.CopyUniversalOp(), np.float64).instruction == "UniversalCopy<uint64_t>"
    g2s = nvgpu.cpasync.CopyG2SOp(nvgpu.cpasync.LoadCacheMode.GLOBAL)
    assert atom(g2s, tw.Float16, num_bits_per_copy=128).instruction == "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"
    assert atom(nvgpu.warp.LdMatrix8x8x16bOp(True, 4), tw.Float16).instruction == "SM75_U16x8_LDSM_T"
    assert atom(nvgpu.warp.StMatrix8x8x16bOp(False, 2), tw.Float16).instruction == "SM90_U32x2_STSM_N"
    assert tw.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(tw.BFloat16, tw.Float32)).instruction == "SM80_16x8x16_F32BF16BF16F32_TN"
    with pytest.raises(ValueError, match="32, 64, 128"):
        atom(nvgpu.cpasync.CopyG2SOp(), tw.Float16)
    for name in ("CopyUniversalOp", "MmaUniversalOp", "cpasync", "warp"):
        assert hasattr(nvgpu, name)


def test_how_many_blocks_and_threads_there_are():
    @tw.jit(threads=32)
    def counted(y: tw.Output("i32", "(A,B,32):(B*32,32,1)")):
        blocks, threads = tw.arch.grid_dim(), tw.arch.block_dim()
        assert threads == (32, 1, 1) and tw.block_dim() == 32
        x, down, _ = tw.arch.block_idx()
        own = y[x, down, None].compose("(32,1):(1,0)")[tw.thread, None]
        number = tw.number(x) + tw.number(down) * tw.number(blocks[0])
        own.store(number * 1000 + tw.number(tw.grid_dim("y")) * 10 + tw.number(blocks[2]))

    for a, b in [(1, 1), (3, 2), (2, 5)]:
        y = np.zeros((a, b, 32), np.int32)
        counted(y)
        assert (y[:, :, 0] == np.arange(a)[:, None] * 1000 + np.arange(b) * a * 1000 + b * 10 + 1).all() and (y == y[..., :1]).all()
    counted.check(A=3, B=2)
    assert "%nctaid.x" in counted.ptx("sm_80")

    # A number that is said is that number; threads that nobody said are refused.
    @tw.jit(threads=32)
    def said(y: tw.InOut("i32", "32:1")):
        tw.grid("x", 3)
        assert tw.grid_dim("x") == 3

    said.program()

    def unsaid(y: tw.Output("i32", "32:1")):
        tw.block_dim()

    with pytest.raises(tw.KernelError, match="number of threads"):
        tw.jit(unsaid).program()
    with pytest.raises(ValueError, match="not 'w'"):
        tw.jit(lambda y: tw.grid_dim("w"), y=tw.Output("i32", "32:1")).program()


@pytest.mark.parametrize("atom", ["UniversalCopy<uint32_t>", "SM80_CP_ASYNC_CACHEALWAYS_uint32_t"])
def test_one_condition_for_a_copy(atom):
    copy = tw.make_tiled_copy_tv(atom, 32, tw.make_layout((8, 4), stride=(4, 1)), (1, 2))

    def kernel(pred):
        @tw.jit(threads=32)
        def some(x: tw.Input("f32", "(8,8):(8,1)"), y: tw.InOut("f32", "(8,8):(8,1)")):
            held = tw.shared("f32", "(8,8):(8,1)")
            plain = tw.make_tiled_copy_tv("UniversalCopy<uint32_t>", 32, tw.make_layout((8, 4), stride=(4, 1)), (1, 2))
            tw.copy(plain, y, held)
            tw.barrier()
            tw.copy(copy, x, held, pred=pred())
            tw.commit_async()
            tw.wait_async(0)
            tw.barrier()
            tw.copy(plain, held, y)

        return some

    x = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
    # `cp.async` writes zeros where the condition is false, and other instructions leave what is there.
    left = 0.0 if "ASYNC" in atom else -1.0
    for pred, taken in [
        (lambda: tw.thread() < 10, np.repeat(np.arange(32) < 10, 2).reshape(8, 8)),
        (lambda: (tw.thread() >= 4) & ~(tw.thread() == 5), np.repeat((np.arange(32) >= 4) & (np.arange(32) != 5), 2).reshape(8, 8)),
        (lambda: tw.thread() < 32, np.ones((8, 8), bool)),
        (lambda: False, np.zeros((8, 8), bool)),
        (lambda: True, np.ones((8, 8), bool)),
    ]:
        y = np.full((8, 8), -1.0, np.float32)
        kernel(pred)(x, y)
        assert (y == np.where(taken, x, left)).all()
    for wrong in (1, "x", [True]):
        with pytest.raises(TypeError, match="pred is a tensor of predicates"):
            kernel(lambda: wrong).program()


def test_memory_that_goes_backwards_is_refused():
    @tw.jit(threads=32)
    def kernel(x, y):
        y.compose("(32,1):(1,0)")[tw.thread, None].store(x.compose("(32,1):(1,0)")[tw.thread, None].load())

    @tw.tile(grid="1")
    def program(x, y):
        y.store((0,), x.load((32,), (0,)))

    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    for call in (kernel, program):
        call(x, y)
        assert (x == y).all()
        for own in [(x[::-1], y), (x, y[::-1])]:
            with pytest.raises((tw.KernelError, tw.LayoutError, ValueError)) as refused:
                call(*own)
            assert "-1" in str(refused.value) or "backwards" in str(refused.value), refused.value
