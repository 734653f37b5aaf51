//! The algebra of layouts of coordinates, against its definitions at every index.
//!
//! A coordinate is a map from paths to numbers here, and a layout a list of leaves; what exists is
//! found out by trying all values, with no code of the library.

mod composition;

use std::collections::BTreeMap;

use tilewright_layout::{AnyLayout, Coord, Coordinate, Layout, LayoutError, Profile, Slot, Stride, Tiler, Tree};

type Steps = Layout<Coordinate>;

fn steps(text: &str) -> Steps {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn integers(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A value as numbers by path.
type Value = BTreeMap<Vec<usize>, i64>;

fn value(coordinate: &Coordinate) -> Value {
    coordinate.terms().map(|(path, scale)| (path.modes().collect(), *scale)).collect()
}

fn sum(a: &Value, b: &Value, times: i64) -> Value {
    let mut sum = a.clone();
    for (path, scale) in b {
        *sum.entry(path.clone()).or_insert(0) += times * scale;
    }
    sum.retain(|_, scale| *scale != 0);
    sum
}

/// The flat leaves of a layout of coordinates.
fn leaves(layout: &Steps) -> Vec<(i64, Value)> {
    layout.leaves().iter().map(|leaf| (leaf.extent, value(&leaf.stride))).collect()
}

/// The value at an index by definition, past the end too.
fn at(leaves: &[(i64, Value)], index: i64) -> Value {
    let (mut rest, mut total) = (index, Value::new());
    for (position, (extent, stride)) in leaves.iter().enumerate() {
        let digit = if position + 1 == leaves.len() { rest } else { rest % extent };
        total = sum(&total, stride, digit);
        rest /= extent;
    }
    total
}

/// All layouts of up to three leaves with these extents and strides, some of them nested.
fn layouts(extents: &[i64], strides: &[&str]) -> Vec<Steps> {
    let leaves: Vec<(i64, &str)> = extents.iter().flat_map(|s| strides.iter().map(move |d| (*s, *d))).collect();
    let mut all = Vec::new();
    for (i, (s, d)) in leaves.iter().enumerate() {
        all.push(format!("{s}:{d}"));
        for (j, (t, e)) in leaves.iter().enumerate() {
            all.push(format!("({s},{t}):({d},{e})"));
            let (u, f) = leaves[(i * 7 + j * 3 + 1) % leaves.len()];
            all.push(format!("({s},({t},{u})):({d},({e},{f}))"));
        }
    }
    all.iter().filter_map(|text| text.parse().ok()).collect()
}

const STRIDES: [&str; 10] = ["0", "1@0", "2@0", "4@0", "-1@0", "1@1", "2@1", "3@1", "6@1", "1@0+1@1"];

#[test]
fn values_are_sums_over_the_leaves() {
    let mut seen = 0;
    for layout in layouts(&[1, 2, 3], &STRIDES) {
        let plain = leaves(&layout);
        let (flat, coalesced, filtered) =
            (layout.flatten().unwrap(), layout.coalesce().unwrap(), layout.filter().unwrap());
        for index in -7..layout.size() + 5 {
            let expected = at(&plain, index);
            assert_eq!(value(&layout.eval(&index).unwrap()), expected, "{layout} at {index}");
            assert_eq!(value(&flat.eval(&index).unwrap()), expected);
            assert_eq!(value(&layout.coalesce_z().unwrap().eval(&index).unwrap()), expected);
            if (0..layout.size()).contains(&index) {
                assert_eq!(value(&coalesced.eval(&index).unwrap()), expected, "{layout}: {coalesced}");
            }
            seen += 1;
        }
        // A coalesced layout has no two neighbours that read as one.
        for pair in leaves(&coalesced).windows(2) {
            assert_ne!(sum(&Value::new(), &pair[0].1, pair[0].0), pair[1].1, "{coalesced}");
        }
        assert_eq!(filtered.size() * layout.nullspace().unwrap().size(), layout.size());
        assert!(filtered.equivalent(&filtered.coalesce().unwrap()));
        if layout.rank() == 2 {
            let row: Coord = Tree::flat([Slot::At(1), Slot::All]).unwrap();
            let (slice, offset) = layout.slice_and_offset(&row).unwrap();
            for column in 0..slice.size() {
                let there = layout.eval_at(&Tree::flat([1, column]).unwrap()).unwrap();
                assert_eq!(offset.plus(&slice.eval(&column).unwrap()), Some(there));
            }
            assert_eq!(layout.reverse().unwrap().reverse().unwrap(), layout);
        }
    }
    assert!(seen > 20_000, "{seen}");
}
/// The layouts whose complements and inverses are checked: one term in each stride.
fn parted() -> Vec<Steps> {
    layouts(&[1, 2, 3], &["0", "1@0", "2@0", "3@0", "4@0", "1@1", "2@1", "6@1", "-1@1"])
}

#[test]
fn complements_fill_the_box() {
    let target: Tree<i64> = "(8,6,3)".parse().unwrap();
    let (mut exist, mut refused) = (0, 0);
    for layout in parted().into_iter().filter(|layout| !layout.coprofile().unwrap().is_leaf()) {
        let parts = |mode: usize| -> Layout {
            let scaled = layout.tree().map(|leaf| {
                let stride = *value(&leaf.stride).get([mode].as_slice()).unwrap_or(&0);
                tilewright_layout::Leaf { extent: if stride == 0 { 1 } else { leaf.extent }, stride }
            });
            Layout::from_tree(scaled).unwrap()
        };
        // It exists exactly when that of each mode does, which the integers decide.
        let exists = parts(0).complement(&8).is_ok() && parts(1).complement(&6).is_ok();
        match layout.complement(&target) {
            Ok(rest) => {
                assert!(exists, "{layout}: {rest}");
                let whole = Layout::tuple([&layout.filter_zeros(), &rest]).unwrap();
                let mut values: Vec<Value> = (0..whole.size()).map(|i| value(&whole.eval(&i).unwrap())).collect();
                let size = values.len();
                values.sort();
                values.dedup();
                assert_eq!(values.len(), size, "{layout} and {rest} overlap");
                // As many different coordinates as the box around them: they fill it.
                let sides: Vec<i64> = (0..3)
                    .map(|mode| 1 + values.iter().map(|v| *v.get([mode].as_slice()).unwrap_or(&0)).max().unwrap())
                    .collect();
                assert_eq!(sides.iter().product::<i64>(), size as i64, "{layout} and {rest}");
                assert!(sides.iter().zip([8, 6, 3]).all(|(side, extent)| *side >= extent && *side < extent * 2 + 12));
                assert_eq!(rest.coprofile().map(|p| p.leaves() <= 3), Ok(true));
                exist += 1;
            }
            Err(error) => {
                assert!(!exists, "{layout}: {error}");
                refused += 1;
            }
        }
        if let Ok(rest) = layout.weak_complement(&target) {
            let whole = Layout::tuple([&layout.filter_zeros(), &rest]).unwrap();
            let values: Vec<Value> = (0..whole.size()).map(|i| value(&whole.eval(&i).unwrap())).collect();
            let mut distinct = values.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), values.len(), "{layout} and {rest} overlap");
        }
    }
    assert!(exist > 150 && refused > 300, "{exist} {refused}");
}

