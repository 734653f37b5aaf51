//! Division of nested tuples.
//!
//! Law: `ceil_div(a, b)` is the number of tiles `b` that cover `a`, mode by mode. If one side is a
//! number and the other a tuple, the number counts the coordinates of the tuple
//! colexicographically:
//!
//! ```text
//! a / b                = the quotient rounded up, also below zero            numbers
//! (a0,a1,..) / (b0,..) = (a0/b0, .., ak, ..)                                  modes that b does not name stay
//! (a0,a1,..) / b       = (a0/b, a1/(b/|a0|), a2/(b/|a0|/|a1|), ..)            b is used up from the left
//! a / (b0,b1,..)       = a / (b0*b1*..)
//! ```
//!
//! `floor_div(a, b)` is the number of whole tiles `b` in `a`: the same with each quotient rounded
//! down. The divisor for the next mode is still `b/|a0|` rounded up, as for `ceil_div`: if `b` is
//! less than `|a0|`, the next modes are not divided.
//!
//! `shape_div` is the same if one of the two divides the other, and refuses otherwise; its tuples
//! have equal rank. A divisor that is not positive is refused everywhere (CuTe `ceil_div`,
//! `round_up`, `shape_div`, `evenly_divides`).

use crate::refusal::error::{Fits, LayoutError, Path};
use crate::refusal::evidence::Condition;
use crate::value::number::{Extent, Truth};
use crate::value::shape::{both, not_positive, product_of, rank_error};
use crate::value::tree::{Gatherer, Tree, TreeRef};

/// The kind of division.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DivisionRule {
    /// Rounded up.
    Up,
    /// Rounded down.
    Down,
    /// Exact: one number must divide the other.
    Exact,
}

impl DivisionRule {
    fn op(self) -> &'static str {
        match self {
            DivisionRule::Up => "ceil_div",
            DivisionRule::Down => "floor_div",
            DivisionRule::Exact => "shape_div",
        }
    }
}

impl<N: Extent> Tree<N> {
    fn quotient(&self, divisor: &Tree<N>, rule: DivisionRule) -> Result<Tree<N>, LayoutError> {
        let mut out = Gatherer::new();
        divide(self.as_ref(), divisor.as_ref(), rule, &mut out, &mut Path::new())?;
        out.finish()
    }

    /// The number of tiles of `divisor` that cover this shape, mode by mode (CuTe `ceil_div`).
    ///
    /// Errors: a divisor is not positive; `divisor` has more modes.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let div = |a: &str, b: &str| {
    ///     let (a, b): (Tree<i64>, Tree<i64>) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.ceil_div(&b).unwrap().to_string()
    /// };
    /// assert_eq!(div("(5,6,7)", "(4,4)"), "(2,2,7)");
    /// assert_eq!(div("(4,5,6)", "40"), "(1,1,3)"); // 4 and 5 are used up, and 40/4/5 = 2
    /// assert_eq!(div("100", "(4,5)"), "5");
    /// assert_eq!(div("-5", "4"), "-1");
    /// ```
    pub fn ceil_div(&self, divisor: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        self.quotient(divisor, DivisionRule::Up)
    }

    /// The number of whole tiles of `divisor` in this shape, mode by mode.
    ///
    /// Errors: a divisor is not positive; `divisor` has more modes.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let div = |a: &str, b: &str| {
    ///     let (a, b): (Tree<i64>, Tree<i64>) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.floor_div(&b).unwrap().to_string()
    /// };
    /// assert_eq!(div("(5,6,7)", "(4,4)"), "(1,1,7)");
    /// assert_eq!(div("(4,5,6)", "40"), "(0,0,3)"); // 4 and 5 are used up, and 40/4/5 = 2
    /// assert_eq!(div("100", "(4,6)"), "4");
    /// assert_eq!(div("-5", "4"), "-2");
    /// ```
    pub fn floor_div(&self, divisor: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        self.quotient(divisor, DivisionRule::Down)
    }

    /// The shape divided by `divisor`, if at each leaf one number divides the other (CuTe
    /// `shape_div`).
    ///
    /// Errors: neither number divides the other; a number is not positive; the ranks differ.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let div = |a: &str, b: &str| {
    ///     let (a, b): (Tree<i64>, Tree<i64>) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.shape_div(&b).map(|quotient| quotient.to_string())
    /// };
    /// assert_eq!(div("((8,10),(6,4))", "((2,5),(3,2))").unwrap(), "((4,2),(2,2))");
    /// assert_eq!(div("(4,5,6)", "40").unwrap(), "(1,1,3)");
    /// assert_eq!(div("6", "4").unwrap_err().code(), "E0115");
    /// ```
    pub fn shape_div(&self, divisor: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        self.quotient(divisor, DivisionRule::Exact)
    }

