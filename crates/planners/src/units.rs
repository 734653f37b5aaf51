//! Hardware constants of the plans, and integer arithmetic.

use tilewright_kernel::machine::{Machine, Multiprocessor};
use tilewright_kernel::program::WARP_LANES;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::ptx::Feature;
use tilewright_kernel::{Build, Element, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{LayoutError, Stride};

/// Lanes of a warp.
pub(crate) const LANES: i64 = WARP_LANES as i64;
/// Bytes of the widest access of a thread, and the unit of TMA strides.
pub(crate) const VECTOR: i64 = 16;
/// Bytes of a sector, the unit of memory transactions.
pub(crate) const SECTOR: i64 = 32;
/// The most threads of a block.
pub(crate) const BLOCK_THREADS: i64 = 1024;

/// Threads of a block of a copying kernel, by default.
pub(crate) const MOVE_THREADS: i64 = 256;
/// The most blocks of a launch along its second and third axes.
pub(crate) const GRID_BLOCKS: i64 = 65_535;

/// The alignment of tensors that begin at multiples of 16 bytes, in elements of any type.
pub(crate) const WHOLE: i64 = VECTOR;

/// The widest access, in elements, of rows of `columns` elements in tensors that begin at multiples
/// of `alignment` elements.
pub(crate) fn widest(columns: i64, element: Element, alignment: i64) -> i64 {
    let mut vector = VECTOR / i64::from(element.bytes());
    while vector > 1 && (columns % vector != 0 || alignment % vector != 0) {
        vector /= 2;
    }
    vector
}

/// `number / by`, rounded up.
pub(crate) fn div_up(number: i64, by: i64) -> i64 {
    (number + by - 1) / by
}

/// `size / part`, rounded up; 1 for a size of 0.
pub(crate) fn count(size: i64, part: i64) -> i64 {
    (size.max(1) - 1) / part.max(1) + 1
}

/// The least power of two that is at least `number`.
pub(crate) fn power_from(number: i64) -> i64 {
    (number.max(1) as u64).next_power_of_two() as i64
}

/// The greatest common divisor.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The most shared memory of a block, in bytes: limited by the machine, and by what its target
/// allows. Code for `sm_89` runs on later cards with more, but uses no more there.
pub(crate) fn block_shared(machine: &Machine) -> i64 {
    let target = Multiprocessor::of(machine.target);
    machine.multiprocessor.block_shared_bytes.min(target.block_shared_bytes).into()
}

/// Whether a machine has wgmma, the MMA of warpgroups, and the TMA loads that feed it.
pub(crate) fn has_wgmma(machine: &Machine) -> bool {
    machine.target.has_wgmma()
}

/// Whether a launch may begin before the previous launch has ended (PDL).
pub(crate) fn overlaps_launches(machine: &Machine) -> bool {
    machine.target.has(Feature::DependentLaunches)
}

/// Whether a machine has MMA of 8-bit floats, and their conversions.
pub(crate) fn has_float8(machine: &Machine) -> bool {
    machine.target.has_float8()
}

/// Waits for the previous launch, and lets the next one begin, if launches may overlap.
pub(crate) fn follow_launches(k: &Build, machine: &Machine) {
    if overlaps_launches(machine) {
        k.wait_launches();
        k.launch_next();
    }
}

/// The index of the first vector of a thread, if a block has this many vectors.
pub(crate) fn first_vector(k: &Build, block: i64) -> Result<Expr, KernelError> {
    let first = Stride::times(&k.block_number(Axis::X), &Expr::from(block));
    let first = first.zip(Some(k.thread()?)).and_then(|(first, thread)| Stride::plus(&first, &thread));
    Ok(first.ok_or(LayoutError::Overflow { op: "vector" })?)
}

/// The number of resident threads on a multiprocessor, in whole warps, by the registers of a
/// thread.
pub(crate) fn resident_threads(multiprocessor: &Multiprocessor, registers: i64) -> u32 {
    let warps = i64::from(multiprocessor.registers) / (registers.max(1) * LANES);
    multiprocessor.threads.min((warps * LANES) as u32)
}
