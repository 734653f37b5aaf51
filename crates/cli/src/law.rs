//! The laws of the operations, tested at every index.
//!
//! Each law is the definition of its operation, evaluated with no use of the algebra: only offsets are compared. So a law
//! that holds here does not depend on the code that computed the result.

use std::collections::HashMap;

use tilewright::Value;

use crate::map::Map;

/// How many indices are tested at most.
pub const MOST: i64 = 1 << 22;

/// What came of testing a law.
pub struct Verdict {
    /// The law, as a formula.
    pub law: &'static str,
    /// At how many indices it was tested.
    pub tested: i64,
    /// How many indices there are.
    pub total: i64,
    /// The first place at which it fails, in words.
    pub failure: Option<String>,
}

/// What a test found at one index: nothing wrong, or what.
type Finding = Result<(), String>;

fn test(law: &'static str, total: i64, mut at: impl FnMut(i64) -> Finding) -> Verdict {
    let bound = total.min(MOST);
    for index in 0..bound {
        if let Err(failure) = at(index) {
            return Verdict { law, tested: index + 1, total, failure: Some(failure) };
        }
    }
    Verdict { law, tested: bound, total, failure: None }
}

/// The offset at an index, or why there is none.
fn at(map: &Map, index: i64) -> Result<i64, String> {
    map.at(index).map_err(|error| error.to_string())
}

/// That two numbers agree at a coordinate.
fn agree(map: &Map, index: i64, left: (&str, i64), right: (&str, i64)) -> Finding {
    if left.1 == right.1 {
        return Ok(());
    }
    let coordinate = map.coordinate(index);
    Err(format!("at coordinate {coordinate} (index {index}): {} = {}, but {} = {}", left.0, left.1, right.0, right.1))
}

/// The law of an operation, tested; `None` where no law is known for it and these arguments.
pub fn of(operation: &str, arguments: &[Value], value: &Value) -> Option<Verdict> {
    if let Value::Bool(holds) = value {
        let failure = if *holds { None } else { Some(format!("{operation} is false")) };
        return Some(Verdict { law: "the predicate is true", tested: 1, total: 1, failure });
    }
    let result = Map::of(value)?;
    let maps: Vec<Option<Map>> = arguments.iter().map(Map::of_operand).collect();
    let first = maps.first()?.as_ref();
    let second = maps.get(1).and_then(Option::as_ref);
    match operation {
        "composition" | "composition_within" => composition(&maps, &result),
        "coalesce" | "coalesce_z" | "flatten" | "group" => Some(same(first?, &result, "R(i) = A(i)")),
        "right_inverse" => Some(right_inverse(first?, &result)),
        "left_inverse" => Some(left_inverse(first?, &result)),
        "nullspace" => Some(nullspace(first?, &result)),
        "complement" => Some(complement(first?, &result, true)),
        "weak_complement" => Some(complement(first?, &result, false)),
        "layout_add" => Some(sum(first?, second?, &result)),
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => Some(divide(first?, &result)),
        "logical_product" | "zipped_product" | "tiled_product" | "flat_product" | "blocked_product"
        | "raked_product" => Some(product(first?, second?, &result)),
        _ => None,
    }
}

/// Whether two layouts are the same function of an index.
pub fn same(a: &Map, b: &Map, law: &'static str) -> Verdict {
    if a.size() != b.size() {
        let failure = Some(format!("the sizes differ: {} and {}", a.size(), b.size()));
        return Verdict { law, tested: 0, total: a.size(), failure };
    }
    test(law, a.size(), |index| agree(a, index, ("the left", at(a, index)?), ("the right", at(b, index)?)))
}

/// `R(c) = A(B(c))`, for a chain of any length.
fn composition(maps: &[Option<Map>], result: &Map) -> Option<Verdict> {
    let chain: Vec<&Map> = maps.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let (last, before) = chain.split_last()?;
    if before.is_empty() {
        return None;
    }
    let law = if before.len() == 1 { "R(c) = A(B(c))" } else { "R(c) = A(B(..(c)))" };
    if last.size() != result.size() {
        let failure = Some(format!("the sizes of B and R differ: {} and {}", last.size(), result.size()));
        return Some(Verdict { law, tested: 0, total: last.size(), failure });
    }
    Some(test(law, last.size(), |index| {
        let mut value = at(last, index)?;
        for map in before.iter().rev() {
            value = at(map, value)?;
        }
        agree(last, index, ("A(B(c))", value), ("R(c)", at(result, index)?))
    }))
}

fn right_inverse(a: &Map, result: &Map) -> Verdict {
    test("A(R(i)) = i", result.size(), |index| {
        agree(result, index, ("A(R(i))", at(a, at(result, index)?)?), ("i", index))
    })
}

fn left_inverse(a: &Map, result: &Map) -> Verdict {
    test("A(R(A(i))) = A(i)", a.size(), |index| {
        let offset = at(a, index)?;
        agree(a, index, ("A(R(A(i)))", at(a, at(result, offset)?)?), ("A(i)", offset))
    })
}

