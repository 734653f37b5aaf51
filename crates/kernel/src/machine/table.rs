//! The cards that are known by name.
//!
//! Law: each number is that of the document named beside it, or follows from such numbers as the
//! comment says. Rates of matrix instructions are those for dense operands.

use super::{Machine, Multiprocessor, Rates};
use crate::target::Target;

/// A card. Its comment names the documents of its numbers.
pub(super) struct Card {
    pub(super) name: &'static str,
    capability: (u32, u32),
    multiprocessors: u32,
    multiprocessor: Multiprocessor,
    l2_bytes: u64,
    clock: f64,
    bandwidth: f64,
    latency: Option<f64>,
    rates: Rates,
}

impl Card {
    pub(super) fn machine(&self) -> Machine {
        let Card { name, capability, multiprocessors, multiprocessor, l2_bytes, clock, bandwidth, latency, rates } =
            *self;
        // The tests check that no card here is older than every target.
        let target = Target::latest(capability).unwrap_or(Target::Sm80);
        let name = name.to_string();
        Machine {
            name,
            capability,
            target,
            multiprocessors,
            multiprocessor,
            l2_bytes,
            clock,
            bandwidth,
            latency,
            rates,
        }
    }
}

/// Compute capability 9.0: Hopper Tuning Guide, "Occupancy" and "Unified Shared Memory/L1/Texture
/// Cache": 64 warps, 32 blocks, 64 Ki registers, 228 KiB of shared memory, 227 of a block, 1
/// reserved for each block.
pub(super) const HOPPER: Multiprocessor = Multiprocessor {
    threads: 2048,
    blocks: 32,
    registers: 65_536,
    shared_bytes: 228 << 10,
    block_shared_bytes: 227 << 10,
    reserved_bytes: 1 << 10,
};

/// Compute capability 8.0: Ampere Tuning Guide, the same sections: 164 KiB of shared memory, 163 of
/// a block.
pub(super) const AMPERE: Multiprocessor =
    Multiprocessor { shared_bytes: 164 << 10, block_shared_bytes: 163 << 10, ..HOPPER };

/// Compute capability 8.6: Ampere Tuning Guide, the same sections: 48 warps, 16 blocks, 100 KiB of
/// shared memory, 99 of a block.
pub(super) const AMPERE_86: Multiprocessor =
    Multiprocessor { threads: 1536, blocks: 16, shared_bytes: 100 << 10, block_shared_bytes: 99 << 10, ..HOPPER };

/// Compute capability 8.7: CUDA C++ Programming Guide, "Compute Capabilities": the threads and
/// blocks of 8.6, the shared memory of 8.0.
pub(super) const AMPERE_87: Multiprocessor =
    Multiprocessor { shared_bytes: AMPERE.shared_bytes, block_shared_bytes: AMPERE.block_shared_bytes, ..AMPERE_86 };

/// Compute capability 8.9: Ada Tuning Guide, the same sections: as 8.6, with 24 blocks.
pub(super) const ADA: Multiprocessor = Multiprocessor { blocks: 24, ..AMPERE_86 };

/// Compute capability 10.0: Blackwell Tuning Guide, the same sections: as 9.0.
pub(super) const BLACKWELL: Multiprocessor = HOPPER;

/// Compute capability 12.0: Blackwell Tuning Guide, the same sections: 48 warps, 32 blocks, 99 KiB
/// of shared memory of a block. The guide's 128 KiB are shared memory and L1 cache together;
/// drivers give 102,400 bytes of shared memory.
pub(super) const BLACKWELL_120: Multiprocessor = Multiprocessor { blocks: 32, ..AMPERE_86 };

/// NVIDIA A100 (SXM, 80 GB). Multiprocessors, clock, L2 cache and rates: NVIDIA A100 Tensor Core
/// GPU Architecture whitepaper. Bandwidth: A100 80GB data sheet.
pub(super) const A100: Card = Card {
    name: "A100",
    capability: (8, 0),
    multiprocessors: 108,
    multiprocessor: AMPERE,
    l2_bytes: 40 << 20,
    clock: 1.41e9,
    bandwidth: 2.039e12,
    latency: None,
    rates: Rates {
        f32: 19.5e12,
        f64: 9.7e12,
        matrix_16: 312e12,
        matrix_16_in_16: 312e12,
        matrix_tf32: 156e12,
        matrix_i8: 624e12,
        matrix_f8: 0.0,
        matrix_f4: 0.0,
        matrix_f64: 19.5e12,
    },
};

