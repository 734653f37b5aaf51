//! Blocks and iterations that count the parts of a tensor.
//!
//! Law: along a mode, variables `v_1, .., v_n` with `factor_1` the side of the part and
//! `factor_(i+1) = factor_i * extent_i` are the digits of a number, so each number occurs once. The
//! last one may go past the extent of the mode, and the number must reach the extent. A variable is
//! the index of a block or of an iteration, or a digit of a number. Digits `(number / d) mod m`
//! with `d` and `m` in a chain determine that number, if it is a whole multiple of their product,
//! and a number that is such a sum again determines its terms.
//!
//! The coordinates must determine every axis of the grid with more than one block, and the thread,
//! unless the parts of a block determine it. Each index of the tile counter is claimed once, by one
//! cluster, so it determines the cluster; only the rank of the block remains to be determined
//! (`pipeline/scheduler.rs`). Digits by sizes, if all of them occur in coordinates, determine their
//! number, and with it the block and the iteration (`digits.rs`).

use tilewright_layout::symbolic::{Expr, Parameter};
use tilewright_layout::{Extent, ModePath, Stride};

use super::super::address::Terms;
use super::super::core::Core;
use super::digits::{Case, Digits};
use super::{Doubt, is_plain, undecided};
use crate::error::Reason;
use crate::program::operation::Axis;

/// The kind of a variable.
enum VariableKind {
    Block(Axis),
    Iteration,
    Thread,
    /// `(number / divisor) mod modulus`; without a modulus, `number / divisor`.
    Digit {
        number: Expr,
        divisor: i64,
        modulus: Option<i64>,
    },
    /// A digit by sizes, with this many values.
    BySize(Expr),
}

/// A variable that must take each of its values once.
struct Need {
    parameter: Parameter,
    /// The values that it must take, from 0 on.
    reach: Reach,
}

#[derive(Clone)]
enum Reach {
    /// Exactly these values.
    Exactly(i64),
    /// Enough values that `from + factor * count` reaches the extent of a mode.
    ToExtent { from: i64, factor: i64, extent: Expr },
}

/// Where parts end along a mode.
enum PartEnd {
    /// Exactly at this coordinate.
    At(i64),
    /// At this coordinate or past it.
    Past(Expr),
}

struct Search<'c> {
    core: &'c Core,
    tensor: &'c str,
    iterations: &'c [(Parameter, Expr)],
    /// The axes of the grid that the coordinates determine, and the iterations that they determine.
    blocks: [bool; 3],
    told: Vec<Parameter>,
    /// Whether only the last block stores. Its index is unknown.
    last: bool,
    thread: bool,
    threads: u32,
    /// Whether the coordinates contain an index that a cluster claims, which determines the
    /// cluster.
    claimed: bool,
    /// The digits of a number in the coordinates, and those that were seen.
    case: Option<&'c Case>,
    seen: Vec<Parameter>,
}

/// The parts of a tensor that stores write: the variables that count them along each mode, their
/// sides, the first coordinates, and whether only the last block stores.
pub(super) struct Parts<'a> {
    pub(super) outer: &'a [Vec<(i64, Parameter)>],
    pub(super) sides: &'a [i64],
    pub(super) low: &'a [i64],
    /// The mode along which they end before the tensor does, and the coordinate; None if they reach
    /// its end along all modes.
    pub(super) end: Option<(usize, i64)>,
    pub(super) last: bool,
    /// The number whose digits the coordinates contain, and the case.
    pub(super) case: Option<(&'a Digits, &'a Case)>,
}