#[test]
fn inverses_obey_their_laws() {
    let (mut right, mut left, mut refused) = (0, 0, 0);
    for layout in parted() {
        let r = layout.right_inverse().unwrap();
        let codomain = layout.coprofile().unwrap();
        assert!(codomain.weakly_congruent(r.profile()), "{layout}: {r}");
        let extents = r.shape().product_like(&codomain).unwrap();
        for c in tilewright_layout::coordinates(&extents).unwrap() {
            let index = r.eval_at(&c).unwrap();
            assert!((0..layout.size()).contains(&index), "{layout}: {r}");
            assert_eq!(layout.eval(&index).unwrap(), Coordinate::of_tree(&c).unwrap(), "{layout}: {r} at {c}");
            right += 1;
        }
        // No larger one: along some mode the next coordinate would have to be in the image, and no
        // stride is negative or overlaps.
        let values: Vec<Value> = (0..layout.size()).map(|i| value(&layout.eval(&i).unwrap())).collect();
        for (mode, extent) in extents.leaves().iter().enumerate() {
            let path = if codomain.is_leaf() { vec![] } else { vec![mode] };
            let part: Vec<_> = layout
                .leaves()
                .iter()
                .filter(|leaf| leaf.extent > 1 && value(&leaf.stride).contains_key(&path))
                .collect();
            if part.len() < 2 && part.iter().all(|leaf| value(&leaf.stride)[&path] > 0) {
                assert!(!values.contains(&Value::from([(path, *extent)])), "{layout}: {r} could be larger");
            }
        }
        match layout.left_inverse() {
            Ok(l) => {
                for index in 0..layout.size() {
                    let place = layout.eval(&index).unwrap();
                    let back = l.eval_at(&place.in_profile(&codomain).unwrap()).unwrap();
                    assert_eq!(layout.eval(&back).unwrap(), place, "{layout}: {l} at {index}");
                    left += 1;
                }
            }
            Err(error) => {
                assert!(["E0114", "E0110"].contains(&error.code()), "{layout}: {error}");
                refused += 1;
            }
        }
        let mut distinct = values.clone();
        distinct.sort();
        distinct.dedup();
        let injective = distinct.len() == values.len();
        assert_eq!(layout.is_injective().unwrap(), injective, "{layout}");
        // All of the coshape are as many as it has, where none lies below zero.
        let inside = values.iter().all(|value| value.values().all(|scale| *scale >= 0));
        let onto = inside && distinct.len() as i64 == layout.cosize().unwrap();
        let any = AnyLayout::from(layout.clone());
        assert_eq!(any.is_surjective().unwrap(), onto, "{layout}");
        assert_eq!(any.is_bijective().unwrap(), onto && injective, "{layout}");
        assert_eq!(any.is_compact(), any.is_bijective());
    }
    println!("right {right}, left {left}, no left inverse {refused}");
    assert!(right > 2_500 && left > 5_000 && refused * 10 < left, "{right} {left} {refused}");
}