    /// This rounded up to multiples of `unit`, mode by mode; modes that `unit` does not name stay
    /// (CuTe `round_up`).
    ///
    /// Errors: a unit is not positive; a number is paired with a tuple; `unit` has more modes; a
    /// multiple is not representable.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let (a, unit): (Tree<i64>, Tree<i64>) = ("(5,6,7)".parse().unwrap(), "(4,4)".parse().unwrap());
    /// assert_eq!(a.round_up(&unit).unwrap().to_string(), "(8,8,7)");
    /// ```
    pub fn round_up(&self, unit: &Tree<N>) -> Result<Tree<N>, LayoutError> {
        let mut out = Gatherer::new();
        round(self.as_ref(), unit.as_ref(), &mut out, &mut Path::new())?;
        out.finish()
    }

    /// Whether tiles of `tiler` cover this shape exactly: at each leaf of `tiler`, the size of the
    /// shape is that of the tile times the number of tiles (CuTe `evenly_divides`).
    ///
    /// A tiler with more modes than the shape does not divide it; modes that it does not name are
    /// arbitrary. Errors: a number is not positive.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let even = |a: &str, b: &str| {
    ///     let (a, b): (Tree<i64>, Tree<i64>) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.evenly_divides(&b).unwrap().proved()
    /// };
    /// assert!(even("(8,6,5)", "(4,3)") && even("((4,2),6)", "(8,2)"));
    /// assert!(!even("(8,6)", "(3,3)") && !even("(8,6)", "(4,3,1)"));
    /// ```
    pub fn evenly_divides(&self, tiler: &Tree<N>) -> Result<Truth, LayoutError> {
        const OP: &str = "evenly_divides";
        for number in self.leaves().iter().chain(tiler.leaves()) {
            if !N::zero().less(number).proved() {
                return Err(not_positive(OP, "an extent", number));
            }
        }
        evenly(self.as_ref(), tiler.as_ref())
    }
}

/// `a / b` rounded up, for a positive `b`.
fn quotient_up<N: Extent>(a: &N, b: &N, op: &'static str) -> Result<N, LayoutError> {
    if !N::zero().less(b).proved() {
        return Err(not_positive(op, "the divisor", b));
    }
    let quotient = match a.less(&N::zero()) {
        // Division truncates, so a negative quotient is already rounded up.
        Truth::Proved => a.divide(b).map(|(quotient, _)| quotient),
        Truth::Refuted => a.divide_up(b),
        Truth::Open => return Err(LayoutError::open(op, Condition::AtMost, &N::zero(), a)),
    };
    quotient.fits_as::<N>(op)
}

/// `a / b` rounded down, for a positive `b`.
fn quotient_down<N: Extent>(a: &N, b: &N, op: &'static str) -> Result<N, LayoutError> {
    if !N::zero().less(b).proved() {
        return Err(not_positive(op, "the divisor", b));
    }
    let quotient = match a.less(&N::zero()) {
        Truth::Refuted => a.divide(b).map(|(quotient, _)| quotient),
        // Division truncates, so a negative quotient is rounded up; it is corrected by one if there
        // is a remainder.
        Truth::Proved => match a.divide(b) {
            Some((quotient, rest)) => match rest.is_zero() {
                Truth::Proved => Some(quotient),
                Truth::Refuted => quotient.minus(&N::one()),
                Truth::Open => return Err(LayoutError::open(op, Condition::Divides, b, a)),
            },
            None => None,
        },
        Truth::Open => return Err(LayoutError::open(op, Condition::AtMost, &N::zero(), a)),
    };
    quotient.fits_as::<N>(op)
}

/// `a / b` if one divides the other.
fn quotient_exact<N: Extent>(a: &N, b: &N, op: &'static str, path: &[usize]) -> Result<N, LayoutError> {
    if !N::zero().less(b).proved() {
        return Err(not_positive(op, "the divisor", b));
    }
    if !N::zero().less(a).proved() {
        return Err(not_positive(op, "an extent", a));
    }
    let (down, up) = (b.divides(a), a.divides(b));
    if down.proved() {
        return a.divide(b).map(|(quotient, _)| quotient).fits_as::<N>(op);
    }
    if up.proved() {
        return Ok(N::one());
    }
    match (a.known(), b.known()) {
        (Some(value), Some(divisor)) => Err(LayoutError::NotDivisible { op, path: path.to_vec(), value, divisor }),
        _ => Err(LayoutError::open(op, Condition::Divides, b, a)),
    }
}

fn quotient<N: Extent>(a: &N, b: &N, rule: DivisionRule, path: &[usize]) -> Result<N, LayoutError> {
    match rule {
        DivisionRule::Up => quotient_up(a, b, rule.op()),
        DivisionRule::Down => quotient_down(a, b, rule.op()),
        DivisionRule::Exact => quotient_exact(a, b, rule.op(), path),
    }
}

