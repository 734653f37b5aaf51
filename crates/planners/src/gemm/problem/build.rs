//! How problems are made, and what is refused.
//!
//! Law: a problem has extents that fit each other, types that are multiplied and converted, and no
//! two elements of D at one place; what is fused, kept or scaled fits its accumulators.

use tilewright_kernel::Element;

use crate::error::PlanError;
use crate::expression::Expression;
use crate::gemm::problem::convolution::{Images, Window};
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::reductions::{ByProduct, Each};
use crate::gemm::problem::scales::{SCALE_BLOCK, Scales};
use crate::gemm::problem::{Fused, Problem};
use crate::terms::Statistic;

/// The types that are multiplied.
const FACTORS: [Element; 7] =
    [Element::Bf16, Element::F16, Element::F32, Element::E4M3, Element::E5M2, Element::I8, Element::U8];

/// The types of D.
const RESULTS: [Element; 6] = [Element::Bf16, Element::F16, Element::F32, Element::E4M3, Element::E5M2, Element::I32];

impl Problem {
    /// A product of the sizes `[M, N, K]`, with operands and result of one type: A `(M,K)` and B
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

    /// The product of A `(M,K)` and B `(N,K)` as D `(M,N)`, or of batches of them, each a type and
    /// a layout.
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
    /// Operands of f32 are split in three parts of bf16 each, of which six products are added in
    /// f32: that is within 2^-22 of the magnitudes that are added, besides what accumulators in f32
    /// round. What is infinite, or so large that bf16 rounds it to infinity, gives NaN.
    /// [`Problem::in_tf32`] is faster and less exact.
    ///
    /// Errors: extents that do not fit each other ([`PlanError::Extents`]); types that are not
    /// multiplied, or not converted to the type of D ([`PlanError::Unknown`]); two elements of D
    /// with one place ([`PlanError::Overlap`]).
    pub fn of(a: Matrix, b: Matrix, d: Matrix) -> Result<Problem, PlanError> {
        Problem::checked(a, b, d, None)
    }

    /// The product of A `(M,K)` and pairs of columns of B `(2 N,K)` as D `(M,N)`: a function of
    /// both accumulators of a pair, inputs 0 and 1 of its expression.
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
    /// Errors: as [`Problem::of`], where B has twice the columns of D, and as [`Problem::fused`].
    pub fn gated(a: Matrix, b: Matrix, d: Matrix, pairs: Pairs, fused: Fused) -> Result<Problem, PlanError> {
        Problem::checked(a, b, d, Some(pairs))?.fused(fused)
    }

    fn checked(a: Matrix, b: Matrix, d: Matrix, pairs: Option<Pairs>) -> Result<Problem, PlanError> {
        let ([m, k, batch], [n, terms, batch_b], [rows, columns, batch_d]) = (a.extents(), b.extents(), d.extents());
        let made = if pairs.is_some() { columns.saturating_mul(2) } else { columns };
        if k != terms || [m, n] != [rows, made] || batch != batch_b || batch != batch_d {
            let text = |matrix: &Matrix| matrix.layout().shape().to_string();
            return Err(PlanError::Extents { a: text(&a), b: text(&b), d: text(&d) });
        }
        if !FACTORS.contains(&a.element()) || a.element() != b.element() {
            let known = "pairs of bf16, f16, f32, e4m3, e5m2, i8 or u8".to_string();
            let given = format!("{} x {}", a.element(), b.element());
            return Err(PlanError::Unknown { what: "product of types", given, known });
        }
        if !RESULTS.contains(&d.element()) {
            let known = "bf16, f16, f32, e4m3, e5m2 and i32".to_string();
            return Err(PlanError::Unknown { what: "type of a result", given: d.element().to_string(), known });
        }
        if !d.layout().is_injective()? {
            return Err(PlanError::Overlap { layout: d.layout().to_string() });
        }
        let sizes = [m, columns, k];
        let (fused, kept, scales, ends, images) = (None, Vec::new(), None, None, None);
        Ok(Problem { sizes, batch, a, b, d, images, pairs, fused, kept, scales, ends, tf32: false, fast: false })
    }

    /// The product of row groups that end where `ends` says, with the matrix of B of each.
    pub(crate) fn checked_groups(
        a: Matrix,
        b: Matrix,
        d: Matrix,
        ends: Matrix,
        pairs: Option<Pairs>,
    ) -> Result<Problem, PlanError> {
        // As the product with one matrix of B; then with all.
        let [n, k, groups] = b.extents();
        let one = Matrix::strided(b.element(), [n, k, 1], [k, 1, 0])?;
        let problem = Problem::checked(a, one, d, pairs)?;
        if ends.extents() != [groups, 1, 1] {
            let (layout, shape) = (ends.layout().to_string(), groups.to_string());
            return Err(PlanError::Shape { layout, shape });
        }
        Ok(Problem { b, ends: Some(ends), ..problem })
    }

