//! Names that nothing is bound to, arguments by name, and offsets between two `o`.

use tilewright_notation::{Environment, evaluate, function, functions, spelling};

fn text(source: &str, names: &mut Environment) -> String {
    match evaluate(source, names) {
        Ok(value) => value.to_string(),
        Err(error) => panic!("{}", error.render(source, false)),
    }
}

fn value(source: &str) -> String {
    text(source, &mut Environment::new())
}

/// A name that nothing is bound to is a number known at launch, so that every answer is a program
/// with that answer.
#[test]
fn answers_about_unknown_numbers_read_back() {
    for (source, answer) in [
        ("M", "M"),
        ("M{}", "M"),
        ("M{div=8}", "M{div=8}"),
        ("size(M:1)", "M"),
        ("size((M,K))", "K*M"),
        ("ceil_div(M,4)", "ceil(M/4)"),
        ("complement(4:1,M)", "ceil(M/4):4"),
        ("S<3,0,3> o M{} o 8:1", "S<3,0,3> o M o 8:1"),
        ("S<3,0,3> o M o 8:1", "S<3,0,3> o M o 8:1"),
        ("(8,8):(8,1) o M o 4:1", "(8,8):(8,1) o M o 4:1"),
        ("(4,8):(8,1)(i,j)", "8*i+j"),
        ("A = (4,8):(8,1); A.size()", "32"),
        ("B = M; (B,8):(8,1)", "(M,8):(8,1)"),
        ("max(M, M)", "M"),
        ("list = (M,4:1); list", "(M,4:1)"),
    ] {
        let mut names = Environment::new();
        assert_eq!(text(source, &mut names), answer, "{source}");
        assert_eq!(text(answer, &mut names), answer, "{source}, in the same session");
        assert_eq!(value(answer), answer, "{source}, by itself");
    }
}

/// What is bound comes first, and what needs a value of its own asks for it.
#[test]
fn bound_names_are_what_they_are_bound_to() {
    assert_eq!(value("M = 4:2; size(M)"), "4");
    assert_eq!(value("M = 4; S<3,0,3> o M o 8:1"), "S<3,0,3> o 4 o 8:1");
    for (source, help) in [
        ("tile = 4:1; tlie(3)", "did you mean 'tile'?"),
        ("tile = 4:1; tlie.size()", "did you mean 'tile'?"),
        ("tile = 4:1; tlie o 2:1", "did you mean 'tile'?"),
        ("coalesc(4:1)", "did you mean 'coalesce'?"),
    ] {
        let error = evaluate(source, &mut Environment::new()).unwrap_err();
        assert_eq!(error.help.as_deref(), Some(help), "{source}");
    }
    // Where a number may stand the operation says what is wrong, and the name is mentioned.
    let error = evaluate("tile = 4; take((2,3), 0, tlie)", &mut Environment::new()).unwrap_err();
    assert_eq!(error.code, "E0208");
    let help = "nothing is bound to 'tlie', so it is a number known at launch; did you mean 'tile'?";
    assert_eq!(error.help.as_deref(), Some(help));
}

#[test]
fn arguments_by_name() {
    for (source, same) in [
        ("size((4,8):(8,1), mode=[0])", "size((4,8):(8,1), 0)"),
        ("size((4,8):(8,1), mode=[1])", "8"),
        ("size((4,(2,3)), mode=[1,0])", "2"),
        ("size((4,(2,3)), mode=(1,0))", "2"),
        ("(4,8):(8,1).size(mode=1)", "8"),
        ("make_ordered_layout((4,64), order=(1,0))", "make_ordered_layout((4,64), (1,0))"),
        ("make_layout(shape=(4,8), stride=(8,1))", "(4,8):(8,1)"),
        ("make_layout(stride=(8,1), shape=(4,8))", "(4,8):(8,1)"),
        ("make_layout((4,8), stride=(8,1))", "(4,8):(8,1)"),
        ("recast_layout(new_bits=16, old_bits=32, layout=(4,8):(8,1))", "recast_layout(16, 32, (4,8):(8,1))"),
        ("zipped_divide((4,8):(8,1), T=[2:1;4:1])", "zipped_divide((4,8):(8,1), [2:1;4:1])"),
        ("tile_to_shape(4:1, order=[0,1], shape=(8,8))", "tile_to_shape(4:1, (8,8), (0,1))"),
        ("(4,8):(8,1)(2,None)", "(4,8):(8,1)(2,_)"),
    ] {
        assert_eq!(value(source), value(same), "{source}");
    }
}

