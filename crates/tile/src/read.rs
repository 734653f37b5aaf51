//! Reads programs from text.
//!
//! Law: reading calls [`Build`], so a text is refused if the same statements in Rust would be, and
//! the error has the line and column. A name may be defined again; from then on it means the new
//! value.
//!
//! ```text
//! program    tile NAME { declarations statements }
//! input      input x: bf16 (M,1024):(1024,1)
//! output     output y: bf16 (M,1024):(1024,1)
//! both       inout z: i32 256:1                   read and written; its old contents count
//! number     scalar scale: f32                    passed by the launch; f32, i32, f64 or i64
//! blocks     grid ceil(M/4), 8                    the number of blocks along x, y and z
//! warps      warps 4                              the warps of a block; optional
//! value      a = exp(b - 1.5) / c                 + - * / %, numbers, functions, parentheses
//! condition  m = a < b & !(c == 0 | d >= 1)       1 or 0, of i32; or the condition of a `select`
//! store      store(y, (block.x, 0), a)
//! rows       store(z, (rows, 0), a)               a scatter: a tile of i32 or i64 has coordinates
//! atomics    atomic_add(z, (block.x), a)          also _min and _max; coordinates may be a tile
//! loop       loop i < ceil(K/64) with s = zero, n = one { ... next t, m } -> sum, last
//! iterations loop i < [block.x + 1] ..          an index, or `[n]` for a tile of one i32
//! ```
//!
//! | function | result |
//! |---|---|
//! | `load(x, (4,64), (block.x, i))`, `load(x, .., .., -inf)` | a tile of a tensor; elements past its edges are 0, or the given number |
//! | `load(x, (4,64), (block.x, [i*16 - 3]))` | an index in brackets counts elements rather than tiles: the tile begins there, also in `store`; `[i*16 : 12]` has 12 elements, and the others count as past the edge |
//! | `load(x, (4,64), (rows, i))` | a gather: `rows` is a tile `(4,1)` of i32 or i64 with the coordinate of each element along the mode |
//! | `load(x, (4,64), (rows, columns))` | tiles of coordinates for several modes are broadcast: `(4,1)` and `(1,64)`, or both `(4,64)` |
//! | `load(x, (4,64), (block.x / 4, i % 2))` | the index of a block or an iteration divided by a number, rounded down, and the remainder |
//! | `load(x, (1,64), (row + i, 0))` | a coordinate may be a tile of one number plus an index |
//! | `f32(x)`, `i32(x)`, `f64(x)`, `i64(x)`, `bf16(x)`, `f16(x)`, `e4m3(x)`, `e5m2(x)` | the elements converted to another type; for a number, a constant of this type |
//! | `as_i32(x)` `as_f32(x)` `as_i64(x)` `as_f64(x)` | the same bits as elements of another type of the same width |
//! | `unpack_i4(w, bf16)` `unpack_u4(w, bf16)` | the 4-bit integers in words of i32, eight along the first mode for each word |
//! | `neg` `abs` `exp` `exp2` `log` `log2` `sqrt` `rsqrt` `recip` `tanh` `sin` `cos` `erf` | functions of each element; [`Unary`](crate::Unary) documents their precision |
//! | `floor` `ceil` `round` | rounded to an integer of the same type: down, up, to nearest with ties to even |
//! | `tf32` | rounded to tf32, as f32; ties away from 0 |
//! | `a / b` `a // b` `a % b` | for i32 and i64 the quotient rounded down, and the remainder, as in Python; `a / 0` is 0 and `a % 0` is `a`; `//` and `%` exist only for these types |
//! | `min(a, b)` `max(a, b)` `fma(a, b, c)` | the lesser and the greater of two elements; `a * b + c`, rounded once |
//! | `and(a, b)` `or` `xor` `shl` `shr` `lshr` | bitwise operations and shifts of integers: left, arithmetic right, logical right |
//! | `random(c, seed, 0)` | random bits by Philox4x32-10: word 0 to 3 of counter `(c,0,0,0)` and key `(seed,0)` |
//! | `select(a < b, yes, no)` | also `<=`, `>`, `>=`, `==` and `!=`, combined by `&`, `|` and `!`; a tile of i32 is true where it is not 0 |
//! | `reduce_sum(a, 1)` `_product` `_min` `_max` | reductions along modes, whose extents become 1 |
//! | `scan_sum(a, 1)` and so on | the inclusive scan along a mode; `scan_before_sum` is the exclusive one |
//! | `argmax(a, 1)` `argmin(a, 1)` | the index of the greatest or least element along a mode; of equal elements the first; NaN precedes all numbers |
//! | `top(a, 1, 8)` `top_places(a, 1, 8)` | the eight greatest elements along a mode, in descending order, and their indices; of equal elements the first comes first |
//! | `histogram(a, 256)` | the number of occurrences of each number from 0 |
//! | `broadcast(a, (4,64))` `reshape(a, (256))` `transpose(a, (1,0))` | the elements in another shape |
//! | `scalar(scale)`, or `scale` alone | a scalar argument of the launch |
//! | `arange((4,64), 1)` `index(block.x*64)` | the coordinates along a mode; an index, as i32 |
//! | `dot(a, b, c)` | `a b + c` for matrices of 16-bit or 8-bit elements, or of f32 rounded by `tf32` |
//! | `stage(x, (64,1,64), (i, block.y, 0), (0,2))` | a matrix in a tile of a tensor, staged in shared memory, as an operand of `dot`; the last argument is the modes of its rows and columns; the coordinate along another mode may be a tile |
//! | `atom(dot(a, b, c), "SM80_16x8x16_F32F16F16F32_TN")` | computed by this instruction: a `dot` or a load |
//! | `held(a, "(32,4):(4,1)")` | the value in this layout over the threads of the block |

