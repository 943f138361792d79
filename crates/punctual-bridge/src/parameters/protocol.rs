//! The socket protocol: one request, one answer, as lines of text.
//!
//! The first line is [`MARK`]. A request continues with `get`, or with `set` and a line
//! `NAME=VALUE` for each assignment. An answer continues with `listed`, `changed` or `refused`, and
//! a line for each parameter, change or reason, whose fields are separated by tabs.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::{Change, Excerpt, Parameter};

/// The first line, with the version, which is incremented with each change.
pub(super) const MARK: &str = "punctual-parameters/1";

/// The separator of protocol name and version.
const VERSION_AT: char = '/';

/// The maximum size of a request or an answer, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Receives everything up to the end of the stream, which must arrive by `end`.
pub(super) fn receive(stream: &mut UnixStream, end: Instant) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    stream.set_nonblocking(false)?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Get,
    Set(Vec<(String, String)>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Listed(Vec<Parameter>),
    Changed(Vec<Change>),
    Refused(Vec<String>),
}

impl Request {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Get => message("get", []),
            Self::Set(assignments) => {
                message("set", assignments.iter().map(|(name, value)| format!("{name}={value}")))
            }
        }
    }

    /// Parses a request; an error is the reason for the refusal.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (verb, lines) = parts(bytes)?;
        match verb {
            "get" if lines.is_empty() => Ok(Self::Get),
            "set" => {
                let assignment = |line: &&str| {
                    let (name, value) = line
                        .split_once('=')
                        .ok_or_else(|| format!("{:?} is not NAME=VALUE", Excerpt(line)))?;
                    Ok((name.trim().to_owned(), value.trim().to_owned()))
                };
                lines.iter().map(assignment).collect::<Result<_, String>>().map(Self::Set)
            }
            _ => Err(format!("{:?} is not a request", Excerpt(verb))),
        }
    }
}

impl Answer {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Listed(parameters) => message("listed", parameters.iter().map(fields)),
            Self::Changed(changes) => {
                let line = |Change { name, before, now }: &Change| format!("{name}\t{before}\t{now}");
                message("changed", changes.iter().map(line))
            }
            Self::Refused(reasons) => message("refused", reasons.iter().cloned()),
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (verb, lines) = parts(bytes)?;
        let wrong = |line: &str| format!("{line:?} does not have the expected fields");
        match verb {
            "listed" => {
                let parse = |line: &&str| parameter(line).ok_or_else(|| wrong(line));
                lines.iter().map(parse).collect::<Result<_, String>>().map(Self::Listed)
            }
            "changed" => {
                let parse = |line: &&str| {
                    let [name, before, now] = split(line).ok_or_else(|| wrong(line))?;
                    Ok(Change { name, before, now })
                };
                lines.iter().map(parse).collect::<Result<_, String>>().map(Self::Changed)
            }
            "refused" if !lines.is_empty() => {
                Ok(Self::Refused(lines.into_iter().map(str::to_owned).collect()))
            }
            _ => Err(format!("{verb:?} is not an answer")),
        }
    }
}

fn message(verb: &str, lines: impl IntoIterator<Item = String>) -> String {
    let mut text = format!("{MARK}\n{verb}\n");
    for line in lines {
        // A name or a value must not contain a line break.
        text.extend(line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }));
        text.push('\n');
    }
    text
}

/// Returns the verb, and the lines after it.
fn parts(bytes: &[u8]) -> Result<(&str, Vec<&str>), String> {
    let text = str::from_utf8(bytes).map_err(|_| "not text".to_owned())?;
    let text = text.strip_suffix('\n').ok_or("the end is missing")?;
    let mut lines = text.split('\n');
    let mark = lines.next().unwrap_or_default();
    if mark != MARK {
        let protocol = MARK.split(VERSION_AT).next().unwrap_or_default();
        return Err(match mark.strip_prefix(protocol).and_then(|rest| rest.strip_prefix(VERSION_AT)) {
            Some(version) => {
                let version = Excerpt(version);
                format!("version {version:?} instead of {MARK}: use the same release on both sides")
            }
            None => format!("no line {MARK} at the beginning"),
        });
    }
    let verb = lines.next().ok_or("no request")?;
    Ok((verb, lines.collect()))
}

fn fields(parameter: &Parameter) -> String {
    let Parameter { name, kind, unit, range, default, value } = parameter;
    let (min, max) = range.as_ref().map_or(("", ""), |(min, max)| (min, max));
    [name, kind, unit.as_deref().unwrap_or(""), min, max, default, value].join("\t")
}

fn parameter(line: &str) -> Option<Parameter> {
    let [name, kind, unit, min, max, default, value] = split(line)?;
    let range = (!min.is_empty() && !max.is_empty()).then_some((min, max));
    Some(Parameter { name, kind, unit: (!unit.is_empty()).then_some(unit), range, default, value })
}

/// Returns the fields of a line, if there are `N`.
fn split<const N: usize>(line: &str) -> Option<[String; N]> {
    line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::Gains;
    use super::super::{Parameters, list};
    use super::*;

    #[test]
    fn round_trips_requests() {
        let set = Request::Set(vec![("pan.kp".into(), "1.5".into()), ("on".into(), "true".into())]);
        for request in [Request::Get, set, Request::Set(Vec::new())] {
            assert_eq!(Request::parse(request.text().as_bytes()), Ok(request));
        }
        let change = Change { name: "on".into(), before: "false".into(), now: "true".into() };
        let refused = Answer::Refused(vec!["out of range".into(), "no such".into()]);
        for answer in [
            Answer::Listed(list(&Gains::DEFAULT)),
            Answer::Changed(vec![change]),
            Answer::Changed(vec![]),
            refused,
        ] {
            assert_eq!(Answer::parse(answer.text().as_bytes()), Ok(answer));
        }
    }

    #[test]
    fn error_explains_invalid_request() {
        for (bytes, why) in [
            (&b"\xff\xfe\n"[..], "not text"),
            (b"punctual-parameters/1\nget", "the end is missing"),
            (b"punctual-parameters/2\nget\n", "version \"2\" instead of punctual-parameters/1"),
            (b"GET / HTTP/1.1\r\n\r\n", "no line punctual-parameters/1 at the beginning"),
            (b"punctual-parameters/1\n", "no request"),
            (b"punctual-parameters/1\nput\n", "\"put\" is not a request"),
            (b"punctual-parameters/1\nget\nx\n", "\"get\" is not a request"),
            (b"punctual-parameters/1\nset\nkp 1\n", "\"kp 1\" is not NAME=VALUE"),
        ] {
            let error = Request::parse(bytes).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn range_has_two_ends() {
        let range = |line| parameter(line).unwrap().range;
        assert_eq!(range("kp\tf32\t\t0\t2\t1\t1"), Some(("0".into(), "2".into())));
        assert_eq!(["kp\tf32\t\t0\t\t1\t1", "kp\tf32\t\t\t2\t1\t1"].map(range), [None, None]);
    }

    #[test]
    fn name_cannot_add_line() {
        let request = Request::Set(vec![("a\non".into(), "true".into())]);
        let read = Request::parse(request.text().as_bytes()).unwrap();
        assert_eq!(read, Request::Set(vec![("a\u{fffd}on".into(), "true".into())]));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>, verb in "get|set|listed|changed|refused", text in "\\PC*\n") {
            let _ = Request::parse(&bytes);
            let _ = Answer::parse(&bytes);
            let whole = format!("{MARK}\n{verb}\n{text}");
            let _ = Request::parse(whole.as_bytes());
            let _ = Answer::parse(whole.as_bytes());
        }
    }
}
