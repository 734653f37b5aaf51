//! The copies that fill a stage.
//!
//! Law: the bytes that a stage expects are those of the copies that were issued into it, by all
//! blocks that fill it.

use tilewright_layout::Extent;
use tilewright_layout::atoms::SwizzleMode;
use tilewright_layout::symbolic::{Expr, Symbolic, Values};

use super::super::bulk::mode_of;
use super::super::cluster::CheckedRanks;
use super::super::tensor::View;
use super::Stage;
use crate::arguments::IntoRanks;
use crate::error::{KernelError, Reason};
use crate::program::memory::{Access, Cache};
use crate::program::operation::Operation;
use crate::program::register::{Register, Width};

impl<'k> Stage<'k> {
    /// Issues bulk copies of a tile of a tensor into shared memory, by one thread
    /// ([`Build::single`](crate::Build::single)). They arrive at this stage. The tensor map follows
    /// from the layouts of both. Elements past the edges of the tensor are filled with zeros.
    ///
    /// Errors: sizes or types differ; the layout of the tile in shared memory does not consist of
    /// boxes of the tensor; an alignment is not proved.
    #[track_caller]
    pub fn load(&self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        self.build.statement("load", || self.filled(source, destination, None, Cache::Default))
    }

    /// As [`Stage::load`], for data that nobody else reads soon: L2 evicts its lines first
    /// (`L2::evict_first`).
    ///
    /// Errors: as [`Stage::load`].
    #[track_caller]
    pub fn load_once(&self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        self.build.statement("load_once", || self.filled(source, destination, None, Cache::Streaming))
    }

