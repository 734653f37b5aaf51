//! Values and errors as JSON objects, one on a line.
//!
//! Law: the objects are stable. Each value has `text`, which parses back to the value, and `kind`; a kind may get more
//! fields, but a field keeps its meaning. Integers are written in full, up to 64 bits; a number that is known at launch, a coordinate step and an
//! XOR step are strings.

use std::fmt::Write as _;

use tilewright::atoms::{BulkCopy, CopyAtom, MmaAtom, ThreadValue};
use tilewright::layout::symbolic::Expr;
use tilewright::layout::{Coordinate, Extent, Stride, Xor};
use tilewright::morphism::{Class, MorphismError, MutualRefinement, Square, WorkedComposition};
use tilewright::{Diagnostic, Layout, Tree, Value};

/// The JSON object of a value.
pub fn value(value: &Value) -> String {
    let mut object = Object::new();
    object.text("text", &value.to_string());
    object.text("kind", value.kind());
    match value {
        Value::Int(n) => object.raw("value", &n.to_string()),
        Value::Bool(b) => object.raw("value", if *b { "true" } else { "false" }),
        Value::Tree(tree) => {
            object.raw("value", &nested(tree));
            object.raw("rank", &tree.rank().to_string());
            object.raw("depth", &tree.depth().to_string());
        }
        Value::SymbolTree(tree) => {
            object.raw("value", &nested(tree));
            object.raw("rank", &tree.rank().to_string());
            object.raw("depth", &tree.depth().to_string());
        }
        Value::Symbol(number) => object.text("value", &number.to_string()),
        Value::Layout(layout) => layout_fields(&mut object, layout, layout.cosize().ok()),
        Value::SymbolLayout(layout) => layout_fields(&mut object, layout, layout.cosize().ok()),
        Value::StepLayout(layout) => layout_fields(&mut object, layout, layout.cosize().ok()),
        Value::XorLayout(layout) => layout_fields(&mut object, layout, layout.cosize().ok()),
        Value::Swizzle(swizzle) => {
            object.raw("bits", &swizzle.bits().to_string());
            object.raw("base", &swizzle.base().to_string());
            object.raw("shift", &swizzle.shift().to_string());
        }
        Value::Composed(map) => {
            object.text("outer", &map.outer().to_string());
            object.raw("offset", &map.offset().to_string());
            object.text("inner", &map.inner().to_string());
            object.raw("shape", &nested(&map.shape()));
            object.raw("size", &map.size().to_string());
            object.raw("cosize", &map.cosize().map_or("null".to_owned(), |cosize| cosize.to_string()));
            object.raw("rank", &map.rank().to_string());
            object.raw("depth", &map.depth().to_string());
        }
        Value::Linear(map) => {
            object.raw("inputs", &names(map.inputs()));
            object.raw("outputs", &names(map.outputs()));
            object.text("matrix", &map.matrix().to_string());
        }
        Value::Morphism(f) => {
            object.raw("domain", &nested(&f.domain()));
            object.raw("codomain", &nested(&f.codomain()));
            // Counted from 1, as in the text; 0 is the base point.
            let images: Vec<String> =
                f.map().images().map(|image| image.map_or(0, |image| image + 1).to_string()).collect();
            object.raw("map", &format!("[{}]", images.join(",")));
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(self::value).collect();
            object.raw("items", &format!("[{}]", items.join(",")));
        }
        _ => {}
    }
    object.end()
}

/// The size of each input or output by its name.
fn names(names: &[(Box<str>, usize)]) -> String {
    let mut object = Object::new();
    names.iter().for_each(|(name, bits)| object.raw(name, &(1_u64 << bits).to_string()));
    object.end()
}

/// The JSON object of an error.
pub fn error(diagnostic: &Diagnostic) -> String {
    let mut inner = Object::new();
    inner.text("code", diagnostic.code);
    inner.text("message", &diagnostic.message);
    inner.raw("start", &diagnostic.span.start.to_string());
    inner.raw("end", &diagnostic.span.end.to_string());
    match &diagnostic.help {
        Some(help) => inner.text("help", help),
        None => inner.raw("help", "null"),
    }
    let mut object = Object::new();
    object.raw("error", &inner.end());
    object.end()
}

/// The JSON object of a composition by mutual refinement, or of why it does not apply.
pub fn composition(composite: &Layout, by: Result<&WorkedComposition, &MorphismError>, class: Option<Class>) -> String {
    let mut object = Object::new();
    object.text("composite", &composite.to_string());
    match by {
        Ok(worked) => {
            for (name, text) in [
                ("inner", worked.first.to_string()),
                ("outer", worked.second.to_string()),
                ("pullback", worked.pullback.morphism.to_string()),
                ("pushforward", worked.pushforward.morphism.to_string()),
                ("morphism", worked.morphism.to_string()),
                ("weak", worked.weak.to_string()),
            ] {
                object.text(name, &text);
            }
            object.raw("mutual_refinement", &mutual(&worked.mutual));
        }
        Err(error) => {
            object.text("code", error.code());
            object.text("message", &error.to_string());
        }
    }
    match class {
        Some(class) => object.text("class", &class.to_string()),
        None => object.raw("class", "null"),
    }
    object.end()
}

/// The JSON object of a mutual refinement.
pub fn mutual(mutual: &MutualRefinement) -> String {
    let mut object = Object::new();
    object.raw("first", &nested(mutual.first().fine()));
    object.raw("second", &nested(mutual.second().fine()));
    object.end()
}

