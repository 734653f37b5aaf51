//! Factors of 8 bits whose blocks have scales, and sums that are promoted.
//!
//! Law: `D(m,n) = f(sum over b of s(m,b) * t(n,b) * sum over k in block b of A(m,k) * B(n,k))`,
//! where a block is 128 steps along K. Instructions for floating-point numbers of 8 bits keep 13
//! bits of the greatest of their terms; so the sum of each block is added in f32 to what there is
//! ([`Problem::fast`](super::Problem::fast) leaves that out where there are no scales).
//!
//! A stage has the steps of one block. The columns of a tile are multiplied in two halves: each
//! into sums of its own, so that while the first is added to what there is, the second is
//! multiplied; or, where a thread has no registers for both, one after the other into the same,
//! while other groups multiply. The scales of a block are asked for one block ahead or several,
//! where they are few ([`Ahead`]); else before its stage is waited for.

use tilewright_atoms::TiledMma;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, KernelError, Num};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

use super::fused::Input;
use super::matrix::Matrix;
use super::pairs::Pairs;
use super::plan::Plan;
use super::problem::Problem;
use super::schedule::{Unit, plus, times};
use crate::error::PlanError;
use crate::product::count;

/// Steps along K, and rows or columns, of a block.
pub(super) const BLOCK: i64 = 128;

/// Scales of the blocks of A and of B, in f32.
///
/// Those of A are `(M,K/128)`, one for each row, or `(M/128,K/128)`, one for 128 rows; those of B
/// likewise. The last blocks may be smaller. Of a batch there is one more mode, the matrix; of
/// groups of rows those of B have one, the group, and those of A are one for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Scales {
    /// Those of A.
    pub a: Matrix,
    /// Those of B.
    pub b: Matrix,
}

impl Scales {
    /// Whether these are scales for so many rows, steps and matrices: for each row, where that is
    /// asked for.
    ///
    /// Errors: their extents are others.
    pub(super) fn fit(scales: &Matrix, [rows, k, batch]: [i64; 3], each: bool) -> Result<(), PlanError> {
        let (steps, few) = (count(k, BLOCK), if each { rows } else { count(rows, BLOCK) });
        if scales.extents() == [rows, steps, batch] || scales.extents() == [few, steps, batch] {
            return Ok(());
        }
        let batch = if batch > 1 { format!(",{batch}") } else { String::new() };
        let all = format!("({rows},{steps}{batch})");
        let shape = if few == rows { all } else { format!("{all} or ({few},{steps}{batch})") };
        Err(PlanError::Shape { layout: scales.layout().to_string(), shape })
    }

    /// The same of groups that have so many rows each, as a batch.
    pub(super) fn parted_evenly(&self, rows: i64, groups: i64) -> Result<Scales, PlanError> {
        let [_, steps, _] = self.a.extents();
        let [down, along, _] = self.a.strides().unwrap_or([1, 1, 0]);
        let a = Matrix::strided(Element::F32, [rows, steps, groups], [down, along, rows * down])?;
        Ok(Scales { a, b: self.b.clone() })
    }
}

/// Where the scales of a factor lie along rows or columns of D.
struct Along {
    /// The mode, and its steps.
    extent: String,
    stride: String,
    /// From the scale of the first column of a pair to that of the second.
    apart: i64,
    /// Rows or columns that have a scale together.
    wide: i64,
}

impl Along {
    /// Those of so many rows or columns of D; `down` is the step from block to block.
    fn of(scales: &Matrix, own: i64, pairs: Option<Pairs>) -> Along {
        let ([blocks, ..], [down, ..]) = (scales.extents(), scales.strides().unwrap_or([0; 3]));
        let all = if pairs.is_some() { 2 * own } else { own };
        let each = |stride: i64, apart: i64| Along {
            extent: own.to_string(),
            stride: stride.to_string(),
            apart,
            wide: if stride == 0 { own } else { 1 },
        };
        let blocked = |wide: i64, count: i64, apart: i64| Along {
            extent: format!("({wide},{count})"),
            stride: format!("(0,{down})"),
            apart,
            wide,
        };
        match pairs {
            _ if blocks == 1 && all > 1 => each(0, 0),
            None if blocks == all => each(down, 0),
            Some(Pairs::Neighbours) if blocks == all => each(2 * down, down),
            Some(Pairs::Halves) if blocks == all => each(down, own * down),
            None => blocked(BLOCK, blocks, 0),
            // Both columns of a pair are of one block.
            Some(Pairs::Neighbours) => blocked(BLOCK / 2, blocks, 0),
            // Blocks of each half are its own.
            Some(Pairs::Halves) => blocked(BLOCK, blocks / 2, blocks / 2 * down),
        }
    }
}

