//! The interpreter and the device, side by side.
//!
//! Law: a kernel produces the same bits on the device and in the interpreter, for every operation
//! and conversion of numbers, the MMA instructions, and exchanges between threads. Exceptions: any
//! NaN equals any other, and approximate instructions may differ by the error that the
//! documentation states. Guards before and after the output must be unchanged.

use std::error::Error;

use tilewright_gpu::{Argument, Device, Memory, ModuleOptions};
use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, View};
use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
use tilewright_layout::{IntoShape, Layout, Tiler};

/// The size of the guards before and after an output, in bytes, and their contents.
const GUARD: u64 = 4096;
const POISON: u8 = 0xa5;
/// How many numbers each operation gets.
const COUNT: usize = 8192;

/// Random bits (splitmix64).
struct Chance(u64);

impl Chance {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Exponent and mantissa bits of a type; none of an integer.
fn parts(element: Element) -> Option<(u32, u32)> {
    Some(match element {
        Element::E4M3 => (4, 3),
        Element::E5M2 => (5, 2),
        Element::F16 => (5, 10),
        Element::Bf16 => (8, 7),
        Element::F32 => (8, 23),
        Element::F64 => (11, 52),
        _ => return None,
    })
}

/// Numbers of a type: the ends, infinities, NaN and subnormals, small ones, and any bits.
fn numbers(element: Element, chance: &mut Chance) -> Vec<u64> {
    let all = u64::MAX >> (64 - element.bits());
    let ends = [0, 1, 2, all, all - 1, all >> 1, (all >> 1) + 1, (all >> 1) - 1];
    (0..COUNT)
        .map(|at| match (at, parts(element)) {
            (0..8, _) => ends[at],
            // A small number: an exponent near that of 1.
            (_, Some((exponent, mantissa))) if at % 2 == 0 => {
                let bias = (1_u64 << (exponent - 1)) - 1;
                let near = bias.wrapping_add(chance.bits() % 7).wrapping_sub(3);
                let sign = (chance.bits() & 1) << (exponent + mantissa);
                sign | near << mantissa | chance.bits() & ((1 << mantissa) - 1)
            }
            (_, None) if at % 2 == 0 => (chance.bits() % 64).wrapping_sub(32) & all,
            _ => chance.bits() & all,
        })
        .collect()
}

/// The value of a floating-point number; none of NaN and of integers.
fn value(element: Element, bits: u64) -> Option<f64> {
    let (exponent, mantissa) = parts(element)?;
    let sign = if bits >> (exponent + mantissa) & 1 == 1 { -1.0 } else { 1.0 };
    let (e, m) = (bits >> mantissa & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1));
    let bias = (1_i32 << (exponent - 1)) - 1;
    let fraction = m as f64 / (1_u64 << mantissa) as f64;
    let highest = (1 << exponent) - 1;
    if element == Element::E4M3 {
        // No infinities: only all ones is NaN.
        if e == highest && m == (1 << mantissa) - 1 {
            return None;
        }
    } else if e == highest {
        return if m == 0 { Some(sign * f64::INFINITY) } else { None };
    }
    Some(sign * if e == 0 { fraction * 2_f64.powi(1 - bias) } else { (1.0 + fraction) * 2_f64.powi(e as i32 - bias) })
}

fn bytes(element: Element, numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(element.bytes() as usize)).collect()
}

fn bits(element: Element, bytes: &[u8]) -> Vec<u64> {
    let whole = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    bytes.chunks_exact(element.bytes() as usize).map(whole).collect()
}

/// How far an approximation may be from the interpreter's number.
#[derive(Clone, Copy)]
enum Within {
    /// Not at all.
    Equal,
    /// A relative error.
    Relative(f64),
    /// An absolute error, or a relative one.
    Either(f64, f64),
}

