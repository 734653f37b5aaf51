//! TileLang's fragments and layouts.
//!
//! Law: a fragment maps each coordinate of a tile, and the index of a copy, to the thread that
//! holds it and the index of the value. It is read in the opposite direction, as the layout
//! `(thread, value)` to the number of the element, the first dimension fastest, as thread-value
//! layouts are in CuTe. A layout maps a coordinate to an offset in elements; of several result
//! indices the last one is the fastest. Index expressions are evaluated at every coordinate, and a
//! layout is returned only if it agrees at all of them.

mod swizzles;

use tilewright_notation::Value;

use super::arrays::damaged;
use crate::cursor::Cursor;
use crate::fit::{fit, fit_held};
use crate::reader::{Context, Found, Reader};
use crate::reading::{Reading, Unit};
use crate::refused::{Missing, Refused};
use crate::system::System;
use crate::term::Stopped;

/// The reader.
pub const READER: Reader = Reader {
    system: System::TileLang,
    signs: &["T.Fragment(", "Fragment(", "T.Layout(", "Layout([", "Layout(("],
    read,
};

pub use swizzles::READER as NAMED;

/// The largest number of elements of a tile, including copies, whose expressions are evaluated.
const MAX_ELEMENTS: i64 = 1 << 20;
/// The largest nesting depth of expressions, and the largest number of their parts.
const MAX_DEPTH: usize = 64;
const MAX_PARTS: usize = 4096;

/// An index expression.
enum Expression {
    Number(i64),
    /// The number of an index.
    Index(usize),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    TruncatedDivide,
    TruncatedRemainder,
    Xor,
    And,
    Or,
    ShiftLeft,
    ShiftRight,
}

impl Operator {
    /// The operators by their precedence, the lowest first.
    const LEVELS: [&'static [(&'static str, Operator)]; 6] = [
        &[("|", Operator::Or)],
        &[("^", Operator::Xor)],
        &[("&", Operator::And)],
        &[("<<", Operator::ShiftLeft), (">>", Operator::ShiftRight)],
        &[("+", Operator::Add), ("-", Operator::Subtract)],
        &[("//", Operator::Divide), ("%", Operator::Remainder), ("*", Operator::Multiply)],
    ];

    fn named(name: &str) -> Option<Operator> {
        Some(match name.rsplit('.').next()? {
            "floordiv" | "FloorDiv" => Operator::Divide,
            "floormod" | "FloorMod" => Operator::Remainder,
            "truncdiv" => Operator::TruncatedDivide,
            "truncmod" => Operator::TruncatedRemainder,
            "bitwise_xor" => Operator::Xor,
            "bitwise_and" => Operator::And,
            "bitwise_or" => Operator::Or,
            "shift_left" => Operator::ShiftLeft,
            "shift_right" => Operator::ShiftRight,
            _ => return None,
        })
    }

    fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            // Rounds toward minus infinity, as in Python.
            Operator::Divide => (b > 0).then(|| a.div_euclid(b)),
            Operator::Remainder => (b > 0).then(|| a.rem_euclid(b)),
            // Rounds toward zero, as in C.
            Operator::TruncatedDivide => (b > 0).then(|| a / b),
            Operator::TruncatedRemainder => (b > 0).then(|| a % b),
            Operator::Xor => Some(a ^ b),
            Operator::And => Some(a & b),
            Operator::Or => Some(a | b),
            Operator::ShiftLeft => u32::try_from(b).ok().and_then(|b| a.checked_mul(1_i64.checked_shl(b)?)),
            Operator::ShiftRight => u32::try_from(b).ok().filter(|b| *b < 64).map(|b| a >> b),
        }
    }
}

impl Expression {
    fn eval(&self, indices: &[i64]) -> Option<i64> {
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Index(index) => indices.get(*index).copied(),
            Expression::Binary(operator, a, b) => operator.apply(a.eval(indices)?, b.eval(indices)?),
        }
    }
}

