//! Softmax and norms of the rows of a matrix.
//!
//! Law: one block computes a row, from the elements of that row alone, in an order that depends on
//! its length alone. So a row has the same bits whatever the other rows are and however many there
//! are.
//!
//! Tensors of rows are `(M,length):(x_pitch,1)`, where `M` is the number of rows and `x_pitch` is
//! the distance between two rows of `x`, in elements. Each tensor has its own pitch, named after
//! it, except that a derivative has the pitch of its tensor: `d_x` is `(M,length):(x_pitch,1)`.

use tilewright_kernel::machine::Machine;
use tilewright_tile::{Element, Sequence, TotalTiles};

use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{GradientTiles, LONGEST_ROW_IN_A_TILE, RowTiles, Sums, check_float, narrowed, program, widened};
use crate::{Operator, OperatorKernels};

/// A sequence of one program.
fn single(text: &str) -> Result<Sequence, OperatorError> {
    Ok(Sequence::new(vec![program(text)?]))
}

options! {
    /// The softmax of each row: `exp(x)` over the sum of `exp(x)` along the row. Input `x`, output
    /// `y`.
    ///
    /// The greatest element of the row is subtracted first. A row that contains NaN becomes NaN,
    /// and so does a row of minus infinities, as in PyTorch.
    ///
    /// ```
    /// use tilewright_ops::{Operator, Softmax};
    ///
    /// let softmax = Softmax { length: 2, ..Softmax::default() };
    /// let sizes = [("M", 1), ("x_pitch", 2), ("y_pitch", 2)];
    /// let results = softmax.forward()?.run(&sizes, &[("x", vec![3.0, 3.0])])?;
    /// assert_eq!(results, [("y".to_string(), vec![Some(0.5), Some(0.5)])]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Softmax("softmax") of rows {}
}

options! {
    /// The logarithm of the softmax of each row: `x` minus the greatest element, minus the
    /// logarithm of the sum of `exp(x - greatest)`. Input `x`, output `y`.
    ///
    /// ```
    /// use tilewright_ops::{LogSoftmax, Operator};
    ///
    /// let operator = LogSoftmax { length: 2, ..LogSoftmax::default() };
    /// let sizes = [("M", 1), ("x_pitch", 2), ("y_pitch", 2)];
    /// let results = operator.forward()?.run(&sizes, &[("x", vec![3.0, 3.0])])?;
    /// assert!((results[0].1[0].unwrap() + 2_f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct LogSoftmax("log_softmax") of rows {}
}

/// The statements that compute the greatest element of a row in `greatest`, and the sum of the
/// exponentials relative to it in `total`.
///
/// A long row is read once: when a chunk has a greater element, the sum so far is rescaled (online
/// softmax).
fn powers(rows: RowTiles) -> String {
    let load = rows.load("x", ", -inf");
    if rows.fits() {
        return format!(
            "    a = {load}
    greatest = reduce_max(a, 1)
    e = exp(a - greatest)
    total = reduce_sum(e, 1)
"
        );
    }
    // The start value is the least finite f32 rather than minus infinity, because the difference of
    // two infinities is NaN.
    format!(
        "    loop chunk < {} with greatest = broadcast(f32(-3.4028235e38), (1,1)), total = broadcast(f32(0), (1,1)) {{
        a = {load}
        new = max(greatest, reduce_max(a, 1))
        next new, fma(total, exp(greatest - new), reduce_sum(exp(a - new), 1))
    }} -> greatest, total
",
        rows.chunks()
    )
}

/// The statements for each tile of a row: unchanged if the row is one tile, or in a loop over the
/// chunks of a long row.
fn for_each_tile(rows: RowTiles, statements: &str) -> String {
    if rows.fits() {
        return statements.lines().map(|line| format!("    {line}\n")).collect();
    }
    let body: String = statements.lines().map(|line| format!("        {line}\n")).collect();
    format!("    loop chunk < {} {{\n{body}    }}\n", rows.chunks())
}

/// The rows of an operator without sums over rows. In its backward, the options set the rows and
/// warps of a tile if a row is in one tile.
fn rows_of(
    operator: &'static str,
    (length, element, alignment): (i64, Element, i64),
    of_backward: Option<[i64; 2]>,
) -> Result<RowTiles, OperatorError> {
    let rows = RowTiles::new(length, element, alignment).checked(operator)?;
    let Some([many, warps]) = of_backward else { return Ok(rows) };
    let tiles = GradientTiles::new(rows, Sums::None).given(operator, [many, warps, 0])?;
    Ok(if rows.fits() { rows.of_gradient(tiles) } else { rows })
}

impl Softmax {
    fn rows(&self, is_backward: bool) -> Result<RowTiles, OperatorError> {
        let Softmax { length, element, alignment, backward_rows, backward_warps } = *self;
        let of_backward = is_backward.then_some([backward_rows, backward_warps]);
        rows_of("softmax", (length, element, alignment), of_backward)
    }

