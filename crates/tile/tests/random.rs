//! Programs by chance: text and back, and what each pass leaves of them, bit for bit.
//!
//! Numbers are small and whole, so that sums of f32 are exact in every order: what a program means,
//! what it means with conversions between layouts, and what the kernel does under every schedule
//! must be the same bits.

#[path = "programs/run.rs"]
mod run;

use run::{Case, kernel};
use tilewright_tile::{
    Axis, Binary, Build, Count, Element, Held, Index, Program, Reduction, Role, TensorId, TileError, Unary, Value,
    interpret,
};

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A value, and the greatest magnitude that it may have.
#[derive(Clone, Copy)]
struct Known<'t> {
    value: Value<'t>,
    most: f64,
}

/// Sums of f32 stay exact below this.
const EXACT: f64 = (1 << 22) as f64;

/// What integers of 32 bits do not exceed.
const WHOLE: f64 = (1_u64 << 31) as f64;

/// Values that a body may use.
struct Body<'t> {
    x: TensorId,
    build: &'t Build,
    known: Vec<Known<'t>>,
    warps: u32,
}

impl<'t> Body<'t> {
    fn add(&mut self, value: Value<'t>, most: f64) {
        self.known.push(Known { value, most });
    }

    /// A value; what came last more often, so that operations follow one another.
    fn any(&self, chance: &mut Chance) -> Known<'t> {
        let count = if chance.below(2) == 0 { self.known.len().min(3) } else { self.known.len() };
        self.known[self.known.len() - 1 - chance.below(count)]
    }

    /// Another value that meets this one's shape and type.
    fn beside(&self, one: Known<'t>, chance: &mut Chance) -> Option<Known<'t>> {
        let ty = one.value.type_of();
        let fits: Vec<Known<'t>> = self
            .known
            .iter()
            .filter(|other| {
                let own = other.value.type_of();
                let meets = own.shape.is_empty()
                    || own.shape.len() == ty.shape.len()
                        && own.shape.iter().zip(&ty.shape).all(|(a, b)| a == b || *a == 1 || *b == 1);
                let size: i64 = own.shape.iter().zip(&ty.shape).map(|(a, b)| a.max(b)).product();
                own.element == ty.element && meets && size <= 2048
            })
            .copied()
            .collect();
        (!fits.is_empty()).then(|| fits[chance.below(fits.len())])
    }

    /// One more statement, if it keeps to the bounds.
    fn grow(&mut self, chance: &mut Chance) {
        let one = self.any(chance);
        let ty = one.value.type_of();
        let modes = ty.shape.len();
        let integer = ty.element == Element::I32;
        match chance.below(25) {
            0 | 1 => {
                let Some(other) = self.beside(one, chance) else { return };
                let binary =
                    chance.one(&[Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Minimum, Binary::Maximum]);
                let most = match binary {
                    Binary::Multiply => one.most * other.most,
                    _ => one.most + other.most,
                };
                if !integer && most > EXACT {
                    return;
                }
                let (a, b) = (one.value, other.value);
                let value = match binary {
                    Binary::Add => a + b,
                    Binary::Subtract => a - b,
                    Binary::Multiply => a * b,
                    Binary::Minimum => a.min(b),
                    _ => a.max(b),
                };
                self.add(value, most);
            }
            2 => self.add(one.value.map(chance.one(&[Unary::Negate, Unary::Abs])), one.most),
            3 => {
                let (Some(other), Some(yes), Some(no)) =
                    (self.beside(one, chance), self.beside(one, chance), self.beside(one, chance))
                else {
                    return;
                };
                let condition = match chance.below(3) {
                    0 => one.value.lt(other.value),
                    1 => one.value.le(other.value),
                    _ => one.value.eq(other.value),
                };
                let shapes = [one, other, yes, no].map(|known| known.value.type_of().shape);
                let extent =
                    |mode: usize| shapes.iter().filter_map(|shape| shape.get(mode)).copied().max().unwrap_or(1);
                let meet = shapes
                    .iter()
                    .all(|shape| shape.iter().enumerate().all(|(mode, own)| *own == 1 || *own == extent(mode)));
                let size = (0..modes).map(extent).product::<i64>() + if meet { 0 } else { 4096 };
                if size <= 2048 {
                    self.add(condition.select(yes.value, no.value), yes.most.max(no.most));
                }
            }
            4 | 5 if modes > 0 => {
                let reduction = chance.one(&[Reduction::Sum, Reduction::Maximum, Reduction::Minimum]);
                let along: Vec<usize> = (0..modes).filter(|_| chance.below(2) == 0).collect();
                let most = one.most * along.iter().map(|mode| ty.shape[*mode] as f64).product::<f64>();
                if !along.is_empty() && (integer || most <= EXACT) {
                    self.add(one.value.reduce(reduction, &along), most);
                }
            }
            6 if modes > 0 => {
                let mode = chance.below(modes);
                let most = one.most * ty.shape[mode] as f64;
                if integer || most <= EXACT {
                    let reduction = chance.one(&[Reduction::Sum, Reduction::Maximum]);
                    match chance.below(2) {
                        0 => self.add(one.value.scan(reduction, mode), most),
                        // The first of f32 would be infinite.
                        _ if integer => self.add(one.value.scan_before(reduction, mode), WHOLE),
                        _ => self.add(one.value.scan_before(Reduction::Sum, mode), most),
                    }
                }
            }
            7 if modes > 1 => {
                let mut order: Vec<usize> = (0..modes).collect();
                order.rotate_left(1 + chance.below(modes - 1));
                self.add(one.value.transpose(&order), one.most);
            }
            8 if modes > 0 => {
                let size: i64 = ty.shape.iter().product();
                let first = 1 << chance.below(size.trailing_zeros() as usize + 1);
                let shape = if chance.below(3) == 0 { vec![size] } else { vec![first, size / first] };
                self.add(one.value.reshape(&shape), one.most);
            }
            9 => {
                let shape: Vec<i64> = match modes {
                    0 => vec![chance.one(&[4, 16]), chance.one(&[8, 32])],
                    _ => ty
                        .shape
                        .iter()
                        .map(|extent| if *extent == 1 { chance.one(&[1, 4, 16]) } else { *extent })
                        .collect(),
                };
                if shape.iter().product::<i64>() <= 2048 {
                    self.add(one.value.broadcast(&shape), one.most);
                }
            }
            10 if modes > 0 => {
                let index = self.build.arange(&ty.shape, chance.below(modes));
                self.add(if integer { index } else { index.to(Element::F32) }, 64.0);
            }
            11 => {
                let to = if integer { Element::F32 } else { Element::I32 };
                if one.most <= EXACT {
                    self.add(one.value.to(to), one.most);
                }
            }
            12 if modes == 2 && !integer && one.most <= 128.0 && ty.shape[0] >= 16 && ty.shape[1] >= 16 => {
                // The tile by its own transpose.
                let (m, k) = (ty.shape[0], ty.shape[1]);
                let most = one.most * one.most * k as f64;
                if most <= EXACT && m * m <= 2048 && m / 16 * (m / 8) >= i64::from(self.warps) {
                    let a = one.value.to(Element::Bf16);
                    let b = a.transpose(&[1, 0]);
                    self.add(a.dot(b, self.build.full(&[m, m], 1.0)), most + 1.0);
                }
            }
            13 if modes > 0 => {
                if let Some(held) = held(&ty.shape, self.warps, chance) {
                    self.add(one.value.held(&held), one.most);
                }
            }
            14 if modes > 0 => {
                let mode = chance.below(modes);
                self.add(one.value.argmax(mode), ty.shape[mode] as f64);
            }
            15 | 16 if modes > 0 => {
                let mode = chance.below(modes);
                let count = 1 << chance.below(ty.shape[mode].trailing_zeros() as usize + 1);
                self.add(one.value.top(mode, count), one.most);
            }
            17 if integer && modes > 0 => {
                self.add(one.value.histogram(chance.one(&[1, 8, 32])), ty.shape.iter().product::<i64>() as f64);
            }
            18 if !integer => {
                let bits = one.value.recast(Element::I32);
                match chance.below(2) {
                    0 => self.add(bits, WHOLE),
                    _ => self.add(bits.recast(Element::F32), one.most),
                }
            }
            19 if integer => {
                let Some(other) = self.beside(one, chance) else { return };
                let binary = chance.one(&[
                    Binary::And,
                    Binary::Or,
                    Binary::Xor,
                    Binary::ShiftLeft,
                    Binary::ShiftRight,
                    Binary::ShiftDown,
                ]);
                self.add(one.value.bits(binary, other.value), WHOLE);
            }
            20 if integer => {
                let Some(seed) = self.beside(one, chance) else { return };
                let random = self.build.random(one.value, seed.value, chance.below(4) as u8);
                self.add(random.bits(Binary::ShiftDown, self.build.integer(25)), 127.0);
            }
            21 if integer && modes > 0 => {
                let element = chance.one(&[Element::F32, Element::I32, Element::Bf16, Element::F16]);
                let large = ty.shape.iter().product::<i64>() > 256;
                let words = if large { one.value.reduce(Reduction::Maximum, &[modes - 1]) } else { one.value };
                if words.type_of().shape.iter().product::<i64>() > 256 {
                    return;
                }
                let found = words.unpack(element, chance.below(2) == 0);
                let narrow = matches!(element, Element::Bf16 | Element::F16);
                self.add(if narrow { found.to(Element::F32) } else { found }, 15.0);
            }
            22 if !integer => {
                let narrow = chance.one(&[Element::E4M3, Element::E5M2, Element::Bf16, Element::F16, Element::I8]);
                let wide = one.value.to(narrow).to(Element::F32);
                // e5m2 is off by one in eight at most; f16 ends at 65504.
                if narrow != Element::F16 || one.most < 65504.0 {
                    self.add(wide, one.most * 1.25);
                }
            }
            23 => {
                // Rows of x by numbers, some of them past its edges.
                let numbers: Vec<Value<'t>> = self
                    .known
                    .iter()
                    .map(|known| known.value)
                    .filter(|value| {
                        let ty = value.type_of();
                        ty.element == Element::I32 && matches!(ty.shape.as_slice(), [1..=32, 1])
                    })
                    .collect();
                let rows = match chance.below(2) {
                    0 if !numbers.is_empty() => chance.one(&numbers),
                    _ => self.build.arange(&[8, 1], 0).bits(Binary::Xor, self.build.integer(5)),
                };
                let shape = [rows.type_of().shape[0], 32];
                let at = [0.into(), Index::block(Axis::Y)];
                let x = self.build.gather(self.x, &shape, &at, (0, rows), 2.0);
                self.add(x.to(Element::F32), 8.0);
            }
            24 if modes > 0 => {
                // A mask of sums of coordinates, blocks and sizes.
                let mut side = || {
                    let coordinates = self.build.arange(&ty.shape, chance.below(modes));
                    let block = Index::block(chance.one(&[Axis::X, Axis::Y])) * chance.one(&[0, 1, 16]);
                    let sum = coordinates + self.build.index(block + chance.one(&[-2, 0, 3]));
                    if chance.below(3) == 0 { sum + self.build.size("M") } else { sum }
                };
                let (a, b) = (side(), side());
                let condition = if chance.below(2) == 0 { a.lt(b) } else { a.le(b) };
                let other = self.build.arange(&ty.shape, chance.below(modes));
                let other = if integer { other } else { other.to(Element::F32) };
                self.add(condition.select(one.value, other), one.most.max(64.0));
            }
            _ => {}
        }
    }
}

