//! The generator of standard messages: from definitions in the interface language of ROS (`.msg`)
//! to Rust types. The build script runs it.
//!
//! Sequences and texts have no limit in ROS, but a capacity here. A text has 32 bytes and a
//! sequence the constant parameter `N`, unless [`CAPACITIES`] contains another. A message has the
//! parameters of its fields and of the messages in it, in the order of their first use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The capacities that differ from the defaults, by message and field.
const CAPACITIES: [(&str, &str, &str); 16] = [
    ("diagnostic_msgs/DiagnosticArray", "status", "S"),
    ("diagnostic_msgs/DiagnosticStatus", "hardware_id", "64"),
    ("diagnostic_msgs/DiagnosticStatus", "message", "128"),
    ("diagnostic_msgs/DiagnosticStatus", "name", "64"),
    ("diagnostic_msgs/DiagnosticStatus", "values", "V"),
    ("diagnostic_msgs/KeyValue", "key", "64"),
    ("diagnostic_msgs/KeyValue", "value", "64"),
    ("sensor_msgs/MultiEchoLaserScan", "intensities", "BEAMS"),
    ("sensor_msgs/MultiEchoLaserScan", "ranges", "BEAMS"),
    ("sensor_msgs/PointCloud", "channels", "CHANNELS"),
    ("sensor_msgs/PointCloud2", "fields", "8"),
    ("std_msgs/MultiArrayLayout", "dim", "4"),
    ("std_msgs/String", "data", "N"),
    ("tf2_msgs/TF2Error", "error_string", "128"),
    ("trajectory_msgs/JointTrajectory", "points", "POINTS"),
    ("trajectory_msgs/MultiDOFJointTrajectory", "points", "POINTS"),
];
const DEFAULT_TEXT: &str = "32";
const DEFAULT_SEQUENCE: &str = "N";

/// Messages that are not generated, with their Rust types.
const HAND_WRITTEN: [(&str, &str); 2] = [
    ("builtin_interfaces/Time", "crate::messages::Time"),
    ("std_msgs/Header", "crate::messages::Header<32>"),
];

/// A definition: the text of each message, by its name `package/Type`.
pub(crate) type Definitions = BTreeMap<String, String>;

/// Reads the files `package/msg/Type.msg` below a directory, as an installed ROS has them.
///
/// # Errors
/// The file that cannot be read, and the reason.
pub(crate) fn read(directory: &Path) -> Result<Definitions, String> {
    let list = |path: &Path| {
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        paths.map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut definitions = Definitions::new();
    for package in list(directory)?.iter().filter(|path| path.is_dir()) {
        for file in list(&package.join("msg"))?.iter().filter(|path| path.extension() == Some("msg".as_ref()))
        {
            let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            definitions.insert(format!("{}/{}", name(package), name(file)), text);
        }
    }
    Ok(definitions)
}

/// A field of a message.
struct Field {
    name: String,
    rust_type: String,
    /// The initial value, if the definition has one.
    initial: Option<String>,
}

/// A constant of a message.
struct Constant {
    rust_type: &'static str,
    name: String,
    value: String,
    /// As in the definition, without spaces around the equals sign.
    text: String,
}

/// A parsed message.
struct Parsed {
    fields: Vec<Field>,
    constants: Vec<Constant>,
    parameters: Vec<String>,
}

/// Returns a Rust module for each package.
///
/// # Errors
/// The message, the line and the reason.
pub(crate) fn generate(definitions: &Definitions) -> Result<String, String> {
    let packages: BTreeSet<&str> =
        definitions.keys().filter_map(|name| name.split_once('/')).map(|(package, _)| package).collect();
    let (mut code, mut all) = (String::new(), String::new());
    for package in packages {
        let _ = writeln!(code, "/// Messages of the package `{package}`.");
        let _ = writeln!(code, "#[allow(missing_docs, reason = \"the definitions describe their fields\")]");
        let _ = writeln!(code, "pub mod {package} {{");
        for (own, rust_type) in HAND_WRITTEN.iter().filter(|(own, _)| own.starts_with(&format!("{package}/")))
        {
            let path = rust_type.split('<').next().unwrap_or(own);
            let _ = writeln!(code, "pub use {path};");
        }
        for (name, text) in definitions.iter().filter(|(name, _)| name.starts_with(&format!("{package}/"))) {
            let message = parse(name, definitions, 0)?;
            write_message(&mut code, name, text, &message);
            let ones = arguments(&message.parameters.iter().map(|_| "1".to_owned()).collect::<Vec<_>>());
            let _ = writeln!(
                all,
                "<{} as crate::Message>::DESCRIPTION,",
                format_args!("{}{ones}", name.replacen('/', "::", 1))
            );
        }
        code.push_str("}\n");
    }
    let _ =
        writeln!(code, "#[doc(hidden)]\npub const STANDARD: &[&crate::message::Description] = &[\n{all}];");
    Ok(code)
}

/// Returns `<A, B>`, or nothing.
fn arguments(parameters: &[String]) -> String {
    if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) }
}

