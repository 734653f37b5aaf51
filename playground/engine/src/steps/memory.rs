//! The memory of a block after a step: contents, accesses, and wavefronts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde_json::{Value as Json, json};
use tilewright_draw::{self as draw, Axis, Body, Cell, Figure, Image, Map, Paint, Palette, Panel, Style, Theme};
use tilewright_kernel::interpret::{AccessKind, StepEvents, Stepper, Touched};
use tilewright_kernel::program::memory::{Buffer, Space};
use tilewright_layout::{AnyLayout, Layout};
use tilewright_planners::Planned;

use crate::failure::Failure;
use crate::request::At;

/// The most rows and columns of a tensor that are shown with values, and of a tensor with few rows.
const SIDE: i64 = 32;
const LONG: i64 = 64;
/// The most pixels of a side if a tensor is shown as a whole.
const PIXELS: i64 = 1024;
/// Words of a line of shared memory, one for each bank.
const BANKS: u64 = 32;

/// A tensor as a table: mode 0 downward, the others to the right; one of a single mode in lines.
struct Table {
    map: Map,
    rows: i64,
    columns: i64,
    lines: bool,
}

impl Table {
    fn of(layout: &AnyLayout) -> Option<Table> {
        let map = Map::new(layout)?;
        let size = map.size();
        let first = map.shape().modes().next().map_or(1, |mode| mode.leaves().iter().product::<i64>());
        if first == size && size > SIDE {
            return Some(Table { map, rows: (size + SIDE - 1) / SIDE, columns: SIDE, lines: true });
        }
        // A single mode goes to the right.
        let (rows, columns) = if first == size { (1, size) } else { (first, size / first.max(1)) };
        Some(Table { map, rows, columns, lines: false })
    }

    /// The index of a cell; None after the end of the last line.
    fn index(&self, row: i64, column: i64) -> Option<i64> {
        let index = if self.lines { row * self.columns + column } else { row + self.rows * column };
        (index < self.map.size()).then_some(index)
    }

    fn cell(&self, index: i64) -> (i64, i64) {
        let side = if self.lines { self.columns } else { self.rows };
        let (inner, outer) = (index % side, index / side);
        if self.lines { (outer, inner) } else { (inner, outer) }
    }

    fn rows_axis(&self, first: i64, count: i64) -> Axis {
        let unit = if self.lines { self.columns } else { 1 };
        Axis::flat(count).counted_by(unit).shifted_by(first * unit)
    }
}

/// The threads that accessed an element in a step.
#[derive(Clone, Copy)]
struct Toucher {
    thread: u32,
    others: u32,
    read: bool,
    written: bool,
}

/// The accesses to each element of a buffer.
fn touchers(at: &At, number: usize, buffer: &Buffer, step: &StepEvents) -> HashMap<u64, Toucher> {
    let mut found: HashMap<u64, Toucher> = HashMap::new();
    let size = u64::from(buffer.element.bytes());
    let shared = buffer.space == Space::Shared;
    let own = step.touched.iter().filter(|touched| touched.buffer == number && (!shared || touched.block == at.block));
    for touched in own {
        let thread = touched.thread.thread;
        let (read, written) = (touched.kind != AccessKind::Write, touched.kind != AccessKind::Read);
        for element in touched.byte / size..(touched.byte + touched.bytes).div_ceil(size) {
            let known = found.entry(element).or_insert(Toucher { thread, others: 0, read, written });
            if known.thread != thread {
                known.others += 1;
            }
            known.read |= read;
            known.written |= written;
        }
    }
    found
}

