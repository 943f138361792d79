//! `prev_state` of `sched_switch`: how a thread left its CPU.
//!
//! The bits differ between kernels: before 4.14, preemption was the bit after the last of a longer
//! list. The event's print format names them, so they are read from it.

use crate::event::SwitchOut;

/// The meaning of the bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct States {
    /// The bit printed as `+`.
    preempted: u64,
    /// The bits printed as `I` and, before 4.14, `N`: the thread is idle, regardless of other bits.
    idle: u64,
    /// By bit number. Bits that the kernel does not print count as uninterruptible, because the
    /// thread is not running.
    bits: [SwitchOut; 16],
}

impl Default for States {
    /// Returns the bits of kernels since 4.14.
    fn default() -> Self {
        let letters =
            [(1, 'S'), (2, 'D'), (4, 'T'), (8, 't'), (0x10, 'X'), (0x20, 'Z'), (0x40, 'P'), (0x80, 'I')];
        Self::new(&letters, None)
    }
}

impl States {
    /// The preemption bit is the one after the last unless given.
    fn new(flags: &[(u64, char)], preempted: Option<u64>) -> Self {
        let mut bits = [SwitchOut::Uninterruptible; 16];
        let (mut highest, mut idle) = (0, 0);
        for &(value, letter) in flags {
            let bit = value.trailing_zeros() as usize;
            if let Some(meaning) = bits.get_mut(bit) {
                *meaning = match letter {
                    'S' => SwitchOut::Sleeping,
                    'T' | 't' | 'X' | 'x' | 'Z' | 'P' => SwitchOut::Gone,
                    _ => SwitchOut::Uninterruptible,
                };
            }
            if matches!(letter, 'I' | 'N') {
                idle |= value;
            }
            highest = highest.max(value);
        }
        Self { preempted: preempted.unwrap_or((highest + 1).next_power_of_two()), idle, bits }
    }

    /// Parses `{ 0x01, "S" }, { 0x02, "D" }, …` in the format's `print fmt`.
    pub(super) fn parse(print: &str) -> Option<Self> {
        let mut flags = Vec::new();
        for part in print.split('{').skip(1) {
            let (value, rest) = part.split_once(',')?;
            let value = number(value)?;
            let letter = rest.trim_start().strip_prefix('"')?.chars().next()?;
            if !value.is_power_of_two() || value > 1 << 32 {
                return None;
            }
            flags.push((value, letter));
        }
        flags.contains(&(1, 'S')).then(|| Self::new(&flags, preempted(print)))
    }

    #[inline]
    pub(super) fn switch_out(&self, state: u64) -> SwitchOut {
        if state == 0 || state & self.preempted != 0 {
            return SwitchOut::Runnable;
        }
        if state & self.idle != 0 {
            return SwitchOut::Sleeping;
        }
        self.bits.get(state.trailing_zeros() as usize).copied().unwrap_or(SwitchOut::Uninterruptible)
    }
}

/// Returns the bit printed as `+`, if the text has its value: it need not follow the last named
/// bit, because the kernel does not name all. Newer kernels compute it from that one.
fn preempted(print: &str) -> Option<u64> {
    let (before, _) = print.split_once(r#"? "+""#)?;
    let (_, bit) = before.rsplit_once('&')?;
    number(bit.trim().trim_matches(['(', ')'])).filter(|bit| bit.is_power_of_two())
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_task_states_of_kernels_since_4_14() {
        let print = include_str!("../../../tests/data/events/sched/sched_switch/format");
        let states = States::parse(print.split_once("print fmt:").unwrap().1).unwrap();
        assert_eq!(states, States::default());
        assert_eq!(states.switch_out(0), SwitchOut::Runnable);
        assert_eq!(states.switch_out(0x100), SwitchOut::Runnable);
        assert_eq!(states.switch_out(1), SwitchOut::Sleeping);
        assert_eq!(states.switch_out(2), SwitchOut::Uninterruptible);
        assert_eq!([0x10, 0x20, 4, 8, 0x40].map(|state| states.switch_out(state)), [SwitchOut::Gone; 5]);
    }

    #[test]
    fn reads_task_states_of_kernels_before_4_14() {
        let print = r#"REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" },
            { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" },
            { 1024, "N" }) : "R", REC->prev_state & 2048 ? "+" : """#;
        let states = States::parse(print).unwrap();
        assert_eq!(states.switch_out(1 | 2048), SwitchOut::Runnable); // preempted before it could sleep
        assert_eq!(states.switch_out(2 | 128), SwitchOut::Uninterruptible);
        assert_eq!(states.switch_out(256), SwitchOut::Uninterruptible);
        assert_eq!(states.switch_out(16), SwitchOut::Gone);
    }

    /// Kernel threads wait for work in TASK_IDLE, which is uninterruptible and not counted as load.
    #[test]
    fn treats_idle_kernel_threads_as_sleeping() {
        let states = States::default();
        assert_eq!(states.switch_out(0x80), SwitchOut::Sleeping);
        let before = States::new(&[(1, 'S'), (2, 'D'), (1024, 'N')], None);
        assert_eq!(before.switch_out(2 | 1024), SwitchOut::Sleeping);
        assert_eq!(before.switch_out(2), SwitchOut::Uninterruptible);
    }

    #[test]
    fn rejects_malformed_formats() {
        for print in
            ["", "{", "{ 3, \"S\" }", "{ 0x1, S }", "{ 1, \"D\" }", "{ 99999999999999999999, \"S\" }"]
        {
            assert_eq!(States::parse(print), None, "{print}");
        }
    }

    /// Kernels from 4.8 to 4.13 have an unnamed state between the last named one and the preemption
    /// bit, and some newer ones have that bit at another position. A thread that was preempted did
    /// not wait for a lock.
    #[test]
    fn reads_preemption_bit_from_text() {
        let named = r#"{ 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }, { 1024, "N" }"#;
        for (bit, found) in
            [("4096", 4096), ("0x1000", 4096), ("(2048)", 2048), ("((((0x0 | 0x1) + 1) << 1))", 2048)]
        {
            let print = format!(
                r#"REC->prev_state & (4096-1) ? __print_flags(REC->prev_state & (4096-1), "|", {named}) : "R", REC->prev_state & {bit} ? "+" : "", REC->next_comm"#
            );
            let states = States::parse(&print).unwrap();
            assert_eq!(states.switch_out(found), SwitchOut::Runnable, "{bit}");
            assert_ne!(states.switch_out(found << 1), SwitchOut::Runnable, "{bit}");
        }
    }
}
