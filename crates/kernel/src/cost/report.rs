//! A cost as text.

use std::fmt;

use super::occupancy::Limit;
use super::{Cost, Counted};
use crate::interpret::AccessCount;

/// A number from a thousand on with a letter: 2.15 G.
fn short(number: f64) -> String {
    let (scale, letter) = match number {
        number if number >= 1e12 => (1e12, " T"),
        number if number >= 1e9 => (1e9, " G"),
        number if number >= 1e6 => (1e6, " M"),
        number if number >= 1e4 => (1e3, " k"),
        _ => return format!("{number} "),
    };
    format!("{:.2}{letter}", number / scale)
}

/// A time.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        seconds if seconds >= 1e-6 => format!("{:.1} us", seconds * 1e6),
        seconds => format!("{:.1} ns", seconds * 1e9),
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.grid;
        let held = &self.occupancy;
        writeln!(f, "  grid         ({x},{y},{z}) of {} threads", self.threads)?;
        writeln!(f, "  registers    {} a thread, an estimate: the assembler decides", self.registers)?;
        writeln!(f, "  shared       {} bytes a block", self.shared_bytes)?;
        if held.blocks == 0 {
            writeln!(
                f,
                "  resident     none: a block takes more {} than {} has",
                held.limit.name(),
                self.machine.name
            )?;
        } else {
            writeln!(
                f,
                "  resident     {} block{} a multiprocessor, {} of {} warps; {} {}",
                held.blocks,
                if held.blocks == 1 { "" } else { "s" },
                held.warps,
                held.most_warps,
                held.limit.name(),
                if held.limit == Limit::SharedMemory { "decides" } else { "decide" }
            )?;
        }
        self.in_flight_text(f)?;
        match &self.counted {
            Ok(counted) => table(counted, f)?,
            Err(why) => writeln!(f, "\n  accesses are not counted: {why}")?,
        }
        writeln!(f, "\n  tensors      {}B, each element once", short(self.tensor_bytes as f64))?;
        if let Ok(counted) = &self.counted {
            writeln!(
                f,
                "  sectors      {}B of 32 bytes each, through the caches",
                short(self.sectors() as f64 * 32.0)
            )?;
            if counted.bulk_bytes() > 0 {
                writeln!(
                    f,
                    "  boxes        {}B by the copy engine, edges included",
                    short(counted.bulk_bytes() as f64)
                )?;
            }
            let intensity = self.intensity().unwrap_or_default();
            let (most, least) = (counted.operations.total(), counted.least.total());
            let (own, each) = (short(most), format!("{intensity:.2} a byte"));
            match counted.is_at_most() {
                false => writeln!(f, "  operations   {}, {each}", own.trim_end())?,
                true => {
                    let sure = short(least);
                    writeln!(f, "  operations   at most {}, {each}; {} are sure", own.trim_end(), sure.trim_end())?;
                }
            }
        }
        let exact = self.counted.as_ref().is_ok_and(|counted| counted.walked == counted.blocks && !counted.multiplied);
        let about = if exact || self.counted.is_err() { "" } else { ", if the counted blocks stand for all" };
        let bounds = self.bounds();
        if !bounds.is_empty() {
            writeln!(f, "\n  at least, on {}{about}:", self.machine.name)?;
        }
        for bound in bounds {
            writeln!(f, "  {:>10}   by {}", time(bound.seconds), bound.what)?;
        }
        Ok(())
    }
}

impl Cost {
    fn in_flight_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(own) = self.in_flight.filter(|own| own.blocks > 0) else { return Ok(()) };
        let most = if own.at_most { " at most" } else { "" };
        let (each, blocks) = (own.block_bytes, own.blocks);
        let by = if blocks == 1 { "a block".to_owned() } else { format!("{blocks} blocks, {each} each") };
        writeln!(f, "  in flight    {} bytes a multiprocessor{most}: loads of {by}", own.bytes())?;
        match self.machine.in_flight().zip(self.machine.latency) {
            Some((wanted, latency)) => {
                let rate = short(self.machine.bandwidth);
                writeln!(f, "  {:13}{wanted} bytes keep up {rate}B/s at {} a load", "", time(latency))
            }
            None => Ok(()),
        }
    }
}

fn table(counted: &Counted, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let accesses = AccessCount::by_statement(&counted.accesses);
    writeln!(f)?;
    AccessCount::table(&accesses).lines().try_for_each(|line| writeln!(f, "  {line}"))?;
    writeln!(f)?;
    match counted.walked == counted.blocks && !counted.multiplied {
        true => {
            let most = if counted.is_at_most() { "at most " } else { "" };
            writeln!(f, "  {most}{} instructions of warps; counted in all blocks", counted.instructions())?;
        }
        false => writeln!(
            f,
            "  {} {} instructions of warps; counted in {}{} of {} blocks, and multiplied",
            if counted.is_at_most() { "at most about" } else { "about" },
            short(counted.instructions() as f64).trim_end(),
            if counted.multiplied { "some iterations of loops of " } else { "" },
            counted.walked,
            counted.blocks
        )?,
    }
    if accesses.iter().any(|access| access.at_most) {
        writeln!(f, "  at most: an address or a predicate comes from memory")?;
    }
    Ok(())
}
