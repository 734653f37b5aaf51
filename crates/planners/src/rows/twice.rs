//! Rows that do not fit in the registers of a block.
//!
//! Law: a block reads its row twice, in chunks. The second pass begins at the end of the row,
//! because the end is still in L2. In the first pass, each thread keeps running statistics of its
//! elements. The statistics of all threads are combined once, after the loop.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Distributed, Distribution, Element, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use super::placed;
use crate::error::PlanError;
use crate::law::{REGISTER_VECTORS, SEVERAL_THREADS};
use crate::terms::{RowMatrix, RowPlaces};
use crate::units::widest;

/// Threads of a block, and vectors of each in a chunk.
const THREADS: i64 = SEVERAL_THREADS;
const VECTORS: i64 = REGISTER_VECTORS;

/// How a block iterates over a row.
pub(crate) struct RowsTwice {
    pub(crate) columns: i64,
    pub(crate) element: Element,
    alignment: i64,
    /// The pitches of the rows.
    pub(crate) places: RowPlaces,
    chunk: i64,
    run: i64,
    /// A chunk `(1,A,V)`, a run of it `(1,A)`, and one number of each thread.
    held: Distribution,
    one: Distribution,
    single: Distribution,
}

/// A tensor as a block sees it: a matrix, weights or a bias.
pub(crate) struct Stretch<'k> {
    tensor: View<'k>,
    row: Expr,
}

impl RowsTwice {
    /// The plan for the rows of a matrix.
    ///
    /// Errors: the number of columns does not fit in 31 bits.
    pub(crate) fn new(matrix: RowMatrix) -> Result<RowsTwice, PlanError> {
        let RowMatrix { columns, element, alignment, .. } = matrix;
        let limit = i64::from(i32::MAX) / 2;
        if columns > limit {
            return Err(PlanError::TooLarge { what: "elements of a row", asked: columns, limit });
        }
        let vector = widest(columns, element, alignment);
        let run = THREADS * vector;
        let held =
            Distribution::new((1, run, VECTORS), Layout::strided((THREADS, (vector, VECTORS)), (vector, (1, run))))?;
        let one = Distribution::new((1, run), Layout::strided((THREADS, vector), (vector, 1)))?;
        let single = Distribution::new((1, THREADS), Layout::strided((THREADS, 1), (1, 0)))?;
        let places = matrix.places();
        Ok(RowsTwice { columns, element, alignment, places, chunk: run * VECTORS, run, held, one, single })
    }

    /// The plan, in a sentence.
    pub(crate) fn plan(&self) -> String {
        format!("a block of {THREADS} threads a row, read twice in {} chunks of {}", self.chunks(), self.chunk)
    }

    fn chunks(&self) -> i64 {
        (self.columns + self.chunk - 1) / self.chunk
    }

