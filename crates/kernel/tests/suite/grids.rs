//! How many blocks and threads there are, as numbers of a kernel.
//!
//! Law: the number of blocks is that of the launch, whoever says it and whenever; results are those
//! of plain loops.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Reason};

/// Writes the number of blocks along two axes, and a number of each block that it makes of them.
fn written(k: &Build, asked_first: bool) -> Result<(), KernelError> {
    let y = k.output::<i32>("y", "(A,B,3):(1,A,A*B)")?;
    k.threads(1)?;
    let cut = || y.slice(k.block("(x,y,_)")?);
    let early = if asked_first { None } else { Some(cut()?) };
    let (across, down) = (k.grid_size(Axis::X), k.grid_size(Axis::Y));
    let (x, y_number) = (k.index(&k.block_number(Axis::X))?, k.index(&k.block_number(Axis::Y))?);
    let number = x + y_number * k.index(&across)?;
    let cells = k.register(Element::I32, 3)?;
    cells.set(&[k.index(&across)?, k.index(&down)?, number])?;
    early.map_or_else(cut, Ok)?.store(&cells)
}

#[test]
fn blocks_know_how_many_they_are() {
    for asked_first in [false, true] {
        let kernel = Kernel::build("numbered", |k| written(k, asked_first)).unwrap();
        for (a, b) in [(1, 1), (3, 1), (1, 4), (5, 3)] {
            let run = Interpreter::new(kernel.program(), &[("A", a), ("B", b)]).unwrap().check().unwrap().run;
            let found = run.tensor::<i32>("y").unwrap();
            let cells = (a * b) as usize;
            let wanted: Vec<i32> = (0..3 * cells)
                .map(|at| match at / cells {
                    0 => a as i32,
                    1 => b as i32,
                    _ => (at % cells) as i32,
                })
                .collect();
            assert_eq!(found, wanted, "{a} by {b}, asked first: {asked_first}");
        }
    }
}

#[test]
fn a_number_that_is_said_is_that_expression() {
    Kernel::build("said", |k| {
        k.input::<f32>("x", "(N,4):(4,1)")?;
        k.threads(4)?;
        k.grid(Axis::X, "ceil(N/2)")?;
        assert_eq!(k.grid_size(Axis::X).to_string(), k.size("ceil(N/2)")?.to_string());
        // Along the others the launch says it, which is no number that is known.
        assert_ne!(k.grid_size(Axis::Y).to_string(), "1");
        assert_eq!(k.grid_size(Axis::Y), k.grid_size(Axis::Y));
        Ok(())
    })
    .unwrap();
}

#[test]
fn threads_that_nobody_said_are_refused() {
    let refused = Kernel::build("unsaid", |k| {
        k.input::<f32>("x", "4:1")?;
        k.block_size().map(|_| ())
    });
    assert!(matches!(refused.unwrap_err().reason(), Reason::Unsaid { what: "the number of threads", .. }));
}
