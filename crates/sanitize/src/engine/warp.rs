//! A warp: its frames of registers, and the fragments into which it has diverged.
//!
//! Lanes that diverge at a branch become two *fragments*, which run one after another and
//! reconverge at the join of the branch. A fragment at a join waits for the expected lanes. If
//! these in turn wait for the fragment (one lane holds a lock that another wants), the fragment is
//! released.

use super::code::{FunctionCode, NOWHERE, Row, Source, Target, Truth};

/// The registers of a function that some lanes execute.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) rows: Vec<Row>,
    pub(crate) predicates: Vec<u32>,
    pub(crate) carry: u32,
    /// The offset of its local memory.
    pub(crate) local: u64,
    /// For each lane, the top of the stack of `alloca`. The stack grows down from the end of local
    /// memory, and memory that a function has allocated is freed when it returns.
    pub(crate) stack: Row,
    /// The lanes that have not returned.
    pub(crate) live: u32,
}

impl Frame {
    #[inline]
    pub(crate) fn row<'a>(&'a self, code: &'a FunctionCode, source: Source) -> &'a Row {
        match source.0 & Source::CONSTANT {
            0 => &self.rows[source.0 as usize],
            _ => &code.constants[(source.0 & !Source::CONSTANT) as usize],
        }
    }

    #[inline]
    pub(crate) fn truth(&self, truth: Truth) -> u32 {
        match truth {
            Truth::Register(at, false) => self.predicates[at as usize],
            Truth::Register(at, true) => !self.predicates[at as usize],
            Truth::Constant(true) => u32::MAX,
            Truth::Constant(false) => 0,
        }
    }

    #[inline]
    pub(crate) fn set_truth(&mut self, at: u32, value: u32, mask: u32) {
        let own = &mut self.predicates[at as usize];
        *own = *own & !mask | value & mask;
    }

    /// `alloca` of a lane: allocates this many bytes on the lane's stack, above the local memory of
    /// the function, and returns the address. None if the stack is full.
    pub(crate) fn take_stack(&mut self, code: &FunctionCode, lane: usize, bytes: u64, alignment: u64) -> Option<u64> {
        let floor = self.local + u64::from(code.local_bytes);
        let address = self.stack[lane].checked_sub(bytes)? & !(alignment.max(1) - 1);
        self.stack[lane] = (address >= floor).then_some(address)?;
        Some(address)
    }

    /// Writes a register for the lanes of a mask. `full` says that no other lane is live.
    #[inline]
    pub(crate) fn put(&mut self, target: Target, row: &Row, mask: u32, full: bool) {
        let own = &mut self.rows[target.slot as usize];
        if full && target.sign_from == 0 {
            let bits = if target.bits >= 64 { u64::MAX } else { (1 << target.bits) - 1 };
            for lane in 0..32 {
                own[lane] = row[lane] & bits;
            }
        } else {
            for lane in 0..32 {
                if mask >> lane & 1 == 1 {
                    own[lane] = target.fit(row[lane]);
                }
            }
        }
    }
}

/// What a fragment waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Other lanes, at a join.
    AtJoin,
    /// The lanes of a mask, at an instruction of several lanes.
    Meeting {
        mask: u32,
    },
    /// The other lanes of its warp, at an instruction of the whole warp.
    Aligned,
    /// A barrier of the block.
    AtBarrier(u32),
    /// A phase of the cluster barrier.
    AtCluster,
}

/// Lanes of a warp with the same program counter.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) frame: usize,
    /// The calling frames, and the program counters to which they return.
    pub(crate) calls: Vec<(usize, u32)>,
    pub(crate) joins: Vec<usize>,
    /// The program counter of the last join, if it belongs to this frame.
    pub(crate) stop: u32,
    pub(crate) state: State,
    /// Whether it executes an instruction of the whole warp without the missing lanes.
    pub(crate) is_forced: bool,
    /// How often it has polled the same value without news.
    pub(crate) polls: u32,
    pub(crate) poll_at: u32,
    pub(crate) poll_seen: u64,
    pub(crate) poll_news: u64,
}

