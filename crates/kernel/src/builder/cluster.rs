//! Clusters: blocks that run together and access each other's shared memory.
//!
//! Law: the blocks of a cluster are adjacent, along the first axis of the grid or along several.
//! Their ranks count them from 0, the first axis fastest. A view of another block's shared memory
//! is the same view of the same array, in that block. A layout from indices to ranks states which
//! blocks receive a box.

use tilewright_layout::symbolic::Expr;

use super::Build;
use super::core::Core;
use super::tensor::View;
use crate::arguments::{IntoClusterShape, IntoRanks, Ranks};
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Comparison, Number, Operation, Special};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// The most blocks of a cluster of any device. Every device with clusters has eight.
const MAX_CLUSTER: u32 = 16;
/// The number of ranks in a register that serves as a table, four bits each.
const LISTED: usize = 8;

/// Ranks that are proved to be in the cluster: each of `ranks`, plus a first rank.
pub(crate) struct CheckedRanks {
    pub(crate) ranks: Vec<u32>,
    pub(crate) first: Expr,
}

impl Core {
    /// The number of blocks of a cluster, which cannot be changed after this call.
    pub(crate) fn cluster_size(&mut self) -> u32 {
        self.cluster.get_or_insert([1; 3]).iter().product()
    }

    /// The ranks that an argument names, if they are distinct and in the cluster.
    pub(crate) fn ranks(&mut self, ranks: impl IntoRanks) -> Result<CheckedRanks, Reason> {
        let Ranks { layout, first } = ranks.into_ranks()?;
        let size = self.cluster_size();
        let refuse = |because: String| Reason::Instruction { name: format!("ranks {layout}"), because };
        if !(1..=i64::from(size)).contains(&layout.size()) {
            return Err(refuse(format!("it has {} ranks, and the cluster has {size}", layout.size())));
        }
        let mut ranks = Vec::new();
        for at in 0..layout.size() {
            let rank = layout.eval(&at)?;
            match u32::try_from(rank) {
                Ok(rank) if rank < size && !ranks.contains(&rank) => ranks.push(rank),
                _ => return Err(refuse(format!("{rank} is no rank of {size}, or is named twice"))),
            }
        }
        let last = i64::from(ranks.iter().copied().max().unwrap_or(0));
        let end = Expr::from(i64::from(size) - last);
        if !self.is_natural(&first) || !self.is_less(&first, &end) {
            return Err(refuse(format!("that {first} and the greatest of them is a rank of {size} is not shown")));
        }
        Ok(CheckedRanks { ranks, first })
    }

    /// A register in which the bits of the ranks are set.
    pub(crate) fn mask_of(&mut self, ranks: &CheckedRanks) -> Result<Register, Reason> {
        let bits = ranks.ranks.iter().fold(0, |bits, rank| bits | 1_u64 << rank);
        let mask = self.constant(bits, Width::Bits32);
        if ranks.first.is_known_zero() {
            return Ok(mask);
        }
        let first = self.lower(&ranks.first, Width::Bits32)?;
        Ok(self.pure(Operation::Binary(Binary::ShiftLeft, Number::U32), [mask, first], Width::Bits32))
    }

    /// A register that holds one of the ranks in each of the lowest lanes, and the predicate of
    /// these lanes.
    pub(crate) fn rank_of_lane(&mut self, ranks: &CheckedRanks) -> Result<(Register, Register), Reason> {
        let lane = self.special(Special::Lane);
        let count = self.constant(ranks.ranks.len() as u64, Width::Bits32);
        let inside = self.pure(Operation::Compare(Comparison::Less, Number::I32), [lane, count], Width::Predicate);
        if ranks.ranks.len() > LISTED {
            if !ranks.first.is_known_zero() || !(0..).zip(&ranks.ranks).all(|(lane, rank)| lane == *rank) {
                let because = format!("more than {LISTED} ranks are those of the whole cluster, in order");
                return Err(Reason::Instruction { name: "ranks".to_string(), because });
            }
            return Ok((lane, inside));
        }
        // Four bits for each lane.
        let table = ranks.ranks.iter().rev().fold(0, |table, rank| table << 4 | u64::from(*rank));
        let (table, two) = (self.constant(table, Width::Bits32), self.constant(2, Width::Bits32));
        let (low, most) = (self.constant(15, Width::Bits32), self.constant(7, Width::Bits32));
        let lane = self.pure(Operation::Binary(Binary::And, Number::U32), [lane, most], Width::Bits32);
        let by = self.pure(Operation::Binary(Binary::ShiftLeft, Number::U32), [lane, two], Width::Bits32);
        let rank = self.pure(Operation::Binary(Binary::ShiftRight, Number::U32), [table, by], Width::Bits32);
        let mut rank = self.pure(Operation::Binary(Binary::And, Number::U32), [rank, low], Width::Bits32);
        if !ranks.first.is_known_zero() {
            let first = self.lower(&ranks.first, Width::Bits32)?;
            rank = self.pure(Operation::Binary(Binary::Add, Number::I32), [rank, first], Width::Bits32);
        }
        Ok((rank, inside))
    }
}

