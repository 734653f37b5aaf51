//! The exact decision about carries, for the compositions that the plain test of
//! [`crate::algebra::compose`] leaves open.
//!
//! Law: with runs `t_l : e_l` as in [`crate::algebra::compose`], [`decide`] succeeds exactly when
//! `A(sum c_l e_l) = sum c_l A(e_l)` for every `0 <= c_l < t_l`, and otherwise shows a `c` at which
//! it fails.
//!
//! [`refute`] handles the usual case, in which two runs show that the first carry does not cancel.
//! Searches meet this case often, so it costs no more than a composition. [`decide`] handles every
//! case.
//!
//! [`decide`] first walks along the coordinates to the first carry: unless that cancels, the answer
//! is no. Otherwise it splits the box of coordinates. On a part where no level carries, `A` is
//! affine with slopes `A(e_l)`, so it is enough to check one corner. A part of one coordinate never
//! carries, so the splitting ends.

use alloc::boxed::Box;
use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::algebra::compose::{LinearPiece, OP, Outer, OuterLevel, split_mode};
use crate::ground::bounds::Wide;
use crate::limits::MAX_CASES;
use crate::refusal::error::{Fits, LayoutError, Overflow, Path};
use crate::refusal::evidence::{Carry, Condition, Offset, Question};
use crate::value::layout::Leaf;
use crate::value::number::{Extent, Stride, Truth};
use crate::value::tree::TreeRef;

/// The runs of B, with known numbers.
struct Steps<'a, D: Stride> {
    outer: &'a Outer<D>,
    /// `P_k`
    ends: Vec<Wide>,
    /// `t_l`, and `e_l` with its sign.
    runs: Vec<(i64, i64)>,
    /// `A(e_l)`
    values: Vec<D>,
}

