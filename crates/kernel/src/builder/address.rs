//! The address of an access: a register, and a constant that is added to it.
//!
//! Law: the address is that of the offset, in bytes, after the swizzle of the view if it has one.
//! Constants become part of the instruction, so accesses that differ by constants share the
//! register.

use tilewright_layout::symbolic::{Expr, Node, Parameter};
use tilewright_layout::{Extent, LayoutError, Stride, Swizzle};

use super::core::Core;
use super::tensor::View;
use crate::error::Reason;
use crate::program::memory::Space;
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::{Register, Width};

fn overflow() -> Reason {
    Reason::Layout(LayoutError::Overflow { op: "address" })
}

/// The unsigned integer type for addresses of a width.
fn unsigned(width: Width) -> Number {
    if width == Width::Bits32 { Number::U32 } else { Number::U64 }
}

impl View<'_> {
    /// The address of an access: the register, if any, and a constant number of bytes.
    pub(crate) fn address(&self, core: &mut Core, offset: &Expr) -> Result<(Option<Register>, i64), Reason> {
        let bytes = i64::from(self.element.bytes());
        let shared = core.buffers[self.buffer.index()].space == Space::Shared;
        let width = if shared { Width::Bits32 } else { Width::Bits64 };
        if let Some(swizzle) = self.map {
            if let Some(known) = offset.known() {
                return Ok((None, swizzle.apply(known) * bytes));
            }
            return permuted(core, offset, swizzle, bytes, width);
        }
        // Constants become the immediate offset of the instruction.
        let mut moving = offset.clone();
        let mut known = 0;
        if let Some(constant) = constant_term(offset) {
            moving = offset.minus(&Expr::from(constant)).ok_or_else(overflow)?;
            known = constant;
        }
        let known = known.checked_mul(bytes).ok_or_else(overflow)?;
        if moving.known() == Some(0) {
            return Ok((None, known));
        }
        let moving = Stride::times(&moving, &Expr::from(bytes)).ok_or_else(overflow)?;
        Ok((Some(core.lower(&moving, width)?), known))
    }
}

/// The constant term of an expression.
pub(crate) fn constant_term(expr: &Expr) -> Option<i64> {
    match expr.node() {
        Node::Sum(nodes) => nodes.iter().find_map(|node| match node {
            Node::Integer(value) => Some(*value),
            _ => None,
        }),
        Node::Integer(value) => Some(value),
        _ => None,
    }
}

/// An expression as a sum of constant multiples of parameters, and a constant; None if it is not
/// such a sum.
pub(super) struct Terms {
    /// Each factor with its parameter.
    pub(super) moving: Vec<(i64, Parameter)>,
    pub(super) constant: i64,
}

