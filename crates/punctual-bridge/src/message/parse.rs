//! Descriptions from definitions: what a transport knows of an app's messages.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Description, Field, Kind, Scalar};

/// The maximum nesting depth of messages.
const MAX_DEPTH: usize = 16;
/// The maximum number of values of a message, arrays included.
const MAX_VALUES: usize = 1 << 20;

/// The error of [`parse`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A line is malformed.
    #[error("malformed line in the definition of {message}: {line:?}")]
    Line {
        /// The message.
        message: String,
        /// The line.
        line: String,
    },
    /// A message is not defined.
    #[error("{0} is not defined")]
    Undefined(String),
    /// The messages are nested too deeply, or contain themselves, or have too many values.
    #[error("{0} is nested too deeply, or too large")]
    TooLarge(String),
}

/// Returns the description of the message `name`, such as `geometry_msgs/msg/Vector3`, from its
/// definition and those of the messages in it, as [`Dialect::Ros2`](super::Dialect::Ros2) writes
/// them.
///
/// Definitions do not contain capacities, so those of sequences and texts are 0. The result is
/// never freed; calls with the same arguments return the same description.
///
/// # Errors
/// [`ParseError`].
pub fn parse(name: &str, definition: &str) -> Result<&'static Description, ParseError> {
    static KNOWN: Mutex<Option<HashMap<(String, String), &'static Description>>> = Mutex::new(None);

    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let key = (name.to_owned(), definition.to_owned());
    if let Some(description) = known.get(&key) {
        return Ok(description);
    }
    let mut parser = Parser::new(name, definition);
    let (description, _) = parser.message(name, 0)?;
    known.insert(key, description);
    Ok(description)
}

struct Parser<'a> {
    /// The definition of each message.
    sections: HashMap<String, &'a str>,
    /// The messages parsed so far, each with its number of values: at least 1, and a sequence
    /// counts as one element.
    done: HashMap<String, (&'static Description, usize)>,
}

impl<'a> Parser<'a> {
    fn new(name: &str, definition: &'a str) -> Self {
        let mut sections = HashMap::new();
        let mut rest = Some((name.to_owned(), definition));
        while let Some((name, text)) = rest.take() {
            let separator =
                text.find("\n====").map(|at| at + 1).or_else(|| text.starts_with("====").then_some(0));
            let (section, next) = separator.map_or((text, ""), |at| text.split_at(at));
            sections.insert(name, section);
            let next = next.split_once("\nMSG: ").and_then(|(_, next)| next.split_once('\n'));
            rest = next.map(|(name, text)| (full_name(name.trim()), text));
        }
        Self { sections, done: HashMap::new() }
    }

    fn message(&mut self, name: &str, depth: usize) -> Result<(&'static Description, usize), ParseError> {
        if let Some(&known) = self.done.get(name) {
            return Ok(known);
        }
        let section = self.sections.get(name).ok_or_else(|| ParseError::Undefined(name.to_owned()))?;
        if depth > MAX_DEPTH {
            return Err(ParseError::TooLarge(name.to_owned()));
        }
        let (mut fields, mut constants) = (Vec::new(), Vec::<&'static str>::new());
        let mut values = 1;
        for line in section.lines().filter(|line| !line.trim().is_empty()) {
            let malformed = || ParseError::Line { message: name.to_owned(), line: line.to_owned() };
            let (declaration, unit) = match line.split_once("  # ") {
                Some((declaration, unit)) => (declaration, Some(leak(unit.trim()))),
                None => (line, None),
            };
            let (kind, field) = declaration.split_once(' ').ok_or_else(malformed)?;
            if field.contains('=') {
                constants.push(leak(declaration));
                continue;
            }
            if field.is_empty() || !field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(malformed());
            }
            let (kind, more) = self.kind(kind, depth)?.ok_or_else(malformed)?;
            // Of nested messages and arrays, the numbers multiply.
            values = more.saturating_add(values);
            if values > MAX_VALUES {
                return Err(ParseError::TooLarge(name.to_owned()));
            }
            fields.push(Field::new(leak(field), unit, kind));
        }
        let description = Description::new(leak(name), Box::leak(fields.into_boxed_slice()));
        let description = description.constants(Box::leak(constants.into_boxed_slice()));
        let description = Box::leak(Box::new(description));
        self.done.insert(name.to_owned(), (description, values));
        Ok((description, values))
    }

