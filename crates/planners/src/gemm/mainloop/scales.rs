//! Scales of 8-bit operands, and the promotion of accumulators.
//!
//! Law: `D(m,n) = f(sum over b of s(m,b) * t(n,b) * sum over k in block b of A(m,k) * B(n,k))`,
//! where a block is 128 elements along K. wgmma on 8-bit floats keeps 13 bits below its largest
//! term. So the accumulators of each block are promoted: added to totals in f32.
//! [`Problem::fast`](crate::gemm::Problem::fast) turns that off if there are no scales.
//!
//! A k-tile is one block. The columns of a tile are multiplied in two halves, each with
//! accumulators of its own, so that one is promoted while the other one is multiplied. If a thread
//! has no registers for both, they share accumulators, and another warpgroup multiplies meanwhile.
//! Scales are loaded one block or several ahead if they are few ([`Ahead`]); else before the wait
//! for their stage.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, KernelError, LayoutArgument, Num};
use tilewright_layout::atoms::TiledMma;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tree};

use crate::gemm::epilogue::inputs::Input;
use crate::gemm::index::{plus, times};
use crate::gemm::plan::{Ahead, Plan};
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::scales::ScaleLayout;
use crate::gemm::schedule::unit::Unit;

/// The scales of both operands.
pub(crate) struct Scaling<'k> {
    /// The scales of A and of B; None for an operand without scales. With weights of four bits,
    /// only the weights have scales.
    scales: [Option<Input<'k>>; 2],
    swapped: bool,
    /// Whether B has gated pairs of columns, each column with its own scales.
    paired: bool,
    /// Rows of a tile, and the columns of a part.
    tile: [i64; 2],
    /// The parts of a tile, each with its own accumulators: halves of its columns, or the first and
    /// the second columns of gated pairs.
    parts: i64,
}

impl<'k> Scaling<'k> {
    /// Declares the scales of a problem: those of A, then those of B.
    pub(crate) fn declare(k: &'k Build, problem: &Problem, plan: &Plan) -> Result<Option<Scaling<'k>>, KernelError> {
        let given = match (problem.scales(), problem.int4_scales()) {
            (Some(scales), _) => [Some(&scales.a), Some(&scales.b)],
            (_, Some(scales)) => [None, Some(scales)],
            _ => return Ok(None),
        };
        let [m, n, _] = problem.sizes();
        let (parts, paired) = (plan.halves(problem), problem.pairs().is_some());
        let [rows, columns] = plan.tile_of_d(problem);
        let part = [rows, if paired { columns } else { columns / parts }];
        let of = |matrix: &Matrix, first: bool| -> Result<Input<'k>, KernelError> {
            let [_, steps, matrices] = matrix.extents();
            let [_, along, step] = matrix.strides().unwrap_or([0; 3]);
            let pairs = if first { None } else { problem.pairs() };
            let ScaleLayout { mode, apart, wide } = ScaleLayout::of(matrix, if first { m } else { n }, pairs)?;
            // Scales have the shape of D with one mode broadcast, and a mode of blocks along K. If
            // gated, there is one more mode for the member of the pair, and with a batch one for
            // the matrix.
            let repeated = Layout::strided(if first { n } else { m }, 0)?;
            let mut modes = if first { vec![mode, repeated] } else { vec![repeated, mode] };
            modes.push(Layout::strided(steps, along)?);
            if pairs.is_some() {
                modes.push(Layout::strided(2, apart)?);
            }
            if matrix.is_batch() {
                modes.push(Layout::strided(matrices, step)?);
            }
            let layout = LayoutArgument::placed(None, matrix.offset(), Layout::tuple(&modes)?);
            let view =
                k.tensor_of(matrix.element(), if first { "scales_a" } else { "scales_b" }, layout, Role::Input)?;
            let tile = if first != plan.swapped { part[0] } else { part[1] };
            // Tiles begin at multiples of their extent, except with row groups, where each row has
            // a scale.
            let same = wide > 1 && (wide % tile == 0 || wide >= if first { m } else { n });
            let repeats = if first != plan.swapped { [same, true] } else { [true, same] };
            Ok(Input::of(view, matrix.is_batch(), repeats))
        };
        let [a, b] = given;
        let scales = [a.map(|scales| of(scales, true)).transpose()?, b.map(|scales| of(scales, false)).transpose()?];
        Ok(Some(Scaling { scales, swapped: plan.swapped, paired, tile: part, parts }))
    }

    /// The number of parts with different scales, along the rows and along the columns of tiles.
    fn counts(&self) -> [usize; 2] {
        let parts = self.parts as usize;
        if self.paired && self.swapped { [parts, 1] } else { [1, parts] }
    }

