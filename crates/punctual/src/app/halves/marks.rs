//! Marks of the jobs of the half without Linux in the kernel's trace, which this half writes for it.
//!
//! That half leaves each job that has ended in a [ring](super::shown). The supervisor empties it [fifty times a second](INTERVAL) and writes
//! a [mark](punctual_core::trace_marker::beyond) for each, with the job's own times, as `CLOCK_MONOTONIC` would have shown them: the
//! counter that the other half reads is the one that this clock is made of, and both are read together each time. What lies between these
//! two readings, and what the clock is steered by within one interval, is how far they may be off.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use punctual_core::trace_marker::{self, Beyond};
use punctual_sync::shared::RingConsumer;

use super::linux::Other;
use super::shown::{JOBS, Ran};
use crate::port::linux::clock;

/// How often the ring is emptied.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// What is marked. A process runs one half, once.
static MARKING: Mutex<Option<Marking>> = Mutex::new(None);

#[derive(Debug)]
struct Marking {
    other: Other,
    marker: OwnedFd,
    jobs: RingConsumer<'static, Ran, JOBS>,
    /// The number of the first task.
    first: u16,
    /// How many have been said to be lost.
    lost: u64,
}

/// Has the jobs of `other` marked in `marker`, by numbers from `first` on. Returns why they are not, if so.
pub(crate) fn begin(other: Other, marker: OwnedFd, first: u16) -> Option<String> {
    let failed = |why: &str| Some(format!("the jobs of partition {} are not marked: {why}", other.name()));
    if offset().is_none() {
        return failed("its clock cannot be related to this half's");
    }
    let Ok(jobs) = other.jobs().ring.consumer() else { return failed("somebody else takes them") };
    let marking = Marking { other, marker, jobs, first, lost: 0 };
    for (number, (_, shown)) in (first..).zip(other.tasks()) {
        shown.mark.store(u32::from(number) + 1, Relaxed);
    }
    *MARKING.lock().unwrap_or_else(PoisonError::into_inner) = Some(marking);
    name();
    None
}

/// Writes the names of the other half's tasks.
pub(crate) fn name() {
    if let Some(marking) = &*MARKING.lock().unwrap_or_else(PoisonError::into_inner) {
        for (number, (name, _)) in (marking.first..).zip(marking.other.tasks()) {
            let _ = rustix::io::write(marking.marker.as_fd(), &trace_marker::name(number, &name));
        }
    }
}

/// Marks the jobs that have ended since; returns how soon that is to be done again, if at all. For ordinary threads.
pub(crate) fn drain() -> Option<Duration> {
    let mut marking = MARKING.lock().unwrap_or_else(PoisonError::into_inner);
    marking.as_mut().map(|marking| {
        marking.drain(offset());
        INTERVAL
    })
}

/// Marks the last jobs; says how many could not be marked.
pub(super) fn end() -> Option<String> {
    let mut marking = MARKING.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    marking.drain(offset());
    for (_, shown) in marking.other.tasks() {
        shown.mark.store(0, Relaxed);
    }
    (marking.lost > 0).then(|| {
        format!(
            "{} jobs of partition {} are not marked: Linux was behind",
            marking.lost,
            marking.other.name()
        )
    })
}

impl Marking {
    fn drain(&mut self, offset: Option<u64>) {
        let Some(offset) = offset else { return };
        let cpu = self.other.cpu() as u16;
        // No more than there are at once, so that it ends whatever the other half does. A failure is ignored: the trace may not be
        // recording.
        for _ in 0..JOBS {
            let Some(ran) = self.jobs.pop() else { break };
            let _ = rustix::io::write(self.marker.as_fd(), &mark(ran, cpu, offset));
        }
        let lost = self.other.jobs().lost.load(Relaxed);
        if lost != self.lost {
            let count = lost.wrapping_sub(self.lost);
            let _ = rustix::io::write(self.marker.as_fd(), &trace_marker::lost(cpu, count));
            self.lost = lost;
        }
    }
}

