//! Derivations end in the value of what they derive.

use tilewright_notation::{Environment, call, derive, evaluate, functions};

#[test]
fn the_last_step_is_the_value() {
    for function in functions() {
        let value = evaluate(function.example, &mut Environment::new()).unwrap();
        let derivation = derive(function.example, &mut Environment::new());
        assert_eq!(derivation.value, Ok(value.clone()), "{}", function.example);
        let ends: Vec<&str> = derivation.steps.iter().map(|step| step.text.as_str()).collect();
        let told = ends.iter().any(|text| text.starts_with("R = ") && text.ends_with(&format!("= {value}")));
        assert!(told, "{}\n{derivation}", function.example);
    }
}

#[test]
fn arguments_that_are_calls_are_derived_too() {
    let derivation = derive("size(complement(4:2, 24))", &mut Environment::new());
    assert_eq!(
        derivation.to_string(),
        "\
size(A) = product(shape(A))
  A = (2,3):(1,8)
    complement(A, M) is the sorted R such that (A, R) reaches every offset below M once
      A = 4:2
      M = 24
      F = filter(A) = 4:2
      R = complement(A, M) = (2,3):(1,8)
      D = make_layout(F, R) = (4,(2,3)):(2,(1,8))
      whole = is_bijective(D) = true
      N = size(D) = 24
      2:1 repeats what fills [0,1) 2 times: [0,2) is full
      3:8 repeats what fills [0,8) 3 times: [0,24) is full
  S = shape(A) = (2,3)
  R = product(S) = 6
"
    );
}

#[test]
fn by_mode_each_mode_is_shown() {
    let derivation = derive("logical_divide((4,6):(1,4), [2:1;_])", &mut Environment::new());
    assert_eq!(
        derivation.to_string(),
        "\
logical_divide(A, T) divides each mode by its tile
  A = (4,6):(1,4)
  T = [2:1;_]
  R0 = logical_divide(A[0], 2:1) = (2,2):(1,2)
  R1 = A[1] = 6:4
  R = logical_divide(A, T) = ((2,2),6):((1,2),4)
"
    );
}

#[test]
fn names_and_literals_are_told_as_they_are() {
    let told = |source: &str| derive(source, &mut Environment::new()).to_string();
    assert_eq!(told("(4,8):(8,1)"), "(4,8):(8,1)\n");
    assert_eq!(told("A = 4:1; A"), "A = 4:1\n");
    assert!(told("A = 4:1; A o 2:2").starts_with("composition(A, B) is the R with R(c) = A(B(c))"));
}

#[test]
fn a_call_names_its_function_and_arguments() {
    let of =
        |source: &str| call(source, &mut Environment::new()).unwrap().map(|call| (call.function, call.arguments.len()));
    assert_eq!(of("4:1 o 2:1"), Some(("composition", 2)));
    assert_eq!(of("A = 4:1; A.size()"), Some(("size", 1)));
    assert_eq!(of("(coalesce(4:1))"), Some(("coalesce", 1)));
    assert_eq!(of("4:1"), None);
    assert_eq!(of("A = 4:1; A(2)"), None);
    assert!(call("4:1 o", &mut Environment::new()).is_err());
}

#[test]
fn a_name_that_is_bound_anew_is_told_as_it_was() {
    let told = derive("A = (2,2):(1,2); A = coalesce(A)", &mut Environment::new()).to_string();
    assert!(told.contains("A = (2,2):(1,2)") && told.contains("R = coalesce(A) = 4:1"), "{told}");
}

#[test]
fn the_value_at_a_coordinate_is_a_sum() {
    let derivation = derive("A = (4,(2,4)):(2,(1,8)); A(2,(1,3))", &mut Environment::new());
    assert_eq!(
        derivation.to_string(),
        "\
A(c) = inner_product(natural coordinate of c, stride(A))
  A = (4,(2,4)):(2,(1,8))
  c = (2,(1,3))
  k = idx2crd(c, shape(A)) = (2,(1,3))
  D = stride(A) = (2,(1,8))
  R = 2*2 + 1*1 + 3*8 = 29
"
    );
    for source in ["(4,8):(8,1)(13)", "A = (4,8):(8,1); A(5,9)", "A = S<2,0,3> o 0 o (8,8):(8,1); A(3,4)", "8:2(3)"] {
        let value = evaluate(source, &mut Environment::new()).unwrap();
        let told = derive(source, &mut Environment::new());
        assert!(told.to_string().ends_with(&format!(" = {value}\n")), "{told}");
    }
}

