//! `.npy` files: what is read is what was written, in every order, type and byte order, and bad
//! files are refused.

use std::fs;
use std::path::PathBuf;

use half::f16;
use tilewright_layout::{Composed, Layout, Tree};
use tilewright_tensor::npy::{self, NpyElement, NpyFile, Order, Stream};
use tilewright_tensor::{Tensor, TensorView};

/// A directory of its own for each test, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tilewright-npy-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file by the book: version, header text, and the bytes of the elements.
fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    if version == 1 {
        bytes.extend((header.len() as u16).to_le_bytes());
    } else {
        bytes.extend((header.len() as u32).to_le_bytes());
    }
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn a_file_by_the_book_is_read() {
    let directory = Directory::new("book");
    let path = directory.file("a.npy");
    let little: Vec<u8> = (0..6_i16).flat_map(|value| value.to_le_bytes()).collect();
    let big: Vec<u8> = (0..6_i16).flat_map(|value| value.to_be_bytes()).collect();
    for (version, order, data, header) in [
        (1, Order::C, &little, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n"),
        (2, Order::C, &little, "{'shape': (2,3), \"descr\":\"<i2\", 'fortran_order': False}    \n"),
        (3, Order::Fortran, &little, "{ 'fortran_order' : True , 'descr': '<i2', 'shape': (2L, 3L,)}"),
        (1, Order::Fortran, &big, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n"),
    ] {
        fs::write(&path, file(version, header, data)).unwrap();
        let opened = NpyFile::open(&path).unwrap();
        assert_eq!(opened.header().order(), order);
        let tensor: Tensor<i16> = opened.read().unwrap();
        for i in 0..2 {
            for j in 0..3 {
                let expected = if order == Order::C { 3 * i + j } else { i + 2 * j };
                assert_eq!(*tensor.get([i, j]).unwrap(), expected as i16, "{header}");
            }
        }
    }
    fs::write(&path, file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", &[7])).unwrap();
    let point: Tensor<u8> = npy::read(&path).unwrap();
    assert_eq!((point.shape().to_string().as_str(), point.get(0)), ("()", Ok(&7)));
    fs::write(&path, file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", &[7, 8, 9])).unwrap();
    assert_eq!(npy::read::<u8>(&path).unwrap().shape().to_string(), "(3)");
}

#[test]
fn a_bad_file_is_refused() {
    let directory = Directory::new("bad");
    let path = directory.file("a.npy");
    let good = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n";
    let data = [0; 12];
    let whole = file(1, good, &data);
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let error = npy::read::<i16>(&path).unwrap_err();
        assert_eq!(error.code(), "E0410", "{length}: {error}");
        // In words of ours, not in those of the system.
        assert!(error.to_string().starts_with("expected "), "{length}: {error}");
    }
    for (header, code) in [
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), } x", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 0), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2, -3), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2 3), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': 0, 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<i2', 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", "E0410"),
        ("{'descr': [('x', '<i2')], 'fortran_order': False, 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<i3', 'fortran_order': False, 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<f1', 'fortran_order': False, 'shape': (12,), }", "E0410"),
        ("{'descr': '<c4', 'fortran_order': False, 'shape': (3,), }", "E0410"),
        ("{'descr': '|b2', 'fortran_order': False, 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<i', 'fortran_order': False, 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "E0410"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", "E0410"),
        ("{'descr': 'i2', 'fortran_order': False, 'shape': (2, 3), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904), }", "E0410"),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904,), }", "E0410"),
        ("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", "E0411"),
        ("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }", "E0411"),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", "E0411"),
        ("", "E0410"),
        ("{", "E0410"),
        ("{'descr", "E0410"),
        ("{'descr': '<\u{e9}2'}", "E0410"),
    ] {
        fs::write(&path, file(1, header, &data)).unwrap();
        let error = npy::read::<i16>(&path).unwrap_err();
        assert_eq!(error.code(), code, "{header}: {error}");
    }
    for version in [0, 4, 255] {
        fs::write(&path, file(version, good, &data)).unwrap();
        assert_eq!(npy::read::<i16>(&path).unwrap_err().code(), "E0410");
    }
    fs::write(&path, file(1, good, &[0; 13])).unwrap();
    let error = npy::read::<i16>(&path).unwrap_err();
    assert_eq!(error.to_string(), "expected as many bytes as the shape says, found 13 instead of 12");
    let mut huge = b"\x93NUMPY\x02\x00".to_vec();
    huge.extend(u32::MAX.to_le_bytes());
    fs::write(&path, huge).unwrap();
    assert_eq!(npy::read::<i16>(&path).unwrap_err().code(), "E0410");
    assert_eq!(npy::read::<i16>(directory.file("none.npy")).unwrap_err().code(), "E0412");
}

