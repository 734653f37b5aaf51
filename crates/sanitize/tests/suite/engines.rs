//! Kernels that use the asynchronous engines, right and wrong, from their text to their results.

use tilewright_sanitize::{Argument, Ending, KernelLaunch, Options, Report, sanitize};

/// Runs a kernel `k` of one block in four schedules.
fn run(body: &str, threads: u32, cluster: u32, arguments: &[&str]) -> Report {
    let parameters: Vec<String> = arguments
        .iter()
        .enumerate()
        .map(|(at, text)| match text.starts_with("map:") {
            true => format!(".param .align 64 .b8 p{at}[128]"),
            false => format!(".param .u64 p{at}"),
        })
        .collect();
    let text = format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k({})\n{{\n{HEAD}{body}\n}}\n",
        parameters.join(", ")
    );
    let mut launch = KernelLaunch::new("k", [cluster, 1, 1], [threads, 1, 1]);
    if cluster > 1 {
        launch = launch.cluster([cluster, 1, 1]);
    }
    for (at, text) in arguments.iter().enumerate() {
        launch = launch.argument(Argument::read(&format!("p{at}"), text, 7).unwrap());
    }
    sanitize(&text, &launch, &Options { schedules: 5, ..Options::default() }).unwrap()
}

const HEAD: &str = "
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<64>;
    .reg .f32 %f<64>;
    .reg .b64 %d<32>;
    .shared .align 1024 .b8 s[32768];
    .shared .align 8 .b64 bar[4];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    mul.wide.u32 %d1, %r1, 4;
";

fn codes(report: &Report) -> Vec<&'static str> {
    let mut codes: Vec<&str> = report.findings.iter().map(|finding| finding.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn clean(report: &Report) {
    assert_eq!(report.ending, Ending::Complete, "{}", report.to_json());
    assert!(report.is_clean(), "{}", report.to_json());
}

/// 256 words from memory to shared memory by a bulk copy, and to the output by the threads.
const BULK_LOAD: &str = "
    ld.param.u64 %d2, [p0];
    ld.param.u64 %d3, [p1];
    @!%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d2], 1024, [bar];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    mov.u32 %r2, s;
    mad.lo.u32 %r2, %r1, 4, %r2;
    ld.shared.u32 %r3, [%r2];
    add.u64 %d3, %d3, %d1;
    st.global.u32 [%d3], %r3;
    ret;";

#[test]
fn a_bulk_load_arrives_by_its_barrier() {
    let report = run(BULK_LOAD, 256, 1, &["in:u32[256]=range", "out:u32[256]"]);
    clean(&report);
    assert_eq!(words(&report.results[0].bytes), (0..256).collect::<Vec<u32>>());
}

#[test]
fn a_bulk_load_without_a_wait_is_found() {
    let body = BULK_LOAD.replace("@!%p2 bra WAIT;", "");
    let report = run(&body, 256, 1, &["in:u32[256]=range", "out:u32[256]"]);
    assert!(!report.is_clean());
    assert!(codes(&report).contains(&"E1018") || codes(&report).contains(&"E1012"), "{:?}", codes(&report));
}

#[test]
fn too_few_bytes_hang_and_are_named() {
    let body = BULK_LOAD.replace("[bar], 1024;\n    cp", "[bar], 1040;\n    cp");
    let report = run(&body, 256, 1, &["in:u32[256]=range", "out:u32[256]"]);
    assert!(codes(&report).contains(&"E1024"), "{:?}", codes(&report));
}

#[test]
fn a_barrier_that_nobody_initialised_and_arrivals_too_many_are_found() {
    let body = BULK_LOAD.replace("mbarrier.init.shared.b64 [bar], 1;", "");
    assert!(codes(&run(&body, 32, 1, &["in:u32[256]=range", "out:u32[256]"])).contains(&"E1025"));
    let twice = "
    @!%p1 bra DONE;
    mbarrier.init.shared.b64 [bar], 2;
    mbarrier.arrive.shared.b64 _, [bar], 3;
DONE:
    ret;";
    assert_eq!(codes(&run(twice, 32, 1, &[])), ["E1023"]);
}

