//! The caches of this machine.
//!
//! **Law.** [`l2_bytes`] is the size of the L2 cache of a core, as the processor reports it, or a
//! common size if it reports none. The processor is asked once.
//!
//! Reason for unsafe code: older compilers treat the instruction CPUID as unsafe.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// The size that is assumed if none is reported, in bytes.
const USUAL: usize = 512 << 10;

/// The size of the L2 cache, in bytes.
pub(crate) fn l2_bytes() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| reported_l2_bytes().filter(|size| (128 << 10..=16 << 20).contains(size)).unwrap_or(USUAL))
}

/// The size that the processor reports: each subleaf of CPUID leaf 4 describes a cache (Intel,
/// "Software developer's manual", volume 2). Leaf 0x8000001d of AMD has the same form.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)]
fn reported_l2_bytes() -> Option<usize> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};

    // SAFETY: every x86-64 processor has CPUID, and leaves are asked for only up to the last one.
    let (last, last_extended) = unsafe { (__cpuid(0).eax, __cpuid(0x8000_0000).eax) };
    let leaves = [(4, last), (0x8000_001d, last_extended)];
    leaves.into_iter().filter(|(leaf, last)| leaf <= last).find_map(|(leaf, _)| {
        (0..8).find_map(|part| {
            // SAFETY: the leaf is at most the last one.
            let cache = unsafe { __cpuid_count(leaf, part) };
            let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
            // Kind 1 is a data cache, and kind 3 a unified one.
            if level != 2 || kind != 1 && kind != 3 {
                return None;
            }
            let field = |shift: u32, bits: u32| (cache.ebx >> shift & ((1 << bits) - 1)) as usize + 1;
            let (ways, partitions, line) = (field(22, 10), field(12, 10), field(0, 12));
            (ways * partitions * line).checked_mul(cache.ecx as usize + 1)
        })
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn reported_l2_bytes() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_size_is_plausible_and_stays_the_same() {
        let size = super::l2_bytes();
        assert!((128 << 10..=16 << 20).contains(&size), "{size}");
        assert_eq!(size, super::l2_bytes());
    }
}
