//! The questions of the page.
//!
//! Law: the choices are those of the command's options, with the same names and defaults; unknown
//! fields are refused.

use serde::Deserialize;

/// A question of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The catalogue: functions, instructions, names of choices.
    Catalogue {},
    /// The value of a program, its facts, its picture, its table.
    Program {
        /// The program.
        source: String,
        /// The view.
        #[serde(default)]
        view: View,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
    },
    /// The derivation of the value.
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
        /// The choices of the source text.
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
        /// The view.
        #[serde(default)]
        view: View,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
        /// The file extension.
        format: String,
    },
    /// A kernel of the library.
    Kernel {
        /// Its name.
        name: String,
        /// Its sizes; others have the defaults of the kernel.
        #[serde(default)]
        sizes: Vec<(String, i64)>,
        /// The type of its elements; the first type of the kernel if missing.
        #[serde(default)]
        element: String,
        /// The question.
        want: Wanted,
        /// The target of the PTX, or the machine of the costs; the default one if missing.
        #[serde(default)]
        target: String,
        /// The view of a block.
        #[serde(default)]
        at: At,
        /// Light or dark.
        #[serde(default)]
        theme: ThemeName,
    },
    /// The kernels of the library.
    Kernels {},
    /// The PTX of any compiler.
    Ptx {
        /// The text and its launch.
        launch: PtxLaunch,
    },
}

/// A text of PTX, and how an entry of it is launched.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PtxLaunch {
    /// The text.
    pub text: String,
    /// The entry; the first of the text if empty.
    #[serde(default)]
    pub entry: String,
    /// The blocks of the grid.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    #[serde(default)]
    pub shared: u64,
    /// The arguments, as the command takes them; without, only the entries are told.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// A question about a kernel.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// Its plan, its tensors and its tiles.
    Plan,
    /// A run on the interpreter.
    Check,
    /// Its PTX.
    Ptx,
    /// Its cost.
    Cost,
    /// A block of it, statement by statement.
    Steps,
}

/// The view of a block of a kernel.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct At {
    /// The block of the grid.
    pub block: [u32; 3],
    /// The number of steps.
    pub step: usize,
    /// Instead: the number of steps that access memory.
    pub access: Option<usize>,
    /// The thread whose registers are shown.
    pub thread: u32,
    /// Whether asynchronous copies complete immediately, not when they are waited for.
    pub early: bool,
    /// Whether tensors are shown as a whole, without their values.
    pub whole: bool,
    /// The access to shared memory whose banks are shown; the one with the most wavefronts if
    /// missing.
    pub request: Option<usize>,
}

/// Light, dark, or the preference of the reader.
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
    /// The picture that the program suggests.
    #[default]
    Auto,
    /// A grid of offsets.
    Offsets,
    /// A tile: the thread and value index of each element.
    ThreadValue,
    /// The threads that read and those that write each element.
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
    /// Bank conflicts of shared memory.
    Banks,
    /// Sectors and lines of global memory.
    Sectors,
    /// Changes that cost less in shared memory.
    Suggest,
}

/// The view of a program.
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

/// The choices of index arithmetic.
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
