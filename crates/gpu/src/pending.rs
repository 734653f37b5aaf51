//! Launches that are not known to be finished.
//!
//! Law: a list holds the last [`KEPT`] launches since its stream was synchronised, and counts the
//! others. A kernel that fails says so at some later call; the launch that failed is one of these.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Unfinished;
use crate::launch::Launch;

/// The launches of a stream that are named.
const KEPT: usize = 4;

/// The launches of a stream.
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
            // As most often: the same kernel again.
            Some(Some((known, sizes))) if Arc::ptr_eq(known, kernel) => *sizes = *launch,
            Some(place) => *place = Some((kernel.clone(), *launch)),
            None => {}
        }
    }
}

impl Pending {
    /// A launch more.
    pub(crate) fn note(&self, kernel: &Arc<str>, launch: &Launch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).note(kernel, launch);
    }

    /// The launches of a graph more.
    pub(crate) fn note_all(&self, launches: &[(Arc<str>, Launch)]) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counted, named) = launches.split_at(launches.len().saturating_sub(KEPT));
        list.count += counted.len() as u64;
        named.iter().for_each(|(kernel, launch)| list.note(kernel, launch));
    }

    /// All is done.
    pub(crate) fn clear(&self) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.count > 0 {
            *list = List::default();
        }
    }

    /// Adds the launches, the first of those that are named first.
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
