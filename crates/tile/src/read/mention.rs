//! The names in the text of a program, for editors.
//!
//! Law: the reader itself resolves each name, so scopes and shadowing are those of the language.
//! For a text that is refused, the names before the refusal are recorded.

use std::cell::RefCell;

use tilewright_kernel::program::Location;

use super::Reader;
use super::text::Text;
use crate::build::Value;
use crate::error::TileError;
use crate::program::{Program, Type, ValueId};

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A tensor, by its number in [`Program::tensors`].
    Tensor(usize),
    /// A value.
    Value(ValueId),
    /// The iteration of a loop, by the number of the loop.
    Iteration(u32),
    /// A scalar argument, by its number in [`Program::scalars`].
    Scalar(usize),
}

/// A name in the text of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The name.
    pub name: String,
    /// The location of its first character.
    pub place: Location,
    /// Its meaning.
    pub of: Subject,
    /// The shape and the type of a value. None for other names, and in a statement that is refused.
    pub ty: Option<Type>,
    /// Whether the name is defined here. If not, it is used.
    pub is_given: bool,
}

/// The names in the text of a program, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The occurrences of names, in the order of the text.
    pub mentions: Vec<Mention>,
    /// The names that a statement may use where the reader stopped, in alphabetical order.
    pub scope: Vec<(String, Subject)>,
}

impl Program {
    /// Reads a program, and resolves each name in its text. For a text that is refused, the names
    /// before the refusal are recorded.
    ///
    /// ```
    /// use tilewright_tile::{Program, Subject};
    ///
    /// let text = "tile add {\n input x: f32 8:1\n grid 1\n a = load(x, (8), (block.x))\n b = a + c\n}";
    /// let (read, outline) = Program::outline(text);
    /// assert!(read.unwrap_err().to_string().contains("the value `c` is not known"));
    /// let found: Vec<_> = outline.mentions.iter().map(|own| (own.name.as_str(), own.place.line(), own.is_given)).collect();
    /// assert_eq!(found, [("x", 2, true), ("a", 4, true), ("x", 4, false), ("a", 5, false)]);
    /// assert_eq!(outline.scope[0].0, "a");
    /// ```
    pub fn outline(text: &str) -> (Result<Program, TileError>, Outline) {
        let outline = RefCell::default();
        let read = Program::of_outlined(Text::new("<text>", text, &[]), Some(&outline));
        let mut outline = outline.into_inner();
        // A statement is read before its name is defined.
        outline.mentions.sort_by_key(|own| (own.place.line(), own.place.column()));
        (read, outline)
    }
}

impl<'b> Reader<'_, 'b> {
    /// Records the meaning of a name.
    pub(super) fn mention(&self, name: &str, place: Location, of: Subject, is_given: bool) {
        let Some(outline) = self.outline else { return };
        let ty = match of {
            Subject::Value(id) if self.build.complaint().is_ok() => Some(Value { build: self.build, id }.type_of()),
            _ => None,
        };
        outline.borrow_mut().mentions.push(Mention { name: name.to_string(), place, of, ty, is_given });
    }

    /// Records the names that are visible where the reader stopped.
    pub(super) fn keep_scope(&self) {
        let Some(outline) = self.outline else { return };
        let mut outline = outline.borrow_mut();
        let mut scope: Vec<(String, Subject)> =
            self.names.values.iter().map(|(name, value)| (name.clone(), Subject::Value(*value))).collect();
        scope.extend(self.names.iterations.iter().map(|(name, number)| (name.clone(), Subject::Iteration(*number))));
        let is_tensor = |own: &&Mention| own.is_given && matches!(own.of, Subject::Tensor(_) | Subject::Scalar(_));
        let tensors: Vec<_> = outline.mentions.iter().filter(is_tensor).map(|own| (own.name.clone(), own.of)).collect();
        scope.extend(tensors);
        scope.sort_by(|a, b| a.0.cmp(&b.0));
        outline.scope = scope;
    }
}
