//! The law of recasting: the same memory, in elements of another width.
//!
//! Law: elements are divided into parts as wide as the greatest common divisor of both widths. Part
//! `j` of element `c` of `A` is at `r*A(c) + j`, and the index `j` is faster than that of any mode.
//! A wide element is a box of `n` parts, which have the same order everywhere: at every `c` of `R`
//! and every `j` of the box, the part at `f*c + j` is `n*R(c) + P(j)`, where `P` takes each of `0,
//! .., n-1` once and grows along each mode.

use tilewright_layout::Tree;

use super::{IndexResult, MOST, Verdict, test};
use crate::explain::map::Map;

/// Elements cut into parts: the extents, and the position of the mode of parts among them.
struct Parts<'a> {
    a: &'a Map,
    /// Extents of the parts; at `run`, that of the parts of one element.
    extents: Vec<i64>,
    run: usize,
    /// The number of parts of an element.
    count: i64,
}

impl Parts<'_> {
    /// The position of a part.
    fn at(&self, index: i64) -> Result<i64, String> {
        if self.count == 1 {
            return super::offset(self.a, index);
        }
        let below: i64 = self.extents.iter().take(self.run).product();
        let (low, rest) = (index % below, index / below);
        let (part, high) = (rest % self.count, rest / self.count);
        let element = super::offset(self.a, low + below * high)?;
        let start = element.checked_mul(self.count).and_then(|start| start.checked_add(part));
        start.ok_or_else(|| "a number does not fit in 64 bits".to_owned())
    }
}

/// The law of `R = recast_layout(new, old, A)`.
pub fn recast(new: i64, old: i64, a: &Map, result: &Map) -> Option<Verdict> {
    if new <= 0 || old <= 0 || a.has_coordinates() || result.has_coordinates() {
        return None;
    }
    let (mut unit, mut rest) = (new, old);
    while rest != 0 {
        (unit, rest) = (rest, unit % rest);
    }
    let (n, r) = (new / unit, old / unit);
    // The mode of parts may precede any mode of A, so each position is tried.
    let leaves = a.shape().leaves();
    let places = if r == 1 { 1 } else { leaves.len().max(1) };
    let mut first = None;
    for run in 0..places {
        let mut apart = leaves.to_vec();
        if r > 1 {
            apart.insert(run, r);
        }
        // The parts as a mode of their own, or joined with the next mode.
        let mut joined = leaves.to_vec();
        if let Some(extent) = joined.get_mut(run) {
            *extent = extent.saturating_mul(r);
        }
        for extents in [apart, joined] {
            let verdict = widened(&Parts { a, extents, run, count: r }, n, result);
            if verdict.failure.is_none() {
                return Some(verdict);
            }
            first.get_or_insert(verdict);
        }
    }
    first
}

/// The law of recasting to elements of `n` parts.
fn widened(parts: &Parts<'_>, n: i64, result: &Map) -> Verdict {
    let r = parts.count;
    let law = match (n, r) {
        (1, 1) => "R(c) = A(c)".to_owned(),
        (1, _) => format!("R({r}*c + j) = {r}*A(c) + j"),
        (_, 1) => format!("A(f*c + j) = {n}*R(c) + P(j), P onto [0,{n}) and increasing"),
        _ => format!("the parts {r}*A(c) + j are {n}*R(c) + P(j), P onto [0,{n}) and increasing"),
    };
    let total = parts.extents.iter().fold(1_i64, |total, extent| total.saturating_mul(*extent));
    let fails = |failure: String| Verdict { law: law.clone(), tested: 0, total, failure: Some(failure) };
    if n > MOST {
        return Verdict { law, tested: 0, total, failure: None };
    }
    let part = match boxes(parts, n) {
        Ok(part) => part,
        Err(failure) => return fails(failure),
    };
    let rest: Vec<i64> = parts.extents.iter().zip(&part).map(|(extent, part)| extent / part).collect();
    let count: i64 = rest.iter().product();
    if count != result.size() {
        return fails(format!("R has {} elements, and they make {count}", result.size()));
    }
    let order = match (0..n).map(|j| order(parts, n, &part, j)).collect::<Result<Vec<i64>, String>>() {
        Ok(order) => order,
        Err(failure) => return fails(failure),
    };
    let mut places = order.clone();
    places.sort_unstable();
    if !places.into_iter().eq(0..n) {
        return fails(format!("the parts of an element are not {n} side by side"));
    }
    let shape = Tree::flat(rest.iter().copied()).ok();
    let verdict = test("", total, |index| {
        let place = digits(index, &parts.extents);
        let c: Vec<i64> = place.iter().zip(&part).map(|(at, part)| at / part).collect();
        let j: Vec<i64> = place.iter().zip(&part).map(|(at, part)| at % part).collect();
        let (c, j) = (index_of(&c, &rest), index_of(&j, &part));
        let wide = super::offset(result, c)?;
        let expected = usize::try_from(j).ok().and_then(|j| order.get(j));
        let expected = expected.and_then(|place| wide.checked_mul(n)?.checked_add(*place));
        agrees(parts.at(index)?, expected, || match (&shape, n) {
            (Some(shape), 2..) => format!("at element {} of R, part {j}", coordinate(c, shape)),
            _ => format!("at element {c} of R"),
        })
    });
    Verdict { law, ..verdict }
}

