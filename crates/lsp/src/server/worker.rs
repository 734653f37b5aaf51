//! The worker thread of the server, which assigns layouts to the values of tile programs.
//!
//! Law: the worker takes the newest text of a document and skips older ones. An answer is computed
//! from the text that the request was about; otherwise the request gets an error. Results are
//! cached by text, so undoing an edit needs no work.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tilewright_kernel::machine::Machine;

use super::Client;
use super::answer::{CANCELLED, Failure, MODIFIED, hints};
use crate::assigned::Assigned;
use crate::problem::Problem;
use crate::tile::Tile;

/// The number of cached results.
const KEPT: usize = 16;
/// The stack of the worker, in bytes.
const STACK: usize = 1 << 25;

/// The layouts of a text, or the problem for which it has none.
type Outcome = Result<Arc<Assigned>, Box<Problem>>;

/// A request that waits until the layouts of its document are known.
pub(super) struct Pending {
    pub(super) id: Value,
    pub(super) uri: String,
    pub(super) lines: Range<u32>,
}

/// A text to whose values layouts are to be assigned.
#[derive(Clone)]
struct Job {
    version: i64,
    tile: Arc<Tile>,
}

#[derive(Default)]
struct State {
    machine: Option<Machine>,
    /// The newest text of each document whose layouts are not known yet.
    wanted: HashMap<String, Job>,
    /// The documents in `wanted` that the worker has not begun, the oldest first.
    queue: VecDeque<String>,
    kept: VecDeque<(Arc<Tile>, Outcome)>,
    pending: Vec<Pending>,
    is_over: bool,
}

pub(super) struct Worker {
    shared: Arc<(Mutex<State>, Condvar)>,
    client: Client,
}

fn locked(shared: &(Mutex<State>, Condvar)) -> MutexGuard<'_, State> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Worker {
    fn drop(&mut self) {
        locked(&self.shared).is_over = true;
        self.shared.1.notify_all();
    }
}

impl Worker {
    pub(super) fn new(client: Client) -> io::Result<Worker> {
        let shared = Arc::<(Mutex<State>, Condvar)>::default();
        let (own, answers) = (Arc::clone(&shared), client.clone());
        std::thread::Builder::new()
            .name("layouts".to_owned())
            .stack_size(STACK)
            .spawn(move || while work(&own, &answers) {})?;
        Ok(Worker { shared, client })
    }

    /// Sets the machine for which layouts are chosen by cost.
    pub(super) fn machine(&mut self, machine: Machine) {
        locked(&self.shared).machine = Some(machine);
    }

    /// The layouts of a text if they are in the cache.
    pub(super) fn known(&self, tile: &Tile) -> Option<Outcome> {
        let state = locked(&self.shared);
        let same = |kept: &&(Arc<Tile>, Outcome)| kept.0.text().as_str() == tile.text().as_str();
        state.kept.iter().find(same).map(|kept| kept.1.clone())
    }

    /// Queues a new text of a document.
    pub(super) fn assign(&self, uri: &str, version: i64, tile: &Arc<Tile>) {
        self.forget(uri);
        let is_small = Assigned::is_for(tile.text().as_str());
        if tile.program().is_none() || !is_small || self.known(tile).is_some() {
            return;
        }
        let mut state = locked(&self.shared);
        state.wanted.insert(uri.to_owned(), Job { version, tile: Arc::clone(tile) });
        state.queue.push_back(uri.to_owned());
        drop(state);
        self.shared.1.notify_all();
    }

    /// Drops the queued text of a document that was closed.
    pub(super) fn forget(&self, uri: &str) {
        let mut state = locked(&self.shared);
        state.wanted.remove(uri);
        state.queue.retain(|own| own != uri);
        let (gone, pending) = std::mem::take(&mut state.pending).into_iter().partition(|own| own.uri == uri);
        state.pending = pending;
        drop(state);
        for own in gone {
            self.client.answer(&own.id, Err(Failure::new(MODIFIED, "the text has changed")));
        }
    }

    /// Answers a request once the layouts of its document are known; false if the document has no
    /// layouts to wait for.
    pub(super) fn wait(&self, pending: Pending) -> bool {
        let mut state = locked(&self.shared);
        let is_coming = state.wanted.contains_key(&pending.uri);
        if is_coming {
            state.pending.push(pending);
        }
        is_coming
    }

    pub(super) fn cancel(&self, id: &Value) {
        let mut state = locked(&self.shared);
        let before = state.pending.len();
        state.pending.retain(|own| own.id != *id);
        let found = state.pending.len() < before;
        drop(state);
        if found {
            self.client.answer(id, Err(Failure::new(CANCELLED, "the request was taken back")));
        }
    }
}

/// Takes a text from the queue and assigns layouts to its values; false when the server ends.
fn work(shared: &(Mutex<State>, Condvar), client: &Client) -> bool {
    let mut state = locked(shared);
    let (uri, job) = loop {
        if state.is_over {
            return false;
        }
        match state.queue.pop_front() {
            Some(uri) => match state.wanted.get(&uri).cloned() {
                Some(job) => break (uri, job),
                None => continue,
            },
            None => state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    };
    let machine = state.machine.clone();
    drop(state);
    let Some(program) = job.tile.program() else { return true };
    let outcome = Assigned::of(program, machine.as_ref(), job.tile.text()).map(Arc::new);
    let mut state = locked(shared);
    state.kept.push_back((Arc::clone(&job.tile), outcome.clone()));
    while state.kept.len() > KEPT {
        state.kept.pop_front();
    }
    // A newer text has arrived, or the document was closed.
    if !state.wanted.get(&uri).is_some_and(|own| Arc::ptr_eq(&own.tile, &job.tile)) {
        return true;
    }
    state.wanted.remove(&uri);
    let (waited, pending) = std::mem::take(&mut state.pending).into_iter().partition(|own| own.uri == uri);
    state.pending = pending;
    if let Err(problem) = &outcome {
        client.publish(&uri, Some(job.version), std::slice::from_ref(problem));
    }
    // The answers are sent under the lock, so that no newer answer precedes them.
    for own in waited {
        let own: Pending = own;
        let answer = match &outcome {
            Ok(assigned) => hints(&job.tile, assigned, own.lines),
            Err(_) => json!([]),
        };
        client.answer(&own.id, Ok(answer));
    }
    drop(state);
    true
}
