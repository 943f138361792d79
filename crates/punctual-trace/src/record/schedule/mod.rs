//! When threads enter and leave the scheduler, by BPF programs on two tracepoints of the kernel that tracefs does not have.
//!
//! The programs are in `schedule.bpf.c`, built into `schedule.bpf.o` beside it by `cargo xtask bpf`, so that whoever builds this
//! crate needs no compiler for BPF. Each entry and return of a traced thread becomes a record of 16 bytes
//! in a ring of its CPU. Nobody is woken for it: the rings are read every now and then, by [`store`] into the pages of a
//! recording, or by [`Live`](super::Live).
//!
//! Programs, maps and rings go with the process, however it ends: nothing is pinned.

#[cfg(not(all(feature = "bpf", target_endian = "little")))]
#[path = "none.rs"]
mod programs;
#[cfg(all(feature = "bpf", target_endian = "little"))]
mod programs;
// Without programs there are no records.
#[cfg_attr(not(all(feature = "bpf", target_endian = "little")), allow(dead_code))]
mod record;
pub(super) mod store;

pub(super) use programs::Programs;
use record::Record;

use super::Config;
use super::error::RecordError;
use super::events::Group;

/// The one clock that the programs have.
const CLOCK: &str = "mono";

/// Refuses other clocks than that of the programs, if they are wanted: what they write could not be put in order with the rest.
pub(super) fn check_clock(config: &Config) -> Result<(), RecordError> {
    if config.groups.contains(&Group::Schedule) && config.clock != CLOCK {
        let available = format!("{CLOCK}, if the group `{}` is recorded", Group::Schedule.name());
        return Err(RecordError::Clock { clock: config.clock.clone(), available });
    }
    Ok(())
}

/// The size of a CPU's ring: a quarter of its buffer, since a switch makes two records of 24 bytes here and, with its wake-up,
/// several events of some 42 bytes there.
#[cfg_attr(not(all(feature = "bpf", target_endian = "little")), allow(dead_code))]
fn ring_bytes(buffer_kib: u32) -> u32 {
    buffer_kib.saturating_mul(1024 / 4).clamp(64 << 10, 1 << 30).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rings_as_powers_of_two_within_bounds() {
        assert_eq!(
            [0, 64, 8 << 10, 9 << 10, u32::MAX].map(ring_bytes),
            [64 << 10, 64 << 10, 2 << 20, 4 << 20, 1 << 30]
        );
    }

    #[test]
    fn rejects_other_clocks() {
        let config = |clock: &str, groups: &[Group]| Config {
            clock: clock.to_owned(),
            groups: groups.to_vec(),
            ..Config::default()
        };
        check_clock(&config("global", &[Group::Sched])).unwrap();
        check_clock(&config("mono", &[Group::Schedule])).unwrap();
        let error = check_clock(&config("global", &[Group::Sched, Group::Schedule])).unwrap_err();
        assert!(error.to_string().contains("mono, if the group `schedule`"), "{error}");
    }
}