impl Terms {
    pub(super) fn of(expr: &Expr) -> Option<Terms> {
        let mut terms = Terms { moving: Vec::new(), constant: 0 };
        let nodes = match expr.node() {
            Node::Sum(nodes) => nodes,
            other => vec![other],
        };
        for node in nodes {
            match node {
                Node::Integer(value) => terms.constant = value,
                Node::Parameter(parameter) => terms.moving.push((1, parameter)),
                Node::Product(factors) => match factors.as_slice() {
                    [Node::Integer(factor), Node::Parameter(parameter)] => {
                        terms.moving.push((*factor, parameter.clone()));
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
        Some(terms)
    }

    /// The sum as an expression.
    fn expr(&self) -> Option<Expr> {
        let add = |sum: Expr, (factor, parameter): &(i64, Parameter)| {
            Stride::plus(&sum, &Stride::times(&Expr::from(parameter.clone()), &Expr::from(*factor))?)
        };
        self.moving.iter().try_fold(Expr::from(self.constant), add)
    }

    /// The bits that the non-constant terms may set, if each term has bits of its own; None if two
    /// terms may carry into each other.
    fn bits(&self) -> Option<u64> {
        let mut all = 0_u64;
        for (factor, parameter) in &self.moving {
            let facts = parameter.facts();
            let (Some(0..), Some(greatest)) = (facts.least(), facts.greatest()) else { return None };
            let factor = u64::try_from(*factor).ok().filter(|factor| factor.is_power_of_two())?;
            let digit = (greatest.unsigned_abs() + 1).checked_next_power_of_two()? - 1;
            let bits = digit.checked_mul(factor)?;
            if all & bits != 0 {
                return None;
            }
            all |= bits;
        }
        Some(all)
    }
}

/// The address after a swizzle `S`, which reads and flips only bits below a power of two `T`.
///
/// * Multiples of `T` pass unchanged: `S(u + w) = S(u) + w`.
/// * `S` is linear over bits. So if `u` and a constant `c` have no bit in common, `S(u + c) = S(u)
///   ^ S(c)`.
/// * Bits that `S` neither reads nor flips can be added after it: `S(u + c) = S(u) + c`.
///
/// So accesses that differ by constants share all instructions, or all but one. The flips come
/// last, so that a loop keeps one register for all of these accesses, and not one for each.
fn permuted(
    core: &mut Core,
    offset: &Expr,
    swizzle: Swizzle,
    bytes: i64,
    width: Width,
) -> Result<(Option<Register>, i64), Reason> {
    let whole = |core: &mut Core| {
        let at = core.lower(offset, width)?;
        let at = swizzled(core, at, swizzle, width);
        Ok((Some(scaled(core, at, bytes, width)), 0))
    };
    let end = swizzle.base().max(swizzle.base() + swizzle.shift()) + swizzle.bits();
    let Some(terms) = Terms::of(offset).filter(|_| (0..40).contains(&end)) else { return whole(core) };
    let block = 1_i64 << end;
    let (passing, inside): (Vec<_>, Vec<_>) = terms.moving.into_iter().partition(|(factor, _)| factor % block == 0);
    let constant = terms.constant.rem_euclid(block);
    let beside = Terms { moving: passing, constant: 0 };
    let mut inside = Terms { moving: inside, constant: 0 };
    let apart = inside.bits().is_some_and(|bits| bits & constant as u64 == 0);
    if !apart {
        inside.constant = constant;
    }
    let at = core.lower(&inside.expr().ok_or_else(overflow)?, width)?;
    let at = swizzled(core, at, swizzle, width);
    let mut at = scaled(core, at, bytes, width);
    let number = unsigned(width);
    if !beside.moving.is_empty() {
        let beside =
            beside.expr().and_then(|beside| Stride::times(&beside, &Expr::from(bytes))).ok_or_else(overflow)?;
        let beside = core.lower(&beside, width)?;
        at = core.pure(Operation::Binary(Binary::Add, number), [at, beside], width);
    }
    let flipping = if apart { constant & touched(swizzle) } else { 0 };
    let added = if apart { constant - flipping } else { 0 };
    if flipping != 0 {
        let flips = core.constant((swizzle.apply(flipping) * bytes) as u64, width);
        at = core.pure(Operation::Binary(Binary::Xor, number), [at, flips], width);
    }
    let known = (terms.constant - constant + added).checked_mul(bytes).ok_or_else(overflow)?;
    Ok((Some(at), known))
}

/// The bits that a swizzle reads or flips.
fn touched(swizzle: Swizzle) -> i64 {
    let flipped = ((1_i64 << swizzle.bits()) - 1) << swizzle.base();
    let shift = swizzle.shift();
    flipped | if shift >= 0 { flipped << shift } else { flipped >> -shift }
}

/// `x ^ ((x >> s) & mask)` of a swizzle, in elements.
fn swizzled(core: &mut Core, x: Register, swizzle: Swizzle, width: Width) -> Register {
    let number = unsigned(width);
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    if bits == 0 {
        return x;
    }
    let by = core.constant(shift.unsigned_abs(), Width::Bits32);
    let iteration = if shift >= 0 { Binary::ShiftRight } else { Binary::ShiftLeft };
    let moved = core.pure(Operation::Binary(iteration, number), [x, by], width);
    let mask = ((1_u64 << bits) - 1) << base;
    let mask = core.constant(mask, width);
    let flips = core.pure(Operation::Binary(Binary::And, number), [moved, mask], width);
    core.pure(Operation::Binary(Binary::Xor, number), [x, flips], width)
}

fn scaled(core: &mut Core, x: Register, bytes: i64, width: Width) -> Register {
    if bytes == 1 {
        return x;
    }
    let number = unsigned(width);
    let shift = core.constant(u64::from(bytes.trailing_zeros()), Width::Bits32);
    core.pure(Operation::Binary(Binary::ShiftLeft, number), [x, shift], width)
}
