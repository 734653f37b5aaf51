//! What a device has only so much of: registers, and offsets of 32 bits.
//!
//! Law: what is at the limit works, and gives what the host computes; what is past it is refused
//! before it is launched.

use std::fmt::Write;

use tilewright_gpu::{Device, DeviceTensor, ElementType, Launch, ModuleOptions, Parameter};
use tilewright_kernel::{Element, Kernel, KernelError};
use tilewright_layout::Layout;
use tilewright_tensor::Tensor;

use crate::{Outcome, ensure, function, refused};

/// Words that each thread holds at once.
const HELD: usize = 160;

/// A kernel whose threads read all their words before they write one: the words of each, turned
/// round.
fn holding() -> Result<String, std::fmt::Error> {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    writeln!(text, ".visible .entry holding(.param .u64 x) {{")?;
    writeln!(text, ".reg .b64 %d<3>; .reg .b32 %r<2>, %w<{HELD}>;")?;
    writeln!(text, "ld.param.u64 %d0, [x]; cvta.to.global.u64 %d1, %d0; mov.u32 %r0, %tid.x;")?;
    writeln!(text, "mad.wide.u32 %d2, %r0, {}, %d1;", 4 * HELD)?;
    for word in 0..HELD {
        writeln!(text, "ld.volatile.global.b32 %w{word}, [%d2+{}];", 4 * word)?;
    }
    for word in 0..HELD {
        writeln!(text, "st.volatile.global.b32 [%d2+{}], %w{};", 4 * word, HELD - 1 - word)?;
    }
    text.push_str("ret;\n}\n");
    Ok(text)
}

/// A block has no more threads than there are registers for.
pub(crate) fn registers(device: &Device) -> Outcome {
    let list = [Parameter::write("x", ElementType::U32)];
    let (stream, holding) = (device.stream()?, function(device, &holding()?, "holding", &list)?);
    let resources = *holding.resources();
    let (threads, all) = (resources.block_threads, device.attributes().block_threads);
    ensure(threads < all && resources.registers as usize >= HELD, || format!("{resources:?}"))?;
    let count = i64::from(all) * HELD as i64;
    let host = Tensor::from_fn(Layout::mode_of(count, 1)?, |index| index as u32)?;
    let mut x = DeviceTensor::from_tensor(&stream, &host)?;
    for more in [1, all - threads] {
        let launch = Launch::new([1, 1, 1], [threads + more, 1, 1]);
        refused(holding.launch(&stream, &launch, &[(&mut x).into()]), "E0816")?;
    }
    holding.launch(&stream, &Launch::new([1, 1, 1], [threads, 1, 1]), &[(&mut x).into()])?;
    let found = x.read(&stream)?;
    let wanted = |at: usize| match at / HELD < threads as usize {
        true => at / HELD * HELD + HELD - 1 - at % HELD,
        false => at,
    };
    let wrong = found.as_slice().iter().enumerate().position(|(at, word)| *word as usize != wanted(at));
    ensure(wrong.is_none(), || format!("word {wrong:?} of {threads} threads"))?;
    Ok(format!("{} registers: {threads} threads of {all}, and one more refused", resources.registers))
}

/// Adds 1 to each byte, 16 of them a thread.
fn next() -> Result<Kernel, KernelError> {
    Kernel::build("next", |k| {
        let x = k.tensor::<u8>("x", "(M{div=256},16):(16,1)")?;
        k.threads(256)?;
        let own = x.local_tile((256, 16), k.block("(x,0)")?)?.thread_part()?;
        own.store(&own.load()?.map(|x| Ok((x.to(Element::I32) + 1.0).to(Element::U8)))?)
    })
}

/// Bytes that a check writes and reads at a place.
const PIECE: u64 = 1 << 16;

/// Tensors whose offsets fit into 32 bits neither with a sign nor without.
pub(crate) fn large(device: &Device) -> Outcome {
    let compiled = device.compile(&next()?, &ModuleOptions::default())?;
    let (stream, mut found) = (device.stream()?, Vec::new());
    for rows in [(1_i64 << 27) + 8192, (1 << 28) + 8192] {
        let bytes = 16 * rows as u64;
        if device.free_bytes()? < bytes + (1 << 30) {
            found.push(format!("{bytes} bytes are not free"));
            continue;
        }
        let layout = Layout::strided((rows, 16), (16, 1))?;
        let mut x = DeviceTensor::filled(&stream, layout, 41_u8)?;
        // Pieces with numbers of their own at the beginning, across powers of two, and at the end.
        let places = [0, (1 << 31) - PIECE / 2, (1 << bytes.ilog2()) - PIECE / 2, bytes - PIECE];
        let number = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        for place in places {
            let piece: Vec<u8> = (place..place + PIECE).map(number).collect();
            x.memory_mut().write(&stream, place, &piece)?;
        }
        compiled.at(&[("M", rows)])?.launch(&stream, &[(&mut x).into()])?;
        let mut piece = vec![0; PIECE as usize];
        for place in places {
            x.memory().read(&stream, place, &mut piece)?;
            let wrong = piece.iter().zip(place..).position(|(byte, at)| *byte != number(at).wrapping_add(1));
            ensure(wrong.is_none(), || format!("byte {wrong:?} behind {place} of {bytes}"))?;
        }
        // What lies between, of which nothing was changed twice.
        for place in (PIECE..bytes - 2 * PIECE).step_by(1 << 27) {
            x.memory().read(&stream, place, &mut piece)?;
            let wrong = piece.iter().position(|byte| *byte != 42);
            ensure(wrong.is_none(), || format!("byte {wrong:?} behind {place} of {bytes}"))?;
        }
        found.push(format!("{bytes} bytes"));
    }
    Ok(found.join(", "))
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::interpret::Interpreter;

    #[test]
    fn every_byte_is_the_next() {
        let kernel = super::next().unwrap();
        let mut interpreter = Interpreter::new(kernel.program(), &[("M", 512)]).unwrap();
        let bytes: Vec<u8> = (0..512 * 16_u32).map(|at| at as u8).collect();
        interpreter.bytes(0, &bytes).unwrap();
        let run = interpreter.check().unwrap().run;
        assert!(run.bytes(0).unwrap().iter().zip(&bytes).all(|(found, given)| *found == given.wrapping_add(1)));
    }
}
