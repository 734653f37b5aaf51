//! Mixture of experts: each token is routed to some of many experts.
//!
//! Law: choice `a = t*chosen + i` is the `i`-th expert of token `t`. The place of a choice is a row
//! of matrices with `P` rows. The rows of an expert are contiguous there, in the order of the
//! choices, and begin at a multiple of [`TILE_ROWS`]. Padding rows between experts are 0.
//!
//! | operator | result |
//! |---|---|
//! | [`Route`] | `experts` and `weights` of each token |
//! | [`ExpertPlaces`] | `places` of choices, `choices` of places, and where each expert begins |
//! | [`Permute`] | the rows of tokens at the places of their choices |
//! | [`ExpertProduct`] | the rows of each expert times its matrix |
//! | [`Combine`] | for each token the weighted sum of its rows |
//!
//! Derivatives are sums in fixed orders: over the choices of a token in order, and over the rows of
//! an expert from the first to the last. No atomics are used.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::counting::{Counting, KEYS};
use crate::error::OperatorError;
use crate::options::options;
use crate::row_blocks::{RowBlocks, power_from};
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The rows of a tile of a GEMM: the rows of an expert begin at a multiple of it.
pub const TILE_ROWS: i64 = 128;
/// The columns of a tile of a GEMM, and its step along the summed mode.
const TILE_COLUMNS: i64 = 256;
const STEP: i64 = 64;
/// The greatest number of experts, and the greatest number that a token chooses.
const MOST_EXPERTS: i64 = 1024;
const MOST_CHOSEN: i64 = 16;
/// The elements of the largest tile of a route.
const ROUTE_TILE: i64 = 8192;

fn check_experts(operator: &'static str, experts: i64) -> Result<(), OperatorError> {
    match (1..=MOST_EXPERTS).contains(&experts) {
        true => Ok(()),
        false => {
            let because = format!("there are from 1 to {MOST_EXPERTS} experts");
            Err(OperatorError::value(operator, "experts", experts, because))
        }
    }
}

fn check_chosen(operator: &'static str, chosen: i64, experts: i64) -> Result<(), OperatorError> {
    let most = experts.min(MOST_CHOSEN);
    match (1..=most).contains(&chosen) {
        true => Ok(()),
        false => {
            Err(OperatorError::value(operator, "chosen", chosen, format!("a token chooses from 1 to {most} experts")))
        }
    }
}

fn sequence(texts: &[String]) -> Result<Sequence, OperatorError> {
    Ok(Sequence::new(texts.iter().map(|text| program(text)).collect::<Result<_, _>>()?))
}

/// A number of rows that suffices for the places of this many choices, however they are distributed
/// over the experts: the size `P`.
///
/// ```
/// use tilewright_ops::expert_rows;
///
/// // Each of 8 experts may have 127 rows of padding.
/// assert_eq!(expert_rows(1000, 8), 1920);
/// ```
pub fn expert_rows(choices: i64, experts: i64) -> i64 {
    (choices + (TILE_ROWS - 1) * experts) / TILE_ROWS * TILE_ROWS
}

options! {
    /// The router: for each token the experts with the greatest logits, in descending order, and
    /// their weights. Input: `logits`, `(T,experts)`. Outputs: `experts` of i32 and `weights` of
    /// f32, both `(T,chosen)`. All are contiguous. Of equal logits the first counts as the greater.
    ///
    /// ```
    /// use tilewright_ops::{Operator, Route};
    ///
    /// let route = Route { experts: 4, chosen: 2, ..Route::default() };
    /// let results = route.forward()?.run(&[("T", 1)], &[("logits", vec![0.0, 2.0, 1.0, 2.0])])?;
    /// assert_eq!(results[0], ("experts".to_string(), vec![Some(1.0), Some(3.0)]));
    /// assert_eq!(results[1], ("weights".to_string(), vec![Some(0.5), Some(0.5)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Route("route") {
        /// The number of experts.
        experts: i64 = 0,
        /// The number of experts that a token chooses.
        chosen: i64 = 0,
        /// The type of the logits.
        element: Element = Element::F32,
        /// Whether the weights are those of the softmax over all experts, whose sum over the chosen
        /// ones is less than 1. If not, the softmax is over the chosen experts only.
        over_all: bool = false,
    }
}