fn parse(name: &str, definitions: &Definitions, depth: usize) -> Result<Parsed, String> {
    const MAX_DEPTH: usize = 16;
    let text = definitions.get(name).ok_or_else(|| format!("{name} is not defined"))?;
    if depth > MAX_DEPTH {
        return Err(format!("{name} contains itself"));
    }
    let mut parsed = Parsed { fields: vec![], constants: vec![], parameters: vec![] };
    for (index, line) in text.lines().enumerate() {
        let error = |reason: &str| format!("{name}, line {}: {reason}: {line}", index + 1);
        let is_text = line.trim_start().starts_with("string ") && line.contains('=');
        let content = if is_text { line } else { line.split('#').next().unwrap_or_default() }.trim();
        if content.is_empty() {
            continue;
        }
        let (kind, rest) = content.split_once(char::is_whitespace).ok_or_else(|| error("no field name"))?;
        if let Some((constant, value)) = rest.split_once('=') {
            let constant =
                constant_of(kind, constant.trim(), value.trim()).map_err(|reason| error(&reason))?;
            parsed.constants.push(constant);
            continue;
        }
        let (field, initial) = match rest.trim().split_once(char::is_whitespace) {
            Some((field, initial)) => (field, Some(initial.trim().to_owned())),
            None => (rest.trim(), None),
        };
        let is_name = field.starts_with(|c: char| c.is_ascii_lowercase())
            && field.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !is_name {
            return Err(error("not a valid field name"));
        }
        let capacity = CAPACITIES.iter().find(|(message, own, _)| *message == name && *own == field);
        let capacity = capacity.map(|(.., capacity)| *capacity);
        let (rust_type, parameters) = type_of(kind, name, capacity, definitions, depth)?
            .ok_or_else(|| error("a type that is not supported"))?;
        for parameter in parameters {
            if !parsed.parameters.contains(&parameter) {
                parsed.parameters.push(parameter);
            }
        }
        let is_float = matches!(rust_type.as_str(), "f32" | "f64");
        let initial = initial.map(|value| if is_float { format!("{value}_{rust_type}") } else { value });
        parsed.fields.push(Field { name: field.to_owned(), rust_type, initial });
    }
    if parsed.fields.is_empty() {
        return Err(format!("{name} has no fields"));
    }
    Ok(parsed)
}

fn constant_of(kind: &str, name: &str, value: &str) -> Result<Constant, String> {
    let (rust_type, rust_value) = match kind {
        "string" => ("&str", format!("{value:?}")),
        "bool" => ("bool", matches!(value, "1" | "true" | "True").to_string()),
        "byte" => ("crate::message::Byte", format!("crate::message::Byte({value})")),
        "float32" | "float64" => (scalar(kind).unwrap_or_default(), format!("{value} as _")),
        _ => (scalar(kind).ok_or("a type that constants do not have")?, value.to_owned()),
    };
    let text = format!("{kind} {name}={value}");
    Ok(Constant { rust_type, name: name.to_owned(), value: rust_value, text })
}

fn scalar(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "bool" => "bool",
        "byte" => "crate::message::Byte",
        "int8" => "i8",
        "int16" => "i16",
        "int32" => "i32",
        "int64" => "i64",
        "uint8" => "u8",
        "uint16" => "u16",
        "uint32" => "u32",
        "uint64" => "u64",
        "float32" => "f32",
        "float64" => "f64",
        _ => return None,
    })
}

/// Returns the Rust type, and the parameters in it; `Ok(None)` if the type is not supported.
fn type_of(
    kind: &str,
    message: &str,
    capacity: Option<&str>,
    definitions: &Definitions,
    depth: usize,
) -> Result<Option<(String, Vec<String>)>, String> {
    if let Some((element, length)) = kind.strip_suffix(']').and_then(|kind| kind.split_once('[')) {
        let Some((element, inner)) = type_of(element, message, None, definitions, depth)? else {
            return Ok(None);
        };
        if length.is_empty() {
            let capacity = capacity.unwrap_or(DEFAULT_SEQUENCE);
            let mut parameters = parameter(capacity);
            parameters.extend(inner);
            return Ok(Some((format!("crate::message::Sequence<{element}, {capacity}>"), parameters)));
        }
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        return Ok(is_number.then(|| (format!("[{element}; {length}]"), inner)));
    }
    if kind == "string" {
        let capacity = capacity.unwrap_or(DEFAULT_TEXT);
        return Ok(Some((format!("crate::message::Text<{capacity}>"), parameter(capacity))));
    }
    if let Some(scalar) = scalar(kind) {
        return Ok(Some((scalar.to_owned(), vec![])));
    }
    let full = match kind {
        // Built-in types of ROS 1.
        "Header" => "std_msgs/Header".to_owned(),
        "time" => "builtin_interfaces/Time".to_owned(),
        "duration" => "builtin_interfaces/Duration".to_owned(),
        kind if kind.contains('/') => kind.replace("/msg/", "/"),
        kind => format!("{}/{kind}", message.split('/').next().unwrap_or_default()),
    };
    if let Some((_, rust_type)) = HAND_WRITTEN.iter().find(|(name, _)| *name == full) {
        return Ok(Some(((*rust_type).to_owned(), vec![])));
    }
    if !definitions.contains_key(&full) {
        return Ok(None);
    }
    let parameters = parse(&full, definitions, depth + 1)?.parameters;
    let rust_type = format!("crate::messages::{}{}", full.replacen('/', "::", 1), arguments(&parameters));
    Ok(Some((rust_type, parameters)))
}

