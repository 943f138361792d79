//! A program on the simulated kernel, together with the model.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use punctual_kernel::sim::{self, Environment, Event, Point, Sim};
use punctual_kernel::{JoinError, LockError, Semaphore, SignalError, Stack, State, UnlockError, WaitError};

use super::Random;
use super::model::{Answer, Doing, Model};
use super::program::{MAXIMUM, MUTEXES, Op, Program, SEMAPHORES};

type Kernel = punctual_kernel::Kernel<Sim>;
type Thread = punctual_kernel::Thread<Sim>;
type Mutex = punctual_kernel::RawMutex<Sim>;

const NAMES: [&str; MUTEXES] = ["m0", "m1", "m2"];
const STACK: usize = 48 * 1024;

/// The points at which interrupts come.
#[derive(Clone, Debug)]
pub(crate) enum Interrupts {
    /// At each point with a probability of `chance` in 64.
    Random { seed: u64, chance: usize },
    /// At one point, the one with this number, and of this kind.
    One { at: usize, kind: usize },
}

/// The number of kinds of interrupts: V of the first semaphore, V by 2 of the second, the clock.
pub(crate) const KINDS: usize = 3;

/// Ends the program when no other event can happen.
const END: u32 = 7;

struct State_ {
    program: Program,
    model: RefCell<Model>,
    handles: RefCell<Vec<Option<Thread>>>,
    /// The call that each thread is about to make.
    pending: RefCell<Vec<Option<Op>>>,
    /// Set while the kernel is only queried.
    is_checking: Cell<bool>,
    points: Cell<usize>,
}

struct Objects {
    mutexes: [Mutex; MUTEXES],
    semaphores: [Semaphore<Sim>; SEMAPHORES],
    stacks: Vec<Box<Stack<Sim, STACK>>>,
}

