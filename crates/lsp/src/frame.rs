//! Message framing of the protocol: a header with the length, an empty line, and a JSON object.
//!
//! Law: a damaged message whose header has its length is skipped as a whole, and the next one is
//! read. Memory grows only with the bytes received.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

/// The longest message, in bytes; longer ones are skipped.
pub const MAX_MESSAGE: u64 = 1 << 26;
/// The longest line of a header, in bytes.
const MAX_LINE: u64 = 1 << 12;

/// The result of one read.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// A message.
    Message(Value),
    /// Bytes that are not a message, with the defect.
    Damaged(String),
    /// The end of the stream.
    End,
}

/// Reads the next message.
///
/// ```
/// use tilewright_lsp::{Received, receive};
///
/// let mut stream = "Content-Length: 3\r\n\r\n{,}Content-Length: 2\r\n\r\n{}".as_bytes();
/// assert!(matches!(receive(&mut stream)?, Received::Damaged(_)));
/// assert_eq!(receive(&mut stream)?, Received::Message(serde_json::json!({})));
/// assert_eq!(receive(&mut stream)?, Received::End);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Errors: the stream cannot be read.
pub fn receive(input: &mut impl BufRead) -> io::Result<Received> {
    let mut length = None;
    let mut seen = false;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(if seen { Received::Damaged("the stream ends in a header".to_owned()) } else { Received::End });
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            // Empty lines between messages are skipped.
            if seen {
                break;
            }
            continue;
        }
        seen = true;
        let field = line.split_once(':').filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-length"));
        if let Some((_, number)) = field {
            length = number.trim().parse::<u64>().ok();
        }
    }
    let Some(length) = length else {
        return Ok(Received::Damaged("the header says no Content-Length".to_owned()));
    };
    let mut body = input.take(length);
    if length > MAX_MESSAGE {
        io::copy(&mut body, &mut io::sink())?;
        return Ok(Received::Damaged(format!("a message of {length} bytes; at most {MAX_MESSAGE} are read")));
    }
    let mut bytes = Vec::new();
    body.read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Ok(Received::Damaged("the stream ends in a message".to_owned()));
    }
    Ok(match serde_json::from_slice(&bytes) {
        Ok(message) => Received::Message(message),
        Err(error) => Received::Damaged(format!("no JSON: {error}")),
    })
}

/// Writes a message.
///
/// Errors: the stream cannot be written.
pub fn send(output: &mut (impl Write + ?Sized), message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}
