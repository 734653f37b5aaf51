//! Any layout to any other.
//!
//! Law: `destination[to(i)] = source[from(i)]` for every index `i`, converted where the types
//! differ.
//!
//! Memory decides how fast this is, so the plan is about lines of memory: both sides want to be
//! touched in runs of at least [`RUN`] bytes, and the output in the order of its addresses. Three
//! structures have them:
//!
//! * **rows**: the same axis is contiguous on both sides, and long. Threads are numbered in the
//!   order of the output, each moves one vector, and finds its source by dividing its number by the
//!   extents.
//! * **tiles**: one axis is contiguous in the source, another in the destination. A block moves a
//!   tile that has runs on both sides through shared memory, and turns it in registers, square by
//!   square.
//! * **elements**: whatever remains, as rows of single elements.
//!
//! Before that, elements are made as wide as they can be: if four bytes always stay together, they
//! are one word.

use tilewright_atoms::{CopyAtom, TiledCopy};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Element, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use crate::axes::{Axis, common};
use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;

/// How many bytes side by side a tile has on either side.
const RUN: i64 = 256;
/// The widest access of a thread, in bytes.
const VECTOR: i64 = 16;
/// From which length on, in bytes, a run that both sides share is moved as it is.
const LONG: i64 = 64;
/// Threads of a block.
const THREADS: i64 = 256;
/// The most blocks of a grid along its first axis.
const MAX_BLOCKS: i64 = (1 << 31) - 1;

/// A kernel that moves a tensor of `source` elements under the layout `from` to one of
/// `destination` elements under `to`.
///
/// Both layouts have the same number of elements, cut at the same places, and begin at offset 0 of
/// their tensors. `to` is injective; `from` may repeat elements.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::relayout;
///
/// let plan = relayout(&"(512,256):(256,1)".parse().unwrap(), Element::F32, &"(512,256):(1,512)".parse().unwrap(), Element::F32).unwrap();
/// assert!(plan.to_string().contains("tiles of 64 x 64"));
/// assert_eq!(plan.bytes(), 2 * 4 * 512 * 256);
/// ```
///
/// Errors: sizes or shapes do not go together; a layout begins before its tensor; the destination
/// overlaps itself; there are more blocks than a launch takes.
pub fn relayout(from: &Layout, source: Element, to: &Layout, destination: Element) -> Result<Planned, PlanError> {
    for layout in [from, to] {
        let (least, _) = layout.range()?;
        if least < 0 {
            return Err(PlanError::Before { layout: layout.to_string(), least });
        }
    }
    if !to.is_injective()? {
        return Err(PlanError::Overlap { layout: to.to_string() });
    }
    let mut plan = vec![format!("{source} {from} -> {destination} {to}")];
    let mut axes = common(from, to)?;
    let bytes = from.size() * i64::from(source.bytes() + destination.bytes());
    let meaning = Meaning::Relayout { from: Box::new(from.clone()), source, to: Box::new(to.clone()), destination };
    let (mut source, mut destination) = (source, destination);
    if source == destination
        && let Some(word) = widened(&mut axes, source)
    {
        plan.push(format!(
            "{} {source} side by side on both sides are one word of {} bytes",
            word.bytes() / source.bytes(),
            word.bytes()
        ));
        (source, destination) = (word, word);
    }
    let types = (source, destination);
    let kernel = match shape_of(&axes, source) {
        Shape::Rows { vector } => {
            plan.push(format!("rows: {vector} elements of {source} a thread, in the order of the output"));
            rows(&axes, types, vector)?
        }
        Shape::Tiles { row, column, square } => {
            let side = 16 * square;
            plan.push(format!(
                "tiles of {side} x {side} through shared memory, turned in squares of {square} x {square}; blocks go along the output"
            ));
            tiles(&axes, types, row, column, square)?
        }
    };
    Ok(Planned::new(kernel, plan, meaning).moving(bytes))
}

/// How a kernel goes through the axes.
enum Shape {
    Rows {
        vector: i64,
    },
    /// `row` is contiguous in the source, `column` in the destination.
    Tiles {
        row: usize,
        column: usize,
        square: i64,
    },
}

