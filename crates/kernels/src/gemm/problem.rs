//! What is multiplied.
//!
//! Law: `D(m,n,l) = sum over k of A(m,k,l) * B(n,k,l)`, with factors of 16 bits and sums in f32, for
//! each matrix `l` of a batch. K is contiguous in A and B, N in D, and the matrices of a batch follow
//! one another.

use tilewright_kernel::Element;

use crate::error::PlanError;

/// A product of matrices, or a batch of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    sizes: [i64; 3],
    batch: i64,
    factors: Element,
    result: Element,
}

/// Sizes as a kernel knows them.
pub(crate) struct Written {
    /// M, N and K.
    pub(crate) sizes: [String; 3],
    /// The same with their facts.
    declared: [String; 3],
    /// How many matrices there are.
    pub(crate) batch: String,
    /// Whether there are several.
    many: bool,
}

impl Problem {
    /// A product of the sizes `[M, N, K]`, with factors and result of one type.
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
    /// Errors: a size below 1 ([`PlanError::Size`]).
    pub fn new(element: Element, sizes: [i64; 3]) -> Result<Problem, PlanError> {
        for (name, size) in ["M", "N", "K"].into_iter().zip(sizes) {
            at_least_one(name, size)?;
        }
        Ok(Problem { sizes, batch: 1, factors: element, result: element })
    }

    /// So many of them, one after the other in memory.
    ///
    /// Errors: fewer than one ([`PlanError::Size`]).
    pub fn batched(self, batch: i64) -> Result<Problem, PlanError> {
        at_least_one("L", batch)?;
        Ok(Problem { batch, ..self })
    }

    /// M, N and K.
    pub fn sizes(&self) -> [i64; 3] {
        self.sizes
    }

    /// How many matrices there are.
    pub fn batch(&self) -> i64 {
        self.batch
    }

    /// The type of A and B.
    pub fn factors(&self) -> Element {
        self.factors
    }

    /// The type of D.
    pub fn result(&self) -> Element {
        self.result
    }

    /// Multiplications and additions.
    pub fn operations(&self) -> i64 {
        self.sizes.into_iter().fold(self.batch.saturating_mul(2), i64::saturating_mul)
    }

    /// The bytes of the tensors, each element once.
    pub fn bytes(&self) -> i64 {
        let [m, n, k] = self.sizes;
        let of = |rows: i64, columns: i64, element: Element| {
            rows.saturating_mul(columns).saturating_mul(element.bytes().into()).saturating_mul(self.batch)
        };
        of(m, k, self.factors).saturating_add(of(n, k, self.factors)).saturating_add(of(m, n, self.result))
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

    /// The sizes as a kernel knows them: names with these facts, or numbers.
    pub(crate) fn written(&self, facts: Option<&[String; 3]>) -> Written {
        let names = ["M", "N", "K"].map(str::to_string);
        match facts {
            None => {
                let numbers = self.sizes.map(|size| size.to_string());
                Written {
                    declared: numbers.clone(),
                    sizes: numbers,
                    batch: self.batch.to_string(),
                    many: self.batch > 1,
                }
            }
            Some(facts) => Written {
                declared: [0, 1, 2].map(|mode| format!("{}{}", names[mode], facts[mode])),
                sizes: names,
                batch: "L".to_string(),
                many: self.batch > 1,
            },
        }
    }
}

impl Written {
    /// The layout of A, `(M,K)` or `(M,K,L)`.
    pub(crate) fn a(&self) -> String {
        self.matrices(0, 2)
    }

    /// The layout of B, `(N,K)` or `(N,K,L)`.
    pub(crate) fn b(&self) -> String {
        self.matrices(1, 2)
    }

    /// The layout of D, `(M,N)` or `(M,N,L)`.
    pub(crate) fn d(&self) -> String {
        self.matrices(0, 1)
    }

    /// The layout of the sums of so many ranges of steps along K.
    pub(crate) fn sums(&self, splits: i64) -> String {
        let [m, n, _] = &self.sizes;
        format!("({m},{n},{}*{splits}):({n},1,{m}*{n})", if self.many { &self.batch } else { "1" })
    }

    fn matrices(&self, rows: usize, columns: usize) -> String {
        let ([m, n], stride) = ([&self.declared[rows], &self.declared[columns]], &self.sizes[columns]);
        match self.many {
            false => format!("({m},{n}):({stride},1)"),
            true => format!("({m},{n},{}):({stride},1,{}*{stride})", self.batch, self.sizes[rows]),
        }
    }
}

fn at_least_one(name: &str, given: i64) -> Result<(), PlanError> {
    if given < 1 { Err(PlanError::Size { name: name.to_string(), given }) } else { Ok(()) }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [m, n, k] = self.sizes;
        let batch = if self.batch > 1 { format!(",{}", self.batch) } else { String::new() };
        write!(f, "{} ({m},{k}{batch}) x ({n},{k}{batch}) -> {} ({m},{n}{batch})", self.factors, self.result)
    }
}
