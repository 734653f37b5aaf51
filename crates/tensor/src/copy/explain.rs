//! The text that explains what a plan does, and why.
//!
//! Law: every printed line is read from the plan that runs.

use std::fmt;

use super::Plan;
use super::plan::{Body, DividedSide, Loops, Move, STAGED_ROW};
use crate::memory::LINE;

impl fmt::Display for Plan {
    /// One line each for the whole copy, each loop, the tile, the stores and the threads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = (self.size as u64).saturating_mul(self.element as u64);
        write!(f, "{} of {}, {}", count(self.size as usize, "element"), count(self.element, "byte"), amount(bytes))?;
        match &self.body {
            Body::Walk(why) => write!(f, "\n  index by index: {why}")?,
            Body::Loops(loops) => self.loops(loops, f)?,
        }
        write!(f, "\n  threads: {}", if self.threads == 1 { "1".into() } else { format!("up to {}", self.threads) })
    }
}

impl Plan {
    fn loops(&self, loops: &Loops, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for each in &loops.outer {
            write!(f, "\n  loop: {}, ", count(each.count, "time"))?;
            write!(f, "source {:+} bytes, destination {:+} bytes", each.src, each.dst)?;
            match each.part {
                DividedSide::Whole => {}
                DividedSide::Across(last) => write!(f, "; the last is {last} across")?,
                DividedSide::Along(last) => write!(f, "; the last is {last} along")?,
                DividedSide::Flip([0, dst]) => write!(f, "; the last flips {dst} in the places of the destination")?,
                DividedSide::Flip([src, 0]) => write!(f, "; the last flips {src} in the places of the source")?,
                DividedSide::Flip([src, dst]) => {
                    write!(f, "; the last flips {src} in the places of the source, {dst} in those of the destination")?
                }
                DividedSide::Run(last) => write!(f, "; the last is a run of {}", count(last, "byte"))?,
            }
        }
        let tile = &loops.tile;
        let (across, along) = (tile.across.len(), tile.along.len());
        write!(f, "\n  tile: ")?;
        match tile.how {
            Move::Pairs => write!(
                f,
                "{} of {} by a table of places, because a map permutes them",
                count(along, "run"),
                count(tile.unit, "byte")
            )?,
            Move::Splat => write!(f, "one element of {} to {along} places", count(tile.unit, "byte"))?,
            Move::Runs if across * along == 1 => write!(f, "a run of {}", count(tile.unit, "byte"))?,
            Move::Runs => write!(f, "{across} x {along} runs of {}", count(tile.unit, "byte"))?,
            Move::Transpose | Move::Permuted => {
                write!(
                    f,
                    "{across} x {along} elements of {}, transposed in registers ({})",
                    count(tile.unit, "byte"),
                    self.instructions
                )?;
            }
        }
        if tile.how == Move::Permuted {
            for (side, part) in ["source", "destination"].into_iter().zip(tile.masks.parts) {
                if part != 0 {
                    write!(f, "\n  map: parts of {} are permuted in rows of the {side}", count(part, "byte"))?;
                }
            }
        }
        f.write_str("\n  stores: ")?;
        match tile.how {
            _ if !loops.streaming => f.write_str("ordinary, because the destination is small enough for the caches")?,
            Move::Splat => f.write_str("ordinary")?,
            Move::Pairs if !tile.rows || loops.aligned < 16 || !tile.unit.is_multiple_of(16) => {
                f.write_str("ordinary, because runs are not whole units of 16 bytes")?;
            }
            Move::Transpose if loops.joins() => {
                f.write_str("non-temporal, through a buffer, because rows are adjacent")?
            }
            Move::Transpose if loops.kept() && loops.aligned < LINE => {
                f.write_str("non-temporal, line by line, each joined with the end of the one before, because rows are not whole lines")?;
            }
            Move::Runs
                if loops.staged() && across * along > 1 && (loops.aligned < 16 || !tile.unit.is_multiple_of(16)) =>
            {
                f.write_str("non-temporal, through a buffer, because runs are not whole units of 16 bytes")?;
            }
            Move::Transpose | Move::Permuted if loops.aligned < LINE || along * tile.unit < LINE => {
                f.write_str("ordinary, because rows of the destination are short")?
            }
            Move::Runs if !loops.staged() && along * tile.unit < STAGED_ROW && !tile.rows => {
                f.write_str("ordinary, because rows of the destination are short")?;
            }
            _ => f.write_str("non-temporal, because the destination is larger than the caches")?,
        }
        match loops.buffer() {
            0 => Ok(()),
            bytes => write!(f, "\n  buffer: {} a thread", amount(bytes as u64)),
        }
    }
}

/// A number and its noun, in the plural unless the number is 1.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A number of bytes, in the largest unit in which it is at least 1.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1024 => count(bytes as usize, "byte"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
