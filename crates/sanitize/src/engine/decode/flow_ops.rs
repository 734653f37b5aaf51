//! Branches, calls, barriers and fences.

use super::{Decode, Decoder, types};
use crate::check::checker::{Fence, Scope};
use crate::engine::cluster::builtin;
use crate::engine::code::{Arrival, Callee, NOWHERE, Op, Source, Target, Truth};
use crate::ptx::{Operand, Scalar, StateSpace, StatementKind};

impl<'a> Decoder<'_, 'a> {
    pub(super) fn flow_instruction(
        &mut self,
        opcode: &str,
        modifiers: &[&'a str],
        operands: &[Operand<'a>],
    ) -> Decode<bool> {
        match opcode {
            "bra" => {
                let [Operand::Label(target)] = super::exactly(operands)? else {
                    return Err("a label is expected".to_string());
                };
                self.emit(Op::Branch { target: *target, join: NOWHERE });
            }
            "brx" => {
                let [index, Operand::Label(table)] = super::exactly(operands)? else {
                    return Err("an index and a list of labels are expected".to_string());
                };
                let index = self.source(index, Scalar::U(32))?;
                let found = self.function.body.iter().flatten().find_map(|statement| match &statement.kind {
                    StatementKind::BranchTargets(label, targets) if label == table => Some(targets),
                    _ => None,
                });
                let targets = found.ok_or("the label is none of `.branchtargets`")?.iter().map(|target| match target {
                    Operand::Label(label) => *label,
                    _ => NOWHERE,
                });
                let targets = targets.collect();
                self.emit(Op::BranchIndexed { index, targets, join: NOWHERE });
            }
            "call" => self.call_instruction(operands)?,
            "ret" => self.emit(Op::Return),
            "exit" => self.emit(Op::Exit),
            "trap" => self.emit(Op::Trap),
            "brkpt" => self.emit(Op::Nothing),
            "bar" | "barrier" if modifiers.first() == Some(&"cluster") => match modifiers.get(1) {
                Some(&"arrive") => self.emit(Op::ClusterArrive { release: !modifiers.contains(&"relaxed") }),
                Some(&"wait") => self.emit(Op::ClusterWait { acquire: true }),
                _ => return Err("arrive or wait is expected".to_string()),
            },
            "bar" | "barrier" if modifiers.first() != Some(&"warp") => {
                self.barrier_instruction(opcode == "bar", modifiers, operands)?;
            }
            "membar" => {
                let scope = match modifiers.first() {
                    Some(&"cta") => Scope::Block,
                    Some(&"gl") => Scope::Device,
                    Some(&"sys") => Scope::System,
                    Some(&"proxy") => return self.proxy(modifiers).map(|()| true),
                    _ => return Err("cta, gl or sys is expected".to_string()),
                };
                self.emit(Op::Fence(Fence::Memory(scope)));
            }
            "fence" => match modifiers.first() {
                Some(&"proxy") => self.proxy(modifiers)?,
                Some(&"mbarrier_init") => self.emit(Op::Fence(Fence::MbarrierInit)),
                _ => {
                    let scope = match () {
                        () if modifiers.contains(&"cta") => Scope::Block,
                        () if modifiers.contains(&"cluster") => Scope::Cluster,
                        () if modifiers.contains(&"gpu") => Scope::Device,
                        () if modifiers.contains(&"sys") => Scope::System,
                        () => return Err("the scope is missing".to_string()),
                    };
                    self.emit(Op::Fence(Fence::Memory(scope)));
                }
            },
            "nanosleep" | "pmevent" | "setmaxnreg" | "griddepcontrol" => self.emit(Op::Nothing),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn proxy(&mut self, modifiers: &[&str]) -> Decode<()> {
        let fence = match modifiers.get(1) {
            Some(&("async" | "async::generic")) => {
                let shared = modifiers.iter().any(|word| word.starts_with("shared"));
                let global = modifiers.contains(&"global");
                let all = !shared && !global;
                Fence::ProxyAsync { shared: shared || all, global: global || all }
            }
            Some(word) if word.starts_with("tensormap") => {
                Fence::ProxyTensormap { acquires: modifiers.contains(&"acquire") }
            }
            Some(&"alias") => {
                self.emit(Op::Nothing);
                return Ok(());
            }
            _ => return Err("this proxy is not known".to_string()),
        };
        self.emit(Op::Fence(fence));
        Ok(())
    }

    fn barrier_instruction(&mut self, is_bar: bool, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let aligned = is_bar || modifiers.contains(&"aligned");
        let words: Vec<&str> = modifiers.iter().copied().filter(|word| !matches!(*word, "cta" | "aligned")).collect();
        let (arrival, operands, d) = match (words.first(), operands) {
            (Some(&"sync"), rest) => (Arrival::Sync, rest, None),
            (Some(&"arrive"), rest) => (Arrival::Arrive, rest, None),
            (Some(&"red"), [d, rest @ ..]) => match words.get(1) {
                Some(&"and") => (Arrival::ReduceAnd, rest, Some(d)),
                Some(&"or") => (Arrival::ReduceOr, rest, Some(d)),
                Some(&"popc") => (Arrival::ReduceCount, rest, Some(d)),
                _ => return Err("and, or or popc is expected".to_string()),
            },
            _ => return Err("sync, arrive or red is expected".to_string()),
        };
        let (operands, p) = match (d, operands) {
            (Some(_), [rest @ .., p]) => (rest, self.truth(p)?),
            _ => (operands, Truth::Constant(true)),
        };
        let (id, count) = match operands {
            [id] => (self.source(id, Scalar::U(32))?, None),
            [id, count] => (self.source(id, Scalar::U(32))?, Some(self.source(count, Scalar::U(32))?)),
            _ => return Err("a barrier, and perhaps a number of threads, are expected".to_string()),
        };
        if arrival == Arrival::Arrive && count.is_none() {
            return Err("the number of threads is missing".to_string());
        }
        let (to, q) = match (d, arrival) {
            (Some(d), Arrival::ReduceCount) => (Some(self.target(d)?), None),
            (Some(d), _) => (None, self.predicate(d)?),
            _ => (None, None),
        };
        self.emit(Op::Barrier { arrival, id, count, aligned, p, to, q });
        Ok(())
    }

    fn call_instruction(&mut self, operands: &[Operand<'a>]) -> Decode<()> {
        let (results, rest) = match operands {
            [Operand::List(results), rest @ ..] => (results.as_slice(), rest),
            rest => (&[][..], rest),
        };
        let (callee, rest) = match rest {
            [callee, rest @ ..] => (callee, rest),
            [] => return Err("what is called is missing".to_string()),
        };
        let arguments = match rest {
            [Operand::List(arguments), ..] => arguments.as_slice(),
            _ => &[],
        };
        let callee = match callee {
            Operand::Symbol(name, 0) => match self.function_number(name) {
                Some(number) if self.module.functions[number as usize].body.is_some() => Callee::Function(number),
                Some(_) => match builtin(name) {
                    Some(callee) => callee,
                    None => return Err(format!("the function `{name}` has no body here")),
                },
                None => return Err(format!("the function `{name}` is not declared")),
            },
            callee => Callee::Address(self.source(callee, Scalar::U(64))?),
        };
        let mut from = Vec::new();
        for argument in arguments {
            match argument {
                Operand::Local(variable, 0) if self.is_parameter(*variable) => {
                    from.extend(self.parameter_slots(*variable).map(Source));
                }
                value => from.push(self.source(value, Scalar::B(64))?),
            }
        }
        let mut to = Vec::new();
        for result in results {
            match result {
                Operand::Local(variable, 0) if self.is_parameter(*variable) => {
                    to.extend(self.parameter_slots(*variable));
                }
                value => to.push(self.target(value)?.slot),
            }
        }
        let arguments = from.into_boxed_slice();
        // The return value of the runtime function says success.
        if let (Callee::Print, Some(slot)) = (callee, to.first()) {
            let target = Target { slot: *slot, bits: 64, sign_from: 0 };
            let zero = self.constant(0);
            self.emit(Op::Alu1(target, zero, Box::new(|a, d| *d = *a)));
        }
        self.allocates |= matches!(callee, Callee::Allocate | Callee::Free);
        self.emit(Op::Call { callee, arguments, results: to.into() });
        Ok(())
    }

    fn is_parameter(&self, variable: u32) -> bool {
        self.function.variables[variable as usize].space == StateSpace::Param
    }

    fn parameter_slots(&self, variable: u32) -> std::ops::Range<u32> {
        let first = self.variables[variable as usize] as u32;
        let bytes = self.function.variables[variable as usize].bytes.unwrap_or(0).min(32 << 10);
        first..first + bytes.div_ceil(8) as u32
    }

    /// The last type among the modifiers.
    pub(super) fn last_type(&self, modifiers: &[&str]) -> Decode<Scalar> {
        types(modifiers).last().copied().ok_or_else(|| "the type is missing".to_string())
    }
}
