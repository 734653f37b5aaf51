//! Numbers whose digits are coordinates; the divisors of the digits may be known only at launch.
//!
//! Law: a number `n` takes each value from 0 up to `units` once. It is the index of an iteration or
//! of a block. Or blocks `b` of `B` take the values `b, b + B, b + 2B, ..`, each in `ceil((units -
//! b) / B)` iterations. Or several stores share the values: store `s` of `m` takes those of blocks
//! `b + s * B` of `m * B`. Let each of `1 = d_0, d_1, .., d_k` divide the next, and `d_k` divide
//! `units`. Then the digits `floor(n / d_i) mod (d_(i+1) / d_i)`, and `floor(n / d_k)` as the last
//! one, take each combination once. With them
//!
//! ```text
//! sum of a_i * floor(n / d_i) = sum of b_i * digit_i
//! b_0 = a_0,  b_(i+1) = b_i * d_(i+1) / d_i + a_(i+1)
//! ```
//!
//! So coordinates that are sums of quotients and remainders of `n` are sums of digits, and each
//! digit is a variable.

use std::cell::RefCell;

use tilewright_layout::symbolic::{Expr, Facts, Node, Parameter, Rounding, Symbolic};
use tilewright_layout::{Extent, Stride};

mod cases;

use super::super::address::Terms;
use super::super::bounds::affine;
use super::super::core::Core;
use super::super::lower::with;
use crate::program::operation::Axis;

/// Coordinates as sums of digits of one number.
pub(super) struct Digits {
    /// The cases: ranges of the number in each of which the coordinates are such sums; usually a
    /// single range.
    pub(super) cases: Vec<Case>,
    /// The axis of the blocks, and the iteration, that the number determines.
    pub(super) axis: Option<Axis>,
    iterations: Vec<Parameter>,
}

/// A range of the number, counted from 0.
pub(super) struct Case {
    /// The coordinates of each store along each mode.
    pub(super) starts: Vec<Vec<Expr>>,
    /// The digits, each with its number of values, except those that are always 0.
    pub(super) list: Vec<(Parameter, Expr)>,
}

/// The coordinates of a store along each mode, and the iterations of the loops around it.
pub(super) type Start = (Vec<Expr>, Vec<(Parameter, Expr)>);

impl Case {
    /// The number of values of a digit.
    pub(super) fn count(&self, digit: &Parameter) -> Option<&Expr> {
        self.list.iter().find(|(own, _)| own.stands_for(digit)).map(|(_, count)| count)
    }
}

impl Digits {
    /// Whether the number differs in each iteration of a loop.
    pub(super) fn tells(&self, iteration: &Parameter) -> bool {
        self.iterations.iter().any(|own| own.stands_for(iteration))
    }

    /// The number of stores that share the values.
    pub(super) fn shares(&self) -> usize {
        self.iterations.len().max(1)
    }

    /// The share of a store with these loops.
    pub(super) fn share(&self, iterations: &[(Parameter, Expr)]) -> usize {
        share(&self.iterations, iterations).unwrap_or(0)
    }

    /// The digits of a number such that the coordinates are sums of them. None if the coordinates
    /// are already sums of variables, or if no such number is found.
    pub(super) fn of(core: &Core, starts: &[Start]) -> Option<Digits> {
        let is_plain = |start: &Expr| {
            Terms::of(start).is_some() && !start.parameters().iter().any(|own| limited(core, own).is_some())
        };
        let plain = starts.iter().flat_map(|start| &start.0).all(is_plain);
        let iterations = || starts.iter().flat_map(|start| &start.1);
        if plain && iterations().all(|(_, count)| core.is_launched(count)) {
            return None;
        }
        // All stores are in one loop, or each is in one of several loops.
        let mut each: Vec<(Parameter, Expr)> = Vec::new();
        for (iteration, count) in iterations() {
            if each.iter().all(|(own, _)| !own.stands_for(iteration)) {
                each.push((iteration.clone(), count.clone()));
            }
        }
        let among = |iteration: &Parameter, start: &Start| start.1.iter().any(|(own, _)| own.stands_for(iteration));
        let (common, own): (Vec<_>, Vec<_>) =
            each.into_iter().partition(|(iteration, _)| starts.iter().all(|start| among(iteration, start)));
        let alone = |start: &Start| own.iter().filter(|(iteration, _)| among(iteration, start)).count() == 1;
        let shares = Some(own.as_slice()).filter(|own| !own.is_empty() && starts.iter().all(alone));
        numbers(core, &common, shares).into_iter().find_map(|number| number.digits(core, starts))
    }
}

/// The index of the loop, among some, that encloses a store.
fn share(of: &[Parameter], iterations: &[(Parameter, Expr)]) -> Option<usize> {
    of.iter().position(|own| iterations.iter().any(|(iteration, _)| own.stands_for(iteration)))
}

