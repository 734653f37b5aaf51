//! The names that programs have bound, and the notes about their values.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tilewright_layout::symbolic::Parameter;

use crate::notes::Note;
use crate::value::Value;

/// The largest number of notes that are kept.
const MAX_NOTES: usize = 32;

/// The names that programs have bound.
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
///
/// let mut env = Environment::new();
/// evaluate("A = (4,8):(8,1)", &mut env).unwrap();
/// assert_eq!(evaluate("A(2,3)", &mut env).unwrap().to_string(), "19");
/// assert_eq!(env.names().collect::<Vec<_>>(), ["A"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Environment {
    pub(super) values: BTreeMap<String, Value>,
    /// The parameters about which programs have given facts in braces, `M{div=8}`, by name.
    pub(super) parameters: BTreeMap<String, Parameter>,
    pub(super) watch: Watch,
    notes: RefCell<Vec<Note>>,
}

/// The treatment of notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Watch {
    /// No notes are made.
    #[default]
    Off,
    Kept,
    Refused,
}

impl Environment {
    /// An environment in which no name is bound.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// The names that are bound, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Binds a name to a value, and replaces an earlier binding.
    pub fn bind(&mut self, name: impl Into<String>, value: Value) {
        self.values.insert(name.into(), value);
    }

    /// Removes every name.
    pub fn clear(&mut self) {
        self.values.clear();
        self.parameters.clear();
    }

    /// From now on keeps notes about values: coordinates outside a domain, tiles that extend past
    /// an end, names that were taken for parameters.
    ///
    /// ```
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let mut env = Environment::new();
    /// env.keep_notes();
    /// assert_eq!(evaluate("(4,8):(8,1)(9,9)", &mut env).unwrap().to_string(), "81");
    /// let notes = env.take_notes();
    /// assert!(notes[0].message.starts_with("the coordinate (9,9) is outside the shape (4,8)"));
    /// ```
    pub fn keep_notes(&mut self) {
        self.watch = Watch::Kept;
    }

    /// From now on refuses operations that would have a note about a coordinate or a tile (E0217).
    ///
    /// ```
    /// use tilewright_notation::{Environment, evaluate};
    ///
    /// let mut env = Environment::new();
    /// env.be_strict();
    /// assert_eq!(evaluate("(4,8):(8,1)(9,9)", &mut env).unwrap_err().code, "E0217");
    /// ```
    pub fn be_strict(&mut self) {
        self.watch = Watch::Refused;
    }

    /// Removes and returns the notes.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.notes.take()
    }

    /// Adds a note, unless it is already there, because an operand may be evaluated twice.
    pub(super) fn note(&self, note: Note) {
        let mut notes = self.notes.borrow_mut();
        if notes.len() < MAX_NOTES && !notes.contains(&note) {
            notes.push(note);
        }
    }
}
