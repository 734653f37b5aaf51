//! Turns: blocks that do something one after another, in the order of a word in global memory.
//!
//! Law: the word counts the turns that are over. A thread that waits for turn `n` proceeds when the
//! word is `n`, and a thread that passes its turn adds 1. A device starts blocks in the order of
//! their indices. So if each block only waits for turns that blocks with smaller indices pass, all
//! blocks finish: among the blocks that have started and not exited, the first one waits for none.
//! Here blocks run one after another in this order, and a turn that has not come when it is waited
//! for is a deadlock.
//!
//! Turns order nothing else here: what blocks do in their turns must commute, as sums do. The order
//! ensures the same rounding in each launch.

use super::access::{addresses, read_bytes, write_bytes};
use super::finding::{Defect, Waiting};
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::touch::{Actor, Memory, Span};
use super::warp::Warp;
use crate::program::Instruction;
use crate::program::memory::Access;
use crate::program::operation::Operation;

impl InterpretedRun<'_> {
    /// Whether blocks wait for turns.
    pub(super) fn has_turns(&self) -> bool {
        self.program.has(|operation| matches!(operation, Operation::AwaitTurn { .. }))
    }

    /// The word of a lane, if it is inside its tensor.
    fn turn_word(&mut self, by: Actor, access: &Access, address: i64) -> Result<Span, Stop> {
        let span = Span { memory: Memory { buffer: access.buffer, rank: 0 }, address, bytes: 4 };
        if self.inside(by, &span, 4)? { Ok(span) } else { Err(Stop) }
    }

    /// Waits for the turn of each active lane.
    pub(super) fn await_turn(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, true, &mut input);
        let turns = warp.registers[instruction.inputs[input].index()];
        for lane in lanes(self.active(warp, instruction)) {
            let by = Actor { place, thread: warp.thread(lane) };
            let span = self.turn_word(by, access, addresses[lane])?;
            let over = read_bytes(self.bytes_of(span));
            let turn = turns[lane] & u64::from(u32::MAX);
            if over != turn {
                let thread = (warp.local * 32 + lane) as u32;
                let what =
                    format!("for turn {turn}: {over} turns are over when all blocks of smaller index have ended");
                let source = Some(*self.program.source(instruction.source));
                let waiting = vec![Waiting { threads: (thread, thread), rank: None, source, what }];
                self.report_by(by, Defect::Deadlock { waiting })?;
                return Err(Stop);
            }
            self.turns.insert((access.buffer.index(), addresses[lane]));
        }
        Ok(())
    }

    /// Passes the turn of each active lane.
    pub(super) fn pass_turn(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
    ) -> Result<(), Stop> {
        let addresses = addresses(warp, instruction, access, true, &mut 0);
        for lane in lanes(self.active(warp, instruction)) {
            let by = Actor { place, thread: warp.thread(lane) };
            let span = self.turn_word(by, access, addresses[lane])?;
            if !self.turns.remove(&(access.buffer.index(), addresses[lane])) {
                self.report_by(by, Defect::Count { what: "a turn is passed by a block that did not wait for it" })?;
                return Err(Stop);
            }
            let bytes = self.bytes_of(span);
            let over = read_bytes(bytes);
            write_bytes(bytes, over.wrapping_add(1));
        }
        Ok(())
    }
}
