# mypy: ignore-errors
"""The product of the tiling post as CuTe DSL writes it, with this package under the names of its modules.

What stands between the marks is the post's own idiom. Lines that differ from it are marked, with the reason.
"""

from __future__ import annotations

import tilewright as cutlass
import tilewright as cute

dtype = acc_dtype = cutlass.Float32
num_threads = 64
b_m, b_n, b_k = 32, 32, 8
block_tiler = (b_m, b_n, b_k)

# Layouts of shared memory: M and N are contiguous.
sA_layout = cute.make_layout((b_m, b_k))
sB_layout = cute.make_layout((b_n, b_k))

# A: one element a thread, neighbours along K.
tA = cute.make_layout((num_threads // b_k, b_k), stride=(b_k, 1))
copy_atom_A = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), dtype, num_bits_per_copy=dtype.width)
tiled_copy_A = cute.make_tiled_copy_tv(copy_atom_A, thr_layout=tA, val_layout=cute.make_layout((1, 1)))

# B: four elements a thread, neighbours along N.
num_vectorized = 4
copy_atom_B = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), dtype, num_bits_per_copy=dtype.width * num_vectorized)
major_mode_size = b_n // num_vectorized
tB = cute.make_layout((major_mode_size, num_threads // major_mode_size), stride=(1, major_mode_size))
tiled_copy_B = cute.make_tiled_copy_tv(copy_atom_B, thr_layout=tB, val_layout=cute.make_layout((num_vectorized, 1)))

# The post has 16 threads along N, and 256 of them in all.
atoms_layout_mnk = cute.make_layout((num_threads // 8, 8, 1), stride=(8, 1, 0))
tiled_mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(abacc_dtype=acc_dtype), atom_layout_mnk=atoms_layout_mnk)


def product(mA, mB, mC, loop):
    """The post's kernel; `loop` is `range`, or `tw.range` where sizes become known at launch."""
    bidx, bidy, _ = cute.arch.block_idx()
    cta_coords = (bidx, bidy, None)

    gA = cute.local_tile(mA, block_tiler, cta_coords, proj=(1, None, 1))
    gB = cute.local_tile(mB, block_tiler, cta_coords, proj=(None, 1, 1))
    gC = cute.local_tile(mC, block_tiler, cta_coords, proj=(1, 1, None))

    # Differs: shared memory is declared, and not taken from an allocator of bytes.
    sA = cute.shared(dtype, sA_layout)
    sB = cute.shared(dtype, sB_layout)

    tidx, _, _ = cute.arch.thread_idx()
    thr_mma = tiled_mma.get_slice(tidx)

    thr_copy_A = tiled_copy_A.get_slice(tidx)
    tAgA = thr_copy_A.partition_S(gA)
    tAsA = thr_copy_A.partition_D(sA)

    thr_copy_B = tiled_copy_B.get_slice(tidx)
    tBgB = thr_copy_B.partition_S(gB)
    tBsB = thr_copy_B.partition_D(sB)

    tCsA = thr_mma.partition_A(sA)
    tCsB = thr_mma.partition_B(sB)
    tCgC = thr_mma.partition_C(gC)
    tCrC = tiled_mma.make_fragment_C(tCgC)
    tCrC.fill(0.0)

    # The post leaves out how the predicates of A and B are made: from identity tensors, for the rows alone. Along K
    # the copies of a tile are cut where the tensor ends.
    cA = cute.local_tile(cute.make_identity_tensor(mA.shape), block_tiler, cta_coords, proj=(1, None, 1))
    cB = cute.local_tile(cute.make_identity_tensor(mB.shape), block_tiler, cta_coords, proj=(None, 1, 1))
    tAcA = thr_copy_A.partition_S(cA)
    tBcB = thr_copy_B.partition_S(cB)

    def rows(tcc, tss, extent):
        pred = cute.make_rmem_tensor(
            cute.make_layout(
                (tss.shape[0][1], cute.size(tss, mode=[1]), cute.size(tss, mode=[2])),
                stride=(cute.size(tss, mode=[1]), 1, 0),
            ),
            cutlass.Boolean,
        )
        for rest_v in range(pred.shape[0]):
            for m in range(pred.shape[1]):
                pred[rest_v, m, 0] = cute.elem_less(tcc[(0, rest_v), m, 0, 0][0], extent)
        return pred

    tApA = rows(tAcA, tAsA, mA.shape[0])
    tBpB = rows(tBcB, tBsB, mB.shape[0])

    k_tiles = cute.size(tAgA, mode=[3])

    for k in loop(k_tiles):
        cute.copy(tiled_copy_A, tAgA[None, None, None, k], tAsA, pred=tApA)
        cute.copy(tiled_copy_B, tBgB[None, None, None, k], tBsB, pred=tBpB)

        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()

        cute.gemm(tiled_mma, tCrC, tCsA, tCsB, tCrC)
        cute.arch.sync_threads()

    cC = cute.make_identity_tensor(gC.shape)
    tCpC = thr_mma.partition_C(cC)
    predC = cute.make_rmem_tensor(tCrC.layout, cutlass.Boolean)
    residue_m = mC.shape[0] - b_m * bidx
    residue_n = mC.shape[1] - b_n * bidy
    for i in range(cute.size(tCrC.shape)):
        predC[i] = cute.elem_less(tCpC[i], (residue_m, residue_n))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mC.element_type)
    cute.copy(atom, tCrC, tCgC, pred=predC)


# Differs: what the arguments are stands in the annotations, and the number of threads in the decorator; the grid
# follows from the tiles. A loop whose count becomes known at launch is written with `range` of this package.
@cute.jit(threads=num_threads)
def of_any_size(
    mA: cute.Input("f32", "(M,K):(K,1)"), mB: cute.Input("f32", "(N{div=4},K):(1,N)"), mC: cute.Output("f32", "(M,N):(N,1)")
):
    product(mA, mB, mC, cute.range)


# Where the sizes are known, Python's own `range` unrolls the loop, as the post writes it.
@cute.jit(threads=num_threads)
def of_one_size(
    mA: cute.Input("f32", "(37,19):(19,1)"), mB: cute.Input("f32", "(44,19):(1,44)"), mC: cute.Output("f32", "(37,44):(44,1)")
):
    product(mA, mB, mC, range)
