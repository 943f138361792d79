//! Where and how to run an app.
//!
//! ```
//! use punctual::{Config, Duration};
//!
//! // On real-time threads on CPU 3, refusing to start with less than full real-time settings.
//! let real = Config::new().cpu(3).strict(true);
//!
//! // One simulated hour in virtual time.
//! let simulated = Config::new().virtual_time().until(Duration::from_hours(1));
//! ```

use std::path::PathBuf;

use punctual_core::{Duration, IntoDuration};

pub use crate::app::reporting::Reporting;

/// What an app runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Platform {
    /// Real-time threads on Linux, pinned to one CPU.
    #[default]
    Linux,
    /// One ordinary thread and a clock that moves only when nothing is left to do.
    Virtual,
}

/// Numbers that somebody asked for: of CPUs, of bytes of stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PerPartition {
    /// For the only partition, or for all.
    pub(crate) sole: Option<usize>,
    /// For partitions by name.
    pub(crate) named: Vec<(String, usize)>,
}

impl PerPartition {
    /// What was asked for `partition`.
    pub(crate) fn of(&self, partition: &str) -> Option<usize> {
        let named = self.named.iter().rev().find(|(name, _)| name == partition);
        named.map(|&(_, number)| number).or(self.sole)
    }

    /// Reads `N` or `NAME=N,NAME=N`.
    fn parse(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse() {
            return Some(Self { sole: Some(number), named: Vec::new() });
        }
        let named = text.split(',').map(|entry| {
            let (name, number) = entry.split_once('=')?;
            let name = Some(name.trim()).filter(|name| !name.is_empty())?;
            Some((name.to_owned(), number.trim().parse().ok()?))
        });
        Some(Self { sole: None, named: named.collect::<Option<_>>()? })
    }

    /// KiB in bytes.
    fn kib(self) -> Option<Self> {
        let bytes = |kib: usize| kib.checked_mul(1024);
        let sole = match self.sole {
            Some(kib) => Some(bytes(kib)?),
            None => None,
        };
        let named = self.named.into_iter().map(|(name, kib)| Some((name, bytes(kib)?)));
        Some(Self { sole, named: named.collect::<Option<_>>()? })
    }
}

/// Whether jobs are marked in the kernel's trace, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Marks {
    #[default]
    Off,
    /// In the buffer that every system has.
    On,
    /// By this file `trace_marker_raw`.
    In(PathBuf),
}

