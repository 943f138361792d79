//! Configuration of a run on Linux.

mod environment;
mod reporting;

use std::path::PathBuf;

use punctual_core::{Duration, IntoDuration};

pub use self::reporting::Reporting;
use crate::config::Config;

/// Requested values by partition: CPUs, or stack sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PerPartition {
    /// For the only partition, or for all partitions.
    pub(crate) sole: Option<usize>,
    /// For partitions by name.
    pub(crate) named: Vec<(String, usize)>,
}

impl PerPartition {
    /// Returns the value requested for `partition`.
    pub(crate) fn of(&self, partition: &str) -> Option<usize> {
        let named = self.named.iter().rev().find(|(name, _)| name == partition);
        named.map(|&(_, number)| number).or(self.sole)
    }

    /// Parses `N` or `NAME=N,NAME=N`.
    pub(super) fn parse(text: &str) -> Option<Self> {
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

    /// Converts KiB to bytes.
    pub(super) fn kib(self) -> Option<Self> {
        let bytes = |kib: usize| kib.checked_mul(1024);
        let sole = match self.sole {
            Some(kib) => Some(bytes(kib)?),
            None => None,
        };
        let named = self.named.into_iter().map(|(name, kib)| Some((name, bytes(kib)?)));
        Some(Self { sole, named: named.collect::<Option<_>>()? })
    }
}

/// Destination of the marks that jobs write into the kernel's trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Marks {
    #[default]
    Off,
    /// In the global trace buffer.
    On,
    /// Through this `trace_marker_raw` file.
    In(PathBuf),
}

impl Marks {
    pub(crate) fn new(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// Reaction to a job that allocates or makes a system call that can block; see [`Config::guard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Guard {
    /// None. Jobs then have no overhead.
    #[default]
    Off,
    /// An entry in the [report](crate::report::TaskReport::findings).
    Report,
    /// An entry in the report, and the app stops with
    /// [`Outcome::Guard`](crate::report::Outcome::Guard).
    Stop,
}

/// The settings that only Linux has.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlatformConfig {
    pub(crate) cpus: PerPartition,
    /// In bytes.
    pub(crate) stacks: PerPartition,
    pub(crate) priority_base: Option<u8>,
    pub(crate) wake_latency: Option<Duration>,
    pub(crate) spin: Option<Duration>,
    pub(crate) strict: Option<bool>,
    pub(crate) trace: Option<Marks>,
    pub(crate) report: Option<Reporting>,
    pub(crate) metrics: Option<bool>,
    pub(crate) rseq: Option<bool>,
    pub(crate) guard: Guard,
    pub(crate) profile: Option<PathBuf>,
    /// Destination of the model, if it is written instead of running the app.
    pub(crate) model: Option<PathBuf>,
    pub(crate) keep_panic_hook: bool,
    pub(crate) bad_environment: Option<String>,
}

impl Config {
    /// Runs on this CPU. Default: an isolated CPU if there is one, otherwise the highest allowed.
    pub fn cpu(mut self, cpu: usize) -> Self {
        self.platform.cpus.sole = Some(cpu);
        self
    }

    /// Runs the partition `name` on this CPU. Default: a separate CPU, selected as for
    /// [`cpu`](Self::cpu).
    ///
    /// An unknown name is an error when the app is run.
    pub fn partition_cpu(mut self, name: &str, cpu: usize) -> Self {
        self.platform.cpus.named.push((name.to_owned(), cpu));
        self
    }

    /// Sets the stack size of each thread that runs tasks, in bytes, at least 64 KiB. Overrides
    /// `stack` in the `#[app]` attribute. Default: 1 MiB plus 256 KiB for each level that may run
    /// on the thread, at least 2 MiB.
    ///
    /// A spawn of a higher task is a call on the spawner's stack, so a thread needs **the sum, over
    /// its own level and all above it, of the stack usage of each level's deepest job**, and a few
    /// KiB in between. The [report](crate::report::ThreadSettings::stack_used) shows the actual
    /// usage. A stack overflow ends the process by SIGABRT, after a message that names the task and
    /// its level.
    ///
    /// The parameters of a job are on the stack. A spawn with a message of S bytes takes another
    /// 3 S at most in a debug build and S in a release build: the value that the spawner passes,
    /// and the result of the spawn, which returns a message that was refused. The slots of the
    /// task, in which messages wait, are not on a stack. So a spawn of a higher task with a message
    /// of 64 KiB requires 256 KiB in a debug build and 128 KiB in a release build.
    ///
    /// Each thread touches its whole stack before its first job, so jobs take no page faults on it
    /// even if memory is not locked. So the whole stack of each thread occupies memory.
    ///
    /// A polling partition has one thread, which runs all of its levels. In virtual time every
    /// partition does, except that of `idle`, whose jobs run on the thread that calls `run`, on its
    /// stack. Without real-time privileges, the thread of `idle` runs jobs on Linux, too.
    pub fn stack(mut self, bytes: usize) -> Self {
        self.platform.stacks.sole = Some(bytes);
        self
    }