impl Route {
    fn checked(&self) -> Result<(), OperatorError> {
        check_experts("route", self.experts)?;
        check_chosen("route", self.chosen, self.experts)?;
        check_float("route", "element", self.element)
    }

    /// The tokens of a block.
    fn tokens(&self, elements_of_token: i64) -> i64 {
        (ROUTE_TILE / elements_of_token).clamp(1, 8)
    }
}

impl Operator for Route {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        self.checked()?;
        let Route { experts, chosen, element, over_all } = *self;
        let tokens = self.tokens(power_from(experts));
        let load = widened(element, &format!("load(logits, ({tokens},{experts}), (block.x, 0), -inf)"));
        let among = if over_all { "a" } else { "best" };
        let text = format!(
            "tile route {{
    input  logits: {element} (T,{experts}):({experts},1)
    output experts: i32 (T,{chosen}):({chosen},1)
    output weights: f32 (T,{chosen}):({chosen},1)
    grid ceil(T/{tokens})
    a = {load}
    best = top(a, 1, {chosen})
    store(experts, (block.x, 0), top_places(a, 1, {chosen}))
    greatest = reduce_max({among}, 1)
    total = reduce_sum(exp({among} - greatest), 1)
    store(weights, (block.x, 0), exp(best - greatest) / total)
}}
"
        );
        sequence(&[text])
    }

    /// Reads `experts`, `weights`, `d_weights`, and with `over_all` `logits`; writes `d_logits`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        self.checked()?;
        let Route { experts, chosen, element, over_all } = *self;
        let tokens = self.tokens(power_from(experts) * power_from(chosen));
        // A thread has 16 elements of the largest tile.
        let warps = power_from(tokens * power_from(experts) * power_from(chosen) / 512).clamp(1, 16);
        let (all, some) = (format!("({tokens},{experts})"), format!("({tokens},{chosen})"));
        let three = format!("({tokens},{chosen},{experts})");
        let few = format!("({tokens},{chosen},1)");
        // The softmax over the chosen experts: the derivative of each logit is w (d - inner). For
        // the softmax over all experts, an expert that is not chosen has d = 0: its derivative is
        // -inner times its softmax.
        let spread = |value: &str| format!("reshape(reduce_sum(select(which == column, {value}, 0), 1), {all})");
        let (logits, d) = match over_all {
            true => {
                let load = widened(element, &format!("load(logits, {all}, (block.x, 0), -inf)"));
                let spread = spread(&format!("reshape(d, {few})"));
                (
                    format!("    input  logits: {element} (T,{experts}):({experts},1)\n"),
                    format!(
                        "    a = {load}
    e = exp(a - reduce_max(a, 1))
    d_logit = e / reduce_sum(e, 1) * ({spread} - inner)
"
                    ),
                )
            }
            false => {
                (String::new(), format!("    d_logit = {}\n", spread(&format!("reshape(w * (d - inner), {few})"))))
            }
        };
        let text = format!(
            "tile d_route {{
    input  experts: i32 (T,{chosen}):({chosen},1)
    input  weights: f32 (T,{chosen}):({chosen},1)
    input  d_weights: f32 (T,{chosen}):({chosen},1)
{logits}    output d_logits: {element} (T,{experts}):({experts},1)
    grid ceil(T/{tokens})
    warps {warps}
    which = reshape(load(experts, {some}, (block.x, 0), -1), {few})
    column = arange({three}, 2)
    w = load(weights, {some}, (block.x, 0))
    d = load(d_weights, {some}, (block.x, 0))
    inner = reduce_sum(w * d, 1)
{d}    store(d_logits, (block.x, 0), {})
}}
",
            narrowed(element, "d_logit")
        );
        sequence(&[text])
    }
}

