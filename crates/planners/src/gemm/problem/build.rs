//! Construction and validation of problems.
//!
//! Law: the extents of a problem match, its types can be multiplied and converted, and no two
//! elements of D have the same offset. Its epilogue function, reductions and scales match its
//! accumulators.

use tilewright_kernel::Element;

use crate::error::PlanError;
use crate::expression::Expression;
use crate::gemm::problem::convolution::{Images, Window};
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::reductions::{Each, EpilogueReduction};
use crate::gemm::problem::scales::{SCALE_BLOCK, Scales};
use crate::gemm::problem::{Fused, Problem};
use crate::terms::Statistic;

/// The types of operands.
const FACTORS: [Element; 8] =
    [Element::Bf16, Element::F16, Element::F32, Element::F64, Element::E4M3, Element::E5M2, Element::I8, Element::U8];

/// The types of D.
const RESULTS: [Element; 6] = [Element::Bf16, Element::F16, Element::F32, Element::E4M3, Element::E5M2, Element::I32];
/// The types of D of operands of f64.
const RESULTS_OF_F64: [Element; 2] = [Element::F64, Element::F32];

impl Problem {
    /// A GEMM of the sizes `[M, N, K]`, with operands and result of one type: A `(M,K)` and B
    /// `(N,K)` with K contiguous, D `(M,N)` with N contiguous.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::gemm::Problem;
    ///
    /// let problem = Problem::new(Element::Bf16, [4096, 1024, 512]).unwrap().batched(3).unwrap();
    /// assert_eq!(problem.to_string(), "bf16 (4096,512,3) x (1024,512,3) -> bf16 (4096,1024,3)");
    /// assert_eq!(problem.operations(), 2 * 4096 * 1024 * 512 * 3);
    /// ```
    ///
    /// Errors: a size below 1 ([`PlanError::Size`]); as [`Problem::of`].
    pub fn new(element: Element, sizes: [i64; 3]) -> Result<Problem, PlanError> {
        for (name, size) in ["M", "N", "K"].into_iter().zip(sizes) {
            at_least_one(name, size)?;
        }
        let [m, n, k] = sizes;
        let of = |rows, columns| Matrix::rows(element, [rows, columns]);
        Problem::of(of(m, k)?, of(n, k)?, of(m, n)?)
    }

    /// The GEMM of A `(M,K)` and B `(N,K)` into D `(M,N)`, or of batches of them. Each is a type
    /// and a layout.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::gemm::{Matrix, Problem};
    ///
    /// // A with M contiguous, one B for all of a batch, D in f32.
    /// let matrix = |element, text: &str| Matrix::new(element, &text.parse().unwrap()).unwrap();
    /// let a = matrix(Element::Bf16, "(512,256,4):(1,512,131072)");
    /// let b = matrix(Element::Bf16, "(128,256,4):(256,1,0)");
    /// let d = matrix(Element::F32, "(512,128,4):(128,1,65536)");
    /// let problem = Problem::of(a, b, d).unwrap();
    /// assert_eq!((problem.sizes(), problem.batch()), ([512, 128, 256], 4));
    /// ```
    ///
    /// Operands of f32 are split into three parts of bf16 each, and six products of parts are added
    /// in f32. The error is within 2^-22 of the added magnitudes, besides the rounding of
    /// accumulators in f32. A number that is infinite, or that bf16 rounds to infinity, gives NaN.
    /// [`Problem::in_tf32`] is faster and less exact.
    ///
    /// Operands of f64 are multiplied in f64 by mma.sync, on every machine: sums of integers below
    /// 2^53 are exact, and other sums are within `(K + 2) 2^-53` of the added magnitudes. D is f64
    /// or f32 then.
    ///
    /// Errors: extents that do not match ([`PlanError::Extents`]); types that are not multiplied,
    /// or not converted to the type of D ([`PlanError::Unknown`]); two elements of D with the same
    /// offset ([`PlanError::Overlap`]).
    pub fn of(a: Matrix, b: Matrix, d: Matrix) -> Result<Problem, PlanError> {
        Problem::checked(a, b, d, None)
    }