#[test]
fn a_refusal_is_told_as_far_as_it_goes() {
    let told = |source: &str| {
        let derivation = derive(source, &mut Environment::new());
        assert_eq!(derivation.value.as_ref().err(), evaluate(source, &mut Environment::new()).err().as_ref());
        derivation.to_string()
    };
    assert_eq!(
        told("(6,2):(1,7) o (3,2):(2,3)"),
        "\
composition(A, B) is the R with R(c) = A(B(c)), B being applied first
  A = (6,2):(1,7)
  B = (3,2):(2,3)
  R0 = A o B[0] = 3:2
  R1 = A o B[1] = 2:3
  at c = (2,1): B(c) = 2*2 + 1*3 = 7, and A(7) = 8
  the modes alone: A(4) + A(3) = 4 + 3 = 7
"
    );
    let uneven = told("size((4,6,8):(2,3,5) o 6:3)");
    assert!(uneven.contains("6:3 alone has the values 0, 6, 7, "), "{uneven}");
    assert_eq!(told("complement((4,6):(1,6), 72)").lines().nth(3), Some("  F = filter(A) = (4,6):(1,6)"));
    assert_eq!(told("4:1 o"), "");
    assert_eq!(told("coalesce(nothing(1))"), "");
}

#[test]
fn operations_on_morphisms_are_told_with_where_each_entry_goes() {
    let told = |source: &str| derive(source, &mut Environment::new()).to_string();
    assert_eq!(
        told("logical_divide((4,8) -> (8,4) : (2,1), (8) -> (4,8) : (2))"),
        "\
logical_divide(f, g) = f o (g, complement(g))
  f = (4,8) -> (8,4) : (2,1)
  g = (8) -> (4,8) : (2)
  C = complement(g) = (4) -> (4,8) : (1)
  D = concat(g, C) = ((8),(4)) -> (4,8) : ((2),(1))
  R = f o D = ((8),(4)) -> (8,4) : ((1),(2))
  L = encoded(R) = ((8),(4)):((1),(8))
"
    );
    assert_eq!(
        told("mutual_refinement((6,6), (12,3,6))"),
        "\
mutual_refinement(S, T) takes off the front of both, each time, the largest piece that both can give
  S = (6,6)
  T = (12,3,6)
  R = mutual_refinement(S, T) = ((6,(2,3)),((6,2),3,6))
  6 and 12: 6 off both, and 2 of the second is left
  6 and 2: 2 off both, and 3 of the first is left
  3 and 3: 3 off both
  the first has ended: 6 of the second stays
"
    );
    assert_eq!(
        told("f = (4,5) -> (4,16,5) : (1,3); f(7)"),
        "\
f(c) = the coordinate of c, moved along the arrows, as an index of the codomain
  f = (4,5) -> (4,16,5) : (1,3)
  c = 7
  k = idx2crd(c, domain(f)) = (3,1)
  R = f(c) = 67
  moved: (3,0,1) in (4,16,5), which is 3*1 + 1*64 = 67
"
    );
    let said = |source: &str, words: &str| assert!(told(source).contains(words), "{}", told(source));
    said("(4,16,5) -> (16,5,4) : (3,1,2) o (4,5) -> (4,16,5) : (1,3)", "\n  entry 2 to 3, and from there to 2\n");
    said("encoded((4,5,2) -> (4,16,5) : (1,3,*))", "\n  5 is sent to place 3: stride 4*16 = 64\n");
    said("morphism((4,5):(1,64))", "\n  place 2: the gap 16, from 4 to 64\n");
    said("pullback((6,4) -> (4,6,6) : (2,*), (4,(2,3),6))", "\n  6 walks along (2,3), and is cut so\n");
    said("pushforward((12,3) -> (3,12) : (2,1), ((6,2),3))", "\n  (6,2) walks along 12, which is cut so\n");
    said("composition_by_refinement(8:1, 2:3)", "\n  f = morphism(B) = 2 -> (3,2) : 2\n");
}

#[test]
fn the_laws_in_derivations_of_morphisms_hold() {
    for source in [
        "coalesce((2,2,1,3) -> (2,2,5,3) : (1,2,*,4))",
        "coalesce(() -> (4) : ())",
        "coalesce((1) -> (4) : (*))",
        "complement((4,5) -> (4,16,5) : (1,3))",
        "composition((4,16,5) -> (16,5,4) : (3,1,2), (4,5) -> (4,16,5) : (1,3))",
        "pullback((6,4) -> (4,6,6) : (2,*), (4,(2,3),6))",
        "pushforward((12,3) -> (3,12) : (2,1), ((6,2),3))",
        "composition_by_refinement((12,3,6):(1,72,12), (6,6):(1,6))",
        "composition_by_refinement((8,2):(1,16), (4,(2,2)):(1,(4,8)))",
    ] {
        let derivation = derive(source, &mut Environment::new());
        let told = derivation.to_string();
        assert!(told.contains(" = true\n") && !told.contains(" = false\n"), "{told}");
        let value = derivation.value.unwrap();
        assert!(told.contains("R = ") && told.contains(&format!(" = {value}\n")), "{told}");
    }
}
