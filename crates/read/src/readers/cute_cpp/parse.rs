//! Parses C++ types and expressions to trees, as far as layouts need them.
//!
//! Law: the tree has the names and numbers of the text in order. Qualifiers such as `cute::` are
//! separated; apart from that, template arguments keep their spelling. A text that ends inside a
//! type is distinguished from one that is not a type.

use std::ops::Range;

use crate::cursor::{Cursor, MAX_NESTING};

/// A name with its arguments, or a number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    /// The name without its qualifiers: `Layout`, `unsigned int`; empty for a number.
    pub name: String,
    /// The qualifiers, as written: `cute::`, `GMMA::`.
    pub scope: String,
    /// The arguments in `<>`.
    pub args: Option<Vec<Node>>,
    /// The arguments in `()` or `{}` of an expression.
    pub call: Option<Vec<Node>>,
    /// The number, if the node is one.
    pub number: Option<i64>,
    /// The bytes of the node in the text.
    pub span: Range<usize>,
}

impl Node {
    /// The template arguments.
    pub fn args(&self) -> &[Node] {
        self.args.as_deref().unwrap_or(&[])
    }

    /// The arguments of a call; None for `{}` and `()`.
    pub fn call(&self) -> Option<&[Node]> {
        self.call.as_deref().filter(|call| !call.is_empty())
    }
}

/// Why a text has no tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// The text is not a type.
    Other,
    /// The text ends, or is elided with `...`, inside a type, at this position.
    Cut(usize),
    /// The text nests deeper than [`MAX_NESTING`], at this position.
    Deep(usize),
}

/// Templates after whose name blanks may precede `<`, which is not a comparison there.
const SPACED: [&str; 12] =
    ["Shape", "Stride", "Step", "Tile", "Layout", "ComposedLayout", "tuple", "C", "Int", "Coord", "Swizzle", "Tensor"];

/// The tree that begins at the cursor.
pub fn parse(cursor: &mut Cursor<'_>) -> Result<Node, Stop> {
    node(cursor, 0)
}

fn node(cursor: &mut Cursor<'_>, depth: usize) -> Result<Node, Stop> {
    if depth > MAX_NESTING {
        return Err(Stop::Deep(cursor.at));
    }
    cursor.blanks_of_cpp();
    if cursor.is_at_end() || cursor.rest().starts_with("...") || cursor.rest().starts_with("[...") {
        return Err(Stop::Cut(cursor.at));
    }
    let start = cursor.at;
    // A cast of a constant, `(int)4`.
    if cursor.peek() == Some(b'(') {
        let inside = cursor.bracketed(b'(').ok_or(Stop::Other)?;
        let kind = cursor.source.get(inside.clone()).unwrap_or("").trim();
        let is_type =
            !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b' '));
        return match cursor.blanks(false).integer() {
            Some(number) if is_type => {
                suffix(cursor);
                Ok(Node { number: Some(number), span: start..cursor.at, ..Node::default() })
            }
            _ => Err(Stop::Other),
        };
    }
    let digits = cursor.rest().trim_start_matches('-');
    if let Some(number) = cursor.integer() {
        // `010` is octal in C++.
        if digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit) {
            return Err(Stop::Other);
        }
        suffix(cursor);
        return Ok(Node { number: Some(number), span: start..cursor.at, ..Node::default() });
    }
    let mut node = Node::default();
    loop {
        let word = cursor.word().ok_or(Stop::Other)?;
        match word {
            "const" | "volatile" | "typename" | "class" | "struct" | "constexpr" | "static" => {
                cursor.blanks_of_cpp();
                continue;
            }
            "unsigned" | "signed" | "long" => {
                // A name of several words.
                node.name = if node.name.is_empty() { word.to_owned() } else { format!("{} {word}", node.name) };
                let kept = cursor.at;
                cursor.blanks(false);
                let more = ["long", "int", "char", "short", "unsigned"];
                if more.iter().any(|next| cursor.rest().starts_with(next)) {
                    continue;
                }
                cursor.at = kept;
            }
            _ if node.name.is_empty() => node.name = word.to_owned(),
            _ => node.name = format!("{} {word}", node.name),
        }
        // Source code aligns `Shape <_4,_8>` with `Stride<_8,_1>` below it.
        if matches!(cursor.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) && SPACED.contains(&word) {
            let kept = cursor.at;
            if cursor.blanks(true).peek() != Some(b'<') {
                cursor.at = kept;
            }
        }
        if cursor.peek() == Some(b'<') {
            cursor.at += 1;
            node.args = Some(list(cursor, b'>', depth)?);
        }
        if cursor.rest().starts_with("::") {
            cursor.at += 2;
            // A name after a template is a member of it, which only the template's own code
            // defines.
            if node.args.is_some() {
                return Err(Stop::Other);
            }
            node.scope = format!("{}{}::", node.scope, node.name);
            node.name = String::new();
            if cursor.is_at_end() {
                return Err(Stop::Cut(cursor.at));
            }
            continue;
        }
        break;
    }
    let kept = cursor.at;
    if node.name.starts_with("make_") && cursor.blanks(true).peek() != Some(b'(') {
        cursor.at = kept;
    }
    match cursor.peek() {
        Some(b'{') => {
            cursor.at += 1;
            node.call = Some(list(cursor, b'}', depth)?);
        }
        Some(b'(') => {
            cursor.at += 1;
            match list(cursor, b')', depth) {
                Ok(list) => node.call = Some(list),
                Err(Stop::Other) if node.args.is_some() => cursor.at = kept,
                Err(stop) => return Err(stop),
            }
        }
        _ => {}
    }
    // Skips `const`, pointers and references after a type.
    loop {
        let kept = cursor.at;
        if cursor.blanks(false).rest().starts_with("const") {
            cursor.at += "const".len();
        } else if matches!(cursor.peek(), Some(b'*' | b'&')) {
            cursor.at += 1;
        } else {
            cursor.at = kept;
            break;
        }
    }
    node.span = start..cursor.at;
    Ok(node)
}

/// Skips the suffix of a number: `4ul`.
fn suffix(cursor: &mut Cursor<'_>) {
    let _ = cursor.take_while(|byte| matches!(byte, b'u' | b'U' | b'l' | b'L'));
}

/// Reads a list up to its closing bracket.
fn list(cursor: &mut Cursor<'_>, close: u8, depth: usize) -> Result<Vec<Node>, Stop> {
    let mut items = Vec::new();
    loop {
        cursor.blanks_of_cpp();
        if cursor.peek() == Some(close) {
            cursor.at += 1;
            return Ok(items);
        }
        items.push(node(cursor, depth + 1)?);
        cursor.blanks_of_cpp();
        match cursor.peek() {
            Some(b',') => cursor.at += 1,
            Some(byte) if byte == close => {}
            Some(b'.') => return Err(Stop::Cut(cursor.at)),
            None => return Err(Stop::Cut(cursor.at)),
            // The text ends inside `::`.
            Some(b':') if cursor.rest() == ":" => return Err(Stop::Cut(cursor.at)),
            Some(_) => return Err(Stop::Other),
        }
    }
}
