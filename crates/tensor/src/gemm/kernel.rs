//! Micro-kernels: what each computes, and what a new processor's kernel fills in.
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

/// One tile of C and the panels of A and B that it is the product of.
///
/// *Invariant*, upheld by whoever runs a kernel: all elements that the law above names may be read,
/// and those of `c` written, which nobody else uses meanwhile. A kernel that is not one for edges
/// reads `a` up to a whole number of vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelTile<W, C> {
    /// The number of steps along K, in words.
    pub k: usize,
    /// The first word of A. Rows are contiguous.
    pub a: *const W,
    /// From one step to the next, in words.
    pub a_step: isize,
    /// The first word of B.
    pub b: *const W,
    /// From one step to the next, in words.
    pub b_step: isize,
    /// From one column to the next, in words. Kernels for packed panels take it to be 1.
    pub b_column: isize,
    /// The first element of C. Rows are contiguous.
    pub c: *mut C,
    /// From one column to the next, in elements.
    pub c_column: isize,
    /// The number of rows: more than all vectors but one hold, at most what all of them hold.
    pub rows: usize,
    /// What is prefetched meanwhile: this many rows with each column of the tile.
    pub prefetch: Prefetch,
    /// The scalar of the product.
    pub alpha: C,
    /// The scalar of the old C.
    pub beta: C,
}

/// A micro-kernel of a certain number of vectors and columns.
///
/// *Invariant*, upheld by the caller: that of the [`KernelTile`], and a processor with the
/// instructions.
pub(super) type KernelFunction<W, C> = unsafe fn(&KernelTile<W, C>);

/// The register-level contract of a micro-kernel: a vector register of one processor, and what the
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
    /// What a lane of A and B holds. A word is as large as an element of C.
    type Word: Copy + Default;
    /// An element of C.
    type Element: SumElement;
    /// A vector register: [`LANES`](Self::LANES) words, or as many elements.
    type Vector: Copy;
    /// Which lanes of a vector are used at an edge.
    type Mask: Copy;
    /// The elements of C in a vector.
    const LANES: usize;
    /// How many steps along K ahead A is prefetched.
    const PREFETCH_STEPS: isize;

    /// The first `count` lanes, `1 <= count <= LANES`.
    unsafe fn mask(count: usize) -> Self::Mask;
    /// Zeros.
    unsafe fn zero() -> Self::Vector;
    /// `LANES` words of A, or elements of C.
    unsafe fn load(from: *const Self::Element) -> Self::Vector;
    /// Those under the mask. The others are not read, and are zero.
    unsafe fn load_some(from: *const Self::Element, mask: Self::Mask) -> Self::Vector;
    /// Writes `LANES` elements of C.
    unsafe fn store(to: *mut Self::Element, value: Self::Vector);
    /// Writes those under the mask.
    unsafe fn store_some(to: *mut Self::Element, value: Self::Vector, mask: Self::Mask);
    /// One word of B in all lanes.
    unsafe fn broadcast(word: Self::Word) -> Self::Vector;
    /// `sum + a * b`, lane by lane: for words of several numbers, the sum of their products.
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
    /// Most kernels have none.
    #[inline(always)]
    unsafe fn correct(sum: Self::Vector, below: *const Self::Word, column: usize) -> Self::Vector {
        let _ = (below, column);
        sum
    }
}

/// The micro-kernels of one processor for one type: for each number of vectors and columns, three.
///
/// *Invariant*: for fewer vectors there are at least as many columns, so that what is left over at
/// the edges of a matrix of tiles has its micro-kernels too.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelSet<W: 'static, C: 'static> {
    /// The elements of C in a vector.
    pub lanes: usize,
    /// The numbers in a word.
    pub group: usize,
    /// What it costs to broadcast a word of B, besides loading it, in quarters of a cycle.
    pub broadcast_cost: usize,
    /// The rows of words below a packed slice of B.
    pub extra: usize,
    /// Writes the words below a packed slice of B of a width and a number of steps, if there are
    /// any.
    ///
    /// *Invariant*, upheld by the caller: the slice is packed, with room for `extra` more rows.
    pub write_extra: unsafe fn(*mut W, usize, usize),
    /// Multiplies and adds words in registers alone, in chains of this many steps. Returns how many
    /// words that were.
    ///
    /// *Invariant*, upheld by the caller: a processor with the instructions.
    pub multiply_adds: unsafe fn(usize) -> usize,
    /// For packed panels of A and B.
    pub packed: &'static [&'static [KernelFunction<W, C>]],
    /// For any step and column of B, whole vectors of A.
    pub strided: &'static [&'static [KernelFunction<W, C>]],
    /// For any step and column of B. A is read no further than its rows.
    pub edge: &'static [&'static [KernelFunction<W, C>]],
}

/// Writes no words below a slice: for kernels that correct nothing.
///
/// # Safety
///
/// None: it does nothing.
pub(super) unsafe fn write_nothing<W>(_: *mut W, _: usize, _: usize) {}

/// The chains of multiply-adds that keep the instructions busy: their latency times their
/// throughput.
pub(super) const CHAINS: usize = 12;
