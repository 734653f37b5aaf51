//! The metadata of a picture file.

use crate::theme::Theme;

/// The words about a picture that go into its file, and the form that it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// The title, in a few words: read out, and part of the file's properties.
    pub title: String,
    /// A description of the picture, for people who cannot see it.
    pub description: String,
    /// The texts of what is drawn, as comments in formats that have them: the picture can be made
    /// again from its file.
    pub source: Vec<String>,
    /// Light, dark, or what the reader prefers.
    pub theme: Theme,
}
