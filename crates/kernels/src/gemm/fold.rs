//! Factors with folded modes, read where they lie.
//!
//! Law: the rows of a product are counted along several axes, first axis fastest, and so are its
//! steps along K. A tile has a box of rows, so many along each axis, and a range of the first axis
//! of K; what a box has past the end of an axis is read as 0 or multiplied in vain, and not
//! written. So a convolution is a product: rows are counted along the columns, the rows and the
//! number of an image, and K along channels and the columns and rows of the filter.
//!
//! Axes along which A takes equal steps, one of its rows and one of K, are one dimension of its
//! tensor: the coordinates add up. A tensor map has five dimensions.

use tilewright_kernel::{Build, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree};

use super::matrix::Matrix;
use super::problem::Problem;
use super::schedule::overflow;
use crate::product::count;

/// Dimensions of a tensor map.
const DIMENSIONS: usize = 5;
/// Bytes of which its steps are multiples.
const UNIT: i64 = 16;
/// The most elements of a box along a dimension.
const MAX_BOX: i64 = 256;
/// How many times as many rows, or steps, as there are may be multiplied; else A is moved before.
const WASTE: i64 = 2;

/// The axes of rows and of K, and where A and B lie along them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    /// The extents of the axes of rows.
    rows: Vec<i64>,
    /// The extents of the axes of K, the contiguous one first.
    steps: Vec<i64>,
    /// Extents and steps of the dimensions of A: the axes of rows, the first of K, and the others
    /// of K that are no part of one of rows.
    a: Vec<(i64, i64)>,
    /// The dimension of A of each further axis of K.
    along: Vec<usize>,
    /// The step of B from column to column, then along the axes of K.
    b: Vec<i64>,
}

/// Extents and strides of a mode that is coalesced.
fn leaves(layout: &Layout, mode: usize) -> Option<Vec<(i64, i64)>> {
    let joined = layout.mode(mode)?.coalesce().ok()?;
    Some(joined.leaves().iter().map(|leaf| (leaf.extent, leaf.stride)).collect())
}

/// The extents into which several cuts of a mode part it; none where they do not divide each other.
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

/// The strides of leaves along parts of them.
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

impl Fold {
    /// The axes of a problem whose modes are folded; none where they are not, or where tensor maps
    /// do not take them.
    pub(super) fn of(problem: &Problem) -> Option<Fold> {
        let (a, b, d) = (problem.a(), problem.b(), problem.d());
        let is_plain = problem.pairs().is_none()
            && problem.groups().is_none()
            && problem.scales().is_none()
            && problem.by_products().next().is_none();
        let is_folded = a.strides().is_none() || b.strides().is_none();
        if !is_folded || !is_plain || problem.batch() != 1 || a.offset() != 0 || b.offset() != 0 {
            return None;
        }
        if d.strides().is_none_or(|strides| strides[1] != 1) {
            return None;
        }
        let [rows, steps_a, columns, steps_b] =
            [leaves(a.layout(), 0)?, leaves(a.layout(), 1)?, leaves(b.layout(), 0)?, leaves(b.layout(), 1)?];
        let [(_, column)] = columns[..] else { return None };
        let axes = parted([&rows].into_iter())?;
        let steps = parted([&steps_a, &steps_b].into_iter())?;
        let (down, along_a, along_b) = (strides(&rows, &axes)?, strides(&steps_a, &steps)?, strides(&steps_b, &steps)?);
        if along_a.first() != Some(&1) || along_b.first() != Some(&1) {
            return None;
        }
        let mut dimensions: Vec<(i64, i64)> = axes.iter().copied().zip(down).collect();
        dimensions.push((steps[0], 1));
        let mut along = Vec::new();
        for (extent, stride) in steps.iter().zip(along_a).skip(1) {
            let same = dimensions[..axes.len()].iter().position(|(_, own)| *own == stride);
            along.push(same.unwrap_or(dimensions.len()));
            match same {
                Some(at) => dimensions[at].0 += extent - 1,
                None => dimensions.push((*extent, stride)),
            }
        }
        let bytes = i64::from(problem.factors().bytes());
        let whole = |stride: &i64| *stride > 0 && stride * bytes % UNIT == 0;
        let of_b: Vec<i64> = std::iter::once(column).chain(along_b).collect();
        let first = axes.len();
        let fits = dimensions.len() <= DIMENSIONS
            && of_b.len() <= DIMENSIONS
            && dimensions.iter().enumerate().all(|(at, (extent, own))| at == first || *extent == 1 || whole(own))
            && of_b.iter().enumerate().all(|(at, own)| at == 1 || whole(own));
        let fold = Fold { rows: axes, steps, a: dimensions, along, b: of_b };
        // Few boxes would be full, or few steps.
        let ([m, _, k], depth) = (problem.sizes(), problem.depth());
        let few = fold.padded(64) > WASTE * count(m, 64) * 64 || fold.steps(depth) > WASTE * count(k, depth);
        (fits && !few).then_some(fold)
    }

