//! Misuse: each case returns the documented error and harms no other thread.

use std::panic::{self, AssertUnwindSafe};

use punctual_kernel::sim::{self, Sim};
use punctual_kernel::{
    Group, JoinError, LockError, OrderedGuards, SignalError, SpawnError, SubscribeError, UnlockError,
    WaitError, lock_all,
};

type Kernel = punctual_kernel::Kernel<Sim>;
type Thread = punctual_kernel::Thread<Sim>;
type RawMutex = punctual_kernel::RawMutex<Sim>;
type Mutex<T> = punctual_kernel::Mutex<Sim, T>;
type OrderedMutex<T> = punctual_kernel::OrderedMutex<Sim, T>;
type Semaphore = punctual_kernel::Semaphore<Sim>;
type Stack = punctual_kernel::Stack<Sim, 49152>;

/// Runs `f` in a thread of priority 5.
fn in_thread(stack: &'static Stack, f: fn()) {
    sim::run(|| {
        Thread::spawn(5, stack, |f: fn()| f(), f).unwrap();
        Kernel::run();
    });
}

/// Returns the message of the panic of `f`.
fn panic_of(f: impl FnOnce()) -> String {
    let payload = panic::catch_unwind(AssertUnwindSafe(f)).expect_err("`f` panics");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or(payload.downcast_ref::<&str>().map(|s| s.to_string()))
        .unwrap()
}

#[test]
fn rejects_unlock_of_foreign_mutex() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static MUTEX: RawMutex = RawMutex::new("valve");
    in_thread(&STACKS[0], || {
        MUTEX.lock().unwrap();
        let other = |()| assert_eq!(MUTEX.unlock(), Err(UnlockError::NotOwner("valve")));
        Thread::spawn(6, &STACKS[1], other, ()).unwrap();
        assert_eq!(MUTEX.unlock(), Ok(()));
        assert_eq!(MUTEX.unlock(), Err(UnlockError::NotOwner("valve")));
    });
}

#[test]
fn rejects_lock_of_held_mutex() {
    static STACK: Stack = Stack::new();
    static MUTEX: Mutex<u32> = Mutex::new("valve", 1);
    in_thread(&STACK, || {
        let guard = MUTEX.lock().unwrap();
        assert_eq!(MUTEX.lock().unwrap_err(), LockError::Recursive("valve"));
        assert_eq!(MUTEX.try_lock().unwrap_err(), LockError::Recursive("valve"));
        assert_eq!(*guard, 1);
        drop(guard);
        assert!(MUTEX.lock().is_ok());
    });
}

#[test]
fn rejects_deadlock_cycle() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static MUTEXES: [RawMutex; 3] = [RawMutex::new("a"), RawMutex::new("b"), RawMutex::new("c")];
    static GO: Semaphore = Semaphore::new(0, 3);
    in_thread(&STACKS[0], || {
        for (i, stack) in STACKS[1..].iter().enumerate() {
            let chain = |i: usize| {
                MUTEXES[i].lock().unwrap();
                GO.p().unwrap();
                MUTEXES[i + 1].lock().unwrap();
                MUTEXES[i + 1].unlock().unwrap();
                MUTEXES[i].unlock().unwrap();
            };
            Thread::spawn(6, stack, chain, i).unwrap();
        }
        MUTEXES[2].lock().unwrap();
        GO.v_by(2).unwrap();
        assert_eq!(MUTEXES[0].lock(), Err(LockError::Deadlock("a")));
        MUTEXES[2].unlock().unwrap();
        assert_eq!(MUTEXES[0].lock(), Ok(()));
        MUTEXES[0].unlock().unwrap();
    });
}

#[test]
fn names_mutex_held_at_thread_end() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static MUTEX: Mutex<u32> = Mutex::new("valve", 1);
    in_thread(&STACKS[0], || {
        let forgetful = |()| {
            std::mem::forget(MUTEX.lock().unwrap());
            Thread::sleep_until(10).unwrap();
        };
        let thread = Thread::spawn(6, &STACKS[1], forgetful, ()).unwrap();
        let waits = |()| assert_eq!(MUTEX.lock().unwrap_err(), LockError::OwnerEnded("valve"));
        Thread::spawn(7, &STACKS[2], waits, ()).unwrap();
        assert_eq!(thread.join(), Err(JoinError::EndedHolding("valve")));
        assert_eq!(thread.join(), Err(JoinError::EndedHolding("valve")), "also after it has ended");
        assert_eq!(MUTEX.lock().unwrap_err(), LockError::OwnerEnded("valve"));
        // Eventually another thread uses the slot of the ended one; it does not hold the mutex
        // either.
        for _ in 0..2 * sim::THREADS {
            let other = |()| assert_eq!(MUTEX.lock().unwrap_err(), LockError::OwnerEnded("valve"));
            Thread::spawn(6, &STACKS[1], other, ()).unwrap();
        }
        // SAFETY: the guard was forgotten, and its data is not referred to.
        assert!(unsafe { MUTEX.recover() });
        assert_eq!(*MUTEX.lock().unwrap(), 1);
    });
}

