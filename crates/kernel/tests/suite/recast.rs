//! The same memory as other elements, and accesses under a condition.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::{Element, Kernel, Reason};
use tilewright_layout::Stride;
use tilewright_layout::symbolic::Expr;

fn plus(a: &Expr, b: i64) -> Expr {
    Stride::plus(a, &Expr::from(b)).unwrap()
}

/// Bytes from any place on, by words that are aligned: the word that begins this many bytes into
/// that of a lane is made of it and that of the next lane.
#[test]
fn words_begin_at_any_byte() {
    for shift in 0..4 {
        let kernel = Kernel::build("shifted", |k| {
            let bytes = k.input::<u8>("bytes", "128:1")?;
            let words = bytes.recast(Element::U32, "32:1")?;
            let out = k.output::<u32>("out", "31:1")?;
            k.threads(32)?;
            let lane = k.thread()?;
            let own = words.at(&lane)?.load()?.numbers()?[0];
            let next = k.shuffle_from(own, &plus(&lane, 1))?;
            let value = k.register(Element::U32, 1)?;
            value.set(&[k.funnel_right(own, next, &Expr::from(8 * shift))?])?;
            out.at(&lane)?.store_predicated(&value)
        })
        .unwrap();
        let given: Vec<u8> = (0..128).map(|at: u32| (at * 37 + 11) as u8).collect();
        let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
        interpreter.bytes(0, &given).unwrap();
        let checked = interpreter.check().unwrap();
        let left = checked.run.bytes(1).unwrap();
        for at in 0..124 {
            assert_eq!(left[at], given[at + shift as usize], "{shift}: {at}");
        }
    }
}

/// An index before the tensor or behind it is left out under a condition, and brought inside by
/// `clamped`.
#[test]
fn what_a_condition_leaves_out_is_not_touched() {
    let kernel = Kernel::build("middle", |k| {
        let x = k.input::<f32>("x", "40:1")?;
        let shared = k.shared::<f32>("64:1")?;
        let (out, kept) = (k.output::<f32>("out", "64:1")?, k.output::<f32>("kept", "64:1")?);
        k.threads(64)?;
        let thread = k.thread()?;
        let before = plus(&thread, -10);
        let even = k.index(&k.remainder(&thread, 2)?)?.eq(k.number(0_i32));
        k.copy_async_where(even, &x.at(&before)?, &shared.at(&thread)?)?;
        k.commit_async();
        k.wait_async(0);
        out.at(&thread)?.store(&shared.at(&thread)?.load()?)?;
        kept.at(&thread)?.store(&x.at(&k.clamped(&before, 40)?)?.load()?)
    })
    .unwrap();
    let given: Vec<f32> = (1..=40).map(|at| at as f32).collect();
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor("x", &given).unwrap();
    let checked = interpreter.check().unwrap();
    let (out, kept): (Vec<f32>, Vec<f32>) = (checked.run.tensor("out").unwrap(), checked.run.tensor("kept").unwrap());
    for thread in 0..64_i64 {
        let at = thread - 10;
        let wanted = if thread % 2 == 0 && (0..40).contains(&at) { given[at as usize] } else { 0.0 };
        assert_eq!(out[thread as usize], wanted, "{thread}");
        assert_eq!(kept[thread as usize], given[at.clamp(0, 39) as usize], "{thread}");
    }
}

#[test]
fn what_reaches_past_the_tensor_is_refused() {
    let recast = |element: Element, layout: &'static str| {
        Kernel::build("recast", |k| {
            let bytes = k.input::<u8>("bytes", "(M{div=4},10):(10,1)")?;
            bytes.recast(element, layout)?;
            k.threads(1)
        })
    };
    // The only error left is that there is no output, or none.
    let refused = |element, layout| recast(element, layout).err().map(|error| error.reason().clone());
    for (element, layout) in [(Element::U32, "(M{div=4},3):(3,1)"), (Element::U8, "(M{div=4},10):(11,1)")] {
        assert!(matches!(refused(element, layout), Some(Reason::Outside { .. })), "{layout}");
    }
    for (element, layout) in [(Element::U32, "(M{div=4},2):(2,1)"), (Element::U16, "(M{div=4},5):(5,1)")] {
        assert!(!matches!(refused(element, layout), Some(Reason::Outside { .. })), "{layout}");
    }
    assert!(matches!(refused(Element::U8, "S<1,0,2> o 0 o 8:1"), Some(Reason::Instruction { .. })));
}