/// Returns the capacity if it is a parameter.
fn parameter(capacity: &str) -> Vec<String> {
    let is_number = capacity.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { vec![] } else { vec![capacity.to_owned()] }
}

/// Appends a Rust type. Only the standard library and this crate are named by absolute paths, since
/// messages have names such as `String`.
fn write_message(code: &mut String, name: &str, text: &str, message: &Parsed) {
    let Parsed { fields, constants, parameters } = message;
    let full = name.replacen('/', "/msg/", 1);
    let kind = name.rsplit('/').next().unwrap_or_default();
    let declared: Vec<String> = parameters.iter().map(|name| format!("const {name}: usize")).collect();
    let (generics, own) = (arguments(&declared), format!("{kind}{}", arguments(parameters)));
    let value = "crate::message::Value";
    let ident = |field: &Field| {
        let is_keyword =
            matches!(field.name.as_str(), "type" | "ref" | "match" | "move" | "use" | "loop" | "in");
        if is_keyword { format!("r#{}", field.name) } else { field.name.clone() }
    };
    let each = |line: &dyn Fn(&Field) -> String| fields.iter().map(line).collect::<String>();

    let documentation = format!("`{full}`:\n\n```text\n{}\n```", text.trim_end());
    let _ = writeln!(code, "#[doc = {documentation:?}]");
    let _ = writeln!(code, "#[derive(Debug, Clone, Copy, PartialEq)]\npub struct {kind}{generics} {{");
    code.push_str(&each(&|field| format!("pub {}: {},\n", ident(field), field.rust_type)));
    let _ = writeln!(code, "}}\nimpl{generics} {own} {{");
    for Constant { rust_type, name, value, .. } in constants {
        let _ = writeln!(code, "pub const {name}: {rust_type} = {value};");
    }
    let _ = writeln!(code, "/// Returns the message with its initial values, also in a `static`.");
    let _ =
        writeln!(code, "#[allow(clippy::should_implement_trait, reason = \"that function is not const\")]");
    let _ = writeln!(code, "pub const fn default() -> Self {{ <Self as {value}>::EMPTY }}\n}}");
    let _ = writeln!(code, "impl{generics} Default for {own} {{");
    let _ = writeln!(code, "fn default() -> Self {{ <Self as {value}>::EMPTY }}\n}}");
    let _ = writeln!(code, "impl{generics} crate::message::Element for {own} {{}}");
    let _ = writeln!(code, "impl{generics} {value} for {own} {{");
    let _ = writeln!(
        code,
        "const KIND: crate::message::Kind = crate::message::Kind::Message(<Self as crate::Message>::DESCRIPTION);"
    );
    let initial = |field: &Field| match &field.initial {
        Some(initial) => initial.clone(),
        None => format!("<{} as {value}>::EMPTY", field.rust_type),
    };
    let initials = each(&|field| format!("{}: {}, ", ident(field), initial(field)));
    let _ = writeln!(code, "const EMPTY: Self = Self {{ {initials} }};");
    let encoded = each(&|field| format!("{value}::encode(&self.{}, to);\n", ident(field)));
    let _ = writeln!(code, "fn encode(&self, to: &mut crate::message::Encoder) {{\n{encoded}}}");
    let decoded = each(&|field| format!("{}: {value}::decode(from), ", ident(field)));
    let _ = writeln!(
        code,
        "fn decode(from: &mut crate::message::Decoder<'_>) -> Self {{ Self {{ {decoded} }} }}\n}}"
    );
    let _ = writeln!(code, "impl{generics} crate::Message for {own} {{");
    let described = each(&|field| {
        format!(
            "crate::message::Field::new({:?}, None, <{} as {value}>::KIND), ",
            field.name, field.rust_type
        )
    });
    let texts: Vec<&str> = constants.iter().map(|constant| constant.text.as_str()).collect();
    let _ = writeln!(
        code,
        "const DESCRIPTION: &'static crate::message::Description = \
         &crate::message::Description::new({full:?}, &[{described}]).constants(&{texts:?});\n}}"
    );
}
