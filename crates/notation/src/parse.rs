//! The parser.
//!
//! ```text
//! program := { statement (';' | newline) }            the last statement is the value
//! statement := [ [ 'let' ] name '=' ] chain
//! chain   := postfix { ('o' | '∘') postfix }
//! postfix := ( sum | morphism ) { ':' sum | '(' args ')' | '[' chain ']' | '.' name '(' args ')' }
//! args    := [ arg { ',' arg } [ ',' ] ]
//! arg     := chain | name '=' ( chain | '[' chain { ',' chain } [ ',' ] ']' )
//! morphism := sum '->' sum ':' images               images are places counted from 1, '*' for the base point, nested like the domain
//! sum     := [ '-' ] term { ('+' | '-') term }
//! term    := step { ('*' | '/' | '%') step }
//! step    := atom [ '@' integer { '@' integer } ]
//! atom    := integer | '_' | 'None' | 'true' | 'false' | name [ '(' args ')' ] | tuple | tiler | swizzle | matrix | '^' integer
//!          | name facts | '?' [ facts ] | ('floor' | 'ceil' | 'trunc') '(' term ')'
//! facts   := '{' { ('div' | 'min' | 'max') '=' integer | 'int' | 'i8' | 'i16' | 'i32' | 'i64' | ',' } '}'
//! tuple   := '(' [ chain { ',' chain } [ ',' ] ] ')'
//! tiler   := '[' [ chain { ';' chain } ] ']' | '<' [ chain { ',' chain } ] '>'
//! matrix  := 'F2<' integer '>[' [ integer { ',' integer } ] ']'
//! swizzle := ('S' | 'Sw' | 'Swizzle') '<' integer ',' integer ',' integer '>' | 'SW_' b '_' m '_' s
//! ```
//!
//! An unbound name is a parameter, a number that becomes known at launch, wherever a number is
//! allowed: as a value, in a tuple, beside `:`, in arithmetic, as an argument, and as the offset
//! between two `o`. Elsewhere a name must be bound: in `A(2)`, `A[0]`, `A.size()` and at the ends
//! of `A o B`.
//!
//! `:` binds more tightly than a call, a slice or a method, so that a layout may replace a name:
//! `(4,8):(8,1)(2)` is the layout's value at 2. Nesting, program size and time are bounded: see
//! [`MAX_NESTING`].

mod atoms;
mod incomplete;
mod keywords;
mod linear;
mod morphisms;
mod numbers;
mod swizzles;

use std::ops::Range;

use crate::ast::{Item, List, Name, Node, NodeId, Program, Statement};
use crate::diagnostic::{Diagnostic, Fail, excerpt};
use crate::lex::{Kind, Lexer, Token};

pub use incomplete::is_incomplete;

/// The largest nesting depth of brackets, calls and method chains.
pub const MAX_NESTING: usize = 100;

/// The largest number of nodes (numbers, names, calls, brackets) of a program.
pub const MAX_PROGRAM: usize = 1 << 20;

/// The largest size of a program's text, in bytes.
pub const MAX_TEXT: usize = 1 << 26;

/// Reserved words of the language.
pub(crate) const KEYWORDS: [&str; 5] = ["o", "let", "true", "false", "None"];

/// Parses `source` into `program`, whose earlier contents are dropped.
pub(crate) fn parse(source: &str, program: &mut Program) -> Result<(), Fail> {
    program.clear();
    if source.len() > MAX_TEXT {
        return Diagnostic::new("E0209", 0..1, format!("a program of {} bytes is too long", source.len()))
            .help(format!("the limit is {MAX_TEXT} bytes"))
            .fail();
    }
    let mut lexer = Lexer::new(source);
    let now = lexer.next()?;
    let mut parser = Parser { source, lexer, now, end: 0, program, pending: Vec::new(), brackets: Vec::new() };
    parser.program()
}

struct Parser<'a, 'p> {
    source: &'a str,
    lexer: Lexer<'a>,
    now: Token,
    /// The end of the token before `now`.
    end: usize,
    program: &'p mut Program,
    /// Children of the lists that are being read.
    pending: Vec<NodeId>,
    /// The open brackets: the token that opened each, with its location.
    brackets: Vec<Token>,
}

type Parsed = Result<NodeId, Fail>;

