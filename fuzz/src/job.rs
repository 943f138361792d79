//! Behavior of a body at its points.

use std::panic::panic_any;
use std::thread::sleep;
use std::time::Duration as StdDuration;

use punctual::Duration;

use crate::app::{Interface, Spot, app};
use crate::ledger::{RELAXED, ledger, violation};
use crate::random::Random;
use crate::script::{Fault, script};
use crate::token::{Kind, Pinned, Token};
use crate::{timers, wakers, watch};

/// Code of the app outside of tasks, in place of a task's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// `#[init]`.
    Init = 200,
    /// `#[idle]`.
    Idle,
    /// `#[shutdown]`.
    Hook,
    /// Foreign thread.
    Foreign,
}

/// Random choices of a job, `init`, `idle` or the hook.
#[derive(Debug)]
pub struct Job {
    random: Random,
    foreign: bool,
}

impl Job {
    /// Starts a job of this task, or the instance of an async task.
    pub fn start(spot: Spot) -> Self {
        watch::job_starts(spot);
        let number = ledger().tasks[usize::from(spot.task)].runs.fetch_add(1, RELAXED);
        Self::new(spot.task, number)
    }

    /// Starts code outside of tasks.
    pub fn of(role: Role) -> Self {
        Self::new(role as u8, 0)
    }

    fn new(who: u8, number: u32) -> Self {
        let run = ledger().begun.load(RELAXED);
        let random = Random::of(&[script().seed, who.into(), number.into(), run.into()]);
        Self { random, foreign: who == Role::Foreign as u8 }
    }

    /// Takes the argument of the job.
    pub fn take(&self, spot: Spot, token: &Token) {
        token.execute(spot.lane());
    }

    /// Takes the argument of a local task.
    pub fn take_pinned(&self, spot: Spot, pinned: &Pinned) {
        pinned.touch();
        pinned.token().execute(spot.lane());
    }

    /// Spawns a local task, from its level.
    pub fn spawn_local(task: u8, spawn: impl FnOnce(Pinned) -> Result<(), Pinned>) {
        let pinned = Pinned::of_task(Kind::Message, task);
        if let Err(pinned) = app().tasks[usize::from(task)].send(|| spawn(pinned)) {
            pinned.refused();
        }
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Returns a duration to wait.
    pub fn delay(&mut self) -> Duration {
        Duration::from_micros(self.random.scaled(20, 6))
    }

    /// Point at which faults are injected.
    pub fn point(&mut self) {
        let number = ledger().points.fetch_add(1, RELAXED);
        if number >= script().budget {
            // Repeated, because the first call may come from a thread before the app runs.
            if number.is_power_of_two() || number == script().budget {
                self.shut_down();
            }
            return;
        }
        if let Some(fault) = script().fault(number) {
            self.fault(fault);
        }
        match self.random.below(64) {
            0..16 => {
                self.random.pick(app().tasks).spawn();
            }
            16..22 => {
                let task = self.random.pick(app().tasks);
                timers::arm(task, &mut self.random);
            }
            22..25 => timers::cancel(&mut self.random),
            25..28 => timers::reschedule(&mut self.random),
            28..32 => wakers::wake(&mut self.random),
            32..34 => watch::ring(self.random.below(app().tasks.len() as u64) as usize),
            34 => sleep(StdDuration::from_micros(self.random.below(200))),
            35 => punctual::spend(Duration::from_micros(self.random.below(30))),
            36..38 => drop(Token::new(Kind::Stack)),
            38 => drop(punctual::now()),
            39 => std::thread::yield_now(),
            _ => {}
        }
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Block => sleep(StdDuration::from_millis(3)),
            // Before and after a run, a signal has its default effect.
            Fault::Signal if !self.foreign && ledger().virtual_time.load(RELAXED) == 0 => {
                ledger().signals.fetch_add(1, RELAXED);
                // SAFETY: the call takes no pointers; the handler determines the effect of the
                // signal.
                unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
            }
            Fault::Shutdown | Fault::Signal => self.shut_down(),
            _ if self.foreign => self.shut_down(),
            Fault::Panic | Fault::Formatted | Fault::Token | Fault::Bomb => {
                watch::panics();
                match fault {
                    Fault::Panic => panic!("on purpose"),
                    Fault::Formatted => panic!("on purpose, {}", self.random.below(10)),
                    Fault::Token => panic_any(Token::new(Kind::Payload)),
                    _ => panic_any(Token::bomb(Kind::Payload)),
                }
            }
        }
    }

    /// Stops the app, and checks that it then accepts spawns of its own threads even without room.
    fn shut_down(&mut self) {
        punctual::shutdown();
        let task = self.random.pick(app().tasks);
        // A foreign thread may call this before the app starts, and the app then runs.
        if !self.foreign
            && matches!(task.interface, Interface::Message { .. } | Interface::Async(_))
            && !task.spawn()
        {
            violation(&format!("a spawn of {} is refused after the shutdown", task.name));
        }
    }
}
