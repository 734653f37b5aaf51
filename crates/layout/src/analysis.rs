//! The cost of layouts in memory, and cheaper alternatives.
//!
//! # The question
//!
//! A layout gives the offsets of the elements of a tile: its [`Storage`]. An [`Access`] gives the
//! elements that each thread accesses, and the width of each load or store. Both are layouts, so
//! the accessed addresses are a composition, evaluated element by element:
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
//!   `a` is in bank `floor(a / 4) mod 32` ([`Banks`]). A request is served in *phases* whose lanes
//!   together access one row of all banks: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16. In a phase,
//!   a bank serves one word after another, and a word once for all lanes that access it. So a phase
//!   takes as many *wavefronts* as different words are accessed in the busiest bank, its *degree*;
//!   and no arrangement of the same words takes fewer than their number divided by the number of
//!   banks.
//! * **Global memory** ([`global_access`]). It transfers sectors of 32 bytes, four to a line of
//!   128. A request costs the sectors that its lanes touch, and its efficiency is the fraction of
//!   their bytes that is used.
//! * **What a layout covers** ([`footprint()`]): its span, gaps, repeats and runs; as a
//!   [`permutation()`], its cycles; and how much moves from one layout to another ([`distance`]).
//! * **A lane** takes 1, 2, 4, 8 or 16 bytes that lie side by side, at a multiple of their number.
//!   What would not is refused, never rounded.
//!
//! Offset 0 is taken to be aligned to 128 bytes, as shared memory and allocations of global memory
//! are.
//!
//! [`suggest()`] searches for the change of the layout with which accesses cost least, and says why
//! nothing is better.
//!
//! # Answers
//!
//! Every answer is counted from the offsets of all lanes, so it is right for every kind of layout:
//! swizzled, composed, XOR. For numbers that become known at launch it holds for every value they
//! may have, or is refused with the fact that is missing ([`AnalysisError::Open`]). Work is limited
//! ([`MAX_ELEMENTS`]).
//!
//! ```
//! use tilewright_layout::analysis::{Access, Banks, Storage, bank_conflicts};
//! use tilewright_layout::{Composed, Layout};
//!
//! # fn main() -> Result<(), tilewright_layout::analysis::AnalysisError> {
//! // Eight threads, each with a row of 64 halves, load 16 bytes at a time.
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
pub use suggest::{Advice, MAX_COMPOSED, MAX_SEARCHED, Proof, Remedy, Suggestion, suggest};
