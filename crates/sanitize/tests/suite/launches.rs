//! Launches: arguments, sizes, memory that may be accessed, what is printed.

use super::tools::{codes, kernel, run, words};
use tilewright_sanitize::{Argument, Element, Ending, KernelLaunch, Options, npy, sanitize};

#[test]
fn arguments_are_read() {
    for (text, bytes) in [
        ("i32=-1", vec![0xff; 4]),
        ("u8=0x1f", vec![0x1f]),
        ("f32=1e-5", 1e-5_f32.to_le_bytes().to_vec()),
        ("bf16=1.5", vec![0xc0, 0x3f]),
        ("null", vec![0; 8]),
        ("hex:00ff10", vec![0, 255, 16]),
    ] {
        assert_eq!(Argument::read("", text, 0), Ok(Argument::Value(bytes)), "{text}");
    }
    for (text, why) in [
        ("u8=256", "`256` is no number of the type u8"),
        ("f80=1", "`f80` is no type"),
        ("in:f32", "a type and extents are expected"),
        ("in:f32[1,x]", "`[1,x]` are no extents"),
        ("in:f32[99999999999,99999999999]", "too large"),
        ("in:f32[4]=/nowhere.npy", "/nowhere.npy"),
        ("map:in:f32[4]", "the extents of a box are missing"),
        ("hello", "are examples"),
        ("hex:0", "two hexadecimal digits"),
    ] {
        let refusal = Argument::read("", text, 0).unwrap_err().to_string();
        assert!(refusal.contains(why), "{text}: {refusal}");
    }
    // Equal seeds give equal numbers.
    assert_eq!(Argument::read("", "in:f16[9]", 3), Argument::read("", "in:f16[9]", 3));
    assert_ne!(Argument::read("", "in:f16[9]", 3), Argument::read("", "in:f16[9]", 4));
}

