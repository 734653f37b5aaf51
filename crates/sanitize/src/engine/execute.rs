//! Executes operations one after another.

use super::access::lanes;
use super::cluster::{BarrierArrival, Cluster, POLLS_FOR_TURN, Stop};
use super::code::{Arrival, FunctionCode, Micro, NOWHERE, Op, Row, Source, Truth};
use super::warp::{Fragment, Frame, State, Warp};
use super::windows;
use crate::check::checker::Fence;
use crate::check::finding::Defect;

/// The most bytes of local memory of a thread.
pub(super) const MAX_LOCAL: u64 = 512 << 10;

/// How a fragment continues after an operation.
pub(super) enum Flow {
    /// With the next operation.
    Next,
    /// At its program counter, which the operation has set.
    Jumped,
    /// Not now: the fragment waits, or has given way to others.
    Parked,
    /// Not at all: its lanes have exited.
    Ended,
}

/// The context of an operation that a fragment executes.
pub(super) struct Executes<'x> {
    /// The number of the block in the cluster.
    pub(super) block: usize,
    /// The function that contains the operation.
    pub(super) code: &'x FunctionCode,
    /// The statement of the operation.
    pub(super) at: u32,
    /// The mask of the lanes that execute it.
    pub(super) active: u32,
    /// Their warp.
    pub(super) warp: &'x mut Warp,
    /// Their fragment, which is none of those in the warp meanwhile.
    pub(super) fragment: &'x mut Fragment,
}

impl Executes<'_> {
    /// The values of a register, or of a constant.
    pub(super) fn row(&self, source: Source) -> &Row {
        self.warp.frames[self.fragment.frame].row(self.code, source)
    }

    /// The bits of a predicate.
    pub(super) fn truth(&self, truth: Truth) -> u32 {
        self.warp.frames[self.fragment.frame].truth(truth)
    }
}

