//! Expressions from text.
//!
//! Law: the text of an expression ([`Expression`] as `Display`) reads back as the same expression.

use super::{Expression, Function};
use crate::error::PlanError;

/// The deepest nesting that is accepted, because expressions are traversed recursively.
const MAX_DEPTH: usize = 64;

/// A text, and the position up to which it has been read.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    names: &'a [&'a str],
    depth: usize,
}

impl Expression {
    /// Parses an expression: numbers, names, `+ - * /`, parentheses, `min(a, b)`, `max(a, b)`,
    /// `clamp(x, least, greatest)`, and `exp`, `tanh`, `abs`, `sqrt`, `recip`, `relu`, `sigmoid`,
    /// `silu`, `gelu` and `gelu_tanh` of one number. A name stands for the input at its position in
    /// `names`.
    ///
    /// ```
    /// use tilewright_planners::Expression;
    ///
    /// let clipped = Expression::parse("max(2 * x + bias, 0)", &["x", "bias"]).unwrap();
    /// assert_eq!(clipped.value(&[3.0, -1.0]).0, 5.0);
    /// assert_eq!(clipped.to_string(), "max(2 * x0 + x1, 0)");
    /// let error = Expression::parse("relu(x) + y", &["x"]).unwrap_err();
    /// assert_eq!(error.code(), "E0936");
    /// ```
    ///
    /// Errors: a text that is not an expression; a name that is not in `names`; nesting deeper than
    /// 64.
    pub fn parse(text: &str, names: &[&str]) -> Result<Expression, PlanError> {
        let mut reader = Reader { text, at: 0, names, depth: 0 };
        let expression = reader.sum()?;
        match reader.peek() {
            None => Ok(expression),
            Some(_) => Err(reader.expected("an operator or the end")),
        }
    }
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expected(&mut self, what: &'static str) -> PlanError {
        self.peek();
        PlanError::Text { text: self.text.to_string(), at: self.at, expected: what }
    }

    fn want(&mut self, wanted: char, what: &'static str) -> Result<(), PlanError> {
        if self.take(wanted) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn sum(&mut self) -> Result<Expression, PlanError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.expected("less nesting"));
        }
        let mut left = self.product()?;
        loop {
            left = match self.peek() {
                Some('+') => {
                    self.at += 1;
                    left + self.product()?
                }
                Some('-') => {
                    self.at += 1;
                    left - self.product()?
                }
                _ => break,
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, PlanError> {
        let mut left = self.factor()?;
        loop {
            left = match self.peek() {
                Some('*') => {
                    self.at += 1;
                    left * self.factor()?
                }
                Some('/') => {
                    self.at += 1;
                    left / self.factor()?
                }
                _ => return Ok(left),
            };
        }
    }

    fn factor(&mut self) -> Result<Expression, PlanError> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.want(')', "a closing parenthesis")?;
                Ok(inner)
            }
            Some('-') => {
                self.at += 1;
                // A minus before a number negates the number; before anything else it multiplies by
                // -1.
                match self.peek() {
                    Some(digit) if digit.is_ascii_digit() || digit == '.' => Ok(Expression::constant(-self.number()?)),
                    _ => {
                        self.depth += 1;
                        if self.depth > MAX_DEPTH {
                            return Err(self.expected("less nesting"));
                        }
                        let inner = self.factor()?;
                        self.depth -= 1;
                        Ok(inner * -1.0)
                    }
                }
            }
            Some(digit) if digit.is_ascii_digit() || digit == '.' => Ok(Expression::constant(self.number()?)),
            Some(letter) if letter.is_alphabetic() || letter == '_' => self.name(),
            _ => Err(self.expected("a number, a name or a parenthesis")),
        }
    }

    fn number(&mut self) -> Result<f64, PlanError> {
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        // An exponent, if digits follow.
        if let Some(tail) = rest[end..].strip_prefix(['e', 'E']) {
            let digits = tail.strip_prefix(['+', '-']).unwrap_or(tail);
            let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if count > 0 {
                end = rest.len() - digits.len() + count;
            }
        }
        let Ok(number) = rest[..end].parse() else { return Err(self.expected("a number")) };
        self.at += end;
        Ok(number)
    }

    fn name(&mut self) -> Result<Expression, PlanError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, from) = (rest[..end].to_string(), self.at);
        self.at += end;
        if let Some(number) = self.names.iter().position(|known| *known == name) {
            return Ok(Expression::input(number));
        }
        let function = Function::NAMES.iter().find(|(known, _)| *known == name).map(|(_, function)| *function);
        let several = match name.as_str() {
            "min" | "max" => 2,
            "clamp" => 3,
            _ if function.is_some() => 1,
            _ => {
                let functions = Function::NAMES.iter().map(|(name, _)| *name).chain(["min", "max", "clamp"]);
                let known = self.names.iter().copied().chain(functions).collect::<Vec<_>>().join(", ");
                self.at = from;
                return Err(PlanError::Unknown { what: "name of an expression", given: name, known });
            }
        };
        self.want('(', "an opening parenthesis")?;
        let mut arguments = vec![self.sum()?];
        for _ in 1..several {
            self.want(',', "a comma and another number")?;
            arguments.push(self.sum()?);
        }
        self.want(')', "a closing parenthesis")?;
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next().unwrap_or(Expression::constant(0.0));
        Ok(match (name.as_str(), function) {
            (_, Some(function)) => next().unary(function),
            ("min", _) => next().min(next()),
            ("max", _) => next().max(next()),
            _ => next().max(next()).min(next()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Expression;

    const NAMES: [&str; 3] = ["x0", "x1", "x2"];

    #[test]
    fn texts_read_back() {
        for text in [
            "x0",
            "-2.5",
            "x0 * 2 + x1",
            "x0 - (x1 - x2)",
            "(x0 + x1) * x2 / (x1 - 1e-5)",
            "min(max(x0, 0), 6)",
            "gelu(x0 + x1) + x2",
            "gelu_tanh(silu(sigmoid(relu(recip(sqrt(abs(tanh(exp(x0)))))))))",
            "x0 / (x1 / x2)",
            "x0 / x1 / x2",
        ] {
            let read = Expression::parse(text, &NAMES).unwrap();
            assert_eq!(Expression::parse(&read.to_string(), &NAMES).unwrap(), read, "{text}");
        }
        let clamped = Expression::parse("clamp(x0, -1, 1)", &NAMES).unwrap();
        assert_eq!([-3.0, 0.5, 3.0].map(|x| clamped.value(&[x]).0), [-1.0, 0.5, 1.0]);
        assert_eq!(Expression::parse("-x0 * -(x1 - 3)", &NAMES).unwrap().value(&[2.0, 5.0]).0, 4.0);
    }

    #[test]
    fn what_is_none_is_refused_with_its_place() {
        for (text, place) in
            [("", 0), ("x0 +", 4), ("(x0", 3), ("x0 x1", 3), ("max(x0)", 6), ("1.2.3", 0), ("relu x0", 5), ("é", 0)]
        {
            let error = Expression::parse(text, &NAMES).unwrap_err();
            let message = error.to_string();
            assert!(error.code() == "E0936" || message.contains(&format!("at {place}")), "{text}: {message}");
        }
        let deep = "(".repeat(100_000);
        assert!(Expression::parse(&deep, &NAMES).unwrap_err().to_string().contains("nesting"));
        let deep = "-".repeat(100_000);
        assert!(Expression::parse(&deep, &NAMES).is_err());
    }
}
