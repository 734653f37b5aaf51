//! The Language Server Protocol around the analysis.
//!
//! Law: every request gets one answer, a result or an error of the protocol. Requests are answered
//! in order. A second thread assigns layouts ([`crate::server::worker`]); a request that needs them
//! is answered when they are known, or fails when the document changes.

mod answer;
mod worker;

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tilewright_kernel::machine::Machine;

use self::answer::{Answer, Failure, PLAYGROUND};
use self::worker::{Pending, Worker};
use crate::frame::{Received, receive, send};
use crate::position::{Position, Span, Text};
use crate::problem::Problem;
use crate::tile::Tile;

/// The services that the server needs from the program that runs it.
pub struct Host<'h> {
    /// Returns the URL of the playground that shows an expression, and starts the playground if it
    /// is not running; or the reason why it cannot.
    pub playground: &'h mut dyn FnMut(&str) -> Result<String, String>,
}

/// A document that the client has open.
struct Document {
    version: i64,
    content: Content,
}

enum Content {
    Tile(Arc<Tile>),
    Other(Text),
}

impl Document {
    fn new(version: i64, text: Text, is_tile: bool) -> Document {
        let content = if is_tile { Content::Tile(Arc::new(Tile::new(text))) } else { Content::Other(text) };
        Document { version, content }
    }

    fn text(&self) -> &Text {
        match &self.content {
            Content::Tile(tile) => tile.text(),
            Content::Other(text) => text,
        }
    }
}

/// The stream to the client; several threads write to it.
#[derive(Clone)]
pub(crate) struct Client(Arc<Mutex<dyn Write + Send>>);

impl Client {
    fn send(&self, message: &Value) {
        // A client that no longer reads closes our input as well, which ends the server.
        let _ = send(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), message);
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn answer(&self, id: &Value, answer: Answer) {
        self.send(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(Failure { code, message }) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        });
    }

    fn publish(&self, uri: &str, version: Option<i64>, problems: &[Problem]) {
        let diagnostics: Vec<Value> = problems.iter().map(diagnostic).collect();
        let mut params = json!({ "uri": uri, "diagnostics": diagnostics });
        if let (Some(version), Some(object)) = (version, params.as_object_mut()) {
            object.insert("version".to_owned(), json!(version));
        }
        self.notify("textDocument/publishDiagnostics", params);
    }
}

fn position(place: Position) -> Value {
    json!({ "line": place.line, "character": place.character })
}

fn range(span: Span) -> Value {
    json!({ "start": position(span.start), "end": position(span.end) })
}

fn diagnostic(problem: &Problem) -> Value {
    let message = match &problem.help {
        Some(help) => format!("{}\nhelp: {help}", problem.message),
        None => problem.message.clone(),
    };
    json!({
        "range": range(problem.span),
        "severity": 1,
        "code": problem.code,
        "source": "tilewright",
        "message": message,
    })
}

/// The state of a session in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Running,
    ShutDown,
}

/// A session with one client.
struct Server<'h> {
    client: Client,
    host: Host<'h>,
    stage: Stage,
    documents: HashMap<String, Document>,
    worker: Worker,
    /// Whether the client can open a URL on request (`window/showDocument`).
    shows_documents: bool,
    /// The number of requests that the server has sent to the client.
    asked: u64,
}

