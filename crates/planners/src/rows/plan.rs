//! How rows are held: each by a block or a cluster, by persistent clusters, or not at all.
//!
//! If there are many rows, each multiprocessor has several, and they overlap: while some are
//! loaded, others are computed and stored. Few rows would leave multiprocessors idle, and their
//! latency counts. So a row is divided among as many threads and blocks as can all be resident at
//! once (`DECISIONS.md`).

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;

use super::{Persistent, RowsPlan};
use crate::error::PlanError;
use crate::fitted::ROWS;
use crate::law::{DATA_REGISTERS, REGISTER_VECTORS, SCHEDULERS, SEVERAL_THREADS, l2_share};
use crate::planned::{Planned, distinct};
use crate::rows::RowsTwice;
use crate::terms::RowMatrix;
use crate::units::{BLOCK_THREADS, LANES, VECTOR, div_up, resident_threads};

/// The computation of a row kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowComputation {
    Softmax,
    RmsNorm,
    LayerNorm,
}

/// A way to hold rows.
pub(crate) enum Way {
    /// A block or a cluster holds each row, or a block holds several rows.
    Held(RowsPlan),
    /// Persistent clusters claim rows.
    Persistent(Persistent),
    /// Rows are not held: a block reads its row twice.
    ReadTwice(Box<RowsTwice>),
}

/// The most blocks of a cluster that every device with clusters supports (CUDA C++ Programming
/// Guide, "Thread Block Clusters").
const PORTABLE_CLUSTER: i64 = 8;
/// The longest row, in bytes, for a block of which several are resident, a quarter of it in
/// registers.
const BLOCK_ROW_BYTES: i64 = REGISTER_VECTORS * 4 * VECTOR * SEVERAL_THREADS;

impl RowComputation {
    /// The fastest way to hold the rows of a matrix on a machine.
    ///
    /// Errors: there are too many columns; those of the kernel.
    pub(crate) fn plan(
        self,
        machine: &Machine,
        matrix: RowMatrix,
        kernel: impl Fn(Way) -> Result<Planned, PlanError>,
    ) -> Result<Planned, PlanError> {
        let alone = self.by_block(machine, matrix)?;
        let together = match machine.target.has_clusters() {
            true => self.by_cluster(machine, matrix, &alone)?,
            false => None,
        };
        kernel(together.unwrap_or(alone))
    }

    /// The kernels of all ways to hold the rows: first that of [`RowComputation::plan`], then the
    /// others that can be carried out, without duplicates.
    ///
    /// Errors: those of [`RowComputation::plan`].
    pub(crate) fn candidates(
        self,
        machine: &Machine,
        matrix: RowMatrix,
        kernel: impl Fn(Way) -> Result<Planned, PlanError>,
    ) -> Result<Vec<Planned>, PlanError> {
        let first = self.plan(machine, matrix, &kernel)?;
        let mut others = vec![self.by_block(machine, matrix)?, Way::ReadTwice(Box::new(RowsTwice::new(matrix)?))];
        if machine.target.has_clusters() {
            others.extend(self.of_few(machine, matrix)?.map(Way::Held));
            others.extend(self.persistent(machine, matrix)?.map(Way::Persistent));
            others.extend(RowsPlan::in_cluster(machine, matrix)?.map(Way::Held));
        }
        Ok(distinct(first, others.into_iter().map(kernel)))
    }

    /// The number of weight and bias vectors.
    fn beside(self) -> usize {
        match self {
            RowComputation::Softmax => 0,
            RowComputation::RmsNorm => 1,
            RowComputation::LayerNorm => 2,
        }
    }

    /// The plan with a block for each row.
    ///
    /// Errors: there are too many columns.
    fn by_block(self, machine: &Machine, matrix: RowMatrix) -> Result<Way, PlanError> {
        if let Some(rows) = self.by_largest(machine, matrix)? {
            return Ok(Way::Held(rows));
        }
        match RowsPlan::new(machine, matrix, self.beside()) {
            Err(PlanError::TooLarge { .. }) => Ok(Way::ReadTwice(Box::new(RowsTwice::new(matrix)?))),
            rows => Ok(Way::Held(rows?)),
        }
    }