/// NVIDIA GeForce RTX 3090. NVIDIA Ampere GA102 GPU Architecture whitepaper, appendix A: all
/// numbers except f64, which has 1/64 of the rate of f32, also for matrix instructions.
pub(super) const RTX_3090: Card = Card {
    name: "RTX 3090",
    capability: (8, 6),
    multiprocessors: 82,
    multiprocessor: AMPERE_86,
    l2_bytes: 6144 << 10,
    clock: 1.695e9,
    bandwidth: 936e9,
    latency: None,
    rates: Rates {
        f32: 35.6e12,
        f64: 35.6e12 / 64.0,
        matrix_16: 71e12,
        matrix_16_in_16: 142e12,
        matrix_tf32: 35.6e12,
        matrix_i8: 284e12,
        matrix_f8: 0.0,
        matrix_f4: 0.0,
        matrix_f64: 35.6e12 / 64.0,
    },
};

/// NVIDIA A10. Bandwidth and rates: A10 data sheet. The number of multiprocessors follows from its
/// f32 rate, 256 operations per cycle each; the clock (1695 MHz) and the L2 cache (6,291,456 bytes)
/// are what the driver reports. f64 as on the RTX 3090, the same chip.
const A10: Card = Card {
    name: "A10",
    capability: (8, 6),
    multiprocessors: 72,
    multiprocessor: AMPERE_86,
    l2_bytes: 6144 << 10,
    clock: 1.695e9,
    bandwidth: 600e9,
    latency: None,
    rates: Rates {
        f32: 31.2e12,
        f64: 31.2e12 / 64.0,
        matrix_16: 125e12,
        matrix_16_in_16: 125e12,
        matrix_tf32: 62.5e12,
        matrix_i8: 250e12,
        matrix_f8: 0.0,
        matrix_f4: 0.0,
        matrix_f64: 31.2e12 / 64.0,
    },
};

/// NVIDIA Jetson AGX Orin (64 GB). Bandwidth and clock: its data sheet. Multiprocessors (2048
/// cores, 128 each), L2 cache, and rates: Jetson AGX Orin technical brief, 5.3 TFLOPS on f32, 170
/// TOPS on sparse 8-bit integers, and half of that for each doubling of bits. f64 as on other cards
/// of 8.6 and later.
pub(super) const ORIN: Card = Card {
    name: "Orin",
    capability: (8, 7),
    multiprocessors: 16,
    multiprocessor: AMPERE_87,
    l2_bytes: 4 << 20,
    clock: 1.3e9,
    bandwidth: 204.8e9,
    latency: None,
    rates: Rates {
        f32: 5.3e12,
        f64: 5.3e12 / 64.0,
        matrix_16: 42.5e12,
        matrix_16_in_16: 42.5e12,
        matrix_tf32: 21.25e12,
        matrix_i8: 85e12,
        matrix_f8: 0.0,
        matrix_f4: 0.0,
        matrix_f64: 5.3e12 / 64.0,
    },
};

/// NVIDIA GeForce RTX 4090. NVIDIA Ada GPU Architecture whitepaper: all numbers; f64 has 1/64 of
/// the rate of f32.
pub(super) const RTX_4090: Card = Card {
    name: "RTX 4090",
    capability: (8, 9),
    multiprocessors: 128,
    multiprocessor: ADA,
    l2_bytes: 73_728 << 10,
    clock: 2.52e9,
    bandwidth: 1008e9,
    latency: None,
    rates: Rates {
        f32: 82.6e12,
        f64: 82.6e12 / 64.0,
        matrix_16: 165.2e12,
        matrix_16_in_16: 330.3e12,
        matrix_tf32: 82.6e12,
        matrix_i8: 660.6e12,
        matrix_f8: 330.3e12,
        matrix_f4: 0.0,
        matrix_f64: 82.6e12 / 64.0,
    },
};

/// NVIDIA L4. Bandwidth and rates: L4 data sheet, whose matrix rates are for sparse operands, twice
/// these. L2 cache: NVIDIA Ada GPU Architecture whitepaper. 58 multiprocessors with 256 operations
/// per cycle each give the f32 rate at the boost clock of 2040 MHz. f64 as on the RTX 4090.
const L4: Card = Card {
    name: "L4",
    capability: (8, 9),
    multiprocessors: 58,
    multiprocessor: ADA,
    l2_bytes: 48 << 20,
    clock: 2.04e9,
    bandwidth: 300e9,
    latency: None,
    rates: Rates {
        f32: 30.3e12,
        f64: 30.3e12 / 64.0,
        matrix_16: 121e12,
        matrix_16_in_16: 121e12,
        matrix_tf32: 60e12,
        matrix_i8: 242.5e12,
        matrix_f8: 242.5e12,
        matrix_f4: 0.0,
        matrix_f64: 30.3e12 / 64.0,
    },
};

