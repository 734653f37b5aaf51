//! Convolutions: implicit GEMM over windows of images with zero padding.
//!
//! Law: `D((x,y,l),f)` is the sum over c, s and r of
//! `I(c, x * stride + s * dilation - padding, ..) * F(f,(c,s,r))`, and the same along y with r,
//! where I is 0 outside of the images. The matrix A of the GEMM has the modes `((X,Y,L),(C,S,R))`
//! of padded images with contiguous channels (im2col); it is not in memory. TMA reads the images in
//! place, at coordinates that may be negative, and fills elements outside with zeros.
//!
//! If TMA cannot do that, images are copied first: to contiguous channels, if another mode is
//! contiguous; then, if windows have a stride, to padded images.

use std::fmt;

use crate::error::PlanError;
use crate::gemm::problem::matrix::{Matrix, padded};

/// The window of a convolution: filter, stride, dilation and padding, columns first, then rows.
///
/// ```
/// use tilewright_planners::gemm::Window;
///
/// // 3 x 3 with a padding of 1 and a stride of 2.
/// let window = Window { stride: [2, 2], ..Window::of([3, 3]).padded([1, 1]) };
/// assert_eq!(window.results([224, 224]), Some([112, 112]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Columns and rows of a filter.
    pub filter: [i64; 2],
    /// Pixels from one output to the next.
    pub stride: [i64; 2],
    /// Pixels from one element of a filter to the next.
    pub dilation: [i64; 2],
    /// Columns and rows of zeros before an image.
    pub padding_before: [i64; 2],
    /// Columns and rows of zeros after an image.
    pub padding_after: [i64; 2],
}

impl Window {
    /// A filter of these columns and rows, with stride 1, dilation 1 and no padding.
    pub fn of(filter: [i64; 2]) -> Window {
        Window { filter, stride: [1; 2], dilation: [1; 2], padding_before: [0; 2], padding_after: [0; 2] }
    }

    /// The same with padding on all sides, in columns and rows.
    #[must_use]
    pub fn padded(self, padding: [i64; 2]) -> Window {
        Window { padding_before: padding, padding_after: padding, ..self }
    }

    /// Columns and rows of a padded image.
    fn whole(&self, [columns, rows]: [i64; 2]) -> [i64; 2] {
        let side =
            |at: usize, own: i64| own.saturating_add(self.padding_before[at]).saturating_add(self.padding_after[at]);
        [side(0, columns), side(1, rows)]
    }

    /// Columns and rows of the output for an image; None if the filter is larger than the padded
    /// image, or if a number is out of range.
    pub fn results(&self, image: [i64; 2]) -> Option<[i64; 2]> {
        let whole = self.whole(image);
        let along = |at: usize| {
            let (filter, stride, dilation) = (self.filter[at], self.stride[at], self.dilation[at]);
            let padding = self.padding_before[at].min(self.padding_after[at]);
            // Coordinates of a tensor map have 32 bits.
            let few = [filter, stride, dilation, whole[at]].into_iter().all(|number| number <= i32::MAX.into());
            let positive = filter >= 1 && stride >= 1 && dilation >= 1 && padding >= 0;
            let wide = if few && positive { (filter - 1) * dilation + 1 } else { return None };
            (wide <= whole[at]).then(|| (whole[at] - wide) / stride + 1)
        };
        Some([along(0)?, along(1)?])
    }
}

/// The images of a convolution, with the window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Images {
    /// The layout `(C,(W,H,L))`.
    matrix: Matrix,
    /// Channels, columns, rows, images, and their strides.
    extents: [i64; 4],
    strides: [i64; 4],
    window: Window,
}

/// Extents and strides of a layout `(C,(W,H,L))`.
fn modes(matrix: &Matrix) -> Option<[(i64, i64); 4]> {
    let layout = matrix.layout();
    let channels = layout.mode(0)?.coalesce().ok()?;
    let [channel] = channels.leaves() else { return None };
    let pixels = layout.mode(1).filter(|pixels| pixels.rank() == 3)?;
    let [columns, rows, images] = pixels.leaves() else { return None };
    (layout.rank() == 2).then(|| [channel, columns, rows, images].map(|leaf| (leaf.extent, leaf.stride)))
}

impl Images {
    pub(crate) fn of(matrix: Matrix, window: Window) -> Result<Images, PlanError> {
        let found = modes(&matrix).ok_or_else(|| PlanError::Rank { layout: matrix.layout().to_string() })?;
        Ok(Images {
            extents: found.map(|(extent, _)| extent),
            strides: found.map(|(_, stride)| stride),
            matrix,
            window,
        })
    }

    /// The images themselves, as `(C,(W,H,L))`.
    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The windows.
    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// Channels, columns, rows and images.
    pub(crate) fn extents(&self) -> [i64; 4] {
        self.extents
    }

    /// The strides of channels, columns, rows and images.
    pub(crate) fn strides(&self) -> [i64; 4] {
        self.strides
    }

    /// Columns and rows, with padding.
    pub(crate) fn whole(&self) -> [i64; 2] {
        self.window.whole([self.extents[1], self.extents[2]])
    }

