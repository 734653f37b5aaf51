//! Copies before and after a GEMM, and the inner problem between them.
//!
//! Law: the inner problem computes the same D, and TMA can read its operands. An operand that TMA
//! cannot read is first copied to a workspace whose lines are multiples of 16 bytes, along its
//! contiguous mode or else along K. Operands of f32 are split into parts of bf16, side by side
//! along K. A D with folded modes is written to a workspace and copied from there. Everything else
//! is used in place.

mod borders;
mod pack;

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;

use self::pack::behind;
use crate::error::PlanError;
use crate::gemm::access::takes_rows;
use crate::gemm::problem::Problem;
use crate::gemm::problem::blocks::BlockScales;
use crate::gemm::problem::matrix::{Contiguous, Matrix, padded};
use crate::gemm::problem::scales::Scales;
use crate::gemm::step::{ProductTensor, ProductTensors, Step, StepKind};
use crate::relayout::relayout;
use crate::terms::Place;
use crate::units::{BLOCK_THREADS, GRID_BLOCKS};

/// What all problems of a list must have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Alike {
    /// Whether K has to be contiguous in A, and in B.
    pub(crate) along: [bool; 2],
    /// The mode in which bulk copies store D, if they do.
    pub(crate) stored: Option<Contiguous>,
}

/// The most elements of a line that is copied by the kernel for lines: a line has several blocks,
/// and lines are the second axis of the grid.
const MAX_LENGTH: i64 = GRID_BLOCKS * BLOCK_THREADS;

/// A matrix in the layout that the GEMM kernel reads, and the tensor that holds it.
type Located = (Matrix, ProductTensor);

/// A problem that TMA can read, and the kernels around it.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) inner: Problem,
    /// The tensors of the inner problem.
    pub(crate) operands: ProductTensors,
    pub(crate) before: Vec<Step>,
    pub(crate) after: Vec<Step>,
    /// Bytes of each piece of workspace.
    pub(crate) workspaces: Vec<i64>,
}

impl Prepared {
    /// Plans the kernels around a GEMM for a machine.
    pub(crate) fn of(problem: &Problem, machine: &Machine) -> Result<Prepared, PlanError> {
        Prepared::like(problem, machine, Alike::default())
    }

    /// As [`Prepared::of`], for a problem of a list, whose layouts must match those of the other
    /// problems.
    pub(crate) fn like(problem: &Problem, machine: &Machine, alike: Alike) -> Result<Prepared, PlanError> {
        let mut prepared = Prepared {
            inner: problem.clone(),
            operands: ProductTensors {
                a: ProductTensor::A,
                b: ProductTensor::B,
                inputs: Vec::new(),
                scales: Vec::new(),
                d: ProductTensor::D,
            },
            before: Vec::new(),
            after: Vec::new(),
            workspaces: Vec::new(),
        };
        let (problem, first) = &prepared.images(problem, machine)?;
        let exact = problem.operand_type() == Element::F32 && !problem.is_tf32();
        let mut operand_of = |matrix: &Matrix, name: &str, operand: ProductTensor, found, along: bool| match found {
            _ if exact => prepared.parted((matrix, operand, name), machine),
            Ok(Contiguous::Rows) if along => prepared.packed_whole(
                (matrix, operand),
                machine,
                &format!("{name} (K is contiguous in that of other problems)"),
            ),
            Ok(_) => Ok((matrix.clone(), operand)),
            Err(because) => {
                let what = format!("{name} ({because})");
                // For gated pairs, whole rows are copied, which hold both columns of a pair.
                let lined = match problem.pairs() {
                    None if !along || matrix.strides().is_some_and(|[_, across, _]| across == 1) => {
                        prepared.lined(matrix, operand, &what, machine)?
                    }
                    _ => None,
                };
                match lined {
                    Some(packed) => Ok(packed),
                    None => prepared.packed_whole((matrix, operand), machine, &what),
                }
            }
        };
        let found = problem.readable_on(machine);
        // Weights of four bits must have contiguous K.
        let [along_a, along_b] = alike.along.map(|along| along || problem.int4_scales().is_some());
        let (a, of_a) = operand_of(problem.a(), "A", *first, found[0], along_a)?;
        let (b, of_b) = operand_of(problem.b(), "B", ProductTensor::B, found[1], along_b)?;
        (prepared.operands.a, prepared.operands.b) = (of_a, of_b);
        let mut inputs = Vec::new();
        for (number, input) in problem.epilogue().iter().flat_map(|fused| &fused.inputs).enumerate() {
            let operand = ProductTensor::Input(number);
            let (matrix, operand) = match input.strides() {
                Some(_) => (input.clone(), operand),
                None => prepared.packed(
                    (input, operand),
                    machine,
                    &format!("input {} (its modes are folded)", number + 1),
                )?,
            };
            inputs.push(matrix);
            prepared.operands.inputs.push(operand);
        }
        let blocks = problem.blocks().map(|blocks| prepared.block_scales(blocks, machine)).transpose()?;
        if problem.scales().is_some() {
            prepared.operands.scales = vec![ProductTensor::ScalesA, ProductTensor::ScalesB];
        }
        if problem.int4_scales().is_some() {
            prepared.operands.scales = vec![ProductTensor::ScalesB];
        }
        let (d, of_d) = prepared.result(problem, machine, alike.stored)?;
        prepared.operands.d = of_d;
        let inner = problem.moved(a, b, d, inputs)?;
        prepared.inner = match blocks {
            Some(scales) => inner.with_block_scales(scales),
            None => inner,
        };
        Ok(prepared)
    }

