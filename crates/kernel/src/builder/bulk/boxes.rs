//! The boxes of a tile.
//!
//! Law: a box consists of elements of a tile that are contiguous in shared memory, as long as each
//! further mode is a step of 1 in a dimension of the tensor that is not in the box yet. The order
//! of shared memory determines the coordinates, so boxes, their origins and the tensor map follow
//! from the two layouts (`tilewright_layout::atoms::TensorMap` has the same law for constants). A
//! mode whose elements are permuted in shared memory becomes several dimensions, if its extent is
//! proved to be a multiple of theirs. A mode of extent 1 needs a dimension of its own if a box may
//! begin past it, because it would have no edge otherwise.
//!
//! TMA applies the swizzle to bits of addresses, so a box may begin at any line of the swizzle
//! pattern.
//!
//! Boxes that are stored must stay inside the tensor. TMA writes whole chunks of 16 bytes, so the
//! innermost extent must be proved to be a whole number of them, or no box may reach past it. TMA
//! traps at negative coordinates, so all coordinates must be proved to be at least 0.

use tilewright_layout::atoms::{MAX_DIMENSIONS, SwizzleMode};
use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{Coordinate, Extent, Layout, LayoutError, ModePath, Stride};

use super::super::Build;
use super::super::address::Terms;
use super::super::core::Core;
use super::super::tensor::{self, View};
use super::{mode_of, overflow};
use crate::arguments::LayoutArgument;
use crate::error::Reason;
use crate::program::memory::{Dimension, MapId, TensorMap};

/// The most elements of a box along a dimension.
const MAX_BOX: i64 = 256;
/// The alignment of boxes in shared memory, in bytes.
const LINE: i64 = 128;
/// The alignment of strides and box origins, in bytes.
const UNIT: i64 = 16;

/// One box: its origin, a coordinate for each dimension of the map, and its offset in shared
/// memory, in elements.
pub(crate) struct Box {
    pub(super) corner: Vec<Expr>,
    pub(super) offset: Expr,
}

/// The boxes that cover a tile.
pub(crate) struct TileBoxes {
    pub(crate) map: MapId,
    pub(crate) boxes: Vec<Box>,
    /// Bytes of all boxes.
    pub(crate) bytes: i64,
}

/// A dimension of a tensor map: a mode of the tensor, or a part of one. Its coordinates are those
/// of the mode divided by `from`, modulo `modulus` unless it is the last part.
struct MapDimension {
    path: ModePath,
    from: i64,
    /// The modulus; None for the last part.
    modulus: Option<i64>,
    extent: Expr,
    stride: Expr,
    /// The extent of a box along it, if a box covers several coordinates.
    boxed: Option<i64>,
}

impl MapDimension {
    fn whole((path, extent, stride): (ModePath, Expr, Expr)) -> MapDimension {
        MapDimension { path, from: 1, modulus: None, extent, stride, boxed: None }
    }

    /// Splits the dimension of a mode in two, so that one begins at a multiple of the coordinate,
    /// and returns its number. None if the box crosses the boundary, if the extent is not proved to
    /// be a multiple, or if there would be too many dimensions.
    fn parted(parts: &mut Vec<MapDimension>, path: ModePath, scale: i64) -> Option<usize> {
        let inside = |part: &MapDimension| {
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
        parts.push(MapDimension { path, from: scale, modulus, extent, stride, boxed: None });
        parts[at].extent = size;
        parts[at].modulus = Some(ratio);
        Some(parts.len() - 1)
    }

    /// The coordinate along a part, given that along the mode.
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
    /// The number of a tensor map, which is added unless it exists.
    fn map(&mut self, map: TensorMap) -> MapId {
        let same = |own: &TensorMap| {
            own.buffer == map.buffer && own.swizzle == map.swizzle && own.dimensions == map.dimensions
        };
        if let Some(known) = self.maps.iter().position(same) {
            return MapId(known as u32);
        }
        self.maps.push(map);
        MapId(self.maps.len() as u32 - 1)
    }
}

/// The index of shared memory at which a box begins, and the tensor coordinate at that index.
type BoxPlace = (i64, Coordinate<Expr>);

/// The tensor coordinates in the order of shared memory, and the parts that a box covers.
struct Inside {
    /// The coordinate of the tensor at each index of shared memory.
    along: Layout<Coordinate<Expr>>,
    /// The parts, by number, and the number of elements of a box.
    order: Vec<usize>,
    volume: i64,
}

/// The refusal of a bulk copy of a tile.
fn refused(global: &View<'_>, because: &str) -> Reason {
    Reason::Width {
        tensor: global.text(),
        atom: "a bulk copy".to_string(),
        elements: 128 / global.element.bits(),
        because: because.to_string(),
    }
}

impl Build {
    /// The boxes of a tile of a tensor in shared memory, for a load or for a store.
    pub(crate) fn boxes<'k>(&'k self, global: &View<'k>, shared: &View<'k>, stored: bool) -> Result<TileBoxes, Reason> {
        let refuse = |because: &str| refused(global, because);
        let (size, bits) = (common_size(global, shared)?, i64::from(global.element.bits()));
        let swizzle = mode_of(shared, bits).ok_or_else(|| refuse("TMA does not have the swizzle"))?;
        let mut parts = self.modes(global)?;
        let inside = inside(global, shared, size, (swizzle, &mut parts))?;
        // For each box, its index in shared memory and its origin in the tensor.
        let mut places: Vec<BoxPlace> = Vec::new();
        for index in (0..size).step_by(inside.volume as usize) {
            let part: Coordinate<Expr> = inside.along.eval(&Expr::from(index))?;
            places.push((index, global.place.start.plus(&part).ok_or_else(overflow)?));
        }
        let dimensions = dimensions(&parts, inside.order, &places, bits)?;
        check(&dimensions, swizzle, bits).map_err(refuse)?;
        let boxes = corners(global, shared, &dimensions, &places)?;
        if stored {
            boxes.iter().try_for_each(|own| stays_inside(global, &dimensions, own))?;
        }
        let dimensions = dimensions.into_iter().map(|(_, dimension)| dimension).collect();
        let map = self.core().map(TensorMap { buffer: global.buffer, dimensions, swizzle });
        Ok(TileBoxes { map, boxes, bytes: size * bits / 8 })
    }