/// The rates of the SXM forms of the H100 and the H200: their data sheets.
const HOPPER_RATES: Rates = Rates {
    f32: 67e12,
    f64: 34e12,
    matrix_16: 989e12,
    matrix_16_in_16: 989e12,
    matrix_tf32: 494e12,
    matrix_i8: 1979e12,
    matrix_f8: 1979e12,
    matrix_f4: 0.0,
    matrix_f64: 67e12,
};

/// NVIDIA H100 (SXM). Multiprocessors and L2 cache: NVIDIA H100 Tensor Core GPU Architecture
/// whitepaper. Clock: the one that gives its matrix rates with 4096 operations per cycle on f16.
/// Bandwidth and rates: H100 data sheet.
const H100: Card = Card {
    name: "H100",
    capability: (9, 0),
    multiprocessors: 132,
    multiprocessor: HOPPER,
    l2_bytes: 50 << 20,
    clock: 1.83e9,
    bandwidth: 3.35e12,
    latency: None,
    rates: HOPPER_RATES,
};

/// NVIDIA H200 (SXM). The chip is that of the H100, with other memory: bandwidth from the H200 data
/// sheet.
///
/// Latency: one thread followed 20,000 pointers, one 128-byte line each, in random order through 4
/// GiB. Each took 354 ns or 700 cycles, in the median of four runs (2026-11-28). The last pointer
/// was the right one. Through 8 MiB, in the L2 cache, it took 160 ns.
pub(super) const H200: Card = Card { name: "H200", bandwidth: 4.8e12, latency: Some(354e-9), ..H100 };

/// NVIDIA B200 (SXM). L2 cache: Blackwell Tuning Guide. Multiprocessors: from the driver.
/// Bandwidth: NVIDIA Blackwell Architecture Technical Brief, up to 8 TB/s; drivers report 7.7.
/// Rates: an eighth of an HGX B200, Blackwell data sheet. Clock: the one that gives its f32 rate
/// with 256 operations per cycle and multiprocessor.
pub(super) const B200: Card = Card {
    name: "B200",
    capability: (10, 0),
    multiprocessors: 148,
    multiprocessor: BLACKWELL,
    l2_bytes: 126 << 20,
    clock: 75e12 / (148.0 * 256.0),
    bandwidth: 8e12,
    latency: None,
    rates: Rates {
        f32: 75e12,
        f64: 37e12,
        matrix_16: 2250e12,
        matrix_16_in_16: 2250e12,
        matrix_tf32: 1125e12,
        matrix_i8: 4500e12,
        matrix_f8: 4500e12,
        matrix_f4: 9000e12,
        matrix_f64: 37e12,
    },
};

/// NVIDIA GeForce RTX 5090. NVIDIA RTX Blackwell GPU Architecture whitepaper: all; f64 has 1/64 of
/// the rate of f32.
pub(super) const RTX_5090: Card = Card {
    name: "RTX 5090",
    capability: (12, 0),
    multiprocessors: 170,
    multiprocessor: BLACKWELL_120,
    l2_bytes: 98_304 << 10,
    clock: 2.407e9,
    bandwidth: 1792e9,
    latency: None,
    rates: Rates {
        f32: 104.8e12,
        f64: 104.8e12 / 64.0,
        matrix_16: 209.5e12,
        matrix_16_in_16: 419e12,
        matrix_tf32: 104.8e12,
        matrix_i8: 838e12,
        matrix_f8: 419e12,
        matrix_f4: 1676e12,
        matrix_f64: 104.8e12 / 64.0,
    },
};

/// NVIDIA GB10, of DGX Spark. Cores (6144, 128 for each multiprocessor) and bandwidth: DGX Spark
/// data sheet. Its petaflop on sparse 4-bit floats is 500 TFLOPS on dense ones, and half of that
/// for each doubling of bits. f32 and L2 cache: NVIDIA's presentation of GB10 at Hot Chips 2025.
/// Clock: the one that gives its f32 rate with 256 operations per cycle and multiprocessor. f64 as
/// on the RTX 5090.
pub(super) const GB10: Card = Card {
    name: "GB10",
    capability: (12, 1),
    multiprocessors: 48,
    multiprocessor: BLACKWELL_120,
    l2_bytes: 24 << 20,
    clock: 31e12 / (48.0 * 256.0),
    bandwidth: 273e9,
    latency: None,
    rates: Rates {
        f32: 31e12,
        f64: 31e12 / 64.0,
        matrix_16: 125e12,
        matrix_16_in_16: 125e12,
        matrix_tf32: 62.5e12,
        matrix_i8: 250e12,
        matrix_f8: 250e12,
        matrix_f4: 500e12,
        matrix_f64: 31e12 / 64.0,
    },
};

/// All cards.
pub(super) const CARDS: [Card; 11] = [A100, RTX_3090, A10, ORIN, RTX_4090, L4, H100, H200, B200, RTX_5090, GB10];

