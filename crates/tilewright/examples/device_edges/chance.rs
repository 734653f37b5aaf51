//! Kernels of the library at random sizes.
//!
//! Law: what is run follows from a number alone. A kernel leaves what the definition says, within
//! the bound of rounding, and no byte beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilewright::Layout;
use tilewright::gpu::{Argument, Device, ModuleOptions, SizedKernel};
use tilewright::kernel::machine::Machine;
use tilewright::kernel::{Element, Kernel};
use tilewright::planners::{
    EntryOptions, Place, Planned, ReduceOptions, Statistic, bits_at, library, reduce, relayout,
};

use crate::guarded::{Guarded, Outcome};
use crate::{products, tiles};

/// Elements that are compared with the definition, at most.
const COMPARED: usize = 200;

/// Random numbers (a linear congruence, of which the high bits count).
pub struct Chance(u64);

impl Chance {
    pub fn of(number: u64) -> Chance {
        let mut chance = Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d));
        chance.below(2);
        chance
    }

    /// From 0 to below this many.
    pub fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end.max(1) as u64) as i64
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as i64) as usize]
    }

    /// A size from 1 on, often small, and often at or beside a multiple of 8.
    pub fn size(&mut self, most: i64) -> i64 {
        let most = if self.below(3) == 0 { most.min(24) } else { most };
        let size = 1 + self.below(most);
        match self.below(4) {
            0 => (size + 7) / 8 * 8,
            1 => (size + 7) / 8 * 8 - self.below(8),
            _ => size,
        }
        .clamp(1, most.max(1))
    }
}

/// A kernel on a device at sizes.
pub fn compiled(device: &Device, kernel: &Kernel, sizes: &[(&str, i64)]) -> Outcome<SizedKernel> {
    Ok(device.compile(kernel, &ModuleOptions::default())?.at(sizes)?)
}

/// Where the elements of an output lie.
enum Places {
    /// One after another.
    Dense,
    /// Where a layout says.
    Of(Box<Place>),
    /// Where the definition says: rows that numbers name.
    Named,
}

/// Runs a planned kernel, or both.
fn planned(device: &Device, plan: Planned, places: &Places) -> Outcome<String> {
    let (stream, sizes) = (device.stream()?, plan.sizes());
    let first = compiled(device, plan.kernel(), sizes)?;
    let second = plan.second().map(|second| compiled(device, second, sizes)).transpose()?;
    let bytes = plan.kernel().program().launch(sizes)?.bytes;
    let types = plan.inputs();
    let mut contents = Vec::new();
    for (number, element) in types.iter().enumerate() {
        contents.push(plan.numbers(number, *element, bytes[number] as usize / element.bytes() as usize));
    }
    let inputs = contents.iter().zip(&bytes).map(|(own, bytes)| {
        let mut own = own.clone();
        own.resize(*bytes as usize, 1);
        Guarded::of(device, &stream, &own)
    });
    let inputs = inputs.collect::<Outcome<Vec<_>>>()?;
    let left = bytes[plan.between()].iter().map(|bytes| Guarded::empty(device, &stream, *bytes));
    let mut left = left.collect::<Outcome<Vec<_>>>()?;
    let last = match plan.second() {
        None => bytes.last().copied(),
        Some(second) => second.program().launch(sizes)?.bytes.last().copied(),
    };
    let mut output = Guarded::empty(device, &stream, last.unwrap_or(0))?;
    let mut arguments = inputs.iter().map(Guarded::read).collect::<Outcome<Vec<Argument<'_>>>>()?;
    for own in &mut left {
        arguments.push(own.written()?);
    }
    if second.is_none() {
        arguments.push(output.written()?);
    }
    first.launch(&stream, &arguments)?;
    drop(arguments);
    if let Some(second) = second {
        let mut arguments = left.iter().map(Guarded::read).collect::<Outcome<Vec<Argument<'_>>>>()?;
        arguments.push(output.written()?);
        second.launch(&stream, &arguments)?;
    }
    stream.synchronize()?;
    let input = |tensor: usize, at: usize| {
        let width = types[tensor].bytes() as usize;
        if (at + 1) * width > contents[tensor].len() { 0 } else { bits_at(&contents[tensor], width, at) }
    };
    let mut definition = plan.definition(&input);
    let element = definition.wanted(0)?.element.bytes() as usize;
    for own in &inputs {
        own.untouched(&stream).map_err(|error| format!("an input: {error}"))?;
    }
    for own in &left {
        own.kept(&stream, 1, 0..own.bytes() as i64).map_err(|error| format!("what is left: {error}"))?;
    }
    let defined = plan.defined();
    let own: Vec<i64> = match places {
        Places::Dense => (0..defined as i64).collect(),
        Places::Of(place) => (0..place.size()).map(|at| place.offset(at)).collect::<Result<_, _>>()?,
        Places::Named => {
            let at = |index: usize| definition.wanted(index).map(|wanted| wanted.at as i64);
            (0..defined).map(at).collect::<Result<_, _>>()?
        }
    };
    let found = output.kept(&stream, element, own.iter().copied())?;
    let all = (COMPARED * plan.together()).max(COMPARED);
    for index in (0..defined).step_by(defined.div_ceil(all).max(1)) {
        let wanted = definition.wanted(index)?;
        wanted.distance(bits_at(&found, element, wanted.at))?;
    }
    Ok(format!("{} elements", own.len()))
}

