//! `tilewright kernel bench`: a kernel of the library on a GPU, checked and timed. The driver's
//! copy of equally many bytes, in whole pages of 4 KiB, is timed for comparison.

use serde_json::json;
use tilewright::bench::{Against, BenchError, BenchResult};
use tilewright::measured::TuneError;
use tilewright::planners::Unchecked;
use tilewright::tile;

pub(crate) use tilewright::bench::{LASTING as ROUND, REPEATS as ROUNDS, copied, median, timed};

use crate::json::Json;
use crate::output::Failure;
use crate::terminal::Terminal;

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        match error {
            BenchError::Gpu(error) => error.into(),
            BenchError::Setup(error) => Failure::refused(&error),
            BenchError::Plan(error) => Failure::refused(&error),
            BenchError::Kernel(Unchecked::Layout(error)) => error.into(),
            BenchError::Tile(tile::Unchecked::Program(error)) => error.into(),
            wrong => Failure::Value(wrong.to_string()),
        }
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Failure {
        match error {
            TuneError::Bench(error) => error.into(),
            error => Failure::Value(format!("the plan is not kept: {error}")),
        }
    }
}

/// Prints the measurement of a kernel or of a tile program.
pub(super) fn print(name: &str, measured: &BenchResult, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.object(&object(name, measured))?);
    }
    Ok(terminal.text(&format!("{name} {}\n{measured}\n", super::sizes_text(&measured.sizes)))?)
}

/// The measurement as JSON.
pub(crate) fn object(name: &str, measured: &BenchResult) -> Json {
    let mut object = json!({
        "name": name,
        "device": measured.device,
        "arch": measured.target.name(),
        "bytes": measured.bytes,
        "median_us": measured.timing.seconds * 1e6,
        "tb_per_s": measured.bandwidth() / 1e12,
        "copy_tb_per_s": measured.copy_bandwidth() / 1e12,
        "recorded": measured.timing.recorded,
        "checked": true,
        "compared": measured.compared,
    });
    match &measured.against {
        Against::Definition { defined, worst } => {
            object["plan"] = json!(measured.plan);
            object["of"] = json!(defined);
            object["worst"] = json!(worst);
        }
        Against::Meaning { sizes, farthest } => {
            object["sizes"] = object_of(&measured.sizes);
            object["checked_at"] = object_of(sizes);
            object["farthest"] = json!(farthest);
        }
        _ => {}
    }
    if measured.operations > 0 {
        object["tflop_per_s"] = json!(measured.operations as f64 / measured.timing.seconds / 1e12);
    }
    object
}

/// Sizes by their names.
pub(super) fn object_of(sizes: &[(impl ToString, i64)]) -> Json {
    Json::Object(sizes.iter().map(|(name, size)| (name.to_string(), Json::from(*size))).collect())
}
