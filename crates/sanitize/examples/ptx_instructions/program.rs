//! A kernel that tries one instruction, its inputs, and what is compared.

use std::fmt::Write;

use crate::maps::GivenMap;

/// Random bits.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    fn integer(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let power = 1_u64 << self.below(width.into());
        mask & match self.below(8) {
            0 => 0,
            1 => power,
            2 => power.wrapping_sub(1),
            3 => power.wrapping_neg(),
            4 => self.below(40),
            _ => self.bits(),
        }
    }

    fn float(&mut self, exponent: u32, fraction: u32) -> u64 {
        let sign = self.below(2) << (exponent + fraction);
        let field = |value: u64| value << fraction;
        let top = (1 << exponent) - 1;
        let low = self.bits() & ((1 << fraction) - 1);
        let sparse = low & !((1 << self.below(u64::from(fraction) + 1)) - 1);
        let near = (top >> 1) - 3 + self.below(7);
        sign | match self.below(16) {
            0 => 0,
            1 => field(top),
            2 => field(top) | low | 1,
            3 => low,
            4 => field(1) | sparse,
            5 => field(top - 1) | low,
            6..=9 => field(near) | sparse,
            10 => field(near) | low,
            _ => field(self.below(top)) | low,
        }
    }
}

/// What an operand of an instruction of one lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    I16,
    I32,
    I64,
    /// Below a limit, mostly.
    Small(u64),
    F16,
    Bf16,
    F32,
    F64,
    /// An f32 around 1.
    Near,
    /// Two of 16 bits.
    Pair(bool),
    /// An f16 or bf16, often a NaN that is or is nearly the one with which tensor maps fill.
    Filled(bool),
    /// A byte in a register of 32 bits.
    Byte,
    /// Two bytes in a register of 16 bits.
    Bytes,
}

impl Kind {
    fn bits(self) -> u32 {
        match self {
            Kind::I16 | Kind::F16 | Kind::Bf16 | Kind::Bytes | Kind::Filled(_) => 16,
            Kind::I64 | Kind::F64 => 64,
            _ => 32,
        }
    }

    fn draw(self, random: &mut Random) -> u64 {
        match self {
            Kind::I16 => random.integer(16),
            Kind::I32 => random.integer(32),
            Kind::I64 => random.integer(64),
            Kind::Small(limit) => match random.below(12) {
                0 => random.bits() & 0xffff_ffff,
                _ => random.below(limit),
            },
            Kind::F16 => random.float(5, 10),
            Kind::Bf16 => random.float(8, 7),
            Kind::F32 => random.float(8, 23),
            Kind::F64 => random.float(11, 52),
            Kind::Near => random.below(2) << 31 | (110 + random.below(28)) << 23 | random.bits() & 0x7f_ffff,
            Kind::Pair(bf16) => {
                let half = if bf16 { Kind::Bf16 } else { Kind::F16 };
                half.draw(random) | half.draw(random) << 16
            }
            Kind::Filled(bf16) => match random.below(16) {
                0 | 1 => 0x7ff7,
                2 => 0xfff7,
                3 => 0x7fff,
                _ if bf16 => Kind::Bf16.draw(random),
                _ => Kind::F16.draw(random),
            },
            Kind::Byte => random.below(256),
            Kind::Bytes => random.below(1 << 16),
        }
    }
}

/// What results are, to tell NaN from other bits and to measure distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Bits,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    F32,
    F64,
}

impl Shape {
    /// Numbers in a result: how many, their bits, and those of an infinity.
    fn numbers(self) -> (u32, u32, u64) {
        match self {
            Shape::Bits => (0, 0, 0),
            Shape::F16 => (1, 16, 0x7c00),
            Shape::Bf16 => (1, 16, 0x7f80),
            Shape::F16x2 => (2, 16, 0x7c00),
            Shape::Bf16x2 => (2, 16, 0x7f80),
            Shape::F32 => (1, 32, 0x7f80_0000),
            Shape::F64 => (1, 64, 0x7ff0 << 48),
        }
    }

    /// How many last places two results differ by; none if they differ only in the bits of NaN.
    fn distance(self, found: u64, wanted: u64) -> Option<u64> {
        let (count, width, infinity) = self.numbers();
        if count == 0 {
            return Some(u64::from(found != wanted));
        }
        let (mut largest, mut nan) = (0, false);
        for at in 0..count {
            let mask = u64::MAX >> (64 - width);
            let [x, y] = [found, wanted].map(|bits| bits >> (width * at) & mask);
            let magnitude = |bits: u64| bits & (mask >> 1);
            let rank = |bits: u64| {
                let magnitude = i128::from(magnitude(bits));
                if bits > mask >> 1 { -magnitude } else { magnitude }
            };
            match (magnitude(x) > infinity, magnitude(y) > infinity) {
                (true, true) => nan |= x != y,
                (false, false) => {
                    // Zeros of both signs are one place apart.
                    let apart = (rank(x) - rank(y)).unsigned_abs().max(u128::from(x != y));
                    largest = largest.max(u64::try_from(apart).unwrap_or(u64::MAX));
                }
                _ => largest = u64::MAX,
            }
        }
        if largest == 0 && nan { None } else { Some(largest) }
    }
}

