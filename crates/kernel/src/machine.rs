//! The properties of a GPU that plans and costs depend on.
//!
//! Law: each number of a card of the [table](Machine::all) is that of the document named beside it.
//! A card that is not in the table has the numbers that its driver reports, and rates that follow
//! from its compute capability, its multiprocessors and its clock. A number that no document states
//! is `None` unless it was measured; the measurement is described beside the number.
//!
//! No other module contains numbers of a card.

mod table;

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use crate::target::Target;

/// A GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The compute capability: (9, 0) for an H200.
    pub capability: (u32, u32),
    /// The compilation target: the latest one that runs on the card.
    pub target: Target,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The limits of a multiprocessor.
    pub multiprocessor: Multiprocessor,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// The boost clock, in cycles per second.
    pub clock: f64,
    /// The bandwidth of device memory, in bytes per second.
    pub bandwidth: f64,
    /// The latency of a load from idle device memory, in seconds; None if it was not measured.
    pub latency: Option<f64>,
    /// Operations per second; a multiply-add counts as two.
    pub rates: Rates,
}

/// The resources of a multiprocessor for resident blocks.
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

/// Operations per second. A multiply-add counts as two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Ordinary instructions on f32.
    pub f32: f64,
    /// Ordinary instructions on f64.
    pub f64: f64,
    /// Matrix instructions on f16 and bf16 with f32 accumulators.
    pub matrix_16: f64,
    /// Matrix instructions on f16 with f16 accumulators: twice `matrix_16` on GeForce cards.
    pub matrix_16_in_16: f64,
    /// Matrix instructions on tf32.
    pub matrix_tf32: f64,
    /// Matrix instructions on 8-bit integers.
    pub matrix_i8: f64,
    /// Matrix instructions on 8-bit floats with f32 accumulators; 0 if there are none.
    pub matrix_f8: f64,
    /// Matrix instructions on 4-bit floats with block scales and f32 accumulators; 0 if there are
    /// none.
    pub matrix_f4: f64,
    /// Matrix instructions on f64.
    pub matrix_f64: f64,
}

impl Rates {
    /// The rates of this many multiprocessors of a compute capability at a clock: for a card that
    /// is not in the table.
    ///
    /// If cards of one capability differ, these are the rates of the fastest one, so that a bound
    /// by them holds for all. An unknown capability has the rates of the closest lower one.
    ///
    /// ```
    /// use tilewright_kernel::machine::Rates;
    ///
    /// let rates = Rates::of((9, 0), 114, 1.755e9);
    /// assert_eq!(rates.matrix_16, 4096.0 * 114.0 * 1.755e9);
    /// assert_eq!(rates.matrix_16_in_16, rates.matrix_16);
    /// assert_eq!(Rates::of((9, 9), 114, 1.755e9), rates);
    /// ```
    pub fn of(capability: (u32, u32), multiprocessors: u32, clock: f64) -> Rates {
        let all = f64::from(multiprocessors) * clock;
        let own = table::cycle(capability);
        Rates {
            f32: own.f32 * all,
            f64: own.f64 * all,
            matrix_16: own.matrix_16 * all,
            matrix_16_in_16: own.matrix_16_in_16 * all,
            matrix_tf32: own.matrix_tf32 * all,
            matrix_i8: own.matrix_i8 * all,
            matrix_f8: own.matrix_f8 * all,
            matrix_f4: own.matrix_f4 * all,
            matrix_f64: own.matrix_f64 * all,
        }
    }
}

/// The most shared memory of a block, in bytes, that any target has.
pub(crate) const MAX_SHARED: u64 = table::HOPPER.block_shared_bytes as u64;

impl Multiprocessor {
    /// Warp schedulers of a multiprocessor: four since 7.0. Each issues one instruction of a warp
    /// in a cycle.
    pub const SCHEDULERS: u32 = 4;

    /// The resources of a multiprocessor of a target. Code for `sm_80` also runs on later GPUs,
    /// some of which have less shared memory; such a device may refuse the launch.
    ///
    /// ```
    /// use tilewright_kernel::machine::Multiprocessor;
    /// use tilewright_kernel::ptx::Target;
    ///
    /// let bytes = Target::ALL.map(|target| Multiprocessor::of(target).block_shared_bytes);
    /// assert_eq!(bytes, [163, 99, 163, 99, 227, 227, 99, 99, 227].map(|kib: u32| kib << 10));
    /// ```
    pub const fn of(target: Target) -> Multiprocessor {
        match target {
            Target::Sm80 => table::AMPERE,
            Target::Sm86 => table::AMPERE_86,
            Target::Sm87 => table::AMPERE_87,
            Target::Sm89 => table::ADA,
            Target::Sm90 | Target::Sm90a => table::HOPPER,
            Target::Sm100 => table::BLACKWELL,
            Target::Sm120 | Target::Sm121 => table::BLACKWELL_120,
        }
    }
}

impl Machine {
    /// The warp schedulers of all multiprocessors. This many warps keep the machine busy.
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    ///
    /// assert_eq!(Machine::named("H200").unwrap().schedulers(), 4 * 132);
    /// ```
    pub fn schedulers(&self) -> u32 {
        self.multiprocessors.saturating_mul(Multiprocessor::SCHEDULERS)
    }

