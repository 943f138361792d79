//! Acquisition and release of locks.

use super::{Actor, E, HolderState, Kind, Machine, Mode, TICK, WaitTruth, effective};

const WORD: u64 = 0x7f00_0000_1000;

impl Machine {
    pub(super) fn lock(&mut self, cpu: usize, thread: usize, lock: usize) -> bool {
        let Some(owner) = self.locks[lock].owner else {
            self.locks[lock].owner = Some(thread);
            self.threads[thread].advance();
            return true;
        };
        let word = WORD + lock as u64 * 8;
        self.threads[thread].waits = Some(lock);
        self.threads[thread].wait =
            Some(WaitTruth { start: self.time(), owner: self.threads[owner].tid, ..WaitTruth::default() });
        match self.locks[lock].kind {
            Kind::PiFutex => self.emit(cpu, E::FutexEnter { word, operation: 6 | 128, value: 0 }),
            Kind::PlainFutex => self.emit(cpu, E::FutexEnter { word, operation: 128, value: 2 }),
            Kind::RtMutex => self.emit(cpu, E::ContentionBegin { lock: word, flags: 8 }),
        }
        self.inheritance(cpu, owner);
        self.cpus[cpu].mode = Mode::Contending(self.random.range(1, 3));
        false
    }

    pub(super) fn unlock(&mut self, cpu: usize, thread: usize, lock: usize) -> bool {
        let waiters = |m: &Self| -> Vec<usize> {
            (0..m.threads.len())
                .filter(|&i| m.threads[i].waits == Some(lock) && !m.threads[i].granted)
                .collect()
        };
        let waiting = waiters(self);
        // Waits for one on its way to sleep, so that handing over and going to sleep do not race.
        if waiting.iter().any(|&i| self.threads[i].state != super::State::Asleep) {
            return false;
        }
        let Some(&next) = waiting.iter().min_by_key(|&&i| self.threads[i].shown) else {
            self.locks[lock].owner = None;
            self.threads[thread].advance();
            return true;
        };
        let word = WORD + lock as u64 * 8;
        let kind = self.locks[lock].kind;
        match kind {
            Kind::PiFutex => self.emit(cpu, E::FutexEnter { word, operation: 7 | 128, value: 0 }),
            Kind::PlainFutex => self.emit(cpu, E::FutexEnter { word, operation: 1 | 128, value: 1 }),
            Kind::RtMutex => {}
        }
        self.locks[lock].owner = Some(next);
        self.threads[next].granted = true;
        self.passed_on(lock);
        self.wake(cpu, next);
        self.inheritance(cpu, thread);
        self.inheritance(cpu, next);
        if kind != Kind::RtMutex {
            self.emit(cpu, E::FutexExit { result: 0 });
        }
        self.threads[thread].advance();
        true
    }

    /// All that still wait for this lock, directly or through others, no longer wait for one holder
    /// alone.
    fn passed_on(&mut self, lock: usize) {
        for index in 0..self.threads.len() {
            let mut next = Some(index);
            let mut through = Vec::new();
            while let Some(at) = next.filter(|&at| !self.threads[at].granted) {
                through.extend(self.threads[at].waits);
                next = self.threads[at].waits.and_then(|lock| self.locks[lock].owner);
            }
            if through.contains(&lock)
                && let Some(wait) = self.threads[index].wait.as_mut()
            {
                wait.passed_on = true;
            }
        }
    }

    /// Returns from the wait, with the lock.
    pub(super) fn returned(&mut self, cpu: usize, thread: usize) {
        let lock = self.threads[thread].waits.take().expect("it waited");
        self.threads[thread].granted = false;
        match self.locks[lock].kind {
            Kind::PiFutex | Kind::PlainFutex => self.emit(cpu, E::FutexExit { result: 0 }),
            Kind::RtMutex => self.emit(cpu, E::ContentionEnd { lock: WORD + lock as u64 * 8 }),
        }
        let mut wait = self.threads[thread].wait.take().expect("it waited");
        wait.end = self.time();
        self.threads[thread].job.as_mut().expect("it has a job").waits.push(wait);
        self.threads[thread].advance();
    }

    /// Updates priorities along the chain that starts with `thread`.
    fn inheritance(&mut self, cpu: usize, thread: usize) {
        let mut next = Some(thread);
        while let Some(index) = next {
            let new = effective(&self.threads, &self.locks, index);
            let old = std::mem::replace(&mut self.threads[index].shown, new);
            if old != new {
                let task = self.threads[index].tid;
                self.emit(cpu, E::Inherit { task, old, new });
            }
            let blocked = self.threads[index].waits.filter(|_| !self.threads[index].granted);
            next = blocked.and_then(|lock| self.locks[lock].owner);
        }
    }

    /// Adds a tick to a thread's wait, by the holder's activity in it.
    pub(super) fn count_wait(&mut self, thread: usize) {
        let Some(mut wait) = self.threads[thread].wait.take() else { return };
        if self.threads[thread].granted {
            // The waiter has the lock; threads other than the idle one may still keep it from the
            // CPU.
            let waits = self.threads[thread].state == super::State::Ready;
            match self.doing(thread) {
                Some(HolderState::Preempted { by }) if waits && by != Actor::Thread(0) => {
                    wait.share(0, None, HolderState::Preempted { by }, TICK);
                }
                _ => wait.share(0, None, HolderState::Granted, TICK),
            }
        } else {
            let (mut at, mut depth) = (thread, 0_u8);
            loop {
                let lock = self.threads[at].waits.expect("it waits");
                let owner = self.locks[lock].owner.expect("somebody holds it");
                let doing = self.doing(owner);
                match doing {
                    Some(doing) => {
                        wait.share(depth, Some(self.threads[owner].tid), doing, TICK);
                        break;
                    }
                    None => (at, depth) = (owner, depth + 1),
                }
            }
        }
        self.threads[thread].wait = Some(wait);
    }
}