    fn text(rows: RowTiles) -> String {
        let head = rows.tensor("input ", "x") + &rows.tensor("output", "y") + &rows.grid();
        let tile = match rows.fits() {
            true => rows.store("y", "e * recip(total)"),
            false => {
                format!("a = {}\n{}", rows.load("x", ", -inf"), rows.store("y", "exp(a - greatest) * recip(total)"))
            }
        };
        format!("tile softmax {{\n{head}{}{}}}\n", powers(rows), for_each_tile(rows, &tile))
    }
}

impl Operator for Softmax {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        single(&Softmax::text(self.rows(false)?))
    }

    /// Reads `x` and `d_y`; the softmax is recomputed.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        let rows = self.rows(true)?;
        let head = [rows.tensor("input ", "x"), rows.tensor("input ", "d_y"), rows.tensor("output", "d_x")].concat();
        if rows.fits() {
            // Both tiles are in flight before a thread waits, and both sums are exchanged together.
            let body = format!(
                "    a = {}
    d = {}
    greatest = reduce_max(a, 1)
    e = exp(a - greatest)
    total = reduce_sum(e, 1)
    inner = reduce_sum(d * e, 1)
    scale = recip(total)
    shift = inner * scale * -scale
    {}
",
                rows.load("x", ", -inf"),
                rows.load("d_y", ""),
                rows.store("d_x", "fma(d, scale, shift) * e")
            );
            return single(&format!("tile d_softmax {{\n{head}{}{body}}}\n", rows.grid()));
        }
        let (a, d) = (rows.load("x", ", -inf"), rows.load("d_y", ""));
        let inner = format!(
            "    loop chunk < {} with inner = broadcast(f32(0), (1,1)) {{
        y = exp({a} - greatest) * recip(total)
        next inner + reduce_sum({d} * y, 1)
    }} -> inner
",
            rows.chunks()
        );
        let store =
            format!("y = exp({a} - greatest) * recip(total)\n{}", rows.store("d_x", &format!("({d} - inner) * y")));
        let store = for_each_tile(rows, &store);
        single(&format!("tile d_softmax {{\n{head}{}{}{inner}{store}}}\n", rows.grid(), powers(rows)))
    }
}

impl LogSoftmax {
    fn rows(&self, is_backward: bool) -> Result<RowTiles, OperatorError> {
        let LogSoftmax { length, element, alignment, backward_rows, backward_warps } = *self;
        let of_backward = is_backward.then_some([backward_rows, backward_warps]);
        rows_of("log_softmax", (length, element, alignment), of_backward)
    }

    fn text(rows: RowTiles) -> String {
        let head = rows.tensor("input ", "x") + &rows.tensor("output", "y") + &rows.grid();
        let load = if rows.fits() { String::new() } else { format!("a = {}\n", rows.load("x", ", -inf")) };
        let tile = load + &rows.store("y", "a - greatest - log(total)");
        format!("tile log_softmax {{\n{head}{}{}}}\n", powers(rows), for_each_tile(rows, &tile))
    }
}

impl Operator for LogSoftmax {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        single(&LogSoftmax::text(self.rows(false)?))
    }

    /// Reads `x` and `d_y`; the softmax is recomputed.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        let rows = self.rows(true)?;
        let head = [rows.tensor("input ", "x"), rows.tensor("input ", "d_y"), rows.tensor("output", "d_x")].concat();
        if rows.fits() {
            let body = format!(
                "    a = {}
    d = {}
    greatest = reduce_max(a, 1)
    sum = reduce_sum(d, 1)
    e = exp(a - greatest)
    total = reduce_sum(e, 1)
    {}
",
                rows.load("x", ", -inf"),
                rows.load("d_y", ""),
                rows.store("d_x", "fma(e, recip(total) * -sum, d)")
            );
            return single(&format!("tile d_log_softmax {{\n{head}{}{body}}}\n", rows.grid()));
        }
        let (a, d) = (rows.load("x", ", -inf"), rows.load("d_y", ""));
        let sum = format!(
            "    loop chunk < {} with sum = broadcast(f32(0), (1,1)) {{
        next sum + reduce_sum({d}, 1)
    }} -> sum
",
            rows.chunks()
        );
        let store = rows.store("d_x", &format!("{d} - exp({a} - greatest) * recip(total) * sum"));
        let store = for_each_tile(rows, &store);
        single(&format!("tile d_log_softmax {{\n{head}{}{}{sum}{store}}}\n", rows.grid(), powers(rows)))
    }
}

