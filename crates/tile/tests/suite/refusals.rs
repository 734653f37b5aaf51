//! Refusals: the code, the location of the statement, and words of the message.

use tilewright_kernel::Written;
use tilewright_layout::Refusal;
use tilewright_tile::{Element, Index, Program, TileError, Unchecked, interpret};

/// A program with these statements, and the refusal of reading it.
fn refused(statements: &str) -> (TileError, String) {
    let text = format!(
        "tile t {{\ninput x: f32 (M,64):(64,1)\ninput h: bf16 (M,64):(64,1)\noutput y: f32 (M,64):(64,1)\n\
         inout z: i32 (M,64):(64,1)\ngrid M\n\
         a = load(x, (4,64), (block.x, 0))\n{statements}\n}}"
    );
    let error = Program::read("t.tile", &text).expect_err(&text);
    (error, text)
}

#[test]
fn each_refusal_names_its_line_and_what_is_wrong() {
    let cases = [
        ("b = load(x, (0,1000), (block.x, 0))", "E1201", "t.tile:8:5", "from 1 on"),
        ("b = load(x, (4,64), (block.x))", "E1201", "t.tile:8:5", "one extent, as its place has"),
        ("b = a + load(x, (4,32), (block.x, 0))", "E1201", "t.tile:8:7", "(4,32)"),
        ("b = reduce_sum(a, 2)", "E1201", "t.tile:8:5", "a mode 2"),
        ("b = reduce_sum(a, 1, 1)", "E1201", "t.tile:8:5", "each once"),
        ("b = transpose(a, (0,0))", "E1201", "t.tile:8:5", "(4,64)"),
        ("b = reshape(a, (128))", "E1201", "t.tile:8:5", "256 elements"),
        ("b = broadcast(a, (8,64))", "E1201", "t.tile:8:5", "(4,64)"),
        ("b = load(x, (1024,1024), (block.x, 0))", "E1206", "t.tile:8:5", "65536"),
        ("b = exp(load(h, (4,64), (block.x, 0)))", "E1202", "t.tile:8:5", "bf16"),
        ("b = a + arange((4,64), 1)", "E1202", "t.tile:8:7", "one type"),
        ("b = dot(a, a, a)", "E1202", "t.tile:8:5", "f16, bf16, e4m3 or e5m2"),
        ("b = dot(tf32(a), tf32(a) + 1, a)", "E1202", "t.tile:8:5", "f32 that `tf32` has rounded"),
        ("b = tf32(f64(a))", "E1202", "t.tile:8:5", "tf32 of elements of f64, where f32 is wanted"),
        ("store(y, (block.x, 0), load(h, (4,64), (block.x, 0)))", "E1202", "t.tile:8:1", "the same type"),
        ("store(x, (block.x, 0), a)", "E1205", "t.tile:8:1", "written"),
        ("b = load(y, (4,64), (block.x, 0))", "E1205", "t.tile:8:5", "read"),
        ("b = c", "E1203", "t.tile:8:5", "`c`"),
        ("loop i < 4 { a = a * 2 }", "E1207", "t.tile:8:14", "`a` is given before the loop at t.tile:8:1"),
        (
            "loop i < 4 { b = exp(a) }\nstore(y, (block.x, 0), b)",
            "E1203",
            "t.tile:9:24",
            "the body of the loop at t.tile:8:1",
        ),
        (
            "loop i < 4 { a = load(x, (4,64), (i, 0)) }\nstore(y, (block.x, 0), a)",
            "E1203",
            "t.tile:9:24",
            "`a` is defined in the body of the loop",
        ),
        (
            "loop i < 4 { loop j < 4 { b = exp(a) }\nstore(y, (i, 0), b) }",
            "E1203",
            "t.tile:9:18",
            "the body of the loop",
        ),
        ("loop i < 4 { loop j < 4 { a = exp(a) } }", "E1207", "t.tile:8:27", "before the loop at t.tile:8:1"),
        (
            "b = broadcast(a, (4,128))",
            "E1201",
            "t.tile:8:5",
            "(4,64) does not broadcast to (4,128): its extent along mode 1 is 64",
        ),
        ("b = a + load(x, (8,64), (0, 0))", "E1201", "t.tile:8:7", "along mode 0 one has 4 elements, the other 8"),
        ("b = f32(size(M//2))", "E0122", "t.tile:8:9", "`M//2` is not an expression of sizes"),
        ("b = tan(a)", "E1203", "t.tile:8:5", "`tan`"),
        ("b = load(x, (4,64), (i, 0))", "E1203", "t.tile:8:22", "`i`"),
        ("b = exp a", "E1203", "t.tile:8:5", "`exp`"),
        ("b = exp(a", "E1204", "t.tile:9:1", "expected `)`, found `}`"),
        ("b = load(x, (4,64), (block.x*block.x, 0))", "E1204", "t.tile:8:30", "a number"),
        ("loop i < 4 with s = f32(0) { next s + a } -> s", "E1207", "t.tile:8:1", "f32 (4,64)"),
        ("loop i < 4 with s = a { b = a next s } -> s\nc = b", "E1203", "t.tile:9:5", "`b`"),
        ("b = held(a, \"(32,8):(8,2)\")", "E1208", "t.tile:8:5", "held twice"),
        ("b = held(a, \"(32,4):(4,1)\")", "E1208", "t.tile:8:5", "128 elements"),
        ("b = top(a, 1, 128)", "E1206", "t.tile:8:5", "128 of the elements along mode 1"),
        ("b = top(a, 1, 0)", "E1201", "t.tile:8:5", "from 1 on"),
        ("b = argmax(a, 2)", "E1201", "t.tile:8:5", "a mode 2"),
        ("b = histogram(a, 64)", "E1202", "t.tile:8:5", "f32, where i32"),
        ("b = xor(a, 3)", "E1202", "t.tile:8:5", "bits of elements of f32"),
        ("b = as_i32(load(h, (4,64), (block.x, 0)))", "E1202", "t.tile:8:5", "bf16"),
        ("b = unpack_i4(i32(a), e4m3)", "E1202", "t.tile:8:5", "e4m3, where bf16"),
        ("b = random(i32(a), 0, 4)", "E1206", "t.tile:8:5", "0 to 3"),
        ("b = random(a, 0, 1)", "E1202", "t.tile:8:5", "one type"),
        ("b = e4m3(i32(a))", "E1202", "t.tile:8:5", "i32"),
        ("b = load(x, (4,64), (a, 0))", "E1202", "t.tile:8:5", "coordinates of elements of f32"),
        ("b = reduce_sum(i32(a), 0)\nc = load(x, (4,64), (b, 0))", "E1201", "t.tile:9:5", "(4,1) is wanted"),
        ("b = reduce_sum(i32(a), 1)\nc = load(x, (4,64), (b, b))", "E1201", "t.tile:9:5", "(1,64) is wanted"),
        ("b = arange((4,64), 1)\nc = load(x, (8,64), (b, 0))", "E1201", "t.tile:9:5", "(8,1) is wanted"),
        ("b = arange((4), 0)\nc = load(x, (4,64), (0, b))", "E1201", "t.tile:9:5", "(1,64) is wanted"),
        (
            "b = arange((4,1), 0)\nc = load(x, (4,64), (b + block.x, 0))",
            "E1201",
            "t.tile:9:5",
            "an index is added to its coordinate",
        ),
        ("b = i32(a)\nc = stage(h, (1,64), (b, b), (0,1))", "E1206", "t.tile:9:5", "2 tiles of coordinates"),
        ("b = stage(z, (4,64), (block.x, 0), (0,1))", "E1205", "t.tile:8:5", "z cannot be read"),
        ("loop i < [a] with s = a { next s } -> s", "E1202", "t.tile:8:1", "a count of iterations of elements of f32"),
        ("loop i < [i32(a)] with s = a { next s } -> s", "E1201", "t.tile:8:1", "one of one element"),
        ("loop i < [b] with s = a { next s } -> s", "E1203", "t.tile:8:11", "`b`"),
        ("b = i32(1)\nc = stage(h, (1,64), (b, 0), (0,1))", "E1201", "t.tile:9:5", "(1,1) is wanted"),
        ("atomic_add(y, (block.x, 0), a)", "E1205", "t.tile:8:1", "nothing before"),
        ("atomic_add(z, (block.x, 0), a)", "E1202", "t.tile:8:1", "the same type"),
        ("b = reduce_sum(i32(a), 1)\nstore(y, (b, 0), a)", "E1205", "t.tile:9:1", "`inout`"),
        ("b = load(x, (64), (block.x))", "E1201", "t.tile:8:5", "one of 2 extents, as x has"),
        ("b = load(x, (4,8,8), (block.x, 0, 0))", "E1201", "t.tile:8:5", "one of 2 extents, as x has"),
        ("store(y, (block.x), a)", "E1201", "t.tile:8:1", "one of one extent, as its place has"),
        ("store(y, (block.x), reshape(a, (256)))", "E1201", "t.tile:8:1", "one of 2 extents, as y has"),
        ("b = transpose(a, (1,2))", "E1201", "t.tile:8:5", "whose modes (1,2) names, each once"),
        ("b = i32(a) * 0.5", "E1202", "t.tile:8:12", "0.5 is no number of i32"),
        ("b = i32(a) + 3000000000", "E1202", "t.tile:8:12", "3000000000 is no number of i32"),
        ("b = random(i32(a), 1.5, 0)", "E1202", "t.tile:8:5", "1.5 is no number of i32"),
        ("b = unpack_i4(i32(a), i8)", "E1202", "t.tile:8:5", "numbers of four bits as a tile of elements of i8"),
        ("b = exp(f64(a))", "E1202", "t.tile:8:5", "exp of elements of f64, where f32 is wanted"),
        ("b = erf(i64(a))", "E1202", "t.tile:8:5", "erf of elements of i64"),
        ("b = sqrt(i64(a))", "E1202", "t.tile:8:5", "f32 or f64"),
        ("b = bf16(f64(a))", "E1202", "t.tile:8:5", "a conversion to bf16 of elements of f64"),
        ("b = f64(a) + i64(a)", "E1202", "t.tile:8:12", "one type"),
        ("b = as_f64(a)", "E1202", "t.tile:8:5", "bits as f64 of elements of f32"),
        ("b = i64(a) + 9007199254740993", "E1202", "t.tile:8:12", "9007199254740992 is no number of i64"),
        ("b = xor(f64(a), 3)", "E1202", "t.tile:8:5", "bits of elements of f64"),
        ("b = histogram(i64(a), 64)", "E1202", "t.tile:8:5", "i64, where i32"),
        ("b = load(x, (4,64), (block.w, 0))", "E1203", "t.tile:8:22", "no axis `w`"),
        ("b = load(x, (4,64), (i32(a), 0))", "E1204", "t.tile:8:22", "a tile of coordinates by its name"),
        ("b = load(x, (4,64), (2*a, 0))", "E1204", "t.tile:8:24", "a tile of coordinates by its name"),
        ("b = select(a ~ 0, a, 0)", "E1204", "t.tile:8:14", "a comparison"),
        ("input u: f32 8:1", "E1204", "t.tile:8:1", "`input` follows a statement"),
        ("loop i <= 4 with s = a { next s } -> s", "E1204", "t.tile:8:8", "how many iterations"),
        ("loop i < 4 with s = a { b = s } -> s", "E1207", "t.tile:8:1", "begins with 1 value, and hands on 0"),
        ("loop i < 4 with s = a { next s, s } -> s", "E1207", "t.tile:8:1", "begins with 1 value, and hands on 2"),
    ];
    for (statements, code, place, words) in cases {
        let (error, text) = refused(statements);
        assert_eq!(error.code(), code, "{error}\n{text}");
        assert!(error.to_string().contains(place), "{error}, not at {place}");
        assert!(error.to_string().contains(words), "{error}, without `{words}`");
        assert!(error.help().is_some());
    }
}

