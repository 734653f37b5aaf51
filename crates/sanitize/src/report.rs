//! The report of a run: findings with their locations, results, and printed lines.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::check::checker::At;
use crate::check::finding::Finding;
use crate::check::message::Sources;
use crate::costs::Costs;
use crate::element::Element;
use crate::json::quoted;

/// The location of a statement, in the PTX and in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementSource {
    /// The function.
    pub function: String,
    /// The line of the PTX.
    pub line: u32,
    /// The location in the source, such as `mm.py:23`, if the compiler recorded it.
    pub source: Option<String>,
    /// The path of the source file, and the line in it.
    pub file: Option<(String, u32)>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All threads exited, or a finding says why they did not.
    Complete,
    /// An instruction is unknown, or cannot be executed: the statement, and the reason.
    Refused(At, String),
    /// The limit of instructions was reached.
    Limit(u64),
    /// The caller interrupted it.
    Interrupted,
}

/// An array that the kernel may have written, after the launch.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultArray {
    /// The number of the argument, from 0.
    pub argument: usize,
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its extents, the slowest first.
    pub shape: Vec<u64>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The element of a result that differs most from its expected value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The index of the element, row after row.
    pub element: u64,
    /// The value of the result.
    pub found: f64,
    /// The expected value.
    pub expected: f64,
    /// The number of elements that differ by more than the tolerance.
    pub count: u64,
}

impl ResultArray {
    /// Compares the result with expected bytes of a type. An element `x` differs from its expected
    /// value `y` if `|x - y| > tolerance + tolerance * |y|`, whose left side is exact for integers.
    /// An infinity or a NaN equals only itself. None if no element differs. `element` is the type
    /// of the expected array; formats that NumPy lacks may be given as integers of the same size.
    ///
    /// ```
    /// use tilewright_sanitize::{Element, ResultArray};
    ///
    /// let bytes = [1.0_f32, 2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    /// let own = ResultArray { argument: 0, name: "y".into(), element: Element::F32, shape: vec![2], bytes };
    /// let expected: Vec<u8> = [1.0_f64, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    /// assert!(own.difference(Element::F64, &expected, 0.3).is_none());
    /// assert_eq!(own.difference(Element::F64, &expected, 0.1).unwrap().element, 1);
    /// ```
    pub fn difference(&self, element: Element, expected: &[u8], tolerance: f64) -> Option<Difference> {
        let element = if element.is_like(self.element) { self.element } else { element };
        let own = self.bytes.chunks_exact(self.element.bytes() as usize);
        let other = expected.chunks_exact(element.bytes() as usize);
        let mut worst: Option<(f64, Difference)> = None;
        let mut count = 0;
        for (at, (own, other)) in own.zip(other).enumerate() {
            let (found, expected) = (self.element.decode(own), element.decode(other));
            let distance = match (self.element.decode_integer(own), element.decode_integer(other)) {
                (Some(found), Some(expected)) => found.abs_diff(expected) as f64,
                _ if found == expected || (found.is_nan() && expected.is_nan()) => 0.0,
                _ => (found - expected).abs(),
            };
            // The distance to or from an infinity is infinite, and so is what the law admits there.
            if distance == 0.0 || distance.is_finite() && distance <= tolerance + tolerance * expected.abs() {
                continue;
            }
            let distance = if distance.is_nan() { f64::INFINITY } else { distance };
            count += 1;
            if worst.as_ref().is_none_or(|(before, _)| distance > *before) {
                worst = Some((distance, Difference { element: at as u64, found, expected, count }));
            }
        }
        worst.map(|(_, own)| Difference { count, ..own })
    }
}

