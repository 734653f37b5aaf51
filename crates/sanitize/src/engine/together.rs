//! What lanes of a warp compute together: shuffles, votes, matches and reductions.
//!
//! Law: each lane of the mask gets the result that the ISA defines from the values of the
//! participating lanes. A lane that reads from a lane that does not participate gets its own value.

use super::code::{FunctionCode, Meeting, Reduction, Row, Together};
use super::warp::Frame;

/// The operands of all lanes.
#[derive(Clone, Copy, Default)]
pub(super) struct Inputs {
    a: Row,
    b: Row,
    c: Row,
    p: u32,
}

impl Inputs {
    pub(super) fn of(frame: &Frame, code: &FunctionCode, meeting: &Meeting) -> Self {
        Self {
            a: *frame.row(code, meeting.a),
            b: *frame.row(code, meeting.b),
            c: *frame.row(code, meeting.c),
            p: frame.truth(meeting.p),
        }
    }

    /// Copies the lanes of a mask from other inputs.
    pub(super) fn take(&mut self, other: &Self, mask: u32) {
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            self.a[lane] = other.a[lane];
            self.b[lane] = other.b[lane];
            self.c[lane] = other.c[lane];
        }
        self.p = self.p & !mask | other.p & mask;
    }
}

impl Inputs {
    /// The predicates of all lanes.
    pub(super) fn votes(&self) -> u32 {
        self.p
    }

    /// The same inputs with the number of each lane as its value. A shuffle of them returns the
    /// lane from which each value comes.
    pub(super) fn lanes(&self) -> Self {
        Self { a: std::array::from_fn(|lane| lane as u64), ..*self }
    }
}

/// The results of all lanes.
pub(super) struct Outputs {
    d: Row,
    q: u32,
}

impl Outputs {
    /// The values of all lanes.
    pub(super) fn sources(&self) -> &Row {
        &self.d
    }

    pub(super) fn put(&self, frame: &mut Frame, meeting: &Meeting, mask: u32) {
        if let Some(d) = meeting.d {
            frame.put(d, &self.d, mask, false);
        }
        if let Some(q) = meeting.q {
            frame.set_truth(q, self.q, mask);
        }
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// Computes the results for the lanes `active`. `mask` holds the participating lanes.
pub(super) fn run(meeting: &Meeting, mask: u32, active: u32, inputs: &Inputs) -> Outputs {
    let mut out = Outputs { d: [0; 32], q: 0 };
    let part = mask & active;
    match meeting.what {
        Together::Sync => {}
        Together::ShuffleUp | Together::ShuffleDown | Together::ShuffleXor | Together::ShuffleIndex => {
            for lane in lanes(active) {
                let own = lane as i64;
                let by = (inputs.b[lane] & 31) as i64;
                let (bound, segment) = ((inputs.c[lane] & 31) as i64, (inputs.c[lane] >> 8 & 31) as i64);
                let greatest = own & segment | bound & !segment;
                let least = own & segment;
                let (from, is_in) = match meeting.what {
                    Together::ShuffleUp => (own - by, own - by >= greatest),
                    Together::ShuffleDown => (own + by, own + by <= greatest),
                    Together::ShuffleXor => (own ^ by, own ^ by <= greatest),
                    _ => (least | by & !segment, least | by & !segment <= greatest),
                };
                let from = if is_in { from as usize & 31 } else { lane };
                out.d[lane] = inputs.a[if part >> from & 1 == 1 { from } else { lane }];
                out.q |= u32::from(is_in) << lane;
            }
        }
        Together::VoteAll => out.q = if inputs.p & part == part { u32::MAX } else { 0 },
        Together::VoteAny => out.q = if inputs.p & part != 0 { u32::MAX } else { 0 },
        Together::VoteUniform => {
            out.q = if inputs.p & part == part || inputs.p & part == 0 { u32::MAX } else { 0 };
        }
        Together::Ballot => out.d = [u64::from(inputs.p & part); 32],
        Together::MatchAny => {
            for lane in lanes(part) {
                let same = lanes(part).filter(|other| inputs.a[*other] == inputs.a[lane]);
                out.d[lane] = same.fold(0, |mask, other| mask | 1 << other);
            }
        }
        Together::MatchAll => {
            let first = inputs.a[part.trailing_zeros() as usize & 31];
            let is_same = lanes(part).all(|lane| inputs.a[lane] == first);
            out.d = [if is_same { u64::from(part) } else { 0 }; 32];
            out.q = if is_same { u32::MAX } else { 0 };
        }
        Together::Elect => {
            let leader = part.trailing_zeros() & 31;
            out.d = [u64::from(leader); 32];
            out.q = 1 << leader;
        }
        Together::Reduce(what) => {
            let values = lanes(part).map(|lane| inputs.a[lane] as u32);
            let result = values.reduce(|a, b| reduce(what, a, b)).unwrap_or(0);
            let result = match what {
                Reduction::Float { absolute: true, .. } => result & 0x7fff_ffff,
                _ => result,
            };
            out.d = [u64::from(result); 32];
        }
    }
    out
}

fn reduce(what: Reduction, a: u32, b: u32) -> u32 {
    match what {
        Reduction::Add => a.wrapping_add(b),
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
        Reduction::MinUnsigned => a.min(b),
        Reduction::MaxUnsigned => a.max(b),
        Reduction::MinSigned => (a as i32).min(b as i32) as u32,
        Reduction::MaxSigned => (a as i32).max(b as i32) as u32,
        Reduction::Float { is_max, absolute, nan } => {
            let clean = |bits: u32| if absolute { bits & 0x7fff_ffff } else { bits };
            let mode = crate::isa::float::ExtremeMode { max: is_max, nan, ..Default::default() };
            crate::isa::float::extreme32(clean(a), clean(b), mode)
        }
    }
}
