//! Scalar multiply-add of one thread. (CuTe `UniversalFMA<D,A,B,C>`.)

use crate::atoms::arch::Arch::Universal;
use crate::atoms::catalogue::{Member, MmaFamily, MmaRow};
use crate::atoms::error::AtomError;
use crate::atoms::mma::MmaAtom;

pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Universal, "UniversalFMA<F64,F64,F64,F64>", product),
    MmaFamily::derived(Universal, "UniversalFMA<F32,{F32,F16,BF16},{F32,F16,BF16},F32>", product),
    MmaFamily::derived(Universal, "UniversalFMA<F16,F16,F16,F16>", product),
    MmaFamily::derived(Universal, "UniversalFMA<S32,{S32,S16,S8,U8},{S32,S16,S8,U8},S32>", product),
    MmaFamily::derived(Universal, "UniversalFMA<C64,C64,C64,C64>", product),
];

fn product(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let row = MmaRow { threads: "1:0", a: "(1,1):(0,0)", b: "(1,1):(0,0)", c: "(1,1):(0,0)" };
    member.atom([1, 1, 1], member.result_and_operands()?, row)
}
