//! What a processor has, as far as the cost of a kernel depends on it.
//!
//! Law: each number of a named machine is that of its data sheet or of the programming guide for
//! its compute capability; a machine that a driver describes has the numbers that the driver gave,
//! and rates that follow from its capability, its multiprocessors and its clock. No data sheet says
//! how long a load takes: that was measured where it is said ([`H200_LATENCY`]).

use crate::program::group::GroupFactors;
use crate::program::operation::Matrix;
use crate::ptx::Target;

/// A processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// What a multiprocessor has.
    pub multiprocessor: Multiprocessor,
    /// The clock, in cycles a second.
    pub clock: f64,
    /// Bytes a second from and to device memory.
    pub bandwidth: f64,
    /// Seconds from a load to its value, out of device memory that does nothing else; none where
    /// nobody has measured it.
    pub latency: Option<f64>,
    /// Operations a second; a multiplication and an addition are two.
    pub rates: Rates,
}

/// What a multiprocessor has for the blocks that are resident on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiprocessor {
    /// The most threads.
    pub threads: u32,
    /// The most blocks.
    pub blocks: u32,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// The most bytes of shared memory of a block.
    pub block_shared_bytes: u32,
    /// Bytes of shared memory that are reserved for each block.
    pub reserved_bytes: u32,
}

/// Operations a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// On f32, by ordinary instructions.
    pub f32: f64,
    /// On f64, by ordinary instructions.
    pub f64: f64,
    /// Matrix instructions on f16 and bf16.
    pub matrix_16: f64,
    /// Matrix instructions on tf32.
    pub matrix_tf32: f64,
    /// Matrix instructions on 8 bits; 0 where there are none for floats.
    pub matrix_8: f64,
    /// Matrix instructions on f64.
    pub matrix_f64: f64,
}

impl Rates {
    /// The rate of a matrix instruction.
    pub fn matrix(&self, matrix: Matrix) -> f64 {
        match matrix {
            Matrix::F16F32 | Matrix::F16F16 | Matrix::Bf16F32 => self.matrix_16,
            Matrix::Tf32F32 => self.matrix_tf32,
            Matrix::F64 => self.matrix_f64,
            Matrix::I8I32 | Matrix::U8I32 | Matrix::E4M3F32 | Matrix::E5M2F32 => self.matrix_8,
        }
    }

    /// The rate of a matrix instruction of four warps.
    pub fn group(&self, factors: GroupFactors) -> f64 {
        match factors {
            GroupFactors::F16 | GroupFactors::Bf16 => self.matrix_16,
            GroupFactors::Tf32 => self.matrix_tf32,
            GroupFactors::E4M3 | GroupFactors::E5M2 | GroupFactors::I8 | GroupFactors::U8 => self.matrix_8,
        }
    }

    /// The rates of so many multiprocessors of a capability at a clock: operations a cycle of the
    /// programming guide. Those of a capability that is not known here are those of 8.0.
    pub fn of(capability: (u32, u32), multiprocessors: u32, clock: f64) -> Rates {
        // f32, f64, and matrices of 16 bits, tf32, 8 bits and f64, a cycle of a multiprocessor.
        let cycle = match capability {
            (9, 0) => [256.0, 128.0, 4096.0, 2048.0, 8192.0, 256.0],
            (8, 6 | 9) => [256.0, 4.0, 1024.0, 512.0, 2048.0, 4.0],
            _ => [128.0, 64.0, 2048.0, 1024.0, 4096.0, 128.0],
        };
        let [f32, f64, matrix_16, matrix_tf32, matrix_8, matrix_f64] =
            cycle.map(|each| each * f64::from(multiprocessors) * clock);
        Rates { f32, f64, matrix_16, matrix_tf32, matrix_8, matrix_f64 }
    }
}

/// Compute capability 9.0 (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability").
const HOPPER: Multiprocessor = Multiprocessor {
    threads: 2048,
    blocks: 32,
    registers: 65_536,
    shared_bytes: 233_472,
    block_shared_bytes: 232_448,
    reserved_bytes: 1024,
};

