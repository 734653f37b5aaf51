//! What a run gives: findings with their places, results, and what it printed.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::check::checker::At;
use crate::check::finding::Finding;
use crate::check::message::Sources;
use crate::element::Element;

/// A statement in the text and in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementSource {
    /// The function.
    pub function: String,
    /// The line of the PTX.
    pub line: u32,
    /// The place in the source, as in `mm.py:23`, if the compiler wrote it down.
    pub source: Option<String>,
    /// The path of the file of the source and the line in it.
    pub file: Option<(String, u32)>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All threads ended, or a finding says why they did not.
    Complete,
    /// An instruction is not known, or does what cannot be run: the statement, and why.
    Refused(At, String),
    /// The bound of work was reached.
    Limit(u64),
    /// It was interrupted.
    Interrupted,
}

/// An array that the kernel may have written, as it is after the launch.
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

/// What a run gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What is wrong, in the order of statements.
    pub findings: Vec<Finding>,
    /// How it ended.
    pub ending: Ending,
    /// The statements that findings and the ending name.
    pub places: BTreeMap<At, StatementSource>,
    /// The arrays that are `out` or `inout`, of the first schedule.
    pub results: Vec<ResultArray>,
    /// What `printf` wrote in the first schedule.
    pub printed: Vec<String>,
    /// Instructions of threads that were executed.
    pub thread_instructions: u64,
    /// How many schedules ran.
    pub schedules: u32,
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
    /// Whether nothing was found and all was run.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.ending == Ending::Complete
    }

    /// Why it did not run to its end, as a sentence.
    pub fn unfinished(&self) -> Option<String> {
        match &self.ending {
            Ending::Complete => None,
            Ending::Refused(at, why) => Some(format!("{}: {why}", self.source(*at))),
            Ending::Limit(limit) => Some(format!(
                "{limit} instructions of threads were executed and the kernel is not at its end; more may be allowed"
            )),
            Ending::Interrupted => Some("it was interrupted".to_string()),
        }
    }

    /// As JSON: findings with their codes, sentences and places, how it ended, and counts.
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
            "  \"printed\": [{}],\n  \"thread_instructions\": {},\n  \"schedules\": {}\n}}\n",
            printed.join(", "),
            self.thread_instructions,
            self.schedules
        );
        out
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

/// A text of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            letter if u32::from(letter) < 32 => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out + "\""
}
