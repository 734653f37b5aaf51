//! The threads that share the work on tensors.
//!
//! Law: work runs on threads of this very process, or on the calling thread alone. rayon's pool
//! begins once, and a forked process has none of its threads: whoever hands it work there waits for
//! ever. So a forked process gets a pool of its own. Where the system gives no threads, the calling
//! thread works alone.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

mod fork;

/// The generation of the process whose threads rayon's pool has, and 1; 0 where nobody asked for it
/// here.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether the system gave no threads for it.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The pool of a forked process, and its generation and 1.
static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The threads of this process.
pub(crate) enum Threads {
    /// The calling one.
    One,
    /// Those of the rayon pool that the calling thread is in, or of rayon's own.
    Current,
    /// Those of a pool of a forked process.
    Own(Arc<ThreadPool>),
}

impl Threads {
    /// The threads for work that the calling thread begins.
    pub fn here() -> Threads {
        // Who is in a pool is one of its threads, so the pool is of this process.
        if rayon::current_thread_index().is_some() {
            return Threads::Current;
        }
        let own = fork::generation().wrapping_add(1);
        let begins = OWNER.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        match begins {
            Ok(_) => {
                let refused = ThreadPoolBuilder::new().build_global().err();
                // A pool that is there already is no matter; one without threads is.
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
            // Another thread is making the pool; or one of the parent was, and never ends.
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
            // Its threads are the parent's: there is nothing to end here.
            std::mem::forget(parents);
        }
        Threads::Own(pool)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Threads::One => 1,
            Threads::Current => rayon::current_num_threads(),
            Threads::Own(pool) => pool.current_num_threads(),
        }
    }

    /// Calls `part` with every number below `parts`, on all of them. What they call is no parameter of
    /// the type, so that the code of rayon is compiled once and not for each use.
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

/// How many threads share work that the calling thread begins.
pub(crate) fn count() -> usize {
    Threads::here().count()
}

fn shared<'scope>(scope: &rayon::Scope<'scope>, others: usize, work: &'scope (dyn Fn() + Sync)) {
    for _ in 0..others {
        scope.spawn(|_| work());
    }
    work();
}
