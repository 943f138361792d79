//! Disturbances of a polling thread: faults, system calls, other threads, migrations, and the
//! interrupts of its CPU. The kernel counts all of them; the counters are read before the first job
//! and after the last.

mod calls;

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::mem::MaybeUninit;

use self::calls::{Calls, Counter};

/// Maximum number of named kinds of interrupts and of system calls.
const NAMED: usize = 6;

/// Counters of the calling thread at the start of polling.
#[derive(Debug)]
pub(crate) struct Begun {
    cpu: Option<usize>,
    interrupts: String,
    migrations: Option<u64>,
    usage: libc::rusage,
    /// Counts system calls; `None` if not requested.
    calls: Option<Result<Counter, &'static str>>,
}

/// Disturbances while the thread polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hits {
    cpu: Option<usize>,
    /// By name, the most frequent first; `None` if the kernel does not report them.
    interrupts: Option<Vec<(String, u64)>>,
    faults: u64,
    /// Voluntary and involuntary context switches.
    switches: (u64, u64),
    migrations: Option<u64>,
    /// `None` if not requested; an error if they could not be counted.
    calls: Option<Result<Calls, &'static str>>,
}

impl Begun {
    /// Reads the counters of the calling thread, which runs on `cpu`. With `calls`, also counts its
    /// system calls from here on, if permitted; while enabled, the tracepoint that counts makes
    /// those of every process about 100 ns slower.
    pub(crate) fn new(cpu: Option<usize>, calls: bool) -> Self {
        let (interrupts, migrations, usage) = (interrupts(), migrations(), usage());
        // Last, because earlier calls would count, too.
        let calls = calls.then(Counter::new);
        Self { cpu, interrupts, migrations, usage, calls }
    }

    /// Reads them again, in the same thread.
    pub(crate) fn end(self) -> Hits {
        // First, because later calls would count, too.
        let calls = self.calls.map(|counter| counter.and_then(Counter::end));
        let (usage, migrations) = (usage(), migrations());
        let since = |now: libc::c_long, then: libc::c_long| u64::try_from(now - then).unwrap_or(0);
        Hits {
            cpu: self.cpu,
            interrupts: self.cpu.and_then(|cpu| came(&self.interrupts, &interrupts(), cpu)),
            faults: since(usage.ru_minflt + usage.ru_majflt, self.usage.ru_minflt + self.usage.ru_majflt),
            switches: (
                since(usage.ru_nvcsw, self.usage.ru_nvcsw),
                since(usage.ru_nivcsw, self.usage.ru_nivcsw),
            ),
            migrations: migrations.zip(self.migrations).map(|(now, then)| now.saturating_sub(then)),
            calls,
        }
    }
}

impl Display for Hits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unknown = |count: Option<u64>| count.map_or("not counted".to_owned(), |count| count.to_string());
        let (gave, taken) = self.switches;
        write!(f, "page faults {}, system calls ", self.faults)?;
        match &self.calls {
            Some(Ok(calls)) => {
                write!(f, "{}", calls.count)?;
                named(f, &calls.named)?;
            }
            Some(Err(why)) => write!(f, "not counted ({why})")?,
            None => f.write_str("not counted")?,
        }
        write!(f, ", migrations {}, switches to other threads {}", unknown(self.migrations), gave + taken)?;
        let (Some(cpu), Some(interrupts)) = (self.cpu, &self.interrupts) else {
            return f.write_str(", interrupts not counted");
        };
        let sum: u64 = interrupts.iter().map(|(_, count)| count).sum();
        write!(f, ", interrupts of CPU {cpu} {sum}")?;
        named(f, interrupts)
    }
}

/// Formats the counts in parentheses, the most frequent first.
fn named(f: &mut Formatter<'_>, counts: &[(String, u64)]) -> fmt::Result {
    for (number, (name, count)) in counts.iter().take(NAMED).enumerate() {
        write!(f, "{}{name} {count}", if number == 0 { " (" } else { ", " })?;
    }
    match counts.len() {
        0 => Ok(()),
        kinds if kinds > NAMED => write!(f, ", and {} more kinds)", kinds - NAMED),
        _ => f.write_str(")"),
    }
}

