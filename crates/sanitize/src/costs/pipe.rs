//! The pipe that executes an instruction, and the operations of a matrix product; both follow from
//! the instruction's name.

use std::fmt;

use super::law::{SharedCount, shared_span};

/// The pipe that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Integer and bitwise operations, moves, predicates.
    Integer,
    /// Floats of 32 bits.
    Float,
    /// Floats of 16 bits, alone or in pairs.
    Half,
    /// Floats of 64 bits.
    Double,
    /// Reciprocals, roots, exponentials, logarithms and sines; and divisions, which are computed
    /// from reciprocals.
    Transcendental,
    /// Conversions between formats.
    Conversion,
    /// Matrix products on tensor cores.
    Tensor,
    /// Loads, stores and atomic operations on global memory, and `cp.async`.
    Global,
    /// Loads, stores and atomic operations on shared memory, `ldmatrix` and `stmatrix`.
    Shared,
    /// Loads, stores and atomic operations on local memory.
    Local,
    /// Loads of parameters and constants.
    Constant,
    /// Bulk copies, with and without a tensor map.
    Bulk,
    /// Shuffles, votes, `match` and `redux`.
    Warp,
    /// Barriers, fences and waits.
    Barrier,
    /// Branches, calls and returns.
    Control,
}

impl Pipe {
    /// All pipes.
    pub const ALL: [Self; 15] = [
        Self::Integer,
        Self::Float,
        Self::Half,
        Self::Double,
        Self::Transcendental,
        Self::Conversion,
        Self::Tensor,
        Self::Global,
        Self::Shared,
        Self::Local,
        Self::Constant,
        Self::Bulk,
        Self::Warp,
        Self::Barrier,
        Self::Control,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Half => "half",
            Self::Double => "double",
            Self::Transcendental => "transcendental",
            Self::Conversion => "conversion",
            Self::Tensor => "tensor",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Constant => "constant",
            Self::Bulk => "bulk",
            Self::Warp => "warp",
            Self::Barrier => "barrier",
            Self::Control => "control",
        }
    }

    /// The pipe that executes an instruction; None if it depends on the address.
    ///
    /// ```
    /// use tilewright_sanitize::costs::Pipe;
    ///
    /// assert_eq!(Pipe::of("fma", &["rn", "f32"]), Some(Pipe::Float));
    /// assert_eq!(Pipe::of("ex2", &["approx", "ftz", "f32"]), Some(Pipe::Transcendental));
    /// assert_eq!(Pipe::of("ld", &["shared", "v4", "f32"]), Some(Pipe::Shared));
    /// assert_eq!(Pipe::of("ld", &["f32"]), None); // a generic address
    /// ```
    pub fn of(opcode: &str, modifiers: &[&str]) -> Option<Self> {
        let has = |word: &str| modifiers.contains(&word);
        Some(match opcode {
            "mma" => Self::Tensor,
            "wgmma" if has("mma_async") => Self::Tensor,
            "wmma" if has("mma") => Self::Tensor,
            "wgmma" | "bar" | "barrier" | "mbarrier" | "membar" | "fence" | "griddepcontrol" | "nanosleep"
            | "setmaxnreg" => Self::Barrier,
            "cp" if has("bulk") => match has("commit_group") || has("wait_group") {
                true => Self::Barrier,
                false => Self::Bulk,
            },
            "cp" if has("mbarrier")
                || modifiers.iter().any(|word| word.starts_with("wait") || *word == "commit_group") =>
            {
                Self::Barrier
            }
            "cp" => Self::Global,
            "st" | "red" if has("async") => Self::Bulk,
            "ldmatrix" | "stmatrix" => Self::Shared,
            "ld" | "ldu" | "st" | "atom" | "red" | "wmma" => return Self::of_space(modifiers),
            "prefetch" | "prefetchu" | "discard" | "applypriority" => Self::Global,
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" | "movmatrix" => Self::Warp,
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" => Self::Control,
            "rcp" | "rsqrt" | "sqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh" => Self::Transcendental,
            "div" | "rem" => Self::Transcendental,
            "cvt" => Self::Conversion,
            // `set` has the type of its result before the type that it compares.
            _ => modifiers.iter().rev().find_map(|word| of_type(word)).unwrap_or(Self::Integer),
        })
    }

    fn of_space(modifiers: &[&str]) -> Option<Self> {
        modifiers.iter().find_map(|word| match word.split("::").next()? {
            "global" => Some(Self::Global),
            "shared" => Some(Self::Shared),
            "local" => Some(Self::Local),
            "const" | "param" => Some(Self::Constant),
            _ => None,
        })
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

fn of_type(word: &str) -> Option<Pipe> {
    Some(match word {
        "f32" | "f32x2" => Pipe::Float,
        "f16" | "bf16" | "f16x2" | "bf16x2" => Pipe::Half,
        "f64" => Pipe::Double,
        "s16" | "s32" | "s64" | "u16" | "u32" | "u64" | "b16" | "b32" | "b64" | "b128" | "pred" => Pipe::Integer,
        _ => return None,
    })
}

/// The operand types of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Factors {
    /// f16 or bf16, with accumulators of f32.
    F16,
    /// f16 with accumulators of f16.
    F16In16,
    /// tf32.
    Tf32,
    /// Floats of 8 bits.
    F8,
    /// Integers of 8 bits.
    I8,
    /// Integers of 4 bits.
    I4,
    /// Single bits.
    B1,
    /// f64.
    F64,
}

