//! Reductions along modes of a distributed tile: sums, maxima and so on.
//!
//! Law: each element of the result combines all elements of the tile that have the same coordinate
//! in the kept modes, each of them once, however many threads hold it. The order is unspecified.
//! Every thread that holds an element of the result has the same bits, provided that the
//! combination is commutative.
//!
//! The exchanges follow from the digits of the distribution. Digits of values along a reduced mode
//! are combined in registers. Digits of threads within a warp are combined by shuffles with the
//! lane whose bit differs. Digits between warps use shared memory: one thread of each set writes
//! the set's result, and after one barrier every thread reads what it needs. Digits that count
//! copies are ignored.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

use super::Build;
use super::distributed::Distributed;
use super::exchange::Exchange;
use super::number::{Flag, Num};
use super::tensor::View;
use crate::distribution::{Digit, Distribution};
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::WARP_LANES;
use crate::program::operation::{Binary, Number, Shuffle};
use crate::program::{Location, Source};

/// The combination of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// `a + b`.
    Sum,
    /// `a * b`.
    Product,
    /// The minimum; NaN if one is NaN.
    Minimum,
    /// The maximum; NaN if one is NaN.
    Maximum,
}

impl Reduction {
    /// The operation on two numbers of a type.
    pub(crate) fn binary(self, number: Number) -> Binary {
        match self {
            Reduction::Sum => Binary::Add,
            Reduction::Product => Binary::Multiply,
            Reduction::Minimum if number.is_float() => Binary::MinimumNan,
            Reduction::Minimum => Binary::Minimum,
            Reduction::Maximum if number.is_float() => Binary::MaximumNan,
            Reduction::Maximum => Binary::Maximum,
        }
    }

    /// The identity, which changes no number that it is combined with. Infinity stands for the end
    /// of an integer type.
    pub(crate) fn neutral(self) -> f64 {
        match self {
            Reduction::Sum => 0.0,
            Reduction::Product => 1.0,
            Reduction::Minimum => f64::INFINITY,
            Reduction::Maximum => f64::NEG_INFINITY,
        }
    }

    /// Of two numbers with indices, the larger one with its index. NaN is greater than every
    /// number. Of equal numbers, or two NaNs, the one with the smaller index wins.
    #[track_caller]
    pub fn greater<'k>(a: [Num<'k>; 2], b: [Num<'k>; 2]) -> [Num<'k>; 2] {
        let (first, second) = (Reduction::reaches(a[0], b[0]), Reduction::reaches(b[0], a[0]));
        let taken = first.not().or(second.and(b[1].lt(a[1])));
        [taken.select(b[0], a[0]), taken.select(b[1], a[1])]
    }

    /// Whether a number is at least another one, where NaN is greater than every number and equal
    /// to NaN.
    #[track_caller]
    pub fn reaches<'k>(a: Num<'k>, b: Num<'k>) -> Flag<'k> {
        let at_least = b.le(a);
        if a.element().is_float() { at_least.or(a.eq(a).not()) } else { at_least }
    }

    #[track_caller]
    pub(crate) fn of<'k>(self, a: Num<'k>, b: Num<'k>) -> Num<'k> {
        match self {
            Reduction::Sum => a + b,
            Reduction::Product => a * b,
            Reduction::Minimum => a.min(b),
            Reduction::Maximum => a.max(b),
        }
    }
}

/// The combination of two sets of numbers.
type Combination<'a, 'k> = dyn Fn(&[Num<'k>], &[Num<'k>]) -> Result<Vec<Num<'k>>, KernelError> + 'a;

/// The digits of a thread's index along which elements are combined.
struct ThreadDigits {
    /// The bits of the lane.
    masks: Vec<u32>,
    /// Digits that count warps, or whose number of values within a warp is no power of two.
    across: Vec<Digit>,
}

impl ThreadDigits {
    /// The thread digits of a distribution along reduced modes.
    fn of(held: &Distribution, modes: &[usize]) -> ThreadDigits {
        let lanes = WARP_LANES as i64;
        let mut digits = ThreadDigits { masks: Vec::new(), across: Vec::new() };
        for digit in held.thread_digits() {
            if digit.copies() || !digit.steps.iter().all(|(mode, _)| modes.contains(mode)) {
                continue;
            }
            // The part of the digit that counts lanes.
            let within = if held.threads() % lanes == 0 && digit.below < lanes && lanes % digit.below == 0 {
                digit.extent.min(lanes / digit.below)
            } else {
                1
            };
            if !(within as u64).is_power_of_two() || digit.extent % within != 0 {
                digits.across.push(digit);
                continue;
            }
            digits.masks.extend((0..within.trailing_zeros()).map(|bit| (digit.below << bit) as u32));
            if digit.extent > within {
                let (below, extent) = (digit.below * within, digit.extent / within);
                digits.across.push(Digit { below, extent, steps: digit.steps });
            }
        }
        digits
    }
}

