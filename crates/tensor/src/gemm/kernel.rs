//! Micro-kernels: what they compute, and how to add one for another processor.
//!
//! **Law.** For rows `i` below `rows` and columns `j` below the kernel's own number of columns,
//!
//! ```text
//! c[i + j * c_column] = alpha * sum over t < k of a[i + t * a_step] * b[j * b_column + t * b_step]
//!                       + beta * c[i + j * c_column]
//! ```
//!
//! and nothing else is written. With `beta = 0` the old `c` is not read. The sums stay in registers
//! from the first step to the last: together they are the register tile, MR rows by NR columns.
//!
//! A *word* of `a` and `b` is what one lane of an instruction multiplies: a float, or a group of
//! two or four small numbers whose products the instruction adds up.
//!
//! # A kernel for another processor
//!
//! 1. Implement [`MicroKernel`] for a type that names the instructions: one vector register, a mask
//!    for the rows at an edge, and the operations on them.
//! 2. Make the table of its register tiles, a [`KernelSet`], with [`kernel_set`].
//! 3. Write its packing in `pack.rs`: the same function under other target features.
//! 4. Say in `crate::simd` how the processor is asked for the instructions.
//! 5. Add a row to the tables in `route.rs`: the name of the atom, and all of the above.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod sum;
#[cfg(target_arch = "x86_64")]
mod table;

use super::element::SumElement;
use super::prefetch::Prefetch;
#[cfg(target_arch = "x86_64")]
pub(super) use sum::{micro_kernel, multiply_adds};
#[cfg(target_arch = "x86_64")]
pub(super) use table::{float_kernels, kernel_set, kernel_table, moves};

/// One tile of C, and the slices of A and B whose product it is.
///
/// *Invariant*, upheld by the caller of a kernel: all elements in the law above may be read. Those
/// of `c` may also be written, and nobody else uses them meanwhile. All kernels except edge kernels
/// read `a` up to a whole number of vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelTile<W, C> {
    /// The number of steps along K, in words.
    pub k: usize,
    /// The first word of A. Rows are contiguous.
    pub a: *const W,
    /// The distance from one step to the next in A, in words.
    pub a_step: isize,
    /// The first word of B.
    pub b: *const W,
    /// The distance from one step to the next in B, in words.
    pub b_step: isize,
    /// The distance from one column to the next in B, in words. Kernels for packed panels assume
    /// that it is 1.
    pub b_column: isize,
    /// The first element of C. Rows are contiguous.
    pub c: *mut C,
    /// The distance from one column to the next in C, in elements.
    pub c_column: isize,
    /// The number of rows. All vectors but the last are full.
    pub rows: usize,
    /// The lines that are prefetched meanwhile: this many rows with each column of the tile.
    pub prefetch: Prefetch,
    /// The factor of the product.
    pub alpha: C,
    /// The factor of the old C.
    pub beta: C,
}

/// A micro-kernel of a certain number of vectors and columns.
///
/// *Invariant*, upheld by the caller: that of the [`KernelTile`], and a processor with the
/// instructions.
pub(super) type KernelFunction<W, C> = unsafe fn(&KernelTile<W, C>);

/// The operations of a micro-kernel on registers: a vector register of one processor, and what the
/// loop over K does with it.
///
/// All functions are `#[inline(always)]`, so that they take the target features of the table's
/// entries ([`kernel_set`]). They have no features of their own.
///
/// # Safety
///
/// Callers run on a processor with the instructions, and inside a function that enables them. The
/// pointers are valid for the lanes that each function names; they need no alignment.
#[allow(clippy::missing_safety_doc)]
pub(super) trait MicroKernel {
    /// The type of a lane of A and B. A word is as large as an element of C.
    type Word: Copy + Default;
    /// The type of an element of C.
    type Element: SumElement;
    /// A vector register: [`LANES`](Self::LANES) words, or as many elements.
    type Vector: Copy;
    /// A mask that selects lanes of a vector at an edge.
    type Mask: Copy;
    /// The number of elements of C in a vector.
    const LANES: usize;
    /// How many steps along K ahead A is prefetched.
    const PREFETCH_STEPS: isize;

    /// The mask of the first `count` lanes, `1 <= count <= LANES`.
    unsafe fn mask(count: usize) -> Self::Mask;
    /// A vector of zeros.
    unsafe fn zero() -> Self::Vector;
    /// Loads `LANES` words of A, or elements of C.
    unsafe fn load(from: *const Self::Element) -> Self::Vector;
    /// Loads the lanes under the mask. The others are not read, and are zero.
    unsafe fn load_some(from: *const Self::Element, mask: Self::Mask) -> Self::Vector;
    /// Writes `LANES` elements of C.
    unsafe fn store(to: *mut Self::Element, value: Self::Vector);
    /// Writes the lanes under the mask.
    unsafe fn store_some(to: *mut Self::Element, value: Self::Vector, mask: Self::Mask);
    /// Broadcasts one word of B to all lanes.
    unsafe fn broadcast(word: Self::Word) -> Self::Vector;
    /// `sum + a * b` in each lane. For words of several numbers, it adds the sum of their products.
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// `alpha * sum`.
    unsafe fn scale(alpha: Self::Element, sum: Self::Vector) -> Self::Vector;
    /// `alpha * sum + beta * old`.
    unsafe fn scale_add(
        alpha: Self::Element,
        sum: Self::Vector,
        beta: Self::Element,
        old: Self::Vector,
    ) -> Self::Vector;
    /// The sum of column `column`, corrected by the words that packing wrote below a slice of B.
    /// Most kernels need no correction.
    #[inline(always)]
    unsafe fn correct(sum: Self::Vector, below: *const Self::Word, column: usize) -> Self::Vector {
        let _ = (below, column);
        sum
    }
}

/// The micro-kernels of one processor for one type: three for each number of vectors and columns.
///
/// *Invariant*: for fewer vectors there are at least as many columns, so that the remainders at the
/// edges of a matrix of tiles have micro-kernels too.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelSet<W: 'static, C: 'static> {
    /// The elements of C in a vector.
    pub lanes: usize,
    /// The numbers in a word.
    pub group: usize,
    /// The cost of broadcasting a word of B, besides loading it, in quarters of a cycle.
    pub broadcast_cost: usize,
    /// The number of rows of correction words below a packed slice of B.
    pub extra: usize,
    /// Writes the correction words below a packed slice of B, given its width and its number of
    /// steps.
    ///
    /// *Invariant*, upheld by the caller: the slice is packed, with room for `extra` more rows.
    pub write_extra: unsafe fn(*mut W, usize, usize),
    /// Multiplies and adds words in registers alone, in chains of this many steps. Returns the
    /// number of words.
    ///
    /// *Invariant*, upheld by the caller: a processor with the instructions.
    pub multiply_adds: unsafe fn(usize) -> usize,
    /// Kernels for packed panels of A and B.
    pub packed: &'static [&'static [KernelFunction<W, C>]],
    /// Kernels for any step and column stride of B, and whole vectors of A.
    pub strided: &'static [&'static [KernelFunction<W, C>]],
    /// Kernels for any step and column stride of B, which read no rows of A beyond the tile's.
    pub edge: &'static [&'static [KernelFunction<W, C>]],
}

/// Writes no correction words: for kernels that need none.
///
/// # Safety
///
/// None: it does nothing.
pub(super) unsafe fn write_nothing<W>(_: *mut W, _: usize, _: usize) {}

/// The number of independent multiply-add chains that keep the instructions busy: their latency
/// times their throughput.
pub(super) const CHAINS: usize = 12;
