//! Tensors on several devices of one machine, moved from one sharded layout to another.
//!
//! Law: in each step, a device itself reads the elements that it receives, from the memory of the
//! devices that have them, and writes them to the layout after the step: a relayout with a remote
//! source, or a sum of such sources ([`DeviceReshard`]). Copy engines (DMA, [`transfers()`]) read
//! large messages, and kernels read all others ([`pulls`]). Elements cross a link once. A step
//! begins when the previous one has finished on all devices, which events signal.
//!
//! Devices without peer access use NCCL ([`NcclReshard`]): kernels pack elements that are not
//! contiguous before the transfer, and unpack them after it.

mod lanes;
mod on_devices;
mod packed;
mod through_nccl;
mod transfers;

use crate::{GpuError, NcclError};
use tilewright_kernel::Element;
use tilewright_layout::{Composed, Layout, LayoutError, Leaf, Swizzle, Tree};
use tilewright_mesh::{Exchange, Footprint, MeshError, Message};
use tilewright_planners::{Expression, MapOptions, Place, PlanError, Planned, Planner, map};

use crate::error::{one_of, refused_by};

pub(crate) use lanes::Lanes;
pub(crate) use on_devices::compiled;
pub use on_devices::{DeviceReshard, Readers};
pub use packed::{MessageMemory, Packed, packed};
pub use through_nccl::NcclReshard;
pub use transfers::{EngineCopy, MIN_DIRECT_BYTES, MIN_LINE_BYTES, MIN_STAGED_BYTES, Transfers, transfers};

/// The most kernels that a device launches in a step.
pub const MAX_LAUNCHES: usize = 4096;

one_of! {
    /// Why a tensor was not moved.
    #[derive(Debug, Clone)]
    ReshardError {
        /// An error of the layouts, or of the devices of the mesh.
        Mesh(MeshError),
        /// A kernel cannot be planned.
        Plan(PlanError),
        /// An error of the driver, or of a launch.
        Gpu(GpuError),
        /// NCCL is missing, or an error of NCCL.
        Nccl(NcclError),
    }
}
refused_by! { ReshardError: Mesh, Plan, Gpu, Nccl }

tilewright_layout::from_variants!(ReshardError: Mesh(LayoutError));

/// How summands are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Their sum, in the order of ranks.
    Sum,
    /// Their maximum; NaN if one is NaN.
    Max,
    /// Their minimum; NaN if one is NaN.
    Min,
}

/// A kernel that a device runs in a step. Its inputs are the memories of some ranks.
#[derive(Debug)]
pub struct Pull {
    /// The kernel.
    pub planned: Planned,
    /// The ranks whose memory it reads, in the order of its inputs.
    pub sources: Vec<usize>,
    /// A second kernel: the first one writes to a staging buffer, and this one copies from there to
    /// the result. None if the first one writes the result.
    pub then: Option<Planned>,
}

/// The kernels by which a device computes the tensor that it holds after a step. They write
/// different elements, so their order does not matter; summands are added in order.
///
/// Errors: a sum of integers of less than 32 bits; more than [`MAX_LAUNCHES`] kernels; those of a
/// relayout.
///
/// ```
/// use tilewright::kernel::Element;
/// use tilewright::kernel::machine::Machine;
/// use tilewright::mesh::{Exchange, Mesh, ShardedLayout};
/// use tilewright::reshard::pulls;
///
/// # fn main() -> Result<(), tilewright::reshard::ReshardError> {
/// let h200 = Machine::named("H200").unwrap();
/// let mesh: Mesh = "tp=2".parse()?;
/// let rows = ShardedLayout::parse(&mesh, "((512,2),1024):((1024,1@tp),1)")?;
/// let columns = ShardedLayout::parse(&mesh, "(1024,(512,2)):(512,(1,1@tp))")?;
/// let pulls = pulls(&Exchange::new(&rows, &columns)?, 0, Element::F32, &h200)?;
/// assert_eq!(pulls.iter().map(|pull| pull.sources[0]).collect::<Vec<_>>(), [0, 1]);
/// # Ok(())
/// # }
/// ```
pub fn pulls(
    exchange: &Exchange,
    rank: usize,
    element: Element,
    planner: &dyn Planner,
) -> Result<Vec<Pull>, ReshardError> {
    let messages = exchange.messages_to(rank);
    pulls_of(messages, (exchange.added(), Combine::Sum), element, planner, where_they_lie)
}

/// The layout and the first offset of the elements of a run of a message, in the tensor of the
/// sender.
fn where_they_lie(message: &Message, run: usize) -> Result<(Layout, i64), ReshardError> {
    let start = message.footprint.starts.get(run).map_or(0, |start| start.0);
    Ok((sides(&message.footprint)?[0].clone(), start))
}

