//! A problem as text, and its sizes and layouts as a kernel declares them.

use crate::gemm::problem::Problem;
use crate::gemm::problem::gated::Pairs;
use std::fmt;
use tilewright_kernel::LayoutArgument;
use tilewright_layout::LayoutError;

/// Sizes as a kernel declares them.
pub(crate) struct Written {
    /// M, N and K.
    pub(crate) sizes: [String; 3],
    /// The batch size.
    pub(crate) batch: String,
    /// Columns of D.
    pub(crate) columns: String,
    /// The layouts of A, B and D.
    pub(crate) tensors: [LayoutArgument; 3],
}

impl Problem {
    /// The layout of B; if gated, with a mode for the member of the pair.
    fn declared_b(&self) -> Result<LayoutArgument, LayoutError> {
        match self.firsts().and_then(|firsts| firsts.declared()) {
            Some(firsts) => Ok(LayoutArgument::Layout(firsts)),
            None => self.b.declared(),
        }
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

    /// The sizes as numbers, or, with `facts`, as names with these facts for contiguous matrices.
    ///
    /// Errors: an element has no offset that is a number.
    pub(crate) fn written(&self, facts: Option<&[String; 3]>) -> Result<Written, LayoutError> {
        let Some(facts) = facts else {
            let [_, n, _] = self.sizes;
            return Ok(Written {
                sizes: self.mma_sizes().map(|size| size.to_string()),
                batch: self.batch.to_string(),
                columns: n.to_string(),
                tensors: [self.a.declared()?, self.declared_b()?, self.d.declared()?],
            });
        };
        let names = ["M", "N", "K"];
        let of = |rows: usize, columns: usize| {
            let [m, n] = [rows, columns].map(|mode| format!("{}{}", names[mode], facts[mode]));
            let stride = names[columns];
            LayoutArgument::Text(match self.batch {
                1 => format!("({m},{n}):({stride},1)"),
                _ => format!("({m},{n},L):({stride},1,{}*{stride})", names[rows]),
            })
        };
        let tensors = [of(0, 2), of(1, 2), of(0, 1)];
        Ok(Written { sizes: names.map(str::to_string), batch: "L".to_string(), columns: "N".to_string(), tensors })
    }
}

impl Written {
    /// The layout of the partial accumulators of `split_k` splits, `each` for an element of D:
    /// ordered by split, then by matrix.
    pub(crate) fn partials(&self, split_k: i64, each: usize) -> String {
        let ([m, ..], n) = (&self.sizes, &self.columns);
        format!("({m},{n},{}*{}):({n},1,{m}*{n})", self.batch, split_k * each as i64)
    }
}

impl Problem {
    /// The problem as text, with names for the inputs of its epilogue function: first the
    /// accumulators, then the epilogue inputs.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::Expression;
    /// use tilewright_planners::gemm::{Fused, Matrix, Problem};
    ///
    /// let sizes = [64, 64, 64];
    /// let bias = Matrix::strided(Element::Bf16, [64, 64, 1], [0, 1, 0])?;
    /// let expression = Expression::parse("gelu(x + bias)", &["x", "bias"])?;
    /// let problem = Problem::new(Element::Bf16, sizes)?.fused(Fused { expression, inputs: vec![bias] })?;
    /// assert!(problem.described(&["x", "bias"]).ends_with(" = gelu(x + bias)"));
    /// assert!(problem.to_string().ends_with(" = gelu(x0 + x1)"));
    /// # Ok::<(), tilewright_planners::PlanError>(())
    /// ```
    pub fn described(&self, names: &[&str]) -> String {
        Described(self, names).to_string()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Described(self, &[]).fmt(f)
    }
}

/// A problem, and names for the inputs of its epilogue function.
struct Described<'a>(&'a Problem, &'a [&'a str]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described(problem, names) = self;
        let ([m, n, _], k) = (problem.sizes, problem.depth());
        let batch = if problem.batch > 1 { format!(",{}", problem.batch) } else { String::new() };
        let columns = problem.b.extents()[0];
        write!(
            f,
            "{} ({m},{k}{batch}) x {}({columns},{k}{batch}) -> {} ({m},{n}{batch})",
            problem.operand_name(),
            if problem.int4.is_some() { "int4 " } else { "" },
            problem.result_type()
        )?;
        if let Some(blocks) = &problem.blocks {
            write!(f, ", {}", blocks.format)?;
        }
        if let Some(images) = &problem.images {
            write!(f, ", {images}")?;
        }
        if let Some(fused) = &problem.fused {
            write!(f, " = {}", fused.expression.named(names))?;
        }
        match problem.pairs {
            Some(Pairs::Neighbours) => write!(f, " of interleaved columns")?,
            Some(Pairs::Halves) => write!(f, " of columns of both halves")?,
            None => {}
        }
        if let Some(groups) = problem.row_groups() {
            write!(f, ", rows in {groups} groups")?;
        }
        if problem.scales.is_some() {
            write!(f, ", block scales along K")?;
        }
        if problem.is_small() && !problem.is_promoted() && problem.blocks.is_none() {
            write!(f, ", without promotion")?;
        }
        if problem.batch_invariant {
            write!(f, ", batch-invariant")?;
        }
        problem.kept.iter().try_for_each(|(by, _)| write!(f, ", {by}"))
    }
}