mod expression;
pub(crate) mod mention;
mod text;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use self::mention::{Outline, Subject};
use self::text::Text;
use crate::build::{Build, Mask, TensorId};
use crate::error::{Reason, TileError};
use crate::program::{Axis, Count, Index, Program, Reduction, Role, ValueId, atomic};

/// The meaning of names.
#[derive(Clone, Default)]
struct Names {
    values: HashMap<String, ValueId>,
    iterations: HashMap<String, u32>,
    /// Names of values that an earlier loop defined and did not carry, and the location of the
    /// loop.
    gone: HashMap<String, Location>,
}

/// The body of a loop that is being read.
struct Body {
    place: Location,
    /// The meaning of names before the loop.
    around: HashMap<String, ValueId>,
    /// The names that the body reads, and those that it defines.
    read: HashSet<String>,
    given: HashSet<String>,
}

struct Reader<'t, 'b> {
    text: Text<'t>,
    build: &'b Build,
    names: Names,
    bodies: Vec<Body>,
    /// The number of open parentheses and bodies.
    depth: u32,
    /// Collects the names of the text, for an editor.
    outline: Option<&'b RefCell<Outline>>,
    /// For each value that is the tile of a named condition, the condition.
    conditions: RefCell<HashMap<ValueId, Mask<'b>>>,
}

/// The deepest nesting of expressions and bodies.
const MAX_DEPTH: u32 = 64;

/// The keywords that must come before the first statement.
const DECLARE: [&str; 6] = ["input", "output", "inout", "scalar", "grid", "warps"];

impl FromStr for Program {
    type Err = TileError;

    fn from_str(text: &str) -> Result<Program, TileError> {
        Program::read("<text>", text)
    }
}

impl Program {
    /// Reads a program; messages name the file.
    ///
    /// Errors: the first statement that is refused, with its line and column.
    pub fn read(file: &str, text: &str) -> Result<Program, TileError> {
        Program::of_text(Text::new(file, text, &[]))
    }

    /// Reads a program that was translated from another text. Line `i` of the program has location
    /// `i` of the list, and messages name that location.
    ///
    /// ```
    /// use tilewright_kernel::program::Location;
    /// use tilewright_tile::Program;
    ///
    /// let text = "tile add {\n input x: f32 8:1\n y = load(x, (8), (0)) + z\n}";
    /// let places = [10, 11, 14, 15].map(|line| Location::new("add.py", line, 5, None));
    /// let refused = Program::read_from(&places, text).unwrap_err();
    /// assert_eq!(refused.place().map(|place| (place.file(), place.line())), Some(("add.py", 14)));
    /// ```
    ///
    /// Errors: as [`Program::read`].
    pub fn read_from(places: &[Location], text: &str) -> Result<Program, TileError> {
        Program::of_text(Text::new("<text>", text, places))
    }

    fn of_text(text: Text<'_>) -> Result<Program, TileError> {
        Program::of_outlined(text, None)
    }

    /// Reads a program. Records the names of the text up to the end or to the refusal.
    fn of_outlined(mut text: Text<'_>, outline: Option<&RefCell<Outline>>) -> Result<Program, TileError> {
        text.word("tile")?;
        let name = text.name("the name of the program")?;
        text.sign("{")?;
        Program::build(&name, |build| {
            let names = Names::default();
            let conditions = RefCell::default();
            let mut reader = Reader { text, build, names, bodies: Vec::new(), depth: 0, outline, conditions };
            let read = reader.whole();
            reader.keep_scope();
            read
        })
    }
}

