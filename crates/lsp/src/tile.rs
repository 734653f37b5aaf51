//! What an editor shows about a tile program.
//!
//! Law: problems and names are those that the reader of tile programs reports. The reader stops at
//! the first problem, so nothing is known of the text after it.

use std::ops::Range;

use tilewright_tile::{Element, Mention, Outline, Program, Role, Subject, Type};

use crate::assigned::{Assigned, rounded};
use crate::position::{Position, Span, Text};
use crate::problem::{Problem, problem_of};
use crate::words::{WORDS, Word};

/// The largest tile program that is read as it is typed, in bytes.
pub const MAX_TILE: usize = 1 << 20;

/// The kind of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Function,
    /// A word of the language.
    Keyword,
    /// A type of elements.
    Type,
    /// A name in scope.
    Name,
}

/// A completion: a text that may be inserted at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text that is inserted.
    pub label: String,
    /// The kind of the completion.
    pub kind: Kind,
    /// The signature of a function, or the type of a value.
    pub detail: String,
    /// A sentence about what the function or keyword does.
    pub summary: String,
}

/// An inlay hint: a text that the editor shows within the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The position that the hint follows.
    pub place: Position,
    /// The text of the hint.
    pub label: String,
    /// The text that the editor shows when the pointer is on the hint.
    pub tooltip: String,
}

/// A tile program in an editor.
#[derive(Debug, Clone)]
pub struct Tile {
    text: Text,
    program: Option<Program>,
    outline: Outline,
    problems: Vec<Problem>,
}

impl Tile {
    /// Reads a program up to its first problem.
    pub fn new(text: Text) -> Tile {
        if text.as_str().len() > MAX_TILE {
            let message = format!("the text has {} bytes; at most {MAX_TILE} are read", text.as_str().len());
            let span = Span::default();
            let problem = Problem { span, code: "E1206", message, help: None };
            return Tile { text, program: None, outline: Outline::default(), problems: vec![problem] };
        }
        let (read, outline) = Program::outline(text.as_str());
        let (program, problems) = match read {
            Ok(program) => (Some(program), Vec::new()),
            Err(error) => (None, vec![problem_of(&error, &text)]),
        };
        Tile { text, program, outline, problems }
    }

    /// The text.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The program; None if the reader refuses the text.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// The first problem that the reader reports, or nothing.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The byte range of a mentioned name.
    fn bytes(&self, mention: &Mention) -> Range<usize> {
        let start = self.text.offset_of_column(mention.place.line(), mention.place.column());
        start..start + mention.name.len()
    }

    fn mention(&self, place: Position) -> Option<(&Mention, Range<usize>)> {
        let at = self.text.offset(place);
        let line = place.line.saturating_add(1);
        let own = |mention: &&Mention| mention.place.line() == line;
        let with_bytes = |mention| (mention, self.bytes(mention));
        let mut found = self.outline.mentions.iter().filter(own).map(with_bytes);
        found.find(|(_, bytes)| bytes.start <= at && at <= bytes.end)
    }

    /// The span of the definition of the name at a position.
    pub fn definition(&self, place: Position) -> Option<Span> {
        let (mention, _) = self.mention(place)?;
        let given = self.outline.mentions.iter().find(|own| own.is_given && own.of == mention.of)?;
        Some(self.text.span(self.bytes(given)))
    }

    /// The spans of all mentions of the name at a position.
    pub fn references(&self, place: Position) -> Vec<Span> {
        let Some((mention, _)) = self.mention(place) else { return Vec::new() };
        let same = self.outline.mentions.iter().filter(|own| own.of == mention.of);
        same.map(|own| self.text.span(self.bytes(own))).collect()
    }

    /// Hover text for the word at a position, as Markdown. It includes the layout of a value if
    /// layouts are assigned.
    pub fn hover(&self, place: Position, assigned: Option<&Assigned>) -> Option<(Span, String)> {
        if let Some((mention, bytes)) = self.mention(place) {
            return Some((self.text.span(bytes), self.about(mention, assigned)));
        }
        let bytes = self.word(place)?;
        let word = self.text.as_str().get(bytes.clone())?;
        let text = match (word_named(word), Element::named(word)) {
            (Some(known), _) => about_word(known),
            (None, Some(element)) => format!("**{element}**: elements of {} bits", element.bits()),
            (None, None) => return None,
        };
        Some((self.text.span(bytes), text))
    }

