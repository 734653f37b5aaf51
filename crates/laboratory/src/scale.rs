//! `tilewright-lab scale`: how the cost of resharding one matrix grows with the number of devices.
//!
//! Law: every row shows the numbers of a plan that is computed by this run. Both axes of the chart
//! are logarithmic. Times are computed from the bandwidths of the given links, and are not
//! measurements.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::json;
use tilewright::draw::{Anchor, Body, Figure, Legend, Paint, Palette, Panel, Point, Scene, Stroke, TextStyle, Tile};
use tilewright::mesh::{Machine, Mesh, MeshError, ShardedLayout, reshard};
use tilewright_cli::shared::{Failure, Progress, SCALE, Saving, Terminal};

#[derive(Debug, Args)]
pub struct ScaleOptions {
    /// The number of rows, and of columns, of the matrix.
    #[arg(long, default_value = "16384", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1 << 24))]
    size: i64,
    /// The numbers of devices, each of which divides the size.
    #[arg(long, default_value = "8,64,512,4096", value_delimiter = ',', value_name = "COUNTS")]
    devices: Vec<i64>,
    /// The size of an element, in bytes.
    #[arg(long, default_value = "2", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1024))]
    bytes: i64,
    /// The number of devices of a node, and the links, as for `reshard`.
    #[arg(long, default_value = "hgx-h200")]
    machine: String,
    #[command(flatten)]
    saving: Saving,
}

const MOVES: [&str; 4] = ["gather rows", "rows to columns", "sums to rows", "sums to all"];

/// The layouts before and after a move of an `n` x `n` matrix over `p` devices.
fn layouts(at: usize, n: i64, p: i64) -> [String; 2] {
    let part = n / p;
    let rows = format!("(({part},{p}),{n}):(({n},1@x),1)");
    let columns = format!("({n},({part},{p})):({part},(1,1@x))");
    let whole = format!("({n},{n}):({n},1)");
    match at {
        0 => [rows, format!("{whole} copied {p}:1@x")],
        1 => [rows, columns],
        2 => [format!("{whole} summed {p}:1@x"), rows],
        _ => [format!("{whole} summed {p}:1@x"), format!("{whole} copied {p}:1@x")],
    }
}

/// A plan of one move.
struct Row {
    devices: i64,
    at: usize,
    steps: Vec<String>,
    received: i64,
    least: i64,
    seconds: f64,
}

pub fn run(options: &ScaleOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let machine: Machine = options.machine.parse()?;
    // Refuses an unknown file format before any plan is computed.
    options.saving.file()?;
    if let Some(devices) = options.devices.iter().find(|devices| **devices < 2 || options.size % **devices != 0) {
        return Err(MeshError::Uneven { mode: 0, size: options.size, parts: *devices }.into());
    }
    let rows = planned(options, &machine)?;
    if let Some(file) = options.saving.file()? {
        let caption = format!(
            "A matrix of {} by {} elements of {} bytes, on nodes with these links: {machine}. The horizontal axes count devices; all axes are logarithmic. Times are what the links allow.",
            options.size, options.size, options.bytes
        );
        return options.saving.save(&figure(&rows, caption), file, SCALE, terminal);
    }
    if terminal.json {
        let rows = rows.iter().map(|row| {
            json!({ "devices": row.devices, "move": MOVES[row.at], "steps": row.steps, "received_bytes": row.received, "least_bytes": row.least, "seconds": row.seconds })
        });
        return Ok(terminal.object(&json!({ "rows": rows.collect::<Vec<_>>() }))?);
    }
    let mut text = format!("{:>7}  {:<15} {:>12} {:>12} {:>8}  steps\n", "devices", "move", "MiB", "least MiB", "us");
    for row in &rows {
        let micros = row.seconds * 1e6;
        let (name, steps) = (MOVES[row.at], row.steps.join(", "));
        let [mebibytes, least] = [row.received, row.least].map(mebibytes);
        let _ = writeln!(text, "{:>7}  {name:<15} {mebibytes:>12.2} {least:>12.2} {micros:>8.0}  {steps}", row.devices);
    }
    Ok(terminal.prose(&text)?)
}

