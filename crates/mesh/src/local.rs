//! The local part of a tensor, as loops over the memory of one device.
//!
//! Law: the elements of a device are the positions of the leaves that step along offsets. The
//! leaves that step along the mesh determine the index of each mode at which the part of the device
//! begins. In an uneven mode, a device has as many positions as its part, or none.

use crate::error::MeshError;
use crate::held::Holders;
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};
use crate::uneven::CutMode;
use tilewright_layout::Tree;

/// The local part of a tensor: the offsets of its elements, mode by mode.
///
/// ```
/// use tilewright_mesh::{LocalRun, Mesh, ShardedLayout};
///
/// let mesh: Mesh = "tp=4".parse().unwrap();
/// let rows = ShardedLayout::parse(&mesh, "((2,4),3):((1,1@tp),2)").unwrap();
/// let part = rows.part(3).unwrap(); // two rows, from row 6 on, and all columns
/// assert_eq!((part.modes[0].first, part.modes[1].first), (6, 0));
/// assert_eq!(part.modes[0].runs, [LocalRun { extent: 2, index: 1, offset: 1 }]);
/// assert_eq!(part.modes[1].runs, [LocalRun { extent: 3, index: 1, offset: 2 }]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPart {
    /// The offset of its first element.
    pub start: i64,
    /// The positions of each mode of the tensor that are on the device.
    pub modes: Vec<LocalMode>,
}

/// The positions of a mode that are on a device: those of nested loops that begin at `first`. If a
/// loop has no positions, the device has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalMode {
    /// The first position.
    pub first: i64,
    /// The loops, the innermost first. Loops of one position are omitted.
    pub runs: Vec<LocalRun>,
}

/// A loop over positions of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalRun {
    /// The number of positions.
    pub extent: i64,
    /// The step of the index from one position to the next.
    pub index: i64,
    /// The step of the offset from one position to the next.
    pub offset: i64,
}

impl ShardedLayout {
    /// The local part of a device; None if it holds no element.
    pub fn part(&self, rank: usize) -> Option<LocalPart> {
        let held = Holders::of(self).held(rank)?;
        let steps = self.steps_on(&held.elements);
        let step = |leaf: usize| steps.get(leaf).copied().unwrap_or(0);
        let modes = self.modes().into_iter().map(|own| {
            let mut mode = LocalMode { first: own.first(&held.elements), runs: Vec::new() };
            if !own.is_even {
                let (run, offset) = (own.run(&held.elements), own.local().map_or(0, |digit| step(digit.leaf)));
                if run.count != 1 {
                    mode.runs.push(LocalRun { extent: run.count, index: 1, offset });
                }
                return mode;
            }
            for digit in &own.digits {
                match digit.step.along {
                    Along::Axis(_) => {}
                    Along::Offset if digit.extent > 1 => {
                        let (extent, index) = (digit.extent, digit.weight);
                        mode.runs.push(LocalRun { extent, index, offset: step(digit.leaf) });
                    }
                    Along::Offset => {}
                }
            }
            mode
        });
        Some(LocalPart { start: self.start, modes: modes.collect() })
    }
}

/// A loop: its number of positions, and the steps of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loop {
    pub extent: i64,
    pub steps: [i64; 3],
}

/// Calls `visit` with three numbers for each position of nested loops, the first loop innermost.
pub(crate) fn walk(loops: &[Loop], start: [i64; 3], mut visit: impl FnMut([i64; 3])) {
    let (inner, outer) = match loops.split_first() {
        Some((inner, outer)) => (*inner, outer),
        None => (Loop { extent: 1, steps: [0; 3] }, loops),
    };
    let all: i64 = outer.iter().map(|nest| nest.extent).product();
    for index in 0..all {
        let (mut rest, mut at) = (index, start);
        for nest in outer {
            let position = rest % nest.extent;
            at.iter_mut().zip(nest.steps).for_each(|(at, step)| *at += position * step);
            rest /= nest.extent;
        }
        for _ in 0..inner.extent {
            visit(at);
            at.iter_mut().zip(inner.steps).for_each(|(at, step)| *at += step);
        }
    }
}

/// A leaf that steps along offsets.
#[derive(Debug, Clone, Copy)]
struct LocalLeaf {
    mode: usize,
    /// The index of the leaf in the layout.
    leaf: usize,
    extent: i64,
    /// The size of the mode below it.
    below: i64,
    is_even: bool,
}

