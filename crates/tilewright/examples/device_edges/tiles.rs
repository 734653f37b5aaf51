//! Random tile programs: those of the library, and products with an output of any pitch.

use tilewright::gpu::{Argument, Device};
use tilewright::kernel::interpret::{Interpreter, Schedule};
use tilewright::kernel::program::memory::Role;
use tilewright::kernel::{Element, Program as Kernel};
use tilewright::layout::AnyLayout;
use tilewright::planners::any_numbers;
use tilewright::tile::{LIBRARY, Program};

use crate::chance::{Chance, compiled};
use crate::guarded::{Guarded, Outcome};

/// How far the device may be from the interpreter, which adds up in another order.
const RELATIVE: f64 = 0.03;
const ABSOLUTE: f64 = 0.03;
/// The same where an operand is rounded to e4m3 on the way, of the greatest number that is read:
/// its numbers below 1 are 1/16 apart, so one that lies halfway between two moves by 1/16 if the
/// exponential differs in its last bit, and is multiplied by an element.
const RELATIVE_OF_8_BITS: f64 = 1.0 / 16.0;

/// A product of bf16 whose rows lie this many elements apart: bulk stores leave where they may.
fn product(chance: &mut Chance) -> String {
    let [m, n, k] = chance.one_of(&[[128, 64, 64], [64, 32, 32], [128, 128, 64]]);
    let (columns, line) =
        chance.one_of(&[("N", "P"), ("N", "P{div=8}"), ("N{div=8}", "P{div=8}"), ("N{div=4}", "P{div=8}")]);
    format!(
        "tile product {{
    input  a: bf16 (M,K{{div=8}}):(K,1)
    input  b: bf16 (K{{div=8}},{columns}):(1,K)
    output d: bf16 (M,{columns}):({line},1)
    grid ceil(M/{m}), ceil(N/{n})
    loop k < ceil(K/{k}) with sum = broadcast(f32(0), ({m},{n})) {{
        next dot(load(a, ({m},{k}), (block.x, k)), load(b, ({k},{n}), (k, block.y)), sum)
    }} -> sum
    store(d, (block.x, block.y), bf16(sum))
}}"
    )
}

/// Sizes that the facts of a kernel admit.
fn sizes<'k>(kernel: &'k Kernel, chance: &mut Chance) -> Vec<(&'k str, i64)> {
    let mut found: Vec<(&str, i64)> = Vec::new();
    for size in &kernel.sizes {
        let (Some(name), facts) = (size.name(), size.facts()) else { continue };
        let divisor = facts.divisor().max(1);
        let least = facts.least().unwrap_or(1).max(1);
        let greatest = facts.greatest().unwrap_or(i64::MAX);
        // A pitch is no less than the columns.
        let before = found.iter().find(|(known, _)| *known == "N").map_or(0, |(_, size)| *size);
        let own = if name == "P" { before + chance.below(24) } else { chance.size(180) };
        let own = (own.max(least) + divisor - 1) / divisor * divisor;
        found.push((name, own.min(greatest)));
    }
    found
}

/// A number of a type.
fn value(element: Element, bytes: &[u8]) -> f64 {
    let bits = bytes.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    match element {
        Element::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        Element::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Element::F32 => f64::from(f32::from_bits(bits as u32)),
        Element::F64 => f64::from_bits(bits),
        _ => bits as f64,
    }
}

pub fn one(device: &Device, chance: &mut Chance) -> (String, Outcome<String>) {
    let (name, text) = match chance.below(3) {
        0 => {
            let tilewright::tile::Entry { name, text, .. } = LIBRARY[chance.below(LIBRARY.len() as i64) as usize];
            (name.to_string(), text.to_string())
        }
        _ => ("a product in tiles".to_string(), product(chance)),
    };
    let mut words = name;
    let mut run = || -> Outcome<String> {
        let program: Program = text.parse()?;
        let compiled_program = program.compile(&device.machine()?)?;
        let kernel = compiled_program.kernel();
        let sizes = sizes(kernel.program(), chance);
        words = format!("{words}, {sizes:?}");
        launched(device, kernel, &sizes, chance)
    };
    let outcome = run();
    (words, outcome)
}

