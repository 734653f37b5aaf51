//! Text of other systems: read as what it means, or refused by name, and never taken for something
//! else.
//!
//! The spellings are those of debuggers, compilers, logs and dumps of CuTe in C++ and Python,
//! Triton, Gluon, TileLang, TVM, tinygrad, NumPy, PyTorch, JAX and XLA.

use tilewright_notation::{Batch, Environment, evaluate};

/// Spellings that mean here what they mean there.
const READ: &[(&str, &str)] = &[
    ("_4", "4"),
    ("(_8,_64):(_64,_1)", "(8,64):(64,1)"),
    ("TiledNumThr:128", "TiledNumThr:128"),
    ("(4,8):(?{div=16},1)", "(4,8):(?{div=16},1)"),
    ("(4,8):(?{i64 div=8},1)", "(4,8):(?{div=8},1)"),
    ("(4,8):(?{i64},1)", "(4,8):(?,1)"),
    ("(?,?{i64}):(1,?{i64 div=8})", "(?,?):(1,?{div=8})"),
    ("1@0", "1@0"),
    ("make_layout((4,8), stride=(8,1))", "(4,8):(8,1)"),
    ("CDNA3_16x16x16_F32F16F16_MFMA", "CDNA3_16x16x16_F32F16F16_MFMA"),
    ("SM90_64x128x32_F32E4M3E4M3_SS", "SM90_64x128x32_F32E4M3E4M3_SS"),
    ("SM61_1x1x4_S32S8S8S32", "SM61_1x1x4_S32S8S8S32"),
    ("XeHPC_8x8x8_F32BF16BF16_DPAS", "XeHPC_8x8x8_F32BF16BF16_DPAS"),
    ("SM80_16x8x32_S32S4S4S32_TN", "SM80_16x8x32_S32S4S4S32_TN"),
];