    /// The same with groups of so many rows each, as a batch.
    pub(crate) fn parted_evenly(&self, rows: i64, a: Matrix, d: Matrix, scales: Option<Scales>) -> Problem {
        let batch = self.row_groups().unwrap_or(1);
        Problem { sizes: [rows, self.sizes[1], self.sizes[2]], batch, a, d, ends: None, scales, ..self.clone() }
    }

    /// A batch of so many of these products, whose matrices lie one after the other in memory.
    ///
    /// Errors: fewer than one ([`PlanError::Size`]); the matrices have folded modes, or rows are in
    /// groups ([`PlanError::Rank`]); something is fused already ([`PlanError::Together`]).
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
        match (&self.fused, self.kept.first(), &self.scales) {
            (None, None, None) => Ok(Problem { tf32: self.tf32, fast: self.fast, ..Problem::of(a, b, d)? }),
            (Some(_), ..) => together("a function of its sums"),
            (_, Some(_), _) => together("by-products"),
            (.., Some(_)) => together("scales of blocks"),
        }
    }

    /// The same product with an epilogue function.
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
    /// Errors: an input has other extents than D ([`PlanError::Shape`]), is no floating-point
    /// number, or is not given ([`PlanError::Unknown`]).
    pub fn fused(self, fused: Fused) -> Result<Problem, PlanError> {
        for input in &fused.inputs {
            // Each group may have its own.
            let [m, n, _] = self.d.extents();
            let own = self.row_groups().map(|groups| [m, n, groups]);
            if input.extents() != self.d.extents() && Some(input.extents()) != own {
                let (layout, shape) = (input.layout().to_string(), self.d.layout().shape().to_string());
                return Err(PlanError::Shape { layout, shape });
            }
            if !input.element().is_float() || input.element() == Element::F64 {
                let known = "bf16, f16, f32, e4m3 and e5m2".to_string();
                return Err(PlanError::Unknown { what: "type of an input", given: input.element().to_string(), known });
            }
        }
        let sums = if self.pairs.is_some() { 2 } else { 1 };
        if fused.expression.inputs() > fused.inputs.len() + sums {
            let own = if sums == 2 { "the sums x0 and x1" } else { "the sum x0" };
            return Err(PlanError::Unknown {
                what: "input",
                given: format!("x{}", fused.expression.inputs() - 1),
                known: format!("{own}, and {} tensors", fused.inputs.len()),
            });
        }
        Ok(Problem { fused: Some(fused), ..self })
    }

    /// The same product without an epilogue function, and without reductions of rows or columns; of
    /// pairs the first sum is left.
    #[must_use]
    pub fn bare(self) -> Problem {
        let first = || Fused { expression: Expression::input(0), inputs: Vec::new() };
        Problem { fused: self.pairs.map(|_| first()), kept: Vec::new(), ..self }
    }

    /// The same product, of whose rows or columns something is kept besides. Where rows are in
    /// groups there is a number of each column for each group, `(1,N,G)`, and rows of no group keep
    /// what they have.
    ///
    /// Errors: sums are whole numbers, or another statistic is asked for ([`PlanError::Unknown`]).
    pub fn keeping(mut self, by: ByProduct) -> Result<Problem, PlanError> {
        if !matches!(by.statistic, Statistic::Sum | Statistic::Maximum) {
            let given = format!("{:?}", by.statistic);
            return Err(PlanError::Unknown { what: "by-product", given, known: "Sum and Maximum".to_string() });
        }
        if self.accumulator_type() != Element::F32 {
            let (given, known) = (self.operand_type().to_string(), "factors whose sums are in f32".to_string());
            return Err(PlanError::Unknown { what: "by-product of factors", given, known });
        }
        if by.of.inputs() > 1 {
            let (given, known) = (format!("x{}", by.of.inputs() - 1), "the number of D, x0".to_string());
            return Err(PlanError::Unknown { what: "input", given, known });
        }
        // Each group has numbers of its columns.
        let matrices = match by.each {
            Each::Column => self.row_groups().unwrap_or(self.batch),
            Each::Row => self.batch,
        };
        let matrix = by.matrix([self.sizes[0], self.sizes[1]], matrices)?;
        self.kept.push((by, matrix));
        Ok(self)
    }

    /// The same product, of which each 128 elements along K are multiplied by scales, in f32: of
    /// operands of 8 bits that are floating-point numbers.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::gemm::{Matrix, Problem, Scales};
    ///
    /// // A scale for 128 elements of each row of A, and for 128 x 128 elements of B.
    /// let factor = |rows| Matrix::rows(Element::E4M3, [rows, 512]).unwrap();
    /// let d = Matrix::rows(Element::Bf16, [256, 384]).unwrap();
    /// let scales = Scales {
    ///     a: Matrix::columns(Element::F32, [256, 4]).unwrap(),
    ///     b: Matrix::rows(Element::F32, [3, 4]).unwrap(),
    /// };
    /// let problem = Problem::of(factor(256), factor(384), d).unwrap().scaled(scales).unwrap();
    /// assert!(problem.to_string().contains("blocks of 128 steps have scales"));
    /// ```
    ///
    /// Errors: scales that are not in f32, or operands of other types ([`PlanError::Unknown`]);
    /// other extents than those of [`Scales`] ([`PlanError::Shape`]); folded modes of scales
    /// ([`PlanError::Rank`]); a block of columns of both halves of pairs ([`PlanError::Together`]).
    pub fn scaled(self, scales: Scales) -> Result<Problem, PlanError> {
        if !self.is_small() {
            let (given, known) = (self.operand_type().to_string(), "e4m3 and e5m2".to_string());
            return Err(PlanError::Unknown { what: "scales of factors", given, known });
        }
        let ([m, _, k], [_, n, _]) = (self.sizes, self.mma_sizes());
        // Each group has scales of its matrix of B, and begins at any row of A.
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
                with: "pairs of halves of which each has no multiple of 128 columns",
            });
        }
        Ok(Problem { scales: Some(scales), ..self })
    }

    /// The same product, whose accumulators of operands of 8 bits are left to the instructions,
    /// which keep 13 bits of the greatest of their terms: a little faster, and less exact the
    /// longer K is. Where blocks have scales their accumulators are added in f32 as before.
    #[must_use]
    pub fn fast(self) -> Problem {
        Problem { fast: true, ..self }
    }

    /// The same product of another A, or of images of which A has windows.
    pub(crate) fn with_a(&self, a: Matrix, images: Option<Images>) -> Problem {
        Problem { a, images, ..self.clone() }
    }

    /// The same product of tensors that lie elsewhere, perhaps of parts of the operands.
    pub(crate) fn moved(&self, a: Matrix, b: Matrix, d: Matrix, inputs: Vec<Matrix>) -> Result<Problem, PlanError> {
        let fused = self.fused.as_ref().map(|fused| Fused { expression: fused.expression.clone(), inputs });
        let (kept, scales) = (self.kept.clone(), self.scales.clone());
        let inner = match &self.ends {
            None => Problem::checked(a, b, d, self.pairs)?,
            Some(ends) => Problem::checked_groups(a, b, d, ends.clone(), self.pairs)?,
        };
        let images = self.images.clone();
        Ok(Problem { images, fused, kept, scales, tf32: self.tf32, fast: self.fast, ..inner })
    }

    /// The same product, of whose operands of f32 only the 19 bits of tf32 count: sign, exponent
    /// and 10 bits behind the point. Each operand is off by up to 2^-10 of itself.
    #[must_use]
    pub fn in_tf32(self) -> Problem {
        Problem { tf32: true, ..self }
    }

    /// The convolution of images `(C,(W,H,L))` by filters `(F,K)`, K being `(C,S,R)` with the
    /// channels first, as D `(X Y L,F)`: a product whose A has the modes `((X,Y,L),(C,S,R))`, of
    /// images with borders of zeros.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Matrix, Problem, Product, Window};
    ///
    /// // 8 images of 56 x 56 with 64 channels, the channels contiguous; 3 x 3, as large as before.
    /// let matrix = |text: &str| Matrix::new(Element::Bf16, &text.parse().unwrap()).unwrap();
    /// let images = matrix("(64,(56,56,8)):(1,(64,3584,200704))");
    /// let (filters, d) = (matrix("(128,576):(576,1)"), matrix("(25088,128):(128,1)"));
    /// let window = Window::of([3, 3]).bordered([1, 1]);
    /// let h200 = Machine::named("H200").unwrap();
    /// let product = Product::new(&Problem::convolution(images, filters, d, window).unwrap(), &h200).unwrap();
    /// // The images are read where they lie.
    /// assert_eq!((product.kernels().len(), product.workspace()), (1, 0));
    /// ```
    ///
    /// `ProductTensor::A` are the images. Those whose rows or columns are contiguous (`NCHW`) are
    /// moved before, and so are those with borders of which windows go in steps.
    ///
    /// Errors: images are no such layout ([`PlanError::Rank`]); a filter that does not fit into an
    /// image and its borders, or numbers of a window that are out of their range
    /// ([`PlanError::Window`]); as [`Problem::of`].
    pub fn convolution(images: Matrix, filters: Matrix, d: Matrix, window: Window) -> Result<Problem, PlanError> {
        let images = Images::of(images, window)?;
        let a = images.windows(images.virtual_strides())?;
        Problem::of(a, filters, d)?.of_windows(&images)
    }

    /// The window of a convolution whose A is written nowhere; none where images without borders
    /// are read as they lie, of which A is a matrix like any other.
    pub fn window(&self) -> Option<Window> {
        self.images().map(Images::window)
    }

    /// The product of the windows of images, in place of A. Windows of images without borders are
    /// read where they lie.
    pub(crate) fn of_windows(&self, images: &Images) -> Result<Problem, PlanError> {
        if images.window().has_borders() || !images.has_contiguous_channels() {
            return Ok(self.with_a(images.windows(images.virtual_strides())?, Some(images.clone())));
        }
        let a = images.windows(images.strides())?.at(images.matrix().offset())?;
        Ok(self.with_a(a, None))
    }
}

fn at_least_one(name: &str, given: i64) -> Result<(), PlanError> {
    if given < 1 { Err(PlanError::Size { name: name.to_string(), given }) } else { Ok(()) }
}
