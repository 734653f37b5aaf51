//! The target languages, as tables.
//!
//! Law: the text of an operation in a language has the value of the operation in that language's
//! semantics. The table of a language has the text and the precedence of each operation, the
//! operations that it lacks (which [`crate::emit::spelling`] replaces first), its keywords, and the
//! form of a statement and of a function. To add a language, add a file like those below.

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
    /// The integer arithmetic of each language:
    ///
    /// | language | division | shift down | minimum |
    /// |---|---|---|---|
    /// | Rust | `/` and `%` toward zero, `div_euclid` and `rem_euclid` down | keeps the sign | `a.min(b)` |
    /// | C, CUDA | `/` and `%` toward zero | keeps the sign, as all compilers do and C23 and C++20 demand | `a < b ? a : b` |
    /// | Python | `//` and `%` down | keeps the sign | `min(a, b)` |
    /// | Triton | `//` and `%` toward zero, as its page on semantics says; down where both sides are `constexpr` | keeps the sign | `tl.minimum(a, b)` |
    ///
    /// For a nonnegative dividend all languages agree, and most dividends are known to be
    /// nonnegative. Text for Triton with a dividend that may be negative is correct for tensors and
    /// scalars, not for `constexpr` values.
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

    /// The identifier for a name.
    ///
    /// Errors: the reason why there is none.
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

    /// Parses a name in any case, such as `cuda`.
    fn from_str(text: &str) -> Result<Language, String> {
        let named = |language: &Language| language.to_string().eq_ignore_ascii_case(text);
        Language::ALL.into_iter().find(named).ok_or_else(|| format!("no language `{text}`"))
    }
}

/// The precedence of a text; a higher number binds more tightly.
pub(crate) type Precedence = u8;

/// The precedence of a text that never needs parentheses: a name, a number, a call.
pub(crate) const WHOLE: Precedence = 20;
/// The lowest precedence: any text is allowed.
pub(crate) const ANY: Precedence = 0;

/// How an operation is written.
pub(crate) enum OperationForm {
    /// A left-associative operator between the operands.
    Infix(&'static str, Precedence),
    /// The operator before the operand.
    Prefix(&'static str, Precedence),
    /// A function of the operands.
    Call(&'static str),
    /// A method of the first operand, with the others as arguments.
    Method(&'static str),
    /// A text with `{0}`, `{1}` and `{2}` for the operands. The first number is the precedence of
    /// the text; the second is the least precedence of its operands.
    Pattern(&'static str, Precedence, Precedence),
}

/// The table of a language.
pub(crate) trait OperationTable: Sync {
    /// How an operation is written; None for an operation that the language lacks.
    fn form(&self, op: Op) -> Option<OperationForm>;

    /// The text of an integer, and its precedence.
    fn integer(&self, value: i64) -> (String, Precedence);

    /// `true` or `false`.
    fn truth(&self, value: bool) -> &'static str;

    /// The keywords, separated by spaces.
    fn keywords(&self) -> &'static str;

    /// The spelling of a keyword as an identifier; None if there is none.
    fn escaped(&self, _keyword: &str) -> Option<String> {
        None
    }

    /// The statement that defines a named value; `boolean` means that its type is a truth value.
    fn named(&self, name: &str, value: &str, boolean: bool, integer: Integer) -> String;

    /// The text of a function.
    fn function(&self, function: &Function<'_>) -> String;
}

/// The precedences of the operators that all languages share, in order.
pub(crate) mod level {
    use super::Precedence;

    pub(crate) const UNARY: Precedence = 15;
    pub(crate) const PRODUCT: Precedence = 14;
    pub(crate) const SUM: Precedence = 13;
    pub(crate) const SHIFT: Precedence = 12;
    pub(crate) const AND: Precedence = 11;
    pub(crate) const XOR: Precedence = 10;
    /// Comparisons are below the bitwise operators here; in C they are above.
    pub(crate) const COMPARE: Precedence = 8;
    pub(crate) const BOTH: Precedence = 4;
    pub(crate) const CHOICE: Precedence = 2;
}

/// The operators that all languages write in the same way.
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
    /// The language with 64-bit integers.
    pub fn new(language: Language) -> Style {
        Style { language, integer: Integer::I64 }
    }

    /// The same with another integer type.
    pub fn with_integer(self, integer: Integer) -> Style {
        Style { integer, ..self }
    }
}
