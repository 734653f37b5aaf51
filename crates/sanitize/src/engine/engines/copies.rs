//! Bulk copies and TMA copies of boxes, and the time at which their bytes move.

use super::{Ends, Executes, Move, ReduceKind, Reduces, Spot, Transfer, lanes_of};
use crate::check::checker::{Bulk, Completion, Mbarrier, Space, Span};
use crate::check::finding::Defect;
use crate::engine::access::Side;
use crate::engine::cluster::{Cluster, Stop};
use crate::engine::code::{Reference, Row, Source};
use crate::engine::schedule::{Random, Schedule};
use crate::isa::float::{FloatMode, add32, add64};
use crate::isa::format::Rounding;
use crate::isa::half::{Half, HalfMode};
use crate::isa::tensor_map::{BoxPiece, MapElement, TensorMap};
use crate::ptx::Scalar;

/// The unit of bulk copies, in bytes.
const UNIT: u64 = 16;
/// The alignment of a box in shared memory.
const BOX_ALIGNMENT: u64 = 128;

/// A tensor map, the coordinates, the im2col offsets, and whether the instruction is `.im2col`.
pub(super) type BoxPlace<'x> = (&'x Reference, &'x [Source], &'x [Source], bool);

/// The rank of the block and the address of a destination or an mbarrier of a multicast copy.
type Seat = (u32, u64);

