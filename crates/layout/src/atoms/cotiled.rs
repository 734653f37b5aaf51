//! Tiled copies from offsets: the offsets of the elements of each thread are given (CuTe
//! `make_cotiled_copy`).
//!
//! # Law
//!
//! The inputs are the offset of each value of each thread, and the layout of the data, from
//! coordinates to offsets. In each mode of the data, the tile of the copy consists of the
//! coordinates that occur there, in increasing order, as a layout `T_i` of that mode. `owned` maps
//! (thread, value) to the index in the tile:
//!
//! ```text
//! data(T_0(x_0), T_1(x_1), ..) = offsets(t,v)    for every (t,v), with (x_0,x_1,..) the coordinate of owned(t,v) in the tile
//! ```
//!
//! No smaller tile contains all held elements. Along modes of stride 0 of the data, coordinate 0 is
//! used. Otherwise each offset must belong to exactly one element, so that the coordinates are
//! determined. Then the copy exists if and only if `owned`, and the coordinates of each mode in
//! increasing order, are functions of layouts. Both are decided by the values. A function of one
//! index is that of a layout if it is linear up to a first break that divides its extent, and
//! continues in the same way from block to block. A function of several indices is that of a layout
//! if it is the sum of such functions, one for each index. If the copy does not exist with
//! increasing coordinates, the coordinates are tried in the order of their first occurrence,
//! threads fastest.
//!
//! (CuTe `make_cotiled_copy` uses the second order: it composes the inverse of the data with the
//! offsets.)

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::atoms::copy::CopyAtom;
use crate::atoms::error::AtomError;
use crate::atoms::evidence::NoTile;
use crate::atoms::thread_number::descending;
use crate::atoms::tiled_copy::TiledCopy;
use crate::{Layout, LayoutError, Tiler};

/// The most elements that are enumerated: those of all threads and values together, or those of
/// irregular data.
pub const MAX_ELEMENTS: i64 = 1 << 20;

impl TiledCopy {
    /// The copy of values of `bits` bits in which each thread holds the elements at the given
    /// offsets: `offsets` maps (thread, value) to an offset, and `data` maps coordinates to
    /// offsets. The tile is the smallest that contains these elements (CuTe `make_cotiled_copy`).
    ///
    /// The coordinates of each mode of the tile are in increasing order or, if that is no layout,
    /// in the order of their first occurrence.
    ///
    /// Errors: an offset has no element of the data, or more than one; the coordinates that occur
    /// in a mode are not those of a layout, or the indices in the tile are not; more than
    /// [`MAX_ELEMENTS`] threads and values ([`AtomError::Cotiled`]); as
    /// [`TiledCopy::of_thread_values`].
    ///
    /// ```
    /// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
    /// use tilewright_layout::Layout;
    ///
    /// # fn main() -> Result<(), tilewright_layout::atoms::AtomError> {
    /// // 128 threads access 16 contiguous bytes each, one after another; the matrix in memory has
    /// // rows of 64 bytes.
    /// let layout = |text: &str| text.parse::<Layout>().unwrap();
    /// let atom = || CopyAtom::named("UniversalCopy<uint128_t>");
    /// let data = layout("(32,64):(64,1)");
    /// let copy = TiledCopy::cotiled(atom()?, 8, &layout("(128,16):(16,1)"), &data)?;
    /// assert_eq!(copy.tile_shape(), [32, 64]);
    /// let (offset, part) = copy.get_slice(&5)?.partition(CopyEnd::Source, &data)?;
    /// assert_eq!((offset, part.to_string().as_str()), (80, "((16,1),1,1):((1,0),0,0)"));
    ///
    /// // Every fifth column: the accesses have gaps.
    /// let refusal = TiledCopy::cotiled(atom()?, 8, &layout("(8,16):(16,1)"), &layout("(4,32):(1,5)")).unwrap_err();
    /// assert_eq!(refusal.code(), "E0329");
    /// assert!(refusal.to_string().ends_with("thread 4 has as its value 0 the offset 64, where there is no element of the data"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cotiled(atom: CopyAtom, bits: i64, offsets: &Layout, data: &Layout) -> Result<TiledCopy, AtomError> {
        let refuse = |reason: NoTile| {
            let (offsets, data) = (offsets.to_string().into(), data.to_string().into());
            AtomError::Cotiled { name: atom.name().into(), offsets, data, reason }
        };
        let (Some(threads), 2) = (offsets.mode(0), offsets.rank()) else {
            return Err(refuse(NoTile::Rank { found: offsets.rank() }));
        };
        if offsets.size() > MAX_ELEMENTS {
            return Err(refuse(NoTile::Large { limit: MAX_ELEMENTS }));
        }
        let elements = Elements::of(data).map_err(|stop| stop.because(refuse))?;
        let mut held: Vec<Vec<i64>> = data.modes().map(|_| Vec::new()).collect();
        for index in 0..offsets.size() {
            let offset = offsets.eval(&index)?;
            let (thread, value) = (index % threads.size(), index / threads.size());
            let nothing = NoTile::Nothing { thread, value, offset };
            let coordinate = elements.at(offset).ok_or_else(|| refuse(nothing))?;
            held.iter_mut().zip(coordinate).for_each(|(mode, coordinate)| mode.push(coordinate));
        }
        let mut reason = NoTile::Crooked;
        for order in [Order::Increasing, Order::Met] {
            match tile(&held, threads.size(), order) {
                Ok((tiles, owned)) => {
                    let tiler = Tiler::modes(tiles.into_iter().map(Tiler::Layout))?;
                    return TiledCopy::of_thread_values(atom, bits, owned, tiler);
                }
                Err(NoTiling::No(no)) if order == Order::Increasing => reason = no,
                Err(NoTiling::No(_)) => {}
                Err(NoTiling::Layout(error)) => return Err((*error).into()),
            }
        }
        Err(refuse(reason))
    }
}

