//! Layouts of sparse operands, in which several logical elements share one stored element.
//!
//! Law: if a layout sends the coordinate `c` of a logical element to `L(c)`, the stored element is
//! at `L(c) / shared`, rounded down. That is a layout if the parts of `L` below `shared` add up to
//! less than `shared`: their strides become 0, and all others are divided.

use std::ops::Range;

use tilewright_layout::{AnyLayout, Layout};
use tilewright_notation::Value;

use crate::refused::Refused;
use crate::tuple::value;

/// The note for the user.
pub(crate) fn note(shared: i64) -> String {
    format!("offsets count stored elements, and {shared} logical elements share each of them")
}

/// The layout of the stored elements, in our notation.
///
/// Errors: the layout has strides other than known integers, or the stored elements have no layout.
pub(crate) fn stored(layout: &str, shared: i64, span: Range<usize>) -> Result<String, Refused> {
    if shared == 1 {
        return Ok(layout.to_owned());
    }
    let refused = |why: String| {
        let help = "give the layout of the stored elements, with smem_ptr_flag_bits";
        Refused::unsupported(span.clone(), why, help)
    };
    let made = value(layout, span.clone())?;
    let Value::Layout(AnyLayout::Integer(made)) = made else {
        return Err(refused(format!("the stored elements of {layout} are not known: its strides are no integers")));
    };
    // The sum of the parts below `shared`.
    let mut below = 0_i64;
    let [shape, stride] = divided(&made, shared, &mut below)
        .filter(|_| below < shared)
        .ok_or_else(|| refused(format!("{layout} divided by {shared} is no layout")))?;
    Ok(format!("{shape}:{stride}"))
}

/// The shape and the stride of a layout with its values divided, as text.
fn divided(layout: &Layout, shared: i64, below: &mut i64) -> Option<[String; 2]> {
    if layout.depth() > 0 {
        let modes: Vec<[String; 2]> =
            layout.modes().map(|mode| divided(&mode, shared, below)).collect::<Option<_>>()?;
        let join = |which: usize| {
            let texts: Vec<&str> = modes.iter().filter_map(|mode| mode.get(which)).map(String::as_str).collect();
            format!("({})", texts.join(","))
        };
        return Some([join(0), join(1)]);
    }
    let leaf = layout.leaves().first().copied()?;
    let (extent, stride) = (leaf.extent, leaf.stride);
    let plain = |extent: i64, stride: i64| Some([extent.to_string(), stride.to_string()]);
    if stride % shared == 0 {
        return plain(extent, stride / shared);
    }
    if stride < 0 || shared % stride != 0 {
        return None;
    }
    let inside = shared / stride;
    let own = extent.min(inside);
    *below = below.checked_add((own - 1).checked_mul(stride)?)?;
    match extent {
        _ if extent <= inside => plain(extent, 0),
        _ if extent % inside == 0 => Some([format!("({inside},{})", extent / inside), "(0,1)".to_owned()]),
        _ => None,
    }
}
