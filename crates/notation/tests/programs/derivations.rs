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
    assert_eq!(told("coalesce(nothing)"), "");
}