    /// The gated GEMM of A `(M,K)` and pairs of columns of B `(2 N,K)` into D `(M,N)`. Inputs 0 and
    /// 1 of the epilogue function are the accumulators of a pair.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::Expression;
    /// use tilewright_planners::gemm::{Fused, Matrix, Pairs, Problem};
    ///
    /// // D = silu(A G) * (A U), where the rows of B are those of G and then those of U.
    /// let matrix = |extents| Matrix::rows(Element::Bf16, extents).unwrap();
    /// let expression = Expression::parse("silu(x) * y", &["x", "y"]).unwrap();
    /// let gate = Fused { expression, inputs: vec![] };
    /// let (a, b, d) = (matrix([256, 64]), matrix([1024, 64]), matrix([256, 512]));
    /// let problem = Problem::gated(a, b, d, Pairs::Halves, gate).unwrap();
    /// assert_eq!(problem.sizes(), [256, 512, 64]);
    /// assert_eq!(problem.operations(), 2 * 256 * 1024 * 64);
    /// ```
    ///
    /// Errors: as [`Problem::of`], with twice as many columns of B as of D, and as
    /// [`Problem::fused`].
    pub fn gated(a: Matrix, b: Matrix, d: Matrix, pairs: Pairs, fused: Fused) -> Result<Problem, PlanError> {
        Problem::checked(a, b, d, Some(pairs))?.fused(fused)
    }

    pub(crate) fn checked(a: Matrix, b: Matrix, d: Matrix, pairs: Option<Pairs>) -> Result<Problem, PlanError> {
        let ([m, k, batch], [n, terms, batch_b], [rows, columns, batch_d]) = (a.extents(), b.extents(), d.extents());
        let made = if pairs.is_some() { columns.saturating_mul(2) } else { columns };
        if k != terms || [m, n] != [rows, made] || batch != batch_b || batch != batch_d {
            let text = |matrix: &Matrix| matrix.layout().shape().to_string();
            return Err(PlanError::Extents { a: text(&a), b: text(&b), d: text(&d) });
        }
        if !FACTORS.contains(&a.element()) || a.element() != b.element() {
            let known = "pairs of bf16, f16, f32, f64, e4m3, e5m2, i8 or u8".to_string();
            let given = format!("{} x {}", a.element(), b.element());
            return Err(PlanError::Unknown { what: "product of types", given, known });
        }
        let results: &[Element] = if a.element() == Element::F64 { &RESULTS_OF_F64 } else { &RESULTS };
        if !results.contains(&d.element()) {
            let names = results.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let known = format!("{names} of operands of {}", a.element());
            return Err(PlanError::Unknown { what: "type of a result", given: d.element().to_string(), known });
        }
        if !d.layout().is_injective()? {
            return Err(PlanError::Overlap { layout: d.layout().to_string() });
        }
        let sizes = [m, columns, k];
        let (fused, kept, scales, ends, images) = (None, Vec::new(), None, None, None);
        Ok(Problem {
            sizes,
            batch,
            a,
            b,
            d,
            images,
            pairs,
            fused,
            kept,
            scales,
            blocks: None,
            ends,
            int4: None,
            nibbles: false,
            tf32: false,
            fast: false,
            batch_invariant: false,
        })
    }

    /// The grouped GEMM whose row groups end where `ends` says; each group has its own matrix of B.
    pub(crate) fn checked_groups(
        a: Matrix,
        b: Matrix,
        d: Matrix,
        ends: Matrix,
        pairs: Option<Pairs>,
    ) -> Result<Problem, PlanError> {
        // Checks the extents with one matrix of B, then with all.
        let [n, k, groups] = b.extents();
        let one = Matrix::strided(b.element(), [n, k, 1], [k, 1, 0])?;
        let problem = Problem::checked(a, one, d, pairs)?;
        if ends.extents() != [groups, 1, 1] {
            let (layout, shape) = (ends.layout().to_string(), groups.to_string());
            return Err(PlanError::Shape { layout, shape });
        }
        Ok(Problem { b, ends: Some(ends), ..problem })
    }

    /// The same problem as a batch, with groups of `rows` rows each.
    pub(crate) fn parted_evenly(&self, rows: i64, a: Matrix, d: Matrix, scales: Option<Scales>) -> Problem {
        let batch = self.row_groups().unwrap_or(1);
        Problem { sizes: [rows, self.sizes[1], self.sizes[2]], batch, a, d, ends: None, scales, ..self.clone() }
    }

