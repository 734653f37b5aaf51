//! The options that `banks`, `access`, `suggest` and `footprint` share.

use std::path::{Path, PathBuf};

use clap::Args;
use tilewright::analysis::{AnalysisError, Banks};
use tilewright::draw::{Figure, Format, Medium, Style};

use super::Stop;
use crate::draw::ThemeName;

/// Who takes which elements.
#[derive(Debug, Args)]
pub struct Lanes {
    /// The bits of an element.
    #[arg(long, value_name = "BITS", default_value = "32", value_parser = clap::value_parser!(i64).range(1..=128))]
    pub width: i64,
    /// The elements of one load or store.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(i64).range(1..=256))]
    pub vector: i64,
    /// Who takes which elements: see below. May be given again.
    #[arg(long, value_name = "ACCESS")]
    pub access: Vec<String>,
}

/// What shared memory is like.
#[derive(Debug, Args)]
pub struct Memory {
    /// How many banks there are.
    #[arg(long, value_name = "N", default_value = "32")]
    banks: i64,
    /// The bytes of a word of a bank.
    #[arg(long, value_name = "BYTES", default_value = "4")]
    bank_bytes: i64,
}

impl Memory {
    pub fn banks(&self) -> Result<Banks, AnalysisError> {
        Banks::new(self.banks, self.bank_bytes)
    }
}

/// Where the answer goes, and as what.
#[derive(Debug, Args)]
pub struct Answer {
    /// Print JSON, an object to a line.
    #[arg(long)]
    pub json: bool,
    /// Write a picture to a file: .svg, .html, .png, .pdf, .tex or .txt.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Light, dark, or what the reader prefers, where the format can ask.
    #[arg(long, value_enum, default_value = "auto")]
    theme: ThemeName,
}

impl Answer {
    /// The file that is wanted, and how what it shows is drawn.
    pub fn picture(&self) -> Result<Option<(&Path, Style)>, Stop> {
        let Some(file) = self.output.as_deref() else { return Ok(None) };
        // A name that cannot be written is told before anything is computed.
        let medium = if Format::of_file(file)? == Format::Text { Medium::Terminal } else { Medium::Page };
        Ok(Some((file, Style { medium, ..Style::default() })))
    }

    /// Writes figures one below another to a file.
    pub fn save<'a>(&self, figures: impl IntoIterator<Item = Figure<'a>>, file: &Path) -> Result<(), Stop> {
        let all = figures.into_iter().reduce(Figure::above).unwrap_or_default();
        let bytes = all.file(Format::of_file(file)?, self.theme.into(), 2.0)?;
        Ok(std::fs::write(file, bytes)?)
    }
}
