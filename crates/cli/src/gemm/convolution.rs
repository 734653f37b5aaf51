//! The convolution that the options of `tilewright gemm` describe.
//!
//! Law: the input consists of L images with W columns, H rows and C channels. The implicit GEMM has
//! a row for each pixel of the output and a column for each filter.

use clap::{Args, ValueEnum};
use tilewright::kernel::Element;
use tilewright::planners::gemm::{Matrix, Window};

use crate::output::Failure;

/// The options of a convolution.
#[derive(Debug, Args)]
#[command(next_help_heading = "A convolution on a device")]
pub struct Convolution {
    /// Channels, columns, rows and number of the images, instead of the sizes of a GEMM:
    /// `64,56,56,8`.
    #[arg(long, value_name = "C,W,H,L", allow_hyphen_values = true, value_parser = numbers::<1, 4>, requires = "filters", conflicts_with_all = ["sizes", "m", "n", "k", "layout_a", "batch", "groups", "pairs"])]
    images: Option<Numbers<4>>,
    /// Number of filters, and their columns and rows: `128,3,3`.
    #[arg(long, value_name = "F,S,R", allow_hyphen_values = true, value_parser = numbers::<1, 3>, requires = "images")]
    filters: Option<Numbers<3>>,
    /// Zero padding on each side of an image, in columns and rows.
    #[arg(long, alias = "border", value_name = "W,H", allow_hyphen_values = true, value_parser = numbers::<0, 2>, requires = "images")]
    padding: Option<Numbers<2>>,
    /// Stride of the window, in columns and rows.
    #[arg(long, alias = "step", value_name = "W,H", allow_hyphen_values = true, value_parser = numbers::<1, 2>, requires = "images")]
    stride: Option<Numbers<2>>,
    /// Dilation of the filter, in columns and rows.
    #[arg(long, alias = "spread", value_name = "W,H", allow_hyphen_values = true, value_parser = numbers::<1, 2>, requires = "images")]
    dilation: Option<Numbers<2>>,
    /// Memory format of the images: channels last (NHWC), or channels first (NCHW).
    #[arg(long, value_name = "WHERE", default_value = "last", requires = "images")]
    channels: Channels,
}

/// Numbers, separated by commas.
type Numbers<const COUNT: usize> = [u32; COUNT];

/// The memory format of images.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Channels {
    /// The channels of a pixel are contiguous: `NHWC`.
    Last,
    /// The columns of a channel are contiguous: `NCHW`.
    First,
}

/// Parses COUNT numbers of at least LEAST.
fn numbers<const LEAST: u32, const COUNT: usize>(text: &str) -> Result<Numbers<COUNT>, String> {
    let one = |part: &str| part.trim().parse().ok().filter(|number| *number >= LEAST);
    let read: Option<Vec<u32>> = text.split(',').map(one).collect();
    let read = read.and_then(|read| Numbers::<COUNT>::try_from(read).ok());
    read.ok_or_else(|| format!("{COUNT} numbers from {LEAST} to {} with commas between them", u32::MAX))
}

/// A convolution, and the sizes of its implicit GEMM.
pub struct ConvolutionOptions {
    pub sizes: [i64; 3],
    pub images: Matrix,
    pub window: Window,
}

impl Convolution {
    /// The first convolution option that was given; None if there is none.
    pub fn option(&self) -> Option<&'static str> {
        self.images.map(|_| "--images").or(self.filters.map(|_| "--filters"))
    }

    /// The convolution that the options describe, with elements of a type.
    pub fn asked(&self, element: Element) -> Result<Option<ConvolutionOptions>, Failure> {
        let (images, filters) = match (self.images, self.filters) {
            (Some(images), Some(filters)) => (images, filters),
            (None, None) => return Ok(None),
            // The parser requires neither if the sizes of a GEMM are given.
            _ => return Err(Failure::Usage("--images and --filters make a convolution, each with the other".into())),
        };
        let ([c, w, h, l], [f, s, r]) = (images.map(i64::from), filters.map(i64::from));
        let pair = |given: Option<Numbers<2>>, usual: u32| given.unwrap_or([usual; 2]).map(i64::from);
        let window = Window { stride: pair(self.stride, 1), dilation: pair(self.dilation, 1), ..Window::of([s, r]) };
        let window = window.padded(pair(self.padding, 0));
        let Some([x, y]) = window.results([w, h]) else {
            let text = format!("--filters: {s} x {r} do not fit into padded images of {w} x {h}");
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
        Ok(Some(ConvolutionOptions { sizes: [product([x, y, l]), f, product([c, s, r])], images, window }))
    }
}