    /// A batch of `batch` of these GEMMs, whose matrices are contiguous in memory.
    ///
    /// Errors: a batch below 1 ([`PlanError::Size`]); folded modes, or row groups
    /// ([`PlanError::Rank`]); an epilogue function, reduction or scales are already set
    /// ([`PlanError::Together`]).
    pub fn batched(self, batch: i64) -> Result<Problem, PlanError> {
        at_least_one("L", batch)?;
        let many = |matrix: &Matrix| {
            let [rows, columns, matrices] = matrix.extents();
            let folded = || PlanError::Rank { layout: matrix.layout().to_string() };
            let plain = matrices == 1 && self.ends.is_none() && self.images.is_none();
            let strides = matrix.strides().filter(|_| plain).ok_or_else(folded)?;
            let step = matrix.reach()?.max(rows.saturating_mul(columns));
            Matrix::strided(matrix.element(), [rows, columns, batch], [strides[0], strides[1], step])
        };
        let [a, b, d] = [many(&self.a)?, many(&self.b)?, many(&self.d)?];
        let together = |with| Err(PlanError::Together { what: "batch that is made afterwards", with });
        if self.int4.is_some() {
            return together("weights of four bits");
        }
        let scales = self.scales.as_ref().or(self.blocks.as_ref().map(|blocks| &blocks.scales));
        match (&self.fused, self.kept.first(), scales) {
            (None, None, None) => {
                let Problem { nibbles, tf32, fast, batch_invariant, .. } = self;
                Ok(Problem { nibbles, tf32, fast, batch_invariant, ..Problem::of(a, b, d)? })
            }
            (Some(_), ..) => together("an epilogue function"),
            (_, Some(_), _) => together("reductions in the epilogue"),
            (.., Some(_)) => together("scales of blocks"),
        }
    }

    /// The same GEMM with an epilogue function.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::Expression;
    /// use tilewright_planners::gemm::{Fused, Matrix, Problem};
    ///
    /// // D = gelu(A B + bias) + residual.
    /// let problem = Problem::new(Element::Bf16, [256, 512, 64]).unwrap();
    /// let bias = Matrix::strided(Element::Bf16, [256, 512, 1], [0, 1, 0]).unwrap();
    /// let residual = Matrix::rows(Element::Bf16, [256, 512]).unwrap();
    /// let expression = Expression::parse("gelu_tanh(x + bias) + residual", &["x", "bias", "residual"]).unwrap();
    /// let problem = problem.fused(Fused { expression, inputs: vec![bias, residual] }).unwrap();
    /// assert!(problem.to_string().ends_with("gelu_tanh(x0 + x1) + x2"));
    /// ```
    ///
    /// With operands of f64 the function is computed in f64, and has arithmetic, `abs`, `relu`,
    /// `sqrt` and `recip`; otherwise it is computed in f32.
    ///
    /// Errors: an input has other extents than D ([`PlanError::Shape`]), is not a floating-point
    /// number of at most the type of the accumulators, or is missing; a function that f64 does not
    /// have ([`PlanError::Unknown`]).
    pub fn fused(self, fused: Fused) -> Result<Problem, PlanError> {
        for input in &fused.inputs {
            // Each row group may have its own input.
            let [m, n, _] = self.d.extents();
            let own = self.row_groups().map(|groups| [m, n, groups]);
            if input.extents() != self.d.extents() && Some(input.extents()) != own {
                let (layout, shape) = (input.layout().to_string(), self.d.layout().shape().to_string());
                return Err(PlanError::Shape { layout, shape });
            }
            let is_wider = input.element() == Element::F64 && self.computed_type() != Element::F64;
            if !input.element().is_float() || is_wider {
                let of_f64 = if self.computed_type() == Element::F64 { ", f64" } else { "" };
                let known = format!("bf16, f16, f32{of_f64}, e4m3 and e5m2");
                return Err(PlanError::Unknown { what: "type of an input", given: input.element().to_string(), known });
            }
        }
        let accumulators = if self.pairs.is_some() { 2 } else { 1 };
        if fused.expression.inputs() > fused.inputs.len() + accumulators {
            let own = if accumulators == 2 { "the accumulators x0 and x1" } else { "the accumulator x0" };
            return Err(PlanError::Unknown {
                what: "input",
                given: format!("x{}", fused.expression.inputs() - 1),
                known: format!("{own}, and {} tensors", fused.inputs.len()),
            });
        }
        if self.computed_type() == Element::F64 && !fused.expression.is_of_doubles() {
            let known = "arithmetic, abs, relu, sqrt and recip".to_string();
            return Err(PlanError::Unknown { what: "function of f64", given: fused.expression.to_string(), known });
        }
        Ok(Problem { fused: Some(fused), ..self })
    }

