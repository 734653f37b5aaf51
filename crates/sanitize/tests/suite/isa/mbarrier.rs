//! Barriers in shared memory against a list of what has happened to them.

use tilewright_sanitize::isa::mbarrier::{BarrierWord, MAX_COUNT, MbarrierFlaw};

use super::random::Random;

/// What a barrier is by its history: arrivals and bytes of the phase, and what each phase expects.
struct History {
    expected: i64,
    arrived: i64,
    bytes: i64,
    phases: u64,
}

impl History {
    fn settle(&mut self, expected_now: &mut i64) -> bool {
        let over = self.arrived == *expected_now && self.bytes == 0;
        if over {
            self.phases += 1;
            self.arrived = 0;
            *expected_now = self.expected;
        }
        over
    }
}

#[test]
fn phases_are_over_when_arrivals_and_bytes_are_there() {
    let mut random = Random::new(60);
    for _ in 0..200 {
        let count = 1 + random.below(6) as i64;
        let mut barrier = BarrierWord::new(count as u32).unwrap();
        let mut history = History { expected: count, arrived: 0, bytes: 0, phases: 0 };
        // The arrivals of this phase; dropped ones count in it still.
        let mut now = count;
        for _ in 0..100 {
            let tokens = (barrier.token(), barrier.phase());
            let amount = random.below(3) as i64;
            let left = now - history.arrived;
            match random.below(5) {
                0 => {
                    barrier.expect(16 * amount as u32).unwrap();
                    history.bytes += 16 * amount;
                }
                1 => {
                    history.bytes -= 16 * amount;
                    let over = history.settle(&mut now);
                    assert_eq!(barrier.complete(16 * amount as u32), Ok(over));
                }
                2 if history.expected > 1 && left > 0 => {
                    history.expected -= 1;
                    history.arrived += 1;
                    let over = history.settle(&mut now);
                    assert_eq!(barrier.arrive_drop(1), Ok(over));
                }
                _ if amount > left => {
                    let flaw = MbarrierFlaw::Arrivals { pending: left as u32, came: amount as u32 };
                    assert_eq!(barrier.arrive(amount as u32), Err(flaw));
                }
                _ => {
                    history.arrived += amount;
                    let over = history.settle(&mut now);
                    assert_eq!(barrier.arrive(amount as u32), Ok(over));
                }
            }
            assert_eq!(barrier.phase(), history.phases);
            assert_eq!(i64::from(barrier.pending()), now - history.arrived);
            assert_eq!((barrier.bytes(), i64::from(barrier.expected())), (history.bytes, history.expected));
            assert_eq!(barrier.is_over(tokens.0), barrier.phase() != tokens.1);
            for odd in [false, true] {
                // The last phase that is over has the other parity than the one that is not.
                let last = history.phases as i64 - 1;
                assert_eq!(barrier.is_over_parity(odd), (last & 1 == 1) == odd);
            }
        }
    }
}

#[test]
fn counts_have_their_ends() {
    assert!(BarrierWord::new(0).is_none());
    assert!(BarrierWord::new(MAX_COUNT + 1).is_none());
    let mut barrier = BarrierWord::new(MAX_COUNT).unwrap();
    assert_eq!(BarrierWord::pending_of(barrier.token()), MAX_COUNT);
    assert!(barrier.add_pending().is_err());
    assert!(barrier.expect(MAX_COUNT).is_ok());
    assert_eq!(barrier.expect(1), Err(MbarrierFlaw::Bytes(i64::from(MAX_COUNT) + 1)));
    assert_eq!(barrier.bytes(), i64::from(MAX_COUNT));
}
