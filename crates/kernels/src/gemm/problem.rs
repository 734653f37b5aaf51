//! What is multiplied.
//!
//! Law: `D(m,n,l) = f(sum over k of A(m,k,l) * B(n,k,l), X(m,n,l), ..)` for each matrix `l` of a
//! batch, with a [`Fused`] function of the sum and of the elements of further tensors, or the sum
//! itself. Sums are in f32, and in i32 of integers; D is rounded once.

use tilewright_kernel::Element;

use super::byproduct::ByProduct;
use super::matrix::{Contiguous, Matrix};
use super::pairs::Pairs;
use super::scales::Scales;
use crate::error::PlanError;
use crate::expression::Expression;
use crate::reduce::Statistic;

/// A product of matrices, or a batch of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    sizes: [i64; 3],
    batch: i64,
    a: Matrix,
    b: Matrix,
    d: Matrix,
    pairs: Option<Pairs>,
    fused: Option<Fused>,
    kept: Vec<(ByProduct, Matrix)>,
    scales: Option<Scales>,
    tf32: bool,
    fast: bool,
}

/// What is done with a sum before it is written: an expression whose input 0 is the sum, and whose
/// other inputs are the elements of tensors at the same row, column and matrix. A tensor of fewer
/// elements has steps of 0. Of pairs ([`Problem::gated`]) inputs 0 and 1 are both sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// The function.
    pub expression: Expression,
    /// Inputs 1, 2, .. of the expression; 2, 3, .. of pairs.
    pub inputs: Vec<Matrix>,
}

/// Sizes as a kernel knows them.
pub(crate) struct Written {
    /// M, N and K.
    pub(crate) sizes: [String; 3],
    /// How many matrices there are.
    pub(crate) batch: String,
    /// The layouts of A, B and D.
    pub(crate) tensors: [String; 3],
}

impl Problem {
    /// A product of the sizes `[M, N, K]`, with factors and result of one type: A `(M,K)` and B
    /// `(N,K)` with K contiguous, D `(M,N)` with N contiguous.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::gemm::Problem;
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
    /// use tilewright_kernels::gemm::{Matrix, Problem};
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
    /// Factors of f32 are split in three parts of bf16 each, of which six products are added in
    /// f32: that is within 2^-22 of the magnitudes that are added, besides what sums in f32 round.
    /// What is infinite, or so large that bf16 rounds it to infinity, gives NaN.
    /// [`Problem::in_tf32`] is faster and less exact.
    ///
    /// Errors: extents that do not fit each other ([`PlanError::Extents`]); types that are not
    /// multiplied, or not converted to the type of D ([`PlanError::Unknown`]); two elements of D
    /// with one place ([`PlanError::Overlap`]).
    pub fn of(a: Matrix, b: Matrix, d: Matrix) -> Result<Problem, PlanError> {
        Problem::checked(a, b, d, None)
    }

