//! What a file says about its picture besides the picture.

use crate::theme::Theme;

/// The words about a picture that go into its file, and the form that it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// What it shows, in a few words: read out, and told by the file's properties.
    pub title: String,
    /// What can be seen in it, for those who cannot see it.
    pub description: String,
    /// The texts of what is drawn, as comments in formats that have them: the picture can be made
    /// again from its file.
    pub source: Vec<String>,
    /// Light, dark, or what the reader prefers.
    pub theme: Theme,
}