#[test]
fn declarations_are_refused_at_their_lines() {
    let program = |declarations: &str| {
        format!("tile t {{\ninput x: f32 (M,64):(64,1)\n{declarations}\ny = load(x, (4,64), (0, 0))\n}}")
    };
    let cases = [
        ("input h: u16 (M,64):(64,1)", "E1202", "f32, f16, bf16", "declare it with one of these"),
        ("input h: float32 (M,64):(64,1)", "E1203", "no type `float32`", "f32, f16, bf16"),
        ("input h: f32 (M,64):(64", "E0122", "expected", ""),
        ("input h: f32 (M,64):(64,1,1)", "E0101", "nests as", ""),
        ("output x: f32 (M,64):(64,1)", "E1205", "x cannot be declared again", "a name of its own"),
        ("input h: i32 (2,2,2,2,2,2):(1,2,4,8,16,32)", "E1206", "6 modes of h", "merge contiguous modes"),
        ("grid 1, 2, 3, 4", "E1206", "4 axes of a grid", "x, y and z alone"),
        ("grid M//4", "E0122", "expected", ""),
        // Whether or not there is an output that stays unwritten.
        ("grid 0", "E1206", "0 blocks along an axis", "as in `grid ceil(M/4)`"),
        ("output z: f32 (M,64):(64,1)\ngrid M, 2 - 3", "E1206", "2 - 3 blocks along", "leave the axis out"),
        ("a = load(x, (4,64), (0, 0))\ngrid M", "E1204", "`grid` follows a statement", "move this `grid` up"),
        ("warps 3", "E1206", "3 warps, where a block has 1, 2, 4, 8, 16 or 32", "the plan chooses"),
        ("warps 64", "E1206", "64 warps, where", "the plan chooses"),
        ("input h: i32 (M,64):(64,1)\na = load(h, (4,64), (0, 0), 0.5)", "E1202", "0.5 is no number of i32", "f32(x)"),
        ("input h: u8 (M,64):(64,1)\na = load(h, (4,64), (0, 0), -1)", "E1202", "-1 is no number of u8", "f32(x)"),
        ("input h: i8 (M,64):(64,1)\na = load(h, (4,64), (0, 0), inf)", "E1202", "inf is no number of i8", "f32(x)"),
    ];
    for (declarations, code, words, helps) in cases {
        let text = program(declarations);
        let error = Program::read("t.tile", &text).expect_err(&text);
        let line = 3 + declarations.matches('\n').count() as u32;
        assert_eq!(error.code(), code, "{error}\n{text}");
        assert_eq!(error.place().map(|place| (place.file(), place.line())), Some(("t.tile", line)), "{error}");
        assert!(error.to_string().contains(words), "{error}, without `{words}`");
        assert!(helps.is_empty() || error.help().is_some_and(|help| help.contains(helps)), "{:?}", error.help());
    }
    // An output that no statement stores to, in a loop or before it.
    let unwritten: Program = program("output z: f32 (M,64):(64,1)").parse().unwrap();
    let error = unwritten.compile(None).unwrap_err();
    assert_eq!((error.code(), error.place().map(|place| place.line())), ("E1205", Some(3)), "{error}");
    assert!(error.to_string().contains("z cannot be left unwritten"), "{error}");
}