/// `a` divided by the product of `divisors`.
fn by_product<N: Extent>(a: &N, divisors: &[N], rule: DivisionRule, path: &[usize]) -> Result<N, LayoutError> {
    match rule {
        // Rounding down once equals rounding down at each step, which cannot overflow.
        DivisionRule::Down => {
            divisors.iter().try_fold(a.clone(), |rest, divisor| quotient_down(&rest, divisor, rule.op()))
        }
        DivisionRule::Up => divisors.iter().try_fold(a.clone(), |rest, divisor| quotient_up(&rest, divisor, rule.op())),
        DivisionRule::Exact => {
            if let Some(divisor) = divisors.iter().find(|divisor| !N::zero().less(divisor).proved()) {
                return Err(not_positive(rule.op(), "the divisor", divisor));
            }
            quotient_exact(a, &product_of(divisors, rule.op())?, rule.op(), path)
        }
    }
}

fn divide<N: Extent>(
    a: TreeRef<'_, N>,
    b: TreeRef<'_, N>,
    rule: DivisionRule,
    out: &mut Gatherer<N>,
    path: &mut Path,
) -> Result<(), LayoutError> {
    let op = rule.op();
    if b.is_leaf() {
        return match b.leaves.first() {
            Some(divisor) => divide_by(a, divisor.clone(), rule, out, path).map(|_| ()),
            None => Ok(()),
        };
    }
    if let (true, Some(number)) = (a.is_leaf(), a.leaves.first()) {
        out.leaf(by_product(number, b.leaves, rule, path)?);
        return Ok(());
    }
    let (rank, divisors) = (a.rank(), b.rank());
    if divisors > rank || (rule == DivisionRule::Exact && divisors != rank) {
        return Err(rank_error(op, path, divisors, rank));
    }
    out.open();
    let mut divisors = b.modes();
    for (position, mode) in a.modes().enumerate() {
        match divisors.next() {
            Some(divisor) => {
                path.push(position);
                divide(mode, divisor, rule, out, path)?;
                path.pop();
            }
            None => out.append(mode),
        }
    }
    out.close();
    Ok(())
}

/// Divides the leaves from the left by a number; returns the rest of the divisor.
fn divide_by<N: Extent>(
    a: TreeRef<'_, N>,
    divisor: N,
    rule: DivisionRule,
    out: &mut Gatherer<N>,
    path: &mut Path,
) -> Result<N, LayoutError> {
    if let (true, Some(number)) = (a.is_leaf(), a.leaves.first()) {
        out.leaf(quotient(number, &divisor, rule, path)?);
        return Ok(divisor);
    }
    let mut rest = divisor;
    out.open();
    let mut modes = a.modes().enumerate().peekable();
    while let Some((position, mode)) = modes.next() {
        path.push(position);
        divide_by(mode, rest.clone(), rule, out, path)?;
        // The rest of the divisor after the last mode is not needed, and may not exist.
        if modes.peek().is_some() {
            let used = if rule == DivisionRule::Down { DivisionRule::Up } else { rule };
            rest = by_product(&rest, mode.leaves, used, path)?;
        }
        path.pop();
    }
    out.close();
    Ok(rest)
}

fn round<N: Extent>(
    a: TreeRef<'_, N>,
    unit: TreeRef<'_, N>,
    out: &mut Gatherer<N>,
    path: &mut Path,
) -> Result<(), LayoutError> {
    const OP: &str = "round_up";
    match (a.is_leaf(), unit.is_leaf(), a.leaves.first(), unit.leaves.first()) {
        (true, true, Some(number), Some(unit)) => {
            let multiple = quotient_up(number, unit, OP)?.times(unit);
            out.leaf(multiple.fits_as::<N>(OP)?);
            Ok(())
        }
        (false, false, ..) if a.rank() >= unit.rank() => {
            out.open();
            let mut units = unit.modes();
            for (position, mode) in a.modes().enumerate() {
                match units.next() {
                    Some(unit) => {
                        path.push(position);
                        round(mode, unit, out, path)?;
                        path.pop();
                    }
                    None => out.append(mode),
                }
            }
            out.close();
            Ok(())
        }
        _ => Err(rank_error(OP, path, unit.rank(), a.rank())),
    }
}

fn evenly<N: Extent>(a: TreeRef<'_, N>, tiler: TreeRef<'_, N>) -> Result<Truth, LayoutError> {
    const OP: &str = "evenly_divides";
    if let (true, Some(tile)) = (tiler.is_leaf(), tiler.leaves.first()) {
        let mut tiles = Gatherer::new();
        divide_by(a, tile.clone(), DivisionRule::Up, &mut tiles, &mut Path::new())?;
        let covered = product_of(tiles.finish()?.leaves(), OP)?.times(tile);
        let size = product_of(a.leaves, OP)?;
        // A product that is not representable is greater than the size.
        return Ok(covered.map_or(Truth::Refuted, |covered| size.same(&covered)));
    }
    if a.is_leaf() || tiler.rank() > a.rank() {
        return Ok(Truth::Refuted);
    }
    let mut answer = Truth::Proved;
    for (mode, tile) in a.modes().zip(tiler.modes()) {
        answer = both(answer, evenly(mode, tile)?);
    }
    Ok(answer)
}
