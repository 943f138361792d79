//! Faults of one run at its points, the same for the same text.
//!
//! ```
//! use punctual_fuzz::script::Script;
//!
//! let script = Script::of(7, 1, 0);
//! assert_eq!(script.to_string().parse::<Script>().unwrap(), script);
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::token::Kind;

/// Fault or end at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Fault {
    /// Panic with a `&'static str`.
    Panic,
    /// Panic with a `String`.
    Formatted,
    /// Panic with a value that must be dropped.
    Token,
    /// Panic with a value whose destructor panics.
    Bomb,
    /// `punctual::shutdown()`.
    Shutdown,
    /// SIGTERM.
    Signal,
    /// Blocks in the kernel for some milliseconds.
    Block,
}

/// Faults and parameters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Seed of the random choices of jobs.
    pub seed: u64,
    /// Faults, each at the point of this number.
    pub faults: Vec<(u32, Fault)>,
    /// For each kind of token, one in this many destructors panics.
    pub bombs: Vec<(Kind, u32)>,
    /// Number of points after which the app is shut down.
    pub budget: u32,
    /// Time limit of the app, in µs of its clock.
    pub until: u32,
    /// Number of foreign threads.
    pub foreigners: u32,
    /// Number of consecutive runs of the app.
    pub runs: u32,
    /// 1 if standard error is not writable.
    pub deaf: u32,
}

impl Script {
    /// Returns the script of this number in the sequence of `seed` for the app of the seed `app`.
    pub fn of(seed: u64, app: u64, number: u64) -> Self {
        let mut random = Random::of(&[seed, app, number]);
        let mut script = Self {
            seed: random.bits() >> 32,
            budget: 200 << random.below(5),
            until: 8_000 << random.below(3),
            foreigners: random.below(3) as u32,
            runs: 1 + u32::from(random.one_in(3)),
            deaf: random.one_in(8).into(),
            ..Self::default()
        };
        // Early points are in `init`, and every run passes them.
        for _ in 0..random.below(4) {
            let at = random.scaled(4, 9);
            script.faults.push((at as u32, *random.pick(Fault::value_variants())));
        }
        if random.one_in(3) {
            let kinds = random.some(Kind::value_variants(), 3);
            script.bombs = kinds.into_iter().map(|kind| (kind, 1 << random.below(6))).collect();
        }
        script
    }

    /// Returns true if the destructor of this token panics.
    pub(crate) fn is_bomb(&self, kind: Kind, id: u32) -> bool {
        let of_kind = self.bombs.iter().find(|(bomb, _)| *bomb == kind);
        of_kind.is_some_and(|&(_, times)| Random::of(&[self.seed, id.into()]).one_in(times.max(1).into()))
    }

    /// Returns the fault at the point of this number.
    pub(crate) fn fault(&self, point: u32) -> Option<Fault> {
        self.faults.iter().find(|(at, _)| *at == point).map(|&(_, fault)| fault)
    }

    /// Returns slightly smaller scripts.
    pub(crate) fn lesser(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |lesser: Self| {
            if lesser != *self {
                all.push(lesser);
            }
        };
        add(Self { runs: 1, ..self.clone() });
        add(Self { foreigners: 0, ..self.clone() });
        add(Self { deaf: 0, ..self.clone() });
        add(Self { bombs: Vec::new(), ..self.clone() });
        add(Self { budget: self.budget / 2, ..self.clone() });
        for gone in 0..self.faults.len() {
            let mut lesser = self.clone();
            lesser.faults.remove(gone);
            add(lesser);
        }
        for gone in 0..self.bombs.len() {
            let mut lesser = self.clone();
            lesser.bombs.remove(gone);
            add(lesser);
        }
        all
    }
}

/// As JSON.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Script {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

static SCRIPT: OnceLock<Script> = OnceLock::new();

/// Selects the script of this process.
pub(crate) fn choose(script: Script) {
    assert!(SCRIPT.set(script).is_ok(), "a process has one script");
}

/// Returns the script of this process.
pub(crate) fn script() -> &'static Script {
    SCRIPT.get().expect("the process starts by choosing its script")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_every_script() {
        for number in 0..200 {
            let script = Script::of(1, 2, number);
            assert_eq!(script.to_string().parse::<Script>().unwrap(), script);
        }
        assert!(r#"{"seed":1,"surprise":2}"#.parse::<Script>().is_err());
    }

    #[test]
    fn shrinking_terminates() {
        let mut script =
            Script { faults: vec![(1, Fault::Panic); 3], budget: 64, runs: 2, ..Script::default() };
        let mut steps = 0;
        while let Some(lesser) = script.lesser().into_iter().next() {
            script = lesser;
            steps += 1;
        }
        assert!(steps < 20, "{steps}");
    }
}
