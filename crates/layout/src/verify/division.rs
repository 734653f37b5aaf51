//! Check whether a shape is divisible by a tiler.
//!
//! Law: a tile covers a *block* of consecutive indices: `n` of them for the tile `n:1`, and for a
//! tile with gaps, such as `4:2`, the number that it covers together with its complement, 8. Blocks
//! are placed in a mode from index 0 on. The block is divided by the leaves from the left: a leaf
//! of the mode whose extent divides the rest of the block is inside one block. At the first leaf
//! that does not divide it, or at the last leaf, whole blocks must end:
//!
//! ```text
//! extent = whole * block + remainder,  0 <= remainder < block
//! exact    the quotient is whole, and the remainder must be 0
//! ceil     the quotient is whole, and one more for a remainder, whose block hangs over the end of the mode
//! floor    the quotient is whole, which must not be 0: an extent is positive
//! ```
//!
//! A block that is larger than a leaf, not a multiple of it, and continues in the next leaf fails
//! for every rounding: `(4,6)` by 6 has blocks that begin and end at different positions of the
//! mode of 4, and no shape describes them.
//!
//! So a shape is divisible exactly when every layout of this shape, whatever its strides, composes
//! with the tile and with its copies. The result agrees with the algebra: with `ceil` the quotient
//! is that of [`Tree::ceil_div`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::refusal::error::Fits;
use crate::{Condition, Extent, Layout, LayoutError, Path, Tiler, Tree, Truth};

use super::{In, Verdict};

const OP: &str = "divides";

/// The treatment of a part that is smaller than a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remainder {
    /// It counts as a tile, which extends past the end.
    Ceil,
    /// It is ignored.
    Floor,
    /// It is an error.
    Exact,
}

impl fmt::Display for Remainder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remainder::Ceil => "ceil",
            Remainder::Floor => "floor",
            Remainder::Exact => "exact",
        })
    }
}

/// A leaf that is not a whole number of tiles: `extent = whole * block + remainder`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ragged<N: Extent = i64> {
    /// The leaf of the shape.
    pub path: Path,
    /// Its extent.
    pub extent: N,
    /// The number of consecutive positions of the leaf that a tile covers.
    pub block: N,
    /// The number of whole tiles.
    pub whole: N,
    /// The remainder.
    pub remainder: N,
}

impl<N: Extent> fmt::Display for Ragged<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ragged { path, extent, block, whole, remainder } = self;
        write!(f, "{}extent {extent} is {whole} tiles of {block} and {remainder} more", In(path))
    }
}

/// The result of a division that succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division<N: Extent = i64> {
    /// The rounding.
    pub rounding: Remainder,
    /// The number of tiles, in the nesting of the shape; modes that the tiler does not name stay
    /// unchanged.
    pub quotient: Tree<N>,
    /// The leaves that are not a whole number of tiles. None under [`Remainder::Exact`].
    pub ragged: Vec<Ragged<N>>,
}

impl<N: Extent> fmt::Display for Division<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} division gives {}", self.rounding, self.quotient)?;
        self.ragged.iter().try_for_each(|ragged| write!(f, "; {ragged}"))
    }
}

/// The reason why a shape is not divisible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indivisible<N: Extent = i64> {
    /// Exact division leaves a remainder.
    Remainder(Ragged<N>),
    /// Floor division has no whole tile.
    NoTile(Ragged<N>),
    /// A tile continues from this leaf into the next and does not fill it a whole number of times.
    Straddles {
        /// The requested rounding.
        rounding: Remainder,
        /// The leaf.
        at: Ragged<N>,
    },
    /// The tiler has more modes than the shape there.
    Rank {
        /// The mode.
        path: Path,
        /// The number of modes of the tiler there.
        tilers: usize,
        /// The number of modes of the shape there.
        rank: usize,
    },
    /// The tile of this mode has no complement, so its copies do not cover the mode.
    Tile {
        /// The mode.
        path: Path,
        /// The reason why there is no complement.
        error: Box<LayoutError>,
    },
    /// An extent is not positive.
    Extent {
        /// The leaf.
        path: Path,
        /// Its extent.
        extent: N,
    },
}