impl Factors {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F16In16 => "f16 in f16",
            Self::Tf32 => "tf32",
            Self::F8 => "f8",
            Self::I8 => "i8",
            Self::I4 => "i4",
            Self::B1 => "b1",
            Self::F64 => "f64",
        }
    }
}

/// The operand types of a matrix product, and the operations that one warp contributes. A
/// multiply-add counts as two. None if the instruction is no matrix product.
///
/// ```
/// use tilewright_sanitize::costs::{Factors, product};
///
/// let words = ["sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32"];
/// assert_eq!(product("mma", &words), Some((Factors::F16, 2 * 16 * 8 * 16)));
/// // Four warps share a product of a warpgroup.
/// let words = ["mma_async", "sync", "aligned", "m64n128k16", "f32", "bf16", "bf16"];
/// assert_eq!(product("wgmma", &words), Some((Factors::F16, 2 * 16 * 128 * 16)));
/// // Of a sparse A half of the elements are multiplied.
/// let words = ["sp", "sync", "aligned", "m16n8k64", "row", "col", "s32", "s8", "s8", "s32"];
/// assert_eq!(product("mma", &words), Some((Factors::I8, 2 * 16 * 8 * 32)));
/// ```
pub fn product(opcode: &str, modifiers: &[&str]) -> Option<(Factors, u64)> {
    if !matches!(opcode, "mma" | "wgmma" | "wmma") || Pipe::of(opcode, modifiers) != Some(Pipe::Tensor) {
        return None;
    }
    let [m, n, k] = modifiers.iter().find_map(|word| shape(word))?;
    let has = |word: &str| modifiers.contains(&word);
    let factors = if has("f64") {
        Factors::F64
    } else if has("tf32") {
        Factors::Tf32
    } else if has("b1") {
        Factors::B1
    } else if has("s4") || has("u4") {
        Factors::I4
    } else if has("s8") || has("u8") {
        Factors::I8
    } else if has("e4m3") || has("e5m2") {
        Factors::F8
    } else if has("f32") {
        Factors::F16
    } else {
        Factors::F16In16
    };
    let warps = if opcode == "wgmma" { 4 } else { 1 };
    // A sparse A has half of its elements.
    let k = if is_sparse(modifiers) { k / 2 } else { k };
    Some((factors, 2 * m * n * k / warps))
}

fn is_sparse(modifiers: &[&str]) -> bool {
    modifiers.iter().any(|word| word.split("::").next() == Some("sp"))
}

/// M, N and K of a modifier such as `m16n8k16`.
fn shape(word: &str) -> Option<[u64; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// The traffic of shared memory of wgmma, for a number of warp instructions. A row of an operand
/// has 32 bytes for every type; a column of B has twice as many if A is sparse. Each of the four
/// warps counts a quarter of B, which they share.
pub(super) fn group_operands(modifiers: &[&str], a_in_shared: bool, instructions: u64) -> SharedCount {
    let Some([m, n, _]) = modifiers.iter().find_map(|word| shape(word)) else { return SharedCount::default() };
    let n = if is_sparse(modifiers) { 2 * n } else { n };
    let bytes = (n + if a_in_shared { m } else { 0 }) * 32 / 4 * instructions;
    SharedCount { requests: instructions, ..shared_span(bytes) }
}
