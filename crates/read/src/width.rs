//! Widths of element types, by the names that systems give them, and swizzles of byte addresses.
//!
//! Law: if elements have `w` bits and the base of a tensor is aligned to the range that a swizzle
//! permutes, the swizzle of byte addresses becomes a swizzle of element indices by recasting it
//! from 8 to `w` bits.

use std::ops::Range;

use tilewright_layout::Swizzle;

use crate::refused::Refused;

/// The bits of an element type, by its name in any system; None for an unknown name.
///
/// ```
/// use tilewright_read::element_bits;
///
/// assert_eq!(element_bits("cutlass::half_t"), Some(16));
/// assert_eq!(element_bits("f8E4M3FN"), Some(8));
/// assert_eq!(element_bits("torch.bfloat16"), Some(16));
/// assert_eq!(element_bits("my_type"), None);
/// ```
pub fn element_bits(name: &str) -> Option<i64> {
    let name = name.trim();
    let name = name.rsplit("::").next().unwrap_or(name);
    let name = name.rsplit('.').next().unwrap_or(name);
    let name = name.strip_prefix("const ").unwrap_or(name).trim_end_matches([' ', '*', '&']);
    let name = name.strip_suffix(" const").unwrap_or(name);
    Some(match name {
        "bool" | "char" | "signed char" | "unsigned char" | "int8_t" | "uint8_t" | "i8" | "u8" | "s8" | "si8"
        | "ui8" | "int8" | "uint8" | "Int8" | "Uint8" => 8,
        "float_e4m3_t" | "float_e5m2_t" | "float_ue4m3_t" | "float_ue8m0_t" | "f8E4M3FN" | "f8E5M2" | "f8E4M3"
        | "f8E4M3B11FNUZ" | "f8E4M3FNUZ" | "f8E5M2FNUZ" | "f8E8M0FNU" | "float8_e4m3fn" | "float8_e5m2"
        | "float8_e8m0fnu" | "Float8E4M3FN" | "Float8E5M2" | "Float8E8M0FNU" | "__nv_fp8_e4m3" | "__nv_fp8_e5m2" => 8,
        "half_t" | "bfloat16_t" | "half" | "__half" | "__nv_bfloat16" | "nv_bfloat16" | "f16" | "bf16" | "float16"
        | "bfloat16" | "Float16" | "BFloat16" | "short" | "unsigned short" | "int16_t" | "uint16_t" | "i16" | "u16"
        | "int16" | "uint16" | "Int16" | "Uint16" => 16,
        "float" | "tfloat32_t" | "f32" | "tf32" | "float32" | "Float32" | "TFloat32" | "int" | "unsigned int"
        | "unsigned" | "int32_t" | "uint32_t" | "i32" | "u32" | "int32" | "uint32" | "Int32" | "Uint32" => 32,
        "double" | "f64" | "float64" | "Float64" | "long" | "unsigned long" | "long long" | "unsigned long long"
        | "int64_t" | "uint64_t" | "i64" | "u64" | "int64" | "uint64" | "Int64" | "Uint64" | "complex64" => 64,
        "uint128_t" | "int128_t" | "i128" | "complex128" => 128,
        "uint256_t" => 256,
        "float_e2m1_t" | "f4E2M1FN" | "Float4E2M1FN" | "int4b_t" | "uint4b_t" | "int4_t" | "uint4_t" | "i4" | "u4"
        | "Int4" | "float4_e2m1fn" | "e2m1" => 4,
        "float_e2m3_t" | "float_e3m2_t" | "f6E2M3FN" | "f6E3M2FN" | "Float6E2M3FN" | "Float6E3M2FN" => 6,
        "int2b_t" | "uint2b_t" => 2,
        "uint1b_t" | "i1" | "u1" => 1,
        _ => return None,
    })
}

/// A swizzle of byte addresses as a swizzle of element indices, with a note about the conversion.
///
/// Errors: the swizzle would cut an element in two (E1303).
pub fn swizzle_of_elements(
    swizzle: Swizzle,
    bits: i64,
    span: Range<usize>,
) -> Result<(Swizzle, Option<String>), Refused> {
    let told = format!("{swizzle} acts on byte addresses");
    // A swizzle that is the identity has no base that could cut an element.
    if swizzle.is_identity() {
        return Ok((swizzle, None));
    }
    match swizzle.recast(bits, 8) {
        Ok(own) => {
            let note = format!("{}; on elements of {bits} bits it is {own}", told.replace("S<", "Sw<"));
            Ok((own, Some(note)))
        }
        Err(error) => {
            let message = format!("{told}, and on elements of {bits} bits it is no swizzle: {error}");
            Err(Refused::contradiction(span, message))
        }
    }
}
