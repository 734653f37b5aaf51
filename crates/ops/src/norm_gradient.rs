//! The backward of norms.
//!
//! Law: with `x` a row of `n` elements, `c` the row less its mean (RMS norm subtracts none), `s`
//! the reciprocal of the root of `mean(c^2) + epsilon`, `d` the derivative by the row of the
//! result, and `g = d * weight`,
//!
//! ```text
//! d_x      = s g - s^3 c sum(g c) / n - s sum(g) / n        (the last term of layer norm alone)
//! d_weight = sum over rows of d c s
//! d_bias   = sum over rows of d
//! ```
//!
//! A block takes some tiles of rows, one after another, and keeps its sums over rows in registers.
//! The compiler of tile programs issues the loads of a tile some tiles ahead. A block writes its
//! sums once, and a second program adds those of all blocks. Both orders depend on the number of
//! rows alone.

use tilewright_tile::Sequence;

use crate::error::OperatorError;
use crate::row_blocks::power_from;
use crate::row_tiles::{GradientTiles, narrowed, program, widened};
use crate::rows::Norm;

/// The longest row of which threads keep the weights.
const LONGEST_WITH_WEIGHTS: i64 = 8192;

impl Norm {
    /// The vectors whose derivatives are sums over rows.
    fn vectors(&self) -> Vec<&'static str> {
        [("weight", self.weight), ("bias", self.bias)].into_iter().filter(|own| own.1).map(|own| own.0).collect()
    }

    /// The programs of the backward.
    pub(crate) fn backward(&self) -> Result<Sequence, OperatorError> {
        let mut programs = vec![program(&self.gradient_text())?];
        if !self.vectors().is_empty() {
            programs.push(program(&self.totals_text())?);
        }
        Ok(Sequence::new(programs))
    }

    /// How many blocks there are, as a text of sizes.
    fn blocks(&self) -> String {
        match self.tiles.rows * self.tiles.tiles {
            1 => "M".to_string(),
            rows => format!("ceil(M/{rows})"),
        }
    }

    /// The tensors that are read row by row: the row, the derivative by the result, and the
    /// derivative by the output `sum` of the forward, which is the row as it is.
    fn read(&self) -> Vec<(&'static str, &'static str)> {
        let same = self.residual.then_some(("same", "d_same"));
        [("x", if self.residual { "sum" } else { "x" }), ("d", "d_y")].into_iter().chain(same).collect()
    }

    fn gradient_text(&self) -> String {
        let Norm { rows, centred, weight_element, .. } = *self;
        let GradientTiles { tiles, .. } = self.tiles;
        let rows = rows.of_gradient(self.tiles);
        let (many, length) = (rows.rows(), rows.length);
        let source = self.read()[0].1;
        let at = if tiles == 1 { "(block.x, 0)".to_string() } else { format!("(block.x*{tiles} + i, 0)") };

        let mut head: String = self.read().into_iter().map(|(_, tensor)| rows.tensor("input ", tensor)).collect();
        let mut before = String::new();
        let (mut weight, mut weighted) = (String::new(), "d");
        if self.weight {
            head += &format!("    input  weight: {weight_element} {length}:1\n");
            let plus = if self.weight_less_one { " + 1" } else { "" };
            let all = widened(weight_element, &format!("reshape(load(weight, ({length}), (0)), (1,{length}))"));
            weight = format!("w = {all}{plus}\n");
            weighted = "d * w";
        }
        let mut body = String::new();
        let load = |tensor: &str| format!("load({tensor}, {}, {at})", rows.shape());
        for (name, tensor) in self.read() {
            body += &format!("{name} = {}\n", widened(rows.element, &load(tensor)));
        }
        // Threads have no room for the weights of the longest rows: they are read twice with each
        // row.
        match length > LONGEST_WITH_WEIGHTS {
            true => body += &weight,
            false => before += &weight.replace("w =", "    w ="),
        }
        head += &rows.tensor("output", &format!("d_{source}"));
        for name in self.vectors() {
            head += &format!("    output parts_of_d_{name}: f32 ({},{length}):({length},1)\n", self.blocks());
        }

        let one_over = format!("{:e}", 1.0 / length as f64);
        body += &format!("g = {weighted}\n");
        if centred {
            body += &format!("mean = reduce_sum(x, 1) * {one_over}\nsum_of_g = reduce_sum(g, 1)\nc = x - mean\n");
        } else {
            body += "c = x\n";
        }
        let first = if tiles == 1 { format!("block.x*{many}") } else { format!("block.x*{} + i*{many}", tiles * many) };
        body += &format!(
            "squares = reduce_sum(c * c, 1)
products = reduce_sum(g * c, 1)
root = rsqrt(squares * {one_over} + {:e})
s = select(index({first}) + arange(({many},1), 0) < size(M), root, 0)
factor = products * s * s * s * (-{one_over})
",
            self.epsilon
        );
        if self.weight && length > LONGEST_WITH_WEIGHTS {
            body += &format!("{weight}g = d * w\n");
        }
        let mut result = "fma(c, factor, g * s)".to_string();
        if centred {
            body += &format!("shift = sum_of_g * s * (-{one_over})\n");
            result = "fma(c, factor, fma(g, s, shift))".to_string();
        }
        if self.residual {
            result += " + same";
        }
        body += &format!("store(d_{source}, {at}, {})\n", narrowed(rows.element, &result));
        let sums = self.vectors().into_iter().map(|name| match name {
            "weight" => "fma(d * c, s, of_weight)",
            _ => "of_bias + d",
        });
        let carried: Vec<String> = self.vectors().into_iter().map(|name| format!("of_{name}")).collect();
        let begin: Vec<String> =
            carried.iter().map(|name| format!("{name} = broadcast(f32(0), ({many},{length}))")).collect();
        let sums: Vec<String> = sums.map(str::to_string).collect();
        let or_nothing = |word: &str, all: &[String]| match all {
            [] => String::new(),
            all => format!("{word} {}", all.join(", ")),
        };
        let (with, next) = (or_nothing(" with", &begin), or_nothing("next", &sums) + "\n");
        let results = or_nothing(" ->", &carried);
        let inner: String = (body + &next).lines().map(|line| format!("        {line}\n")).collect();
        let mut behind = String::new();
        for (name, own) in self.vectors().into_iter().zip(&carried) {
            behind += &format!("    store(parts_of_d_{name}, (block.x, 0), reduce_sum({own}, 0))\n");
        }
        let grid = rows.grid_of(tiles);
        let name = self.operator;
        format!(
            "tile d_{name} {{\n{head}{grid}{before}    loop i < {tiles}{with} {{\n{inner}    }}{results}\n{behind}}}\n"
        )
    }

    /// The program that adds the parts of all blocks.
    fn totals_text(&self) -> String {
        let Norm { rows, weight_element, .. } = *self;
        let length = rows.length;
        let blocks = self.blocks();
        let columns = self.totals.columns.min(power_from(length));
        let many = self.totals.elements_at_once / columns;
        let names: Vec<String> = self.vectors().into_iter().map(|name| format!("d_{name}")).collect();
        let mut head = String::new();
        let mut behind = String::new();
        for name in &names {
            head += &format!("    input  parts_of_{name}: f32 ({blocks},{length}):({length},1)\n");
            head += &format!("    output {name}: {weight_element} {length}:1\n");
            let sum = narrowed(weight_element, &format!("reshape(of_{name}, ({columns}))"));
            behind += &format!("    store({name}, (block.x), {sum})\n");
        }
        let each = |write: &dyn Fn(&String) -> String| names.iter().map(write).collect::<Vec<_>>().join(", ");
        let begin = each(&|name| format!("of_{name} = broadcast(f32(0), (1,{columns}))"));
        let next =
            each(&|name| format!("of_{name} + reduce_sum(load(parts_of_{name}, ({many},{columns}), (i, block.x)), 0)"));
        let results = each(&|name| format!("of_{name}"));
        format!(
            "tile total_{} {{
{head}    grid ceil({length}/{columns})
    loop i < ceil({blocks}/{many}) with {begin} {{
        next {next}
    }} -> {results}
{behind}}}
",
            names.join("_")
        )
    }
}