/// The parser of one text: a cursor, the names of indices, and the number of parts that were read.
struct Parser<'a> {
    cursor: Cursor<'a>,
    names: Vec<String>,
    parts: usize,
}

type Parsed<T> = Result<T, Stopped>;

impl Parser<'_> {
    fn fail<T>(&self, wanted: &'static str) -> Parsed<T> {
        Err(Stopped { at: self.cursor.at, wanted })
    }

    fn want(&mut self, text: &str, wanted: &'static str) -> Parsed<()> {
        if self.cursor.eat_spaced(text) { Ok(()) } else { self.fail(wanted) }
    }

    fn expression(&mut self, level: usize, depth: usize) -> Parsed<Expression> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return self.fail("a shorter expression");
        }
        let Some(operators) = Operator::LEVELS.get(level) else { return self.leaf(depth) };
        let mut left = self.expression(level + 1, depth)?;
        'more: loop {
            self.parts += 1;
            if self.parts > MAX_PARTS {
                return self.fail("a shorter expression");
            }
            for (sign, operator) in operators.iter() {
                // `->` ends an expression.
                if self.cursor.eat_spaced(sign) {
                    let right = self.expression(level + 1, depth + 1)?;
                    left = Expression::Binary(*operator, Box::new(left), Box::new(right));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn leaf(&mut self, depth: usize) -> Parsed<Expression> {
        if self.cursor.blanks(true).eat("(") {
            let inner = self.expression(0, depth + 1)?;
            self.want(")", "a closing parenthesis")?;
            return Ok(inner);
        }
        if self.cursor.eat("-") {
            let inner = self.leaf(depth + 1)?;
            return Ok(Expression::Binary(Operator::Subtract, Box::new(Expression::Number(0)), Box::new(inner)));
        }
        if let Some(number) = self.cursor.integer() {
            return Ok(Expression::Number(number));
        }
        let start = self.cursor.at;
        let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        if let Some(index) = self.names.iter().position(|own| own == name) {
            return Ok(Expression::Index(index));
        }
        // `T.int32(4)`, `T.bitwise_xor(a, b)`.
        if self.cursor.eat("(") {
            let first = self.expression(0, depth + 1)?;
            if self.cursor.eat_spaced(",") {
                let second = self.expression(0, depth + 1)?;
                self.want(")", "a closing parenthesis")?;
                if let Some(operator) = Operator::named(name) {
                    return Ok(Expression::Binary(operator, Box::new(first), Box::new(second)));
                }
            } else if name.rsplit('.').next().is_some_and(|name| name.starts_with("int") || name == "Cast") {
                self.want(")", "a closing parenthesis")?;
                return Ok(first);
            }
        }
        self.cursor.at = start;
        self.fail("a number, an index, or an operation on indices")
    }

    /// `[64, 64]` or `(64, 64)`.
    fn extents(&mut self) -> Parsed<Vec<i64>> {
        let close = if self.cursor.blanks(true).eat("[") {
            "]"
        } else if self.cursor.eat("(") {
            ")"
        } else {
            return self.fail("extents in brackets");
        };
        let mut extents = Vec::new();
        loop {
            if self.cursor.eat_spaced(close) {
                return Ok(extents);
            }
            match self.cursor.blanks(true).integer() {
                Some(extent) if extent > 0 => extents.push(extent),
                _ => return self.fail("a positive extent"),
            }
            let _ = self.cursor.eat_spaced(",");
        }
    }

    /// Expressions in brackets, or a single one.
    fn expressions(&mut self) -> Parsed<Vec<Expression>> {
        self.cursor.blanks(true);
        let kept = self.cursor;
        let close = if self.cursor.eat("[") {
            "]"
        } else if self.cursor.eat("(") {
            ")"
        } else {
            return Ok(vec![self.expression(0, 0)?]);
        };
        let mut found = vec![self.expression(0, 0)?];
        while self.cursor.eat_spaced(",") {
            if self.cursor.eat_spaced(close) {
                return Ok(found);
            }
            found.push(self.expression(0, 0)?);
        }
        if close == ")" && found.len() == 1 {
            // A parenthesis that is part of an expression.
            self.cursor = kept;
            return Ok(vec![self.expression(0, 0)?]);
        }
        self.want(close, "a closing bracket")?;
        Ok(found)
    }

    /// `lambda i, j: ` and its body; its names become those of the indices, at least as many as the
    /// shape has extents.
    fn lambda(&mut self, rank: usize) -> Parsed<Vec<Expression>> {
        if !self.cursor.blanks(true).eat("lambda") {
            return self.fail("a lambda of the indices");
        }
        self.names.clear();
        loop {
            let Some(name) = self.cursor.blanks(true).word() else { return self.fail("the name of an index") };
            self.names.push(name.to_owned());
            if self.cursor.eat_spaced(":") {
                if self.names.len() < rank {
                    return self.fail("a name for each extent of the shape before the colon");
                }
                return self.expressions();
            }
            self.want(",", "a comma or a colon")?;
        }
    }
}

impl Parser<'_> {
    /// `[_i, _j]`
    fn bracketed_names(&mut self) -> Parsed<Vec<String>> {
        self.want("[", "the names of the indices in brackets")?;
        let mut names = Vec::new();
        loop {
            let Some(name) = self.cursor.blanks(true).word() else { return self.fail("the name of an index") };
            names.push(name.to_owned());
            if self.cursor.eat_spaced("]") {
                return Ok(names);
            }
            self.want(",", "a comma or a closing bracket")?;
        }
    }
}

