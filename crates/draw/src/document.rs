//! The metadata of a picture file.

use crate::theme::Theme;

/// The texts of a picture that go into its file, and its theme.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// The title, in a few words. Screen readers read it, and it is one of the file's properties.
    pub title: String,
    /// A description of the picture, for people who cannot see it.
    pub description: String,
    /// The texts of the layouts that are drawn, as comments in formats that have comments: the
    /// picture can be made again from its file.
    pub source: Vec<String>,
    /// Light, dark, or the reader's preference.
    pub theme: Theme,
}
