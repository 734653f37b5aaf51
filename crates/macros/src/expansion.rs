//! Evaluates a program of the expression language and writes the result as the Rust text of a
//! constant.
//!
//! Law: the constant is the value that the library computes for the program. If the library refuses
//! the program, the compile error has the same message. The compiler reports an error at the whole
//! literal, so the message repeats the lines of the program and underlines the culprit.

use std::fmt::Write as _;

use tilewright_layout::{AnyLayout, Composed, Layout, LayoutError, OuterMap, Tiler};
use tilewright_notation::{Diagnostic, Environment, Value, evaluate};

/// The type and the value of a constant, both as Rust text; or the message of the refusal.
type Constant = Result<(&'static str, String), String>;

/// The type and value to which `layout!` expands.
pub(crate) fn layout(source: &str) -> Constant {
    match value(source)? {
        Value::Layout(AnyLayout::Integer(layout)) => Ok(("StaticLayout", layout_text(&layout)?)),
        Value::Layout(AnyLayout::Composed(composed)) => Ok(("StaticComposed", composed_text(&composed)?)),
        other => Err(unwanted("layout!", "a layout", &other)),
    }
}

/// The type and value to which `tiler!` expands.
pub(crate) fn tiler(source: &str) -> Constant {
    let value = value(source)?;
    match value.to_tiler() {
        Some(tiler) => {
            let tiler = tiler.map_err(|error| refused(&error))?;
            Ok(("StaticTiler", tiler_text(&tiler)?))
        }
        None => Err(unwanted("tiler!", "a layout, a shape, '_' or tilers in brackets", &value)),
    }
}

fn value(source: &str) -> Result<Value, String> {
    evaluate(source, &mut Environment::new()).map_err(|diagnostic| excerpt(source, &diagnostic))
}

/// Formats the diagnostic with the source lines that it points at. The compiler prefixes its own
/// `error:`.
fn excerpt(source: &str, diagnostic: &Diagnostic) -> String {
    let shown = diagnostic.render(source, false);
    let shown = shown.trim_end();
    match shown.strip_prefix(&format!("error[{}]", diagnostic.code)) {
        Some(rest) => format!("{}{rest}", diagnostic.code),
        None => shown.to_string(),
    }
}

fn refused(error: &LayoutError) -> String {
    format!("{}: {error}", error.code())
}

fn unwanted(name: &str, wanted: &str, value: &Value) -> String {
    let text = value.to_string();
    let shown: String = text.chars().take(60).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{name} needs {wanted}, and this program has another value: the {} {shown}{more}", value.kind())
}

fn layout_text(layout: &Layout) -> Result<String, String> {
    let (least, _) = layout.range().map_err(|error| refused(&error))?;
    layout.cosize().map_err(|error| refused(&error))?;
    if least == i64::MIN {
        return Err(format!(
            "a layout at compile time needs offsets whose negatives are representable, and one of {layout} is {least}"
        ));
    }
    let mut text = "match __layout::StaticLayout::new(&[".to_string();
    for leaf in layout.leaves() {
        let _ = write!(text, "__layout::Leaf {{ extent: {}_i64, stride: {}_i64 }},", leaf.extent, leaf.stride);
    }
    text.push_str("], &[");
    for (mode, part) in layout.modes().enumerate() {
        for _ in part.leaves() {
            let _ = write!(text, "{mode},");
        }
    }
    let _ = write!(text, "], &{:?}) {CHECKED}", layout.profile().nodes());
    Ok(text)
}

fn composed_text(composed: &Composed) -> Result<String, String> {
    let OuterMap::Swizzle(swizzle) = composed.outer() else {
        return Err(format!(
            "at compile time a layout may be seen through a swizzle, and not through {}",
            composed.outer()
        ));
    };
    let numbers = [swizzle.bits(), swizzle.base(), swizzle.shift()].map(|number| format!("{number}_i64"));
    let swizzle = format!("match __layout::Swizzle::checked({}) {CHECKED}", numbers.join(", "));
    let inner = layout_text(composed.inner())?;
    Ok(format!("match __layout::StaticComposed::new({swizzle}, {}_i64, {inner}) {CHECKED}", composed.offset()))
}

fn tiler_text(tiler: &Tiler) -> Result<String, String> {
    match tiler {
        Tiler::Keep => Ok("__layout::StaticTiler::KEEP".to_string()),
        Tiler::Layout(layout) => Ok(format!("__layout::StaticTiler::layout({})", layout_text(layout)?)),
        Tiler::Modes(modes) => {
            let items: Vec<String> = modes.items().iter().map(tiler_text).collect::<Result<_, _>>()?;
            Ok(format!("match __layout::StaticTiler::modes(const {{ &[{}] }}) {CHECKED}", items.join(", ")))
        }
    }
}

/// The end of the expansion. The program has been evaluated already, so parsing its text again
/// cannot fail and the other arm is never reached.
const CHECKED: &str = "{
    ::core::option::Option::Some(value) => value,
    ::core::option::Option::None => ::core::panic!(\"not a value of this library\"),
}";

#[cfg(test)]
mod tests {
    use super::{layout, tiler};

    #[test]
    fn a_refusal_shows_the_culprit_in_the_program() {
        let message = layout("A = (6,2):(1,7)\nA o (3,2):(2,3)").unwrap_err();
        assert!(message.starts_with("E0107: "), "{message}");
        assert!(message.contains("\n2 | A o (3,2):(2,3)\n"), "{message}");
        assert!(message.lines().any(|line| line.contains('^')), "{message}");
        assert!(!message.ends_with('\n'), "{message}");
    }

    #[test]
    fn other_values_are_refused_by_name() {
        let end = |message: Result<(&str, String), String>| message.unwrap_err();
        assert_eq!(
            end(layout("size(4:1)")),
            "layout! needs a layout, and this program has another value: the integer 4"
        );
        assert!(end(layout("(4,4):(4,1) o 0 o 8:1")).ends_with("not through (4,4):(4,1)"));
        assert!(end(layout("[4:1;_]")).ends_with("the tiler [4:1;_]"));
        assert!(end(tiler("true")).ends_with("the truth value true"));
        let long = end(layout(&format!("({})", vec!["12345678"; 40].join(","))));
        assert!(long.ends_with("...") && long.len() < 160, "{long}");
    }

    #[test]
    fn offsets_that_are_not_representable_are_refused() {
        for (program, code) in [("4:9223372036854775807", "E0103"), ("2:9223372036854775807", "E0103")] {
            let message = layout(program).unwrap_err();
            assert!(message.starts_with(code), "{message}");
            assert!(tiler(program).is_err_and(|other| other == message));
        }
        let message = layout("2:-9223372036854775808").unwrap_err();
        assert!(message.contains("-9223372036854775808"), "{message}");
        assert!(layout("2:-9223372036854775807").is_ok());
    }
}