/// What is written reads back: the same element at every coordinate, and the order of memory where
/// it is compact.
fn round<T: NpyElement + PartialEq + std::fmt::Debug>(directory: &Directory, value: impl Fn(i64) -> T) {
    let path = directory.file("round.npy");
    for (text, order) in [
        ("(4,5):(5,1)", Order::C),
        ("(4,5):(1,4)", Order::Fortran),
        ("(4,5):(1,8)", Order::C),
        ("(4,5):(-1,-4)", Order::C),
        ("20:1", Order::C),
        ("(20):(3)", Order::C),
        ("():()", Order::C),
        ("(1,7):(0,1)", Order::C),
        ("(2,3,4):(12,4,1)", Order::C),
        ("(2,3,4):(1,2,6)", Order::Fortran),
        ("((2,2),3):((1,6),2)", Order::C),
        ("((2,2),3):((1,2),4)", Order::Fortran),
    ] {
        let layout: Layout = text.parse().unwrap();
        let tensor = Tensor::from_fn(layout, &value).unwrap();
        npy::write(&path, &tensor.view()).unwrap();
        let file = NpyFile::open(&path).unwrap();
        assert_eq!(file.header().order(), order, "{text}");
        let read: Tensor<T> = file.read().unwrap();
        let modes = tensor.shape().product_each().unwrap();
        assert_eq!(read.shape().leaves(), modes.leaves(), "{text}");
        assert_eq!(read.view().to_vec(), tensor.view().to_vec(), "{text}");
        // The elements begin at a multiple of 64 bytes.
        assert_eq!((fs::metadata(&path).unwrap().len() as usize - tensor.size() as usize * size_of::<T>()) % 64, 0);
    }
    let swizzled: Composed = "S<2,0,2> o 0 o (4,4):(4,1)".parse().unwrap();
    let tensor = Tensor::from_fn(swizzled, &value).unwrap();
    npy::write(&path, &tensor.view()).unwrap();
    assert_eq!(npy::read::<T>(&path).unwrap().view().to_vec(), tensor.view().to_vec());
}

#[test]
fn what_is_written_reads_back() {
    let directory = Directory::new("round");
    round(&directory, |index| index as i8 - 5);
    round(&directory, |index| index as u16 * 300);
    round(&directory, |index| index * -7_000_000_000);
    round(&directory, |index| index as u64);
    round(&directory, |index| f16::from_f32(index as f32 / 8.0));
    round(&directory, |index| index as f32 / 3.0);
    round(&directory, |index| index as f64 / 3.0);
    round(&directory, |index| [index as f32, -1.5]);
    round(&directory, |index| [0.5, index as f64]);
    round(&directory, |index| index % 3 == 1);
    assert_eq!(directory.names(), ["round.npy"]);
}

