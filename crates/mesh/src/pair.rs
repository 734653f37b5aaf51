//! Two layouts of one tensor: their common digits and intersections.
//!
//! Law: the index of an element is split into *digits* on which both layouts are linear. In each
//! mode, the chains of prefix products of both layouts are refined if they divide each other. If
//! they do not (2 * 3 and 3 * 2), the elements between two common products are one digit whose
//! positions are listed. An uneven mode is one digit: either a run of positions that a device of
//! each layout has in common, or listed positions. Whether an element is in the part of a device is
//! decided for each digit separately. So the intersection of two devices is a product over digits:
//! starting offsets and modes, independent of the size of the tensor.

use tilewright_layout::{CommonDigits, Digit as CommonDigit};

use crate::error::MeshError;
use crate::held::Held;
use crate::sharded::{Along, ShardedLayout, Step};
use crate::uneven::{CutMode, Run};

/// The most positions that are listed if the modes of two layouts do not refine each other.
pub const MAX_LISTED: i64 = 65_536;

/// A leaf of a layout at a digit: its index, the size of the leaf below the digit, and the step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    leaf: usize,
    below: i64,
    pub step: Step,
}

/// A position of a listed digit in one layout: the index in each leaf that steps along the mesh,
/// and in each leaf that steps along offsets.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    mesh: Vec<(usize, i64)>,
    local: Vec<(usize, i64)>,
}

/// A part of the index of an element.
#[derive(Debug, Clone)]
pub(crate) enum IndexDigit {
    /// Both layouts are linear on the digit.
    Linear { extent: i64, from: Side, to: Side },
    /// All positions of the digit, in order.
    Listed(Vec<[Listed; 2]>),
    /// A mode in which each device of either layout has a run of positions.
    Blocks(Box<[CutMode; 2]>),
}

/// The local part of a device: its index in each leaf along the mesh, the stride of each leaf in
/// its memory, and the first offset.
#[derive(Clone, Copy)]
pub(crate) struct DevicePart<'a> {
    pub held: &'a [i64],
    pub steps: &'a [i64],
    pub start: i64,
}

impl DevicePart<'_> {
    fn step(&self, leaf: usize) -> i64 {
        self.steps.get(leaf).copied().unwrap_or(0)
    }

    /// The positions of a mode that are on the device, and the step from one to the next.
    fn run(&self, mode: &CutMode) -> (Run, i64) {
        (mode.run(self.held), mode.local().map_or(0, |digit| self.step(digit.leaf)))
    }
}

/// The elements of a message, and their offsets on the sender and on the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Pairs of offsets at which runs begin: in the memory that is read, and in the memory that is
    /// written.
    pub starts: Vec<(i64, i64)>,
    /// The modes of each run: the extent, the step in the memory that is read, and the step in the
    /// memory that is written.
    pub modes: Vec<(i64, i64, i64)>,
}

impl Footprint {
    /// The number of elements.
    pub fn size(&self) -> i64 {
        self.modes.iter().map(|(extent, ..)| extent).product::<i64>() * self.starts.len() as i64
    }

    /// Calls `visit` with both offsets of each element, in the memory that is read and in the
    /// memory that is written: run after run, the first mode of a run fastest.
    pub fn each(&self, mut visit: impl FnMut(i64, i64)) {
        let (inner, outer) = match self.modes.split_first() {
            Some((inner, outer)) => (*inner, outer),
            None => ((1, 0, 0), &[][..]),
        };
        self.outer(outer, |read, write| (0..inner.0).for_each(|at| visit(read + at * inner.1, write + at * inner.2)));
    }

