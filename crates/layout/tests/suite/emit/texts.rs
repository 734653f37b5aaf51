//! Laws of the text itself, for every language.

use tilewright_layout::emit::{EmitError, Integer, Language, Map, Promise, Style, Variables, value};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Tiler};

use crate::emit::cases::ALL;
use crate::emit::reading::{tree, words};

fn symbolic(text: &str) -> Map {
    text.parse::<Layout<Expr>>().unwrap().into()
}

#[test]
fn nothing_is_divided_by_a_power_of_two() {
    let mut divisions = 0;
    for case in ALL.iter().filter(|case| case.promise != Promise::Nothing) {
        // The parameters of either sign are the only other numbers below zero.
        if case.title.contains("int") || case.title.contains('-') {
            continue;
        }
        for language in Language::ALL {
            let words = words(&case.computation.statements(Style::new(language)).unwrap());
            for pair in words.windows(2).filter(|pair| ["/", "//", "%"].contains(&pair[0].as_str())) {
                divisions += 1;
                let number: Option<u64> = pair[1].parse().ok();
                assert!(!number.is_some_and(u64::is_power_of_two), "{}: {words:?}", case.title);
            }
        }
    }
    assert!(divisions > 100, "{divisions}");
}

#[test]
fn a_part_with_a_name_is_used_twice() {
    let mut named = 0;
    for case in ALL.iter() {
        for language in Language::ALL {
            let text = case.computation.function("f", Style::new(language)).unwrap();
            let words = words(&text);
            let part = |word: &&String| {
                let (stem, number) = word.split_at(1);
                ["q", "r", "t"].contains(&stem) && number.parse::<u32>().is_ok()
            };
            let mut parts: Vec<&String> = words.iter().filter(part).collect();
            parts.sort();
            for same in parts.chunk_by(|a, b| a == b) {
                named += 1;
                assert!(same.len() > 2, "{}: {} in\n{text}", case.title, same[0]);
            }
        }
    }
    assert!(named > 300, "{named}");
}

#[test]
fn every_pair_of_parentheses_is_needed() {
    let mut pairs = 0;
    for case in ALL.iter() {
        for language in Language::ALL {
            let Ok(expressions) = case.computation.expressions(Style::new(language)) else { continue };
            for text in expressions {
                let words = words(&text);
                let above = !matches!(language, Language::C | Language::Cuda);
                let Some(whole) = tree(&words, above) else { continue };
                for open in (0..words.len()).filter(|at| words[*at] == "(") {
                    let mut depth = 0;
                    let close = (open..words.len())
                        .find(|at| {
                            depth += i32::from(words[*at] == "(") - i32::from(words[*at] == ")");
                            depth == 0
                        })
                        .unwrap();
                    let mut without = words.clone();
                    without.remove(close);
                    without.remove(open);
                    pairs += 1;
                    if tree(&without, above).as_ref() == Some(&whole) {
                        // Only beside an operator on bits, for the reader.
                        let beside = [open.checked_sub(1), Some(close + 1)];
                        let bits = |at: Option<usize>| {
                            at.and_then(|at| words.get(at))
                                .is_some_and(|word| ["<<", ">>", "&", "^"].contains(&word.as_str()))
                        };
                        assert!(beside.into_iter().any(bits), "{}: {text}", case.title);
                    }
                }
            }
        }
    }
    assert!(pairs > 300, "{pairs}");
}

#[test]
fn no_factor_is_one_and_no_term_zero() {
    for case in ALL.iter() {
        for language in Language::ALL {
            let text = case.computation.statements(Style::new(language)).unwrap();
            let words = words(&text);
            for triple in words.windows(3) {
                let unit = |word: &String| word == "1" || word == "0";
                let product = triple[1] == "*" && (unit(&triple[0]) || unit(&triple[2]));
                let sum = ["+", "-", "<<", ">>", "^", "&"].contains(&triple[1].as_str()) && triple[2] == "0";
                assert!(!product && !sum, "{}: {text}", case.title);
            }
        }
    }
}

#[test]
fn digits_that_nothing_counts_are_dropped() {
    let text = |layout: &str| {
        value(&symbolic(layout), &Variables::index()).unwrap().expression(Style::new(Language::C)).unwrap()
    };
    assert_eq!(text("(4,N,8):(1,0,4)"), "(i & 3) + (i >> 2) / N * 4");
    assert_eq!(text("(3,5,8):(0,0,4)"), "i / 15 * 4");
    assert_eq!(text("(4,N):(0,0)"), "0");
    assert_eq!(text("(1,N,1):(7,3,9)"), "i * 3");
}

