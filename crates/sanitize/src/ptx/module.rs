//! The parsed form of a PTX text.

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
    /// The defect.
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
    /// Untyped bits: 8, 16, 32, 64 or 128 of them.
    B(u8),
    /// An unsigned integer of this many bits.
    U(u8),
    /// A signed integer of this many bits.
    S(u8),
    /// A float of 16, 32 or 64 bits.
    F(u8),
    /// bfloat16.
    Bf16,
    /// Two f16.
    F16x2,
    /// Two bf16.
    Bf16x2,
    /// Two floats of 32 bits.
    F32x2,
    /// TF32: a float of 19 bits in a register of 32.
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

    /// The number of bits; a predicate has one.
    pub fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::B(bits) | Self::U(bits) | Self::S(bits) | Self::F(bits) => u32::from(bits),
            Self::Bf16 => 16,
            Self::F16x2 | Self::Bf16x2 | Self::Tf32 => 32,
            Self::F32x2 => 64,
        }
    }

    /// The number of bytes in memory.
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

/// The state space of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateSpace {
    /// Global memory.
    Global,
    /// Constant memory, which no kernel writes.
    Const,
    /// Shared memory of a block.
    Shared,
    /// Local memory of a thread.
    Local,
    /// Parameters of an entry or of a call.
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

/// An element of an initialiser.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial<'a> {
    /// The bits of a number.
    Bits(u64),
    /// The address of a variable or function, plus an offset.
    Address {
        /// The name.
        name: &'a str,
        /// The offset in bytes.
        offset: i64,
        /// Whether it is a generic address.
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
    /// The alignment in bytes.
    pub align: u64,
    /// The number of bytes; None for `name[]`, whose size the launch sets.
    pub bytes: Option<u64>,
    /// The initial elements; the rest is zero.
    pub initial: Vec<Initial<'a>>,
    /// Whether another module defines it.
    pub is_extern: bool,
    /// The line of the text.
    pub line: u32,
}

/// A parameter or a return value of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its elements.
    pub element: Scalar,
    /// Its bytes.
    pub bytes: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The register that holds it; None if it is in memory.
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

/// A location in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// The number of the file.
    pub file: u32,
    /// The line, from 1; 0 if the compiler knew none.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// The index in [`Module::locations`] of the call into which this location was inlined.
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
    /// A float of 64 bits. Decimal numbers are also parsed as such.
    Float64(u64),
    /// A variable of the function, by its number in [`PtxFunction::variables`], plus an offset.
    Local(u32, i64),
    /// A variable or a function of the module, plus an offset.
    Symbol(&'a str, i64),
    /// A label, by its number in [`PtxFunction::labels`].
    Label(u32),
    /// `[base + offset]`.
    Address(Box<Operand<'a>>, i64),
    /// `[base, {coordinates}]`, with further elements if there are any.
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
    /// `_`: the result is discarded.
    Sink,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind<'a> {
    /// A label, by its number in [`PtxFunction::labels`].
    Label(u32),
    /// An instruction.
    Instruction {
        /// The predicate that guards it, and whether it is negated.
        guard: Option<(u32, bool)>,
        /// The opcode, such as `add`.
        opcode: &'a str,
        /// The modifiers, such as `s32`.
        modifiers: Vec<&'a str>,
        /// The operands.
        operands: Vec<Operand<'a>>,
    },
    /// The labels from which `brx.idx` selects, with the number of the list's own label.
    BranchTargets(u32, Vec<Operand<'a>>),
    /// The functions that an indirect call may have as its target, or a prototype; with the number
    /// of its own label.
    CallTargets(u32),
}

/// A statement of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement<'a> {
    /// The line of the text.
    pub line: u32,
    /// The location in the source, as an index in [`Module::locations`].
    pub location: Option<u32>,
    /// The kind of the statement.
    pub kind: StatementKind<'a>,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct PtxFunction<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is a kernel that can be launched.
    pub is_entry: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter<'a>>,
    /// Its return values.
    pub returns: Vec<Parameter<'a>>,
    /// The types of the registers that its statements name.
    pub registers: Vec<Scalar>,
    /// The names of the registers.
    pub register_names: Vec<&'a str>,
    /// The variables that are declared in it.
    pub variables: Vec<Variable<'a>>,
    /// The names of its labels.
    pub labels: Vec<&'a str>,
    /// Its statements; None if it is only declared.
    pub body: Option<Vec<Statement<'a>>>,
    /// `.reqntid`: the exact number of threads of a block along x, y and z.
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`: the greatest number of threads of a block along x, y and z.
    pub most_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the number of blocks of a cluster along x, y and z.
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
    /// The functions, in the order of the text. A function that is first declared and later defined
    /// appears once.
    pub functions: Vec<PtxFunction<'a>>,
    /// The variables of the module.
    pub variables: Vec<Variable<'a>>,
    /// The files of the source.
    pub files: Vec<SourceFile<'a>>,
    /// The locations in the source.
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

    /// A location as `file:line`, followed by the calls into which it was inlined.
    pub fn describe(&self, location: u32) -> Option<String> {
        let mut at = self.locations.get(location as usize)?;
        let mut text = String::new();
        // The chain ends even in a hostile text: each link is an earlier location.
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
