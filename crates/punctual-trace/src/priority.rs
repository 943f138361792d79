//! The one definition of priority for numbers and texts.
//!
//! The kernel's events count priorities from the highest: -1 is SCHED_DEADLINE, 0 to 98 are
//! real-time, 100 to 139 ordinary. `chrt`, programs and people count real-time priorities in the
//! opposite direction, from 1 to 99. [Events](crate::event), values compared with them
//! ([`Select::priorities`](crate::jobs::Select::priorities)) and exports in the form of kernel
//! events use the kernel's number; every text, table and other export uses a [`Priority`].
//!
//! ```
//! use punctual_trace::priority::Priority;
//!
//! let control = Priority::of_kernel(19);
//! assert_eq!((control.number(), control.to_string().as_str()), (80, "priority 80"));
//! assert!(control > Priority::of_kernel(120));
//! ```

use std::cmp::Ordering;
use std::fmt;

/// Priority of a thread. Higher priorities compare as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    kernel: i32,
}

impl Priority {
    /// Converts from the kernel's number.
    #[must_use]
    pub fn of_kernel(kernel: i32) -> Self {
        Self { kernel }
    }

    /// Returns 1 to 99 under SCHED_FIFO and SCHED_RR, as in `chrt`; 0 for ordinary threads, which
    /// have a [nice value](Self::nice) instead; 100 under SCHED_DEADLINE, which precedes all of
    /// them.
    #[must_use]
    pub fn number(self) -> u8 {
        match self.kernel {
            ..0 => 100,
            kernel @ 0..=98 => 99 - kernel as u8,
            _ => 0,
        }
    }

    /// Returns the nice value of an ordinary thread, from -20, the highest priority, to 19.
    #[must_use]
    pub fn nice(self) -> Option<i32> {
        (100..=139).contains(&self.kernel).then_some(self.kernel - 120)
    }
}

/// Describes a range from the highest to the lowest priority; arguments are the kernel's numbers.
#[must_use]
pub fn range(most: i32, least: i32) -> String {
    let [most, least] = [most, least].map(Priority::of_kernel);
    let (from, to) = (least.to_string(), most.to_string());
    match from.split_once(' ').zip(to.split_once(' ')) {
        _ if from == to => from,
        // Both of one policy, which is named once.
        Some(((one, _), (other, number))) if one == other => format!("{from} to {number}"),
        _ => format!("{from} to {to}"),
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> Ordering {
        other.kernel.cmp(&self.kernel)
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number(), self.nice()) {
            (100, _) => f.write_str("SCHED_DEADLINE"),
            (_, Some(nice)) => write!(f, "nice {nice}"),
            (number, None) => write!(f, "priority {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_chrt_does_and_orders_by_urgency() {
        let of = |kernel| (Priority::of_kernel(kernel).number(), Priority::of_kernel(kernel).nice());
        assert_eq!([-1, 0, 10, 98].map(of), [(100, None), (99, None), (89, None), (1, None)]);
        assert_eq!([100, 120, 139].map(of), [(0, Some(-20)), (0, Some(0)), (0, Some(19))]);
        let texts = [-1, 10, 130].map(|kernel| Priority::of_kernel(kernel).to_string());
        assert_eq!(texts, ["SCHED_DEADLINE", "priority 89", "nice 10"]);
        let ranges = [range(45, 46), range(10, 130), range(-1, 10), range(120, 130), range(45, 45)];
        let texts = [
            "priority 53 to 54",
            "nice 10 to priority 89",
            "priority 89 to SCHED_DEADLINE",
            "nice 10 to 0",
            "priority 54",
        ];
        assert_eq!(ranges, texts);
        let mut all = [130, -1, 98, 0, 120].map(Priority::of_kernel);
        all.sort();
        assert_eq!(all.map(|priority| priority.kernel), [130, 120, 98, 0, -1]);
    }
}
