//! What hits a thread that polls: faults, system calls, other threads, migrations, and the interrupts of its CPU. The kernel
//! counts all of it; it is read before the first job and after the last.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// No more kinds of interrupts are named.
const NAMED: usize = 6;

/// What had hit the calling thread when it began to poll.
#[derive(Debug)]
pub(crate) struct Begun {
    cpu: Option<usize>,
    interrupts: String,
    migrations: Option<u64>,
    usage: libc::rusage,
    /// Counts system calls; `None` if nobody asked for that.
    calls: Option<Result<OwnedFd, &'static str>>,
    made: Option<u64>,
}

/// What hit it while it polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hits {
    cpu: Option<usize>,
    /// By name, the most frequent first; `None` if the kernel does not say.
    interrupts: Option<Vec<(String, u64)>>,
    faults: u64,
    /// How often it gave up its CPU, and how often that was taken from it.
    switches: (u64, u64),
    migrations: Option<u64>,
    /// `None` if nobody asked for that, and why not if they could not be counted.
    calls: Option<Result<u64, &'static str>>,
}

impl Begun {
    /// Reads the counts of the calling thread, which runs on `cpu`. With `calls`, its system calls from here on are counted, too,
    /// where that may be done; the tracepoint that counts makes those of every process some 100 ns slower meanwhile.
    pub(crate) fn new(cpu: Option<usize>, calls: bool) -> Self {
        let calls = calls.then(count_calls);
        let (interrupts, migrations, usage) = (interrupts(), migrations(), usage());
        let made = calls.as_ref().and_then(made);
        Self { cpu, interrupts, migrations, usage, calls, made }
    }

    /// Reads them again, in the same thread.
    pub(crate) fn end(self) -> Hits {
        // First, since what follows counts, too.
        let made = self.calls.as_ref().and_then(made);
        let (usage, migrations) = (usage(), migrations());
        let since = |now: libc::c_long, then: libc::c_long| u64::try_from(now - then).unwrap_or(0);
        let made = made.zip(self.made).map(|(now, then)| now.saturating_sub(then).saturating_sub(1));
        let calls = self.calls.map(|counter| counter.and_then(|_| made.ok_or("its counter cannot be read")));
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
        let calls = match self.calls {
            Some(Err(why)) => format!("not counted ({why})"),
            Some(Ok(count)) => count.to_string(),
            None => unknown(None),
        };
        let (gave, taken) = self.switches;
        write!(
            f,
            "page faults {}, system calls {calls}, migrations {}, switches to other threads {}",
            self.faults,
            unknown(self.migrations),
            gave + taken
        )?;
        let (Some(cpu), Some(interrupts)) = (self.cpu, &self.interrupts) else {
            return f.write_str(", interrupts not counted");
        };
        let sum: u64 = interrupts.iter().map(|(_, count)| count).sum();
        write!(f, ", interrupts of CPU {cpu} {sum}")?;
        for (number, (name, count)) in interrupts.iter().take(NAMED).enumerate() {
            write!(f, "{}{name} {count}", if number == 0 { ": " } else { ", " })?;
        }
        match interrupts.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, ", and {more} more kinds"),
        }
    }
}

fn interrupts() -> String {
    fs::read_to_string("/proc/interrupts").unwrap_or_default()
}

/// How often the calling thread was moved to another CPU, where the kernel says so.
fn migrations() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

fn usage() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live `rusage`, which the call fills; all-zero is a valid one besides.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// The interrupts of `cpu` between two readings; `None` if they say nothing of it.
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
            // After the number and the counts of all CPUs. Drivers name their interrupts as they like.
            let about: Vec<&str> = line.split_whitespace().skip(1 + columns).collect();
            let about = if about.is_empty() { name.to_owned() } else { about.join(" ") };
            came.push((about.chars().filter(|c| !c.is_control()).collect(), new));
        }
    }
    came.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Some(came)
}

/// Has the kernel count the system calls of the calling thread, or says why it does not. Takes root and tracefs.
fn count_calls() -> Result<OwnedFd, &'static str> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let read = |place: &str| fs::read_to_string(format!("{place}/events/raw_syscalls/sys_enter/id"));
    let id =
        places.into_iter().map(read).find(|id| !id.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound));
    let id = match id {
        Some(Ok(id)) => id.trim().parse().map_err(|_| "the kernel's number of its event is none")?,
        Some(Err(_)) => return Err("that takes root"),
        None => return Err("mount tracefs at /sys/kernel/tracing"),
    };
    /// The first version of the kernel's `perf_event_attr`.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        rest: [u64; 6],
    }
    const TRACEPOINT: u32 = 2;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes { kind: TRACEPOINT, size, config: id, rest: [0; 6] };
    // SAFETY: a valid pointer to attributes that say their size; the rest are numbers: this thread, on any CPU, in no group.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    // SAFETY: a new descriptor, which nobody else has.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) }).ok_or("the kernel refuses; that takes root")
}

/// How many calls were made until now.
fn made(counter: &Result<OwnedFd, &'static str>) -> Option<u64> {
    counter.as_ref().ok().and_then(read)
}

fn read(counter: &OwnedFd) -> Option<u64> {
    let mut count = 0_u64;
    // SAFETY: the kernel writes at most the eight bytes of the count.
    let read = unsafe { libc::read(counter.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    (read == size_of::<u64>() as isize).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_came_to_one_cpu() {
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
            hits.calls.is_some_and(|calls| calls.is_err() || calls.is_ok_and(|calls| calls >= made)),
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
            calls: Some(Ok(0)),
        };
        let expected = "page faults 0, system calls 0, migrations not counted, switches to other threads 2, \
                        interrupts of CPU 3 2: timer 2";
        assert_eq!(hits.to_string(), expected);
        let refused = Hits { calls: Some(Err("that takes root")), ..hits.clone() };
        assert!(refused.to_string().contains("system calls not counted (that takes root), "), "{refused}");
        let nobody_asked = Hits { calls: None, ..hits };
        assert!(nobody_asked.to_string().contains("system calls not counted, "), "{nobody_asked}");
    }
}
