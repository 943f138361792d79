//! The twelve operations of the benchmark, from the call to its return or to the first instruction
//! of the thread that runs next.

use core::hint::black_box;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{Kernel, RawMutex, STACKS, Semaphore, Thread, Threads, WANTED, are_wanted, begin, end, run};
use crate::bench::{self, Report, Row};

static SEMAPHORE: Semaphore = Semaphore::new(0, 9);
static MUTEX: RawMutex = RawMutex::new("mutex");

/// The operations, with the names and descriptions that `punctual bench` uses and the threads that
/// measure them.
const OPERATIONS: [(&str, &str, &Threads); 13] = [
    ("rtos/tracing", "Tracing: reading the clock and writing it down", &[(5, traces)]),
    ("rtos/create-lower", "Creation at a lower level, until the call returns", &[(5, creates_lower)]),
    ("rtos/create-higher", "Creation at a higher level, until it runs", &[(5, creates_higher)]),
    ("rtos/switch", "Switch at one level", &[(5, yields), (5, yields)]),
    ("rtos/mutex-create", "Mutex create", &[(5, creates_mutex)]),
    ("rtos/lock", "Mutex lock, uncontended", &[(5, locks)]),
    ("rtos/unlock", "Mutex unlock, uncontended", &[(5, unlocks)]),
    ("rtos/lock-contended", "Mutex lock, contended: the whole wait", &[(6, contends), (5, holds)]),
    (
        "rtos/hand-over",
        "Mutex, contended: from the end of the critical section to who waited",
        &[(6, takes_over), (5, hands_over)],
    ),
    ("rtos/semaphore-p", "Semaphore P, a unit is free", &[(5, takes_unit)]),
    ("rtos/semaphore-v-nz", "Semaphore V, the count is not zero", &[(5, gives_unit)]),
    (
        "rtos/semaphore-v",
        "Semaphore V, a lower thread waits: until the call returns",
        &[(6, wakes_lower), (5, is_woken)],
    ),
    (
        "rtos/semaphore-v-runs",
        "Semaphore V, a higher thread waits: until it runs",
        &[(6, runs_at_once), (5, wakes_higher)],
    ),
];

/// Measures and prints the operations.
pub fn measure(report: &mut Report) {
    report.suite("rtos", "What operations of a real-time system take");
    for (slug, operation, threads) in OPERATIONS {
        // A first run with few samples warms up the code and the stacks.
        for wanted in [2, bench::SAMPLES_PER_ROW] {
            bench::forget();
            WANTED.store(wanted, Ordering::Relaxed);
            run(threads);
        }
        report.row(&row(slug, operation));
    }
    report.unmeasured(
        &row("rtos/mutex-destroy", "Mutex destroy"),
        "a mutex owns nothing: there is nothing to destroy",
    );
    report.checks();
}

fn row(slug: &'static str, operation: &'static str) -> Row<'static> {
    Row { slug, operation, condition: None, nominal: None }
}

fn traces(_: ()) {
    static TRACE: AtomicU32 = AtomicU32::new(0);
    while are_wanted() {
        begin();
        TRACE.store(crate::cycles::count(), Ordering::Relaxed);
        end();
    }
}

fn creates_lower(_: ()) {
    while are_wanted() {
        begin();
        let created = Thread::spawn(4, &STACKS[1], |()| (), ());
        end();
        created.unwrap().join().unwrap();
    }
}

fn creates_higher(_: ()) {
    while are_wanted() {
        begin();
        Thread::spawn(6, &STACKS[1], |()| end(), ()).unwrap();
    }
}

fn yields(_: ()) {
    while are_wanted() {
        begin();
        Thread::yield_now();
        // The last time, the peer no longer exists.
        if are_wanted() {
            end();
        }
    }
}

fn creates_mutex(_: ()) {
    let mut place = MaybeUninit::<RawMutex>::uninit();
    while are_wanted() {
        begin();
        black_box(place.write(RawMutex::new("created")));
        end();
    }
}

fn locks(_: ()) {
    while are_wanted() {
        begin();
        let locked = MUTEX.lock();
        end();
        locked.unwrap();
        MUTEX.unlock().unwrap();
    }
}

fn unlocks(_: ()) {
    while are_wanted() {
        MUTEX.lock().unwrap();
        begin();
        let unlocked = MUTEX.unlock();
        end();
        unlocked.unwrap();
    }
}

fn contends(_: ()) {
    while are_wanted() {
        SEMAPHORE.p().unwrap();
        begin();
        let locked = MUTEX.lock();
        end();
        locked.unwrap();
        MUTEX.unlock().unwrap();
    }
}

fn holds(_: ()) {
    while are_wanted() {
        MUTEX.lock().unwrap();
        SEMAPHORE.v().unwrap();
        MUTEX.unlock().unwrap();
    }
}

fn takes_over(_: ()) {
    while are_wanted() {
        SEMAPHORE.p().unwrap();
        let locked = MUTEX.lock();
        end();
        locked.unwrap();
        MUTEX.unlock().unwrap();
    }
}

fn hands_over(_: ()) {
    while are_wanted() {
        MUTEX.lock().unwrap();
        SEMAPHORE.v().unwrap();
        begin();
        MUTEX.unlock().unwrap();
    }
}

fn takes_unit(_: ()) {
    while are_wanted() {
        SEMAPHORE.v().unwrap();
        begin();
        let taken = SEMAPHORE.p();
        end();
        taken.unwrap();
    }
}

fn gives_unit(_: ()) {
    SEMAPHORE.v().unwrap();
    while are_wanted() {
        begin();
        let given = SEMAPHORE.v();
        end();
        given.unwrap();
        SEMAPHORE.p().unwrap();
    }
    SEMAPHORE.p().unwrap();
}

fn wakes_lower(_: ()) {
    while are_wanted() {
        // The other thread starts to wait in the meantime.
        Thread::sleep_until(Kernel::now() + 50_000).unwrap();
        begin();
        let given = SEMAPHORE.v();
        end();
        given.unwrap();
    }
}

fn is_woken(_: ()) {
    while are_wanted() {
        SEMAPHORE.p().unwrap();
    }
}

fn runs_at_once(_: ()) {
    while are_wanted() {
        let taken = SEMAPHORE.p();
        end();
        taken.unwrap();
    }
}

fn wakes_higher(_: ()) {
    while are_wanted() {
        begin();
        SEMAPHORE.v().unwrap();
    }
}
