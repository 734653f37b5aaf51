//! The reader of PTX: what it keeps, and what it refuses.
//!
//! Law: a name means what the innermost scope says; each statement has its line and its place in
//! the source; damaged text and text out of the limits is refused with a line, in linear time.

use tilewright_sanitize::ptx::{MAX_NESTING, Operand, Scalar, StatementKind, parse};

const HEAD: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n";

fn body(text: &str) -> String {
    format!("{HEAD}.visible .entry f(.param .u64 a) {{\n{text}\n}}\n")
}

#[test]
fn names_are_resolved_in_their_scopes() {
    let text = body(
        ".reg .b32 %r<4>;
         mov.b32 %r1, 1;
         { .reg .b64 %r1; .reg .pred p; L: mov.b64 %r1, 2; @p bra L; }
         { .reg .pred p; L: @!p bra L; }
         mov.b32 %r1, %r3;",
    );
    let module = parse(&text).unwrap();
    let function = &module.functions[0];
    let statements = function.body.as_ref().unwrap();
    let moves: Vec<u32> = statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Instruction { opcode: "mov", operands, .. } => match operands[0] {
                Operand::Register(register) => Some(register),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(function.registers[moves[0] as usize], Scalar::B(32));
    assert_eq!(function.registers[moves[1] as usize], Scalar::B(64));
    assert_eq!(moves[0], moves[2]);
    let branches: Vec<(u32, bool)> = statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Instruction { opcode: "bra", operands, guard: Some((_, negated)), .. } => {
                match operands[0] {
                    Operand::Label(label) => Some((label, *negated)),
                    _ => None,
                }
            }
            _ => None,
        })
        .collect();
    assert_eq!(branches, [(0, false), (1, true)]);
}

#[test]
fn statements_have_their_places() {
    let text = body(
        ".loc 1 7 3
         mov.b32 %r1, 1;
         .loc 1 30 5, function_name $L__info_string0, inlined_at 1 7 3
         mov.b32 %r1, 2;",
    )
    .replace("mov.b32 %r1, 1;", "bar.sync 0;")
    .replace("mov.b32 %r1, 2;", "ret;")
        + ".file 1 \"/home/x/mm.py\"";
    let module = parse(&text).unwrap();
    let statements = module.functions[0].body.as_ref().unwrap();
    assert_eq!(module.describe(statements[0].location.unwrap()).unwrap(), "mm.py:7");
    assert_eq!(module.describe(statements[1].location.unwrap()).unwrap(), "mm.py:30, inlined at mm.py:7");
    assert_eq!(statements[0].line, 6);
}

#[test]
fn operands_are_read_in_all_their_forms() {
    let text = body(
        ".reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .reg .f32 %f<2>; .shared .align 16 .b8 s[64];
         setp.eq.s32 %p1|%p2, %r1, -0x10;
         mov.b64 {%r1, _}, %d1;
         ld.shared.v2.b32 {%r1, %r2}, [s+8];
         mov.f32 %f1, 0fBF800000;
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, %r3}], [%r4];
         selp.b32 %r1, 0b101, 017, !%p1;
         mov.u32 %r1, %cluster_ctaid.x;
         selp.b32 %r1, !0, !7, %p1;",
    );
    let module = parse(&text).unwrap();
    let all: Vec<_> = module.functions[0]
        .body
        .as_ref()
        .unwrap()
        .iter()
        .map(|statement| match &statement.kind {
            StatementKind::Instruction { modifiers, operands, .. } => (modifiers.clone(), operands.clone()),
            _ => unreachable!(),
        })
        .collect();
    assert!(matches!(all[0].1[0], Operand::Pair(..)));
    assert_eq!(all[0].1[2], Operand::Integer(0_u64.wrapping_sub(16)));
    assert!(matches!(&all[1].1[0], Operand::Vector(parts) if parts[1] == Operand::Sink));
    assert_eq!(all[2].1[1], Operand::Address(Box::new(Operand::Local(0, 0)), 8));
    assert_eq!(all[3].1[1], Operand::Float32((-1.0_f32).to_bits()));
    assert_eq!(all[4].0[4], "shared::cluster");
    assert!(matches!(&all[4].1[1], Operand::Tensor(parts) if parts.len() == 2));
    assert_eq!(all[5].1[1..3], [Operand::Integer(5), Operand::Integer(15)]);
    assert!(matches!(all[5].1[3], Operand::Not(_)));
    assert_eq!(all[6].1[1], Operand::Special("%cluster_ctaid.x"));
    assert_eq!(all[7].1[1..3], [Operand::Integer(1), Operand::Integer(0)]);
}

#[test]
fn what_is_damaged_is_refused_with_its_line() {
    let many = "{".repeat(MAX_NESTING + 1);
    let cases = [
        ("bra nowhere;", "line 5: there is no label `nowhere`"),
        ("mov.b32 %r1, 1;", "line 5: the register `%r1` is not declared"),
        (".reg .b32 %r<3>; mov.b32 %r3, 1;", "line 5: the register `%r3` is not declared"),
        ("L: L: ret;", "line 5: the label `L` stands twice"),
        ("mov.b32 %tid.w, 1;", "line 5: the register `%tid.w` is not known"),
        ("ret", "line 6: an operand is expected, not `}`"),
        (many.as_str(), "line 5: more than 64 braces are open"),
        (".shared .b8 s[99999999999][99999999999];", "line 5: the variable `s` is too large"),
        ("mov.f32 %f1, 0f12;", "line 5: the register `%f1` is not declared"),
        ("/* x", "line 5: the comment has no end"),
    ];
    for (text, message) in cases {
        assert_eq!(parse(&body(text)).unwrap_err().to_string(), message, "{text}");
    }
    assert!(parse("int main() {}").is_err());
    assert!(parse("").is_err());
}

#[test]
fn no_damage_makes_it_panic() {
    let text = body(
        ".reg .b32 %r<9>; .reg .pred %p<3>; .loc 1 2 3, function_name $x, inlined_at 1 2 3
         @%p1 bra L; ld.shared.v2.b32 {%r1, %r2}, [%r3+-8]; L: call (%r1), f, (%r2); /* c */ mov.f32 %r1, 0f00000000;",
    );
    for end in 0..text.len() {
        let _ = parse(&text[..end]);
        for sign in ["{", "]", "(", "%", ".", "0x", "\"", "\\", "<", "|", "\u{e9}"] {
            let _ = parse(&format!("{}{sign}{}", &text[..end], &text[end..]));
            let _ = parse(&format!("{}{sign}{}", &text[..end], text.get(end + 1..).unwrap_or_default()));
        }
    }
}

#[test]
fn a_text_of_ten_megabytes_takes_linear_time() {
    let line = "add.s32 %r1, %r2, %r3;\n";
    let text = body(&format!(".reg .b32 %r<2000000000>;\n{}", line.repeat((10 << 20) / line.len())));
    let module = parse(&text).unwrap();
    assert_eq!(module.functions[0].registers.len(), 3);
}
