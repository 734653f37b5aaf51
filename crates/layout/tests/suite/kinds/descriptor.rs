//! Descriptors: what they stand for, that their text reads back, and that what is malformed is
//! refused where it stands.

use tilewright_layout::{Coordinate, Descriptor, Layout, LayoutError, ModePath, Tree};

fn descriptor(text: &str) -> Descriptor {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn descriptors_of_the_page() {
    for (text, normal) in [
        ("(1@0, 1@1)", "(1@0,1@1)"),
        ("(16@0, 1@1)", "(16@0,1@1)"),
        ("((1@0, 8@1), 1@2)", "((1@0,8@1),1@2)"),
        ("(1@0@1)", "(1@0@1)"),
        ("()", "()"),
        (" ( 6 / 3 @ 0 ,\t-8/4@1 ) ", "(2@0,-2@1)"),
        ("(0/7@0, 0@3, 0, 4@1)", "(0,0,0,4@1)"),
        ("(8/-2@0)", "(-4@0)"),
        ("((), (5@254))", "((),(5@254))"),
    ] {
        let read = descriptor(text);
        assert_eq!(read.to_string(), normal);
        assert_eq!(descriptor(normal), read);
        // It is a tree of strides, of which a congruent shape makes a layout.
        assert_eq!(&normal.parse::<Tree<Coordinate>>().unwrap(), read.strides());
        let shape = read.strides().map(|_| 2);
        assert_eq!(&Layout::new(&shape, read.strides()).unwrap().stride(), read.strides());
    }
}

#[test]
fn fractions_come_out_whole_or_are_refused_where_they_stand() {
    let mut whole = 0;
    for count in -12..=12_i64 {
        for denominator in (-4..=6_i64).filter(|d| *d != 0) {
            let entry = format!("{count}/{denominator}@1@0");
            let text = format!("(1@1, (0,  {entry} ) )");
            match text.parse::<Descriptor>() {
                Ok(read) => {
                    let step = Coordinate::step(count / denominator, ModePath::new(&[0, 1]).unwrap());
                    assert_eq!(read.strides().leaves()[2], step, "{text}");
                    assert_eq!(count % denominator, 0, "{text}");
                    assert_eq!(descriptor(&read.to_string()), read);
                    whole += 1;
                }
                Err(LayoutError::Fraction { place, count: n, denominator: d }) => {
                    assert_eq!((&text[place], n, d), (entry.as_str(), count, denominator));
                    assert_ne!(count % denominator, 0);
                }
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
    assert!(whole > 100);
    let error = "(1/2@0, 4@1)".parse::<Descriptor>().unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("E0128", "1/2 at byte 1 is no whole number of steps"));
    assert_eq!("(-9223372036854775808/-1@0)".parse::<Descriptor>().unwrap_err().code(), "E0103");
}

#[test]
fn malformed_text_is_no_descriptor() {
    for (text, place) in [
        ("", 0),
        ("1@0", 0),
        ("(", 1),
        (")", 0),
        ("(1@0", 4),
        ("(1@0))", 5),
        ("(1@0) 1", 6),
        ("(1@0 1@1)", 5),
        ("(,1@0)", 1),
        ("(1@0,,1@1)", 5),
        ("(1)", 2),
        ("(4/2)", 4),
        ("(0/2)", 4),
        ("(1@)", 3),
        ("(1@-1)", 3),
        ("(@0)", 1),
        ("(1/@0)", 3),
        ("(1/0@0)", 3),
        ("(1//2@0)", 3),
        ("(x@0)", 1),
        ("(1@0+1@1)", 4),
        ("(1@0:2)", 4),
        ("(99999999999999999999@0)", 1),
    ] {
        match text.parse::<Descriptor>() {
            Err(LayoutError::Syntax { at, .. }) => assert_eq!(at, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let code = |text: &str| text.parse::<Descriptor>().unwrap_err().code();
    assert_eq!(code("(1@0, 1@1@0)"), "E0125");
    assert_eq!(code("(1@255)"), "E0104");
    assert_eq!(code("(1@0@0@0@0@0@0@0@0@0)"), "E0104");
    assert_eq!(code(&"(".repeat(65)), "E0104");
}