#[test]
fn files_of_numpy_are_written_and_read() {
    let folder = std::env::temp_dir().join(format!("tilewright-sanitize-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.npy");
    let bytes: Vec<u8> = (0..24).collect();
    std::fs::write(&path, npy::write(Element::F32, &[2, 3], &bytes)).unwrap();
    assert_eq!(npy::read(&path).unwrap(), (Element::F32, vec![2, 3], bytes));
    let argument = |text: &str| Argument::read("", &format!("{text}={}", path.display()), 0);
    assert!(argument("in:f32[2,3]").is_ok());
    assert!(argument("in:f32[3,2]").unwrap_err().to_string().contains("holds f32[2, 3]"));
    assert!(argument("in:i32[2,3]").is_err());
    let whole = std::fs::read(&path).unwrap();
    for end in 0..whole.len() {
        std::fs::write(&path, &whole[..end]).unwrap();
        assert!(npy::read(&path).is_err(), "{end}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let text = kernel(1, ".shared .b8 s[65536]; mov.u32 %r1, s;");
    let options = Options::default();
    let out = || Argument::read("", "out:u32[4]", 0).unwrap();
    let good = KernelLaunch::new("f", [1, 1, 1], [32, 1, 1]).argument(out());
    assert!(sanitize(&text, &good, &options).is_ok());
    let cases = [
        (KernelLaunch { entry: "g".into(), ..good.clone() }, "there is no entry `g`; there are: f"),
        (KernelLaunch { grid: [0, 1, 1], ..good.clone() }, "a grid of [0, 1, 1] blocks"),
        (KernelLaunch { block: [32, 33, 1], ..good.clone() }, "a block of [32, 33, 1] threads"),
        (KernelLaunch { cluster: Some([2, 1, 1]), ..good.clone() }, "is not made of clusters"),
        (KernelLaunch { shared_bytes: 200_000, ..good.clone() }, "265536 bytes of shared memory"),
        (good.clone().argument(out()), "takes 1 argument and was given 2"),
        (KernelLaunch { arguments: vec![Argument::Value(vec![0; 4])], ..good }, "`p0` has 8 bytes"),
    ];
    for (launch, why) in cases {
        let refusal = sanitize(&text, &launch, &options).unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
    let text = kernel(1, "").replacen(") {", ") .reqntid 64 {", 1);
    let refusal = run(&text, 1, 32, &["out:u32[4]"]).unwrap_err().to_string();
    assert!(refusal.contains("requires blocks of [64, 1, 1]"), "{refusal}");
}

#[test]
fn accesses_are_inside_and_aligned_and_written() {
    let at = |offset: i32, access: &str| {
        let text = kernel(1, &format!("setp.ne.u32 %p1, %i, 0; @%p1 ret; add.s64 %d1, %d0, {offset}; {access}"));
        run(&text, 1, 32, &["inout:u32[64]"]).unwrap()
    };
    assert!(at(252, "ld.global.u32 %r1, [%d1];").is_clean());
    for offset in [256, -4, 1 << 20] {
        let report = at(offset, "ld.global.u32 %r1, [%d1];");
        assert_eq!(codes(&report), ["E1010"], "{offset}");
        assert!(report.to_string().contains("`p0`"), "{report}");
    }
    assert_eq!(codes(&at(248, "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d1];")), ["E1010"]);
    assert_eq!(codes(&at(2, "ld.global.u32 %r1, [%d1];")), ["E1011"]);
    assert_eq!(codes(&at(8, "st.global.v4.u32 [%d1], {%r1,%r2,%r3,%r4};")), ["E1011"]);
    let text = kernel(1, "add.u64 %d1, %d0, %at4; ld.global.u32 %r1, [%d1]; st.global.u32 [%d1], %r1;");
    assert_eq!(codes(&run(&text, 1, 32, &["out:u32[32]"]).unwrap()), ["E1012"]);
    // A null pointer is named as such, and not by the memory that is nearest to it.
    for load in ["ld.global.u32", "ld.u32"] {
        let text = kernel(1, &format!(".global .align 4 .u32 g[2] = {{5, 6}}; {load} %r1, [%d0+8];"));
        let report = run(&text, 1, 1, &["null"]).unwrap();
        assert_eq!(codes(&report), ["E1010"], "{report}");
        assert!(report.to_string().contains("bytes 8 to 11 of the null pointer"), "{report}");
    }
    // Shared memory, through its own window and through a generic address.
    let text = ".shared .align 16 .b8 s[128]; mov.u64 %d3, s; cvta.shared.u64 %d4, %d3;";
    for access in ["st.shared.u32 [%d3+128], 0;", "st.u32 [%d4+128], 0;", "ld.shared.u64 %d9, [%d3+124];"] {
        let report = run(&kernel(1, &format!("{text} {access}")), 1, 1, &["inout:u32[4]"]).unwrap();
        assert!(codes(&report)[0] == "E1010" || codes(&report)[0] == "E1011", "{access}");
    }
}

#[test]
fn all_memories_have_generic_addresses() {
    let text = kernel(
        1,
        ".local .align 8 .b8 l[16]; .shared .align 8 .b8 s[256]; .global .align 4 .u32 g[2] = {5, 6};
         .const .align 4 .u32 c[2] = {70, 80};
         mov.u64 %d1, l; cvta.local.u64 %d2, %d1; st.u32 [%d2+4], %i; ld.local.u32 %r1, [%d1+4];
         mov.u64 %d3, s; add.u64 %d3, %d3, %at4; cvta.shared.u64 %d4, %d3; st.u32 [%d4], %r1;
         ld.shared.u32 %r2, [%d3];
         mov.u64 %d5, g; cvta.global.u64 %d6, %d5; ld.u32 %r3, [%d6+4]; ld.const.u32 %r4, [c+4];
         isspacep.shared %p1, %d4; selp.b32 %r5, 1000, 0, %p1; isspacep.local %p2, %d4;
         @%p2 mov.u32 %r5, 0;
         add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5;
         add.u64 %d7, %d0, %at4; st.u32 [%d7], %r2;",
    );
    let found = words(&run(&text, 1, 64, &["out:u32[64]"]).unwrap(), 0);
    assert!(found.iter().enumerate().all(|(at, word)| *word == at as u32 + 1086), "{found:?}");
}

#[test]
fn what_is_printed_and_asserted_is_told() {
    let text = "
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 format[20] = {116, 61, 37, 48, 51, 100, 32, 37, 46, 50, 102, 32, 37, 115, 10};
.global .align 1 .b8 text[4] = {97, 98, 99};
.visible .entry f(.param .u64 p0) {
  .reg .b32 %r<4>; .reg .b64 %d<9>; .reg .f64 %g; .reg .pred %p;
  .local .align 8 .b8 l[24];
  mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 7; @%p bra END;
  mov.u64 %d1, l; cvta.local.u64 %d2, %d1; st.local.u32 [%d1], %r1;
  mov.f64 %g, 0d3FF8000000000000; st.local.f64 [%d1+8], %g;
  mov.u64 %d3, text; cvta.global.u64 %d4, %d3; st.local.u64 [%d1+16], %d4;
  mov.u64 %d5, format; cvta.global.u64 %d6, %d5;
  { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d6; st.param.b64 [b], %d2;
    call.uni (r), vprintf, (a, b); ld.param.b32 %r2, [r]; }
  ASSERT
  END: ret;
}";
    let report = run(&text.replace("ASSERT", ""), 1, 32, &["inout:u32[1]"]).unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.printed, ["t=007 1.50 abc\n"]);
    let call = "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
        st.param.b64 [a], %d4; st.param.b64 [b], %d4; st.param.b32 [c], 12; st.param.b64 [d], %d4; st.param.b64 [e], 1;
        call.uni __assertfail, (a, b, c, d, e); }";
    let report = run(&text.replace("ASSERT", call), 1, 32, &["inout:u32[1]"]).unwrap();
    assert_eq!(codes(&report), ["E1030"]);
    assert!(report.to_string().contains("the assertion `abc` fails, abc:12 in abc"), "{report}");
}

#[test]
fn what_takes_too_much_memory_is_refused() {
    // So many registers that those of a block of the host do not fit.
    let many: String = (0..20_000).map(|at| format!("mov.b32 %q{at}, 0;\n")).collect();
    let text = kernel(1, &format!(".reg .b32 %q<20000>;\n{many}"));
    assert!(run(&text, 1, 32, &["inout:u32[1]"]).unwrap().is_clean());
    let mut launch = KernelLaunch::new("f", [16, 1, 1], [1024, 1, 1]).cluster([16, 1, 1]);
    launch = launch.argument(Argument::read("", "inout:u32[1]", 0).unwrap());
    let refusal = sanitize(&text, &launch, &Options::default()).unwrap_err().to_string();
    assert!(refusal.contains("2147483648 are possible"), "{refusal}");
    // A table that would be larger than memory, in each of its forms.
    for variable in [".global .b8 g[99999999999];", ".shared .b8 s[9999999];", ".local .b8 l[9999999];"] {
        let refusal = run(&kernel(1, variable), 1, 32, &["inout:u32[1]"]).unwrap_err().to_string();
        assert!(refusal.contains("exceed"), "{refusal}");
    }
}

#[test]
fn a_run_ends_where_it_is_asked_to() {
    let text = kernel(1, "L: add.u32 %r1, %r1, 1; bra L;");
    let stop = || true;
    let options = Options { stop: Some(&stop), ..Options::default() };
    let report = super::tools::run_with(&text, 4, 32, &["inout:u32[1]"], &options).unwrap();
    assert_eq!(report.ending, Ending::Interrupted);
}
