# mypy: ignore-errors
"""The tiled add of the DSL page and the product of the tiling post, in Python."""

from __future__ import annotations

import tilewright as tw


@tw.jit
def tiled_add(
    mA: tw.Input("f32", "(M,N{div=4}):(N,1)"),
    mB: tw.Input("f32", "(M,N):(N,1)"),
    mC: tw.Output("f32", "(M,N):(N,1)"),
):
    thr = tw.make_ordered_layout((4, 64), order=(1, 0))
    val = tw.make_ordered_layout((4, 4), order=(1, 0))
    tiler_mn, tv_layout = tw.make_layout_tv(thr, val)

    def part(tensor):
        tiles = tw.tensor_zipped_divide(tensor, tiler_mn)
        # Neighbours among blocks are neighbours along the rows, in memory.
        block = tiles[((None, None), tw.block("(y,x)"))]
        return tw.composition(block, tv_layout, tiler_mn)[(tw.thread, None)]

    thrA, thrB, thrC = part(mA), part(mB), part(mC)
    thrC.store(thrA.load(predicated=True) + thrB.load(predicated=True), predicated=True)


@tw.jit
def tiled_gemm(
    mA: tw.Input("f32", "(M,K):(K,1)"),
    mB: tw.Input("f32", "(N{div=4},K):(1,N)"),
    mC: tw.Output("f32", "(M,N):(N,1)"),
    num_threads=256,
):
    b_m, b_n, b_k = 128, 128, 8
    sA = tw.shared("f32", tw.make_layout((b_m, b_k)))
    sB = tw.shared("f32", tw.make_layout((b_n, b_k)))

    # Neighbours along K copy A, an element each. Neighbours along N copy B, four elements each.
    tA = tw.make_layout((num_threads // b_k, b_k), stride=(b_k, 1))
    tiled_copy_A = tw.TiledCopy("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", "f32", tA, (1, 1))
    major_mode_size = b_n // 4
    tB = tw.make_layout((major_mode_size, num_threads // major_mode_size), stride=(1, major_mode_size))
    tiled_copy_B = tw.TiledCopy("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "f32", tB, (4, 1))

    atoms_layout_mnk = tw.make_layout((num_threads // 16, 16, 1), stride=(16, 1, 0))
    tiled_mma = tw.TiledMma("UniversalFMA<F32,F32,F32,F32>", atoms_layout_mnk)

    bidx, bidy = tw.block("(x,y)")
    block_tiler, cta_coords = (b_m, b_n, b_k), (bidx, bidy, None)
    gA = tw.local_tile(mA, block_tiler, cta_coords, proj=(1, None, 1))
    gB = tw.local_tile(mB, block_tiler, cta_coords, proj=(None, 1, 1))
    gC = tw.local_tile(mC, block_tiler, cta_coords, proj=(1, 1, None))

    thr_mma = tiled_mma.get_slice(tw.thread)
    tCsA, tCsB, tCgC = thr_mma.partition_A(sA), thr_mma.partition_B(sB), thr_mma.partition_C(gC)
    tCrC = tiled_mma.make_fragment_C(tCgC)
    tCrC.fill(0.0)

    for k in tw.range(tw.size(gA, mode=[2])):
        tw.copy(tiled_copy_A, gA[None, None, k], sA, predicated=True)
        tw.copy(tiled_copy_B, gB[None, None, k], sB, predicated=True)
        tw.commit_async()
        tw.wait_async(0)
        tw.barrier()
        tw.gemm(tiled_mma, tCrC, tCsA, tCsB, tCrC)
        tw.barrier()

    tCgC.store(tCrC, predicated=True)


@tw.jit
def staged_gemm(
    mA: tw.Input("f32", "(M,K):(K,1)"),
    mB: tw.Input("f32", "(N{div=4},K):(1,N)"),
    mC: tw.Output("f32", "(M,N):(N,1)"),
    num_threads=256,
    stages=3,
):
    """The post's product with copies that run ahead, and registers that are filled by vectors."""
    b_m, b_n, b_k = 128, 128, 8
    # Four elements behind each column put the neighbours along K that are copied together into
    # banks of their own.
    sA = tw.shared("f32", tw.make_layout((b_m, b_k, stages), stride=(1, b_m + 4, (b_m + 4) * b_k)))
    sB = tw.shared("f32", tw.make_layout((b_n, b_k, stages)))
    tiled_copy_A = tw.TiledCopy("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", "f32", tw.make_layout((32, b_k), stride=(b_k, 1)), (1, 1))
    tiled_copy_B = tw.TiledCopy("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "f32", tw.make_layout((32, b_k), stride=(1, 32)), (4, 1))
    # A thread has rows and columns in groups of four neighbours.
    atoms = tw.make_layout((num_threads // 16, 16, 1), stride=(16, 1, 0))
    tiled_mma = tw.TiledMma("UniversalFMA<F32,F32,F32,F32>", atoms, tw.Tiler("[(16,4):(4,1);(16,4):(4,1);_]"))

    bidx, bidy = tw.block("(y,x)")
    block_tiler, cta_coords = (b_m, b_n, b_k), (bidx, bidy, None)
    gA = tw.local_tile(mA, block_tiler, cta_coords, proj=(1, None, 1))
    gB = tw.local_tile(mB, block_tiler, cta_coords, proj=(None, 1, 1))
    gC = tw.local_tile(mC, block_tiler, cta_coords, proj=(1, 1, None))
    thr_mma = tiled_mma.get_slice(tw.thread)
    tCsA, tCsB, tCgC = thr_mma.partition_A(sA), thr_mma.partition_B(sB), thr_mma.partition_C(gC)
    tCrC = tiled_mma.make_fragment_C(tCgC)
    tCrC.fill(0.0)

    def copies(step, stage):
        tw.copy(tiled_copy_A, gA[None, None, step], sA[None, None, stage], predicated=True)
        tw.copy(tiled_copy_B, gB[None, None, step], sB[None, None, stage], predicated=True)
        tw.commit_async()

    for stage in range(stages - 1):
        copies(stage, stage)
    for k in tw.range(tw.size(gA, mode=[2])):
        tw.wait_async(stages - 2)
        tw.barrier()
        # What was multiplied in the iteration before is free; past the end zeros are copied.
        copies(k + stages - 1, (k + stages - 1) % stages)
        tw.gemm(tiled_mma, tCrC, tCsA[None, None, None, k % stages], tCsB[None, None, None, k % stages], tCrC)

    tw.wait_async(0)
    tCgC.store(tCrC, predicated=True)