/// Steps in several modes at once tie these together, so that no mode alone says what is reached.
#[test]
fn what_is_reached_by_steps_in_several_modes() {
    let strides = ["0", "1@0", "-1@0", "2@1", "1@0+1@1", "2@0+3@1", "1@0-1@1", "1@1+1@2", "4@0+2@1+1@2"];
    let (mut injective, mut tied) = (0, 0);
    for layout in layouts(&[1, 2, 3], &strides) {
        let values: Vec<Value> = (0..layout.size()).map(|i| value(&layout.eval(&i).unwrap())).collect();
        let mut distinct = values.clone();
        distinct.sort();
        distinct.dedup();
        let once = distinct.len() == values.len();
        let inside = values.iter().all(|value| value.values().all(|scale| *scale >= 0));
        let all = inside && distinct.len() as i64 == layout.cosize().unwrap();
        let any = AnyLayout::from(layout.clone());
        assert_eq!(layout.is_injective(), Ok(once), "{layout}");
        assert_eq!(any.is_surjective(), Ok(all), "{layout}");
        assert_eq!(any.is_bijective(), Ok(all && once), "{layout}");
        if layout.leaves().iter().any(|leaf| leaf.extent > 1 && leaf.stride.terms().count() > 1) {
            tied += 1;
            injective += usize::from(once);
        }
    }
    assert!(tied > 500 && injective > 300 && tied - injective > 100, "{tied} {injective}");
}

#[test]
fn divisions_by_coordinates_reach_every_element_once() {
    let layout = integers("((2,4),6):((1,2),8)");
    let (mut divided, mut refused) = (0, 0);
    for tile in parted() {
        match layout.logical_divide(&Tiler::Layout(tile.clone())) {
            Ok(r) => {
                assert_eq!(r.rank(), 2);
                let first = r.mode(0).unwrap();
                assert!(tile.shape().weakly_congruent(&first.shape()));
                for index in 0..tile.size() {
                    let there = layout.eval_coordinate(&tile.eval(&index).unwrap()).unwrap();
                    assert_eq!(first.eval(&index).unwrap(), there, "{tile}: {r}");
                }
                let values: Vec<i64> =
                    (0..r.filter_zeros().size()).map(|i| r.filter_zeros().eval(&i).unwrap()).collect();
                assert!((0..48).all(|value| values.contains(&value)), "{tile}: {r}");
                divided += 1;
            }
            Err(error) => {
                let code = error.code();
                assert!(["E0107", "E0108", "E0111", "E0113", "E0125"].contains(&code), "{tile}: {error}");
                refused += 1;
            }
        }
    }
    assert!(divided > 100 && refused > 100, "{divided} {refused}");
}