    /// The same GEMM without an epilogue function, reductions and pairing: a gated GEMM keeps the
    /// first accumulator of each pair.
    #[must_use]
    pub fn bare(self) -> Problem {
        let first = || Fused { expression: Expression::input(0), inputs: Vec::new() };
        Problem { fused: self.pairs.map(|_| first()), kept: Vec::new(), ..self }
    }

    /// The same GEMM with a reduction of the rows or columns of D. With row groups, a column has a
    /// number for each group, `(1,N,G)`, and rows of no group keep what they have.
    ///
    /// Errors: integer accumulators, or another statistic than a sum or a maximum
    /// ([`PlanError::Unknown`]); a sum of a batch-invariant GEMM, whose order follows the tiles
    /// ([`PlanError::Together`]).
    pub fn reducing(mut self, by: EpilogueReduction) -> Result<Problem, PlanError> {
        if !matches!(by.statistic, Statistic::Sum | Statistic::Maximum) {
            let given = format!("{:?}", by.statistic);
            return Err(PlanError::Unknown { what: "reduction", given, known: "Sum and Maximum".to_string() });
        }
        if self.accumulator_type() != Element::F32 {
            let (given, known) = (self.operand_type().to_string(), "operands with f32 accumulators".to_string());
            return Err(PlanError::Unknown { what: "operand type of a reduction", given, known });
        }
        if by.of.inputs() > 1 {
            let (given, known) = (format!("x{}", by.of.inputs() - 1), "the number of D, x0".to_string());
            return Err(PlanError::Unknown { what: "input", given, known });
        }
        if self.batch_invariant && by.statistic == Statistic::Sum {
            return Err(PlanError::Together { what: "sum of a row or a column", with: "the same bits for every M" });
        }
        // Each row group has its own results for columns.
        let matrices = match by.each {
            Each::Column => self.row_groups().unwrap_or(self.batch),
            Each::Row => self.batch,
        };
        let matrix = by.matrix([self.sizes[0], self.sizes[1]], matrices)?;
        self.kept.push((by, matrix));
        Ok(self)
    }

    /// The same GEMM with block scales in f32, one for each 128 elements along K. Operands are
    /// 8-bit floating-point numbers.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::gemm::{Matrix, Problem, Scales};
    ///
    /// // A scale for 128 elements of each row of A, and for 128 x 128 elements of B.
    /// let operand = |rows| Matrix::rows(Element::E4M3, [rows, 512]).unwrap();
    /// let d = Matrix::rows(Element::Bf16, [256, 384]).unwrap();
    /// let scales = Scales {
    ///     a: Matrix::columns(Element::F32, [256, 4]).unwrap(),
    ///     b: Matrix::rows(Element::F32, [3, 4]).unwrap(),
    /// };
    /// let problem = Problem::of(operand(256), operand(384), d).unwrap().scaled(scales).unwrap();
    /// assert!(problem.to_string().contains("block scales along K"));
    /// ```
    ///
    /// Errors: scales that are not f32, or operands of other types ([`PlanError::Unknown`]);
    /// extents that differ from those of [`Scales`] ([`PlanError::Shape`]); folded modes of scales
    /// ([`PlanError::Rank`]); a block of columns that spans both halves of gated pairs
    /// ([`PlanError::Together`]).
    pub fn scaled(self, scales: Scales) -> Result<Problem, PlanError> {
        if self.blocks.is_some() {
            return Err(PlanError::Together {
                what: "scales in f32",
                with: "a block-scaled format, which has its own",
            });
        }
        if !self.is_small() {
            let (given, known) = (self.operand_type().to_string(), "e4m3 and e5m2".to_string());
            return Err(PlanError::Unknown { what: "operand type of block scales", given, known });
        }
        let ([m, _, k], [_, n, _]) = (self.sizes, self.mma_sizes());
        // With row groups, each group has scales of its own matrix of B, and begins at any row of
        // A.
        let (of_b, any) = (self.row_groups().unwrap_or(self.batch), self.ends.is_some());
        for (matrix, rows, matrices, each) in [(&scales.a, m, self.batch, any), (&scales.b, n, of_b, false)] {
            if matrix.element() != Element::F32 {
                let (given, known) = (matrix.element().to_string(), "f32".to_string());
                return Err(PlanError::Unknown { what: "type of a scale", given, known });
            }
            if matrix.strides().is_none() {
                return Err(PlanError::Rank { layout: matrix.layout().to_string() });
            }
            Scales::fit(matrix, [rows, k, matrices], each)?;
        }
        let blocks = scales.b.extents()[0];
        if self.pairs == Some(Pairs::Halves) && blocks > 1 && blocks < n && n % (2 * SCALE_BLOCK) != 0 {
            return Err(PlanError::Together {
                what: "scales of 128 columns",
                with: "pairs of halves whose columns are not a multiple of 128",
            });
        }
        Ok(Problem { scales: Some(scales), ..self })
    }

