//! Steps 5 to 7: thread-value layouts, from one instruction to the tile.

use super::memory::{BANK_BYTES, BANKS, ELEMENT};
use super::{Stop, Tour, everywhere, owned};
use crate::picture::{Axis, Paint, Picture, Window, grid};
use tilewright::explain::map::Map;

pub const LANES: i64 = 32;
pub const THREADS: i64 = 128;

/// The thread and value that own each cell of a tile of `rows` rows, found by evaluating the layout
/// everywhere.
fn owners(map: &Map, threads: i64, rows: i64, columns: i64) -> Result<Vec<Option<(i64, i64)>>, Stop> {
    let mut cells = vec![None; usize::try_from(rows * columns)?];
    for index in 0..map.size() {
        if let Some(cell) = cells.get_mut(usize::try_from(map.at(index)?)?) {
            // If several threads hold a cell, the first is shown.
            cell.get_or_insert((index % threads, index / threads));
        }
    }
    Ok(cells)
}

/// A grid of `thread:value`, coloured by thread; `across` draws mode 0 to the right.
fn owner_picture(map: &Map, rows: i64, columns: i64, across: bool) -> Result<Picture, Stop> {
    let cells = owners(map, LANES, rows, columns)?;
    let (height, width) = if across { (columns, rows) } else { (rows, columns) };
    Ok(grid(&Axis::flat(height), &Axis::flat(width), Window::ALL, |down, right| {
        let cell = if across { right + rows * down } else { down + rows * right };
        match usize::try_from(cell).ok().and_then(|cell| cells.get(cell).copied().flatten()) {
            Some((thread, value)) => (format!("{thread}:{value}"), Paint::Hue(thread)),
            None => (String::new(), Paint::Plain),
        }
    }))
}

pub fn instruction(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "The instruction mma.m16n8k16 multiplies a 16x16 piece of A with an 8x16 piece of B (n by k) into a 16x8 piece of C, \
         spread over the registers of the 32 lanes of a warp. The hardware decides which lane holds what; these layouts say \
         it: (lane, value) to the place in the piece, first mode fastest.",
    );
    let a = tour.layout("fA", "((4,8),(2,2,2)):((32,1),(16,8,128))")?;
    let b = tour.layout("fB", "((4,8),(2,2)):((16,1),(8,64))")?;
    let c = tour.layout("fC", "((4,8),(2,2)):((32,1),(16,8))")?;
    tour.blank();
    tour.picture(
        &owner_picture(&a, 16, 16, false)?.captioned("A, m downward, k to the right; each cell is lane:value"),
    );
    tour.blank();
    let left = owner_picture(&c, 16, 8, false)?.captioned("C, m downward, n to the right");
    let right = owner_picture(&b, 8, 16, true)?.captioned("B, k downward, n to the right");
    tour.picture(&left.beside(3, right));
    tour.check("each element of the piece of A is in one register of one lane", a.size(), owned(&a, 256, 1));
    tour.check("each element of the piece of B is in one register of one lane", b.size(), owned(&b, 128, 1));
    tour.check("each element of the piece of C is in one register of one lane", c.size(), owned(&c, 128, 1));
    Ok(())
}

pub fn accumulators(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "Four warps share the tile, two along m and two along n. Divide the tile into pieces of 16x8, read each piece through \
         the instruction's layout, then deal the 8x16 pieces to 2x2 warps. What is left over is what each thread holds.",
    );
    tour.layout("tile", "(128,128):(1,128)")?;
    tour.layout("pieces", "zipped_divide(tile, [16:1;8:1])")?;
    tour.layout("held", "composition(pieces, [fC;_])")?;
    tour.layout("deal", "zipped_divide(held[1], [2:1;2:1])")?;
    let owner =
        tour.layout("ownC", "make_layout(make_layout(held[0][0], deal[0]), make_layout(held[0][1], deal[1]))")?;
    tour.blank();
    tour.say("The modes are ((lane, warp), (value, piece)), and the offset m + 128 n names the element.");

    let cells = owners(&owner, THREADS, 128, 128)?;
    let at = |m: i64, n: i64| usize::try_from(m + 128 * n).ok().and_then(|cell| cells.get(cell).copied().flatten());
    let warps = grid(&Axis::flat(8), &Axis::flat(16), Window::ALL, |i, j| match at(16 * i, 8 * j) {
        Some((thread, _)) => ((thread / LANES).to_string(), Paint::Hue(thread / LANES)),
        None => ("?".to_owned(), Paint::Bad),
    });
    let corner = grid(&Axis::flat(8), &Axis::flat(4), Window::ALL, |m, n| match at(m, n) {
        Some((thread, value)) => (format!("{thread}:{value}"), Paint::Hue(thread)),
        None => ("?".to_owned(), Paint::Bad),
    });
    let left = warps.captioned("the warp that owns each 16x8 piece");
    tour.picture(&left.beside(6, corner.captioned("the first 8x4 elements, thread:value")));
    tour.check("each element of the tile is in one register of one thread", owner.size(), owned(&owner, 128 * 128, 1));
    let pieces = everywhere(128 * 128, |cell| {
        let (m, n) = (cell % 128, cell / 128);
        Ok(at(m, n).map(|own| own.0 / LANES) == at(m / 16 * 16, n / 8 * 8).map(|own| own.0 / LANES))
    });
    tour.check("each 16x8 piece belongs to one warp, as the instruction needs", 128 * 128, pieces);

    tour.blank();
    tour.say("After C's own tile, block (1,2), this is where each thread stores its results in memory.");
    let block = tour.layout("gC", "zipped_divide(C, [128:1;128:1])(_,(1,2))[0]")?;
    let store = tour.layout("storeC", "gC o ownC")?;
    let law = everywhere(owner.size(), |index| Ok(store.at(index)? == block.at(owner.at(index)?)?));
    tour.check("storeC(t,v) = gC(ownC(t,v))", owner.size(), law);
    Ok(())
}

