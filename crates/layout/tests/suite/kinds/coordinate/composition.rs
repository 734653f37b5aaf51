//! Composition with layouts of coordinates: it exists exactly where a layout has the values that
//! the definition gives.

use tilewright_layout::{Layout, LayoutError};

use super::{STRIDES, Steps, Value, at, integers, layouts, leaves, steps, sum, value};

/// Whether the values of a function of the coordinates of a box are those of a layout that refines
/// it: they add up over the modes, and along each mode they are a layout of integers, or of
/// several.
fn is_layout(extents: &[i64], f: &dyn Fn(&[i64]) -> Vec<i64>) -> bool {
    let zero = vec![0; extents.len()];
    let along = |mode: usize, index: i64| {
        let mut coordinate = zero.clone();
        coordinate[mode] = index;
        f(&coordinate)
    };
    let add = |a: &[i64], b: &[i64]| -> Vec<i64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    let additive = boxed(extents).iter().all(|coordinate| {
        let origin = f(&zero).iter().map(|_| 0).collect::<Vec<i64>>();
        let sum = coordinate.iter().enumerate().fold(origin, |sum, (mode, index)| add(&sum, &along(mode, *index)));
        f(coordinate) == sum
    });
    additive && (0..extents.len()).all(|mode| is_mode(&(0..extents[mode]).map(|i| along(mode, i)).collect::<Vec<_>>()))
}

/// Whether a list of values is that of a layout.
fn is_mode(values: &[Vec<i64>]) -> bool {
    let size = values.len();
    if size < 2 {
        return values.iter().all(|value| value.iter().all(|x| *x == 0));
    }
    let straight = |i: usize| values[1].iter().map(|x| x * i as i64).collect::<Vec<_>>();
    let run = (0..size).find(|i| values[*i] != straight(*i)).unwrap_or(size);
    if run == 0 || !size.is_multiple_of(run) {
        return false;
    }
    let splits = (0..size).all(|i| {
        let (low, high) = (&values[i % run], &values[run * (i / run)]);
        values[i] == low.iter().zip(high).map(|(a, b)| a + b).collect::<Vec<_>>()
    });
    splits && (run == size || is_mode(&values.iter().step_by(run).cloned().collect::<Vec<_>>()))
}

/// All coordinates of a box.
fn boxed(extents: &[i64]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![vec![]], |all, extent| {
        (0..*extent).flat_map(|i| all.iter().map(move |c| [c.clone(), vec![i]].concat())).collect()
    })
}

/// The value of integer leaves at an index, past the end and below zero.
fn plain(leaves: &[(i64, i64)], index: i64) -> i64 {
    let (mut rest, mut total) = (index, 0);
    for (position, (extent, stride)) in leaves.iter().enumerate() {
        total += stride * if position + 1 == leaves.len() { rest } else { rest % extent };
        rest /= extent;
    }
    total
}

/// A layout of integers with modes, each a list of leaves, at a coordinate of the codomain with
/// paths of one mode.
fn outer_value(modes: &[Vec<(i64, i64)>], place: &Value) -> Option<i64> {
    place.iter().try_fold(0, |total, (path, index)| match path.as_slice() {
        [mode] => Some(total + plain(modes.get(*mode)?, *index)),
        [mode, inner] => Some(total + plain(&modes.get(*mode)?[*inner..=*inner], *index)),
        _ => None,
    })
}

