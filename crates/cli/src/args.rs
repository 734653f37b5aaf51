//! The command line: what can be typed, and the help that says so.

use clap::{ColorChoice, Parser, Subcommand};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  tilewright tour                                    one tiling problem, end to end
  tilewright eval '(6,2):(8,2) o (4,3):(3,1)'        the layout of a composition
  tilewright show '((2,2),(2,4)):((1,4),(2,8))'      a picture of offsets, and the facts
  tilewright check '(4,2):(2,1)' '(2,2,2):(2,4,1)'   are they the same function?
  tilewright explain E0107                           what an error means
  printf '8:2 o 4:2\\n4:1 o 2:2\\n' | tilewright eval -  one result for each line

A layout is shape:stride, as in ((2,2),3):((24,2),8). `tilewright functions` lists the language.
With --json every command answers with JSON objects, one on a line, failures included.

Exit status: 0 if all went well; 1 if the answer is no, an expression is refused, or a file cannot
be read or written; 2 for wrong usage; 3 if a check found nothing wrong, but looked only at a part.";

/// Layouts: evaluate, draw, check and explain them.
#[derive(Debug, Parser)]
#[command(name = "tilewright", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Args {
    /// When to use colour; `auto` asks whether the output is a terminal, and respects NO_COLOR.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,

    /// Answer with JSON objects, one on a line.
    #[arg(long, global = true)]
    pub json: bool,

    /// Refuse coordinates outside of a layout and tiles that go over its end.
    #[arg(long, global = true)]
    pub strict: bool,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the value of an expression, or of each line of a file or of standard input.
    #[command(after_help = "\
Examples:
  tilewright eval '(6,2):(8,2) o (4,3):(3,1)'
  tilewright eval 'A = (4,8):(8,1); A.logical_divide([2:1;4:1])'
  tilewright eval --json 'complement(4:2, 24)'
  tilewright eval --file programs.txt
  tilewright eval - < programs.txt

A file and standard input hold one program a line and give one line for each: its value, `error: `
and the message, or nothing for a line that is empty or a comment. Each answer is written before
more input is waited for.

With --json each result is an object on one line: `text` (canonical) and `kind`, for a layout also
`shape`, `stride`, `size`, `cosize`, `rank` and `depth`. An error is an object `error` with `code`,
`message`, `start`, `end` (bytes of the program), `help` and `source`. A line without a program
gives null.")]
    Eval {
        #[command(flatten)]
        options: crate::eval::EvalOptions,
    },

    /// Evaluate expressions interactively.
    Repl,

    /// Draw the offsets of a layout, with its facts below.
    #[command(after_help = "\
Examples:
  tilewright show '(4,8):(8,1)'
  tilewright show '((2,2),(2,4)):((1,4),(2,8))'
  tilewright show 'S<2,0,3> o 0 o (8,8):(8,1)'
  tilewright show --table 'zipped_divide((4,6):(6,1), [2:1;3:1])'

Rows are mode 0 and columns are mode 1; modes 2 and 3 give one grid for each of their indices.
The ticks of a nested mode have a line for each leaf, and rules stand where a leaf starts again.")]
    Show {
        /// An expression whose value is a layout.
        #[arg(allow_hyphen_values = true)]
        expression: String,
        /// List index, coordinate and offset instead of drawing a grid.
        #[arg(long)]
        table: bool,
        /// Draw everything: up to a million cells, or four million lines of a table.
        #[arg(long)]
        all: bool,
    },

    /// Draw layouts: as SVG, HTML, PNG, PDF, TikZ, or in the terminal.
    #[command(after_help = "\
Examples:
  tilewright draw '(4,8):(8,1)' -o rows.svg
  tilewright draw '(4,8):(8,1)' '(4,8):(1,4)' --title 'Row and column order' -o both.pdf
  tilewright draw 'zipped_divide((8,8):(8,1), [2:1;4:1])'
  tilewright draw 'S<3,3,3> o 0 o (8,64):(64,1)' --element-bits 16 -o swizzle.png
  tilewright draw '((4,8),(2,2)):((32,1),(16,8))' --tile '(16,8)' -o c.html
  tilewright draw SM80_16x8x16_F32F16F16F32_TN -o mma.svg
  tilewright draw SM80_16x8x16_F32F16F16F32_TN --atoms '(2,2)' -o tiled.svg
  tilewright draw SM75_U32x4_LDSM_N -o ldmatrix.svg
  tilewright draw '(8,8):(8,1)' --slice '(2,_)' --slice '(_,5)'
  tilewright draw 'pullback((6,4) -> (4,6,6) : (2,*), (4,(2,3),6))'
  tilewright draw '((2,2),3):((6,1),2)' --kind span

