//! Steps 1 to 4: from the matrices in global memory to a block in shared memory.

use super::{Stop, Tour, everywhere, owned};
use crate::picture::{Axis, Paint, Picture, Window, grid};
use tilewright::explain::map::Map;

/// The space for one picture of the tour.
const WINDOW: Window = Window { columns: 96, rows: 8 };

/// The bytes of a half-precision number.
pub const ELEMENT: i64 = 2;

/// Shared memory has 32 banks of 4 bytes. A 16-byte access touches 4 of them at once, so there are
/// 8 groups.
pub const BANKS: i64 = 32;
pub const BANK_BYTES: i64 = 4;
const PIECE: i64 = 16;
const GROUPS: i64 = BANKS * BANK_BYTES / PIECE;

/// Draws the offsets of a map of rank 2.
fn offsets(map: &Map, rows: i64, columns: i64) -> Picture {
    grid(&Axis::flat(rows), &Axis::flat(columns), WINDOW, |i, j| match map.at(i + rows * j) {
        Ok(offset) => (offset.to_string(), Paint::Grey(offset)),
        Err(_) => ("?".to_owned(), Paint::Bad),
    })
}

pub fn matrices(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "A layout is a shape and strides. A lies row after row: one step down is 256 elements further, one step to the \
         right is 1. B is stored as N x K, so that K is contiguous in both, which is what tensor cores read.",
    );
    let a = tour.layout("A", "(512,256):(256,1)")?;
    tour.layout("B", "(512,256):(256,1)")?;
    let c = tour.layout("C", "(512,512):(512,1)")?;
    tour.blank();
    let picture = offsets(&a, 512, 256).captioned("the offset of A(m,k), with m downward and k to the right");
    tour.picture(&picture);
    tour.check("A places its elements on the offsets 0 to 131,071, one on each", a.size(), owned(&a, a.size(), 1));
    tour.check("C places its elements on the offsets 0 to 262,143, one on each", c.size(), owned(&c, c.size(), 1));
    Ok(())
}

pub fn blocks(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "A tiler names a tile along each mode: 128 consecutive rows and 64 consecutive columns. Dividing A by it sorts the \
         coordinates into ((inside a tile), (which tile)).",
    );
    let a = tour.map("A")?;
    let blocks = tour.layout("blocks", "zipped_divide(A, [128:1;64:1])")?;
    tour.blank();
    let tile = 128 * 64;
    let picture = grid(&Axis::flat(4), &Axis::flat(4), WINDOW, |r, c| match blocks.at(tile * (r + 4 * c)) {
        Ok(offset) => (offset.to_string(), Paint::Hue(r + c)),
        Err(_) => ("?".to_owned(), Paint::Bad),
    });
    tour.picture(&picture.captioned("the offset at which each of the 4x4 blocks of A starts"));
    let outcome = everywhere(blocks.size(), |index| {
        let (i, j) = (index % 128, index / 128 % 64);
        let (r, c) = (index / tile % 4, index / tile / 4);
        Ok(blocks.at(index)? == a.at((128 * r + i) + 512 * (64 * c + j))?)
    });
    tour.check("element (i,j) of block (r,c) is A(128r+i, 64c+j)", blocks.size(), outcome);
    Ok(())
}

pub fn one_block(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "The underscore keeps a mode whole: fix which block, and the layout of one block is left. Its first element gives the \
         offset at which it starts. Here block (1,2): rows 128 to 255, columns 128 to 191.",
    );
    let block = tour.layout("gA", "blocks(_,(1,2))[0]")?;
    let start = tour.number("blocks(0,(1,2))")?;
    tour.blank();
    let picture = grid(&Axis::flat(128), &Axis::flat(64), WINDOW, |i, j| match block.at(i + 128 * j) {
        Ok(offset) => ((start + offset).to_string(), Paint::Grey(offset)),
        Err(_) => ("?".to_owned(), Paint::Bad),
    });
    tour.picture(&picture.captioned("where the elements of this block lie in A"));
    let outcome = everywhere(block.size(), |index| {
        let (i, j) = (index % 128, index / 128);
        Ok(start + block.at(index)? == 256 * (128 + i) + (128 + j))
    });
    tour.check("the slice, moved by its offset, is rows 128.. and columns 128.. of A", block.size(), outcome);
    Ok(())
}