impl<'a, D: Stride> Steps<'a, D> {
    /// Treats levels that never carry as endless. None if no level carries.
    fn new(outer: &'a Outer<D>, runs: &[(usize, LinearPiece<D::Extent>)]) -> Result<Option<Steps<'a, D>>, LayoutError> {
        let mut steps = Steps { outer, ends: Vec::new(), runs: Vec::new(), values: Vec::new() };
        let mut carrying = None;
        for level in &outer.levels {
            steps.ends.push(match (level.end.known(), stays_below(&level.end, runs)) {
                (_, Ok(())) => ENDLESS,
                (Some(end), Err(open)) => {
                    carrying = Some(open);
                    Wide::from(end)
                }
                (None, Err(open)) => return Err(open),
            });
        }
        let Some(open) = carrying else { return Ok(None) };
        for (_, run) in runs {
            let (Some(extent), Some(step)) = (run.extent.known(), run.step.known()) else { return Err(open) };
            let step = if run.negative { -step } else { step };
            steps.runs.push((extent, step));
            steps.values.push(outer.eval(&D::Extent::from(step)).fits_as::<D::Extent>(OP)?);
        }
        Ok(Some(steps))
    }

    /// `A(sum c_l e_l)` and `sum c_l A(e_l)`.
    fn sides(&self, coordinate: &[i64]) -> Result<(D, D), LayoutError> {
        let mut index: Wide = 0;
        let mut sum = D::zero();
        for ((c, (_, step)), value) in coordinate.iter().zip(&self.runs).zip(&self.values) {
            index += Wide::from(*c) * Wide::from(*step);
            let part = value.times(&D::Extent::from(*c)).fits_as::<D::Extent>(OP)?;
            sum = sum.plus(&part).fits_as::<D::Extent>(OP)?;
        }
        let index = i64::try_from(index).map_err(|_| D::Extent::overflow(OP))?;
        let value = self.outer.eval(&D::Extent::from(index)).fits_as::<D::Extent>(OP)?;
        Ok((value, sum))
    }

    fn differs(&self, coordinate: &[i64]) -> Result<bool, LayoutError> {
        let (value, sum) = self.sides(coordinate)?;
        differ(&value, &sum)
    }

    /// The first coordinate at which a level carries, when the indices are raised mode by mode.
    fn first_carry(&self) -> Option<Vec<i64>> {
        let mut coordinate = alloc::vec![0; self.runs.len()];
        let mut sums = alloc::vec![0; self.ends.len()];
        for (l, (extent, step)) in self.runs.iter().enumerate() {
            let mut first: Option<Wide> = None;
            for (end, sum) in self.ends.iter().zip(&sums) {
                let part = Wide::from(*step).abs() % end;
                if part > 0 {
                    let at: Wide = (end - sum + part - 1) / part;
                    first = Some(first.map_or(at, |first| first.min(at)));
                }
            }
            if let Some(at) = first.filter(|at| *at < Wide::from(*extent)) {
                coordinate[l] = at as i64;
                return Some(coordinate);
            }
            coordinate[l] = extent - 1;
            for (end, sum) in self.ends.iter().zip(&mut sums) {
                *sum += Wide::from(*step).abs() % end * Wide::from(extent - 1);
            }
        }
        None
    }

    /// The first coordinate of the box at which the two sides differ.
    fn search(&self) -> Result<Option<Vec<i64>>, LayoutError> {
        let whole: Vec<(i64, i64)> = self.runs.iter().map(|(extent, _)| (0, extent - 1)).collect();
        let mut parts = alloc::vec![whole];
        let mut examined = 0;
        while let Some(part) = parts.pop() {
            examined += 1;
            if examined > MAX_CASES {
                return Err(LayoutError::Undecided { op: OP, limit: MAX_CASES });
            }
            let cost = self.ends.len().max(1) * self.runs.len().max(1);
            self.outer.work.spend(cost).map_err(|halt| halt.refusal(OP, examined - 1))?;
            match self.carrying(&part) {
                None => {
                    let corner: Vec<i64> = part.iter().map(|(low, _)| *low).collect();
                    if self.differs(&corner)? {
                        return Ok(Some(corner));
                    }
                }
                Some(widest) => {
                    let (low, high) = part[widest];
                    let middle = low + (high - low) / 2;
                    let (mut lower, mut upper) = (part.clone(), part);
                    lower[widest] = (low, middle);
                    upper[widest] = (middle + 1, high);
                    parts.push(upper);
                    parts.push(lower);
                }
            }
        }
        Ok(None)
    }

    /// None when no level carries within the part; otherwise the coordinate that contributes most
    /// to a carry.
    fn carrying(&self, part: &[(i64, i64)]) -> Option<usize> {
        let (mut least, mut greatest): (Wide, Wide) = (0, 0);
        for ((low, high), (_, step)) in part.iter().zip(&self.runs) {
            let (a, b) = (Wide::from(*low) * Wide::from(*step), Wide::from(*high) * Wide::from(*step));
            least += a.min(b);
            greatest += a.max(b);
        }
        let moving = || part.iter().zip(&self.runs).enumerate().filter(|(_, ((low, high), _))| low < high);
        let widest = |weight: &dyn Fn(Wide) -> Wide| {
            moving()
                .max_by_key(|(_, ((low, high), (_, step)))| Wide::from(high - low) * weight(Wide::from(*step).abs()))
                .map(|(position, _)| position)
        };
        for end in &self.ends {
            if least < 0 && greatest > 0 {
                let aligned = least % end == 0 && moving().all(|(_, (_, (_, step)))| Wide::from(*step) % end == 0);
                let within = -end < least
                    && greatest < *end
                    && moving().all(|(_, (_, (_, step)))| Wide::from(*step).abs() < *end);
                if !aligned && !within {
                    return widest(&|step| step);
                }
            } else {
                let base = least.abs().min(greatest.abs()) % end;
                let reach: Wide = moving()
                    .map(|(_, ((low, high), (_, step)))| Wide::from(high - low) * (Wide::from(*step).abs() % end))
                    .sum();
                if base + reach >= *end {
                    return widest(&|step| step % end);
                }
            }
        }
        None
    }

    /// A smaller coordinate with the same failure: each index in turn is reduced as far as the
    /// failure remains.
    fn shrink(&self, mut coordinate: Vec<i64>) -> Vec<i64> {
        for l in 0..coordinate.len() {
            let high = coordinate[l];
            let mut tried = 0;
            while tried < high {
                coordinate[l] = tried;
                if self.differs(&coordinate).unwrap_or(false) {
                    break;
                }
                tried = if tried < 8 { tried + 1 } else { tried.saturating_mul(2) };
                coordinate[l] = high;
            }
        }
        coordinate
    }
}

/// The end of a level that never carries: greater than every sum.
const ENDLESS: Wide = 1 << 120;

/// Proves that no sum of runs carries at a level with this end, for every value of the parameters.
/// The error has the condition that is not proved.
fn stays_below<N: Extent>(end: &N, runs: &[(usize, LinearPiece<N>)]) -> Result<(), LayoutError> {
    let one_sign = runs.iter().all(|(_, run)| run.negative) || runs.iter().all(|(_, run)| !run.negative);
    let (mut rising, mut falling, mut aligned) = (N::zero(), N::zero(), true);
    for (_, run) in runs {
        let (_, part) = run.step.divide_given(end, &[&run.extent]).fits_as::<N>(OP)?;
        aligned &= part.is_zero().proved();
        // If steps have both signs, the sums cross zero, and whole steps count instead of parts.
        let counted = if one_sign { &part } else { &run.step };
        let reach = run.extent.minus(&N::one()).and_then(|last| last.times(counted)).fits_as::<N>(OP)?;
        let sum = if run.negative { &mut falling } else { &mut rising };
        *sum = sum.plus(&reach).fits_as::<N>(OP)?;
    }
    for sum in [&rising, &falling] {
        if !aligned && !sum.less(end).proved() {
            return Err(LayoutError::open(OP, Condition::Less, sum, end));
        }
    }
    Ok(())
}

fn differ<D: Stride>(value: &D, sum: &D) -> Result<bool, LayoutError> {
    match value.same(sum) {
        Truth::Open => {
            let question = Question::plain(Condition::Equal, value, sum);
            Err(LayoutError::Open { op: OP, question: Box::new(question) })
        }
        same => Ok(same.refuted()),
    }
}

/// Decides whether `A` is additive over the runs of B; the error has a coordinate at which it is
/// not.
#[cold]
pub(crate) fn decide<D: Stride>(outer: &mut Outer<D>, b: TreeRef<'_, Leaf<D::Extent>>) -> Result<(), LayoutError> {
    let mut runs: Vec<(usize, LinearPiece<D::Extent>)> = Vec::new();
    for (number, leaf) in b.leaves.iter().enumerate() {
        if leaf.extent.is_one().proved() || leaf.stride.is_zero().proved() {
            continue;
        }
        split_mode(outer, b, number, |run| runs.push((number, run)))?;
    }
    let Some(steps) = Steps::new(outer, &runs)? else { return Ok(()) };
    let one_sign = runs.iter().all(|(_, run)| run.negative) || runs.iter().all(|(_, run)| !run.negative);
    let witness = match steps.first_carry() {
        Some(first) if one_sign && steps.differs(&first)? => Some(first),
        _ => steps.search()?,
    };
    let Some(witness) = witness else { return Ok(()) };
    Err(explain(&steps, b, &runs, steps.shrink(witness)))
}

/// The error for a coordinate of the runs at which the two sides differ, expressed in the modes of
/// B.
fn explain<D: Stride>(
    steps: &Steps<'_, D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    runs: &[(usize, LinearPiece<D::Extent>)],
    witness: Vec<i64>,
) -> LayoutError {
    let Ok((value, sum)) = steps.sides(&witness) else { return D::Extent::overflow(OP) };
    // A coordinate of a leaf of B counts steps of the leaf; a coordinate of a run counts multiples
    // of them.
    let stride = |leaf: usize| b.leaves.get(leaf).and_then(|leaf| leaf.stride.known()).map_or(0, i64::abs);
    let mut coordinate: SmallVec<[i64; 8]> = SmallVec::from_elem(0, b.leaves.len());
    for (c, (leaf, run)) in witness.iter().zip(runs) {
        if let Some(index) = coordinate.get_mut(*leaf) {
            *index += c * (run.step.known().unwrap_or(0) / stride(*leaf).max(1));
        }
    }
    // The innermost level at which the sum carries is the mode of A in the message.
    let level = steps
        .ends
        .iter()
        .position(|end| {
            let parts: Wide = witness
                .iter()
                .zip(&steps.runs)
                .map(|(c, (_, step))| Wide::from(*c) * (Wide::from(*step).abs() % end))
                .sum();
            parts >= *end || steps.runs.iter().any(|(_, step)| *step < 0)
        })
        .unwrap_or(0);
    refusal(steps.outer, b, coordinate, level, &value, &sum).unwrap_or_else(|| D::Extent::overflow(OP))
}

/// The refusal with a coordinate of B at which level `level` carries; None if a number is not
/// known.
fn refusal<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    coordinate: SmallVec<[i64; 8]>,
    level: usize,
    value: &D,
    sum: &D,
) -> Option<LayoutError> {
    // The message names the two modes that reach farthest: the sum crosses the end of the level
    // along the first, starting from the second.
    let (mut crossing, mut inside) = (None, None);
    let (mut farthest, mut second) = (0, 0);
    for (number, index) in coordinate.iter().enumerate().filter(|(_, index)| **index > 0) {
        let mode = CarryMode::of(b, number)?;
        let reach = mode.reach(*index);
        if reach > farthest {
            (second, inside) = (farthest, crossing);
            (farthest, crossing) = (reach, Some(mode));
        } else if reach > second {
            (second, inside) = (reach, Some(mode));
        }
    }
    let crossing = crossing?;
    carrying(outer, b, coordinate, level, (crossing, inside.unwrap_or(crossing)), value, sum)
}