#[test]
fn detects_stale_thread_handle() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    in_thread(&STACKS[0], || {
        let first = Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
        assert_eq!(first.join(), Ok(()));
        let mut last = first;
        for _ in 0..sim::THREADS {
            last = Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
        }
        assert_eq!(last.join(), Ok(()));
        assert_eq!(first.join(), Err(JoinError::Stale));
        assert_eq!(first.priority(), None);
    });
}

#[test]
fn keeps_thread_result_until_slot_reuse() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    in_thread(&STACKS[0], || {
        // From here on every slot has been used.
        for _ in 1..sim::THREADS {
            Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
        }
        let first = Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
        for _ in 0..sim::THREADS - 2 {
            Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
            assert_eq!(first.join(), Ok(()));
        }
    });
}

#[test]
fn handle_does_not_name_next_thread_of_slot() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    in_thread(&STACKS[0], || {
        let first = Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
        for _ in 1..sim::THREADS - 1 {
            Thread::spawn(6, &STACKS[1], |()| {}, ()).unwrap();
        }
        // In the slot of the first, and not ended.
        let next = Thread::spawn(4, &STACKS[1], |()| {}, ()).unwrap();
        assert_eq!((first.join(), first.priority()), (Err(JoinError::Stale), None));
        assert_eq!(next.priority(), Some(4));
        assert_eq!(next.join(), Ok(()));
    });
}

#[test]
fn starts_server_after_failed_attempt() {
    static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
    static SERVER: punctual_kernel::Server<Sim> = punctual_kernel::Server::new();
    in_thread(&STACKS[0], || {
        let error = SERVER.start(0, &STACKS[1]).unwrap_err();
        assert!(matches!(error, SubscribeError::Spawn(_)), "{error:?}");
        assert!(SERVER.start(4, &STACKS[1]).is_ok());
        assert_eq!(SERVER.start(4, &STACKS[1]).unwrap_err(), SubscribeError::Started);
        Kernel::stop();
    });
}

#[test]
fn owner_end_releases_waiter() {
    static STACKS: [Stack; 4] = [const { Stack::new() }; 4];
    static ENDED: RawMutex = RawMutex::new("ended");
    static OTHER: RawMutex = RawMutex::new("other");
    in_thread(&STACKS[0], || {
        let owner = |()| {
            ENDED.lock().unwrap();
            Thread::sleep_until(Kernel::now() + 10).unwrap();
        };
        Thread::spawn(6, &STACKS[1], owner, ()).unwrap();
        let waiter = |()| {
            OTHER.lock().unwrap();
            assert_eq!(ENDED.lock(), Err(LockError::OwnerEnded("ended")));
            Thread::sleep_until(Kernel::now() + 10).unwrap();
            OTHER.unlock().unwrap();
        };
        Thread::spawn(6, &STACKS[2], waiter, ()).unwrap();
        Thread::sleep_until(Kernel::now() + 15).unwrap();
        assert!(ENDED.recover());
        ENDED.lock().unwrap();
        let last = |()| {
            OTHER.lock().unwrap();
            OTHER.unlock().unwrap();
        };
        Thread::spawn(9, &STACKS[3], last, ()).unwrap();
        assert_eq!(Thread::current().unwrap().priority(), Some(5), "no thread waits for this one");
        ENDED.unlock().unwrap();
    });
}

#[test]
fn gives_no_unit_after_timeout() {
    static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
    static UNITS: Semaphore = Semaphore::new(0, 9);
    in_thread(&STACKS[0], || {
        let low = |()| assert_eq!(UNITS.p_until(Kernel::now() + 10), Err(WaitError::TimedOut));
        Thread::spawn(6, &STACKS[1], low, ()).unwrap();
        Thread::spawn(7, &STACKS[2], |()| UNITS.p().unwrap(), ()).unwrap();
        Thread::sleep_until(Kernel::now() + 20).unwrap();
        UNITS.v().unwrap();
        assert_eq!(UNITS.units(), 0, "the higher thread has it");
        UNITS.v().unwrap();
        assert_eq!(UNITS.units(), 1);
    });
}

