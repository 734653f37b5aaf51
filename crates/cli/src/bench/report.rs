//! The file of a report.
//!
//! Law: a report that is written can be read back. A file of another kind or a later format, or a
//! damaged file, is refused with its name, and its text is only displayed.

use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tilewright::gpu::Device;

use crate::json::Json;
use crate::output::Failure;

/// The version of the format.
const FORMAT: u64 = 1;
/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// The seconds of a day.
const DAY: u64 = 86_400;

/// A report that was read.
#[derive(Debug)]
pub struct Report {
    object: Json,
    /// The name of the card.
    pub card: String,
    /// The driver, the version of this program, and the date.
    pub about: [String; 3],
    /// The cases, in order.
    pub cases: Vec<Case>,
}

/// A case of a report.
#[derive(Debug)]
pub struct Case {
    /// The words of the case.
    pub line: String,
    pub outcome: CaseOutcome,
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseOutcome {
    /// It was checked and timed.
    Measured { microseconds: f64, rate: Rate, peer: Option<PeerRatio> },
    /// It was refused, or its result was wrong: the reason.
    Refused(String),
}

/// The rate of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// 10^12 floating-point operations a second.
    Flops(f64),
    /// 10^12 operations on integers a second.
    Integers(f64),
    /// 10^12 bytes a second.
    Bytes(f64),
}

/// A time measured in the same run, divided by the time of the case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PeerRatio {
    /// The time of cuBLAS.
    Cublas(f64),
    /// The time of the driver's copy of equally many bytes.
    Copy(f64),
}

impl Default for CaseOutcome {
    fn default() -> CaseOutcome {
        CaseOutcome::Refused("nothing was measured".to_owned())
    }
}

impl CaseOutcome {
    /// The outcome in the object of a case; None if the object has none of its fields.
    pub fn read(object: &Json) -> Option<CaseOutcome> {
        let number = |name: &str| object.get(name).and_then(Json::as_f64).filter(|number| number.is_finite());
        if let Some(because) = object.get("refused") {
            return Some(CaseOutcome::Refused(because.as_str()?.to_owned()));
        }
        // Only a checked result has a time.
        if object.get("checked")?.as_bool() != Some(true) {
            return None;
        }
        let microseconds = number("median_us").filter(|time| *time > 0.0)?;
        let copy = number("copy_tb_per_s").filter(|rate| *rate > 0.0);
        let (rate, peer) = match (number("tflops").or(number("tflop_per_s")), number("tb_per_s")) {
            (Some(operations), _) => {
                let cublas = number("cublas_us").map(|time| PeerRatio::Cublas(time / microseconds));
                let accumulator = object.pointer("/types/accumulator").and_then(Json::as_str);
                let rate = if accumulator == Some("i32") { Rate::Integers } else { Rate::Flops };
                (rate(operations), cublas)
            }
            (None, Some(bytes)) => (Rate::Bytes(bytes), copy.map(|copy| PeerRatio::Copy(bytes / copy))),
            _ => return None,
        };
        Some(CaseOutcome::Measured { microseconds, rate, peer })
    }
}