    /// As [`Footprint::each`], in square blocks of the two modes with the smallest strides on
    /// either side: an order in which both reads and writes stay in the cache.
    pub(crate) fn each_in_blocks(&self, mut visit: impl FnMut(i64, i64)) {
        const SIDE: usize = 32;
        let least = |step: fn(&(i64, i64, i64)) -> i64| {
            let modes = self.modes.iter().enumerate().filter(|(_, mode)| mode.0 > 1);
            modes.min_by_key(|(_, mode)| step(mode).abs()).map(|(at, _)| at)
        };
        let (Some(read), Some(written)) = (least(|mode| mode.1), least(|mode| mode.2)) else {
            return self.each(visit);
        };
        let mode = |at: usize| self.modes.get(at).copied().unwrap_or((1, 0, 0));
        let (across, down) = (mode(read), if written == read { (1, 0, 0) } else { mode(written) });
        let rest = self.modes.iter().enumerate().filter(|(at, _)| *at != read && *at != written);
        let rest: Vec<_> = rest.map(|(_, mode)| *mode).collect();
        self.outer(&rest, |read, write| {
            for first in (0..down.0).step_by(SIDE) {
                for second in (0..across.0).step_by(SIDE) {
                    for row in first..down.0.min(first + SIDE as i64) {
                        let (read, write) = (read + row * down.1, write + row * down.2);
                        for at in second..across.0.min(second + SIDE as i64) {
                            visit(read + at * across.1, write + at * across.2);
                        }
                    }
                }
            }
        });
    }

    /// Calls `visit` with the offsets at which each run begins, at each position of these modes.
    fn outer(&self, modes: &[(i64, i64, i64)], mut visit: impl FnMut(i64, i64)) {
        let all: i64 = modes.iter().map(|(extent, ..)| extent).product();
        for (read, write) in &self.starts {
            for index in 0..all {
                let (mut rest, mut read, mut write) = (index, *read, *write);
                for (extent, from, to) in modes {
                    let at = rest % extent;
                    read += at * from;
                    write += at * to;
                    rest /= extent;
                }
                visit(read, write);
            }
        }
    }
}

/// The parts of devices of the first layout that a device of the second layout needs, digit by
/// digit.
pub(crate) struct Choices {
    /// For each digit, its parts: the increments of the indices in leaves of the first layout, and
    /// the number of elements of the digit.
    pub digits: Vec<Vec<Choice>>,
}

/// One of the parts of a digit.
pub(crate) struct Choice {
    leaves: Vec<(usize, i64)>,
    count: i64,
}

impl Choices {
    /// The number of devices that hold elements that are needed.
    pub fn parts(&self) -> i64 {
        self.digits.iter().map(|choices| choices.len() as i64).product()
    }

    /// Part number `index`: writes the index in each leaf of the first layout to `held`, and
    /// returns the number of elements.
    pub fn part(&self, index: i64, held: &mut [i64]) -> i64 {
        let (mut rest, mut count) = (index, 1);
        held.fill(0);
        for choices in &self.digits {
            let all = choices.len() as i64;
            if let Some(choice) = choices.get((rest % all) as usize) {
                count *= choice.count;
                for (leaf, add) in &choice.leaves {
                    held.iter_mut().skip(*leaf).take(1).for_each(|at| *at += add);
                }
            }
            rest /= all;
        }
        count
    }
}

/// The digits of two layouts.
///
/// Errors: the layouts are of different tensors or meshes; more than [`MAX_LISTED`] positions would
/// be listed.
pub(crate) fn digits(from: &ShardedLayout, to: &ShardedLayout) -> Result<Vec<IndexDigit>, MeshError> {
    if from.mesh != to.mesh {
        let (from, to) = (from.mesh.to_string().into(), to.mesh.to_string().into());
        return Err(MeshError::Meshes { from, to });
    }
    if from.mode_sizes() != to.mode_sizes() {
        return Err(MeshError::Shapes { from: from.mode_sizes(), to: to.mode_sizes() });
    }
    let (mut digits, mut listed) = (Vec::new(), 1_i64);
    for (from, to) in from.modes().into_iter().zip(to.modes()) {
        match (from.is_even && to.is_even, from.is_block() && to.is_block()) {
            (true, _) => even(&from, &to, &mut digits, &mut listed)?,
            (false, true) => digits.push(IndexDigit::Blocks(Box::new([from, to]))),
            (false, false) => one_by_one(&from, &to, &mut digits, &mut listed)?,
        }
    }
    Ok(digits)
}

