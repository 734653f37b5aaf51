//! Loads and stores of distributed tiles.
//!
//! Law: a loaded tile has the given distribution, and every thread that holds a copy of an element
//! loads it. Each element of a stored tile is stored once, by the first thread that holds it.

use tilewright_layout::Layout;
use tilewright_layout::symbolic::Expr;

use super::access::Edge;
use super::distributed::Distributed;
use super::number::Num;
use super::tensor::{Cuttable, View};
use crate::distribution::Distribution;
use crate::error::{KernelError, Reason};

impl<'k> View<'k> {
    /// Loads a tile. Each thread loads the elements that the distribution assigns to it, by the
    /// widest accesses that its layout allows.
    ///
    /// Errors: the view does not have the shape of the tile; an element may not exist.
    #[track_caller]
    pub fn load_distributed(&self, held: &Distribution) -> Result<Distributed<'k>, KernelError> {
        self.tile_loaded(held, None, Edge::Proved, "load_distributed")
    }

    /// As [`View::load_distributed`]; elements past the edges of the tensor are 0.
    ///
    /// Errors: the view does not have the shape of the tile.
    #[track_caller]
    pub fn load_distributed_predicated(&self, held: &Distribution) -> Result<Distributed<'k>, KernelError> {
        self.tile_loaded(held, None, Edge::Predicated, "load_distributed_predicated")
    }

    /// As [`View::load_distributed`]; elements past the edges of the tensor become `other`, which
    /// has the type of the tensor. Choose the identity of what follows, such as the smallest number
    /// for a maximum.
    ///
    /// Errors: the view does not have the shape of the tile; the number has another type.
    #[track_caller]
    pub fn load_distributed_or(&self, held: &Distribution, other: Num<'k>) -> Result<Distributed<'k>, KernelError> {
        self.tile_loaded(held, Some(other), Edge::Predicated, "load_distributed_or")
    }

    /// The elements of a tile that this thread loads in [`View::load_distributed`], in runs of
    /// `bits` bits: for each run that may exist, its number among the runs of consecutive values of
    /// the thread. Instructions of this width can copy them. None if some access is narrower, if
    /// two values of a thread are copies of an element, or if `bits` is no multiple of the bits of
    /// an element.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Kernel};
    ///
    /// Kernel::build("runs", |k| {
    ///     let x = k.input::<f32>("x", "(8,16):(16,1)")?;
    ///     // A thread has four columns of a row, or a column of four rows.
    ///     let along = Distribution::new((8, 16), "((4,8),4):((32,1),8)")?;
    ///     let across = Distribution::new((8, 16), "((16,2),4):((8,4),1)")?;
    ///     assert_eq!(x.distributed_runs(&along, 128)?.map(|runs| runs.len()), Some(1));
    ///     assert!(x.distributed_runs(&across, 128)?.is_none());
    ///     // No run of f32 has 8 bits.
    ///     assert!(x.distributed_runs(&along, 8)?.is_none());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    ///
    /// Errors: the view does not have the shape of the tile.
    #[track_caller]
    pub fn distributed_runs(
        &self,
        held: &Distribution,
        bits: u32,
    ) -> Result<Option<Vec<(i64, View<'k>)>>, KernelError> {
        self.build.statement("distributed_runs", || {
            let (first, layout) = held.first_copies()?;
            let each = bits / self.element.bits();
            if each == 0 || !bits.is_multiple_of(self.element.bits()) || first.len() as i64 != held.values() {
                return Ok(None);
            }
            let part = self.part_by(held, &layout)?;
            let mut runs = Vec::new();
            for piece in part.pieces(each)? {
                let begin = piece.elements[0];
                if !piece.elements.iter().copied().eq(begin..begin + each as usize) {
                    return Ok(None);
                }
                let conditions = part.conditions(&piece, Edge::Predicated)?;
                if !self.build.core().exists_nowhere(&conditions) {
                    let number = begin as i64 / i64::from(each);
                    runs.push((number, part.tile_at(i64::from(each), Expr::from(number))?));
                }
            }
            Ok(Some(runs))
        })
    }

    #[track_caller]
    fn tile_loaded(
        &self,
        held: &Distribution,
        other: Option<Num<'k>>,
        edge: Edge,
        statement: &'static str,
    ) -> Result<Distributed<'k>, KernelError> {
        self.build.statement(statement, || {
            // If several values of a thread are copies of an element, it is loaded once.
            let (first, layout) = held.first_copies()?;
            let part = self.part_by(held, &layout)?;
            let fragment = part.fragment_like(self.element)?;
            part.read_or(other, &fragment, 128, edge)?;
            if first.len() as i64 == held.values() {
                return fragment.as_tile(held);
            }
            fragment.chosen(&held.firsts())?.as_tile(held)
        })
    }

    /// Stores a tile. One of the threads that hold an element stores it.
    ///
    /// Errors: the view does not have the shape of the tile; types differ; an element may not
    /// exist.
    #[track_caller]
    pub fn store_distributed(&self, tile: &Distributed<'k>) -> Result<(), KernelError> {
        self.tile_stored(tile, Edge::Proved, "store_distributed")
    }

    /// As [`View::store_distributed`]; elements past the edges of the tensor are not stored.
    ///
    /// Errors: the view does not have the shape of the tile; types differ.
    #[track_caller]
    pub fn store_distributed_predicated(&self, tile: &Distributed<'k>) -> Result<(), KernelError> {
        self.tile_stored(tile, Edge::Predicated, "store_distributed_predicated")
    }

    #[track_caller]
    fn tile_stored(&self, tile: &Distributed<'k>, edge: Edge, statement: &'static str) -> Result<(), KernelError> {
        self.build.statement(statement, || {
            let (first, layout) = tile.held.first_copies()?;
            let part = self.part_by(&tile.held, &layout)?;
            let only = self.build.core().all_zero(&tile.held.copy_digits())?;
            part.write_where(only, &tile.fragment.chosen(&first)?, 128, edge)
        })
    }

    /// The part of this thread, by a layout of the distribution's tile.
    pub(crate) fn part_by(&self, held: &Distribution, layout: &Layout) -> Result<View<'k>, Reason> {
        let (mine, wanted) = (self.layout.shape(), held.tile());
        let size = |tree: &tilewright_layout::Tree<Expr>| tree.product().ok().and_then(|size| known(&size));
        let same = mine.rank() == wanted.rank()
            && mine.modes().zip(wanted.modes()).all(|(mine, wanted)| size(&mine) == wanted.product().ok());
        if !same {
            return Err(Reason::Sizes {
                left: self.text(),
                left_size: mine.to_string(),
                right: "the tile".to_string(),
                right_size: wanted.to_string(),
            });
        }
        self.build.core().say_threads(held.threads())?;
        self.composed(layout)?.of_thread()
    }
}

