//! Loads, stores, atomic operations, addresses, copies.

use super::{Decode, Decoder, types};
use crate::check::checker::{Order, Scope};
use crate::engine::code::{Op, Reference, Row, Source, Target, Truth, Update, Window};
use crate::engine::windows;
use crate::isa::float::{ExtremeMode, FloatMode, add32, add64, extreme32};
use crate::isa::half::{Half, HalfMode, pair2};
use crate::isa::integer::{decrement, increment};
use crate::ptx::{Operand, Scalar, StateSpace};

/// The greatest alignment of `alloca` (PTX ISA, "Stack Manipulation Instructions: alloca").
const MAX_ALIGNMENT: u64 = 1 << 23;

/// The bytes that `discard` discards.
const LINE: u64 = 128;

/// The memory order that modifiers state.
fn order(modifiers: &[&str], default: Order) -> Order {
    let mut found = default;
    for word in modifiers {
        found = match *word {
            "relaxed" | "mmio" => Order::Relaxed,
            "acquire" => Order::Acquire,
            "release" => Order::Release,
            "acq_rel" => Order::AcquireRelease,
            "volatile" => Order::Volatile,
            "weak" => Order::Weak,
            "nc" => Order::NonCoherent,
            _ => found,
        };
    }
    found
}

fn scope(modifiers: &[&str]) -> Scope {
    for word in modifiers {
        match *word {
            "cta" => return Scope::Block,
            "cluster" => return Scope::Cluster,
            "gpu" => return Scope::Device,
            "sys" => return Scope::System,
            "volatile" => return Scope::System,
            _ => {}
        }
    }
    Scope::Device
}

fn window(modifiers: &[&str]) -> Window {
    for word in modifiers {
        return match *word {
            "global" => Window::Global,
            "const" => Window::Const,
            "shared" | "shared::cta" => Window::Shared,
            "shared::cluster" => Window::SharedCluster,
            "local" => Window::Local,
            "param" | "param::entry" | "param::func" => Window::Param,
            _ => continue,
        };
    }
    Window::Generic
}

fn vector(modifiers: &[&str]) -> u8 {
    let mut sizes = modifiers.iter().filter_map(|word| match *word {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    });
    sizes.next_back().unwrap_or(1)
}

