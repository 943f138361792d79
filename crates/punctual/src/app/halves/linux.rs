//! The half on Linux. Whoever has started both hands it the descriptors of the shared memory and of its bell, and says in
//! `PUNCTUAL_HALVES` what is where: `punctual isolate run --offline` does.

use std::env;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::shown::{Jobs, Shown};
use super::{
    ABSENT, AGREES, ENDED, FAILED, Halves, Head, MAGIC, PATIENCE, PRESENT, VERSION, difference, marks,
};
use crate::app::config::{Config, Platform};
use crate::app::report::{Outcome, Report};
use crate::app::runtime::Runtime;
use crate::app::start_error::StartError;

/// Where everything is, for example `device=3,bell=4,mapped=524288,memory=65536,state=128,ring=28836`.
const PLACES: &str = "PUNCTUAL_HALVES";

/// The states of the other half's CPU from which on it does not run any more: it has ended; it has failed.
const OFF: u32 = 2;
const FAULTED: u32 = 3;

/// How long the report waits for the other half's figures.
const FIGURES: Duration = Duration::from_secs(5);

/// What the environment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    /// The descriptor of the memory, of which so many bytes can be mapped.
    device: RawFd,
    mapped: usize,
    /// Becomes readable when the other half rings.
    bell: RawFd,
    /// The ioctl of the device that rings there.
    ring: u32,
    /// Where the region is, and where the state of the other half's CPU.
    memory: usize,
    state: usize,
}

impl Places {
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut entries = text.split(',').filter_map(|entry| entry.split_once('='));
            entries.find(|(key, _)| *key == name)?.1.parse::<u32>().ok()
        };
        let descriptor = |name| RawFd::try_from(value(name)?).ok();
        let places = Self {
            device: descriptor("device")?,
            mapped: value("mapped")? as usize,
            bell: descriptor("bell")?,
            ring: value("ring")?,
            memory: value("memory")? as usize,
            state: value("state")? as usize,
        };
        let fits = places.memory < places.mapped && places.state + size_of::<u32>() <= places.memory;
        (fits && places.memory.is_multiple_of(4096) && places.state.is_multiple_of(4)).then_some(places)
    }
}

/// What is used while the app runs. There is one app with another half in a process.
#[derive(Debug)]
struct Link {
    halves: &'static Halves,
    places: Places,
    state: &'static AtomicU32,
}

static LINK: AtomicPtr<Link> = AtomicPtr::new(ptr::null_mut());

fn link() -> Option<&'static Link> {
    // Acquire: see `meet`.
    // SAFETY: null, or from a reference that lasts.
    unsafe { LINK.load(Ordering::Acquire).cast_const().as_ref() }
}

/// The descriptor that is readable when the other half rings.
///
/// # Panics
/// Before [`meet`].
pub fn door() -> RawFd {
    link().expect("the halves have met").places.bell
}

