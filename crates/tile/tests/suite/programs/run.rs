//! Running a kernel on numbers of f64, which are rounded to the types of its tensors.

use half::{bf16, f16};
use tilewright_kernel::interpret::Interpreter;
use tilewright_tile::{Compiled, Element};

/// Sizes, and the contents of inputs.
pub struct Case<'c> {
    pub sizes: Vec<(&'c str, i64)>,
    pub inputs: Vec<(&'c str, Vec<f64>)>,
}

impl<'c> Case<'c> {
    pub fn new(sizes: &[(&'c str, i64)], inputs: &[(&'c str, Vec<f64>)]) -> Case<'c> {
        Case { sizes: sizes.to_vec(), inputs: inputs.to_vec() }
    }
}

/// What a byte of e4m3 stands for: a sign, four bits of exponent and three behind the first digit.
fn e4m3(byte: u8) -> f64 {
    let (exponent, digits) = (i32::from(byte >> 3 & 15), f64::from(byte & 7));
    let size = match (exponent, byte & 7) {
        (15, 7) => f64::NAN,
        (0, _) => digits / 8.0 * 2.0_f64.powi(-6),
        _ => (1.0 + digits / 8.0) * 2.0_f64.powi(exponent - 7),
    };
    if byte > 127 { -size } else { size }
}

/// The byte of a number that e4m3 has.
fn e4m3_of(value: f64) -> u8 {
    (0..=255).find(|byte| e4m3(*byte).to_bits() == value.to_bits()).unwrap_or_else(|| panic!("{value} is none of e4m3"))
}

fn bytes(values: &[f64], element: Element) -> Vec<u8> {
    let each = |value: &f64| match element {
        Element::F32 => (*value as f32).to_le_bytes().to_vec(),
        Element::F16 => f16::from_f64(*value).to_le_bytes().to_vec(),
        Element::Bf16 => bf16::from_f64(*value).to_le_bytes().to_vec(),
        Element::I32 => (*value as i32).to_le_bytes().to_vec(),
        Element::I64 => (*value as i64).to_le_bytes().to_vec(),
        Element::F64 => value.to_le_bytes().to_vec(),
        Element::I8 => (*value as i8).to_le_bytes().to_vec(),
        Element::U8 => (*value as u8).to_le_bytes().to_vec(),
        Element::E4M3 => vec![e4m3_of(*value)],
        // The upper half of an f16.
        Element::E5M2 => vec![(f16::from_f64(*value).to_bits() >> 8) as u8],
        other => panic!("{other}"),
    };
    values.iter().flat_map(each).collect()
}

fn values(bytes: &[u8], element: Element) -> Vec<f64> {
    let each = |bytes: &[u8]| match element {
        Element::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        Element::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        Element::Bf16 => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        Element::I32 => f64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
        Element::I64 => i64::from_le_bytes(bytes.try_into().unwrap()) as f64,
        Element::F64 => f64::from_le_bytes(bytes.try_into().unwrap()),
        Element::I8 => f64::from(bytes[0] as i8),
        Element::U8 => f64::from(bytes[0]),
        Element::E4M3 => e4m3(bytes[0]),
        Element::E5M2 => f16::from_bits(u16::from(bytes[0]) << 8).to_f64(),
        other => panic!("{other}"),
    };
    bytes.chunks(element.bytes() as usize).map(each).collect()
}

/// What a kernel leaves in an output, every schedule compared.
pub fn kernel(compiled: &Compiled, case: &Case<'_>, output: &str) -> Vec<f64> {
    let element = |name: &str| compiled.source().tensors().iter().find(|own| own.name == name).unwrap().element;
    let program = compiled.kernel().program();
    let mut interpreter =
        Interpreter::new(program, &case.sizes).unwrap_or_else(|error| panic!("{error}\n{}", compiled.placed()));
    for (name, contents) in &case.inputs {
        if let Some(scalar) = compiled.source().scalars().iter().find(|own| own.name == *name) {
            interpreter.number_bits(name, scalar.element, scalar.element.of_f64(contents[0])).unwrap();
            continue;
        }
        interpreter.bytes(*name, &bytes(contents, element(name))).unwrap();
    }
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{}", findings[0]));
    values(checked.run.bytes(output).unwrap(), element(output))
}