/// The last tensor after a kernel: in the interpreter, and on the device.
pub(crate) fn both(device: &Device, kernel: &Kernel, inputs: &[Vec<u8>]) -> Result<[Vec<u8>; 2], Box<dyn Error>> {
    let mut interpreter = Interpreter::new(kernel.program(), &[])?;
    for (number, input) in inputs.iter().enumerate() {
        interpreter.bytes(number, input)?;
    }
    let expected = interpreter.run(Schedule::ALL[0])?.bytes(inputs.len())?.to_vec();

    let stream = device.stream()?;
    let mut memory = Vec::new();
    for input in inputs {
        let mut place = device.allocate(input.len() as u64)?;
        place.write(&stream, 0, input)?;
        memory.push(place);
    }
    let bytes = expected.len() as u64;
    let mut output = device.allocate(bytes + 2 * GUARD)?;
    output.fill_bytes(&stream, POISON)?;
    let written = output.part_mut(GUARD, bytes)?;
    let arguments: Vec<Argument<'_>> = memory.iter().map(|place: &Memory| place.into()).chain([written]).collect();
    device.compile(kernel, &ModuleOptions::default())?.at(&[])?.launch(&stream, &arguments)?;
    drop(arguments);
    let mut left = vec![0; expected.len() + 2 * GUARD as usize];
    output.read(&stream, 0, &mut left)?;
    let (before, rest) = left.split_at(GUARD as usize);
    let (found, behind) = rest.split_at(expected.len());
    if before.iter().chain(behind).any(|byte| *byte != POISON) {
        return Err(format!("bytes beside the output of {} were written", kernel.program().name).into());
    }
    Ok([expected, found.to_vec()])
}

/// Compares what both left; how many numbers were compared.
fn compare(
    name: &str,
    element: Element,
    [expected, found]: [Vec<u8>; 2],
    within: Within,
) -> Result<usize, Box<dyn Error>> {
    let (expected, found) = (bits(element, &expected), bits(element, &found));
    let number = |bits: u64| value(element, bits);
    for (at, (wanted, got)) in expected.iter().zip(&found).enumerate() {
        let near = match (parts(element).is_some(), number(*wanted), number(*got), within) {
            (true, None, None, _) => true,
            (true, Some(wanted), Some(got), Within::Relative(error)) => {
                wanted == got
                    || (wanted - got).abs() <= error * wanted.abs()
                    || wanted.abs().max(got.abs()) < f64::from(f32::MIN_POSITIVE)
            }
            (true, Some(wanted), Some(got), Within::Either(absolute, relative)) => {
                wanted == got || (wanted - got).abs() <= absolute.max(relative * wanted.abs())
            }
            _ => wanted == got,
        };
        if !near {
            return Err(
                format!("{name}: element {at} is {got:#x} on the device, {wanted:#x} in the interpreter").into()
            );
        }
    }
    Ok(expected.len())
}

type Computed = for<'k> fn(Num<'k>, Num<'k>, Num<'k>) -> Num<'k>;

/// The element of this thread.
fn own<'k>(k: &'k Build, tensor: &View<'k>) -> Result<View<'k>, KernelError> {
    tensor.local_tile(256, k.block("x")?)?.thread_part()
}

/// `y(i) = f(a(i), b(i), c(i))`.
fn elementwise(from: Element, to: Element, f: Computed) -> Result<Kernel, KernelError> {
    Kernel::build("elementwise", |k| {
        let layout = format!("{COUNT}:1");
        let tensor = |name: &str| k.tensor_of(from, name, &layout, Role::Input);
        let (a, b, c) = (tensor("a")?, tensor("b")?, tensor("c")?);
        let y = k.tensor_of(to, "y", &layout, Role::Output)?;
        let number = |tensor: &_| Ok::<_, KernelError>(own(k, tensor)?.load()?.numbers()?[0]);
        let value = f(number(&a)?, number(&b)?, number(&c)?);
        let place = own(k, &y)?;
        let computed = place.fragment()?;
        computed.set(&[value])?;
        place.store(&computed)
    })
}