#[test]
fn functions_of_other_libraries_are_named_in_ours() {
    for (function, ours) in [
        ("where(a < 0, a, 0)", "select(a < b, yes, no)"),
        ("sum(a, 1)", "reduce_sum(a, 1)"),
        ("sigmoid(a)", "recip(1 + exp(-a))"),
        ("ln(a)", "log(a)"),
        ("matmul(a, a)", "dot(a, b, c)"),
        ("zeros((4,64))", "broadcast(f32(0), (4,64))"),
        ("frobnicate(a)", "tilewright explain E1204"),
    ] {
        let (error, _) = refused(&format!("b = {function}"));
        assert_eq!(error.code(), "E1203", "{error}");
        assert!(error.help().is_some_and(|help| help.contains(ours)), "{error}: {:?}", error.help());
    }
}

#[test]
fn comparisons_are_turned_round() {
    let text = |condition: &str| {
        let program = "tile t {\ninput x: f32 8:1\noutput y: f32 8:1\na = load(x, (8), (0))\n\
                       store(y, (0), select(CONDITION))\n}"
            .replace("CONDITION", condition);
        program.parse::<Program>().unwrap_or_else(|error| panic!("{error}\n{program}")).to_string()
    };
    assert!(text("a > 3, a, 0").contains("select(v3 < v0, v0, v4)"), "{}", text("a > 3, a, 0"));
    let run = |condition: &str| {
        let program: Program = text(condition).parse().unwrap();
        let x = vec![1.0, 2.0, 3.0, 4.0, f64::NAN, f64::INFINITY, -1.0, 3.0];
        interpret::run(&program, &[], &[("x", x)]).unwrap()[0].1.clone()
    };
    let ones = |wanted: [i32; 8]| wanted.map(|one| Some(f64::from(one))).to_vec();
    assert_eq!(run("a > 3, 1, 0"), ones([0, 0, 0, 1, 0, 1, 0, 0]));
    assert_eq!(run("a >= 3, 1, 0"), ones([0, 0, 1, 1, 0, 1, 0, 1]));
    assert_eq!(run("a < 3, 1, 0"), ones([1, 1, 0, 0, 0, 0, 1, 0]));
    assert_eq!(run("a <= 3, 1, 0"), ones([1, 1, 1, 0, 0, 0, 1, 1]));
    assert_eq!(run("a == 3, 1, 0"), ones([0, 0, 1, 0, 0, 0, 0, 1]));
    assert_eq!(run("a != 3, 1, 0"), ones([1, 1, 0, 1, 1, 1, 1, 0]));
}

