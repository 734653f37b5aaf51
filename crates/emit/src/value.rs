//! The computations: the value of a map, the coordinate of an index, and whether a value is within bounds.
//!
//! Law: the value of a computation is what the library gives: [`Layout::eval_at`] at the coordinate that the variables make up, `idx2crd` of that coordinate, and `0 <= value < bound`
//! in every number of the value.

use tilewright_layout::symbolic::{Expr, Parameter, Symbolic};
use tilewright_layout::{Composed, Coordinate, Extent, Layout, Leaf, OuterMap, Profile, Stride, Tree, Truth};

use crate::bits::Moves;
use crate::computation::{Computation, Output};
use crate::division::divide;
use crate::error::EmitError;
use crate::expression::{Parameters, unbounded};
use crate::graph::{Graph, Id, Variable};
use crate::map::Map;
use crate::place::{Place, Promise, named_by_path, pieces};
use crate::polynomial::Polynomial;
use crate::range::Range;

/// The most leaves of a layout, after coalescing, and the most numbers of a value.
const MAX_LEAVES: usize = 256;

/// The value of a map at a coordinate: the result `offset`, or `c0`, `c1`, .. where the value is a coordinate.
///
/// Errors: the coordinate does not fit the shape; the names do not; a number is not representable.
///
/// ```
/// use tilewright_emit::{Language, Map, Place, Style, value};
/// use tilewright_layout::{Layout, Tiler, symbolic::Expr};
///
/// let matrix: Layout<Expr> = "(M{div=128},K):(K,1)".parse().unwrap();
/// let tiler: Tiler<Expr> = "[128:1;64:1]".parse().unwrap();
/// let tiled = matrix.zipped_divide(&tiler).unwrap();
/// let offset = value(&tiled.into(), &Place::leaves()).unwrap();
/// assert_eq!(offset.expression(Style::new(Language::Cuda)).unwrap(), "(i0_0 + i1_0 * 128) * K + i0_1 + i1_1 * 64");
/// ```
pub fn value(map: &Map, place: &Place) -> Result<Computation, EmitError> {
    let (builder, numbers) = evaluated(map, place)?;
    Ok(builder.computation(numbers))
}