    /// The strides that padded images would have, with pixels at multiples of 16 bytes.
    pub(crate) fn virtual_strides(&self) -> [i64; 4] {
        let ([columns, rows], pixel) = (self.whole(), padded(self.extents[0], self.matrix.element()));
        [1, pixel, pixel.saturating_mul(columns), pixel.saturating_mul(columns).saturating_mul(rows)]
    }

    /// A, as windows of images with these strides.
    pub(crate) fn windows(&self, strides: [i64; 4]) -> Result<Matrix, PlanError> {
        let ([channels, columns, rows, images], window) = (self.extents, self.window);
        let Some([x, y]) = window.results([columns, rows]) else {
            return Err(PlanError::Window { window: window.to_string(), image: [columns, rows] });
        };
        let ([s, r], [_, column, row, image]) = (window.filter, strides);
        let along = |stride: i64, by: i64| stride.saturating_mul(by);
        let text = format!(
            "(({x},{y},{images}),({channels},{s},{r})):(({},{},{image}),({},{},{}))",
            along(column, window.stride[0]),
            along(row, window.stride[1]),
            strides[0],
            along(column, window.dilation[0]),
            along(row, window.dilation[1])
        );
        Matrix::new(self.matrix.element(), &text.parse()?)
    }

    /// The offset of an element of A in the images; None if it is padding.
    pub(crate) fn place(&self, at: i64) -> Option<i64> {
        let ([columns, rows], [_, pixel, line, image]) = (self.whole(), self.virtual_strides());
        let at = [at % pixel, at / pixel % columns, at / line % rows, at / image];
        let [x, y] = [at[1] - self.window.padding_before[0], at[2] - self.window.padding_before[1]];
        let inside = (0..self.extents[1]).contains(&x) && (0..self.extents[2]).contains(&y);
        let [channel, column, row, step] = self.strides;
        inside.then(|| self.matrix.offset() + at[0] * channel + x * column + y * row + at[3] * step)
    }

    /// The mode of the images along which an axis of A advances, and the pixels of one step; None
    /// if the axis goes along several modes.
    pub(crate) fn along(&self, extent: i64, stride: i64) -> Option<(usize, i64)> {
        let [columns, rows] = self.whole();
        let (extents, strides) = ([self.extents[0], columns, rows, self.extents[3]], self.virtual_strides());
        let mode = (0..4).rev().find(|mode| stride % strides[*mode] == 0 && (extents[*mode] > 1 || *mode == 0))?;
        let by = stride / strides[mode];
        (by >= 1 && (extent - 1).checked_mul(by)? < extents[mode]).then_some((mode, by))
    }

    /// Extent, stride and leading padding of a mode of the images.
    pub(crate) fn mode(&self, mode: usize) -> (i64, i64, i64) {
        let before = if let 1 | 2 = mode { self.window.padding_before[mode - 1] } else { 0 };
        (self.extents[mode], self.strides[mode], before)
    }

    /// The same images with contiguous channels, in a workspace.
    pub(crate) fn channels_last(&self) -> Result<Images, PlanError> {
        let [channels, columns, rows, images] = self.extents;
        let element = self.matrix.element();
        let pixel = padded(channels, element);
        let (line, image) = (pixel.saturating_mul(columns), pixel.saturating_mul(columns).saturating_mul(rows));
        let layout = format!("({channels},({columns},{rows},{images})):(1,({pixel},{line},{image}))");
        Images::of(Matrix::new(element, &layout.parse()?)?, self.window)
    }

    /// Whether the kernel that adds padding can read them.
    pub(crate) fn has_contiguous_channels(&self) -> bool {
        self.extents[0] == 1 || self.strides[0] == 1
    }

    /// Elements of the padded images.
    pub(crate) fn elements(&self) -> i64 {
        self.virtual_strides()[3].saturating_mul(self.extents[3])
    }
}

impl Window {
    /// Whether images have padding.
    pub(crate) fn has_padding(&self) -> bool {
        self.padding_before != [0; 2] || self.padding_after != [0; 2]
    }

    /// Writes what differs from [`Window::of`].
    fn write_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_padding() {
            let ([left, top], [right, bottom]) = (self.padding_before, self.padding_after);
            write!(f, ", padding of {left} and {right} columns, {top} and {bottom} rows")?;
        }
        let mut other = |what: &str, [columns, rows]: [i64; 2]| match [columns, rows] {
            [1, 1] => Ok(()),
            _ => write!(f, ", {what} of {columns} columns and {rows} rows"),
        };
        other("stride", self.stride)?;
        other("dilation", self.dilation)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [s, r] = self.filter;
        write!(f, "{s} x {r}")?;
        self.write_rest(f)
    }
}

impl fmt::Display for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([s, r], [channels, columns, rows, images]) = (self.window.filter, self.extents);
        write!(f, "windows of {s} x {r} of {images} images of {columns} x {rows} with {channels} channels")?;
        self.window.write_rest(f)
    }
}