/// Takes elements that always stay together as one word; the type of such words.
fn widened(axes: &mut [Axis], element: Element) -> Option<Element> {
    let first = *axes.first()?;
    if first.source != 1 || first.destination != 1 {
        return None;
    }
    let bytes = i64::from(element.bytes());
    let fits = |count: i64| {
        first.extent % count == 0
            && axes[1..].iter().all(|axis| axis.source % count == 0 && axis.destination % count == 0)
    };
    let count = [8, 4, 2].into_iter().find(|count| bytes * count <= 8 && fits(*count))?;
    axes[0].extent /= count;
    for axis in &mut axes[1..] {
        axis.source /= count;
        axis.destination /= count;
    }
    Element::ALL.into_iter().find(|word| {
        i64::from(word.bytes()) == bytes * count && matches!(word, Element::U16 | Element::U32 | Element::U64)
    })
}

fn shape_of(axes: &[Axis], element: Element) -> Shape {
    let bytes = i64::from(element.bytes());
    let first = axes[0];
    let vector = (VECTOR / bytes).max(1);
    let shared = first.source == 1 && first.destination == 1;
    if shared && first.extent * bytes >= LONG {
        let mut width = vector;
        while width > 1
            && (first.extent % width != 0
                || axes[1..].iter().any(|axis| axis.source % width != 0 || axis.destination % width != 0))
        {
            width /= 2;
        }
        return Shape::Rows { vector: width };
    }
    // An axis on either side that is long enough for half a tile.
    let long = |axis: &Axis| axis.extent * bytes >= RUN / 4;
    let row = axes.iter().position(|axis| axis.source == 1 && long(axis));
    let column = axes.iter().position(|axis| axis.destination == 1 && long(axis));
    match (row, column) {
        (Some(row), Some(column)) if row != column => Shape::Tiles { row, column, square: vector },
        _ => Shape::Rows { vector: 1 },
    }
}

fn text(modes: &[(i64, i64)]) -> String {
    let list = |each: &dyn Fn(&(i64, i64)) -> i64| {
        modes.iter().map(|mode| each(mode).to_string()).collect::<Vec<_>>().join(",")
    };
    format!("({}):({})", list(&|mode| mode.0), list(&|mode| mode.1))
}

fn blocks(count: i64) -> Result<i64, PlanError> {
    match count {
        1..=MAX_BLOCKS => Ok(count),
        asked => Err(PlanError::TooLarge { what: "blocks", asked, limit: MAX_BLOCKS }),
    }
}

/// A coordinate with `_` where nothing is given.
fn coordinate(parts: impl IntoIterator<Item = Option<Expr>>) -> Result<Coord<Expr>, LayoutError> {
    Tree::flat(parts.into_iter().map(|part| part.map_or(Slot::All, Slot::At)))
}

/// One vector a thread, threads in the order of the output.
fn rows(axes: &[Axis], (source, destination): (Element, Element), vector: i64) -> Result<Kernel, PlanError> {
    let mut extents = vec![axes[0].extent / vector];
    extents.extend(axes[1..].iter().map(|axis| axis.extent));
    let total = extents.iter().try_fold(1_i64, |total, extent| total.checked_mul(*extent));
    let total = total.filter(|total| *total <= i64::from(i32::MAX) - THREADS).ok_or(PlanError::TooLarge {
        what: "vectors",
        asked: total.unwrap_or(i64::MAX),
        limit: i64::from(i32::MAX) - THREADS,
    })?;
    let count = blocks((total + THREADS - 1) / THREADS)?;
    let layout = |stride: &dyn Fn(&Axis) -> i64| {
        let mut modes = vec![(vector, stride(&axes[0])), (axes[0].extent / vector, stride(&axes[0]) * vector)];
        modes.extend(axes[1..].iter().map(|axis| (axis.extent, stride(axis))));
        text(&modes)
    };
    let (from, to) = (layout(&|axis| axis.source), layout(&|axis| axis.destination));
    let kernel = Kernel::build("relayout_rows", |k| {
        let from = k.tensor_of(source, "source", &from, Role::Input)?;
        let to = k.tensor_of(destination, "destination", &to, Role::Output)?;
        k.threads(THREADS)?;
        k.grid(operation::Axis::X, &count.to_string())?;
        let number = number_of_vector(k)?;
        let digits = k.coordinate(&number, &extents)?;
        let at = coordinate(std::iter::once(None).chain(digits.into_iter().map(Some)))?;
        let values = from.slice(at.clone())?.load_predicated()?;
        let values = if source == destination { values } else { values.map(|x| Ok(x.to(destination)))? };
        to.slice(at)?.store_predicated(&values)
    })?;
    Ok(kernel)
}

