//! Which way rows are held.
//!
//! Many rows, of which each multiprocessor has several, overlap: while some are read, others are
//! computed and written. Few rows would leave multiprocessors idle, and each is waited for. So a
//! row is spread over as many threads and blocks as can all run at once. The limits were measured
//! on an H200, with some 1,000 forms of rows of 1 to 128 MiB (`DECISIONS.md`).

use tilewright_kernel::Element;

use super::{FULL, KEPT, LANES, LARGEST, MOST, RowMatrix, Rows, Turns};
use crate::error::PlanError;
use crate::long_rows::LongRows;
use crate::planned::Planned;

/// What is computed of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Softmax,
    RmsNorm,
    LayerNorm,
}

/// A way to hold rows.
pub(crate) enum Way {
    /// Each by a block, or by a cluster of blocks, or several by a block.
    Held(Rows),
    /// Clusters that stay are dealt rows.
    Dealt(Turns),
    /// Not at all: a block reads its row twice.
    ReadTwice(Box<LongRows>),
}

/// The most blocks of a cluster that has one of few rows, and how many warps a block has then, at
/// least: of fewer the cluster has half as many.
const SHARED_BY: i64 = 8;
const LEAST_WARPS: i64 = 4;
/// Up to how many warps few rows have together, so that all run at once and still gain: of rows
/// that one block holds in registers as well, of rows that one holds partly in shared memory, of
/// longer ones in blocks of up to 16 warps, and of what is left. Norms read what goes with all rows
/// in each block, and blocks of more warps leave multiprocessors without one.
const WARPS_OF_SHORT: i64 = 1024;
const WARPS_OF_HELD: i64 = 2560;
const WARPS_OF_LONG: i64 = 4096;
const WARPS_OF_OTHERS: i64 = 2048;
/// Up to how many vectors of a row rows are short; from how many on they are long.
const SHORT: i64 = KEPT * LARGEST;
const LONG: i64 = 8192;
/// Up to how many rows a block of the most threads has one in its registers, of f32 and of types
/// that take more registers while they are computed with.
const ROWS_OF_LARGEST: i64 = 256;
const ROWS_OF_LARGEST_16: i64 = 128;
/// Up to how many MiB of rows, which stay in the second-level cache or nearly, each has a block or
/// cluster of its own where more would be dealt to clusters.
const CACHED: [(Work, i64, i64); 7] = [
    // What is computed, of up to how many vectors of a row, and how many MiB.
    (Work::Softmax, READ_ONCE, 128),
    (Work::Softmax, i64::MAX, 64),
    (Work::RmsNorm, LONG, 64),
    (Work::RmsNorm, i64::MAX, 20),
    (Work::LayerNorm, SHORT, 128),
    (Work::LayerNorm, READ_ONCE, 25),
    (Work::LayerNorm, i64::MAX, 20),
];
/// Up to how many vectors of a row a block holds.
const READ_ONCE: i64 = 2 * MOST * LARGEST;

impl Work {
    /// The kernel that is the fastest way for a matrix. For devices without clusters there is one
    /// without.
    ///
    /// Errors: there are too many columns; as the kernel.
    pub(crate) fn plan(
        self,
        matrix: RowMatrix,
        kernel: impl Fn(Way) -> Result<Planned, PlanError>,
    ) -> Result<Planned, PlanError> {
        let alone = self.by_block(matrix)?;
        match self.by_cluster(matrix, &alone)? {
            Some(way) => Ok(kernel(way)?.otherwise(kernel(alone)?)),
            None => kernel(alone),
        }
    }

    /// How many rows go with all rows.
    fn beside(self) -> usize {
        match self {
            Work::Softmax => 0,
            Work::RmsNorm => 1,
            Work::LayerNorm => 2,
        }
    }

    /// A block for a row.
    ///
    /// Errors: there are too many columns.
    fn by_block(self, matrix: RowMatrix) -> Result<Way, PlanError> {
        if let Some(rows) = self.by_largest(matrix)? {
            return Ok(Way::Held(rows));
        }
        match Rows::new(matrix, self.beside()) {
            Err(PlanError::TooLarge { .. }) => Ok(Way::ReadTwice(Box::new(LongRows::new(matrix)?))),
            rows => Ok(Way::Held(rows?)),
        }
    }

    /// A cluster for a row, where that is faster than the way without.
    ///
    /// Errors: a layout is not representable.
    fn by_cluster(self, matrix: RowMatrix, alone: &Way) -> Result<Option<Way>, PlanError> {
        if let Some(rows) = self.of_few(matrix)? {
            return Ok(Some(Way::Held(rows)));
        }
        let cached = self.is_cached(matrix);
        let turns = match self {
            _ if cached => None,
            Work::Softmax => Turns::of_softmax(matrix)?,
            norm => Turns::new(matrix, norm.beside())?,
        };
        if let Some(turns) = turns {
            return Ok(Some(Way::Dealt(turns)));
        }
        // Of many rows one block is faster for `rms_norm` where it holds one: it has a single pass
        // to make.
        if self == Work::RmsNorm && matches!(alone, Way::Held(_)) && !cached {
            return Ok(None);
        }
        Ok(Rows::in_cluster(matrix)?.map(Way::Held))
    }

