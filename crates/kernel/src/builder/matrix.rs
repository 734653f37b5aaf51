//! MMA on fragments.
//!
//! Law: `D(v,m,n) = C(v,m,n) + sum over k of A(v,m,k) * B(v,n,k)`, where each term is one
//! instruction of the atom, with ascending k. The values of an operand are in its registers in the
//! order of the atom's thread-value layout, which is that of the hardware.

use tilewright_layout::atoms::{CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Tree};

use super::Build;
use super::access::Edge;
use super::copy::Tensor;
use super::core::{Core, Slot};
use super::fragment::Fragment;
use super::number::arithmetic;
use super::part::ThreadPart;
use super::tensor::Cuttable;
use super::wgmma::WgmmaA;
use crate::error::{KernelError, Reason};
use crate::program::Location;
use crate::program::operation::{BlockScaled, Matrix, Operation};
use crate::program::register::{Register, Width};

/// The MMA instruction of an atom.
fn matrix_of(atom: &MmaAtom) -> Option<Matrix> {
    Some(match atom.name() {
        "SM80_16x8x16_F32F16F16F32_TN" => Matrix::F16F32,
        "SM80_16x8x16_F16F16F16F16_TN" => Matrix::F16F16,
        "SM80_16x8x16_F32BF16BF16F32_TN" => Matrix::Bf16F32,
        "SM80_16x8x8_F32TF32TF32F32_TN" => Matrix::Tf32F32,
        "SM80_8x8x4_F64F64F64F64_TN" => Matrix::F64,
        "SM90_16x8x4_F64F64F64F64_TN" => Matrix::F64K4,
        "SM90_16x8x8_F64F64F64F64_TN" => Matrix::F64K8,
        "SM90_16x8x16_F64F64F64F64_TN" => Matrix::F64K16,
        "SM80_16x8x32_S32S8S8S32_TN" => Matrix::I8I32,
        "SM80_16x8x32_S32U8U8S32_TN" => Matrix::U8I32,
        "SM89_16x8x32_F32E4M3E4M3F32_TN" => Matrix::E4M3F32,
        "SM89_16x8x32_F32E5M2E5M2F32_TN" => Matrix::E5M2F32,
        _ => return None,
    })
}

/// The instruction for 4-bit operands whose fragments have the same bytes as those of an atom.
fn nibbles_of(atom: &MmaAtom) -> Option<Matrix> {
    match matrix_of(atom)? {
        Matrix::I8I32 => Some(Matrix::S4I32),
        Matrix::U8I32 => Some(Matrix::U4I32),
        _ => None,
    }
}

/// Whether an atom is a wgmma, which reads operands from shared memory.
fn is_of_group(atom: &MmaAtom) -> bool {
    atom.name().starts_with("SM90_64x")
}

/// The part that a tensor is.
fn part_of<'k>(tensor: &impl Tensor<'k>) -> Option<ThreadPart> {
    match (tensor.as_view(), tensor.as_fragment()) {
        (Some(view), _) => view.own_part(),
        (_, Some(fragment)) => fragment.part.clone(),
        _ => None,
    }
}

fn no_operand(mma: &TiledMma) -> Reason {
    let because = "an operand is a fragment, or a tensor in memory".to_string();
    Reason::Instruction { name: mma.atom().name().to_string(), because }
}