#[test]
fn values_of_another_program_are_refused() {
    // A value of a longer program has a number that a shorter one does not have.
    let _ = Program::build("long", |long| {
        let mut foreign = long.full(&[4, 64], 1.0);
        for _ in 0..8 {
            foreign = foreign + 1.0;
        }
        for case in 0..3 {
            let error = Program::build("short", |t| {
                let y = t.output(Element::F32, "y", "(4,64):(64,1)")?;
                let (at, own) = ([0.into(), 0.into()], t.full(&[4, 64], 0.0));
                match case {
                    0 => t.store(y, &at, foreign),
                    1 => {
                        t.range(2, &[own], |_, _| Ok(vec![foreign]))?;
                    }
                    _ => {
                        t.range(2, &[foreign], |_, carried| Ok(vec![carried[0] + own]))?;
                    }
                }
                Ok(())
            });
            let error = error.and_then(|program| program.verify()).unwrap_err();
            assert!(["E1203", "E1207"].contains(&error.code()), "{case}: {error}");
        }
        Ok(())
    });
}

#[test]
fn rust_names_the_line_that_calls() {
    let error = Program::build("t", |t| {
        let x = t.input(Element::F32, "x", "(M,64):(64,1)")?;
        let a = t.load(x, &[4, 64], &[0.into(), 0.into()]);
        let _ = a + t.load(x, &[4, 32], &[0.into(), 0.into()]);
        Ok(())
    });
    let error = error.unwrap_err();
    let place = error.place().expect("the place is known");
    assert!(place.file().ends_with("refusals.rs") && place.line() == line!() - 5, "{error}");
}