/// Compute capability 8.0, from the same table.
const AMPERE: Multiprocessor = Multiprocessor { shared_bytes: 167_936, block_shared_bytes: 166_912, ..HOPPER };

/// Compute capability 8.9, from the same table; 8.6 has as much shared memory, and 16 blocks.
const ADA: Multiprocessor =
    Multiprocessor { threads: 1536, blocks: 24, shared_bytes: 102_400, block_shared_bytes: 101_376, ..HOPPER };

/// The most shared memory of a block, in bytes, that any target has.
pub(crate) const MAX_SHARED: u64 = HOPPER.block_shared_bytes as u64;

impl Multiprocessor {
    /// What a multiprocessor of a target has. Text for `sm_80` runs on later processors too, of
    /// which some have less shared memory: a launch there is refused by the device.
    ///
    /// ```
    /// use tilewright_kernel::cost::Multiprocessor;
    /// use tilewright_kernel::ptx::Target;
    ///
    /// let bytes = Target::ALL.map(|target| Multiprocessor::of(target).block_shared_bytes);
    /// assert_eq!(bytes, [163 << 10, 99 << 10, 227 << 10]);
    /// ```
    pub fn of(target: Target) -> Multiprocessor {
        match target {
            Target::Sm80 => AMPERE,
            Target::Sm89 => ADA,
            Target::Sm90a => HOPPER,
        }
    }
}

const HOPPER_RATES: Rates =
    Rates { f32: 67e12, f64: 34e12, matrix_16: 989e12, matrix_tf32: 494e12, matrix_8: 1979e12, matrix_f64: 67e12 };

const AMPERE_RATES: Rates =
    Rates { f32: 19.5e12, f64: 9.7e12, matrix_16: 312e12, matrix_tf32: 156e12, matrix_8: 624e12, matrix_f64: 19.5e12 };

/// Seconds from a load to its value, out of the device memory of an H200 that does nothing else.
/// One thread followed 20,000 pointers, a line of 128 bytes each, in random order through 4 GiB: 354
/// ns or 700 cycles each, in the median of four runs (2026-11-28). The last pointer was the right
/// one. Through 8 MiB, in the cache, it took 160 ns.
const H200_LATENCY: f64 = 354e-9;

impl Machine {
    /// The names of the machines that are known here.
    pub const NAMES: [&'static str; 3] = ["H200", "H100", "A100"];

    /// The machine of this name, in its SXM form; in upper or lower case.
    ///
    /// ```
    /// use tilewright_kernel::cost::Machine;
    ///
    /// assert_eq!(Machine::named("h200").unwrap().multiprocessors, 132);
    /// assert_eq!(Machine::named("TPU"), None);
    /// ```
    pub fn named(name: &str) -> Option<Machine> {
        let name = *Machine::NAMES.iter().find(|known| known.eq_ignore_ascii_case(name))?;
        let (multiprocessors, multiprocessor, clock, bandwidth, rates) = match name {
            "A100" => (108, AMPERE, 1.41e9, 2.039e12, AMPERE_RATES),
            "H100" => (132, HOPPER, 1.83e9, 3.35e12, HOPPER_RATES),
            _ => (132, HOPPER, 1.83e9, 4.8e12, HOPPER_RATES),
        };
        let latency = (name == "H200").then_some(H200_LATENCY);
        Some(Machine { name: name.to_string(), multiprocessors, multiprocessor, clock, bandwidth, latency, rates })
    }

    /// How many bytes of loads a multiprocessor must have under way at once to keep device memory
    /// busy by loads alone, by Little's law: the bandwidth times the latency, shared by all
    /// multiprocessors. It takes more where many loads wait for each other, and less where a part of
    /// the traffic is stores. None where the latency is not known.
    ///
    /// ```
    /// use tilewright_kernel::cost::Machine;
    ///
    /// let h200 = Machine::named("H200").unwrap();
    /// // 4.8 TB/s for 354 ns, shared by 132.
    /// assert_eq!(h200.in_flight(), Some(12_873));
    /// ```
    pub fn in_flight(&self) -> Option<u64> {
        let bytes = self.bandwidth * self.latency? / f64::from(self.multiprocessors.max(1));
        Some(bytes.ceil() as u64)
    }
}