/// The content of a text before it is evaluated.
#[derive(Default)]
struct Said {
    shape: Vec<i64>,
    /// The extents of a layout's result, if the text has them.
    result: Option<Vec<i64>>,
    copies: i64,
    threads: Option<i64>,
    thread: Option<Expression>,
    index: Vec<Expression>,
}

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    let mut cursor = Cursor::new(context.source, at);
    let _ = cursor.eat("T.");
    let name = cursor.word()?;
    if !cursor.eat("(") {
        return None;
    }
    let is_fragment = name == "Fragment";
    // A shape and strides alone are a pycute layout.
    if !is_fragment && super::pycute::is_plain(context.source, at) {
        return None;
    }
    let mut parser = Parser { cursor, names: Vec::new(), parts: 0 };
    let said = match text(&mut parser, is_fragment) {
        Ok(said) => said,
        // `Layout((4, 8), ..)` also occurs in texts of other systems.
        Err(_) if !is_fragment && !context.source.get(at..)?.starts_with("T.") => return None,
        // `Fragment([64, 64] -> [32], replicate: 2, thread: 256, ...)` in an error message.
        Err(stopped) if context.source.get(stopped.at..)?.trim_start().starts_with("...") => {
            let span = at..stopped.at + 3;
            let why = "the text leaves out which thread and which index an element has: `...` stands for it";
            let refused = Refused::damaged(span.clone(), why).with_help("print the whole layout");
            return Some(Found { span, answer: Err(refused) });
        }
        Err(stopped) => return Some(damaged(at, &stopped)),
    };
    let span = at..parser.cursor.at;
    let answer = if is_fragment { fragment(&said, &span) } else { layout(&said, &span, context) };
    Some(Found { span, answer })
}

