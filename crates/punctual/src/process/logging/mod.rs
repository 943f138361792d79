//! Logging from jobs: [`log!`](crate::log) stores the arguments, and an ordinary thread formats and
//! writes them.
//!
//! A record goes into a ring of its thread. A background thread empties the rings about every 10
//! ms, sorts the records of all threads by time, and passes them to the program's
//! [`log`](https://docs.rs/log) logger, or to standard error if there is none. The logger may
//! allocate, block and print: no job waits for it. Records that do not fit are counted, and the log
//! reports their number.
//!
//! ```
//! let (axis, angle) = ("pan", 0.25_f32);
//! punctual::log!(Info, "{axis}: {angle:.3} rad");
//! punctual::log!(Warn, "{} of {} counts", 3, 10);
//! ```

mod record;
mod writer;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use log::{Level, LevelFilter};
use punctual_sync::shared::{Ring, RingProducer};

pub use self::record::Site;
pub(crate) use self::record::{Format, Record};
pub(crate) use self::writer::{Writer, write_out};

/// Maximum number of waiting records of a thread.
const CAPACITY: usize = 256;

/// The records of one thread at a time.
struct Records {
    waiting: Ring<Record, CAPACITY>,
    /// Number of records that did not fit. Written by the thread that has the producer.
    lost: AtomicU64,
    /// Number of those already reported. Written by the thread that has the consumer.
    printed: AtomicU64,
}

impl Records {
    fn new() -> Self {
        Self { waiting: Ring::new(), lost: AtomicU64::new(0), printed: AtomicU64::new(0) }
    }

    /// Returns the number of records lost since the last call. The caller has the ring's consumer.
    fn newly_lost(&self) -> u64 {
        let lost = self.lost.load(Ordering::Relaxed);
        lost.wrapping_sub(self.printed.swap(lost, Ordering::Relaxed))
    }
}

/// All rings ever created. They are reused, so there are as many as threads of apps at one time.
static ALL: Mutex<Vec<&'static Records>> = Mutex::new(Vec::new());

/// Ring of the calling thread, if it belongs to an app.
struct Mine {
    end: RingProducer<'static, Record, CAPACITY>,
    records: &'static Records,
}

thread_local! {
    static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
    /// True if the thread has a ring. This variable has no destructor, so reading it neither
    /// allocates nor blocks on a thread without a ring, as in virtual time.
    static HAS_RING: Cell<bool> = const { Cell::new(false) };
}

/// Lets the calling thread store its records for the writer, until [ended](Self::end) or dropped on
/// it.
pub(crate) struct Logging {
    /// The thread's previous ring: an app may run another app.
    before: Option<Mine>,
    _not_send: PhantomData<*mut ()>,
}

impl Logging {
    /// Called before the first job, because it may allocate.
    pub(crate) fn begin() -> Self {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |records: &'static Records| records.waiting.producer().ok().map(|end| Mine { end, records });
        let free = all.iter().copied().find_map(of);
        let mine = free.or_else(|| {
            let records: &'static Records = Box::leak(Box::new(Records::new()));
            all.push(records);
            of(records)
        });
        drop(all);
        Self { before: replace(mine), _not_send: PhantomData }
    }

    /// Makes the calling thread log at once, until this is dropped.
    pub(crate) fn end(&mut self) {
        drop(replace(None));
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        drop(replace(self.before.take()));
    }
}

/// Sets the ring of the calling thread, and returns the previous one.
fn replace(mine: Option<Mine>) -> Option<Mine> {
    HAS_RING.set(mine.is_some());
    MINE.replace(mine)
}

