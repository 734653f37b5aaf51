//! A product of matrices on the first GPU, in one call: `gemm` plans it from the layouts alone.
//!
//! Each of the products below is compared with sums in f64 at every element.
//!
//! ```text
//! cargo run --release --example device_gemm
//! ```

use std::error::Error;

use half::{bf16, f16};
use tilewright::Layout;
use tilewright::gemm::gemm;
use tilewright::gpu::{Device, DeviceTensor, Element, Stream};
use tilewright::tensor::Tensor;

/// A number of A or B: small, and no line like the next.
fn number(index: i64) -> f64 {
    (index * 37 % 251) as f64 / 64.0 - 1.9
}

/// A tensor with a number of its own at each index.
fn numbers<S: Element>(layout: &Layout, of: impl Fn(f64) -> S) -> Result<Tensor<S>, Box<dyn Error>> {
    Ok(Tensor::from_fn(layout.clone(), |index| of(number(index)))?)
}

/// `D = A B` with A `(M,K)`, B `(N,K)` and D `(M,N)` under these layouts: the greatest error, in
/// units of the greatest sum of magnitudes.
fn multiplied<S: Element + Into<f64>>(
    stream: &Stream,
    [a, b, d]: [&str; 3],
    of: impl Fn(f64) -> S,
) -> Result<f64, Box<dyn Error>> {
    let [layout_a, layout_b, layout_d] = [a.parse::<Layout>()?, b.parse()?, d.parse()?];
    let (host_a, host_b) = (numbers(&layout_a, &of)?, numbers(&layout_b, &of)?);
    let a = DeviceTensor::from_tensor(stream, &host_a)?;
    let b = DeviceTensor::from_tensor(stream, &host_b)?;
    let mut d = DeviceTensor::filled(stream, layout_d.clone(), f32::NAN)?;
    gemm(stream, &a, &b, &mut d)?;
    let found = d.read(stream)?;
    let extent = |layout: &Layout, mode: usize| layout.mode(mode).map_or(1, |mode| mode.size());
    let [m, n, k] = [extent(&layout_a, 0), extent(&layout_b, 0), extent(&layout_a, 1)];
    let (mut worst, mut greatest) = (0.0_f64, 0.0_f64);
    for row in 0..m {
        for column in 0..n {
            let (mut sum, mut size) = (0.0, 0.0);
            for step in 0..k {
                let product: f64 = (*host_a.get([row, step])?).into() * (*host_b.get([column, step])?).into();
                sum += product;
                size += product.abs();
            }
            let error = (f64::from(*found.get([row, column])?) - sum).abs();
            if error.is_nan() {
                return Err(format!("({row},{column}) was not written").into());
            }
            (worst, greatest) = (worst.max(error), greatest.max(size));
        }
    }
    Ok(worst / greatest)
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no product: {error}");
            return Ok(());
        }
    };
    let stream = device.stream()?;
    // Rows, columns, padded lines, lines that begin anywhere, and folded modes.
    for layouts in [
        ["(100,80):(80,1)", "(152,80):(80,1)", "(100,152):(152,1)"],
        ["(104,80):(1,104)", "(150,80):(80,1)", "(104,150):(200,1)"],
        ["(97,77):(77,1)", "(33,77):(1,33)", "(97,33):(1,97)"],
        ["((4,16),80):((1,8),128)", "(64,80):(88,1)", "(64,64):(64,1)"],
    ] {
        let errors = [
            multiplied(&stream, layouts, bf16::from_f64)?,
            multiplied(&stream, layouts, f16::from_f64)?,
            multiplied(&stream, layouts, |number| number as f32)?,
        ];
        let [a, b, d] = layouts;
        println!("{a} x {b} -> {d}: off by {:.1e}, {:.1e}, {:.1e} (bf16, f16, f32)", errors[0], errors[1], errors[2]);
        if errors.iter().any(|error| *error > 1e-5) {
            return Err("that is more than sums in f32 round".into());
        }
    }
    Ok(())
}
