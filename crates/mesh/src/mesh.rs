//! Meshes: devices in a grid with named axes.
//!
//! Law: a mesh is a layout from coordinates along its axes to ranks, and a bijection onto
//! `0..size`: each device has one coordinate and one rank.
//!
//! ```text
//! mesh := axis { ',' axis }
//! axis := name '=' extent [ ':' stride ]     strides for all axes or for none
//! ```
//!
//! Without strides the first axis is the fastest, as in every layout here: in `dp=2,tp=4` the rank
//! is `dp + 2*tp`. In meshes of JAX and PyTorch the last axis is the fastest: `dp=2:4,tp=4:1`.

use std::fmt;
use std::str::FromStr;

use tilewright_layout::{Layout, Leaf, Tree};

use crate::error::MeshError;
use crate::limits::{MAX_AXES, MAX_DEVICES};

/// An axis: its name, and the number of devices along it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The name: letters, digits and `_`, not beginning with a digit.
    pub name: String,
    /// The number of devices along it.
    pub extent: i64,
}

/// Devices in a grid with named axes.
///
/// ```
/// use tilewright_mesh::Mesh;
///
/// let mesh: Mesh = "dp=2,tp=4".parse().unwrap();
/// assert_eq!((mesh.size(), mesh.rank(&[1, 3]), mesh.coordinate(7)), (8, Some(7), vec![1, 3]));
/// let rows: Mesh = "dp=2:4,tp=4:1".parse().unwrap(); // as JAX and PyTorch number them
/// assert_eq!(rows.rank(&[1, 3]), Some(7));
/// assert_eq!(rows.rank(&[1, 0]), Some(4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mesh {
    axes: Vec<Axis>,
    /// The layout from coordinates to ranks.
    ranks: Layout,
    /// The coordinates of all ranks, one after the other.
    coordinates: Vec<i64>,
}

