//! Slices against their law: a slice, started at its offset, is the layout with the open places
//! free.

use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree, coordinates};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn coord(text: &str) -> Coord {
    text.parse().unwrap()
}

const LAYOUTS: [&str; 7] = [
    "(4,8):(8,1)",
    "(4,(2,4)):(2,(1,8))",
    "((2,3),4,(2)):((-1,7),0,(5))",
    "((2,(2,3)),2):((1,(-10,3)),100)",
    "(3):(2)",
    "(2,(),3):(1,(),2)",
    "(((2,2))):(((5,1)))",
];

/// Every coordinate that fits a shape: each mode open, fixed at an index, or descended into.
fn all_coords(shape: &Tree<i64>) -> Vec<Coord> {
    let size: i64 = shape.leaves().iter().product();
    let mut all = vec![Tree::leaf(Slot::All)];
    all.extend([0, size / 2, size - 1].into_iter().map(|index| Tree::leaf(Slot::At(index))));
    if !shape.is_leaf() {
        let mut tuples: Vec<Vec<Coord>> = vec![Vec::new()];
        for mode in shape.modes() {
            let choices = all_coords(&mode);
            tuples = tuples
                .iter()
                .flat_map(|front| choices.iter().map(move |last| front.iter().chain([last]).cloned().collect()))
                .collect();
        }
        all.extend(tuples.iter().map(|modes| Tree::tuple(modes.iter()).unwrap()));
    }
    all
}

/// The natural coordinate of the layout, one index a leaf, with the open places filled from `free`
/// in order.
fn filled(shape: &Tree<i64>, coord: &Coord, free: &mut impl Iterator<Item = i64>, out: &mut Vec<i64>) {
    if !coord.is_leaf() {
        for (mode, coord) in shape.modes().zip(coord.modes()) {
            filled(&mode, &coord, free, out);
        }
        return;
    }
    match coord.leaves()[0] {
        Slot::All => out.extend(shape.leaves().iter().map(|_| free.next().unwrap())),
        Slot::At(mut index) => {
            for extent in shape.leaves() {
                out.push(index % extent);
                index /= extent;
            }
        }
    }
}

#[test]
fn a_slice_is_the_layout_with_open_places() {
    let mut checked = 0;
    for text in LAYOUTS {
        let whole = layout(text);
        let shape = whole.shape();
        for coord in all_coords(&shape) {
            let (slice, offset) = whole.slice_and_offset(&coord).unwrap();
            assert_eq!(slice, whole.slice(&coord).unwrap());
            assert_eq!(slice.shape(), shape.slice(&coord).unwrap());
            let size: i64 = slice.size();
            let mut values = Vec::new();
            for free in coordinates(&slice.shape()).unwrap() {
                let mut digits = Vec::new();
                filled(&shape, &coord, &mut free.leaves().iter().copied(), &mut digits);
                let at: i64 = whole.leaves().iter().zip(digits).map(|(leaf, digit)| leaf.stride * digit).sum();
                assert_eq!(offset + slice.eval_at(&free).unwrap(), at, "{text} sliced by {coord} at {free}");
                values.push(at);
                checked += 1;
            }
            assert_eq!(values.len() as i64, size);
        }
    }
    assert!(checked > 4_000, "{checked}");
}

/// Slice and dice share the leaves between them.
#[test]
fn dice_is_what_slice_leaves() {
    for text in LAYOUTS {
        let whole = layout(text);
        for coord in all_coords(&whole.shape()) {
            let swapped = coord.map(|slot| match slot {
                Slot::All => Slot::At(0),
                Slot::At(_) => Slot::All,
            });
            assert_eq!(whole.dice(&coord).unwrap(), whole.slice(&swapped).unwrap());
            let (open, fixed) = (whole.slice(&coord).unwrap(), whole.dice(&coord).unwrap());
            assert_eq!(open.leaves().len() + fixed.leaves().len(), whole.leaves().len());
        }
    }
}

#[test]
fn domain_offset_moves_the_origin() {
    for text in LAYOUTS {
        let whole = layout(text);
        for origin in coordinates(&whole.shape()).unwrap() {
            let (moved, offset) = whole.domain_offset(&origin).unwrap();
            for step in coordinates(&whole.shape()).unwrap() {
                let sum =
                    Tree::new(step.profile().clone(), step.leaves().iter().zip(origin.leaves()).map(|(a, b)| a + b))
                        .unwrap();
                assert_eq!(moved.eval_at(&step).unwrap() + offset, whole.eval_at(&sum).unwrap());
            }
        }
    }
}

#[test]
fn named_facts() {
    for (given, at, expected) in [
        // CuTe's basics: a row, its nesting kept or dissolved.
        ("(4,(2,4)):(2,(1,8))", "(0,(_,_))", "(2,4):(1,8)"),
        ("(4,(2,4)):(2,(1,8))", "(0,_)", "((2,4)):((1,8))"),
        ("((1,1),4):((4,4),1)", "(_,1)", "((1,1)):((4,4))"),
        ("((12)):((2))", "(_)", "((12)):((2))"),
        ("((12,2),9):((1,12),0)", "(0,0)", "():()"),
        ("((12,4),2,(1,9)):((4,2592),1,(0,96))", "(0,_,0)", "(2):(1)"),
        ("((2,1),(8),5):((24,9),(6),3)", "(_,_,1)", "((2,1),(8)):((24,9),(6))"),
        ("((2,8),1,6):((1,12),2,2)", "(_,1,_)", "((2,8),6):((1,12),2)"),
        ("((6)):((1))", "(0)", "():()"),
        ("(12,3):(1,12)", "(1,_)", "(3):(12)"),
        ("(8,2,(5)):(2,80,(16))", "(_,1,_)", "(8,(5)):(2,(16))"),
        ("(9,12,8):(1,72,9)", "(_,1,0)", "(9):(1)"),
        // The whole, and nothing.
        ("(9,12,8):(1,72,9)", "_", "(9,12,8):(1,72,9)"),
        ("(9,12,8):(1,72,9)", "7", "():()"),
        ("5:2", "_", "5:2"),
    ] {
        assert_eq!(layout(given).slice(&coord(at)).unwrap(), layout(expected), "slice({given}, {at})");
    }
    let shape: Tree<i64> = "(2,(3,4))".parse().unwrap();
    assert_eq!(shape.slice(&coord("(_,(1,_))")).unwrap().to_string(), "(2,4)");
    assert_eq!(shape.dice(&coord("(_,(1,_))")).unwrap().to_string(), "(3)");
}

#[test]
fn a_coordinate_that_does_not_fit_is_refused() {
    for (given, at, expected) in [
        ("4:1", "(_)", vec![]),
        ("(4,8):(8,1)", "(_,_,_)", vec![]),
        ("(4,8):(8,1)", "(_)", vec![]),
        ("(4,8):(8,1)", "(1,(_))", vec![1]),
        ("(4,(2,4)):(2,(1,8))", "(_,(0,_,0))", vec![1]),
    ] {
        let whole = layout(given);
        for error in [
            whole.slice(&coord(at)).map(|_| ()).unwrap_err(),
            whole.dice(&coord(at)).map(|_| ()).unwrap_err(),
            whole.slice_and_offset(&coord(at)).map(|_| ()).unwrap_err(),
        ] {
            assert!(matches!(&error, LayoutError::Coordinate { path, .. } if *path == expected), "{error}");
        }
    }
    assert!(layout("(4,8):(8,1)").domain_offset(&"(1,2,3)".parse().unwrap()).is_err());
    assert!(layout("(4,8):(8,4611686018427387904)").slice_and_offset(&coord("(_,2)")).is_err());
}
