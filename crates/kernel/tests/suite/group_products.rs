//! wgmma: right for every layout of its operands in shared memory,
//! and each step that is missing is found.

use tilewright_kernel::interpret::{CheckError, Interpreter, check};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Element, Kernel, KernelError, View, ptx};
use tilewright_layout::atoms::{Major, MmaAtom, Operand, SwizzleMode, TiledMma};
use tilewright_layout::{Layout, Slot, Tree};

/// The step that a kernel leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// The fence of those who stored the operands.
    Fence,
    /// The barrier between those who store and those who multiply.
    Barrier,
    /// The wait for the product.
    Wait,
    /// The wait leaves one product under way.
    Early,
    /// The operands are replaced before the product is waited for.
    Replaced,
    /// A condition keeps a warp out.
    Split,
}

/// One block: both operands to shared memory by ordinary stores, `steps` instructions along K, the
/// sums to global memory.
struct Case {
    element: Element,
    atom: String,
    /// Warpgroups along M.
    groups: i64,
    /// M, N, K.
    shape: [i64; 3],
    modes: [(SwizzleMode, Major); 2],
}

impl Case {
    fn kernel(&self, defect: Defect) -> Result<Kernel, KernelError> {
        let [m, n, k_size] = self.shape;
        let bits = i64::from(self.element.bits());
        let step = 256 / bits;
        let mma = TiledMma::new(
            MmaAtom::named(&self.atom)?,
            &format!("({},1,1)", self.groups).parse()?,
            &format!("[{}:1;{n}:1;{step}:1]", 64 * self.groups).parse()?,
        )?;
        let lies = |(mode, major): (SwizzleMode, Major), rows: i64| {
            Ok::<_, KernelError>(mode.tile(major, bits, &format!("({rows},{k_size})").parse()?)?.to_string())
        };
        let threads = 128 * self.groups;
        Kernel::build("multiplied", |k| {
            let a = k.tensor_of(self.element, "a", Layout::strided((m, k_size), (k_size, 1)), Role::Input)?;
            let b = k.tensor_of(self.element, "b", Layout::strided((n, k_size), (k_size, 1)), Role::Input)?;
            let sum = sum_of(self.element);
            let c = k.tensor_of(sum, "c", Layout::strided((m, n), (n, 1)), Role::Output)?;
            let left = k.shared_of(self.element, &lies(self.modes[0], m)?)?;
            let right = k.shared_of(self.element, &lies(self.modes[1], n)?)?;
            k.threads(threads)?;
            let fill = |from: &View<'_>, to: &View<'_>, size: i64| -> Result<(), KernelError> {
                part_of(to, threads, size)?.store(&part_of(from, threads, size)?.load()?)
            };
            fill(&a, &left, m * k_size)?;
            fill(&b, &right, n * k_size)?;
            if defect != Defect::Fence {
                k.fence_async();
            }
            if defect != Defect::Barrier {
                k.barrier();
            }
            let part = c.partition_mma(&mma, Operand::C)?;
            let sums = part.fragment_of(sum)?;
            sums.clear();
            if defect == Defect::Split {
                let inside = k.index(&k.thread()?)?.lt(k.number((threads - 32) as i32));
                k.when(inside, || {
                    k.mma(&mma, &sums, &left, &right, &sums)?;
                    k.wait_mma(0);
                    Ok(())
                })?;
                return part.store(&sums);
            }
            k.mma(&mma, &sums, &left, &right, &sums)?;
            match defect {
                Defect::Wait => {}
                Defect::Early => k.wait_mma(1),
                Defect::Replaced => {
                    fill(&a, &left, m * k_size)?;
                    k.wait_mma(0);
                }
                _ => k.wait_mma(0),
            }
            part.store(&sums)
        })
    }

    fn is_right(&self) {
        let [m, n, k] = self.shape.map(|size| size as usize);
        let kernel = self.kernel(Defect::None).unwrap_or_else(|error| panic!("{}: {error}", self.atom));
        assert!(ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap().contains("wgmma.mma_async"));
        assert_eq!(ptx::write(kernel.program(), ptx::Target::Sm80).unwrap_err().code(), "E0921");
        let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
        interpreter.fill(5);
        let checked =
            interpreter.check().unwrap_or_else(|findings| panic!("{} {:?}: {}", self.atom, self.modes, findings[0]));
        let values = |tensor: usize| numbers(self.element, checked.run.bytes(tensor).unwrap());
        let (a, b, c) = (values(0), values(1), sums(self.element, checked.run.bytes(2).unwrap()));
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let terms = (0..k).map(|at| a[row * k + at] * b[column * k + at]);
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
            let error = (c[row * n + column] - sum).abs();
            let rounding = if is_integer(self.element) { 0.0 } else { 2_f64.powi(-24) };
            assert!(error <= size * k as f64 * rounding, "{} {:?} ({row},{column}): {error}", self.atom, self.modes);
        }
    }
}

