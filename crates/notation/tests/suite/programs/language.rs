//! Programs and their values.

use tilewright_notation::{Environment, evaluate, functions};

fn value(source: &str) -> String {
    match evaluate(source, &mut Environment::new()) {
        Ok(value) => value.to_string(),
        Err(error) => panic!("{}", error.render(source, false)),
    }
}

fn code(source: &str) -> &'static str {
    match evaluate(source, &mut Environment::new()) {
        Ok(value) => panic!("{source} = {value}"),
        Err(error) => error.code,
    }
}

#[test]
fn values_print_canonically() {
    for (source, expected) in [
        ("4", "4"),
        ("_4", "4"),
        ("-4", "-4"),
        ("_-4", "-4"),
        ("0x40", "64"),
        ("1_024", "1024"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-0x8000000000000000", "-9223372036854775808"),
        ("()", "()"),
        ("(4)", "(4)"),
        ("(4,)", "(4)"),
        ("( 2 , ( 3 ,\t4 ) )", "(2,(3,4))"),
        ("(4):(1)", "(4):(1)"),
        ("():()", "():()"),
        ("(_4,_8):(_8,_1)", "(4,8):(8,1)"),
        ("_", "_"),
        ("(_,(1,_))", "(_,(1,_))"),
        ("true", "true"),
        ("(4:1)", "4:1"),
        ("(4:1,)", "(4:1,)"),
        ("(4:1,3)", "(4:1,3)"),
        ("(4,8):(8,1) # rows", "(4,8):(8,1)"),
    ] {
        assert_eq!(value(source), expected, "{source}");
        assert_eq!(value(expected), expected, "{expected} printed");
    }
}

#[test]
fn operators_and_calls() {
    for (source, expected) in [
        ("(6,2):(8,2) o (4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("(6,2):(8,2) ∘ (4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("composition((6,2):(8,2), (4,3):(3,1))", "((2,2),3):((24,2),8)"),
        ("(6,2):(8,2).composition((4,3):(3,1))", "((2,2),3):((24,2),8)"),
        ("(4,8):(8,1)(2,3)", "19"),
        ("(4,8):(8,1)((2,3))", "19"),
        ("(4,8):(8,1)(14)", "19"),
        ("(4,8):(8,1)(2,_)", "(8):(1)"),
        ("(4,8):(8,1)(_,_)", "(4,8):(8,1)"),
        ("(4,(2,3)):(1,(4,8))[1]", "(2,3):(4,8)"),
        ("(4,(2,3)):(1,(4,8))[1][0]", "2:4"),
        ("(4,(2,3))[1]", "(2,3)"),
        ("A = (4,8):(8,1); A(2,3)", "19"),
        ("A = (4,8):(8,1)\nA.shape()", "(4,8)"),
        ("let A = (4,8)\nlet s = (8,1)\nA:s", "(4,8):(8,1)"),
        ("n = 3; (n,(n,2))", "(3,(3,2))"),
        ("A = 4:1; B = 2:1; (A, B)", "(4:1,2:1)"),
        ("shape((4,8)):stride((4,8):(8,1))", "(4,8):(8,1)"),
        ("A = (4,8):(8,1)", "(4,8):(8,1)"),
        ("(\n4,\n8)", "(4,8)"),
        ("(4,8):(8,1) o\n(2,2)", "(2,2):(8,1)"),
        ("composition((4,8):(8,1), <2,_>)", "(2,8):(8,1)"),
        ("[ 2:1 ; [ 3 ; _ ] ]", "[2:1;[3:1;_]]"),
        ("<2:1,(3,4)>", "[2:1;[3:1;4:1]]"),
        ("[]", "[]"),
        (";;\n\n size(4:1) ;\n", "4"),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
}

/// Rounded, a division of shapes counts tiles; and where one number divides the other, rounding up
/// changes nothing.
#[test]
fn divisions_of_shapes_round() {
    for a in 1..=12_i64 {
        for b in 1..=6_i64 {
            assert_eq!(value(&format!("shape_div({a}, {b}, floor)")), (a / b).to_string());
            assert_eq!(value(&format!("shape_div({a}, {b}, rounding=ceil)")), ((a + b - 1) / b).to_string());
            if a % b == 0 || b % a == 0 {
                assert_eq!(value(&format!("shape_div({a}, {b})")), ((a + b - 1) / b).to_string());
            } else {
                assert_eq!(code(&format!("shape_div({a}, {b})")), "E0115");
            }
        }
    }
    assert_eq!(value("shape_div((5,(6,7)), (2,(4,2)), floor)"), "(2,(1,3))");
}

#[test]
fn every_function_gives_its_documented_result() {
    for function in functions() {
        assert_eq!(value(function.example), function.result, "{}", function.example);
        assert!(function.example.contains(function.name), "{}", function.name);
        assert!(function.signature.starts_with(function.name), "{}", function.name);
        assert!(!function.summary.ends_with('.'), "{}", function.name);
    }
}

#[test]
fn functions_have_one_entry_each_and_are_no_keywords() {
    let mut names: Vec<&str> = functions().iter().map(|function| function.name).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
}

#[test]
fn arithmetic_prints_as_text_of_the_same_value() {
    for (source, expected) in [
        ("A+5-11@0", "A+5-11@0"),
        ("(A+5)-(11@0)", "A+5-11@0"),
        ("(A+B,(A+B)@0)", "(A+B,(A+B)@0)"),
        ("9223372036854775807*(M{div=8}/8)", "9223372036854775807*floor(M{div=8}/8)"),
        ("3*M{div=8}/8", "3*M{div=8}/8"),
        ("floor(-N{int}/2)", "-floor(N{int}/2)-mod(N,2)"),
        ("trunc(-N{int}/2)", "trunc(-N{int}/2)"),
        ("-floor(N{int}/2)", "-floor(N{int}/2)"),
    ] {
        let mut names = Environment::new();
        let printed = evaluate(source, &mut names).unwrap().to_string();
        assert_eq!(printed, expected, "{source}");
        assert_eq!(evaluate(&printed, &mut names).unwrap().to_string(), expected);
    }
}

#[test]
fn linear_layouts() {
    let tile = "T = register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2;";
    let mut wrong = Vec::new();
    for (source, expected) in [
        ("T", "register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2"),
        ("T(1, 3)", "(3,1)"),
        ("size(T(1, 3))", "3"),
        ("(lane=[(1),(2)] -> row:4)(3)", "3"),
        ("bit_inverse(T)", "row=[(0,1),(0,2)] column=[(1,0)] -> register:2 lane:4"),
        ("bit_inverse(T) o T", "register=[(1,0)] lane=[(0,1),(0,2)] -> register:2 lane:4"),
        ("(column=[(4)] row=[(1),(2)] -> offset:8) o T", "register=[(4)] lane=[(1),(2)] -> offset:8"),
        (
            "left_divide(T, memory=[(1,0),(2,0),(0,1)] -> row:4 column:2)",
            "memory=[(0,1),(0,2),(1,0)] -> register:2 lane:4",
        ),
        ("to_composed((column=[(4)] row=[(1),(2)] -> offset:8) o T)", "(2,4):(4,1)"),
        ("to_layout((column=[(4)] row=[(1),(2)] -> offset:8) o T)", "(2,4):(4,1)"),
        ("linear_layout((2,4):(4,1))", "dim0=[(4)] dim1=[(1),(2)] -> offset:8"),
        ("bit_matrix(T)", "F2<3>[4,1,2]"),
        ("bit_rank(T)", "3"),
        ("-> row:4", "-> row:4"),
        ("lane=[] -> row:1", "lane=[] -> row:1"),
        ("t = lane=[(1)] -> row:2; t(1)", "1"),
        ("t = [4:1;_]; t", "[4:1;_]"),
        ("lane=[(1)] -> row:2\n", "lane=[(1)] -> row:2"),
        ("lane=[(1),\n (2)] -> row:4", "lane=[(1),(2)] -> row:4"),
    ] {
        // `size` of a tuple of two numbers is their product.
        let value = evaluate(&format!("{tile} {source}"), &mut Environment::new());
        let text = value.map(|value| value.to_string()).unwrap_or_else(|error| error.one_line());
        if text != expected {
            wrong.push((source, text));
        }
    }
    for (source, expected) in [
        ("lane=[(1)] row:2", "E0201"),
        ("lane=[(1)] -> row:3", "E0201"),
        ("lane=[(1,1)] -> row:2", "E0106"),
        ("lane=[1@0] -> row:2", "E0201"),
        ("lane=[(1)] lane=[(1)] -> row:2", "E0105"),
        ("(lane=[(1)] -> row:2)(-1)", "E0208"),
        ("(lane=[(1)] -> row:2)(1,1)", "E0106"),
        ("(lane=[(1)] -> row:2) o (lane=[(1)] -> column:2)", "E0105"),
        ("(lane=[(1)] -> row:2) o 4:1", "E0208"),
        ("linear_quotient(lane=[(1)] -> row:2, lane=[(1),(2)] -> row:4)", "E0208"),
        ("let x = lane=[(1)", "E0202"),
        ("to_composed(F2<2>[1,2])", "E0208"),
    ] {
        let code = code(source);
        if code != expected {
            wrong.push((source, code.to_string()));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn errors_have_stable_codes() {
    for (source, expected) in [
        ("(4,8", "E0202"),
        ("(4,8]", "E0202"),
        ("4)", "E0202"),
        ("4 8", "E0201"),
        ("(,)", "E0201"),
        ("(1,,2)", "E0201"),
        ("S<1,0,1> + 4", "E0208"),
        ("size{}", "E0211"),
        ("4 $ 4", "E0203"),
        ("4 -3", "E0201"),
        ("?{dib=8}", "E0201"),
        ("?{div=0}", "E0116"),
        ("M{min=9,max=8}:1", "E0116"),
        ("M = 4; M{div=2}:1", "E0211"),
        ("4:1@-1", "E0201"),
        ("4:^-9", "E0201"),
        ("(2,2):(1,1@0)", "E0125"),
        ("(2,2):(^1,1)", "E0125"),
        ("F2<2>[4]", "E0116"),
        ("9223372036854775808", "E0204"),
        ("0x", "E0204"),
        ("A[0]", "E0205"),
        ("A o 4:1", "E0205"),
        ("4:1 o A", "E0205"),
        ("1/0", "E0214"),
        ("size(A, modes=[0])", "E0207"),
        ("make_layout(shape=(4,8), (8,1))", "E0207"),
        ("size(A, A=4)", "E0207"),
        ("make_layout(stride=(4,8))", "E0207"),
        ("(4,8):(8,1)(row=2)", "E0207"),
        ("sise(4:1)", "E0206"),
        ("size()", "E0207"),
        ("composition(4:1, 4:1, 4:1)", "E0207"),
        ("4:1()", "E0207"),
        ("coalesce(true)", "E0208"),
        ("4(1)", "E0208"),
        ("true:1", "E0208"),
        ("4:1/2", "E0210"),
        ("o = 3", "E0211"),
        ("size = 3", "E0211"),
        ("4 = 3", "E0211"),
        ("", "E0212"),
        (" # nothing", "E0212"),
        ("4:1; 3", "E0213"),
        ("(4,8):(1,(2,3))", "E0101"),
        ("(4,0):(1,4)", "E0102"),
        ("(-4):(1)", "E0102"),
        ("coalesce((2,0))", "E0102"),
        ("size((4294967296,4294967296))", "E0103"),
        ("(4,8):(1,4)[2]", "E0105"),
        ("(6,2):(1,7) o (3,2):(2,3)", "E0107"),
        ("(4,6,8):(2,3,5) o 6:3", "E0108"),
    ] {
        assert_eq!(code(source), expected, "{source}");
    }
}

#[test]
fn the_culprit_is_underlined() {
    for (source, culprit) in [
        ("(6,2):(1,7) o (3,2):(2,3)", "2"),
        ("composition((6,2):(1,7), (3,2):(2,3))", "2"),
        ("A = (6,2):(1,7); B = (3,2):(2,3); A o B", "B"),
        ("(4,(8,0)):(1,(4,8))", "0"),
        ("coalesce((3,-2))", "-2"),
        ("(4,8):(1,(2,3))", "(2,3)"),
        ("foo.size()", "foo"),
        ("1/(4-4)", "(4-4)"),
        ("size(A, modes=[0])", "modes"),
        ("A = 4:1; B = 4:2; B o C", "C"),
        ("coalesc(4:1)", "coalesc"),
        ("A = (4,8):(8,1); A + 1", "A"),
        ("(4,1/2):(1,4)", "1/2"),
        ("((1@0,8@1),(1/2@0,4@1))", "1/2"),
        ("(4,8):(1,4)[2]", "2"),
        ("take((4,8):(1,4), 1, 3)", "1, 3"),
        ("(4,8):(8,1)(2,(1,1))", "(1,1)"),
    ] {
        let error = evaluate(source, &mut Environment::new()).unwrap_err();
        assert_eq!(&source[error.span.clone()], culprit, "{source}\n{}", error.render(source, false));
    }
}

/// A composed layout, or one over bits, may stand behind an offset by a name, as it may be written
/// out: `A o k o B` is `i -> A(k + B(i))` whatever `B` is.
#[test]
fn what_stands_behind_an_offset_may_be_composed() {
    let value = |source: &str| {
        let value = evaluate(source, &mut Environment::new());
        value.unwrap_or_else(|error| panic!("{source}: {error}")).to_string()
    };
    for outer in ["(8,9):(9,1)", "S<1,0,3>", "(4,8):(8,1) o 2 o 40:1"] {
        for inner in
            ["S<2,0,2> o 1 o 16:1", "(2,4):(^1,^6)", "(8,8):(8,1) o 1 o 8:2", "(3,2):(^5,^2)", "S<1,0,1> o M o 8:1"]
        {
            for offset in [0, 2] {
                let printed = value(&format!("B = {inner}; {outer} o {offset} o B"));
                assert_eq!(value(&printed), printed);
                let known = inner.replace('M', "3");
                for i in 0..6 {
                    let placed = value(&format!("B = {known}; R = {outer} o {offset} o B; R({i})"));
                    let by_hand = value(&format!("B = {known}; A = {outer}; A(B({i}) + {offset})"));
                    assert_eq!(placed, by_hand, "{outer} o {offset} o ({known}) at {i}");
                }
            }
        }
    }
}

#[test]
fn chains_of_maps_read_back() {
    for source in [
        "A = (4,8):(8,1); A o S<3,4,3>",
        "(4,8):(8,1) o 5 o S<3,4,3> o 2 o (4,8):(1,4)",
        "F2<3>[4,1,2] o 1 o S<1,0,1> o 0 o 4:1",
        "(8,8):(8,1) o 0 o 16:2 o 1 o 4:1",
    ] {
        let value = evaluate(source, &mut Environment::new()).unwrap();
        let again = evaluate(&value.to_string(), &mut Environment::new()).unwrap();
        assert_eq!(again, value, "{source}");
    }
    let chain = evaluate("(8,8):(8,1) o 0 o 16:2 o 1 o 4:1", &mut Environment::new()).unwrap().to_string();
    for index in 0..4 {
        let expected = format!("(8,8):(8,1)({})", 2 * (1 + index));
        let value = |text: &str| evaluate(text, &mut Environment::new()).unwrap();
        assert_eq!(value(&format!("C = {chain}; C({index})")), value(&expected));
    }
}

#[test]
fn misspelt_words_are_suggested() {
    for (source, help) in [
        ("coalesc(4:1)", "did you mean 'coalesce'?"),
        ("(4:1).sise()", "did you mean 'size'?"),
        ("tile = 4:1; tlie[0]", "did you mean 'tile'?"),
    ] {
        let error = evaluate(source, &mut Environment::new()).unwrap_err();
        assert_eq!(error.help.as_deref(), Some(help), "{source}");
    }
}

#[test]
fn maps_by_maps() {
    for (source, expected) in [
        (
            "logical_divide((4,8):(8,1), S<1,0,1> o 0 o (2,2):(1,2))",
            "(4,8):(8,1) o 0 o S<1,0,1> o 0 o ((2,2),8):((1,2),4)",
        ),
        ("flat_divide((4,8):(8,1), S<1,0,1> o 0 o (2,2):(1,2))", "(4,8):(8,1) o 0 o S<1,0,1> o 0 o (2,2,8):(1,2,4)"),
        ("logical_product((4,8):(8,1), S<1,0,1> o 0 o (2,2):(1,2))", "S<1,5,1> o 0 o ((4,8),(2,2)):((8,1),(32,64))"),
        ("blocked_product((4,8):(8,1), S<1,0,1> o 0 o (2,2):(1,2))", "S<1,5,1> o 0 o ((4,2),(8,2)):((8,32),(1,64))"),
        ("make_layout(S<1,0,1> o 0 o 4:1, 3:4)", "S<1,0,1> o 0 o (4,3):(1,4)"),
        ("layout_add(S<1,0,1> o 0 o 4:1, S<1,2,1> o 0 o 4:4)", "F2<4>[5,15] o 0 o 4:1"),
        ("blocked_product((2,2):(1@0,1@1), (2,4):(2@0,2@1))", "((2,2),(2,4)):((1@0,4@0),(1@1,4@1))"),
        ("tile_to_shape((8,8):(^1,^9), (16,32))", "((8,2),(8,4)):((^1,^64),(^9,^128))"),
        ("tile_to_shape((2,2):(1@0,1@1), (4,6))", "((2,2),(2,3)):((1@0,2@1),(1@1,4@1))"),
        ("composition(S<2,0,3> o 0 o (4,8):(8,1), (8,4):(1@1,1@0))", "S<2,0,3> o 0 o (8,4):(1,8)"),
        ("zipped_divide(S<2,0,3> o 0 o (4,8):(8,1), (2,2):(1@0,1@1))", "S<2,0,3> o 0 o ((2,2),(2,4)):((8,1),(16,2))"),
        ("composition((M,8):(8,1), S<1,0,1> o 0 o 4:1)", "(M,8):(8,1) o 0 o S<1,0,1> o 0 o 4:1"),
        ("composition((4,8):(1@0,1@1), S<0,0,0> o 0 o (2,4):(2,8))", "(2,4):(2@0,2@1)"),
        // Seen through coordinates, a map is one of numbers.
        ("complement((4,8):(8,1) o (0,0) o (2,4):(1@0,1@1), 32)", "(2,2):(4,16)"),
        ("right_inverse((4,8):(8,1) o (0,0) o (4,8):(1@0,1@1))", "(8,4):(4,1)"),
        ("cosize((4,8):(8,1) o (0,0) o (2,4):(1@0,1@1))", "12"),
        ("cosize(S<0,0,0> o 5 o (M,8):(8,1))", "8*M+5"),
        ("is_bijective(S<3,3,3> o 0 o (8,64):(64,1))", "true"),
        ("is_surjective((2,2):(^5,^6))", "false"),
        ("image((4,8):(8,1) o (1,0) o (2,2):(1@0,1@1))", "(8,9,16,17)"),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
    for (source, expected) in [
        ("(4,8):(8,1) o (2,2):(^1,^3)", "(2,2):(^8,^24)"),
        ("(4,8):(8,1) o (2,4):(^1,^2)", "(2,(2,2)):(8,(16,1))"),
        ("(8,8):(^1,^9) o (2,4):(^1,^2)", "(2,4):(^1,^2)"),
        ("(8,8):(^1,^9) o (3,2):(^3,^1)", "(3,2):(^3,^1)"),
        ("S<1,0,1> o (2,2):(^1,^2)", "(2,2):(^1,^3)"),
        ("(8,8):(^1,^9) o S<3,0,3>", "(8,8):(^1,^8)"),
        ("composition((8,8):(^1,^9), S<1,0,1> o 0 o (2,4):(1,2))", "(2,(2,2)):(^1,(^3,^4))"),
        ("composition((8,8):(^1,^9), (4,4):(1@1,1@0))", "(4,4):(^9,^1)"),
        ("zipped_divide((8,8):(^1,^9), (2,2):(1@0,1@1))", "((2,2),(4,4)):((^1,^9),(^2,^18))"),
        ("logical_divide((8,8):(^1,^9), (2,2):(^1,^3))", "((2,2),(2,8)):((^1,^3),(^4,^9))"),
        ("3:5 o 3:^3", "3:15"),
        ("8:5 o (3,2):(^5,^3)", "8:5 o 0 o F2<4>[5,10,3] o 0 o (3,2):(1,4)"),
        ("max_common_vector((8,8):(^1,^9), (8,8):(1,8))", "1"),
        ("is_contiguous((8,8):(^9,^1))", "true"),
        ("upcast((2,4,8):(^1,^2,^24), 2)", "(1,4,8):(^0,^1,^12)"),
        ("to_xor(F2<3>[3,6,1] o 0 o (3,2):(1,4))", "(3,2):(^3,^1)"),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
    // What has no value there is refused.
    assert_eq!(code("cosize(S<2,0,3> o 5 o (M,8):(8,1))"), "E0123");
    assert_eq!(code("composition((4,8):(1@0,1@1), S<1,0,1> o 0 o 4:1)"), "E0121");
}

#[test]
fn questions_about_layouts_known_at_launch() {
    for (source, expected) in [
        ("is_compact((M,K):(K,1))", "true"),
        ("is_injective((M,K):(K+8,1))", "true"),
        ("is_contiguous((M{min=2},K):(2*K,2))", "false"),
        ("recast_layout(32, 16, (M{div=8},K):(1,M))", "(M{div=8}/2,K):(1,M/2)"),
        ("upcast((M{div=8},K):(1,M), 8)", "(M{div=8}/8,K):(1,M/8)"),
        ("max_alignment((M{div=8},K):(1,S{div=16}))", "8"),
        ("max_common_vector((M,K):(K,1), (M,K):(K+8,1))", "K"),
        ("domain_distribute((M{div=8},K), 8)", "8:1"),
        ("common_refinement((M{div=128},K), (128,M/128,K))", "(128,M{div=128}/128,K)"),
        ("gcd(M{div=8}, 4)", "4"),
        ("make_layout_like((M,K):(K+8,1))", "(M,K):(K,1)"),
        ("equivalent((M,K):(1,M), M*K:1)", "true"),
        ("equal(M{max=4}, N{min=5})", "false"),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
    for source in [
        "is_compact((M,K):(S,1))",
        "recast_layout(32, 16, (M,K):(1,M))",
        "equivalent((M,K):(1,M), (M,K):(K,1))",
        "equal(M{div=2}, K{div=3})",
        "gcd(M{div=2}, 4)",
    ] {
        assert_eq!(code(source), "E0123", "{source}");
    }
}

#[test]
fn a_morphism_is_applied_to_indices_and_to_coordinates() {
    let f = "((2,3),4) -> (4,5,3,2) : ((4,3),1)";
    for index in 0..24 {
        let expected = value(&format!("L = encoded({f}); L({index})"));
        let (a, b, c) = (index % 2, index / 2 % 3, index / 6);
        for at in [format!("{index}"), format!("{}, {c}", index % 6), format!("({a},{b}), {c}")] {
            assert_eq!(value(&format!("f = {f}; f({at})")), expected, "{at}");
        }
    }
    assert_eq!(value("(4,5) -> (4,16,5) : (1,3)(7)"), "67");
    // A morphism is a map of sets: there is nothing past the end, and nothing to slice.
    for (at, refused) in
        [("24", "E0116"), ("-1", "E0116"), ("6, 0", "E0116"), ("_, 0", "E0208"), ("(1,1,1), 0", "E0118")]
    {
        assert_eq!(code(&format!("f = {f}; f({at})")), refused, "{at}");
    }
}

#[test]
fn what_layouts_take_besides_means_nothing_for_a_morphism() {
    assert_eq!(code("complement((4,5) -> (4,16,5) : (1,3), 24)"), "E0208");
    assert_eq!(code("coalesce((4,5) -> (4,16,5) : (1,3), (1))"), "E0208");
    assert_eq!(value("sum((4) -> (4) : (1), (2) -> (2) : (1))"), "((4),(2)) -> ((4),(2)) : ((1),(2))");
}
