//! Tiles of tensors in global memory: which layouts access them well, and what each access costs.
//!
//! Law: bit `b` of an element's number in the tile corresponds to a step in memory, counted in
//! elements ([`Place::steps`]). Steps are computed at sizes that satisfy the facts and have no
//! other divisors. `analysis` counts the sectors of an access at these sizes, lane by lane. Tiles
//! of coordinates are evaluated if they do not depend on the contents of a tensor. Other
//! coordinates are assumed to be far apart.

use std::collections::BTreeSet;

use tilewright_kernel::Element;
use tilewright_layout::analysis::{Access, Storage, global_access};
use tilewright_layout::symbolic::{Declarations, Expr, Parameter, Symbolic, Values};
use tilewright_layout::{Layout, LayoutError};

use crate::error::{Reason, TileError};
use crate::held::Held;
use crate::program::{Index, Program, Tensor};

/// The bytes of a thread's widest access.
const VECTOR_BYTES: i64 = 16;
/// The bytes of a sector.
const SECTOR_BYTES: i64 = 32;
/// The assumed distance of unknown coordinates. It is odd, so that their offsets have no divisors
/// except those of the stride.
const ANYWHERE: i64 = (1 << 20) + 1;
/// The approximate value that is assumed for a size that is known only at launch.
const TYPICAL: i64 = 4096;

/// Sizes that the facts of a program admit. A size has no divisors except those that its facts
/// state. Sizes are about [`TYPICAL`], or smaller if the tensors would otherwise have more elements
/// than fit in 64 bits.
pub(crate) fn typical(program: &Program) -> Result<Values, TileError> {
    let mut found = sizes_of(program, TYPICAL)?;
    for size in [256, 16, 1] {
        if program.tensors().iter().all(|tensor| is_counted(tensor, &found)) {
            break;
        }
        found = sizes_of(program, size)?;
    }
    Ok(found)
}

/// Whether the number of elements of a tensor fits in 64 bits at given sizes.
fn is_counted(tensor: &Tensor, sizes: &Values) -> bool {
    let layout = tensor.layout.parse::<Layout<Expr>>().and_then(|layout| layout.numbers(sizes));
    layout.and_then(|layout| layout.cosize()).is_ok()
}

fn sizes_of(program: &Program, about: i64) -> Result<Values, TileError> {
    let (mut values, mut names) = (Values::new(), Declarations::new());
    let tensors = || program.tensors().iter().zip(&program.declared);
    for (tensor, (place, _)) in tensors() {
        let gathered = names.gather(&tensor.layout);
        gathered.map_err(|error| Reason::from(error).at("tensor", *place))?;
    }
    for (tensor, (place, _)) in tensors() {
        let refused = |error: LayoutError| Reason::from(error).at("tensor", *place);
        let layout: Layout<Expr> = tensor.layout.parse().map_err(refused)?;
        for name in layout.parameters().iter().filter_map(Parameter::name) {
            // The facts about this size, from all tensors.
            let facts = names.parameter(name).map_err(refused)?.facts();
            let divisor = facts.divisor().max(1);
            let value = divisor.saturating_mul((about / divisor) | 1);
            let value = facts.greatest().map_or(value, |most| value.min(most - most.rem_euclid(divisor)));
            let least = |least: i64| least.saturating_add((-least).rem_euclid(divisor));
            values.set_named(name, facts.least().map_or(value, |own| value.max(least(own))));
        }
    }
    Ok(values)
}

/// A tile of coordinates along a mode.
pub(crate) struct PickedMode<'p> {
    pub(crate) mode: usize,
    /// Its shape. Modes on which the coordinates do not depend have extent 1.
    pub(crate) shape: &'p [i64],
    /// Its elements, if they are known.
    pub(crate) coordinates: Option<&'p [i64]>,
}

/// Where the elements of a tile are in global memory.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// For each bit of an element's number, the distance in memory, in elements, of two elements
    /// that differ in this bit.
    pub(crate) steps: Vec<i64>,
    pub(crate) element: Element,
    /// The bits of modes whose coordinates come from other tiles. Each coordinate is a separate
    /// access.
    picked: BTreeSet<usize>,
    /// Whether these coordinates are unknown, and assumed to be far apart.
    pub(crate) assumed: bool,
    /// For a tile whose index counts elements: a divisor of the offset of its first element. 0 for
    /// a tile whose index counts tiles, because the steps divide its offset.
    aligned: i64,
}

/// The cost of an access by all threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessCost {
    /// The sectors of 32 bytes that contain the tile. They are the traffic of device memory.
    pub sectors: i64,
    /// The sectors that L1 moves, summed over all instructions.
    pub moved: i64,
    /// The lines of 128 bytes that instructions access.
    pub lines: i64,
    /// The load or store instructions of all warps.
    pub instructions: i64,
}

