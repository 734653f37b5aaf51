//! The numbers of a launch: sizes and arguments.
//!
//! Law: every expression of a program has a value for the given sizes, each size is admitted by its
//! facts, and the interpreter's memory is bounded.

use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{Composed, Layout};

use super::clock::MAX_PLACES;
use super::code::Code;
use super::mixed::mixed_buffers;
use crate::launch::{SetupError, grid_of, mapped_extent, scalars_of, size_error, values_of};
use crate::machine::MAX_SHARED;
use crate::program::Program;
use crate::program::WARP_LANES;
use crate::program::memory::{BufferId, Role, Space};
use crate::program::operation::Operation;

/// The most bytes that the interpreter keeps for tensors and their history.
pub const MAX_MEMORY: u64 = 4 << 30;

/// A tensor map at given sizes.
#[derive(Debug)]
pub(super) struct MapBoxes {
    pub(super) buffer: BufferId,
    pub(super) extents: Vec<i64>,
    /// The strides in bytes.
    pub(super) strides: Vec<i64>,
    pub(super) boxed: Vec<u32>,
    /// The number of bytes of an element.
    pub(super) element: u32,
    /// The number of bytes of a box.
    pub(super) bytes: u32,
    /// The address bits that the swizzle reads, shifted down by three to the bits that it flips.
    pub(super) flips: i64,
}

/// A buffer at given sizes.
#[derive(Debug)]
pub(super) struct Extent {
    /// The number of its bytes.
    pub(super) bytes: u64,
    /// A cell of its history has `2^shift` bytes.
    pub(super) shift: u32,
    /// The elements of an output that must be written; None if these are all from the first to the
    /// last.
    pub(super) elements: Option<Vec<u64>>,
}

/// A program at given sizes.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) grid: [u32; 3],
    pub(super) blocks: u64,
    pub(super) extents: Vec<Extent>,
    pub(super) maps: Vec<MapBoxes>,
    /// The launch arguments; None for scalar arguments that the caller must set.
    pub(super) scalars: Vec<Option<u64>>,
    /// A cell of the history of shared memory has `2^shift` bytes.
    pub(super) shared_shift: u32,
    /// The number of bytes of shared memory of a block, rounded up to whole cells.
    pub(super) shared_bytes: usize,
    /// Whether threads issue asynchronous work.
    pub(super) background: bool,
    /// Whether the program has arrivals that publish reads and not writes.
    pub(super) reads: bool,
    /// Whether the program waits for the previous launches.
    pub(super) waits: bool,
    /// For each buffer, whether it receives atomic operations that do not all commute.
    pub(super) mixed: Vec<bool>,
    /// The number of threads of a block, rounded up to full warps.
    pub(super) padded: usize,
}

impl Setup {
    pub(super) fn new(program: &Program, code: &Code<'_>, sizes: &[(&str, i64)]) -> Result<Setup, SetupError> {
        let values = values_of(program, sizes)?;
        let number = |expr: &Expr, what: &str| {
            expr.numbers(&values).map_err(|error| size_error(format!("{what} has no value for these sizes: {error}")))
        };
        if code.nodes.len() > MAX_PLACES {
            let (size, limit) = (code.nodes.len() as u64, MAX_PLACES as u64);
            return Err(SetupError::TooLarge { what: "instructions", size, limit });
        }
        let grid = grid_of(program, number)?;
        let blocks = grid.iter().map(|count| u64::from(*count)).product();
        // Sizes that no launch supports are refused before those that take too much memory here.
        let maps = maps_of(program, &number)?;
        let scalars = scalars_of(program, &number)?;
        let (shifts, shared_shift) = shifts(program, code);
        let mut extents = Vec::new();
        let mut kept = 0_u64;
        for (buffer, shift) in program.buffers.iter().zip(shifts) {
            let elements = number(&buffer.elements, &format!("the size of `{}`", buffer.name))?;
            let bytes =
                u64::try_from(elements).ok().and_then(|elements| elements.checked_mul(buffer.element.bytes().into()));
            let Some(bytes) = bytes else {
                return Err(size_error(format!("`{}` has {elements} elements for these sizes", buffer.name)));
            };
            if buffer.space == Space::Shared {
                let end = bytes.saturating_add(buffer.start.into());
                if end > program.shared_bytes.into() || end > MAX_SHARED {
                    let what =
                        format!("`{}` ends at byte {end} of {} of shared memory", buffer.name, program.shared_bytes);
                    return Err(SetupError::Malformed { what, source: None });
                }
            }
            let history = match (buffer.space, buffer.role) {
                (Space::Shared, _) | (_, Role::Input) => 0,
                (_, Role::Output) => 24,
                (_, Role::Both) => size_of::<super::shadow::GlobalCell>() as u64,
            };
            kept = kept.saturating_add(bytes).saturating_add((bytes >> shift).saturating_mul(history));
            if kept > MAX_MEMORY {
                let what = "bytes of tensors and of their history";
                return Err(SetupError::TooLarge { what, size: kept, limit: MAX_MEMORY });
            }
            let elements = if buffer.space == Space::Global && buffer.role == Role::Output {
                written_elements(&buffer.layout, bytes / u64::from(buffer.element.bytes()), &values)
            } else {
                None
            };
            extents.push(Extent { bytes, shift, elements });
        }
        let background = program_has_background(code);
        let shared_bytes = (program.shared_bytes as usize).next_multiple_of(1 << shared_shift);
        let reads =
            code.instructions().any(|own| matches!(own.operation, Operation::RemoteArrive { releases: false, .. }));
        let waits = program.waits_for_launches();
        let padded = (program.threads as usize).next_multiple_of(WARP_LANES);
        let mixed = mixed_buffers(program, code);
        Ok(Setup {
            grid,
            blocks,
            extents,
            maps,
            scalars,
            shared_shift,
            shared_bytes,
            background,
            reads,
            waits,
            mixed,
            padded,
        })
    }
}