    /// Sets the stack size of each thread of the partition `name`. Overrides
    /// [`stack`](Self::stack).
    ///
    /// An unknown name is an error when the app is run.
    pub fn partition_stack(mut self, name: &str, bytes: usize) -> Self {
        self.platform.stacks.named.push((name.to_owned(), bytes));
        self
    }

    /// Sets the kernel priority of level 0; level `l` runs at `base + l`. Default 50, above the
    /// kernel's interrupt threads on PREEMPT_RT.
    pub fn priority_base(mut self, base: u8) -> Self {
        self.platform.priority_base = Some(base);
        self
    }

    /// Bounds the wake-up latency of all CPUs: while the app runs, no CPU enters a deeper idle
    /// state. Default: no bound; the [report](crate::report::Settings::notes) has a note if a state
    /// of the app's CPU takes more than 20 µs to leave.
    ///
    /// Lower latency costs power: with zero, idle CPUs spin, which heats them and slows down their
    /// hyper-thread siblings. The bound is rounded down to µs and set through
    /// `/dev/cpu_dma_latency`, which requires root or a udev rule. It ends with the app, including
    /// a crash.
    pub fn wake_latency(mut self, longest: impl IntoDuration) -> Self {
        self.platform.wake_latency = Some(longest.into_duration());
        self
    }

    /// Sets the time that a worker without work stays awake before it sleeps. Default: zero.
    ///
    /// A spawn from another partition during this time takes some hundred nanoseconds, instead of
    /// the microseconds that the kernel needs to wake a thread on another CPU. It is meant for
    /// partitions that exchange messages at high rates and have dedicated CPUs: a spinning worker
    /// takes the CPU at its real-time priority from everything below it, including `idle` and other
    /// programs. The spin ends when a level of its partition is ready, when a timer of a sleeping
    /// worker expires, and after this time, which is limited to 1 ms. Other releases of lower
    /// levels in this time, for example by a descriptor, are delayed by it. A worker whose last
    /// eight spins were unsuccessful spins before one in sixteen waits.
    ///
    /// Polling partitions never sleep; in virtual time nothing spins.
    pub fn spin(mut self, longest: impl IntoDuration) -> Self {
        self.platform.spin = Some(longest.into_duration());
        self
    }

    /// Refuses to start unless every real-time setting applies.
    pub fn strict(mut self, strict: bool) -> Self {
        self.platform.strict = Some(strict);
        self
    }

    /// Sets whether every job marks its start and end in the kernel's trace, so that
    /// `punctual-trace` shows it with its task's name and its exact release. Default: `false`.
    ///
    /// The release is the nominal one of periodic and timed jobs, and the time of the spawn for
    /// others. A mark is one `write(2)` to `/sys/kernel/tracing/trace_marker_raw`, which neither
    /// sleeps nor allocates, and costs the job about a microsecond; without marks, a job pays for
    /// one predictable branch. If the file cannot be written, the app runs without marks, with a
    /// warning on standard error and a note in its [report](crate::report::Settings::notes).
    ///
    /// Recordings in a trace instance get these marks on kernels that can copy them. On others, set
    /// `PUNCTUAL_TRACE` to the path of the instance's `trace_marker_raw`, as recorders that start
    /// the app do. It always overrides the program. Polling partitions write no marks, and neither
    /// does virtual time. Those of a half of the app that runs without Linux are written for it.
    pub fn trace(mut self, trace: bool) -> Self {
        self.platform.trace = Some(Marks::new(trace));
        self
    }

    /// Sets whether `punctual top` and others can watch the app while it runs. Default: `true`.
    /// Never in virtual time.
    ///
    /// The figures of jobs are then in an anonymous file of the process, open under `/proc/PID/fd`.
    /// Processes that may trace this one can read it, such as root, or the same user without fewer
    /// capabilities; no process can write to it. It takes 62 KiB per task and costs jobs nothing;
    /// an ordinary thread wakes four times per second for the figures that are not measured by
    /// jobs. If the kernel refuses the memory, the app runs without it, with a note in its
    /// [report](crate::report::Settings::notes).
    pub fn metrics(mut self, metrics: bool) -> Self {
        self.platform.metrics = Some(metrics);
        self
    }