impl<'b> Reader<'_, 'b> {
    fn whole(&mut self) -> Result<(), TileError> {
        self.declarations()?;
        self.statements()?;
        self.text.sign("}")?;
        self.text.end()
    }

    fn declarations(&mut self) -> Result<(), TileError> {
        loop {
            let place = self.text.place();
            let roles = [("input", Role::Input), ("output", Role::Output), ("inout", Role::Both)];
            if let Some((_, role)) = roles.into_iter().find(|(word, _)| self.text.takes_word(word)) {
                let here = self.text.place();
                let name = self.text.name("the name of a tensor")?;
                self.text.sign(":")?;
                let element = self.element()?;
                let layout = self.text.line();
                let tensor = self.build.declared(element, (&name, &layout), role, place)?;
                self.mention(&name, here, Subject::Tensor(tensor.0), true);
            } else if self.text.takes_word("scalar") {
                let here = self.text.place();
                let name = self.text.name("the name of a number")?;
                self.text.sign(":")?;
                let element = self.element()?;
                let number = self.build.takes(element, &name, place)?;
                self.mention(&name, here, Subject::Scalar(number), true);
            } else if let Some(line) = self.text.takes_line("grid") {
                self.build.blocks(split(&line).into_iter().map(str::to_string).collect(), place)?;
            } else if self.text.takes_word("warps") {
                let warps = self.text.integer()?;
                self.build.has_warps(warps, place)?;
            } else {
                return Ok(());
            }
        }
    }

    fn element(&mut self) -> Result<Element, TileError> {
        let place = self.text.place();
        let name = self.text.name("a type")?;
        Element::named(&name).ok_or_else(|| Reason::Unknown { what: "type", name }.at("input", place))
    }

    fn deeper(&mut self) -> Result<(), TileError> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => {
                let (asked, limit) = (self.depth.into(), MAX_DEPTH.into());
                Err(Reason::TooMuch { what: "levels of nesting".to_string(), asked, limit }
                    .at("text", self.text.place()))
            }
            false => Ok(()),
        }
    }

    fn statements(&mut self) -> Result<(), TileError> {
        loop {
            let place = self.text.place();
            if self.text.sees("}") || self.text.sees_word("next") || self.text.at_end() {
                return Ok(());
            }
            let changes = [Reduction::Sum, Reduction::Minimum, Reduction::Maximum];
            if self.text.takes_word("store") {
                self.store(None, place)?;
            } else if let Some(with) = changes.into_iter().find(|own| self.text.takes_word(atomic(*own))) {
                self.store(Some(with), place)?;
            } else if self.text.takes_word("loop") {
                self.iterations(place)?;
            } else {
                if let Some(word) = DECLARE.into_iter().find(|word| self.text.sees_word(word)) {
                    return Err(Reason::Late { word: word.to_string() }.at("text", place));
                }
                let name = self.text.name("a statement")?;
                self.text.sign("=")?;
                let value = self.value()?;
                self.mention(&name, place, Subject::Value(value), true);
                self.gives(name, value, place)?;
            }
            // Reports a refusal at once, because later errors would only repeat it.
            self.build.complaint()?;
        }
    }

    /// The value of a name.
    fn named(&mut self, name: &str, place: Location) -> Result<ValueId, TileError> {
        if let Some(of) = self.names.gone.get(name) {
            return Err(Reason::Gone { name: name.to_string(), place: *of }.at("value", place));
        }
        let known = self.names.values.get(name).copied();
        if let (None, Some(number)) = (known, self.build.is_passed(name)) {
            self.mention(name, place, Subject::Scalar(number), false);
            return Ok(self.build.passed(name, place).id);
        }
        let value =
            known.ok_or_else(|| Reason::Unknown { what: "value", name: name.to_string() }.at("value", place))?;
        for body in &mut self.bodies {
            if body.around.get(name) == Some(&value) {
                body.read.insert(name.to_string());
            }
        }
        self.mention(name, place, Subject::Value(value), false);
        Ok(value)
    }

    /// Defines a name. If the body of a loop has already read this name from before the loop, the
    /// author meant the value of the previous iteration, which requires a loop-carried value; so it
    /// is refused.
    fn gives(&mut self, name: String, value: ValueId, place: Location) -> Result<(), TileError> {
        if let Some(body) = self.bodies.iter().find(|body| body.read.contains(&name)) {
            return Err(Reason::Forgotten { name, place: body.place }.at("value", place));
        }
        for body in &mut self.bodies {
            body.given.insert(name.clone());
        }
        self.names.gone.remove(&name);
        self.names.values.insert(name, value);
        Ok(())
    }

    fn store(&mut self, with: Option<Reduction>, place: Location) -> Result<(), TileError> {
        self.text.sign("(")?;
        let tensor = self.tensor()?;
        self.text.sign(",")?;
        let (at, rows) = self.picked_place()?;
        self.text.sign(",")?;
        let value = self.value()?;
        self.text.sign(")")?;
        self.build.stored(tensor, (&at, &rows), with, value, place);
        Ok(())
    }

    fn iterations(&mut self, place: Location) -> Result<(), TileError> {
        self.deeper()?;
        let iteration_place = self.text.place();
        let iteration = self.text.name("the name of the iteration")?;
        if self.text.sees("<=") {
            return Err(self.text.refuse("`<` and how many iterations there are"));
        }
        self.text.sign("<")?;
        let count = match self.text.takes("[") {
            true => {
                let name = self.text.seen_name();
                let is_index = name.is_empty() || name == "block" || self.names.iterations.contains_key(name);
                let count = if is_index { Count::Index(self.index()?) } else { Count::Value(self.value()?) };
                self.text.sign("]")?;
                count
            }
            false => Count::Sizes(self.text.until(&["with", "{"])),
        };
        let (mut carried, mut places) = (Vec::new(), Vec::new());
        if self.text.takes_word("with") {
            loop {
                let here = self.text.place();
                let name = self.text.name("a name")?;
                self.text.sign("=")?;
                carried.push((name, self.value()?));
                places.push(here);
                if !self.text.takes(",") {
                    break;
                }
            }
        }
        self.build.complaint()?;
        self.text.sign("{")?;
        let around = self.names.clone();
        let number = self.build.begin_loop();
        self.mention(&iteration, iteration_place, Subject::Iteration(number), true);
        self.names.iterations.insert(iteration, number);
        let initial: Vec<ValueId> = carried.iter().map(|(_, value)| *value).collect();
        let parameters = self.build.alike(&initial);
        for (((name, _), place), parameter) in carried.iter().zip(places).zip(&parameters) {
            self.mention(name, place, Subject::Value(*parameter), true);
        }
        let (read, given) = (HashSet::new(), HashSet::new());
        self.bodies.push(Body { place, around: around.values.clone(), read, given });
        let carried: Vec<String> = carried.into_iter().map(|(name, _)| name).collect();
        for (name, parameter) in carried.iter().zip(&parameters) {
            self.names.gone.remove(name);
            self.names.values.insert(name.clone(), *parameter);
        }
        self.statements()?;
        let mut next = Vec::new();
        if self.text.takes_word("next") {
            next.push(self.value()?);
            while self.text.takes(",") {
                next.push(self.value()?);
            }
        }
        self.text.sign("}")?;
        self.names = around;
        let given = self.bodies.pop().map_or(HashSet::new(), |body| body.given);
        self.names.gone.extend(given.into_iter().filter(|name| !carried.contains(name)).map(|name| (name, place)));
        let results = self.build.end_loop(number, count, initial, parameters, next, place)?;
        if !results.is_empty() {
            self.text.sign("->")?;
        }
        for (number, result) in results.into_iter().enumerate() {
            if number > 0 {
                self.text.sign(",")?;
            }
            let here = self.text.place();
            let name = self.text.name("the name of a result")?;
            self.mention(&name, here, Subject::Value(result), true);
            self.names.gone.remove(&name);
            for body in &mut self.bodies {
                body.given.insert(name.clone());
            }
            self.names.values.insert(name, result);
        }
        self.depth -= 1;
        Ok(())
    }

    fn tensor(&mut self) -> Result<TensorId, TileError> {
        let place = self.text.place();
        let name = self.text.name("a tensor")?;
        let known = self.build.tensor_named(&name);
        if let Some(tensor) = known {
            self.mention(&name, place, Subject::Tensor(tensor.0), false);
        }
        known.ok_or_else(|| Reason::Unknown { what: "tensor", name }.at("tensor", place))
    }

    /// Reads `(block.x, 2*i + 1)`. Instead of an index there may be a tile of coordinates, with an
    /// index added to it.
    fn picked_place(&mut self) -> Result<Picked, TileError> {
        self.text.sign("(")?;
        let (mut found, mut rows) = (Vec::new(), Vec::new());
        loop {
            let place = self.text.place();
            if self.text.takes("[") {
                let first = self.index()?;
                found.push(if self.text.takes(":") { first.within(self.text.integer()?) } else { first.elements() });
                self.text.sign("]")?;
                if !self.text.takes(",") {
                    break;
                }
                continue;
            }
            let name = self.text.seen_name();
            let is_index = name == "block" || self.names.iterations.contains_key(name);
            match self.names.values.get(name).copied().filter(|_| !is_index) {
                Some(_) => {
                    let name = self.text.name("a tile")?;
                    let value = self.named(&name, place)?;
                    rows.push((found.len(), value));
                    let moved = self.text.takes("+") || self.text.sees("-");
                    found.push(if moved { self.index()? } else { Index::from(0) });
                }
                None => found.push(self.index()?),
            }
            if !self.text.takes(",") {
                break;
            }
        }
        self.text.sign(")")?;
        Ok((found, rows))
    }

    /// Reads an index: a sum of products.
    fn index(&mut self) -> Result<Index, TileError> {
        let mut sum = self.product()?;
        loop {
            if self.text.takes("+") {
                sum = sum + self.product()?;
            } else if self.text.takes("-") {
                sum = sum + self.product()? * -1;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<Index, TileError> {
        let mut product = self.factor()?;
        loop {
            let place = self.text.place();
            if self.text.takes("//") || self.text.takes("/") {
                product = self.part(product, place, Index::quotient)?;
                continue;
            }
            if self.text.takes("%") {
                product = self.part(product, place, Index::remainder)?;
                continue;
            }
            if !self.text.takes("*") {
                return Ok(product);
            }
            let place = self.text.place();
            let other = self.factor()?;
            product = match (product.known(), other.known()) {
                (_, Some(by)) => product * by,
                (Some(by), None) => other * by,
                (None, None) => {
                    let (found, expected) = (format!("`{other}`"), "a number".to_string());
                    return Err(Reason::Text { found, expected }.at("index", place));
                }
            };
        }
    }

    /// Reads the divisor of a quotient or a remainder of an index.
    fn part(&mut self, index: Index, place: Location, of: fn(Index, i64) -> Option<Index>) -> Result<Index, TileError> {
        if !self.text.sees_digit() {
            return Err(self.text.refuse("a number that divides the index"));
        }
        let by = self.text.integer()?;
        let found = format!("a part of `{index}` by {by}");
        let expected = "a block or an iteration alone, or a sum of multiples of the number: a tile of one number may \
                        say the coordinate, as in `q = reshape(index(block.x + 1) // 4, (1,1))`";
        of(index, by).ok_or_else(|| Reason::Text { found, expected: expected.to_string() }.at("index", place))
    }

    fn factor(&mut self) -> Result<Index, TileError> {
        if self.text.takes("-") {
            return Ok(self.factor()? * -1);
        }
        if self.text.takes("(") {
            self.deeper()?;
            let index = self.index()?;
            self.depth -= 1;
            self.text.sign(")")?;
            return Ok(index);
        }
        if self.text.sees_digit() {
            return Ok(Index::from(self.text.integer()?));
        }
        let place = self.text.place();
        let name = self.text.name("a number, `block.x` or the iteration of a loop")?;
        if name == "block" {
            self.text.sign(".")?;
            let axis = self.text.name("x, y or z")?;
            let known = ["x", "y", "z"].iter().position(|own| *own == axis).map(|at| Axis::ALL[at]);
            let unknown = || Reason::Unknown { what: "axis", name: axis.clone() }.at("index", place);
            return Ok(Index::block(known.ok_or_else(unknown)?));
        }
        if self.text.sees("(") || self.names.values.contains_key(&name) {
            let (found, expected) =
                (format!("`{name}`"), "an index, or a tile of coordinates by its name,".to_string());
            return Err(Reason::Text { found, expected }.at("index", place));
        }
        match self.names.iterations.get(&name) {
            Some(iteration) => {
                self.mention(&name, place, Subject::Iteration(*iteration), false);
                Ok(Index::iteration(*iteration))
            }
            None => Err(Reason::Unknown { what: "iteration of a loop", name }.at("index", place)),
        }
    }
}

/// The index of a tile, and the tiles of coordinates with their modes.
type Picked = (Vec<Index>, Vec<(usize, ValueId)>);

/// Splits a line at commas that are not inside of parentheses.
fn split(line: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, letter) in line.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(line[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(line[from..].trim());
    found
}
