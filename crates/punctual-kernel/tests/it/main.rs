//! The kernel on a simulated processor.
//!
//! The port to Linux, of which a process has one, is tested by a separate binary.

mod support;

mod behavior;
mod misuse;
mod waiting;

/// Random programs of threads, mutexes, semaphores, timers and interrupts on the simulated kernel,
/// compared with a model at each call: the running thread, the waiting threads, every priority, and
/// every result.
///
/// `PUNCTUAL_KERNEL_SCHEDULES` sets the number of programs, `PUNCTUAL_KERNEL_SEED` the first seed.
mod schedules {
    use std::env;
    use std::panic;

    use crate::support::Random;
    use crate::support::program::Program;
    use crate::support::schedule::{Interrupts, KINDS, run};

    fn number(variable: &str, default: u64) -> u64 {
        env::var(variable).map_or(default, |text| text.parse().expect("a number"))
    }

    /// Runs the program of a seed, and prints the seed on a failure.
    fn seeded<R>(seed: u64, f: impl FnOnce() -> R) -> R {
        match panic::catch_unwind(panic::AssertUnwindSafe(f)) {
            Ok(result) => result,
            Err(payload) => {
                let program = Program::random(&mut Random(seed));
                eprintln!("PUNCTUAL_KERNEL_SEED={seed} reproduces the failure:\n{program:#?}");
                panic::resume_unwind(payload)
            }
        }
    }

    #[test]
    fn random_programs_follow_the_model() {
        let first = number("PUNCTUAL_KERNEL_SEED", 0);
        let count = number("PUNCTUAL_KERNEL_SCHEDULES", 4_000);
        let mut points = 0;
        for seed in first..first + count {
            let mut random = Random(seed);
            let program = Program::random(&mut random);
            // From none to one at every other point.
            let chance = [0, 1, 4, 16, 32][random.below(5)];
            points += seeded(seed, || run(&program, Interrupts::Random { seed: random.next(), chance }));
        }
        println!("{count} schedules with {points} points at which interrupts could come");
    }

    #[test]
    fn rules_hold_for_interrupt_at_each_point() {
        for seed in 0..number("PUNCTUAL_KERNEL_SCHEDULES", 4_000) / 400 {
            let program = Program::random(&mut Random(seed));
            for kind in 0..KINDS {
                let mut at = 0;
                while seeded(seed, || run(&program, Interrupts::One { at, kind })) > at {
                    at += 1;
                }
            }
        }
    }
}
