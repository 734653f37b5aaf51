//! The systems whose texts can be read.

use std::fmt;
use std::str::FromStr;

/// A system that writes layouts, and the form of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum System {
    /// Output of CuTe's `print`: `(_8,_64):(_64,_1)`.
    CutePrint,
    /// C++ types and source code of CuTe: `cute::Layout<cute::tuple<..>, ..>`.
    CuteCpp,
    /// Types of the IR of CuTe's Python: `!cute.layout<"(2,3):(4,1)">`.
    CuteIr,
    /// Source and prints of CuTe's Python: `cute.make_layout((4, 8), stride=(8, 1))`.
    CuteDsl,
    /// Encodings of Triton's IR: `#ttg.blocked<{..}>`.
    Triton,
    /// Layouts of Gluon in Python: `gl.BlockedLayout([1, 8], ..)`.
    Gluon,
    /// Fragments and layouts of TileLang: `Fragment([64, 64] -> [32], ..)`.
    TileLang,
    /// Layouts of TVM's TIRx: `S[(8, 64) : (64, 1)]`.
    Tirx,
    /// Views of tinygrad: `View(shape=(4, 8), strides=(8, 1), ..)`.
    Tinygrad,
    /// Arrays of NumPy, whose strides count bytes.
    NumPy,
    /// Tensors of PyTorch, whose strides count elements, and its sharded tensors.
    PyTorch,
    /// Shardings of JAX: `NamedSharding(..)`.
    Jax,
}

impl System {
    /// All of them.
    pub const ALL: [System; 12] = [
        System::CutePrint,
        System::CuteCpp,
        System::CuteIr,
        System::CuteDsl,
        System::Triton,
        System::Gluon,
        System::TileLang,
        System::Tirx,
        System::Tinygrad,
        System::NumPy,
        System::PyTorch,
        System::Jax,
    ];

    /// The name of the system in commands and options.
    ///
    /// ```
    /// use tilewright_read::System;
    ///
    /// assert_eq!(System::CuteCpp.name(), "cute-cpp");
    /// assert_eq!("cute-cpp".parse(), Ok(System::CuteCpp));
    /// ```
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The name of the system in a sentence.
    pub fn title(self) -> &'static str {
        self.names()[1]
    }

    fn names(self) -> [&'static str; 2] {
        match self {
            System::CutePrint => ["cute-print", "CuTe's print"],
            System::CuteCpp => ["cute-cpp", "CuTe in C++"],
            System::CuteIr => ["cute-ir", "the IR of CuTe's Python"],
            System::CuteDsl => ["cute-dsl", "CuTe's Python"],
            System::Triton => ["triton", "Triton"],
            System::Gluon => ["gluon", "Gluon"],
            System::TileLang => ["tilelang", "TileLang"],
            System::Tirx => ["tirx", "TIRx"],
            System::Tinygrad => ["tinygrad", "tinygrad"],
            System::NumPy => ["numpy", "NumPy"],
            System::PyTorch => ["torch", "PyTorch"],
            System::Jax => ["jax", "JAX"],
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = String;

    /// Errors: no system has this name; the error lists the names.
    fn from_str(name: &str) -> Result<System, String> {
        let found = System::ALL.into_iter().find(|system| system.name() == name);
        found.ok_or_else(|| format!("expected one of {}", System::ALL.map(System::name).join(", ")))
    }
}
