//! Findings, merged by their statements and counted.

use std::collections::{BTreeMap, BTreeSet};

use super::checker::At;
use super::finding::{Defect, Finding};

/// The largest number of different findings that are kept.
const MAX_FINDINGS: usize = 200;

/// Findings with the same key are merged: the code of the defect, its two statements, and a flag
/// (see [`other`]).
type Key = (&'static str, Option<At>, Option<At>, bool);

/// The findings, by key.
#[derive(Debug, Default)]
pub(super) struct Reports {
    all: BTreeMap<Key, Finding>,
    /// Whether a count overflowed.
    pub(super) overflowed: bool,
}

/// The other statement of a defect, and a flag that distinguishes defects of one code.
fn other(defect: &Defect) -> (Option<At>, bool) {
    match defect {
        Defect::Race { before, .. }
        | Defect::RaceBetweenBlocks { before, .. }
        | Defect::Unfinished { before, .. }
        | Defect::NonCoherent { before, .. }
        | Defect::Unfenced { before, .. } => (Some(before.at), false),
        Defect::Registers { before, fence } => (Some(*before), *fence),
        Defect::BarrierNotReached { missing_at, .. } => (*missing_at, false),
        Defect::Lifetime { ended, .. } => (None, *ended),
        Defect::Arrivals { count, came, .. } => (None, came > count),
        _ => (None, false),
    }
}

impl Reports {
    /// Adds a finding.
    pub(super) fn add(&mut self, finding: Finding) {
        let (before, kind) = other(&finding.defect);
        // Which of two racing accesses comes first depends on the run.
        let races = matches!(finding.defect, Defect::Race { .. } | Defect::RaceBetweenBlocks { .. });
        let (first, second) =
            if races { (finding.at.max(before), finding.at.min(before)) } else { (finding.at, before) };
        let key = (finding.code(), first, second, kind);
        let kept = self.all.len();
        match self.all.get_mut(&key) {
            Some(known) => {
                let count = known.count.saturating_add(finding.count);
                if (finding.at, finding.thread) < (known.at, known.thread) {
                    *known = finding;
                }
                known.count = count;
            }
            None if kept < MAX_FINDINGS => {
                self.all.insert(key, finding);
            }
            None => {}
        }
    }

    pub(super) fn merge(&mut self, other: Reports) {
        self.overflowed |= other.overflowed;
        for finding in other.all.into_values() {
            self.add(finding);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= MAX_FINDINGS || self.overflowed
    }

    /// All findings, by instruction. A read of unwritten bytes is left out if the same statement
    /// races with a write: the write came later in this run.
    pub(super) fn sorted(&self) -> Vec<Finding> {
        let races = |finding: &&Finding| matches!(finding.code(), "E1016" | "E1017" | "E1018");
        let racing: BTreeSet<At> = (self.all.values().filter(races))
            .flat_map(|finding| [finding.at, other(&finding.defect).0].into_iter().flatten())
            .collect();
        let follows = |finding: &Finding| {
            matches!(finding.defect, Defect::Unwritten { .. }) && finding.at.is_some_and(|at| racing.contains(&at))
        };
        let mut all: Vec<Finding> = self.all.values().filter(|finding| !follows(finding)).cloned().collect();
        all.sort_by_key(|finding| (finding.at, finding.thread, finding.code()));
        all
    }
}
