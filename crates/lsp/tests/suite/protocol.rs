//! A client that speaks the protocol with the server, over pipes.

use std::io::{BufReader, PipeReader, PipeWriter, Write, pipe};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tilewright_lsp::{Host, Received, formatted, receive, send, serve};
use tilewright_tile::LIBRARY;

struct Client {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    server: JoinHandle<u8>,
    next: u64,
    /// Notifications and requests that came between answers.
    told: Vec<Value>,
}

impl Client {
    fn begun() -> Client {
        let (input, to_server) = pipe().unwrap();
        let (from_server, output) = pipe().unwrap();
        let server = std::thread::spawn(move || {
            let mut playground = |text: &str| match text {
                "(4,8):(8,1)" => Ok("http://127.0.0.1:1/#p=x".to_owned()),
                _ => Err("no page".to_owned()),
            };
            serve(BufReader::new(input), output, Host { playground: &mut playground }).unwrap()
        });
        Client { input: Some(to_server), output: BufReader::new(from_server), server, next: 0, told: Vec::new() }
    }

    /// A client behind `initialize`.
    fn new() -> Client {
        let mut client = Client::begun();
        let capabilities = json!({ "window": { "showDocument": { "support": true } } });
        let answer = client.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(answer["result"]["capabilities"]["positionEncoding"], "utf-16");
        client.tell("initialized", json!({}));
        client
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: &Value) {
        send(self.input.as_mut().unwrap(), message).unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn begin(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn receive(&mut self) -> Value {
        match receive(&mut self.output).unwrap() {
            Received::Message(message) => message,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.receive();
            if message.get("method").is_none() && message["id"] == *id {
                assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
                return message;
            }
            self.told.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// The error code of an answer.
    fn refused(&mut self, method: &str, params: Value) -> i64 {
        self.ask(method, params)["error"]["code"].as_i64().unwrap_or(0)
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "x", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// The last diagnostics of a document, behind what was asked before.
    fn problems(&mut self, uri: &str) -> Vec<Value> {
        self.ask("textDocument/hover", json!({}));
        let own = |message: &&Value| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri
        };
        let last = self.told.iter().rev().find(own).expect("diagnostics");
        last["params"]["diagnostics"].as_array().unwrap().clone()
    }

    /// Ends the session as the protocol says, or without `shutdown`.
    fn end(mut self, shuts_down: bool) -> u8 {
        if shuts_down {
            assert_eq!(self.ask("shutdown", Value::Null)["result"], Value::Null);
            assert_eq!(self.refused("textDocument/hover", json!({})), -32600);
        }
        self.tell("exit", Value::Null);
        self.server.join().unwrap()
    }
}

fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } })
}

fn place(text: &str, what: &str) -> (u32, u32) {
    let before = &text[..text.find(what).unwrap()];
    (before.matches('\n').count() as u32, before.rsplit('\n').next().unwrap().encode_utf16().count() as u32)
}

const TILE: &str = "file:///softmax.tile";

fn softmax() -> &'static str {
    LIBRARY.iter().find(|entry| entry.name == "softmax").unwrap().text
}

#[test]
fn a_session_with_a_tile_program() {
    let mut client = Client::new();
    let text = softmax();
    client.open(TILE, text);
    assert!(client.problems(TILE).is_empty());
    let (line, character) = place(text, "e = exp");
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let document = json!({ "uri": TILE });
    let hints = client.ask("textDocument/inlayHint", json!({ "textDocument": document, "range": whole }));
    let hints = hints["result"].as_array().unwrap().clone();
    let of_e = hints.iter().find(|hint| hint["position"]["line"] == line).unwrap();
    assert!(of_e["label"].as_str().unwrap().starts_with(": (256,(8,2)):(8,(1,2048))"), "{of_e}");
    let hover = client.ask("textDocument/hover", at(TILE, line, character));
    let told = hover["result"]["contents"]["value"].as_str().unwrap();
    assert!(told.contains("tile of f32 (1,4096)") && told.contains("(256,(8,2)):(8,(1,2048))"), "{told}");
    assert_eq!(hover["result"]["range"]["end"]["character"], character + 1);
    // The name in the last line leads back to it.
    let (last, _) = place(text, "store(");
    let used = text.lines().nth(last as usize).unwrap().find("e * ").unwrap() as u32;
    let definition = client.ask("textDocument/definition", at(TILE, last, used));
    assert_eq!(definition["result"]["range"]["start"], json!({ "line": line, "character": character }));
    let completion = client.ask("textDocument/completion", at(TILE, last, 4));
    let labels: Vec<&str> =
        completion["result"].as_array().unwrap().iter().filter_map(|own| own["label"].as_str()).collect();
    assert!(["a", "e", "x", "y", "store", "exp", "bf16"].iter().all(|name| labels.contains(name)), "{labels:?}");
    let action = json!({ "textDocument": document, "context": { "diagnostics": [] },
        "range": { "start": { "line": line, "character": character }, "end": { "line": line, "character": character } } });
    let actions = client.ask("textDocument/codeAction", action);
    assert_eq!(actions["result"][0]["command"]["arguments"][0], "(256,(8,2)):(8,(1,2048))");
    assert_eq!(client.end(true), 0);
}