/// Whether an expression depends on a parameter, directly or through its variables.
fn depends(core: &Core, expr: &Expr, on: &Parameter) -> bool {
    let made = |own: &Parameter| {
        let index = digit(core, own).map(|(number, ..)| number).or_else(|| Some(limited(core, own)?.0));
        index.is_some_and(|index| depends(core, index, on))
    };
    expr.parameters().iter().any(|own| own.stands_for(on) || made(own))
}

/// If a variable is an index that is clamped to a range from 0 to a maximum: the index and the
/// maximum.
fn limited<'c>(core: &'c Core, parameter: &Parameter) -> Option<(&'c Expr, i64)> {
    let found = core.limited.iter().find(|(own, ..)| own.stands_for(parameter));
    found.map(|(_, index, greatest)| (index, *greatest))
}

/// If a variable is a digit: the number, the divisor and the modulus; modulus 0 if the digit is the
/// rest.
fn digit<'c>(core: &'c Core, parameter: &Parameter) -> Option<(&'c Expr, i64, i64)> {
    let own = Expr::from(parameter.clone());
    let found = core.digits.iter().find(|(_, digit)| **digit == own);
    found.map(|((number, divisor, modulus), _)| (number, *divisor, *modulus)).filter(|(.., modulus)| *modulus >= 0)
}

fn natural() -> Option<Facts> {
    Facts::integer().at_least(0).ok()
}

/// How a number is replaced by its parts.
struct InParts {
    number: Expr,
    /// The number is a part below this modulus, plus a multiple of it.
    modulus: i64,
    /// The clamped indices that were found, with their maxima.
    limits: RefCell<Vec<(Expr, i64)>>,
}

/// A number that takes each of its values once.
struct DigitSource {
    own: Parameter,
    units: Expr,
    axis: Option<Axis>,
    /// The loops of the stores that share the values.
    iterations: Vec<Parameter>,
    /// The index of the block, if it follows from the number and the iteration, and its value in
    /// each share.
    block: Option<(Parameter, Vec<Expr>)>,
}

/// The candidates: numbers of grid-stride loops, iterations and blocks, for loops around all stores
/// and for loops that share the values.
fn numbers(core: &Core, common: &[(Parameter, Expr)], shares: Option<&[(Parameter, Expr)]>) -> Vec<DigitSource> {
    let block = |axis: Axis| core.blocks[axis as usize].map(|at| core.variables[at].parameter.clone());
    let mut found = Vec::new();
    for iterations in common.chunks(1).chain(shares) {
        for axis in Axis::ALL {
            let (Some(block), Some(grid)) = (block(axis), &core.grid[axis as usize]) else { continue };
            found.extend(grid.known().and_then(|blocks| taken(core, iterations, axis, (block, blocks))));
        }
        let [(iteration, count)] = iterations else { continue };
        // If all blocks have equally many iterations, these are a number of their own.
        let even = |number: &DigitSource| {
            let grid = core.grid[number.axis? as usize].as_ref()?;
            let even = number.iterations[0].stands_for(iteration) && grid.divides(&number.units).proved();
            even.then(|| number.units.floor_div(grid))?
        };
        let count = if core.is_launched(count) { Some(count.clone()) } else { found.iter().find_map(even) };
        if let Some(units) = count {
            found.push(DigitSource {
                own: iteration.clone(),
                units,
                axis: None,
                iterations: vec![iteration.clone()],
                block: None,
            });
        }
    }
    for axis in Axis::ALL {
        let (Some(own), Some(units)) = (block(axis), core.grid[axis as usize].clone()) else { continue };
        found.push(DigitSource { own, units, axis: Some(axis), iterations: Vec::new(), block: None });
    }
    found
}

/// The number that blocks along an axis take in the iterations of loops that share it.
fn taken(
    core: &Core,
    iterations: &[(Parameter, Expr)],
    axis: Axis,
    (block, blocks): (Parameter, i64),
) -> Option<DigitSource> {
    let by = blocks.checked_mul(iterations.len() as i64)?;
    let units = units(&iterations[0].1, &block, by).filter(|units| core.is_launched(units))?;
    let own = Parameter::anonymous(natural()?);
    let mut backs = Vec::new();
    for (share, (iteration, count)) in iterations.iter().enumerate() {
        let before = Expr::from(share as i64 * blocks);
        let left = units.minus(&before)?.minus(&Expr::from(block.clone()))?;
        if share > 0 && left.divide_up(&Expr::from(by))? != *count {
            return None;
        }
        let number = Expr::from(own.clone()).minus(&before)?;
        // An iteration that is always 0 is not part of the number.
        backs.push(match iteration.facts().greatest() {
            Some(0) => number,
            _ => number.minus(&Stride::times(&Expr::from(iteration.clone()), &Expr::from(by))?)?,
        });
    }
    let iterations = iterations.iter().map(|(iteration, _)| iteration.clone()).collect();
    Some(DigitSource { own, units, axis: Some(axis), iterations, block: Some((block, backs)) })
}

