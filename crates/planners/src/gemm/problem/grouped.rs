//! Grouped GEMM: rows in groups, each with its own matrix of B.

use tilewright_kernel::Element;

use crate::error::PlanError;
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::{Fused, Problem};
use crate::meaning::any_numbers;
use crate::units::count;

impl Problem {
    /// The grouped GEMM of A `(M,K)`, whose rows are in groups, and B `(N,K,G)` with a matrix for
    /// each group, into D `(M,N)`. The ends of the groups are a tensor of `G` numbers of type i32,
    /// which the kernel reads: they are non-decreasing and at most M.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Matrix, Problem, Product};
    ///
    /// // 4096 rows of tokens, sorted by which of 8 experts they go to.
    /// let a = Matrix::rows(Element::Bf16, [4096, 2048]).unwrap();
    /// let b = Matrix::strided(Element::Bf16, [1024, 2048, 8], [2048, 1, 1024 * 2048]).unwrap();
    /// let d = Matrix::rows(Element::Bf16, [4096, 1024]).unwrap();
    /// let h200 = Machine::named("H200").unwrap();
    /// let product = Product::new(&Problem::grouped(a, b, d).unwrap(), &h200).unwrap();
    /// assert_eq!(product.kernels().len(), 2);
    /// ```
    ///
    /// Epilogue inputs are `(M,N)`, or `(M,N,G)` if each group has its own. A bias for each group
    /// is `(M,N,G):(0,1,N)`.
    ///
    /// Errors: as [`Problem::of`]; A or D is a batch ([`PlanError::Extents`]); D has folded modes,
    /// so rows that belong to no group would be overwritten ([`PlanError::Rank`]); M exceeds 31
    /// bits ([`PlanError::TooLarge`]).
    pub fn grouped(a: Matrix, b: Matrix, d: Matrix) -> Result<Problem, PlanError> {
        Problem::in_groups(a, b, d, None)
    }

    /// The same with pairs of columns of B, `(2 N,K,G)`, as in [`Problem::gated`].
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_planners::Expression;
    /// use tilewright_planners::gemm::{Fused, Matrix, Pairs, Problem};
    ///
    /// // D = silu(A G) * (A U) with the weights of 8 experts.
    /// let gate = Fused { expression: Expression::parse("silu(x) * y", &["x", "y"]).unwrap(), inputs: vec![] };
    /// let a = Matrix::rows(Element::Bf16, [4096, 2048]).unwrap();
    /// let b = Matrix::strided(Element::Bf16, [1024, 2048, 8], [2048, 1, 1024 * 2048]).unwrap();
    /// let d = Matrix::rows(Element::Bf16, [4096, 512]).unwrap();
    /// assert!(Problem::grouped_pairs(a, b, d, Pairs::Halves, gate).is_ok());
    /// ```
    ///
    /// Errors: as [`Problem::grouped`] and [`Problem::fused`].
    pub fn grouped_pairs(a: Matrix, b: Matrix, d: Matrix, pairs: Pairs, fused: Fused) -> Result<Problem, PlanError> {
        Problem::in_groups(a, b, d, Some(pairs))?.fused(fused)
    }

    fn in_groups(a: Matrix, b: Matrix, d: Matrix, pairs: Option<Pairs>) -> Result<Problem, PlanError> {
        let [_, _, groups] = b.extents();
        if d.strides().is_none() {
            return Err(PlanError::Rank { layout: d.layout().to_string() });
        }
        // Ends of groups are of type i32.
        let (asked, limit) = (a.extents()[0], i64::from(i32::MAX));
        if asked > limit {
            return Err(PlanError::TooLarge { what: "rows of groups", asked, limit });
        }
        let ends = Matrix::strided(Element::I32, [groups, 1, 1], [1, 0, 0])?;
        Problem::checked_groups(a, b, d, ends, pairs)
    }

    /// The number of row groups; None for a GEMM without groups.
    pub fn row_groups(&self) -> Option<i64> {
        self.group_ends().map(|ends| ends.extents()[0])
    }

    /// The group of a row, where `end` gives the end of each group; None after the last group.
    pub fn row_group_of(&self, row: i64, end: impl Fn(i64) -> i64) -> Option<i64> {
        (0..self.row_groups()?).find(|group| row < end(*group))
    }

    /// Random ends, with some empty groups: the bytes of a tensor of i32.
    pub fn any_ends(&self, seed: u64) -> Vec<u8> {
        let (rows, groups) = (self.sizes()[0], self.row_groups().unwrap_or(0));
        let chance = any_numbers(Element::U32, groups as usize, seed);
        let mut ends: Vec<i32> = chance
            .chunks(4)
            .map(|bytes| bytes.iter().rev().fold(0_i64, |number, byte| number << 8 | i64::from(*byte)))
            .map(|number| (number % (rows + 1)) as i32)
            .collect();
        ends.sort_unstable();
        // The last group usually goes to the end; the second group is sometimes empty.
        if let [.., last] = &mut ends[..]
            && seed % 4 != 3
        {
            *last = rows as i32;
        }
        if let [first, second, _, ..] = &mut ends[..]
            && seed % 2 == 1
        {
            *second = *first;
        }
        ends.into_iter().flat_map(i32::to_le_bytes).collect()
    }

    /// The batched GEMM with groups of equal size, for which a plan is chosen; the problem itself
    /// if it has no groups.
    pub(crate) fn even(&self) -> Result<Problem, PlanError> {
        let Some(groups) = self.row_groups() else { return Ok(self.clone()) };
        let rows = count(self.sizes()[0], groups);
        let many = |matrix: &Matrix| match matrix.strides() {
            Some([down, across, _]) => {
                let [_, columns, _] = matrix.extents();
                Matrix::strided(matrix.element(), [rows, columns, groups], [down, across, rows * down])
            }
            None => Err(PlanError::Rank { layout: matrix.layout().to_string() }),
        };
        let scales = self.scales().map(|scales| scales.parted_evenly(rows, groups)).transpose()?;
        Ok(self.parted_evenly(rows, many(self.a())?, many(self.d())?, scales))
    }
}