/// The pictures of all tensors and shared arrays, those that the step accessed first.
pub fn tensors(
    planned: &Planned,
    at: &At,
    theme: Theme,
    stepper: &Stepper<'_>,
    step: &StepEvents,
) -> Result<Vec<Json>, Failure> {
    let program = planned.kernel().program();
    let globals = program.layouts(planned.sizes())?;
    let mut pictures: Vec<(bool, Json)> = Vec::new();
    for (number, buffer) in program.buffers.iter().enumerate() {
        let Some(bytes) = stepper.bytes(number, at.block) else { continue };
        let elements = bytes.len() as i64 / i64::from(buffer.element.bytes());
        let written = buffer.layout.parse::<AnyLayout>().ok();
        let layout = globals.get(number).cloned().or(written);
        let known = layout.as_ref().and_then(Table::of);
        let table = match known {
            Some(table) => table,
            None => match Table::of(&AnyLayout::from(Layout::new(&elements.into(), &1.into())?)) {
                Some(table) => table,
                None => continue,
            },
        };
        let who = touchers(at, number, buffer, step);
        let view =
            ShownTensor { at, stepper, number, buffer, bytes, table: &table, who: &who, threads: program.threads };
        let (figure, note) = if at.whole { view.whole()? } else { view.part()? };
        let text = layout.map_or_else(|| buffer.layout.clone(), |layout| layout.to_string());
        pictures.push((
            who.is_empty(),
            json!({
                "name": buffer.name,
                "what": if buffer.space == Space::Shared { "shared" } else { "global" },
                "type": buffer.element.name(),
                "layout": text,
                "touched": !who.is_empty(),
                "note": note,
                "svg": figure.svg(theme),
            }),
        ));
    }
    pictures.sort_by_key(|(untouched, _)| *untouched);
    Ok(pictures.into_iter().map(|(_, picture)| picture).collect())
}

/// One tensor after a step.
struct ShownTensor<'a> {
    at: &'a At,
    stepper: &'a Stepper<'a>,
    number: usize,
    buffer: &'a Buffer,
    bytes: &'a [u8],
    table: &'a Table,
    who: &'a HashMap<u64, Toucher>,
    threads: u32,
}

