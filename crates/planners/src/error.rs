//! Why there is no plan.

use std::fmt;

use tilewright_kernel::KernelError;
use tilewright_kernel::interpret::SetupError;
use tilewright_layout::atoms::AtomError;
use tilewright_layout::{LayoutError, nearest};

/// Why there is no plan for a kernel.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// E0931: two tensors that should have the same number of elements.
    Sizes {
        /// Elements of the source.
        source: i64,
        /// Elements of the destination.
        destination: i64,
    },
    /// E0932: a destination in which two elements have the same offset.
    Overlap {
        /// Its layout.
        layout: String,
    },
    /// E0933: a layout that reaches before the beginning of its tensor.
    Before {
        /// The layout.
        layout: String,
        /// Its smallest offset.
        least: i64,
    },
    /// E0934: a composed layout whose outer map is not a swizzle.
    Kind {
        /// The layout.
        layout: String,
    },
    /// E0935: more elements or blocks than a launch takes.
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The number that was asked for.
        asked: i64,
        /// The largest number that a launch takes.
        limit: i64,
    },
    /// E0936: a kernel, a size or a type that the library does not have.
    Unknown {
        /// What it should be: `kernel`, `size`, `type`.
        what: &'static str,
        /// What was given.
        given: String,
        /// The names that exist.
        known: String,
    },
    /// E0938: tensors of a map whose shapes differ.
    Shape {
        /// The layout of an input.
        layout: String,
        /// The shape of the output.
        shape: String,
    },
    /// E0939: a text that is not an expression.
    Text {
        /// The text.
        text: String,
        /// The offset in bytes at which reading failed.
        at: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// E0940: a GEMM plan that cannot be carried out.
    Plan {
        /// The reason.
        because: &'static str,
    },
    /// E0941: an operand of a GEMM that is neither a matrix nor a batch of matrices.
    Rank {
        /// Its layout.
        layout: String,
    },
    /// E0942: operands of a GEMM whose extents do not match.
    Extents {
        /// The shape of A.
        a: String,
        /// The shape of B.
        b: String,
        /// The shape of D.
        d: String,
    },
    /// E0943: two features of a GEMM that no kernel combines.
    Together {
        /// The feature that is refused.
        what: &'static str,
        /// The feature that the GEMM already has.
        with: &'static str,
    },
    /// E0944: a problem of a list that differs from the first one where it must not.
    Unlike {
        /// Its index, counted from 0.
        number: usize,
        /// What differs.
        what: &'static str,
        /// Its value.
        given: String,
        /// The value of the first problem.
        first: String,
    },
    /// E0945: a convolution window that is larger than the padded image, or a window with a number
    /// that is out of range.
    Window {
        /// The window.
        window: String,
        /// Columns and rows of an image, without padding.
        image: [i64; 2],
    },
    /// E0937: a size that is not positive.
    Size {
        /// The name of the size.
        name: String,
        /// The value that was given.
        given: i64,
    },
    /// Sizes that the kernel cannot be launched with.
    Launch(SetupError),
    /// The algebra refused.
    Layout(LayoutError),
    /// An instruction or a tiling was refused.
    Atom(AtomError),
    /// The kernel was refused.
    Kernel(KernelError),
}

impl From<AtomError> for PlanError {
    fn from(error: AtomError) -> PlanError {
        match error {
            AtomError::Layout(error) => PlanError::Layout(error),
            error => PlanError::Atom(error),
        }
    }
}

tilewright_layout::from_variants!(PlanError: Kernel(KernelError), Launch(SetupError));

tilewright_layout::refusal! {
    PlanError from Layout of Launch of Atom of Kernel:
    Sizes "E0931", Overlap "E0932", Before "E0933", Kind "E0934", TooLarge "E0935", Unknown "E0936",
    Size "E0937", Shape "E0938", Text "E0939", Plan "E0940", Rank "E0941", Extents "E0942",
    Together "E0943", Unlike "E0944", Window "E0945",
}

