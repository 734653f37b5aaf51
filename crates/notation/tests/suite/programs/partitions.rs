//! Tiles of blocks and parts of threads in the language, against the library's partitions and
//! against the definition.

use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::{Layout, Tiler};
use tilewright_notation::{Environment, Value, evaluate};

fn evaluated(source: &str) -> Value {
    match evaluate(source, &mut Environment::new()) {
        Ok(value) => value,
        Err(error) => panic!("{}", error.render(source, false)),
    }
}

/// The values of a map that a program gives, in the order of its indices.
fn table(source: &str) -> Vec<i64> {
    let map = evaluated(source);
    let size: i64 = evaluated(&format!("size({map})")).to_string().parse().unwrap();
    let mut names = Environment::new();
    names.bind("map", map);
    let at = |index| evaluate(&format!("map({index})"), &mut names.clone()).unwrap().to_string().parse().unwrap();
    (0..size).map(at).collect()
}

/// The same of a layout that begins at an offset.
fn offsets((offset, part): (i64, Layout)) -> Vec<i64> {
    (0..part.size()).map(|index| offset + part.eval(&index).unwrap()).collect()
}

#[test]
fn a_local_tile_is_the_elements_of_the_block() {
    for (row, column) in [(0, 0), (3, 0), (1, 7)] {
        let tile = table(&format!("local_tile((128,64):(64,1), (32,8), ({row},{column}))"));
        let expected: Vec<i64> =
            (0..8).flat_map(|k| (0..32).map(move |m| (32 * row + m) * 64 + 8 * column + k)).collect();
        assert_eq!(tile, expected);
    }
    // A mode that the coordinate leaves open comes last; a projection picks modes of the tiler and
    // of the coordinate.
    let open = "local_tile((128,64):(64,1), (32,8), (2,_))";
    let picked = "local_tile((128,64):(64,1), (32,16,8), (2,5,_), proj=(1,None,1))";
    assert_eq!(evaluated(open), evaluated(picked));
    let expected: Vec<i64> =
        (0..8).flat_map(|rest| (0..8).flat_map(move |k| (0..32).map(move |m| (64 + m) * 64 + 8 * rest + k))).collect();
    assert_eq!(table(open), expected);
    // Known at launch, with the numbers put in afterwards.
    let source = "local_tile((M,K{div=64}):(K,1), (128,64), (m{min=0},_))";
    let known = evaluated(&format!("substitute({source}, M, 512, K, 256, m, 3)"));
    assert_eq!(known, evaluated("local_tile((512,256):(256,1), (128,64), (3,_))"));
    assert_eq!(
        evaluated("local_tile(make_identity_layout((128,64)), (32,8), (1,2))").to_string(),
        "((32,8):(1@0,1@1),(32,16))"
    );
    for source in ["local_tile((8,8), (4,4), (0,0,0))", "local_tile((8,8), (4,4), true)", "local_tile(true, 2, 0)"] {
        assert!(evaluate(source, &mut Environment::new()).is_err(), "{source}");
    }
}

/// A shape stands for its compact layout in tiles and in parts, as it does elsewhere.
#[test]
fn a_shape_stands_for_its_compact_layout() {
    let mma = "get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5)";
    let copy = "get_slice(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (8,8):(8,1), (1,4)), 9)";
    let mut calls: Vec<String> =
        ["partition_A", "partition_B", "partition_C", "make_fragment_A", "make_fragment_B", "make_fragment_C"]
            .map(|name| format!("{name}({mma}, A)"))
            .into();
    calls.extend(["partition_S", "partition_D"].map(|name| format!("{name}({copy}, A)")));
    calls.extend(["local_tile(A, (16,8), (1,_))", "local_tile(A, (16,5,8), (1,7,2), proj=(1,_,1))"].map(str::to_owned));
    for call in calls {
        for shape in ["(32,64)", "((4,8),(2,32))", "(32,K{div=64})"] {
            if call.starts_with("make_fragment") && shape.contains('K') {
                continue; // Registers are counted.
            }
            let of =
                |text: &str| evaluated(&call.replace("A,", &format!("{text},")).replace("A)", &format!("{text})")));
            let compact = evaluated(&format!("make_layout({shape})")).to_string();
            assert_eq!(of(shape), of(&compact), "{call} of {shape}");
        }
    }
    assert_eq!(table("local_tile(12, 4, 1)"), [4, 5, 6, 7]);
}

