//! The laws of the operations, tested at every index.
//!
//! Each law is the definition of its operation, evaluated with no use of the algebra: only offsets
//! are compared. So a law that holds here does not depend on the code that computed the result.

mod cover;
mod points;
pub mod tiling;
mod views;
mod width;

use std::collections::HashMap;

use tilewright_layout::Layout;
use tilewright_layout::{AnyLayout, Tiler};
use tilewright_notation::Value;

use crate::explain::map::{self, Map, Point};
use points::{Key, key};
use tiling::{
    Pairing, complement, complement_of_values, composed_product_of, divide, product, product_by_mode, product_of,
    product_of_composed,
};

/// The largest number of indices that are tested.
pub const MOST: i64 = 1 << 22;

/// The number of indices that are tested of a law that needs memory for each index, if not all can
/// be tested: such a part proves nothing about the rest.
const PART: i64 = 1 << 18;

/// The law of operations that give the same function in another form.
pub const SAME: &str = "R(i) = A(i)";

/// The result of testing a law.
pub struct Verdict {
    /// The law, as a formula.
    pub law: String,
    /// The number of indices at which it was tested.
    pub tested: i64,
    /// The number of all indices.
    pub total: i64,
    /// The first counterexample, in words; None if the law holds at all tested indices.
    pub failure: Option<String>,
}

/// The result at one index: passed, or the failure.
type IndexResult = Result<(), String>;

fn test(law: &'static str, total: i64, at: impl FnMut(i64) -> IndexResult) -> Verdict {
    test_first(total.min(MOST), law, total, at)
}

/// Tests a law at the first `bound` of `total` indices.
fn test_first(bound: i64, law: &'static str, total: i64, mut at: impl FnMut(i64) -> IndexResult) -> Verdict {
    for index in 0..bound {
        if let Err(failure) = at(index) {
            return Verdict { law: law.into(), tested: index + 1, total, failure: Some(failure) };
        }
    }
    Verdict { law: law.into(), tested: bound, total, failure: None }
}

/// The value at an index, or the reason why there is none.
fn at(map: &Map, index: i64) -> Result<Point, String> {
    map.value(index).map_err(|error| error.to_string())
}

/// The value of a map at the value of another map.
fn after(map: &Map, point: &Point) -> Result<Point, String> {
    map.value_at(&points::within(point, map.shape())).map_err(|error| error.to_string())
}

/// The offset at an index, where the values are offsets.
fn offset(map: &Map, index: i64) -> Result<i64, String> {
    map.at(index).map_err(|error| error.to_string())
}

/// The sum of two values, or their XOR.
fn plus(by_xor: bool, left: &Point, right: &Point) -> Result<Point, String> {
    let add = |a: i64, b: i64| if by_xor { Some(a ^ b) } else { a.checked_add(b) };
    let sum = match (left, right) {
        (Point::Offset(a), Point::Offset(b)) => add(*a, *b).map(Point::Offset),
        (Point::Coordinate(a), Point::Coordinate(b)) => a.tuple_add(b).ok().map(Point::Coordinate),
        _ => None,
    };
    sum.ok_or_else(|| "the sum does not fit in 64 bits".to_owned())
}

/// Checks that two values are equal at a coordinate.
fn agree(map: &Map, index: i64, left: (&str, Point), right: (&str, Point)) -> IndexResult {
    if left.1 == right.1 || key(&left.1) == key(&right.1) {
        return Ok(());
    }
    let coordinate = map.coordinate(index);
    Err(format!("at coordinate {coordinate} (index {index}): {} = {}, but {} = {}", left.0, left.1, right.0, right.1))
}