/// The known properties of a rank.
trait KnownRank {
    fn is_known_zero(&self) -> bool;
}

impl KnownRank for Expr {
    fn is_known_zero(&self) -> bool {
        tilewright_layout::Extent::known(self) == Some(0)
    }
}

impl Build {
    /// Sets the number of blocks of a cluster, adjacent along the first axis of the grid, or the
    /// number along each axis: `(2, 2)`. They run at the same time and access each other's shared
    /// memory (sm_90). Ranks count them, the first axis fastest. Call it before pipelines and ranks
    /// are made. A launch refuses a grid that is not divisible into clusters.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, interpret};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Two blocks exchange 32 numbers each.
    /// let kernel = Kernel::build("exchanged", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(32,1,2):(1,1,32)")?, k.output::<f32>("y", "(32,1,2):(1,1,32)")?);
    ///     k.threads(32)?;
    ///     k.grid(Axis::X, 2)?;
    ///     k.cluster(2)?;
    ///     let column = Tree::flat([Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?;
    ///     let own = k.shared::<f32>("(32,1):(1,1)")?;
    ///     own.thread_part()?.store(&x.slice(column.clone())?.thread_part()?.load()?)?;
    ///     k.cluster_barrier();
    ///     let other = own.of_block(k.rank_after(1)?)?.thread_part()?.load()?;
    ///     // No block exits while the other one reads.
    ///     k.cluster_barrier();
    ///     y.slice(column)?.thread_part()?.store(&other)
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// let (x, y) = (run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// assert_eq!((&y[..32], &y[32..]), (&x[32..], &x[..32]));
    /// // Each of 2 x 2 blocks stores the rank of the block diagonally opposite.
    /// let kernel = Kernel::build("across", |k| {
    ///     let y = k.output::<i32>("y", "(4,6):(6,1)")?;
    ///     k.threads(1)?;
    ///     k.cluster((2, 2))?;
    ///     let own = y.local_tile((1, 1), k.block("(x,y)")?)?;
    ///     let rank = own.fragment()?;
    ///     rank.fill(k.index(&k.rank_after(2)?)?)?;
    ///     own.store(&rank)
    /// })?;
    /// let y = interpret::check(kernel.program(), &[])?.run.tensor::<i32>(0)?;
    /// assert_eq!((&y[..4], &y[6..10]), (&[2, 0, 2, 0][..], &[3, 1, 3, 1][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: it was set to another number before, or another number was relied on; it is not from
    /// 1 to 16. A device may have no room for more than 8, and then refuses the launch.
    #[track_caller]
    pub fn cluster(&self, blocks: impl IntoClusterShape) -> Result<(), KernelError> {
        KernelError::within("cluster", || self.clustered(blocks.into_cluster_shape()))
    }

    fn clustered(&self, blocks: [u32; 3]) -> Result<(), Reason> {
        let mut core = self.core();
        let count = blocks.iter().fold(1_u64, |count, blocks| count.saturating_mul(u64::from(*blocks)));
        let text = |[x, y, z]: [u32; 3]| if (y, z) == (1, 1) { x.to_string() } else { format!("{x} x {y} x {z}") };
        match core.cluster {
            _ if count == 0 || count > u64::from(MAX_CLUSTER) => {
                Err(Reason::TooMuch { what: "blocks in a cluster", asked: count, limit: MAX_CLUSTER.into() })
            }
            Some(known) if known != blocks => Err(Reason::Twice {
                what: "the number of blocks in a cluster".to_string(),
                first: text(known),
                second: text(blocks),
            }),
            _ => {
                core.cluster = Some(blocks);
                Ok(())
            }
        }
    }