    /// Copies scales of blocks that a kernel cannot read in words to lines with zeros at their end.
    fn block_scales(&mut self, blocks: &BlockScales, machine: &Machine) -> Result<Scales, PlanError> {
        let mut of = |is_a: bool| {
            let (from, name) = if is_a { (ProductTensor::ScalesA, "A") } else { (ProductTensor::ScalesB, "B") };
            let matrix = blocks.of(is_a);
            if blocks.is_readable(matrix) {
                return Ok((matrix.clone(), from));
            }
            let what = format!("the scales of {name} (no words along K)");
            if let Some(lined) = self.lined(matrix, from, &what, machine)? {
                return Ok(lined);
            }
            let (packed, to) = self.packed((matrix, from), machine, &what)?;
            if blocks.is_readable(&packed) {
                return Ok((packed, to));
            }
            let because = "lines of scales are too many, or too long, to be padded";
            self.lined(&packed, to, &what, machine)?.ok_or(PlanError::Plan { because })
        };
        let [(a, of_a), (b, of_b)] = [of(true)?, of(false)?];
        self.operands.scales = vec![of_a, of_b];
        Ok(Scales { a, b })
    }

    /// Copies images whose windows TMA cannot read to a workspace: with contiguous channels, and
    /// with padding if that is not enough. Returns the GEMM of these images and their tensor, or
    /// both unchanged if nothing must be copied.
    fn images(&mut self, problem: &Problem, machine: &Machine) -> Result<(Problem, ProductTensor), PlanError> {
        let as_it_was = (problem.clone(), ProductTensor::A);
        let exact = problem.operand_type() == Element::F32 && !problem.is_tf32();
        let is_implicit = |problem: &Problem| problem.images().is_none() || problem.readable_on(machine)[0].is_ok();
        let Some(images) = problem.images().filter(|_| exact || !is_implicit(problem)) else {
            return Ok(as_it_was);
        };
        let (element, mut images, mut from) = (images.matrix().element(), images.clone(), ProductTensor::A);
        if !images.has_contiguous_channels() {
            let last = images.channels_last()?;
            let (given, moved) = (images.matrix(), last.matrix());
            let kernel = relayout(machine, place(given.layout(), given.offset())?, element, moved.layout(), element)?;
            let to = self.workspace(moved.reach()?, element);
            let does = "copies the images to contiguous channels".to_string();
            self.before.push(Step::new(StepKind::Move, kernel.kernel().clone(), vec![from, to], does));
            (images, from) = (last, to);
            let inner = problem.of_windows(&images)?;
            if !exact && is_implicit(&inner) {
                return Ok((inner, from));
            }
        }
        let to = self.workspace(images.elements(), element);
        let does = "copies the images with their padding".to_string();
        self.before.push(Step::new(StepKind::Move, images.border(machine)?, vec![from, to], does));
        Ok((problem.with_a(problem.a().clone(), None), to))
    }

