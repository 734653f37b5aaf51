//! A panic of a function of elements, on whichever thread: it arrives at the caller, and the
//! tensors are as good as before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use rayon::ThreadPoolBuilder;
use tilewright_layout::Layout;
use tilewright_tensor::{Tensor, transform};

const SIZE: i64 = 1 << 20;

#[test]
fn a_panic_on_any_thread_arrives_at_the_caller() {
    let rows: Layout = "(1024,1024):(1024,1)".parse().unwrap();
    let columns: Layout = "(1024,1024):(1,1024)".parse().unwrap();
    let pool = ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let source = Tensor::from_fn(rows, |index| index).unwrap();
    let mut doubled = Tensor::filled(columns, 0_i64).unwrap();
    let failed_on = Mutex::new(Vec::new());
    for failing in [0, 1, SIZE / 3, SIZE / 2, SIZE - 1] {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| {
                transform(&source.view(), &mut doubled.view_mut(), |from, to| {
                    if *from == failing {
                        failed_on.lock().unwrap().push(thread::current().id());
                        panic!("element {failing}");
                    }
                    *to = 2 * from;
                })
            })
        }));
        let payload = caught.expect_err("the panic arrives");
        assert_eq!(payload.downcast_ref::<String>(), Some(&format!("element {failing}")));
        // The same threads and tensors go on.
        pool.install(|| transform(&source.view(), &mut doubled.view_mut(), |from, to| *to = 2 * from)).unwrap();
        assert!((0..SIZE).step_by(977).all(|at| doubled.get(at) == Ok(&(2 * source.get(at).unwrap()))));
    }
    // It was no thread of the caller.
    let failed_on = failed_on.into_inner().unwrap_or_default();
    assert!(failed_on.len() == 5 && failed_on.iter().all(|id| *id != thread::current().id()));
}
