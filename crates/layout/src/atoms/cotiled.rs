//! Tiled copies from offsets: the elements of each thread are given by their offsets.
//!
//! # Law
//!
//! Given are the offset at which each thread has each value, and the layout of the data, from
//! coordinates to offsets. The tile of the copy has in each mode of the data the coordinates that
//! occur there, in increasing order, as a layout `T_i` of that mode, and `owned` says where in the
//! tile a thread and value is:
//!
//! ```text
//! data(T_0(x_0), T_1(x_1), ..) = offsets(t,v)    for every (t,v), with (x_0,x_1,..) the coordinate of owned(t,v) in the tile
//! ```
//!
//! No smaller tile has all that is held. What repeats in the data, along modes of stride 0, is
//! counted once: coordinate 0 is taken. Apart from that each offset must be that of one element, so
//! that the coordinates are known; then the copy exists if and only if the coordinates of each mode
//! in this order are the function of a layout, and `owned` is. Both are decided by the values: a
//! function of one index is a layout's if it is linear up to a first break that divides its extent,
//! and repeats so; a function of several is one if it is one along each and the sum of these. Where
//! it does not exist, the same is asked of the coordinates in the order in which threads and values
//! meet them first, threads fastest.
//!
//! (CuTe `make_cotiled_copy`, which takes the second order, by composing the inverse of the data
//! with the offsets.)

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

/// The most elements, of threads and values together or of irregular data, that are looked at one
/// by one.
pub const MAX_ELEMENTS: i64 = 1 << 20;

impl TiledCopy {
    /// The copy of values of `bits` bits in which each thread has the elements at `offsets`,
    /// (thread, value) to the offset, in `data`, from coordinates to offsets; the tile is the
    /// smallest that contains them (CuTe `make_cotiled_copy`).
    ///
    /// The tile has the coordinates of each mode in increasing order, or else in the order in which
    /// they are met.
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
    /// // 128 threads, with 16 bytes each, one behind the other in memory; the matrix there has
    /// // rows of 64 bytes.
    /// let layout = |text: &str| text.parse::<Layout>().unwrap();
    /// let atom = || CopyAtom::named("UniversalCopy<uint128_t>");
    /// let data = layout("(32,64):(64,1)");
    /// let copy = TiledCopy::cotiled(atom()?, 8, &layout("(128,16):(16,1)"), &data)?;
    /// assert_eq!(copy.tile_shape(), [32, 64]);
    /// let (offset, part) = copy.get_slice(&5)?.partition(CopyEnd::Source, &data)?;
    /// assert_eq!((offset, part.to_string().as_str()), (80, "((16,1),1,1):((1,0),0,0)"));
    ///
    /// // Columns 5 apart have gaps.
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

/// Why there is none: the question has that answer, or a number is too large.
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

/// In which order a tile has the coordinates of a mode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Increasing,
    Met,
}

/// The tile of each mode, and where in them all each thread and value is.
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

/// Modes as a layout, as few as there can be.
fn layout(runs: &[(i64, i64)]) -> Result<Layout, LayoutError> {
    if runs.is_empty() {
        return Ok(Layout::unit());
    }
    let modes = runs.iter().map(|(extent, stride)| Layout::mode_of(*extent, *stride));
    Layout::tuple(&modes.collect::<Result<Vec<_>, _>>()?)?.coalesce()
}

/// The modes whose function of an index, from 0 on, has these values; none if no layout's has.
fn runs(values: &[i64]) -> Option<Vec<(i64, i64)>> {
    let (mut found, mut every) = (Vec::new(), 1_usize);
    loop {
        // The values at multiples of what is covered so far.
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

/// The modes of threads, and of values, of a function given by its values.
fn layout_of(values: &[i64], threads: i64) -> Option<[Vec<(i64, i64)>; 2]> {
    let threads = usize::try_from(threads).ok()?;
    let along = values.iter().step_by(threads).copied().collect::<Vec<i64>>();
    let found = [runs(values.get(..threads)?)?, runs(&along)?];
    is_sum(values, &found.concat()).then_some(found)
}

/// Whether modes, the first fastest, have these values.
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
    /// The number of the element at each offset, first leaf fastest; none if the strides are the
    /// bases of a number.
    table: Option<BTreeMap<i64, i64>>,
}

/// A leaf of the data along which something changes: its mode, the step in the index of the mode
/// and in that of the data, extent and stride.
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
                // They divide the size of the data.
                step *= leaf.extent;
                index *= leaf.extent;
            }
        }
        let moving = data.filter_zeros();
        let modes = data.rank();
        if let Some(order) = descending(&moving) {
            // As digits, the longest stride first.
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

    /// The index in the data of an element of the table.
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