/// Serves one client until it sends `exit`, or its input ends. Returns the exit status: 0 if
/// `shutdown` came before, else 1.
///
/// ```
/// use tilewright_lsp::{Host, Received, receive, send, serve};
/// use serde_json::json;
///
/// let mut input = Vec::new();
/// send(&mut input, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }))?;
/// send(&mut input, &json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }))?;
/// send(&mut input, &json!({ "jsonrpc": "2.0", "method": "exit" }))?;
/// let mut host = |_: &str| Err("there is no browser here".to_owned());
/// assert_eq!(serve(&input[..], std::io::sink(), Host { playground: &mut host })?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Errors: the input cannot be read.
pub fn serve(mut input: impl BufRead, output: impl Write + Send + 'static, host: Host<'_>) -> io::Result<u8> {
    let client = Client(Arc::new(Mutex::new(output)));
    let worker = Worker::new(client.clone())?;
    let (documents, stage) = (HashMap::new(), Stage::Begun);
    let mut server = Server { client, host, stage, documents, worker, shows_documents: false, asked: 0 };
    loop {
        let done = match receive(&mut input)? {
            Received::Message(message) => server.message(&message),
            Received::Damaged(why) => {
                server.client.answer(&Value::Null, Err(Failure::new(answer::PARSE_ERROR, why)));
                ControlFlow::Continue(())
            }
            Received::End => ControlFlow::Break(1),
        };
        if let ControlFlow::Break(status) = done {
            return Ok(status);
        }
    }
}

