//! Any text has an answer, soon: a value, or an error with a code and a place in the text.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tilewright_notation::{Diagnostic, Environment, evaluate, is_incomplete, run_batch};

use crate::programs::explanations::explanation;

/// The error of a text, after checking that it is well formed and that the answer took bounded
/// time.
fn refused(text: &str, what: &str) -> Diagnostic {
    let start = Instant::now();
    let error = match evaluate(text, &mut Environment::new()) {
        Ok(_) => panic!("{what} has a value"),
        Err(error) => error,
    };
    well_formed(text, &error);
    assert!(start.elapsed() < Duration::from_secs(30), "{what} took {:?}", start.elapsed());
    error
}

fn well_formed(text: &str, error: &Diagnostic) {
    assert!(explanation(error.code).is_some(), "{}", error.code);
    for span in error.labels.iter().map(|(span, _)| span).chain([&error.span]) {
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?} outside the text: {error}");
        assert!(text.get(span.clone()).is_some(), "{span:?} splits a character: {error}");
    }
    assert!(!error.one_line().contains('\n'));
    let picture = error.render(text, false);
    assert!(picture.starts_with(&format!("error[{}]: ", error.code)), "{picture}");
    assert!(picture.lines().all(|line| line.chars().count() < 2000), "a line is too long to read");
    assert!(!picture.contains('\x1b') || text.contains('\x1b'));
}

#[test]
fn a_million_brackets() {
    for (open, close) in [("(", ")"), ("[", "]"), ("<", ">"), ("size(", ")"), ("[(<", ">)]"), ("A(", ")")] {
        let deep = open.repeat(1_000_000);
        assert_eq!(refused(&deep, "open brackets").code, "E0209");
        let balanced = format!("{deep}1{}", close.repeat(1_000_000));
        assert_eq!(refused(&balanced, "balanced brackets").code, "E0209");
        is_incomplete(&deep);
    }
    assert_eq!(refused(&")".repeat(1_000_000), "closing brackets").code, "E0202");
    assert_eq!(refused(&format!("4:1{}", ".size()".repeat(1_000_000)), "a method chain").code, "E0209");
    assert_eq!(refused(&format!("4:1{}", "[0]".repeat(1_000_000)), "an index chain").code, "E0209");
    assert_eq!(refused(&format!("4:1{}", "(0)".repeat(1_000_000)), "a chain of calls").code, "E0209");
    assert_eq!(refused(&format!("4{}", ":1".repeat(1_000_000)), "a chain of strides").code, "E0209");
}

#[test]
fn nesting_up_to_the_limits_has_a_value() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(evaluate(&nested(64), &mut Environment::new()).is_ok());
    assert_eq!(refused(&nested(65), "65 parentheses").code, "E0104");
    assert_eq!(refused(&nested(100), "100 parentheses").code, "E0104");
    assert_eq!(refused(&nested(101), "101 parentheses").code, "E0209");
    for operator in ["+", "*", "-"] {
        let chain = |count: usize| vec!["a"; count].join(operator);
        assert!(evaluate(&chain(64), &mut Environment::new()).is_ok());
        let error = refused(&chain(300), "a long sum");
        assert_eq!((error.code, error.message.as_str()), ("E0209", "the sum or product is too long"));
        assert_eq!(error.span, 202..203, "the first term that is too many");
    }
    let calls = |depth: usize| format!("{}4:1{}", "coalesce(".repeat(depth), ")".repeat(depth));
    assert!(evaluate(&calls(98), &mut Environment::new()).is_ok());
}