#[test]
fn diagnostics_follow_what_is_typed() {
    let mut client = Client::new();
    let text = softmax();
    client.open(TILE, text);
    let (line, character) = place(text, "exp(a");
    let change = |from: u32, to: u32, with: &str, version: i64| {
        let range = json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } });
        json!({ "textDocument": { "uri": TILE, "version": version }, "contentChanges": [{ "range": range, "text": with }] })
    };
    client.tell("textDocument/didChange", change(character, character + 3, "exq", 2));
    let problems = client.problems(TILE);
    assert_eq!(problems[0]["code"], "E1203");
    let span = json!({ "start": { "line": line, "character": character }, "end": { "line": line, "character": character + 3 } });
    assert_eq!(problems[0]["range"], span);
    assert!(problems[0]["message"].as_str().unwrap().contains("help: "), "{problems:?}");
    client.tell("textDocument/didChange", change(character, character + 3, "exp", 3));
    assert!(client.problems(TILE).is_empty());
    // What the passes refuse comes behind what the reader says.
    let large =
        "tile t {\n input x: f32 (M,64):(64,1)\n output y: f32 (M,64):(64,1)\n grid 1\n a = load(x, (8,64), (0,0))\n}";
    client.open("file:///large.tile", large);
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } });
    let params = json!({ "textDocument": { "uri": "file:///large.tile" }, "range": whole });
    assert_eq!(client.ask("textDocument/inlayHint", params)["result"], json!([]));
    let problems = client.problems("file:///large.tile");
    assert_eq!(problems.len(), 1, "the output is not written: {problems:?}");
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": TILE } }));
    assert!(client.problems(TILE).is_empty());
    assert_eq!(client.refused("textDocument/hover", at(TILE, 0, 0)), -32602);
    assert_eq!(client.end(true), 0);
}

#[test]
fn formatting_is_that_of_the_library() {
    let mut client = Client::new();
    let text = softmax().replace("    ", "  ").replace(" = ", "   = ");
    client.open(TILE, &text);
    let answer = client.ask("textDocument/formatting", json!({ "textDocument": { "uri": TILE }, "options": {} }));
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for edit in answer["result"].as_array().unwrap() {
        let line = edit["range"]["start"]["line"].as_u64().unwrap() as usize;
        assert_eq!(edit["range"]["end"]["line"], line);
        assert_eq!(edit["range"]["end"]["character"], lines[line].encode_utf16().count());
        lines[line] = edit["newText"].as_str().unwrap().to_owned();
    }
    assert_eq!(Some(lines.join("\n")), formatted(&text));
    assert_eq!(client.end(true), 0);
}

#[test]
fn a_layout_in_python_opens_the_playground() {
    let mut client = Client::new();
    let uri = "file:///a.py";
    client.open(uri, "import cutlass.cute as cute\na = cute.make_layout((4, 8), stride=(8, 1))\n");
    let hover = client.ask("textDocument/hover", at(uri, 1, 12));
    let told = hover["result"]["contents"]["value"].as_str().unwrap();
    assert!(told.contains("size 32, cosize 32"), "{told}");
    assert!(told.contains("24"), "the picture has offsets: {told}");
    let here = json!({ "line": 1, "character": 12 });
    let range = json!({ "start": here, "end": here });
    let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
    let action = client.ask("textDocument/codeAction", params)["result"][0].clone();
    assert_eq!(action["title"], "Open in the playground");
    let command = &action["command"];
    let done = client
        .ask("workspace/executeCommand", json!({ "command": command["command"], "arguments": command["arguments"] }));
    assert_eq!(done["result"], "http://127.0.0.1:1/#p=x");
    let shown = client.told.iter().find(|own| own["method"] == "window/showDocument").unwrap();
    assert_eq!(shown["params"]["uri"], "http://127.0.0.1:1/#p=x");
    let other = json!({ "command": command["command"], "arguments": ["8:1"] });
    assert_eq!(client.refused("workspace/executeCommand", other), -32803);
    assert_eq!(client.ask("textDocument/hover", at(uri, 0, 3))["result"], Value::Null);
    assert_eq!(client.end(true), 0);
}

