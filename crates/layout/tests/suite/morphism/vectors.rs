//! Known facts: the worked examples of the paper and of its authors' notes, and what goes wrong
//! elsewhere.

use tilewright_layout::morphism::{
    MorphismError, MutualRefinement, NestMorphism, TupleMorphism, WorkedComposition, compose_by_refinement,
    is_tractable, standard_representation, tractability,
};
use tilewright_layout::{Layout, Tree};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

#[test]
fn standard_representations() {
    for (text, expected) in [
        ("(2,2):(3,30)", "(2,2) -> (3,2,5,2) : (2,4)"),
        ("(2,2,2,2):(24,0,3,480)", "(2,2,2,2) -> (3,2,4,2,10,2) : (4,*,2,6)"),
        ("(32,(2,2)):(192,(24,3))", "(32,(2,2)) -> (3,2,4,2,4,32) : (6,(4,2))"),
        ("(4,5):(1,64)", "(4,5) -> (4,16,5) : (1,3)"),
        ("(2,2):(5,50)", "(2,2) -> (5,2,5,2) : (2,4)"),
        ("4:1", "4 -> (4) : 1"),
        ("4:0", "4 -> () : *"),
        ("():()", "() -> () : ()"),
        // The strides of extents 1 cannot be observed.
        ("(8,1,1):(1,8,8)", "(8,1,1) -> (8) : (1,*,*)"),
        ("(1,2):(3,4)", "(1,2) -> (4,2) : (*,2)"),
        ("(1,1):(22,23)", "(1,1) -> () : (*,*)"),
        // Past the last mode nothing has to fit.
        ("2:4611686018427387904", "2 -> (4611686018427387904,2) : 2"),
    ] {
        let f = standard_representation(&layout(text)).unwrap();
        assert_eq!(f.to_string(), expected);
        assert_eq!(expected.parse::<NestMorphism>().unwrap(), f);
        assert!(f.is_standard() && !f.is_degenerate());
        assert!(f.encoded_layout().unwrap().equivalent(&layout(text)));
    }
}

#[test]
fn tractable_and_why_not() {
    for text in ["(1,1):(22,23)", "(1,2):(3,4)", "(6,6):(6,1)", "(4,6,8):(1,0,4)", "8:3", "(3,1,2):(1,-7,3)"] {
        assert!(is_tractable(&layout(text)) && layout(text).is_tractable(), "{text}");
    }
    for (text, reason) in [
        ("((8,8),(5,5)):((8,1),(10,2))", "8 * 1 = 8 of mode [0,1] does not divide 2, the next stride, of mode [1,1]"),
        ("(2,2):(1,3)", "2 * 1 = 2 of mode 0 does not divide 3, the next stride, of mode 1"),
        ("(2,2):(1,1)", "2 * 1 = 2 of mode 0 does not divide 1, the next stride, of mode 1"),
        ("(4,2):(1,-4)", "the stride -4 of mode 1 is negative"),
        (
            "(4,2):(4611686018427387904,4611686018427387904)",
            "9223372036854775808 of mode 1 does not divide 4611686018427387904, the next stride, of mode 0",
        ),
    ] {
        assert!(!is_tractable(&layout(text)) && !layout(text).is_tractable(), "{text}");
        let error = tractability(&layout(text)).unwrap_err();
        assert!(error.to_string().ends_with(reason), "{error}");
        assert_eq!(error.code(), "E0707");
    }
}

#[test]
fn mutual_refinements() {
    let tree = |text: &str| text.parse::<Tree<i64>>().unwrap();
    for (first, second, expected) in [
        ("(6,6)", "(2,6,6)", "((2,3),(2,3)) | (2,(3,2),(3,2))"),
        ("(4,2,2,32)", "(32,32)", "(4,2,2,(2,16)) | ((4,2,2,2),(16,2))"),
        ("(6,6)", "(12,3,6)", "(6,(2,3)) | ((6,2),3,6)"),
        ("(8,(4,4))", "(2,16,4,3)", "((2,4),(4,4)) | (2,(4,4),4,3)"),
        ("()", "(4,5)", "() | (4,5)"),
        ("()", "()", "() | ()"),
        // Entries 1.
        ("(6,1)", "6", "(6,1) | (6,1)"),
        ("(6,1)", "(6)", "(6,1) | ((6,1))"),
        ("(1,6,1,1)", "(6)", "(1,6,1,1) | ((1,6,1,1))"),
        ("(6)", "(1,2,1,3,1)", "((1,2,1,3)) | (1,2,1,3,1)"),
        ("(1,1)", "()", "((),()) | ()"),
        ("(2,1,3)", "(2,1,3)", "(2,1,3) | (2,1,3)"),
    ] {
        let mutual = MutualRefinement::new(&tree(first), &tree(second)).unwrap();
        assert_eq!(mutual.to_string(), expected);
    }
    let refused = |first: &str, second: &str| MutualRefinement::new(&tree(first), &tree(second)).unwrap_err();
    for (first, second, reason) in [
        (
            "(8,8)",
            "(3,8,8)",
            "8 of entry 1 of the first and 3 of entry 1 of the second meet and neither divides the other",
        ),
        (
            "(4,9)",
            "(4,6,6)",
            "9 of entry 2 of the first and 6 of entry 2 of the second meet, 4 positions from the start, and neither",
        ),
        ("(8,8)", "(8,4)", "the second ends where 2 of entry 2 of the first is left"),
        ("(2,3)", "()", "the second ends where 2 of entry 1 of the first is left"),
    ] {
        let error = refused(first, second);
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.code(), "E0711");
    }
    assert_eq!(refused("(0,2)", "(2)").code(), "E0705");
}

