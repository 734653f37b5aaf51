//! A language server: diagnostics and hints for tile programs, and layouts on hover in any file.
//!
//! The analysis does not depend on the protocol. [`Tile`] provides what an editor shows about a
//! tile program. [`Assigned`] has the layouts of its values. [`layout_at`] finds the layout at a
//! position of any other file. [`serve`] is the server that speaks the Language Server Protocol.
//!
//! ```
//! use tilewright_lsp::{Position, Text, Tile};
//!
//! let tile = Tile::new(Text::new("tile add {\n    input x: f32 8:1\n    grid 1\n    y = lod(x)\n}\n".to_owned()));
//! let problem = &tile.problems()[0];
//! assert_eq!((problem.code, problem.span.start), ("E1203", Position { line: 3, character: 8 }));
//! assert_eq!(problem.span.end, Position { line: 3, character: 11 });
//! ```
//!
//! # Laws
//!
//! * Problems, names and layouts come from the reader and the passes of tile programs; the server
//!   computes none of its own.
//! * Text is read and never executed. Long work runs on a second thread and is abandoned when newer
//!   text arrives.
//! * Every message of a client is answered as the protocol requires; only `exit` and the end of the
//!   input end the server.

mod assigned;
mod describe;
mod foreign;
mod format;
mod frame;
mod literal;
mod position;
mod problem;
mod server;
mod tile;
mod words;

pub use assigned::Assigned;
pub use foreign::{Found, layout_at, layouts};
pub use format::formatted;
pub use frame::{MAX_MESSAGE, Received, receive, send};
pub use position::{Position, Span, Text};
pub use problem::Problem;
pub use server::{Host, serve};
pub use tile::{Completion, Hint, Kind, MAX_TILE, Tile};
pub use words::{WORDS, Word};
