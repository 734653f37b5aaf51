//! Kernels that are put together at random: stores at blocks, iterations, digits of threads and of
//! numbers that blocks have in turn, sometimes with something left out, twice or elsewhere.
//!
//! `KERNELS=20000 cargo test -p tilewright-kernel --test suite coverage` tries more of them.

use super::*;

/// Random numbers (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % count as u64) as usize
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// True once in this many times.
    fn seldom(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// How many kinds of kernels there are, and which one has tiles in turn.
const KINDS: usize = 6;
const IN_TURN: usize = 4;
const IN_LOOPS: usize = 5;

/// Tiles at blocks or iterations, rows of tiles at threads; sometimes with something left out.
fn tiled(k: &Build, y: &View<'_>, chance: &mut Chance) -> Result<(), KernelError> {
    let (rows, columns) = (chance.of(&[8_i64, 16, 32]), chance.of(&[1_i64, 2, 4]));
    let tile = format!("({rows},{columns})");
    k.threads(rows)?;
    let value = k.number(VALUE);
    match chance.below(6) {
        0 => stored(&y.local_tile(&tile, k.block("(x,y)")?)?.thread_part()?, value),
        1 => stored(&y.local_tile(&tile, k.block("(y,x)")?)?.thread_part()?, value),
        2 => stored(&y.local_tile(&tile, k.block("(x,0)")?)?.thread_part()?, value),
        3 => {
            // All columns, a tile an iteration; sometimes an iteration too few.
            let tiles = y.local_tile(&tile, k.block("(x,_)")?)?;
            let count = match chance.of(&[0, 0, 1]) {
                0 => k.size(&format!("ceil(N/{columns})"))?,
                _ => k.size(&format!("floor(N/{columns})"))?,
            };
            k.range(count, |iteration| stored(&tiles.slice(at(&[None, None, Some(iteration)]))?.thread_part()?, value))
        }
        4 => {
            // Under a condition of the thread.
            let limit = chance.of(&[1.0, 4.0, rows as f64]);
            let part = y.local_tile(&tile, k.block("(x,y)")?)?.thread_part()?;
            let thread = k.index(&k.thread()?)?;
            k.when(thread.lt(thread.like(limit)), || stored(&part, value))
        }
        _ => {
            // Groups of tiles: block x within a group, block z the group.
            let group = chance.of(&[1_i64, 2, 3]);
            k.grid(Axis::X, group)?;
            k.grid(Axis::Z, &format!("ceil(M/{})", rows * chance.of(&[group, group, 2])))?;
            let apart = chance.of(&[group, group, group, 1, 2]);
            let row = sum(&[(1, &k.block_number(Axis::X)), (apart, &k.block_number(Axis::Z))]);
            let tiles = y.local_tile(&tile, at(&[Some(row), None]))?;
            k.range(k.size(&format!("ceil(N/{columns})"))?, |iteration| {
                stored(&tiles.slice(at(&[None, None, Some(iteration)]))?.thread_part()?, value)
            })
        }
    }
}

/// Elements at the digits of a number made of block and thread.
fn numbered(k: &Build, y: &View<'_>, extents: [i64; 2], chance: &mut Chance) -> Result<(), KernelError> {
    let threads = chance.of(&[32_i64, 16, 64]);
    k.threads(threads)?;
    let all = extents[0] * extents[1];
    let blocks = (all + threads - 1) / threads;
    let blocks = if chance.seldom(2) { (blocks + chance.of(&[-1, 1])).max(1) } else { blocks };
    k.grid(Axis::X, blocks)?;
    let factor = if chance.seldom(5) { threads / 2 } else { threads };
    let number = sum(&[(factor, &k.block_number(Axis::X)), (1, &k.thread()?)]);
    // Sometimes a digit between that no coordinate has.
    let digits = match chance.seldom(6) {
        true => k.coordinate(&number, &[extents[0], 2, extents[1]])?,
        false => k.coordinate(&number, &extents)?,
    };
    let digits = [&digits[0], &digits[digits.len() - 1]];
    let column = if chance.seldom(6) { Expr::from(0) } else { digits[1].clone() };
    let row = if chance.seldom(6) { k.remainder(&number, (extents[0] - 1).max(1))? } else { digits[0].clone() };
    let one = y.local_tile((1, 1), at(&[Some(row), Some(column)]))?;
    stored(&one, k.number(VALUE))
}

/// Rows of a known tile at digits of the thread, values at others; sometimes one digit twice.
fn in_a_tile(k: &Build, y: &View<'_>, chance: &mut Chance) -> Result<(), KernelError> {
    let (a, b, step) = (chance.of(&[2_i64, 4]), chance.of(&[2_i64, 4]), chance.of(&[1_i64, 2]));
    // Sometimes two threads for each part, or two blocks.
    let again = chance.of(&[1_i64, 1, 1, 2]);
    if chance.seldom(5) {
        k.grid(Axis::Z, 2)?;
    }
    k.threads(a * b * again)?;
    let digits = k.coordinate(&k.thread()?, &[a, b, again])?;
    let second = if chance.seldom(4) { &digits[0] } else { &digits[1] };
    let tile = y.local_tile((a * step, 2 * b), k.block("(x,y)")?)?;
    // Values of a thread side by side, or as far apart as threads are many.
    let parts = if chance.seldom(2) {
        format!("[({a},{step}):({step},1);({b},2):(2,1)]")
    } else {
        format!("[({a},{step}):(1,{a});({b},2):(1,{b})]")
    };
    let mine = |digit: &Expr| at(&[Some(digit.clone()), None]);
    let coordinate = Tree::tuple([&mine(&digits[0]), &mine(second)])?;
    stored(&tile.compose(&parts)?.slice(coordinate)?, k.number(VALUE))
}

/// A tile as wide as the tensor, or wider, at an index that may be past that one tile.
fn single(k: &Build, y: &View<'_>, chance: &mut Chance) -> Result<(), KernelError> {
    let (rows, width) = (8, chance.of(&[5_i64, 8]));
    let tile = format!("({rows},{width})");
    let value = k.number(VALUE);
    let times = chance.of(&[1_i64, 1, 2, 3]);
    let block = Some(k.block_number(Axis::X));
    match chance.below(5) {
        0 => {
            // An iteration.
            k.threads(rows)?;
            k.range(times, |iteration| {
                stored(&y.local_tile(&tile, at(&[block.clone(), Some(iteration)]))?.thread_part()?, value)
            })
        }
        1 => {
            // An iteration, of tiles that are left.
            k.threads(rows)?;
            let tiles = y.local_tile(&tile, at(&[block, None]))?;
            k.range(times, |iteration| stored(&tiles.slice(at(&[None, None, Some(iteration)]))?.thread_part()?, value))
        }
        2 => {
            // A digit of the thread.
            k.threads(rows * times)?;
            let digits = k.coordinate(&k.thread()?, &[rows, times])?;
            let own = y.local_tile(&tile, at(&[block, Some(digits[1].clone())]))?;
            stored(&own.slice(at(&[Some(digits[0].clone()), None]))?, value)
        }
        3 => {
            // A number; sometimes twice.
            k.threads(rows)?;
            let column = Expr::from(chance.of(&[0_i64, 0, 1]));
            stored(&y.local_tile(&tile, at(&[block.clone(), Some(column)]))?.thread_part()?, value)?;
            match times {
                1 => Ok(()),
                _ => stored(&y.local_tile(&tile, at(&[block, Some(Expr::from(1))]))?.thread_part()?, value),
            }
        }
        _ => {
            // A tile of a tile.
            k.threads(rows)?;
            let own = y.local_tile(&tile, at(&[block, Some(Expr::from(0))]))?;
            k.range(times, |iteration| {
                let part = own.local_tile((rows, 8), at(&[Some(Expr::from(0)), Some(iteration)]))?;
                stored(&part.thread_part()?, value)
            })
        }
    }
}

/// Tiles whose number blocks have in turns, or that of a block or an iteration, found by quotients
/// of sizes: some along the rows, then along the columns, then the next band of rows. Sometimes
/// bands overlap or have gaps, the last tiles are left out, or a tile is another one's again.
fn in_turn(k: &Build, y: &View<'_>, chance: &mut Chance) -> Result<(), KernelError> {
    let (rows, columns, group) = (chance.of(&[4_i64, 8]), chance.of(&[1_i64, 2, 4]), chance.of(&[1_i64, 2, 3]));
    let blocks = chance.of(&[1_i64, 2, 3, 5]);
    k.threads(rows)?;
    let across = k.size(&format!("ceil(N/{})", columns * if chance.seldom(8) { 2 } else { 1 }))?;
    let tall = rows * if chance.seldom(8) { group + 1 } else { group };
    let (of_band, bands) = (sum(&[(group, &across)]), k.size(&format!("ceil(M/{tall})"))?);
    let units = Stride::times(&of_band, &bands).unwrap();
    let value = k.number(VALUE);
    let apart = if chance.seldom(6) { chance.of(&[1_i64, 2, 4]) } else { group };
    let kind = chance.below(8);
    let first = chance.seldom(2);
    let store = |number: &Expr| -> Result<(), KernelError> {
        let [band, inside] = parted(number, &of_band);
        let [row, column] = match (kind, first) {
            // The other one first; a row or a column that is not its own.
            (0, _) => parted(&inside, &Expr::from(group)),
            (1, _) => [inside.clone(), parted(&inside, &Expr::from(group))[0].clone()],
            (2, _) => [Expr::from(0), parted(&inside, &across)[1].clone()],
            // Either along the rows first, or along the columns.
            (_, true) => parted(&inside, &across),
            (_, false) => {
                let [column, row] = parted(&inside, &Expr::from(group));
                [row, column]
            }
        };
        let at = at(&[Some(sum(&[(apart, &band), (1, &row)])), Some(column)]);
        stored(&y.local_tile((rows, columns), at)?.thread_part()?, value)
    };
    match chance.below(6) {
        0 => {
            k.grid(Axis::X, 1)?;
            k.range(units, |iteration| store(&iteration))
        }
        1 => {
            k.grid(Axis::X, &format!("{group}*ceil(N/{columns})*ceil(M/{tall})"))?;
            store(&k.block_number(Axis::X))
        }
        other => {
            k.grid(Axis::X, blocks)?;
            let block = k.block_number(Axis::X);
            let left = if other == 2 && chance.seldom(2) { sum(&[(1, &units), (1, &Expr::from(-1))]) } else { units };
            let of = blocks * if chance.seldom(8) { 2 } else { 1 };
            let count = left.minus(&block).unwrap().divide_up(&Expr::from(of)).unwrap();
            let step = if chance.seldom(8) { blocks + chance.of(&[-1, 1]) } else { blocks };
            k.range(count, |iteration| store(&sum(&[(step, &iteration), (1, &block)])))
        }
    }
}

/// How many tiles wide a tensor is that loops go through.
const ACROSS: i64 = 12;

/// Tiles of a row at the iterations of two loops, from either end. Sometimes they begin or go on
/// elsewhere, an iteration counts rows too, or a second store has tiles in another order.
fn in_loops(k: &Build, role: Role, chance: &mut Chance) -> Result<(), KernelError> {
    let (rows, columns) = (4, 2);
    let inner = chance.of(&[1_i64, 2, 3, 4, 6, 12]);
    let outer = ACROSS / inner + if chance.seldom(8) { chance.of(&[-1, 1]) } else { 0 };
    let height = chance.of(&["M".to_string(), (rows * outer).to_string(), (rows * inner).to_string()]);
    let width = columns * ACROSS - i64::from(chance.seldom(3));
    let y = k.tensor_of(Element::F32, "y", &format!("({height},{width}):({width},1)"), role)?;
    k.threads(rows)?;
    let signs = [chance.of(&[1_i64, -1]), chance.of(&[1_i64, -1])];
    let step = if chance.seldom(8) { inner + chance.of(&[-1, 1]) } else { inner };
    let kind = chance.below(10);
    let late = i64::from(chance.seldom(8));
    // If iterations count rows, one block has all of them, or each block has a band.
    let band = chance.of(&[0_i64, 1, outer]);
    if kind < 3 {
        k.grid(Axis::X, if band == 0 { "1" } else { "2" })?;
    }
    k.range(outer, |i| {
        k.range(inner, |j| {
            let column = |signs: [i64; 2], [i, j]: [&Expr; 2]| {
                let first = |sign: i64, count: i64| if sign < 0 { count - 1 } else { 0 };
                let from = late + step * first(signs[0], outer) + first(signs[1], inner);
                sum(&[(from, &Expr::from(1)), (step * signs[0], i), (signs[1], j)])
            };
            let store = |row: Expr, column: Expr| {
                let tile = y.local_tile((rows, columns), at(&[Some(row), Some(column)]))?;
                stored(&tile.thread_part()?, k.number(VALUE))
            };
            let block = k.block_number(Axis::X);
            let row = match kind {
                0 => sum(&[(band, &block), (1, &i)]),
                1 => sum(&[(band, &block), (-1, &i), (outer - 1, &Expr::from(1))]),
                2 => sum(&[(band, &block), (1, &j)]),
                _ => block.clone(),
            };
            store(row, column(signs, [&i, &j]))?;
            match kind {
                3 => store(block, column([-signs[0], signs[1]], [&i, &j])),
                4 => store(block, column(signs, [&j, &i])),
                _ => Ok(()),
            }
        })
    })
}

/// A kernel of chance, whose tensor has this role.
fn build(seed: u64, role: Role) -> Result<Kernel, KernelError> {
    let mut chance = Chance(seed);
    Kernel::build("random", |k| match chance.below(KINDS) {
        IN_TURN => {
            let layout = chance.of(&["(M,N):(N,1)", "(M,N):(1,M)", "(M{div=8},N{div=4}):(N,1)", "(M{max=8},N):(N,1)"]);
            in_turn(k, &k.tensor_of(Element::F32, "y", layout, role)?, &mut chance)
        }
        IN_LOOPS => in_loops(k, role, &mut chance),
        0 => {
            let layout = chance.of(&["(M,N):(N,1)", "(M,N):(1,M)", "(M{div=8},N{div=4}):(N,1)", "(M,N):(2*N,2)"]);
            tiled(k, &k.tensor_of(Element::F32, "y", layout, role)?, &mut chance)
        }
        1 => {
            let extents = [chance.of(&[3_i64, 8, 5]), chance.of(&[4_i64, 7, 16])];
            let layout = format!("({},{}):({},1)", extents[0], extents[1], extents[1]);
            numbered(k, &k.tensor_of(Element::F32, "y", &layout, role)?, extents, &mut chance)
        }
        2 => {
            let layout =
                chance.of(&["(12,5):(5,1)", "(M,5):(5,1)", "(M,(5,1)):(5,(1,1))", "(16,1):(1,1)", "(M,1):(1,16)"]);
            single(k, &k.tensor_of(Element::F32, "y", layout, role)?, &mut chance)
        }
        _ => {
            let layout =
                chance.of(&["(M,N):(N,1)", "(12,20):(20,1)", "S<2,2,3> o 0 o (16,32):(32,1)", "(12,20):(1,1)"]);
            in_a_tile(k, &k.tensor_of(Element::F32, "y", layout, role)?, &mut chance)
        }
    })
}

#[test]
fn what_is_shown_is_what_happens() {
    let count = std::env::var("KERNELS").ok().and_then(|count| count.parse().ok()).unwrap_or(600);
    let cases = [[8, 4], [16, 8], [24, 12], [1, 1], [33, 5], [7, 31], [64, 16], [40, 20]];
    let (mut once, mut refused, mut open, mut by_sizes, mut in_loops) = (0, 0, 0, 0, 0);
    for seed in 1..=count {
        let seed = u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1;
        let Ok(free) = build(seed, Role::Both) else { continue };
        let runs = cases.map(|[m, n]| happened(&free, &[("M", m), ("N", n)]));
        let wrong = runs.iter().flatten().any(|happened| *happened != Happened::Once);
        match build(seed, Role::Output) {
            Ok(kernel) => match &kernel.outputs()[0].written {
                Written::Once => {
                    assert!(!wrong, "{seed}: {runs:?}");
                    once += 1;
                    by_sizes += u64::from(Chance(seed).below(KINDS) == IN_TURN);
                    in_loops += u64::from(Chance(seed).below(KINDS) == IN_LOOPS);
                }
                Written::Unproved { because, .. } => {
                    assert!(!because.is_empty());
                    open += 1;
                }
            },
            Err(error) => {
                let own = matches!(error.reason(), Reason::WrittenTwice { .. } | Reason::NeverWritten { .. });
                assert!(own, "{seed}: {error}");
                assert!(wrong, "{seed}: {error}: {runs:?}");
                refused += 1;
            }
        }
    }
    // Few of those that are right everywhere are left open.
    println!(
        "{once} shown, {by_sizes} of them by digits of sizes, {in_loops} in loops, {refused} refused, {open} open"
    );
    assert!(once > count / 5 && refused > count / 10 && open < count / 3, "{once} {refused} {open}");
    assert!(by_sizes > count / 25 && in_loops > count / 25, "{by_sizes} {in_loops}");
}
