//! Pascal, instructions of one thread: dot products of packed integers. (PTX ISA, `dp4a` and
//! `dp2a`; CuTe `SM61_DP4A`, `SM61_DP2A`.)

use crate::atoms::arch::Arch::Sm61;
use crate::atoms::catalogue::{Member, MmaFamily, MmaRow};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, MmaTypes};
use crate::atoms::value_type::ValueType::{self, S8, S16, S32};

pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Sm61, "SM61_DP4A", |member| dot(member, 4, S8, "(1,4):(0,1)")),
    MmaFamily::derived(Sm61, "SM61_DP2A", |member| dot(member, 2, S16, "(1,2):(0,1)")),
];

fn dot(member: &Member<'_>, k: i64, factors: ValueType, held: &'static str) -> Result<MmaAtom, AtomError> {
    let row = MmaRow { threads: "1:0", a: held, b: held, c: "(1,1):(0,0)" };
    member.atom([1, 1, k], MmaTypes::accumulating(factors, S32), row)
}
