//! Code for the last block to finish.
//!
//! Law: each block is counted once when it gets here, and the last one runs the body. It sees
//! everything that all threads of all blocks wrote before. The threads of a block synchronize. Then
//! one of them counts the block, with release and acquire (`Operation::CountBlock`), and passes the
//! result to the others at a second barrier. Any block may be the last one, so the body must not
//! depend on the block index; everything else is ordered, and the result is deterministic. The
//! count wraps around after all blocks, so the next launch finds it at 0.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{LayoutError, Stride};

use super::Build;
use super::core::{Core, Slot};
use super::number::Flag;
use super::state::LastBlock;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Comparison, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::scalar::Scalar;
use crate::program::{Location, Program, Source};

fn refuse(because: impl Into<String>) -> Reason {
    Reason::Instruction { name: "when_last".to_string(), because: because.into() }
}

impl Build {
    /// A body for the last block of the launch that gets here. Its threads see what all blocks
    /// wrote before, and may read outputs that are not written again: for example, to combine
    /// partial results of blocks in a fixed order. So one launch does the work of two.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Distribution, Kernel, Reduction, Written, interpret, ptx};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // The sum of all elements: each of eight blocks sums 64, and the last block adds the sums.
    /// let (row, parts) = (Distribution::new(64, "(64,1):(1,0)")?, Distribution::new(8, "((8,8),1):((1,0),0)")?);
    /// let kernel = Kernel::build("total", |k| {
    ///     let x = k.input::<i32>("x", "512:1")?;
    ///     let (part, y) = (k.output::<i32>("part", "8:1")?, k.output::<i32>("y", "1:1")?);
    ///     let own = x.local_tile(64, k.block("x")?)?.load_distributed(&row)?;
    ///     part.local_tile(1, k.block("x")?)?.store_distributed(&own.reduce(&[0], Reduction::Sum)?)?;
    ///     k.when_last(|| y.store_distributed(&part.load_distributed(&parts)?.reduce(&[0], Reduction::Sum)?))
    /// })?;
    /// // In the block that arrives last.
    /// assert!(kernel.outputs().iter().all(|output| output.written == Written::Once));
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<i32>("y")?[0], run.tensor::<i32>("x")?.iter().sum());
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm80)?.contains("atom.acq_rel.gpu.global.inc.u32"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The grid and the threads of a block must be stated before. A kernel calls this once, outside
    /// of roles, loops and conditions. The counter is in memory of the module and needs no
    /// clearing, like that of [`Build::dynamic_scheduler`].
    ///
    /// Errors: a second call; a call in a role, a loop or a condition; a kernel with a dynamic
    /// scheduler, or one that waits for the previous launch; those of the body.
    #[track_caller]
    pub fn when_last(&self, body: impl FnOnce() -> Result<(), KernelError>) -> Result<(), KernelError> {
        let location = Location::caller();
        let source = Source { statement: "when_last", location };
        let at = |refusal: Reason| refusal.at(source.statement, location);
        let (which, last) = {
            let mut core = self.core_for(source);
            core.counts_blocks().map_err(at)?
        };
        let told = self.take_scratch(Element::U32, "1:1").map_err(at)?;
        {
            let mut core = self.core();
            let grid = core.grid.clone();
            core.last_block = Some(LastBlock { before: told.buffer, grid, within: None });
        }
        // The writes of all threads precede the count.
        self.meet();
        self.single(|| {
            let before = told.fragment()?;
            {
                let mut core = self.core_for(source);
                let number = core.effect(Operation::CountBlock, [which, last], &[Width::Bits32], None)[0];
                core.cells[before.cell].slots = vec![Slot::Whole(number)];
            }
            told.store(&before)
        })?;
        self.core().begin(source);
        self.meet();
        let before = told.load()?;
        let register = {
            let mut core = self.core_for(source);
            let before = core.element_register(before.cell, 0).map_err(at)?;
            let all = core.pure(Operation::Compare(Comparison::Equal, Number::U32), [before, last], Width::Predicate);
            core.last_block.iter_mut().for_each(|block| block.within = Some(all));
            all
        };
        self.return_scratch(&told);
        self.branch("when_last", Flag { build: self, register }, body, || Ok(()), location)?;
        self.core().last_block.iter_mut().for_each(|block| block.within = None);
        Ok(())
    }
}

impl Core {
    /// The counter of the launch, and the index of the last block to be counted.
    fn counts_blocks(&mut self) -> Result<(Register, Register), Reason> {
        if self.last_block.is_some() {
            return Err(refuse("a kernel says it once"));
        }
        if self.team.is_some() || self.depth() > 0 {
            return Err(refuse("it must be outside of roles, loops and conditions, because all threads take part"));
        }
        self.is_said()?;
        let overflow = || LayoutError::Overflow { op: "when_last" };
        let all = |all: Expr, count: &Expr| Stride::times(&all, count);
        let blocks = self.grid.iter().flatten().try_fold(Expr::from(1), all).ok_or_else(overflow)?;
        let last = Stride::plus(&blocks, &Expr::from(-1)).ok_or_else(overflow)?;
        let last = self.lower(&last, Width::Bits32)?;
        Ok((self.scalar(Scalar::Count), last))
    }

    /// Whether the statement belongs to the body for the last block.
    pub(crate) fn is_of_last_block(&self) -> bool {
        self.last_block.as_ref().is_some_and(|block| block.within.is_some())
    }

    /// Refuses a count if the grid is not set along all axes, and refuses features that exclude a
    /// count.
    pub(crate) fn counts_all(&self, program: &Program) -> Result<(), Reason> {
        let Some(block) = &self.last_block else { return Ok(()) };
        if block.grid != self.grid {
            return Err(refuse("how many blocks there are along each axis is said before"));
        }
        if self.tile_counter.is_some() {
            return Err(refuse("a kernel with a dynamic scheduler has no counter left"));
        }
        if program.waits_for_launches() {
            return Err(refuse("a launch that begins before the one before it is over would share its count"));
        }
        Ok(())
    }
}