/// All threads write shared memory, and one stores it in bulk, adding or not.
fn bulk_store(copy: &str, fence: &str) -> String {
    format!(
        "
    ld.param.u64 %d2, [p0];
    mov.u32 %r2, s;
    mad.lo.u32 %r2, %r1, 4, %r2;
    add.u32 %r3, %r1, 5;
    st.shared.u32 [%r2], %r3;
    {fence}
    bar.sync 0;
    @!%p1 bra DONE;
    {copy} [%d2], [s], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:
    ret;"
    )
}

#[test]
fn bulk_stores_need_a_proxy_fence() {
    let copy = "cp.async.bulk.global.shared::cta.bulk_group";
    let fence = "fence.proxy.async.shared::cta;";
    let report = run(&bulk_store(copy, fence), 64, 1, &["out:u32[64]"]);
    clean(&report);
    assert_eq!(words(&report.results[0].bytes), (5..69).collect::<Vec<u32>>());
    assert_eq!(codes(&run(&bulk_store(copy, ""), 64, 1, &["out:u32[64]"])), ["E1019"]);
    let add = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32";
    let report = run(&bulk_store(add, fence), 64, 1, &["inout:u32[64]=range"]);
    clean(&report);
    assert_eq!(words(&report.results[0].bytes), (0..64).map(|at| 2 * at + 5).collect::<Vec<u32>>());
}

/// A box of 16 rows of 64 halves at (column, row), as it lies in shared memory, to the output.
fn box_load(column: i32, row: i32, swizzle: &str) -> Report {
    let body = format!(
        "
    ld.param.u64 %d3, [p1];
    mov.b64 %d2, p0;
    cvta.param.u64 %d2, %d2;
    @!%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
    mov.b32 %r10, {column};
    mov.b32 %r11, {row};
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%d2, {{%r10, %r11}}], [bar];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    mov.u32 %r2, s;
    mad.lo.u32 %r2, %r1, 4, %r2;
    ld.shared.u32 %r3, [%r2];
    add.u64 %d3, %d3, %d1;
    st.global.u32 [%d3], %r3;
    ret;"
    );
    let map = format!("map:in:u16[40,80]=range:box=16x64:swizzle={swizzle}");
    run(&body, 512, 1, &[&map, "out:u16[16,64]"])
}

#[test]
fn boxes_lie_as_their_swizzle_says_and_are_filled_outside() {
    for (swizzle, mask) in [("none", 0), ("128B", 7)] {
        for (column, row) in [(0, 0), (16, 8), (40, 30), (-8, -3)] {
            let report = box_load(column, row, swizzle);
            clean(&report);
            let found: Vec<u16> =
                report.results[0].bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            for at in 0..16 {
                for element in 0..64 {
                    // The unit of 16 bytes changes by the row in the pattern of eight.
                    let place = at * 64 + ((element / 8) ^ (at & mask)) * 8 + element % 8;
                    let (r, c) = (row + at as i32, column + element as i32);
                    let inside = (0..40).contains(&r) && (0..80).contains(&c);
                    let wanted = if inside { (r * 80 + c) as u16 } else { 0 };
                    assert_eq!(found[place], wanted, "{swizzle} ({column}, {row}): ({at}, {element})");
                }
            }
        }
    }
}

/// A product of 64 x 8 x 16 halves that threads have written as rows of 16 bytes, and its fences.
fn product(first_fence: &str, wait: &str) -> String {
    format!(
        "
    ld.param.u64 %d2, [p0];
    ld.param.u64 %d3, [p1];
    // A has 64 rows, and B 8 columns, of 32 bytes; thread t moves row t, at t / 8 * 256 + t % 8 *
    // 16.
    setp.ge.u32 %p3, %r1, 72;
    @%p3 bra MOVED;
    mul.wide.u32 %d4, %r1, 32;
    add.u64 %d4, %d2, %d4;
    shr.u32 %r2, %r1, 3;
    and.b32 %r3, %r1, 7;
    shl.b32 %r2, %r2, 8;
    shl.b32 %r3, %r3, 4;
    add.u32 %r2, %r2, %r3;
    mov.u32 %r4, s;
    add.u32 %r2, %r2, %r4;
    ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%d4];
    st.shared.v4.b32 [%r2], {{%r5, %r6, %r7, %r8}};
    ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%d4+16];
    st.shared.v4.b32 [%r2+128], {{%r5, %r6, %r7, %r8}};
