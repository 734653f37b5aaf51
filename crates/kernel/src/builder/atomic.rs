//! Atomic updates of tensor elements by many threads.
//!
//! Law: after the launch, each element is the combination of its old value and of all values from
//! threads, in no defined order. No old value is returned. Elements may be in shared memory of
//! another block of the cluster.

use super::access::Edge;
use super::distributed::Distributed;
use super::fragment::Fragment;
use super::number::arithmetic;
use super::reduction::Reduction;
use super::tensor::View;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::memory::Role;
use crate::program::operation::{AtomicOperation, Binary, Number, Operation};
use crate::program::register::{Register, Width};

impl<'k> View<'k> {
    /// Atomically combines each element with that of a fragment of the same shape: `Sum`, `Minimum`
    /// or `Maximum`. Elements past the edges of the tensor are skipped. The tensor must be declared
    /// with [`crate::Build::tensor`], because its old elements count.
    ///
    /// ```
    /// use tilewright_kernel::{Distribution, Kernel, Reduction, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The sum of all elements: each block adds the sum of 64.
    /// let held = Distribution::new(64, "(64,1):(1,0)")?;
    /// let kernel = Kernel::build("total", |k| {
    ///     let (x, y) = (k.input::<i32>("x", "M:1")?, k.tensor::<i32>("y", "1:1")?);
    ///     let part = x.local_tile(64, k.block("x")?)?.load_distributed_predicated(&held)?;
    ///     y.accumulate_distributed(&part.reduce(&[0], Reduction::Sum)?, Reduction::Sum)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[("M", 1000)])?;
    /// interpreter.tensor(0, &(0..1000).collect::<Vec<i32>>())?.tensor(1, &[5_i32])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<i32>("y")?, [5 + 499_500]);
    /// let text = tilewright_kernel::ptx::write(kernel.program(), tilewright_kernel::ptx::Target::Sm80)?;
    /// assert!(text.contains("red.global.add"));
    /// // An output has nothing that could be added to.
    /// let refused = Kernel::build("total", |k| {
    ///     let y = k.output::<i32>("y", "1:1")?;
    ///     k.threads(1)?;
    ///     let one = k.register(tilewright_kernel::Element::I32, 1)?;
    ///     one.fill(k.number(1_i32))?;
    ///     y.accumulate(&one, Reduction::Sum)
    /// });
    /// assert_eq!(refused.unwrap_err().code(), "E0912");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In shared memory of another block ([`View::of_block`]), 32-bit integers support all
    /// operations; 64-bit integers and f32 only addition.
    ///
    /// Errors: sizes or types differ; the tensor is an input or an output; multiplication, and
    /// types that are only stored; operations that shared memory of another block does not support.
    #[track_caller]
    pub fn accumulate(&self, fragment: &Fragment<'k>, reduction: Reduction) -> Result<(), KernelError> {
        self.build.statement("accumulate", || self.accumulated(None, fragment, reduction, 1))
    }

    /// Adds a fragment of f32 as [`View::accumulate`], by vectors of up to four contiguous elements
    /// (`red.global.add.v4.f32`, sm_90). Each element is a separate atomic addition: a vector only
    /// saves instructions.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret, ptx};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("added", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,4):(4,1)")?, k.tensor::<f32>("y", "(32,4):(4,1)")?);
    ///     y.thread_part()?.accumulate_vectors(&x.thread_part()?.load()?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor("x", &[2.0_f32; 128])?.tensor("y", &[1.0_f32; 128])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<f32>("y")?, [3.0; 128]);
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm90a)?.contains("red.global.add.v4.f32"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`View::accumulate`]; elements that are not f32; shared memory.
    #[track_caller]
    pub fn accumulate_vectors(&self, fragment: &Fragment<'k>) -> Result<(), KernelError> {
        self.build.statement("accumulate_vectors", || {
            if self.element != Element::F32 || self.is_shared() {
                let operation = "addition of vectors to global memory";
                return Err(Reason::Arithmetic { operation, element: self.element });
            }
            self.accumulated(None, fragment, Reduction::Sum, 4)
        })
    }

    /// As [`View::accumulate`], for a distributed tile: each element is combined once, however many
    /// threads hold it.
    ///
    /// Errors: as [`View::accumulate`]; the view does not have the shape of the tile.
    #[track_caller]
    pub fn accumulate_distributed(&self, tile: &Distributed<'k>, reduction: Reduction) -> Result<(), KernelError> {
        self.build.statement("accumulate_distributed", || {
            let (first, layout) = tile.held.first_copies()?;
            let part = self.part_by(&tile.held, &layout)?;
            let only = self.build.core().all_zero(&tile.held.copy_digits())?;
            part.accumulated(only, &tile.fragment.chosen(&first)?, reduction, 1)
        })
    }

    pub(super) fn accumulated(
        &self,
        only: Option<Register>,
        fragment: &Fragment<'k>,
        reduction: Reduction,
        most: u32,
    ) -> Result<(), Reason> {
        let operation = match reduction {
            Reduction::Sum => Some(AtomicOperation::Add),
            Reduction::Minimum => Some(AtomicOperation::Minimum),
            Reduction::Maximum => Some(AtomicOperation::Maximum),
            Reduction::Product => None,
        };
        let element = self.element;
        let (Some(operation), Some(number)) = (operation, arithmetic(element)) else {
            return Err(Reason::Arithmetic { operation: "indivisible combination", element });
        };
        if self.rank.is_some() && !operation.reaches_other_blocks(number) {
            let operation = "indivisible combination in shared memory of another block";
            return Err(Reason::Arithmetic { operation, element });
        }
        self.same_size(fragment)?;
        {
            let core = self.build.core();
            let buffer = &core.buffers[self.buffer.index()];
            if buffer.role != Role::Both {
                let tried = "changed indivisibly: it is not declared as read and written";
                return Err(Reason::Role { tensor: buffer.name.clone(), tried });
            }
        }
        let slots = fragment.slots()?;
        for piece in self.pieces(most)? {
            let (access, address, guard) = self.one(&piece, Edge::Predicated)?;
            let mut core = self.build.core();
            let values = piece.elements.iter().map(|element| core.element_register(fragment.cell, slots[*element]));
            let values = values.collect::<Result<Vec<Register>, Reason>>()?;
            let guard = match (only, guard) {
                (Some(a), Some(b)) => {
                    Some(core.pure(Operation::Binary(Binary::And, Number::U16), [a, b], Width::Predicate))
                }
                (a, b) => a.or(b),
            };
            let inputs: Vec<Register> = address.into_iter().chain(self.rank).chain(values).collect();
            let change = match self.rank {
                None => Operation::Reduce(operation, number, access),
                Some(_) => Operation::RemoteReduce(operation, number, access),
            };
            core.effect(change, inputs, &[], guard);
        }
        Ok(())
    }
}
