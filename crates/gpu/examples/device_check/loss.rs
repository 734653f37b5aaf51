//! A device that is lost, and opened again.

use tilewright_gpu::{Device, GpuError, Launch};

use crate::{KERNELS, Outcome, ensure, function, refused, scale};

/// Loses the device, gives everything back, and opens it again.
pub fn losing(device: Device) -> Outcome {
    let (stream, ordinal) = (device.stream()?, device.ordinal());
    let astray = function(&device, KERNELS, "astray", &[])?;
    astray.launch(&stream, &Launch::new([3, 1, 1], [32, 1, 1]), &[])?;
    let words = refused(stream.synchronize(), "E0807")?;
    ensure(words.contains("astray, grid (3,1,1), block (32,1,1)"), || words.clone())?;
    refused(stream.synchronize(), "E0806")?;
    refused(device.allocate(16), "E0806")?;
    drop((astray, stream, device));
    // The manual promises nothing here, so either is right if it is said.
    let again = match Device::open(ordinal).and_then(|again| scale_once(&again)) {
        Ok(()) => "opened again, it works".into(),
        Err(error) => format!("opened again: {}: {error}", error.code()),
    };
    Ok(format!("{words}; {again}"))
}

fn scale_once(device: &Device) -> Result<(), GpuError> {
    let (stream, scale, mut x) = (device.stream()?, scale(device)?, device.allocate(16)?);
    let arguments = [(&mut x).into(), 1.0_f32.into(), 4_u32.into()];
    scale.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &arguments)?;
    stream.synchronize()
}
