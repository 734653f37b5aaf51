//! Relayout: copies a tensor from any layout to any other.
//!
//! Law: `destination[to(i)] = source[from(i)]` for every index `i`, converted if the types differ.
//!
//! Memory bandwidth limits the speed, so the plan is about cache lines: both sides should be
//! accessed in runs of hundreds of bytes, and the output in the order of its addresses. There are
//! five structures:
//!
//! * **rows** ([`rows`]): the same axis is contiguous on both sides, and long.
//! * **squares** ([`squares`]): one run of axes is contiguous in the source, another one in the
//!   destination, and both are aligned. A tile is staged in shared memory and transposed in
//!   registers.
//! * **windows** ([`windows`]): runs of any lengths and alignments, which may share axes. A tile is
//!   staged in shared memory in words, and read back element by element.
//! * **bits** ([`bits`]): layouts that are linear over bits (XOR). A tile is a linear space of
//!   indices, and is staged in shared memory.
//! * **elements**: everything else, in the order of the output.
//!
//! Before that, elements are widened as far as possible: up to four bytes that are adjacent on both
//! sides everywhere become one word.

mod bits;
mod rows;
mod share;
mod squares;
mod sum;
mod tile;
mod windows;

use tilewright_kernel::machine::{Machine, Multiprocessor};
use tilewright_kernel::{Element, Fragment, Kernel, KernelError, LayoutArgument};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Swizzle, Tree};

use crate::axes::{Axis, common};
use crate::error::PlanError;
use crate::fitted::{CACHED_L2_PERCENT, RELAYOUTS, WINDOWS};
use crate::law::{l2_share, shared_share};
use crate::planned::{Planned, distinct};
use crate::terms::{Meaning, Place};
use crate::units::{VECTOR, block_shared, resident_threads};

use self::bits::BitsPlan;
use self::squares::SquaresPlan;
use self::windows::WindowsPlan;

/// The most bytes of a tensor.
const MAX_BYTES: i64 = 1 << 56;
/// The most blocks of a grid along its first axis.
const MAX_BLOCKS: i64 = i32::MAX as i64;

/// Both layouts as axes, and the extents of their tensors.
#[derive(Debug, Clone)]
struct Sides {
    /// The axes in the order of the destination.
    axes: Vec<Axis>,
    source: Element,
    destination: Element,
    /// The offset of element 0, on either side.
    bases: (i64, i64),
    /// The number of elements from the beginning of either tensor to its last element.
    reach: (i64, i64),
    maps: [Option<Swizzle>; 2],
    /// The number of contiguous elements that both swizzles keep contiguous.
    kept: i64,
    limits: Limits,
}

/// The limits of a card that apply to tiles.
#[derive(Debug, Clone)]
struct Limits {
    multiprocessor: Multiprocessor,
    /// The number of blocks that keep all multiprocessors busy: two for each multiprocessor.
    blocks: i64,
    /// Tensors up to this size, in bytes, are as fast with short runs as with long ones.
    small: i64,
    /// Tensors up to this size, in bytes, are faster with small squares: for elements of 8 and of
    /// 16 bits.
    cached_squares: [i64; 2],
    /// The size of a tensor, in bytes, up to which a relayout by windows runs from the L2 cache.
    cached_windows: i64,
    /// The most shared memory of a tile of windows, in bytes.
    tile_bytes: i64,
    /// Tiles that need more than the first number of bytes reserve at least the second number.
    two_bytes: [i64; 2],
    /// Shared memory that the blocks of a multiprocessor can use without shrinking the L1 cache, in
    /// bytes.
    shared_bytes: i64,
}

impl Limits {
    fn of(machine: &Machine) -> Limits {
        let cached = l2_share(machine, CACHED_L2_PERCENT);
        Limits {
            multiprocessor: machine.multiprocessor,
            blocks: 2 * i64::from(machine.multiprocessors),
            small: l2_share(machine, RELAYOUTS.small_l2_percent),
            cached_squares: [cached, l2_share(machine, RELAYOUTS.squares.halves_l2_percent)],
            cached_windows: cached,
            tile_bytes: shared_share(machine, WINDOWS.tile_percent).min(block_shared(machine)),
            two_bytes: WINDOWS.two_percent.map(|percent| shared_share(machine, percent)),
            shared_bytes: shared_share(machine, WINDOWS.time.shared_percent),
        }
    }

