//! Encodings as terms: their names and fields, in MLIR's spelling, an older one, or Gluon's.
//!
//! Law: every spelling becomes the same [`Encoding`], whose fields have the names of Triton's
//! current attributes. Aliases (`#mma = #ttg.nvidia_mma<..>`) are followed, at most [`MAX_ALIASES`]
//! deep.

use std::ops::Range;

use crate::reader::{Context, MAX_ALIASES};
use crate::term::{Argument, Term, TermKind, read};
use crate::width::element_bits;

/// Why an encoding is not read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub place: Range<usize>,
    pub message: String,
    pub kind: RefusalKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RefusalKind {
    /// The fields contradict each other, or the shape.
    Contradiction,
    /// No layout of this library represents it.
    Unsupported,
    /// An alias that the text does not define.
    Alias(String),
}

/// The definitions of a text, and the position of their use.
#[derive(Clone, Copy)]
pub(super) struct Aliases<'a> {
    pub context: &'a Context<'a>,
    pub at: usize,
}

impl Aliases<'_> {
    fn find(&self, name: &str) -> Option<Term> {
        let (_, start) = self.context.definitions.get(name, self.at)?;
        read(self.context.source, start).ok()
    }
}

/// An encoding: its name without the dialect, its fields, and the parent of a slice or an operand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Encoding {
    pub name: String,
    pub fields: Vec<(String, Term)>,
    /// The arguments without a name: `[512:+16]` and `{order = [1, 0]}` of a padded layout.
    pub others: Vec<Argument>,
    pub parent: Option<Box<Encoding>>,
    pub place: Range<usize>,
}

/// The dialects of encodings.
const DIALECTS: [&str; 4] = ["ttg.", "ttng.", "triton_gpu.", "triton_nvidia_gpu."];

/// The supported encodings, by their names in MLIR.
pub(super) const NAMES: [&str; 19] = [
    "blocked",
    "nvidia_mma",
    "amd_mfma",
    "amd_wmma",
    "dot_op",
    "slice",
    "linear",
    "swizzled_shared",
    "padded_shared",
    "nvmma_shared",
    "shared_linear",
    "tensor_memory_encoding",
    "tensor_memory",
    "shared",
    "generic_linear",
    "mma",
    "tensor_memory_scales_encoding",
    "amd_rotating_shared",
    "partitioned_shared",
];