impl<N: Extent> fmt::Display for Indivisible<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Indivisible::Remainder(ragged) => write!(f, "exact division: {ragged}"),
            Indivisible::NoTile(ragged) => write!(f, "floor division: {ragged}, so no tile is left"),
            Indivisible::Straddles { rounding, at: Ragged { path, extent, block, .. } } => write!(
                f,
                "{rounding} division: {}a tile takes {block} of extent {extent}, which does not divide {block}, and goes on in the next mode",
                In(path)
            ),
            Indivisible::Rank { path, tilers, rank } => {
                write!(f, "{}the tiler has rank {tilers} and the shape rank {rank}", In(path))
            }
            Indivisible::Tile { path, error } => write!(f, "{}the tile has no complement: {error}", In(path)),
            Indivisible::Extent { path, extent } => write!(f, "{}the extent {extent} is not positive", In(path)),
        }
    }
}

/// The reason why a division stops.
enum DivisionStop<N: Extent> {
    Fails(Indivisible<N>),
    Undecided(LayoutError),
}

impl<N: Extent> From<LayoutError> for DivisionStop<N> {
    fn from(error: LayoutError) -> DivisionStop<N> {
        DivisionStop::Undecided(error)
    }
}

/// Whether a shape is divisible by a tiler, mode by mode. For a shape as the divisor see
/// [`Tiler::from_shape`].
///
/// ```
/// use tilewright_layout::verify::{self, Remainder};
/// use tilewright_layout::{Tiler, Tree};
///
/// let divides = |shape: &str, tiler: &str, rounding| {
///     let (shape, tiler): (Tree<i64>, Tiler) = (shape.parse().unwrap(), tiler.parse().unwrap());
///     verify::divides(&shape, &tiler, rounding).to_string()
/// };
/// assert_eq!(divides("(8,(4,6))", "[4:1;12:1]", Remainder::Exact), "holds: exact division gives (2,(1,2))");
/// assert_eq!(
///     divides("(10,8)", "[4:1;_]", Remainder::Ceil),
///     "holds: ceil division gives (3,8); in mode 0, extent 10 is 2 tiles of 4 and 2 more"
/// );
/// assert_eq!(
///     divides("(4,6)", "6:1", Remainder::Ceil),
///     "fails: ceil division: in mode 0, a tile takes 6 of extent 4, which does not divide 6, and goes on in the next mode"
/// );
/// ```
pub fn divides<N: Extent>(
    shape: &Tree<N>,
    tiler: &Tiler<N>,
    rounding: Remainder,
) -> Verdict<Division<N>, Indivisible<N>> {
    let mut ragged = Vec::new();
    let quotient = positive(shape).and_then(|()| divide(shape, tiler, rounding, &mut Path::new(), &mut ragged));
    match quotient {
        Ok(quotient) => Verdict::Holds(Division { rounding, quotient, ragged }),
        Err(DivisionStop::Fails(indivisible)) => Verdict::Fails(indivisible),
        Err(DivisionStop::Undecided(error)) => Verdict::Undecided(error),
    }
}

fn positive<N: Extent>(shape: &Tree<N>) -> Result<(), DivisionStop<N>> {
    for (leaf, extent) in shape.leaves().iter().enumerate() {
        match N::zero().less(extent) {
            Truth::Proved => {}
            Truth::Refuted => {
                let path = shape.profile().path(leaf);
                return Err(DivisionStop::Fails(Indivisible::Extent { path, extent: extent.clone() }));
            }
            Truth::Open => return Err(LayoutError::open(OP, Condition::Less, &N::zero(), extent).into()),
        }
    }
    Ok(())
}