#[test]
fn composition_after_coordinates_exists_exactly_when_it_does() {
    let outers: [&[&[(i64, i64)]]; 9] = [
        &[&[(4, 1)], &[(8, 4)]],
        &[&[(4, 8)], &[(8, 1)]],
        &[&[(2, 3), (3, 1)], &[(4, 20)]],
        &[&[(2, 1), (2, 7)], &[(3, 2), (2, 50)]],
        &[&[(6, 1)], &[(2, 0), (2, 5), (2, 1)]],
        &[&[(2, 1), (2, 1), (2, 3)], &[(4, -3)]],
        &[&[(3, 1), (3, 10)], &[(3, 2), (3, 30)], &[(2, 100)]],
        &[&[(2, 5), (2, 8)], &[(2, 5), (2, 2)]],
        &[&[(1, 0)], &[(5, 3), (3, 1)]],
    ];
    let (mut exist, mut refused, mut several) = (0, 0, 0);
    let inners = layouts(&[1, 2, 3, 4], &STRIDES);
    for modes in outers {
        let texts: Vec<(String, String)> = modes
            .iter()
            .map(|mode| {
                let column = |pick: fn(&(i64, i64)) -> i64| {
                    let numbers: Vec<String> = mode.iter().map(|leaf| pick(leaf).to_string()).collect();
                    if let [one] = numbers.as_slice() { one.clone() } else { format!("({})", numbers.join(",")) }
                };
                (column(|leaf| leaf.0), column(|leaf| leaf.1))
            })
            .collect();
        let side =
            |pick: fn(&(String, String)) -> &String| texts.iter().map(pick).cloned().collect::<Vec<_>>().join(",");
        let a = integers(&format!("({}):({})", side(|t| &t.0), side(|t| &t.1)));
        let modes: Vec<Vec<(i64, i64)>> = modes.iter().map(|mode| mode.to_vec()).collect();
        for b in &inners {
            let plain = leaves(b);
            let extents: Vec<i64> = plain.iter().map(|(extent, _)| *extent).collect();
            let place = |coordinate: &[i64]| {
                coordinate
                    .iter()
                    .zip(&plain)
                    .fold(Value::new(), |total, (index, (_, stride))| sum(&total, stride, *index))
            };
            let function = |coordinate: &[i64]| vec![outer_value(&modes, &place(coordinate)).unwrap()];
            let exists = is_layout(&extents, &function);
            match a.compose(b) {
                Ok(r) => {
                    assert!(exists, "{a} o {b} = {r}");
                    assert!(b.shape().weakly_congruent(&r.shape()), "{a} o {b} = {r}");
                    for (index, coordinate) in boxed(&extents).iter().enumerate() {
                        assert_eq!(r.eval(&(index as i64)).unwrap(), function(coordinate)[0], "{a} o {b} = {r}");
                        let there = a.eval_coordinate(&b.eval(&(index as i64)).unwrap()).unwrap();
                        assert_eq!(there, function(coordinate)[0]);
                    }
                    let largest = |path: &[usize]| {
                        boxed(&extents).iter().map(|c| *place(c).get(path).unwrap_or(&0)).collect::<Vec<_>>()
                    };
                    let within = (0..modes.len()).all(|mode| {
                        let size: i64 = modes[mode].iter().map(|leaf| leaf.0).product();
                        largest(&[mode]).iter().all(|index| (0..size).contains(index))
                    });
                    assert_eq!(a.compose_within(b).is_ok(), within, "{a} within {b}");
                    exist += 1;
                }
                Err(LayoutError::Diagonal { .. }) => several += 1,
                Err(error) => {
                    assert!(!exists, "{a} o {b}: {error}");
                    assert!(["E0107", "E0108", "E0121"].contains(&error.code()), "{a} o {b}: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{exist} exist, {refused} do not, {several} of several terms are not decided");
    assert!(exist > 8_000 && refused > 1_500, "{exist} {refused}");
    assert_eq!(several, 0);
}

#[test]
fn composition_of_coordinates_after_integers_and_after_coordinates() {
    let outers = layouts(&[1, 2, 3], &["0", "1@0", "2@0", "1@1", "3@1"]);
    let inner: Vec<Layout> =
        ["4:1", "(2,3):(2,1)", "(3,2):(1,6)", "4:-1", "(2,2):(3,3)", "6:2"].map(integers).into_iter().collect();
    let paths: Vec<Steps> =
        ["(2,2):(1@0,1@1)", "(3,2):(1@1,2@0)", "2:1@0", "(2,2):(2@1,1@1)", "4:3@1"].map(steps).into_iter().collect();
    let (mut exist, mut refused) = (0, 0);
    for a in outers.iter().filter(|a| a.rank() == 2) {
        let plain = leaves(a);
        let number = |value: Value| {
            let at = |mode: usize| *value.get([mode].as_slice()).unwrap_or(&0);
            vec![at(0), at(1)]
        };
        for b in &inner {
            let extents: Vec<i64> = b.leaves().iter().map(|leaf| leaf.extent).collect();
            let function = |c: &[i64]| {
                let index: i64 = c.iter().zip(b.leaves()).map(|(c, leaf)| c * leaf.stride).sum();
                number(at(&plain, index))
            };
            let exists = is_layout(&extents, &function);
            assert_eq!(a.compose(b).is_ok(), exists, "{a} o {b}");
            if let Ok(r) = a.compose(b) {
                for (index, c) in boxed(&extents).iter().enumerate() {
                    assert_eq!(number(value(&r.eval(&(index as i64)).unwrap())), function(c), "{a} o {b} = {r}");
                }
                exist += 1;
            }
        }
        for b in &paths {
            let modes: Vec<Vec<(i64, Value)>> = a.modes().map(|mode| leaves(&mode)).collect();
            let extents: Vec<i64> = b.leaves().iter().map(|leaf| leaf.extent).collect();
            let function = |c: &[i64]| {
                let place =
                    c.iter().zip(leaves(b)).fold(Value::new(), |total, (c, (_, stride))| sum(&total, &stride, *c));
                let total = place
                    .iter()
                    .fold(Value::new(), |total, (path, index)| sum(&total, &at(&modes[path[0]], *index), 1));
                number(total)
            };
            assert_eq!(a.compose(b).is_ok(), is_layout(&extents, &function), "{a} o {b}");
            match a.compose(b) {
                Ok(r) => {
                    for (index, c) in boxed(&extents).iter().enumerate() {
                        assert_eq!(number(value(&r.eval(&(index as i64)).unwrap())), function(c), "{a} o {b} = {r}");
                    }
                    exist += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(exist > 1_000 && refused > 100, "{exist} {refused}");
}
