//! Numbers of four bits, of every value in every place of a word, in every type.

use half::{bf16, f16};
use tilewright_kernel::{Element, ElementType, Kernel, interpret};

/// Sixteen words a thread: in word `v` of thread `t`, place `t % 8` has the bits `v`.
fn words() -> Vec<i32> {
    let mut words = Vec::new();
    for thread in 0..32_u32 {
        for bits in 0..16_u32 {
            // The contents of the other places do not matter.
            let others = (thread * 16 + bits).wrapping_mul(0x9e37_79b9);
            let place = 4 * (thread % 8);
            words.push((others & !(15 << place) | bits << place) as i32);
        }
    }
    words
}

fn unpacked<T: ElementType>(element: Element, signed: bool) -> Vec<T> {
    let kernel = Kernel::build("unpacked", |k| {
        k.threads(32)?;
        let words = k.input::<i32>("words", "(32,16):(16,1)")?.thread_part()?.load()?.numbers()?;
        let y = k.output::<T>("y", "(32,128):(128,1)")?.thread_part()?;
        y.store(&k.nibbles(&words, element, signed)?)
    })
    .unwrap();
    let mut interpreter = interpret::Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor(0, &words()).unwrap();
    interpreter.check().unwrap().run.tensor::<T>("y").unwrap()
}

#[test]
fn every_nibble_in_every_place_is_exact() {
    for signed in [false, true] {
        let wanted: Vec<f64> = words()
            .into_iter()
            .flat_map(|word| (0..8).map(move |place| (word as u32 >> (4 * place) & 15) as i64))
            .map(|bits| (if signed && bits > 7 { bits - 16 } else { bits }) as f64)
            .collect();
        let halves = unpacked::<f16>(Element::F16, signed);
        assert_eq!(halves.into_iter().map(f64::from).collect::<Vec<_>>(), wanted, "f16, {signed}");
        let brains = unpacked::<bf16>(Element::Bf16, signed);
        assert_eq!(brains.into_iter().map(f64::from).collect::<Vec<_>>(), wanted, "bf16, {signed}");
        let floats = unpacked::<f32>(Element::F32, signed);
        assert_eq!(floats.into_iter().map(f64::from).collect::<Vec<_>>(), wanted, "f32, {signed}");
        let whole = unpacked::<i32>(Element::I32, signed);
        assert_eq!(whole.into_iter().map(f64::from).collect::<Vec<_>>(), wanted, "i32, {signed}");
    }
}
