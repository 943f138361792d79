//! The specification of programs, as simple as possible: lists that are searched, and priorities
//! computed from their definition.

use super::program::{MAXIMUM, MUTEXES, Op, Program, SEMAPHORES};

/// The result of a call, in terms of the kernel's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Yes,
    No,
    TimedOut,
    Overflow,
    Recursive,
    Deadlock,
    OwnerEnded,
    WouldBlock,
    NotOwner,
    EndedHolding(usize),
    Itself,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has not been spawned.
    Nothing,
    Ready,
    Sleeping,
    Locking(usize),
    Waiting(usize),
    Joining(usize),
    Ended(Answer),
}

#[derive(Clone, Debug)]
pub(crate) struct Thread {
    base: u8,
    pub(crate) priority: u8,
    pub(crate) doing: Doing,
    /// Orders two threads in one queue: the lower number goes first.
    turn: i64,
    /// The end of its timeout, and the number of that request.
    deadline: Option<(u64, u64)>,
    /// The mutexes it has locked, in that order.
    held: Vec<usize>,
    pub(crate) answer: Option<Answer>,
}

pub(crate) struct Model {
    pub(crate) threads: Vec<Thread>,
    owner: [Option<usize>; MUTEXES],
    abandoned: [bool; MUTEXES],
    units: [u32; SEMAPHORES],
    pub(crate) now: u64,
    first: i64,
    last: i64,
    requests: u64,
}

impl Model {
    pub(crate) fn new(program: &Program) -> Self {
        let thread = |&(base, _): &(u8, Vec<Op>)| Thread {
            base,
            priority: base,
            doing: Doing::Nothing,
            turn: 0,
            deadline: None,
            held: Vec::new(),
            answer: None,
        };
        Self {
            threads: program.threads.iter().map(thread).collect(),
            owner: [None; MUTEXES],
            abandoned: [false; MUTEXES],
            units: program.units,
            now: 0,
            first: 0,
            last: 0,
            requests: 0,
        }
    }

    /// Returns the thread that has to run.
    pub(crate) fn running(&self) -> Option<usize> {
        self.first_of(|doing| doing == Doing::Ready)
    }

