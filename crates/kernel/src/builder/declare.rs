//! Tensors that a kernel declares, in global and in shared memory.
//!
//! Law: a tensor has all elements that its layout reaches, counted from its first byte, and offsets
//! are never negative. Shared memory is allocated in the order of declarations.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, LayoutError, Stride, Swizzle};

use super::core::Core;
use super::{Build, View, tensor};
use crate::arguments::IntoLayout;
use crate::element::{Element, ElementType};
use crate::error::{KernelError, Reason};
use crate::machine::MAX_SHARED;
use crate::program::memory::{Buffer, BufferId, Cache, Role, Space};

/// The size of the blocks that a swizzle permutes, in elements: a power of two.
fn period(swizzle: Swizzle) -> i64 {
    swizzle.bits() + swizzle.base() + swizzle.shift().max(0)
}

/// The number of elements of a tensor. With a swizzle, whole blocks of the swizzle are counted.
pub(super) fn elements_of(map: Option<Swizzle>, layout: &Layout<Expr>, offset: &Expr) -> Result<Expr, Reason> {
    let overflow = || LayoutError::Overflow { op: "cosize" };
    let cosize = layout.cosize()?;
    let Some(swizzle) = map else { return Ok(cosize) };
    let block = Expr::from(1_i64 << period(swizzle).clamp(0, 40));
    let cosize = Stride::plus(&cosize, offset).ok_or_else(overflow)?;
    let blocks = Extent::divide_up(&cosize, &block);
    Ok(blocks.and_then(|blocks| Stride::times(&blocks, &block)).ok_or_else(overflow)?)
}

impl Core {
    /// Allocates shared memory for a number of elements: the alignment, and the first byte.
    fn take_shared(&mut self, map: Option<Swizzle>, element: Element, count: u64) -> Result<(u32, u32), Reason> {
        // The array is aligned to the swizzle pattern, because TMA and wgmma apply the swizzle to
        // addresses.
        let pattern = map.map_or(1, |swizzle| 1_u32 << period(swizzle).clamp(0, 10));
        let alignment = pattern.saturating_mul(element.bytes()).clamp(128, 1024);
        let begin = u64::from(self.shared_bytes).next_multiple_of(u64::from(alignment));
        let end = begin.saturating_add(count.saturating_mul(element.bytes().into()));
        if end > MAX_SHARED {
            return Err(Reason::TooMuch { what: "bytes of shared memory", asked: end, limit: MAX_SHARED });
        }
        self.shared_bytes = end as u32;
        Ok((alignment, begin as u32))
    }
}

