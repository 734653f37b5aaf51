//! Tracks the use of values that were read, operation by operation.
//!
//! Law: a value is *used* if a result of the launch, an address or the control flow of a thread may
//! depend on it. That is so if it is stored to global memory; if it is an operand of an atomic
//! operation, of a call that leaves the program, or of an asynchronous engine; if it is part of an
//! address or of the number of a barrier; or if it decides a branch, the guard of an instruction
//! with an effect, or an exit. Arithmetic propagates marks; so do local and shared memory,
//! shuffles, votes and matrix products. `selp` propagates the mark of the selected value. `and` and
//! `or` of predicates propagate no mark from an operand if the other operand decides the result.
//!
//! Only a run that watches reads calls these functions. An operation is traced before it is
//! executed; a load is also traced after it.

mod products;

use super::access::{Side, lanes};
use super::cluster::Cluster;
use super::code::{Callee, Logic, Meeting, Micro, Op, Reference, Row, Source, Target, Together, Truth};
use super::engines::AsyncOp;
use super::execute::Executes;
use super::marks::{Byte, CARRY, Mark, Marks, MarksOfCluster, PREDICATE, Register};
use super::perform::MAX_ELEMENTS;
use super::together::{self, Inputs};
use super::warp::Warp;
use crate::check::checker::{Access, Kind, Lanes, NoValues, Space, Span};

/// The marks of the registers of a frame of a warp.
struct FrameMarks<'x> {
    all: &'x mut MarksOfCluster,
    warp: u32,
    frame: u32,
}

impl FrameMarks<'_> {
    fn register(&self, slot: u32) -> Register {
        Register { warp: self.warp, frame: self.frame, slot }
    }

    fn slot(&self, slot: u32) -> Marks {
        self.all.of_register(self.register(slot))
    }

    fn source(&self, source: Source) -> Marks {
        if source.0 & Source::CONSTANT == 0 { self.slot(source.0) } else { [0; 32] }
    }

    fn truth(&self, truth: Truth) -> Marks {
        match truth {
            Truth::Register(at, _) => self.slot(PREDICATE | at),
            Truth::Constant(_) => [0; 32],
        }
    }

    fn join(&mut self, a: &Marks, b: &Marks) -> Marks {
        std::array::from_fn(|lane| self.all.join(a[lane], b[lane]))
    }

    fn sources(&mut self, sources: &[Source]) -> Marks {
        sources.iter().fold([0; 32], |all, source| {
            let own = self.source(*source);
            self.join(&all, &own)
        })
    }

    /// The joined mark of all lanes of a mask.
    fn of_all(&mut self, marks: &Marks, mask: u32) -> Mark {
        lanes(mask).fold(0, |all, lane| self.all.join(all, marks[lane]))
    }

    /// The mark of a logical operation on two predicates with these values. If one operand decides
    /// the result, the mark of the other is dropped.
    fn logic(&mut self, logic: Logic, (a, of_a): (u32, &Marks), (b, of_b): (u32, &Marks)) -> Marks {
        std::array::from_fn(|lane| {
            let decides = |value: u32, mark: Mark| {
                let value = value >> lane & 1 == 1;
                mark == 0 && matches!((logic, value), (Logic::And, false) | (Logic::Or, true))
            };
            if decides(a, of_a[lane]) || decides(b, of_b[lane]) { 0 } else { self.all.join(of_a[lane], of_b[lane]) }
        })
    }

    fn spend(&mut self, sources: &[Source], mask: u32) {
        for source in sources {
            let own = self.source(*source);
            self.all.spend_lanes(&own, mask);
        }
    }

    fn spend_truth(&mut self, truth: Truth, mask: u32) {
        let own = self.truth(truth);
        self.all.spend_lanes(&own, mask);
    }
}

/// The number of a warp in its cluster.
fn warp_of(warp: &Warp, lanes: Lanes) -> u32 {
    // A block has at most 32 warps.
    lanes.rank * 32 + warp.number
}