impl<'k> Distributed<'k> {
    /// Reduces the tile along some modes, which keep extent 1. Every thread that held an element of
    /// a row holds its result.
    ///
    /// Errors: there is no such mode; the type has no arithmetic; the distribution cannot be split
    /// along the modes.
    #[track_caller]
    pub fn reduce(&self, modes: &[usize], reduction: Reduction) -> Result<Distributed<'k>, KernelError> {
        let combine = |a: &[Num<'k>], b: &[Num<'k>]| Ok(vec![reduction.of(a[0], b[0])]);
        let mut reduced = reduce_tiles(&[self], modes, &combine, "reduce", Location::caller())?;
        Ok(reduced.remove(0))
    }

    /// The greatest elements along some modes, and the index of each along these modes together,
    /// the first mode fastest, as i32. Of equal elements, the first wins. NaN is greater than every
    /// number, so the first NaN is found.
    ///
    /// Errors: as [`Distributed::reduce`].
    #[track_caller]
    pub fn argmax(&self, modes: &[usize]) -> Result<(Distributed<'k>, Distributed<'k>), KernelError> {
        let location = Location::caller();
        let build = self.fragment.build;
        build.core().begin(Source { statement: "argmax", location });
        let index = build.indices(&self.held, modes).map_err(|refusal| refusal.at("argmax", location))?;
        let combine = |a: &[Num<'k>], b: &[Num<'k>]| Ok(Reduction::greater([a[0], a[1]], [b[0], b[1]]).to_vec());
        let mut reduced = reduce_tiles(&[self, &index], modes, &combine, "argmax", location)?;
        let index = reduced.remove(1);
        Ok((reduced.remove(0), index))
    }
}

impl Build {
    /// Reduces several tiles of one distribution together. `combine` computes one set of numbers,
    /// one for each tile, from two such sets. It should be associative and commutative, because the
    /// order of the elements is unspecified.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Element, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Sum and sum of squares of rows of 512, with one barrier.
    /// let rows = Distribution::new((1, 512), "(128,4):(4,1)")?;
    /// let kernel = Kernel::build("moments", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(M,512):(512,1)")?, k.output::<f32>("y", "(M,2):(2,1)")?);
    ///     let x = x.local_tile((1, 512), k.block("(x,0)")?)?.load_distributed(&rows)?;
    ///     let squares = x.map(|x| Ok(x * x))?;
    ///     let both = k.reduce_together(&[&x, &squares], &[1], |a, b| Ok(vec![a[0] + b[0], a[1] + b[1]]))?;
    ///     for (at, moment) in both.iter().enumerate() {
    ///         let block = k.block(&format!("(x,{at})"))?;
    ///         y.local_tile((1, 1), block)?.store_distributed(moment)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// interpret::check(kernel.program(), &[("M", 3)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Distributed::reduce`]; the tiles have different distributions; the types of the
    /// combination's results differ from those of its operands.
    #[track_caller]
    pub fn reduce_together<'k>(
        &'k self,
        tiles: &[&Distributed<'k>],
        modes: &[usize],
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Result<Vec<Num<'k>>, KernelError>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        reduce_tiles(tiles, modes, &combine, "reduce_together", Location::caller())
    }
}