    /// The rows of a tile along each axis: of all boxes one with which the fewest tiles cover all
    /// rows.
    pub(super) fn boxes(&self, rows: i64) -> Vec<i64> {
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
            // Of boxes that are as good the one stays that is longest along the first axes.
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

    /// Rows of all tiles of so many rows.
    pub(super) fn padded(&self, rows: i64) -> i64 {
        self.tiles(rows).iter().product::<i64>().saturating_mul(rows)
    }

    /// Steps of so many elements along K.
    pub(super) fn steps(&self, depth: i64) -> i64 {
        self.counts(depth).iter().product()
    }

    fn counts(&self, depth: i64) -> Vec<i64> {
        let mut counts = self.steps.clone();
        counts[0] = count(counts[0], depth);
        counts
    }

    /// The layouts of A and of B, as a kernel declares them.
    pub(super) fn factors(&self, columns: i64) -> [String; 2] {
        let text = |modes: &[(i64, i64)]| {
            let list = |of: &dyn Fn(&(i64, i64)) -> i64| {
                modes.iter().map(|mode| of(mode).to_string()).collect::<Vec<_>>().join(",")
            };
            format!("({}):({})", list(&|mode| mode.0), list(&|mode| mode.1))
        };
        let b: Vec<(i64, i64)> =
            std::iter::once(columns).chain(self.steps.iter().copied()).zip(self.b.iter().copied()).collect();
        [text(&self.a), text(&b)]
    }

    /// The layout of a matrix beside the sums, its rows along the axes.
    pub(super) fn beside(&self, matrix: &Matrix) -> Option<String> {
        let [down, across, _] = matrix.strides()?;
        let (mut extents, mut steps, mut step) = (String::new(), String::new(), down);
        for extent in &self.rows {
            extents += &format!("{extent},");
            steps += &format!("{step},");
            step *= extent;
        }
        let layout = format!("({extents}{}):({steps}{across})", matrix.extents()[1]);
        Some(if matrix.offset() > 0 { format!("S<0,0,0> o {} o {layout}", matrix.offset()) } else { layout })
    }

    /// The box of a tile, by its number.
    pub(super) fn at(&self, k: &Build, rows: i64, tile: &Expr) -> Result<Boxed, KernelError> {
        Ok(Boxed { sides: self.boxes(rows), at: k.coordinate(tile, &self.tiles(rows))? })
    }

    /// The tile of A of a box and a step along K.
    pub(super) fn of_a<'k>(
        &self,
        k: &'k Build,
        a: &View<'k>,
        boxed: &Boxed,
        (step, depth): (&Expr, i64),
    ) -> Result<View<'k>, KernelError> {
        let digits = k.coordinate(step, &self.counts(depth))?;
        let [first, others @ ..] = &digits[..] else { return Err(overflow()) };
        let own = self.rows.len();
        // Axes of K that are part of one of rows shift it; others are dimensions of their own.
        let mut shift = vec![Expr::from(0); self.a.len()];
        let mut at = boxed.at.clone();
        at.push(first.clone());
        at.resize(self.a.len(), Expr::from(0));
        for (dimension, digit) in self.along.iter().zip(others) {
            if *dimension < own { shift[*dimension] = digit.clone() } else { at[*dimension] = digit.clone() }
        }
        let sides = boxed.sides.iter().copied().chain([depth]).chain(std::iter::repeat(1)).take(self.a.len());
        a.domain_offset(&shift)?.local_tile(&tiler(sides), slots(at)?)
    }

    /// The tile of B of a column of tiles and a step along K.
    pub(super) fn of_b<'k>(
        &self,
        k: &'k Build,
        b: &View<'k>,
        (columns, column): (i64, &Expr),
        (step, depth): (&Expr, i64),
    ) -> Result<View<'k>, KernelError> {
        let digits = k.coordinate(step, &self.counts(depth))?;
        let sides = [columns, depth].into_iter().chain(std::iter::repeat(1)).take(self.b.len());
        b.local_tile(&tiler(sides), slots([column.clone()].into_iter().chain(digits))?)
    }
}

fn tiler(sides: impl Iterator<Item = i64>) -> String {
    format!("({})", sides.map(|side| side.to_string()).collect::<Vec<_>>().join(","))
}

fn slots(at: impl IntoIterator<Item = Expr>) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat(at.into_iter().map(Slot::At))?)
}

/// The rows of a tile along the axes.
#[derive(Clone)]
pub(super) struct Boxed {
    sides: Vec<i64>,
    at: Vec<Expr>,
}

impl Boxed {
    /// The tile of a matrix beside the sums: its rows as one mode, and so many columns.
    pub(super) fn of<'k>(&self, matrix: &View<'k>, columns: i64, column: &Expr) -> Result<View<'k>, KernelError> {
        let sides = self.sides.iter().copied().chain([columns]);
        let at = self.at.iter().cloned().chain([column.clone()]);
        matrix.local_tile(&tiler(sides), slots(at)?)?.group(0..self.sides.len())
    }
}