/// Adds to the count of listed positions; refuses too many.
fn list_more(listed: &mut i64, count: i64) -> Result<(), MeshError> {
    *listed = listed.saturating_mul(count);
    match *listed > MAX_LISTED {
        true => Err(MeshError::TooLarge { what: "positions to list one by one", limit: MAX_LISTED }),
        false => Ok(()),
    }
}

/// The digits of a mode that both layouts cut into equal parts.
fn even(from: &CutMode, to: &CutMode, digits: &mut Vec<IndexDigit>, listed: &mut i64) -> Result<(), MeshError> {
    let chains = [chain(from), chain(to)];
    let [mut common, other] = chains.clone().map(|chain| chain.iter().map(|at| at.end()).collect::<Vec<_>>());
    common.retain(|end| other.contains(end));
    let mut start = 1;
    for end in common {
        let parts = chains.each_ref().map(|chain| chain.iter().filter(|leaf| (start..end).contains(&leaf.start)));
        let parts = parts.map(|leaves| leaves.copied().collect::<Vec<ChainLeaf>>());
        let extents = parts.each_ref().map(|leaves| leaves.iter().map(|leaf| leaf.extent).collect::<Vec<i64>>());
        let mut walk = CommonDigits::new(extents.each_ref().map(Vec::as_slice));
        let linear: Vec<_> = walk.by_ref().collect();
        if walk.is_complete() {
            for CommonDigit { extent, parts: [a, b] } in linear {
                digits.push(IndexDigit::Linear {
                    extent,
                    from: side(&parts[0][a.0], a.1),
                    to: side(&parts[1][b.0], b.1),
                });
            }
        } else {
            list_more(listed, end / start)?;
            let both = [from, to];
            let positions = (0..end / start).map(|at| both.map(|mode| list(mode, at * start, start..end)));
            digits.push(IndexDigit::Listed(positions.collect()));
        }
        start = end;
    }
    Ok(())
}

/// A number of positions that divides the indices at which parts of a mode, or its other leaves,
/// begin.
fn unbroken(mode: &CutMode) -> i64 {
    if mode.is_even {
        let first = mode.local().map_or(1, |digit| digit.extent);
        return mode.digits.iter().map(|digit| digit.weight).filter(|by| *by > 1).fold(first, common_divisor);
    }
    let mut divides = mode.size;
    let whole = Run { first: 0, count: mode.size };
    mode.each_in(&whole, &mut |_, run| divides = common_divisor(divides, run.first));
    divides
}

/// The digits of a mode in which some device has scattered positions: positions that are adjacent
/// in both layouts are one digit, and the others are listed one by one.
fn one_by_one(from: &CutMode, to: &CutMode, digits: &mut Vec<IndexDigit>, listed: &mut i64) -> Result<(), MeshError> {
    let both = [from, to];
    let first =
        |mode: &CutMode| mode.digits.iter().find(|digit| digit.extent > 1).filter(|digit| digit.is_local()).copied();
    let mut together = 1;
    if let [Some(a), Some(b)] = both.map(first) {
        together = both.into_iter().fold(from.size, |all, mode| common_divisor(all, unbroken(mode)));
        let side = |digit: &crate::uneven::LeafDigit| Side { leaf: digit.leaf, below: 1, step: digit.step };
        digits.push(IndexDigit::Linear { extent: together, from: side(&a), to: side(&b) });
    }
    list_more(listed, from.size / together)?;
    let positions = (0..from.size / together).map(|at| both.map(|mode| list(mode, at * together, 1..i64::MAX)));
    digits.push(IndexDigit::Listed(positions.collect()));
    Ok(())
}

/// A leaf in the chain of prefix products.
#[derive(Debug, Clone, Copy)]
struct ChainLeaf {
    leaf: usize,
    start: i64,
    extent: i64,
    step: Step,
}

