//! Distributions: which thread holds which elements of a tile.
//!
//! Law: a distribution is a layout `(thread, value) -> element`, where elements are numbered first
//! mode fastest. Every element of the tile is held. Modes of stride 0 are copies: threads, or
//! values of a thread, that hold the same elements. The other modes hold each element once.
//!
//! So a thread's index consists of digits, one for each mode of the layout. Each digit either
//! counts copies or goes along modes of the tile. The exchanges of a reduction or a conversion
//! follow from the digits.

use std::fmt;

use tilewright_layout::atoms::{CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::{Coordinate, IntoShape, Layout, LayoutError, Tree};

use crate::arguments::{IntoLayout, LayoutArgument};
use crate::error::{KernelError, Reason};

/// The most elements of all threads together, including copies.
const MAX_HELD: i64 = 1 << 20;

/// A distribution: which thread holds which elements of a tile.
///
/// ```
/// use tilewright_kernel::Distribution;
///
/// // 32 threads in 4 rows of 8, each with 2 elements side by side, on a tile of 4 x 16.
/// let rows = Distribution::new((4, 16), "((8,4),2):((8,1),4)").unwrap();
/// assert_eq!((rows.threads(), rows.values()), (32, 2));
/// assert_eq!(rows.holds(9, 1), 13); // thread (1,1) holds (1,2) and (1,3)
/// // Every row's sum is held by the 8 threads of the row.
/// assert_eq!(rows.reduced(&[1]).unwrap().to_string(), "(4,1) by ((8,4),1):((0,1),0)");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    tile: Tree<i64>,
    /// The layout: two modes, for threads and values, each flat.
    layout: Layout,
    /// The same layout with coordinates of the tile as strides.
    steps: Layout<Coordinate>,
}

/// A digit: one mode of the threads, or of the values, of a distribution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Digit {
    /// The product of the extents of the digits below this one.
    pub(crate) below: i64,
    /// The number of its values.
    pub(crate) extent: i64,
    /// The distance between neighbouring values: modes of the tile, and elements along each.
    pub(crate) steps: Vec<(usize, i64)>,
}

impl Digit {
    /// Whether it counts copies.
    pub(crate) fn copies(&self) -> bool {
        self.steps.is_empty()
    }

    /// The value of the digit in an index.
    pub(crate) fn of(&self, number: i64) -> i64 {
        number / self.below % self.extent
    }
}

fn refuse(layout: &Layout, because: &str) -> Reason {
    Reason::Distribution { layout: layout.to_string(), because: because.to_string() }
}

impl Distribution {
    /// The distribution of a tile with a shape, given by a layout `(threads, values)`.
    ///
    /// Errors: the shape or the layout cannot be read; the layout does not have two modes; it
    /// misses an element of the tile, has offsets past it, or holds some elements twice by modes
    /// other than copies.
    #[track_caller]
    pub fn new(tile: impl IntoShape, layout: impl IntoLayout) -> Result<Distribution, KernelError> {
        KernelError::within("distribution", || match layout.into_layout()? {
            LayoutArgument::Text(text) => Distribution::of(&tile.into_shape()?, &text.parse()?),
            LayoutArgument::Layout(layout) => Distribution::of(&tile.into_shape()?, &layout),
            LayoutArgument::Composed(composed) => Err(Reason::Distribution {
                layout: composed.to_string(),
                because: "threads and values name elements of a tile by a layout without a swizzle".to_string(),
            }),
        })
    }