/// Each instruction is named by a word, and what is said about a name that is none is a name that
/// is taken: all names of the catalogue, each with a letter changed or left out.
#[test]
fn names_that_are_suggested_are_accepted() {
    let mut words = Vec::new();
    for family in CopyAtom::families() {
        words.extend(family.names().iter().map(|name| ("make_tiled_copy_tv", tilewright_layout::atoms::word(name))));
    }
    for family in MmaAtom::families() {
        words.extend(family.names().iter().map(|name| ("make_tiled_mma", tilewright_layout::atoms::word(name))));
    }
    let rest = |function: &str| if function == "make_tiled_mma" { ")" } else { ", 32, 32:1, 4:1)" };
    let program = |function: &str, word: &str| format!("{function}({word}{}", rest(function));
    let is_unknown = |source: &str| match evaluate(source, &mut Environment::new()) {
        Err(error) => matches!(error.code, "E0316" | "E0201"),
        Ok(_) => false,
    };
    // Each is looked up by its name in the tests of atoms; here one of each dozen.
    for (function, word) in words.iter().step_by(12) {
        assert!(!is_unknown(&program(function, word)), "{word}");
    }
    // As others spell them, and in each place of a few of each kind a letter less or another one.
    let mut wrong: Vec<(&str, String)> = vec![
        ("make_tiled_copy_tv", "SM80_CP_ASYNC_CACHEALWAYS_32b".into()),
        ("make_tiled_copy_tv", "SM80_CP_ASYNC_CACHEALWAYS".into()),
        ("make_tiled_copy_tv", "UniversalCopy".into()),
        ("make_tiled_mma", "UniversalFMA".into()),
    ];
    for (function, word) in words.iter().step_by(words.len() / 8) {
        for at in (0..word.len()).step_by(11) {
            wrong.push((function, format!("{}{}", &word[..at], &word[at + 1..])));
            wrong.push((function, format!("{}Q{}", &word[..at], &word[at + 1..])));
        }
    }
    let mut suggested = 0;
    for (function, word) in wrong {
        let source = program(function, &word);
        let Err(error) = evaluate(&source, &mut Environment::new()) else { continue };
        let told = error.render(&source, false);
        let Some((_, help)) = told.split_once("help: is ") else { continue };
        for name in help.split('`').skip(1).step_by(2) {
            suggested += 1;
            assert!(!is_unknown(&program(function, name)), "{word}: {told}");
        }
    }
    assert!(suggested > 10, "{suggested}");
}

#[test]
fn parts_of_products_are_those_of_the_library() {
    let name = "SM80_16x8x16_F32F16F16F32_TN";
    let mma = TiledMma::new(MmaAtom::named(name).unwrap(), &"(2,2,1):(1,2,0)".parse().unwrap(), &Tiler::Keep).unwrap();
    let layout: Layout = "(64,32):(32,1)".parse().unwrap();
    for (letter, operand) in [("A", Operand::A), ("B", Operand::B), ("C", Operand::C)] {
        for thread in [0, 5, 63, 127] {
            let thr = mma.get_slice(&thread).unwrap();
            let source = format!("mma = make_tiled_mma({name}, (2,2,1):(1,2,0)); thr = mma.get_slice({thread})");
            let part = format!("{source}; thr.partition_{letter}({layout})");
            assert_eq!(table(&part), offsets(thr.partition(operand, &layout).unwrap()), "{part}");
            let fragment = evaluated(&format!("{source}; thr.make_fragment_{letter}({layout})"));
            let expected = thr.fragment(operand, &layout).unwrap();
            let same = evaluated(&format!("equivalent({fragment}, {expected})"));
            assert_eq!(same.to_string(), "true", "{fragment} and {expected}");
        }
        let all = evaluated(&format!("partition_{letter}(make_tiled_mma({name}, (2,2,1):(1,2,0)), {layout})"));
        assert_eq!(all.to_string(), mma.thrfrg(operand, &layout).unwrap().to_string());
        let held = evaluated(&format!("layout{letter}_TV(make_tiled_mma({name}, (2,2,1):(1,2,0)))"));
        assert_eq!(held.to_string(), mma.thread_values(operand).unwrap().to_string());
    }
}

#[test]
fn parts_of_copies_are_those_of_the_library() {
    let (threads, values): (Layout, Layout) = ("(8,8):(8,1)".parse().unwrap(), "(1,4):(1,1)".parse().unwrap());
    for (word, name, bits) in
        [("UniversalCopy_uint64_t", "UniversalCopy<uint64_t>", 16), ("SM75_U32x4_LDSM_N", "SM75_U32x4_LDSM_N", 16)]
    {
        let values: Layout = if name.starts_with("SM75") { "(2,4):(1,2)".parse().unwrap() } else { values.clone() };
        let copy = TiledCopy::new(CopyAtom::named(name).unwrap(), bits, &threads, &values).unwrap();
        let layout: Layout = "(32,64):(64,1)".parse().unwrap();
        for (letter, end) in [("S", CopyEnd::Source), ("D", CopyEnd::Destination)] {
            for thread in [0, 9, 31, 63] {
                let source = format!(
                    "copy = make_tiled_copy_tv({word}, {bits}, {threads}, {values}); \
                     copy.get_slice({thread}).partition_{letter}({layout})"
                );
                let expected = copy.get_slice(&thread).unwrap().partition(end, &layout).unwrap();
                assert_eq!(table(&source), offsets(expected), "{source}");
            }
        }
    }
}

