//! What a body does at its points.

use std::panic::panic_any;
use std::thread::sleep;
use std::time::Duration as StdDuration;

use punctual::Duration;

use crate::app::{Door, Spot, app};
use crate::ledger::{RELAXED, ledger, violation};
use crate::random::Random;
use crate::script::{Fault, script};
use crate::token::{Kind, Pinned, Token};
use crate::{timers, wakers, watch};

/// What an app's own code runs in that is no task, in place of the task's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// `#[init]`.
    Init = 200,
    /// `#[idle]`.
    Idle,
    /// `#[shutdown]`.
    Hook,
    /// A thread that is none of the app's.
    Foreign,
}

/// A job, `init`, `idle` or the hook: where its random choices come from.
#[derive(Debug)]
pub struct Job {
    random: Random,
    foreign: bool,
}

impl Job {
    /// A job of this task, or the instance of an async one.
    pub fn start(spot: Spot) -> Self {
        watch::job_starts(spot);
        let number = ledger().tasks[usize::from(spot.task)].runs.fetch_add(1, RELAXED);
        Self::new(spot.task, number)
    }

    /// What is no task.
    pub fn of(role: Role) -> Self {
        Self::new(role as u8, 0)
    }

    fn new(who: u8, number: u32) -> Self {
        let run = ledger().begun.load(RELAXED);
        let random = Random::of(&[script().seed, who.into(), number.into(), run.into()]);
        Self { random, foreign: who == Role::Foreign as u8 }
    }

    /// Takes the argument that the job was spawned with.
    pub fn take(&self, spot: Spot, token: &Token) {
        token.execute(spot.lane());
    }

    /// Takes the argument that a local task was spawned with.
    pub fn take_pinned(&self, spot: Spot, pinned: &Pinned) {
        pinned.touch();
        pinned.token().execute(spot.lane());
    }

    /// Spawns a local task, which only its level does.
    pub fn spawn_local(task: u8, spawn: impl FnOnce(Pinned) -> Result<(), Pinned>) {
        let pinned = Pinned::of_task(Kind::Message, task);
        if let Err(pinned) = app().tasks[usize::from(task)].send(|| spawn(pinned)) {
            pinned.refused();
        }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// A duration to wait for.
    pub fn delay(&mut self) -> Duration {
        Duration::from_micros(self.random.scaled(20, 6))
    }

    /// A point at which anything may happen.
    pub fn point(&mut self) {
        let number = ledger().points.fetch_add(1, RELAXED);
        if number >= script().budget {
            // Said more than once: the first time may be in a thread that belongs to no app that runs yet.
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
            // Before and after a run a signal does what it does to any process.
            Fault::Signal if !self.foreign && ledger().virtual_time.load(RELAXED) == 0 => {
                ledger().signals.fetch_add(1, RELAXED);
                // SAFETY: the call takes no pointers. What the signal does is decided by its handler.
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

    /// Stops the app, and checks that it then takes what its threads spawn, be there room or not.
    fn shut_down(&mut self) {
        punctual::shutdown();
        let task = self.random.pick(app().tasks);
        // A thread of no app may have come before the app, which then runs.
        if !self.foreign && matches!(task.door, Door::Message { .. } | Door::Async(_)) && !task.spawn() {
            violation(&format!("a spawn of {} is refused after the shutdown", task.name));
        }
    }
}