pub(super) fn counted(
    core: &Core,
    tensor: &str,
    bounds: &[(ModePath, Expr)],
    parts: Parts<'_>,
    (by_threads, threads): (bool, u32),
    iterations: &[(Parameter, Expr)],
) -> Result<(), Doubt> {
    let Parts { outer, sides, low, end, last, case } = parts;
    let number = core.tile_counter.as_ref().and_then(|state| state.number.as_ref());
    let claimed = number.is_some_and(|number| outer.iter().flatten().any(|(_, own)| own.stands_for(number)));
    let thread = by_threads || threads == 1;
    // Each block is a cluster, and is determined.
    let alone = claimed && core.cluster.is_none_or(|blocks| blocks[0] == 1);
    // Only one block is the last.
    let mut blocks = [alone || last, last, last];
    if let Some(axis) = case.and_then(|(digits, _)| digits.axis) {
        blocks[axis as usize] = true;
    }
    let case = case.map(|(_, case)| case);
    let (told, seen) = (Vec::new(), Vec::new());
    let mut search = Search { core, tensor, iterations, blocks, told, last, thread, threads, claimed, case, seen };
    let mut needs = Vec::new();
    for (mode, ((((_, extent), outer), side), low)) in bounds.iter().zip(outer).zip(sides).zip(low).enumerate() {
        let end = match end {
            Some((along, end)) if along == mode => PartEnd::At(end),
            _ => PartEnd::Past(extent.clone()),
        };
        match search.mode((*low, end), outer, *side, &mut needs)? {
            true => {}
            false => {
                let from = low + side;
                let what =
                    format!("no thread writes the elements from {from} on along mode {mode}, whose extent is {extent}");
                return Err(Doubt::Refused(Reason::NeverWritten { tensor: tensor.to_string(), what }));
            }
        }
    }
    search.resolve(needs)?;
    if case.is_some_and(|case| search.seen.len() < case.list.len()) {
        return Err(undecided("some parts of a number of blocks and iterations are in no coordinate"));
    }
    let twice = |by: String| Doubt::Refused(Reason::WrittenTwice { tensor: tensor.to_string(), by });
    for axis in Axis::ALL {
        let count = core.grid[axis as usize].clone().unwrap_or(Expr::from(1));
        let several = count.range().1.is_none_or(|greatest| greatest > 1);
        if several && !search.blocks[axis as usize] {
            // Blocks without iterations write nothing.
            if case.is_some() || iterations.iter().any(|(_, count)| !core.is_launched(count)) {
                return Err(undecided(
                    "the number of iterations of a block depends on its index, which is in no coordinate",
                ));
            }
            let axis = format!("{axis:?}").to_lowercase();
            return Err(twice(format!("each of the {count} blocks along {axis}: their number is in no coordinate")));
        }
    }
    if !search.thread {
        return Err(twice(format!("each of the {threads} threads of a block: their number is in no coordinate")));
    }
    Ok(())
}

/// Whether `factor * count` is at least an extent.
fn reaches(core: &Core, factor: i64, count: &Expr, extent: &Expr) -> bool {
    let by = Expr::from(factor);
    let whole = Stride::times(count, &by);
    let past = whole.and_then(|whole| Stride::plus(&whole, &Expr::from(1)));
    past.is_some_and(|past| core.is_less(extent, &past))
        || extent.divide_up(&by).is_some_and(|wanted| wanted.same(count).proved())
}