#[test]
fn a_compile_says_what_does_not_fit() {
    let compile = |text: &str| text.parse::<Program>().unwrap().compile(None).unwrap_err();
    // Copies to shared memory are iterations ahead of the value that would give their index.
    let late = compile(
        "tile t {\ninput x: bf16 (E,64,64):(4096,64,1)\ninput n: i32 8:1\noutput y: f32 (64,64):(64,1)\n\
         loop i < 8 with s = broadcast(f32(0), (64,64)) {\nw = reshape(load(n, (1), (i)), (1,1,1))\n\
         a = stage(x, (1,64,64), (w, 0, 0), (1,2))\nnext dot(a, a, s)\n} -> s\nstore(y, (0, 0), s)\n}",
    );
    assert_eq!(late.code(), "E1208", "{late}");
    assert!(late.to_string().contains(":7:5") && late.to_string().contains("known before the loop"), "{late}");
    // 65,536 numbers of 32 bits in a block of 32 threads.
    let large = compile(
        "tile t {\ninput x: f32 (M,256):(256,1)\noutput y: f32 (M,256):(256,1)\nwarps 1\n\
         store(y, (0, 0), load(x, (256,256), (0, 0)))\n}",
    );
    assert_eq!(large.code(), "E1211", "{large}");
    let words = "2048 registers of a thread for one value, where there are 240: f32 (256,256) at";
    assert!(large.to_string().contains(words), "{large}");
    assert!(large.to_string().contains(":5:18 takes 2048"), "{large}");
    // Each of two tiles takes more than there is: both are named, at their lines, the larger first.
    let two = compile(
        "tile t {\ninput x: f32 (M,256):(256,1)\noutput y: f32 (M,1):(1,1)\nwarps 1\n\
         a = load(x, (64,256), (0, 0))\nb = load(x, (128,256), (0, 0))\n\
         store(y, (0, 0), reduce_sum(a, 1))\nstore(y, (1, 0), reduce_sum(b, 1))\n}",
    )
    .to_string();
    assert!(two.contains(":6:5 takes 1024, f32 (64,256) at") && two.contains(":5:5 takes 512"), "{two}");
    // A dot with fewer MMA instructions than the block has warps asks for fewer of them.
    let few = compile(
        "tile t {\ninput x: bf16 (M,16):(16,1)\noutput y: f32 (M,16):(16,1)\nwarps 8\n\
         a = load(x, (16,16), (0, 0))\nstore(y, (0, 0), dot(a, a, broadcast(f32(0), (16,16))))\n}",
    );
    assert_eq!((few.code(), few.to_string().contains("8 warps")), ("E1211", true), "{few}");
    assert_eq!(few.help().unwrap(), "take larger tiles, or fewer warps, as in `warps 2`");
    // What 32 bits do not count says so.
    let far = compile(
        "tile t {\ninput x: f32 M:1\noutput y: f32 (5,3):(1,5)\ngrid 3\n\
         store(y, (0, block.x), reshape(load(x, (5), ([block.x*3000000000])), (5,1)))\n}",
    );
    assert_eq!(far.code(), "E0910", "{far}");
    assert!(far.help().unwrap().contains("are counted in 32 bits"), "{far:?}");
    // A reshape that would move elements behind an end says what to load.
    let moved = compile(
        "tile t {\ninput x: f32 (M,5):(5,1)\noutput y: f32 15:1\n\
         store(y, (0), reshape(load(x, (3,5), (0, 0)), (15)))\n}",
    );
    assert_eq!(moved.code(), "E1201", "{moved}");
    assert!(moved.help().unwrap().starts_with("load the tile in the shape that is needed"), "{moved:?}");
    // A tile that is written as its transpose goes through shared memory, 256 KiB of it.
    let rows = "tile t {\ninput x: f32 (M,256):(256,1)\noutput y: f32 (M{div=4},256):(1,M)\nwarps 16\n\
                a = load(x, (256,256), (0, 0))\nstore(y, (0, 0), a)\n}";
    let room = compile(rows);
    assert_eq!(room.code(), "E1211", "{room}");
    assert!(room.to_string().contains("bytes of shared memory"), "{room}");
    assert!(room.to_string().contains(":6:1 takes"), "{room}");
    assert!(room.help().is_some_and(|help| help.contains("by hand")), "{room}");
    // Values that take little are not named.
    assert!(!large.to_string().contains("takes 1,") && !large.to_string().ends_with("takes 1"), "{large}");
    // A refusal by the kernel language, in the words of this one, at its line.
    let half = compile(
        "tile t {\ninput x: f32 (M,64):(64,1)\noutput y: f32 (M,64):(64,1)\ngrid ceil(M/4)\n\
         store(y, (0, 0), load(x, (4,64), (0, 0)))\n}",
    );
    assert!(half.to_string().contains("refused: store at <text>:5:1: elements of the output y"), "{half}");
    // A layout of other threads.
    let held = compile(
        "tile t {\ninput x: f32 (M,64):(64,1)\noutput y: f32 (M,64):(64,1)\nwarps 2\n\
         store(y, (0, 0), held(load(x, (2,64), (0, 0)), \"(32,4):(4,1)\"))\n}",
    );
    assert_eq!(held.code(), "E1208", "{held}");
}

