//! Bulk copies: boxes of a tensor, moved by the copy engine.
//!
//! Law: a box is as many elements of a tile as lie in shared memory one after the other while each
//! further mode is a step of 1 in a dimension of the tensor that is not in the box yet. Going along
//! shared memory says which coordinate lies where, so boxes, their corners and the tensor map
//! follow from the two layouts (`tilewright_atoms::TensorMap` has the same law for known numbers).
//! What a box has past the edges is read as 0 and not written. A mode whose elements change places
//! in shared memory is several dimensions, where its extent is shown to be a multiple of theirs. A
//! mode of one element is a dimension where a box may begin past it, which has no edges otherwise.
//!
//! The engine permutes by the bits of addresses, so a box may begin at any line of the pattern of
//! its swizzle.

use tilewright_atoms::{MAX_DIMENSIONS, SwizzleMode};
use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{Coordinate, Extent, Layout, LayoutError, ModePath, Stride};

use super::Build;
use super::core::Core;
use super::tensor::{self, View};
use crate::error::{KernelError, Reason};
use crate::program::memory::{Access, Cache, Dimension, Map, MapId, Space};
use crate::program::operation::Operation;
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// The most elements of a box along a dimension.
const MAX_BOX: i64 = 256;
/// What places in shared memory are multiples of, in bytes.
const LINE: i64 = 128;
/// What strides and corners are multiples of, in bytes.
const UNIT: i64 = 16;

/// One box: its corner, a number for each dimension of the map, and where it begins in shared
/// memory, in elements.
pub(crate) struct Box {
    corner: Vec<Expr>,
    offset: Expr,
}

/// The boxes that make a tile.
pub(crate) struct Boxes {
    pub(crate) map: MapId,
    pub(crate) boxes: Vec<Box>,
    /// Bytes of all of them.
    pub(crate) bytes: i64,
}

fn overflow() -> Reason {
    Reason::Layout(LayoutError::Overflow { op: "bulk_copy" })
}

/// A dimension of a tensor map: a mode of the tensor, or a part of one, whose coordinates are those
/// of the mode divided by `from`, modulo the extent where it is not the last part.
struct Part {
    path: ModePath,
    from: i64,
    /// The modulus; none for the last part.
    modulus: Option<i64>,
    extent: Expr,
    stride: Expr,
    /// How much of it a box has; none where it has one coordinate.
    boxed: Option<i64>,
}

impl Part {
    fn whole((path, extent, stride): (ModePath, Expr, Expr)) -> Part {
        Part { path, from: 1, modulus: None, extent, stride, boxed: None }
    }

    /// Parts the dimension of a mode in two, so that one begins at a multiple of the coordinate:
    /// its number. None where the box crosses the border, the extent is not shown to be a multiple,
    /// or there would be too many dimensions.
    fn parted(parts: &mut Vec<Part>, path: ModePath, scale: i64) -> Option<usize> {
        let inside = |part: &Part| {
            let end = part.modulus.map_or(i64::MAX, |modulus| part.from * modulus);
            part.path == path && part.from < scale && scale < end && scale % part.from == 0
        };
        let at = parts.iter().position(inside)?;
        let ratio = scale / parts[at].from;
        let size = Expr::from(ratio);
        let dimensions = parts.iter().filter(|part| part.extent.known() != Some(1)).count();
        let own = &parts[at];
        let whole = ratio % own.boxed.unwrap_or(1) == 0 && size.divides(&own.extent).proved();
        if !whole || dimensions >= MAX_DIMENSIONS {
            return None;
        }
        let (extent, _) = own.extent.divide(&size)?;
        let stride = Stride::times(&own.stride, &size)?;
        let modulus = own.modulus.map(|modulus| modulus / ratio);
        parts.push(Part { path, from: scale, modulus, extent, stride, boxed: None });
        parts[at].extent = size;
        parts[at].modulus = Some(ratio);
        Some(parts.len() - 1)
    }

    /// The coordinate of a part, of that of the mode.
    fn coordinate(&self, of_mode: &Expr) -> Option<Expr> {
        let (own, _) =
            if self.from == 1 { (of_mode.clone(), Expr::from(0)) } else { of_mode.divide(&Expr::from(self.from))? };
        match self.modulus {
            None => Some(own),
            Some(modulus) => Some(own.divide(&Expr::from(modulus))?.1),
        }
    }
}

