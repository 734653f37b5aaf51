//! The part of a sharded tensor on each device, as layouts of its own memory.
//!
//! Law: every device that holds elements holds equally many, at the same offsets: the modes that
//! step along offsets. So one layout serves the kernels of all devices. Layouts with uneven parts
//! are refused; reshards accept them, because each message has its own kernel.

use tilewright_layout::{Layout, LayoutError, Leaf, Tree};
use tilewright_mesh::{Along, MeshError, ShardedLayout};

use super::ShardedError;
use crate::devices::reshard::flat;

/// A leaf that steps along offsets, with its mode and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalLeaf {
    pub mode: usize,
    pub number: usize,
    pub extent: i64,
    pub stride: i64,
}

/// The part of a tensor on a device.
pub(super) struct Local {
    modes: usize,
    leaves: Vec<LocalLeaf>,
    /// The first offset.
    pub start: i64,
}

impl Local {
    /// The part of a tensor with this layout on a device.
    ///
    /// Errors: its parts are of unequal sizes ([`MeshError::Operation`]).
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

    /// All leaves, flat, with these strides.
    pub fn flat(&self, stride: impl Fn(&LocalLeaf) -> i64) -> Result<Layout, LayoutError> {
        flat(self.leaves.iter().map(|leaf| Leaf { extent: leaf.extent, stride: stride(leaf) }).collect())
    }

    /// A mode for each mode of the tensor.
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

    /// All leaves, where those of kept modes are compact, the first fastest.
    pub fn kept(&self, over: &[usize]) -> Result<Layout, LayoutError> {
        self.kept_by(over, |leaf| leaf.number as i64)
    }

    /// As [`Local::kept`], in another order.
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

    /// The leaves that are kept and have several positions, of a layout of all leaves.
    pub fn only_kept(&self, over: &[usize], of: &Layout) -> Result<Layout, LayoutError> {
        let kept = self.leaves.iter().zip(of.leaves()).filter(|(own, _)| own.extent > 1 && !over.contains(&own.mode));
        flat(kept.map(|(_, leaf)| *leaf).collect())
    }
}
