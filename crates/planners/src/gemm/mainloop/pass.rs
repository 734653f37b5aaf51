//! The output tiles that a block computes.
//!
//! Law: one pass covers all tiles. If split-K covers only the tail, a first pass covers the tiles
//! that are not split, and a second pass the tail. The ring of stages continues from pass to pass.

use crate::gemm::epilogue::outline::{Ends, Epilogue};
use crate::gemm::mainloop::outline::Outline;
use crate::gemm::schedule::grid::Grid;
use crate::gemm::schedule::grouped::GroupedTiles;
use crate::gemm::schedule::list::Listed;
use crate::gemm::schedule::unit::Unit;
use tilewright_kernel::{Build, KernelError};
use tilewright_layout::symbolic::Expr;

/// A pass over tiles.
pub(crate) struct Pass<'a, 'k> {
    k: &'k Build,
    outline: &'a Outline<'a>,
    block: Expr,
    numbering: Numbering<'a, 'k>,
    /// How tiles are written, and to what.
    pub(crate) epilogue: &'a Epilogue,
    pub(crate) ends: Ends<'k>,
}

/// How a tile is found from its index.
enum Numbering<'a, 'k> {
    /// With row groups: a table in memory.
    Groups(Box<GroupedTiles<'k>>),
    /// With several problems: their sizes.
    List(&'a Listed),
    Grid(Grid),
}

impl<'a, 'k> Pass<'a, 'k> {
    /// The passes of a kernel over `steps` k-tiles: the pass that writes D, and the pass over split
    /// tiles if there is one.
    pub(crate) fn all(
        k: &'k Build,
        outline: &'a Outline<'a>,
        block: &Expr,
        (steps, groups): (&Expr, Option<GroupedTiles<'k>>),
        (ends, last): (Ends<'k>, Option<Ends<'k>>),
    ) -> Result<Vec<Pass<'a, 'k>>, KernelError> {
        let plan = outline.plan;
        let pass = |numbering, epilogue, ends| Pass { k, outline, block: block.clone(), numbering, epilogue, ends };
        if let Some(groups) = groups {
            return Ok(vec![pass(Numbering::Groups(Box::new(groups.read()?)), &outline.epilogue, ends)]);
        }
        if let Some(listed) = &outline.listed {
            return Ok(vec![pass(Numbering::List(listed), &outline.epilogue, ends)]);
        }
        let grid = grid(k, outline, steps)?;
        let (Some(last), Some(last_ends)) = (&outline.last, last) else {
            return Ok(vec![pass(Numbering::Grid(grid), &outline.epilogue, ends)]);
        };
        let [along, across] = plan.tiles(outline.problem);
        let alone = along * across - plan.tail;
        let shared = Grid { some: Some([alone, plan.tail]), ..grid.clone() };
        let grid = Grid { split_k: 1, some: Some([0, alone]), ..grid };
        Ok(vec![pass(Numbering::Grid(grid), &outline.epilogue, ends), pass(Numbering::Grid(shared), last, last_ends)])
    }

    /// The number of work units of a block.
    pub(crate) fn own(&self) -> Result<Expr, KernelError> {
        match &self.numbering {
            Numbering::Groups(tiles) => tiles.own(self.k, &self.block),
            Numbering::List(listed) => listed.own(&self.block),
            Numbering::Grid(grid) => grid.own(&self.block),
        }
    }

    /// The work unit of an iteration.
    pub(crate) fn unit(&self, iteration: &Expr) -> Result<Unit, KernelError> {
        let (k, outline) = (self.k, self.outline);
        let mut unit = match &self.numbering {
            Numbering::Groups(tiles) => tiles.unit(k, &self.block, iteration)?,
            Numbering::List(listed) => listed.unit(k, &self.block, iteration)?,
            Numbering::Grid(grid) => grid.unit(k, &self.block, iteration)?,
        };
        unit.boxed = outline.fold.as_ref().map(|fold| fold.at(k, outline.plan.rows, &unit.row)).transpose()?;
        Ok(unit)
    }
}

/// All tiles of a problem, with `steps` k-tiles each.
fn grid(k: &Build, outline: &Outline<'_>, steps: &Expr) -> Result<Grid, KernelError> {
    let (problem, plan) = (outline.problem, outline.plan);
    let ([rows, columns, _], [along, across]) = (outline.sizes(), plan.tiles(problem));
    // If clusters are of both kinds, the last column of tiles is counted separately.
    let ends_above = plan.ends_above(problem);
    Ok(Grid {
        across: match ends_above {
            true => Expr::from(across / plan.beside()),
            false => k.size(&format!("ceil({columns}/{})", plan.columns * plan.beside()))?,
        },
        beside: plan.beside(),
        bands: k.size(&format!("ceil({rows}/{})", plan.rows * plan.raster_band))?,
        band: plan.raster_band,
        batch: if problem.batch() > 1 { Some(k.size(&outline.written[0].batch)?) } else { None },
        steps: steps.clone(),
        split_k: plan.split_k,
        blocks: plan.blocks,
        some: None,
        above: ends_above.then_some([along * (across - 1), along]),
    })
}