/// A class of Gluon, its encoding, and its parameters in order: their names in Gluon and in the
/// encoding.
type Class = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Classes of Gluon.
const GLUON: &[Class] = &[
    (
        "BlockedLayout",
        "blocked",
        &[
            ("size_per_thread", "sizePerThread"),
            ("threads_per_warp", "threadsPerWarp"),
            ("warps_per_cta", "warpsPerCTA"),
            ("order", "order"),
        ],
    ),
    (
        "NVMMADistributedLayout",
        "nvidia_mma",
        &[("version", "version"), ("warps_per_cta", "warpsPerCTA"), ("instr_shape", "instrShape")],
    ),
    ("SliceLayout", "slice", &[("dim", "dim"), ("parent", "parent")]),
    ("DotOperandLayout", "dot_op", &[("operand_index", "opIdx"), ("parent", "parent"), ("k_width", "kWidth")]),
    (
        "DistributedLinearLayout",
        "linear",
        &[
            ("reg_bases", "register"),
            ("lane_bases", "lane"),
            ("warp_bases", "warp"),
            ("block_bases", "block"),
            ("shape", "shape"),
        ],
    ),
    (
        "NVMMASharedLayout",
        "nvmma_shared",
        &[
            ("swizzle_byte_width", "swizzlingByteWidth"),
            ("element_bitwidth", "elementBitWidth"),
            ("rank", "rank"),
            ("transposed", "transposed"),
            ("fp4_padded", "fp4Padded"),
        ],
    ),
    (
        "SwizzledSharedLayout",
        "swizzled_shared",
        &[("vec", "vec"), ("per_phase", "perPhase"), ("max_phase", "maxPhase"), ("order", "order")],
    ),
    (
        "PaddedSharedLayout",
        "padded_shared",
        &[
            ("interval_padding_pairs", "pairs"),
            ("offset_bases", "offset"),
            ("cga_layout", "CGALayout"),
            ("shape", "shape"),
        ],
    ),
    (
        "SharedLinearLayout",
        "shared_linear",
        &[("offset_bases", "offset"), ("block_bases", "block"), ("alignment", "alignment")],
    ),
    (
        "AMDMFMALayout",
        "amd_mfma",
        &[
            ("version", "version"),
            ("instr_shape", "instrShape"),
            ("transposed", "isTransposed"),
            ("warps_per_cta", "warpsPerCTA"),
            ("element_bitwidth", "elementBitWidth"),
            ("tiles_per_warp", "tilesPerWarp"),
        ],
    ),
    (
        "AMDWMMALayout",
        "amd_wmma",
        &[
            ("version", "version"),
            ("transposed", "isTranspose"),
            ("warp_bases", "warp"),
            ("reg_bases", "register"),
            ("instr_shape", "instrShape"),
        ],
    ),
    (
        "TensorMemoryLayout",
        "tensor_memory_encoding",
        &[
            ("block", "block"),
            ("col_stride", "colStride"),
            ("cga_layout", "CGALayout"),
            ("two_ctas", "twoCTAs"),
            ("fp4_padded", "fp4Padded"),
        ],
    ),
    ("TensorMemoryScalesLayout", "tensor_memory_scales_encoding", &[("cga_layout", "CGALayout")]),
    // Static methods, whose arguments are a shape and the intended use of the layout.
    (
        "get_default_for",
        "nvmma_shared",
        &[
            ("block_shape", "shape"),
            ("dtype", "dtype"),
            ("transposed", "transposed"),
            ("fp4_padded", "fp4Padded"),
            ("cga_layout", "CGALayout"),
        ],
    ),
    (
        "with_identity_for",
        "padded_shared",
        &[("interval_padding_pairs", "pairs"), ("shape", "shape"), ("order", "order"), ("cga_layout", "CGALayout")],
    ),
];

/// The fields that an encoding may have; those of a cluster of blocks are in [`CLUSTER`].
fn fields_of(encoding: &str) -> &'static [&'static str] {
    match encoding {
        "blocked" => &["sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"],
        "nvidia_mma" => &["version", "versionMajor", "versionMinor", "warpsPerCTA", "instrShape"],
        "amd_mfma" => &[
            "version",
            "versionMajor",
            "versionMinor",
            "warpsPerCTA",
            "instrShape",
            "isTransposed",
            "elementBitWidth",
            "tilesPerWarp",
        ],
        "amd_wmma" => &["version", "isTranspose", "ctaLayout", "register", "warp", "warpsPerCTA", "instrShape", "rank"],
        "dot_op" => &["opIdx", "parent", "kWidth"],
        "slice" => &["dim", "parent"],
        "linear" => &["register", "lane", "warp", "block", "shape"],
        "swizzled_shared" => &["vec", "perPhase", "maxPhase", "order", "hasLeadingOffset"],
        "padded_shared" => &["pairs", "offset", "block", "order", "shape"],
        "nvmma_shared" => {
            &["swizzlingByteWidth", "elementBitWidth", "rank", "transposed", "fp4Padded", "shape", "dtype"]
        }
        "shared_linear" => &["offset", "block", "alignment"],
        "tensor_memory_encoding" => {
            &["block", "blockM", "blockN", "colStride", "unpacked", "CTASplitM", "CTASplitN", "twoCTAs", "fp4Padded"]
        }
        "tensor_memory_scales_encoding" => &["CTASplitM", "CTASplitN", "twoCTAs"],
        // These are refused whatever their fields are.
        _ => &["vec", "perPhase", "maxPhase", "order", "numPartitions", "numGroups", "partitionDim", "partitionLayout"],
    }
}

/// How the blocks of a cluster share a tensor.
const CLUSTER: [&str; 4] = ["CGALayout", "CTAsPerCGA", "CTASplitNum", "CTAOrder"];

