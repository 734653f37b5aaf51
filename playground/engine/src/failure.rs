//! Failures: answers that give an error.

use std::ops::Range;

use serde_json::{Value as Json, json};
use tilewright_layout::Refusal;
use tilewright_notation::{Diagnostic, Value};

/// Why there is no answer.
#[derive(Debug)]
pub struct Failure(Json);

impl Failure {
    /// A wrong choice, described in words.
    pub fn choice(message: impl Into<String>) -> Failure {
        Failure(json!({ "message": message.into() }))
    }

    /// A refusal of the library.
    pub fn refused(refusal: &(impl Refusal + ?Sized)) -> Failure {
        Failure(json!({ "code": refusal.code(), "message": refusal.to_string(), "help": refusal.help() }))
    }

    /// A refusal with a given text.
    pub fn told(code: &str, message: String, help: Option<String>) -> Failure {
        Failure(json!({ "code": code, "message": message, "help": help }))
    }

    /// The same, at these bytes of the program.
    pub fn at(mut self, span: Range<usize>) -> Failure {
        self.0["start"] = Json::from(span.start);
        self.0["end"] = Json::from(span.end);
        self
    }

    /// The same, without a location: the program is not the text that the page shows.
    pub fn without_place(mut self) -> Failure {
        if let Some(object) = self.0.as_object_mut() {
            for name in ["start", "end", "labels", "rendered"] {
                object.remove(name);
            }
        }
        self
    }

    /// An error of the program: `start` and `end` are bytes of it.
    pub fn of_program(diagnostic: &Diagnostic, source: &str) -> Failure {
        let labels: Vec<Json> = diagnostic
            .labels
            .iter()
            .map(|(span, text)| json!({ "start": span.start, "end": span.end, "text": text }))
            .collect();
        Failure(json!({
            "code": diagnostic.code,
            "message": diagnostic.message,
            "help": diagnostic.help,
            "start": diagnostic.span.start,
            "end": diagnostic.span.end,
            "labels": labels,
            "rendered": diagnostic.render(source, false),
        }))
    }

    /// An error of an expression in a field besides the program.
    pub fn of_field(field: &str, diagnostic: &Diagnostic) -> Failure {
        let message = format!("{field}: {}", diagnostic.message);
        Failure(json!({ "code": diagnostic.code, "message": message, "help": diagnostic.help }))
    }

    /// A value of the wrong kind: `wanted` with its article.
    pub fn not(field: &str, value: &Value, wanted: &str) -> Failure {
        Failure::choice(format!("{field}: expected {wanted}, but the value is of kind {}", value.kind()))
    }

    /// The failure as a JSON object.
    pub fn json(self) -> Json {
        self.0
    }
}

macro_rules! refusals {
    ($($error:ty),* $(,)?) => {
        $(
            impl From<$error> for Failure {
                fn from(error: $error) -> Failure {
                    Failure::refused(&error)
                }
            }
        )*
    };
}

refusals!(
    tilewright_layout::LayoutError,
    tilewright_layout::analysis::AnalysisError,
    tilewright_layout::atoms::AtomError,
    tilewright_draw::DrawError,
    tilewright_layout::emit::EmitError,
    tilewright_kernel::ptx::PtxError,
    tilewright_kernel::interpret::SetupError,
    tilewright_planners::PlanError,
    tilewright_layout::morphism::MorphismError,
);