    /// The number of resident blocks on a multiprocessor, by shared memory, threads, and registers
    /// of a thread; at least 1.
    fn resident(&self, shared: i64, threads: i64, registers: i64) -> i64 {
        let own = &self.multiprocessor;
        let by_shared = i64::from(own.shared_bytes) / (shared + i64::from(own.reserved_bytes));
        let by_threads = i64::from(resident_threads(own, registers)) / threads;
        by_shared.min(by_threads).min(own.blocks.into()).max(1)
    }
}

impl Sides {
    /// The bytes of an element of the wider type.
    fn widest(&self) -> i64 {
        self.source.bytes().max(self.destination.bytes()).into()
    }

    /// Values of the source in the type of the destination.
    fn converted<'k>(&self, values: Fragment<'k>) -> Result<Fragment<'k>, KernelError> {
        if self.source == self.destination { Ok(values) } else { values.map(|x| Ok(x.to(self.destination))) }
    }

    /// The layout that a kernel declares for a side with these modes.
    ///
    /// Errors: an element has no offset that is a number.
    fn declared(&self, side: usize, modes: &[(i64, i64)]) -> Result<LayoutArgument, LayoutError> {
        let base = if side == 0 { self.bases.0 } else { self.bases.1 };
        LayoutArgument::placed(self.maps[side], base, Layout::of_modes(modes.iter().copied())?)
    }

    /// The coordinates of the elements of the source at an offset; empty if no element is there.
    fn coordinates_of(&self, offset: i64) -> Vec<Vec<i64>> {
        let mut order: Vec<usize> = (0..self.axes.len()).collect();
        order.sort_by_key(|axis| std::cmp::Reverse(self.axes[*axis].source));
        let mut found = Vec::new();
        let mut coordinate = vec![0; self.axes.len()];
        self.search(&order, offset - self.bases.0, &mut coordinate, &mut found);
        found
    }

    fn search(&self, order: &[usize], left: i64, coordinate: &mut Vec<i64>, found: &mut Vec<Vec<i64>>) {
        let Some((axis, rest)) = order.split_first() else {
            if left == 0 {
                found.push(coordinate.clone());
            }
            return;
        };
        let Axis { extent, source, .. } = self.axes[*axis];
        let below: i64 = rest.iter().map(|axis| (self.axes[*axis].extent - 1) * self.axes[*axis].source).sum();
        // The rest of the offset, which the other axes cannot reach, must come from this axis.
        let (most, least) = (left / source, (left - below + source - 1).div_euclid(source));
        for at in least.max(0)..=most.min(extent - 1) {
            coordinate[*axis] = at;
            self.search(rest, left - at * source, coordinate, found);
        }
        coordinate[*axis] = 0;
    }
}

/// A kernel that copies a tensor of `source` elements with the layout `from` to a tensor of
/// `destination` elements with the layout `to`. Tiles are as large as possible while each
/// multiprocessor of the machine gets two or more.
///
/// Both layouts have the same size and stay inside their tensors, which begin at offset 0. `to` is
/// injective; `from` may repeat elements. An index is colexicographic in both shapes: the first
/// mode is the fastest.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::relayout;
/// use tilewright_layout::Layout;
///
/// let h200 = Machine::named("H200").unwrap();
/// let (from, to): (Layout, Layout) = ("(8192,4096):(4096,1)".parse().unwrap(), "(8192,4096)".parse().unwrap());
/// let plan = relayout(&h200, &from, Element::F32, &to, Element::F32).unwrap();
/// assert!(plan.to_string().contains("tiles of 64 x 128"));
/// assert_eq!(plan.bytes(), 2 * 4 * 8192 * 4096);
/// ```
///
/// Errors: the sizes differ; a layout begins before its tensor; the destination overlaps itself, or
/// is linear over bits with offsets that no strided layout has; there are more elements than a
/// launch takes.
pub fn relayout(
    machine: &Machine,
    from: impl Into<Place>,
    source: Element,
    to: impl Into<Place>,
    destination: Element,
) -> Result<Planned, PlanError> {
    let (from, to) = (from.into(), to.into());
    match of_structure(machine, (&from, source), (&to, destination), None)? {
        Some(planned) => Ok(planned),
        // The last structure takes all layouts.
        None => Err(PlanError::Plan { because: "no structure moves these layouts" }),
    }
}

