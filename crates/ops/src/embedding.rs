//! Embedding: lookup of rows of a table, and the sums of derivatives for each row.
//!
//! Law: row `t` of `y` is the row `indices[t]` of the table. Row `v` of the derivative of the table
//! is the sum of the rows `t` of `d_y` with `indices[t] = v`, in the order of `t`: eight rows at a
//! time while eight remain, and then four at a time. The order depends only on the number of rows
//! with this index, so the bits are the same in each run and in any batch.
//!
//! Equal indices are brought together by counting sorts ([`crate::counting`]), one for each digit.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::counting::{Counting, KEYS};
use crate::error::OperatorError;
use crate::options::options;
use crate::row_blocks::RowBlocks;
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The most bits of a digit of the sort.
const DIGIT: u32 = 10;
/// The most rows of a table.
const MOST_ROWS: i64 = 1 << 24;
/// The rows that are added at once while this many remain; and the rows that are added at once at
/// the end.
const MANY: i64 = 8;
const FEW: i64 = 4;

options! {
    /// Embedding: rows of a table by index. Inputs: `table`, `(vocabulary,length)`, and `indices`,
    /// `T:1` of i32. Output: `y`, `(T,length)`. All are contiguous.
    ///
    /// An index that is out of range yields a row of NaN, and contributes to no derivative.
    ///
    /// ```
    /// use tilewright_ops::{Embedding, Operator};
    ///
    /// let embedding = Embedding { vocabulary: 3, length: 2, ..Embedding::default() };
    /// let inputs = [("table", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ("indices", vec![2.0, 0.0, 2.0])];
    /// let results = embedding.forward()?.run(&[("T", 3)], &inputs)?;
    /// assert_eq!(results[0].1, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0].map(Some));
    /// let inputs = [("indices", vec![2.0, 0.0, 2.0]), ("d_y", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    /// let results = embedding.backward()?.run(&[("T", 3)], &inputs)?;
    /// assert_eq!(results[0].1, [3.0, 4.0, 0.0, 0.0, 6.0, 8.0].map(Some));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Embedding("embedding") {
        /// The number of rows of the table.
        vocabulary: i64 = 0,
        /// The elements of a row.
        length: i64 = 0,
        /// The type of the elements of the table and of `y`.
        element: Element = Element::F32,
        /// The type of the derivative of the table. Sums are of f32, and rounded once.
        gradient_element: Element = Element::F32,
        /// The index whose row gets no derivative, as for padding tokens; -1 if all rows do.
        padding: i64 = -1,
        /// Whether the derivative is added to the contents of `d_table`: rows that no index names
        /// are then neither read nor written.
        accumulate: bool = false,
        /// Whether the derivative is added to `d_table` by atomics, in an order that differs
        /// between runs, and without workspaces. `d_table` must be of f32, and hold 0 or the values
        /// that are added to.
        atomic: bool = false,
    }
}

impl Embedding {
    fn blocks(&self) -> Result<RowBlocks, OperatorError> {
        let refused = |name, value: i64, because: String| Err(OperatorError::value("embedding", name, value, because));
        if !(1..=MOST_ROWS).contains(&self.vocabulary) {
            return refused("vocabulary", self.vocabulary, format!("a table has from 1 to {MOST_ROWS} rows"));
        }
        if !(-1..self.vocabulary).contains(&self.padding) {
            return refused("padding", self.padding, "it is the number of a row, or -1".to_string());
        }
        check_float("embedding", "element", self.element)?;
        check_float("embedding", "gradient_element", self.gradient_element)?;
        if self.atomic && self.gradient_element != Element::F32 {
            let because = "atomics add numbers of f32";
            return Err(OperatorError::value("embedding", "gradient_element", self.gradient_element, because));
        }
        if self.atomic && self.accumulate {
            let because = "atomics add to `d_table` in any case";
            return Err(OperatorError::value("embedding", "accumulate", self.accumulate, because));
        }
        RowBlocks::new("embedding", self.length)
    }

