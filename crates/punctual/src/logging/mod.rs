//! Logging from jobs: [`log!`](crate::log) keeps the arguments, and an ordinary thread formats and writes them.
//!
//! A record goes into a ring of its thread. A background thread empties the rings every 10 ms or so, orders by time what all
//! threads have written, and hands it to the program's [`log`](https://docs.rs/log) logger. That may allocate, block and print:
//! no job waits for it. Records that do not fit are counted, and the log says how many.
//!
//! ```
//! let (axis, angle) = ("pan", 0.25_f32);
//! punctual::log!(Info, "{axis}: {angle:.3} rad");
//! punctual::log!(Warn, "{} of {} counts", 3, 10);
//! ```

mod record;
mod writer;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use punctual_sync::shared::{Ring, RingProducer};

pub use self::record::Site;
pub(crate) use self::record::{Format, Record};
pub(crate) use self::writer::{Writer, write_out};

/// How many records of a thread may wait.
const CAPACITY: usize = 256;

/// The records of one thread at a time.
struct Records {
    waiting: Ring<Record, CAPACITY>,
    /// How many did not fit. Written by the thread that has the ring's end.
    lost: AtomicU64,
    /// How many of those have been told. Written by whoever has the other end.
    said: AtomicU64,
}

impl Records {
    fn new() -> Self {
        Self { waiting: Ring::new(), lost: AtomicU64::new(0), said: AtomicU64::new(0) }
    }

    /// How many have been lost since this was last called, with the other end of the ring in hand.
    fn newly_lost(&self) -> u64 {
        let lost = self.lost.load(Ordering::Relaxed);
        lost.wrapping_sub(self.said.swap(lost, Ordering::Relaxed))
    }
}

/// All of them that there ever were. They are used again, so there are as many as threads of apps at one time.
static ALL: Mutex<Vec<&'static Records>> = Mutex::new(Vec::new());

/// Where the calling thread puts its records, if it is an app's.
struct Mine {
    end: RingProducer<'static, Record, CAPACITY>,
    records: &'static Records,
}

thread_local! {
    static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
}

/// Lets the calling thread keep its records for the writer, until dropped on it.
#[derive(Debug)]
pub(crate) struct Logging(PhantomData<*mut ()>);

impl Logging {
    /// Before the first job, as it may allocate.
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
        MINE.set(mine);
        Self(PhantomData)
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        MINE.take();
    }
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

/// Keeps a record of the calling thread, if that is an app's; otherwise makes none.
#[inline]
pub(crate) fn keep(make: impl FnOnce() -> Record) -> bool {
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
/// `log!(Level, "format", arguments..)`, where the level is `Error`, `Warn`, `Info`, `Debug` or `Trace`, and the format a
/// literal with up to eight arguments besides those that it names itself. The arguments are evaluated and copied, as they are
/// `Copy`, and formatted later on another thread: so they can be numbers, arrays, `&'static str`, structures of such, and
/// up to 104 bytes in all. Named arguments (`x = y`) are not taken.
///
/// On threads of an app the record waits in a ring of 256 for the thread; what does not fit is lost, and a warning of the target `punctual`
/// says how many were. About every 10 ms an ordinary thread hands the records to the logger of the [`log`](https://docs.rs/log)
/// crate, in the order of their time, which goes along as the key `at_ns`: `CLOCK_MONOTONIC`, in ns. What is left when the last job
/// has ended is written before `#[shutdown]`, also after a fault. On other threads, in hooks and in virtual time the logger is called at
/// once.
///
/// Levels are those of `log`: what its `max_level` excludes costs a load and a comparison, and its arguments are not
/// evaluated. Set the logger before the end of `init`.
///
/// Real-time safety: wait-free, on threads of an app. Copies 128 bytes and reads the clock as a measured job does.
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
/// What cannot be copied cannot wait for its turn:
///
/// ```compile_fail
/// let text = String::from("later");
/// punctual::log!(Info, "{text}");
/// ```
#[macro_export]
macro_rules! log {
    ($level:ident, $format:literal $(, $argument:expr)* $(,)?) => {{
        const LEVEL: $crate::export::log::Level = $crate::export::log::Level::$level;
        if LEVEL <= $crate::export::log::STATIC_MAX_LEVEL && LEVEL <= $crate::export::log::max_level() {
            static SITE: $crate::export::Site =
                $crate::export::Site::new(LEVEL, ::core::module_path!(), ::core::file!(), ::core::line!());
            let _arguments = ($($argument,)*);
            $crate::export::keep(&SITE, move |f: &mut ::core::fmt::Formatter<'_>| {
                $crate::__log_write!(f _arguments $format [$($argument),*] [0 1 2 3 4 5 6 7] [])
            });
        }
    }};
}

/// Writes a format with the fields of a tuple for its arguments.
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

/// Takes all records that wait, in the order of their time, and what was lost.
fn take_all() -> (Vec<Record>, u64) {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (mut taken, mut lost) = (Vec::new(), 0);
    for records in all {
        // Another run's writer may be at it.
        let Ok(mut end) = records.waiting.consumer() else { continue };
        // Not more than there were room for: a thread that always logs does not keep the others waiting.
        taken.extend(std::iter::from_fn(|| end.pop()).take(CAPACITY));
        lost += records.newly_lost();
    }
    taken.sort_by_key(|record| record.at());
    (taken, lost)
}
