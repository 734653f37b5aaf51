//! Gather and scatter: tiles at indices that threads have read; and histograms.
//!
//! Law: a view may have a different offset in each thread, by an index that the thread has read.
//! The part of a thread is then accessed at the thread's own offset. If several threads hold an
//! element, the distribution of the whole tile decides which of them stores it.

use tilewright_layout::{Layout, Slot, Tree};

use super::access::Edge;
use super::distributed::Distributed;
use super::reduction::Reduction;
use super::tensor::{BySlice, Cuttable, View};
use crate::distribution::Distribution;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::{Location, Source};

impl<'k> View<'k> {
    /// As [`View::store_distributed_predicated`], for a part of a tile: each thread stores to its
    /// own view. If several threads hold the same element of the whole tile, one of them stores.
    ///
    /// Errors: the view does not have the shape of the part; the types differ.
    #[track_caller]
    pub fn store_part_of(&self, part: &Distributed<'k>, whole: &Distribution) -> Result<(), KernelError> {
        self.build.statement("store_part_of", || {
            let (first, layout) = part.held.first_copies()?;
            let own = self.part_by(&part.held, &layout)?;
            let only = self.build.core().all_zero(&whole.copy_digits())?;
            own.write_where(only, &part.fragment.chosen(&first)?, 128, Edge::Predicated)
        })
    }

    /// As [`View::accumulate_distributed`], for a part of a tile.
    ///
    /// Errors: as [`View::accumulate`]; the view does not have the shape of the part.
    #[track_caller]
    pub fn accumulate_part_of(
        &self,
        part: &Distributed<'k>,
        whole: &Distribution,
        reduction: Reduction,
    ) -> Result<(), KernelError> {
        self.build.statement("accumulate_part_of", || {
            let (first, layout) = part.held.first_copies()?;
            let own = self.part_by(&part.held, &layout)?;
            let only = self.build.core().all_zero(&whole.copy_digits())?;
            own.accumulated(only, &part.fragment.chosen(&first)?, reduction, 1)
        })
    }
}

impl<'k> Distributed<'k> {
    /// A histogram: how often each of the numbers 0, 1, ... occurs in the tile. There are as many
    /// bins as the tile of `held` has elements; numbers without a bin are not counted. The counts
    /// are accumulated in shared memory.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tile, bins) = (Distribution::new(128, "(32,4):(1,32)")?, Distribution::new(8, "(32,8):(0,1)")?);
    /// let kernel = Kernel::build("counts", |k| {
    ///     let x = k.input::<i32>("x", "128:1")?.load_distributed(&tile)?;
    ///     k.output::<i32>("y", "8:1")?.store_distributed(&x.histogram(&bins)?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &(0..128).map(|at| at % 10 - 1).collect::<Vec<i32>>())?;
    /// assert_eq!(interpreter.check()?.run.tensor::<i32>("y")?, [13, 13, 13, 13, 13, 13, 13, 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the numbers are neither i32 nor u32; there is too little shared memory.
    #[track_caller]
    pub fn histogram(&self, held: &Distribution) -> Result<Distributed<'k>, KernelError> {
        let location = Location::caller();
        let build = self.fragment.build;
        let refuse = |refusal: Reason| refusal.at("histogram", location);
        let (copies, _) = self.held.first_copies().map_err(refuse)?;
        let numbers = self.fragment.numbers_at("histogram", location)?;
        let places = copies.into_iter().map(|value| build.index_of(numbers[value]));
        let places = places.collect::<Result<Vec<_>, KernelError>>()?;
        build.core().begin(Source { statement: "histogram", location });
        let count = || {
            let bins = held.tile().product()?;
            let array = build.take_scratch(Element::I32, Layout::strided(bins, 1))?;
            let (first, layout) = held.first_copies()?;
            let fragment = |value: i32, count: usize| {
                let fragment = build.fragment_of(Element::I32, &Tree::leaf(count as i64))?;
                fragment.put(&vec![build.number(value); count])?;
                Ok::<_, Reason>(fragment)
            };
            let only = build.core().all_zero(&held.copy_digits())?;
            let own = array.composed(&layout)?.of_thread()?;
            own.write_where(only, &fragment(0, first.len())?, 128, Edge::Proved)?;
            build.meet();
            let only = build.core().all_zero(&self.held.copy_digits())?;
            let one = fragment(1, 1)?;
            for place in &places {
                let bin = array.cut(&BySlice(&Tree::leaf(Slot::At(place.clone()))))?;
                bin.accumulated(only, &one, Reduction::Sum, 1)?;
            }
            build.meet();
            let counts = own.fragment_like(Element::I32)?;
            own.read_into(&counts, 128, Edge::Proved)?;
            build.return_scratch(&array);
            if first.len() as i64 == held.values() {
                return counts.as_tile(held);
            }
            counts.chosen(&held.firsts())?.as_tile(held)
        };
        count().map_err(refuse)
    }
}