impl Build {
    /// Combines several tiles with equally many others, element by element. `combine` computes one
    /// set of numbers, one for each tile, from two such sets.
    ///
    /// Errors: the tiles have different distributions, or one list is longer; an element has no
    /// value yet; the combination returns another number of numbers.
    #[track_caller]
    pub fn combine_together<'k>(
        &'k self,
        first: &[&Distributed<'k>],
        second: &[&Distributed<'k>],
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Result<Vec<Num<'k>>, KernelError>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let location = Location::caller();
        let refuse = |refusal: Reason| refusal.at("combine_together", location);
        self.core().begin(Source { statement: "combine_together", location });
        let held = first.first().map(|tile| tile.held.clone());
        if first.len() != second.len() || first.iter().chain(second).any(|tile| Some(&tile.held) != held.as_ref()) {
            let because = "the tiles that are combined are distributed in different ways".to_string();
            let layout = held.map_or(String::new(), |held| held.to_string());
            return Err(refuse(Reason::Distribution { layout, because }));
        }
        let numbers = |tiles: &[&Distributed<'k>]| -> Result<Vec<Vec<Num<'k>>>, KernelError> {
            tiles.iter().map(|tile| tile.fragment.numbers_at("combine_together", location)).collect()
        };
        let (a, b) = (numbers(first)?, numbers(second)?);
        let mut results: Vec<Vec<Num<'k>>> = vec![Vec::new(); first.len()];
        for value in 0..a.first().map_or(0, Vec::len) {
            let at = |lists: &[Vec<Num<'k>>]| lists.iter().map(|list| list[value]).collect::<Vec<_>>();
            let both = combine(&at(&a), &at(&b))?;
            if both.len() != results.len() {
                return Err(refuse(Reason::Sizes {
                    left: "what is combined".to_string(),
                    left_size: results.len().to_string(),
                    right: "the combination".to_string(),
                    right_size: both.len().to_string(),
                }));
            }
            results.iter_mut().zip(both).for_each(|(list, number)| list.push(number));
        }
        self.core().begin(Source { statement: "combine_together", location });
        results.iter().zip(first).map(|(list, tile)| tile.with_values(list).map_err(refuse)).collect()
    }
}

/// The numbers of each tile, for each value that a thread holds.
type Values<'k> = Vec<Vec<Num<'k>>>;

fn reduce_tiles<'k>(
    tiles: &[&Distributed<'k>],
    modes: &[usize],
    combine: &Combination<'_, 'k>,
    statement: &'static str,
    location: Location,
) -> Result<Vec<Distributed<'k>>, KernelError> {
    let refuse = |refusal: Reason| refusal.at(statement, location);
    let Some(first) = tiles.first() else { return Ok(Vec::new()) };
    let (build, held) = (first.fragment.build, &first.held);
    build.core().begin(Source { statement, location });
    if let Some(other) = tiles.iter().find(|other| other.held != *held) {
        let because = format!("the other tile is distributed as {}", other.held);
        return Err(refuse(Reason::Distribution { layout: held.to_string(), because }));
    }
    let target = held.along_others(modes).map_err(refuse)?;
    let checked = |a: &[Num<'k>], b: &[Num<'k>]| {
        let found = combine(a, b)?;
        let alike = found.len() == a.len() && found.iter().zip(a).all(|(new, old)| new.element() == old.element());
        if alike {
            return Ok(found);
        }
        let sizes = |numbers: &[Num<'k>]| {
            numbers.iter().map(|number| number.element().to_string()).collect::<Vec<_>>().join(", ")
        };
        Err(refuse(Reason::Sizes {
            left: "what is combined".to_string(),
            left_size: sizes(a),
            right: "the combination".to_string(),
            right_size: sizes(&found),
        }))
    };
    // In registers: first neighbours, then their results.
    let numbers: Vec<Vec<Num<'k>>> =
        tiles.iter().map(|tile| tile.fragment.numbers_at(statement, location)).collect::<Result<_, _>>()?;
    let (onto, digits) = (held.values_onto(modes), held.value_digits());
    let counted =
        |value: &usize| digits.iter().filter(|digit| digit.copies()).all(|digit| digit.of(*value as i64) == 0);
    let mut groups: Vec<Vec<Vec<Num<'k>>>> = vec![Vec::new(); target.values() as usize];
    for value in (0..held.values() as usize).filter(counted) {
        groups[onto[value]].push(numbers.iter().map(|tile| tile[value]).collect());
    }
    let mut values: Values<'k> = Vec::new();
    for group in groups {
        values.extend(in_pairs(&group, &checked)?);
    }
    // Between lanes.
    let moves = ThreadDigits::of(held, modes);
    let iteration = |mask: u32, values: &mut Values<'k>| -> Result<(), KernelError> {
        build.core().begin(Source { statement, location });
        let shuffle = Shuffle::Butterfly(mask);
        let other = |number: &Num<'k>| {
            let register = build.core().shuffled(number.register(), &shuffle, None);
            Num::new(build, register, number.element())
        };
        let fetched: Values<'k> = values.iter().map(|numbers| numbers.iter().map(other).collect()).collect();
        let both = values.iter().zip(&fetched);
        *values = both.map(|(mine, other)| checked(mine, other)).collect::<Result<_, _>>()?;
        Ok(())
    };
    for mask in &moves.masks {
        iteration(*mask, &mut values)?;
    }
    if !moves.across.is_empty() {
        build.core().begin(Source { statement, location });
        let (arrays, exchange, taken, masks) = build.leave_partial(&values, held, &target, &moves).map_err(refuse)?;
        for (value, numbers) in values.iter_mut().enumerate() {
            // The numbers are read one after another, which takes few registers.
            let lists = build.taken(&arrays, &exchange, value, &taken).map_err(refuse)?;
            let of = |member: usize| lists.iter().map(|list| list[member]).collect::<Vec<_>>();
            let members = lists.first().map_or(0, Vec::len);
            *numbers = (1..members).try_fold(of(0), |sum, member| checked(&sum, &of(member)))?;
        }
        arrays.iter().for_each(|array| build.return_scratch(array));
        for mask in masks {
            iteration(mask, &mut values)?;
        }
    }
    build.core().begin(Source { statement, location });
    let made = |tile: usize| -> Result<Distributed<'k>, Reason> {
        let numbers: Vec<Num<'k>> = values.iter().map(|numbers| numbers[tile]).collect();
        let fragment = build.fragment_of(numbers[0].element(), &Tree::leaf(target.values()))?;
        fragment.put(&numbers)?;
        Ok(Distributed { fragment, held: target.clone() })
    };
    (0..tiles.len()).map(|tile| made(tile).map_err(refuse)).collect()
}