/// Parameters that several classes of Gluon have.
const SHARED: [(&str, &str); 4] = [
    ("cga_layout", "CGALayout"),
    ("ctas_per_cga", "CTAsPerCGA"),
    ("cta_split_num", "CTASplitNum"),
    ("cta_order", "CTAOrder"),
];

/// The name of the Triton encoding in a term, `blocked` of `#ttg.blocked<..>`.
pub(super) fn known(term: &Term) -> Option<&'static str> {
    let (name, _) = term.call()?;
    if let Some(name) = DIALECTS.iter().find_map(|dialect| name.strip_prefix(dialect)) {
        return NAMES.iter().find(|known| **known == name).copied();
    }
    let class = name.rsplit('.').next()?;
    GLUON.iter().find(|(own, ..)| *own == class).map(|(_, name, _)| *name)
}

/// Whether a name is that of a Gluon layout, `gl.BlockedLayout`.
pub(super) fn is_class(name: &str) -> bool {
    let class = name.rsplit('.').next();
    GLUON.iter().any(|(own, ..)| Some(*own) == class)
}

/// The encoding in a term.
pub(super) fn encoding(term: &Term, aliases: Aliases<'_>) -> Result<Encoding, Refusal> {
    follow(term, aliases, 0)
}

fn follow(term: &Term, aliases: Aliases<'_>, depth: usize) -> Result<Encoding, Refusal> {
    let fail = |message: String| Err(Refusal { place: term.place.clone(), message, kind: RefusalKind::Unsupported });
    if depth > MAX_ALIASES {
        return fail("encodings refer to each other without an end".into());
    }
    if let Some(alias) = term.word() {
        if alias.starts_with("#gluon.") {
            return fail(format!("{alias} is no layout yet: a pass of the compiler chooses one"));
        }
        return match aliases.find(alias) {
            Some(found) => follow(&found, aliases, depth + 1),
            None => Err(Refusal {
                place: term.place.clone(),
                message: format!("the text does not define {alias}"),
                kind: RefusalKind::Alias(alias.to_owned()),
            }),
        };
    }
    let Some((name, arguments)) = term.call() else { return fail("an encoding of Triton is wanted here".into()) };
    let Some(own) = known(term) else { return fail(format!("{name} is not known as an encoding of Triton")) };
    let mut encoding = Encoding {
        name: match own {
            "shared" => "swizzled_shared".into(),
            "generic_linear" => "linear".into(),
            "mma" => "nvidia_mma".into(),
            own => own.to_owned(),
        },
        fields: Vec::new(),
        others: Vec::new(),
        parent: None,
        place: term.place.clone(),
    };
    let class = GLUON.iter().find(|(class, ..)| Some(*class) == name.rsplit('.').next());
    for (position, argument) in arguments.iter().enumerate() {
        let value = argument.value();
        let key = match (&argument.name, class) {
            (Some(name), Some((_, _, parameters))) => parameters
                .iter()
                .chain(&SHARED)
                .find(|(theirs, _)| theirs == name)
                .map_or(name.as_str(), |(_, ours)| ours),
            (Some(name), None) => name.as_str(),
            (None, Some((_, _, parameters))) => match parameters.get(position) {
                Some((_, ours)) => ours,
                None if position == parameters.len() => "CGALayout",
                None => return fail(format!("{name} has fewer arguments")),
            },
            (None, None) => {
                encoding.others.push(argument.clone());
                continue;
            }
        };
        let Some(value) = value else {
            return fail(format!("the field {key} is not read"));
        };
        if value.word() == Some("None") {
            continue;
        }
        if key == "parent" {
            encoding.parent = Some(Box::new(follow(value, aliases, depth + 1)?));
        } else if encoding.fields.iter().any(|(own, _)| own == key) {
            return fail(format!("the field {key} comes twice"));
        } else {
            encoding.fields.push((key.to_owned(), value.clone()));
        }
    }
    // A field that is not understood may change the layout.
    let names = encoding.fields.iter().map(|(key, _)| key.as_str());
    let inner = encoding.others.iter().flat_map(|argument| &argument.values).flat_map(entries);
    let mut names = names.chain(inner.filter_map(|entry| entry.name.as_deref()));
    if let Some(key) = names.find(|key| !fields_of(&encoding.name).contains(key) && !CLUSTER.contains(key)) {
        return fail(format!("{}: the field {key} is not known", encoding.name));
    }
    if class.is_some_and(|(class, ..)| *class == "get_default_for") {
        return default_for(encoding);
    }
    Ok(encoding)
}