fn is_integer(element: Element) -> bool {
    matches!(element, Element::I8 | Element::U8)
}

/// The type of sums of products of a type.
fn sum_of(element: Element) -> Element {
    if is_integer(element) { Element::I32 } else { Element::F32 }
}

/// The sums that bytes are.
fn sums(element: Element, bytes: &[u8]) -> Vec<f64> {
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let number = |bits: u32| if is_integer(element) { f64::from(bits as i32) } else { f64::from(f32::from_bits(bits)) };
    words.map(number).collect()
}

/// The numbers that bytes are; the low bits of a tf32 are left out.
fn numbers(element: Element, bytes: &[u8]) -> Vec<f64> {
    match element {
        Element::F32 => {
            let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            words.map(|word| f64::from(f32::from_bits(word & !0x1fff))).collect()
        }
        Element::F16 => pairs(bytes).map(|bits| half::f16::from_bits(bits).to_f64()).collect(),
        Element::Bf16 => pairs(bytes).map(|bits| half::bf16::from_bits(bits).to_f64()).collect(),
        Element::I8 => bytes.iter().map(|byte| f64::from(*byte as i8)).collect(),
        Element::U8 => bytes.iter().map(|byte| f64::from(*byte)).collect(),
        Element::E4M3 => bytes.iter().map(|byte| small(*byte, 4, 3)).collect(),
        _ => bytes.iter().map(|byte| small(*byte, 5, 2)).collect(),
    }
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

/// The number that 8 bits are, of this many of exponent and mantissa.
fn small(byte: u8, exponent: u32, mantissa: u32) -> f64 {
    let fraction = f64::from(byte & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
    let power = i32::from(byte >> mantissa & ((1 << exponent) - 1));
    let bias = (1 << (exponent - 1)) - 1;
    let size = match power {
        0 => fraction * 2_f64.powi(1 - bias),
        power => (1.0 + fraction) * 2_f64.powi(power - bias),
    };
    if byte >> 7 == 1 { -size } else { size }
}

/// What a thread has of a tile, K first.
fn part_of<'k>(view: &View<'k>, threads: i64, size: i64) -> Result<View<'k>, KernelError> {
    view.select(&[1, 0])?.compose(&format!("({threads},{}):(1,{threads})", size / threads))?.thread_part()
}

const BF16: &str = "F32BF16BF16_SS";

fn case(
    element: Element,
    types: &str,
    columns: i64,
    groups: i64,
    steps: i64,
    modes: [(SwizzleMode, Major); 2],
) -> Case {
    let depth = 256 / i64::from(element.bits());
    let atom = format!("SM90_64x{columns}x{depth}_{types}");
    Case { element, atom, groups, shape: [64 * groups, columns, steps * depth], modes }
}

/// Every pair of swizzle and major, several steps along K, and one and two groups of warps.
#[test]
fn operands_lie_in_every_way() {
    for major in [Major::K, Major::MN] {
        for mode in SwizzleMode::ALL {
            for other in
                [(SwizzleMode::Bytes128, Major::K), (SwizzleMode::Bytes64, Major::MN), (SwizzleMode::None, Major::K)]
            {
                case(Element::Bf16, BF16, 64, 1, 4, [(mode, major), other]).is_right();
                case(Element::Bf16, BF16, 64, 1, 4, [other, (mode, major)]).is_right();
            }
            case(Element::F16, "F32F16F16_SS", 32, 2, 4, [(mode, major), (mode, Major::K)]).is_right();
        }
    }
}

#[test]
fn columns_and_types() {
    let both = |mode| [(mode, Major::K); 2];
    for columns in [8, 24, 128, 256] {
        case(Element::Bf16, BF16, columns, 1, 4, both(SwizzleMode::Bytes128)).is_right();
    }
    for mode in SwizzleMode::ALL {
        case(Element::F32, "F32TF32TF32_SS_TN", 32, 1, 4, both(mode)).is_right();
        case(Element::E4M3, "F32E4M3E4M3_SS_TN", 32, 1, 4, both(mode)).is_right();
        case(Element::E5M2, "F32E5M2E5M2_SS_TN", 32, 2, 4, both(mode)).is_right();
        case(Element::I8, "S32S8S8_SS_TN", 48, 1, 4, both(mode)).is_right();
        case(Element::U8, "S32U8U8_SS_TN", 24, 2, 4, both(mode)).is_right();
    }
}

