//! Arithmetic on nested tuples of numbers, and common domains of shapes.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    AnyTree, Condition, Extent, LayoutError, Stride, Tree, common_coarsening, common_refinement, domain_distribute,
    greatest_common_domain,
};

use super::{Function, MANY, function, numeric};
use crate::arguments::{Arguments, Fault, among};
use crate::reading::single;
use crate::value::Value;

/// All arguments as one tuple.
fn all(a: &Arguments<'_>) -> Result<Tree<i64>, Fault> {
    let trees: Vec<Tree<i64>> = (0..a.len()).map(|argument| a.integer_tree(argument)).collect::<Result<_, _>>()?;
    Ok(Tree::tuple(trees.iter())?)
}

/// All arguments as one tuple, which may contain parameters.
fn all_symbols(a: &Arguments<'_>) -> Result<Tree<Expr>, Fault> {
    let trees: Vec<Tree<Expr>> = (0..a.len()).map(|argument| a.launch_tree(argument)).collect::<Result<_, _>>()?;
    Ok(Tree::tuple(trees.iter())?)
}

/// The largest or the smallest of all numbers; an error if there are none.
fn extreme(
    a: &Arguments<'_>,
    of: fn(&Tree<i64>) -> Option<i64>,
    of_two: fn(&Expr, &Expr) -> Option<Expr>,
) -> Result<Value, Fault> {
    let none =
        || LayoutError::Argument { op: a.function, what: "the number of numbers", value: 0, wanted: "at least 1" };
    if let Ok(numbers) = all(a) {
        return Ok(of(&numbers).ok_or_else(none)?.into());
    }
    let numbers = all_symbols(a)?;
    let (first, rest) = numbers.leaves().split_first().ok_or_else(none)?;
    let extreme = rest.iter().try_fold(first.clone(), |extreme, number| of_two(&extreme, number));
    Ok(extreme.ok_or(LayoutError::Overflow { op: a.function })?.into())
}

/// The greatest common divisor of all numbers.
fn common_divisor(a: Arguments<'_>) -> Result<Value, Fault> {
    if let Ok(numbers) = all(&a) {
        return Ok(numbers.gcd()?.into());
    }
    let divisor = |common: Expr, number: &Expr| {
        let (divisor, other) = if number.known().is_some() { (number, &common) } else { (&common, number) };
        let open = || LayoutError::open(a.function, Condition::Divides, divisor, other);
        common.greatest_divisor(number).ok_or_else(open)
    };
    Ok(all_symbols(&a)?.leaves().iter().try_fold(Expr::zero(), divisor)?.into())
}

/// Why a quotient does not exist.
pub(crate) enum Unfit {
    /// The divisor is 0.
    Zero,
    /// The sign of the divisor is not proved.
    Unsettled,
    /// A number is not representable.
    Overflow,
}

/// `a / b`, by a rounding that is defined for positive divisors: `a / b` equals `-a / -b` in every
/// rounding.
pub(crate) fn quotient(a: &Expr, b: &Expr, rounded: fn(&Expr, &Expr) -> Option<Expr>) -> Result<Expr, Unfit> {
    let zero = Expr::zero();
    let negated = |number: &Expr| zero.minus(number).ok_or(Unfit::Overflow);
    if zero.less(b).proved() {
        rounded(a, b).ok_or(Unfit::Overflow)
    } else if let (Some(i64::MIN), Some(divisor @ ..-1)) = (a.known(), b.known()) {
        // The smallest integer cannot be negated. The quotient is positive, so any remainder is
        // rounded like a half.
        let (quotient, rest) = (i64::MIN / divisor, i64::MIN % divisor);
        let half = rounded(&Expr::from(1), &Expr::from(2)).ok_or(Unfit::Overflow)?;
        Ok(if rest == 0 { quotient.into() } else { half.plus(&quotient.into()).ok_or(Unfit::Overflow)? })
    } else if b.less(&zero).proved() {
        rounded(&negated(a)?, &negated(b)?).ok_or(Unfit::Overflow)
    } else if b.is_zero().proved() {
        Err(Unfit::Zero)
    } else {
        Err(Unfit::Unsettled)
    }
}