fn divide<N: Extent>(
    shape: &Tree<N>,
    tiler: &Tiler<N>,
    rounding: Remainder,
    path: &mut Path,
    ragged: &mut Vec<Ragged<N>>,
) -> Result<Tree<N>, DivisionStop<N>> {
    match tiler {
        Tiler::Keep => Ok(shape.clone()),
        Tiler::Layout(tile) => use_up(shape, block(tile, path)?, rounding, path, ragged),
        Tiler::Modes(tilers) => {
            let (tilers, rank) = (tilers.items(), shape.rank());
            if tilers.len() > rank {
                return Err(DivisionStop::Fails(Indivisible::Rank { path: path.clone(), tilers: tilers.len(), rank }));
            }
            let mut quotients = Vec::with_capacity(rank);
            let mut rest = tilers.iter();
            for (position, mode) in shape.modes().enumerate() {
                let Some(tiler) = rest.next() else {
                    quotients.push(mode);
                    continue;
                };
                // A single number is its own only mode and has the empty path.
                if shape.is_leaf() {
                    return divide(&mode, tiler, rounding, path, ragged);
                }
                path.push(position);
                quotients.push(divide(&mode, tiler, rounding, path, ragged)?);
                path.pop();
            }
            if shape.is_leaf() {
                return Ok(shape.clone());
            }
            Ok(Tree::tuple(&quotients)?)
        }
    }
}

/// The number of consecutive indices that a tile and its complement cover.
fn block<N: Extent>(tile: &Layout<N>, path: &Path) -> Result<N, DivisionStop<N>> {
    match tile.complement(&N::one()) {
        Ok(rest) => {
            let block = tile.filter_zeros().size().times(&rest.size());
            Ok(block.fits(OP)?)
        }
        Err(error @ (LayoutError::Overflow { .. } | LayoutError::Open { .. } | LayoutError::Undecided { .. })) => {
            Err(DivisionStop::Undecided(error))
        }
        Err(error) => Err(DivisionStop::Fails(Indivisible::Tile { path: path.clone(), error: Box::new(error) })),
    }
}

/// Divides the leaves from the left by a block.
fn use_up<N: Extent>(
    shape: &Tree<N>,
    block: N,
    rounding: Remainder,
    path: &[usize],
    ragged: &mut Vec<Ragged<N>>,
) -> Result<Tree<N>, DivisionStop<N>> {
    let extents = shape.leaves();
    // In trailing leaves of extent 1 a block cannot continue.
    let last = extents.iter().rposition(|extent| !extent.is_one().proved()).unwrap_or(0);
    let mut block = block;
    let mut quotients = Vec::with_capacity(extents.len());
    for (leaf, extent) in extents.iter().enumerate() {
        if block.is_one().proved() {
            quotients.push(extent.clone());
            continue;
        }
        if leaf < last && extent.divides(&block).proved() {
            block = block.divide(extent).fits(OP)?.0;
            quotients.push(N::one());
            continue;
        }
        let place = || path.iter().copied().chain(shape.profile().path(leaf)).collect();
        quotients.push(quotient(extent, block, leaf == last, rounding, place, ragged)?);
        block = N::one();
    }
    if extents.is_empty() && !block.is_one().proved() {
        quotient(&N::one(), block, true, rounding, || path.to_vec(), ragged)?;
    }
    Ok(Tree::new(shape.profile().clone(), quotients)?)
}

fn quotient<N: Extent>(
    extent: &N,
    block: N,
    last: bool,
    rounding: Remainder,
    path: impl FnOnce() -> Path,
    ragged: &mut Vec<Ragged<N>>,
) -> Result<N, DivisionStop<N>> {
    let (whole, remainder) = if extent.less(&block).proved() {
        (N::zero(), extent.clone())
    } else {
        extent.divide(&block).ok_or_else(|| LayoutError::open(OP, Condition::Divides, &block, extent))?
    };
    match remainder.is_zero() {
        Truth::Proved => return Ok(whole),
        Truth::Refuted => {}
        Truth::Open => return Err(LayoutError::open(OP, Condition::Divides, &block, extent).into()),
    }
    let at = Ragged { path: path(), extent: extent.clone(), block, whole, remainder };
    if !last && !at.block.less(extent).proved() {
        return Err(DivisionStop::Fails(Indivisible::Straddles { rounding, at }));
    }
    let quotient = match rounding {
        Remainder::Exact => return Err(DivisionStop::Fails(Indivisible::Remainder(at))),
        Remainder::Ceil => at.whole.plus(&N::one()).fits(OP)?,
        Remainder::Floor if at.whole.is_zero().proved() => return Err(DivisionStop::Fails(Indivisible::NoTile(at))),
        Remainder::Floor => at.whole.clone(),
    };
    ragged.push(at);
    Ok(quotient)
}
