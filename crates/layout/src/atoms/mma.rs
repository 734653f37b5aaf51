//! MMA instructions: matrix multiply-accumulate.
//!
//! # Law
//!
//! An atom computes `D = A * B + C` for an `m x k` matrix `A`, an `n x k` matrix `B` (read as its
//! transpose) and `m x n` matrices `C` and `D`. The thread-value layouts map (thread, value) to the
//! colexicographic index in (M,K), (N,K) and (M,N). Each is a bijection onto its tile, or a stated
//! broadcast ([`ThreadValue`]). The injective layout `threads` has the numbers of the threads that
//! execute the instruction together.
//!
//! (CuTe `MMA_Atom` and `MMA_Traits`.) The same type describes an instruction of 128 threads and a
//! CPU micro-kernel of one.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::Layout;
use crate::atoms::arch::Arch;
use crate::atoms::error::AtomError;
use crate::atoms::evidence::{BadThreadValue, Flaw};
use crate::atoms::thread_value::ThreadValue;
use crate::atoms::value_type::ValueType;
use crate::ground::words::words;

words! {
    /// An operand of an instruction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Operand {
        /// The first operand, (M,K).
        A = "A",
        /// The second operand, (N,K).
        B = "B",
        /// The accumulator, and the result: (M,N).
        C = "C",
        /// Scale factors of A, (M,K): one for each block along K.
        ScaleA = "SFA",
        /// Scale factors of B, (N,K): one for each block along K.
        ScaleB = "SFB",
        /// The positions of the nonzero elements of a sparse A, (M,K).
        Metadata = "E",
    }
}

impl Operand {
    /// The two modes of the operand, as indices into (M,N,K).
    pub fn modes(self) -> [usize; 2] {
        match self {
            Operand::A | Operand::ScaleA | Operand::Metadata => [0, 2],
            Operand::B | Operand::ScaleB => [1, 2],
            Operand::C => [0, 1],
        }
    }
}

/// The types of the values of an instruction: `D = A * B + C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MmaTypes {
    /// The type of D.
    pub d: ValueType,
    /// The type of A.
    pub a: ValueType,
    /// The type of B.
    pub b: ValueType,
    /// The type of C.
    pub c: ValueType,
}

impl MmaTypes {
    /// The same type for D, A, B and C.
    pub fn uniform(value: ValueType) -> MmaTypes {
        MmaTypes { d: value, a: value, b: value, c: value }
    }

    /// One type for A and B, another one for C and D.
    pub fn accumulating(operands: ValueType, sums: ValueType) -> MmaTypes {
        MmaTypes { d: sums, a: operands, b: operands, c: sums }
    }
}

impl fmt::Display for MmaTypes {
    /// As in the names of instructions: `F32F16F16F32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}{}", self.d, self.a, self.b, self.c)
    }
}

/// An MMA instruction, or a CPU micro-kernel.
///
/// ```
/// use tilewright_layout::atoms::{Arch, MmaAtom, MmaTypes, ValueType};
///
/// let atom = MmaAtom::cpu(Arch::Avx512, [48, 8, 1], MmaTypes::uniform(ValueType::F32)).unwrap();
/// assert_eq!(atom.name(), "AVX512_48x8x1_F32F32F32F32");
/// assert_eq!(atom.c().layout().to_string(), "(1,(48,8)):(0,(1,48))");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MmaAtom {
    name: Box<str>,
    arch: Arch,
    shape: [i64; 3],
    types: MmaTypes,
    threads: Layout,
    /// The thread-value layouts of A, B and C.
    operands: [ThreadValue; 3],
    /// Scale factors and metadata, if any.
    others: Vec<(Operand, ThreadValue)>,
}

