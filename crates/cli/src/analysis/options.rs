//! The options that `banks`, `access`, `suggest` and `footprint` share.

use clap::Args;
use tilewright::analysis::{AnalysisError, Banks};

/// The accesses to analyse.
#[derive(Debug, Args)]
pub struct Lanes {
    /// The bits of an element.
    #[arg(long, value_name = "BITS", default_value = "32", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=128))]
    pub width: i64,
    /// The elements of one load or store.
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=256))]
    pub vector: i64,
    /// Access pattern of the threads: see below. May be given several times.
    #[arg(long, value_name = "ACCESS")]
    pub access: Vec<String>,
}

/// The banks of shared memory.
#[derive(Debug, Args)]
pub struct Memory {
    /// How many banks there are.
    #[arg(long, value_name = "N", default_value = "32")]
    banks: i64,
    /// The bytes of a word of a bank.
    #[arg(long, value_name = "BYTES", default_value = "4")]
    bank_bytes: i64,
}

impl Memory {
    pub fn banks(&self) -> Result<Banks, AnalysisError> {
        Banks::new(self.banks, self.bank_bytes)
    }
}
