//! Kernels: how they are loaded, what they are given, what they compute, and what is refused.

use std::error::Error;
use std::time::Instant;

use tilewright_gpu::{Device, DeviceTensor, ElementType, Launch, ModuleOptions, Parameter};
use tilewright_kernel::Kernel;
use tilewright_layout::Layout;
use tilewright_tensor::Tensor;

use crate::{HOPPER, KERNELS, Outcome, ensure, function, refused, scale, scale_list, vector};

/// A text that nobody has compiled before, and the same text again, which the driver keeps: times,
/// and the resources of a kernel.
pub fn loading(device: &Device) -> Outcome {
    let text = format!("// {:?}\n{KERNELS}", std::time::SystemTime::now());
    let load = || -> Result<_, Box<dyn Error>> {
        let begin = Instant::now();
        let module = device.load(text.as_bytes(), &ModuleOptions::default())?;
        let resources = *module.function("scale", &scale_list())?.resources();
        Ok((begin.elapsed().as_secs_f64() * 1e3, resources))
    };
    let ((compiled, first), (kept, again)) = (load()?, load()?);
    ensure(first == again, || format!("compiled {first:?}, kept {again:?}"))?;
    Ok(format!("compiled {compiled:.2} ms, kept {kept:.2} ms; {first:?}"))
}

pub fn scaling(device: &Device) -> Outcome {
    let (stream, scale) = (device.stream()?, scale(device)?);
    for count in [1_u32, 255, 256, 257, 1 << 20, (1 << 24) + 3] {
        let host = Tensor::from_fn(Layout::mode_of(i64::from(count), 1)?, |index| index as f32)?;
        let mut x = DeviceTensor::from_tensor(&stream, &host)?;
        let launch = Launch::new([count.div_ceil(256), 1, 1], [256, 1, 1]);
        scale.launch(&stream, &launch, &[(&mut x).into(), 0.5_f32.into(), count.into()])?;
        let found = x.read(&stream)?;
        let wrong = found.as_slice().iter().zip(host.as_slice()).position(|(found, input)| *found != input * 0.5);
        ensure(wrong.is_none(), || format!("element {wrong:?} of {count}"))?;
    }
    Ok("1 to 2^24 + 3 elements".into())
}

pub fn numbers(device: &Device) -> Outcome {
    let list = [
        Parameter::write("out", ElementType::U64).at_least(48),
        Parameter::scalar("a", ElementType::U8),
        Parameter::scalar("b", ElementType::U16),
        Parameter::scalar("c", ElementType::U32),
        Parameter::scalar("d", ElementType::U64),
        Parameter::scalar("e", ElementType::F32),
        Parameter::scalar("f", ElementType::F64),
    ];
    let (stream, numbers) = (device.stream()?, function(device, KERNELS, "numbers", &list)?);
    let mut out = vector(&stream, 6, 0_u64)?;
    let arguments = [
        (&mut out).into(),
        0xab_u8.into(),
        0xabcd_u16.into(),
        0xabcd_ef01_u32.into(),
        0x0123_4567_89ab_cdef_u64.into(),
        1.25_f32.into(),
        (-2.5_f64).into(),
    ];
    numbers.launch(&stream, &Launch::new([1, 1, 1], [1, 1, 1]), &arguments)?;
    let found = out.read(&stream)?;
    let wanted =
        [0xab, 0xabcd, 0xabcd_ef01, 0x0123_4567_89ab_cdef, u64::from(1.25_f32.to_bits()), (-2.5_f64).to_bits()];
    ensure(found.as_slice() == wanted, || format!("{found:?} instead of {wanted:x?}"))?;
    Ok("8 to 64 bits".into())
}

/// Transposes a matrix through shared memory, in tiles of 32 x 32.
fn transposed() -> Result<Kernel, Box<dyn Error>> {
    let kernel = Kernel::build("transposed", |k| {
        let from = k.input::<f32>("from", "(M{div=32},N{div=32}):(N,1)")?;
        let to = k.output::<f32>("to", "(N,M):(M,1)")?;
        let tile = k.shared::<f32>("(32,32):(33,1)")?;
        let held = "(256,4):(1,256)";
        let from = from.local_tile((32, 32), k.block("(x,y)")?)?.select(&[1, 0])?;
        let to = to.local_tile((32, 32), k.block("(y,x)")?)?.select(&[1, 0])?;
        k.threads(256)?;
        let rows = from.compose(held)?.thread_part()?.load()?;
        tile.select(&[1, 0])?.compose(held)?.thread_part()?.store(&rows)?;
        k.barrier();
        let columns = tile.compose(held)?.thread_part()?.load()?;
        to.compose(held)?.thread_part()?.store(&columns)
    })?;
    Ok(kernel)
}