Several layouts stand side by side. An expression that composes, complements, divides or multiplies
shows what goes in and what comes out, for layouts and for morphisms; a swizzled layout is shown
before and after, coloured by bank; with --tile a layout is read as (thread, value) to a place in
the tile, two as the two sides of a copy, three as the operands A, B and C of a matrix product.
--kind says it where that is not meant: --kind offsets draws the result alone.

The extension of FILE is the format: .svg, .html (a click isolates a thread), .png, .pdf, .tex or
.txt; without -o the picture goes to the terminal. Large grids become images, or are cut.")]
    Draw {
        /// Expressions whose values are layouts, or the name of a matrix or copy instruction.
        #[arg(required = true, value_name = "EXPRESSION")]
        expressions: Vec<String>,
        #[command(flatten)]
        options: crate::draw::DrawOptions,
    },

    /// Count the bank conflicts of an access to a tile in shared memory.
    #[command(after_help = "\
Examples:
  tilewright banks '(8,64):(64,1)' --width 16 --vector 8
  tilewright banks 'S<3,3,3> o 0 o (8,64):(64,1)' --width 16 --vector 8
  tilewright banks '(32,32):(32,1)' --width 32 --access rows --access columns
  tilewright banks 'S<3,3,3> o 0 o (128,64):(64,1)' --width 16 --access ldmatrix.x4
  tilewright banks '(64,64):(64,1)' --width 16 --vector 2 --access '((4,8),2):((128,1),64)'
  tilewright banks '(8,64):(M{div=64},1)' --width 16 --vector 8
  tilewright banks '(32,32):(32,1)' --width 32 --access columns -o columns.svg

An access is `threads` (mode 0 of the layout is the thread, the rest its values; the default),
`rows` or `columns` (lanes go along a row or down a column), `ldmatrix.x1`, `.x2` or `.x4`, also
`stmatrix` and with `.trans` (rows of 16 bytes along mode 0), or a layout from (thread, value) to
the index of an element. `rows:8` takes 8 elements at a time, whatever --vector says.

A request is served in phases: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16. A phase takes as many
wavefronts as there are different words wanted of one bank; lanes that want the same word share it.")]
    Banks {
        /// An expression whose value is a layout of elements in shared memory.
        #[arg(allow_hyphen_values = true)]
        layout: String,
        #[command(flatten)]
        options: crate::analysis::banks::BanksOptions,
    },

    /// Count the sectors and cache lines of an access to global memory.
    #[command(after_help = "\
Examples:
  tilewright access '(32,64):(64,1)' --width 32 --access rows --access columns
  tilewright access '(32,8):(8,1)' --width 16
  tilewright access '(128,64):(512,1)' --width 16 --access rows:8 -o rows.svg
  tilewright access '(1024,512):(512,1)' --width 16 --access rows:8 --box '(128,64)'

Accesses are written as for `tilewright banks`. A request moves the sectors of 32 bytes that its
lanes touch, four to a line of 128; its efficiency is the part of their bytes that somebody asked
for. The output also names the widest load that the layout allows each thread.

With --box, and --shared for how the box lies in shared memory, the output says whether a bulk copy
(TMA) can move it, or which rule it breaks.")]
    Access {
        /// An expression whose value is a layout of elements in global memory.
        #[arg(allow_hyphen_values = true)]
        layout: String,
        #[command(flatten)]
        options: crate::analysis::access::AccessOptions,
    },

    /// Find the swizzle, padding or order of threads with which accesses to shared memory cost
    /// less.
    #[command(after_help = "\
Examples:
  tilewright suggest '(128,64):(64,1)' --width 16 --access rows:8 --access ldmatrix.x4
  tilewright suggest '(32,32):(32,1)' --access rows --access columns
  tilewright suggest '(64,32):(32,1)' --width 16 --access rows:8 --access ldmatrix.x4 --json
  tilewright suggest 'S<1,3,3> o 0 o (128,64):(64,1)' --width 16 --access ldmatrix.x4
  tilewright suggest '(32,32):(32,1)' --access columns -o before-and-after.svg

