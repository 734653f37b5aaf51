//! What one device has of a tensor, as loops over its memory.
//!
//! Law: the elements of a device are the positions of the leaves that step along offsets. The
//! leaves that step along the mesh say at which index of each mode its part begins.

use crate::error::MeshError;
use crate::held::Holders;
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};
use tilewright_layout::Tree;

/// What a device has of a tensor: the places of its elements, mode by mode.
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
    /// For each mode of the tensor, which of its positions are here.
    pub modes: Vec<LocalMode>,
}

/// The positions of a mode that are on a device: those of nested loops from `first` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalMode {
    /// The first position.
    pub first: i64,
    /// The loops, from the innermost on. Loops of one position are left out.
    pub runs: Vec<LocalRun>,
}

/// A loop over positions of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalRun {
    /// How many.
    pub extent: i64,
    /// From one position to the next.
    pub index: i64,
    /// From the offset of one to that of the next.
    pub offset: i64,
}

impl ShardedLayout {
    /// What a device has; none where it has nothing.
    pub fn part(&self, rank: usize) -> Option<LocalPart> {
        let held = Holders::of(self).held(rank)?;
        let mut number = 0;
        let modes = self.elements.modes().map(|tree| {
            let mut mode = LocalMode { first: 0, runs: Vec::new() };
            let mut index = 1;
            for (extent, step) in tree.leaves() {
                match step.along {
                    Along::Axis(_) => mode.first += held.elements.get(number).map_or(0, |at| at * index),
                    Along::Offset if *extent > 1 => {
                        mode.runs.push(LocalRun { extent: *extent, index, offset: step.by });
                    }
                    Along::Offset => {}
                }
                index *= extent;
                number += 1;
            }
            mode
        });
        Some(LocalPart { start: self.start, modes: modes.collect() })
    }
}

/// A loop: how many positions, and what each adds to three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loop {
    pub extent: i64,
    pub steps: [i64; 3],
}

/// Calls `visit` with three numbers for each position of nested loops, the first innermost.
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
    extent: i64,
    step: i64,
    /// The size of the mode below it.
    below: i64,
}

/// A layout of which some modes are reduced, and how each device reduces its part.
pub(crate) struct Reduced {
    holders: Holders,
    start: i64,
    leaves: Vec<LocalLeaf>,
    /// For each leaf that steps along the mesh and is reduced: its number, and what a position adds
    /// to the index in the reduced modes.
    along: Vec<(usize, i64)>,
    /// The step of each local leaf in the partial result; 0 where it is reduced.
    kept: Vec<i64>,
    /// The size of the reduced modes before each mode; none where it is kept.
    weights: Vec<Option<i64>>,
    layout: ShardedLayout,
}

impl Reduced {
    /// What is made of a layout when these modes get one element each. Positions along the mesh of
    /// a reduced mode hold summands then, or what is combined in another way.
    pub fn of(layout: &ShardedLayout, over: &[usize]) -> Result<Reduced, MeshError> {
        let (mut leaves, mut kept, mut along) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sums, mut trees, mut weights) = (layout.sums.clone(), Vec::new(), Vec::new());
        let (mut stride, mut weight, mut number) = (1, 1, 0);
        for (mode, tree) in layout.elements.modes().enumerate() {
            let is_reduced = over.contains(&mode);
            let mut below = 1;
            weights.push(is_reduced.then_some(weight));
            let mut own = Vec::new();
            for (extent, step) in tree.leaves() {
                match step.along {
                    Along::Offset => {
                        leaves.push(LocalLeaf { mode, extent: *extent, step: step.by, below });
                        kept.push(if is_reduced { 0 } else { stride });
                        own.push((*extent, Step { by: stride, along: Along::Offset }));
                        stride *= if is_reduced { 1 } else { *extent };
                    }
                    Along::Axis(axis) => {
                        own.push((*extent, *step));
                        if is_reduced {
                            along.push((number, weight * below));
                            sums.push(MeshMode { extent: *extent, axis, step: step.by });
                        }
                    }
                }
                below *= extent;
                number += 1;
            }
            let one = Tree::leaf((1, Step { by: 0, along: Along::Offset }));
            let mut own = own.into_iter();
            trees.push(if is_reduced {
                one
            } else {
                tree.try_map(|leaf| Ok::<_, MeshError>(own.next().unwrap_or(*leaf)))?
            });
            weight *= if is_reduced { below } else { 1 };
        }
        let elements = Tree::tuple(trees.iter())?;
        let parts = Parts { elements, sums, start: 0, ..layout.parts() };
        let partial = ShardedLayout::new(&layout.mesh, parts)?;
        let (holders, start) = (Holders::of(layout), layout.start);
        Ok(Reduced { holders, start, leaves, along, kept, weights, layout: partial })
    }

    /// The layout of the partial results.
    pub fn layout(&self) -> &ShardedLayout {
        &self.layout
    }

    /// Calls `visit` with the offset of each element of a device, that of what it goes into, and
    /// the index in the reduced modes; in the order of memory. Nothing where the device holds none.
    pub fn each(&self, rank: usize, visit: impl FnMut([i64; 3])) {
        let Some(held) = self.holders.held(rank) else { return };
        let index = |(leaf, weight): &(usize, i64)| held.elements.get(*leaf).map_or(0, |at| at * weight);
        let first = self.along.iter().map(index).sum();
        let loops = self.leaves.iter().zip(&self.kept).map(|(leaf, kept)| {
            let weight = self.weights.get(leaf.mode).copied().flatten().map_or(0, |weight| weight * leaf.below);
            Loop { extent: leaf.extent, steps: [leaf.step, *kept, weight] }
        });
        let mut loops: Vec<Loop> = loops.filter(|nest| nest.extent > 1).collect();
        loops.sort_by_key(|nest| nest.steps[0]);
        walk(&loops, [self.start, 0, first], visit);
    }
}

/// A layout whose summands are copies.
pub(crate) fn whole(layout: &ShardedLayout) -> Result<ShardedLayout, MeshError> {
    let mut parts = layout.parts();
    parts.copies.append(&mut parts.sums);
    ShardedLayout::new(&layout.mesh, parts)
}
