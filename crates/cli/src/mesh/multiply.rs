//! `tilewright mesh multiply --device`: a matmul of sharded matrices on the GPUs of this machine.
//!
//! Law: the result is filled with poison before, and every element is compared with the sum that
//! defines it before a time counts. Operands are integers that repeat after a prime number of rows,
//! columns and steps along K. So there are few different sums, which are computed here in integers.
//! Printed figures were measured in this run: the matmul, and each device's part of it without
//! communication, in alternating rounds.

use std::time::Instant;

use clap::Args;
use half::{bf16, f16};
use serde_json::json;
use tilewright::gemm::{DeviceProduct, ProductError};
use tilewright::gpu::{Device, Memory, Stream};
use tilewright::kernel::Element;
use tilewright::mesh::{MeshError, ProductPlan, ShardedLayout};
use tilewright::planners::gemm::Problem;
use tilewright::sharded::{ShardedError, ShardedPlan, ShardedProduct, ShardedWork, Tensor, WorkPlan};

use super::on_devices::first_planner;
use crate::json::Json;
use crate::kernel::bench::median;
use crate::output::Failure;
use crate::terminal::Terminal;

/// The largest number of elements of one matrix in the memory of a device.
const MAX_MEMORY: i64 = 1 << 31;
/// The seconds of launches that are timed together, and the number of repetitions.
const ROUND: f64 = 0.06;
const ROUNDS: usize = 7;
/// The number of rows, columns and steps along K after which numbers repeat.
const PERIOD: i64 = 127;

#[derive(Debug, Args)]
pub struct MultiplyOptions {
    /// Multiply on the GPUs of this machine, compare every element, and time it.
    #[arg(long, conflicts_with = "run")]
    pub device: bool,
    /// The type of the elements there.
    #[arg(long = "type", requires = "device", value_parser = ["bf16", "f16"])]
    element: Option<String>,
    /// Type of partial sums in transfers: that of the elements, or f32.
    #[arg(long, requires = "device", value_parser = ["elements", "f32"])]
    sums: Option<String>,
    /// Number of parts of blocks whose partial sums are sent to another device.
    #[arg(long, requires = "device", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=64))]
    parts: Option<i64>,
}

impl MultiplyOptions {
    /// The bytes of an element on the device.
    pub fn bytes(&self) -> Option<i64> {
        self.device.then_some(2)
    }
}

/// The repeating number at an index.
fn number(place: i64) -> i64 {
    let place = place.rem_euclid(PERIOD);
    (place * place * 3 + place) % 13 - 6
}

/// An element of A, and of B.
fn of_a(row: i64, depth: i64) -> i64 {
    number(row * 31 + depth * 7)
}

fn of_b(depth: i64, column: i64) -> i64 {
    number(depth * 11 + column * 37 + 5)
}

/// All different sums, by row and column, and their sums of magnitudes.
fn sums(depth: i64) -> Vec<(i64, i64)> {
    let all = (0..PERIOD * PERIOD).map(|at| {
        let (row, column) = (at % PERIOD, at / PERIOD);
        let term = |depth: i64| of_a(row, depth) * of_b(depth, column);
        let of = |range: i64| (0..range).map(term).fold((0, 0), |(sum, all), term| (sum + term, all + term.abs()));
        let ((whole, magnitudes), (rest, few)) = (of(PERIOD), of(depth % PERIOD));
        let periods = depth / PERIOD;
        (whole * periods + rest, magnitudes * periods + few)
    });
    all.collect()
}

/// The locations of rows and columns of a matrix: the rank and the offset that each adds, and the
/// ranks of copies. Layouts with equal parts are linear in both.
struct Places {
    rows: Vec<(i64, i64)>,
    columns: Vec<(i64, i64)>,
    copies: Vec<i64>,
}

impl Places {
    fn of(layout: &ShardedLayout) -> Result<Places, MeshError> {
        let sizes = layout.mode_sizes();
        let (rows, columns) = (sizes.first().copied().unwrap_or(1), sizes.get(1).copied().unwrap_or(1));
        let all = layout.places(0)?;
        let (rank, offset) = all.first().map_or((0, 0), |(rank, offset)| (*rank as i64, *offset));
        let step = |element: i64| -> Result<(i64, i64), MeshError> {
            let places = layout.places(element)?;
            let first = places.first().map_or((0, 0), |(rank, offset)| (*rank as i64, *offset));
            Ok((first.0 - rank, first.1 - offset))
        };
        let columns = (0..columns).map(|column| step(column * rows)).collect::<Result<_, _>>()?;
        let rows = (0..rows).map(|row| Ok((step(row)?.0, step(row)?.1 + offset))).collect::<Result<_, MeshError>>()?;
        Ok(Places { rows, columns, copies: all.iter().map(|(rank, _)| *rank as i64).collect() })
    }

