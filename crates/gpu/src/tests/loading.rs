//! Modules: text, machine code, the cache, and what is refused.

use std::fs;

use super::fake::{books, driver_with};
use super::launches::{TEXT, opened};
use crate::cache::Cache;
use crate::device::Device;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::machine_code::tests::with_section;
use crate::module::{Module, ModuleOptions, Origin};
use crate::parameter::Parameter;

fn load(device: &Device, text: &str, options: &ModuleOptions) -> Result<Module, GpuError> {
    device.load(text.as_bytes(), options)
}

fn uncached() -> ModuleOptions {
    ModuleOptions::default().cache(Cache::none())
}

#[test]
fn text_is_compiled_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = ModuleOptions::default().cache(Cache::in_folder(folder.path()));
    let compilations = || books(|books| books.compilations);
    let (device, stream) = opened();
    let first = load(&device, TEXT, &options).unwrap();
    assert_eq!((first.origin(), first.notes(), compilations()), (Origin::Compiled, "ptxas info : linked", 1));
    let second = load(&device, TEXT, &options).unwrap();
    assert_eq!((second.origin(), second.notes(), compilations()), (Origin::Cached, "ptxas info : linked", 1));
    assert!(second.function("trap", &[]).is_ok());
    // Another text, another driver and another device are compiled for themselves.
    assert_eq!(load(&device, &format!("{TEXT} "), &options).unwrap().origin(), Origin::Compiled);
    drop((first, second, stream, device));
    for (version, minor) in [(12_080, 0), (13_000, 3)] {
        let driver = driver_with(|books| {
            books.version = version;
            books.attributes.insert(76, minor);
        })
        .unwrap();
        let other = Device::of(driver, 0).unwrap();
        assert_eq!(load(&other, TEXT, &options).unwrap().origin(), Origin::Compiled);
        assert_eq!(load(&other, TEXT, &options).unwrap().origin(), Origin::Cached);
    }
    // A damaged entry is compiled again, and whole then.
    let (device, _stream) = opened();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes[40] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(load(&device, TEXT, &options).unwrap().origin(), Origin::Compiled);
    assert_eq!(load(&device, TEXT, &options).unwrap().origin(), Origin::Cached);
    // What is slower if it is linked is compiled alone and not kept, however often it is loaded.
    for instruction in ["setmaxnreg.inc.sync.aligned.u32 232;", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] {
        let alone = format!("{TEXT} // {instruction}");
        for _ in 0..2 {
            assert_eq!(load(&device, &alone, &options).unwrap().notes(), "ptxas info : fine");
        }
    }
    // A folder that cannot be made is none.
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let options = ModuleOptions::default().cache(Cache::in_folder(file));
    assert_eq!(load(&device, TEXT, &options).unwrap().origin(), Origin::Compiled);
    assert_eq!(load(&device, TEXT, &options).unwrap().origin(), Origin::Compiled);
}

/// A text that the linker compiles with notes is compiled alone, where the note does not appear,
/// and is not kept.
#[test]
fn what_the_linker_makes_slow_is_loaded_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = ModuleOptions::default().cache(Cache::in_folder(folder.path())).refuse_notes();
    let (device, _stream) = opened();
    for _ in 0..2 {
        let module = load(&device, &format!("{TEXT} // separately"), &options).unwrap();
        assert_eq!((module.origin(), module.notes()), (Origin::Compiled, "ptxas info : fine"));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn texts_that_will_not_do() {
    let folder = tempfile::tempdir().unwrap();
    let (device, stream) = opened();
    for cache in [Cache::none(), Cache::in_folder(folder.path())] {
        let options = ModuleOptions::default().cache(cache);
        let refuse = |text: &str, code: &str, part: &str| {
            let error = load(&device, text, &options).unwrap_err();
            assert!(error.code() == code && error.to_string().contains(part), "{error}");
        };
        refuse(".target sm_80 nonsense", "E0808", "line 3; syntax error");
        refuse(".target sm_100a", "E0804", "the kernel is for sm_100a, but Fake H200 has compute capability 9.0");
        refuse(".target sm_80a", "E0804", "sm_80a");
        refuse(".target sm_90 elsewhere", "E0804", "sm_90");
        refuse(".target sm_90a future", "E0802", "the driver, of CUDA 13.0, does not know the `.version` of the text");
        refuse(".target sm_80 \0", "E0809", "a zero in it");
    }
    assert_eq!(device.load(b"\xff\xfe", &uncached()).unwrap_err().code(), "E0809");
    let slow = load(&device, &format!("{TEXT} // serial"), &uncached().refuse_notes()).unwrap_err();
    assert_eq!(slow.to_string(), "the compiler gave up speed\nptxas info : (C7510) serialized");
    assert!(load(&device, &format!("{TEXT} // serial"), &uncached()).unwrap().notes().contains("C7510"));
    drop((stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

#[test]
fn machine_code_is_loaded_as_it_is() {
    let (device, _stream) = opened();
    let code = with_section(TEXT.as_bytes());
    let module = device.load(&code, &uncached()).unwrap();
    assert_eq!(module.origin(), Origin::Given);
    assert!(module.function("trap", &[]).is_ok());
    assert_eq!(device.load(&code[..code.len() - 1], &uncached()).unwrap_err().code(), "E0809");
    let other = device.load(&with_section(b"elsewhere"), &uncached()).unwrap_err();
    assert!(other.code() == "E0804" && other.to_string().contains("another kind of device"), "{other}");
}

#[test]
fn kernels_have_the_parameters_that_are_said() {
    let (device, _stream) = opened();
    let module = load(&device, TEXT, &uncached()).unwrap();
    for name in ["none", "", "tra\0p"] {
        assert_eq!(module.function(name, &[]).unwrap_err().code(), "E0811", "{name:?}");
    }
    let x = Parameter::write("x", ElementType::F32);
    let number = |element| Parameter::scalar("number", element);
    let (f32, u32, u64) = (number(ElementType::F32), number(ElementType::U32), number(ElementType::U64));
    let refuse = |name: &str, list: &[Parameter], part: &str| {
        let error = module.function(name, list).unwrap_err();
        assert!(error.code() == "E0812" && error.to_string().contains(part), "{error}");
    };
    refuse("scale", &[], "scale has parameters of 8, 4, 4 bytes, but the list has no parameters");
    refuse("scale", &[x.clone(), f32.clone()], "but the list has parameters of 8, 4 bytes");
    refuse("scale", &[x.clone(), f32.clone(), u64.clone()], "8, 4, 8");
    refuse("trap", std::slice::from_ref(&u32), "trap has no parameters, but the list has parameters of 4 bytes");
    let scale = module.function("scale", &[x, f32, u32]).unwrap();
    // The kernel holds its module.
    drop(module);
    assert_eq!(scale.parameters().len(), 3);
    assert!(books(|books| books.live.values().any(|what| *what == "module")));
    drop(scale);
    assert!(!books(|books| books.live.values().any(|what| *what == "module")));
}
