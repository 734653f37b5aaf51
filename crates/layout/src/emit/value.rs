//! The computations: the value of a map, the coordinate of an index, and whether a value is within
//! bounds.
//!
//! Law: the value of a computation is that of the library: [`Layout::eval_at`] at the coordinate
//! that the variables form, `idx2crd` of that coordinate, and `0 <= value < bound` in every number
//! of the value.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::emit::builder::GraphBuilder;
use crate::emit::builder::Numbers;
use crate::emit::computation::Computation;
use crate::emit::error::EmitError;
use crate::emit::evaluation::{evaluated, scales};
use crate::emit::map::Map;
use crate::emit::place::{Promise, Variables, pieces};
use crate::symbolic::Expr;
use crate::{AnyLayout, Extent, Layout, Profile, Stride, Tree, Truth};

/// The value of a map at a coordinate: the result `offset`, or `c0`, `c1`, .. if the value is a
/// coordinate.
///
/// Errors: the coordinate does not fit the shape; the names do not; a number is not representable.
///
/// ```
/// use tilewright_layout::emit::{Language, Map, Style, Variables, value};
/// use tilewright_layout::{Layout, Tiler, symbolic::Expr};
///
/// let matrix: Layout<Expr> = "(M{div=128},K):(K,1)".parse().unwrap();
/// let tiler: Tiler<Expr> = "[128:1;64:1]".parse().unwrap();
/// let tiled = matrix.zipped_divide(&tiler).unwrap();
/// let offset = value(&tiled.into(), &Variables::leaves()).unwrap();
/// assert_eq!(offset.expression(Style::new(Language::Cuda)).unwrap(), "(i0_0 + i1_0 * 128) * K + i0_1 + i1_1 * 64");
/// ```
pub fn value(map: &Map, place: &Variables) -> Result<Computation, EmitError> {
    let (builder, numbers) = evaluated(map, place)?;
    Ok(builder.computation(numbers))
}

/// The natural coordinate of an index, or of any coordinate, in a shape (CuTe `idx2crd`): the
/// results `c0`, `c1`, ..
///
/// Errors: as [`value`]; an extent is not positive.
///
/// ```
/// use tilewright_layout::emit::{Language, Style, Variables, coordinate};
/// use tilewright_layout::{Tree, symbolic::Expr};
///
/// let shape: Tree<Expr> = "(8,(M,N))".parse().unwrap();
/// let digits = coordinate(&shape, &Variables::index()).unwrap();
/// let python = digits.function("idx2crd", Style::new(Language::Python)).unwrap();
/// assert_eq!(python, "\
/// def idx2crd(i, M):
///     t0 = i >> 3
///     q0 = t0 // M
///     return (i & 7, (t0 - q0 * M, q0))
/// ");
/// ```
pub fn coordinate(shape: &Tree<Expr>, place: &Variables) -> Result<Computation, EmitError> {
    let layout = Layout::compact(shape)?;
    let mut builder = GraphBuilder::new(layout.profile(), place)?;
    let pieces = pieces(&layout, &builder.profile)?;
    let count = layout.leaves().len();
    let mut modes = Vec::new();
    let mut leaf = 0;
    for piece in &pieces {
        let mut own = Vec::new();
        for part in piece.leaves() {
            // Within the shape, the index of an extent of 1 is 0.
            let counts = place.promise() != Promise::Inside || !part.extent.is_one().proved();
            let unit = |number| Expr::from(i64::from(number == leaf && counts));
            if counts {
                own.push((part.extent.clone(), (0..count).map(unit).collect()));
            }
            leaf += 1;
        }
        modes.push(own);
    }
    let sizes = pieces.iter().map(Layout::size).collect();
    builder.variables(sizes)?;
    let numbers = builder.inner_products(&modes, count)?;
    let ids = numbers.iter().map(|number| number.compute(&mut builder.graph)).collect();
    Ok(builder.computation(Numbers::new(layout.profile().clone(), "c", ids)))
}