#[test]
fn truths_are_zeros_and_ones() {
    let directory = Directory::new("truths");
    let path = directory.file("a.npy");
    fs::write(&path, file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", &[1, 0, 1])).unwrap();
    assert_eq!(npy::read::<bool>(&path).unwrap().as_slice(), [true, false, true]);
    assert_eq!(npy::read::<u8>(&path).unwrap_err().to_string(), "the elements are '|b1', not '|u1'");
    fs::write(&path, file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", &[1, 2, 1])).unwrap();
    let error = npy::read::<bool>(&path).unwrap_err();
    assert_eq!(error.to_string(), "expected bytes 0 and 1 for False and True, found 2");
}

#[test]
fn the_parts_of_complex_numbers_are_swapped_one_by_one() {
    let directory = Directory::new("complex");
    let path = directory.file("a.npy");
    let big: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|part| part.to_be_bytes()).collect();
    fs::write(&path, file(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (2,), }", &big)).unwrap();
    assert_eq!(npy::read::<[f32; 2]>(&path).unwrap().as_slice(), [[1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn the_bytes_are_those_of_numpy() {
    let directory = Directory::new("bytes");
    let path = directory.file("a.npy");
    let tensor =
        Tensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], "(2,3):(3,1)".parse::<Layout>().unwrap()).unwrap();
    npy::write(&path, &tensor.view()).unwrap();
    // As numpy.save writes numpy.array([[1, 2, 3], [4, 5, 6]], dtype='<f4').
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".to_owned();
    header.extend(std::iter::repeat_n(' ', 118 - header.len() - 1));
    header.push('\n');
    assert_eq!(fs::read(&path).unwrap(), file(1, &header, bytemuck::cast_slice(tensor.as_slice())));
}

#[test]
fn what_goes_wrong_leaves_what_was_there() {
    let directory = Directory::new("kept");
    let path = directory.file("a.npy");
    let numbers: Vec<u8> = (0..100).collect();
    let small = TensorView::new(&numbers, "100:1".parse::<Layout>().unwrap()).unwrap();
    npy::write(&path, &small).unwrap();
    let before = fs::read(&path).unwrap();
    // A path that is a directory, one in a directory that is not there, and one that names no file.
    assert_eq!(npy::write(&directory.0, &small).unwrap_err().code(), "E0412");
    assert_eq!(npy::write(directory.file("none/a.npy"), &small).unwrap_err().code(), "E0412");
    assert_eq!(npy::write("..", &small).unwrap_err().code(), "E0412");
    assert_eq!(directory.names(), ["a.npy"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    // Overwritten as a whole.
    let few = TensorView::new(&numbers, "3:1".parse::<Layout>().unwrap()).unwrap();
    npy::write(&path, &few).unwrap();
    assert_eq!(npy::read::<u8>(&path).unwrap().as_slice(), [0, 1, 2]);
    assert_eq!(directory.names(), ["a.npy"]);
}

#[cfg(unix)]
#[test]
fn links_and_pipes() {
    let directory = Directory::new("links");
    let (path, link) = (directory.file("a.npy"), directory.file("link.npy"));
    let numbers: Vec<u8> = (0..6).collect();
    let view = TensorView::new(&numbers, "(2,3):(1,2)".parse::<Layout>().unwrap()).unwrap();
    npy::write(&path, &view).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let fewer = TensorView::new(&numbers, "(2,2):(1,2)".parse::<Layout>().unwrap()).unwrap();
    npy::write(&link, &fewer).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(npy::read::<u8>(&path).unwrap().shape(), Tree::flat([2, 2]).unwrap());
    npy::write("/dev/null", &view).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// The leaves of a layout, read from its text: the index counts the first fastest.
fn offset(leaves: &[(i64, i64)], index: i64) -> usize {
    let mut rest = index;
    let step = |(extent, stride): &(i64, i64)| {
        let at = rest % extent;
        rest /= extent;
        at * stride
    };
    leaves.iter().map(step).sum::<i64>() as usize
}

#[test]
fn streams_write_what_the_layouts_say_in_any_memory() {
    type Leaves = &'static [(i64, i64)];
    let cases: [(&str, Leaves, Leaves); 8] = [
        ("(12,10)", &[(12, 10), (10, 1)], &[(12, 1), (10, 12)]),
        ("(12,10)", &[(12, 10), (10, 1)], &[(12, 10), (10, 1)]),
        ("(12,10)", &[(12, 10), (10, 1)], &[(12, 1), (10, 17)]),
        ("(12,10)", &[(12, 10), (10, 1)], &[(4, 1), (3, 40), (10, 4)]),
        ("(8,3,5)", &[(8, 15), (3, 5), (5, 1)], &[(2, 3), (4, 30), (3, 1), (5, 6)]),
        ("(120,)", &[(120, 1)], &[(2, 7), (60, 20)]),
        ("(12,10)", &[(12, 0), (10, 3)], &[(12, 1), (10, 12)]),
        ("(1,1)", &[(1, 0), (1, 0)], &[(1, 0), (1, 0)]),
    ];
    let directory = Directory::new("streams");
    for (shape, from, to) in cases {
        let layout = |leaves: &[(i64, i64)]| {
            let list = |part: fn(&(i64, i64)) -> i64| {
                leaves.iter().map(|leaf| part(leaf).to_string()).collect::<Vec<_>>().join(",")
            };
            format!("({},):({},)", list(|leaf| leaf.0), list(|leaf| leaf.1)).parse::<Layout>().unwrap()
        };
        let shape: Tree<i64> = shape.parse().unwrap();
        let count: i64 = shape.leaves().iter().product();
        let values: Vec<f64> = (0..count).map(|at| if at % 7 == 3 { 0.0 } else { at as f64 + 1.0 }).collect();
        let (input, output) = (directory.file("in.npy"), directory.file("out.npy"));
        let tensor = Tensor::from_vec(values.clone(), Layout::row_major(&shape).unwrap()).unwrap();
        npy::write(&input, &tensor.view()).unwrap();
        let size: i64 = from.iter().map(|leaf| leaf.0).product();
        let reach = 1 + (0..size).map(|index| offset(to, index)).max().unwrap();
        let mut wanted = vec![0.0; reach];
        (0..size).for_each(|index| wanted[offset(to, index)] = values[offset(from, index)]);
        for memory in [1, 3, 6, 10, 30, 36, 50, 90, 200, 1 << 20] {
            let stream = Stream::new(&layout(from), &layout(to), memory).unwrap();
            let mut told = Vec::new();
            let file = NpyFile::open(&input).unwrap();
            let flat = Tree::flat([reach as i64]).unwrap();
            stream.run::<f64>(file, &output, &flat, |done, all| told.push((done, all))).unwrap();
            assert_eq!(npy::read::<f64>(&output).unwrap().as_slice(), wanted, "{from:?} to {to:?} in {memory}");
            assert!(told.is_sorted() && told.last() == Some(&(reach as u64, reach as u64)), "{told:?}");
        }
    }
    // Steps that are not nested, and maps.
    let parse = |text: &str| text.parse::<Layout>().unwrap();
    assert!(Stream::new(&parse("(4,4):(1,4)"), &parse("(4,4):(3,4)"), 9).is_none());
    let swizzled: Composed = "S<2,0,2> o 0 o (4,4):(1,4)".parse().unwrap();
    assert!(Stream::new(&parse("(4,4):(1,4)"), &swizzled, 9).is_none());
}

#[cfg(unix)]
#[test]
fn a_sparse_file_stays_sparse() {
    use std::os::unix::fs::MetadataExt;

    let directory = Directory::new("sparse");
    let (input, output) = (directory.file("in.npy"), directory.file("out.npy"));
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4096, 4096), }";
    let bytes = file(1, header, &[]);
    fs::write(&input, &bytes).unwrap();
    let begin = bytes.len() as u64;
    let whole = fs::OpenOptions::new().write(true).open(&input).unwrap();
    whole.set_len(begin + (8 << 24)).unwrap();
    // One element that is not 0: row 3000, column 5.
    std::os::unix::fs::FileExt::write_all_at(&whole, &2.5_f64.to_le_bytes(), begin + 8 * (3000 * 4096 + 5)).unwrap();
    let parse = |text: &str| text.parse::<Layout>().unwrap();
    let stream = Stream::new(&parse("(4096,4096):(4096,1)"), &parse("(4096,4096):(1,4096)"), 1 << 20).unwrap();
    let flat = Tree::flat([1_i64 << 24]).unwrap();
    stream.run::<f64>(NpyFile::open(&input).unwrap(), &output, &flat, |_, _| {}).unwrap();
    let about = fs::metadata(&output).unwrap();
    assert!(
        about.len() > 8 << 24 && about.blocks() * 512 < 4 << 20,
        "{} bytes in {} blocks",
        about.len(),
        about.blocks()
    );
    let read = npy::read::<f64>(&output).unwrap();
    assert_eq!((read.as_slice()[5 * 4096 + 3000], read.as_slice().iter().sum::<f64>()), (2.5, 2.5));
}