/// Copies of operands, and registers of one partition in the modes of another.
#[test]
fn copies_of_operands_are_those_of_the_library() {
    let name = "SM80_16x8x16_F32F16F16F32_TN";
    let mma = TiledMma::new(MmaAtom::named(name).unwrap(), &"(2,2,1):(1,2,0)".parse().unwrap(), &Tiler::Keep).unwrap();
    let layout: Layout = "(64,64):(64,1)".parse().unwrap();
    let operands = [("A", Operand::A), ("B", Operand::B), ("C", Operand::C)];
    let (mut given, mut refused) = (0, 0);
    for (letter, operand) in operands {
        for (word, atom) in [
            ("SM75_U32x4_LDSM_N", "SM75_U32x4_LDSM_N"),
            ("SM75_U32x2_LDSM_N", "SM75_U32x2_LDSM_N"),
            ("UniversalCopy_uint32_t", "UniversalCopy<uint32_t>"),
        ] {
            let source = format!("make_tiled_copy_{letter}({word}, make_tiled_mma({name}, (2,2,1):(1,2,0)))");
            let Ok(copy) = TiledCopy::of_operand(CopyAtom::named(atom).unwrap(), &mma, operand) else {
                assert!(evaluate(&source, &mut Environment::new()).is_err(), "{source}");
                continue;
            };
            // What is printed is the value.
            let value = evaluated(&source);
            assert_eq!(evaluated(&value.to_string()), value);
            let fragment = mma.get_slice(&0).unwrap().fragment(operand, &layout).unwrap();
            for (end_letter, end) in [("S", CopyEnd::Source), ("D", CopyEnd::Destination)] {
                let part = copy.get_slice(&5).unwrap().partition(end, &layout).unwrap();
                assert_eq!(table(&format!("{source}.get_slice(5).partition_{end_letter}({layout})")), offsets(part));
                let retiled = format!("retile_{end_letter}({source}, {fragment})");
                match (copy.retile(end, &fragment), evaluate(&retiled, &mut Environment::new())) {
                    (Ok(expected), Ok(found)) => {
                        assert_eq!(found.to_string(), expected.to_string(), "{retiled}");
                        given += 1;
                    }
                    (Err(expected), Err(found)) => {
                        assert_eq!(found.code, expected.code(), "{retiled}");
                        refused += 1;
                    }
                    (expected, found) => panic!("{retiled}: {expected:?} and {found:?}"),
                }
            }
        }
    }
    assert!(given > 5 && refused > 1, "{given} {refused}");
}

/// The threads of a product own every element of the sum once, in a swizzled tile as in a plain
/// one.
#[test]
fn threads_share_a_swizzled_tile() {
    let tile = "S<2,3,3> o 0 o (32,16):(16,1)";
    let mut seen = Vec::new();
    for thread in 0..32 {
        let source = format!("make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN).get_slice({thread}).partition_C({tile})");
        seen.extend(table(&source));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..512).collect::<Vec<_>>());
}

#[test]
fn what_is_printed_is_the_value() {
    for source in [
        "make_tiled_mma(UniversalFMA_F32_F32_F32_F32, (16,16,1):(16,1,0))",
        "make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN, (2,2,1), (32,32,16))",
        "make_tiled_copy_tv(SM80_CP_ASYNC_CACHEALWAYS_uint128_t, 16, (16,8):(8,1), (1,8))",
        "get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5)",
        "partition_A(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
        "local_tile((M,K):(K,1), (128,64), (m,_))",
    ] {
        let mut names = Environment::new();
        let value = evaluate(source, &mut names).unwrap();
        assert_eq!(evaluate(&value.to_string(), &mut names).unwrap(), value, "{source}");
    }
    for (source, code) in [
        ("make_tiled_mma(SM80_16x8x16_F32F16F16F23_TN)", "E0316"),
        ("make_tiled_mma(4)", "E0208"),
        ("get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 32)", "E0320"),
        ("partition_S(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), (32,32):(1,32))", "E0208"),
        ("partition_A((1,2), 4:1)", "E0208"),
        ("make_tiled_copy_tv(UniversalCopy_uint64_t, 24, (8,8), (1,4))", "E0324"),
        ("make_tiled_copy_A(SM75_U32x4_LDSM_N, 16)", "E0208"),
        ("retile_S(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 4:1)", "E0208"),
        ("get_slice((SM75_U32x4_LDSM_N,(SM80_16x8x16_F32F16F16F32_TN,(1,1,1),_),3), 5)", "E0208"),
        ("shape_div(7, 2, up)", "E0208"),
    ] {
        assert_eq!(evaluate(source, &mut Environment::new()).unwrap_err().code, code, "{source}");
    }
}