/// A kernel that was written with layouts.
pub fn transposing(device: &Device) -> Outcome {
    let kernel = transposed()?;
    let stream = device.stream()?;
    let compiled = device.compile(&kernel, &ModuleOptions::default())?;
    let mut found = 0;
    for [m, n] in [[32, 32], [1024, 96], [64, 2048]] {
        let (rows, columns): (Layout, Layout) = (Layout::strided((m, n), (n, 1))?, Layout::strided((n, m), (m, 1))?);
        let numbers = Tensor::from_vec((0..m * n).map(|at| at as f32).collect(), rows)?;
        let from = DeviceTensor::from_tensor(&stream, &numbers)?;
        let mut to = DeviceTensor::filled(&stream, columns, f32::NAN)?;
        compiled.at(&[("M", m), ("N", n)])?.launch(&stream, &[(&from).into(), (&mut to).into()])?;
        let to = to.read(&stream)?;
        for row in 0..m {
            for column in 0..n {
                let (wanted, got) = (numbers.get([row, column])?, to.get([column, row])?);
                ensure(wanted == got, || format!("({column},{row}) of {n} x {m} is {got}, and should be {wanted}"))?;
                found += 1;
            }
        }
    }
    Ok(format!("{found} elements, {} registers", compiled.at(&[("M", 32), ("N", 32)])?.resources().registers))
}

pub fn shared_memory(device: &Device) -> Outcome {
    let list = [Parameter::write("x", ElementType::U32), Parameter::scalar("pitch", ElementType::U32)];
    let (stream, reverse) = (device.stream()?, function(device, KERNELS, "reverse", &list)?);
    let limit = device.attributes().block_shared_bytes;
    for bytes in [1024, 48 << 10, (48 << 10) + 1024, limit] {
        let host = Tensor::from_fn(Layout::mode_of(256, 1)?, |index| index as u32)?;
        let mut x = DeviceTensor::from_tensor(&stream, &host)?;
        let launch = Launch::new([1, 1, 1], [256, 1, 1]).shared_bytes(bytes);
        reverse.launch(&stream, &launch, &[(&mut x).into(), (bytes / 256).into()])?;
        let found = x.read(&stream)?;
        let right = found.as_slice().iter().zip(0..256).all(|(found, index)| *found == 255 - index);
        ensure(right, || format!("{bytes} bytes"))?;
    }
    let mut x = vector(&stream, 256, 0_u32)?;
    let launch = Launch::new([1, 1, 1], [256, 1, 1]).shared_bytes(limit + 1);
    refused(reverse.launch(&stream, &launch, &[(&mut x).into(), 4_u32.into()]), "E0816")?;
    Ok(format!("up to {limit} bytes, and one more refused"))
}

pub fn refusals(device: &Device) -> Outcome {
    let module = device.load(KERNELS.as_bytes(), &ModuleOptions::default())?;
    refused(module.function("nobody", &[]), "E0811")?;
    let list = scale_list();
    refused(module.function("scale", list.get(..2).unwrap_or(&[])), "E0812")?;
    let more = [list.as_slice(), &[Parameter::scalar("more", ElementType::U8)]].concat();
    refused(module.function("scale", &more), "E0812")?;
    let load = |text: &str| device.load(text.as_bytes(), &ModuleOptions::default());
    let log = refused(load(&KERNELS.replace("red.global", "read.global")), "E0808")?;
    ensure(log.contains("read"), || format!("the log does not name the word: {log}"))?;
    refused(load(&KERNELS.replace("sm_80", "sm_121a")), "E0804")?;
    refused(load(&KERNELS.replace(".version 8.0", ".version 99.9")), "E0802")?;
    let (stream, trouble) = (device.stream()?, device.load(b"\x7fELF is not all", &ModuleOptions::default()));
    refused(trouble, "E0809")?;
    let scale = scale(device)?;
    let mut x = vector(&stream, 8, 1.0_f32)?;
    let arguments = [(&mut x).into(), 1.0_f32.into(), 8_u32.into()];
    let threads = scale.resources().block_threads;
    let wide = Launch::new([1, 1, 1], [threads / 32, 33, 1]);
    refused(scale.launch(&stream, &wide, &arguments), "E0816")?;
    // What only the driver knows: more blocks than are resident at once.
    let many = Launch::new([1 << 20, 1, 1], [256, 1, 1]).cooperative();
    let words = refused(scale.launch(&stream, &many, &arguments), "E0807")?;
    // None of this harmed the device.
    scale.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]).cooperative(), &arguments)?;
    stream.synchronize()?;
    Ok(words)
}

pub fn occupancy(device: &Device) -> Outcome {
    let scale = scale(device)?;
    let blocks = scale.resident_blocks(&Launch::new([1, 1, 1], [256, 1, 1]))?;
    let wanted = device.attributes().multiprocessor_threads / 256;
    ensure(blocks == wanted, || format!("{blocks} instead of {wanted} blocks of 256 threads"))?;
    Ok(format!("{blocks} blocks of 256 threads on a multiprocessor"))
}

/// A text that reallocates registers is compiled without notes that it gave up speed.
pub fn notes(device: &Device) -> Outcome {
    let module = device.load(HOPPER.as_bytes(), &ModuleOptions::default().refuse_notes())?;
    let registers = module.function("registers", &[Parameter::write("x", ElementType::U32)])?;
    Ok(format!("{:?}, notes: {:?}", registers.resources(), module.notes()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_transpose_is_in_order() {
        let kernel = super::transposed().unwrap();
        tilewright_kernel::interpret::check(kernel.program(), &[("M", 64), ("N", 96)]).unwrap();
    }
}
