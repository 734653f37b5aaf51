//! What the page asks.
//!
//! Law: the choices are those of the command's options, by the same names, with the same defaults;
//! a field that is not known is refused.

use serde::Deserialize;

/// A question of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What there is: functions, instructions, names of choices.
    Catalogue {},
    /// The value of a program, its facts, its picture, its table.
    Program {
        /// The program.
        source: String,
        /// How it is looked at.
        #[serde(default)]
        view: View,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
    },
    /// How the value comes about.
    Derivation {
        /// The program.
        source: String,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
    },
    /// Index arithmetic as source text.
    Code {
        /// The program.
        source: String,
        /// How it is written.
        #[serde(default)]
        code: Code,
    },
    /// The page about an error code.
    Explanation {
        /// The code.
        code: String,
    },
    /// The picture as a file.
    File {
        /// The program.
        source: String,
        /// How it is looked at.
        #[serde(default)]
        view: View,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
        /// The end of the file's name.
        format: String,
    },
    /// A kernel of the library.
    Kernel {
        /// Its name.
        name: String,
        /// Its sizes; those that are not given are the kernel's own.
        #[serde(default)]
        sizes: Vec<(String, i64)>,
        /// The type of its elements; the first that it takes if there is none.
        #[serde(default)]
        element: String,
        /// What is wanted of it.
        want: Wanted,
        /// The processor of the PTX, or the machine of the costs; one of them if there is none.
        #[serde(default)]
        target: String,
        /// Where a block is looked at.
        #[serde(default)]
        at: At,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
    },
    /// The kernels of the library.
    Kernels {},
}

/// What is wanted of a kernel.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// What was chosen for it, its tensors and its tiles.
    Plan,
    /// A run on the interpreter.
    Check,
    /// Its text for the assembler.
    Ptx,
    /// What it costs.
    Cost,
    /// A block of it, statement by statement.
    Steps,
}

/// Where a block of a kernel is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct At {
    /// Which block of the grid.
    pub block: [u32; 3],
    /// After how many steps.
    pub step: usize,
    /// Instead: after how many of those that touch memory.
    pub access: Option<usize>,
    /// The thread whose registers are shown.
    pub thread: u32,
    /// Whether asynchronous copies are done at once, and not when they are waited for.
    pub early: bool,
    /// Whether tensors are shown as a whole, without their values.
    pub whole: bool,
    /// The access to shared memory whose banks are shown; that with most wavefronts if none.
    pub request: Option<usize>,
}

/// Light, dark, or what the reader prefers.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ThemeName {
    #[default]
    Auto,
    Light,
    Dark,
}

/// The kind of picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What the program suggests.
    #[default]
    Auto,
    /// A grid of offsets.
    Offsets,
    /// A tile: which thread holds what as which value.
    ThreadValue,
    /// Who reads what, and who writes what.
    Copy,
    /// The operands A, B and C of a matrix product.
    Mma,
    /// Before and after the swizzle, coloured by bank.
    Swizzle,
    /// The image over a line of memory.
    Memory,
    /// Modes, axes of memory, and arrows between them.
    Morphism,
    /// Sizes, leaves and axes.
    Span,
    /// A composition by mutual refinement, step by step.
    Composition,
    /// Conflicts of banks of shared memory.
    Banks,
    /// Sectors and lines of global memory.
    Sectors,
    /// What would cost less in shared memory.
    Suggest,
}

/// How a program is looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct View {
    pub kind: Kind,
    pub title: String,
    pub caption: String,
    pub palette: String,
    pub label: String,
    pub shade: String,
    pub tile: String,
    pub slice: Vec<String>,
    pub tiler: String,
    pub tile_number: Vec<i64>,
    pub atoms: String,
    pub threads: String,
    pub values: String,
    pub element_bits: i64,
    pub width: i64,
    pub vector: i64,
    pub access: Vec<String>,
    pub phase: Option<usize>,
}

impl Default for View {
    fn default() -> View {
        View {
            kind: Kind::Auto,
            title: String::new(),
            caption: String::new(),
            palette: "distinct".to_owned(),
            label: "offset".to_owned(),
            shade: "grey".to_owned(),
            tile: String::new(),
            slice: Vec::new(),
            tiler: String::new(),
            tile_number: vec![0],
            atoms: String::new(),
            threads: String::new(),
            values: String::new(),
            element_bits: 16,
            width: 32,
            vector: 1,
            access: Vec::new(),
            phase: None,
        }
    }
}

/// How index arithmetic is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Code {
    pub lang: String,
    pub at: String,
    pub promise: String,
    pub form: String,
    pub int: String,
    pub coordinate: bool,
    pub inside: String,
    pub name: String,
}

impl Default for Code {
    fn default() -> Code {
        Code {
            lang: "cuda".to_owned(),
            at: "leaves".to_owned(),
            promise: "inside".to_owned(),
            form: "function".to_owned(),
            int: "64".to_owned(),
            coordinate: false,
            inside: String::new(),
            name: String::new(),
        }
    }
}