MOVED:
    {first_fence}
    bar.sync 0;
    mov.u32 %r4, s;
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %d5, %r4;
    mov.b64 %d6, 0x1000080000;
    or.b64 %d5, %d5, %d6;
    add.u64 %d7, %d5, 128;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, %d5, %d7, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    {wait}
    mul.wide.u32 %d8, %r1, 16;
    add.u64 %d3, %d3, %d8;
    st.global.v4.f32 [%d3], {{%f1, %f2, %f3, %f4}};
    ret;"
    )
}

#[test]
fn a_product_of_a_warpgroup_reads_shared_memory() {
    let inputs = ["in:f16[72,16]=range", "out:f32[128,4]"];
    let (fence, wait) = ("fence.proxy.async;", "wgmma.wait_group.sync.aligned 0;");
    let report = run(&product(fence, wait), 128, 1, &inputs);
    clean(&report);
    let found: Vec<f32> = words(&report.results[0].bytes).into_iter().map(f32::from_bits).collect();
    let element = |row: usize, at: usize| half::f16::from_f64((row * 16 + at) as f64).to_f64();
    for (thread, sums) in found.chunks_exact(4).enumerate() {
        for (at, sum) in sums.iter().enumerate() {
            let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (at / 2);
            let column = thread % 4 * 2 + at % 2;
            let wanted: f64 = (0..16).map(|k| element(row, k) * element(64 + column, k)).sum();
            assert!((f64::from(*sum) - wanted).abs() <= wanted * 2e-6, "({row}, {column}): {sum} {wanted}");
        }
    }
    assert_eq!(codes(&run(&product("", wait), 128, 1, &inputs)), ["E1019"]);
}

#[test]
fn a_multicast_reaches_every_block_and_its_barrier() {
    let body = "
    .reg .b32 %rank;
    ld.param.u64 %d2, [p0];
    ld.param.u64 %d3, [p1];
    mov.u32 %rank, %cluster_ctarank;
    @!%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
READY:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.eq.u32 %p3, %rank, 0;
    and.pred %p3, %p3, %p1;
    mov.b16 %h1, 3;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%d2], 512, [bar], %h1;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    mov.u32 %r2, s;
    mad.lo.u32 %r2, %r1, 4, %r2;
    ld.shared.u32 %r3, [%r2];
    mad.lo.u32 %r4, %rank, 128, %r1;
    mul.wide.u32 %d4, %r4, 4;
    add.u64 %d3, %d3, %d4;
    st.global.u32 [%d3], %r3;
    ret;";
    let report = run(body, 128, 2, &["in:u32[128]=range", "out:u32[256]"]);
    clean(&report);
    let wanted: Vec<u32> = (0..128).chain(0..128).collect();
    assert_eq!(words(&report.results[0].bytes), wanted);
}

#[test]
fn copies_by_threads_arrive_at_a_barrier() {
    let body = "
    ld.param.u64 %d2, [p0];
    ld.param.u64 %d3, [p1];
    @!%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 64;
READY:
    bar.sync 0;
    mov.u32 %r2, s;
    mad.lo.u32 %r2, %r1, 4, %r2;
    add.u64 %d2, %d2, %d1;
    cp.async.ca.shared.global [%r2], [%d2], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
WAIT:
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra WAIT;
    xor.b32 %r2, %r2, 128;
    ld.shared.u32 %r3, [%r2];
    add.u64 %d3, %d3, %d1;
    st.global.u32 [%d3], %r3;
    ret;";
    let report = run(body, 64, 1, &["in:u32[64]=range", "out:u32[64]"]);
    clean(&report);
    assert_eq!(words(&report.results[0].bytes), (0..64).map(|at| at ^ 32).collect::<Vec<u32>>());
}

