//! Shared memory that statements allocate and free themselves.
//!
//! Law: a statement's data is read before another statement writes to the same memory, with a
//! barrier in between. At the outermost level, an area is free again once a barrier has followed
//! its release. In the body of a loop, each use has an area of its own, which the next iteration
//! uses again. Between the uses in two iterations there is a barrier of the body: that of another
//! use, or else one in front of the area.
//!
//! These areas are placed after the arrays of the kernel's author.

use super::Build;
use super::core::{BarrierBefore, Core, Scope};
use super::role::barrier_of;
use super::tensor::View;
use crate::arguments::IntoLayout;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::Step;
use crate::program::memory::{Role, Space};

impl Build {
    /// An array in shared memory that [`Build::give_back`] frees: later areas reuse its memory once
    /// a barrier has followed. All threads of the block must execute this.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// let kernel = Kernel::build("areas", |k| {
    ///     k.threads(32)?;
    ///     for _ in 0..2 {
    ///         let area = k.area_of(tilewright_kernel::Element::F32, "(8,32):(1,8)")?;
    ///         k.give_back(&area);
    ///         k.barrier();
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(kernel.program().shared_bytes, 1024);
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    ///
    /// Errors: the layout is not known; a block has too little shared memory.
    #[track_caller]
    pub fn area_of(&self, element: Element, layout: impl IntoLayout) -> Result<View<'_>, KernelError> {
        self.statement("area", || self.take_scratch(element, layout))
    }

    /// Frees an area of [`Build::area_of`]. Nothing may access it any more.
    pub fn give_back(&self, area: &View<'_>) {
        self.return_scratch(area);
    }

    /// An array in shared memory, until it is freed. Every thread of the block, or of the role,
    /// executes this.
    pub(crate) fn take_scratch(&self, element: Element, layout: impl IntoLayout) -> Result<View<'_>, Reason> {
        let before = {
            let mut core = self.core();
            let depth = core.depth();
            // An earlier barrier of the body also separates this iteration from the previous one.
            let meets = depth > 0 && (core.team.is_some() || core.scopes[depth].barriers == 0);
            if meets {
                let (barrier, step) = (barrier_of(core.team.as_ref()), core.scopes[depth].steps.len());
                let barriers = core.scopes[depth].barriers;
                core.effect(barrier, [], &[], None);
                core.scopes[depth].barriers = barriers;
                Some(step).filter(|_| core.team.is_none())
            } else {
                None
            }
        };
        let view = self.take_scratch_beside(element, layout)?;
        if let Some(step) = before {
            let mut core = self.core();
            let depth = core.depth();
            core.scopes[depth].before_areas.push(BarrierBefore { step, area: view.buffer, returned: None });
        }
        Ok(view)
    }

    /// A further array after one that was just allocated. Nothing was written since, so one barrier
    /// serves both.
    pub(crate) fn take_scratch_beside(&self, element: Element, layout: impl IntoLayout) -> Result<View<'_>, Reason> {
        let (name, before) = {
            let core = self.core();
            (format!("scratch{}", core.buffers.len()), core.shared_bytes)
        };
        let view = self.declare(element, &name, layout, Space::Shared, Role::Both)?;
        let mut core = self.core();
        let buffer = &core.buffers[view.buffer.index()];
        let (bytes, alignment) = (core.shared_bytes - buffer.start, buffer.alignment);
        core.shared_bytes = before;
        core.scratch.take(view.buffer, bytes, alignment);
        drop(core);
        Ok(view)
    }

    /// Frees an array.
    pub(crate) fn return_scratch(&self, view: &View<'_>) {
        let mut core = self.core();
        for (buffer, _, _, returned) in &mut core.scratch.busy {
            *returned |= *buffer == view.buffer;
        }
        let depth = core.depth();
        let Scope { barriers, before_areas, .. } = &mut core.scopes[depth];
        for before in before_areas.iter_mut().filter(|before| before.area == view.buffer) {
            before.returned = Some(*barriers);
        }
    }
}

impl Scope {
    /// The steps of the body of a loop, without the barriers in front of areas that are freed
    /// before another barrier of the body.
    pub(super) fn steps_of_loop(mut self) -> Vec<Step> {
        for before in self.before_areas.iter().rev() {
            if before.returned.is_some_and(|returned| returned < self.barriers) {
                self.steps.remove(before.step);
            }
        }
        self.steps
    }
}

impl Core {
    /// Places the areas after the arrays of the kernel's author.
    pub(crate) fn place_scratch(&mut self) -> Result<(), Reason> {
        if self.scratch.placed.is_empty() {
            return Ok(());
        }
        let base = self.shared_bytes.next_multiple_of(self.scratch.alignment);
        let end = base + self.scratch.bytes;
        if u64::from(end) > crate::machine::MAX_SHARED {
            let (asked, limit) = (end.into(), crate::machine::MAX_SHARED);
            return Err(Reason::TooMuch { what: "bytes of shared memory", asked, limit });
        }
        for (buffer, begin) in &self.scratch.placed {
            self.buffers[buffer.index()].start = base + begin;
        }
        self.shared_bytes = end;
        Ok(())
    }
}