    /// A new workspace of `elements` elements.
    fn workspace(&mut self, elements: i64, element: Element) -> ProductTensor {
        self.workspaces.push(elements.saturating_mul(element.bytes().into()));
        ProductTensor::Workspace(self.workspaces.len() - 1)
    }

    /// Splits an operand of f32 into parts of bf16 whose products approximate those of f32.
    fn parted(
        &mut self,
        (matrix, from, name): (&Matrix, ProductTensor, &str),
        machine: &Machine,
    ) -> Result<Located, PlanError> {
        let [rows, columns, matrices] = matrix.extents();
        let count = if matrix.is_batch() { matrices } else { 1 };
        let whole = padded(columns, Element::Bf16);
        if count > GRID_BLOCKS || whole > MAX_LENGTH {
            let (asked, limit) = if count > GRID_BLOCKS { (count, GRID_BLOCKS) } else { (whole, MAX_LENGTH) };
            return Err(PlanError::TooLarge { what: "matrices, or steps along K, of f32", asked, limit });
        }
        let (from, line, step, offset) = match matrix.strides() {
            Some([line, 1, step]) if line >= 0 && step >= 0 => (from, line, step, matrix.offset()),
            _ => {
                let what = format!("{name} (its lines are not split in place)");
                let (packed, to) = self.packed((matrix, from), machine, &what)?;
                let strides = packed.strides().unwrap_or([0, 1, 0]);
                (to, strides[0], strides[2], 0)
            }
        };
        let parts = pack::PARTS[usize::from(name == "B")];
        let kernel = pack::split([rows, columns, count], [line, step], offset, parts)?;
        let all = whole * parts.len() as i64;
        let apart = rows.saturating_mul(all);
        let to = self.workspace(apart.saturating_mul(count), Element::Bf16);
        let does = format!("splits {name} into three parts of bf16; six products of parts make one of f32");
        self.before.push(Step::new(StepKind::Move, kernel, vec![from, to], does));
        let strides = [all, 1, if count == matrices { apart } else { 0 }];
        Ok((Matrix::strided(Element::Bf16, [rows, all, matrices], strides)?, to))
    }

    /// Copies a matrix to a workspace, line by line, along its contiguous mode; None if the
    /// instructions cannot read that mode.
    fn lined(
        &mut self,
        matrix: &Matrix,
        from: ProductTensor,
        what: &str,
        machine: &Machine,
    ) -> Result<Option<Located>, PlanError> {
        let element = matrix.element();
        let [rows, columns, matrices] = matrix.extents();
        let Some([down, across, apart]) = matrix.strides() else { return Ok(None) };
        // A line of one element has no stride.
        let across = if columns == 1 && !self.inner.is_by_warpgroups(machine) { 1 } else { across };
        let (lines, length, line, turned) = match (across, down) {
            (1, _) => (rows, columns, down, false),
            (_, 1) if takes_rows(element) && !(from == ProductTensor::A && self.inner.row_groups().is_some()) => {
                (columns, rows, across, true)
            }
            _ => return Ok(None),
        };
        // The grid has three axes, two of which are short.
        let count = if matrix.is_batch() { matrices } else { 1 };
        let whole = padded(length, element);
        if line < 0 || apart < 0 || count > GRID_BLOCKS || whole > MAX_LENGTH {
            return Ok(None);
        }
        let kernel = pack::packed(element, [lines, length, count], [line, apart], matrix.offset(), machine)?;
        let whole = pack::spaced(length, element);
        let step = lines.saturating_mul(whole);
        let to = self.workspace(step.saturating_mul(count), element);
        let does = format!("copies {what} to lines of {whole} elements");
        self.before.push(Step::new(StepKind::Move, kernel, vec![from, to], does));
        let step = if count == matrices { step } else { 0 };
        let strides = if turned { [1, whole, step] } else { [whole, 1, step] };
        let packed = Matrix::strided(element, [rows, columns, matrices], strides)?;
        // The padding of lines is 0.
        Ok(Some((if self.inner.is_by_warpgroups(machine) { packed } else { packed.in_whole_rows() }, to)))
    }