#[test]
fn a_run_says_what_is_missing_and_what_is_written_twice() {
    let program: Program =
        "tile t {\ninput x: f32 N:1\noutput y: f32 N:1\ngrid 2\nstore(y, (0), load(x, (4), (0)))\n}".parse().unwrap();
    let run = |sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]| interpret::run(&program, sizes, inputs);
    let code = |error: TileError| (error.code(), error.to_string());
    assert_eq!(code(run(&[], &[]).unwrap_err()).0, "E0116");
    assert_eq!(code(run(&[("N", 4)], &[]).unwrap_err()).0, "E1209");
    assert_eq!(code(run(&[("N", 4)], &[("x", vec![0.0; 3])]).unwrap_err()).0, "E1209");
    let twice = code(run(&[("N", 4)], &[("x", vec![0.0; 4])]).unwrap_err());
    assert_eq!(twice.0, "E1210");
    assert!(twice.1.contains("offset 0 of y"), "{}", twice.1);
}

#[test]
fn a_tile_is_stored_to_once() {
    let of = |second: &str| {
        let text = format!(
            "tile t {{\ninput x: f32 N:1\noutput y: f32 N:1\ngrid ceil(N/128)\na = load(x, (64), (block.x*2))\n\
             store(y, (block.x*2), a)\nstore(y, ({second}), a)\n}}"
        );
        Program::read("t.tile", &text).unwrap().compile(None)
    };
    let error = of("block.x*2").unwrap_err();
    assert_eq!(error.code(), "E1210", "{error}");
    assert!(error.to_string().contains("t.tile:7:1: a statement before stores to this tile of y"), "{error}");
    assert!(of("block.x*2 + 1").is_ok());
}