impl MmaAtom {
    /// The atom with this shape `(m, n, k)`, these threads and the thread-value layouts of A, B and
    /// C.
    ///
    /// Errors: an extent that is not positive, or a tile whose size does not fit in 64 bits
    /// ([`AtomError::Shape`]); two threads have the same number, or one has a negative number
    /// ([`AtomError::Threads`]); a thread-value layout that is neither a bijection nor the stated
    /// broadcast ([`AtomError::ThreadValue`]).
    pub fn new(
        name: &str,
        arch: Arch,
        shape: [i64; 3],
        types: MmaTypes,
        threads: Layout,
        [a, b, c]: [ThreadValue; 3],
    ) -> Result<MmaAtom, AtomError> {
        if !matches!(threads.is_injective(), Ok(true)) || threads.range().map_or(true, |(least, _)| least < 0) {
            return Err(AtomError::Threads { name: name.into(), layout: threads.to_string().into() });
        }
        let atom = MmaAtom { name: name.into(), arch, shape, types, threads, operands: [a, b, c], others: Vec::new() };
        for (operand, held) in atom.operands() {
            atom.check(operand, held)?;
        }
        Ok(atom)
    }

    /// The atom with one more operand: scale factors or metadata. It replaces an earlier operand of
    /// the same kind, also A, B or C.
    ///
    /// Errors: as [`MmaAtom::new`].
    pub fn with(mut self, operand: Operand, held: ThreadValue) -> Result<MmaAtom, AtomError> {
        self.check(operand, &held)?;
        let [a, b, c] = &mut self.operands;
        match operand {
            Operand::A => *a = held,
            Operand::B => *b = held,
            Operand::C => *c = held,
            other => {
                self.others.retain(|(known, _)| *known != other);
                self.others.push((other, held));
            }
        }
        Ok(self)
    }

    fn check(&self, operand: Operand, held: &ThreadValue) -> Result<(), AtomError> {
        let places = self.tile(operand).map(|extent| i128::from(extent.max(0))).iter().product::<i128>();
        let places = i64::try_from(places).ok().filter(|places| *places > 0);
        let Some(places) = places else {
            return Err(AtomError::Shape { name: self.name.clone(), shape: self.shape });
        };
        held.check(self.threads.size(), places).map_err(|flaw| self.refuse(operand, held, flaw))
    }

    fn refuse(&self, operand: Operand, held: &ThreadValue, flaw: Flaw) -> AtomError {
        AtomError::ThreadValue(Box::new(BadThreadValue {
            name: (*self.name).to_owned().into(),
            operand: operand.to_string().into(),
            layout: held.layout().to_string().into(),
            flaw,
        }))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The oldest architecture that has it.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The shape (M,N,K): the numbers of rows, of columns, and of terms of each sum.
    pub fn shape(&self) -> [i64; 3] {
        self.shape
    }

    /// The types of the values.
    pub fn types(&self) -> MmaTypes {
        self.types
    }

    /// The numbers of the threads that execute it together (CuTe `ThrID`): `32:1` is a warp,
    /// `(4,2):(1,16)` a quad pair.
    pub fn threads(&self) -> &Layout {
        &self.threads
    }

    /// The thread-value layout of A: (thread, value) to (M,K).
    pub fn a(&self) -> &ThreadValue {
        &self.operands[0]
    }

    /// The thread-value layout of B: (thread, value) to (N,K).
    pub fn b(&self) -> &ThreadValue {
        &self.operands[1]
    }

    /// The thread-value layout of the accumulators: (thread, value) to (M,N).
    pub fn c(&self) -> &ThreadValue {
        &self.operands[2]
    }

    /// The thread-value layout of an operand; None if the instruction does not take it.
    pub fn operand(&self, operand: Operand) -> Option<&ThreadValue> {
        self.operands().find(|(known, _)| *known == operand).map(|(_, held)| held)
    }

    /// The operands that the instruction takes, A, B and C first.
    pub fn operands(&self) -> impl Iterator<Item = (Operand, &ThreadValue)> {
        let operands = [Operand::A, Operand::B, Operand::C].into_iter().zip(&self.operands);
        operands.chain(self.others.iter().map(|(operand, held)| (*operand, held)))
    }

    /// The extents of the tile of an operand: (M,K), (N,K) or (M,N).
    pub fn tile(&self, operand: Operand) -> [i64; 2] {
        let [m, n, k] = self.shape;
        match operand.modes() {
            [0, 1] => [m, n],
            [0, _] => [m, k],
            _ => [n, k],
        }
    }
}

impl fmt::Display for MmaAtom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}