/// A kernel of the library, at random sizes.
fn of_library(machine: &Machine, chance: &mut Chance) -> Option<(String, Planned)> {
    let all = library();
    let entry = &all[chance.below(all.len() as i64) as usize];
    let element = chance.one_of(entry.types);
    let digits = |chance: &mut Chance, count: usize, first: i64| {
        // The order of axes, by digits.
        let mut left: Vec<i64> = (first..first + count as i64).collect();
        (0..count).fold(0, |order, _| 10 * order + left.swap_remove(chance.below(left.len() as i64) as usize))
    };
    let most = if entry.sizes.len() > 3 { 12 } else { 700 };
    let sizes = entry.sizes.iter().map(|(name, own)| {
        let size = match *name {
            "ORDER" => digits(chance, 6, 0),
            "MODES" => *own,
            _ if entry.sizes.len() == 1 => chance.size(60_000),
            _ => chance.size(most),
        };
        (*name, size)
    });
    let mut sizes: Vec<(&str, i64)> = sizes.collect();
    // What a kernel asks of its sizes is said when it is refused: multiples of 8 do for all.
    for attempt in 0..2 {
        if let Ok(plan) =
            entry.plan(machine, EntryOptions { sizes: &sizes, element: Some(element), ..EntryOptions::default() })
        {
            let words: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
            return Some((format!("{} of {element}, {}", entry.name, words.join(" ")), plan));
        }
        if attempt == 0 {
            sizes
                .iter_mut()
                .filter(|(name, _)| !matches!(*name, "ORDER" | "MODES"))
                .for_each(|(_, size)| *size = (*size + 7) / 8 * 8);
        }
    }
    None
}

/// A layout of two or three modes with gaps, by rows or by columns, behind an offset.
fn place(chance: &mut Chance, extents: &[i64]) -> Outcome<(Place, Layout, i64)> {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    if chance.below(2) == 0 {
        order.reverse();
    }
    let (mut strides, mut step) = (vec![0; extents.len()], 1);
    for at in order {
        strides[at] = step;
        step *= extents[at];
        match chance.below(4) {
            0 => step = (step + 15) / 16 * 16,
            1 => step += chance.below(9),
            _ => {}
        }
    }
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let layout: Layout = format!("({}):({})", list(extents), list(&strides)).parse()?;
    let offset = if chance.below(2) == 0 { chance.below(20) } else { 0 };
    Ok((Place::from(&layout).at(offset)?, layout, offset))
}

/// The case of a number on a device: what it was and what was found.
fn outcome(device: &Device, number: u64) -> (String, Outcome<String>) {
    let machine = match device.machine() {
        Ok(machine) => machine,
        Err(error) => return ("a plan".into(), Err(error.into())),
    };
    let (machine, chance) = (&machine, &mut Chance::of(number));
    let elements = [Element::U8, Element::U16, Element::Bf16, Element::F16, Element::F32, Element::I32, Element::U64];
    match number % 8 {
        0..=2 => products::one(device, chance),
        3 => products::list(device, chance),
        4 => match of_library(machine, chance) {
            None => ("a kernel of the library".into(), Ok("no such sizes".into())),
            Some((words, plan)) => {
                let places = if words.starts_with("scatter") { Places::Named } else { Places::Dense };
                let run = planned(device, plan, &places);
                (words, run)
            }
        },
        5 => {
            let element = chance.one_of(&elements);
            let extents = [chance.size(200), chance.size(200), chance.size(4)];
            let extents = &extents[..2 + chance.below(2) as usize];
            let run = |chance: &mut Chance| -> Outcome<(String, Planned, Place)> {
                let ((from, from_text, from_at), (to, to_text, to_at)) =
                    (place(chance, extents)?, place(chance, extents)?);
                let words = format!("relayout of {element}, {from_text} + {from_at} to {to_text} + {to_at}");
                Ok((words, relayout(machine, from, element, to.clone(), element)?, to))
            };
            match run(chance) {
                Err(error) => ("a relayout".into(), Err(error)),
                Ok((words, plan, to)) => (words, planned(device, plan, &Places::Of(Box::new(to)))),
            }
        }
        6 => {
            let element = chance.one_of(&[Element::Bf16, Element::F16, Element::F32, Element::I32]);
            let extents = [chance.size(300), chance.size(300)];
            let statistic = chance.one_of(&[
                Statistic::Sum,
                Statistic::Mean,
                Statistic::Norm,
                Statistic::Maximum,
                Statistic::ArgMaximum,
            ]);
            let modes = chance.one_of(&[&[0_usize][..], &[1], &[0, 1]]);
            let run = |chance: &mut Chance| -> Outcome<(String, Planned)> {
                let (_, layout, _) = place(chance, &extents)?;
                let words = format!("{statistic:?} of {element} {layout} along {modes:?}");
                Ok((words, reduce(machine, statistic, (&layout, element), modes, ReduceOptions::default())?))
            };
            match run(chance) {
                Err(error) => ("a reduction".into(), Err(error)),
                Ok((words, plan)) => (words, planned(device, plan, &Places::Dense)),
            }
        }
        _ => tiles::one(device, chance),
    }
}

/// Runs the case of a number.
pub fn case(device: &Device, number: u64) -> Result<String, String> {
    let (words, outcome) = outcome(device, number);
    outcome.map(|found| format!("{words}: {found}")).map_err(|error| format!("{words}: {error}"))
}

/// Runs cases from a number on, on all cores, this many at most and so long: how many failed.
pub fn all(first: u64, count: u64, time: Duration) -> usize {
    let (next, failed, made) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    let work = || {
        let device = match Device::open(0) {
            Ok(device) => device,
            Err(error) => {
                println!("FAILED    a device: {error}");
                failed.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        while begin.elapsed() < time && failed.load(Ordering::Relaxed) < 20 {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first.saturating_add(count) {
                break;
            }
            made.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = case(&device, number) {
                println!("FAILED    case {number}, {error}");
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let (made, failed) = (made.into_inner(), failed.into_inner());
    println!("{made} random kernels from number {first} on, all outputs with guards; {failed} failed");
    failed as usize
}
