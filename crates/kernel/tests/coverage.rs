//! What is shown of the elements of outputs, beside what happens.
//!
//! Kernels that store are put together by chance. Each is built twice: with an output, of which it
//! is shown, refused or left open that its elements are written once; and with a tensor that may be
//! written anyhow, which is run. What happens there follows from the contents that it leaves and
//! from the races that the interpreter finds: nothing of the library's reasoning is in that.
//!
//! `KERNELS=20000 cargo test -p tilewright-kernel --test coverage` tries more of them.

use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, Reason, View, Written};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, Slot, Stride, Tree};

#[path = "coverage/cases.rs"]
mod cases;

/// Numbers by chance (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % count as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// True once in so many times.
    fn seldom(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

const VALUE: f32 = 7.0;

/// How many kinds of kernels there are, and which one has tiles in turn.
const KINDS: usize = 5;
const IN_TURN: usize = 4;

/// What is stored, for a view of one part of a thread.
fn stored<'k>(part: &View<'k>, value: Num<'k>) -> Result<(), KernelError> {
    let values = part.fragment()?;
    values.fill(value)?;
    part.store_predicated(&values)
}

fn at(parts: &[Option<Expr>]) -> Coord<Expr> {
    Tree::flat(parts.iter().map(|part| part.clone().map_or(Slot::All, Slot::At))).unwrap()
}

fn sum(parts: &[(i64, &Expr)]) -> Expr {
    parts.iter().fold(Expr::from(0), |sum, (factor, part)| {
        Stride::plus(&sum, &Stride::times(*part, &Expr::from(*factor)).unwrap()).unwrap()
    })
}

/// Tiles at blocks or turns, rows of tiles at threads; sometimes with something left out.
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
            // All columns, a tile a turn; sometimes a turn too few.
            let tiles = y.local_tile(&tile, k.block("(x,_)")?)?;
            let count = match chance.of(&[0, 0, 1]) {
                0 => k.size(&format!("ceil(N/{columns})"))?,
                _ => k.size(&format!("floor(N/{columns})"))?,
            };
            k.range(count, |turn| stored(&tiles.slice(at(&[None, None, Some(turn)]))?.thread_part()?, value))
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
            k.grid(Axis::X, &group.to_string())?;
            k.grid(Axis::Z, &format!("ceil(M/{})", rows * chance.of(&[group, group, 2])))?;
            let apart = chance.of(&[group, group, group, 1, 2]);
            let row = sum(&[(1, &k.block_number(Axis::X)), (apart, &k.block_number(Axis::Z))]);
            let tiles = y.local_tile(&tile, at(&[Some(row), None]))?;
            k.range(k.size(&format!("ceil(N/{columns})"))?, |turn| {
                stored(&tiles.slice(at(&[None, None, Some(turn)]))?.thread_part()?, value)
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
    k.grid(Axis::X, &blocks.to_string())?;
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
    let one = y.local_tile("(1,1)", at(&[Some(row), Some(column)]))?;
    stored(&one, k.number(VALUE))
}

/// Rows of a known tile at digits of the thread, values at others; sometimes one digit twice.
fn in_a_tile(k: &Build, y: &View<'_>, chance: &mut Chance) -> Result<(), KernelError> {
    let (a, b, step) = (chance.of(&[2_i64, 4]), chance.of(&[2_i64, 4]), chance.of(&[1_i64, 2]));
    // Sometimes two threads for each part, or two blocks.
    let again = chance.of(&[1_i64, 1, 1, 2]);
    if chance.seldom(5) {
        k.grid(Axis::Z, "2")?;
    }
    k.threads(a * b * again)?;
    let digits = k.coordinate(&k.thread()?, &[a, b, again])?;
    let second = if chance.seldom(4) { &digits[0] } else { &digits[1] };
    let tile = y.local_tile(&format!("({},{})", a * step, 2 * b), k.block("(x,y)")?)?;
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
            // A turn.
            k.threads(rows)?;
            k.range(times, |turn| stored(&y.local_tile(&tile, at(&[block.clone(), Some(turn)]))?.thread_part()?, value))
        }
        1 => {
            // A turn, of tiles that are left.
            k.threads(rows)?;
            let tiles = y.local_tile(&tile, at(&[block, None]))?;
            k.range(times, |turn| stored(&tiles.slice(at(&[None, None, Some(turn)]))?.thread_part()?, value))
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
            k.range(times, |turn| {
                let part = own.local_tile(&format!("({rows},8)"), at(&[Some(Expr::from(0)), Some(turn)]))?;
                stored(&part.thread_part()?, value)
            })
        }
    }
}