/// `A o offset o B` is the map c -> A(offset + B(c)), whatever kind of map A is.
#[test]
fn a_tuple_between_two_circles_is_an_offset() {
    for (source, printed) in [
        ("(4,8):(8,1) o 5 o 2:4", "(4,8):(8,1) o 5 o 2:4"),
        ("(4,8):(8,1) o (5) o 2:4", "(4,8):(8,1) o 5 o 2:4"),
        ("(4,8):(8,1) o (1,2) o (2,2):(1@0,1@1)", "(4,8):(8,1) o (1,2) o (2,2):(1@0,1@1)"),
        ("(4,3):(1@0,1@1) o 0 o (4,3):(1,4)", "(4,3):(1@0,1@1)"),
        ("(4,3):(1@0,1@1) o (0,0) o (4,3):(1,4)", "(4,3):(1@0,1@1)"),
    ] {
        assert_eq!(value(source), printed, "{source}");
    }
    for source in ["(4,3):(1@0,1@1) o (1,1) o (4,3):(1,4)", "(4,3):(1@0,1@1) o 2 o 2:1"] {
        let error = evaluate(source, &mut Environment::new()).unwrap_err();
        assert_eq!(
            (error.code, &source[error.span.clone()]),
            ("E0208", source.split(" o ").nth(1).unwrap()),
            "{source}"
        );
    }
    // Index by index, with maps of other kinds before the offset.
    for (outer, inner) in
        [("(8,8):(^1,^9)", "4:2"), ("S<2,0,3> o 0 o (8,8):(8,1)", "4:2"), ("S<2,0,3> o 3 o (8,8):(8,1)", "(2,2):(1,9)")]
    {
        let source = format!("A = {outer}; B = {inner}; R = A o 5 o B");
        for index in 0..4 {
            let at = |program: &str| value(&format!("{source}; {program}"));
            assert_eq!(at(&format!("R({index})")), at(&format!("A(5+B({index}))")), "{source} at {index}");
        }
    }
}

/// `mod` has the sign of the divisor, `rem` and `%` that of the dividend; a quotient by a negative
/// number is that of the opposites.
#[test]
fn division_by_negative_numbers() {
    let number = |source: &str| value(source).parse::<i64>().unwrap();
    for a in -9_i64..=9 {
        for b in (-4_i64..=4).filter(|b| *b != 0) {
            let floor = (a as f64 / b as f64).floor() as i64;
            let up = (a as f64 / b as f64).ceil() as i64;
            assert_eq!(number(&format!("mod({a}, {b})")), a - floor * b, "mod({a}, {b})");
            assert_eq!(number(&format!("rem({a}, {b})")), a - (a / b) * b, "rem({a}, {b})");
            assert_eq!(number(&format!("({a}) % ({b})")), a % b, "{a} % {b}");
            assert_eq!(number(&format!("floor(({a})/({b}))")), floor, "floor({a}/{b})");
            assert_eq!(number(&format!("ceil(({a})/({b}))")), up, "ceil({a}/{b})");
            if b > 0 {
                assert_eq!(number(&format!("floor_div({a}, {b})")), floor, "floor_div({a}, {b})");
            }
        }
    }
    // The least number has no opposite.
    for b in [-2_i64, -3, -7, -(1 << 40), i64::MIN] {
        let quotients =
            [("floor", i128::from(i64::MIN) / i128::from(b)), ("ceil", -(i128::from(i64::MIN) / -i128::from(b)))];
        for (how, toward_zero) in quotients {
            let rest = i128::from(i64::MIN) % i128::from(b) != 0;
            let wanted = toward_zero + i128::from(how == "ceil" && rest);
            assert_eq!(i128::from(number(&format!("{how}(-9223372036854775808/({b}))"))), wanted, "{how} by {b}");
        }
        assert_eq!(number(&format!("-9223372036854775808 % ({b})")), i64::MIN % b, "% {b}");
    }
    assert_eq!(value("floor(M/-4)"), value("floor(-M/4)"));
    assert_eq!(value("M % -4"), value("M % 4"));
    let refused = |source: &str| evaluate(source, &mut Environment::new()).unwrap_err().code;
    assert_eq!(refused("mod(4, N{int})"), "E0208");
    assert_eq!(refused("4 % 0"), "E0214");
    assert_eq!(refused("-9223372036854775808 / -1"), "E0103");
}

