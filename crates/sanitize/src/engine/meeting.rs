//! Instructions of lanes that wait for each other: shuffles, votes, `bar.warp.sync`.

use super::cluster::{Cluster, Stop};
use super::code::{Meeting, Op, Together};
use super::execute::{Executes, Flow};
use super::together;
use super::warp::{Fragment, State, Warp};
use crate::check::finding::Defect;

impl Cluster<'_> {
    pub(super) fn meet(&mut self, by: &mut Executes<'_>, meeting: &Meeting) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let masks = *warp.frames[fragment.frame].row(code, meeting.mask);
        let mask = masks[active.trailing_zeros() as usize & 31] as u32;
        let same = (0..32_u32)
            .filter(|lane| active >> lane & 1 == 1 && masks[*lane as usize] as u32 == mask)
            .fold(0, |all, lane| all | 1 << lane);
        if same != active {
            // Lanes with other masks execute the instruction separately.
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
            let parts = [(fragment.frame, active, *meeting)];
            self.trace_meeting(block, warp, meeting, &parts, (mask | active, active), &inputs);
            self.met(block, warp, active, meeting);
            return Ok(Flow::Next);
        }
        self.split_active(warp, fragment, active);
        fragment.state = State::Meeting { mask };
        warp.fragments.push(fragment.clone());
        self.try_meeting(block, warp, mask, needed, false)?;
        // The fragment is among those of the warp already.
        Ok(Flow::Ended)
    }

    fn met(&mut self, block: usize, warp: &Warp, mask: u32, meeting: &Meeting) {
        if meeting.what == Together::Sync {
            let lanes = self.lanes(block, warp, mask);
            self.check.warp_sync(lanes);
        }
    }

    /// Executes an instruction whose lanes arrived in several fragments, if all have arrived.
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
        let mut parts = Vec::new();
        for place in &places {
            let fragment = &warp.fragments[*place];
            let code = &program.functions[warp.frames[fragment.frame].function as usize];
            if let Some((own, _)) = meeting_of(warp, fragment) {
                let theirs = together::Inputs::of(&warp.frames[fragment.frame], code, &own);
                inputs.take(&theirs, fragment.mask);
                parts.push((fragment.frame, fragment.mask, own));
            }
        }
        let outputs = together::run(&kind.0, mask | came, came, &inputs);
        self.trace_meeting(block, warp, &kind.0, &parts, (mask | came, came), &inputs);
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

    /// Executes an instruction for which lanes of a mask do not arrive. Returns whether there was
    /// one.
    pub(super) fn force_meetings(&mut self, block: usize, warp: &mut Warp) -> Result<bool, Stop> {
        for _ in 0..warp.fragments.len() {
            let Some(mask) = warp.fragments.iter().find_map(|fragment| match fragment.state {
                State::Meeting { mask } => Some(mask),
                _ => None,
            }) else {
                break;
            };
            // Lanes that have exited are no longer required.
            let needed = mask & warp.live;
            if self.try_meeting(block, warp, mask, needed, false)?
                || self.try_meeting(block, warp, mask, needed, true)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