/// How results compare.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) compared: usize,
    pub(crate) equal: usize,
    /// Results that are NaN on both sides, with other bits.
    pub(crate) nan: usize,
    /// The largest distance in last places.
    pub(crate) distance: u64,
    /// The first that differ, or what else there is to say.
    pub(crate) notes: Vec<String>,
}

pub(crate) type Check = Box<dyn Fn(&[u8]) -> Outcome>;

/// A kernel and what is compared.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) blocks: usize,
    pub(crate) threads: usize,
    pub(crate) input: Vec<u8>,
    pub(crate) output_bytes: usize,
    /// Whether the ISA leaves last places open.
    pub(crate) approximate: bool,
    pub(crate) check: Check,
    /// A tensor map of the input, which is a third parameter.
    pub(crate) map: Option<GivenMap>,
}

/// Threads that try an instruction of one lane.
const THREADS: usize = 8192;
const BLOCK: usize = 128;
/// Differing results that are shown.
const SHOWN: usize = 2;

/// The beginning of a kernel: `%at` is its thread's number, `%in` and `%out` the addresses.
pub(crate) const HEAD: &str = "\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .pred %p<8>;
    .reg .b16 %h<16>;
    .reg .b32 %r<32>, %thread, %block, %at;
    .reg .b64 %d<32>, %in, %out;
    ld.param.u64 %in, [x];
    ld.param.u64 %out, [y];
    cvta.to.global.u64 %in, %in;
    cvta.to.global.u64 %out, %out;
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mad.lo.u32 %at, %block, 128, %thread;
";

fn register(bits: u32, number: usize) -> String {
    let letter = match bits {
        16 => "h",
        32 => "r",
        _ => "d",
    };
    format!("%{letter}{number}")
}

impl Program {
    /// An instruction of one lane: `{d}` is its result of `bits` bits, `{a}` to `{e}` its operands.
    pub(crate) fn lane(
        name: &str,
        operands: &[Kind],
        (bits, shape): (u32, Shape),
        statement: &str,
        evaluate: impl Fn(&[u64]) -> u64 + 'static,
    ) -> Program {
        let mut random =
            Random(name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into())));
        let count = operands.len();
        let values: Vec<Vec<u64>> =
            operands.iter().map(|kind| (0..THREADS).map(|_| kind.draw(&mut random)).collect()).collect();
        let mut text = HEAD.to_string();
        let mut written = statement.to_string();
        text += "    mul.wide.u32 %d20, %at, 8;\n    add.u64 %d21, %in, %d20;\n    add.u64 %d22, %out, %d20;\n";
        for (number, kind) in operands.iter().enumerate() {
            let name = register(kind.bits(), number + 1);
            let _ = writeln!(text, "    ld.global.b64 %d23, [%d21+{}];", number * THREADS * 8);
            let _ = match kind.bits() {
                16 => writeln!(text, "    cvt.u16.u64 {name}, %d23;"),
                32 => writeln!(text, "    cvt.u32.u64 {name}, %d23;"),
                _ => writeln!(text, "    mov.b64 {name}, %d23;"),
            };
            let letter = ["{a}", "{b}", "{c}", "{e}"][number];
            written = written.replace(letter, &name);
        }
        let result = register(bits, 10);
        let _ = writeln!(text, "    {}", written.replace("{d}", &result));
        let _ = match bits {
            16 => writeln!(text, "    cvt.u64.u16 %d24, {result};"),
            32 => writeln!(text, "    cvt.u64.u32 %d24, {result};"),
            _ => writeln!(text, "    mov.b64 %d24, {result};"),
        };
        text += "    st.global.b64 [%d22], %d24;\n    ret;\n}\n";
        let input = values.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let check = move |output: &[u8]| {
            let mut outcome = Outcome::default();
            for (thread, bytes) in output.chunks_exact(8).enumerate() {
                let found = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                let own: Vec<u64> = (0..count).map(|operand| values[operand][thread]).collect();
                let wanted = evaluate(&own) & (u64::MAX >> (64 - bits));
                outcome.add(found, wanted, shape, || format!("{own:x?}"));
            }
            outcome
        };
        Program {
            name: name.into(),
            text,
            blocks: THREADS / BLOCK,
            threads: BLOCK,
            input,
            output_bytes: 8 * THREADS,
            approximate: false,
            check: Box::new(check),
            map: None,
        }
    }

    /// The same, of which the ISA leaves last places open.
    pub(crate) fn approximate(self) -> Program {
        Program { approximate: true, ..self }
    }
}

impl Outcome {
    /// Compares one result.
    pub(crate) fn add(&mut self, found: u64, wanted: u64, shape: Shape, of: impl Fn() -> String) {
        self.compared += 1;
        if found == wanted {
            self.equal += 1;
            return;
        }
        match shape.distance(found, wanted) {
            None => {
                self.nan += 1;
                if self.nan == 1 {
                    self.notes.push(format!("NaN of {}: device {found:x}, here {wanted:x}", of()));
                }
            }
            Some(distance) => {
                self.distance = self.distance.max(distance);
                let shown = self.notes.iter().filter(|note| !note.starts_with("NaN")).count();
                if shown < SHOWN {
                    self.notes.push(format!("of {}: device {found:x}, here {wanted:x}", of()));
                }
            }
        }
    }
}