/// The JSON object of a pullback or pushforward: both refined tuples, and the morphism between them.
pub fn square(square: &Square) -> String {
    let mut object = Object::new();
    object.raw("domain", &nested(square.domain.fine()));
    object.raw("codomain", &nested(square.codomain.fine()));
    object.text("morphism", &square.morphism.to_string());
    object.end()
}

/// The JSON object of whether a layout is tractable.
pub fn tractable(layout: &Layout, reason: Option<&MorphismError>) -> String {
    let mut object = Object::new();
    object.text("layout", &layout.to_string());
    object.raw("tractable", if reason.is_none() { "true" } else { "false" });
    if let Some(reason) = reason {
        object.text("reason", &reason.to_string());
    }
    object.end()
}

/// The JSON object of a family of atoms.
pub fn family(kind: &str, names: &str, arch: &str, count: usize) -> String {
    let mut object = Object::new();
    object.text("kind", kind);
    object.text("names", names);
    object.text("arch", arch);
    object.raw("count", &count.to_string());
    object.end()
}

/// The JSON object of an instruction that multiplies matrices.
pub fn product(atom: &MmaAtom) -> String {
    let mut object = Object::new();
    object.text("name", atom.name());
    object.text("kind", "product");
    object.text("arch", atom.arch().name());
    let [m, n, k] = atom.shape();
    object.raw("shape", &format!("[{m},{n},{k}]"));
    let types = atom.types();
    for (name, value) in [("d", types.d), ("a", types.a), ("b", types.b), ("c", types.c)] {
        object.text(name, value.name());
    }
    object.text("threads", &atom.threads().to_string());
    let mut operands = Object::new();
    for (operand, held) in atom.operands() {
        operands.raw(&operand.to_string(), &thread_value(held));
    }
    object.raw("operands", &operands.end());
    object.end()
}

/// The JSON object of an instruction that copies.
pub fn copy(atom: &CopyAtom) -> String {
    let mut object = Object::new();
    object.text("name", atom.name());
    object.text("kind", "copy");
    object.text("arch", atom.arch().name());
    object.raw("bits", &atom.bits().to_string());
    object.text("threads", &atom.threads().to_string());
    object.text("reference", &atom.reference().to_string());
    for (end, held) in atom.ends() {
        object.raw(&end.to_string(), &thread_value(held));
    }
    object.end()
}

/// The JSON object of a bulk copy.
pub fn bulk_copy(copy: &BulkCopy) -> String {
    let mut object = Object::new();
    object.text("name", copy.name());
    object.text("kind", "bulk copy");
    object.text("arch", copy.arch().name());
    object.text("direction", &copy.direction().to_string());
    object.text("mode", &copy.mode().to_string());
    let (fewest, most) = copy.dimensions();
    object.raw("dimensions", &format!("[{fewest},{most}]"));
    object.raw("multicast", if copy.is_multicast() { "true" } else { "false" });
    object.raw("ctas", &copy.ctas().to_string());
    object.list("needs", copy.needs().into_iter().map(quoted));
    object.end()
}

fn thread_value(held: &ThreadValue) -> String {
    let mut object = Object::new();
    object.text("layout", &held.layout().to_string());
    object.raw("values", &held.values().to_string());
    object.raw("holders", &held.holders().to_string());
    if held.copies() > 1 {
        object.raw("copies", &held.copies().to_string());
    }
    object.end()
}

fn layout_fields<D: Stride + Number, N: Number>(object: &mut Object, layout: &Layout<D>, cosize: Option<N>)
where
    D::Extent: Number,
{
    object.raw("shape", &nested(&layout.shape()));
    object.raw("stride", &nested(&layout.stride()));
    object.raw("size", &layout.size().json());
    object.raw("cosize", &cosize.map_or("null".to_owned(), |cosize| cosize.json()));
    object.raw("rank", &layout.rank().to_string());
    object.raw("depth", &layout.depth().to_string());
}

/// What stands at a leaf.
trait Number: Clone {
    fn json(&self) -> String;
}

impl Number for i64 {
    fn json(&self) -> String {
        self.to_string()
    }
}

impl Number for Expr {
    fn json(&self) -> String {
        self.known().map_or_else(|| quoted(&self.to_string()), |known| known.to_string())
    }
}

impl Number for Coordinate<Expr> {
    fn json(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Number for Xor {
    fn json(&self) -> String {
        quoted(&self.to_string())
    }
}

/// A tree of numbers as nested arrays; a single number as itself.
fn nested<T: Number>(tree: &Tree<T>) -> String {
    if tree.is_leaf() {
        return tree.leaves().iter().map(Number::json).collect();
    }
    let modes: Vec<String> = tree.modes().map(|mode| nested(&mode)).collect();
    format!("[{}]", modes.join(","))
}

/// An object under construction.
pub struct Object(String);

impl Object {
    pub fn new() -> Object {
        Object(String::from("{"))
    }

    pub fn raw(&mut self, name: &str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let _ = write!(self.0, "\"{name}\":{value}");
    }

    /// A field that is an array of what `items` write.
    pub fn list(&mut self, name: &str, items: impl IntoIterator<Item = String>) {
        let items: Vec<String> = items.into_iter().collect();
        self.raw(name, &format!("[{}]", items.join(",")));
    }

    pub fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &quoted(value));
    }

    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_its_trees_as_arrays() {
        let layout: Layout = "((2,2),3):((24,2),8)".parse().unwrap();
        assert_eq!(
            value(&Value::Layout(layout)),
            r#"{"text":"((2,2),3):((24,2),8)","kind":"layout","shape":[[2,2],3],"stride":[[24,2],8],"size":12,"cosize":43,"rank":2,"depth":2}"#
        );
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}"), r#""a\"b\\c\nd\u0001""#);
    }
}
