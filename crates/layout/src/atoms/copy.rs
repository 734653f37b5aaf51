//! Copy instructions.
//!
//! # Law
//!
//! An atom moves a block of bits. It has two thread-value layouts, one for the bits that a thread
//! reads and one for those that it writes; each maps (thread, bit of the thread) to the bit in the
//! block. Each is a bijection onto the block, or a stated broadcast in which several threads access
//! the same bits. One of the two, the *reference*, is a bijection. It is the register side: the
//! destination of a load and the source of a store.
//!
//! The block of a copy that replicates its source is everything that it writes. Its source is the
//! first part of the block, each bit repeated as often as it is written: the source value `v` is
//! the destination value `v`.
//!
//! Values of `b` bits use the same layouts in units of `b` bits, if these are divisible. An atom
//! whose block is one bit represents a plain copy of one value of any width; the alignment of the
//! data limits the width.
//!
//! (CuTe `Copy_Atom` and `Copy_Traits::{Src,Dst,Ref}Layout`.)

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::atoms::arch::Arch;
use crate::atoms::error::AtomError;
use crate::atoms::evidence::BadThreadValue;
use crate::atoms::terms::CopyEnd;
use crate::atoms::thread_value::ThreadValue;
use crate::{Layout, Leaf};

/// An instruction that copies.
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, CopyEnd};
///
/// // Four 8x8 matrices of 16 bits from shared memory: a thread addresses a row, and gets two
/// // neighbours of each matrix.
/// let atom = CopyAtom::named("SM75_U32x4_LDSM_N").unwrap();
/// assert_eq!(atom.values(CopyEnd::Source, 16).unwrap().to_string(), "(32,8):(8,1)");
/// assert_eq!(atom.values(CopyEnd::Destination, 16).unwrap().to_string(), "(32,(2,4)):(2,(1,64))");
/// assert_eq!(atom.values(CopyEnd::Destination, 48).unwrap_err().code(), "E0324");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CopyAtom {
    name: Box<str>,
    arch: Arch,
    threads: Layout,
    source: ThreadValue,
    destination: ThreadValue,
    reference: CopyEnd,
}

impl CopyAtom {
    /// The atom with these threads, and these two layouts of (thread, bit). `reference` is the end
    /// at which each value belongs to one thread.
    ///
    /// Errors: two threads have the same number, or one has a negative number
    /// ([`AtomError::Threads`]); a layout is neither a bijection onto the block nor the stated
    /// broadcast, or the reference is a broadcast ([`AtomError::ThreadValue`]).
    pub fn new(
        name: &str,
        arch: Arch,
        threads: Layout,
        source: ThreadValue,
        destination: ThreadValue,
        reference: CopyEnd,
    ) -> Result<CopyAtom, AtomError> {
        if !matches!(threads.is_injective(), Ok(true)) || threads.range().map_or(true, |(least, _)| least < 0) {
            return Err(AtomError::Threads { name: name.into(), layout: threads.to_string().into() });
        }
        let atom = CopyAtom { name: name.into(), arch, threads, source, destination, reference };
        let owned = ThreadValue::from(atom.end(reference).layout().clone());
        let bits = owned.layout().size();
        for (end, held) in
            [(reference, &owned), (CopyEnd::Source, &atom.source), (CopyEnd::Destination, &atom.destination)]
        {
            held.check(atom.threads.size(), bits).map_err(|flaw| {
                AtomError::ThreadValue(Box::new(BadThreadValue {
                    name: name.into(),
                    operand: end.to_string().into(),
                    layout: held.layout().to_string().into(),
                    flaw,
                }))
            })?;
        }
        Ok(atom)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The oldest architecture that has it.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The numbers of the threads that execute it together.
    pub fn threads(&self) -> &Layout {
        &self.threads
    }

    /// The end at which each value belongs to one thread.
    pub fn reference(&self) -> CopyEnd {
        self.reference
    }

    /// The size of the block, in bits; 1 for one value of any width.
    pub fn bits(&self) -> i64 {
        self.end(self.reference).layout().size()
    }

    /// The bits of the block that a thread holds at an end.
    pub fn end(&self, end: CopyEnd) -> &ThreadValue {
        match end {
            CopyEnd::Source => &self.source,
            CopyEnd::Destination => &self.destination,
        }
    }

    /// The values of `bits` bits that a thread holds at an end: (thread, value) to the value in the
    /// block (CuTe `ValLayoutSrc`, `ValLayoutDst`).
    ///
    /// Errors: the layout splits values of this width ([`AtomError::CopyWidth`]).
    pub fn values(&self, end: CopyEnd, bits: i64) -> Result<Layout, AtomError> {
        let layout = self.end(end).layout();
        if self.bits() == 1 && bits > 0 {
            return Ok(layout.clone());
        }
        let refuse = || AtomError::CopyWidth { name: self.name.clone(), end, bits, layout: layout.to_string().into() };
        let value = layout.mode(1).filter(|value| bits > 0 && value.size() % bits == 0).ok_or_else(refuse)?;
        let value = value.recast(bits, 1).map_err(|_| refuse())?;
        // Each thread begins at the start of a value.
        let thread = layout.mode(0).ok_or_else(refuse)?.tree().try_map(|leaf| match leaf.stride % bits {
            0 => Ok(Leaf { extent: leaf.extent, stride: leaf.stride / bits }),
            _ => Err(refuse()),
        })?;
        let thread = Layout::from_tree(thread)?;
        Ok(Layout::tuple([&thread, &value])?)
    }

    /// Both ends, the source first.
    pub fn ends(&self) -> Vec<(CopyEnd, &ThreadValue)> {
        Vec::from([(CopyEnd::Source, &self.source), (CopyEnd::Destination, &self.destination)])
    }
}

impl fmt::Display for CopyAtom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}