impl ShownTensor<'_> {
    /// The element at an index, counted from the start of the buffer.
    fn element(&self, index: i64) -> Option<u64> {
        u64::try_from(self.table.map.at(index).ok()?).ok()
    }

    fn paint(&self, thread: u32) -> Paint {
        Palette::Distinct.paint(thread.into(), self.threads.into())
    }

    /// The rows and columns around all elements that satisfy `wanted`; None if there are none.
    fn around(&self, wanted: impl Fn(&Toucher) -> bool) -> Option<[Range<i64>; 2]> {
        let mut found: Option<[Range<i64>; 2]> = None;
        for index in 0..self.table.map.size() {
            if !self.element(index).and_then(|element| self.who.get(&element)).is_some_and(&wanted) {
                continue;
            }
            let (row, column) = self.table.cell(index);
            found = Some(match found {
                Some([rows, columns]) => {
                    [rows.start.min(row)..rows.end.max(row + 1), columns.start.min(column)..columns.end.max(column + 1)]
                }
                None => [row..row + 1, column..column + 1],
            });
        }
        found
    }

    /// The rows and columns that are shown: those that the step accesses, or if they do not fit,
    /// those that the thread accesses.
    fn window(&self) -> [Range<i64>; 2] {
        let [rows, columns] = match self.who.is_empty() {
            true => None,
            false => self.around(|_| true),
        }
        .unwrap_or([0..SIDE / 2, 0..LONG]);
        let room = |touched: &Range<i64>, least: i64, most: i64, of: i64| {
            (touched.end - touched.start / 8 * 8).clamp(least, most).min(of)
        };
        let down = room(&rows, 8, SIDE, self.table.rows);
        let across = room(&columns, SIDE / 2, if down <= SIDE / 2 { LONG } else { SIDE }, self.table.columns);
        let fits = rows.end - rows.start / 8 * 8 <= down && columns.end - columns.start / 8 * 8 <= across;
        let own = if fits { None } else { self.around(|toucher| toucher.thread == self.at.thread) };
        let [top, left] = own.map_or([rows.start, columns.start], |[rows, columns]| [rows.start, columns.start]);
        let first = |at: i64, shown: i64, of: i64| (at / 8 * 8).min(of - shown).max(0);
        let (top, left) = (first(top, down, self.table.rows), first(left, across, self.table.columns));
        [top..top + down, left..left + across]
    }

    fn fill(&self, row: i64, column: i64, cell: &mut Cell) {
        let Some((index, element)) =
            self.table.index(row, column).and_then(|index| Some((index, self.element(index)?)))
        else {
            cell.fill = Paint::Void;
            return;
        };
        let size = u64::from(self.buffer.element.bytes());
        let byte = element * size;
        let there = self.stepper.is_written(self.number, self.at.block, byte);
        let bits = self.bytes.get(byte as usize..(byte + size) as usize);
        let value = match bits.filter(|_| there) {
            Some(bytes) => {
                let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                self.buffer.element.text(bits)
            }
            None => String::new(),
        };
        cell.label = short(&value);
        if value.is_empty() && self.who.get(&element).is_some_and(|toucher| toucher.written) {
            cell.label.push('…');
        }
        let coordinate = self.table.map.coordinate(index);
        let told = if value.is_empty() { "not written yet".to_owned() } else { value };
        cell.title = format!("{}{coordinate}: {told}, at byte {byte}", self.buffer.name);
        cell.faint = true;
        if let Some(toucher) = self.who.get(&element) {
            cell.faint = false;
            cell.fill = self.paint(toucher.thread);
            cell.link = Some(toucher.thread);
            cell.second = format!("T{}{}", toucher.thread, if toucher.others > 0 { "+" } else { "" });
            cell.region = u32::from(toucher.written);
            let how = match (toucher.read, toucher.written) {
                (true, true) => "read and written",
                (true, false) => "read",
                _ => "written",
            };
            cell.title.push_str(&format!(", {how} by thread {}", toucher.thread));
            if toucher.others > 0 {
                cell.title.push_str(&format!(" and {} more", toucher.others));
            }
        }
    }

    /// The values of a part.
    fn part(&self) -> Result<(Figure<'_>, String), Failure> {
        let [down, across] = self.window();
        let (top, left, rows, columns) = (down.start, across.start, down.end - down.start, across.end - across.start);
        let (down, across) = (self.table.rows_axis(top, rows), Axis::flat(columns).shifted_by(left));
        let panel = Panel::grid("", down, across, move |row, column, cell: &mut Cell| {
            self.fill(top + row, left + column, cell);
        });
        let all = rows == self.table.rows && columns == self.table.columns;
        let note = match (all, self.table.lines) {
            (true, _) => String::new(),
            (_, true) => {
                let (first, last) = (top * columns, ((top + rows) * columns).min(self.table.map.size()) - 1);
                format!("elements {first} to {last} of {}", self.table.map.size())
            }
            _ => format!(
                "rows {top} to {} of {}, columns {left} to {} of {}",
                top + rows - 1,
                self.table.rows,
                left + columns - 1,
                self.table.columns
            ),
        };
        Ok((Figure::row([panel.outlined(Paint::Accent)]), note))
    }

    /// The colours of the whole tensor, one pixel per element or for several elements.
    fn whole(&self) -> Result<(Figure<'_>, String), Failure> {
        let block = |side: i64| (side + PIXELS - 1) / PIXELS;
        let (down, across) = (block(self.table.rows), block(self.table.columns));
        let blocks = |side: i64, block: i64| (side + block - 1) / block;
        let (rows, columns) = (blocks(self.table.rows, down), blocks(self.table.columns, across));
        let mut pixels = vec![Paint::Void; (rows * columns) as usize];
        let mut rank = vec![0_u8; pixels.len()];
        for index in 0..self.table.map.size() {
            let Some(element) = self.element(index) else { continue };
            let (row, column) = self.table.cell(index);
            let pixel = (row / down * columns + column / across) as usize;
            let byte = element * u64::from(self.buffer.element.bytes());
            let (own, paint) = match self.who.get(&element) {
                Some(toucher) => (2, self.paint(toucher.thread)),
                None if self.stepper.is_written(self.number, self.at.block, byte) => (1, Paint::Grey(1)),
                None => (0, Paint::Void),
            };
            if own > rank[pixel] || index == 0 {
                (rank[pixel], pixels[pixel]) = (own, paint);
            }
        }
        let note = match down * across {
            1 => format!("{} by {}, a pixel an element", self.table.rows, self.table.columns),
            _ => format!("{} by {}, a pixel for {down} by {across}", self.table.rows, self.table.columns),
        };
        let image = Body::Image { image: Image::new(columns as usize, pixels), block: (down, across) };
        Ok((Figure::row([Panel::new("", image)]), note))
    }
}