thread_local! {
    static CURRENT: RefCell<Option<(Rc<State_>, &'static Objects)>> = const { RefCell::new(None) };
}

fn current() -> (Rc<State_>, &'static Objects) {
    CURRENT.with_borrow(|current| current.clone().expect("a schedule runs"))
}

struct Outside {
    state: Rc<State_>,
    interrupts: Interrupts,
    random: Random,
    has_ended: bool,
}

impl Outside {
    /// Returns the kind of the interrupt at this point, if any.
    fn choose(&mut self) -> Option<usize> {
        let number = self.state.points.get();
        self.state.points.set(number + 1);
        match self.interrupts {
            Interrupts::Random { chance, .. } => {
                (self.random.below(64) < chance).then(|| self.random.below(KINDS))
            }
            Interrupts::One { at, kind } => (at == number).then_some(kind),
        }
    }

    fn happen(&mut self, kind: usize) -> Event {
        let mut model = self.state.model.borrow_mut();
        match kind {
            0 => {
                model.signal(0, 1);
                Event::Interrupt(0)
            }
            1 => {
                model.signal(1, 2);
                Event::Interrupt(1)
            }
            _ => {
                model.advance(1);
                Event::Advance(1)
            }
        }
    }
}

impl Environment for Outside {
    fn next(&mut self, point: Point) -> Event {
        if self.state.is_checking.get() {
            return Event::Nothing;
        }
        if let Some(kind) = self.choose() {
            return self.happen(kind);
        }
        let mut model = self.state.model.borrow_mut();
        if point != Point::Idle || model.running().is_some() {
            return Event::Nothing;
        }
        match model.next_deadline() {
            Some(time) => {
                let step = time - model.now;
                model.advance(step);
                Event::Advance(step)
            }
            None if self.has_ended => Event::Nothing,
            None => {
                self.has_ended = true;
                Event::Interrupt(END)
            }
        }
    }

    fn takes_effect(&mut self) {
        if self.state.is_checking.get() {
            return;
        }
        let mut model = self.state.model.borrow_mut();
        let running = model.running().expect("a thread calls the kernel although none is ready");
        let op = self.state.pending.borrow_mut()[running].take();
        model.call(running, op.unwrap_or_else(|| panic!("another thread than {running} runs")));
    }

    fn idles(&mut self) {
        let running = self.state.model.borrow().running();
        assert_eq!(running, None, "the kernel idles");
    }
}

/// Runs `f`, which only queries the kernel.
fn observe<R>(state: &State_, f: impl FnOnce() -> R) -> R {
    state.is_checking.set(true);
    let result = f();
    state.is_checking.set(false);
    result
}

/// Compares the state of every thread in the kernel and the model.
fn compare(state: &State_) {
    let handles = state.handles.borrow();
    let kernel: Vec<_> =
        observe(state, || handles.iter().map(|h| h.map(|h| (h.priority(), h.state()))).collect());
    let model = state.model.borrow();
    for (thread, (theirs, of_model)) in kernel.into_iter().zip(&model.threads).enumerate() {
        let Some((priority, doing)) = theirs else { continue };
        let (same, expected) = match of_model.doing {
            Doing::Nothing => (false, None),
            Doing::Ready => (doing == State::Ready, Some(of_model.priority)),
            Doing::Sleeping => (doing == State::Sleeping, Some(of_model.priority)),
            Doing::Locking(_) => (doing == State::Locking, Some(of_model.priority)),
            Doing::Waiting(_) => (doing == State::Waiting, Some(of_model.priority)),
            Doing::Joining(_) => (doing == State::Joining, Some(of_model.priority)),
            Doing::Ended(_) => (doing == State::Ended, None),
        };
        assert!(same, "thread {thread} is {doing:?}, not {:?}", of_model.doing);
        assert_eq!(priority, expected, "the priority of thread {thread}, which is {doing:?}");
    }
}

fn spawn(thread: usize) {
    let (state, objects) = current();
    let priority = state.program.threads[thread].0;
    let handle = Thread::spawn(priority, &*objects.stacks[thread], body, thread).expect("a slot is free");
    state.handles.borrow_mut()[thread] = Some(handle);
}

fn body(me: usize) {
    let (state, objects) = current();
    // The thread may have run before its spawner receives its handle.
    state.handles.borrow_mut()[me] = observe(&state, Thread::current);
    for &op in &state.program.threads[me].1 {
        assert_eq!(state.model.borrow().running(), Some(me), "thread {me} runs");
        compare(&state);
        let now = observe(&state, Kernel::now);
        let op = match op {
            Op::PUntil(semaphore, time) => Op::PUntil(semaphore, now + time),
            Op::Sleep(time) => Op::Sleep(now + time),
            // The handle is not known yet.
            Op::Join(other) if state.handles.borrow()[other].is_none() => Op::Nothing,
            op => op,
        };
        state.pending.borrow_mut()[me] = Some(op);
        if op == Op::End {
            return;
        }
        let answer = call(op, &state, objects);
        assert_eq!(state.model.borrow().running(), Some(me), "thread {me} runs after {op:?}");
        let expected = state.model.borrow().threads[me].answer;
        assert_eq!(Some(answer), expected, "the answer to {op:?} of thread {me}");
    }
}

fn call(op: Op, state: &State_, objects: &'static Objects) -> Answer {
    let name = |name| NAMES.iter().position(|&other| other == name).expect("the name is that of a mutex");
    let locked = |result| match result {
        Ok(()) => Answer::Ok,
        Err(LockError::Recursive(_)) => Answer::Recursive,
        Err(LockError::Deadlock(_)) => Answer::Deadlock,
        Err(LockError::OwnerEnded(_)) => Answer::OwnerEnded,
        Err(LockError::WouldBlock(_)) => Answer::WouldBlock,
        Err(error) => panic!("{error}"),
    };
    let waited = |result| match result {
        Ok(()) => Answer::Ok,
        Err(WaitError::TimedOut) => Answer::TimedOut,
        Err(error) => panic!("{error}"),
    };
    let signalled = |result| match result {
        Ok(()) => Answer::Ok,
        Err(SignalError::Overflow(MAXIMUM)) => Answer::Overflow,
        Err(error) => panic!("{error}"),
    };
    match op {
        Op::Lock(mutex) => locked(objects.mutexes[mutex].lock()),
        Op::TryLock(mutex) => locked(objects.mutexes[mutex].try_lock()),
        Op::Unlock(mutex) => match objects.mutexes[mutex].unlock() {
            Ok(()) => Answer::Ok,
            Err(UnlockError::NotOwner(_)) => Answer::NotOwner,
            Err(error) => panic!("{error}"),
        },
        Op::P(semaphore) => waited(objects.semaphores[semaphore].p()),
        Op::PUntil(semaphore, time) => waited(objects.semaphores[semaphore].p_until(time)),
        Op::TryP(semaphore) if objects.semaphores[semaphore].try_p() => Answer::Yes,
        Op::TryP(_) => Answer::No,
        Op::V(semaphore) => signalled(objects.semaphores[semaphore].v()),
        Op::VBy(semaphore, n) => signalled(objects.semaphores[semaphore].v_by(n)),
        Op::Yield => {
            Thread::yield_now();
            Answer::Ok
        }
        Op::Sleep(time) => waited(Thread::sleep_until(time)),
        Op::Join(other) => {
            let handle = state.handles.borrow()[other].expect("checked above");
            match handle.join() {
                Ok(()) => Answer::Ok,
                Err(JoinError::EndedHolding(mutex)) => Answer::EndedHolding(name(mutex)),
                Err(JoinError::Itself) => Answer::Itself,
                Err(error) => panic!("{error}"),
            }
        }
        Op::Nothing => {
            Kernel::masked(|| ());
            Answer::Ok
        }
        Op::Spawn(other) => {
            spawn(other);
            Answer::Ok
        }
        Op::End => unreachable!("the thread's function returns instead"),
    }
}

fn signal_first(_: u32) {
    let _ = current().1.semaphores[0].v();
}

fn signal_second(_: u32) {
    let _ = current().1.semaphores[1].v_by(2);
}

/// Runs a program on the kernel and the model; returns the number of points. Panics on a
/// difference.
pub(crate) fn run(program: &Program, interrupts: Interrupts) -> usize {
    let objects = Box::into_raw(Box::new(Objects {
        mutexes: NAMES.map(Mutex::new),
        semaphores: program.units.map(|units| Semaphore::new(units, MAXIMUM)),
        stacks: program.threads.iter().map(|_| Box::default()).collect(),
    }));
    let state = Rc::new(State_ {
        program: program.clone(),
        model: RefCell::new(Model::new(program)),
        handles: RefCell::new(vec![None; program.threads.len()]),
        pending: RefCell::new(vec![None; program.threads.len()]),
        is_checking: Cell::new(true),
        points: Cell::new(0),
    });
    // SAFETY: it is freed below, when the simulation, which alone may use it, has ended.
    CURRENT.set(Some((state.clone(), unsafe { &*objects })));
    let seed = if let Interrupts::Random { seed, .. } = interrupts { seed } else { 0 };
    let outside = Outside { state: state.clone(), interrupts, random: Random(seed), has_ended: false };
    sim::run_in(outside, || {
        Kernel::subscribe_irq(0, signal_first).unwrap();
        Kernel::subscribe_irq(1, signal_second).unwrap();
        Kernel::subscribe_irq(END, |_| Kernel::stop()).unwrap();
        for stack in &current().1.stacks {
            stack.prepare().unwrap();
        }
        for thread in 0..program.initial {
            spawn(thread);
            state.model.borrow_mut().spawn(thread);
        }
        // The first thread begins with a query, and from then on interrupts come.
        Kernel::run();
        state.is_checking.set(true);
        compare(&state);
    });
    CURRENT.set(None);
    // SAFETY: created above, and no longer used. A panic leaks it.
    drop(unsafe { Box::from_raw(objects) });
    state.points.get()
}
