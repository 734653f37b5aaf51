//! The pieces that each device multiplies, in an order such that other blocks are in flight
//! meanwhile.
//!
//! Law: the pieces of a device are GEMMs of blocks. A block of an operand is on one device, which
//! may be another one; so is a block of the result. Each element of the result is computed by one
//! piece, or is the sum of one piece of each device that computes a summand, added in the order of
//! ranks. A device begins with pieces whose operands it has, and with those whose partial sums
//! other devices need, so that blocks are in flight while it multiplies.
//!
//! There are pieces if each operand is received in one step, in blocks of whole rows or columns
//! with all of K, and if each partial sum is sent to one device. Otherwise reshards and GEMM run
//! one after another ([`ProductPlan::moves`]).

use std::collections::BTreeMap;

use tilewright_layout::{Layout, Leaf, Tree};

use crate::error::MeshError;
use crate::product::{ProductPlan, Role, part};
use crate::sharded::ShardedLayout;
use crate::step::{Exchange, Message};

/// The most rows and columns of a block.
const MAX_LINES: i64 = 1 << 22;

/// A part of a matrix in the memory of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The device.
    pub rank: usize,
    /// The layout of its rows and columns: two modes.
    pub layout: Layout,
    /// The offset of the first element.
    pub start: i64,
}

/// A GEMM of two blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The block of A, `(M,K)`.
    pub a: Block,
    /// The block of B, `(N,K)`.
    pub b: Block,
    /// The block of the result, `(M,N)`.
    pub d: Block,
    /// The devices that compute a summand of this block of the result, in the order in which the
    /// summands are added.
    pub makers: Vec<usize>,
}

/// A row or column of a local GEMM, and its offset in the memory that holds it.
type Line = (i64, i64);

/// Rows and columns that are on one device.
struct Lines {
    rank: usize,
    start: i64,
    rows: Vec<Line>,
    columns: Vec<Line>,
}

impl ProductPlan {
    /// The pieces of each device, in order; None if operands or partial sums cannot be divided into
    /// blocks.
    ///
    /// Errors: those of [`Exchange::new`].
    ///
    /// ```
    /// use tilewright_mesh::{Machine, Mesh, ShardedLayout, multiply};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (a, b) = (parse("((4,2),8):((8,1@x),1)"), parse("(8,(4,2)):(1,(8,1@x))"));
    /// let d = parse("(8,(4,2)):(4,(1,1@x))");
    /// let plan = multiply(&a, &b, &d, 2, 7e14, &Machine::HGX_H200).unwrap();
    /// let pieces = plan.pieces().unwrap().unwrap();
    /// // Device 1 multiplies its own rows of A first, then those of device 0.
    /// let of: Vec<(usize, i64)> = pieces[1].iter().map(|piece| (piece.a.rank, piece.d.start)).collect();
    /// assert_eq!(of, [(1, 16), (0, 0)]);
    /// ```
    pub fn pieces(&self) -> Result<Option<Vec<Vec<Piece>>>, MeshError> {
        let [a, b, d] = self.moves();
        if [a, b, d].iter().any(|plan| plan.steps().len() > 1) {
            return Ok(None);
        }
        let ([m, n, k], roles) = (self.local_sizes(), self.roles());
        if m.max(n).max(k) > MAX_LINES {
            return Ok(None);
        }
        let compact = |of: &ShardedLayout, modes| part(of, modes, roles);
        let [m_all, n_all, k_all] = self.sizes();
        let of_a = Exchange::new(a.from(), &compact(a.from(), [(m_all, Role::Rows), (k_all, Role::Depth)])?)?;
        let of_b = Exchange::new(b.from(), &compact(b.from(), [(k_all, Role::Depth), (n_all, Role::Columns)])?)?;
        let of_d = Exchange::new(&compact(d.to(), [(m_all, Role::Rows), (n_all, Role::Columns)])?, d.to())?;
        if of_a.added() > 1 || of_b.added() > 1 {
            return Ok(None);
        }
        let ranks = a.from().mesh().size();
        let mut result_parts: Vec<Vec<ResultPart>> = (0..ranks).map(|_| Vec::new()).collect();
        for rank in 0..ranks {
            let messages = of_d.messages_to(rank);
            let added = usize::try_from(of_d.added()).unwrap_or(1).max(1);
            for summands in messages.chunks(added) {
                let mut makers: Vec<usize> = summands.iter().map(|message| message.from).collect();
                makers.sort_unstable();
                for message in summands {
                    let Some(lines) = lines(message, m, false) else { return Ok(None) };
                    let lines = Lines { rank, ..lines };
                    if let Some(of) = result_parts.get_mut(message.from) {
                        of.push((lines, makers.clone()));
                    }
                }
            }
        }
        let mut pieces = Vec::new();
        for (rank, parts_of_d) in result_parts.into_iter().enumerate() {
            let rows = parts(&of_a, rank, m);
            // The lines of B are its columns: (N,K).
            let columns = parts(&of_b, rank, k).map(|parts| parts.into_iter().map(transposed).collect::<Vec<_>>());
            let whole = |parts: &Vec<Lines>, lines: i64| {
                let all = parts.iter().map(|part| part.rows.len() as i64).sum::<i64>();
                all == lines && parts.iter().all(|part| part.columns.len() as i64 == k)
            };
            let (rows, columns) = (rows.filter(|rows| whole(rows, m)), columns.filter(|columns| whole(columns, n)));
            let (Some(rows), Some(columns)) = (rows, columns) else { return Ok(None) };
            let Some(own) = pieces_of(rank, ranks, (rows, columns), parts_of_d, [m, n])? else { return Ok(None) };
            pieces.push(own);
        }
        Ok(Some(pieces))
    }
}

