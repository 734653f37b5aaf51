//! The messages of errors: a sentence with the condition, the mode and the numbers, and a remedy.

use alloc::string::{String, ToString};
use core::fmt;

use crate::ground::tree::Tree;
use crate::limits::{MAX_CHAIN, MAX_DEPTH, MAX_NODES, MAX_PATH, MAX_PATH_MODE};
use crate::refusal::error::{DIVIDE, LayoutError, Limit, RefusedOperand};
use crate::refusal::evidence::{BMode, Carry, Chain, Condition, Mixed, NotXor, Question, Uneven};

/// A path in words: `mode 0`, `mode [1,0]`, or `the whole` at the root.
pub(crate) struct ModeName<'a>(pub(crate) &'a [usize]);

impl fmt::Display for ModeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("the mode"),
            [mode] => write!(f, "mode {mode}"),
            [first, rest @ ..] => {
                write!(f, "mode [{first}")?;
                for mode in rest {
                    write!(f, ",{mode}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for BMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_slice() {
            [] => write!(f, "B, {}:{}", self.extent, self.stride),
            path => write!(f, "{} of B, {}:{}", ModeName(path), self.extent, self.stride),
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::NotCongruent { profiles, path } => {
                write!(f, "the shape nests as {} but the strides as {}", profiles.0, profiles.1)?;
                if !path.is_empty() {
                    write!(f, "; they first differ at {}", ModeName(path))?;
                }
                Ok(())
            }
            LayoutError::Extent { path, extent } if path.is_empty() => write!(f, "the extent {extent} is not positive"),
            LayoutError::Extent { path, extent } => {
                write!(f, "the extent of {} is {extent}, which is not positive", ModeName(path))
            }
            LayoutError::Overflow { op } => write!(f, "{op}: a number does not fit in 64 bits"),
            LayoutError::Expression { op } => write!(
                f,
                "{op}: an expression is too large: it has more than 256 terms or 64 factors, or a number in it does not fit in 64 bits"
            ),
            LayoutError::TooLarge { limit: Limit::Nodes, value } => {
                write!(f, "a tree of {value} nodes is larger than the limit of {MAX_NODES}")
            }
            LayoutError::TooLarge { limit: Limit::Depth, value } => {
                write!(f, "a tree nested {value} deep is deeper than the limit of {MAX_DEPTH}")
            }
            LayoutError::TooLarge { limit: Limit::Path, value } => {
                write!(f, "a path of {value} modes is longer than the limit of {MAX_PATH}")
            }
            LayoutError::TooLarge { limit: Limit::PathMode, value } => {
                write!(f, "a step in mode {value} is beyond the limit of mode {MAX_PATH_MODE}")
            }
            LayoutError::TooLarge { limit: Limit::Chain, value } => {
                write!(f, "{value} maps one after another are more than the limit of {MAX_CHAIN}")
            }
            LayoutError::NoSuchMode { op, mode, rank } => {
                write!(f, "{op}: there is no mode {mode}; the rank is {rank}")
            }
            LayoutError::NoName { op, name, what } => write!(f, "{op}: {name:?} {what}"),
            LayoutError::Modes { op, begin, end, rank } => {
                write!(f, "{op}: modes {begin} up to {end} are not a range within rank {rank}")
            }
            LayoutError::Rank { op, path, expected, found } if path.is_empty() => {
                write!(f, "{op}: the rank is {found} where {expected} is needed")
            }
            LayoutError::Rank { op, path, expected, found } => {
                write!(f, "{op}: {} has rank {found} where {expected} is needed", ModeName(path))
            }
            LayoutError::LeafCount { expected, found } => {
                write!(f, "{found} leaves were given for a profile of {expected}")
            }
            LayoutError::Carry(carry) => carry.fmt(f),
            LayoutError::Uneven(uneven) => uneven.fmt(f),
            LayoutError::OutOfDomain { mode, least, greatest, size } => {
                let offset = if *least < 0 { least } else { greatest };
                write!(f, "composition_within: B reaches offset {offset}, ")?;
                f.write_str(if *least < 0 { "before the first index of " } else { "but the last index of " })?;
                if !mode.is_empty() {
                    write!(f, "{} of ", ModeName(mode))?;
                }
                if *least < 0 { write!(f, "A (size {size})") } else { write!(f, "A is {}", size - 1) }
            }
            LayoutError::Undecided { op, limit } => {
                write!(f, "{op}: not decided after {limit} cases; it is neither shown to exist nor refuted")
            }
            LayoutError::Interrupted { op } => write!(f, "{op}: interrupted; nothing is known of the answer"),
            LayoutError::NotChain(chain) => chain.fmt_as(f, "does not divide"),
            LayoutError::Overlap(chain) => chain.fmt_as(f, "is more than"),
            LayoutError::Negative { op, path, stride } => {
                write!(f, "{op}: {} has the negative stride {stride}, so it reaches below offset 0", ModeName(path))
            }
            LayoutError::NoLeftInverse(none) => write!(
                f,
                "left_inverse: no layout sends the offsets back; offset {} cannot come from index {} together with the others",
                none.offset, none.index
            ),
            LayoutError::Collapse { op, difference } => {
                write!(f, "{op}: numbers that differ in the bits {difference:#b} have the same value")
            }
            LayoutError::NoPreimage { op, value } => write!(f, "{op}: nothing has the value {value}"),
            LayoutError::NotDivisible { op, path, value, divisor } if path.is_empty() => {
                write!(f, "{op}: {divisor} does not divide {value}")
            }
            LayoutError::NotDivisible { op, path, value, divisor } => {
                write!(f, "{op}: in {}, {divisor} does not divide {value}", ModeName(path))
            }
            LayoutError::Apart { op, together, needed, .. } => {
                write!(f, "{op}: a wide element is {needed} elements side by side, and here ")?;
                if *together == 1 { f.write_str("no two are") } else { write!(f, "only {together} are") }
            }
            LayoutError::Argument { op, what, value, wanted } => {
                write!(f, "{op}: {what} is {value}, but it must be {wanted}")
            }
            LayoutError::Size { op, left, right } => {
                write!(f, "{op}: the sizes differ: {left} and {right}")
            }
            LayoutError::Coordinate { op, path, shape } if path.is_empty() => {
                write!(f, "{op}: the coordinate does not fit a shape that nests as {shape}")
            }
            LayoutError::Coordinate { op, path, shape } => {
                write!(f, "{op}: {} of the coordinate does not fit the shape there, {shape}", ModeName(path))
            }
            LayoutError::Tiler { op, path, what } if path.is_empty() => write!(f, "{op}: the tiler {what}"),
            LayoutError::Tiler { op, path, what } => write!(f, "{op}: {} of the tiler {what}", ModeName(path)),
            LayoutError::Order { op, key, what } => write!(f, "{op}: the order key {key} {what}"),
            LayoutError::NotALayout { op, runs } => write!(
                f,
                "{op}: the sum changes step after every {} and after every {} indices, and {} does not divide {}",
                runs.0, runs.1, runs.0, runs.1
            ),
            LayoutError::Mixed(mixed) => mixed.fmt(f),
            LayoutError::Fraction { place, count, denominator } => {
                write!(f, "{count}/{denominator} at byte {} is no whole number of steps", place.start)
            }
            LayoutError::NoPath { op, path, step, profile } if path.is_empty() => {
                write!(f, "{op}: there is no mode for {step} in a shape that nests as {profile}")
            }
            LayoutError::NoPath { op, path, step, profile } => {
                write!(f, "{op}: {} of B steps by {step}, but there is no such mode in {profile}", ModeName(path))
            }
            LayoutError::Diagonal { op, path, step } => write!(
                f,
                "{op}: {} steps by {step}, in several modes at once, and {op} treats each mode by itself",
                ModeName(path)
            ),
            LayoutError::NotLinear { op, index, value, alone } => write!(
                f,
                "{op}: not linear over bits: the value at index {index} is {value}, but its bits {index:#b}, each alone, come to {alone} by XOR"
            ),
            LayoutError::NotAdditive { op, index, value, alone } => write!(
                f,
                "{op}: not a layout over this shape, with an offset: the value at index {index} is {value}, but its steps, each alone, add up to {alone}"
            ),
            LayoutError::Syntax { at, expected } => write!(f, "expected {expected} at byte {at}"),
            LayoutError::Open { op, question } => write!(f, "{op}: {question}"),
            LayoutError::NotXor(not) => not.fmt(f),
            LayoutError::Kind { op, operand, wanted } => {
                let letter = if *operand == RefusedOperand::First { "A" } else { "B" };
                write!(f, "{op}: {letter} must be {wanted}")
            }
        }
    }
}