/// `NVMMASharedLayout.get_default_for(block_shape, dtype, ..)`: the widest swizzle whose rows
/// divide those of a block. There is no swizzle if there are fewer than eight rows.
fn default_for(mut encoding: Encoding) -> Result<Encoding, Refusal> {
    let place = encoding.place.clone();
    let fail =
        |message: &str| Refusal { place: place.clone(), message: message.to_owned(), kind: RefusalKind::Unsupported };
    let fields = Fields { encoding: &encoding };
    let shape = fields.extents_of_any_rank("shape")?;
    let (turned, padded) = (fields.truth("transposed")?, fields.truth("fp4Padded")?);
    if fields.get("CGALayout").is_some() {
        return Err(fail("the default for several blocks is not read; paste the layout that it prints"));
    }
    let kind = fields.get("dtype").and_then(Term::word).unwrap_or("");
    let Some(bits) = element_bits(kind) else { return Err(fail("get_default_for: the dtype is not known")) };
    let rank = shape.len();
    // If the layout is transposed, the first dimension is the fast one.
    let fast = if turned { shape.first() } else { shape.last() }.copied().unwrap_or(1);
    let rows: u64 = shape.iter().product::<u64>() / fast.max(1);
    let bytes = fast * if padded { 2 } else { 1 } * bits.unsigned_abs() / 8;
    let width = [128, 64, 32].into_iter().find(|width| bytes >= *width && bytes % width == 0);
    let width = width.filter(|_| rank >= 2 && rows >= 8).unwrap_or(0);
    encoding.fields.retain(|(name, _)| name != "dtype");
    for (name, number) in [("swizzlingByteWidth", width as i64), ("elementBitWidth", bits), ("rank", rank as i64)] {
        encoding.fields.push((name.to_owned(), Term { kind: TermKind::Number(number), place: place.clone() }));
    }
    Ok(encoding)
}

/// The fields of an encoding, each checked when it is read.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub encoding: &'a Encoding,
}

/// A field's value as a power of two.
fn power_of_two(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| number.is_power_of_two() && *number <= 1 << 20)
}

impl<'a> Fields<'a> {
    pub fn refuse(&self, because: &str) -> Refusal {
        let message = format!("{}: {because}", self.encoding.name);
        Refusal { place: self.encoding.place.clone(), message, kind: RefusalKind::Unsupported }
    }