impl ChainLeaf {
    fn end(&self) -> i64 {
        self.start * self.extent
    }
}

fn chain(mode: &CutMode) -> Vec<ChainLeaf> {
    let leaves = mode.digits.iter().filter(|digit| digit.extent > 1);
    leaves.map(|at| ChainLeaf { leaf: at.leaf, start: at.weight, extent: at.extent, step: at.step }).collect()
}

/// The part of a leaf with this many positions of the leaf below it.
fn side(leaf: &ChainLeaf, below: i64) -> Side {
    Side { leaf: leaf.leaf, below, step: Step { by: leaf.step.by * below, along: leaf.step.along } }
}

/// The listed form of a position, for the leaves whose weights are in a range.
fn list(mode: &CutMode, position: i64, weights: std::ops::Range<i64>) -> Listed {
    let mut listed = Listed { mesh: Vec::new(), local: Vec::new() };
    for (digit, index) in
        mode.at(position).into_iter().filter(|(digit, _)| digit.extent > 1 && weights.contains(&digit.weight))
    {
        match digit.step.along {
            Along::Offset => listed.local.push((digit.leaf, index)),
            Along::Axis(_) => listed.mesh.push((digit.leaf, index)),
        }
    }
    listed
}

impl Listed {
    fn is_of(&self, held: &[i64]) -> bool {
        self.mesh.iter().all(|(leaf, index)| held.get(*leaf) == Some(index))
    }

    fn offset(&self, part: &DevicePart<'_>) -> i64 {
        self.local.iter().map(|(leaf, index)| index * part.step(*leaf)).sum()
    }
}

impl Side {
    /// The index of the digit that a device holds; None if the digit steps along offsets.
    fn index(&self, extent: i64, held: &[i64]) -> Option<i64> {
        match self.step.along {
            Along::Offset => None,
            Along::Axis(_) => held.get(self.leaf).map(|index| index / self.below % extent),
        }
    }
}

/// The parts of the first layout that intersect the part of a device of the second layout.
pub(crate) fn choices(digits: &[IndexDigit], to: &Held) -> Choices {
    let of_digit = |digit: &IndexDigit| match digit {
        IndexDigit::Linear { extent, from, to: side } => {
            let wanted = side.index(*extent, &to.elements);
            let local = from.step.along == Along::Offset;
            let at = |index: i64, count| Choice { leaves: vec![(from.leaf, index * from.below)], count };
            match (local, wanted) {
                (true, None) => vec![Choice { leaves: Vec::new(), count: *extent }],
                (true, Some(_)) => vec![Choice { leaves: Vec::new(), count: 1 }],
                (false, None) => (0..*extent).map(|index| at(index, 1)).collect(),
                (false, Some(index)) => vec![at(index, 1)],
            }
        }
        IndexDigit::Listed(positions) => {
            let mut choices: Vec<Choice> = Vec::new();
            for [from, _] in positions.iter().filter(|[_, side]| side.is_of(&to.elements)) {
                match choices.iter_mut().find(|choice| choice.leaves == from.mesh) {
                    Some(choice) => choice.count += 1,
                    None => choices.push(Choice { leaves: from.mesh.clone(), count: 1 }),
                }
            }
            choices
        }
        IndexDigit::Blocks(modes) => {
            let [from, to_mode] = modes.as_ref();
            let wanted = to_mode.run(&to.elements);
            let mut choices = Vec::new();
            from.each_in(&wanted, &mut |leaves, run| {
                let below = |(leaf, index): &(usize, i64)| (*leaf, *index);
                choices.push(Choice { leaves: leaves.iter().map(below).collect(), count: run.shared(&wanted).count });
            });
            choices
        }
    };
    Choices { digits: digits.iter().map(of_digit).collect() }
}