    /// Whether there are so few rows that they stay in the second-level cache, or nearly.
    fn is_cached(self, matrix: RowMatrix) -> bool {
        let (Some(rows), Some(vectors)) = (matrix.rows, matrix.vectors()) else { return false };
        let limit = CACHED.iter().find(|(work, most, _)| *work == self && vectors <= *most);
        limit.is_some_and(|(_, _, most)| rows.saturating_mul(matrix.row_bytes()) <= most << 20)
    }

    /// Rows in the registers of the largest blocks, of which each multiprocessor has two at most.
    fn by_largest(self, matrix: RowMatrix) -> Result<Option<Rows>, PlanError> {
        let most = if matrix.element == Element::F32 { ROWS_OF_LARGEST } else { ROWS_OF_LARGEST_16 };
        let warps = matrix.vectors().map(|vectors| over(vectors, KEPT * LANES));
        let Some(warps) = warps.filter(|warps| *warps > FULL / LANES && *warps <= LARGEST / LANES) else {
            return Ok(None);
        };
        if matrix.rows.is_none_or(|rows| rows > most) {
            return Ok(None);
        }
        let rows = Rows::in_blocks(matrix, (1, warps), (KEPT, 0))?;
        Ok(Some(Rows { beside: self.beside(), ..rows }))
    }

    /// Few rows, each in the registers of a cluster, or half of a long one in its shared memory,
    /// all at once.
    fn of_few(self, matrix: RowMatrix) -> Result<Option<Rows>, PlanError> {
        let (Some(rows), Some(vectors)) = (matrix.rows, matrix.vectors()) else { return Ok(None) };
        if vectors <= KEPT * FULL {
            return Ok(None);
        }
        for each in [KEPT, MOST] {
            let warps = |blocks| over(vectors, blocks * each * LANES);
            let blocks = if warps(SHARED_BY) < LEAST_WARPS { SHARED_BY / 2 } else { SHARED_BY };
            let warps = warps(blocks);
            // Rows that one block holds are not put into shared memory of several.
            if warps > LARGEST / LANES || each > KEPT && vectors <= LONG {
                continue;
            }
            let most = match self {
                _ if vectors <= SHORT => WARPS_OF_SHORT,
                Work::Softmax if vectors < LONG => WARPS_OF_HELD,
                Work::Softmax if warps <= FULL / LANES && each == KEPT => WARPS_OF_LONG,
                _ => WARPS_OF_OTHERS,
            };
            if rows.saturating_mul(blocks * warps) <= most {
                let rows = Rows::in_blocks(matrix, (blocks, warps), (each, each - KEPT))?;
                return Ok(Some(Rows { beside: self.beside(), ..rows }));
            }
        }
        Ok(None)
    }
}