/// Spellings that are refused as another system's.
const REFUSED: &[&str] = &[
    "cute::Layout<cute::tuple<cute::C<4>, cute::C<8>>, cute::tuple<cute::C<1>, cute::C<4>>>",
    "cute::C<4>",
    "C<(int)4>",
    "C<4>",
    "cute::_4",
    "cute::Int<4>",
    "Int<4>{}",
    "_4{}",
    "cute::constant<int, 4>",
    "cute::integral_constant<int,4>",
    "std::integral_constant<int, 4>",
    "int",
    "int64_t",
    "long",
    "unsigned int",
    "cute::ScaledBasis<cute::C<1>, 0>",
    "ScaledBasis<int, 1>",
    "ScaledBasis<ScaledBasis<C<1>, 1>, 0>",
    "cute::R<1, 16>",
    "R<1, 16>",
    "cute::Underscore",
    "Underscore",
    "cute::ComposedLayout<cute::Swizzle<3, 3, 3>, cute::C<0>, cute::Layout<cute::tuple<cute::C<8>>,cute::tuple<cute::C<1>>>>",
    "cute::smem_ptr_flag_bits<16>",
    "smem_sparse_ptr_flag_bits<2,16>",
    "smem_ptr_flag",
    "cute::Tensor<cute::ViewEngine<cute::gmem_ptr<float*>>, cute::Layout<cute::C<1>,cute::C<1>>>",
    "cute::ArrayEngine<cutlass::half_t, 8>",
    "cute::ArithmeticTupleIterator<int>",
    "cute::TiledCopy<cute::Copy_Atom<cute::SM80_CP_ASYNC_CACHEGLOBAL<cute::uint128_t>, cutlass::half_t>, Layout, Tiler>",
    "cute::TiledMMA<cute::MMA_Atom<cute::SM80_16x8x16_F32F16F16F32_TN>, Layout, cute::Tile<A>>",
    "MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>",
    "Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, half_t>",
    "Layout<Shape<_4,_8>,Stride<_8,_1>>",
    "Layout<Shape<_4,_8>>",
    "Shape<_4,_8>",
    "Shape<_4,_8>{}",
    "Stride<_8,_1>",
    "make_layout(Shape<_4,_8>{}, LayoutRight{})",
    "make_layout((4,8), LayoutRight{})",
    "make_layout((4,8), LayoutRight)",
    "make_layout((4,8), GenRowMajor{})",
    "LayoutRight",
    "GMMA::Layout_K_SW128_Atom<half_t>",
    "composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})",
    "Swizzle<3,3,3>{}",
    "Tile<Layout<_2,_1>, Underscore>",
    "Tile<_2, _4>",
    "[with LShape=cute::tuple<cute::C<4>>, LStride=cute::C<1>, RShape=int, RStride=int]",
    r#"instantiation of "auto cute::composition(const cute::Layout<LShape, LStride> &, ..)""#,
    r#"static assertion failed with "Stride Divisibility Condition""#,
    r#"static assertion failed with "Shape Divisibility Condition""#,
    r#"error: static assertion failed with "Static shape_div failure""#,
    "decltype(shape<2>(s2r_rA) == shape<2>(mma_rA))::value",
    "size<0>((4,8):(8,1))",
    "get<0>((4,8):(8,1))",
    "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
    "Sw<3,4,3> o smem_ptr o (8,64):(64,1)",
    "smem_ptr[16b](0x7f3a00000400) o (_128,_64):(_64,_1)",
    "gmem_ptr[32b](0x7f3a00000400) o (4096,4096):(4096,_1)",
    "ptr[32b]((nil)) o (4,8):(8,1)",
    "ptr[32b](nil) o (4,8):(8,1)",
    "ptr o (4,8):(8,1)",
    "rmem",
    "rmem o (4,8):(8,1)",
    "rmem_ptr o 4:1",
    "ArithTuple(0,_0) o (_128,_64):(_1@0,_1@1)",
    "ArithTuple(0,_0)",
    "sA_layout:\tSw<3,4,3> o 0 o (8,64):(64,1)",
    "sA_layout: (8,64):(64,1)",
    "tAgA: gmem_ptr[16b](0x7f) o ((_8,_1),_4,_1):((_1,_0),?,_0)",
    "tAgA: 4:1",
    "TiledMMA",
    "TiledCopy",
    "MMA_Atom",
    "Copy_Atom",
    "  ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_0)",
    "  PermutationMNK: (_32,_32,_16)",
    "  ThrID: _32:_1",
    "  ThrID: 32",
    "  Shape_MNK: (_16,_8,_16)",
    "  LayoutA_TV: ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))",
    "  Tiler_MN: (_16,_64)",
    "  TiledLayout_TV: ((_8,_16),_8):((_128,_1),_16)",
    "  ThrID: _1:_0",
    "  ValLayoutSrc: (_1,_8):(_0,_1)",
    "  ValueType: 16b",
    "TiledNumThr: 128",
    r#"!cute.layout<"(2,3):(4,1)">"#,
    r#"!cute.shape<"(4,8)">"#,
    r#"!cute.stride<"(8,1)">"#,
    r#"!cute.tile<"[128:1;64:1]">"#,
    r#"!cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">"#,
    r#"!cute.memref<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,2),(8,4),(1,3)):((1,512),(64,1024),(0,4096))">"#,
    r#"!cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,16),(64,1),(1,7)):((64,512),(1,0),(0,8192))">"#,
    "!cute.ptr<f16, smem, align<1024>, S<3,4,3>>",
    r#"unable to compute the following composition: '!cute.layout<"(2,3):(4,1)"> o !cute.layout<"(3,4):(3,1)">"#,
    "cute.make_layout((4,8), stride=(8,1))",
    "cute.make_ordered_layout((4,8), order=(1,0))",
    "cute.make_composed_layout(cute.make_swizzle(3,4,3), 0, cute.make_layout(8))",
    "tensor<ptr<f16, smem, align<1024>> o (8,64):(64,1)>",
    "Tiled MMA",
    "  Thr Layout VMNK: (128,1,1,1):(1,0,0,0)",
    "  Permutation MNK: (_,_,_)",
    "MMA Atom",
    "  Shape MNK: (64,8,16)",
    "  TV Layout A: (128,(64,16)):(0,(1,64))",
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>",
    "#triton_gpu.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]}>",
    "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>",
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>",
    "#ttg.amd_wmma<{version = 2}>",
    "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>",
    "#ttg.slice<{dim = 1, parent = #blocked}>",
    "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4]], warp = [[16, 0]], block = []}>",
    "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
    "#ttg.padded_shared<[512:+16] {order = [1, 0], shape = [128, 64]}>",
    "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
    "#ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>",
    "#mma = #ttg.nvidia_mma<{versionMajor = 3}>",
    "tensor<128x64xf16, #blocked>",
    "tensor<128x64xf16>",
    "!ttg.memdesc<128x64xf16, #shared, #smem, mutable>",
    "gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])",
    "BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])",
    "gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)",
    "gl.SwizzledSharedLayout(8, 1, 8, [1, 0])",
    "gl.SliceLayout(1, parent)",
    "SliceLayout(1, parent)",
    "gl.DistributedLinearLayout(reg_bases=[[0,1]], lane_bases=[], warp_bases=[], block_bases=[], shape=[2,2])",
    "T.Fragment((64, 64), forward_thread_fn=f)",
    "Fragment([64, 64] -> [32], replicate: 1, thread: 128, forward_thread: a, forward_index: b)",
    "T.Layout((4,8), f)",
    "make_swizzled_layout(A)",
    "S[(8, 64) : (64, 1)]",
    "View(shape=(4, 8), strides=(8, 1), offset=0, mask=None, contiguous=True)",
    "ShapeTracker(views=(View(shape=(4, 8), strides=(8, 1), offset=0, mask=None, contiguous=True),))",
    "shape=(4, 8), strides=(64, 8)",
    "shape=(4, 8)",
    "torch.Size([4, 8])",
    "torch.Size([4, 8]).stride()",
    "DTensorSpec(mesh=DeviceMesh([0,1]), placements=(Shard(dim=0), Replicate()), tensor_meta=None)",
    "(Shard(dim=0), Replicate())",
    "Shard(dim=0)",
    "Shard(0)",
    "Replicate()",
    "_StridedShard(dim=0, split_factor=2)",
    "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))",
    "PartitionSpec('tp', None)",
    "GSPMDSharding({devices=[2,4]<=[8]})",
    "{devices=[2,4]<=[8]}",
    "half_t",
    "float",
    "f16",
    "unset",
    "nil",
    "smem",
    "(smem,4):(1,1)",
    "(4,smem_ptr):(1,4)",
];

