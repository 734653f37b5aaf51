//! The costs of a kernel: bounds on a machine, and the page with pictures of banks and sectors.

use std::path::Path;

use tilewright::draw::{Page, Style, Theme, Touch, Touched, request};
use tilewright::kernel::machine::Machine;
use tilewright::sanitize::costs::{
    BANKS, Costs, Factors, LINE_BYTES, LaneRequest, Pipe, SECTOR_BYTES, SourceTexts, StatementCost, WORD_BYTES,
    global_request, phase_lanes, shared_request,
};

use crate::output::Failure;

/// The largest number of requests that a page shows.
const MAX_PICTURES: usize = 12;
/// The bytes that a multiprocessor reads from the L2 cache in a cycle.
const L2_BYTES: f64 = 64.0;
/// The number of warps for which a multiprocessor issues an instruction in a cycle.
const ISSUE_SLOTS: f64 = 4.0;
/// The lanes of a multiprocessor for transcendental functions.
const TRANSCENDENTAL_LANES: f64 = 16.0;

/// A lower bound of the time, and the resource that gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedBound {
    pub what: &'static str,
    pub seconds: f64,
}

/// The lower bounds of the time on a machine, the largest first. Those of arithmetic and of issue
/// slots are for the PTX instructions, of which the assembler makes fewer or more.
pub fn bounds(costs: &Costs, machine: &Machine) -> Vec<CountedBound> {
    let total = costs.total();
    // Blocks of a small grid leave multiprocessors idle.
    let own = (costs.blocks as f64).min(f64::from(machine.multiprocessors)).max(1.0);
    let (share, cycles) = (own / f64::from(machine.multiprocessors), own * machine.clock);
    let pipes = costs.pipes();
    let lanes = |pipe: Pipe| 32.0 * pipes.get(&pipe).copied().unwrap_or(0) as f64;
    // Loads may find a sector in the L1 cache, but each sector of an array is loaded there once.
    let is_cached =
        |own: &StatementCost| own.instruction.starts_with("ld") || own.instruction.starts_with("cp.async.ca");
    let (mut cached, mut sure) = (0, 0);
    for own in &costs.statements {
        *if is_cached(own) { &mut cached } else { &mut sure } += own.counts.global.sectors;
    }
    let rates = &machine.rates;
    let tensor = |(factors, operations): (Factors, u64)| {
        let rate = match factors {
            Factors::F16 => rates.matrix_16,
            Factors::F16In16 => rates.matrix_16_in_16,
            Factors::Tf32 => rates.matrix_tf32,
            Factors::F8 => rates.matrix_f8,
            // Narrower integers are not slower.
            Factors::I8 | Factors::I4 | Factors::B1 => rates.matrix_i8 * if factors == Factors::I8 { 1.0 } else { 8.0 },
            Factors::F64 => rates.matrix_f64,
        };
        if rate > 0.0 { operations as f64 / rate / share } else { 0.0 }
    };
    // The peak rate counts an FMA as two operations; packed halves have twice the lanes.
    let arithmetic = (2.0 * (lanes(Pipe::Float) + lanes(Pipe::Half) / 2.0) / rates.f32)
        .max(2.0 * lanes(Pipe::Double) / rates.f64)
        .max(lanes(Pipe::Transcendental) / TRANSCENDENTAL_LANES / (cycles / share))
        / share;
    let mut all = vec![
        (
            "device memory",
            (costs.read_sectors + costs.written_sectors) as f64 * SECTOR_BYTES as f64 / machine.bandwidth,
        ),
        ("the L2 cache", (sure + cached.min(costs.read_sectors)) as f64 * SECTOR_BYTES as f64 / L2_BYTES / cycles),
        ("shared memory", total.shared.wavefronts as f64 / cycles),
        ("tensor cores", costs.products().into_iter().map(tensor).sum()),
        ("arithmetic", arithmetic),
        ("issue slots", total.instructions as f64 / ISSUE_SLOTS / cycles),
    ];
    all.retain(|(_, seconds)| *seconds > 0.0);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter().map(|(what, seconds)| CountedBound { what, seconds }).collect()
}

/// A time as text.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        seconds if seconds >= 1e-6 => format!("{:.2} us", seconds * 1e6),
        seconds => format!("{:.2} ns", seconds * 1e9),
    }
}

/// The bounds as text, with a note on whether asynchronous copies keep the memory busy.
pub fn bounds_text(costs: &Costs, machine: &Machine) -> String {
    let bounds = bounds(costs, machine);
    let mut out = format!("at least, on {}:\n", machine.name);
    for (place, bound) in bounds.iter().enumerate() {
        let limits = if place == 0 { ", which limits" } else { "" };
        out += &format!("{:>12}  by {}{limits}\n", time(bound.seconds), bound.what);
    }
    if let Some((wanted, latency)) = machine.in_flight().zip(machine.latency)
        && costs.in_flight_bytes > 0
    {
        out += &format!(
            "copies under way: {} bytes of a block; {wanted} of a multiprocessor keep the memory busy at {} a load\n",
            costs.in_flight_bytes,
            time(latency)
        );
    }
    out
}

