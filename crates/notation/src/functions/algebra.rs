//! The algebra: coalesce, composition, complement, inverses and operations built from them.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{
    AnyLayout, Composed, CoordinateStep, Extent, Layout, LayoutError, OuterMap, Stride, Swizzle, Tree,
};

use super::{Function, bits, function, numeric};
use crate::arguments::{Arguments, Fault, at};
use crate::reading::{launch_tree, single};
use crate::value::Value;

/// `A o B` and `composition(A, B)`.
pub(crate) fn compose(a: Arguments<'_>) -> Result<Value, Fault> {
    if let (Some(Value::Layout(left)), Some(Value::Layout(right))) = (a.get(0), a.get(1)) {
        return Ok(left.compose(right)?.into());
    }
    if let Some(composed) = bits::compose(&a) {
        return composed;
    }
    match a.get(0) {
        Some(Value::Morphism(_)) => super::morphisms::composition(a),
        Some(Value::Linear(_)) => super::linear::composition(a),
        Some(Value::Swizzle(_) | Value::Matrix(_)) => composed(a, 2, 1),
        _ => Ok(a.layout(0)?.compose_tiler(&*a.tiler(1)?)?.into()),
    }
}

/// The composed layout of a map, an offset (0 if there is none) and a layout.
pub(crate) fn composed(a: Arguments<'_>, offset: usize, inner: usize) -> Result<Value, Fault> {
    let between = match a.get(offset) {
        Some(value) => match launch_tree(value) {
            Some(tree) => tree,
            None => return a.kind(offset, "an offset, or a coordinate"),
        },
        None => Tree::leaf(Expr::from(0)),
    };
    if matches!(a.get(0), Some(Value::Layout(AnyLayout::Coordinate(_) | AnyLayout::CoordinateComposed(_)))) {
        // If the values are coordinates, a layout cannot begin elsewhere than at the origin.
        if !between.leaves().iter().all(|number| number.is_zero().proved()) {
            return a.kind(offset, "0, for a map whose values are coordinates");
        }
        let parts: Vec<Value> = [a.get(0), a.get(inner)].into_iter().flatten().cloned().collect();
        return compose(Arguments { function: a.function, values: (&parts).into() });
    }
    if let Some(Value::Layout(AnyLayout::Coordinate(inner))) = a.get(inner) {
        return Ok(Composed::new(outer(&a, 0)?, CoordinateStep::of_tree(&between)?, (**inner).clone())?.into());
    }
    let [between] = between.leaves() else { return a.kind(offset, "an integer offset") };
    let known = match known_outer(&a, 0) {
        Some(map) => Some(map?),
        None => a.integer_layout(0).ok().map(|layout| OuterMap::from(layout.into_owned())),
    };
    match (known, between.known(), a.integer_layout(inner)) {
        (Some(map), Some(offset), Ok(inner)) => Ok(Composed::new(map, offset, inner.into_owned())?.into()),
        _ => placed(outer(&a, 0)?, between.clone(), &a, inner),
    }
}

/// The outer map that adds the offset and then applies `map`, over the layout at an argument. If
/// that layout is itself a composed layout, or one over bits, the maps are chained.
fn placed(map: OuterMap<Expr>, offset: Expr, a: &Arguments<'_>, inner: usize) -> Result<Value, Fault> {
    let own = match a.get(inner) {
        Some(Value::Layout(AnyLayout::Xor(bits))) => Some(AnyLayout::from(bits.composed()?)),
        Some(Value::Layout(map @ (AnyLayout::Composed(_) | AnyLayout::LaunchComposed(_)))) => Some(map.clone()),
        _ => None,
    };
    match own {
        Some(own) => {
            let own = own.launch_composed()?;
            let map = map.after(&offset, own.outer())?;
            Ok(Composed::new(map, own.offset().clone(), own.inner().clone())?.into())
        }
        None => Ok(Composed::new(map, offset, numbers(a, inner)?)?.into()),
    }
}

/// An integer layout, which may contain parameters.
fn numbers(a: &Arguments<'_>, argument: usize) -> Result<Layout<Expr>, Fault> {
    let layout = a.layout(argument)?;
    match layout.launch() {
        Some(layout) => Ok(layout.into_owned()),
        None => Err(layout
            .integers()
            .err()
            .map_or(Fault::Kind { argument, wanted: "a layout" }, |error| at(argument, error))),
    }
}

