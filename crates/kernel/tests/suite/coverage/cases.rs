//! Tiles whose numbers are cut into ranges, each with an order of its own.
//!
//! Tiles side by side come first, and those of the last column after all of them: flags, whose
//! products pick one of two places, say which it is.

use super::*;

/// The defect of such tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    /// The last column is another one: one that there is, or one behind a gap.
    Before,
    Behind,
    /// Its rows are those of the other order, or begin with the second one.
    Rows,
    Late,
    /// The first range ends a tile too early or too late.
    Early,
    Longer,
    /// The flags are the wrong way round.
    Exchanged,
    /// The last range is left out, or the last of its tiles.
    Never,
    Last,
    /// A row is held below a lower limit than it has.
    Limit,
    /// In a tensor of as many tiles as there are then: the last column is the one before it, or the
    /// first one; a column is left out before it, or before all; or it goes on below the others.
    Inside,
    Onto,
    Apart,
    Shifted,
    Corner,
}

const ALL: [Wrong; 15] = [
    Wrong::Before,
    Wrong::Behind,
    Wrong::Rows,
    Wrong::Late,
    Wrong::Early,
    Wrong::Longer,
    Wrong::Exchanged,
    Wrong::Never,
    Wrong::Last,
    Wrong::Limit,
    Wrong::Inside,
    Wrong::Onto,
    Wrong::Apart,
    Wrong::Shifted,
    Wrong::Corner,
];

/// Tiles of 8 x 2 along the rows, in groups of some, and pairs of columns of them beside each
/// other; matrices, and blocks that take them in turn.
#[derive(Debug, Clone, Copy)]
struct Tiles {
    along: i64,
    group: i64,
    pairs: i64,
    matrices: i64,
    blocks: i64,
}

impl Tiles {
    fn layout(&self, wrong: Option<Wrong>) -> String {
        let rows = if wrong == Some(Wrong::Corner) { 2 * self.along } else { self.along };
        let columns = match wrong {
            Some(Wrong::Inside | Wrong::Onto | Wrong::Corner) => 2 * self.pairs,
            Some(Wrong::Apart | Wrong::Shifted) => 2 * self.pairs + 2,
            _ => 2 * self.pairs + 1,
        };
        // The last tiles are not whole.
        let (m, n) = (8 * rows - 3, 2 * columns - 1);
        format!("({m},{n},{}):({n},1,{})", self.matrices, m * n)
    }

    fn write(&self, k: &Build, y: &View<'_>, wrong: Option<Wrong>) -> Result<(), KernelError> {
        let is = |own: Wrong| wrong == Some(own);
        let Tiles { along, group, pairs, matrices, blocks } = *self;
        let before = along * 2 * pairs;
        let all = if is(Wrong::Never) { before } else { before + along - i64::from(is(Wrong::Last)) };
        k.threads(8)?;
        k.grid(Axis::X, blocks)?;
        let block = k.block_number(Axis::X);
        let left = Expr::from(all * matrices).minus(&block).unwrap();
        k.range(left.divide_up(&blocks.into()).unwrap(), |iteration| {
            let number = sum(&[(blocks, &iteration), (1, &block)]);
            let [inside, matrix] = &k.coordinate(&number, &[all, matrices])?[..] else { unreachable!() };
            let bound = before - i64::from(is(Wrong::Early)) + i64::from(is(Wrong::Longer));
            let [rest, above] = &k.coordinate(inside, &[bound, 2])?[..] else { unreachable!() };
            let beside = sum(&[(1, &1.into()), (-1, above)]);
            let [first, second] = if is(Wrong::Exchanged) { [above, &beside] } else { [&beside, above] };
            let either = |a: &Expr, b: &Expr, most: i64| {
                let [a, b] = [Stride::times(a, first).unwrap(), Stride::times(b, second).unwrap()];
                k.index_up_to(k.index(&sum(&[(1, &a), (1, &b)]))?, most)
            };
            let digits = k.coordinate(rest, &[2, group, pairs, along / group])?;
            let [side, row, pair, band] = &digits[..] else { unreachable!() };
            let (row, column) = (sum(&[(group, band), (1, row)]), sum(&[(2, pair), (1, side)]));
            let last = match wrong {
                Some(Wrong::Before | Wrong::Inside | Wrong::Corner) => 2 * pairs - 1,
                Some(Wrong::Behind | Wrong::Apart | Wrong::Shifted) => 2 * pairs + 1,
                Some(Wrong::Onto) => 0,
                _ => 2 * pairs,
            };
            let column = sum(&[(1, &column), (1, &i64::from(is(Wrong::Shifted)).into())]);
            let (of_last, most) = match wrong {
                Some(Wrong::Rows) => (row.clone(), along - 1),
                Some(Wrong::Late) => (sum(&[(1, rest), (1, &1.into())]), along),
                Some(Wrong::Corner) => (sum(&[(1, rest), (1, &along.into())]), 2 * along - 1),
                Some(Wrong::Limit) => (rest.clone(), along - 2),
                _ => (rest.clone(), along - 1),
            };
            let (row, column) =
                (either(&row, &of_last, most)?, either(&column, &last.into(), last.max(2 * pairs - 1))?);
            let from = [sum(&[(8, &row)]), sum(&[(2, &column)]), matrix.clone()];
            let tile = y.domain_offset(&from)?.local_tile((8, 2, 1), at(&[0, 0, 0].map(|at| Some(at.into()))))?;
            let own = tile.slice(at(&[Some(k.thread()?), None, Some(0.into())]))?;
            stored(&own, k.number(VALUE))
        })
    }

    fn of(&self, wrong: Option<Wrong>) -> (Result<Written, KernelError>, Option<Happened>) {
        let built = |role| {
            Kernel::build("tiles", |k| {
                let y = k.tensor_of(Element::F32, "y", &self.layout(wrong), role)?;
                // A kernel that has sizes is not listed store by store.
                k.input::<f32>("x", "N:1")?;
                self.write(k, &y, wrong)
            })
        };
        let shown = built(Role::Output).map(|kernel| kernel.outputs()[0].written.clone());
        (shown, happened(&built(Role::Both).unwrap(), &[("N", 1)]))
    }
}

#[test]
fn tiles_in_two_orders_are_shown_but_for_their_defects() {
    let tiles = |[along, group, pairs, matrices, blocks]: [i64; 5]| Tiles { along, group, pairs, matrices, blocks };
    for numbers in
        [[4, 2, 1, 1, 4], [4, 2, 1, 1, 12], [6, 2, 2, 1, 4], [4, 4, 3, 3, 6], [8, 2, 2, 2, 4], [2, 1, 1, 5, 8]]
    {
        let tiles = tiles(numbers);
        let (shown, happened) = tiles.of(None);
        assert_eq!((shown.unwrap(), happened), (Written::Once, Some(Happened::Once)), "{tiles:?}");
        for wrong in ALL {
            let (shown, happened) = tiles.of(Some(wrong));
            let breaks = happened.is_some_and(|happened| happened != Happened::Once);
            let once = shown.is_ok_and(|written| written == Written::Once);
            assert!(!once, "{tiles:?}: {wrong:?}");
            assert!(breaks, "{tiles:?}: {wrong:?}");
        }
    }
}
