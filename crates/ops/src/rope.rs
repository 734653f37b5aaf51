//! Rotary position embeddings: pairs of elements of each head are rotated by angles that depend on
//! the position.
//!
//! Law: pair `i` of a head at the position `p` is `(a, b)`, and becomes
//!
//! ```text
//! (a cos(angle) - b sin(angle), b cos(angle) + a sin(angle)),   angle = p frequency[i]
//! ```
//!
//! A pair is the elements `2 i` and `2 i + 1` if pairs are interleaved, and otherwise `i` and `i +
//! rotated / 2`. Elements after the rotated ones are copied unchanged. The backward rotates by the
//! negative angle.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_blocks::power_from;
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The pairs of a tile: 8 for each of 256 threads.
const TILE: i64 = 2048;
/// The greatest length of a head, and the greatest number of heads.
const LONGEST: i64 = 1024;
const MOST_HEADS: i64 = 4096;

options! {
    /// Rotary position embeddings of `x`: `B` sequences of `S` positions with `heads` heads of
    /// `length` elements. The output is `y`. Any strides are possible: a head at a position begins
    /// at `head * x_head_pitch + position * x_pitch + sequence * x_batch_pitch`, which covers both
    /// `(B,S,H,D)` and `(B,H,S,D)`.
    ///
    /// Cosines and sines come from tables `cos` and `sin`, `(L,rotated/2)`, with a row for each
    /// position; or the kernel computes them from `frequencies`, `rotated/2` numbers of f32
    /// ([`Rope::frequencies`] returns the usual ones).
    ///
    /// ```
    /// use tilewright_ops::{Operator, Rope};
    ///
    /// let rope = Rope { length: 2, heads: 1, tables: false, ..Rope::default() };
    /// let sizes = [
    ///     ("S", 2), ("B", 1), ("x_head_pitch", 2), ("x_pitch", 2), ("x_batch_pitch", 4),
    ///     ("y_head_pitch", 2), ("y_pitch", 2), ("y_batch_pitch", 4),
    /// ];
    /// let inputs = [("x", vec![1.0, 0.0, 1.0, 0.0]), ("frequencies", vec![1.0])];
    /// let y = &rope.forward()?.run(&sizes, &inputs)?[0].1;
    /// assert!((y[2].unwrap() - 1_f64.cos()).abs() < 1e-6 && (y[3].unwrap() - 1_f64.sin()).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Rope("rope") {
        /// The elements of a head.
        length: i64 = 0,
        /// The number of elements of a head that are rotated, from the first one on; 0 for all.
        rotated: i64 = 0,
        /// The number of heads.
        heads: i64 = 0,
        /// Whether a pair is two adjacent elements, rather than one element of each half.
        interleaved: bool = false,
        /// Whether there are tables `cos` and `sin`, rather than `frequencies`.
        tables: bool = true,
        /// Whether there is an input `positions`, `(B,S)` of i32, in which a sequence begins at
        /// `sequence * positions_pitch`. If not, positions count from 0.
        positions: bool = false,
        /// Whether all sequences have the same positions: `positions` is then `S:1`.
        shared: bool = false,
        /// Whether `x` is rotated in place, without `y`; the backward then rotates `d_y` in place.
        /// The tensors are declared with the rotated elements only, and the other elements of a
        /// head are unchanged.
        in_place: bool = false,
        /// The type of the elements.
        element: Element = Element::F32,
        /// The type of the tables.
        table_element: Element = Element::F32,
        /// A power of two that divides all pitches of `x` and `y`, in elements.
        alignment: i64 = 1,
    }
}

impl Rope {
    /// The usual frequencies for a head with this many rotated elements: `base^(-2 i / rotated)`.
    ///
    /// ```
    /// use tilewright_ops::Rope;
    ///
    /// assert_eq!(Rope::frequencies(4, 10_000.0), [1.0, 0.01]);
    /// ```
    pub fn frequencies(rotated: i64, base: f64) -> Vec<f32> {
        (0..rotated / 2).map(|pair| base.powf(-2.0 * pair as f64 / rotated as f64) as f32).collect()
    }

    /// The number of elements that are rotated.
    fn checked(&self) -> Result<i64, OperatorError> {
        let refused = |name, value: i64, because: String| Err(OperatorError::value("rope", name, value, because));
        let (length, heads) = (self.length, self.heads);
        let rotated = if self.rotated == 0 { length } else { self.rotated };
        if !(2..=LONGEST).contains(&length) {
            return refused("length", length, format!("a head has from 2 to {LONGEST} elements"));
        }
        if !(2..=length).contains(&rotated) || rotated % 2 != 0 {
            return refused("rotated", rotated, format!("an even number of the {length} elements is rotated"));
        }
        if !(1..=MOST_HEADS).contains(&heads) {
            return refused("heads", heads, format!("there are from 1 to {MOST_HEADS} heads"));
        }
        if self.alignment < 1 || self.alignment.count_ones() != 1 {
            return refused("alignment", self.alignment, "an alignment is a power of two".to_string());
        }
        if self.shared && !self.positions {
            return Err(OperatorError::value("rope", "shared", self.shared, "there are no `positions`"));
        }
        check_float("rope", "element", self.element)?;
        check_float("rope", "table_element", self.table_element)?;
        Ok(rotated)
    }

