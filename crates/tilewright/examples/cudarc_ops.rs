//! Operators on memory and streams of `cudarc`, without copies: RMS norm and attention, forward and
//! backward, compared with sums in f64 on the host.
//!
//! Memory is allocated and filled on one stream of cudarc, and the operators run on another; cudarc
//! orders the two. Each operator runs twice on the same workspaces, on two streams, and the results
//! must have the same bits.
//!
//! ```text
//! cargo run --release --example cudarc_ops --features cudarc
//! ```
//!
//! The exit status is 0 if all errors are within their limits, 1 if one is not or something was
//! refused, and 2 if there is no device. The program needs the driver's library alone.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use half::bf16;
use tilewright::gpu::cudarc::{CudarcArgument, CudarcStream};
use tilewright::gpu::{Device, DeviceSequence, GpuError};
use tilewright::ops::{self, Attention, Operator, RmsNorm};
use tilewright::tile::Element;

/// Numbers from -1 to 1 that bf16 has, the same at each run.
fn numbers(count: usize, seed: u64) -> Vec<bf16> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bf16::from_f64(((state >> 40) % 257) as f64 / 128.0 - 1.0)
    };
    (0..count).map(next).collect()
}

fn wide(all: &[bf16]) -> Vec<f64> {
    all.iter().map(|number| number.to_f64()).collect()
}

/// What was found beside what is exact.
struct Comparison {
    what: &'static str,
    /// The greatest error, in units of the greatest exact number.
    error: f64,
    limit: f64,
    elements: usize,
}

impl Comparison {
    fn of(what: &'static str, found: &[f64], exact: &[f64], limit: f64) -> Comparison {
        let greatest = exact.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
        // What is no number is wrong, however large the others are.
        let errors = found.iter().zip(exact).map(|(found, exact)| (found - exact).abs());
        let error = errors.fold(0.0_f64, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) });
        let error = if found.len() == exact.len() { error / greatest } else { f64::INFINITY };
        Comparison { what, error, limit, elements: exact.len() }
    }

    fn holds(&self) -> bool {
        self.error <= self.limit
    }
}

/// Two streams of cudarc, and their device.
struct Machine {
    device: Device,
    /// Where memory is allocated and copied.
    copies: Arc<CudaStream>,
    streams: [CudarcStream; 2],
}

impl Machine {
    fn open() -> Result<Machine, Box<dyn Error>> {
        // Cudarc panics where there is no driver's library, so tilewright asks first.
        drop(Device::open(0)?);
        let context = CudaContext::new(0)?;
        let device = Device::of_cudarc(&context)?;
        let copies = context.new_stream()?;
        let streams = [context.new_stream()?, context.default_stream()];
        let [first, second] = streams.map(|stream| CudarcStream::new(&device, &stream));
        Ok(Machine { device, copies, streams: [first?, second?] })
    }

    /// The forward and the backward of an operator.
    fn kernels(&self, operator: &impl Operator) -> Result<[DeviceSequence; 2], Box<dyn Error>> {
        let machine = self.device.machine()?;
        let [forward, backward] = [false, true]
            .map(|pass| Ok::<_, Box<dyn Error>>(ops::on_device(&operator.kernels(pass, &machine)?, &self.device)?));
        Ok([forward?, backward?])
    }

    fn put<T: DeviceRepr>(&self, all: &[T]) -> Result<CudaSlice<T>, Box<dyn Error>> {
        Ok(self.copies.clone_htod(all)?)
    }

    fn room<T: DeviceRepr + ValidAsZeroBits>(&self, count: usize) -> Result<CudaSlice<T>, Box<dyn Error>> {
        Ok(self.copies.alloc_zeros(count)?)
    }

    fn get(&self, slice: &CudaSlice<bf16>) -> Result<Vec<f64>, Box<dyn Error>> {
        Ok(wide(&self.copies.clone_dtoh(slice)?))
    }