/// Operations per cycle of a multiprocessor, by compute capability: CUDA C++ Programming Guide,
/// "Throughput of Native Arithmetic Instructions", and the rates of the fastest card of the
/// capability divided by its multiprocessors and its clock.
pub(super) fn cycle(capability: (u32, u32)) -> Rates {
    let ampere = Rates {
        f32: 128.0,
        f64: 64.0,
        matrix_16: 2048.0,
        matrix_16_in_16: 2048.0,
        matrix_tf32: 1024.0,
        matrix_i8: 4096.0,
        matrix_f8: 0.0,
        matrix_f4: 0.0,
        matrix_f64: 128.0,
    };
    // The cards with small multiprocessors: 8.6 to 8.9 and 12.0.
    let small = Rates {
        f32: 256.0,
        f64: 4.0,
        matrix_16: 1024.0,
        matrix_16_in_16: 1024.0,
        matrix_tf32: 512.0,
        matrix_i8: 2048.0,
        matrix_f8: 0.0,
        matrix_f4: 0.0,
        matrix_f64: 4.0,
    };
    let hopper = Rates {
        f32: 256.0,
        f64: 128.0,
        matrix_16: 4096.0,
        matrix_16_in_16: 4096.0,
        matrix_tf32: 2048.0,
        matrix_i8: 8192.0,
        matrix_f8: 8192.0,
        matrix_f4: 0.0,
        matrix_f64: 256.0,
    };
    match capability {
        (12.., _) => Rates { matrix_f8: 2048.0, matrix_f4: 4096.0, ..small },
        (8, 9) => Rates { matrix_f8: 2048.0, ..small },
        (10.., _) => Rates {
            matrix_16: 8192.0,
            matrix_16_in_16: 8192.0,
            matrix_tf32: 4096.0,
            matrix_i8: 16_384.0,
            matrix_f8: 16_384.0,
            matrix_f4: 32_768.0,
            matrix_f64: 128.0,
            ..hopper
        },
        (9, _) => hopper,
        // Matrix instructions of 8.7 are as fast as those of 8.0.
        (8, 7) => Rates { f64: small.f64, matrix_f64: small.matrix_f64, f32: small.f32, ..ampere },
        (8, 6..) => small,
        _ => ampere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: no data sheet claims more than its multiprocessors can do at its clock; otherwise a
    /// number was copied wrongly. Hopper's f32 and f64 rates are for a clock that its matrix
    /// instructions do not reach; hence the factor 1.1.
    #[test]
    fn no_rate_is_above_that_of_the_capability() {
        for card in &CARDS {
            let most = Rates::of(card.capability, card.multiprocessors, card.clock);
            let all = |rates: &Rates| {
                let Rates { f32, f64, matrix_16, matrix_16_in_16, matrix_tf32, matrix_i8, .. } = *rates;
                let Rates { matrix_f8, matrix_f4, matrix_f64, .. } = *rates;
                [f32, f64, matrix_16, matrix_16_in_16, matrix_tf32, matrix_i8, matrix_f8, matrix_f4, matrix_f64]
            };
            for (own, most) in all(&card.rates).into_iter().zip(all(&most)) {
                assert!(own <= 1.1 * most, "{}: {own} of {most}", card.name);
                // GeForce cards have half of the rate of other cards with f32 accumulators.
                assert!(own >= 0.45 * most, "{}: {own} of {most}", card.name);
            }
        }
    }

    #[test]
    fn each_card_has_a_name_of_its_own_and_a_target() {
        for (card, name) in CARDS.iter().zip(Machine::NAMES) {
            assert_eq!(card.name, name);
            assert!(Target::latest(card.capability).is_some(), "{name}");
            assert_eq!(Machine::named(name).unwrap(), card.machine());
            assert_eq!(name.parse(), Ok(card.machine()));
            // The name that a driver reports also names the card.
            let driver = Machine { name: format!("NVIDIA {name} PCIe"), latency: None, clock: 1.0, ..card.machine() };
            assert_eq!(Machine::described(driver), card.machine());
        }
        let unknown = "H20".parse::<Machine>().unwrap_err();
        assert!(Machine::NAMES.iter().all(|name| unknown.to_string().contains(name)), "{unknown}");
    }

    #[test]
    fn a_block_has_the_shared_memory_of_a_multiprocessor_but_for_what_is_reserved() {
        for card in &CARDS {
            let own = card.multiprocessor;
            assert_eq!(own.block_shared_bytes + own.reserved_bytes, own.shared_bytes, "{}", card.name);
            assert!(u64::from(own.block_shared_bytes) <= super::super::MAX_SHARED, "{}", card.name);
        }
    }
}
