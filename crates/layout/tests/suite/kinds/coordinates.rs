//! Coordinates against an odometer: the laws at every index of small shapes, and a little past the
//! end and below zero.

use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree, coordinates, crd2crd, crd2idx, idx2crd, increment};

fn tree(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

const SHAPES: [&str; 12] = [
    "1",
    "5",
    "(5)",
    "(1,1)",
    "(2,3)",
    "(1,3,1)",
    "(4,(2,3))",
    "((2,3),4)",
    "((2,1),(3,(2,2)))",
    "(3,3,3)",
    "(((2),3),1)",
    "(2,(),3)",
];

/// The coordinates of a flat list of extents, by counting.
fn odometer(extents: &[i64]) -> Vec<Vec<i64>> {
    let size: i64 = extents.iter().product();
    let mut all = Vec::new();
    let mut digits = vec![0; extents.len()];
    for _ in 0..size {
        all.push(digits.clone());
        for (digit, extent) in digits.iter_mut().zip(extents) {
            *digit += 1;
            if *digit < *extent {
                break;
            }
            *digit = 0;
        }
    }
    all
}

#[test]
fn idx2crd_counts_as_an_odometer() {
    for text in SHAPES {
        let shape = tree(text);
        let all = odometer(shape.leaves());
        let listed: Vec<Tree<i64>> = coordinates(&shape).unwrap().collect();
        assert_eq!(listed.len(), all.len());
        assert_eq!(coordinates(&shape).unwrap().size_hint(), (all.len(), Some(all.len())));
        for (index, digits) in all.iter().enumerate() {
            let coord = idx2crd(&Tree::leaf(index as i64), &shape).unwrap();
            assert!(coord.congruent(&shape), "{text}");
            assert_eq!(coord.leaves(), digits, "{text} at {index}");
            assert_eq!(listed[index], coord);
            assert_eq!(crd2idx(&coord, &shape).unwrap(), index as i64, "{text} at {index}");
            assert_eq!(idx2crd(&coord, &shape).unwrap(), coord);
            let next = increment(&coord, &shape).unwrap();
            assert_eq!(next, idx2crd(&Tree::leaf(index as i64 + 1), &shape).unwrap(), "{text} after {index}");
        }
    }
}

#[test]
fn outside_the_shape_the_index_survives() {
    for text in SHAPES {
        let shape = tree(text);
        let size: i64 = shape.leaves().iter().product();
        for index in -2 * size..3 * size {
            let coord = idx2crd(&Tree::leaf(index), &shape).unwrap();
            assert_eq!(crd2idx(&coord, &shape).unwrap(), index, "{text}");
            let mirrored = idx2crd(&Tree::leaf(-index), &shape).unwrap();
            assert!(coord.leaves().iter().zip(mirrored.leaves()).all(|(a, b)| *a == -b), "{text} at {index}");
        }
    }
}

/// A layout has one value at an index, however the coordinate is nested.
#[test]
fn eval_at_agrees_with_eval() {
    for text in
        ["(4,(2,4)):(2,(1,8))", "((2,3),4):((-1,7),0)", "((2,1),(3,(2,2))):((5,9),(1,(-4,100)))", "5:3", "(5):(3)"]
    {
        let sample = layout(text);
        let shape = sample.shape();
        // One index for each mode of the root.
        let by_mode: Tree<i64> = if sample.depth() == 0 {
            shape.clone()
        } else {
            Tree::flat(sample.modes().map(|mode| mode.size())).unwrap()
        };
        for index in -sample.size()..3 * sample.size() {
            let expected = sample.eval(&index).unwrap();
            let whole = Tree::leaf(index);
            for coord in [idx2crd(&whole, &shape).unwrap(), idx2crd(&whole, &by_mode).unwrap(), whole] {
                assert_eq!(sample.eval_at(&coord).unwrap(), expected, "{text} at {coord}");
            }
        }
    }
}

#[test]
fn crd2crd_keeps_the_index() {
    for (from, to) in [("(2,3)", "(3,2)"), ("(4,(2,3))", "((2,2),6)"), ("12", "(1,(3,4))"), ("((2,3),4)", "24")] {
        let (from, to) = (tree(from), tree(to));
        for coord in coordinates(&from).unwrap() {
            let other = crd2crd(&coord, &from, &to).unwrap();
            assert_eq!(crd2idx(&other, &to), crd2idx(&coord, &from));
            assert_eq!(crd2crd(&other, &to, &from).unwrap(), coord);
        }
    }
    assert_eq!(crd2crd(&tree("5"), &tree("(2,3)"), &tree("(3,2)")).unwrap(), tree("(2,1)"));
    let error = crd2crd(&tree("5"), &tree("(2,3)"), &tree("(3,3)")).unwrap_err();
    assert_eq!(error, LayoutError::Size { op: "crd2crd", left: 6, right: 9 });
}

/// Facts that the public tests of the CuTe IR dialect assert.
#[test]
fn facts_of_the_dialect() {
    for (index, shape, coord) in [("(1,(0,1))", "(4,(2,3))", "(1,(0,1))"), ("0", "()", "()"), ("9", "(4,8)", "(1,2)")] {
        assert_eq!(idx2crd(&tree(index), &tree(shape)).unwrap(), tree(coord));
    }
    for (coord, shape, next) in [
        ("(0,0,3)", "(3,3,3)", "(1,0,3)"),
        ("(1,(2,0))", "(4,(3,8))", "(2,(2,0))"),
        ("(2,0,0,0)", "(3,3,3,3)", "(0,1,0,0)"),
        ("(2,2,2)", "(3,3,3)", "(0,0,3)"),
        ("(3,2)", "(4,8)", "(0,3)"),
        ("(5,1)", "((2,3),4)", "(0,2)"),
    ] {
        assert_eq!(increment(&tree(coord), &tree(shape)).unwrap(), tree(next));
    }
    assert_eq!(idx2crd(&tree("7"), &tree("(2,3)")).unwrap(), tree("(1,3)"));
    assert_eq!(idx2crd(&tree("7"), &tree("4")).unwrap(), tree("7"));
    let at = |text: &str, coord: &str| layout(text).eval_at(&tree(coord)).unwrap();
    assert_eq!(at("(4,(2,4)):(2,(1,8))", "(2,(0,1))"), 12);
    assert_eq!(at("((2,2),(2,2)):((1,4),(2,8))", "((1,1),(1,1))"), 15);
    assert_eq!(at("(4,8):(1,4)", "(2,3)"), 14);
}

/// An index beyond an extent of 1 counts on, though compact layouts give that extent the stride 0.
#[test]
fn crd2idx_counts_through_extent_one() {
    assert_eq!(crd2idx(&tree("(3,2)"), &tree("(1,4)")).unwrap(), 5);
    assert_eq!(crd2idx(&tree("17"), &tree("(1,4)")).unwrap(), 17);
}

#[test]
fn refusals_name_the_place() {
    let refused = |coord: &str, shape: &str| {
        let (coord, shape) = (tree(coord), tree(shape));
        let errors = [
            crd2idx(&coord, &shape).map(|_| ()).unwrap_err(),
            idx2crd(&coord, &shape).map(|_| ()).unwrap_err(),
            increment(&coord, &shape).map(|_| ()).unwrap_err(),
            Layout::compact(&shape).unwrap().eval_at(&coord).map(|_| ()).unwrap_err(),
        ];
        errors.map(|error| match error {
            LayoutError::Coordinate { path, .. } => path,
            other => panic!("{other}"),
        })
    };
    assert_eq!(refused("(1,2)", "4"), [(); 4].map(|()| Vec::<usize>::new()));
    assert_eq!(refused("(1,2,3)", "(4,4)"), [(); 4].map(|()| Vec::<usize>::new()));
    assert_eq!(refused("(1,(2,3))", "(4,4)"), [(); 4].map(|()| vec![1]));
    assert_eq!(refused("(0,((1,2,3),0))", "(4,((2,2),2))"), [(); 4].map(|()| vec![1, 0]));

    assert!(matches!(idx2crd(&tree("1"), &tree("()")), Err(LayoutError::Coordinate { .. })));
    assert!(matches!(layout("():()").eval_at(&tree("1")), Err(LayoutError::Coordinate { .. })));
    assert_eq!(layout("():()").eval_at(&tree("()")).unwrap(), 0);
    assert!(matches!(increment(&tree("()"), &tree("()")), Err(LayoutError::Argument { .. })));
    for shape in ["(4,0)", "(-1,4)"] {
        assert!(matches!(crd2idx(&tree("0"), &tree(shape)), Err(LayoutError::Extent { .. })));
        assert!(matches!(idx2crd(&tree("0"), &tree(shape)), Err(LayoutError::Extent { .. })));
        assert!(coordinates(&tree(shape)).is_err());
    }
}

#[test]
fn large_numbers_are_exact_or_refused() {
    let huge = tree("(9223372036854775807,9223372036854775807)");
    assert_eq!(crd2idx(&tree("(5,0)"), &huge).unwrap(), 5);
    assert_eq!(crd2idx(&tree("(0,1)"), &huge).unwrap(), i64::MAX);
    assert!(matches!(crd2idx(&tree("(0,2)"), &huge), Err(LayoutError::Overflow { .. })));
    assert!(matches!(crd2idx(&tree("(1,1)"), &huge), Err(LayoutError::Overflow { .. })));
    assert_eq!(idx2crd(&tree("9223372036854775807"), &huge).unwrap(), tree("(0,1)"));
    assert_eq!(increment(&tree("(7,9)"), &huge).unwrap(), tree("(8,9)"));
    assert!(coordinates(&huge).is_err());
    assert!(increment(&tree("9223372036854775807"), &tree("5")).is_err());
    assert_eq!(idx2crd(&Tree::leaf(i64::MIN), &tree("(2,3)")).unwrap(), Tree::flat([0, i64::MIN / 2]).unwrap());
}

#[test]
fn coordinates_print_and_read_back() {
    for text in ["_", "(_,1)", "(_,(1,_),())", "(0,-3)", "((_))"] {
        let coord: Coord = text.parse().unwrap();
        assert_eq!(coord.to_string(), text);
        assert_eq!(coord.indices().is_some(), !text.contains('_'));
    }
    let spaced: Coord = " ( _ , _4 ) ".parse().unwrap();
    assert_eq!(spaced.leaves(), [Slot::All, Slot::At(4)]);
    for text in ["__", "(_", "_,_", "(_ 1)", "", "x"] {
        assert!(matches!(text.parse::<Coord>(), Err(LayoutError::Syntax { .. })), "{text}");
    }
    // A shape has no open modes.
    assert!("(_,1)".parse::<Tree<i64>>().is_err());
}