options! {
    /// The places of the choices of tokens. Input: `experts`, `A:1` of i32, the expert of each
    /// choice; a choice with a negative expert is dropped. Outputs, of i32:
    ///
    /// | output | shape | contents |
    /// |---|---|---|
    /// | `places` | `A:1` | the row of each choice, -1 if the choice is dropped |
    /// | `choices` | `P:1` | the choice of each row, -1 for padding |
    /// | `tile_experts` | `ceil(P/128):1` | the expert of each 128 rows, `experts` for padding |
    /// | `first_tiles` | `experts:1` | the index of the first tile of each expert |
    /// | `tiles` | `experts:1` | the number of tiles of each expert |
    ///
    /// `P` is the number of rows that [`expert_rows`] returns.
    ///
    /// ```
    /// use tilewright_ops::{ExpertPlaces, Operator, expert_rows};
    ///
    /// let places = ExpertPlaces { experts: 2 };
    /// let sizes = [("A", 3), ("P", expert_rows(3, 2))];
    /// let results = places.forward()?.run(&sizes, &[("experts", vec![1.0, 0.0, 1.0])])?;
    /// let found = results.iter().find(|(name, _)| name == "places").unwrap();
    /// assert_eq!(found.1, [128.0, 0.0, 129.0].map(Some));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct ExpertPlaces("expert_places") {
        /// The number of experts.
        experts: i64 = 0,
    }
}

impl Operator for ExpertPlaces {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let experts = self.experts;
        check_experts("expert_places", experts)?;
        let key = format!("select(own < {experts}, own, -1)");
        let counting = Counting { suffix: "_experts".to_string(), keys: "A", source: "experts", bins: experts, key };
        let none = "tile no_choices {
    output choices: i32 P:1
    grid ceil(P/2048)
    warps 8
    store(choices, (block.x), broadcast(i32(-1), (2048)))
}
"
        .to_string();
        let columns = 128;
        let more = format!(
            "    output tile_experts: i32 ceil(P/{TILE_ROWS}):1
    output first_tiles: i32 {experts}:1
    output tiles: i32 {experts}:1
"
        );
        let also = format!(
            "    store(first_tiles, (0), reshape(begins, ({experts})))
    store(tiles, (0), reshape(parts, ({experts})))
    ends = begins + parts
    loop m < ceil(ceil(P/{TILE_ROWS})/{columns}) {{
        tile = index(m*{columns}) + arange(({experts},{columns}), 1)
        over = select(ends <= tile, i32(1), 0)
        store(tile_experts, (m), reshape(reduce_sum(over, 0), ({columns})))
    }}
"
        );
        let place = "    output places: i32 (A,1):(1,1)\n    inout  choices: i32 (P,1):(1,1)\n";
        let stores = format!(
            "    store(places, (block.x, 0), place)
    store(choices, (place, 0), index(block.x*{KEYS}) + arange(({KEYS},1), 0))
"
        );
        let texts = [
            none,
            counting.count_text("", ""),
            counting.begin_text(TILE_ROWS, &more, &also),
            counting.place_text(place, &stores),
        ];
        sequence(&texts)
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        Err(OperatorError::NoBackward { operator: "expert_places", because: "places are integers" })
    }
}

/// For each token, the sum of the rows of `from` at the places of its choices, multiplied by their
/// weights if there are any.
fn gathered_sum(
    name: &str,
    (from, to): (&str, &str),
    (blocks, chosen): (RowBlocks, i64),
    element: Element,
    weighted: bool,
) -> String {
    let blocks = blocks.single();
    let row = widened(element, &format!("load({from}, {}, (place, block.y))", blocks.shape()));
    let (weights, next) = match weighted {
        true => (
            format!("    input  weights: f32 (T,{chosen}):({chosen},1)\n"),
            format!("fma({row}, broadcast(load(weights, (1,1), (block.x, i)), {}), sum)", blocks.shape()),
        ),
        false => (String::new(), format!("sum + {row}")),
    };
    format!(
        "tile {name} {{
    input  {from}: {element} {}
    input  places: i32 (T,{chosen}):({chosen},1)
{weights}    output {to}: {element} {}
{}    loop i < {chosen} with sum = broadcast(f32(0), {}) {{
        place = load(places, (1,1), (block.x, i), -1)
        next {next}
    }} -> sum
    store({to}, (block.x, block.y), {})
}}
",
        blocks.layout("P"),
        blocks.layout("T"),
        blocks.grid("T"),
        blocks.shape(),
        narrowed(element, "sum"),
    )
}