#[test]
fn multi_lock_is_all_or_nothing() {
    static STACK: Stack = Stack::new();
    static GROUP: Group = Group::new();
    static MUTEXES: [OrderedMutex<()>; 4] = [
        OrderedMutex::new(&GROUP, 1, "1", ()),
        OrderedMutex::new(&GROUP, 2, "2", ()),
        OrderedMutex::new(&GROUP, 3, "3", ()),
        OrderedMutex::new(&GROUP, 1, "1 again", ()),
    ];
    in_thread(&STACK, || {
        let [first, second, third, same] = &MUTEXES;
        let guards = lock_all((first, second)).unwrap();
        let fourth = third.lock().unwrap();
        // Together with the first, but the third is not a guard that could be released.
        assert_eq!(guards.and_lock(same).map(drop), Err(LockError::OutOfOrder("3")));
        drop(fourth);
        let equal = first.lock().unwrap();
        assert_eq!(equal.and_lock(same).map(drop), Err(LockError::OutOfOrder("1")));
        assert!(lock_all((first, second, third)).is_ok(), "all of them are free");
    });
}

#[test]
fn rejects_waiting_for_itself() {
    static STACK: Stack = Stack::new();
    in_thread(&STACK, || {
        assert_eq!(Thread::current().unwrap().join(), Err(JoinError::Itself));
    });
}

#[test]
fn rejects_threads_beyond_capacity() {
    static STACKS: [Stack; sim::THREADS + 1] = [const { Stack::new() }; sim::THREADS + 1];
    sim::run(|| {
        for stack in &STACKS[1..] {
            Thread::spawn(5, stack, |()| {}, ()).unwrap();
        }
        assert_eq!(Thread::spawn(5, &STACKS[0], |()| {}, ()), Err(SpawnError::TooManyThreads));
        Kernel::run();
        assert!(Thread::spawn(5, &STACKS[0], |()| {}, ()).is_ok(), "the stack is free again");
    });
}

#[test]
fn rejects_used_or_small_stack_and_invalid_priority() {
    static USED: Stack = Stack::new();
    static SMALL: punctual_kernel::Stack<Sim, 1024> = punctual_kernel::Stack::new();
    sim::run(|| {
        Thread::spawn(5, &USED, |()| {}, ()).unwrap();
        assert_eq!(Thread::spawn(5, &USED, |()| {}, ()), Err(SpawnError::StackInUse));
        assert_eq!(Thread::spawn(0, &USED, |()| {}, ()), Err(SpawnError::Priority(0)));
        assert_eq!(Thread::spawn(33, &USED, |()| {}, ()), Err(SpawnError::Priority(33)));
        let small = Thread::spawn(5, &SMALL, |()| {}, ()).unwrap_err();
        assert!(matches!(small, SpawnError::StackTooSmall(needed) if needed > 1024), "{small}");
    });
}

#[test]
fn rejects_waiting_in_handler_or_masked_section() {
    static STACK: Stack = Stack::new();
    static MUTEX: RawMutex = RawMutex::new("valve");
    static HELD: RawMutex = RawMutex::new("held");
    static NONE: Semaphore = Semaphore::new(0, 1);
    static CALLED: Semaphore = Semaphore::new(0, 1);
    fn cannot_wait() {
        assert_eq!(NONE.p(), Err(WaitError::CannotBlock));
        assert_eq!(NONE.p_until(100), Err(WaitError::CannotBlock));
        assert_eq!(MUTEX.lock(), Err(LockError::CannotBlock));
        assert_eq!(Thread::sleep_until(100), Err(WaitError::CannotBlock));
        Thread::yield_now();
    }
    in_thread(&STACK, || {
        HELD.lock().unwrap();
        let handler = |_| {
            cannot_wait();
            assert_eq!(HELD.unlock(), Err(UnlockError::NotOwner("held")), "the interrupted thread holds it");
            assert_eq!(Thread::current(), None);
            CALLED.v().unwrap();
        };
        Kernel::subscribe_irq(3, handler).unwrap();
        sim::raise(3);
        assert_eq!(CALLED.p(), Ok(()));
        Kernel::masked(cannot_wait);
        HELD.unlock().unwrap();
    });
}

#[test]
fn rejects_units_above_maximum() {
    static STACK: Stack = Stack::new();
    static SEMAPHORE: Semaphore = Semaphore::new(0, 3);
    in_thread(&STACK, || {
        assert_eq!(SEMAPHORE.v_by(4), Err(SignalError::Overflow(3)));
        assert_eq!(SEMAPHORE.v_by(u32::MAX), Err(SignalError::Overflow(3)));
        assert_eq!(SEMAPHORE.units(), 0, "all or nothing");
        assert_eq!(SEMAPHORE.v_by(3), Ok(()));
        assert_eq!(SEMAPHORE.v(), Err(SignalError::Overflow(3)));
    });
}

