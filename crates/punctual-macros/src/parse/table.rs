//! The keys of the framework's attributes, a row for each: parsing, errors, suggestions and the
//! tables in `app.md` are derived from these.

use std::borrow::Cow;

use self::Value::{Choice, Flag, Int, Other};

/// A key of an attribute.
pub(super) struct Key {
    /// The key with a typical value, such as `cpu = N`.
    pub(super) usage: &'static str,
    pub(super) value: Value,
    /// Another key without which it has no effect, and the error about that.
    pub(super) requires: Option<(&'static str, &'static str)>,
    /// The default, and the meaning, in `app.md`.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with `app.md` by a test"))]
    documentation: [&'static str; 2],
}

/// Type of a key's value.
pub(super) enum Value {
    /// A Boolean; the key alone means `true`.
    Flag,
    /// An integer from the first to the second number.
    Int(u16, u16),
    /// One of these names, the first by default; and what it determines, for errors.
    Choice(&'static [&'static str], &'static str),
    /// Anything else, with its form for errors.
    Other(&'static str),
}

impl Key {
    const fn new(usage: &'static str, value: Value, default: &'static str, meaning: &'static str) -> Self {
        Self { usage, value, requires: None, documentation: [default, meaning] }
    }

    const fn requires(mut self, other: &'static str, error: &'static str) -> Self {
        self.requires = Some((other, error));
        self
    }

    /// Returns the key itself.
    pub(super) fn name(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or_default()
    }

    /// Returns the form of its value.
    pub(super) fn form(&self) -> Cow<'static, str> {
        match self.value {
            Flag => "<bool>".into(),
            Int(low, high) => format!("<integer from {low} to {high}>").into(),
            Choice(names, _) => format!("<{}>", alternatives(names.iter().copied())).into(),
            Other(form) => form.into(),
        }
    }
}

/// Joins names by commas and `or`.
pub(super) fn alternatives(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut names: Vec<_> = names.map(|name| name.as_ref().to_owned()).collect();
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} or {last}", names.join(", ")),
        None => String::new(),
    }
}

const DURATION: &str = "<duration>";

/// Valid values of `report`.
pub(super) const REPORT: &str = "\"auto\", \"always\", \"never\" or \"<path of a file, with a `/`>\"";

const CPU: Key = Key::new(
    "cpu = N",
    Other("<integer or constant expression>"),
    "an isolated CPU, else the highest allowed one",
    "the CPU of every task; a constant expression. `Config::cpu` and `PUNCTUAL_CPU` override \
     it",
);

const STACK: Key = Key::new(
    "stack = S",
    Other("<size>"),
    "see `Config::stack`",
    "the stack of each thread that runs tasks: `8.mib()`, `512.kib()`, or a constant \
     expression of type `usize`, in bytes; `Config::stack` and `PUNCTUAL_STACK` override it",
);

const SHARED: Key = Key::new(
    "shared = [a, &b]",
    Other("[a, &b]"),
    "none",
    "shared resources: `a` to lock, `&b` to read without a lock (no task ever locks it; \
     `Sync`, unless all users are at one level)",
);

const LOCAL: Key = Key::new(
    "local = [c, d: T = value]",
    Other("[x, y: <type> = <expression>]"),
    "none",
    "local resources: `c` from the struct, or `d` declared in place, created at the start of \
     each run",
);

/// Of `#[punctual::app]`.
pub(super) const APP: &[Key] = &[
    CPU,
    Key::new(
        "executor = \"global\"",
        Other("\"partition\" or \"global\""),
        "`\"partition\"`",
        "every level on any free CPU, see below",
    ),
    Key::new(
        "partitions = [a, b(cpu = N), c(poll)]",
        Other("[<name>, <name>(cpu = <integer or constant expression>, stack = <size>, poll)]"),
        "one, without a name",
        "tasks on several CPUs, see below",
    ),
    Key::new(
        "priority_base = B",
        Int(1, 98),
        "50",
        "level `l` runs at SCHED_FIFO priority `B + l`, which is at most 99",
    ),
    STACK,
    Key::new(
        "wake_latency = D",
        Other(DURATION),
        "no bound",
        "while the app runs, no CPU may enter an idle state that takes longer to leave, see \
         `Config::wake_latency`; that and `PUNCTUAL_WAKE_LATENCY` override it",
    ),
    Key::new(
        "strict",
        Flag,
        "off",
        "refuse to start without all real-time settings; `Config::strict` and \
         `PUNCTUAL_STRICT` override it",
    ),
    Key::new(
        "trace",
        Flag,
        "off",
        "mark every job in the kernel's trace, see `Config::trace`; that and `PUNCTUAL_TRACE` \
         override it",
    ),
    Key::new(
        "profile",
        Flag,
        "off",
        "also measure locks and spawns in a profiled run, see `Config::profile`; in a run \
         without a profile each of them then reads a thread-local variable",
    ),
    Key::new(
        "report = R",
        Other(REPORT),
        "`\"auto\"` in a generated `main`, else `\"never\"`",
        "the destination of the report at the end: standard error if that is a terminal \
         (`\"auto\"`) or always (`\"always\"`), none (`\"never\"`), or a file, whose path \
         contains a `/`; `Config::report` and `PUNCTUAL_REPORT` override it",
    ),
    Key::new(
        "monitor = false",
        Other("<bool>"),
        "`true`",
        "omit the figures of the report, and the clock readings (at most two per job) that \
         they require",
    ),
    Key::new(
        "main = false",
        Other("<bool>"),
        "`true`",
        "generate no `main`; none is generated either if `init` takes arguments",
    ),
    Key::new(
        "crate = path",
        Other("<path>"),
        "`::punctual`",
        "the path of the framework, if the crate has another name or another crate re-exports \
         it: `rt`, `crate::rt`",
    ),
];