Accesses are written as for `tilewright banks`; all of them are counted together. Each change is the
best of its kind: every swizzle is counted, and every padding at the multiples of one stride of the
layout; linear maps over bits are searched with a bound. What is as good as the words wanted allow
is said to be, as then nothing does better.")]
    Suggest {
        /// An expression whose value is a layout of elements in shared memory. A swizzle of the
        /// layout may be replaced by another.
        #[arg(allow_hyphen_values = true)]
        layout: String,
        #[command(flatten)]
        options: crate::analysis::suggest::SuggestOptions,
    },

    /// Tell what a layout covers of memory, and how much must move to get to another.
    #[command(after_help = "\
Examples:
  tilewright footprint '(4,3):(1,6)'
  tilewright footprint --cycles '(3,4):(4,1)'
  tilewright footprint '(8,8):(8,1)' 'S<3,0,3> o 0 o (8,8):(8,1)'
  tilewright footprint '(4,6):(1,6)' -o memory.svg

Offsets count elements. A layout without gaps and repeats is a permutation of its indices, with
cycles, an order and a parity.")]
    Footprint {
        /// An expression whose value is a layout.
        #[arg(allow_hyphen_values = true)]
        layout: String,
        /// Another layout of the same elements.
        #[arg(allow_hyphen_values = true)]
        other: Option<String>,
        #[command(flatten)]
        options: crate::analysis::footprint::FootprintOptions,
    },

    /// Check an equality of two layouts, or the law of an operation.
    #[command(after_help = "\
Examples:
  tilewright check '(4,2):(2,1)' '(2,2,2):(2,4,1)'     are these the same function?
  tilewright check '(6,2):(8,2) o (4,3):(3,1)'         does R(c) = A(B(c)) hold?
  tilewright check 'complement(4:2, 24)'               disjoint, ordered, and filling [0,24)?
  tilewright check 'is_injective((4,8):(8,1))'         is this true?

Exit status 1 if it does not hold; then the first coordinate at which it fails is shown. Exit
status 3 if nothing was found wrong, but indices or numbers were left out: then it may not hold.")]
    Check {
        /// An expression: its outermost operation is checked; with OTHER, it is compared.
        #[arg(allow_hyphen_values = true)]
        expression: String,
        /// The layout that the first expression should equal, as a function.
        #[arg(allow_hyphen_values = true)]
        other: Option<String>,
    },

    /// Write index arithmetic as source text, in Rust, C, CUDA, Python or Triton.
    #[command(after_help = "\
Examples:
  tilewright emit --lang cuda 'zipped_divide((M{div=128},K):(K,1), [128:1;64:1])'
  tilewright emit --lang rust --at index '(4,8):(8,1)'
  tilewright emit --lang python --at index --form statements 'S<3,3,3> o 0 o (8,64):(64,1)'
  tilewright emit --lang c --coordinate --at index --name idx2crd '(8,(M,N))'
  tilewright emit --lang triton --inside '(M,8)' '((64,ceil(M/64)),8):((1@0,64@0),1@1)'

The text computes what the layout gives, for all values that the facts and the promise admit.
What is known not to be negative is never divided by a power of two. With --int 32 the facts
must show that every number on the way fits.")]
    Emit {
        /// An expression whose value is a layout, a swizzle or a shape.
        #[arg(allow_hyphen_values = true)]
        expression: String,
        #[command(flatten)]
        options: crate::emit::EmitOptions,
    },

    /// Write a layout in the spelling of another system.
    #[command(after_help = crate::write::WRITE_EXAMPLES)]
    Write {
        #[command(flatten)]
        options: crate::write::WriteOptions,
    },

    /// Say whether two layouts of any systems are one function, and what moves data between them.
    #[command(after_help = crate::write::SAME_EXAMPLES)]
    Same {
        #[command(flatten)]
        options: crate::write::SameOptions,
    },

    /// Read the layouts in a log, a dump or a compiler error of another system.
    #[command(after_help = crate::read::EXAMPLES)]
    Read {
        #[command(flatten)]
        options: crate::read::ReadOptions,
    },

    /// Move the elements of a NumPy array to another layout.
    #[command(after_help = crate::relayout::EXAMPLES)]
    Relayout {
        #[command(flatten)]
        options: crate::relayout::RelayoutOptions,
    },

    /// Run the PTX of any compiler without a GPU, and find races, hangs and wrong accesses.
    #[command(after_help = crate::sanitize::EXAMPLES)]
    Sanitize {
        #[command(flatten)]
        options: crate::sanitize::SanitizeOptions,
    },

    /// Kernels for GPUs: list them, show their plans, write them as PTX, check them on any machine,
    /// time them on a GPU.
    #[command(after_help = crate::kernel::EXAMPLES)]
    Kernel {
        #[command(subcommand)]
        action: crate::kernel::KernelAction,
    },

    /// Multiply matrices: print the tilings, check the result and time it.
    #[command(after_help = crate::gemm::EXAMPLES)]
    Gemm {
        #[command(flatten)]
        options: Box<crate::gemm::GemmOptions>,
    },

    /// Measure the plans of GEMMs and kernels on the first GPU, and keep the fastest of each.
    #[command(after_help = crate::tune::EXAMPLES)]
    Tune {
        #[command(flatten)]
        options: crate::tune::TuneCommandOptions,
    },

    /// Measure this GPU in a report that can be sent, and compare the reports of several GPUs.
    #[command(after_help = crate::bench::EXAMPLES)]
    Bench {
        #[command(subcommand)]
        action: crate::bench::BenchAction,
    },

    /// Tensors sharded over devices: who holds what, and how to get from one layout to another.
    #[command(after_help = crate::mesh::EXAMPLES)]
    Mesh {
        #[command(subcommand)]
        action: crate::mesh::MeshAction,
    },

    /// Start a program as several processes of this machine, which know each other as torchrun's
    /// do.
    #[command(after_help = "\