options! {
    /// The dispatch: rows of tokens are copied to the places of their choices. Inputs: `x`,
    /// `(T,length)`, and `choices`, `P:1`. Output: `y`, `(P,length)`, in which padding rows are 0.
    /// All are contiguous.
    ///
    /// ```
    /// use tilewright_ops::{Operator, Permute};
    ///
    /// let permute = Permute { length: 1, chosen: 2, ..Permute::default() };
    /// let inputs = [("x", vec![5.0, 6.0]), ("choices", vec![2.0, -1.0, 1.0])];
    /// let results = permute.forward()?.run(&[("T", 2), ("P", 3)], &inputs)?;
    /// assert_eq!(results[0].1, [6.0, 0.0, 5.0].map(Some));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Permute("permute") {
        /// The elements of a row.
        length: i64 = 0,
        /// The number of experts that a token chooses.
        chosen: i64 = 0,
        /// The type of the elements.
        element: Element = Element::F32,
    }
}

impl Permute {
    fn blocks(&self) -> Result<RowBlocks, OperatorError> {
        check_chosen("permute", self.chosen, MOST_EXPERTS)?;
        check_float("permute", "element", self.element)?;
        RowBlocks::new("permute", self.length)
    }
}

impl Operator for Permute {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let (blocks, element, chosen) = (self.blocks()?, self.element, self.chosen);
        let rows = blocks.rows;
        let text = format!(
            "tile permute {{
    input  x: {element} {}
    input  choices: i32 (P,1):(1,1)
    output y: {element} {}
{}    token = load(choices, ({rows},1), (block.x, 0), -1) / {chosen}
    store(y, (block.x, block.y), load(x, {}, (token, block.y)))
}}
",
            blocks.layout("T"),
            blocks.layout("P"),
            blocks.grid("P"),
            blocks.shape(),
        );
        sequence(&[text])
    }

    /// Reads `d_y` and `places`, `(T,chosen)`, and writes `d_x`: the sum over the choices of each
    /// token, in order.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        let blocks = self.blocks()?;
        sequence(&[gathered_sum("d_permute", ("d_y", "d_x"), (blocks, self.chosen), self.element, false)])
    }
}

options! {
    /// The combine: for each token the sum of the rows of its choices, times their weights. Inputs:
    /// `x`, `(P,length)`, `places`, `(T,chosen)` of i32, and `weights`, `(T,chosen)` of f32.
    /// Output: `y`, `(T,length)`. All are contiguous.
    ///
    /// ```
    /// use tilewright_ops::{Combine, Operator};
    ///
    /// let combine = Combine { length: 1, chosen: 2, ..Combine::default() };
    /// let inputs = [("x", vec![5.0, 6.0]), ("places", vec![1.0, 0.0]), ("weights", vec![2.0, 3.0])];
    /// let results = combine.forward()?.run(&[("T", 1), ("P", 2)], &inputs)?;
    /// assert_eq!(results[0].1, [Some(27.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Combine("combine") {
        /// The elements of a row.
        length: i64 = 0,
        /// The number of experts that a token chooses.
        chosen: i64 = 0,
        /// The type of the elements.
        element: Element = Element::F32,
    }
}

impl Combine {
    fn blocks(&self) -> Result<RowBlocks, OperatorError> {
        check_chosen("combine", self.chosen, MOST_EXPERTS)?;
        check_float("combine", "element", self.element)?;
        RowBlocks::new("combine", self.length)
    }
}

