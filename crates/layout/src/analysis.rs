//! The cost of layouts in memory, and cheaper alternatives.
//!
//! # The question
//!
//! A layout maps the elements of a tile to offsets: this is its [`Storage`]. An [`Access`] maps
//! each thread and value to an element, and has the width of each load or store. Both are layouts,
//! so the accessed addresses are a composition, evaluated element by element:
//!
//! ```text
//! offset(thread, value) = storage( access(thread, value) )
//! ```
//!
//! Threads are grouped into the *lanes* that one instruction serves, 32 in a warp. One instruction
//! of one group is a *request*.
//!
//! # The laws of the memory
//!
//! * **Shared memory** ([`bank_conflicts`]). It has 32 banks, each 4 bytes wide; the word at byte
//!   `a` is in bank `floor(a / 4) mod 32` ([`Banks`]). A request is served in *phases*. The lanes
//!   of a phase together access at most one word of every bank: 32 lanes of up to 4 bytes, 16 of 8,
//!   8 of 16. In a phase, a bank serves one word after another, each word once for all lanes that
//!   access it. So the number of *wavefronts* of a phase is its *degree*, the number of different
//!   words that are accessed in the busiest bank. No arrangement of the same words takes fewer
//!   wavefronts than their number divided by the number of banks.
//! * **Global memory** ([`global_access`]). It transfers sectors of 32 bytes, four to a line of
//!   128. A request costs the sectors that its lanes touch, and its efficiency is the fraction of
//!   their bytes that is used.
//! * **What a layout covers** ([`footprint()`]): its span, gaps, repeats and runs; the cycles of
//!   its [`permutation()`]; and how many elements move from one layout to another ([`distance`]).
//! * **A lane** accesses 1, 2, 4, 8 or 16 contiguous bytes at an aligned address. Any other access
//!   is refused, never rounded.
//!
//! Offset 0 is taken to be aligned to 128 bytes, as shared memory and allocations of global memory
//! are.
//!
//! [`suggest()`] searches for the change of the layout that minimizes the cost of the accesses, and
//! states why no other change is better.
//!
//! # Answers
//!
//! Every answer is counted from the offsets of all lanes, so it is right for every kind of layout:
//! swizzled, composed, XOR. With numbers that become known at launch, the answer holds for every
//! admissible value, or is refused with the fact that is missing ([`AnalysisError::Open`]). Work is
//! limited ([`MAX_ELEMENTS`]).
//!
//! ```
//! use tilewright_layout::analysis::{Access, Banks, Storage, bank_conflicts};
//! use tilewright_layout::{Composed, Layout};
//!
//! # fn main() -> Result<(), tilewright_layout::analysis::AnalysisError> {
//! // Each of eight threads loads its row of 64 f16 in vectors of 16 bytes.
//! let rows: Layout = "(8,64):(64,1)".parse()?;
//! let access = Access::thread_values(&rows.shape(), 16, 8)?;
//! assert_eq!(bank_conflicts(&Storage::from(&rows), &access, Banks::NVIDIA)?.degree(), 8);
//!
//! let swizzled: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse()?;
//! assert!(bank_conflicts(&Storage::from(&swizzled), &access, Banks::NVIDIA)?.is_conflict_free());
//! # Ok(())
//! # }
//! ```

mod access;
mod banks;
mod error;
mod explanation;
mod footprint;
mod global;
mod storage;
mod suggest;
mod units;

pub use access::{Access, MAX_ELEMENTS};
pub use banks::{BankConflict, BankReport, Banks, Hit, Phase, PhaseHits, bank_conflicts, phase_hits};
pub use error::AnalysisError;
pub use explanation::explanation;
pub use footprint::{Distance, Footprint, Permutation, distance, footprint, permutation};
pub use global::{
    GlobalReport, LINE_BYTES, Request, RequestUnits, SECTOR_BYTES, Taken, Widths, global_access, request_units, widths,
};
pub use storage::Storage;
pub use suggest::{Advice, MAX_COMPOSED, MAX_SEARCHED, Proof, Remedy, Suggestion, suggest, suggest_swizzle};
