//! Which part of a tile a view or a fragment is, and of which thread.
//!
//! Law: the part that a tiled copy or a tiled product gives a thread has at index `i` the element
//! of the tile that the thread-value layout names for that thread and value `i`, tile after tile.
//! So two parts have the same elements at the same indices if they are of one thread, and of equal
//! thread-value layouts over equal tiles. Whatever moves element `i` to element `i` asks for that.
//!
//! A part is never partitioned again. A view whose offset depends on the number of the thread is a
//! part too, whatever cut it: threads that share a tile share its beginning.

use std::rc::Rc;

use tilewright_atoms::{CopyAtom, CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::{Expr, Symbolic};
use tilewright_layout::{Layout, Tiler, Tree};

use super::Build;
use super::core::Core;
use super::fragment::Fragment;
use super::tensor::View;
use crate::error::Reason;

/// What gave a part to its thread.
#[derive(Debug, Clone)]
enum By {
    /// A tiled copy, at one of its ends.
    Copy(Rc<TiledCopy>, CopyEnd),
    /// A tiled product, for one of its operands.
    Mma(Rc<TiledMma>, Operand),
    /// Something else: `thread_part`, or a cut of a part through the values of its instruction.
    Other,
}

/// The part of a tile that a thread has.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    by: By,
    /// The thread; none where it is not known, or any.
    thread: Option<Expr>,
}

impl Part {
    pub(crate) fn of_copy(copy: &TiledCopy, end: CopyEnd, thread: Option<Expr>) -> Part {
        Part { by: By::Copy(Rc::new(copy.clone()), end), thread }
    }

    pub(crate) fn of_mma(mma: &TiledMma, operand: Operand, thread: Option<Expr>) -> Part {
        Part { by: By::Mma(Rc::new(mma.clone()), operand), thread }
    }

    pub(crate) fn other(thread: Option<Expr>) -> Part {
        Part { by: By::Other, thread }
    }

    /// The thread, as far as it is known.
    pub(crate) fn thread(&self) -> Option<&Expr> {
        self.thread.as_ref()
    }

    /// Whether a tiled copy or a tiled product gave it.
    pub(crate) fn is_instructed(&self) -> bool {
        !matches!(self.by, By::Other)
    }

    /// The part behind a cut that may not leave the values of the instruction whole.
    pub(crate) fn cut(&self, keeps_values: bool) -> Part {
        if keeps_values { self.clone() } else { Part::other(self.thread.clone()) }
    }

    /// What gave it, as a message names it.
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

    /// Who has what of a tile: the thread-value layout, and the tile by its modes. None where the
    /// values of a thread in a tile are not one after another.
    fn held(&self) -> Option<(Layout, Tiler)> {
        match &self.by {
            By::Copy(copy, end) => Some((copy.thread_values(*end).ok()?, copy.tiler().clone())),
            By::Mma(mma, operand) => {
                let held = mma.thread_values(*operand).ok()?;
                // Further instructions within a tile are counted with the tiles behind it.
                let one = held.at(&[1, 1]).is_none_or(|further| further.size() == 1);
                let tile = mma.tile_shape();
                let extents = operand.modes().map(|mode| tile.get(mode).copied().unwrap_or(1));
                one.then_some((held, Tiler::from_shape(&Tree::flat(extents).ok()?).ok()?))
            }
            By::Other => None,
        }
    }