    /// The plan with a cluster for each row, if that is faster than `alone`.
    ///
    /// Errors: a layout is not representable.
    fn by_cluster(self, machine: &Machine, matrix: RowMatrix, alone: &Way) -> Result<Option<Way>, PlanError> {
        if let Some(rows) = self.of_few(machine, matrix)? {
            return Ok(Some(Way::Held(rows)));
        }
        let cached = self.is_cached(machine, matrix);
        let persistent = if cached { None } else { self.persistent(machine, matrix)? };
        if let Some(plan) = persistent.filter(|plan| self.claims(matrix, plan)) {
            return Ok(Some(Way::Persistent(plan)));
        }
        // For many rows, one block is faster for `rms_norm` if it holds a row: it makes only one
        // pass.
        if self == RowComputation::RmsNorm && matches!(alone, Way::Held(_)) && !cached {
            return Ok(None);
        }
        Ok(RowsPlan::in_cluster(machine, matrix)?.map(Way::Held))
    }

    /// The plan with persistent clusters, whose threads keep weights and biases, or exponentials as
    /// 32-bit numbers; None for rows that no shape holds.
    ///
    /// Errors: a layout is not representable.
    pub(crate) fn persistent(self, machine: &Machine, matrix: RowMatrix) -> Result<Option<Persistent>, PlanError> {
        let powers = self == RowComputation::Softmax;
        let kept = if powers { VECTOR / i64::from(matrix.element.bytes()) } else { self.beside() as i64 * VECTOR / 4 };
        Persistent::new(machine, matrix, (kept, powers))
    }

    /// Whether persistent clusters are faster than one block or one cluster for each row.
    pub(crate) fn claims(self, matrix: RowMatrix, plan: &Persistent) -> bool {
        let ragged = matrix.element == Element::F32 && plan.ends_within();
        match self {
            RowComputation::Softmax if ragged => matrix.row_bytes() > ROWS.ragged_softmax_rows * BLOCK_ROW_BYTES,
            // Blocks that keep more than a quarter of a row in registers have none left for a bias.
            RowComputation::LayerNorm => matrix.row_bytes() > BLOCK_ROW_BYTES / 4,
            _ => matrix.row_bytes() >= BLOCK_ROW_BYTES,
        }
    }

    /// Whether there are so few rows that they fit in the L2 cache, or almost.
    fn is_cached(self, machine: &Machine, matrix: RowMatrix) -> bool {
        let (Some(rows), Some(vectors)) = (matrix.rows, matrix.vectors()) else { return false };
        // The longest rows that a block holds: in registers, half in shared memory, and in any way.
        let short = REGISTER_VECTORS * BLOCK_THREADS;
        let (half, held) = (2 * short, 4 * short);
        let [widely, once, narrowly] = ROWS.cached_l2_percent;
        let percent = match self {
            RowComputation::Softmax if vectors <= held => widely,
            RowComputation::Softmax => once,
            RowComputation::RmsNorm if vectors <= half => once,
            RowComputation::LayerNorm if vectors <= short => widely,
            RowComputation::RmsNorm | RowComputation::LayerNorm => narrowly,
        };
        rows.saturating_mul(matrix.row_bytes()) <= l2_share(machine, percent)
    }

    /// The plan that holds rows in the registers of the largest blocks, if there are no more rows
    /// than resident blocks.
    fn by_largest(self, machine: &Machine, matrix: RowMatrix) -> Result<Option<RowsPlan>, PlanError> {
        // As many blocks as are resident if a thread has one register for each element, and as many
        // other registers.
        let registers = 8 * DATA_REGISTERS / i64::from(matrix.element.bytes());
        let resident = i64::from(machine.multiprocessor.registers) / (registers * BLOCK_THREADS);
        let most = resident * i64::from(machine.multiprocessors);
        let kept = REGISTER_VECTORS;
        let warps = matrix.vectors().map(|vectors| div_up(vectors, kept * LANES));
        let large = SEVERAL_THREADS / LANES + 1..=BLOCK_THREADS / LANES;
        let Some(warps) = warps.filter(|warps| large.contains(warps)) else {
            return Ok(None);
        };
        if matrix.rows.is_none_or(|rows| rows > most) {
            return Ok(None);
        }
        let rows = RowsPlan::in_blocks(machine, matrix, (1, warps), (kept, 0))?;
        Ok(Some(RowsPlan { beside: self.beside(), ..rows }))
    }

