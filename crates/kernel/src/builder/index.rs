//! Indices of threads and blocks, and numbers computed from indices, as variables of the layout
//! algebra.
//!
//! Law: a variable of the layout algebra stands for a register whose value is within the known
//! bounds of the variable.

use tilewright_layout::symbolic::{Expr, Facts, Node, Parameter, Symbolic};
use tilewright_layout::{Extent, Stride, Truth};

use super::core::{Core, Variable};
use crate::error::{KernelError, Reason};
use crate::program::Source;
use crate::program::operation::{Axis, Binary, Number, Operation, Special};
use crate::program::register::{Register, Width};

/// A number as text inside of a quotient: a sum gets parentheses.
fn in_parentheses(number: &Expr) -> String {
    match number.node() {
        Node::Integer(_) | Node::Parameter(_) => number.to_string(),
        _ => format!("({number})"),
    }
}

impl Core {
    /// Whether an expression depends only on sizes.
    pub(crate) fn is_launched(&self, expr: &Expr) -> bool {
        expr.parameters().iter().all(|parameter| self.variable(parameter).is_none())
    }

    /// A variable for the value of a register, which is from 0 to `greatest`, and less than
    /// `below`.
    pub(crate) fn new_variable(&mut self, register: Register, greatest: i64, below: Option<Expr>) -> Expr {
        self.variable_of("a number that is read", register, greatest, below)
    }

    /// A variable for the value of a register that is a multiple of a number.
    pub(crate) fn new_multiple(&mut self, register: Register, (by, greatest): (i64, i64), below: Option<Expr>) -> Expr {
        let facts = Facts::integer().at_least(0).and_then(|facts| facts.at_most(greatest.max(0)));
        let facts = facts.and_then(|facts| facts.multiple_of(by)).unwrap_or(Facts::integer());
        self.variable_with(facts, ("a number that is read", register), greatest, below)
    }

    /// A variable for the value of a register, with the word that messages use for it.
    pub(crate) fn variable_of(&mut self, word: &str, register: Register, greatest: i64, below: Option<Expr>) -> Expr {
        let facts = Facts::integer().at_least(0).and_then(|facts| facts.at_most(greatest.max(0)));
        self.variable_with(facts.unwrap_or(Facts::integer()), (word, register), greatest, below)
    }

    fn variable_with(
        &mut self,
        facts: Facts,
        (word, register): (&str, Register),
        greatest: i64,
        below: Option<Expr>,
    ) -> Expr {
        let parameter = Parameter::labelled(word, facts);
        if greatest > 0 {
            self.variables.push(Variable { parameter: parameter.clone(), below, register });
        }
        Expr::from(parameter)
    }

    /// The index of the thread in its role, or else in its block.
    pub(crate) fn thread(&mut self) -> Result<Expr, Reason> {
        if let Some(team) = &self.team {
            return Ok(team.thread.clone());
        }
        let help = "set the number of threads of a block: `k.threads(256)`, or use a tiled copy or tiled MMA first";
        let threads = self.threads.ok_or(Reason::Unsaid { what: "the number of threads", help })?;
        if let Some(number) = self.thread {
            return Ok(Expr::from(self.variables[number].parameter.clone()));
        }
        let register = self.special(Special::Thread);
        let thread = self.variable_of("thread", register, i64::from(threads) - 1, None);
        if threads > 1 {
            self.thread = Some(self.variables.len() - 1);
        }
        Ok(thread)
    }

    /// The index of the block along an axis.
    pub(crate) fn block(&mut self, axis: Axis) -> Expr {
        if let Some(number) = self.blocks[axis as usize] {
            return Expr::from(self.variables[number].parameter.clone());
        }
        let register = self.special(Special::Block(axis));
        let count = self.grid[axis as usize].clone();
        let greatest = count.as_ref().and_then(Extent::known).unwrap_or(i64::from(i32::MAX)) - 1;
        if greatest == 0 {
            return Expr::from(0);
        }
        let block = self.variable_of(&format!("block.{axis}"), register, greatest, count);
        if greatest > 0 {
            self.blocks[axis as usize] = Some(self.variables.len() - 1);
        }
        block
    }

    /// The number of blocks of the grid along an axis, as the author has set it. Otherwise it is
    /// passed at launch, because a view that is tiled later may determine another number than an
    /// earlier one.
    pub(crate) fn grid_size(&mut self, axis: Axis) -> Expr {
        let said = self.said[axis as usize];
        if let Some(count) = self.grid[axis as usize].clone().filter(|_| said) {
            return count;
        }
        let register = self.special(Special::Blocks(axis));
        if let Some(known) = self.variables.iter().find(|variable| variable.register == register) {
            return Expr::from(known.parameter.clone());
        }
        let facts = Facts::integer().at_least(1).and_then(|facts| facts.at_most(i64::from(i32::MAX)));
        let parameter = Parameter::labelled(&format!("grid.{axis}"), facts.unwrap_or(Facts::integer()));
        self.variables.push(Variable { parameter: parameter.clone(), below: None, register });
        Expr::from(parameter)
    }