#[test]
fn a_tiled_matrix_is_written_as_by_hand() {
    let matrix: Layout<Expr> = "(M{div=128},K):(K,1)".parse().unwrap();
    let tiler: Tiler<Expr> = "[128:1;64:1]".parse().unwrap();
    let tiled: Map = matrix.zipped_divide(&tiler).unwrap().into();
    let at = |place: Variables| value(&tiled, &place).unwrap().statements(Style::new(Language::Cuda)).unwrap();
    assert_eq!(
        at(Variables::leaves().named(["row", "col", "tile_row", "tile_col"])),
        "const int64_t offset = (row + tile_row * 128) * K + col + tile_col * 64;\n"
    );
    assert_eq!(
        at(Variables::modes().named(["element", "tile"])),
        "const int64_t t0 = M >> 7;\nconst int64_t q0 = tile / t0;\n\
         const int64_t offset = ((element & 127) + (tile - q0 * t0) * 128) * K + (element >> 7) + q0 * 64;\n"
    );
}

#[test]
fn a_number_that_may_not_fit_is_refused_with_what_would_settle_it() {
    let narrow = Style::new(Language::C).with_integer(Integer::I32);
    let try_it = |layout: &str| value(&symbolic(layout), &Variables::leaves()).unwrap().expression(narrow);
    let refusal = try_it("(M{max=64},K):(K,1)").unwrap_err();
    assert_eq!(refusal.code(), "E0304");
    assert!(matches!(&refusal, EmitError::Width(width) if width.open == ["K"]), "{refusal:?}");
    assert_eq!(refusal.help().unwrap(), "say how large K can be: declare `K{max=..}`");
    assert_eq!(try_it("(M{max=64},K{max=1000}):(K,1)").unwrap(), "i0 * K + i1");
    // 2^15 rows of 2^16 are 2^31 elements: the last one has the largest number of 32 bits.
    assert!(try_it("(M{max=32768},K{max=65536}):(K,1)").is_ok());
    let refusal = try_it("(M{max=32769},K{max=65536}):(K,1)").unwrap_err();
    assert!(
        matches!(&refusal, EmitError::Width(width) if width.range == (Some(0), Some(2_147_483_648))),
        "{refusal:?}"
    );
}

#[test]
fn names_are_escaped_or_refused() {
    let layout = symbolic("(4,type):(type,1)");
    let named = |names: [&str; 2], language| {
        value(&layout, &Variables::leaves().named(names)).and_then(|offset| offset.function("f", Style::new(language)))
    };
    assert!(named(["match", "b"], Language::Rust).unwrap().contains("r#match * r#type + b"));
    assert_eq!(named(["match", "b"], Language::C).unwrap().lines().nth(1), Some("    return match * type + b;"));
    for (names, language, code) in [
        (["self", "b"], Language::Rust, "E0301"),
        (["int", "b"], Language::Cuda, "E0301"),
        (["lambda", "b"], Language::Python, "E0301"),
        (["tl", "b"], Language::Triton, "E0301"),
        (["a b", "b"], Language::C, "E0301"),
        (["", "b"], Language::C, "E0301"),
        (["b", "b"], Language::C, "E0302"),
        (["type", "b"], Language::Python, "E0302"),
    ] {
        assert_eq!(named(names, language).unwrap_err().code(), code, "{names:?} in {language}");
    }
    let one = value(&layout, &Variables::leaves().named(["a"])).unwrap_err();
    assert_eq!(one.code(), "E0303");
    // The names of parts keep clear of those of inputs.
    let text =
        value(&symbolic("(q0,t0):(t0,1)"), &Variables::index()).unwrap().statements(Style::new(Language::C)).unwrap();
    assert_eq!(text, "const int64_t q1 = i / q0;\nconst int64_t offset = (i - q1 * q0) * t0 + q1;\n");
}

#[test]
fn many_leaves_are_refused() {
    let extents = vec!["2"; 60].join(",");
    let bases: Vec<String> = (0..60).map(|bit| (3_u64 << (59 - bit)).to_string()).collect();
    let layout = symbolic(&format!("({extents}):({})", bases.join(",")));
    assert!(value(&layout, &Variables::index()).unwrap().function("f", Style::new(Language::Rust)).is_ok());
    let ones = vec!["1"; 300].join(",");
    let layout = symbolic(&format!("({ones}):({ones})"));
    assert_eq!(value(&layout, &Variables::leaves()).unwrap_err().code(), "E0307");
    assert_eq!(value(&layout, &Variables::index()).unwrap().expression(Style::new(Language::C)).unwrap(), "0");
}

/// A coordinate that the value does not depend on is an argument of the function all the same, and
/// must fit as the others.
#[test]
fn coordinates_that_are_not_used_must_fit() {
    let style = Style::new(Language::C).with_integer(Integer::I32);
    for (layout, fits) in [
        ("(4*K{div=64,max=2147483584}):(0)", false),
        ("(4*K{div=64,max=536870848}):(0)", true),
        ("(K{max=2147483647},8):(0,1)", true),
        ("(4294967296,8):(0,1)", false),
    ] {
        let computed = value(&symbolic(layout), &Variables::modes()).unwrap();
        match computed.function("f", style) {
            Ok(text) => assert!(fits, "{layout}: {text}"),
            Err(error) => assert!(!fits && error.code() == "E0304", "{layout}: {error}"),
        }
        assert!(computed.function("f", Style::new(Language::C)).is_ok());
    }
}
