//! Directives of an example for the checker, in the doc comment at the top of its source.
//!
//! ```text
//! //! virtual-only: <reason>      not run on the Linux port
//! //! linux-only: <reason>        not run on the virtual port
//! //! exit: <code>                ends with this code instead of 0
//! //! cpus: <number>             needs so many on the Linux port
//! //! one-cpu: <reason>           prints this on one CPU only
//! ```

use std::fmt;
use std::str::FromStr;

/// The port that an app runs on, selected by the environment variable `PUNCTUAL_PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Virtual time: one thread, deterministic.
    Virtual,
    /// Kernel threads.
    Linux,
}

impl Port {
    /// The environment variable that selects the port of an app.
    pub const VARIABLE: &str = "PUNCTUAL_PORT";

    /// Returns the value of [`Self::VARIABLE`] that selects this port.
    pub fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Linux => "linux",
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The directives of one example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    only: Option<Port>,
    /// The exit code with which the example must end.
    pub exit: i32,
    /// Its output is correct on one CPU only.
    pub one_cpu: bool,
    /// The number of CPUs it needs on the Linux port.
    pub cpus: usize,
}

impl Header {
    /// Reads the directives from the `//!` lines at the top of `source`.
    pub fn parse(source: &str) -> Result<Self, String> {
        let reason = |key| {
            let mut reasons = directives(source, key);
            match (reasons.next(), reasons.next()) {
                (Some(""), _) => Err(format!("`{key}:` needs a reason")),
                (Some(_), Some(_)) => Err(format!("at most one `{key}:` line")),
                (reason, _) => Ok(reason.is_some()),
            }
        };
        let only = match (reason("virtual-only")?, reason("linux-only")?) {
            (true, true) => return Err("at most one `…-only:` line".to_owned()),
            (true, false) => Some(Port::Virtual),
            (false, true) => Some(Port::Linux),
            (false, false) => None,
        };
        Ok(Self {
            only,
            exit: number(source, "exit")?,
            one_cpu: reason("one-cpu")?,
            cpus: number(source, "cpus")?,
        })
    }

    /// Returns the ports to run the example on; the output of the first is blessed.
    pub fn ports(&self) -> &'static [Port] {
        match self.only {
            None => &[Port::Virtual, Port::Linux],
            Some(Port::Virtual) => &[Port::Virtual],
            Some(Port::Linux) => &[Port::Linux],
        }
    }
}

/// Returns the values of the lines `//! <key>: <value>` at the top of `source`.
pub fn directives<'a>(source: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    comment.filter_map(move |line| Some(line.trim().strip_prefix(key)?.strip_prefix(':')?.trim()))
}

fn number<T: FromStr<Err: fmt::Display> + Default>(source: &str, key: &str) -> Result<T, String> {
    let Some(value) = directives(source, key).next() else { return Ok(T::default()) };
    value.parse().map_err(|error| format!("`{key}: {value}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_ordinary_example_on_both_ports() {
        let header = Header::parse("//! Blinks: forever.\n//!\n//! More.\nuse x;\n").unwrap();
        assert_eq!(header, Header::default());
        assert_eq!(header.ports(), [Port::Virtual, Port::Linux]);
        assert_eq!(header.exit, 0);
    }

    #[test]
    fn reads_directives_among_prose() {
        let header =
            Header::parse("//! virtual-only: it simulates a plant\n//! A panic.\n//! exit: 101\n").unwrap();
        assert_eq!(header.ports(), [Port::Virtual]);
        assert_eq!(header.exit, 101);
        assert_eq!(Header::parse("//! linux-only: signals\n").unwrap().ports(), [Port::Linux]);
        assert!(Header::parse("//! one-cpu: it shows preemption\n").unwrap().one_cpu);
        assert_eq!(Header::parse("//! cpus: 2\n").unwrap().cpus, 2);
    }

    #[test]
    fn reads_only_the_leading_comment() {
        assert_eq!(Header::parse("//! A.\n\n//! exit: 101\n").unwrap().exit, 0);
    }

    #[test]
    fn rejects_directives_without_reason() {
        assert!(Header::parse("//! virtual-only:\n").is_err());
        assert!(Header::parse("//! exit: badly\n").is_err());
        assert!(Header::parse("//! cpus: many\n").is_err());
        assert!(Header::parse("//! one-cpu: \n").is_err());
        assert!(Header::parse("//! virtual-only: a\n//! linux-only: b\n").is_err());
    }
}