    /// The matrix that is read or written, as `(M,N)`.
    pub(crate) fn matrix<'k>(&self, k: &'k Build, name: &str, role: Role) -> Result<Stretch<'k>, KernelError> {
        let RowPlaces { columns, x, y } = self.places;
        let pitch = if role == Role::Input { x } else { y };
        let tensor = k.tensor_of(self.element, name, &format!("(M,{columns}):({pitch},1)"), role)?;
        let tensor = placed(tensor, self.element, self.alignment)?;
        Ok(Stretch { tensor, row: k.block_number(Axis::X) })
    }

    /// Weights or a bias: one number for each column.
    pub(crate) fn row<'k>(&self, k: &'k Build, name: &str) -> Result<Stretch<'k>, KernelError> {
        let tensor =
            k.tensor_of(self.element, name, Layout::strided((1, self.columns), (self.columns, 1)), Role::Input)?;
        let tensor = placed(tensor, self.element, self.alignment)?;
        Ok(Stretch { tensor, row: Expr::from(0) })
    }

    /// A chunk as `(1,A,V)`.
    fn tile<'k>(&self, tensor: &Stretch<'k>, chunk: &Expr) -> Result<View<'k>, KernelError> {
        let at: Coord<Expr> = Tree::flat([Slot::At(tensor.row.clone()), Slot::At(chunk.clone())])?;
        let modes = Layout::strided((1, self.run, VECTORS), (0, 1, self.run))?;
        tensor.tensor.local_tile((1, self.chunk), at)?.compose(&modes)
    }

    /// A number of each thread, kept from chunk to chunk.
    pub(crate) fn kept<'k>(&self, k: &'k Build, value: f64) -> Result<Distributed<'k>, KernelError> {
        let fragment = k.register(Element::F32, 1)?;
        fragment.fill(k.number_of(Element::F32, value))?;
        fragment.distributed(&self.single)
    }

    /// The first pass: `each` gets the elements of each thread in f32, chunk by chunk, and the
    /// number of them that are inside the row; elements past the end are `other`.
    pub(crate) fn first<'k>(
        &self,
        k: &'k Build,
        x: &Stretch<'k>,
        other: f64,
        each: impl Fn(&[Num<'k>], Num<'k>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        k.threads(THREADS)?;
        k.range(self.chunks(), |step| {
            let held = self.tile(x, &step)?.load_distributed_or(&self.held, k.number_of(self.element, other))?;
            let numbers = held.to(Element::F32)?.fragment().numbers()?;
            let whole = k.number_of(Element::F32, numbers.len() as f64);
            each(&numbers, if self.columns % self.chunk == 0 { whole } else { self.count(k, &step)? })
        })
    }

    /// The number of elements of a chunk that a thread has.
    fn count<'k>(&self, k: &'k Build, chunk: &Expr) -> Result<Num<'k>, KernelError> {
        let overflow = || LayoutError::Overflow { op: "column" };
        let first = Stride::times(chunk, &Expr::from(self.chunk)).ok_or_else(overflow)?;
        let left = k.number(self.columns as i32) - k.index(&first)?;
        let mut count = k.number_of(Element::F32, 0.0);
        let (one, zero) = (k.number_of(Element::F32, 1.0), k.number_of(Element::F32, 0.0));
        for run in 0..VECTORS {
            let before = k.number((run * self.run) as i32);
            let held = k.distributed_index(&self.one, 1)?;
            for column in held.fragment().numbers()? {
                count = count + (column + before).lt(left).select(one, zero);
            }
        }
        Ok(count)
    }

    /// The second pass, from the end: computes a function of each run of each chunk, and of the
    /// matching runs of weights and bias.
    pub(crate) fn second<'k>(
        &self,
        k: &'k Build,
        [x, y]: [&Stretch<'k>; 2],
        beside: &[&Stretch<'k>],
        each: impl Fn(Distributed<'k>, &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let overflow = || LayoutError::Overflow { op: "chunk" };
        k.range(self.chunks(), |step| {
            let last = Expr::from(self.chunks() - 1);
            let chunk = Stride::times(&step, &Expr::from(-1)).and_then(|back| Stride::plus(&last, &back));
            let chunk = chunk.ok_or_else(overflow)?;
            let runs = self.tile(x, &chunk)?.load_distributed_predicated(&self.held)?.split(2)?;
            // Everything is loaded before anything is stored: no load is moved past a store.
            let others =
                beside.iter().map(|row| self.tile(row, &chunk)?.load_distributed_predicated(&self.held)?.split(2));
            let others: Vec<Vec<Distributed<'k>>> = others.collect::<Result<_, KernelError>>()?;
            for (number, run) in runs.iter().enumerate() {
                let at: Coord<Expr> = Tree::flat([Slot::All, Slot::All, Slot::At(Expr::from(number as i64))])?;
                let others = others.iter().map(|row| row[number].to(Element::F32));
                let others: Vec<Distributed<'k>> = others.collect::<Result<_, KernelError>>()?;
                let result = each(run.to(Element::F32)?, &others)?;
                self.tile(y, &chunk)?.slice(at)?.store_distributed_predicated(&result.to(self.element)?)?;
            }
            Ok(())
        })
    }
}
