//! Rows of the destination that are short and adjacent: they are collected in a buffer, and written
//! as one.
//!
//! Law: a batch has a place in the buffer for each of its columns, no two of which overlap. Its
//! runs, which together are all of it, are the parts of the buffer that are contiguous in the
//! destination too.

/// The most bytes of a row that is joined with others. Of a longer one, little is lost at its ends.
const ROW: usize = 1024;
/// The bytes of a buffer. It is large enough for rows of the source to be read on for a while.
const BUFFER: usize = 80 << 10;
/// The least bytes of a run: at its ends lines are written in part.
const RUN: usize = 512;

/// Some of the columns of a tile, each a row of the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    /// Where in the buffer each of them is put.
    pub(super) places: Vec<isize>,
    pub(super) runs: Vec<JoinedRun>,
}

/// What is contiguous in the buffer as in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JoinedRun {
    pub(super) at: usize,
    /// The place in the destination.
    pub(super) to: isize,
    pub(super) bytes: usize,
}

/// The batches of columns of `row` bytes, in multiples of the columns of a line of the source.
pub(super) fn batches(columns: &[isize], row: usize, line: usize) -> Vec<Batch> {
    let most = (BUFFER / row.max(1) / line * line).max(line);
    columns.chunks(most).map(|columns| Batch::new(columns, row)).collect()
}

/// Whether joining these rows is better than writing each by itself.
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

    /// The bytes that it takes in the buffer.
    pub(super) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.bytes).sum()
    }
}