/// The refusal, given the mode that crosses the end and the mode from which it starts.
#[inline(always)]
fn carrying<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    coordinate: SmallVec<[i64; 8]>,
    level: usize,
    (crossing, inside): (CarryMode, CarryMode),
    value: &D,
    sum: &D,
) -> Option<LayoutError> {
    Some(LayoutError::Carry(Box::new(Carry {
        profile: b.profile.to_owned(),
        above: Path::new(),
        crossing: crossing.0,
        inside: inside.0,
        mode_of_a: level,
        run: outer.levels.get(level)?.end.known()?,
        coordinate,
        value: Offset::of(value),
        sum: Offset::of(sum),
    })))
}

/// A leaf of B as a [`Carry`] stores it: its index, extent and stride.
#[derive(Clone, Copy)]
struct CarryMode((usize, i64, i64));

impl CarryMode {
    #[inline]
    fn of<N: Extent>(b: TreeRef<'_, Leaf<N>>, number: usize) -> Option<CarryMode> {
        let leaf = b.leaves.get(number)?;
        Some(CarryMode((number, leaf.extent.known()?, leaf.stride.known()?)))
    }

    /// The distance covered by this many steps.
    #[inline]
    fn reach(self, steps: i64) -> u64 {
        self.0.2.unsigned_abs().saturating_mul(steps.unsigned_abs())
    }
}