fn launched(
    device: &Device,
    kernel: &tilewright::kernel::Kernel,
    sizes: &[(&str, i64)],
    chance: &mut Chance,
) -> Outcome<String> {
    let (program, stream) = (kernel.program(), device.stream()?);
    let mut interpreter = Interpreter::new(program, sizes)?;
    let (mut memory, mut greatest) = (Vec::new(), 0.0_f64);
    for (number, tensor) in program.tensors().enumerate() {
        let (bytes, width) = (interpreter.bytes_of(number)?, tensor.element.bytes() as usize);
        let contents = match (tensor.role, tensor.element.is_float()) {
            (Role::Output, _) => {
                memory.push(Guarded::empty(device, &stream, bytes as u64)?);
                continue;
            }
            (Role::Both, _) => vec![0; bytes],
            (_, true) => any_numbers(tensor.element, bytes / width, number as u64 + 1),
            // Integers are places, most of them: small ones.
            (_, false) => {
                let by = 1 + chance.below(7);
                let number = |at: usize| (at as i64 * by % 5).to_le_bytes();
                (0..bytes / width).flat_map(|at| number(at).into_iter().take(width)).collect()
            }
        };
        if tensor.element.is_float() {
            let bits = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
            let numbers = contents.chunks_exact(width).map(|bytes| tensor.element.to_f64(bits(bytes)).abs());
            greatest = numbers.fold(greatest, f64::max);
        }
        interpreter.bytes(number, &contents)?;
        memory.push(Guarded::of(device, &stream, &contents)?);
    }
    // Whether numbers that are read name places.
    let named = program.tensors().any(|tensor| tensor.role != Role::Output && !tensor.element.is_float());
    let small = program.tensors().any(|tensor| matches!(tensor.element, Element::E4M3 | Element::E5M2));
    let absolute = if small { ABSOLUTE + RELATIVE_OF_8_BITS * greatest } else { ABSOLUTE };
    let expected = match interpreter.run(Schedule::ALL[0]) {
        Ok(expected) => expected,
        // These numbers are none for this program, as two that name one place, or these sizes are
        // none.
        Err(findings) if findings[0].code() == "E1014" => return Ok("left out".to_string()),
        Err(findings) if named && matches!(findings[0].code(), "E1013" | "E1016" | "E1017") => {
            return Ok("left out".to_string());
        }
        Err(findings) => return Err(format!("the interpreter: {}", findings[0]).into()),
    };
    let ready = compiled(device, kernel, sizes)?;
    let mut arguments: Vec<Argument<'_>> = Vec::new();
    for (tensor, own) in program.tensors().zip(&mut memory) {
        arguments.push(if tensor.role == Role::Input { own.read()? } else { own.written()? });
    }
    ready.launch(&stream, &arguments)?;
    drop(arguments);
    stream.synchronize()?;
    let layouts = program.layouts(sizes)?;
    for ((number, tensor), (own, layout)) in program.tensors().enumerate().zip(memory.iter().zip(&layouts)) {
        if tensor.role == Role::Input {
            own.untouched(&stream)?;
            continue;
        }
        let places = match layout {
            AnyLayout::Integer(own) => (0..own.size()).map(|at| own.eval(&at)).collect::<Result<Vec<i64>, _>>()?,
            AnyLayout::Composed(own) => (0..own.size()).map(|at| own.eval(&at)).collect::<Result<Vec<i64>, _>>()?,
            other => return Err(format!("{other} is no layout of a tensor").into()),
        };
        let width = tensor.element.bytes() as usize;
        let left = own.kept(&stream, width, places.iter().copied())?;
        let wanted = expected.bytes(number)?;
        for place in places {
            let at = place as usize * width;
            let [found, wanted] = [&left, wanted].map(|bytes| value(tensor.element, &bytes[at..at + width]));
            let near =
                (found - wanted).abs() <= absolute + RELATIVE * wanted.abs() || found.is_nan() && wanted.is_nan();
            if !near {
                return Err(format!("element {place} of `{}` is {found}, not {wanted}", tensor.name).into());
            }
        }
    }
    Ok(format!("{} tensors", layouts.len()))
}
