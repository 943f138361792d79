//! Sections with interrupts or preemption disabled, which delay the start of jobs.
//!
//! The kernel's `preemptirq` events are frequent, so only the last few long sections are
//! remembered.

use crate::event::Section;

/// Number of sections remembered per CPU, and their minimum length, in ns.
const CAPACITY: usize = 16;
const MIN_LENGTH: u64 = 500;

/// The longest section with interrupts or preemption disabled between a job's release and its
/// start, on the CPU that it started on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisabledSection {
    /// The disabled mechanism.
    pub section: Section,
    /// Location of the disabling call, as an offset from the kernel's symbol `_stext`.
    pub caller: i32,
    /// Part of J, in ns.
    pub ns: u64,
}

/// The sections of one CPU.
#[derive(Debug, Default)]
pub(super) struct DisabledSections {
    /// Time and caller of the disabling of interrupts and preemption, if they are disabled.
    open: [Option<(u64, i32)>; 2],
    /// Past sections: start, end, mechanism and caller.
    past: [Option<(u64, u64, Section, i32)>; CAPACITY],
    next: usize,
}

impl DisabledSections {
    pub(super) fn begin(&mut self, time: u64, section: Section, caller: i32) {
        // A nested section changes nothing.
        self.open[section as usize].get_or_insert((time, caller));
    }

    pub(super) fn end(&mut self, time: u64, section: Section) {
        if let Some((from, caller)) = self.open[section as usize].take()
            && time.saturating_sub(from) >= MIN_LENGTH
        {
            self.past[self.next % CAPACITY] = Some((from, time, section, caller));
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Drops everything because events were lost.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the section that covers most of the interval.
    pub(super) fn longest(&self, from: u64, to: u64) -> Option<DisabledSection> {
        if self.next == 0 && self.open == [None; 2] {
            return None;
        }
        let open = [Section::Interrupts, Section::Preemption].into_iter().filter_map(|section| {
            self.open[section as usize].map(|(since, caller)| (since, to, section, caller))
        });
        let all = open.chain(self.past.iter().copied().flatten());
        let within = all.map(|(since, until, section, caller)| {
            let ns = until.min(to).saturating_sub(since.max(from));
            DisabledSection { section, caller, ns }
        });
        within.filter(|off| off.ns >= MIN_LENGTH).max_by_key(|off| off.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_longest_disabled_section_within_interval() {
        let mut sections = DisabledSections::default();
        assert_eq!(sections.longest(0, 10_000), None);
        sections.begin(1_000, Section::Interrupts, 7);
        sections.begin(1_100, Section::Interrupts, 8);
        sections.end(5_000, Section::Interrupts);
        sections.begin(6_000, Section::Preemption, 9);
        let off = |section, caller, ns| Some(DisabledSection { section, caller, ns });
        assert_eq!(sections.longest(0, 7_000), off(Section::Interrupts, 7, 4_000));
        assert_eq!(sections.longest(4_000, 9_000), off(Section::Preemption, 9, 3_000));
        // Too short to be stored.
        assert_eq!(sections.longest(4_900, 6_100), None);
        // An end without a start, and a short section.
        sections.end(9_000, Section::Interrupts);
        sections.begin(9_000, Section::Interrupts, 1);
        sections.end(9_001, Section::Interrupts);
        assert_eq!(sections.longest(8_000, 9_500), off(Section::Preemption, 9, 1_500));
        sections.forget();
        assert_eq!(sections.longest(0, 10_000), None);
    }
}