/// The reason why there is no tiled copy: one of those in the error, or a number that is too large.
enum NoTiling {
    No(NoTile),
    Layout(Box<LayoutError>),
}

impl NoTiling {
    fn because(self, refuse: impl FnOnce(NoTile) -> AtomError) -> AtomError {
        match self {
            NoTiling::No(reason) => refuse(reason),
            NoTiling::Layout(error) => (*error).into(),
        }
    }
}

crate::from_variants!(NoTiling: Layout(LayoutError));

/// The order of the coordinates of a mode in the tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Increasing,
    Met,
}

/// The tile of each mode, and for each thread and value its indices in these tiles.
fn tile(held: &[Vec<i64>], threads: i64, order: Order) -> Result<(Vec<Layout>, Layout), NoTiling> {
    let mut owned: Vec<i64> = held.first().map_or(Vec::new(), |mode| mode.iter().map(|_| 0).collect());
    let (mut tiles, mut step) = (Vec::new(), 1_i64);
    for (mode, coordinates) in held.iter().enumerate() {
        let mut occur: Vec<i64> = Vec::new();
        let mut place: BTreeMap<i64, i64> = BTreeMap::new();
        for coordinate in coordinates {
            if place.insert(*coordinate, 0).is_none() {
                occur.push(*coordinate);
            }
        }
        if order == Order::Increasing {
            occur.sort_unstable();
        }
        let count = occur.len() as i64;
        place.extend(occur.iter().copied().zip(0..));
        let tile = layout(&runs(&occur).ok_or(NoTiling::No(NoTile::Uneven { mode }))?)?;
        for (owned, coordinate) in owned.iter_mut().zip(coordinates) {
            let steps = place.get(coordinate).and_then(|place| place.checked_mul(step));
            let sum = steps.and_then(|steps| owned.checked_add(steps));
            *owned = sum.ok_or(LayoutError::Overflow { op: "cotiled" })?;
        }
        step = step.checked_mul(count).ok_or(LayoutError::Overflow { op: "cotiled" })?;
        tiles.push(tile);
    }
    let [threads, values] = layout_of(&owned, threads).ok_or(NoTiling::No(NoTile::Crooked))?;
    Ok((tiles, Layout::tuple([&layout(&threads)?, &layout(&values)?])?))
}

/// The layout with these modes.
fn layout(runs: &[(i64, i64)]) -> Result<Layout, LayoutError> {
    if runs.is_empty() {
        return Ok(Layout::unit());
    }
    let modes = runs.iter().map(|(extent, stride)| Layout::mode_of(*extent, *stride));
    Layout::tuple(&modes.collect::<Result<Vec<_>, _>>()?)?.coalesce()
}

/// The fewest modes whose values at the indices from 0 on are these; None if no layout has these
/// values.
fn runs(values: &[i64]) -> Option<Vec<(i64, i64)>> {
    let (mut found, mut every) = (Vec::new(), 1_usize);
    loop {
        // The values at multiples of the covered number of indices.
        let at = |index: usize| values.get(index.checked_mul(every)?).copied();
        let count = values.len() / every;
        let Some(first) = at(1).filter(|_| count > 1) else { break };
        let linear = |index: &usize| at(*index).is_some_and(|value| first.checked_mul(*index as i64) == Some(value));
        let extent = (1..count).find(|index| !linear(index)).unwrap_or(count);
        if !count.is_multiple_of(extent) {
            return None;
        }
        found.push((extent as i64, first));
        every *= extent;
    }
    is_sum(values, &found).then_some(found)
}