/// Every operation of numbers that a type has.
fn operations(element: Element) -> Vec<(&'static str, Computed, Within)> {
    let mut list: Vec<(&'static str, Computed, Within)> = vec![
        ("a + b", |a, b, _| a + b, Within::Equal),
        ("a - b", |a, b, _| a - b, Within::Equal),
        ("a * b", |a, b, _| a * b, Within::Equal),
        ("a * b + c", |a, b, c| a.multiply_add(b, c), Within::Equal),
        ("min", |a, b, _| a.min(b), Within::Equal),
        ("max", |a, b, _| a.max(b), Within::Equal),
        ("a < b", |a, b, c| a.lt(b).select(c, a), Within::Equal),
        ("a <= b", |a, b, c| a.le(b).select(c, b), Within::Equal),
        ("a > b", |a, b, c| a.gt(b).select(c, a), Within::Equal),
        ("a = b", |a, b, c| a.eq(b).not().select(c, a), Within::Equal),
        ("both", |a, b, c| a.lt(b).and(b.lt(c)).select(a, c), Within::Equal),
        ("either", |a, b, c| a.lt(b).or(b.lt(c)).select(a, c), Within::Equal),
    ];
    if element.is_float() || element.is_signed_integer() {
        list.push(("-a", |a, _, _| -a, Within::Equal));
        list.push(("|a|", |a, _, _| a.abs(), Within::Equal));
    }
    match element {
        Element::F32 | Element::F64 => {
            list.push(("a / b", |a, b, _| a / b, Within::Equal));
            list.push(("sqrt", |a, _, _| a.sqrt(), Within::Equal));
        }
        Element::U16 | Element::I16 | Element::U32 | Element::I32 | Element::U64 | Element::I64 => {
            // By a number that is not 0, for which PTX defines nothing.
            list.push(("a / b", |a, b, _| a / b.eq(b.like(0.0)).select(b.like(3.0), b), Within::Equal));
        }
        _ => {}
    }
    if element == Element::F32 {
        list.push(("1/a", |a, _, _| a.recip(), Within::Relative(1.0 / f64::from(1 << 22))));
        list.push(("1/sqrt", |a, _, _| a.rsqrt(), Within::Relative(1.0 / f64::from(1 << 21))));
        list.push(("2^a", |a, _, _| a.exp2(), Within::Relative(1.0 / f64::from(1 << 21))));
        list.push(("log2", |a, _, _| a.log2(), Within::Either(1.0 / f64::from(1 << 21), 1.0 / f64::from(1 << 21))));
        list.push(("tanh", |a, _, _| a.tanh(), Within::Relative(1.0 / f64::from(1 << 9))));
    }
    list
}

const ARITHMETIC: [Element; 10] = [
    Element::U16,
    Element::I16,
    Element::U32,
    Element::I32,
    Element::U64,
    Element::I64,
    Element::F16,
    Element::Bf16,
    Element::F32,
    Element::F64,
];

/// Every operation of every type.
pub(crate) fn arithmetic(device: &Device) -> Result<String, Box<dyn Error>> {
    let (mut kernels, mut compared) = (0, 0);
    let mut wrong = Vec::new();
    for element in ARITHMETIC {
        let mut chance = Chance(u64::from(element.bits()) + 7);
        let inputs: Vec<Vec<u8>> = (0..3).map(|_| bytes(element, &numbers(element, &mut chance))).collect();
        for (name, f, within) in operations(element) {
            let name = format!("{name} of {element}");
            let outcome = elementwise(element, element, f)
                .map_err(Into::into)
                .and_then(|kernel| both(device, &kernel, &inputs))
                .and_then(|left| compare(&name, element, left, within));
            match outcome {
                Ok(count) => (kernels, compared) = (kernels + 1, compared + count),
                Err(error) => wrong.push(error.to_string()),
            }
        }
    }
    said(kernels, compared, &wrong)
}