#[test]
fn compositions() {
    for (outer, inner, expected) in [
        ("(12,3,6):(1,72,12)", "(6,6):(1,6)", "(6,(2,3)):(1,(6,72))"),
        ("(12,3,6):(1,72,12)", "(6,6):(6,1)", "((2,3),6):((6,72),1)"),
        ("(10,360):(2,60)", "(6,6):(5,60)", "((2,3),6):((10,60),360)"),
        ("(2,2):(2,1)", "(4):(1)", "((2,2)):((2,1))"),
        ("(5,2,5,2):(1,25,5,50)", "(2,2):(5,50)", "(2,2):(25,50)"),
        ("1:0", "1:0", "1:0"),
        ("4:7", "(3,2):(0,2)", "(3,2):(0,14)"),
    ] {
        let (outer, inner) = (layout(outer), layout(inner));
        let composite = compose_by_refinement(&outer, &inner).unwrap();
        assert_eq!(composite.to_string(), expected);
        assert_eq!(WorkedComposition::new(&outer, &inner).unwrap().composite, composite);
        assert_eq!(outer.compose_within(&inner).unwrap(), composite);
    }
    // The composites exist, and mutual refinement does not find them.
    for (outer, inner, code, exists) in [
        ("12:1", "(2,2):(1,3)", "E0707", "(2,2):(1,3)"),
        ("(4,6):(1,8)", "(2,2):(8,12)", "E0707", "(2,2):(16,24)"),
        ("8:1", "(2,2):(1,1)", "E0707", "(2,2):(1,1)"),
        ("8:1", "2:3", "E0711", "2:3"),
    ] {
        let (outer, inner) = (layout(outer), layout(inner));
        assert_eq!(compose_by_refinement(&outer, &inner).unwrap_err().code(), code);
        assert_eq!(WorkedComposition::new(&outer, &inner).unwrap_err().code(), code);
        assert_eq!(outer.compose_within(&inner).unwrap().to_string(), exists);
    }
    // Tractable after tractable need not be tractable.
    let composite = compose_by_refinement(&layout("(6,3):(21,7)"), &layout("4:3"));
    assert!(composite.is_err());
    assert_eq!(layout("(6,3):(21,7)").compose(&layout("4:3")).unwrap().to_string(), "(2,2):(63,7)");
}

#[test]
fn the_examples_of_the_categories_post() {
    // Three morphisms that encode one layout; the first is in standard form.
    for text in ["(4,5) -> (4,16,5) : (1,3)", "(4,5) -> (4,16,5,7) : (1,3)", "(4,5) -> (4,2,8,5) : (1,4)"] {
        let f: TupleMorphism = text.parse().unwrap();
        assert_eq!(f.encoded_layout().unwrap().to_string(), "(4,5):(1,64)");
        assert_eq!(f.standard_form().unwrap().to_string(), "(4,5) -> (4,16,5) : (1,3)");
        assert_eq!(f.is_standard(), text.ends_with("(4,16,5) : (1,3)"));
    }
}

#[test]
fn each_condition_has_its_error() {
    for (text, code) in [
        ("(4,5) -> (4,5) : (1)", "E0701"),
        ("(4,5) -> (4,5) : (1,3)", "E0702"),
        ("(4,4) -> (4,5) : (1,1)", "E0703"),
        ("(4,5) -> (4,5) : (2,1)", "E0704"),
        ("(4,0) -> (4,5) : (1,*)", "E0705"),
        ("(4,5) -> (4,-5) : (1,*)", "E0705"),
        ("(4,5) => (4,5) : (1,2)", "E0716"),
        ("(4,5) -> (4,5)", "E0716"),
        ("(4,5) -> (4,5) : (1,0)", "E0716"),
        ("(4,5) -> (4,5) : (1,2) 7", "E0716"),
        ("((4,5),2) -> (4,5) : (1,(2,*))", "E0716"),
        ("(4294967296,4294967296) -> () : (*,*)", "E0103"),
    ] {
        let error = text.parse::<NestMorphism>().unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
        assert!(error.help().is_some());
    }
    let f: TupleMorphism = "(4,5) -> (4,7,5) : (1,3)".parse().unwrap();
    let code = |result: Result<TupleMorphism, MorphismError>| result.unwrap_err().code();
    assert_eq!(code(f.compose(&f)), "E0706");
    assert_eq!(code("(2,3) -> (2) : (1,*)".parse::<TupleMorphism>().unwrap().complement()), "E0708");
    assert_eq!(code(f.concat(&f)), "E0709");
    assert_eq!(code(f.restrict(&[0, 2])), "E0712");
    assert_eq!(code(f.restrict(&[1, 0])), "E0712");
    assert_eq!(code(f.factorise(&[0, 1])), "E0713");
    assert_eq!(code(f.inverse()), "E0714");
    assert_eq!(f.factorise(&[0, 2]).unwrap().to_string(), "(4,5) -> (4,5) : (1,2)");
    assert_eq!(f.restrict(&[1]).unwrap().to_string(), "(5) -> (4,7,5) : (3)");
}