pub fn shared(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "The block is copied to shared memory. In the plain layout a row is 64 halves, 128 bytes: exactly once round the 32 \
         banks of 4 bytes. Eight lanes that load the same 16-byte piece of eight rows (one 8x8 matrix of ldmatrix) then all \
         want the same 4 banks, and wait for each other.",
    );
    let plain = tour.layout("plain", "(128,64):(64,1)")?;
    tour.blank();
    tour.say(
        "A swizzle S<b,m,s> flips b bits of the offset, from bit m on, by the b bits that are s places above. S<3,3,3> counts \
         in elements: it keeps pieces of 8 halves (16 bytes) whole and flips the number of the piece, bits 3 to 5, by the \
         number of the row, bits 6 to 8. An atom of 8 rows is repeated to the whole block.",
    );
    tour.define("atom", "S<3,3,3> o 0 o (8,64):(64,1)")?;
    let swizzled = tour.layout("sA", "tile_to_shape(atom, (128,64))")?;
    tour.blank();

    let (without, with) = (group_picture(&plain), group_picture(&swizzled));
    let ((before, tested), (after, again)) = (worst(&plain)?, worst(&swizzled)?);
    let left = without.captioned(&format!("plain: up to {before} rows in one bank group"));
    let right = with.captioned(&format!("swizzled: up to {after} row in one bank group"));
    tour.line("  The bank group (0 to 7, 16 bytes each) of each 16-byte piece; rows downward, pieces to the right:");
    tour.blank();
    tour.picture(&left.beside(6, right));
    tour.check("each offset of the block is used once, swizzled too", swizzled.size(), owned(&swizzled, 128 * 64, 1));
    let whole = everywhere(swizzled.size(), |index| {
        let (row, column) = (index % 128, index / 128);
        let first = swizzled.at(row + 128 * (column / 8 * 8))?;
        Ok(first % 8 == 0 && swizzled.at(index)? == first + column % 8)
    });
    tour.check("each piece of 8 halves stays whole and aligned to 16 bytes", swizzled.size(), whole);
    let outcome = if before == 8 && after == 1 { Ok(()) } else { Err(format!("{before} and {after}")) };
    tour.check("eight rows meet 8 deep in the plain layout and never in the swizzled", tested + again, outcome);
    tour.blank();
    tour.say(
        "The unit matters. On byte offsets, two for each half, the same permutation is S<3,4,3>, the name that the 128-byte \
         swizzle of the hardware goes by.",
    );
    let bytes = tour.layout("bytes", "S<3,4,3> o 0 o 16384:1")?;
    let unit =
        everywhere(swizzled.size(), |index| Ok(bytes.at(ELEMENT * plain.at(index)?)? == ELEMENT * swizzled.at(index)?));
    tour.check("bytes(2 plain(i)) = 2 sA(i)", swizzled.size(), unit);
    Ok(())
}

/// The bank group of the 16-byte piece at (row, piece).
fn group(map: &Map, row: i64, piece: i64) -> Result<i64, Stop> {
    let offset = map.at(row + 128 * (piece * PIECE / ELEMENT))?;
    Ok(offset * ELEMENT / PIECE % GROUPS)
}

/// The bank groups of the first eight rows.
fn group_picture(map: &Map) -> Picture {
    grid(&Axis::flat(8), &Axis::flat(8), WINDOW, |row, piece| match group(map, row, piece) {
        Ok(group) => (group.to_string(), Paint::Hue(group)),
        Err(_) => ("?".to_owned(), Paint::Bad),
    })
}

/// The largest number of lanes that access one bank group when eight lanes load the same piece of
/// eight consecutive rows, and the number of indices at which the layout was evaluated.
fn worst(map: &Map) -> Result<(usize, i64), Stop> {
    let (mut most, mut tested) = (0, 0);
    for rows in 0..16 {
        for piece in 0..8 {
            let groups: Vec<i64> = (0..8).map(|row| group(map, 8 * rows + row, piece)).collect::<Result<_, _>>()?;
            let depth = |wanted: i64| groups.iter().filter(|group| **group == wanted).count();
            most = most.max((0..GROUPS).map(depth).max().unwrap_or(0));
            tested += 8;
        }
    }
    Ok((most, tested))
}
