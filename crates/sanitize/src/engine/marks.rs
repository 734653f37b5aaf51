//! Marks on values: the reads on which a value depends, as long as nothing has used it.
//!
//! Law: a value without a mark does not depend on a watched read that is still unused. Reads create
//! marks, arithmetic joins them, and a value that is not selected loses its mark. A mark is *spent*
//! when its value is used: then all its reads count as used, and no longer mark anything.

use std::collections::HashMap;

/// A mark: one more than the number of a node; 0 for none.
pub(super) type Mark = u32;

/// The mark of each lane.
pub(super) type Marks = [Mark; 32];

/// The most nodes. When there are so many, joined marks are spent at once.
const MAX_NODES: usize = 1 << 22;

/// What a mark stands for.
#[derive(Clone, Copy)]
enum Node {
    /// A watched read, by its number, and the lane.
    Read(u32, u32),
    /// Two joined marks.
    Both(Mark, Mark),
    /// Reads that have been used.
    Spent,
}

/// A register of a frame of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Register {
    /// The number of the warp in the cluster.
    pub(super) warp: u32,
    pub(super) frame: u32,
    /// The number of its slot; [`PREDICATE`] is added for predicates. [`CARRY`] for the carry flag.
    pub(super) slot: u32,
}

/// Added to the number of a predicate register.
pub(super) const PREDICATE: u32 = 1 << 30;
/// The slot of the carry flag of a frame.
pub(super) const CARRY: u32 = u32::MAX;

/// A byte of local memory, by warp and lane, or of shared memory, by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Byte {
    Local(u32, u32, u64),
    Shared(u32, u64),
}

/// The marks of a cluster.
#[derive(Default)]
pub(super) struct MarksOfCluster {
    nodes: Vec<Node>,
    joined: HashMap<(Mark, Mark), Mark>,
    registers: HashMap<Register, Marks>,
    memory: HashMap<Byte, Mark>,
    /// Reads, with their lanes, that were used since the last report.
    used: Vec<(u32, u32)>,
}

impl MarksOfCluster {
    fn add(&mut self, node: Node) -> Mark {
        self.nodes.push(node);
        self.nodes.len() as Mark
    }

    fn is_spent(&self, mark: Mark) -> bool {
        mark == 0 || matches!(self.nodes[mark as usize - 1], Node::Spent)
    }

    /// The mark of a value that a lane has read.
    pub(super) fn read(&mut self, number: u32, lane: u32) -> Mark {
        if self.nodes.len() >= MAX_NODES {
            self.used.push((number, lane));
            return 0;
        }
        self.add(Node::Read(number, lane))
    }

    /// The mark of a value that depends on two values.
    pub(super) fn join(&mut self, a: Mark, b: Mark) -> Mark {
        if a == b || self.is_spent(b) {
            return if self.is_spent(a) { 0 } else { a };
        }
        if self.is_spent(a) {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.joined.get(&key) {
            return if self.is_spent(*known) { 0 } else { *known };
        }
        if self.nodes.len() >= MAX_NODES {
            self.spend(a);
            self.spend(b);
            return 0;
        }
        let mark = self.add(Node::Both(key.0, key.1));
        self.joined.insert(key, mark);
        mark
    }

    /// Spends a mark, because its value is used.
    pub(super) fn spend(&mut self, mark: Mark) {
        let mut left = vec![mark];
        while let Some(mark) = left.pop() {
            let Some(node) = (mark as usize).checked_sub(1).map(|at| &mut self.nodes[at]) else { continue };
            match std::mem::replace(node, Node::Spent) {
                Node::Read(number, lane) => self.used.push((number, lane)),
                Node::Both(a, b) => left.extend([a, b]),
                Node::Spent => {}
            }
        }
    }

    /// Spends the marks of some lanes.
    pub(super) fn spend_lanes(&mut self, marks: &Marks, mask: u32) {
        for (lane, mark) in marks.iter().enumerate() {
            if *mark != 0 && mask >> lane & 1 == 1 {
                self.spend(*mark);
            }
        }
    }

    /// Spends the marks of all bytes of local memory of some lanes of a warp.
    pub(super) fn spend_local(&mut self, warp: u32, mask: u32) {
        let is_local = |byte: &Byte| matches!(byte, Byte::Local(of, lane, _) if *of == warp && mask >> lane & 1 == 1);
        let all: Vec<Mark> = self.memory.iter().filter(|(byte, _)| is_local(byte)).map(|(_, mark)| *mark).collect();
        all.into_iter().for_each(|mark| self.spend(mark));
    }

    /// The reads that were used since the last call.
    pub(super) fn take_used(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.used)
    }

    /// Whether there are no marks.
    pub(super) fn is_empty(&self) -> bool {
        self.registers.is_empty() && self.memory.is_empty()
    }

    pub(super) fn of_register(&self, register: Register) -> Marks {
        self.registers.get(&register).copied().unwrap_or_default()
    }

    /// Sets the marks of a register for the lanes of a mask.
    pub(super) fn put(&mut self, register: Register, marks: &Marks, mask: u32) {
        let mut row = self.of_register(register);
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            row[lane] = if self.is_spent(marks[lane]) { 0 } else { marks[lane] };
        }
        match row == Marks::default() {
            true => self.registers.remove(&register),
            false => self.registers.insert(register, row),
        };
    }

    /// Removes the marks of a frame that is entered again.
    pub(super) fn clear_frame(&mut self, warp: u32, frame: u32) {
        self.registers.retain(|own, _| (own.warp, own.frame) != (warp, frame));
    }

    /// The mark of a value that is loaded from bytes of memory.
    pub(super) fn of_bytes(&mut self, count: u32, byte: impl Fn(u64) -> Byte) -> Mark {
        if self.memory.is_empty() {
            return 0;
        }
        (0..u64::from(count)).fold(0, |all, at| match self.memory.get(&byte(at)) {
            Some(mark) => self.join(all, *mark),
            None => all,
        })
    }

    /// Sets or removes the marks of bytes of memory.
    pub(super) fn put_bytes(&mut self, count: u32, byte: impl Fn(u64) -> Byte, mark: Mark) {
        if self.is_spent(mark) {
            if !self.memory.is_empty() {
                for at in 0..u64::from(count) {
                    self.memory.remove(&byte(at));
                }
            }
            return;
        }
        self.memory.extend((0..u64::from(count)).map(|at| (byte(at), mark)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: spending a mark spends all marks that it joins, once; after that it joins with nothing.
    #[test]
    fn what_is_used_marks_nothing_any_more() {
        let mut marks = MarksOfCluster::default();
        let [a, b, c] = [0, 1, 2].map(|number| marks.read(number, 7));
        let ab = marks.join(a, b);
        assert_eq!(marks.join(b, a), ab);
        let abc = marks.join(ab, c);
        marks.spend(ab);
        let mut used = marks.take_used();
        used.sort_unstable();
        assert_eq!(used, [(0, 7), (1, 7)]);
        assert_eq!(marks.join(a, c), c);
        marks.spend(abc);
        assert_eq!(marks.take_used(), [(2, 7)]);
        assert_eq!(marks.join(abc, c), 0);
    }
}
