//! Sparse products and maps of pixels, from the text of a kernel to what is found and refused.

use tilewright_sanitize::{Argument, KernelLaunch, Options, Report, sanitize};

use crate::tools::{codes, kernel, run, words};

fn unfinished(statements: &str) -> String {
    let report = run(&kernel(1, statements), 1, 32, &["out:u32[32]"]).unwrap();
    report.unfinished().unwrap_or_default()
}

#[test]
fn a_sparse_product_takes_the_elements_that_its_metadata_name() {
    // A holds ones, at the elements 0 and 3 of each chunk; B has its row as every element.
    let text = kernel(
        1,
        "mov.b32 %r1, 0x01010101; mov.b32 %r9, 0xcccccccc; and.b32 %r2, %r52, 3; shl.b32 %r2, %r2, 2;
         mul.lo.u32 %r3, %r2, 0x01010101; add.u32 %r3, %r3, 0x03020100; add.u32 %r4, %r3, 0x10101010; mov.b32 %r5, 7;
         mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32
             {%r5, %r6, %r7, %r8}, {%r1, %r1}, {%r3, %r4}, {%r5, %r5, %r5, %r5}, %r9, 1;
         add.u64 %d0, %d0, %at4; st.global.u32 [%d0], %r5;",
    );
    let wanted: u32 = 7 + (0..8).map(|chunk| 4 * chunk + 4 * chunk + 3).sum::<u32>();
    assert_eq!(words(&run(&text, 1, 32, &["out:u32[32]"]).unwrap(), 0), [wanted; 32]);
}

#[test]
fn metadata_and_selectors_without_a_result_end_the_run() {
    let product = |metadata: &str, selector: u32| {
        unfinished(&format!(
            "mov.b32 %r9, {metadata}; mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}},
             {{%r1, %r1, %r1, %r1}}, {{%r1, %r1, %r1, %r1}}, {{%f1, %f2, %f3, %f4}}, %r9, {selector};"
        ))
    };
    let why = product("0x44454444", 0);
    assert!(why.contains("row 8 of A are 0b0101 for the chunk from column 0"), "{why}");
    assert!(product("0x44444444", 2).contains("the selector of the sparsity is 2, but at most 1 here"));
    assert_eq!(product("0x44444444", 1), "");
}

/// A sparse product of a warpgroup, with statements before and behind it.
fn group(before: &str, behind: &str) -> Report {
    let statements = format!(
        ".shared .align 1024 .b8 s[8192];
         mov.u32 %r1, s; shl.b32 %r2, %r52, 4; add.u32 %r1, %r1, %r2; mov.b32 %r3, 0x3c003c00;
         st.shared.v4.b32 [%r1], {{%r3, %r3, %r3, %r3}}; st.shared.v4.b32 [%r1+2048], {{%r3, %r3, %r3, %r3}};
         st.shared.v4.b32 [%r1+4096], {{%r3, %r3, %r3, %r3}}; st.shared.v4.b32 [%r1+6144], {{%r3, %r3, %r3, %r3}};
         fence.proxy.async; bar.sync 0;
         mov.u32 %r4, s; shr.u32 %r4, %r4, 4; cvt.u64.u32 %d5, %r4; or.b64 %d5, %d5, 0x4000004000010000;
         {before}
         wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, %d5, %d5, %r9, 0, 0, 1, 1, 0, 0;
         wgmma.commit_group.sync.aligned;
         {behind}
         mov.b32 %r10, %f1; add.u64 %d0, %d0, %at4; st.global.u32 [%d0], %r10;"
    );
    run(&kernel(1, &statements), 1, 128, &["out:u32[128]"]).unwrap()
}

#[test]
fn the_metadata_of_a_product_in_flight_are_its_own() {
    let set = "mov.b32 %r9, 0x44444444;";
    let (fence, wait) = ("wgmma.fence.sync.aligned;", "wgmma.wait_group.sync.aligned 0;");
    let right = group(&format!("{set} {fence}"), wait);
    assert_eq!(words(&right, 0), [16.0_f32.to_bits(); 128]);
    assert_eq!(codes(&group(&format!("{set} {fence}"), &format!("mov.b32 %r9, 0; {wait}"))), ["E1033"]);
    let refused = group(fence, wait).unfinished().unwrap_or_default();
    assert!(refused.contains("0b0000 for the chunk from column 0"), "{refused}");
}