    /// Calls `visit` with the row, column, rank and offset of each element and copy.
    fn each(&self, mut visit: impl FnMut(i64, i64, usize, usize)) {
        for copy in &self.copies {
            for (column, across) in self.columns.iter().enumerate() {
                for (row, down) in self.rows.iter().enumerate() {
                    let (rank, offset) = (copy + down.0 + across.0, down.1 + across.1);
                    visit(row as i64, column as i64, rank as usize, offset as usize);
                }
            }
        }
    }
}

/// A planned matmul: pieces that overlap with transfers, or steps.
enum Planned {
    Pieces(ShardedPlan),
    Steps(WorkPlan),
}

impl Planned {
    fn new(plan: &ProductPlan, types: [Element; 2], parts: Option<i64>) -> Result<Planned, ShardedError> {
        let [element, sums] = types;
        let planner = first_planner();
        Ok(match ShardedPlan::in_parts(&*planner, plan, element, sums, parts)? {
            Some(pieces) => Planned::Pieces(pieces),
            None => Planned::Steps(WorkPlan::product(&*planner, plan, element, sums)?),
        })
    }

    /// The text that is printed before the matmul runs.
    fn text(&self) -> String {
        match self {
            Planned::Pieces(plan) => plan.to_string(),
            Planned::Steps(plan) => format!("in steps: these layouts cannot be divided into whole blocks\n{plan}"),
        }
    }

    /// The bytes of the result on each device.
    fn bytes(&self) -> u64 {
        match self {
            Planned::Pieces(plan) => plan.bytes()[2],
            Planned::Steps(plan) => plan.bytes(Tensor::Result).unwrap_or(0),
        }
    }

    /// Whether partial sums of several devices are added.
    fn adds(&self, plan: &ProductPlan) -> bool {
        match self {
            Planned::Pieces(plan) => plan.ranks().iter().flat_map(|of| &of.pieces).any(|piece| !piece.added.is_empty()),
            Planned::Steps(_) => plan.moves()[2].from().sums() > 1,
        }
    }

    fn on(&self, devices: &[Device]) -> Result<MultiplyOnDevices, ShardedError> {
        Ok(match self {
            Planned::Pieces(plan) => MultiplyOnDevices::Pieces(ShardedProduct::new(devices, plan)?),
            Planned::Steps(plan) => MultiplyOnDevices::Steps(ShardedWork::new(devices, plan)?),
        })
    }
}

enum MultiplyOnDevices {
    Pieces(ShardedProduct),
    Steps(ShardedWork),
}

impl MultiplyOnDevices {
    fn launch(&mut self, a: &[Memory], b: &[Memory], d: &mut [Memory]) -> Result<(), ShardedError> {
        match self {
            MultiplyOnDevices::Pieces(product) => product.launch(a, b, d),
            MultiplyOnDevices::Steps(work) => work.launch(&[a, b], d),
        }
    }

    fn wait(&self) -> Result<(), ShardedError> {
        match self {
            MultiplyOnDevices::Pieces(product) => product.wait(),
            MultiplyOnDevices::Steps(work) => work.wait(),
        }
    }
}