Examples:
  tilewright launch -n 2 tilewright mesh run tp=2 '(4,2):(1,1@tp)' '(4,2):(1,4) copied 2:1@tp'
  tilewright launch -n 4 python train.py

Each process gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. When
one fails, the others have ten seconds to end by themselves.")]
    Launch {
        #[command(flatten)]
        options: crate::launch::LaunchOptions,
    },

    /// Explain an error code, or how the value of an expression comes about, with pictures.
    #[command(after_help = "\
Examples:
  tilewright explain E0107
  tilewright explain 'logical_divide((4,6):(1,4), [2:1;3:1])'
  tilewright explain '(6,2):(8,2) o (4,3):(3,1)' -o composition.html
  tilewright explain '(6,2):(1,7) o (3,2):(2,3)'      why there is none
  tilewright explain 'A = ((2,2),8):((1,4),8); A((1,0),3)'

Each line is an expression over the lines before it. What cannot be drawn is explained in words
alone; a refusal is explained up to the step that fails.")]
    Explain {
        #[command(flatten)]
        options: crate::explain::ExplainOptions,
    },

    /// List the functions of the expression language, or describe one.
    Functions {
        /// The function to describe.
        name: Option<String>,
    },

    /// List matrix and copy instructions, or show who holds what in one.
    #[command(after_help = "\
Examples:
  tilewright atoms
  tilewright atoms ldsm
  tilewright atoms --arch SM80 --type BF16
  tilewright atoms SM80_16x8x16_F32F16F16F32_TN
  tilewright atoms SM90_64x128x16_F32BF16BF16_RS --all

In a table, T5 V1 is value 1 of thread 5; rows and columns are the two modes of the operand.")]
    Atoms {
        #[command(flatten)]
        options: crate::atoms::AtomsOptions,
    },

    /// Show a layout as a morphism of tuples: modes, axes of memory, and arrows between them.
    #[command(after_help = "\
Examples:
  tilewright morphism '(32,(2,2)):(192,(24,3))'
  tilewright morphism '(4,5) -> (4,16,5) : (1,3)'
  tilewright morphism '(8,16):(16,1)' -o rows.svg
  tilewright morphism 'pullback((6,4) -> (4,6,6) : (2,*), (4,(2,3),6))'
  tilewright morphism --span '((2,2),3):((6,1),2)'

Entries are drawn upward, the fastest at the bottom. An arrow leads from a mode to the axis that it
walks along, `*` marks a mode of stride 0, and beside each axis stands its stride. A layout that is
not tractable has no such diagram; `tilewright tractable` says why. A pullback or a pushforward
shows both tuples as they were, outside, and as they are cut. As a span, the sizes of the modes are
cut into their leaves, which are then moved.")]
    Morphism {
        /// An expression whose value is a layout or a morphism.
        #[arg(allow_hyphen_values = true)]
        expression: String,
        /// Draw a span: from the sizes of the modes through their leaves to memory.
        #[arg(long, conflicts_with = "json")]
        span: bool,
        #[command(flatten)]
        options: crate::morphism::PictureOptions,
    },

    /// Compose two layouts: B is applied first.
    #[command(after_help = "\
Examples:
  tilewright compose '(6,2):(8,2)' '(4,3):(3,1)'
  tilewright compose --by-refinement '(12,3,6):(1,72,12)' '(6,6):(1,6)'
  tilewright compose --by-refinement '8:1' '2:3'
  tilewright compose --by-refinement '(12,3,6):(1,72,12)' '(6,6):(1,6)' -o steps.svg

