//! Tiles in the registers of many threads: what conversions, reductions and scans leave in every
//! value of every thread, beside the definition. The tables of who holds what are computed here,
//! digit by digit.

mod wavefronts;

use std::cell::Cell;

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::{Distributed, Distribution, ElementType, Kernel, KernelError, Reduction, Route};
use tilewright_layout::Layout;

/// Random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A distribution as extents and strides, and what it says.
#[derive(Clone, Debug)]
struct Held {
    tile: Vec<i64>,
    threads: Vec<(i64, i64)>,
    values: Vec<(i64, i64)>,
}

fn count(modes: &[(i64, i64)]) -> i64 {
    modes.iter().map(|mode| mode.0).product()
}

fn at(modes: &[(i64, i64)], number: i64) -> i64 {
    let (mut rest, mut sum) = (number, 0);
    for (extent, stride) in modes {
        sum += rest % extent * stride;
        rest /= extent;
    }
    sum
}

impl Held {
    fn element(&self, thread: i64, value: i64) -> i64 {
        at(&self.threads, thread) + at(&self.values, value)
    }

    fn distribution(&self) -> Distribution {
        let list = |modes: &[(i64, i64)], which: fn(&(i64, i64)) -> i64| {
            let numbers: Vec<String> = modes.iter().map(|mode| which(mode).to_string()).collect();
            format!("({})", if numbers.is_empty() { "1".to_owned() } else { numbers.join(",") })
        };
        let strides =
            |modes: &[(i64, i64)]| if modes.is_empty() { "(0)".to_owned() } else { list(modes, |mode| mode.1) };
        let tile: Vec<String> = self.tile.iter().map(i64::to_string).collect();
        let text = format!(
            "({},{}):({},{})",
            list(&self.threads, |mode| mode.0),
            list(&self.values, |mode| mode.0),
            strides(&self.threads),
            strides(&self.values)
        );
        Distribution::new(&format!("({})", tile.join(",")), &text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// A distribution of a tile over this many threads: its modes cut into prime factors, each
    /// given to threads or values, in any order, with copies where threads are left over.
    fn by_chance(tile: &[i64], threads: i64, chance: &mut Chance) -> Option<Held> {
        let mut factors: Vec<(i64, i64)> = Vec::new();
        let mut stride = 1;
        for extent in tile {
            let mut rest = *extent;
            while rest > 1 {
                let prime = (2..=rest).find(|prime| rest % prime == 0)?;
                factors.push((prime, stride));
                stride *= prime;
                rest /= prime;
            }
        }
        // Sometimes factors stay in order, so that pairs stay together.
        if chance.below(3) > 0 {
            for place in (1..factors.len()).rev() {
                let other = chance.below(place + 1);
                factors.swap(place, other);
            }
        }
        let kept = chance.below(3);
        let (mut of_threads, mut of_values) = (Vec::new(), Vec::new());
        let mut left = threads;
        for (number, factor) in factors.into_iter().enumerate() {
            if number >= kept && left % factor.0 == 0 {
                left /= factor.0;
                of_threads.push(factor);
            } else {
                of_values.push(factor);
            }
        }
        if left > 1 {
            let place = chance.below(of_threads.len() + 1);
            of_threads.insert(place, (left, 0));
        }
        if chance.below(8) == 0 {
            let place = chance.below(of_values.len() + 1);
            of_values.insert(place, (2, 0));
        }
        let held = Held { tile: tile.to_vec(), threads: of_threads, values: of_values };
        (count(&held.values) <= 32).then_some(held)
    }
}

const TILES: &[(&[i64], i64)] = &[
    (&[64], 32),
    (&[8, 32], 32),
    (&[16, 16], 64),
    (&[4, 8, 8], 64),
    (&[32, 32], 128),
    (&[256], 128),
    (&[12, 16], 96),
    (&[6, 10], 30),
    (&[9, 8], 24),
    (&[8, 4], 128),
];

/// Runs a kernel that gives each thread its values of `from`, does something, and writes what each
/// thread has then.
fn exchanged<I: ElementType, O: ElementType>(
    from: &Held,
    to_values: i64,
    input: impl Fn(i64) -> I,
    work: impl for<'k> Fn(&Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
) -> Vec<O> {
    let (threads, values) = (count(&from.threads), count(&from.values));
    let held = from.distribution();
    let kernel = Kernel::build("exchanged", |k| {
        let x = k.input::<I>("x", Layout::strided((threads, values), (values, 1)))?;
        let y = k.output::<O>("y", Layout::strided((threads, to_values), (to_values, 1)))?;
        let tile = x.thread_part()?.load()?.distributed(&held)?;
        y.thread_part()?.store(work(&tile)?.fragment())
    })
    .unwrap_or_else(|error| panic!("{from:?}: {error}"));
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    let places = (0..threads * values).map(|place| from.element(place / values, place % values));
    interpreter.tensor(0, &places.map(input).collect::<Vec<I>>()).unwrap();
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{from:?}: {}", findings[0]));
    checked.run.tensor(1).unwrap()
}

/// The routes that there can be, by who holds what: none but registers where every thread has each
/// value already, under one number; none but shared memory where another warp has one.
fn routes(from: &Held, to: &Held) -> &'static [Route] {
    let (threads, [has, wants]) = (count(&from.threads), [from, to].map(|held| count(&held.values)));
    let stays = |value: i64| {
        (0..has).any(|own| (0..threads).all(|thread| from.element(thread, own) == to.element(thread, value)))
    };
    let in_warp = |thread: i64, element: i64| {
        let first = thread / 32 * 32;
        (first..threads.min(first + 32)).any(|lane| (0..has).any(|own| from.element(lane, own) == element))
    };
    if (0..wants).all(stays) {
        &[Route::Registers]
    } else if (0..threads).any(|thread| (0..wants).any(|value| !in_warp(thread, to.element(thread, value)))) {
        &[Route::Shared]
    } else {
        &[Route::Lanes, Route::Shared]
    }
}

/// Converts, and returns the route.
fn converts<T: ElementType + PartialEq + std::fmt::Debug>(from: &Held, to: &Held, number: impl Fn(i64) -> T) -> Route {
    let wanted = to.distribution();
    let taken = Cell::new(None);
    let found: Vec<T> = exchanged(from, count(&to.values), &number, |tile| {
        taken.set(Some(tile.distribution().route(&wanted, tile.element())?.0));
        tile.convert(&wanted)
    });
    for (place, found) in found.into_iter().enumerate() {
        let (thread, value) = (place as i64 / count(&to.values), place as i64 % count(&to.values));
        assert_eq!(found, number(to.element(thread, value)), "{from:?} to {to:?}: thread {thread}, value {value}");
    }
    let route = taken.get().unwrap();
    assert!(routes(from, to).contains(&route), "{from:?} to {to:?}: {route:?}");
    route
}

#[test]
fn every_thread_gets_what_a_conversion_promises() {
    let rounds = std::env::var("TILEWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let mut chance = Chance(11);
    let (mut pairs, mut taken) = (0, [0; 3]);
    for round in 0..rounds {
        for (tile, threads) in TILES {
            let [Some(from), Some(to)] = [0, 1].map(|_| Held::by_chance(tile, *threads, &mut chance)) else { continue };
            // Every eighth one the same, or with its values in another order.
            let to = if round % 8 == 7 {
                Held { values: from.values.iter().rev().copied().collect(), ..from.clone() }
            } else {
                to
            };
            let route = match round % 4 {
                0 => converts::<u8>(&from, &to, |at| (at * 7 % 251) as u8),
                1 => converts::<u16>(&from, &to, |at| at as u16 + 3),
                2 => converts::<u64>(&from, &to, |at| (at as u64 + 1) << 33 | at as u64),
                _ => converts::<u32>(&from, &to, |at| at as u32 + 5),
            };
            pairs += 1;
            taken[route as usize] += 1;
        }
    }
    assert!(pairs >= rounds * 8, "{pairs} pairs");
    // Each route is taken often.
    assert!(taken.iter().all(|count| *count > pairs / 20), "{taken:?}");
}

/// The elements that fall together with one where some modes have become one.
fn fellows(tile: &[i64], element: i64, modes: &[usize]) -> Vec<i64> {
    let coordinate = |mut index: i64| -> Vec<i64> {
        tile.iter()
            .map(|extent| {
                let at = index % extent;
                index /= extent;
                at
            })
            .collect()
    };
    let own = coordinate(element);
    let alike = |other: &i64| {
        coordinate(*other).iter().zip(&own).enumerate().all(|(mode, (a, b))| modes.contains(&mode) || a == b)
    };
    (0..tile.iter().product()).filter(alike).collect()
}

/// For each thread, the elements of a reduced tile that it has, each by one of the elements that
/// make it.
fn reduced(from: &Held, modes: &[usize]) -> Vec<Vec<i64>> {
    let first = |element: i64| fellows(&from.tile, element, modes)[0];
    let values = |thread: i64| {
        let mut found: Vec<i64> = Vec::new();
        for value in 0..count(&from.values) {
            let element = first(from.element(thread, value));
            if !found.contains(&element) {
                found.push(element);
            }
        }
        found
    };
    (0..count(&from.threads)).map(values).collect()
}

#[test]
fn every_thread_gets_what_a_reduction_promises() {
    let number = |at: i64| ((at * 37 + 11) % 101 - 50) as i32;
    let mut chance = Chance(5);
    let mut seen = 0;
    for _ in 0..12 {
        for (tile, threads) in TILES {
            let Some(from) = Held::by_chance(tile, *threads, &mut chance) else { continue };
            let modes: Vec<usize> = (0..tile.len()).filter(|_| chance.below(2) == 0).collect();
            let wanted = reduced(&from, &modes);
            let reduction =
                [Reduction::Sum, Reduction::Maximum, Reduction::Minimum, Reduction::Product][chance.below(4)];
            let values = wanted[0].len() as i64;
            let found: Vec<i32> = exchanged(&from, values, number, |tile| tile.reduce(&modes, reduction));
            for (place, found) in found.into_iter().enumerate() {
                let element = wanted[place / values as usize][place % values as usize];
                let all = fellows(tile, element, &modes).into_iter().map(number);
                let wanted = match reduction {
                    Reduction::Sum => all.fold(0, i32::wrapping_add),
                    Reduction::Product => all.fold(1, i32::wrapping_mul),
                    Reduction::Maximum => all.max().unwrap(),
                    Reduction::Minimum => all.min().unwrap(),
                };
                assert_eq!(found, wanted, "{from:?} along {modes:?}, {reduction:?}, place {place}");
            }
            seen += 1;
        }
    }
    assert!(seen > 90);
}

#[test]
fn the_greatest_is_found_with_its_number() {
    // Ties, and NaN: the first NaN is the greatest.
    let number = |at: i64| if at % 5 == 3 { f32::NAN } else { (at * 37 % 23) as f32 };
    let mut chance = Chance(17);
    for (tile, threads) in TILES {
        let Some(from) = Held::by_chance(tile, *threads, &mut chance) else { continue };
        let modes: Vec<usize> = (0..tile.len()).filter(|mode| *mode == 0 || chance.below(2) == 0).collect();
        let wanted = reduced(&from, &modes);
        let values = wanted[0].len();
        let found: Vec<i32> = exchanged(&from, values as i64, number, |tile| Ok(tile.argmax(&modes)?.1));
        for (place, found) in found.into_iter().enumerate() {
            let all = fellows(tile, wanted[place / values][place % values], &modes);
            let mut best: Option<(usize, f32)> = None;
            for (at, value) in all.into_iter().map(number).enumerate() {
                if best.is_none_or(|(_, known)| value > known || (value.is_nan() && !known.is_nan())) {
                    best = Some((at, value));
                }
            }
            assert_eq!(found, best.unwrap().0 as i32, "{from:?} along {modes:?}, place {place}");
        }
    }
}

#[test]
fn every_thread_gets_what_a_scan_promises() {
    let number = |at: i64| (at * 37 % 19) as i32;
    let mut chance = Chance(23);
    let mut seen = 0;
    for _ in 0..8 {
        for (tile, threads) in TILES {
            let Some(from) = Held::by_chance(tile, *threads, &mut chance) else { continue };
            let mode = chance.below(tile.len());
            let values = count(&from.values);
            let found: Vec<i32> = exchanged(&from, values, number, |tile| tile.scan(mode, Reduction::Sum));
            for (place, found) in found.into_iter().enumerate() {
                let element = from.element(place as i64 / values, place as i64 % values);
                let before = fellows(tile, element, &[mode]).into_iter().filter(|other| *other <= element);
                assert_eq!(found, before.map(number).sum::<i32>(), "{from:?} along {mode}, place {place}");
            }
            // The same without the element itself, and by the greatest.
            let found: Vec<i32> = exchanged(&from, values, number, |tile| tile.scan_before(mode, Reduction::Maximum));
            for (place, found) in found.into_iter().enumerate() {
                let element = from.element(place as i64 / values, place as i64 % values);
                let before = fellows(tile, element, &[mode]).into_iter().filter(|other| *other < element);
                let wanted = before.map(number).max().unwrap_or(i32::MIN);
                assert_eq!(found, wanted, "before {from:?} along {mode}, place {place}");
            }
            seen += 1;
        }
    }
    assert!(seen > 60);
}

#[test]
fn shared_memory_is_taken_and_given_back() {
    // Four warps on a row: sums between warps, one after another, and in the iterations of a loop.
    let row = Distribution::new((1, 128), "(128,1):(1,0)").unwrap();
    let kernel = Kernel::build("again", |k| {
        let (x, y) = (k.input::<i32>("x", "(1,128):(128,1)")?, k.output::<i32>("y", "(1,128):(128,1)")?);
        let mut tile = x.load_distributed(&row)?;
        for _ in 0..5 {
            let sum = tile.reduce(&[1], Reduction::Sum)?;
            tile = tile.zip(&sum, |x, sum| Ok(x * 3.0 - sum))?;
        }
        k.range(3, |_| {
            let sum = tile.reduce(&[1], Reduction::Sum)?;
            let next = tile.zip(&sum, |x, sum| Ok(x + sum))?;
            tile.fragment().set(&next.fragment().numbers()?)
        })?;
        y.store_distributed(&tile)
    })
    .unwrap();
    // Two areas in turn: a barrier lies between one and the next but one.
    assert_eq!(kernel.program().shared_bytes, 128 + 4 * 4);
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    let mut wanted: Vec<i32> = (0..128).map(|at| at % 7 - 3).collect();
    interpreter.tensor(0, &wanted).unwrap();
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{}", findings[0]));
    for iteration in 0..8 {
        let sum = wanted.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x));
        let next = |x: &i32| if iteration < 5 { x.wrapping_mul(3).wrapping_sub(sum) } else { x.wrapping_add(sum) };
        wanted = wanted.iter().map(next).collect();
    }
    assert_eq!(checked.run.tensor::<i32>(1).unwrap(), wanted);
}

#[test]
fn what_is_no_distribution_is_refused() {
    let refused = |tile: &str, layout: &str| Distribution::new(tile, layout).unwrap_err().code();
    assert_eq!(refused("(4,16)", "((8,4),2):((8,1),2)"), "E0919"); // twice, and never
    assert_eq!(refused("(4,16)", "((8,4),2):((8,1),8)"), "E0919");
    assert_eq!(refused("(4,16)", "(32,1):(1,0)"), "E0919"); // half of it
    assert_eq!(refused("(4,16)", "(32,4):(1,32)"), "E0919"); // past its end
    assert_eq!(refused("(4,16)", "64:1"), "E0919");
    let (a, b) = (Distribution::new(64, "(32,2):(1,32)").unwrap(), Distribution::new(64, "(64,1):(1,0)").unwrap());
    let error = Kernel::build("other", |k| {
        k.register(tilewright_kernel::Element::F32, 2)?.distributed(&a)?.convert(&b).map(|_| ())
    });
    assert_eq!(error.unwrap_err().code(), "E0919");
}