pub fn run(plan: &ProductPlan, options: &MultiplyOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let element = if options.element.as_deref() == Some("f16") { Element::F16 } else { Element::Bf16 };
    let sums = if options.sums.as_deref() == Some("f32") { Element::F32 } else { element };
    let refused = |error: ShardedError| Failure::refused(&error);
    let layouts = [plan.moves()[0].from(), plan.moves()[1].from(), plan.moves()[2].to()];
    if layouts.iter().any(|layout| layout.reach() > MAX_MEMORY) {
        return Err(MeshError::TooLarge { what: "elements of memory on a device", limit: MAX_MEMORY }.into());
    }
    let planned = Planned::new(plan, [element, sums], options.parts).map_err(refused)?;
    if !terminal.json {
        terminal.text(&format!("{plan}\n{}", planned.text()))?;
    }
    let devices = (0..plan.moves()[0].from().mesh().size()).map(Device::open).collect::<Result<Vec<_>, _>>()?;
    let streams = devices.iter().map(Device::stream).collect::<Result<Vec<_>, _>>()?;
    let bits = |value: i64| match element {
        Element::F16 => f16::from_f32(value as f32).to_bits(),
        _ => bf16::from_f32(value as f32).to_bits(),
    };
    let mut product = planned.on(&devices).map_err(refused)?;
    let a = filled(&streams, layouts[0], |row, depth| bits(of_a(row, depth)))?;
    let b = filled(&streams, layouts[1], |depth, column| bits(of_b(depth, column)))?;
    let mut d = Vec::new();
    for stream in &streams {
        let mut memory = stream.device().allocate(planned.bytes())?;
        // NaN, so that unwritten elements are found.
        memory.fill_bytes(stream, 0xff)?;
        stream.synchronize()?;
        d.push(memory);
    }
    // Twice, so that memory that was read is also written again.
    for _ in 0..2 {
        product.launch(&a, &b, &mut d).map_err(refused)?;
    }
    product.wait().map_err(refused)?;
    let exact = sums == Element::F32 || !planned.adds(plan);
    let compared = compare(&streams, layouts[2], &d, plan.sizes()[2], (element, exact))?;
    let mut alone = Alone::new(&devices, &streams, element, plan.local_sizes(), bits)?;
    let mut both = |count: usize| -> Result<[f64; 2], Failure> {
        product.wait().map_err(refused)?;
        let since = Instant::now();
        for _ in 0..count {
            product.launch(&a, &b, &mut d).map_err(refused)?;
        }
        product.wait().map_err(refused)?;
        let whole = since.elapsed().as_secs_f64() / count as f64;
        let since = Instant::now();
        for _ in 0..count {
            alone.launch()?;
        }
        product.wait().map_err(refused)?;
        Ok([whole, since.elapsed().as_secs_f64() / count as f64])
    };
    both(3)?;
    let count = ((ROUND / both(3)?[0]) as usize).clamp(1, 1000);
    let rounds = (0..ROUNDS).map(|_| both(count)).collect::<Result<Vec<_>, _>>()?;
    let [seconds, without] = [0, 1].map(|at| median(rounds.iter().map(|round| round[at]).collect()));
    let measured = MeasuredMultiply {
        types: [element, sums],
        device: devices.first().map(|device| device.name().to_owned()),
        seconds,
        without,
        exact,
        compared,
        alone: alone.line(),
    };
    if terminal.json {
        return Ok(terminal.object(&measured.json(plan))?);
    }
    Ok(terminal.text(&measured.text(plan))?)
}

/// The result of a run.
struct MeasuredMultiply {
    /// The type of the elements, and of partial sums in transfers.
    types: [Element; 2],
    device: Option<String>,
    /// The seconds of the matmul, and of each device's local work without communication.
    seconds: f64,
    without: f64,
    /// Whether sums are rounded only once.
    exact: bool,
    compared: u64,
    /// The kernel for a device's local work.
    alone: String,
}

impl MeasuredMultiply {
    /// The rate of the matmul, in 10^12 operations per second.
    fn rate(&self, plan: &ProductPlan) -> f64 {
        let [m, n, k] = plan.sizes();
        2.0 * m as f64 * n as f64 * k as f64 / self.seconds / 1e12
    }

    fn json(&self, plan: &ProductPlan) -> Json {
        let mut object = super::product_json(plan);
        object["type"] = json!(self.types[0].to_string());
        object["sums_type"] = json!(self.types[1].to_string());
        object["device"] = json!(self.device);
        object["median_us"] = json!(self.seconds * 1e6);
        object["alone_us"] = json!(self.without * 1e6);
        object["tflop_per_s"] = json!(self.rate(plan));
        object["checked"] = json!(true);
        object["compared"] = json!(self.compared);
        object
    }

    fn text(&self, plan: &ProductPlan) -> String {
        let MeasuredMultiply { seconds, without, compared, alone, .. } = self;
        let devices = plan.moves()[0].from().mesh().size();
        // Devices along an axis that shards nothing repeat the same work, which does not count.
        let [m, n, k] = plan.local_sizes();
        let work = 2.0 * m as f64 * n as f64 * k as f64 * devices as f64;
        let how = if self.exact { "rounded once" } else { "within the rounding of partial sums" };
        format!(
            "all {compared} elements on {devices} devices are the sums that define them, {how}\n\
             {:.1} us, the median of {ROUNDS} rounds: {:.0} TFLOP/s\n\
             {:.1} us for what each device multiplies, {m} x {n} x {k}, without what moves: {:.0} TFLOP/s; {:.3}\n  \
             by {alone}\n",
            seconds * 1e6,
            self.rate(plan),
            without * 1e6,
            work / without / 1e12,
            without / seconds
        )
    }
}

