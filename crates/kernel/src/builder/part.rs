//! The part of a tile that a view or a fragment is, and the thread that it belongs to.
//!
//! Law: in the part that a tiled copy or a tiled MMA assigns to a thread, index `i` is the element
//! that the thread-value layout gives for that thread and value `i`, tile after tile. So two parts
//! have the same elements at the same indices if they belong to one thread and have equal
//! thread-value layouts over equal tiles. Every statement that moves element `i` to element `i`
//! checks that.

use std::rc::Rc;

use tilewright_layout::atoms::{CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Tiler, Tree};

use crate::error::Reason;

/// What made a part.
#[derive(Debug, Clone)]
enum By {
    /// A tiled copy, for one of its ends.
    Copy(Rc<TiledCopy>, CopyEnd),
    /// A tiled MMA, for one of its operands.
    Mma(Rc<TiledMma>, Operand),
    /// Something else: `thread_part`, or a slice through the values of an instruction.
    Other,
}

/// The part of a tile that belongs to a thread.
#[derive(Debug, Clone)]
pub(crate) struct ThreadPart {
    by: By,
    /// The thread; None if it is not known, or if any thread may have the part.
    thread: Option<Expr>,
}

impl ThreadPart {
    pub(crate) fn of_copy(copy: &TiledCopy, end: CopyEnd, thread: Option<Expr>) -> ThreadPart {
        ThreadPart { by: By::Copy(Rc::new(copy.clone()), end), thread }
    }

    pub(crate) fn of_mma(mma: &TiledMma, operand: Operand, thread: Option<Expr>) -> ThreadPart {
        ThreadPart { by: By::Mma(Rc::new(mma.clone()), operand), thread }
    }

    pub(crate) fn other(thread: Option<Expr>) -> ThreadPart {
        ThreadPart { by: By::Other, thread }
    }

    /// The thread, if it is known.
    pub(crate) fn thread(&self) -> Option<&Expr> {
        self.thread.as_ref()
    }

    /// Whether a tiled copy or a tiled MMA made it.
    pub(crate) fn is_instructed(&self) -> bool {
        !matches!(self.by, By::Other)
    }

    /// The part after a slice. `keeps_values` says whether the slice keeps the values of the
    /// instruction together.
    pub(crate) fn cut(&self, keeps_values: bool) -> ThreadPart {
        if keeps_values { self.clone() } else { ThreadPart::other(self.thread.clone()) }
    }

    /// What made the part, for a message.
    pub(crate) fn name(&self) -> String {
        let (what, atom) = match &self.by {
            By::Copy(copy, CopyEnd::Source) => ("partition_S".to_string(), copy.atom().name()),
            By::Copy(copy, CopyEnd::Destination) => ("partition_D".to_string(), copy.atom().name()),
            By::Mma(mma, operand) => (format!("partition_{operand}"), mma.atom().name()),
            By::Other => return "the part of one thread, which no tiled copy or product gave it".to_string(),
        };
        match self.thread.as_ref().map(|thread| thread.to_string()).filter(|thread| thread != "thread") {
            Some(thread) => format!("the {what} of {atom} at thread {thread}"),
            None => format!("the {what} of {atom}"),
        }
    }

    /// The thread-value layout, and the tile by its modes. None if the values of a thread in a tile
    /// are not consecutive.
    fn held(&self) -> Option<(Layout, Tiler)> {
        match &self.by {
            By::Copy(copy, end) => Some((copy.thread_values(*end).ok()?, copy.tiler().clone())),
            By::Mma(mma, operand) => {
                let held = mma.thread_values(*operand).ok()?;
                // Further instructions within a tile are counted together with the tiles.
                let one = held.at(&[1, 1]).is_none_or(|further| further.size() == 1);
                let tile = mma.tile_shape();
                let extents = operand.modes().map(|mode| tile.get(mode).copied().unwrap_or(1));
                one.then_some((held, Tiler::from_shape(&Tree::flat(extents).ok()?).ok()?))
            }
            By::Other => None,
        }
    }

    /// Whether both parts have the same elements of a tile at the same indices.
    fn holds_as(&self, other: &ThreadPart) -> bool {
        match (&self.by, &other.by) {
            (By::Copy(a, from), By::Copy(b, to)) if from == to && a == b => return true,
            (By::Mma(a, of), By::Mma(b, own)) if of == own => {
                let same = a.thread_layout() == b.thread_layout()
                    && matches!((a.tilers::<i64>(*of), b.tilers::<i64>(*own)), (Ok(a), Ok(b)) if a == b);
                if a == b || same {
                    return true;
                }
            }
            _ => {}
        }
        let size = |layout: &Layout, mode: usize| layout.mode(mode).map_or(1, |mode| mode.size());
        match (self.held(), other.held()) {
            (Some((a, tile)), Some((b, other))) => {
                let sizes = (0..2).all(|mode| size(&a, mode) == size(&b, mode));
                tile == other && sizes && a.equivalent(&b)
            }
            _ => false,
        }
    }

    /// Checks that both parts have the same elements of a tile at the same indices, and belong to
    /// one thread.
    ///
    /// Errors: they do not, or that is not known ([`Reason::Parts`]).
    pub(crate) fn agrees(&self, other: &ThreadPart, what: [&str; 2]) -> Result<(), Reason> {
        let threads = match (&self.thread, &other.thread) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        if threads && self.holds_as(other) {
            return Ok(());
        }
        let [first, second] = what;
        Err(Reason::Parts {
            first: format!("{first} is {}", self.name()),
            second: format!("{second} is {}", other.name()),
        })
    }
}
