//! Convolutions: products whose rows are windows of images with borders of zeros.
//!
//! Law: `D((x,y,l),f)` is the sum over c, s and r of
//! `I(c, x * step + s * spread - before, ..) * F(f,(c,s,r))`, and the same along y with r, where I
//! is 0 outside of the images. The matrix A of the product has the modes `((X,Y,L),(C,S,R))` of
//! images that have these borders, with channels contiguous: it is written nowhere. The copy
//! engine reads the images where they lie, from corners that may be negative, and fills a box with
//! zeros where it lies outside.
//!
//! Where it cannot, images are moved before: to contiguous channels, where other modes are
//! contiguous; then, where windows go in steps, to images that have their borders in memory.

use std::fmt;

use crate::error::PlanError;
use crate::gemm::problem::matrix::{Matrix, padded};

/// Which pixels of an image a filter is multiplied with: columns first, then rows.
///
/// ```
/// use tilewright_planners::gemm::Window;
///
/// // 3 x 3 with a border of one zero, and every other result of it.
/// let window = Window { step: [2, 2], ..Window::of([3, 3]).bordered([1, 1]) };
/// assert_eq!(window.results([224, 224]), Some([112, 112]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Columns and rows of a filter.
    pub filter: [i64; 2],
    /// Pixels from one result to the next ("stride").
    pub step: [i64; 2],
    /// Pixels from one element of a filter to the next ("dilation").
    pub spread: [i64; 2],
    /// Columns and rows of zeros before an image ("padding").
    pub before: [i64; 2],
    /// The same behind it.
    pub after: [i64; 2],
}

impl Window {
    /// A filter of so many columns and rows, which meets every pixel and has no border.
    pub fn of(filter: [i64; 2]) -> Window {
        Window { filter, step: [1; 2], spread: [1; 2], before: [0; 2], after: [0; 2] }
    }

    /// The same with so many columns and rows of zeros on either side.
    #[must_use]
    pub fn bordered(self, border: [i64; 2]) -> Window {
        Window { before: border, after: border, ..self }
    }

    /// Columns and rows of an image with its borders.
    fn whole(&self, [columns, rows]: [i64; 2]) -> [i64; 2] {
        let side = |at: usize, own: i64| own.saturating_add(self.before[at]).saturating_add(self.after[at]);
        [side(0, columns), side(1, rows)]
    }

    /// Columns and rows of the result of an image of so many; none where the filter does not fit
    /// into it, or a number is out of its range.
    pub fn results(&self, image: [i64; 2]) -> Option<[i64; 2]> {
        let whole = self.whole(image);
        let along = |at: usize| {
            let (filter, step, spread) = (self.filter[at], self.step[at], self.spread[at]);
            let border = self.before[at].min(self.after[at]);
            // Coordinates have 32 bits.
            let few = [filter, step, spread, whole[at]].into_iter().all(|number| number <= i32::MAX.into());
            let positive = filter >= 1 && step >= 1 && spread >= 1 && border >= 0;
            let wide = if few && positive { (filter - 1) * spread + 1 } else { return None };
            (wide <= whole[at]).then(|| (whole[at] - wide) / step + 1)
        };
        Some([along(0)?, along(1)?])
    }
}