/// Quotient and remainder.
fn parted(number: &Expr, by: &Expr) -> [Expr; 2] {
    let quotient = number.floor_div(by).unwrap();
    let rest = number.minus(&Stride::times(&quotient, by).unwrap()).unwrap();
    [quotient, rest]
}

/// Tiles whose number blocks have in turns, or that of a block or a turn, found by quotients of
/// sizes: some along the rows, then along the columns, then the next band of rows. Sometimes bands
/// overlap or have gaps, the last tiles are left out, or a tile is another one's again.
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
        stored(&y.local_tile(&format!("({rows},{columns})"), at)?.thread_part()?, value)
    };
    match chance.below(6) {
        0 => {
            k.grid(Axis::X, "1")?;
            k.range(units, |turn| store(&turn))
        }
        1 => {
            k.grid(Axis::X, &format!("{group}*ceil(N/{columns})*ceil(M/{tall})"))?;
            store(&k.block_number(Axis::X))
        }
        other => {
            k.grid(Axis::X, &blocks.to_string())?;
            let block = k.block_number(Axis::X);
            let left = if other == 2 && chance.seldom(2) { sum(&[(1, &units), (1, &Expr::from(-1))]) } else { units };
            let of = blocks * if chance.seldom(8) { 2 } else { 1 };
            let count = left.minus(&block).unwrap().divide_up(&Expr::from(of)).unwrap();
            let step = if chance.seldom(8) { blocks + chance.of(&[-1, 1]) } else { blocks };
            k.range(count, |turn| store(&sum(&[(step, &turn), (1, &block)])))
        }
    }
}