#[test]
fn the_deepest_text_needs_little_stack() {
    let deepest = || {
        for (open, close) in [("(", ")"), ("coalesce(", ")"), ("[", "]"), ("<(", ")>"), ("A((", "))"), ("(4:1 o ", ")")]
        {
            let brackets = open.matches(['(', '[', '<']).count();
            let text = format!("A=4:1;{}1{}", open.repeat(99 / brackets), close.repeat(99 / brackets));
            let _ = evaluate(&text, &mut Environment::new());
            let _ = tilewright_notation::derive(&text, &mut Environment::new());
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(deepest).unwrap().join().unwrap();
}

#[test]
fn lists_do_not_grow_without_bound() {
    assert_eq!(refused(&format!("A=(4:1,1);{}A", "A=(A,A);".repeat(64)), "doubling").code, "E0104");
    assert_eq!(refused(&format!("A=(4:1,1);{}A", "A=(A,1);".repeat(1000)), "nesting").code, "E0104");
    let wide = format!("A=({}:{0});({})", format!("({})", "1,".repeat(1000)), "A,".repeat(100));
    assert_eq!(refused(&wide, "a list of large layouts").code, "E0104");
}

#[test]
fn ten_megabytes() {
    for (what, unit) in [
        ("numbers", "1,"),
        ("digits", "1"),
        ("names", "a "),
        ("strides", "1:1,"),
        ("spaces", " "),
        ("newlines", "\n"),
        ("comments", "# (\n"),
        ("statements", "a=1;"),
        ("operators", "o "),
        ("compositions", "4:1 o "),
        ("tuples", "(1,2),"),
        ("not ASCII", "é"),
        ("control characters", "\u{1}"),
    ] {
        let text = unit.repeat(10_000_000 / unit.len());
        refused(&text, what);
        for open in ["(", "[", "f(", "S<"] {
            refused(&format!("{open}{text}"), what);
        }
    }
    // A name that nothing is bound to is a number known at launch, however long it is.
    let name = "a".repeat(10_000_000);
    assert_eq!(evaluate(&name, &mut Environment::new()).unwrap().to_string(), name);
    refused(&format!("{name}(1)"), "a long name that is called");
    let long = format!("# {}\n4:1", "x".repeat(10_000_000));
    assert_eq!(evaluate(&long, &mut Environment::new()).unwrap().to_string(), "4:1");
    assert_eq!(refused(&"1".repeat(70_000_000), "seventy megabytes").code, "E0209");
}

#[test]
fn a_tuple_larger_than_a_tree_may_be() {
    let wide = format!("({})", "1,".repeat(70_000));
    assert_eq!(refused(&wide, "a wide tuple").code, "E0104");
    let fits = format!("({})", "1,".repeat(60_000));
    assert!(evaluate(&fits, &mut Environment::new()).is_ok());
    let layout = format!("size(({0}):({0}))", "1,".repeat(60_000));
    assert_eq!(evaluate(&layout, &mut Environment::new()).unwrap().to_string(), "1");
}

#[test]
fn numbers_out_of_range() {
    for text in [
        "9223372036854775808",
        "(4,9223372036854775808):(1,4)",
        "-9223372036854775809",
        "0x8000000000000000",
        "99999999999999999999999999999999999999",
    ] {
        let error = refused(text, text);
        assert_eq!(error.code, "E0204");
        assert!(text[error.span.clone()].len() >= 18, "{error}");
    }
    for text in ["0:1", "(4,0):(1,4)", "-4:1", "coalesce(0)", "logical_divide(8:1, 0)", "[0]", "complement(4:1, 0:1)"] {
        assert_eq!(refused(text, text).code, "E0102", "{text}");
    }
    for text in [
        "(4:9223372036854775807)(3)",
        "cosize(4:9223372036854775807)",
        "size((9223372036854775807,2))",
        "(2,2):(9223372036854775807,9223372036854775807)(1,1)",
        "tuple_add(9223372036854775807, 1)",
        "product((9223372036854775807,2))",
        "S<3,4,3> o 9223372036854775807 o 4:1",
    ] {
        assert_eq!(refused(text, text).code, "E0103", "{text}");
    }
}

#[test]
fn batch_has_one_line_for_each_line() {
    let input = "size(4:1)\n\n(4,8\n4:1 # rows\r\n\u{1}\n5";
    let mut out = Vec::new();
    let failed = run_batch(input.as_bytes(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    // An empty line has an empty answer.
    assert_eq!((lines[0], lines[1], lines[3], lines[5]), ("4", "", "4:1", "5"));
    assert!([2, 4].iter().all(|line| lines[*line].starts_with("error: ")), "{text}");
    assert_eq!(failed, 2);
}

#[test]
fn batch_survives_bytes_that_are_not_text() {
    let mut out = Vec::new();
    assert_eq!(run_batch(&b"4\n\xff\xfe\n5\n"[..], &mut out).unwrap(), 1);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.starts_with("4\nerror: ") && text.ends_with("\n5\n"), "{text}");
}

/// Text made of the pieces of the language.
fn soup() -> impl Strategy<Value = String> {
    let pieces: Vec<&'static str> = vec![
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ",",
        ";",
        ":",
        ".",
        "=",
        "o",
        "∘",
        "_",
        "0",
        "1",
        "2",
        "3",
        "4",
        "8",
        "-1",
        "-",
        "?",
        "@",
        "^",
        "/",
        "{",
        "}",
        "A",
        "B",
        "S",
        "Sw<3,4,3>",
        "SW_3_4_",
        "true",
        "let",
        "size",
        "coalesce",
        "composition",
        "logical_divide",
        "zipped_divide",
        "complement",
        "right_inverse",
        "left_inverse",
        "take",
        "select",
        "slice",
        "tile_to_shape",
        "crd2idx",
        "max",
        "image",
        "(4,8)",
        "(8,1)",
        "(4,8):(8,1)",
        "[2:1;_]",
        "9223372036854775807",
        " ",
        "\n",
        "#",
        "é",
        "0x",
        "1_0",
        "make_layout_tv",
        "layout_add",
        "is_injective",
        "unflatten",
        "group",
        "@",
        "1@0",
        "^",
        "^9",
        "F9",
        "F2<3>[4,1,2]",
        "?",
        "{div=8}",
        "M",
        "+",
        "*",
        "/",
        "%",
        "ceil(",
        "floor(",
        "bit_matrix",
        "to_xor",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn text_made_of_pieces_has_an_answer(text in soup()) {
        is_incomplete(&text);
        let mut names = Environment::new();
        match evaluate(&text, &mut names) {
            Err(error) => well_formed(&text, &error),
            Ok(value) => {
                let printed = value.to_string();
                let again = evaluate(&printed, &mut names);
                let again = again.map(|value| value.to_string()).map_err(|error| error.render(&printed, false));
                // Every `?` is a number of its own, so texts are compared.
                prop_assert_eq!(again, Ok(printed));
            }
        }
        let _ = tilewright_notation::derive(&text, &mut Environment::new());
    }

    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        is_incomplete(&text);
        if let Err(error) = evaluate(&text, &mut Environment::new()) {
            well_formed(&text, &error);
        }
    }
}