    /// Returns the next due time.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.threads.iter().filter_map(|thread| thread.deadline).map(|(time, _)| time).min()
    }

    fn first_of(&self, place: impl Fn(Doing) -> bool) -> Option<usize> {
        let there = (0..self.threads.len()).filter(|&thread| place(self.threads[thread].doing));
        there.min_by_key(|&thread| (-i64::from(self.threads[thread].priority), self.threads[thread].turn))
    }

    fn send_to_end(&mut self, thread: usize) {
        self.last += 1;
        self.threads[thread].turn = self.last;
    }

    fn send_to_front(&mut self, thread: usize) {
        self.first -= 1;
        self.threads[thread].turn = self.first;
    }

    fn wake(&mut self, thread: usize, answer: Answer) {
        self.threads[thread].doing = Doing::Ready;
        self.threads[thread].deadline = None;
        self.threads[thread].answer = Some(answer);
        self.send_to_end(thread);
    }

    fn wait(&mut self, thread: usize, doing: Doing, deadline: Option<u64>) {
        self.threads[thread].doing = doing;
        self.requests += 1;
        self.threads[thread].deadline = deadline.map(|time| (time, self.requests));
        self.send_to_end(thread);
    }

    /// Computes priorities by their definition: the highest of a thread's own and of those that
    /// wait for its mutexes.
    fn inherit(&mut self) {
        let mut priorities: Vec<u8> = self.threads.iter().map(|thread| thread.base).collect();
        for _ in 0..self.threads.len() {
            for (waiter, thread) in self.threads.iter().enumerate() {
                if let Doing::Locking(mutex) = thread.doing
                    && let Some(owner) = self.owner[mutex]
                {
                    priorities[owner] = priorities[owner].max(priorities[waiter]);
                }
            }
        }
        for (thread, priority) in priorities.into_iter().enumerate() {
            let before = self.threads[thread].priority;
            self.threads[thread].priority = priority;
            if priority > before {
                self.send_to_end(thread);
            } else if priority < before {
                self.send_to_front(thread);
            }
        }
    }

    pub(crate) fn spawn(&mut self, thread: usize) {
        self.threads[thread].doing = Doing::Ready;
        self.send_to_end(thread);
    }

    /// A thread's call takes effect; its time is one of the clock.
    pub(crate) fn call(&mut self, me: usize, op: Op) {
        let answer = self.effect(me, op);
        self.threads[me].answer = answer;
        self.inherit();
    }

    /// Returns `None` if the thread waits, or has ended.
    fn effect(&mut self, me: usize, op: Op) -> Option<Answer> {
        match op {
            Op::Lock(mutex) | Op::TryLock(mutex) => {
                let Some(owner) = self.owner[mutex] else {
                    self.owner[mutex] = Some(me);
                    self.threads[me].held.push(mutex);
                    return Some(Answer::Ok);
                };
                if self.abandoned[mutex] {
                    return Some(Answer::OwnerEnded);
                } else if owner == me {
                    return Some(Answer::Recursive);
                } else if let Op::TryLock(_) = op {
                    return Some(Answer::WouldBlock);
                }
                let mut at = owner;
                while let Doing::Locking(mutex) = self.threads[at].doing {
                    at = self.owner[mutex].unwrap();
                    if at == me {
                        return Some(Answer::Deadlock);
                    }
                }
                self.wait(me, Doing::Locking(mutex), None);
                None
            }
            Op::Unlock(mutex) => {
                let Some(at) = self.threads[me].held.iter().position(|&held| held == mutex) else {
                    return Some(Answer::NotOwner);
                };
                self.threads[me].held.remove(at);
                self.owner[mutex] = self.first_of(|doing| doing == Doing::Locking(mutex));
                if let Some(next) = self.owner[mutex] {
                    self.wake(next, Answer::Ok);
                    self.threads[next].held.push(mutex);
                }
                Some(Answer::Ok)
            }
            Op::P(semaphore) | Op::PUntil(semaphore, _) | Op::TryP(semaphore) => {
                let deadline = if let Op::PUntil(_, time) = op { Some(time) } else { None };
                if self.units[semaphore] > 0 {
                    self.units[semaphore] -= 1;
                    return Some(if let Op::TryP(_) = op { Answer::Yes } else { Answer::Ok });
                } else if let Op::TryP(_) = op {
                    return Some(Answer::No);
                } else if deadline.is_some_and(|time| time <= self.now) {
                    return Some(Answer::TimedOut);
                }
                self.wait(me, Doing::Waiting(semaphore), deadline);
                None
            }
            Op::V(semaphore) => Some(self.signal(semaphore, 1)),
            Op::VBy(semaphore, n) => Some(self.signal(semaphore, n)),
            Op::Nothing => Some(Answer::Ok),
            Op::Yield => {
                self.send_to_end(me);
                Some(Answer::Ok)
            }
            Op::Sleep(time) if time <= self.now => Some(Answer::Ok),
            Op::Sleep(time) => {
                self.wait(me, Doing::Sleeping, Some(time));
                None
            }
            Op::Join(other) => match self.threads[other].doing {
                Doing::Ended(answer) => Some(answer),
                _ if other == me => Some(Answer::Itself),
                _ => {
                    self.wait(me, Doing::Joining(other), None);
                    None
                }
            },
            Op::Spawn(other) => {
                self.spawn(other);
                Some(Answer::Ok)
            }
            Op::End => {
                let mut answer = Answer::Ok;
                while let Some(mutex) = self.threads[me].held.pop() {
                    answer = Answer::EndedHolding(mutex);
                    self.abandoned[mutex] = true;
                    while let Some(next) = self.first_of(|doing| doing == Doing::Locking(mutex)) {
                        self.wake(next, Answer::OwnerEnded);
                    }
                }
                while let Some(next) = self.first_of(|doing| doing == Doing::Joining(me)) {
                    self.wake(next, answer);
                }
                self.threads[me].doing = Doing::Ended(answer);
                None
            }
        }
    }

    /// V, by a thread or an interrupt handler.
    pub(crate) fn signal(&mut self, semaphore: usize, n: u32) -> Answer {
        let waits = |thread: &&Thread| thread.doing == Doing::Waiting(semaphore);
        let waiting = self.threads.iter().filter(waits).count() as u32;
        let left = self.units[semaphore] + n.saturating_sub(waiting);
        if left > MAXIMUM {
            return Answer::Overflow;
        }
        self.units[semaphore] = left;
        for _ in 0..n.min(waiting) {
            let first = self.first_of(|doing| doing == Doing::Waiting(semaphore)).unwrap();
            self.wake(first, Answer::Ok);
        }
        Answer::Ok
    }

    pub(crate) fn advance(&mut self, time: u64) {
        self.now += time;
        let due = |thread: &Thread| thread.deadline.filter(|&(time, _)| time <= self.now);
        let mut due: Vec<(u64, u64, usize)> = (0..self.threads.len())
            .filter_map(|thread| due(&self.threads[thread]).map(|(time, request)| (time, request, thread)))
            .collect();
        due.sort_unstable();
        for (.., thread) in due {
            let answer =
                if self.threads[thread].doing == Doing::Sleeping { Answer::Ok } else { Answer::TimedOut };
            self.wake(thread, answer);
        }
    }
}