impl ResultArray {
    /// The offset of the first byte of an element that differs from the result of another schedule
    /// by more than rounding. Floats that atomic operations add in another order differ in their
    /// last places. The greatest magnitude of the array determines the size of a last place.
    pub(crate) fn first_other_than_rounded(&self, other: &[u8]) -> Option<u64> {
        let bytes = self.element.bytes() as usize;
        // The last six bits of each type; the last two of f16 and bf16.
        let places = match self.element {
            Element::F64 => 2.0_f64.powi(6 - 52),
            Element::F32 => 2.0_f64.powi(6 - 23),
            Element::F16 => 2.0_f64.powi(2 - 10),
            Element::Bf16 => 2.0_f64.powi(2 - 7),
            _ => 0.0,
        };
        let pairs = || self.bytes.chunks_exact(bytes).zip(other.chunks_exact(bytes));
        if places == 0.0 || self.bytes == other {
            return pairs().position(|(own, other)| own != other).map(|at| (at * bytes) as u64);
        }
        let values = self.bytes.chunks_exact(bytes).map(|own| self.element.decode(own).abs());
        let greatest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let differs = |(own, other): (&[u8], &[u8])| {
            let distance = (self.element.decode(own) - self.element.decode(other)).abs();
            own != other && (distance.is_nan() || distance > places * greatest)
        };
        pairs().position(differs).map(|at| (at * bytes) as u64)
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The findings, in the order of statements.
    pub findings: Vec<Finding>,
    /// How it ended.
    pub ending: Ending,
    /// The locations of the statements that findings and the ending name.
    pub places: BTreeMap<At, StatementSource>,
    /// The arrays that are `out` or `inout`, after the first schedule.
    pub results: Vec<ResultArray>,
    /// The lines that `printf` wrote in the first schedule.
    pub printed: Vec<String>,
    /// The number of thread instructions that were executed.
    pub thread_instructions: u64,
    /// The number of schedules that ran.
    pub schedules: u32,
    /// The costs of the first schedule, if the options ask for them.
    pub costs: Option<Costs>,
}

impl Sources for Report {
    fn source(&self, at: At) -> String {
        match self.places.get(&at) {
            Some(StatementSource { source: Some(source), line, .. }) => format!("{source} (PTX line {line})"),
            Some(StatementSource { line, .. }) => format!("PTX line {line}"),
            None => format!("instruction {at}"),
        }
    }
}

impl Report {
    /// Merges findings of the same source lines. A compiler makes several statements from one line,
    /// such as when it unrolls a loop.
    pub(crate) fn join_lines(&mut self) {
        let place = |at: Option<At>| {
            let own = self.places.get(&at?)?;
            Some((own.function.as_str(), own.file.as_ref()?, own.source.as_ref()?))
        };
        let mut kept: Vec<Finding> = Vec::new();
        for finding in &self.findings {
            let same = |own: &&mut Finding| {
                own.code() == finding.code()
                    && place(finding.at).is_some()
                    && place(own.at) == place(finding.at)
                    && place(own.other()) == place(finding.other())
                    && own.other().is_some() == finding.other().is_some()
            };
            match kept.iter_mut().find(same) {
                Some(own) => own.count = own.count.saturating_add(finding.count),
                None => kept.push(finding.clone()),
            }
        }
        self.findings = kept;
    }

    /// Whether there are no findings and the run was complete.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.ending == Ending::Complete
    }

    /// Why the run is incomplete, as a sentence; None if it is complete.
    pub fn unfinished(&self) -> Option<String> {
        match &self.ending {
            Ending::Complete => None,
            Ending::Refused(at, why) => Some(format!("{}: {why}", self.source(*at))),
            Ending::Limit(limit) => Some(format!(
                "the limit of {limit} instructions of threads is reached and the kernel is not at its end; more may be allowed"
            )),
            Ending::Interrupted => Some("it was interrupted".to_string()),
        }
    }

