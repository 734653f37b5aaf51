//! Which tile a block takes when.
//!
//! Law: the numbers from 0 to below [`Grid::units`] are each one part of the work: a tile of a
//! matrix of the batch, and a range of steps along K where several blocks share a tile. Block `b`
//! of `B` takes the numbers `b, b + B, b + 2B, ..`. So blocks that run at once have neighbouring
//! numbers, and the order of the numbers decides what they share: `group` tiles along the rows
//! first, then along the columns, then the next group; then the next matrix; then the next range of
//! steps. Where clusters have tiles side by side and the number of columns of tiles is odd, the
//! last column comes after all others, and clusters have two of its tiles one above the other.

use tilewright_kernel::{Build, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, LayoutError, Stride};

use super::fold::Boxed;
use super::groups::Rows;

/// The work of a launch, in expressions over its sizes.
#[derive(Clone)]
pub(super) struct Grid {
    /// Tiles along the columns, of so many side by side in one cluster.
    pub(super) across: Expr,
    /// Tiles of a cluster that are side by side.
    pub(super) beside: i64,
    /// Groups of tiles along the rows.
    pub(super) bands: Expr,
    /// Tiles of a group.
    pub(super) group: i64,
    /// Matrices; none where there is one.
    pub(super) batch: Option<Expr>,
    /// Steps along K.
    pub(super) steps: Expr,
    /// How many blocks share the steps of a tile.
    pub(super) splits: i64,
    /// Blocks.
    pub(super) blocks: i64,
    /// The tiles that come before, which are taken otherwise, and how many there are of these; else
    /// all.
    pub(super) some: Option<[i64; 2]>,
    /// The tiles before those of the last column, which clusters have one above the other, and how
    /// many there are of these, an even number each; `across` is without that column. None where
    /// all clusters are alike.
    pub(super) above: Option<[i64; 2]>,
}

/// A part of the work.
pub(super) struct Unit {
    /// The tile along the rows.
    pub(super) row: Expr,
    /// The tile along the columns.
    pub(super) column: Expr,
    /// The matrix of the batch.
    pub(super) matrix: Option<Expr>,
    /// Which of the ranges of steps, where there are several.
    pub(super) split: Option<Expr>,
    /// The first step along K.
    pub(super) first: Expr,
    /// How many steps.
    pub(super) steps: Expr,
    /// The rows of a group, in which the tile along them is the first one.
    pub(super) rows: Option<Rows>,
    /// The rows of the tile along the axes of folded modes.
    pub(super) boxed: Option<Boxed>,
    /// The number among the last tiles, which are shared.
    pub(super) last: Option<Expr>,
    /// The problem of a list to which the tile belongs.
    pub(super) problem: Option<Expr>,
    /// 1 where the tiles of a cluster are one above the other, else 0; none where all clusters are
    /// alike.
    pub(super) above: Option<Expr>,
}

impl Unit {
    /// All steps of a tile.
    pub(super) fn of(Place { row, column, matrix, split }: Place, steps: Expr, rows: Option<Rows>) -> Unit {
        Unit {
            row,
            column,
            matrix,
            split,
            first: Expr::from(0),
            steps,
            rows,
            boxed: None,
            last: None,
            problem: None,
            above: None,
        }
    }
}

impl Grid {
    /// Tiles of a matrix.
    fn tiles(&self) -> Result<Expr, KernelError> {
        times(&times(&self.bands, &Expr::from(self.group * self.beside))?, &self.across)
    }

    /// How many parts there are.
    pub(super) fn units(&self) -> Result<Expr, KernelError> {
        if let Some([_, own]) = self.some {
            return Ok(Expr::from(own * self.splits));
        }
        let tiles = match self.above {
            None => self.tiles()?,
            Some([before, along]) => Expr::from(before + along),
        };
        let tiles = times(&tiles, &Expr::from(self.splits))?;
        self.batch.as_ref().map_or(Ok(tiles.clone()), |batch| times(&tiles, batch))
    }

    /// How many of them a block takes.
    pub(super) fn own(&self, block: &Expr) -> Result<Expr, KernelError> {
        let left = self.units()?.minus(block).ok_or_else(overflow)?;
        left.divide_up(&Expr::from(self.blocks)).ok_or_else(overflow)
    }

    /// The part that a block takes in a turn.
    pub(super) fn unit(&self, k: &Build, block: &Expr, turn: &Expr) -> Result<Unit, KernelError> {
        let number = plus(&times(turn, &Expr::from(self.blocks))?, block)?;
        if let Some(tiles) = self.above {
            return self.of_either(k, &number, tiles);
        }
        let (place, last) = match self.some {
            None => (self.at(k, number)?, None),
            Some([before, own]) => {
                let digits = k.coordinate(&number, &[own, self.splits])?;
                let [last, split] = &digits[..] else { return Err(overflow()) };
                let place = self.at(k, plus(last, &Expr::from(before))?)?;
                (Place { split: (self.splits > 1).then(|| split.clone()), ..place }, Some(last.clone()))
            }
        };
        self.ranged(place, last)
    }

