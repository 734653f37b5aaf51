//! The interner.
//!
//! Laws:
//!
//! * *Unique.* `intern(x) == intern(y)` exactly when `x == y`, in whatever order and from however
//!   many threads.
//! * *Faithful.* `get(intern(x)) == x`.
//! * *Memoised.* An operation on handles is the operation on their values, its result interned. It
//!   is computed once, and a refusal is remembered as a result is.
//! * *Never confused.* A handle of another interner, or of this one before it was cleared, is
//!   refused.
//!
//! No lock is held while an operation is computed. So two threads that ask for the same at the same
//! time may both compute it; they get the same answer.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tilewright_layout::LayoutError;

use crate::handle::Handle;
use crate::interned::{Interned, Pools};
use crate::memo::{Key, Memo, Outcome};

/// How many values of each kind, and how many outcomes of operations, an interner keeps unless
/// another limit is given.
pub const DEFAULT_LIMIT: u32 = 1 << 20;

/// Values that are stored once, with operations on them that are computed once.
///
/// All methods take `&self`; an interner can be shared by threads.
///
/// # Memory
///
/// What is interned stays until the interner is dropped or [cleared](Interner::clear). On a 64-bit
/// machine a layout of up to eight integer leaves takes 192 bytes, an outcome of an operation 48, a
/// refusal also what its evidence needs; each takes 32 to 64 bytes more in tables, and room is made
/// for up to twice as many as there are. There are at most as many values of each kind, and as many
/// outcomes, as the limit says. Past it, a new value is refused, and outcomes are computed again
/// each time rather than remembered.
///
/// ```
/// use tilewright_compiler::Interner;
/// use tilewright_layout::AnyLayout;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let interner = Interner::new();
/// let a = interner.intern(&"(6,2):(8,2)".parse::<AnyLayout>()?)?;
/// let b = interner.intern(&"(4,3):(3,1)".parse::<AnyLayout>()?)?;
/// assert_eq!(interner.intern(&"(6,2):(8,2)".parse::<AnyLayout>()?)?, a);
///
/// let composite = interner.compose(a, b)?;
/// assert_eq!(interner.get(composite)?.to_string(), "((2,2),3):((24,2),8)");
/// assert_eq!(interner.compose(a, b)?, composite); // looked up
/// # Ok(())
/// # }
/// ```
pub struct Interner {
    /// Which interner this is; 0 when there were none left.
    number: u32,
    limit: u32,
    pools: Pools,
    memo: Memo,
}

/// Why an interner has no handle to give.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InternError {
    /// The operation refuses these operands. The refusal is shared with everybody who asks for the
    /// same again.
    Refused(Arc<LayoutError>),
    /// A handle of another interner, or of this one before it was cleared.
    Foreign,
    /// There is no room for another value.
    Full {
        /// How many values of one kind there may be.
        limit: u32,
    },
}

impl InternError {
    /// The refusal of the operation, where it is one.
    pub fn refusal(&self) -> Option<&LayoutError> {
        match self {
            InternError::Refused(error) => Some(error),
            InternError::Foreign | InternError::Full { .. } => None,
        }
    }
}

impl fmt::Display for InternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InternError::Refused(error) => error.fmt(f),
            InternError::Foreign => {
                f.write_str("the handle is of another interner, or of this one before it was cleared")
            }
            InternError::Full { limit } => write!(f, "the interner holds {limit} values of this kind, its limit"),
        }
    }
}

impl Error for InternError {}

impl From<LayoutError> for InternError {
    fn from(error: LayoutError) -> InternError {
        InternError::Refused(Arc::new(error))
    }
}

/// The next number of an interner, or 0 when all have been given out.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let next = |number: u32| if number == 0 { None } else { Some(number.wrapping_add(1)) };
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(0)
}

impl Default for Interner {
    fn default() -> Interner {
        Interner::new()
    }
}

impl Interner {
    /// An interner with the limit [`DEFAULT_LIMIT`].
    pub fn new() -> Interner {
        Interner::with_limit(DEFAULT_LIMIT)
    }