/// Every conversion between two types.
pub(crate) fn conversions(device: &Device) -> Result<String, Box<dyn Error>> {
    const TO: [(Element, Computed); 14] = [
        (Element::U8, |a, _, _| a.to(Element::U8)),
        (Element::I8, |a, _, _| a.to(Element::I8)),
        (Element::U16, |a, _, _| a.to(Element::U16)),
        (Element::I16, |a, _, _| a.to(Element::I16)),
        (Element::U32, |a, _, _| a.to(Element::U32)),
        (Element::I32, |a, _, _| a.to(Element::I32)),
        (Element::U64, |a, _, _| a.to(Element::U64)),
        (Element::I64, |a, _, _| a.to(Element::I64)),
        (Element::E4M3, |a, _, _| a.to(Element::E4M3)),
        (Element::E5M2, |a, _, _| a.to(Element::E5M2)),
        (Element::F16, |a, _, _| a.to(Element::F16)),
        (Element::Bf16, |a, _, _| a.to(Element::Bf16)),
        (Element::F32, |a, _, _| a.to(Element::F32)),
        (Element::F64, |a, _, _| a.to(Element::F64)),
    ];
    let (mut kernels, mut compared) = (0, 0);
    let mut wrong = Vec::new();
    for from in Element::ALL {
        let mut chance = Chance(u64::from(from.bits()) + 99);
        let inputs: Vec<Vec<u8>> = (0..3).map(|_| bytes(from, &numbers(from, &mut chance))).collect();
        for (to, f) in TO {
            let name = format!("{from} to {to}");
            let outcome = elementwise(from, to, f)
                .map_err(Into::into)
                .and_then(|kernel| both(device, &kernel, &inputs))
                .and_then(|left| compare(&name, to, left, Within::Equal));
            match outcome {
                Ok(count) => (kernels, compared) = (kernels + 1, compared + count),
                Err(error) => wrong.push(error.to_string()),
            }
        }
    }
    said(kernels, compared, &wrong)
}

/// MMA instructions, with the types of operands and accumulators, rows, and depth.
const MATRICES: [(&str, Element, Element, usize, usize); 9] = [
    ("SM80_16x8x16_F32F16F16F32_TN", Element::F16, Element::F32, 16, 16),
    ("SM80_16x8x16_F16F16F16F16_TN", Element::F16, Element::F16, 16, 16),
    ("SM80_16x8x16_F32BF16BF16F32_TN", Element::Bf16, Element::F32, 16, 16),
    ("SM80_16x8x8_F32TF32TF32F32_TN", Element::F32, Element::F32, 16, 8),
    ("SM80_8x8x4_F64F64F64F64_TN", Element::F64, Element::F64, 8, 4),
    ("SM80_16x8x32_S32S8S8S32_TN", Element::I8, Element::I32, 16, 32),
    ("SM80_16x8x32_S32U8U8S32_TN", Element::U8, Element::I32, 16, 32),
    ("SM89_16x8x32_F32E4M3E4M3F32_TN", Element::E4M3, Element::F32, 16, 32),
    ("SM89_16x8x32_F32E5M2E5M2F32_TN", Element::E5M2, Element::F32, 16, 32),
];

