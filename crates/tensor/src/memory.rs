//! Memory that a tensor owns.
//!
//! Law: `Memory<T>` holds `len` elements, all of them initialised, at an address that is a multiple
//! of 64 or comes from a `Vec`. It drops and frees them once. It differs from a boxed slice in two
//! ways. First, it is aligned to a cache line. Second, from [`LARGE`] bytes on the system is asked
//! for huge pages: a transpose touches a page for every row, and the TLB holds some thousand pages,
//! fewer than a matrix of 64 MiB has with 4 KiB pages.
//!
//! Reason for unsafe code: the standard containers cannot be aligned to more than their elements
//! are. Huge pages make transposes of 64 MiB one and a half times as fast.
#![allow(unsafe_code)]

use std::alloc::{Layout as Block, alloc, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;

use bytemuck::Zeroable;

use crate::error::TensorError;

/// The bytes of a cache line, and of the widest vector register.
pub(crate) const LINE: usize = 64;
/// The bytes of a page. Addresses a page apart map to the same set of an L1 cache.
pub(crate) const PAGE: usize = 4096;

/// The alignment of memory that this crate allocates: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = LINE;

/// The bytes of a huge page on most processors, and the alignment of memory for which huge pages
/// are requested.
const HUGE_PAGE: usize = 2 << 20;
/// The smallest number of bytes for which huge pages are requested.
const LARGE: usize = HUGE_PAGE;

/// Owned elements.
///
/// Invariant: `pointer` is valid for `len` initialised elements, and `block` is what it was
/// allocated with, unless its size is 0: then nothing was.
pub(crate) struct Memory<T> {
    pointer: NonNull<T>,
    len: usize,
    block: Block,
    owned: PhantomData<T>,
}

// SAFETY: the memory owns its elements, as a box does.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: shared access to the memory is shared access to its elements.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T> Memory<T> {
    /// Memory for this many elements, none of them initialised yet, but zeroed if asked for.
    fn room(len: usize, zeroed: bool) -> Result<Memory<T>, TensorError> {
        let refused =
            || TensorError::Memory { elements: i64::try_from(len).unwrap_or(i64::MAX), bytes: size_of::<T>() };
        let block = Block::array::<T>(len).map_err(|_| refused())?;
        let alignment = if block.size() >= LARGE { HUGE_PAGE } else { ALIGNMENT };
        let block = block.align_to(alignment).map_err(|_| refused())?;
        let pointer = if block.size() == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: the size is not 0. If the pointer is not null, it is valid for this many
            // bytes.
            let bytes = unsafe {
                let bytes = if zeroed && block.size() < LARGE { alloc_zeroed(block) } else { alloc(block) };
                if block.size() >= LARGE && !bytes.is_null() {
                    in_huge_pages(bytes, block.size());
                    if zeroed {
                        bytes.write_bytes(0, block.size());
                    }
                }
                bytes
            };
            NonNull::new(bytes.cast::<T>()).ok_or_else(refused)?
        };
        Ok(Memory { pointer, len: 0, block, owned: PhantomData })
    }

    /// `len` clones of a value.
    pub(crate) fn filled(len: usize, value: &T) -> Result<Memory<T>, TensorError>
    where
        T: Clone,
    {
        Memory::collected(len, std::iter::repeat_n(value, len))
    }

    /// Clones of elements, in order.
    pub(crate) fn copied(elements: &[T]) -> Result<Memory<T>, TensorError>
    where
        T: Clone,
    {
        Memory::collected(elements.len(), elements.iter())
    }

    /// Clones of at most `len` elements.
    fn collected<'a>(len: usize, elements: impl Iterator<Item = &'a T>) -> Result<Memory<T>, TensorError>
    where
        T: Clone + 'a,
    {
        let mut memory = Memory::room(len, false)?;
        for (position, element) in elements.take(len).enumerate() {
            // SAFETY: there is room for `len` elements. An element is counted only after it is
            // written, so a panic of `clone` leaves the invariant whole.
            unsafe { memory.pointer.add(position).write(element.clone()) };
            memory.len = position + 1;
        }
        Ok(memory)
    }

    /// `len` elements whose bytes are all zero.
    pub(crate) fn zeroed(len: usize) -> Result<Memory<T>, TensorError>
    where
        T: Zeroable,
    {
        let mut memory = Memory::room(len, true)?;
        // Zero bytes are a valid `T`, so all elements are initialised.
        memory.len = len;
        Ok(memory)
    }

    /// Takes over the elements of a vector in place.
    pub(crate) fn of_vec(vec: Vec<T>) -> Memory<T> {
        let mut vec = std::mem::ManuallyDrop::new(vec);
        let (pointer, len, capacity) = (vec.as_mut_ptr(), vec.len(), vec.capacity());
        // The size of the vector's allocation.
        let bytes = capacity.saturating_mul(size_of::<T>());
        let block = Block::from_size_align(bytes, align_of::<T>()).unwrap_or(Block::new::<()>());
        // SAFETY: the pointer of a vector is not null.
        Memory { pointer: unsafe { NonNull::new_unchecked(pointer) }, len, block, owned: PhantomData }
    }

    /// The elements as a vector: in place if a vector could have been allocated there, and moved to
    /// a new one otherwise.
    pub(crate) fn into_vec(self) -> Vec<T> {
        let memory = std::mem::ManuallyDrop::new(self);
        let (pointer, len, block) = (memory.pointer.as_ptr(), memory.len, memory.block);
        if block.size() == 0 || block.align() == align_of::<T>() {
            let capacity = block.size().checked_div(size_of::<T>()).unwrap_or(usize::MAX);
            // SAFETY: allocated for `capacity` elements at the alignment of `T`, or not at all,
            // with `len` elements initialised; `self` is forgotten, so this is the only owner.
            return unsafe { Vec::from_raw_parts(pointer, len, capacity) };
        }
        let mut vec = Vec::with_capacity(len);
        // SAFETY: the vector has room for the elements, which are moved; the old memory is freed
        // without dropping them.
        unsafe {
            pointer.copy_to_nonoverlapping(vec.as_mut_ptr(), len);
            vec.set_len(len);
            dealloc(pointer.cast::<u8>(), block);
        }
        vec
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: by the invariant the pointer is valid for `len` initialised elements.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: by the invariant the pointer is valid for `len` initialised elements, and `self`
        // is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: the elements are dropped once, here, and the memory freed with what it was
        // allocated with.
        unsafe {
            std::ptr::drop_in_place(self.as_mut_slice());
            if self.block.size() != 0 {
                dealloc(self.pointer.as_ptr().cast::<u8>(), self.block);
            }
        }
    }
}

/// Asks the system for huge pages for memory that nobody has touched yet. If the system has none,
/// nothing changes.
///
/// # Safety
///
/// The bytes are memory that was allocated, and belong to the caller.
#[cfg(target_os = "linux")]
unsafe fn in_huge_pages(bytes: *mut u8, size: usize) {
    // SAFETY: the advice changes no content. It names whole pages within the memory, which begins
    // with one.
    unsafe { libc::madvise(bytes.cast(), size / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
unsafe fn in_huge_pages(_: *mut u8, _: usize) {}