/// Each defect is found under its code and no other, in three kernels.
#[test]
fn a_step_that_is_missing_is_found() {
    let expected: &[(Defect, &[&str])] = &[
        (Defect::Fence, &["E1019"]),
        (Defect::Barrier, &["E1018", "E1012", "E1019"]),
        (Defect::Wait, &["E1033", "E1020"]),
        (Defect::Early, &["E1033", "E1020"]),
        (Defect::Replaced, &["E1018"]),
        (Defect::Split, &["E1034"]),
    ];
    // The first code is found, and others besides only if they follow from the same.
    for (defect, codes) in expected {
        for case in [
            case(Element::Bf16, BF16, 16, 1, 1, [(SwizzleMode::Bytes32, Major::K); 2]),
            case(
                Element::F16,
                "F32F16F16_SS",
                64,
                2,
                4,
                [(SwizzleMode::Bytes128, Major::K), (SwizzleMode::Bytes128, Major::MN)],
            ),
            case(Element::E4M3, "F32E4M3E4M3_SS_TN", 32, 1, 2, [(SwizzleMode::Bytes64, Major::K); 2]),
        ] {
            let kernel = case.kernel(*defect).unwrap();
            let Err(CheckError::Findings(findings)) = check(kernel.program(), &[]) else {
                panic!("{defect:?} is not found in {}", case.atom);
            };
            assert!(findings.iter().any(|finding| finding.code() == codes[0]), "{defect:?} {}", case.atom);
            for finding in findings.iter() {
                assert!(codes.contains(&finding.code()), "{defect:?} {}: {finding}", case.atom);
            }
        }
    }
}

/// Defects of products whose A is in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Right,
    /// The sums are read before the wait.
    Read,
    /// A is loaded anew, iteration by iteration, while the product before may still read it.
    Replaced,
    /// B is replaced before the wait.
    Other,
}

/// One group of warps: A from global memory to registers, `iterations` times, and B in shared
/// memory.
fn held(element: Element, types: &str, columns: i64, steps: i64, defect: Held) -> Kernel {
    let bits = i64::from(element.bits());
    let depth = 256 / bits;
    let (k_size, iterations) = (steps * depth, 3);
    let mma = TiledMma::new(
        MmaAtom::named(&format!("SM90_64x{columns}x{depth}_{types}")).unwrap(),
        &"(1,1,1)".parse().unwrap(),
        &format!("[64:1;{columns}:1;{depth}:1]").parse().unwrap(),
    );
    let mma = mma.unwrap();
    let lies = SwizzleMode::Bytes32.tile(Major::K, bits, &format!("({columns},{k_size})").parse().unwrap()).unwrap();
    let written = Kernel::build("held", |k| {
        let a = k.tensor_of(
            element,
            "a",
            Layout::strided((64, k_size, iterations), (iterations * k_size, 1, k_size)),
            Role::Input,
        )?;
        let b = k.tensor_of(element, "b", Layout::strided((columns, k_size), (k_size, 1)), Role::Input)?;
        let sum = sum_of(element);
        let c = k.tensor_of(sum, "c", Layout::strided((64, columns), (columns, 1)), Role::Output)?;
        let right = k.shared_of(element, &lies.to_string())?;
        k.threads(128)?;
        let fill = || part_of(&right, 128, columns * k_size)?.store(&part_of(&b, 128, columns * k_size)?.load()?);
        fill()?;
        k.fence_async();
        k.barrier();
        let part = c.partition_mma(&mma, Operand::C)?;
        let sums = part.fragment_of(sum)?;
        sums.clear();
        k.range(iterations, |iteration| {
            let rows = a.slice(Tree::flat([Slot::All, Slot::All, Slot::At(iteration)])?)?;
            let rows = rows.partition_mma(&mma, Operand::A)?.load()?;
            k.mma(&mma, &sums, &rows, &right, &sums)?;
            if defect != Held::Replaced {
                k.wait_mma(0);
            }
            Ok(())
        })?;
        k.wait_mma(0);
        if matches!(defect, Held::Read | Held::Other) {
            let rows = a.slice(Tree::flat([Slot::All, Slot::All, Slot::At(0.into())])?)?;
            k.mma(&mma, &sums, &rows.partition_mma(&mma, Operand::A)?.load()?, &right, &sums)?;
        }
        if defect == Held::Other {
            fill()?;
            k.wait_mma(0);
        }
        part.store(&sums)
    });
    written.unwrap_or_else(|error| panic!("{types}: {error}"))
}

