//! Joined rows: short, adjacent rows of the destination are collected in a buffer and written
//! together.
//!
//! Law: a batch reserves buffer space for each of its columns, and these spaces do not overlap. The
//! runs of a batch together are all of its buffer; each run is contiguous both in the buffer and in
//! the destination.

/// The largest number of bytes of a row that is joined with others. For longer rows, the partial
/// lines at the ends cost little.
const ROW: usize = 1024;
/// The bytes of the buffer. It is large enough that rows of the source are read sequentially for a
/// while.
const BUFFER: usize = 80 << 10;
/// The smallest number of bytes of a run, because the lines at its ends are written in part.
const RUN: usize = 512;

/// Some of the columns of a tile, each a row of the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    /// The offset in the buffer of each column.
    pub(super) places: Vec<isize>,
    pub(super) runs: Vec<JoinedRun>,
}

/// A range that is contiguous both in the buffer and in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JoinedRun {
    pub(super) at: usize,
    /// The offset in the destination.
    pub(super) to: isize,
    pub(super) bytes: usize,
}

/// The batches of columns of `row` bytes each. The number of columns of a batch is a multiple of
/// those in a line of the source.
pub(super) fn batches(columns: &[isize], row: usize, line: usize) -> Vec<Batch> {
    let most = (BUFFER / row.max(1) / line * line).max(line);
    columns.chunks(most).map(|columns| Batch::new(columns, row)).collect()
}

/// Whether joining these rows is faster than writing each by itself.
pub(super) fn pays(batches: &[Batch], row: usize) -> bool {
    let runs: usize = batches.iter().map(|batch| batch.runs.len()).sum();
    let bytes: usize = batches.iter().map(Batch::bytes).sum();
    row <= ROW && bytes >= runs * RUN.max(2 * row)
}

impl Batch {
    fn new(columns: &[isize], row: usize) -> Batch {
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|column| columns.get(*column));
        let mut places = vec![0; columns.len()];
        let mut runs: Vec<JoinedRun> = Vec::new();
        for (rank, column) in order.into_iter().enumerate() {
            let (Some(place), Some(to)) = (places.get_mut(column), columns.get(column)) else { continue };
            let at = rank * row;
            *place = at as isize;
            match runs.last_mut() {
                Some(run) if run.to.wrapping_add_unsigned(run.bytes) == *to => run.bytes += row,
                _ => runs.push(JoinedRun { at, to: *to, bytes: row }),
            }
        }
        Batch { places, runs }
    }

    /// The bytes that this batch takes in the buffer.
    pub(super) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.bytes).sum()
    }
}
