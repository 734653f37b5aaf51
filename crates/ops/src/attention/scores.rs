//! From products of queries and keys to logits.
//!
//! Law: a logit is in units of `ln 2`, so its power of two is the power of e that is meant. Where
//! nothing but a positive factor stands between products and logits, the products stay as they are,
//! and the factor is taken with the power.

use std::f64::consts::LOG2_E;

use tilewright_tile::Element;

use super::text::number;
use crate::error::OperatorError;

/// A tensor that is added to the logits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bias {
    pub(super) element: Element,
    /// Whether each head, and each sequence of the batch, has its own.
    pub(super) heads: bool,
    pub(super) batch: bool,
}

/// How products become logits, and which of them count.
#[derive(Debug, Clone)]
pub(super) struct Logits {
    /// The factor of the products: 0 for that of the head, until it is checked.
    pub(super) scale: f64,
    /// The bound of the scaled products; none if it is 0.
    pub(super) softcap: f64,
    /// How many keys before and behind its position a query sees; all where it is -1.
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) causal: bool,
    pub(super) sinks: bool,
    pub(super) slopes: bool,
    pub(super) bias: Option<Bias>,
    pub(super) expression: String,
}

/// Where a program finds what logits are made of.
pub(super) struct Found<'t> {
    /// The index of the head in its group, and that of the head of `k` and the batch.
    pub(super) group: &'t str,
    pub(super) head: &'t str,
    /// The indices of the tiles of rows and of keys of `bias`.
    pub(super) bias: [&'t str; 2],
    /// The tile of products: rows, and columns; and whether rows are queries, else they are keys.
    pub(super) shape: [i64; 2],
    pub(super) by_queries: bool,
    /// Whether some keys of the tile may be past the last one.
    pub(super) edge: Option<&'t str>,
}

impl Logits {
    /// Checks the options of logits, and settles the scale.
    pub(super) fn checked(mut self, operator: &'static str, head: i64) -> Result<Logits, OperatorError> {
        let refuse = |name, value: f64, because: &str| Err(OperatorError::value(operator, name, value, because));
        if !self.scale.is_finite() {
            return refuse("scale", self.scale, "it is a finite number");
        }
        if self.scale == 0.0 {
            self.scale = 1.0 / (head as f64).sqrt();
        }
        if !(self.softcap.is_finite() && self.softcap >= 0.0) {
            return refuse("softcap", self.softcap, "it is a finite number from 0");
        }
        for (name, keys) in [("window_left", self.left), ("window_right", self.right)] {
            if !(-1..1 << 30).contains(&keys) {
                return Err(OperatorError::value(operator, name, keys, "it is a number of keys, or -1 for all"));
            }
        }
        if self.causal {
            self.right = 0;
        }
        if self.expression.contains(['\n', '#', '{', '}']) {
            let because = "it is one expression in one line";
            return Err(OperatorError::value(operator, "bias_expression", &self.expression, because));
        }
        Ok(self)
    }

    /// The last key that a query sees, from its position on.
    pub(super) fn after(&self) -> Option<i64> {
        (self.right >= 0).then_some(self.right)
    }

    /// The first key that a query sees, back from its position.
    pub(super) fn before(&self) -> Option<i64> {
        (self.left >= 0).then_some(self.left)
    }

    /// Whether products stay as they are.
    pub(super) fn is_plain(&self) -> bool {
        let added = self.slopes || self.bias.is_some() || !self.expression.is_empty();
        self.softcap == 0.0 && self.scale > 0.0 && !added
    }

    /// What `scores` are multiplied by to be logits.
    pub(super) fn factor(&self) -> f64 {
        if self.is_plain() { self.scale * LOG2_E } else { 1.0 }
    }

    /// Whether positions of queries and keys are needed in a tile.
    pub(super) fn has_positions(&self, edge: bool) -> bool {
        let bounds = self.left >= 0 || self.right >= 0 || edge;
        bounds || self.slopes || !self.expression.is_empty()
    }

    /// Whether the derivative by products is that by logits times `steep`.
    pub(super) fn is_capped(&self) -> bool {
        self.softcap > 0.0
    }