impl PlanError {
    /// What would help.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            PlanError::Sizes { .. } => "give both the same number of elements".to_string(),
            PlanError::Shape { .. } => {
                "give it the shape of the output, with strides of 0 where it has fewer elements".to_string()
            }
            PlanError::Overlap { .. } => "write to a layout that is injective".to_string(),
            PlanError::Before { .. } => "reverse the mode, or let the tensor begin further on".to_string(),
            PlanError::Kind { .. } => "write it with integer strides, or with one swizzle in front".to_string(),
            PlanError::Text { .. } => "write it as `relu(2 * x + bias)`".to_string(),
            PlanError::Unknown { given, known, .. } => match meant(given, known) {
                Some(name) => format!("did you mean '{name}'? There are {known}"),
                None => format!("there are {known}"),
            },
            PlanError::Size { .. } => {
                "give a size of at least 1; a tensor without elements needs no kernel".to_string()
            }
            PlanError::Plan { .. } => "change the plan, or let the model choose one".to_string(),
            PlanError::TooLarge { .. } => "cut the tensor, and launch once for each part".to_string(),
            PlanError::Rank { .. } => {
                "give (rows,columns) or (rows,columns,matrices); each mode may be nested".to_string()
            }
            PlanError::Extents { .. } => {
                "give A as (M,K), B as (N,K) and D as (M,N), each with the same matrices".to_string()
            }
            PlanError::Together { what, .. } => format!("leave out {what}, and compute them in a separate kernel"),
            PlanError::Unlike { .. } => {
                "give the problems of a list the same types, epilogue function and gated pairs, or split the list"
                    .to_string()
            }
            PlanError::Window { .. } => {
                "give filters of at least 1 x 1, strides and dilations of at least 1, padding of at least 0, and a \
                 window that is no larger than the padded image"
                    .to_string()
            }
            PlanError::Launch(error) => return error.help(),
            PlanError::Layout(error) => return error.help().map(|help| help.to_string()),
            PlanError::Atom(error) => return error.help(),
            PlanError::Kernel(error) => return error.help(),
        })
    }
}

/// The name in a list that a misspelt name was probably meant as. Short names, of types and
/// machines, are too similar to each other, so for them only a difference in case counts.
fn meant<'n>(given: &str, known: &'n str) -> Option<&'n str> {
    /// The length up to which a name counts as short.
    const SHORT: usize = 4;
    let names = || known.split(", ");
    let same = names().find(|name| name.eq_ignore_ascii_case(given));
    same.or_else(|| nearest(given, names(), 1).first().copied().filter(|_| given.len() > SHORT))
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Sizes { source, destination } => {
                write!(f, "the source has {source} elements, the destination {destination}")
            }
            PlanError::Shape { layout, shape } => write!(f, "{layout} has another shape than the output, {shape}"),
            PlanError::Overlap { layout } => write!(f, "two elements of {layout} have the same offset"),
            PlanError::Before { layout, least } => {
                write!(f, "{layout} reaches offset {least}, before its tensor begins")
            }
            PlanError::Kind { layout } => write!(f, "kernels do not take {layout}: its outer map is not a swizzle"),
            PlanError::TooLarge { what, asked, limit } => write!(f, "{asked} {what}, where a launch takes {limit}"),
            PlanError::Text { text, at, expected } => write!(f, "`{text}` at {at}: {expected} is missing"),
            PlanError::Plan { because } => write!(f, "the plan cannot be carried out: {because}"),
            PlanError::Unknown { what, given, .. } if given.is_empty() => write!(f, "no {what} has an empty name"),
            PlanError::Unknown { what, given, .. } => write!(f, "no {what} is called {given}"),
            PlanError::Size { name, given } => {
                write!(f, "the size {name} is {given}, and a kernel has at least one element")
            }
            PlanError::Rank { layout } => write!(f, "{layout} is no matrix, and no batch of matrices"),
            PlanError::Extents { a, b, d } => write!(f, "A {a} and B {b} do not make D {d}"),
            PlanError::Together { what, with } => write!(f, "a GEMM with {with} has no {what}"),
            PlanError::Unlike { number, what, given, first } => {
                write!(f, "problem {number} of the list differs from the first in {what}: {given}, not {first}")
            }
            PlanError::Window { window, image: [columns, rows] } => {
                write!(f, "images of {columns} x {rows} have no windows of {window}")
            }
            PlanError::Launch(error) => error.fmt(f),
            PlanError::Layout(error) => error.fmt(f),
            PlanError::Atom(error) => error.fmt(f),
            PlanError::Kernel(error) => error.fmt(f),
        }
    }
}
