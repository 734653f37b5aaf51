//! Packed blocks that threads share.
//!
//! **Law.** Each block is packed once, by the first thread that asks for it. A thread that gets a
//! block finds all of it written. A thread waits only for a thread that is packing, never for one
//! that has not started. If packing panics, the block is free again, and the next thread that asks
//! packs it.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

use super::workspace::ProductWorkspace;

/// The states of a block: free (nobody has asked for it), being packed, packed.
const FREE: u8 = 0;
const PACKING: u8 = 1;
const PACKED: u8 = 2;

/// How often a waiting thread spins before it yields.
const SPINS: usize = 1 << 10;

/// Memory for all blocks of an operand.
pub(super) struct SharedBlocks {
    workspace: ProductWorkspace,
    states: Vec<AtomicU8>,
    /// The distance from one block to the next, in bytes.
    block: usize,
}

// SAFETY: the memory of a block is written by the one thread that took it from FREE to PACKING, and
// read by others only after that thread stored PACKED with release ordering.
unsafe impl Sync for SharedBlocks {}

/// The state that a block gets when its packing ends, also by a panic.
struct Outcome<'a> {
    state: &'a AtomicU8,
    end: u8,
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        self.state.store(self.end, Ordering::Release);
    }
}

impl SharedBlocks {
    /// Memory for this many blocks of this many bytes.
    pub fn new(blocks: usize, block: usize) -> SharedBlocks {
        let states = std::iter::repeat_with(|| AtomicU8::new(FREE)).take(blocks).collect();
        SharedBlocks { workspace: ProductWorkspace::take_shared(blocks.saturating_mul(block)), states, block }
    }

    /// Whether a block is packed, or being packed.
    pub fn is_taken(&self, number: usize) -> bool {
        self.states.get(number).is_some_and(|state| state.load(Ordering::Relaxed) != FREE)
    }

    /// The beginning of a block, after `pack` has written it if nobody had; None if there is no
    /// such block.
    pub fn get(&self, number: usize, pack: impl FnOnce(*mut u8)) -> Option<*mut u8> {
        let state = self.states.get(number)?;
        let place = self.workspace.start().wrapping_add(number * self.block);
        let mut spins = 0;
        loop {
            match state.compare_exchange(FREE, PACKING, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    let mut outcome = Outcome { state, end: FREE };
                    pack(place);
                    outcome.end = PACKED;
                    return Some(place);
                }
                Err(PACKED) => return Some(place),
                Err(_) if spins < SPINS => {
                    spins += 1;
                    std::hint::spin_loop();
                }
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// Keeps the memory for the next GEMM of this thread.
    pub fn keep(self) {
        self.workspace.keep_shared();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::SharedBlocks;

    #[test]
    fn each_block_is_packed_once_and_seen_by_all() {
        const WORDS: usize = 1000;
        let shared = SharedBlocks::new(7, WORDS * 8);
        let packed = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (shared, packed) = (&shared, &packed);
                    scope.spawn(move || {
                        for number in (0..7).map(|turn| (turn + 2 * thread) % 7) {
                            let from = shared.get(number, |to| {
                                packed.fetch_add(1, Ordering::Relaxed);
                                // SAFETY: a block has room for this many words.
                                (0..WORDS).for_each(|at| unsafe { to.cast::<usize>().add(at).write(number * at) });
                            });
                            let from = from.unwrap().cast::<usize>();
                            // SAFETY: the block was written by the closure above.
                            assert!((0..WORDS).all(|at| unsafe { *from.add(at) } == number * at));
                            assert!(shared.is_taken(number));
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(packed.into_inner(), 7);
        assert_eq!(shared.get(7, |_| ()), None);
    }

    #[test]
    fn a_panic_leaves_the_block_to_the_next() {
        let shared = SharedBlocks::new(1, 64);
        let (begun, packed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let failed = std::thread::scope(|scope| {
            let failing = scope.spawn(|| {
                shared.get(0, |_| {
                    begun.store(1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    panic!("packing failed");
                });
            });
            // This thread finds the block being packed, and waits.
            while begun.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let place = shared.get(0, |_| {
                packed.fetch_add(1, Ordering::SeqCst);
            });
            assert!(place.is_some());
            failing.join().is_err()
        });
        assert!(failed);
        assert_eq!(packed.into_inner(), 1);
    }
}