impl fmt::Display for Carry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.place();
        if self.alone() {
            write!(
                f,
                "composition: {}, does not come out even in A: its steps fall on different places of each run of {} indices",
                self.crossing(),
                self.run
            )?;
        } else {
            write!(
                f,
                "composition: {}, walks past mode {} of A (which ends every {} indices) while {}, starts inside it",
                self.crossing(),
                self.mode_of_a,
                self.run,
                self.inside()
            )?;
        }
        write!(
            f,
            "; at coordinate {at} the sum carries. A(B{}) = {}, but the modes alone give {}",
            arguments(&at),
            self.value,
            self.sum
        )
    }
}

impl fmt::Display for NotXor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, at, value, sum) = (self.op, &self.place, &self.value, &self.sum);
        match &self.mode {
            Some(mode) => write!(
                f,
                "{op}: {mode}, becomes no mode of XOR strides: its value at index {} is {value}, but steps as before give {sum}",
                // Only the index of that mode is not 0.
                at.leaves().iter().sum::<i64>()
            ),
            None => {
                write!(f, "{op}: no layout has these values: at {at} the value is {value}, but the modes come to {sum}")
            }
        }
    }
}

/// The coordinate as the arguments of a call.
fn arguments(place: &Tree<i64>) -> String {
    if place.is_leaf() { alloc::format!("({place})") } else { place.to_string() }
}