    pub(crate) fn of(tile: &Tree<i64>, layout: &Layout) -> Result<Distribution, Reason> {
        let [Some(threads), Some(values), None] = [0, 1, 2].map(|mode| layout.mode(mode)) else {
            return Err(refuse(layout, "two modes are needed, threads and values"));
        };
        let size = tile.product()?;
        if layout.size() > MAX_HELD || size > MAX_HELD {
            let asked = layout.size().max(size).unsigned_abs();
            return Err(Reason::TooMuch { what: "elements of a distribution", asked, limit: MAX_HELD as u64 });
        }
        let moving = layout.filter_zeros();
        let within = layout.leaves().iter().all(|leaf| leaf.stride >= 0) && moving.cosize()? == size;
        if moving.size() != size || !within || !moving.is_injective()? {
            return Err(refuse(layout, &format!("modes that are no copies must hold each of {size} elements once")));
        }
        // A normal form, so that equal distributions compare as equal.
        let flat = Layout::tuple([&threads.coalesce()?, &values.coalesce()?])?;
        // A mode that continues past the end of a mode of the tile is split.
        let steps = Layout::<Coordinate>::identity(tile)?.compose(&flat)?;
        let parts = [0, 1].map(|mode| steps.mode(mode).unwrap_or(Layout::unit()).flatten());
        let [threads, values] = parts;
        let steps = Layout::tuple([&threads?, &values?])?;
        let layout = Layout::compact(tile)?.compose(&steps)?;
        Ok(Distribution { tile: tile.clone(), layout, steps })
    }

    /// The distribution that a tiled copy gives a tile, in the order of [`crate::View::partition`].
    ///
    /// Errors: the tile of the copy does not divide it; as [`Distribution::new`].
    #[track_caller]
    pub fn of_copy(tile: &Tree<i64>, copy: &TiledCopy, end: CopyEnd) -> Result<Distribution, KernelError> {
        KernelError::within("distribution", || {
            let partition = copy.tidfrg(end, &Layout::compact(tile)?)?;
            let values: Vec<Layout> = (1..partition.rank()).filter_map(|mode| partition.mode(mode)).collect();
            let threads = partition.mode(0).unwrap_or(Layout::unit());
            Distribution::of(tile, &Layout::tuple([&threads, &Layout::tuple(&values)?])?)
        })
    }

    /// The distribution that a tiled MMA gives an operand, in the order of
    /// [`crate::View::partition_mma`]. Threads that differ only along a mode that the operand does
    /// not have hold copies.
    ///
    /// Errors: the tile of the MMA does not divide it; as [`Distribution::new`].
    #[track_caller]
    pub fn of_mma(tile: &Tree<i64>, mma: &TiledMma, operand: Operand) -> Result<Distribution, KernelError> {
        KernelError::within("distribution", || Distribution::of_operand(tile, mma, operand))
    }

    fn of_operand(tile: &Tree<i64>, mma: &TiledMma, operand: Operand) -> Result<Distribution, Reason> {
        let partition = mma.thrfrg(operand, &Layout::compact(tile)?)?;
        let at = |path: &[usize]| partition.at(path).unwrap_or(Layout::unit());
        // Threads of an operand are (ThrV,(ThrX,ThrY)); those of the MMA have one more mode.
        let mut along = [at(&[0, 0]), Layout::unit(), Layout::unit(), Layout::unit()];
        let shape = mma.thread_layout().shape();
        for (mode, out) in along.iter_mut().skip(1).enumerate() {
            let count = shape.mode(mode + 1).map_or(Ok(1), |mode| mode.product())?;
            *out = match operand.modes().iter().position(|known| *known == mode) {
                Some(position) => at(&[0, 1, position]),
                None => Layout::mode_of(count, 0)?,
            };
        }
        let threads = Layout::tuple(&along)?.compose(&mma.thread_layout().right_inverse()?)?;
        Distribution::of(tile, &Layout::tuple([&threads, &at(&[1])])?)
    }

    /// The shape of the tile.
    pub fn tile(&self) -> &Tree<i64> {
        &self.tile
    }

    /// The layout from (thread, value) to elements, the first mode of the tile fastest.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of threads.
    pub fn threads(&self) -> i64 {
        self.layout.mode(0).map_or(1, |mode| mode.size())
    }

    /// The number of values of a thread.
    pub fn values(&self) -> i64 {
        self.layout.mode(1).map_or(1, |mode| mode.size())
    }