    fn about(&self, mention: &Mention, assigned: Option<&Assigned>) -> String {
        match mention.of {
            Subject::Iteration(_) => format!("**{}**: the iteration of a loop, from 0", mention.name),
            Subject::Scalar(number) => match self.program.as_ref().and_then(|own| own.scalars().get(number)) {
                Some(scalar) => format!("**{}**: a number of the launch, of {}", scalar.name, scalar.element),
                None => format!("**{}**: a number of the launch", mention.name),
            },
            Subject::Tensor(number) => match self.program.as_ref().and_then(|own| own.tensors().get(number)) {
                Some(tensor) => {
                    let role = match tensor.role {
                        Role::Input => "input",
                        Role::Output => "output",
                        Role::Both => "inout",
                    };
                    format!(
                        "**{}**: {role} tensor of {}\n\n```text\n{}\n```",
                        tensor.name, tensor.element, tensor.layout
                    )
                }
                None => format!("**{}**: a tensor", mention.name),
            },
            Subject::Value(value) => {
                let mut text = format!("**{}**: {}", mention.name, described(mention.ty.as_ref()));
                if let Some(assigned) = assigned
                    && let Some(layout) = assigned.layout(value)
                {
                    text.push_str(&format!(
                        "\n\n```text\n{layout}\n```\n\nthread and value to element, {} warps; {} of {} cycles of a \
                         multiprocessor per block",
                        assigned.warps,
                        rounded(assigned.cost(value)),
                        rounded(assigned.cycles)
                    ));
                }
                text
            }
        }
    }

    /// The layout of the value whose name is at a position, in the notation.
    pub fn layout_of(&self, place: Position, assigned: &Assigned) -> Option<String> {
        match self.mention(place)?.0.of {
            Subject::Value(value) => assigned.layout(value),
            _ => None,
        }
    }

    /// The byte range of the word at a position.
    fn word(&self, place: Position) -> Option<Range<usize>> {
        let at = self.text.offset(place);
        let line = self.text.line(place.line);
        let own = self.text.as_str().get(line.clone())?;
        let (before, behind) = own.split_at_checked(at.checked_sub(line.start)?)?;
        // There is no hover text within a comment.
        if before.contains('#') {
            return None;
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = at - before.chars().rev().take_while(|c| is_word(*c)).count();
        let end = at + behind.chars().take_while(|c| is_word(*c)).count();
        (start < end).then_some(start..end)
    }

    /// The completions at a position: names in scope, functions, types and keywords.
    pub fn completions(&self, place: Position) -> Vec<Completion> {
        let line = self.text.line(place.line);
        let before = self.text.as_str().get(line.start..self.text.offset(place)).unwrap_or("");
        if before.contains('#') {
            return Vec::new();
        }
        // Only the program up to this line is read: the reader then stops here, and the names that
        // it knows are those in scope on this line.
        let known = self.text.as_str().get(..line.start).unwrap_or("");
        let (_, outline) = Program::outline(known);
        let mut found = Vec::new();
        for (name, of) in &outline.scope {
            let last = outline.mentions.iter().rev().find(|own| own.of == *of && own.is_given);
            let detail = match of {
                Subject::Tensor(_) => "tensor".to_owned(),
                Subject::Scalar(_) => "number of the launch".to_owned(),
                Subject::Iteration(_) => "iteration of a loop".to_owned(),
                Subject::Value(_) => described(last.and_then(|own| own.ty.as_ref())),
            };
            found.push(Completion { label: name.clone(), kind: Kind::Name, detail, summary: String::new() });
        }
        for word in WORDS {
            let kind = if word.is_function { Kind::Function } else { Kind::Keyword };
            let (label, detail) = (word.name.to_owned(), word.signature.to_owned());
            found.push(Completion { label, kind, detail, summary: word.summary.to_owned() });
        }
        for element in Element::ALL {
            let (label, detail) = (element.to_string(), format!("{} bits", element.bits()));
            found.push(Completion { label, kind: Kind::Type, detail, summary: String::new() });
        }
        found
    }

    /// An inlay hint for each value that is defined on these lines: its layout.
    pub fn hints(&self, assigned: &Assigned, lines: Range<u32>) -> Vec<Hint> {
        let mut found = Vec::new();
        for mention in self.outline.mentions.iter().filter(|own| own.is_given) {
            let Subject::Value(value) = mention.of else { continue };
            if !lines.contains(&(mention.place.line() - 1)) {
                continue;
            }
            let Some(label) = assigned.label(value) else { continue };
            let place = self.text.position(self.bytes(mention).end);
            let tooltip = format!(
                "{}; the layout maps a thread and the number of one of its values to an element of the tile; the block \
                 costs {} cycles of a multiprocessor",
                described(mention.ty.as_ref()),
                rounded(assigned.cycles)
            );
            found.push(Hint { place, label: format!(": {label}"), tooltip });
        }
        found
    }
}

/// The shape and the type of a value.
fn described(ty: Option<&Type>) -> String {
    match ty {
        Some(ty) if ty.shape.is_empty() => format!("one number of {}", ty.element),
        Some(ty) => format!("tile of {ty}"),
        None => "a value".to_owned(),
    }
}

fn word_named(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

fn about_word(word: &Word) -> String {
    format!("```text\n{}\n```\n\n{}", word.signature, word.summary)
}
