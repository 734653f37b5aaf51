//! Families of instructions that are known by name.
//!
//! Law: a family is a pattern of names and one rule that makes the instruction of each. A name
//! belongs to at most one family of its kind, and its instruction bears that name.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::atoms::arch::Arch;
use crate::atoms::error::AtomError;
use crate::atoms::pattern::Pattern;

pub(crate) mod sealed {
    use super::{Arch, AtomError, Family, fmt};

    /// How the instructions of a kind are made.
    pub trait Made: Sized + 'static {
        /// The rule that makes a family.
        type Rule: Copy + fmt::Debug;

        /// Their name in messages.
        const KIND: &'static str;

        /// Every family, in tables.
        fn tables() -> &'static [&'static [Family<Self>]];

        /// The instruction of a name that is one of the family's.
        fn make(name: &str, arch: Arch, rule: &Self::Rule) -> Result<Self, AtomError>;
    }
}
use sealed::Made;

/// A kind of instruction that is known by name: [`MmaAtom`](crate::atoms::MmaAtom),
/// [`CopyAtom`](crate::atoms::CopyAtom), [`BulkCopy`](crate::atoms::BulkCopy).
pub trait Known: Made {}

impl<A: Made> Known for A {}

/// Instructions whose names differ in types, extents and options alone.
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
    /// `{8,16,..,256}` are the numbers of a progression.
    pub fn pattern(&self) -> &'static str {
        self.pattern.0
    }

    /// The least machine that has them.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// All names, written out.
    pub fn names(&self) -> Vec<String> {
        self.pattern.names()
    }

    /// The instruction of this name, or of the [word](crate::atoms::word) that spells it.
    ///
    /// Errors: the name is not one of the family's ([`AtomError::UnknownName`]).
    pub fn member(&self, name: &str) -> Result<A, AtomError> {
        let spelt = || self.find(&self.pattern.spelt(name)?);
        self.find(name).or_else(spelt).unwrap_or_else(|| Err(AtomError::unknown(A::KIND, name, self.names())))
    }

    fn find(&self, name: &str) -> Option<Result<A, AtomError>> {
        self.pattern.matches(name).then(|| A::make(name, self.arch, &self.rule))
    }

    /// Every family of the kind, by machine.
    pub(crate) fn all() -> impl Iterator<Item = &'static Family<A>> {
        A::tables().iter().copied().flatten()
    }

    /// The instruction of this name, in whichever family.
    ///
    /// Errors: there is none, and which ones have names that are near ([`AtomError::UnknownName`]).
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
