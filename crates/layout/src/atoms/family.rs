//! Families of instructions that are known by name.
//!
//! Law: a family is a pattern of names, and one rule that makes the instruction of each name. A
//! name belongs to at most one family of its kind, and its instruction has that name.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::atoms::arch::Arch;
use crate::atoms::error::AtomError;
use crate::atoms::pattern::Pattern;

pub(crate) mod sealed {
    use super::{Arch, AtomError, Family, fmt};

    /// How the instructions of one kind are made from their names.
    pub trait Made: Sized + 'static {
        /// The type of the rule of a family.
        type Rule: Copy + fmt::Debug;

        /// The word for these instructions in error messages.
        const KIND: &'static str;

        /// All families, in tables.
        fn tables() -> &'static [&'static [Family<Self>]];

        /// Makes the instruction with this name, which is one of the family's names.
        fn make(name: &str, arch: Arch, rule: &Self::Rule) -> Result<Self, AtomError>;
    }
}
use sealed::Made;

/// A kind of instruction that is known by name: [`MmaAtom`](crate::atoms::MmaAtom),
/// [`CopyAtom`](crate::atoms::CopyAtom), [`BulkCopy`](crate::atoms::BulkCopy).
pub trait Known: Made {}

impl<A: Made> Known for A {}

/// Instructions whose names differ only in types, extents and options.
///
/// ```
/// use tilewright_layout::atoms::MmaAtom;
///
/// let family = MmaAtom::families().find(|family| family.pattern().contains("x16_F32BF16BF16_{SS")).unwrap();
/// let names = family.names();
/// assert!(names.contains(&"SM90_64x128x16_F32BF16BF16_SS".into()));
/// assert_eq!(family.member(&names[0])?.name(), names[0]);
/// # Ok::<(), tilewright_layout::atoms::AtomError>(())
/// ```
pub struct Family<A: Known> {
    pattern: Pattern,
    arch: Arch,
    rule: A::Rule,
}

impl<A: Known> Family<A> {
    pub(crate) const fn new(arch: Arch, pattern: &'static str, rule: A::Rule) -> Family<A> {
        Family { pattern: Pattern(pattern), arch, rule }
    }

    pub(crate) const fn rule(&self) -> &A::Rule {
        &self.rule
    }

    pub(crate) const fn with_rule(self, rule: A::Rule) -> Family<A> {
        Family { pattern: self.pattern, arch: self.arch, rule }
    }

    /// The names, with choices in braces: `SM80_16x8x32_S32{S8,U8}{S8,U8}S32_TN{,_SATURATE}`;
    /// `{8,16,..,256}` is an arithmetic progression.
    pub fn pattern(&self) -> &'static str {
        self.pattern.0
    }

    /// The oldest architecture that has them.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// All names of the family.
    pub fn names(&self) -> Vec<String> {
        self.pattern.names()
    }

    /// The instruction of this name, which may be spelled as a [word](crate::atoms::word).
    ///
    /// Errors: the name is not one of the family's ([`AtomError::UnknownName`]).
    pub fn member(&self, name: &str) -> Result<A, AtomError> {
        let spelt = || self.find(&self.pattern.spelt(name)?);
        self.find(name).or_else(spelt).unwrap_or_else(|| Err(AtomError::unknown(A::KIND, name, self.names())))
    }

    fn find(&self, name: &str) -> Option<Result<A, AtomError>> {
        self.pattern.matches(name).then(|| A::make(name, self.arch, &self.rule))
    }

    /// All families of this kind, in the order of architectures.
    pub(crate) fn all() -> impl Iterator<Item = &'static Family<A>> {
        A::tables().iter().copied().flatten()
    }

    /// The instruction of this name, in any family.
    ///
    /// Errors: there is none; the error lists similar names ([`AtomError::UnknownName`]).
    pub(crate) fn named(name: &str) -> Result<A, AtomError> {
        let spelt = |family: &'static Family<A>| family.find(&family.pattern.spelt(name)?);
        let found = Family::all().find_map(|family| family.find(name)).or_else(|| Family::all().find_map(spelt));
        found.unwrap_or_else(|| {
            let names = Family::<A>::all().flat_map(Family::names);
            Err(AtomError::unknown(A::KIND, name, names))
        })
    }
}

impl<A: Known> Clone for Family<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Known> Copy for Family<A> {}

impl<A: Known> fmt::Debug for Family<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family")
            .field("pattern", &self.pattern.0)
            .field("arch", &self.arch)
            .field("rule", &self.rule)
            .finish()
    }
}
