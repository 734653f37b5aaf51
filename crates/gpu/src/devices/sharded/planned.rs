//! Plans the kernels of a GEMM of sharded matrices, before a device is opened.
//!
//! Law: each piece ([`Piece`]) of a device is one GEMM of blocks. A block of another device is
//! first copied whole into a buffer of this device. A partial sum for another device is written
//! there, into a separate buffer, and the GEMM of that device adds it: in the order of ranks, its
//! own partial sum included. Such blocks are divided into parts of their rows, so that one part is
//! added while the next is in flight.

use std::fmt;

use tilewright_kernel::Element;
use tilewright_layout::Layout;
use tilewright_mesh::{Block, Piece, ProductPlan};
use tilewright_planners::gemm::{Fused, Matrix, Problem, Product};
use tilewright_planners::{Expression, Planner};

use super::ShardedError;
use crate::memory::KERNEL_ALIGNMENT_BYTES;

/// The most parts of a block whose partial sums are sent; and the least number of tiles of 128 x
/// 256 in a part.
const PARTS: i64 = 4;
const TILES: i64 = 256;

/// A block that is copied from another device before it is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Whether it is a block of B. If not, it is a block of A.
    pub is_b: bool,
    /// The rank that has the block.
    pub from: usize,
    /// The offset of its first byte there.
    pub at: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The source of an operand of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// The device's own memory, from this byte on.
    Own(u64),
    /// The buffer of the arrival with this index, from this byte on.
    Arrived(usize, u64),
}

/// The destination of the partial sums of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialDestination {
    /// The device's own result, from this byte on.
    Own(u64),
    /// The result of another rank, from this byte on.
    Other(usize, u64),
    /// The buffer with this index on another rank, which adds the partial sums.
    Place(usize, usize),
}

/// A GEMM of blocks.
#[derive(Debug, Clone)]
pub struct PieceProduct {
    /// The kernels.
    pub product: Product,
    /// The sources of A and B.
    pub operands: [Operand; 2],
    /// The buffers on this device whose partial sums are added: inputs of the kernels, in order.
    pub added: Vec<usize>,
    /// The destination of the result.
    pub target: PartialDestination,
}

/// The work of a rank.
#[derive(Debug, Clone, Default)]
pub struct RankPlan {
    /// The blocks that it copies from other devices, in order.
    pub arrivals: Vec<Arrival>,
    /// The pieces that it multiplies, in order.
    pub pieces: Vec<PieceProduct>,
    /// The number of bytes of each buffer for partial sums of other ranks.
    pub places: Vec<u64>,
}

/// A GEMM of sharded matrices in blocks: what each device copies and multiplies, in order.
#[derive(Debug, Clone)]
pub struct ShardedPlan {
    ranks: Vec<RankPlan>,
    sums: Element,
    /// The number of bytes of A, of B and of the result on each device.
    bytes: [u64; 3],
}

impl ShardedPlan {
    /// The plan for a machine and elements of type `element`; partial sums are sent in type `sums`.
    /// None if operands or partial sums cannot be divided into blocks ([`ProductPlan::pieces`]).
    ///
    /// Errors: as [`ProductPlan::pieces`] and [`Product::new`].
    ///
    /// ```
    /// use tilewright::kernel::Element;
    /// use tilewright::mesh::{Machine, Mesh, ShardedLayout, multiply};
    /// use tilewright::sharded::{Operand, ShardedPlan};
    ///
    /// let mesh: Mesh = "x=2".parse().unwrap();
    /// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    /// let (a, b) = (parse("((512,2),256):((256,1@x),1)"), parse("(256,(512,2)):(1,(256,1@x))"));
    /// let plan = multiply(&a, &b, &parse("(1024,(512,2)):(512,(1,1@x))"), 2, 7e14, &Machine::HGX_H200).unwrap();
    /// let h200: tilewright::Machine = "H200".parse().unwrap();
    /// let plan = ShardedPlan::new(&h200, &plan, Element::Bf16, Element::F32).unwrap().unwrap();
    /// let first = &plan.ranks()[1].pieces[0];
    /// assert_eq!(first.operands, [Operand::Own(0), Operand::Own(0)]);
    /// assert_eq!(plan.ranks()[1].arrivals[0].bytes, 512 * 256 * 2);
    /// ```
    pub fn new(
        planner: &dyn Planner,
        plan: &ProductPlan,
        element: Element,
        sums: Element,
    ) -> Result<Option<ShardedPlan>, ShardedError> {
        ShardedPlan::in_parts(planner, plan, element, sums, None)
    }

