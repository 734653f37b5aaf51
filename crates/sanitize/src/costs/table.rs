//! Prints costs beside the lines of the source.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Costs, Counts, LineCost};

/// The most characters of a line of the source that are shown.
const MAX_SHOWN: usize = 60;

/// The most bytes of a source file that is read.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// The texts of source files, each read once. A path is tried as the compiler wrote it, then
/// relative to a folder, then by its file name in that folder.
#[derive(Debug, Default)]
pub struct SourceTexts {
    folder: PathBuf,
    files: HashMap<String, Option<Vec<String>>>,
}

impl SourceTexts {
    /// Also searches this folder: the folder of the PTX.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), files: HashMap::new() }
    }

    /// A line of a file, counted from 1; None if the file cannot be read or has no such line.
    pub fn line(&mut self, file: &str, line: u32) -> Option<String> {
        let Self { folder, files } = self;
        let lines = files.entry(file.to_string()).or_insert_with(|| {
            let own = Path::new(file);
            let paths = [own.to_path_buf(), folder.join(own), folder.join(own.file_name()?)];
            paths.iter().find_map(|path| {
                let about = fs::metadata(path).ok()?;
                let is_text = about.is_file() && about.len() <= MAX_SOURCE_BYTES;
                let bytes = is_text.then(|| fs::read(path).ok())??;
                Some(String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect())
            })
        });
        lines.as_ref()?.get((line as usize).checked_sub(1)?).cloned()
    }
}

/// A number with commas as thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its least possible value, such as `512 (64)`; one number if they are equal.
fn beside_least(taken: u64, least: u64) -> String {
    match (taken, least) {
        (0, _) => String::new(),
        (taken, least) if taken == least => grouped(taken),
        (taken, least) => format!("{} ({})", grouped(taken), grouped(least)),
    }
}

/// The columns of a line.
fn columns(counts: &Counts) -> [String; 4] {
    let (global, shared) = (&counts.global, &counts.shared);
    [
        grouped(counts.instructions),
        beside_least(global.sectors, global.least_sectors),
        if global.requests > 0 { grouped(global.bytes) } else { String::new() },
        beside_least(shared.wavefronts, shared.least_wavefronts),
    ]
}

/// The text of a line of the source, truncated if it is long.
fn shown(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{} ..", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

impl LineCost {
    /// The file name and the line, such as `sum.cu:14`; `PTX line 31` if no source is known.
    pub fn place(&self) -> String {
        match (&self.file, self.ptx_lines.first()) {
            (Some((file, line)), _) => format!("{}:{line}", file.rsplit(['/', '\\']).next().unwrap_or(file)),
            (None, line) => format!("PTX line {}", line.copied().unwrap_or(0)),
        }
    }
}

impl Costs {
    /// A table with one row for each line of the source: the text and the counts. `text` returns
    /// the text of a line of a source file; lines of the PTX come from `ptx`. Numbers in brackets
    /// are the least possible values.
    ///
    /// ```
    /// use tilewright_sanitize::{Argument, KernelLaunch, Options, sanitize};
    ///
    /// // Each thread reads a word of its own row of 128 bytes.
    /// let ptx = "
    ///     .version 8.0
    ///     .target sm_80
    ///     .address_size 64
    ///     .visible .entry column(.param .u64 in) {
    ///         .reg .b32 %r<4>;
    ///         .reg .b64 %d<4>;
    ///         mov.u32 %r1, %tid.x;
    ///         mul.wide.u32 %d1, %r1, 128;
    ///         ld.param.u64 %d2, [in];
    ///         add.s64 %d2, %d2, %d1;
    ///         ld.global.u32 %r2, [%d2];
    ///         ret;
    ///     }";
    /// let launch = KernelLaunch::new("column", [1, 1, 1], [32, 1, 1])
    ///     .argument(Argument::read("in", "in:u32[1024]", 0)?);
    /// let report = sanitize(ptx, &launch, &Options { costs: true, ..Options::default() })?;
    /// let costs = report.costs.unwrap();
    /// assert_eq!((costs.total().global.sectors, costs.total().global.least_sectors), (32, 4));
    /// let table = costs.table(ptx, |_, _| None);
    /// assert!(table.contains("32 (4)") && table.contains("ld.global.u32"), "{table}");
    /// # Ok::<(), tilewright_sanitize::LaunchError>(())
    /// ```
    pub fn table(&self, ptx: &str, mut text: impl FnMut(&str, u32) -> Option<String>) -> String {
        let lines = self.lines();
        let ptx: Vec<&str> = ptx.lines().collect();
        let mut rows: Vec<([String; 4], String)> = Vec::new();
        let heads = ["warps", "sectors", "bytes", "wavefronts"].map(str::to_string);
        rows.push((heads, String::new()));
        for line in &lines {
            let source = match &line.file {
                Some((file, number)) => text(file, *number),
                None => line.ptx_lines.first().and_then(|at| ptx.get(*at as usize - 1)).map(ToString::to_string),
            };
            let source = source.map_or(String::new(), |source| format!("  {}", shown(&source)));
            rows.push((columns(&line.counts), format!("{}{source}", line.place())));
        }
        rows.push((columns(&self.total()), "in all".to_string()));
        let mut widths = [0; 4];
        for (own, _) in &rows {
            for (width, column) in widths.iter_mut().zip(own) {
                *width = (*width).max(column.len());
            }
        }
        let mut out = String::new();
        for (own, source) in &rows {
            let cells = own.iter().zip(widths).map(|(column, width)| format!("{column:>width$}"));
            let row = format!("{}  {source}", cells.collect::<Vec<String>>().join("  "));
            let _ = writeln!(out, "{}", row.trim_end());
        }
        out += &self.summary();
        out
    }

    /// A summary in lines: instructions by pipe, operations of tensor cores, bytes of arrays, and
    /// bytes in flight.
    pub fn summary(&self) -> String {
        let pipes = self.pipes();
        let pipes: Vec<String> = pipes.iter().map(|(pipe, count)| format!("{pipe} {}", grouped(*count))).collect();
        let mut out = format!("instructions of warps: {}\n", pipes.join(", "));
        for (factors, operations) in self.products() {
            let _ = writeln!(out, "operations on {}: {}", factors.name(), grouped(operations));
        }
        let [read, written] = [self.read_sectors, self.written_sectors].map(|own| grouped(own * super::SECTOR_BYTES));
        let _ = writeln!(out, "arrays, each sector once: {read} bytes read, {written} written");
        if self.in_flight_bytes > 0 {
            let bytes = grouped(self.in_flight_bytes);
            let _ = writeln!(out, "asynchronous copies under way: at most {bytes} bytes of a block");
        }
        out
    }
}
