//! Languages, as tables.
//!
//! Law: the text of an operation in a language has the value of the operation in that language's
//! semantics. A language says how each operation is written and how tightly that binds; which
//! operations it lacks, and these are spelled out before ([`crate::emit::spelling`]); which words
//! it keeps; and what a statement and a function look like. Adding one is a file like those below.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;

mod c;
mod python;
mod rust;
mod triton;

use core::str::FromStr;

use crate::emit::function::Function;
use crate::emit::graph::Op;
use crate::emit::integer::Integer;
use crate::ground::words::words;

words! {
    /// A language.
    ///
    /// The assumptions of each about integers:
    ///
    /// | language | division | shift down | minimum |
    /// |---|---|---|---|
    /// | Rust | `/` and `%` toward zero, `div_euclid` and `rem_euclid` down | keeps the sign | `a.min(b)` |
    /// | C, CUDA | `/` and `%` toward zero | keeps the sign, as all compilers do and C23 and C++20 demand | `a < b ? a : b` |
    /// | Python | `//` and `%` down | keeps the sign | `min(a, b)` |
    /// | Triton | `//` and `%` toward zero, as its page on semantics says; down where both sides are `constexpr` | keeps the sign | `tl.minimum(a, b)` |
    ///
    /// For a dividend that is not negative all of them agree, and most are known to be. What is
    /// emitted for Triton with a dividend that may be negative holds for tensors and scalars, not
    /// for `constexpr` values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Language {
        /// Rust. Names that are keywords become raw identifiers.
        Rust = "Rust",
        /// C99 with `<stdint.h>` and `<stdbool.h>`; also C++.
        C = "C",
        /// CUDA C++: device functions.
        Cuda = "CUDA",
        /// Python 3.
        Python = "Python",
        /// Triton: a function for `@triton.jit`, with `import triton` and `import triton.language
        /// as tl`.
        Triton = "Triton",
    }
}

impl Language {
    pub(crate) fn table(self) -> &'static dyn OperationTable {
        match self {
            Language::Rust => &rust::Rust,
            Language::C => &c::C { cuda: false },
            Language::Cuda => &c::C { cuda: true },
            Language::Python => &python::Python,
            Language::Triton => &triton::Triton,
        }
    }

    /// The name as it stands in the text.
    ///
    /// Errors: why there is none.
    pub(crate) fn identifier(self, name: &str) -> Result<String, &'static str> {
        let good = |(at, character): (usize, char)| {
            character.is_ascii_alphabetic() || character == '_' || (at > 0 && character.is_ascii_digit())
        };
        if name.is_empty() || !name.chars().enumerate().all(good) {
            return Err("a name is a letter or '_', then letters, digits and '_'");
        }
        let table = self.table();
        if table.keywords().split(' ').any(|word| word == name) {
            table.escaped(name).ok_or("it is a word of the language")
        } else {
            Ok(name.to_string())
        }
    }
}

impl FromStr for Language {
    type Err = String;

    /// Reads a name in any case, such as `cuda`.
    fn from_str(text: &str) -> Result<Language, String> {
        let named = |language: &Language| language.to_string().eq_ignore_ascii_case(text);
        Language::ALL.into_iter().find(named).ok_or_else(|| format!("no language `{text}`"))
    }
}

/// How tightly a text binds; the higher the tighter.
pub(crate) type Precedence = u8;

/// A text that nothing can tear apart: a name, a number, a call.
pub(crate) const WHOLE: Precedence = 20;
/// The lowest: anything may stand there.
pub(crate) const ANY: Precedence = 0;

/// How an operation is written.
pub(crate) enum OperationForm {
    /// The operator between the operands; it binds to the left.
    Infix(&'static str, Precedence),
    /// The operator before the operand.
    Prefix(&'static str, Precedence),
    /// A function of the operands.
    Call(&'static str),
    /// A method of the first operand, with the others as arguments.
    Method(&'static str),
    /// A text with `{0}`, `{1}` and `{2}` for the operands, which must bind as tightly as the last
    /// level.
    Pattern(&'static str, Precedence, Precedence),
}

/// The operations of a graph in a language.
pub(crate) trait OperationTable: Sync {
    /// How an operation is written; `None` for one that the language lacks.
    fn form(&self, op: Op) -> Option<OperationForm>;

    /// A number.
    fn integer(&self, value: i64) -> (String, Precedence);

    /// `true` or `false`.
    fn truth(&self, value: bool) -> &'static str;

    /// The words that are no names, with spaces between them.
    fn keywords(&self) -> &'static str;

    /// A keyword as a name.
    fn escaped(&self, _keyword: &str) -> Option<String> {
        None
    }

    /// The statement that gives a name to a value; `boolean` tells its type.
    fn named(&self, name: &str, value: &str, boolean: bool, integer: Integer) -> String;

    /// A function.
    fn function(&self, function: &Function<'_>) -> String;
}

/// The levels of the operators that all languages share, in order.
pub(crate) mod level {
    use super::Precedence;

    pub(crate) const UNARY: Precedence = 15;
    pub(crate) const PRODUCT: Precedence = 14;
    pub(crate) const SUM: Precedence = 13;
    pub(crate) const SHIFT: Precedence = 12;
    pub(crate) const AND: Precedence = 11;
    pub(crate) const XOR: Precedence = 10;
    /// Comparisons, below the operators on bits; C has them above.
    pub(crate) const COMPARE: Precedence = 8;
    pub(crate) const BOTH: Precedence = 4;
    pub(crate) const CHOICE: Precedence = 2;
}

/// The operators that all languages write alike.
pub(crate) fn common(op: Op) -> Option<OperationForm> {
    Some(match op {
        Op::Negative(_) => OperationForm::Prefix("-", level::UNARY),
        Op::Sum(..) => OperationForm::Infix("+", level::SUM),
        Op::Difference(..) => OperationForm::Infix("-", level::SUM),
        Op::Product(..) => OperationForm::Infix("*", level::PRODUCT),
        Op::Left(..) => OperationForm::Infix("<<", level::SHIFT),
        Op::Right(..) => OperationForm::Infix(">>", level::SHIFT),
        Op::Bits(..) => OperationForm::Infix("&", level::AND),
        Op::Xor(..) => OperationForm::Infix("^", level::XOR),
        Op::Less(..) => OperationForm::Infix("<", level::COMPARE),
        Op::AtLeast(..) => OperationForm::Infix(">=", level::COMPARE),
        _ => return None,
    })
}

/// The language and the integer type of a text.
///
/// ```
/// use tilewright_layout::emit::{Integer, Language, Style};
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
