//! `wgmma`: the part of a wgmma that one warp computes.
//!
//! A warp computes its own rows when it executes the instruction. The checker detects registers and
//! shared memory that are accessed too early.

use super::Executes;
use crate::check::checker::{Space, Span, Wgmma};
use crate::check::finding::Defect;
use crate::engine::access::Side;
use crate::engine::cluster::{Cluster, Stop};
use crate::engine::code::{Source, Target, Truth};
use crate::isa::mma::sparse::Sparsity;
use crate::isa::mma::{LANES, LaneWords};
use crate::isa::wgmma::{Described, GroupProduct};

/// Rows of A for each warp.
const ROWS: usize = 16;
/// Bytes of a unit of shared memory.
const UNIT: u32 = 16;

/// A in registers or as a descriptor, the descriptor of B, and the metadata of a sparse A.
type ProductOperands<'x> = (&'x Result<Box<[Source]>, Source>, Source, Option<(Source, Sparsity)>);

impl Cluster<'_> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn product(
        &mut self,
        by: &mut Executes<'_>,
        wgmma: &GroupProduct,
        d: &[Target],
        (a, b, sparsity): ProductOperands<'_>,
        adds: Truth,
    ) -> Result<(), Stop> {
        let first = by.fragment.mask.trailing_zeros() as usize & 31;
        let adds = by.warp.frames[by.fragment.frame].truth(adds) >> first & 1 == 1;
        let described = |source: Source| Described::of_bits(by.row(source)[first]);
        let of_b = described(b);
        let of_a = a.as_ref().err().map(|source| described(*source));
        let rows = |sources: &[Source]| -> Vec<LaneWords> {
            sources.iter().map(|source| by.row(*source).map(|value| value as u32)).collect()
        };
        let held = a.as_ref().ok().map(|sources| rows(sources));
        let refused = |why: String| Stop::Refused(by.at, why);
        if wgmma.is_undocumented(&of_b) {
            let why = "columns of B have 64 bytes here, and how they lie with a swizzle of 32 bytes is not documented";
            return Err(refused(why.to_string()));
        }
        let places = match sparsity {
            Some((metadata, sparsity)) => {
                let metadata = by.row(metadata).map(|value| value as u32);
                Some(sparsity.places(&metadata).map_err(|flaw| refused(flaw.to_string()))?)
            }
            None => None,
        };
        let sources: Vec<Source> = d.iter().map(|target| Source(target.slot)).collect();
        let mut sums = rows(&sources);
        // A warp has the rows of its place in the warpgroup.
        let own = by.warp.number as usize % 4;
        let mut units = wgmma.units(&of_b, true, 0, wgmma.n());
        if let Some(of_a) = &of_a {
            units.extend(wgmma.units(of_a, false, ROWS * own, ROWS));
        }
        units.sort_unstable();
        units.dedup();
        let rank = self.blocks[by.block].rank;
        let size = self.grid.shared_bytes;
        if let Some(outside) = units.iter().find(|unit| u64::from(**unit + UNIT) > size) {
            let (place, size) = self.place(Side::Shared(rank), u64::from(*outside), UNIT.into());
            let defect = Defect::OutOfBounds { place, size, writes: false };
            self.found(by.block, by.warp.number, by.fragment.mask, by.at, defect);
            units.retain(|unit| u64::from(unit + UNIT) <= size);
        }
        let mut reads: Vec<Span> = Vec::new();
        for unit in units {
            match reads.last_mut() {
                Some(last) if last.address + u64::from(last.bytes) == u64::from(unit) => last.bytes += UNIT,
                _ => reads.push(Span { space: Space::Shared { rank }, address: unit.into(), bytes: UNIT }),
            }
        }
        let accumulators: Vec<u32> = d.iter().map(|target| target.slot).collect();
        let sources = a.as_deref().unwrap_or_default().iter().chain(sparsity.as_ref().map(|(metadata, _)| metadata));
        let operands: Vec<u32> = sources.map(|source| source.0).filter(|slot| slot & Source::CONSTANT == 0).collect();
        self.trace_spans(&reads, &[]);
        let lanes = self.lanes(by.block, by.warp, by.fragment.mask);
        self.check.wgmma(&Wgmma {
            by: lanes,
            at: by.at,
            reads: &reads,
            accumulators: &accumulators,
            operands: &operands,
        });
        let shared = &self.blocks[by.block].shared;
        let read = |at: u32| {
            let mut unit = [0; UNIT as usize];
            for (half, bytes) in unit.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&shared.read(u64::from(at) + 8 * half as u64, 8).to_le_bytes());
            }
            unit
        };
        let left = match (&of_a, &held) {
            (Some(of_a), _) => wgmma.a_of_shared(own, of_a, read),
            (None, held) => wgmma.a_of_registers(held.as_deref().unwrap_or_default()),
        };
        let right = wgmma.b_of_shared(&of_b, read);
        match &places {
            Some(places) => wgmma.multiply_sparse(&left, &right, places, &mut sums, adds),
            None => wgmma.multiply(&left, &right, &mut sums, adds),
        }
        let full = by.fragment.mask == by.warp.live;
        let frame = &mut by.warp.frames[by.fragment.frame];
        for (target, sum) in d.iter().zip(&sums) {
            let mut row = [0; LANES];
            for (into, value) in row.iter_mut().zip(sum) {
                *into = u64::from(*value);
            }
            frame.put(*target, &row, by.fragment.mask, full);
        }
        Ok(())
    }
}
