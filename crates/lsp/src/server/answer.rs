//! Answers to requests, as JSON.

use std::ops::Range;

use serde_json::{Value, json};

use super::{Content, Document, Server, position, range};
use crate::assigned::Assigned;
use crate::foreign::layout_at;
use crate::format::formatted;
use crate::position::{Position, Span, Text};
use crate::tile::{Kind, Tile};

/// JSON-RPC: the text is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the object is not a request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method is unknown.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: a parameter is missing or has the wrong type.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// LSP: a request came before `initialize`.
pub(super) const NOT_INITIALIZED: i64 = -32002;
/// LSP: the request is valid but failed.
pub(super) const REQUEST_FAILED: i64 = -32803;
/// LSP: the client cancelled the request.
pub(super) const CANCELLED: i64 = -32800;
/// LSP: the document changed before the answer was ready.
pub(super) const MODIFIED: i64 = -32801;

/// The command that opens an expression in the playground.
pub(super) const PLAYGROUND: &str = "tilewright.playground";
/// The longest expression that is put into a URL, in bytes.
const LONGEST_EXPRESSION: usize = 1 << 12;

/// An error response of the protocol.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
}

/// The result of a request, or an error response.
pub(super) type Answer = Result<Value, Failure>;

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// The error for a parameter that is missing or has the wrong type.
    pub(super) fn params(name: &str) -> Failure {
        Failure::new(INVALID_PARAMS, format!("`{name}` is missing, or not of its kind"))
    }
}

/// Reads a `Position` of the protocol.
fn place(value: &Value) -> Option<Position> {
    let number = |name: &str| value.get(name)?.as_u64().and_then(|number| u32::try_from(number).ok());
    Some(Position { line: number("line")?, character: number("character")? })
}

/// Reads a `Range` of the protocol.
pub(super) fn span(value: &Value) -> Option<Span> {
    Some(Span { start: place(value.get("start")?)?, end: place(value.get("end")?)? })
}

fn markdown(text: &str) -> Value {
    json!({ "kind": "markdown", "value": text })
}

/// The inlay hints on these lines: the layout of each value.
pub(super) fn hints(tile: &Tile, assigned: &Assigned, lines: Range<u32>) -> Value {
    let hint = |hint: crate::tile::Hint| {
        json!({
            "position": position(hint.place),
            "label": hint.label,
            "kind": 1,
            "tooltip": hint.tooltip,
            "paddingLeft": false,
            "paddingRight": true,
        })
    };
    tile.hints(assigned, lines).into_iter().map(hint).collect()
}

/// The edits that turn a text into another: one for each differing line if both have equally many
/// lines, else one that replaces the whole text.
fn edits(text: &Text, to: &str) -> Value {
    let new: Vec<&str> = to.split('\n').collect();
    let edit = |span: Span, with: &str| json!({ "range": range(span), "newText": with });
    if new.len() == text.lines() as usize {
        let lines = (0..text.lines()).zip(new);
        let changed = lines.filter(|(line, new)| text.line_text(*line) != *new);
        return changed.map(|(line, new)| edit(text.span(text.line(line)), new)).collect();
    }
    json!([edit(text.span(0..text.as_str().len()), to)])
}

