//! The parser of PTX: its tokens, and the parts of a module outside of functions.

mod body;
mod function;
mod variable;

use std::collections::HashMap;

use super::lexer::{Lexer, Token};
use super::{Location, Module, PtxError, Scalar, SourceFile};

/// The most bytes of a text that is read.
pub const MAX_TEXT_BYTES: usize = 64 << 20;

/// The greatest nesting of `{`, in statements and in operands.
pub const MAX_NESTING: usize = 64;

/// The most registers that the statements of a function may name.
pub const MAX_REGISTERS: usize = 1 << 18;

/// Reads a module.
///
/// ```
/// let text = "
///     .version 8.0
///     .target sm_90
///     .address_size 64
///     .visible .entry nothing(.param .u64 out) { ret; }";
/// let module = tilewright_sanitize::ptx::parse(text)?;
/// assert_eq!(module.functions[0].name, "nothing");
/// assert_eq!(module.functions[0].parameters[0].bytes, 8);
/// # Ok::<(), tilewright_sanitize::ptx::PtxError>(())
/// ```
///
/// # Errors
///
/// Errors: the text is damaged, uses an undeclared name, or exceeds a limit.
pub fn parse(text: &str) -> Result<Module<'_>, PtxError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(PtxError::new(1, format!("the text has {} bytes; {MAX_TEXT_BYTES} are read", text.len())));
    }
    let mut parser = Parser::new(text)?;
    parser.module()?;
    Ok(parser.module)
}

/// The meaning of a name in a scope of a function.
#[derive(Clone, Copy)]
enum Meaning {
    Register(u32),
    Variable(u32),
}

/// Registers `name0`, `name1` and so on that are declared together.
struct Range {
    element: Scalar,
    count: u64,
    found: HashMap<u64, u32>,
}

/// A use of a label whose scope is not closed yet: the statement, and the operand in it.
struct Mention<'a> {
    statement: usize,
    operand: usize,
    name: &'a str,
    line: u32,
}

#[derive(Default)]
struct NameScope<'a> {
    names: HashMap<&'a str, Meaning>,
    singles: HashMap<&'a str, Scalar>,
    ranges: HashMap<&'a str, Range>,
    labels: HashMap<&'a str, u32>,
    mentions: Vec<Mention<'a>>,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    line: u32,
    module: Module<'a>,
    functions: HashMap<&'a str, usize>,
    variables: HashMap<&'a str, usize>,
    places: HashMap<Location, u32>,
    location: Option<u32>,
    scopes: Vec<NameScope<'a>>,
}