/// The plans of all moves, computed in parallel, with a progress bar. The progress counts pairs of
/// devices, because the time of a plan is proportional to them.
fn planned(options: &ScaleOptions, machine: &Machine) -> Result<Vec<Row>, MeshError> {
    let moves = options.devices.iter().flat_map(|devices| (0..MOVES.len()).map(move |at| (*devices, at)));
    let moves: Vec<(i64, usize)> = moves.collect();
    let pairs = |devices: i64| devices.unsigned_abs().saturating_mul(devices.unsigned_abs());
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut bar = Progress::new("planned", moves.iter().map(|(devices, _)| pairs(*devices)).sum());
    thread::scope(|scope| {
        let work = scope.spawn(|| {
            let rows = moves.par_iter().map(|(devices, at)| {
                let row = row(*devices, *at, options, machine);
                done.fetch_add(pairs(*devices), Ordering::Relaxed);
                row
            });
            let rows = rows.collect::<Result<Vec<Row>, MeshError>>();
            is_over.store(true, Ordering::Release);
            rows
        });
        let mut told = 0;
        while !is_over.load(Ordering::Acquire) && !work.is_finished() {
            let now = done.load(Ordering::Relaxed);
            bar.step(now - told);
            told = now;
            thread::sleep(Duration::from_millis(20));
        }
        bar.end();
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The plan of one move.
fn row(devices: i64, at: usize, options: &ScaleOptions, machine: &Machine) -> Result<Row, MeshError> {
    let mesh = Mesh::new([("x", devices)])?;
    let [from, to] = layouts(at, options.size, devices).map(|text| ShardedLayout::parse(&mesh, &text));
    let plan = reshard(&from?, &to?, options.bytes, machine)?;
    let steps = plan.steps().iter().map(|step| step.kind.to_string()).collect();
    let most = |of: &dyn Fn(usize) -> i64| (0..mesh.size()).map(of).max().unwrap_or(0);
    let (received, least) = (most(&|rank| plan.received(rank)), most(&|rank| plan.least(rank)));
    Ok(Row { devices, at, steps, received, least, seconds: plan.seconds() })
}

fn mebibytes(bytes: i64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The colour of a move in the chart.
fn paint(at: usize) -> Paint {
    Palette::Rainbow.paint(at as i64, MOVES.len() as i64)
}

fn figure(rows: &[Row], caption: String) -> Figure<'static> {
    let received = chart(rows, |row| mebibytes(row.received), "MiB");
    let seconds = chart(rows, |row| row.seconds * 1e6, "us");
    let names = MOVES.iter().enumerate().map(|(at, name)| (paint(at), (*name).to_owned()));
    Figure::row([
        Panel::new("MiB that a device receives", Body::Scene(received)),
        Panel::new("Microseconds that the links need", Body::Scene(seconds)),
    ])
    .captioned(caption)
    .explained(Legend::Names(names.collect()))
}

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 220.0;

/// A chart with a line for each move. The line of the move from sums to rows is dashed, so that a
/// line below it remains visible.
fn chart(rows: &[Row], value: impl Fn(&Row) -> f64, unit: &str) -> Scene {
    let mut scene = Scene::new();
    let devices = rows.iter().map(|row| (row.devices as f64).log2());
    let (left, right) = devices.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)));
    let decades = rows.iter().map(|row| value(row).max(1e-6).log10());
    let (low, high) = decades.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)));
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let x = |devices: i64| ((devices as f64).log2() - left) / (right - left).max(1.0) * WIDTH;
    let y = |value: f64| HEIGHT - (value.max(1e-6).log10() - low) / (high - low) * HEIGHT;
    for decade in low as i32..=high as i32 {
        let height = y(10_f64.powi(decade));
        scene.line(Point::new(0.0, height), Point::new(WIDTH, height), Stroke::new(Paint::Rule, 0.75));
        let tick = if decade < 0 {
            format!("{:.*}", decade.unsigned_abs() as usize, 10_f64.powi(decade))
        } else {
            10_i64.pow(decade.unsigned_abs()).to_string()
        };
        scene.text(Point::new(-8.0, height), &tick, TextStyle::small().anchored(Anchor::End));
    }
    let mut counts: Vec<i64> = rows.iter().map(|row| row.devices).collect();
    counts.sort_unstable();
    counts.dedup();
    for count in counts {
        let at = x(count);
        scene.line(Point::new(at, 0.0), Point::new(at, HEIGHT), Stroke::new(Paint::Rule, 0.75));
        scene.text(Point::new(at, HEIGHT + 12.0), &count.to_string(), TextStyle::small().anchored(Anchor::Middle));
    }
    for (at, name) in MOVES.iter().enumerate() {
        let mut of: Vec<&Row> = rows.iter().filter(|row| row.at == at).collect();
        of.sort_by_key(|row| row.devices);
        let stroke = Stroke::new(paint(at), 2.0);
        let stroke = if at == 2 { stroke.dashed() } else { stroke };
        for pair in of.windows(2) {
            let [from, to] =
                [pair.first(), pair.last()].map(|row| row.map(|row| Point::new(x(row.devices), y(value(row)))));
            if let (Some(from), Some(to)) = (from, to) {
                scene.line(from, to, stroke);
            }
        }
        for row in of {
            let title = format!("{name}, {} devices: {:.2} {unit}", row.devices, value(row));
            let tile = Tile::at(x(row.devices) - 3.0, y(value(row)) - 3.0, 6.0, 6.0).filled(paint(at)).rounded(3.0);
            scene.tile(tile, "", "", &title);
        }
    }
    scene
}
