//! Kernels put together at random: none makes the library panic, and none that was accepted reaches
//! outside a tensor or breaks a rule of programs. And a tile has the elements that its index says,
//! none of them where it is past the end.
//!
//! `KERNELS=100000 cargo test -p tilewright-kernel --test suite random_kernels` tries more of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_kernel::interpret::CheckError;
use tilewright_kernel::{Build, Distribution, Kernel, KernelError, Reduction, Written, interpret, ptx};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

const TENSORS: &[&str] = &[
    "(M,N):(N,1)",
    "(M{div=4},N{div=64}):(N,1)",
    "M:1",
    "(M,4):(4,1)",
    "(64,64):(64,1)",
    "(M,N,K)",
    "(M{div=8},(4,N)):(1,(M,M*4))",
    "(0,4):(1,0)",
    "(M,N):(-1,M)",
    "(M,N):(0,0)",
    "(M:1",
    "()",
    "1:0",
    "(4294967296,M):(1,4294967296)",
    "(9223372036854775807,2)",
    "S<2,3,3> o 0 o (64,64):(64,1)",
    "S<2,3,3> o 0 o (M,64):(64,1)",
    "(M,N):(1@0,1@1)",
    "(M{div=0},2)",
    "((M,2),N):((2,1),M*2)",
    "(5,7):(7,1)",
    "(M,M):(M,1)",
];
const TILES: &[&str] = &[
    "(64,64)",
    "(128,4)",
    "(16,16)",
    "64",
    "(M,1)",
    "(0,1)",
    "(8,8,8)",
    "[8:1;8:1]",
    "[8:2;8]",
    "(4,(2,2))",
    "(-1,3)",
    "4096",
    "(1,1)",
    "_",
    "(_,8)",
    "(1000000000000,1)",
    "(3,5)",
];
const BLOCKS: &[&str] =
    &["(x,y)", "(x,0)", "x", "(x,_)", "(_,_)", "(0,0)", "(x,x)", "(x,y,z)", "(w)", "", "((x,y))", "(x,5)", "(x,-1)"];
const SHARED: &[&str] = &[
    "(64,64):(64,1)",
    "S<3,3,3> o 0 o (64,64):(64,1)",
    "(16,16):(17,1)",
    "(M,4)",
    "1000000",
    "(128,4)",
    "64",
    "(16,16):(0,1)",
    "9223372036854775807",
    "(3,5)",
    "S<1,1,1> o 3 o 8:1",
];
const THREADS: &[&str] = &["(16,16):(16,1)", "(8,4)", "32:1", "(16,8):(1,16)", "(32,1)", "(1,1)", "(7,3)", "(64,16)"];
const VALUES: &[&str] = &["(1,4)", "(4,1)", "(1,1)", "(1,8)", "(2,2)", "(4,4):(4,1)", "(1,3)"];
const ATOMS: &[&str] = &[
    "UniversalCopy<uint128_t>",
    "UniversalCopy<uint32_t>",
    "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>",
    "SM80_CP_ASYNC_CACHEALWAYS<uint32_t>",
    "SM75_U32x4_LDSM_N",
    "SM90_U32x4_STSM_N",
];
const HELD: &[&str] = &[
    "(128,4):(1,128)",
    "(64,64):(64,1)",
    "(32,8):(1,32)",
    "(128,(2,16)):(1,(128,256))",
    "((4,32),4):((128,1),32)",
    "(32,4):(1,32)",
    "((8,4),4):((4,32),1)",
    "((4,8),(2,16)):((128,1),(64,8))",
    "(256,16):(1,256)",
    "((8,32),16):((0,1),32)",
    "(48,3):(3,1)",
    "(32,0):(1,1)",
    "(32,4):(1,1)",
    "(32,-4):(1,32)",
    "(1000000,1000000):(1,1000000)",
    "32:1",
    "((16,2),(4,4)):((4,2048),(1,64))",
];
const COUNTS: &[i64] = &[1, 32, 64, 128, 0, 2000, -1];

