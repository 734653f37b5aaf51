//! What a text of PTX says.

use std::fmt;

/// Why a text is refused.
///
/// ```
/// let refusal = tilewright_sanitize::ptx::parse(".version 8.0\n.target sm_90\n.reg ;").unwrap_err();
/// assert_eq!(refusal.line, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxError {
    /// The line of the text, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

impl PtxError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for PtxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for PtxError {}

/// The type of a register, a parameter or the elements of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// A predicate.
    Pred,
    /// Bits without a meaning: 8, 16, 32, 64 or 128 of them.
    B(u8),
    /// An unsigned integer of this many bits.
    U(u8),
    /// A signed integer of this many bits.
    S(u8),
    /// A float of 16, 32 or 64 bits.
    F(u8),
    /// A float of 16 bits with the exponent of 32.
    Bf16,
    /// Two halves.
    F16x2,
    /// Two floats of 16 bits with the exponents of 32.
    Bf16x2,
    /// Two floats of 32 bits.
    F32x2,
    /// A float of 19 bits in a register of 32.
    Tf32,
}

impl Scalar {
    /// The type that a modifier such as `u32` names.
    pub fn read(text: &str) -> Option<Self> {
        Some(match text {
            "pred" => Self::Pred,
            "b8" => Self::B(8),
            "b16" => Self::B(16),
            "b32" => Self::B(32),
            "b64" => Self::B(64),
            "b128" => Self::B(128),
            "u8" => Self::U(8),
            "u16" => Self::U(16),
            "u32" => Self::U(32),
            "u64" => Self::U(64),
            "s8" => Self::S(8),
            "s16" => Self::S(16),
            "s32" => Self::S(32),
            "s64" => Self::S(64),
            "f16" => Self::F(16),
            "f32" => Self::F(32),
            "f64" => Self::F(64),
            "bf16" => Self::Bf16,
            "f16x2" => Self::F16x2,
            "bf16x2" => Self::Bf16x2,
            "f32x2" => Self::F32x2,
            "tf32" => Self::Tf32,
            _ => return None,
        })
    }

    /// Its bits; a predicate has one.
    pub fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::B(bits) | Self::U(bits) | Self::S(bits) | Self::F(bits) => u32::from(bits),
            Self::Bf16 => 16,
            Self::F16x2 | Self::Bf16x2 | Self::Tf32 => 32,
            Self::F32x2 => 64,
        }
    }

    /// Its bytes in memory.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// Whether it is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::S(_))
    }

    /// Whether it is a float or a vector of floats.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F(_) | Self::Bf16 | Self::F16x2 | Self::Bf16x2 | Self::F32x2 | Self::Tf32)
    }
}

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateSpace {
    /// Memory of the device.
    Global,
    /// Memory of the device that no kernel writes.
    Const,
    /// Memory of a block.
    Shared,
    /// Memory of a thread.
    Local,
    /// Parameters of an entry, or of a call.
    Param,
}

impl StateSpace {
    /// Its name in PTX.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Const => "const",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Param => "param",
        }
    }
}

/// A piece of an initialiser.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial<'a> {
    /// Bits of an element.
    Bits(u64),
    /// The address of a variable or function, and what is added; `generic` asks for the generic
    /// one.
    Address {
        /// The name.
        name: &'a str,
        /// What is added, in bytes.
        offset: i64,
        /// Whether the address is a generic one.
        generic: bool,
    },
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it is.
    pub space: StateSpace,
    /// The type of its elements.
    pub element: Scalar,
    /// The bytes by which its address is divisible.
    pub align: u64,
    /// Its bytes; `None` for `name[]`, whose size the launch gives.
    pub bytes: Option<u64>,
    /// What it holds at first, element after element; the rest is zero.
    pub initial: Vec<Initial<'a>>,
    /// Whether another module defines it.
    pub is_extern: bool,
    /// The line of the text.
    pub line: u32,
}

/// A parameter of a function or what it returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its elements.
    pub element: Scalar,
    /// Its bytes.
    pub bytes: u64,
    /// The bytes by which its place is divisible.
    pub align: u64,
    /// The register in which it comes, where it is none of memory.
    pub register: Option<u32>,
}

/// A file of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// The number that `.loc` uses.
    pub number: u32,
    /// Its path, as the compiler wrote it.
    pub path: &'a str,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// The number of the file.
    pub file: u32,
    /// The line, from 1; 0 says that the compiler knew none.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// The index in [`Module::locations`] of the call into which this was inlined.
    pub inlined_at: Option<u32>,
}

