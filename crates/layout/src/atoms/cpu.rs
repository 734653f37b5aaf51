//! CPU micro-kernels as MMA atoms of one thread.
//!
//! # Law
//!
//! A micro-kernel of `m x n x k` adds the products of `m x k` and `n x k` values to an `m x n`
//! block of accumulators, which it keeps in registers. It reads its operands from packed panels,
//! one step of `k` after another. The order of its values is the order in a panel: first the `k`
//! terms that one instruction sums (1 for a multiply-add, 2 for pairs of 16 bits, 4 for bytes),
//! then the rows.
//!
//! ```text
//! A  (1,(k,m)):(0,(m,1))        B  (1,(k,n)):(0,(n,1))        C  (1,(m,n)):(0,(1,m))
//! ```

use crate::atoms::arch::Arch::{self, Avx2, Avx512, Portable};
use crate::atoms::catalogue::{Member, MmaFamily};
use crate::atoms::error::AtomError;
use crate::atoms::mma::{MmaAtom, MmaTypes};
use crate::atoms::thread_value::ThreadValue;
use crate::{Layout, Tree};

/// Blocks whose accumulators fit in the registers; the rows fill whole vectors.
#[rustfmt::skip]
pub(crate) const FAMILIES: &[MmaFamily] = &[
    MmaFamily::derived(Avx512, "AVX512_{16,32,48}x{1,2,..,14}x1_F32{F32F32,F16F16,BF16BF16}F32", micro_kernel),
    MmaFamily::derived(Avx512, "AVX512_{8,16,24}x{1,2,..,14}x1_F64F64F64F64", micro_kernel),
    MmaFamily::derived(Avx512, "AVX512_{16,32,48}x{1,2,..,14}x2_F32BF16BF16F32", micro_kernel),
    MmaFamily::derived(Avx512, "AVX512_{16,32,48}x{1,2,..,14}x{2,4}_S32{S8,U8}{S8,U8}S32", micro_kernel),
    MmaFamily::derived(Avx2, "AVX2_{8,16,24}x{1,2,..,12}x1_F32{F32F32,F16F16,BF16BF16}F32", micro_kernel),
    MmaFamily::derived(Avx2, "AVX2_{4,8,12}x{1,2,..,12}x1_F64F64F64F64", micro_kernel),
    MmaFamily::derived(Avx2, "AVX2_{8,16,24}x{1,2,..,12}x{2,4}_S32{S8,U8}{S8,U8}S32", micro_kernel),
    MmaFamily::derived(Portable, "PORTABLE_{1,2,..,16}x{1,2,..,16}x1_F32{F32F32,F16F16,BF16BF16}F32", micro_kernel),
    MmaFamily::derived(Portable, "PORTABLE_{1,2,..,16}x{1,2,..,16}x1_F64F64F64F64", micro_kernel),
    MmaFamily::derived(Portable, "PORTABLE_{1,2,..,16}x{1,2,..,16}x{1,2,4}_S32{S8,U8}{S8,U8}S32", micro_kernel),
];

fn micro_kernel(member: &Member<'_>) -> Result<MmaAtom, AtomError> {
    let (shape, types) = member.signature()?;
    MmaAtom::cpu(member.arch, shape, types)
}

impl MmaAtom {
    /// The micro-kernel with a block of `shape = (m, n, k)`, named by architecture, shape and
    /// types.
    ///
    /// Errors: as [`MmaAtom::new`].
    ///
    /// ```
    /// use tilewright_layout::atoms::{Arch, MmaAtom, MmaTypes, ValueType};
    ///
    /// // Four adjacent bytes of a row for each step, as dot-product instructions need them.
    /// let types = MmaTypes::accumulating(ValueType::S8, ValueType::S32);
    /// let atom = MmaAtom::cpu(Arch::Avx512, [16, 14, 4], types).unwrap();
    /// assert_eq!(atom.name(), "AVX512_16x14x4_S32S8S8S32");
    /// assert_eq!(atom.a().layout().to_string(), "(1,(4,16)):(0,(16,1))");
    /// ```
    pub fn cpu(arch: Arch, shape: [i64; 3], types: MmaTypes) -> Result<MmaAtom, AtomError> {
        let [m, n, k] = shape;
        let name = alloc::format!("{arch}_{m}x{n}x{k}_{types}");
        let operands = [panel(m, k)?, panel(n, k)?, block(m, n)?];
        MmaAtom::new(&name, arch, shape, types, Layout::unit(), operands)
    }
}

/// A packed panel: the rows one after another, `k` values each.
fn panel(rows: i64, k: i64) -> Result<ThreadValue, AtomError> {
    let along = Layout::mode_of(k, rows)?;
    let across = Layout::mode_of(rows, 1)?;
    let values = if k == 1 { across } else { Layout::tuple([&along, &across])? };
    Ok(Layout::tuple([&Layout::unit(), &values])?.into())
}

/// The accumulators: the columns one after another, `rows` each.
fn block(rows: i64, columns: i64) -> Result<ThreadValue, AtomError> {
    let values = Layout::compact(&Tree::flat([rows, columns])?)?;
    Ok(Layout::tuple([&Layout::unit(), &values])?.into())
}
