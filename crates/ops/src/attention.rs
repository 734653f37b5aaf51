//! Attention: `softmax(scale q k^T + bias) v`, forward and backward.
//!
//! Law: query `i` of `S` has position `i + T - S` among `T` keys: the last query is beside the last
//! key. It sees the keys from `window_left` before its position to `window_right` after it, and
//! with `causal` none after it. A query that sees no key has an output of 0, and the logarithm of
//! its sum is -inf. No result is added to by two blocks, or blocks add in turns, so all sums are
//! taken in a fixed order, and two calls give the same bits. `in_turns: false` frees the order of
//! the sums of `d_q` where one kernel computes the backward.

mod append;
mod backward;
mod by_warps;
mod decode;
mod forward;
mod one_kernel;
mod packed;
mod place;
mod rings;
mod scores;
mod text;
mod tiles;
mod warps;

pub use append::AppendToCache;
pub use decode::AttentionDecode;

use tilewright_kernel::machine::Machine;
use tilewright_tile::{Element, Program, Sequence, TileError};

use self::by_warps::ByWarps;
use self::one_kernel::OneKernel;
use self::scores::{Bias, Logits};
use self::text::Heads;
use self::tiles::Tiles;
use crate::error::OperatorError;
use crate::options::options;
use crate::{Operator, OperatorKernels, row_tiles};