    /// Sets whether threads on the app's CPU may lock and spawn without locked instructions, by
    /// restartable sequences (`rseq(2)`). Default: `true`.
    ///
    /// This requires an app of one partition with a CPU, x86-64, Linux 5.10 and glibc 2.35;
    /// otherwise it has no effect. In return a spawn by a foreign thread interrupts the app's CPU
    /// for about a microsecond if the app has locked or spawned some hundred times since the last
    /// one: the kernel notifies the threads there (`membarrier(2)`). If the kernel refuses at the
    /// start, the [report](crate::report::Settings::notes) has a note. If a seccomp filter later
    /// refuses what was granted at the start, the process ends with a message.
    pub fn rseq(mut self, rseq: bool) -> Self {
        self.platform.rseq = Some(rseq);
        self
    }

    /// Finds jobs that allocate or make system calls that can block, and reports the task, the call
    /// and the stack. For development. Default: [`Guard::Off`].
    ///
    /// Memory is watched if the program's allocator is
    /// [`guard::Allocator`](crate::guard::Allocator), and the system calls of a job by Syscall User
    /// Dispatch, which requires Linux 5.11 on x86-64 and no privileges. Limits of the monitoring
    /// are listed on standard error and in the report's [notes](crate::report::Settings::notes).
    /// See [`guard`](mod@crate::guard) for the list of operations.
    ///
    /// While it is off, jobs have no overhead. While it is on, each system call of a job takes a
    /// few µs more, each finding some 10 µs, and the report some 100 ms for the names of functions;
    /// ignore response times of such a run.
    #[cfg(feature = "guard")]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.platform.guard = guard;
        self
    }

    /// Sets where the [report](crate::report) is written at the end of the run, in addition to
    /// being returned. Default: the `report` of the `#[app]` attribute; without it nowhere, except
    /// [`Reporting::Auto`] for a generated `main`.
    ///
    /// An app that cannot start has no report.
    pub fn report(mut self, reporting: Reporting) -> Self {
        self.platform.report = Some(reporting);
        self
    }

    /// Measures every job for a response-time analysis, and writes the figures to this file as JSON
    /// at the end of the run, unless the process is killed. Default: no profile.
    ///
    /// For each task: the maximum and minimum execution time C, the maximum response time R and
    /// release jitter J, the part of J not taken by jobs and critical sections of its partition,
    /// the minimum times between 2 to 9 consecutive releases, and the longest suspension. In apps
    /// with `#[app(profile)]` also the tasks that a job spawns and their numbers, the number of its
    /// locks of a resource, and their durations. For each partition: its CPU, and the costs of
    /// release, dispatch, lock and preemption there, measured before `init`, which takes some 20 ms
    /// for each.
    ///
    /// C is the time from start to end without the jobs of the partition that ran inside. It
    /// includes time that the kernel used or gave to other programs. Under the global executor, and
    /// for jobs that suspend themselves, it is the CPU time of the thread.
    ///
    /// Uses constant memory, allocated before `init`. A profiled job reads the clock six times
    /// more, and the CPU time of its thread twice, by a system call, except in polling partitions;
    /// this is included in response times, and in no execution time. Without a profile a job has no
    /// overhead. Locks and spawns of apps with `profile` check a thread-local variable.
    pub fn profile(mut self, file: impl Into<PathBuf>) -> Self {
        self.platform.profile = Some(file.into());
        self
    }

    /// Sets whether a panic on a thread of the app calls the program's panic hook
    /// (`std::panic::set_hook`). Default: `false`.
    ///
    /// A panic hook runs on the panicking thread before unwinding starts: at the priority of a job,
    /// with its level occupied, and before the app is stopping. A hook that panics, or that blocks,
    /// as the standard library's does when standard error is a full pipe, would keep the app from
    /// its safe stop. So while an app runs on threads, the message of a panic on one of them is
    /// stored without allocating or entering the kernel, and an ordinary thread writes it to
    /// standard error: thread, location and up to 1000 bytes of text. The program's hook is still
    /// called for all other threads, and for panics of the app in virtual time, which has no such
    /// threads.
    ///
    /// With `true` the program's hook is called for the app's threads as well, and must not block.
    /// Use it to get a backtrace (`RUST_BACKTRACE`), which only the panicking thread can take. A
    /// hook set while the app runs, for example in `init`, is always called.
    pub fn keep_panic_hook(mut self, keep: bool) -> Self {
        self.platform.keep_panic_hook = keep;
        self
    }
}