    /// The rank of this block in its cluster.
    #[track_caller]
    pub fn rank(&self) -> Expr {
        let (mut core, _) = self.begin("rank");
        let size = core.cluster_size();
        if let Some(rank) = &core.rank {
            return rank.clone();
        }
        let register = core.special(Special::ClusterRank);
        let rank = core.new_variable(register, i64::from(size) - 1, None);
        core.rank = Some(rank.clone());
        rank
    }

    /// The rank `by` after this block's rank, modulo the number of blocks of the cluster.
    ///
    /// Errors: `by` is not less than the number of blocks of the cluster.
    #[track_caller]
    pub fn rank_after(&self, by: u32) -> Result<Expr, KernelError> {
        let rank = self.rank();
        self.instructed("rank_after", |core| {
            let size = core.cluster_size();
            if by >= size {
                return Err(Reason::TooMuch { what: "ranks", asked: by.into(), limit: u64::from(size) - 1 });
            }
            let rank = core.lower(&rank, Width::Bits32)?;
            let [by, less, end] = [i64::from(by), i64::from(by) - i64::from(size), i64::from(size - by)]
                .map(|number| core.constant(number as u32 as u64, Width::Bits32));
            let add = Operation::Binary(Binary::Add, Number::I32);
            let next = core.pure(add.clone(), [rank, by], Width::Bits32);
            let around = core.pure(add, [rank, less], Width::Bits32);
            let inside = core.pure(Operation::Compare(Comparison::Less, Number::I32), [rank, end], Width::Predicate);
            let register = core.pure(Operation::Select, [inside, next, around], Width::Bits32);
            Ok(core.new_variable(register, i64::from(size) - 1, None))
        })
    }

    /// A barrier of all threads of the cluster: accesses before it are ordered before accesses
    /// after it, also in the shared memory of other blocks.
    #[track_caller]
    pub fn cluster_barrier(&self) {
        self.at_cluster("cluster_barrier", &[Operation::ClusterArrive, Operation::ClusterWait]);
    }

    /// Arrives at the cluster barrier without waiting; [`Build::cluster_wait`] waits for the other
    /// threads.
    #[track_caller]
    pub fn cluster_arrive(&self) {
        self.at_cluster("cluster_arrive", &[Operation::ClusterArrive]);
    }

    /// Waits until all threads of the cluster have arrived at its barrier.
    #[track_caller]
    pub fn cluster_wait(&self) {
        self.at_cluster("cluster_wait", &[Operation::ClusterWait]);
    }

    #[track_caller]
    fn at_cluster(&self, statement: &'static str, operations: &[Operation]) {
        let (mut core, _) = self.begin(statement);
        core.cluster_size();
        for operation in operations {
            core.effect(operation.clone(), [], &[], None);
        }
    }
}

impl<'k> View<'k> {
    /// The same view of the shared memory of another block of the cluster, by its rank: loads and
    /// stores access that block (`mapa`, `ld.shared::cluster`). The block must have started and
    /// must not have exited: cluster barriers before and after ensure this.
    ///
    /// Errors: the view is not in shared memory; the rank is not proved to be in the cluster.
    #[track_caller]
    pub fn of_block(&self, rank: impl Into<Expr>) -> Result<View<'k>, KernelError> {
        let location = Location::caller();
        let rank = rank.into();
        let find = || {
            if !self.is_shared() {
                let because = "only shared memory is a block's own".to_string();
                return Err(Reason::Instruction { name: self.text(), because });
            }
            let mut core = self.build.core_for(Source { statement: "of_block", location });
            core.ranks(&rank)?;
            core.lower(&rank, Width::Bits32)
        };
        let register = find().map_err(|refusal| refusal.at("of_block", location))?;
        Ok(View { rank: Some(register), ..self.clone() })
    }

    /// Refuses a view of another block for a statement that cannot access one.
    pub(crate) fn own_block(&self, statement: &str) -> Result<(), Reason> {
        match self.rank {
            None => Ok(()),
            Some(_) => Err(Reason::Instruction {
                name: statement.to_string(),
                because: "shared memory of another block is loaded and stored, and reached by bulk copies".to_string(),
            }),
        }
    }
}
