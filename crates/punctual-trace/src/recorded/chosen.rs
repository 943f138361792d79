//! Threads whose switches and wake-ups a narrow recording contains.

use std::fmt::Write as _;

use crate::event::Tid;

/// Prefix of its lines in a declaration.
const SWITCHES: &str = "switches ";

/// Threads whose switches and wake-ups are all recorded. Switches and wake-ups of other threads are
/// recorded only if they involve one of these threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Chosen {
    /// Ranges of thread IDs.
    threads: Vec<(Tid, Tid)>,
    /// Includes descendants. The kernel then filters by ID alone, so that a switch to or from the
    /// idle thread, which is never chosen, shows that the other thread is.
    followed: bool,
    /// Names; a thread is included while it has one of them.
    names: Vec<String>,
    /// Priority ranges as the kernel counts; a thread is included while its priority is in one of
    /// them.
    priorities: Vec<(i32, i32)>,
}

impl Chosen {
    pub(crate) fn new(threads: &[Tid], followed: bool) -> Self {
        Self { threads: threads.iter().map(|&tid| (tid, tid)).collect(), followed, ..Self::default() }
    }

    /// Adds threads with this name.
    pub(crate) fn or_named(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Adds threads with priorities in this range, as the kernel counts.
    pub(crate) fn or_at(mut self, first: i32, last: i32) -> Self {
        self.priorities.push((first, last));
        self
    }

    pub(crate) fn has(&self, thread: Tid) -> bool {
        self.threads.iter().any(|&(first, last)| (first..=last).contains(&thread))
    }

    pub(crate) fn follows(&self) -> bool {
        self.followed
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|chosen| chosen == name)
    }

    pub(crate) fn has_priority(&self, priority: i32) -> bool {
        self.priorities.iter().any(|&(first, last)| (first..=last).contains(&priority))
    }

    /// Parses a line of a declaration into `chosen`, if it concerns switches.
    pub(super) fn read(chosen: &mut Option<Self>, line: &str) -> bool {
        let Some(rest) = line.strip_prefix(SWITCHES) else { return false };
        let chosen = chosen.get_or_insert_default();
        match rest.split_once(' ').unwrap_or((rest, "")) {
            ("of", numbers) => chosen.threads.extend(numbers.split_whitespace().filter_map(pair)),
            ("followed", _) => chosen.followed = true,
            ("named", name) => chosen.names.push(name.to_owned()),
            ("at", priorities) => chosen.priorities.extend(priorities.split_whitespace().filter_map(pair)),
            _ => {}
        }
        true
    }

    /// Returns the lines that [`read`](Self::read) parses.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{SWITCHES}of");
        for (first, last) in &self.threads {
            let _ = if first == last { write!(text, " {first}") } else { write!(text, " {first}..{last}") };
        }
        text.push('\n');
        if self.followed {
            text += &format!("{SWITCHES}followed\n");
        }
        for name in &self.names {
            text += &format!("{SWITCHES}named {name}\n");
        }
        for (first, last) in &self.priorities {
            text += &format!("{SWITCHES}at {first}..{last}\n");
        }
        text
    }

    /// Combines the sets of two machines, where `None` means all threads, and the other's thread
    /// IDs are offset by `higher`.
    pub(super) fn of_both(own: Option<Self>, other: Option<&Self>, higher: Tid) -> Option<Self> {
        let shifted = |tid: Tid| tid.saturating_add(higher);
        let ranges = |chosen: &Self| -> Vec<_> {
            chosen.threads.iter().map(|&(first, last)| (shifted(first), shifted(last))).collect()
        };
        match (own, other) {
            (None, None) => None,
            (None, Some(other)) => {
                let mut chosen = Self { threads: ranges(other), ..other.clone() };
                chosen.threads.push((1, higher));
                Some(chosen)
            }
            (Some(mut own), other) => {
                own.threads.iter_mut().for_each(|(_, last)| *last = higher.min(*last));
                let Some(other) = other else {
                    own.threads.push((shifted(1), Tid::MAX));
                    return Some(own);
                };
                own.threads.extend(ranges(other));
                own.followed &= other.followed;
                // A thread chosen on one machine may not be chosen on the other.
                if own.names != other.names {
                    own.names.clear();
                }
                if own.priorities != other.priorities {
                    own.priorities.clear();
                }
                Some(own)
            }
        }
    }
}

/// `3..7`, or `3` alone.
fn pair<T: std::str::FromStr + Copy>(text: &str) -> Option<(T, T)> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Chosen> {
        let mut chosen = None;
        text.lines().for_each(|line| assert!(Chosen::read(&mut chosen, line), "{line}"));
        chosen
    }

    #[test]
    fn round_trips_choices() {
        let chosen = Chosen::new(&[5, 6], false).or_named("a: b").or_at(0, 98);
        assert_eq!(chosen.text(), "switches of 5 6\nswitches named a: b\nswitches at 0..98\n");
        for chosen in [chosen, Chosen::new(&[], true), Chosen::default()] {
            assert_eq!(read(&chosen.text()), Some(chosen));
        }
        assert!(!Chosen::read(&mut None, "calls of 5"));
        assert!(
            !read("switches of x 7..y 99999999999\nswitches at\nswitches \u{a0}").unwrap_or_default().has(7)
        );
    }

    #[test]
    fn keeps_machines_apart() {
        let narrow = Chosen::new(&[5], true);
        let last = Chosen::of_both(None, Some(&narrow), 100).unwrap();
        assert!(last.has(7) && last.has(105) && !last.has(107) && last.follows());
        let first = Chosen::of_both(Some(narrow.clone()), None, 100).unwrap();
        assert!(first.has(5) && !first.has(7) && first.has(107));
        // A third machine's threads are not among those of the second.
        let three = Chosen::of_both(Some(first), Some(&Chosen::new(&[5], false).or_named("x")), 200).unwrap();
        assert!(three.has(107) && three.has(205) && !three.has(207));
        assert!(!three.follows() && !three.has_name("x"));
        assert_eq!(Chosen::of_both(None, None, 100), None);
    }
}
