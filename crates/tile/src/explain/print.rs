//! An explanation as text.

use std::fmt;

use tilewright_kernel::Route;

use super::{Choice, Explanation};

/// Registers that a thread may have.
const REGISTERS: i64 = 255;
/// How many reasons and values are listed.
const LISTED: usize = 4;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        writeln!(f, "\n{} warps of 32 threads; a value `t (m,n) by (threads,values):(..)` is held so", self.warps)?;
        self.roles.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "about {:.0} cycles of a multiprocessor a block, by what is counted", self.cycles)?;
        match self.bound == self.cycles {
            true => writeln!(f, "no assignment of the layouts that were weighed costs less")?,
            false => writeln!(f, "the best assignment costs at least {:.0}", self.bound)?,
        }
        self.assumed.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        self.registers(f)?;
        writeln!(f, "\nwhat asked for each layout, and what the best costs where a value has another one:")?;
        let width = self.choices.iter().map(|own| own.origin.len()).max().unwrap_or(0);
        self.choices.iter().try_for_each(|own| self.choice(own, width, f))?;
        self.changes(f)?;
        writeln!(f, "\nshown when the kernel was built: no access outside a tensor, for all sizes")?;
        self.outputs.iter().try_for_each(|output| writeln!(f, "{}: {}", output.tensor, output.written))
    }
}

impl Explanation {
    fn changes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.conversions.is_empty() {
            return writeln!(f, "\nno tile changes its layout");
        }
        writeln!(f, "\nconversions:")?;
        for own in &self.conversions {
            let how = match own.route {
                Route::Registers => "within threads".to_string(),
                Route::Lanes => format!("between lanes, about {} instructions", own.instructions),
                Route::Shared => format!("through shared memory, about {} instructions", own.instructions),
            };
            writeln!(f, "  {} to {}: {how}", own.from, own.to)?;
        }
        Ok(())
    }

    fn registers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(widest) = self.widest else { return Ok(()) };
        let sum: i64 = self.taken.iter().map(|own| own.registers).sum();
        let one = |own: &super::Taken| match own.place {
            Some(place) => format!("{} {} (line {})", own.name, own.registers, place.line()),
            None => format!("{} {}", own.name, own.registers),
        };
        let mut list: Vec<String> = self.taken.iter().take(LISTED).map(one).collect();
        if self.taken.len() > LISTED {
            list.push("..".to_string());
        }
        write!(f, "whole tiles take up to {sum} registers of a thread at once, at line {}: ", widest.line())?;
        writeln!(f, "{}", list.join(", "))?;
        if sum > REGISTERS {
            let rest = "the assembler makes some later or keeps them in local memory";
            writeln!(f, "a thread has {REGISTERS}: {rest}; smaller tiles or more warps help")?;
        }
        Ok(())
    }

    fn choice(&self, choice: &Choice, width: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:<4} {:<width$}", choice.name, choice.origin)?;
        let Some(next) = &choice.next else { return writeln!(f, "  no choice") };
        let more = 100.0 * (next.cycles / self.cycles.max(1.0) - 1.0);
        match next.cycles > self.cycles {
            true if next.bound < next.cycles => write!(f, "  at most {more:.1} % more")?,
            true => write!(f, "  {more:>5.1} % more")?,
            false => write!(f, "  {:>12}", "as much")?,
        }
        write!(f, " by {}, of {}", next.held, choice.weighed)?;
        let one = |(what, more): &(String, f64)| format!("{what} {more:+.0}");
        let because: Vec<String> = next.because.iter().filter(|own| own.1.abs() >= 0.5).take(LISTED).map(one).collect();
        if because.is_empty() { writeln!(f) } else { writeln!(f, ": {}", because.join(", ")) }
    }
}