    /// An interner of at most `limit` values of each kind, and that remembers as many outcomes of
    /// operations.
    pub fn with_limit(limit: u32) -> Interner {
        let number = next_number();
        // Without a number there is nothing that a handle could be recognised by: such an interner
        // has no room.
        let room = if number == 0 { 0 } else { limit };
        Interner { number, limit, pools: Pools::new(room), memo: Memo::new(room) }
    }

    /// The handle of a value, which is stored if it is new.
    ///
    /// Errors: [`InternError::Full`].
    pub fn intern<T: Interned>(&self, value: &T) -> Result<Handle<T>, InternError> {
        self.enter(Cow::Borrowed(value))
    }

    /// The handle of a value that is there already.
    pub fn find<T: Interned>(&self, value: &T) -> Option<Handle<T>> {
        Handle::new(self.number, T::pool(&self.pools).find(value)?)
    }

    /// The value of a handle. It stays where it is as long as the interner is borrowed, and reading
    /// it takes no lock.
    ///
    /// Errors: [`InternError::Foreign`].
    #[inline]
    pub fn get<T: Interned>(&self, handle: Handle<T>) -> Result<&T, InternError> {
        let index = self.index(handle)?;
        T::pool(&self.pools).get(index).ok_or(InternError::Foreign)
    }

    /// How many values there are, of all kinds.
    pub fn len(&self) -> u64 {
        self.pools.len()
    }

    /// Whether there is no value yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many outcomes of operations are remembered.
    pub fn remembered(&self) -> u32 {
        self.memo.len()
    }

    /// Forgets all values and outcomes and frees their memory. Handles given out before are
    /// [foreign](InternError::Foreign) from now on.
    ///
    /// ```
    /// use tilewright_compiler::{InternError, Interner};
    /// use tilewright_layout::AnyLayout;
    ///
    /// let mut interner = Interner::new();
    /// let handle = interner.intern(&"4:1".parse::<AnyLayout>().unwrap()).unwrap();
    /// interner.clear();
    /// assert_eq!(interner.get(handle), Err(InternError::Foreign));
    /// ```
    pub fn clear(&mut self) {
        *self = Interner::with_limit(self.limit);
    }

    fn enter<T: Interned>(&self, value: Cow<'_, T>) -> Result<Handle<T>, InternError> {
        let index = T::pool(&self.pools).intern(value);
        index.and_then(|index| Handle::new(self.number, index)).ok_or(InternError::Full { limit: self.limit })
    }

    /// The number of a value among those of its kind.
    #[inline]
    pub(crate) fn index<T>(&self, handle: Handle<T>) -> Result<u32, InternError> {
        if handle.interner() == self.number { Ok(handle.index()) } else { Err(InternError::Foreign) }
    }

    /// The outcome that is recorded for a key, or else the one that `compute` finds, which is
    /// recorded.
    #[inline]
    pub(crate) fn remember<T: Interned>(
        &self,
        key: Key,
        compute: impl FnOnce() -> Result<Result<T, LayoutError>, InternError>,
    ) -> Result<Handle<T>, InternError> {
        if let Some(outcome) = self.memo.recall(&key) {
            return self.result(outcome);
        }
        let outcome = match compute()? {
            Ok(value) => Outcome::Value(self.enter::<T>(Cow::Owned(value))?.index()),
            // Asked again, it may have an answer.
            Err(error @ LayoutError::Interrupted { .. }) => return Err(error.into()),
            Err(error) => Outcome::Refused(Arc::new(error)),
        };
        self.result(&self.memo.record(key, outcome))
    }

    #[inline]
    fn result<T>(&self, outcome: &Outcome) -> Result<Handle<T>, InternError> {
        match outcome {
            Outcome::Value(index) => Handle::new(self.number, *index).ok_or(InternError::Full { limit: self.limit }),
            Outcome::Refused(error) => Err(InternError::Refused(Arc::clone(error))),
        }
    }
}

impl fmt::Debug for Interner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interner({}: {} values, {} outcomes)", self.number, self.len(), self.remembered())
    }
}
