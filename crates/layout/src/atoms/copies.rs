//! The tables of copy instructions.
//!
//! The layouts map (thread, bit) to the bit in the block. If a source repeats bits, several or all
//! threads provide the same address.
//!
//! (PTX ISA, `cp.async`, `ldmatrix`, `stmatrix`, `movmatrix`, `shfl.sync`, `tcgen05.ld`,
//! `tcgen05.st`, `tcgen05.cp`; CuTe `Copy_Traits`.) The published layouts of `SM75_U32x1_MOVM_T`
//! omit the transposition; here its destination is that of `ldmatrix.x1.trans`.

mod basic;
mod matrices;
mod tensor_memory;

use crate::Layout;
use crate::atoms::arch::Arch;
use crate::atoms::copy::CopyAtom;
use crate::atoms::error::AtomError;
use crate::atoms::family::{Family, sealed::Made};
use crate::atoms::terms::CopyEnd;
use crate::atoms::thread_value::ThreadValue;

/// Every table.
const ALL: &[&[CopyFamily]] = &[basic::FAMILIES, matrices::FAMILIES, tensor_memory::FAMILIES];

/// Copies whose names differ only in widths and options.
pub type CopyFamily = Family<CopyAtom>;

/// The rule by which an atom is made from its name.
#[derive(Debug, Clone, Copy)]
pub enum CopyRule {
    /// From a row of a table.
    Row(CopyRow),
    /// One thread copies a number of bits; the number follows this text in the name.
    Bits(&'static str),
    /// One thread writes the whole block and reads each element several times: source, destination,
    /// number of copies.
    Multiplied(&'static str, &'static str, i64),
    /// By a function of the number of repetitions, which follows this text in the name.
    Repeated(&'static str, fn(i64) -> Result<[ThreadValue; 2], AtomError>),
}

/// A row of the published tables: each end as text, and the number of threads that share the same
/// bits there.
#[derive(Debug, Clone, Copy)]
pub struct CopyRow {
    threads: i64,
    source: (&'static str, i64),
    destination: (&'static str, i64),
    reference: CopyEnd,
}

impl Made for CopyAtom {
    type Rule = CopyRule;

    const KIND: &'static str = "copy";

    fn tables() -> &'static [&'static [CopyFamily]] {
        ALL
    }

    fn make(name: &str, arch: Arch, rule: &CopyRule) -> Result<CopyAtom, AtomError> {
        let layout = |(text, holders): (&str, i64)| Ok::<_, AtomError>(ThreadValue::shared(text.parse()?, holders));
        let number = |after: &str| {
            let text = name.split_once(after).map_or("", |(_, rest)| rest);
            let digits = text.find(|c: char| !c.is_ascii_digit()).map_or(text, |end| text.split_at(end).0);
            digits.parse::<i64>().map_err(|_| AtomError::unknown::<&str>(CopyAtom::KIND, name, []))
        };
        let (threads, [source, destination], reference) = match *rule {
            CopyRule::Row(row) => (row.threads, [layout(row.source)?, layout(row.destination)?], row.reference),
            CopyRule::Bits(after) => {
                let bits = Layout::tuple([&Layout::unit(), &Layout::mode_of(number(after)?, 1)?])?;
                (1, [bits.clone().into(), bits.into()], CopyEnd::Source)
            }
            CopyRule::Multiplied(source, destination, copies) => {
                let source = ThreadValue::multiplied(source.parse()?, copies);
                (1, [source, layout((destination, 1))?], CopyEnd::Destination)
            }
            CopyRule::Repeated(after, rule) => {
                let [mut source, mut destination] = rule(number(after)?)?;
                let store = name.contains("_STORE_");
                if store {
                    core::mem::swap(&mut source, &mut destination);
                }
                (32, [source, destination], if store { CopyEnd::Source } else { CopyEnd::Destination })
            }
        };
        let threads = Layout::mode_of(threads, if threads == 1 { 0 } else { 1 })?;
        CopyAtom::new(name, arch, threads, source, destination, reference)
    }
}

impl CopyAtom {
    /// The instruction of this name.
    ///
    /// Errors: there is none; the error lists similar names ([`AtomError::UnknownName`]).
    pub fn named(name: &str) -> Result<CopyAtom, AtomError> {
        Family::named(name)
    }

    /// The families of copies that are known by name.
    pub fn families() -> impl Iterator<Item = &'static CopyFamily> {
        Family::all()
    }
}