/// The `units` if a block has `count = ceil((units - block) / blocks)` iterations.
///
/// If the units are a quotient, the count is a single quotient: `ceil((p - c * block) / (c *
/// blocks))` for `ceil(p / c)` units.
fn units(count: &Expr, block: &Parameter, blocks: i64) -> Option<Expr> {
    let (own, by) = (Expr::from(block.clone()), Expr::from(blocks));
    let has = |expr: &Expr| expr.parameters().iter().any(|parameter| parameter.stands_for(block));
    if !has(count) {
        return Stride::times(count, &by);
    }
    let nodes = match count.node() {
        Node::Sum(nodes) => nodes,
        other => vec![other],
    };
    nodes.iter().find_map(|node| {
        let Node::Quotient(dividend, divisor, rounding) = node else { return None };
        let divisor = with(divisor, &|_| None)?.known().filter(|divisor| divisor % blocks == 0)?;
        let part = Expr::from(divisor / blocks);
        let up = if *rounding == Rounding::Up { 0 } else { divisor - 1 };
        let dividend = with(dividend, &|_| None)?.minus(&Expr::from(up))?;
        let others = Stride::times(&count.minus(&with(node, &|_| None)?)?, &Expr::from(divisor))?;
        let all = Stride::plus(&Stride::plus(&dividend, &others)?, &Stride::times(&own, &part)?)?;
        let units = all.divide_up(&part)?;
        // Verifies the guess.
        let same = units.minus(&own)?.divide_up(&by)? == *count;
        (same && !has(&units)).then_some(units)
    })
}

impl DigitSource {
    /// The coordinates as sums of digits of this number.
    fn digits(self, core: &Core, starts: &[Start]) -> Option<Digits> {
        let of_number = |(starts, iterations): &Start| -> Option<Vec<Expr>> {
            let share = share(&self.iterations, iterations).unwrap_or(0);
            starts.iter().map(|start| self.in_terms(core, share, start, None)).collect()
        };
        let of_number: Option<Vec<Vec<Expr>>> = starts.iter().map(of_number).collect();
        let cases = match of_number.and_then(|starts| self.sums(core, starts)) {
            Some(case) => vec![case],
            None => cases::cases(&self, core, starts)?,
        };
        Some(Digits { cases, axis: self.axis, iterations: self.iterations })
    }

    /// Coordinates that are computed from this number, as sums of its digits.
    fn sums(&self, core: &Core, starts: Vec<Vec<Expr>>) -> Option<Case> {
        let divisors = self.divisors(starts.iter().flatten())?;
        let below = |count: &Expr| match count.range().1 {
            Some(greatest) => natural()?.at_most((greatest - 1).max(0)).ok(),
            None => natural(),
        };
        // The number of values of each digit: the quotient of the next divisor and its own.
        let next = divisors.iter().skip(1).chain([&self.units]);
        let counts: Vec<Expr> =
            divisors.iter().zip(next).map(|(own, next)| next.floor_div(own)).collect::<Option<_>>()?;
        let digits: Vec<Parameter> =
            counts.iter().map(|count| below(count).map(Parameter::anonymous)).collect::<Option<_>>()?;
        let quotients: Vec<Parameter> =
            divisors.iter().map(|_| natural().map(Parameter::anonymous)).collect::<Option<_>>()?;
        let sum = |start: &Expr| {
            let mut rest = self.with_quotients(start, &divisors, &quotients)?;
            let (mut sum, mut factor, mut before) = (Expr::from(0), Expr::from(0), Expr::from(0));
            for ((digit, count), quotient) in digits.iter().zip(&counts).zip(&quotients) {
                let (base, own) = affine(&rest, quotient)?;
                rest = base;
                factor = Stride::plus(&Stride::times(&factor, &before)?, &own)?;
                sum = Stride::plus(&sum, &Stride::times(&factor, &Expr::from(digit.clone()))?)?;
                before = count.clone();
            }
            let sum = Stride::plus(&sum, &rest)?;
            let left = |own: &Parameter| depends(core, &sum, own);
            let plain = Terms::of(&sum).is_some() && !left(&self.own) && !self.iterations.iter().any(left);
            plain.then_some(sum)
        };
        let sums = |starts: &Vec<Expr>| starts.iter().map(sum).collect();
        let starts: Vec<Vec<Expr>> = starts.iter().map(sums).collect::<Option<_>>()?;
        let list = digits.into_iter().zip(counts).filter(|(_, count)| count.known() != Some(1)).collect();
        Some(Case { starts, list })
    }

