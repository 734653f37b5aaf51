//! Tests that the algebra is generic: with pairs of integers as strides, each operation agrees with
//! the same operation on each component.
//!
//! `Vector` is a kind of stride that has only the laws of a semimodule. On all layouts of a bounded
//! set, every generic operation is compared at every index with the operation on the two integer
//! layouts of the components. Whether a composite or a sum exists is compared with the integer
//! layout in which the pair `(x, y)` is the number `x + K*y`, for a `K` greater than every `x`.

use std::collections::HashMap;
use std::fmt;

use self::oracle::{Flat, composite_exists};
use crate::algebra::compose::compose_integers;
use crate::algebra::sum::add_integers;
use crate::value::kind::StrideKind;
use crate::{Coord, Layout, LayoutError, Leaf, Profile, Slot, Stride, Tiler, Tree, Truth};

#[allow(dead_code)]
#[path = "../../tests/oracle/mod.rs"]
mod oracle;

/// A stride in the plane: a pair of integers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Vector(i64, i64);

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{};{}>", self.0, self.1)
    }
}

impl Stride for Vector {
    type Extent = i64;

    fn zero() -> Vector {
        Vector(0, 0)
    }

    fn is_zero(&self) -> Truth {
        Truth::from(*self == Vector(0, 0))
    }

    fn plus(&self, other: &Vector) -> Option<Vector> {
        Some(Vector(self.0.checked_add(other.0)?, self.1.checked_add(other.1)?))
    }

    fn times(&self, count: &i64) -> Option<Vector> {
        Some(Vector(self.0.checked_mul(*count)?, self.1.checked_mul(*count)?))
    }
}

impl StrideKind for Vector {
    fn compose_layouts(outer: &Layout<Vector>, inner: &Layout) -> Result<Layout<Vector>, LayoutError> {
        compose_integers(outer, inner)
    }

    fn add_layouts(a: &Layout<Vector>, b: &Layout<Vector>) -> Result<Layout<Vector>, LayoutError> {
        add_integers(a, b)
    }
}

/// Greater than every first component that occurs.
const K: i64 = 1_000_003;

fn code(v: Vector) -> i64 {
    v.0 + K * v.1
}

/// The layout with another kind of stride, leaf by leaf.
fn with<D: Stride<Extent = i64>>(l: &Layout<Vector>, part: impl Fn(Vector) -> D) -> Layout<D> {
    let tree = l.tree().map(|leaf| Leaf { extent: leaf.extent, stride: part(leaf.stride) });
    Layout::from_tree(tree).unwrap()
}

/// The layouts of the components.
fn parts(l: &Layout<Vector>) -> (Layout, Layout) {
    (with(l, |v| v.0), with(l, |v| v.1))
}

fn coded(l: &Layout<Vector>) -> Flat {
    l.leaves().iter().map(|leaf| (leaf.extent, code(leaf.stride))).collect()
}

fn values(l: &Layout<Vector>) -> Vec<Vector> {
    (0..l.size()).map(|i| l.eval(&i).unwrap()).collect()
}

fn flat(leaves: &[(i64, Vector)]) -> Layout<Vector> {
    let leaves = leaves.iter().map(|(extent, stride)| Leaf { extent: *extent, stride: *stride });
    Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap()
}

/// All layouts of rank 1 and 2, and some of rank 3, over these leaves.
fn layouts() -> Vec<Layout<Vector>> {
    let steps = [Vector(0, 0), Vector(1, 0), Vector(0, 1), Vector(2, 0), Vector(2, 2), Vector(3, -1), Vector(6, -2)];
    let leaves: Vec<(i64, Vector)> = (1..=4).flat_map(|extent| steps.map(|step| (extent, step))).collect();
    let mut all: Vec<Layout<Vector>> = leaves.iter().map(|leaf| flat(&[*leaf])).collect();
    for (position, first) in leaves.iter().enumerate() {
        for second in &leaves {
            all.push(flat(&[*first, *second]));
            let third = leaves[(position * 5 + 3) % leaves.len()];
            let inner = flat(&[*second, third]);
            all.push(Layout::tuple([&Layout::mode_of(first.0, first.1).unwrap(), &inner]).unwrap());
        }
    }
    all
}