/// The thread modes and the value modes of the layout with these values; None if there is none.
fn layout_of(values: &[i64], threads: i64) -> Option<[Vec<(i64, i64)>; 2]> {
    let threads = usize::try_from(threads).ok()?;
    let along = values.iter().step_by(threads).copied().collect::<Vec<i64>>();
    let found = [runs(values.get(..threads)?)?, runs(&along)?];
    is_sum(values, &found.concat()).then_some(found)
}

/// Whether these modes, the first one fastest, have these values.
fn is_sum(values: &[i64], modes: &[(i64, i64)]) -> bool {
    values.iter().zip(0..).all(|(value, index)| {
        let mut rest: i64 = index;
        let steps = modes.iter().map(|(extent, stride)| {
            let digit = rest % extent;
            rest /= extent;
            i128::from(digit) * i128::from(*stride)
        });
        steps.sum::<i128>() == i128::from(*value)
    })
}

/// The map from an offset to the coordinate of its element.
struct Elements {
    modes: usize,
    leaves: Vec<DataLeaf>,
    /// The index of the element at each offset, first leaf fastest; None if the element is read
    /// from the digits of the offset instead.
    table: Option<BTreeMap<i64, i64>>,
}

/// A leaf of the data with a nonzero stride: its mode, its step in the index of the mode and in the
/// index of the data, its extent and its stride.
struct DataLeaf {
    mode: usize,
    step: i64,
    index: i64,
    extent: i64,
    stride: i64,
}

impl Elements {
    fn of(data: &Layout) -> Result<Elements, NoTiling> {
        let (mut leaves, mut index) = (Vec::new(), 1);
        for (mode, part) in data.modes().enumerate() {
            let mut step = 1;
            for leaf in part.leaves() {
                leaves.push(DataLeaf { mode, step, index, extent: leaf.extent, stride: leaf.stride });
                // The products divide the size of the data, so they are representable.
                step *= leaf.extent;
                index *= leaf.extent;
            }
        }
        let moving = data.filter_zeros();
        let modes = data.rank();
        if let Some(order) = descending(&moving) {
            // The offset is read as digits, the largest stride first.
            let mut leaves: Vec<Option<DataLeaf>> = leaves.into_iter().map(Some).collect();
            let leaves = order.into_iter().filter_map(|at| leaves.get_mut(at)?.take()).collect();
            return Ok(Elements { modes, leaves, table: None });
        }
        if moving.size() > MAX_ELEMENTS {
            return Err(NoTiling::No(NoTile::Large { limit: MAX_ELEMENTS }));
        }
        leaves.retain(|leaf| leaf.stride != 0);
        let elements = Elements { modes, leaves, table: None };
        let mut table = BTreeMap::new();
        for number in 0..moving.size() {
            if let Some(before) = table.insert(moving.eval(&number)?, number) {
                let [first, second] = [before, number].map(|number| elements.index(number));
                return Err(NoTiling::No(NoTile::Shared { first, second }));
            }
        }
        Ok(Elements { table: Some(table), ..elements })
    }

    /// The index in the data of the element with this number in the table.
    fn index(&self, number: i64) -> i64 {
        self.digits(number).map(|(digit, leaf)| digit * leaf.index).sum()
    }

    fn digits(&self, mut number: i64) -> impl Iterator<Item = (i64, &DataLeaf)> {
        self.leaves.iter().map(move |leaf| {
            let digit = number % leaf.extent;
            number /= leaf.extent;
            (digit, leaf)
        })
    }

    fn at(&self, offset: i64) -> Option<Vec<i64>> {
        let mut coordinate: Vec<i64> = (0..self.modes).map(|_| 0).collect();
        let mut add = |digit: i64, leaf: &DataLeaf| {
            if let Some(mode) = coordinate.get_mut(leaf.mode) {
                *mode += digit * leaf.step;
            }
        };
        match &self.table {
            Some(table) => self.digits(*table.get(&offset)?).for_each(|(digit, leaf)| add(digit, leaf)),
            None => {
                let mut rest = offset;
                for leaf in &self.leaves {
                    let digit = rest / leaf.stride;
                    if rest < 0 || digit >= leaf.extent {
                        return None;
                    }
                    add(digit, leaf);
                    rest %= leaf.stride;
                }
                if rest != 0 {
                    return None;
                }
            }
        }
        Some(coordinate)
    }
}