#[test]
fn a_check_finds_what_was_not_shown_when_the_kernel_was_built() {
    let text = "
tile t {
    input x: f32 N:1
    output y: f32 N:1
    grid ceil(N/128)
    store(y, (block.x), load(x, (128), (block.x)))
    store(y, (0), load(x, (128), (block.x)))
}";
    let compiled = Program::read("t.tile", text).unwrap().compile(None).unwrap();
    assert!(!matches!(compiled.kernel().outputs()[0].written, Written::Once));
    let found = compiled.check(&[("N", 300)]).unwrap_err();
    assert!(matches!(&found, Unchecked::Program(error) if error.code() == "E1210"), "{found}");
    let found = compiled.check(&[("M", 300)]).unwrap_err();
    assert!(found.to_string().contains("`M`"), "{found}");
}

#[test]
fn texts_that_are_cut_off_are_refused_without_a_panic() {
    for tilewright_tile::Entry { name, text, .. } in tilewright_tile::LIBRARY {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(13).collect();
        for end in ends {
            // A text that is complete without its end is another program; everything else is
            // refused.
            let _ = Program::read(name, &text[..end]);
            let _ = Program::read(name, &text[end..]);
            let _ = Program::read(name, &format!("{}({}", &text[..end], &text[end..]));
        }
    }
    let deep = format!("tile t {{ a = {}1{} }}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(Program::read("deep", &deep).unwrap_err().code(), "E1206");
    let negative = format!("tile t {{ a = {}1 }}", "-".repeat(10_000));
    assert_eq!(Program::read("negative", &negative).unwrap_err().code(), "E1206");
    let index = format!("tile t {{ a = index({}1{}) }}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(Program::read("index", &index).unwrap_err().code(), "E1206");
    let _ = Index::from(1);
}

/// The refusal of compiling a program with this grid and these statements.
fn uncompiled(grid: &str, statements: &str) -> TileError {
    let text = format!(
        "tile t {{\ninput x: f32 (M,64):(64,1)\noutput y: f32 (M,64):(64,1)\n{grid}\n\
         a = load(x, (4,64), (block.x, 0))\n{statements}\n}}"
    );
    let read = Program::read("t.tile", &text);
    read.and_then(|program| program.compile(None).map(drop)).expect_err(&text)
}

#[test]
fn sizes_and_grids_that_no_launch_knows_are_refused_at_their_line() {
    let store = "store(y, (block.x, 0), a)";
    let iterations = "loop i < Z with s = a { next s } -> s\nstore(y, (block.x, 0), s)";
    let cases = [
        ("grid ceil(N/4)", store, "E1203", "t.tile:4:1", "the size N is in no layout of a tensor; the sizes are M"),
        ("grid ceil(M/4", store, "E0122", "t.tile:4:1", "`ceil(M/4` is not a number of blocks"),
        ("grid (M+3)//4", store, "E0122", "t.tile:4:1", "`(M+3)//4` is not a number of blocks"),
        ("grid", store, "E0122", "t.tile:4:1", "a number of blocks is missing here"),
        ("warps 1", store, "E1206", "t.tile:5:5", "block.x is used, and no grid says"),
        ("grid ceil(M/4)", iterations, "E1203", "t.tile:6:1", "the size Z is in no layout"),
        ("grid ceil(M/4)", "store(y, (block.x, 0), a + f32(size(Q)))", "E1203", "t.tile:6:32", "the size Q"),
        (
            "grid ceil(M/4)",
            "store(y, (block.x*4611686018427387904*4 + 1, 0), a)",
            "E1206",
            "t.tile:6:1",
            "an index does not fit in 64 bits",
        ),
        ("grid 1", "store(y, (0, 0), a)", "E0917", "t.tile:6:1", "are not written"),
    ];
    for (grid, statements, code, place, words) in cases {
        let error = uncompiled(grid, statements);
        let message = error.to_string();
        assert_eq!(error.code(), code, "{message}");
        assert!(message.contains(place) && message.contains(words), "{message}");
        assert!(!message.contains(".rs:") && !message.contains("?{"), "{message}");
        let help = error.help().unwrap_or_default();
        assert!(!help.is_empty() && !help.contains("k.") && !help.contains("local_tile"), "{message}: {help}");
    }
}

#[test]
fn what_is_declared_of_sizes_leads_to_no_other_error() {
    // The error is the same, whatever sizes were taken to be.
    for size in ["M", "M{max=1024}", "M{div=7,max=100}", "M{min=9000}", "M{div=3}"] {
        let text = |second: &str| {
            format!(
                "tile t {{\ninput x: f32 ({size},64):(64,1)\noutput y: f32 ({second},64):(64,1)\ngrid 1\n\
                 store(y, (0, 0), load(x, (4,64), (0, 0)))\n}}"
            )
        };
        for second in [size, "M"] {
            let error = Program::read("t.tile", &text(second)).unwrap().compile(None).unwrap_err();
            assert_eq!(error.code(), "E0917", "{size} {second}: {error}");
            assert!(error.to_string().contains("t.tile:5:1"), "{error}");
        }
    }
    let text = "tile t {\ninput x: f32 (M{max=10},64):(64,1)\noutput y: f32 (M{min=20},64):(64,1)\n}";
    let error = Program::read("t.tile", text).unwrap_err();
    assert!(error.to_string().contains("t.tile:3:1"), "{error}");
    // Five modes of 4096 have more elements than 64 bits count; smaller sizes have not.
    let text = "tile t {\ninput x: u8 (A,B,C,D,E):(1,A,A*B,A*B*C,A*B*C*D)\n\
                output y: u8 (A,B,C,D,E):(1,A,A*B,A*B*C,A*B*C*D)\ngrid ceil(A/32), B\n\
                loop c < C {\nloop d < D {\nloop e < E {\n\
                store(y, (block.x, block.y, c, d, e), load(x, (32,1,1,1,1), (block.x, block.y, c, d, e)))\n}\n}\n}\n}";
    let compiled = Program::read("t.tile", text).unwrap().compile(None).unwrap_or_else(|error| panic!("{error}"));
    compiled.check(&[("A", 5), ("B", 2), ("C", 2), ("D", 1), ("E", 3)]).unwrap();
}

#[test]
fn memory_that_goes_backwards_is_refused_by_its_layout() {
    // Offsets count from a first element, which this memory does not have at 0.
    let matrix = ("4,8", "(4,8):(8,1)", "0, 0");
    for ((shape, forwards, place), layout) in
        [(("4", "4:1", "0"), "4:-1"), (matrix, "(4,8):(-8,1)"), (matrix, "(4,8):(1,-4)")]
    {
        let of_input = format!(
            "tile t {{\ninput x: f32 {layout}\noutput y: f32 {forwards}\ngrid 1\n\
             store(y, ({place}), load(x, ({shape}), ({place})))\n}}"
        );
        let of_output =
            format!("tile t {{\noutput y: f32 {layout}\ngrid 1\nstore(y, ({place}), broadcast(f32(1), ({shape})))\n}}");
        for text in [of_input, of_output] {
            let error = match Program::read("t.tile", &text).and_then(|program| program.compile(None)) {
                Err(error) => error,
                Ok(_) => panic!("{text} is taken"),
            };
            assert!(error.to_string().contains(layout), "{text}: {error}");
            // The interpreter refuses a program without a first element too.
            if let Ok(program) = Program::read("t.tile", &text) {
                let error = interpret::run(&program, &[], &[("x", vec![0.0; 32])]).expect_err(&text);
                assert!(error.to_string().contains(layout), "{text}: {error}");
            }
        }
    }
    // A stride that becomes known at launch is none below 1.
    let text = "tile t {\ninput x: f32 (4,S):(S,1)\noutput y: f32 4:1\ngrid 1\n\
                store(y, (0), reshape(load(x, (4,1), (0, 0)), (4)))\n}";
    let compiled = Program::read("t.tile", text).unwrap().compile(None).unwrap_or_else(|error| panic!("{error}"));
    compiled.check(&[("S", 3)]).unwrap();
    for size in [-1, -3] {
        assert!(compiled.check(&[("S", size)]).is_err(), "S={size}");
    }
}
