//! Tiles whose number is cut into quotients by sizes: shown where they are right, and not where
//! something is wrong with them.

use super::*;

/// The defect of tiles that are found by quotients of sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    /// Tiles overlap, or leave rows out between them.
    Overlap,
    Gap,
    /// The last tile is left out; blocks have other numbers of iterations.
    Last,
    Half,
    /// The number of a tile has a digit more, which no coordinate has.
    Again,
    /// The row is found by another divisor than the column.
    Apart,
    /// The row is that of the iteration.
    Iteration,
    /// All groups of threads have the tiles of the first one, or an iteration less than it.
    Share,
    Fewer,
}

/// Tiles of 8 x 2 by three blocks in turn, along the columns first; this many groups of eight
/// threads take the tiles of a block in turn.
fn tiles(k: &Build, y: &View<'_>, groups: i64, defect: Option<Defect>) -> Result<(), KernelError> {
    let is = |own: Defect| defect == Some(own);
    k.threads(8 * groups)?;
    k.grid(Axis::X, 3)?;
    let (block, across, tall) = (k.block_number(Axis::X), k.size("ceil(N/2)")?, k.size("ceil(M/8)")?);
    let units = Stride::times(&across, &tall).unwrap();
    let units = sum(&[(if is(Defect::Again) { 2 } else { 1 }, &units), (-i64::from(is(Defect::Last)), &1.into())]);
    let (before, of) = if is(Defect::Half) { (4, 6 * groups) } else { (1, 3 * groups) };
    let own = k.coordinate(&k.thread()?, &[8, groups])?;
    let group = |number: i64| {
        let fewer = if is(Defect::Fewer) && number > 0 { of } else { 0 };
        let left = sum(&[(1, &units), (-before, &block), (-1, &(3 * number + fewer).into())]);
        k.range(left.divide_up(&of.into()).unwrap(), |iteration| {
            let number = if is(Defect::Share) { 0 } else { number };
            let number = sum(&[(3 * groups, &iteration), (1, &block), (3, &number.into())]);
            let [row, column] = parted(&number, &across);
            let row = match defect {
                Some(Defect::Again) => parted(&row, &2.into())[0].clone(),
                Some(Defect::Apart) => parted(&number, &tall)[1].clone(),
                Some(Defect::Iteration) => iteration,
                _ => row,
            };
            let apart = if is(Defect::Overlap) { 4 } else { 8 + 4 * i64::from(is(Defect::Gap)) };
            let from = [sum(&[(apart, &row)]), sum(&[(2, &column)])];
            let tile = y.domain_offset(&from)?.local_tile((8, 2), at(&[Some(0.into()), Some(0.into())]))?;
            stored(&tile.slice(at(&[Some(own[0].clone()), None]))?, k.number(VALUE))
        })
    };
    if groups == 1 {
        return group(0);
    }
    let mine = k.index(&own[1])?;
    (0..groups).try_for_each(|number| k.when(mine.eq(k.number(number as i32)), || group(number)))
}

#[test]
fn tiles_by_quotients_of_sizes_are_shown_but_for_their_defects() {
    use Defect::{Again, Apart, Fewer, Gap, Half, Iteration, Last, Overlap, Share};
    for layout in ["(M,N):(N,1)", "(M{div=8},N{div=4}):(1,M)", "(M{min=20},N{min=4}):(N,1)"] {
        for groups in [1, 2, 3] {
            let of = |defect: Option<Defect>| shown_and_happened(layout, |k, y| tiles(k, y, groups, defect));
            assert_eq!(of(None), (true, Some(Happened::Once)), "{layout} by {groups}");
            let defects = [Overlap, Gap, Last, Half, Again, Apart, Iteration, Share, Fewer];
            for defect in defects.into_iter().take(if groups > 1 { 9 } else { 7 }) {
                let (shown, happened) = of(Some(defect));
                let wrong = happened.is_some_and(|happened| happened != Happened::Once);
                assert!(!shown && wrong, "{layout} by {groups}: {defect:?}");
            }
        }
    }
}

/// Blocks that take tiles of some columns in turn, of as many as the columns need: how many
/// iterations a block has is one quotient of two.
#[test]
fn iterations_that_are_a_quotient_of_a_quotient_are_shown() {
    for (columns, blocks) in [(2, 2), (3, 2), (4, 8), (5, 3), (1, 7)] {
        for (more, apart) in [(0, columns), (1, columns), (-1, columns), (0, columns + 1), (0, columns - 1)] {
            let (shown, happened) = shown_and_happened("(8,N{min=10}):(1,8)", |k, y| {
                k.threads(8)?;
                k.grid(Axis::X, blocks)?;
                let (block, units) = (k.block_number(Axis::X), k.size(&format!("ceil(N/{columns})"))?);
                let left = sum(&[(1, &units), (1, &more.into()), (-1, &block)]);
                k.range(left.divide_up(&blocks.into()).unwrap(), |iteration| {
                    let column = sum(&[(blocks * apart, &iteration), (apart, &block)]);
                    stored_at(k, y, [0.into(), column], &format!("(8,{columns})"))
                })
            });
            // One tile more lies outside, and is not written.
            let right = apart == columns && more >= 0;
            assert_eq!(happened == Some(Happened::Once), right, "{columns} {blocks} {more} {apart}");
            assert_eq!(shown, right, "{columns} {blocks} {more} {apart}");
        }
    }
}

#[test]
fn what_is_no_digit_of_a_number_shows_nothing() {
    // Quotients by 3 and remainders by 2 do not tell a number.
    let uneven = |k: &Build, y: &View<'_>| {
        k.threads(8)?;
        k.grid(Axis::X, 5)?;
        let (block, units) = (k.block_number(Axis::X), k.size("3*ceil(M/2)")?);
        k.range(units.minus(&block).unwrap().divide_up(&5.into()).unwrap(), |iteration| {
            let number = sum(&[(5, &iteration), (1, &block)]);
            let [row, column] = [&parted(&number, &2.into())[1], &parted(&number, &3.into())[0]];
            stored_at(k, y, [sum(&[(8, row)]), sum(&[(2, column)])], "(8,2)")
        })
    };
    assert_eq!(shown_and_happened("(16,M):(1,16)", uneven), (false, Some(Happened::Twice)));
    // An iteration is no digit of the number that blocks have in it.
    let by_iteration = |k: &Build, y: &View<'_>| {
        k.threads(8)?;
        k.grid(Axis::X, 3)?;
        let (block, units) = (k.block_number(Axis::X), k.size("N")?);
        k.range(units.minus(&block).unwrap().divide_up(&3.into()).unwrap(), |iteration| {
            stored_at(k, y, [sum(&[(8, &iteration)]), sum(&[(3, &iteration), (1, &block)])], "(8,1)")
        })
    };
    assert_eq!(shown_and_happened("(M{max=8},N{min=12}):(N,1)", by_iteration), (false, Some(Happened::Never)));
}
