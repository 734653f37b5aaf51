//! The algebra: coalesce, composition, complement and what is built from them.

use tilewright_layout::LayoutError;

use super::Function;
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

const SIMPLIFYING: &str = "Simplifying";
const ALGEBRA: &str = "Composition and complement";

/// `A o B` and `composition(A, B)`.
pub(crate) fn compose(a: Arguments<'_>) -> Result<Value, Fault> {
    let (left, right) = (a.layout(0)?, a.layout(1)?);
    Ok(left.compose(&right)?.into())
}

/// The number of indices that a target asks to be filled: a number, or the size of a shape or a layout.
fn target(a: &Arguments<'_>, argument: usize) -> Result<i64, Fault> {
    let shape = a.shape(argument)?;
    let size = shape.leaves().iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent));
    size.ok_or(Fault::At(argument, LayoutError::Overflow { op: a.function }))
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "coalesce",
        signature: "coalesce(A) or coalesce(A, profile)",
        summary: "the same function with the fewest modes, as a whole or within each leaf of a profile",
        example: "coalesce((2,(1,6)):(1,(6,2)))",
        result: "12:1",
        section: SIMPLIFYING,
        least: 1,
        most: 2,
        run: |a| match a.len() {
            1 => Ok(a.layout(0)?.coalesce()?.into()),
            _ => Ok(a.layout(0)?.coalesce_by(a.shape(1)?.profile())?.into()),
        },
    },
    Function {
        name: "coalesce_z",
        signature: "coalesce_z(A)",
        summary: "as coalesce, the same function on all integers, past the end too",
        example: "coalesce_z((4,1):(1,0))",
        result: "(4,1):(1,0)",
        section: SIMPLIFYING,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.coalesce_z()?.into()),
    },
    Function {
        name: "filter_zeros",
        signature: "filter_zeros(A)",
        summary: "modes of stride 0 become extent 1, in place",
        example: "filter_zeros((4,3):(1,0))",
        result: "(4,1):(1,0)",
        section: SIMPLIFYING,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.filter_zeros().into()),
    },
    Function {
        name: "filter",
        signature: "filter(A) or filter(A, profile)",
        summary: "filter_zeros, then coalesce",
        example: "filter((4,3):(1,0))",
        result: "4:1",
        section: SIMPLIFYING,
        least: 1,
        most: 2,
        run: |a| match a.len() {
            1 => Ok(a.layout(0)?.filter()?.into()),
            _ => Ok(a.layout(0)?.filter_by(a.shape(1)?.profile())?.into()),
        },
    },
    Function {
        name: "composition",
        signature: "composition(A, B)",
        summary: "the layout R with R(c) = A(B(c)); A o B is the same",
        example: "composition((6,2):(8,2), (4,3):(3,1))",
        result: "((2,2),3):((24,2),8)",
        section: ALGEBRA,
        least: 2,
        most: 2,
        run: compose,
    },
    Function {
        name: "composition_within",
        signature: "composition_within(A, B)",
        summary: "composition, refused where B leaves the domain of A",
        example: "composition_within(12:2, (3,4):(1,3))",
        result: "(3,4):(2,6)",
        section: ALGEBRA,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.compose_within(&*a.layout(1)?)?.into()),
    },
    Function {
        name: "complement",
        signature: "complement(A) or complement(A, target)",
        summary: "the layout that fills [0, target) together with A, exactly; open at the end without a target",
        example: "complement(4:2, 24)",
        result: "(2,3):(1,8)",
        section: ALGEBRA,
        least: 1,
        most: 2,
        run: |a| match a.len() {
            1 => Ok(a.layout(0)?.complement_open()?.into()),
            _ => Ok(a.layout(0)?.complement(&target(&a, 1)?)?.into()),
        },
    },
    Function {
        name: "weak_complement",
        signature: "weak_complement(A) or weak_complement(A, target)",
        summary: "a layout disjoint from A that fills the gaps as far as whole copies fit; it may leave holes",
        example: "weak_complement((4,6):(1,6), 72)",
        result: "2:36",
        section: ALGEBRA,
        least: 1,
        most: 2,
        run: |a| match a.len() {
            1 => Ok(a.layout(0)?.weak_complement_open()?.into()),
            _ => Ok(a.layout(0)?.weak_complement(&target(&a, 1)?)?.into()),
        },
    },
];