impl Operator for Combine {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let blocks = self.blocks()?;
        sequence(&[gathered_sum("combine", ("x", "y"), (blocks, self.chosen), self.element, true)])
    }

    /// Reads `x`, `d_y`, `places`, `choices` and `weights`, and writes `d_x` and `d_weights`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        let (blocks, element, chosen) = (self.blocks()?, self.element, self.chosen);
        let rows = blocks.rows;
        let by_rows = format!(
            "tile d_combine {{
    input  d_y: {element} {}
    input  choices: i32 (P,1):(1,1)
    input  weights: f32 ({chosen}*T,1):(1,1)
    output d_x: {element} {}
{}    choice = load(choices, ({rows},1), (block.x, 0), -1)
    token = choice / {chosen}
    d = {} * load(weights, ({rows},1), (choice, 0))
    store(d_x, (block.x, block.y), {})
}}
",
            blocks.layout("T"),
            blocks.layout("P"),
            blocks.grid("P"),
            widened(element, &format!("load(d_y, {}, (token, block.y))", blocks.shape())),
            narrowed(element, "d"),
        );
        let single = blocks.single();
        let load =
            |name: &str, place: &str| widened(element, &format!("load({name}, {}, ({place}, part))", single.shape()));
        let by_weights = format!(
            "tile d_combine_weights {{
    input  x: {element} {}
    input  d_y: {element} {}
    input  places: i32 (T,{chosen}):({chosen},1)
    output d_weights: f32 (T,{chosen}):({chosen},1)
    grid T, {chosen}
    place = load(places, (1,1), (block.x, block.y), -1)
    loop part < {} with sum = broadcast(f32(0), {}) {{
        next fma({}, {}, sum)
    }} -> sum
    store(d_weights, (block.x, block.y), reduce_sum(sum, 1))
}}
",
            single.layout("P"),
            single.layout("T"),
            single.parts(),
            single.shape(),
            load("x", "place"),
            load("d_y", "block.x"),
        );
        sequence(&[by_rows, by_weights])
    }
}

options! {
    /// A grouped GEMM: the rows of each expert times its matrix. Inputs: `x`, `(P,K)`, `w`,
    /// `(experts,K,N)`, or `(experts,N,K)` if `transposed`, and `tile_experts`, the expert of each
    /// 128 rows. Output: `y`, `(P,N)`. All are contiguous. `K` and `N` are multiples of 8, and `P`
    /// is a multiple of 128. Padding rows of `y` are 0.
    ///
    /// Sums over `K` are accumulated in f32, in steps of 64, in an order that does not depend on
    /// the number of rows.
    ///
    /// ```
    /// use tilewright_ops::{ExpertProduct, Operator};
    /// use tilewright_tile::Element;
    ///
    /// let product = ExpertProduct { experts: 2, element: Element::Bf16, ..ExpertProduct::default() };
    /// let sizes = [("P", 128), ("K", 8), ("N", 8)];
    /// let w = [vec![1.0; 64], vec![2.0; 64]].concat();
    /// let inputs = [("x", vec![1.0; 128 * 8]), ("w", w), ("tile_experts", vec![1.0])];
    /// let results = product.forward()?.run(&sizes, &inputs)?;
    /// assert_eq!(results[0].1[0], Some(16.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct ExpertProduct("expert_product") {
        /// The number of experts.
        experts: i64 = 0,
        /// The type of the elements: bf16 or f16.
        element: Element = Element::Bf16,
        /// Whether `w` is `(experts,N,K)`, as the weights of linear layers of PyTorch are, rather
        /// than `(experts,K,N)`.
        transposed: bool = false,
        /// The type of the derivative of the matrices.
        gradient_element: Element = Element::Bf16,
    }
}

impl ExpertProduct {
    fn checked(&self) -> Result<(), OperatorError> {
        check_experts("expert_product", self.experts)?;
        if !matches!(self.element, Element::Bf16 | Element::F16) {
            return Err(OperatorError::value("expert_product", "element", self.element, "the types are bf16 and f16"));
        }
        check_float("expert_product", "gradient_element", self.gradient_element)
    }