/// The page: the source with counts, the bounds, and the requests with the largest excess cost.
pub fn page(costs: &Costs, ptx: &str, file: &Path, machine: Option<&Machine>, entry: &str) -> String {
    let mut sources = SourceTexts::in_folder(file.parent().unwrap_or(Path::new("")));
    let mut page = Page::new(format!("Costs of {entry}"), Theme::Auto);
    page.text("Instructions are those of warps. Numbers in brackets are the fewest that would do.");
    page.part("Source beside counts");
    page.formulas(costs.table(ptx, |file, line| sources.line(file, line)));
    if let Some(machine) = machine {
        page.part(format!("Bounds on {}", machine.name));
        page.value(bounds_text(costs, machine));
    }
    let mut worst: Vec<(u64, &StatementCost)> = Vec::new();
    for own in &costs.statements {
        let (global, shared) = (&own.counts.global, &own.counts.shared);
        worst.push((global.sectors - global.least_sectors + shared.conflicts(), own));
    }
    worst.retain(|(spare, _)| *spare > 0);
    worst.sort_by_key(|(spare, own)| (std::cmp::Reverse(*spare), own.ptx_line));
    if worst.is_empty() {
        page.part("Banks and sectors");
        page.text("No access takes more sectors or wavefronts than its bytes need.");
    }
    for (_, own) in worst.into_iter().take(MAX_PICTURES) {
        let place = own.file.as_ref().map_or(String::new(), |(file, line)| {
            let text = sources.line(file, *line).map_or(String::new(), |text| format!("  {}", text.trim()));
            format!("{}:{line}{text}", file.rsplit(['/', '\\']).next().unwrap_or(file))
        });
        page.part(format!("{} (PTX line {})", own.instruction, own.ptx_line));
        if !place.is_empty() {
            page.formulas(place);
        }
        let (global, shared) = (&own.counts.global, &own.counts.shared);
        if let Some(request) = own.worst_global.as_ref().filter(|_| global.sectors > global.least_sectors) {
            page.text(format!(
                "{} requests took {} sectors of 32 bytes, where {} would do.",
                global.requests, global.sectors, global.least_sectors
            ));
            picture_of_sectors(&mut page, &request.array, &request.request);
        }
        if let Some(request) = own.worst_shared.as_ref().filter(|_| shared.conflicts() > 0) {
            page.text(format!(
                "{} requests took {} wavefronts, where {} would do.",
                shared.requests, shared.wavefronts, shared.least_wavefronts
            ));
            picture_of_banks(&mut page, request);
        }
    }
    page.html()
}

/// The lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// The 4-byte words that lanes touch, in lines of 128 bytes.
fn touched(request: &LaneRequest, mask: u32, banks: bool) -> Touched {
    let words = LINE_BYTES / WORD_BYTES;
    let word_of = |lane: usize| {
        let first = request.addresses[lane] / WORD_BYTES;
        (0..u64::from(request.bytes).div_ceil(WORD_BYTES)).map(move |word| first.wrapping_add(word))
    };
    let mut lines: Vec<u64> = lanes(mask).flat_map(word_of).map(|word| word / words).collect();
    lines.sort_unstable();
    lines.dedup();
    let touches = lanes(mask).flat_map(|lane| {
        let lines = &lines;
        word_of(lane).map(move |word| Touch {
            line: lines.partition_point(|line| *line < word / words),
            column: (word % words) as i64,
            lane: lane as i64,
        })
    });
    let touches = touches.collect();
    let lines = lines.iter().map(|line| (line * LINE_BYTES).to_string().into()).collect();
    let group = if banks { BANKS as i64 } else { (SECTOR_BYTES / WORD_BYTES) as i64 };
    Touched { lines, words: words as i64, group, banks, touches }
}

fn picture_of_sectors(page: &mut Page, array: &str, own: &LaneRequest) {
    let count = global_request(own.mask, &own.addresses, |_| own.bytes, |_| ());
    let heading = format!(
        "the worst request: {} sectors, where {} would do, in {} lines of `{array}`",
        count.sectors, count.least_sectors, count.lines
    );
    page.figure(&request(&heading, &touched(own, own.mask, false), Style::default()));
}

fn picture_of_banks(page: &mut Page, own: &LaneRequest) {
    // The phase in which a bank must serve the most words.
    let together = phase_lanes(own.bytes);
    let phases = (0..32).step_by(together).map(|first| {
        let mask = own.mask & (u32::MAX >> (32 - together)) << first;
        (shared_request(mask, &own.addresses, own.bytes, false).wavefronts, mask)
    });
    let Some((wavefronts, mask)) = phases.max_by_key(|(wavefronts, mask)| (*wavefronts, !mask)) else { return };
    let first = mask.trailing_zeros();
    let heading = format!("the worst request, from lane {first} on: {wavefronts} wavefronts, where 1 would do");
    page.figure(&request(&heading, &touched(own, mask, true), Style::default()));
}

/// Checks the file name of a page.
pub fn check_page(path: &Path) -> Result<(), Failure> {
    match path.extension().is_some_and(|own| own.eq_ignore_ascii_case("html")) {
        true => Ok(()),
        false => {
            let shown = path.display();
            Err(Failure::Usage(format!("-o {shown}: what is written is a page; end the name with .html")))
        }
    }
}
