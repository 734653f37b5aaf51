//! The operations that views and coordinate tensors share.
//!
//! Law: an operation is applied to the coordinates of the whole tensor as it is to the offsets, and
//! a part of a thread remains one.

use tilewright_layout::atoms::{CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Coordinate, Extent, Layout, LayoutError, Slot, Stride, Tree};

use super::cut::{ByCopy, ByMma, BySlice, ByThread, ByTile, Cut};
use super::{View, ViewPlace, known_shape};
use crate::arguments::{IntoCoord, IntoTile};
use crate::builder::Build;
use crate::builder::core::Core;
use crate::builder::part::ThreadPart;
use crate::error::Reason;

/// Types that tiles, coordinates, tiled copies and tiled MMA can slice or tile.
pub(crate) trait Cuttable<'k>: Sized {
    fn build(&self) -> &'k Build;

    fn place(&self) -> &ViewPlace;

    fn part(&self) -> Option<&ThreadPart>;

    fn of_part(self, part: ThreadPart) -> Self;

    /// Its name in messages.
    fn name(&self) -> String;

    fn cut(&self, by: &impl Cut) -> Result<Self, Reason>;

    fn slice_at(&self, at: impl IntoCoord) -> Result<Self, Reason> {
        self.sliced(&at.into_coord()?)
    }

    fn tile_at(&self, tile: impl IntoTile, at: impl IntoCoord) -> Result<Self, Reason> {
        let (tiler, at) = (self.build().tiler(tile)?, at.into_coord()?);
        let divided = self.cut(&ByTile { tiler: &tiler })?;
        // A tuple of one tile index is the same as the index.
        let layout = &divided.place().layout;
        let single = layout.mode(1).is_some_and(|rests| rests.profile().is_leaf());
        let at = match at.mode(0) {
            Some(only) if single && at.rank() == 1 => only,
            _ => at,
        };
        let open = match layout.mode(0).map(|tile| tile.rank()) {
            Some(rank) if rank > 1 => Tree::flat((0..rank).map(|_| Slot::All))?,
            _ => Tree::leaf(Slot::All),
        };
        divided.sliced(&Tree::tuple([&open, &at])?)
    }

    /// The slice at a coordinate. If the coordinate names a block, the grid has as many blocks as
    /// the mode has indices, unless the author sets another number.
    fn sliced(&self, at: &Coord<Expr>) -> Result<Self, Reason> {
        let mut found = Vec::new();
        let layout = &self.place().layout;
        indices(&layout.shape(), Some(layout), at, &mut found)?;
        for Index { index, count, steps } in found {
            let mut core = self.build().core();
            if let Some(axis) = core.axis_of(&index) {
                core.infer_blocks(axis, &count)?;
            }
            // Past the end, the index would lead to element 0 again, which no bound and no
            // predicate detects.
            if !steps && count.known() == Some(1) && !core.is_less(&index, &count) {
                drop(core);
                return Err(Reason::Single { tensor: self.name(), index: index.to_string() });
            }
        }
        self.cut(&BySlice(at))
    }

    /// The part of a thread by a tiled copy: of this thread, or of the thread with an index.
    fn partition_copy(&self, copy: &TiledCopy, end: CopyEnd, thread: Option<&Expr>) -> Result<Self, Reason> {
        self.is_no_part()?;
        let thread = self.build().core().one_of(copy.threads(), thread, copy.atom().name())?;
        let digits = |shape: &Tree<i64>| self.build().core().digits_of(&thread, shape);
        let part = self.cut(&ByCopy { copy, end, thread: &digits })?;
        Ok(part.of_part(ThreadPart::of_copy(copy, end, Some(thread))))
    }

    /// The part of a thread in an operand of a tiled MMA: of this thread, or of the thread with an
    /// index.
    fn partition_of(&self, mma: &TiledMma, operand: Operand, thread: Option<&Expr>) -> Result<Self, Reason> {
        self.is_no_part()?;
        let thread = self.build().core().one_of(mma.threads(), thread, mma.atom().name())?;
        let coordinate = self.build().core().mma_coordinate(mma, &thread)?;
        let digits = |shape: &Tree<i64>, number: usize| {
            let index = coordinate.get(number).cloned().unwrap_or(Expr::from(0));
            self.build().core().digits_of(&index, shape)
        };
        let part = self.cut(&ByMma { mma, operand, thread: &digits })?;
        Ok(part.of_part(ThreadPart::of_mma(mma, operand, Some(thread))))
    }

    /// Mode 0 at this thread; the other modes are kept.
    fn of_thread(&self) -> Result<Self, Reason> {
        let threads = self.place().layout.mode(0).map(|mode| mode.shape()).unwrap_or(Tree::leaf(Expr::from(1)));
        let threads = known_shape(&threads, || self.name())?.product()?;
        let thread = {
            let mut core = self.build().core();
            core.say_threads(threads)?;
            core.thread()?
        };
        let digits = |shape: &Tree<i64>| self.build().core().digits_of(&thread, shape);
        let part = self.cut(&ByThread(&digits))?;
        let own = part.part().cloned().unwrap_or(ThreadPart::other(Some(thread)));
        Ok(part.of_part(own))
    }

    /// Checks that it is a tile and not a part, so that it can be partitioned.
    fn is_no_part(&self) -> Result<(), Reason> {
        let Some(part) = self.part() else { return Ok(()) };
        let first = format!("what is partitioned is {}", part.name());
        Err(Reason::Parts { first, second: "a part is not partitioned again".to_string() })
    }
}

