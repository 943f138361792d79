//! Entry to and exit from the scheduler, by BPF programs on two tracepoints of the kernel that
//! tracefs does not have.
//!
//! The programs are in `schedule.bpf.c`; `cargo xtask bless bpf` builds them into `schedule.bpf.o`
//! in the same directory, so that building this crate requires no compiler for BPF. Each entry and
//! return of a traced thread becomes a record of 16 bytes in a ring of its CPU. A record wakes no
//! thread: the rings are read at an interval, by [`store`] into the pages of a recording, or by
//! [`Live`](super::Live).
//!
//! Programs, maps and rings are removed with the process, however it ends: nothing is pinned.

/// No programs: this crate was built without them.
#[cfg(not(all(feature = "bpf", target_endian = "little")))]
mod programs {
    use super::Record;
    use crate::event::Tid;
    use crate::record::Config;
    use crate::record::error::RecordError;

    /// Without values, because there are no programs.
    pub(in crate::record) enum Programs {}

    impl Programs {
        pub(in crate::record) fn load(
            _: &Config,
            _: &[Tid],
            _: &[u32],
        ) -> Result<Result<Self, String>, RecordError> {
            let why = match cfg!(feature = "bpf") {
                true => "BPF programs exist only for little-endian machines",
                false => "built without BPF programs; build with the cargo feature `bpf`",
            };
            Ok(Err(why.to_owned()))
        }

        pub(in crate::record) fn cpus(&self) -> &[u32] {
            match *self {}
        }

        pub(in crate::record) fn attach(&mut self) -> Result<(), RecordError> {
            match *self {}
        }

        pub(in crate::record) fn detach(&mut self) {
            match *self {}
        }

        pub(in crate::record) fn read(&mut self, _: usize, _: impl FnMut(Record) -> bool) {
            match *self {}
        }

        pub(in crate::record) fn missing(&self, _: usize) -> Option<(u64, u64)> {
            match *self {}
        }
    }
}
#[cfg(all(feature = "bpf", target_endian = "little"))]
mod programs;
// Without programs there are no records.
#[cfg_attr(not(all(feature = "bpf", target_endian = "little")), allow(dead_code))]
mod record;
pub(super) mod store;

pub(super) use self::programs::Programs;
use self::record::Record;
use super::Config;
use crate::event::Tid;

/// True if this crate is built with the programs.
pub(super) const BUILT_IN: bool = cfg!(all(feature = "bpf", target_endian = "little"));

/// The only clock that the programs support.
const CLOCK: &str = "mono";

/// Loads the programs for these threads and CPUs, or returns the reason why the group is not
/// recorded.
pub(super) fn load(config: &Config, threads: &[Tid], cpus: &[u32]) -> Result<Programs, String> {
    if config.clock != CLOCK {
        // Their records could not be ordered with the other events.
        return Err(format!("its programs have the clock {CLOCK}, and this recording has {}", config.clock));
    }
    Programs::load(config, threads, cpus).unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns the size of a CPU's ring: that of its buffer. A switch creates two records of 24 bytes
/// in the ring and several events of about 42 bytes in the buffer, but a thread that calls
/// `sched_yield` in a loop creates two records for two events.
#[cfg_attr(not(all(feature = "bpf", target_endian = "little")), allow(dead_code))]
fn ring_bytes(buffer_kib: u32) -> u32 {
    buffer_kib.saturating_mul(1024).clamp(64 << 10, 1 << 30).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rings_as_powers_of_two_within_bounds() {
        assert_eq!(
            [0, 64, 8 << 10, 9 << 10, u32::MAX].map(ring_bytes),
            [64 << 10, 64 << 10, 8 << 20, 16 << 20, 1 << 30]
        );
    }

    #[test]
    fn reports_programs_with_another_clock() {
        let config = Config { clock: "boot".to_owned(), ..Config::default() };
        let why = load(&config, &[], &[]).err().unwrap();
        assert_eq!(why, "its programs have the clock mono, and this recording has boot");
    }
}
