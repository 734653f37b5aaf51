//! The tiles of a persistent grid, and their raster order.
//!
//! Law: each number from 0 to below [`Grid::units`] is one work unit: an output tile of one matrix
//! of the batch, and one split of K. Block `b` of `B` takes `b`, `b + B`, `b + 2B` and so on, so
//! blocks that run at the same time have consecutive numbers. The raster order is: `band` tiles
//! along the rows, then along the columns, then the next band; then the next matrix; then the next
//! split. If clusters have tiles side by side and the number of columns of tiles is odd, the last
//! column comes after all others, and a cluster has two tiles of that column, one above the other.

use crate::gemm::index::{minus, overflow, plus, quotient, times};
use crate::gemm::schedule::unit::{Unit, UnitPlace};
use tilewright_kernel::{Build, KernelError};
use tilewright_layout::Extent;
use tilewright_layout::symbolic::Expr;

/// The tile grid of a launch, in expressions of its sizes.
#[derive(Clone)]
pub(crate) struct Grid {
    /// Tiles along the columns, in units of the tiles that a cluster has side by side.
    pub(crate) across: Expr,
    /// Tiles of a cluster that are side by side.
    pub(crate) beside: i64,
    /// Raster bands along the rows.
    pub(crate) bands: Expr,
    /// Tiles of a raster band.
    pub(crate) band: i64,
    /// Matrices of a batch; None for one matrix.
    pub(crate) batch: Option<Expr>,
    /// K-tiles of an output tile.
    pub(crate) steps: Expr,
    /// Split-K: the number of blocks that share the k-tiles of a tile.
    pub(crate) split_k: i64,
    /// Blocks of the persistent grid.
    pub(crate) blocks: i64,
    /// A range of the tiles: how many tiles come before it, and its length; None for all tiles.
    pub(crate) some: Option<[i64; 2]>,
    /// If the last column of tiles goes to clusters with tiles one above the other: the number of
    /// tiles before it, and in it, both even. `across` excludes that column.
    pub(crate) above: Option<[i64; 2]>,
}
impl Grid {
    /// Tiles of one matrix.
    fn tiles(&self) -> Result<Expr, KernelError> {
        times(&times(&self.bands, &Expr::from(self.band * self.beside))?, &self.across)
    }

    /// The number of work units.
    pub(crate) fn units(&self) -> Result<Expr, KernelError> {
        if let Some([_, own]) = self.some {
            return Ok(Expr::from(own * self.split_k));
        }
        let tiles = match self.above {
            None => self.tiles()?,
            Some([before, along]) => Expr::from(before + along),
        };
        let tiles = times(&tiles, &Expr::from(self.split_k))?;
        self.batch.as_ref().map_or(Ok(tiles.clone()), |batch| times(&tiles, batch))
    }

    /// The number of work units of a block.
    pub(crate) fn own(&self, block: &Expr) -> Result<Expr, KernelError> {
        let left = self.units()?.minus(block).ok_or_else(overflow)?;
        left.divide_up(&Expr::from(self.blocks)).ok_or_else(overflow)
    }

    /// The work unit of a block in an iteration.
    pub(crate) fn unit(&self, k: &Build, block: &Expr, iteration: &Expr) -> Result<Unit, KernelError> {
        let number = plus(&times(iteration, &Expr::from(self.blocks))?, block)?;
        if let Some(tiles) = self.above {
            return self.of_either(k, &number, tiles);
        }
        let (place, last) = match self.some {
            None => (self.at(k, number)?, None),
            Some([before, own]) => {
                let digits = k.coordinate(&number, &[own, self.split_k])?;
                let [last, split] = &digits[..] else { return Err(overflow()) };
                let place = self.at(k, plus(last, &Expr::from(before))?)?;
                (UnitPlace { split: (self.split_k > 1).then(|| split.clone()), ..place }, Some(last.clone()))
            }
        };
        self.ranged(place, last)
    }

