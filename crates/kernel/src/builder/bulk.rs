//! Bulk copies: boxes of a tensor that TMA copies.
//!
//! Law: a tile is copied as TMA boxes, which follow from its layout and from that of shared memory
//! (`bulk/boxes.rs`). Elements of a box past the edges are read as 0 and not written. A store must
//! be proved to end at a chunk of 16 bytes, because TMA writes whole chunks.

mod boxes;

use tilewright_layout::atoms::SwizzleMode;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, LayoutError, Stride};

use self::boxes::Box;
use super::Build;
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::memory::{Access, Cache, Space};
use crate::program::operation::Operation;
use crate::program::register::{Register, Width};

fn overflow() -> Reason {
    Reason::Layout(LayoutError::Overflow { op: "bulk_copy" })
}

impl Build {
    /// Issues bulk copies of a tile from shared memory to a tensor, by one thread
    /// ([`Build::single`]). The tensor map follows from the layouts of both. Elements past the
    /// edges of the tensor are not stored. The threads that wrote the tile must have executed
    /// [`Build::fence_async`] and then synchronized with this thread at a barrier.
    ///
    /// TMA writes whole chunks of 16 bytes. So the innermost extent of the tensor must be a whole
    /// number of chunks, as a fact like `N{div=8}` states, or the tile must end before it.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// let stored = |y: &str| {
    ///     Kernel::build("stored", |k| {
    ///         let y = k.output::<f32>("y", y)?;
    ///         let tile = k.shared::<f32>("(8,32):(32,1)")?;
    ///         k.threads(32)?;
    ///         let part = y.local_tile((8, 32), k.block("(x,y)")?)?;
    ///         k.single(|| k.store_bulk(&tile, &part))
    ///     })
    /// };
    /// assert!(stored("(M,N{div=4}):(N,1)").is_ok());
    /// // Rows of 100 floats of an array with 104 in a row, and of 101: the last chunk has 1 of 4.
    /// assert!(stored("(M,100):(104,1)").is_ok());
    /// assert_eq!(stored("(M,101):(104,1)").unwrap_err().code(), "E0923");
    /// ```
    ///
    /// Errors: sizes or types differ; the layout of the tile in shared memory does not consist of
    /// boxes of the tensor; an alignment is not proved; a row is not proved to end at a chunk
    /// (E0923), or a coordinate is not proved to be at least 0 (E0903).
    #[track_caller]
    pub fn store_bulk<'k>(&'k self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        self.stored_bulk("store_bulk", source, destination, Cache::Default)
    }

    /// As [`Build::store_bulk`], for data that is not read soon: L2 evicts its lines first
    /// (`L2::evict_first`).
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret, ptx};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // What is copied once need not stay in the cache.
    /// let kernel = Kernel::build("moved", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(64,32):(32,1)")?, k.output::<f32>("y", "(64,32):(32,1)")?);
    ///     k.threads(32)?;
    ///     let tile = k.shared::<f32>("(64,32):(32,1)")?;
    ///     let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
    ///     k.single(|| {
    ///         stage.acquire()?;
    ///         stage.load_once(&x, &tile)?;
    ///         stage.publish()
    ///     })?;
    ///     stage.wait()?;
    ///     k.single(|| {
    ///         k.store_bulk_once(&tile, &y)?;
    ///         k.commit_bulk();
    ///         k.wait_bulk(0);
    ///         Ok(())
    ///     })?;
    ///     stage.release()
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<f32>(0)?, run.tensor::<f32>(1)?);
    /// let text = ptx::write(kernel.program(), ptx::Target::Sm90a)?;
    /// assert_eq!(text.matches(".L2::cache_hint").count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::store_bulk`].
    #[track_caller]
    pub fn store_bulk_once<'k>(&'k self, source: &View<'k>, destination: &View<'k>) -> Result<(), KernelError> {
        self.stored_bulk("store_bulk_once", source, destination, Cache::Streaming)
    }

    #[track_caller]
    fn stored_bulk<'k>(
        &'k self,
        statement: &'static str,
        source: &View<'k>,
        destination: &View<'k>,
        cache: Cache,
    ) -> Result<(), KernelError> {
        self.statement(statement, || {
            destination.writable()?;
            source.shown_inside()?;
            let boxes = self.boxes(destination, source, true)?;
            // The boxes cover the tile. Their elements past the edges are not stored.
            destination.remember_write(None)?;
            for at in &boxes.boxes {
                let (from, address, corner) = self.placed(at, source)?;
                let inputs: Vec<Register> = address.into_iter().chain(corner).collect();
                let from = Access { cache, ..from };
                self.core().effect(Operation::BulkStore { map: boxes.map, from }, inputs, &[], None);
            }
            Ok(())
        })
    }

    /// Closes a group of this thread's bulk stores since the last call
    /// (`cp.async.bulk.commit_group`).
    #[track_caller]
    pub fn commit_bulk(&self) {
        self.issue("commit_bulk", Operation::CommitBulk);
    }

    /// Waits until at most `groups` groups of this thread's bulk stores may still read shared
    /// memory (`cp.async.bulk.wait_group.read`). This is required before their source is
    /// overwritten, and before the thread exits. Their writes may still be in flight
    /// ([`Build::wait_bulk_written`]).
    #[track_caller]
    pub fn wait_bulk(&self, groups: u32) {
        self.issue("wait_bulk", Operation::WaitBulk { groups, read: true });
    }

    /// Waits until at most `groups` groups of this thread's bulk stores are in flight
    /// (`cp.async.bulk.wait_group`): the data of the others is in global memory. This is required
    /// before this launch reads or overwrites that memory. Other threads learn it through a
    /// barrier.
    #[track_caller]
    pub fn wait_bulk_written(&self, groups: u32) {
        self.issue("wait_bulk_written", Operation::WaitBulk { groups, read: false });
    }

    /// The position of a box in shared memory, and the registers of its address and of its corner.
    pub(crate) fn placed(&self, at: &Box, shared: &View<'_>) -> Result<(Access, Vec<Register>, Vec<Register>), Reason> {
        shared.own_block("a bulk copy")?;
        let mut core = self.core();
        // TMA counts from the beginning of the swizzle pattern, and applies the swizzle itself.
        let plain = View { map: None, ..shared.clone() };
        let (address, offset) = plain.address(&mut core, &at.offset)?;
        let corner = at.corner.iter().map(|index| core.lower(index, Width::Bits32)).collect::<Result<_, _>>()?;
        let access = plain.access(address, offset, 64, 2);
        Ok((access, address.into_iter().collect(), corner))
    }

    /// A 64-bit word of an array of mbarriers.
    pub(crate) fn object(
        &self,
        buffer: crate::program::memory::BufferId,
        index: &Expr,
    ) -> Result<(Access, Option<Register>), Reason> {
        let mut core = self.core();
        debug_assert!(core.buffers[buffer.index()].space == Space::Shared);
        let bytes = Stride::times(index, &Expr::from(8)).ok_or_else(overflow)?;
        let (address, offset) = match bytes.known() {
            Some(known) => (None, known),
            None => (Some(core.lower(&bytes, Width::Bits32)?), 0),
        };
        let addressed = address.is_some();
        Ok((Access { buffer, addressed, offset, bits: 64, count: 1, cache: Cache::Default }, address))
    }
}

/// The swizzle mode of a view in shared memory.
pub(crate) fn mode_of(shared: &View<'_>, bits: i64) -> Option<SwizzleMode> {
    let Some(found) = shared.map.filter(|swizzle| !swizzle.is_identity()) else { return Some(SwizzleMode::None) };
    SwizzleMode::ALL.into_iter().find(|mode| mode.swizzle(bits).is_ok_and(|swizzle| swizzle == found))
}