impl Mesh {
    /// The mesh with these axes, the first axis fastest.
    ///
    /// Errors: no axis, or more than [`MAX_AXES`]; an invalid or repeated name; an extent that is
    /// not positive; more than [`MAX_DEVICES`] devices.
    pub fn new<'a>(axes: impl IntoIterator<Item = (&'a str, i64)>) -> Result<Mesh, MeshError> {
        let mut step = 1_i64;
        let with_steps = axes.into_iter().map(|(name, extent)| {
            let axis = (name, extent, step);
            step = step.saturating_mul(extent.max(1));
            axis
        });
        Mesh::with_ranks(with_steps)
    }

    /// The mesh with these axes, the last axis fastest, as JAX and PyTorch number devices.
    ///
    /// Errors: those of [`Mesh::new`].
    ///
    /// ```
    /// use tilewright_mesh::Mesh;
    ///
    /// assert_eq!(Mesh::row_major(&[("dp", 2), ("tp", 4)]).unwrap().to_string(), "dp=2:4,tp=4:1");
    /// ```
    pub fn row_major(axes: &[(&str, i64)]) -> Result<Mesh, MeshError> {
        let step = |at: usize| {
            let after = axes.get(at + 1..).unwrap_or_default();
            after.iter().fold(1_i64, |step, (_, extent)| step.saturating_mul((*extent).max(1)))
        };
        Mesh::with_ranks(axes.iter().enumerate().map(|(at, (name, extent))| (*name, *extent, step(at))))
    }

    /// The mesh with these axes: the name, extent and stride in ranks of each.
    ///
    /// Errors: those of [`Mesh::new`]; ranks that do not contain each number from 0 on exactly
    /// once.
    pub fn with_ranks<'a>(axes: impl IntoIterator<Item = (&'a str, i64, i64)>) -> Result<Mesh, MeshError> {
        let axes: Vec<_> = axes.into_iter().collect();
        if axes.is_empty() || axes.len() > MAX_AXES {
            return Err(MeshError::Axes { axes: axes.len() });
        }
        let mut size = 1_i64;
        for (at, (name, extent, _)) in axes.iter().enumerate() {
            if !is_name(name) {
                return Err(MeshError::Name { name: (*name).into(), twice: false });
            }
            if axes.iter().take(at).any(|(other, ..)| other == name) {
                return Err(MeshError::Name { name: (*name).into(), twice: true });
            }
            size = size.saturating_mul((*extent).max(1));
            if *extent < 1 || size > MAX_DEVICES {
                return Err(MeshError::Devices { name: (*name).into(), extent: *extent });
            }
        }
        let leaf = |(_, extent, stride): &(&str, i64, i64)| Leaf { extent: *extent, stride: *stride };
        let ranks = Layout::from_tree(Tree::flat(axes.iter().map(leaf))?)?;
        let mut coordinates = vec![-1; size as usize * axes.len()];
        for index in 0..size {
            let rank = ranks.eval(&index)?;
            let place = usize::try_from(rank).ok().and_then(|rank| coordinates.chunks_exact_mut(axes.len()).nth(rank));
            match place {
                Some(place) if place.first() == Some(&-1) => {
                    let mut rest = index;
                    for (at, (_, extent, _)) in place.iter_mut().zip(&axes) {
                        *at = rest % extent;
                        rest /= extent;
                    }
                }
                _ => return Err(MeshError::Ranks { ranks: ranks.to_string().into(), rank, size }),
            }
        }
        let axes = axes.into_iter().map(|(name, extent, _)| Axis { name: name.to_owned(), extent }).collect();
        Ok(Mesh { axes, ranks, coordinates })
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The index of an axis.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    /// The layout from coordinates to ranks.
    pub fn ranks(&self) -> &Layout {
        &self.ranks
    }

    /// The number of devices.
    pub fn size(&self) -> usize {
        self.coordinates.len() / self.axes.len()
    }

    /// The rank at a coordinate; None outside the mesh.
    pub fn rank(&self, coordinate: &[i64]) -> Option<usize> {
        let inside = |(at, axis): (&i64, &Axis)| (0..axis.extent).contains(at);
        if coordinate.len() != self.axes.len() || !coordinate.iter().zip(&self.axes).all(inside) {
            return None;
        }
        let rank: i64 = coordinate.iter().zip(self.ranks.leaves()).map(|(at, leaf)| at * leaf.stride).sum();
        usize::try_from(rank).ok()
    }

    /// The coordinate of a rank; empty outside the mesh.
    pub fn coordinate(&self, rank: usize) -> Vec<i64> {
        self.at(rank).to_vec()
    }

    pub(crate) fn at(&self, rank: usize) -> &[i64] {
        self.coordinates.chunks_exact(self.axes.len()).nth(rank).unwrap_or_default()
    }
}

/// Whether this can be the name of an axis.
fn is_name(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    letters && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut step = 1;
        let plain = self.axes.iter().zip(self.ranks.leaves()).all(|(axis, leaf)| {
            let same = leaf.stride == step || axis.extent == 1;
            step *= axis.extent;
            same
        });
        for (at, (axis, leaf)) in self.axes.iter().zip(self.ranks.leaves()).enumerate() {
            write!(f, "{}{}={}", if at == 0 { "" } else { "," }, axis.name, axis.extent)?;
            if !plain {
                write!(f, ":{}", leaf.stride)?;
            }
        }
        Ok(())
    }
}

impl FromStr for Mesh {
    type Err = MeshError;

    fn from_str(text: &str) -> Result<Mesh, MeshError> {
        let fail = |part: &str, expected| MeshError::Syntax { text: part.trim().into(), expected };
        let mut plain = Vec::new();
        let mut with_strides = Vec::new();
        for part in text.split(',') {
            let (name, numbers) = part.split_once('=').ok_or_else(|| fail(part, "an axis such as `tp=4`"))?;
            let number =
                |text: &str| text.trim().parse::<i64>().map_err(|_| fail(part, "an integer of 64 bits after `=`"));
            match numbers.split_once(':') {
                Some((extent, stride)) => with_strides.push((name.trim(), number(extent)?, number(stride)?)),
                None => plain.push((name.trim(), number(numbers)?)),
            }
        }
        match (plain.is_empty(), with_strides.is_empty()) {
            (false, true) => Mesh::new(plain),
            (true, _) => Mesh::with_ranks(with_strides),
            _ => Err(fail(text, "strides for all axes or for none")),
        }
    }
}
