//! Packed blocks that threads share.
//!
//! **Law.** Each block is packed once, by the thread that asks for it first; whoever is given a block finds all of it written. A thread waits only for one that is packing
//! at the time, never for one that has yet to come.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

use super::workspace::Workspace;

/// A block that nobody has asked for, that is being packed, and that is there.
const NONE: u8 = 0;
const BUSY: u8 = 1;
const THERE: u8 = 2;

/// How often a thread looks again before it gives its place to others.
const LOOKS: usize = 1 << 10;

/// Room for all blocks of a factor.
pub(super) struct Shared {
    workspace: Workspace,
    states: Vec<AtomicU8>,
    /// The bytes from one block to the next.
    block: usize,
}

// SAFETY: the memory of a block is written by the one thread that found it in nobody's hands, and read by others only after that thread has said that it is there.
unsafe impl Sync for Shared {}

impl Shared {
    /// Room for so many blocks of so many bytes.
    pub fn new(blocks: usize, block: usize) -> Shared {
        let states = std::iter::repeat_with(|| AtomicU8::new(NONE)).take(blocks).collect();
        Shared { workspace: Workspace::take_shared(blocks.saturating_mul(block)), states, block }
    }

    /// Whether a block is there, or about to be.
    pub fn asked_for(&self, number: usize) -> bool {
        self.states.get(number).is_some_and(|state| state.load(Ordering::Relaxed) != NONE)
    }

    /// The beginning of a block, which `pack` writes if nobody has; none where there is no such block.
    pub fn get(&self, number: usize, pack: impl FnOnce(*mut u8)) -> Option<*mut u8> {
        let state = self.states.get(number)?;
        let place = self.workspace.start().wrapping_add(number * self.block);
        match state.compare_exchange(NONE, BUSY, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                pack(place);
                state.store(THERE, Ordering::Release);
            }
            Err(_) => {
                let mut looks = 0;
                while state.load(Ordering::Acquire) != THERE {
                    looks += 1;
                    if looks < LOOKS {
                        std::hint::spin_loop();
                    } else {
                        std::thread::yield_now();
                    }
                }
            }
        }
        Some(place)
    }

    /// Leaves the memory to the next product of this thread.
    pub fn keep(self) {
        self.workspace.keep_shared();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Shared;

    #[test]
    fn each_block_is_packed_once_and_seen_by_all() {
        const WORDS: usize = 1000;
        let shared = Shared::new(7, WORDS * 8);
        let packed = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (shared, packed) = (&shared, &packed);
                    scope.spawn(move || {
                        for number in (0..7).map(|turn| (turn + 2 * thread) % 7) {
                            let from = shared.get(number, |to| {
                                packed.fetch_add(1, Ordering::Relaxed);
                                // SAFETY: the room of a block.
                                (0..WORDS).for_each(|at| unsafe { to.cast::<usize>().add(at).write(number * at) });
                            });
                            let from = from.unwrap().cast::<usize>();
                            // SAFETY: the block was written.
                            assert!((0..WORDS).all(|at| unsafe { *from.add(at) } == number * at));
                            assert!(shared.asked_for(number));
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(packed.into_inner(), 7);
        assert_eq!(shared.get(7, |_| ()), None);
    }
}