    /// As [`ShardedPlan::new`], with the blocks whose partial sums are sent divided into `parts`
    /// parts. None if their rows cannot be divided.
    ///
    /// Errors: as [`ShardedPlan::new`].
    pub fn in_parts(
        planner: &dyn Planner,
        plan: &ProductPlan,
        element: Element,
        sums: Element,
        parts: Option<i64>,
    ) -> Result<Option<ShardedPlan>, ShardedError> {
        // The kernels are planned for blocks of equal sizes.
        if plan.moves().iter().any(|moves| moves.from().is_uneven() || moves.to().is_uneven()) {
            return Ok(None);
        }
        let Some(pieces) = plan.pieces()? else { return Ok(None) };
        let mut cut: Vec<Vec<Piece>> = Vec::new();
        for own in pieces {
            let mut of_rank = Vec::new();
            for piece in own {
                let [rows, columns] = [0, 1].map(|mode| piece.d.layout.mode(mode).map_or(1, |mode| mode.size()));
                let tiles = |parts: i64| (rows / parts / 128) * ((columns + 255) / 256);
                let fits = |parts: &i64| rows % (128 * parts) == 0 && tiles(*parts) >= TILES;
                let parts = match parts {
                    _ if piece.makers.len() < 2 => 1,
                    Some(parts) => parts.clamp(1, rows),
                    None => (1..=PARTS).rev().find(fits).unwrap_or(1),
                };
                match in_rows(&piece, rows, parts) {
                    Some(parts) => of_rank.extend(parts),
                    None => of_rank.push(piece),
                }
            }
            // All parts that other devices wait for come first.
            cut.push(of_rank);
        }
        let pieces = cut;
        let mut ranks = vec![RankPlan::default(); pieces.len()];
        // A buffer for each partial sum that one device computes for another, by block, sender and
        // receiver.
        let mut places: Vec<(Block, usize, usize)> = Vec::new();
        for (rank, own) in pieces.iter().enumerate() {
            for piece in own.iter().filter(|piece| piece.makers.len() > 1 && piece.d.rank != rank) {
                let Some(owner) = ranks.get_mut(piece.d.rank) else { continue };
                places.push((piece.d.clone(), rank, owner.places.len()));
                owner.places.push(bytes_of(piece.d.layout.size(), sums));
            }
        }
        for (rank, own) in pieces.iter().enumerate() {
            for piece in own {
                let Some(product) = of_piece((planner, rank), piece, (element, sums), &places, &mut ranks)? else {
                    return Ok(None);
                };
                ranks.iter_mut().skip(rank).take(1).for_each(|plan| plan.pieces.push(product.clone()));
            }
        }
        let [a, b, d] = plan.moves();
        let bytes = [a.from(), b.from(), d.to()].map(|layout| bytes_of(layout.reach(), element));
        Ok(Some(ShardedPlan { ranks, sums, bytes }))
    }

    /// The work of each rank.
    pub fn ranks(&self) -> &[RankPlan] {
        &self.ranks
    }

    /// The number of bytes of A, of B and of the result on each device.
    pub fn bytes(&self) -> [u64; 3] {
        self.bytes
    }
}

/// A piece divided into parts of its rows; None if the rows do not have one stride.
fn in_rows(piece: &Piece, rows: i64, parts: i64) -> Option<Vec<Piece>> {
    if parts < 2 || rows % parts != 0 {
        return None;
    }
    let height = rows / parts;
    let of = |block: &Block, part: i64| -> Option<Block> {
        let step = match block.layout.mode(0)?.coalesce().ok()?.leaves() {
            [leaf] => leaf.stride,
            _ => return None,
        };
        let (rows, columns) = (Layout::mode_of(height, step).ok()?, block.layout.mode(1)?);
        let layout = Layout::tuple([&rows, &columns]).ok()?;
        Some(Block { rank: block.rank, layout, start: block.start + part * height * step })
    };
    let piece = |part: i64| {
        let (a, d) = (of(&piece.a, part)?, of(&piece.d, part)?);
        Some(Piece { a, b: piece.b.clone(), d, makers: piece.makers.clone() })
    };
    (0..parts).map(piece).collect()
}