/// A kernel of chance, whose tensor has this role.
fn build(seed: u64, role: Role) -> Result<Kernel, KernelError> {
    let mut chance = Chance(seed);
    Kernel::build("random", |k| match chance.below(KINDS) {
        IN_TURN => {
            let layout = chance.of(&["(M,N):(N,1)", "(M,N):(1,M)", "(M{div=8},N{div=4}):(N,1)", "(M{max=8},N):(N,1)"]);
            in_turn(k, &k.tensor_of(Element::F32, "y", layout, role)?, &mut chance)
        }
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

/// What a run shows of the tensor.
#[derive(Debug, PartialEq)]
enum Happened {
    Once,
    Twice,
    Never,
}

fn happened(kernel: &Kernel, sizes: &[(&str, i64)]) -> Option<Happened> {
    let program = kernel.program();
    let own: Vec<String> = program.sizes.iter().map(ToString::to_string).collect();
    let sizes: Vec<(&str, i64)> =
        sizes.iter().copied().filter(|(name, _)| own.iter().any(|own| own.starts_with(name))).collect();
    // Sizes that the facts do not admit are no case.
    let mut interpreter = Interpreter::new(program, &sizes).ok()?;
    let count = interpreter.bytes_of(0).unwrap() / 4;
    interpreter.tensor("y", &vec![0.0_f32; count]).unwrap();
    match interpreter.run(Schedule::ALL[0]) {
        Err(findings) => {
            let codes: Vec<&str> = findings.iter().map(|found| found.code()).collect();
            assert!(codes.iter().all(|code| ["E1016", "E1017"].contains(code)), "{codes:?}");
            Some(Happened::Twice)
        }
        Ok(run) => {
            // The elements that the layout has, from a definition by digits.
            let left = run.tensor::<f32>("y").unwrap();
            let text = program.buffers[0].layout.to_string();
            let size = |name: &str| sizes.iter().find(|(own, _)| *own == name).map_or(0, |(_, size)| *size);
            let (m, n) = (size("M"), size("N"));
            let whole = text.starts_with('S') || !text.contains("2*N");
            let places: Vec<i64> = match whole {
                true => (0..count as i64).collect(),
                false => (0..m).flat_map(|row| (0..n).map(move |column| 2 * (n * row + column))).collect(),
            };
            let missing = places.iter().any(|place| left[*place as usize] != VALUE);
            Some(if missing { Happened::Never } else { Happened::Once })
        }
    }
}

#[test]
fn what_is_shown_is_what_happens() {
    let count = std::env::var("KERNELS").ok().and_then(|count| count.parse().ok()).unwrap_or(600);
    let cases = [[8, 4], [16, 8], [24, 12], [1, 1], [33, 5], [7, 31], [64, 16], [40, 20]];
    let (mut once, mut refused, mut open, mut by_sizes) = (0, 0, 0, 0);
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
    println!("{once} shown, {by_sizes} of them by digits of sizes, {refused} refused, {open} open");
    assert!(once > count / 5 && refused > count / 10 && open < count / 3, "{once} {refused} {open}");
    assert!(by_sizes > count / 20, "{by_sizes}");
}

/// What is wrong with tiles that are found by quotients of sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    /// Tiles overlap, or leave rows out between them.
    Overlap,
    Gap,
    /// The last tile is left out; blocks have other numbers of turns.
    Last,
    Half,
    /// The number of a tile has a digit more, which no coordinate has.
    Again,
    /// The row is found by another divisor than the column.
    Apart,
    /// The row is that of the turn.
    Turn,
    /// All groups of threads have the tiles of the first one, or a turn less than it.
    Share,
    Fewer,
}

/// Tiles of 8 x 2 by three blocks in turn, along the columns first; so many groups of eight threads
/// take the tiles of a block in turn.
fn tiles(k: &Build, y: &View<'_>, groups: i64, defect: Option<Defect>) -> Result<(), KernelError> {
    let is = |own: Defect| defect == Some(own);
    k.threads(8 * groups)?;
    k.grid(Axis::X, "3")?;
    let (block, across, tall) = (k.block_number(Axis::X), k.size("ceil(N/2)")?, k.size("ceil(M/8)")?);
    let units = Stride::times(&across, &tall).unwrap();
    let units = sum(&[(if is(Defect::Again) { 2 } else { 1 }, &units), (-i64::from(is(Defect::Last)), &1.into())]);
    let (before, of) = if is(Defect::Half) { (4, 6 * groups) } else { (1, 3 * groups) };
    let own = k.coordinate(&k.thread()?, &[8, groups])?;
    let group = |number: i64| {
        let fewer = if is(Defect::Fewer) && number > 0 { of } else { 0 };
        let left = sum(&[(1, &units), (-before, &block), (-1, &(3 * number + fewer).into())]);
        k.range(left.divide_up(&of.into()).unwrap(), |turn| {
            let number = if is(Defect::Share) { 0 } else { number };
            let number = sum(&[(3 * groups, &turn), (1, &block), (3, &number.into())]);
            let [row, column] = parted(&number, &across);
            let row = match defect {
                Some(Defect::Again) => parted(&row, &2.into())[0].clone(),
                Some(Defect::Apart) => parted(&number, &tall)[1].clone(),
                Some(Defect::Turn) => turn,
                _ => row,
            };
            let apart = if is(Defect::Overlap) { 4 } else { 8 + 4 * i64::from(is(Defect::Gap)) };
            let from = [sum(&[(apart, &row)]), sum(&[(2, &column)])];
            let tile = y.domain_offset(&from)?.local_tile("(8,2)", at(&[Some(0.into()), Some(0.into())]))?;
            stored(&tile.slice(at(&[Some(own[0].clone()), None]))?, k.number(VALUE))
        })
    };
    if groups == 1 {
        return group(0);
    }
    let mine = k.index(&own[1])?;
    (0..groups).try_for_each(|number| k.when(mine.eq(k.number(number as i32)), || group(number)))
}

/// Stores a tile, a row a thread, from a coordinate on.
fn stored_at(k: &Build, y: &View<'_>, from: [Expr; 2], tile: &str) -> Result<(), KernelError> {
    let tile = y.domain_offset(&from)?.local_tile(tile, at(&[Some(0.into()), Some(0.into())]))?;
    stored(&tile.thread_part()?, k.number(VALUE))
}

/// Whether it is shown that `y` is written once; and what happens.
fn shown_and_happened(
    layout: &str,
    write: impl Fn(&Build, &View<'_>) -> Result<(), KernelError>,
) -> (bool, Option<Happened>) {
    let built = |role| Kernel::build("tiles", |k| write(k, &k.tensor_of(Element::F32, "y", layout, role)?));
    let shown = built(Role::Output).is_ok_and(|kernel| kernel.outputs()[0].written == Written::Once);
    // Ten tiles side by side, so that three blocks have others in the next row.
    let sizes = [("M", if layout.contains("max") { 8 } else { 40 }), ("N", 20)];
    (shown, happened(&built(Role::Both).unwrap(), &sizes))
}

#[test]
fn tiles_by_quotients_of_sizes_are_shown_but_for_their_defects() {
    use Defect::{Again, Apart, Fewer, Gap, Half, Last, Overlap, Share, Turn};
    for layout in ["(M,N):(N,1)", "(M{div=8},N{div=4}):(1,M)", "(M{min=20},N{min=4}):(N,1)"] {
        for groups in [1, 2, 3] {
            let of = |defect: Option<Defect>| shown_and_happened(layout, |k, y| tiles(k, y, groups, defect));
            assert_eq!(of(None), (true, Some(Happened::Once)), "{layout} by {groups}");
            let defects = [Overlap, Gap, Last, Half, Again, Apart, Turn, Share, Fewer];
            for defect in defects.into_iter().take(if groups > 1 { 9 } else { 7 }) {
                let (shown, happened) = of(Some(defect));
                let wrong = happened.is_some_and(|happened| happened != Happened::Once);
                assert!(!shown && wrong, "{layout} by {groups}: {defect:?}");
            }
        }
    }
}

/// Blocks that take tiles of some columns in turn, of as many as the columns need: how many turns a
/// block has is one quotient of two.
#[test]
fn turns_that_are_a_quotient_of_a_quotient_are_shown() {
    for (columns, blocks) in [(2, 2), (3, 2), (4, 8), (5, 3), (1, 7)] {
        for (more, apart) in [(0, columns), (1, columns), (-1, columns), (0, columns + 1), (0, columns - 1)] {
            let (shown, happened) = shown_and_happened("(8,N{min=10}):(1,8)", |k, y| {
                k.threads(8)?;
                k.grid(Axis::X, &blocks.to_string())?;
                let (block, units) = (k.block_number(Axis::X), k.size(&format!("ceil(N/{columns})"))?);
                let left = sum(&[(1, &units), (1, &more.into()), (-1, &block)]);
                k.range(left.divide_up(&blocks.into()).unwrap(), |turn| {
                    let column = sum(&[(blocks * apart, &turn), (apart, &block)]);
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
        k.grid(Axis::X, "5")?;
        let (block, units) = (k.block_number(Axis::X), k.size("3*ceil(M/2)")?);
        k.range(units.minus(&block).unwrap().divide_up(&5.into()).unwrap(), |turn| {
            let number = sum(&[(5, &turn), (1, &block)]);
            let [row, column] = [&parted(&number, &2.into())[1], &parted(&number, &3.into())[0]];
            stored_at(k, y, [sum(&[(8, row)]), sum(&[(2, column)])], "(8,2)")
        })
    };
    assert_eq!(shown_and_happened("(16,M):(1,16)", uneven), (false, Some(Happened::Twice)));
    // A turn is no digit of the number that blocks have in it.
    let by_turn = |k: &Build, y: &View<'_>| {
        k.threads(8)?;
        k.grid(Axis::X, "3")?;
        let (block, units) = (k.block_number(Axis::X), k.size("N")?);
        k.range(units.minus(&block).unwrap().divide_up(&3.into()).unwrap(), |turn| {
            stored_at(k, y, [sum(&[(8, &turn)]), sum(&[(3, &turn), (1, &block)])], "(8,1)")
        })
    };
    assert_eq!(shown_and_happened("(M{max=8},N{min=12}):(N,1)", by_turn), (false, Some(Happened::Never)));
}

#[test]
fn what_lanes_read_of_each_other_is_known_where_they_have_the_same() {
    // Each warp stores what the number of the warp, or of the thread, of another lane says.
    let by = |per: i64| {
        move |k: &Build, y: &View<'_>| {
            k.threads(64)?;
            let own = k.index(&k.quotient(&k.thread()?, per)?)?;
            let other = k.shuffle_xor(own, 16);
            let middle = own.like(if per == 1 { 16.0 } else { 1.0 });
            let part = y.compose("(64,1):(1,64)")?.thread_part()?;
            k.choose(other.lt(middle), || stored(&part, k.number(VALUE)), || stored(&part, k.number(VALUE)))
        }
    };
    assert_eq!(shown_and_happened("64:1", by(32)), (true, Some(Happened::Once)));
    assert_eq!(shown_and_happened("64:1", by(1)), (false, Some(Happened::Once)));
}