impl Search<'_> {
    /// Checks the variables along a mode. Returns whether they reach the end of the mode.
    fn mode(
        &self,
        (from, end): (i64, PartEnd),
        outer: &[(i64, Parameter)],
        side: i64,
        needs: &mut Vec<Need>,
    ) -> Result<bool, Doubt> {
        let short = || undecided("parts do not end where those begin that are found in another way");
        let Some(((last_factor, last), others)) = outer.split_last() else {
            let PartEnd::Past(extent) = end else { return Err(short()) };
            let side = from + side;
            let reached = Stride::plus(&Expr::from(side), &Expr::from(1));
            if reached.is_some_and(|reached| self.core.is_less(&extent, &reached)) {
                return Ok(true);
            }
            // For some size they do not reach it, or that is not known.
            return match is_plain(&extent) && extent.range().1.is_none_or(|greatest| greatest > side) {
                true => Ok(false),
                false => Err(undecided(format!("whether {extent} is at most {side} is not known"))),
            };
        };
        let mut factor = side;
        for (own, parameter) in others {
            let count = self.exact(parameter)?;
            if *own != factor {
                return Err(undecided(format!("parts of {factor} are counted in steps of {own}")));
            }
            needs.push(Need { parameter: parameter.clone(), reach: Reach::Exactly(count) });
            factor = factor.checked_mul(count).ok_or_else(|| undecided("an extent is too large"))?;
        }
        if *last_factor != factor {
            return Err(undecided(format!("parts of {factor} are counted in steps of {last_factor}")));
        }
        let reach = match end {
            PartEnd::Past(extent) => Reach::ToExtent { from, factor, extent },
            PartEnd::At(end) if (end - from) % factor == 0 => Reach::Exactly((end - from) / factor),
            PartEnd::At(_) => return Err(short()),
        };
        needs.push(Need { parameter: last.clone(), reach });
        Ok(true)
    }

    /// The number of values of a variable, if it is a constant.
    fn exact(&self, parameter: &Parameter) -> Result<i64, Doubt> {
        let open =
            || undecided("how many blocks or iterations there are along an inner count is known at launch alone");
        match self.origin(parameter)? {
            VariableKind::Block(axis) => {
                self.core.grid[axis as usize].as_ref().and_then(Extent::known).ok_or_else(open)
            }
            VariableKind::Iteration => self.count_of(parameter).and_then(|count| count.known()).ok_or_else(open),
            VariableKind::Thread => Ok(self.threads.into()),
            VariableKind::BySize(count) => count.known().ok_or_else(open),
            VariableKind::Digit { modulus: Some(modulus), .. } => Ok(modulus),
            VariableKind::Digit { number, divisor, modulus: None } => {
                let range = self.range(&number)?;
                let range = range.known().ok_or_else(open)?;
                if range % divisor == 0 { Ok(range / divisor) } else { Err(open()) }
            }
        }
    }

    fn count_of(&self, iteration: &Parameter) -> Option<Expr> {
        self.iterations.iter().find(|(own, _)| own.stands_for(iteration)).map(|(_, count)| count.clone())
    }

    fn origin(&self, parameter: &Parameter) -> Result<VariableKind, Doubt> {
        if let Some(count) = self.case.and_then(|case| case.count(parameter)) {
            return Ok(VariableKind::BySize(count.clone()));
        }
        let core = self.core;
        let is = |number: Option<usize>| number.is_some_and(|at| core.variables[at].parameter.stands_for(parameter));
        if let Some(axis) = Axis::ALL.into_iter().find(|axis| is(core.blocks[*axis as usize])) {
            if self.last {
                return Err(undecided("a coordinate depends on which block comes last"));
            }
            return Ok(VariableKind::Block(axis));
        }
        if is(core.thread) {
            return Ok(VariableKind::Thread);
        }
        if self.count_of(parameter).is_some() {
            return Ok(VariableKind::Iteration);
        }
        let own = Expr::from(parameter.clone());
        let digit = core.digits.iter().find(|(_, digit)| **digit == own);
        let ((number, divisor, modulus), _) =
            digit.ok_or_else(|| undecided("a coordinate depends on a loop around"))?;
        let modulus = match modulus {
            0 => None,
            1.. => Some(*modulus),
            // A number with its own parameter.
            ..0 => return Ok(VariableKind::Digit { number: number.clone(), divisor: 1, modulus: Some(-modulus) }),
        };
        Ok(VariableKind::Digit { number: number.clone(), divisor: *divisor, modulus })
    }

    /// The number of values of a number, from 0 on, if it is a sum whose values have no gaps.
    fn range(&self, number: &Expr) -> Result<Expr, Doubt> {
        let (terms, last) = self.counting(number)?;
        let factor = terms.last().map_or(1, |(factor, _)| *factor);
        Stride::times(&last, &Expr::from(factor)).ok_or_else(|| undecided("a number is too large"))
    }

    /// The terms of a number whose values have no gaps, the one of factor 1 first, and the number
    /// of values of the last term.
    fn counting(&self, number: &Expr) -> Result<(Vec<(i64, Parameter)>, Expr), Doubt> {
        let doubt = || undecided(format!("the number {number} is no sum that counts blocks, iterations or threads"));
        let mut terms = Terms::of(number).filter(|terms| terms.constant == 0).ok_or_else(doubt)?.moving;
        terms.sort_by_key(|(factor, _)| *factor);
        let mut factor = 1;
        for (own, parameter) in terms.iter().take(terms.len().saturating_sub(1)) {
            if *own != factor {
                return Err(doubt());
            }
            factor = factor.checked_mul(self.exact(parameter)?).ok_or_else(doubt)?;
        }
        let (own, last) = terms.last().ok_or_else(doubt)?;
        if *own != factor {
            return Err(doubt());
        }
        let count = match self.origin(last)? {
            VariableKind::Block(axis) => self.core.grid[axis as usize].clone().ok_or_else(doubt)?,
            VariableKind::Iteration => self.count_of(last).ok_or_else(doubt)?,
            VariableKind::BySize(count) => count,
            VariableKind::Thread | VariableKind::Digit { .. } => Expr::from(self.exact(last)?),
        };
        Ok((terms, count))
    }

    /// Replaces variables by the numbers of which they are digits, until only blocks, iterations
    /// and the thread are left.
    fn resolve(&mut self, mut needs: Vec<Need>) -> Result<(), Doubt> {
        // Each round expands numbers that depend on others, so there are at most as many rounds as
        // variables.
        for _ in 0..=self.core.variables.len() {
            let mut digits: Vec<(Expr, i64, Option<i64>, Reach)> = Vec::new();
            for Need { parameter, reach } in std::mem::take(&mut needs) {
                let again = || undecided("a block, an iteration or a thread is in two coordinates");
                match self.origin(&parameter)? {
                    VariableKind::Block(axis) => {
                        if std::mem::replace(&mut self.blocks[axis as usize], true) {
                            return Err(again());
                        }
                        let count = self.core.grid[axis as usize].clone().unwrap_or(Expr::from(1));
                        self.takes(&count, &reach)?;
                    }
                    VariableKind::Iteration => {
                        if self.told.iter().any(|told| told.stands_for(&parameter)) {
                            return Err(again());
                        }
                        let count = self.count_of(&parameter).unwrap_or(Expr::from(0));
                        self.told.push(parameter);
                        self.takes(&count, &reach)?;
                    }
                    VariableKind::Thread => {
                        if std::mem::replace(&mut self.thread, true) {
                            return Err(again());
                        }
                        self.takes(&Expr::from(i64::from(self.threads)), &reach)?;
                    }
                    VariableKind::BySize(count) => {
                        if self.seen.iter().any(|seen| seen.stands_for(&parameter)) {
                            return Err(again());
                        }
                        self.seen.push(parameter);
                        self.takes(&count, &reach)?;
                    }
                    VariableKind::Digit { number, divisor, modulus } => digits.push((number, divisor, modulus, reach)),
                }
            }
            if digits.is_empty() {
                return Ok(());
            }
            while let Some(first) = digits.pop() {
                let number = first.0.clone();
                let (mut own, rest): (Vec<_>, Vec<_>) = digits.into_iter().partition(|digit| digit.0 == number);
                digits = rest;
                own.push(first);
                own.sort_by_key(|digit| digit.1);
                self.number(&number, &own, &mut needs)?;
            }
        }
        Err(undecided("numbers are made of each other"))
    }

    /// Whether a variable with `count` values takes the required values.
    fn takes(&self, count: &Expr, reach: &Reach) -> Result<(), Doubt> {
        let enough = match reach {
            Reach::Exactly(wanted) => count.known() == Some(*wanted),
            Reach::ToExtent { from, factor, extent } => {
                extent.minus(&Expr::from(*from)).is_some_and(|extent| reaches(self.core, *factor, count, &extent))
            }
        };
        if enough {
            return Ok(());
        }
        Err(match reach {
            Reach::Exactly(wanted) => undecided(format!("{count} values where {wanted} are counted")),
            Reach::ToExtent { from, factor, extent } => {
                let behind = if *from == 0 { String::new() } else { format!(" from {from} on") };
                match (count.known(), extent.known()) {
                    (Some(_), Some(_)) => {
                        let what = format!("{count} parts of {factor}{behind} do not reach {extent}");
                        Doubt::Refused(Reason::NeverWritten { tensor: self.tensor.to_string(), what })
                    }
                    _ => undecided(format!("{count} parts of {factor}{behind} are not shown to reach {extent}")),
                }
            }
        })
    }

    /// Checks whether digits determine their number, and what that requires of the number's terms.
    fn number(
        &self,
        number: &Expr,
        digits: &[(Expr, i64, Option<i64>, Reach)],
        needs: &mut Vec<Need>,
    ) -> Result<(), Doubt> {
        let doubt = |what: &str| undecided(format!("the digits of {number} {what}"));
        let range = self.range(number)?;
        let mut divisor = 1;
        for (place, (_, own, modulus, reach)) in digits.iter().enumerate() {
            let last = place + 1 == digits.len();
            if *own != divisor {
                return Err(doubt("are not all used"));
            }
            match modulus {
                Some(modulus) => {
                    self.takes(&Expr::from(*modulus), reach)?;
                    divisor = divisor.checked_mul(*modulus).ok_or_else(|| doubt("are too large"))?;
                }
                None if !last => return Err(doubt("go on past the rest")),
                None => {
                    // The values of the rest with which all other digits occur.
                    let whole = range.floor_div(&Expr::from(divisor)).ok_or_else(|| doubt("are not known"))?;
                    self.takes(&whole, reach)?;
                }
            }
        }
        let ends_in_rest = digits.last().is_some_and(|(_, _, modulus, _)| modulus.is_none());
        let clusters_told = self.claimed
            && self.core.axis_of(number) == Some(Axis::X)
            && self.core.cluster.is_some_and(|blocks| i64::from(blocks[0]) == divisor);
        if !ends_in_rest && !clusters_told && !range.same(&Expr::from(divisor)).proved() {
            return Err(doubt("are fewer than the number has"));
        }
        let (terms, _) = self.counting(number)?;
        for (place, (_, parameter)) in terms.iter().enumerate() {
            let reach = if place + 1 < terms.len() {
                Reach::Exactly(self.exact(parameter)?)
            } else {
                // All its values are required; the digits were checked for how far they reach.
                Reach::ToExtent { from: 0, factor: 1, extent: Expr::from(0) }
            };
            needs.push(Need { parameter: parameter.clone(), reach });
        }
        Ok(())
    }
}