options! {
    /// Attention with grouped heads, forward and backward: `softmax(scale q k^T + bias) v`.
    ///
    /// | tensor | shape | strides, in elements |
    /// |---|---|---|
    /// | `q`, output `o` | batch `B`, `heads`, queries `S`, `head` (`o`: `value_head`) | `q_batch`, `q_head`, `q_row`, 1; and so on |
    /// | `k`, `v` | batch `B`, `kv_heads`, keys `T`, `head` (`v`: `value_head`) | `k_batch`, `k_head`, `k_row`, 1; and so on |
    /// | output `lse` | batch, `heads`, queries, f32 | contiguous |
    /// | `sinks`, `slopes` | `heads`, f32 | contiguous |
    /// | `bias` | batch or 1, `heads` or 1, queries, keys | `bias_batch`, `bias_head`, `bias_row`, 1 |
    ///
    /// Head `h` of `q` takes head `h / (heads / kv_heads)` of `k` and `v`. With `same_length`, `T`
    /// is `S`. `lse` is the natural logarithm of the sum of a row, that of its sink included. A
    /// derivative `d_x` has the shape and the strides of `x`.
    ///
    /// With `packed`, sequences of different lengths lie one after another: rows `cu_q[b]` to
    /// `cu_q[b + 1]` of `q` are the queries of sequence `b`, and rows `cu_k[b]` to `cu_k[b + 1]` of
    /// `k` and `v` are its keys. `cu_q` and `cu_k` are i32 of `B + 1` numbers. `q` is `(Q, heads,
    /// head)` with strides `q_row`, `q_head` and 1, `k` is `(K, kv_heads, head)`, and `lse` is
    /// `(heads, Q)`. Rows that belong to no sequence are not written: `o`, `lse`, `d_q`, `d_k` and
    /// `d_v` keep what they were there.
    ///
    /// ```
    /// use tilewright_ops::{Attention, Operator};
    ///
    /// // Two queries of one head of 16, and two keys: the second query sees both.
    /// let attention = Attention { heads: 1, kv_heads: 1, head: 16, causal: true, same_length: true, ..Attention::default() };
    /// let strides = ["q", "k", "v", "o"].map(|name| [(format!("{name}_batch"), 32), (format!("{name}_head"), 32), (format!("{name}_row"), 16)]);
    /// let mut sizes: Vec<(&str, i64)> = strides.iter().flatten().map(|(name, stride)| (name.as_str(), *stride)).collect();
    /// sizes.extend([("B", 1), ("S", 2)]);
    /// let ones = vec![1.0; 32];
    /// let values = [vec![2.0; 16], vec![4.0; 16]].concat();
    /// let results = attention.forward()?.run(&sizes, &[("q", ones.clone()), ("k", ones), ("v", values)])?;
    /// assert_eq!(results[0].0, "o");
    /// assert_eq!((results[0].1[0], results[0].1[16]), (Some(2.0), Some(3.0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Attention("attention") {
        /// The heads of `q`.
        heads: i64 = 1,
        /// The heads of `k` and `v`, a divisor of `heads`.
        kv_heads: i64 = 1,
        /// The elements of a row of `q` and `k`: a multiple of 8 from 16 to 256. 64, 128 and 256
        /// fill their tiles; others are computed as the next power of two.
        head: i64 = 64,
        /// The elements of a row of `v` and `o`; as `head` where it is 0.
        value_head: i64 = 0,
        /// The type of the elements of all tensors but `lse`, `sinks`, `slopes` and `bias`: bf16 or
        /// f16.
        element: Element = Element::Bf16,
        /// A power of two that divides all strides, in elements. Operands are loaded by TMA if it
        /// is at least 8.
        alignment: i64 = 8,
        /// What products of queries and keys are multiplied by; where it is 0, 1 over the root of
        /// `head`.
        scale: f64 = 0.0,
        /// Where it is not 0: products, scaled, become `softcap * tanh(product / softcap)`.
        softcap: f64 = 0.0,
        /// Whether a query sees no key after its position.
        causal: bool = false,
        /// How many keys before its position a query sees; all, where it is -1.
        window_left: i64 = -1,
        /// How many keys after its position a query sees; all, where it is -1.
        window_right: i64 = -1,
        /// Whether there are as many keys as queries: then there is no size `T`.
        same_length: bool = false,
        /// Whether sequences lie one after another: `cu_q` and `cu_k` say where each begins.
        packed: bool = false,
        /// Whether there is an input `sinks`: a logit for each head that counts in the sum alone.
        sinks: bool = false,
        /// Whether there is an input `slopes` (ALiBi): a key at a distance of `d` from the position
        /// of a query has `-slope * d` added.
        slopes: bool = false,
        /// Whether there is an input `bias`, which is added to the scaled products.
        bias: bool = false,
        /// The type of the elements of `bias`: f32, bf16 or f16.
        bias_element: Element = Element::F32,
        /// Whether each head has its own bias; else all share one, and there is no `bias_head`.
        bias_heads: bool = true,
        /// Whether each sequence of the batch has its own bias; else all share one, and there is no
        /// `bias_batch`.
        bias_batch: bool = true,
        /// An expression of tile programs that is added to the scaled products, where it is not
        /// empty: f32 of the tiles of i32 `query` and `key`, which are positions, and of the
        /// numbers `head` and `batch`. `f32(key - query) * 0.125` is an example.
        bias_expression: String = String::new(),
        /// Whether the backward reads `d_lse`, the derivative by `lse`.
        lse_gradient: bool = false,
        /// The longest row of a head for which one kernel computes `d_q`, `d_k` and `d_v` on
        /// Hopper, where it can: heads of 64 or 128, causal or without a mask, and logits that are
        /// scaled products. Elsewhere there are programs for each; 0 is for those everywhere.
        /// Measured on an H200: one kernel is faster for heads of 64. Unless this is 0, there is
        /// one kernel wherever blocks add in any order, and on cards before Hopper.
        one_kernel: i64 = 64,
        /// Whether blocks of this kernel add to `d_q` in turns, so that two calls give the same
        /// bits. Without turns blocks add in any order, which is faster, and the last bits of `d_q`
        /// may differ between two calls.
        in_turns: bool = true,
    }
}

/// The name of the operator in messages.
const NAME: &str = "attention";

impl Attention {
    /// The options that kernels have, or why they have none.
    fn checked(&self) -> Result<(Heads, Logits), OperatorError> {
        let refuse =
            |name, value: &dyn std::fmt::Display, because: &str| Err(OperatorError::value(NAME, name, value, because));
        let heads = Heads::checked(NAME, [self.heads, self.kv_heads], [self.head, self.value_head], self.element)?;
        if self.alignment < 1 || self.alignment.count_ones() != 1 {
            return refuse("alignment", &self.alignment, "an alignment is a power of two");
        }
        row_tiles::check_float(NAME, "bias_element", self.bias_element)?;
        if self.one_kernel < 0 {
            return refuse("one_kernel", &self.one_kernel, "it is the length of a row, or 0");
        }
        if self.packed && self.bias {
            return refuse("bias", &self.bias, "sequences that are packed have no tensor of it: use `bias_expression`");
        }
        if self.packed && self.same_length {
            let because = "it has no meaning for sequences that are packed: pass one tensor as `cu_q` and `cu_k`";
            return refuse("same_length", &self.same_length, because);
        }
        let bias =
            self.bias.then_some(Bias { element: self.bias_element, heads: self.bias_heads, batch: self.bias_batch });
        let expression = self.bias_expression.trim().to_string();
        let logits = Logits {
            scale: self.scale,
            softcap: self.softcap,
            left: self.window_left,
            right: self.window_right,
            causal: self.causal,
            sinks: self.sinks,
            slopes: self.slopes,
            bias,
            expression,
        };
        Ok((heads, logits.checked(NAME, self.head)?))
    }
}

