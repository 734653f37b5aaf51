//! The errors of this crate.

use std::fmt;

use tilewright_layout::LayoutError;

/// Why a picture does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrawError {
    /// The layout algebra refuses the operation.
    Layout(Box<LayoutError>),
    /// A thread-value layout with offsets outside its tile.
    Outside {
        /// The thread.
        thread: i64,
        /// The value.
        value: i64,
        /// The offset of this thread and value.
        offset: i64,
        /// The number of elements of the tile.
        size: i64,
    },
    /// A layout with another number of modes than the picture needs.
    Rank {
        /// Which layout it is.
        what: &'static str,
        /// Its number of modes.
        rank: usize,
        /// The number of modes that the picture needs, in words.
        wanted: &'static str,
    },
    /// A quantity above the limit of a picture.
    TooLarge {
        /// The quantity that is too large.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The limit.
        limit: i64,
    },
    /// A file name whose extension names no format.
    Format {
        /// The extension.
        extension: String,
    },
    /// A format that is not part of this build.
    NotBuilt {
        /// The format.
        format: &'static str,
    },
    /// An index past the end.
    PastEnd {
        /// The index.
        index: i64,
        /// The number of indices.
        extent: i64,
    },
    /// A scale that is not a positive number.
    Scale {
        /// The scale, as text.
        scale: String,
    },
    /// A character that the fonts of the format lack, or that is written from right to left.
    Letter {
        /// The character.
        letter: char,
        /// The format.
        format: &'static str,
    },
    /// A number of addresses in a row of memory that is not supported.
    Row {
        /// The number.
        width: i64,
        /// The largest number.
        most: i64,
    },
    /// Two sizes that must be equal.
    Size {
        /// The object with the first size.
        what: &'static str,
        /// The first size.
        size: i64,
        /// The object with the second size.
        other: &'static str,
        /// The second size.
        wanted: i64,
    },
}

impl DrawError {
    /// A hint on how to fix it, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            DrawError::Layout(error) => return error.help(),
            DrawError::Outside { .. } => "give a larger tile, or the tile that the layout was made for".to_owned(),
            DrawError::Rank { what, wanted, .. } => format!("give {what} with {wanted}"),
            DrawError::TooLarge { .. } => "draw a part: a tile or a slice".to_owned(),
            DrawError::Format { .. } => "end the name with .svg, .html, .png, .pdf, .tex or .txt".to_owned(),
            DrawError::NotBuilt { format } => format!("build with the feature `{format}`, or write .svg"),
            DrawError::Size { .. } => "give sizes that agree".to_owned(),
            DrawError::Row { most, .. } => format!("give a width from 1 to {most}"),
            DrawError::PastEnd { extent, .. } => format!("give an index from 0 to {}", extent.saturating_sub(1)),
            DrawError::Scale { .. } => "give the pixels of a PNG to a CSS pixel, from 0.05 to 16".to_owned(),
            DrawError::Letter { .. } => {
                "write .svg or .html, which are shown in the fonts of the reader; or another text".to_owned()
            }
        })
    }
}

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawError::Layout(error) => error.fmt(f),
            DrawError::Outside { thread, value, offset, size } => {
                write!(f, "thread {thread}, value {value} is at {offset}, outside the tile of {size} places")
            }
            DrawError::Rank { what, rank, wanted } => {
                let modes = if *rank == 1 { "mode" } else { "modes" };
                write!(f, "{what} has {rank} {modes}, and {wanted} are drawn")
            }
            DrawError::TooLarge { what, value, limit } => write!(f, "{what} is {value}, and at most {limit} is drawn"),
            DrawError::Format { extension } if extension.is_empty() => {
                f.write_str("the name of the file has no extension")
            }
            DrawError::Format { extension } => write!(f, "`.{extension}` is no format of pictures"),
            DrawError::NotBuilt { format } => write!(f, "this build cannot write {format}"),
            DrawError::Size { what, size, other, wanted } => {
                write!(f, "{what} is {size}, but {other} is {wanted}")
            }
            DrawError::Row { width, most } => {
                write!(f, "memory is drawn in rows of 1 to {most} addresses, and the width asked for is {width}")
            }
            DrawError::PastEnd { index, extent } => {
                write!(f, "a slice is at index {index} of a mode of {extent}, and only what is in the layout is drawn")
            }
            DrawError::Scale { scale } => write!(f, "a picture cannot be drawn at a scale of {scale}"),
            DrawError::Letter { letter, format } => {
                write!(f, "a {format} file cannot show `{}`, U+{:04X}", letter.escape_debug(), u32::from(*letter))
            }
        }
    }
}

tilewright_layout::refusal! {
    DrawError from Layout:
    Outside "E0501", Rank "E0502", TooLarge "E0503", Format "E0504", NotBuilt "E0505",
    Size "E0506", Row "E0506", PastEnd "E0507", Scale "E0508", Letter "E0509",
}