impl Fragment {
    pub(crate) fn new(mask: u32, frame: usize) -> Self {
        Self {
            mask,
            pc: 0,
            frame,
            calls: Vec::new(),
            joins: Vec::new(),
            stop: NOWHERE,
            state: State::Ready,
            is_forced: false,
            polls: 0,
            poll_at: NOWHERE,
            poll_seen: 0,
            poll_news: 0,
        }
    }
}

/// A place where diverged lanes reconverge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Join {
    pub(crate) pc: u32,
    pub(crate) frame: usize,
    pub(crate) expected: u32,
    pub(crate) arrived: u32,
}

/// A warp.
#[derive(Default)]
pub(crate) struct Warp {
    pub(crate) number: u32,
    /// The lanes that have a thread.
    pub(crate) threads: u32,
    /// The lanes that have not exited.
    pub(crate) live: u32,
    pub(crate) frames: Vec<Frame>,
    free_frames: Vec<usize>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) joins: Vec<Join>,
    free_joins: Vec<usize>,
    /// The local memory of each lane.
    pub(crate) local: Vec<Vec<u8>>,
    /// The number of instructions that it has executed.
    pub(crate) clock: u64,
    /// For each lane, one more than the phase of the cluster barrier at which it arrived last, and
    /// at which it waited last. A wait refers to an arrival.
    pub(crate) cluster_arrivals: Vec<u64>,
    pub(crate) cluster_waits: Vec<u64>,
    /// The index of the fragment that runs next.
    pub(crate) turn: usize,
}

impl Warp {
    /// A warp with threads in the lanes of a mask.
    pub(crate) fn new(number: u32, threads: u32) -> Self {
        Self {
            number,
            threads,
            live: threads,
            cluster_arrivals: vec![0; 32],
            cluster_waits: vec![0; 32],
            ..Self::default()
        }
    }

    /// Whether the cluster barrier's phase at which lanes have arrived has completed.
    pub(crate) fn may_leave_cluster(&self, mask: u32, phase: u64) -> bool {
        let of_lane = self.cluster_arrivals.iter().zip(&self.cluster_waits).enumerate();
        of_lane.filter(|(lane, _)| mask >> lane & 1 == 1).all(|(_, (came, waited))| came > waited && *came <= phase)
    }

    pub(crate) fn frame(&mut self, code: &FunctionCode, function: u32, (local, stack): (u64, Row), live: u32) -> usize {
        let at = self.free_frames.pop().unwrap_or_else(|| {
            self.frames.push(Frame::default());
            self.frames.len() - 1
        });
        let frame = &mut self.frames[at];
        frame.function = function;
        frame.rows.clear();
        frame.rows.resize(code.slots as usize, [0; 32]);
        frame.predicates.clear();
        frame.predicates.resize(code.predicates as usize, 0);
        (frame.carry, frame.local, frame.stack, frame.live) = (0, local, stack, live);
        at
    }

    /// Lanes leave a frame. It is freed when no lane is left.
    pub(crate) fn leave(&mut self, frame: usize, mask: u32) {
        let own = &mut self.frames[frame];
        let was = own.live;
        own.live &= !mask;
        if own.live == 0 && was != 0 {
            self.free_frames.push(frame);
        }
    }

    pub(crate) fn new_join(&mut self, join: Join) -> usize {
        match self.free_joins.pop() {
            Some(at) => {
                self.joins[at] = join;
                at
            }
            None => {
                self.joins.push(join);
                self.joins.len() - 1
            }
        }
    }

    /// Updates the program counter at which a fragment stops, after its frame or its joins have
    /// changed.
    pub(crate) fn aim(&self, fragment: &mut Fragment) {
        fragment.stop = match fragment.joins.last().map(|at| &self.joins[*at]) {
            Some(join) if join.frame == fragment.frame => join.pc,
            _ => NOWHERE,
        };
    }

    /// A fragment has reached its last join. It waits there; or, if all expected lanes have
    /// arrived, it continues with them.
    pub(crate) fn arrive(&mut self, mut fragment: Fragment) -> Option<Fragment> {
        let Some(at) = fragment.joins.last().copied() else { return Some(fragment) };
        let join = &mut self.joins[at];
        join.arrived |= fragment.mask;
        if join.arrived & join.expected != join.expected {
            fragment.state = State::AtJoin;
            self.fragments.push(fragment);
            return None;
        }
        self.complete(at, Some(fragment))
    }

