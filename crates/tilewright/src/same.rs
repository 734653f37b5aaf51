//! Compares two layouts of any systems as functions, and finds the operation that moves data from
//! one to the other.
//!
//! Law: thread-value layouts, and layouts of registers, lanes and warps, are compared at every
//! thread and value, by the element of the tile that it holds. Other layouts are compared at every
//! coordinate. If the threads hold different elements, the conversion is that of
//! [`Distribution::route`]: renamed registers, shuffles in each warp, or shared memory.
//!
//! ```
//! use tilewright::read::{Options, expression};
//! use tilewright::same::same;
//! use tilewright::kernel::Element;
//!
//! // Is CuTe's accumulator layout of wgmma the same as Triton's #mma?
//! let cute = expression("((_4,_8,_4),(_2,_2,_8)):((_128,_1,_16),(_64,_8,_512))", &Options::default()).unwrap();
//! let text = "tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>>";
//! let triton = expression(text, &Options::default()).unwrap();
//! let same = same(&cute.meaning, &triton.meaning, None, Element::F32).unwrap();
//! assert!(same.difference.is_none());
//! assert_eq!(same.to_string(), "one function: 128 threads hold 32 values each of the 64x64 tile");
//! ```

use std::fmt;

use tilewright_kernel::{Distribution, Element, Route};
use tilewright_read::{Conversion, Meaning, Refused, compare};

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Same {
    /// The compared objects, as a clause: "128 threads hold 32 values each of the 64x64 tile".
    pub compared: String,
    /// The first difference of the layouts, as a sentence without a full stop; None if they are the
    /// same function.
    pub difference: Option<String>,
    /// The operation that moves data from the first layout to the second; None if no data moves, if
    /// the layouts are not distributions over threads, or if the planner has no such operation.
    pub movement: Option<Movement>,
    /// Further remarks about two layouts that differ. Each is a clause without a full stop.
    pub notes: Vec<String>,
}

/// An operation that moves a tile from one distribution to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Movement {
    /// How it moves: by registers, shuffles or shared memory.
    pub route: Route,
    /// The approximate number of instructions that each warp executes; a round trip through shared
    /// memory counts as 40.
    pub instructions: u32,
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.route {
            Route::Registers => f.write_str("renamed registers, no instruction"),
            Route::Lanes => write!(f, "shuffles in each warp, about {} instructions a warp", self.instructions),
            Route::Shared => {
                write!(f, "shared memory with a barrier, about {} instructions a warp", self.instructions)
            }
        }
    }
}

impl fmt::Display for Same {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.difference {
            None if self.compared.is_empty() => f.write_str("one function")?,
            None => write!(f, "one function: {}", self.compared)?,
            Some(difference) => write!(f, "not one function: {difference}")?,
        }
        match &self.movement {
            Some(movement) => write!(f, "\nfrom the first to the second: {movement}"),
            None => Ok(()),
        }
    }
}

/// Whether two layouts are the same function, and which operation moves elements of this type from
/// the first to the second.
///
/// A layout of two modes is read as a thread-value layout, from (thread, value) to an element of a
/// tile, if the other one is a distributed layout or if the shape of a tile is given.
///
/// Errors: as [`compare`].
pub fn same(left: &Meaning, right: &Meaning, tile: Option<&[i64]>, element: Element) -> Result<Same, Refused> {
    let found = compare(left, right, tile)?;
    let movement = match (&found.difference, &found.conversion) {
        (Some(_), Some(conversion)) => movement(conversion, element),
        _ => None,
    };
    Ok(Same { compared: found.compared, difference: found.difference, movement, notes: found.notes })
}

/// The conversion between two distributions, if the planner has one.
fn movement(conversion: &Conversion, element: Element) -> Option<Movement> {
    let [from, to] = [&conversion.from, &conversion.to].map(|layout| Distribution::new(&conversion.tile, layout));
    let (route, instructions) = from.ok()?.route(&to.ok()?, element).ok()?;
    Some(Movement { route, instructions })
}
