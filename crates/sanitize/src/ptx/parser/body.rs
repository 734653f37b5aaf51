//! Parses the statements of a function: scopes, names, instructions and their operands.

use std::collections::HashMap;

use super::super::lexer::Token;
use super::super::{Operand, PtxError, PtxFunction, Scalar, Statement, StatementKind};
use super::{MAX_NESTING, MAX_REGISTERS, Meaning, Mention, NameScope, Parsed, Parser, Range};

impl<'a> Parser<'a> {
    pub(super) fn body(&mut self, own: &mut PtxFunction<'a>) -> Parsed<Vec<Statement<'a>>> {
        let mut statements = Vec::new();
        self.expect(b'{')?;
        let mut depth = 1;
        loop {
            match self.token {
                Token::Sign(b'{') => {
                    if depth == MAX_NESTING {
                        return self.error(format!("more than {MAX_NESTING} braces are open"));
                    }
                    self.advance()?;
                    depth += 1;
                    self.scopes.push(NameScope::default());
                }
                Token::Sign(b'}') => {
                    let line = self.line;
                    self.advance()?;
                    self.close(own, &mut statements, line)?;
                    depth -= 1;
                    if depth == 0 {
                        return Ok(statements);
                    }
                }
                Token::Sign(b';') => {
                    self.advance()?;
                }
                Token::Dot("loc") => self.loc()?,
                Token::Dot("pragma") => self.skip_statement()?,
                Token::Dot("reg") => self.registers()?,
                Token::Dot("local" | "shared" | "global" | "const" | "param") => {
                    for variable in self.variable(false)? {
                        let at = own.variables.len() as u32;
                        if let Some(scope) = self.scopes.last_mut() {
                            scope.names.insert(variable.name, Meaning::Variable(at));
                        }
                        own.variables.push(variable);
                    }
                }
                Token::Dot("extern") => {
                    self.advance()?;
                    for variable in self.variable(true)? {
                        let at = own.variables.len() as u32;
                        if let Some(scope) = self.scopes.last_mut() {
                            scope.names.insert(variable.name, Meaning::Variable(at));
                        }
                        own.variables.push(variable);
                    }
                }
                Token::Dot(word) => return self.error(format!("the directive `.{word}` is not known here")),
                Token::Sign(b'@') | Token::Word(_) => self.statement(own, &mut statements)?,
                _ => return self.error(format!("a statement is expected, not {}", self.shown())),
            }
        }
    }

    /// Closes a scope. Uses of its own labels are resolved; other uses move to the enclosing scope.
    fn close(&mut self, own: &mut PtxFunction<'a>, statements: &mut [Statement<'a>], line: u32) -> Parsed<()> {
        let Some(scope) = self.scopes.pop() else { return self.error("`}` closes nothing") };
        let mut left = Vec::new();
        for mention in scope.mentions {
            let Some(label) = scope.labels.get(mention.name) else {
                left.push(mention);
                continue;
            };
            let operands = match &mut statements[mention.statement].kind {
                StatementKind::Instruction { operands, .. } | StatementKind::BranchTargets(_, operands) => operands,
                _ => continue,
            };
            if let Some(operand) = operands.get_mut(mention.operand) {
                *operand = Operand::Label(*label);
            }
        }
        match self.scopes.last_mut() {
            Some(outer) => outer.mentions.append(&mut left),
            None => {
                if let Some(mention) = left.first() {
                    return Err(PtxError::new(mention.line, format!("there is no label `{}`", mention.name)));
                }
            }
        }
        if own.registers.len() > MAX_REGISTERS {
            return Err(PtxError::new(line, format!("the function names more than {MAX_REGISTERS} registers")));
        }
        Ok(())
    }

    /// Parses `.reg .b32 %r<12>, %x;`.
    fn registers(&mut self) -> Parsed<()> {
        self.advance()?;
        let mut element = None;
        while let Token::Dot(word) = self.token {
            match Scalar::read(word) {
                None => return self.error(format!("registers of `.{word}` are not supported")),
                kind => element = kind,
            }
            self.advance()?;
        }
        let Some(element) = element else { return self.error("a register has no type") };
        loop {
            let name = self.word("the name of a register")?;
            if self.token == Token::Sign(b'<') {
                self.advance()?;
                let count = self.integer("a number of registers")?;
                self.expect(b'>')?;
                if let Some(scope) = self.scopes.last_mut() {
                    scope.ranges.insert(name, Range { element, count, found: HashMap::new() });
                }
            } else if let Some(scope) = self.scopes.last_mut() {
                scope.names.remove(name);
                scope.singles.insert(name, element);
            }
            if !self.take_sign(b',')? {
                break;
            }
        }
        self.expect(b';')
    }