/// Ends the half when its run has ended, however.
#[derive(Debug)]
pub struct Met(&'static Halves);

/// Waits for the other half, and compares what both declare.
///
/// # Errors
/// There is none, it does not come, or it declares something else.
///
/// # Safety
/// `R` is the region of the halves.
pub unsafe fn meet<R>(halves: &'static Halves, config: &Config) -> Result<Option<Met>, StartError> {
    // Then there is no run.
    if config.model.is_some() || config.bad_environment.is_some() {
        return Ok(None);
    }
    let failed = |why: String| StartError::OtherHalf {
        app: halves.runtime.name,
        own: halves.own_name,
        other: halves.other_name,
        why,
    };
    if config.platform == Platform::Virtual {
        return Err(failed(
            "virtual time is this process's alone; test what a half does as functions".into(),
        ));
    }
    if link().is_some() {
        return Err(failed("a process runs one half, once; start it anew".into()));
    }
    let advice = "start both by `punctual isolate run --offline --cpu N -- OTHER THIS`";
    let Some(text) = env::var_os(PLACES) else {
        return Err(failed(format!("nobody has started it; {advice}")));
    };
    let places = text.to_str().and_then(Places::parse);
    let places =
        places.ok_or_else(|| failed(format!("{PLACES} is not what `punctual` writes there; {advice}")))?;
    let mapped =
        map(places).map_err(|error| failed(format!("the memory of both cannot be mapped: {error}")))?;
    if places.mapped - places.memory < halves.size {
        return Err(failed("the region is larger than the memory that both share".into()));
    }
    // SAFETY: it is within the mapping, which lasts; both are used by atomics, or as the type says.
    let (head, state) = unsafe {
        (&*mapped.add(places.memory).cast::<Head>(), &*mapped.add(places.state).cast::<AtomicU32>())
    };
    let begin = Instant::now();
    let wait = |until: &dyn Fn() -> bool| {
        while !until() {
            let off = state.load(Ordering::Acquire) >= OFF;
            // It may have come to that between the two looks.
            if off && !until() {
                return Err(failed("it has ended before both could begin; it says why".into()));
            }
            if begin.elapsed() > Duration::from_nanos(PATIENCE) {
                return Err(failed(format!("it does not come within 10 s; {advice}")));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    // Acquire: with it, all of the region is there.
    wait(&|| head.magic.load(Ordering::Acquire) == MAGIC)?;
    let (bare, linux) = (&head.bare, &head.linux);
    let own = (VERSION, halves.declared, halves.size as u64);
    let there = (
        head.version.load(Ordering::Relaxed),
        bare.declared.load(Ordering::Relaxed),
        bare.size.load(Ordering::Relaxed),
    );
    // Also if it is something else: then the other half refuses as well.
    linux.declared.store(own.1, Ordering::Relaxed);
    linux.size.store(own.2, Ordering::Relaxed);
    linux.bell.sleep();
    linux.enter(PRESENT);
    if let Some(difference) = difference(own, there) {
        return Err(failed(difference.to_string()));
    }
    wait(&|| !matches!(bare.stage(), ABSENT | PRESENT))?;
    if bare.stage() == FAILED {
        return Err(failed("it refuses; it says why".into()));
    }
    halves.set(head);
    let link = Box::leak(Box::new(Link { halves, places, state }));
    // Release: who finds it finds what is in it.
    LINK.store(link, Ordering::Release);
    linux.enter(AGREES);
    Ok(Some(Met(halves)))
}

fn map(places: Places) -> rustix::io::Result<*mut u8> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    // SAFETY: the descriptor is the one that whoever has started us says, and stays open.
    let device = unsafe { std::os::fd::BorrowedFd::borrow_raw(places.device) };
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping where the kernel likes; it is never removed.
    let mapped = unsafe { mmap(ptr::null_mut(), places.mapped, access, MapFlags::SHARED, device, 0) }?;
    Ok(mapped.cast())
}

impl Halves {
    /// Interrupts the other half's CPU.
    pub(super) fn ring(&self) {
        let Some(Link { places, .. }) = link() else { return };
        // SAFETY: this ioctl takes no argument. It fails if the other half is about to end, which needs no bell.
        unsafe { libc::ioctl(places.device, places.ring as _) };
    }

    /// Lets the bell be rung again.
    pub(super) fn answer(&self) {
        let Some(Link { places, .. }) = link() else { return };
        // SAFETY: the descriptor stays open.
        let bell = unsafe { std::os::fd::BorrowedFd::borrow_raw(places.bell) };
        // It never blocks, and has nothing if the receiver was released by another.
        let _ = rustix::io::read(bell, &mut [0_u8; 8]);
    }

    /// Whether the other half's CPU was turned off, though it has not said that it ends.
    pub(super) fn has_died(&self) -> bool {
        link().is_some_and(|link| link.state.load(Ordering::Acquire) >= OFF)
    }
}

impl Drop for Met {
    fn drop(&mut self) {
        leave(self.0, FAILED);
    }
}

/// Tells the other half that the app of `runtime`, if it is this half, has begun to stop. Neither allocates nor takes a lock.
pub(crate) fn stops(runtime: &Runtime) {
    if let Some(link) = link().filter(|link| ptr::eq(link.halves.runtime, runtime)) {
        link.halves.leave();
    }
}

/// Tells the other half that this one has ended, unless it knows.
fn leave(halves: &'static Halves, stage: u32) {
    if let Some(head) = halves.head()
        && head.linux.stage() == AGREES
    {
        head.linux.enter(stage);
        halves.ring();
    }
}

/// Ends this half, waits for the end of the other one, and puts its figures into the report.
pub(crate) fn complete(runtime: &'static Runtime, report: &mut Report) {
    let Some(&Link { halves, state, .. }) = link().filter(|link| ptr::eq(link.halves.runtime, runtime))
    else {
        return;
    };
    let Some(head) = halves.head() else { return };
    leave(halves, if report.exit_code() == 0 { ENDED } else { FAILED });
    let begin = Instant::now();
    let has_ended = || matches!(head.bare.stage(), ENDED | FAILED);
    while !has_ended() && state.load(Ordering::Acquire) < OFF && begin.elapsed() < FIGURES {
        thread::sleep(Duration::from_millis(1));
    }
    let how = match state.load(Ordering::Acquire) {
        FAULTED => "it failed: what it says is on the standard output of `punctual`",
        _ if halves.heard.is_silent.load(Ordering::Relaxed) => "it shows no sign of life",
        _ if head.bare.stage() == FAILED => "it ended with an error",
        _ => "its CPU was turned off",
    };
    if let Outcome::OtherHalf { other, how: said } = &mut report.outcome {
        (*other, *said) = (halves.other_name.into(), how.into());
    }
    // The figures of a half with several partitions name these already.
    for task in &mut report.tasks {
        task.partition.get_or_insert_with(|| halves.own_name.into());
    }
    let other = Other { halves, head };
    for (name, shown) in other.tasks() {
        report.tasks.push(shown.report(name, halves.other_name));
    }
    report.tasks.sort_by_key(|task| std::cmp::Reverse(task.level));
    report.settings.notes.extend(marks::end());
    match has_ended() {
        true => report.dropped_jobs += head.dropped_jobs.load(Ordering::Relaxed),
        false => report.settings.notes.push(format!(
            "the figures of `{}` are those until {}",
            halves.other_name,
            if state.load(Ordering::Acquire) < OFF { "now, for it did not end in time" } else { how }
        )),
    }
}

/// The half without Linux, for who shows its tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Other {
    pub(super) halves: &'static Halves,
    pub(super) head: &'static Head,
}

/// That of the app of `runtime`, if it has one, when both have met.
pub(crate) fn other(runtime: &'static Runtime) -> Option<Other> {
    let halves = link().filter(|link| ptr::eq(link.halves.runtime, runtime))?.halves;
    Some(Other { halves, head: halves.head()? })
}

impl Other {
    /// Its partition.
    pub(crate) fn name(&self) -> &'static str {
        self.halves.other_name
    }

    /// Its CPU, as Linux counts.
    pub(crate) fn cpu(&self) -> u32 {
        self.head.cpu.load(Ordering::Relaxed)
    }

    /// Its tasks, by their names.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (String, &'static Shown)> + use<> {
        self.halves.shown(self.head).iter().filter_map(|shown| Some((shown.name()?, shown)))
    }

    pub(super) fn jobs(&self) -> &'static Jobs {
        &self.head.jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_where_everything_is_and_refuses_what_does_not_fit() {
        let good = "device=3,bell=4,mapped=524288,memory=65536,state=128,ring=28836";
        let places = Places::parse(good).unwrap();
        assert_eq!((places.device, places.bell, places.ring), (3, 4, 28836));
        assert_eq!((places.mapped, places.memory, places.state), (524_288, 65_536, 128));
        for (what, other) in [
            ("device=3,", ""),
            ("bell=4", "bell=-4"),
            ("mapped=524288", "mapped=65536"),
            ("memory=65536", "memory=65537"),
            ("state=128", "state=65536"),
            ("state=128", "state=130"),
            ("ring=28836", "ring=x"),
        ] {
            assert_eq!(Places::parse(&good.replace(what, other)), None, "{other}");
        }
    }
}
