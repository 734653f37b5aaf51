//! How text is written: the language and the integer type.

use crate::language::Language;

/// The language and the integer type of a text.
///
/// ```
/// use tilewright_emit::{Integer, Language, Style};
///
/// let style = Style::new(Language::Cuda).with_integer(Integer::I32);
/// assert_eq!((style.language, style.integer.bits()), (Language::Cuda, 32));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Style {
    /// The language.
    pub language: Language,
    /// The integer type of variables, named parts and results.
    pub integer: Integer,
}

impl Style {
    /// The language, with integers of 64 bits.
    pub fn new(language: Language) -> Style {
        Style { language, integer: Integer::I64 }
    }

    /// The same with another integer type.
    pub fn with_integer(self, integer: Integer) -> Style {
        Style { integer, ..self }
    }
}

/// The signed integer type of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Integer {
    /// 32 bits. The facts must show that every number on the way fits; otherwise no text is
    /// written.
    I32,
    /// 64 bits, as the library computes. Numbers beyond that are the caller's concern, as they are
    /// with the layout itself: it has no offsets there. Python's integers have no end.
    #[default]
    I64,
}

impl Integer {
    /// How many bits it has.
    pub fn bits(self) -> u32 {
        match self {
            Integer::I32 => 32,
            Integer::I64 => 64,
        }
    }
}