fn interrupts() -> String {
    fs::read_to_string("/proc/interrupts").unwrap_or_default()
}

/// Returns the number of migrations of the calling thread, if the kernel reports it.
fn migrations() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

fn usage() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live `rusage`, which the call fills; all-zero is a valid value.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Returns the interrupts of `cpu` between two readings; `None` if they do not include it.
fn came(before: &str, after: &str, cpu: usize) -> Option<Vec<(String, u64)>> {
    let column = |text: &str| {
        let name = format!("CPU{cpu}");
        text.lines().next()?.split_whitespace().position(|column| column == name)
    };
    let columns = after.lines().next()?.split_whitespace().count();
    let (then, now) = (column(before)?, column(after)?);
    let count = |line: &str, column: usize| line.split_whitespace().nth(column + 1)?.parse::<u64>().ok();
    let mut came: Vec<(String, u64)> = Vec::new();
    for line in after.lines().skip(1) {
        let Some((name, _)) = line.trim_start().split_once(':') else { continue };
        let key = format!("{name}:");
        let old = before.lines().find(|line| line.trim_start().starts_with(&key));
        let old = old.and_then(|line| count(line, then)).unwrap_or(0);
        let new = count(line, now).unwrap_or(0).saturating_sub(old);
        if new > 0 {
            // After the number and the counts of all CPUs. Drivers choose the names of their
            // interrupts.
            let about: Vec<&str> = line.split_whitespace().skip(1 + columns).collect();
            let about = if about.is_empty() { name.to_owned() } else { about.join(" ") };
            came.push((about.chars().filter(|c| !c.is_control()).collect(), new));
        }
    }
    came.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Some(came)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_interrupts_of_cpu() {
        let before =
            "      CPU0  CPU3\n 24:   5  7  PCI-MSI 3-edge  eth0\nLOC:  10  20  Local timer interrupts\n";
        let after = "      CPU0  CPU3\n 24:   9  8  PCI-MSI 3-edge  eth\u{1b}0\nLOC:  90  25  Local timer interrupts\nERR:  0\n";
        let expected = [("Local timer interrupts".to_owned(), 5), ("PCI-MSI 3-edge eth0".to_owned(), 1)];
        assert_eq!(came(before, after, 3).as_deref(), Some(&expected[..]));
        assert_eq!(came(before, after, 1), None);
        assert_eq!(came("", "", 0), None);
    }

    #[test]
    fn counts_calls_and_faults_of_this_thread() {
        let begun = Begun::new(None, true);
        let made = 3;
        (0..made).for_each(|_| {
            std::hint::black_box(rustix::thread::gettid());
        });
        let mut memory = vec![0_u8; 1 << 22];
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = std::hint::black_box(1));
        let hits = begun.end();
        assert!(
            hits.calls.as_ref().is_some_and(|calls| calls.as_ref().map_or(true, |calls| calls.count >= made)),
            "{hits:?}"
        );
        assert!(hits.faults > 0, "{hits:?}");
        assert!(hits.to_string().ends_with(", interrupts not counted"), "{hits}");
    }

    #[test]
    fn unknown_is_not_zero() {
        let hits = Hits {
            cpu: Some(3),
            interrupts: Some(vec![("timer".into(), 2)]),
            faults: 0,
            switches: (1, 1),
            migrations: None,
            calls: Some(Ok(Calls::default())),
        };
        let expected = "page faults 0, system calls 0, migrations not counted, switches to other threads 2, \
                        interrupts of CPU 3 2 (timer 2)";
        assert_eq!(hits.to_string(), expected);
        let calls = Calls { count: 4, named: vec![("futex".into(), 3), ("write".into(), 1)] };
        let made = Hits { calls: Some(Ok(calls)), ..hits.clone() };
        assert!(made.to_string().contains("system calls 4 (futex 3, write 1), migrations"), "{made}");
        let refused = Hits { calls: Some(Err("requires root")), ..hits.clone() };
        assert!(refused.to_string().contains("system calls not counted (requires root), "), "{refused}");
        let nobody_asked = Hits { calls: None, ..hits };
        assert!(nobody_asked.to_string().contains("system calls not counted, "), "{nobody_asked}");
    }
}
