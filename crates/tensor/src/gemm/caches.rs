//! The caches of this machine.
//!
//! **Law.** [`second`] is the size in bytes of the second-level cache that a core has, as the processor tells it, or what every processor of the last years has
//! where it does not tell. It is asked once.
//!
//! Reason for unsafe code: older compilers take the instruction CPUID to be unsafe.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// What is assumed where nothing is known.
const USUAL: usize = 512 << 10;

/// The bytes of the second-level cache.
pub(super) fn second() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| told().filter(|size| (128 << 10..=16 << 20).contains(size)).unwrap_or(USUAL))
}

/// What the processor tells: leaf 4 of CPUID describes a cache in each of its parts (Intel, "Software developer's manual", volume 2), and so
/// does leaf 0x8000001d of AMD, in the same form.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)]
fn told() -> Option<usize> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};

    // SAFETY: every processor of this architecture has the instruction, and the leaves are asked for only up to the last one.
    let (last, last_extended) = unsafe { (__cpuid(0).eax, __cpuid(0x8000_0000).eax) };
    let leaves = [(4, last), (0x8000_001d, last_extended)];
    leaves.into_iter().filter(|(leaf, last)| leaf <= last).find_map(|(leaf, _)| {
        (0..8).find_map(|part| {
            // SAFETY: as above.
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
fn told() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_size_is_plausible_and_stays_the_same() {
        let size = super::second();
        assert!((128 << 10..=16 << 20).contains(&size), "{size}");
        assert_eq!(size, super::second());
    }
}