    fn get_f32(&self, slice: &CudaSlice<f32>) -> Result<Vec<f64>, Box<dyn Error>> {
        Ok(self.copies.clone_dtoh(slice)?.into_iter().map(f64::from).collect())
    }
}

const ROWS: usize = 1000;
const LENGTH: usize = 2048;
const EPSILON: f64 = 1e-5;

/// `y`, `d_x` and `d_weight` of the RMS norm of rows, by the formulas.
fn exact_norm(x: &[f64], weight: &[f64], d_y: &[f64]) -> [Vec<f64>; 3] {
    let (mut y, mut d_x, mut d_weight) = (Vec::new(), Vec::new(), vec![0.0; LENGTH]);
    for (x, d_y) in x.chunks(LENGTH).zip(d_y.chunks(LENGTH)) {
        let root = (x.iter().map(|x| x * x).sum::<f64>() / LENGTH as f64 + EPSILON).sqrt();
        let inner: f64 = x.iter().zip(weight).zip(d_y).map(|((x, weight), d_y)| x * weight * d_y).sum();
        let share = inner / (LENGTH as f64 * root.powi(3));
        for (at, ((x, weight), d_y)) in x.iter().zip(weight).zip(d_y).enumerate() {
            y.push(x / root * weight);
            d_x.push(weight * d_y / root - x * share);
            d_weight[at] += d_y * x / root;
        }
    }
    [y, d_x, d_weight]
}