/// Integer layouts of indices, with strides of both signs.
fn indices() -> Vec<Layout> {
    let leaves: Vec<(i64, i64)> =
        (1..=4).flat_map(|extent| [0, 1, 2, 3, 4, 6, -1, -2].map(|step| (extent, step))).collect();
    let singles = leaves.iter().map(|(s, d)| format!("({s}):({d})"));
    let pairs = leaves.iter().flat_map(|(s, d)| leaves.iter().map(move |(t, e)| format!("({s},{t}):({d},{e})")));
    singles.chain(pairs.step_by(3)).map(|text| text.parse().unwrap()).collect()
}

#[test]
fn values_are_those_of_the_components() {
    for l in layouts() {
        let (x, y) = parts(&l);
        for i in -9..l.size() + 9 {
            assert_eq!(l.eval(&i).unwrap(), Vector(x.eval(&i).unwrap(), y.eval(&i).unwrap()), "{l} at {i}");
        }
        let last = l.shape().map(|extent| extent - 1);
        assert_eq!(l.eval_at(&last).unwrap(), l.eval(&(l.size() - 1)).unwrap());
    }
}

#[test]
fn coalesced_forms_are_equal_exactly_when_the_functions_are() {
    let mut by_values: HashMap<Vec<Vector>, Layout<Vector>> = HashMap::new();
    let (mut shared, mut shorter) = (0, 0);
    for l in layouts() {
        let c = l.coalesce().unwrap();
        assert_eq!(values(&c), values(&l), "{l}: {c}");
        assert!(c.depth() <= 1 && c.leaves().len() <= l.leaves().len().max(1));
        let z = l.coalesce_z().unwrap();
        for i in -30..l.size() + 30 {
            assert_eq!(z.eval(&i).unwrap(), l.eval(&i).unwrap(), "{l}: {z} at {i}");
        }
        shorter += usize::from(c.leaves().len() < l.leaves().len());
        if let Some(other) = by_values.insert(values(&l), l.clone()) {
            assert_eq!(other.coalesce().unwrap(), c, "{l} and {other}");
            assert!(other.equivalent(&l));
            shared += 1;
        }
    }
    let distinct: Vec<_> = by_values.into_values().collect();
    for pair in distinct.windows(2) {
        assert!(!pair[0].equivalent(&pair[1]), "{} and {}", pair[0], pair[1]);
    }
    assert!(shared > 300 && shorter > 300, "{shared} {shorter}");
}