fn text(parser: &mut Parser<'_>, is_fragment: bool) -> Parsed<Said> {
    let mut said = Said { copies: 1, ..Said::default() };
    if parser.cursor.eat_spaced("shape") {
        parser.want("=", "an equals sign")?;
    }
    said.shape = parser.extents()?;
    parser.names = ('i'..='z').take(said.shape.len()).map(|name| format!("_{name}")).collect();
    parser.names.push("_rep".into());
    if parser.cursor.eat_spaced("->") {
        said.result = Some(parser.extents()?);
    }
    while !parser.cursor.eat_spaced(")") {
        parser.want(",", "a comma or a closing parenthesis")?;
        if parser.cursor.eat_spaced(")") {
            break;
        }
        parser.cursor.blanks(true);
        let kept = parser.cursor;
        let word = parser.cursor.word().unwrap_or("").to_owned();
        let named = word != "lambda" && (parser.cursor.eat_spaced(":") || parser.cursor.eat_spaced("="));
        if !named {
            parser.cursor = kept;
            let found = if word == "lambda" { parser.lambda(said.shape.len())? } else { parser.expressions()? };
            both(&mut said, found, is_fragment, parser)?;
            continue;
        }
        match word.as_str() {
            "replicate" => said.copies = number(parser)?,
            "thread" | "threads" => said.threads = Some(number(parser)?),
            // `[_i, _j] -> [_j // 64, ..]`
            "transform" => {
                parser.names = parser.bracketed_names()?;
                parser.want("->", "an arrow")?;
                said.index = parser.expressions()?;
            }
            "forward_thread" => said.thread = Some(parser.expression(0, 0)?),
            "forward_index" | "index" | "forward" => said.index = parser.expressions()?,
            "forward_thread_fn" => {
                let found = parser.lambda(said.shape.len())?;
                match <[Expression; 1]>::try_from(found) {
                    Ok([thread]) => said.thread = Some(thread),
                    Err(_) => return parser.fail("one expression for the thread"),
                }
            }
            "forward_index_fn" => said.index = parser.lambda(said.shape.len())?,
            "forward_fn" => {
                let found = parser.lambda(said.shape.len())?;
                both(&mut said, found, is_fragment, parser)?;
            }
            _ => skip(parser)?,
        }
    }
    Ok(said)
}

/// A lambda returns the thread and then the index for a fragment, or the indices for a layout.
fn both(said: &mut Said, mut found: Vec<Expression>, is_fragment: bool, parser: &Parser<'_>) -> Parsed<()> {
    if is_fragment {
        if found.len() < 2 {
            return parser.fail("a pair of a thread and an index");
        }
        said.thread = Some(found.remove(0));
    }
    said.index = found;
    Ok(())
}

fn number(parser: &mut Parser<'_>) -> Parsed<i64> {
    match parser.cursor.blanks(true).integer() {
        Some(number) if number > 0 => Ok(number),
        _ => parser.fail("a positive number"),
    }
}

/// Skips a value that is not needed.
fn skip(parser: &mut Parser<'_>) -> Parsed<()> {
    let _ = parser
        .cursor
        .blanks(true)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'\''));
    if let Some(open @ (b'(' | b'[' | b'{')) = parser.cursor.peek()
        && parser.cursor.bracketed(open).is_none()
    {
        return parser.fail("a closing bracket");
    }
    Ok(())
}

/// Every coordinate, the first dimension fastest.
fn coordinates(shape: &[i64], mut visit: impl FnMut(i64, &[i64]) -> Option<()>) -> Option<()> {
    let size: i64 = shape.iter().product();
    for number in 0..size {
        let mut rest = number;
        let coordinate: Vec<i64> = shape
            .iter()
            .map(|extent| {
                let own = rest % extent;
                rest /= extent;
                own
            })
            .collect();
        visit(number, &coordinate)?;
    }
    Some(())
}

/// The number of elements of a tile including copies; an error if it is too large.
fn size(said: &Said, span: &std::ops::Range<usize>) -> Result<i64, Refused> {
    let all = said.shape.iter().chain([&said.copies]);
    let size = all.into_iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    size.filter(|size| *size <= MAX_ELEMENTS && !said.shape.is_empty()).ok_or_else(|| {
        let message = format!("the expressions of at most {MAX_ELEMENTS} elements are evaluated");
        Refused::unsupported(span.clone(), message, "paste the layout of a smaller tile")
    })
}