/// The kernel of [`relayout`], and those of the other structures that apply.
///
/// Errors: those of [`relayout`].
pub(crate) fn candidates(
    machine: &Machine,
    from: (&Place, Element),
    to: (&Place, Element),
) -> Result<Vec<Planned>, PlanError> {
    let first = relayout(machine, from.0.clone(), from.1, to.0.clone(), to.1)?;
    let others = [Structure::Squares, Structure::Windows, Structure::Rows];
    let others = others.map(|structure| of_structure(machine, from, to, Some(structure)));
    Ok(distinct(first, others.into_iter().filter_map(Result::transpose)))
}

/// A structure of a relayout along axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structure {
    Rows,
    Squares,
    Windows,
}

/// The kernel of the requested structure, or of the best one; None if the layouts do not have that
/// structure.
fn of_structure(
    machine: &Machine,
    (from, source): (&Place, Element),
    (to, destination): (&Place, Element),
    asked: Option<Structure>,
) -> Result<Option<Planned>, PlanError> {
    for (place, element) in [(from, source), (to, destination)] {
        let (least, greatest) = place.range()?;
        let least = least.saturating_add(place.base);
        if least < 0 {
            return Err(PlanError::Before { layout: place.to_string(), least });
        }
        // Offsets in bytes, plus a tile, must fit in 64 bits.
        let last = greatest.max(place.layout.size()).saturating_add(place.base);
        if last.checked_mul(element.bytes().into()).is_none_or(|last| last > MAX_BYTES) {
            return Err(PlanError::TooLarge {
                what: "elements of a tensor",
                asked: last,
                limit: MAX_BYTES / i64::from(element.bytes()),
            });
        }
    }
    if !to.is_injective()? {
        return Err(PlanError::Overlap { layout: to.to_string() });
    }
    let mut plan = vec![format!("{source} {from} -> {destination} {to}")];
    let bytes = from.size().saturating_mul(i64::from(source.bytes() + destination.bytes()));
    let mut sides = Sides {
        axes: Vec::new(),
        source,
        destination,
        bases: (from.base, to.base),
        reach: (from.reach()?, to.reach()?),
        maps: [from.map, to.map],
        kept: from.kept().min(to.kept()),
        limits: Limits::of(machine),
    };
    let over_bits = from.bits.is_some() || to.bits.is_some();
    let kernel = match common(&from.layout, &to.layout)? {
        _ if over_bits && asked.is_some() => return Ok(None),
        _ if over_bits => match BitsPlan::plan(&sides, from, to) {
            Some(found) => {
                plan.push(found.describe());
                bits::kernel(&sides, &found, from, to)?
            }
            None => {
                plan.push("elements one by one: the layouts are linear over bits".to_string());
                rows::over_bits(&sides, from, to)?
            }
        },
        Some(axes) => {
            sides.axes = axes;
            match planned(&mut sides, &mut plan, (from, to), asked)? {
                Some(kernel) => kernel,
                None => return Ok(None),
            }
        }
        None if asked.is_some() => return Ok(None),
        None => {
            plan.push(
                "elements one by one, in the order of the output: the shapes have no common refinement".to_string(),
            );
            rows::indexed(&sides, &from.layout, &to.layout)?
        }
    };
    let (from, to) = (Box::new(from.clone()), Box::new(to.clone()));
    let meaning = Meaning::Relayout { from, source, to, destination };
    Ok(Some(Planned::new(kernel, plan, meaning).moving(bytes)))
}

