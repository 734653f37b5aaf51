//! Sorting by small integers: counting sort as tile programs.
//!
//! Law: keys are integers from 0, less than the number of bins; other keys are skipped. The place
//! of a key is the number of smaller keys, plus the number of equal keys before it: the sort is
//! stable. With an alignment, the keys of each bin begin at the next multiple of it. All numbers
//! are integers, so the places are the same in each run.
//!
//! There are three programs. In the first, each block counts the bins of its 256 keys. In the
//! second, one block computes the prefix sums of the counts. In the third, each block computes the
//! places of its keys from the counts of the blocks before it and by comparing its own keys.

/// The keys of a block.
pub(crate) const KEYS: i64 = 256;
/// The number of keys of a block that a key is compared with at once.
const COMPARED: i64 = 64;
/// The elements of the tile of counts that is summed at once.
const COUNTS: i64 = 16384;

/// A counting sort.
#[derive(Debug, Clone)]
pub(crate) struct Counting<'t> {
    /// The suffix of the names of the programs and workspaces.
    pub suffix: String,
    /// The name of the size that is the number of keys.
    pub keys: &'t str,
    /// The tensor that the keys are read from: it has one mode.
    pub source: &'t str,
    /// The number of bins.
    pub bins: i64,
    /// The expression for the keys of `own`, a tile of the source; -1 for an element that is
    /// skipped.
    pub key: String,
}

impl Counting<'_> {
    fn counts(&self) -> String {
        format!("({0},ceil({1}/{KEYS})):(1,{0})", self.bins, self.keys)
    }

    /// The program that counts. `more` declares other tensors, and `also` has further statements
    /// for the block, in which `own` is its tile of the source.
    pub(crate) fn count_text(&self, more: &str, also: &str) -> String {
        let Counting { suffix, keys, source, bins, key } = self;
        format!(
            "tile count{suffix} {{
    input  {source}: i32 {keys}:1
    output counts{suffix}: i32 {}
{more}    grid ceil({keys}/{KEYS})
    own = load({source}, ({KEYS}), (block.x), -1)
    place = index(block.x*{KEYS}) + arange(({KEYS}), 0)
    key = select(place < size({keys}), {key}, -1)
    store(counts{suffix}, (0, block.x), reshape(histogram(key, {bins}), ({bins},1)))
{also}}}
",
            self.counts()
        )
    }

    /// The program that computes where the keys of each bin in each block begin. `more` declares
    /// other tensors, and `also` has further statements, in which `parts` is the number of parts of
    /// each bin, of `alignment` places each, and `begins` is the number of parts before the bin.
    pub(crate) fn begin_text(&self, alignment: i64, more: &str, also: &str) -> String {
        let Counting { suffix, bins, keys, .. } = self;
        let columns = (COUNTS / crate::row_blocks::power_from(*bins)).clamp(1, KEYS);
        let (tile, counts) = (format!("({bins},{columns})"), self.counts());
        let loops = format!("ceil(ceil({keys}/{KEYS})/{columns})");
        format!(
            "tile begin{suffix} {{
    input  counts{suffix}: i32 {counts}
    output before{suffix}: i32 {counts}
{more}    grid 1
    warps 16
    loop c < {loops} with sum = broadcast(i32(0), ({bins},1)) {{
        next sum + reduce_sum(load(counts{suffix}, {tile}, (0, c)), 1)
    }} -> all
    parts = (all + {}) / {alignment}
    begins = scan_before_sum(parts, 0)
    loop c < {loops} with sum = begins * {alignment} {{
        a = load(counts{suffix}, {tile}, (0, c))
        store(before{suffix}, (0, c), scan_before_sum(a, 1) + sum)
        next sum + reduce_sum(a, 1)
    }} -> sum
{also}}}
",
            alignment - 1
        )
    }

    /// The program that computes the places. `more` declares other tensors, and `also` has further
    /// statements, in which `own` is the tile of the source and `place` is the tile of places, -1
    /// for an element that is skipped. Both are columns of 256 elements.
    pub(crate) fn place_text(&self, more: &str, also: &str) -> String {
        let Counting { suffix, keys, source, bins, key } = self;
        let column = format!("({KEYS},1)");
        let read = |rows: i64, at: &str, shape: &str| format!("reshape(load({source}, ({rows}), ({at}), -1), {shape})");
        let numbered = |first: &str, shape: &str, mode: i64| format!("index({first}) + arange({shape}, {mode})");
        let tile = format!("({KEYS},{COMPARED})");
        let all = KEYS / COMPARED;
        format!(
            "tile place{suffix} {{
    input  {source}: i32 {keys}:1
    input  before{suffix}: i32 {}
{more}    grid ceil({keys}/{KEYS})
    warps 8
    own = {}
    mine = select({} < size({keys}), {key}, -1)
    first = load(before{suffix}, {column}, (mine, block.x))
    loop part < {all} with rank = broadcast(i32(0), {column}) {{
        beside = {}
        its = select({} < size({keys}), {}, -1)
        earlier = {} < arange({tile}, 0)
        next rank + reduce_sum(select(mine == its & earlier, i32(1), 0), 1)
    }} -> rank
    place = select(mine >= 0 & mine < {bins}, first + rank, -1)
{also}}}
",
            self.counts(),
            read(KEYS, "block.x", &column),
            numbered(&format!("block.x*{KEYS}"), &column, 0),
            read(COMPARED, &format!("block.x*{all} + part"), &format!("(1,{COMPARED})")),
            numbered(&format!("block.x*{KEYS} + part*{COMPARED}"), &format!("(1,{COMPARED})"), 1),
            key.replace("own", "beside"),
            numbered(&format!("part*{COMPARED}"), &tile, 1),
        )
    }
}