/// The numbers of instructions along M, N and K; an error if those of the fragments do not match.
fn product_sizes([d, a, b, c]: [&Fragment<'_>; 4]) -> Result<[i64; 3], Reason> {
    let mode = |fragment: &Fragment<'_>, mode: usize| fragment.layout.mode(mode).map_or(1, |mode| mode.size());
    let [m, n, k] = [mode(a, 1), mode(b, 1), mode(a, 2)];
    for (what, fragment, shape) in [("B", b, [n, k]), ("C", c, [m, n]), ("D", d, [m, n])] {
        if [mode(fragment, 1), mode(fragment, 2)] != shape {
            return Err(Reason::Sizes {
                left: format!("{what}, {}", fragment.layout),
                left_size: format!("({},{})", mode(fragment, 1), mode(fragment, 2)),
                right: "the product of the other operands".to_string(),
                right_size: format!("({},{})", shape[0], shape[1]),
            });
        }
    }
    Ok([m, n, k])
}

impl Core {
    /// The position of a thread among the threads of a tiled MMA: (ThrV, ThrM, ThrN, ThrK).
    pub(crate) fn mma_coordinate(&mut self, mma: &TiledMma, thread: &Expr) -> Result<Vec<Expr>, Reason> {
        let coordinate = mma.thread_coordinate(thread)?;
        let sizes = mma.thread_layout().shape();
        let mut at = Vec::new();
        for mode in 0..4 {
            let expr = coordinate.mode(mode).and_then(|tree| tree.leaves().first().cloned()).unwrap_or(Expr::from(0));
            let size = sizes.mode(mode).map_or(Ok(1), |mode| mode.product())?;
            // Give the coordinate a name, so that expressions made from it stay simple.
            at.push(match expr.range() {
                (Some(least), Some(greatest)) if least == greatest => Expr::from(least),
                _ => self.named(&expr, size)?,
            });
        }
        Ok(at)
    }

    /// An expression as a variable below a constant.
    fn named(&mut self, expr: &Expr, size: i64) -> Result<Expr, Reason> {
        let key = (expr.clone(), 1, -size);
        if let Some(known) = self.digits.get(&key) {
            return Ok(known.clone());
        }
        let register = self.lower(expr, Width::Bits32)?;
        let variable = self.new_variable(register, size - 1, None);
        self.digits.insert(key, variable.clone());
        Ok(variable)
    }

    /// The coordinate of a number in a shape, the first mode fastest, with a variable for each
    /// digit.
    pub(crate) fn digits_of(&mut self, number: &Expr, shape: &Tree<i64>) -> Result<Tree<Expr>, Reason> {
        let mut below = 1_i64;
        shape.try_map(|extent| {
            let digit = self.digit(number, below, *extent);
            below = below.saturating_mul(*extent);
            digit
        })
    }

    /// Sets the number of threads of a block.
    pub(crate) fn say_threads(&mut self, threads: i64) -> Result<(), Reason> {
        let limit = 1024;
        if !(1..=limit).contains(&threads) {
            return Err(Reason::TooMuch { what: "threads", asked: threads.unsigned_abs(), limit: limit as u64 });
        }
        match self.team.as_ref().map(|team| team.threads).or(self.threads) {
            None => {
                self.threads = Some(threads as u32);
                Ok(())
            }
            Some(known) if i64::from(known) == threads => Ok(()),
            Some(known) => Err(Reason::Twice {
                what: "the number of threads".to_string(),
                first: known.to_string(),
                second: threads.to_string(),
            }),
        }
    }
}

impl<'k> Fragment<'k> {
    /// The same registers with the modes of a tiled copy (CuTe `retile_S`, `retile_D`).
    ///
    /// Errors: the copy has another number of values.
    #[track_caller]
    pub fn retile(&self, copy: &TiledCopy, end: CopyEnd) -> Result<Fragment<'k>, KernelError> {
        let location = Location::caller();
        let layout: Layout =
            copy.retile(end, &self.layout).map_err(|error| Reason::from(error).at("retile", location))?;
        let thread = self.part.as_ref().and_then(|part| part.thread().cloned());
        Ok(Fragment { layout, part: Some(ThreadPart::of_copy(copy, end, thread)), ..self.clone() })
    }
}