/// The path, extent and stride of each leaf.
fn gather(layout: &Layout<Expr>, path: ModePath, found: &mut Vec<(ModePath, Expr, Expr)>) -> Result<(), LayoutError> {
    if let ([leaf], true) = (layout.leaves(), layout.profile().is_leaf()) {
        found.push((path, leaf.extent.clone(), leaf.stride.clone()));
        return Ok(());
    }
    layout.modes().enumerate().try_for_each(|(mode, part)| gather(&part, path.then(mode)?, found))
}

impl Core {
    /// The map, which may be there already.
    fn map(&mut self, map: Map) -> MapId {
        let same =
            |own: &Map| own.buffer == map.buffer && own.swizzle == map.swizzle && own.dimensions == map.dimensions;
        if let Some(known) = self.maps.iter().position(same) {
            return MapId(known as u32);
        }
        self.maps.push(map);
        MapId(self.maps.len() as u32 - 1)
    }
}

impl Build {
    /// The boxes of a tile of a tensor and its place in shared memory.
    pub(crate) fn boxes<'k>(&'k self, global: &View<'k>, shared: &View<'k>) -> Result<Boxes, Reason> {
        let refuse = |because: &str| Reason::Width {
            tensor: global.text(),
            atom: "a bulk copy".to_string(),
            elements: 128 / global.element.bits(),
            because: because.to_string(),
        };
        if global.is_shared() || !shared.is_shared() {
            return Err(refuse("one side is in global memory, the other in shared memory"));
        }
        if !global.ends.is_empty() {
            return Err(refuse("it goes to the edges of a tensor, and this one ends before"));
        }
        if global.element != shared.element {
            return Err(Reason::Elements { wanted: shared.element, given: global.element });
        }
        let count = |view: &View<'k>| {
            let open = || Reason::Open { what: "the number of elements", layout: view.text() };
            view.layout.size().known().and_then(|size| usize::try_from(size).ok()).ok_or_else(open)
        };
        let (size, wanted) = (count(shared)?, count(global)?);
        if size != wanted {
            return Err(Reason::Sizes {
                left: global.text(),
                left_size: wanted.to_string(),
                right: shared.text(),
                right_size: size.to_string(),
            });
        }
        let bits = i64::from(global.element.bits());
        let swizzle = mode_of(shared, bits).ok_or_else(|| refuse("the swizzle is none of the copy engine"))?;
        // The whole tensor, as it was declared.
        let whole = {
            let mut core = self.core();
            let text = core.buffers[global.buffer.index()].layout.clone();
            let (map, _, layout) = tensor::read(&mut core, &text)?;
            if map.is_some() {
                return Err(refuse("a tensor map has no swizzle of global memory"));
            }
            layout
        };
        let mut leaves = Vec::new();
        gather(&whole, ModePath::ROOT, &mut leaves)?;
        let mut parts: Vec<Part> = leaves.into_iter().map(Part::whole).collect();
        // Which coordinates lie along shared memory.
        let within = shared.layout.numbers(&Values::new())?;
        let inverse = within.right_inverse()?;
        if inverse.size() as usize != size {
            return Err(refuse("it does not lie in shared memory without gaps"));
        }
        let along = global.place.layout.compose(&Layout::<Expr>::from(&inverse))?;
        let bytes = |elements: &Expr| Stride::times(elements, &Expr::from(bits / 8)).ok_or_else(overflow);
        let mut order: Vec<usize> = Vec::new();
        let (mut volume, mut parted) = (1_i64, false);
        for leaf in along.leaves() {
            let Some(extent) = leaf.extent.known() else { break };
            if extent == 1 {
                continue;
            }
            let Some((path, scale)) = leaf.stride.term() else { break };
            let Some(scale) = scale.known() else { break };
            let free = |part: &Part| part.path == path && part.from == scale && part.boxed.is_none();
            let found = parts.iter().position(free);
            // A box that is less than the pattern of the swizzle could begin nowhere else in it.
            let small = volume * bits / 8 < swizzle.period();
            let at = match found {
                Some(at) => at,
                None if small || parted => match Part::parted(&mut parts, path, scale) {
                    Some(at) => at,
                    None => break,
                },
                None => break,
            };
            parted |= found.is_none();
            let boxed = (1..=MAX_BOX.min(extent)).rev().find(|part| extent % part == 0).unwrap_or(1);
            parts[at].boxed = Some(boxed);
            order.push(at);
            volume *= boxed;
            if boxed < extent || order.len() == MAX_DIMENSIONS {
                break;
            }
        }
        // Where each box begins in shared memory, and in the tensor.
        let mut places: Vec<(i64, Coordinate<Expr>)> = Vec::new();
        for index in (0..size as i64).step_by(volume as usize) {
            let part: Coordinate<Expr> = along.eval(&Expr::from(index))?;
            places.push((index, global.place.start.plus(&part).ok_or_else(overflow)?));
        }
        let always_first = |part: &Part| {
            let at = |(_, at): &(i64, Coordinate<Expr>)| part.coordinate(&at.scale_at(part.path));
            places.iter().all(|place| at(place).is_some_and(|at| at.range() == (Some(0), Some(0))))
        };
        let of_one = |part: &Part| part.extent.known() == Some(1);
        let others = (0..parts.len()).filter(|at| {
            let part = &parts[*at];
            part.boxed.is_none() && !(of_one(part) && always_first(part))
        });
        let others: Vec<usize> = others.collect();
        order.extend(others);
        let mut dimensions: Vec<(&Part, Dimension)> = Vec::new();
        for at in order {
            let part = &parts[at];
            // No box steps along a mode of one element, so its stride may be any number.
            let stride = match part.boxed {
                None if of_one(part) => Expr::from(UNIT),
                _ => bytes(&part.stride)?,
            };
            let boxed = part.boxed.unwrap_or(1) as u32;
            dimensions.push((part, Dimension { extent: part.extent.clone(), stride, boxed }));
        }
        let Some((_, first)) = dimensions.first().filter(|(part, _)| part.boxed.is_some()) else {
            return Err(refuse("no neighbours in shared memory are neighbours in the tensor"));
        };
        if first.stride.known() != Some(bits / 8) {
            return Err(refuse("neighbours in shared memory are none in the tensor"));
        }
        let row = i64::from(first.boxed) * bits / 8;
        if row % UNIT != 0 || (swizzle != SwizzleMode::None && row != UNIT * swizzle.units()) {
            return Err(refuse("a row of the box is no multiple of 16 bytes, or no line of the swizzle"));
        }
        if dimensions.len() > MAX_DIMENSIONS {
            return Err(refuse("a tensor map has at most 5 dimensions"));
        }
        let unit = Expr::from(UNIT);
        if dimensions.iter().skip(1).any(|(_, dimension)| !unit.divides(&dimension.stride).proved()) {
            return Err(refuse("its strides are not shown to be multiples of 16 bytes"));
        }
        let line = Expr::from((LINE * 8 / bits).max(1));
        let mut boxes = Vec::new();
        for (index, at) in &places {
            let corner = dimensions.iter().map(|(part, _)| part.coordinate(&at.scale_at(part.path)));
            let corner = corner.collect::<Option<Vec<Expr>>>();
            let corner = corner.ok_or_else(|| refuse("a corner of a box is a number that is not divided exactly"))?;
            if !unit.divides(&bytes(&corner[0])?).proved() {
                return Err(refuse("a box is not shown to begin at a multiple of 16 bytes"));
            }
            let offset = Stride::plus(&shared.offset, &Expr::from(*index)).ok_or_else(overflow)?;
            if !line.divides(&offset).proved() {
                return Err(refuse("a box does not begin at a multiple of 128 bytes of shared memory"));
            }
            boxes.push(Box { corner, offset });
        }
        let dimensions = dimensions.into_iter().map(|(_, dimension)| dimension).collect();
        let map = self.core().map(Map { buffer: global.buffer, dimensions, swizzle });
        Ok(Boxes { map, boxes, bytes: size as i64 * bits / 8 })
    }

    /// Sets off bulk copies of a tile from shared memory to a tensor, by one thread
    /// ([`Build::single`]): the tensor map follows from the layouts of both. What the tile has past
    /// the edges of the tensor is left out. The threads that stored to the tile have fenced
    /// ([`Build::fence_async`]) and met this one at a barrier.
    ///
    /// Errors: sizes or types differ; the tile does not lie in shared memory as boxes of the tensor
    /// lie; what is not shown to be aligned.
    #[track_caller]
    pub fn store_bulk<'k>(&'k self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        let location = Location::caller();
        self.stored_bulk(source, destination, Cache::Default).map_err(|refusal| refusal.at("store_bulk", location))
    }

    /// As [`Build::store_bulk`], for data that nobody reads soon: the L2 cache evicts its lines
    /// first (`L2::evict_first`).
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret, ptx};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // What is copied once need not stay in the cache.
    /// let kernel = Kernel::build("moved", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(64,32):(32,1)")?, k.output::<f32>("y", "(64,32):(32,1)")?);
    ///     k.threads(32)?;
    ///     let tile = k.shared::<f32>("(64,32):(32,1)")?;
    ///     let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
    ///     k.single(|| {
    ///         stage.acquire()?;
    ///         stage.load_once(&x, &tile)?;
    ///         stage.publish()
    ///     })?;
    ///     stage.wait()?;
    ///     k.single(|| {
    ///         k.store_bulk_once(&tile, &y)?;
    ///         k.commit_bulk();
    ///         k.wait_bulk(0);
    ///         Ok(())
    ///     })?;
    ///     stage.release()
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// let text = ptx::write(kernel.program(), ptx::Target::Sm90a)?;
    /// assert_eq!(text.matches(".L2::cache_hint").count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::store_bulk`].
    #[track_caller]
    pub fn store_bulk_once<'k>(&'k self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        let location = Location::caller();
        self.stored_bulk(source, destination, Cache::Streaming)
            .map_err(|refusal| refusal.at("store_bulk_once", location))
    }

    #[track_caller]
    fn stored_bulk<'k>(&'k self, source: &View<'k>, destination: &View<'k>, cache: Cache) -> Result<(), Reason> {
        let statement = if cache == Cache::Streaming { "store_bulk_once" } else { "store_bulk" };
        self.core().begin(Source { statement, location: Location::caller() });
        destination.writable()?;
        let boxes = self.boxes(destination, source)?;
        // The boxes are the tile, and what they have past the edges is left out.
        destination.remember_write(None)?;
        for at in &boxes.boxes {
            let (from, address, corner) = self.placed(at, source)?;
            let inputs: Vec<Register> = address.into_iter().chain(corner).collect();
            let from = Access { cache, ..from };
            self.core().effect(Operation::BulkStore { map: boxes.map, from }, inputs, &[], None);
        }
        Ok(())
    }

    /// The bulk stores of this thread since the last call are a group
    /// (`cp.async.bulk.commit_group`).
    #[track_caller]
    pub fn commit_bulk(&self) {
        let mut core = self.core();
        core.begin(Source { statement: "commit_bulk", location: Location::caller() });
        core.effect(Operation::CommitBulk, [], &[], None);
    }

    /// Waits until at most so many groups of bulk stores of this thread still read shared memory
    /// (`cp.async.bulk.wait_group.read`): before their source is written anew, and before the
    /// thread ends.
    #[track_caller]
    pub fn wait_bulk(&self, groups: u32) {
        let mut core = self.core();
        core.begin(Source { statement: "wait_bulk", location: Location::caller() });
        core.effect(Operation::WaitBulk { groups, read: true }, [], &[], None);
    }

    /// Where a box lies in shared memory, and the registers of its address and its corner.
    pub(crate) fn placed(&self, at: &Box, shared: &View<'_>) -> Result<(Access, Vec<Register>, Vec<Register>), Reason> {
        shared.own_block("a bulk copy")?;
        let mut core = self.core();
        // The engine counts from where the pattern begins, and permutes by itself.
        let plain = View { map: None, ..shared.clone() };
        let (address, offset) = plain.address(&mut core, &at.offset)?;
        let corner = at.corner.iter().map(|index| core.lower(index, Width::Bits32)).collect::<Result<_, _>>()?;
        let access = plain.access(address, offset, 64, 2);
        Ok((access, address.into_iter().collect(), corner))
    }

    /// A number of 64 bits in an array of barriers.
    pub(crate) fn object(
        &self,
        buffer: crate::program::memory::BufferId,
        index: &Expr,
    ) -> Result<(Access, Option<Register>), Reason> {
        let mut core = self.core();
        debug_assert!(core.buffers[buffer.index()].space == Space::Shared);
        let bytes = Stride::times(index, &Expr::from(8)).ok_or_else(overflow)?;
        let (address, offset) = match bytes.known() {
            Some(known) => (None, known),
            None => (Some(core.lower(&bytes, Width::Bits32)?), 0),
        };
        let addressed = address.is_some();
        Ok((Access { buffer, addressed, offset, bits: 64, count: 1, cache: Cache::Default }, address))
    }
}

/// The mode of the swizzle of a view in shared memory.
pub(crate) fn mode_of(shared: &View<'_>, bits: i64) -> Option<SwizzleMode> {
    let Some(found) = shared.map.filter(|swizzle| !swizzle.is_identity()) else { return Some(SwizzleMode::None) };
    SwizzleMode::ALL.into_iter().find(|mode| mode.swizzle(bits).is_ok_and(|swizzle| swizzle == found))
}
