//! linux-only: the kernel's timers do not run on virtual time
//!
//! Any file descriptor can release a task, here a timer of the kernel.
//!
//! Reading it returns the number of expirations and rearms the wait. The sum of expirations is 3 or
//! more by the third job even if the machine stalls and two coincide.

#[punctual::app]
mod app {
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        timer: OwnedFd,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).expect("timers can be made");
        let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let times = Itimerspec { it_interval: pause, it_value: pause };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times).expect("the times are valid");
        (Shared {}, Local { timer })
    }

    #[task(binds = timer, local = [timer, jobs: u64 = 0, expirations: u64 = 0])]
    fn tick(cx: tick::Context) {
        let mut count = [0; 8];
        rustix::io::read(&*cx.local.timer, &mut count).expect("the timer has expired");
        *cx.local.jobs += 1;
        *cx.local.expirations += u64::from_ne_bytes(count);
        println!("job {}", cx.local.jobs);
        if *cx.local.jobs == 3 {
            println!("at least three expirations: {}", *cx.local.expirations >= 3);
            punctual::shutdown();
        }
    }
}
