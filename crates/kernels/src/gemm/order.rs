//! Groups that take tiles in turn: whose turn it is to multiply.
//!
//! Law: the first group has the tiles `0, 2, ..` of a block, the second one `1, 3, ..`. A group
//! begins to wait for the stages of its tile when the other one has set off all products of the
//! tile before, so stages are waited for in the order in which they are filled, and nobody waits
//! for a stage that has been filled again meanwhile. Then the other one writes while this one
//! multiplies.

use tilewright_kernel::{Build, Cursor, KernelError, Meeting};
use tilewright_layout::symbolic::Expr;

use super::plan::Plan;
use super::schedule::{minus, overflow, plus, times};

/// The groups of a block.
pub(super) struct Order<'k> {
    /// Where each group waits for its turn; none where all multiply one tile together.
    turns: Vec<Meeting<'k>>,
    /// Stages of a tile.
    steps: i64,
}

impl<'k> Order<'k> {
    /// The order of a plan, of tiles of so many stages.
    pub(super) fn new(k: &'k Build, plan: &Plan, steps: i64) -> Result<Order<'k>, KernelError> {
        let threads = 128 * plan.groups as u32;
        let turns = if plan.alternates { vec![k.meeting(threads)?, k.meeting(threads)?] } else { Vec::new() };
        Ok(Order { turns, steps })
    }

    /// How many of the tiles of a block a group has.
    pub(super) fn own(&self, all: &Expr, group: usize) -> Result<Expr, KernelError> {
        match self.turns.len() {
            0 => Ok(all.clone()),
            _ => plus(all, &Expr::from(1 - group as i64))?.floor_div(&Expr::from(2)).ok_or_else(overflow),
        }
    }

    /// Which of the tiles of a block is the next one of a group.
    pub(super) fn turn(&self, own: &Expr, group: usize) -> Result<Expr, KernelError> {
        match self.turns.len() {
            0 => Ok(own.clone()),
            _ => plus(&times(own, &Expr::from(2))?, &Expr::from(group as i64)),
        }
    }

    /// Before the first tile: the second group goes past the stages of the first one, which may
    /// begin.
    pub(super) fn begin(&self, group: usize, cursors: [&Cursor<'k>; 2]) -> Result<(), KernelError> {
        match self.turns.first().filter(|_| group == 1) {
            None => Ok(()),
            Some(first) => {
                first.arrive();
                self.skip(cursors)
            }
        }
    }

    /// Waits until a group may multiply.
    pub(super) fn wait(&self, group: usize) {
        self.turns.get(group).into_iter().for_each(Meeting::wait);
    }

    /// Lets the other group multiply.
    pub(super) fn pass(&self, group: usize) {
        self.turns.get(1 - group.min(1)).into_iter().for_each(Meeting::arrive);
    }

    /// Goes past the stages of a tile of the other group.
    pub(super) fn skip(&self, cursors: [&Cursor<'k>; 2]) -> Result<(), KernelError> {
        match self.turns.len() {
            0 => Ok(()),
            _ => cursors.into_iter().try_for_each(|cursor| cursor.advance_by(self.steps)),
        }
    }

    /// After the last tile: takes the turn that was passed to a group that has no tile left.
    pub(super) fn end(&self, k: &'k Build, all: &Expr, group: usize) -> Result<(), KernelError> {
        let Some(turn) = self.turns.get(group) else { return Ok(()) };
        let [first, second] = [self.own(all, 0)?, self.own(all, 1)?];
        let left = match group {
            0 => minus(&plus(&second, &Expr::from(1))?, &first)?,
            _ => minus(&first, &second)?,
        };
        k.range(left, |_| {
            turn.wait();
            Ok(())
        })
    }
}
