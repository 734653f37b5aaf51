//! Elements changed indivisibly by many threads: the interpreter and the device, side by side.
//!
//! Law: sums, least and greatest numbers of what was there and of everything that threads gave are
//! the same in both, as they are in every order: numbers are small integers, of which sums in f32
//! and f64 are exact.

use tilewright_gpu::{Argument, Device, ModuleOptions};
use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, Reduction};
use tilewright_layout::Layout;

use crate::{Outcome, ensure};

/// How many numbers are given, and to how many places.
const GIVEN: i64 = 100_000;
const PLACES: i64 = 61;
/// What is there before: among the numbers that are given, so that the least and the greatest of
/// them both count.
const FIRST: i32 = 500;

/// Each of many threads gives a number, small and of any sign, to a place that its index names.
fn given(element: Element, reduction: Reduction) -> Result<Kernel, KernelError> {
    Kernel::build("given", |k: &Build| {
        let index =
            k.input::<i32>("index", Layout::strided(GIVEN, 1))?.local_tile(256, k.block("x")?)?.thread_part()?;
        let y = k.tensor_of(element, "y", Layout::strided(PLACES, 1), Role::Both)?;
        k.threads(256)?;
        let place: Num<'_> = index.load_predicated()?.numbers()?[0];
        let values = k.register(element, 1)?;
        values.fill((place * k.number(37_i32) + k.number(-900_i32)).to(element))?;
        y.at(&k.index_of(place)?)?.accumulate(&values, reduction)
    })
}

/// The bytes of a number of a type.
fn bytes_of(element: Element, number: i32) -> Vec<u8> {
    match element {
        Element::F32 => (number as f32).to_le_bytes().to_vec(),
        Element::F64 => f64::from(number).to_le_bytes().to_vec(),
        _ => i64::from(number).to_le_bytes()[..element.bytes() as usize].to_vec(),
    }
}

/// Places in an order without a pattern; some are one past the last, and leave nothing.
fn index() -> Vec<u8> {
    let place = |at: i64| (at * 7919 + at / 7) % PLACES + i64::from(at % 3 == 0);
    (0..GIVEN).flat_map(|at| place(at).to_le_bytes()[..4].to_vec()).collect()
}

/// Every reduction with every type that has it.
fn kinds() -> impl Iterator<Item = (Element, Reduction)> {
    let elements = [Element::I32, Element::U32, Element::U64, Element::F32, Element::F64];
    let all = [Reduction::Sum, Reduction::Minimum, Reduction::Maximum];
    let pairs = all.into_iter().flat_map(move |reduction| elements.map(|element| (element, reduction)));
    pairs.filter(|(element, reduction)| !element.is_float() || *reduction == Reduction::Sum)
}

/// Sums, least and greatest numbers, of every type that has them.
pub(crate) fn agree(device: &Device) -> Outcome {
    let index = index();
    let mut kernels = 0;
    for (element, reduction) in kinds() {
        let kernel = given(element, reduction)?;
        let bytes = element.bytes() as usize;
        let first = bytes_of(element, FIRST).repeat(PLACES as usize);
        let mut interpreter = Interpreter::new(kernel.program(), &[])?;
        interpreter.bytes(0, &index)?.bytes(1, &first)?;
        let expected = interpreter.run(Schedule::ALL[0])?.bytes(1)?.to_vec();

        let stream = device.stream()?;
        let mut places = device.allocate(index.len() as u64)?;
        places.write(&stream, 0, &index)?;
        let mut found = device.allocate(first.len() as u64)?;
        found.write(&stream, 0, &first)?;
        let arguments: [Argument<'_>; 2] = [(&places).into(), (&mut found).into()];
        device.compile(&kernel, &ModuleOptions::default())?.at(&[])?.launch(&stream, &arguments)?;
        let mut left = vec![0; first.len()];
        found.read(&stream, 0, &mut left)?;
        let changed = expected.chunks(bytes).zip(first.chunks(bytes)).filter(|(after, before)| after != before);
        let changed = changed.count();
        ensure(changed > 10, || format!("{reduction:?} of {element} changes {changed} of {PLACES} places alone"))?;
        ensure(left == expected, || format!("{reduction:?} of {element} differs"))?;
        kernels += 1;
    }
    Ok(format!("{kernels} kernels, {GIVEN} numbers to {PLACES} places each"))
}

#[cfg(test)]
mod tests {
    use super::{FIRST, PLACES, bytes_of, given, index};
    use tilewright_kernel::interpret::{Interpreter, Schedule};

    #[test]
    fn every_reduction_changes_places() {
        let index: Vec<u8> = index();
        for (element, reduction) in super::kinds() {
            let kernel = given(element, reduction).unwrap();
            let first = bytes_of(element, FIRST).repeat(PLACES as usize);
            let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
            interpreter.bytes(0, &index).unwrap().bytes(1, &first).unwrap();
            let left = interpreter.run(Schedule::ALL[0]).unwrap().bytes(1).unwrap().to_vec();
            let bytes = element.bytes() as usize;
            let changed = left.chunks(bytes).zip(first.chunks(bytes)).filter(|(after, before)| after != before).count();
            assert!(changed > 10, "{reduction:?} of {element}: {changed}");
        }
    }
}