    /// The work unit of this number, if the last column of tiles is separate. A matrix has `before`
    /// tiles before that column and `along` tiles in it.
    fn of_either(&self, k: &Build, number: &Expr, [before, along]: [i64; 2]) -> Result<Unit, KernelError> {
        let batch = self.batch.as_ref().and_then(Extent::known).unwrap_or(1);
        let digits = k.coordinate(number, &[before + along, batch, self.split_k])?;
        let [inside, matrix, split] = &digits[..] else { return Err(overflow()) };
        let digits = k.coordinate(inside, &[before, 2])?;
        let [rest, above] = &digits[..] else { return Err(overflow()) };
        let beside = minus(&Expr::from(1), above)?;
        // The algebra cannot determine the sign of products of flags.
        let either = |a: &Expr, b: &Expr, most: i64| {
            k.index_up_to(k.index(&plus(&times(a, &beside)?, &times(b, above)?)?)?, most)
        };
        let place = self.at(k, rest.clone())?;
        let last = before / along;
        let place = UnitPlace {
            row: either(&place.row, rest, along - 1)?,
            column: either(&place.column, &Expr::from(last), last)?,
            matrix: self.batch.is_some().then(|| matrix.clone()),
            split: (self.split_k > 1).then(|| split.clone()),
        };
        Ok(Unit { above: Some(above.clone()), ..self.ranged(place, None)? })
    }

    /// The position of a work unit.
    pub(crate) fn at(&self, k: &Build, number: Expr) -> Result<UnitPlace, KernelError> {
        match self.shape() {
            Some(shape) => {
                let digits = k.coordinate(&number, &shape)?;
                let [beside, row, column, band, matrix, split] = &digits[..] else { return Err(overflow()) };
                Ok(UnitPlace {
                    row: plus(&times(band, &Expr::from(self.band))?, row)?,
                    column: plus(&times(column, &Expr::from(self.beside))?, beside)?,
                    matrix: self.batch.is_some().then(|| matrix.clone()),
                    split: (self.split_k > 1 && self.some.is_none()).then(|| split.clone()),
                })
            }
            None => self.place(number),
        }
    }

    /// The k-tiles of a work unit.
    fn ranged(&self, place: UnitPlace, last: Option<Expr>) -> Result<Unit, KernelError> {
        let UnitPlace { row, column, matrix, split } = place;
        let (first, steps) = match &split {
            None => (Expr::from(0), self.steps.clone()),
            Some(split) => {
                // The lengths of ranges differ by at most one, and no range is empty if there are
                // as many k-tiles.
                let begin = |number: &Expr| {
                    times(number, &self.steps)?.floor_div(&Expr::from(self.split_k)).ok_or_else(overflow)
                };
                let first = begin(split)?;
                let end = begin(&plus(split, &Expr::from(1))?)?;
                let steps = end.minus(&first).ok_or_else(overflow)?;
                (first, steps)
            }
        };
        Ok(Unit { first, split, last, ..Unit::of(UnitPlace { row, column, matrix, split: None }, steps, None) })
    }

    /// The extents of the coordinates of a work unit, if they are known: tile in its cluster, tile
    /// in its band, column, band, matrix, split.
    fn shape(&self) -> Option<[i64; 6]> {
        let batch = self.batch.as_ref().map_or(Some(1), Extent::known)?;
        Some([
            self.beside,
            self.band,
            self.across.known()?,
            self.bands.known()?,
            batch,
            if self.some.is_some() { 1 } else { self.split_k },
        ])
    }

    /// The position of a work unit, by divisions by sizes that are known at launch.
    fn place(&self, number: Expr) -> Result<UnitPlace, KernelError> {
        let tiles = self.tiles()?;
        let many = self.batch.as_ref().map_or(Ok(tiles.clone()), |batch| times(&tiles, batch))?;
        let parted = |number: Expr, by: &Expr, several: bool| {
            if several { quotient(&number, by).map(|(part, rest)| (Some(part), rest)) } else { Ok((None, number)) }
        };
        let (split, number) = parted(number, &many, self.split_k > 1)?;
        let (matrix, number) = parted(number, &tiles, self.batch.is_some())?;
        let (band, inside) = quotient(&number, &times(&self.across, &Expr::from(self.band * self.beside))?)?;
        let (clusters, beside) = quotient(&inside, &Expr::from(self.beside))?;
        let (column, row) = quotient(&clusters, &Expr::from(self.band))?;
        let column = plus(&times(&column, &Expr::from(self.beside))?, &beside)?;
        Ok(UnitPlace { row: plus(&times(&band, &Expr::from(self.band))?, &row)?, column, matrix, split })
    }
}
