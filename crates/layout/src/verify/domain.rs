//! Check whether the image of a layout is within the domain of another.
//!
//! Law: the image of the inner layout lies between its least and its greatest offset, and both are
//! values: each is the value at a corner of its domain, where the index of every mode is its first
//! or its last one. So it fits the domain `[0, size)` of the outer layout exactly when these two
//! do; otherwise the corner is the witness. Coordinates fit a shape when their projection on each
//! mode of the shape fits the extent there.

use alloc::vec::Vec;
use core::fmt;

use crate::refusal::error::Fits;
use crate::{Condition, Coordinate, Extent, Layout, LayoutError, Leaf, ModePath, Path, Stride, Tree, Truth};

use super::{At, In, Verdict};

const OP: &str = "fits";

/// The image of the inner layout and the domain that it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit<N: Extent = i64> {
    /// The least offset of the inner layout.
    pub least: N,
    /// Its greatest offset.
    pub greatest: N,
    /// The size of the outer layout.
    pub size: N,
}

impl<N: Extent> fmt::Display for Fit<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fit { least, greatest, size } = self;
        write!(f, "the image of the inner layout lies in [{least},{greatest}], and the outer layout has size {size}")
    }
}

/// A value of the inner layout that is outside the domain of the outer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside<N: Extent = i64> {
    /// A coordinate of the inner layout, one index for each leaf.
    pub coordinate: Tree<N>,
    /// The offset at the coordinate, which is not an index of the outer layout: the least offset if
    /// it is negative, otherwise the greatest.
    pub offset: N,
    /// The size of the outer layout.
    pub size: N,
    /// Whether the offset is negative, rather than past the end of the domain.
    pub below: bool,
}

impl<N: Extent> fmt::Display for Outside<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outside { coordinate, offset, size, below } = self;
        write!(
            f,
            "the image of the inner layout reaches {offset} at coordinate {}, and the domain of ",
            At(coordinate)
        )?;
        if *below {
            return f.write_str("the outer layout begins at 0");
        }
        match size.minus(&N::one()) {
            Some(last) => write!(f, "the outer layout ends at {last}"),
            None => write!(f, "the outer layout has size {size}"),
        }
    }
}

/// Whether every offset of `inner` is an index of `outer`: the condition of the strict composition
/// `outer o inner`.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::Layout;
///
/// let fits = |inner: &str, outer: &str| {
///     let (inner, outer): (Layout, Layout) = (inner.parse().unwrap(), outer.parse().unwrap());
///     verify::fits(&inner, &outer).to_string()
/// };
/// assert_eq!(fits("4:1", "8:2"), "holds: the image of the inner layout lies in [0,3], and the outer layout has size 8");
/// assert_eq!(
///     fits("8:2", "4:1"),
///     "fails: the image of the inner layout reaches 14 at coordinate (7), and the domain of the outer layout ends at 3"
/// );
/// ```
pub fn fits<D: Stride>(inner: &Layout<D::Extent>, outer: &Layout<D>) -> Verdict<Fit<D::Extent>, Outside<D::Extent>> {
    decide(inner, outer.size()).into()
}

/// The reason why coordinates are not within a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutsideShape<N: Extent = i64> {
    /// In one mode of the shape an index is out of range.
    Mode {
        /// The mode of the shape.
        mode: Path,
        /// The coordinate and the index.
        at: Outside<N>,
    },
    /// A stride is in a mode that the shape does not have, or that is a tuple.
    NoMode {
        /// The leaf of the inner layout.
        leaf: Path,
        /// Its stride.
        stride: Coordinate<N>,
    },
}

