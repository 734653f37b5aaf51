//! An explanation as text.

use std::fmt;

use tilewright_kernel::Route;

use super::{Choice, Explanation};

/// The most registers of a thread.
const REGISTERS: i64 = 255;
/// The number of reasons and values that are listed.
const LISTED: usize = 4;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        writeln!(
            f,
            "\n{} warps of 32 threads; a value is shown with its type, its shape and its thread-value layout",
            self.warps
        )?;
        self.roles.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "estimated {:.0} cycles of a multiprocessor per block", self.cycles)?;
        match self.bound == self.cycles {
            true => writeln!(f, "no other assignment of the candidate layouts costs less")?,
            false => writeln!(f, "the best assignment costs at least {:.0} cycles", self.bound)?,
        }
        self.assumed.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        self.registers(f)?;
        writeln!(
            f,
            "\norigin of each layout, and the cost of the best assignment with another layout for that value:"
        )?;
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
            return writeln!(f, "\nno layout conversions");
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
        write!(f, "live tiles take up to {sum} registers per thread, at line {}: ", widest.line())?;
        writeln!(f, "{}", list.join(", "))?;
        if sum > REGISTERS {
            let rest = "the assembler recomputes or spills the rest";
            writeln!(f, "a thread has {REGISTERS}: {rest}; smaller tiles or more warps help")?;
        }
        Ok(())
    }

    fn choice(&self, choice: &Choice, width: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:<4} {:<width$}", choice.name, choice.origin)?;
        let Some(next) = &choice.next else { return writeln!(f, "  the only candidate") };
        let more = 100.0 * (next.cycles / self.cycles.max(1.0) - 1.0);
        match next.cycles > self.cycles {
            true if next.bound < next.cycles => write!(f, "  at most {more:.1} % more")?,
            true => write!(f, "  {more:>5.1} % more")?,
            false => write!(f, "  {:>12}", "the same")?,
        }
        write!(f, " with {}; {} candidates", next.held, choice.weighed)?;
        let one = |(what, more): &(String, f64)| format!("{what} {more:+.0}");
        let because: Vec<String> = next.because.iter().filter(|own| own.1.abs() >= 0.5).take(LISTED).map(one).collect();
        if because.is_empty() { writeln!(f) } else { writeln!(f, ": {}", because.join(", ")) }
    }
}
