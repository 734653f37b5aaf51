//! Implicit GEMM: operands with folded modes, which TMA or the threads of a block read in place.
//!
//! Law: the rows of an implicit GEMM are counted along several axes, the first axis fastest; so is
//! K. A tile has a box of rows, with an extent along each axis, and a range of the first axis of K.
//! Elements of a box past the end of an axis are read as 0, or multiplied without use, and not
//! stored. A convolution is such a GEMM, without im2col in memory: rows are counted along the
//! columns and rows of an image and along images, and K along channels and the columns and rows of
//! the filter.
//!
//! Two axes along which A has equal strides, one of its rows and one of K, are one dimension of the
//! tensor map: their coordinates add up. A tensor map has five dimensions. Threads copy the same
//! boxes by cp.async, which writes zeros where a coordinate is outside.
//!
//! Windows of padded images that advance by a stride have two dimensions for a mode of the images:
//! the pixels at each stride, and the phase, which is the place of a pixel between two of those. So
//! they have more dimensions than a tensor map, and threads alone copy their boxes. The stride
//! divides the extent of the mode; otherwise phases have different extents, and the images are
//! copied with their padding first.

use tilewright_kernel::{Build, KernelError, LayoutArgument, View};
use tilewright_layout::atoms::{MAX_BOX, MAX_DIMENSIONS};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree};

use crate::gemm::index::{overflow, plus, times};
use crate::gemm::problem::Problem;
use crate::gemm::problem::convolution::Images;
use crate::gemm::problem::matrix::Matrix;
use crate::units::VECTOR;
use crate::units::count;

/// The largest ratio of padded to real rows, or k-tiles; above it, A is copied first.
const MAX_WASTE: i64 = 2;

/// The axes of rows and of K, and the strides of A and B along them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    /// The extents of the axes of rows.
    rows: Vec<i64>,
    /// The extents of the axes of K, the contiguous one first.
    steps: Vec<i64>,
    /// Extents and strides of the dimensions of A: the axes of rows, the first axis of K, and those
    /// further axes of K that do not share a dimension with an axis of rows.
    a: Vec<(i64, i64)>,
    /// The dimension of A for each further axis of K.
    along: Vec<ImplicitAxis>,
    /// The first coordinate of A along each dimension: negative if images have padding.
    origin: Vec<i64>,
    /// The dimensions along which windows advance by a stride.
    phases: Vec<Phase>,
    /// The strides of B: from column to column, then along the axes of K.
    b: Vec<i64>,
}

/// How A advances along an axis of K.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImplicitAxis {
    dimension: usize,
    /// How far it shifts the coordinate of an existing dimension; None if it is a dimension of its
    /// own.
    shift: Option<i64>,
}

/// A dimension of the pixels at each stride of the windows, and that of the pixels between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phase {
    /// The dimension of the pixels at each stride, and that of the phase.
    dimensions: [usize; 2],
    /// Pixels of a stride.
    stride: i64,
    /// The phase of the first pixel of the padding.
    first: i64,
}

/// Extents and strides of a mode, as it was given.
fn given(layout: &Layout, mode: usize) -> Option<Vec<(i64, i64)>> {
    let mode = layout.mode(mode)?;
    Some(mode.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).filter(|(extent, _)| *extent > 1).collect())
}

/// Extents and strides of a mode, coalesced.
fn leaves(layout: &Layout, mode: usize) -> Option<Vec<(i64, i64)>> {
    let joined = layout.mode(mode)?.coalesce().ok()?;
    Some(joined.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect())
}