impl Build {
    /// `D = A B + C` for fragments `(V,M,K)`, `(V,N,K)` and `(V,M,N)` of one tiled MMA. `D` and `C`
    /// may be the same (CuTe `gemm(tiled_mma, D, A, B, C)`). B has N before K, as everywhere.
    ///
    /// A and B may be in memory: as tiles `(M,K)` and `(N,K)`, or as results of
    /// [`View::partition_mma`](super::View::partition_mma). They are loaded first, except for wgmma
    /// atoms: `SM90_64xNxK_.._SS` reads A and B from shared memory, and D and C are one fragment;
    /// with `_RS`, A is a fragment. The wgmma instructions of a statement are one asynchronous
    /// group: see [`Build::wait_mma`].
    ///
    /// Errors: shapes do not match each other or the atom; types are not those of the atom; an
    /// operand is a part of another MMA, or of another operand; the atom is not supported.
    #[track_caller]
    pub fn mma<'k>(
        &'k self,
        mma: &TiledMma,
        d: &Fragment<'k>,
        a: &impl Tensor<'k>,
        b: &impl Tensor<'k>,
        c: &Fragment<'k>,
    ) -> Result<(), KernelError> {
        self.mma_at("mma", mma, (d, a, b, Some(c)))
    }

    /// `D = A B`: as [`Build::mma`], without regard to the old value of D. For wgmma, D keeps its
    /// registers, and is not cleared first (`scale-d` of `wgmma`; CuTe's `ScaleOut::Zero`).
    ///
    /// ```
    /// use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
    /// use tilewright_kernel::{Kernel, ptx};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mma = TiledMma::new(
    ///     MmaAtom::named("SM90_64x8x16_F32F16F16_SS")?,
    ///     &"(1,1,1)".parse()?,
    ///     &"[64:1;8:1;16:1]".parse()?,
    /// )?;
    /// let kernel = Kernel::build("anew", |k| {
    ///     let d = k.output::<f32>("d", "(64,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
    ///     let (a, b) = (k.shared::<half::f16>("(64,16):(16,1)"), k.shared::<half::f16>("(8,16):(16,1)"));
    ///     let sums = d.fragment()?;
    ///     sums.clear();
    ///     k.mma_anew(&mma, &sums, &a?, &b?)?;
    ///     k.wait_mma(0);
    ///     d.store(&sums)
    /// });
    /// # let _ = kernel;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::mma`].
    #[track_caller]
    pub fn mma_anew<'k>(
        &'k self,
        mma: &TiledMma,
        d: &Fragment<'k>,
        a: &impl Tensor<'k>,
        b: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        self.mma_at("mma_anew", mma, (d, a, b, None))
    }

    /// `D = A B + C` for fragments whose bytes hold two 4-bit integers, the one with the lower K in
    /// the lower bits, with accumulators of i32: `mma.sync.m16n8k64`. The tiled MMA is that of
    /// bytes: `SM80_16x8x32_S32S8S8S32_TN` for signed integers, or `SM80_16x8x32_S32U8U8S32_TN` for
    /// unsigned ones, whose fragments have the same bytes.
    ///
    /// ```
    /// use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let atom = MmaAtom::named("SM80_16x8x32_S32S8S8S32_TN")?;
    /// let mma = TiledMma::new(atom, &"(1,1,1)".parse()?, &"[16:1;8:1;32:1]".parse()?)?;
    /// let kernel = Kernel::build("product", |k| {
    ///     k.threads(32)?;
    ///     let a = k.input::<i8>("a", "(16,32):(32,1)")?.partition_mma(&mma, Operand::A)?.load()?;
    ///     let b = k.input::<i8>("b", "(8,32):(32,1)")?.partition_mma(&mma, Operand::B)?.load()?;
    ///     let d = k.output::<i32>("d", "(16,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
    ///     let sums = d.fragment()?;
    ///     sums.clear();
    ///     k.mma_nibbles(&mma, &sums, &a, &b, &sums)?;
    ///     d.store(&sums)
    /// })?;
    /// // 64 products of 3 and -1.
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[0x33_i8; 512])?.tensor(1, &[-1_i8; 256])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<i32>("d")?[0], -192);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::mma`]; the atom is neither of these two.
    #[track_caller]
    pub fn mma_nibbles<'k>(
        &'k self,
        mma: &TiledMma,
        d: &Fragment<'k>,
        a: &Fragment<'k>,
        b: &Fragment<'k>,
        c: &Fragment<'k>,
    ) -> Result<(), KernelError> {
        self.statement("mma_nibbles", || {
            for (operand, name, fragment) in
                [(Operand::C, "D", d), (Operand::C, "C", c), (Operand::A, "A", a), (Operand::B, "B", b)]
            {
                self.is_operand(mma, operand, name, fragment.part.as_ref())?;
            }
            let Some(matrix) = nibbles_of(mma.atom()) else {
                let because = "products of four bits are those of s8 or of u8 in m16n8k32".to_string();
                return Err(Reason::Instruction { name: mma.atom().name().to_string(), because });
            };
            self.multiplied(mma, Some(matrix), [d, a, b, c])
        })
    }

    #[track_caller]
    fn mma_at<'k>(
        &'k self,
        statement: &'static str,
        mma: &TiledMma,
        (d, a, b, c): (&Fragment<'k>, &impl Tensor<'k>, &impl Tensor<'k>, Option<&Fragment<'k>>),
    ) -> Result<(), KernelError> {
        let (adds, c) = (c.is_some(), c.unwrap_or(d));
        self.statement(statement, || {
            let (part_a, part_b) = (part_of(a), part_of(b));
            self.is_operand(mma, Operand::C, "D", d.part.as_ref())?;
            self.is_operand(mma, Operand::C, "C", c.part.as_ref())?;
            self.is_operand(mma, Operand::A, "A", part_a.as_ref())?;
            self.is_operand(mma, Operand::B, "B", part_b.as_ref())?;
            if let (true, Some(b)) = (is_of_group(mma.atom()), b.as_view()) {
                let left = match (a.as_view(), a.as_fragment()) {
                    (Some(a), _) => WgmmaA::Tile(a),
                    (_, Some(a)) => WgmmaA::Rows(a),
                    _ => return Err(no_operand(mma)),
                };
                return self.multiplied_by_groups(mma, [d, c], left, b, adds);
            }
            let a = self.in_registers(mma, Operand::A, a)?;
            let b = self.in_registers(mma, Operand::B, b)?;
            if !adds {
                d.clear();
            }
            self.multiplied(mma, matrix_of(mma.atom()), [d, &a, &b, c])
        })
    }

    /// `D = A B + C` for fragments of a block-scaled format. Each element of A is multiplied by the
    /// scale of its block of its row, and each element of B by the scale of its block of its
    /// column.
    ///
    /// The tiled MMA is that of bytes, `SM89_16x8x32_F32E4M3E4M3F32_TN`, because an operand of each
    /// format consists of bytes ([`BlockScaled`]), 32 of them along K for an instruction. A, B, C
    /// and D are its fragments, with one instruction along K. Scales are fragments of bytes, or of
    /// words of bytes: one for each 16 rows of A and for each 8 columns of B that the thread
    /// multiplies, in order. A thread holds the scales of row `lane / 4`, or of row `lane / 4 + 8`
    /// in odd lanes, and of column `lane / 4`. A fragment holds those of several instructions along
    /// K, one after the other; `number` is the index of this instruction.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::BlockScaled;
    /// use tilewright_kernel::{Element, Kernel, interpret, ptx};
    /// use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
    /// use tilewright_layout::symbolic::Expr;
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let atom = MmaAtom::named("SM89_16x8x32_F32E4M3E4M3F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(1,1,1)".parse()?, &"[16:1;8:1;32:1]".parse()?)?;
    /// let kernel = Kernel::build("scaled", |k| {
    ///     let a = k.input::<u8>("a", "(16,32):(32,1)")?;
    ///     let b = k.input::<u8>("b", "(8,32):(32,1)")?;
    ///     // Four scales of ue4m3 for the 64 numbers of a row.
    ///     let scales_a = k.input::<u8>("scales_a", "(16,4):(4,1)")?;
    ///     let scales_b = k.input::<u8>("scales_b", "(8,4):(4,1)")?;
    ///     let d = k.output::<f32>("d", "(16,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
    ///     k.threads(32)?;
    ///     let lane = k.coordinate(&k.thread()?, &[2, 2, 8])?;
    ///     let row = Tree::flat([Slot::At(lane[2].clone()), Slot::At(lane[0].clone()), Slot::All])?;
    ///     let of_a = scales_a.recast(Element::U8, "(8,2,4):(4,32,1)")?.slice(row)?.load()?;
    ///     let of_b = scales_b.slice(Tree::flat([Slot::At(lane[2].clone()), Slot::All])?)?.load()?;
    ///     let sums = d.fragment()?;
    ///     sums.clear();
    ///     k.mma_scaled(&mma, BlockScaled::Nvf4, &sums, (&a, &[of_a]), (&b, &[of_b]), (&sums, 0))?;
    ///     d.store(&sums)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// // 1, times 1 and times 1.5, 64 times.
    /// interpreter.tensor("a", &[0x22_u8; 512])?;
    /// interpreter.tensor("b", &[0x22_u8; 256])?;
    /// interpreter.tensor("scales_a", &[0x38_u8; 64])?;
    /// interpreter.tensor("scales_b", &[0x3c_u8; 32])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<f32>("d")?, [96.0; 128]);
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm120)?.contains(".kind::mxf4nvf4.block_scale"));
    /// assert!(ptx::write(kernel.program(), ptx::Target::Sm100).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::mma`]; another atom; the scales are not one fragment for each 16 rows
    /// and for each 8 columns; too few scales.
    #[track_caller]
    pub fn mma_scaled<'k>(
        &'k self,
        mma: &TiledMma,
        format: BlockScaled,
        d: &Fragment<'k>,
        (a, scales_a): (&impl Tensor<'k>, &[Fragment<'k>]),
        (b, scales_b): (&impl Tensor<'k>, &[Fragment<'k>]),
        (c, number): (&Fragment<'k>, u32),
    ) -> Result<(), KernelError> {
        self.statement("mma_scaled", || {
            if matrix_of(mma.atom()) != Some(Matrix::E4M3F32) {
                let because = "block scales are of a product of bytes, SM89_16x8x32_F32E4M3E4M3F32_TN".to_string();
                return Err(Reason::Instruction { name: mma.atom().name().to_string(), because });
            }
            for (operand, name, part) in [
                (Operand::C, "D", d.part.clone()),
                (Operand::C, "C", c.part.clone()),
                (Operand::A, "A", part_of(a)),
                (Operand::B, "B", part_of(b)),
            ] {
                self.is_operand(mma, operand, name, part.as_ref())?;
            }
            let a = self.in_registers(mma, Operand::A, a)?;
            let b = self.in_registers(mma, Operand::B, b)?;
            let of = |operand: &Fragment<'_>, scales: &[Fragment<'k>], name: &str| {
                let blocks = operand.layout.mode(1).map_or(1, |mode| mode.size());
                let depth = operand.layout.mode(2).map_or(1, |mode| mode.size());
                let sizes = |left_size: String, right_size: String| Reason::Sizes {
                    left: format!("the scales of {name}"),
                    left_size,
                    right: format!("{name}, {}", operand.layout),
                    right_size,
                };
                if (scales.len() as i64, depth) != (blocks, 1) {
                    return Err(sizes(
                        format!("{} fragments", scales.len()),
                        format!("{blocks} blocks, {depth} along K"),
                    ));
                }
                scales.iter().map(|scale| self.scale_word(scale, format.scales() * number)).collect()
            };
            let words: [Vec<Register>; 2] = [of(&a, scales_a, "A")?, of(&b, scales_b, "B")?];
            let byte = (format.scales() * number % 4) as u8;
            product_sizes([d, &a, &b, c])?;
            self.multiplied_by(Matrix::Scaled(format, byte), [d, &a, &b, c], &words)
        })
    }

    /// The word of a fragment of scales that contains the byte with an index.
    fn scale_word(&self, scales: &Fragment<'_>, byte: u32) -> Result<Register, Reason> {
        let (slots, bits) = (scales.slots()?, scales.element.bits());
        let each = (32 / bits.min(32)) as usize;
        let first = byte as usize / 4 * each;
        let mut core = self.core();
        match slots.get(first..first + each) {
            Some([one]) if bits == 32 => core.element_register(scales.cell, *one),
            Some(several) if bits < 32 => core.word_of(scales.cell, several),
            _ => Err(Reason::Sizes {
                left: format!("the scales {}", scales.layout),
                left_size: format!("{} values of {}", slots.len(), scales.element),
                right: "the instruction".to_string(),
                right_size: format!("{each} from value {first} on"),
            }),
        }
    }

    /// The part of an operand of this thread in registers. It is loaded if it is in memory.
    fn in_registers<'k>(
        &'k self,
        mma: &TiledMma,
        operand: Operand,
        tensor: &impl Tensor<'k>,
    ) -> Result<Fragment<'k>, Reason> {
        if let Some(fragment) = tensor.as_fragment() {
            return Ok(fragment.clone());
        }
        let Some(view) = tensor.as_view() else { return Err(no_operand(mma)) };
        let part = match view.own_part() {
            None => view.partition_of(mma, operand, None)?,
            Some(_) => view.clone(),
        };
        let fragment = part.fragment_like(part.element)?;
        part.read_into(&fragment, 128, Edge::Proved)?;
        Ok(fragment)
    }

    /// Multiplies by warp instructions, or with atoms of one thread.
    fn multiplied(&self, mma: &TiledMma, matrix: Option<Matrix>, operands: [&Fragment<'_>; 4]) -> Result<(), Reason> {
        let [m, n, k] = product_sizes(operands)?;
        let atom = mma.atom();
        match matrix {
            Some(matrix) => self.multiplied_by(matrix, operands, &[Vec::new(), Vec::new()]),
            None => self.multiplied_by_threads(atom, operands, [m, n, k]),
        }
    }

    /// The warp instructions for operands whose sizes match; with scales for the rows of A and the
    /// columns of B, if there are any.
    fn multiplied_by(
        &self,
        matrix: Matrix,
        [d, a, b, c]: [&Fragment<'_>; 4],
        scales: &[Vec<Register>; 2],
    ) -> Result<(), Reason> {
        let mode = |fragment: &Fragment<'_>, mode: usize| fragment.layout.mode(mode).map_or(1, |mode| mode.size());
        let registers = matrix.registers();
        let [m, n, k] = [mode(a, 1), mode(b, 1), mode(a, 2)].map(|extent| extent as usize);
        for column in 0..n {
            for row in 0..m {
                for depth in 0..k {
                    let mut core = self.core();
                    let mut inputs: Vec<Register> = Vec::new();
                    // The first instruction adds to C, the others to D.
                    let sum = if depth == 0 { c } else { d };
                    for (fragment, at, count) in [
                        (a, [row, depth], registers[0]),
                        (b, [column, depth], registers[1]),
                        (sum, [row, column], registers[2]),
                    ] {
                        inputs.extend(core.words_of(fragment, at, count)?);
                    }
                    inputs.extend(scales[0].get(row).into_iter().chain(scales[1].get(column)));
                    let width = if matrix.is_double() { Width::Bits64 } else { Width::Bits32 };
                    let outputs = vec![width; registers[2]];
                    // It has no side effects on memory, but it belongs to a whole warp, so it is
                    // not moved.
                    let results = core.effect(Operation::Multiply(matrix), inputs, &outputs, None);
                    core.set_words_of(d, [row, column], &results)?;
                }
            }
        }
        Ok(())
    }

    /// One multiply-add for each term, for atoms of one thread.
    fn multiplied_by_threads(
        &self,
        atom: &MmaAtom,
        [d, a, b, c]: [&Fragment<'_>; 4],
        [m, n, k]: [i64; 3],
    ) -> Result<(), Reason> {
        let because =
            |because: &str| Reason::Instruction { name: atom.name().to_string(), because: because.to_string() };
        if atom.threads().size() != 1 || atom.shape() != [1, 1, 1] {
            return Err(because("kernels have mma.sync and UniversalFMA"));
        }
        let number = arithmetic(d.element).ok_or(because("numbers of this type are stored, not computed with"))?;
        if [a.element, b.element, c.element].iter().any(|element| *element != d.element) {
            return Err(Reason::Elements { wanted: d.element, given: a.element });
        }
        let (a_slots, b_slots, c_slots, d_slots) = (a.slots()?, b.slots()?, c.slots()?, d.slots()?);
        let mut core = self.core();
        for (column, row) in (0..n).flat_map(|column| (0..m).map(move |row| (column, row))) {
            let at = (row + column * m) as usize;
            let mut sum = core.element_register(c.cell, c_slots[at])?;
            for depth in 0..k {
                let x = core.element_register(a.cell, a_slots[(row + depth * m) as usize])?;
                let y = core.element_register(b.cell, b_slots[(column + depth * n) as usize])?;
                let width = core.width(sum);
                sum = core.pure(Operation::MultiplyAdd(number), [x, y, sum], width);
            }
            core.cells[d.cell].slots[d_slots[at]] = Slot::Whole(sum);
        }
        Ok(())
    }
}

impl Core {
    /// The registers of the values of one instruction.
    fn values_of(&self, fragment: &Fragment<'_>, at: [usize; 2]) -> Result<Vec<usize>, Reason> {
        let values = fragment.layout.mode(0).map_or(1, |mode| mode.size());
        let rows = fragment.layout.mode(1).map_or(1, |mode| mode.size());
        let from = values * (at[0] as i64 + rows * at[1] as i64);
        (from..from + values).map(|index| Ok(fragment.start + fragment.layout.eval(&index)? as usize)).collect()
    }

    pub(super) fn words_of(
        &mut self,
        fragment: &Fragment<'_>,
        at: [usize; 2],
        count: usize,
    ) -> Result<Vec<Register>, Reason> {
        let values = self.values_of(fragment, at)?;
        if values.len() % count != 0 || !(values.len() / count * fragment.element.bits() as usize).is_multiple_of(32) {
            return Err(Reason::Sizes {
                left: fragment.layout.to_string(),
                left_size: format!("{} values of {}", values.len(), fragment.element),
                right: "the instruction".to_string(),
                right_size: format!("{count} registers"),
            });
        }
        values
            .chunks(values.len() / count)
            .map(|part| match part {
                [one] => self.element_register(fragment.cell, *one),
                several => self.word_of(fragment.cell, several),
            })
            .collect()
    }

    pub(super) fn set_words_of(
        &mut self,
        fragment: &Fragment<'_>,
        at: [usize; 2],
        words: &[Register],
    ) -> Result<(), Reason> {
        let values = self.values_of(fragment, at)?;
        for (part, word) in values.chunks(values.len() / words.len()).zip(words) {
            match part {
                [one] => self.cells[fragment.cell].slots[*one] = Slot::Whole(*word),
                several => self.set_word(fragment.cell, several, *word),
            }
        }
        Ok(())
    }
}