/// Tests the law of an operation. None if there is no law for the operation and these arguments.
pub fn of(operation: &str, arguments: &[Value], value: &Value) -> Option<Verdict> {
    if let Value::Bool(holds) = value {
        return Some(predicate(operation, arguments, *holds));
    }
    if let Some(verdict) = views::of(operation, arguments, value) {
        return Some(verdict);
    }
    let result = map::of(value)?;
    let first = arguments.first()?;
    let a = map::of_operand(first);
    let b = arguments.get(1).and_then(map::of_operand);
    match operation {
        "composition" | "composition_within" => composition(first, arguments.get(1)?, &result),
        "coalesce" | "coalesce_z" | "flatten" | "group" => Some(same(&a?, &result, SAME)),
        "filter" | "filter_zeros" => Some(same_offsets(&a?, &result)),
        "right_inverse" => Some(right_inverse(&a?, &result)),
        "left_inverse" => Some(left_inverse(&a?, &result)),
        "nullspace" => Some(nullspace(&a?, &result)),
        "complement" | "weak_complement" => {
            let (a, moving) = (a?, without_still_modes(first)?);
            let whole = operation == "complement" && !a.adds_by_xor();
            if let Value::Layout(AnyLayout::Composed(_)) = first {
                return Some(complement_of_values(&a, &result, whole));
            }
            (!a.has_coordinates()).then(|| {
                let verdict = complement(&moving, &result, whole);
                let law = if moving.size() < a.size() {
                    verdict.law + ", A without its modes of stride 0"
                } else {
                    verdict.law
                };
                Verdict { law, ..verdict }
            })
        }
        "layout_add" => Some(sum(&a?, &b?, &result)),
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => Some(divide(&a?, &result)),
        "blocked_product" | "raked_product" => {
            let (a, b) = (a?, b?);
            let pairing = Pairing::by_mode(&a, &b, operation == "raked_product");
            match first {
                Value::Layout(AnyLayout::Composed(block)) => composed_product_of(block, &b, &result, &pairing),
                _ => product_of(&a, &b, &result, &pairing),
            }
        }
        "logical_product" | "zipped_product" | "tiled_product" | "flat_product" => {
            let by = match tiler_of(arguments.get(1)?) {
                Some(Tiler::Layout(layout)) => Map::from(&layout),
                // A composed layout is also one arrangement.
                None => b?,
                Some(tiler) => {
                    return match (map::plain(first), value) {
                        (Some(a), Value::Layout(AnyLayout::Integer(result))) if operation == "logical_product" => {
                            product_by_mode(&a, &tiler, result)
                        }
                        _ => None,
                    };
                }
            };
            match first {
                Value::Layout(AnyLayout::Composed(block)) => product_of_composed(block, &by, &result),
                _ => product(&a?, &by, &result),
            }
        }
        "tile_to_shape" => cover::tile_to_shape(&a?, &arguments.get(1)?.integer_tree()?, &result),
        "local_tile" if arguments.len() == 3 => cover::local_tile(&a?, arguments.get(1)?, arguments.get(2)?, &result),
        "with_shape" => Some(reshaped(&a?, &result)),
        _ => None,
    }
}

/// The map without its modes of stride 0, which a complement leaves out.
fn without_still_modes(value: &Value) -> Option<Map> {
    match value {
        Value::Layout(layout) => map::of(&Value::Layout(layout.filter_zeros().ok()?)),
        other => map::of_operand(other),
    }
}

/// The verdict of a predicate: it holds, or a counterexample.
fn predicate(operation: &str, arguments: &[Value], holds: bool) -> Verdict {
    let law = format!("{operation} is true");
    if holds {
        return Verdict { law, tested: 1, total: 1, failure: None };
    }
    let operands: Vec<Map> = arguments.iter().filter_map(map::of_operand).collect();
    let seen = match (operation, operands.as_slice(), arguments) {
        ("equal" | "equivalent", [a, b], _) => same(a, b, "A(i) = B(i)").failure,
        ("is_injective" | "is_bijective" | "is_compact", _, [Value::Layout(AnyLayout::Integer(layout))]) => {
            let pair = layout.collision().ok().flatten();
            pair.map(|(first, second)| format!("indices {first} and {second} have the same offset"))
        }
        _ => None,
    };
    Verdict { law, tested: 1, total: 1, failure: Some(seen.unwrap_or_else(|| format!("{operation} is false"))) }
}

/// The tiler that an argument represents: a tuple tiles mode by mode.
fn tiler_of(value: &Value) -> Option<Tiler> {
    value.to_tiler()?.ok()
}

