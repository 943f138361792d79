//! Sections with interrupts or preemption off, which delay the start of jobs.
//!
//! The kernel's `preemptirq` events are frequent, so only the last few long sections are remembered.

use crate::event::Section;

/// How many are remembered per CPU, and how long they have to be, in ns.
const KEPT: usize = 16;
const MIN_LENGTH: u64 = 500;

/// The longest section with something off between a job's release and its start, on the CPU that it started on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisabledSection {
    /// What was off.
    pub section: Section,
    /// Where it was turned off, as an offset from the kernel's symbol `_stext`.
    pub caller: i32,
    /// How much of J it was, in ns.
    pub ns: u64,
}

/// The sections of one CPU.
#[derive(Debug, Default)]
pub(super) struct DisabledSections {
    /// Since when interrupts and preemption are off, and by whom.
    open: [Option<(u64, i32)>; 2],
    /// Those that have ended: from, to, and what.
    past: [Option<(u64, u64, Section, i32)>; KEPT],
    next: usize,
}

impl DisabledSections {
    pub(super) fn begin(&mut self, time: u64, section: Section, caller: i32) {
        // A second one inside the first changes nothing.
        self.open[section as usize].get_or_insert((time, caller));
    }

    pub(super) fn end(&mut self, time: u64, section: Section) {
        if let Some((from, caller)) = self.open[section as usize].take()
            && time.saturating_sub(from) >= MIN_LENGTH
        {
            self.past[self.next % KEPT] = Some((from, time, section, caller));
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Forgets everything, as events were lost.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The one that covers most of that interval.
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
        // Too short to tell.
        assert_eq!(sections.longest(4_900, 6_100), None);
        // An end without a beginning, and one that is short.
        sections.end(9_000, Section::Interrupts);
        sections.begin(9_000, Section::Interrupts, 1);
        sections.end(9_001, Section::Interrupts);
        assert_eq!(sections.longest(8_000, 9_500), off(Section::Preemption, 9, 1_500));
        sections.forget();
        assert_eq!(sections.longest(0, 10_000), None);
    }
}
