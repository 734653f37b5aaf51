//! Morphisms, refinements and spans in the language.

use tilewright_notation::{Environment, evaluate};

fn value(source: &str) -> String {
    match evaluate(source, &mut Environment::new()) {
        Ok(value) => value.to_string(),
        Err(error) => panic!("{}", error.render(source, false)),
    }
}

/// The steps of a composition by refinement, as the post on the categories prints them: the refined
/// morphisms compose as they are.
#[test]
fn refined_morphisms_compose() {
    let f = "(6,6) -> (6,6) : (1,2)";
    let g = "(12,3,6) -> (12,6,3) : (1,3,2)";
    let steps = format!("f = {f}; g = {g}; P = mutual_refinement(codomain(f), domain(g))");
    let refined = format!("{steps}; F = inclusion(P[0], P[1]) o pullback(f, P[0]); G = pushforward(g, P[1])");
    assert_eq!(value(&format!("{refined}; F")), "(6,(2,3)) -> ((6,2),3,6) : (1,(2,3))");
    assert_eq!(value(&format!("{refined}; equal(G o F, weak_composite(g, f))")), "true");
    // Without the inclusion the advice names it.
    let source = format!("{steps}; F = pullback(f, P[0]); G = pushforward(g, P[1]); G o F");
    let error = evaluate(&source, &mut Environment::new()).unwrap_err();
    assert_eq!(error.code, "E0706");
    assert!(error.help.as_ref().is_some_and(|help| help.contains("inclusion(S, T)")), "{error:?}");
    let nested = evaluate("((4),5) -> (4,5) : ((1),2) o (4,5) -> (4,5) : (1,2)", &mut Environment::new());
    assert!(nested.unwrap_err().help.is_some_and(|help| help.contains("flatten")));
    assert!(evaluate("inclusion((6,4), (6,2,2))", &mut Environment::new()).is_err());
}

/// A question about division or product is answered yes exactly where the operation has a result.
#[test]
fn divides_and_admissible_say_when_operations_exist() {
    let morphisms = [
        "(4,8) -> (8,4) : (2,1)",
        "(8) -> (4,8) : (2)",
        "(4,8) -> (4,8) : (1,2)",
        "(4) -> (4,8) : (1)",
        "(2,4) -> (4,8) : (*,1)",
        "((4,8)) -> ((4,8)) : ((1,2))",
        "(8) -> (8) : (1)",
        "(8) -> (4,8) : (*)",
        "8 -> (8) : 1",
        "(2,2) -> (2,3,2,5) : (1,3)",
        "5 -> (3,5) : 2",
    ];
    let (mut divided, mut multiplied) = (0, 0);
    for f in morphisms {
        for g in morphisms {
            let exists = |source: &str| evaluate(source, &mut Environment::new()).is_ok();
            let bound = format!("f = {f}; g = {g}");
            let divides = value(&format!("{bound}; divides(g, f)")) == "true";
            let admissible = value(&format!("{bound}; is_product_admissible(f, g)")) == "true";
            assert_eq!(divides, exists(&format!("{bound}; logical_divide(f, g)")), "{bound}");
            assert_eq!(admissible, exists(&format!("{bound}; logical_product(f, g)")), "{bound}");
            divided += usize::from(divides);
            multiplied += usize::from(admissible);
        }
    }
    assert!(divided > 5 && multiplied > 2, "{divided} and {multiplied}");
}

/// Spans of layouts encode them, and compose as the functions do.
#[test]
fn spans_are_values() {
    for layout in ["((2,2),3):((6,1),2)", "(4,(3,2)):(6,(2,1))", "(8):(1)", "((2,2),2):((0,1),4)"] {
        assert_eq!(value(&format!("encoded(span({layout}))")), layout);
        let span = value(&format!("span({layout})"));
        assert_eq!(value(&span), span, "it reads back");
    }
    let (s, t) = ("(4,(2,3))", "(6,4) -> (4,6) : (2,1)");
    let both = format!("span_composition({s}, {t})");
    for index in 0..24 {
        let direct = value(&format!("f = {t}; f({index})"));
        assert_eq!(value(&format!("encoded({both})({index})")), value(&format!("({direct})")).replace(['(', ')'], ""));
    }
    assert_eq!(value("graft((6,4), ((2,3),(2,2)))"), "((2,3),(2,2))");
    assert_eq!(value("equal(graft(graft((24,2), ((6,4),2)), ((2,3),4,2)), ((2,3),4,2))"), "false");
    assert_eq!(value("refined_sizes(graft((6,4), ((2,3),(2,2))))"), "(6,4)");
    for source in ["graft((6,4), ((2,2),4))", "span_composition((4,5), (6,4) -> (4,6) : (2,1))", "span((4:1,2))"] {
        assert!(evaluate(source, &mut Environment::new()).is_err(), "{source}");
    }
}