impl Server<'_> {
    fn message(&mut self, message: &Value) -> ControlFlow<u8> {
        let id = message.get("id");
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            if !is_answer {
                let why = "neither a request nor a notification: `method` is missing";
                let id = id.filter(|id| is_id(id)).unwrap_or(&Value::Null);
                self.client.answer(id, Err(Failure::new(answer::INVALID_REQUEST, why)));
            }
            return ControlFlow::Continue(());
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        match id {
            Some(id) if is_id(id) => self.request(id, method, params),
            Some(_) => {
                let why = "an `id` is a number or a text";
                self.client.answer(&Value::Null, Err(Failure::new(answer::INVALID_REQUEST, why)));
            }
            None if method == "exit" => return ControlFlow::Break(u8::from(self.stage != Stage::ShutDown)),
            // Notifications before `initialize` and after `shutdown` are dropped, as the protocol
            // requires.
            None if self.stage == Stage::Running => self.notification(method, params),
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        let answer = match (self.stage, method) {
            (Stage::Begun, "initialize") => Ok(self.initialize(params)),
            (Stage::Begun, _) => Err(Failure::new(answer::NOT_INITIALIZED, format!("`{method}` before `initialize`"))),
            (Stage::ShutDown, _) => Err(Failure::new(answer::INVALID_REQUEST, format!("`{method}` behind `shutdown`"))),
            (Stage::Running, "initialize") => Err(Failure::new(answer::INVALID_REQUEST, "`initialize` a second time")),
            (Stage::Running, "shutdown") => {
                self.stage = Stage::ShutDown;
                Ok(Value::Null)
            }
            (Stage::Running, "textDocument/inlayHint") => match self.hints(id, params) {
                // The worker thread sends the answer.
                Ok(None) => return,
                Ok(Some(hints)) => Ok(hints),
                Err(failure) => Err(failure),
            },
            (Stage::Running, "textDocument/hover") => self.hover(params),
            (Stage::Running, "textDocument/completion") => self.completion(params),
            (Stage::Running, "textDocument/definition") => self.definition(params),
            (Stage::Running, "textDocument/references") => self.references(params),
            (Stage::Running, "textDocument/formatting") => self.formatting(params),
            (Stage::Running, "textDocument/codeAction") => self.actions(params),
            (Stage::Running, "workspace/executeCommand") => self.execute(params),
            (Stage::Running, _) => {
                Err(Failure::new(answer::METHOD_NOT_FOUND, format!("no request `{method}` is known")))
            }
        };
        self.client.answer(id, answer);
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.stage = Stage::Running;
        let shows = params.pointer("/capabilities/window/showDocument/support");
        self.shows_documents = shows.and_then(Value::as_bool).unwrap_or(false);
        if let Some(name) = params.pointer("/initializationOptions/machine").and_then(Value::as_str)
            && !name.is_empty()
        {
            match name.parse::<Machine>() {
                Ok(machine) => self.worker.machine(machine),
                Err(error) => {
                    let message = format!("tilewright: the setting `machine`: {error}");
                    self.client.notify("window/showMessage", json!({ "type": 2, "message": message }));
                }
            }
        }
        json!({
            "capabilities": {
                "positionEncoding": "utf-16",
                "textDocumentSync": { "openClose": true, "change": 2 },
                "hoverProvider": true,
                "completionProvider": {},
                "definitionProvider": true,
                "referencesProvider": true,
                "documentFormattingProvider": true,
                "inlayHintProvider": true,
                "codeActionProvider": true,
                "executeCommandProvider": { "commands": [PLAYGROUND] },
            },
            "serverInfo": { "name": "tilewright", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    fn notification(&mut self, method: &str, params: &Value) {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str);
        let version = params.pointer("/textDocument/version").and_then(Value::as_i64).unwrap_or(0);
        match (method, uri) {
            ("textDocument/didOpen", Some(uri)) => {
                let Some(text) = params.pointer("/textDocument/text").and_then(Value::as_str) else { return };
                let language = params.pointer("/textDocument/languageId").and_then(Value::as_str);
                let is_tile = language == Some("tilewright") || uri.ends_with(".tile");
                self.opened(uri, Document::new(version, Text::new(text.to_owned()), is_tile));
            }
            ("textDocument/didChange", Some(uri)) => {
                let changes = params.get("contentChanges").and_then(Value::as_array);
                let (Some(document), Some(changes)) = (self.documents.get(uri), changes) else { return };
                let mut text = document.text().clone();
                for change in changes {
                    let Some(with) = change.get("text").and_then(Value::as_str) else { continue };
                    text = match change.get("range") {
                        None | Some(Value::Null) => Text::new(with.to_owned()),
                        Some(range) => match answer::span(range) {
                            Some(span) => text.changed(span, with),
                            None => continue,
                        },
                    };
                }
                let is_tile = matches!(document.content, Content::Tile(_));
                self.opened(uri, Document::new(version, text, is_tile));
            }
            ("textDocument/didClose", Some(uri)) if self.documents.remove(uri).is_some() => {
                self.worker.forget(uri);
                self.client.publish(uri, None, &[]);
            }
            ("$/cancelRequest", _) => {
                if let Some(id) = params.get("id") {
                    self.worker.cancel(id);
                }
            }
            // The other notifications need no action.
            _ => {}
        }
    }

    /// Stores the text of a document, reports its problems, and queues it for the worker.
    fn opened(&mut self, uri: &str, document: Document) {
        if let Content::Tile(tile) = &document.content {
            let problems = match self.worker.known(tile) {
                Some(Err(problem)) => vec![*problem],
                _ => tile.problems().to_vec(),
            };
            self.client.publish(uri, Some(document.version), &problems);
            self.worker.assign(uri, document.version, tile);
        }
        self.documents.insert(uri.to_owned(), document);
    }

    /// The inlay hints on some lines; None if the worker thread will answer.
    fn hints(&mut self, id: &Value, params: &Value) -> Result<Option<Value>, Failure> {
        let (uri, document) = self.document(params)?;
        let span = params.get("range").and_then(answer::span).ok_or_else(|| Failure::params("range"))?;
        let lines = span.start.line..span.end.line.saturating_add(1);
        let Content::Tile(tile) = &document.content else { return Ok(Some(json!([]))) };
        // The worker may finish in the meantime, so the cache is looked up once more.
        let is_waiting = self.worker.known(tile).is_none()
            && self.worker.wait(Pending { id: id.clone(), uri: uri.to_owned(), lines: lines.clone() });
        if is_waiting {
            return Ok(None);
        }
        Ok(Some(match self.worker.known(tile) {
            Some(Ok(assigned)) => answer::hints(tile, &assigned, lines),
            _ => json!([]),
        }))
    }
}

/// Whether a value may be the id of a request.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}