/// Random numbers (xorshift), and what was chosen with them.
struct Chance {
    state: u64,
    chosen: Vec<String>,
}

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 11) % count as u64) as usize
    }

    /// One of a list, the first three mostly: those that go together.
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let count = if self.below(3) == 0 { list.len() } else { 3 };
        let one = list[self.below(count)];
        self.chosen.push(one.to_string());
        one
    }
}

fn tiled_copy(chance: &mut Chance) -> Option<TiledCopy> {
    let (atom, threads, values) = (chance.of(ATOMS), chance.of(THREADS), chance.of(VALUES));
    TiledCopy::new(CopyAtom::named(atom).ok()?, 32, &threads.parse().ok()?, &values.parse().ok()?).ok()
}

/// A kernel of one movement, from what chance gives.
fn write(k: &Build, chance: &mut Chance) -> Result<(), KernelError> {
    let layout = chance.of(TENSORS);
    let x = k.input::<f32>("x", layout)?;
    let layout = if chance.below(2) == 0 { layout } else { chance.of(TENSORS) };
    // What is read and written need not be written whole, so that more is accepted.
    let y = if chance.below(3) == 0 { k.output::<f32>("y", layout)? } else { k.tensor::<f32>("y", layout)? };
    let shared = if chance.below(2) == 0 { Some(k.shared::<f32>(chance.of(SHARED))?) } else { None };
    let copy = tiled_copy(chance);
    if chance.below(3) == 0 {
        k.threads(COUNTS[chance.below(COUNTS.len())])?;
    }
    let (tile, block) = (chance.of(TILES), chance.of(BLOCKS));
    let x = x.local_tile(tile, k.block(block)?)?;
    let (tile, block) = if chance.below(3) > 0 { (tile, block) } else { (chance.of(TILES), chance.of(BLOCKS)) };
    let y = y.local_tile(tile, k.block(block)?)?;
    match (chance.below(10), shared, copy) {
        (9, ..) => {
            // Tiles at a digit of the thread or at an iteration, which may be past the only tile.
            let (tile, times) = (chance.of(&["(16,5)", "(8,64)", "(1,1)", "(4,4)"]), [1, 2, 3][chance.below(3)]);
            let turned = chance.below(2) == 0;
            k.threads(if turned { 16 } else { 16 * times })?;
            let digits = k.coordinate(&k.thread()?, &[16, times])?;
            let store = |second: Expr| {
                let at: Coord<Expr> = Tree::flat([Slot::At(Expr::from(0)), Slot::At(second)])?;
                let part = y.local_tile(tile, at)?;
                let values = part.fragment()?;
                values.fill(k.number(1.0_f32))?;
                let first = k.index(&digits[0])?;
                k.when(first.eq(first.like(0.0)), || part.store_predicated(&values))
            };
            if turned { k.range(times, store) } else { store(digits[1].clone()) }
        }
        (6 | 7, ..) => {
            let held = chance.of(HELD);
            let from = Distribution::new(tile, held)?;
            let other = if chance.below(3) == 0 { chance.of(HELD) } else { held };
            let to = Distribution::new(tile, other)?;
            let loaded = x.load_distributed_predicated(&from)?;
            let moved = match chance.below(4) {
                0 => loaded.convert(&to)?,
                1 => loaded.scan(chance.below(3), Reduction::Sum)?.convert(&to)?,
                2 => loaded.reduce(&[chance.below(3)], Reduction::Maximum)?,
                _ => loaded.argmax(&[chance.below(2)])?.0,
            };
            y.store_distributed_predicated(&moved)
        }
        (0, ..) => y.thread_part()?.store(&x.thread_part()?.load()?),
        (1, ..) => {
            let values = x.thread_part()?.load_predicated()?;
            y.thread_part()?.store_predicated(&values.map(|x| Ok(x * 2.0 + 1.0))?)
        }
        (2, Some(shared), Some(copy)) => {
            k.copy_predicated(&copy, &x, &shared)?;
            k.wait_async(0);
            k.barrier();
            k.copy_predicated(&copy, &shared, &y)
        }
        (3, Some(shared), Some(copy)) => {
            k.copy(&copy, &x, &shared)?;
            k.wait_async(0);
            k.barrier();
            k.copy(&copy, &shared.select(&[1, 0])?, &y)
        }
        (4, _, Some(copy)) => {
            let values = x.partition(&copy, CopyEnd::Source)?.load_predicated()?;
            y.partition(&copy, CopyEnd::Destination)?.store_predicated(&values)
        }
        _ => {
            let part = x.compose(chance.of(TILES))?.zipped_divide(chance.of(TILES))?;
            y.store_predicated(&part.load_predicated()?)
        }
    }
}