    /// The product of A `(M,K)` and pairs of columns of B `(2 N,K)` as D `(M,N)`: a function of both
    /// sums of a pair, inputs 0 and 1 of its expression.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::Expression;
    /// use tilewright_kernels::gemm::{Fused, Matrix, Pairs, Problem};
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
        let (fused, kept, scales) = (None, Vec::new(), None);
        Ok(Problem { sizes, batch, a, b, d, pairs, fused, kept, scales, tf32: false, fast: false })
    }

    /// So many of them, one after the other in memory.
    ///
    /// Errors: fewer than one ([`PlanError::Size`]); the matrices have folded modes, or something
    /// is fused already ([`PlanError::Rank`]).
    pub fn batched(self, batch: i64) -> Result<Problem, PlanError> {
        at_least_one("L", batch)?;
        let many = |matrix: &Matrix| {
            let [rows, columns, matrices] = matrix.extents();
            let folded = || PlanError::Rank { layout: matrix.layout().to_string() };
            let strides = matrix.strides().filter(|_| matrices == 1).ok_or_else(folded)?;
            let step = matrix.reach()?.max(rows.saturating_mul(columns));
            Matrix::strided(matrix.element(), [rows, columns, batch], [strides[0], strides[1], step])
        };
        let [a, b, d] = [many(&self.a)?, many(&self.b)?, many(&self.d)?];
        match (&self.fused, self.kept.first(), &self.scales) {
            (None, None, None) => Ok(Problem { tf32: self.tf32, fast: self.fast, ..Problem::of(a, b, d)? }),
            (Some(fused), ..) => Err(PlanError::Rank { layout: fused.expression.to_string() }),
            (_, Some((_, kept)), _) => Err(PlanError::Rank { layout: kept.layout().to_string() }),
            (.., Some(scales)) => Err(PlanError::Rank { layout: scales.a.layout().to_string() }),
        }
    }

    /// The same product with a function of its sums.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::Expression;
    /// use tilewright_kernels::gemm::{Fused, Matrix, Problem};
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
            if input.extents() != self.d.extents() {
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

    /// The same product without a function of its sums, and without by-products; of pairs the first
    /// sum is left.
    #[must_use]
    pub fn bare(self) -> Problem {
        let first = || Fused { expression: Expression::input(0), inputs: Vec::new() };
        Problem { fused: self.pairs.map(|_| first()), kept: Vec::new(), ..self }
    }

    /// The same product, of whose rows or columns something is kept besides.
    ///
    /// Errors: sums are whole numbers, or another statistic is asked for ([`PlanError::Unknown`]).
    pub fn keeping(mut self, by: ByProduct) -> Result<Problem, PlanError> {
        if !matches!(by.statistic, Statistic::Sum | Statistic::Maximum) {
            let given = format!("{:?}", by.statistic);
            return Err(PlanError::Unknown { what: "by-product", given, known: "Sum and Maximum".to_string() });
        }
        if self.sums() != Element::F32 {
            let (given, known) = (self.factors().to_string(), "factors whose sums are in f32".to_string());
            return Err(PlanError::Unknown { what: "by-product of factors", given, known });
        }
        if by.of.inputs() > 1 {
            let (given, known) = (format!("x{}", by.of.inputs() - 1), "the number of D, x0".to_string());
            return Err(PlanError::Unknown { what: "input", given, known });
        }
        let matrix = by.matrix([self.sizes[0], self.sizes[1]], self.batch)?;
        self.kept.push((by, matrix));
        Ok(self)
    }

    /// The same product, of which each 128 steps along K are multiplied by scales, in f32: of
    /// factors of 8 bits that are floating-point numbers.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::gemm::{Matrix, Problem, Scales};
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
    /// Errors: scales that are not in f32, or factors of other types ([`PlanError::Unknown`]); other
    /// extents than those of [`Scales`] ([`PlanError::Shape`]); pairs, or folded modes of scales
    /// ([`PlanError::Rank`]).
    pub fn scaled(self, scales: Scales) -> Result<Problem, PlanError> {
        if !self.is_small() {
            let (given, known) = (self.factors().to_string(), "e4m3 and e5m2".to_string());
            return Err(PlanError::Unknown { what: "scales of factors", given, known });
        }
        let [m, n, k] = self.sizes;
        for (matrix, rows) in [(&scales.a, m), (&scales.b, n)] {
            if matrix.element() != Element::F32 {
                let (given, known) = (matrix.element().to_string(), "f32".to_string());
                return Err(PlanError::Unknown { what: "type of a scale", given, known });
            }
            if matrix.strides().is_none() || self.pairs.is_some() {
                return Err(PlanError::Rank { layout: matrix.layout().to_string() });
            }
            Scales::rows(matrix, [rows, k, self.batch])?;
        }
        Ok(Problem { scales: Some(scales), ..self })
    }

    /// The same product, whose sums of factors of 8 bits are left to the instructions, which keep 13
    /// bits of the greatest of their terms: a little faster, and less exact the longer K is. Where
    /// blocks have scales their sums are added in f32 as before.
    #[must_use]
    pub fn fast(self) -> Problem {
        Problem { fast: true, ..self }
    }

    /// The same product of tensors that lie elsewhere, perhaps of parts of the factors.
    pub(crate) fn moved(&self, a: Matrix, b: Matrix, d: Matrix, inputs: Vec<Matrix>) -> Result<Problem, PlanError> {
        let fused = self.fused.as_ref().map(|fused| Fused { expression: fused.expression.clone(), inputs });
        let (kept, scales) = (self.kept.clone(), self.scales.clone());
        let inner = Problem::checked(a, b, d, self.pairs)?;
        Ok(Problem { fused, kept, scales, tf32: self.tf32, fast: self.fast, ..inner })
    }

    /// The same product, of whose factors of f32 only the 19 bits of tf32 count: sign, exponent and
    /// 10 bits behind the point. Each factor is off by up to 2^-10 of itself.
    #[must_use]
    pub fn in_tf32(self) -> Problem {
        Problem { tf32: true, ..self }
    }

    /// M, N and K.
    pub fn sizes(&self) -> [i64; 3] {
        self.sizes
    }

    /// How many matrices there are.
    pub fn batch(&self) -> i64 {
        self.batch
    }

    /// A, `(M,K)`.
    pub fn a(&self) -> &Matrix {
        &self.a
    }

    /// B, `(N,K)`.
    pub fn b(&self) -> &Matrix {
        &self.b
    }

    /// D, `(M,N)`.
    pub fn d(&self) -> &Matrix {
        &self.d
    }

    /// What is done with the sums, if anything.
    pub fn function(&self) -> Option<&Fused> {
        self.fused.as_ref()
    }

    /// Which columns of B make a column of D, where there are pairs.
    pub fn pairs(&self) -> Option<Pairs> {
        self.pairs
    }

    /// What is kept of rows and columns.
    pub fn by_products(&self) -> impl Iterator<Item = &ByProduct> {
        self.kept.iter().map(|(by, _)| by)
    }

    /// Where the numbers of a by-product lie.
    pub(crate) fn kept(&self, number: usize) -> Option<&Matrix> {
        self.kept.get(number).map(|(_, matrix)| matrix)
    }

    /// The scales of blocks, if there are any.
    pub fn scales(&self) -> Option<&Scales> {
        self.scales.as_ref()
    }

    /// Whether factors are floating-point numbers of 8 bits.
    fn is_small(&self) -> bool {
        matches!(self.factors(), Element::E4M3 | Element::E5M2)
    }

    /// Whether the sums of each 128 steps along K are added in f32.
    pub fn is_promoted(&self) -> bool {
        self.scales.is_some() || self.is_small() && !self.fast
    }

    /// M, N and K of what is multiplied: both columns of each pair.
    pub(crate) fn multiplied(&self) -> [i64; 3] {
        [self.sizes[0], self.b.extents()[0], self.sizes[2]]
    }

    /// The type of A and B.
    pub fn factors(&self) -> Element {
        self.a.element()
    }

    /// Whether factors of f32 are rounded to tf32.
    pub fn is_tf32(&self) -> bool {
        self.tf32
    }

    /// Whether rows of D follow one another without gaps, and so do its matrices.
    pub(crate) fn is_dense(&self) -> bool {
        let [m, n, _] = self.sizes;
        let step = |at: usize, extent: i64, wanted: i64| {
            extent == 1 || self.d.strides().is_some_and(|strides| strides[at] == wanted)
        };
        self.d.offset() == 0 && step(0, m, n) && step(1, n, 1) && step(2, self.batch, m * n)
    }

    /// The type of D.
    pub fn result(&self) -> Element {
        self.d.element()
    }

    /// The type of the sums: f32, and i32 of integers.
    pub fn sums(&self) -> Element {
        if self.factors().is_float() { Element::F32 } else { Element::I32 }
    }

    /// Multiplications and additions.
    pub fn operations(&self) -> i64 {
        self.multiplied().into_iter().fold(self.batch.saturating_mul(2), i64::saturating_mul)
    }

    /// The bytes of the tensors, each element once.
    pub fn bytes(&self) -> i64 {
        let inputs = self.fused.iter().flat_map(|fused| &fused.inputs).chain(self.kept.iter().map(|(_, to)| to));
        let inputs = inputs.chain(self.scales.iter().flat_map(|scales| [&scales.a, &scales.b]));
        [&self.a, &self.b, &self.d].into_iter().chain(inputs).map(Matrix::bytes).fold(0, i64::saturating_add)
    }

    /// Steps along K of a stage: rows of 128 bytes.
    pub(crate) fn depth(&self) -> i64 {
        LINE_BYTES / i64::from(self.factors().bytes())
    }

    /// In which mode the copy engine reads a factor, or why it cannot be multiplied as it lies.
    pub(crate) fn readable(&self, factor: &Matrix) -> Result<Contiguous, &'static str> {
        match factor.bulk()? {
            Contiguous::Rows if factor.element().bytes() != 2 => {
                Err("instructions for its type take K contiguous alone")
            }
            contiguous => Ok(contiguous),
        }
    }

    /// In which mode D is stored by bulk copies, or why from registers.
    pub(crate) fn stored(&self) -> Result<Contiguous, &'static str> {
        if !matches!(self.d.element().bytes(), 2 | 4) {
            return Err("its elements have 8 bits");
        }
        self.d.bulk()
    }

    /// In which mode D goes through shared memory, from where bulk copies store it, or threads that
    /// write neighbours side by side; none where it is stored from registers.
    pub(crate) fn staged(&self) -> Option<Contiguous> {
        if let Ok(contiguous) = self.stored() {
            return Some(contiguous);
        }
        match self.d.strides() {
            Some([_, 1, _]) if self.d.element().bytes() == 2 => Some(Contiguous::Columns),
            Some([1, _, _]) if self.d.element().bytes() == 2 => Some(Contiguous::Rows),
            _ => None,
        }
    }

    /// Whether each line of a factor begins at a line of the cache.
    pub(crate) fn begins_at_lines(&self) -> bool {
        let whole = |factor: &Matrix| {
            let strides = factor.strides().unwrap_or([1; 3]);
            let bytes = i64::from(factor.element().bytes());
            strides.into_iter().all(|stride| stride == 1 || stride * bytes % LINE_BYTES == 0)
        };
        whole(&self.a) && whole(&self.b)
    }

    /// How a kernel declares B: of pairs with a mode that says which of both.
    fn declared_b(&self) -> String {
        self.firsts().and_then(|firsts| firsts.declared()).unwrap_or_else(|| self.b.declared())
    }

    /// The sizes of a launch, by name.
    pub(crate) fn named(&self) -> Vec<(&'static str, i64)> {
        let [m, n, k] = self.sizes;
        let mut sizes = vec![("M", m), ("N", n), ("K", k)];
        if self.batch > 1 {
            sizes.push(("L", self.batch));
        }
        sizes
    }

    /// The sizes as a kernel knows them: names with these facts, of contiguous rows that follow one
    /// another, or numbers.
    pub(crate) fn written(&self, facts: Option<&[String; 3]>) -> Written {
        let Some(facts) = facts else {
            return Written {
                sizes: self.multiplied().map(|size| size.to_string()),
                batch: self.batch.to_string(),
                tensors: [self.a.declared(), self.declared_b(), self.d.declared()],
            };
        };
        let names = ["M", "N", "K"];
        let of = |rows: usize, columns: usize| {
            let [m, n] = [rows, columns].map(|mode| format!("{}{}", names[mode], facts[mode]));
            let stride = names[columns];
            match self.batch {
                1 => format!("({m},{n}):({stride},1)"),
                _ => format!("({m},{n},L):({stride},1,{}*{stride})", names[rows]),
            }
        };
        Written { sizes: names.map(str::to_string), batch: "L".to_string(), tensors: [of(0, 2), of(1, 2), of(0, 1)] }
    }
}