fn nullspace(a: &Map, result: &Map) -> Verdict {
    test("A(R(i)) = 0", result.size(), |index| {
        agree(result, index, ("A(R(i))", at(a, at(result, index)?)?), ("zero", 0))
    })
}

fn sum(a: &Map, b: &Map, result: &Map) -> Verdict {
    test("R(i) = A(i) + B(i)", a.size(), |index| {
        let both = at(a, index)?.checked_add(at(b, index)?).ok_or("the sum does not fit in 64 bits")?;
        agree(a, index, ("A(i) + B(i)", both), ("R(i)", at(result, index)?))
    })
}

/// The sums `A(i) + R(j)` do not collide and `R` increases; the strict complement also leaves no hole.
fn complement(a: &Map, result: &Map, whole: bool) -> Verdict {
    let law = if whole {
        "R increases, and (i,j) -> A(i) + R(j) hits each offset from 0 exactly once"
    } else {
        "R increases, and the offsets A(i) + R(j) differ"
    };
    let (inner, total) = (a.size(), a.size().saturating_mul(result.size()));
    let mut seen: HashMap<i64, i64> = HashMap::new();
    test(law, total, |index| {
        let (i, j) = (index % inner, index / inner);
        if i == 0 && j > 0 && at(result, j)? <= at(result, j - 1)? {
            return Err(format!("R({j}) = {} does not come after R({})", at(result, j)?, j - 1));
        }
        let offset = at(a, i)?.checked_add(at(result, j)?).ok_or("the sum does not fit in 64 bits")?;
        if let Some(before) = seen.insert(offset, index) {
            let (i0, j0) = (before % inner, before / inner);
            return Err(format!("offset {offset} is both A({i0}) + R({j0}) and A({i}) + R({j})"));
        }
        if whole && (offset < 0 || offset >= total) {
            return Err(format!("A({i}) + R({j}) = {offset} is outside [0, {total}), so some offset in it is missed"));
        }
        Ok(())
    })
}

/// No element is lost: `R` takes each offset of `A` at least as often as `A` does, and as often if the tile divides.
fn divide(a: &Map, result: &Map) -> Verdict {
    let exact = a.size() == result.size();
    let law = if exact {
        "R takes the offsets of A, each as often"
    } else {
        "R takes every offset of A (the tiles cover more)"
    };
    let mut counts: HashMap<i64, i64> = HashMap::new();
    for index in 0..result.size().min(MOST) {
        match result.at(index) {
            Ok(offset) => *counts.entry(offset).or_default() += 1,
            Err(error) => {
                return Verdict { law, tested: index, total: result.size(), failure: Some(error.to_string()) };
            }
        }
    }
    if result.size() > MOST {
        // A part of the offsets proves nothing about the whole.
        return Verdict { law, tested: 0, total: result.size(), failure: None };
    }
    test(law, a.size(), |index| {
        let offset = at(a, index)?;
        let left = counts.entry(offset).or_default();
        *left -= 1;
        if *left >= 0 {
            return Ok(());
        }
        Err(format!("at coordinate {} (index {index}): the offset {offset} of A is missing in R", a.coordinate(index)))
    })
}

/// `R` consists of copies of `A`, one for each index of `B`, that do not meet.
fn product(a: &Map, b: &Map, result: &Map) -> Verdict {
    let law = "R is size(B) copies of A, none meeting another";
    let total = a.size().saturating_mul(b.size());
    if result.size() != total {
        let failure = Some(format!("the size is {}, not {} times {}", result.size(), a.size(), b.size()));
        return Verdict { law, tested: 0, total, failure };
    }
    if total > MOST {
        return Verdict { law, tested: 0, total, failure: None };
    }
    let mut copies: HashMap<i64, i64> = HashMap::new();
    let mut offsets = Vec::new();
    for index in 0..total {
        match result.at(index) {
            Ok(offset) => offsets.push(offset),
            Err(error) => return Verdict { law, tested: index, total, failure: Some(error.to_string()) },
        }
    }
    for offset in &offsets {
        *copies.entry(*offset).or_default() += 1;
    }
    // How often A takes each of its offsets: a copy repeats exactly that.
    let mut pattern: HashMap<i64, i64> = HashMap::new();
    for index in 0..a.size() {
        match a.at(index) {
            Ok(offset) => *pattern.entry(offset).or_default() += 1,
            Err(error) => return Verdict { law, tested: index, total, failure: Some(error.to_string()) },
        }
    }
    // The least offset left is the least of some copy: take that copy away, until nothing is left.
    offsets.sort_unstable();
    let least = pattern.keys().copied().min().unwrap_or(0);
    let mut tested = 0;
    for offset in &offsets {
        if copies.get(offset).copied().unwrap_or(0) == 0 {
            continue;
        }
        for (step, times) in &pattern {
            let place = offset - least + step;
            let left = copies.entry(place).or_default();
            *left -= times;
            tested += times;
            if *left != 0 {
                let failure = Some(format!(
                    "the copy of A that starts at {} does not have offset {place} to itself",
                    offset - least
                ));
                return Verdict { law, tested, total, failure };
            }
        }
    }
    Verdict { law, tested, total, failure: None }
}