/// The remainder of a quotient, rounded down or toward zero.
fn left(a: &Arguments<'_>, rounded: fn(&Expr, &Expr) -> Option<Expr>) -> Result<Value, Fault> {
    let number = |argument: usize| match a.get(argument).and_then(single) {
        Some(number) => Ok(number),
        None => a.kind(argument, "a number"),
    };
    let (dividend, divisor) = (number(0)?, number(1)?);
    let quotient = quotient(&dividend, &divisor, rounded).map_err(|sign| match sign {
        Unfit::Zero => {
            let (op, what) = (a.function, "the divisor");
            Fault::At(1, LayoutError::Argument { op, what, value: 0, wanted: "other than 0" })
        }
        Unfit::Unsettled => Fault::Kind { argument: 1, wanted: "a number whose sign is known" },
        Unfit::Overflow => Fault::Refused(LayoutError::Overflow { op: a.function }),
    })?;
    let rest = quotient.times(&divisor).and_then(|whole| dividend.minus(&whole));
    Ok(rest.ok_or(LayoutError::Overflow { op: a.function })?.into())
}

pub(super) const NUMBERS: &[Function] = &[
    function("product(t)", "the product of all numbers of a tuple")
        .example("product((4,(2,3)))", "24")
        .run(1..=1, |a| numeric!(a, 0, shape => shape.product()?)),
    function("product_each(t)", "the product of each mode")
        .example("product_each((2,(3,4)))", "(2,12)")
        .run(1..=1, |a| numeric!(a, 0, shape => shape.product_each()?)),
    function("product_like(t, guide)", "the product of the mode at each leaf of the guide")
        .example("product_like((2,(3,4)), (1,1))", "(2,12)")
        .run(2..=2, |a| numeric!(a, 0, shape => shape.product_like(&a.profile(1)?)?)),
    function("inner_product(a, b)", "the sum of the products of corresponding numbers")
        .example("inner_product((2,(3,4)), (1,(10,100)))", "432")
        .run(2..=2, |a| match (&*a.any_tree(0)?, &*a.any_tree(1)?) {
            (AnyTree::Integer(x), AnyTree::Integer(y)) => Ok(x.inner_product(y)?.into()),
            (x, y) => match (x.launch(), y.coordinate()) {
                (Some(x), Some(y)) => Ok(x.inner_product(&y)?.into()),
                (None, _) => a.kind(0, "a number or a tuple of numbers"),
                _ => a.kind(1, "a tuple of numbers or of coordinate steps"),
            },
        }),
    function("elem_scale(a, b)", "each number of a times the product of the corresponding mode of b")
        .example("elem_scale((2,(3,4)), (10,(1,(2,3))))", "(20,(3,24))")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => x.elem_scale(&y)?)),
    function("tuple_add(a, b)", "the elementwise sum; missing modes count as 0")
        .example("tuple_add((1,2,3), (4,5))", "(5,7,3)")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => x.tuple_add(&y)?)),
    function("tuple_sub(a, b)", "the elementwise difference; missing modes count as 0")
        .example("tuple_sub((5,8,3), (1,2))", "(4,6,3)")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => x.tuple_sub(&y)?)),
    function("ceil_div(a, b)", "a divided by b, rounded up; for a tiler b, the number of tiles that cover the shape a")
        .example("ceil_div((5,6,7), (4,4))", "(2,2,7)")
        .run(2..=2, |a| match a.get(1) {
            Some(Value::Layout(_) | Value::Tiler(_)) => {
                Ok(a.tiler(1)?.tiles_of(&*a.shape(0)?).map_err(among(0, 1))?.into())
            }
            _ => numeric!(a, a.shapes(0, 1)?, (x, y) => x.ceil_div(&y)?),
        }),
    function("floor_div(a, b)", "a divided by b, rounded down: the number of whole tiles")
        .example("floor_div((5,6,7), (4,4))", "(1,1,7)")
        .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => x.floor_div(&y)?)),
    function(
        "shape_div(a, b, rounding)",
        "a divided by b, if one divides the other; with rounding=ceil or floor, as ceil_div or floor_div",
    )
    .example("shape_div(((8,10),(6,4)), ((2,5),(3,2)))", "((4,2),(2,2))")
    .run(2..=3, |a| match a.word(2).as_deref() {
        None if a.len() == 2 => numeric!(a, a.shapes(0, 1)?, (x, y) => x.shape_div(&y)?),
        Some("ceil") => numeric!(a, a.shapes(0, 1)?, (x, y) => x.ceil_div(&y)?),
        Some("floor") => numeric!(a, a.shapes(0, 1)?, (x, y) => x.floor_div(&y)?),
        _ => a.kind(2, "ceil or floor"),
    }),
    function("round_up(a, b)", "the least multiple of b that is at least a")
        .example("round_up((5,9), (4,8))", "(8,16)")
        .run(2..=2, |a| numeric!(a, a.tuples(0, 1)?, (x, y) => x.round_up(&y)?)),
    function("max(a, ...)", "the largest of all numbers")
        .example("max((4,(2,9)), 3)", "9")
        .run(1..=MANY, |a| extreme(&a, Tree::max, Expr::maximum)),
    function("min(a, ...)", "the least of all numbers")
        .example("min((4,(2,9)), 3)", "2")
        .run(1..=MANY, |a| extreme(&a, Tree::min, Expr::minimum)),
    function("mod(a, b)", "the remainder of a/b with the quotient rounded down; it has the sign of b")
        .example("mod(-5, 8)", "3")
        .run(2..=2, |a| left(&a, Expr::floor_div)),
    function(
        "rem(a, b)",
        "the remainder of a/b with the quotient rounded toward zero; it has the sign of a; also written a%b",
    )
    .example("rem(-5, 8)", "-5")
    .run(2..=2, |a| left(&a, |a, b| a.divide(b).map(|(quotient, _)| quotient))),
    function("gcd(a, ...)", "the greatest common divisor of all numbers")
        .example("gcd((12,(18,30)))", "6")
        .run(1..=MANY, common_divisor),
    function("sum(a, ...)", "the sum of all numbers").example("sum((1,(2,3)))", "6").run(1..=MANY, |a| match all(&a) {
        Ok(numbers) => Ok(numbers.sum()?.into()),
        Err(_) => Ok(all_symbols(&a)?.sum()?.into()),
    }),
];

pub(super) const SHAPES: &[Function] = &[
    function(
        "greatest_common_domain(a, b)",
        "the greatest layout of indices each of whose modes is within one mode of either shape",
    )
    .example("greatest_common_domain((5,3,4), (10,6))", "(5,2):(1,30)")
    .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => greatest_common_domain(&x, &y)?)),
    function("common_refinement(a, b)", "the coarsest flat shape that refines both")
        .example("common_refinement((4,6), (2,12))", "(2,2,6)")
        .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => common_refinement(&x, &y)?)),
    function("common_coarsening(a, b)", "the finest flat shape that both refine")
        .example("common_coarsening((2,3,4), (3,2,2,2))", "(6,4)")
        .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => common_coarsening(&x, &y)?)),
    function("domain_distribute(a, b)", "an even distribution of the coordinates of a shape over size(b) workers")
        .example("domain_distribute((15,14), 6)", "(3,2):(1,15)")
        .run(2..=2, |a| numeric!(a, a.shapes(0, 1)?, (x, y) => domain_distribute(&x, &y)?)),
];