    /// The dimensions of a whole tensor, as it was declared.
    fn modes(&self, global: &View<'_>) -> Result<Vec<MapDimension>, Reason> {
        // The layout is read again, because a tensor that was declared since may have stated more
        // facts about the same sizes.
        let mut core = self.core();
        let text = LayoutArgument::Text(core.buffers[global.buffer.index()].layout.clone());
        let (map, _, whole) = tensor::read(&mut core, &text)?;
        if map.is_some() {
            return Err(refused(global, "a tensor map has no swizzle of global memory"));
        }
        let mut leaves = Vec::new();
        gather(&whole, ModePath::ROOT, &mut leaves)?;
        Ok(leaves.into_iter().map(MapDimension::whole).collect())
    }
}

/// The number of elements of both sides; an error if they differ.
fn common_size(global: &View<'_>, shared: &View<'_>) -> Result<i64, Reason> {
    if global.is_shared() || !shared.is_shared() {
        return Err(refused(global, "one side is in global memory, the other in shared memory"));
    }
    if global.recast {
        return Err(refused(global, "a tensor map has the elements with which the tensor was declared"));
    }
    if !global.ends.is_empty() {
        return Err(refused(global, "it goes to the edges of a tensor, and this one ends before"));
    }
    if global.element != shared.element {
        return Err(Reason::Elements { wanted: shared.element, given: global.element });
    }
    let count = |view: &View<'_>| {
        let open = || Reason::Open { what: "the number of elements", layout: view.text() };
        view.layout.size().known().filter(|size| *size >= 0).ok_or_else(open)
    };
    let (size, wanted) = (count(shared)?, count(global)?);
    if size == wanted {
        return Ok(size);
    }
    Err(Reason::Sizes {
        left: global.text(),
        left_size: wanted.to_string(),
        right: shared.text(),
        right_size: size.to_string(),
    })
}