/// An earlier run that may carry together with the current one.
struct Partner<'a, D: Stride> {
    leaf: usize,
    run: &'a Leaf<D>,
    /// The number of steps of its leaf that make one step of the run.
    scale: D::Extent,
    /// The part of its step below the end of the level that carries.
    part: D::Extent,
    /// The most that the run adds at that level.
    reach: D::Extent,
}

/// The refusal at the first carry, if two runs show that it does not cancel: the run that does not
/// fit, in leaf `number`, and the earlier run with the largest part at the level. None if these two
/// runs do not show it.
///
/// `placed` are the leaves of the result so far, `stride` the value of the run, whose part at the
/// level is known. All steps have one sign.
#[cold]
#[inline(never)]
pub(crate) fn refute<D: Stride>(
    outer: &Outer<D>,
    b: TreeRef<'_, Leaf<D::Extent>>,
    placed: &[Leaf<D>],
    number: usize,
    run: LinearPiece<D::Extent>,
    stride: D,
    level: usize,
) -> Option<LayoutError> {
    let one = D::Extent::one();
    let OuterLevel { end, part, .. } = outer.levels.get(level)?;
    let mut best: Option<Partner<'_, D>> = None;
    let mut placed = placed.iter();
    let mut scale = one.clone();
    for (position, leaf) in b.leaves.iter().enumerate().take(number + 1) {
        scale = one.clone();
        if leaf.extent.is_one().proved() || leaf.stride.is_zero().proved() {
            placed.next();
            continue;
        }
        let mut step = leaf.stride.magnitude()?;
        // The extents of the runs of a leaf multiply to its extent; the current leaf may have no
        // run yet.
        while scale != leaf.extent
            && let Some(run) = placed.next()
        {
            let (_, part) = step.divide(end)?;
            let reach = run.extent.minus(&one)?.times(&part)?;
            let better = best.as_ref().is_none_or(|best| best.reach.less(&reach).proved());
            let next = (step.times(&run.extent)?, scale.times(&run.extent)?);
            if better {
                best = Some(Partner { leaf: position, run, scale, part, reach });
            }
            (step, scale) = next;
        }
    }
    let partner = best?;
    // The fewest steps of the partner, and then of the run, that carry.
    let most = run.extent.minus(&one)?;
    let steps = end.minus(&most.times(part)?)?.divide_up(&partner.part)?;
    let others = end.minus(&partner.part.times(&steps)?)?.divide_up(part)?;
    let within =
        |count: &D::Extent, run: &D::Extent| D::Extent::zero().less(count).proved() && count.less(run).proved();
    if !within(&steps, &partner.run.extent) || !within(&others, &run.extent) {
        return None;
    }
    let one_way = b.leaves.get(partner.leaf)?.stride.magnitude()?;
    let near = partner.scale.times(&steps)?;
    let index = one_way.times(&near)?.plus(&run.step.times(&others)?)?;
    let value = outer.eval(&index)?;
    let value = if run.negative { value.times(&D::Extent::from(-1))? } else { value };
    let sum = partner.run.stride.times(&steps)?.plus(&stride.times(&others)?)?;
    if !value.same(&sum).refuted() {
        return None;
    }
    let (near, far) = (near.known()?, scale.times(&others)?.known()?);
    let mut coordinate: SmallVec<[i64; 8]> = SmallVec::from_elem(0, b.leaves.len());
    *coordinate.get_mut(partner.leaf)? += near;
    *coordinate.get_mut(number)? += far;
    // Along the mode of greater extent the sum crosses the end, starting from the other mode.
    let (first, second) = (CarryMode::of(b, partner.leaf)?, CarryMode::of(b, number)?);
    let modes = if second.reach(far) > first.reach(near) { (second, first) } else { (first, second) };
    carrying(outer, b, coordinate, level, modes, &value, &sum)
}

