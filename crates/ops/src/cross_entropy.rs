//! The cross entropy of rows of logits with a target class for each row.
//!
//! Law: with `x` the logits of a row, after the softcap if there is one, `t` its target, `V` the
//! number of classes and `s` the smoothing,
//!
//! ```text
//! lse  = log(sum over c of exp(x[c]))
//! loss = lse - (1 - s) x[t] - s/V (sum over c of x[c]) + z_loss lse^2
//! ```
//!
//! A row whose target is the ignored index has the loss 0 and the derivative 0. One block computes
//! a row, in an order that depends on `V` alone: a row has the same bits in any batch.
//!
//! This is an online softmax: each thread keeps the greatest logit so far and the sum of
//! exponentials relative to it, and rescales the sum when a greater logit comes. So logits are read
//! once, and threads exchange values only at the end of a row.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{LONGEST_ROW, check_float, narrowed, program, widened};

/// The elements of a chunk of a row.
const CHUNK: i64 = 4096;
/// The adjacent elements of a chunk that are added to one partial sum: 16 bytes of 16-bit elements.
const BESIDE: i64 = 8;
/// The bytes of a vectorized access.
const VECTOR_BYTES: i64 = 16;
/// The longest row, in bytes, that stays in registers between the sums and the derivatives.
const KEPT_BYTES: i64 = 1 << 16;
/// log2(e).
const LOG2_E: &str = "1.4426950408889634";

options! {
    /// The cross entropy of each row of `logits`, `(M,vocabulary):(logits_pitch,1)`, with its class
    /// in `targets`, `M:1` of i32. Outputs: `loss`, and `lse`, the logarithm of the sum of
    /// exponentials, both `M:1` of f32.
    ///
    /// The loss is infinite if the target is neither a class nor the ignored index.
    ///
    /// ```
    /// use tilewright_ops::{CrossEntropy, Operator};
    ///
    /// let loss = CrossEntropy { vocabulary: 2, ..CrossEntropy::default() };
    /// let sizes = [("M", 2), ("logits_pitch", 2)];
    /// let inputs = [("logits", vec![1.0, 1.0, 5.0, 7.0]), ("targets", vec![1.0, -100.0])];
    /// let results = loss.forward()?.run(&sizes, &inputs)?;
    /// assert!((results[0].1[0].unwrap() - 2_f64.ln()).abs() < 1e-6);
    /// assert_eq!((results[0].0.as_str(), results[0].1[1]), ("loss", Some(0.0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct CrossEntropy("cross_entropy") {
        /// The number of classes, which is the length of a row.
        vocabulary: i64 = 0,
        /// The type of the logits.
        element: Element = Element::F32,
        /// A power of two that divides the pitch of the logits, in elements.
        alignment: i64 = 1,
        /// The target of rows that are ignored: either no class, or a class that is always ignored.
        ignored: i64 = -100,
        /// The label smoothing: the share of the loss that is distributed equally over all classes,
        /// at least 0 and less than 1.
        smoothing: f64 = 0.0,
        /// The factor of `lse^2` in the loss.
        z_loss: f64 = 0.0,
        /// If it is not 0, logits become `softcap * tanh(logits / softcap)` first.
        softcap: f64 = 0.0,
        /// Whether the forward writes `d_logits` too, and no `lse`. It then reads `d_loss`, which
        /// must be known before the loss. Applied to chunks of rows, this computes the loss of a
        /// linear layer without storing all of its logits.
        with_gradient: bool = false,
        /// Whether the derivatives overwrite the logits: `logits` is then read and written, and
        /// there is no `d_logits`.
        in_place: bool = false,
        /// Whether rows are padded in memory to the next multiple of 16 bytes, so that rows of any
        /// length are read and written by whole vectors. Logits in the padding are ignored, and the
        /// derivatives there become 0. The alignment must then be one of 16 bytes.
        padded: bool = false,
        /// Whether the rows of the backward are contiguous and are processed as one vector of
        /// `elements` logits, a multiple of 16 bytes: then whole vectors are read and written even
        /// if rows begin at odd addresses. A row must have 4096 elements or more.
        joined: bool = false,
    }
}