    /// The names of the cards of the table.
    pub const NAMES: [&'static str; 11] =
        ["A100", "RTX 3090", "A10", "Orin", "RTX 4090", "L4", "H100", "H200", "B200", "RTX 5090", "GB10"];

    /// The cards of the table.
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    ///
    /// let names: Vec<String> = Machine::all().map(|machine| machine.name).collect();
    /// assert_eq!(names, Machine::NAMES);
    /// ```
    pub fn all() -> impl Iterator<Item = Machine> {
        table::CARDS.iter().map(table::Card::machine)
    }

    /// The card with this name. Case, spaces, `-`, `_`, and the words NVIDIA and GeForce do not
    /// matter. After an `@` may follow an earlier target to which plans are restricted.
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    ///
    /// assert_eq!(Machine::named("h200").unwrap().multiprocessors, 132);
    /// assert_eq!(Machine::named("rtx-4090"), Machine::named("NVIDIA GeForce RTX 4090"));
    /// assert_eq!(Machine::named("TPU"), None);
    /// // An H200 that is held to what Ampere has.
    /// assert_eq!(Machine::named("H200@sm_80").unwrap().target.name(), "sm_80");
    /// assert_eq!(Machine::named("A100@sm_90a"), None);
    /// ```
    pub fn named(name: &str) -> Option<Machine> {
        if let Some((name, target)) = name.split_once('@') {
            return Machine::named(name)?.held_to(Target::named(target)?);
        }
        let plain = |text: &str| {
            let kept = text.chars().filter(|letter| !matches!(letter, ' ' | '-' | '_'));
            kept.flat_map(char::to_lowercase).collect::<String>()
        };
        let own = plain(name);
        let own = own.strip_prefix("nvidia").unwrap_or(&own);
        let own = own.strip_prefix("geforce").unwrap_or(own);
        table::CARDS.iter().find(|card| plain(card.name) == own).map(table::Card::machine)
    }

    /// The same card with plans for an earlier target, whose code it also runs; None if it does not
    /// run that code. So a new card shows how plans for older ones perform.
    pub fn held_to(self, target: Target) -> Option<Machine> {
        if !target.runs_on(self.capability) {
            return None;
        }
        let name = if self.target == target { self.name } else { format!("{}@{}", self.name, target.name()) };
        Some(Machine { name, target, ..self })
    }

    /// The card for which plans are made if only a target is known.
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_kernel::ptx::Target;
    ///
    /// let names = Target::ALL.map(|target| Machine::of_target(target).name);
    /// assert_eq!(names[..7], ["A100", "RTX 3090", "Orin", "RTX 4090", "H200", "B200", "RTX 5090"]);
    /// assert_eq!(names[7..], ["GB10", "H200@sm_90"]);
    /// ```
    pub fn of_target(target: Target) -> Machine {
        match target {
            Target::Sm80 => table::A100.machine(),
            Target::Sm86 => table::RTX_3090.machine(),
            Target::Sm87 => table::ORIN.machine(),
            Target::Sm89 => table::RTX_4090.machine(),
            Target::Sm90 => {
                let h200 = table::H200.machine();
                Machine { name: format!("{}@{}", h200.name, target.name()), target, ..h200 }
            }
            Target::Sm90a => table::H200.machine(),
            Target::Sm100 => table::B200.machine(),
            Target::Sm120 => table::RTX_5090.machine(),
            Target::Sm121 => table::GB10.machine(),
        }
    }

    /// The machine that a driver describes. If the table has a card with its name and the driver
    /// reports the same number of multiprocessors, it is that card. Otherwise it consists of what
    /// the driver reports.
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    ///
    /// let has = Machine::named("H200").unwrap();
    /// let described = |name, multiprocessors| {
    ///     let name = String::from(name);
    ///     Machine::described(Machine { name, multiprocessors, latency: None, clock: 1.98e9, ..has.clone() })
    /// };
    /// assert_eq!(described("NVIDIA H200", 132), has);
    /// // A part of the card is another machine, and so is a card whose name goes on.
    /// assert_eq!(described("NVIDIA H200 MIG 1g.18gb", 16).multiprocessors, 16);
    /// assert_eq!(described("NVIDIA H2000", 132).name, "NVIDIA H2000");
    /// ```
    pub fn described(driver: Machine) -> Machine {
        let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        let own: Vec<&str> = driver.name.split([' ', '-']).collect();
        let same = |card: &&table::Card| {
            let name = words(card.name);
            let named = own.windows(name.len()).any(|part| part == name);
            let machine = card.machine();
            named
                && driver.capability == machine.capability
                && driver.multiprocessors == machine.multiprocessors
                && driver.multiprocessor == machine.multiprocessor
        };
        table::CARDS.iter().find(same).map_or(driver.clone(), table::Card::machine)
    }

    /// The bytes of loads that a multiprocessor must have in flight to saturate device memory by
    /// loads alone, by Little's law: the bandwidth times the latency, divided by the number of
    /// multiprocessors. It takes more if many loads wait for each other, and less if a part of the
    /// traffic is stores. None if the latency is not known.
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
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

/// The error for a name that no card of the table has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMachine {
    /// The name.
    pub given: String,
}

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no machine '{}'; the machines are {}", self.given, Machine::NAMES.join(", "))
    }
}

impl Error for UnknownMachine {}

impl FromStr for Machine {
    type Err = UnknownMachine;

    fn from_str(name: &str) -> Result<Machine, UnknownMachine> {
        Machine::named(name).ok_or_else(|| UnknownMachine { given: name.into() })
    }
}
