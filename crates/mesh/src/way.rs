//! Intermediate layouts between two layouts.
//!
//! Law: a tensor may be moved by way of other layouts, each held by the same devices. Two of them
//! save time:
//!
//! * *the copies of the result in parts*: each device that will have a copy first receives a part
//!   of its own, and then they all-gather. So a sum is computed once instead of by each device that
//!   needs it, and no device has to send everything to all.
//! * *within a node first*: if links between nodes are slower, the devices of a node divide what
//!   arrives from other nodes, and all-gather it within the node. They also add their partial sums
//!   within the node before they send them to other nodes.

use tilewright_layout::Tree;

use crate::error::MeshError;
use crate::machine::Machine;
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};

/// The routes between two layouts: the intermediate layouts, in order. The first route is direct.
pub(crate) fn ways(
    from: &ShardedLayout,
    to: &ShardedLayout,
    machine: &Machine,
) -> Result<Vec<Vec<ShardedLayout>>, MeshError> {
    let sums_in_node = parted(from, true, Some(machine))?;
    let copies = [parted(to, false, None)?, parted(to, false, Some(machine))?];
    let mut ways = Vec::new();
    for number in 0..8 {
        let [all_copies, copies_in_node] = &copies;
        let chosen = [&sums_in_node, all_copies, copies_in_node]
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| number >> bit & 1 == 1);
        let way: Option<Vec<ShardedLayout>> = chosen.map(|(_, layout)| layout.clone()).collect();
        // Skips routes with a layout that does not exist, or that occurs twice in a row.
        if let Some(way) = way.filter(|way| way.windows(2).all(|pair| pair.first() != pair.last())) {
            ways.push(way);
        }
    }
    Ok(ways)
}

/// The layout in which each position of the sums holds a part of the elements, with its summands
/// added; None if no mode can be cut.
pub(crate) fn added(layout: &ShardedLayout) -> Result<Option<ShardedLayout>, MeshError> {
    parted(layout, true, None)
}

/// The layout in which each position of the copies, or of the sums, of this one holds a part of its
/// elements: of all positions, or of those in a node. None if no mode can be cut.
fn parted(layout: &ShardedLayout, sums: bool, node: Option<&Machine>) -> Result<Option<ShardedLayout>, MeshError> {
    // The leaves of each mode. The leaf with the largest stride in memory is cut first, so that the
    // part of a device stays contiguous.
    let mut modes: Vec<Vec<(i64, Step)>> = layout.elements.modes().map(|mode| mode.leaves().to_vec()).collect();
    let is_even = |mode: usize| layout.uneven.get(mode).is_none_or(Option::is_none);
    let cut_modes = if sums { &layout.sums } else { &layout.copies };
    let mut left = Vec::new();
    for mode in cut_modes {
        let mut wanted = node.map_or(mode.extent, |machine| inside(layout, mode, machine));
        let mut rest = *mode;
        while wanted > 1 {
            let Some((at, leaf, parts)) = furthest(&modes, wanted, is_even) else { break };
            let Some(leaves) = modes.get_mut(at) else { break };
            if let Some(cut) = leaves.get_mut(leaf) {
                cut.0 /= parts;
            }
            leaves.insert(leaf + 1, (parts, Step { by: rest.step, along: Along::Axis(rest.axis) }));
            rest = MeshMode { extent: rest.extent / parts, step: rest.step * parts, ..rest };
            wanted /= parts;
        }
        left.push(rest);
    }
    if left == *cut_modes {
        return Ok(None);
    }
    let trees = modes.iter().map(|leaves| match leaves.as_slice() {
        [only] => Ok(Tree::leaf(*only)),
        leaves => Tree::flat(leaves.iter().copied()),
    });
    let trees = trees.collect::<Result<Vec<_>, _>>()?;
    let elements = Tree::tuple(trees.iter())?;
    // The strides of a full device are kept for every part.
    let parts = Parts { packed: false, ..layout.parts() };
    let parts = if sums { Parts { elements, sums: left, ..parts } } else { Parts { elements, copies: left, ..parts } };
    ShardedLayout::new(&layout.mesh, parts).map(Some)
}

/// The number of positions of a mode, from the first one on, that are in one node.
fn inside(layout: &ShardedLayout, mode: &MeshMode, machine: &Machine) -> i64 {
    let stride = layout.mesh.ranks().leaves().get(mode.axis).map_or(1, |leaf| leaf.stride);
    let (step, node) = (stride.saturating_mul(mode.step), machine.node as i64);
    if step < 1 || node % step != 0 { 1 } else { common_divisor(mode.extent, node / step) }
}

/// The local leaf with the largest step that can be cut, by mode and index, and the number of
/// parts. Modes whose parts have unequal sizes are not cut.
fn furthest(modes: &[Vec<(i64, Step)>], wanted: i64, is_even: impl Fn(usize) -> bool) -> Option<(usize, usize, i64)> {
    let leaves = modes.iter().enumerate().filter(|(at, _)| is_even(*at)).flat_map(|(at, leaves)| {
        leaves.iter().enumerate().map(move |(leaf, (extent, step))| (at, leaf, *extent, *step))
    });
    let cut = leaves.filter(|(.., step)| step.along == Along::Offset).filter_map(|(at, leaf, extent, step)| {
        let parts = common_divisor(extent, wanted);
        (parts > 1).then_some((step.by, at, leaf, parts))
    });
    cut.max().map(|(_, at, leaf, parts)| (at, leaf, parts))
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