impl Written {
    /// The layout of the sums of so many ranges of steps along K.
    pub(crate) fn sums(&self, splits: i64) -> String {
        let [m, n, _] = &self.sizes;
        format!("({m},{n},{}*{splits}):({n},1,{m}*{n})", self.batch)
    }
}

/// Bytes of a line of the cache, and of a row of a stage.
pub(crate) const LINE_BYTES: i64 = 128;

/// The types that are multiplied.
const FACTORS: [Element; 7] =
    [Element::Bf16, Element::F16, Element::F32, Element::E4M3, Element::E5M2, Element::I8, Element::U8];

/// The types of D.
const RESULTS: [Element; 6] = [Element::Bf16, Element::F16, Element::F32, Element::E4M3, Element::E5M2, Element::I32];

fn at_least_one(name: &str, given: i64) -> Result<(), PlanError> {
    if given < 1 { Err(PlanError::Size { name: name.to_string(), given }) } else { Ok(()) }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [m, n, k] = self.sizes;
        let batch = if self.batch > 1 { format!(",{}", self.batch) } else { String::new() };
        let columns = self.b.extents()[0];
        write!(
            f,
            "{} ({m},{k}{batch}) x ({columns},{k}{batch}) -> {} ({m},{n}{batch})",
            self.factors(),
            self.result()
        )?;
        if let Some(fused) = &self.fused {
            write!(f, " = {}", fused.expression)?;
        }
        match self.pairs {
            Some(Pairs::Neighbours) => write!(f, " of neighbouring columns")?,
            Some(Pairs::Halves) => write!(f, " of columns of both halves")?,
            None => {}
        }
        if self.scales.is_some() {
            write!(f, ", blocks of 128 steps have scales")?;
        }
        if self.is_small() && !self.is_promoted() {
            write!(f, ", fast sums")?;
        }
        self.kept.iter().try_for_each(|(by, _)| write!(f, ", {by}"))
    }
}