fn agrees(found: i64, expected: Option<i64>, place: impl Fn() -> String) -> IndexResult {
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(format!("{}: the part is at {found}, and R says {expected}", place())),
        None => Err(format!("{}: a number does not fit in 64 bits", place())),
    }
}

fn coordinate(index: i64, shape: &Tree<i64>) -> String {
    let digits: Vec<String> = digits(index, shape.leaves()).iter().map(i64::to_string).collect();
    format!("({})", digits.join(","))
}

/// The extents of a wide element along each mode: up to the first step along the mode that reaches
/// part 0 of another element.
fn boxes(parts: &Parts<'_>, n: i64) -> Result<Vec<i64>, String> {
    let start = parts.at(0)?.rem_euclid(n);
    let (mut step, mut all) = (1, Vec::new());
    for extent in &parts.extents {
        let mut part = if n == 1 { 1 } else { *extent };
        for at in 1..(*extent).min(n + 1) {
            if n > 1 && parts.at(step * at)?.rem_euclid(n) == start {
                part = at;
                break;
            }
        }
        if extent % part != 0 {
            return Err(format!("{part} elements along a mode are within a wide one, of {extent}"));
        }
        all.push(part);
        step *= extent;
    }
    let together = all.iter().fold(1_i64, |product, part| product.saturating_mul(*part));
    if together == n { Ok(all) } else { Err(format!("a wide element is {n} parts, and {together} are together")) }
}

/// `P(j)`, as in the first wide element.
fn order(parts: &Parts<'_>, n: i64, part: &[i64], j: i64) -> Result<i64, String> {
    let place = |j: &[i64]| Ok::<i64, String>(parts.at(index_of(j, &parts.extents))?.rem_euclid(n));
    let digits = digits(j, part);
    let found = place(&digits)?;
    for (mode, extent) in part.iter().enumerate() {
        let mut next = digits.clone();
        let Some(digit) = next.get_mut(mode) else { continue };
        *digit += 1;
        if *digit < *extent && place(&next)? <= found {
            return Err(format!("the parts of an element are not in order along mode {mode}"));
        }
    }
    Ok(found)
}

fn digits(mut index: i64, extents: &[i64]) -> Vec<i64> {
    let digit = |extent: &i64| {
        let digit = index % extent;
        index /= extent;
        digit
    };
    extents.iter().map(digit).collect()
}

fn index_of(digits: &[i64], extents: &[i64]) -> i64 {
    digits.iter().zip(extents).rev().fold(0, |index, (digit, extent)| index * extent + digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::map;

    fn map(text: &str) -> Map {
        let value = tilewright_notation::evaluate(text, &mut tilewright_notation::Environment::new()).unwrap();
        map::of_operand(&value).unwrap()
    }

    /// The law must accept the result of the operation, for every kind of layout, and refuse
    /// others.
    #[test]
    fn the_law_can_fail() {
        let cases = [
            (16, 32, "(4,8):(8,1)", "(4,16):(16,1)", "(4,16):(16,2)"),
            (16, 32, "4:-1", "(2,4):(1,-2)", "(2,4):(-1,-2)"),
            (32, 16, "(8,4):(1,8)", "(4,4):(1,4)", "(4,4):(1,8)"),
            (8, 24, "4:1", "12:1", "11:1"),
            (24, 16, "(6,2):(1,9)", "(4,2):(1,6)", "(4,2):(1,5)"),
            (32, 16, "S<1,0,1> o 0 o (2,2):(1,4)", "(1,2):(0,2)", "(1,2):(0,1)"),
            (32, 16, "S<3,3,3> o 0 o (8,64):(64,1)", "S<3,2,3> o 0 o (8,32):(32,1)", "S<3,3,3> o 0 o (8,32):(32,1)"),
            (8, 16, "S<1,0,2> o 0 o (2,4):(4,1)", "S<1,1,2> o 0 o (2,8):(8,1)", "S<1,0,2> o 0 o (2,8):(8,1)"),
            (32, 16, "(2,2):(^1,^6)", "(1,2):(^0,^3)", "(1,2):(^0,^2)"),
            // What is wrong of any result: the halves change places in the second element.
            (32, 16, "(2,2):(^1,^2)", "(1,2):(^0,^1)", "(2,2):(^1,^2)"),
        ];
        for (new, old, a, right, wrong) in cases {
            let held = recast(new, old, &map(a), &map(right)).unwrap();
            assert!(held.failure.is_none() && held.tested == held.total, "{a} = {right}: {:?}", held.failure);
            assert!(recast(new, old, &map(a), &map(wrong)).unwrap().failure.is_some(), "{a} = {wrong} passes");
        }
        for swapped in ["S<1,0,1> o 0 o (2,2):(2,1)", "(2,2):(^3,^1)"] {
            assert!(recast(32, 16, &map(swapped), &map("(2,1):(1,0)")).unwrap().failure.is_some());
        }
    }
}