    /// The meaning of a name, from the innermost scope outwards.
    fn meaning(&mut self, own: &mut PtxFunction<'a>, name: &'a str) -> Option<Meaning> {
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let digits = &name[stem.len()..];
        let index = match digits.starts_with('0') && digits.len() > 1 {
            true => None,
            false => digits.parse::<u64>().ok(),
        };
        for scope in self.scopes.iter_mut().rev() {
            if let Some(found) = scope.names.get(name) {
                return Some(*found);
            }
            let next = own.registers.len() as u32;
            if let Some(element) = scope.singles.get(name) {
                own.registers.push(*element);
                own.register_names.push(name);
                scope.names.insert(name, Meaning::Register(next));
                return Some(Meaning::Register(next));
            }
            let Some(index) = index else { continue };
            if let Some(range) = scope.ranges.get_mut(stem)
                && index < range.count
            {
                let register = *range.found.entry(index).or_insert(next);
                if register == next {
                    own.registers.push(range.element);
                    own.register_names.push(name);
                }
                return Some(Meaning::Register(register));
            }
        }
        None
    }

    fn statement(&mut self, own: &mut PtxFunction<'a>, statements: &mut Vec<Statement<'a>>) -> Parsed<()> {
        let line = self.line;
        let mut guard = None;
        if self.take_sign(b'@')? {
            if self.is_sign(b'@') {
                self.lexer.skip_line();
                self.advance()?;
                return Ok(());
            }
            let is_negated = self.take_sign(b'!')?;
            let name = self.word("a predicate")?;
            match self.meaning(own, name) {
                Some(Meaning::Register(register)) if own.registers[register as usize] == Scalar::Pred => {
                    guard = Some((register, is_negated));
                }
                _ => return self.error(format!("`{name}` is no predicate")),
            }
        }
        let first = self.word("an instruction")?;
        let location = self.location;
        if guard.is_none() && self.take_sign(b':')? {
            let label = own.labels.len() as u32;
            own.labels.push(first);
            let Some(scope) = self.scopes.last_mut() else { return self.error("a label outside of a function") };
            if scope.labels.insert(first, label).is_some() {
                return self.error(format!("the label `{first}` stands twice"));
            }
            match self.token {
                Token::Dot("branchtargets") => {
                    self.advance()?;
                    let mut targets = Vec::new();
                    loop {
                        let name = self.word("a label")?;
                        self.mention(statements.len(), targets.len(), name, line);
                        targets.push(Operand::Sink);
                        if !self.take_sign(b',')? {
                            break;
                        }
                    }
                    self.expect(b';')?;
                    let kind = StatementKind::BranchTargets(label, targets);
                    statements.push(Statement { line, location, kind });
                }
                Token::Dot("calltargets" | "callprototype") => {
                    self.skip_statement()?;
                    statements.push(Statement { line, location, kind: StatementKind::CallTargets(label) });
                }
                _ => statements.push(Statement { line, location, kind: StatementKind::Label(label) }),
            }
            return Ok(());
        }
        let mut modifiers = Vec::new();
        while let Token::Dot(word) = self.token {
            modifiers.push(word);
            self.advance()?;
        }
        let is_branch = matches!(first, "bra" | "brx");
        let mut operands = Vec::new();
        while !self.is_sign(b';') {
            let at_label = is_branch && operands.len() == usize::from(first == "brx");
            if at_label && let Token::Word(name) = self.token {
                self.mention(statements.len(), operands.len(), name, line);
                self.advance()?;
                operands.push(Operand::Sink);
            } else {
                let operand = self.operand(own, 0)?;
                operands.push(operand);
            }
            if !self.take_sign(b',')? && !self.is_sign(b';') {
                return self.error(format!("`,` or `;` is expected, not {}", self.shown()));
            }
        }
        self.advance()?;
        let kind = StatementKind::Instruction { guard, opcode: first, modifiers, operands };
        statements.push(Statement { line, location, kind });
        Ok(())
    }

