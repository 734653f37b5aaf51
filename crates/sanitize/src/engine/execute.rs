//! One operation after another.

use super::cluster::{BarrierArrival, Cluster, POLLS_FOR_TURN, Stop};
use super::code::{
    AT_RETURN, Arrival, Callee, FunctionCode, Meeting, Micro, NOWHERE, Op, Row, Special, Target, Together, Truth,
};
use super::warp::{Fragment, Frame, Join, State, Warp};
use super::{together, windows};
use crate::check::checker::Fence;
use crate::check::finding::Defect;

/// The most calls within each other.
const MAX_CALLS: usize = 512;
/// The most registers of all functions that lanes of a warp are in.
const MAX_ROWS: usize = 1 << 18;
/// The most bytes of local memory of a thread.
pub(super) const MAX_LOCAL: u64 = 512 << 10;

/// Whether a fragment goes on after an operation.
pub(super) enum Flow {
    /// To the next operation.
    Next,
    /// Where its counter says.
    Jumped,
    /// Not now: it waits, or has given way.
    Parked,
    /// Its lanes have ended.
    Ended,
}

impl Cluster<'_> {
    /// Runs a fragment until it waits, ends, or has had its turn.
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
                // The end of a function without `ret`.
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
            if active == 0 {
                fragment.pc += 1;
                continue;
            }
            self.steps += u64::from(active.count_ones());
            if let Some(touches) = &micro.touches
                && self.check.watches_registers(self.blocks[block].rank, warp.number)
            {
                let lanes = self.lanes(block, warp, active);
                self.check.registers(lanes, micro.at, &touches.reads, &touches.writes);
            }
            match self.operation(block, warp, &mut fragment, code, micro, active)? {
                Flow::Next => fragment.pc += 1,
                Flow::Jumped => {}
                Flow::Parked => break,
                Flow::Ended => return Ok(()),
            }
        }
        warp.fragments.push(fragment);
        Ok(())
    }

    #[inline]
    fn operation(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        micro: &Micro,
        active: u32,
    ) -> Result<Flow, Stop> {
        let full = active == warp.live;
        let frame = &mut warp.frames[fragment.frame];
        let mut out = [0; 32];
        match &micro.op {
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
            Op::Load { from, to } => return self.load(block, warp, fragment, code, micro.at, active, from, to),
            Op::Store { to, from } => return self.store(block, warp, fragment, code, micro.at, active, to, from),
            Op::Atomic { at, to, b, c, update, returns } => {
                let operands = super::access::AtomicOperands { to, b, c: *c, update, returns: *returns };
                return self.atomic(block, warp, fragment, code, micro.at, active, at, &operands);
            }
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
            Op::Refuse(why) => return Err(Stop::Refused(micro.at, why.to_string())),
            Op::Call { callee, arguments, .. } => {
                return self.call(block, warp, fragment, code, micro.at, active, *callee, arguments);
            }
            Op::Return | Op::Exit => {
                if active != fragment.mask {
                    self.part(warp, fragment, fragment.mask & !active, fragment.pc + 1, NOWHERE);
                    fragment.mask = active;
                }
                if matches!(micro.op, Op::Exit) {
                    return Ok(self.end(block, warp, fragment, micro.at));
                }
                return self.leave(block, warp, fragment, micro.at);
            }
            Op::Trap => {
                let defect = Defect::Trap { what: "trap".to_string() };
                self.found(block, warp.number, active, micro.at, defect);
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
                        return Err(Stop::Refused(micro.at, why));
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
                    return Err(Stop::Refused(micro.at, format!("there is no barrier {id}; the last is 15")));
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
                let own = BarrierArrival { warp: warp.number, mask: active, at: micro.at, waits, parted, votes };
                state.arrivals.push(own);
                self.check.barrier_arrive(lanes, id);
                if waits {
                    fragment.state = State::AtBarrier(id);
                    return Ok(Flow::Parked);
                }
                // The barrier may be complete by this.
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
                let phase = self.phase;
                let is_over =
                    (0..32).all(|lane| active >> lane & 1 == 0 || warp.cluster_arrivals[lane as usize] <= phase);
                if !is_over {
                    self.split_active(warp, fragment, active);
                    fragment.state = State::AtCluster;
                    return Ok(Flow::Parked);
                }
                let lanes = self.lanes(block, warp, active);
                self.check.cluster_wait(lanes, *acquire);
            }
            Op::Meet(meeting) => return self.meet(block, warp, fragment, code, micro.at, active, meeting),
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
                return self.copy(block, warp, fragment, code, micro.at, active, (shared, global), (*size, *ignore));
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
            Op::Matrix(matrix) => return self.matrix(block, warp, fragment, code, micro.at, active, matrix),
            Op::Async(engine) => return self.asynchronous(block, warp, fragment, code, micro.at, active, engine),
        }
        Ok(Flow::Next)
    }

    /// Lanes of a fragment go elsewhere as a fragment of their own; both meet at the join.
    fn part(&mut self, warp: &mut Warp, fragment: &mut Fragment, mask: u32, pc: u32, join: u32) {
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

    /// The lanes that do not take part in what waits go on, and are met behind it.
    pub(super) fn split_active(&mut self, warp: &mut Warp, fragment: &mut Fragment, active: u32) {
        if active == fragment.mask {
            return;
        }
        let rest = fragment.mask & !active;
        let after = fragment.pc + 1;
        self.part(warp, fragment, rest, after, after);
        fragment.mask = active;
    }

    /// Lanes end.
    fn end(&mut self, block: usize, warp: &mut Warp, fragment: &mut Fragment, at: u32) -> Flow {
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

    /// Lanes come back from a function, or end.
    fn leave(&mut self, block: usize, warp: &mut Warp, fragment: &mut Fragment, at: u32) -> Result<Flow, Stop> {
        // Those that parted in this frame leave it together; its other joins are not met any more.
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
            for place in &callee.returns {
                for slot in place.slot..place.slot + place.slots {
                    let Some(target) = to.next() else { break };
                    let row = warp.frames[inner].rows[slot as usize];
                    let target = Target { slot: *target, bits: 64, sign_from: 0 };
                    warp.frames[outer].put(target, &row, fragment.mask, full);
                }
            }
        }
        warp.leave(inner, fragment.mask);
        fragment.frame = outer;
        fragment.pc = back;
        warp.aim(fragment);
        Ok(Flow::Jumped)
    }

    #[allow(clippy::too_many_arguments)]
    fn call(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        at: u32,
        active: u32,
        callee: Callee,
        arguments: &[super::code::Source],
    ) -> Result<Flow, Stop> {
        let program = self.grid.program;
        let number = match callee {
            Callee::Print => {
                self.print(block, warp, fragment, code, active, arguments);
                return Ok(Flow::Next);
            }
            Callee::Assert => {
                let what = self.assertion(block, warp, fragment, code, active, arguments);
                self.found(block, warp.number, active, at, Defect::Trap { what });
                return Err(Stop::Trapped);
            }
            Callee::Function(number) => number,
            Callee::Address(source) => {
                let row = *warp.frames[fragment.frame].row(code, source);
                let first = row[active.trailing_zeros() as usize];
                let same = (0..32_u32)
                    .filter(|lane| active >> lane & 1 == 1 && row[*lane as usize] == first)
                    .fold(0, |mask, lane| mask | 1 << lane);
                if same != active {
                    // The others call their own functions in turns of their own.
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
        if local + u64::from(target.local_bytes) > MAX_LOCAL {
            return Err(Stop::Refused(at, format!("a thread uses more than {MAX_LOCAL} bytes of local memory")));
        }
        let rows: Vec<Row> = arguments.iter().map(|source| *warp.frames[fragment.frame].row(code, *source)).collect();
        let frame = warp.frame(target, number, local, active);
        let mut from = rows.iter();
        for place in &target.parameters {
            for slot in place.slot..place.slot + place.slots {
                let Some(row) = from.next() else { break };
                warp.frames[frame].rows[slot as usize] = *row;
            }
        }
        fragment.calls.push((fragment.frame, fragment.pc + 1));
        fragment.frame = frame;
        fragment.pc = 0;
        warp.aim(fragment);
        Ok(Flow::Jumped)
    }

    fn special(&self, block: usize, warp: &Warp, frame: usize, special: Special, out: &mut Row) {
        let own = &self.blocks[block];
        let grid = self.grid;
        let lanes = 0..32_u32;
        let value = match special {
            Special::Thread(axis) => {
                let [x, y, _] = grid.block;
                for lane in lanes {
                    let thread = warp.number * 32 + lane;
                    out[lane as usize] = u64::from(match axis {
                        0 => thread % x,
                        1 => thread / x % y,
                        _ => thread / x / y,
                    });
                }
                return;
            }
            Special::Lane => return lanes.for_each(|lane| out[lane as usize] = u64::from(lane)),
            Special::LanesEqual => return lanes.for_each(|lane| out[lane as usize] = 1 << lane),
            Special::LanesUpTo => return lanes.for_each(|lane| out[lane as usize] = (2 << lane) - 1),
            Special::LanesBelow => return lanes.for_each(|lane| out[lane as usize] = (1 << lane) - 1),
            Special::LanesFrom => {
                return lanes.for_each(|lane| out[lane as usize] = 0xffff_ffff & !((1 << lane) - 1));
            }
            Special::LanesAbove => {
                return lanes.for_each(|lane| out[lane as usize] = 0xffff_ffff & !((2 << lane) - 1));
            }
            Special::Threads(axis) => u64::from(grid.block[axis as usize]),
            Special::Block(axis) => u64::from(own.index[axis as usize]),
            Special::Blocks(axis) => u64::from(grid.grid[axis as usize]),
            Special::Cluster(axis) => u64::from(self.index[axis as usize]),
            Special::Clusters(axis) => u64::from(grid.grid[axis as usize].div_ceil(grid.cluster[axis as usize])),
            Special::BlockInCluster(axis) => u64::from(own.index[axis as usize] % grid.cluster[axis as usize]),
            Special::BlocksOfCluster(axis) => u64::from(grid.cluster[axis as usize]),
            Special::ClusterRank => u64::from(own.rank),
            Special::ClusterSize => u64::from(grid.cluster.iter().product::<u32>()),
            Special::IsCluster => u64::from(grid.is_cluster),
            Special::Warp => u64::from(warp.number),
            Special::Warps => u64::from(grid.block.iter().product::<u32>().div_ceil(32)),
            Special::Processor => u64::from(own.index[0] % 132),
            Special::Processors => 132,
            Special::Grid => 1,
            Special::Clock => warp.clock,
            Special::ClockHigh => warp.clock >> 32,
            Special::Nanoseconds => warp.clock,
            Special::NanosecondsHigh => warp.clock >> 32,
            Special::DynamicShared => grid.dynamic_bytes,
            Special::AllShared => grid.shared_bytes,
            Special::LocalFrame => warp.frames[frame].local,
        };
        *out = [value; 32];
    }

    // What lanes of a warp do together.

    #[allow(clippy::too_many_arguments)]
    fn meet(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        at: u32,
        active: u32,
        meeting: &Meeting,
    ) -> Result<Flow, Stop> {
        let masks = *warp.frames[fragment.frame].row(code, meeting.mask);
        let mask = masks[active.trailing_zeros() as usize & 31] as u32;
        let same = (0..32_u32)
            .filter(|lane| active >> lane & 1 == 1 && masks[*lane as usize] as u32 == mask)
            .fold(0, |all, lane| all | 1 << lane);
        if same != active {
            // Those with other masks execute it in turns of their own.
            let (rest, after) = (fragment.mask & !same, fragment.pc);
            self.part(warp, fragment, rest, after, after + 1);
            fragment.mask = same;
            return Ok(Flow::Jumped);
        }
        if active & !mask != 0 {
            let defect = Defect::Divergence { active, expected: mask };
            self.found(block, warp.number, active, at, defect);
        }
        let needed = (mask | active) & warp.live;
        if needed & !active == 0 {
            let frame = &mut warp.frames[fragment.frame];
            let inputs = together::Inputs::of(frame, code, meeting);
            let outputs = together::run(meeting, mask | active, active, &inputs);
            outputs.put(frame, meeting, active);
            self.met(block, warp, active, meeting);
            return Ok(Flow::Next);
        }
        self.split_active(warp, fragment, active);
        fragment.state = State::Meeting { mask };
        warp.fragments.push(fragment.clone());
        self.try_meeting(block, warp, mask, needed, false)?;
        // It is among the fragments of the warp already.
        Ok(Flow::Ended)
    }

    fn met(&mut self, block: usize, warp: &Warp, mask: u32, meeting: &Meeting) {
        if meeting.what == Together::Sync {
            let lanes = self.lanes(block, warp, mask);
            self.check.warp_sync(lanes);
        }
    }

    /// Executes an instruction of a warp whose lanes came in several fragments, if all are there.
    fn try_meeting(
        &mut self,
        block: usize,
        warp: &mut Warp,
        mask: u32,
        needed: u32,
        forced: bool,
    ) -> Result<bool, Stop> {
        let program = self.grid.program;
        let meeting_of = |warp: &Warp, fragment: &Fragment| {
            let code = &program.functions[warp.frames[fragment.frame].function as usize];
            match code.ops.get(fragment.pc as usize).map(|micro| (&micro.op, micro.at)) {
                Some((Op::Meet(meeting), at)) => Some((*meeting, at)),
                _ => None,
            }
        };
        let waiting = |fragment: &Fragment| fragment.state == State::Meeting { mask };
        let Some(kind) = warp
            .fragments
            .iter()
            .rev()
            .find(|fragment| waiting(fragment))
            .and_then(|fragment| meeting_of(warp, fragment))
        else {
            return Ok(false);
        };
        let places: Vec<usize> = (0..warp.fragments.len())
            .filter(|place| {
                let fragment = &warp.fragments[*place];
                waiting(fragment)
                    && meeting_of(warp, fragment)
                        .is_some_and(|(own, _)| own.what == kind.0.what && own.bits == kind.0.bits)
            })
            .collect();
        let came = places.iter().fold(0, |all, place| all | warp.fragments[*place].mask);
        if needed & !came != 0 && !forced {
            return Ok(false);
        }
        if needed & !came != 0 {
            let defect = Defect::Divergence { active: came, expected: mask };
            self.found(block, warp.number, came, kind.1, defect);
        }
        let mut inputs = together::Inputs::default();
        for place in &places {
            let fragment = &warp.fragments[*place];
            let code = &program.functions[warp.frames[fragment.frame].function as usize];
            if let Some((own, _)) = meeting_of(warp, fragment) {
                let theirs = together::Inputs::of(&warp.frames[fragment.frame], code, &own);
                inputs.take(&theirs, fragment.mask);
            }
        }
        let outputs = together::run(&kind.0, mask | came, came, &inputs);
        for place in places {
            let fragment = warp.fragments[place].clone();
            if let Some((own, _)) = meeting_of(warp, &fragment) {
                outputs.put(&mut warp.frames[fragment.frame], &own, fragment.mask);
            }
            let own = &mut warp.fragments[place];
            own.state = State::Ready;
            own.pc += 1;
        }
        self.met(block, warp, came, &kind.0);
        self.tell_news();
        warp.merge();
        Ok(true)
    }

    /// Executes what waits for lanes that do not come; whether there was any.
    pub(super) fn force_meetings(&mut self, block: usize, warp: &mut Warp) -> Result<bool, Stop> {
        for _ in 0..warp.fragments.len() {
            let Some(mask) = warp.fragments.iter().find_map(|fragment| match fragment.state {
                State::Meeting { mask } => Some(mask),
                _ => None,
            }) else {
                break;
            };
            // Lanes that have ended since are not needed any more.
            let needed = mask & warp.live;
            if self.try_meeting(block, warp, mask, needed, false)?
                || self.try_meeting(block, warp, mask, needed, true)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a barrier that reduces gives to the lanes of a fragment.
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

    /// A fragment has looked at a place and found what it found before; whether it gives way.
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