    /// Whether both have the same elements of a tile at the same indices.
    fn holds_as(&self, other: &Part) -> bool {
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

    /// That both have the same elements of a tile at the same indices, and are of one thread.
    ///
    /// Errors: they have not, or that is not known ([`Reason::Parts`]).
    pub(crate) fn agrees(&self, other: &Part, what: [&str; 2]) -> Result<(), Reason> {
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

impl View<'_> {
    /// The part of a tile that it is; none where it is a tile of all threads.
    pub(crate) fn own_part(&self) -> Option<Part> {
        if self.part.is_some() {
            return self.part.clone();
        }
        let core = self.build.core();
        let (start, ends) = (&self.place.start, self.bounds());
        let coordinates = ends.iter().map(|(path, _)| start.scale_at(*path));
        let of_thread = [self.offset.clone()].into_iter().chain(coordinates).any(|index| core.is_of_thread(&index));
        of_thread.then(|| Part::other(None))
    }
}

impl Core {
    /// Whether an index is computed from the number of the thread.
    fn is_of_thread(&self, index: &Expr) -> bool {
        let of_thread =
            |parameter| self.variable(parameter).is_some_and(|variable| self.is_computed_of_thread(variable.register));
        index.parameters().iter().any(of_thread)
    }
}

/// One end of a statement that moves element `i` to element `i`.
pub(crate) enum End<'v, 'k> {
    View(&'v View<'k>),
    Fragment(&'v Fragment<'k>),
}

impl End<'_, '_> {
    /// The part that it is. A fragment of no partition goes with all.
    fn part(&self) -> Option<Part> {
        match self {
            End::View(view) => view.own_part(),
            End::Fragment(fragment) => fragment.part.clone(),
        }
    }
}

/// What a copy is made by: a tiled copy, or an instruction alone, for parts of a thread.
pub trait CopyBy {
    /// The instruction.
    #[doc(hidden)]
    fn instruction(&self) -> &CopyAtom;

    /// Over which threads and values.
    #[doc(hidden)]
    fn tiling(&self) -> Option<&TiledCopy>;
}

impl CopyBy for TiledCopy {
    fn instruction(&self) -> &CopyAtom {
        self.atom()
    }

    fn tiling(&self) -> Option<&TiledCopy> {
        Some(self)
    }
}

impl CopyBy for CopyAtom {
    fn instruction(&self) -> &CopyAtom {
        self
    }

    fn tiling(&self) -> Option<&TiledCopy> {
        None
    }
}

const NAMES: [&str; 2] = ["the source", "the destination"];

impl Build {
    /// That both ends of a copy go together: both are tiles, or both are parts that have the same
    /// elements at the same indices, which are those of the tiled copy where there is one. Whether
    /// they are tiles, which are still to be partitioned.
    pub(super) fn matched(&self, tiling: Option<&TiledCopy>, ends: [End<'_, '_>; 2]) -> Result<bool, Reason> {
        let [from, to] = &ends;
        let (own, other) = (from.part(), to.part());
        let tile = |end: &End<'_, '_>, part: &Option<Part>| matches!(end, End::View(_)) && part.is_none();
        let tiles = [tile(from, &own), tile(to, &other)];
        if let ([End::View(_), End::View(_)], true) = (&ends, tiles[0] != tiles[1]) {
            let say = |part: &Option<Part>, name: &str| match part {
                Some(part) => format!("{name} is {}", part.name()),
                None => format!("{name} is a tile that is not partitioned"),
            };
            return Err(Reason::Parts { first: say(&own, NAMES[0]), second: say(&other, NAMES[1]) });
        }
        match tiling {
            Some(copy) => {
                for (number, (part, end)) in
                    [(&own, CopyEnd::Source), (&other, CopyEnd::Destination)].into_iter().enumerate()
                {
                    let Some(part) = part else { continue };
                    let wanted = Part::of_copy(copy, end, None);
                    part.agrees(&wanted, [NAMES[number], "what the tiled copy moves"])?;
                }
                if let (Some(own), Some(other)) = (&own, &other)
                    && let (Some(a), Some(b)) = (own.thread(), other.thread())
                    && a != b
                {
                    return own.agrees(other, NAMES).map(|()| false);
                }
            }
            None => {
                if let (Some(own), Some(other)) = (&own, &other)
                    && own.is_instructed()
                    && other.is_instructed()
                {
                    own.agrees(other, NAMES)?;
                }
            }
        }
        Ok(tiles.contains(&true))
    }

    /// That a fragment may be an operand of a tiled product.
    pub(super) fn is_operand(
        &self,
        mma: &TiledMma,
        operand: Operand,
        name: &str,
        part: Option<&Part>,
    ) -> Result<(), Reason> {
        let Some(part) = part else { return Ok(()) };
        let wanted = Part::of_mma(mma, operand, None);
        part.agrees(&wanted, [name, "what the tiled product multiplies"])
    }
}

/// That two views have as many elements along each mode, so that those of one index are of one
/// place in both tiles.
pub(super) fn same_modes(from: &View<'_>, to: &View<'_>) -> Result<(), Reason> {
    let sizes = |view: &View<'_>| {
        let mut sizes: Vec<Expr> = view.layout.modes().map(|mode| mode.size()).collect();
        // Modes of one element behind the others change no index.
        while sizes.len() > 1 && sizes.last().is_some_and(|size| *size == Expr::from(1)) {
            sizes.pop();
        }
        sizes
    };
    let text = |sizes: &[Expr]| {
        let sizes: Vec<String> = sizes.iter().map(Expr::to_string).collect();
        format!("({})", sizes.join(","))
    };
    let (own, other) = (sizes(from), sizes(to));
    if own == other {
        return Ok(());
    }
    Err(Reason::Sizes {
        left: format!("the source {}", from.text()),
        left_size: text(&own),
        right: format!("the destination {}", to.text()),
        right_size: text(&other),
    })
}