By refinement, both layouts are taken as morphisms, cut until they meet, and composed by following
arrows. Where that does not apply although the composite exists, the output says why.")]
    Compose {
        /// An expression for the layout that is applied second.
        #[arg(value_name = "A", allow_hyphen_values = true)]
        outer: String,
        /// An expression for the layout that is applied first.
        #[arg(value_name = "B", allow_hyphen_values = true)]
        inner: String,
        /// Show how the composite comes about by mutual refinement of morphisms.
        #[arg(long)]
        by_refinement: bool,
        #[command(flatten)]
        options: crate::morphism::PictureOptions,
    },

    /// Refine two tuples until the leaves of the first begin the second, or cut an end of a
    /// morphism.
    #[command(after_help = "\
Examples:
  tilewright refine '(6,6)' '(12,3,6)'
  tilewright refine '(6,6)' '(2,6,6)' -o refinement.svg
  tilewright refine '(6,4) -> (4,6,6) : (2,*)' '(4,(2,3),6)'
  tilewright refine '((6,2),3)' '(12,3) -> (3,12) : (2,1)'

A morphism before a tuple has its codomain cut so, and its domain as that requires: the pullback.
After a tuple it has its domain cut so, and its codomain as that requires: the pushforward.")]
    Refine {
        /// An expression for the tuple that should divide the other, or for a morphism.
        #[arg(value_name = "S")]
        first: String,
        /// An expression for the other tuple, or for a morphism.
        #[arg(value_name = "T")]
        second: String,
        #[command(flatten)]
        options: crate::morphism::PictureOptions,
    },

    /// Say whether a layout is encoded by a morphism, and if not, which modes prevent it.
    #[command(after_help = "\
Examples:
  tilewright tractable '(32,(2,2)):(192,(24,3))'
  tilewright tractable '((8,8),(5,5)):((8,1),(10,2))'

Exit status 1 if it is not.")]
    Tractable {
        /// An expression whose value is a layout.
        #[arg(allow_hyphen_values = true)]
        expression: String,
    },

    /// Show what layout assignment keeps of layouts: normal form, identity, and which are the same
    #[command(after_help = "\
Examples:
  tilewright candidate '((2,4),64):((64,128),1)' '(8,64):(64,1)' 'S<3,3,3> o 0 o (8,64):(64,1)'
  tilewright candidate '(8,64):(1@0,1@1)'")]
    Candidate {
        /// Expressions whose values are layouts.
        #[arg(required = true)]
        expressions: Vec<String>,
    },

    /// Serve an editor: tile programs as they are typed, layouts of any file on hover.
    #[command(after_help = "\
An editor starts it and speaks the Language Server Protocol with it on standard input and output.
The chapter \"In the editor\" of the book says how VS Code, Neovim and Helix do so.

Exit status 1 if the editor leaves without `shutdown`.")]
    Lsp,

    /// Show layouts in the browser: an editor, pictures, derivations, kernels.
    #[command(after_help = "\
Examples:
  tilewright playground                        serve the page to this machine, and open it
  tilewright playground '(4,8):(8,1) o 8:2'    the same, with this program
  tilewright playground --output page.html     one file that works from disk

The page is the library itself in WebAssembly: it answers as the command does, and loads nothing
from elsewhere.")]
    Playground {
        #[command(flatten)]
        options: crate::playground::PlaygroundOptions,
    },

    /// Work through one tiling problem, printing and checking each layout.
    #[command(after_help = "\
Examples:
  tilewright tour
  tilewright tour --step 4      only the swizzled shared-memory tile")]
    Tour {
        /// Print only this step.
        #[arg(long, value_name = "N")]
        step: Option<usize>,
    },

    /// Print a completion script for a shell.
    #[command(
        after_help = "Example: tilewright completions bash > ~/.local/share/bash-completion/completions/tilewright"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },

    /// Print the manual page, of the command or of one of its subcommands.
    #[command(after_help = "Example: tilewright man > ~/.local/share/man/man1/tilewright.1")]
    Man {
        /// The subcommand to describe.
        command: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    /// Text after the options is wrapped by hand. A longer line would be broken again, and so would
    /// its example.
    #[test]
    fn help_below_the_options_is_as_wide_as_the_rest() {
        let whole = Args::command();
        let mut texts = 0;
        for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
            let Some(text) = command.get_after_help() else { continue };
            for line in text.to_string().lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            texts += 1;
        }
        assert!(texts > 20, "{texts}");
    }
}
