//! The observable behavior of threads, one rule each, including the qualitative tests of 001, I.D
//! and IV.

use std::cell::Cell;

use crate::support::{LOG, log, run};
use punctual_kernel::sim::{self, Sim};
use punctual_kernel::{Exclusion, Group, OrderedGuards, lock_all};

type Kernel = punctual_kernel::Kernel<Sim>;
type Thread = punctual_kernel::Thread<Sim>;
type Mutex<T> = punctual_kernel::Mutex<Sim, T>;
type OrderedMutex<T> = punctual_kernel::OrderedMutex<Sim, T>;
type Semaphore = punctual_kernel::Semaphore<Sim>;
type Server = punctual_kernel::Server<Sim>;
type Callback = punctual_kernel::Callback<Sim>;
type Stack = punctual_kernel::Stack<Sim, 49152>;

fn name(name: &'static str) {
    log(name);
}

#[test]
fn runs_highest_thread_first_come_among_equals() {
    static STACKS: [Stack; 5] = [const { Stack::new() }; 5];
    let ran = run(5, &STACKS[0], || {
        log("begin");
        Thread::spawn(4, &STACKS[1], name, "low").unwrap();
        Thread::spawn(5, &STACKS[2], name, "peer").unwrap();
        Thread::spawn(5, &STACKS[3], name, "peer2").unwrap();
        Thread::spawn(6, &STACKS[4], name, "high").unwrap();
        log("created");
        Thread::yield_now();
        log("end");
    });
    assert_eq!(ran, "begin high created peer peer2 end low");
}

#[test]
fn avoids_priority_inversion() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static RESOURCE: Mutex<()> = Mutex::new("resource", ());
    let ended = run(1, &STACKS[0], || {
        let guard = RESOURCE.lock().unwrap();
        let medium = |()| {
            let high = |()| {
                drop(RESOURCE.lock().unwrap());
                log("3");
            };
            Thread::spawn(3, &STACKS[2], high, ()).unwrap();
            log("2");
        };
        Thread::spawn(2, &STACKS[1], medium, ()).unwrap();
        drop(guard);
        log("1");
    });
    assert_eq!(ended, "3 2 1", "with inversion it is 2 3 1");
}

#[test]
fn inherits_priority_along_chain_and_drops_it() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static A: Mutex<()> = Mutex::new("a", ());
    static B: Mutex<()> = Mutex::new("b", ());
    run(1, &STACKS[0], || {
        let me = Thread::current().unwrap();
        let a = A.lock().unwrap();
        let middle = |()| {
            let _b = B.lock().unwrap();
            drop(A.lock().unwrap());
        };
        Thread::spawn(5, &STACKS[1], middle, ()).unwrap();
        assert_eq!(me.priority(), Some(5));
        Thread::spawn(9, &STACKS[2], |()| drop(B.lock().unwrap()), ()).unwrap();
        assert_eq!(me.priority(), Some(9), "inherited through the chain");
        drop(a);
        assert_eq!(me.priority(), Some(1));
    });
}

#[test]
fn blocks_only_without_units() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SEMAPHORE: Semaphore = Semaphore::new(0, 3);
    let ran = run(1, &STACKS[0], || {
        let high = |()| {
            SEMAPHORE.p().unwrap();
            for _ in 0..3 {
                SEMAPHORE.v().unwrap();
            }
            for i in 0..4 {
                SEMAPHORE.p().unwrap();
                log(format!("p{i}"));
            }
        };
        Thread::spawn(2, &STACKS[1], high, ()).unwrap();
        log("blocked");
        SEMAPHORE.v().unwrap();
        log("blocked-again");
        SEMAPHORE.v().unwrap();
    });
    assert_eq!(ran, "blocked p0 p1 p2 blocked-again p3");
}

