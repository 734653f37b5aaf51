//! Checks that the two ends of a statement match.
//!
//! A part is never partitioned again. A view whose offset depends on the index of the thread is
//! also a part, however it was made: threads that share a tile share its offset.

use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::{Expr, Symbolic};

use super::Build;
use super::core::Core;
use super::fragment::Fragment;
use super::part::ThreadPart;
use super::tensor::View;
use crate::error::Reason;

impl View<'_> {
    /// The part that it is; None if it is a tile of all threads.
    pub(crate) fn own_part(&self) -> Option<ThreadPart> {
        if self.part.is_some() {
            return self.part.clone();
        }
        let core = self.build.core();
        let (start, ends) = (&self.place.start, self.bounds());
        let coordinates = ends.iter().map(|(path, _)| start.scale_at(*path));
        let of_thread = [self.offset.clone()].into_iter().chain(coordinates).any(|index| core.is_of_thread(&index));
        of_thread.then(|| ThreadPart::other(None))
    }
}

impl Core {
    /// Whether an index is computed from the index of the thread.
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
    /// The part that it is. A fragment without a partition matches every part.
    fn part(&self) -> Option<ThreadPart> {
        match self {
            End::View(view) => view.own_part(),
            End::Fragment(fragment) => fragment.part.clone(),
        }
    }
}

/// A tiled copy, or a single copy atom for parts of a thread.
pub trait CopyBy {
    /// The instruction.
    #[doc(hidden)]
    fn instruction(&self) -> &CopyAtom;

    /// The threads and values over which the instruction is tiled; None for a single atom.
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
    /// Checks that both ends of a copy match: both are tiles, or both are parts with the same
    /// elements at the same indices, those of the tiled copy if there is one. Returns whether they
    /// are tiles, which must still be partitioned.
    pub(super) fn matched(&self, tiling: Option<&TiledCopy>, ends: [End<'_, '_>; 2]) -> Result<bool, Reason> {
        let [from, to] = &ends;
        let (own, other) = (from.part(), to.part());
        let tile = |end: &End<'_, '_>, part: &Option<ThreadPart>| matches!(end, End::View(_)) && part.is_none();
        let tiles = [tile(from, &own), tile(to, &other)];
        if let ([End::View(_), End::View(_)], true) = (&ends, tiles[0] != tiles[1]) {
            let say = |part: &Option<ThreadPart>, name: &str| match part {
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
                    let wanted = ThreadPart::of_copy(copy, end, None);
                    part.agrees(&wanted, [NAMES[number], "the operand of the tiled copy"])?;
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

    /// Checks that a fragment may be an operand of a tiled MMA.
    pub(super) fn is_operand(
        &self,
        mma: &TiledMma,
        operand: Operand,
        name: &str,
        part: Option<&ThreadPart>,
    ) -> Result<(), Reason> {
        let Some(part) = part else { return Ok(()) };
        let wanted = ThreadPart::of_mma(mma, operand, None);
        part.agrees(&wanted, [name, "the operand of the tiled MMA"])
    }
}

/// Checks that two views have equal extents along each mode, so that equal indices are equal
/// coordinates.
pub(super) fn same_modes(from: &View<'_>, to: &View<'_>) -> Result<(), Reason> {
    let sizes = |view: &View<'_>| {
        let mut sizes: Vec<Expr> = view.layout.modes().map(|mode| mode.size()).collect();
        // Trailing modes of extent 1 do not change indices.
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
