//! Launches that are not known to be complete.
//!
//! Law: a list holds the last [`KEPT`] launches since its stream was synchronised, and counts the
//! earlier ones. If a kernel fails, a later call reports it; the failed launch is one of these.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Unfinished;
use crate::launch::Launch;

/// The number of launches of a stream that are remembered by name.
const KEPT: usize = 4;

/// The pending launches of a stream.
#[derive(Default)]
pub(crate) struct Pending(Mutex<List>);

#[derive(Default)]
struct List {
    count: u64,
    /// Launch number `n` is at `n % KEPT`.
    last: [Option<(Arc<str>, Launch)>; KEPT],
}

impl List {
    fn note(&mut self, kernel: &Arc<str>, launch: &Launch) {
        let place = (self.count % KEPT as u64) as usize;
        self.count += 1;
        match self.last.get_mut(place) {
            // The most frequent case: the same kernel again.
            Some(Some((known, sizes))) if Arc::ptr_eq(known, kernel) => *sizes = *launch,
            Some(place) => *place = Some((kernel.clone(), *launch)),
            None => {}
        }
    }
}

impl Pending {
    /// Records a launch.
    pub(crate) fn note(&self, kernel: &Arc<str>, launch: &Launch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).note(kernel, launch);
    }

    /// Records the launches of a graph.
    pub(crate) fn note_all(&self, launches: &[(Arc<str>, Launch)]) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counted, named) = launches.split_at(launches.len().saturating_sub(KEPT));
        list.count += counted.len() as u64;
        named.iter().for_each(|(kernel, launch)| list.note(kernel, launch));
    }

    /// Forgets all launches, because all work is done.
    pub(crate) fn clear(&self) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.count > 0 {
            *list = List::default();
        }
    }

    /// Adds the launches to a report, the oldest first.
    pub(crate) fn tell(&self, unfinished: &mut Unfinished) {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = list.count.min(KEPT as u64);
        unfinished.earlier += list.count - kept;
        for number in list.count - kept..list.count {
            if let Some(Some((kernel, launch))) = list.last.get((number % KEPT as u64) as usize) {
                unfinished.launches.push(format!("{}, {launch}", kernel).into());
            }
        }
    }
}