    /// The field with this name, which may be in braces of its own: `<{offset = [..]}, alignment =
    /// 16>`.
    pub fn get(&self, name: &str) -> Option<&'a Term> {
        let own = self.encoding.fields.iter().find(|(own, _)| own == name).map(|(_, term)| term);
        let inner = self.encoding.others.iter().flat_map(|argument| &argument.values);
        own.or_else(|| inner.filter_map(|term| entry(term, name)).next())
    }

    fn wanted(&self, name: &str) -> Result<&'a Term, Refusal> {
        self.get(name).ok_or_else(|| self.refuse(&format!("the field {name} is missing")))
    }

    fn bad(&self, name: &str, wanted: &str) -> Refusal {
        let place = self.get(name).map_or(self.encoding.place.clone(), |term| term.place.clone());
        let message = format!("{}: {name} is to be {wanted}", self.encoding.name);
        Refusal { place, message, kind: RefusalKind::Contradiction }
    }

    pub fn number(&self, name: &str) -> Result<i64, Refusal> {
        self.wanted(name)?.number().ok_or_else(|| self.bad(name, "a number"))
    }

    pub fn optional_number(&self, name: &str) -> Result<Option<i64>, Refusal> {
        self.get(name).map(|_| self.number(name)).transpose()
    }

    pub fn power(&self, name: &str) -> Result<u64, Refusal> {
        power_of_two(self.number(name)?).ok_or_else(|| self.bad(name, "a power of two"))
    }

    /// `true` or `false`; false if the field is omitted.
    pub fn truth(&self, name: &str) -> Result<bool, Refusal> {
        let Some(term) = self.get(name) else { return Ok(false) };
        term.truth().ok_or_else(|| self.bad(name, "true or false"))
    }

    pub fn parent(&self) -> Result<&'a Encoding, Refusal> {
        self.encoding.parent.as_deref().ok_or_else(|| self.refuse("the field parent is missing"))
    }

    pub fn extents_of_any_rank(&self, name: &str) -> Result<Vec<u64>, Refusal> {
        let numbers = self.wanted(name)?.numbers().ok_or_else(|| self.bad(name, "a list of numbers"))?;
        let powers = numbers.into_iter().map(power_of_two).collect::<Option<Vec<u64>>>();
        powers.ok_or_else(|| self.bad(name, "a list of powers of two"))
    }

    pub fn extents(&self, name: &str, rank: usize) -> Result<Vec<u64>, Refusal> {
        let extents = self.extents_of_any_rank(name)?;
        if extents.len() == rank {
            return Ok(extents);
        }
        let wanted = format!("a list of {rank}, as many as the shape has dimensions, and has {}", extents.len());
        Err(self.bad(name, &wanted))
    }

    pub fn optional_extents(&self, name: &str, rank: usize) -> Result<Option<Vec<u64>>, Refusal> {
        let Some(term) = self.get(name) else { return Ok(None) };
        // Three ones are printed for matrices too.
        if term.numbers().is_some_and(|numbers| numbers.iter().all(|number| *number == 1)) {
            return Ok(Some(vec![1; rank]));
        }
        self.extents(name, rank).map(Some)
    }

    /// The order of dimensions, the fastest first.
    pub fn order(&self, name: &str, rank: usize) -> Result<Vec<usize>, Refusal> {
        let numbers = self.wanted(name)?.numbers().unwrap_or_default();
        let order: Vec<usize> = numbers.iter().filter_map(|number| usize::try_from(*number).ok()).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted == (0..rank).collect::<Vec<usize>>() && numbers.len() == rank {
            Ok(order)
        } else {
            Err(self.bad(name, &format!("an order of the {rank} dimensions of the shape")))
        }
    }

    /// A list of images, each with an index for every dimension.
    pub fn images(&self, name: &str, rank: usize) -> Result<Vec<Vec<u64>>, Refusal> {
        let Some(term) = self.get(name) else { return Ok(Vec::new()) };
        images_of(term, rank).ok_or_else(|| self.bad(name, &format!("a list of bases with {rank} numbers each")))
    }

    /// The division of the tensor among the blocks of a cluster: their bases, in units of parts.
    pub fn cluster(&self, rank: usize) -> Result<Vec<Vec<u64>>, Refusal> {
        if self.get("CGALayout").is_some() {
            return self.images("CGALayout", rank);
        }
        // A slice or an operand has the blocks of its parent, and does not call this.
        let Some(blocks) = self.optional_extents("CTAsPerCGA", rank)? else { return Ok(Vec::new()) };
        let splits = self.optional_extents("CTASplitNum", rank)?.unwrap_or_else(|| blocks.clone());
        let order =
            if self.get("CTAOrder").is_some() { self.order("CTAOrder", rank)? } else { (0..rank).rev().collect() };
        let mut images = Vec::new();
        for dimension in order {
            let [all, own] = [&blocks, &splits].map(|list| list.get(dimension).copied().unwrap_or(1));
            if own > all {
                return Err(self.refuse("CTASplitNum is more than CTAsPerCGA"));
            }
            for bit in 0..all.ilog2() {
                let mut image = vec![0; rank];
                if let Some(index) = image.get_mut(dimension)
                    && bit < own.ilog2()
                {
                    *index = 1 << bit;
                }
                images.push(image);
            }
        }
        Ok(images)
    }

    /// 2 for `mma.sync`, 3 for `wgmma`.
    pub fn mma_version(&self) -> Result<u64, Refusal> {
        let version = match self.get("version").and_then(Term::numbers) {
            Some(numbers) => numbers.first().copied(),
            None => Some(self.number("versionMajor")?),
        };
        match version {
            Some(version @ (2 | 3)) => Ok(version.unsigned_abs()),
            Some(1) => Err(self.refuse(
                "version 1 (Volta) is not read: Triton has dropped it, and its layout depends on fields no longer printed",
            )),
            Some(5) => Err(self.refuse("version 5 has its accumulator in tensor memory, not in registers")),
            _ => Err(self.refuse("versions 2 (mma.sync) and 3 (wgmma) are known")),
        }
    }

    /// The rows and columns of an MFMA.
    pub fn instruction(&self, rank: usize) -> Result<[u64; 2], Refusal> {
        let known = [[32, 32], [16, 16], [4, 64], [64, 4], [4, 4]];
        let found = match self.extents_of_any_rank("instrShape")?.as_slice() {
            [rows, columns] | [rows, columns, _] => [*rows, *columns],
            _ => return Err(self.bad("instrShape", "of two numbers or three")),
        };
        if rank < 2 || !known.contains(&found) || found == [4, 4] {
            return Err(self.refuse("MFMA of 32x32, 16x16, 4x64 and 64x4 are known, of two dimensions or three"));
        }
        Ok(found)
    }

    /// The rows and columns of a WMMA: 16 x 16, or in version 3 also 32 x 16, turned if the
    /// accumulator is transposed.
    pub fn wmma_tile(&self) -> Result<[u64; 2], Refusal> {
        let found = self.get("instrShape").map(|_| self.extents_of_any_rank("instrShape")).transpose()?;
        match (found.as_deref(), self.number("version")?) {
            (None | Some([16, 16] | [16, 16, _]), _) => Ok([16, 16]),
            (Some([32, 16] | [32, 16, _]), 3) => Ok(if self.truth("isTranspose")? { [16, 32] } else { [32, 16] }),
            _ => Err(self.refuse("WMMA of 16x16 are known, and in version 3 those of 32x16")),
        }
    }

    /// The bases of registers and warps of a WMMA, in units of tiles.
    pub fn warp_bases(&self, rank: usize) -> Result<[Images; 2], Refusal> {
        if let Some(layout) = self.get("ctaLayout") {
            let part = |name: &str| match entry(layout, name) {
                None => Ok(Vec::new()),
                Some(term) => images_of(term, rank)
                    .ok_or_else(|| self.bad("ctaLayout", &format!("of bases with {rank} numbers each"))),
            };
            return Ok([part("register")?, part("warp")?]);
        }
        if self.get("warp").is_some() {
            return Ok([self.images("register", rank)?, self.images("warp", rank)?]);
        }
        let warps = self.extents("warpsPerCTA", rank)?;
        let mut images = Vec::new();
        for dimension in (0..rank).rev() {
            for bit in 0..warps.get(dimension).copied().unwrap_or(1).ilog2() {
                let mut image = vec![0; rank];
                if let Some(index) = image.get_mut(dimension) {
                    *index = 1 << bit;
                }
                images.push(image);
            }
        }
        Ok([Vec::new(), images])
    }
}

/// The images of the bits of an input.
pub(super) type Images = Vec<Vec<u64>>;

/// The images in a list of lists.
pub(super) fn images_of(term: &Term, rank: usize) -> Option<Vec<Vec<u64>>> {
    let indices = |image: &Term| {
        let numbers = image.numbers()?;
        let indices = numbers.into_iter().map(|number| u64::try_from(number).ok()).collect::<Option<Vec<u64>>>()?;
        (indices.len() == rank).then_some(indices)
    };
    term.list()?.into_iter().map(indices).collect()
}

/// The arguments in a list in braces.
fn entries(term: &Term) -> &[Argument] {
    match &term.kind {
        TermKind::List('{', entries) => entries,
        _ => &[],
    }
}

/// The argument with this name in a list in braces.
pub(super) fn entry<'a>(term: &'a Term, name: &str) -> Option<&'a Term> {
    entries(term).iter().find(|entry| entry.name.as_deref() == Some(name)).and_then(Argument::value)
}
