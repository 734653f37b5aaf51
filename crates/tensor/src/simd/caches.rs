//! The caches of this machine.
//!
//! **Law.** [`l2_bytes`] is the size of the second-level cache of a core, as the processor reports
//! it, or a usual size where it reports none. It is asked once.
//!
//! Reason for unsafe code: older compilers take the instruction CPUID to be unsafe.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// What is assumed where nothing is known.
const USUAL: usize = 512 << 10;

/// The bytes of the second-level cache.
pub(crate) fn l2_bytes() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| reported_l2_bytes().filter(|size| (128 << 10..=16 << 20).contains(size)).unwrap_or(USUAL))
}

/// What the processor reports: leaf 4 of CPUID describes a cache in each of its parts (Intel,
/// "Software developer's manual", volume 2), and so does leaf 0x8000001d of AMD, in the same form.
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
            // 1 is a cache for data, 3 one for data and instructions.
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