/// The GEMM of a piece. Records which blocks must be copied first. None if a block is not
/// contiguous.
fn of_piece(
    (planner, rank): (&dyn Planner, usize),
    piece: &Piece,
    (element, sums): (Element, Element),
    places: &[(Block, usize, usize)],
    ranks: &mut [RankPlan],
) -> Result<Option<PieceProduct>, ShardedError> {
    let mut matrices = Vec::new();
    let mut operands = [Operand::Own(0); 2];
    for (block, (operand, is_b)) in [&piece.a, &piece.b].into_iter().zip(operands.iter_mut().zip([false, true])) {
        if block.rank == rank {
            let (matrix, at) = placed(block, element, block.start)?;
            matrices.push(matrix);
            *operand = Operand::Own(at);
            continue;
        }
        // The copy begins at a multiple of `KERNEL_ALIGNMENT_BYTES`, like its buffer.
        let begin = block.start - block.start % (KERNEL_ALIGNMENT_BYTES / i64::from(element.bytes()));
        let elements = block.start + block.layout.range()?.1 + 1 - begin;
        if elements - (block.start - begin) != block.layout.size() {
            return Ok(None);
        }
        let at = bytes_of(begin, element);
        let arrival = Arrival { is_b, from: block.rank, at, bytes: bytes_of(elements, element) };
        let Some(own) = ranks.get_mut(rank) else { return Ok(None) };
        let number = own.arrivals.iter().position(|known| *known == arrival).unwrap_or(own.arrivals.len());
        if number == own.arrivals.len() {
            own.arrivals.push(arrival);
        }
        let (matrix, at) = placed(block, element, block.start - begin)?;
        matrices.push(matrix);
        *operand = Operand::Arrived(number, at);
    }
    let [a, b] = &matrices[..] else { return Ok(None) };
    let mut added = Vec::new();
    let (d, target) = match (piece.makers.len() > 1, piece.d.rank == rank) {
        (true, false) => {
            let place = places.iter().find(|(block, maker, _)| *block == piece.d && *maker == rank);
            let Some((.., number)) = place else { return Ok(None) };
            (summand(&piece.d.layout, sums)?, PartialDestination::Place(piece.d.rank, *number))
        }
        (_, is_own) => {
            let (matrix, at) = placed(&piece.d, element, piece.d.start)?;
            (matrix, if is_own { PartialDestination::Own(at) } else { PartialDestination::Other(piece.d.rank, at) })
        }
    };
    let mut problem = Problem::of(a.clone(), b.clone(), d)?;
    if piece.makers.len() > 1 && piece.d.rank == rank {
        let mut sum: Option<Expression> = None;
        for maker in &piece.makers {
            let term = if *maker == rank {
                Expression::input(0)
            } else {
                let place = places.iter().find(|(block, own, _)| *block == piece.d && own == maker);
                let Some((.., number)) = place else { return Ok(None) };
                added.push(*number);
                Expression::input(added.len())
            };
            sum = Some(match sum {
                Some(sum) => sum + term,
                None => term,
            });
        }
        let inputs = added.iter().map(|_| summand(&piece.d.layout, sums)).collect::<Result<_, _>>()?;
        problem = problem.fused(Fused { expression: sum.unwrap_or(Expression::input(0)), inputs })?;
    }
    Ok(Some(PieceProduct { product: planner.gemm(&problem)?, operands, added, target }))
}

/// A block as a matrix whose memory is aligned for kernels, and the offset of that memory in bytes.
fn placed(block: &Block, element: Element, start: i64) -> Result<(Matrix, u64), ShardedError> {
    let matrix = Matrix::new(element, &block.layout)?;
    if start * i64::from(element.bytes()) % KERNEL_ALIGNMENT_BYTES == 0 {
        return Ok((matrix, bytes_of(start, element)));
    }
    Ok((matrix.at(start)?, 0))
}

/// A compact matrix with the shape and the contiguous mode of a block.
fn summand(layout: &Layout, sums: Element) -> Result<Matrix, ShardedError> {
    let [rows, columns] = [0, 1].map(|mode| layout.mode(mode).map_or(1, |mode| mode.size()));
    let by_rows = layout.mode(1).is_some_and(|mode| mode.leaves().iter().any(|leaf| leaf.stride == 1));
    let extents = [rows, columns];
    Ok(if by_rows { Matrix::rows(sums, extents)? } else { Matrix::columns(sums, extents)? })
}

fn bytes_of(elements: i64, element: Element) -> u64 {
    u64::try_from(elements).unwrap_or(0).saturating_mul(u64::from(element.bytes()))
}

impl fmt::Display for ShardedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rank, plan) in self.ranks.iter().enumerate() {
            writeln!(f, "device {rank}")?;
            for arrival in &plan.arrivals {
                let Arrival { is_b, from, bytes, .. } = arrival;
                let name = if *is_b { "B" } else { "A" };
                writeln!(f, "  copies {bytes} bytes of {name} from device {from} meanwhile")?;
            }
            for piece in &plan.pieces {
                let [m, n, k] = piece.product.problem().sizes();
                let from = piece.operands.iter().zip(["A", "B"]).filter_map(|(operand, name)| match operand {
                    Operand::Own(_) => None,
                    Operand::Arrived(number, _) => {
                        plan.arrivals.get(*number).map(|arrival| format!(", {name} of device {}", arrival.from))
                    }
                });
                let from: String = from.collect();
                let to = match piece.target {
                    PartialDestination::Own(_) if piece.added.is_empty() => String::new(),
                    PartialDestination::Own(_) if piece.added.len() == 1 => {
                        ", added to the partial sum of the other".to_owned()
                    }
                    PartialDestination::Own(_) => {
                        format!(", added to the partial sums of {} others", piece.added.len())
                    }
                    PartialDestination::Other(to, _) => format!(", into the result of device {to}"),
                    PartialDestination::Place(to, _) => format!(", partial sums in {} to device {to}", self.sums),
                };
                let tile = piece.product.plan();
                writeln!(f, "  multiplies {m} x {n} x {k}{from}{to}: tiles of {} x {}", tile.rows, tile.columns)?;
            }
        }
        Ok(())
    }
}
