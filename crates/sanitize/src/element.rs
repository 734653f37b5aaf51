//! Element types of arrays.

use half::{bf16, f16};

/// The element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// IEEE half precision, 16 bits.
    F16,
    /// bfloat16: 16 bits with the exponent range of f32.
    Bf16,
    /// IEEE single precision, 32 bits.
    F32,
    /// IEEE double precision, 64 bits.
    F64,
    /// A float of 8 bits with 4 exponent bits.
    E4m3,
    /// A float of 8 bits with 5 exponent bits.
    E5m2,
    /// A signed integer of this many bytes.
    Signed(u8),
    /// An unsigned integer of this many bytes.
    Unsigned(u8),
}

impl Element {
    pub(crate) const NAMES: &'static str = "f16, bf16, f32, f64, e4m3, e5m2, i8, i16, i32, i64, u8, u16, u32, u64";

    /// The type with a name such as `f32`.
    ///
    /// ```
    /// use tilewright_sanitize::Element;
    ///
    /// assert_eq!(Element::read("bf16"), Some(Element::Bf16));
    /// assert_eq!(Element::read("f80"), None);
    /// ```
    pub fn read(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "i8" | "s8" => Self::Signed(1),
            "i16" | "s16" => Self::Signed(2),
            "i32" | "s32" => Self::Signed(4),
            "i64" | "s64" => Self::Signed(8),
            "u8" | "b8" => Self::Unsigned(1),
            "u16" | "b16" => Self::Unsigned(2),
            "u32" | "b32" => Self::Unsigned(4),
            "u64" | "b64" => Self::Unsigned(8),
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::Signed(1) => "i8",
            Self::Signed(2) => "i16",
            Self::Signed(4) => "i32",
            Self::Signed(_) => "i64",
            Self::Unsigned(1) => "u8",
            Self::Unsigned(2) => "u16",
            Self::Unsigned(4) => "u32",
            Self::Unsigned(_) => "u64",
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::E4m3 | Self::E5m2 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
            Self::Signed(bytes) | Self::Unsigned(bytes) => u64::from(bytes),
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Signed(_) | Self::Unsigned(_))
    }

    /// Whether a file with elements of type `other` can be read as this type. It can if the types
    /// are equal, or if this is a float type that NumPy lacks and `other` is an integer type of the
    /// same size.
    pub(crate) fn is_like(self, other: Self) -> bool {
        self == other
            || matches!(other, Self::Bf16 | Self::E4m3 | Self::E5m2) && self == Self::Unsigned(other.bytes() as u8)
    }

    /// The bytes of a number, lowest first.
    pub(crate) fn encode(self, value: f64) -> Vec<u8> {
        match self {
            Self::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F64 => value.to_le_bytes().to_vec(),
            Self::E4m3 | Self::E5m2 => {
                let quarter = match self {
                    Self::E4m3 => crate::isa::convert::Quarter::E4m3,
                    _ => crate::isa::convert::Quarter::E5m2,
                };
                let bits = (value as f32).to_bits();
                vec![crate::isa::convert::quarters_of_f32(quarter, false, bits, bits) as u8]
            }
            Self::Signed(bytes) => (value as i64).to_le_bytes()[..bytes as usize].to_vec(),
            Self::Unsigned(bytes) => (value as u64).to_le_bytes()[..bytes as usize].to_vec(),
        }
    }

    /// The number that bytes represent, lowest first.
    pub(crate) fn decode(self, bytes: &[u8]) -> f64 {
        let mut all = [0; 8];
        let count = bytes.len().min(8);
        all[..count].copy_from_slice(&bytes[..count]);
        let bits = u64::from_le_bytes(all);
        match self {
            Self::F16 => f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => bf16::from_bits(bits as u16).to_f64(),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits),
            Self::E4m3 | Self::E5m2 => {
                let quarter = match self {
                    Self::E4m3 => crate::isa::convert::Quarter::E4m3,
                    _ => crate::isa::convert::Quarter::E5m2,
                };
                let pair = crate::isa::convert::f16_of_quarters(quarter, false, bits as u16);
                f16::from_bits(pair as u16).to_f64()
            }
            Self::Signed(_) | Self::Unsigned(_) => self.decode_integer(bytes).unwrap_or(0) as f64,
        }
    }

    /// The integer that bytes represent, lowest first; None for a float type.
    pub(crate) fn decode_integer(self, bytes: &[u8]) -> Option<i128> {
        let mut all = [0; 8];
        let count = bytes.len().min(8);
        all[..count].copy_from_slice(&bytes[..count]);
        let bits = u64::from_le_bytes(all);
        match self {
            Self::Signed(bytes) => {
                let shift = 64 - 8 * u32::from(bytes);
                Some(i128::from((bits << shift) as i64 >> shift))
            }
            Self::Unsigned(_) => Some(i128::from(bits)),
            _ => None,
        }
    }

    /// The bytes of a number that is written as text; None if it is no number, or an integer that
    /// does not fit.
    pub(crate) fn bytes_of(self, text: &str) -> Option<Vec<u8>> {
        if let Self::Signed(bytes) | Self::Unsigned(bytes) = self {
            let value = match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16).ok()?,
                None => text.parse::<i128>().ok()?,
            };
            let bits = 8 * u32::from(bytes);
            let fits = match self {
                Self::Signed(_) => (-(1_i128 << (bits - 1))..1 << (bits - 1)).contains(&value),
                _ => (0..1_i128 << bits).contains(&value),
            };
            return fits.then(|| value.to_le_bytes()[..bytes as usize].to_vec());
        }
        text.parse::<f64>().ok().map(|value| self.encode(value))
    }

    /// The bytes of an array that is filled in a named way, such as `zeros`; None if there is no
    /// such way.
    pub(crate) fn fill(self, word: &str, count: u64, seed: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity((count * self.bytes()) as usize);
        match word {
            "zeros" => bytes.resize((count * self.bytes()) as usize, 0),
            "ones" => (0..count).for_each(|_| bytes.extend(self.encode(1.0))),
            "nan" if self.is_integer() => bytes.resize((count * self.bytes()) as usize, 0xff),
            "nan" => (0..count).for_each(|_| bytes.extend(self.encode(f64::NAN))),
            "range" => (0..count).for_each(|at| bytes.extend(self.encode(at as f64))),
            "random" => {
                let mut state = seed ^ 0x5851_f42d_4c95_7f2d;
                for _ in 0..count {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let high = state >> 40;
                    let value = match self {
                        Self::Signed(_) | Self::Unsigned(_) => (high % 16) as f64,
                        _ => high as f64 / (1_u64 << 23) as f64 - 1.0,
                    };
                    bytes.extend(self.encode(value));
                }
            }
            _ => return None,
        }
        Some(bytes)
    }
}
