//! Elements changed indivisibly by many threads: the interpreter and the device, side by side.
//!
//! Law: sums, least and greatest numbers of what was there and of everything that threads gave are
//! the same in both, as they are in every order: numbers are small integers, of which sums in f32
//! and f64 are exact.

use tilewright_gpu::{Argument, Device};
use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, Reduction};

use crate::{Outcome, ensure, uncached};

/// How many numbers are given, and to how many places.
const GIVEN: i64 = 100_000;
const PLACES: i64 = 61;

/// Each of many threads gives a number, small and of any sign, to a place that its index names.
fn given(element: Element, reduction: Reduction) -> Result<Kernel, KernelError> {
    Kernel::build("given", |k: &Build| {
        let index = k.input::<i32>("index", &format!("{GIVEN}:1"))?.local_tile("256", k.block("x")?)?.thread_part()?;
        let y = k.tensor_of(element, "y", &format!("{PLACES}:1"), Role::Both)?;
        k.threads(256)?;
        let place: Num<'_> = index.load_predicated()?.numbers()?[0];
        let values = k.register(element, "1")?;
        values.fill((place * k.number(37_i32) + k.number(-900_i32)).to(element))?;
        y.at(&k.index_of(place)?)?.accumulate(&values, reduction)
    })
}

/// Sums, least and greatest numbers, of every type that has them.
pub(crate) fn agree(device: &Device) -> Outcome {
    // Places in an order without a pattern; the threads past the last one give theirs to place 0.
    let index: Vec<u8> = (0..GIVEN)
        .flat_map(|at| ((at * 7919 + at / 7) % PLACES + i64::from(at % 3 == 0)).to_le_bytes()[..4].to_vec())
        .collect();
    let mut kernels = 0;
    for reduction in [Reduction::Sum, Reduction::Minimum, Reduction::Maximum] {
        for element in [Element::I32, Element::U32, Element::U64, Element::F32, Element::F64] {
            if element.is_float() && reduction != Reduction::Sum {
                continue;
            }
            let kernel = given(element, reduction)?;
            // All bits 0: the number 0 of every type.
            let first = vec![0; (PLACES * i64::from(element.bytes())) as usize];
            let mut interpreter = Interpreter::new(kernel.program(), &[])?;
            interpreter.bytes(0, &index)?.bytes(1, &first)?;
            let expected = interpreter.run(Schedule::ALL[0])?.bytes(1)?.to_vec();

            let stream = device.stream()?;
            let mut places = device.allocate(index.len() as u64)?;
            places.write(&stream, 0, &index)?;
            let mut found = device.allocate(first.len() as u64)?;
            found.write(&stream, 0, &first)?;
            let arguments: [Argument<'_>; 2] = [(&places).into(), (&mut found).into()];
            device.compile(&kernel, &uncached())?.at(&[])?.launch(&stream, &arguments)?;
            let mut left = vec![0; first.len()];
            found.read(&stream, 0, &mut left)?;
            ensure(expected != first && left == expected, || format!("{reduction:?} of {element} differs"))?;
            kernels += 1;
        }
    }
    Ok(format!("{kernels} kernels, {GIVEN} numbers to {PLACES} places each"))
}

#[cfg(test)]
mod tests {
    use super::given;
    use tilewright_kernel::{Element, Reduction};

    #[test]
    fn the_kernels_are_written() {
        for element in [Element::I32, Element::F64] {
            given(element, Reduction::Sum).unwrap();
        }
        given(Element::U64, Reduction::Maximum).unwrap();
    }
}
