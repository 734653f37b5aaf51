//! Waits for asynchronous copies and for other threads.
//!
//! Law: what a thread reads after a wait was written before it, by the copies or the threads that
//! it waited for. The interpreter reports reads without such a wait.

use super::Build;
use super::role::barrier_of;
use crate::error::Reason;
use crate::program::operation::{Fence, Operation};
use crate::program::{Location, Source};

impl Build {
    /// Closes a group of this thread's asynchronous copies since the last call
    /// (`cp.async.commit_group`).
    #[track_caller]
    pub fn commit_async(&self) {
        self.issue("commit_async", Operation::CommitAsync);
    }

    /// Waits until at most `groups` groups of this thread are in flight (`cp.async.wait_group`).
    /// The data of the other groups is then visible to this thread, and to other threads after a
    /// barrier.
    #[track_caller]
    pub fn wait_async(&self, groups: u32) {
        self.issue("wait_async", Operation::WaitAsync(groups));
    }

    /// Orders the stores of this thread to shared memory before later accesses through the async
    /// proxy: bulk copies and wgmma (`fence.proxy.async`). Every thread that stored must execute
    /// the fence before a barrier with the issuing thread. For global memory, see
    /// [`Build::fence_async_global`].
    #[track_caller]
    pub fn fence_async(&self) {
        self.issue("fence_async", Operation::Fence(Fence::AsyncShared));
    }

    /// Orders accesses to global memory before later accesses of the block through the async proxy:
    /// bulk loads of data that this launch stored or added to, and bulk stores that overwrite it
    /// (`fence.proxy.async.global`, sm_90). It covers accesses of this thread, and those of others
    /// that happened before. A thread of the block that issues the copy executes the fence, after
    /// the barrier that orders the stores. After the launch that stored the data, no fence is
    /// needed.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // TMA loads what 32 threads have written.
    /// let kernel = |fenced: bool| {
    ///     Kernel::build("written", |k| {
    ///         let (x, y) = (k.tensor::<f32>("x", "(32,1):(1,32)")?, k.output::<f32>("y", "(32,1):(1,32)")?);
    ///         k.threads(32)?;
    ///         let tile = k.shared::<f32>("(32,1):(1,32)")?;
    ///         let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
    ///         let ones = x.thread_part()?.fragment()?;
    ///         ones.fill(k.number(1.0_f32))?;
    ///         x.thread_part()?.store(&ones)?;
    ///         k.barrier();
    ///         k.single(|| {
    ///             if fenced {
    ///                 k.fence_async_global();
    ///             }
    ///             stage.acquire()?;
    ///             stage.load(&x, &tile)?;
    ///             stage.publish()
    ///         })?;
    ///         stage.wait()?;
    ///         y.thread_part()?.store(&tile.thread_part()?.load()?)?;
    ///         stage.release()
    ///     })
    /// };
    /// assert_eq!(interpret::check(kernel(true)?.program(), &[])?.run.tensor::<f32>("y")?, [1.0; 32]);
    /// let found = interpret::check(kernel(false)?.program(), &[]).unwrap_err().to_string();
    /// assert!(found.contains("E1019"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn fence_async_global(&self) {
        self.issue("fence_async_global", Operation::Fence(Fence::AsyncGlobal));
    }

    /// Waits until the previous launches on the stream have finished, and sees their writes
    /// (`griddepcontrol.wait`, sm_90). A kernel with this statement may start before they finish,
    /// so the code before it must not access global memory. It must be outside of roles, loops and
    /// conditions, or the kernel is refused: a launch without a wait could finish before the
    /// previous one.
    #[track_caller]
    pub fn wait_launches(&self) {
        let (mut core, location) = self.begin("wait_launches");
        if core.depth() > 0 {
            let because = "it must be outside of roles, loops and conditions".to_string();
            let refusal = Reason::Instruction { name: "wait_launches".to_string(), because };
            drop(core);
            return self.complain(refusal.at("wait_launches", location));
        }
        core.effect(Operation::WaitLaunches, [], &[], None);
    }

    /// Lets the next launch on the stream start, once all blocks have executed this or exited
    /// (`griddepcontrol.launch_dependents`, sm_90), if the next kernel itself waits for this one
    /// ([`Build::wait_launches`]). This affects only speed.
    #[track_caller]
    pub fn launch_next(&self) {
        self.issue("launch_next", Operation::LaunchNext);
    }

    /// The threads of a warp synchronize (`__syncwarp`): their writes are visible to the other
    /// threads of the warp, and later loads read memory again.
    #[track_caller]
    pub fn warp_barrier(&self) {
        self.issue("warp_barrier", Operation::WarpBarrier);
    }

    /// All threads of the block synchronize (`__syncthreads`); inside a role, all threads of the
    /// role.
    #[track_caller]
    pub fn barrier(&self) {
        self.core().begin(Source { statement: "barrier", location: Location::caller() });
        self.meet();
    }

    /// The barrier of the block, or of the role that is being written.
    pub(crate) fn meet(&self) {
        let mut core = self.core();
        let barrier = barrier_of(core.team.as_ref());
        core.effect(barrier, [], &[], None);
    }
}
