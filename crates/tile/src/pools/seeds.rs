//! The layouts that operations ask for.
//!
//! Law: a tensor asks for coalesced lanes of its tiles, `dot` asks for the layouts of its
//! instructions for accumulators and operands, and the author asks for given layouts.

use std::collections::{BTreeMap, HashMap, HashSet};

use tilewright_kernel::program::Location;
use tilewright_layout::symbolic::Values;

use super::{Node, Origin, Pools, wanted};
use crate::by_hand::{ByHand, Given};
use crate::error::{Reason, Taker, TileError};
use crate::held::Held;
use crate::matrix::{self, Tiling};
use crate::memory::{self, PickedMode, Place};
use crate::program::{Index, Operation, Program, Statement, ValueId};
use crate::roles::Roles;

/// The inputs that determine which layouts operations ask for.
pub(super) struct Seeds<'a> {
    pub(super) program: &'a Program,
    pub(super) warps: i64,
    pub(super) roles: Option<&'a Roles>,
    pub(super) by_hand: &'a ByHand,
    pub(super) sizes: &'a Values,
    /// Tiles of coordinates whose elements are known.
    pub(super) coordinates: HashMap<ValueId, Vec<i64>>,
}

impl Seeds<'_> {
    /// Adds the layouts that all statements ask for. Returns the layouts that the author gives.
    pub(super) fn all(&self, nodes: &[Node<'_>], pools: &mut Pools) -> Result<BTreeMap<ValueId, Held>, TileError> {
        let mut given = BTreeMap::new();
        for (number, node) in nodes.iter().enumerate() {
            let asked = self.statement((number, node.statement), &mut given, pools);
            asked.map_err(|reason| match reason {
                // This reason already names the statements that take most.
                reason @ Reason::Room { .. } => reason.into(),
                reason => reason.at(node.statement.word(), node.statement.place()),
            })?;
        }
        Ok(given)
    }

    /// Adds the layouts that a statement asks for.
    fn statement(
        &self,
        (number, statement): (usize, &Statement),
        given: &mut BTreeMap<ValueId, Held>,
        pools: &mut Pools,
    ) -> Result<(), Reason> {
        match statement {
            Statement::Let { result, operation: Operation::Held(held), operands, .. } => {
                self.is_of_block(held)?;
                pools.add(operands[0], held.clone(), Origin::Author(*result));
                given.insert(*result, held.clone());
            }
            Statement::Let { result, operation: Operation::Dot, operands, place } => {
                self.product(pools, (*result, operands), *place)?;
            }
            Statement::Let { result, operation, operands, place } => {
                self.tile(pools, number, (*result, operation, operands, *place))?;
            }
            Statement::Store { .. } => self.store(pools, number, statement)?,
            Statement::Loop(_) => {}
        }
        Ok(())
    }

    fn thread_bits(&self) -> usize {
        5 + self.warps.trailing_zeros() as usize
    }

    /// Refuses a layout whose number of threads differs from that of the block.
    fn is_of_block(&self, held: &Held) -> Result<(), Reason> {
        if held.threads.len() == self.thread_bits() {
            return Ok(());
        }
        let because = format!("it is one of {} threads, and a block has {}", held.threads(), 32 * self.warps);
        Err(Reason::Held { layout: held.to_string(), because })
    }

    /// Adds the layouts that a load asks for.
    fn tile(
        &self,
        pools: &mut Pools,
        number: usize,
        (result, operation, operands, place_of): (ValueId, &Operation, &[ValueId], Location),
    ) -> Result<(), Reason> {
        let (tensor, place) = match operation {
            Operation::Load { tensor, shape, at, .. } => {
                (*tensor, Place::new(self.program, *tensor, (shape, at), self.sizes)?)
            }
            Operation::Gather { tensor, shape, modes, at, .. } => {
                let rows: Vec<_> = modes.iter().copied().zip(operands.iter().copied()).collect();
                (*tensor, self.gathered(*tensor, (shape, at), &rows)?)
            }
            // The tile is staged in shared memory, so it does not restrict the order of lanes.
            Operation::Stage { tensor, shape, at, .. } => {
                pools.places.insert(number, Place::new(self.program, *tensor, (shape, at), self.sizes)?);
                // The threads that copy rows need the coordinates of those rows.
                let any = memory::plain(0, self.thread_bits());
                if let (Some(rows), Some(held)) = (operands.first(), wanted(operation, &[], &[], &any)) {
                    pools.add(*rows, held, Origin::Read(*tensor));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        if place.assumed {
            pools.assumed.push((tensor, ("the load of", place_of)));
        }
        for held in place.coalesced(self.thread_bits()) {
            pools.add(result, held, Origin::Read(tensor));
        }
        pools.places.insert(number, place);
        Ok(())
    }

    /// The memory of a tile whose coordinates along some modes are in other tiles.
    fn gathered(&self, tensor: usize, along: (&[i64], &[Index]), rows: &[(usize, ValueId)]) -> Result<Place, Reason> {
        let of = |(mode, rows): &(usize, ValueId)| PickedMode {
            mode: *mode,
            shape: &self.program.type_of(*rows).shape,
            coordinates: self.coordinates.get(rows).map(Vec::as_slice),
        };
        Place::gathered(self.program, tensor, along, &rows.iter().map(of).collect::<Vec<_>>(), self.sizes)
    }

    /// Adds the layouts that a store asks for.
    fn store(&self, pools: &mut Pools, number: usize, statement: &Statement) -> Result<(), Reason> {
        let Statement::Store { tensor, value, rows, at: first, place: at, .. } = statement else { return Ok(()) };
        let shape = &self.program.type_of(*value).shape;
        let place = match rows.is_empty() {
            false => self.gathered(*tensor, (shape, first), rows)?,
            true => Place::new(self.program, *tensor, (shape, first), self.sizes)?,
        };
        if place.assumed {
            pools.assumed.push((*tensor, ("the store to", *at)));
        }
        let found = place.coalesced(self.thread_bits());
        // With roles, a store uses the layout that the tile has.
        if self.roles.is_none() {
            for held in &found {
                pools.add(*value, held.clone(), Origin::Written(*tensor));
            }
        }
        pools.stores.insert(number, found);
        pools.places.insert(number, place);
        Ok(())
    }

    /// Adds the layouts that a `dot` asks for, for its result and its operands.
    fn product(
        &self,
        pools: &mut Pools,
        (result, operands): (ValueId, &[ValueId]),
        place: Location,
    ) -> Result<(), Reason> {
        let shape = |at: usize| &self.program.type_of(operands[at]).shape;
        let extents = [shape(0)[0], shape(1)[1], shape(0)[1]];
        let found = self.tilings((result, operands), extents)?;
        if found.is_empty() {
            let (asked, limit) = (self.warps, (extents[0] / 16) * (extents[1] / 8));
            let what = format!("a dot of {} x {} x {}", extents[0], extents[1], extents[2]);
            let takers = vec![Taker { what, place, takes: limit }];
            let what = "warps, each with an MMA instruction";
            return Err(Reason::Room { what, asked, limit, takers });
        }
        for tiling in &found {
            let origin = Origin::Product(result);
            pools.add(result, tiling.c.clone(), origin);
            pools.add(operands[0], tiling.a.clone(), origin);
            pools.add(operands[1], tiling.b.clone(), origin);
        }
        pools.tilings.insert(result, found);
        Ok(())
    }

    /// The tilings of a `dot`.
    fn tilings(&self, (result, operands): (ValueId, &[ValueId]), extents: [i64; 3]) -> Result<Vec<Tiling>, Reason> {
        let element = self.program.type_of(operands[0]).element;
        let Some(roles) = self.roles else {
            let mut found = matrix::tilings(element, extents, self.warps)?;
            // Each warp then holds all columns: 32-bit registers of its 32 lanes.
            let registers = extents[1] * extents[2] * i64::from(element.bits()) / (32 * 32);
            if registers <= MOST_REGISTERS_OF_COLUMNS && multiplies_products(&self.program.body) {
                // The tiling with the most rows of warps: accumulators then become operands in the
                // same warp, and iterations exchange no data between warps.
                found.truncate(1);
            }
            return Ok(found);
        };
        let brought = |at: usize| {
            let value = operands[at];
            let bits = self.program.type_of(value).bits() as usize;
            roles.of.contains_key(&value).then(|| memory::plain(bits, self.thread_bits()))
        };
        let b = brought(1).unwrap_or_else(|| memory::plain(0, self.thread_bits()));
        let columns = match self.by_hand.of(result) {
            Some(Given::Group(columns)) => columns,
            _ => extents[1],
        };
        let shared = brought(0).is_some();
        self.by_hand.is_of_groups(result, element, extents, (columns, roles.groups, shared))?;
        let how = (columns, roles.groups, roles.crosses.contains(&operands[1]));
        matrix::of_groups(element, extents, how, brought(0).as_ref(), &b)
    }
}

/// The most registers of a thread for an operand of which each warp holds all columns.
const MOST_REGISTERS_OF_COLUMNS: i64 = 128;

/// Whether a body computes an operand of `dot` from the result of another `dot`, as attention does.
fn multiplies_products(body: &[Statement]) -> bool {
    let mut products: HashSet<ValueId> = HashSet::new();
    body.iter().any(|statement| match statement {
        Statement::Let { result, operation, operands, .. } => {
            let is_product = matches!(operation, Operation::Dot);
            let from = |operands: &[ValueId]| operands.iter().any(|own| products.contains(own));
            let found = is_product && operands.first().is_some_and(|rows| products.contains(rows));
            if is_product || from(operands) {
                products.insert(*result);
            }
            found
        }
        Statement::Loop(own) => multiplies_products(&own.body),
        Statement::Store { .. } => false,
    })
}
