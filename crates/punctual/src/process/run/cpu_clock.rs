//! The thread that answers a supervisor's requests for the CPU time of threads that run jobs.
//!
//! The kernel shows the CPU time of a running thread to a process outside only as of the last tick:
//! up to ten milliseconds old, and up to a second on a CPU without a tick. Threads of the same
//! process read the exact CPU clock, without disturbing the thread being read. The supervisor sends
//! requests only while a job takes longer than its budget by the wall clock; until then this thread
//! sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle};

use punctual_core::heartbeat::Region;
use punctual_sync::futex::selector::unwatched;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::port::linux::cpu::Allowed;
use crate::port::linux::{clock, settings};

/// Answers requests until dropped.
#[derive(Debug)]
pub(super) struct CpuClock {
    region: &'static Region,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CpuClock {
    /// Starts the thread, on `cpus` and with this kernel priority as far as the kernel grants them:
    /// an endless job must not starve it.
    pub(super) fn start(region: &'static Region, cpus: Allowed, priority: u8) -> std::io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = Builder::new().name("punctual-clock".into()).spawn(move || {
            // It also works on another CPU.
            let _ = cpus.apply();
            settings::boosted(priority, || serve(region, &over));
        })?;
        Ok(Self { region, is_over, thread: Some(thread) })
    }
}

impl Drop for CpuClock {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Release: a thread that sees this request also sees the flag.
        self.region.clock.requests.fetch_add(1, Ordering::Release);
        wake(&self.region.clock.requests);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn serve(region: &Region, is_over: &AtomicBool) {
    let clock = &region.clock;
    let mut answered = clock.answers.load(Ordering::Relaxed);
    loop {
        // Acquire: pairs with the end of the run.
        let requested = clock.requests.load(Ordering::Acquire);
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        if requested == answered {
            // Not private: the supervisor wakes.
            match unwatched(|| futex::wait(&clock.requests, futex::Flags::empty(), requested, None)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => continue,
                // Retrying would spin above all jobs. Without answers the supervisor uses the time
                // of the last tick.
                Err(_) => return,
            }
        }
        answer(region);
        answered = requested;
        // Release: a reader of this number also sees the clocks that `answer` has stored.
        clock.answers.store(answered, Ordering::Release);
        wake(&clock.answers);
    }
}

/// Stores the CPU time of each thread that runs a job.
fn answer(region: &Region) {
    let levels = region.app.levels.load(Ordering::Relaxed) as usize;
    for beat in region.beats.iter().take(levels) {
        if let Some(job) = beat.running()
            && let Some(cpu) = clock::cpu_time_of(job.thread)
        {
            beat.set_clock(job.number, cpu);
        }
    }
}

fn wake(word: &AtomicU32) {
    // A missed wake is harmless: the supervisor waits with a limit, and the end of the run is
    // another request.
    let _ = unwatched(|| futex::wake(word, futex::Flags::empty(), 1));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::port::linux::{cpu, kernel_thread};

    /// A region of zeros with one level, on which this thread runs a job.
    fn region() -> &'static Region {
        // SAFETY: every field is an atomic integer, of which all bytes zero is a valid value.
        let region: &Region = Box::leak(unsafe { Box::<Region>::new_zeroed().assume_init() });
        region.app.levels.store(1, Ordering::Relaxed);
        region.beats[0].begin(0, kernel_thread(), 1, 0, Some(clock::thread_cpu_time()));
        region
    }

    /// Requests the time and waits for the answer, for at most a minute.
    fn ask(region: &Region) -> Option<u64> {
        let request = region.clock.requests.fetch_add(1, Ordering::Release) + 1;
        wake(&region.clock.requests);
        let limit = std::time::Instant::now() + Duration::from_secs(60);
        while region.clock.answers.load(Ordering::Acquire) != request {
            assert!(std::time::Instant::now() < limit, "no answer");
            std::thread::yield_now();
        }
        region.beats[0].clock(1)
    }

    #[test]
    fn answers_with_cpu_time_of_running_thread() {
        let region = region();
        let cpus = cpu::Allowed::of_this_thread().expect("the kernel tells");
        let clock = CpuClock::start(region, cpus, 1).expect("threads can be started");
        let before = clock::thread_cpu_time();
        let answers = [ask(region), ask(region)].map(|answer| answer.expect("this thread runs a job"));
        assert!(before <= answers[0] && answers[0] <= answers[1] && answers[1] <= clock::thread_cpu_time());
        region.beats[0].end(0);
        drop(clock);
    }
}