#[test]
fn no_kernel_panics_and_none_that_is_accepted_reaches_outside() {
    let count = std::env::var("KERNELS").ok().and_then(|count| count.parse().ok()).unwrap_or(1200);
    let mut chance = Chance { state: 0x9e37_79b9_7f4a_7c15, chosen: Vec::new() };
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..count {
        chance.chosen.clear();
        let built = catch_unwind(AssertUnwindSafe(|| Kernel::build("random", |k| write(k, &mut chance))));
        let chosen = &chance.chosen;
        let kernel = match built.unwrap_or_else(|_| panic!("a panic while this was written: {chosen:?}")) {
            Ok(kernel) => kernel,
            Err(error) => {
                assert!(!error.to_string().is_empty() && tilewright_kernel::explanation(error.code()).is_some());
                refused += 1;
                continue;
            }
        };
        accepted += 1;
        let program = kernel.program();
        let own: Vec<String> = program.sizes.iter().map(ToString::to_string).collect();
        for all in [[("M", 64), ("N", 64), ("K", 3)], [("M", 1), ("N", 5), ("K", 1)]] {
            let sizes: Vec<(&str, i64)> =
                all.into_iter().filter(|(name, _)| own.iter().any(|own| own.starts_with(name))).collect();
            let ran = catch_unwind(AssertUnwindSafe(|| {
                let _ = ptx::write(program, ptx::Target::Sm90a);
                let _ = program.launch(&sizes);
                interpret::check(program, &sizes)
            }));
            match ran.unwrap_or_else(|_| panic!("a panic at {sizes:?}: {chosen:?}")) {
                Err(CheckError::Findings(findings)) => {
                    // Order is the kernel's own affair, and coverage where it is not shown.
                    let shown = kernel.outputs().iter().all(|output| output.written == Written::Once);
                    let own = |code: &str| match code {
                        "E1010" | "E1011" => true,
                        "E1013" | "E1014" => shown,
                        _ => false,
                    };
                    let broken = findings.iter().find(|found| own(found.code()));
                    assert!(broken.is_none(), "{} at {sizes:?}: {chosen:?}", broken.unwrap());
                }
                Err(CheckError::Setup(error)) => assert_ne!(error.code(), "E1001", "{error}: {chosen:?}"),
                Ok(_) => {}
            }
        }
    }
    assert!(accepted > count / 200 && refused > count / 2, "{accepted} accepted, {refused} refused");
}

/// How an index of tiles is written.
#[derive(Debug, Clone, Copy)]
enum Way {
    Number,
    Iteration,
    Digit,
    OfTilesThatAreLeft,
    OfADivision,
    OfAPart,
}

const WAYS: [Way; 6] =
    [Way::Number, Way::Iteration, Way::Digit, Way::OfTilesThatAreLeft, Way::OfADivision, Way::OfAPart];