/// `block * threads + thread`.
fn number_of_vector(k: &Build) -> Result<Expr, KernelError> {
    let block = k.block_number(operation::Axis::X);
    let thread = k.thread()?;
    let number = Stride::times(&block, &Expr::from(THREADS)).and_then(|first| Stride::plus(&first, &thread));
    Ok(number.unwrap_or(thread))
}

/// A tile a block, through shared memory.
fn tiles(
    axes: &[Axis],
    (source, destination): (Element, Element),
    row: usize,
    column: usize,
    square: i64,
) -> Result<Kernel, PlanError> {
    let side = 16 * square;
    let others: Vec<usize> = (0..axes.len()).filter(|axis| *axis != row && *axis != column).collect();
    // Modes: the row of the source, the row of the destination, and the others in the order of the
    // output.
    let order: Vec<usize> = [row, column].into_iter().chain(others.iter().copied()).collect();
    let layout = |stride: &dyn Fn(&Axis) -> i64| {
        text(&order.iter().map(|axis| (axes[*axis].extent, stride(&axes[*axis]))).collect::<Vec<_>>())
    };
    let (from, to) = (layout(&|axis| axis.source), layout(&|axis| axis.destination));
    let tiles_of = |axis: usize| (axes[axis].extent + side - 1) / side;
    // Blocks that follow each other go along the output.
    let mut counts = vec![tiles_of(column), tiles_of(row)];
    counts.extend(others.iter().map(|axis| axes[*axis].extent));
    let total = counts.iter().try_fold(1_i64, |total, count| total.checked_mul(*count));
    let total = blocks(total.unwrap_or(i64::MAX))?;
    // Chunks of 16 bytes change places by the square that they belong to, so that squares side by
    // side meet other banks.
    let chunks = side / square;
    let (log_square, log_side) = (square.trailing_zeros(), side.trailing_zeros());
    let bits = chunks.trailing_zeros().min(3);
    let shift = log_side + log_square - log_square;
    let swizzle = format!("S<{bits},{log_square},{shift}>");
    let tile_layout = format!("{swizzle} o 0 o ({side},{side}):(1,{side})");
    let name = format!("({side},{side})");
    let copy = |threads: String, values: String| -> Result<TiledCopy, PlanError> {
        let bits = i64::from(source.bits());
        let atom = CopyAtom::named("UniversalCopy<uint128_t>")?;
        TiledCopy::new(atom, bits, &threads.parse()?, &values.parse()?).map_err(PlanError::from)
    };
    let load = copy(format!("({chunks},{}):(1,{chunks})", THREADS / chunks), format!("({square},1)"))?;
    let name = &name;
    let kernel = Kernel::build("relayout_tiles", |k| {
        let from = k.tensor_of(source, "source", &from, Role::Input)?;
        let to = k.tensor_of(destination, "destination", &to, Role::Output)?;
        let tile = k.shared_of(source, &tile_layout)?;
        k.grid(operation::Axis::X, &total.to_string())?;
        let block = k.block_number(operation::Axis::X);
        let digits = k.coordinate(&block, &counts)?;
        let at = |first: Option<Expr>, second: Option<Expr>, rest: &[Expr]| {
            coordinate([first, second].into_iter().chain(rest.iter().cloned().map(Some)))
        };
        let outer = at(None, None, &digits[2..])?;
        let inner = at(Some(digits[1].clone()), Some(digits[0].clone()), &[])?;
        let source_tile = from.slice(outer.clone())?.local_tile(name, inner.clone())?;
        let target_tile = to.slice(outer)?.local_tile(name, inner)?;
        k.copy_predicated(&load, &source_tile, &tile)?;
        k.barrier();
        // Thread (c, r) takes square (r, c): neighbours write side by side.
        let squares = format!("[({square},{chunks}):(1,{square});({square},{chunks}):(1,{square})]");
        let digits = k.coordinate(&k.thread()?, &[chunks, chunks])?;
        let one = |digit: &Expr| coordinate([None, Some(digit.clone())]);
        let mine = Tree::tuple([&one(&digits[1])?, &one(&digits[0])?])?;
        let values = tile.compose(&squares)?.slice(mine.clone())?.load()?;
        let values = if source == destination { values } else { values.map(|x| Ok(x.to(destination)))? };
        target_tile.compose(&squares)?.slice(mine)?.store_predicated(&values)
    })?;
    Ok(kernel)
}
