//! File formats of pictures.

use std::fmt;
use std::path::Path;

use crate::error::DrawError;
use crate::figure::Figure;
use crate::terminal::{Colours, Window};
use crate::theme::Theme;

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Scalable, for pages and documents.
    Svg,
    /// A web page on which threads can be isolated.
    Html,
    /// Pixels. Needs the feature `png`.
    Png,
    /// A page to print. Needs the feature `pdf`.
    Pdf,
    /// A LaTeX document of a TikZ picture.
    Tikz,
    /// Text, without colours.
    Text,
}

impl Format {
    /// The format for the extension of a file name.
    ///
    /// Errors: no format has this extension.
    ///
    /// ```
    /// use tilewright_draw::Format;
    ///
    /// assert_eq!(Format::of_file("tile.svg".as_ref()), Ok(Format::Svg));
    /// assert_eq!(Format::of_file("tile.jpg".as_ref()).unwrap_err().code(), "E0504");
    /// ```
    pub fn of_file(name: &Path) -> Result<Format, DrawError> {
        let extension = name.extension().map(|text| text.to_string_lossy().to_lowercase()).unwrap_or_default();
        match extension.as_str() {
            "svg" => Ok(Format::Svg),
            "html" | "htm" => Ok(Format::Html),
            "png" => Ok(Format::Png),
            "pdf" => Ok(Format::Pdf),
            "tex" | "tikz" => Ok(Format::Tikz),
            "txt" => Ok(Format::Text),
            _ => Err(DrawError::Format { extension }),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Svg => "SVG",
            Format::Html => "HTML",
            Format::Png => "PNG",
            Format::Pdf => "PDF",
            Format::Tikz => "TikZ",
            Format::Text => "text",
        })
    }
}

impl Figure<'_> {
    /// The figure as the bytes of a file; `scale` is the number of PNG pixels for each CSS pixel.
    ///
    /// Errors: the format is left out of this build; the scale is not a number from 0.05 to 16; a
    /// text has a character that the fonts of PNG and PDF lack.
    ///
    /// ```
    /// use tilewright_draw::{Figure, Format, Theme};
    ///
    /// let refused = Figure::default().file(Format::Png, Theme::Light, 0.0);
    /// assert_eq!(refused.unwrap_err().code(), "E0508");
    /// ```
    pub fn file(&self, format: Format, theme: Theme, scale: f64) -> Result<Vec<u8>, DrawError> {
        if !(0.05..=16.0).contains(&scale) {
            return Err(DrawError::Scale { scale: scale.to_string() });
        }
        Ok(match format {
            Format::Svg => self.svg(theme).into_bytes(),
            Format::Html => self.html(theme).into_bytes(),
            Format::Tikz => self.tikz(theme).into_bytes(),
            Format::Text => {
                let window = Window { columns: 160, rows: 128 };
                self.picture(window, Colours::None).text(0, Colours::None, theme.mode()).into_bytes()
            }
            #[cfg(feature = "png")]
            Format::Png => {
                let scene = self.scene();
                legible(&scene, "PNG")?;
                crate::raster::png(&scene, theme.mode(), scale)
            }
            #[cfg(feature = "pdf")]
            Format::Pdf => {
                let scene = self.scene();
                legible(&scene, "PDF")?;
                crate::pdf::pdf(&scene, &self.document(theme))
            }
            #[allow(unreachable_patterns)]
            other => {
                return Err(DrawError::NotBuilt { format: if other == Format::Pdf { "pdf" } else { "png" } });
            }
        })
    }
}

/// An error if the fonts in the file lack a character of a scene.
#[cfg(any(feature = "png", feature = "pdf"))]
fn legible(scene: &crate::scene::Scene, format: &'static str) -> Result<(), DrawError> {
    match crate::font::Fonts::new().lacking(scene) {
        Some(letter) => Err(DrawError::Letter { letter, format }),
        None => Ok(()),
    }
}