/// The kernel of the requested structure, or of the one that fits the axes best; None if they do
/// not have that structure.
fn planned(
    sides: &mut Sides,
    plan: &mut Vec<String>,
    (from, to): (&Place, &Place),
    asked: Option<Structure>,
) -> Result<Option<Kernel>, PlanError> {
    let given = sides.clone();
    if let Some(word) = widened(sides) {
        plan.push(format!(
            "{} {} side by side on both sides are one word of {} bytes",
            word.bytes() / sides.source.bytes(),
            sides.source,
            word.bytes()
        ));
        (sides.source, sides.destination) = (word, word);
    }
    let sides = &*sides;
    let vector = vector(sides);
    let first = sides.axes[0];
    let bytes = i64::from(sides.source.bytes().min(sides.destination.bytes()));
    let in_rows = |vector: i64| match vector {
        1 => format!("elements of {} one by one, in the order of the output", sides.source),
        _ => format!("rows: {vector} elements of {} a thread, in the order of the output", sides.source),
    };
    let long =
        first.source == 1 && first.destination == 1 && first.extent * bytes >= 2 * RELAYOUTS.run && vector * bytes >= 4;
    let (squares, windows) = match asked {
        Some(Structure::Rows) => (None, None),
        Some(Structure::Squares) => (SquaresPlan::plan(sides), None),
        Some(Structure::Windows) => (None, WindowsPlan::plan(sides)),
        None if long => (None, None),
        None => {
            // Squares with long runs are faster than any windows, and so are squares of small
            // tensors.
            let size = sides.axes.iter().fold(bytes, |size, axis| size.saturating_mul(axis.extent));
            let squares = SquaresPlan::plan(sides);
            let whole = squares.as_ref().is_some_and(|squares| size <= sides.limits.small || squares.is_whole(sides));
            (squares, if whole { None } else { WindowsPlan::plan(sides) })
        }
    };
    let kernel = match (squares, windows) {
        (Some(squares), None) => {
            plan.push(squares.describe());
            squares::kernel(sides, &squares)
        }
        (_, Some(windows)) => {
            plan.push(windows.describe(&sides.axes));
            windows::kernel(sides, &windows)
        }
        _ if matches!(asked, Some(Structure::Squares | Structure::Windows)) => return Ok(None),
        _ if asked.is_some() || long => {
            plan.push(in_rows(vector));
            rows::rows(sides, vector)
        }
        _ => match BitsPlan::plan(&given, from, to).filter(|_| vector == 1) {
            Some(found) => {
                plan.truncate(1);
                plan.push(found.describe());
                bits::kernel(&given, &found, from, to)
            }
            None => {
                plan.push(in_rows(vector));
                rows::rows(sides, vector)
            }
        },
    };
    kernel.map(Some)
}

/// Merges elements that are adjacent on both sides everywhere into one word. Returns the type of
/// such words.
fn widened(sides: &mut Sides) -> Option<Element> {
    let first = *sides.axes.first()?;
    if sides.source != sides.destination || first.source != 1 || first.destination != 1 {
        return None;
    }
    let bytes = i64::from(sides.source.bytes());
    let fits = |count: i64| {
        let bases = sides.bases.0 % count == 0 && sides.bases.1 % count == 0;
        let reach = sides.reach.0 % count == 0 && sides.reach.1 % count == 0;
        let strides = sides.axes[1..].iter().all(|axis| axis.source % count == 0 && axis.destination % count == 0);
        first.extent % count == 0 && bases && reach && strides
    };
    if sides.maps.iter().any(Option::is_some) {
        return None;
    }
    let count = [8, 4, 2].into_iter().find(|count| bytes * count <= 8 && fits(*count))?;
    sides.axes[0].extent /= count;
    for axis in &mut sides.axes[1..] {
        axis.source /= count;
        axis.destination /= count;
    }
    sides.bases = (sides.bases.0 / count, sides.bases.1 / count);
    sides.reach = (sides.reach.0 / count, sides.reach.1 / count);
    Element::ALL.into_iter().find(|word| {
        i64::from(word.bytes()) == bytes * count && matches!(word, Element::U16 | Element::U32 | Element::U64)
    })
}

/// The number of elements along the first axis that are one access on both sides.
fn vector(sides: &Sides) -> i64 {
    let first = sides.axes[0];
    if first.source != 1 || first.destination != 1 {
        return 1;
    }
    let mut width = (VECTOR / sides.widest()).min(sides.kept).max(1);
    let whole = |width: i64| {
        let bases = sides.bases.0 % width == 0 && sides.bases.1 % width == 0;
        let strides = sides.axes[1..].iter().all(|axis| axis.source % width == 0 && axis.destination % width == 0);
        first.extent % width == 0 && bases && strides
    };
    while !whole(width) {
        width /= 2;
    }
    width
}

fn blocks(count: i64) -> Result<i64, PlanError> {
    match count {
        1..=MAX_BLOCKS => Ok(count),
        asked => Err(PlanError::TooLarge { what: "blocks", asked, limit: MAX_BLOCKS }),
    }
}

/// A coordinate with `_` for missing parts.
fn coordinate(parts: impl IntoIterator<Item = Option<Expr>>) -> Result<Coord<Expr>, LayoutError> {
    Tree::flat(parts.into_iter().map(|part| part.map_or(Slot::All, Slot::At)))
}