impl<N: Extent> fmt::Display for OutsideShape<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutsideShape::Mode { mode, at: Outside { coordinate, offset, size, below } } => {
                write!(
                    f,
                    "{}the image of the inner layout reaches {offset} at coordinate {}, ",
                    In(mode),
                    At(coordinate)
                )?;
                if *below { f.write_str("before the first index, 0") } else { write!(f, "and the extent is {size}") }
            }
            OutsideShape::NoMode { leaf, stride } => {
                write!(f, "{}the inner layout has stride {stride}, which leads to no extent of the shape", In(leaf))
            }
        }
    }
}

/// Whether every coordinate that is a value of `inner` is inside a shape; the result is the range
/// of the indices in each leaf.
///
/// This is the boundary check of a tensor whose coordinates are the values of a layout with strides
/// such as `1@0`.
///
/// ```
/// use tilewright_layout::verify;
/// use tilewright_layout::{Coordinate, Layout, Tree};
///
/// let fits = |inner: &str, shape: &str| {
///     let (inner, shape): (Layout<Coordinate>, Tree<i64>) = (inner.parse().unwrap(), shape.parse().unwrap());
///     verify::fits_shape(&inner, &shape)
/// };
/// assert!(fits("(16,8):(1@0,1@1)", "(16,64)").holds());
/// assert_eq!(
///     fits("(16,8):(1@0,9@1)", "(16,60)").failure().unwrap().to_string(),
///     "in mode 1, the image of the inner layout reaches 63 at coordinate (0,7), and the extent is 60"
/// );
/// ```
pub fn fits_shape<N: Extent>(inner: &Layout<Coordinate<N>>, shape: &Tree<N>) -> Verdict<Vec<Fit<N>>, OutsideShape<N>> {
    decide_shape(inner, shape).into()
}

fn decide_shape<N: Extent>(
    inner: &Layout<Coordinate<N>>,
    shape: &Tree<N>,
) -> Result<Result<Vec<Fit<N>>, OutsideShape<N>>, LayoutError> {
    for (leaf, Leaf { extent, stride }) in inner.leaves().iter().enumerate() {
        if !extent.is_one().proved() && stride.in_profile(shape.profile()).is_err() {
            let (leaf, stride) = (inner.profile().path(leaf), stride.clone());
            return Ok(Err(OutsideShape::NoMode { leaf, stride }));
        }
    }
    let mut fits = Vec::with_capacity(shape.leaves().len());
    for (leaf, extent) in shape.leaves().iter().enumerate() {
        let mode = shape.profile().path(leaf);
        let path = ModePath::new(&mode)?;
        let projection =
            inner.tree().map(|leaf| Leaf { extent: leaf.extent.clone(), stride: leaf.stride.scale_at(path) });
        match decide(&Layout::from_tree(projection)?, extent.clone())? {
            Ok(fit) => fits.push(fit),
            Err(at) => return Ok(Err(OutsideShape::Mode { mode, at })),
        }
    }
    Ok(Ok(fits))
}

fn decide<N: Extent>(inner: &Layout<N>, size: N) -> Result<Result<Fit<N>, Outside<N>>, LayoutError> {
    let (least, greatest) = inner.range()?;
    let below = match least.less(&N::zero()) {
        Truth::Proved => true,
        Truth::Refuted => false,
        Truth::Open => return Err(LayoutError::open(OP, Condition::AtMost, &N::zero(), &least)),
    };
    if !below {
        match greatest.less(&size) {
            Truth::Proved => return Ok(Ok(Fit { least, greatest, size })),
            Truth::Refuted => {}
            Truth::Open => return Err(LayoutError::open(OP, Condition::Less, &greatest, &size)),
        }
    }
    let corner = inner.tree().try_map(|leaf| {
        let last = leaf.extent.minus(&N::one()).fits(OP)?;
        let outward = if below { leaf.stride.less(&N::zero()) } else { N::zero().less(&leaf.stride) };
        Ok::<N, LayoutError>(if outward.proved() { last } else { N::zero() })
    })?;
    let offset = if below { least } else { greatest };
    Ok(Err(Outside { coordinate: corner, offset, size, below }))
}