/// Whether every number of a value is within bounds, `0 <= number < bound`: the result `inside`.
/// Conditions that the facts and the shape imply are omitted.
///
/// `bounds` has a leaf for each number of the value. Bounds of a coordinate may have more modes
/// than the strides step in; in these the index is 0.
///
/// Errors: as [`value`]; the number of bounds is not that of the numbers.
///
/// ```
/// use tilewright_layout::emit::{Language, Style, Variables, inside};
/// use tilewright_layout::{Coordinate, Layout, Tiler, Tree, symbolic::Expr};
///
/// // Coordinates of a matrix, in tiles of 128 x 64. The last column of tiles is partial, the last
/// // row is not.
/// let shape: Tree<Expr> = "(M{div=128},K)".parse().unwrap();
/// let tiler: Tiler<Expr> = "[128:1;64:1]".parse().unwrap();
/// let rows: Layout<Coordinate<Expr>> = Layout::identity(&shape).unwrap();
/// let tiled = rows.zipped_divide(&tiler).unwrap();
/// let inside = inside(&tiled.into(), &shape, &Variables::leaves()).unwrap();
/// assert_eq!(inside.expression(Style::new(Language::C)).unwrap(), "i0_1 + i1_1 * 64 < K");
/// ```
pub fn inside(map: &Map, bounds: &Tree<Expr>, place: &Variables) -> Result<Computation, EmitError> {
    let (mut builder, numbers) = evaluated(map, place)?;
    let count = numbers.ids.len();
    let number_of = bounded(map, bounds, count)?;
    let reach = match (map, place.promise()) {
        (Map::Layout(AnyLayout::Coordinate(layout)), Promise::Inside) => {
            let profile = layout.coprofile()?;
            reach(layout, |stride| scales(stride, &profile), count)
        }
        (Map::Layout(layout), Promise::Inside) => match layout.launch() {
            Some(layout) => reach(&layout, |stride| vec![stride.clone()], count),
            None => vec![(None, None); count],
        },
        _ => vec![(None, None); count],
    };
    let mut all = builder.graph.truth(true);
    for (number, bound) in number_of.iter().zip(bounds.leaves()) {
        // In a mode in which no stride steps the index is 0, which is within its extent.
        let Some(number) = number else { continue };
        let (Some(id), Some((least, greatest))) = (numbers.ids.get(*number), reach.get(*number)) else { continue };
        if !least.as_ref().is_some_and(|least| least.less(&Expr::from(0)).refuted()) {
            let above = builder.graph.not_negative(*id);
            all = builder.graph.both(all, above);
        }
        if !greatest.as_ref().is_some_and(|greatest| greatest.less(bound).proved()) {
            let bound = builder.parameters.polynomial(&mut builder.graph, bound)?.compute(&mut builder.graph);
            let below = builder.graph.less(*id, bound);
            all = builder.graph.both(all, below);
        }
    }
    Ok(builder.computation(Numbers { profile: Profile::leaf(), names: vec!["inside".to_string()], ids: vec![all] }))
}

/// The number of the value that each bound limits; None for a mode of the bounds in which no stride
/// of a coordinate layout steps.
fn bounded(map: &Map, bounds: &Tree<Expr>, count: usize) -> Result<Vec<Option<usize>>, EmitError> {
    let mismatch = || EmitError::Bounds { given: bounds.leaves().len(), numbers: count };
    if bounds.leaves().len() == count {
        return Ok((0..count).map(Some).collect());
    }
    let profile = match map {
        Map::Layout(AnyLayout::Coordinate(layout)) => layout.coprofile()?,
        _ => return Err(mismatch()),
    };
    let mut found = Vec::new();
    let numbers = Tree::new(profile, 0..count as i64).map_err(|_| mismatch())?;
    if match_modes(Some(&numbers), bounds, &mut found) { Ok(found) } else { Err(mismatch()) }
}

/// Appends the number for each leaf of the bounds. Returns false if a number has another nesting or
/// no bound.
fn match_modes(numbers: Option<&Tree<i64>>, bounds: &Tree<Expr>, found: &mut Vec<Option<usize>>) -> bool {
    let Some(numbers) = numbers else {
        found.extend(bounds.leaves().iter().map(|_| None));
        return true;
    };
    if numbers.is_leaf() || bounds.is_leaf() {
        found.extend(numbers.leaves().iter().map(|number| usize::try_from(*number).ok()));
        return numbers.is_leaf() == bounds.is_leaf();
    }
    let modes: Vec<Tree<i64>> = numbers.modes().collect();
    modes.len() <= bounds.rank()
        && bounds.modes().enumerate().all(|(position, bound)| match_modes(modes.get(position), &bound, found))
}

/// The least and the greatest value of each number over the whole domain; None if the sign of a
/// stride is not known.
fn reach<D: Stride<Extent = Expr>>(
    layout: &Layout<D>,
    strides: impl Fn(&D) -> Vec<Expr>,
    count: usize,
) -> Vec<(Option<Expr>, Option<Expr>)> {
    let zero = Expr::from(0);
    let mut ends = vec![(Some(zero.clone()), Some(zero.clone())); count];
    for leaf in layout.leaves() {
        for (stride, (least, greatest)) in strides(&leaf.stride).iter().zip(&mut ends) {
            let reach = leaf.extent.minus(&Expr::from(1)).and_then(|last| stride.times(&last));
            let farther = |end: &Option<Expr>| end.as_ref()?.plus(reach.as_ref()?);
            match stride.less(&zero) {
                Truth::Proved => *least = farther(least),
                Truth::Refuted => *greatest = farther(greatest),
                Truth::Open => (*least, *greatest) = (None, None),
            }
        }
    }
    ends
}
