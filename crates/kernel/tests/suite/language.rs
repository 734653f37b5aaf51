//! The meaning of statements: each program is run by the interpreter, under every schedule,
//! and compared with a plain loop.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, ElementType, Kernel, KernelError};
use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
use tilewright_layout::coord;
use tilewright_layout::symbolic::Expr;

/// What a kernel leaves in its last tensor, given the others.
fn run<I: ElementType, O: ElementType>(kernel: &Kernel, sizes: &[(&str, i64)], inputs: &[Vec<I>]) -> Vec<O> {
    let mut interpreter = Interpreter::new(kernel.program(), sizes).expect("the sizes are admitted");
    for (index, input) in inputs.iter().enumerate() {
        interpreter.tensor(index, input).expect("the input fits");
    }
    let checked = interpreter.check().expect("nothing is found");
    checked.run.tensor(inputs.len()).expect("the output has this type")
}

fn floats(count: i32) -> Vec<f32> {
    (0..count).map(|at| (at * 37 % 101 - 50) as f32 / 4.0).collect()
}

#[test]
fn sizes_of_no_layout_are_sizes() {
    // y = x + N, in G blocks, of which the first one writes.
    let kernel = Kernel::build("adds", |k| {
        let x = k.input::<i32>("x", "32:1")?;
        let y = k.tensor_of(Element::I32, "y", "32:1", Role::Both)?;
        k.threads(32)?;
        let by = k.launched("N{max=1000}")?;
        k.launched("G")?;
        k.grid(Axis::X, "G")?;
        let parts = [&x, &y].map(|tensor| tensor.compose("(32,1):(1,0)")?.thread_part());
        let [x, y] = parts;
        let (x, y, by) = (x?, y?, k.index(&by)?);
        let sum = x.load()?.map(|x| Ok(x + by))?;
        let block = k.index(&k.block_number(Axis::X))?;
        k.when(block.eq(k.number_of(Element::I32, 0.0)), || y.store(&sum))
    })
    .expect("it is a kernel");
    let names: Vec<&str> = kernel.program().sizes.iter().filter_map(|size| size.name()).collect();
    assert_eq!(names, ["N", "G"]);
    let x: Vec<i32> = (0..32).collect();
    for by in [1, 7, 1000] {
        let mut interpreter =
            Interpreter::new(kernel.program(), &[("N", by), ("G", 3)]).expect("the sizes are admitted");
        interpreter.tensor(0, &x).expect("the input fits");
        interpreter.tensor(1, &[0_i32; 32]).expect("the output fits");
        let checked = interpreter.check().expect("nothing is found");
        let left: Vec<i32> = checked.run.tensor(1).expect("the output has this type");
        assert_eq!(left, x.iter().map(|x| x + by as i32).collect::<Vec<i32>>());
    }
    assert!(Interpreter::new(kernel.program(), &[("N", 1001), ("G", 3)]).is_err());
}

#[test]
fn loops_carry_fragments() {
    // y(m) = sum over k of x(m,k), k in steps of 4, and the number of steps known at launch.
    let kernel = Kernel::build("sums", |k| {
        let x = k.input::<f32>("x", "(M{div=32},K{div=4}):(K,1)")?;
        let y = k.output::<f32>("y", "(M,1):(1,M)")?;
        k.threads(32)?;
        let rows = x.local_tile((32, 4), k.block("(x,_)")?)?;
        let sum = k.register(Element::F32, 1)?;
        sum.clear();
        k.range(k.size("K/4")?, |step| {
            let part = rows.slice(coord!(_, _, step)?)?.thread_part()?.load()?;
            for value in part.numbers()? {
                sum.set(&[sum.numbers()?[0] + value])?;
            }
            Ok(())
        })?;
        y.local_tile((32, 1), coord!(k.block_number(Axis::X), Expr::from(0))?)?.thread_part()?.store(&sum)
    })
    .unwrap();
    for (m, columns) in [(32, 4), (64, 20), (96, 8)] {
        let x = floats(m * columns);
        let y: Vec<f32> = run(&kernel, &[("M", m.into()), ("K", columns.into())], std::slice::from_ref(&x));
        let rows = x.chunks(columns as usize).map(|row| row.iter().sum::<f32>());
        assert_eq!(y, rows.collect::<Vec<_>>(), "{m} x {columns}");
    }
}

#[test]
fn conditions_choose_fragments() {
    // y = 2 x where x is positive, and -x elsewhere; and what only one body changes stays in the
    // other threads.
    let kernel = Kernel::build("chosen", |k| {
        let (x, y) = (k.input::<f32>("x", "N{div=64}:1")?, k.output::<f32>("y", "(64,N/64):(1,64)")?);
        k.threads(64)?;
        let tiles = x.zipped_divide("[64:1]")?;
        let block = k.block_number(Axis::X);
        let thread = k.thread()?;
        let x = tiles.slice(coord!(thread.clone(), block.clone())?)?.load()?;
        let value = x.numbers()?[0];
        let result = k.register(Element::F32, 1)?;
        result.fill(value)?;
        k.choose(value.gt(value.like(0.0)), || result.fill(value * 2.0), || result.fill(-value))?;
        k.when(value.lt(value.like(-10.0)), || result.fill(value.like(-1.0)))?;
        y.slice(coord!(thread, block)?)?.store(&result)
    })
    .unwrap();
    let x = floats(192);
    let y: Vec<f32> = run(&kernel, &[("N", 192)], std::slice::from_ref(&x));
    let wanted = x.iter().map(|x| {
        if *x < -10.0 {
            -1.0
        } else if *x > 0.0 {
            x * 2.0
        } else {
            -x
        }
    });
    assert_eq!(y, wanted.collect::<Vec<_>>());
}