/// The intersection of a device of the first layout and one of the second.
pub(crate) fn shared(digits: &[IndexDigit], from: &DevicePart<'_>, to: &DevicePart<'_>) -> Footprint {
    let mut footprint = Footprint { starts: vec![(from.start, to.start)], modes: Vec::new() };
    let shift = |footprint: &mut Footprint, read: i64, write: i64| {
        footprint.starts.iter_mut().for_each(|start| *start = (start.0 + read, start.1 + write));
    };
    for digit in digits {
        match digit {
            IndexDigit::Linear { extent, from: a, to: b } => {
                let steps = (from.step(a.leaf) * a.below, to.step(b.leaf) * b.below);
                match (a.index(*extent, from.held), b.index(*extent, to.held)) {
                    (None, None) => footprint.modes.push((*extent, steps.0, steps.1)),
                    (Some(index), None) => shift(&mut footprint, 0, index * steps.1),
                    (None, Some(index)) => shift(&mut footprint, index * steps.0, 0),
                    (Some(one), Some(other)) if one == other => {}
                    _ => footprint.starts.clear(),
                }
            }
            IndexDigit::Listed(positions) => {
                let both = positions.iter().filter(|[a, b]| a.is_of(from.held) && b.is_of(to.held));
                let offsets: Vec<_> = both.map(|[a, b]| (a.offset(from), b.offset(to))).collect();
                let before = std::mem::take(&mut footprint.starts);
                let add = |start: &(i64, i64)| {
                    let start = *start;
                    offsets.iter().map(move |(read, write)| (start.0 + read, start.1 + write))
                };
                footprint.starts = before.iter().flat_map(add).collect();
            }
            IndexDigit::Blocks(modes) => {
                let [(a, read), (b, write)] = [from.run(&modes[0]), to.run(&modes[1])];
                let both = a.shared(&b);
                match both.count {
                    0 => footprint.starts.clear(),
                    count => {
                        shift(&mut footprint, (both.first - a.first) * read, (both.first - b.first) * write);
                        footprint.modes.push((count, read, write));
                    }
                }
            }
        }
    }
    footprint
}

/// Whether every element keeps its device and its offset, judged digit by digit.
pub(crate) fn same_places(digits: &[IndexDigit]) -> bool {
    digits.iter().all(|digit| match digit {
        IndexDigit::Linear { from, to, .. } => from.step == to.step,
        IndexDigit::Listed(_) => false,
        IndexDigit::Blocks(modes) => {
            let [from, to] = modes.as_ref();
            let places = |mode: &CutMode| -> Vec<_> {
                let digits = mode.digits.iter().filter(|digit| digit.extent > 1);
                digits.map(|digit| (digit.extent, digit.step, digit.weight)).collect()
            };
            from.size == to.size && places(from) == places(to)
        }
    })
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::Footprint;

    #[test]
    fn squares_have_each_element_once() {
        let modes: [&[(i64, i64, i64)]; 6] = [
            &[],
            &[(70, 1, 1)],
            &[(70, 1, 100), (90, 100, 1)],
            &[(3, 1000, 2), (40, 1, 200), (2, 0, 1), (33, 40, 9000)],
            &[(1, 0, 0), (65, 2, 3), (1, 5, 5)],
            &[(31, 64, 1), (33, 1, 40)],
        ];
        for modes in modes {
            let footprint = Footprint { starts: vec![(3, 5), (100_000, 70_000)], modes: modes.to_vec() };
            let (mut each, mut blocked) = (Vec::new(), Vec::new());
            footprint.each(|read, write| each.push((read, write)));
            footprint.each_in_blocks(|read, write| blocked.push((read, write)));
            // By definition, the first mode is the fastest.
            let mut defined = Vec::new();
            for (read, write) in &footprint.starts {
                for index in 0..footprint.size() / 2 {
                    let (mut rest, mut place) = (index, (*read, *write));
                    for (extent, from, to) in modes {
                        place = (place.0 + rest % extent * from, place.1 + rest % extent * to);
                        rest /= extent;
                    }
                    defined.push(place);
                }
            }
            assert_eq!(each, defined, "{modes:?}");
            blocked.sort_unstable();
            each.sort_unstable();
            assert_eq!(blocked, each, "{modes:?}");
        }
    }
}