    /// The element that a thread holds as one of its values. Indices beyond
    /// [`Distribution::threads`] and [`Distribution::values`] are taken modulo these.
    pub fn holds(&self, thread: i64, value: i64) -> i64 {
        let at = |digits: Layout, number: i64| {
            let mut rest = number;
            digits.leaves().iter().fold(0, |sum, leaf| {
                let digit = rest.rem_euclid(leaf.extent);
                rest = rest.div_euclid(leaf.extent);
                sum + digit * leaf.stride
            })
        };
        let mode = |mode: usize| self.layout.mode(mode).unwrap_or(Layout::unit());
        at(mode(0), thread) + at(mode(1), value)
    }

    /// The distribution after some modes of the tile were reduced to extent 1. Values that coincide
    /// become one value.
    ///
    /// Errors: there is no such mode; a mode of the layout goes along reduced and kept modes
    /// together.
    #[track_caller]
    pub fn reduced(&self, modes: &[usize]) -> Result<Distribution, KernelError> {
        KernelError::within("distribution", || self.along_others(modes))
    }

    pub(crate) fn along_others(&self, modes: &[usize]) -> Result<Distribution, Reason> {
        let rank = self.tile.rank();
        if let Some(mode) = modes.iter().find(|mode| **mode >= rank) {
            return Err(LayoutError::NoSuchMode { op: "reduced", mode: *mode, rank }.into());
        }
        for digit in self.thread_digits().iter().chain(&self.value_digits()) {
            let along = digit.steps.iter().filter(|(mode, _)| modes.contains(mode)).count();
            if along != 0 && along != digit.steps.len() {
                return Err(refuse(&self.layout, "one mode goes along modes that are reduced and others that are not"));
            }
        }
        let ones = |mode: (usize, Tree<i64>)| if modes.contains(&mode.0) { mode.1.map(|_| 1) } else { mode.1 };
        let parts: Vec<Tree<i64>> = match rank {
            1 if self.tile.is_leaf() => vec![self.tile.clone()],
            _ => self.tile.modes().collect(),
        };
        let parts: Vec<Tree<i64>> = parts.into_iter().enumerate().map(ones).collect();
        let tile = if self.tile.is_leaf() { parts[0].clone() } else { Tree::tuple(&parts)? };
        let mut below = 1;
        let strides = tile.map(|extent| {
            let stride = if *extent == 1 { 0 } else { below };
            below *= extent;
            stride
        });
        let onto = Layout::new(&self.tile, &strides)?;
        let all = onto.compose(&self.steps)?;
        let (threads, values) = (all.mode(0).unwrap_or(Layout::unit()), all.mode(1).unwrap_or(Layout::unit()));
        let kept: Vec<Layout> = values
            .leaves()
            .iter()
            .filter(|leaf| leaf.stride != 0)
            .map(|leaf| Layout::mode_of(leaf.extent, leaf.stride))
            .collect::<Result<_, _>>()?;
        let values = match kept.as_slice() {
            [] => Layout::mode_of(1, 0)?,
            [only] => only.clone(),
            several => Layout::tuple(several)?,
        };
        Distribution::of(&tile, &Layout::tuple([&threads, &values])?)
    }

