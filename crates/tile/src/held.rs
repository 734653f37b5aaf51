//! Distributions over bits: which thread holds which elements of a tile.
//!
//! Law: a tile has `2^n` elements, numbered first mode fastest, and a block has `2^t` threads. Each
//! bit of an element's number is either one bit of the index of a thread, or one bit of the index
//! of a value of a thread. The remaining bits of the thread's index count copies. So an operation
//! on a layout is an operation on bits: a reshape keeps them, a transpose permutes them, a
//! reduction removes some, and a broadcast adds bits that every thread with the other bits holds.

use std::fmt;

use tilewright_kernel::{Distribution, KernelError};
use tilewright_layout::{Layout, LayoutError, Tree};

use crate::error::Reason;

/// The most bits of a thread's index.
const MAX_THREAD_BITS: usize = 10;

/// A distribution over bits: which thread holds which elements of a tile.
///
/// ```
/// use tilewright_tile::Held;
///
/// // 32 threads hold a tile of 4 x 16: 8 threads for each row, with two adjacent elements each.
/// let rows: Held = "((8,4),2):((8,1),4)".parse()?;
/// assert_eq!((rows.threads(), rows.values(), rows.size()), (32, 2, 64));
/// assert_eq!(rows.to_string(), "((8,4),2):((8,1),4)");
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    /// For each bit of a thread's index, the bit of the element's number; None if threads that
    /// differ in this bit hold copies.
    pub(crate) threads: Vec<Option<u8>>,
    /// For each bit of a value's index, the bit of the element's number.
    pub(crate) values: Vec<u8>,
}

impl Held {
    /// The number of threads.
    pub fn threads(&self) -> i64 {
        1 << self.threads.len()
    }

    /// The number of values of a thread.
    pub fn values(&self) -> i64 {
        1 << self.values.len()
    }

    /// The number of elements of the tile.
    pub fn size(&self) -> i64 {
        1 << self.bits()
    }

    /// The number of bits of an element's number.
    pub(crate) fn bits(&self) -> u32 {
        (self.threads.iter().flatten().count() + self.values.len()) as u32
    }

    /// The number of threads that hold each element.
    pub fn copies(&self) -> i64 {
        1 << self.threads.iter().filter(|bit| bit.is_none()).count()
    }

    /// The thread-value layout, from (thread, value) to elements.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        let mode = |bits: Vec<Option<u8>>| -> Result<Layout, LayoutError> {
            let modes: Vec<Layout> =
                bits.iter().map(|bit| Layout::mode_of(2, bit.map_or(0, |bit| 1 << bit))).collect::<Result<_, _>>()?;
            Ok(if modes.is_empty() { Layout::mode_of(1, 0)? } else { Layout::tuple(&modes)?.coalesce()? })
        };
        let threads = mode(self.threads.clone())?;
        let values = mode(self.values.iter().map(|bit| Some(*bit)).collect())?;
        Layout::tuple([&threads, &values])
    }

    /// The distribution of a tile of these extents, in the form of the kernel language.
    pub(crate) fn distribution(&self, shape: &[i64]) -> Result<Distribution, KernelError> {
        Distribution::new(&tree(shape)?, &self.layout()?)
    }

    /// The distribution of a thread-value layout `(threads, values)`; an error if it is not linear
    /// over bits.
    pub(crate) fn of(layout: &Layout) -> Result<Held, Reason> {
        let refuse = |because: &str| Reason::Held { layout: layout.to_string(), because: because.to_string() };
        let [Some(threads), Some(values), None] = [0, 1, 2].map(|mode| layout.mode(mode)) else {
            return Err(refuse("two modes are wanted, threads and values"));
        };
        let mut found = [Vec::new(), Vec::new()];
        for (mode, out) in [threads, values].iter().zip(&mut found) {
            for leaf in mode.leaves() {
                let power = |number: i64| number > 0 && (number as u64).is_power_of_two();
                if !power(leaf.extent) || !(leaf.stride == 0 || power(leaf.stride)) {
                    return Err(refuse("an extent or a stride is no power of two"));
                }
                for bit in 0..leaf.extent.trailing_zeros() {
                    out.push((leaf.stride > 0).then(|| (leaf.stride.trailing_zeros() + bit) as u8));
                }
            }
        }
        let [threads, values] = found;
        let Some(values) = values.into_iter().collect::<Option<Vec<u8>>>() else {
            return Err(refuse("a thread holds one element as several values"));
        };
        let held = Held { threads, values };
        let mut bits: Vec<u8> = held.threads.iter().flatten().chain(&held.values).copied().collect();
        bits.sort_unstable();
        if bits.iter().enumerate().any(|(at, bit)| at != usize::from(*bit)) {
            return Err(refuse("an element is held twice, or by no thread"));
        }
        if held.threads.len() > MAX_THREAD_BITS {
            return Err(refuse("a block has at most 1024 threads"));
        }
        Ok(held)
    }

    /// The same distribution with each bit of the element's number mapped. A bit that is mapped to
    /// None counts copies, or is dropped from the values.
    pub(crate) fn mapped(&self, map: impl Fn(u8) -> Option<u8>) -> Held {
        let threads = self.threads.iter().map(|bit| bit.and_then(&map)).collect();
        Held { threads, values: self.values.iter().filter_map(|bit| map(*bit)).collect() }
    }

    /// The number of the element that a thread holds as one of its values.
    pub fn element(&self, thread: i64, value: i64) -> i64 {
        let bit = |number: i64, at: usize, to: u8| (number >> at & 1) << to;
        let threads = self.threads.iter().enumerate().filter_map(|(at, to)| to.map(|to| bit(thread, at, to)));
        threads.sum::<i64>() + self.values.iter().enumerate().map(|(at, to)| bit(value, at, *to)).sum::<i64>()
    }
}