impl Marks {
    pub(crate) fn new(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// Where and how to run an app. What is not set here is taken from the `#[app]` attribute.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub(crate) platform: Platform,
    pub(crate) cpus: PerPartition,
    /// In bytes.
    pub(crate) stacks: PerPartition,
    pub(crate) priority_base: Option<u8>,
    pub(crate) wake_latency: Option<Duration>,
    pub(crate) strict: Option<bool>,
    pub(crate) trace: Option<Marks>,
    pub(crate) report: Option<Reporting>,
    /// Whether the app is all that the program does, so that its report is what the user waits for.
    pub(crate) is_program: bool,
    pub(crate) until: Option<Duration>,
    pub(crate) keep_panic_hook: bool,
    pub(crate) bad_environment: Option<String>,
}

impl Config {
    /// Linux, and otherwise what the `#[app]` attribute says.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`new`](Self::new), as modified by the environment: what a generated `main` uses.
    ///
    /// * `PUNCTUAL_PORT`: `linux` or `virtual`.
    /// * `PUNCTUAL_CPU`: a CPU number, or for several partitions `NAME=CPU,…`; it overrides the program's choice in
    ///   any case.
    /// * `PUNCTUAL_STACK`: a number of KiB, or for several partitions `NAME=KIB,…`, see [`stack`](Self::stack); it
    ///   overrides the program's choice in any case.
    /// * `PUNCTUAL_WAKE_LATENCY`: a number of µs, see [`wake_latency`](Self::wake_latency).
    /// * `PUNCTUAL_STRICT`: `1` or `0`.
    /// * `PUNCTUAL_TRACE`: `1` or `0`, or the path of a `trace_marker_raw` to [mark](Self::trace) jobs by.
    /// * `PUNCTUAL_REPORT`: `auto`, `always` (or `1`), `never` (or `0`), or the path of a file, with a `/` in it, see
    ///   [`report`](Self::report).
    ///
    /// A value that makes no sense is reported when the app is run.
    pub fn from_env() -> Self {
        let mut config = Self::new();
        let mut read = |name: &str, expected: &str, set: &mut dyn FnMut(&str) -> bool| {
            if let Some(value) = std::env::var_os(name) {
                let value = value.to_string_lossy();
                if !set(&value) {
                    config.bad_environment =
                        Some(format!("{name}={value} makes no sense; set it to {expected}"));
                }
            }
        };
        let (mut platform, mut cpus, mut strict) = (Platform::Linux, PerPartition::default(), None);
        let (mut wake_latency, mut trace, mut stacks) = (None, None, PerPartition::default());
        read("PUNCTUAL_PORT", "linux or virtual", &mut |value| {
            platform = match value {
                "linux" => Platform::Linux,
                "virtual" => Platform::Virtual,
                _ => return false,
            };
            true
        });
        read("PUNCTUAL_CPU", "the number of a CPU, or to NAME=CPU,… for several partitions", &mut |value| {
            let parsed = PerPartition::parse(value);
            let understood = parsed.is_some();
            cpus = parsed.unwrap_or_default();
            understood
        });
        read("PUNCTUAL_STACK", "a number of KiB, or to NAME=KIB,… for several partitions", &mut |value| {
            let parsed = PerPartition::parse(value).and_then(PerPartition::kib);
            let understood = parsed.is_some();
            stacks = parsed.unwrap_or_default();
            understood
        });
        read("PUNCTUAL_WAKE_LATENCY", "a number of µs", &mut |value| {
            wake_latency = value.parse::<u32>().ok().map(|micros| Duration::from_micros(micros.into()));
            wake_latency.is_some()
        });
        read("PUNCTUAL_STRICT", "1 or 0", &mut |value| {
            strict = match value {
                "1" => Some(true),
                "0" => Some(false),
                _ => return false,
            };
            true
        });
        read("PUNCTUAL_TRACE", "1 or 0, or to the path of a trace_marker_raw", &mut |value| {
            trace = match value {
                "1" => Some(Marks::On),
                "0" => Some(Marks::Off),
                path if path.starts_with('/') => Some(Marks::In(path.into())),
                _ => return false,
            };
            true
        });
        if let Some(value) = std::env::var_os("PUNCTUAL_REPORT") {
            config.report = Reporting::parse(&value);
            if config.report.is_none() {
                let value = value.to_string_lossy();
                config.bad_environment = Some(format!(
                    "PUNCTUAL_REPORT={value} makes no sense; set it to auto, always or never, or to the path of a file with a \
                     `/` in it, as ./{value}"
                ));
            }
        }
        Self { platform, cpus, stacks, wake_latency, strict, trace, ..config }
    }

    /// Runs in virtual time: on the calling thread, with a clock that moves only when nothing is left to do at the
    /// time it shows, and by the execution times that tasks declare.
    ///
    /// The run ends when nothing can happen any more, at the latest after [`until`](Self::until), and without that
    /// with the end of virtual time, 2⁶⁴ − 2 ns or 584 years after its beginning: what is to be released then or later
    /// is dropped, and the outcome is [`TimeUp`](crate::app::report::Outcome::TimeUp). Event sources are
    /// looked at between jobs; one that stays readable, because its task does not read it, keeps time from passing.
    ///
    /// Time does not pass in `idle` either, until it returns or calls [`wait_for_event`](crate::wait_for_event). One that does
    /// neither for two seconds is told of on standard error.
    pub fn virtual_time(mut self) -> Self {
        self.platform = Platform::Virtual;
        self
    }

    /// Runs on this CPU. Without it: an isolated CPU if there is one, else the highest allowed.
    pub fn cpu(mut self, cpu: usize) -> Self {
        self.cpus.sole = Some(cpu);
        self
    }

    /// Runs the partition `name` on this CPU. Without it: as for [`cpu`](Self::cpu), a CPU of its own.
    ///
    /// A name that the app does not have is reported when the app is run.
    pub fn partition_cpu(mut self, name: &str, cpu: usize) -> Self {
        self.cpus.named.push((name.to_owned(), cpu));
        self
    }

    /// The size of the stack that each thread of the app gets which runs tasks, in bytes. Default: 2 MiB, or 1 MiB and 256 KiB
    /// for each level that may run on the thread if that is more. What is asked for here comes before the `stack` of the
    /// `#[app]` attribute. At least 64 KiB.
    ///
    /// A spawn of a higher task is a call on the spawner's stack, so a thread needs **the sum, over its own level and all above
    /// it, of what the deepest job of each level takes**, and some KiB for what lies between. The
    /// [report](crate::app::report::ThreadSettings::stack_used) says how much of it was in use. A thread that uses up its
    /// stack ends the process by SIGABRT, after a message that names the task and its level.
    ///
    /// Each thread touches its whole stack before its first job, so that no job takes a page fault for it, also where memory
    /// is not locked. Where it is, the kernel keeps all of it resident: what is asked for here is memory that is
    /// taken, once for each thread.
    ///
    /// A partition that polls has one thread, on which all of its levels run. In virtual time the same goes for every
    /// partition but that of `idle`, whose jobs run on the thread that runs the app; its stack is not ours to choose.
    /// Without real-time privileges `idle`'s thread runs jobs on threads of the kernel, too.
    pub fn stack(mut self, bytes: usize) -> Self {
        self.stacks.sole = Some(bytes);
        self
    }