/// The tensor coordinates in the order of shared memory, and the parts that a box covers. Modes are
/// split if that makes the box as large as the swizzle pattern.
fn inside(
    global: &View<'_>,
    shared: &View<'_>,
    size: i64,
    (swizzle, parts): (SwizzleMode, &mut Vec<MapDimension>),
) -> Result<Inside, Reason> {
    let within = shared.layout.numbers(&Values::new())?;
    let inverse = within.right_inverse()?;
    if inverse.size() != size {
        return Err(refused(global, "it is not compact in shared memory"));
    }
    let along = global.place.layout.compose(&Layout::<Expr>::from(&inverse))?;
    let (mut order, mut volume, mut parted) = (Vec::new(), 1_i64, false);
    for leaf in along.leaves() {
        let Some(extent) = leaf.extent.known() else { break };
        if extent == 1 {
            continue;
        }
        let Some((path, scale)) = leaf.stride.term() else { break };
        let Some(scale) = scale.known() else { break };
        let free = |part: &MapDimension| part.path == path && part.from == scale && part.boxed.is_none();
        let found = parts.iter().position(free);
        // A box that is smaller than the swizzle pattern can begin at no other position in it.
        let small = volume * i64::from(global.element.bits()) / 8 < swizzle.period();
        let at = match found {
            Some(at) => at,
            None if small || parted => match MapDimension::parted(parts, path, scale) {
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
    Ok(Inside { along, order, volume })
}

fn bytes(elements: &Expr, bits: i64) -> Result<Expr, Reason> {
    Stride::times(elements, &Expr::from(bits / 8)).ok_or_else(overflow)
}

/// The dimensions of the tensor map, each with its part: first those with several coordinates in a
/// box, in this order. A mode of extent 1 is omitted if every box begins with it.
fn dimensions<'p>(
    parts: &'p [MapDimension],
    mut order: Vec<usize>,
    places: &[BoxPlace],
    bits: i64,
) -> Result<Vec<(&'p MapDimension, Dimension)>, Reason> {
    let always_first = |part: &MapDimension| {
        let at = |(_, at): &BoxPlace| part.coordinate(&at.scale_at(part.path));
        places.iter().all(|place| at(place).is_some_and(|at| at.range() == (Some(0), Some(0))))
    };
    let of_one = |part: &MapDimension| part.extent.known() == Some(1);
    order.extend((0..parts.len()).filter(|at| {
        let part = &parts[*at];
        part.boxed.is_none() && !(of_one(part) && always_first(part))
    }));
    let dimension = |at: usize| {
        let part = &parts[at];
        // If boxes have one element along a mode, its stride is irrelevant.
        let stride = match part.boxed {
            None if of_one(part) => Expr::from(UNIT),
            _ => bytes(&part.stride, bits)?,
        };
        let boxed = part.boxed.unwrap_or(1) as u32;
        Ok((part, Dimension { extent: part.extent.clone(), stride, boxed }))
    };
    order.into_iter().map(dimension).collect()
}

/// The reason why a tensor map cannot have these dimensions, if there is one.
fn check(dimensions: &[(&MapDimension, Dimension)], swizzle: SwizzleMode, bits: i64) -> Result<(), &'static str> {
    let Some((_, first)) = dimensions.first().filter(|(part, _)| part.boxed.is_some()) else {
        return Err("no neighbours in shared memory are neighbours in the tensor");
    };
    if first.stride.known() != Some(bits / 8) {
        return Err("neighbours in shared memory are none in the tensor");
    }
    let row = i64::from(first.boxed) * bits / 8;
    if row % UNIT != 0 || (swizzle != SwizzleMode::None && row != UNIT * swizzle.units()) {
        return Err("a row of the box is no multiple of 16 bytes, or no line of the swizzle");
    }
    if dimensions.len() > MAX_DIMENSIONS {
        return Err("a tensor map has at most 5 dimensions");
    }
    let unit = Expr::from(UNIT);
    if dimensions.iter().skip(1).any(|(_, dimension)| !unit.divides(&dimension.stride).proved()) {
        return Err("its strides are not shown to be multiples of 16 bytes");
    }
    Ok(())
}

/// Refuses a box that is not proved to stay inside its tensor when it is stored.
fn stays_inside(global: &View<'_>, dimensions: &[(&MapDimension, Dimension)], own: &Box) -> Result<(), Reason> {
    let core = global.build.core();
    let tensor = || core.buffers[global.buffer.index()].name.clone();
    if let Some(((part, _), at)) = dimensions.iter().zip(&own.corner).find(|(_, at)| !core.is_natural(at)) {
        let mode = global.bounds().iter().position(|(path, _)| *path == part.path).unwrap_or(0);
        return Err(Reason::Before { tensor: tensor(), coordinate: at.to_string(), mode });
    }
    let (Some((_, inner)), Some(first)) = (dimensions.first(), own.corner.first()) else { return Ok(()) };
    let unit = UNIT * 8 / i64::from(global.element.bits());
    let last = Stride::plus(first, &Expr::from(i64::from(inner.boxed) - 1)).ok_or_else(overflow)?;
    if Expr::from(unit).divides(&inner.extent).proved() || core.is_less(&last, &inner.extent) {
        return Ok(());
    }
    Err(Reason::Chunk { tensor: tensor(), extent: inner.extent.to_string(), unit, fact: fact(&inner.extent, unit) })
}

/// The fact that would make an extent a multiple of `unit`, if the extent is a multiple of one
/// size.
fn fact(extent: &Expr, unit: i64) -> Option<String> {
    let Terms { moving, constant: 0 } = Terms::of(extent)? else { return None };
    let [(factor, size)] = moving.as_slice() else { return None };
    let (mut common, mut rest) = (unit, factor.checked_abs()?);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    Some(format!("{}{{div={}}}", size.name()?, unit / common))
}

/// The boxes with these indices of shared memory.
fn corners(
    global: &View<'_>,
    shared: &View<'_>,
    dimensions: &[(&MapDimension, Dimension)],
    places: &[BoxPlace],
) -> Result<Vec<Box>, Reason> {
    let refuse = |because: &str| refused(global, because);
    let bits = i64::from(global.element.bits());
    let (unit, line) = (Expr::from(UNIT), Expr::from((LINE * 8 / bits).max(1)));
    let at = |(index, at): &BoxPlace| {
        let corner = dimensions.iter().map(|(part, _)| part.coordinate(&at.scale_at(part.path)));
        let corner = corner.collect::<Option<Vec<Expr>>>();
        let corner = corner.ok_or_else(|| refuse("a corner of a box is a number that is not divided exactly"))?;
        if !unit.divides(&bytes(&corner[0], bits)?).proved() {
            let at = corner[0].to_string();
            return Err(refuse(&format!("a box begins at {at} along them, not shown to be a multiple of 16 bytes")));
        }
        let offset = Stride::plus(&shared.offset, &Expr::from(*index)).ok_or_else(overflow)?;
        if !line.divides(&offset).proved() {
            return Err(refuse("a box does not begin at a multiple of 128 bytes of shared memory"));
        }
        Ok(Box { corner, offset })
    };
    places.iter().map(at).collect()
}
