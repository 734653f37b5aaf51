//! A copy between any two layouts does what the naive loop does, and writes nothing else; and walks
//! over them have the offsets of their indices.
//!
//! The bytes are read as two layouts: the extents of the source, their splitting for the
//! destination, strides, a swizzle, and the way of copying.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_layout::{Composed, Layout, Leaf, Swizzle, Tree};
use tilewright_tensor::{CopyOptions, Instructions, Offsets, Plan, TensorView, TensorViewMut};

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn below(&mut self, bound: i64) -> i64 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        i64::from(*first) % bound
    }

    /// Strides that make a layout injective, or any.
    fn layout(&mut self, extents: &[i64]) -> Option<Layout> {
        let mut left: Vec<usize> = (0..extents.len()).collect();
        let mut strides = vec![0; extents.len()];
        let mut step = 1;
        let any = self.below(4) == 0;
        while !left.is_empty() {
            let mode = left.remove(self.below(left.len() as i64) as usize);
            strides[mode] = if any { self.below(40) - 8 } else { step * if self.below(5) == 0 { -1 } else { 1 } };
            step = step * extents[mode] + self.below(3);
        }
        let leaves = extents.iter().zip(strides).map(|(extent, stride)| Leaf { extent: *extent, stride });
        Layout::from_tree(Tree::flat(leaves).ok()?).ok()
    }

    /// The layout through a swizzle.
    fn composed(&mut self, layout: Layout) -> Option<Composed> {
        let bits = self.below(4);
        let shift = (bits + self.below(3)) * if self.below(3) == 0 { -1 } else { 1 };
        let swizzle = Swizzle::new(bits, self.below(5), shift).ok()?;
        // The offset keeps what the swizzle sees from being negative.
        let offset = layout.range().ok()?.0.checked_neg()? + self.below(20);
        Composed::new(swizzle, offset, layout).ok()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = run(&mut Bytes(bytes));
});

fn run(bytes: &mut Bytes<'_>) -> Option<()> {
    let extents: Vec<i64> = (0..1 + bytes.below(4)).map(|_| 1 + bytes.below(48)).collect();
    if extents.iter().product::<i64>() > 1 << 16 {
        return None;
    }
    let mut shape = Vec::new();
    for extent in &extents {
        let divisor = 1 + bytes.below(8);
        if extent % divisor == 0 { shape.extend([divisor, extent / divisor]) } else { shape.push(*extent) }
    }
    let instructions = [Instructions::Portable, Instructions::Avx2, Instructions::Avx512][bytes.below(3) as usize];
    let options = CopyOptions {
        threads: Some(1 + bytes.below(2) as usize),
        streaming: [None, Some(true), Some(false)][bytes.below(3) as usize],
        instructions: Some(instructions),
    };
    let (src, dst) = (bytes.layout(&extents)?, bytes.layout(&shape)?);
    let wide = bytes.below(4);
    match bytes.below(4) {
        0 => widths(&src, &dst, wide, options),
        1 => widths(&bytes.composed(src)?, &dst, wide, options),
        2 => widths(&src, &bytes.composed(dst)?, wide, options),
        _ => widths(&bytes.composed(src)?, &bytes.composed(dst)?, wide, options),
    }
}

fn widths<S: Offsets, D: Offsets>(src: &S, dst: &D, wide: i64, options: CopyOptions) -> Option<()> {
    match wide {
        0 => check(src, dst, options, |number| number as u8),
        1 => check(src, dst, options, |number| number as u16),
        2 => check(src, dst, options, |number| number as u32),
        _ => check(src, dst, options, |number| (number as u64).wrapping_mul(0x1_0000_0001)),
    }
}

fn check<T, S, D>(src: &S, dst: &D, options: CopyOptions, value: impl Fn(i64) -> T) -> Option<()>
where
    T: bytemuck::NoUninit + PartialEq,
    S: Offsets,
    D: Offsets,
{
    let (from_range, to_range) = (src.range().ok()?, dst.range().ok()?);
    walked(src)?;
    walked(dst)?;
    let memory = |range: (i64, i64), salt: i64| -> (Vec<T>, usize) {
        let least = range.0.min(0);
        ((least..range.1.max(0) + 6).map(|k| value(k.wrapping_mul(salt))).collect(), least.unsigned_abs() as usize)
    };
    let ((from, origin), (before, target)) = (memory(from_range, 2_654_435_761), memory(to_range, 40_503));
    let plan = match Plan::new(src, dst, size_of::<T>(), options) {
        Ok(plan) => plan,
        Err(error) => {
            // The sizes agree, so it can only be that the destination repeats an element, or is not
            // known not to.
            assert!(error.code() == "E0402", "{error}");
            return None;
        }
    };
    let view = TensorView::with_origin(&from, origin, src.clone()).expect("all offsets are inside");
    let (mut expected, mut found) = (before.clone(), before);
    for index in 0..dst.size() {
        let at = |origin: usize, offset: i64| (origin as i64 + offset) as usize;
        expected[at(target, dst.offset(index).ok()?)] = from[at(origin, src.offset(index).ok()?)];
    }
    let mut to = TensorViewMut::with_origin(&mut found, target, dst.clone()).expect("all offsets are inside");
    plan.run(&view, &mut to).expect("the layouts are those of the plan");
    assert!(found == expected, "{src} to {dst}, {} bytes, {options:?}\n{plan}", size_of::<T>());
    Some(())
}

/// Walks from the front, from the back, in steps from both ends, and by loops.
fn walked<L: Offsets>(layout: &L) -> Option<()> {
    let offsets = (0..layout.size()).map(|index| layout.offset(index).ok()).collect::<Option<Vec<i64>>>()?;
    assert!(layout.walk().eq(offsets.iter().copied()), "{layout}");
    assert!(layout.walk().rev().eq(offsets.iter().rev().copied()), "{layout} from the back");
    let (mut walk, mut left) = (layout.walk(), offsets.as_slice());
    while let [first, second, third, rest @ .., last] = left {
        assert_eq!((walk.len(), walk.next(), walk.next_back()), (left.len(), Some(*first), Some(*last)), "{layout}");
        let skipped = if left.len() % 3 == 0 { 0 } else { rest.len() / 3 };
        let next = if skipped == 0 { second } else { rest.get(skipped - 1).unwrap_or(third) };
        assert_eq!(walk.nth(if skipped == 0 { 0 } else { skipped + 1 }), Some(*next), "{layout}: {skipped}");
        left = if skipped == 0 { &left[2..left.len() - 1] } else { &rest[skipped..] };
        if left.len() % 5 == 0 {
            break;
        }
    }
    let mut rest = Vec::new();
    walk.for_each(|offset| rest.push(offset));
    assert!(rest == left, "{layout}: {} at the end", left.len());
    Some(())
}
