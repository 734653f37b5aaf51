//! Registers of wgmma: which instructions may access them, and when.

use std::collections::{HashMap, HashSet};

use super::super::checker::{At, Lanes, Wgmma};
use super::super::finding::Defect;
use super::ClusterChecker;

/// The registers of a warp that wgmma uses.
#[derive(Debug, Default)]
pub(super) struct RegisterFile {
    /// Registers of wgmma in flight: the wgmma, the number of its group, and whether it writes the
    /// register.
    flying: HashMap<u32, (At, u64, bool)>,
    /// Registers that were written since the last `wgmma.fence`, with the instruction.
    dirty: HashMap<u32, At>,
    /// Registers that any wgmma has used. Accesses to other registers are not recorded.
    used: HashSet<u32>,
    /// Whether there was a `wgmma.fence` before the first wgmma.
    fenced: bool,
    /// The number of closed groups.
    groups: u64,
}

impl ClusterChecker<'_> {
    pub(super) fn fence_registers(&mut self, by: Lanes) {
        let file = self.warp_mut(by).registers.get_or_insert_default();
        file.fenced = true;
        file.dirty.clear();
    }

    pub(super) fn use_registers(&mut self, wgmma: &Wgmma<'_>) {
        let by = wgmma.by;
        let file = self.warp_mut(by).registers.get_or_insert_default();
        let mut found = None;
        if !file.fenced {
            found = Some(Defect::Registers { before: wgmma.at, fence: true });
            file.fenced = true;
        }
        for (registers, writes) in [(wgmma.accumulators, true), (wgmma.operands, false)] {
            for register in registers {
                file.used.insert(*register);
                if let Some(before) = file.dirty.remove(register) {
                    found.get_or_insert(Defect::Registers { before, fence: true });
                }
                file.flying.insert(*register, (wgmma.at, file.groups, writes));
            }
        }
        if let Some(defect) = found {
            self.find(defect, wgmma.at, self.first(by));
        }
    }

    pub(super) fn commit_registers(&mut self, by: Lanes) {
        if let Some(file) = &mut self.warp_mut(by).registers {
            file.groups += 1;
        }
    }

    pub(super) fn wait_registers(&mut self, by: Lanes, pending: u32) {
        if let Some(file) = &mut self.warp_mut(by).registers {
            let groups = file.groups;
            // A wgmma of a group that is not closed stays in flight, whatever is waited for.
            file.flying.retain(|_, (_, group, _)| *group + u64::from(pending) >= groups);
        }
    }

    pub(super) fn touch_registers(&mut self, by: Lanes, at: At, reads: &[u32], writes: &[u32]) {
        let Some(file) = &mut self.warp_mut(by).registers else { return };
        // A wgmma in flight may still read its operands. Other instructions may read them, too.
        let read = reads.iter().filter_map(|register| file.flying.get(register).filter(|flying| flying.2)).next();
        let written = writes.iter().filter_map(|register| file.flying.get(register)).next();
        let found = read.or(written).map(|flying| flying.0);
        for register in writes {
            file.flying.remove(register);
            if file.used.contains(register) {
                file.dirty.insert(*register, at);
            }
        }
        if let Some(before) = found {
            self.find(Defect::Registers { before, fence: false }, at, self.first(by));
        }
    }

    pub(super) fn copy_register(&mut self, by: Lanes, from: u32, to: u32) {
        let Some(file) = &mut self.warp_mut(by).registers else { return };
        match file.flying.get(&from).copied() {
            Some(flying) => {
                file.flying.insert(to, flying);
            }
            None => {
                file.flying.remove(&to);
            }
        }
        if file.used.contains(&from) {
            file.used.insert(to);
        }
        match file.dirty.get(&from).copied() {
            Some(at) => {
                file.dirty.insert(to, at);
            }
            None => {
                file.dirty.remove(&to);
            }
        }
    }
}
