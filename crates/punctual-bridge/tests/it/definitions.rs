//! Definitions of ROS become Rust types.

#[path = "../../build/generator.rs"]
mod generator;

use generator::{Definitions, generate};

fn definitions(messages: &[(&str, &str)]) -> Definitions {
    messages.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Returns the generated code without line breaks and documentation.
fn code(messages: &[(&str, &str)]) -> String {
    let code = generate(&definitions(messages)).unwrap();
    code.lines().filter(|line| !line.starts_with("#[doc")).collect::<Vec<_>>().join(" ")
}

#[test]
fn fields_have_rust_types() {
    let code = code(&[
        ("a_msgs/Inner", "float64[] values\nbyte kind"),
        (
            "a_msgs/Outer",
            "# A comment.\nHeader header # as in ROS 1\nInner[2] pair\na_msgs/Inner[] more\nstring type\n\
             float64 w 1\nduration span\nbool[4] flags",
        ),
        ("builtin_interfaces/Duration", "int32 sec\nuint32 nanosec"),
    ]);
    for part in [
        "pub struct Inner<const N: usize> { pub values: crate::message::Sequence<f64, N>, \
         pub kind: crate::message::Byte, }",
        "pub struct Outer<const N: usize> { pub header: crate::messages::Header<32>, \
         pub pair: [crate::messages::a_msgs::Inner<N>; 2], \
         pub more: crate::message::Sequence<crate::messages::a_msgs::Inner<N>, N>, \
         pub r#type: crate::message::Text<32>, pub w: f64, \
         pub span: crate::messages::builtin_interfaces::Duration, pub flags: [bool; 4], }",
        "w: 1_f64,",
        "Field::new(\"type\", None,",
        "<a_msgs::Outer<1> as crate::Message>::DESCRIPTION",
    ] {
        assert!(code.contains(part), "{part}: {code}");
    }
}

#[test]
fn constants_have_values_and_texts() {
    let code = code(&[(
        "a_msgs/A",
        "uint8 ON = 1 # a comment\nint8 LOW=-2\nfloat32 HALF=0.5\nstring NAME=a # b\nbyte RAW=3\n\
         bool YES=true\nuint8 x",
    )]);
    for part in [
        "pub const ON: u8 = 1;",
        "pub const LOW: i8 = -2;",
        "pub const HALF: f32 = 0.5 as _;",
        "pub const NAME: &str = \"a # b\";",
        "pub const RAW: crate::message::Byte = crate::message::Byte(3);",
        "pub const YES: bool = true;",
        ".constants(&[\"uint8 ON=1\", \"int8 LOW=-2\", \"float32 HALF=0.5\", \"string NAME=a # b\", \
         \"byte RAW=3\", \"bool YES=true\"])",
    ] {
        assert!(code.contains(part), "{part}: {code}");
    }
}

#[test]
fn errors_name_message_and_line() {
    for (text, expected) in [
        ("uint8 x\nwstring y", "a_msgs/A, line 2: a type that is not supported: wstring y"),
        ("string<=10 x", "a_msgs/A, line 1: a type that is not supported: string<=10 x"),
        ("uint8[<=3] x", "a_msgs/A, line 1: a type that is not supported: uint8[<=3] x"),
        ("Missing x", "a_msgs/A, line 1: a type that is not supported: Missing x"),
        ("uint8", "a_msgs/A, line 1: no field name: uint8"),
        ("uint8 9x", "a_msgs/A, line 1: not a valid field name: uint8 9x"),
        ("uint8 x;", "a_msgs/A, line 1: not a valid field name: uint8 x;"),
        ("A x", "a_msgs/A contains itself"),
        ("other X=1\nuint8 x", "a_msgs/A, line 1: a type that constants do not have: other X=1"),
        ("# only a comment", "a_msgs/A has no fields"),
    ] {
        assert_eq!(generate(&definitions(&[("a_msgs/A", text)])).unwrap_err(), expected);
    }
}

#[test]
fn reads_definitions_as_ros_installs_them() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("msg");
    let definitions = generator::read(&directory).unwrap();
    assert!(definitions.len() > 100 && definitions["std_msgs/Bool"].contains("bool data"));
    let error = generator::read(&directory.join("none")).unwrap_err();
    assert!(error.contains("none: "), "{error}");
}