    /// As [`Stage::load`], multicast to the same offset in several blocks of the cluster, given by
    /// their ranks ([`IntoRanks`]). Each of these blocks issues a part of the same size, so that a
    /// stage gets one part from each, and [`Stage::publish`] expects all of them. A stage is empty
    /// when it is empty in all receivers: its consumers release it to all blocks that fill it
    /// ([`Stage::release_to`]).
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Build, Kernel, KernelError, interpret, ptx};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each of two blocks loads half of 64 rows for both, and both store all of them.
    /// let kernel = Kernel::build("shared", |k: &Build| {
    ///     let x = k.input::<u16>("x", "(64,64):(64,1)")?;
    ///     let y = k.output::<u16>("y", "(64,64,2):(64,1,4096)")?;
    ///     k.threads(64)?;
    ///     k.grid(Axis::X, 2)?;
    ///     k.cluster(2)?;
    ///     let ring = k.shared::<u16>("(64,64,1):(64,1,4096)")?;
    ///     let half = |k: &Build| Ok::<_, KernelError>(Tree::flat([Slot::At(k.rank()), Slot::At(0.into())])?);
    ///     let whole = ring.slice(Tree::flat([Slot::All, Slot::All, Slot::At(0.into())])?)?;
    ///     let pipeline = k.pipeline(1, 2)?;
    ///     k.role(1..2, || {
    ///         k.single(|| {
    ///             let stage = pipeline.cursor()?.stage()?;
    ///             stage.acquire()?;
    ///             let (from, to) = (x.local_tile((32, 64), half(k)?)?, whole.local_tile((32, 64), half(k)?)?);
    ///             stage.load_multicast(&from, &to, 0..2)?;
    ///             stage.publish()
    ///         })
    ///     })?;
    ///     k.role(0..1, || {
    ///         let stage = pipeline.cursor()?.stage()?;
    ///         stage.wait()?;
    ///         let own = y.slice(Tree::flat([Slot::All, Slot::All, Slot::At(k.block_number(Axis::X))])?)?;
    ///         for rows in 0..2 {
    ///             let tile = Tree::flat([Slot::At(rows.into()), Slot::At(0.into())])?;
    ///             let part = whole.local_tile((32, 64), tile.clone())?.thread_part()?.load()?;
    ///             own.local_tile((32, 64), tile)?.thread_part()?.store(&part)?;
    ///         }
    ///         stage.release_to(0..2)
    ///     })?;
    ///     // No block exits while the other one still arrives.
    ///     k.cluster_barrier();
    ///     Ok(())
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<u16>(1)?[4096..], run.tensor::<u16>(0)?[..]);
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm90a)?.contains(".multicast::cluster"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Stage::load`]; the ranks are not proved to be in the cluster.
    #[track_caller]
    pub fn load_multicast(
        &self,
        source: &View<'k>,
        destination: &View<'k>,
        receivers: impl IntoRanks,
    ) -> Result<(), KernelError> {
        self.build.statement("load_multicast", || {
            let ranks = self.build.core().ranks(receivers)?;
            self.filled(source, destination, Some(&ranks), Cache::Default)
        })
    }

    /// Issues bulk copies of a tile, for one block or for several.
    fn filled(
        &self,
        source: &View<'k>,
        destination: &View<'k>,
        to_all: Option<&CheckedRanks>,
        cache: Cache,
    ) -> Result<(), Reason> {
        source.readable()?;
        destination.shown_inside()?;
        let boxes = self.build.boxes(source, destination, false)?;
        let (barrier, object) = self.build.object(self.full, &self.index)?;
        for at in &boxes.boxes {
            let (to, address, corner) = self.build.placed(at, destination)?;
            let to = Access { cache, ..to };
            let mut core = self.build.core();
            let mask = to_all.map(|ranks| core.mask_of(ranks)).transpose()?;
            let inputs: Vec<Register> = address.into_iter().chain(object).chain(corner).chain(mask).collect();
            let operation = Operation::BulkLoad { map: boxes.map, to, barrier, multicast: mask.is_some() };
            core.effect(operation, inputs, &[], None);
        }
        let parts = to_all.map_or(1, |ranks| ranks.ranks.len() as i64);
        self.bytes.set(self.bytes.get().saturating_add(boxes.bytes.saturating_mul(parts)));
        Ok(())
    }

    /// Issues a bulk copy, by one thread, from a tile of shared memory to a tile of another block
    /// of the cluster; it completes on this stage of that block (`cp.async.bulk.shared::cluster`).
    /// Each block sends as many bytes as it receives, and [`Stage::publish`] expects that many.
    /// Both tiles have the same compact layout.
    ///
    /// Errors: types or layouts differ, or a layout has gaps; an alignment is not proved, or the
    /// rank is not proved to be in the cluster.
    #[track_caller]
    pub fn send(&self, source: &View<'k>, destination: &View<'k>, rank: impl Into<Expr>) -> Result<(), KernelError> {
        let rank = rank.into();
        self.build.statement("send", || {
            source.shown_inside()?;
            destination.shown_inside()?;
            let bytes = source.same_bytes(destination)?;
            let (barrier, object) = self.build.object(self.full, &self.index)?;
            let (to, to_address) = destination.bytes_of()?;
            let (from, from_address) = source.bytes_of()?;
            let mut core = self.build.core();
            core.ranks(&rank)?;
            let rank = core.lower(&rank, Width::Bits32)?;
            let inputs: Vec<Register> =
                to_address.into_iter().chain(object).chain(from_address).chain([rank]).collect();
            core.effect(Operation::BulkSend { to, barrier, from, bytes: bytes as u32 }, inputs, &[], None);
            self.bytes.set(self.bytes.get().saturating_add(bytes));
            Ok(())
        })
    }

    /// Expects the bytes of the copies that were issued into this stage, and arrives: the stage is
    /// full when all bytes have arrived. The thread that issued the copies calls it.
    ///
    /// Errors: more bytes than an mbarrier counts.
    #[track_caller]
    pub fn publish(&self) -> Result<(), KernelError> {
        self.build.statement("publish", || {
            let (access, address) = self.build.object(self.full, &self.index)?;
            let (asked, limit) = (self.bytes.get().unsigned_abs(), (1 << 20) - 1);
            if asked > limit {
                return Err(Reason::TooMuch { what: "bytes of a stage", asked, limit });
            }
            self.build.core().effect(Operation::BarrierArrive { access, expect: asked as u32 }, address, &[], None);
            Ok(())
        })
    }
}

impl View<'_> {
    /// The size in bytes of two tiles in shared memory with equal compact layouts.
    fn same_bytes(&self, other: &View<'_>) -> Result<i64, Reason> {
        let refuse = |because: &str| Reason::Width {
            tensor: self.text(),
            atom: "a bulk copy between blocks".to_string(),
            elements: 128 / self.element.bits(),
            because: because.to_string(),
        };
        self.own_block("the source of a bulk copy")?;
        other.own_block("a bulk copy, to which the rank is given,")?;
        if !self.is_shared() || !other.is_shared() {
            return Err(refuse("both sides are in shared memory"));
        }
        if self.element != other.element {
            return Err(Reason::Elements { wanted: other.element, given: self.element });
        }
        if self.layout != other.layout || self.map != other.map {
            return Err(refuse("both sides have one layout"));
        }
        let layout = self.layout.numbers(&Values::new())?;
        if layout.right_inverse()?.size() != layout.size() {
            return Err(refuse("it is not compact in shared memory"));
        }
        let bits = i64::from(self.element.bits());
        let mode = mode_of(self, bits).ok_or_else(|| refuse("TMA does not have the swizzle"))?;
        // Bulk copies move units of 16 bytes.
        let unit = if mode == SwizzleMode::None { 16 } else { mode.period() };
        let bytes = layout.size() * bits / 8;
        let period = Expr::from((unit * 8 / bits).max(1));
        // The tile consists of whole swizzle patterns, so that both sides have the same
        // permutation.
        if bytes % unit != 0 || [self, other].iter().any(|view| !period.divides(&view.offset).proved()) {
            return Err(refuse("it is not shown to begin and end at multiples of 16 bytes, or where its swizzle does"));
        }
        Ok(bytes)
    }

    /// The offset of a tile in shared memory, before its swizzle.
    fn bytes_of(&self) -> Result<(Access, Option<Register>), Reason> {
        let plain = View { map: None, ..self.clone() };
        let (address, offset) = plain.address(&mut self.build.core(), &self.offset)?;
        Ok((plain.access(address, offset, 64, 2), address))
    }
}
