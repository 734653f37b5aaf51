//! Modes that a mesh cuts into parts of unequal sizes.
//!
//! Law: an uneven mode has its elements first and then the axes that cut it, the fastest first.
//! From the slowest axis on, each axis cuts the current positions into as many parts as it has
//! devices. A part has the quotient, rounded up; the last parts have less, or nothing. This is how
//! `torch.chunk` and DTensor's `Shard` cut, axis after axis. `(3,4)` of the size 10 has parts of 3,
//! 3, 3 and 1; `(2,3,2)` of 7 is cut into 4 and 3, and these into 2, 2, 0 and 1, 1, 1.
//!
//! Where every quotient is exact, that is a layout as any other.

/// Where a mode steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Along {
    /// Along offsets in the memory of a device.
    Offset,
    /// Along the axis of the mesh with this number.
    Axis(usize),
}

/// A step: how far, and along what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// How far.
    pub by: i64,
    /// Along what.
    pub along: Along,
}

/// A leaf of a mode: its number in the layout, its extent, its step, and, in an even mode, the
/// weight of its digit in the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeafDigit {
    pub leaf: usize,
    pub extent: i64,
    pub step: Step,
    pub weight: i64,
}

impl LeafDigit {
    pub fn is_local(&self) -> bool {
        self.step.along == Along::Offset
    }
}

/// A mode of a tensor, as its leaves cut it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutMode {
    /// The leaves, the fastest first.
    pub digits: Vec<LeafDigit>,
    /// How many positions there are.
    pub size: i64,
    pub is_even: bool,
}

/// Positions that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub first: i64,
    pub count: i64,
}

impl Run {
    pub fn end(&self) -> i64 {
        self.first + self.count
    }

    /// The intersection of two runs.
    pub fn shared(&self, other: &Run) -> Run {
        let first = self.first.max(other.first);
        Run { first, count: (self.end().min(other.end()) - first).max(0) }
    }

    /// The positions of each of `parts` parts, except the last ones.
    pub fn part(&self, parts: i64) -> i64 {
        rounded_up(self.count, parts).max(1)
    }

    /// The part with this number.
    fn cut(&self, parts: i64, number: i64) -> Run {
        let size = self.part(parts);
        let before = size.saturating_mul(number).min(self.count);
        Run { first: self.first + before, count: size.min(self.count - before) }
    }
}

/// The quotient, rounded up.
pub(crate) fn rounded_up(size: i64, parts: i64) -> i64 {
    size / parts + i64::from(size % parts != 0)
}

impl CutMode {
    /// The mode of leaves; its size is their product unless another is given.
    pub fn new(first_leaf: usize, leaves: &[(i64, Step)], size: Option<i64>) -> CutMode {
        let mut weight = 1_i64;
        let digits = leaves.iter().enumerate().map(|(at, (extent, step))| {
            let digit = LeafDigit { leaf: first_leaf + at, extent: *extent, step: *step, weight };
            weight = weight.saturating_mul(*extent);
            digit
        });
        let digits: Vec<LeafDigit> = digits.collect();
        CutMode { digits, size: size.unwrap_or(weight), is_even: size.is_none() }
    }

    /// The index in each leaf at a position, the slowest first.
    pub fn at(&self, position: i64) -> Vec<(&LeafDigit, i64)> {
        let (mut rest, mut all) = (position, Run { first: 0, count: self.size });
        let digits = self.digits.iter().rev().map(|digit| {
            let weight = match (self.is_even, digit.is_local()) {
                (true, _) => digit.weight,
                // The elements of a part are the first leaf that has any.
                (false, true) => 1,
                (false, false) => all.part(digit.extent),
            };
            let index = if !self.is_even && digit.is_local() && digit.extent == 1 { 0 } else { rest / weight };
            rest -= index * weight;
            if !digit.is_local() {
                all = all.cut(digit.extent, index);
            }
            (digit, index)
        });
        digits.collect()
    }

    /// Whether the positions of a device are consecutive, and have one stride in its memory: all
    /// leaves after the first step along the mesh.
    pub fn is_block(&self) -> bool {
        let several = self.digits.iter().filter(|digit| digit.extent > 1);
        several.skip(1).all(|digit| !digit.is_local())
    }

    /// The leaf of the elements of a device, of a mode that is a block; none if it has one.
    pub fn local(&self) -> Option<&LeafDigit> {
        self.digits.iter().find(|digit| digit.extent > 1 && digit.is_local())
    }

    /// How many positions the largest part of a block has.
    pub fn largest(&self) -> i64 {
        let along = self.digits.iter().rev().filter(|digit| !digit.is_local());
        along.fold(self.size, |size, digit| rounded_up(size, digit.extent))
    }

    /// The positions of a device with these indices in the leaves, of a mode that is a block.
    pub fn run(&self, held: &[i64]) -> Run {
        let along = self.digits.iter().rev().filter(|digit| !digit.is_local());
        let whole = Run { first: 0, count: self.size };
        along.fold(whole, |run, digit| run.cut(digit.extent, held.get(digit.leaf).copied().unwrap_or(0)))
    }

    /// The first position of a device with these indices in the leaves.
    pub fn first(&self, held: &[i64]) -> i64 {
        if !self.is_even {
            return self.run(held).first;
        }
        let along = self.digits.iter().filter(|digit| !digit.is_local());
        along.map(|digit| held.get(digit.leaf).copied().unwrap_or(0) * digit.weight).sum()
    }

    /// Calls `visit` with the index in each leaf that steps along the mesh, and the positions of
    /// that device, for each one that has some of a run; of a mode that is a block.
    pub fn each_in(&self, wanted: &Run, visit: &mut impl FnMut(&[(usize, i64)], Run)) {
        let along: Vec<&LeafDigit> = self.digits.iter().rev().filter(|digit| !digit.is_local()).collect();
        inside(&along, Run { first: 0, count: self.size }, wanted, &mut Vec::new(), visit);
    }
}

/// The parts of `all` into which the rest of the leaves cut it, and that have something of a run.
fn inside(
    along: &[&LeafDigit],
    all: Run,
    wanted: &Run,
    indices: &mut Vec<(usize, i64)>,
    visit: &mut impl FnMut(&[(usize, i64)], Run),
) {
    let both = all.shared(wanted);
    if both.count == 0 {
        return;
    }
    let Some((digit, rest)) = along.split_first() else { return visit(indices, all) };
    let part = all.part(digit.extent);
    for index in (both.first - all.first) / part..=(both.end() - 1 - all.first) / part {
        indices.push((digit.leaf, index));
        inside(rest, all.cut(digit.extent, index), wanted, indices, visit);
        indices.pop();
    }
}
