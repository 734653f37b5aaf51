//! Assigns addresses to variables, and finds the functions that an entry reaches.

use std::collections::{HashMap, HashSet};

use crate::engine::code::{EntryCode, Placed};
use crate::engine::windows;
use crate::ptx::{Initial, Module, Operand, PtxError, PtxFunction, StateSpace, StatementKind, Variable};

/// The most bytes of the variables of a module in global memory.
const MAX_GLOBAL: u64 = 1 << 30;
/// The most bytes of local memory of a function.
const MAX_LOCAL: u64 = 512 << 10;
/// The most bytes of shared memory for variables. A launch also checks the limit of a block.
const MAX_SHARED: u64 = 1 << 20;

/// The addresses of variables.
pub(crate) struct Layout<'a> {
    /// Addresses of the module's variables, by name.
    pub(super) symbols: HashMap<&'a str, u64>,
    pub(super) functions: HashMap<&'a str, u32>,
    /// For each function, the addresses of its variables.
    pub(super) addresses: Vec<Vec<u64>>,
    pub(super) local_bytes: Vec<u64>,
    pub(super) reachable: Vec<bool>,
    pub(super) variables: Vec<Placed>,
    pub(super) static_shared: u64,
}

/// Collects the names in operands.
fn names<'a>(operands: &[Operand<'a>], found: &mut Vec<&'a str>) {
    for operand in operands {
        match operand {
            Operand::Symbol(name, _) => found.push(name),
            Operand::Address(inner, _) | Operand::Not(inner) => names(std::slice::from_ref(inner), found),
            Operand::Pair(a, b) => {
                names(std::slice::from_ref(a), found);
                names(std::slice::from_ref(b), found);
            }
            Operand::Tensor(all) | Operand::Vector(all) | Operand::List(all) => names(all, found),
            _ => {}
        }
    }
}

/// Reserves aligned bytes, and returns their address; None if that exceeds `most`.
fn room(end: &mut u64, bytes: u64, align: u64, most: u64) -> Option<u64> {
    let start = end.checked_next_multiple_of(align.max(1))?;
    *end = start.checked_add(bytes).filter(|end| *end <= most)?;
    Some(start)
}

impl<'a> Layout<'a> {
    pub(super) fn new(module: &Module<'a>, entry: &PtxFunction<'a>) -> Result<Self, PtxError> {
        let functions: HashMap<&str, u32> =
            module.functions.iter().enumerate().map(|(number, own)| (own.name, number as u32)).collect();
        let mut reachable = vec![false; module.functions.len()];
        let mut used: HashSet<&str> = HashSet::new();
        let mut left = vec![functions.get(entry.name).copied().unwrap_or(0)];
        // A table of functions in memory may contain a function that no statement names.
        for variable in &module.variables {
            for piece in &variable.initial {
                if let Initial::Address { name, .. } = piece {
                    left.extend(functions.get(name).filter(|own| !module.functions[**own as usize].is_entry));
                }
            }
        }
        while let Some(number) = left.pop() {
            if std::mem::replace(&mut reachable[number as usize], true) {
                continue;
            }
            let mut found = Vec::new();
            for statement in module.functions[number as usize].body.iter().flatten() {
                if let StatementKind::Instruction { operands, .. } = &statement.kind {
                    names(operands, &mut found);
                }
            }
            for name in found {
                used.insert(name);
                left.extend(functions.get(name));
            }
        }
        let mut own = Self {
            symbols: HashMap::new(),
            functions,
            addresses: Vec::new(),
            local_bytes: Vec::new(),
            reachable,
            variables: Vec::new(),
            static_shared: 0,
        };
        let mut global = windows::GLOBAL;
        let mut pending = Vec::new();
        let mut dynamic: Vec<(&str, u64)> = Vec::new();
        let mut dynamic_align = 16;
        for variable in &module.variables {
            match variable.space {
                StateSpace::Shared if used.contains(variable.name) => match variable.bytes {
                    Some(bytes) if bytes > 0 || !variable.is_extern => {
                        let address = own.shared(variable, bytes)?;
                        own.symbols.insert(variable.name, address);
                    }
                    _ => {
                        dynamic.push((variable.name, 0));
                        dynamic_align = dynamic_align.max(variable.align);
                    }
                },
                StateSpace::Global | StateSpace::Const => {
                    let address = own.global(variable, &mut global)?;
                    own.symbols.insert(variable.name, address);
                    pending.push(variable);
                }
                _ => {}
            }
        }
        let mut inner = Vec::new();
        for (number, function) in module.functions.iter().enumerate() {
            let (mut addresses, mut local) = (Vec::new(), 0);
            for variable in &function.variables {
                let address = match variable.space {
                    _ if !own.reachable[number] => 0,
                    StateSpace::Local => match room(&mut local, variable.bytes.unwrap_or(0), variable.align, MAX_LOCAL)
                    {
                        Some(address) => address,
                        None => return Err(too_large(variable, MAX_LOCAL)),
                    },
                    StateSpace::Shared => match variable.bytes {
                        Some(bytes) => own.shared(variable, bytes)?,
                        None => {
                            dynamic_align = dynamic_align.max(variable.align);
                            u64::MAX
                        }
                    },
                    StateSpace::Global | StateSpace::Const => {
                        inner.push(variable);
                        own.global(variable, &mut global)?
                    }
                    StateSpace::Param => 0,
                };
                addresses.push(address);
            }
            own.addresses.push(addresses);
            own.local_bytes.push(local);
        }
        own.static_shared = own.static_shared.next_multiple_of(dynamic_align);
        for (name, _) in dynamic {
            own.symbols.insert(name, own.static_shared);
        }
        for address in own.addresses.iter_mut().flatten().filter(|address| **address == u64::MAX) {
            *address = own.static_shared;
        }
        for (variable, place) in pending.into_iter().chain(inner).zip(0..) {
            own.initialise(variable, place)?;
        }
        Ok(own)
    }