    /// The condition for an index to have a row that gets a derivative.
    fn counts(&self, number: &str) -> String {
        let inside = format!("{number} >= 0 & {number} < {}", self.vocabulary);
        if self.padding < 0 { inside } else { format!("{inside} & {number} != {}", self.padding) }
    }

    fn atomic_text(&self, blocks: RowBlocks) -> String {
        let (rows, shape) = (blocks.rows, blocks.shape());
        format!(
            "tile d_embedding {{
    input  indices: i32 (T,1):(1,1)
    input  d_y: {} {}
    inout  d_table: f32 {}
{}    own = load(indices, ({rows},1), (block.x, 0), -1)
    to = select({}, own, -1)
    atomic_add(d_table, (to, block.y), {})
}}
",
            self.element,
            blocks.layout("T"),
            blocks.layout(&self.vocabulary.to_string()),
            blocks.grid("T"),
            self.counts("own"),
            widened(self.element, &format!("load(d_y, {shape}, (block.x, block.y))")),
        )
    }

    /// The programs that sort: afterwards `sorted` has the indices in order, where skipped indices
    /// are replaced by the number of rows, and `tokens` has the row of `d_y` of each.
    fn sorting(&self) -> Vec<String> {
        // Sorted keys range from 0 to the number of rows, inclusive.
        let bits = 64 - self.vocabulary.leading_zeros();
        let passes = bits.div_ceil(DIGIT);
        let digit = bits.div_ceil(passes);
        let bins = 1_i64 << digit;
        let mut found = Vec::new();
        for pass in 0..passes {
            let source = if pass == 0 { "indices".to_string() } else { format!("sorted_{pass}") };
            let (before, after) = (format!("tokens_{pass}"), pass + 1);
            let end = if after == passes { String::new() } else { format!("_{after}") };
            let (sorted, tokens) = (format!("sorted{end}"), format!("tokens{end}"));
            let whole = match pass {
                0 => format!("select({}, own, {})", self.counts("own"), self.vocabulary),
                _ => "own".to_string(),
            };
            let counting = Counting {
                suffix: format!("_{pass}"),
                keys: "T",
                source: &source,
                bins,
                key: format!("and(shr({whole}, {}), {})", pass * digit, bins - 1),
            };
            // The scatter writes every place, so the first pass declares outputs; a tensor declared
            // as read and written must have been written before.
            let more = format!("    output {sorted}: i32 T:1\n    output {tokens}: i32 T:1\n");
            let also = format!("    store({sorted}, (block.x), own)\n    store({tokens}, (block.x), place)\n");
            found.push(counting.count_text(&more, &also));
            found.push(counting.begin_text(1, "", ""));
            let (input, token) = match pass {
                0 => (String::new(), format!("index(block.x*{KEYS}) + arange(({KEYS},1), 0)")),
                _ => {
                    let input = format!("    input  {before}: i32 T:1\n");
                    (input, format!("reshape(load({before}, ({KEYS}), (block.x), -1), ({KEYS},1))"))
                }
            };
            let more = format!("{input}    inout  {sorted}: i32 (T,1):(1,1)\n    inout  {tokens}: i32 (T,1):(1,1)\n");
            let also = format!("    store({sorted}, (place, 0), {whole})\n    store({tokens}, (place, 0), {token})\n");
            found.push(counting.place_text(&more, &also));
        }
        found
    }

    /// The programs that compute where the places of each index begin and end.
    fn runs(&self) -> [String; 2] {
        let vocabulary = self.vocabulary;
        let none = format!(
            "tile no_rows {{
    output begins: i32 {vocabulary}:1
    output ends: i32 {vocabulary}:1
    grid ceil({vocabulary}/2048)
    warps 8
    store(begins, (block.x), broadcast(i32(0), (2048)))
    store(ends, (block.x), broadcast(i32(0), (2048)))
}}
"
        );
        // Skipped indices have no row, so no run is stored for them.
        let runs = format!(
            "tile runs_of_rows {{
    input  sorted: i32 T:1
    inout  begins: i32 {vocabulary}:1
    inout  ends: i32 {vocabulary}:1
    grid ceil(T/{KEYS})
    own = load(sorted, ({KEYS}), (block.x), -1)
    before = load(sorted, ({KEYS}), ([block.x*{KEYS} - 1]), -1)
    behind = load(sorted, ({KEYS}), ([block.x*{KEYS} + 1]), -1)
    place = index(block.x*{KEYS}) + arange(({KEYS}), 0)
    first = select(own != before, own, -1)
    store(begins, (first), place)
    last = select(own != behind, own, -1)
    store(ends, (last), place + 1)
}}
"
        );
        [none, runs]
    }

    fn rows_text(&self, blocks: RowBlocks) -> String {
        let blocks = blocks.single();
        let (part, vocabulary) = (blocks.part, self.vocabulary);
        // A thread has eight elements of each row.
        let warps = (part / (8 * 32)).max(1);
        let table = blocks.layout(&vocabulary.to_string());
        let tile = format!("(1,{part})");
        let add = |rows: i64| {
            let load = widened(self.element, &format!("load(d_y, ({rows},{part}), (token, block.y))"));
            format!("        next sum + reduce_sum({load}, 0)\n")
        };
        let (gradient, begin, end) = match self.accumulate {
            true => (
                format!("    inout  d_table: {} {table}\n", self.gradient_element),
                format!(
                    "    row = select(last > first, index(block.x), -1)
    sum = {}
",
                    widened(self.gradient_element, &format!("load(d_table, {tile}, (row, block.y))"))
                ),
                "(row, block.y)",
            ),
            false => (
                format!("    output d_table: {} {table}\n", self.gradient_element),
                format!("    sum = broadcast(f32(0), {tile})\n"),
                "(block.x, block.y)",
            ),
        };
        format!(
            "tile d_embedding {{
    input  d_y: {} {}
    input  tokens: i32 (T,1):(1,1)
    input  begins: i32 ({vocabulary},1):(1,1)
    input  ends: i32 ({vocabulary},1):(1,1)
{gradient}{}    warps {warps}
    first = load(begins, (1,1), (block.x, 0))
    last = load(ends, (1,1), (block.x, 0))
{begin}    many = (last - first) / {MANY}
    loop i < [many] with sum = sum {{
        place = first + index(i*{MANY}) + arange(({MANY},1), 0)
        token = load(tokens, ({MANY},1), (place, 0), -1)
{}    }} -> sum
    begin = first + many * {MANY}
    few = (last - begin + {}) / {FEW}
    loop i < [few] with sum = sum {{
        place = begin + index(i*{FEW}) + arange(({FEW},1), 0)
        place = select(place < last, place, -1)
        token = load(tokens, ({FEW},1), (place, 0), -1)
{}    }} -> sum
    store(d_table, {end}, {})
}}
",
            self.element,
            blocks.layout("T"),
            blocks.grid(&vocabulary.to_string()),
            add(MANY),
            FEW - 1,
            add(FEW),
            narrowed(self.gradient_element, "sum"),
        )
    }
}

impl Operator for Embedding {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let blocks = self.blocks()?;
        let (rows, shape) = (blocks.rows, blocks.shape());
        let text = format!(
            "tile embedding {{
    input  table: {} {}
    input  indices: i32 (T,1):(1,1)
    output y: {} {}
{}    row = load(indices, ({rows},1), (block.x, 0), -1)
    store(y, (block.x, block.y), load(table, {shape}, (row, block.y), nan))
}}
",
            self.element,
            blocks.layout(&self.vocabulary.to_string()),
            self.element,
            blocks.layout("T"),
            blocks.grid("T"),
        );
        Ok(Sequence::new(vec![program(&text)?]))
    }

    /// Reads `indices` and `d_y`, and writes `d_table`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        let blocks = self.blocks()?;
        if self.atomic {
            return Ok(Sequence::new(vec![program(&self.atomic_text(blocks))?]));
        }
        let mut texts = self.sorting();
        texts.extend(self.runs());
        texts.push(self.rows_text(blocks));
        Ok(Sequence::new(texts.iter().map(|text| program(text)).collect::<Result<_, _>>()?))
    }
}
