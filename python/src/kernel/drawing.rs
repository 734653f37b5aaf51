//! Pictures of kernels: the addresses of the lanes of a warp.
//!
//! Law: the pictures show the requests of [`Program::requests`], as the cost report counts them:
//! global memory by lines and sectors, shared memory by banks, in the phase with the most
//! wavefronts.
//!
//! [`Program::requests`]: tilewright_kernel::Program::requests

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_draw::explain::requests::count;
use tilewright_draw::{self as draw, Figure, Style, Touch, Touched};
use tilewright_kernel::cost::Request;
use tilewright_kernel::program::memory::Space;

use super::program::{Program, borrowed, of_setup, sizes_of};
use crate::interrupt::interruptible;
use crate::picture::Picture;

/// Bytes of a word, and of a cache line, which equals one row of the 32 banks of shared memory.
const WORD: i64 = 4;
const LINE: i64 = 128;
/// Words of a line, and of a sector of it.
const WORDS: i64 = LINE / WORD;
const SECTOR: i64 = 8;

/// The picture of the accesses of a warp of a block, statement by statement.
///
/// Errors: sizes that the kernel does not allow; no address is known before the launch; there is no
/// such block, warp or line.
pub fn drawn(
    py: Python<'_>,
    program: &Program,
    sizes: &Bound<'_, PyDict>,
    block: [u32; 3],
    warp: u32,
    line: Option<u32>,
) -> PyResult<Picture> {
    let sizes = program.with_fixed(sizes_of(sizes)?);
    let own = program.kernel.program();
    let found = interruptible(py, || own.requests(&borrowed(&sizes), block, warp))?;
    let requests = found.map_err(|error| of_setup(py, &error))?;
    let requests = requests.map_err(|open| PyValueError::new_err(open.to_string()))?;
    let asked = requests.into_iter().filter(|request| line.is_none_or(|line| request.source.location.line() == line));
    // Repeated accesses of a statement are drawn once.
    let mut kinds: Vec<(Request, i64)> = Vec::new();
    for request in asked {
        let same = |(known, _): &&mut (Request, i64)| {
            (known.source, known.class, &known.buffer, known.bytes)
                == (request.source, request.class, &request.buffer, request.bytes)
        };
        match kinds.iter_mut().find(same) {
            Some((_, times)) => *times += 1,
            None => kinds.push((request, 1)),
        }
    }
    if kinds.is_empty() {
        let at = line.map_or_else(String::new, |line| format!(" at line {line}"));
        return Err(PyValueError::new_err(format!(
            "warp {warp} of block {block:?} of `{}` reaches no memory{at} by itself",
            own.name
        )));
    }
    let title = format!("{}: warp {warp} of block ({},{},{})", own.name, block[0], block[1], block[2]);
    Ok(Picture::of(title, move |style| {
        let figures = kinds.iter().map(|(request, times)| panel(request, *times, style));
        let caption = "Rows are lines of 128 bytes by their first byte. Of tensors, columns are words of 4 bytes, in sectors of \
                       32; of shared memory they are banks, and below is how many words each gives.";
        figures.reduce(Figure::above).unwrap_or_default().captioned(caption)
    }))
}

/// The addresses of the lanes of one request.
fn panel(request: &Request, times: i64, style: Style) -> Figure<'static> {
    let Request { source, class, buffer, space, bytes, lanes } = request;
    let (lanes, taken) = match space {
        Space::Global => {
            let (sectors, lines) = request.sectors_and_lines();
            let (sectors, lines) = (count(sectors.cast_signed(), "sector"), count(lines.cast_signed(), "line"));
            (lanes.clone(), format!("{sectors} in {lines}"))
        }
        Space::Shared => {
            let phases = request.phases();
            let all: u64 = phases.iter().map(|phase| phase.wavefronts).sum();
            let text = format!("{}, {}", count(phases.len() as i64, "phase"), count(all.cast_signed(), "wavefront"));
            let worst = phases.into_iter().rev().max_by_key(|phase| phase.wavefronts);
            (worst.map_or_else(Vec::new, |phase| phase.lanes), text)
        }
    };
    let more = if times > 1 { format!(", the first of {times}") } else { String::new() };
    let location = &source.location;
    let file = std::path::Path::new(location.file()).file_name().map(|name| name.to_string_lossy());
    let place = format!("{}:{}", file.unwrap_or_default(), location.line());
    let heading = format!(
        "{buffer}, {} of {} each, {}: {taken}{more} ({place})",
        class.name(),
        count((*bytes).into(), "byte"),
        count(lanes.len() as i64, "lane"),
    );
    draw::request(&heading, &touched(&lanes, (*bytes).into(), *space == Space::Shared), style)
}

/// The words that lanes access, line by line.
fn touched(lanes: &[(u32, i64)], bytes: i64, banks: bool) -> Touched {
    let words = |address: i64| address.div_euclid(WORD)..(address + bytes - 1).div_euclid(WORD) + 1;
    let reached = || lanes.iter().flat_map(|(lane, address)| words(*address).map(move |word| (*lane, word)));
    let mut lines: Vec<i64> = reached().map(|(_, word)| word.div_euclid(WORDS)).collect();
    lines.sort_unstable();
    lines.dedup();
    let touches = reached().filter_map(|(lane, word)| {
        let line = lines.binary_search(&word.div_euclid(WORDS)).ok()?;
        Some(Touch { line, column: word.rem_euclid(WORDS), lane: lane.into() })
    });
    let touches = touches.collect();
    let lines = lines.iter().map(|line| (line * LINE).to_string().into()).collect();
    Touched { lines, words: WORDS, group: if banks { WORDS } else { SECTOR }, banks, touches }
}