#[test]
fn wakes_one_thread_per_unit_highest_first() {
    static STACKS: [Stack; 5] = [const { Stack::new() }; 5];
    static SEMAPHORE: Semaphore = Semaphore::new(0, 9);
    let ran = run(1, &STACKS[0], || {
        for (stack, (priority, who)) in STACKS[1..].iter().zip([(3, "3"), (5, "5a"), (4, "4"), (5, "5b")]) {
            let waits = |who| {
                SEMAPHORE.p().unwrap();
                log(who);
            };
            Thread::spawn::<&'static str, _>(priority, stack, waits, who).unwrap();
        }
        SEMAPHORE.v_by(3).unwrap();
        log("left");
        SEMAPHORE.v_by(3).unwrap();
        assert_eq!(SEMAPHORE.units(), 2);
    });
    assert_eq!(ran, "5a 5b 4 left 3");
}

#[test]
fn distinguishes_timeout_from_unit() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SEMAPHORE: Semaphore = Semaphore::new(0, 9);
    run(1, &STACKS[0], || {
        assert!(SEMAPHORE.p_until(100).is_err());
        assert_eq!(Kernel::now(), 100);
        SEMAPHORE.v().unwrap();
        assert_eq!(SEMAPHORE.units(), 1, "no thread waits");
        SEMAPHORE.p().unwrap();
        let waits = |()| {
            SEMAPHORE.p_until(300).unwrap();
            assert_eq!(Kernel::now(), 200);
        };
        let thread = Thread::spawn(2, &STACKS[1], waits, ()).unwrap();
        Thread::sleep_until(200).unwrap();
        SEMAPHORE.v().unwrap();
        thread.join().unwrap();
        assert_eq!(Kernel::now(), 200);
    });
}

#[test]
fn runs_periodic_callback_at_priority() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: Server = Server::new();
    static PERIODIC: Callback = Callback::new(&SERVER, |_| log(format!("{}", Kernel::now())), 0);
    static ONCE: Callback = Callback::new(&SERVER, |n| log(format!("once{n}@{}", Kernel::now())), 7);
    static CANCELLED: Callback = Callback::new(&SERVER, |_| log("cancelled"), 0);
    let ran = run(5, &STACKS[0], || {
        SERVER.start(6, &STACKS[1]).unwrap();
        PERIODIC.every(100, 50).unwrap();
        ONCE.after(120);
        CANCELLED.at(130);
        CANCELLED.cancel();
        Thread::sleep_until(210).unwrap();
        PERIODIC.cancel();
        Thread::sleep_until(1000).unwrap();
        Kernel::stop();
    });
    assert_eq!(ran, "100 once7@120 150 200");
}

#[test]
fn counts_missed_callbacks_and_keeps_grid() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: Server = Server::new();
    static PERIODIC: Callback = Callback::new(&SERVER, |_| log(format!("{}", Kernel::now())), 0);
    sim::run_in(Computing, || {
        let computes = |()| {
            SERVER.start(6, &STACKS[1]).unwrap();
            PERIODIC.every(100, 100).unwrap();
            COMPUTES.set(370);
            sim::point();
            assert_eq!(PERIODIC.missed(), 2, "the calls of 200 and 300");
            Thread::sleep_until(450).unwrap();
            Kernel::stop();
        };
        Thread::spawn(5, &STACKS[0], computes, ()).unwrap();
        Kernel::run();
    });
    assert_eq!(LOG.take().join(" "), "370 400");
}

#[test]
fn runs_callback_while_its_interrupt_is_masked() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: Server = Server::new();
    fn edge(_: usize) {
        log("edge");
        // The line is raised again while the callback runs, twice.
        if LOG.with_borrow(Vec::len) < 6 {
            sim::raise(2);
            log("raised");
        }
    }
    static EDGE: Callback = Callback::new(&SERVER, edge, 0);
    let ran = run(5, &STACKS[0], || {
        SERVER.start(6, &STACKS[1]).unwrap();
        EDGE.subscribe_irq(2).unwrap();
        sim::raise(2);
        log("end");
        Kernel::stop();
    });
    assert_eq!(ran, "edge raised edge raised edge raised edge end");
}

/// Time passes at each call of the kernel, and each `sim::point`.
struct Ticks {
    /// `next` is called until it returns `Nothing`, so it alternates.
    is_again: bool,
}