/// An operand of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, by its number in [`PtxFunction::registers`].
    Register(u32),
    /// A special register such as `%tid.x`.
    Special(&'a str),
    /// An integer, in two's complement.
    Integer(u64),
    /// A float of 32 bits.
    Float32(u32),
    /// A float of 64 bits, which is also what a decimal number is.
    Float64(u64),
    /// A variable of the function, by its number in [`PtxFunction::variables`], and what is added.
    Local(u32, i64),
    /// A variable or a function of the module, and what is added.
    Symbol(&'a str, i64),
    /// A label, by its number in [`PtxFunction::labels`].
    Label(u32),
    /// `[base + offset]`.
    Address(Box<Operand<'a>>, i64),
    /// `[base, {coordinates}]` and whatever else stands there.
    Tensor(Vec<Operand<'a>>),
    /// `{a, b, ..}`.
    Vector(Vec<Operand<'a>>),
    /// `(a, b, ..)` of a call.
    List(Vec<Operand<'a>>),
    /// `a|b`.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `!p`.
    Not(Box<Operand<'a>>),
    /// `-r`.
    Negative(Box<Operand<'a>>),
    /// A part of a register, such as `r.h1`.
    Part(Box<Operand<'a>>, &'a str),
    /// `_`: nothing is kept.
    Sink,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind<'a> {
    /// A label, by its number in [`PtxFunction::labels`].
    Label(u32),
    /// An instruction.
    Instruction {
        /// The predicate that guards it, and whether it is negated.
        guard: Option<(u32, bool)>,
        /// The first word, such as `add`.
        opcode: &'a str,
        /// The words after dots, such as `s32`.
        modifiers: Vec<&'a str>,
        /// The operands.
        operands: Vec<Operand<'a>>,
    },
    /// Labels among which `brx.idx` chooses, under the number of their own label.
    BranchTargets(u32, Vec<Operand<'a>>),
    /// Functions, or a prototype, that a call may have, under the number of their own label.
    CallTargets(u32),
}

/// A statement of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement<'a> {
    /// The line of the text.
    pub line: u32,
    /// The place in the source, as an index in [`Module::locations`].
    pub location: Option<u32>,
    /// What it is.
    pub kind: StatementKind<'a>,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct PtxFunction<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether a launch can begin here.
    pub is_entry: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter<'a>>,
    /// What it returns.
    pub returns: Vec<Parameter<'a>>,
    /// The types of the registers that its statements name.
    pub registers: Vec<Scalar>,
    /// The names of the registers.
    pub register_names: Vec<&'a str>,
    /// Variables that are declared in it.
    pub variables: Vec<Variable<'a>>,
    /// The names of its labels.
    pub labels: Vec<&'a str>,
    /// Its statements; `None` where it is only declared.
    pub body: Option<Vec<Statement<'a>>>,
    /// `.reqntid`: the threads that a launch must have.
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`: the threads that a launch may have.
    pub most_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the blocks of a cluster.
    pub required_cluster: Option<[u32; 3]>,
    /// The line of the text.
    pub line: u32,
}

/// A module.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Module<'a> {
    /// `.version`, such as `8.7`.
    pub version: String,
    /// `.target`, such as `sm_90a`.
    pub target: &'a str,
    /// The functions, in the order of the text. One that is declared and later defined stands once.
    pub functions: Vec<PtxFunction<'a>>,
    /// The variables of the module.
    pub variables: Vec<Variable<'a>>,
    /// The files of the source.
    pub files: Vec<SourceFile<'a>>,
    /// The places in the source.
    pub locations: Vec<Location>,
}

impl<'a> Module<'a> {
    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&PtxFunction<'a>> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The path of a file by its number.
    pub fn file(&self, number: u32) -> Option<&'a str> {
        self.files.iter().find(|file| file.number == number).map(|file| file.path)
    }

    /// A place as `file:line`, and the calls into which it was inlined after it.
    pub fn describe(&self, location: u32) -> Option<String> {
        let mut at = self.locations.get(location as usize)?;
        let mut text = String::new();
        // A chain of a hostile text has an end too: each link is an earlier place.
        for _ in 0..16 {
            let path = self.file(at.file).unwrap_or("?");
            text += &format!("{}:{}", path.rsplit('/').next().unwrap_or(path), at.line);
            match at.inlined_at.and_then(|call| self.locations.get(call as usize)) {
                Some(call) => at = call,
                None => break,
            }
            text += ", inlined at ";
        }
        Some(text)
    }
}