#[test]
fn products_copy_blocks_without_overlap() {
    let tilers = ["2:1", "(2,2):(1,2)", "(2,3):(3,1)", "(2,2):(1,4)"];
    let (mut made, mut refused) = (0, 0);
    for block in parted() {
        for text in tilers {
            let tiler: Tiler = text.parse().unwrap();
            match block.logical_product(&tiler) {
                Ok(r) => {
                    assert_eq!(r.mode(0).unwrap(), block);
                    let moving = r.filter_zeros();
                    let mut values: Vec<Value> = (0..moving.size()).map(|i| value(&moving.eval(&i).unwrap())).collect();
                    let size = values.len();
                    values.sort();
                    values.dedup();
                    assert_eq!(values.len(), size, "{block} times {text}: {r}");
                    made += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(made > 500 && refused > 100, "{made} {refused}");
}

#[test]
fn sums_add_values_and_stay_in_one_codomain() {
    let all = layouts(&[2, 4], &["0", "1@0", "3@1", "-2@0"]);
    let mut added = 0;
    for a in &all {
        for b in all.iter().step_by(5).filter(|b| b.size() == a.size()) {
            if let Ok(r) = a.add(b) {
                for i in 0..a.size() {
                    assert_eq!(r.eval(&i).unwrap(), a.eval(&i).unwrap().plus(&b.eval(&i).unwrap()).unwrap());
                }
                added += 1;
            }
        }
    }
    assert!(added > 300, "{added}");
    assert_eq!(steps("4:1").add(&steps("4:1@0")).unwrap_err().code(), "E0125");
    assert_eq!(steps("(2,2):(1@0,2@0)").add(&steps("4:1@1@0")).unwrap_err().code(), "E0125");
    assert_eq!(Layout::tuple([&steps("4:1"), &steps("4:1@0")]).unwrap_err().code(), "E0125");
}

#[test]
fn paths_lead_to_modes() {
    let a = integers("(4,(2,4)):(1,(100,7))");
    let composed = |b: &str| a.compose(&steps(b)).map(|r| r.to_string());
    assert_eq!(composed("(2,4):(1@1@1,1@0)").unwrap(), "(2,4):(7,1)");
    assert_eq!(composed("8:1@1").unwrap(), "(2,4):(100,7)"); // the whole of mode 1, by its index
    assert_eq!(composed("(4,2):(1@0,0)").unwrap(), "(4,2):(1,0)");
    assert_eq!(composed("32:1").unwrap(), a.compose(&integers("32:1")).unwrap().to_string());
    assert_eq!(integers("8:3").compose(&steps("4:2@0")).unwrap().to_string(), "4:6"); // a number is its own mode 0
    for (b, path) in [("(4,2):(1@0,1@2)", vec![1]), ("2:1@0@1", vec![]), ("(2,2):(1@2@1,1@0@1)", vec![0])] {
        match (a.compose(&steps(b)), b) {
            // Mode 0 of mode 1 is there.
            (Ok(r), "2:1@0@1") => assert_eq!(r.to_string(), "2:100"),
            (Err(LayoutError::NoPath { path: found, .. }), _) => assert_eq!(found, path, "{b}"),
            (other, _) => panic!("{b}: {other:?}"),
        }
    }
    let outside = a.compose_within(&steps("(4,2):(1@0,4@1@1)")).unwrap_err();
    assert_eq!(
        outside.to_string(),
        "composition_within: B reaches offset 4, but the last index of mode [1,1] of A is 3"
    );
    // The mode of B that does not fit is named as it stands there.
    let uneven = integers("((4,2),3):((1,9),20)").compose(&steps("(2,(3,3)):(1@1,(0,3@0))")).unwrap_err();
    assert_eq!(uneven.code(), "E0108");
    assert_eq!(uneven.place().map(|(_, path)| path), Some(vec![1, 1]));
    let diagonal = integers("(4,8):(1,4)").compose(&steps("4:1@0+1@1")).unwrap();
    assert_eq!(diagonal.to_string(), "4:5");
}

#[test]
fn facts_of_the_dialect() {
    let text = |result: Result<Layout, LayoutError>| result.unwrap().to_string();
    let coordinates = |result: Result<Steps, LayoutError>| result.unwrap().to_string();
    let tiler = |text: &str| text.parse::<Tiler>().unwrap();
    let by_mode = |text: &str| text.parse::<Tiler<Coordinate>>().unwrap();
    assert_eq!(
        coordinates(steps("(2,5,3):(4@1,5@0,16@1)").complement_open()),
        "((5,1),(4,2,1)):((1@0,25@0),(1@1,8@1,48@1))"
    );
    assert_eq!(coordinates(steps("(4,4):(1@0,1@1)").complement_open()), "(1,1):(4@0,4@1)");
    assert_eq!(text(integers("(4,8):(1,4)").compose(&steps("(2,3):(1@0,1@1)"))), "(2,3):(1,4)");
    let corner = steps("((2,3),4):((1@1@0,1@0@0),1@1)");
    assert_eq!(corner.eval(&0).unwrap().in_profile(&corner.coprofile().unwrap()).unwrap().to_string(), "((0,0),0)");
    let block = steps("(4,3):(1@0,1@1)");
    assert_eq!(coordinates(block.flat_product(&tiler("(2,5):(1,2)"))), "(4,3,2,5):(1@0,1@1,3@1,6@1)");
    assert_eq!(coordinates(block.zipped_product(&tiler("(2,5):(1,2)"))), "((4,3),(2,5)):((1@0,1@1),(3@1,6@1))");
    assert_eq!(coordinates(block.blocked_product(&steps("(2,5):(1@0,1@1)"))), "((4,2),(3,5)):((1@0,4@0),(1@1,3@1))");
    assert_eq!(coordinates(block.raked_product(&steps("(2,5):(1@0,1@1)"))), "((2,4),(5,3)):((4@0,1@0),(3@1,1@1))");
    assert_eq!(coordinates(block.logical_product(&tiler("(2,5)"))), "((4,2),(3,5)):((1@0,4@0),(1@1,3@1))");
    assert_eq!(coordinates(block.logical_divide(&tiler("(2,3)"))), "((2,2),(3,1)):((1@0,2@0),(1@1,0))");
    assert_eq!(coordinates(block.zipped_divide(&tiler("(2,3)"))), "((2,3),(2,1)):((1@0,1@1),(2@0,0))");
    let matrix = steps("(128,64):(1@1,1@0)");
    assert_eq!(coordinates(matrix.logical_divide(&by_mode("2:64@0"))), "(2,(64,64)):(64@1,(1@1,1@0))");
    assert_eq!(coordinates(matrix.zipped_divide(&by_mode("2:64@0"))), "(2,(64,64)):(64@1,(1@1,1@0))");
    assert_eq!(coordinates(matrix.tiled_divide(&by_mode("2:64@0"))), "(2,64,64):(64@1,1@1,1@0)");
    for (layout, left) in [
        ("((2,2,2),(2,2,2)):((1@0,2@1,6@0),(1@1,2@0,4@1))", "((2,3,2),(2,2,2)):((1,16,4),(8,2,32))"),
        ("((4,2),4):((1@1,4@0),1@0)", "((4,2),4):((8,4),1)"),
        ("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((8,2),(2,4)):((4,64),(32,1))"),
        ("(4,5):(1@0,1@1)", "(4,5):(1,4)"),
        ("(4,5):(1@1,1@0)", "(5,4):(4,1)"),
        ("(4,5):(2@0,2@1)", "((2,4),(2,5)):((0,1),(0,4))"),
    ] {
        assert_eq!(text(steps(layout).left_inverse()), left, "{layout}");
    }
    for (layout, right) in [
        ("((4,2),4):((1@1,4@0),1@0)", "((4,2),4):((8,4),1)"),
        ("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((8,2),(2,4)):((4,64),(32,1))"),
        ("(2,3):(0,1@0)", "(3):(2)"),
        ("(4,5):(1@1,1@0)", "(5,4):(4,1)"),
        ("(4,4):(1@1,1@0)", "(4,4):(4,1)"),
        ("(4,5):(1@1,1@1@4)", "(1,4,1,1,(1,5)):(0,1,0,0,(0,4))"),
        ("(4,5):(2@0,2@1)", "(1,1):(0,0)"),
    ] {
        assert_eq!(text(steps(layout).right_inverse()), right, "{layout}");
    }
    assert_eq!(Profile::flat(2).unwrap(), steps("(2,3):(1@0,1@1)").coprofile().unwrap());
}

/// A diagonal: steps in several modes at once, of which some tell the index.
#[test]
fn diagonals_are_undone_where_some_modes_tell_the_index() {
    let mut undone = 0;
    for (s, t) in [(2, 3), (4, 2), (1, 4)] {
        for scales in 0..3_i64.pow(4) {
            let scale = |place: u32| scales / 3_i64.pow(place) % 3;
            let text = format!("({s},{t}):({}@0+{}@1,{}@0+{}@1)", scale(0), scale(1), scale(2), scale(3));
            let layout: Layout<Coordinate> = text.parse().unwrap();
            let value = |index: i64| {
                (0..2)
                    .map(|mode| {
                        [index % s, index / s]
                            .iter()
                            .zip([scale(mode), scale(mode + 2)])
                            .map(|(i, d)| i * d)
                            .sum::<i64>()
                    })
                    .collect::<Vec<_>>()
            };
            let Ok(left) = layout.left_inverse() else { continue };
            undone += 1;
            for index in 0..s * t {
                let coordinate = value(index);
                // A layout over fewer modes has no more to read.
                let coordinate: Tree<i64> = Tree::flat(coordinate.into_iter().take(left.rank())).unwrap();
                let back = if left.profile().is_leaf() { left.eval(&0) } else { left.eval_at(&coordinate) }.unwrap();
                assert_eq!(value(back), value(index), "{text}: {left}");
            }
        }
    }
    assert!(undone > 60, "{undone}");
}