    /// As [`Prepared::packed`], in lines that cp.async can copy: a second kernel pads them with
    /// zeros if they end inside a chunk of 16 bytes.
    fn packed_whole(
        &mut self,
        (matrix, from): (&Matrix, ProductTensor),
        machine: &Machine,
        what: &str,
    ) -> Result<Located, PlanError> {
        let (packed, to) = self.packed((matrix, from), machine, what)?;
        if self.inner.is_by_warpgroups(machine) || packed.has_whole_lines(Contiguous::Columns) {
            return Ok((packed, to));
        }
        let because = "lines of operands are too many, or too long, to be padded";
        self.lined(&packed, to, what, machine)?.ok_or(PlanError::Plan { because })
    }

    /// Copies a matrix to a workspace, row by row.
    fn packed(
        &mut self,
        (matrix, from): (&Matrix, ProductTensor),
        machine: &Machine,
        what: &str,
    ) -> Result<Located, PlanError> {
        let element = matrix.element();
        let [rows, columns, matrices] = matrix.extents();
        let line = padded(columns, element);
        // One matrix, if all of a batch are the same.
        let count = if matrix.is_batch() { matrices } else { 1 };
        let source = if count == matrices { matrix.layout().clone() } else { matrix.layout().take(0..2)? };
        let packed = Matrix::strided(element, [rows, columns, count], [line, 1, rows.saturating_mul(line)])?;
        let moved = relayout(machine, place(&source, matrix.offset())?, element, packed.layout(), element)?;
        let to = self.workspace(packed.reach()?, element);
        let does = format!("copies {what} to rows of {line} elements");
        self.before.push(Step::new(StepKind::Move, moved.kernel().clone(), vec![from, to], does));
        let step = if count == matrices { rows.saturating_mul(line) } else { 0 };
        Ok((Matrix::strided(element, [rows, columns, matrices], [line, 1, step])?, to))
    }

    /// The matrix that is written in place of D, and from which D is copied; `stored` is the mode
    /// in which bulk copies must store it.
    fn result(
        &mut self,
        problem: &Problem,
        machine: &Machine,
        stored: Option<Contiguous>,
    ) -> Result<Located, PlanError> {
        let d = problem.d();
        if d.strides().is_some() && stored.is_none_or(|mode| problem.stored() == Ok(mode)) {
            return Ok((d.clone(), ProductTensor::D));
        }
        let [rows, columns, matrices] = d.extents();
        // Bulk stores do not take 8-bit elements; these are converted from 32-bit elements
        // afterwards.
        let element = if stored.is_some() && d.element().bytes() == 1 { Element::F32 } else { d.element() };
        let line = padded(columns, element);
        // Bulk stores write whole chunks of 16 bytes, so the rows of the workspace are padded to
        // chunks.
        let plain = Matrix::strided(element, [rows, columns, matrices], [line, 1, rows.saturating_mul(line)])?;
        let plain = plain.in_whole_rows();
        let moved = relayout(machine, plain.layout(), element, place(d.layout(), d.offset())?, d.element())?;
        let from = self.workspace(plain.reach()?, element);
        let because = match problem.stored() {
            _ if d.strides().is_none() => "its modes are folded",
            Err(because) => because,
            Ok(_) => "bulk copies do not store it so",
        };
        let does = format!("copies D to its layout ({because})");
        self.after.push(Step::new(StepKind::Move, moved.kernel().clone(), vec![from, ProductTensor::D], does));
        Ok((plain, from))
    }
}

/// A layout at an offset.
fn place(layout: &Layout, offset: i64) -> Result<Place, PlanError> {
    if offset == 0 {
        return Ok(Place::from(layout));
    }
    Place::try_from(&behind(offset, layout.clone())?)
}