    /// The declarations of `slopes` and `bias`, of a tensor of numbers of heads and of the number
    /// of keys.
    pub(super) fn declared(&self, of_heads: impl Fn(&str) -> String, [group, kv]: [i64; 2], keys: &str) -> String {
        let mut text = String::new();
        if self.slopes {
            text += &of_heads("slopes");
        }
        if let Some(bias) = self.bias {
            let head = if bias.heads { "bias_head" } else { "0" };
            let group_head = if bias.heads { format!("{group}*bias_head") } else { "0".to_string() };
            let batch = if bias.batch { "bias_batch" } else { "0" };
            text += &format!(
                "    input  bias: {} (S,{keys},{group},({kv},B)):(bias_row,1,{head},({group_head},{batch}))\n",
                bias.element
            );
        }
        text
    }

    /// Statements that make logits, times [`Logits::factor`], of `scores`; and `steep`, where
    /// products are capped and it is `steep` that is asked for. Keys that are not seen get -inf.
    pub(super) fn made(&self, found: &Found<'_>, steep: bool) -> String {
        let mut text = String::new();
        let [rows, columns] = found.shape;
        let all = format!("({rows},{columns})");
        let line = |text: &mut String, statement: String| *text += &format!("        {statement}\n");
        if self.is_capped() {
            // 1 - 2/(e^2x + 1) is exact to 2^-23 of the cap, and tanh to 2^-11.
            let inner = number(2.0 * LOG2_E * self.scale / self.softcap);
            line(&mut text, format!("bent = 1 - 2 * recip(exp2(scores * {inner}) + 1)"));
            if steep {
                line(&mut text, "steep = 1 - bent * bent".to_string());
            }
            line(&mut text, format!("scores = bent * {}", number(self.softcap * LOG2_E)));
        } else if !self.is_plain() {
            line(&mut text, format!("scores = scores * {}", number(self.scale * LOG2_E)));
        }
        let log2_e = number(LOG2_E);
        if let Some(bias) = self.bias {
            let [row, key] = found.bias;
            let (queries, keys) = if found.by_queries { (rows, columns) } else { (columns, rows) };
            let Found { group, head, .. } = found;
            let load = format!("load(bias, ({queries},{keys},1,1), ({row}, {key}, {group}, {head}))");
            let load = format!("reshape({load}, ({queries},{keys}))");
            let load = if found.by_queries { load } else { format!("transpose({load}, (1,0))") };
            let load = if bias.element == Element::F32 { load } else { format!("f32({load})") };
            line(&mut text, format!("scores = fma({load}, f32({log2_e}), scores)"));
        }
        if self.slopes {
            line(&mut text, format!("scores = fma(f32(abs(key - query)), slope * -{log2_e}, scores)"));
        }
        if !self.expression.is_empty() {
            line(&mut text, format!("added = broadcast({}, {all})", self.expression));
            line(&mut text, format!("scores = fma(added, f32({log2_e}), scores)"));
        }
        if let Some(after) = self.after() {
            let bound = if after == 0 { "query".to_string() } else { format!("query + {after}") };
            line(&mut text, format!("scores = select(key <= {bound}, scores, -inf)"));
        }
        if let Some(before) = self.before() {
            line(&mut text, format!("scores = select(query - {before} <= key, scores, -inf)"));
        }
        if let Some(end) = found.edge {
            line(&mut text, format!("scores = select(key < {end}, scores, -inf)"));
        }
        text
    }

    /// Statements before the tiles of a head: its slope and its number.
    pub(super) fn of_head(&self, group: &str, head: &str, [all_group, kv]: [i64; 2]) -> String {
        let mut text = String::new();
        if self.slopes {
            text += &format!("    slope = load(slopes, (1,1), ({group}, {head}))\n");
        }
        if !self.expression.is_empty() {
            text += &format!("    head = index({head}) % {kv} * {all_group} + index({group})\n");
            text += &format!("    batch = index({head}) // {kv}\n");
        }
        text
    }
}