/// Spellings that are refused for a reason of the language itself.
const NONSENSE: &[(&str, &str)] = &[
    ("(128,64):(64,1)   cosize: 8192", "E0201"),
    ("#blocked", "E0212"),
    ("#mma", "E0212"),
    ("Layout((4,8), f)", "E0206"),
    ("make_tiled_mma(XeHPC_8x8x8_F32BF16BF16_DPAS)", "E0316"),
];

fn answer(text: &str) -> Result<String, (String, Option<String>)> {
    match evaluate(text, &mut Environment::new()) {
        Ok(value) => Ok(value.to_string()),
        Err(error) => Err((error.code.to_owned(), error.help)),
    }
}

#[test]
fn every_spelling_is_read_or_refused_by_name() {
    for (text, value) in READ {
        assert_eq!(answer(text).as_deref(), Ok(*value), "{text}");
    }
    for text in REFUSED {
        let (code, help) = answer(text).expect_err(text);
        assert_eq!(code, "E0216", "{text}");
        assert!(help.is_some(), "{text} has no help");
    }
    for (text, code) in NONSENSE {
        assert_eq!(answer(text).expect_err(text).0, *code, "{text}");
    }
}

/// What the help says to write is a program, and has the meaning that the text has there.
#[test]
fn what_is_proposed_is_accepted() {
    let cases = [
        (r#"!cute.layout<"(2,3):(4,1)">"#, "(2,3):(4,1)"),
        (r#"!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(8,64):(64,1)">"#, "S<3,3,3> o 0 o (8,64):(64,1)"),
        (r#"!cute.memref<f32, smem, align<1024>, S<3,4,3>, "(8,32):(32,1)">"#, "S<3,2,3> o 0 o (8,32):(32,1)"),
        (r#"!cute.memref<f16, smem, align<1024>, "S<3,3,3> o 0 o (8,64):(64,1)">"#, "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1)", "S<3,4,3> o 0 o (8,128):(128,1)"),
        ("gmem_ptr[32b](0x7f3a00000400) o (4096,4096):(4096,_1)", "(4096,4096):(4096,1)"),
        ("tAgA: gmem_ptr[16b](0x7f) o ((_8,_1),_4):((_1,_0),_8)", "((8,1),4):((1,0),8)"),
        ("S[(8, 64) : (64, 1)]", "(8,64):(64,1)"),
        ("View(shape=(4, 8), strides=(8, 1), offset=0, mask=None, contiguous=True)", "(4,8):(8,1)"),
        ("torch.Size([4, 8])", "(4,8)"),
        ("sA_layout: (8,64):(64,1)", "(8,64):(64,1)"),
    ];
    for (text, meaning) in cases {
        let (code, help) = answer(text).expect_err(text);
        let help = help.unwrap_or_default();
        let written = help.strip_prefix("write what stands behind it: ").or(help.strip_prefix("write ")).unwrap_or("");
        assert_eq!((code.as_str(), answer(written).as_deref()), ("E0216", Ok(meaning)), "{text}: {help}");
    }
}

/// What is not another system's stays what it is: names of one's own, comments, braces.
#[test]
fn own_text_is_not_taken_for_anothers() {
    for (text, value) in [
        ("TiledNumThr:128", "TiledNumThr:128"),
        ("N :1", "N:1"),
        ("n = 4; n: 1", "4:1"),
        ("smem = (4,8):(8,1); smem(1,1)", "9"),
        ("ptr{}:1", "ptr:1"),
        ("4:1 # size<0>(A), #ttg is Triton", "4:1"),
        ("4:1 #A = (4,8):(8,1)", "4:1"),
        ("4:1 # ttg.blocked<..>", "4:1"),
        ("(M,N{}):(1,M)", "(M,N):(1,M)"),
    ] {
        assert_eq!(answer(text).as_deref(), Ok(value), "{text}");
    }
    // An error of one's own stays one.
    for (text, code) in [("Shape = 4; Shape +", "E0201"), ("view(4)", "E0206"), ("(4,8):(1", "E0202"), ("A<B", "E0201")]
    {
        assert_eq!(answer(text).expect_err(text).0, code, "{text}");
    }
}

/// A batch answers a line of another system with an error, and comments with nothing.
#[test]
fn a_batch_skips_no_attribute() {
    let lines = "# comment\n#comment\n#ttg.blocked<{order = [1, 0]}>\n#mma = #ttg.nvidia_mma<{}>\n4:1\n";
    let mut out = Vec::new();
    let failed = Batch::default().run(lines.as_bytes(), &mut out, |out, answer| answer.write_line(out)).unwrap();
    let text = String::from_utf8(out).unwrap();
    let answers: Vec<&str> = text.lines().collect();
    assert_eq!((failed, answers[0], answers[1], answers[4]), (2, "", "", "4:1"));
    assert!(answers[2].contains("E0216") && answers[3].contains("E0216"), "{text}");
}
