//! Findings as SARIF 2.1.0, for code review.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::check::checker::At;
use crate::check::finding::Finding;
use crate::json::quoted;
use crate::report::Report;

/// The title of an error code.
fn title(code: &str) -> &'static str {
    match code {
        "E1010" => "access out of bounds",
        "E1011" => "misaligned access",
        "E1012" => "read of memory that nobody wrote",
        "E1016" => "race in a block or a cluster",
        "E1017" => "race between blocks",
        "E1018" => "access beside asynchronous work that is not finished",
        "E1019" => "missing proxy fence",
        "E1020" => "asynchronous work left open",
        "E1021" => "barrier that not all threads reach",
        "E1022" => "deadlock",
        "E1023" => "wrong number of arrivals",
        "E1024" => "wrong number of bytes",
        "E1025" => "barrier in memory that is not initialised",
        "E1027" => "instruction of a warp in divergent code",
        "E1028" => "result that depends on the schedule",
        "E1030" => "trap or failed assertion",
        "E1031" => "bytes of a barrier used as data",
        "E1033" => "register touched while a wgmma uses it",
        "E1035" => "shared memory of a block that may be gone",
        "E1042" => "wait that may see another phase",
        "E1044" => "non-coherent read of what the launch writes",
        "E1045" => "NaN made from numbers",
        _ => "defect of a kernel",
    }
}

impl Report {
    /// The findings as a SARIF log: each at its source line, with the other statement as a related
    /// location. A statement without a source line is reported at its line in the PTX file. `root`
    /// is removed from the paths of sources, so that they are relative to the repository.
    ///
    /// ```
    /// use tilewright_sanitize::{KernelLaunch, Options, sanitize};
    ///
    /// let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry stop() { trap; }";
    /// let report = sanitize(ptx, &KernelLaunch::new("stop", [1, 1, 1], [1, 1, 1]), &Options::default())?;
    /// assert!(report.to_sarif("stop.ptx", "").contains("\"ruleId\": \"E1030\""));
    /// # Ok::<(), tilewright_sanitize::LaunchError>(())
    /// ```
    pub fn to_sarif(&self, ptx: &str, root: &str) -> String {
        let mut rules: BTreeMap<&str, &str> = BTreeMap::new();
        for finding in &self.findings {
            rules.insert(finding.code(), title(finding.code()));
        }
        let mut out = String::from(
            "{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"version\": \"2.1.0\",\n  \
             \"runs\": [{\n    \"tool\": {\"driver\": {\"name\": \"tilewright sanitize\", \"rules\": [",
        );
        for (number, (code, title)) in rules.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            let (code, title) = (quoted(code), quoted(title));
            let _ = write!(out, "{comma}{{\"id\": {code}, \"shortDescription\": {{\"text\": {title}}}}}");
        }
        out += "]}},\n    \"results\": [";
        for (number, finding) in self.findings.iter().enumerate() {
            out += if number == 0 { "\n" } else { ",\n" };
            self.sarif_result(&mut out, finding, ptx, root);
        }
        out += if self.findings.is_empty() { "]\n  }]\n}\n" } else { "\n    ]\n  }]\n}\n" };
        out
    }

    fn sarif_result(&self, out: &mut String, finding: &Finding, ptx: &str, root: &str) {
        let text = finding.text(self);
        // The rule already names the code.
        let text = text.split_once(": ").map_or(text.as_str(), |(_, rest)| rest);
        let _ = write!(
            out,
            "      {{\"ruleId\": {}, \"level\": \"error\", \"message\": {{\"text\": {}}}, \"locations\": [{}]",
            quoted(finding.code()),
            quoted(text),
            self.sarif_place(finding.at, ptx, root, None),
        );
        if let Some(other) = finding.other() {
            let place = self.sarif_place(Some(other), ptx, root, Some("the other statement"));
            let _ = write!(out, ", \"relatedLocations\": [{place}]");
        }
        out.push('}');
    }

    fn sarif_place(&self, at: Option<At>, ptx: &str, root: &str, message: Option<&str>) -> String {
        let place = at.and_then(|at| self.places.get(&at));
        let (file, line) = match place {
            Some(place) => match &place.file {
                Some((file, line)) => (file.as_str(), *line),
                None => (ptx, place.line),
            },
            None => (ptx, 1),
        };
        let file = file.strip_prefix(root).unwrap_or(file).trim_start_matches("./");
        let file = if root.is_empty() { file } else { file.trim_start_matches('/') };
        let message = message.map_or(String::new(), |text| format!(", \"message\": {{\"text\": {}}}", quoted(text)));
        format!(
            "{{\"physicalLocation\": {{\"artifactLocation\": {{\"uri\": {}}}, \"region\": {{\"startLine\": {}}}}}{message}}}",
            quoted(&file.replace('\\', "/")),
            line.max(1),
        )
    }
}