/// The kernels for these messages. Groups of `added` messages are combined. `read` returns the
/// layout and the first offset of the elements of a run in the source memory.
fn pulls_of(
    messages: Vec<Message>,
    (added, combine): (i64, Combine),
    element: Element,
    planner: &dyn Planner,
    read: impl Fn(&Message, usize) -> Result<(Layout, i64), ReshardError>,
) -> Result<Vec<Pull>, ReshardError> {
    let added = usize::try_from(added).unwrap_or(1).max(1);
    let name = match combine {
        Combine::Sum => "sum_of_devices",
        Combine::Max => "greatest_of_devices",
        Combine::Min => "least_of_devices",
    };
    let mut pulls = Vec::new();
    for summands in messages.chunks(added) {
        let Some(first) = summands.first() else { continue };
        let starts = &first.footprint.starts;
        if starts.len().saturating_add(pulls.len()) > MAX_LAUNCHES {
            let limit = MAX_LAUNCHES as i64;
            return Err(MeshError::TooLarge { what: "kernels of a device in one step", limit }.into());
        }
        let sources: Vec<usize> = summands.iter().map(|message| message.from).collect();
        let [_, to] = sides(&first.footprint)?;
        for (run, (_, write)) in starts.iter().enumerate() {
            let from = summands.iter().map(|message| read(message, run)).collect::<Result<Vec<_>, _>>()?;
            let [(first_from, start), ..] = from.as_slice() else { continue };
            let (planned, then) = if added == 1 {
                let target = place(&to, *write)?;
                (planner.relayout((place(first_from, *start)?, element), (target, element))?, None)
            } else {
                let inputs: Vec<_> = from.iter().map(|(layout, start)| (layout, element, *start)).collect();
                let sum = (1..added).map(Expression::input).fold(Expression::input(0), |all, next| match combine {
                    Combine::Sum => all + next,
                    Combine::Max => all.max(next),
                    Combine::Min => all.min(next),
                });
                // A sum accesses memory in one order, that of its sources. If the result has
                // another order, a local relayout follows.
                if fastest(first_from) == fastest(&to) {
                    (map(planner.machine(), &sum, &inputs, (&to, element, *write), MapOptions { name })?, None)
                } else {
                    let beside = compact_like(first_from)?;
                    let planned = map(planner.machine(), &sum, &inputs, (&beside, element), MapOptions { name })?;
                    let target = place(&to, *write)?;
                    (planned, Some(planner.relayout(((&beside).into(), element), (target, element))?))
                }
            };
            pulls.push(Pull { planned, sources: sources.clone(), then });
        }
    }
    Ok(pulls)
}

/// The mode of a layout with the smallest stride.
fn fastest(layout: &Layout) -> Option<usize> {
    let moving = layout.leaves().iter().enumerate().filter(|(_, leaf)| leaf.extent > 1);
    moving.min_by_key(|(_, leaf)| leaf.stride).map(|(mode, _)| mode)
}

/// A compact layout with the same modes, in the order of the strides.
fn compact_like(layout: &Layout) -> Result<Layout, LayoutError> {
    flat(compact(layout.leaves().iter().map(|leaf| (leaf.extent, leaf.stride))))
}

/// Compact modes with these extents. The mode with the smallest number is contiguous.
fn compact(modes: impl Iterator<Item = (i64, i64)>) -> Vec<Leaf<i64>> {
    let (mut leaves, numbers): (Vec<_>, Vec<_>) =
        modes.map(|(extent, number)| (Leaf { extent, stride: 0 }, number)).unzip();
    let mut order: Vec<_> = leaves.iter_mut().zip(numbers).collect();
    order.sort_by_key(|(_, number)| *number);
    let mut next = 1;
    for (leaf, _) in order {
        leaf.stride = next;
        next *= leaf.extent;
    }
    leaves
}

/// A flat layout with these leaves.
pub(crate) fn flat(leaves: Vec<Leaf<i64>>) -> Result<Layout, LayoutError> {
    match leaves[..] {
        [] => Ok(Layout::unit()),
        [only] => Layout::mode_of(only.extent, only.stride),
        _ => Layout::from_tree(Tree::flat(leaves)?),
    }
}

/// The modes of a footprint, as layouts of the source and of the destination.
fn sides(footprint: &Footprint) -> Result<[Layout; 2], LayoutError> {
    let layout = |step: &dyn Fn(&(i64, i64, i64)) -> i64| {
        tuple(footprint.modes.iter().map(|mode| Leaf { extent: mode.0, stride: step(mode) }).collect())
    };
    Ok([layout(&|mode| mode.1)?, layout(&|mode| mode.2)?])
}

/// A layout with one mode for each leaf.
fn tuple(leaves: Vec<Leaf<i64>>) -> Result<Layout, LayoutError> {
    if leaves.is_empty() { Ok(Layout::unit()) } else { Layout::from_tree(Tree::flat(leaves)?) }
}

/// Checks that the numbers of devices or memories equal the number of devices of the mesh.
///
/// Errors: they differ (E1110).
pub(crate) fn as_many(given: &[usize], devices: usize) -> Result<(), MeshError> {
    let other = given.iter().find(|given| **given != devices);
    other.map_or(Ok(()), |given| Err(MeshError::Processes { processes: *given, devices }))
}

/// A layout and its first offset as a place.
fn place(layout: &Layout, start: i64) -> Result<Place, ReshardError> {
    if start == 0 {
        return Ok(Place::from(layout));
    }
    let behind = Composed::new(Swizzle::new(0, 0, 0)?, start, layout.clone())?;
    Ok(Place::try_from(&behind)?)
}
