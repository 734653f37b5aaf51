//! What devices have from Hopper on: clusters, and loads of boxes by tensor maps.

use tilewright_gpu::{
    Access, Device, DeviceTensor, ElementType, EncodedTensorMap, Launch, Outside, Parameter, Promotion,
};
use tilewright_layout::atoms::{SwizzleMode, TensorMap};
use tilewright_layout::{Composed, IntoShape, Layout};
use tilewright_tensor::Tensor;

use crate::{HOPPER, Outcome, ensure, function, vector};

pub fn clusters(device: &Device) -> Outcome {
    let list = [Parameter::write("out", ElementType::U32)];
    let (stream, ranks) = (device.stream()?, function(device, HOPPER, "ranks", &list)?);
    let mut held = Vec::new();
    for blocks in [1_u32, 2, 4, 8, 16] {
        let mut out = vector(&stream, 2 * 64, u32::MAX)?;
        let launch = Launch::new([64, 1, 1], [32, 1, 1]).cluster([blocks, 1, 1]);
        ranks.launch(&stream, &launch, &[(&mut out).into()])?;
        let found = out.read(&stream)?;
        let wanted: Vec<u32> = (0..64).flat_map(|block| [block % blocks, blocks]).collect();
        ensure(found.as_slice() == wanted, || format!("clusters of {blocks}: {found:?}"))?;
        held.push(format!("{} of {blocks}", ranks.resident_clusters(&launch)?));
    }
    Ok(format!("clusters held at once: {}", held.join(", ")))
}

/// Loads boxes by tensor maps, in every swizzle, and compares shared memory as it lies with the
/// layouts.
pub fn boxes(device: &Device) -> Outcome {
    let list = [
        Parameter::tensor_map("map", Access::Read),
        Parameter::write("out", ElementType::F32).at_least(8192),
        Parameter::scalar("column", ElementType::S32),
        Parameter::scalar("row", ElementType::S32),
    ];
    let (stream, load) = (device.stream()?, function(device, HOPPER, "load", &list)?);
    let (rows, columns) = (300_i64, 104_i64);
    let layout = Layout::strided((rows, columns), (columns, 1))?;
    let host = Tensor::from_fn(layout.clone(), |index| (index + 1) as f32)?;
    let tensor = DeviceTensor::from_tensor(&stream, &host)?;
    for (swizzle, width) in
        [(SwizzleMode::None, 32), (SwizzleMode::Bytes32, 8), (SwizzleMode::Bytes64, 16), (SwizzleMode::Bytes128, 32)]
    {
        let height = 2048 / width;
        let shared = Layout::strided((height, width), (width, 1))?;
        let boxes = TensorMap::new(&layout, &(height, width).into_shape()?, &shared, 32, swizzle)?;
        let map = EncodedTensorMap::new(&tensor, &boxes, swizzle, Promotion::Bytes128, Outside::Zeros)?;
        let places = Composed::new(swizzle.swizzle(32)?, 0, shared)?;
        for (column, row) in [(0_i32, 0_i32), (64, 50), (96, 290), (-8, -3)] {
            let mut out = vector(&stream, 2048, f32::NAN)?;
            let arguments = [(&map).into(), (&mut out).into(), column.into(), row.into()];
            load.launch(&stream, &Launch::new([1, 1, 1], [128, 1, 1]).shared_bytes(8192), &arguments)?;
            let found = out.read(&stream)?;
            for index in 0..2048 {
                let (i, j) = (index % height + i64::from(row), index / height + i64::from(column));
                let inside = (0..rows).contains(&i) && (0..columns).contains(&j);
                let wanted = if inside { (i + j * rows + 1) as f32 } else { 0.0 };
                let there = *found.get(places.eval(&index)?)?;
                ensure(there == wanted, || {
                    format!("{swizzle}, box at ({row},{column}), ({i},{j}): {there}, not {wanted}")
                })?;
            }
        }
    }
    Ok("four swizzles, boxes inside and past every edge".into())
}