/// The blocks of an operand that a device needs; None if one arrives in several runs.
fn parts(exchange: &Exchange, rank: usize, height: i64) -> Option<Vec<Lines>> {
    exchange.messages_to(rank).iter().map(|message| lines(message, height, true)).collect()
}

/// The transposed block: its rows become columns.
fn transposed(part: Lines) -> Lines {
    Lines { rows: part.columns, columns: part.rows, ..part }
}

/// Rows and columns of a message, one side of which is a compact column-major matrix of `height`
/// rows: the destination if `written`, otherwise the source. Offsets are those of the other side.
/// None if the message has several runs.
fn lines(message: &Message, height: i64, written: bool) -> Option<Lines> {
    let [(read, write)] = message.footprint.starts[..] else { return None };
    let (compact, other) = if written { (write, read) } else { (read, write) };
    let (mut rows, mut columns) = (vec![(compact % height, 0)], vec![(compact / height, 0)]);
    for (extent, read, write) in &message.footprint.modes {
        let (step, offset) = if written { (*write, *read) } else { (*read, *write) };
        let (lines, step) = if step < height { (&mut rows, step) } else { (&mut columns, step / height) };
        let of = |(line, place): &Line| {
            let (line, place) = (*line, *place);
            (0..*extent).map(move |at| (line + at * step, place + at * offset))
        };
        *lines = lines.iter().flat_map(of).collect();
    }
    rows.sort_unstable();
    columns.sort_unstable();
    Some(Lines { rank: message.from, start: other, rows, columns })
}

/// The pieces of a device: for its parts of the operands, or for parts of the result.
fn pieces_of(
    rank: usize,
    ranks: usize,
    (rows, columns): (Vec<Lines>, Vec<Lines>),
    mut parts_of_d: Vec<ResultPart>,
    [m, n]: [i64; 2],
) -> Result<Option<Vec<Piece>>, MeshError> {
    let covered: i64 = parts_of_d.iter().map(|(part, _)| (part.rows.len() * part.columns.len()) as i64).sum();
    // Each partial sum must be needed once, by one device.
    if covered != m * n {
        return Ok(None);
    }
    let after = |other: usize| (other + ranks - rank) % ranks;
    // Parts that other devices need come first.
    parts_of_d.sort_by_key(|(part, _)| (part.rank == rank, after(part.rank)));
    let mut chosen: Vec<(OperandLines<'_>, OperandLines<'_>, &ResultPart)> = Vec::new();
    if let [part] = &parts_of_d[..] {
        for a in &rows {
            for b in &columns {
                chosen.push(((a, &a.rows), (b, &b.rows), part));
            }
        }
        chosen.sort_by_key(|(a, b, _)| (after(a.0.rank).max(after(b.0.rank)), after(a.0.rank), after(b.0.rank)));
    } else {
        let ([a], [b]) = (&rows[..], &columns[..]) else { return Ok(None) };
        chosen.extend(parts_of_d.iter().map(|part| ((a, &part.0.rows), (b, &part.0.columns), part)));
    }
    let mut pieces = Vec::new();
    for ((a, rows), (b, columns), (d, makers)) in chosen {
        let piece = || {
            Some(Piece {
                a: block(a, rows, &a.columns, (&a.rows, &a.columns))?,
                b: block(b, columns, &b.columns, (&b.rows, &b.columns))?,
                d: block(d, rows, columns, (&d.rows, &d.columns))?,
                makers: makers.clone(),
            })
        };
        let Some(piece) = piece() else { return Ok(None) };
        pieces.push(piece);
    }
    Ok(Some(pieces))
}

/// A part of the result, and the devices that compute its summands.
type ResultPart = (Lines, Vec<usize>);

/// A part of an operand, and the lines of it that are multiplied.
type OperandLines<'a> = (&'a Lines, &'a Vec<Line>);

/// The block of some rows and columns of a set of lines.
fn block(of: &Lines, rows: &[Line], columns: &[Line], (all_rows, all_columns): (&[Line], &[Line])) -> Option<Block> {
    let places = |wanted: &[Line], all: &[Line]| {
        let table: BTreeMap<i64, i64> = all.iter().copied().collect();
        wanted.iter().map(|(line, _)| table.get(line).copied()).collect::<Option<Vec<i64>>>()
    };
    let (rows, columns) = (places(rows, all_rows)?, places(columns, all_columns)?);
    let start = of.start + rows.first()? + columns.first()?;
    let tree = Tree::tuple([mode(&rows)?, mode(&columns)?].iter()).ok()?;
    Some(Block { rank: of.rank, layout: Layout::from_tree(tree).ok()?, start })
}

/// The mode with these offsets, relative to the first one; None if they are not regular.
fn mode(places: &[i64]) -> Option<Tree<Leaf<i64>>> {
    let first = *places.first()?;
    let mut rest: Vec<i64> = places.iter().map(|place| place - first).collect();
    let mut leaves = Vec::new();
    while rest.len() > 1 {
        let step = *rest.get(1)?;
        let run = rest.iter().enumerate().take_while(|(at, place)| **place == *at as i64 * step).count();
        let extent = (2..=run).rev().find(|extent| rest.len().is_multiple_of(*extent))?;
        let next: Vec<i64> = rest.iter().step_by(extent).copied().collect();
        let repeats = rest
            .chunks(extent)
            .zip(&next)
            .all(|(chunk, begin)| chunk.iter().enumerate().all(|(at, place)| *place == begin + at as i64 * step));
        if !repeats {
            return None;
        }
        leaves.push(Leaf { extent: extent as i64, stride: step });
        rest = next;
    }
    match leaves[..] {
        [] => Some(Tree::leaf(Leaf { extent: 1, stride: 0 })),
        [only] => Some(Tree::leaf(only)),
        _ => Tree::flat(leaves).ok(),
    }
}