/// A shape as a layout's shape: a single extent is no tuple.
pub(crate) fn tree(shape: &[i64]) -> Result<Tree<i64>, LayoutError> {
    match shape {
        [] => Ok(Tree::leaf(1)),
        [one] => Ok(Tree::leaf(*one)),
        several => Tree::flat(several.to_vec()),
    }
}

impl std::str::FromStr for Held {
    type Err = crate::error::TileError;

    fn from_str(text: &str) -> Result<Held, crate::error::TileError> {
        Ok(Held::of(&text.parse()?)?)
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layout() {
            Ok(layout) => layout.fmt(f),
            Err(_) => f.write_str("?"),
        }
    }
}

/// How operations that change the shape of a tile move the bits of its elements' numbers.
pub(crate) mod bits {
    /// The bits of mode `mode` of a shape: the first bit, and the number of bits.
    fn of(shape: &[i64], mode: usize) -> (u32, u32) {
        let before: u32 = shape[..mode].iter().map(|extent| extent.trailing_zeros()).sum();
        (before, shape[mode].trailing_zeros())
    }

    /// Some modes of a tile are reduced to extent 1. For each bit of the original tile, the bit of
    /// the reduced one; None for bits of the reduced modes.
    pub(crate) fn without(shape: &[i64], modes: &[usize]) -> Vec<Option<u8>> {
        let mut next = 0;
        let mut found = Vec::new();
        for mode in 0..shape.len() {
            for _ in 0..of(shape, mode).1 {
                found.push((!modes.contains(&mode)).then(|| {
                    next += 1;
                    next - 1
                }));
            }
        }
        found
    }

    /// Mode `i` of the result is mode `order[i]` of the tile. For each bit of the tile, the bit of
    /// the result.
    pub(crate) fn transposed(shape: &[i64], order: &[usize]) -> Vec<u8> {
        let total: u32 = shape.iter().map(|extent| extent.trailing_zeros()).sum();
        let mut found = vec![0; total as usize];
        let mut next = 0;
        for mode in order {
            let (first, count) = of(shape, *mode);
            for bit in first..first + count {
                found[bit as usize] = next;
                next += 1;
            }
        }
        found
    }

    /// The modes along which a broadcast repeats elements.
    pub(crate) fn broadcast(from: &[i64], to: &[i64]) -> Vec<usize> {
        (0..to.len()).filter(|mode| from.get(*mode).copied().unwrap_or(1) != to[*mode]).collect()
    }
}