/// The memory of each device, filled with the numbers of a matrix.
fn filled(streams: &[Stream], layout: &ShardedLayout, bits: impl Fn(i64, i64) -> u16) -> Result<Vec<Memory>, Failure> {
    let reach = usize::try_from(layout.reach()).unwrap_or(0);
    let places = Places::of(layout)?;
    // Offsets without an element are NaN.
    let mut memory = vec![vec![0xffff_u16; reach]; streams.len()];
    let table: Vec<u16> = (0..PERIOD * PERIOD).map(|at| bits(at % PERIOD, at / PERIOD)).collect();
    places.each(|row, column, rank, offset| {
        let value = table.get((row % PERIOD + column % PERIOD * PERIOD) as usize);
        if let (Some(value), Some(place)) = (value, memory.get_mut(rank).and_then(|memory| memory.get_mut(offset))) {
            *place = *value;
        }
    });
    let mut filled = Vec::new();
    for (stream, memory) in streams.iter().zip(&memory) {
        let bytes: &[u8] = bytemuck::cast_slice(memory);
        let mut on = stream.device().allocate(bytes.len() as u64)?;
        on.write(stream, 0, bytes)?;
        filled.push(on);
    }
    Ok(filled)
}

/// Compares every element of the result. Returns their number.
fn compare(
    streams: &[Stream],
    layout: &ShardedLayout,
    d: &[Memory],
    depth: i64,
    (element, exact): (Element, bool),
) -> Result<u64, Failure> {
    let mut memory = Vec::new();
    for (stream, d) in streams.iter().zip(d) {
        let mut bits = vec![0_u16; usize::try_from(layout.reach()).unwrap_or(0)];
        d.read(stream, 0, bytemuck::cast_slice_mut(&mut bits))?;
        memory.push(bits);
    }
    let value = |bits: u16| match element {
        Element::F16 => f16::from_bits(bits).to_f64(),
        _ => bf16::from_bits(bits).to_f64(),
    };
    let rounded = |value: f64| match element {
        Element::F16 => f16::from_f64(value).to_f64(),
        _ => bf16::from_f64(value).to_f64(),
    };
    let right: Vec<(f64, f64)> = sums(depth)
        .into_iter()
        .map(|(sum, magnitudes)| (rounded(sum as f64), if exact { 0.0 } else { magnitudes as f64 / 128.0 }))
        .collect();
    let (mut compared, mut wrong) = (0, None);
    Places::of(layout)?.each(|row, column, rank, offset| {
        let (right, bound) = right.get((row % PERIOD + column % PERIOD * PERIOD) as usize).copied().unwrap_or_default();
        let found = memory.get(rank).and_then(|memory| memory.get(offset)).map_or(f64::NAN, |bits| value(*bits));
        compared += 1;
        // A NaN is also wrong.
        let fits = found == right || (found - right).abs() <= bound;
        if wrong.is_none() && !fits {
            wrong = Some(format!("D({row},{column}) on device {rank} is {found}, and should be {right}"));
        }
    });
    wrong.map_or(Ok(compared), |wrong| Err(Failure::Value(wrong)))
}

/// The local work of each device, in one piece and in its own memory.
struct Alone<'a> {
    streams: &'a [Stream],
    of: Vec<(DeviceProduct, [Memory; 2], Memory)>,
}

impl Alone<'_> {
    fn new<'a>(
        devices: &[Device],
        streams: &'a [Stream],
        element: Element,
        [m, n, k]: [i64; 3],
        bits: impl Fn(i64) -> u16,
    ) -> Result<Alone<'a>, Failure> {
        let refused = |error: ProductError| Failure::refused(&error);
        let problem = Problem::new(element, [m, n, k]).map_err(|error| Failure::refused(&error))?;
        let mut of = Vec::new();
        for (device, stream) in devices.iter().zip(streams) {
            let product = DeviceProduct::new(device, &problem).map_err(refused)?;
            let with = |lines: i64, of: &dyn Fn(i64, i64) -> i64| -> Result<Memory, Failure> {
                let table: Vec<u16> = (0..PERIOD * PERIOD).map(|at| bits(of(at / PERIOD, at % PERIOD))).collect();
                let line = |line: i64| {
                    let table = &table;
                    (0..k).map(move |depth| table[(line % PERIOD * PERIOD + depth % PERIOD) as usize])
                };
                let numbers: Vec<u16> = (0..lines).flat_map(line).collect();
                let mut memory = device.allocate(2 * numbers.len() as u64)?;
                memory.write(stream, 0, bytemuck::cast_slice(&numbers))?;
                Ok(memory)
            };
            let operands = [with(m, &of_a)?, with(n, &|column, depth| of_b(depth, column))?];
            of.push((product, operands, device.allocate((2 * m * n) as u64)?));
        }
        Ok(Alone { streams, of })
    }

    /// How it is divided, as text.
    fn line(&self) -> String {
        self.of.first().map_or(String::new(), |(product, ..)| product.product().plan().line())
    }

    fn launch(&mut self) -> Result<(), Failure> {
        for (stream, (product, [a, b], d)) in self.streams.iter().zip(&mut self.of) {
            product.launch(stream, &[(&*a).into(), (&*b).into()], &[d.into()])?;
        }
        Ok(())
    }
}
