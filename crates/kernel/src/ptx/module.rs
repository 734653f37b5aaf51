//! The frame of a module: directives and declarations around the instructions of its kernel.

use std::fmt::Write as _;

use super::writer::{Writer, kind, letter, name};
use super::{Feature, PtxError};
use crate::program::SourceId;
use crate::program::operation::Operation;
use crate::program::register::Width;
use crate::program::scalar::{COUNTS, Scalar};

/// The size of a tensor map; and the size of the arguments that all PTX versions allow, less the
/// padding of maps.
const MAP_BYTES: u64 = 128;
const FEW_ARGUMENT_BYTES: u64 = 4352 - 64;

impl Writer<'_> {
    /// The text of the module. The instructions are printed first, because the text before them
    /// depends on them: the version of the language, and the registers.
    pub(super) fn module(mut self) -> Result<String, PtxError> {
        let program = self.program;
        if program.cluster_size() > 1 {
            self.has(Feature::Clusters, "a cluster", SourceId(0))?;
        }
        self.steps(&program.body)?;
        if self.argument_bytes() > FEW_ARGUMENT_BYTES {
            self.needs(8, 1);
        }
        self.wanted.sort_unstable();
        self.wanted.dedup();
        let mut text = self.header();
        let _ = write!(text, ".visible .entry {}(\n{})\n", program.name, self.parameters());
        text.push_str(&self.directives());
        text.push_str("{\n");
        text.push_str(&self.registers());
        text.push_str(&self.bases());
        text.push_str(&self.wanted_constants());
        text.push_str(&self.body);
        text.push_str("    ret;\n}\n");
        Ok(text)
    }

    /// The number of bytes of the launch arguments.
    fn argument_bytes(&self) -> u64 {
        let program = self.program;
        let numbers = program.scalars.iter().map(|scalar| u64::from(scalar.bits()) / 8).sum::<u64>();
        8 * program.tensors().count() as u64 + numbers + MAP_BYTES * program.maps.len() as u64
    }

    /// The version, the target, and the module's variables.
    fn header(&self) -> String {
        let (target, least) = match self.target.of_family() {
            Some(family) if self.of_family => family,
            _ => (self.target.name(), self.version),
        };
        let (major, minor) = self.version.max(least);
        let mut text = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n\n");
        if self.uses_shared {
            text.push_str(".extern .shared .align 1024 .b8 shared_memory[];\n\n");
        }
        if self.program.has_count() {
            let _ = writeln!(text, ".global .align 4 .b32 {}[{COUNTS}];\n", self.counts());
        }
        text
    }

    /// The parameters of the kernel: tensors, numbers and tensor maps, one line for each.
    fn parameters(&self) -> String {
        let mut parameters: Vec<(String, Option<String>)> = Vec::new();
        for (number, buffer) in self.program.tensors().enumerate() {
            let comment = format!("{}: {} {}", buffer.name, buffer.element, buffer.layout);
            parameters.push((format!(".param .u64 tensor{number}"), Some(comment)));
        }
        for (number, scalar) in self.program.scalars.iter().enumerate() {
            let comment = match scalar {
                Scalar::Count => Some("which of the counts: one that no launch has that may run at the same time"),
                _ => None,
            };
            let parameter = format!(".param .b{} scalar{number}", scalar.bits());
            parameters.push((parameter, comment.map(str::to_string)));
        }
        for number in 0..self.program.maps.len() {
            parameters.push((format!(".param .align 64 .b8 map{number}[{MAP_BYTES}]"), None));
        }
        let mut text = String::new();
        let last = parameters.len().saturating_sub(1);
        for (number, (parameter, comment)) in parameters.iter().enumerate() {
            let comma = if number < last { "," } else { "" };
            let _ = match comment {
                Some(comment) => writeln!(text, "    {parameter}{comma}  // {comment}"),
                None => writeln!(text, "    {parameter}{comma}"),
            };
        }
        text
    }

    /// Directives that hold for every launch: threads, resident blocks, registers, the cluster.
    fn directives(&self) -> String {
        let program = self.program;
        let mut text = format!(".reqntid {}, 1, 1\n", program.threads);
        if program.resident > 1 {
            let _ = writeln!(text, ".minnctapersm {}", program.resident);
        }
        let shares = program.has(|operation| matches!(operation, Operation::SetRegisters { .. }));
        // Without it, ptxas (12.9, 13.5) gave 288 threads with roles 32 registers each, and spilled
        // the others.
        let by_warps = program.has(|operation| matches!(operation, Operation::NamedBarrier { .. }))
            && !program.has(|operation| matches!(operation, Operation::Wgmma { .. }));
        if shares {
            // If roles reallocate registers, the number at launch must be known.
            let _ = writeln!(text, ".maxnreg {}", program.entry_registers());
        } else if by_warps {
            let _ = writeln!(text, ".maxnreg {}", program.quarter_registers());
        }
        if program.cluster_size() > 1 {
            let [x, y, z] = program.cluster;
            let _ = writeln!(text, ".reqnctapercluster {x}, {y}, {z}");
        }
        text
    }

    /// The declarations of registers: those of values, and temporary ones, by width.
    fn registers(&self) -> String {
        let mut text = String::new();
        for (width, further) in Width::ALL.into_iter().zip(self.further) {
            let (kind, letter) = (kind(width), letter(width));
            let _ = writeln!(text, "    .reg .{kind} %{letter}<{}>;", self.program.widths.len().max(1));
            if further > 0 {
                let _ = writeln!(text, "    .reg .{kind} %{letter}t<{further}>;");
            }
        }
        text
    }

    /// The base addresses of tensors and of shared memory, in registers.
    fn bases(&self) -> String {
        let mut text = String::new();
        let tensors = self.program.tensors().count();
        if tensors > 0 {
            let _ = writeln!(text, "    .reg .b64 %base<{tensors}>;");
        }
        for number in 0..tensors {
            let _ = writeln!(text, "    ld.param.u64 %base{number}, [tensor{number}];");
            let _ = writeln!(text, "    cvta.to.global.u64 %base{number}, %base{number};");
        }
        if self.uses_shared {
            text.push_str("    .reg .b32 %shared;\n    mov.u32 %shared, shared_memory;\n");
        }
        text
    }

    /// The constants that instructions need in registers.
    fn wanted_constants(&self) -> String {
        let mut text = String::new();
        for register in &self.wanted {
            let bits = self.constants[register];
            let width = self.program.width(*register);
            let name = name(*register, width);
            let _ = match width {
                Width::Predicate => writeln!(text, "    setp.ne.u32 {name}, {bits}, 0;"),
                width => writeln!(text, "    mov.{} {name}, {bits:#x};", kind(width)),
            };
        }
        text
    }
}
