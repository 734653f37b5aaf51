//! `.npy` files and NumPy itself: each reads what the other wrote. Where `python3` has no NumPy,
//! there is nothing to compare with, and a line says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use half::f16;
use tilewright_layout::{Layout, Tree};
use tilewright_tensor::npy::{self, NpyElement};
use tilewright_tensor::{Tensor, TensorView};

/// Element `(i,j,k)` of an array of 2 by 3 by 5 is `100i + 10j + k`. NumPy checks our files, and
/// writes the same array in both orders and with both ends first.
const SCRIPT: &str = "\
import sys, numpy
i, j, k = numpy.indices((2, 3, 5))
for name in sys.argv[2:]:
    wanted = (100 * i + 10 * j + k).astype(name)
    for order in ('rows', 'columns', 'strided'):
        ours = numpy.load(f'{sys.argv[1]}/{name}-{order}.npy')
        assert ours.dtype == wanted.dtype and ours.shape == wanted.shape, (name, order, ours.dtype, ours.shape)
        assert (ours == wanted).all(), (name, order)
    assert (numpy.load(f'{sys.argv[1]}/{name}-line.npy') == wanted[1, 2, :]).all(), name
    numpy.save(f'{sys.argv[1]}/{name}-c.npy', wanted)
    numpy.save(f'{sys.argv[1]}/{name}-fortran.npy', numpy.asfortranarray(wanted))
    numpy.save(f'{sys.argv[1]}/{name}-little.npy', wanted.astype(wanted.dtype.newbyteorder('<')))
    numpy.save(f'{sys.argv[1]}/{name}-big.npy', wanted.astype(wanted.dtype.newbyteorder('>')))
";

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SHAPE: [i64; 3] = [2, 3, 5];

fn number(index: i64) -> u8 {
    let (i, j, k) = (index % 2, index / 2 % 3, index / 6);
    (100 * i + 10 * j + k) as u8
}

/// Writes the array as rows, as columns and from memory with holes, and a line of it.
fn write<T: NpyElement>(directory: &Path, name: &str, of: impl Fn(u8) -> T) {
    for (order, layout) in
        [("rows", "(2,3,5):(15,5,1)"), ("columns", "(2,3,5):(1,2,6)"), ("strided", "(2,3,5):(7,40,1)")]
    {
        let layout: Layout = layout.parse().unwrap();
        let tensor = Tensor::from_fn(layout, |index| of(number(index))).unwrap();
        npy::write(directory.join(format!("{name}-{order}.npy")), &tensor.view()).unwrap();
    }
    let line: Vec<T> = (0..5).map(|k| of(120 + k)).collect();
    let view = TensorView::new(&line, "(5):(1)".parse::<Layout>().unwrap()).unwrap();
    npy::write(directory.join(format!("{name}-line.npy")), &view).unwrap();
}

fn read<T: NpyElement + PartialEq + std::fmt::Debug>(directory: &Path, name: &str, of: impl Fn(u8) -> T) {
    for form in ["c", "fortran", "little", "big"] {
        let tensor: Tensor<T> = npy::read(directory.join(format!("{name}-{form}.npy"))).unwrap();
        assert_eq!(tensor.layout().shape(), Tree::flat(SHAPE).unwrap(), "{name} {form}");
        for index in 0..tensor.size() {
            assert_eq!(tensor.get(index), Ok(&of(number(index))), "{name} {form} {index}");
        }
    }
}

macro_rules! types {
    ($call:ident, $directory:expr) => {
        $call($directory, "uint8", |value| value);
        $call($directory, "int16", i16::from);
        $call($directory, "uint32", u32::from);
        $call($directory, "int64", i64::from);
        $call($directory, "float16", f16::from);
        $call($directory, "float32", f32::from);
        $call($directory, "float64", f64::from);
        $call($directory, "complex64", |value| [f32::from(value), 0.0]);
        $call($directory, "complex128", |value| [f64::from(value), 0.0]);
        $call($directory, "bool", |value| value != 0);
    };
}

#[test]
fn each_reads_what_the_other_wrote() {
    match Command::new("python3").args(["-c", "import numpy"]).output() {
        Ok(output) if output.status.success() => {}
        _ => return eprintln!("skipped: python3 has no NumPy here"),
    }
    let directory = Directory(std::env::temp_dir().join(format!("tilewright-numpy-{}", std::process::id())));
    fs::create_dir_all(&directory.0).unwrap();
    types!(write, &directory.0);
    let names =
        ["uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bool"];
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(&directory.0).args(names).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    types!(read, &directory.0);
}