    /// Replaces block and iteration in an expression by this number, and the number's quotients by
    /// its digits. With parts, these replace the number; digits of a block or an iteration, and
    /// clamped indices, are then expanded, too.
    fn in_terms(&self, core: &Core, share: usize, expr: &Expr, parts: Option<&InParts>) -> Option<Expr> {
        let block = self.block.as_ref();
        if block.is_none() && parts.is_none() {
            return Some(expr.clone());
        }
        let on = block.map_or(&self.own, |(block, _)| block);
        let again = |index: &Expr| self.in_terms(core, share, index, parts);
        let of_parts = |expr: &Expr| match parts {
            None => Some(expr.clone()),
            Some(parts) => with(&expr.node(), &|node| self.is(node).then(|| parts.number.clone())),
        };
        with(&expr.node(), &|node| match node {
            Node::Parameter(own) if own.stands_for(on) => {
                of_parts(&block.map_or_else(|| Expr::from(own.clone()), |(_, backs)| backs[share].clone()))
            }
            Node::Parameter(own) => {
                if let (Some(parts), Some((index, greatest))) = (parts, limited(core, own)) {
                    let index = again(index)?;
                    parts.limits.borrow_mut().push((index.clone(), greatest));
                    return Some(index);
                }
                let (number, divisor, modulus) = digit(core, own).filter(|(number, ..)| depends(core, number, on))?;
                // In two steps: the part below the modulus is removed before the rest is divided.
                let first = parts.map_or(1, |parts| parts.modulus);
                let first = if divisor % first == 0 { first } else { 1 };
                let quotient = again(number)?.floor_div(&Expr::from(first))?.floor_div(&Expr::from(divisor / first))?;
                if modulus == 0 {
                    return Some(quotient);
                }
                let whole = quotient.floor_div(&Expr::from(modulus))?;
                quotient.minus(&Stride::times(&whole, &Expr::from(modulus))?)
            }
            _ => None,
        })
    }

    /// The divisors of the number, starting with 1. Each divides the next one, and the last one
    /// divides the number of values.
    fn divisors<'e>(&self, starts: impl Iterator<Item = &'e Expr>) -> Option<Vec<Expr>> {
        let mut found = vec![Expr::from(1)];
        for start in starts {
            self.find_divisors(&start.node(), &mut found);
        }
        let mut chain: Vec<Expr> = Vec::new();
        for own in found {
            let at = chain.iter().position(|other| own.divides(other).proved()).unwrap_or(chain.len());
            if chain.get(at) != Some(&own) {
                chain.insert(at, own);
            }
        }
        let next = chain.iter().skip(1).chain([&self.units]);
        let even = chain.iter().zip(next).all(|(own, next)| own.divides(next).proved());
        even.then_some(chain)
    }

    fn find_divisors(&self, node: &Node, found: &mut Vec<Expr>) {
        match node {
            Node::Integer(_) | Node::Parameter(_) => {}
            Node::Sum(nodes) | Node::Product(nodes) => nodes.iter().for_each(|node| self.find_divisors(node, found)),
            Node::Quotient(n, d, _) | Node::Remainder(n, d, _) if self.is(n) => found.extend(with(d, &|_| None)),
            Node::Quotient(a, b, _) | Node::Remainder(a, b, _) | Node::Minimum(a, b) => {
                self.find_divisors(a, found);
                self.find_divisors(b, found);
            }
        }
    }

    fn is(&self, node: &Node) -> bool {
        matches!(node, Node::Parameter(own) if own.stands_for(&self.own))
    }

    /// An expression with a parameter for each quotient by one of the divisors, of which the first
    /// is 1.
    fn with_quotients(&self, expr: &Expr, divisors: &[Expr], quotients: &[Parameter]) -> Option<Expr> {
        let by = |d: &Node| {
            let divisor = with(d, &|_| None)?;
            let at = divisors.iter().position(|own| *own == divisor)?;
            Some((Expr::from(quotients[at].clone()), divisor))
        };
        let whole = Expr::from(quotients.first()?.clone());
        with(&expr.node(), &|node| match node {
            Node::Quotient(n, d, Rounding::Plain) if self.is(n) => Some(by(d)?.0),
            Node::Remainder(n, d, Rounding::Plain) if self.is(n) => {
                let (quotient, divisor) = by(d)?;
                whole.minus(&Stride::times(&quotient, &divisor)?)
            }
            own if self.is(own) => Some(whole.clone()),
            _ => None,
        })
    }
}
