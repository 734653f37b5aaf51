//! Gathers and scatters: tiles whose coordinates along some modes are in other tiles.
//!
//! Law: a thread has read a coordinate along each of these modes. The values of the thread that
//! share these coordinates form a tile of the tensor at that place, so they are loaded or stored
//! like any tile. If several threads hold the same elements, one of them writes.

use tilewright_kernel::{Distributed, Element, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, IntoShape, Slot, Stride, Tree};

use super::{Lowering, ThreadValue, over, reductions};
use crate::held::Held;
use crate::picked::{groups, part_shape, values_of_groups};
use crate::program::{Index, Operation, Statement, ValueId};

impl<'k> Lowering<'k, '_> {
    /// The tile of a tensor at a place. Along some modes, the thread has computed the index.
    pub(super) fn tile(
        &self,
        tensor: usize,
        shape: &[i64],
        at: &[Index],
        picked: &[(usize, Expr)],
    ) -> Result<View<'k>, KernelError> {
        let (mut slots, mut moved) = (Vec::new(), vec![Expr::from(0); at.len()]);
        for (mode, index) in at.iter().enumerate() {
            if let Some((_, own)) = picked.iter().find(|(own, _)| *own == mode) {
                slots.push(Slot::At(Stride::plus(own, &self.index(index)?).ok_or_else(over)?));
                continue;
            }
            if index.by_element {
                // The tile starts there: it is the first tile of the tensor from this coordinate
                // on.
                moved[mode] = self.index(index)?;
                slots.push(Slot::At(Expr::from(0)));
                continue;
            }
            slots.push(Slot::At(self.index(index)?));
        }
        let mut view = self.tensors[tensor].clone();
        for (mode, index) in at.iter().enumerate() {
            if let Some(length) = index.length {
                // Elements from this coordinate on are past the edge.
                view = view.ending_at(mode, &Stride::plus(&moved[mode], &Expr::from(length)).ok_or_else(over)?)?;
            }
        }
        if at.iter().any(|index| index.by_element) {
            view = view.domain_offset(&moved)?;
        }
        match slots.as_slice() {
            [one] => view.local_tile(shape[0], Coord::<Expr>::leaf(one.clone())),
            _ => view.local_tile(shape.into_shape()?, Tree::flat(slots)?),
        }
    }

    /// A coordinate that a thread has read. A coordinate of 64 bits that does not fit in 32 bits is
    /// past every edge.
    pub(super) fn place_at(&self, row: Num<'k>) -> Result<Expr, KernelError> {
        if row.element() != Element::I64 {
            return self.k.index_of(row);
        }
        // As unsigned numbers, negative ones are greater than all others.
        let own = row.recast(Element::U64);
        self.k.index_of(own.min(own.like(f64::from(i32::MAX))).to(Element::U32))
    }

    /// The coordinate of each group of values of a thread, along each mode.
    fn places(
        &self,
        shape: &[i64],
        rows: &[(usize, ValueId)],
        held: &Held,
    ) -> Result<Vec<Vec<(usize, Expr)>>, KernelError> {
        let modes: Vec<usize> = rows.iter().map(|(mode, _)| *mode).collect();
        let mut found: Vec<Vec<(usize, Expr)>> = Vec::new();
        for (mode, rows) in rows {
            let own = &self.placed.program.type_of(*rows).shape;
            let taken = values_of_groups(shape, (&modes, own), held);
            let all = self.numbers(*rows)?;
            let mut known: Vec<Option<Expr>> = vec![None; all.len()];
            found.resize(taken.len(), Vec::new());
            for (group, value) in found.iter_mut().zip(taken) {
                let number = *all.get(value).ok_or_else(over)?;
                // Several groups may have the same coordinate.
                let place = match &known[value] {
                    Some(place) => place.clone(),
                    None => self.place_at(number)?,
                };
                known[value] = Some(place.clone());
                group.push((*mode, place));
            }
        }
        Ok(found)
    }

    /// Gathers a tile.
    pub(super) fn gathered(
        &self,
        result: ValueId,
        operation: &Operation,
        operands: &[ValueId],
    ) -> Result<ThreadValue<'k>, KernelError> {
        let Operation::Gather { tensor, shape, at, modes, other } = operation else { return Err(over()) };
        let rows: Vec<(usize, ValueId)> = modes.iter().copied().zip(operands.iter().copied()).collect();
        let (part, groups) = groups(shape, modes, self.held(result)?);
        let places = self.places(shape, &rows, self.held(result)?)?;
        let shape = part_shape(shape, modes);
        let held = part.distribution(&shape)?;
        let other = self.k.number_of(self.placed.program.tensors[*tensor].element, *other);
        let mut found: Vec<Option<Num<'k>>> = vec![None; groups.iter().map(Vec::len).sum()];
        // A single group keeps the form in which it was loaded, with several elements in a
        // register.
        if let ([place], [_]) = (places.as_slice(), groups.as_slice()) {
            let view = self.tile(*tensor, &shape, at, place)?;
            let tile = view.load_distributed_or(&held, other)?;
            return Ok(ThreadValue::Tile(tile.fragment().distributed(&self.distribution(result)?)?));
        }
        for (place, group) in places.iter().zip(&groups) {
            let view = self.tile(*tensor, &shape, at, place)?;
            let tile = view.load_distributed_or(&held, other)?;
            for (value, number) in group.iter().zip(tile.fragment().numbers()?) {
                found[*value] = Some(number);
            }
        }
        Ok(ThreadValue::Numbers(found.into_iter().flatten().collect()))
    }

    /// Stores a tile, or combines it with the contents of the tensor.
    pub(super) fn store(&mut self, statement: &Statement, late: bool) -> Result<(), KernelError> {
        let k = self.k;
        if let Statement::Store { tensor, at, rows, with: None, value, .. } = statement
            && rows.is_empty()
        {
            let store = || self.bulk_store(*tensor, at, *value);
            let done = if late { k.in_place(store)? } else { store()? };
            if done {
                return Ok(());
            }
        }
        if late { k.in_place(|| self.stored_by_threads(statement)) } else { self.stored_by_threads(statement) }
    }

    fn stored_by_threads(&mut self, statement: &Statement) -> Result<(), KernelError> {
        let Statement::Store { tensor, at, rows, with, value, .. } = statement else { return Err(over()) };
        let shape = &self.placed.program.type_of(*value).shape;
        let whole = self.distribution(*value)?;
        if rows.is_empty() {
            let tile = self.tiled(&self.numbers(*value)?, &whole)?;
            let view = self.tile(*tensor, shape, at, &[])?;
            return match with {
                None => view.store_distributed_predicated(&tile),
                Some(with) => view.accumulate_distributed(&tile, reductions(*with)),
            };
        }
        let held: &Held = self.held(*value)?;
        let modes: Vec<usize> = rows.iter().map(|(mode, _)| *mode).collect();
        let (part, groups) = groups(shape, &modes, held);
        let places = self.places(shape, rows, held)?;
        let part_shape = part_shape(shape, &modes);
        let part = part.distribution(&part_shape)?;
        let numbers = self.numbers(*value)?;
        for (place, group) in places.iter().zip(&groups) {
            let own: Vec<Num<'k>> = group.iter().filter_map(|value| numbers.get(*value).copied()).collect();
            let tile: Distributed<'k> = self.tiled(&own, &part)?;
            let view = self.tile(*tensor, &part_shape, at, place)?;
            match with {
                None => view.store_part_of(&tile, &whole)?,
                Some(with) => view.accumulate_part_of(&tile, &whole, reductions(*with))?,
            }
        }
        Ok(())
    }
}