    /// As JSON: findings with their codes, sentences and locations, the ending, and counts.
    ///
    /// ```
    /// use tilewright_sanitize::{KernelLaunch, Options, sanitize};
    ///
    /// let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing() { ret; }";
    /// let report = sanitize(ptx, &KernelLaunch::new("nothing", [1, 1, 1], [32, 1, 1]), &Options::default())?;
    /// assert!(report.to_json().contains("\"findings\": []"));
    /// # Ok::<(), tilewright_sanitize::LaunchError>(())
    /// ```
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\n  \"findings\": [");
        for (number, finding) in self.findings.iter().enumerate() {
            out += if number == 0 { "\n" } else { ",\n" };
            let _ = write!(
                out,
                "    {{\"code\": {}, \"message\": {}, \"count\": {}",
                quoted(finding.code()),
                quoted(&finding.text(self)),
                finding.count
            );
            for (key, at) in [("at", finding.at), ("other", finding.other())] {
                if let Some(at) = at {
                    let _ = write!(out, ", \"{key}\": {}", self.place_json(at));
                }
            }
            if let Some(thread) = finding.thread {
                let [x, y, z] = thread.block;
                let _ = write!(
                    out,
                    ", \"thread\": {{\"block\": [{x}, {y}, {z}], \"warp\": {}, \"lane\": {}}}",
                    thread.warp, thread.lane
                );
            }
            out.push('}');
        }
        out += if self.findings.is_empty() { "],\n" } else { "\n  ],\n" };
        match self.unfinished() {
            None => out += "  \"unfinished\": null,\n",
            Some(why) => {
                let _ = writeln!(out, "  \"unfinished\": {},", quoted(&why));
            }
        }
        let printed: Vec<String> = self.printed.iter().map(|line| quoted(line)).collect();
        let _ = write!(
            out,
            "  \"printed\": [{}],\n  \"thread_instructions\": {},\n  \"schedules\": {}",
            printed.join(", "),
            self.thread_instructions,
            self.schedules
        );
        if let Some(costs) = &self.costs {
            let _ = write!(out, ",\n  \"costs\": {}", costs.to_json());
        }
        out + "\n}\n"
    }

    fn place_json(&self, at: At) -> String {
        let Some(place) = self.places.get(&at) else { return "null".to_string() };
        let mut out = format!("{{\"function\": {}, \"ptx_line\": {}", quoted(&place.function), place.line);
        if let Some((file, line)) = &place.file {
            let _ = write!(out, ", \"file\": {}, \"line\": {line}", quoted(file));
        }
        if let Some(source) = &place.source {
            let _ = write!(out, ", \"source\": {}", quoted(source));
        }
        out + "}"
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(out, "{}", finding.text(self))?;
        }
        if let Some(why) = self.unfinished() {
            writeln!(out, "not run to the end: {why}")?;
        }
        let count = match self.findings.len() {
            0 => "nothing found".to_string(),
            1 => "1 finding".to_string(),
            count => format!("{count} findings"),
        };
        let schedules = match self.schedules {
            1 => String::new(),
            count => format!(" in {count} schedules"),
        };
        write!(out, "{count}; {} instructions of threads{schedules}", self.thread_instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::{Element, ResultArray};

    fn differs(element: Element, own: &[u8], other: Element, expected: &[u8], tolerance: f64) -> bool {
        let count = own.len() as u64 / element.bytes();
        let own = ResultArray { argument: 0, name: "y".into(), element, shape: vec![count], bytes: own.to_vec() };
        own.difference(other, expected, tolerance).is_some()
    }

    /// An infinity admits itself alone: `tolerance * |inf|` would admit every number.
    #[test]
    fn infinities_and_nans_equal_themselves_alone() {
        let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0];
        for (number, found) in special.iter().enumerate() {
            for (other, expected) in special.iter().enumerate() {
                let differs = differs(Element::F32, &found.to_le_bytes(), Element::F32, &expected.to_le_bytes(), 0.5);
                assert_eq!(differs, number != other, "{found} {expected}");
            }
        }
    }

    /// Integers of 64 bits are compared exactly, and a file of integers holds no floats.
    #[test]
    fn integers_are_integers() {
        let (own, other) = ((1_i64 << 60) + 1, 1_i64 << 60);
        let bytes = [own.to_le_bytes(), other.to_le_bytes()];
        assert!(differs(Element::Signed(8), &bytes[0], Element::Signed(8), &bytes[1], 0.0));
        assert!(!differs(Element::Signed(8), &bytes[0], Element::Signed(8), &bytes[1], 1e-3));
        assert!(!differs(Element::F32, &2_f32.to_le_bytes(), Element::Signed(4), &2_i32.to_le_bytes(), 0.0));
        assert!(differs(Element::F32, &0_f32.to_le_bytes(), Element::Signed(4), &1_i32.to_le_bytes(), 1e-2));
        // NumPy has no bf16: 0x3f80 is 1.
        assert!(!differs(Element::Bf16, &[0x80, 0x3f], Element::Unsigned(2), &[0x80, 0x3f], 0.0));
    }
}
