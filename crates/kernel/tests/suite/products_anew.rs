//! Products that begin anew (`mma_anew`): what the sums were does not count, and nobody reads it
//! behind the product.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Element, Kernel, KernelError, ptx};
use tilewright_layout::atoms::{Major, MmaAtom, Operand, SwizzleMode, TiledMma};

const TURNS: i64 = 3;

/// `c = 3 a b`: three products, each added to totals; `late` adds what the sums were before a
/// product behind it.
fn kernel(late: bool) -> Result<Kernel, KernelError> {
    let mma = TiledMma::new(
        MmaAtom::named("SM90_64x16x16_F32F16F16_SS")?,
        &"(1,1,1)".parse()?,
        &"[64:1;16:1;16:1]".parse()?,
    )?;
    let lies = |rows: i64| {
        let tile = SwizzleMode::Bytes64.tile(Major::K, 16, &format!("({rows},32)").parse()?)?;
        Ok::<_, KernelError>(tile.to_string())
    };
    Kernel::build("anew", |k| {
        let a = k.tensor_of(Element::F16, "a", "(64,32):(32,1)", Role::Input)?;
        let b = k.tensor_of(Element::F16, "b", "(16,32):(32,1)", Role::Input)?;
        let c = k.output::<f32>("c", "(64,16):(16,1)")?;
        let (left, right) = (k.shared_of(Element::F16, &lies(64)?)?, k.shared_of(Element::F16, &lies(16)?)?);
        k.threads(128)?;
        for (from, to, each) in [(&a, &left, 16), (&b, &right, 4)] {
            let cut = format!("(128,{each}):({each},1)");
            to.compose(&cut)?.thread_part()?.store(&from.compose(&cut)?.thread_part()?.load()?)?;
        }
        k.fence_async();
        k.barrier();
        let part = c.partition_mma(&mma, Operand::C)?;
        let (sums, totals) = (part.fragment()?, part.fragment()?);
        // What does not count.
        sums.fill(k.number(f32::NAN))?;
        totals.clear();
        k.range(TURNS, |_| {
            let before = sums.numbers()?;
            k.mma_anew(&mma, &sums, &left, &right)?;
            k.wait_mma(0);
            let own = if late { before } else { sums.numbers()? };
            let added: Vec<_> = totals.numbers()?.into_iter().zip(own).map(|(total, sum)| total + sum).collect();
            totals.set(&added)
        })?;
        part.store(&totals)
    })
}

#[test]
fn what_sums_were_does_not_count() {
    let kernel = kernel(false).unwrap();
    let text = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap();
    // The first step along K begins anew, the second adds.
    let products: Vec<&str> = text.lines().filter(|line| line.contains("wgmma.mma_async")).collect();
    assert_eq!(products.len(), 2);
    assert!(products[0].contains(", 0, 1, 1") && products[1].contains(", 1, 1, 1"), "{products:?}");
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.fill(7);
    let run = interpreter.check().unwrap_or_else(|findings| panic!("{}", findings[0])).run;
    let [a, b] = [0, 1].map(|tensor| run.tensor::<half::f16>(tensor).unwrap());
    let c = run.tensor::<f32>(2).unwrap();
    for (at, found) in c.iter().enumerate() {
        let terms = (0..32).map(|k| a[at / 16 * 32 + k].to_f64() * b[at % 16 * 32 + k].to_f64());
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + f64::abs(term)));
        let off = (f64::from(*found) - TURNS as f64 * sum).abs();
        assert!(off <= size * 40.0 * TURNS as f64 * 2_f64.powi(-24), "element {at}: {found}, not {sum}");
    }
}

/// The registers are those of the product from then on: who reads what they were is refused.
#[test]
fn what_sums_were_is_not_read_behind_the_product() {
    let kernel = kernel(true).unwrap();
    let error = ptx::write(kernel.program(), ptx::Target::Sm90a).unwrap_err();
    assert!(error.to_string().contains("read twice"), "{error}");
}