/// A value in at most seven characters; the whole one is in the tooltip.
fn short(value: &str) -> String {
    if value.len() <= 7 {
        return value.to_owned();
    }
    match value.parse::<f64>() {
        Ok(number) if number != 0.0 && !(0.001..10_000.0).contains(&number.abs()) => format!("{number:.1e}"),
        Ok(number) => format!("{number:.3}"),
        Err(_) => value.to_owned(),
    }
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The accesses of a step, one line per memory and direction.
pub fn lines(planned: &Planned, step: &StepEvents) -> Vec<String> {
    let program = planned.kernel().program();
    let mut lines = Vec::new();
    for (number, buffer) in program.buffers.iter().enumerate() {
        for (kind, one, several) in [
            (AccessKind::Read, "reads", "read"),
            (AccessKind::Write, "writes", "write"),
            (AccessKind::Atomic, "changes indivisibly", "change indivisibly"),
        ] {
            let own: Vec<&Touched> =
                step.touched.iter().filter(|touched| touched.buffer == number && touched.kind == kind).collect();
            let Some(first) = own.first() else { continue };
            let threads: BTreeSet<(u32, [u32; 3])> =
                own.iter().map(|touched| (touched.thread.thread, touched.thread.block)).collect();
            let bytes = own.iter().map(|touched| touched.bytes).sum();
            let widths: BTreeSet<u64> = own.iter().map(|touched| touched.bytes).collect();
            let widths: Vec<String> = widths.iter().map(u64::to_string).collect();
            let behind = if first.background { ", behind the threads' backs" } else { "" };
            let memory = if buffer.space == Space::Shared { "shared memory" } else { "global memory" };
            let who = match threads.len() {
                1 => format!("1 thread {one}"),
                many => format!("{many} threads {several}"),
            };
            lines.push(format!(
                "{who} {} of {} in {memory}, {} at a time{behind}",
                count(bytes, "byte"),
                buffer.name,
                widths.join(" or "),
            ));
        }
    }
    lines
}

/// The accesses of one warp instruction to shared memory: lane, first byte and length, relative to
/// the start of the shared memory of the block.
struct WarpAccess {
    number: usize,
    buffer: usize,
    warp: u32,
    lanes: BTreeMap<u32, (u64, u64)>,
}

impl WarpAccess {
    /// The lanes that are served together.
    fn phases(&self) -> Vec<(u32, u32)> {
        let bytes = self.lanes.values().map(|(_, bytes)| *bytes).max().unwrap_or(4);
        let width = match bytes {
            16 => 8,
            8 => 16,
            _ => 32,
        };
        (0..32).step_by(width).map(|first| (first as u32, first as u32 + width as u32 - 1)).collect()
    }

    /// The words that the lanes of a phase access: line, bank and lane.
    fn words(&self, (first, last): (u32, u32)) -> BTreeSet<(u64, u64, u32)> {
        let own = self.lanes.iter().filter(|(lane, _)| (first..=last).contains(lane));
        own.flat_map(|(lane, (byte, bytes))| {
            (byte / 4..(byte + bytes).div_ceil(4)).map(move |word| (word / BANKS, word % BANKS, *lane))
        })
        .collect()
    }

    /// The wavefronts of a phase, and the least possible number.
    fn wavefronts(&self, phase: (u32, u32)) -> (u64, u64) {
        let words: BTreeSet<(u64, u64)> = self.words(phase).iter().map(|(line, bank, _)| (*line, *bank)).collect();
        let mut banks = [0_u64; BANKS as usize];
        words.iter().for_each(|(_, bank)| banks[*bank as usize] += 1);
        (banks.into_iter().max().unwrap_or(0), (words.len() as u64).div_ceil(BANKS))
    }

    fn all(&self) -> (u64, u64) {
        let phases = self.phases();
        phases.iter().map(|phase| self.wavefronts(*phase)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// The warp instructions that access shared memory, without those of TMA and wgmma, which are not
/// served lane by lane.
fn shared(planned: &Planned, step: &StepEvents) -> Vec<WarpAccess> {
    let program = planned.kernel().program();
    let mut requests: Vec<WarpAccess> = Vec::new();
    for touched in &step.touched {
        let buffer = &program.buffers[touched.buffer];
        let one =
            step.executed.iter().any(|executed| executed.source.is_beside(&touched.source) && executed.wavefronts > 0);
        if buffer.space != Space::Shared || !one {
            continue;
        }
        let (warp, lane) = (touched.thread.thread / 32, touched.thread.thread % 32);
        let place = (u64::from(buffer.start) + touched.byte, touched.bytes);
        match requests.iter_mut().rfind(|request| request.number == touched.request && request.buffer == touched.buffer)
        {
            Some(request) => {
                request.lanes.insert(lane, place);
            }
            None => requests.push(WarpAccess {
                number: touched.request,
                buffer: touched.buffer,
                warp,
                lanes: BTreeMap::from([(lane, place)]),
            }),
        }
    }
    requests
}

/// The accesses of warps to shared memory: number, warp, array, wavefronts and the least.
pub fn requests(planned: &Planned, step: &StepEvents) -> Vec<Json> {
    let program = planned.kernel().program();
    let one = |request: &WarpAccess| {
        let (wavefronts, least) = request.all();
        json!([request.number, request.warp, program.buffers[request.buffer].name, wavefronts, least])
    };
    shared(planned, step).iter().map(one).collect()
}

/// The banks of an access: the given one, or the one with the most wavefronts.
pub fn banks(planned: &Planned, at: &At, theme: Theme, step: &StepEvents) -> Option<Json> {
    let requests = shared(planned, step);
    let asked = requests.iter().find(|request| Some(request.number) == at.request);
    let request = asked.or_else(|| requests.iter().rev().max_by_key(|request| request.all().0))?;
    let phases = request.phases();
    let phase = *phases.iter().rev().max_by_key(|phase| request.wavefronts(**phase).0)?;
    let words = request.words(phase);
    let lines: BTreeSet<u64> = words.iter().map(|(line, ..)| *line).collect();
    let places: BTreeMap<u64, usize> = lines.iter().enumerate().map(|(at, line)| (*line, at)).collect();
    let (wavefronts, least) = request.wavefronts(phase);
    let touch = |(line, bank, lane): &(u64, u64, u32)| draw::Touch {
        line: places.get(line).copied().unwrap_or(0),
        column: *bank as i64,
        lane: i64::from(*lane),
    };
    let touched = draw::Touched {
        lines: lines.iter().map(|line| (line * BANKS * 4).to_string().into_boxed_str()).collect(),
        words: BANKS as i64,
        group: BANKS as i64,
        banks: true,
        touches: words.iter().map(touch).collect(),
    };
    let heading = format!(
        "warp {}, lanes {} to {}: {} where {} would do",
        request.warp,
        phase.0,
        phase.1,
        count(wavefronts, "wavefront"),
        least
    );
    let figure = draw::request(&heading, &touched, Style::default());
    Some(json!({ "request": request.number, "svg": figure.svg(theme) }))
}