/// Whether two layouts are the same function of an index.
pub fn same(a: &Map, b: &Map, law: &'static str) -> Verdict {
    if a.size() != b.size() {
        let failure = Some(format!("the sizes differ: {} and {}", a.size(), b.size()));
        return Verdict { law: law.into(), tested: 0, total: a.size(), failure };
    }
    test(law, a.size(), |index| agree(a, index, ("the left", at(a, index)?), ("the right", at(b, index)?)))
}

/// `R(i) = A(i)` at every index of R.
fn reshaped(a: &Map, result: &Map) -> Verdict {
    test("R(i) = A(i), in the shape that is asked for", result.size(), |index| {
        agree(result, index, ("A(i)", at(a, index)?), ("R(i)", at(result, index)?))
    })
}

/// `R(c) = A(B(c))`. A shape or a tiler as B is composed mode by mode; a swizzle as A is evaluated
/// at any integer.
fn composition(a: &Value, b: &Value, result: &Map) -> Option<Verdict> {
    let tiler = match b {
        _ if map::of(b).is_some() => return composed(a, &map::of(b)?, result),
        _ => tiler_of(b)?,
    };
    let a = a.integer_layout()?;
    let mut pairs = Vec::new();
    pair_modes(a, &tiler, &mut pairs);
    let law = "R(c) = A(T(c)), each mode of A after its tile";
    let sizes = pairs.iter().map(|(_, tile)| tile.as_ref().map_or(1, Layout::size));
    let total = sizes.product::<i64>();
    if total != result.size() {
        let failure = Some(format!("the sizes of T and R differ: {total} and {}", result.size()));
        return Some(Verdict { law: law.into(), tested: 0, total, failure });
    }
    Some(test(law, total, |index| {
        let (mut rest, mut value) = (index, 0i64);
        for (mode, tile) in &pairs {
            let Some(tile) = tile else { continue };
            let place = tile.eval(&(rest % tile.size())).map_err(|error| error.to_string())?;
            let offset = mode.eval(&place).map_err(|error| error.to_string())?;
            value = value.checked_add(offset).ok_or("the sum does not fit in 64 bits")?;
            rest /= tile.size();
        }
        agree(result, index, ("A(T(c))", value.into()), ("R(c)", at(result, index)?))
    }))
}

fn composed(a: &Value, b: &Map, result: &Map) -> Option<Verdict> {
    let swizzle = if let Value::Swizzle(swizzle) = a { Some(*swizzle) } else { None };
    let map = map::of_operand(a);
    if swizzle.is_none() && map.is_none() {
        return None;
    }
    let law = "R(c) = A(B(c))";
    if b.size() != result.size() {
        let failure = Some(format!("the sizes of B and R differ: {} and {}", b.size(), result.size()));
        return Some(Verdict { law: law.into(), tested: 0, total: b.size(), failure });
    }
    Some(test(law, b.size(), |index| {
        let inner = at(b, index)?;
        let value = match (&swizzle, &map) {
            (Some(swizzle), _) => swizzle.apply(inner.offset().unwrap_or(0)).into(),
            (None, Some(map)) => after(map, &inner)?,
            (None, None) => inner,
        };
        agree(b, index, ("A(B(c))", value), ("R(c)", at(result, index)?))
    }))
}

/// The modes of A, each with its tile; a mode that is kept whole is its own tile. Modes of A
/// without a tile are dropped.
fn pair_modes(a: &Layout, tiler: &Tiler, pairs: &mut Vec<(Layout, Option<Layout>)>) {
    match tiler {
        Tiler::Layout(tile) => pairs.push((a.clone(), Some(tile.clone()))),
        Tiler::Keep => pairs.push((a.clone(), Layout::mode_of(a.size(), 1).ok())),
        Tiler::Modes(modes) => {
            for (mode, tile) in a.modes().zip(modes.items()) {
                pair_modes(&mode, tile, pairs);
            }
        }
    }
}