impl Build {
    /// A tensor in global memory that the kernel reads and never writes, with its name and its
    /// layout. Sizes known at launch are names, with facts in braces: `"(M{div=64},N):(N,1)"`.
    ///
    /// Errors: the layout cannot be read.
    #[track_caller]
    pub fn input<T: ElementType>(&self, name: &str, layout: impl IntoLayout) -> Result<View<'_>, KernelError> {
        self.global("input", T::ELEMENT, name, layout, Role::Input)
    }

    /// A tensor in global memory. The kernel writes each of its elements once.
    ///
    /// Errors: the layout cannot be read.
    #[track_caller]
    pub fn output<T: ElementType>(&self, name: &str, layout: impl IntoLayout) -> Result<View<'_>, KernelError> {
        self.global("output", T::ELEMENT, name, layout, Role::Output)
    }

    /// A tensor in global memory that the kernel reads and writes.
    ///
    /// Errors: the layout cannot be read.
    #[track_caller]
    pub fn tensor<T: ElementType>(&self, name: &str, layout: impl IntoLayout) -> Result<View<'_>, KernelError> {
        self.global("tensor", T::ELEMENT, name, layout, Role::Both)
    }

    /// A tensor in global memory whose element type is a value, for generators of kernels.
    ///
    /// Errors: the layout cannot be read.
    #[track_caller]
    pub fn tensor_of(
        &self,
        element: Element,
        name: &str,
        layout: impl IntoLayout,
        role: Role,
    ) -> Result<View<'_>, KernelError> {
        self.global("tensor_of", element, name, layout, role)
    }

    #[track_caller]
    fn global(
        &self,
        statement: &'static str,
        element: Element,
        name: &str,
        layout: impl IntoLayout,
        role: Role,
    ) -> Result<View<'_>, KernelError> {
        self.statement(statement, || self.declare(element, name, layout, Space::Global, role))
    }

    /// An array in the shared memory of the block. Its layout must be known; a swizzle in front of
    /// it permutes the banks: `S<3,3,3> o 0 o (64,64):(64,1)`.
    ///
    /// Errors: the layout cannot be read, or is not known; there is too little shared memory.
    #[track_caller]
    pub fn shared<T: ElementType>(&self, layout: impl IntoLayout) -> Result<View<'_>, KernelError> {
        self.shared_of(T::ELEMENT, layout)
    }

    /// As [`Build::shared`], for an element type that is a value.
    ///
    /// Errors: as [`Build::shared`].
    #[track_caller]
    pub fn shared_of(&self, element: Element, layout: impl IntoLayout) -> Result<View<'_>, KernelError> {
        let name = format!("shared{}", self.core().buffers.len());
        self.statement("shared", || self.declare(element, &name, layout, Space::Shared, Role::Both))
    }

    /// The bytes of each array in shared memory so far, in the order of allocation: the arrays of
    /// [`Build::shared`], and those that a statement allocates and frees itself.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// Kernel::build("arrays", |k| {
    ///     k.threads(32)?;
    ///     let _held = k.shared::<f32>("(8,32):(1,8)")?;
    ///     assert_eq!(k.shared_arrays(), [1024]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tilewright_kernel::KernelError>(())
    /// ```
    pub fn shared_arrays(&self) -> Vec<i64> {
        let core = self.core();
        let shared = core.buffers.iter().filter(|buffer| buffer.space == Space::Shared);
        let bytes =
            |buffer: &Buffer| buffer.elements.known().unwrap_or(0).saturating_mul(buffer.element.bytes().into());
        shared.map(bytes).collect()
    }

    pub(super) fn declare(
        &self,
        element: Element,
        name: &str,
        layout: impl IntoLayout,
        space: Space,
        role: Role,
    ) -> Result<View<'_>, Reason> {
        let mut core = self.core();
        let given = layout.into_layout()?;
        let (map, offset, layout) = tensor::read(&mut core, &given)?;
        let steps = layout.leaves().iter().map(|leaf| &leaf.stride).chain([&offset]);
        if let Some(step) = steps.into_iter().find(|step| !Expr::from(-1).less(step).proved()) {
            return Err(Reason::Backwards { layout: given.to_string(), step: step.to_string() });
        }
        for parameter in tensor::sizes(&layout) {
            if !core.sizes.iter().any(|own| own.stands_for(&parameter)) {
                core.sizes.push(parameter);
            }
        }
        let elements = elements_of(map, &layout, &offset)?;
        let (alignment, start) = match space {
            Space::Global => (16, 0),
            Space::Shared => {
                let open = Reason::Open { what: "the size", layout: given.to_string() };
                let count = elements.known().ok_or(open)?.unsigned_abs();
                core.take_shared(map, element, count)?
            }
        };
        core.forms.push(layout.clone());
        core.buffers.push(Buffer {
            name: name.to_string(),
            element,
            space,
            role,
            elements,
            alignment,
            start,
            layout: given.to_string(),
        });
        let buffer = BufferId(core.buffers.len() as u32 - 1);
        drop(core);
        let whole = layout.shape();
        let place = tensor::whole(&whole)?;
        Ok(View {
            build: self,
            buffer,
            element,
            map,
            offset,
            layout,
            place,
            whole,
            ends: Vec::new(),
            recast: false,
            rank: None,
            cache: Cache::Default,
            part: None,
        })
    }
}
