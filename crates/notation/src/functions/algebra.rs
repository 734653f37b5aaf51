//! The algebra: coalesce, composition, complement, inverses and what is built from them.

use tilewright_layout::{Composed, OuterMap};

use super::{Function, mapped};
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

const SIMPLIFYING: &str = "Simplifying";
const ALGEBRA: &str = "Composition, complement, inverses";
const WIDTH: &str = "Element width";

/// `A o B` and `composition(A, B)`.
pub(crate) fn compose(a: Arguments<'_>) -> Result<Value, Fault> {
    if let (Some(Value::Layout(left)), Some(Value::Layout(right))) = (a.get(0), a.get(1)) {
        return Ok(left.compose(right)?.into());
    }
    if let Some(Value::Swizzle(_)) = a.get(0) {
        return composed(a, 2, 1);
    }
    let tiler = a.tiler(1)?;
    mapped!(a, layout => layout.compose_tiler(&tiler)?)
}

/// The composed layout of a layout or swizzle, an offset (0 where there is none) and a layout.
pub(crate) fn composed(a: Arguments<'_>, offset: usize, inner: usize) -> Result<Value, Fault> {
    let outer: OuterMap = match a.get(0) {
        Some(Value::Swizzle(swizzle)) => (*swizzle).into(),
        _ => a.layout(0)?.into_owned().into(),
    };
    let between = match a.get(offset) {
        Some(Value::Int(value)) => *value,
        None => 0,
        _ => return a.kind(offset, "an integer offset"),
    };
    Ok(Composed::new(outer, between, a.layout(inner)?.into_owned())?.into())
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
            1 => mapped!(a, layout => layout.coalesce()?),
            _ => {
                let profile = a.shape(1)?;
                mapped!(a, layout => layout.coalesce_by(profile.profile())?)
            }
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
        signature: "filter_zeros(A) or filter_zeros(shape, stride)",
        summary: "modes of stride 0 become extent 1, in place",
        example: "filter_zeros((4,3):(1,0))",
        result: "(4,1):(1,0)",
        section: SIMPLIFYING,
        least: 1,
        most: 2,
        run: |a| match a.len() {
            1 => Ok(a.layout(0)?.filter_zeros().into()),
            _ => Ok(a.tree(0)?.filter_zeros(&a.tree(1)?)?.into()),
        },
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
        summary: "the layout R with R(c) = A(B(c)), B a layout, a shape by mode or a tiler; A o B is the same",
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
            _ => Ok(a.layout(0)?.complement(&a.size(1)?)?.into()),
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
            _ => Ok(a.layout(0)?.weak_complement(&a.size(1)?)?.into()),
        },
    },
    Function {
        name: "right_inverse",
        signature: "right_inverse(A)",
        summary: "the largest R with A(R(i)) = i: where each offset comes from, as far as offsets are without a hole",
        example: "right_inverse((4,3):(3,1))",
        result: "(3,4):(4,1)",
        section: ALGEBRA,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.right_inverse()?.into()),
    },
    Function {
        name: "left_inverse",
        signature: "left_inverse(A)",
        summary: "an R with A(R(A(k))) = A(k): it sends an offset back to an index that has it",
        example: "left_inverse((4,8):(1,5))",
        result: "(5,8):(1,4)",
        section: ALGEBRA,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.left_inverse()?.into()),
    },
    Function {
        name: "nullspace",
        signature: "nullspace(A)",
        summary: "the indices at which modes of stride 0 run: A is 0 on it",
        example: "nullspace((2,4,6):(1,2,0))",
        result: "6:8",
        section: ALGEBRA,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.nullspace()?.into()),
    },
    Function {
        name: "layout_add",
        signature: "layout_add(A, B)",
        summary: "the layout R with R(i) = A(i) + B(i)",
        example: "layout_add((4,3):(1,4), (4,3):(3,1))",
        result: "(4,3):(4,5)",
        section: ALGEBRA,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.add(&*a.layout(1)?)?.into()),
    },
    Function {
        name: "upcast",
        signature: "upcast(A, n)",
        summary: "the layout for elements n times as wide, rounded up as in CuTe",
        example: "upcast((2,8,9):(16,1,32), 2)",
        result: "(2,4,9):(8,1,16)",
        section: WIDTH,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.upcast(a.int(1)?)?.into()),
    },
    Function {
        name: "downcast",
        signature: "downcast(A, n)",
        summary: "the layout for elements of which n make one",
        example: "downcast((5,12):(24,1), 2)",
        result: "(5,24):(48,1)",
        section: WIDTH,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.downcast(a.int(1)?)?.into()),
    },
    Function {
        name: "recast_layout",
        signature: "recast_layout(new_bits, old_bits, A)",
        summary: "the layout of the same bits read as elements of another width",
        example: "recast_layout(16, 32, (4,8):(1,4))",
        result: "(8,8):(1,8)",
        section: WIDTH,
        least: 3,
        most: 3,
        run: |a| match a.get(0) {
            Some(Value::Int(_)) => Ok(a.layout(2)?.recast(a.int(0)?, a.int(1)?)?.into()),
            // As a method the layout comes first.
            _ => Ok(a.layout(0)?.recast(a.int(1)?, a.int(2)?)?.into()),
        },
    },
    Function {
        name: "max_alignment",
        signature: "max_alignment(A)",
        summary: "the largest number of elements that always lie together, aligned",
        example: "max_alignment((4,8):(1,6))",
        result: "2",
        section: WIDTH,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.max_alignment().into()),
    },
];