/// Stores 1 to a tile of a tensor, at an index.
fn store_a_tile(k: &Build, layout: &str, tile: [i64; 2], index: [i64; 2], way: Way) -> Result<(), KernelError> {
    let y = k.tensor::<f32>("y", layout)?;
    k.threads(4)?;
    let whole = format!("({},{})", tile[0], tile[1]);
    let pair = |a: &Expr, b: &Expr| -> Coord<Expr> { Tree::flat([Slot::At(a.clone()), Slot::At(b.clone())]).unwrap() };
    let numbers = index.map(Expr::from);
    let wanted = pair(&numbers[0], &numbers[1]);
    let rest = |at: &Coord<Expr>| Tree::tuple([&Tree::flat([Slot::All, Slot::All])?, at]);
    let one = |part: tilewright_kernel::View<'_>| {
        let values = part.fragment()?;
        values.fill(k.number(1.0_f32))?;
        let first = k.index(&k.thread()?)?;
        k.when(first.eq(first.like(0.0)), || part.store_predicated(&values))
    };
    match way {
        Way::Number => one(y.local_tile(&whole, wanted)?),
        Way::Iteration => k.range(4, |iteration| {
            let here = k.index(&iteration)?;
            k.when(here.eq(here.like(index[1] as f64)), || one(y.local_tile(&whole, pair(&numbers[0], &iteration))?))
        }),
        Way::Digit => {
            let thread = k.thread()?;
            let part = y.local_tile(&whole, pair(&numbers[0], &thread))?;
            let values = part.fragment()?;
            values.fill(k.number(1.0_f32))?;
            let own = k.index(&thread)?;
            k.when(own.eq(own.like(index[1] as f64)), || part.store_predicated(&values))
        }
        Way::OfTilesThatAreLeft => {
            let left = y.local_tile(&whole, Tree::flat([Slot::All, Slot::All])?)?;
            one(left.slice(Tree::flat([
                Slot::All,
                Slot::All,
                Slot::At(numbers[0].clone()),
                Slot::At(numbers[1].clone()),
            ])?)?)
        }
        Way::OfADivision => one(y.zipped_divide(&whole)?.slice(rest(&wanted)?)?),
        // Half of a tile, if it has halves.
        Way::OfAPart => {
            let double = format!("({},{})", 2 * tile[0], tile[1]);
            let [outer, inner] = [index[0] / 2, index[0] % 2].map(Expr::from);
            one(y.local_tile(&double, pair(&outer, &numbers[1]))?.local_tile(&whole, pair(&inner, &Expr::from(0)))?)
        }
    }
}

#[test]
fn a_tile_has_the_elements_that_its_index_says() {
    let count = std::env::var("KERNELS").ok().and_then(|count| count.parse().ok()).unwrap_or(1200);
    let mut chance = Chance { state: 0x2545_f491_4f6c_dd1d, chosen: Vec::new() };
    let (mut past, mut single) = (0, 0);
    for _ in 0..count {
        let mut of = |list: &[i64]| list[chance.below(list.len())];
        let extents = [of(&[1, 2, 5, 8, 16, 24]), of(&[1, 3, 4, 8, 12])];
        let (tile, index) = ([of(&[1, 2, 4, 8]), of(&[1, 4, 8])], [of(&[0, 0, 1, 2, 3]), of(&[0, 0, 1, 2, 3])]);
        let way = WAYS[chance.below(WAYS.len())];
        let known = chance.below(3) > 0;
        let [m, n] = extents;
        let layout = if known { format!("({m},{n}):({n},1)") } else { "(M,N):(N,1)".to_string() };
        let case = format!("{layout} of {extents:?} by {tile:?} at {index:?}, {way:?}");
        let kernel = Kernel::build("tile", |k| store_a_tile(k, &layout, tile, index, way));
        let kernel = kernel.unwrap_or_else(|error| panic!("{case}: {error}"));
        let sizes: &[(&str, i64)] = if known { &[] } else { &[("M", m), ("N", n)] };
        let mut interpreter = interpret::Interpreter::new(kernel.program(), sizes).unwrap();
        interpreter.tensor("y", &vec![0.0_f32; (m * n) as usize]).unwrap();
        let run = interpreter.run(interpret::Schedule::ALL[0]).unwrap_or_else(|found| panic!("{case}: {}", found[0]));
        for (place, found) in run.tensor::<f32>("y").unwrap().into_iter().enumerate() {
            let at = [place as i64 / n, place as i64 % n];
            let inside = (0..2).all(|mode| at[mode] / tile[mode] == index[mode]);
            assert_eq!(found, f32::from(u8::from(inside)), "{case}: {at:?}");
        }
        past += usize::from((0..2).any(|mode| index[mode] * tile[mode] >= extents[mode]));
        single += usize::from((0..2).any(|mode| index[mode] > 0 && tile[mode] >= extents[mode]));
    }
    assert!(past > count / 4 && single > count / 8, "{past} past the end, {single} of them past a single tile");
}