impl Server<'_> {
    /// The document that a request is about.
    pub(super) fn document<'p>(&self, params: &'p Value) -> Result<(&'p str, &Document), Failure> {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str);
        let uri = uri.ok_or_else(|| Failure::params("textDocument.uri"))?;
        let document = self.documents.get(uri);
        let why = || Failure::new(INVALID_PARAMS, format!("the document {uri} is not open"));
        Ok((uri, document.ok_or_else(why)?))
    }

    fn at<'p>(&self, params: &'p Value) -> Result<(&'p str, &Document, Position), Failure> {
        let (uri, document) = self.document(params)?;
        let place = params.get("position").and_then(place).ok_or_else(|| Failure::params("position"))?;
        Ok((uri, document, place))
    }

    pub(super) fn hover(&self, params: &Value) -> Answer {
        let (_, document, place) = self.at(params)?;
        let found = match &document.content {
            Content::Tile(tile) => {
                let assigned = self.worker.known(tile).and_then(Result::ok);
                let own = tile.hover(place, assigned.as_deref());
                own.or_else(|| layout_at(tile.text(), place).map(|found| (found.span, found.text)))
            }
            Content::Other(text) => layout_at(text, place).map(|found| (found.span, found.text)),
        };
        Ok(found.map_or(Value::Null, |(span, text)| json!({ "contents": markdown(&text), "range": range(span) })))
    }

    pub(super) fn completion(&self, params: &Value) -> Answer {
        let (_, document, place) = self.at(params)?;
        let Content::Tile(tile) = &document.content else { return Ok(json!([])) };
        let item = |own: crate::tile::Completion| {
            let kind = match own.kind {
                Kind::Function => 3,
                Kind::Name => 6,
                Kind::Keyword => 14,
                Kind::Type => 25,
            };
            let documentation = markdown(&own.summary);
            json!({ "label": own.label, "kind": kind, "detail": own.detail, "documentation": documentation })
        };
        Ok(tile.completions(place).into_iter().map(item).collect())
    }

    pub(super) fn definition(&self, params: &Value) -> Answer {
        let (uri, document, place) = self.at(params)?;
        let Content::Tile(tile) = &document.content else { return Ok(Value::Null) };
        Ok(tile.definition(place).map_or(Value::Null, |span| json!({ "uri": uri, "range": range(span) })))
    }

    pub(super) fn references(&self, params: &Value) -> Answer {
        let (uri, document, place) = self.at(params)?;
        let Content::Tile(tile) = &document.content else { return Ok(json!([])) };
        let found = tile.references(place).into_iter();
        Ok(found.map(|span| json!({ "uri": uri, "range": range(span) })).collect())
    }

    pub(super) fn formatting(&self, params: &Value) -> Answer {
        let (_, document) = self.document(params)?;
        let Content::Tile(tile) = &document.content else { return Ok(Value::Null) };
        // A text that is not a program is left as it is; the diagnostics report why.
        let neat = tile.program().and_then(|_| formatted(tile.text().as_str()));
        Ok(neat.map_or(Value::Null, |neat| edits(tile.text(), &neat)))
    }

    pub(super) fn actions(&self, params: &Value) -> Answer {
        let (_, document) = self.document(params)?;
        let here = params.get("range").and_then(span).ok_or_else(|| Failure::params("range"))?.start;
        let of_value = match &document.content {
            Content::Tile(tile) => {
                let assigned = self.worker.known(tile).and_then(Result::ok);
                assigned.and_then(|assigned| tile.layout_of(here, &assigned))
            }
            Content::Other(_) => None,
        };
        let expression = of_value.or_else(|| layout_at(document.text(), here)?.expression);
        let Some(expression) = expression.filter(|text| text.len() <= LONGEST_EXPRESSION) else {
            return Ok(json!([]));
        };
        let title = "Open in the playground";
        let command = json!({ "title": title, "command": PLAYGROUND, "arguments": [expression] });
        Ok(json!([{ "title": title, "command": command }]))
    }

    pub(super) fn execute(&mut self, params: &Value) -> Answer {
        let command = params.get("command").and_then(Value::as_str).ok_or_else(|| Failure::params("command"))?;
        if command != PLAYGROUND {
            return Err(Failure::new(INVALID_PARAMS, format!("no command `{command}` is known")));
        }
        let expression = params.pointer("/arguments/0").and_then(Value::as_str);
        let expression = expression.filter(|text| text.len() <= LONGEST_EXPRESSION);
        let expression = expression.ok_or_else(|| Failure::params("arguments"))?;
        let address = (self.host.playground)(expression).map_err(|why| Failure::new(REQUEST_FAILED, why))?;
        if self.shows_documents {
            self.asked += 1;
            let id = format!("show-{}", self.asked);
            let params = json!({ "uri": address, "external": true });
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "window/showDocument", "params": params });
            self.client.send(&request);
        }
        Ok(json!(address))
    }
}