/// One warp: D = A B + C with fragments from memory, A by rows and B by the order that is told.
fn fragments(order: &str) -> Report {
    let registers = |letter: char| (0..8).map(|at| format!("%{letter}{at}")).collect::<Vec<_>>().join(", ");
    let (a, b, c) = (registers('a'), registers('b'), registers('c'));
    let body = format!(
        "
    .reg .b32 %a<8>, %b<8>;
    .reg .f32 %c<8>;
    ld.param.u64 %d2, [p0];
    ld.param.u64 %d3, [p1];
    ld.param.u64 %d4, [p2];
    mov.u32 %r2, 24;
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{a}}}, [%d2], %r2;
    wmma.load.b.sync.aligned.{order}.m16n16k16.global.f16 {{{b}}}, [%d3];
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {{{c}}}, [%d4], 16;
    wmma.mma.sync.aligned.row.{order}.m16n16k16.f32.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d4], {{{c}}}, 16;
    ret;"
    );
    run(&body, 32, 1, &["in:f16[16,24]=range", "in:f16[16,16]=range", "inout:f32[16,16]=range"])
}

#[test]
fn fragments_of_wmma_come_from_memory_and_go_there() {
    for (order, by_columns) in [("row", false), ("col", true)] {
        let report = fragments(order);
        clean(&report);
        let found: Vec<f32> = words(&report.results[0].bytes).into_iter().map(f32::from_bits).collect();
        for row in 0..16 {
            for column in 0..16 {
                let b = |k: usize| if by_columns { column * 16 + k } else { k * 16 + column };
                let product: usize = (0..16).map(|k| (row * 24 + k) * b(k)).sum();
                let wanted = (row * 16 + column + product) as f32;
                assert!((found[row * 16 + column] - wanted).abs() <= wanted * 1e-6, "{order} ({row}, {column})");
            }
        }
    }
}

#[test]
fn a_copy_that_is_only_fast_enough_shows_in_another_schedule() {
    // Instead of a wait, some thousand instructions.
    let body = BULK_LOAD.replace(
        "    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n    @!%p2 bra WAIT;",
        "    add.u32 %r9, %r9, 1;\n    setp.lt.u32 %p2, %r9, 4000;\n    @%p2 bra WAIT;",
    );
    let body = format!("    mov.u32 %r9, 0;\n{body}");
    let text = format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1)\n{{\n{HEAD}{body}\n}}\n"
    );
    let launch = KernelLaunch::new("k", [1, 1, 1], [256, 1, 1])
        .argument(Argument::read("p0", "in:u32[256]=range", 7).unwrap())
        .argument(Argument::read("p1", "out:u32[256]", 7).unwrap());
    let options = Options { schedules: 2, checks: false, ..Options::default() };
    let report = sanitize(&text, &launch, &options).unwrap();
    assert_eq!(codes(&report), ["E1028"]);
    assert_eq!(words(&report.results[0].bytes), (0..256).collect::<Vec<u32>>());
}

/// A block makes a map of a tensor of 32 rows of 64 words from zeros in shared memory, publishes it
/// in global memory and loads a box of 8 rows of 32 words at (32, 4) through it.
fn own_map(publish: &str, between: &str, acquire: &str) -> Report {
    let body = format!(
        "
    ld.param.u64 %d2, [p0];
    ld.param.u64 %d3, [p1];
    ld.param.u64 %d4, [p2];
    mov.u32 %r10, s;
    shl.b32 %r11, %r1, 2;
    add.u32 %r12, %r10, %r11;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra PUBLISHED;
    mov.u32 %r13, 0;
    st.shared.u32 [%r12+4096], %r13;
    bar.warp.sync -1;
    @!%p1 bra FILLED;
    add.u32 %r14, %r10, 4096;
    cvt.u64.u32 %d5, %r14;
    mov.u32 %r15, 1; mov.u32 %r16, 64; mov.u32 %r17, 32; mov.u32 %r18, 8; mov.u64 %d6, 256;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%d5], %d2;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d5], 1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d5], 0, %r17;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d5], 1, %r18;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d5], 0, %r16;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d5], 1, %r17;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%d5], 0, %d6;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d5], 0, %r15;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d5], 1, %r15;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%d5], 2;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%d5], 0;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    FILLED: bar.warp.sync -1;
    add.u32 %r14, %r10, 4096;
    cvt.u64.u32 %d5, %r14;
    {publish}
    PUBLISHED:
    {between}
    // The last warp loads.
    setp.ne.u32 %p3, %r1, 32;
    @%p3 bra WAIT;
    {acquire}
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    mov.u32 %r20, 32; mov.u32 %r21, 4;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d3, {{%r20, %r21}}], [bar];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0;
    @!%p4 bra WAIT;
    ld.shared.u32 %r22, [%r12];
    add.u64 %d7, %d4, %d1;
    st.global.u32 [%d7], %r22;
    ret;"
    );
    run(&body, 64, 1, &["in:u32[32,64]=range", "inout:u8[128]=zeros", "out:u32[64]"])
}