    /// The same GEMM without promotion: 8-bit accumulators stay in the tensor core, which keeps 13
    /// bits below the largest term. This is a little faster, and less exact the longer K is. With
    /// block scales, accumulators are promoted to f32 regardless.
    #[must_use]
    pub fn fast(self) -> Problem {
        Problem { fast: true, ..self }
    }

    /// The same GEMM, batch-invariant: a row of D has the same bits whatever the other rows are and
    /// however many there are, for the same N, K, types, layout of B and machine.
    ///
    /// The bits of an element depend on its row of A, its column of B, the epilogue function, and
    /// on these choices:
    ///
    /// * the kind of instruction, which determines the number of terms that it adds at once. The
    ///   type of the operands determines it. The shape of the instruction determines how many
    ///   elements it computes, but not how it adds the terms of one element.
    /// * the order of the instructions along K. Every plan takes k-tiles in the order of K, and
    ///   promotes 8-bit accumulators after each k-tile.
    /// * where the sum is split: split-K adds partial accumulators.
    /// * which operand is along the rows of a tile.
    ///
    /// The tile, stages, warpgroups, clusters and raster order affect none of these. So a plan of a
    /// batch-invariant GEMM may depend on M in these, but it has no split-K, and A is along the
    /// rows of its tiles. With operands of f32, the order of the six products of parts is that of K
    /// too. Integer sums are exact in every order, so plans of integer GEMMs are not restricted.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Plan, Problem};
    ///
    /// let machine = Machine::named("H200").unwrap();
    /// let free = Problem::new(Element::Bf16, [16, 2048, 8192]).unwrap();
    /// let plan = Plan::of(&free, &machine);
    /// assert!(plan.split_k > 1 || plan.swapped);
    /// let plan = Plan::of(&free.batch_invariant().unwrap(), &machine);
    /// assert_eq!((plan.split_k, plan.tail, plan.swapped), (1, 0, false));
    /// ```
    ///
    /// Errors: folded modes, or images, whose K is cut where their axes end; sums of rows or
    /// columns, whose order follows the tiles ([`PlanError::Together`]).
    pub fn batch_invariant(self) -> Result<Problem, PlanError> {
        let with = "the same bits for every M";
        if self.images.is_some() || [&self.a, &self.b].iter().any(|operand| operand.strides().is_none()) {
            return Err(PlanError::Together { what: "operand with folded modes", with });
        }
        if self.kept.iter().any(|(by, _)| by.statistic == Statistic::Sum) {
            return Err(PlanError::Together { what: "sum of a row or a column", with });
        }
        Ok(Problem { batch_invariant: true, ..self })
    }

    /// The same GEMM with another A, or with the images of a convolution.
    pub(crate) fn with_a(&self, a: Matrix, images: Option<Images>) -> Problem {
        Problem { a, images, ..self.clone() }
    }

    /// The same GEMM with tensors that were copied or split.
    pub(crate) fn moved(&self, a: Matrix, b: Matrix, d: Matrix, inputs: Vec<Matrix>) -> Result<Problem, PlanError> {
        let fused = self.fused.as_ref().map(|fused| Fused { expression: fused.expression.clone(), inputs });
        let (kept, scales) = (self.kept.clone(), self.scales.clone());
        let inner = match (&self.ends, &self.int4) {
            (_, Some(scales)) => Problem::of_int4(a, b, scales.clone(), d)?,
            (None, None) => Problem::checked(a, b, d, self.pairs)?,
            (Some(ends), None) => Problem::checked_groups(a, b, d, ends.clone(), self.pairs)?,
        };
        let images = self.images.clone();
        let blocks = self.blocks.clone();
        let Problem { nibbles, tf32, fast, batch_invariant, .. } = *self;
        Ok(Problem { images, fused, kept, scales, blocks, nibbles, tf32, fast, batch_invariant, ..inner })
    }

    /// The same GEMM with operands of f32 read as tf32: 19 bits for sign, exponent and 10 bits of
    /// mantissa. Each operand is off by up to 2^-10 of itself.
    #[must_use]
    pub fn in_tf32(self) -> Problem {
        Problem { tf32: true, ..self }
    }