    fn mention(&mut self, statement: usize, operand: usize, name: &'a str, line: u32) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.mentions.push(Mention { statement, operand, name, line });
        }
    }

    fn operands(&mut self, own: &mut PtxFunction<'a>, end: u8, depth: usize) -> Parsed<Vec<Operand<'a>>> {
        if depth == MAX_NESTING {
            return self.error(format!("more than {MAX_NESTING} operands stand in each other"));
        }
        let mut found = Vec::new();
        while !self.take_sign(end)? {
            found.push(self.operand(own, depth + 1)?);
            if !self.take_sign(b',')? && !self.is_sign(end) {
                return self.error(format!("`,` or `{}` is expected, not {}", char::from(end), self.shown()));
            }
        }
        Ok(found)
    }

    fn operand(&mut self, own: &mut PtxFunction<'a>, depth: usize) -> Parsed<Operand<'a>> {
        if depth == MAX_NESTING {
            return self.error(format!("more than {MAX_NESTING} operands stand in each other"));
        }
        let operand = match self.token {
            Token::Sign(b'{') => {
                self.advance()?;
                Operand::Vector(self.operands(own, b'}', depth)?)
            }
            Token::Sign(b'(') => {
                self.advance()?;
                Operand::List(self.operands(own, b')', depth)?)
            }
            Token::Sign(b'[') => {
                self.advance()?;
                let base = self.operand(own, depth + 1)?;
                if self.take_sign(b',')? {
                    let mut all = vec![base];
                    all.append(&mut self.operands(own, b']', depth)?);
                    Operand::Tensor(all)
                } else {
                    let offset = self.plus()?;
                    self.expect(b']')?;
                    // The hint that the address is in managed memory is skipped.
                    if self.token == Token::Dot("unified") {
                        self.advance()?;
                    }
                    match base {
                        Operand::Symbol(name, own) => {
                            Operand::Address(Box::new(Operand::Symbol(name, 0)), offset.wrapping_add(own))
                        }
                        Operand::Local(at, own) => {
                            Operand::Address(Box::new(Operand::Local(at, 0)), offset.wrapping_add(own))
                        }
                        base => Operand::Address(Box::new(base), offset),
                    }
                }
            }
            Token::Sign(b'!') => {
                self.advance()?;
                match self.operand(own, depth + 1)? {
                    // Of a number, a constant expression.
                    Operand::Integer(value) => Operand::Integer(u64::from(value == 0)),
                    other => Operand::Not(Box::new(other)),
                }
            }
            Token::Sign(b'-') => {
                self.advance()?;
                if let Token::Word(name) = self.token {
                    let inner = self.named(own, name)?;
                    return Ok(Operand::Negative(Box::new(inner)));
                }
                match self.advance()? {
                    Token::Integer(value) => Operand::Integer(value.wrapping_neg()),
                    Token::Float32(bits) => Operand::Float32(bits ^ (1 << 31)),
                    Token::Float64(bits) => Operand::Float64(bits ^ (1 << 63)),
                    _ => return self.error("a number or a register is expected after `-`"),
                }
            }
            Token::Integer(value) => {
                self.advance()?;
                Operand::Integer(value)
            }
            Token::Float32(bits) => {
                self.advance()?;
                Operand::Float32(bits)
            }
            Token::Float64(bits) => {
                self.advance()?;
                Operand::Float64(bits)
            }
            Token::Word(name) => self.named(own, name)?,
            _ => return self.error(format!("an operand is expected, not {}", self.shown())),
        };
        if self.take_sign(b'|')? {
            let second = self.operand(own, depth + 1)?;
            return Ok(Operand::Pair(Box::new(operand), Box::new(second)));
        }
        Ok(operand)
    }

    fn named(&mut self, own: &mut PtxFunction<'a>, name: &'a str) -> Parsed<Operand<'a>> {
        let line = self.line;
        self.advance()?;
        if name == "_" {
            return Ok(Operand::Sink);
        }
        match self.meaning(own, name) {
            Some(Meaning::Register(register)) => {
                if let Token::Dot(part) = self.token {
                    self.advance()?;
                    return Ok(Operand::Part(Box::new(Operand::Register(register)), part));
                }
                return Ok(Operand::Register(register));
            }
            Some(Meaning::Variable(variable)) => {
                let offset = self.plus()?;
                return Ok(Operand::Local(variable, offset));
            }
            None => {}
        }
        if name.starts_with('%') {
            // `%tid.x` is one name. It is contiguous in the text.
            if let Token::Dot(part) = self.token {
                self.advance()?;
                return match special(name, part) {
                    Some(whole) => Ok(Operand::Special(whole)),
                    None => Err(PtxError::new(line, format!("the register `{name}.{part}` is not known"))),
                };
            }
            return match special(name, "") {
                Some(whole) => Ok(Operand::Special(whole)),
                None => Err(PtxError::new(line, format!("the register `{name}` is not declared"))),
            };
        }
        if name == "WARP_SZ" {
            return Ok(Operand::Integer(32));
        }
        let offset = self.plus()?;
        Ok(Operand::Symbol(name, offset))
    }
}

/// The special registers, by their full names.
const SPECIAL: &[&str] = &[
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%clusterid.x",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.x",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%cluster_nctaid.x",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%envreg1",
    "%envreg2",
    // These are parsed. A run stops with their name if a thread reads one.
    "%pm0",
    "%pm1",
    "%pm2",
    "%pm3",
    "%pm4",
    "%pm5",
    "%pm6",
    "%pm7",
    "%pm0_64",
    "%pm1_64",
    "%pm2_64",
    "%pm3_64",
    "%pm4_64",
    "%pm5_64",
    "%pm6_64",
    "%pm7_64",
    "%envreg0",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%current_graph_exec",
];

fn special(name: &str, part: &str) -> Option<&'static str> {
    if let Some(number) = name.strip_prefix("%envreg").and_then(|digits| digits.parse::<u32>().ok())
        && part.is_empty()
        && !matches!(number, 1 | 2)
    {
        return (number < 32).then_some("%envreg0");
    }
    SPECIAL.iter().copied().find(|whole| match whole.split_once('.') {
        Some((stem, letter)) => stem == name && letter == part,
        None => *whole == name && part.is_empty(),
    })
}