/// `R` has the same offsets as `A`.
fn same_offsets(a: &Map, result: &Map) -> Verdict {
    let law = "R takes the same offsets as A";
    let total = a.size().max(result.size());
    let taken = |map: &Map| -> Result<HashMap<Key, Point>, String> {
        (0..map.size().min(MOST)).map(|i| at(map, i).map(|point| (key(&point), point))).collect()
    };
    let (left, right) = match (taken(a), taken(result)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(error), _) | (_, Err(error)) => {
            return Verdict { law: law.into(), tested: 0, total, failure: Some(error) };
        }
    };
    let alone = |one: &HashMap<Key, Point>, other: &HashMap<Key, Point>| {
        one.iter().filter(|(key, _)| !other.contains_key(*key)).map(|(_, point)| point.clone()).collect::<Vec<_>>()
    };
    let odd = alone(&left, &right).into_iter().chain(alone(&right, &left));
    let odd = odd.min_by_key(|point| (point.offset(), point.to_string()));
    let failure = odd.map(|offset| format!("only one of them takes the offset {offset}"));
    let tested = if total > MOST { 0 } else { total };
    Verdict { law: law.into(), tested, total, failure: failure.filter(|_| tested > 0) }
}

fn right_inverse(a: &Map, result: &Map) -> Verdict {
    if a.has_coordinates() {
        return test("A(R(c)) = c", result.size(), |index| {
            let value = after(a, &at(result, index)?)?;
            // A mode of the codomain may be several modes of R: its coordinate is their index.
            let coordinate = match &value {
                Point::Coordinate(like) => points::counted(&result.coordinate(index), result.shape(), like),
                Point::Offset(_) => result.coordinate(index),
            };
            agree(result, index, ("A(R(c))", value), ("c", Point::Coordinate(coordinate)))
        });
    }
    test("A(R(i)) = i", result.size(), |index| {
        agree(result, index, ("A(R(i))", after(a, &at(result, index)?)?), ("i", index.into()))
    })
}

fn left_inverse(a: &Map, result: &Map) -> Verdict {
    test("A(R(A(i))) = A(i)", a.size(), |index| {
        let value = at(a, index)?;
        agree(a, index, ("A(R(A(i)))", after(a, &after(result, &value)?)?), ("A(i)", value))
    })
}

fn nullspace(a: &Map, result: &Map) -> Verdict {
    test("A(R(i)) = 0", result.size(), |index| {
        let zero = at(a, 0)?;
        agree(result, index, ("A(R(i))", after(a, &at(result, index)?)?), ("zero", zero))
    })
}