    /// The same for the threads of the partition `name`, which comes before what [`stack`](Self::stack) says.
    ///
    /// A name that the app does not have is reported when the app is run.
    pub fn partition_stack(mut self, name: &str, bytes: usize) -> Self {
        self.stacks.named.push((name.to_owned(), bytes));
        self
    }

    /// The kernel priority of level 0; level `l` runs at `base + l`. Default 50, above the kernel's
    /// interrupt threads on PREEMPT_RT.
    pub fn priority_base(mut self, base: u8) -> Self {
        self.priority_base = Some(base);
        self
    }

    /// Bounds how long a CPU may take to wake up: deeper idle states are not used while the app runs, by any CPU. Default: no
    /// bound, and if a state of the app's CPU takes more than 20 µs to leave, the
    /// [report](crate::app::report::Settings::notes) says so.
    ///
    /// Less latency costs power: with zero, CPUs that have nothing to do run a loop, which warms them and takes turns
    /// from a neighbour that shares their core. The bound is rounded down to µs, held through `/dev/cpu_dma_latency`, which
    /// takes root or a udev rule, and gone when the app ends, in whatever way.
    pub fn wake_latency(mut self, longest: impl IntoDuration) -> Self {
        self.wake_latency = Some(longest.into_duration());
        self
    }

    /// Whether to refuse to start if any real-time setting does not apply.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }

    /// Whether every job marks its start and end in the kernel's trace, so that `punctual-trace` shows it with its task's name
    /// and its exact release. Default: not.
    ///
    /// The release is the nominal one of periodic and timed jobs, the time of the spawn of others. A mark is one `write(2)`
    /// to `/sys/kernel/tracing/trace_marker_raw`, which neither sleeps nor allocates, and costs the job about
    /// a microsecond; jobs that do not mark pay for one predictable branch. If that file cannot be written to, the app runs
    /// without marks, and says so loudly and in its [report](crate::app::report::Settings::notes).
    ///
    /// Recordings in a buffer of their own see these marks on kernels that can copy them. On others, set
    /// `PUNCTUAL_TRACE` to the path of that buffer's `trace_marker_raw`, as recorders that start the app do. It overrides
    /// the program's choice in any case. Partitions that poll do not mark, and nothing does in virtual time.
    pub fn trace(mut self, trace: bool) -> Self {
        self.trace = Some(Marks::new(trace));
        self
    }

    /// Where the [report](crate::report) is written at the end of the run, beside being returned. Default: what the `report` of
    /// the `#[app]` attribute says; without that nowhere, but [`Reporting::Auto`] for a generated `main`.
    ///
    /// An app that cannot start has no report.
    pub fn report(mut self, reporting: Reporting) -> Self {
        self.report = Some(reporting);
        self
    }

    /// Whether a panic on a thread of the app goes to the program's panic hook (`std::panic::set_hook`). Default: not.
    ///
    /// A panic hook runs on the thread that panics, before unwinding starts: at the priority of a job, with its level occupied,
    /// and the app does not know yet that it has to stop. A hook that blocks, as the standard library's does when standard
    /// error is a pipe that is full, or that panics, keeps the app from its safe stop. So while an app runs on threads, what
    /// a panic on one of them says is noted down, without allocating or entering the kernel for output, and an ordinary thread
    /// writes it to standard error: the thread, the place and up to 1000 bytes of message. The program's hook is called for all other
    /// threads meanwhile, and for panics of the app only in virtual time, which has no such threads.
    ///
    /// With `true` the program's hook is called for them all the same, and printing, blocking and allocating in it is the program's
    /// responsibility. That is also how to get a backtrace (`RUST_BACKTRACE`), which can be had on the panicking thread only. A hook
    /// that is set while the app runs, in `init` say, is called in any case.
    pub fn keep_panic_hook(mut self, keep: bool) -> Self {
        self.keep_panic_hook = keep;
        self
    }

    /// Shuts the app down this long after its start.
    pub fn until(mut self, duration: impl IntoDuration) -> Self {
        self.until = Some(duration.into_duration());
        self
    }
}
