//! Grouped GEMM: rows in groups, each with a matrix of B of its own.

use tilewright_kernel::Element;

use crate::error::PlanError;
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::{Fused, Problem};
use crate::meaning::any_numbers;
use crate::product::count;

impl Problem {
    /// The product of row groups: A `(M,K)`, whose rows are parted in groups, and a matrix of B
    /// for each, `(N,K,G)`, as D `(M,N)`. Where each group ends is a tensor of `G` numbers of type
    /// i32, which is read as the product runs: rising, at most M.
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
    /// Inputs of an epilogue function are `(M,N)`, or `(M,N,G)` where each group has its own: a
    /// bias of each group is `(M,N,G):(0,1,N)`.
    ///
    /// Errors: as [`Problem::of`]; A or D are a batch ([`PlanError::Extents`]); D has folded modes,
    /// and rows that belong to no group would not stay ([`PlanError::Rank`]); more rows than 31
    /// bits count ([`PlanError::TooLarge`]).
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
        // Ends of groups are of 32 bits.
        let (asked, limit) = (a.extents()[0], i64::from(i32::MAX));
        if asked > limit {
            return Err(PlanError::TooLarge { what: "rows of groups", asked, limit });
        }
        let ends = Matrix::strided(Element::I32, [groups, 1, 1], [1, 0, 0])?;
        Problem::checked_groups(a, b, d, ends, pairs)
    }

    /// How many groups the rows are in; none for a product without groups.
    pub fn row_groups(&self) -> Option<i64> {
        self.group_ends().map(|ends| ends.extents()[0])
    }

    /// The group of a row, where `end` says where each ends; none behind the last.
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
        // The last group goes to the end, in most cases; the second one is empty in some.
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

    /// The batch of equal products that the groups are where all have as many rows: what a plan is
    /// chosen for. The problem itself where there are no groups.
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