/// The images of a convolution, and how windows lie in them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Images {
    /// `(C,(W,H,L))`.
    matrix: Matrix,
    /// Channels, columns, rows, images, and the steps along them.
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

    /// Channels, columns, rows and images, and the steps along them.
    pub(crate) fn extents(&self) -> [i64; 4] {
        self.extents
    }

    /// The steps along channels, columns, rows and images.
    pub(crate) fn strides(&self) -> [i64; 4] {
        self.strides
    }

    /// Columns and rows with borders.
    pub(crate) fn whole(&self) -> [i64; 2] {
        self.window.whole([self.extents[1], self.extents[2]])
    }

    /// The steps along channels, columns, rows and images of images that have their borders, with
    /// pixels at multiples of 16 bytes.
    pub(crate) fn virtual_strides(&self) -> [i64; 4] {
        let ([columns, rows], pixel) = (self.whole(), padded(self.extents[0], self.matrix.element()));
        [1, pixel, pixel.saturating_mul(columns), pixel.saturating_mul(columns).saturating_mul(rows)]
    }

    /// A, of images with these steps.
    pub(crate) fn windows(&self, strides: [i64; 4]) -> Result<Matrix, PlanError> {
        let ([channels, columns, rows, images], window) = (self.extents, self.window);
        let Some([x, y]) = window.results([columns, rows]) else {
            return Err(PlanError::Window { window: window.to_string(), image: [columns, rows] });
        };
        let ([s, r], [_, column, row, image]) = (window.filter, strides);
        let along = |stride: i64, by: i64| stride.saturating_mul(by);
        let text = format!(
            "(({x},{y},{images}),({channels},{s},{r})):(({},{},{image}),({},{},{}))",
            along(column, window.step[0]),
            along(row, window.step[1]),
            strides[0],
            along(column, window.spread[0]),
            along(row, window.spread[1])
        );
        Matrix::new(self.matrix.element(), &text.parse()?)
    }

    /// Where an element of A is among the images; none where it is a zero of a border.
    pub(crate) fn place(&self, at: i64) -> Option<i64> {
        let ([columns, rows], [_, pixel, line, image]) = (self.whole(), self.virtual_strides());
        let at = [at % pixel, at / pixel % columns, at / line % rows, at / image];
        let [x, y] = [at[1] - self.window.before[0], at[2] - self.window.before[1]];
        let inside = (0..self.extents[1]).contains(&x) && (0..self.extents[2]).contains(&y);
        let [channel, column, row, step] = self.strides;
        inside.then(|| self.matrix.offset() + at[0] * channel + x * column + y * row + at[3] * step)
    }

    /// The mode of the images along which windows take such steps of A, so many of them, and how
    /// many pixels a step is; none where it goes along several.
    pub(crate) fn along(&self, extent: i64, stride: i64) -> Option<(usize, i64)> {
        let [columns, rows] = self.whole();
        let (extents, strides) = ([self.extents[0], columns, rows, self.extents[3]], self.virtual_strides());
        let mode = (0..4).rev().find(|mode| stride % strides[*mode] == 0 && (extents[*mode] > 1 || *mode == 0))?;
        let by = stride / strides[mode];
        (by >= 1 && (extent - 1).checked_mul(by)? < extents[mode]).then_some((mode, by))
    }

    /// Extent and stride of the images along a mode, and how many zeros are before them.
    pub(crate) fn mode(&self, mode: usize) -> (i64, i64, i64) {
        let before = if let 1 | 2 = mode { self.window.before[mode - 1] } else { 0 };
        (self.extents[mode], self.strides[mode], before)
    }

    /// The same with contiguous channels, in memory of their own.
    pub(crate) fn channels_last(&self) -> Result<Images, PlanError> {
        let [channels, columns, rows, images] = self.extents;
        let element = self.matrix.element();
        let pixel = padded(channels, element);
        let (line, image) = (pixel.saturating_mul(columns), pixel.saturating_mul(columns).saturating_mul(rows));
        let layout = format!("({channels},({columns},{rows},{images})):(1,({pixel},{line},{image}))");
        Images::of(Matrix::new(element, &layout.parse()?)?, self.window)
    }

    /// Whether the kernel that writes borders reads them.
    pub(crate) fn has_contiguous_channels(&self) -> bool {
        self.extents[0] == 1 || self.strides[0] == 1
    }

    /// Elements of images that have their borders.
    pub(crate) fn elements(&self) -> i64 {
        self.virtual_strides()[3].saturating_mul(self.extents[3])
    }
}

impl Window {
    /// Whether there are zeros around images.
    pub(crate) fn has_borders(&self) -> bool {
        self.before != [0; 2] || self.after != [0; 2]
    }

    /// Writes what is not as [`Window::of`] has it.
    fn write_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_borders() {
            let ([left, top], [right, bottom]) = (self.before, self.after);
            write!(f, ", borders of {left} and {right} columns, {top} and {bottom} rows")?;
        }
        let mut other = |what: &str, [columns, rows]: [i64; 2]| match [columns, rows] {
            [1, 1] => Ok(()),
            _ => write!(f, ", {what} of {columns} columns and {rows} rows"),
        };
        other("steps", self.step)?;
        other("spread", self.spread)
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
