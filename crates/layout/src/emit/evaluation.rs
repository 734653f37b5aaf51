//! The value of a map at a coordinate, as polynomials.
//!
//! Law: the numbers are those that the library computes at the coordinate that the variables form,
//! for every value that the promise and the facts admit. Modes are coalesced first, which keeps the
//! function on the promised domain: within the shape, or on all integers.

use alloc::vec;
use alloc::vec::Vec;

use crate::emit::bits::Moves;
use crate::emit::builder::{GraphBuilder, Numbers, modes, with_expressions};
use crate::emit::error::EmitError;
use crate::emit::graph::Id;
use crate::emit::map::Map;
use crate::emit::place::{Promise, Variables, pieces};
use crate::emit::polynomial::EmittedPolynomial;
use crate::emit::range::Range;
use crate::symbolic::Expr;
use crate::{AnyLayout, Composed, Coordinate, Extent, Layout, Profile, Stride, Xor};

/// The scale of a step in each leaf of the codomain.
pub(crate) fn scales(stride: &Coordinate<Expr>, profile: &Profile) -> Vec<Expr> {
    stride.in_profile(profile).map(|tree| tree.leaves().to_vec()).unwrap_or_default()
}

pub(crate) fn evaluated(map: &Map, place: &Variables) -> Result<(GraphBuilder, Numbers), EmitError> {
    match map {
        Map::Layout(layout) => of_layout(layout, place),
        Map::Swizzle(swizzle) => of_bits(place, None, |moves, offset| moves.swizzle(offset, *swizzle)),
        Map::Matrix(matrix) => {
            // A matrix that is not square has no values above its inputs.
            let square = matrix.inputs() == matrix.outputs();
            let end = (!square || place.promise() == Promise::Inside).then(|| (1_i128 << matrix.inputs()) - 1);
            of_bits(place, end, |moves, number| moves.matrix(number, matrix))
        }
    }
}

fn of_layout(layout: &AnyLayout, place: &Variables) -> Result<(GraphBuilder, Numbers), EmitError> {
    match &*layout.by_index()? {
        AnyLayout::Integer(layout) => of_numbers(&Layout::from(layout), place),
        AnyLayout::Launch(layout) => of_numbers(layout, place),
        AnyLayout::Coordinate(layout) => {
            let profile = layout.coprofile()?;
            let (mut builder, sums) = linear(layout, place, profile.leaves(), |stride| scales(stride, &profile))?;
            let ids = sums.iter().map(|sum| sum.compute(&mut builder.graph)).collect();
            Ok((builder, Numbers::new(profile, "c", ids)))
        }
        AnyLayout::Xor(layout) => of_vectors(layout, place),
        AnyLayout::Composed(composed) => through(composed, place, |number| Expr::from(*number)),
        seen => through(&*seen.launch_composed()?, place, Expr::clone),
    }
}

fn of_numbers(layout: &Layout<Expr>, place: &Variables) -> Result<(GraphBuilder, Numbers), EmitError> {
    let (mut builder, sums) = linear(layout, place, 1, |stride| vec![stride.clone()])?;
    let ids = sums.iter().map(|sum| sum.compute(&mut builder.graph)).collect();
    Ok((builder, Numbers::new(Profile::leaf(), "offset", ids)))
}

fn of_vectors(layout: &Layout<Xor>, place: &Variables) -> Result<(GraphBuilder, Numbers), EmitError> {
    let mut builder = GraphBuilder::new(layout.profile(), place)?;
    let pieces = pieces(layout, &builder.profile)?;
    builder.variables(pieces.iter().map(|piece| Expr::from(piece.size())).collect())?;
    let mut moves = Moves::default();
    for (piece, index) in pieces.iter().zip(builder.variables.clone()) {
        let piece = coalesced(piece, place)?;
        let modes: Vec<(i64, u64)> = piece.leaves().iter().map(|leaf| (leaf.extent, leaf.stride.bits())).collect();
        let index = builder.graph.magnitude(index);
        moves.layout(&mut builder.graph, index, &modes);
    }
    let id = moves.compute(&mut builder.graph);
    Ok((builder, Numbers::new(Profile::leaf(), "offset", vec![id])))
}

/// The image of the bits of one number, which is nonnegative and at most `end`.
fn of_bits(
    place: &Variables,
    end: Option<i128>,
    moved: impl Fn(&mut Moves, Id),
) -> Result<(GraphBuilder, Numbers), EmitError> {
    let mut builder = GraphBuilder::new(&Profile::leaf(), place)?;
    let range = match end {
        None if place.promise() == Promise::Nothing => Range::ALL,
        end => Range { least: Some(0), greatest: end },
    };
    builder.variable(range, Vec::new())?;
    let mut moves = Moves::default();
    for number in &builder.variables {
        moved(&mut moves, *number);
    }
    let id = moves.compute(&mut builder.graph);
    Ok((builder, Numbers::new(Profile::leaf(), "offset", vec![id])))
}

/// The value of a composed layout.
fn through<N: Extent>(
    composed: &Composed<N>,
    place: &Variables,
    expr: fn(&N) -> Expr,
) -> Result<(GraphBuilder, Numbers), EmitError> {
    let inner = with_expressions(composed.inner(), expr)?;
    let (mut builder, sums) = linear(&inner, place, 1, |stride| vec![stride.clone()])?;
    let inner = sums.into_iter().next().unwrap_or_default();
    let value = builder.outer(composed.outer(), &expr(composed.offset()), inner, expr)?;
    let id = value.compute(&mut builder.graph);
    Ok((builder, Numbers::new(Profile::leaf(), "offset", vec![id])))
}

/// The inner products of a layout, as polynomials.
fn linear<D: Stride<Extent = Expr>>(
    layout: &Layout<D>,
    place: &Variables,
    count: usize,
    strides: impl Fn(&D) -> Vec<Expr>,
) -> Result<(GraphBuilder, Vec<EmittedPolynomial>), EmitError> {
    let mut builder = GraphBuilder::new(layout.profile(), place)?;
    let pieces = pieces(layout, &builder.profile)?;
    builder.variables(pieces.iter().map(Layout::size).collect())?;
    let mut all = Vec::new();
    for piece in &pieces {
        all.push(modes(&coalesced(piece, place)?, &strides));
    }
    let sums = builder.inner_products(&all, count)?;
    Ok((builder, sums))
}

/// The layout with the fewest modes that is the same function on the promised domain.
fn coalesced<D: Stride>(layout: &Layout<D>, place: &Variables) -> Result<Layout<D>, EmitError> {
    Ok(match place.promise() {
        Promise::Inside => layout.coalesce()?,
        Promise::NotNegative | Promise::Nothing => layout.coalesce_z()?,
    })
}
