//! Parses values of the command line.

use std::ops::RangeInclusive;
use std::str::FromStr;

use punctual_trace::record::Group;

/// Real-time priorities: `1..99`, or one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Priorities(pub(crate) RangeInclusive<u8>);

impl FromStr for Priorities {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.parse().ok().filter(|priority| (1..=99).contains(priority));
        let range = number(low).zip(number(high.trim_start_matches('='))).map(|(low, high)| low..=high);
        range.filter(|range| !range.is_empty()).map(Self).ok_or_else(|| {
            format!(
                "`{text}` is not a range of real-time priorities; give a range such as 1..99 \
                 (inclusive), or 50"
            )
        })
    }
}

/// Groups of events and tracepoints, without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Events(pub(crate) Vec<Group>, pub(crate) Vec<String>);

impl FromStr for Events {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Without scheduler events there are no jobs.
        let mut groups = vec![Group::Sched];
        let mut tracepoints = Vec::new();
        for name in text.split(',') {
            match (name, Group::by_name(name)) {
                ("usual", _) => groups.extend_from_slice(Group::USUAL),
                ("all", _) => groups.extend(Group::ALL),
                ("syscalls", _) => tracepoints.push("syscalls:*".to_owned()),
                (_, Some(group)) => groups.push(group),
                (name, None) if is_tracepoint(name) => tracepoints.push(name.to_owned()),
                (_, None) => {
                    let names: Vec<_> = Group::ALL.iter().map(|group| group.name()).collect();
                    return Err(format!(
                        "there is no event group `{name}`; choose from {}, syscalls, usual and all, or name events of the kernel, \
                         such as net:* or power:cpu_idle",
                        names.join(", ")
                    ));
                }
            }
        }
        groups.sort_unstable();
        groups.dedup();
        Ok(Self(groups, tracepoints))
    }
}

/// Returns whether this is `group:event` of the kernel, with `*` for any characters.
fn is_tracepoint(text: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*'))
    };
    text.split_once(':').is_some_and(|(group, event)| is_name(group) && is_name(event))
}

/// The tasks of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChainOf {
    /// All that are found.
    Auto,
    /// These, in the order in which they wake each other.
    Tasks(Vec<String>),
}

impl FromStr for ChainOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let tasks: Vec<_> = text.split(',').map(str::to_owned).collect();
        if tasks.len() < 2 || tasks.iter().any(String::is_empty) {
            return Err(format!(
                "`{text}` is not a chain; write auto, or two or more tasks in the order in which \
                 they wake each other, such as reader,control"
            ));
        }
        Ok(Self::Tasks(tasks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_priority_ranges() {
        assert_eq!("1..99".parse(), Ok(Priorities(1..=99)));
        assert_eq!("50..=60".parse(), Ok(Priorities(50..=60)));
        assert_eq!("50".parse(), Ok(Priorities(50..=50)));
        for text in ["", "0..5", "9..3", "1..100", "a..b", "..", "1..2..3"] {
            assert!(text.parse::<Priorities>().unwrap_err().contains("1..99"), "{text}");
        }
    }

    #[test]
    fn parses_event_groups() {
        assert_eq!("usual".parse(), Ok(Events(Group::USUAL.to_vec(), vec![])));
        assert_eq!("all".parse(), Ok(Events(Group::ALL.to_vec(), vec![])));
        assert_eq!("lock,irq,lock".parse(), Ok(Events(vec![Group::Sched, Group::Irq, Group::Lock], vec![])));
        assert_eq!("usual,osnoise".parse::<Events>().unwrap().0.len(), Group::USUAL.len() + 1);
        let Events(groups, tracepoints) = "irq,syscalls,net:*,power:cpu_idle".parse().unwrap();
        assert_eq!(
            (groups, &tracepoints[..]),
            (
                vec![Group::Sched, Group::Irq],
                &["syscalls:*", "net:*", "power:cpu_idle"].map(str::to_owned)[..]
            )
        );
        for text in ["", "irqs", "irq,,lock", "net:", ":x", "net:*/../x", "a:b:c"] {
            assert!(text.parse::<Events>().unwrap_err().contains("irq_vectors"), "{text}");
        }
    }

    #[test]
    fn parses_chains() {
        let tasks = |names: &[&str]| Ok(ChainOf::Tasks(names.iter().map(|&name| name.to_owned()).collect()));
        assert_eq!("irq/24-eth0,reader".parse(), tasks(&["irq/24-eth0", "reader"]));
        assert_eq!("auto".parse(), Ok(ChainOf::Auto));
        for text in ["", "reader", "a,,b", "a,"] {
            assert!(text.parse::<ChainOf>().unwrap_err().contains("reader,control"), "{text}");
        }
    }
}
