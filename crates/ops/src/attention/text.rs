//! Heads and layouts of attention as text.
//!
//! Law: a head of `q` has two modes, its place in the group and the group's head of `k`, so all
//! heads of a group take the same tile of `k` without a division. The batch is the second half of
//! the mode of the head of `k`.

use tilewright_tile::Element;

use crate::error::OperatorError;

/// The heads of an attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    /// Heads of `q` for each head of `k`.
    pub(super) group: i64,
    /// Heads of `k` and `v`.
    pub(super) kv: i64,
    /// Elements of a row of `q` and `k`, and of `v`.
    pub(super) head: i64,
    pub(super) value: i64,
    /// The type of the elements.
    pub(super) element: Element,
}

impl Heads {
    /// Checks the options of heads; a `value` of 0 is as `head`.
    pub(super) fn checked(
        operator: &'static str,
        [heads, kv]: [i64; 2],
        [head, value]: [i64; 2],
        element: Element,
    ) -> Result<Heads, OperatorError> {
        if kv < 1 {
            return Err(OperatorError::value(operator, "kv_heads", kv, "there is at least one head"));
        }
        if heads < 1 || heads % kv != 0 || heads > 1 << 16 {
            let because = format!("it is a multiple of `kv_heads`, {kv}, of at most 65536");
            return Err(OperatorError::value(operator, "heads", heads, because));
        }
        let value = if value == 0 { head } else { value };
        for (name, length) in [("head", head), ("value_head", value)] {
            if !(16..=256).contains(&length) || length % 8 != 0 {
                return Err(OperatorError::value(operator, name, length, "it is a multiple of 8 from 16 to 256"));
            }
        }
        if !matches!(element, Element::Bf16 | Element::F16) {
            let because = "matrix instructions take operands of bf16 and f16 here";
            return Err(OperatorError::value(operator, "element", element, because));
        }
        Ok(Heads { group: heads / kv, kv, head, value, element })
    }

    /// The extents of the tiles of rows of `q` and `k`, and of `v`.
    pub(super) fn tiles(self) -> [i64; 2] {
        [self.head, self.value].map(|length| length.max(1).unsigned_abs().next_power_of_two() as i64)
    }

    /// The heads of `q`.
    pub(super) fn all(self) -> i64 {
        self.group * self.kv
    }
}

/// The tensors of an attention of equal lengths, with the layouts of [`crate::Attention`].
pub(super) struct Dense {
    pub(super) heads: Heads,
    alignment: i64,
    /// Whether there are as many keys as queries.
    pub(super) same_length: bool,
}

impl Dense {
    pub(super) fn new(heads: Heads, alignment: i64, same_length: bool) -> Dense {
        Dense { heads, alignment, same_length }
    }

    /// A power of two that divides all strides, in elements.
    pub(super) fn alignment(&self) -> i64 {
        self.alignment
    }

    /// The number of keys.
    pub(super) fn keys(&self) -> &'static str {
        if self.same_length { "S" } else { "T" }
    }

    /// A tensor of queries, `q` or `o` or a derivative, `(row, element, place in the group, head
    /// and batch)`.
    pub(super) fn of_queries(&self, role: &str, name: &str) -> String {
        format!("    {role} {name}: {} {}\n", self.heads.element, self.layout_of_queries(name))
    }

    /// The layout of [`Dense::of_queries`].
    pub(super) fn layout_of_queries(&self, name: &str) -> String {
        let Heads { group, kv, head, value, .. } = self.heads;
        let own = name.trim_start_matches("d_");
        let wide = if own == "o" { value } else { head };
        let [batch, head, row] = strides(own, self.alignment);
        format!("(S,{wide},{group},({kv},B)):({row},1,{head},({group}*{own}_head,{batch}))")
    }

    /// A tensor of keys, `k` or `v` or a derivative, `(row, element, head and batch)`.
    pub(super) fn of_keys(&self, role: &str, name: &str) -> String {
        format!("    {role} {name}: {} {}\n", self.heads.element, self.layout_of_keys(name))
    }

    /// The layout of [`Dense::of_keys`].
    pub(super) fn layout_of_keys(&self, name: &str) -> String {
        let Heads { kv, head, value, .. } = self.heads;
        let own = name.trim_start_matches("d_");
        let wide = if own == "v" { value } else { head };
        let [batch, head, row] = strides(own, self.alignment);
        format!("({},{wide},({kv},B)):({row},1,({head},{batch}))", self.keys())
    }

    /// A tensor of one f32 for each row of queries.
    pub(super) fn of_rows(&self, role: &str, name: &str) -> String {
        format!("    {role} {name}: f32 {}\n", self.layout_of_rows())
    }

    /// The layout of [`Dense::of_rows`].
    pub(super) fn layout_of_rows(&self) -> String {
        let Heads { group, kv, .. } = self.heads;
        let all = self.heads.all();
        format!("(S,{group},({kv},B)):(1,S,({group}*S,{all}*S))")
    }

    /// A number for each head: all sequences of the batch share it.
    pub(super) fn of_heads(&self, name: &str) -> String {
        let Heads { group, kv, .. } = self.heads;
        format!("    input  {name}: f32 ({group},({kv},B)):(1,({group},0))\n")
    }
}

/// A cache of keys or of values, as `of` names it: row, element, head, and the batch if there are
/// no pages of a number of rows.
pub(super) fn cache(heads: Heads, (role, name): (&str, &str), of: &str, pages: Option<i64>, alignment: i64) -> String {
    let Heads { kv, head, value, element, .. } = heads;
    let wide = if of == "v" { value } else { head };
    let [batch, head, row] = strides(name, alignment);
    match pages {
        Some(page) => {
            let stride = batch.replace("_batch", "_page");
            format!("    {role} {name}: {element} (({page},P),{wide},{kv}):(({row},{stride}),1,{head})\n")
        }
        None => format!("    {role} {name}: {element} (T,{wide},{kv},B):({row},1,{head},{batch})\n"),
    }
}

/// The strides of a tensor by their names: those of the batch, of the head and of the row.
pub(super) fn strides(name: &str, alignment: i64) -> [String; 3] {
    ["batch", "head", "row"].map(|axis| match alignment {
        1 => format!("{name}_{axis}"),
        _ => format!("{name}_{axis}{{div={alignment}}}"),
    })
}

/// A number as the text of a tile program.
pub(super) fn number(value: f64) -> String {
    format!("{value:e}")
}
