//! The table of named MMA instructions: how the atom of a name is made.

use alloc::vec::Vec;

use crate::Layout;
use crate::atoms::arch::Arch;
use crate::atoms::error::AtomError;
use crate::atoms::family::Family;
use crate::atoms::mma::{MmaAtom, MmaTypes};
use crate::atoms::value_type::ValueType;

/// The word for MMA instructions in error messages.
pub(crate) const KIND: &str = "instruction";

/// MMA instructions whose names differ only in types, extents and options.
pub type MmaFamily = Family<MmaAtom>;

/// The rule by which an atom is made from its name.
#[derive(Debug, Clone, Copy)]
pub enum MmaRule {
    /// From a row of a table; the name has the shape and the types, as in `16x8x8_F32F16F16F32`.
    Row(MmaRow),
    /// By a function of the name.
    Derived(fn(&Member<'_>) -> Result<MmaAtom, AtomError>),
}

/// A row of the published tables: the thread-value layouts as text.
#[derive(Debug, Clone, Copy)]
pub struct MmaRow {
    pub(crate) threads: &'static str,
    pub(crate) a: &'static str,
    pub(crate) b: &'static str,
    pub(crate) c: &'static str,
}

/// One name of a family, with what it is parsed from.
pub struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) arch: Arch,
}

impl Member<'_> {
    /// The atom in which each element is held by one thread.
    pub(crate) fn atom(&self, shape: [i64; 3], types: MmaTypes, row: MmaRow) -> Result<MmaAtom, AtomError> {
        let held = |text: &str| Ok::<_, AtomError>(text.parse::<Layout>()?.into());
        let operands = [held(row.a)?, held(row.b)?, held(row.c)?];
        MmaAtom::new(self.name, self.arch, shape, types, row.threads.parse()?, operands)
    }

    /// The shape and the types in the name, as `16x8x8_F32F16F16F32`, or `64x8x16_F32F16F16` if C
    /// has the type of D.
    ///
    /// Errors: the name does not contain them.
    pub(crate) fn signature(&self) -> Result<([i64; 3], MmaTypes), AtomError> {
        let mut words = self.name.split('_');
        let shape = words.find_map(shape_in);
        match (shape, words.next().and_then(types_in)) {
            (Some(shape), Some(types)) => Ok((shape, types)),
            _ => Err(self.unknown()),
        }
    }

    /// Whether the name has this option, between underscores or before `<`.
    pub(crate) fn has(&self, option: &str) -> bool {
        let options = self.name.split('<').next().unwrap_or_default();
        options.split('_').any(|word| word == option)
    }

    /// The arguments between `<` and `>`.
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let (_, arguments) = self.name.split_once('<').unwrap_or_default();
        arguments.trim_end_matches('>').split(',')
    }

    /// The types of A, B and C, which are the first arguments between `<` and `>`.
    ///
    /// Errors: the name does not contain them.
    pub(crate) fn factors_and_sums(&self) -> Result<MmaTypes, AtomError> {
        let [a, b, c] = self.types()?;
        Ok(MmaTypes { d: c, a, b, c })
    }

    /// The types of D, A, B and C, which are the first arguments between `<` and `>`.
    ///
    /// Errors: the name does not contain them.
    pub(crate) fn result_and_operands(&self) -> Result<MmaTypes, AtomError> {
        let [d, a, b, c] = self.types()?;
        Ok(MmaTypes { d, a, b, c })
    }

    /// The types of D, A, B and C, which follow this many other arguments between `<` and `>`.
    ///
    /// Errors: the name does not contain them.
    pub(crate) fn result_and_operands_behind(&self, others: usize) -> Result<MmaTypes, AtomError> {
        let [d, a, b, c] = self.types_behind(others)?;
        Ok(MmaTypes { d, a, b, c })
    }

    fn types<const N: usize>(&self) -> Result<[ValueType; N], AtomError> {
        self.types_behind(0)
    }

    fn types_behind<const N: usize>(&self, others: usize) -> Result<[ValueType; N], AtomError> {
        let types = self.arguments().skip(others).take(N).map(str::parse).collect::<Result<Vec<ValueType>, _>>()?;
        types.try_into().map_err(|_| self.unknown())
    }

    /// The integers among the arguments between `<` and `>`.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        self.arguments().filter_map(|argument| argument.parse().ok())
    }

    pub(crate) fn unknown(&self) -> AtomError {
        AtomError::unknown::<&str>(KIND, self.name, [])
    }
}

/// Parses a shape such as `16x8x8`.
fn shape_in(word: &str) -> Option<[i64; 3]> {
    let mut numbers = word.split('x').map(|number| number.parse::<i64>().ok());
    match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
        (Some(Some(m)), Some(Some(n)), Some(Some(k)), None) => Some([m, n, k]),
        _ => None,
    }
}

/// Parses types: `F32F16F16F32` for D, A, B and C, or `F32F16F16` for D and C, A, and B.
fn types_in(mut word: &str) -> Option<MmaTypes> {
    let mut next = || {
        let found = ValueType::ALL.into_iter().find(|known| word.starts_with(known.name()))?;
        word = word.get(found.name().len()..)?;
        Some(found)
    };
    let (d, a, b) = (next()?, next()?, next()?);
    let c = next().unwrap_or(d);
    word.is_empty().then_some(MmaTypes { d, a, b, c })
}

impl MmaFamily {
    pub(crate) const fn row(arch: Arch, pattern: &'static str, row: MmaRow) -> MmaFamily {
        Family::new(arch, pattern, MmaRule::Row(row))
    }

    pub(crate) const fn derived(
        arch: Arch,
        pattern: &'static str,
        make: fn(&Member<'_>) -> Result<MmaAtom, AtomError>,
    ) -> MmaFamily {
        Family::new(arch, pattern, MmaRule::Derived(make))
    }
}