/// Of `#[task]`.
pub(super) const TASK: &[Key] = &[
    Key::new(
        "priority = L",
        Int(1, 28),
        "1",
        "the level, from 1 to 28; higher preempts lower. Integers, constants of the module, \
         and `+ - * / %` of these",
    ),
    Key::new("core = a", Other("<partition>"), "the first partition", "the partition"),
    Key::new(
        "capacity = N",
        Int(1, 1024),
        "1",
        "the number of jobs that may wait, for their turn or for their time, from 1 to 1024, \
         as a number or of constants of the module; the running one does not count. For \
         messages, and with `on_overrun = queue`",
    ),
    SHARED,
    LOCAL,
    Key::new(
        "period = 10.millis()",
        Other("<duration or rate>"),
        "–",
        "released by the clock, on a grid that does not drift; also as a rate, `100.Hz()`",
    ),
    Key::new(
        "offset = D",
        Other(DURATION),
        "zero",
        "from the origin of all periods, which is the start of the app in virtual time and up \
         to 10 ms later otherwise, to the first release",
    )
    .requires("period", "is for periodic tasks; add a `period`"),
    Key::new(
        "deadline = D",
        Other(DURATION),
        "the period",
        "from release to completion; later completions are counted",
    ),
    Key::new(
        "min_interval = D",
        Other(DURATION),
        "–",
        "for messages and bound tasks: at most `burst` releases in any interval of this \
         length, see below",
    ),
    Key::new("burst = N", Int(1, 64), "1", "the number of these releases, from 1 to 64")
        .requires("min_interval", "requires `min_interval`; add it"),
    Key::new(
        "on_early = P",
        Choice(
            &["count", "delay", "reject"],
            "the treatment of a release that comes too soon after the previous ones",
        ),
        "`count`",
        "the treatment of a release that comes too early: `count` it, `delay` it until it is \
         allowed, or `reject` it",
    )
    .requires("min_interval", "requires `min_interval`; add it"),
    Key::new(
        "budget = D",
        Other(DURATION),
        "–",
        "the maximum CPU time of a job, or of a poll of an async task, enforced by [`punctual \
         supervise`](#budgets)",
    ),
    Key::new(
        "on_budget = P",
        Choice(
            &["report", "stop", "kill"],
            "the action of `punctual supervise` on a job that has used more CPU time than its `budget`",
        ),
        "`report`",
        "the supervisor's action on a job beyond its budget: `report` it, `stop` the app, or \
         `kill` the process",
    )
    .requires("budget", "requires `budget`; add it"),
    Key::new(
        "execution = D",
        Other(DURATION),
        "zero",
        "the time that a job, or a poll of an async task, takes in virtual time",
    ),
    Key::new(
        "on_overrun = P",
        Other("<skip, queue, stop or a task>"),
        "`skip`",
        "the treatment of a release when the previous job has not completed: `skip` it, \
         `queue` it, `stop` the app, or spawn the named task",
    )
    .requires("period", "is for periodic tasks; add a `period`"),
    Key::new(
        "binds = source",
        Other("<name in `local`>"),
        "–",
        "released whenever the local resource `source`, an `AsFd`, becomes readable, and by \
         `task::pend()`",
    ),
    Key::new(
        "on_idle_source = P",
        Choice(
            &["every", "once", "stop"],
            "the action when a job has found the source empty and it is ready again",
        ),
        "`every`",
        "the action if the source is at its end and still is after a job has found that: \
         another job `every` time, no further job (`once`), or `stop` the app, see below",
    )
    .requires("binds", "is for tasks that bind an event source; add `binds`"),
    Key::new(
        "waits = N",
        Int(1, 64),
        "4",
        "the number of times, and of descriptors, for which an async task waits at the same \
         time, from 1 to 64; the level's async tasks share the times, the app's the \
         descriptors",
    ),
    Key::new(
        "local_task",
        Flag,
        "off",
        "an async task that need not be `Send`, started only by tasks of its level, see below",
    ),
];

/// Of a partition in `partitions`.
pub(super) const PARTITION: &[Key] =
    &[CPU, STACK, Key::new("poll", Flag, "off", "a thread that never sleeps and never enters the kernel")];

/// Of `#[init]`.
pub(super) const INIT: &[Key] = &[LOCAL];

/// Of `#[idle]` and `#[shutdown]`.
pub(super) const IDLE: &[Key] = &[SHARED, LOCAL];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use xtask_support::golden;

    use super::*;

    #[test]
    fn tables_of_the_documentation_are_current() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app.md");
        for (heading, keys) in [("argument", APP), ("key", TASK)] {
            let rows = keys.iter().map(|key| {
                let [default, meaning] = key.documentation.map(str::to_owned);
                [format!("`{}`", key.usage), default, meaning]
            });
            let head = [heading, "default", "meaning"];
            assert_eq!(golden::table_difference(&page, &head, rows), None);
        }
    }

    #[test]
    fn required_keys_exist() {
        for key in TASK {
            let Some((other, _)) = key.requires else { continue };
            assert!(TASK.iter().any(|key| key.name() == other), "{other}");
        }
    }
}