impl fmt::Display for Uneven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "composition: {}, leaves mode {} of A (extent {}) after {} steps of {}, and {} does not divide {}",
            self.mode, self.mode_of_a, self.extent_of_a, self.run, self.stride, self.run, self.left
        )
    }
}

impl fmt::Display for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((first, one), (second, other)) = (&self.first, &self.second);
        if first == second {
            return write!(f, "the stride {one} ends at a mode that it also goes on through");
        }
        let integer = |step: &str| !step.contains('@');
        write!(f, "the stride of {} is {one} and that of {} is {other}: ", ModeName(first), ModeName(second))?;
        if integer(one) || integer(other) {
            f.write_str("integers and basis steps do not mix")
        } else {
            f.write_str("one ends at a mode that the other goes on through")
        }
    }
}

impl Chain {
    fn fmt_as(&self, f: &mut fmt::Formatter<'_>, relation: &str) -> fmt::Result {
        let (path, extent, stride) = &self.outer;
        write!(f, "{}: ", self.op)?;
        match &self.inner {
            Some((inner, s, d)) => write!(
                f,
                "{}, {s}:{d}, covers {} offsets, which {relation} the stride of {}, {extent}:{stride}",
                ModeName(inner),
                self.covered,
                ModeName(path)
            ),
            None => write!(f, "{}, {extent}:{stride}, does not start a chain", ModeName(path)),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (&self.left, &self.right);
        match self.condition {
            Condition::Divides => write!(f, "needs {right} to be a multiple of {left}")?,
            Condition::Less => write!(f, "needs {left} to be less than {right}")?,
            Condition::AtMost => write!(f, "needs {left} to be at most {right}")?,
            Condition::Equal => write!(f, "needs {left} and {right} to be equal, or known to differ")?,
            Condition::Ordered => write!(f, "needs to know whether {left} is less than {right}")?,
            Condition::Known => write!(f, "needs the value of {left}")?,
            Condition::Stated => write!(f, "needs to know whether {left}")?,
        }
        match &self.declaration {
            Some(parameter) => write!(f, "; declare `{parameter:#}`"),
            None => Ok(()),
        }
    }
}

impl LayoutError {
    /// The remedy, as a sentence; None if the message is sufficient.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            LayoutError::NotCongruent { profiles, .. } if profiles.0.leaves() == profiles.1.leaves() => {
                "parentheses around one number make a tuple of one: put them around both, or around neither"
            }
            LayoutError::NotCongruent { .. } => "give every extent one stride, in the same parentheses",
            LayoutError::Extent { .. } => "extents count positions, so the smallest is 1",
            LayoutError::Overflow { .. } => "sizes, strides and offsets are 64-bit integers; nothing wraps",
            LayoutError::NoSuchMode { .. } | LayoutError::Modes { .. } => "modes are counted from 0",
            LayoutError::Carry(_) => {
                "compose with a B whose modes stay inside the modes of A, or split B's shape at A's boundaries first"
            }
            LayoutError::Uneven(uneven) => {
                return Some(alloc::format!(
                    "an extent of at most {} stays inside that mode; a multiple of {} fills it",
                    uneven.run,
                    uneven.run
                ));
            }
            LayoutError::NotXor(_) => {
                "XOR does not carry: extents that are powers of two, and strides that never add up to a carry, always work"
            }
            LayoutError::OutOfDomain { .. } => "composition lets A go on in its last mode; composition_within does not",
            LayoutError::NotChain(chain) if chain.op == DIVIDE => {
                "a tile must leave room for a whole number of copies of itself, or elements would be lost"
            }
            LayoutError::NotChain(_) => "weak_complement leaves holes instead, where modes do not overlap",
            LayoutError::Overlap(_) => {
                "modes that overlap take an offset twice: leave one out, or step over the others"
            }
            LayoutError::Negative { .. } => "reverse the mode (negate its stride) and add the offset yourself",
            LayoutError::Size { .. } => "both operands need the same number of coordinates",
            LayoutError::Tiler { .. } => {
                "a tiler has at most one item for each mode; where tiles and rests are gathered, _ needs a mode of two, (tile,rest)"
            }
            LayoutError::Coordinate { .. } => "a coordinate nests no deeper than the shape, with equal ranks",
            LayoutError::Expression { .. } => {
                "give a name of its own to what stands for one number: (8,Z):(1,8) instead of its terms"
            }
            LayoutError::Mixed(_) => {
                "the values of a layout are integers, or coordinates of one nesting: give all strides the same kind"
            }
            LayoutError::NoPath { .. } => {
                "a step names a mode by its path, innermost mode first: 1@1@0 is in mode 1 of mode 0"
            }
            LayoutError::Undecided { .. } => {
                "deciding this needs a search, which has a limit; smaller extents, or strides that tile, are decided"
            }
            LayoutError::Open { question, .. } if question.declaration.is_none() => {
                "facts such as `M{div=128,min=256}` settle it if one answer is right for all values that they leave"
            }
            _ => return None,
        };
        Some(help.to_string())
    }
}
