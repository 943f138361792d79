//! The CPU time of a period: of an empty periodic task, and of a thread that sleeps until the next
//! instant.
//!
//! The CPU time is that of the whole process, so it includes the work of other threads for a
//! release. Reading it is a system call, which represents the work: one reading per [`PERIODS`]
//! periods, the same for all.

use punctual::Duration;
use rustix::thread::ClockId;

use super::timers::{LEAD_NS, timespec};
use super::{Contender, Window, affordable, alternate, row};
use crate::clock::{monotonic_ns, process_time_ns};
use crate::model::Row;
use crate::rt::{self, Lack};
use crate::session::{Step, Unit};
use crate::subject::{AS_BY_DEFAULT, Subject, outcome};

const PERIOD_NS: u64 = 1_000_000;
/// The number of periods between two readings of the CPU time, which are one sample.
const PERIODS: u32 = 8;
/// The maximum number of samples; more would not add information.
const AT_MOST: usize = 256;

pub(super) fn steps() -> Vec<Step> {
    vec![Step::new("processor time of a period, idle", |session| {
        let operation = "A period of 1 ms: the processor time of the process";
        let row = |subject| row("period", operation, subject).per_sample(PERIODS).under("idle");
        let plain = row(Subject::Punctual);
        let monitored = Row {
            id: plain.id.replace("/punctual", "/monitored"),
            subject: AS_BY_DEFAULT.into(),
            ..plain.clone()
        };
        let cpu = session.plan.cpu;
        let samples = affordable(session.plan, PERIOD_NS * u64::from(PERIODS)).min(AT_MOST);
        let contenders = vec![
            Contender::new(monitored, Unit::Nanos, move |window| monitored::measure(window, cpu)),
            Contender::new(plain, Unit::Nanos, move |window| plain::measure(window, cpu)),
            Contender::new(row(Subject::Posix), Unit::Nanos, move |window| {
                rt::on_thread(cpu, rt::PRIORITY, |lack| {
                    thread(window);
                    Ok(lack.clone())
                })
            }),
        ];
        alternate(session, samples, contenders);
    })]
}

/// The state of a measurement.
#[derive(Debug)]
struct Periods {
    window: Window,
    /// The number of periods so far; the first ones warm up the caches.
    count: u32,
    last_ns: u64,
}

impl Periods {
    fn new(window: &Window) -> Self {
        Self { window: window.clone(), count: 0, last_ns: 0 }
    }

    /// Starts a period; returns `true` if another is needed.
    fn begin(&mut self) -> bool {
        self.count += 1;
        if !self.count.is_multiple_of(PERIODS) {
            return true;
        }
        let now_ns = process_time_ns();
        if self.count > PERIODS {
            self.window.recorder.push(now_ns - self.last_ns);
        }
        self.last_ns = now_ns;
        !self.window.is_over()
    }
}

macro_rules! app {
    ($(#[$doc:meta])* $app:ident $(, $monitor:ident = $value:expr)?) => {
        $(#[$doc])*
        #[punctual::app(main = false $(, $monitor = $value)?)]
        mod $app {
            use super::*;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                periods: Periods,
            }

            #[init]
            fn init(_: init::Context, periods: Periods) -> (Shared, Local) {
                (Shared {}, Local { periods })
            }

            #[task(priority = 2, period = Duration::from_nanos(PERIOD_NS), local = [periods])]
            fn tick(cx: tick::Context) {
                if !cx.local.periods.begin() {
                    punctual::shutdown();
                }
            }

            pub(super) fn measure(window: &Window, cpu: usize) -> Result<Lack, String> {
                if window.recorder.len() >= window.until {
                    return Ok(Lack::new());
                }
                outcome(run(punctual::Config::new().cpu(cpu), Periods::new(window)))
            }
        }
    };
}

app! {
    /// An app with default settings.
    monitored
}
app! {
    /// Without monitoring.
    plain, monitor = false
}

/// A thread that does the same with `clock_nanosleep`.
fn thread(window: &Window) {
    let mut periods = Periods::new(window);
    let mut next_ns = monotonic_ns() + LEAD_NS;
    loop {
        // A wait interrupted by a signal is repeated.
        while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(next_ns)).is_err() {}
        if !periods.begin() {
            return;
        }
        next_ns += PERIOD_NS;
    }
}
