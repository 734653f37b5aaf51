//! What executes an instruction, by its words, and how many operations a product has.

use std::fmt;

use super::law::{SharedCount, shared_span};

/// What executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Integers, bits, moves, predicates.
    Integer,
    /// Floats of 32 bits.
    Float,
    /// Floats of 16 bits, alone or in pairs.
    Half,
    /// Floats of 64 bits.
    Double,
    /// Reciprocals, roots, exponentials, logarithms, sines; divisions, which are made of them.
    Transcendental,
    /// Conversions between formats.
    Conversion,
    /// Products of matrices.
    Tensor,
    /// Loads, stores and atomic operations on global memory, and `cp.async`.
    Global,
    /// The same on shared memory, `ldmatrix` and `stmatrix`.
    Shared,
    /// The same on local memory.
    Local,
    /// Loads of parameters and constants.
    Constant,
    /// Bulk copies, with and without a tensor map.
    Bulk,
    /// Shuffles, votes, matches and reductions of a warp.
    Warp,
    /// Barriers, fences and waits.
    Barrier,
    /// Branches, calls and returns.
    Control,
}

impl Pipe {
    /// All of them.
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

    /// What executes an instruction; none where it depends on its address.
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
            // Results of `set` stand before the type that is compared.
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

/// The numbers that a product of matrices multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Factors {
    /// f16 or bf16, with sums of f32.
    F16,
    /// f16 with sums of f16.
    F16In16,
    /// tf32.
    Tf32,
    /// Floats of 8 bits.
    F8,
    /// Integers of 8 bits.
    I8,
    /// Integers of 4 bits.
    I4,
    /// Bits.
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

/// The operations that a warp contributes to a product of matrices, a multiplication and an
/// addition being two, and what is multiplied; none where it is no product.
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
    // Of a sparse A half of the elements are multiplied.
    let k = if is_sparse(modifiers) { k / 2 } else { k };
    Some((factors, 2 * m * n * k / warps))
}

fn is_sparse(modifiers: &[&str]) -> bool {
    modifiers.iter().any(|word| word.split("::").next() == Some("sp"))
}

/// M, N and K of a word such as `m16n8k16`.
fn shape(word: &str) -> Option<[u64; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// What products of warpgroups read of shared memory, by so many instructions of warps. A row of an
/// operand has 32 bytes whatever its type, and one of B twice as many where A is sparse; a warp
/// takes a quarter of B, which the four share.
pub(super) fn group_operands(modifiers: &[&str], a_in_shared: bool, instructions: u64) -> SharedCount {
    let Some([m, n, _]) = modifiers.iter().find_map(|word| shape(word)) else { return SharedCount::default() };
    let n = if is_sparse(modifiers) { 2 * n } else { n };
    let bytes = (n + if a_in_shared { m } else { 0 }) * 32 / 4 * instructions;
    SharedCount { requests: instructions, ..shared_span(bytes) }
}
