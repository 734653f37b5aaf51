//! The local part of a sharded tensor, as a layout of a device's own memory.
//!
//! Law: every device that holds elements holds equally many, at the same offsets. The local modes
//! are those that step along offsets. So one layout serves the kernels of all devices. Layouts with
//! uneven parts are refused here. Reshards accept them, because each message has its own kernel.

use tilewright_layout::{Layout, LayoutError, Leaf, Tree};
use tilewright_mesh::{Along, MeshError, ShardedLayout};

use super::ShardedError;
use crate::devices::reshard::flat;

/// A leaf that steps along offsets: its mode, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalLeaf {
    pub mode: usize,
    pub number: usize,
    pub extent: i64,
    pub stride: i64,
}

/// The local part of a tensor.
pub(super) struct Local {
    modes: usize,
    leaves: Vec<LocalLeaf>,
    /// The first offset.
    pub start: i64,
}

impl Local {
    /// The local part of a tensor with this layout.
    ///
    /// Errors: the parts have different sizes ([`MeshError::Operation`]).
    pub fn of(layout: &ShardedLayout) -> Result<Local, ShardedError> {
        if layout.is_uneven() {
            let what = format!(
                "kernels of an operation want parts of equal sizes, and {layout} has unequal ones: pad the modes, or \
                 reshard to equal parts before"
            );
            return Err(MeshError::Operation { what: what.into() }.into());
        }
        let mut leaves = Vec::new();
        for (mode, tree) in layout.elements().modes().enumerate() {
            for (extent, step) in tree.leaves().iter().filter(|(_, step)| step.along == Along::Offset) {
                leaves.push(LocalLeaf { mode, number: leaves.len(), extent: *extent, stride: step.by });
            }
        }
        let start = layout.places(0)?.first().map_or(0, |(_, offset)| *offset);
        Ok(Local { modes: layout.mode_sizes().len(), leaves, start })
    }

    /// A flat layout of all leaves with these strides.
    pub fn flat(&self, stride: impl Fn(&LocalLeaf) -> i64) -> Result<Layout, LayoutError> {
        flat(self.leaves.iter().map(|leaf| Leaf { extent: leaf.extent, stride: stride(leaf) }).collect())
    }

    /// The local layout, with one mode for each mode of the tensor.
    pub fn modes(&self) -> Result<Layout, LayoutError> {
        let modes = (0..self.modes).map(|mode| {
            let own = self.leaves.iter().filter(|leaf| leaf.mode == mode);
            let own: Vec<_> = own.map(|leaf| Leaf { extent: leaf.extent, stride: leaf.stride }).collect();
            match own[..] {
                [] => Ok(Tree::leaf(Leaf { extent: 1, stride: 0 })),
                [only] => Ok(Tree::leaf(only)),
                _ => Tree::flat(own),
            }
        });
        let modes = modes.collect::<Result<Vec<_>, LayoutError>>()?;
        Layout::from_tree(Tree::tuple(modes.iter())?)
    }

    /// A flat layout of all leaves, compact in the modes that a reduction over `over` keeps, the
    /// first leaf fastest; the reduced leaves have stride 0.
    pub fn kept(&self, over: &[usize]) -> Result<Layout, LayoutError> {
        self.kept_by(over, |leaf| leaf.number as i64)
    }

    /// As [`Local::kept`], with another order of the leaves.
    pub fn kept_by(&self, over: &[usize], order: impl Fn(&LocalLeaf) -> i64) -> Result<Layout, LayoutError> {
        let mut kept: Vec<&LocalLeaf> = self.leaves.iter().filter(|leaf| !over.contains(&leaf.mode)).collect();
        kept.sort_by_key(|leaf| (order(leaf), leaf.number));
        let (mut strides, mut next) = (vec![0; self.leaves.len()], 1);
        for leaf in kept {
            if let Some(stride) = strides.get_mut(leaf.number) {
                *stride = next;
                next *= leaf.extent;
            }
        }
        self.flat(|leaf| strides.get(leaf.number).copied().unwrap_or(0))
    }

    /// From a layout of all leaves, the leaves that are kept and have several positions.
    pub fn only_kept(&self, over: &[usize], of: &Layout) -> Result<Layout, LayoutError> {
        let kept = self.leaves.iter().zip(of.leaves()).filter(|(own, _)| own.extent > 1 && !over.contains(&own.mode));
        flat(kept.map(|(_, leaf)| *leaf).collect())
    }
}