impl Mine {
    #[inline]
    fn keep(&mut self, record: Record) {
        if self.end.push(record).is_err() {
            let lost = &self.records.lost;
            lost.store(lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// Returns whether records of this level are written. Without a logger `max_level` is `Off`, and
/// standard error shows `Info` and above.
#[doc(hidden)]
#[inline]
pub fn is_written(level: Level) -> bool {
    let max = log::max_level();
    level <= max || (max == LevelFilter::Off && level <= Level::Info)
}

/// Stores a record of the calling thread if it belongs to an app; otherwise makes none.
#[inline]
pub(crate) fn keep(make: impl FnOnce() -> Record) -> bool {
    if !HAS_RING.get() {
        return false;
    }
    MINE.with_borrow_mut(|mine| match mine {
        Some(mine) => {
            mine.keep(make());
            true
        }
        None => false,
    })
}

/// Logs a message from a job, without allocating, blocking or entering the kernel.
///
/// `log!(Level, "format", arguments..)`, with the level `Error`, `Warn`, `Info`, `Debug` or
/// `Trace`, and a format literal with up to eight arguments in addition to those that it names
/// itself. The arguments are evaluated and copied, because they are `Copy`, and formatted later on
/// another thread: they can be numbers, arrays, `&'static str`, or structures of these, with up to
/// 104 bytes in total. Named arguments (`x = y`) are not supported.
///
/// On threads of an app the record waits in a ring of 256 per thread; records that do not fit are
/// lost, and a warning with the target `punctual` reports their number. About every 10 ms an
/// ordinary thread passes the records to the logger of the [`log`](https://docs.rs/log) crate, in
/// the order of their times, which are included as the key `at_ns`: `CLOCK_MONOTONIC`, in ns.
/// Records left when the last job has ended are written before `#[shutdown]`, also after a fault.
/// On other threads, in hooks and in virtual time the logger is called at once.
///
/// Without a logger, or with a `max_level` of `Off`, records of `Info` and above go to standard
/// error.
///
/// Levels are those of `log`: a record excluded by its `max_level` costs a load and two
/// comparisons, and its arguments are not evaluated. Set the logger before the end of `init`.
///
/// Real-time safety: wait-free, on threads of an app. Copies 128 bytes and reads the clock like a
/// measured job.
///
/// ```
/// #[derive(Debug, Clone, Copy)]
/// struct Angles {
///     pan: f32,
///     tilt: f32,
/// }
/// let angles = Angles { pan: 0.1, tilt: -0.2 };
/// punctual::log!(Debug, "at {angles:?}, {} left", 17 + 4);
/// ```
///
/// Arguments that cannot be copied are rejected:
///
/// ```compile_fail
/// let text = String::from("later");
/// punctual::log!(Info, "{text}");
/// ```
#[macro_export]
macro_rules! log {
    ($level:ident, $format:literal $(, $argument:expr)* $(,)?) => {{
        const LEVEL: $crate::export::log::Level = $crate::export::log::Level::$level;
        if LEVEL <= $crate::export::log::STATIC_MAX_LEVEL && $crate::export::is_written(LEVEL) {
            static SITE: $crate::export::Site =
                $crate::export::Site::new(LEVEL, ::core::module_path!(), ::core::file!(), ::core::line!());
            let _arguments = ($($argument,)*);
            $crate::export::keep(&SITE, move |f: &mut ::core::fmt::Formatter<'_>| {
                $crate::__log_write!(f _arguments $format [$($argument),*] [0 1 2 3 4 5 6 7] [])
            });
        }
    }};
}

/// Writes a format with the fields of a tuple as its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_write {
    ($f:ident $tuple:ident $format:literal [] [$($index:tt)*] [$($done:tt)*]) => {
        $f.write_fmt(::core::format_args!($format $($done)*))
    };
    ($f:ident $tuple:ident $format:literal [$first:expr $(, $rest:expr)*] [$index:tt $($more:tt)*] [$($done:tt)*]) => {
        $crate::__log_write!($f $tuple $format [$($rest),*] [$($more)*] [$($done)* , $tuple.$index])
    };
    ($f:ident $tuple:ident $format:literal [$($rest:expr),*] [] [$($done:tt)*]) => {
        ::core::compile_error!("`punctual::log!` takes up to eight arguments; name variables within the format")
    };
}

/// Takes all waiting records, in the order of their times, and the number of lost ones.
fn take_all() -> (Vec<Record>, u64) {
    let (mut taken, mut lost) = (Vec::new(), 0);
    for index in 0.. {
        // Without a copy of the list: a running app does not allocate as long as no record waits.
        let Some(records) = ALL.lock().unwrap_or_else(PoisonError::into_inner).get(index).copied() else {
            break;
        };
        // Another run's writer may be using it.
        let Ok(mut end) = records.waiting.consumer() else { continue };
        // Limited, so that a thread that logs continuously does not delay the others.
        taken.extend(std::iter::from_fn(|| end.pop()).take(CAPACITY));
        lost += records.newly_lost();
    }
    taken.sort_by_key(|record| record.at());
    (taken, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores_records() -> bool {
        static SITE: Site = Site::new(Level::Trace, "", "", 0);
        keep(|| Record::new(&SITE, 0, |_: &mut std::fmt::Formatter<'_>| Ok(())))
    }

    #[test]
    fn thread_stores_records_after_run_of_another_app() {
        let outer = Logging::begin();
        assert!(stores_records());
        let mut inner = Logging::begin();
        assert!(stores_records());
        inner.end();
        assert!(!stores_records(), "hooks log at once");
        drop(inner);
        assert!(stores_records());
        drop(outer);
        assert!(!stores_records());
    }
}