impl Place {
    /// A tile of a tensor at given sizes.
    pub(crate) fn new(
        program: &Program,
        tensor: usize,
        (shape, at): (&[i64], &[Index]),
        sizes: &Values,
    ) -> Result<Place, Reason> {
        let tensor = &program.tensors()[tensor];
        let layout: Layout<Expr> = tensor.layout.parse()?;
        let layout = layout.numbers(sizes)?;
        let (mut steps, mut aligned) = (Vec::new(), 0);
        for (mode, extent) in shape.iter().enumerate() {
            let own = if layout.profile().is_leaf() { Some(layout.clone()) } else { layout.mode(mode) };
            let Some(own) = own else {
                let wanted = format!("one of {} extents, as the tensor has,", layout.rank());
                return Err(Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted });
            };
            for bit in 0..extent.trailing_zeros() {
                steps.push(own.eval(&(1 << bit))?);
            }
            if let Some(index) = at.get(mode).filter(|index| index.by_element) {
                let parts = index.terms.iter().map(|(_, by)| *by).chain([index.constant]);
                let stride = own.eval(&1).unwrap_or(1);
                aligned = parts.fold(aligned, |all, by| divisor(all, by.saturating_mul(stride)));
            }
        }
        let known = if layout.profile().is_leaf() { 1 } else { layout.rank() };
        if known != shape.len() {
            let wanted = format!("one of {known} extents, as the tensor has,");
            return Err(Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted });
        }
        Ok(Place { steps, element: tensor.element, picked: BTreeSet::new(), assumed: false, aligned })
    }

    /// A tile of a tensor whose coordinates along some modes come from other tiles. Unknown
    /// coordinates are assumed to be far apart, by a multiple of the stride.
    pub(crate) fn gathered(
        program: &Program,
        tensor: usize,
        (shape, at): (&[i64], &[Index]),
        rows: &[PickedMode<'_>],
        sizes: &Values,
    ) -> Result<Place, Reason> {
        let mut place = Place::new(program, tensor, (shape, at), sizes)?;
        let bits_of = |mode: usize| {
            let first = shape[..mode].iter().map(|extent| extent.trailing_zeros() as usize).sum::<usize>();
            first..first + shape[mode].trailing_zeros() as usize
        };
        place.picked = rows.iter().flat_map(|own| bits_of(own.mode)).collect();
        place.picked.iter().for_each(|bit| place.steps[*bit] = 0);
        let layout: Layout<Expr> = program.tensors()[tensor].layout.parse()?;
        let layout = layout.numbers(sizes)?;
        for PickedMode { mode, shape: extents, coordinates } in rows {
            let own = if layout.profile().is_leaf() { Some(layout.clone()) } else { layout.mode(*mode) };
            let Some(own) = own else { continue };
            // The bits of the modes along which the tile of coordinates varies.
            let along = extents.iter().enumerate().filter(|(_, extent)| **extent > 1);
            let bits: Vec<usize> = along.flat_map(|(mode, _)| bits_of(mode)).collect();
            let offsets = coordinates.and_then(|all| all.iter().map(|at| own.eval(at).ok()).collect());
            let steps = offsets.and_then(|offsets: Vec<i64>| linear(&offsets));
            place.assumed |= steps.is_none() && !bits.is_empty();
            let far = own.eval(&1)?.saturating_mul(ANYWHERE);
            let steps = steps.unwrap_or((0..bits.len()).map(|bit| far.saturating_mul(1 << bit)).collect());
            for (bit, step) in bits.into_iter().zip(steps) {
                place.steps[bit] = place.steps[bit].saturating_add(step);
            }
        }
        Ok(place)
    }

    /// The number of elements of a thread's access: contiguous values, aligned to their number.
    pub(crate) fn vector(&self, held: &Held) -> i64 {
        let most = (VECTOR_BYTES / i64::from(self.element.bytes())).trailing_zeros();
        let beside = |bits: u32| {
            let low = held.values.iter().take(bits as usize).enumerate();
            let beside = |(at, bit): &(usize, &u8)| self.is_beside(usize::from(**bit), *at);
            let low: Vec<u8> = low.filter(beside).map(|(_, bit)| *bit).collect();
            let aligned = |(bit, step): (usize, &i64)| low.contains(&(bit as u8)) || step % (1 << bits) == 0;
            low.len() == bits as usize && self.aligned % (1 << bits) == 0 && self.steps.iter().enumerate().all(aligned)
        };
        1 << (0..=most).rev().find(|bits| beside(*bits)).unwrap_or(0)
    }

    /// Whether two elements that differ in a bit can be in one access of a thread, in which this
    /// bit is bit `at` of the position.
    fn is_beside(&self, bit: usize, at: usize) -> bool {
        self.steps[bit] == 1 << at && !self.picked.contains(&bit)
    }

    /// Whether aligned chunks of 16 bytes in memory hold elements along this mode of a tile alone.
    pub(crate) fn is_wide_along(&self, shape: &[i64], mode: usize) -> bool {
        let first: u32 = shape[..mode].iter().map(|extent| extent.trailing_zeros()).sum();
        let vector = (VECTOR_BYTES / i64::from(self.element.bytes())).trailing_zeros();
        let own = |bit: u32| first <= bit && bit < first + vector;
        shape[mode].trailing_zeros() >= vector
            && self.aligned % (1 << vector) == 0
            && (0..vector).all(|bit| self.steps[(first + bit) as usize] == 1 << bit)
            && self.steps.iter().enumerate().all(|(bit, step)| own(bit as u32) || step % (1 << vector) == 0)
    }

    /// The cost of an access in which each thread loads or stores the elements that it holds.
    pub(crate) fn cost(&self, held: &Held) -> Result<AccessCost, Reason> {
        // The order of a thread's values is free, so an access can combine those that are
        // contiguous.
        let mut held = held.clone();
        held.values.sort_by_key(|bit| (self.picked.contains(&usize::from(*bit)), self.steps[usize::from(*bit)].abs()));
        let held = &held;
        let modes: Vec<Layout> = self.steps.iter().map(|step| Layout::mode_of(2, *step)).collect::<Result<_, _>>()?;
        let storage = if modes.is_empty() { Layout::mode_of(1, 0)? } else { Layout::tuple(&modes)? };
        let (bits, vector) = (i64::from(self.element.bits()), self.vector(held));
        let refuse = |error: tilewright_layout::analysis::AnalysisError| Reason::Held {
            layout: held.to_string(),
            because: error.to_string(),
        };
        let access = Access::new("tile", &held.layout()?, bits, vector).map_err(refuse)?;
        let report = global_access(&Storage::from(&storage), &access).map_err(refuse)?;
        let instructions = report.requests().len() as i64;
        // If instructions share a sector, L1 serves all but the first.
        let far = |step: &&i64| step.abs() * i64::from(self.element.bytes()) >= SECTOR_BYTES;
        let sectors = 1 << self.steps.iter().filter(far).count().min(62);
        Ok(AccessCost { sectors, moved: report.sectors(), lines: report.lines(), instructions })
    }

    /// Layouts with coalesced lanes, for a number of thread bits. They differ in the width of a
    /// thread's access, and in whether the warps split the nearest or the farthest parts of the
    /// tile.
    pub(crate) fn coalesced(&self, thread_bits: usize) -> Vec<Held> {
        let mut near: Vec<u8> = (0..self.steps.len() as u8).collect();
        near.sort_by_key(|bit| {
            let step = self.steps[usize::from(*bit)].abs();
            (step == 0, step)
        });
        let widest = (VECTOR_BYTES / i64::from(self.element.bytes())).trailing_zeros() as usize;
        let beside = near.iter().enumerate().take_while(|(at, bit)| self.is_beside(usize::from(**bit), *at)).count();
        let odd = |bits: usize| {
            self.aligned % (1 << bits) != 0
                || near[bits..].iter().any(|bit| self.steps[usize::from(*bit)] % (1 << bits) != 0)
        };
        let widest = (0..=widest.min(beside)).rev().find(|bits| !odd(*bits)).unwrap_or(0);
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let lanes = thread_bits.min(5);
        for width in [widest, widest.saturating_sub(1), 0] {
            let (own, rest) = near.split_at(width);
            let few = rest.len().min(lanes);
            for far in [false, true] {
                let warps = (rest.len() - few).min(thread_bits - lanes);
                let (lane_bits, others) = rest.split_at(few);
                let (warp_bits, values) = match far {
                    false => others.split_at(warps),
                    true => {
                        let (values, warps) = others.split_at(others.len() - warps);
                        (warps, values)
                    }
                };
                let mut threads: Vec<Option<u8>> = lane_bits.iter().map(|bit| Some(*bit)).collect();
                threads.resize(lanes, None);
                threads.extend(warp_bits.iter().map(|bit| Some(*bit)));
                threads.resize(thread_bits, None);
                let held = Held { threads, values: own.iter().chain(values).copied().collect() };
                if seen.insert(held.clone()) {
                    found.push(held);
                }
            }
        }
        found
    }
}

