//! The questions to a refusal: its code, the refused operation, and the location in its operands.

use alloc::string::String;

use crate::refusal::error::{DIVIDE, LayoutError, Path, RefusedOperand};

/// Why something is refused, whichever crate refuses it.
///
/// The text is a sentence; the code is stable, and `tilewright explain` has a page on it.
///
/// ```
/// use tilewright_layout::{Layout, Refusal};
///
/// let refusal = "(4,8):(1)".parse::<Layout>().unwrap_err();
/// let refusal: &dyn Refusal = &refusal;
/// assert_eq!(refusal.code(), "E0101");
/// assert!(refusal.help().unwrap().starts_with("give every extent one stride"));
/// ```
pub trait Refusal: core::error::Error {
    /// The stable code of this kind of refusal.
    fn code(&self) -> &'static str;

    /// The remedy, as a sentence; None if the text is sufficient.
    fn help(&self) -> Option<String>;
}

impl Refusal for LayoutError {
    fn code(&self) -> &'static str {
        LayoutError::code(self)
    }

    fn help(&self) -> Option<String> {
        LayoutError::help(self)
    }
}

impl LayoutError {
    /// The stable code of this kind of error, for `tilewright explain`.
    pub fn code(&self) -> &'static str {
        match self {
            LayoutError::NotCongruent { .. } => "E0101",
            LayoutError::Extent { .. } => "E0102",
            LayoutError::Overflow { .. } | LayoutError::Expression { .. } => "E0103",
            LayoutError::TooLarge { .. } => "E0104",
            LayoutError::NoSuchMode { .. } | LayoutError::NoName { .. } | LayoutError::Modes { .. } => "E0105",
            LayoutError::Rank { .. } | LayoutError::LeafCount { .. } => "E0106",
            LayoutError::Carry(_) => "E0107",
            LayoutError::Uneven(_) => "E0108",
            LayoutError::OutOfDomain { .. } => "E0109",
            LayoutError::Undecided { .. } => "E0110",
            LayoutError::Interrupted { .. } => "E0129",
            LayoutError::NotChain(_) => "E0111",
            LayoutError::Overlap(_) => "E0112",
            LayoutError::Negative { .. } => "E0113",
            LayoutError::NoLeftInverse(_) | LayoutError::Collapse { .. } | LayoutError::NoPreimage { .. } => "E0114",
            LayoutError::NotDivisible { .. } | LayoutError::Apart { .. } => "E0115",
            LayoutError::Argument { .. } => "E0116",
            LayoutError::Size { .. } => "E0117",
            LayoutError::Coordinate { .. } => "E0118",
            LayoutError::Tiler { .. } => "E0119",
            LayoutError::Order { .. } => "E0120",
            LayoutError::NotALayout { .. } | LayoutError::NotLinear { .. } | LayoutError::NotAdditive { .. } => "E0121",
            LayoutError::Syntax { .. } => "E0122",
            LayoutError::Mixed(_) => "E0125",
            LayoutError::NoPath { .. } => "E0126",
            LayoutError::Diagonal { .. } => "E0127",
            LayoutError::Fraction { .. } => "E0128",
            LayoutError::Open { .. } => "E0123",
            LayoutError::NotXor(_) => "E0124",
            LayoutError::Kind { .. } => "E0130",
        }
    }

    /// The name of the operation that refused, where the error belongs to one.
    pub fn operation(&self) -> Option<&'static str> {
        match self {
            LayoutError::Overflow { op }
            | LayoutError::Expression { op }
            | LayoutError::NoSuchMode { op, .. }
            | LayoutError::NoName { op, .. }
            | LayoutError::Modes { op, .. }
            | LayoutError::Rank { op, .. }
            | LayoutError::Undecided { op, .. }
            | LayoutError::Interrupted { op }
            | LayoutError::Negative { op, .. }
            | LayoutError::NotDivisible { op, .. }
            | LayoutError::Apart { op, .. }
            | LayoutError::Argument { op, .. }
            | LayoutError::Size { op, .. }
            | LayoutError::Coordinate { op, .. }
            | LayoutError::Tiler { op, .. }
            | LayoutError::Order { op, .. }
            | LayoutError::NotALayout { op, .. }
            | LayoutError::NotLinear { op, .. }
            | LayoutError::NotAdditive { op, .. }
            | LayoutError::Collapse { op, .. }
            | LayoutError::NoPreimage { op, .. }
            | LayoutError::NoPath { op, .. }
            | LayoutError::Diagonal { op, .. }
            | LayoutError::Kind { op, .. }
            | LayoutError::Open { op, .. } => Some(op),
            LayoutError::Carry(_) | LayoutError::Uneven(_) | LayoutError::OutOfDomain { .. } => Some("composition"),
            LayoutError::NotChain(chain) | LayoutError::Overlap(chain) => Some(chain.op),
            LayoutError::NoLeftInverse(_) => Some("left_inverse"),
            LayoutError::NotXor(not) => Some(not.op),
            LayoutError::NotCongruent { .. }
            | LayoutError::Extent { .. }
            | LayoutError::TooLarge { .. }
            | LayoutError::LeafCount { .. }
            | LayoutError::Mixed(_)
            | LayoutError::Fraction { .. }
            | LayoutError::Syntax { .. } => None,
        }
    }

    /// The operand that the error is about, and the path of the mode in it.
    pub fn place(&self) -> Option<(RefusedOperand, Path)> {
        let (operand, path) = match self {
            LayoutError::NotCongruent { path, .. } => (RefusedOperand::Second, path),
            LayoutError::Negative { op: DIVIDE, path, .. } => (RefusedOperand::Second, path),
            LayoutError::Extent { path, .. } | LayoutError::Negative { path, .. } => (RefusedOperand::First, path),
            LayoutError::Rank { path, .. }
            | LayoutError::NotDivisible { path, .. }
            | LayoutError::Apart { path, .. } => (RefusedOperand::First, path),
            LayoutError::Carry(carry) => return Some((RefusedOperand::Second, carry.crossing().path)),
            LayoutError::Uneven(uneven) => (RefusedOperand::Second, &uneven.mode.path),
            LayoutError::OutOfDomain { .. } => return Some((RefusedOperand::Second, Path::new())),
            LayoutError::NotXor(not) => (RefusedOperand::Second, &not.mode.as_ref()?.path),
            LayoutError::NotChain(chain) if chain.op == DIVIDE => (RefusedOperand::Second, &chain.outer.0),
            LayoutError::NotChain(chain) | LayoutError::Overlap(chain) => (RefusedOperand::First, &chain.outer.0),
            LayoutError::Coordinate { path, .. } | LayoutError::Tiler { path, .. } => (RefusedOperand::Second, path),
            LayoutError::Mixed(mixed) => (RefusedOperand::Second, &mixed.second.0),
            LayoutError::NoPath { path, .. } => (RefusedOperand::Second, path),
            LayoutError::Diagonal { path, .. } => (RefusedOperand::First, path),
            LayoutError::Kind { operand, .. } => return Some((*operand, Path::new())),
            _ => return None,
        };
        Some((operand, path.clone()))
    }
}