impl<'a> Parser<'a, '_> {
    fn text(&self, token: Token) -> &'a str {
        self.source.get(token.span()).unwrap_or("")
    }

    fn advance(&mut self) -> Result<Token, Fail> {
        let token = self.now;
        self.end = token.end;
        self.now = self.lexer.next()?;
        if !self.brackets.is_empty() {
            self.skip_lines()?;
        }
        Ok(token)
    }

    fn skip_lines(&mut self) -> Result<(), Fail> {
        while self.now.kind == Kind::Newline {
            self.now = self.lexer.next()?;
        }
        Ok(())
    }

    fn eat(&mut self, kind: Kind) -> Result<bool, Fail> {
        let found = self.now.kind == kind;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn open(&mut self) -> Result<Token, Fail> {
        if self.brackets.len() == MAX_NESTING {
            return too_deep(self.now.span()).fail();
        }
        self.brackets.push(self.now);
        self.advance()
    }

    fn close(&mut self, kind: Kind, expected: &str) -> Result<(), Fail> {
        if self.now.kind != kind {
            return self.unexpected(expected).fail();
        }
        self.brackets.pop();
        self.advance()?;
        Ok(())
    }

    /// The error for a bracket that is closed by another kind, or never, with the location at which
    /// it was opened.
    #[cold]
    fn unclosed(&self, expected: &str) -> Option<Diagnostic> {
        let open = self.brackets.last()?;
        let own = match open.kind {
            Kind::Open => Kind::Close,
            Kind::OpenSquare => Kind::CloseSquare,
            Kind::OpenBrace => Kind::CloseBrace,
            _ => Kind::Greater,
        };
        let message = match self.now.kind {
            kind if kind == own => return None,
            Kind::End => format!("the {} is never closed", open.kind.describe()),
            kind @ (Kind::Close | Kind::CloseSquare | Kind::CloseBrace | Kind::Greater) => {
                format!("{} closes what {} opened", kind.describe(), open.kind.describe())
            }
            _ => return None,
        };
        let error = Diagnostic::new("E0202", self.now.span(), message);
        Some(error.label(self.now.span(), format!("expected {expected}")).label(open.span(), "opened here"))
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Diagnostic {
        if let Some(error) = self.unclosed(expected) {
            return error;
        }
        let found = match self.now.kind {
            Kind::Name | Kind::Int(_) => {
                format!("'{}'", excerpt(self.text(self.now)))
            }
            kind => kind.describe().to_string(),
        };
        let span = self.now.span();
        match self.now.kind {
            Kind::Close | Kind::CloseSquare | Kind::CloseBrace | Kind::Greater if self.brackets.is_empty() => {
                Diagnostic::new("E0202", span.clone(), format!("{found} closes nothing"))
                    .label(span, "no bracket is open here")
            }
            kind => {
                let error = Diagnostic::new("E0201", span.clone(), format!("expected {expected}, found {found}"))
                    .label(span, format!("expected {expected}"));
                match (kind, self.brackets.last().map(|open| open.kind)) {
                    (Kind::Less, _) => error.help("a swizzle is S<bits,base,shift>; a tiler is [a;b] or <a,b>"),
                    (Kind::Comma, Some(Kind::OpenSquare)) => {
                        error.help("a tuple is written (4,8); a tiler, which tiles each mode by one of its items, is [4;8] or <4,8>")
                    }
                    (Kind::Slash, _) => {
                        error.help("a quotient rounded down is floor(a/b), of tuples floor_div(a, b); ceil(a/b) rounds up")
                    }
                    _ => error,
                }
            }
        }
    }

    fn push(&mut self, node: Node, span: Range<usize>, height: u16) -> Parsed {
        if self.program.items.len() >= MAX_PROGRAM {
            return Diagnostic::new("E0209", span, "the program is too large")
                .help(format!("the limit is {MAX_PROGRAM} numbers, names and brackets"))
                .fail();
        }
        if usize::from(height) > MAX_NESTING + 1 {
            return too_deep(span).fail();
        }
        self.program.items.push(Item::new(node, span, height));
        Ok((self.program.items.len() - 1) as NodeId)
    }

    fn height(&self, id: NodeId) -> u16 {
        self.program.items.get(id as usize).map_or(0, |item| item.height)
    }

    fn start(&self, id: NodeId) -> usize {
        self.program.span(id).start
    }

    /// Makes a list of the pending nodes since `mark`. Returns the list and its height, which is
    /// one more than that of the tallest node.
    fn finish_list(&mut self, mark: usize) -> (List, u16) {
        let start = self.program.children.len() as u32;
        let mut height = 0;
        for id in self.pending.get(mark..).unwrap_or(&[]) {
            height = height.max(self.program.items.get(*id as usize).map_or(0, |item| item.height));
            self.program.children.push(*id);
        }
        self.pending.truncate(mark);
        (List { start, end: self.program.children.len() as u32 }, height + 1)
    }

    /// Whether the pending nodes since `mark` are all integers. If so, they become parts of the
    /// tuple.
    fn take_numbers(&mut self, mark: usize) -> bool {
        let pending = self.pending.get(mark..).unwrap_or(&[]);
        let numbers = pending.iter().all(|id| matches!(self.program.node(*id), Node::Int(_)));
        if numbers {
            for id in pending {
                if let Some(item) = self.program.items.get_mut(*id as usize)
                    && let Node::Int(value) = item.node
                {
                    item.node = Node::Part(value);
                }
            }
        }
        numbers
    }

    fn program(&mut self) -> Result<(), Fail> {
        loop {
            while matches!(self.now.kind, Kind::Newline | Kind::Semicolon) {
                self.advance()?;
            }
            if self.now.kind == Kind::End {
                break;
            }
            let statement = self.statement()?;
            self.program.statements.push(statement);
            if !matches!(self.now.kind, Kind::Newline | Kind::Semicolon | Kind::End) {
                return self.after_expression().fail();
            }
        }
        if self.program.statements.is_empty() {
            let all = 0..self.source.len();
            return Diagnostic::new("E0212", all, "there is nothing to evaluate")
                .help("write an expression, such as size((4,8):(8,1))")
                .fail();
        }
        let last = self.program.statements.len() - 1;
        let unused = self.program.statements.iter().take(last).find(|statement| statement.name.is_none());
        match unused {
            Some(statement) => {
                let span = self.program.span(statement.value);
                Diagnostic::new("E0213", span.clone(), "the value of this statement is not used")
                    .label(span, "not the last statement")
                    .help("a program has one value, that of its last statement; give this one a name or drop it")
                    .fail()
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn after_expression(&self) -> Diagnostic {
        match self.now.kind {
            Kind::Equals => Diagnostic::new("E0211", self.now.span(), "only a name can be bound")
                .label(self.now.span(), "what stands before '=' is not a name")
                .help("write name = expression"),
            Kind::Comma => self
                .unexpected("the end of the statement")
                .help("a tuple stands in parentheses, a tiler in [a;b] or <a,b>"),
            Kind::Name | Kind::Int(_) | Kind::Open => self
                .unexpected("an operator or the end of the statement")
                .help("composition is written A o B; statements are separated by ';' or a newline"),
            _ => self.unexpected("an operator or the end of the statement"),
        }
    }

    fn statement(&mut self) -> Result<Statement, Fail> {
        let explicit = self.now.kind == Kind::Name && self.text(self.now) == "let";
        if explicit {
            self.advance()?;
            if self.now.kind != Kind::Name {
                return self.unexpected("a name").fail();
            }
        }
        let mut name = None;
        if self.now.kind == Kind::Name {
            let mut ahead = Lexer::at(self.source, self.now.end);
            let binds = ahead.next().is_ok_and(|token| token.kind == Kind::Equals);
            if binds && (explicit || !self.linear_ahead()) {
                let token = self.advance()?;
                let text = self.text(token);
                let reserved = if KEYWORDS.contains(&text) {
                    Some("a word of the language")
                } else if crate::functions::find(text).is_some() {
                    Some("the name of a function")
                } else {
                    None
                };
                if let Some(what) = reserved {
                    return Diagnostic::new("E0211", token.span(), format!("'{text}' is {what} and cannot be bound"))
                        .label(token.span(), what)
                        .fail();
                }
                name = Some(Name { start: token.start as u32, end: token.end as u32 });
                self.advance()?;
                self.skip_lines()?;
            } else if explicit {
                self.advance()?;
                return self.unexpected("'='").fail();
            }
        }
        let value = self.chain()?;
        self.may_be_parameter(value);
        Ok(Statement { name, value })
    }

    fn at_circle(&self) -> bool {
        match self.now.kind {
            Kind::Circle => true,
            Kind::Name => self.text(self.now) == "o",
            _ => false,
        }
    }

    fn chain(&mut self) -> Parsed {
        let first = self.postfix()?;
        if !self.at_circle() {
            return Ok(first);
        }
        let mark = self.pending.len();
        self.pending.push(first);
        while self.at_circle() {
            self.advance()?;
            self.skip_lines()?;
            let next = self.postfix()?;
            self.pending.push(next);
        }
        // An offset may be between two `o`.
        for position in mark + 1..self.pending.len().saturating_sub(1) {
            if let Some(id) = self.pending.get(position).copied() {
                self.may_be_parameter(id);
            }
        }
        let (items, height) = self.finish_list(mark);
        self.push(Node::Compose { items }, self.start(first)..self.end, height)
    }

    fn postfix(&mut self) -> Parsed {
        let mut target = self.sum()?;
        if self.now.kind == Kind::Arrow {
            target = self.morphism(target)?;
        }
        loop {
            let start = self.start(target);
            match self.now.kind {
                Kind::Colon => {
                    self.advance()?;
                    self.skip_lines()?;
                    let stride = self.sum()?;
                    self.may_be_parameter(target);
                    self.may_be_parameter(stride);
                    self.mark_stride(stride);
                    let height = self.height(target).max(self.height(stride)) + 1;
                    target = self.push(Node::Pair { shape: target, stride }, start..self.end, height)?;
                }
                Kind::Open => {
                    let mark = self.pending.len();
                    self.arguments()?;
                    let (arguments, height) = self.finish_list(mark);
                    let height = height.max(self.height(target) + 1);
                    target = self.push(Node::Apply { target, arguments }, start..self.end, height)?;
                }
                Kind::OpenSquare => {
                    self.open()?;
                    let mode = self.chain()?;
                    self.close(Kind::CloseSquare, "']'")?;
                    let height = self.height(target).max(self.height(mode)) + 1;
                    target = self.push(Node::Index { target, mode }, start..self.end, height)?;
                }
                Kind::Dot => {
                    self.advance()?;
                    self.skip_lines()?;
                    if self.now.kind != Kind::Name {
                        return self.unexpected("the name of a function").fail();
                    }
                    let token = self.advance()?;
                    if self.now.kind != Kind::Open {
                        return self.unexpected("'('").help("a method is called with parentheses: A.size()").fail();
                    }
                    let mark = self.pending.len();
                    self.pending.push(target);
                    self.arguments()?;
                    let (arguments, height) = self.finish_list(mark);
                    let name = Name { start: token.start as u32, end: token.end as u32 };
                    target = self.push(Node::Call { name, arguments }, start..self.end, height)?;
                }
                _ => return Ok(target),
            }
        }
    }

    /// Parses items up to the closing bracket. Returns whether a separator precedes the bracket.
    fn items(&mut self, separator: Kind, closer: Kind, expected: &str) -> Result<bool, Fail> {
        let mut trailing = false;
        while self.now.kind != closer {
            let item = self.chain()?;
            self.pending.push(item);
            trailing = self.eat(separator)?;
            if !trailing {
                break;
            }
        }
        self.close(closer, expected)?;
        Ok(trailing)
    }

    /// Skips an integer, a `*` or a tuple of these, which evaluation reads from the text.
    fn literal(&mut self, expected: &str, form: &str) -> Result<(), Fail> {
        let mut depth = 0_usize;
        loop {
            match self.now.kind {
                Kind::Open => {
                    self.open()?;
                    depth += 1;
                }
                Kind::Close if depth > 0 => {
                    self.close(Kind::Close, "')'")?;
                    depth -= 1;
                }
                Kind::Comma if depth > 0 => {
                    self.advance()?;
                }
                Kind::Int(_) | Kind::Star => {
                    self.advance()?;
                }
                _ => return self.unexpected(expected).help(form).fail(),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

#[cold]
fn too_deep(span: Range<usize>) -> Diagnostic {
    Diagnostic::new("E0209", span.clone(), "the program nests too deeply")
        .label(span, format!("level {}", MAX_NESTING + 1))
        .help(format!("brackets, calls and methods nest at most {MAX_NESTING} deep; bind the inner part to a name"))
}