options! {
    /// RMS norm: each row over its root mean square: `x * rsqrt(mean(x^2) + epsilon) * weight`.
    /// Input `x`, output `y`.
    ///
    /// With `residual` the norm is that of `x + residual`, and this sum, rounded to the type of the
    /// elements, is a second output, `sum`. The backward then reads `sum` instead of `x`, and
    /// `d_sum`, and writes `d_x`, which is the derivative with respect to `residual` too.
    ///
    /// ```
    /// use tilewright_ops::{Operator, RmsNorm};
    ///
    /// let norm = RmsNorm { length: 2, residual: true, epsilon: 0.0, ..RmsNorm::default() };
    /// let sizes = [("M", 1), ("x_pitch", 2), ("residual_pitch", 2), ("sum_pitch", 2), ("y_pitch", 2)];
    /// let results = norm.forward()?.run(&sizes, &[("x", vec![1.0, 1.0]), ("residual", vec![2.0, -4.0])])?;
    /// assert_eq!(results[0], ("sum".to_string(), vec![Some(3.0), Some(-3.0)]));
    /// assert_eq!(results[1].0, "y");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct RmsNorm("rms_norm") of rows {
        /// The number that is added to the mean square.
        epsilon: f64 = 1e-5,
        /// Whether there is an input `weight` with a number for each element of a row.
        weight: bool = false,
        /// The type of the weights.
        weight_element: Element = Element::F32,
        /// Whether 1 is added to the stored weights, as in Gemma: rows are multiplied by `weight +
        /// 1`.
        weight_less_one: bool = false,
        /// Whether an input `residual` is added first, and the sum is written to the output `sum`.
        residual: bool = false,
        /// The tiles that a block of the backward processes in a loop. 0 derives it from
        /// `about_rows`.
        backward_tiles: i64 = 0,
        /// The approximate number of rows of the backward, from which its grid is sized to one wave
        /// of a large device. 0 if it is not known.
        about_rows: i64 = 0,
    }
}

options! {
    /// Layer norm: each row minus its mean, over the root of its variance: `(x - mean) *
    /// rsqrt(variance + epsilon) * weight + bias`. Input `x`, output `y`. `residual` is as in
    /// [`RmsNorm`].
    ///
    /// ```
    /// use tilewright_ops::{LayerNorm, Operator};
    ///
    /// let norm = LayerNorm { length: 2, epsilon: 0.0, ..LayerNorm::default() };
    /// let sizes = [("M", 1), ("x_pitch", 2), ("y_pitch", 2)];
    /// let results = norm.forward()?.run(&sizes, &[("x", vec![1.0, 3.0])])?;
    /// assert_eq!(results, [("y".to_string(), vec![Some(-1.0), Some(1.0)])]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct LayerNorm("layer_norm") of rows {
        /// The number that is added to the variance.
        epsilon: f64 = 1e-5,
        /// Whether there is an input `weight` with a number for each element of a row.
        weight: bool = false,
        /// Whether there is an input `bias` with a number for each element of a row.
        bias: bool = false,
        /// The type of the weights and of the bias.
        weight_element: Element = Element::F32,
        /// Whether an input `residual` is added first, and the sum is written to the output `sum`.
        residual: bool = false,
        /// The tiles that a block of the backward processes in a loop. 0 derives it from
        /// `about_rows`.
        backward_tiles: i64 = 0,
        /// The approximate number of rows of the backward, from which its grid is sized to one wave
        /// of a large device. 0 if it is not known.
        about_rows: i64 = 0,
    }
}

/// What is common to the norms.
#[derive(Clone, Copy)]
pub(crate) struct Norm {
    pub(crate) operator: &'static str,
    pub(crate) rows: RowTiles,
    /// The tiles of the backward.
    pub(crate) tiles: GradientTiles,
    /// The tiles of the program that adds the sums of all blocks.
    pub(crate) totals: TotalTiles,
    pub(crate) epsilon: f64,
    /// Whether the mean is subtracted.
    pub(crate) centred: bool,
    /// Whether there is a weight, and whether there is a bias.
    pub(crate) weight: bool,
    pub(crate) weight_less_one: bool,
    pub(crate) bias: bool,
    pub(crate) weight_element: Element,
    pub(crate) residual: bool,
}

impl Norm {
    fn checked(self) -> Result<Norm, OperatorError> {
        let operator = self.operator;
        self.rows.checked(operator)?;
        check_float(operator, "weight_element", self.weight_element)?;
        if !self.rows.fits() {
            let because = format!("a row of a norm has at most {LONGEST_ROW_IN_A_TILE} elements");
            return Err(OperatorError::value(operator, "length", self.rows.length, because));
        }
        if !(self.epsilon >= 0.0 && self.epsilon.is_finite()) {
            return Err(OperatorError::value(operator, "epsilon", self.epsilon, "it is a number from 0"));
        }
        Ok(self)
    }