/// The extents of the result, if the text says them.
fn extents_of_result<'a>(said: &'a Said, span: &std::ops::Range<usize>) -> Result<Option<&'a [i64]>, Refused> {
    let extents = said.result.as_deref();
    if extents.is_some_and(|extents| extents.len() != said.index.len()) || (extents.is_none() && said.index.len() > 1) {
        let message = format!("the result is to have an extent for each index, {} in all", said.index.len());
        return Err(Refused::contradiction(span.clone(), message));
    }
    Ok(extents)
}

/// The values of several expressions combined into one index, the last one fastest.
fn together(index: &[Expression], extents: Option<&[i64]>, coordinate: &[i64]) -> Option<i64> {
    let mut all = 0_i64;
    let Some(extents) = extents else { return index.first()?.eval(coordinate) };
    for (expression, extent) in index.iter().zip(extents) {
        let own = expression.eval(coordinate).filter(|own| (0..*extent).contains(own))?;
        all = all.checked_mul(*extent)?.checked_add(own)?;
    }
    Some(all)
}

fn fragment(said: &Said, span: &std::ops::Range<usize>) -> Result<Reading, Refused> {
    let size = size(said, span)?;
    let bad = |message: String| Refused::contradiction(span.clone(), message);
    let Some(thread) = &said.thread else { return Err(bad("a fragment says the thread of each element".into())) };
    if said.index.is_empty() {
        let message = "the text does not say the index of each element in its thread (forward_index)";
        return Err(Refused::ask(Missing::Definition("forward_index".into()), message));
    }
    let extents = extents_of_result(said, span)?;
    let mut shape = said.shape.clone();
    shape.push(said.copies);
    let elements = size / said.copies;
    let mut places = Vec::new();
    let visited = coordinates(&shape, |number, coordinate| {
        places.push(((thread.eval(coordinate)?, together(&said.index, extents, coordinate)?), number % elements));
        Some(())
    });
    if visited.is_none() {
        return Err(bad("an expression has no value at some coordinate, or one past its extent".into()));
    }
    let held = fit_held(places).map_err(|because| {
        let help =
            "a fragment is read where thread and index are made of digits of the coordinates, or of XORs of them";
        Refused::unsupported(span.clone(), because, help)
    })?;
    if let Some(said) = said.threads.filter(|said| *said != held.threads) {
        return Err(bad(format!("the text says {said} threads, and {} hold elements", held.threads)));
    }
    let layout = held.layout;
    let extents = said.shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let mut note = format!("(thread, value) to elements of the {extents} tile, numbered first dimension fastest");
    if said.copies > 1 {
        note.push_str(&format!("; {} threads hold each element", said.copies));
    }
    Ok(Reading::new(System::TileLang, "fragment", Value::Layout(layout), Unit::Indices).note(note))
}

fn layout(said: &Said, span: &std::ops::Range<usize>, context: &Context<'_>) -> Result<Reading, Refused> {
    size(said, span)?;
    let bad = |message: &str| Refused::contradiction(span.clone(), message);
    if said.index.is_empty() {
        return Err(bad("a layout says the index of each element"));
    }
    let extents = extents_of_result(said, span)?;
    let mut table = Vec::new();
    let visited = coordinates(&said.shape, |_, coordinate| {
        table.push(together(&said.index, extents, coordinate)?);
        Some(())
    });
    if visited.is_none() {
        return Err(bad("an expression has no value at some coordinate, or one past its extent"));
    }
    let Some(layout) = fit(&said.shape, &table) else {
        return Err(Refused::unsupported(
            span.clone(),
            "no layout has these offsets",
            "a layout is read where the index is made of digits of the coordinates, or of XORs of them",
        ));
    };
    let unit = Unit::Elements { bits: context.options.element_bits };
    Ok(Reading::new(System::TileLang, "layout", Value::Layout(layout), unit))
}