/// The mark of a job, whose times are shown by `offset` less than `CLOCK_MONOTONIC` did.
fn mark(ran: Ran, cpu: u16, offset: u64) -> trace_marker::Bytes {
    let [released, started, ended] =
        [ran.released, ran.started, ran.ended].map(|time| time.wrapping_add(offset));
    trace_marker::beyond(ran.mark, cpu, Beyond { released, started, ended, preempted: ran.preempted.into() })
}

/// What is to be added to a time of the other half, modulo 2^64, to get one by `CLOCK_MONOTONIC`; `None` if they cannot be read together.
fn offset() -> Option<u64> {
    let readings = (0..8).map(|_| {
        let before = counter()?;
        let clock = clock::now().as_ticks();
        let after = counter()?;
        Some((after - before, clock.wrapping_sub(before + (after - before) / 2)))
    });
    // The one with the least in between.
    readings.collect::<Option<Vec<_>>>()?.into_iter().min().map(|(_, offset)| offset)
}

/// The other half's clock, which is that of `punctual-bare`: the counter, in ns.
#[cfg(target_arch = "aarch64")]
fn counter() -> Option<u64> {
    let (count, frequency): (u64, u64);
    // SAFETY: Linux lets every process read both registers, which changes nothing. The barrier keeps the counter from being read early.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", "mrs {}, cntfrq_el0", out(reg) count, out(reg) frequency,
            options(nomem, nostack));
    }
    // As the other half does it: with the same error from rounding, which grows with the time since power-on.
    let nanos_per_count = (1_000_000_000_u64 << 32).checked_div(frequency)?;
    Some(((u128::from(count) * u128::from(nanos_per_count)) >> 32) as u64)
}

/// There is no other half.
#[cfg(not(target_arch = "aarch64"))]
fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use punctual_core::trace_marker::Mark;

    use super::super::tests::{job, other};
    use super::*;

    /// The marks in a file, each of which is as long as that of a job.
    fn marks(file: &OwnedFd) -> Vec<u8> {
        let mut bytes = Vec::new();
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn jobs_are_marked_with_their_own_times_and_what_had_no_room_is_counted() {
        let other = other();
        let file = rustix::fs::memfd_create("marks", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut producer = other.jobs().ring.producer().unwrap();
        let (_, sample) = other.tasks().next().unwrap();
        assert!(sample.add(job(100, 110, 150)).is_none(), "nobody wants marks");
        sample.mark.store(8, Relaxed);
        let ran = sample.add(job(100, 110, 150)).unwrap();
        producer.push(ran).unwrap();
        let jobs = other.jobs().ring.consumer().unwrap();
        let marker = file.try_clone().unwrap();
        let mut marking = Marking { other, marker, jobs, first: 7, lost: 0 };
        marking.drain(None);
        assert!(marks(&file).is_empty(), "without a clock");
        marking.drain(Some(1_000));
        let mark = |bytes: &[u8]| {
            let id = u32::from_ne_bytes(*bytes.first_chunk().unwrap());
            format!("{:?}", Mark::read(id, &bytes[4..], cfg!(target_endian = "big")).unwrap())
        };
        let expected = Beyond { released: 1_100, started: 1_110, ended: 1_150, preempted: 10 };
        let bytes = marks(&file);
        assert_eq!(mark(&bytes), format!("{:?}", Mark::Beyond { task: 7, cpu: 2, job: expected }));
        assert_eq!(bytes.len(), 40);
        // More than there is room for.
        while producer.push(ran).is_ok() {}
        other.jobs().lost.store(3, Relaxed);
        marking.drain(Some(0));
        marking.drain(Some(0));
        let bytes = marks(&file);
        assert_eq!(bytes.len(), 40 * (1 + JOBS) + 16, "the loss is said once");
        assert_eq!(mark(&bytes[bytes.len() - 16..]), format!("{:?}", Mark::Lost { cpu: 2, count: 3 }));
    }
}
