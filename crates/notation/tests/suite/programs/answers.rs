//! Programs whose answer was once wrong, or refused although it exists.

use tilewright_notation::{Environment, evaluate};

/// The text of the value, or the code of the refusal.
fn answer(program: &str) -> String {
    match evaluate(program, &mut Environment::new()) {
        Ok(value) => value.to_string(),
        Err(error) => error.code.to_string(),
    }
}

#[test]
fn answers_are_what_the_definitions_say() {
    let cases = [
        // A number stays one input.
        ("linear_layout(4:^3)", "dim0=[(3),(6)] -> offset:8"),
        ("linear_layout((4):(^3))", "dim0=[(3),(6)] -> offset:8"),
        ("linear_layout((4,2):(^3,^1))", "dim0=[(3),(6)] dim1=[(1)] -> offset:8"),
        ("linear_quotient(register=[(1,0)] -> row:2 column:1, register=[(1)] -> row:2)", "-> column:1"),
        // Matrices that conform.
        ("F2<2>[1,2,3] o F2<3>[1,2]", "F2<2>[1,2]"),
        ("F2<2>[1,2,3] o S<1,0,1>", "F2<2>[1,3,3]"),
        ("F2<2>[1,2,3] o F2<4>[1,2]", "E0117"),
        // XOR strides: elimination decides.
        ("left_inverse((4,6):(^13,^2))", "(2,8,2):(^25,^4,^22)"),
        // What flips nothing changes nothing.
        ("complement(S<0,2,2> o 0 o (2,12):(1,1),16)", "E0111"),
        ("complement(16:0,16)", "16:1"),
        // Modes keep their shapes.
        ("size(make_layout(S<1,0,3> o 0 o (2,4):(16,8), 2:3))", "16"),
        ("shape(make_layout(S<1,0,3> o 0 o (2,4):(16,8), 2:3))", "((2,4),2)"),
        // What is no layout is one map after another.
        ("logical_divide(S<1,0,2> o 0 o (4,4):(8,2),6:1)", "S<1,0,2> o 0 o (4,4):(8,2) o 0 o (6,3):(1,6)"),
        ("right_inverse(S<2,0,2> o 0 o (2,(3,4)):(1,(4,5)))", "2:1"),
        ("upcast(S<2,1,2> o 0 o (4,4):(2,8),2)", "S<2,0,2> o 0 o (4,4):(1,4)"),
        // Coordinates.
        ("is_injective((4,4):(1@0,1@1))", "true"),
        ("is_injective((4,4):(1@0,2@0))", "false"),
        ("is_injective((4,4):(1@0+1@1,1@1))", "true"),
        ("is_injective((M,4):(1@0+1@1,1@1))", "true"),
        ("left_inverse(4:1@0+1@1)", "(4,1):(1,0)"),
        ("left_inverse((4,3):(1@0+1@1,1@1))", "E0127"),
        // Numbers known at launch.
        ("right_inverse((M,N,K):(N*K,1,N))", "(K*N,M):(M,1)"),
        ("left_inverse((M,N,K):(N*K,1,N))", "(K*N,M):(M,1)"),
        ("right_inverse((4,8):(4,M{min=2}))", "1:0"),
        ("logical_divide((M{div=4},8):(8,1),4:1)", "(4,(M{div=4}/4,8)):(8,(32,1))"),
        ("make_layout_like((3,(1,2)):(N{div=3},(K,0)))", "(3,(1,2)):(1,(0,0))"),
        ("max_common_vector((M,N,8):(8,8*M,1),(M,N,8):(8,8*M,1))", "8*M*N"),
        ("is_injective(S<2,0,2> o 0 o (M{div=4},4):(4,1))", "true"),
        ("is_injective(S<2,0,2> o 0 o (M{min=2},4):(0,1))", "false"),
        ("cosize(S<2,0,2> o 0 o (M{div=4},4):(4,1))", "4*M{div=4}"),
        // Both are 0, 1, 2, 3 along a diagonal.
        ("max_common_vector((5,4):(0,1),(5,4):(1,0))", "4"),
        ("max_common_vector((M{min=4},4):(0,1),(M{min=4},4):(1,0))", "4"),
        ("X = a+b+c+d+e+f+g+h; Y = X*X; Y*Y", "E0103"),
        // Coordinates fill their coshape, or do not.
        ("is_bijective((4,4):(1@0,1@1))", "true"),
        ("is_bijective((4,4,2):(1@0,1@1,0))", "false"),
        ("is_surjective((4,2):(2@0,1@1))", "false"),
        ("is_surjective((M,K):(1@1,1@0))", "true"),
        ("equivalent((2,2):(^1,^2), 4:1)", "true"),
        ("logical_divide(N:8,N:K)", "E0123"),
        ("coalesce((()):(()))", "():()"),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(program, expected)| answer(program) != *expected)
        .map(|(program, expected)| format!("{program} gives {}, not {expected}", answer(program)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reason is the one that holds.
#[test]
fn an_expression_of_too_many_terms_is_no_large_number() {
    let sentence = |program: &str| evaluate(program, &mut Environment::new()).unwrap_err().message.to_string();
    let terms = sentence("X = a+b+c+d+e+f+g+h; Y = X*X; Z = Y*Y; (8,Z):(1,8)");
    assert!(terms.contains("more than 256 terms"), "{terms}");
    assert!(sentence("X = a+b+c+d+e+f+g+h; Y = X*X; (8,(Y,Y)):(1,(8,8))").contains("more than 256 terms"));
    assert_eq!(sentence("4611686018427387904*4"), "arithmetic: a number does not fit in 64 bits");
}

/// What is not known is said in a sentence.
#[test]
fn a_question_that_is_open_reads_as_one() {
    let sentence = evaluate("equivalent(2:1, 2:K)", &mut Environment::new()).unwrap_err().message.to_string();
    assert_eq!(sentence, "equivalent: needs to know whether equivalent(2:1, 2:K) holds");
}

/// An operation that is refused is named as it was called.
#[test]
fn a_refusal_names_the_function_that_was_called() {
    for (program, name) in [
        ("to_layout((2,4,4):(^2,^2,^3))", "to_layout"),
        ("to_xor(S<1,2,1> o 4 o (3,2):(3,9))", "to_xor"),
        ("to_xor(4:3)", "to_xor"),
        ("complement(S<2,0,2> o 0 o (4,3):(3,16), 64)", "complement"),
        ("complement(S<2,2,2> o 0 o (4,4):(3,16))", "complement"),
        ("weak_complement(S<2,2,2> o 0 o (4,4):(3,16), 64)", "weak_complement"),
        ("composition_within(S<2,0,2> o 4 o (8,4):(2,16), 8:1)", "composition_within"),
    ] {
        let sentence = evaluate(program, &mut Environment::new()).unwrap_err().message.to_string();
        assert!(sentence.starts_with(&format!("{name}: ")), "{program}: {sentence}");
    }
}
