//! Derivations end in the value of what they derive.

use tilewright_notation::{Environment, call, derive, evaluate, functions};

#[test]
fn the_last_step_is_the_value() {
    for function in functions() {
        let value = evaluate(function.example, &mut Environment::new()).unwrap();
        let derivation = derive(function.example, &mut Environment::new()).unwrap();
        assert_eq!(derivation.value, value, "{}", function.example);
        let ends: Vec<&str> = derivation.steps.iter().map(|step| step.text.as_str()).collect();
        let told = ends.iter().any(|text| text.starts_with("R = ") && text.ends_with(&format!("= {value}")));
        assert!(told, "{}\n{derivation}", function.example);
    }
}

#[test]
fn arguments_that_are_calls_are_derived_too() {
    let derivation = derive("size(complement(4:2, 24))", &mut Environment::new()).unwrap();
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
  S = shape(A) = (2,3)
  R = product(S) = 6
"
    );
}

#[test]
fn by_mode_each_mode_is_shown() {
    let derivation = derive("logical_divide((4,6):(1,4), [2:1;_])", &mut Environment::new()).unwrap();
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
    let told = |source: &str| derive(source, &mut Environment::new()).unwrap().to_string();
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