    /// The plan for few rows, all resident at once: each in the registers of a cluster, or half of
    /// a long row in its shared memory.
    fn of_few(self, machine: &Machine, matrix: RowMatrix) -> Result<Option<RowsPlan>, PlanError> {
        let (Some(rows), Some(vectors)) = (matrix.rows, matrix.vectors()) else { return Ok(None) };
        let (kept, full) = (REGISTER_VECTORS, SEVERAL_THREADS);
        // The warps that are resident while each keeps its widened vectors.
        let resident = i64::from(resident_threads(&machine.multiprocessor, 4 * DATA_REGISTERS)) / LANES;
        if vectors <= kept * full {
            return Ok(None);
        }
        let long = 2 * kept * BLOCK_THREADS;
        for each in [kept, 2 * kept] {
            let warps = |blocks| div_up(vectors, blocks * each * LANES);
            let halved = warps(PORTABLE_CLUSTER) < SCHEDULERS;
            let blocks = if halved { PORTABLE_CLUSTER / 2 } else { PORTABLE_CLUSTER };
            let warps = warps(blocks);
            // Rows that one block can hold are not put into the shared memory of several blocks.
            if warps > BLOCK_THREADS / LANES || each > kept && vectors <= long {
                continue;
            }
            // Norms load their weights in each block, and blocks with more warps leave
            // multiprocessors without a block.
            let most = match self {
                _ if vectors <= kept * BLOCK_THREADS => resident / 4,
                RowComputation::Softmax if vectors >= long && warps <= full / LANES && each == kept => resident,
                _ => resident / 2,
            };
            if rows.saturating_mul(blocks * warps) <= most * i64::from(machine.multiprocessors) {
                let rows = RowsPlan::in_blocks(machine, matrix, (blocks, warps), (each, each - kept))?;
                return Ok(Some(RowsPlan { beside: self.beside(), ..rows }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::Written;

    use super::*;
    use crate::{layer_norm, rms_norm, softmax};

    fn planned(card: &str, work: RowComputation, matrix: RowMatrix) -> Planned {
        let machine = Machine::named(card).unwrap();
        match work {
            RowComputation::Softmax => softmax(&machine, matrix),
            RowComputation::RmsNorm => rms_norm(&machine, matrix, 1e-5),
            RowComputation::LayerNorm => layer_norm(&machine, matrix, 1e-5),
        }
        .unwrap()
    }

    /// Checks two rows of case `number`: for a device with clusters of `cluster` blocks, and for
    /// one without clusters. The latter plan runs in every fourth case unless
    /// `TILEWRIGHT_EXHAUSTIVE=1`.
    fn check(number: usize, work: RowComputation, matrix: RowMatrix, cluster: u32) {
        let plans = ["H200", "A100"].map(|card| planned(card, work, matrix).sized(&[("M", 2)]));
        let blocks = plans.each_ref().map(|plan| plan.kernel().program().cluster_size());
        assert_eq!(blocks, [cluster, 1], "{}", plans[0]);
        let both = number.is_multiple_of(4) || std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some();
        for plan in plans.into_iter().take(if both { 2 } else { 1 }) {
            let report = plan.check().unwrap_or_else(|error| panic!("{matrix:?}: {plan}{error}"));
            assert_eq!(report.compared as i64, 2 * matrix.columns);
            assert!(plan.kernel().outputs().iter().all(|output| output.written == Written::Once), "{plan}");
        }
    }

    #[test]
    fn rows_longer_than_a_block_holds_are_right() {
        // Clusters of two to sixteen blocks, most of them persistent, with rows that end in the
        // last run, and one block for targets without clusters; rows that begin at odd offsets,
        // which one block reads twice.
        for (number, (work, columns, element, cluster)) in [
            (RowComputation::Softmax, 65_540, Element::F32, 4),
            (RowComputation::Softmax, 36_888, Element::F32, 2),
            (RowComputation::Softmax, 40_008, Element::Bf16, 1),
            (RowComputation::Softmax, 70_000, Element::F16, 8),
            (RowComputation::RmsNorm, 65_540, Element::F32, 8),
            (RowComputation::RmsNorm, 20_000, Element::F32, 1),
            (RowComputation::RmsNorm, 200_000, Element::F32, 8),
            (RowComputation::LayerNorm, 20_000, Element::F16, 2),
            (RowComputation::LayerNorm, 30_000, Element::F16, 4),
            (RowComputation::LayerNorm, 70_000, Element::F16, 8),
            (RowComputation::LayerNorm, 80_000, Element::F32, 16),
            (RowComputation::LayerNorm, 152_000, Element::F32, 8),
            (RowComputation::LayerNorm, 33_001, Element::F32, 1),
        ]
        .into_iter()
        .enumerate()
        {
            check(number, work, RowMatrix::new(columns, element), cluster);
        }
    }

    #[test]
    fn few_rows_are_right() {
        // Clusters whose number of warps is a power of two or not; rows that fill them, end within
        // a run, or leave the last blocks and threads without elements; half of a row in shared
        // memory.
        for work in [RowComputation::Softmax, RowComputation::RmsNorm, RowComputation::LayerNorm] {
            for (number, (columns, element, rows, cluster)) in [
                (16_384, Element::F32, 2, 8),
                (8200, Element::F32, 2, 4),
                (20_000, Element::F32, 2, 8),
                (24_584, Element::Bf16, 2, 8),
                (52_000, Element::F16, 2, 8),
                (66_000, Element::F32, 48, 4),
                (65_536, Element::F32, 32, 8),
                // One block of more than 512 threads.
                (12_000, Element::F32, 200, 1),
            ]
            .into_iter()
            .enumerate()
            {
                check(number, work, RowMatrix::new(columns, element).with_rows(rows), cluster);
            }
        }
    }

    /// The law chooses the ways that were measured to be the fastest, except for few rows.
    #[test]
    fn the_law_gives_the_ways_that_were_timed() {
        let h200 = Machine::named("H200").unwrap();
        let (mut all, mut others) = (0, Vec::new());
        for line in include_str!("timed.txt").lines().filter(|line| !line.starts_with('#')) {
            let [work, element, columns, from, to, wanted] = line.splitn(6, ' ').collect::<Vec<_>>()[..] else {
                panic!()
            };
            let computation = match work {
                "softmax" => RowComputation::Softmax,
                "rms_norm" => RowComputation::RmsNorm,
                _ => RowComputation::LayerNorm,
            };
            let element = if element == "f32" { Element::F32 } else { Element::Bf16 };
            for rows in [from, to] {
                let matrix = RowMatrix::new(columns.parse().unwrap(), element).with_rows(rows.parse().unwrap());
                let said = std::cell::RefCell::new(String::new());
                let told = computation.plan(&h200, matrix, |way| {
                    *said.borrow_mut() = match way {
                        Way::Held(rows) => rows.plan(),
                        Way::Persistent(plan) => plan.plan(),
                        Way::ReadTwice(plan) => plan.plan(),
                    };
                    Err(PlanError::Plan { because: "its words are enough" })
                });
                assert!(told.is_err());
                all += 1;
                if said.borrow().as_str() != wanted {
                    others.push(format!("{work} of {rows} rows of {columns} {element}: {}", said.borrow()));
                }
            }
        }
        // One block holds the longest of its rows, although they end within a run of persistent
        // clusters.
        assert!(all > 600 && others.len() <= 2, "{} of {all}:\n{}", others.len(), others.join("\n"));
        assert!(others.iter().all(|other| other.starts_with("rms_norm") && other.contains("30000 f32")), "{others:?}");
    }

    #[test]
    fn the_way_is_that_of_so_many_rows() {
        use RowComputation::{LayerNorm, RmsNorm, Softmax};
        for (work, columns, element, rows, wanted) in [
            (Softmax, 16_384, Element::F32, 33, "a cluster of 8 blocks of 128 threads a row, 4 vectors"),
            (Softmax, 16_384, Element::F32, 34, "a block of 1024 threads a row, 4 vectors"),
            (Softmax, 16_384, Element::F32, 264, "a block of 1024 threads a row, 4 vectors"),
            (Softmax, 16_384, Element::F32, 265, "a block of 512 threads a row, 8 vectors"),
            (Softmax, 32_768, Element::Bf16, 133, "a block of 512 threads a row, 8 vectors"),
            (Softmax, 12_000, Element::F32, 44, "a cluster of 4 blocks of 192 threads a row, 4 vectors of 4 a"),
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
            // Shorter rows, and unaligned rows, are held like those of a matrix of many rows.
            (Softmax, 8192, Element::F32, 1, "a block of 512 threads a row, 4 vectors"),
            (LayerNorm, 33_001, Element::F32, 1, "a block of 512 threads a row, read twice"),
        ] {
            let plan = planned("H200", work, RowMatrix::new(columns, element).with_rows(rows));
            assert!(plan.plan()[1].contains(wanted), "{rows} rows: {plan}not {wanted}");
        }
    }
}
