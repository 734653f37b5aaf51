//! Text of XOR steps.
//!
//! Law: `^9` and `F9` are parsed as the vector with the bits of 9, which prints as `^9`; 0 is the
//! zero of every type of step.

use core::fmt;
use core::str::FromStr;

use super::Xor;
use crate::ground::words::debug_as_text;
use crate::refusal::error::LayoutError;
use crate::text::reading::{Cursor, LayoutLiteral, Literal};
use crate::value::tree::Tree;

/// The expected text in error messages of XOR steps.
const XOR_STEP: &str = "an XOR step such as ^9, or 0; integer and XOR strides do not mix";

impl Literal for Xor {
    /// The number 0 is a step, and any other number is a step of another kind.
    fn read(text: &mut Cursor<'_>) -> Result<Xor, LayoutError> {
        text.peek();
        let start = text.at();
        let marked = text.eat(b'^') || text.eat(b'F');
        let step = u64::try_from(text.integer()?).ok().filter(|bits| marked || *bits == 0).and_then(Xor::within);
        step.map_or_else(|| Err(LayoutError::Syntax { at: start, expected: XOR_STEP }), Ok)
    }
}

impl LayoutLiteral for Xor {
    /// A shape without strides is the compact layout, whose strides are integers.
    fn of_index(_index: i64) -> Option<Xor> {
        None
    }
}

impl FromStr for Xor {
    type Err = LayoutError;

    /// Parses `^9`, `F9`, and `0`, which is zero in every type of step.
    fn from_str(text: &str) -> Result<Xor, LayoutError> {
        let tree: Tree<Xor> = text.parse()?;
        match (tree.is_leaf(), tree.leaves()) {
            (true, [step]) => Ok(*step),
            _ => Err(LayoutError::Syntax { at: 0, expected: XOR_STEP }),
        }
    }
}

impl fmt::Display for Xor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "^{}", self.0)
    }
}

debug_as_text!(Xor);