impl fmt::Display for CaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaseOutcome::Refused(because) => write!(f, "refused: {because}"),
            CaseOutcome::Measured { microseconds, rate, peer } => {
                write!(f, "{microseconds:.1} us, ")?;
                match rate {
                    Rate::Flops(rate) => write!(f, "{rate:.1} TFLOP/s")?,
                    Rate::Integers(rate) => write!(f, "{rate:.1} TOP/s")?,
                    Rate::Bytes(rate) => write!(f, "{rate:.2} TB/s")?,
                }
                match peer {
                    Some(PeerRatio::Cublas(ratio)) => write!(f, ", {ratio:.2} of cuBLAS' rate"),
                    Some(PeerRatio::Copy(ratio)) => write!(f, ", {ratio:.2} of the copy's rate"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Report {
    /// The object of a report that is being written.
    pub fn object(device: &Device, cases: Vec<Json>) -> Json {
        let (has, (major, minor)) = (device.attributes(), device.capability());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        json!({
            "report": FORMAT,
            "tilewright": env!("CARGO_PKG_VERSION"),
            "day": day(now),
            "card": device.name(),
            "capability": format!("{major}.{minor}"),
            "driver": driver(device.driver_version()),
            "multiprocessors": has.multiprocessors,
            "clock_mhz": has.clock_khz / 1000,
            "memory_bytes": has.memory_bytes,
            "memory_clock_mhz": has.memory_clock_khz / 1000,
            "memory_bus_bits": has.memory_bus_bits,
            "l2_bytes": has.l2_bytes,
            "cases": cases,
        })
    }

    /// Reads a file.
    ///
    /// Errors: the file cannot be read, is not a report, is damaged, or has a later format.
    pub fn read(path: &Path) -> Result<Report, Failure> {
        let about = std::fs::metadata(path).map_err(|error| Failure::file(path, error))?;
        if about.len() > MOST_BYTES {
            return Err(Failure::file(path, "it is too large for a report of `tilewright bench report`"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
        let object: Json =
            serde_json::from_str(&text).map_err(|error| Failure::file(path, format!("it is no JSON: {error}")))?;
        match object.get("report").and_then(Json::as_u64) {
            Some(FORMAT) => {}
            Some(other) => {
                let text = format!("its format is {other}; this version of tilewright reads {FORMAT}");
                return Err(Failure::file(path, text));
            }
            None => return Err(Failure::file(path, "it is no report of `tilewright bench report`")),
        }
        Report::of(object).map_err(|missing| Failure::file(path, format!("it is damaged: it has no {missing}")))
    }

    /// The report in an object. The error names what the object lacks.
    fn of(object: Json) -> Result<Report, String> {
        let word = |name: &str| object.get(name).and_then(Json::as_str).map(str::to_owned);
        let word = |name: &str| word(name).ok_or_else(|| format!("`{name}`"));
        let card = word("card")?;
        let about =
            [format!("driver {}", word("driver")?), format!("tilewright {}", word("tilewright")?), word("day")?];
        let listed = object.get("cases").and_then(Json::as_array).ok_or("`cases`")?;
        let case = |(number, object): (usize, &Json)| {
            let line = object.get("case").and_then(Json::as_str).ok_or(format!("words of case {}", number + 1))?;
            let outcome = CaseOutcome::read(object).ok_or(format!("checked result of `{line}`"))?;
            Ok(Case { line: line.to_owned(), outcome })
        };
        let cases = listed.iter().enumerate().map(case).collect::<Result<_, String>>()?;
        Ok(Report { object, card, about, cases })
    }

    /// The outcome of a case with these words.
    pub fn outcome(&self, line: &str) -> Option<&CaseOutcome> {
        self.cases.iter().find(|case| case.line == line).map(|case| &case.outcome)
    }

    /// The object that was read.
    pub fn json(&self) -> &Json {
        &self.object
    }
}

/// A version of the driver's API as text: 13000 is 13.0.
fn driver(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The date of a time in seconds since the beginning of 1970, as 2026-12-01.
///
/// Years begin in March here, so that a leap day is the last day of its year, and all eras of 400
/// years have equally many days.
fn day(seconds: u64) -> String {
    const ERA_DAYS: u64 = 146_097;
    /// The days from 1 March of year 0 to the first day of 1970.
    const BEFORE_1970: u64 = 719_468;
    let days = seconds / DAY + BEFORE_1970;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (ERA_DAYS - 1)) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other_as_in_the_calendar() {
        let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let mut number = 0;
        for year in 1970..2410 {
            let february = if leap(year) { 29 } else { 28 };
            for (month, days) in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
                for of_month in 1..=days {
                    assert_eq!(day(number * DAY), format!("{year:04}-{:02}-{of_month:02}", month + 1));
                    assert_eq!(day(number * DAY), day(number * DAY + DAY - 1));
                    number += 1;
                }
            }
        }
    }

    #[test]
    fn a_case_without_a_checked_result_has_no_time() {
        let timed = json!({ "median_us": 2.0, "tflops": 700.0, "cublas_us": 3.0, "checked": true });
        let outcome = CaseOutcome::read(&timed).unwrap();
        assert_eq!(outcome.to_string(), "2.0 us, 700.0 TFLOP/s, 1.50 of cuBLAS' rate");
        let copied = json!({ "median_us": 2.0, "tb_per_s": 4.0, "copy_tb_per_s": 5.0, "checked": true });
        assert_eq!(CaseOutcome::read(&copied).unwrap().to_string(), "2.0 us, 4.00 TB/s, 0.80 of the copy's rate");
        for (field, other) in [("checked", json!(false)), ("median_us", json!(0)), ("tflops", json!("many"))] {
            let mut damaged = timed.clone();
            damaged[field] = other;
            assert_eq!(CaseOutcome::read(&damaged), None, "{damaged}");
        }
        let refused = json!({ "checked": false, "refused": "no room" });
        assert_eq!(CaseOutcome::read(&refused), Some(CaseOutcome::Refused("no room".to_owned())));
    }
}