    /// The program of a GEMM whose A is `from`, with the summed extent `inner`, and whose result
    /// has `outer` columns. `rows_of_columns`: whether the matrix of an expert is `(outer,inner)`
    /// rather than `(inner,outer)`.
    fn product_text(
        &self,
        name: &str,
        (from, to): (&str, &str),
        (inner, outer): (&str, &str),
        rows_of_columns: bool,
    ) -> String {
        let ExpertProduct { experts, element, .. } = self;
        let (matrix, load) = match rows_of_columns {
            true => (
                format!("({experts},{outer}{{div=8}},{inner}{{div=8}}):({outer}*{inner},{inner},1)"),
                format!(
                    "transpose(reshape(load(w, (1,{TILE_COLUMNS},{STEP}), (which, block.y, k)), ({TILE_COLUMNS},{STEP})), (1,0))"
                ),
            ),
            false => (
                format!("({experts},{inner}{{div=8}},{outer}{{div=8}}):({inner}*{outer},{outer},1)"),
                format!("reshape(load(w, (1,{STEP},{TILE_COLUMNS}), (which, k, block.y)), ({STEP},{TILE_COLUMNS}))"),
            ),
        };
        format!(
            "tile {name} {{
    input  {from}: {element} (P,{inner}{{div=8}}):({inner},1)
    input  w: {element} {matrix}
    input  tile_experts: i32 ceil(P/{TILE_ROWS}):1
    output {to}: {element} (P,{outer}{{div=8}}):({outer},1)
    grid ceil(P/{TILE_ROWS}), ceil({outer}/{TILE_COLUMNS})
    own = load(tile_experts, (1), (block.x), {experts})
    which = reshape(own, (1,1,1))
    loop k < [select(own < {experts}, size(ceil({inner}/{STEP})), 0)] with sum = broadcast(f32(0), ({TILE_ROWS},{TILE_COLUMNS})) {{
        b = {load}
        next dot(load({from}, ({TILE_ROWS},{STEP}), (block.x, k)), b, sum)
    }} -> sum
    store({to}, (block.x, block.y), {element}(sum))
}}
"
        )
    }

    /// The program of the derivative of the matrices: for each expert, the sum over its rows of the
    /// outer products of the rows of `left` and `right`.
    fn matrix_text(&self, (left, rows): (&str, &str), (right, columns): (&str, &str)) -> String {
        let ExpertProduct { experts, element, gradient_element, .. } = self;
        let tile = |name: &str, size: &str| {
            format!("    input  {name}: {element} ({STEP},{size}{{div=8}},ceil(P/{STEP})):({size},1,{STEP}*{size})\n")
        };
        let steps = TILE_ROWS / STEP;
        format!(
            "tile d_expert_matrices {{
{}{}    input  first_tiles: i32 (1,1,{experts}):(1,1,1)
    input  tiles: i32 {experts}:1
    output d_w: {gradient_element} ({experts},{rows},{columns}):({rows}*{columns},{columns},1)
    grid ceil({rows}/{TILE_ROWS}), ceil({columns}/{TILE_COLUMNS}), {experts}
    first = load(first_tiles, (1,1,1), (0, 0, block.z)) * {steps}
    count = load(tiles, (1), (block.z)) * {steps}
    loop r < [count] with sum = broadcast(f32(0), ({TILE_ROWS},{TILE_COLUMNS})) {{
        a = transpose(reshape(load({left}, ({STEP},{TILE_ROWS},1), (0, block.x, first + r)), ({STEP},{TILE_ROWS})), (1,0))
        b = reshape(load({right}, ({STEP},{TILE_COLUMNS},1), (0, block.y, first + r)), ({STEP},{TILE_COLUMNS}))
        next dot(a, b, sum)
    }} -> sum
    store(d_w, (block.z, block.x, block.y), reshape({}, (1,{TILE_ROWS},{TILE_COLUMNS})))
}}
",
            tile(left, rows),
            tile(right, columns),
            narrowed(*gradient_element, "sum"),
        )
    }
}

impl Operator for ExpertProduct {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        self.checked()?;
        sequence(&[self.product_text("expert_product", ("x", "y"), ("K", "N"), self.transposed)])
    }

    /// Reads `x`, `w`, `d_y`, `tile_experts`, `first_tiles` and `tiles`; writes `d_x` and `d_w`. An
    /// expert without rows has a derivative of 0. Padding rows of `x` or of `d_y` must be 0.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        self.checked()?;
        let by_rows = self.product_text("d_expert_rows", ("d_y", "d_x"), ("N", "K"), !self.transposed);
        let by_matrices = match self.transposed {
            false => self.matrix_text(("x", "K"), ("d_y", "N")),
            true => self.matrix_text(("d_y", "N"), ("x", "K")),
        };
        sequence(&[by_rows, by_matrices])
    }
}