/// The common refinement of several shapes of a mode; None if their extents do not divide each
/// other.
fn parted<'a>(all: impl Iterator<Item = &'a Vec<(i64, i64)>>) -> Option<Vec<i64>> {
    let mut ends: Vec<i64> = Vec::new();
    for leaves in all {
        let mut end = 1;
        for (extent, _) in leaves {
            end *= extent;
            ends.push(end);
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let (mut extents, mut before) = (Vec::new(), 1);
    for end in ends.into_iter().filter(|end| *end > 1) {
        if end % before != 0 {
            return None;
        }
        extents.push(end / before);
        before = end;
    }
    if extents.is_empty() {
        extents.push(1);
    }
    Some(extents)
}

/// The strides of a mode at the parts of a refinement.
fn strides(leaves: &[(i64, i64)], parts: &[i64]) -> Option<Vec<i64>> {
    let mut leaves = leaves.iter().copied();
    let (mut left, mut stride) = leaves.next()?;
    let mut found = Vec::new();
    for part in parts {
        if left == 1 {
            (left, stride) = leaves.next().unwrap_or((*part, 0));
        }
        found.push(stride);
        (left, stride) = (left / part, stride * part);
    }
    Some(found)
}

/// Extents and strides of the dimensions of A, how A advances along the axes of K, its first
/// coordinates, and the dimensions of strides.
type Dimensions = (Vec<(i64, i64)>, Vec<ImplicitAxis>, Vec<i64>, Vec<Phase>);

/// The dimensions for axes of rows and of K. An axis of K along which A has the stride of an axis
/// of rows shares its dimension.
fn joined(rows: Vec<(i64, i64)>, steps: &[(i64, i64)]) -> Dimensions {
    let (own, mut dimensions, mut along) = (rows.len(), rows, Vec::new());
    dimensions.push((steps[0].0, 1));
    for (extent, stride) in steps.iter().skip(1) {
        let same = dimensions[..own].iter().position(|(_, row)| row == stride);
        along.push(ImplicitAxis { dimension: same.unwrap_or(dimensions.len()), shift: same.map(|_| 1) });
        match same {
            Some(at) => dimensions[at].0 += extent - 1,
            None => dimensions.push((*extent, *stride)),
        }
    }
    let origin = vec![0; dimensions.len()];
    (dimensions, along, origin, Vec::new())
}

/// The dimensions for convolution windows: the modes of the images, from their padding on, and the
/// phases of modes along which windows advance by a stride. None if such a stride does not divide
/// the extent, or if an axis goes along several modes.
fn windows(images: &Images, rows: &[(i64, i64)], steps: &[(i64, i64)]) -> Option<Dimensions> {
    let (mut modes, mut by_strides) = (Vec::new(), Vec::new());
    for (extent, stride) in rows {
        let (mode, by) = images.along(*extent, *stride)?;
        if mode == 0 || images.mode(mode).0 % by != 0 {
            return None;
        }
        modes.push(mode);
        by_strides.push(by);
    }
    // The first axis of K is the channels.
    if images.along(steps[0].0, 1)?.0 != 0 || images.mode(0).0 != steps[0].0 {
        return None;
    }
    modes.push(0);
    let mut along = Vec::new();
    for (extent, stride) in steps.iter().skip(1) {
        let (mode, by) = images.along(*extent, *stride)?;
        let dimension = modes.iter().position(|known| *known == mode).unwrap_or(modes.len());
        if dimension == modes.len() {
            modes.push(mode);
        }
        along.push(ImplicitAxis { dimension, shift: Some(by) });
    }
    // Two axes along one mode would be one axis. A mode without an axis has no padding, and neither
    // has an image of one column or row: a tensor map has no dimension of extent 1.
    let twice = (0..modes.len()).any(|at| modes[at + 1..].contains(&modes[at]));
    by_strides.resize(modes.len(), 1);
    let left = (1..3).any(|mode| match (modes.iter().position(|own| *own == mode), images.mode(mode)) {
        (Some(at), (extent, ..)) => extent == by_strides[at],
        (None, (.., before)) => before > 0,
    });
    if twice || left {
        return None;
    }
    let (mut dimensions, mut origin, mut phases) = (Vec::new(), Vec::new(), Vec::new());
    // The whole strides that cover the padding.
    let ahead = |before: i64, by: i64| (before + by - 1) / by;
    for (mode, by) in modes.iter().zip(&by_strides) {
        let (extent, stride, before) = images.mode(*mode);
        dimensions.push((extent / by, stride * by));
        origin.push(-ahead(before, *by));
    }
    for (at, by) in by_strides.into_iter().enumerate().filter(|(_, by)| *by > 1) {
        let (_, stride, before) = images.mode(modes[at]);
        phases.push(Phase { dimensions: [at, dimensions.len()], stride: by, first: ahead(before, by) * by - before });
        dimensions.push((by, stride));
        origin.push(0);
    }
    Some((dimensions, along, origin, phases))
}

/// The axes of a problem with folded modes; None if it has none, or if a tensor map cannot express
/// them.
pub(crate) fn of(problem: &Problem) -> Option<Fold> {
    let (a, b, d) = (problem.a(), problem.b(), problem.d());
    let is_plain = problem.pairs().is_none()
        && problem.row_groups().is_none()
        && problem.scales().is_none()
        && problem.int4_scales().is_none()
        && problem.reductions().next().is_none();
    let is_folded = a.strides().is_none() || b.strides().is_none();
    if !is_folded || !is_plain || problem.batch() != 1 || a.offset() != 0 || b.offset() != 0 {
        return None;
    }
    if d.strides().is_none_or(|strides| strides[1] != 1) {
        return None;
    }
    // The axes of windows are those of images, even if two of them could be merged.
    let axes = |matrix: &Matrix, mode: usize| match problem.images() {
        None => leaves(matrix.layout(), mode),
        Some(_) => given(matrix.layout(), mode),
    };
    let [rows, steps_a, columns, steps_b] = [axes(a, 0)?, axes(a, 1)?, leaves(b.layout(), 0)?, leaves(b.layout(), 1)?];
    let [(_, column)] = columns[..] else { return None };
    let axes = parted([&rows].into_iter())?;
    let steps = parted([&steps_a, &steps_b].into_iter())?;
    let (down, along_a, along_b) = (strides(&rows, &axes)?, strides(&steps_a, &steps)?, strides(&steps_b, &steps)?);
    if along_a.first() != Some(&1) || along_b.first() != Some(&1) {
        return None;
    }
    let rows: Vec<(i64, i64)> = axes.iter().copied().zip(down).collect();
    let columns: Vec<(i64, i64)> = steps.iter().copied().zip(along_a).collect();
    let (dimensions, along, origin, phases) = match problem.images() {
        None => joined(rows, &columns),
        Some(images) => windows(images, &rows, &columns)?,
    };
    let bytes = i64::from(problem.operand_type().bytes());
    let whole = |stride: &i64| *stride > 0 && stride * bytes % VECTOR == 0;
    let of_b: Vec<i64> = std::iter::once(column).chain(along_b).collect();
    let first = axes.len();
    let fits = (dimensions.len() <= MAX_DIMENSIONS || !phases.is_empty())
        && of_b.len() <= MAX_DIMENSIONS
        && dimensions.iter().enumerate().all(|(at, (extent, own))| at == first || *extent == 1 || whole(own))
        && of_b.iter().enumerate().all(|(at, own)| at == 1 || whole(own));
    let fold = Fold { rows: axes, steps, a: dimensions, along, origin, phases, b: of_b };
    // Few boxes, or few k-tiles, would be full.
    let ([m, _, k], depth) = (problem.sizes(), problem.k_tile());
    let few = fold.padded(64) > MAX_WASTE * count(m, 64) * 64 || fold.steps(depth) > MAX_WASTE * count(k, depth);
    (fits && !few).then_some(fold)
}

impl Fold {
    /// Whether a tensor map has all dimensions of A.
    pub(crate) fn is_mapped(&self) -> bool {
        self.a.len() <= MAX_DIMENSIONS
    }

    /// The rows of a tile along each axis: the box with which the fewest tiles cover all rows.
    pub(crate) fn boxes(&self, rows: i64) -> Vec<i64> {
        let mut best: (i64, Vec<i64>) = (i64::MAX, vec![1; self.rows.len()]);
        let mut open = vec![(Vec::new(), rows)];
        while let Some((taken, left)) = open.pop() {
            let at = taken.len();
            if at == self.rows.len() {
                let tiles = taken.iter().zip(&self.rows).map(|(own, extent)| count(*extent, *own)).product();
                if left == 1 && tiles < best.0 {
                    best = (tiles, taken);
                }
                continue;
            }
            // Of equally good boxes, the one that is longest along the first axes.
            let divides = |own: &i64| left % own == 0;
            for own in (1..=left.min(MAX_BOX)).filter(divides) {
                open.push(([&taken[..], &[own]].concat(), left / own));
            }
        }
        best.1
    }

    /// Tiles along each axis of rows.
    fn tiles(&self, rows: i64) -> Vec<i64> {
        self.boxes(rows).iter().zip(&self.rows).map(|(own, extent)| count(*extent, *own)).collect()
    }

    /// Rows of all tiles, including padding.
    pub(crate) fn padded(&self, rows: i64) -> i64 {
        self.tiles(rows).iter().product::<i64>().saturating_mul(rows)
    }

    /// K-tiles of depth `depth`, including padding.
    pub(crate) fn steps(&self, depth: i64) -> i64 {
        self.counts(depth).iter().product()
    }

    fn counts(&self, depth: i64) -> Vec<i64> {
        let mut counts = self.steps.clone();
        counts[0] = count(counts[0], depth);
        counts
    }

    /// The layouts of A and of B, as a kernel declares them.
    ///
    /// Errors: an element has no offset that is a number.
    pub(crate) fn operands(&self, columns: i64) -> Result<[Layout; 2], LayoutError> {
        let b = std::iter::once(columns).chain(self.steps.iter().copied()).zip(self.b.iter().copied());
        Ok([Layout::of_modes(self.a.iter().copied())?, Layout::of_modes(b)?])
    }

    /// The elements of a copy by cp.async: those of 16, 8 or 4 bytes that divide the first axis of
    /// K. None if no copy is inside of that axis. Strides are multiples of 16 bytes.
    pub(crate) fn width(&self, bytes: i64) -> Option<i64> {
        let along = self.steps[0] * bytes;
        let widest = [VECTOR, VECTOR / 2, VECTOR / 4].into_iter().find(|width| along % width == 0);
        widest.map(|width| width / bytes).filter(|width| *width > 0)
    }

    /// The extent of the first axis of rows.
    pub(crate) fn first_row(&self) -> Option<i64> {
        self.rows.first().copied()
    }

    /// The layout of a matrix with the shape of D, its rows along the axes.
    pub(crate) fn beside(&self, matrix: &Matrix) -> Option<LayoutArgument> {
        let [mut step, across, _] = matrix.strides()?;
        let mut modes = Vec::new();
        for extent in &self.rows {
            modes.push((*extent, step));
            step *= extent;
        }
        modes.push((matrix.declared_extents()[1], across));
        LayoutArgument::placed(None, matrix.offset(), Layout::of_modes(modes).ok()?).ok()
    }

    /// The box of a tile, by its index.
    pub(crate) fn at(&self, k: &Build, rows: i64, tile: &Expr) -> Result<Boxed, KernelError> {
        Ok(Boxed { sides: self.boxes(rows), at: k.coordinate(tile, &self.tiles(rows))? })
    }

    /// The tile of A of a box and a k-tile.
    pub(crate) fn of_a<'k>(
        &self,
        k: &'k Build,
        a: &View<'k>,
        boxed: &Boxed,
        (step, depth): (&Expr, i64),
    ) -> Result<View<'k>, KernelError> {
        let digits = k.coordinate(step, &self.counts(depth))?;
        let [first, others @ ..] = &digits[..] else { return Err(overflow()) };
        // Axes of K that share a dimension with rows shift its coordinate; the others are
        // dimensions of their own.
        let mut shift: Vec<Expr> = self.origin.iter().copied().map(Expr::from).collect();
        let mut at = boxed.at.clone();
        at.push(first.clone());
        at.resize(self.a.len(), Expr::from(0));
        for Phase { dimensions: [_, own], first, .. } in &self.phases {
            at[*own] = Expr::from(*first);
        }
        for ((ImplicitAxis { dimension, shift: by }, digit), extent) in
            self.along.iter().zip(others).zip(&self.steps[1..])
        {
            let Some(by) = by else {
                at[*dimension] = digit.clone();
                continue;
            };
            let mut pixels = times(digit, &Expr::from(*by))?;
            if let Some(Phase { dimensions: [_, own], stride, first }) =
                self.phases.iter().find(|phase| phase.dimensions[0] == *dimension)
            {
                let strides = count(first + by * extent, *stride);
                let parts = k.coordinate(&plus(&pixels, &Expr::from(*first))?, &[*stride, strides])?;
                let [phase, whole] = &parts[..] else { return Err(overflow()) };
                (at[*own], pixels) = (phase.clone(), whole.clone());
            }
            shift[*dimension] = plus(&shift[*dimension], &pixels)?;
        }
        let sides = boxed.sides.iter().copied().chain([depth]).chain(std::iter::repeat(1)).take(self.a.len());
        a.domain_offset(&shift)?.local_tile(Tree::flat(sides)?, slots(at)?)
    }

    /// The same as rows and K, for copies by threads.
    pub(crate) fn lines_of_a<'k>(
        &self,
        k: &'k Build,
        a: &View<'k>,
        boxed: &Boxed,
        step: (&Expr, i64),
    ) -> Result<View<'k>, KernelError> {
        as_matrix(&self.of_a(k, a, boxed, step)?.group(0..self.rows.len())?)
    }

    /// The tile of B of a column tile and a k-tile, as columns and K.
    pub(crate) fn lines_of_b<'k>(
        &self,
        k: &'k Build,
        b: &View<'k>,
        columns: (i64, &Expr),
        step: (&Expr, i64),
    ) -> Result<View<'k>, KernelError> {
        as_matrix(&self.of_b(k, b, columns, step)?)
    }

    /// The tile of B of a column tile and a k-tile.
    pub(crate) fn of_b<'k>(
        &self,
        k: &'k Build,
        b: &View<'k>,
        (columns, column): (i64, &Expr),
        (step, depth): (&Expr, i64),
    ) -> Result<View<'k>, KernelError> {
        let digits = k.coordinate(step, &self.counts(depth))?;
        let sides = [columns, depth].into_iter().chain(std::iter::repeat(1)).take(self.b.len());
        b.local_tile(Tree::flat(sides)?, slots([column.clone()].into_iter().chain(digits))?)
    }
}

/// The first two modes of a tile whose other modes have one position.
fn as_matrix<'k>(tile: &View<'k>) -> Result<View<'k>, KernelError> {
    let others = tile.layout().rank().saturating_sub(2);
    match others {
        0 => Ok(tile.clone()),
        _ => {
            let zeros = (0..others).map(|_| Slot::At(Expr::from(0)));
            tile.slice(Tree::flat([Slot::All, Slot::All].into_iter().chain(zeros))?)
        }
    }
}

fn slots(at: impl IntoIterator<Item = Expr>) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat(at.into_iter().map(Slot::At))?)
}

/// The rows of a tile along the axes.
#[derive(Clone)]
pub(crate) struct Boxed {
    sides: Vec<i64>,
    at: Vec<Expr>,
}

impl Boxed {
    /// The tile of a matrix with the shape of D: its rows as one mode, and its columns.
    pub(crate) fn of<'k>(&self, matrix: &View<'k>, columns: i64, column: &Expr) -> Result<View<'k>, KernelError> {
        let sides = self.sides.iter().copied().chain([columns]);
        let at = self.at.iter().cloned().chain([column.clone()]);
        matrix.local_tile(Tree::flat(sides)?, slots(at)?)?.group(0..self.sides.len())
    }
}
