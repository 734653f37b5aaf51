//! Modules: text, machine code, and what is refused.

use super::fake::books;
use super::launches::{TEXT, opened};
use crate::device::Device;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::machine_code::tests::with_section;
use crate::module::{Module, ModuleOptions};
use crate::parameter::Parameter;

fn load(device: &Device, text: &str, options: &ModuleOptions) -> Result<Module, GpuError> {
    device.load(text.as_bytes(), options)
}

#[test]
fn texts_that_will_not_do() {
    let (device, stream) = opened();
    let refuse = |text: &str, code: &str, part: &str| {
        let error = load(&device, text, &ModuleOptions::default()).unwrap_err();
        assert!(error.code() == code && error.to_string().contains(part), "{error}");
    };
    refuse(".target sm_80 nonsense", "E0808", "line 3; syntax error");
    refuse(".target sm_100a", "E0804", "the kernel is for sm_100a, but Fake H200 has compute capability 9.0");
    refuse(".target sm_80a", "E0804", "sm_80a");
    refuse(".target sm_90 elsewhere", "E0804", "sm_90");
    refuse(".target sm_90a future", "E0802", "the driver, of CUDA 13.0, does not know the `.version` of the text");
    refuse(".target sm_80 \0", "E0809", "a zero in it");
    assert_eq!(device.load(b"\xff\xfe", &ModuleOptions::default()).unwrap_err().code(), "E0809");
    let slow = load(&device, &format!("{TEXT} // serial"), &ModuleOptions::default().refuse_notes()).unwrap_err();
    assert_eq!(slow.to_string(), "the compiler gave up speed\nptxas info : (C7510) serialized");
    assert!(load(&device, &format!("{TEXT} // serial"), &ModuleOptions::default()).unwrap().notes().contains("C7510"));
    drop((stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

#[test]
fn machine_code_is_loaded_as_it_is() {
    let (device, _stream) = opened();
    let code = with_section(TEXT.as_bytes());
    let module = device.load(&code, &ModuleOptions::default()).unwrap();
    assert!(module.function("trap", &[]).is_ok());
    assert_eq!(device.load(&code[..code.len() - 1], &ModuleOptions::default()).unwrap_err().code(), "E0809");
    let other = device.load(&with_section(b"elsewhere"), &ModuleOptions::default()).unwrap_err();
    assert!(other.code() == "E0804" && other.to_string().contains("another kind of device"), "{other}");
}

#[test]
fn kernels_have_the_parameters_that_are_said() {
    let (device, _stream) = opened();
    let module = load(&device, TEXT, &ModuleOptions::default()).unwrap();
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
    // The kernel keeps its module alive.
    drop(module);
    assert_eq!(scale.parameters().len(), 3);
    assert!(books(|books| books.live.values().any(|what| *what == "module")));
    drop(scale);
    assert!(!books(|books| books.live.values().any(|what| *what == "module")));
}