impl Cluster<'_> {
    /// The memory and the address of an operand of one lane, of which `bytes` bytes are accessed.
    /// If they may not be accessed, reports that and returns None.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn spot(
        &mut self,
        by: &Executes<'_>,
        reference: &Reference,
        lane: usize,
        (bytes, alignment): (u64, u64),
        writes: bool,
    ) -> Option<(Side, u64)> {
        let address = self.addresses(by.warp, by.fragment.frame, by.code, reference)[lane];
        let (side, offset) = self.side(by.block, reference.window, address);
        self.fits(by, lane, side, offset, (bytes, alignment), writes).then_some((side, offset))
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn fits(
        &mut self,
        by: &Executes<'_>,
        lane: usize,
        side: Side,
        offset: u64,
        (bytes, alignment): (u64, u64),
        writes: bool,
    ) -> bool {
        let (place, size) = self.place(side, offset, bytes);
        let room = match side {
            Side::Global => match self.grid.memory.find(offset, &mut self.near) {
                Some(region) if !(writes && region.is_read_only) => region.words.bytes() - (offset - region.address),
                _ => 0,
            },
            _ => size.saturating_sub(offset),
        };
        if bytes > room {
            self.flaw(by, lane, Defect::OutOfBounds { place, size, writes });
            return false;
        }
        if !offset.is_multiple_of(alignment) {
            let alignment = alignment as u32;
            self.flaw(by, lane, Defect::Misaligned { place, alignment });
            return false;
        }
        true
    }

    pub(super) fn values(&self, by: &Executes<'_>, source: Source) -> Row {
        *by.row(source)
    }

    /// The ranks of the blocks that the mask of a multicast names. Without a mask, the given block.
    fn ranks(&self, mask: Option<u64>, own: u32) -> Vec<u32> {
        match mask {
            Some(mask) => (0..self.blocks.len() as u32).filter(|rank| mask >> rank & 1 == 1).collect(),
            None => vec![own],
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn bulk(
        &mut self,
        by: &Executes<'_>,
        (to, from): (&Reference, &Reference),
        size: Source,
        ends: &Ends,
        mask: Option<Source>,
        reduces: Option<ReduceKind>,
    ) {
        let sizes = *by.row(size);
        let masks = mask.map(|mask| *by.row(mask));
        for lane in lanes_of(by.active) {
            let size = sizes[lane] & 0xffff_ffff;
            if !size.is_multiple_of(UNIT) {
                let address = self.addresses(by.warp, by.fragment.frame, by.code, from)[lane];
                let (side, offset) = self.side(by.block, from.window, address);
                let (place, _) = self.place(side, offset, size);
                let defect = Defect::Misaligned { place, alignment: UNIT as u32 };
                self.flaw(by, lane, defect);
                continue;
            }
            let Some(source) = self.spot(by, from, lane, (size, UNIT), false) else { continue };
            let Some(target) = self.spot(by, to, lane, (size, UNIT), true) else { continue };
            let barrier = match ends {
                Ends::Barrier(at) => match self.barrier(by, at, lane) {
                    Some(key) => Some(key),
                    None => continue,
                },
                Ends::Group => None,
            };
            let ranks = match target.0 {
                Side::Shared(own) => self.ranks(masks.map(|masks| masks[lane]), own),
                _ => vec![u32::MAX],
            };
            for rank in ranks {
                let target = if rank == u32::MAX { target } else { (Side::Shared(rank), target.1) };
                // In each destination block, the mbarrier has the same address as the given
                // mbarrier in its own block.
                let barrier = barrier.map(|(own, at)| (if masks.is_some() { rank } else { own }, at));
                let moves = vec![Move { to: spot_of(target), from: spot_of(source), bytes: size as u32 }];
                let spans = [&[span_of(source, size)][..], &[span_of(target, size)][..]];
                let kind = (reduces, reduces.map_or(1, |kind| kind.kind.bits() / 8));
                self.issue(by, lane, moves, spans, kind, barrier.map(|(rank, at)| ((rank, at), size as u32)));
            }
        }
    }

    /// Reports a transfer, and either performs it at once or keeps it.
    #[allow(clippy::too_many_arguments)]
    fn issue(
        &mut self,
        by: &Executes<'_>,
        lane: usize,
        moves: Vec<Move>,
        [reads, writes]: [&[Span]; 2],
        (reduces, element): (Option<ReduceKind>, u32),
        barrier: Option<(Seat, u32)>,
    ) {
        let lanes = self.lane(by, lane);
        let completion = match barrier {
            Some(((rank, address), _)) => Completion::Mbarrier(Mbarrier { rank, address }),
            None => Completion::Group,
        };
        self.trace_spans(reads, writes);
        self.check.bulk(&Bulk { by: lanes, at: by.at, reads, writes, reduces: reduces.is_some(), completion });
        let number = self.asynchronous.issued;
        self.asynchronous.issued += 1;
        if barrier.is_none() {
            let key = (lanes.rank, by.warp.number, lane as u32);
            self.asynchronous.groups.entry(key).or_default().open.push(number);
        }
        let barrier = barrier.map(|((rank, at), bytes)| (rank, at, bytes));
        let transfer = Transfer { number, moves, element, reduces, barrier };
        if self.grid.schedule == Schedule::FirstAhead {
            self.transfer(&transfer);
        } else {
            self.asynchronous.transfers.push(transfer);
        }
    }

    /// Performs kept transfers between turns, as the schedule chooses.
    pub(in crate::engine) fn advance_transfers(&mut self) {
        match self.grid.schedule {
            Schedule::LastAhead => {}
            Schedule::Turns | Schedule::FirstAhead => self.finish_transfers(|_| true),
            Schedule::Random(seed) => {
                if self.asynchronous.transfers.is_empty() {
                    return;
                }
                self.asynchronous.drawn += 1;
                let mut random = Random(seed ^ self.asynchronous.drawn.wrapping_mul(0x2545_f491_4f6c_dd1d));
                for at in (1..self.asynchronous.transfers.len()).rev() {
                    self.asynchronous.transfers.swap(at, (random.next() % (at as u64 + 1)) as usize);
                }
                let bits = random.next();
                let mut at = 0;
                self.finish_transfers(|_| {
                    at += 1;
                    bits >> (at % 64) & 1 == 1
                });
            }
        }
    }

    /// Performs one transfer if nothing else can continue. Returns whether there was any.
    pub(in crate::engine) fn force_transfer(&mut self) -> bool {
        let mut first = true;
        let any = !self.asynchronous.transfers.is_empty();
        self.finish_transfers(|_| std::mem::take(&mut first));
        any
    }

    /// Performs all remaining transfers.
    pub(in crate::engine) fn end_transfers(&mut self) {
        self.finish_transfers(|_| true);
    }

    pub(super) fn finish_transfers(&mut self, mut which: impl FnMut(&Transfer) -> bool) {
        if self.asynchronous.transfers.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.asynchronous.transfers);
        let mut left = Vec::with_capacity(all.len());
        for transfer in all {
            if which(&transfer) {
                self.transfer(&transfer);
            } else {
                left.push(transfer);
            }
        }
        self.asynchronous.transfers = left;
    }

    /// Moves the bytes of a transfer.
    fn transfer(&mut self, transfer: &Transfer) {
        let mut buffer = Vec::new();
        for own in &transfer.moves {
            buffer.clear();
            buffer.resize(own.bytes as usize, 0);
            match own.from {
                Spot::Global(address) => {
                    if let Some(region) = self.grid.memory.find(address, &mut self.near) {
                        region.words.read_into(address - region.address, &mut buffer);
                    }
                }
                Spot::Shared(rank, address) => {
                    if let Some(block) = self.blocks.get(rank as usize) {
                        block.shared.read_into(address, &mut buffer);
                    }
                }
                Spot::Fill(bits) => {
                    for (at, byte) in buffer.iter_mut().enumerate() {
                        *byte = (bits >> (8 * (at as u32 % transfer.element.max(1)))) as u8;
                    }
                }
                Spot::Given(bytes) => {
                    let count = buffer.len().min(bytes.len());
                    buffer[..count].copy_from_slice(&bytes[..count]);
                }
            }
            let (words, address, alone) = match own.to {
                Spot::Global(address) => match self.grid.memory.find(address, &mut self.near) {
                    Some(region) => (&region.words, address - region.address, self.grid.alone),
                    None => continue,
                },
                Spot::Shared(rank, address) => match self.blocks.get(rank as usize) {
                    Some(block) => (&block.shared, address, true),
                    None => continue,
                },
                Spot::Fill(_) | Spot::Given(_) => continue,
            };
            match transfer.reduces {
                None => words.write_from(address, &buffer, alone),
                Some(kind) => {
                    let bytes = transfer.element.clamp(1, 8);
                    for (at, element) in buffer.chunks_exact(bytes as usize).enumerate() {
                        let new = element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                        let place = address + at as u64 * u64::from(bytes);
                        words.update(place, bytes, |old| reduced(kind, old, new));
                    }
                }
            }
        }
        if let Some((rank, at, bytes)) = transfer.barrier {
            self.barrier_completes((rank, at), bytes);
        }
        self.tell_news();
    }

    /// The moves of a box, and the spans of global memory that it accesses. Reports spans that may
    /// not be accessed.
    #[allow(clippy::too_many_arguments)]
    fn box_moves(
        &mut self,
        by: &Executes<'_>,
        map: &TensorMap,
        (_, coordinates, offsets, _): BoxPlace<'_>,
        lane: usize,
        shared: u64,
    ) -> (Vec<BoxPiece>, Vec<Span>) {
        let mut at = [0; 5];
        for (into, source) in at.iter_mut().zip(coordinates) {
            *into = by.row(*source)[lane] as i32;
        }
        let mut moved = [0; 3];
        for (into, source) in moved.iter_mut().zip(offsets) {
            *into = by.row(*source)[lane] as u16;
        }
        let mut pieces = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        map.pieces(at, moved, shared, |piece| {
            pieces.push(piece);
            let Some(address) = piece.global else { return };
            match spans.last_mut() {
                Some(last) if last.address + u64::from(last.bytes) == address => last.bytes += piece.bytes,
                _ => spans.push(Span { space: Space::Global, address, bytes: piece.bytes }),
            }
        });
        (pieces, spans)
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn box_load(
        &mut self,
        by: &Executes<'_>,
        to: &Reference,
        place: BoxPlace<'_>,
        barrier: &Reference,
        mask: Option<Source>,
    ) -> Result<(), Stop> {
        let masks = mask.map(|mask| *by.row(mask));
        for lane in lanes_of(by.active) {
            let map = self.map(by, place, lane, place.1.len())?;
            let (size, room) = (map.box_bytes(), u64::from(map.room()));
            let Some((side, target)) = self.spot(by, to, lane, (room, BOX_ALIGNMENT), true) else {
                continue;
            };
            if !self.box_begins_well(by, &map, place, lane) {
                continue;
            }
            let Side::Shared(own) = side else {
                return Err(Stop::Refused(by.at, "a box is loaded to shared memory".to_string()));
            };
            let Some(key) = self.barrier(by, barrier, lane) else { continue };
            let (pieces, reads) = self.box_moves(by, &map, place, lane, target);
            if !self.spans_fit(by, lane, &reads, false) {
                continue;
            }
            for rank in self.ranks(masks.map(|masks| masks[lane]), own) {
                let moves = pieces.iter().map(|piece| Move {
                    to: Spot::Shared(rank, piece.shared),
                    from: piece.global.map_or(Spot::Fill(map.fill()), Spot::Global),
                    bytes: piece.bytes,
                });
                // If rows are padded in shared memory, the padding is not written.
                let writes = match map.is_apart() {
                    true => of_pieces(&pieces, rank),
                    false => vec![Span { space: Space::Shared { rank }, address: target, bytes: size }],
                };
                let barrier = (if masks.is_some() { rank } else { key.0 }, key.1);
                let kind = (None, map.element.bytes());
                self.issue(by, lane, moves.collect(), [&reads, &writes], kind, Some((barrier, size)));
            }
        }
        Ok(())
    }

    /// Whether a box starts at a multiple of 16 bytes along the first dimension of its tensor, as
    /// devices require. If not, reports it.
    fn box_begins_well(
        &mut self,
        by: &Executes<'_>,
        map: &TensorMap,
        (_, coordinates, ..): BoxPlace<'_>,
        lane: usize,
    ) -> bool {
        let Some(first) = coordinates.first() else { return true };
        let first = i64::from(by.row(*first)[lane] as i32);
        let offset = first.wrapping_mul(i64::from(map.element.bytes()));
        if offset.rem_euclid(UNIT as i64) == 0 {
            return true;
        }
        let (place, _) = self.place(Side::Global, map.address.wrapping_add(offset as u64), UNIT);
        self.flaw(by, lane, Defect::Misaligned { place, alignment: UNIT as u32 });
        false
    }

    pub(super) fn box_store(
        &mut self,
        by: &Executes<'_>,
        place: BoxPlace<'_>,
        from: &Reference,
        reduces: Option<Reduces>,
    ) -> Result<(), Stop> {
        for lane in lanes_of(by.active) {
            let map = self.map(by, place, lane, place.1.len())?;
            let room = u64::from(map.room());
            let Some((side, source)) = self.spot(by, from, lane, (room, BOX_ALIGNMENT), false) else {
                continue;
            };
            if !self.box_begins_well(by, &map, place, lane) {
                continue;
            }
            let Side::Shared(rank) = side else {
                return Err(Stop::Refused(by.at, "a box is stored from shared memory".to_string()));
            };
            let (pieces, writes) = self.box_moves(by, &map, place, lane, source);
            if !self.spans_fit(by, lane, &writes, true) {
                continue;
            }
            let moves = pieces.iter().filter_map(|piece| {
                Some(Move {
                    to: Spot::Global(piece.global?),
                    from: Spot::Shared(rank, piece.shared),
                    bytes: piece.bytes,
                })
            });
            let reads = of_pieces(&pieces, rank);
            let kind = reduces.map(|what| ReduceKind { what, kind: element_of(&map) });
            self.issue(by, lane, moves.collect(), [&reads, &writes], (kind, map.element.bytes()), None);
        }
        Ok(())
    }

    /// Whether spans of global memory are inside; the first that is not is reported.
    fn spans_fit(&mut self, by: &Executes<'_>, lane: usize, spans: &[Span], writes: bool) -> bool {
        spans.iter().all(|span| self.fits(by, lane, Side::Global, span.address, (u64::from(span.bytes), 1), writes))
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn store_remote(
        &mut self,
        by: &Executes<'_>,
        to: &Reference,
        from: &[Source],
        barrier: &Reference,
        reduces: Option<ReduceKind>,
    ) {
        let rows: Vec<Row> = from.iter().map(|source| self.values(by, *source)).collect();
        let element = u32::from(to.bytes);
        let bytes = element * from.len() as u32;
        for lane in lanes_of(by.active) {
            let size = (u64::from(bytes), u64::from(bytes));
            let Some(target) = self.spot(by, to, lane, size, true) else { continue };
            let Some(key) = self.barrier(by, barrier, lane) else { continue };
            let mut given = [0; 16];
            for (row, into) in rows.iter().zip(given.chunks_exact_mut(element.max(1) as usize)) {
                into.copy_from_slice(&row[lane].to_le_bytes()[..into.len()]);
            }
            let moves = vec![Move { to: spot_of(target), from: Spot::Given(given), bytes }];
            let writes = [span_of(target, u64::from(bytes))];
            self.issue(by, lane, moves, [&[], &writes], (reduces, element), Some((key, bytes)));
        }
    }
}

/// The spans of shared memory that the store of a box reads: elements outside of the tensor are not
/// read.
fn of_pieces(pieces: &[BoxPiece], rank: u32) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.global.is_some()) {
        match spans.last_mut() {
            Some(last) if last.address + u64::from(last.bytes) == piece.shared => last.bytes += piece.bytes,
            _ => spans.push(Span { space: Space::Shared { rank }, address: piece.shared, bytes: piece.bytes }),
        }
    }
    spans
}

fn spot_of((side, address): (Side, u64)) -> Spot {
    match side {
        Side::Shared(rank) => Spot::Shared(rank, address),
        _ => Spot::Global(address),
    }
}

fn span_of((side, address): (Side, u64), bytes: u64) -> Span {
    let space = match side {
        Side::Shared(rank) => Space::Shared { rank },
        _ => Space::Global,
    };
    Span { space, address, bytes: bytes as u32 }
}

/// The element type in which a tensor map's elements are reduced.
fn element_of(map: &TensorMap) -> Scalar {
    match map.element {
        MapElement::U8 => Scalar::U(8),
        MapElement::U16 => Scalar::U(16),
        MapElement::U32 => Scalar::U(32),
        MapElement::S32 => Scalar::S(32),
        MapElement::U64 => Scalar::U(64),
        MapElement::S64 => Scalar::S(64),
        MapElement::F16 => Scalar::F(16),
        MapElement::F32 => Scalar::F(32),
        MapElement::F64 => Scalar::F(64),
        MapElement::Bf16 => Scalar::Bf16,
    }
}

/// The result of a reduction.
fn reduced(ReduceKind { what, kind }: ReduceKind, old: u64, new: u64) -> u64 {
    let bits = kind.bits();
    let signed = |value: u64| (value << (64 - bits)) as i64 >> (64 - bits);
    let half = match kind {
        Scalar::F(16) => Some(Half::F16),
        Scalar::Bf16 => Some(Half::Bf16),
        _ => None,
    };
    let extreme = crate::isa::float::ExtremeMode { max: what == Reduces::Max, ..Default::default() };
    match (what, half, kind) {
        (Reduces::Add, Some(half), _) => half.add(old as u16, new as u16, HalfMode::default()).into(),
        (Reduces::Add, _, Scalar::F(32)) => add32(old as u32, new as u32, FloatMode::default()).into(),
        (Reduces::Add, _, Scalar::F(64)) => add64(old, new, Rounding::Nearest),
        (Reduces::Add, ..) => old.wrapping_add(new),
        (Reduces::Min | Reduces::Max, Some(half), _) => half.extreme(old as u16, new as u16, extreme).into(),
        (Reduces::Min, _, Scalar::S(_)) => signed(old).min(signed(new)) as u64,
        (Reduces::Max, _, Scalar::S(_)) => signed(old).max(signed(new)) as u64,
        (Reduces::Min, ..) => old.min(new),
        (Reduces::Max, ..) => old.max(new),
        (Reduces::Inc, ..) => crate::isa::integer::increment(old as u32, new as u32).into(),
        (Reduces::Dec, ..) => crate::isa::integer::decrement(old as u32, new as u32).into(),
        (Reduces::And, ..) => old & new,
        (Reduces::Or, ..) => old | new,
        (Reduces::Xor, ..) => old ^ new,
    }
}