/// Whole tiles: the greatest count of tiles that fit, mode by mode.
#[test]
fn whole_tiles() {
    for (source, result) in [
        ("floor_div((5,6,7), (4,4))", "(1,1,7)"),
        ("floor_div((4,5,6), 2)", "(2,5,6)"),
        ("floor_div((4,5,6), 40)", "(0,0,3)"),
        ("floor_div(100, (4,6))", "4"),
        ("floor_div((M,9), (4,2))", "(M/4,4)"),
    ] {
        assert_eq!(value(source), result, "{source}");
    }
    for m in 1..40 {
        assert_eq!(value(&format!("floor_div(substitute((M,9), M, {m}), (4,2))")), format!("({},4)", m / 4));
    }
    assert_eq!(evaluate("floor_div(4, -2)", &mut Environment::new()).unwrap_err().code, "E0116");
}

/// The modes that are listed become one, in the order of the list, where the first of the list
/// stood.
#[test]
fn modes_grouped_by_a_list() {
    for (source, result) in [
        ("group((2,3,5):(1,2,6), (0,1))", "((2,3),5):((1,2),6)"),
        ("group((2,3,5):(1,2,6), (0,2))", "((2,5),3):((1,6),2)"),
        ("group((2,3,5):(1,2,6), modes=[2,0])", "(3,(5,2)):(2,(6,1))"),
        ("group((2,3,5,7), (3,1))", "(2,5,(7,3))"),
        ("group((2,3,5), 0, 2)", "((2,3),5)"),
        ("group((2,3,5), begin=0, end=2)", "((2,3),5)"),
        ("group((M,3,5):(1,M,3*M), (2,0))", "(3,(5,M)):(M,(3*M,1))"),
    ] {
        assert_eq!(value(source), result, "{source}");
    }
    // A mode that there is not is refused before anything is counted up to its number.
    for mode in ["(0,0)", "(0,3)", "(0,-1)", "9223372036854775807", "(9223372036854775807,0)"] {
        let source = &format!("group((2,3,5), {mode})");
        assert!(evaluate(source, &mut Environment::new()).is_err(), "{source}");
    }
}

/// What a refusal says to declare settles the question.
#[test]
fn advice_about_quotients_is_enough() {
    for (shape, advice, settled) in [
        ("M/3", "M{min=3}", "M{min=3}/3"),
        ("M/3-4", "M{min=15}", "M{min=15}/3-4"),
        ("floor(M/8)-N{max=9}", "M{min=80}", "floor(M{min=80}/8)-N{max=9}"),
    ] {
        let source = format!("({shape}):(1)");
        let error = evaluate(&source, &mut Environment::new()).unwrap_err();
        assert!(error.message.contains(&format!("declare `{advice}`")), "{}", error.message);
        assert!(evaluate(&format!("({settled}):(1)"), &mut Environment::new()).is_ok(), "{settled}");
    }
}

/// No name from elsewhere hides a function, and each leads to its own help. The table is read from
/// its source, so that none is left out.
#[test]
fn no_spelling_hides_a_function() {
    let table = include_str!("../../../src/spellings.rs").lines().filter_map(|line| line.strip_prefix("    (\""));
    let mut count = 0;
    for entry in table {
        let (theirs, help) = entry.strip_suffix("\"),").and_then(|entry| entry.split_once("\", \"")).unwrap();
        assert!(function(theirs).is_none(), "{theirs}");
        assert_eq!(spelling(theirs), Some(help));
        assert!(!help.ends_with('.'), "{help}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_signature_is_read() {
    for function in functions() {
        for names in function.ways() {
            assert!(names.len() >= function.arity().0.min(1), "{}", function.signature);
            for name in names {
                let good = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                assert!(good && !name.is_empty(), "{name:?} in {}", function.signature);
            }
        }
    }
    let append = function("append_to_rank").unwrap();
    assert_eq!(append.ways().collect::<Vec<_>>(), [["A", "rank", "filler"]], "{}", append.signature);
}
