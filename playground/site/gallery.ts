// Worked problems: programs, what they show, and how they are looked at.

import type { View } from "./state";

export interface Problem {
  title: string;
  says: string;
  source: string;
  view?: Partial<View>;
}

export const GALLERY: readonly { section: string; problems: readonly Problem[] }[] = [
  {
    section: "Layouts",
    problems: [
      { title: "Row after row", says: "A matrix of 4 rows of 8, its rows contiguous.", source: "(4,8):(8,1)" },
      { title: "Column after column", says: "The same matrix the other way; a shape alone means this.", source: "(4,8)" },
      {
        title: "A nested layout",
        says: "Modes of modes: heavier lines stand where a leaf starts again.",
        source: "((2,2),(2,4)):((1,4),(2,8))",
      },
      { title: "Padding", says: "Rows of 8 that are 12 apart leave holes.", source: "(8,8):(12,1)", view: { kind: "memory" } },
      { title: "A broadcast", says: "A stride of 0 gives every row the same offsets.", source: "(4,8):(0,1)" },
      { title: "Two indices, one offset", says: "A layout need not be injective; the facts show where.", source: "(4,4):(1,3)" },
      { title: "Coordinates", says: "Strides that step in the modes of another tensor.", source: "(4,8):(1@0,1@1)" },
      { title: "Numbers known at launch", says: "M is a multiple of 64; the algebra computes with it.", source: "zipped_divide((M{div=64},128):(128,1), [64:1;32:1])" },
      { title: "The same, at M = 128", says: "Once M is known there is a picture.", source: "substitute(zipped_divide((M{div=64},128):(128,1), [64:1;32:1]), M, 128)" },
    ],
  },
  {
    section: "The algebra",
    problems: [
      { title: "A composition", says: "What B picks out of A.", source: "(6,2):(8,2) o (4,3):(3,1)" },
      {
        title: "A composition that does not exist",
        says: "Each mode alone has a composite, both together have none: 4 + 3 = 7 carries.",
        source: "(6,2):(1,7) o (3,2):(2,3)",
      },
      {
        title: "A composition by refinement",
        says: "Both layouts as morphisms, cut until they meet.",
        source: "(12,3,6):(1,72,12) o (6,6):(1,6)",
        view: { kind: "composition" },
      },
      { title: "A complement", says: "What fills the gaps up to 24.", source: "complement(4:2, 24)" },
      {
        title: "A division into tiles",
        says: "A matrix in tiles of 2 by 3, each a colour.",
        source: "zipped_divide((4,6):(6,1), [2:1;3:1])",
      },
      { title: "A product", says: "A tile of 2 by 2, laid out 3 by 4 times.", source: "blocked_product((2,2):(1,2), (3,4):(4,1))" },
      { title: "A raked product", says: "The same copies, interleaved.", source: "raked_product((2,2):(1,2), (3,4):(4,1))" },
      { title: "A right inverse", says: "From offsets back to indices.", source: "right_inverse((4,8):(8,1))" },
      { title: "A left inverse", says: "The index of each offset.", source: "left_inverse((2,2):(2,3))" },
      { title: "A layout as a morphism", says: "Modes, axes of memory, and arrows between them.", source: "(32,(2,2)):(192,(24,3))", view: { kind: "morphism" } },
      { title: "A span", says: "Sizes of modes, the leaves they are cut into, and where these go.", source: "((2,2),3):((6,1),2)", view: { kind: "span" } },
      { title: "A slice", says: "Row 2 and column 5 of a matrix, pointed out.", source: "(8,8):(8,1)", view: { slice: ["(2,_)", "(_,5)"] } },
    ],
  },
  {
    section: "The tour: a product of matrices, step by step",
    problems: [
      { title: "1. A matrix in memory", says: "512 rows of 256 halves, row after row.", source: "A = (512,256):(256,1)" },
      {
        title: "2. Blocks",
        says: "Tiles of 128 by 64: the coordinates become (inside a tile, which tile).",
        source: "A = (512,256):(256,1)\nblocks = zipped_divide(A, [128:1;64:1])",
      },
      {
        title: "3. One block",
        says: "Fix which block, and the layout of one is left.",
        source: "A = (512,256):(256,1)\nblocks = zipped_divide(A, [128:1;64:1])\ngA = blocks(_,(1,2))[0]",
      },
      {
        title: "4. In shared memory, plain",
        says: "Eight lanes that load the same piece of eight rows meet in one group of banks.",
        source: "plain = (8,64):(64,1)",
        view: { kind: "banks", "element-bits": 16, vector: 8, access: ["ldmatrix.x1"] },
      },
      {
        title: "4. In shared memory, swizzled",
        says: "The number of the row flips the number of the piece: no two rows meet.",
        source: "atom = S<3,3,3> o 0 o (8,64):(64,1)",
        view: { kind: "banks", "element-bits": 16, vector: 8, access: ["ldmatrix.x1"] },
      },
      {
        title: "5. What one instruction wants",
        says: "Which lane holds which element of A, B and C.",
        source: "SM80_16x8x16_F32BF16BF16F32_TN",
      },
      {
        title: "6. 128 threads share a tile",
        says: "Tiles of 16 by 8 through the instruction's layout, over 2 by 2 warps.",
        source: [
          "fC = ((4,8),(2,2)):((32,1),(16,8))",
          "tile = (128,128):(1,128)",
          "pieces = zipped_divide(tile, [16:1;8:1])",
          "held = composition(pieces, [fC;_])",
          "deal = zipped_divide(held[1], [2:1;2:1])",
          "ownC = make_layout(make_layout(held[0][0], deal[0]), make_layout(held[0][1], deal[1]))",
        ].join("\n"),
      },
      {
        title: "7. Where the threads read",
        says: "The swizzled block after the layout of who holds what: an address for each thread and value.",
        source: [
          "fA = ((4,8),(2,2,2)):((32,1),(16,8,128))",
          "atom = S<3,3,3> o 0 o (8,64):(64,1)",
          "sA = tile_to_shape(atom, (128,64))",
          "piecesA = zipped_divide((128,64), [16:1;16:1])",
          "heldA = composition(piecesA, [fA;_])",
          "dealA = zipped_divide(heldA[1], [2:1;1:0])",
          "ownA = make_layout(make_layout(heldA[0][0], dealA[0][0], 2:0), make_layout(heldA[0][1], dealA[1]))",
          "loadA = sA o ownA",
        ].join("\n"),
      },
    ],
  },
  {
    section: "Memory",
    problems: [
      {
        title: "A bank conflict",
        says: "Lanes down a column of 32 words: one bank, 32 times.",
        source: "(32,32):(32,1)",
        view: { kind: "banks", "element-bits": 32, access: ["columns"] },
      },
      {
        title: "What would cost less",
        says: "Swizzles and paddings are counted; each says what is shown of it.",
        source: "(32,32):(32,1)",
        view: { kind: "suggest", "element-bits": 32, access: ["rows", "columns"] },
      },
      {
        title: "Sectors of a row",
        says: "Lanes along a row ask for all bytes of what moves.",
        source: "(32,64):(64,1)",
        view: { kind: "sectors", "element-bits": 32, access: ["rows"] },
      },
      {
        title: "Sectors of a column",
        says: "Lanes down a column ask for an eighth of it.",
        source: "(32,64):(64,1)",
        view: { kind: "sectors", "element-bits": 32, access: ["columns"] },
      },
      { title: "Hopper's swizzle of 128 bytes", says: "For halves.", source: "S<3,3,3> o 0 o (8,64):(64,1)", view: { "element-bits": 16 } },
      { title: "Hopper's swizzle of 64 bytes", says: "For halves.", source: "S<2,3,3> o 0 o (8,32):(32,1)", view: { "element-bits": 16 } },
      { title: "Hopper's swizzle of 32 bytes", says: "For halves.", source: "S<1,3,3> o 0 o (8,16):(16,1)", view: { "element-bits": 16 } },
      { title: "A swizzle as bits", says: "A linear map over bits is its matrix.", source: "bit_matrix(S<2,0,3>)" },
    ],
  },
  {
    section: "Threads and values",
    problems: [
      {
        title: "Threads that copy a tile",
        says: "32 threads, each with 2 by 2 neighbours.",
        source: "raked_product((4,8):(8,1), (2,2):(1,2))",
        view: { kind: "offsets", shade: "palette" },
      },
      {
        title: "A tiled product",
        says: "The instruction, tiled two by two.",
        source: "SM80_16x8x16_F32F16F16F32_TN",
        view: { atoms: "(2,2)" },
      },
      {
        title: "The sums of a matrix instruction",
        says: "Click a thread to see it alone.",
        source: "((4,8),(2,2)):((32,1),(16,8))",
        view: { kind: "thread-value", tile: "(16,8)" },
      },
      { title: "A matrix instruction of Ampere", says: "All three operands.", source: "SM80_16x8x16_F32F16F16F32_TN" },
      { title: "A matrix load", says: "What each thread points at, and what it gets.", source: "SM75_U32x4_LDSM_N" },
      {
        title: "A tiled copy",
        says: "Who reads and who writes which element.",
        source: "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>",
        view: { threads: "(4,8):(8,1)", values: "(1,8)", "element-bits": 16 },
      },
    ],
  },
  {
    section: "Pasted from other systems",
    problems: [
      {
        title: "A swizzled tile, printed by CuTe",
        says: "The print counts bytes in its swizzle and elements in its layout; here both count elements.",
        source: "sA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
      },
      {
        title: "A type from an error message",
        says: "The same tile, as a compiler spells it.",
        source:
          "cute::ComposedLayout<cute::Swizzle<3, 4, 3>, cute::smem_ptr_flag_bits<16>, cute::Layout<cute::tuple<cute::C<8>, cute::C<64>>, cute::tuple<cute::C<64>, cute::C<1>>>>",
      },
      {
        title: "An encoding of Triton with its alias",
        says: "Which register, lane and warp holds which element of the tile.",
        source:
          "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>\n%acc = arith.constant dense<0.0> : tensor<16x8xf32, #mma>",
      },
      {
        title: "A tiled MMA, printed by CuTe's Python",
        says: "Operands of wgmma are in shared memory, so layout A gives every thread the whole tile.",
        source: "tiled_mma = Tiled MMA\n  Thr Layout VMNK: (128,1,1,1):(1,0,0,0)\n  Permutation MNK: (_,_,_)\nMMA Atom\n  ThrID:           128:1\n  Shape MNK:       (64,64,16)\n  TV Layout A:     (128,(64,16)):(0,(1,64))\n  TV Layout B:     (128,(64,16)):(0,(1,64))\n  TV Layout C:     ((4,8,4),(2,2,8)):((128,1,16),(64,8,512))",
      },
      {
        title: "A composition that a compiler refused",
        says: "The log holds both layouts. The condition of CuTe is sufficient, not necessary: the result exists.",
        source: "cute/layout.hpp(1077): error: static assertion failed with \"Stride Divisibility Condition\"\n                       ^\n          detected during:\n            instantiation of \"auto cute::detail::composition_impl(const LShape &, const LStride &, const RShape &, const RStride &) [with LShape=cute::tuple<cute::_6, cute::_2, cute::_3>, LStride=cute::tuple<cute::_1, cute::_7, cute::_24>, RShape=cute::_2, RStride=cute::_8]\" at line 1038\n            instantiation of \"auto cute::detail::composition_impl(const LShape &, const LStride &, const RShape &, const RStride &) [with LShape=cute::tuple<cute::_6, cute::_2, cute::_3>, LStride=cute::tuple<cute::_1, cute::_7, cute::_24>, RShape=cute::tuple<cute::_2, cute::_3>, RStride=cute::tuple<cute::_8, cute::_1>]\" at line 1140\n            instantiation of \"auto cute::composition(const cute::Layout<LShape, LStride> &, const cute::Layout<RShape, RStride> &) [with LShape=cute::tuple<cute::_6, cute::_2, cute::_3>, LStride=cute::tuple<cute::_1, cute::_7, cute::_24>, RShape=cute::tuple<cute::_2, cute::_3>, RStride=cute::tuple<cute::_8, cute::_1>]\" at line 4 of errs.cu\n\n1 error detected in the compilation of \"errs.cu\".",
      },
      {
        title: "Strides of NumPy",
        says: "NumPy counts bytes; the type of the elements says how many make one.",
        source: "shape=(4, 8), strides=(32, 4), dtype=float32",
      },
      {
        title: "channels_last in PyTorch: where did the channels go?",
        says: "The shape stays N, C, H, W; the strides show that C is the fastest.",
        source: "torch.Size([2, 4, 3, 3]) stride=(36, 1, 12, 4)",
      },
      {
        title: "Which lane holds what, in a blocked encoding of Gluon?",
        says: "Two lanes of a row hold four elements each; the warps follow each other down the rows.",
        source: "# shape: (32,8)\ngl.BlockedLayout([1, 4], [16, 2], [2, 1], [1, 0])",
      },
      {
        title: "Is vec = 8, maxPhase = 8 of Triton the 128-byte swizzle?",
        says: "For rows of 64 halves it is: the same S<3,3,3> that CuTe has.",
        source: "!ttg.memdesc<8x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>, #ttg.shared_memory, mutable>",
      },
      {
        title: "The accumulator of MFMA: why four rows a lane?",
        says: "On AMD a wave has 64 lanes. Each holds four neighbouring rows of one column, in groups.",
        source: "tensor<16x16xf32, #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 16], isTransposed = false}>>",
      },
      {
        title: "A fragment that TileLang inferred",
        says: "Expressions of indices, evaluated everywhere: it is the accumulator of mma.m16n8k16.",
        source:
          "Fragment([16, 8] -> [4], replicate: 1, thread: 32, forward_thread: _i % 8 * 4 + _j // 2, forward_index: [_i // 8 * 2 + _j % 2])",
        view: { kind: "thread-value", tile: "(16,8)" },
      },
      {
        title: "A swizzle that TileLang writes with XOR",
        says: "The row flips the number of the piece, as in Hopper's swizzle.",
        source: "T.Layout((8, 64), lambda i, j: i * 64 + (j // 8 ^ i) * 8 + j % 8)",
      },
      {
        title: "Two views of tinygrad: one strided array?",
        says: "Transposed and transposed again: the composition is a matrix whose rows are contiguous.",
        source:
          "ShapeTracker(views=(View(shape=(8, 4), strides=(1, 8), offset=0, mask=None, contiguous=False), View(shape=(4, 8), strides=(1, 4), offset=0, mask=None, contiguous=False)))",
      },
      {
        title: "A memref in the IR of CuTe's Python",
        says: "The swizzle stands beside the alignment, so it belongs to the pointer and counts bytes.",
        source: "!cute.memref<f16, smem, align<1024>, S<3,4,3>, \"(8,64):(64,1)\">",
      },
      {
        title: "Which device holds which row? A sharding of JAX",
        says: "PartitionSpec('tp', None): the rows are cut over tp, and each part has a copy for each index of dp.",
        source: "# shape: (8,6)\nNamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))",
      },
      {
        title: "Seven rows on four devices, in DTensor",
        says: "Shards have the rounded-up size of two rows, and the last one has a single row.",
        source:
          "DTensorSpec(mesh=DeviceMesh('cuda', [0, 1, 2, 3], mesh_dim_names=('tp',)), placements=(Shard(dim=0),), tensor_meta=TensorMeta(shape=torch.Size([7, 6]), stride=(6, 1), dtype=torch.float32))",
      },
    ],
  },
];

// Kernels, and where to look: fragments of links.
export const KERNELS: readonly { title: string; says: string; fragment: string }[] = [
  { title: "A sum of matrices", says: "Each thread loads, adds and stores its part of a tile.", fragment: "kernel=tiled_add&pane=steps&access=1" },
  { title: "A transposition", says: "Through shared memory: who reads rows, who writes columns, and at what cost in wavefronts.", fragment: "kernel=transpose&pane=steps&access=4" },
  { title: "A product of matrices", says: "Copies behind the threads' backs, a ring of stages, matrix instructions.", fragment: "kernel=product&pane=steps&access=1" },
  { title: "A GEMM for Hopper", says: "A producer warp issues TMA loads; consumer warpgroups multiply.", fragment: "kernel=group_product&pane=steps&access=2" },
  { title: "A softmax", says: "Rows in registers; lanes exchange maxima and sums.", fragment: "kernel=softmax&pane=steps&access=1" },
  { title: "What a product costs", says: "Counted before it runs: registers, occupancy, sectors, wavefronts, bounds of its time.", fragment: "kernel=product&pane=cost" },
];