    /// The kernels of the forward or of the backward.
    fn kernels(&self, is_backward: bool, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        let sequence = if is_backward { self.backward()? } else { single(&self.text())? };
        OperatorKernels::compiled(&sequence, machine)
    }

    /// The program of the forward.
    fn text(&self) -> String {
        let Norm { rows, centred, weight_element, residual, .. } = *self;
        // Rows with a residual reach the memory bandwidth without this.
        let rows = if centred && !residual { rows.centred() } else { rows };
        let mut head = String::new();
        let mut body = String::new();
        match self.residual {
            true => {
                head += &(rows.tensor("input ", "x") + &rows.tensor("input ", "residual"));
                head += &rows.tensor("output", "sum");
                let both = format!("{} + {}", rows.load("x", ""), rows.load("residual", ""));
                // The norm is that of the rounded sum, which the backward reads.
                body += &format!("    s = {}\n", narrowed(rows.element, &format!("({both})")));
                body += &format!("    store(sum, {}, s)\n    a = {}\n", rows.place(), widened(rows.element, "s"));
            }
            false => {
                head += &rows.tensor("input ", "x");
                body += &format!("    a = {}\n", rows.load("x", ""));
            }
        }
        let length = rows.length;
        let vector =
            |name: &str| widened(weight_element, &format!("reshape(load({name}, ({length}), (0)), (1,{length}))"));
        if centred {
            body += &format!("    a = a - reduce_sum(a, 1) / {length}\n");
        }
        body += &format!("    y = a * rsqrt(reduce_sum(a * a, 1) / {length} + {:e})\n", self.epsilon);
        if self.weight {
            head += &format!("    input  weight: {weight_element} {length}:1\n");
            let plus = if self.weight_less_one { " + 1" } else { "" };
            body += &format!("    y = y * ({}{plus})\n", vector("weight"));
        }
        if self.bias {
            head += &format!("    input  bias: {weight_element} {length}:1\n");
            body += &format!("    y = y + {}\n", vector("bias"));
        }
        head += &rows.tensor("output", "y");
        format!("tile {} {{\n{head}{}{body}    {}\n}}\n", self.operator, rows.grid(), rows.store("y", "y"))
    }
}

impl RmsNorm {
    /// The norm, with its backward tuned for a machine; None for an H200.
    fn norm(&self, machine: Option<&Machine>) -> Result<Norm, OperatorError> {
        let RmsNorm { length, element, alignment, epsilon, weight, weight_less_one, weight_element, residual, .. } =
            *self;
        let operator = "rms_norm";
        let rows = RowTiles::new(length, element, alignment).checked(operator)?;
        let given = [self.backward_rows, self.backward_warps, self.backward_tiles];
        let norm = Norm {
            operator,
            rows,
            tiles: GradientTiles::new(rows, Sums::Some).about(self.about_rows, machine).given(operator, given)?,
            epsilon,
            centred: false,
            weight,
            weight_less_one,
            bias: false,
            weight_element,
            residual,
            totals: TotalTiles::new(length, machine),
        };
        norm.checked()
    }
}

impl Operator for RmsNorm {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        single(&self.norm(None)?.text())
    }

    /// Reads `x` and `d_y`, and `weight` if there is one; writes `d_x` and `d_weight`. With
    /// `residual` it reads `sum`, `d_y` and `d_same`, the derivative with respect to the output
    /// `sum`, and writes `d_sum`, which is the derivative with respect to `x` and to `residual`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        self.norm(None)?.backward()
    }

    fn kernels(&self, is_backward: bool, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        self.norm(Some(machine))?.kernels(is_backward, machine)
    }
}

impl LayerNorm {
    /// The norm, with its backward tuned for a machine; None for an H200.
    fn norm(&self, machine: Option<&Machine>) -> Result<Norm, OperatorError> {
        let LayerNorm { length, element, alignment, epsilon, weight, bias, weight_element, residual, .. } = *self;
        let operator = "layer_norm";
        let rows = RowTiles::new(length, element, alignment).checked(operator)?;
        let given = [self.backward_rows, self.backward_warps, self.backward_tiles];
        let norm = Norm {
            operator,
            rows,
            tiles: GradientTiles::new(rows, Sums::Some).about(self.about_rows, machine).given(operator, given)?,
            epsilon,
            centred: true,
            weight,
            weight_less_one: false,
            bias,
            weight_element,
            residual,
            totals: TotalTiles::new(length, machine),
        };
        norm.checked()
    }
}

impl Operator for LayerNorm {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        single(&self.norm(None)?.text())
    }

    /// As in [`RmsNorm`]; also writes `d_bias`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        self.norm(None)?.backward()
    }

    fn kernels(&self, is_backward: bool, machine: &Machine) -> Result<OperatorKernels, OperatorError> {
        self.norm(Some(machine))?.kernels(is_backward, machine)
    }
}