pub fn operands(tour: &mut Tour) -> Result<(), Stop> {
    tour.say(
        "The tiles of A and B are partitioned the same way. Warps that differ only along n need the same rows of A, so for A \
         that mode has stride 0; for B it is the mode along m.",
    );
    tour.layout("piecesA", "zipped_divide((128,64), [16:1;16:1])")?;
    tour.layout("heldA", "composition(piecesA, [fA;_])")?;
    tour.layout("dealA", "zipped_divide(heldA[1], [2:1;1:0])")?;
    let a = tour.layout(
        "ownA",
        "make_layout(make_layout(heldA[0][0], dealA[0][0], 2:0), make_layout(heldA[0][1], dealA[1]))",
    )?;
    tour.blank();
    tour.layout("piecesB", "zipped_divide((128,64), [8:1;16:1])")?;
    tour.layout("heldB", "composition(piecesB, [fB;_])")?;
    tour.layout("dealB", "zipped_divide(heldB[1], [2:1;1:0])")?;
    let b = tour.layout(
        "ownB",
        "make_layout(make_layout(heldB[0][0], 2:0, dealB[0][0]), make_layout(heldB[0][1], dealB[1]))",
    )?;
    tour.blank();
    tour.check("each element of the block of A is held by exactly 2 threads", a.size(), owned(&a, 128 * 64, 2));
    tour.check("each element of the block of B is held by exactly 2 threads", b.size(), owned(&b, 128 * 64, 2));
    tour.blank();
    tour.say(
        "Composed with the layout of the shared block: the address that each thread reads for each of its values.",
    );
    let plain = tour.layout("plainA", "plain o ownA")?;
    let load = tour.layout("loadA", "sA o ownA")?;
    let shared = tour.map("sA")?;
    tour.blank();
    let law = everywhere(a.size(), |index| Ok(load.at(index)? == shared.at(a.at(index)?)?));
    tour.check("loadA(t,v) = sA(ownA(t,v))", a.size(), law);
    let ((before, tested), (after, again)) = (deepest(&plain)?, deepest(&load)?);
    tour.blank();
    tour.say(&format!(
        "When the 32 lanes of a warp load a pair of halves each, the busiest bank serves {before} words from the plain block, \
         and {after} from the swizzled."
    ));
    let outcome = if before == 8 && after == 1 { Ok(()) } else { Err(format!("{before} and {after}")) };
    tour.check("no two lanes of a warp meet in a bank of the swizzled block", tested + again, outcome);
    Ok(())
}

/// The largest number of words that one bank must serve when each lane of a warp loads a pair of
/// values, and the number of indices at which the layout was evaluated.
fn deepest(load: &Map) -> Result<(usize, i64), Stop> {
    let (mut most, mut tested) = (0, 0);
    for warp in 0..THREADS / LANES {
        for pair in 0..load.size() / THREADS / 2 {
            let mut words = Vec::new();
            for lane in 0..LANES {
                let at = |value: i64| load.at(lane + LANES * warp + THREADS * value);
                let (first, second) = (at(2 * pair)?, at(2 * pair + 1)?);
                if second != first + 1 || first % 2 != 0 {
                    return Err(Stop(format!("values {} and {} are not a pair of neighbours", 2 * pair, 2 * pair + 1)));
                }
                words.push(first * ELEMENT / BANK_BYTES);
            }
            tested += 2 * LANES;
            // Lanes that read the same word share one access.
            words.sort_unstable();
            words.dedup();
            let depth = |bank: i64| words.iter().filter(|word| **word % BANKS == bank).count();
            most = most.max((0..BANKS).map(depth).max().unwrap_or(0));
        }
    }
    Ok((most, tested))
}