fn known(expr: &Expr) -> Option<i64> {
    use tilewright_layout::Extent;
    expr.known()
}

impl Distribution {
    /// The values of a thread without copies, and the thread-value layout of these.
    pub(crate) fn first_copies(&self) -> Result<(Vec<usize>, Layout), Reason> {
        let digits = self.value_digits();
        let first: Vec<usize> = (0..self.values())
            .filter(|value| digits.iter().filter(|digit| digit.copies()).all(|digit| digit.of(*value) == 0))
            .map(|value| value as usize)
            .collect();
        let threads = self.layout().mode(0).unwrap_or(Layout::unit());
        let values = self.layout().mode(1).unwrap_or(Layout::unit());
        let kept = values.leaves().iter().filter(|leaf| leaf.stride != 0);
        let kept: Vec<Layout> = kept.map(|leaf| Layout::mode_of(leaf.extent, leaf.stride)).collect::<Result<_, _>>()?;
        let values = if kept.is_empty() { Layout::mode_of(1, 0)? } else { Layout::tuple(&kept)? };
        Ok((first, Layout::tuple([&threads, &values])?))
    }

    /// For each value of a thread, its position among the values without copies.
    pub(crate) fn firsts(&self) -> Vec<usize> {
        let digits: Vec<_> = self.value_digits().into_iter().filter(|digit| !digit.copies()).collect();
        let place = |value: i64| {
            let mut below = 1;
            digits.iter().fold(0, |sum, digit| {
                let at = digit.of(value) * below;
                below *= digit.extent;
                sum + at
            })
        };
        (0..self.values()).map(|value| place(value) as usize).collect()
    }

    /// The digits of a thread's index that count copies: for each, the product of the digits below
    /// it, and its number of values.
    pub(crate) fn copy_digits(&self) -> Vec<(i64, i64)> {
        self.thread_digits().iter().filter(|digit| digit.copies()).map(|digit| (digit.below, digit.extent)).collect()
    }
}