    /// The distribution of the tile without a mode along which only values differ; and for each
    /// index of the mode, the values of a thread there.
    pub(crate) fn without(&self, mode: usize) -> Result<(Distribution, Vec<Vec<usize>>), Reason> {
        let rank = self.tile.rank();
        if self.tile.is_leaf() || mode >= rank || rank < 2 {
            return Err(LayoutError::NoSuchMode { op: "split", mode, rank }.into());
        }
        let along = |digit: &Digit| digit.steps.iter().any(|(own, _)| *own == mode);
        let (threads, values) = (self.thread_digits(), self.value_digits());
        if threads.iter().any(along) || values.iter().any(|digit| along(digit) && digit.steps.len() > 1) {
            return Err(refuse(&self.layout, "threads have different elements along the mode that is split"));
        }
        let tile = self.tile.remove(mode)?;
        let mut below = Vec::new();
        let mut size = 1;
        for (number, extent) in self.tile.modes().enumerate() {
            below.push(size);
            if number != mode {
                size *= extent.product()?;
            }
        }
        let modes = |digits: &[Digit]| -> Result<Layout, Reason> {
            let step = |digit: &Digit| digit.steps.iter().map(|(own, scale)| below[*own] * scale).sum::<i64>();
            let kept = digits.iter().filter(|digit| !along(digit));
            let modes: Vec<Layout> =
                kept.map(|digit| Layout::mode_of(digit.extent, step(digit))).collect::<Result<_, _>>()?;
            Ok(if modes.is_empty() { Layout::mode_of(1, 0)? } else { Layout::tuple(&modes)? })
        };
        let held = Distribution::of(&tile, &Layout::tuple([&modes(&threads)?, &modes(&values)?])?)?;
        let index = |value: i64| -> i64 {
            let own = values.iter().filter(|digit| along(digit));
            own.map(|digit| digit.of(value) * digit.steps[0].1).sum()
        };
        let extent = self.tile.mode(mode).map_or(Ok(1), |mode| mode.product())?;
        let mut places = vec![Vec::new(); extent as usize];
        for value in 0..self.values() {
            places[index(value) as usize].push(value as usize);
        }
        Ok((held, places))
    }

    /// The digits of a thread's index, the fastest first.
    pub(crate) fn thread_digits(&self) -> Vec<Digit> {
        self.digits(0)
    }

    /// The digits of a value's index, the fastest first.
    pub(crate) fn value_digits(&self) -> Vec<Digit> {
        self.digits(1)
    }

    fn digits(&self, mode: usize) -> Vec<Digit> {
        let part = self.steps.mode(mode).unwrap_or(Layout::unit());
        let mut below = 1;
        let mut found = Vec::new();
        for leaf in part.leaves() {
            if leaf.extent > 1 {
                let steps = self.steps_of(&leaf.stride);
                found.push(Digit { below, extent: leaf.extent, steps });
            }
            below *= leaf.extent;
        }
        found
    }

    /// A stride as modes of the tile, with the number of elements along each.
    fn steps_of(&self, step: &Coordinate) -> Vec<(usize, i64)> {
        let mut found: Vec<(usize, i64)> = Vec::new();
        for (path, scale) in step.terms().filter(|(_, scale)| **scale != 0) {
            let mut modes = path.modes();
            let mode = if self.tile.is_leaf() { 0 } else { modes.next().unwrap_or(0) };
            // Within a mode, elements are numbered with the first part fastest.
            let mut part =
                if self.tile.is_leaf() { self.tile.clone() } else { self.tile.mode(mode).unwrap_or(Tree::leaf(1)) };
            let mut size = 1;
            for next in modes {
                size *= part.modes().take(next).map(|other| other.product().unwrap_or(1)).product::<i64>();
                part = part.mode(next).unwrap_or(Tree::leaf(1));
            }
            match found.iter_mut().find(|(known, _)| *known == mode) {
                Some((_, sum)) => *sum += scale * size,
                None => found.push((mode, scale * size)),
            }
        }
        found.retain(|(_, sum)| *sum != 0);
        found
    }

    /// For each thread, the elements that it holds.
    pub(crate) fn table(&self) -> Vec<Vec<i64>> {
        let offsets = |mode: usize| -> Vec<i64> {
            let leaves = self.layout.mode(mode).unwrap_or(Layout::unit());
            leaves.leaves().iter().fold(vec![0], |found, leaf| {
                (0..leaf.extent).flat_map(|digit| found.iter().map(move |at| at + digit * leaf.stride)).collect()
            })
        };
        let (threads, values) = (offsets(0), offsets(1));
        threads.iter().map(|thread| values.iter().map(|value| thread + value).collect()).collect()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.tile, self.layout)
    }
}
