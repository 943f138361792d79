//! Two tasks that only compute share one thread of a Linux process, preempted every millisecond
//! without the scheduler's help, until one of them has finished and stops both: the example of G.
//! Wassen and S. Lankes, *Bare-Metal Execution of Hard Real-Time Tasks Within a General-Purpose
//! Operating System*, "UMI Scheduler Code Example".
//!
//! `cargo run --release -p punctual-kernel --features linux --example two_tasks`

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main() -> std::io::Result<()> {
    tasks::run()
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn main() {
    println!("needs Linux on x86-64 or aarch64");
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tasks {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU64, Ordering};

    use punctual_kernel::linux::{Linux, Preemption, preemption, start};

    type Kernel = punctual_kernel::Kernel<Linux>;
    type Thread = punctual_kernel::Thread<Linux>;
    type Stack = punctual_kernel::Stack<Linux, 65536>;

    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static ROUNDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    /// Counts observed progress of the other task: neither yields the processor, so each is a
    /// preemption.
    static PREEMPTIONS: AtomicU64 = AtomicU64::new(0);

    fn task(me: usize) {
        let mut seen = 0;
        while PREEMPTIONS.load(Ordering::Relaxed) < 100 {
            for i in 0..1_000 {
                black_box(i);
            }
            ROUNDS[me].fetch_add(1, Ordering::Relaxed);
            let other = ROUNDS[1 - me].load(Ordering::Relaxed);
            if other != seen {
                PREEMPTIONS.fetch_add(1, Ordering::Relaxed);
                seen = other;
            }
        }
        Kernel::stop();
    }

    pub(super) fn run() -> std::io::Result<()> {
        // SAFETY: the threads compute and call the kernel.
        let by = unsafe {
            start(Preemption::Any, || {
                Kernel::set_time_slice(1_000_000);
                for (me, stack) in STACKS.iter().enumerate() {
                    Thread::spawn(5, stack, task, me).expect("two slots are free");
                }
                Kernel::run(); // returns after a task calls `stop`
                preemption()
            })
        }?;
        assert!(ROUNDS.iter().all(|rounds| rounds.load(Ordering::Relaxed) > 0));
        println!("{} preemptions between two tasks, by {by:?}", PREEMPTIONS.load(Ordering::Relaxed));
        Ok(())
    }
}
