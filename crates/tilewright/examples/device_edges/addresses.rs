//! Accesses at addresses that are no multiples of their width: the interpreter and the device.
//!
//! Law: where the interpreter says E1011 the device traps, and elsewhere both leave the same bytes.
//! As in `engine.rs`, a kernel is built that is right, and an access of its program is moved by
//! some bytes. It reads or writes shared memory, which has room for that.

use std::error::Error;

use tilewright::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright::gpu::{Device, ModuleOptions};
use tilewright::kernel::interpret::{Interpreter, Schedule};
use tilewright::kernel::program::Program;
use tilewright::kernel::program::memory::{Access, Role, Space};
use tilewright::kernel::program::operation::Operation;
use tilewright::kernel::{Build, Element, Kernel, KernelError, ptx};
use tilewright::layout::symbolic::Expr;
use tilewright::layout::{Slot, Tree};

use crate::engine::{Fact, each_instruction};
use crate::guarded::{Guarded, Outcome};

/// Elements of shared memory: 32 threads with 16 each.
const HELD: usize = 512;

/// What accesses shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// 16 bytes of a thread.
    Vectors,
    /// Four matrices of 8 x 8 (`ldmatrix`).
    Matrices,
}

/// An access that is moved by this many bytes.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    what: What,
    by: i64,
}

impl Moved {
    fn built(self) -> Result<Kernel, Box<dyn Error>> {
        let mma = TiledMma::new(
            MmaAtom::named("SM80_16x8x16_F32BF16BF16F32_TN")?,
            &"(1,1,1)".parse()?,
            &"[16:1;8:1;16:1]".parse()?,
        )?;
        let matrices = TiledCopy::of_operand(CopyAtom::named("SM75_U32x4_LDSM_N")?, &mma, Operand::A)?;
        let (own, tile) = match self.what {
            What::Vectors => ("(64,8):(8,1)", "(32,8)"),
            What::Matrices => ("(32,16):(16,1)", "(16,16)"),
        };
        Ok(Kernel::build("moved", |k: &Build| -> Result<(), KernelError> {
            let x = k.tensor_of(Element::Bf16, "x", own, Role::Input)?;
            let y = k.tensor_of(Element::Bf16, "y", "(32,8):(8,1)", Role::Output)?;
            k.threads(32)?;
            let held = k.shared_of(Element::Bf16, own)?;
            let each = "(32,16):(1,32)";
            held.compose(each)?.thread_part()?.store(&x.compose(each)?.thread_part()?.load()?)?;
            k.barrier();
            let part = held.local_tile(tile, Tree::flat([0, 0].map(|at| Slot::At(Expr::from(at))))?)?;
            let values = match self.what {
                What::Vectors => part.thread_part()?.load()?,
                What::Matrices => {
                    let values = part.partition_mma(&mma, Operand::A)?.fragment()?;
                    k.copy(&matrices, &part, &values.retile(&matrices, CopyEnd::Destination)?)?;
                    values
                }
            };
            let place = y.thread_part()?;
            let left = place.fragment()?;
            left.set(&values.numbers()?)?;
            place.store(&left)
        })?)
    }

    fn program(self) -> Result<Program, Box<dyn Error>> {
        let mut program = self.built()?.program().clone();
        let shared: Vec<bool> = program.buffers.iter().map(|buffer| buffer.space == Space::Shared).collect();
        let mut changed = 0;
        let mut moved = |access: &mut Access| {
            if shared[access.buffer.index()] {
                access.offset += self.by;
                changed += 1;
            }
        };
        each_instruction(&mut program.body, &mut |own| match (&mut own.operation, self.what) {
            (Operation::Load(access), What::Vectors) | (Operation::LoadMatrix { access, .. }, What::Matrices) => {
                moved(access);
            }
            _ => {}
        });
        if changed == 0 { Err("the program has no such access".into()) } else { Ok(program) }
    }

    fn contents() -> Vec<u8> {
        (0..2 * HELD).map(|at| (at * 37 % 251) as u8).collect()
    }

    /// What the interpreter leaves; none if it says E1011.
    fn expected(self) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
        let program = self.program()?;
        let mut interpreter = Interpreter::new(&program, &[])?;
        interpreter.bytes(0, &Moved::contents())?;
        match interpreter.run(Schedule::ALL[0]) {
            Ok(run) => Ok(Some(run.bytes(1)?.to_vec())),
            Err(findings) if findings[0].code() == "E1011" => Ok(None),
            Err(findings) => Err(findings[0].to_string().into()),
        }
    }
}

impl Fact for Moved {
    fn words(&self) -> String {
        let what = if self.what == What::Vectors { "vectors of 16 bytes" } else { "ldmatrix" };
        format!("{what} from shared memory, moved by {} bytes", self.by)
    }

    fn traps(&self) -> Outcome<bool> {
        Ok(self.expected()?.is_none())
    }

    fn launched(&self, device: &Device) -> Outcome<String> {
        let (program, stream) = (self.program()?, device.stream()?);
        let text = ptx::write(&program, device.target()?)?;
        let x = Guarded::of(device, &stream, &Moved::contents())?;
        let mut y = Guarded::empty(device, &stream, 512)?;
        let kernel = device.compile_text(&program, &text, &ModuleOptions::default())?;
        kernel.at(&[])?.launch(&stream, &[x.read()?, y.written()?])?;
        stream.synchronize()?;
        x.untouched(&stream)?;
        let left = y.kept(&stream, 1, 0..512)?;
        match self.expected()? {
            None => Ok("no trap, where the interpreter says E1011".to_string()),
            Some(wanted) if wanted == left => Ok("as the interpreter says".to_string()),
            Some(_) => Err("other bytes than the interpreter leaves".into()),
        }
    }
}

/// Every access, moved by less than its width, and by all of it.
pub fn facts() -> Vec<Moved> {
    [What::Vectors, What::Matrices].into_iter().flat_map(|what| [0, 2, 4, 8, 16].map(|by| Moved { what, by })).collect()
}

#[cfg(test)]
mod tests {
    use super::facts;

    #[test]
    fn the_interpreter_knows_alignments() {
        for fact in facts() {
            let expected = fact.expected().unwrap_or_else(|error| panic!("{fact:?}: {error}"));
            assert_eq!(expected.is_some(), fact.by % 16 == 0, "{fact:?}");
        }
    }
}