    fn shared(&mut self, variable: &Variable<'_>, bytes: u64) -> Result<u64, PtxError> {
        room(&mut self.static_shared, bytes, variable.align, MAX_SHARED).ok_or_else(|| too_large(variable, MAX_SHARED))
    }

    fn global(&mut self, variable: &Variable<'_>, end: &mut u64) -> Result<u64, PtxError> {
        let bytes = variable.bytes.unwrap_or(0);
        let align = variable.align.max(256);
        let address = room(end, bytes, align, windows::GLOBAL + MAX_GLOBAL);
        let Some(address) = address else { return Err(too_large(variable, MAX_GLOBAL)) };
        // The gap after the last variable belongs to no variable.
        *end += 4096;
        self.variables.push(Placed {
            name: variable.name.to_string(),
            address,
            bytes: Vec::new(),
            size: bytes,
            is_const: variable.space == StateSpace::Const,
            is_initialised: true,
        });
        Ok(address)
    }

    /// Writes the initial bytes of a variable.
    fn initialise(&mut self, variable: &Variable<'a>, place: usize) -> Result<(), PtxError> {
        let width = variable.element.bytes() as usize;
        let mut bytes = Vec::with_capacity(variable.initial.len() * width);
        for piece in &variable.initial {
            let value = match piece {
                Initial::Bits(bits) if variable.element == crate::ptx::Scalar::F(32) && *bits >> 32 != 0 => {
                    // A decimal number was parsed as f64.
                    u64::from((f64::from_bits(*bits) as f32).to_bits())
                }
                Initial::Bits(bits) => *bits,
                Initial::Address { name, offset, generic } => {
                    let address = match (self.symbols.get(name), self.functions.get(name)) {
                        (Some(address), _) => *address,
                        (None, Some(number)) => windows::FUNCTIONS + 16 * u64::from(*number),
                        (None, None) => {
                            return Err(PtxError::new(variable.line, format!("`{name}` is not declared")));
                        }
                    };
                    let is_shared = *generic && address < windows::RANK;
                    let address = if is_shared { address + windows::SHARED } else { address };
                    address.wrapping_add(*offset as u64)
                }
            };
            bytes.extend_from_slice(&value.to_le_bytes()[..width.min(8)]);
        }
        if let Some(own) = self.variables.get_mut(place) {
            own.bytes = bytes;
        }
        Ok(())
    }

    pub(super) fn is_reachable(&self, function: &PtxFunction<'_>) -> bool {
        self.functions.get(function.name).is_some_and(|number| self.reachable[*number as usize])
    }

    pub(super) fn entry(&self, function: &PtxFunction<'a>, number: u32) -> EntryCode {
        let mut parameters = Vec::new();
        let mut offset = 0_u64;
        for own in &function.parameters {
            offset = offset.next_multiple_of(own.align.max(1));
            parameters.push((own.name.to_string(), offset, own.bytes));
            offset += own.bytes;
        }
        EntryCode { function: number, parameters, parameter_bytes: offset }
    }
}

fn too_large(variable: &Variable<'_>, most: u64) -> PtxError {
    let name = variable.space.name();
    PtxError::new(
        variable.line,
        format!("`{}` and what stands before it exceed {most} bytes of {name} memory", variable.name),
    )
}