impl sim::Environment for Ticks {
    fn next(&mut self, point: sim::Point) -> sim::Event {
        self.is_again = !self.is_again;
        if self.is_again && point == sim::Point::Before {
            sim::Event::Advance(10)
        } else {
            sim::Event::Nothing
        }
    }
}

fn computes(who: &'static str) {
    for _ in 0..6 {
        log(who);
        sim::point();
    }
}

fn changes(order: &[String]) -> usize {
    order.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn rotates_time_slices() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    sim::run_in(Ticks { is_again: false }, || {
        Kernel::set_time_slice(30);
        Thread::spawn(3, &STACKS[0], computes, "a").unwrap();
        Thread::spawn(3, &STACKS[1], computes, "b").unwrap();
        Thread::spawn(2, &STACKS[2], computes, "c").unwrap();
        Kernel::run();
    });
    let order = LOG.take();
    assert_eq!(order[12..], ["c"; 6], "only threads of one priority take turns");
    assert!(changes(&order[..12]) >= 3, "{order:?}");
}

#[test]
fn rotates_slices_once_enabled() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    sim::run_in(Ticks { is_again: false }, || {
        let asks = |()| {
            Kernel::set_time_slice(30);
            Thread::spawn(3, &STACKS[1], computes, "b").unwrap();
            computes("a");
        };
        Thread::spawn(3, &STACKS[0], asks, ()).unwrap();
        Kernel::run();
    });
    let order = LOG.take();
    assert!(changes(&order) >= 3, "{order:?}");
}

#[test]
fn returns_when_all_threads_have_ended() {
    static STACK: Stack = Stack::new();
    sim::run(|| {
        Kernel::run();
        for _ in 0..2 {
            Thread::spawn(3, &STACK, |()| Thread::sleep_until(Kernel::now() + 7).unwrap(), ()).unwrap();
            Kernel::run();
            Kernel::run();
        }
        assert_eq!(Kernel::now(), 14);
    });
}

#[test]
fn keeps_rest_of_a_slice_while_preempted() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static SERVER: Server = Server::new();
    static TICK: Callback = Callback::new(&SERVER, |_| (), 0);
    struct Clock(bool);
    impl sim::Environment for Clock {
        fn next(&mut self, point: sim::Point) -> sim::Event {
            self.0 = !self.0;
            if self.0 && point == sim::Point::Before { sim::Event::Advance(10) } else { sim::Event::Nothing }
        }
    }
    fn computes(who: &'static str) {
        for _ in 0..20 {
            log(who);
            sim::point();
        }
    }
    sim::run_in(Clock(false), || {
        Kernel::set_time_slice(100);
        SERVER.start(9, &STACKS[0]).unwrap();
        TICK.every(30, 30).unwrap();
        Thread::spawn(3, &STACKS[1], computes, "a").unwrap();
        let last = |who| {
            computes(who);
            Kernel::stop();
        };
        Thread::spawn(3, &STACKS[2], last, "b").unwrap();
        Kernel::run();
    });
    let order = LOG.take();
    let first = order.iter().position(|who| who == "b").unwrap();
    assert!(first < 15, "preempted every 30 of its 100, it still used up its slice: {order:?}");
}

#[test]
fn resumes_suspended_thread() {
    static STACK: Stack = Stack::new();
    sim::run(|| {
        Thread::spawn(
            3,
            &STACK,
            |()| {
                log("1");
                Kernel::stop();
                log("3");
            },
            (),
        )
        .unwrap();
        Kernel::run();
        log("2");
        Kernel::run();
    });
    assert_eq!(LOG.take().join(""), "123");
}

#[test]
fn reports_stack_usage() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    fn uses<const N: usize>(_: ()) {
        std::hint::black_box([1_u8; N]);
    }
    sim::run(|| {
        Thread::spawn(3, &STACKS[0], uses::<100>, ()).unwrap();
        Thread::spawn(3, &STACKS[1], uses::<20_000>, ()).unwrap();
        Kernel::run();
        let used = [STACKS[0].high_water(), STACKS[1].high_water()];
        assert!((100..20_000).contains(&used[0]) && (20_000..49_152).contains(&used[1]), "{used:?}");
    });
}