#[test]
fn rejects_second_subscriber_and_invalid_number() {
    sim::run(|| {
        Kernel::subscribe_irq(1, |_| {}).unwrap();
        assert_eq!(Kernel::subscribe_irq(1, |_| {}), Err(SubscribeError::Taken));
        let slots = sim::INTERRUPTS;
        assert_eq!(Kernel::subscribe_irq(slots as u32, |_| {}), Err(SubscribeError::NoSuchInterrupt(slots)));
        Kernel::unsubscribe_irq(1);
        assert_eq!(Kernel::subscribe_irq(1, |_| {}), Ok(()));
    });
}

#[test]
fn rejects_mutexes_out_of_order() {
    static STACK: Stack = Stack::new();
    static GROUP: Group = Group::new();
    static FIRST: OrderedMutex<()> = OrderedMutex::new(&GROUP, 1, "first", ());
    static SECOND: OrderedMutex<()> = OrderedMutex::new(&GROUP, 2, "second", ());
    static OTHERS: Group = Group::new();
    static OTHER: OrderedMutex<()> = OrderedMutex::new(&OTHERS, 1, "other", ());
    in_thread(&STACK, || {
        let second = SECOND.lock().unwrap();
        assert_eq!(FIRST.lock().err(), Some(LockError::OutOfOrder("second")));
        assert_eq!(SECOND.lock().err(), Some(LockError::Recursive("second")));
        assert!(OTHER.lock().is_ok(), "the order is that of a group");
        drop(second);
        let _first = FIRST.lock().unwrap();
        assert!(SECOND.lock().is_ok());
    });
}

/// Returns the message about a thread that overflows its stack before it calls `then`.
fn overflow_before(stacks: &'static [Stack; 2], then: fn()) -> String {
    type Argument = (&'static Stack, fn());
    let starts = |(stack, then): Argument| {
        let overflows = |(stack, then): Argument| {
            // Like an overflow that reaches just below the stack, without overwriting other memory.
            let lowest = (&raw const *stack).cast_mut().cast::<usize>();
            // SAFETY: the lowest word of this thread's stack, which is not that deep.
            unsafe { lowest.write_volatile(0) };
            then();
        };
        Thread::spawn(5, stack, overflows, (stack, then)).unwrap();
        Thread::yield_now();
    };
    panic_of(|| {
        sim::run(|| {
            Thread::spawn(5, &stacks[0], starts, (&stacks[1], then)).unwrap();
            Kernel::run();
        });
    })
}

#[test]
fn detects_stack_overflow_at_next_switch() {
    static STACKS: [[Stack; 2]; 2] = [const { [const { Stack::new() }; 2] }; 2];
    let calls: [fn(); 2] = [Thread::yield_now, || Thread::sleep_until(5).unwrap()];
    for (stacks, then) in STACKS.iter().zip(calls) {
        let message = overflow_before(stacks, then);
        assert!(message.contains("slot 1 has overflowed its stack"), "{message}");
    }
}

#[test]
fn rejects_objects_of_another_simulation() {
    static SEMAPHORE: Semaphore = Semaphore::new(1, 1);
    sim::run(|| assert!(SEMAPHORE.try_p()));
    let message = panic_of(|| {
        sim::run(|| SEMAPHORE.try_p());
    });
    assert!(message.contains("belongs to another simulation"), "{message}");
    assert!(panic_of(|| _ = SEMAPHORE.v()).contains("no simulation runs on this thread"));
}

#[test]
fn panics_at_deadlock() {
    static STACK: Stack = Stack::new();
    static NEVER: Semaphore = Semaphore::new(0, 1);
    let message = panic_of(|| in_thread(&STACK, || NEVER.p().unwrap()));
    assert!(message.contains("none can ever run again"), "{message}");
}

#[test]
fn propagates_thread_panic() {
    static STACK: Stack = Stack::new();
    assert_eq!(panic_of(|| in_thread(&STACK, || panic!("on purpose"))), "on purpose");
}

#[test]
fn propagates_panic_of_interrupt_handler() {
    static STACK: Stack = Stack::new();
    let message = panic_of(|| {
        in_thread(&STACK, || {
            Kernel::subscribe_irq(1, |_| panic!("in the handler")).unwrap();
            sim::raise(1);
        });
    });
    assert_eq!(message, "in the handler");
}

#[test]
fn survives_rejected_nested_run() {
    static STACK: Stack = Stack::new();
    static SEMAPHORE: Semaphore = Semaphore::new(0, 1);
    in_thread(&STACK, || {
        assert!(panic_of(Kernel::run).contains("the kernel runs already"));
        // Interrupts are not masked.
        assert_eq!(SEMAPHORE.p_until(Kernel::now() + 5), Err(WaitError::TimedOut));
    });
}
