//! Pictures of instructions: which thread holds which elements.

use crate::{self as draw, DrawError, Figure, Map, Style};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom};
use tilewright_layout::{Layout, Refusal, Tree};

/// The operands of a matrix instruction.
pub fn of_mma(atom: &MmaAtom, style: Style) -> Result<Figure<'static>, DrawError> {
    let [a, b, c] = [atom.a(), atom.b(), atom.c()].map(|operand| Map::from(operand.layout()));
    Ok(draw::mma([&a, &b, &c], atom.shape(), style)?.titled(atom.name()))
}

/// The source and destination of a copy instruction, for elements of `bits` bits, in rows of 128
/// bits if it has that many.
///
/// Errors: the instruction copies no elements of that width.
pub fn of_copy(atom: &CopyAtom, bits: i64, style: Style) -> Result<Figure<'static>, Box<dyn Refusal>> {
    let places = (atom.bits() / bits.max(1)).max(1);
    let across = (128 / bits.max(1)).clamp(1, places);
    let down = places / across;
    // The values of an atom count along a row, but the first mode of a tile is downward.
    let flat = |numbers: [i64; 2]| Tree::flat(numbers).map_err(refused);
    let turned = Layout::new(&flat([across, down])?, &flat([down, 1])?).map_err(refused)?;
    let side = |end: CopyEnd| -> Result<Map, Box<dyn Refusal>> {
        let values = atom.values(end, bits).map_err(refused)?;
        Ok(Map::from(&turned.compose(&values).map_err(refused)?))
    };
    let (source, target) = (side(CopyEnd::Source)?, side(CopyEnd::Destination)?);
    Ok(draw::copy(&source, &target, &flat([down, across])?, style).map_err(refused)?.titled(atom.name()))
}

fn refused(error: impl Refusal + 'static) -> Box<dyn Refusal> {
    Box::new(error)
}
