//! Layouts in a compiler.
//!
//! A compiler meets the same layouts again and again: as the types of values, as the operands of
//! folds, as candidates of a search. This crate gives each of them an identity, remembers what
//! operations on them came to, and answers what a verifier asks:
//!
//! * [`Interner`]: equal layouts are one [`Handle`], eight bytes that are compared and hashed as a
//!   number; operations on handles are computed once, and so are refusals. It holds layouts of
//!   every kind ([`AnyLayout`](tilewright_layout::AnyLayout)), and is shared by threads.
//! * [`Candidate`]: what layout assignment keeps of a layout that a value may have: strides as
//!   given and in normal form, kind, swizzle, identity and state.
//! * [`verify`]: whether shape and stride nest alike, whether a shape divides, whether an image
//!   fits a domain, whether two layouts are one function, and so on; each answer says which mode
//!   and which numbers.
//!
//! ```
//! use tilewright_compiler::{Interner, verify};
//! use tilewright_layout::{AnyLayout, AnyTiler, DivideForm, Layout};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let interner = Interner::new();
//! let matrix = interner.intern(&"(128,64):(64,1)".parse::<AnyLayout>()?)?;
//! let tiler = interner.intern(&"[16:1;8:1]".parse::<AnyTiler>()?)?;
//!
//! // Computed once, then looked up.
//! let tiled = interner.divide(DivideForm::Zipped, matrix, tiler)?;
//! assert_eq!(interner.divide(DivideForm::Zipped, matrix, tiler)?, tiled);
//! assert_eq!(interner.get(tiled)?.to_string(), "((16,8),(8,8)):((64,1),(1024,8))");
//!
//! // A fold is legal when the inner image fits the outer domain.
//! let rows: Layout = "(4,4):(1,12)".parse()?;
//! let verdict = verify::fits(&rows, &"(4,8):(8,1)".parse::<Layout>()?);
//! assert_eq!(
//!     verdict.to_string(),
//!     "fails: the image of the inner layout reaches 39 at coordinate (3,3), and the domain of the outer layout ends at 31"
//! );
//! # Ok(())
//! # }
//! ```
//!
//! # What it costs
//!
//! Looking up an outcome takes 15 to 25 ns, computing one 30 to 250, and computing it for the first
//! time in an interner 150 to 250 more than without one. So for those who keep handles an interner
//! saves time from the third to the fifth time on that a composite is asked for, and from about the
//! fifteenth for a coalesced form, which is computed nearly as fast as it is looked up. Who has to
//! intern the operands each time, at 35 to 50 ns each, gains little, and on small ones nothing.
//! What an interner always gives is identity. The example `interning` prints the numbers of your
//! machine.

mod candidate;
mod handle;
mod interned;
mod interner;
mod memo;
mod operation;
mod pool;
mod state;
pub mod verify;

pub use candidate::{Candidate, CandidateError, normal_form};
pub use handle::Handle;
pub use interned::Interned;
pub use interner::{DEFAULT_LIMIT, InternError, Interner};
pub use state::{IllegalChange, State};
