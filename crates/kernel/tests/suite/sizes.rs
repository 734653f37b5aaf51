//! Sizes that 32 bits with a sign do not hold: a launch counts them in 64 bits, or is refused by
//! their name.
//!
//! Law: no launch that is accepted has a number that a thread reads as another one. So at sizes
//! from 2^31 on a kernel that only finds elements is as right as below, and one that counts
//! iterations, hands a size to arithmetic or names boxes by coordinates is refused.

use tilewright_kernel::interpret::{Interpreter, SetupError};
use tilewright_kernel::{Build, Element, Kernel, KernelError};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

const LARGE: [i64; 5] = [1 << 31, (1 << 31) + 5, (1 << 32) - 1, 1 << 32, (1 << 40) + 3];

/// What a launch and the interpreter say.
fn refused(kernel: &Kernel, sizes: &[(&str, i64)]) -> String {
    let launch = kernel.program().launch(sizes).unwrap_err();
    let SetupError::Size { what } = &launch else { panic!("{launch:?}") };
    // The interpreter refuses it too, for this or for its own limits.
    assert!(Interpreter::new(kernel.program(), sizes).is_err());
    what.clone()
}

/// One thread adds up a stretch of `x` that is read again and again, K times.
fn summed(count: &str) -> Kernel {
    Kernel::build("summed", |k: &Build| -> Result<(), KernelError> {
        let (x, y) = (k.input::<f32>("x", "(1,4):(4,1)")?, k.output::<f32>("y", "(1,4):(4,1)")?);
        k.input::<f32>("z", "(K,1):(0,1)")?;
        k.threads(1)?;
        let sum = y.thread_part()?.fragment()?;
        sum.clear();
        k.range(k.size(count)?, |_| {
            let next = sum.zip(&x.thread_part()?.load()?, |a, b| Ok(a + b))?.numbers()?;
            sum.set(&next)
        })?;
        y.thread_part()?.store(&sum)
    })
    .unwrap()
}

#[test]
fn turns_are_counted_in_32_bits_or_the_launch_is_refused() {
    let kernel = summed("K");
    assert!(kernel.program().launch(&[("K", i64::from(i32::MAX))]).is_ok());
    for large in LARGE {
        let what = refused(&kernel, &[("K", large)]);
        assert!(what.contains("`K`") && what.contains(&large.to_string()), "{what}");
    }
    // A part of it fits.
    let kernel = summed("K/64");
    assert!(kernel.program().launch(&[("K", 1 << 36)]).is_ok());
    assert!(refused(&kernel, &[("K", 1 << 38)]).contains("4294967296"));
}

/// Each element is `M`, as a number.
fn numbered() -> Kernel {
    Kernel::build("numbered", |k: &Build| -> Result<(), KernelError> {
        let y = k.output::<i32>("y", "M:1")?.local_tile(32, k.block("x")?)?;
        k.threads(32)?;
        let part = y.thread_part()?;
        let number = k.register(Element::I32, 1)?;
        number.fill(k.index(&k.size("M")?)?)?;
        part.store_predicated(&number)
    })
    .unwrap()
}

#[test]
fn a_size_that_is_a_number_of_threads_fits_or_is_refused() {
    let kernel = numbered();
    assert!(kernel.program().launch(&[("M", i64::from(i32::MAX))]).is_ok());
    for large in &LARGE[..4] {
        let what = refused(&kernel, &[("M", *large)]);
        assert!(what.contains("`M`") && what.contains(&large.to_string()), "{what}");
    }
}

/// Each thread stores the number of its element, which it computes from its block.
fn placed() -> Kernel {
    Kernel::build("placed", |k: &Build| -> Result<(), KernelError> {
        let y = k.output::<i32>("y", "M{div=32}:1")?.local_tile(32, k.block("x")?)?;
        k.threads(32)?;
        let number = k.register(Element::I32, 1)?;
        let block = k.block_number(tilewright_kernel::program::operation::Axis::X);
        let first = tilewright_layout::Stride::times(&block, &Expr::from(32)).unwrap();
        number.fill(k.index(&first)?)?;
        y.thread_part()?.store(&number)
    })
    .unwrap()
}

#[test]
fn what_threads_compute_fits_at_its_greatest() {
    let kernel = placed();
    // The last block begins at 2^31 - 32.
    assert!(kernel.program().launch(&[("M", 1 << 31)]).is_ok());
    for large in [(1 << 31) + 32, 1 << 32, 1 << 35] {
        let what = refused(&kernel, &[("M", large)]);
        assert!(what.contains(&(large - 32).to_string()), "{what}");
    }
}

#[test]
fn elements_are_found_in_64_bits() {
    // Offsets alone have no limit on the number of elements.
    let kernel = Kernel::build("twice", |k: &Build| -> Result<(), KernelError> {
        let (x, y) = (k.input::<u8>("x", "M:1")?, k.output::<u8>("y", "M:1")?);
        k.threads(128)?;
        let block = k.block("x")?;
        let part = x.local_tile(128, block.clone())?.thread_part()?.load_predicated()?;
        y.local_tile(128, block)?.thread_part()?.store_predicated(&part)
    })
    .unwrap();
    for large in [1 << 31, (1 << 31) + 5, (1 << 32) - 1, 1 << 32, (1 << 37) + 3] {
        let launch = kernel.program().launch(&[("M", large)]).unwrap();
        assert_eq!(i64::from(launch.grid[0]), (large + 127) / 128);
    }
    let text = tilewright_kernel::ptx::write(kernel.program(), tilewright_kernel::ptx::Target::Sm80).unwrap();
    assert!(text.contains(".s64"), "{text}");
}

#[test]
fn coordinates_of_boxes_have_32_bits() {
    let kernel = Kernel::build("boxes", |k: &Build| -> Result<(), KernelError> {
        let x = k.input::<u8>("x", "(M,64):(64,1)")?;
        let y = k.output::<u8>("y", "(32,64):(64,1)")?;
        k.threads(32)?;
        let tile = k.shared::<u8>("(32,64):(64,1)")?;
        let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
        k.single(|| {
            stage.acquire()?;
            stage.load(
                &x.local_tile((32, 64), Tree::flat([Slot::At(Expr::from(0)), Slot::At(Expr::from(0))])?)?,
                &tile,
            )?;
            stage.publish()
        })?;
        stage.wait()?;
        y.thread_part()?.store(&tile.thread_part()?.load()?)?;
        stage.release()
    })
    .unwrap();
    assert!(kernel.program().launch(&[("M", 1 << 31)]).is_ok());
    for large in [(1 << 31) + 1, (1 << 32) - 1, 1 << 32] {
        let what = refused(&kernel, &[("M", large)]);
        assert!(what.contains("`x` has extent") && what.contains(&large.to_string()), "{what}");
    }
}

#[test]
fn constants_that_do_not_fit_are_refused_when_the_kernel_is_written() {
    for large in LARGE.into_iter().chain([-(1 << 31) - 1]) {
        let built = Kernel::build("constant", |k: &Build| -> Result<(), KernelError> {
            let y = k.output::<i32>("y", "1:1")?;
            k.threads(1)?;
            let number = k.register(Element::I32, 1)?;
            number.fill(k.index(&Expr::from(large))?)?;
            y.store(&number)
        });
        assert_eq!(built.unwrap_err().code(), "E0910", "{large}");
        let built = Kernel::build("iterations", |k: &Build| -> Result<(), KernelError> {
            k.output::<i32>("y", "1:1")?;
            k.threads(1)?;
            k.range(large, |_| Ok(()))
        });
        if large > 0 {
            assert!(built.is_err(), "{large}");
        }
    }
}