impl Attention {
    /// The backward with one kernel for `d_q`, `d_k` and `d_v`; none if that is not asked for,
    /// or not possible.
    fn backward_in_one_kernel(&self, machine: &Machine) -> Result<Option<OperatorKernels>, OperatorError> {
        let is_wanted = match machine.target.has_wgmma() {
            true => self.one_kernel >= self.head || (self.one_kernel > 0 && !self.in_turns),
            false => self.one_kernel > 0,
        };
        if !is_wanted || self.packed {
            return Ok(None);
        }
        let (heads, logits) = self.checked()?;
        let dense = text::Dense::new(heads, self.alignment, self.same_length);
        let Some(form) = OneKernel::new(&dense, &logits, self.in_turns, machine) else { return Ok(None) };
        let (before, behind) = (form.before(self.lse_gradient)?, form.behind()?);
        let kernel = form.kernel().map_err(TileError::from)?;
        let text = format!("{before}\n# {}: a kernel of its own\n\n{behind}", kernel.program().name);
        let compiled = |program: &Program| Ok::<_, OperatorError>(program.compile(machine)?.kernel().clone());
        let tensors = self.backward_in(Tiles::of(Some(machine)))?.tensors()?;
        Ok(Some(OperatorKernels { text, kernels: vec![compiled(&before)?, kernel, compiled(&behind)?], tensors }))
    }
}

impl Attention {
    /// The forward as a kernel of warps that multiply by `mma.sync`; none if that is not possible.
    fn forward_by_warps(&self, machine: &Machine) -> Result<Option<OperatorKernels>, OperatorError> {
        if self.packed {
            return Ok(None);
        }
        let (heads, logits) = self.checked()?;
        let dense = text::Dense::new(heads, self.alignment, self.same_length);
        let Some(form) = ByWarps::new(&dense, &logits, machine) else { return Ok(None) };
        let kernel = form.kernel().map_err(TileError::from)?;
        let text = format!("# {}: a kernel of its own\n", kernel.program().name);
        let tensors = self.forward_in(Tiles::of(Some(machine)))?.tensors()?;
        Ok(Some(OperatorKernels { text, kernels: vec![kernel], tensors }))
    }

    /// The programs of the forward, by tiles for a machine.
    fn forward_in(&self, tiles: Tiles) -> Result<Sequence, OperatorError> {
        let (heads, logits) = self.checked()?;
        match self.packed {
            true => packed::forward(heads, &logits, self.alignment),
            false => forward::dense(&text::Dense::new(heads, self.alignment, self.same_length), &logits, tiles),
        }
    }

    /// The programs of the backward, by tiles for a machine.
    fn backward_in(&self, tiles: Tiles) -> Result<Sequence, OperatorError> {
        let (heads, logits) = self.checked()?;
        match self.packed {
            true => packed::backward(heads, &logits, self.alignment, self.lse_gradient),
            false => {
                let dense = text::Dense::new(heads, self.alignment, self.same_length);
                backward::dense(&dense, &logits, self.lse_gradient, tiles)
            }
        }
    }
}

impl Operator for Attention {
    fn kernels(&self, is_backward: bool, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        if is_backward && let Some(own) = self.backward_in_one_kernel(machine)? {
            return Ok(own);
        }
        if !is_backward && let Some(own) = self.forward_by_warps(machine)? {
            return Ok(own);
        }
        let tiles = Tiles::of(Some(machine));
        let sequence = if is_backward { self.backward_in(tiles)? } else { self.forward_in(tiles)? };
        OperatorKernels::compiled(&sequence, machine)
    }

    fn forward(&self) -> Result<Sequence, OperatorError> {
        self.forward_in(Tiles::of(None))
    }

    /// Reads the inputs of the forward, `o`, `lse`, `d_o`, and `d_lse` if `lse_gradient`. Writes
    /// `d_q`, `d_k` and `d_v`; `d_sinks` if there are sinks, and `d_bias` if there is a tensor of
    /// it. `delta` is a workspace.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        self.backward_in(Tiles::of(None))
    }
}
