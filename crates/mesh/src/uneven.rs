//! Modes that a mesh cuts into parts of unequal sizes.
//!
//! Law: the first leaf of an uneven mode is the elements of a device; the other leaves are the axes
//! that cut the mode, the fastest first. From the slowest axis on, each axis cuts the current
//! positions into as many parts as it has devices. The size of a part is the quotient, rounded up;
//! the last parts are smaller, or empty. This is how `torch.chunk` and DTensor's `Shard` cut, axis
//! after axis. `(3,4)` of the size 10 has parts of 3, 3, 3 and 1; `(2,3,2)` of 7 is cut into 4 and
//! 3, and these into 2, 2, 0 and 1, 1, 1.
//!
//! If every quotient is exact, this is an ordinary layout.

/// The direction of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Along {
    /// Along offsets in the memory of a device.
    Offset,
    /// Along the axis of the mesh with this index.
    Axis(usize),
}

/// A step: its length and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The length.
    pub by: i64,
    /// The direction.
    pub along: Along,
}

/// A leaf of a mode: its index in the layout, its extent, its step, and, in an even mode, the
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

/// A mode of a tensor, divided by its leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutMode {
    /// The leaves, the fastest first.
    pub digits: Vec<LeafDigit>,
    /// The number of positions.
    pub size: i64,
    pub is_even: bool,
}

/// Consecutive positions.
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

    /// The number of positions of each of `parts` parts, except the last ones, which may have
    /// fewer.
    pub fn part(&self, parts: i64) -> i64 {
        rounded_up(self.count, parts).max(1)
    }

    /// The part of this index.
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
    /// The mode of these leaves; its size is the product of their extents unless another size is
    /// given.
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

    /// The index in each leaf at a position, the slowest leaf first.
    pub fn at(&self, position: i64) -> Vec<(&LeafDigit, i64)> {
        let (mut rest, mut all) = (position, Run { first: 0, count: self.size });
        let digits = self.digits.iter().rev().map(|digit| {
            let weight = match (self.is_even, digit.is_local()) {
                (true, _) => digit.weight,
                // All elements of a part are along its first local leaf with more than one
                // position.
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

    /// For a mode that is a block: the leaf of the elements of a device; None if there is none.
    pub fn local(&self) -> Option<&LeafDigit> {
        self.digits.iter().find(|digit| digit.extent > 1 && digit.is_local())
    }

    /// The number of positions of the largest part of a block.
    pub fn largest(&self) -> i64 {
        let along = self.digits.iter().rev().filter(|digit| !digit.is_local());
        along.fold(self.size, |size, digit| rounded_up(size, digit.extent))
    }

    /// For a mode that is a block: the positions of a device with these indices in the leaves.
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

    /// For a mode that is a block: calls `visit` for each device that has some positions of a run,
    /// with the index of the device in each leaf that steps along the mesh, and its positions.
    pub fn each_in(&self, wanted: &Run, visit: &mut impl FnMut(&[(usize, i64)], Run)) {
        let along: Vec<&LeafDigit> = self.digits.iter().rev().filter(|digit| !digit.is_local()).collect();
        inside(&along, Run { first: 0, count: self.size }, wanted, &mut Vec::new(), visit);
    }
}

/// Visits the parts that intersect a run, among those into which the remaining leaves cut `all`.
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