    /// Parses an expression of sizes. Tensors may declare the sizes before or after it.
    pub(crate) fn expression(&mut self, what: &'static str, text: &str, source: Source) -> Result<Expr, Reason> {
        let refused = |error| Reason::Expression { what, text: text.to_string(), error };
        let expr = self.names.expr(text).map_err(refused)?;
        for parameter in expr.parameters() {
            if !self.asked.iter().any(|(own, _)| own.stands_for(&parameter)) {
                self.asked.push((parameter, source));
            }
        }
        Ok(expr)
    }

    /// Refuses a size that no tensor declares, because a launch does not know it.
    pub(crate) fn knows_sizes(&self) -> Result<(), KernelError> {
        let is_known = |own: &Parameter| self.sizes.iter().any(|size| size.stands_for(own));
        let unknown = self.asked.iter().find(|(own, _)| own.name().is_some() && !is_known(own));
        let Some((unknown, source)) = unknown else { return Ok(()) };
        let known = self.sizes.iter().map(ToString::to_string).collect();
        Err(Reason::Size { name: unknown.to_string(), known }.at(source.statement, source.location))
    }

    /// Sets the number of blocks along an axis. The author's number takes precedence over that of
    /// views that are tiled by block.
    ///
    /// Facts that were proved with the number of tiles of a view are proved again with this number
    /// of blocks.
    pub(crate) fn say_blocks(&mut self, axis: Axis, count: &Expr) -> Result<(), Reason> {
        let known = self.grid[axis as usize].clone();
        let differs = known.as_ref().is_some_and(|known| known.same(count) != Truth::Proved);
        if let Some(first) = known.filter(|_| differs && self.said[axis as usize]) {
            let what = format!("the number of blocks along {axis}");
            return Err(Reason::Twice { what, first: first.to_string(), second: count.to_string() });
        }
        let tiles = self.set_blocks(axis, count);
        self.said[axis as usize] = true;
        let relied = std::mem::take(self.relied.get_mut());
        let holds = |(less, than): &(Option<Expr>, Expr)| match less {
            Some(less) => self.is_less(less, than),
            None => self.is_natural(than),
        };
        match (tiles, relied.iter().all(holds)) {
            (Some(tiles), false) if differs => {
                let (tiles, blocks) = (tiles.to_string(), count.to_string());
                Err(Reason::Blocks { axis, tiles, blocks, relied: true })
            }
            _ => Ok(()),
        }
    }

    /// Infers the number of blocks from the number of tiles of a view, unless the author has set
    /// it.
    pub(crate) fn infer_blocks(&mut self, axis: Axis, count: &Expr) -> Result<(), Reason> {
        match &self.grid[axis as usize] {
            None => {
                self.set_blocks(axis, count);
                Ok(())
            }
            Some(known) if self.said[axis as usize] || known.same(count) == Truth::Proved => Ok(()),
            Some(known) => {
                let (tiles, blocks) = (count.to_string(), known.to_string());
                Err(Reason::Blocks { axis, tiles, blocks, relied: false })
            }
        }
    }

    fn set_blocks(&mut self, axis: Axis, count: &Expr) -> Option<Expr> {
        if let Some(number) = self.blocks[axis as usize] {
            self.variables[number].below = Some(count.clone());
        }
        self.grid[axis as usize].replace(count.clone())
    }

    /// Whether the author may still change a bound of a block's index, because the bound is the
    /// number of tiles of a view.
    pub(crate) fn may_change_blocks(&self) -> bool {
        (0..self.grid.len()).any(|axis| self.grid[axis].is_some() && !self.said[axis])
    }

    /// The digit `(number / divisor) % modulus` of a number, as a variable. If the number has no
    /// other digits, the number itself.
    pub(crate) fn digit(&mut self, number: &Expr, divisor: i64, modulus: i64) -> Result<Expr, Reason> {
        if modulus == 1 {
            return Ok(Expr::from(0));
        }
        if let Some(known) = number.known() {
            return Ok(Expr::from((known / divisor) % modulus));
        }
        let whole = matches!(number.range(), (Some(0..), Some(greatest)) if greatest / divisor < modulus);
        if divisor == 1 && whole {
            return Ok(number.clone());
        }
        let key = (number.clone(), divisor, modulus);
        if let Some(known) = self.digits.get(&key) {
            return Ok(known.clone());
        }
        let register = self.outermost(|core| {
            let register = core.lower(number, Width::Bits32)?;
            let register = core.divided(register, divisor);
            Ok::<_, Reason>(if whole { register } else { core.reduced(register, modulus) })
        })?;
        let word = match whole {
            true => format!("({}/{divisor})", in_parentheses(number)),
            false if divisor == 1 => format!("({}%{modulus})", in_parentheses(number)),
            false => format!("({}/{divisor}%{modulus})", in_parentheses(number)),
        };
        let digit = self.variable_of(&word, register, modulus - 1, None);
        self.digits.insert(key, digit.clone());
        Ok(digit)
    }