#[test]
fn composition_exists_exactly_when_it_does_on_pairs() {
    let inner = indices();
    let (mut exist, mut refused) = (0, 0);
    for (position, a) in layouts().iter().enumerate() {
        let (x, y) = parts(a);
        let whole = coded(a);
        for b in inner.iter().skip(position % 5).step_by(5) {
            let plain: Flat = b.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect();
            let exists = composite_exists(&whole, &plain);
            match a.compose(b) {
                Ok(r) => {
                    assert!(exists, "{a} o {b} = {r}");
                    assert_eq!(r.size(), b.size());
                    for i in 0..b.size() {
                        assert_eq!(
                            r.eval(&i).unwrap(),
                            a.eval(&b.eval(&i).unwrap()).unwrap(),
                            "{a} o {b} = {r} at {i}"
                        );
                    }
                    // The components of the composite are the composites of the components.
                    let (rx, ry) = parts(&r);
                    assert!(
                        rx.equivalent(&x.compose(b).unwrap()) && ry.equivalent(&y.compose(b).unwrap()),
                        "{a} o {b}"
                    );
                    exist += 1;
                }
                Err(error) => {
                    assert!(!exists, "{a} o {b}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(exist > 20_000 && refused > 5_000);
}

#[test]
fn modes_move_as_they_do_in_the_components() {
    for l in layouts() {
        let (x, y) = parts(&l);
        let both = |vector: &Layout<Vector>, x: &Layout, y: &Layout| {
            assert_eq!(parts(vector), (x.clone(), y.clone()), "{l}");
        };
        both(&l.flatten().unwrap(), &x.flatten().unwrap(), &y.flatten().unwrap());
        both(&l.reverse().unwrap(), &x.reverse().unwrap(), &y.reverse().unwrap());
        let rank = l.rank();
        both(&l.group(0..rank).unwrap(), &x.group(0..rank).unwrap(), &y.group(0..rank).unwrap());
        both(
            &l.select(&[rank - 1, 0]).unwrap(),
            &x.select(&[rank - 1, 0]).unwrap(),
            &y.select(&[rank - 1, 0]).unwrap(),
        );
        assert_eq!(values(&l.flatten().unwrap()), values(&l));
        assert_eq!(values(&l.group(0..rank).unwrap()), values(&l));
        for (mode, single) in l.modes().enumerate() {
            both(&single, &x.mode(mode).unwrap(), &y.mode(mode).unwrap());
        }
        let null = l.nullspace().unwrap();
        assert!((0..null.size()).all(|i| l.eval(&null.eval(&i).unwrap()).unwrap() == Vector(0, 0)));
        assert_eq!(null.size() * l.filter().unwrap().size(), l.size());
    }
}

#[test]
fn slices_and_offsets_add_up() {
    let mut cut = 0;
    for l in layouts().iter().filter(|l| l.rank() == 2) {
        for row in 0..l.mode(0).unwrap().size() {
            let coord: Coord = Tree::flat([Slot::At(row), Slot::All]).unwrap();
            let (slice, offset) = l.slice_and_offset(&coord).unwrap();
            assert_eq!(slice, l.slice(&coord).unwrap());
            assert_eq!(slice.size(), l.mode(1).unwrap().size());
            for column in 0..slice.size() {
                let at = l.eval_at(&Tree::flat([row, column]).unwrap()).unwrap();
                assert_eq!(offset.plus(&slice.eval(&column).unwrap()), Some(at), "{l}: ({row},{column})");
                cut += 1;
            }
        }
    }
    assert!(cut > 5_000);
}

#[test]
fn sums_exist_exactly_when_they_do_on_pairs() {
    let all = layouts();
    let (mut exist, mut refused) = (0, 0);
    for (position, a) in all.iter().enumerate() {
        for b in all.iter().skip(position % 11).step_by(11).filter(|b| b.size() == a.size()) {
            let apart = with(a, code).add(&with(b, code));
            match a.add(b) {
                Ok(sum) => {
                    for i in 0..a.size() {
                        let expected = a.eval(&i).unwrap().plus(&b.eval(&i).unwrap()).unwrap();
                        assert_eq!(sum.eval(&i).unwrap(), expected, "{a} + {b} = {sum} at {i}");
                    }
                    assert!(apart.is_ok(), "{a} + {b}");
                    exist += 1;
                }
                Err(error) => {
                    assert_eq!(apart.unwrap_err().code(), error.code(), "{a} + {b}");
                    refused += 1;
                }
            }
        }
    }
    assert!(exist > 3_000 && refused > 500, "{exist} {refused}");
}

#[test]
fn divisions_reach_the_elements_of_the_components() {
    let (mut divided, mut refused) = (0, 0);
    for l in layouts() {
        let (x, y) = parts(&l);
        for tile in ["2:1", "2:2", "3:1", "(2,2):(1,4)", "4:3"] {
            let tiler: Tiler = tile.parse().unwrap();
            match l.logical_divide(&tiler) {
                Ok(r) => {
                    let (rx, ry) = (x.logical_divide(&tiler).unwrap(), y.logical_divide(&tiler).unwrap());
                    for i in 0..r.size() {
                        let expected = Vector(rx.eval(&i).unwrap(), ry.eval(&i).unwrap());
                        assert_eq!(r.eval(&i).unwrap(), expected, "{l} by {tile} at {i}");
                    }
                    divided += 1;
                }
                Err(error) => {
                    assert_eq!(
                        with(&l, code).logical_divide(&tiler).unwrap_err().code(),
                        error.code(),
                        "{l} by {tile}"
                    );
                    refused += 1;
                }
            }
        }
    }
    assert!(divided > 1_000 && refused > 500, "{divided} {refused}");
}

#[test]
fn steps_print_as_they_say() {
    let l = flat(&[(4, Vector(1, 0)), (3, Vector(-2, 5))]);
    assert_eq!(l.to_string(), "(4,3):(<1;0>,<-2;5>)");
    assert_eq!(l.group(1..2).unwrap().to_string(), "(4,(3)):(<1;0>,(<-2;5>))");
    let wide = flat(&[(2, Vector(i64::MIN, i64::MAX)); 20]);
    assert_eq!(wide.to_string().matches("<-9223372036854775808;9223372036854775807>").count(), 20);
    assert_eq!(Layout::<Vector>::unit().to_string(), "1:<0;0>");
    assert_eq!(l.eval(&11).unwrap().to_string(), "<-1;10>");
    assert_eq!(flat(&[(2, Vector(i64::MAX, 0)), (3, Vector(1, 0))]).eval(&3).unwrap_err().code(), "E0103");
    assert_eq!(l.coalesce_by(&Profile::flat(2).unwrap()).unwrap(), l);
}
