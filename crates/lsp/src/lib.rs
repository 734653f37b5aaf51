//! A language server: tile programs as they are typed, and the layouts of any file on hover.
//!
//! The analysis knows nothing of the protocol: [`Tile`] says what an editor shows about a tile
//! program, [`Assigned`] which layouts its values have, and [`layout_at`] which layout stands at a
//! place of any other file. [`serve`] speaks the Language Server Protocol around them.
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
//! * A problem, a name and a layout are what the reader and the passes of tile programs say; the
//!   server has no second opinion.
//! * Text is read and never executed. What takes long runs beside the server, and newer text takes
//!   its place.
//! * Whatever a client sends is answered as the protocol says; nothing ends the server but `exit`
//!   and the end of its input.

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
