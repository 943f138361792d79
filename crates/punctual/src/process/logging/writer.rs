//! The ordinary thread that writes records.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{JoinHandle, park_timeout};
use std::time::Duration;

use super::take_all;
use crate::background;
use crate::port::linux::{notice, stderr};

/// Interval between two collections. A thread may write 25 000 records per second in bursts no
/// longer than this without a loss.
const INTERVAL: Duration = Duration::from_millis(10);
/// The same without a logger, before the first record: most such apps log nothing.
const INTERVAL_BEFORE_FIRST: Duration = Duration::from_millis(50);

/// Longest wait for the thread to start.
const START_LIMIT: Duration = Duration::from_secs(1);

/// Writes records until dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts it.
    pub(crate) fn start() -> Option<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let begun = Arc::new((Mutex::new(false), Condvar::new()));
        let begins = Arc::clone(&begun);
        let body = move || {
            *begins.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            begins.1.notify_one();
            let mut expects_records = notice::has_logger();
            while !ends.load(Ordering::Acquire) {
                expects_records |= write_out();
                park_timeout(if expects_records { INTERVAL } else { INTERVAL_BEFORE_FIRST });
            }
        };
        match background::spawn("punctual-log", body) {
            Ok(thread) => {
                // A thread that starts allocates, and a running app does not.
                let (has_begun, changed) = &*begun;
                let has_begun = has_begun.lock().unwrap_or_else(PoisonError::into_inner);
                drop(changed.wait_timeout_while(has_begun, START_LIMIT, |begun| !*begun));
                Some(Self { over, thread: Some(thread) })
            }
            Err(error) => {
                notice::warn(format_args!(
                    "records of jobs are written when the app ends, without a thread: {error}"
                ));
                None
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does not panic: panics of loggers are contained.
            let _ = thread.join();
        }
    }
}

/// Writes the waiting records, and returns whether there were any. For ordinary threads.
pub(crate) fn write_out() -> bool {
    let (records, lost) = take_all();
    let found = !records.is_empty();
    for record in records {
        contained(|| record.write());
    }
    if lost > 0 {
        notice::warn(format_args!(
            "{lost} records of jobs were lost: more than 256 of one thread waited to be written; log less, or faster"
        ));
    }
    found
}

/// Calls the program's logger, and contains its panics.
fn contained(write: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(write)) {
        // Its destructor is user code as well.
        std::mem::forget(payload);
        stderr::line(format_args!("the program's logger panicked on a record of a job"));
    }
}