#[test]
fn releases_and_retakes_later_mutexes() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static GROUP: Group = Group::new();
    static R1: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 1, "r1", 0);
    static R2: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 2, "r2", 0);
    // 001, figure 5: each holds one and requests the other.
    let ran = run(1, &STACKS[0], || {
        let r1 = R1.lock().unwrap();
        let other = |()| {
            let mut r2 = R2.lock().unwrap();
            *r2 += 1;
            let ((r2, mut r1), exclusion) = r2.and_lock(&R1).unwrap();
            assert_eq!(exclusion, Exclusion::Lost);
            assert_eq!(*r2, 11, "the other thread had it in between");
            *r1 += 1;
            log("T2");
        };
        Thread::spawn(2, &STACKS[1], other, ()).unwrap();
        let ((r1, mut r2), exclusion) = r1.and_lock(&R2).unwrap();
        assert_eq!(exclusion, Exclusion::Kept);
        *r2 += 10;
        drop((r2, r1));
        log("T1");
    });
    assert_eq!(ran, "T2 T1");
}

#[test]
fn reports_whether_exclusion_was_kept_or_regained() {
    static STACK: Stack = Stack::new();
    static GROUP: Group = Group::new();
    static FIRST: OrderedMutex<u8> = OrderedMutex::new(&GROUP, 1, "first", 1);
    static SECOND: OrderedMutex<u16> = OrderedMutex::new(&GROUP, 2, "second", 2);
    static THIRD: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 3, "third", 3);
    run(1, &STACK, || {
        let (third, second) = lock_all((&THIRD, &SECOND)).unwrap();
        let ((third, second, first), exclusion) = (third, second).and_lock(&FIRST).unwrap();
        assert_eq!(exclusion, Exclusion::Regained);
        assert_eq!((*first, *second, *third), (1, 2, 3));
        drop((third, second, first));
        // All of them are free again.
        drop(lock_all((&THIRD, &FIRST, &SECOND)).unwrap());
        assert!(lock_all([&FIRST, &FIRST]).is_err(), "twice the same");
        drop(lock_all([&FIRST]).unwrap());
    });
}

thread_local! {
    /// The computing time of the running thread, until the next point.
    static COMPUTES: Cell<u64> = const { Cell::new(0) };
}

/// Advances the clock while threads [compute](steps).
struct Computing;

impl sim::Environment for Computing {
    fn next(&mut self, _: sim::Point) -> sim::Event {
        match COMPUTES.take() {
            0 => sim::Event::Nothing,
            time => sim::Event::Advance(time),
        }
    }
}

/// Computes `count` times 10 ns, and logs each.
fn steps(name: &str, count: usize) {
    for _ in 0..count {
        log(name);
        COMPUTES.set(10);
        sim::point();
    }
}

/// Runs two threads of one priority with slices of 30 ns; returns the order of their steps.
fn sliced(stacks: &'static [Stack; 2], a: fn(()), b: fn(())) -> String {
    sim::run_in(Computing, || {
        Kernel::set_time_slice(30);
        Thread::spawn(3, &stacks[0], a, ()).unwrap();
        Thread::spawn(3, &stacks[1], b, ()).unwrap();
        Kernel::run();
    });
    LOG.take().concat()
}

#[test]
fn reschedules_do_not_extend_slice() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    let a = |()| {
        for _ in 0..4 {
            steps("a", 1);
            Kernel::masked(|| ());
        }
    };
    assert_eq!(sliced(&STACKS, a, |()| steps("b", 4)), "aaabbbab");
}

#[test]
fn yielding_renews_slice() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    let a = |()| {
        steps("a", 2);
        Thread::yield_now();
        steps("a", 4);
    };
    let b = |()| {
        steps("b", 1);
        Thread::yield_now();
        steps("b", 4);
    };
    assert_eq!(sliced(&STACKS, a, b), "aabaaabbbab");
}