    /// The same GEMM on integers of four bits: each byte of A `(M,K/2)` and of B `(N,K/2)` holds
    /// two elements, the one of the lower K in the lower bits. In bytes of i8 they are -8 to 7
    /// (s4), in bytes of u8 0 to 15 (u4). Accumulators are in i32, and exact.
    ///
    /// Warps multiply by mma.sync, whose operands have contiguous K; other operands are copied
    /// first. Cards before 9.0 have 4-bit instructions. Later cards have none: the driver
    /// translates a 4-bit instruction to two 8-bit ones, with many others around them, and a GEMM
    /// of i8 is faster.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::gemm::{Matrix, Problem};
    ///
    /// let operand = |rows| Matrix::rows(Element::I8, [rows, 256]).unwrap();
    /// let d = Matrix::rows(Element::I32, [64, 32]).unwrap();
    /// let problem = Problem::of(operand(64), operand(32), d).unwrap().in_nibbles().unwrap();
    /// assert_eq!(problem.to_string(), "s4 (64,512) x (32,512) -> i32 (64,32)");
    /// assert_eq!(problem.operations(), 2 * 64 * 32 * 512);
    /// ```
    ///
    /// Errors: operands other than i8 or u8 ([`PlanError::Unknown`]).
    pub fn in_nibbles(self) -> Result<Problem, PlanError> {
        if !matches!(self.operand_type(), Element::I8 | Element::U8) {
            let (given, known) = (self.operand_type().to_string(), "i8 and u8".to_string());
            return Err(PlanError::Unknown { what: "type of bytes with two elements", given, known });
        }
        Ok(Problem { nibbles: true, ..self })
    }

    /// The convolution of images `(C,(W,H,L))` with filters `(F,K)`, where K is `(C,S,R)` with
    /// channels first, into D `(X Y L,F)`. It is an implicit GEMM: A has the modes
    /// `((X,Y,L),(C,S,R))` of the padded images, and is not in memory.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Matrix, Problem, Product, Window};
    ///
    /// // 8 images of 56 x 56 with 64 contiguous channels (NHWC), a 3 x 3 filter, padding of 1.
    /// let matrix = |text: &str| Matrix::new(Element::Bf16, &text.parse().unwrap()).unwrap();
    /// let images = matrix("(64,(56,56,8)):(1,(64,3584,200704))");
    /// let (filters, d) = (matrix("(128,576):(576,1)"), matrix("(25088,128):(128,1)"));
    /// let window = Window::of([3, 3]).padded([1, 1]);
    /// let h200 = Machine::named("H200").unwrap();
    /// let product = Product::new(&Problem::convolution(images, filters, d, window).unwrap(), &h200).unwrap();
    /// // The images are read in place, without im2col in memory.
    /// assert_eq!((product.kernels().len(), product.workspace()), (1, 0));
    /// ```
    ///
    /// `ProductTensor::A` is the tensor of the images. Images whose rows or columns are contiguous
    /// (`NCHW`) are copied first, and so are padded images if the window has a stride.
    ///
    /// Errors: images of another layout ([`PlanError::Rank`]); a filter that is larger than the
    /// padded image, or a number of the window that is out of range ([`PlanError::Window`]); as
    /// [`Problem::of`].
    pub fn convolution(images: Matrix, filters: Matrix, d: Matrix, window: Window) -> Result<Problem, PlanError> {
        let images = Images::of(images, window)?;
        let a = images.windows(images.virtual_strides())?;
        Problem::of(a, filters, d)?.of_windows(&images)
    }

    /// The window of a convolution whose A is not in memory; None for images without padding, whose
    /// windows are an ordinary matrix A with overlapping strides.
    pub fn window(&self) -> Option<Window> {
        self.images().map(Images::window)
    }

    /// The GEMM of the windows of images, in place of A. Windows of images without padding are read
    /// in place.
    pub(crate) fn of_windows(&self, images: &Images) -> Result<Problem, PlanError> {
        if images.window().has_padding() || !images.has_contiguous_channels() {
            return Ok(self.with_a(images.windows(images.virtual_strides())?, Some(images.clone())));
        }
        let a = images.windows(images.strides())?.at(images.matrix().offset())?;
        Ok(self.with_a(a, None))
    }
}

fn at_least_one(name: &str, given: i64) -> Result<(), PlanError> {
    if given < 1 { Err(PlanError::Size { name: name.to_string(), given }) } else { Ok(()) }
}