/// A layout of a tile by chance.
fn held(shape: &[i64], warps: u32, chance: &mut Chance) -> Option<Held> {
    let mut bits: Vec<u32> = (0..shape.iter().product::<i64>().trailing_zeros()).collect();
    for place in (1..bits.len()).rev() {
        let other = chance.below(place + 1);
        bits.swap(place, other);
    }
    let threads = 5 + warps.trailing_zeros() as usize;
    let (mut of_threads, mut of_values) = (Vec::new(), Vec::new());
    for bit in bits {
        if of_threads.len() < threads && chance.below(4) > 0 {
            of_threads.push(1_i64 << bit);
        } else {
            of_values.push(1_i64 << bit);
        }
    }
    while of_threads.len() < threads {
        let place = chance.below(of_threads.len() + 1);
        of_threads.insert(place, 0);
    }
    if of_values.len() > 6 {
        return None;
    }
    let list = |steps: &[i64], each: &dyn Fn(&i64) -> i64| {
        let all: Vec<String> = steps.iter().map(|step| each(step).to_string()).collect();
        if all.is_empty() { "1".to_string() } else { format!("({})", all.join(",")) }
    };
    let strides = if of_values.is_empty() { "0".to_string() } else { list(&of_values, &|step| *step) };
    let text = format!(
        "({},{}):({},{strides})",
        list(&of_threads, &|_| 2),
        list(&of_values, &|_| 2),
        list(&of_threads, &|step| *step)
    );
    Some(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
}

const LAYOUTS: [(&str, usize); 4] =
    [("(M,N):(N,1)", 0), ("(M,N):(1,M)", 0), ("(M,N{div=8}):(N,1)", 1), ("(M{div=8},N{div=8}):(1,M)", 2)];

fn any(chance: &mut Chance, element: Element, layout: &str) -> Result<Program, TileError> {
    let warps = chance.one(&[1, 2]);
    Program::build("chance", |t| {
        let x = t.input(element, "x", layout)?;
        let z = t.input(Element::I32, "z", layout)?;
        t.grid(&["ceil(M/16)", "ceil(N/32)"])?;
        t.warps(warps)?;
        let at = [Index::block(Axis::X), Index::block(Axis::Y)];
        let mut body = Body { x, build: t, known: Vec::new(), warps };
        body.add(t.load_or(x, &[16, 32], &at, 3.0).to(Element::F32), 8.0);
        body.add(t.load(z, &[16, 32], &at), 8.0);
        body.add(t.index(Index::block(Axis::X) * 3 + 1).to(Element::F32), 64.0);
        for _ in 0..chance.below(8) {
            body.grow(chance);
        }
        // Tiles of memory by one another, which go through shared memory where rows are aligned.
        let factors = |turn: Index, chance: &mut Chance| {
            let rows = [t.load(x, &[16, 32], &[turn.clone(), 0.into()]), t.load(x, &[16, 32], &at)];
            let order = chance.below(2);
            let sums = t.full(&[16, 16], 2.0);
            rows[order].dot(rows[1 - order].transpose(&[1, 0]), sums)
        };
        let narrow = matches!(element, Element::Bf16 | Element::F16);
        if narrow && chance.below(2) == 0 {
            body.add(factors(0.into(), chance), 2048.0);
        }
        if chance.below(2) == 0 {
            // A loop that carries two of the values, neither of which grows.
            let carried = [body.any(chance), body.any(chance)];
            let around = body.known.clone();
            // How many turns there are, a number of z says, or it is known.
            let count = match chance.below(3) {
                0 => (t.load(z, &[1, 1], &at) - t.integer(chance.below(4) as i32)).into(),
                _ => Count::from(chance.one(&[0, 1, 2, 3, 4, 10])),
            };
            let results = t.range(count, &carried.map(|known| known.value), |turn, own| {
                let mut inner = Body { x, build: t, known: around, warps };
                own.iter().zip(carried).for_each(|(value, known)| inner.add(*value, known.most));
                inner.add(t.index(turn.clone()).to(Element::F32), 10.0);
                if chance.below(2) == 0 {
                    let place = [turn.clone(), Index::block(Axis::Y)];
                    inner.add(t.load(x, &[16, 32], &place).to(Element::F32), 8.0);
                }
                if narrow && chance.below(2) == 0 {
                    inner.add(factors(turn, chance), 2048.0);
                }
                for _ in 0..chance.below(5) {
                    inner.grow(chance);
                }
                let mut next = own.to_vec();
                for (next, carried) in next.iter_mut().zip(carried) {
                    let ty = carried.value.type_of();
                    let fits: Vec<Known<'_>> = inner
                        .known
                        .iter()
                        .filter(|known| known.value.type_of() == ty && known.most <= carried.most)
                        .copied()
                        .collect();
                    *next = fits[chance.below(fits.len())].value;
                }
                Ok(next)
            })?;
            results.iter().zip(carried).for_each(|(value, known)| body.add(*value, known.most));
        }
        for _ in 0..chance.below(8) {
            body.grow(chance);
        }
        // Everything of two modes that nobody uses yet may be written.
        for number in 0..2 {
            let tiles: Vec<Known<'_>> =
                body.known.iter().filter(|known| known.value.type_of().shape.len() == 2).copied().collect();
            let mut own = tiles[tiles.len() - 1 - chance.below(tiles.len().min(4))].value;
            // Every value that meets this one's shape counts in the result.
            for (at, other) in body.known.iter().enumerate() {
                let (ty, other_ty) = (own.type_of(), other.value.type_of());
                let fits =
                    other_ty.shape.len() == 2 && other_ty.shape.iter().zip(&ty.shape).all(|(a, b)| a == b || *a == 1);
                if fits && other_ty.element == ty.element {
                    let sign = if at % 2 == 0 { other.value } else { -other.value };
                    own = if at % 3 == 0 { own.min(sign) } else { own.max(sign) };
                }
            }
            let ty = own.type_of();
            let name = format!("y{number}");
            let y = t.output(ty.element, &name, &format!("(A{number},B{number}):(1,A{number})"))?;
            t.store(y, &at, own);
        }
        // Counts of whole numbers, and a tile of numbers to rows in another order.
        if chance.below(2) == 0 {
            let counts = t.inout(Element::I32, "counts", "64:1")?;
            let numbers: Vec<Value<'_>> = body
                .known
                .iter()
                .map(|known| known.value)
                .filter(|value| value.type_of().element == Element::I32 && !value.type_of().shape.is_empty())
                .collect();
            let numbers = chance.one(&numbers);
            let size = numbers.type_of().shape.iter().product();
            let rows = numbers.reshape(&[size]);
            let reduction = chance.one(&[Reduction::Sum, Reduction::Maximum, Reduction::Minimum]);
            t.atomic(reduction, counts, &[0.into()], Some((0, rows)), t.arange(&[size], 0));
            let sums = t.inout(Element::F32, "sums", "1:1")?;
            let total = body.known[0].value.reduce(Reduction::Sum, &[0, 1]).reshape(&[1]);
            t.atomic(Reduction::Sum, sums, &[0.into()], None, total);
        }
        if chance.below(2) == 0 {
            let turned = t.inout(Element::F32, "turned", "(32,64):(64,1)")?;
            let tiles: Vec<Value<'_>> = body
                .known
                .iter()
                .map(|known| known.value)
                .filter(|value| value.type_of().element == Element::F32 && value.type_of().shape == [16, 32])
                .collect();
            let mask = t.integer(chance.below(16) as i32);
            let rows = t.arange(&[16, 1], 0).bits(Binary::Xor, mask) + t.index(Index::block(Axis::X) * 16);
            t.scatter(turned, &at, (0, rows), chance.one(&tiles));
        }
        Ok(())
    })
}

#[test]
fn every_stage_of_random_programs_agrees() {
    let rounds = std::env::var("TILEWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    let from = std::env::var("TILEWRIGHT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (mut seen, mut staged) = (0, 0);
    let words = [
        "scan_before",
        "argmax",
        "top(",
        "histogram",
        "as_i32",
        "xor(",
        "lshr(",
        "random(",
        "unpack_i4",
        "unpack_u4",
        "e4m3(",
        "e5m2(",
        "i8(",
        "load(x, (8,32), (v",
        "atomic_add",
        "atomic_max",
        "store(turned, (v",
        "size(M)",
        " < [v",
    ];
    let mut counts = [0_u64; 19];
    for round in from..from + rounds {
        let mut chance = Chance(round * 7919 + 5);
        let element = chance.one(&[Element::F32, Element::Bf16, Element::F16, Element::I8, Element::U8, Element::E4M3]);
        let (layout, whole) = chance.one(&LAYOUTS);
        let program = any(&mut chance, element, layout).unwrap_or_else(|error| panic!("program {round}: {error}"));
        let text = program.to_string();
        program.verify().unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
        let read: Program = text.parse().unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
        assert_eq!(read.to_string(), text, "program {round}");
        let (m, n) = (
            if whole == 2 { 8 * (1 + chance.below(4) as i64) } else { 1 + chance.below(32) as i64 },
            if whole > 0 { 8 * (1 + chance.below(8) as i64) } else { 1 + chance.below(64) as i64 },
        );
        let mut input = |count: i64| -> Vec<f64> { (0..count).map(|_| chance.below(7) as f64).collect() };
        let mut inputs = vec![("x", input(m * n)), ("z", input(m * n))];
        for (name, count) in [("counts", 64), ("sums", 1), ("turned", 32 * 64)] {
            if program.tensors().iter().any(|tensor| tensor.name == name) {
                inputs.push((name, input(count)));
            }
        }
        let mut sizes = vec![("M", m), ("N", n)];
        // Outputs are as large as all tiles of the grid.
        let blocks = [(m + 15) / 16, (n + 31) / 32];
        let names = ["A0", "B0", "A1", "B1"];
        let shapes: Vec<i64> = stored(&program).into_iter().flatten().collect();
        for (at, name) in names.into_iter().enumerate() {
            sizes.push((name, shapes[at] * blocks[at % 2]));
        }
        let meant = interpret::run(&program, &sizes, &inputs)
            .unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
        assert_eq!(interpret::run(&read, &sizes, &inputs).unwrap(), meant, "program {round}, read again\n{text}");
        let compiled = program.compile().unwrap_or_else(|error| panic!("program {round}: {error}\n{text}"));
        let placed = compiled.placed();
        placed.verify().unwrap_or_else(|error| panic!("program {round}, placed: {error}\n{placed}"));
        let found = interpret::run(placed, &sizes, &inputs).unwrap();
        assert_eq!(found, meant, "program {round}: conversions change it\n{text}\n{placed}");
        let case = Case::new(&sizes, &inputs);
        for (name, wanted) in &meant {
            let found = kernel(&compiled, &case, name);
            for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                let wanted = wanted.unwrap_or_else(|| panic!("program {round}: {name} at {at} is not written\n{text}"));
                assert!(*found == wanted, "program {round}: {name} at {at} is {found}, not {wanted}\n{text}\n{placed}");
            }
        }
        seen += 1;
        counts.iter_mut().zip(words).for_each(|(count, word)| *count += u64::from(text.contains(word)));
        staged += u64::from(placed.to_string().contains("stage("));
    }
    assert_eq!(seen, rounds);
    // Some of them multiply tiles that go through shared memory.
    assert!(staged * 50 >= seen, "{staged} of {seen}");
    // Each operation is in some of them.
    let rare = words.iter().zip(counts).find(|(_, count)| count * 100 < seen);
    assert!(rare.is_none(), "{rare:?} of {seen}");
}

/// The extents of what is written to both outputs.
fn stored(program: &Program) -> Vec<[i64; 2]> {
    program
        .body()
        .iter()
        .filter_map(|statement| match statement {
            tilewright_tile::Statement::Store { tensor, value, .. }
                if program.tensors()[*tensor].role == Role::Output =>
            {
                let shape = &program.type_of(*value).shape;
                Some([shape[0], shape[1]])
            }
            _ => None,
        })
        .collect()
}