fn norm(machine: &Machine) -> Result<Vec<Comparison>, Box<dyn Error>> {
    let options = RmsNorm {
        length: LENGTH as i64,
        element: Element::Bf16,
        alignment: 8,
        epsilon: EPSILON,
        weight: true,
        ..RmsNorm::default()
    };
    let [forward, backward] = machine.kernels(&options)?;
    let pitch = LENGTH as i64;
    let sizes = [("M", ROWS as i64), ("x_pitch", pitch), ("y_pitch", pitch)];
    let (mut forward, mut backward) = (forward.at(&sizes)?, backward.at(&sizes)?);

    let (x, d_y) = (numbers(ROWS * LENGTH, 1), numbers(ROWS * LENGTH, 2));
    let weight: Vec<f32> = numbers(LENGTH, 3).into_iter().map(f32::from).collect();
    // The rows of `x` lie behind a row of something else: a view of a slice.
    let all_x = machine.put(&[numbers(LENGTH, 4), x.clone()].concat())?;
    let on_device = (all_x.slice(LENGTH..), machine.put(&weight)?, machine.put(&d_y)?);
    let mut found = Vec::new();
    for stream in &machine.streams {
        let (mut y, mut d_x) = (machine.room::<bf16>(ROWS * LENGTH)?, machine.room::<bf16>(ROWS * LENGTH)?);
        let mut d_weight = machine.room::<f32>(LENGTH)?;
        let (x, weight, d_y) = (&on_device.0, &on_device.1, &on_device.2);
        stream
            .launch_sequence(&mut forward, &mut [("x", x.into()), ("weight", weight.into()), ("y", (&mut y).into())])?;
        let inputs: [(&str, CudarcArgument<'_>); 3] = [("x", x.into()), ("weight", weight.into()), ("d_y", d_y.into())];
        let results = [("d_x", (&mut d_x).into()), ("d_weight", (&mut d_weight).into())];
        let mut named: Vec<_> = inputs.into_iter().chain(results).collect();
        stream.launch_sequence(&mut backward, &mut named)?;
        drop(named);
        found.push([machine.get(&y)?, machine.get(&d_x)?, machine.get_f32(&d_weight)?]);
    }
    let weight: Vec<f64> = weight.into_iter().map(f64::from).collect();
    let exact = exact_norm(&wide(&x), &weight, &wide(&d_y));
    compared(["rms_norm: y", "rms_norm: d_x", "rms_norm: d_weight"], &found, &exact, [5e-3, 5e-3, 1e-4])
}

const BATCH: usize = 2;
const HEADS: usize = 8;
const KV_HEADS: usize = 2;
const QUERIES: usize = 200;
const HEAD: usize = 64;

/// The elements of row `row` of head `head` of sequence `batch`.
fn row(all: &[f64], heads: usize, batch: usize, head: usize, row: usize) -> &[f64] {
    let first = ((batch * heads + head) * QUERIES + row) * HEAD;
    &all[first..first + HEAD]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds `factor * row` to a row of the result.
fn add(all: &mut [f64], heads: usize, [batch, head, row]: [usize; 3], factor: f64, of: &[f64]) {
    let first = ((batch * heads + head) * QUERIES + row) * HEAD;
    all[first..first + HEAD].iter_mut().zip(of).for_each(|(sum, number)| *sum += factor * number);
}

/// `o`, `lse`, `d_q`, `d_k` and `d_v` of causal attention, by the formulas.
fn exact_attention(q: &[f64], k: &[f64], v: &[f64], d_o: &[f64]) -> [Vec<f64>; 5] {
    let scale = 1.0 / (HEAD as f64).sqrt();
    let (mut o, mut lse) = (vec![0.0; q.len()], Vec::new());
    let (mut d_q, mut d_k, mut d_v) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
    for batch in 0..BATCH {
        for head in 0..HEADS {
            let group = head / (HEADS / KV_HEADS);
            for query in 0..QUERIES {
                let here = [batch, head, query];
                let (own, slope) = (row(q, HEADS, batch, head, query), row(d_o, HEADS, batch, head, query));
                let key = |at: usize| row(k, KV_HEADS, batch, group, at);
                let value = |at: usize| row(v, KV_HEADS, batch, group, at);
                let logits: Vec<f64> = (0..=query).map(|at| scale * dot(own, key(at))).collect();
                let greatest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logits.iter().map(|logit| (logit - greatest).exp()).sum();
                lse.push(greatest + total.ln());
                let powers: Vec<f64> = logits.iter().map(|logit| (logit - greatest).exp() / total).collect();
                let slopes: Vec<f64> = (0..=query).map(|at| dot(slope, value(at))).collect();
                let delta = dot(&powers, &slopes);
                for (at, (power, of_power)) in powers.iter().zip(&slopes).enumerate() {
                    let there = [batch, group, at];
                    add(&mut o, HEADS, here, *power, value(at));
                    add(&mut d_v, KV_HEADS, there, *power, slope);
                    let of_product = scale * power * (of_power - delta);
                    add(&mut d_q, HEADS, here, of_product, key(at));
                    add(&mut d_k, KV_HEADS, there, of_product, own);
                }
            }
        }
    }
    [o, lse, d_q, d_k, d_v]
}

fn attention(machine: &Machine) -> Result<Vec<Comparison>, Box<dyn Error>> {
    let options = Attention {
        heads: HEADS as i64,
        kv_heads: KV_HEADS as i64,
        head: HEAD as i64,
        element: Element::Bf16,
        causal: true,
        same_length: true,
        ..Attention::default()
    };
    let [forward, backward] = machine.kernels(&options)?;
    // (batch, head, row, element), without gaps.
    let (row, all) = (HEAD as i64, (QUERIES * HEAD) as i64);
    let strides = [("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS), ("o", HEADS)].map(|(name, heads)| {
        [("batch", heads as i64 * all), ("head", all), ("row", row)]
            .map(|(axis, stride)| (format!("{name}_{axis}"), stride))
    });
    let mut sizes: Vec<(&str, i64)> = strides.iter().flatten().map(|(name, stride)| (name.as_str(), *stride)).collect();
    sizes.extend([("B", BATCH as i64), ("S", QUERIES as i64)]);
    let (mut forward, mut backward) = (forward.at(&sizes)?, backward.at(&sizes)?);

    let (of_queries, of_keys) = (BATCH * HEADS * QUERIES * HEAD, BATCH * KV_HEADS * QUERIES * HEAD);
    let (q, d_o) = (numbers(of_queries, 5), numbers(of_queries, 6));
    let (k, v) = (numbers(of_keys, 7), numbers(of_keys, 8));
    let on_device = [machine.put(&q)?, machine.put(&k)?, machine.put(&v)?, machine.put(&d_o)?];
    let mut found = Vec::new();
    for stream in &machine.streams {
        let [q, k, v, d_o] = &on_device;
        let (mut o, mut lse) = (machine.room::<bf16>(of_queries)?, machine.room::<f32>(of_queries / HEAD)?);
        stream.launch_sequence(
            &mut forward,
            &mut [
                ("q", q.into()),
                ("k", k.into()),
                ("v", v.into()),
                ("o", (&mut o).into()),
                ("lse", (&mut lse).into()),
            ],
        )?;
        let mut d_q = machine.room::<bf16>(of_queries)?;
        let (mut d_k, mut d_v) = (machine.room::<bf16>(of_keys)?, machine.room::<bf16>(of_keys)?);
        // `delta`, a workspace, is left out.
        stream.launch_sequence(
            &mut backward,
            &mut [
                ("q", q.into()),
                ("k", k.into()),
                ("v", v.into()),
                ("o", (&o).into()),
                ("lse", (&lse).into()),
                ("d_o", d_o.into()),
                ("d_q", (&mut d_q).into()),
                ("d_k", (&mut d_k).into()),
                ("d_v", (&mut d_v).into()),
            ],
        )?;
        let of_rows = machine.get_f32(&lse)?;
        found.push([machine.get(&o)?, of_rows, machine.get(&d_q)?, machine.get(&d_k)?, machine.get(&d_v)?]);
    }
    let exact = exact_attention(&wide(&q), &wide(&k), &wide(&v), &wide(&d_o));
    let what = ["attention: o", "attention: lse", "attention: d_q", "attention: d_k", "attention: d_v"];
    compared(what, &found, &exact, [1e-2, 1e-3, 2e-2, 2e-2, 2e-2])
}

/// The results of the first stream beside what is exact, if the other stream has the same bits.
fn compared<const N: usize>(
    what: [&'static str; N],
    found: &[[Vec<f64>; N]],
    exact: &[Vec<f64>; N],
    limits: [f64; N],
) -> Result<Vec<Comparison>, Box<dyn Error>> {
    let bits = |all: &[f64]| all.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
    let mut comparisons = Vec::new();
    for (at, name) in what.into_iter().enumerate() {
        let [first, others @ ..] = found else { return Err("nothing was launched".into()) };
        if others.iter().any(|other| bits(&other[at]) != bits(&first[at])) {
            return Err(format!("{name} has other bits on another stream").into());
        }
        comparisons.push(Comparison::of(name, &first[at], &exact[at], limits[at]));
    }
    Ok(comparisons)
}

/// Whether all results are within their limits.
fn run() -> Result<bool, Box<dyn Error>> {
    let machine = Machine::open()?;
    println!("{}", machine.device.name());
    let mut all = norm(&machine)?;
    all.extend(attention(&machine)?);
    for Comparison { what, error, limit, elements } in &all {
        println!(
            "{what:<20} {elements:>8} elements, the greatest error is {error:.2e} of the greatest, at most {limit:.0e}"
        );
    }
    Ok(all.iter().all(Comparison::holds))
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("an error is beyond its limit");
            ExitCode::from(1)
        }
        Err(error) => {
            let is_without = error.downcast_ref::<GpuError>();
            if is_without.is_some_and(|error| ["E0801", "E0802", "E0803"].contains(&error.code())) {
                eprintln!("no device: {error}");
                return ExitCode::from(2);
            }
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}