const PUBLISH: &str = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
    [%d3], [%d5], 0x80;";
const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu [%d3], 128;";

#[test]
fn a_kernel_makes_a_tensor_map_of_its_own() {
    let report = own_map(PUBLISH, "bar.sync 0;", ACQUIRE);
    clean(&report);
    let wanted: Vec<u32> = (0..64).map(|at| (4 + at / 32) * 64 + 32 + at % 32).collect();
    assert_eq!(words(&report.results[1].bytes), wanted);
    // Without a barrier the other warp may read the map, and the barrier of the copy, too early.
    let report = own_map(PUBLISH, "", ACQUIRE);
    assert!(!report.is_clean());
    // A map that nobody has made is refused by name.
    // Without its fence the proxy of tensor maps may see the map as it was; a fence of a release,
    // or one of the asynchronous proxy, does not do.
    let others = ["", "fence.proxy.tensormap::generic.release.gpu;", "fence.proxy.async;"];
    for other in others {
        let report = own_map(PUBLISH, "bar.sync 0;", other);
        assert_eq!(codes(&report), ["E1019"], "{other}");
        assert!(report.to_string().contains("fence.proxy.tensormap"), "{report}");
    }
    let report = own_map("", "bar.sync 0;", ACQUIRE);
    let why = report.unfinished().unwrap();
    assert!(why.contains("tensor map is none"), "{why}");
}

/// A box of 8 elements is reduced into an array through a map of its type.
fn map_reduction(kind: &str, what: &str, elements: u32, change: &str) -> Vec<u8> {
    let bytes = 16;
    let body = format!(
        "
    mov.u32 %r10, s;
    @!%p1 bra DONE;
    mov.u32 %r11, 0;
    ld.param.u64 %d2, [p1];
    ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%d2];
    {change}
    st.shared.v4.u32 [%r10], {{%r2, %r3, %r4, %r5}};
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.tensor.1d.global.shared::cta.{what}.tile.bulk_group [p0, {{%r11}}], [s];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    DONE: ret;"
    );
    let map = format!("map:inout:{kind}[{elements}]=ones:box={elements}");
    let report = run(&body, 32, 1, &[&map, &format!("in:{kind}[{elements}]=range")]);
    clean(&report);
    assert_eq!(report.results[0].bytes.len(), bytes);
    report.results[0].bytes.clone()
}

#[test]
fn reductions_through_maps_are_those_of_their_type() {
    let ones_and: Vec<u8> =
        (0..8).flat_map(|at| half::bf16::from_f32(1.0 + at as f32).to_bits().to_le_bytes()).collect();
    assert_eq!(map_reduction("bf16", "add", 8, ""), ones_and);
    let halves: Vec<u8> = (0..8).flat_map(|at| half::f16::from_f32(1.0 + at as f32).to_bits().to_le_bytes()).collect();
    assert_eq!(map_reduction("f16", "add", 8, ""), halves);
    assert_eq!(words(&map_reduction("i32", "min", 4, "neg.s32 %r5, %r5;")), [0, 1, 1, u32::MAX - 2]);
    assert_eq!(words(&map_reduction("f32", "min", 4, "")), [0.0_f32, 1.0, 1.0, 1.0].map(f32::to_bits));
}
