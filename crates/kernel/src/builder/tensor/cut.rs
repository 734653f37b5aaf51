//! Operations that slice or tile a view: by tiles, layouts, coordinates, tiled copies, tiled MMA
//! and threads.
//!
//! Law: each operation is a function of a layout with any kind of strides, so it is applied in the
//! same way to the offsets of a view and to the coordinates of its elements in the whole tensor.

use tilewright_layout::atoms::{CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, Layout, LayoutError, Slot, Stride, Tiler, Tree};

use super::known_shape;
use crate::error::Reason;

/// An operation on a layout with any kind of strides. It returns the layout of the part, and the
/// offset of its first element.
pub(crate) trait Cut {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason>;

    /// Whether the first mode stays whole and first, and the others keep their order. The first
    /// mode of a part holds the values of one instruction.
    fn keeps_values(&self) -> bool {
        false
    }
}

pub(in crate::builder) struct ByTile<'a> {
    pub(in crate::builder) tiler: &'a Tiler<Expr>,
}

impl Cut for ByTile<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        let divided = layout.zipped_divide(self.tiler)?;
        match (divided.mode(0), divided.mode(1)) {
            (Some(tile), Some(rests)) => {
                let rests = with_steps(layout, self.tiler, &rests)?;
                Ok((Layout::tuple([&tile, &rests])?, D::zero()))
            }
            _ => Ok((divided, D::zero())),
        }
    }
}

/// The rests of a division, in which a rest with a single tile also has a stride: the distance to
/// where the next tile would be. The layout algebra gives it stride 0, because no coordinate of the
/// layout uses it. Here, an index past the end must lead past the edge, where bounds and predicates
/// detect it, and not back to tile 0.
fn with_steps<D: Stride<Extent = Expr>>(
    layout: &Layout<D>,
    tiler: &Tiler<Expr>,
    rests: &Layout<D>,
) -> Result<Layout<D>, LayoutError> {
    match tiler {
        Tiler::Layout(tile) if rests.profile().is_leaf() && Extent::known(&rests.size()) == Some(1) => {
            Layout::mode_of(Expr::from(1), layout.eval(&tile.size())?)
        }
        Tiler::Modes(tilers) => {
            let modes = rests.modes().enumerate().map(|(number, rest)| match tilers.items().get(number) {
                Some(tiler) => layout.mode(number).map_or(Ok(rest.clone()), |mode| with_steps(&mode, tiler, &rest)),
                None => Ok(rest),
            });
            let modes = modes.collect::<Result<Vec<_>, _>>()?;
            match &modes[..] {
                [only] if rests.profile().is_leaf() => Ok(only.clone()),
                modes => Layout::tuple(modes),
            }
        }
        _ => Ok(rests.clone()),
    }
}

pub(in crate::builder) struct ByTiler<'a>(pub(in crate::builder) &'a Tiler<Expr>);

impl Cut for ByTiler<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        Ok((layout.compose_tiler(self.0)?, D::zero()))
    }
}

pub(in crate::builder) struct ByLayout<'a>(pub(in crate::builder) &'a Layout<Expr>);

impl Cut for ByLayout<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        Ok((layout.compose(self.0)?, D::zero()))
    }
}

pub(in crate::builder) struct BySlice<'a>(pub(in crate::builder) &'a Coord<Expr>);

impl Cut for BySlice<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        Ok(layout.slice_and_offset(self.0)?)
    }

    fn keeps_values(&self) -> bool {
        self.0.mode(0).unwrap_or(self.0.clone()).leaves() == [Slot::All]
    }
}

pub(super) struct ByModes<'a>(pub(super) &'a [usize]);

impl Cut for ByModes<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        Ok((layout.select(self.0)?, D::zero()))
    }
}

pub(super) struct ByGroup(pub(super) std::ops::Range<usize>);

impl Cut for ByGroup {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        Ok((layout.group(self.0.clone())?, D::zero()))
    }

    fn keeps_values(&self) -> bool {
        self.0.start > 0
    }
}

/// The coordinate of this thread in a shape of threads.
type ThreadAt<'a> = dyn Fn(&Tree<i64>) -> Result<Tree<Expr>, Reason> + 'a;

/// As [`ThreadAt`], for one of the four thread modes of a tiled MMA.
type ThreadOfMode<'a> = dyn Fn(&Tree<i64>, usize) -> Result<Tree<Expr>, Reason> + 'a;

pub(super) struct ByCopy<'a> {
    pub(super) copy: &'a TiledCopy,
    pub(super) end: CopyEnd,
    pub(super) thread: &'a ThreadAt<'a>,
}

impl Cut for ByCopy<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        let partition = self.copy.tidfrg(self.end, layout)?;
        let threads = partition.mode(0).map(|mode| mode.shape()).unwrap_or(Tree::leaf(Expr::from(1)));
        let at = (self.thread)(&known_shape(&threads, || "the threads of a copy".to_string())?)?
            .map(|index| Slot::At(index.clone()));
        let rests = (1..partition.rank()).map(|_| Tree::leaf(Slot::All));
        let coordinate: Vec<Coord<Expr>> = std::iter::once(at).chain(rests).collect();
        Ok(partition.slice_and_offset(&Tree::tuple(coordinate.iter())?)?)
    }
}

/// Mode 0 at the thread. The mode may be nested differently in offsets and in coordinates.
pub(super) struct ByThread<'a>(pub(super) &'a ThreadAt<'a>);

impl Cut for ByThread<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        let threads = layout.mode(0).map(|mode| mode.shape()).unwrap_or(Tree::leaf(Expr::from(1)));
        let at = (self.0)(&known_shape(&threads, || "the threads of a part".to_string())?)?;
        let at = at.map(|index| Slot::At(index.clone()));
        let open: Vec<Coord<Expr>> = (1..layout.rank()).map(|_| Tree::leaf(Slot::All)).collect();
        Ok(layout.slice_and_offset(&Tree::tuple(std::iter::once(&at).chain(&open))?)?)
    }
}

pub(super) struct ByMma<'a> {
    pub(super) mma: &'a TiledMma,
    pub(super) operand: Operand,
    pub(super) thread: &'a ThreadOfMode<'a>,
}

impl Cut for ByMma<'_> {
    fn cut<D: Stride<Extent = Expr>>(&self, layout: &Layout<D>) -> Result<(Layout<D>, D), Reason> {
        let partition = self.mma.thrfrg(self.operand, layout)?;
        // ((ThrV,(ThrX,ThrY)),(FrgV,(RestX,RestY,..)))
        let [x, y] = self.operand.modes();
        let threads = |path: &[usize], number: usize| {
            let shape = partition.at(path).map(|mode| mode.shape()).unwrap_or(Tree::leaf(Expr::from(1)));
            (self.thread)(&known_shape(&shape, || "the threads of a product".to_string())?, number)
        };
        let (v, x, y) = (threads(&[0, 0], 0)?, threads(&[0, 1, 0], x + 1)?, threads(&[0, 1, 1], y + 1)?);
        let slots = |tree: Tree<Expr>| tree.map(|index| Slot::At(index.clone()));
        let thread = Tree::tuple([&slots(v), &Tree::tuple([&slots(x), &slots(y)])?])?;
        let rests = partition.at(&[1, 1]).map_or(0, |rests| rests.rank());
        let rests = Tree::flat((0..rests).map(|_| Slot::All))?;
        let open = Tree::tuple([&Tree::leaf(Slot::All), &rests])?;
        Ok(partition.slice_and_offset(&Tree::tuple([&thread, &open])?)?)
    }
}