    /// Loads the scales of a thread for a block along K: those of its rows, then those of its
    /// columns, part after part.
    pub(crate) fn ask(&self, mma: &TiledMma, unit: &Unit, block: &Expr) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let of = |side: usize, part: i64| {
            let (Some(scale), of_b) = (self.sides()[side], (side == 0) == self.swapped) else { return Ok(Vec::new()) };
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

    /// The scale of each accumulator of a thread, in one part.
    pub(crate) fn of_part(&self, mma: &TiledMma, asked: &[Vec<Num<'k>>], part: usize) -> Vec<Num<'k>> {
        let ([rows, columns], [own, beside]) = (self.sides(), self.counts());
        let asked = (asked.get(part.min(own - 1)), asked.get(own + part.min(beside - 1)));
        let (Some(own), Some(beside)) = asked else { return Vec::new() };
        let spread =
            |scales: Option<&Input<'k>>, asked: &[Num<'k>]| scales.map(|own| own.spread(asked, mma, self.tile));
        match (spread(rows, own), spread(columns, beside)) {
            (Some(own), Some(beside)) => own.into_iter().zip(beside).map(|(row, column)| row * column).collect(),
            (one, other) => one.or(other).unwrap_or_default(),
        }
    }

    /// The scales along the rows of tiles, and those along the columns.
    fn sides(&self) -> [Option<&Input<'k>>; 2] {
        let [a, b] = self.scales.each_ref().map(Option::as_ref);
        if self.swapped { [b, a] } else { [a, b] }
    }
}

/// The scales of a thread: of its rows, then of each part of its columns.
type Asked<'k> = Vec<Vec<Num<'k>>>;

impl Ahead {
    /// Multiplies all blocks of a tile; `left` multiplies the last one. `ask` loads the scales of a
    /// block, by its index, and `block` multiplies the next block with its scales. `begun` is
    /// called when the first scales have been requested.
    pub(crate) fn multiply<'k>(
        self,
        k: &'k Build,
        left: Expr,
        ask: impl Fn(&Expr) -> Result<Asked<'k>, KernelError>,
        block: impl Fn(&[Vec<Num<'k>>]) -> Result<(), KernelError>,
        begun: impl Fn() -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let place = |number: i64| KeptScales::new(k, &ask(&Expr::from(number))?);
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
        // Each slot for scales is loaded again as soon as its scales have been used.
        let places: Vec<KeptScales<'k>> = (0..steps).map(place).collect::<Result<_, _>>()?;
        begun()?;
        let (iterations, rest) = ((blocks - steps) / steps, (blocks - steps) % steps);
        let next = |iteration: &Expr, place: usize| {
            ask(&plus(&times(iteration, &Expr::from(steps))?, &Expr::from(steps + place as i64))?)
        };
        k.range(iterations, |iteration| {
            places.iter().enumerate().try_for_each(|(at, place)| {
                block(&place.get()?)?;
                place.set(&next(&iteration, at)?)
            })
        })?;
        for (at, place) in places.iter().enumerate() {
            block(&place.get()?)?;
            if (at as i64) < rest {
                place.set(&next(&Expr::from(iterations), at)?)?;
            }
        }
        places.iter().take(rest as usize).try_for_each(|place| block(&place.get()?))
    }
}

/// Numbers that are kept in registers from one iteration of a loop to the next.
pub(crate) struct KeptScales<'k> {
    fragment: Option<Fragment<'k>>,
    counts: Vec<usize>,
}

impl<'k> KeptScales<'k> {
    /// Stores numbers in registers, as f32.
    pub(crate) fn new(k: &'k Build, numbers: &[Vec<Num<'k>>]) -> Result<KeptScales<'k>, KernelError> {
        let counts: Vec<usize> = numbers.iter().map(Vec::len).collect();
        let all: usize = counts.iter().sum();
        let fragment = if all > 0 { Some(k.register(Element::F32, all)?) } else { None };
        let kept = KeptScales { fragment, counts };
        kept.set(numbers)?;
        Ok(kept)
    }

    /// Replaces the numbers.
    pub(crate) fn set(&self, numbers: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        self.fragment.as_ref().map_or(Ok(()), |fragment| fragment.set(&numbers.concat()))
    }

    /// The numbers.
    pub(crate) fn get(&self) -> Result<Asked<'k>, KernelError> {
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

/// Adds the accumulators of a block to the totals, times their scales if there are any.
pub(crate) fn promote<'k>(
    total: &Fragment<'k>,
    accumulators: &Fragment<'k>,
    scales: Vec<Num<'k>>,
) -> Result<(), KernelError> {
    let both = total.numbers()?.into_iter().zip(accumulators.numbers()?);
    let added: Vec<Num<'k>> = match scales.is_empty() {
        true => both.map(|(total, sum)| total + sum).collect(),
        false => both.zip(scales).map(|((total, sum), scale)| scale.multiply_add(sum, total)).collect(),
    };
    total.set(&added)
}
