//! Layouts as other systems write them, read as layouts of this library.
//!
//! The text may be a page of template errors, a dump of an IR, or the output of `print(tiled_mma)`.
//! [`document()`] finds every layout in such a text, with its line and name; [`expression`] reads a
//! single layout. The result is a [`Reading`]: a value of the expression language, the unit of its
//! offsets ([`Unit`]), and notes about conversions.
//!
//! ```
//! use tilewright_read::{Options, document};
//!
//! let log = "sA_layout:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)\ntid 3\n";
//! let found = document(log, &Options::default());
//! let reading = found.readings().next().unwrap();
//! assert_eq!(reading.to_string(), "S<3,3,3> o 0 o (8,64):(64,1)");
//! assert_eq!(reading.notes[0], "Sw<3,4,3> acts on byte addresses; on elements of 16 bits it is S<3,3,3>");
//! ```
//!
//! # Laws
//!
//! * **Units are never guessed.** With the width of an element, a swizzle of byte addresses becomes
//!   a swizzle of element indices, and a note says so. If the text lacks the width, the shape or
//!   the system, the result is a [`Question`], which one of the [`Options`] answers.
//! * The meaning of a text is what the system that wrote it computes, at every coordinate. A text
//!   without such a meaning here is refused with its location ([`ReadError`]).
//! * Time is linear in the text, nesting is bounded, and no text makes a reader panic.
//!
//! # How to add a reader
//!
//! A file in `src/readers/` states the law of its system in its first comment and has a constant
//! [`Reader`]: the system, the signs with which its texts begin, and a function that is called at
//! each sign. It moves a [`Cursor`] through the text and returns [`Found`]: the bytes that it read,
//! and a [`Reading`] or the reason why there is none ([`Refused`]). It returns None if the text at
//! the sign is not of this system. A row in `table.rs` adds the reader to [`document()`] and
//! [`expression`], which add the name and the location. [`Context`] has the options and the
//! definitions of the text, such as `#mma = ..`. [`tuple::value`] makes a value from text in our
//! notation, [`element_bits`] knows the names of types, and [`swizzle_of_elements`] recasts a
//! swizzle of byte addresses.

mod clean;
mod cursor;
mod document;
mod explanation;
mod failure;
mod fit;
mod options;
mod reader;
mod readers;
mod reading;
mod refused;
mod same;
mod sparse;
mod system;
mod table;
mod term;
pub mod tuple;
mod width;
mod write;

pub use cursor::{Cursor, MAX_NESTING};
pub use document::{Document, Item, document, document_within, expression};
pub use explanation::explanation;
pub use failure::{Failure, Verdict, failures};
pub use options::Options;
pub use reader::{Context, Definitions, Found, MAX_ALIASES, Reader};
pub use reading::{Meaning, Part, Place, Reading, Unit};
pub use refused::{Missing, Question, ReadError, Refused};
pub use same::{Comparison, Conversion, common_unit, compare};
pub use system::System;
pub use table::readers;
pub use tilewright_mesh::ShardedLayout;
pub use width::{element_bits, swizzle_of_elements};
pub use write::{distributed, thread_value, write};