/// The natural coordinate of an index, or of any coordinate, in a shape (CuTe `idx2crd`): the results `c0`, `c1`, ..
///
/// Errors: as [`value`]; an extent is not positive.
///
/// ```
/// use tilewright_emit::{Language, Place, Style, coordinate};
/// use tilewright_layout::{Tree, symbolic::Expr};
///
/// let shape: Tree<Expr> = "(8,(M,N))".parse().unwrap();
/// let digits = coordinate(&shape, &Place::index()).unwrap();
/// let python = digits.function("idx2crd", Style::new(Language::Python)).unwrap();
/// assert_eq!(python, "\
/// def idx2crd(i, M):
///     t0 = i >> 3
///     q0 = t0 // M
///     return (i & 7, (t0 - q0 * M, q0))
/// ");
/// ```
pub fn coordinate(shape: &Tree<Expr>, place: &Place) -> Result<Computation, EmitError> {
    let layout = Layout::compact(shape)?;
    let mut builder = Builder::new(layout.profile(), place)?;
    let pieces = pieces(&layout, &builder.profile)?;
    let count = layout.leaves().len();
    let mut modes = Vec::new();
    let mut leaf = 0;
    for piece in &pieces {
        let mut own = Vec::new();
        for part in piece.leaves() {
            // Inside a shape the index of an extent of 1 is 0.
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
    let ids = numbers.iter().map(|number| number.made(&mut builder.graph)).collect();
    Ok(builder.computation(Numbers::new(layout.profile().clone(), "c", ids)))
}

/// Whether every number of a value is within bounds, `0 <= number < bound`: the result `inside`. What the facts and the shape show is left out.
///
/// `bounds` has a leaf for each number of the value.
///
/// Errors: as [`value`]; another number of bounds than of numbers.
///
/// ```
/// use tilewright_emit::{Language, Place, Style, inside};
/// use tilewright_layout::{Coordinate, Layout, Tiler, Tree, symbolic::Expr};
///
/// // Coordinates of a matrix, in tiles of 128 x 64. The last column of tiles is ragged, the last row is not.
/// let shape: Tree<Expr> = "(M{div=128},K)".parse().unwrap();
/// let tiler: Tiler<Expr> = "[128:1;64:1]".parse().unwrap();
/// let rows: Layout<Coordinate<Expr>> = Layout::identity(&shape).unwrap();
/// let tiled = rows.zipped_divide(&tiler).unwrap();
/// let inside = inside(&tiled.into(), &shape, &Place::leaves()).unwrap();
/// assert_eq!(inside.expression(Style::new(Language::C)).unwrap(), "i0_1 + i1_1 * 64 < K");
/// ```
pub fn inside(map: &Map, bounds: &Tree<Expr>, place: &Place) -> Result<Computation, EmitError> {
    let (mut builder, numbers) = evaluated(map, place)?;
    let count = numbers.ids.len();
    if bounds.leaves().len() != count {
        return Err(EmitError::Bounds { given: bounds.leaves().len(), numbers: count });
    }
    let reach = match (map, place.promise()) {
        (Map::Layout(layout), Promise::Inside) => reach(layout, |stride| vec![stride.clone()], count),
        (Map::Coordinate(layout), Promise::Inside) => {
            let profile = layout.coprofile()?;
            reach(&symbolic(layout)?, |stride| scales(stride, &profile), count)
        }
        (Map::SymbolCoordinate(layout), Promise::Inside) => {
            let profile = layout.coprofile()?;
            reach(layout, |stride| scales(stride, &profile), count)
        }
        _ => vec![(None, None); count],
    };
    let mut all = builder.graph.truth(true);
    for ((id, bound), (least, greatest)) in numbers.ids.iter().zip(bounds.leaves()).zip(reach) {
        if !least.is_some_and(|least| least.less(&Expr::from(0)).refuted()) {
            let above = builder.graph.not_negative(*id);
            all = builder.graph.both(all, above);
        }
        if !greatest.is_some_and(|greatest| greatest.less(bound).proved()) {
            let bound = builder.parameters.polynomial(&mut builder.graph, bound)?.made(&mut builder.graph);
            let below = builder.graph.less(*id, bound);
            all = builder.graph.both(all, below);
        }
    }
    Ok(builder.computation(Numbers { profile: Profile::leaf(), names: vec!["inside".to_string()], ids: vec![all] }))
}

/// The least and the greatest value of each number over the whole domain, where the signs of the strides are known.
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

/// The same layout, of expressions.
fn symbolic(layout: &Layout<Coordinate>) -> Result<Layout<Coordinate<Expr>>, EmitError> {
    let leaf = |leaf: &Leaf<Coordinate>| {
        let mut terms = leaf.stride.terms().map(|(path, scale)| Coordinate::step(Expr::from(*scale), path));
        let stride = terms.try_fold(Coordinate::zero(), |sum, term| sum.plus(&term));
        let stride = stride.ok_or(EmitError::TooLarge { what: "an expression" })?;
        Ok::<_, EmitError>(Leaf { extent: Expr::from(leaf.extent), stride })
    };
    Ok(Layout::from_tree(layout.tree().try_map(leaf)?)?)
}

/// The scale of a step in each leaf of the codomain.
fn scales(stride: &Coordinate<Expr>, profile: &Profile) -> Vec<Expr> {
    stride.in_profile(profile).map(|tree| tree.leaves().to_vec()).unwrap_or_default()
}

/// The numbers of a value.
struct Numbers {
    profile: Profile,
    names: Vec<String>,
    ids: Vec<Id>,
}

impl Numbers {
    fn new(profile: Profile, stem: &str, ids: Vec<Id>) -> Numbers {
        let names = (0..profile.leaves()).map(|leaf| named_by_path(stem, &profile.path(leaf))).collect();
        Numbers { profile, names, ids }
    }
}

fn evaluated(map: &Map, place: &Place) -> Result<(Builder, Numbers), EmitError> {
    match map {
        Map::Layout(layout) => {
            let (mut builder, sums) = linear(layout, place, 1, |stride| vec![stride.clone()])?;
            let ids = sums.iter().map(|sum| sum.made(&mut builder.graph)).collect();
            Ok((builder, Numbers::new(Profile::leaf(), "offset", ids)))
        }
        Map::Coordinate(layout) => evaluated(&Map::SymbolCoordinate(symbolic(layout)?), place),
        Map::SymbolCoordinate(layout) => {
            let profile = layout.coprofile()?;
            let (mut builder, sums) = linear(layout, place, profile.leaves(), |stride| scales(stride, &profile))?;
            let ids = sums.iter().map(|sum| sum.made(&mut builder.graph)).collect();
            Ok((builder, Numbers::new(profile, "c", ids)))
        }
        Map::Xor(layout) => {
            let mut builder = Builder::new(layout.profile(), place)?;
            let pieces = pieces(layout, &builder.profile)?;
            builder.variables(pieces.iter().map(|piece| Expr::from(piece.size())).collect())?;
            let mut moves = Moves::default();
            for (piece, index) in pieces.iter().zip(builder.variables.clone()) {
                let piece = coalesced(piece, place)?;
                let modes: Vec<(i64, u64)> =
                    piece.leaves().iter().map(|leaf| (leaf.extent, leaf.stride.bits())).collect();
                let index = builder.graph.magnitude(index);
                moves.layout(&mut builder.graph, index, &modes);
            }
            let id = moves.made(&mut builder.graph);
            Ok((builder, Numbers::new(Profile::leaf(), "offset", vec![id])))
        }
        Map::Swizzle(swizzle) => of_bits(place, None, |moves, offset| moves.swizzle(offset, *swizzle)),
        Map::Matrix(matrix) => {
            // A matrix that is not square has no values above.
            let square = matrix.inputs() == matrix.outputs();
            let end = (!square || place.promise() == Promise::Inside).then(|| (1_i128 << matrix.inputs()) - 1);
            of_bits(place, end, |moves, number| moves.matrix(number, matrix))
        }
        Map::Composed(composed) => through(composed, place, |number| Expr::from(*number)),
        Map::SymbolComposed(composed) => through(composed, place, Expr::clone),
    }
}

/// What happens to the bits of one number, which is not above `end` and then not negative.
fn of_bits(place: &Place, end: Option<i128>, moved: impl Fn(&mut Moves, Id)) -> Result<(Builder, Numbers), EmitError> {
    let mut builder = Builder::new(&Profile::leaf(), place)?;
    let range = match end {
        None if place.promise() == Promise::Nothing => Range::ALL,
        end => Range { least: Some(0), greatest: end },
    };
    builder.variable(range, Vec::new())?;
    let mut moves = Moves::default();
    for number in &builder.variables {
        moved(&mut moves, *number);
    }
    let id = moves.made(&mut builder.graph);
    Ok((builder, Numbers::new(Profile::leaf(), "offset", vec![id])))
}

/// The value of a composed layout.
fn through<N: Extent>(
    composed: &Composed<N>,
    place: &Place,
    expr: fn(&N) -> Expr,
) -> Result<(Builder, Numbers), EmitError> {
    let inner = with_expressions(composed.inner(), expr)?;
    let (mut builder, sums) = linear(&inner, place, 1, |stride| vec![stride.clone()])?;
    let inner = sums.into_iter().next().unwrap_or_default();
    let value = builder.outer(composed.outer(), &expr(composed.offset()), inner, expr)?;
    let id = value.made(&mut builder.graph);
    Ok((builder, Numbers::new(Profile::leaf(), "offset", vec![id])))
}

fn with_expressions<N: Extent>(layout: &Layout<N>, expr: fn(&N) -> Expr) -> Result<Layout<Expr>, EmitError> {
    let leaf = |leaf: &Leaf<N>| Leaf { extent: expr(&leaf.extent), stride: expr(&leaf.stride) };
    Ok(Layout::from_tree(layout.tree().map(leaf))?)
}

/// The inner products of a layout, as polynomials.
fn linear<D: Stride<Extent = Expr>>(
    layout: &Layout<D>,
    place: &Place,
    count: usize,
    strides: impl Fn(&D) -> Vec<Expr>,
) -> Result<(Builder, Vec<Polynomial>), EmitError> {
    let mut builder = Builder::new(layout.profile(), place)?;
    let pieces = pieces(layout, &builder.profile)?;
    builder.variables(pieces.iter().map(Layout::size).collect())?;
    let mut all = Vec::new();
    for piece in &pieces {
        all.push(modes(&coalesced(piece, place)?, &strides));
    }
    let sums = builder.inner_products(&all, count)?;
    Ok((builder, sums))
}

/// The same function with the fewest modes: of the indices that the promise admits.
fn coalesced<D: Stride>(layout: &Layout<D>, place: &Place) -> Result<Layout<D>, EmitError> {
    Ok(match place.promise() {
        Promise::Inside => layout.coalesce()?,
        Promise::NotNegative | Promise::Nothing => layout.coalesce_z()?,
    })
}

/// A mode: its extent, and its stride in every number of the value.
type Mode = (Expr, Vec<Expr>);

fn modes<D: Stride<Extent = Expr>>(layout: &Layout<D>, strides: impl Fn(&D) -> Vec<Expr>) -> Vec<Mode> {
    layout.leaves().iter().map(|leaf| (leaf.extent.clone(), strides(&leaf.stride))).collect()
}

/// A computation in the making.
struct Builder {
    graph: Graph,
    parameters: Parameters,
    /// The coordinate that the variables make up.
    profile: Profile,
    names: Vec<String>,
    promise: Promise,
    variables: Vec<Id>,
}

impl Builder {
    fn new(shape: &Profile, place: &Place) -> Result<Builder, EmitError> {
        let profile = place.in_shape(shape)?;
        if profile.leaves() > MAX_LEAVES {
            return Err(EmitError::TooLarge { what: "a coordinate" });
        }
        let names = place.names(&profile)?;
        let (graph, parameters, variables) = (Graph::default(), Parameters::default(), Vec::new());
        Ok(Builder { graph, parameters, profile, names, promise: place.promise(), variables })
    }

    /// The variables, indices into parts of these sizes.
    fn variables(&mut self, sizes: Vec<Expr>) -> Result<(), EmitError> {
        for size in sizes {
            let (_, largest) = size.range();
            let open = size.parameters().iter().filter_map(unbounded).map(Parameter::to_string).collect();
            match self.promise {
                Promise::Inside => self.variable(Range::of(Some(0), largest.map(|size| size - 1)), open)?,
                Promise::NotNegative => self.variable(Range::of(Some(0), None), Vec::new())?,
                Promise::Nothing => self.variable(Range::ALL, Vec::new())?,
            }
        }
        Ok(())
    }

    fn variable(&mut self, range: Range, open: Vec<String>) -> Result<(), EmitError> {
        let name = self.names.get(self.variables.len()).cloned().unwrap_or_default();
        if self.graph.variables().iter().any(|own| own.name == name) {
            return Err(EmitError::NameTwice { name });
        }
        let id = self.graph.variable(Variable { name, range, divisor: 1, open });
        self.variables.push(id);
        Ok(())
    }

    /// The sums over all modes of every variable.
    fn inner_products(&mut self, modes: &[Vec<Mode>], count: usize) -> Result<Vec<Polynomial>, EmitError> {
        if count > MAX_LEAVES || modes.iter().map(Vec::len).sum::<usize>() > MAX_LEAVES {
            return Err(EmitError::TooLarge { what: "the layout" });
        }
        let mut digits = Vec::new();
        for (modes, index) in modes.iter().zip(self.variables.clone()) {
            let index = Polynomial::of(&self.graph, index);
            digits.extend(self.digits(index, modes)?);
        }
        self.products(digits, count)
    }

    /// The digits of an index in the mixed radix of the extents, the last one unbounded, each with the strides that it counts. A digit that
    /// nothing counts is not computed.
    fn digits<'a>(&mut self, index: Polynomial, modes: &'a [Mode]) -> Result<Vec<(Polynomial, &'a [Expr])>, EmitError> {
        let too_large = || EmitError::TooLarge { what: "an expression" };
        let mut digits = Vec::new();
        // The digits so far take the index modulo `passed`; `rest` is still to be divided by that.
        let (mut rest, mut passed) = (index, Expr::from(1));
        for (place, (extent, strides)) in modes.iter().enumerate() {
            let last = place + 1 == modes.len();
            if strides.iter().all(|stride| stride.is_zero().proved()) {
                if !last {
                    passed = passed.times(extent).ok_or_else(too_large)?;
                }
                continue;
            }
            for by in self.steps(&rest, &passed)? {
                (rest, _) = divide(&mut self.graph, &rest, &by).ok_or_else(too_large)?;
            }
            if last {
                digits.push((rest.clone(), strides.as_slice()));
                continue;
            }
            let by = self.parameters.polynomial(&mut self.graph, extent)?;
            let (_, digit) = divide(&mut self.graph, &rest, &by).ok_or_else(too_large)?;
            digits.push((digit, strides.as_slice()));
            passed = extent.clone();
        }
        Ok(digits)
    }

    /// By what to divide, one after the other: a shift is less than a product.
    fn steps(&mut self, rest: &Polynomial, by: &Expr) -> Result<Vec<Polynomial>, EmitError> {
        let whole = self.parameters.polynomial(&mut self.graph, by)?;
        let power = match whole.single() {
            Some((factors, size)) if !factors.is_empty() && rest.range(&self.graph).not_negative() => {
                let power = 1 << size.trailing_zeros().min(62);
                Some([Polynomial::constant(power), Polynomial::term(factors.clone(), size / power)])
            }
            _ => None,
        };
        Ok(power.map_or(vec![whole], Vec::from))
    }

    /// The sums of digits times strides.
    fn products(&mut self, digits: Vec<(Polynomial, &[Expr])>, count: usize) -> Result<Vec<Polynomial>, EmitError> {
        let too_large = || EmitError::TooLarge { what: "an expression" };
        let mut sums = vec![Polynomial::default(); count];
        for (digit, strides) in digits {
            for (stride, sum) in strides.iter().zip(&mut sums).filter(|(stride, _)| !stride.is_zero().proved()) {
                let stride = self.parameters.polynomial(&mut self.graph, stride)?;
                let product = digit.times(&stride).ok_or_else(too_large)?;
                *sum = std::mem::take(sum).plus(&product).ok_or_else(too_large)?;
            }
        }
        Ok(sums)
    }

    /// `map(offset + value)`.
    fn outer<N: Extent>(
        &mut self,
        map: &OuterMap<N>,
        offset: &Expr,
        value: Polynomial,
        expr: fn(&N) -> Expr,
    ) -> Result<Polynomial, EmitError> {
        let offset = self.parameters.polynomial(&mut self.graph, offset)?;
        let value = value.plus(&offset).ok_or(EmitError::TooLarge { what: "an expression" })?;
        let mut moves = Moves::default();
        match map {
            OuterMap::Layout(layout) => {
                let layout = with_expressions(&layout.coalesce_z()?, expr)?;
                let modes = modes(&layout, |stride| vec![stride.clone()]);
                let digits = self.digits(value, &modes)?;
                return Ok(self.products(digits, 1)?.into_iter().next().unwrap_or_default());
            }
            OuterMap::Chain(chain) => {
                let first = self.outer(chain.inner(), &Expr::from(0), value, expr)?;
                return self.outer(chain.outer(), &expr(chain.offset()), first, expr);
            }
            OuterMap::Swizzle(swizzle) => moves.swizzle(value.made(&mut self.graph), *swizzle),
            OuterMap::Bits(matrix) => moves.matrix(value.made(&mut self.graph), matrix),
        }
        let id = moves.made(&mut self.graph);
        Ok(Polynomial::of(&self.graph, id))
    }

    fn computation(self, numbers: Numbers) -> Computation {
        let outputs = numbers.names.into_iter().zip(numbers.ids).map(|(name, id)| Output { name, id }).collect();
        Computation::new(self.graph, self.variables.len(), outputs, numbers.profile)
    }
}