    /// All expected lanes of a join have arrived: they become one fragment.
    fn complete(&mut self, at: usize, own: Option<Fragment>) -> Option<Fragment> {
        let mut all = own;
        let mut place = 0;
        while place < self.fragments.len() {
            let other = &self.fragments[place];
            if other.state == State::AtJoin && other.joins.last() == Some(&at) {
                let other = self.fragments.swap_remove(place);
                match &mut all {
                    None => all = Some(other),
                    Some(all) => all.mask |= other.mask,
                }
            } else {
                place += 1;
            }
        }
        let mut all = all?;
        all.joins.pop();
        all.state = State::Ready;
        self.free_joins.push(at);
        self.aim(&mut all);
        Some(all)
    }

    /// After lanes have exited or were released, completes joins at which no other lanes are
    /// expected.
    pub(crate) fn settle_joins(&mut self) {
        let mut place = 0;
        while place < self.fragments.len() {
            let fragment = &self.fragments[place];
            if fragment.state == State::AtJoin
                && let Some(at) = fragment.joins.last().copied()
                && self.joins[at].arrived & self.joins[at].expected == self.joins[at].expected
                && let Some(fragment) = self.complete(at, None)
            {
                self.fragments.push(fragment);
                place = 0;
            } else {
                place += 1;
            }
        }
    }

    /// Lanes exit.
    pub(crate) fn end(&mut self, mask: u32) {
        self.live &= !mask;
        for join in &mut self.joins {
            join.expected &= !mask;
        }
        self.settle_joins();
    }

    /// Releases all fragments at joins, each on its own. Returns whether there was one.
    pub(crate) fn release(&mut self) -> bool {
        let mut is_any = false;
        for place in 0..self.fragments.len() {
            if self.fragments[place].state != State::AtJoin {
                continue;
            }
            let mut fragment = self.fragments[place].clone();
            if let Some(at) = fragment.joins.pop() {
                self.joins[at].expected &= !fragment.mask;
                self.joins[at].arrived &= !fragment.mask;
            }
            fragment.state = State::Ready;
            self.aim(&mut fragment);
            self.fragments[place] = fragment;
            is_any = true;
        }
        is_any
    }

    /// A fragment absorbs those that wait at the same instruction of the whole warp. Joins that not
    /// all of them have are abandoned.
    pub(crate) fn take_along(&mut self, fragment: &mut Fragment) {
        let mut place = 0;
        while place < self.fragments.len() {
            let other = &self.fragments[place];
            if other.state != State::Aligned || other.pc != fragment.pc || other.frame != fragment.frame {
                place += 1;
                continue;
            }
            let other = self.fragments.swap_remove(place);
            let common = fragment.joins.iter().zip(&other.joins).take_while(|(a, b)| a == b).count();
            for at in other.joins.iter().skip(common) {
                self.joins[*at].expected &= !other.mask;
            }
            for at in fragment.joins.iter().skip(common) {
                self.joins[*at].expected &= !fragment.mask;
            }
            fragment.joins.truncate(common);
            fragment.mask |= other.mask;
        }
        self.aim(fragment);
        self.settle_joins();
    }

    /// Merges fragments with the same program counter and the same joins.
    pub(crate) fn merge(&mut self) {
        let mut place = 0;
        while place < self.fragments.len() {
            let mut other = place + 1;
            while other < self.fragments.len() {
                let (a, b) = (&self.fragments[place], &self.fragments[other]);
                let is_same = a.state == State::Ready
                    && b.state == State::Ready
                    && a.pc == b.pc
                    && a.frame == b.frame
                    && a.joins == b.joins
                    && a.calls == b.calls;
                if is_same {
                    let gone = self.fragments.swap_remove(other);
                    self.fragments[place].mask |= gone.mask;
                } else {
                    other += 1;
                }
            }
            place += 1;
        }
    }
}