/// A quotient, rounded up.
fn over(number: i64, by: i64) -> i64 {
    (number + by - 1) / by
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::Written;
    use tilewright_kernel::ptx::Target;

    use super::*;
    use crate::{layer_norm_of, rms_norm_of, softmax_of};

    fn planned(work: Work, matrix: RowMatrix) -> Planned {
        match work {
            Work::Softmax => softmax_of(matrix),
            Work::RmsNorm => rms_norm_of(matrix, 1e-5),
            Work::LayerNorm => layer_norm_of(matrix, 1e-5),
        }
        .unwrap()
    }

    /// Two rows are right, for a device with clusters of so many blocks, and for one without.
    fn check(work: Work, matrix: RowMatrix, cluster: u32) {
        let plan = planned(work, matrix).sized(&[("M", 2)]);
        let older = plan.clone().on(Target::Sm80);
        let blocks = [&plan, &older].map(|plan| plan.kernel().program().cluster_size());
        assert_eq!(blocks, [cluster, 1], "{plan}");
        for plan in [plan, older] {
            let report = plan.check().unwrap_or_else(|error| panic!("{matrix:?}: {plan}{error}"));
            assert_eq!(report.compared as i64, 2 * matrix.columns);
            assert!(plan.kernel().outputs().iter().all(|output| output.written == Written::Once), "{plan}");
        }
    }

    #[test]
    fn rows_longer_than_a_block_holds_are_right() {
        // Clusters of two to sixteen blocks, with ends in the last run, most of which are dealt
        // rows, and one block for targets that have none; rows that begin at odd places, which one
        // block reads twice.
        for (work, columns, element, cluster) in [
            (Work::Softmax, 65_540, Element::F32, 4),
            (Work::Softmax, 36_888, Element::F32, 2),
            (Work::Softmax, 40_008, Element::Bf16, 1),
            (Work::Softmax, 70_000, Element::F16, 8),
            (Work::RmsNorm, 65_540, Element::F32, 8),
            (Work::RmsNorm, 20_000, Element::F32, 1),
            (Work::RmsNorm, 200_000, Element::F32, 8),
            (Work::LayerNorm, 20_000, Element::F16, 2),
            (Work::LayerNorm, 30_000, Element::F16, 4),
            (Work::LayerNorm, 70_000, Element::F16, 8),
            (Work::LayerNorm, 80_000, Element::F32, 16),
            (Work::LayerNorm, 152_000, Element::F32, 8),
            (Work::LayerNorm, 33_001, Element::F32, 1),
        ] {
            check(work, RowMatrix::new(columns, element), cluster);
        }
    }

    #[test]
    fn few_rows_are_right() {
        // Clusters whose warps are a power of two or not, rows that fill them or end within a run,
        // and of which the last blocks and threads have nothing; half of a row in shared memory.
        for work in [Work::Softmax, Work::RmsNorm, Work::LayerNorm] {
            for (columns, element, rows, cluster) in [
                (16_384, Element::F32, 2, 8),
                (8200, Element::F32, 2, 4),
                (20_000, Element::F32, 2, 8),
                (24_584, Element::Bf16, 2, 8),
                (52_000, Element::F16, 2, 8),
                (66_000, Element::F32, 48, 4),
                (65_536, Element::F32, 32, 8),
                // One block of more than 512 threads.
                (12_000, Element::F32, 200, 1),
            ] {
                check(work, RowMatrix::new(columns, element).with_rows(rows), cluster);
            }
        }
    }

    #[test]
    fn the_way_is_that_of_so_many_rows() {
        use Work::{LayerNorm, RmsNorm, Softmax};
        for (work, columns, element, rows, wanted) in [
            (Softmax, 16_384, Element::F32, 32, "a cluster of 8 blocks of 128 threads a row, 4 vectors"),
            (Softmax, 16_384, Element::F32, 33, "a block of 1024 threads a row, 4 vectors"),
            (Softmax, 16_384, Element::F32, 256, "a block of 1024 threads a row, 4 vectors"),
            (Softmax, 16_384, Element::F32, 257, "a block of 512 threads a row, 8 vectors"),
            (Softmax, 32_768, Element::Bf16, 129, "a block of 512 threads a row, 8 vectors"),
            (Softmax, 12_000, Element::F32, 42, "a cluster of 4 blocks of 192 threads a row, 4 vectors of 4 a"),
            (Softmax, 20_000, Element::F32, 65, "a block of 320 threads a row, 16 vectors"),
            (Softmax, 32_768, Element::F32, 64, "a cluster of 8 blocks of 256 threads a row, 4 vectors"),
            (Softmax, 65_536, Element::F32, 64, "a cluster of 2 blocks of 512 threads a row, 16 vectors"),
            (Softmax, 131_072, Element::F32, 16, "a cluster of 8 blocks of 512 threads a row, 8 vectors of 4 a"),
            (Softmax, 131_072, Element::F32, 128, "a cluster of 4 blocks of 512 threads a row, 16 vectors"),
            (Softmax, 131_072, Element::F32, 1024, "15 clusters of 16 blocks of 256 threads; a cluster"),
            (RmsNorm, 32_768, Element::F32, 32, "a cluster of 8 blocks of 256 threads a row, 4 vectors"),
            (RmsNorm, 32_768, Element::F32, 512, "a block of 512 threads a row, 16 vectors"),
            (RmsNorm, 32_768, Element::F32, 513, "62 clusters of 4 blocks of 256 threads; a cluster"),
            (LayerNorm, 16_384, Element::F32, 2048, "a block of 512 threads a row, 8 vectors"),
            (LayerNorm, 16_384, Element::F32, 2049, "93 clusters of 4 blocks of 128 threads; a cluster"),
            (LayerNorm, 65_536, Element::F32, 32, "a cluster of 8 blocks of 256 threads a row, 8 vectors of 4 a"),
            (LayerNorm, 65_536, Element::F32, 129, "31 clusters of 8 blocks of 256 threads; a cluster"),
            // Shorter rows, and those that begin anywhere, are held as many are.
            (Softmax, 8192, Element::F32, 1, "a block of 512 threads a row, 4 vectors"),
            (LayerNorm, 33_001, Element::F32, 1, "a block of 512 threads a row, read twice"),
        ] {
            let plan = planned(work, RowMatrix::new(columns, element).with_rows(rows));
            assert!(plan.plan()[1].contains(wanted), "{rows} rows: {plan}not {wanted}");
        }
    }
}