    /// The part of the work of a number, of a matrix with so many tiles before those of the last
    /// column, and in it.
    fn of_either(&self, k: &Build, number: &Expr, [before, along]: [i64; 2]) -> Result<Unit, KernelError> {
        let batch = self.batch.as_ref().and_then(Extent::known).unwrap_or(1);
        let digits = k.coordinate(number, &[before + along, batch, self.splits])?;
        let [inside, matrix, split] = &digits[..] else { return Err(overflow()) };
        let digits = k.coordinate(inside, &[before, 2])?;
        let [rest, above] = &digits[..] else { return Err(overflow()) };
        let beside = minus(&Expr::from(1), above)?;
        // Products of the flags are of any sign, as far as is known.
        let either = |a: &Expr, b: &Expr, most: i64| {
            k.index_up_to(k.index(&plus(&times(a, &beside)?, &times(b, above)?)?)?, most)
        };
        let place = self.at(k, rest.clone())?;
        let last = before / along;
        let place = Place {
            row: either(&place.row, rest, along - 1)?,
            column: either(&place.column, &Expr::from(last), last)?,
            matrix: self.batch.is_some().then(|| matrix.clone()),
            split: (self.splits > 1).then(|| split.clone()),
        };
        Ok(Unit { above: Some(above.clone()), ..self.ranged(place, None)? })
    }

    /// The place of a part of the work.
    pub(super) fn at(&self, k: &Build, number: Expr) -> Result<Place, KernelError> {
        match self.shape() {
            Some(shape) => {
                let digits = k.coordinate(&number, &shape)?;
                let [beside, row, column, band, matrix, split] = &digits[..] else { return Err(overflow()) };
                Ok(Place {
                    row: plus(&times(band, &Expr::from(self.group))?, row)?,
                    column: plus(&times(column, &Expr::from(self.beside))?, beside)?,
                    matrix: self.batch.is_some().then(|| matrix.clone()),
                    split: (self.splits > 1 && self.some.is_none()).then(|| split.clone()),
                })
            }
            None => self.place(number),
        }
    }

    /// The steps of a part of the work.
    fn ranged(&self, place: Place, last: Option<Expr>) -> Result<Unit, KernelError> {
        let Place { row, column, matrix, split } = place;
        let (first, steps) = match &split {
            None => (Expr::from(0), self.steps.clone()),
            Some(split) => {
                // Ranges differ by one step at most, and none is empty where there are as many
                // steps.
                let begin = |number: &Expr| {
                    times(number, &self.steps)?.floor_div(&Expr::from(self.splits)).ok_or_else(overflow)
                };
                let first = begin(split)?;
                let end = begin(&plus(split, &Expr::from(1))?)?;
                let steps = end.minus(&first).ok_or_else(overflow)?;
                (first, steps)
            }
        };
        Ok(Unit { first, split, last, ..Unit::of(Place { row, column, matrix, split: None }, steps, None) })
    }

    /// The extents of the coordinates of a part, where they are known: the tile in its cluster,
    /// that in its group, the column, the group, the matrix, the range of steps.
    fn shape(&self) -> Option<[i64; 6]> {
        let batch = self.batch.as_ref().map_or(Some(1), Extent::known)?;
        Some([
            self.beside,
            self.group,
            self.across.known()?,
            self.bands.known()?,
            batch,
            if self.some.is_some() { 1 } else { self.splits },
        ])
    }

    /// The place of a part by quotients of numbers known at launch.
    fn place(&self, number: Expr) -> Result<Place, KernelError> {
        let tiles = self.tiles()?;
        let many = self.batch.as_ref().map_or(Ok(tiles.clone()), |batch| times(&tiles, batch))?;
        let parted = |number: Expr, by: &Expr, several: bool| {
            if several { quotient(&number, by).map(|(part, rest)| (Some(part), rest)) } else { Ok((None, number)) }
        };
        let (split, number) = parted(number, &many, self.splits > 1)?;
        let (matrix, number) = parted(number, &tiles, self.batch.is_some())?;
        let (band, inside) = quotient(&number, &times(&self.across, &Expr::from(self.group * self.beside))?)?;
        let (clusters, beside) = quotient(&inside, &Expr::from(self.beside))?;
        let (column, row) = quotient(&clusters, &Expr::from(self.group))?;
        let column = plus(&times(&column, &Expr::from(self.beside))?, &beside)?;
        Ok(Place { row: plus(&times(&band, &Expr::from(self.group))?, &row)?, column, matrix, split })
    }
}

/// Where a part of the work is.
pub(super) struct Place {
    pub(super) row: Expr,
    pub(super) column: Expr,
    pub(super) matrix: Option<Expr>,
    pub(super) split: Option<Expr>,
}

pub(super) fn overflow() -> KernelError {
    LayoutError::Overflow { op: "product" }.into()
}

/// Quotient and remainder.
fn quotient(number: &Expr, by: &Expr) -> Result<(Expr, Expr), KernelError> {
    let quotient = number.floor_div(by).ok_or_else(overflow)?;
    let rest = number.minus(&times(&quotient, by)?).ok_or_else(overflow)?;
    Ok((quotient, rest))
}

pub(super) fn plus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::plus(a, b).ok_or_else(overflow)
}

pub(super) fn times(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    Stride::times(a, b).ok_or_else(overflow)
}

pub(super) fn minus(a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
    a.minus(b).ok_or_else(overflow)
}
