//! Expressions of values.
//!
//! Law: `*`, `/` and `%` bind more strongly than `+` and `-`, these more strongly than comparisons,
//! then come `!`, `&` and `|`. All of them associate to the left. A number takes the type of the
//! other operand. Where a value is required, a condition becomes a tile of i32 with 1 and 0.

use tilewright_kernel::program::Location;

use super::Reader;
use super::mention::Subject;
use crate::build::{Mask, Value};
use crate::error::{Reason, TileError};
use crate::program::{Binary, Comparison, Operation, Reduction, Unary, ValueId};
use tilewright_kernel::Element;

/// A value, or a number that has no type yet.
#[derive(Clone, Copy)]
enum ReadTerm<'b> {
    Value(Value<'b>),
    Number(f64),
    Mask(Mask<'b>),
}

impl ReadTerm<'_> {
    /// The type that a number on the other side takes.
    fn element(self) -> Option<Element> {
        match self {
            ReadTerm::Value(value) => Some(value.type_of().element),
            ReadTerm::Mask(_) => Some(Element::I32),
            ReadTerm::Number(_) => None,
        }
    }
}

/// The comparison signs. `<=` comes before `<`, and `>=` before `>`, so that the longer sign
/// matches first.
const COMPARISONS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

impl<'b> Reader<'_, 'b> {
    /// An expression that is a value.
    pub(super) fn value(&mut self) -> Result<ValueId, TileError> {
        Ok(self.expression()?.id)
    }

    fn expression(&mut self) -> Result<Value<'b>, TileError> {
        let place = self.text.place();
        let term = self.any()?;
        Ok(self.settled(term, Element::F32, place))
    }

    /// A term as a value; a number gets this type.
    fn settled(&self, term: ReadTerm<'b>, element: Element, place: Location) -> Value<'b> {
        match term {
            ReadTerm::Value(value) => value,
            ReadTerm::Number(value) => self.build.apply("number", Operation::Constant(element, value), &[], place),
            ReadTerm::Mask(mask) => {
                let value = mask.number_at(place);
                self.conditions.borrow_mut().insert(value.id, mask);
                value
            }
        }
    }

    /// A term where a condition is required: a comparison, or a tile of i32.
    fn condition(&self, term: ReadTerm<'b>, place: Location) -> Result<Mask<'b>, TileError> {
        match term {
            ReadTerm::Mask(mask) => Ok(mask),
            ReadTerm::Value(value) if value.type_of().element == Element::I32 => Ok(self.known(value, place)),
            ReadTerm::Value(_) | ReadTerm::Number(_) => {
                let (found, expected) = ("a value".to_string(), "a comparison, `<` or `==` as it may be".to_string());
                Err(Reason::Text { found, expected }.at("select", place))
            }
        }
    }

    /// The condition that a name stands for. For any other tile, whether each element is not zero.
    fn known(&self, value: Value<'b>, place: Location) -> Mask<'b> {
        let known = self.conditions.borrow().get(&value.id).copied();
        known.unwrap_or_else(|| !Mask::compared(Comparison::Equal, value, value.constant(0.0, place)))
    }

    /// An operand of `&` or `|`, which must be a condition. A tile of integers is refused, because
    /// its author may have meant bitwise operations.
    fn side(&self, term: ReadTerm<'b>, place: Location) -> Result<Mask<'b>, TileError> {
        match term {
            ReadTerm::Mask(mask) => Ok(mask),
            ReadTerm::Value(value) if self.conditions.borrow().contains_key(&value.id) => Ok(self.known(value, place)),
            ReadTerm::Value(_) | ReadTerm::Number(_) => {
                let expected = "a comparison on each side of `&` and `|` (`m != 0` for a tile; `and(a, b)` and \
                                `or(a, b)` combine bits)";
                Err(Reason::Text { found: "a value".to_string(), expected: expected.to_string() }.at("value", place))
            }
        }
    }

    /// Reads conditions joined by `|`.
    fn any(&mut self) -> Result<ReadTerm<'b>, TileError> {
        let place = self.text.place();
        let mut term = self.all()?;
        while self.text.takes("|") {
            let here = self.text.place();
            let other = self.all()?;
            term = ReadTerm::Mask(self.side(term, place)? | self.side(other, here)?);
        }
        Ok(term)
    }

    /// Reads conditions joined by `&`.
    fn all(&mut self) -> Result<ReadTerm<'b>, TileError> {
        let place = self.text.place();
        let mut term = self.compared()?;
        while self.text.takes("&") {
            let here = self.text.place();
            let other = self.compared()?;
            term = ReadTerm::Mask(self.side(term, place)? & self.side(other, here)?);
        }
        Ok(term)
    }

    /// Reads a sum, or a comparison of two sums.
    fn compared(&mut self) -> Result<ReadTerm<'b>, TileError> {
        let place = self.text.place();
        if self.text.takes("!") {
            self.deeper()?;
            let term = self.compared()?;
            self.depth -= 1;
            return Ok(ReadTerm::Mask(!self.condition(term, place)?));
        }
        let a = self.sum()?;
        // `->` ends a loop, and `=` defines a name: neither is a comparison.
        let found = COMPARISONS.into_iter().find(|sign| self.text.takes(sign));
        let Some(sign) = found else { return Ok(a) };
        let b = self.sum()?;
        if COMPARISONS.into_iter().any(|sign| self.text.sees(sign)) {
            return Err(self.text.refuse("`&` and another comparison"));
        }
        let element = a.element().or(b.element()).unwrap_or(Element::F32);
        let (a, b) = (self.settled(a, element, place), self.settled(b, element, place));
        // A comparison with NaN is false, so `a > b` is the same as `b < a`.
        Ok(ReadTerm::Mask(match sign {
            "<" => Mask::compared(Comparison::Less, a, b),
            "<=" => Mask::compared(Comparison::LessEqual, a, b),
            ">" => Mask::compared(Comparison::Less, b, a),
            ">=" => Mask::compared(Comparison::LessEqual, b, a),
            "==" => Mask::compared(Comparison::Equal, a, b),
            _ => !Mask::compared(Comparison::Equal, a, b),
        }))
    }

    fn combined(&self, a: ReadTerm<'b>, b: ReadTerm<'b>, binary: Binary, place: Location) -> ReadTerm<'b> {
        let element = a.element().or(b.element()).unwrap_or(Element::F32);
        let (a, b) = (self.settled(a, element, place), self.settled(b, element, place));
        ReadTerm::Value(a.binary(b, binary, "operation", place))
    }

    fn sum(&mut self) -> Result<ReadTerm<'b>, TileError> {
        let mut sum = self.terms()?;
        loop {
            let place = self.text.place();
            // `->` ends a loop: it is no minus.
            let binary = match () {
                () if self.text.sees("->") => return Ok(sum),
                () if self.text.takes("+") => Binary::Add,
                () if self.text.takes("-") => Binary::Subtract,
                () => return Ok(sum),
            };
            let other = self.terms()?;
            sum = self.combined(sum, other, binary, place);
        }
    }

    fn terms(&mut self) -> Result<ReadTerm<'b>, TileError> {
        let mut product = self.term()?;
        loop {
            let place = self.text.place();
            if self.text.takes("//") {
                let other = self.term()?;
                let element = product.element().or(other.element()).unwrap_or(Element::I32);
                let (a, b) = (self.of_integers(product, element, place)?, self.of_integers(other, element, place)?);
                product = ReadTerm::Value(a.binary(b, Binary::Divide, "operation", place));
                continue;
            }
            let binary = match () {
                () if self.text.takes("*") => Binary::Multiply,
                () if self.text.takes("/") => Binary::Divide,
                () if self.text.takes("%") => Binary::Remainder,
                () => return Ok(product),
            };
            let other = self.term()?;
            product = self.combined(product, other, binary, place);
        }
    }

    /// An operand of `//`, which is `/` restricted to integers.
    fn of_integers(&self, term: ReadTerm<'b>, element: Element, place: Location) -> Result<Value<'b>, TileError> {
        let value = self.settled(term, element, place);
        match value.type_of().element {
            Element::I32 | Element::I64 => Ok(value),
            element => {
                let operation = "a quotient by `//`".to_string();
                Err(Reason::Element { operation, element, wanted: "i32 or i64" }.at("operation", place))
            }
        }
    }

    fn term(&mut self) -> Result<ReadTerm<'b>, TileError> {
        let place = self.text.place();
        self.deeper()?;
        let term = if self.text.takes("-") {
            match self.term()? {
                ReadTerm::Number(value) => ReadTerm::Number(-value),
                term => {
                    let value = self.settled(term, Element::I32, place);
                    ReadTerm::Value(value.apply("neg", Operation::Unary(Unary::Negate), place))
                }
            }
        } else if self.text.takes("(") {
            let inner = self.any()?;
            self.text.sign(")")?;
            inner
        } else if let Some(number) = self.text.number()? {
            ReadTerm::Number(number)
        } else {
            let name = self.text.name("a value")?;
            match self.text.takes("(") {
                true => {
                    let value = self.call(&name, place)?;
                    self.text.sign(")")?;
                    ReadTerm::Value(value)
                }
                false => ReadTerm::Value(Value { build: self.build, id: self.named(&name, place)? }),
            }
        };
        self.depth -= 1;
        Ok(term)
    }

    /// Reads a tuple of integers, `(4,64)`.
    fn numbers(&mut self) -> Result<Vec<i64>, TileError> {
        self.text.sign("(")?;
        let mut found = Vec::new();
        while !self.text.sees(")") {
            found.push(self.text.integer()?);
            if !self.text.takes(",") {
                break;
            }
        }
        self.text.sign(")")?;
        Ok(found)
    }

    fn modes(&mut self) -> Result<Vec<usize>, TileError> {
        let mut found = Vec::new();
        while self.text.takes(",") {
            found.push(self.text.integer()? as usize);
        }
        Ok(found)
    }

    /// What stands after a comma.
    fn next<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, TileError>) -> Result<T, TileError> {
        self.text.sign(",")?;
        read(self)
    }

    fn call(&mut self, name: &str, place: Location) -> Result<Value<'b>, TileError> {
        let build = self.build;
        if let Some((_, binary)) = Binary::NAMES.into_iter().find(|(own, _)| *own == name) {
            let a = self.any()?;
            let b = self.next(Self::any)?;
            let element = if binary.is_of_bits() { Element::I32 } else { Element::F32 };
            let both = match (a, b) {
                (ReadTerm::Number(_), ReadTerm::Number(_)) if binary.is_of_bits() => {
                    let [a, b] = [a, b].map(|term| ReadTerm::Value(self.settled(term, element, place)));
                    self.combined(a, b, binary, place)
                }
                _ => self.combined(a, b, binary, place),
            };
            return Ok(self.settled(both, element, place));
        }
        if let Some(element) = Element::named(name) {
            let term = self.any()?;
            if let number @ ReadTerm::Number(_) = term {
                return Ok(self.settled(number, element, place));
            }
            let value = self.settled(term, element, place);
            return Ok(match value.type_of().element == element {
                true => value,
                false => value.apply("conversion", Operation::To(element), place),
            });
        }
        if let Some((name, function)) = Unary::NAMES.iter().find(|(own, _)| *own == name) {
            return Ok(self.expression()?.apply(name, Operation::Unary(*function), place));
        }
        for (own, reduction) in Reduction::NAMES {
            if name.strip_prefix("reduce_") == Some(own) {
                let tile = self.expression()?;
                let modes = self.modes()?;
                return Ok(tile.apply("reduce", Operation::Reduce(reduction, modes), place));
            }
            let before = name.strip_prefix("scan_before_") == Some(own);
            if before || name.strip_prefix("scan_") == Some(own) {
                let tile = self.expression()?;
                let mode = self.next(|own| own.text.integer())? as usize;
                let scan = if before { Operation::ScanBefore } else { Operation::Scan };
                return Ok(tile.apply("scan", scan(reduction, mode), place));
            }
        }
        Ok(match name {
            "load" => {
                let tensor = self.tensor()?;
                let shape = self.next(Self::numbers)?;
                let (at, rows) = self.next(Self::picked_place)?;
                let other = if self.text.takes(",") { self.literal()? } else { 0.0 };
                match rows.is_empty() {
                    false => build.gathered(tensor, &shape, &at, &rows, other, place),
                    true => build.loaded(tensor, &shape, &at, other, place),
                }
            }
            "stage" => {
                let tensor = self.tensor()?;
                let shape = self.next(Self::numbers)?;
                let (at, picked) = self.next(Self::picked_place)?;
                if picked.len() > 1 {
                    let (what, asked) = ("tiles of coordinates".to_string(), picked.len() as i64);
                    return Err(Reason::TooMuch { what, asked, limit: 1 }.at("stage", place));
                }
                let picked = picked.first().copied();
                self.text.sign(",")?;
                let here = self.text.place();
                let modes = self.numbers()?;
                let [rows, columns] = modes.as_slice() else {
                    let (found, expected) = (format!("{modes:?}"), "two modes, rows and columns,".to_string());
                    return Err(Reason::Text { found, expected }.at("stage", here));
                };
                build.staged(tensor, &shape, (&at, picked), [*rows as usize, *columns as usize], place)
            }
            "as_i32" | "as_f32" | "as_i64" | "as_f64" => {
                let element = Element::named(&name[3..]).unwrap_or(Element::I32);
                let tile = self.expression()?;
                if tile.type_of().element == element {
                    return Ok(tile);
                }
                tile.apply("bits", Operation::Recast(element), place)
            }
            "unpack_i4" | "unpack_u4" => {
                let words = self.expression()?;
                let element = self.next(Self::element)?;
                words.apply("unpack", Operation::Unpack { element, signed: name == "unpack_i4" }, place)
            }
            "random" => {
                let counters = self.expression()?;
                let seed = self.next(Self::sum)?;
                let seed = self.settled(seed, Element::I32, place);
                self.text.sign(",")?;
                let word = self.text.integer()?.clamp(0, 255) as u8;
                let both = Value::together([counters, seed], "random", place);
                build.apply("random", Operation::Random(word), &both.map(|value| value.id), place)
            }
            "argmax" | "argmin" | "histogram" => {
                let tile = self.expression()?;
                let number = self.next(|own| own.text.integer())?;
                match name {
                    "argmax" => tile.apply("argmax", Operation::ArgMax(number as usize), place),
                    "argmin" => tile.apply("argmin", Operation::ArgMin(number as usize), place),
                    _ => tile.apply("histogram", Operation::Histogram(number), place),
                }
            }
            "top" | "top_places" => {
                let tile = self.expression()?;
                let mode = self.next(|own| own.text.integer())? as usize;
                let count = self.next(|own| own.text.integer())?;
                let places = Operation::TopPlaces(mode, count);
                tile.apply("top", if name == "top" { Operation::Top(mode, count) } else { places }, place)
            }
            "fma" => {
                let a = self.any()?;
                let b = self.next(Self::any)?;
                let c = self.next(Self::any)?;
                // A number takes the type of the others.
                let element = a.element().or(b.element()).or(c.element()).unwrap_or(Element::F32);
                let all = Value::together([a, b, c].map(|term| self.settled(term, element, place)), "fma", place);
                build.apply("fma", Operation::MultiplyAdd, &all.map(|value| value.id), place)
            }
            "dot" => {
                let a = self.expression()?;
                let b = self.next(Self::expression)?;
                let c = self.next(Self::expression)?;
                build.apply("dot", Operation::Dot, &[a.id, b.id, c.id], place)
            }
            "select" => self.select(place)?,
            "broadcast" | "reshape" | "transpose" => {
                let tile = self.expression()?;
                let numbers = self.next(Self::numbers)?;
                match name {
                    "broadcast" => tile.apply("broadcast", Operation::Broadcast(numbers), place),
                    "reshape" => tile.apply("reshape", Operation::Reshape(numbers), place),
                    _ => {
                        let order = numbers.into_iter().map(|mode| mode as usize).collect();
                        tile.apply("transpose", Operation::Transpose(order), place)
                    }
                }
            }
            "arange" => {
                let shape = self.numbers()?;
                let mode = self.next(|own| own.text.integer())? as usize;
                build.apply("arange", Operation::Arange { shape, mode }, &[], place)
            }
            "index" => {
                let index = self.index()?;
                build.apply("index", Operation::Number(index), &[], place)
            }
            "scalar" => {
                let here = self.text.place();
                let name = self.text.name("the name of a number of the launch")?;
                if let Some(number) = build.is_passed(&name) {
                    self.mention(&name, here, Subject::Scalar(number), false);
                }
                build.passed(&name, place)
            }
            "size" => {
                let text = self.text.enclosed()?;
                build.apply("size", Operation::Size(text), &[], place)
            }
            "atom" => {
                let tile = self.expression()?;
                let name = self.next(|own| own.text.quoted())?;
                tile.apply("atom", Operation::Atom(name), place)
            }
            "held" => {
                let tile = self.expression()?;
                let text = self.next(|own| own.text.quoted())?;
                let layout = text.parse().map_err(|error| Reason::Layout(error).at("held", place))?;
                let held = crate::held::Held::of(&layout).map_err(|reason| reason.at("held", place))?;
                tile.apply("held", Operation::Held(held), place)
            }
            other => {
                return Err(Reason::Unknown { what: "function", name: other.to_string() }.at("value", place));
            }
        })
    }

    /// A number with a sign.
    fn literal(&mut self) -> Result<f64, TileError> {
        let sign = if self.text.takes("-") { -1.0 } else { 1.0 };
        match self.text.number()? {
            Some(number) => Ok(sign * number),
            None => Err(self.text.refuse("a number")),
        }
    }

    fn select(&mut self, place: Location) -> Result<Value<'b>, TileError> {
        let term = self.any()?;
        if !self.text.sees(",") {
            return Err(self.text.refuse("a comparison, `<` or `==` as it may be"));
        }
        let condition = self.condition(term, place)?;
        let yes = self.next(Self::any)?;
        let no = self.next(Self::any)?;
        let element = yes.element().or(no.element()).unwrap_or(Element::F32);
        let (yes, no) = (self.settled(yes, element, place), self.settled(no, element, place));
        Ok(condition.selected(yes, no, place))
    }
}