    /// `number / divisor`, as a variable.
    pub(crate) fn rest(&mut self, number: &Expr, divisor: i64) -> Result<Expr, Reason> {
        if let Some(known) = number.known() {
            return Ok(Expr::from(known / divisor));
        }
        let (Some(0..), Some(greatest)) = number.range() else {
            return Err(Reason::Open { what: "the range", layout: number.to_string() });
        };
        if greatest > i64::from(i32::MAX) {
            let (asked, limit) = (greatest.unsigned_abs(), i32::MAX as u64);
            return Err(Reason::TooMuch { what: "values of an index", asked, limit });
        }
        let key = (number.clone(), divisor, 0);
        if let Some(known) = self.digits.get(&key) {
            return Ok(known.clone());
        }
        let register = self.outermost(|core| {
            let register = core.lower(number, Width::Bits32)?;
            Ok::<_, Reason>(core.divided(register, divisor))
        })?;
        let word = format!("({}/{divisor})", in_parentheses(number));
        let rest = self.variable_of(&word, register, greatest / divisor, None);
        self.digits.insert(key, rest.clone());
        Ok(rest)
    }

    /// The greatest value of an index whose bits are extracted.
    fn greatest_of_bits(index: &Expr) -> Result<i64, Reason> {
        match index.range() {
            (Some(0..), Some(greatest)) if greatest <= i64::from(i32::MAX) => Ok(greatest),
            (Some(0..), Some(greatest)) => {
                let (asked, limit) = (greatest.unsigned_abs(), i32::MAX as u64);
                Err(Reason::TooMuch { what: "values of an index", asked, limit })
            }
            _ => Err(Reason::Open { what: "the range", layout: index.to_string() }),
        }
    }

    /// The exclusive or of those columns whose bits are set in an index, as a variable. Bits that
    /// are shifted by the same distance are shifted together.
    pub(crate) fn over_bits(&mut self, index: &Expr, columns: &[u64]) -> Result<Expr, Reason> {
        let greatest = Core::greatest_of_bits(index)? as u64;
        let all = columns.iter().fold(0, |all, column| all | column);
        if all > i32::MAX as u64 {
            return Err(Reason::TooMuch { what: "values of an index", asked: all, limit: i32::MAX as u64 });
        }
        let columns = &columns[..columns.len().min((u64::BITS - greatest.leading_zeros()) as usize)];
        let chosen = |index: u64| {
            let bits = columns.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
            bits.fold(0, |sum, (_, column)| sum ^ column)
        };
        if let Some(known) = index.known() {
            return Ok(Expr::from(chosen(known as u64) as i64));
        }
        let register = self.lower(index, Width::Bits32)?;
        let logic = |core: &mut Core, operation: Binary, a: Register, b: Register| {
            core.pure(Operation::Binary(operation, Number::U32), [a, b], Width::Bits32)
        };
        let mut sum = None;
        for far in -31..31_i32 {
            let reached = |bit: usize| usize::try_from(bit as i32 + far).ok().filter(|to| *to < 31);
            let taken = columns
                .iter()
                .enumerate()
                .filter(|(bit, column)| reached(*bit).is_some_and(|to| *column >> to & 1 == 1));
            let taken = taken.fold(0_u64, |taken, (bit, _)| taken | 1 << bit);
            if taken == 0 {
                continue;
            }
            let mask = self.constant(taken, Width::Bits32);
            let mut part = logic(self, Binary::And, register, mask);
            if far != 0 {
                let by = self.constant(u64::from(far.unsigned_abs()), Width::Bits32);
                part = logic(self, if far < 0 { Binary::ShiftRight } else { Binary::ShiftLeft }, part, by);
            }
            sum = Some(match sum {
                None => part,
                Some(sum) => logic(self, Binary::Xor, sum, part),
            });
        }
        let all = columns.iter().fold(0, |all, column| all | column);
        Ok(sum.map_or(Expr::from(0), |sum| self.new_variable(sum, all as i64, None)))
    }

    /// The exclusive or of two indices, as a variable.
    pub(crate) fn exclusive_or(&mut self, a: &Expr, b: &Expr) -> Result<Expr, Reason> {
        let greatest = (Core::greatest_of_bits(a)? | Core::greatest_of_bits(b)?) as u64;
        if let (Some(a), Some(b)) = (a.known(), b.known()) {
            return Ok(Expr::from(a ^ b));
        }
        if a.known() == Some(0) || b.known() == Some(0) {
            return Ok(if a.known() == Some(0) { b.clone() } else { a.clone() });
        }
        let (a, b) = (self.lower(a, Width::Bits32)?, self.lower(b, Width::Bits32)?);
        let sum = self.pure(Operation::Binary(Binary::Xor, Number::U32), [a, b], Width::Bits32);
        let most = u64::MAX.checked_shr(greatest.leading_zeros()).unwrap_or(0);
        Ok(self.new_variable(sum, most as i64, None))
    }
}