/// The registers that an operation without effect writes, with their marks; none of others.
fn results(own: &mut FrameMarks<'_>, op: &Op, by: &Executes<'_>) -> Option<Vec<(u32, Marks)>> {
    Some(match op {
        Op::Nothing => Vec::new(),
        Op::Alu1(d, a, _) => vec![(d.slot, own.source(*a))],
        Op::Alu2(d, from, _) => vec![(d.slot, own.sources(from))],
        Op::Alu3(d, from, _) => vec![(d.slot, own.sources(from))],
        Op::AluMany(to, from, _) => {
            let marks = own.sources(from);
            to.iter().map(|target| (target.slot, marks)).collect()
        }
        Op::Compare { p, q, a, b, test, with } => {
            let marks = own.sources(&[*a, *b]);
            let result = test(by.row(*a), by.row(*b));
            let mut of = |result: u32| match with {
                None => marks,
                Some((logic, truth)) => {
                    let other = own.truth(*truth);
                    own.logic(*logic, (result, &marks), (by.truth(*truth), &other))
                }
            };
            let all = [p.map(|p| (PREDICATE | p, of(result))), q.map(|q| (PREDICATE | q, of(!result)))];
            all.into_iter().flatten().collect()
        }
        Op::CompareValue { d, a, b, test, with, .. } => {
            let marks = own.sources(&[*a, *b]);
            let result = test(by.row(*a), by.row(*b));
            let marks = match with {
                None => marks,
                Some((logic, truth)) => {
                    let other = own.truth(*truth);
                    own.logic(*logic, (result, &marks), (by.truth(*truth), &other))
                }
            };
            vec![(d.slot, marks)]
        }
        Op::Predicate { d, a, b, logic } => {
            let (of_a, of_b) = (own.truth(*a), own.truth(*b));
            let marks = own.logic(*logic, (by.truth(*a), &of_a), (by.truth(*b), &of_b));
            vec![(PREDICATE | d, marks)]
        }
        Op::Select { d, a, b, p } => {
            let (of_a, of_b, of_p) = (own.source(*a), own.source(*b), own.truth(*p));
            let which = by.truth(*p);
            let (a, b) = (by.row(*a), by.row(*b));
            let marks = std::array::from_fn(|lane| match (of_p[lane], which >> lane & 1 == 1) {
                (0, true) => of_a[lane],
                (0, false) => of_b[lane],
                // Both values are equal, so the selection does not matter.
                _ if (of_a[lane], of_b[lane]) == (0, 0) && a[lane] == b[lane] => 0,
                (p, _) => {
                    let both = own.all.join(of_a[lane], of_b[lane]);
                    own.all.join(both, p)
                }
            });
            vec![(d.slot, marks)]
        }
        Op::Nonzero { p, a, logic, q } => {
            let (of_a, of_q) = (own.source(*a), own.truth(*q));
            let result = by.row(*a).iter().enumerate();
            let result = result.fold(0, |all, (lane, value)| all | u32::from(*value != 0) << lane);
            vec![(PREDICATE | p, own.logic(*logic, (result, &of_a), (by.truth(*q), &of_q)))]
        }
        Op::Carry { d, a, b, reads, writes, .. } => {
            let mut marks = own.sources(&[*a, *b]);
            if *reads {
                let carry = own.slot(CARRY);
                marks = own.join(&marks, &carry);
            }
            let carry = writes.then_some((CARRY, marks));
            [Some((d.slot, marks)), carry].into_iter().flatten().collect()
        }
        Op::Special(d, _) | Op::ActiveMask(d) => vec![(d.slot, [0; 32])],
        Op::IsWindow { p, a, .. } => vec![(PREDICATE | p, own.source(*a))],
        Op::MapShared { d, a, rank, .. } => vec![(d.slot, own.sources(&[*a, *rank]))],
        Op::RankOf { d, a, .. } => vec![(d.slot, own.source(*a))],
        _ => return None,
    })
}

