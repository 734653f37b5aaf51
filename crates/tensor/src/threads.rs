//! The threads that share the work on tensors.
//!
//! Law: work runs on threads of this process, or on the calling thread alone. rayon starts its
//! global pool once, and a forked process has none of its threads, so work that a forked process
//! gives to that pool never finishes. So a forked process gets a pool of its own. If the system
//! refuses threads, the calling thread works alone.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

mod fork;

/// The fork generation of the process that owns rayon's global pool, plus 1; 0 if this module has
/// not asked for the pool yet.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether the system refused threads for the global pool.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The pool of a forked process, and its fork generation plus 1.
static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The threads that share work in this process.
pub(crate) enum Threads {
    /// The calling thread only.
    One,
    /// The rayon pool that the calling thread is in, or rayon's global pool.
    Current,
    /// The pool of a forked process.
    Own(Arc<ThreadPool>),
}

impl Threads {
    /// The threads for work that the calling thread starts.
    pub fn here() -> Threads {
        // A thread in a pool belongs to this process, and so does the pool.
        if rayon::current_thread_index().is_some() {
            return Threads::Current;
        }
        let own = fork::generation().wrapping_add(1);
        let begins = OWNER.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        match begins {
            Ok(_) => {
                let refused = ThreadPoolBuilder::new().build_global().err();
                // A pool that exists already is fine; a pool without threads is refused.
                REFUSED.store(refused.is_some_and(|refused| refused.source().is_some()), Ordering::Release);
            }
            Err(owner) if owner != own => return Threads::forked(own),
            Err(_) => {}
        }
        if REFUSED.load(Ordering::Acquire) { Threads::One } else { Threads::Current }
    }

    fn forked(own: u32) -> Threads {
        let mut kept = match FORKED.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            // Another thread is creating the pool; or a thread of the parent was, and never
            // finishes.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(Some((owner, pool))) = kept.as_deref()
            && *owner == own
        {
            return Threads::Own(Arc::clone(pool));
        }
        let Ok(pool) = ThreadPoolBuilder::new().build() else { return Threads::One };
        let pool = Arc::new(pool);
        if let Some(kept) = &mut kept
            && let Some(parents) = kept.replace((own, Arc::clone(&pool)))
        {
            // The threads of this pool are the parent's, so there is nothing to stop.
            std::mem::forget(parents);
        }
        Threads::Own(pool)
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        match self {
            Threads::One => 1,
            Threads::Current => rayon::current_num_threads(),
            Threads::Own(pool) => pool.current_num_threads(),
        }
    }

    /// Calls `part` with every number below `parts`, on all of them. What they call is no parameter
    /// of the type, so that the code of rayon is compiled once and not for each use.
    pub fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let shared = || (0..parts).into_par_iter().with_max_len(1).for_each(part);
        match self {
            Threads::One => (0..parts).for_each(part),
            Threads::Current => shared(),
            Threads::Own(pool) => pool.install(shared),
        }
    }

    /// The same work on the calling thread and on this many others, if there are any. The calling
    /// thread begins at once, so that only the others need to be woken.
    pub fn beside(&self, others: usize, work: &(dyn Fn() + Sync)) {
        match self {
            Threads::One => work(),
            Threads::Current => rayon::in_place_scope(|scope| shared(scope, others, work)),
            Threads::Own(pool) => pool.in_place_scope(|scope| shared(scope, others, work)),
        }
    }
}

/// The number of threads that share work that the calling thread starts.
pub(crate) fn count() -> usize {
    Threads::here().count()
}

fn shared<'scope>(scope: &rayon::Scope<'scope>, others: usize, work: &'scope (dyn Fn() + Sync)) {
    for _ in 0..others {
        scope.spawn(|_| work());
    }
    work();
}
