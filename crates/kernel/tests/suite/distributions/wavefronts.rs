//! What a conversion through shared memory costs there, beside the same trip by hand through every
//! swizzle of every arrangement that it looks at.
//!
//! Law: the stores and loads of a conversion take as few wavefronts as any of these trips, and no
//! fewer than the words that are wanted in each phase need.

use tilewright_kernel::cost::Machine;
use tilewright_kernel::{ElementType, Kernel, KernelError, Route};
use tilewright_layout::Layout;

use super::{Chance, Held};

/// The wavefronts of shared memory that a kernel takes, the least for what it wants there, and how
/// many accesses of warps they are.
fn wavefronts(kernel: &Kernel) -> (u64, u64, u64) {
    let cost = kernel.program().cost(&Machine::named("H200").unwrap(), &[]).unwrap();
    let counted = cost.counted.unwrap();
    assert!(counted.is_exact());
    let (found, least) = counted.wavefronts();
    (found, least, counted.accesses.iter().filter(|own| own.wavefronts > 0).map(|own| own.requests).sum())
}

/// A kernel that reads a tile as one distribution has it and writes it as another has it; between
/// them, shared memory of this layout, or a conversion.
fn moved<T: ElementType>(from: &Held, to: &Held, through: Option<&str>) -> Result<Kernel, KernelError> {
    let size: i64 = from.tile.iter().product();
    Kernel::build("moved", |k| {
        let (x, y) = (k.input::<T>("x", Layout::strided(size, 1))?, k.output::<T>("y", Layout::strided(size, 1))?);
        let tile = x.load_distributed(&from.distribution())?;
        let to = to.distribution();
        let tile = match through {
            None => tile.convert(&to)?,
            Some(layout) => {
                let room = k.shared::<T>(layout)?;
                room.store_distributed(&tile)?;
                k.barrier();
                room.load_distributed(&to)?
            }
        };
        y.store_distributed(&tile)
    })
}

/// The arrangement in which the values of each thread lie side by side, as a layout of one mode.
fn in_order_of(held: &Held) -> String {
    let mut below = 1;
    let mut modes: Vec<(i64, i64, i64)> = Vec::new();
    for (extent, stride) in held.values.iter().chain(&held.threads).filter(|mode| mode.1 != 0) {
        modes.push((*stride, *extent, below));
        below *= extent;
    }
    modes.sort_unstable();
    let list = |which: fn(&(i64, i64, i64)) -> i64| {
        modes.iter().map(|mode| which(mode).to_string()).collect::<Vec<_>>().join(",")
    };
    format!("(({})):(({}))", list(|mode| mode.1), list(|mode| mode.2))
}

/// The fewest wavefronts of all trips through shared memory, with a swizzle or without: of those
/// that leave the accesses as wide as they are without one, which are those that are looked for.
fn fewest<T: ElementType>(from: &Held, to: &Held) -> u64 {
    let size: i64 = from.tile.iter().product();
    let bits = i64::from(64 - (size - 1).leading_zeros());
    let mut best = u64::MAX;
    for layout in [format!("{size}:1"), in_order_of(from), in_order_of(to)] {
        let Ok(plain) = moved::<T>(from, to, Some(&layout)) else { continue };
        let (plain, _, requests) = wavefronts(&plain);
        best = best.min(plain);
        for base in 0..bits {
            for count in 1..=bits - base {
                for shift in count..=bits - base - count {
                    let swizzled = format!("S<{count},{base},{shift}> o 0 o {layout}");
                    let Ok(swizzled) = moved::<T>(from, to, Some(&swizzled)) else { continue };
                    let (found, _, own) = wavefronts(&swizzled);
                    if own == requests {
                        best = best.min(found);
                    }
                }
            }
        }
    }
    best
}

fn judged<T: ElementType>(from: &Held, to: &Held) -> (u64, u64) {
    let kernel = moved::<T>(from, to, None).unwrap_or_else(|error| panic!("{from:?} to {to:?}: {error}"));
    let (found, least, _) = wavefronts(&kernel);
    assert_eq!(found, fewest::<T>(from, to), "{from:?} to {to:?} of {}", T::ELEMENT);
    (found, least)
}

#[test]
fn a_trip_through_shared_memory_takes_the_fewest_wavefronts() {
    let rounds = std::env::var("TILEWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    // Larger tiles have many more swizzles to compare with: they take most of the time.
    let large = (rounds > 4).then_some((1024, 64));
    let mut chance = Chance(29);
    let (mut pairs, mut least) = (0, 0);
    for round in 0..rounds {
        for (size, threads) in [(256, 64), (512, 64), (512, 128)].into_iter().chain(large) {
            let [Some(from), Some(to)] = [0, 1].map(|_| Held::by_chance(&[size], threads, &mut chance)) else {
                continue;
            };
            let route = |element| from.distribution().route(&to.distribution(), element).unwrap().0;
            let (element, judged): (_, fn(&Held, &Held) -> _) = match round % 4 {
                0 => (u32::ELEMENT, judged::<u32>),
                1 => (u16::ELEMENT, judged::<u16>),
                2 => (u64::ELEMENT, judged::<u64>),
                _ => (u8::ELEMENT, judged::<u8>),
            };
            if route(element) != Route::Shared {
                continue;
            }
            let (found, ideal) = judged(&from, &to);
            pairs += 1;
            least += u32::from(found == ideal);
        }
    }
    // For most of them a swizzle leaves no conflict at all.
    assert!(pairs >= 2 * rounds && least > pairs / 2, "{least} of {pairs}");
}