fn sum(a: &Map, b: &Map, result: &Map) -> Verdict {
    test("R(i) = A(i) + B(i)", a.size(), |index| {
        // Values that go through an outer map are integers.
        let both = plus(a.adds_by_xor() && b.adds_by_xor(), &at(a, index)?, &at(b, index)?)?;
        agree(a, index, ("A(i) + B(i)", both), ("R(i)", at(result, index)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        tilewright_notation::evaluate(text, &mut tilewright_notation::Environment::new()).unwrap()
    }

    fn verdict(operation: &str, arguments: &[&str], result: &str) -> Option<Verdict> {
        let arguments: Vec<Value> = arguments.iter().map(|text| value(text)).collect();
        of(operation, &arguments, &value(result))
    }

    /// Each law must accept the first result and refuse the second.
    fn distinguish(cases: &[(&str, &[&str], &str, &str)]) {
        for (operation, arguments, right, wrong) in cases {
            let held = verdict(operation, arguments, right).unwrap();
            assert!(held.failure.is_none() && held.tested > 0, "{operation} {arguments:?}: {:?}", held.failure);
            let failed = verdict(operation, arguments, wrong).unwrap();
            assert!(failed.failure.is_some(), "{operation} {arguments:?} = {wrong} passes");
        }
    }

    #[test]
    fn laws_can_fail() {
        let cases: [(&str, &[&str], &str, &str); 18] = [
            ("composition", &["(6,2):(8,2)", "(4,3):(3,1)"], "((2,2),3):((24,2),8)", "((2,2),3):((24,2),9)"),
            ("composition", &["(8,8):(8,1)", "(2,2)"], "(2,2):(8,1)", "(2,2):(1,8)"),
            ("composition", &["S<2,0,3>", "(8,8):(8,1)"], "S<2,0,3> o 0 o (8,8):(8,1)", "(8,8):(8,1)"),
            ("coalesce", &["(2,(4,2)):(1,(2,8))"], "16:1", "16:2"),
            ("filter", &["(4,2):(1,0)"], "4:1", "4:2"),
            ("right_inverse", &["(4,8):(8,1)"], "(8,4):(4,1)", "(4,8):(8,1)"),
            ("left_inverse", &["(4,8):(1,5)"], "(5,8):(1,4)", "(4,8):(1,4)"),
            ("nullspace", &["(2,4,6):(1,2,0)"], "6:8", "6:4"),
            ("layout_add", &["(4,3):(1,4)", "(4,3):(3,1)"], "(4,3):(4,5)", "(4,3):(4,6)"),
            ("complement", &["4:2", "24"], "(2,3):(1,8)", "(2,3):(1,9)"),
            ("complement", &["4:2", "24"], "(2,3):(1,8)", "3:8"),
            ("weak_complement", &["(4,6):(1,6)", "72"], "2:36", "2:3"),
            ("logical_divide", &["(4,6):(1,4)", "4:2"], "(4,(2,3)):(2,(1,8))", "(4,(2,3)):(2,(1,4))"),
            ("logical_divide", &["10", "4"], "(4,3):(1,4)", "(4,3):(2,8)"),
            (
                "blocked_product",
                &["(2,2):(2,1)", "(2,3)"],
                "((2,2),(2,3)):((2,4),(1,8))",
                "((2,2),(2,3)):((2,4),(1,6))",
            ),
            ("logical_product", &["(2,2):(4,1)", "6:1"], "((2,2),(2,3)):((4,1),(2,8))", "((2,2),(2,3)):((4,1),(1,8))"),
            (
                "logical_product",
                &["(2,2):(1,4)", "[2:1;3:1]"],
                "((2,2),(2,3)):((1,2),(4,1))",
                "((2,2),(2,3)):((1,1),(4,1))",
            ),
            ("is_injective", &["(4,2):(1,3)"], "true", "false"),
        ];
        distinguish(&cases);
    }

    /// Law: layouts that are proved to have the same offsets have them, counted one by one.
    #[test]
    fn the_same_offsets_as_often() {
        let leaves = [(1, 5), (2, 1), (2, 2), (2, 0), (3, 1), (2, -2), (4, 1), (3, 2)];
        let pairs = leaves.iter().flat_map(|a| leaves.iter().map(move |b| [*a, *b]));
        let layouts: Vec<Layout> = pairs
            .flat_map(|[(s, d), (t, e)]| [format!("({s},{t}):({d},{e})"), format!("({s},{t},2):({d},{e},4)")])
            .map(|text| text.parse().unwrap())
            .collect();
        let offsets = |layout: &Layout| {
            let mut all: Vec<i64> = (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect();
            all.sort_unstable();
            all
        };
        let (mut shown, mut other) = (0, 0);
        for a in &layouts {
            for b in &layouts {
                let same = offsets(a) == offsets(b);
                if tiling::same_offsets_as_often(a, b) {
                    assert!(same, "{a} and {b}");
                    shown += usize::from(a != b);
                } else {
                    other += usize::from(!same);
                }
            }
        }
        assert!(shown > 100 && other > 1000, "{shown} {other}");
    }

    /// Correct results that name fewer modes than the other side of the law, or repeat nothing.
    #[test]
    fn laws_accept_what_is_right_in_other_words() {
        let cases: [(&str, &[&str], &str, &str); 23] = [
            ("composition", &["(4,4):(1,4)", "(5):(1@0)"], "(5):(1)", "(5):(2)"),
            ("coalesce", &["1:-1@0"], "1:0", "2:0"),
            ("composition", &["4:2", "(2,2):(1@0,2@0)"], "(2,2):(2,4)", "(2,2):(2,2)"),
            ("layout_add", &["to_xor(4:1)", "(2,2):(1,1) o 0 o (2,2):(1,2)"], "(2,2):(2,3)", "(2,2):(0,3)"),
            ("layout_add", &["to_xor(4:1)", "to_xor(4:1)"], "4:0", "4:2"),
            ("right_inverse", &["(2,8):(8@1,1@1)"], "(1,(8,2)):(0,(2,1))", "(1,(8,2)):(0,(1,2))"),
            ("complement", &["16:0", "16"], "16:1", "16:2"),
            ("complement", &["(2,2):(1,1) o 0 o 4:1", "12"], "4:3", "4:2"),
            ("complement", &["(2,2):(1,1) o 0 o 4:1", "12"], "4:3", "3:4"),
            ("weak_complement", &["(2,3):(0,1) o 2 o (2,2):(1,4)", "12"], "(2,3):(1,4)", "3:2"),
            ("filter", &["(4,1):(1@0,1@1)"], "4:1@0", "4:2@0"),
            (
                "logical_product",
                &["S<2,0,-2> o 0 o 8:1", "2:1"],
                "S<2,0,-2> o 0 o (8,2):(1,8)",
                "S<2,0,-2> o 0 o (8,2):(1,4)",
            ),
            (
                "blocked_product",
                &["S<1,0,1> o 0 o (2,2):(1,2)", "(2,1):(1,2)"],
                "S<1,0,1> o 0 o ((2,2),(2,1)):((1,4),(2,0))",
                "S<1,0,1> o 0 o ((2,2),(2,1)):((1,2),(2,0))",
            ),
            // An outer map that sends two offsets to one; copies at one offset; arrangements
            // through an outer map.
            ("logical_product", &["4:0 o 0 o 2:1", "2:1"], "4:0 o 0 o (2,2):(1,2)", "4:1 o 0 o (2,2):(1,2)"),
            ("logical_product", &["(2,3):(1,0) o 0 o 2:2", "2:1"], "(2,2):(0,1)", "(2,2):(1,0)"),
            ("logical_product", &["2:1", "2:0"], "(2,2):(1,0)", "(2,2):(1,2)"),
            ("logical_product", &["2:1", "(2,2):(1,1)"], "(2,(2,2)):(1,(2,2))", "(2,(2,2)):(1,(2,4))"),
            ("logical_product", &["2:1", "2:1"], "(2,2):(1,2)", "(2,2):(1,-2)"),
            ("logical_product", &["2:1", "2:1"], "(2,2):(1,2)", "(2,2):(1,1)"),
            (
                "raked_product",
                &["(2,2):(1,2)", "(2,2):(0,1)"],
                "((2,2),(2,2)):((0,1),(4,2))",
                "((2,2),(2,2)):((1,0),(2,4))",
            ),
            (
                "logical_product",
                &["3:1", "S<1,0,1> o 0 o 4:1"],
                "(4,1):(1,3) o 0 o S<1,2,1> o 0 o (3,4):(1,4)",
                "(3,4):(1,3)",
            ),
            (
                "blocked_product",
                &["4:0 o 0 o (2,2):(1,2)", "S<1,0,1> o 0 o (2,2):(1,2)"],
                "4:0 o 0 o S<1,2,1> o 0 o ((2,2),(2,2)):((1,4),(2,8))",
                "4:1 o 0 o S<1,2,1> o 0 o ((2,2),(2,2)):((1,4),(2,8))",
            ),
            (
                "raked_product",
                &["S<1,0,1> o 0 o (2,2):(1,2)", "S<1,0,1> o 0 o (2,2):(1,2)"],
                "F2<4>[1,3,4,12] o 0 o ((2,2),(2,2)):((4,1),(8,2))",
                "F2<4>[1,3,4,12] o 0 o ((2,2),(2,2)):((1,4),(2,8))",
            ),
        ];
        distinguish(&cases);
    }

    #[test]
    fn the_first_failure_is_named() {
        let verdict = verdict("composition", &["(6,2):(1,7)", "(3,2):(2,3)"], "(3,2):(2,3)").unwrap();
        assert_eq!(verdict.failure.unwrap(), "at coordinate (2,1) (index 5): A(B(c)) = 8, but R(c) = 7");
        assert_eq!(verdict.tested, 6);
    }

    #[test]
    fn what_is_too_large_is_said_to_be() {
        let verdict = verdict("coalesce", &["(4096,4096):(1,4096)"], "16777216:1").unwrap();
        assert_eq!((verdict.tested, verdict.total), (MOST, 1 << 24));
    }
}
