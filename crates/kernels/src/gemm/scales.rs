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
//! while other groups multiply. The scales of a block are asked for while the block before it is
//! multiplied, where they are few; else before its stage is waited for.

use tilewright_atoms::TiledMma;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, KernelError, Num};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

use super::fused::Input;
use super::matrix::Matrix;
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
/// likewise. The last blocks may be smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Scales {
    /// Those of A.
    pub a: Matrix,
    /// Those of B.
    pub b: Matrix,
}

impl Scales {
    /// Rows of a block of which these are the scales, for so many rows and steps.
    ///
    /// Errors: the extents are none of both.
    pub(super) fn rows(scales: &Matrix, [rows, k, batch]: [i64; 3]) -> Result<i64, PlanError> {
        let [blocks, steps, matrices] = scales.extents();
        let fits = steps == count(k, BLOCK) && matrices == batch;
        match blocks {
            own if fits && own == rows => Ok(1),
            own if fits && own == count(rows, BLOCK) => Ok(BLOCK),
            _ => {
                let (all, few, steps) = (rows, count(rows, BLOCK), count(k, BLOCK));
                let batch = if batch > 1 { format!(",{batch}") } else { String::new() };
                let shape = format!("({all},{steps}{batch}) or ({few},{steps}{batch})");
                Err(PlanError::Shape { layout: scales.layout().to_string(), shape })
            }
        }
    }
}

/// The scales of both.
pub(super) struct Scaling<'k> {
    scales: [Input<'k>; 2],
    swapped: bool,
    /// Rows of a tile, and columns that are multiplied together.
    tile: [i64; 2],
    /// How many parts of so many columns a tile has.
    parts: i64,
}

impl<'k> Scaling<'k> {
    /// Declares the scales of a problem that has some: those of A, then those of B.
    pub(super) fn declare(k: &'k Build, problem: &Problem, plan: &Plan) -> Result<Option<Scaling<'k>>, KernelError> {
        let Some(scales) = problem.scales() else { return Ok(None) };
        let [m, n, _] = problem.sizes();
        let parts = plan.halves(problem);
        let part = [plan.rows, plan.columns / parts];
        let of = |matrix: &Matrix, rows: i64, first: bool| -> Result<Input<'k>, KernelError> {
            let [blocks, steps, matrices] = matrix.extents();
            let [down, along, step] = matrix.strides().unwrap_or([0; 3]);
            let (extent, stride) = match blocks {
                own if own == rows => (format!("{rows}"), format!("{down}")),
                1 => (format!("{rows}"), "0".to_string()),
                own => (format!("({BLOCK},{own})"), format!("(0,{down})")),
            };
            // As a matrix of D of which the other mode repeats, and a mode of blocks along K.
            let (shape, strides) = match first {
                true => (format!("{extent},{n}"), format!("{stride},0")),
                false => (format!("{m},{extent}"), format!("0,{stride}")),
            };
            let layout = match matrix.is_batch() {
                true => format!("({shape},{steps},{matrices}):({strides},{along},{step})"),
                false => format!("({shape},{steps}):({strides},{along})"),
            };
            let layout = match matrix.offset() {
                0 => layout,
                offset => format!("S<0,0,0> o {offset} o {layout}"),
            };
            let view = k.tensor_of(Element::F32, if first { "scales_a" } else { "scales_b" }, &layout, Role::Input)?;
            let tile = if first != plan.swapped { part[0] } else { part[1] };
            let same = blocks == 1 || blocks != rows && BLOCK % tile == 0;
            let repeats = if first != plan.swapped { [same, true] } else { [true, same] };
            Ok(Input::of(view, matrix.is_batch(), repeats))
        };
        let scales = [of(&scales.a, m, true)?, of(&scales.b, n, false)?];
        Ok(Some(Scaling { scales, swapped: plan.swapped, tile: part, parts }))
    }

    /// The scales of a block along K that a thread reads: those beside its rows, then those beside
    /// its columns, part after part.
    pub(super) fn ask(&self, mma: &TiledMma, unit: &Unit, block: &Expr) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let of = |scale: &Input<'k>, part: i64| {
            let at = [Slot::All, Slot::All, Slot::At(block.clone())];
            let at = at.into_iter().chain(scale.is_batch().then_some(Slot::All));
            let input = scale.sliced(Tree::flat(at)?)?;
            let column = plus(&times(&unit.column, &Expr::from(self.parts))?, &Expr::from(part))?;
            input.loaded(mma, self.swapped, unit, self.tile, (part, &column))
        };
        let [rows, columns] = self.sides();
        let beside = (0..self.parts).map(|part| of(columns, part));
        std::iter::once(of(rows, 0)).chain(beside).collect()
    }

    /// The scale of each sum of a thread, of a part of the columns.
    pub(super) fn of_part(&self, mma: &TiledMma, asked: &[Vec<Num<'k>>], part: usize) -> Vec<Num<'k>> {
        let [rows, columns] = self.sides();
        let (Some(own), Some(beside)) = (asked.first(), asked.get(1 + part)) else { return Vec::new() };
        let (own, beside) = (rows.spread(own, mma, self.tile), columns.spread(beside, mma, self.tile));
        own.into_iter().zip(beside).map(|(row, column)| row * column).collect()
    }

    /// Those along the rows of tiles, and those along the columns.
    fn sides(&self) -> [&Input<'k>; 2] {
        let [a, b] = &self.scales;
        if self.swapped { [b, a] } else { [a, b] }
    }
}

/// Numbers that are kept in registers from one turn of a loop to the next.
pub(super) struct Kept<'k> {
    fragment: Option<Fragment<'k>>,
    counts: Vec<usize>,
}

impl<'k> Kept<'k> {
    /// Keeps numbers in f32.
    pub(super) fn new(k: &'k Build, numbers: &[Vec<Num<'k>>]) -> Result<Kept<'k>, KernelError> {
        let counts: Vec<usize> = numbers.iter().map(Vec::len).collect();
        let all: usize = counts.iter().sum();
        let fragment = if all > 0 { Some(k.register(Element::F32, &all.to_string())?) } else { None };
        let kept = Kept { fragment, counts };
        kept.set(numbers)?;
        Ok(kept)
    }

    /// Keeps others instead.
    pub(super) fn set(&self, numbers: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        self.fragment.as_ref().map_or(Ok(()), |fragment| fragment.set(&numbers.concat()))
    }

    /// The numbers.
    pub(super) fn get(&self) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
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