const HELD: [(Element, &str, i64, i64); 5] = [
    (Element::I8, "S32S8S8_RS_TN", 32, 2),
    (Element::Bf16, "F32BF16BF16_RS", 16, 1),
    (Element::F16, "F32F16F16_RS", 64, 2),
    (Element::E4M3, "F32E4M3E4M3_RS_TN", 32, 2),
    (Element::F32, "F32TF32TF32_RS_TN", 24, 4),
];

/// A in registers: as the definition says, for every type, and through a loop.
#[test]
fn rows_may_be_in_registers() {
    for (element, types, columns, steps) in HELD {
        let kernel = held(element, types, columns, steps, Held::Right);
        assert!(ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap().contains("wgmma.mma_async"));
        let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
        interpreter.fill(9);
        let checked = interpreter.check().unwrap_or_else(|findings| panic!("{types}: {}", findings[0]));
        let numbers = |tensor: usize| numbers(element, checked.run.bytes(tensor).unwrap());
        let (a, b, c) = (numbers(0), numbers(1), sums(element, checked.run.bytes(2).unwrap()));
        let (n, k) = (columns as usize, b.len() / columns as usize);
        let all = a.len() / 64;
        for (row, column) in (0..64).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let terms = (0..all).map(|at| a[row * all + at] * b[column * k + at % k]);
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
            let error = (c[row * n + column] - sum).abs();
            let rounding = if is_integer(element) { 0.0 } else { 2_f64.powi(-24) };
            assert!(error <= size * all as f64 * rounding, "{types} ({row},{column}): {error}");
        }
    }
}

#[test]
fn a_missing_step_of_rows_in_registers_is_found() {
    let expected: &[(Held, &[&str])] =
        &[(Held::Read, &["E1033", "E1020"]), (Held::Replaced, &["E1033"]), (Held::Other, &["E1018"])];
    for (defect, codes) in expected {
        for (element, types, columns, steps) in HELD {
            let kernel = held(element, types, columns, steps, *defect);
            let Err(CheckError::Findings(findings)) = check(kernel.program(), &[]) else {
                panic!("{defect:?} is not found in {types}");
            };
            assert!(findings.iter().any(|finding| finding.code() == codes[0]), "{defect:?} {types}");
            for finding in findings.iter() {
                assert!(codes.contains(&finding.code()), "{defect:?} {types}: {finding}");
            }
        }
    }
}

/// What cannot be a wgmma is refused, at its statement.
#[test]
fn what_cannot_be_is_refused() {
    let refused = |threads: i64, warps: std::ops::Range<u32>, left: &str, element: Element, twice: bool| {
        let mma = TiledMma::new(
            MmaAtom::named("SM90_64x64x16_F32BF16BF16_SS").unwrap(),
            &"(1,1,1)".parse().unwrap(),
            &"[64:1;64:1;16:1]".parse().unwrap(),
        );
        let mma = mma.unwrap();
        let kernel = Kernel::build("refused", |k| {
            let c = k.tensor::<f32>("c", "(64,64):(64,1)")?;
            let a = k.shared_of(element, left)?;
            let b = k.shared_of(Element::Bf16, "S<3,3,3> o 0 o (64,64):(64,1)")?;
            k.threads(threads)?;
            k.role(warps, || {
                let sums = c.partition_mma(&mma, Operand::C)?.fragment_of(Element::F32)?;
                let others = c.partition_mma(&mma, Operand::C)?.fragment_of(Element::F32)?;
                sums.clear();
                others.clear();
                k.mma(&mma, if twice { &others } else { &sums }, &a, &b, &sums)?;
                k.wait_mma(0);
                c.partition_mma(&mma, Operand::C)?.store(&sums)
            })
        });
        match kernel {
            Ok(_) => String::new(),
            Err(error) => {
                assert_eq!(error.source().statement, "mma", "{error}");
                error.to_string()
            }
        }
    };
    let rows = "S<3,3,3> o 0 o (64,64):(64,1)";
    assert_eq!(refused(128, 0..4, rows, Element::Bf16, false), "");
    assert!(refused(160, 1..5, rows, Element::Bf16, false).contains("a multiple of four"));
    assert!(refused(128, 0..4, rows, Element::F16, false).contains("another type"));
    assert!(refused(128, 0..4, rows, Element::Bf16, true).contains("C and D are one fragment"));
    // Rows of 32 bytes swizzled as if they had 128, and rows of which the second begins anywhere.
    assert!(refused(128, 0..4, "S<3,3,3> o 0 o (64,16):(16,1)", Element::Bf16, false).contains("canonical"));
    assert!(refused(128, 0..4, "(64,64):(72,1)", Element::Bf16, false).contains("canonical"));
}