impl<'a> Decoder<'_, 'a> {
    /// The address of an operand in brackets.
    pub(in crate::engine) fn reference(
        &mut self,
        operand: &Operand<'a>,
        window: Window,
        bytes: u64,
        count: u8,
        modifiers: &[&str],
        default: Order,
    ) -> Decode<Reference> {
        let (base, offset) = match operand {
            Operand::Address(base, offset) => (&**base, *offset),
            _ => return Err("an address in brackets is expected".to_string()),
        };
        let base = self.source(base, Scalar::B(64))?;
        let (order, scope) = (order(modifiers, default), scope(modifiers));
        Ok(Reference { window, base, offset, bytes: bytes as u8, count, order, scope })
    }

    /// The slot of a call parameter that a statement loads or stores, and the offset in it.
    fn parameter_slot(&self, operand: &Operand<'a>) -> Option<(u32, u64)> {
        let Operand::Address(base, offset) = operand else { return None };
        let slot = match &**base {
            Operand::Local(variable, own) => {
                if self.function.variables[*variable as usize].space != StateSpace::Param {
                    return None;
                }
                let offset = offset.wrapping_add(*own);
                let bytes = self.function.variables[*variable as usize].bytes.unwrap_or(0);
                return (offset >= 0 && (offset as u64) < bytes)
                    .then(|| (self.variables[*variable as usize] as u32, offset as u64));
            }
            Operand::Symbol(name, _) => {
                let find = |all: &[crate::ptx::Parameter<'a>], places: &[super::ParameterPlace]| {
                    let at = all.iter().position(|own| own.name == *name)?;
                    places.get(at).map(|place| (place.slot, all[at].bytes))
                };
                find(&self.function.parameters, &self.parameters)
                    .or_else(|| find(&self.function.returns, &self.returns))
            }
            _ => None,
        };
        let (slot, bytes) = slot?;
        (*offset >= 0 && (*offset as u64) < bytes).then_some((slot, *offset as u64))
    }

    /// The elements of a vector operand, or the single operand.
    fn elements<'o>(&self, operand: &'o Operand<'a>, count: u8) -> Decode<&'o [Operand<'a>]> {
        let all = match operand {
            Operand::Vector(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        match all.len() == count as usize {
            true => Ok(all),
            false => Err(format!("{count} elements are expected, not {}", all.len())),
        }
    }

    pub(super) fn memory_instruction(
        &mut self,
        opcode: &str,
        modifiers: &[&'a str],
        operands: &[Operand<'a>],
    ) -> Decode<bool> {
        match opcode {
            "ld" | "ldu" => self.load_instruction(modifiers, operands)?,
            "st" if !modifiers.contains(&"async") && !modifiers.contains(&"bulk") => {
                self.store_instruction(modifiers, operands)?;
            }
            "atom" => self.atomic_instruction(modifiers, operands, true)?,
            "red" if !modifiers.contains(&"async") => self.atomic_instruction(modifiers, operands, false)?,
            "cvta" => {
                let [d, a] = super::exactly(operands)?;
                let d = self.target(d)?;
                let a = self.source(a, Scalar::U(64))?;
                let start = match window(modifiers) {
                    Window::Shared | Window::SharedCluster => windows::SHARED,
                    Window::Local => windows::LOCAL,
                    Window::Param => windows::PARAMETERS,
                    _ => 0,
                };
                let start = if modifiers.contains(&"to") { start.wrapping_neg() } else { start };
                self.emit(Op::Alu1(
                    d,
                    a,
                    Box::new(move |a, d| (0..32).for_each(|lane| d[lane] = a[lane].wrapping_add(start))),
                ));
            }
            "isspacep" if modifiers.contains(&"const") => {
                return Err("constant variables are not told from those of global memory here".to_string());
            }
            "isspacep" => {
                let [p, a] = super::exactly(operands)?;
                let a = self.source(a, Scalar::U(64))?;
                if let Some(p) = self.predicate(p)? {
                    self.emit(Op::IsWindow { p, a, window: window(modifiers) });
                }
            }
            "mapa" => {
                let [d, a, rank] = super::exactly(operands)?;
                let (d, a) = (self.target(d)?, self.source(a, Scalar::U(64))?);
                let rank = self.source(rank, Scalar::U(32))?;
                let generic = !modifiers.contains(&"shared::cluster");
                self.emit(Op::MapShared { d, a, rank, generic });
            }
            "getctarank" => {
                let [d, a] = super::exactly(operands)?;
                let (d, a) = (self.target(d)?, self.source(a, Scalar::U(64))?);
                let generic = !modifiers.contains(&"shared::cluster");
                self.emit(Op::RankOf { d, a, generic });
            }
            "alloca" => {
                let (d, size, alignment) = match operands {
                    [d, size] => (d, size, 8),
                    [d, size, Operand::Integer(alignment)] => (d, size, *alignment),
                    _ => return Err("a register, a size and a constant alignment are expected".to_string()),
                };
                if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
                    return Err(format!("the alignment {alignment} is no power of two up to {MAX_ALIGNMENT}"));
                }
                let kind = self.last_type(modifiers)?;
                let (d, size) = (self.target(d)?, self.source(size, kind)?);
                self.emit(Op::StackTake(d, size, alignment));
            }
            "stacksave" => {
                let [d] = super::exactly(operands)?;
                let d = self.target(d)?;
                self.emit(Op::StackSave(d));
            }
            "stackrestore" => {
                let [a] = super::exactly(operands)?;
                let kind = self.last_type(modifiers)?;
                let a = self.source(a, kind)?;
                self.emit(Op::StackRestore(a));
            }
            "cp" if modifiers.first() == Some(&"async")
                && !matches!(modifiers.get(1), Some(&("bulk" | "mbarrier" | "reduce"))) =>
            {
                self.copy_instruction(modifiers, operands)?;
            }
            "discard" => {
                let [address, Operand::Integer(LINE)] = super::exactly(operands)? else {
                    return Err("an address and 128 bytes are expected".to_string());
                };
                // The bytes are undefined afterwards. All bits are set, which is NaN in every
                // format.
                let ones = self.constant(u64::MAX);
                let at = self.reference(address, window(modifiers), 8, 4, modifiers, Order::Weak)?;
                for part in 0..4 {
                    let to = Reference { offset: at.offset + 32 * part, ..at };
                    self.emit(Op::Store { to, from: [ones; 4].into() });
                }
            }
            "prefetch" | "prefetchu" | "applypriority" => self.emit(Op::Nothing),
            "createpolicy" => {
                let d = self.target(operands.first().ok_or("an operand is missing")?)?;
                let zero = self.constant(0);
                self.emit(Op::Alu1(d, zero, Box::new(|a, d| *d = *a)));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn load_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        // The last operand may be a cache policy.
        let (d, address) = match operands {
            [d, address] | [d, address, _] => (d, address),
            _ => return Err("a register and an address are expected".to_string()),
        };
        let kind = *types(modifiers).last().ok_or("the type is missing")?;
        let (count, window) = (vector(modifiers), window(modifiers));
        let (bytes, targets) = match kind.bits() {
            128 => {
                let mut all = Vec::new();
                for element in self.elements(d, count)? {
                    all.extend(self.halves(element)?.map(Some));
                }
                (8, all)
            }
            _ => {
                let mut all = Vec::new();
                for element in self.elements(d, count)? {
                    all.push(match element {
                        Operand::Sink => None,
                        element => Some(self.target_of(element, kind)?),
                    });
                }
                (kind.bytes(), all)
            }
        };
        if targets.len() > 8 {
            return Err("more than eight elements are loaded".to_string());
        }
        if window == Window::Param
            && let Some((slot, offset)) = self.parameter_slot(address)
        {
            for (at, target) in targets.iter().enumerate() {
                let offset = offset + at as u64 * bytes;
                let (slot, shift) = (slot + (offset / 8) as u32, 8 * (offset % 8) as u32);
                let mask = ones(bytes);
                if let Some(target) = target {
                    let f = move |a: &Row, d: &mut Row| (0..32).for_each(|lane| d[lane] = a[lane] >> shift & mask);
                    self.emit(Op::Alu1(*target, Source(slot), Box::new(f)));
                }
            }
            return Ok(());
        }
        let from = self.reference(address, window, bytes, targets.len() as u8, modifiers, Order::Weak)?;
        self.emit(Op::Load { from, to: targets.into() });
        Ok(())
    }

    fn store_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let (address, value) = match operands {
            [address, value] | [address, value, _] => (address, value),
            _ => return Err("an address and a value are expected".to_string()),
        };
        let kind = *types(modifiers).last().ok_or("the type is missing")?;
        let (count, window) = (vector(modifiers), window(modifiers));
        let (bytes, values) = match kind.bits() {
            128 => {
                let mut all = Vec::new();
                for element in self.elements(value, count)? {
                    all.extend(self.halves(element)?.map(|half| Source(half.slot)));
                }
                (8, all)
            }
            _ => {
                let mut all = Vec::new();
                for element in self.elements(value, count)? {
                    all.push(self.source(element, kind)?);
                }
                (kind.bytes(), all)
            }
        };
        if values.len() > 8 {
            return Err("more than eight elements are stored".to_string());
        }
        if window == Window::Param
            && let Some((slot, offset)) = self.parameter_slot(address)
        {
            for (at, value) in values.iter().enumerate() {
                let offset = offset + at as u64 * bytes;
                let (slot, shift) = (slot + (offset / 8) as u32, 8 * (offset % 8) as u32);
                let mask = ones(bytes);
                let target = Target { slot, bits: 64, sign_from: 0 };
                let f = move |old: &Row, value: &Row, d: &mut Row| {
                    (0..32).for_each(|lane| d[lane] = old[lane] & !(mask << shift) | (value[lane] & mask) << shift);
                };
                self.emit(Op::Alu2(target, [Source(slot), *value], Box::new(f)));
            }
            return Ok(());
        }
        let to = self.reference(address, window, bytes, values.len() as u8, modifiers, Order::Weak)?;
        self.emit(Op::Store { to, from: values.into() });
        Ok(())
    }

    fn atomic_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>], returns: bool) -> Decode<()> {
        let (d, rest) = match (returns, operands) {
            (true, [d, rest @ ..]) => (Some(d), rest),
            (_, rest) => (None, rest),
        };
        let kind = *types(modifiers).last().ok_or("the type is missing")?;
        let count = vector(modifiers);
        let operation = modifiers
            .iter()
            .find(|word| {
                matches!(**word, "and" | "or" | "xor" | "cas" | "exch" | "add" | "inc" | "dec" | "min" | "max")
            })
            .ok_or("the operation is missing")?;
        let address = rest.first().ok_or("the address is missing")?;
        if kind.bits() == 128 {
            return self.atomic_pair(operation, modifiers, d, address, &rest[1..]);
        }
        let value = rest.get(1).ok_or("an operand is missing")?;
        let update = update(operation, kind, modifiers.contains(&"noftz"))?;
        let mut b = Vec::new();
        for element in self.elements(value, count)? {
            b.push(self.source(element, kind)?);
        }
        let c = match *operation {
            "cas" => Some(self.source(rest.get(2).ok_or("the new value is missing")?, kind)?),
            _ => None,
        };
        let mut to = Vec::new();
        if let Some(d) = d {
            for element in self.elements(d, count)? {
                to.push(match element {
                    Operand::Sink => None,
                    element => Some(self.target_of(element, kind)?),
                });
            }
        }
        let reference = self.reference(address, window(modifiers), kind.bytes(), count, modifiers, Order::Relaxed)?;
        self.emit(Op::Atomic { at: reference, to: to.into(), b: b.into(), c, update, returns });
        Ok(())
    }

    /// Decodes `atom.cas.b128 d, [a], b, c` and `atom.exch.b128 d, [a], b`.
    fn atomic_pair(
        &mut self,
        operation: &str,
        modifiers: &[&'a str],
        d: Option<&Operand<'a>>,
        address: &Operand<'a>,
        values: &[Operand<'a>],
    ) -> Decode<()> {
        let count = match operation {
            "exch" => 1,
            "cas" => 2,
            _ => return Err("on 128 bits only exch and cas are known".to_string()),
        };
        let values = values.get(..count).ok_or("an operand is missing")?;
        let mut from = Vec::new();
        for value in values {
            from.extend(self.halves(value)?.map(|half| Source(half.slot)));
        }
        let to = match d {
            Some(Operand::Sink) | None => [self.temporary(64), self.temporary(64)],
            Some(d) => self.halves(d)?,
        };
        let at = self.reference(address, window(modifiers), 8, 2, modifiers, Order::Relaxed)?;
        self.emit(Op::AtomicPair { at, to, from: from.into() });
        Ok(())
    }

    fn copy_instruction(&mut self, modifiers: &[&'a str], operands: &[Operand<'a>]) -> Decode<()> {
        let pending = |operand: Option<&Operand<'a>>| match operand {
            Some(Operand::Integer(count)) => Ok(u32::try_from(*count).unwrap_or(u32::MAX)),
            _ => Err("a number of groups is expected".to_string()),
        };
        match modifiers.get(1) {
            Some(&"commit_group") => self.emit(Op::CopyCommit),
            Some(&"wait_all") => self.emit(Op::CopyWaitAll),
            Some(&"wait_group") => {
                let pending = pending(operands.first())?;
                self.emit(Op::CopyWait(pending));
            }
            _ => {
                let (to, from, size, rest) = match operands {
                    [to, from, size, rest @ ..] => (to, from, size, rest),
                    _ => return Err("two addresses and a size are expected".to_string()),
                };
                let bytes = match size {
                    Operand::Integer(bytes @ (4 | 8 | 16)) => *bytes,
                    _ => return Err("the size must be 4, 8 or 16".to_string()),
                };
                let has_policy = modifiers.contains(&"L2::cache_hint");
                let rest = if has_policy { &rest[..rest.len().saturating_sub(1)] } else { rest };
                let (size, ignore) = match rest {
                    [] => (None, Truth::Constant(false)),
                    [ignore] if self.is_predicate(ignore) => (None, self.truth(ignore)?),
                    [size] => (Some(self.source(size, Scalar::U(32))?), Truth::Constant(false)),
                    _ => return Err("there are too many operands".to_string()),
                };
                let shared = self.reference(to, Window::Shared, bytes, 1, &[], Order::Weak)?;
                let global = self.reference(from, Window::Global, bytes, 1, &[], Order::Weak)?;
                self.emit(Op::Copy { shared, global, size, ignore });
            }
        }
        Ok(())
    }
}

fn ones(bytes: u64) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

/// The function that computes the new value of an atomic operation.
fn update(operation: &str, kind: Scalar, keeps_subnormals: bool) -> Decode<Update> {
    let signed = move |value: u64| match kind.bits() {
        32 => i64::from(value as u32 as i32),
        _ => value as i64,
    };
    Ok(match (operation, kind) {
        ("and", _) => Box::new(|old, b, _| old & b),
        ("or", _) => Box::new(|old, b, _| old | b),
        ("xor", _) => Box::new(|old, b, _| old ^ b),
        ("exch", _) => Box::new(|_, b, _| b),
        ("cas", _) => {
            let mask = ones(kind.bytes());
            Box::new(move |old, b, c| if old & mask == b & mask { c } else { old })
        }
        ("add", Scalar::U(_) | Scalar::S(_) | Scalar::B(_)) => Box::new(|old, b, _| old.wrapping_add(b)),
        ("inc", _) => Box::new(|old, b, _| u64::from(increment(old as u32, b as u32))),
        ("dec", _) => Box::new(|old, b, _| u64::from(decrement(old as u32, b as u32))),
        ("min", Scalar::S(_)) => Box::new(move |old, b, _| if signed(b) < signed(old) { b } else { old }),
        ("max", Scalar::S(_)) => Box::new(move |old, b, _| if signed(b) > signed(old) { b } else { old }),
        ("min", Scalar::U(_) | Scalar::B(_)) => Box::new(|old, b, _| old.min(b)),
        ("max", Scalar::U(_) | Scalar::B(_)) => Box::new(|old, b, _| old.max(b)),
        // The atomic units of global memory flush subnormal numbers of f32.
        ("add", Scalar::F(32)) => {
            let mode = FloatMode { flush: !keeps_subnormals, ..FloatMode::default() };
            Box::new(move |old, b, _| u64::from(add32(old as u32, b as u32, mode)))
        }
        ("add", Scalar::F(64)) => Box::new(|old, b, _| add64(old, b, Default::default())),
        ("min" | "max", Scalar::F(32)) => {
            let mode = ExtremeMode { max: operation == "max", ..ExtremeMode::default() };
            Box::new(move |old, b, _| u64::from(extreme32(old as u32, b as u32, mode)))
        }
        (_, Scalar::F(16) | Scalar::F16x2 | Scalar::Bf16 | Scalar::Bf16x2) => {
            let half = if matches!(kind, Scalar::F(16) | Scalar::F16x2) { Half::F16 } else { Half::Bf16 };
            let is_pair = kind.bits() == 32;
            let one = move |operation: &str| -> Decode<fn(Half, u16, u16) -> u16> {
                Ok(match operation {
                    "add" => |half, a, b| half.add(a, b, HalfMode::default()),
                    "min" => |half, a, b| half.extreme(a, b, ExtremeMode::default()),
                    "max" => |half, a, b| half.extreme(a, b, ExtremeMode { max: true, ..ExtremeMode::default() }),
                    _ => return Err("this operation is not known for halves".to_string()),
                })
            };
            let f = one(operation)?;
            match is_pair {
                true => {
                    Box::new(move |old, b, _| u64::from(pair2(old as u32, b as u32, |a: u16, b: u16| f(half, a, b))))
                }
                false => Box::new(move |old, b, _| u64::from(f(half, old as u16, b as u16))),
            }
        }
        _ => return Err("this operation is not known for this type".to_string()),
    })
}
