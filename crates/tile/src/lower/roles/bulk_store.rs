//! Results that TMA stores from shared memory.
//!
//! Law: threads write a result to shared memory as matrices of 8 x 8, strip by strip, in lines of
//! 128 bytes. TMA then stores it while the consumers continue. Before the next result is written to
//! the buffer, TMA must have read the previous one. If the lines of a tensor end inside a chunk of
//! 16 bytes, whose rest TMA would overwrite, threads store the result instead.

use std::collections::HashMap;

use tilewright_kernel::{Element, KernelError, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, IntoShape, Layout, LayoutError, Slot, Swizzle, Tiler, Tree};

use super::super::{Lowering, ThreadValue};
use crate::program::statement::statements;
use crate::program::{Index, Statement, ValueId};
use crate::roles::{TmaTile, is_stored_in_bulk};

/// The most columns of a strip: a line of 128 bytes.
const STRIP: i64 = 64;

impl<'k> Lowering<'k, '_> {
    /// The rows and columns of a stored tile, and the description of the tile for TMA; None if TMA
    /// cannot store it.
    fn bulk_stored(&self, tensor: usize, at: &[Index], value: ValueId) -> Option<([i64; 2], TmaTile)> {
        let ty = self.placed.program.type_of(value);
        let several: Vec<usize> = (0..ty.shape.len()).filter(|mode| ty.shape[*mode] > 1).collect();
        let [rows, columns] = several.as_slice() else { return None };
        let extents = [ty.shape[*rows], ty.shape[*columns]];
        let held = self.placed.layouts.get(&value)?;
        let as_sums = |(result, tiling): (&ValueId, &crate::matrix::Tiling)| {
            tiling.c == *held && self.placed.program.type_of(*result).shape == extents
        };
        let fits = ty.element.bits() == 16
            && self.placed.program.is_contiguous(tensor, *columns)
            && extents[1] % 16 == 0
            && is_stored_in_bulk(&self.placed.program, tensor, at)
            && self.placed.tilings.iter().any(as_sums);
        fits.then(|| (extents, TmaTile { tensor, shape: ty.shape.clone(), modes: [*rows, *columns] }))
    }

    /// Allocates the buffers in shared memory for all stores by TMA.
    pub(super) fn bulk_stores(&self) -> Result<HashMap<[i64; 2], View<'k>>, KernelError> {
        let mut found = HashMap::new();
        let mut sizes: Vec<([i64; 2], Element)> = Vec::new();
        for statement in statements(&self.placed.program.body) {
            let Statement::Store { tensor, at, value, .. } = statement else { continue };
            let Some((extents, _)) = self.bulk_stored(*tensor, at, *value) else { continue };
            let element = self.placed.program.tensors[*tensor].element;
            // One buffer serves all stores of one shape.
            if sizes.is_empty() || sizes.contains(&(extents, element)) {
                sizes.push((extents, element));
                if let std::collections::hash_map::Entry::Vacant(entry) = found.entry(extents) {
                    entry.insert(self.k.shared_of(element, panels(extents))?);
                }
            }
        }
        Ok(found)
    }

    /// Stores a tile by TMA through shared memory. Returns whether that is possible.
    pub(in crate::lower) fn bulk_store(
        &self,
        tensor: usize,
        at: &[Index],
        value: ValueId,
    ) -> Result<bool, KernelError> {
        let Some(groups) = &self.groups else { return Ok(false) };
        let Some((extents, own)) = self.bulk_stored(tensor, at, value) else { return Ok(false) };
        let Some(shared) = groups.bulk_stores.get(&extents) else { return Ok(false) };
        if shared.element() != self.placed.program.tensors[tensor].element {
            return Ok(false);
        }
        let [rows, columns] = extents;
        let k = self.k;
        let strip = columns.min(STRIP);
        let name = format!("SM90_64x{strip}x16_F32BF16BF16_SS");
        let order = Tiler::from_shape(&(rows, strip, 16).into_shape()?)?;
        let arranged = Layout::compact(&(groups.plan.groups, 1, 1).into_shape()?)?;
        let part = TiledMma::new(MmaAtom::named(&name)?, &arranged, &order)?;
        let atom = CopyAtom::named("SM90_U32x4_STSM_N")?;
        let store = TiledCopy::of_operand_in(atom, &part, Operand::C, 16)?;
        let (blocks, held) = (rows / (64 * groups.plan.groups), columns / 2);
        let count = columns / strip;
        let all: Layout = Layout::strided(((2, 2, strip / 8), blocks, 1, count), ((1, 2, 4), held, 0, strip / 2))?;
        let values = match self.values.get(&value) {
            Some(ThreadValue::Tile(tile)) => tile.fragment().clone(),
            _ => {
                let numbers = self.numbers(value)?;
                let fragment = k.register(shared.element(), &numbers.len().to_string())?;
                fragment.set(&numbers)?;
                fragment
            }
        };
        let values = values.with_layout(&all)?;
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })?;
        k.barrier();
        for number in 0..count {
            let own = values.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(number)])?)?;
            let to = shared
                .local_tile((rows, strip), Tree::flat([Slot::At(Expr::from(0)), Slot::At(Expr::from(number))])?)?;
            k.copy(&store, &own.retile(&store, CopyEnd::Source)?, &to)?;
        }
        k.fence_async();
        k.barrier();
        let to = self.matrix(&own, at, None)?;
        k.single(|| {
            k.store_bulk(shared, &to)?;
            k.commit_bulk();
            Ok(())
        })?;
        Ok(true)
    }
}

/// The layout of a buffer: lines of up to 128 bytes along the columns.
///
/// Errors: the offset of an element is not a known number.
fn panels([rows, columns]: [i64; 2]) -> Result<Composed, LayoutError> {
    let width = columns.min(STRIP);
    let swizzle = Swizzle::new((width / 8).ilog2().into(), 3, 3)?;
    Composed::new(swizzle, 0, Layout::strided((rows, (width, columns / width)), (width, (1, width * rows)))?)
}