/// The composed layout of several maps, each followed by an offset, and a layout: `A o 2 o S<1,0,1>
/// o 0 o B`.
pub(crate) fn chained(a: Arguments<'_>) -> Result<Value, Fault> {
    let offset = |argument: usize| match a.get(argument).and_then(single) {
        Some(offset) => Ok(offset),
        None => a.kind(argument, "an integer offset"),
    };
    let mut map = outer(&a, 0)?;
    let last = a.len().saturating_sub(1);
    for argument in (2..last).step_by(2) {
        map = map.after(&offset(argument - 1)?, &outer(&a, argument)?)?;
    }
    placed(map, offset(last.saturating_sub(1))?, &a, last)
}

/// A map over bits, or a composed layout without parameters, as an outer map.
fn known_outer(a: &Arguments<'_>, argument: usize) -> Option<Result<OuterMap, LayoutError>> {
    let chained = |map: &Composed| map.outer().after(map.offset(), &OuterMap::from(map.inner().clone()));
    match a.get(argument)? {
        Value::Layout(AnyLayout::Composed(map)) => Some(chained(map)),
        Value::Layout(AnyLayout::Xor(layout)) => Some(layout.composed().and_then(|map| chained(&map))),
        value => bits::outer(value).map(Ok),
    }
}

/// An outer map, which may contain parameters.
fn outer(a: &Arguments<'_>, argument: usize) -> Result<OuterMap<Expr>, Fault> {
    if let Some(Value::Layout(AnyLayout::LaunchComposed(map))) = a.get(argument) {
        return Ok(map.outer().after(map.offset(), &OuterMap::from(map.inner().clone()))?);
    }
    match known_outer(a, argument) {
        Some(map) => Ok(map?.at_launch()?),
        None => Ok(numbers(a, argument)?.into()),
    }
}

/// A recasting operation, on the layout or swizzle at an argument.
fn widened(
    a: &Arguments<'_>,
    argument: usize,
    of_layout: impl Fn(&AnyLayout) -> Result<AnyLayout, LayoutError>,
    of_swizzle: impl Fn(Swizzle) -> Result<Swizzle, LayoutError>,
) -> Result<Value, Fault> {
    match a.get(argument) {
        Some(Value::Swizzle(swizzle)) => Ok(of_swizzle(*swizzle)?.into()),
        _ => Ok(of_layout(&*a.layout(argument)?)
            .map_err(|error| match error {
                LayoutError::Kind { .. } => at(argument, error),
                error => error.into(),
            })?
            .into()),
    }
}

pub(super) const SIMPLIFYING: &[Function] = &[
    function(
        "coalesce(A) or coalesce(A, profile)",
        "the same function with the fewest modes, over all modes or within each leaf of a profile",
    )
    .example("coalesce((2,(1,6)):(1,(6,2)))", "12:1")
    .run(1..=2, |a| match a.len() {
        1 => Ok(a.layout(0)?.coalesce()?.into()),
        _ => Ok(a.layout(0)?.coalesce_by(&a.profile(1)?)?.into()),
    }),
    function("coalesce_z(A)", "as coalesce, but the same function on all integers, also past the end")
        .example("coalesce_z((4,1):(1,0))", "(4,1):(1,0)")
        .run(1..=1, |a| Ok(a.layout(0)?.coalesce_z()?.into())),
    function("filter_zeros(A) or filter_zeros(shape, stride)", "A with extent 1 for each mode of stride 0")
        .example("filter_zeros((4,3):(1,0))", "(4,1):(1,0)")
        .run(1..=2, |a| match a.len() {
            1 => Ok(a.layout(0)?.filter_zeros()?.into()),
            _ => numeric!(a, a.tuples(0, 1)?, (shape, stride) => shape.filter_zeros(&stride)?),
        }),
    function("filter(A) or filter(A, profile)", "filter_zeros, then coalesce")
        .example("filter((4,3):(1,0))", "4:1")
        .run(1..=2, |a| match a.len() {
            1 => Ok(a.layout(0)?.filter()?.into()),
            _ => Ok(a.layout(0)?.filter_by(&a.profile(1)?)?.into()),
        }),
];