/// A layout with some reduced modes, and how each device reduces its part.
pub(crate) struct Reduced {
    holders: Holders,
    of: ShardedLayout,
    leaves: Vec<LocalLeaf>,
    /// The modes; for each reduced mode also the step of a position in the index of the reduced
    /// modes.
    modes: Vec<(CutMode, Option<i64>)>,
    /// The step of each local leaf in the partial result; 0 for a reduced leaf.
    kept: Vec<i64>,
    layout: ShardedLayout,
}

impl Reduced {
    /// The layout after these modes are reduced to one element each. The positions of a reduced
    /// mode along the mesh become summands, or are combined in another way.
    pub fn of(layout: &ShardedLayout, over: &[usize]) -> Result<Reduced, MeshError> {
        let (mut leaves, mut kept, mut modes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sums, mut trees) = (layout.sums.clone(), Vec::new());
        let (mut stride, mut weight) = (1, 1);
        let mut uneven = Vec::new();
        for (mode, (tree, own_mode)) in layout.elements.modes().zip(layout.modes()).enumerate() {
            let is_reduced = over.contains(&mode);
            uneven.push(layout.uneven.get(mode).copied().flatten().filter(|_| !is_reduced));
            let mut own = Vec::new();
            for ((extent, step), digit) in tree.leaves().iter().zip(&own_mode.digits) {
                match step.along {
                    Along::Offset => {
                        let (leaf, below, is_even) = (digit.leaf, digit.weight, own_mode.is_even);
                        leaves.push(LocalLeaf { mode, leaf, extent: *extent, below, is_even });
                        kept.push(if is_reduced { 0 } else { stride });
                        own.push((*extent, Step { by: stride, along: Along::Offset }));
                        stride *= if is_reduced { 1 } else { *extent };
                    }
                    Along::Axis(axis) => {
                        own.push((*extent, *step));
                        if is_reduced {
                            sums.push(MeshMode { extent: *extent, axis, step: step.by });
                        }
                    }
                }
            }
            let one = Tree::leaf((1, Step { by: 0, along: Along::Offset }));
            let mut own = own.into_iter();
            trees.push(if is_reduced {
                one
            } else {
                tree.try_map(|leaf| Ok::<_, MeshError>(own.next().unwrap_or(*leaf)))?
            });
            let size = own_mode.size;
            modes.push((own_mode, is_reduced.then_some(weight)));
            weight *= if is_reduced { size } else { 1 };
        }
        let elements = Tree::tuple(trees.iter())?;
        let parts = Parts { elements, sums, start: 0, uneven, packed: false, ..layout.parts() };
        let partial = ShardedLayout::new(&layout.mesh, parts)?;
        let (holders, of) = (Holders::of(layout), layout.clone());
        Ok(Reduced { holders, of, leaves, kept, modes, layout: partial })
    }

    /// The layout of the partial results.
    pub fn layout(&self) -> &ShardedLayout {
        &self.layout
    }

    /// Calls `visit` for each element of a device, in the order of memory, with its offset, the
    /// offset of the partial result that it is added to, and its index in the reduced modes. Does
    /// nothing if the device holds no element.
    pub fn each(&self, rank: usize, visit: impl FnMut([i64; 3])) {
        let Some(held) = self.holders.held(rank) else { return };
        let first = self.modes.iter().filter_map(|(mode, weight)| Some(mode.first(&held.elements) * (*weight)?)).sum();
        let (steps, counts) = (self.of.steps_on(&held.elements), self.of.counts_on(&held.elements));
        if counts.contains(&0) {
            return;
        }
        let loops = self.leaves.iter().zip(&self.kept).map(|(leaf, kept)| {
            let weight =
                self.modes.get(leaf.mode).and_then(|(_, weight)| *weight).map_or(0, |weight| weight * leaf.below);
            let count = counts.get(leaf.mode).copied().unwrap_or(1);
            let extent = if leaf.is_even { leaf.extent } else { leaf.extent.min(count) };
            Loop { extent, steps: [steps.get(leaf.leaf).copied().unwrap_or(0), *kept, weight] }
        });
        let mut loops: Vec<Loop> = loops.filter(|nest| nest.extent > 1).collect();
        loops.sort_by_key(|nest| nest.steps[0]);
        walk(&loops, [self.of.start, 0, first], visit);
    }
}

/// The layout with its summands turned into copies.
pub(crate) fn whole(layout: &ShardedLayout) -> Result<ShardedLayout, MeshError> {
    let mut parts = layout.parts();
    parts.copies.append(&mut parts.sums);
    ShardedLayout::new(&layout.mesh, parts)
}