/// The first `p` with `A(p * step) != p * A(step)`, or `extent` when there is none, given that no
/// carry sets in before `from` and that several set in there.
#[cold]
pub(crate) fn first_break<D: Stride>(
    outer: &Outer<D>,
    step: D::Extent,
    value: D,
    extent: D::Extent,
    from: D::Extent,
) -> Result<D::Extent, LayoutError> {
    let open = || LayoutError::open(OP, Condition::Equal, &step, &D::Extent::zero());
    let (Some(e), Some(s), Some(mut at)) = (step.known(), extent.known(), from.known()) else { return Err(open()) };
    let ends: Vec<Wide> =
        outer.levels.iter().map(|level| level.end.known().map(Wide::from)).collect::<Option<_>>().ok_or_else(open)?;
    for examined in 0..MAX_CASES {
        outer.work.spend(ends.len()).map_err(|halt| halt.refusal(OP, examined))?;
        let p = D::Extent::from(at);
        let index = step.times(&p).fits_as::<D::Extent>(OP)?;
        if differ(&outer.eval(&index).fits_as::<D::Extent>(OP)?, &value.times(&p).fits_as::<D::Extent>(OP)?)? {
            return Ok(p);
        }
        // The next index at which some level carries.
        let next = ends
            .iter()
            .filter(|end| Wide::from(e) % **end != 0)
            .map(|end| {
                let part = Wide::from(e) % end;
                let carries = Wide::from(at) * part / end;
                ((carries + 1) * end + part - 1) / part
            })
            .min();
        match next.filter(|next| *next < Wide::from(s)) {
            Some(next) => at = next as i64,
            None => return Ok(extent),
        }
    }
    Err(LayoutError::Undecided { op: OP, limit: MAX_CASES })
}