pub(super) const ALGEBRA: &[Function] = &[
    function(
        "composition(A, B)",
        "the layout R with R(c) = A(B(c)), where B is a layout, a tiler, or a shape (by mode); also written A o B",
    )
    .example("composition((6,2):(8,2), (4,3):(3,1))", "((2,2),3):((24,2),8)")
    .run(2..=2, compose),
    function("composition_within(A, B)", "composition, refused if B has values outside of the domain of A")
        .example("composition_within(12:2, (3,4):(1,3))", "(3,4):(2,6)")
        .run(2..=2, |a| Ok(a.layout(0)?.compose_within(&*a.layout(1)?)?.into())),
    function(
        "complement(A) or complement(A, target)",
        "the layout that together with A covers [0, target) exactly; without a target it has no end",
    )
    .example("complement(4:2, 24)", "(2,3):(1,8)")
    .run(1..=2, |a| match a.len() {
        1 => Ok(a.layout(0)?.complement_open()?.into()),
        _ => match (a.get(0), a.get(1)) {
            (Some(Value::Layout(AnyLayout::Integer(layout))), Some(Value::Int(target))) => {
                Ok(layout.complement(target)?.into())
            }
            _ => Ok(a.layout(0)?.complement(&*a.shape(1)?)?.into()),
        },
    }),
    function(
        "weak_complement(A) or weak_complement(A, target)",
        "a layout of the offsets of as many disjoint copies of A as fit; padding of A leaves holes",
    )
    .example("weak_complement((4,6):(1,6), 72)", "2:36")
    .run(1..=2, |a| match a.len() {
        1 => Ok(a.layout(0)?.weak_complement_open()?.into()),
        _ => Ok(a.layout(0)?.weak_complement(&*a.shape(1)?)?.into()),
    }),
    function(
        "right_inverse(A)",
        "the largest R with A(R(i)) = i: the index of each offset, up to the first missing offset",
    )
    .example("right_inverse((4,3):(3,1))", "(3,4):(4,1)")
    .run(1..=1, |a| match a.get(0) {
        Some(Value::Matrix(matrix)) => Ok(matrix.right_inverse()?.into()),
        Some(Value::Swizzle(swizzle)) => Ok((*swizzle).into()),
        _ => Ok(a.layout(0)?.right_inverse()?.into()),
    }),
    function("left_inverse(A)", "an R with A(R(A(k))) = A(k): it maps each offset of A to an index with that offset")
        .example("left_inverse((4,8):(1,5))", "(5,8):(1,4)")
        .run(1..=1, |a| match a.get(0) {
            Some(Value::Matrix(matrix)) => Ok(matrix.left_inverse()?.into()),
            Some(Value::Swizzle(swizzle)) => Ok((*swizzle).into()),
            _ => Ok(a.layout(0)?.left_inverse()?.into()),
        }),
    function("nullspace(A)", "the layout of the indices of the modes of stride 0, on which A is 0")
        .example("nullspace((2,4,6):(1,2,0))", "6:8")
        .run(1..=1, |a| Ok(a.layout(0)?.nullspace()?.into())),
    function("layout_add(A, B)", "the layout R with R(i) = A(i) + B(i)")
        .example("layout_add((4,3):(1,4), (4,3):(3,1))", "(4,3):(4,5)")
        .run(2..=2, |a| Ok(a.layout(0)?.add(&*a.layout(1)?)?.into())),
];

pub(super) const WIDTH: &[Function] = &[
    function("upcast(A, n)", "the layout for elements n times as wide, rounded up as in CuTe")
        .example("upcast((2,8,9):(16,1,32), 2)", "(2,4,9):(8,1,16)")
        .run(2..=2, |a| {
            let n = a.int(1)?;
            widened(&a, 0, |layout| layout.upcast(n), |swizzle| swizzle.upcast(n))
        }),
    function("downcast(A, n)", "the layout for elements of 1/n the width")
        .example("downcast((5,12):(24,1), 2)", "(5,24):(48,1)")
        .run(2..=2, |a| {
            let n = a.int(1)?;
            widened(&a, 0, |layout| layout.downcast(n), |swizzle| swizzle.downcast(n))
        }),
    function("recast_layout(new_bits, old_bits, layout)", "the layout of the same memory for elements of another width")
        .example("recast_layout(16, 32, (4,8):(1,4))", "(8,8):(1,8)")
        .run(3..=3, |a| {
            // In method form the layout is the first argument.
            let (layout, new, old) = if let Some(Value::Int(_)) = a.get(0) { (2, 0, 1) } else { (0, 1, 2) };
            let (new, old) = (a.int(new)?, a.int(old)?);
            widened(&a, layout, |layout| layout.recast(new, old), |swizzle| swizzle.recast(new, old))
        }),
    function("max_alignment(A)", "the largest number of elements that are always contiguous and aligned; with sizes known at launch, as far as their facts prove")
        .example("max_alignment((4,8):(1,6))", "2")
        .run(1..=1, |a| Ok(a.layout(0)?.max_alignment()?.into())),
];
