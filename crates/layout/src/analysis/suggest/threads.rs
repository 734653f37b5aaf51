//! A better order of threads.
//!
//! Law: in a linear access, the lowest `k` bits of the thread index are the lanes of a phase. A
//! permutation of the bits changes which bits these are. A phase takes `2^(d - r)` wavefronts,
//! where `d` is the rank of the words and `r` the rank of the banks of these bits. Independence of
//! the banks is a matroid on the bits. So the greedy choice, in order, of each bit whose bank is
//! independent of the earlier ones reaches the largest rank.

use alloc::vec::Vec;

use crate::{BitSpace, Layout, Tree};

use super::linear::Bits;
use super::{Problem, Proof, Remedy, Suggestion, total};
use crate::analysis::banks::bank_conflicts;
use crate::analysis::error::AnalysisError;

impl Problem<'_> {
    /// The best order of the threads of an access, if it is better than the given order.
    pub(super) fn threads(&self, number: usize) -> Result<Option<Suggestion>, AnalysisError> {
        let (Some(access), Some(before)) = (self.accesses.get(number), self.reports.get(number)) else {
            return Ok(None);
        };
        let Some(bits) = Bits::of(self, access).filter(|_| !access.is_fixed() && !before.is_conflict_free()) else {
            return Ok(None);
        };
        let (slot, line) = (bits.slot, self.line());
        let mask = (1_u64 << line) - 1;
        let (mut banks, mut words) = (BitSpace::default(), BitSpace::default());
        let mut chosen: Vec<usize> = Vec::new();
        for (bit, offset) in bits.threads.iter().enumerate() {
            if chosen.len() < bits.lanes && banks.insert((offset & mask) >> slot).value != 0 {
                words.insert(offset >> slot);
                chosen.push(bit);
            }
        }
        // The remaining lanes: first bits whose words other lanes access too, then any bits.
        for share in [true, false] {
            for (bit, offset) in bits.threads.iter().enumerate() {
                let old = words.contains(offset >> slot);
                if chosen.len() < bits.lanes && !chosen.contains(&bit) && (old || !share) {
                    words.insert(offset >> slot);
                    chosen.push(bit);
                }
            }
        }
        chosen.sort_unstable();
        let rest = (0..bits.threads.len()).filter(|bit| !chosen.contains(bit));
        let order: Vec<usize> = chosen.iter().copied().chain(rest).collect();
        let steps = order.iter().map(|bit| access.index(1_i64 << bit, 0)).collect::<Result<Vec<_>, _>>()?;
        let threads = Layout::new(&Tree::flat(steps.iter().map(|_| 2))?, &Tree::flat(steps.iter().copied())?)?;
        let values: Vec<Layout> = access.pattern().modes().skip(1).collect();
        let values = match values.as_slice() {
            [] => Layout::unit(),
            [only] => only.clone(),
            several => Layout::tuple(several)?,
        };
        let pattern = Layout::tuple([&threads.coalesce()?, &values])?;
        let changed = access.with_pattern(&pattern)?;
        let report = bank_conflicts(&self.storage, &changed, self.banks)?;
        if report.wavefronts() >= before.wavefronts() {
            return Ok(None);
        }
        let alone = report.is_conflict_free();
        let mut reports = self.reports.clone();
        if let Some(place) = reports.get_mut(number) {
            *place = report;
        }
        // The other accesses may still take more wavefronts than their words require; then a change
        // of another kind may be better.
        let proof = match (total(&reports) <= self.bound, alone) {
            (true, _) => Proof::Bound,
            (false, true) => Proof::Exhausted,
            (false, false) => Proof::Open,
        };
        let remedy = Remedy::Threads { access: number, pattern };
        Ok(Some(Suggestion { remedy, layout: self.tile.clone(), reports, extra: 0, proof }))
    }
}
