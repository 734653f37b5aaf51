//! Assembly as the compiler writes it: functions, and what kinds of instruction they have.

use std::collections::BTreeMap;
use std::fmt;

/// Whether the instructions of this machine are told apart below.
pub const KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// One function.
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Labels and instructions, in order.
    lines: Vec<String>,
}

/// The functions of an assembly file.
pub fn functions(text: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut open: Option<Function> = None;
    for line in text.lines().map(str::trim) {
        let ends = line.starts_with(".cfi_endproc") || line.starts_with(".seh_endproc");
        match (&mut open, line.strip_suffix(':')) {
            (_, _) if ends => functions.extend(open.take()),
            // Tables for unwinding stand between functions.
            (None, Some(label)) if !label.starts_with(['.', 'L']) && !label.starts_with("GCC_except_table") => {
                open = Some(Function { name: label.to_string(), lines: Vec::new() });
            }
            (Some(function), label) if label.is_some() || !line.starts_with(['.', '#']) && !line.is_empty() => {
                function.lines.push(line.to_string());
            }
            _ => {}
        }
    }
    functions
}

impl Function {
    /// Each instruction's line, operation and last operand.
    fn operations(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let instructions = self.lines.iter().enumerate().filter(|(_, line)| !line.ends_with(':'));
        instructions.map(|(at, line)| (at, parts(line).0, parts(line).1))
    }

    fn count(&self, prefixes: &[&str]) -> usize {
        self.operations()
            .filter(|(_, operation, _)| prefixes.iter().any(|prefix| operation.starts_with(prefix)))
            .count()
    }

    /// The number of instructions.
    pub fn instructions(&self) -> usize {
        self.operations().count()
    }

    /// Instructions that divide.
    pub fn divisions(&self) -> usize {
        self.count(&["div", "idiv", "udiv", "sdiv"])
    }

    /// Instructions that multiply.
    pub fn products(&self) -> usize {
        self.count(&["mul", "imul", "umul", "smul", "madd", "msub"])
    }

    /// Jumps to a label further up from which control may come back. Where it may not, a block
    /// stands there that several paths end in.
    pub fn loops(&self) -> usize {
        let labels = self.labels();
        let jumps = self.operations().filter(|(_, operation, _)| is_jump(operation));
        let up = jumps.filter_map(|(at, _, target)| Some((at, *labels.get(target).filter(|label| **label <= at)?)));
        up.filter(|(at, label)| self.reaches(*label, *at, &labels)).count()
    }

    /// Whether control may go from one line to another.
    fn reaches(&self, from: usize, to: usize, labels: &BTreeMap<&str, usize>) -> bool {
        let mut seen = vec![false; self.lines.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            let Some(line) = self.lines.get(at) else { continue };
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let (operation, target) = parts(line);
            open.extend(labels.get(target).filter(|_| is_jump(operation)));
            if !["jmp", "b", "br", "ret", "retq", "ud2", "brk"].contains(&operation) {
                open.push(at + 1);
            }
        }
        false
    }

    /// Calls, and jumps out of the function.
    pub fn calls(&self) -> usize {
        let labels = self.labels();
        let leaves = |operation: &str, target: &str| {
            operation.starts_with("call")
                || operation == "bl"
                || operation == "blr"
                || (is_jump(operation) && !labels.contains_key(target))
        };
        self.operations().filter(|(_, operation, target)| leaves(operation, target)).count()
    }

    fn labels(&self) -> BTreeMap<&str, usize> {
        self.lines.iter().enumerate().filter_map(|(at, line)| Some((line.strip_suffix(':')?, at))).collect()
    }
}

/// The operation and the last operand of an instruction.
fn parts(line: &str) -> (&str, &str) {
    (line.split_whitespace().next().unwrap_or(""), line.split([' ', '\t', ',']).next_back().unwrap_or(""))
}

/// Whether control may go to the last operand: `jmp`, `jo`, ..; `b`, `b.lt`, `br`, `cbz`, `tbnz`,
/// ..
fn is_jump(operation: &str) -> bool {
    if cfg!(target_arch = "x86_64") {
        return operation.starts_with('j');
    }
    operation == "b" || operation == "br" || ["b.", "cb", "tb"].iter().any(|prefix| operation.starts_with(prefix))
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.name)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}