impl Cluster<'_> {
    /// Calls a function on the marks of a frame, and reports the reads that are used to the
    /// checker.
    fn with_marks<T>(
        &mut self,
        block: usize,
        warp: &Warp,
        frame: usize,
        run: impl FnOnce(&mut Self, &mut FrameMarks<'_>) -> T,
    ) -> Option<T> {
        let mut all = self.marks.take()?;
        let warp = warp_of(warp, self.lanes(block, warp, 1));
        let result = run(self, &mut FrameMarks { all: &mut all, warp, frame: frame as u32 });
        for (read, lane) in all.take_used() {
            self.check.used(read, lane);
        }
        self.marks = Some(all);
        Some(result)
    }

    /// Traces an operation that the lanes `active` of a fragment are about to execute.
    pub(super) fn trace(&mut self, by: &Executes<'_>, micro: &Micro) {
        if self.marks.as_ref().is_none_or(|marks| marks.is_empty()) {
            return;
        }
        let (active, mask) = (by.active, by.fragment.mask);
        self.with_marks(by.block, by.warp, by.fragment.frame, |cluster, own| {
            let guard = own.truth(micro.guard);
            if let Some(results) = results(own, &micro.op, by) {
                let is_guarded = guard != [0; 32];
                for (slot, mut marks) in results {
                    if is_guarded {
                        let old = own.slot(slot);
                        for lane in lanes(mask) {
                            let value = if active >> lane & 1 == 1 { marks[lane] } else { old[lane] };
                            marks[lane] = own.all.join(value, guard[lane]);
                        }
                    }
                    let register = own.register(slot);
                    own.all.put(register, &marks, if is_guarded { mask } else { active });
                }
                return;
            }
            own.all.spend_lanes(&guard, mask);
            if active != 0 {
                cluster.trace_effect(by, own, &micro.op);
            }
        });
    }

    /// Traces an operation that does more than to write registers from registers.
    fn trace_effect(&mut self, by: &Executes<'_>, own: &mut FrameMarks<'_>, op: &Op) {
        let active = by.active;
        let clear = |own: &mut FrameMarks<'_>, slot: u32| {
            let register = own.register(slot);
            own.all.put(register, &[0; 32], active);
        };
        match op {
            Op::Load { from, .. } => own.spend(&[from.base], active),
            Op::Store { to, from } => {
                own.spend(&[to.base], active);
                self.trace_store(by, own, to, from);
            }
            Op::Atomic { at, to, b, c, .. } => {
                own.spend(&[at.base], active);
                own.spend(b, active);
                own.spend(c.as_slice(), active);
                to.iter().flatten().for_each(|target| clear(own, target.slot));
            }
            Op::AtomicPair { at, to, from } => {
                own.spend(&[at.base], active);
                own.spend(from, active);
                to.iter().for_each(|target| clear(own, target.slot));
            }
            Op::Call { callee, arguments, results } => match callee {
                Callee::Function(_) => {}
                Callee::Address(source) => own.spend(&[*source], active),
                Callee::Print | Callee::Assert | Callee::Allocate | Callee::Free => {
                    own.spend(arguments, active);
                    own.all.spend_local(own.warp, active);
                    results.iter().for_each(|slot| clear(own, *slot));
                }
            },
            Op::BranchIndexed { index, .. } => own.spend(&[*index], active),
            Op::Barrier { id, count, p, to, q, .. } => {
                own.spend(&[*id], active);
                own.spend(count.as_slice(), active);
                own.spend_truth(*p, active);
                to.iter().for_each(|target| clear(own, target.slot));
                q.iter().for_each(|q| clear(own, PREDICATE | q));
            }
            Op::Copy { shared, global, size, ignore } => {
                own.spend(&[shared.base, global.base], active);
                own.spend(size.as_slice(), active);
                own.spend_truth(*ignore, active);
                let rank = self.blocks[by.block].rank;
                let to = self.addresses(by.warp, by.fragment.frame, by.code, shared);
                for lane in lanes(active) {
                    own.all.put_bytes(shared.bytes.into(), |at| Byte::Shared(rank, to[lane] + at), 0);
                }
            }
            Op::StackTake(d, size, _) => {
                own.spend(&[*size], active);
                clear(own, d.slot);
            }
            Op::StackSave(d) => clear(own, d.slot),
            Op::StackRestore(a) => own.spend(&[*a], active),
            Op::Async(op) => trace_async(own, op, active),
            // These are traced when they are executed.
            Op::Matrix(_) | Op::Meet(_) => {}
            // These have no operands except their guard.
            Op::Refuse(_)
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Branch { .. }
            | Op::ClusterArrive { .. }
            | Op::ClusterWait { .. }
            | Op::Fence(_)
            | Op::CopyCommit
            | Op::CopyWait(_)
            | Op::CopyWaitAll => {}
            // These have no operands.
            Op::Nothing
            | Op::Alu1(..)
            | Op::Alu2(..)
            | Op::Alu3(..)
            | Op::AluMany(..)
            | Op::Compare { .. }
            | Op::CompareValue { .. }
            | Op::Predicate { .. }
            | Op::Select { .. }
            | Op::Nonzero { .. }
            | Op::Carry { .. }
            | Op::Special(..)
            | Op::ActiveMask(_)
            | Op::IsWindow { .. }
            | Op::MapShared { .. }
            | Op::RankOf { .. } => {}
        }
    }

    fn trace_store(&mut self, by: &Executes<'_>, own: &mut FrameMarks<'_>, to: &Reference, from: &[Source]) {
        let addresses = self.addresses(by.warp, by.fragment.frame, by.code, to);
        for (element, source) in from.iter().enumerate() {
            let marks = own.source(*source);
            for lane in lanes(by.active) {
                let (side, address) = self.side(by.block, to.window, addresses[lane]);
                let address = address + element as u64 * u64::from(to.bytes);
                let warp = own.warp;
                match side {
                    Side::Shared(rank) => {
                        own.all.put_bytes(to.bytes.into(), |at| Byte::Shared(rank, address + at), marks[lane]);
                    }
                    Side::Local => {
                        let byte = |at| Byte::Local(warp, lane as u32, address + at);
                        own.all.put_bytes(to.bytes.into(), byte, marks[lane]);
                    }
                    Side::Global | Side::Parameters => own.all.spend(marks[lane]),
                }
            }
        }
    }

    /// Marks what lanes have loaded from one memory, by its elements.
    pub(super) fn trace_load(
        &mut self,
        by: &Executes<'_>,
        (side, mask): (Side, u32),
        row: &Row,
        from: &Reference,
        to: &[Option<Target>],
    ) {
        self.with_marks(by.block, by.warp, by.fragment.frame, |cluster, own| {
            let threads = cluster.lanes(by.block, by.warp, mask);
            let bytes = u32::from(from.bytes);
            for (element, target) in to.iter().enumerate().take(MAX_ELEMENTS) {
                let addresses = row.map(|address| address.wrapping_add(element as u64 * u64::from(bytes)));
                let space = match side {
                    Side::Global => Some(Space::Global),
                    Side::Shared(rank) => Some(Space::Shared { rank }),
                    Side::Local | Side::Parameters => None,
                };
                let number = space.and_then(|space| {
                    cluster.check.watched(&Access {
                        by: threads,
                        at: by.at,
                        space,
                        kind: Kind::Read,
                        order: from.order,
                        scope: from.scope,
                        bytes,
                        addresses: &addresses,
                        values: &NoValues,
                    })
                });
                let Some(target) = target else { continue };
                let mut marks = [0; 32];
                for lane in lanes(mask) {
                    let (warp, address) = (own.warp, addresses[lane]);
                    let held = match side {
                        Side::Shared(rank) => own.all.of_bytes(bytes, |at| Byte::Shared(rank, address + at)),
                        Side::Local => own.all.of_bytes(bytes, |at| Byte::Local(warp, lane as u32, address + at)),
                        Side::Global | Side::Parameters => 0,
                    };
                    let read = number.map_or(0, |number| own.all.read(number, lane as u32));
                    marks[lane] = own.all.join(held, read);
                }
                let register = own.register(target.slot);
                own.all.put(register, &marks, mask);
            }
        });
    }

    /// Traces an operation of several lanes of a warp. The lanes arrived in several fragments, each
    /// with its own frame and its own form of the instruction.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn trace_meeting(
        &mut self,
        block: usize,
        warp: &Warp,
        kind: &Meeting,
        parts: &[(usize, u32, Meeting)],
        (mask, came): (u32, u32),
        inputs: &Inputs,
    ) {
        if self.marks.as_ref().is_none_or(|marks| marks.is_empty()) {
            return;
        }
        self.with_marks(block, warp, 0, |_, own| {
            let (mut of_a, mut of_by, mut of_p) = ([0; 32], [0; 32], [0; 32]);
            for (frame, lanes_of, meeting) in parts {
                own.frame = *frame as u32;
                own.spend(&[meeting.mask], *lanes_of);
                let (a, by, p) = (own.source(meeting.a), own.sources(&[meeting.b, meeting.c]), own.truth(meeting.p));
                for lane in lanes(*lanes_of) {
                    (of_a[lane], of_by[lane], of_p[lane]) = (a[lane], by[lane], p[lane]);
                }
            }
            let part = mask & came;
            let votes = inputs.votes();
            let (d, q) = match kind.what {
                Together::Sync | Together::Elect => ([0; 32], [0; 32]),
                Together::ShuffleUp | Together::ShuffleDown | Together::ShuffleXor | Together::ShuffleIndex => {
                    let from = together::run(kind, mask, came, &inputs.lanes());
                    let d = std::array::from_fn(|lane| {
                        let value = of_a[from.sources()[lane] as usize & 31];
                        own.all.join(value, of_by[lane])
                    });
                    (d, of_by)
                }
                Together::VoteAll | Together::VoteAny => {
                    let wanted = kind.what == Together::VoteAny;
                    let decided = lanes(part).any(|lane| of_p[lane] == 0 && (votes >> lane & 1 == 1) == wanted);
                    let mark = if decided { 0 } else { own.of_all(&of_p, part) };
                    ([0; 32], [mark; 32])
                }
                Together::VoteUniform => ([0; 32], [own.of_all(&of_p, part); 32]),
                Together::Ballot => ([own.of_all(&of_p, part); 32], [0; 32]),
                Together::MatchAny | Together::MatchAll | Together::Reduce(_) => {
                    let mark = own.of_all(&of_a, part);
                    ([mark; 32], [mark; 32])
                }
            };
            for (frame, lanes_of, meeting) in parts {
                own.frame = *frame as u32;
                if let Some(target) = meeting.d {
                    let register = own.register(target.slot);
                    own.all.put(register, &d, *lanes_of);
                }
                if let Some(slot) = meeting.q {
                    let register = own.register(PREDICATE | slot);
                    own.all.put(register, &q, *lanes_of);
                }
            }
        });
    }

    /// Traces values that lanes pass from one frame to another: to a function, or back to the
    /// caller.
    pub(super) fn trace_passing(
        &mut self,
        block: usize,
        warp: &Warp,
        (from, to): (usize, usize),
        slots: &[(Source, u32)],
        mask: u32,
        is_new: bool,
    ) {
        self.with_marks(block, warp, from, |_, own| {
            if is_new {
                own.all.clear_frame(own.warp, to as u32);
            }
            for (source, slot) in slots {
                let marks = own.source(*source);
                let register = Register { warp: own.warp, frame: to as u32, slot: *slot };
                own.all.put(register, &marks, mask);
            }
        });
    }

    /// Traces an asynchronous engine that reads or writes shared memory.
    pub(super) fn trace_spans(&mut self, reads: &[Span], writes: &[Span]) {
        let Some(mut all) = self.marks.take() else { return };
        let spans = reads.iter().map(|span| (span, true)).chain(writes.iter().map(|span| (span, false)));
        for (span, reads) in spans {
            let Space::Shared { rank } = span.space else { continue };
            if reads {
                let mark = all.of_bytes(span.bytes, |at| Byte::Shared(rank, span.address + at));
                all.spend(mark);
            } else {
                all.put_bytes(span.bytes, |at| Byte::Shared(rank, span.address + at), 0);
            }
        }
        for (read, lane) in all.take_used() {
            self.check.used(read, lane);
        }
        self.marks = Some(all);
    }
}

/// Traces an operation of the engines: all its operands are used, and its results depend on no
/// read.
fn trace_async(own: &mut FrameMarks<'_>, op: &AsyncOp, active: u32) {
    let operands = op.operands();
    own.spend(&operands.sources, active);
    if let Some(truth) = operands.truth {
        own.spend_truth(truth, active);
    }
    for slot in operands.targets {
        let register = own.register(slot);
        own.all.put(register, &[0; 32], active);
    }
    for predicate in operands.predicates {
        let register = own.register(PREDICATE | predicate);
        own.all.put(register, &[0; 32], active);
    }
}
