//! How the threads divide C.
//!
//! **Law.** Tasks are the tiles of C under one tiler. Each is computed by one thread, from the
//! operands; tasks share nothing but the packed blocks of A.

use super::blocking::Blocking;

/// The smallest number of multiplications that is worth another thread.
const MIN_WORK: usize = 1 << 20;
/// If each thread has at least this many elements of C, a task is a quarter of a thread's share, so
/// that a delayed thread leaves work to others. In smaller GEMMs such tasks would mostly pack.
const DIVIDED_SHARE: usize = 1 << 22;
/// The cost of packing a number, in multiplications.
const PACKING_COST: usize = 16;

/// The rows and columns of a task of a GEMM of `m` by `n` by `k`, for at most this many threads.
/// `shares` says whether tasks that have all rows share the packed A.
pub(super) fn task_extents([m, n, k]: [usize; 3], blocking: &Blocking, threads: usize, shares: bool) -> [usize; 2] {
    let work = m.saturating_mul(n).saturating_mul(k);
    let wanted = threads.min(work / MIN_WORK);
    if wanted <= 1 {
        return [m, n];
    }
    let wanted = if m.saturating_mul(n) / wanted >= DIVIDED_SHARE { wanted.saturating_mul(4) } else { wanted };
    let (tall, wide) = (m.div_ceil(blocking.mr), n.div_ceil(blocking.nr));
    let cost = |rows: usize, columns: usize| {
        let tasks = m.div_ceil(rows) * n.div_ceil(columns);
        // The time is that of the busiest thread: the number of its tasks, each of which packs its
        // part of both operands.
        let rounds = tasks.div_ceil(threads);
        let packed = if shares && rows >= m { rows / tasks } else { rows };
        rounds.saturating_mul(rows.saturating_mul(columns).saturating_add(PACKING_COST * (packed + columns)))
    };
    let divisions = (1..=wanted.min(tall)).map(|down| {
        let rows = blocking.mr * tall.div_ceil(down);
        let columns = blocking.nr * wide.div_ceil((wanted / down).clamp(1, wide));
        [rows.min(m), columns.min(n)]
    });
    divisions.min_by_key(|[rows, columns]| cost(*rows, *columns)).unwrap_or([m, n])
}