/// Copies pixels of an image by a map of this text, from a place with these offsets.
fn pixels(map: &str, place: &str, offsets: &str, bytes: u32) -> Report {
    let text = format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n
         .visible .entry k(.param .align 64 .b8 p0[128], .param .u64 p1)\n{{
         .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %d<8>;
         .shared .align 1024 .b8 s[4096]; .shared .align 8 .b64 bar;
         mov.b64 %d0, p0; cvta.param.u64 %d0, %d0; ld.param.u64 %d1, [p1]; mov.u32 %r0, %tid.x;
         setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};
         cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
             [s], [%d0, {{{place}}}], [bar], {{{offsets}}};
         READY: bar.sync 0;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;
         shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [%r2];
         cvt.u64.u32 %d2, %r1; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r3; ret;\n}}\n"
    );
    let launch = KernelLaunch::new("k", [1, 1, 1], [bytes / 4, 1, 1])
        .argument(Argument::read("p0", map, 0).unwrap())
        .argument(Argument::read("p1", &format!("out:u32[{}]", bytes / 4), 0).unwrap());
    sanitize(&text, &launch, &Options { schedules: 4, ..Options::default() }).unwrap()
}

#[test]
fn a_map_of_pixels_is_an_argument() {
    // Images of 3 x 5 pixels of 8 words; every second column from -1 on, 24 pixels of 4 channels.
    let map = "map:in:u32[2,3,5,8]=range:im2col=24x4:lower=-1x-1:upper=-1x-1:steps=1x1x2x1";
    let report = pixels(map, "4, -1, -1, 0", "1, 2", 24 * 16);
    let found = words(&report, 1);
    let mut wanted = Vec::new();
    // The box has columns -1, 1 and 3 less those from 4 on, and rows -1 to 1.
    'all: for image in 0..3 {
        for row in -1..2_i64 {
            for column in [-1, 1, 3_i64] {
                for channel in 4..8 {
                    let (r, c) = (row + 2, column + 1);
                    let is_inside = image < 2 && (0..3).contains(&r) && (0..5).contains(&c);
                    wanted.push(if is_inside { (((image * 3 + r) * 5 + c) * 8 + channel) as u32 } else { 0 });
                }
                if wanted.len() == 96 {
                    break 'all;
                }
            }
        }
    }
    assert_eq!(found, wanted);
}

#[test]
fn a_copy_that_begins_inside_a_unit_is_found() {
    let map = "map:in:u32[2,3,5,8]=range:im2col=24x4";
    assert!(pixels(map, "4, 0, 0, 0", "0, 0", 24 * 16).is_clean());
    let report = pixels(map, "3, 0, 0, 0", "0, 0", 24 * 16);
    assert!(codes(&report).contains(&"E1011"), "{report}");
}

#[test]
fn rows_narrower_than_the_swizzle_take_a_line_of_it() {
    // Pixels of 16 bytes in lines of 32, of which 128 bytes hold four.
    let map = "map:in:u32[1,1,8,4]=range:im2col=8x4:swizzle=32B";
    let report = pixels(map, "0, 0, 0, 0", "0, 0", 8 * 16);
    // What lies between nobody has written.
    assert_eq!(codes(&report), ["E1012"]);
    let bytes = &report.results.iter().find(|own| own.argument == 1).unwrap().bytes;
    let found: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    for pixel in 0..4 {
        let wanted: Vec<u32> = (0..4).map(|channel| 4 * pixel + channel).collect();
        assert_eq!(found[8 * pixel as usize..][..4], wanted);
    }
}

#[test]
fn maps_that_the_driver_refuses_are_named() {
    let wrong = |text: &str| Argument::read("p0", text, 0).unwrap_err().to_string();
    assert!(wrong("map:in:u32[2,3,5,8]:im2col=24").contains("pixels and their channels"));
    assert!(wrong("map:in:u32[2,3,5,8]:box=1x1x1x4:lower=0x0").contains("only a map of `im2col=` has corners"));
    assert!(wrong("map:in:u32[2,3,5,8]:im2col=4x4:lower=ax0").contains("`ax0` are no numbers"));
    assert!(wrong("map:in:u32[2,3,5,8]:im2col=4x4:interleave=16B").contains("interleaved layouts are not supported"));
    let refused = |options: &str| {
        let launch = KernelLaunch::new("k", [1, 1, 1], [32, 1, 1])
            .argument(Argument::read("p0", &format!("map:in:u32[2,3,5,8]:{options}"), 0).unwrap());
        let text = ".version 8.4\n.target sm_90a\n.visible .entry k(.param .align 64 .b8 p0[128]) { ret; }";
        sanitize(text, &launch, &Options::default()).unwrap_err().to_string()
    };
    assert!(refused("im2col=4x4:lower=0").contains("`lower` has 1 numbers for 2 spatial dimensions"));
    assert!(refused("im2col=4x4:lower=0x200").contains("a corner at 200; -128 to 127 are possible"));
    assert!(refused("im2col=4x4:lower=0x3:upper=0x-2").contains("the box of pixels is empty"));
    assert!(refused("im2col=2000x4").contains("1 to 1024 pixels"));
    assert!(refused("box=1x1x1x4:steps=1x1x1x2").contains("the step of the last dimension is 1"));
    assert!(refused("box=1x1x1x4:fill=nan").contains("integers have no NaN"));
}
