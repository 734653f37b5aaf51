//! Parses the header of a function: its parameters, and its directives about threads.

use super::super::lexer::Token;
use super::super::{Parameter, PtxError, PtxFunction, Scalar};
use super::{Meaning, NameScope, Parsed, Parser};

/// The most parameters of a function, and the most bytes of a parameter.
const MAX_PARAMETERS: usize = 4096;
const MAX_PARAMETER_BYTES: u64 = 32 << 10;

impl<'a> Parser<'a> {
    pub(super) fn function(&mut self, is_entry: bool) -> Parsed<()> {
        let line = self.line;
        self.advance()?;
        while let Token::Dot(_) = self.token {
            // Skips `.attribute(..)` and other directives before the name.
            self.advance()?;
            if self.is_sign(b'(') {
                self.skip_parentheses()?;
            }
        }
        self.scopes = vec![NameScope::default()];
        self.location = None;
        let mut own = PtxFunction {
            name: "",
            is_entry,
            parameters: Vec::new(),
            returns: Vec::new(),
            registers: Vec::new(),
            register_names: Vec::new(),
            variables: Vec::new(),
            labels: Vec::new(),
            body: None,
            required_threads: None,
            most_threads: None,
            required_cluster: None,
            line,
        };
        if self.is_sign(b'(') {
            own.returns = self.parameters(&mut own)?;
        }
        own.name = self.word("the name of a function")?;
        if self.is_sign(b'(') {
            own.parameters = self.parameters(&mut own)?;
        }
        loop {
            match self.token {
                Token::Dot("loc") => self.loc()?,
                Token::Dot("pragma") => self.skip_statement()?,
                Token::Dot(word) => {
                    self.advance()?;
                    match word {
                        "reqntid" => own.required_threads = Some(self.three()?),
                        "maxntid" => own.most_threads = Some(self.three()?),
                        "reqnctapercluster" => own.required_cluster = Some(self.three()?),
                        _ if matches!(self.token, Token::Integer(_)) => {
                            self.three()?;
                        }
                        _ => {}
                    }
                }
                Token::Sign(b';') => {
                    self.advance()?;
                    break;
                }
                Token::Sign(b'{') => {
                    own.body = Some(self.body(&mut own)?);
                    break;
                }
                _ => return self.error(format!("the body of `{}` is expected, not {}", own.name, self.shown())),
            }
        }
        match self.functions.get(own.name) {
            None => {
                self.functions.insert(own.name, self.module.functions.len());
                self.module.functions.push(own);
            }
            Some(at) => {
                let found = &mut self.module.functions[*at];
                if own.body.is_some() {
                    if found.body.is_some() {
                        return Err(PtxError::new(line, format!("`{}` is defined twice", own.name)));
                    }
                    *found = own;
                }
            }
        }
        Ok(())
    }

    pub(super) fn skip_parentheses(&mut self) -> Parsed<()> {
        while !self.take_sign(b')')? {
            if self.token == Token::End {
                return self.error("`)` is expected before the end of the text");
            }
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn three(&mut self) -> Parsed<[u32; 3]> {
        let mut found = [1; 3];
        for (at, own) in found.iter_mut().enumerate() {
            *own = self.small("a number of threads or blocks")?;
            if at == 2 || !self.take_sign(b',')? {
                break;
            }
        }
        Ok(found)
    }

    pub(super) fn parameters(&mut self, own: &mut PtxFunction<'a>) -> Parsed<Vec<Parameter<'a>>> {
        self.expect(b'(')?;
        let mut found = Vec::new();
        while !self.take_sign(b')')? {
            let is_register = match self.token {
                Token::Dot("param") => false,
                Token::Dot("reg") => true,
                _ => return self.error(format!("`.param` is expected, not {}", self.shown())),
            };
            self.advance()?;
            let (mut align, mut element) = (None, None);
            while let Token::Dot(word) = self.token {
                self.advance()?;
                match word {
                    "align" => align = Some(self.alignment()?),
                    "ptr" | "global" | "shared" | "const" | "local" => {
                        // The alignment of the pointer's target is no property of the parameter.
                        if word == "ptr" {
                            while let Token::Dot("global" | "shared" | "const" | "local" | "generic") = self.token {
                                self.advance()?;
                            }
                            if self.token == Token::Dot("align") {
                                self.advance()?;
                                self.alignment()?;
                            }
                        }
                    }
                    _ => match Scalar::read(word) {
                        None => return self.error(format!("`.{word}` is no type of a parameter")),
                        kind => element = kind,
                    },
                }
            }
            let Some(element) = element else { return self.error("a parameter has no type") };
            let name = self.word("the name of a parameter")?;
            let mut bytes = element.bytes();
            if self.take_sign(b'[')? {
                let count = if self.is_sign(b']') { 0 } else { self.integer("a size")? };
                self.expect(b']')?;
                bytes = bytes.saturating_mul(count);
            }
            if bytes > MAX_PARAMETER_BYTES || found.len() == MAX_PARAMETERS {
                return self.error(format!("the parameter `{name}` exceeds {MAX_PARAMETER_BYTES} bytes"));
            }
            let register = match is_register {
                true => {
                    let register = own.registers.len() as u32;
                    own.registers.push(element);
                    own.register_names.push(name);
                    self.scopes[0].names.insert(name, Meaning::Register(register));
                    Some(register)
                }
                false => None,
            };
            found.push(Parameter { name, element, bytes, align: align.unwrap_or(element.bytes()), register });
            if !self.take_sign(b',')? && !self.is_sign(b')') {
                return self.error(format!("`,` or `)` is expected, not {}", self.shown()));
            }
        }
        Ok(found)
    }
}