impl Cluster<'_> {
    /// Runs a fragment until it waits, exits, or has used up its turn.
    pub(super) fn run_fragment(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: Fragment,
        turn: u64,
    ) -> Result<(), Stop> {
        let program = self.grid.program;
        let mut fragment = fragment;
        let until = warp.clock.saturating_add(turn);
        let counts = self.counts;
        let traces = self.marks.is_some();
        loop {
            if fragment.pc == fragment.stop {
                match warp.arrive(fragment) {
                    Some(joined) => fragment = joined,
                    None => return Ok(()),
                }
                continue;
            }
            if warp.clock >= until {
                break;
            }
            let code = &program.functions[warp.frames[fragment.frame].function as usize];
            let Some(micro) = code.ops.get(fragment.pc as usize) else {
                // The function ends without `ret`.
                match self.leave(block, warp, &mut fragment, code.ops.last().map_or(0, |micro| micro.at))? {
                    Flow::Ended => return Ok(()),
                    Flow::Parked => break,
                    _ => continue,
                }
            };
            let active = match micro.guard {
                Truth::Constant(true) => fragment.mask,
                guard => fragment.mask & warp.frames[fragment.frame].truth(guard),
            };
            warp.clock += 1;
            let before = fragment.pc;
            let by = &mut Executes { block, code, at: micro.at, active, warp, fragment: &mut fragment };
            if traces {
                self.trace(by, micro);
            }
            if active == 0 {
                if counts {
                    self.count(code, micro, &fragment, fragment.pc, 0, &Flow::Next);
                }
                fragment.pc += 1;
                continue;
            }
            self.steps += u64::from(active.count_ones());
            if let Some(touches) = &micro.touches
                && self.check.watches_registers(self.blocks[block].rank, by.warp.number)
            {
                let lanes = self.lanes(block, by.warp, active);
                self.check.registers(lanes, micro.at, &touches.reads, &touches.writes);
            }
            let flow = self.operation(by, &micro.op)?;
            if counts {
                self.count(code, micro, &fragment, before, active, &flow);
            }
            match flow {
                Flow::Next => fragment.pc += 1,
                Flow::Jumped => {}
                Flow::Parked => break,
                Flow::Ended => return Ok(()),
            }
        }
        warp.fragments.push(fragment);
        Ok(())
    }

    /// Reports an executed instruction to the checker: after the last of its operations, and not if
    /// it will be executed again because lanes of the warp are missing.
    fn count(&mut self, code: &FunctionCode, micro: &Micro, fragment: &Fragment, pc: u32, active: u32, flow: &Flow) {
        // An implicit return follows the last statement.
        let next = pc as usize + 1;
        let is_last = match code.ops.get(next) {
            Some(other) => other.at != micro.at || next + 1 == code.ops.len(),
            None => false,
        };
        let is_again = match flow {
            _ if fragment.pc == pc && matches!(&micro.op, Op::Async(engine) if engine.waits_in_place()) => {
                !matches!(flow, Flow::Next)
            }
            Flow::Parked => matches!(fragment.state, State::Aligned | State::AtCluster),
            Flow::Jumped => fragment.pc == pc && matches!(micro.op, Op::Meet(_) | Op::Call { .. }),
            Flow::Next | Flow::Ended => false,
        };
        if is_last && !is_again {
            // An instruction of the whole warp includes the lanes that wait at it.
            let mask = match (&micro.op, flow) {
                _ if active == 0 => 0,
                (Op::Matrix(_), Flow::Next) => fragment.mask,
                (Op::Async(engine), Flow::Next) if engine.is_of_warps() => fragment.mask,
                _ => active,
            };
            self.check.executed(micro.at, mask);
        }
    }

    #[inline]
    fn operation(&mut self, by: &mut Executes<'_>, op: &Op) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let full = active == warp.live;
        let frame = &mut warp.frames[fragment.frame];
        let mut out = [0; 32];
        match op {
            Op::Nothing => {}
            Op::Alu1(d, a, f) => {
                f(frame.row(code, *a), &mut out);
                frame.put(*d, &out, active, full);
            }
            Op::Alu2(d, [a, b], f) => {
                f(frame.row(code, *a), frame.row(code, *b), &mut out);
                frame.put(*d, &out, active, full);
            }
            Op::Alu3(d, [a, b, c], f) => {
                f(frame.row(code, *a), frame.row(code, *b), frame.row(code, *c), &mut out);
                frame.put(*d, &out, active, full);
            }
            Op::AluMany(to, from, f) => {
                let rows: Vec<Row> = from.iter().map(|source| *frame.row(code, *source)).collect();
                let mut results = vec![[0; 32]; to.len()];
                f(&rows, &mut results);
                for (target, row) in to.iter().zip(&results) {
                    frame.put(*target, row, active, full);
                }
            }
            Op::Compare { p, q, a, b, test, with } => {
                let result = test(frame.row(code, *a), frame.row(code, *b));
                let with = with.map(|(logic, truth)| (logic, frame.truth(truth)));
                if let Some(p) = p {
                    frame.set_truth(*p, with.map_or(result, |(logic, other)| logic.of(result, other)), active);
                }
                if let Some(q) = q {
                    frame.set_truth(*q, with.map_or(!result, |(logic, other)| logic.of(!result, other)), active);
                }
            }
            Op::CompareValue { d, a, b, test, with, one } => {
                let result = test(frame.row(code, *a), frame.row(code, *b));
                let result = with.map_or(result, |(logic, truth)| logic.of(result, frame.truth(truth)));
                for (lane, own) in out.iter_mut().enumerate() {
                    *own = if result >> lane & 1 == 1 { *one } else { 0 };
                }
                frame.put(*d, &out, active, full);
            }
            Op::Predicate { d, a, b, logic } => {
                let result = logic.of(frame.truth(*a), frame.truth(*b));
                frame.set_truth(*d, result, active);
            }
            Op::Select { d, a, b, p } => {
                let which = frame.truth(*p);
                let (a, b) = (frame.row(code, *a), frame.row(code, *b));
                for lane in 0..32 {
                    out[lane] = if which >> lane & 1 == 1 { a[lane] } else { b[lane] };
                }
                frame.put(*d, &out, active, full);
            }
            Op::Nonzero { p, a, logic, q } => {
                let mut result = 0;
                for (lane, value) in frame.row(code, *a).iter().enumerate() {
                    result |= u32::from(*value != 0) << lane;
                }
                let result = logic.of(result, frame.truth(*q));
                frame.set_truth(*p, result, active);
            }
            Op::Carry { d, a, b, subtracts, reads, writes, bits } => {
                let (a, b) = (frame.row(code, *a), frame.row(code, *b));
                let carry = if *reads { frame.carry } else { 0 };
                let mut carried = 0;
                for lane in 0..32 {
                    let carry = carry >> lane & 1 == 1;
                    use crate::isa::integer::{add_carry, sub_borrow};
                    let (value, over) = match (*bits == 64, *subtracts) {
                        (true, false) => add_carry(a[lane], b[lane], carry),
                        (true, true) => sub_borrow(a[lane], b[lane], carry),
                        (false, false) => narrow(add_carry(a[lane] as u32, b[lane] as u32, carry)),
                        (false, true) => narrow(sub_borrow(a[lane] as u32, b[lane] as u32, carry)),
                    };
                    out[lane] = value;
                    carried |= u32::from(over) << lane;
                }
                if *writes {
                    frame.carry = frame.carry & !active | carried & active;
                }
                frame.put(*d, &out, active, full);
            }
            Op::Special(d, special) => {
                self.special(block, warp, fragment.frame, *special, &mut out);
                warp.frames[fragment.frame].put(*d, &out, active, full);
            }
            Op::StackTake(d, size, alignment) => {
                let sizes = *frame.row(code, *size);
                for lane in lanes(active) {
                    let Some(address) = frame.take_stack(code, lane, sizes[lane], *alignment) else {
                        let why = format!("a thread uses more than {MAX_LOCAL} bytes of local memory");
                        return Err(Stop::Refused(at, why));
                    };
                    out[lane] = address;
                }
                frame.put(*d, &out, active, full);
            }
            Op::StackSave(d) => {
                let stack = frame.stack;
                frame.put(*d, &stack, active, full);
            }
            Op::StackRestore(a) => {
                let saved = *frame.row(code, *a);
                for lane in lanes(active) {
                    if saved[lane] < frame.stack[lane] || saved[lane] > MAX_LOCAL {
                        let why = format!("{:#x} is no place of the stack that was saved before", saved[lane]);
                        return Err(Stop::Refused(at, why));
                    }
                    frame.stack[lane] = saved[lane];
                }
            }
            Op::Load { from, to } => return self.load(by, from, to),
            Op::Store { to, from } => return self.store(by, to, from),
            Op::Atomic { at: reference, to, b, c, update, returns } => {
                let operands = super::perform::AtomicOperands { to, b, c: *c, update, returns: *returns };
                return self.atomic(by, reference, &operands);
            }
            Op::AtomicPair { at, to, from } => return self.atomic_pair(by, at, to, from),
            Op::IsWindow { p, a, window } => {
                let mut result = 0;
                for (lane, address) in frame.row(code, *a).iter().enumerate() {
                    result |= u32::from(super::access::is_in(*address, *window)) << lane;
                }
                frame.set_truth(*p, result, active);
            }
            Op::MapShared { d, a, rank, generic } => {
                let own = self.blocks[block].rank;
                let (a, rank) = (frame.row(code, *a), frame.row(code, *rank));
                for lane in 0..32 {
                    let address = if *generic { a[lane].wrapping_sub(windows::SHARED) } else { a[lane] };
                    let (_, offset) = windows::rank_of(address, own);
                    let mapped = windows::of_rank(rank[lane] as u32, offset);
                    out[lane] = if *generic { mapped + windows::SHARED } else { mapped };
                }
                frame.put(*d, &out, active, full);
            }
            Op::RankOf { d, a, generic } => {
                let own = self.blocks[block].rank;
                for (lane, a) in frame.row(code, *a).iter().enumerate() {
                    let address = if *generic { a.wrapping_sub(windows::SHARED) } else { *a };
                    out[lane] = u64::from(windows::rank_of(address, own).0);
                }
                frame.put(*d, &out, active, full);
            }
            Op::Refuse(why) => return Err(Stop::Refused(at, why.to_string())),
            Op::Call { callee, arguments, .. } => return self.call(by, *callee, arguments),
            Op::Return | Op::Exit => {
                if active != fragment.mask {
                    self.part(warp, fragment, fragment.mask & !active, fragment.pc + 1, NOWHERE);
                    fragment.mask = active;
                }
                if matches!(op, Op::Exit) {
                    return Ok(self.end(block, warp, fragment, at));
                }
                return self.leave(block, warp, fragment, at);
            }
            Op::Trap => {
                let defect = Defect::Trap { what: "trap".to_string() };
                self.found(block, warp.number, active, at, defect);
                return Err(Stop::Trapped);
            }
            Op::Branch { target, join } => {
                if active == fragment.mask {
                    fragment.pc = *target;
                    return Ok(Flow::Jumped);
                }
                let rest = fragment.mask & !active;
                self.part(warp, fragment, active, *target, *join);
                fragment.mask = rest;
                fragment.pc += 1;
                return Ok(Flow::Jumped);
            }
            Op::BranchIndexed { index, targets, join } => {
                let index = *frame.row(code, *index);
                let target = |lane: u32| targets.get(index[lane as usize] as usize).copied();
                let mut left = active;
                let rest = fragment.mask & !active;
                let mut ways: Vec<(u32, u32)> = Vec::new();
                if rest != 0 {
                    ways.push((rest, fragment.pc + 1));
                }
                while left != 0 {
                    let first = left.trailing_zeros();
                    let Some(to) = target(first) else {
                        let why = format!("`brx.idx` has the index {}, which no label has", index[first as usize]);
                        return Err(Stop::Refused(at, why));
                    };
                    let same = (0..32).filter(|lane| left >> lane & 1 == 1 && target(*lane) == Some(to));
                    let mask = same.fold(0, |mask, lane| mask | 1 << lane);
                    ways.push((mask, to));
                    left &= !mask;
                }
                if let Some((mask, to)) = ways.pop() {
                    let mut others = fragment.mask & !mask;
                    for (way, place) in ways {
                        self.part(warp, fragment, way, place, *join);
                        others &= !way;
                        fragment.mask &= !way;
                    }
                    debug_assert_eq!(others, 0);
                    fragment.mask = mask;
                    fragment.pc = to;
                }
                return Ok(Flow::Jumped);
            }
            Op::Barrier { arrival, id, count, aligned, p, .. } => {
                let id = frame.row(code, *id)[active.trailing_zeros() as usize] as u32;
                let count = count.map(|count| frame.row(code, count)[active.trailing_zeros() as usize] as u32);
                let votes = frame.truth(*p) & active;
                if id > 15 {
                    return Err(Stop::Refused(at, format!("there is no barrier {id}; the last is 15")));
                }
                let joined = fragment.joins.iter().fold(fragment.mask, |all, at| all | warp.joins[*at].expected);
                let parted = if *aligned { joined & warp.live & !active } else { 0 };
                self.split_active(warp, fragment, active);
                let waits = *arrival != Arrival::Arrive;
                let lanes = self.lanes(block, warp, active);
                let state = &mut self.blocks[block].barriers[id as usize];
                if state.arrivals.is_empty() {
                    state.count = count;
                }
                let own = BarrierArrival { warp: warp.number, mask: active, at, waits, parted, votes };
                state.arrivals.push(own);
                self.check.barrier_arrive(lanes, id);
                if waits {
                    fragment.state = State::AtBarrier(id);
                    return Ok(Flow::Parked);
                }
                // This arrival may complete the barrier.
                fragment.pc += 1;
                return Ok(Flow::Parked);
            }
            Op::ClusterArrive { release } => {
                for lane in 0..32 {
                    if active >> lane & 1 == 1 {
                        warp.cluster_arrivals[lane] = self.phase + 1;
                    }
                }
                self.arrived += active.count_ones();
                let lanes = self.lanes(block, warp, active);
                self.check.cluster_arrive(lanes, *release);
                fragment.pc += 1;
                return Ok(Flow::Parked);
            }
            Op::ClusterWait { acquire } => {
                if !warp.may_leave_cluster(active, self.phase) {
                    self.split_active(warp, fragment, active);
                    fragment.state = State::AtCluster;
                    return Ok(Flow::Parked);
                }
                for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
                    warp.cluster_waits[lane] = warp.cluster_arrivals[lane];
                }
                let lanes = self.lanes(block, warp, active);
                self.check.cluster_wait(lanes, *acquire);
            }
            Op::Meet(meeting) => return self.meet(by, meeting),
            Op::ActiveMask(d) => {
                out = [u64::from(active); 32];
                frame.put(*d, &out, active, full);
            }
            Op::Fence(fence) => {
                let lanes = self.lanes(block, warp, active);
                if let Fence::Memory(_) = fence {
                    let lock = self.grid.strong.lock();
                    self.check.fence(lanes, *fence);
                    drop(lock);
                } else {
                    self.check.fence(lanes, *fence);
                }
            }
            Op::Copy { shared, global, size, ignore } => {
                return self.copy(by, (shared, global), (*size, *ignore));
            }
            Op::CopyCommit => {
                let lanes = self.lanes(block, warp, active);
                self.check.copy_commit(lanes);
            }
            Op::CopyWait(pending) => {
                let lanes = self.lanes(block, warp, active);
                self.check.copy_wait(lanes, *pending);
            }
            Op::CopyWaitAll => {
                let lanes = self.lanes(block, warp, active);
                self.check.copy_commit(lanes);
                self.check.copy_wait(lanes, 0);
            }
            Op::Matrix(matrix) => return self.matrix(by, matrix),
            Op::Async(engine) => return self.asynchronous(by, engine),
        }
        Ok(Flow::Next)
    }

    /// The result of a barrier with a reduction (`bar.red`) for the lanes of a fragment.
    pub(super) fn barrier_result(&self, frame: &mut Frame, fragment: &Fragment, count: u32, all: bool) {
        let code = &self.grid.program.functions[frame.function as usize];
        let Some(Micro { op: Op::Barrier { arrival, to, q, .. }, .. }) = code.ops.get(fragment.pc as usize) else {
            return;
        };
        let truth = match arrival {
            Arrival::ReduceAnd => all,
            Arrival::ReduceOr => count > 0,
            _ => false,
        };
        if let Some(q) = q {
            frame.set_truth(*q, if truth { u32::MAX } else { 0 }, fragment.mask);
        }
        if let Some(to) = to {
            frame.put(*to, &[u64::from(count); 32], fragment.mask, false);
        }
    }

    /// Counts a poll: a fragment that reads the same value again without news. Returns whether it
    /// should give way to others.
    pub(super) fn poll(&self, fragment: &mut Fragment, seen: u64) -> bool {
        let news = self.news();
        let is_same = fragment.poll_at == fragment.pc && fragment.poll_seen == seen && fragment.poll_news == news;
        if !is_same {
            fragment.polls = 0;
            (fragment.poll_at, fragment.poll_seen, fragment.poll_news) = (fragment.pc, seen, news);
            return false;
        }
        fragment.polls = fragment.polls.saturating_add(1);
        fragment.polls >= POLLS_FOR_TURN
    }
}

fn narrow((value, over): (u32, bool)) -> (u64, bool) {
    (u64::from(value), over)
}