impl<'k> Cuttable<'k> for View<'k> {
    fn build(&self) -> &'k Build {
        self.build
    }

    fn place(&self) -> &ViewPlace {
        &self.place
    }

    fn part(&self) -> Option<&ThreadPart> {
        self.part.as_ref()
    }

    fn of_part(self, part: ThreadPart) -> Self {
        View { part: Some(part), ..self }
    }

    fn name(&self) -> String {
        self.build.core().buffers[self.buffer.index()].name.clone()
    }

    fn cut(&self, by: &impl Cut) -> Result<View<'k>, Reason> {
        let (layout, offset) = by.cut(&self.layout)?;
        let offset =
            Stride::plus(&self.offset, &offset).ok_or(Reason::Layout(LayoutError::Overflow { op: "offset" }))?;
        let place = self.place.cut(by)?;
        let part = self.part.as_ref().map(|part| part.cut(by.keeps_values()));
        Ok(View { layout, offset, place, part, ..self.clone() })
    }
}

impl ViewPlace {
    pub(crate) fn cut(&self, by: &impl Cut) -> Result<ViewPlace, Reason> {
        let (layout, start) = by.cut(&self.layout)?;
        let overflow = LayoutError::Overflow { op: "coordinate" };
        let start = self.start.plus(&start).ok_or(Reason::Layout(overflow))?;
        Ok(ViewPlace { start, layout })
    }
}

impl Core {
    /// The index of a thread among those of an instruction: that of this thread, if no index is
    /// given or if the given one equals it.
    fn one_of(&mut self, threads: i64, thread: Option<&Expr>, atom: &str) -> Result<Expr, Reason> {
        let own = self.team.is_some() || self.threads.is_some();
        if let Some(named) = thread
            && !(own && self.thread()? == *named)
        {
            if self.is_natural(named) && self.is_less(named, &Expr::from(threads)) {
                return Ok(named.clone());
            }
            let because = format!("thread {named} is not shown to be one of its {threads} threads");
            return Err(Reason::Instruction { name: atom.to_string(), because });
        }
        self.say_threads(threads)?;
        self.thread()
    }
}

/// A number in a coordinate at the position of a whole mode.
struct Index {
    index: Expr,
    /// The extent of the mode.
    count: Expr,
    /// Whether different indices are different coordinates of the tensor.
    steps: bool,
}

/// The numbers in a coordinate at the positions of whole modes of a shape.
fn indices(
    shape: &Tree<Expr>,
    place: Option<&Layout<Coordinate<Expr>>>,
    at: &Coord<Expr>,
    found: &mut Vec<Index>,
) -> Result<(), Reason> {
    // A leaf is its only mode.
    if at.is_leaf() {
        if let [Slot::At(index)] = at.leaves() {
            let next = place.map(|place| place.eval(&Expr::from(1))).transpose()?;
            let steps = next.is_some_and(|next| next != Coordinate::zero());
            found.push(Index { index: index.clone(), count: shape.product()?, steps });
        }
        return Ok(());
    }
    for (mode, part) in at.modes().enumerate() {
        if let Some(shape) = shape.mode(mode) {
            indices(&shape, place.and_then(|place| place.mode(mode)).as_ref(), &part, found)?;
        }
    }
    Ok(())
}