/// One instruction, by one warp: `D = A B + C`.
fn one_product(name: &str, factor: Element, sum: Element, rows: usize, depth: usize) -> Result<Kernel, Box<dyn Error>> {
    let tiler = Tiler::from_shape(&(rows, 8, depth).into_shape()?)?;
    let mma = TiledMma::new(MmaAtom::named(name)?, &"(1,1,1)".parse()?, &tiler)?;
    let kernel = Kernel::build("one_product", |k| {
        let a = k.tensor_of(factor, "a", Layout::strided((rows, depth), (depth, 1)), Role::Input)?;
        let b = k.tensor_of(factor, "b", Layout::strided((8, depth), (depth, 1)), Role::Input)?;
        let c = k.tensor_of(sum, "c", Layout::strided((rows, 8), (8, 1)), Role::Input)?;
        let d = k.tensor_of(sum, "d", Layout::strided((rows, 8), (8, 1)), Role::Output)?;
        k.grid(Axis::X, 1)?;
        let (a, b) = (a.partition_mma(&mma, Operand::A)?.load()?, b.partition_mma(&mma, Operand::B)?.load()?);
        let sums = c.partition_mma(&mma, Operand::C)?.load()?;
        k.mma(&mma, &sums, &a, &b, &sums)?;
        d.partition_mma(&mma, Operand::C)?.store(&sums)
    })?;
    Ok(kernel)
}

/// Operands and accumulators of one MMA: small integers, whose products and sums every type can
/// represent.
fn small_factors(factor: Element, sum: Element, rows: usize, depth: usize) -> [Vec<u8>; 3] {
    let mut chance = Chance(5);
    let mut small = |element: Element, count: usize| {
        let numbers: Vec<u64> = (0..count).map(|_| small_number(element, chance.bits() % 4)).collect();
        bytes(element, &numbers)
    };
    [small(factor, rows * depth), small(factor, 8 * depth), small(sum, rows * 8)]
}

/// One MMA of each instruction.
pub(crate) fn matrices(device: &Device) -> Result<String, Box<dyn Error>> {
    let (mut kernels, mut compared) = (0, 0);
    let mut wrong = Vec::new();
    for (name, factor, sum, rows, depth) in MATRICES {
        let outcome = one_product(name, factor, sum, rows, depth)
            .and_then(|kernel| both(device, &kernel, &small_factors(factor, sum, rows, depth)))
            .and_then(|left| compare(name, sum, left, Within::Equal));
        match outcome {
            Ok(count) => (kernels, compared) = (kernels + 1, compared + count),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    said(kernels, compared, &wrong)
}

/// The bits of 0, 1, 2 or 3.
fn small_number(element: Element, number: u64) -> u64 {
    match parts(element) {
        None => number,
        Some(_) if number == 0 => 0,
        Some((exponent, mantissa)) => {
            let bias = (1_u64 << (exponent - 1)) - 1;
            let power = number.ilog2() as u64;
            (bias + power) << mantissa | (number & 1 & power) << (mantissa - 1)
        }
    }
}

fn said(kernels: usize, compared: usize, wrong: &[String]) -> Result<String, Box<dyn Error>> {
    if wrong.is_empty() {
        return Ok(format!("{kernels} kernels, {compared} numbers"));
    }
    Err(format!("{kernels} kernels agree, {} do not:\n  {}", wrong.len(), wrong.join("\n  ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a device, at least the kernels are written and run.
    #[test]
    fn the_kernels_run_in_the_interpreter() {
        for element in ARITHMETIC {
            let mut chance = Chance(1);
            let input = bytes(element, &numbers(element, &mut chance));
            for (name, f, _) in operations(element) {
                let kernel =
                    elementwise(element, element, f).unwrap_or_else(|error| panic!("{name} {element}: {error}"));
                let mut run = Interpreter::new(kernel.program(), &[]).unwrap();
                for tensor in 0..3 {
                    run.bytes(tensor, &input).unwrap();
                }
                run.run(Schedule::ALL[0]).unwrap_or_else(|found| panic!("{name} of {element}: {found}"));
                for target in tilewright_kernel::ptx::Target::ALL {
                    tilewright_kernel::ptx::write(kernel.program(), target)
                        .unwrap_or_else(|error| panic!("{name} {element}: {error}"));
                }
            }
        }
        assert_eq!(
            [0, 1, 2, 3].map(|number| value(Element::E4M3, small_number(Element::E4M3, number))),
            [0.0, 1.0, 2.0, 3.0].map(Some)
        );
    }
}