    /// The program that rotates `from` into `to`, by the angles, or by the negative angles for the
    /// backward.
    fn text(&self, name: &str, (from, to): (&str, &str), is_backward: bool) -> Result<String, OperatorError> {
        let rotated = self.checked()?;
        let Rope { length, heads, element, alignment, .. } = *self;
        let pairs = rotated / 2;
        let tile_heads = power_from(heads).min((TILE / power_from(pairs)).max(1));
        let tile_heads = tile_heads.min(heads);
        let positions = (TILE / power_from(pairs) / power_from(tile_heads)).max(1);
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        let length = if self.in_place { rotated } else { length };
        let tensor = |role: &str, name: &str| {
            let of = name.strip_prefix("d_").unwrap_or(name);
            format!(
                "    {role} {name}: {element} ({length},{heads},S,B):(1,{of}_head_pitch{facts},{of}_pitch{facts},{of}_batch_pitch{facts})\n"
            )
        };
        let place = |first: i64| format!("([{first}], block.y, block.x, block.z)");
        let shape = |elements: i64| format!("({elements},{tile_heads},{positions},1)");
        let load = |first: i64, elements: i64| {
            widened(element, &format!("load({from}, {}, {})", shape(elements), place(first)))
        };
        let to = if self.in_place { from } else { to };
        let store =
            |first: i64, value: &str| format!("    store({to}, {}, {})\n", place(first), narrowed(element, value));
        let angles = self.angles(pairs, positions);
        let sign = if is_backward { ["+", "-"] } else { ["-", "+"] };
        let mut body = match self.interleaved {
            true => {
                let split = format!("(2,{pairs},{tile_heads},{positions})");
                format!(
                    "    both = reshape({}, {split})
    which = arange({split}, 0)
    a = reduce_sum(select(which == 0, both, 0), 0)
    b = reduce_sum(select(which == 1, both, 0), 0)
    y = select(which == 0, a * c {} b * s, b * c {} a * s)
{}",
                    load(0, rotated),
                    sign[0],
                    sign[1],
                    store(0, &format!("reshape(y, {})", shape(rotated)))
                )
            }
            false => format!(
                "    a = {}
    b = {}
{}{}",
                load(0, pairs),
                load(pairs, pairs),
                store(0, &format!("(a * c {} b * s)", sign[0])),
                store(pairs, &format!("(b * c {} a * s)", sign[1])),
            ),
        };
        let rest = length - rotated;
        if rest > 0 {
            let load = format!("load({from}, {}, {})", shape(rest), place(rotated));
            body += &format!("    store({to}, {}, {load})\n", place(rotated));
        }
        let inputs = self.inputs(pairs);
        let tensors = match self.in_place {
            true => tensor("inout ", from),
            false => tensor("input ", from) + &tensor("output", to),
        };
        Ok(format!(
            "tile {name} {{
{tensors}{inputs}    grid ceil(S/{positions}), ceil({heads}/{tile_heads}), B
{angles}{body}}}
",
        ))
    }

    /// The declarations of the tensors of angles.
    fn inputs(&self, pairs: i64) -> String {
        let mut found = match self.tables {
            true => {
                let table = |name: &str| format!("    input  {name}: {} (L,{pairs}):({pairs},1)\n", self.table_element);
                table("cos") + &table("sin")
            }
            false => format!("    input  frequencies: f32 {pairs}:1\n"),
        };
        found += match (self.positions, self.shared) {
            (false, _) => "",
            (true, false) => "    input  positions: i32 (S,B):(1,positions_pitch)\n",
            (true, true) => "    input  positions: i32 (S,1):(1,S)\n",
        };
        found
    }

    /// The statements that compute `c` and `s`, the cosines and sines of a tile of positions.
    fn angles(&self, pairs: i64, positions: i64) -> String {
        // Interleaved pairs have a mode of their own, before the mode of the pairs.
        let shape = match self.interleaved {
            true => format!("(1,{pairs},1,{positions})"),
            false => format!("({pairs},1,{positions},1)"),
        };
        let at = format!("({positions},1)");
        let own = match self.positions {
            true => {
                let sequence = if self.shared { "0" } else { "block.z" };
                format!("    p = load(positions, {at}, (block.x, {sequence}))\n")
            }
            false => format!("    p = index(block.x*{positions}) + arange({at}, 0)\n"),
        };
        match self.tables {
            true => {
                let at = if self.positions { "p" } else { "block.x" };
                let own = if self.positions { own } else { String::new() };
                let table = |name: &str| {
                    let load = widened(self.table_element, &format!("load({name}, ({positions},{pairs}), ({at}, 0))"));
                    format!("reshape(transpose({load}, (1,0)), {shape})")
                };
                format!("{own}    c = {}\n    s = {}\n", table("cos"), table("sin"))
            }
            false => format!(
                "{own}    angle = reshape(load(frequencies, ({pairs}), (0)), ({pairs},1)) * transpose(f32(p), (1,0))
    c = reshape(cos(angle), {shape})
    s = reshape(sin(angle), {shape})
"
            ),
        }
    }
}

impl Operator for Rope {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        Ok(Sequence::new(vec![program(&self.text("rope", ("x", "y"), false)?)?]))
    }

    /// Reads `d_y` and the angles, and writes `d_x`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        Ok(Sequence::new(vec![program(&self.text("d_rope", ("d_y", "d_x"), true)?)?]))
    }
}
