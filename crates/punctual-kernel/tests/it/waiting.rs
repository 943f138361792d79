//! Threads that wait: their places in a queue, the priorities that they lend, and the calls after
//! which they run.

use punctual_kernel::sim::{self, Sim};
use punctual_kernel::{SubscribeError, WaitError};

use crate::support::{LOG, log, run};

type Kernel = punctual_kernel::Kernel<Sim>;
type Thread = punctual_kernel::Thread<Sim>;
type Mutex<T> = punctual_kernel::Mutex<Sim, T>;
type Semaphore = punctual_kernel::Semaphore<Sim>;
type Server = punctual_kernel::Server<Sim>;
type Callback = punctual_kernel::Callback<Sim>;
type Stack = punctual_kernel::Stack<Sim, 49152>;

/// Starts a thread that waits for a unit, and logs its name if it gets one.
fn waits(
    priority: u8,
    stack: &'static Stack,
    semaphore: &'static Semaphore,
    name: &'static str,
    until: Option<u64>,
) {
    let wait = |(semaphore, name, until): (&'static Semaphore, &'static str, Option<u64>)| {
        let waited = match until {
            None => semaphore.p(),
            Some(time) => semaphore.p_until(time),
        };
        log(if waited == Err(WaitError::TimedOut) { "-" } else { name });
    };
    Thread::spawn(priority, stack, wait, (semaphore, name, until)).unwrap();
}

#[test]
fn timeout_below_two_equal_waiters_keeps_the_second() {
    static STACKS: [Stack; 4] = [const { Stack::new() }; 4];
    static UNITS: Semaphore = Semaphore::new(0, 2);
    let ran = run(1, &STACKS[0], || {
        waits(5, &STACKS[1], &UNITS, "first", None);
        waits(5, &STACKS[2], &UNITS, "second", None);
        waits(4, &STACKS[3], &UNITS, "low", Some(10));
        UNITS.v().unwrap();
        Thread::sleep_until(20).unwrap();
        UNITS.v().unwrap();
        UNITS.v().unwrap();
        log(UNITS.units().to_string());
    });
    assert_eq!(ran, "first - second 1");
}

#[test]
fn timeout_of_a_leader_keeps_its_peer_between_its_neighbors() {
    static STACKS: [Stack; 5] = [const { Stack::new() }; 5];
    static UNITS: Semaphore = Semaphore::new(0, 2);
    let ran = run(1, &STACKS[0], || {
        waits(6, &STACKS[1], &UNITS, "high", None);
        waits(5, &STACKS[2], &UNITS, "leader", Some(10));
        waits(5, &STACKS[3], &UNITS, "peer", None);
        waits(4, &STACKS[4], &UNITS, "low", Some(20));
        Thread::sleep_until(30).unwrap();
        UNITS.v_by(2).unwrap();
    });
    assert_eq!(ran, "- - high peer");
}

/// A thread that has left one queue waits behind a peer in another.
#[test]
fn second_timeout_leaves_the_first_queue_as_it_is() {
    static STACKS: [Stack; 4] = [const { Stack::new() }; 4];
    static FIRST: Semaphore = Semaphore::new(0, 2);
    static SECOND: Semaphore = Semaphore::new(0, 2);
    let ran = run(1, &STACKS[0], || {
        waits(6, &STACKS[1], &FIRST, "high", None);
        waits(5, &STACKS[2], &SECOND, "peer", None);
        let twice = |()| {
            assert_eq!(FIRST.p_until(10), Err(WaitError::TimedOut));
            assert_eq!(SECOND.p_until(20), Err(WaitError::TimedOut));
        };
        Thread::spawn(5, &STACKS[3], twice, ()).unwrap();
        Thread::sleep_until(30).unwrap();
        FIRST.v_by(2).unwrap();
        log("|");
        SECOND.v().unwrap();
    });
    assert_eq!(ran, "high | peer");
}

#[test]
fn runs_no_other_thread_within_a_masked_section() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static UNITS: Semaphore = Semaphore::new(0, 1);
    let ran = run(1, &STACKS[0], || {
        Thread::spawn(1, &STACKS[1], log, "peer").unwrap();
        waits(3, &STACKS[2], &UNITS, "high", None);
        Kernel::masked(|| {
            Thread::yield_now();
            UNITS.v().unwrap();
            log("masked");
        });
        log("low");
    });
    assert_eq!(ran, "masked high low peer");
}

/// The holder of three mutexes gives one of them up, and keeps the highest priority that waits for
/// the others.
#[test]
fn keeps_the_highest_of_the_inherited_priorities() {
    static STACKS: [Stack; 4] = [const { Stack::new() }; 4];
    static MUTEXES: [Mutex<()>; 3] = [const { Mutex::new("mutex", ()) }; 3];
    let ran = run(1, &STACKS[0], || {
        let me = Thread::current().unwrap();
        let [first, second, third] = MUTEXES.each_ref().map(|mutex| mutex.lock().unwrap());
        let locks = |mutex: &'static Mutex<()>| drop(mutex.lock().unwrap());
        for (priority, index) in [(3, 0), (4, 2), (5, 1)] {
            Thread::spawn(priority, &STACKS[index + 1], locks, &MUTEXES[index]).unwrap();
        }
        let priority = || me.priority().unwrap().to_string();
        log(priority());
        drop(third);
        log(priority());
        drop(second);
        log(priority());
        drop(first);
        log(priority());
    });
    assert_eq!(ran, "5 5 3 1");
}

#[test]
fn due_callback_does_not_enable_interrupt_without_subscriber() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: Server = Server::new();
    static EDGE: Callback = Callback::new(&SERVER, |_| log("callback"), 0);
    let ran = run(5, &STACKS[0], || {
        SERVER.start(4, &STACKS[1]).unwrap();
        EDGE.subscribe_irq(2).unwrap();
        sim::raise(2);
        Kernel::unsubscribe_irq(2);
        Thread::sleep_until(10).unwrap();
        sim::raise(2);
        Kernel::subscribe_irq(2, |_| log("next")).unwrap();
        Kernel::stop();
    });
    assert_eq!(ran, "callback next");
}

/// It would enable only one of them again.
#[test]
fn callback_has_one_interrupt_at_a_time() {
    static SERVER: Server = Server::new();
    static EDGE: Callback = Callback::new(&SERVER, |_| {}, 0);
    sim::run(|| {
        EDGE.subscribe_irq(2).unwrap();
        assert_eq!(EDGE.subscribe_irq(3), Err(SubscribeError::Subscribed(2)));
        Kernel::unsubscribe_irq(2);
        assert_eq!(EDGE.subscribe_irq(3), Ok(()));
    });
}

#[test]
fn keeps_an_interrupt_for_the_next_subscriber() {
    sim::run(|| {
        Kernel::subscribe_irq(1, |_| log("first")).unwrap();
        Kernel::unsubscribe_irq(1);
        sim::raise(1);
        Kernel::subscribe_irq(1, |_| log("next")).unwrap();
    });
    assert_eq!(LOG.take(), ["next"]);
}