#[test]
fn damaged_requests_have_their_errors() {
    let mut client = Client::begun();
    assert_eq!(client.refused("textDocument/hover", json!({})), -32002);
    client.ask("initialize", json!({}));
    assert_eq!(client.refused("initialize", json!({})), -32600);
    assert_eq!(client.refused("no/method", json!({})), -32601);
    client.tell("no/notification", json!({}));
    client.tell("$/cancelRequest", json!({ "id": 77 }));
    client.open(TILE, softmax());
    for (method, params) in [
        ("textDocument/hover", json!(null)),
        ("textDocument/hover", json!([1, 2])),
        ("textDocument/hover", json!({ "textDocument": { "uri": TILE } })),
        ("textDocument/hover", json!({ "textDocument": { "uri": TILE }, "position": { "line": -1, "character": 0 } })),
        ("textDocument/completion", json!({ "textDocument": { "uri": 3 }, "position": {} })),
        ("textDocument/inlayHint", json!({ "textDocument": { "uri": TILE }, "range": 1 })),
        ("textDocument/definition", at("file:///unknown.tile", 0, 0)),
        ("workspace/executeCommand", json!({ "command": "rm" })),
        ("workspace/executeCommand", json!({ "command": "tilewright.playground", "arguments": [3] })),
    ] {
        assert_eq!(client.refused(method, params.clone()), -32602, "{method} {params}");
    }
    assert_eq!(client.ask("textDocument/hover", at(TILE, u32::MAX, u32::MAX))["result"], Value::Null);
    let nest = "[".repeat(100_000);
    let damaged: [(&[u8], i64); 6] = [
        (b"Content-Length: 3\r\n\r\n{,}", -32700),
        (b"Content-Length: 2\r\n\r\n\xff\xfe", -32700),
        (b"Content-Type: text\r\n\r\n", -32700),
        (b"Content-Length: 2\r\n\r\n[]", -32600),
        (b"Content-Length: 2\r\n\r\n{}", -32600),
        (b"Content-Length: 32\r\n\r\n{\"id\": {}, \"method\": \"shutdown\"}", -32600),
    ];
    let deep = format!("Content-Length: {}\r\n\r\n{nest}", nest.len());
    for (bytes, code) in damaged.into_iter().chain([(deep.as_bytes(), -32700)]) {
        client.raw(bytes);
        let answer = client.answer(&Value::Null);
        assert_eq!(answer["error"]["code"], code, "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
    }
    assert_eq!(client.end(true), 0);
}

#[test]
fn the_exit_status_is_that_of_the_protocol() {
    assert_eq!(Client::new().end(false), 1);
    assert_eq!(Client::new().end(true), 0);
    let mut client = Client::new();
    client.input = None;
    assert_eq!(client.server.join().unwrap(), 1);
}

#[test]
fn newer_text_takes_the_place_of_older() {
    let mut client = Client::new();
    let entry = LIBRARY.iter().max_by_key(|entry| entry.text.len()).unwrap();
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let document = json!({ "uri": TILE });
    let mut asked = Vec::new();
    for version in 0..6 {
        let text = format!("{}# {version}\n", entry.text);
        client.open(TILE, &text);
        asked.push(client.begin("textDocument/inlayHint", json!({ "textDocument": document, "range": range })));
    }
    client.tell("$/cancelRequest", json!({ "id": asked[5] }));
    let mut codes = Vec::new();
    for id in &asked {
        // Answers come in the order in which texts are given up.
        let known = client.told.iter().position(|own| own["id"] == *id && own.get("method").is_none());
        let answer = known.map(|at| client.told.remove(at)).unwrap_or_else(|| client.answer(id));
        let hints = answer["result"].as_array().map_or(0, Vec::len);
        let code = answer["error"]["code"].as_i64();
        assert!(hints > 0 || matches!(code, Some(-32801 | -32800)), "{answer}");
        codes.push(code);
    }
    assert!(codes.iter().flatten().count() > 0, "something was given up: {codes:?}");
    assert_eq!(client.end(true), 0);
}
