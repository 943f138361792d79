//! Why an app did not start.

use std::fmt;

/// Why an app did not start. Nothing of it has run; every message names the fix.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// This app is running already; the name of its module.
    AlreadyRunning(&'static str),
    /// An environment variable makes no sense.
    Environment(String),
    /// The CPU does not exist or is not allowed to this process.
    Cpu {
        /// The CPU asked for.
        cpu: usize,
        /// The allowed CPUs.
        allowed: String,
    },
    /// The kernel priorities of the levels would not all lie in 1..=99.
    Priority {
        /// The priority base asked for.
        base: u8,
        /// The highest level of the app.
        highest: u8,
    },
    /// `strict` is set and these real-time settings do not apply.
    Strict(Vec<String>),
    /// The system refused something that the app cannot run without.
    System {
        /// What was attempted.
        attempt: &'static str,
        /// What the system answered.
        error: std::io::Error,
    },
}

impl StartError {
    /// What the process should exit with: 2 for a bad environment variable or CPU, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Environment(_) | Self::Cpu { .. } | Self::Priority { .. } => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRunning(name) => {
                write!(f, "the app `{name}` is running already; wait until its `run` has returned")
            }
            Self::Environment(problem) => f.write_str(problem),
            Self::Cpu { cpu, allowed } => write!(
                f,
                "there is no CPU {cpu} for this app; choose one of {allowed} with `#[app(cpu = …)]`, \
                 `Config::cpu` or PUNCTUAL_CPU, or allow it to the process"
            ),
            Self::Priority { base, highest } => write!(
                f,
                "with priority base {base}, level {highest} would have kernel priority {}, and the highest is 99; \
                 choose a base of at most {}",
                u32::from(*base) + u32::from(*highest),
                99 - highest
            ),
            Self::Strict(missing) => {
                f.write_str("strict: the app does not start, because it would not be real time:")?;
                missing.iter().try_for_each(|what| write!(f, "\n  {what}"))
            }
            Self::System { attempt, error } => write!(f, "{attempt}: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_fix() {
        let cpu = StartError::Cpu { cpu: 9, allowed: "0,1".into() };
        assert!(cpu.to_string().contains("PUNCTUAL_CPU"));
        let priority = StartError::Priority { base: 90, highest: 20 };
        assert!(priority.to_string().ends_with("at most 79"), "{priority}");
    }
}