/// Combines sets of numbers in a binary tree, neighbours first. One half is finished before the
/// other begins, so that few numbers occupy registers.
fn in_pairs<'k>(group: &[Vec<Num<'k>>], combine: &Combination<'_, 'k>) -> Result<Option<Vec<Num<'k>>>, KernelError> {
    let (first, rest) = match group {
        [] => return Ok(None),
        [one] => return Ok(Some(one.clone())),
        // The first part has the greatest power of two of the sets that leaves some for the second
        // part.
        _ => group.split_at(group.len().div_ceil(2).next_power_of_two()),
    };
    match (in_pairs(first, combine)?, in_pairs(rest, combine)?) {
        (Some(first), Some(rest)) => Ok(Some(combine(&first, &rest)?)),
        (first, rest) => Ok(first.or(rest)),
    }
}

/// The state of a reduction after a barrier: the arrays, the exchange, the member whose numbers a
/// thread reads, and the bits of the lane along which numbers must still be combined.
type PendingReduction<'k> = (Vec<View<'k>>, Exchange, Slot<Expr>, Vec<u32>);

impl Build {
    /// Writes the partial results of each warp to shared memory. If a whole warp needs the same
    /// numbers, each lane reads those of one member.
    fn leave_partial<'k>(
        &'k self,
        values: &Values<'k>,
        held: &Distribution,
        target: &Distribution,
        moves: &ThreadDigits,
    ) -> Result<PendingReduction<'k>, Reason> {
        let (member, members) = Exchange::number(self, &moves.across)?;
        let kept: Vec<Digit> = target.thread_digits().into_iter().filter(|digit| !digit.copies()).collect();
        let (set, sets) = Exchange::number(self, &kept)?;
        let exchange = Exchange { member, members, set, sets };
        // If several threads hold the same number, one of them writes it.
        let mut same = held.copy_digits();
        same.extend(moves.masks.iter().map(|mask| (i64::from(*mask), 2)));
        let elements: Vec<Element> = values[0].iter().map(|number| number.element()).collect();
        let lists = elements
            .iter()
            .enumerate()
            .map(|(tile, element)| (*element, values.iter().map(|numbers| numbers[tile]).collect::<Vec<_>>()));
        let arrays = self.leave(&exchange, &same, &lists.collect::<Vec<_>>())?;
        let lanes = WARP_LANES as i64;
        let spread = held.threads() % lanes == 0
            && (lanes / 8..=lanes).contains(&members)
            && (members as u64).is_power_of_two()
            && kept.iter().all(|digit| digit.below % lanes == 0);
        if !spread {
            return Ok((arrays, exchange, Slot::All, Vec::new()));
        }
        let mut core = self.core();
        let thread = core.thread()?;
        let lane = core.digit(&thread, 1, members)?;
        drop(core);
        Ok((arrays, exchange, Slot::At(lane), (0..members.trailing_zeros()).map(|bit| 1 << bit).collect()))
    }
}