/// The greatest common divisor of two numbers.
fn divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// If the offsets are linear in the bits of their index: the step of each bit. None otherwise.
fn linear(offsets: &[i64]) -> Option<Vec<i64>> {
    let first = offsets.first()?;
    let bits = offsets.len().trailing_zeros();
    let steps: Vec<i64> = (0..bits).map(|bit| offsets.get(1 << bit)?.checked_sub(*first)).collect::<Option<_>>()?;
    let sum = |index: usize| {
        let set = steps.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
        set.map(|(_, step)| *step).try_fold(*first, i64::checked_add)
    };
    offsets.iter().enumerate().all(|(index, offset)| sum(index) == Some(*offset)).then_some(steps)
}

/// A layout for a tile if no tensor and no instruction asks for one: the first coalesced layout, as
/// if the elements were contiguous in memory.
pub(crate) fn plain(bits: usize, thread_bits: usize) -> Held {
    let steps = (0..bits).map(|bit| 1 << bit).collect();
    let place = Place { steps, element: Element::F32, picked: BTreeSet::new(), assumed: false, aligned: 0 };
    place.coalesced(thread_bits).into_iter().next().unwrap_or(Held { threads: vec![None; thread_bits], values: vec![] })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    /// The sectors and lines of an access, counted from the bytes that each lane of each warp
    /// touches.
    fn counted(place: &Place, held: &Held) -> AccessCost {
        let mut held = held.clone();
        held.values.sort_by_key(|bit| place.steps[usize::from(*bit)]);
        let (vector, bytes) = (place.vector(&held), i64::from(place.element.bytes()));
        let offset = |element: i64| -> i64 {
            place.steps.iter().enumerate().map(|(bit, step)| (element >> bit & 1) * step).sum::<i64>() * bytes
        };
        let mut cost = AccessCost::default();
        let warps = (held.threads() + 31) / 32;
        for warp in 0..warps {
            for first in (0..held.values()).step_by(vector as usize) {
                let lanes = warp * 32..held.threads().min(warp * 32 + 32);
                let touched = |unit: i64| -> BTreeSet<i64> {
                    let begins = lanes.clone().map(|thread| offset(held.element(thread, first)));
                    begins.flat_map(|at| at / unit..=(at + vector * bytes - 1) / unit).collect()
                };
                cost.moved += touched(32).len() as i64;
                cost.lines += touched(128).len() as i64;
                cost.instructions += 1;
            }
        }
        cost.sectors = (0..held.size()).map(|element| offset(element) / 32).collect::<BTreeSet<_>>().len() as i64;
        cost
    }

    #[test]
    fn accesses_cost_the_sectors_and_lines_that_their_lanes_touch() {
        let mut chance = Chance(11);
        for round in 0..2000 {
            let element = [Element::F32, Element::Bf16, Element::U8][chance.below(3)];
            let bits = 5 + chance.below(5);
            // Rows are contiguous, and columns are a larger power of two apart.
            let (beside, apart) = (chance.below(bits + 1), chance.below(4));
            let steps: Vec<i64> =
                (0..bits).map(|bit| if bit < beside { 1 << bit } else { 1 << (bit + apart) }).collect();
            let place = Place { steps, element, picked: BTreeSet::new(), assumed: false, aligned: 0 };
            let mut order: Vec<u8> = (0..bits as u8).collect();
            for at in (1..bits).rev() {
                order.swap(at, chance.below(at + 1));
            }
            let (threads, values) = order.split_at(5.max(chance.below(bits + 1)));
            let held = Held { threads: threads.iter().map(|bit| Some(*bit)).collect(), values: values.to_vec() };
            assert_eq!(place.cost(&held).unwrap(), counted(&place, &held), "{round}: {held} of {place:?}");
        }
    }

    #[test]
    fn lanes_lie_side_by_side_in_the_widest_accesses() {
        for (element, vector) in [(Element::F32, 4), (Element::Bf16, 8), (Element::U8, 16)] {
            let place = Place {
                steps: (0..12).map(|bit| 1 << bit).collect(),
                element,
                picked: BTreeSet::new(),
                assumed: false,
                aligned: 0,
            };
            let found = place.coalesced(8);
            assert_eq!(found.iter().map(|held| place.vector(held)).max(), Some(vector));
            // In some layout, each instruction of a warp fills the sectors that it accesses.
            let best = found.iter().map(|held| place.cost(held).unwrap()).min_by_key(|cost| cost.instructions).unwrap();
            assert_eq!(best.moved, best.sectors);
            assert_eq!(best.instructions * 32 * vector, 1 << 12);
        }
    }
}
