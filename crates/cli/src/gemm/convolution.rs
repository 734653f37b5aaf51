//! The convolution that the options of `tilewright gemm` ask for.
//!
//! Law: images are C channels of W columns and H rows, L of them; the product has a row for each
//! pixel of the result and a column for each filter.

use clap::{Args, ValueEnum};
use tilewright::kernel::Element;
use tilewright::planners::gemm::{Matrix, Window};

use crate::output::Failure;

/// What is asked of a convolution.
#[derive(Debug, Args)]
#[command(next_help_heading = "A convolution on a device")]
pub struct Convolution {
    /// Channels, columns, rows and number of the images, instead of the sizes of a product:
    /// `64,56,56,8`.
    #[arg(long, value_name = "C,W,H,L", allow_hyphen_values = true, value_parser = numbers::<1, 4>, requires = "filters", conflicts_with_all = ["sizes", "m", "n", "k", "layout_a", "batch", "groups", "pairs"])]
    images: Option<Numbers<4>>,
    /// How many filters there are, and their columns and rows: `128,3,3`.
    #[arg(long, value_name = "F,S,R", allow_hyphen_values = true, value_parser = numbers::<1, 3>, requires = "images")]
    filters: Option<Numbers<3>>,
    /// Columns and rows of zeros on each side of an image.
    #[arg(long, value_name = "W,H", allow_hyphen_values = true, value_parser = numbers::<0, 2>, requires = "images")]
    border: Option<Numbers<2>>,
    /// Columns and rows from one pixel of the result to the next.
    #[arg(long, value_name = "W,H", allow_hyphen_values = true, value_parser = numbers::<1, 2>, requires = "images")]
    step: Option<Numbers<2>>,
    /// Columns and rows from one element of a filter to the next.
    #[arg(long, value_name = "W,H", allow_hyphen_values = true, value_parser = numbers::<1, 2>, requires = "images")]
    spread: Option<Numbers<2>>,
    /// What is contiguous in memory: the channels of a pixel, or the columns of a channel.
    #[arg(long, value_name = "WHERE", default_value = "last", requires = "images")]
    channels: Channels,
}

/// Numbers between commas.
type Numbers<const COUNT: usize> = [u32; COUNT];

/// Where the channels of images lie.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Channels {
    /// The channels of a pixel: `NHWC`.
    Last,
    /// The columns of a channel: `NCHW`.
    First,
}

/// As many numbers, each in its range.
fn numbers<const LEAST: u32, const COUNT: usize>(text: &str) -> Result<Numbers<COUNT>, String> {
    let one = |part: &str| part.trim().parse().ok().filter(|number| *number >= LEAST);
    let read: Option<Vec<u32>> = text.split(',').map(one).collect();
    let read = read.and_then(|read| Numbers::<COUNT>::try_from(read).ok());
    read.ok_or_else(|| format!("{COUNT} numbers from {LEAST} to {} with commas between them", u32::MAX))
}

/// A convolution, and the sizes of its product.
pub struct Asked {
    pub sizes: [i64; 3],
    pub images: Matrix,
    pub window: Window,
}

impl Convolution {
    /// The option of a convolution, if one was given.
    pub fn option(&self) -> Option<&'static str> {
        self.images.map(|_| "--images").or(self.filters.map(|_| "--filters"))
    }

    /// What is asked for, of elements of a type.
    pub fn asked(&self, element: Element) -> Result<Option<Asked>, Failure> {
        let (images, filters) = match (self.images, self.filters) {
            (Some(images), Some(filters)) => (images, filters),
            (None, None) => return Ok(None),
            // The parser asks for neither where the sizes of a product are given.
            _ => return Err(Failure::Usage("--images and --filters make a convolution, each with the other".into())),
        };
        let ([c, w, h, l], [f, s, r]) = (images.map(i64::from), filters.map(i64::from));
        let pair = |given: Option<Numbers<2>>, usual: u32| given.unwrap_or([usual; 2]).map(i64::from);
        let window = Window { step: pair(self.step, 1), spread: pair(self.spread, 1), ..Window::of([s, r]) };
        let window = window.bordered(pair(self.border, 0));
        let Some([x, y]) = window.results([w, h]) else {
            let text = format!("--filters: {s} x {r} do not fit into images of {w} x {h} and their borders");
            return Err(Failure::Usage(text));
        };
        let (line, image) = (w.saturating_mul(c), w.saturating_mul(c).saturating_mul(h));
        let text = match self.channels {
            Channels::Last => format!("({c},({w},{h},{l})):(1,({c},{line},{image}))"),
            Channels::First => format!("({c},({w},{h},{l})):({},(1,{w},{image}))", w.saturating_mul(h)),
        };
        let layout = text.parse().map_err(|error| Failure::refused_about("--images", &error))?;
        let images = Matrix::new(element, &layout).map_err(|error| Failure::refused_about("--images", &error))?;
        let product = |all: [i64; 3]| all.into_iter().fold(1, i64::saturating_mul);
        Ok(Some(Asked { sizes: [product([x, y, l]), f, product([c, s, r])], images, window }))
    }
}
