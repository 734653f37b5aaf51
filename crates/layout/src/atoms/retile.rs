//! Retiling: the register fragment of one partition, in the modes of a tiled copy.
//!
//! # Law
//!
//! A fragment `(V,R_0,R_1,..)` has the elements of a thread in another partition. One tile of that
//! partition consists of the first `V` values of each thread of the copy, and its tiles are, in
//! mode `i`, in the order of the coordinates. So the values `0, V, 2V, ..` of a thread of the copy
//! are in different tiles of that partition: value number `k*V` is in tile `g_i(k)` along mode `i`.
//! Then
//!
//! ```text
//! retile(F)((v,s), rest) = F(w mod V, .., g_i(w div V) + c_i(rest_i), ..),     w = p(v) + V_atom * s
//! ```
//!
//! where `c_i`, the complement of `g_i`, is the layout of those tiles of the partition that begin a
//! tile of the copy, and `p` is the order of the values of one instruction at this end. So register
//! `i` of the result holds element number `i` of the thread's part. The result exists if the
//! threads and values fill the tile, each leaf stepping in one mode, so that in each mode the steps
//! form a chain, and if each value belongs to its thread at this end. `g_i` is the chain without
//! the steps of threads and first values; each remaining step is divided by the extents below it
//! that are left out.
//!
//! If the copy was made for an operand of a tiled MMA, the parts of the MMA instruction are known,
//! even if they are not in the order of the coordinates.
//!
//! (CuTe `TiledCopy::retile` assumes that at this end each thread holds the values that belong to
//! it, in the same order.)

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::atoms::error::AtomError;
use crate::atoms::terms::CopyEnd;
use crate::atoms::tiled_copy::{TiledCopy, sizes};
use crate::atoms::tiled_mma::lifted;
use crate::{Coordinate, Extent, Layout, Leaf, ModePath, Stride, Tiler};

/// A leaf of the values of a thread after the first ones: the mode of the tile in which it steps,
/// its step counted in tiles of the partition, and its step counted among the tiles that make one
/// tile of the copy.
#[derive(Debug, Clone, Copy)]
struct ValueGroup {
    mode: usize,
    extent: i64,
    apart: i64,
    step: i64,
}

/// A leaf of the threads or values, as a step in one mode of the tile.
#[derive(Debug, Clone, Copy)]
struct TileStep {
    extent: i64,
    at: i64,
    further: bool,
}