#[test]
fn sleeping_renews_slice() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    let a = |()| {
        steps("a", 2);
        Thread::sleep_until(Kernel::now() + 10).unwrap();
        steps("a", 4);
    };
    assert_eq!(sliced(&STACKS, a, |()| steps("b", 6)), "aabbbbaaabba");
}

#[test]
fn starts_slice_when_peer_becomes_ready() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    let a = |()| {
        steps("a", 2);
        Thread::spawn(3, &STACKS[1], |()| steps("b", 2), ()).unwrap();
        steps("a", 4);
    };
    sim::run_in(Computing, || {
        Kernel::set_time_slice(30);
        Thread::spawn(3, &STACKS[0], a, ()).unwrap();
        Kernel::run();
    });
    assert_eq!(LOG.take().concat(), "aaaaabba");
}

#[test]
fn uses_rest_of_a_slice_once() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static PAUSE: Semaphore = Semaphore::new(0, 1);
    let a = |()| {
        let high = |()| {
            PAUSE.p().unwrap();
            steps("c", 1);
        };
        Thread::spawn(4, &STACKS[2], high, ()).unwrap();
        steps("a", 2);
        PAUSE.v().unwrap();
        steps("a", 5);
    };
    static PEERS: [Stack; 2] = [const { Stack::new() }; 2];
    assert_eq!(sliced(&PEERS, a, |()| steps("b", 5)), "aacabbbaaabba");
}

#[test]
fn rotates_slices_after_a_mutex_was_handed_over() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static HIGH: Stack = Stack::new();
    static MUTEX: Mutex<()> = Mutex::new("mutex", ());
    let a = |()| {
        let guard = MUTEX.lock().unwrap();
        let high = |()| {
            let _guard = MUTEX.lock().unwrap();
            steps("h", 1);
        };
        Thread::spawn(4, &HIGH, high, ()).unwrap();
        drop(guard);
        steps("a", 4);
    };
    assert_eq!(sliced(&STACKS, a, |()| steps("b", 4)), "haaabbbab");
}

#[test]
fn switches_at_end_of_masked_section() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static MUTEX: Mutex<()> = Mutex::new("mutex", ());
    let ran = run(1, &STACKS[0], || {
        let guard = MUTEX.lock().unwrap();
        let high = |()| {
            drop(MUTEX.lock().unwrap());
            log("high");
        };
        Thread::spawn(3, &STACKS[1], high, ()).unwrap();
        Kernel::masked(|| {
            drop(guard);
            log("masked");
        });
        log("low");
    });
    assert_eq!(ran, "masked high low");
}

#[test]
fn runs_callbacks_in_due_order() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: Server = Server::new();
    static A: Callback = Callback::new(&SERVER, |_| log("a"), 0);
    static B: Callback = Callback::new(&SERVER, |_| log("b"), 0);
    let ran = run(5, &STACKS[0], || {
        SERVER.start(4, &STACKS[1]).unwrap();
        for (first, second) in [(&A, &B), (&A, &A), (&A, &A), (&B, &A)] {
            let now = Kernel::now();
            first.at(now + 10);
            second.at(now + 20);
            if core::ptr::eq(first, second) {
                first.at(now + 10);
            }
            Thread::sleep_until(now + 30).unwrap();
            Thread::sleep_until(now + 40).unwrap();
            log("|");
        }
        Kernel::stop();
    });
    assert_eq!(ran, "a b | a | a | b a |");
}

#[test]
fn merges_two_expirations_of_callback() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: Server = Server::new();
    static TWICE: Callback = Callback::new(&SERVER, |_| log("ran"), 0);
    sim::run_in(Computing, || {
        let computes = |()| {
            SERVER.start(4, &STACKS[1]).unwrap();
            for _ in 0..2 {
                TWICE.at(Kernel::now() + 10);
                steps("due", 1);
            }
            assert_eq!(TWICE.missed(), 1);
            Thread::sleep_until(Kernel::now() + 10).unwrap();
            Kernel::stop();
        };
        Thread::spawn(5, &STACKS[0], computes, ()).unwrap();
        Kernel::run();
    });
    assert_eq!(LOG.take().join(" "), "due due ran");
}
