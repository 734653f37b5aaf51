//! The errors of writing text.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::LayoutError;
use crate::emit::integer::Integer;
use crate::emit::language::Language;

/// The reason why no text is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmitError {
    /// The layout refuses the evaluation: the coordinate does not fit, or a number is not
    /// representable.
    Layout(Box<LayoutError>),
    /// A name that the language does not allow.
    Name {
        /// The name.
        name: String,
        /// The language.
        language: Language,
        /// The reason.
        why: &'static str,
    },
    /// Two inputs, or an input and a result, have the same name.
    NameTwice {
        /// The name.
        name: String,
    },
    /// The number of names is not the number of variables.
    Names {
        /// The number of names.
        given: usize,
        /// The number of variables.
        variables: usize,
    },
    /// A number may not fit in the requested integer type.
    Width(Box<Width>),
    /// The number of bounds is not the number of numbers of the value.
    Bounds {
        /// The number of bounds.
        given: usize,
        /// The number of numbers of the value.
        numbers: usize,
    },
    /// Two computations to be combined are not over the same variables.
    Variables,
    /// A quantity exceeds its limit.
    TooLarge {
        /// The quantity that is too large.
        what: &'static str,
    },
}

/// An intermediate value that may not fit in an integer type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Width {
    /// The part of the computation, as text of the language.
    pub part: String,
    /// The integer type.
    pub integer: Integer,
    /// The smallest and the largest value that the facts allow, if bounded.
    pub range: (Option<i128>, Option<i128>),
    /// The names of inputs in it without a known lower or upper bound.
    pub open: Vec<String>,
}

impl EmitError {
    /// A hint on how to fix it, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            EmitError::Layout(error) => return error.help(),
            EmitError::Name { .. } | EmitError::NameTwice { .. } => "choose another name".to_string(),
            EmitError::Names { variables, .. } => format!("give {variables} names, one for each variable"),
            EmitError::Width(width) => match width.open.first() {
                Some(name) => {
                    let facts: Vec<String> = width.open.iter().map(|name| format!("`{name}{{max=..}}`")).collect();
                    format!("say how large {name} can be: declare {}", facts.join(" and "))
                }
                None => "use 64 bits, or narrow the facts".to_string(),
            },
            EmitError::Bounds { numbers, .. } => format!("give {numbers} bounds, one for each number"),
            EmitError::Variables => "use the same kind of coordinate, names and promise for both".to_string(),
            EmitError::TooLarge { .. } => "emit a part of the layout".to_string(),
        })
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmitError::Layout(error) => error.fmt(f),
            EmitError::Name { name, language, why } => write!(f, "`{name}` is no name in {language}: {why}"),
            EmitError::NameTwice { name } => write!(f, "two things are called `{name}`"),
            EmitError::Names { given, variables } => write!(f, "{given} names for {variables} variables"),
            EmitError::Width(width) => {
                let Width { part, integer, range, open } = width.as_ref();
                write!(f, "`{part}` may not fit into {} bits", integer.bits())?;
                match range {
                    _ if !open.is_empty() => write!(f, ": nothing bounds {}", open.join(", ")),
                    (Some(least), Some(greatest)) => write!(f, ": it is between {least} and {greatest}"),
                    (Some(least), None) => write!(f, ": it is at least {least}"),
                    (None, Some(greatest)) => write!(f, ": it is at most {greatest}"),
                    (None, None) => Ok(()),
                }
            }
            EmitError::Bounds { given, numbers } => write!(f, "{given} bounds for a value of {numbers} numbers"),
            EmitError::Variables => f.write_str("the computations have different variables"),
            EmitError::TooLarge { what } => write!(f, "{what} has too many parts"),
        }
    }
}

crate::refusal! {
    EmitError from Layout:
    Name "E0301", NameTwice "E0302", Names "E0303", Width "E0304", Bounds "E0305",
    Variables "E0306", TooLarge "E0307",
}