impl TiledCopy {
    /// The register fragment of another partition, in the modes of this copy,
    /// ((FrgV,FrgX),RestM,..) (CuTe `retile_S`, `retile_D`). The fragment has modes
    /// (FrgV,RestM,RestK,..), as [`ThreadMma::fragment`](crate::atoms::ThreadMma::fragment) and
    /// [`ThreadCopy::fragment`](crate::atoms::ThreadCopy::fragment) return it. Register `i` of the
    /// result holds element number `i` of the thread's [part](crate::atoms::ThreadCopy::partition).
    ///
    /// The other partition is that of the MMA operand for which the copy was made, or one whose
    /// first mode has the first values of this copy.
    ///
    /// Errors: the first mode of the fragment is not the first values of the copy, or further
    /// values are not further parts along the modes; a mode of the fragment is not made of whole
    /// tiles; at this end threads do not hold the values that they own ([`AtomError::Retile`]).
    pub fn retile<D: Stride>(&self, end: CopyEnd, fragment: &Layout<D>) -> Result<Layout<D>, AtomError> {
        let refuse = |what: &'static str| AtomError::Retile {
            name: self.atom.name().into(),
            fragment: fragment.to_string().into(),
            what,
        };
        let order =
            self.order(end)?.ok_or_else(|| refuse("at this end threads do not hold the values that they own"))?;
        let first = fragment.mode(0).and_then(|mode| mode.size().known());
        let groups = match (self.parts, first) {
            (Some([part, along, across]), Some(first)) if part == first => {
                let group = |mode, extent| ValueGroup { mode, extent, apart: 1, step: 1 };
                Vec::from([group(0, along), group(1, across)])
            }
            (_, Some(first)) => {
                self.groups(first)?.ok_or_else(|| refuse("its first mode is not a part of the tile"))?
            }
            _ => return Err(refuse("its first mode is not known")),
        };
        let modes = fragment.rank().saturating_sub(1);
        if groups.iter().any(|group| group.extent > 1 && group.mode >= modes) {
            return Err(refuse("it has no modes for the repetitions of the instruction"));
        }
        let line = |extent: i64, step: i64| lifted::<D::Extent>(&Layout::mode_of(extent, step)?);
        // Splits each mode of the fragment into the parts of one tile, and the tiles.
        let (mut inside, mut rests) = (Vec::new(), Vec::new());
        for mode in 0..modes {
            let parts = in_order(groups.iter().filter(|group| group.mode == mode))?;
            let part = fragment.mode(mode + 1).unwrap_or(Layout::unit());
            let whole = parts.leaves().last().and_then(|last| last.extent.checked_mul(last.stride));
            if !whole.is_some_and(|whole| <D::Extent>::from(whole).divides(&part.size()).proved()) {
                return Err(refuse("its repetitions are not those of whole tiles"));
            }
            let divided = part.logical_divide(&Tiler::Layout(lifted::<D::Extent>(&parts)?))?;
            inside.push(divided.mode(0).unwrap_or(Layout::unit()));
            rests.push(divided.mode(1).unwrap_or(Layout::unit()));
        }
        // The fragment of one tile, in the order of the thread's values.
        let mut of_tile = Vec::from([fragment.mode(0).unwrap_or(Layout::unit())]);
        for group in groups.iter().filter(|group| group.mode < modes) {
            let inside = inside.get(group.mode).cloned().unwrap_or(Layout::unit());
            of_tile.push(inside.compose(&line(group.extent, group.step)?)?);
        }
        let of_atom = Tiler::modes([Tiler::Layout(line(order.size(), 1)?)])?;
        let held = Layout::tuple([&Layout::tuple(&of_tile)?])?.zipped_divide(&of_atom)?;
        let at = |path: &[usize]| held.at(path).unwrap_or(Layout::unit());
        let held = Layout::tuple([&at(&[0, 0]).compose(&lifted::<D::Extent>(&order)?)?, &at(&[1, 0])])?;
        Ok(Layout::tuple([&held].into_iter().chain(&rests))?)
    }

    /// The order of the values of one instruction on one side, as indices into the values that
    /// belong to the thread; None if the thread holds other values.
    fn order(&self, end: CopyEnd) -> Result<Option<Layout>, AtomError> {
        let own = self.atom.values(self.atom.reference(), self.bits)?;
        let moved = own.right_inverse()?.compose(&self.atom.values(end, self.bits)?)?;
        let (threads, values) = sizes(&own);
        let (Some(thread), Some(value)) = (moved.mode(0), moved.mode(1)) else { return Ok(None) };
        if !thread.equivalent(&Layout::mode_of(threads, i64::from(threads > 1))?) || value.size() != values {
            return Ok(None);
        }
        if value.leaves().iter().any(|leaf| leaf.extent > 1 && leaf.stride % threads != 0) {
            return Ok(None);
        }
        let order = value.tree().map(|leaf| Leaf { extent: leaf.extent, stride: leaf.stride / threads });
        let order = Layout::from_tree(order)?;
        Ok(Some(order).filter(|order| order.is_bijective()))
    }

    /// The decomposition of the values of a thread into groups of `first` values; None if there is
    /// none.
    fn groups(&self, first: i64) -> Result<Option<Vec<ValueGroup>>, AtomError> {
        let (_, values) = sizes(&self.owned);
        if first < 1 || values % first != 0 {
            return Ok(None);
        }
        if first == values {
            return Ok(Some(Vec::new()));
        }
        let value = self.owned.mode(1).unwrap_or(Layout::unit());
        let Ok(divided) = value.logical_divide(&Tiler::Layout(Layout::mode_of(first, 1)?)) else { return Ok(None) };
        let (Some(inner), Some(outer)) = (divided.mode(0), divided.mode(1)) else { return Ok(None) };
        let places = self.tile.iter().try_fold(1_i64, |places, extent| places.checked_mul(*extent));
        if !self.owned.is_bijective() || places != Some(self.owned.size()) {
            return Ok(None);
        }
        let thread = self.owned.mode(0).unwrap_or(Layout::unit());
        let Ok(placed) = self.places()?.compose(&Layout::tuple([&thread, &inner, &outer])?) else { return Ok(None) };
        // The steps in each mode; and the steps of the values after the first ones, in their own
        // order.
        let mut chains: Vec<Vec<TileStep>> = self.tile.iter().map(|_| Vec::new()).collect();
        let mut further = Vec::new();
        for (part, leaves) in placed.modes().enumerate() {
            for leaf in leaves.leaves().iter().filter(|leaf| leaf.extent > 1) {
                let Some((path, at)) = leaf.stride.term() else { return Ok(None) };
                let Some(mode) = path.modes().next() else { return Ok(None) };
                let Some(chain) = chains.get_mut(mode) else { return Ok(None) };
                let step = TileStep { extent: leaf.extent, at: *at, further: part == 2 };
                chain.push(step);
                further.extend(step.further.then_some((mode, step)));
            }
        }
        for chain in &mut chains {
            chain.sort_by_key(|step| step.at);
            let broken = |pair: &[TileStep]| match pair {
                [below, above] => below.extent.checked_mul(below.at).is_none_or(|covered| above.at % covered != 0),
                _ => false,
            };
            if chain.first().is_some_and(|step| step.at < 1) || chain.windows(2).any(broken) {
                return Ok(None);
            }
        }
        let below = |mode: usize, at: i64, further: bool| {
            let chain = chains.get(mode).into_iter().flatten();
            let below = chain.filter(|step| step.at < at && step.further == further);
            // The extents divide the step.
            below.map(|step| step.extent).product::<i64>()
        };
        let group = |(mode, TileStep { extent, at, .. }): &(usize, TileStep)| ValueGroup {
            mode: *mode,
            extent: *extent,
            apart: at / below(*mode, *at, false),
            step: below(*mode, *at, true),
        };
        Ok(Some(further.iter().map(group).collect()))
    }

    /// The layout from indices in the tile to coordinates of the tiled layout.
    fn places(&self) -> Result<Layout<Coordinate>, AtomError> {
        let mut modes = Vec::new();
        let Tiler::Modes(items) = &self.tiler else { return Ok(Layout::unit()) };
        for (mode, item) in items.items().iter().enumerate() {
            let Tiler::Layout(tile) = item else { continue };
            let path = ModePath::new(&[mode])?;
            let steps =
                tile.tree().map(|leaf| Leaf { extent: leaf.extent, stride: Coordinate::step(leaf.stride, path) });
            modes.push(Layout::from_tree(steps)?);
        }
        Ok(Layout::tuple(&modes)?)
    }
}

/// The steps of a mode, the smallest first.
fn in_order<'a>(groups: impl Iterator<Item = &'a ValueGroup>) -> Result<Layout, AtomError> {
    let mut groups: Vec<&ValueGroup> = groups.filter(|group| group.extent > 1).collect();
    groups.sort_by_key(|group| group.apart);
    if groups.is_empty() {
        return Ok(Layout::mode_of(1, 1)?);
    }
    let modes = groups.iter().map(|group| Layout::mode_of(group.extent, group.apart));
    Ok(Layout::tuple(&modes.collect::<Result<Vec<_>, _>>()?)?)
}