#[test]
fn lanes_exchange_numbers_of_every_width() {
    fn sums<T: ElementType + PartialEq + std::fmt::Debug>(x: Vec<T>, add: impl Fn(T, T) -> T) {
        let kernel = Kernel::build("sums", |k| {
            let (x, y) = (k.input::<T>("x", "32:1")?, k.output::<T>("y", "32:1")?);
            k.threads(32)?;
            let thread = k.thread()?;
            let mut sum = x.slice(coord!(thread.clone())?)?.load()?.numbers()?[0];
            for mask in [16, 8, 4, 2, 1] {
                sum = sum + k.shuffle_xor(sum, mask);
            }
            let result = k.register(T::ELEMENT, 1)?;
            result.fill(sum)?;
            y.slice(coord!(thread)?)?.store(&result)
        })
        .unwrap();
        let y: Vec<T> = run(&kernel, &[], std::slice::from_ref(&x));
        let mut sums = x;
        for mask in [16, 8, 4, 2, 1] {
            sums = (0..32).map(|lane| add(sums[lane], sums[lane ^ mask])).collect();
        }
        assert_eq!(y, sums);
    }
    sums(floats(32), |a, b| a + b);
    sums((0..32).map(f64::from).collect(), |a, b| a + b);
    sums((0..32_u16).collect::<Vec<u16>>(), u16::wrapping_add);
    sums((0..32_i64).map(|x| x << 40).collect::<Vec<i64>>(), i64::wrapping_add);
}

#[test]
fn conversions_round_as_the_types_do() {
    let kernel = Kernel::build("narrow", |k| {
        let (x, y) = (k.input::<f32>("x", "(4,64):(1,4)")?, k.output::<half::bf16>("y", "(4,64):(1,4)")?);
        k.threads(64)?;
        let thread = k.thread()?;
        let at = coord!(_, thread)?;
        let narrow = x.slice(at.clone())?.load()?.map(|x| Ok(x.to(Element::F16).to(Element::F32).to(Element::Bf16)))?;
        y.slice(at)?.store(&narrow)
    })
    .unwrap();
    let x: Vec<f32> = (0..256).map(|at| 1.0 + at as f32 / 777.0).collect();
    let y: Vec<half::bf16> = run(&kernel, &[], std::slice::from_ref(&x));
    let wanted = x.iter().map(|x| half::bf16::from_f32(half::f16::from_f32(*x).to_f32()));
    assert_eq!(y, wanted.collect::<Vec<_>>());
}

#[test]
fn products_of_single_threads_need_no_instruction() {
    // 4 x 4 threads, each 2 x 2 of C, by multiplications and additions.
    let atom = MmaAtom::named("UniversalFMA<F32,F32,F32,F32>").unwrap();
    let mma = TiledMma::new(atom, &"(4,4,1)".parse().unwrap(), &"[4:1;4:1;1:1]".parse().unwrap()).unwrap();
    let kernel = Kernel::build("fma", |k| {
        let (a, b) = (k.input::<f32>("a", "(8,6):(6,1)")?, k.input::<f32>("b", "(8,6):(6,1)")?);
        let c = k.output::<f32>("c", "(8,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
        let sums = c.fragment()?;
        sums.clear();
        let (a, b) = (a.partition_mma(&mma, Operand::A)?, b.partition_mma(&mma, Operand::B)?);
        k.mma(&mma, &sums, &a.load()?, &b.load()?, &sums)?;
        c.store(&sums)
    })
    .unwrap();
    let (a, b) = (floats(48), floats(48).into_iter().rev().collect::<Vec<_>>());
    let c: Vec<f32> = run(&kernel, &[], &[a.clone(), b.clone()]);
    for (m, n) in (0..8).flat_map(|m| (0..8).map(move |n| (m, n))) {
        let sum: f32 = (0..6).map(|at| a[m * 6 + at] * b[n * 6 + at]).sum();
        assert_eq!(c[m * 8 + n], sum, "({m},{n})");
    }
}

#[test]
fn a_loop_that_only_exchanges_values_remains() {
    // Two fragments change places in each of three iterations, and nothing else is done there.
    let kernel = Kernel::build("exchanged", |k| {
        let (x, y) = (k.input::<i32>("x", "(32,2):(2,1)")?, k.output::<i32>("y", "(32,2):(2,1)")?);
        k.threads(32)?;
        let [a, b] = [0, 1].map(|at| {
            let pair = x.thread_part()?.load()?;
            let fragment = k.register(Element::I32, 1)?;
            fragment.set(&pair.numbers()?[at..=at])?;
            Ok::<_, KernelError>(fragment)
        });
        let (a, b) = (a?, b?);
        k.range(3, |_| {
            let (first, second) = (a.numbers()?, b.numbers()?);
            a.set(&second)?;
            b.set(&first)
        })?;
        let both = k.register(Element::I32, 2)?;
        both.set(&[a.numbers()?[0], b.numbers()?[0]])?;
        y.thread_part()?.store(&both)
    })
    .unwrap();
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor(0, &(0..64).collect::<Vec<i32>>()).unwrap();
    let found = interpreter.check().unwrap().run.tensor::<i32>(1).unwrap();
    assert!(found.iter().enumerate().all(|(at, found)| *found == (at ^ 1) as i32));
}