fn maps_of(
    program: &Program,
    number: &impl Fn(&Expr, &str) -> Result<i64, SetupError>,
) -> Result<Vec<MapBoxes>, SetupError> {
    let mut maps = Vec::new();
    for map in &program.maps {
        let buffer = program.buffer(map.buffer);
        let mut boxes = MapBoxes {
            buffer: map.buffer,
            extents: Vec::new(),
            strides: Vec::new(),
            boxed: Vec::new(),
            element: buffer.element.bytes(),
            bytes: buffer.element.bytes(),
            flips: 16 * (map.swizzle.units() - 1),
        };
        for (mode, dimension) in map.dimensions.iter().enumerate() {
            let extent = number(&dimension.extent, "the extent of a map")?;
            let stride = number(&dimension.stride, "the stride of a map")?;
            let contiguous = mode > 0 || stride == i64::from(boxes.element);
            let aligned = mode == 0 || (stride % 16 == 0 && (0..1 << 40).contains(&stride));
            mapped_extent(extent, &buffer.name, mode)?;
            if !contiguous || !aligned {
                let name = &buffer.name;
                let what =
                    format!("a map of `{name}` has extent {extent} and a stride of {stride} bytes in mode {mode}");
                return Err(size_error(format!("{what}; strides are multiples of 16 bytes, the first is an element")));
            }
            boxes.extents.push(extent);
            boxes.strides.push(stride);
            boxes.boxed.push(dimension.boxed);
            boxes.bytes = boxes.bytes.saturating_mul(dimension.boxed);
        }
        if u64::from(boxes.bytes) > MAX_SHARED {
            return Err(size_error(format!("a map of `{}` has boxes of {} bytes", buffer.name, boxes.bytes)));
        }
        maps.push(boxes);
    }
    Ok(maps)
}

/// For each buffer, and for shared memory, the logarithm to base 2 of the bytes of a cell: the size
/// of the narrowest access.
fn shifts(program: &Program, code: &Code<'_>) -> (Vec<u32>, u32) {
    let mut shifts: Vec<u32> = vec![4; program.buffers.len()];
    let mut shared = 4;
    for instruction in code.instructions() {
        for access in instruction.operation.accesses() {
            let bytes = match instruction.operation {
                Operation::LoadMatrix { .. } | Operation::StoreMatrix { .. } => 16,
                Operation::Wgmma { .. } => 16,
                Operation::BulkLoad { .. } | Operation::BulkStore { .. } | Operation::BulkSend { .. } => 8,
                Operation::BarrierInit { .. }
                | Operation::BarrierArrive { .. }
                | Operation::BarrierWait { .. }
                | Operation::RemoteArrive { .. } => 8,
                _ => access.bytes().max(1),
            };
            let shift = bytes.ilog2();
            shifts[access.buffer.index()] = shifts[access.buffer.index()].min(shift);
            if program.buffer(access.buffer).space == Space::Shared {
                shared = shared.min(shift);
            }
        }
        if let Operation::BulkLoad { map, .. } | Operation::BulkStore { map, .. } = &instruction.operation {
            // Elements past the edges are skipped one by one.
            let buffer = program.map(*map).buffer;
            let shift = program.buffer(buffer).element.bytes().ilog2();
            shifts[buffer.index()] = shifts[buffer.index()].min(shift);
        }
    }
    (shifts, shared)
}

fn program_has_background(code: &Code<'_>) -> bool {
    code.instructions().any(|instruction| {
        matches!(
            instruction.operation,
            Operation::CopyAsync { .. }
                | Operation::BulkLoad { .. }
                | Operation::BulkStore { .. }
                | Operation::BulkSend { .. }
                | Operation::RemoteArrive { .. }
                | Operation::BarrierInit { .. }
                | Operation::Wgmma { .. }
        )
    })
}

/// The elements of a layout with holes, in order; None if there are no holes.
fn written_elements(layout: &str, elements: u64, values: &Values) -> Option<Vec<u64>> {
    let mut found: Vec<u64> = if layout.contains(" o ") {
        let layout: Composed<Expr> = layout.parse().ok()?;
        let layout = layout.numbers(values).ok()?;
        (0..layout.size()).filter_map(|at| u64::try_from(layout.eval(&at).ok()?).ok()).collect()
    } else {
        let layout: Layout<Expr> = layout.parse().ok()?;
        let layout = layout.numbers(values).ok()?;
        // The layout has as many distinct elements as the buffer.
        if u64::try_from(layout.size()).ok()? == elements && layout.is_injective().is_ok_and(|injective| injective) {
            return None;
        }
        (0..layout.size()).filter_map(|at| u64::try_from(layout.eval(&at).ok()?).ok()).collect()
    };
    found.sort_unstable();
    found.dedup();
    (found.len() as u64 != elements).then_some(found)
}