impl CrossEntropy {
    fn refused(name: &'static str, value: impl std::fmt::Display, because: &str) -> OperatorError {
        OperatorError::value("cross_entropy", name, value, because)
    }

    fn checked(&self) -> Result<(), OperatorError> {
        if !(1..=LONGEST_ROW).contains(&self.vocabulary) {
            let because = format!("there are from 1 to {LONGEST_ROW} classes");
            return Err(CrossEntropy::refused("vocabulary", self.vocabulary, &because));
        }
        check_float("cross_entropy", "element", self.element)?;
        if self.alignment < 1 || self.alignment.count_ones() != 1 {
            return Err(CrossEntropy::refused("alignment", self.alignment, "an alignment is a power of two"));
        }
        let vector = VECTOR_BYTES / i64::from(self.element.bytes());
        if self.padded && self.alignment % vector != 0 {
            let because = format!("the alignment is {}, and 16 bytes have {vector} elements", self.alignment);
            return Err(CrossEntropy::refused("padded", self.padded, &because));
        }
        if self.joined && (self.vocabulary < CHUNK || self.padded) {
            let because = format!("rows that are joined have {CHUNK} classes or more, and no padding");
            return Err(CrossEntropy::refused("joined", self.joined, &because));
        }
        if i32::try_from(self.ignored).is_err() {
            return Err(CrossEntropy::refused("ignored", self.ignored, "targets are integers of 32 bits"));
        }
        if !(0.0..1.0).contains(&self.smoothing) {
            return Err(CrossEntropy::refused("smoothing", self.smoothing, "it is from 0, and less than 1"));
        }
        for (name, value) in [("z_loss", self.z_loss), ("softcap", self.softcap)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(CrossEntropy::refused(name, value, "it is a number from 0"));
            }
        }
        Ok(())
    }

    /// The elements of a chunk.
    fn chunk(&self) -> i64 {
        let power = self.vocabulary.unsigned_abs().next_power_of_two() as i64;
        power.clamp(BESIDE, CHUNK)
    }

    fn chunks(&self) -> i64 {
        (self.vocabulary + self.chunk() - 1) / self.chunk()
    }

    /// The elements of a row in memory, with its padding.
    fn columns(&self) -> i64 {
        let vector = if self.padded { VECTOR_BYTES / i64::from(self.element.bytes()) } else { 1 };
        (self.vocabulary + vector - 1) / vector * vector
    }

    /// The declaration of a matrix of logits or of their derivatives.
    fn matrix(&self, role: &str, name: &str) -> String {
        let CrossEntropy { element, alignment, .. } = self;
        let columns = self.columns();
        let facts = if *alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        format!("    {role} {name}: {element} (M,{columns}):(logits_pitch{facts},1)\n")
    }

    /// The statements that compute `a`, the logits of a tile after the softcap, and then `bent`;
    /// the slope of the softcap is `1 - bent^2`. `inside` is a condition for the elements in the
    /// row, for a tile that may reach past the row: the other elements become minus infinity.
    fn capped(&self, load: &str, inside: Option<&str>, indent: &str) -> String {
        let load = widened(self.element, load);
        if self.softcap == 0.0 {
            return match inside.filter(|_| self.padded) {
                Some(inside) => format!("{indent}a = select({inside}, {load}, -inf)\n"),
                None => format!("{indent}a = {load}\n"),
            };
        }
        let softcap = self.softcap;
        // `tanh.approx` has 11 correct bits; this formula has 22.
        let tanh = format!("{indent}bent = 1 - 2 * recip(exp({load} * {:e}) + 1)\n", 2.0 / softcap);
        let capped = format!("bent * {softcap:e}");
        match inside {
            Some(inside) => format!("{tanh}{indent}a = select({inside}, {capped}, -inf)\n"),
            None => format!("{tanh}{indent}a = {capped}\n"),
        }
    }

    /// The coordinate of a chunk of the row of the block, by the name of its loop variable, and the
    /// condition for its elements to be in the row.
    fn tile(&self, shape: &str, iteration: &str) -> (String, String) {
        let chunk = self.chunk();
        let load = format!("load(logits, {shape}, (block.x, {iteration}), -inf)");
        (load, format!("index({iteration}*{chunk}) + arange({shape}, 1) < {}", self.vocabulary))
    }

    /// Statements that compute the logarithm of the sum of exponentials of a row in `all`, and,
    /// with smoothing, the sum of its logits in `sum`.
    fn sums(&self) -> String {
        let (chunk, chunks) = (self.chunk(), self.chunks());
        let shape = format!("(1,{chunk})");
        let (parts, beside) = (format!("(1,1,{})", chunk / BESIDE), format!("(1,{BESIDE},{})", chunk / BESIDE));
        let (load, inside) = self.tile(&shape, "chunk");
        let capped = self.capped(&load, Some(&inside), "        ");
        let smooth = self.smoothing > 0.0;
        let smoothed = |text: &str| if smooth { text.to_string() } else { String::new() };
        let begin = smoothed(&format!(", sum = broadcast(f32(0), {parts})"));
        let next = smoothed(&format!(", sum + reduce_sum(reshape(counted, {beside}), 1)"));
        let counted = smoothed(&format!("        counted = select({inside}, a, 0)\n"));
        let result = smoothed(", sum");
        let total = smoothed("    sum = reshape(reduce_sum(sum, 2), (1,1))\n");
        // The start value is the least finite f32 rather than minus infinity, because the
        // difference of two infinities is NaN.
        format!(
            "    loop chunk < {chunks} with greatest = broadcast(f32(-3.4028235e38), {parts}), total = broadcast(f32(0), {parts}){begin} {{
{capped}{counted}        parts = reshape(a, {beside})
        new = max(greatest, reduce_max(parts, 1))
        powers = exp2((parts - new) * {LOG2_E})
        next new, fma(total, exp2((greatest - new) * {LOG2_E}), reduce_sum(powers, 1)){next}
    }} -> greatest, total{result}
    highest = reduce_max(greatest, 2)
    total = reduce_sum(total * exp2((greatest - highest) * {LOG2_E}), 2)
    all = reshape(highest + log(total), (1,1))
{total}"
        )
    }

    /// The declarations of the logits and their derivatives, and the name of the tensor that is
    /// written.
    fn matrices(&self) -> (String, &'static str) {
        match self.in_place {
            true => (self.matrix("inout ", "logits"), "logits"),
            false => (self.matrix("input ", "logits") + &self.matrix("output", "d_logits"), "d_logits"),
        }
    }

    /// The statements that compute `target` and `own`, the logit of that class: minus infinity for
    /// a target that is no class.
    fn target(&self) -> String {
        let target = format!("    target = reshape(load(targets, (1), (block.x), {}), (1,1))\n", self.ignored);
        let inside = format!("target >= 0 & target < {}", self.vocabulary);
        let load = "load(logits, (1,1), (block.x, target), -inf)";
        target + &self.capped(load, Some(&inside), "    ") + "    own = a\n"
    }

    /// The statements that store the loss of a row.
    fn loss(&self) -> String {
        let CrossEntropy { ignored, smoothing, z_loss, vocabulary, .. } = self;
        let share = if *smoothing > 0.0 { format!(" * {:e}", 1.0 - smoothing) } else { String::new() };
        let alike = match *smoothing > 0.0 {
            true => format!(" - sum * {:e}", smoothing / *vocabulary as f64),
            false => String::new(),
        };
        let square = if *z_loss > 0.0 { format!(" + all * all * {z_loss:e}") } else { String::new() };
        format!(
            "    loss_of_row = select(target == {ignored}, 0, all - own{share}{alike}{square})
    store(loss, (block.x), reshape(loss_of_row, (1)))
"
        )
    }

    /// The derivative with respect to each logit of a tile `a` of this shape. `column` has the
    /// classes of the logits. In a row that is ignored it is 0, even where a logit is NaN.
    fn derivative(&self, shape: &str, indent: &str) -> String {
        let CrossEntropy { smoothing, vocabulary, softcap, ignored, .. } = self;
        let alike = match *smoothing > 0.0 {
            true => format!(" - factor * {:e}", smoothing / *vocabulary as f64),
            false => String::new(),
        };
        let own = if *smoothing > 0.0 { format!("factor * {:e}", 1.0 - smoothing) } else { "factor".to_string() };
        let slope = match *softcap > 0.0 {
            true => format!("{indent}d = d * (1 - bent * bent)\n"),
            false => String::new(),
        };
        let padding = match self.padded {
            true => format!("{indent}d = select(column < {vocabulary}, d, 0)\n"),
            false => String::new(),
        };
        format!(
            "{indent}d = exp2((a - all) * {LOG2_E}) * powers_factor{alike}
{indent}d = d - select(column == target, broadcast({own}, {shape}), 0)
{slope}{indent}d = select(broadcast(target, {shape}) == {ignored}, 0, d)
{padding}"
        )
    }

    /// The factor of the derivative that the z-loss adds, as text; empty without z-loss.
    fn squared(&self) -> String {
        if self.z_loss > 0.0 { format!(" * (all * {:e} + 1)", 2.0 * self.z_loss) } else { String::new() }
    }

    /// Statements that compute `factor`, the derivative with respect to the loss of a row, 0 for
    /// ignored rows, and `powers_factor`, which the softmax is multiplied by.
    fn factors(&self) -> String {
        let (ignored, squared) = (self.ignored, self.squared());
        format!(
            "    factor = select(target == {ignored}, 0, reshape(load(d_loss, (1), (block.x)), (1,1)))
    powers_factor = factor{squared}
"
        )
    }

    fn forward_text(&self) -> String {
        let head = self.matrix("input ", "logits");
        let (sums, target, loss) = (self.sums(), self.target(), self.loss());
        format!(
            "tile cross_entropy {{
{head}    input  targets: i32 M:1
    output loss: f32 M:1
    output lse: f32 M:1
    grid M
{target}{sums}{loss}    store(lse, (block.x), reshape(all, (1)))
}}
"
        )
    }

    fn backward_text(&self) -> String {
        let (chunk, chunks) = (self.chunk(), self.chunks());
        let shape = format!("(1,{chunk})");
        let (head, result) = self.matrices();
        let (load, _) = self.tile(&shape, "block.y");
        let (ignored, factors) = (self.ignored, self.factors());
        let (capped, derivative) = (self.capped(&load, None, "    "), self.derivative(&shape, "    "));
        format!(
            "tile d_cross_entropy {{
{head}    input  targets: i32 M:1
    input  lse: f32 M:1
    input  d_loss: f32 M:1
    grid M, {chunks}
    target = reshape(load(targets, (1), (block.x), {ignored}), (1,1))
    all = reshape(load(lse, (1), (block.x)), (1,1))
{factors}{capped}    column = index(block.y*{chunk}) + arange({shape}, 1)
{derivative}    store({result}, (block.x, block.y), {})
}}
",
            narrowed(self.element, "d")
        )
    }

    /// The backward of joined rows: a block has a chunk of all logits. A chunk is in one row, or
    /// covers the end of a row and the beginning of the next.
    fn joined_backward_text(&self) -> String {
        let CrossEntropy { vocabulary, element, ignored, .. } = self;
        let vector = VECTOR_BYTES / i64::from(element.bytes());
        let shape = format!("({CHUNK})");
        let matrix = |role: &str, name: &str| format!("    {role} {name}: {element} elements{{div={vector}}}:1\n");
        let (head, result) = match self.in_place {
            true => (matrix("inout ", "logits"), "logits"),
            false => (matrix("input ", "logits") + &matrix("output", "d_logits"), "d_logits"),
        };
        // Values of both rows: a row after the last one has no logits in this chunk.
        let of_row = |name: &str, row: &str| {
            format!(
                "    target = load(targets, (1), ({row}), {ignored})
    all = load(lse, (1), ({row}))
    factor = select(target == {ignored}, 0, load(d_loss, (1), ({row})))
    powers_factor = factor{}
    target_{name} = target
    all_{name} = all
    factor_{name} = factor
    powers_factor_{name} = powers_factor
",
                self.squared()
            )
        };
        let both = |name: &str| {
            format!(
                "    {name} = select(column < {vocabulary}, broadcast({name}_first, {shape}), broadcast({name}_second, {shape}))\n"
            )
        };
        let (first, second) = (of_row("first", "row"), of_row("second", "row + 1"));
        let all: String = ["all", "factor", "powers_factor", "target"].into_iter().map(both).collect();
        let capped = self.capped(&format!("load(logits, {shape}, (block.x))"), None, "    ");
        let derivative = self.derivative(&shape, "    ");
        format!(
            "tile d_cross_entropy_joined {{
{head}    input  targets: i32 M:1
    input  lse: f32 M:1
    input  d_loss: f32 M:1
    grid ceil(elements/{CHUNK})
{capped}    begin = reshape(index(block.x*{CHUNK}), (1))
    row = begin // {vocabulary}
{first}{second}    column = broadcast(begin - row * {vocabulary}, {shape}) + arange({shape}, 0)
{all}    column = select(column < {vocabulary}, column, column - {vocabulary})
{derivative}    store({result}, (block.x), {})
}}
",
            narrowed(self.element, "d")
        )
    }

    /// Whether the threads of a block hold a whole row in registers.
    fn keeps_rows(&self) -> bool {
        self.vocabulary.unsigned_abs().next_power_of_two() as i64 * i64::from(self.element.bytes()) <= KEPT_BYTES
    }

    fn combined_text(&self) -> String {
        let (head, result) = self.matrices();
        let (target, loss, factors) = (self.target(), self.loss(), self.factors());
        let store =
            |iteration: &str| format!("store({result}, (block.x, {iteration}), {})", narrowed(self.element, "d"));
        let body = match self.keeps_rows() {
            true => {
                let shape = format!("(1,{})", self.columns());
                let load = format!("load(logits, {shape}, (block.x, 0), -inf)");
                let inside = format!("column < {}", self.vocabulary);
                let capped = self.capped("row", Some(&inside).filter(|_| self.padded).map(String::as_str), "    ");
                let counted = if self.padded { format!("select({inside}, a, 0)") } else { "a".to_string() };
                let smooth = match self.smoothing > 0.0 {
                    true => format!("    sum = reduce_sum({counted}, 1)\n"),
                    false => String::new(),
                };
                let derivative = self.derivative(&shape, "    ");
                format!(
                    "    row = {load}
{target}    column = arange({shape}, 1)
{capped}    highest = reduce_max(a, 1)
    all = highest + log(reduce_sum(exp2((a - highest) * {LOG2_E}), 1))
{smooth}{loss}{factors}{derivative}    {}
",
                    store("0")
                )
            }
            false => {
                let (chunk, chunks) = (self.chunk(), self.chunks());
                let shape = format!("(1,{chunk})");
                let (load, _) = self.tile(&shape, "again");
                let sums = self.sums();
                let (capped, derivative) = (self.capped(&load, None, "        "), self.derivative(&shape, "        "));
                format!(
                    "{target}{sums}{loss}{factors}    loop again < {chunks} {{
{capped}        column = index(again*{chunk}) + arange({shape}, 1)
{derivative}        {}
    }}
",
                    store("again")
                )
            }
        };
        format!(
            "tile cross_entropy_with_gradient {{
{head}    input  targets: i32 M:1
    input  d_loss: f32 M:1
    output loss: f32 M:1
    grid M
{body}}}
"
        )
    }
}

impl Operator for CrossEntropy {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        self.checked()?;
        let text = if self.with_gradient { self.combined_text() } else { self.forward_text() };
        Ok(Sequence::new(vec![program(&text)?]))
    }

    /// Reads `logits`, `targets`, `lse` and `d_loss`, `M:1` of f32, and writes `d_logits`, or
    /// overwrites the logits with `in_place`. For the mean over the rows that are not ignored, pass
    /// a `d_loss` of 1 over their number.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        self.checked()?;
        if self.with_gradient {
            let because = "the forward writes them, with `with_gradient`";
            return Err(OperatorError::NoBackward { operator: "cross_entropy", because });
        }
        let text = if self.joined { self.joined_backward_text() } else { self.backward_text() };
        Ok(Sequence::new(vec![program(&text)?]))
    }
}