    /// Returns the kind of values of this type, and their number; `Ok(None)` if it is malformed.
    fn kind(&mut self, text: &str, depth: usize) -> Result<Option<(Kind, usize)>, ParseError> {
        let Some((element, length)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) else {
            return self.element(text, depth);
        };
        let Some((element, values)) = self.element(element, depth)? else { return Ok(None) };
        let element = Box::leak(Box::new(element));
        if length.is_empty() {
            return Ok(Some((Kind::Sequence(element, 0), values)));
        }
        let Ok(length) = length.parse::<usize>() else { return Ok(None) };
        Ok(Some((Kind::Array(element, length), values.saturating_mul(length))))
    }

    fn element(&mut self, text: &str, depth: usize) -> Result<Option<(Kind, usize)>, ParseError> {
        if text == "string" {
            return Ok(Some((Kind::Text(0), 1)));
        }
        if let Some(scalar) = Scalar::from_name(text) {
            return Ok(Some((Kind::Scalar(scalar), 1)));
        }
        if !text.contains('/') {
            return Ok(None);
        }
        let (description, values) = self.message(&full_name(text), depth + 1)?;
        Ok(Some((Kind::Message(description), values)))
    }
}

/// Returns `package/msg/Type` for `package/Type`.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        Some((package, kind)) if !kind.contains('/') => format!("{package}/msg/{kind}"),
        _ => name.to_owned(),
    }
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::super::example::State;
    use super::super::{Dialect, Encoder, Message, pack, show};
    use super::*;
    use crate::messages::{DiagnosticArray, Float64MultiArray, JointState};

    #[track_caller]
    fn parsed<T: Message>() -> &'static Description {
        let description = T::DESCRIPTION;
        let text = Dialect::Ros2.definition(description);
        let parsed = parse(description.name(), &text).unwrap();
        for dialect in [Dialect::Ros1, Dialect::Ros2] {
            assert_eq!(dialect.definition(parsed), dialect.definition(description));
            let lines = |of| dialect.lines(of, &|inner: &Description| inner.name().to_owned());
            assert_eq!(lines(parsed), lines(description), "for sums");
        }
        assert!(std::ptr::eq(parsed, parse(description.name(), &text).unwrap()), "it is allocated once");
        parsed
    }

    #[test]
    fn describes_messages_as_the_app_does() {
        parsed::<State>();
        parsed::<DiagnosticArray<1, 2>>();
        parsed::<Float64MultiArray<3>>();
        let joints = parsed::<JointState<3>>();
        let value = JointState::<3> { position: [0.5, 1.5].into(), ..JointState::default() };
        let bytes = Encoder::default().encode(7, &value).to_vec();
        assert_eq!(pack(joints, &bytes, 1), pack(JointState::<3>::DESCRIPTION, &bytes, 1));
        assert_eq!(show(joints, &bytes), show(JointState::<3>::DESCRIPTION, &bytes));
    }

    /// No byte of the message limits their number.
    #[test]
    fn visits_elements_without_bytes_once() {
        let line = "=".repeat(80);
        let text =
            format!("c/D[] d\nstd_msgs/Header[1000] h\n{line}\nMSG: c/D\n{line}\nMSG: std_msgs/Header\n");
        let description = parse("a/msg/NoBytes", &text).unwrap();
        let bytes = [0, 1, 0, 0, 255, 255, 0, 0];
        assert_eq!(show(description, &bytes).unwrap(), "{d: [{}], h: [{}]}");
        // A header of ROS 1 has a sequence number although this one is empty.
        assert_eq!(pack(description, &bytes, 7), [255, 255, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn rejects_malformed_definitions() {
        for text in ["float64", "float65 x", "float64[2 x", "float64[-1] x", "float64 a-b", "float64 "] {
            assert!(matches!(parse("a/msg/B", text), Err(ParseError::Line { .. })), "{text}");
        }
        assert_eq!(parse("a/msg/B", "c/D d"), Err(ParseError::Undefined("c/msg/D".into())));
        let cycle = format!("c/D d\n{}\nMSG: c/D\na/B b\n", "=".repeat(80));
        assert!(matches!(parse("a/msg/B", &cycle), Err(ParseError::TooLarge(_))));
        assert!(matches!(parse("a/msg/B", "uint8[99999999] x"), Err(ParseError::TooLarge(_))));
        let line = "=".repeat(80);
        let nested = format!("c/D[2000] d\n{line}\nMSG: c/D\ne/F[2000] f\n{line}\nMSG: e/F\n");
        assert!(matches!(parse("a/msg/B", &nested), Err(ParseError::TooLarge(_))));
        assert_eq!(parse("a/msg/Empty", "").unwrap().fields(), []);
        let text = Dialect::Ros2.definition(DiagnosticArray::<1, 1>::DESCRIPTION);
        (0..text.len()).for_each(|length| _ = parse("a/msg/B", &text[..length]));
    }
}
