//! Control flow of lanes: divergence, exit, calls and returns.

use super::access::lanes;
use super::cluster::{Cluster, Stop};
use super::code::{AT_RETURN, Callee, Micro, NOWHERE, Op, Row, Source, Target};
use super::execute::{Executes, Flow, MAX_LOCAL};
use super::warp::{Fragment, Join, State, Warp};
use super::windows;
use crate::check::finding::Defect;

/// The most nested calls.
const MAX_CALLS: usize = 512;
/// The most registers of all functions that lanes of a warp are executing.
const MAX_ROWS: usize = 1 << 18;

impl Cluster<'_> {
    /// Lanes of a fragment branch as a separate fragment. Both fragments reconverge at the join.
    pub(super) fn part(&mut self, warp: &mut Warp, fragment: &mut Fragment, mask: u32, pc: u32, join: u32) {
        let place = (join != NOWHERE).then_some(join);
        if let Some(place) = place {
            let has_it = fragment
                .joins
                .last()
                .is_some_and(|at| warp.joins[*at].pc == place && warp.joins[*at].frame == fragment.frame);
            if !has_it {
                let at = warp.new_join(Join { pc: place, frame: fragment.frame, expected: fragment.mask, arrived: 0 });
                fragment.joins.push(at);
                fragment.stop = place;
            }
        }
        let mut other = fragment.clone();
        other.mask = mask;
        other.pc = pc;
        other.state = State::Ready;
        other.polls = 0;
        warp.fragments.push(other);
    }

    /// Splits off the lanes that do not take part in a waiting instruction. They continue, and
    /// reconverge after it.
    pub(super) fn split_active(&mut self, warp: &mut Warp, fragment: &mut Fragment, active: u32) {
        if active == fragment.mask {
            return;
        }
        let rest = fragment.mask & !active;
        let after = fragment.pc + 1;
        self.part(warp, fragment, rest, after, after);
        fragment.mask = active;
    }

    /// Lanes exit.
    pub(super) fn end(&mut self, block: usize, warp: &mut Warp, fragment: &mut Fragment, at: u32) -> Flow {
        let mask = fragment.mask;
        warp.leave(fragment.frame, mask);
        for (frame, _) in fragment.calls.clone() {
            warp.leave(frame, mask);
        }
        let lanes = self.lanes(block, warp, mask);
        self.check.exit(lanes, at);
        warp.end(mask);
        self.tell_news();
        Flow::Ended
    }

    /// Lanes return from a function, or exit.
    pub(super) fn leave(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        at: u32,
    ) -> Result<Flow, Stop> {
        // Lanes that diverged in this frame leave it together, so its other joins are abandoned.
        while let Some(join) = fragment.joins.last().copied()
            && warp.joins[join].frame == fragment.frame
        {
            if warp.joins[join].pc == AT_RETURN {
                match warp.arrive(fragment.clone()) {
                    Some(joined) => *fragment = joined,
                    None => return Ok(Flow::Ended),
                }
                continue;
            }
            fragment.joins.pop();
            warp.joins[join].expected &= !fragment.mask;
            warp.settle_joins();
        }
        let Some((outer, back)) = fragment.calls.pop() else {
            return Ok(self.end(block, warp, fragment, at));
        };
        let program = self.grid.program;
        let inner = fragment.frame;
        let callee = &program.functions[warp.frames[inner].function as usize];
        let caller = &program.functions[warp.frames[outer].function as usize];
        let full = fragment.mask == warp.live;
        if let Some(Micro { op: Op::Call { results, .. }, .. }) = caller.ops.get(back as usize - 1) {
            let mut to = results.iter();
            let mut passed = Vec::new();
            for place in &callee.returns {
                for slot in place.slot..place.slot + place.slots {
                    let Some(target) = to.next() else { break };
                    let row = warp.frames[inner].rows[slot as usize];
                    let target = Target { slot: *target, bits: 64, sign_from: 0 };
                    warp.frames[outer].put(target, &row, fragment.mask, full);
                    passed.push((Source(slot), target.slot));
                }
            }
            self.trace_passing(block, warp, (inner, outer), &passed, fragment.mask, false);
        }
        warp.leave(inner, fragment.mask);
        fragment.frame = outer;
        fragment.pc = back;
        warp.aim(fragment);
        Ok(Flow::Jumped)
    }

    pub(super) fn call(&mut self, by: &mut Executes<'_>, callee: Callee, arguments: &[Source]) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let program = self.grid.program;
        let number = match callee {
            Callee::Print => {
                self.print(by, arguments);
                return Ok(Flow::Next);
            }
            Callee::Assert => {
                let what = self.assertion(by, arguments);
                self.found(block, by.warp.number, active, at, Defect::Trap { what });
                return Err(Stop::Trapped);
            }
            Callee::Allocate => {
                let Op::Call { results, .. } = &code.ops[fragment.pc as usize].op else { return Ok(Flow::Next) };
                self.allocate(by, arguments, results);
                return Ok(Flow::Next);
            }
            // The heap never reuses memory, so `free` does nothing.
            Callee::Free => return Ok(Flow::Next),
            Callee::Function(number) => number,
            Callee::Address(source) => {
                let row = *warp.frames[fragment.frame].row(code, source);
                let first = row[active.trailing_zeros() as usize];
                let same = (0..32_u32)
                    .filter(|lane| active >> lane & 1 == 1 && row[*lane as usize] == first)
                    .fold(0, |mask, lane| mask | 1 << lane);
                if same != active {
                    // Lanes with another target make their call separately.
                    let (rest, after) = (fragment.mask & !same, fragment.pc);
                    self.part(warp, fragment, rest, after, after + 1);
                    fragment.mask = same;
                    return Ok(Flow::Jumped);
                }
                let number = first.wrapping_sub(windows::FUNCTIONS) / 16;
                match program.functions.get(number as usize) {
                    Some(function) if function.has_body => number as u32,
                    _ => {
                        return Err(Stop::Refused(at, format!("a call goes to {first:#x}, where no function is")));
                    }
                }
            }
        };
        self.split_active(warp, fragment, active);
        if fragment.calls.len() == MAX_CALLS {
            return Err(Stop::Refused(at, format!("more than {MAX_CALLS} calls within each other")));
        }
        let target = &program.functions[number as usize];
        let rows: usize = warp.frames.iter().filter(|frame| frame.live != 0).map(|frame| frame.rows.len()).sum();
        if rows + target.slots as usize > MAX_ROWS {
            return Err(Stop::Refused(at, format!("the functions that are called use more than {MAX_ROWS} registers")));
        }
        let local = warp.frames[fragment.frame].local + u64::from(code.local_bytes.next_multiple_of(16));
        let stack = warp.frames[fragment.frame].stack;
        let room = lanes(active).map(|lane| stack[lane]).min().unwrap_or(MAX_LOCAL);
        if local + u64::from(target.local_bytes) > room {
            return Err(Stop::Refused(at, format!("a thread uses more than {MAX_LOCAL} bytes of local memory")));
        }
        let rows: Vec<Row> = arguments.iter().map(|source| *warp.frames[fragment.frame].row(code, *source)).collect();
        let frame = warp.frame(target, number, (local, stack), active);
        let mut from = rows.iter().zip(arguments);
        let mut passed = Vec::new();
        for place in &target.parameters {
            for slot in place.slot..place.slot + place.slots {
                let Some((row, source)) = from.next() else { break };
                warp.frames[frame].rows[slot as usize] = *row;
                passed.push((*source, slot));
            }
        }
        self.trace_passing(block, warp, (fragment.frame, frame), &passed, active, true);
        fragment.calls.push((fragment.frame, fragment.pc + 1));
        fragment.frame = frame;
        fragment.pc = 0;
        warp.aim(fragment);
        Ok(Flow::Jumped)
    }
}
