//! Queries of an error: its code, the operation, and the position in its operands.

use alloc::string::String;

use crate::refusal::error::{DIVIDE, LayoutError, Path, RefusedOperand};

/// The common interface of the errors of all crates.
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
    /// The stable code of this kind of error.
    fn code(&self) -> &'static str;

    /// The remedy, as a sentence; None if the message is sufficient.
    fn help(&self) -> Option<String>;
}

/// Makes an error type a [`Refusal`]: the code of each variant, and the type's own help. `from` is
/// the variant with an error of the algebra, `of` a variant with another refusal.
#[doc(hidden)]
#[macro_export]
macro_rules! refusal {
    ($Error:ident $(from $Layout:ident)? $(of $Inner:ident)*: $($Variant:ident $code:literal),+ $(,)?) => {
        impl $Error {
            /// The stable code of this kind of error, for `tilewright explain`.
            pub fn code(&self) -> &'static str {
                match self {
                    $($Error::$Variant { .. } => $code,)+
                    $($Error::$Layout(error) => error.code(),)?
                    $($Error::$Inner(error) => error.code(),)*
                }
            }
        }

        impl core::error::Error for $Error {}

        impl $crate::Refusal for $Error {
            fn code(&self) -> &'static str {
                $Error::code(self)
            }

            fn help(&self) -> Option<String> {
                $Error::help(self)
            }
        }

        $(
            impl From<$crate::LayoutError> for $Error {
                fn from(error: $crate::LayoutError) -> $Error {
                    $Error::$Layout(error.into())
                }
            }
        )?
    };
}

refusal! {
    LayoutError:
    NotCongruent "E0101", Extent "E0102", Overflow "E0103", Expression "E0103", TooLarge "E0104",
    NoSuchMode "E0105", NoName "E0105", Modes "E0105", Rank "E0106", LeafCount "E0106",
    Carry "E0107", Uneven "E0108", OutOfDomain "E0109", Undecided "E0110", Interrupted "E0129",
    NotChain "E0111", Overlap "E0112", Negative "E0113", NoLeftInverse "E0114", Collapse "E0114",
    NoPreimage "E0114", NotDivisible "E0115", Apart "E0115", Argument "E0116", Size "E0117",
    Coordinate "E0118", Tiler "E0119", Order "E0120", NotALayout "E0121", NotLinear "E0121",
    NotAdditive "E0121", Syntax "E0122", Mixed "E0125", NoPath "E0126", Diagonal "E0127",
    Fraction "E0128", Open "E0123", NotXor "E0124", Kind "E0130",
}

impl LayoutError {
    /// The name of the operation that refused; None if the error does not belong to one.
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