type Parsed<T> = Result<T, PtxError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        let mut lexer = Lexer::new(text);
        let (token, line) = lexer.next()?;
        Ok(Self {
            lexer,
            token,
            line,
            module: Module::default(),
            functions: HashMap::new(),
            variables: HashMap::new(),
            places: HashMap::new(),
            location: None,
            scopes: Vec::new(),
        })
    }

    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(PtxError::new(self.line, message))
    }

    fn advance(&mut self) -> Parsed<Token<'a>> {
        let (token, line) = self.lexer.next()?;
        self.line = line;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is_sign(&self, sign: u8) -> bool {
        self.token == Token::Sign(sign)
    }

    fn take_sign(&mut self, sign: u8) -> Parsed<bool> {
        let found = self.is_sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: u8) -> Parsed<()> {
        match self.take_sign(sign)? {
            true => Ok(()),
            false => self.error(format!("`{}` is expected, not {}", char::from(sign), self.shown())),
        }
    }

    fn shown(&self) -> String {
        match self.token {
            Token::Word(text) => format!("`{text}`"),
            Token::Dot(text) => format!("`.{text}`"),
            Token::Integer(value) => format!("`{value}`"),
            Token::Float32(bits) => format!("`0f{bits:08X}`"),
            Token::Float64(bits) => format!("`0d{bits:016X}`"),
            Token::Text(_) => "a text in quotes".to_string(),
            Token::Sign(sign) => format!("`{}`", char::from(sign)),
            Token::End => "the end of the text".to_string(),
        }
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        match self.token {
            Token::Word(text) => {
                self.advance()?;
                Ok(text)
            }
            _ => self.error(format!("{what} is expected, not {}", self.shown())),
        }
    }

    fn integer(&mut self, what: &str) -> Parsed<u64> {
        match self.token {
            Token::Integer(value) => {
                self.advance()?;
                Ok(value)
            }
            _ => self.error(format!("{what} is expected, not {}", self.shown())),
        }
    }

    fn small(&mut self, what: &str) -> Parsed<u32> {
        let value = self.integer(what)?;
        u32::try_from(value).or_else(|_| self.error(format!("{value} is too large for {what}")))
    }

    // Parses everything outside of functions.

    fn module(&mut self) -> Parsed<()> {
        loop {
            match self.token {
                Token::End => break,
                Token::Dot(directive) => self.directive(directive)?,
                Token::Sign(b'@') => {
                    // `@@DWARF`: debug information from old compilers.
                    self.lexer.skip_line();
                    self.advance()?;
                }
                Token::Sign(b';') => {
                    self.advance()?;
                }
                _ => return self.error(format!("a directive is expected, not {}", self.shown())),
            }
        }
        if self.module.version.is_empty() {
            return self.error("the text has no `.version`: is it PTX?");
        }
        Ok(())
    }

    fn directive(&mut self, directive: &'a str) -> Parsed<()> {
        match directive {
            "version" => {
                self.advance()?;
                self.module.version = match self.advance()? {
                    Token::Float64(bits) => format!("{:.1}", f64::from_bits(bits)),
                    Token::Integer(value) => value.to_string(),
                    _ => return self.error("a version such as 8.0 is expected"),
                };
            }
            "target" => {
                self.advance()?;
                self.module.target = self.word("a target such as sm_90")?;
                while self.take_sign(b',')? {
                    self.word("an option of the target")?;
                }
            }
            "address_size" => {
                self.advance()?;
                if self.integer("a size")? != 64 {
                    return self.error("addresses of 32 bits are not supported; 64 are");
                }
            }
            "file" => {
                self.advance()?;
                let number = self.small("the number of a file")?;
                let Token::Text(path) = self.token else { return self.error("the path of a file is expected") };
                self.advance()?;
                while self.take_sign(b',')? {
                    self.integer("a time or size")?;
                }
                self.module.files.push(SourceFile { number, path });
            }
            "section" => {
                self.advance()?;
                self.advance()?;
                self.skip_braces()?;
            }
            "loc" => self.loc()?,
            "pragma" | "alias" => self.skip_statement()?,
            _ => self.definition()?,
        }
        Ok(())
    }

    fn skip_statement(&mut self) -> Parsed<()> {
        while !self.is_sign(b';') {
            if self.token == Token::End {
                return self.error("`;` is expected before the end of the text");
            }
            self.advance()?;
        }
        self.advance()?;
        Ok(())
    }

    fn skip_braces(&mut self) -> Parsed<()> {
        self.expect(b'{')?;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.advance()? {
                Token::Sign(b'{') => depth += 1,
                Token::Sign(b'}') => depth -= 1,
                Token::End => return self.error("`}` is expected before the end of the text"),
                _ => {}
            }
        }
        Ok(())
    }

    fn loc(&mut self) -> Parsed<()> {
        self.advance()?;
        let file = self.small("the number of a file")?;
        let line = self.small("a line")?;
        let column = self.small("a column")?;
        let mut place = Location { file, line, column, inlined_at: None };
        while self.take_sign(b',')? {
            match self.word("function_name or inlined_at")? {
                "function_name" => {
                    if !matches!(self.token, Token::Word(_) | Token::Dot(_)) {
                        return self.error("the label of a name is expected");
                    }
                    self.advance()?;
                    if self.take_sign(b'+')? {
                        self.integer("an offset")?;
                    }
                }
                "inlined_at" => {
                    let file = self.small("the number of a file")?;
                    let line = self.small("a line")?;
                    let column = self.small("a column")?;
                    // The call itself may be at an inlined location. The last such location is
                    // meant.
                    let call = self
                        .module
                        .locations
                        .iter()
                        .rev()
                        .take(64)
                        .position(|at| (at.file, at.line, at.column) == (file, line, column));
                    let call = match call {
                        Some(back) => (self.module.locations.len() - 1 - back) as u32,
                        None => self.place(Location { file, line, column, inlined_at: None }),
                    };
                    place.inlined_at = Some(call);
                }
                other => return self.error(format!("`{other}` is not known after `.loc`")),
            }
        }
        self.location = Some(self.place(place));
        Ok(())
    }

    fn place(&mut self, place: Location) -> u32 {
        let next = self.module.locations.len() as u32;
        let found = *self.places.entry(place).or_insert(next);
        if found == next {
            self.module.locations.push(place);
        }
        found
    }

    /// Parses `.visible .entry f(..) {..}`, a `.func`, or a variable.
    fn definition(&mut self) -> Parsed<()> {
        let mut is_extern = false;
        loop {
            let Token::Dot(word) = self.token else {
                return self.error(format!("a definition is expected, not {}", self.shown()));
            };
            match word {
                "extern" => is_extern = true,
                "visible" | "weak" | "common" => {}
                "entry" | "func" => return self.function(word == "entry"),
                "global" | "const" | "shared" | "tex" => {
                    let variables = self.variable(is_extern)?;
                    for variable in variables {
                        match self.variables.get(variable.name) {
                            Some(at) => {
                                let own = &mut self.module.variables[*at];
                                if own.is_extern {
                                    *own = variable;
                                }
                            }
                            None => {
                                self.variables.insert(variable.name, self.module.variables.len());
                                self.module.variables.push(variable);
                            }
                        }
                    }
                    return Ok(());
                }
                _ => return self.error(format!("the directive `.{word}` is not known here")),
            }
            self.advance()?;
        }
    }
}