/// Rows or columns of D that have a scale of the factor along the columns of tiles together.
pub(super) fn wide(problem: &Problem, swapped: bool) -> Option<i64> {
    let (scales, [m, n, _]) = (problem.scales()?, problem.sizes());
    let along = if swapped { Along::of(&scales.a, m, None) } else { Along::of(&scales.b, n, problem.pairs()) };
    Some(along.wide)
}

/// The scales of both.
pub(super) struct Scaling<'k> {
    scales: [Input<'k>; 2],
    swapped: bool,
    /// Whether B has pairs of columns, each of which has scales.
    paired: bool,
    /// Rows of a tile, and columns that are multiplied together.
    tile: [i64; 2],
    /// How many parts a tile has, each with sums of its own: halves of its columns, or the first
    /// and the second columns of pairs.
    parts: i64,
}

impl<'k> Scaling<'k> {
    /// Declares the scales of a problem that has some: those of A, then those of B.
    pub(super) fn declare(k: &'k Build, problem: &Problem, plan: &Plan) -> Result<Option<Scaling<'k>>, KernelError> {
        let Some(scales) = problem.scales() else { return Ok(None) };
        let [m, n, _] = problem.sizes();
        let (parts, paired) = (plan.halves(problem), problem.pairs().is_some());
        let [rows, columns] = plan.tile_of_d(problem);
        let part = [rows, if paired { columns } else { columns / parts }];
        let of = |matrix: &Matrix, first: bool| -> Result<Input<'k>, KernelError> {
            let [_, steps, matrices] = matrix.extents();
            let [_, along, step] = matrix.strides().unwrap_or([0; 3]);
            let pairs = if first { None } else { problem.pairs() };
            let Along { extent, stride, apart, wide } = Along::of(matrix, if first { m } else { n }, pairs);
            // As a matrix of D of which the other mode repeats, and a mode of blocks along K; of
            // pairs one that says which column, and of a batch one for the matrix.
            let (mut shape, mut strides) = match first {
                true => (format!("{extent},{n},{steps}"), format!("{stride},0,{along}")),
                false => (format!("{m},{extent},{steps}"), format!("0,{stride},{along}")),
            };
            for (mode, step) in
                pairs.map(|_| (2, apart)).into_iter().chain(matrix.is_batch().then_some((matrices, step)))
            {
                shape += &format!(",{mode}");
                strides += &format!(",{step}");
            }
            let layout = match matrix.offset() {
                0 => format!("({shape}):({strides})"),
                offset => format!("S<0,0,0> o {offset} o ({shape}):({strides})"),
            };
            let view = k.tensor_of(Element::F32, if first { "scales_a" } else { "scales_b" }, &layout, Role::Input)?;
            let tile = if first != plan.swapped { part[0] } else { part[1] };
            // Tiles begin at multiples of their extent, but for rows of groups, of which each has a
            // scale.
            let same = wide > 1 && (wide % tile == 0 || wide >= if first { m } else { n });
            let repeats = if first != plan.swapped { [same, true] } else { [true, same] };
            Ok(Input::of(view, matrix.is_batch(), repeats))
        };
        let scales = [of(&scales.a, true)?, of(&scales.b, false)?];
        Ok(Some(Scaling { scales, swapped: plan.swapped, paired, tile: part, parts }))
    }

    /// In how many parts the scales beside rows of a tile differ, and those beside its columns.
    fn counts(&self) -> [usize; 2] {
        let parts = self.parts as usize;
        if self.paired && self.swapped { [parts, 1] } else { [1, parts] }
    }

    /// The scales of a block along K that a thread reads: those beside its rows, then those beside
    /// its columns, part after part.
    pub(super) fn ask(&self, mma: &TiledMma, unit: &Unit, block: &Expr) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let of = |side: usize, part: i64| {
            let (scale, of_b) = (self.sides()[side], (side == 0) == self.swapped);
            let which = (of_b && self.paired).then(|| Slot::At(Expr::from(part)));
            let at = [Slot::All, Slot::All, Slot::At(block.clone())].into_iter().chain(which);
            let input = scale.sliced(Tree::flat(at.chain(scale.is_batch().then_some(Slot::All)))?)?;
            let column = match self.paired {
                true => unit.column.clone(),
                false => plus(&times(&unit.column, &Expr::from(self.parts))?, &Expr::from(part))?,
            };
            input.loaded(mma, self.swapped, unit, self.tile, (part, &column))
        };
        let [rows, columns] = self.counts().map(|count| 0..count as i64);
        rows.map(|part| of(0, part)).chain(columns.map(|part| of(1, part))).collect()
    }

    /// The scale of each sum of a thread, of a part.
    pub(super) fn of_part(&self, mma: &TiledMma, asked: &[Vec<Num<'k>>], part: usize) -> Vec<Num<'k>> {
        let ([rows, columns], [own, beside]) = (self.sides(), self.counts());
        let asked = (asked.get(part.min(own - 1)), asked.get(own + part.min(beside - 1)));
        let (Some(own), Some(beside)) = asked else { return Vec::new() };
        let (own, beside) = (rows.spread(own, mma, self.tile), columns.spread(beside, mma, self.tile));
        own.into_iter().zip(beside).map(|(row, column)| row * column).collect()
    }

    /// Those along the rows of tiles, and those along the columns.
    fn sides(&self) -> [&Input<'k>; 2] {
        let [a, b] = &self.scales;
        if self.swapped { [b, a] } else { [a, b] }
    }
}

/// How far ahead the scales of a block are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// When the block before it begins.
    One,
    /// So many steps before, of so many blocks of a tile.
    Several {
        /// At least two, and no more than there are blocks.
        steps: i64,
        blocks: i64,
    },
}

/// Scales of a thread: beside its rows, then beside each part of its columns.
type Asked<'k> = Vec<Vec<Num<'k>>>;

impl Ahead {
    /// Multiplies all blocks of a tile but one, `left`, and that one: `ask` loads the scales of a
    /// block, by its number, and `block` multiplies the next one with its scales. `begun` is called
    /// when the first scales have been asked for.
    pub(super) fn multiply<'k>(
        self,
        k: &'k Build,
        left: Expr,
        ask: impl Fn(&Expr) -> Result<Asked<'k>, KernelError>,
        block: impl Fn(&[Vec<Num<'k>>]) -> Result<(), KernelError>,
        begun: impl Fn() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let place = |number: i64| Kept::new(k, &ask(&Expr::from(number))?);
        let Ahead::Several { steps, blocks } = self else {
            let kept = place(0)?;
            begun()?;
            k.range(left, |step| {
                let now = kept.get()?;
                kept.set(&ask(&plus(&step, &Expr::from(1))?)?)?;
                block(&now)
            })?;
            return block(&kept.get()?);
        };
        // Each of so many places for scales is filled anew as soon as its scales have been used.
        let places: Vec<Kept<'k>> = (0..steps).map(place).collect::<Result<_, _>>()?;
        begun()?;
        let (turns, rest) = ((blocks - steps) / steps, (blocks - steps) % steps);
        let next = |turn: &Expr, place: usize| {
            ask(&plus(&times(turn, &Expr::from(steps))?, &Expr::from(steps + place as i64))?)
        };
        k.range(turns, |turn| {
            places.iter().enumerate().try_for_each(|(at, place)| {
                block(&place.get()?)?;
                place.set(&next(&turn, at)?)
            })
        })?;
        for (at, place) in places.iter().enumerate() {
            block(&place.get()?)?;
            if (at as i64) < rest {
                place.set(&next(&Expr::from(turns), at)?)?;
            }
        }
        places.iter().take(rest as usize).try_for_each(|place| block(&place.get()?))
    }
}

/// Numbers that are kept in registers from one turn of a loop to the next.
struct Kept<'k> {
    fragment: Option<Fragment<'k>>,
    counts: Vec<usize>,
}

impl<'k> Kept<'k> {
    /// Keeps numbers in f32.
    fn new(k: &'k Build, numbers: &[Vec<Num<'k>>]) -> Result<Kept<'k>, KernelError> {
        let counts: Vec<usize> = numbers.iter().map(Vec::len).collect();
        let all: usize = counts.iter().sum();
        let fragment = if all > 0 { Some(k.register(Element::F32, &all.to_string())?) } else { None };
        let kept = Kept { fragment, counts };
        kept.set(numbers)?;
        Ok(kept)
    }

    /// Keeps others instead.
    fn set(&self, numbers: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        self.fragment.as_ref().map_or(Ok(()), |fragment| fragment.set(&numbers.concat()))
    }

    /// The numbers.
    fn get(&self) -> Result<Asked<'k>, KernelError> {
        let numbers = self.fragment.as_ref().map_or(Ok(Vec::new()), Fragment::numbers)?;
        let mut rest = &numbers[..];
        let mut part = |count: &usize| {
            let (own, others) = rest.split_at((*count).min(rest.len()));
            rest = others;
            own.to_vec()
        };
        Ok(self.counts.iter().map(&mut part).collect())
    }
}

/// Adds the sums of a block to what there is, times their scales, where there are some.
pub(super) fn promote<'k>(total: &Fragment<'k>, sums: &Fragment<'k>, scales: Vec<Num<'k>>) -> Result<(), KernelError> {
    let both = total.numbers()?.into_iter().zip(sums.numbers()?);
    let added: Vec<Num<'k>> = match scales.is_empty() {
        true => both.map(|(total, sum)| total + sum).collect(),
        false => both.zip(scales).map(|((total, sum), scale)| scale.multiply_add(sum, total)).collect(),
    };
    total.set(&added)
}
